//! The face of an engine: allowed replies to an envelope, over standard streams and HTTP.

mod http;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use peerproof_engine::contract::face::{
    Aim, Allowed, Answer, Expectation, Expected, ExpectedPart, Face, Frame, Framing, HttpExchange, HttpTrace,
    Misfit, PlacedExpectation, Reading, Rule, SessionClauses, SessionTrace, Stimulus, StimulusKind, Subject,
    Trace,
};
use peerproof_engine::contract::judge;
use peerproof_engine::contract::judge::equal_requests::{self, EqualRequests};
use peerproof_engine::contract::memory;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{Finding, Judgement, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines::{self, RequestLine};
use peerproof_engine::data::payload::{Vars, shorten};
use peerproof_engine::data::plan::{Act, Step};
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};

use super::equivalence::{Mode, differences, is_advanced, is_same};
use super::model::{self, Acceptance, Input, Sent, Trait, is_terminated};
use super::shape::BOUNDS;
use super::talk;
use super::twins::parted;

pub(crate) use super::talk::LIVES;
pub(crate) use http::SAME;

/// Command of an engine on standard streams.
pub const COMMAND: &str = "command";

/// Largest pointer or value of a repair, bytes.
const REPAIR_BYTES: usize = 1_000;

/// Clauses about other spellings of an envelope.
const WRITTEN_OTHERWISE: [&str; 6] =
    ["ENV-DEF-01", "ENV-FRAME-02", "ENV-FRAME-05", "ENV-JSON-11", "ENV-TYPE-02", "ENV-TYPE-03"];

/// Clause: another spelling of an envelope changes nothing.
const SPELLING: &str = "ENV-JSON-11";

/// Most characters of a quoted reply.
const QUOTED_CHARS: usize = 200;

const SESSION_CLAUSES: SessionClauses = SessionClauses {
    protocol_only: "ENV-FRAME-07",
    ends_at_eof: "ENV-FRAME-08",
    ends_at_term: "ENV-FRAME-10",
    no_process_left: "ENV-FRAME-11",
    no_file_left: "ENV-FRAME-12",
    lives_on: LIVES,
    ..SessionClauses::all("ENV-FRAME-01")
};

/// The face of an engine.
pub struct Engine;

/// Reply of an engine.
pub enum Message {
    /// An envelope, or an object instead of one.
    Envelope {
        /// Decoded object.
        value: Json,
        /// True if a string in it has a lone surrogate escape.
        lone_surrogates: bool,
    },
    /// A refusal, described in one phrase.
    Refused(String),
}

/// Allowed reply to an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedReply {
    /// An envelope.
    Processed,
    /// A refusal.
    Refused,
}

/// State of a conversation.
pub struct State {
    facts: Arc<Facts>,
    mode: Mode,
    is_inferred: bool,
    /// Clauses that the steps test.
    aims: Vec<Option<String>>,
}

/// Facts that a reply is compared with.
#[derive(Debug, Clone)]
pub struct ReplyNotes {
    /// The sent envelope.
    pub sent: Option<Arc<Sent>>,
    /// Treatment of envelopes by the engine.
    pub mode: Mode,
    /// True if `mode` was inferred from the canaries instead of the configuration.
    pub is_inferred: bool,
}

impl Face for Engine {
    type Message = Message;
    type Answer = AllowedReply;
    type Notes = ReplyNotes;
    type State = State;

    fn framing(&self, command: &str) -> Option<Framing> {
        Some(if command == HTTP { Framing::Bodies } else { Framing::Whole })
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, transcript: &Transcript) -> State {
        let (mode, is_inferred) = mode(transcript);
        let aims = transcript.plan.steps.iter().map(|step| Some(Aim::of(step)?.clause.0)).collect();
        State { facts: Arc::clone(&transcript.facts), mode, is_inferred, aims }
    }

    fn expect(
        &self,
        state: &mut State,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedReply, ReplyNotes>> {
        let StimulusKind::Said(line) = stimulus.what else { return None };
        let mut input = Input::read(&state.facts, &line.bytes);
        if stimulus.how.is_some() {
            http::read_as_body(&mut input);
        }
        let aim = stimulus.step.and_then(|step| state.aims.get(step)?.as_deref());
        let (clause, allowed, mut choice) = allowed(&input, &state.facts, aim);
        // An engine that shows no stages returns everything, so this choice would mean nothing.
        if choice == Some("over_bound")
            && state.mode != Mode::Advance
            && !state.facts.choices.contains_key("over_bound")
        {
            choice = None;
        }
        let sent = input.sent.map(Arc::new);
        let extra = ReplyNotes { sent, mode: state.mode, is_inferred: state.is_inferred };
        let part = Expected { clause, subject: Subject::Turn, allowed, choice, effects: Vec::new(), extra };
        Some(Expectation::one(part))
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
        let quoted = || shorten(&String::from_utf8_lossy(frame.bytes), QUOTED_CHARS).into_owned();
        let broken = |clause, reason, expected: &str, got: String| {
            Reading::Broken(Finding::new(clause, reason, expected, got))
        };
        let is_error = |value: &Json| {
            value.get("error").is_some_and(is_truthy)
                && value.get("current_stage").is_none()
                && value.get("outputs").is_none()
        };
        if let Some(status) = frame.status {
            return http::read(status, frame.bytes, is_error).map_or(Reading::Blank, Reading::Message);
        }
        let text = json::trim(frame.bytes);
        let decoded = json::decode(text, &DecodeLimits::default());
        match (frame.exit.unwrap_or(Exit::Code(0)), decoded) {
            // No output; the judge reports how the process ended.
            (Exit::Signal(_), _) => Reading::Blank,
            (Exit::Code(0), _) if text.is_empty() => Reading::Blank,
            (Exit::Code(0), Ok(decoded)) if is_error(&decoded.value) => {
                broken("ENV-FRAME-06", "error_with_status_0", "exit status 1 to 255 with an error", quoted())
            }
            (Exit::Code(0), Ok(decoded)) if decoded.value.as_object().is_some() => {
                Reading::Message(Message::Envelope {
                    lone_surrogates: decoded.facts.lone_surrogates,
                    value: decoded.value,
                })
            }
            (Exit::Code(0), Ok(_)) => broken("ENV-FRAME-07", "no_object", "one JSON object", quoted()),
            (Exit::Code(0), Err(error)) => broken(
                "ENV-FRAME-07",
                "no_json",
                "one JSON object and nothing else",
                format!("{error}: {}", quoted()),
            ),
            (exit, _) if text.is_empty() => Reading::Message(Message::Refused(format!("{exit}, no output"))),
            (exit, Ok(decoded)) if is_error(&decoded.value) => {
                Reading::Message(Message::Refused(format!("{exit}, {}", quoted())))
            }
            (exit, _) => {
                let expected = "after a failure, empty output or one object with `error` and without \
                    `current_stage` and `outputs`";
                broken("ENV-FRAME-06", "output_with_failure", expected, format!("{exit}, {}", quoted()))
            }
        }
    }

    fn fit(&self, _: &ExpectedPart<Self>, way: &AllowedReply, came: &[&Message]) -> Result<(), Misfit> {
        let misfit = |reason, repair| Err(Misfit { rank: 0, clause: None, reason, repair });
        match (way, came.first()) {
            (AllowedReply::Processed, Some(Message::Refused(_))) => {
                misfit("refused", Repair::Exit(Exit::Code(0)))
            }
            (AllowedReply::Refused, Some(Message::Envelope { .. })) => {
                misfit("accepted", Repair::Exit(Exit::Code(1)))
            }
            _ => Ok(()),
        }
    }

    fn shows(
        &self,
        part: &ExpectedPart<Self>,
        allowed: &Allowed<AllowedReply>,
        came: &[&Message],
    ) -> Option<&'static str> {
        let (Some(Message::Envelope { value, lone_surrogates }), Some(sent)) =
            (came.first(), &part.extra.sent)
        else {
            return allowed.shows;
        };
        let normal = sent.normal.first()?;
        match part.choice? {
            "process" if is_advanced(sent, value) => Some("advance"),
            "process" if !is_same(sent, value) => None,
            "process" => model::has_stages_left(normal).then_some("identity"),
            "pending_input" | "over_bound" if is_terminated(value) && !is_terminated(normal) => {
                Some("terminate")
            }
            "lone_surrogates" => Some(if *lone_surrogates { "echo" } else { "replace" }),
            "big_integers" => Some(if holds_all_of(value, normal) { "exact" } else { "round" }),
            "duplicate_keys" => {
                let fits = |at: usize| {
                    let normal = sent.normal.get(at).map(|it| vec![it.clone()]).unwrap_or_default();
                    differences(&Sent { normal, ..(**sent).clone() }, value, part.extra.mode).is_empty()
                };
                Some(if fits(0) { "last" } else { "first" })
            }
            _ => allowed.shows,
        }
    }

    fn shows_work(&self, message: &Message) -> bool {
        matches!(message, Message::Envelope { .. })
    }

    fn phrase(&self, _: &ExpectedPart<Self>, way: &AllowedReply) -> String {
        match way {
            AllowedReply::Processed => "an envelope, with exit status 0 or HTTP status 200",
            AllowedReply::Refused => "a refusal, with exit status 1 to 255 or HTTP status 400 to 499",
        }
        .to_owned()
    }

    fn text(&self, message: &Message) -> String {
        match message {
            Message::Envelope { value, .. } => value.to_text(),
            Message::Refused(how) => how.clone(),
        }
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[what_is_kept, twins, what_stops, what_ends, what_was_denied, |_, heard| {
            judge::not_kept(heard, http::KEEP_ALIVE)
        }]
    }
}

/// Allowed replies to an input, with their clause and the choice that they show. A condition that the configuration
/// declares as accepted must not be refused, except in a step that tests that choice.
fn allowed(
    input: &Input,
    facts: &Facts,
    aim: Option<&str>,
) -> (&'static str, Vec<Allowed<AllowedReply>>, Option<&'static str>) {
    let of = |stand: fn(&Acceptance) -> bool| input.traits.iter().find(move |it| stand(&it.stand));
    let refused = || vec![Allowed::answer(AllowedReply::Refused)];
    let processed = || vec![Allowed::answer(AllowedReply::Processed)];
    if let Some(wrong) = of(|it| *it == Acceptance::Refuse).or_else(|| of(|it| *it == Acceptance::Doubt)) {
        return (wrong.clause, refused(), None);
    }
    let is_left_open = |it: &&Trait| match it.stand {
        Acceptance::Open(Some(key), _, refused) => {
            aim == Some(it.clause) || facts.choices.get(key).is_none_or(|pinned| pinned == refused)
        }
        Acceptance::Open(None, ..) => true,
        _ => false,
    };
    let open: Vec<&Trait> = input.traits.iter().filter(is_left_open).collect();
    if let Some(first) = open.first() {
        let either = |taken, refused| {
            vec![
                Allowed::answer(AllowedReply::Processed).shows(taken),
                Allowed::answer(AllowedReply::Refused).shows(refused),
            ]
        };
        // Two open questions get one answer, which does not show which question it answers.
        return match first.stand {
            Acceptance::Open(Some(key), taken, refused) if open.iter().all(|it| it.stand == first.stand) => {
                (first.clause, either(taken, refused), Some(key))
            }
            _ => (first.clause, [processed(), refused()].concat(), None),
        };
    }
    match of(|it| *it == Acceptance::Accept) {
        Some(unusual) => (unusual.clause, processed(), None),
        None => ("ENV-PROC-01", processed(), Some("process")),
    }
}

fn is_truthy(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => false,
        Json::Number(number) => number.as_f64() != Some(0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
        Json::Bool(true) => true,
    }
}

/// True if `new` has every member of `old` with the exact value, in `metadata` and `outputs`.
fn holds_all_of(new: &Json, old: &Json) -> bool {
    ["metadata", "outputs"].iter().all(|name| {
        let members = old.get(name).and_then(Json::as_object).unwrap_or_default();
        members.iter().all(|(key, value)| new.get(name).and_then(|it| it.get(key)) == Some(value))
    })
}

/// Treatment of envelopes, and true if it was inferred from the canaries. An engine that returned an envelope with
/// stages left, and all other canaries, runs no stages. An engine that ran a stage of any canary runs stages.
fn mode(transcript: &Transcript) -> (Mode, bool) {
    match transcript.facts.choices.get("process").map(String::as_str) {
        Some("identity") => return (Mode::Identity, false),
        Some(_) => return (Mode::Advance, false),
        None => {}
    }
    let read = |(bytes, reply): (Vec<u8>, Vec<u8>)| {
        let sent = Input::read(&transcript.facts, &bytes).sent?;
        let reply = json::decode(json::trim(&reply), &DecodeLimits::default()).ok()?;
        Some((sent, reply.value))
    };
    let seen: Vec<(Sent, Json)> = canaries(transcript).into_iter().filter_map(read).collect();
    let has_stages_left = |(sent, _): &(Sent, Json)| sent.normal.iter().all(model::has_stages_left);
    let mode = match () {
        () if seen.iter().any(|(sent, reply)| is_advanced(sent, reply)) => Mode::Advance,
        () if seen.iter().any(has_stages_left) && seen.iter().all(|(sent, reply)| is_same(sent, reply)) => {
            Mode::Identity
        }
        () => Mode::Unknown,
    };
    (mode, true)
}

/// Canaries with their replies.
fn canaries(transcript: &Transcript) -> Vec<(Vec<u8>, Vec<u8>)> {
    let is_canary = |step: usize| transcript.plan.steps.get(step).is_some_and(|step| step.canary);
    let sessions = transcript.plan.sessions.iter().enumerate();
    let of_session = sessions.flat_map(|(session, spec)| match spec.command.as_str() {
        HTTP => judge::said(transcript, session)
            .into_iter()
            .filter(|(line, _)| is_canary(line.step))
            .filter_map(|(line, exchange)| Some((line.bytes, exchange.body?.to_vec())))
            .collect::<Vec<_>>(),
        _ => lines::of_run(transcript, session)
            .filter(|line| is_canary(line.step))
            .map(|line| (line.bytes, transcript.stdout(session)))
            .into_iter()
            .collect(),
    });
    of_session.collect()
}

/// The expectation, with the reason for an inferred mode.
fn reasoned(clause: &str, expected: String, extra: &ReplyNotes) -> String {
    let rests = extra.is_inferred
        && extra.mode == Mode::Identity
        && ["ENV-PROC-02", "ENV-DET-01", SAME].contains(&clause);
    let why = " (inferred: it returned an envelope whose stages are not finished; set `process` under \
        [choices] to be sure)";
    if rests { expected + why } else { expected }
}

/// Replies that are envelopes, with their requests.
fn envelopes<'a>(
    heard: &SessionTrace<'a, Engine>,
) -> impl Iterator<Item = (&'a PlacedExpectation<Engine>, &'a ReplyNotes, &'a Json)> {
    heard.answers().filter_map(|(asked, part, Answer { message, .. })| match message {
        Message::Envelope { value, .. } => Some((asked, &part.extra, value)),
        Message::Refused(_) => None,
    })
}

/// Findings about parts of the envelope that were lost or changed in the reply.
fn what_is_kept(trace: &Trace<'_, Engine>, heard: &SessionTrace<'_, Engine>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (asked, extra, reply) in envelopes(heard) {
        let Some(sent) = &extra.sent else { continue };
        // An envelope that had to be refused is not compared.
        let must_refuse = sent.traits.iter().any(|it| it.stand == Acceptance::Refuse);
        if must_refuse {
            continue;
        }
        if let Some(finding) = mixed_up(trace, heard, asked, sent, reply) {
            findings.push(finding);
            continue;
        }
        let is_of_spelling = asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == SPELLING)
            && trace.sessions.iter().flat_map(|other| envelopes(other)).any(|(other, extra, reply)| {
                let own = extra.sent.as_ref().filter(|own| own.normal == sent.normal);
                other.step < asked.step
                    && own.is_some_and(|own| differences(own, reply, extra.mode).is_empty())
            });
        for it in differences(sent, reply, extra.mode) {
            // A part that another spelling keeps was lost by the spelling.
            let clause = if is_of_spelling { SPELLING } else { it.clause };
            let to = sent.raw.pointer(&it.at).map(Json::to_text).filter(|text| text.len() < REPAIR_BYTES);
            let expected = reasoned(clause, it.expected, extra);
            let finding = Finding::new(clause, it.reason, expected, it.got).at(asked.step);
            // A pointer may contain names chosen by the peer.
            let is_short = it.at.len() < REPAIR_BYTES;
            findings.push(if is_short {
                finding.repaired_by(Repair::Set { at: it.at, to })
            } else {
                finding
            });
        }
    }
    findings
}

/// Finding about a reply over HTTP, or an id in it, that belongs to another request of the session: a pipelined one
/// on the same connection, or a concurrent one.
fn mixed_up(
    trace: &Trace<'_, Engine>,
    heard: &SessionTrace<'_, Engine>,
    asked: &PlacedExpectation<Engine>,
    sent: &Sent,
    reply: &Json,
) -> Option<Finding> {
    let done_us = |asked: &PlacedExpectation<Engine>| Some(heard.carriages.get(asked.line?)?.at_us);
    let were_under_way = |other: &PlacedExpectation<Engine>| {
        let ends = done_us(asked).zip(done_us(other));
        ends.is_some_and(|(own_us, other_us)| asked.at_us < other_us && other.at_us < own_us)
    };
    let of_other = |name: &'static str| {
        let id = reply.get(name).filter(|id| sent.raw.get(name).is_some_and(|own| own != *id))?;
        let has_id = |(other, _): &&(&PlacedExpectation<Engine>, _)| {
            // An envelope that is fed back has the other ids of the reply, and is sent after it.
            if name != "envelope_id" && !were_under_way(other) {
                return false;
            }
            let mut parts = other.due.parts.iter().filter_map(|part| part.extra.sent.as_ref());
            parts.any(|sent| sent.raw.get(name) == Some(id))
        };
        let mut exchanges = heard.exchanges.iter().filter(|_| heard.framing == Framing::Bodies);
        exchanges.find(has_id).map(|(other, _)| (name, other))
    };
    let (name, other) = ["envelope_id", "request_id", "session_id"].into_iter().find_map(of_other)?;
    let how = |step: usize| trace.transcript.plan.steps.get(step).and_then(|step| step.http.as_ref());
    let is_pipelined = how(asked.step)
        .zip(how(other.step))
        .is_some_and(|(one, two)| one.connection == two.connection && (one.pipelined || two.pipelined));
    let clause = if is_pipelined { http::IN_ORDER } else { http::MIXED };
    let own = sent.raw.get(name).map_or("its own id".to_owned(), Json::to_text);
    let expected = format!("/{name}: {own}");
    Some(Finding::new(clause, "mixed_up", expected, reply.to_text()).at(asked.step))
}

/// Findings about replies to equal envelopes: they must be equal in any spelling and over any transport, except for
/// generated ids, which must differ.
fn twins(trace: &Trace<'_, Engine>, heard: &SessionTrace<'_, Engine>) -> Vec<Finding> {
    let normal = |extra: &ReplyNotes| extra.sent.as_ref().map(Arc::clone);
    let are_same = |other: &ExpectedPart<Engine>, part: &ExpectedPart<Engine>| {
        normal(&other.extra).zip(normal(&part.extra)).is_some_and(|(one, two)| one.normal == two.normal)
    };
    equal_requests::twins(trace, heard, are_same).iter().flat_map(|it| parted_twins(trace, it)).collect()
}

/// Findings about two replies to equal envelopes.
fn parted_twins(trace: &Trace<'_, Engine>, twins: &EqualRequests<'_, Engine>) -> Vec<Finding> {
    let (Message::Envelope { value: other, .. }, Message::Envelope { value: reply, .. }) =
        (twins.earlier, twins.answer)
    else {
        return Vec::new();
    };
    let (asked, extra) = (twins.asked, &twins.part.extra);
    // A clause of its own says which of two objects counts.
    let Some(sent) = extra.sent.as_ref().filter(|sent| sent.second.is_none()) else { return Vec::new() };
    let mut findings = Vec::new();
    for name in ["envelope_id", "request_id", "session_id"] {
        if sent.raw.get(name).is_none() && reply.get(name) == other.get(name) {
            let expected = format!("/{name}: a new id in each call");
            findings.push(Finding::new("ENV-ACC-05", "same_id", expected, reply.to_text()).at(asked.step));
        }
    }
    let is_deterministic = is_deterministic(trace.transcript, extra.mode);
    if let Some(at) = parted(sent, other, reply).filter(|_| is_deterministic) {
        let (other, reply) = (model::normal(other), model::normal(reply));
        let value = |it: &Json| it.pointer(&at).map_or("nothing".to_owned(), Json::to_text);
        let clause = asked.aim.as_ref().map(|aim| aim.clause.0.as_str());
        let clause = clause.filter(|clause| WRITTEN_OTHERWISE.contains(clause)).unwrap_or("ENV-DET-01");
        let clause = if twins.is_of_two_channels { SAME } else { clause };
        let expected = reasoned(clause, format!("{at}: {}", value(&other)), extra);
        findings.push(Finding::new(clause, "changed", expected, value(&reply)).at(asked.step));
    }
    findings
}

/// True if equal envelopes must get equal replies.
fn is_deterministic(transcript: &Transcript, mode: Mode) -> bool {
    mode == Mode::Identity || transcript.facts.claims("deterministic")
}

/// Finding about a bound that stops the engine silently. Evidence: the engine raises a counter of a canary, but
/// returns the envelope unchanged if that counter is at its maximum.
fn what_stops(trace: &Trace<'_, Engine>, heard: &SessionTrace<'_, Engine>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (asked, extra, reply) in envelopes(heard).filter(|(_, extra, _)| extra.mode == Mode::Advance) {
        let Some((sent, normal)) = extra.sent.as_ref().and_then(|it| Some((it, it.normal.first()?))) else {
            continue;
        };
        let stopped = BOUNDS.iter().find(|(counter, most, ..)| {
            let at_bound = model::count(normal, counter);
            let is_like = |old: &Json| {
                let mut like = old.clone();
                like.set(counter, normal.get(counter).cloned().unwrap_or_default());
                like == *normal
            };
            let was_raised = |(asked, extra, reply): (&PlacedExpectation<Engine>, &ReplyNotes, &Json)| {
                let old = extra.sent.as_ref().and_then(|it| it.normal.first()).filter(|_| asked.canary);
                old.is_some_and(|old| {
                    let before = model::count(old, counter);
                    before < at_bound && model::count(reply, counter) > before && is_like(old)
                })
            };
            at_bound == model::count(normal, most)
                && trace.sessions.iter().flat_map(|other| envelopes(other)).any(was_raised)
        });
        if let Some((counter, _, _, reason)) = stopped.filter(|_| is_same(sent, reply)) {
            let expected = format!("/terminated: true with {reason}, because {counter} is at its maximum");
            findings.push(
                Finding::new(
                    "ENV-BOUND-03",
                    "stopped_in_silence",
                    expected,
                    "the envelope came back unchanged",
                )
                .at(asked.step),
            );
        }
    }
    findings
}

/// Findings about terminated envelopes that are refused, although the engine returned another terminated one.
fn what_ends(trace: &Trace<'_, Engine>, heard: &SessionTrace<'_, Engine>) -> Vec<Finding> {
    let is_of_end = |part: &ExpectedPart<Engine>| part.clause == "ENV-TERM-05" && part.choice.is_some();
    let is_kept = |heard: &SessionTrace<'_, Engine>| {
        let mut all = heard.answers();
        all.any(|(_, part, it)| is_of_end(part) && matches!(it.message, Message::Envelope { .. }))
    };
    if !trace.sessions.iter().any(is_kept) {
        return Vec::new();
    }
    let refused = heard.answers().filter_map(|(asked, part, it)| match it.message {
        Message::Refused(how) if is_of_end(part) => Some((asked, how)),
        _ => None,
    });
    let expected = "an envelope, like the replies to the other terminated envelopes of this conversation";
    refused
        .map(|(asked, how)| asked.file(Finding::new("ENV-TERM-05", "refused", expected, how.as_str())))
        .collect()
}

/// Finding about a denied confirmation that is executed one call later, when the reply is fed back and no earlier
/// stage ran again.
fn what_was_denied(trace: &Trace<'_, Engine>, heard: &SessionTrace<'_, Engine>) -> Vec<Finding> {
    let section = |of: &Json, agent: &str| of.pointer(&format!("/outputs/{agent}")).cloned();
    let differ = |one: &Json, two: &Json, agent: &str| section(one, agent) != section(two, agent);
    let was_denied = |(_, extra, reply): &(&PlacedExpectation<Engine>, &ReplyNotes, &Json)| {
        let is_denied = |sent: &Json| {
            let is = |name: &str, value: bool| sent.get(name).and_then(Json::as_bool) == Some(value);
            is("confirmation_pending", true) && is("confirmation_response", false) && !is("terminated", true)
        };
        extra.sent.as_ref().is_some_and(|sent| is_denied(&sent.raw)) && !is_terminated(reply)
    };
    let denials: Vec<&Json> =
        trace.sessions.iter().flat_map(|other| envelopes(other)).filter(was_denied).map(|it| it.2).collect();
    let is_executed = |(_, extra, reply): &(&PlacedExpectation<Engine>, &ReplyNotes, &Json)| {
        extra.sent.as_ref().is_some_and(|sent| {
            denials.contains(&&sent.raw)
                && differ(&sent.raw, reply, "execution")
                && !["perception", "intent", "plan"].iter().any(|agent| differ(&sent.raw, reply, agent))
        })
    };
    let finding = |asked: &PlacedExpectation<Engine>| {
        let expected = "/outputs/execution: unchanged, because the confirmation was denied one call before";
        Finding::new("ENV-PEND-05", "executed", expected, "a changed /outputs/execution").at(asked.step)
    };
    envelopes(heard).filter(is_executed).map(|(asked, ..)| finding(asked)).collect()
}

/// Judges a transcript.
pub fn judge(transcript: &Transcript) -> Judgement {
    // Processing an over-long envelope costs the engine memory, and the judge many times as much.
    if takes_over_size(transcript) {
        let why = "this engine processes envelopes of more than 10 MB instead of refusing them";
        return Judgement { untestable: Some(Untestable::new("over_size", why)), ..Judgement::default() };
    }
    let mut judgement = judge::judge(&Engine, transcript);
    let commands = || transcript.plan.sessions.iter().map(|session| session.command.as_str());
    let is_of_both = commands().any(|name| name == HTTP) && commands().any(|name| name != HTTP);
    if is_of_both && !is_deterministic(transcript, mode(transcript).0) {
        let why = "replies of an engine that runs stages are not compared";
        judgement.untestable.get_or_insert_with(|| Untestable::new("not_deterministic", why));
    }
    memory::judge(transcript, "ENV-SIZE-04", &mut judgement);
    judgement
}

/// True if the conversation measures the memory for refusing over-long envelopes, and the engine processes one.
fn takes_over_size(transcript: &Transcript) -> bool {
    let is_sample = |step: &&Step| matches!(&step.act, Act::SampleMemory { label } if label == memory::IDLE);
    let mut sampled = transcript.plan.steps.iter().filter(is_sample).map(|step| step.session);
    let is_over_size = |step: usize| {
        let act = transcript.plan.steps.get(step).map(|step| &step.act);
        matches!(act, Some(Act::Send { payload, .. }) if payload.len(&Vars::new()) > model::BYTES_MAX)
    };
    sampled.any(|session| match transcript.plan.sessions.get(session) {
        Some(spec) if spec.command == HTTP => transcript.of(session).any(
            |it| matches!(it.kind, EventKind::HttpReply { step, status: 200, .. } if is_over_size(step)),
        ),
        _ => transcript.exit(session) == Some(Exit::Code(0)),
    })
}

/// True if `frame` has the id of the canary `step`, which is unique.
pub(crate) fn answers_canary(step: &Step, frame: &[u8]) -> bool {
    let id = |bytes: &[u8]| {
        let decoded = json::decode(json::trim(bytes), &DecodeLimits::default()).ok()?;
        decoded.value.get("envelope_id").cloned()
    };
    let Act::Send { payload, .. } = &step.act else { return false };
    let own = payload.expand(&Vars::new()).ok().and_then(|bytes| id(&bytes));
    let is_own = |id: &Json| id.as_str().is_some_and(|id| id.starts_with(talk::CANARY_ID));
    own.filter(is_own).is_some_and(|own| id(frame) == Some(own))
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    peerproof_engine::data::transcript::strict::expectations::<Aim>(&transcript.plan)
}
