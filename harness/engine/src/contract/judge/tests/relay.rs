//! Example boundary: a dispatcher takes one call on standard input, starts one tool and gives one result. The allowed
//! results follow from the tool's actual output and exit.

use super::{python, said};
use crate::contract::face::{
    Allowed, Effect, Expectation, Expected, Face, Frame, Framing, Misfit, Need, PlacedExpectation, Reading,
    SessionClauses, Sign, Stimulus, StimulusKind, Subject,
};
use crate::data::finding::{Finding, Repair};
use crate::data::json::{self, DecodeLimits, Json};
use crate::data::payload::Payload;
use crate::data::plan::{Act, ActorStep, Chunking, Fixture, Plan, Step};
use crate::data::transcript::{EventKind, Exit, Transcript};
use crate::drive::lab::tests::stage::carry_out;

const SESSION_CLAUSES: SessionClauses = SessionClauses::all("CALL-01");

struct Dispatcher;

/// Result of a dispatcher.
#[derive(Debug, Clone, PartialEq)]
enum DispatcherAnswer {
    /// Output of the tool.
    Output(Json),
    /// Error of this type.
    Error(&'static str),
}

/// Behaviour of the tool.
#[derive(Default)]
struct Tool {
    wrote: Vec<u8>,
    exit: Option<Exit>,
}

impl Tool {
    /// Allowed result, and its clause.
    fn allows(&self) -> (&'static str, DispatcherAnswer) {
        let reply = json::decode(self.wrote.trim_ascii(), &DecodeLimits::default()).ok();
        let reply = reply.map(|decoded| decoded.value);
        let ok = reply.as_ref().and_then(|reply| reply.get("ok")).and_then(Json::as_bool);
        match (self.exit, ok) {
            (Some(Exit::Code(0)), Some(true)) => {
                let output = reply.and_then(|reply| reply.get("output").cloned()).unwrap_or_default();
                ("CALL-02", DispatcherAnswer::Output(output))
            }
            (Some(Exit::Code(0)), Some(false)) => ("CALL-03", DispatcherAnswer::Error("tool")),
            (Some(Exit::Code(0)), None) => ("CALL-04", DispatcherAnswer::Error("protocol")),
            _ => ("CALL-05", DispatcherAnswer::Error("crash")),
        }
    }
}

impl Face for Dispatcher {
    type Message = Json;
    type Answer = DispatcherAnswer;
    type Notes = ();
    type State = Tool;

    fn framing(&self, _command: &str) -> Option<Framing> {
        Some(Framing::Whole)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, _transcript: &Transcript) -> Tool {
        Tool::default()
    }

    fn expect(&self, tool: &mut Tool, stimulus: &Stimulus<'_>) -> Option<Expectation<DispatcherAnswer>> {
        match stimulus.what {
            StimulusKind::Said(line) => {
                let (actor, holds) = ("tool".to_owned(), line.bytes.trim_ascii().to_vec());
                let sign = Sign::Starts { actor, holds, times: 1..=1 };
                let (clause, reason) = ("CALL-06", "not_started_once");
                let once = Effect { clause, reason, need: Need::Must, sign, control: None };
                // The allowed result is known only after the tool has ended.
                return Some(Expectation::one(
                    Expected::new("CALL-01", Subject::Turn, Vec::new()).effect(once),
                ));
            }
            StimulusKind::Happened(EventKind::ActorWrote { bytes, .. }) => {
                tool.wrote = bytes.expand(&Default::default()).unwrap_or_default();
            }
            StimulusKind::Happened(EventKind::ActorEnded { exit, .. }) => tool.exit = Some(*exit),
            StimulusKind::Begun | StimulusKind::Happened(_) => {}
        }
        None
    }

    fn complete(&self, tool: &mut Tool, _plan: &Plan, asked: &mut [PlacedExpectation<Self>]) {
        for part in asked.iter_mut().flat_map(|asked| &mut asked.due.parts) {
            let (clause, way) = tool.allows();
            (part.clause, part.allowed) = (clause, vec![Allowed::answer(way)]);
        }
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Json> {
        match json::decode(frame.bytes.trim_ascii(), &DecodeLimits::default()) {
            Ok(decoded) => Reading::Message(decoded.value),
            Err(error) => {
                Reading::Broken(Finding::new("CALL-01", "no_json", "one JSON value", error.to_string()))
            }
        }
    }

    fn fit(
        &self,
        _: &Expected<DispatcherAnswer>,
        way: &DispatcherAnswer,
        came: &[&Json],
    ) -> Result<(), Misfit> {
        let Some(printed) = came.first() else { return Ok(()) };
        let error = printed.get("error").and_then(Json::as_str);
        let wrong = |reason, at: &str, to: String| {
            Err(Misfit {
                rank: 0,
                clause: None,
                reason,
                repair: Repair::Set { at: at.to_owned(), to: Some(to) },
            })
        };
        match (way, error) {
            (DispatcherAnswer::Output(output), None) if output == *printed => Ok(()),
            (DispatcherAnswer::Output(output), None) => wrong("wrong_output", "", output.to_text()),
            (DispatcherAnswer::Output(output), Some(_)) => wrong("reported_error", "", output.to_text()),
            (DispatcherAnswer::Error(_), None) => wrong("reported_success", "/error", "an error".to_owned()),
            (DispatcherAnswer::Error(kind), Some(error)) if error == *kind => Ok(()),
            (DispatcherAnswer::Error(kind), Some(_)) => wrong("wrong_type", "/error", format!("{kind:?}")),
        }
    }

    fn phrase(&self, _: &Expected<DispatcherAnswer>, way: &DispatcherAnswer) -> String {
        format!("{way:?}")
    }

    fn text(&self, printed: &Json) -> String {
        printed.to_text()
    }
}

const DISPATCHER: &str = r#"
import json, os, subprocess, sys
call = sys.stdin.read()
def start():
    return subprocess.run([os.path.join(os.environ["ROOT"], "tool")], input=call.encode(), stdout=subprocess.PIPE)
def say(value):
    print(json.dumps(value))
    sys.exit(0)
ran = start()
if ran.returncode != 0:
    say(dict(error="crash"))
try:
    reply = json.loads(ran.stdout)
except ValueError:
    say(dict(error="protocol"))
say(reply["output"] if reply["ok"] else dict(error="tool"))
"#;

/// Findings about a dispatcher whose tool plays `script`.
fn of_dispatcher(program: &str, script: Vec<ActorStep>) -> Vec<String> {
    let payload = Payload::text(r#"{"call":"s3ldom"}"#);
    let send = Step::new(Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 });
    let tool = Fixture::Actor { name: "tool".to_owned(), script, later: Vec::new() };
    said(&Dispatcher, &carry_out(&python(program), vec![tool], vec![send, Step::new(Act::Finish)]))
}

/// Tool that reads the call, writes `reply` and ends with `last`.
fn tool(reply: &str, last: ActorStep) -> Vec<ActorStep> {
    vec![ActorStep::ReadRequest, ActorStep::Stdout(Payload::text(reply)), last]
}

const DONE: &str = r#"{"ok":true,"output":[1,2]}"#;
const FAILED: &str = r#"{"ok":false}"#;

#[test]
fn a_dispatcher_that_tells_what_its_tool_did_is_clean() {
    for script in [
        tool(DONE, ActorStep::Exit(0)),
        tool(FAILED, ActorStep::Exit(0)),
        tool("no JSON", ActorStep::Exit(0)),
        tool(DONE, ActorStep::Exit(3)),
        tool(DONE, ActorStep::Die(9)),
    ] {
        assert_eq!(of_dispatcher(DISPATCHER, script.clone()), [""; 0], "{script:?}");
    }
}

#[test]
fn what_the_tool_really_did_decides() {
    let deaf = DISPATCHER.replace("if ran.returncode != 0", "if False");
    assert_eq!(of_dispatcher(&deaf, tool(DONE, ActorStep::Exit(3))), ["CALL-05 reported_success"]);
    let hopeful = DISPATCHER.replace("else dict(error=\"tool\")", "else None");
    assert_eq!(of_dispatcher(&hopeful, tool(FAILED, ActorStep::Exit(0))), ["CALL-03 reported_success"]);
    let eager = DISPATCHER.replace("ran = start()", "start(); ran = start()");
    assert_eq!(of_dispatcher(&eager, tool(DONE, ActorStep::Exit(0))), ["CALL-06 not_started_once"]);
}
