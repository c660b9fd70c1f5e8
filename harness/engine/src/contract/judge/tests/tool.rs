//! Example boundary: a runner takes one request on standard input, gives one reply, and writes a file or not.

use super::{python, said};
use crate::contract::face::{
    Aim, Allowed, Effect, Expectation, Expected, Face, Frame, Framing, Misfit, Need, Reading, SessionClauses,
    Sign, Stimulus, StimulusKind, Subject,
};
use crate::data::finding::{Finding, Repair};
use crate::data::json::{self, DecodeLimits, Json};
use crate::data::payload::Payload;
use crate::data::plan::{Act, Chunking, Step};
use crate::data::transcript::{Exit, Transcript};
use crate::drive::lab::tests::stage::carry_out;

const SESSION_CLAUSES: SessionClauses = SessionClauses::all("TOOL-01");

struct Runner;

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CallAnswer {
    Done,
    Blocked,
    Refused,
}

impl Face for Runner {
    type Message = (Json, Exit);
    type Answer = CallAnswer;
    type Notes = ();
    type State = ();

    fn framing(&self, _command: &str) -> Option<Framing> {
        Some(Framing::Whole)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, _transcript: &Transcript) {}

    fn expect(&self, (): &mut (), stimulus: &Stimulus<'_>) -> Option<Expectation<CallAnswer>> {
        let StimulusKind::Said(line) = stimulus.what else { return None };
        let part = |clause, way| Expected::new(clause, Subject::Turn, vec![Allowed::answer(way)]);
        let request = json::decode(&line.bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value);
        let path = request.as_ref().and_then(|request| request.get("path")).and_then(Json::as_str);
        let Some((request, path)) = request.as_ref().zip(path) else {
            return Some(Expectation::one(part("TOOL-04", CallAnswer::Refused)));
        };
        let written = |path: &str| Sign::Found { label: path.to_owned(), holds: None };
        let is_guarded = request.pointer("/guarantees/no_filesystem_write") == Some(&Json::Bool(true));
        let (clause, way, need) = match is_guarded {
            true => ("TOOL-06", CallAnswer::Blocked, Need::MustNot),
            false => ("TOOL-05", CallAnswer::Done, Need::Must),
        };
        let (reason, control) = match is_guarded {
            true => ("written", Some(written("open"))),
            false => ("not_written", None),
        };
        let effect = Effect { clause, reason, need, sign: written(path), control };
        Some(Expectation::one(part(clause, way).effect(effect)))
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<(Json, Exit)> {
        match json::decode(frame.bytes.trim_ascii(), &DecodeLimits::default()) {
            Ok(decoded) => Reading::Message((decoded.value, frame.exit.unwrap_or(Exit::Code(0)))),
            Err(_) if frame.bytes.is_empty() => Reading::Blank,
            Err(error) => {
                Reading::Broken(Finding::new("TOOL-01", "no_json", "one JSON object", error.to_string()))
            }
        }
    }

    fn fit(&self, _: &Expected<CallAnswer>, way: &CallAnswer, came: &[&(Json, Exit)]) -> Result<(), Misfit> {
        let Some((reply, exit)) = came.first() else { return Ok(()) };
        let ok = reply.get("ok").and_then(Json::as_bool);
        let code = reply.get("reason_code").and_then(Json::as_str);
        let misfit = |reason, at: &str, to: &str| {
            Err(Misfit {
                rank: 0,
                clause: None,
                reason,
                repair: Repair::Set { at: at.to_owned(), to: Some(to.to_owned()) },
            })
        };
        match way {
            _ if *exit != Exit::Code(0) => Err(Misfit {
                rank: 1,
                clause: None,
                reason: "exit_status",
                repair: Repair::Exit(Exit::Code(0)),
            }),
            CallAnswer::Done if ok != Some(true) => misfit("refused", "/ok", "true"),
            CallAnswer::Blocked | CallAnswer::Refused if ok != Some(false) => {
                misfit("accepted", "/ok", "false")
            }
            CallAnswer::Blocked if code != Some("guarantee_blocked") => {
                misfit("reason_code", "/reason_code", "\"guarantee_blocked\"")
            }
            CallAnswer::Done | CallAnswer::Blocked | CallAnswer::Refused => Ok(()),
        }
    }

    fn phrase(&self, _: &Expected<CallAnswer>, way: &CallAnswer) -> String {
        format!("{way:?}")
    }

    fn text(&self, (reply, exit): &(Json, Exit)) -> String {
        format!("{}, {exit}", reply.to_text())
    }
}

/// Runner. `SAYS` tells if it reports success, `WRITES` if it really acts.
const RUNNER: &str = r#"
import json, os, sys
def reply(**members):
    print(json.dumps(members))
    sys.exit(0)
try:
    call = json.loads(sys.stdin.read())
    path = call["path"]
except Exception:
    reply(ok=False, error=dict(type="Malformed", message="no call"))
guarded = bool(call.get("guarantees", dict()).get("no_filesystem_write"))
if WRITES:
    open(os.path.join(os.environ["ROOT"], path), "w").write("x")
if SAYS:
    reply(ok=True, result=dict())
reply(ok=False, reason_code="guarantee_blocked", error=dict(type="Blocked", message="no"))
"#;

/// Call that is about `clause`, and the end of its input.
fn call(clause: &str, text: &str) -> [Step; 2] {
    let aim = Aim { clause: clause.into(), reason: None };
    let send = Act::Send { payload: Payload::text(text), chunking: Chunking::Whole, await_frames: 0 };
    [Step { expect: serde_json::to_value(aim).unwrap(), ..Step::new(send) }, Step::new(Act::Finish)]
}

/// Findings about a runner that reports success if `says` and acts if `writes`, for an open and a guarded call.
fn of_runner(says: &str, writes: &str) -> Vec<String> {
    let program = RUNNER.replace("SAYS", says).replace("WRITES", writes);
    let call = |session, clause: &str, text: &str| call(clause, text).map(|step| Step { session, ..step });
    let look =
        |path: &str| Step::new(Act::Look { label: path.to_owned(), path: Payload::text(path), after_ms: 0 });
    let mut steps = Vec::new();
    steps.extend(call(0, "TOOL-05", r#"{"path":"open"}"#));
    steps.extend(call(1, "TOOL-06", r#"{"path":"guarded","guarantees":{"no_filesystem_write":true}}"#));
    steps.extend(call(2, "TOOL-04", "no JSON"));
    steps.extend(["open", "guarded"].map(look));
    said(&Runner, &carry_out(&python(&program), Vec::new(), steps))
}

#[test]
fn a_runner_that_does_as_it_says_is_clean() {
    assert_eq!(of_runner("not guarded", "not guarded"), [""; 0]);
}

#[test]
fn a_word_is_not_taken_for_an_effect() {
    assert_eq!(of_runner("not guarded", "True"), ["TOOL-06 written"]);
    assert_eq!(of_runner("True", "not guarded"), ["TOOL-06 accepted"]);
}

#[test]
fn what_never_works_proves_no_block() {
    let nothing = ["TOOL-05 refused", "TOOL-05 not_written", "no_control"];
    assert_eq!(of_runner("False", "False"), nothing);
    assert_eq!(of_runner("not guarded", "False"), nothing[1..]);
}

#[test]
fn what_a_step_is_not_about_decides_nothing() {
    let program = RUNNER.replace("SAYS", "not guarded").replace("WRITES", "not guarded");
    let guarded = r#"{"path":"a","guarantees":{"no_filesystem_write":true}}"#;
    let said_of = |clause: &str| {
        said(&Runner, &carry_out(&python(&program), Vec::new(), call(clause, guarded).to_vec()))
    };
    assert_eq!(said_of("TOOL-06"), ["not_looked"]);
    assert_eq!(said_of("TOOL-01"), [""; 0]);
}

#[test]
fn a_finding_says_what_would_have_been_right() {
    let program = RUNNER.replace("SAYS", "True").replace("WRITES", "False");
    let steps = call("TOOL-06", r#"{"path":"a","guarantees":{"no_filesystem_write":true}}"#).to_vec();
    let judgement = crate::contract::judge::judge(&Runner, &carry_out(&python(&program), Vec::new(), steps));
    let repair = Repair::Set { at: "/ok".to_owned(), to: Some("false".to_owned()) };
    assert_eq!(judgement.findings[0].repair, Some(repair));
    assert!(judgement.untestable.is_some_and(|why| why.code == "not_looked"), "nobody looked for the file");
}
