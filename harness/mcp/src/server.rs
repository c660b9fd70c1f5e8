//! The face of a server: frames, answers, and rules about the whole conversation.

use std::collections::BTreeSet;

use super::connection::{ANSWERS, INITIALIZE, OPENING, PING};
pub use super::model::Server;
use super::model::{
    AllowedAnswer, Asking, CANCELLED, NO_ERROR, RequestNotes, RequestPart, State, ends_opening, is_tool_error,
};
use super::rules;
use super::server_knowledge::ServerKnowledge;
use peerproof_engine::contract::boundary::SurvivalClause;
use peerproof_engine::contract::face::{
    Aim, Face, Frame, Framing, Misfit, Output, PlacedExpectation, Reading, Rule, SessionClauses,
    SessionTrace, Stimulus, Trace,
};
use peerproof_engine::contract::judge;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::ending::Ending;
use peerproof_engine::data::finding::{
    CANARY_FAILED, ChoiceSeen, Finding, Judgement, LATE_REPLY, Nature, Repair,
};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::transcript::{Event, EventKind, Transcript, strict};
use peerproof_json_rpc::frames::{is_call, resembles_message};
use peerproof_json_rpc::model::{AnswerKind, allowed};

/// Reason code of a line that is no JSON.
const OTHER_OUTPUT: &str = "other_output";
/// Standard output is JSON, a text on each line.
const PROTOCOL_ONLY: &str = "MCP-FRM-01";
/// A `ping` gets a result.
const PONG: &str = "MCP-UTL-01";
/// Clauses about lines that are read as one.
const ONE_LINE: [&str; 3] = ["MCP-FRM-03", "MCP-FRM-04", "MCP-FRM-06"];
/// Method of a log message, and the reason code of one without its capability.
const LOG: &str = "notifications/message";
const UNDECLARED_LOG: &str = "undeclared_log";
/// Each line is a message.
const MESSAGES: &str = "MCP-BAS-03";

/// Clause: a client that tries `server/discover` first falls back to `initialize`.
const FALLS_BACK: &str = "MCP-INI-08";
/// Clause: a batch is received, if the revision has batches.
const BATCHES: &str = "MCP-BAS-17";
/// Clause: half a line at the end of input leads to nothing, or to an error.
const HALF_A_LINE: &str = "MCP-END-05";
/// Clauses about messages that must not be answered.
const SILENT: [&str; 2] = ["MCP-BAS-05", "MCP-CAN-02"];

/// Clause of a valid request without an answer.
pub(crate) const ONE_REPLY: &str = "MCP-BAS-02";

/// Clause: no input ends a server.
pub(crate) const LIVES_ON: SurvivalClause = SurvivalClause {
    clause: "MCP-BAS-12",
    reasons: &["crashed", "hung", "ended_early", "output_flood", "memory_flood"],
};

const SESSION_CLAUSES: SessionClauses = SessionClauses {
    one_reply: ONE_REPLY,
    flushed: ONE_REPLY,
    protocol_only: PROTOCOL_ONLY,
    together: None,
    ends_at_eof: "MCP-END-01",
    ends_at_term: "MCP-END-02",
    lives_on: "MCP-BAS-12",
    no_process_left: "MCP-END-03",
    no_file_left: "MCP-END-03",
};

impl Face for Server {
    type Message = Json;
    type Answer = AllowedAnswer;
    type Notes = RequestNotes;
    type State = State;

    fn framing(&self, _command: &str) -> Option<Framing> {
        Some(Framing::Lines)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, transcript: &Transcript) -> State {
        State::new(transcript)
    }

    fn expect(&self, state: &mut State, stimulus: &Stimulus<'_>) -> Option<Asking> {
        state.expect(stimulus)
    }

    fn complete(&self, state: &mut State, _plan: &Plan, asked: &mut [PlacedExpectation<Self>]) {
        state.complete(asked);
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Json> {
        let wrong = |clause: &str, reason: &str, expected: &str, what: &str| {
            let text = shorten(&String::from_utf8_lossy(frame.bytes), 240).into_owned();
            Finding::new(clause, reason, expected, format!("{what}: {text:?}"))
        };
        let decoded = match json::decode(json::trim(frame.bytes), &DecodeLimits::default()) {
            Ok(decoded) => decoded.value,
            Err(error) => {
                let expected = "each line of standard output is one JSON text";
                let what = if frame.bytes.trim_ascii().is_empty() {
                    "a blank line".to_owned()
                } else {
                    error.to_string()
                };
                let finding = wrong(PROTOCOL_ONLY, OTHER_OUTPUT, expected, &what);
                return match resembles_message(frame.bytes) {
                    true => Reading::Garbled(finding),
                    false => Reading::Broken(finding),
                };
            }
        };
        match &decoded {
            value if is_call(value) => Reading::Beside(decoded),
            Json::Array(items) => Reading::Together { messages: items.clone(), all: decoded },
            Json::Object(_) => Reading::Message(decoded),
            _ => {
                let expected = "each line is a message";
                Reading::Broken(wrong(MESSAGES, "no_message", expected, "not a JSON object"))
            }
        }
    }

    fn key(&self, message: &Json) -> Option<String> {
        message.get("id").and_then(allowed::key)
    }

    fn is_same_text(&self, due: &str, came: &str) -> bool {
        allowed::is_same_text(due, came)
    }

    fn shows_work(&self, message: &Json) -> bool {
        message.get("result").is_some() || message.get("error").is_some()
    }

    fn fit(&self, unit: &RequestPart, way: &AllowedAnswer, came: &[&Json]) -> Result<(), Misfit> {
        came.first().map_or(Ok(()), |message| way.fit(unit, message))
    }

    fn is_malformed_at(&self, message: &Json, misfit: &Misfit) -> bool {
        let Repair::Set { at: place, .. } = &misfit.repair else { return false };
        let is_about = |at: &String| match place.as_str() {
            "" => matches!(misfit.reason, NO_ERROR | "accepted") && at == "/result",
            place => place.starts_with(at.as_str()),
        };
        rules::faulty_places(message).iter().any(is_about)
    }

    fn is_about_its_message(&self) -> bool {
        true
    }

    fn leaves_open(&self, unit: &RequestPart, _aim: Option<&Aim>, came: &[&Json]) -> Option<Untestable> {
        let why = unit.extra.open_by_error?;
        let code = came.first()?.pointer("/error/code").and_then(Json::as_i64)?;
        Some(Untestable::new("answered_by_error", format!("{why} (error {code})")))
    }

    fn phrase(&self, unit: &RequestPart, way: &AllowedAnswer) -> String {
        way.phrase(unit)
    }

    fn text(&self, message: &Json) -> String {
        message.to_text()
    }

    fn may_repeat(&self, unit: &RequestPart) -> bool {
        // An answer to a notification belongs to no other request.
        unit.must_be_silent() && !ends_opening(unit)
    }

    fn rules(&self) -> &[Rule<Self>] {
        rules::ALL
    }

    fn revise(&self, trace: &Trace<'_, Self>, judgement: &mut Judgement) {
        revise(trace, judgement);
    }

    fn may_leave(&self, _transcript: &Transcript) -> bool {
        true
    }
}

/// An answer without the parts that servers choose.
pub fn compared(unit: &RequestPart, message: &Json) -> String {
    let is_free = unit.allowed_answers().any(|(_, way)| way.rpc.what == AnswerKind::Reply);
    match (message.pointer("/error/code"), message.get("result")) {
        _ if is_free => "a reply".to_owned(),
        (Some(code), _) => format!("error {}", code.to_text()),
        (None, result) if is_tool_error(result) => "a result with `isError: true`".to_owned(),
        (None, Some(_)) => "a result".to_owned(),
        (None, None) => "no response".to_owned(),
    }
}

/// Judges a transcript.
pub fn judge(transcript: &Transcript) -> Judgement {
    if ServerKnowledge::of(&transcript.facts).offered().is_some() {
        let why = "the server refuses the requested revision";
        let untestable = Some(Untestable::new("revision_refused", why));
        return Judgement { untestable, ..Judgement::default() };
    }
    let mut judgement = judge::judge(&Server, transcript);
    if judgement.findings.iter().any(|finding| finding.clause.0 == FALLS_BACK) && is_stateless(transcript) {
        judgement.findings.retain(|finding| finding.clause.0 != FALLS_BACK);
        judgement.untestable = Some(Untestable::new("stateless", "the server answers server/discover"));
    }
    let opening = transcript.plan.expect.get(OPENING).and_then(serde_json::Value::as_u64);
    leave_out_opening(&mut judgement, opening.unwrap_or(0));
    rules::keep_those_of_revision(transcript, &mut judgement);
    if judgement.choice.is_none() {
        judgement.choice = judgement.findings.iter().find_map(choice_of);
    }
    judgement
}

/// Renames and removes findings that the whole conversation explains.
fn revise(trace: &Trace<'_, Server>, judgement: &mut Judgement) {
    let transcript = trace.transcript;
    let ending = Ending::of(transcript, 0);
    let is_cut = lines::of_session(transcript, 0).last().is_some_and(|line| !line.ended)
        && are_texts(&heard_before_end(transcript));
    let is_batch_refused =
        judgement.findings.iter().any(|finding| finding.clause.0 == BATCHES && finding.lacks_answer());
    let is_garbled = judgement.findings.iter().any(|finding| finding.reason == OTHER_OUTPUT);
    let is_split = judgement.findings.iter().any(|finding| ONE_LINE.contains(&finding.clause.0.as_str()));
    let accepted: BTreeSet<usize> =
        judgement.findings.iter().filter(|it| is_acceptance(it)).filter_map(|it| it.step).collect();
    judgement.findings.retain_mut(|finding| {
        // The form of a result says nothing where an error is due.
        if !is_acceptance(finding)
            && is_in_result(finding)
            && finding.step.is_some_and(|at| accepted.contains(&at))
        {
            return false;
        }
        if is_garbled
            && (finding.lacks_answer() || finding.reason == LATE_REPLY)
            && is_answered_oddly(transcript, finding)
        {
            return false;
        }
        // One error in the place of the answers to a batch, or one for each part of a line that was taken for several.
        if (is_batch_refused || is_split) && finding.reason == "extra_reply" && is_refusal(trace, finding) {
            return false;
        }
        if finding.lacks_answer() && lacks_ping(trace, finding) {
            finding.clause = PONG.into();
        }
        let is_of_end = matches!(finding.reason.as_str(), "exit_status" | "ended_early");
        if is_of_end && ending.exit.is_some() && !ending.input_ended && !ending.signalled {
            // The message before it ended the server.
            finding.clause = last_aim(transcript).unwrap_or_else(|| LIVES_ON.clause.into());
            "crashed".clone_into(&mut finding.reason);
            finding.nature = Nature::Crash;
            return true;
        }
        // MCP defines no exit status, and temporary files are the server's own affair.
        if matches!(finding.reason.as_str(), "exit_status" | "file_left") {
            return false;
        }
        if is_cut && matches!(finding.reason.as_str(), "other_output" | "unfinished_line" | "no_message") {
            finding.clause = HALF_A_LINE.into();
        }
        if is_cut && finding.reason == UNDECLARED_LOG && !logs_before_end(trace) {
            finding.clause = HALF_A_LINE.into();
            "nothing, or one whole error".clone_into(&mut finding.expected);
        }
        // A second answer is a surplus, whatever its request tests.
        let is_extra = finding.repair == Some(Repair::Drop) && !SILENT.contains(&finding.clause.0.as_str());
        // An answer with a readable id does not answer a notification.
        let is_of_request = finding.reason == "answered" && has_readable_id(trace, finding);
        if is_of_request && finding.repair == Some(Repair::Drop) {
            (finding.clause, finding.reason) = (SESSION_CLAUSES.one_reply.into(), "extra_reply".to_owned());
        }
        if is_extra && (finding.reason == "extra_reply" || finding.reason == CANARY_FAILED) {
            (finding.clause, finding.reason) = (SESSION_CLAUSES.one_reply.into(), "extra_reply".to_owned());
        }
        if finding.reason == "does_not_end" {
            "the server ends in time".clone_into(&mut finding.expected);
        }
        true
    });
}

/// True if a `ping` right behind the opening is unanswered, as every other, although the server answers lists.
fn lacks_ping(trace: &Trace<'_, Server>, finding: &Finding) -> bool {
    let Some(at) = finding.step else { return false };
    let is_first = trace.transcript.plan.steps.iter().take(at + 1).all(|step| step.setup || step.canary);
    let is_ping = |unit: &RequestPart| unit.extra.method.as_deref() == Some(PING);
    let mut answers = trace.sessions.iter().flat_map(SessionTrace::answers);
    finding.clause.0 == SESSION_CLAUSES.one_reply
        && is_first
        && ServerKnowledge::of(&trace.transcript.facts).answers_lists()
        && !answers.any(|(_, unit, _)| is_ping(unit))
        && trace.asked.iter().any(|asked| asked.step == at && asked.due.parts.iter().any(is_ping))
}

/// True if a result came instead of an error.
fn is_acceptance(finding: &Finding) -> bool {
    matches!(finding.reason.as_str(), NO_ERROR | "accepted")
}

/// True for a fault within a result.
fn is_in_result(finding: &Finding) -> bool {
    matches!(&finding.repair, Some(Repair::Set { at, .. }) if at.starts_with("/result"))
}

/// Session that shows a finding: the first for one without a step.
fn heard_with<'t, 'a>(
    trace: &'t Trace<'a, Server>,
    finding: &Finding,
) -> Option<&'t SessionTrace<'a, Server>> {
    let step = finding.step.and_then(|at| trace.transcript.plan.steps.get(at));
    let session = step.map_or(0, |step| step.session);
    trace.sessions.iter().find(|heard| heard.session == session)
}

/// True if the first message of a session that answers nothing is an error about an unreadable message.
fn is_refusal(trace: &Trace<'_, Server>, finding: &Finding) -> bool {
    let first = heard_with(trace, finding).and_then(|heard| heard.extra.first());
    let is_null = |message: &Json| message.get("id").is_some_and(Json::is_null);
    first.is_some_and(|(_, message)| message.get("error").is_some() && is_null(message))
}

/// True if a notification got an answer with a readable id. The answer to a cancellation may have that of its request.
fn has_readable_id(trace: &Trace<'_, Server>, finding: &Finding) -> bool {
    let answers = heard_with(trace, finding).into_iter().flat_map(SessionTrace::answers);
    let mut of_step = answers.filter(|(asked, ..)| Some(asked.step) == finding.step);
    of_step.any(|(_, unit, answer)| {
        let cancels = unit.extra.method.as_deref() == Some(CANCELLED);
        unit.must_be_silent() && !cancels && Server.key(answer.message).is_some()
    })
}

/// True where something else than messages came behind the step of a missing answer, which is in it then.
fn is_answered_oddly(transcript: &Transcript, finding: &Finding) -> bool {
    let is_last = |step: usize| finding.step.is_none_or(|missing| step == missing);
    let sent = |kind: &EventKind| matches!(kind, EventKind::Sent { step, .. } if is_last(*step));
    let Some(at) = transcript.events.iter().rposition(|event| sent(&event.kind)) else { return false };
    let session = transcript.events[at].session;
    let behind = transcript.events[at + 1..].iter().filter(|event| event.session == session);
    let behind = behind.take_while(|event| !matches!(event.kind, EventKind::Sent { .. }));
    !are_texts(&received(behind))
}

/// The choice that a broken SHOULD shows.
fn choice_of(finding: &Finding) -> Option<ChoiceSeen> {
    let (key, value) = match finding.clause.0.as_str() {
        "MCP-INI-07" if finding.lacks_answer() => ("mcp_early_request", "silent"),
        "MCP-LST-06" if finding.reason == "accepted" => ("mcp_bad_cursor", "ignore"),
        _ => return None,
    };
    Some(ChoiceSeen { key: key.to_owned(), value: value.to_owned(), pinned: false })
}

/// Output before the end of input.
fn heard_before_end(transcript: &Transcript) -> Vec<u8> {
    received(transcript.of(0).take_while(|event| event.kind != EventKind::StdinClosed))
}

/// True if a log message came before the end of input.
fn logs_before_end(trace: &Trace<'_, Server>) -> bool {
    let end = trace.transcript.of(0).position(|event| event.kind == EventKind::StdinClosed);
    let before = |output: &&Output<Json>| end.is_none_or(|end| output.place < end);
    let method = |output: &Output<Json>| output.held.whole()?.get("method")?.as_str().map(str::to_owned);
    let outputs = trace.sessions.first().map_or(&[][..], |heard| heard.output);
    outputs.iter().filter(before).any(|output| method(output).as_deref() == Some(LOG))
}

/// Bytes that events brought.
fn received<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<u8> {
    let bytes = events.filter_map(|event| match &event.kind {
        EventKind::Received { bytes } => Some(bytes.0.as_slice()),
        _ => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

/// True where each whole line is JSON.
fn are_texts(out: &[u8]) -> bool {
    let mut lines = out.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.all(|line| json::check(json::trim(line), &DecodeLimits::default()).is_ok())
}

/// True if a session began with `server/discover` and a result. Then the server uses the stateless revision.
fn is_stateless(transcript: &Transcript) -> bool {
    let out = transcript.stdout(0);
    let first = peerproof_json_rpc::frames::messages(&out, 1);
    first.first().is_some_and(|message| message.pointer("/result/supportedVersions").is_some())
}

/// Clause of the last step that wrote something.
fn last_aim(transcript: &Transcript) -> Option<ClauseId> {
    let sent = transcript.events.iter().rev().find_map(|event| match event.kind {
        EventKind::Sent { step, .. } => Some(step),
        _ => None,
    });
    Some(Aim::of(transcript.plan.steps.get(sent?)?)?.clause)
}

/// Removes faults of an opening that the check does not test. Without an opening nothing is decided.
fn leave_out_opening(judgement: &mut Judgement, steps: u64) {
    let is_of_opening = |finding: &Finding| finding.step.is_some_and(|step| (step as u64) < steps);
    let failed = judgement
        .findings
        .iter()
        .find(|finding| is_of_opening(finding) && (finding.lacks_answer() || finding.reason == "refused"));
    if let Some(finding) = failed {
        let why = format!("{INITIALIZE} failed: {}", finding.got);
        judgement.untestable = Some(Untestable::new("opening_failed", why));
        judgement.findings.clear();
        return;
    }
    judgement.findings.retain(|finding| !is_of_opening(finding) || finding.clause.0 == PROTOCOL_ONLY);
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub fn admit(plan: &Plan) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(plan)?;
    let known = [OPENING, ANSWERS];
    let members = plan.expect.as_object().into_iter().flat_map(|members| members.keys());
    match members.into_iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("plan/expect: {name:?} is unknown; known are {known:?}").into()),
        None => Ok(()),
    }
}

/// True if `frame` has the id of the request in `step`.
pub fn answers(step: &peerproof_engine::data::plan::Step, frame: &[u8]) -> bool {
    matches!(step.act, Act::Send { .. }) && peerproof_json_rpc::server::answers_canary(step, frame)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::talk::Talk;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::payload::Payload;
    use peerproof_engine::data::plan::Chunking;
    use peerproof_engine::data::transcript::Bytes;

    const OPENED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}}"#;

    /// Clauses and reasons of a conversation whose steps are answered by these lines, one per step.
    fn judged(plan: Plan, answers: &[&str]) -> Vec<String> {
        let mut events = Vec::new();
        for (step, planned) in plan.steps.iter().enumerate() {
            match &planned.act {
                Act::Send { payload, .. } => events.push(EventKind::Sent { step, payload: payload.clone() }),
                _ => events.push(EventKind::StdinClosed),
            }
            if let Some(lines) = answers.get(step).filter(|lines| !lines.is_empty()) {
                events.push(EventKind::Received { bytes: Bytes(format!("{lines}\n").into_bytes()) });
            }
        }
        let transcript = Transcript {
            boundary: "mcp".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(crate::full_facts::facts(Side::Provider)),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
            events: events.into_iter().map(|kind| Event { at_us: 0, session: 0, kind }).collect(),
        };
        let findings = judge(&transcript).findings;
        findings.into_iter().map(|finding| format!("{} {}", finding.clause, finding.reason)).collect()
    }

    fn talk(add: impl FnOnce(&mut Talk<'_>)) -> Plan {
        let facts = crate::full_facts::facts(Side::Provider);
        let mut talk = Talk::opened(&facts);
        add(&mut talk);
        talk.plan()
    }

    #[test]
    fn an_answer_that_nobody_asked_for_is_one_too_many() {
        let plan = || {
            talk(|talk| {
                talk.request("ping", None);
            })
        };
        let pong = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
        assert_eq!(judged(plan(), &[OPENED, "", pong]), [""; 0]);
        let stray = format!("{pong}\n{}", r#"{"jsonrpc":"2.0","id":"stray","result":{}}"#);
        assert_eq!(judged(plan(), &[OPENED, "", &stray]), ["MCP-BAS-02 extra_reply"]);
        assert_eq!(judged(plan(), &[OPENED, "", &format!("{pong}\n{pong}")]), ["MCP-BAS-02 extra_reply"]);
    }

    #[test]
    fn a_result_beside_an_error_is_one_fault() {
        let plan = talk(|talk| {
            talk.request("tools/list", None);
        });
        let both = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"m"},"result":{}}"#;
        let found = judged(plan, &[OPENED, "", both]);
        assert!(found.contains(&"MCP-BAS-03 result_and_error".to_owned()), "{found:?}");
        assert!(!found.contains(&"MCP-CAP-01 member_missing".to_owned()), "{found:?}");
    }

    #[test]
    fn an_answer_to_a_cancellation_is_an_answer_to_a_notification() {
        let plan = |aim: Option<&str>| {
            talk(|talk| {
                aim.into_iter().for_each(|clause| _ = talk.aim(clause));
                talk.notify("notifications/cancelled", Some(json!({ "requestId": 7 })));
            })
        };
        let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"m"}}"#;
        assert_eq!(judged(plan(None), &[OPENED, "", error]), ["MCP-BAS-05 answered"]);
        assert_eq!(judged(plan(Some("MCP-CAN-02")), &[OPENED, "", error]), ["MCP-CAN-02 answered"]);
    }

    #[test]
    fn a_log_message_about_half_a_line_is_no_error() {
        let plan = || {
            let half = Payload::text("{\"jsonrpc\":");
            talk(|talk| {
                talk.push(half, Chunking::Whole, 0).act(Act::Finish);
            })
        };
        let log =
            r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":""}}"#;
        assert_eq!(judged(plan(), &[OPENED, "", "", log]), ["MCP-END-05 undeclared_log"]);
        assert_eq!(judged(plan(), &[OPENED, log, "", log]), ["MCP-CAP-03 undeclared_log"]);
    }

    #[test]
    fn a_lost_canary_is_blamed_on_the_message_before_it() {
        let behind = |line: &str| {
            talk(|talk| {
                talk.send(line).canary();
                talk.canary();
            })
        };
        let pong = r#"{"jsonrpc":"2.0","id":9002,"result":{}}"#;
        for (line, clause) in [
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "MCP-BAS-12"),
            (r#"{"jsonrpc":"2.0","method":"notifications/peerproof"}"#, "MCP-BAS-02"),
        ] {
            let found = judged(behind(line), &[OPENED, "", "", "", pong]);
            assert!(found.iter().any(|found| found.starts_with(clause)), "{line}: {found:?}");
        }
    }

    #[test]
    fn capabilities_are_known_although_the_id_of_their_answer_is_wrong() {
        let plan = || {
            talk(|talk| {
                talk.request("ping", None);
            })
        };
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let behind = |opened: &str| {
            let pong = r#"{"jsonrpc":"2.0","id":2,"result":{}}"#;
            judged(plan(), &[opened, "", &format!("{changed}\n{pong}")])
        };
        let declared = OPENED.replace(r#""tools":{}"#, r#""tools":{"listChanged":true}"#);
        assert_eq!(behind(OPENED), ["MCP-CAP-06 undeclared_change"]);
        for id in [r#""id":"1""#, r#""id":null"#, r#""id":7"#] {
            let wrong = |opened: &str| opened.replace(r#""id":1"#, id);
            assert_eq!(behind(&wrong(&declared)), [""; 0], "{id}");
            assert_eq!(behind(&wrong(OPENED)), ["MCP-CAP-06 undeclared_change"], "{id}");
        }
    }

    #[test]
    fn a_request_of_the_server_is_no_answer_to_one_with_its_id() {
        let plan = talk(|talk| {
            talk.request("ping", None);
        });
        let declared = OPENED.replace(r#""tools":{}"#, r#""tools":{"listChanged":true}"#);
        let first = format!("{}\n{declared}", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let second = format!("{changed}\n{}", r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        assert_eq!(judged(plan, &[&first, "", &second]), [""; 0]);
    }

    #[test]
    fn a_server_that_answers_everything_but_ping_lacks_ping() {
        let plan = |line: Option<&str>| {
            talk(|talk| {
                talk.aim("MCP-BAS-02");
                line.into_iter().for_each(|line| _ = talk.send(line));
                talk.canary();
            })
        };
        assert_eq!(judged(plan(None), &[OPENED]), ["MCP-UTL-01 canary_failed"]);
        let behind = r#"{"jsonrpc":"2.0","method":"notifications/peerproof"}"#;
        assert_eq!(judged(plan(Some(behind)), &[OPENED]), ["MCP-BAS-02 canary_failed"]);
    }

    #[test]
    fn a_notification_is_not_answered() {
        let plan = talk(|talk| {
            talk.aim("MCP-BAS-05").notify("notifications/peerproof", None);
        });
        let refused = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"m"}}"#;
        assert_eq!(judged(plan, &[OPENED, "", refused]), ["MCP-BAS-05 answered"]);
    }
}
