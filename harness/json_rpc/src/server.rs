//! The face of a server: decodes frames, matches them with requests, and lists the rules about responses.

mod http;
mod responses;
#[cfg(test)]
mod tests;

use super::frames;
pub use super::model::Server;
use super::model::{
    Aim, AllowedAnswer, AnswerKind, Asking, Codes, Demand, IdRule, LINE_BYTES_MAX, RequestNotes, RequestPart,
    State, allowed,
};
use super::{lateness, rates, rules, streams, trial};
use peerproof_engine::contract::boundary::{self, SurvivalClause};
use peerproof_engine::contract::face::{
    Allowed, BatchClauses, Face, Frame, Framing, HttpExchange, HttpTrace, Misfit, Output, PlacedExpectation,
    Reading, Rule, SessionClauses, SessionTrace, Stimulus, StimulusKind as Stimulated, Trace,
};
use peerproof_engine::contract::judge;
use peerproof_engine::contract::memory;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{Finding, Judgement, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines::RequestLine;
use peerproof_engine::data::payload::{Vars, shorten};
use peerproof_engine::data::plan::{Act, Plan, Step};
use peerproof_engine::data::transcript::{Transcript, strict};

/// Member of a plan's expectation: the clause about memory that the plan tests, by default that about lines.
pub const MEMORY: &str = "memory";
/// Most stream messages of one conversation that are examined.
const STREAM_FRAMES: usize = 40_000;

const PROTOCOL_ONLY: &str = "RPC-FRAME-05";
/// Clause: no input crashes or hangs the peer.
pub const LIVES_ON: SurvivalClause = SurvivalClause {
    clause: "RPC-ERR-01",
    reasons: &["crashed", "hung", "ended_early", "output_flood", "memory_flood"],
};
const UTF_8: &str = "RPC-JSON-02";
const NOTIFICATIONS: &str = "RPC-NOTE-01";
/// Clause: ids of other types than string, number and null are refused with id null.
const ID_TYPES: &str = "RPC-ID-05";
/// Reason code of an answer with the id of a wrong type that its request has.
const ID_ECHOED: &str = "id_echoed";
const TOO_LARGE: &str = "RPC-SIZE-02";
/// Clauses that only a result can prove.
const OF_RESULTS: [&str; 5] = ["RPC-EXEC-02", "RPC-EXEC-03", "RPC-PLAN-01", "RPC-PLAN-02", "RPC-PLAN-03"];

const SESSION_CLAUSES: SessionClauses = SessionClauses {
    one_reply: "RPC-FRAME-01",
    flushed: "RPC-FRAME-03",
    protocol_only: PROTOCOL_ONLY,
    together: Some(BatchClauses {
        group: "batch",
        frame: "array",
        in_one: "RPC-BATCH-01",
        once: "RPC-BATCH-05",
        nothing: "RPC-BATCH-04",
    }),
    ends_at_eof: "RPC-PROC-02",
    ends_at_term: "RPC-PROC-03",
    lives_on: "RPC-HTTP-10",
    no_process_left: "RPC-PROC-04",
    no_file_left: "RPC-PROC-05",
};

/// A message of a server.
pub struct Message {
    /// Decoded message.
    pub value: Json,
    /// True if a string in its frame has a lone surrogate escape.
    pub lone_surrogates: bool,
}

impl Face for Server {
    type Message = Message;
    type Answer = AllowedAnswer;
    type Notes = RequestNotes;
    type State = State;

    fn framing(&self, command: &str) -> Option<Framing> {
        Some(if command == HTTP { Framing::Bodies } else { Framing::Lines })
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, transcript: &Transcript) -> State {
        State::new(transcript)
    }

    fn expect(&self, state: &mut State, stimulus: &Stimulus<'_>) -> Option<Asking> {
        let Stimulated::Said(line) = stimulus.what else { return None };
        Some(state.expect(stimulus, line))
    }

    fn complete(&self, state: &mut State, plan: &Plan, asked: &mut [PlacedExpectation<Self>]) {
        state.complete(&plan.steps, asked);
    }

    fn carried(
        &self,
        asked: &mut PlacedExpectation<Self>,
        line: &RequestLine,
        how: Option<&Carriage>,
        exchange: &HttpExchange<'_>,
    ) {
        http::allow(asked, line, how, exchange);
    }

    fn status(&self, carried: &HttpTrace<'_, Self>) -> Judgement {
        http::status(carried)
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Message> {
        // An HTTP error body in any format, or a body that is not due.
        let is_bare = frame.status.is_some_and(|status| !matches!(status, 200..=299)) || !frame.is_due;
        if frame.status.is_some() && frame.bytes.is_empty() {
            return Reading::Blank;
        }
        let decoded = match json::decode(frame.bytes, &DecodeLimits::default()) {
            Ok(decoded) => decoded,
            Err(_) if is_bare => return Reading::Blank,
            Err(error) => return frames::undecodable(frame, &error.to_string()),
        };
        let lone_surrogates = decoded.facts.lone_surrogates;
        let message = |value| Message { value, lone_surrogates };
        match &decoded.value {
            value if frames::is_call(value) => Reading::Beside(message(decoded.value)),
            Json::Array(items) => {
                let messages = items.iter().cloned().map(message).collect();
                Reading::Together { messages, all: message(decoded.value) }
            }
            Json::Object(_) => Reading::Message(message(decoded.value)),
            _ if is_bare => Reading::Blank,
            _ => Reading::Message(message(decoded.value)),
        }
    }

    fn key(&self, message: &Message) -> Option<String> {
        message.value.get("id").and_then(allowed::key)
    }

    fn is_same_text(&self, due: &str, came: &str) -> bool {
        allowed::is_same_text(due, came)
    }

    fn refuses_all(&self, message: &Message) -> bool {
        let is_there = |value: &Json| !value.is_null();
        message.value.get("id").is_some_and(Json::is_null) && message.value.get("error").is_some_and(is_there)
    }

    fn shows_work(&self, message: &Message) -> bool {
        let has = |name: &str| message.value.get(name).is_some();
        has("result") || has("error")
    }

    fn fit(&self, unit: &RequestPart, way: &AllowedAnswer, came: &[&Message]) -> Result<(), Misfit> {
        let id = unit.extra.id.as_ref();
        let Some(misfit) = came.first().and_then(|message| way.misfit(id, &message.value)) else {
            return Ok(());
        };
        let came = came.first().and_then(|message| message.value.get("id"));
        let rank = misfit as u8;
        if unit.clause == NOTIFICATIONS {
            return Err(Misfit { rank, clause: None, reason: "answered", repair: Repair::Drop });
        }
        if unit.clause == ID_TYPES && came.is_some_and(frames::is_no_id) {
            return Err(Misfit { rank, clause: None, reason: ID_ECHOED, repair: Repair::other("/id") });
        }
        if misfit == allowed::Misfit::WrongId && came.is_none() {
            return Err(Misfit { rank, clause: None, reason: "id_missing", repair: Repair::other("/id") });
        }
        let to = match (misfit, &way.what) {
            (allowed::Misfit::WrongId, _) if way.id == IdRule::Own => id.map(Json::to_text),
            (allowed::Misfit::WrongId, _) if way.id == IdRule::Null => Some("null".to_owned()),
            (allowed::Misfit::WrongCode, AnswerKind::Error(Codes::Of([code]))) => Some(code.to_string()),
            (allowed::Misfit::WrongResult, AnswerKind::Result(Demand::Equals(wanted))) => {
                Some(wanted.to_text())
            }
            _ => None,
        };
        let repair = Repair::Set { at: misfit.place().to_owned(), to };
        let of_id = misfit == allowed::Misfit::WrongId && way.id == IdRule::Own;
        let clause = id.filter(|_| of_id).map(clause_of_id);
        Err(Misfit { rank, clause, reason: misfit.reason(), repair })
    }

    fn fits(&self, unit: &RequestPart, way: &AllowedAnswer, came: &[&Message]) -> bool {
        let id = unit.extra.id.as_ref();
        came.first().is_none_or(|message| way.misfit(id, &message.value).is_none())
    }

    fn is_malformed_at(&self, message: &Message, misfit: &Misfit) -> bool {
        let Repair::Set { at: place, .. } = &misfit.repair else { return false };
        let is_around = |finding: &Finding| match &finding.repair {
            Some(Repair::Set { at, .. }) if !at.is_empty() => {
                place.strip_prefix(at.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            _ => false,
        };
        let is_scalar = !matches!(message.value, Json::Object(_) | Json::Array(_));
        is_scalar || misfit.reason != ID_ECHOED && frames::violations(&message.value).iter().any(is_around)
    }

    fn shows(
        &self,
        unit: &RequestPart,
        allowed: &Allowed<AllowedAnswer>,
        came: &[&Message],
    ) -> Option<&'static str> {
        let echoes = came.iter().any(|message| message.lone_surrogates);
        match unit.choice {
            Some("lone_surrogates") if allowed.shows.is_none() => {
                Some(if echoes { "echo" } else { "replace" })
            }
            _ => allowed.shows,
        }
    }

    fn leaves_open(&self, unit: &RequestPart, aim: Option<&Aim>, came: &[&Message]) -> Option<Untestable> {
        let code = came.first()?.value.pointer("/error/code").and_then(Json::as_i64)?;
        match unit.extra.shows_nothing {
            Some((nothing, why)) if nothing.contains(&code) => {
                return Some(Untestable::new(Untestable::ROLE_MISBEHAVES, why));
            }
            _ => {}
        }
        let is_of_result = aim.is_some_and(|aim| OF_RESULTS.contains(&aim.clause.0.as_ref()));
        (unit.extra.shape.is_some() && is_of_result)
            .then(|| Untestable::new("no_result", format!("the call got error {code}")))
    }

    fn phrase(&self, unit: &RequestPart, way: &AllowedAnswer) -> String {
        way.phrase(unit.extra.id.as_ref())
    }

    fn text(&self, message: &Message) -> String {
        message.value.to_text()
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[
            responses::judge,
            responses::twins,
            responses::held_up,
            too_long,
            |trace, heard| rules::of_logs(trace.transcript, heard.session).into_iter().collect(),
            lateness::judge,
            rates::judge,
            |trace, heard| {
                let lines = heard.framing == Framing::Lines;
                let values = heard.output.iter().filter_map(|output| output.held.whole());
                let values: Vec<&Json> = values.filter(|_| lines).map(|message| &message.value).collect();
                streams::judge(&trace.transcript.facts, heard.lines, &values)
            },
            http::connections,
        ]
    }

    fn revise(&self, _: &Trace<'_, Self>, judgement: &mut Judgement) {
        // Everything else follows from headers before each message, as language servers write them.
        let has_header =
            |finding: &Finding| finding.clause.0 == PROTOCOL_ONLY && finding.got.contains("Content-Length:");
        if judgement.findings.iter().any(has_header) {
            judgement.findings.retain(has_header);
        }
    }

    fn may_repeat(&self, unit: &RequestPart) -> bool {
        // A second refusal, or an answer to the rest of an over-long line, belongs to no other request.
        unit.clause == TOO_LARGE
    }

    fn frames_spare(&self, transcript: &Transcript) -> usize {
        // Chunks of streams are not answers, and their number is unknown.
        if transcript.facts.claims("streaming") { STREAM_FRAMES } else { 0 }
    }

    fn may_leave(&self, transcript: &Transcript) -> bool {
        transcript.facts.requirements == "spec"
    }
}

/// Clause about the echo of an id of this type.
fn clause_of_id(id: &Json) -> &'static str {
    match id {
        Json::String(_) => "RPC-ID-01",
        Json::Number(number) if number.is_integral() => "RPC-ID-02",
        Json::Null => "RPC-ID-04",
        _ => "RPC-ID-03",
    }
}

/// Findings about messages beyond the size limit.
fn too_long(_: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    // An HTTP error body is not a message.
    let is_message = |output: &Output<Message>| output.held.whole().is_some() || output.broken.is_some();
    let is_long =
        |(_, output): &(usize, &Output<Message>)| output.bytes > LINE_BYTES_MAX && is_message(output);
    let mut long = heard.output.iter().enumerate().filter(is_long).map(|(at, output)| {
        let expected = format!("a message of at most {LINE_BYTES_MAX} bytes, or an error instead");
        let got = format!("{} bytes: {}", output.bytes, shorten(&output.held.text(&Server), 80));
        let finding = Finding::new("RPC-SIZE-05", "message_too_large", expected, got);
        match heard.framing {
            Framing::Bodies => finding.at(heard.lines[at].step),
            _ => finding,
        }
    });
    match heard.framing {
        Framing::Bodies => long.collect(),
        _ => long.next().into_iter().collect(),
    }
}

/// Judges a transcript.
pub fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge::judge(&Server, transcript);
    let of_memory = transcript.plan.expect.get(MEMORY).and_then(serde_json::Value::as_str);
    memory::judge(transcript, of_memory.unwrap_or("RPC-SIZE-04"), &mut judgement);
    // Findings beyond the requirement set are dropped. But no input may end the peer, even if it is not valid
    // UTF-8.
    let is_beyond = |finding: &Finding| {
        let row = super::boundary().clauses().iter().find(|clause| clause.id == finding.clause);
        row.is_some_and(|row| boundary::is_beyond(super::boundary(), &transcript.facts.requirements, row))
    };
    for finding in &mut judgement.findings {
        let is_of_bytes = finding.clause.0 == UTF_8;
        if (is_beyond(finding) || is_of_bytes) && LIVES_ON.reasons.contains(&finding.reason.as_str()) {
            finding.clause = LIVES_ON.clause.into();
        }
    }
    judgement.findings.retain(|finding| !is_beyond(finding));
    // A missing key in the configuration is not a fault of the server.
    let refusals = trial::undeclared(&transcript.facts, std::slice::from_ref(transcript));
    if let [(_, what)] = refusals[..]
        && judgement.canaries_answered == 0
        && frames::messages(&transcript.stdout(0), usize::MAX).iter().all(trial::is_unsigned)
    {
        judge::excuse(&mut judgement, what);
    }
    judgement
}

/// Refuses a plan whose aims or expectations have unknown members.
///
/// # Errors
/// Names the unknown member.
pub fn admit(plan: &Plan) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(plan)?;
    match plan.expect.as_object().and_then(|members| members.keys().find(|name| *name != MEMORY)) {
        Some(name) => Err(format!("plan/expect: {name:?} is unknown; what is known is {MEMORY:?}").into()),
        None => Ok(()),
    }
}

/// True if `frame` has the id of the canary that `step` sent.
pub fn answers_canary(step: &Step, frame: &[u8]) -> bool {
    let Act::Send { payload, .. } = &step.act else { return false };
    let Ok(bytes) = payload.expand(&Vars::new()) else { return false };
    let decode = |bytes: &[u8]| json::decode(bytes, &DecodeLimits::default()).ok().map(|found| found.value);
    let (Some(request), Some(response)) = (decode(&bytes), decode(frame)) else { return false };
    request.get("id").is_some_and(|id| !id.is_null() && response.get("id") == Some(id))
}
