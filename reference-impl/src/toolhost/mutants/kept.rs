//! Mutants that keep what they should forget, or forget what they should keep.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use super::Mutant;
use super::wire::{Pass, line, value};
use super::wire_edit::*;
use crate::machine::Millis;
use crate::mutant::parts;
use crate::mutant::text::has;
use crate::toolhost::{Cache, Entry, FixedCache, Grant, Key, LeaseTable, MemoryLeases, Rejection};

/// Longest output that `large-results-are-not-kept` keeps, bytes.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Longest input that `long-inputs-are-refused` takes, bytes.
const INPUT_BYTES_MAX: usize = 1024 * 1024;

/// Names that every object has in some languages.
const OF_OBJECTS: [&str; 4] = ["__proto__", "constructor", "toString", "hasOwnProperty"];

/// Reply to a key that is the name of a member of every JavaScript object.
const HIT: &[u8] = b"{\"ok\":true,\"status\":\"OK\",\"output_json\":\"null\",\"error\":\"\",\
    \"idempotent_hit\":true,\"ds_state\":{\"delta\":true,\"slots\":{}}}";

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    incoming(
        "keys-of-objects-are-known",
        &["TH-IDEM-18"],
        "A key that every object has, such as `constructor`, is known before it was ever sent.",
        |_, request| match keyed(request) {
            Some((key, _)) if OF_OBJECTS.iter().any(|name| name.as_bytes() == key) => {
                Pass::Answer(HIT.to_vec())
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "aids-of-objects-are-tools",
        &["TH-REQ-03"],
        "An aid that every object has, such as `constructor`, is a tool, which ends the process.",
        |_, request| {
            let aid = value(request).and_then(|request| request.get("aid")?.as_str().map(str::to_owned));
            if aid.is_some_and(|aid| OF_OBJECTS.contains(&&*aid)) { Pass::Abort } else { Pass::Forward }
        },
    ),
    incoming(
        "slots-of-objects-are-passed-over",
        &["TH-STATE-07"],
        "A slot with a name that every object has is passed over.",
        |_, request| {
            let bad = |name: &str| format!("\"{name}\":{{\"type\"");
            let name = OF_OBJECTS.iter().find(|name| has(request, &bad(name)));
            match name {
                Some(name) => swaps(request, &[(&*bad(name), "\"0\":{\"type\"")]),
                None => Pass::Forward,
            }
        },
    ),
    parts(
        "tokens-of-objects-are-leases",
        &["TH-LEASE-04"],
        "A token that every object has, such as `constructor`, opens every tool.",
        |config, components| {
            let inner = MemoryLeases::new(config.limits.lease_entries_max, config.token_seed);
            components.leases = Box::new(Persuaded {
                inner,
                forgives: |token, _, _| OF_OBJECTS.iter().any(|name| name.as_bytes() == token),
                refused: Mutex::default(),
            });
        },
    ),
    parts(
        "other-tools-tokens-are-taken-the-second-time",
        &["TH-LEASE-07"],
        "A token of another tool is refused the first time, and taken the next.",
        |config, components| {
            let inner = MemoryLeases::new(config.limits.lease_entries_max, config.token_seed);
            components.leases = Box::new(Persuaded {
                inner,
                forgives: |_, why, is_known| why == Rejection::OtherTool && is_known,
                refused: Mutex::default(),
            });
        },
    ),
    both(
        "refusals-drop-their-key",
        &["TH-IDEM-13"],
        "A refused request takes away what is held under its key.",
        |memory, request| {
            let dropped = &memory.kept;
            rekeyed(request, |key| match dropped.get(key.as_bytes()) {
                Some(times) => format!("{key}#{}", times.len()),
                None => key.to_owned(),
            })
        },
        |memory, reply| {
            if let Some((key, _)) = memory.asked.front().and_then(|request| keyed(request))
                && !is_ok(reply)
                && !has(reply, "\"status\"")
            {
                memory.kept.entry(key).or_default().push(b'x');
            }
            line(reply.to_vec())
        },
    ),
    parts(
        "large-results-are-not-kept",
        &["TH-IDEM-01"],
        "A result of more than 64 KiB is not held under its key.",
        |config, components| {
            let limits = &config.limits;
            components.cache = Box::new(SmallCache {
                inner: FixedCache::new(limits.idempotency_entries_max, limits.idempotency_ttl_ms),
            });
        },
    ),
    outgoing(
        "crashes-empty-the-state",
        &["TH-STATE-01"],
        "A tool that crashes takes the state of the session with it.",
        |memory, reply| {
            if memory.asked.front().is_some_and(|request| has(request, "PEERPROOF.CRASH")) && !memory.run_mode
            {
                memory.run_after = Some(b"{\"aid\":\"AID.PEERPROOF.ANY.v1\",\"ds_state\":{}}".to_vec());
            }
            line(reply.to_vec())
        },
    ),
    incoming(
        "long-inputs-are-refused",
        &["TH-LIMIT-03"],
        "An input_json of more than 1 MiB is refused, however long a line may be.",
        |memory, request| {
            let is_long = !memory.run_mode
                && request.len() > INPUT_BYTES_MAX
                && value(request).is_some_and(|it| {
                    it.get("input_json")
                        .and_then(|input| input.as_str().map(str::len))
                        .is_some_and(|len| len > INPUT_BYTES_MAX)
                });
            refusing(is_long)
        },
    ),
];

struct SmallCache {
    inner: FixedCache,
}

impl Cache for SmallCache {
    fn lookup(&mut self, key: &Key, now: Millis) -> Option<&Entry> {
        self.inner.lookup(key, now)
    }

    fn insert(&mut self, key: Key, entry: Entry, now: Millis) {
        if entry.output.as_ref().is_none_or(|output| output.len() <= KEPT_BYTES_MAX) {
            self.inner.insert(key, entry, now);
        }
    }
}

/// Leases that are taken, where this says so of the token, of why it is refused, and of whether it was refused before.
struct Persuaded {
    inner: MemoryLeases,
    forgives: fn(&[u8], Rejection, bool) -> bool,
    refused: Mutex<BTreeSet<Vec<u8>>>,
}

impl LeaseTable for Persuaded {
    fn issue(&mut self, grant: Grant, now: Millis) -> Option<String> {
        self.inner.issue(grant, now)
    }

    fn check(&self, token: &[u8], aid: &str, tier: u8, now: Millis) -> Result<(), Rejection> {
        let Err(why) = self.inner.check(token, aid, tier, now) else { return Ok(()) };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = !refused.insert(token.to_vec());
        if (self.forgives)(token, why, is_known) { Ok(()) } else { Err(why) }
    }

    fn spend(&mut self, token: &[u8]) {
        self.inner.spend(token);
    }
}
