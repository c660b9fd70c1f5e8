//! Capacity and life of the store of keys.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::relation::Relation;
use super::super::super::talk::{Talk, quoted};
use super::{FEATURE, batch, first, hit, id, keyed, wait};

/// Number of keys that must be held at once (`ipc` §7 `IDEMP_MAX_ENTRIES`).
const KEYS_MAX: u64 = 1_024;

/// Requests per write.
const WINDOW: u64 = 64;

pub(super) fn checks() -> Vec<Check> {
    vec![
        all_held(),
        one_too_many(),
        held_to_the_end(),
        forgotten_after(),
        time_does_not_slide(),
        expired_make_room(),
        behind_many_requests(),
    ]
}

/// Sends keyed requests in windows, in the order of `keys`.
fn pipelined(talk: &mut Talk<'_>, keys: &[u64], expect: impl Fn(u64) -> Expect) -> Vec<usize> {
    let mut steps = Vec::new();
    for window in keys.chunks(WINDOW as usize) {
        let payload = batch(talk, window.iter().copied());
        talk.send_all(payload, Chunking::Whole, window.iter().map(|key| expect(*key)).collect());
        steps.push(talk.at());
    }
    steps
}

fn all_held() -> Check {
    Check::new(
        id("as-many-keys-as-are-held"),
        "Each of 1,024 live keys hits, from the first to the last.",
        ["TH-IDEM-08"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let keys: Vec<u64> = (1..=KEYS_MAX).collect();
            pipelined(&mut talk, &keys, |key| first("TH-IDEM-08", key));
            pipelined(&mut talk, &keys, |key| hit("TH-IDEM-08", key));
            talk.count("TH-IDEM-08", KEYS_MAX + 1);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn one_too_many() -> Check {
    Check::new(
        id("one-key-more-than-is-held"),
        "After 1,025 live keys at least one of them runs the tool again.",
        ["TH-IDEM-07", "TH-IDEM-09"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let mut keys: Vec<u64> = (1..=KEYS_MAX + 1).collect();
            pipelined(&mut talk, &keys, |key| first("TH-IDEM-07", key));
            // The order is from newest to oldest, so that a key that is stored again does not push out one that is
            // still to be tested.
            keys.reverse();
            let oldest = keys.pop();
            let again = |key| {
                Expect::new("TH-IDEM-07", Allowed::count(key).hit(true))
                    .or(Allowed::of(Outcome::Ok).hit(false))
            };
            let mut steps = pipelined(&mut talk, &keys, again);
            steps.extend(pipelined(&mut talk, oldest.as_slice(), again));
            talk.relate(Relation::SomeRanAgain {
                clause: "TH-IDEM-07".into(),
                oldest: talk.at(),
                steps,
                choice: "keys_given_up".to_owned(),
            });
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn held_to_the_end() -> Check {
    Check::new(
        id("repeat-just-before-the-ttl"),
        "59.5 s after its first request a key still hits.",
        ["TH-IDEM-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-IDEM-04");
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-04", 1));
            let began = talk.at();
            wait(&mut talk, 59_400);
            let again =
                Expect::new("TH-IDEM-04", Allowed::count(1).hit(true)).or(Allowed::count(2).hit(false));
            talk.send(keyed(&talk, "k").line(), again);
            holds_since(&mut talk, "TH-IDEM-04", began);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
    .slow()
}

/// Demands that a key first used at step `began` still hits in the last step, unless that came after more than 59.5 s.
fn holds_since(talk: &mut Talk<'_>, clause: &str, began: usize) {
    let again = talk.at();
    talk.relate(Relation::HeldFor { clause: clause.into(), first: began, again, ms: 59_500 });
}

fn forgotten_after() -> Check {
    Check::new(
        id("repeat-just-after-the-ttl"),
        "60.5 s after its first reply a key is forgotten and the tool runs again.",
        ["TH-IDEM-05"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-05", 1));
            wait(&mut talk, 60_500);
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-05", 2));
            talk.send(keyed(&talk, "k").line(), hit("TH-IDEM-05", 2));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
    .slow()
}

fn time_does_not_slide() -> Check {
    Check::new(
        id("hits-before-the-ttl"),
        "Hits do not keep a key alive beyond 60.5 s after its first reply.",
        ["TH-IDEM-06"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-06", 1));
            wait(&mut talk, 20_000);
            talk.send(keyed(&talk, "k").line(), hit("TH-IDEM-06", 1));
            wait(&mut talk, 20_000);
            talk.send(keyed(&talk, "k").line(), hit("TH-IDEM-06", 1));
            wait(&mut talk, 20_500);
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-06", 2));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
    .slow()
}

fn expired_make_room() -> Check {
    Check::new(
        id("as-many-keys-after-as-many-expired"),
        "After 1,024 keys have expired, 1,024 other keys all hit.",
        ["TH-IDEM-08"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let expired: Vec<u64> = (1..=KEYS_MAX).collect();
            let keys: Vec<u64> = (KEYS_MAX + 1..=2 * KEYS_MAX).collect();
            pipelined(&mut talk, &expired, |key| first("TH-IDEM-08", key));
            wait(&mut talk, 60_500);
            pipelined(&mut talk, &keys, |key| first("TH-IDEM-08", key));
            pipelined(&mut talk, &keys, |key| hit("TH-IDEM-08", key));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
    .slow()
}

/// Creates a check with requests that take no room: those without a key, and those without an execution.
fn behind_many_requests() -> Check {
    /// Number of requests of each kind.
    const EACH: u64 = 10_000;
    Check::new(
        id("repeat-behind-20000-requests-without-a-key"),
        "A key still hits after 10,000 requests without a key and 10,000 refused ones with other keys.",
        ["TH-IDEM-08"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, "held").line(), first("TH-IDEM-08", 1));
            let began = talk.at();
            let bare = format!("{{\"aid\":{},\"input_json\":\"{{}}\"}}\n", quoted(&talk.role("counter").aid));
            for window in 0..EACH / WINDOW {
                let (mut lines, mut expects) = (String::new(), Vec::new());
                for at in window * WINDOW..(window + 1) * WINDOW {
                    lines.push_str(&bare);
                    lines.push_str(&format!(
                        "{{\"aid\":\"AID.PEERPROOF.NO_SUCH_TOOL.v1\",\"idempotency_key\":\"other-{at}\"}}\n"
                    ));
                    let ran = Expect::new("TH-IDEM-08", Allowed::of(Outcome::Ok).hit(false));
                    expects.extend([ran, Expect::refused("TH-IDEM-08")]);
                }
                talk.send_all(Payload::text(lines), Chunking::Whole, expects);
            }
            let again = Expect::new("TH-IDEM-08", Allowed::count(1).hit(true))
                .or(Allowed::of(Outcome::Ok).hit(false));
            talk.send(keyed(&talk, "held").line(), again);
            holds_since(&mut talk, "TH-IDEM-08", began);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}
