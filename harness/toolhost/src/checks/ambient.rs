//! Checks of every reply and every process, in all conversations.
//!
//! Each clause has its own check with a small conversation in which it can be broken. Findings about the clause from
//! all other conversations count there too, so that one fault is one red line. The content of the replies does not
//! matter here. Only the canaries need correct answers.

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::role::reference_aid;
use super::super::talk::{ANSWERED, RUN_ANSWERED, Request, Talk, quoted};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::{Act, Chunking, Plan};

pub(super) fn checks() -> Vec<Check> {
    SERVE.iter().map(|row| serve(*row)).chain(RUN.iter().map(|row| run(*row))).collect()
}

/// Stimulus for one sort of reply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// A line that is not JSON.
    Malformed,
    /// Broken UTF-8, control characters and quotes in an aid, which an error message may repeat.
    OddAid,
    /// An unknown aid.
    UnknownAid,
    /// An `input_json` of the wrong type.
    WrongInput,
    /// A tool that fails, with a message that needs escapes.
    Fail,
    /// An output with characters that need escapes.
    OddOutput,
    /// An output with various numbers.
    Numbers,
    /// A result that exceeds the reply limit.
    Large,
    /// A tool that prints.
    Noise,
    /// A request with a repeated key.
    Hit,
    /// State in the request.
    State,
    /// State written, read and removed by tools.
    Slots,
    /// Good and bad requests in one write.
    Pipeline,
}

use Ask::{
    Fail, Hit, Large, Malformed, Noise, Numbers, OddAid, OddOutput, Pipeline, Slots, State, UnknownAid,
    WrongInput,
};

/// Clause, name, title, conversation.
type Row = (&'static str, &'static str, &'static str, &'static [Ask]);

const SERVE: &[Row] = &[
    (
        "TH-REPLY-01",
        "replies/strict-json",
        "Every reply is strict JSON in strict UTF-8, whatever the request contained.",
        &[Malformed, OddAid, OddOutput, Numbers, Fail],
    ),
    (
        "TH-REPLY-02",
        "replies/one-object-on-one-line",
        "Every reply is one JSON object on one line.",
        &[Malformed, OddOutput, Fail, Slots],
    ),
    (
        "TH-REPLY-03",
        "replies/ok-agrees-with-status",
        "Every reply has a boolean `ok` that agrees with its `status`.",
        &[Malformed, UnknownAid, WrongInput, Fail, Hit],
    ),
    (
        "TH-REPLY-04",
        "replies/error-agrees-with-ok",
        "`error` is empty in a success and a non-empty string in a failure.",
        &[Malformed, UnknownAid, WrongInput, Fail, Hit],
    ),
    (
        "TH-REPLY-05",
        "replies/output-is-json-text",
        "`output_json` is a string that contains one strict JSON value.",
        &[OddOutput, Numbers, Fail, Slots, Hit, UnknownAid],
    ),
    (
        "TH-REPLY-06",
        "replies/success-has-all-members",
        "A success, also a hit, has ok, status, output_json, error and ds_state.",
        &[OddOutput, Hit, State, Slots],
    ),
    (
        "TH-REPLY-07",
        "replies/status-is-documented",
        "`status` is one of the four documented values.",
        &[Malformed, UnknownAid, WrongInput, Fail, Hit],
    ),
    (
        "TH-REPLY-08",
        "replies/state-is-a-delta",
        "In serve mode the `ds_state` of a reply is a delta.",
        &[State, Slots, Hit, Fail],
    ),
    (
        "TH-REPLY-10",
        "replies/state-has-its-shape",
        "The `ds_state` of a reply has only slots 0 to 7, with complete Artifacts.",
        &[State, Slots],
    ),
    (
        "TH-LIMIT-07",
        "replies/size",
        "No reply is longer than 1,048,576 bytes with its newline.",
        &[Large, OddOutput],
    ),
    (
        "TH-FRAME-01",
        "replies/one-for-each-line",
        "Every request line, good or bad, gets exactly one reply line.",
        &[Malformed, UnknownAid, Fail, Pipeline, Hit, OddOutput],
    ),
    (
        "TH-FRAME-05",
        "replies/nothing-else-on-stdout",
        "Standard output contains replies and nothing else.",
        &[Malformed, UnknownAid, Fail, Noise, Pipeline],
    ),
    (
        "TH-PROC-02",
        "process/ends-at-eof",
        "At the end of input the peer exits with status 0 within 2 s, also after errors.",
        &[Malformed, Fail, Pipeline],
    ),
    (
        "TH-PROC-05",
        "process/leaves-no-process",
        "No process of the peer is left after it ended.",
        &[Malformed, Fail, Noise],
    ),
    (
        "TH-PROC-06",
        "process/leaves-no-file",
        "No file or socket of the peer is left after it ended.",
        &[Malformed, Fail, Noise, Slots],
    ),
];

const RUN: &[Row] = &[
    (
        "TH-REPLY-01",
        "replies/strict-json",
        "Every reply is strict JSON in strict UTF-8, whatever stdin contained.",
        &[Malformed, OddAid, OddOutput],
    ),
    ("TH-REPLY-02", "replies/one-object", "Every reply is one JSON object.", &[Malformed, OddOutput, Fail]),
    (
        "TH-REPLY-03",
        "replies/ok-agrees-with-status",
        "Every reply has a boolean `ok` that agrees with its `status`.",
        &[Malformed, Fail],
    ),
    (
        "TH-REPLY-04",
        "replies/error-agrees-with-ok",
        "`error` is empty in a success and a non-empty string in a failure.",
        &[Malformed, Fail],
    ),
    (
        "TH-REPLY-05",
        "replies/output-is-json-text",
        "`output_json` is a string that contains one strict JSON value.",
        &[OddOutput, Fail],
    ),
    (
        "TH-REPLY-06",
        "replies/success-has-all-members",
        "A success has ok, status, output_json, error and ds_state.",
        &[State],
    ),
    (
        "TH-REPLY-07",
        "replies/status-is-documented",
        "`status` is one of the four documented values.",
        &[UnknownAid, Fail],
    ),
    (
        "TH-REPLY-09",
        "replies/state-is-full",
        "In run mode the `ds_state` of a reply is a full state.",
        &[State, Slots],
    ),
    (
        "TH-REPLY-10",
        "replies/state-has-its-shape",
        "The `ds_state` of a reply has only slots 0 to 7, with complete Artifacts.",
        &[State, Slots],
    ),
    ("TH-LIMIT-07", "replies/size", "No reply is longer than 1,048,576 bytes with its newline.", &[Large]),
    (
        "TH-FRAME-05",
        "replies/nothing-else-on-stdout",
        "Standard output contains the reply and nothing else.",
        &[Malformed, Noise],
    ),
    (
        "TH-RUN-02",
        "process/status-after-success",
        "The exit status is 0 after a success reply.",
        &[OddOutput],
    ),
    ("TH-RUN-04", "process/always-replies", "Every run writes a reply.", &[Malformed, UnknownAid, Fail]),
    ("TH-PROC-03", "process/ends-after-reply", "A run ends within 2 s of its reply.", &[Malformed, Fail]),
    (
        "TH-PROC-05",
        "process/leaves-no-process",
        "No process of the peer is left after it ended.",
        &[Malformed, Noise],
    ),
    (
        "TH-PROC-06",
        "process/leaves-no-file",
        "No file or socket of the peer is left after it ended.",
        &[Malformed, Slots],
    ),
];

fn serve((clause, name, title, asks): Row) -> Check {
    let plan = move |facts: &Facts, _: &mut _| {
        provokes(facts, clause, asks)?;
        Ok(serve_plan(facts, clause, asks))
    };
    let check = Check::new(format!("toolhost/serve/{name}"), title, [clause], "serve", plan);
    finished(check, clause)
}

fn run((clause, name, title, asks): Row) -> Check {
    let plan = move |facts: &Facts, _: &mut _| {
        provokes(facts, clause, asks)?;
        Ok(run_plan(facts, clause, asks))
    };
    let check = Check::new(format!("toolhost/run/{name}"), title, [clause], "run", plan);
    finished(check, clause)
}

fn finished(check: Check, clause: &str) -> Check {
    let check = check.roles(&["any"]).ambient();
    if matches!(clause, "TH-PROC-05" | "TH-PROC-06") { check.on_process() } else { check }
}

/// Checks that the stimuli suffice for a clause. Any reply suffices for most clauses; some need a special request.
///
/// # Errors
/// Fails if the peer lacks the roles and features of all those requests.
fn provokes(facts: &Facts, clause: &str, asks: &[Ask]) -> Result<(), Untestable> {
    let needed = match clause {
        "TH-LIMIT-07" => Untestable::new(Untestable::NO_ROLE, "the role `blob` is not mapped"),
        "TH-REPLY-10" => Untestable::new(
            "no_state",
            "the feature `ds_state` is not claimed, and no role reads or writes a slot",
        ),
        _ => return Ok(()),
    };
    let talk = Talk::runs(facts);
    let draws = |ask: &Ask| match ask {
        Large => talk.has("blob"),
        State => facts.claims("ds_state"),
        Slots => ["put", "get", "remove"].into_iter().any(|role| talk.has(role)),
        _ => false,
    };
    if asks.iter().any(draws) { Ok(()) } else { Err(needed) }
}

/// Expects any reply, which the general rules judge. A missing reply belongs to one clause of each mode.
fn any_reply(clause: &str, serve: bool) -> Expect {
    Expect::new(clause, Allowed::of(Outcome::Reply)).once(if serve { ANSWERED } else { RUN_ANSWERED })
}

fn serve_plan(facts: &Facts, clause: &str, asks: &[Ask]) -> Plan {
    let mut talk = Talk::serve(facts);
    talk.canary();
    for ask in asks {
        if *ask == Pipeline {
            pipeline(&mut talk, clause);
            continue;
        }
        for (aid, request) in requests(&talk, facts, *ask) {
            let line = whole(&aid, request, true).then(Payload::text("\n"));
            talk.send(line, any_reply(clause, true));
        }
    }
    talk.canary_for(ANSWERED).finish().plan()
}

fn run_plan(facts: &Facts, clause: &str, asks: &[Ask]) -> Plan {
    let mut talk = Talk::runs(facts);
    for ask in asks {
        for (aid, request) in requests(&talk, facts, *ask) {
            talk.add_session("run", &[("aid", &aid)], &[]);
            talk.send_as(whole(&aid, request, false), Chunking::Whole, 0, any_reply(clause, false));
            talk.act(Act::Finish);
        }
    }
    talk.run_canary().plan()
}

fn pipeline(talk: &mut Talk<'_>, clause: &str) {
    let (first, _) = talk.good(clause);
    let (last, _) = talk.good(clause);
    let lines = first.line().then(Payload::text("[1,\n{}\n")).then(last.line());
    let expects = (0..4).map(|_| any_reply(clause, true)).collect();
    talk.send_all(lines, Chunking::Whole, expects);
}

/// Request without its aid: members, or raw bytes.
enum Body {
    Members(Request),
    Raw(Payload),
}

fn whole(aid: &str, body: Body, serve: bool) -> Payload {
    match body {
        Body::Raw(payload) => payload,
        Body::Members(request) if serve => request.member("aid", quoted(aid)).body(),
        Body::Members(request) => request.body(),
    }
}

/// Requests for an `ask` with their action ids; none if the peer lacks the feature. Without the role, the request goes
/// to a tool that the peer does not have.
fn requests(talk: &Talk<'_>, facts: &Facts, ask: Ask) -> Vec<(String, Body)> {
    let aid = |role: &str| if talk.has(role) { talk.role(role).aid } else { reference_aid(role) };
    let input = |text: &str| Body::Members(Request::empty().input(text));
    let asked = |role: &str, text: &str| (aid(role), input(text));
    match ask {
        Malformed => vec![(aid("any"), Body::Raw(Payload::text("{\"aid\":\"x\\u00e9\",'a':\tNaN}")))],
        OddAid => {
            let broken = Payload(vec![
                Segment::Text("{\"aid\":\"x\u{7f}\\\"\\u0001 ".to_owned()),
                Segment::Hex("ff80".to_owned()),
                Segment::Text("\",\"input_json\":\"{}\"}".to_owned()),
            ]);
            let odd =
                Payload::text("{\"aid\":\"x\\\"\\\\\\n\\u0000\\u001b\u{2028}é\",\"input_json\":\"[NaN\"}");
            vec![(aid("any"), Body::Raw(broken)), (aid("any"), Body::Raw(odd))]
        }
        UnknownAid => vec![("AID.PEERPROOF.NO_SUCH_TOOL.v1".to_owned(), input("{}"))],
        WrongInput => vec![(aid("any"), Body::Members(Request::empty().member("input_json", "[1]")))],
        Fail => vec![asked("fail", "{\"message\":\"a\\n\\\"b\\\" \\u0001 \\\\ é\"}")],
        OddOutput => {
            vec![asked("echo", "{\"s\":\"a\\n\\r\\t\\\"\\\\/ \\u0000\\u001f\\u007f é漢😀\\u2028\"}")]
        }
        Numbers => vec![asked("echo", "{\"n\":[0,-0,1e300,1e400,-1e400,0.1,9007199254740993,1e-400]}")],
        Large => vec![asked("blob", "{\"bytes\":1200000}")],
        Noise => vec![asked("noise", "{\"stdout\":\"noise\\n\",\"stderr\":\"noise\\n\"}")],
        Hit if facts.claims("idempotency") => (0..2)
            .map(|_| {
                let role = talk.role("any");
                let text = role.input.map_or_else(|| "{}".to_owned(), |input| input.to_string());
                (role.aid, Body::Members(Request::empty().input(&text).key("peerproof-ambient")))
            })
            .collect(),
        State if facts.claims("ds_state") => {
            let state = format!("{{\"slots\":{{\"3\":{ARTIFACT}}}}}");
            vec![(aid("any"), Body::Members(any_members(talk).state(&state)))]
        }
        Slots => vec![
            asked("put", &format!("{{\"slot\":0,\"artifact\":{ARTIFACT}}}")),
            asked("get", "{\"slot\":0}"),
            asked("remove", "{\"slot\":0}"),
        ],
        Hit | State | Pipeline => Vec::new(),
    }
}

const ARTIFACT: &str = r#"{"type":"t","provenance":"p","content_json":"{\"é\":1}","size_bytes":8}"#;

fn any_members(talk: &Talk<'_>) -> Request {
    match talk.role("any").input {
        Some(input) => Request::empty().input(&input.to_string()),
        None => Request::empty(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::rng::Rng;

    #[test]
    fn a_clause_is_watched_once_in_each_mode() {
        for rows in [SERVE, RUN] {
            let clauses: BTreeSet<&str> = rows.iter().map(|row| row.0).collect();
            assert_eq!(clauses.len(), rows.len());
        }
    }

    /// Violations in a canary do not count for the clause that the check watches.
    #[test]
    fn canaries_speak_for_themselves() {
        let facts = super::super::super::boundary().full_facts(Side::Provider);
        for check in checks() {
            let plan = (check.planner)(&facts, &mut Rng::new(1)).unwrap();
            let canaries: Vec<&str> = plan
                .steps
                .iter()
                .filter(|step| step.canary)
                .filter_map(|step| step.expect.get("clause")?.as_str())
                .collect();
            let own = if check.command == "serve" { ANSWERED } else { RUN_ANSWERED };
            assert!(!canaries.is_empty() && canaries.iter().all(|clause| *clause == own), "{}", check.id);
        }
    }

    #[test]
    fn a_canary_is_about_the_step_before_it_where_that_says_that_the_peer_goes_on() {
        let facts = super::super::super::boundary().full_facts(Side::Provider);
        let clause_behind = |clause: &str| {
            let mut talk = Talk::serve(&facts);
            let (request, expect) = talk.good(clause);
            let plan = talk.send(request.line(), expect).canary().plan();
            plan.steps[1].expect["clause"].as_str().unwrap().to_owned()
        };
        assert_eq!(clause_behind("TH-REQ-03"), ANSWERED);
        assert_eq!(clause_behind("TH-LIMIT-05"), "TH-LIMIT-05");
        assert_eq!(clause_behind("TH-SERVE-01"), "TH-SERVE-01");
    }
}
