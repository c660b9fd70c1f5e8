//! Tools that fail, print, crash or are slow. Most of their checks are cases.

use super::super::cases;
use super::super::expect::{Allowed, Expect, Outcome};
use super::super::talk::Talk;
use super::super::talk_state::{full, note};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Chunking, Plan};

pub(super) fn checks() -> Vec<Check> {
    let mut checks = cases::checks("tools");
    checks.extend([
        crash_alone(),
        crash_behind_others(),
        crash_twice(),
        crash_beside_a_state(),
        noise_pipelined(),
    ]);
    checks
}

fn check(
    name: &str,
    title: &str,
    clauses: &[&str],
    role: &str,
    plan: impl Fn(&Facts) -> Plan + Send + Sync + 'static,
) -> Check {
    let id = format!("toolhost/serve/tools/{name}");
    Check::new(id, title, clauses.iter().copied(), "serve", move |facts, _| Ok(plan(facts)))
        .roles(&["any", role])
}

/// Allowed outcomes of the role `crash`. A peer that pins `throw` survives; one that pins `abort` may die; without a
/// pin both are allowed.
fn crash(facts: &Facts) -> Expect {
    let refused = |shows: &str| Allowed::of(Outcome::Refused).shows(shows);
    let expect = match facts.choices.get("crash_kind").map(String::as_str) {
        Some("throw") => Expect::new("TH-TOOL-02", refused("throw")),
        Some("abort") => {
            Expect::new("TH-TOOL-04", refused("abort")).or(Allowed::of(Outcome::Dies).shows("abort"))
        }
        _ => Expect::new("TH-TOOL-04", refused("throw")).or(Allowed::of(Outcome::Dies).shows("abort")),
    };
    expect.choice("crash_kind")
}

const CRASH_CLAUSES: [&str; 3] = ["TH-TOOL-05", "TH-TOOL-02", "TH-TOOL-04"];

fn crash_alone() -> Check {
    check(
        "crash",
        "A tool that throws is answered ok:false and the session goes on; one that aborts may end it, with a status \
         other than 0.",
        &CRASH_CLAUSES,
        "crash",
        |facts| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-TOOL-02");
            let line = talk.ask("crash", "{}").line();
            talk.send(line, crash(facts));
            talk.canary_for("TH-TOOL-02").finish().plan()
        },
    )
}

fn crash_behind_others() -> Check {
    check(
        "crash-behind-pipelined-requests",
        "Requests before a crashing tool keep their replies, even if the process ends.",
        &CRASH_CLAUSES,
        "crash",
        |facts| {
            let mut talk = Talk::serve(facts);
            let (mut lines, mut expects) = (Payload::default(), Vec::new());
            for _ in 0..20 {
                let (request, expect) = talk.good("TH-TOOL-04");
                lines = lines.then(request.line());
                expects.push(expect);
            }
            lines = lines.then(talk.ask("crash", "{}").line());
            expects.push(crash(facts));
            talk.canary_for("TH-TOOL-04");
            talk.send_all(lines, Chunking::Whole, expects);
            talk.canary_for("TH-TOOL-02").finish().plan()
        },
    )
}

fn crash_twice() -> Check {
    check(
        "crash-twice-with-others-behind",
        "A tool that throws twice loses no later request.",
        &CRASH_CLAUSES,
        "crash",
        |facts| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-TOOL-02");
            for _ in 0..2 {
                let (request, expect) = talk.good("TH-TOOL-02");
                let lines = talk.ask("crash", "{}").line().then(request.line());
                talk.send_all(lines, Chunking::Whole, vec![crash(facts), expect]);
            }
            talk.canary_for("TH-TOOL-02").finish().plan()
        },
    )
}

fn crash_beside_a_state() -> Check {
    const CLAUSE: &str = "TH-STATE-01";
    let check = check(
        "crash-beside-a-state",
        "The slots of a session still exist after a tool throws.",
        &[CLAUSE],
        "crash",
        |facts| {
            let mut talk = Talk::serve(facts);
            let (sent, written) = (note("sent"), note("written"));
            talk.apply(CLAUSE, &full(&[(1, &sent)]));
            talk.put(CLAUSE, 2, &written).canary_for(CLAUSE);
            let line = talk.ask("crash", "{}").line();
            talk.send(line, crash(facts));
            talk.state_is(CLAUSE, &[(1, &sent), (2, &written)]);
            talk.canary().finish().plan()
        },
    );
    check.feature("ds_state").roles(&["any", "crash", "put", "get"])
}

fn noise_pipelined() -> Check {
    check(
        "noise-pipelined",
        "Text that tools print between pipelined requests never reaches the protocol stream.",
        &["TH-TOOL-03"],
        "noise",
        |facts| {
            let mut talk = Talk::serve(facts);
            let (mut lines, mut expects) = (Payload::default(), Vec::new());
            for input in [
                r#"{"stdout":"{\"ok\":true}\n","stderr":""}"#,
                r#"{"stdout":"partial ","stderr":"partial "}"#,
                r#"{"stdout":"\n\n","stderr":"\n"}"#,
            ] {
                let (request, expect) = talk.good("TH-TOOL-03");
                lines = lines.then(talk.ask("noise", input).line()).then(request.line());
                expects.push(Expect::ok("TH-TOOL-03").stray("TH-TOOL-03"));
                expects.push(expect);
            }
            talk.send_all(lines, Chunking::Whole, expects);
            talk.canary().finish().plan()
        },
    )
}
