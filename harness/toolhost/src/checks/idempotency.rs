//! Idempotency keys: the answers to repeated requests.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking};

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::relation::Relation;
use super::super::talk::{Request, Talk, quoted};
use super::super::talk_state::{delta, full, note, put_input};

mod key_store;

/// Feature of this topic.
const FEATURE: &str = "idempotency";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        repeat_of_a_success(),
        repeats_among_others(),
        repeat_in_one_write(),
        repeat_of_a_read(),
        repeat_of_a_write(),
        hit_not_claimed_elsewhere(),
        other_aid("counter-after-echo", "echo", "counter"),
        other_aid("echo-after-counter", "counter", "echo"),
        other_input(),
        empty_key(),
        refused_unknown_aid(),
        refused_once("input-of-wrong-type", |request| request.member("input_json", "5")),
        refused_once("state-of-wrong-type", |request| request.input("{}").state("5"))
            .also_feature("ds_state"),
        refused_once("state-with-bad-slot", |request| request.input("{}").state("{\"slots\":{\"9\":{}}}"))
            .also_feature("ds_state"),
        refused_once("token-of-wrong-type", |request| request.input("{}").member("_lease_token", "5"))
            .also_feature("lease"),
        refused_repeats(),
        large_result(),
        keys_that_objects_have(),
        tool_error(),
        state_of_a_hit(),
        hit_with_own_state(),
        same_key_escaped(),
        key_in_capitals(),
    ];
    checks.extend(DIFFERENT_KEYS.iter().map(different_keys));
    checks.push(long_keys());
    checks.push(near_misses_of_a_key());
    checks.push(state_of_a_hit_that_wrote());
    checks.extend(key_store::checks());
    checks
}

fn id(name: &str) -> String {
    format!("toolhost/serve/idempotency/{name}")
}

/// A counter request with a key.
fn keyed(talk: &Talk<'_>, key: &str) -> Request {
    talk.ask("counter", "{}").key(key)
}

fn first(clause: &str, count: u64) -> Expect {
    Expect::new(clause, Allowed::count(count).hit(false))
}

fn hit(clause: &str, count: u64) -> Expect {
    Expect::new(clause, Allowed::count(count).hit(true))
}

fn repeat_of_a_success() -> Check {
    Check::new(
        id("repeat-of-a-success"),
        "A request repeated with its key is answered with the first result and idempotent_hit:true.",
        ["TH-IDEM-01"],
        "serve",
        |facts, rng| {
            let mut talk = Talk::serve(facts);
            let input = format!("{{\"nonce\":{},\"text\":\"é\\n\\\"\"}}", rng.below(1 << 30));
            let request = talk.ask("echo", &input).key("peerproof-echo");
            talk.send(request.line(), Expect::new("TH-IDEM-01", Allowed::output(input.as_str()).hit(false)));
            let of = talk.at();
            talk.send(request.line(), Expect::new("TH-IDEM-01", Allowed::output(input.as_str()).hit(true)));
            let step = talk.at();
            talk.relate(Relation::SameResult { clause: "TH-IDEM-01".into(), step, of });
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["echo"])
}

fn repeats_among_others() -> Check {
    Check::new(
        id("repeats-among-other-requests"),
        "A tool runs once for a key, however often the key is repeated, and between any other requests.",
        ["TH-IDEM-01", "TH-IDEM-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, "a").line(), first("TH-IDEM-01", 1));
            talk.send(keyed(&talk, "a").line(), hit("TH-IDEM-01", 1));
            talk.count("TH-IDEM-02", 2);
            talk.send(keyed(&talk, "b").line(), first("TH-IDEM-02", 3));
            talk.send(keyed(&talk, "a").line(), hit("TH-IDEM-01", 1));
            talk.send(keyed(&talk, "b").line(), hit("TH-IDEM-01", 3));
            talk.send(keyed(&talk, "a").line(), hit("TH-IDEM-01", 1));
            talk.count("TH-IDEM-02", 4);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn repeat_in_one_write() -> Check {
    Check::new(
        id("repeat-in-the-same-write"),
        "Of two requests with one key that arrive together the second is a hit.",
        ["TH-IDEM-01", "TH-IDEM-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let both = keyed(&talk, "a").line().then(keyed(&talk, "a").line());
            talk.send_all(both, Chunking::Whole, vec![first("TH-IDEM-01", 1), hit("TH-IDEM-01", 1)]);
            talk.count("TH-IDEM-02", 2);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn repeat_of_a_read() -> Check {
    Check::new(
        id("repeat-of-a-read-after-a-write"),
        "A keyed read that is repeated after the slot changed is answered with the first value.",
        ["TH-IDEM-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (before, after) = (note("before"), note("after"));
            let read = talk.ask("get", "{\"slot\":0}").key("read");
            let got = super::super::talk_state::got;
            talk.put("TH-IDEM-01", 0, &before);
            talk.send(read.line(), Expect::new("TH-IDEM-01", got(Some(&before)).hit(false)));
            talk.put("TH-IDEM-01", 0, &after);
            talk.send(read.line(), Expect::new("TH-IDEM-01", got(Some(&before)).hit(true)));
            talk.get_is("TH-IDEM-01", 0, Some(&after));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .roles(&["put", "get"])
}

fn repeat_of_a_write() -> Check {
    Check::new(
        id("repeat-of-a-write-after-another"),
        "A keyed write repeated after another write does not write again.",
        ["TH-IDEM-01", "TH-IDEM-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (keyed, later) = (note("keyed"), note("later"));
            let write = talk.ask("put", &put_input(0, &keyed)).key("write");
            talk.send(write.line(), Expect::new("TH-IDEM-01", Allowed::of(Outcome::Ok).hit(false)));
            talk.put("TH-IDEM-02", 0, &later);
            talk.send(write.line(), Expect::new("TH-IDEM-01", Allowed::of(Outcome::Ok).hit(true)));
            talk.get_is("TH-IDEM-02", 0, Some(&later));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .roles(&["put", "get"])
}

fn hit_not_claimed_elsewhere() -> Check {
    Check::new(
        id("replies-that-are-no-hit"),
        "A first execution, a request without a key and a refused request are not marked as hits.",
        ["TH-IDEM-03"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, "a").line(), first("TH-IDEM-03", 1));
            talk.count("TH-IDEM-03", 2);
            talk.count("TH-IDEM-03", 3);
            let refused = Expect::new("TH-IDEM-03", Allowed::of(Outcome::Refused).hit(false));
            let malformed = Request::aid(&talk.role("counter").aid).member("input_json", "5").key("a");
            talk.send(malformed.line(), refused.clone());
            let unknown = Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}").key("b");
            talk.send(unknown.line(), refused.clone());
            talk.send(unknown.line(), refused);
            talk.send(keyed(&talk, "c").line(), first("TH-IDEM-03", 4));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn other_aid(name: &str, before: &'static str, after: &'static str) -> Check {
    Check::new(
        id(&format!("same-key-other-aid-{name}")),
        "A key that is repeated with another aid and the same input never returns the first tool's result.",
        ["TH-IDEM-10"],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            // With another input the key might be refused for that reason.
            let own = |role: &str| {
                let allowed = if role == "echo" { Allowed::output("{}") } else { Allowed::count(1) };
                Expect::new("TH-IDEM-10", allowed.hit(false))
            };
            talk.send(talk.ask(before, "{}").key("k").line(), own(before));
            let expect = own(after).or(Allowed::of(Outcome::Refused).hit(false));
            talk.send(talk.ask(after, "{}").key("k").line(), expect.reason("other_tools_result"));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter", "echo"])
}

fn other_input() -> Check {
    Check::new(
        id("same-key-other-input"),
        "A key that is repeated with another input returns the first result or is refused.",
        ["TH-IDEM-11"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (one, two) = ("{\"n\":1}", "{\"n\":2}");
            let request = talk.ask("echo", one).key("k");
            talk.send(request.line(), Expect::new("TH-IDEM-11", Allowed::output(one).hit(false)));
            let expect = Expect::new("TH-IDEM-11", Allowed::output(one).hit(true).shows("first"))
                .or(Allowed::of(Outcome::Refused).shows("refuse"))
                .choice("same_key_other_input");
            talk.send(talk.ask("echo", two).key("k").line(), expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["echo"])
}

fn empty_key() -> Check {
    Check::new(
        id("empty-key"),
        "Two requests with the empty string as key both run.",
        ["TH-IDEM-12"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, "").line(), first("TH-IDEM-12", 1));
            talk.send(keyed(&talk, "").line(), first("TH-IDEM-12", 2));
            talk.count("TH-IDEM-12", 3);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn refused_unknown_aid() -> Check {
    Check::new(
        id("key-first-sent-with-unknown-aid"),
        "A key first sent with an unknown aid runs the tool when the good request comes.",
        ["TH-IDEM-13"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let unknown = Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}").key("k");
            talk.send(unknown.line(), Expect::refused("TH-IDEM-13"));
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-13", 1));
            talk.send(keyed(&talk, "k").line(), hit("TH-IDEM-13", 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn refused_once(name: &str, spoil: fn(Request) -> Request) -> Check {
    Check::new(
        id(&format!("key-first-sent-with-{name}")),
        "A key first sent with a malformed request runs the tool when the good request comes.",
        ["TH-IDEM-13"],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = spoil(Request::aid(&talk.role("counter").aid).key("k"));
            talk.send(request.line(), Expect::refused("TH-IDEM-13"));
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-13", 1));
            talk.send(keyed(&talk, "k").line(), hit("TH-IDEM-13", 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

/// A refused request leaves the cache as it was.
fn refused_repeats() -> Check {
    const CLAUSE: &str = "TH-IDEM-13";
    Check::new(
        id("held-key-sent-with-refused-requests"),
        "A live key still hits after refused requests with that key, and after a line that is not JSON.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, "k").line(), first(CLAUSE, 1));
            let malformed = Request::aid(&talk.role("counter").aid).member("input_json", "5").key("k");
            let unknown = Request::aid("AID.PEERPROOF.NO_SUCH_TOOL.v1").input("{}").key("k");
            for refused in [malformed.line(), unknown.line(), Payload::text("no JSON\n")] {
                talk.send(refused, Expect::refused(CLAUSE));
                talk.send(keyed(&talk, "k").line(), hit(CLAUSE, 1));
            }
            talk.count(CLAUSE, 2);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn large_result() -> Check {
    const CLAUSE: &str = "TH-IDEM-01";
    Check::new(
        id("repeat-of-a-large-result"),
        "A result of 300,000 bytes is cached under its key like a small one.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = talk.ask("blob", "{\"bytes\":300000}").key("large");
            talk.send(request.line(), Expect::new(CLAUSE, Allowed::of(Outcome::Ok).hit(false)));
            let of = talk.at();
            talk.send(request.line(), Expect::new(CLAUSE, Allowed::of(Outcome::Ok).hit(true)));
            let step = talk.at();
            talk.relate(Relation::SameResult { clause: CLAUSE.into(), step, of });
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "blob"])
}

fn keys_that_objects_have() -> Check {
    const CLAUSE: &str = "TH-IDEM-18";
    Check::new(
        id("keys-that-objects-have"),
        "A key that is a member of every object in some languages works like any other: the first request \
         runs the tool, the next one hits.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let keys = ["__proto__", "constructor", "toString", "hasOwnProperty", "__class__"];
            for (count, key) in (1..).zip(keys) {
                talk.send(keyed(&talk, key).line(), first(CLAUSE, count));
                talk.send(keyed(&talk, key).line(), hit(CLAUSE, count));
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn tool_error() -> Check {
    Check::new(
        id("repeat-of-a-tool-error"),
        "The result of a tool that failed is cached under its key or not, and is TOOL_ERROR again either way.",
        ["TH-IDEM-14"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = talk.ask("fail", "{\"message\":\"on purpose\"}").key("k");
            let failed = || Allowed::of(Outcome::ToolError);
            talk.send(request.line(), Expect::new("TH-IDEM-14", failed().hit(false)));
            let of = talk.at();
            let expect = Expect::new("TH-IDEM-14", failed().hit(true).shows("true"))
                .or(failed().hit(false).shows("false"))
                .choice("tool_error_cached");
            talk.send(request.line(), expect);
            let step = talk.at();
            talk.relate(Relation::SameResult { clause: "TH-IDEM-14".into(), step, of });
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["fail"])
}

fn state_of_a_hit() -> Check {
    Check::new(
        id("state-in-the-reply-of-a-hit"),
        "The ds_state of a hit is an empty delta or repeats the first one, and never reads as a full state.",
        ["TH-IDEM-15", "TH-IDEM-16"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let request = keyed(&talk, "count");
            hit_state(&mut talk, &request);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn state_of_a_hit_that_wrote() -> Check {
    Check::new(
        id("state-in-the-reply-of-a-hit-that-wrote"),
        "The ds_state of a repeated write or read is an empty delta or the first one, and never reads as a full state.",
        ["TH-IDEM-15", "TH-IDEM-16"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let write = talk.ask("put", &put_input(3, &note("keyed"))).key("write");
            let read = talk.ask("get", "{\"slot\":3}").key("read");
            hit_state(&mut talk, &write);
            hit_state(&mut talk, &read);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .roles(&["put", "get"])
}

/// Sends a request with a key twice and checks the state in the second reply.
fn hit_state(talk: &mut Talk<'_>, request: &Request) {
    let ok = |hit| Expect::new("TH-IDEM-15", Allowed::of(Outcome::Ok).hit(hit));
    talk.send(request.line(), ok(false));
    let of = talk.at();
    talk.send(request.line(), ok(true));
    let step = talk.at();
    talk.relate(Relation::HitState { clause: "TH-IDEM-15".into(), full: "TH-IDEM-16".into(), step, of });
}

fn hit_with_own_state() -> Check {
    Check::new(
        id("state-in-the-request-of-a-hit"),
        "The ds_state that comes with a hit is applied as a whole or not at all.",
        ["TH-IDEM-17"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (before, after) = (note("before"), note("after"));
            talk.apply("TH-IDEM-17", &full(&[(0, &before)]));
            talk.send(keyed(&talk, "k").line(), first("TH-IDEM-17", 1));
            let repeat = keyed(&talk, "k").state(&delta(&[(1, &after)], &[0]));
            talk.send(repeat.line(), hit("TH-IDEM-17", 1));
            let got = super::super::talk_state::got;
            for (slot, unapplied, applied) in [(0, Some(&before), None), (1, None, Some(&after))] {
                let expect = Expect::new("TH-IDEM-17", got(applied).shows("true"))
                    .or(got(unapplied).shows("false"))
                    .choice("hit_applies_state");
                talk.get(slot, expect);
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .also_feature("ds_state")
    .roles(&["counter", "get"])
}

fn same_key_escaped() -> Check {
    Check::new(
        id("same-key-written-with-escapes"),
        "A key that is written with other escapes is the same key.",
        ["TH-IDEM-18"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let spelled = |talk: &Talk<'_>, key: &str| {
                Request::aid(&talk.role("counter").aid).input("{}").member("idempotency_key", key).line()
            };
            talk.send(spelled(&talk, "\"kéy/1\""), first("TH-IDEM-18", 1));
            talk.send(spelled(&talk, "\"k\\u00e9y\\/1\""), hit("TH-IDEM-18", 1));
            talk.send(spelled(&talk, "\"\\u006b\\u00E9\\u0079\\u002f\\u0031\""), hit("TH-IDEM-18", 1));
            talk.count("TH-IDEM-18", 2);
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn key_in_capitals() -> Check {
    const CLAUSE: &str = "TH-REQ-10";
    Check::new(
        id("member-in-capitals"),
        "A member `IDEMPOTENCY_KEY` or `Idempotency_Key` is unknown: the tool runs each time.",
        [CLAUSE],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for (name, ran) in [("IDEMPOTENCY_KEY", [1, 2]), ("Idempotency_Key", [3, 4])] {
                for count in ran {
                    let request = talk.ask("counter", "{}").member(name, quoted(name));
                    talk.send(request.line(), first(CLAUSE, count));
                }
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

/// Pairs of different keys: name of the difference, both keys.
const DIFFERENT_KEYS: &[(&str, &str, &str)] = &[
    ("in-case", "request-A", "request-a"),
    ("in-a-trailing-space", "request", "request "),
    ("in-a-leading-space", "request", " request"),
    ("after-a-nul", "request\0a", "request\0b"),
    ("by-a-trailing-nul", "request", "request\0"),
    ("in-normal-form", "caf\u{e9}", "cafe\u{301}"),
    ("beyond-the-basic-plane", "k\u{1F600}", "k\u{1F601}"),
    ("by-looking-like-a-number", "1", "01"),
];

fn different_keys((name, one, other): &'static (&'static str, &'static str, &'static str)) -> Check {
    Check::new(
        id(&format!("keys-that-differ-{name}")),
        "Two keys that are different strings run the tool twice.",
        ["TH-IDEM-18"],
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, one).line(), first("TH-IDEM-18", 1));
            talk.send(keyed(&talk, other).line(), first("TH-IDEM-18", 2));
            talk.send(keyed(&talk, one).line(), hit("TH-IDEM-18", 1));
            talk.send(keyed(&talk, other).line(), hit("TH-IDEM-18", 2));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn near_misses_of_a_key() -> Check {
    const CLAUSE: &str = "TH-IDEM-18";
    Check::new(
        id("near-misses-of-a-key"),
        "Keys that are cut, longer, padded, encoded or written with look-alikes do not hit an earlier key.",
        [CLAUSE],
        "serve",
        |facts, _| {
            const KEY: &str = "Peerproof-key+1/0==";
            let mut talk = Talk::serve(facts);
            talk.send(keyed(&talk, KEY).line(), first(CLAUSE, 1));
            // A near miss that hits returns the first result. The count of later executions is then off by one.
            for miss in near_misses(KEY) {
                let ran = Allowed::of(Outcome::Ok).hit(false);
                talk.send(keyed(&talk, &miss.text).line(), Expect::new(CLAUSE, ran));
            }
            talk.send(keyed(&talk, KEY).line(), hit(CLAUSE, 1));
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

fn long_keys() -> Check {
    Check::new(
        id("keys-that-differ-after-many-characters"),
        "Long keys that differ only in their last character run the tool twice.",
        ["TH-IDEM-18"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let mut count = 0;
            for length in [64, 255, 1_000, 70_000] {
                let long = |talk: &Talk<'_>, last: &str| {
                    let key =
                        Payload::text("\"").repeat("k", length).then(Payload::text(format!("{last}\"")));
                    Request::aid(&talk.role("counter").aid).input("{}").payload("idempotency_key", key).line()
                };
                talk.send(long(&talk, "a"), first("TH-IDEM-18", count + 1));
                talk.send(long(&talk, "b"), first("TH-IDEM-18", count + 2));
                talk.send(long(&talk, "a"), hit("TH-IDEM-18", count + 1));
                talk.send(long(&talk, "b"), hit("TH-IDEM-18", count + 2));
                count += 2;
            }
            Ok(talk.canary().finish().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["counter"])
}

/// Waits for a time that the contract defines.
fn wait(talk: &mut Talk<'_>, ms: u64) {
    talk.act(Act::Wait { ms });
}

/// Several keyed counter requests as one payload.
fn batch(talk: &Talk<'_>, keys: impl Iterator<Item = u64>) -> Payload {
    let aid = quoted(&talk.role("counter").aid);
    let mut lines = String::new();
    for key in keys {
        lines.push_str(&format!(
            "{{\"aid\":{aid},\"input_json\":\"{{}}\",\"idempotency_key\":\"key-{key}\"}}\n"
        ));
    }
    Payload::text(lines)
}
