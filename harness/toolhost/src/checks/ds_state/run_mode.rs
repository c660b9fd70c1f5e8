//! State in run mode: one request sends the full state, one reply returns it.

use peerproof_engine::data::check::Check;

use super::super::super::expect::{Allowed, Expect, Outcome};
use super::super::super::talk::{Request, Talk};
use super::super::super::talk_state::{Artifact, delta, full, got, note, put_input, whole_state};
use super::{FEATURE, run_id};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = vec![
        tool_sees_state(),
        nothing_sent(),
        untouched(),
        written(),
        removed(),
        failed(),
        content(),
        delta_in_run_mode(),
        wrong_size(),
    ];
    for (name, clause, state) in REFUSED {
        checks.push(refused(name, clause, state));
    }
    checks
}

/// Runs the tool of a role in a run-mode process.
fn run(talk: &mut Talk<'_>, role: &str, input: &str, state: &str, expect: Expect) {
    let aid = talk.role(role).aid;
    let body = Request::empty().input(input).state(state).body();
    talk.run(&aid, body, &[], expect);
}

fn tool_sees_state() -> Check {
    const CLAUSE: &str = "TH-STATE-19";
    Check::new(
        run_id("slot-read-by-a-tool"),
        "A tool in run mode sees the state from the request.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (a, b) = (note("a"), note("b"));
            let state = full(&[(0, &a), (7, &b)]);
            for (slot, held) in [(0, Some(&a)), (7, Some(&b)), (3, None)] {
                run(
                    &mut talk,
                    "get",
                    &format!("{{\"slot\":{slot}}}"),
                    &state,
                    Expect::new(CLAUSE, got(held)),
                );
            }
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn nothing_sent() -> Check {
    const CLAUSE: &str = "TH-STATE-06";
    Check::new(
        run_id("state-without-slots"),
        "A run whose state has no `slots` starts with the empty state.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            run(&mut talk, "get", "{\"slot\":0}", "{}", Expect::new(CLAUSE, got(None)));
            run(&mut talk, "get", "{\"slot\":0}", "{\"slots\":{}}", Expect::new(CLAUSE, got(None)));
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn untouched() -> Check {
    const CLAUSE: &str = "TH-STATE-20";
    Check::new(
        run_id("state-that-the-tool-leaves-alone"),
        "The reply of a run contains every slot of the request that the tool did not change.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (a, b) = (note("a"), note("b"));
            let state = [(0, &a), (4, &b), (7, &a)];
            let expect = Expect::new(CLAUSE, whole_state(&state));
            run(&mut talk, "get", "{\"slot\":4}", &full(&state), expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn written() -> Check {
    const CLAUSE: &str = "TH-STATE-20";
    Check::new(
        run_id("state-that-the-tool-writes-to"),
        "The reply of a run contains the slots that the tool wrote and the slots that it did not change.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (a, b) = (note("a"), note("b"));
            let state = full(&[(0, &a), (1, &a)]);
            let expect = Expect::new(CLAUSE, whole_state(&[(0, &a), (1, &b)]));
            run(&mut talk, "put", &put_input(1, &b), &state, expect);
            let expect = Expect::new(CLAUSE, whole_state(&[(0, &a), (1, &a), (5, &b)]));
            run(&mut talk, "put", &put_input(5, &b), &state, expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "put"])
}

fn removed() -> Check {
    const CLAUSE: &str = "TH-STATE-20";
    Check::new(
        run_id("state-that-the-tool-removes-from"),
        "The reply of a run contains no slot that the tool emptied.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let a = note("a");
            let expect = Expect::new(CLAUSE, whole_state(&[(1, &a)]));
            run(&mut talk, "remove", "{\"slot\":0}", &full(&[(0, &a), (1, &a)]), expect);
            let expect = Expect::new(CLAUSE, whole_state(&[]));
            run(&mut talk, "remove", "{\"slot\":0}", &full(&[(0, &a)]), expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "remove"])
}

fn failed() -> Check {
    const CLAUSE: &str = "TH-STATE-20";
    Check::new(
        run_id("state-of-a-run-whose-tool-fails"),
        "If the reply of a run that ends in TOOL_ERROR has a state, it is the whole state.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let a = note("a");
            let kept = Allowed { outcome: Outcome::ToolError, ..whole_state(&[(2, &a)]) };
            let without = Allowed::of(Outcome::ToolError)
                .member("/ds_state", super::super::super::expect::Match::Absent);
            let expect = Expect::new(CLAUSE, kept).or(without);
            run(&mut talk, "fail", "{\"message\":\"on purpose\"}", &full(&[(2, &a)]), expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "fail"])
}

fn content() -> Check {
    const CLAUSE: &str = "TH-STATE-11";
    Check::new(
        run_id("content-of-any-text"),
        "A content_json of any text passes through a run unchanged, with its size in bytes.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let artifact = Artifact::new("not json \"\\\n\0 é漢\u{1F600}");
            let allowed = whole_state(&[(1, &artifact)]);
            let output = got(Some(&artifact)).output_members;
            let expect = Expect::new(CLAUSE, Allowed { output_members: output, ..allowed });
            run(&mut talk, "get", "{\"slot\":1}", &full(&[(1, &artifact)]), expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn delta_in_run_mode() -> Check {
    const CLAUSE: &str = "TH-STATE-21";
    Check::new(
        run_id("delta"),
        "A delta in run mode is applied to the empty state or refused.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let a = note("a");
            let output = got(Some(&a)).output_members;
            let applied = Allowed { output_members: output, ..whole_state(&[(1, &a)]) };
            let expect = Expect::new(CLAUSE, applied.shows("apply"))
                .or(Allowed::of(Outcome::Refused).shows("refuse"))
                .choice("delta_in_run_mode");
            run(&mut talk, "get", "{\"slot\":1}", &delta(&[(1, &a)], &[]), expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

fn wrong_size() -> Check {
    const CLAUSE: &str = "TH-STATE-09";
    Check::new(
        run_id("size-of-characters"),
        "An Artifact whose size_bytes counts characters is refused, or comes back with its size in bytes.",
        [CLAUSE],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let artifact = Artifact::new("é漢\u{1F600}");
            let output = got(Some(&artifact)).output_members;
            let corrected = Allowed { output_members: output, ..whole_state(&[(1, &artifact)]) };
            let expect = Expect::new(CLAUSE, corrected.shows("correct"))
                .or(Allowed::of(Outcome::Refused).shows("refuse"))
                .choice("size_bytes_wrong");
            let state = format!("{{\"slots\":{{\"1\":{}}}}}", artifact.sized("3"));
            run(&mut talk, "get", "{\"slot\":1}", &state, expect);
            Ok(talk.run_canary().plan())
        },
    )
    .feature(FEATURE)
    .roles(&["any", "get"])
}

/// Refused states: name, clause, JSON text.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "slot-key-eight",
        "TH-STATE-07",
        "{\"slots\":{\"8\":{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}}}",
    ),
    (
        "slot-key-with-leading-zero",
        "TH-STATE-07",
        "{\"slots\":{\"01\":{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}}}",
    ),
    (
        "artifact-without-type",
        "TH-STATE-08",
        "{\"slots\":{\"1\":{\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":2}}}",
    ),
    (
        "artifact-with-string-as-size",
        "TH-STATE-08",
        "{\"slots\":{\"1\":{\"type\":\"t\",\"provenance\":\"p\",\"content_json\":\"{}\",\"size_bytes\":\"2\"}}}",
    ),
    ("slots-that-are-an-array", "TH-STATE-08", "{\"slots\":[]}"),
];

fn refused(name: &str, clause: &'static str, state: &'static str) -> Check {
    Check::new(run_id(name), "A run with a malformed state is refused.", [clause], "run", move |facts, _| {
        let mut talk = Talk::runs(facts);
        let good = note("good");
        run(&mut talk, "get", "{\"slot\":1}", state, Expect::refused(clause));
        let expect = Expect::new(clause, got(Some(&good)));
        run(&mut talk, "get", "{\"slot\":1}", &full(&[(1, &good)]), expect);
        Ok(talk.run_canary().plan())
    })
    .feature(FEATURE)
    .roles(&["any", "get"])
}
