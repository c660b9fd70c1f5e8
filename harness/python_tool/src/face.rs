//! The face of a local runner and of a service: allowed replies to a request, and forbidden effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof_engine::contract::face::{
    Aim, Allowed, Expectation, Expected, ExpectedPart, Face, Frame, Framing, HttpExchange, HttpTrace, Misfit,
    Outcome, PlacedExpectation, Reading, Rule, SessionClauses, Stimulus, StimulusKind, Subject,
};
use peerproof_engine::contract::judge;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{Finding, Judgement, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines::{self, RequestLine};
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{Act, KILL_GROUP, Step};
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};
use peerproof_engine::run::matrix::canonical::canonical;

pub use super::allowed_answer::{AllowedReply, ReplyNotes};
use super::expect::{ExpectationBuilder, State};
use super::model::{Acceptance, Assured, Request};
use super::project::spec_of;
use super::talk::CANARY;

pub(crate) mod http;
mod read;
mod rules;

pub(crate) use rules::BLOCKED;

/// Command of a local runner.
pub const COMMAND: &str = "command";

/// Texts that tools print when called, and while they are imported.
pub(crate) const NOISE: [&str; 2] = ["NOISE-OF-A-TOOL", "NOISE-OF-AN-IMPORT"];

/// Reason code of a guarantee that blocks even harmless calls.
pub(crate) const NOTHING_THROUGH: &str = "nothing_let_through";

/// Choice: reply to a handshake that cannot assure all guarantees.
const SHORTFALL: &str = "handshake_shortfall";

/// General clauses about frames and processes.
pub(crate) const SESSION_CLAUSES: SessionClauses = SessionClauses {
    protocol_only: "PT-FRAME-05",
    ends_at_eof: "PT-FRAME-07",
    ends_at_term: "PT-FRAME-08",
    no_process_left: "PT-FRAME-09",
    no_file_left: "PT-FRAME-10",
    lives_on: "PT-SRV-25",
    ..SessionClauses::all("PT-FRAME-01")
};

/// The face of a local runner and of a service.
pub struct Runner;

/// Reply of a runner or a service.
#[derive(Debug, Clone)]
pub enum Message {
    /// `ok` true.
    Success {
        /// Result.
        result: Json,
        /// True if a string in it has a lone surrogate escape.
        lone_surrogates: bool,
    },
    /// `ok` false.
    Failure {
        /// `type` of the error.
        kind: String,
        /// `message` of the error.
        message: String,
        /// Its `reason_code`.
        reason: Option<String>,
        /// Exit status of the process.
        exit: Exit,
    },
    /// No output, and an exit other than status 0.
    Ended(Exit),
    /// Over HTTP: an error status with a body in any format.
    Status(u16),
    /// Over HTTP: an object that is not a reply to a call.
    Other {
        /// The object.
        value: Json,
        /// Its fault as a reply to a call.
        wrong: Box<Finding>,
    },
}

impl Face for Runner {
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

    fn session_clauses_of(&self, transcript: &Transcript, session: usize) -> SessionClauses {
        let plan = &transcript.plan;
        let own = || plan.steps.iter().filter(|step| step.session == session);
        let is_posted = plan.sessions.get(session).is_some_and(|spec| spec.command == HTTP);
        let is_spawn = |line: &RequestLine| match is_posted {
            true => Request::read_posted(&transcript.facts, &line.bytes, &Assured::new()),
            false => Request::read(&transcript.facts, &line.bytes),
        };
        let is_spawn =
            |line: &RequestLine| is_spawn(line).call.is_some_and(|call| call.role == Some("spawn"));
        let leaves = match is_posted {
            true => lines::of_session(transcript, session).iter().any(is_spawn),
            false => lines::of_run(transcript, session).is_some_and(|line| is_spawn(&line)),
        };
        let is_about = |clause: &str| own().filter_map(Aim::of).any(|aim| aim.clause.0 == clause);
        let no_process_left = match () {
            // Processes that the tool leaves running are not the runner's own.
            () if leaves => "PT-TIME-03",
            () if own().any(|step| step.act == Act::Signal(KILL_GROUP.to_owned())) => "PT-TIME-04",
            () => SESSION_CLAUSES.no_process_left,
        };
        let lives_on = if is_about(http::SURVIVES) { http::SURVIVES } else { SESSION_CLAUSES.lives_on };
        SessionClauses { no_process_left, lives_on, ..SESSION_CLAUSES }
    }

    fn begin(&self, transcript: &Transcript) -> State {
        State {
            facts: Arc::clone(&transcript.facts),
            plan: Arc::clone(&transcript.plan),
            imported: None,
            twins: BTreeMap::new(),
            slept: None,
            assured: BTreeMap::new(),
            pending: None,
        }
    }

    fn expect(
        &self,
        state: &mut State,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedReply, ReplyNotes>> {
        let line = match stimulus.what {
            StimulusKind::Said(line) => line,
            StimulusKind::Happened(EventKind::FilePut { bytes, .. }) => {
                state.imported = bytes.expand(&Vars::new()).ok().and_then(|text| {
                    let text = String::from_utf8(text).ok()?;
                    let spec: Json = spec_of(&text)?.parse().ok()?;
                    Some((spec.get("role")?.as_str()?.to_owned(), spec.get("payload")?.clone()))
                });
                return None;
            }
            StimulusKind::Happened(kind) => {
                http::learn(state, stimulus.session, kind);
                return None;
            }
            StimulusKind::Begun => return None,
        };
        let step = stimulus.step.and_then(|step| state.plan.steps.get(step));
        let aim = step.and_then(Aim::of);
        let is_control = aim.as_ref().is_some_and(is_control);
        let aim = aim.map(|aim| aim.clause.0).unwrap_or_default();
        let of_way = stimulus.how.and_then(|how| http::carried(state, how, &line.bytes, &aim));
        let ExpectationBuilder { clause, ways, choice, effects, extra } = match (of_way, stimulus.how) {
            (Some(made), _) => made,
            (None, Some(how)) if http::is_handshake(how) => {
                http::handshake(state, &line.bytes, stimulus.session, line.step)
            }
            (None, how) => {
                let request = match how {
                    Some(_) => {
                        let assured = state.assured.entry(stimulus.session).or_default();
                        Request::read_posted(&state.facts, &line.bytes, assured)
                    }
                    None => Request::read(&state.facts, &line.bytes),
                };
                match request.of(|it| *it == Acceptance::Refuse) {
                    Some(wrong) => state.refused(wrong.clause, &line.bytes, &aim),
                    None => state.accepted(request, stimulus.session, &aim),
                }
            }
        };
        let (mut ways, mut extra) = (ways, extra);
        if is_control {
            let others = [
                AllowedReply::Success(None),
                AllowedReply::Failure,
                AllowedReply::Refused,
                AllowedReply::Ended,
                AllowedReply::TimedOut,
            ];
            ways.extend(others.map(Allowed::answer));
            extra.any_exit = true;
        }
        // A peer that refuses a valid request is at fault for that, whatever its exit status.
        let is_failure = |way: &Allowed<AllowedReply>| {
            matches!(&way.outcome, Outcome::Answer(AllowedReply::Failure | AllowedReply::Raised(..)))
        };
        extra.may_fail = ways.iter().any(is_failure);
        extra.any_exit |= !extra.may_fail;
        let is_ended = |act: &Act| matches!(act, Act::Signal(_));
        if stimulus.how.is_none()
            && state.plan.steps.iter().any(|it| it.session == stimulus.session && is_ended(&it.act))
        {
            ways.push(Allowed::silence());
        }
        Some(Expectation::one(Expected {
            clause,
            subject: Subject::Turn,
            allowed: ways,
            choice,
            effects,
            extra,
        }))
    }

    fn carried(
        &self,
        asked: &mut PlacedExpectation<Self>,
        _: &RequestLine,
        how: Option<&Carriage>,
        exchange: &HttpExchange<'_>,
    ) {
        http::allow(asked, how, exchange);
    }

    fn status(&self, carried: &HttpTrace<'_, Self>) -> Judgement {
        http::status(carried)
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Message> {
        read::read(frame)
    }

    fn fit(&self, part: &ExpectedPart<Self>, way: &AllowedReply, came: &[&Message]) -> Result<(), Misfit> {
        let misfit = |rank, reason, repair| Err(Misfit { rank, clause: None, reason, repair });
        let set = |at: &str, to: Option<String>| Repair::Set {
            at: at.to_owned(),
            to: to.filter(|text| text.len() < 1_000),
        };
        let Some(came) = came.first() else { return misfit(9, "no_reply", Repair::Send) };
        let ok = |value: &Json| value.get("ok").and_then(Json::as_bool);
        match (way, came) {
            (AllowedReply::Handshake(_), Message::Other { value, .. }) if ok(value) == Some(true) => Ok(()),
            (AllowedReply::Handshake(true), Message::Other { value, .. }) if ok(value) == Some(false) => {
                Ok(())
            }
            (AllowedReply::Handshake(true), Message::Failure { .. }) => Ok(()),
            // A blocked call without a reply is reported with another reason.
            (_, Message::Status(_)) if part.extra.is_blocked => Ok(()),
            (AllowedReply::Handshake(_), _) => misfit(1, "no_handshake", set("/ok", Some("true".to_owned()))),
            (AllowedReply::Refused, Message::Other { value, .. }) if ok(value) == Some(true) => {
                misfit(1, "accepted", set("/ok", Some("false".to_owned())))
            }
            // The fault of its form is reported already.
            (_, Message::Other { .. }) => Ok(()),
            (AllowedReply::Refused | AllowedReply::TimedOut, Message::Status(_))
            | (AllowedReply::TimedOut, Message::Failure { .. }) => Ok(()),
            (_, Message::Status(_)) => misfit(2, "http_status", Repair::Drop),
            (AllowedReply::Success(None), Message::Success { .. }) => Ok(()),
            (AllowedReply::Success(Some(wanted)), Message::Success { result, .. }) => {
                match json::is_kept(wanted, result) {
                    true => Ok(()),
                    false => misfit(0, "wrong_result", set("/result", Some(wanted.to_text()))),
                }
            }
            (AllowedReply::Success(_), Message::Failure { .. }) => {
                misfit(1, "failed", set("/ok", Some("true".to_owned())))
            }
            (_, Message::Success { .. }) => misfit(1, "accepted", set("/ok", Some("false".to_owned()))),
            (AllowedReply::Raised(wanted, is_own), Message::Failure { kind, .. }) => {
                let is_right = kind == wanted || *is_own && kind.ends_with(&format!(".{wanted}"));
                match is_right {
                    true => Ok(()),
                    false => misfit(0, "wrong_type", set("/error/type", Some(format!("{wanted:?}")))),
                }
            }
            (AllowedReply::Failure | AllowedReply::Refused, Message::Failure { .. }) => Ok(()),
            (AllowedReply::Refused, Message::Ended(Exit::Code(_)))
            | (AllowedReply::Ended, Message::Ended(_)) => Ok(()),
            (AllowedReply::Ended, Message::Failure { .. }) => misfit(1, "answered", Repair::Drop),
            (_, Message::Ended(_)) => misfit(2, "crashed", Repair::Exit(Exit::Code(0))),
        }
    }

    fn shows(
        &self,
        part: &ExpectedPart<Self>,
        allowed: &Allowed<AllowedReply>,
        came: &[&Message],
    ) -> Option<&'static str> {
        match (part.choice?, came.first()?) {
            (SHORTFALL, Message::Other { value, .. }) => {
                match value.get("enforcement").and_then(Json::as_str) {
                    Some("partial") => Some("partial"),
                    Some("none") => Some("none"),
                    _ => Some("error").filter(|_| value.get("ok").and_then(Json::as_bool) == Some(false)),
                }
            }
            (SHORTFALL, Message::Failure { .. }) => Some("error"),
            ("lone_surrogates", Message::Success { lone_surrogates, .. }) => {
                Some(if *lone_surrogates { "echo" } else { "replace" })
            }
            ("big_integers", Message::Success { result, .. }) => {
                let call = part.extra.call.as_ref()?;
                let kept =
                    |number: &json::Number| number.is_big() && call.payload.has_number(|it| it == number);
                Some(if result.has_number(kept) { "exact" } else { "round" })
            }
            _ => allowed.shows,
        }
    }

    fn leaves_open(
        &self,
        part: &ExpectedPart<Self>,
        aim: Option<&Aim>,
        came: &[&Message],
    ) -> Option<Untestable> {
        if aim.is_some_and(is_control) && !matches!(came.first(), Some(Message::Success { .. })) {
            let why = "with this guarantee, even a call without a forbidden effect fails";
            return Some(Untestable::new(NOTHING_THROUGH, why));
        }
        let why = "the handshake did not report the guarantee as `enforced`";
        part.extra.is_unclear.then(|| Untestable::new("not_assured", why))
    }

    fn phrase(&self, _: &ExpectedPart<Self>, way: &AllowedReply) -> String {
        match way {
            AllowedReply::Success(None) => "`ok` true".to_owned(),
            AllowedReply::Success(Some(result)) => {
                format!("`ok` true with the result {}", result.to_text())
            }
            AllowedReply::Raised(kind, _) => format!("`ok` false with the type {kind}"),
            AllowedReply::Failure => "`ok` false".to_owned(),
            AllowedReply::Refused => {
                "a refusal: `ok` false, a non-zero exit status without output, or HTTP status 4xx".to_owned()
            }
            AllowedReply::TimedOut => "no success, because the timeout of the tool has passed".to_owned(),
            AllowedReply::Handshake(_) => "the reply to a handshake".to_owned(),
            AllowedReply::Ended => "a non-zero exit status or a signal, and no output".to_owned(),
        }
    }

    fn text(&self, message: &Message) -> String {
        match message {
            Message::Success { result, .. } => format!("`ok` true, {}", result.to_text()),
            Message::Failure { kind, message, reason, exit } => {
                format!("`ok` false, {kind}: {message}, reason_code {reason:?}, {exit}")
            }
            Message::Ended(exit) => format!("no output, {exit}"),
            Message::Status(status) => format!("status {status}"),
            Message::Other { value, .. } => value.to_text(),
        }
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[
            rules::exits,
            rules::messages,
            rules::reasons,
            rules::held_up,
            http::forms,
            http::handshakes,
            http::timely,
            http::concurrent,
            |_, heard| judge::not_kept(heard, http::KEEP_ALIVE),
        ]
    }
}

/// True for a step which shows that a guarantee does not block harmless calls.
fn is_control(aim: &Aim) -> bool {
    aim.reason.as_deref() == Some(NOTHING_THROUGH)
}

/// A reply without differences that do not count between peers: form and words of refusals.
pub fn compared(part: &ExpectedPart<Runner>, message: &Message) -> String {
    let may_be_refused = part.allowed_answers().any(|(_, way)| *way == AllowedReply::Refused);
    match message {
        Message::Success { result, .. } => format!("`ok` true, {}", canonical(result)),
        Message::Failure { .. } | Message::Ended(_) | Message::Status(_) if may_be_refused => {
            "a refusal".to_owned()
        }
        Message::Failure { kind, reason, .. } => format!("`ok` false, {kind}, reason_code {reason:?}"),
        Message::Ended(_) => "no output".to_owned(),
        Message::Status(status) => format!("status {status}"),
        Message::Other { .. } => "another object".to_owned(),
    }
}

/// Findings about requests of a recorded caller that runners may refuse.
pub(crate) fn wrong_requests(transcript: &Transcript) -> Vec<Finding> {
    let lines = (0..transcript.plan.sessions.len()).filter_map(|session| lines::of_run(transcript, session));
    let wrong = lines.filter(|line| !line.bytes.is_empty()).filter_map(|line| {
        let request = Request::read(&transcript.facts, &line.bytes);
        // A guarantee with a value of the wrong type is not a valid request either.
        let wrong = request
            .of(|it| *it == Acceptance::Refuse)
            .or_else(|| request.of(|it| *it == Acceptance::Strict))?;
        let got = String::from_utf8_lossy(&line.bytes).into_owned();
        Some(Finding::new(wrong.clause, "wrong_request", "a valid request to a runner", got).at(line.step))
    });
    wrong.collect()
}

/// Judges a transcript.
pub fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge::judge(&Runner, transcript);
    http::memory(transcript, &mut judgement);
    http::nothing_listed(transcript, &mut judgement);
    http::told_once(&mut judgement);
    http::used_up(transcript, &mut judgement);
    http::unknown_caller(transcript, &mut judgement);
    judgement
}

/// True if `frame` has the word of the canary `step`, which is unique.
pub(crate) fn answers_canary(step: &Step, frame: &[u8]) -> bool {
    let word = |bytes: &[u8], member: &str| {
        let decoded = json::decode(json::trim(bytes), &DecodeLimits::default()).ok()?;
        decoded.value.get(member)?.get(CANARY).cloned()
    };
    let Act::Send { payload, .. } = &step.act else { return false };
    let own = payload.expand(&Vars::new()).ok().and_then(|bytes| word(&bytes, "payload"));
    step.canary && own.is_some_and(|own| word(frame, "result") == Some(own))
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    peerproof_engine::data::transcript::strict::expectations::<Aim>(&transcript.plan)
}
