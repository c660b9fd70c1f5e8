//! Mutants with another configuration or component: limits, cache, leases, state.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::Mutant;
use crate::json::Text;
use crate::machine::Millis;
use crate::mutant::{config, parts};
use crate::toolhost::{
    Artifact, Cache, Components, Config, Entry, FixedCache, Grant, Key, LeaseTable, MemoryLeases,
    MemoryState, Mode, Rejection, Slots, StateChange, StateStore,
};

/// The mutants of these seams.
pub(super) const MUTANTS: &[Mutant] = &[
    config("nests-to-32", &["TH-JSON-05"], "More than 32 levels of nesting are refused.", |config| {
        config.limits.nesting_max = 32;
    }),
    config(
        "limit-one-too-low",
        &["TH-LIMIT-01", "TH-LIMIT-03"],
        "The limit of 10 MB is exclusive.",
        |config| {
            config.limits.stdin_bytes_max -= 1;
        },
    ),
    config(
        "limit-one-too-high",
        &["TH-LIMIT-02", "TH-LIMIT-05"],
        "One byte over 10 MB is accepted.",
        |config| {
            config.limits.stdin_bytes_max += 1;
        },
    ),
    config(
        "limit-of-ten-million",
        &["TH-LIMIT-01", "TH-LIMIT-03"],
        "The limit is 10,000,000 bytes.",
        |config| config.limits.stdin_bytes_max = 10_000_000,
    ),
    config("replies-without-limit", &["TH-LIMIT-07"], "Replies may have any size.", |config| {
        config.limits.reply_bytes_max = 64 * 1024 * 1024;
    }),
    config("replies-one-byte-over", &["TH-LIMIT-07"], "A reply may have 1,048,577 bytes.", |config| {
        config.limits.reply_bytes_max += 1;
    }),
    config("small-replies-only", &["TH-LIMIT-08"], "Results over 16 KiB are refused.", |config| {
        config.limits.reply_bytes_max = 16 * 1024;
    }),
    config("forgets-keys-early", &["TH-IDEM-04"], "Keys are held for 30 s.", |config| {
        config.limits.idempotency_ttl_ms = 30_000;
    }),
    config("holds-keys-for-ever", &["TH-IDEM-05"], "Keys are held for ten minutes.", |config| {
        config.limits.idempotency_ttl_ms = 600_000;
    }),
    config("holds-too-many-keys", &["TH-IDEM-07"], "A hundred thousand keys are held.", |config| {
        config.limits.idempotency_entries_max = 100_000;
    }),
    config("holds-too-few-keys", &["TH-IDEM-08"], "No more than 512 keys are held.", |config| {
        config.limits.idempotency_entries_max = 512;
    }),
    config(
        "leases-live-a-second",
        &["TH-LEASE-03"],
        "A lease expires after a second, whatever time was asked for.",
        |config| config.limits.lease_ttl_max_ms = config.limits.lease_ttl_min_ms,
    ),
    config("issues-no-lease", &["TH-LEASE-03"], "There is no room for a lease.", |config| {
        config.limits.lease_entries_max = 0;
    }),
    config(
        "enforces-leases-always",
        &["TH-LEASE-16"],
        "Leases are asked for without MACHINA_LEASE_ENFORCE.",
        |config| {
            config.lease_enforce = true;
        },
    ),
    config("empty-list-allows-none", &["TH-HTTP-01"], "An empty list of hosts allows none.", |config| {
        config.http_allowed_hosts.get_or_insert_with(|| "nobody.invalid".to_owned());
        if config.http_allowed_hosts.as_deref() == Some("") {
            config.http_allowed_hosts = Some("nobody.invalid".to_owned());
        }
    }),
    config(
        "first-host-only",
        &["TH-HTTP-02"],
        "Only the first entry of the list of hosts counts.",
        |config| {
            if let Some(list) = &mut config.http_allowed_hosts {
                *list = list.split(',').next().unwrap_or_default().to_owned();
            }
        },
    ),
    config("exact-hosts-not-read", &["TH-HTTP-02"], "Entries without `*` match nothing.", |config| {
        keep_hosts(config, |entry| entry.starts_with('*'));
    }),
    config("star-not-read", &["TH-HTTP-02"], "The entry `*` matches nothing.", |config| {
        keep_hosts(config, |entry| entry != "*");
    }),
    config(
        "keys-without-the-feature",
        &["TH-REQ-16"],
        "A peer without idempotency answers a key that comes again from a cache.",
        |_| {},
    )
    .without("idempotency"),
    config("ignores-host-list", &["TH-HTTP-03"], "The list of hosts is not looked at.", |config| {
        config.http_allowed_hosts = None;
    }),
    config(
        "wildcard-allows-all",
        &["TH-HTTP-04"],
        "Any entry with a wildcard allows every host.",
        |config| {
            if config.http_allowed_hosts.as_ref().is_some_and(|list| list.contains("*.")) {
                config.http_allowed_hosts = None;
            }
        },
    ),
    config("separators-allow-all", &["TH-HTTP-06"], "A list of separators only allows all.", |config| {
        if config.http_allowed_hosts.as_ref().is_some_and(|list| list.chars().all(|c| c == ',' || c == ' ')) {
            config.http_allowed_hosts = None;
        }
    }),
    config("empty-entry-allows-all", &["TH-HTTP-03"], "An empty entry matches every host.", |config| {
        let is_set = config.http_allowed_hosts.as_ref().filter(|list| !list.is_empty());
        if is_set.is_some_and(|list| list.split(',').any(str::is_empty)) {
            config.http_allowed_hosts = None;
        }
    }),
    config(
        "hosts-match-case",
        &["TH-HTTP-07"],
        "Entries of the list with capitals match nothing.",
        |config| {
            keep_hosts(config, |entry| !entry.chars().any(char::is_uppercase));
        },
    ),
    parts("no-cache", &["TH-IDEM-01", "TH-IDEM-02"], "No key is ever remembered.", |_, components| {
        components.cache = Box::new(NoCache);
    }),
    parts(
        "expired-keys-take-room",
        &["TH-IDEM-08"],
        "Keys that nobody asks for again stay, expired as they are, and where they are too many no other is held.",
        |config, components| {
            components.cache = Box::new(CrowdedCache {
                inner: FixedCache::new(usize::MAX, config.limits.idempotency_ttl_ms),
                entries_max: config.limits.idempotency_entries_max,
                held: 0,
            });
        },
    ),
    parts("sliding-keys", &["TH-IDEM-06"], "Every hit makes its key live anew.", |config, components| {
        components.cache = Box::new(SlidingCache {
            inner: FixedCache::new(config.limits.idempotency_entries_max, u64::MAX),
            ttl_ms: config.limits.idempotency_ttl_ms,
            seen: Vec::new(),
        });
    }),
    parts("tier-0-needs-lease", &["TH-LEASE-01"], "Tools of tier 0 need a lease.", |_, components| {
        for aid in ["AID.PEERPROOF.ECHO.v1", "AID.PEERPROOF.ANY.v1"] {
            if let Some(entry) = super::entry(components, aid) {
                entry.tier = 1;
            }
        }
    }),
    parts("takes-no-token", &["TH-LEASE-03"], "Every token is refused.", |config, components| {
        leases(config, components, |_, _| Err(Rejection::Unknown), Spending::Normal);
    }),
    parts(
        "takes-any-token",
        &["TH-LEASE-04"],
        "A token that was never issued is taken.",
        |config, components| {
            leases(
                config,
                components,
                |found, spent| if spent { found } else { found.or_else(forgive_unknown) },
                Spending::Normal,
            );
        },
    ),
    parts(
        "empty-token-opens",
        &["TH-LEASE-09"],
        "The empty string is a valid token.",
        |config, components| {
            leases(config, components, |found, _| found, Spending::EmptyOpens);
        },
    ),
    parts(
        "leases-never-expire",
        &["TH-LEASE-04", "TH-LEASE-05"],
        "An expired token is taken.",
        |config, components| {
            leases(
                config,
                components,
                |found, _| if found == Err(Rejection::Expired) { Ok(()) } else { found },
                Spending::Normal,
            );
        },
    ),
    parts("tokens-work-twice", &["TH-LEASE-06"], "A token is never spent.", |config, components| {
        leases(config, components, |found, _| found, Spending::Never);
    }),
    parts(
        "tokens-open-any-tool",
        &["TH-LEASE-07"],
        "A token opens tools it was not issued for.",
        |config, components| {
            leases(
                config,
                components,
                |found, _| if found == Err(Rejection::OtherTool) { Ok(()) } else { found },
                Spending::Normal,
            );
        },
    ),
    parts(
        "tokens-open-any-tier",
        &["TH-LEASE-08"],
        "A token of a lower tier opens a higher one.",
        |config, components| {
            leases(
                config,
                components,
                |found, _| if found == Err(Rejection::LowerTier) { Ok(()) } else { found },
                Spending::Normal,
            );
        },
    ),
    parts(
        "refusal-spends-token",
        &["TH-LEASE-10"],
        "A token refused for another tool is spent.",
        |config, components| {
            leases(config, components, |found, _| found, Spending::OnRefusal);
        },
    ),
    parts(
        "leases-live-half-their-time",
        &["TH-LEASE-03"],
        "A lease expires after half the time that was asked for.",
        |config, components| {
            let leases = OddLeases { grant: |grant| grant.ttl_ms /= 2, ..OddLeases::new(config) };
            components.leases = Box::new(leases);
        },
    ),
    parts(
        "forgets-spent-tokens",
        &["TH-LEASE-06"],
        "Only the last 1,000 spent tokens are remembered as such.",
        |config, components| {
            components.leases = Box::new(OddLeases { spent_max: 1_000, ..OddLeases::new(config) });
        },
    ),
    parts(
        "tokens-without-their-end",
        &["TH-LEASE-04"],
        "The last two characters of a token are not compared.",
        |config, components| {
            let is_same = |issued: &[u8], token: &[u8]| {
                issued.len() == token.len() && issued.iter().zip(token).rev().skip(2).all(|(a, b)| a == b)
            };
            components.leases = Box::new(OddLeases { is_same, ..OddLeases::new(config) });
        },
    ),
    parts(
        "tokens-without-their-middle",
        &["TH-LEASE-04"],
        "Only the first and last eight characters of a token are compared.",
        |config, components| {
            let is_same = |issued: &[u8], token: &[u8]| {
                issued.len() == token.len()
                    && issued.get(..8) == token.get(..8)
                    && issued.iter().zip(token).rev().take(8).all(|(a, b)| a == b)
            };
            components.leases = Box::new(OddLeases { is_same, ..OddLeases::new(config) });
        },
    ),
    parts(
        "removes-while-ascending",
        &["TH-STATE-04"],
        "Of `removed_slots` those behind a larger number are not removed.",
        |_, components| {
            state(components, |change| {
                let mut highest = 0;
                change.removed.retain(|slot| {
                    let ascends = *slot >= highest;
                    highest = highest.max(*slot);
                    ascends
                });
            });
        },
    ),
    parts(
        "deltas-replace",
        &["TH-STATE-02", "TH-STATE-05"],
        "A delta replaces the whole state.",
        |_, components| {
            state(components, |change| change.full = true);
        },
    ),
    parts(
        "full-states-merge",
        &["TH-STATE-03"],
        "A full state keeps the slots it does not name.",
        |_, components| {
            state(components, |change| change.full = false);
        },
    ),
    parts(
        "ignores-removals",
        &["TH-STATE-04"],
        "`removed_slots` of a request means nothing.",
        |_, components| {
            state(components, |change| change.removed.clear());
        },
    ),
    parts(
        "full-states-lose-a-slot",
        &["TH-STATE-05"],
        "A full state loses the last of several slots.",
        |_, components| {
            state(components, |change| {
                if change.full && change.set.len() > 1 {
                    change.set.pop();
                }
            });
        },
    ),
    parts(
        "empty-delta-clears",
        &["TH-STATE-06"],
        "A delta without `slots` empties the state.",
        |_, components| {
            state(components, |change| {
                if change.set.is_empty() {
                    change.full = true;
                }
            });
        },
    ),
    parts(
        "same-content-is-no-change",
        &["TH-STATE-02", "TH-STATE-15"],
        "An Artifact with the content of the one in its slot, but of another type or origin, is not stored.",
        |_, components| {
            components.state = Box::new(ContentOnly { inner: MemoryState::default() });
        },
    ),
    parts(
        "trims-content",
        &["TH-STATE-11"],
        "White space around a content_json is no part of it.",
        |_, components| {
            state(components, |change| relabel(change, |artifact| trim(&mut artifact.content_json)));
        },
    ),
    parts(
        "cuts-long-types",
        &["TH-STATE-11"],
        "Only the first 4,000 characters of a type are kept.",
        |_, components| {
            state(components, |change| relabel(change, |artifact| cut(&mut artifact.kind)));
        },
    ),
    parts(
        "tool-error-undoes-request",
        &["TH-STATE-17"],
        "A tool's failure undoes the request's own ds_state.",
        |_, components| {
            components.state =
                Box::new(Rewinding { inner: MemoryState::default(), before: Slots::default() });
        },
    ),
    parts(
        "run-mode-ignores-state",
        &["TH-STATE-19"],
        "In run mode the tool sees an empty state.",
        |config, components| {
            if matches!(config.mode, Mode::Run { .. }) {
                state(components, |change| {
                    change.set.clear();
                    change.full = true;
                });
            }
        },
    ),
];

/// Keeps only the entries of the host list for which `keep` returns true.
fn keep_hosts(config: &mut Config, keep: fn(&str) -> bool) {
    if let Some(list) = config.http_allowed_hosts.as_mut().filter(|list| !list.is_empty()) {
        let kept: Vec<&str> = list.split(',').filter(|entry| keep(entry.trim())).collect();
        *list = if kept.is_empty() { ",".to_owned() } else { kept.join(",") };
    }
}

fn forgive_unknown(rejection: Rejection) -> Result<(), Rejection> {
    if rejection == Rejection::Unknown { Ok(()) } else { Err(rejection) }
}

struct NoCache;

impl Cache for NoCache {
    fn lookup(&mut self, _: &Key, _: Millis) -> Option<&Entry> {
        None
    }

    fn insert(&mut self, _: Key, _: Entry, _: Millis) {}
}

struct CrowdedCache {
    inner: FixedCache,
    entries_max: usize,
    held: usize,
}

impl Cache for CrowdedCache {
    fn lookup(&mut self, key: &Key, now: Millis) -> Option<&Entry> {
        self.inner.lookup(key, now)
    }

    fn insert(&mut self, key: Key, entry: Entry, now: Millis) {
        if self.held < self.entries_max {
            self.held += 1;
            self.inner.insert(key, entry, now);
        }
    }
}

struct SlidingCache {
    inner: FixedCache,
    ttl_ms: u64,
    seen: Vec<(Key, Millis)>,
}

impl Cache for SlidingCache {
    fn lookup(&mut self, key: &Key, now: Millis) -> Option<&Entry> {
        let (_, last) = self.seen.iter_mut().find(|(known, _)| known == key)?;
        if now.saturating_sub(*last) >= self.ttl_ms {
            return None;
        }
        *last = now;
        self.inner.lookup(key, 0)
    }

    fn insert(&mut self, key: Key, entry: Entry, now: Millis) {
        self.seen.retain(|(known, _)| *known != key);
        self.seen.push((key.clone(), now));
        self.inner.insert(key, entry, 0);
    }
}

/// Time at which a mutant table spends tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Spending {
    Normal,
    Never,
    OnRefusal,
    /// As usual, but the empty token is always valid.
    EmptyOpens,
}

/// Replaces the correct table's answer. The flag is true if the token was spent.
type Verdict = fn(Result<(), Rejection>, bool) -> Result<(), Rejection>;

struct WrongLeases {
    inner: MemoryLeases,
    verdict: Verdict,
    spending: Spending,
    spent: Mutex<BTreeSet<Vec<u8>>>,
}

fn leases(config: &Config, components: &mut Components, verdict: Verdict, spending: Spending) {
    components.leases = Box::new(WrongLeases {
        inner: MemoryLeases::new(config.limits.lease_entries_max, config.token_seed),
        verdict,
        spending,
        spent: Mutex::default(),
    });
}

impl LeaseTable for WrongLeases {
    fn issue(&mut self, grant: Grant, now: Millis) -> Option<String> {
        self.inner.issue(grant, now)
    }

    fn check(&self, token: &[u8], aid: &str, tier: u8, now: Millis) -> Result<(), Rejection> {
        if token.is_empty() && self.spending == Spending::EmptyOpens {
            return Ok(());
        }
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if spent.contains(token) && self.spending == Spending::OnRefusal {
            return Err(Rejection::Unknown);
        }
        let found = self.inner.check(token, aid, tier, now);
        if matches!(found, Err(Rejection::OtherTool | Rejection::LowerTier))
            && self.spending == Spending::OnRefusal
        {
            spent.insert(token.to_vec());
        }
        (self.verdict)(found, spent.contains(token))
    }

    fn spend(&mut self, token: &[u8]) {
        if self.spending != Spending::Never {
            self.spent.lock().unwrap_or_else(PoisonError::into_inner).insert(token.to_vec());
            self.inner.spend(token);
        }
    }
}

/// A lease table with other grants and another comparison of tokens. It forgets spent tokens beyond a number.
struct OddLeases {
    inner: MemoryLeases,
    grant: fn(&mut Grant),
    is_same: fn(&[u8], &[u8]) -> bool,
    issued: Vec<Vec<u8>>,
    spent: VecDeque<Vec<u8>>,
    spent_max: usize,
}

impl OddLeases {
    fn new(config: &Config) -> Self {
        Self {
            inner: MemoryLeases::new(usize::MAX, config.token_seed),
            grant: |_| {},
            is_same: |issued, token| issued == token,
            issued: Vec::new(),
            spent: VecDeque::new(),
            spent_max: usize::MAX,
        }
    }

    /// Issued token that counts as equal to `token`.
    fn taken<'a>(&'a self, token: &'a [u8]) -> &'a [u8] {
        self.issued.iter().find(|issued| (self.is_same)(issued, token)).map_or(token, Vec::as_slice)
    }
}

impl LeaseTable for OddLeases {
    fn issue(&mut self, mut grant: Grant, now: Millis) -> Option<String> {
        (self.grant)(&mut grant);
        let token = self.inner.issue(grant, now)?;
        self.issued.push(token.clone().into_bytes());
        Some(token)
    }

    fn check(&self, token: &[u8], aid: &str, tier: u8, now: Millis) -> Result<(), Rejection> {
        let token = self.taken(token);
        let is_spent = self.spent.iter().any(|spent| spent == token);
        if is_spent { Err(Rejection::Unknown) } else { self.inner.check(token, aid, tier, now) }
    }

    fn spend(&mut self, token: &[u8]) {
        let token = self.taken(token).to_vec();
        self.spent.push_back(token);
        if self.spent.len() > self.spent_max {
            self.spent.pop_front();
        }
    }
}

struct WrongState {
    inner: MemoryState,
    change: fn(&mut StateChange),
}

fn state(components: &mut Components, change: fn(&mut StateChange)) {
    components.state = Box::new(WrongState { inner: MemoryState::default(), change });
}

impl StateStore for WrongState {
    fn slots(&self) -> &Slots {
        self.inner.slots()
    }

    fn apply(&mut self, change: &StateChange) {
        let mut change = change.clone();
        (self.change)(&mut change);
        self.inner.apply(&change);
    }

    fn put(&mut self, slot: usize, artifact: Arc<Artifact>) {
        self.inner.put(slot, artifact);
    }

    fn remove(&mut self, slot: usize) {
        self.inner.remove(slot);
    }

    fn restore(&mut self, slots: Slots) {
        self.inner.restore(slots);
    }
}

/// Edits every artifact that a request sets.
fn relabel(change: &mut StateChange, edit: fn(&mut Artifact)) {
    for (_, artifact) in &mut change.set {
        edit(Arc::make_mut(artifact));
    }
}

fn trim(text: &mut Text) {
    *text = text.to_lossy().trim().to_owned().into();
}

fn cut(text: &mut Text) {
    *text = text.to_lossy().chars().take(4_000).collect::<String>().into();
}

struct ContentOnly {
    inner: MemoryState,
}

impl ContentOnly {
    /// Artifact in the slot, if it has the content of `new`.
    fn held(&self, slot: usize, new: &Artifact) -> Option<Arc<Artifact>> {
        let held = self.inner.slots().get(slot)?.as_ref()?;
        (held.content_json == new.content_json).then(|| Arc::clone(held))
    }
}

impl StateStore for ContentOnly {
    fn slots(&self) -> &Slots {
        self.inner.slots()
    }

    fn apply(&mut self, change: &StateChange) {
        let mut change = change.clone();
        for (slot, artifact) in &mut change.set {
            if let Some(held) = self.held(*slot, artifact) {
                *artifact = held;
            }
        }
        self.inner.apply(&change);
    }

    fn put(&mut self, slot: usize, artifact: Arc<Artifact>) {
        if self.held(slot, &artifact).is_none() {
            self.inner.put(slot, artifact);
        }
    }

    fn remove(&mut self, slot: usize) {
        self.inner.remove(slot);
    }

    fn restore(&mut self, slots: Slots) {
        self.inner.restore(slots);
    }
}

struct Rewinding {
    inner: MemoryState,
    before: Slots,
}

impl StateStore for Rewinding {
    fn slots(&self) -> &Slots {
        self.inner.slots()
    }

    fn apply(&mut self, change: &StateChange) {
        self.before = self.inner.slots().clone();
        self.inner.apply(change);
    }

    fn put(&mut self, slot: usize, artifact: Arc<Artifact>) {
        self.inner.put(slot, artifact);
    }

    fn remove(&mut self, slot: usize) {
        self.inner.remove(slot);
    }

    fn restore(&mut self, _: Slots) {
        self.inner.restore(self.before.clone());
    }
}
