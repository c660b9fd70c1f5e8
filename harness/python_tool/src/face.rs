//! The face of a local runner and of a service: what may be answered to a request, and what must not be seen then.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof_engine::carriage::{Carriage, HTTP};
use peerproof_engine::face::{
    Aim, Allowed, Asked, Due, Expected, Face, Frame, Framing, Manners, Misfit, Outcome, Part, Reading, Rule,
    Stimulus, Subject, What,
};
use peerproof_engine::finding::{Finding, Judgement, Repair};
use peerproof_engine::json::{self, DecodeErrorKind, DecodeLimits, Json};
use peerproof_engine::judge::{self, Answer, Carried, Exchange, Heard, Trace};
use peerproof_engine::lines::{self, Line};
use peerproof_engine::payload::{Vars, shorten};
use peerproof_engine::plan::{Act, Step};
use peerproof_engine::transcript::{Exit, Kind, Transcript};

use super::expect::{Made, State};
use super::model::{Call, Request, Stand, is_same};
use super::project::spec_of;
use super::talk::CANARY;

pub mod http;

/// The command of a local runner.
pub const COMMAND: &str = "command";

/// What the reply of a call says that a guarantee forbids.
const BLOCKED: &str = "guarantee_blocked";

/// What tools print, later and while they are imported.
pub const NOISE: [&str; 2] = ["NOISE-OF-A-TOOL", "NOISE-OF-AN-IMPORT"];

/// The choice of what a handshake says that cannot give all.
const SHORTFALL: &str = "handshake_shortfall";

/// Most bytes of a reply that a finding quotes.
const QUOTED_CHARS: usize = 200;

/// Time that a process which a tool leaves running may hold up the reply, microseconds.
const HELD_UP_US: f64 = 2e6;

const MANNERS: Manners = Manners {
    protocol_only: "PT-FRAME-05",
    ends_at_eof: "PT-FRAME-07",
    ends_at_term: "PT-FRAME-08",
    no_process_left: "PT-FRAME-09",
    no_file_left: "PT-FRAME-10",
    lives_on: "PT-SRV-25",
    ..Manners::all("PT-FRAME-01")
};

/// A local runner, or a service.
pub struct Runner;

/// What a runner or a service answers.
#[derive(Debug, Clone)]
pub enum Message {
    /// `ok` true.
    Success {
        /// The result.
        result: Json,
        /// Some string in it holds a surrogate escape without its other half.
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
        /// How the process ended.
        exit: Exit,
    },
    /// Nothing, and another end than exit status 0.
    Ended(Exit),
    /// Over HTTP: a status of its own, in its own words.
    Status(u16),
    /// Over HTTP: an object that is no reply to a call.
    Other {
        /// The object.
        value: Json,
        /// What is wrong with it as such a reply.
        wrong: Box<Finding>,
    },
}

/// How a request may be answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// By success, with this result where there is one to compare with.
    Success(Option<Json>),
    /// By failure: an exception of this class, which is the tool's own or not.
    Raised(String, bool),
    /// By failure.
    Failure,
    /// By a refusal.
    Refused,
    /// By the end of the process and no word.
    Ended,
    /// By a failure or a status that say that the time of the tool was over.
    TimedOut,
    /// By the reply to a handshake, which may fail or not.
    Handshake(bool),
}

/// What an answer is judged by.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// The call.
    pub call: Option<Call>,
    /// What the tool raises.
    pub raises: Option<String>,
    /// A failure comes with any exit status.
    pub any_exit: bool,
    /// The call meets a guarantee: on a plain route that nothing catches, and in a way that nothing wraps.
    pub is_blocked: bool,
    /// It may find nothing instead.
    pub may_be_empty: bool,
    /// The route.
    pub route: String,
    /// It is refused.
    pub is_refusal: bool,
    /// The tool may fail.
    pub may_fail: bool,
    /// Over HTTP: the time after which the tool is stopped, milliseconds, and the clause that says so.
    pub limit: Option<(u64, &'static str)>,
    /// Of a handshake: the guarantees that are required.
    pub required: Option<Vec<String>>,
    /// A guarantee was asked for, and nobody said that it is in force.
    pub is_unclear: bool,
}

impl Face for Runner {
    type Message = Message;
    type Way = Way;
    type Extra = Extra;
    type State = State;

    fn framing(&self, command: &str) -> Option<Framing> {
        Some(if command == HTTP { Framing::Bodies } else { Framing::Whole })
    }

    fn manners(&self) -> &Manners {
        &MANNERS
    }

    fn manners_of(&self, transcript: &Transcript, session: usize) -> Manners {
        let line = lines::of_run(transcript, session);
        let call = line.and_then(|line| Request::read(&transcript.facts, &line.bytes).call);
        match call.and_then(|call| call.role) {
            // What a tool leaves running is not the runner's own.
            Some("spawn") => Manners { no_process_left: "PT-TIME-03", ..MANNERS },
            _ => MANNERS,
        }
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

    fn expect(&self, state: &mut State, stimulus: &Stimulus<'_>) -> Option<Due<Way, Extra>> {
        let line = match stimulus.what {
            What::Said(line) => line,
            What::Happened(Kind::FilePut { bytes, .. }) => {
                state.imported = bytes.expand(&Vars::new()).ok().and_then(|text| {
                    let text = String::from_utf8(text).ok()?;
                    let spec: Json = spec_of(&text)?.parse().ok()?;
                    Some((spec.get("role")?.as_str()?.to_owned(), spec.get("payload")?.clone()))
                });
                return None;
            }
            What::Happened(kind) => {
                http::learn(state, stimulus.session, kind);
                return None;
            }
            What::Begun => return None,
        };
        let step = stimulus.step.and_then(|step| state.plan.steps.get(step));
        let aim = step.and_then(Aim::of).map(|aim| aim.clause.0).unwrap_or_default();
        let of_way = stimulus.how.and_then(|how| http::carried(state, how, &line.bytes, &aim));
        let Made { clause, ways, choice, effects, extra } = match (of_way, stimulus.how) {
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
                match request.of(|it| *it == Stand::Refuse) {
                    Some(wrong) => state.refused(wrong.clause, &line.bytes, &aim),
                    None => state.accepted(request, stimulus.session, &aim),
                }
            }
        };
        let (mut ways, mut extra) = (ways, extra);
        // Whoever refuses what is right has that to answer for, and may do it by an exit status.
        let is_failure =
            |way: &Allowed<Way>| matches!(&way.outcome, Outcome::Answer(Way::Failure | Way::Raised(..)));
        extra.may_fail = ways.iter().any(is_failure);
        extra.any_exit |= !extra.may_fail;
        let is_ended = |act: &Act| matches!(act, Act::Signal(_));
        if state.plan.steps.iter().any(|it| it.session == stimulus.session && is_ended(&it.act)) {
            ways.push(Allowed::silence());
        }
        Some(Due::one(Expected { clause, subject: Subject::Turn, allowed: ways, choice, effects, extra }))
    }

    fn carried(&self, asked: &mut Asked<Self>, _: &Line, how: Option<&Carriage>, exchange: &Exchange<'_>) {
        http::allow(asked, how, exchange);
    }

    fn status(&self, carried: &Carried<'_, Self>) -> Judgement {
        http::status(carried)
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Message> {
        let text = json::trim(frame.bytes);
        let exit = frame.exit.unwrap_or(Exit::Code(0));
        // A status that says something of its own need not come with a reply.
        let own_status = frame.status.filter(|status| !matches!(status, 200..=299));
        if text.is_empty() {
            return match exit {
                _ if own_status.is_some() => {
                    own_status.map_or(Reading::Blank, |it| Reading::Message(Message::Status(it)))
                }
                _ if frame.status.is_some() && frame.is_due => {
                    let got = format!("status {} and no body", frame.status.unwrap_or_default());
                    Reading::Broken(Finding::new(http::ANSWER, "no_body", "one JSON object", got))
                }
                // Nothing came; how it ended is told by the judge.
                Exit::Code(0) => Reading::Blank,
                exit => Reading::Message(Message::Ended(exit)),
            };
        }
        let quoted = || shorten(&String::from_utf8_lossy(frame.bytes), QUOTED_CHARS).into_owned();
        let broken = |clause, reason, expected: &str| {
            Reading::Broken(Finding::new(clause, reason, expected, format!("{exit}: {}", quoted())))
        };
        let holds = |word: &str| String::from_utf8_lossy(text).contains(word);
        let alone = if frame.status.is_some() { http::ANSWER } else { "PT-FRAME-05" };
        let decoded = match json::decode(text, &DecodeLimits::default()) {
            Ok(decoded) if decoded.value.as_object().is_some() => decoded,
            _ if own_status.is_some() && !holds(NOISE[0]) && !holds(NOISE[1]) => {
                return own_status.map_or(Reading::Blank, |it| Reading::Message(Message::Status(it)));
            }
            _ if frame.status.is_some() && !frame.is_due => {
                return Reading::Message(Message::Status(frame.status.unwrap_or_default()));
            }
            Ok(_) => return broken(alone, "no_object", "one JSON object"),
            Err(error) => {
                let expected = "one JSON object and nothing else";
                return match error.kind {
                    _ if holds(NOISE[1]) => broken("PT-OUT-02", "tool_output", expected),
                    _ if holds(NOISE[0]) => broken("PT-OUT-01", "tool_output", expected),
                    DecodeErrorKind::TrailingBytes => broken(alone, "more_output", expected),
                    DecodeErrorKind::InvalidUtf8 if frame.status.is_none() => {
                        broken("PT-FRAME-06", "not_utf8", expected)
                    }
                    _ if !text.starts_with(b"{") => broken(alone, "no_json", expected),
                    DecodeErrorKind::UnexpectedEnd => broken("PT-RES-06", "half_written", expected),
                    DecodeErrorKind::UnexpectedByte { .. } if holds("NaN") || holds("Infinity") => {
                        broken("PT-RES-04", "no_json", "a failure in the place of what JSON lacks")
                    }
                    _ => broken("PT-REPLY-05", "no_json", "strict JSON"),
                };
            }
        };
        let reply = &decoded.value;
        let is_reply = reply.get("ok").and_then(Json::as_bool).is_some();
        if let Some(status) = frame.status.filter(|_| !frame.is_due && !is_reply) {
            return Reading::Message(Message::Status(status));
        }
        if own_status.is_some() && reply.get("ok").and_then(Json::as_bool).is_none() {
            return own_status.map_or(Reading::Blank, |it| Reading::Message(Message::Status(it)));
        }
        let broken = |clause, reason, expected: &str| match (broken(clause, reason, expected), own_status) {
            (_, Some(status)) if reply.get("ok").and_then(Json::as_bool) == Some(false) => {
                Reading::Message(Message::Status(status))
            }
            (Reading::Broken(wrong), _) if frame.status.is_some() => {
                Reading::Message(Message::Other { value: reply.clone(), wrong: Box::new(wrong) })
            }
            (reading, _) => reading,
        };
        let is_null = |name: &str| reply.get(name).is_none_or(Json::is_null);
        let version = reply.get("protocol_version");
        let has_version = match frame.status {
            Some(_) if version.is_none() => true,
            _ => version.and_then(Json::as_i64) == Some(1),
        };
        match reply.get("ok").and_then(Json::as_bool) {
            // One form for all replies of a service is a form: that of a handshake has no result.
            Some(true)
                if has_version
                    && is_null("error")
                    && reply.get("result").is_some()
                    && !(is_null("result") && reply.get("supported_guarantees").is_some()) =>
            {
                match exit {
                    Exit::Code(0) => Reading::Message(Message::Success {
                        result: reply.get("result").cloned().unwrap_or_default(),
                        lone_surrogates: decoded.facts.lone_surrogates,
                    }),
                    _ => broken("PT-FAIL-05", "status_of_success", "exit status 0 with `ok` true"),
                }
            }
            Some(false) => {
                let error = |name: &str| reply.get("error").and_then(|error| error.get(name));
                let text = |name: &str| error(name).and_then(Json::as_str);
                let reason = error("reason_code").filter(|reason| !reason.is_null());
                match (text("type").filter(|kind| !kind.is_empty()), text("message")) {
                    (Some(kind), Some(message)) if has_version && is_null("result") => {
                        if reason.is_some_and(|reason| reason.as_str().is_none()) {
                            return broken(
                                "PT-REPLY-03",
                                "reason_code",
                                "`reason_code` a string, absent or null",
                            );
                        }
                        Reading::Message(Message::Failure {
                            kind: kind.to_owned(),
                            message: message.to_owned(),
                            reason: reason.and_then(Json::as_str).map(str::to_owned),
                            exit,
                        })
                    }
                    _ => broken(
                        "PT-REPLY-02",
                        "form_of_failure",
                        "`ok` false, `protocol_version` 1, `error` with `type` and `message`, no `result`",
                    ),
                }
            }
            _ => broken(
                "PT-REPLY-01",
                "form_of_success",
                "`ok` true or false, `protocol_version` 1, `result`, no `error`",
            ),
        }
    }

    fn fit(&self, _: &Part<Self>, way: &Way, came: &[&Message]) -> Result<(), Misfit> {
        let misfit = |rank, reason, repair| Err(Misfit { rank, clause: None, reason, repair });
        let set = |at: &str, to: Option<String>| Repair::Set {
            at: at.to_owned(),
            to: to.filter(|text| text.len() < 1_000),
        };
        let Some(came) = came.first() else { return misfit(9, "no_reply", Repair::Send) };
        let ok = |value: &Json| value.get("ok").and_then(Json::as_bool);
        match (way, came) {
            (Way::Handshake(_), Message::Other { value, .. }) if ok(value) == Some(true) => Ok(()),
            (Way::Handshake(true), Message::Other { value, .. }) if ok(value) == Some(false) => Ok(()),
            (Way::Handshake(true), Message::Failure { .. }) => Ok(()),
            (Way::Handshake(_), _) => misfit(1, "no_handshake", set("/ok", Some("true".to_owned()))),
            (Way::Refused, Message::Other { value, .. }) if ok(value) == Some(true) => {
                misfit(1, "accepted", set("/ok", Some("false".to_owned())))
            }
            // What is wrong with it is told by its form.
            (_, Message::Other { .. }) => Ok(()),
            (Way::Refused | Way::TimedOut, Message::Status(_)) | (Way::TimedOut, Message::Failure { .. }) => {
                Ok(())
            }
            (_, Message::Status(_)) => misfit(2, "http_status", Repair::Drop),
            (Way::Success(None), Message::Success { .. }) => Ok(()),
            (Way::Success(Some(wanted)), Message::Success { result, .. }) => match is_same(wanted, result) {
                true => Ok(()),
                false => misfit(0, "wrong_result", set("/result", Some(wanted.to_text()))),
            },
            (Way::Success(_), Message::Failure { .. }) => {
                misfit(1, "failed", set("/ok", Some("true".to_owned())))
            }
            (_, Message::Success { .. }) => misfit(1, "accepted", set("/ok", Some("false".to_owned()))),
            (Way::Raised(wanted, is_own), Message::Failure { kind, .. }) => {
                let is_right = kind == wanted || *is_own && kind.ends_with(&format!(".{wanted}"));
                match is_right {
                    true => Ok(()),
                    false => misfit(0, "wrong_type", set("/error/type", Some(format!("{wanted:?}")))),
                }
            }
            (Way::Failure | Way::Refused, Message::Failure { .. }) => Ok(()),
            (Way::Refused, Message::Ended(Exit::Code(_))) | (Way::Ended, Message::Ended(_)) => Ok(()),
            (Way::Ended, Message::Failure { .. }) => misfit(1, "answered", Repair::Drop),
            (_, Message::Ended(_)) => misfit(2, "crashed", Repair::Exit(Exit::Code(0))),
        }
    }

    fn shows(&self, part: &Part<Self>, allowed: &Allowed<Way>, came: &[&Message]) -> Option<&'static str> {
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

    fn leaves_open(&self, part: &Part<Self>, _: Option<&Aim>, _: &[&Message]) -> Option<String> {
        let why = "not_assured: the handshake did not say `enforced` of the guarantee";
        part.extra.is_unclear.then(|| why.to_owned())
    }

    fn phrase(&self, _: &Part<Self>, way: &Way) -> String {
        match way {
            Way::Success(None) => "`ok` true".to_owned(),
            Way::Success(Some(result)) => {
                format!("`ok` true with the result {}", shorten(&result.to_text(), QUOTED_CHARS))
            }
            Way::Raised(kind, _) => format!("`ok` false with the type {kind}"),
            Way::Failure => "`ok` false".to_owned(),
            Way::Refused => {
                "a refusal: `ok` false, an exit status other than 0 and no output, or over HTTP 4xx"
                    .to_owned()
            }
            Way::TimedOut => "no success: the time of the tool was over".to_owned(),
            Way::Handshake(_) => "the reply to a handshake".to_owned(),
            Way::Ended => "an exit status other than 0, or a signal, and no output".to_owned(),
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
            exits,
            messages,
            reasons,
            held_up,
            http::forms,
            http::handshakes,
            http::late,
            http::concurrent,
            |_, heard| judge::not_kept(heard, http::KEEP_ALIVE),
        ]
    }
}

/// The answers that came, each with what was asked.
fn answers<'a>(
    heard: &Heard<'a, Runner>,
) -> impl Iterator<Item = (&'a Asked<Runner>, &'a Extra, &'a Message)> {
    heard.answers().map(|(asked, part, Answer { message, .. })| (asked, &part.extra, message))
}

/// A failure has exit status 0, but where it may have another.
fn exits(_: &Trace<'_, Runner>, heard: &Heard<'_, Runner>) -> Vec<Finding> {
    let wrong = |(asked, extra, message): (&Asked<Runner>, &Extra, &Message)| {
        let Message::Failure { exit, .. } = message else { return None };
        if *exit == Exit::Code(0) || extra.any_exit {
            return None;
        }
        let is_missing = extra.call.as_ref().is_some_and(|call| call.role.is_none());
        let clause = if is_missing { "PT-REQ-09" } else { "PT-FAIL-06" };
        let finding = Finding::new(clause, "exit_status", "exit status 0 with `ok` false", exit.to_string());
        Some(finding.repaired_by(Repair::Exit(Exit::Code(0))).at(asked.step))
    };
    answers(heard).filter_map(wrong).collect()
}

/// The message of a failure holds what the exception says.
fn messages(_: &Trace<'_, Runner>, heard: &Heard<'_, Runner>) -> Vec<Finding> {
    let wrong = |(asked, extra, message): (&Asked<Runner>, &Extra, &Message)| {
        let (Some(text), Message::Failure { message, .. }) = (&extra.raises, message) else { return None };
        if message.contains(text.as_str()) {
            return None;
        }
        let expected = format!("a message that contains {text:?}");
        let repair = Repair::Set { at: "/error/message".to_owned(), to: Some(format!("{text:?}")) };
        let finding = Finding::new("PT-FAIL-03", "wrong_message", expected, format!("{message:?}"));
        Some(finding.repaired_by(repair).at(asked.step))
    };
    answers(heard).filter_map(wrong).collect()
}

/// What a guarantee forbids is answered by its reason, and nothing else is.
fn reasons(_: &Trace<'_, Runner>, heard: &Heard<'_, Runner>) -> Vec<Finding> {
    let wrong = |(asked, extra, message): (&Asked<Runner>, &Extra, &Message)| {
        let call = extra.call.as_ref()?;
        let reason = match message {
            Message::Failure { reason, .. } => reason.as_deref(),
            _ => None,
        };
        let finding = match (extra.is_blocked, message) {
            (true, Message::Failure { .. }) if reason != Some(BLOCKED) => {
                let clause = if extra.route == "urllib" { "PT-GUAR-02" } else { "PT-GUAR-01" };
                let expected = format!("`reason_code` {BLOCKED:?}");
                Finding::new(clause, "no_reason", expected, format!("{reason:?}"))
            }
            (true, Message::Success { .. }) if extra.may_be_empty => return None,
            (true, Message::Success { .. } | Message::Ended(_) | Message::Status(_)) => {
                let expected = format!("`ok` false with `reason_code` {BLOCKED:?}");
                Finding::new("PT-GUAR-01", "not_blocked", expected, Runner.text(message))
            }
            (false, _) if reason == Some(BLOCKED) && !call.asks_for_some && !call.is_sandboxed => {
                let expected = format!("`reason_code` {BLOCKED:?} with a guarantee alone");
                Finding::new("PT-GUAR-08", "reason_without_guarantee", expected, Runner.text(message))
            }
            _ => return None,
        };
        let to = Some(format!("{BLOCKED:?}")).filter(|_| extra.is_blocked);
        Some(finding.repaired_by(Repair::Set { at: "/error/reason_code".to_owned(), to }).at(asked.step))
    };
    answers(heard).filter_map(wrong).collect()
}

/// What a tool leaves running does not hold up the reply: compared with a canary of the same conversation.
fn held_up(trace: &Trace<'_, Runner>, heard: &Heard<'_, Runner>) -> Vec<Finding> {
    let took = |session: usize| {
        let at = |is: fn(&Kind) -> bool| {
            trace.transcript.of(session).find(|event| is(&event.kind)).map(|event| event.at_us)
        };
        let from = at(|kind| matches!(kind, Kind::StdinClosed))?;
        Some(at(|kind| matches!(kind, Kind::Exited { .. }))?.saturating_sub(from))
    };
    let is_spawn = |extra: &Extra| extra.call.as_ref().is_some_and(|call| call.role == Some("spawn"));
    let Some((asked, ..)) = answers(heard).find(|(_, extra, _)| is_spawn(extra)) else { return Vec::new() };
    let usual = trace.asked.iter().filter(|asked| asked.canary).find_map(|asked| took(asked.session));
    let (Some(usual), Some(took)) = (usual, took(heard.session)) else { return Vec::new() };
    if took.saturating_sub(usual) as f64 <= HELD_UP_US * trace.transcript.timeout_scale {
        return Vec::new();
    }
    let got = format!("{} ms, and {} ms without such a process", took / 1_000, usual / 1_000);
    let expected = "a reply that is held up for 2 s at most";
    let finding = Finding::new("PT-TIME-02", "held_up", expected, got);
    vec![finding.repaired_by(Repair::Sooner).at(asked.step)]
}

/// Judges a transcript.
pub fn judge(transcript: &Transcript) -> Judgement {
    judge::judge(&Runner, transcript)
}

/// Whether `frame` is certainly the answer to the canary `step`: it has its word, which no other has.
pub fn answers_canary(step: &Step, frame: &[u8]) -> bool {
    let word = |bytes: &[u8], member: &str| {
        let decoded = json::decode(json::trim(bytes), &DecodeLimits::default()).ok()?;
        decoded.value.get(member)?.get(CANARY).cloned()
    };
    let Act::Send { payload, .. } = &step.act else { return false };
    let own = payload.expand(&Vars::new()).ok().and_then(|bytes| word(&bytes, "payload"));
    step.canary && own.is_some_and(|own| word(frame, "result") == Some(own))
}

/// Refuses a plan whose aims are not wholly read.
///
/// # Errors
/// One sentence.
pub fn admit(transcript: &Transcript) -> Result<(), String> {
    peerproof_engine::transcript::strict::expectations::<Aim>(&transcript.plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use include_dir::{Dir, include_dir};
    use peerproof_engine::schema::Schemas;

    static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");

    /// The clause that a reply breaks by its form.
    fn broken(text: &str, exit: Exit) -> Option<String> {
        let frame = Frame { bytes: text.as_bytes(), exit: Some(exit), status: None, is_due: true };
        match Runner.read(&frame) {
            Reading::Broken(finding) => Some(finding.clause.0),
            _ => None,
        }
    }

    #[test]
    fn replies_have_a_form_by_the_model_and_by_the_schema() {
        let schemas = Schemas::load_dir(&FILES).unwrap();
        for (text, clause) in [
            (r#"{"ok":true,"protocol_version":1,"result":null}"#, None),
            (r#"{"ok":true,"protocol_version":1.0,"result":7,"error":null,"x":1}"#, None),
            (
                r#"{"ok":false,"protocol_version":1,"error":{"type":"E","message":"","reason_code":null}}"#,
                None,
            ),
            (r#"{"ok":true,"protocol_version":1}"#, Some("PT-REPLY-01")),
            (r#"{"ok":true,"result":{}}"#, Some("PT-REPLY-01")),
            (r#"{"ok":1,"protocol_version":1,"result":{}}"#, Some("PT-REPLY-01")),
            (r#"{"ok":true,"protocol_version":1,"result":{},"error":{}}"#, Some("PT-REPLY-01")),
            (r#"{"ok":false,"protocol_version":1,"error":{"type":"","message":"m"}}"#, Some("PT-REPLY-02")),
            (r#"{"ok":false,"protocol_version":1,"error":{"type":"E"}}"#, Some("PT-REPLY-02")),
            (
                r#"{"ok":false,"protocol_version":"1","error":{"type":"E","message":"m"}}"#,
                Some("PT-REPLY-02"),
            ),
            (
                r#"{"ok":false,"protocol_version":1,"error":{"type":"E","message":"m"},"result":{}}"#,
                Some("PT-REPLY-02"),
            ),
            (
                r#"{"ok":false,"protocol_version":1,"error":{"type":"E","message":"m","reason_code":7}}"#,
                Some("PT-REPLY-03"),
            ),
        ] {
            assert_eq!(broken(text, Exit::Code(0)).as_deref(), clause, "{text}");
            if Schemas::enabled() {
                let objections = schemas.validate("reply", &text.parse().unwrap()).unwrap();
                assert_eq!(objections.is_empty(), clause.is_none(), "{text}: {objections:?}");
            }
        }
    }

    #[test]
    fn what_is_no_reply_is_told_apart() {
        let good = r#"{"ok":true,"protocol_version":1,"result":{}}"#;
        assert_eq!(broken(good, Exit::Code(3)).as_deref(), Some("PT-FAIL-05"));
        for (text, clause) in [
            (format!("{good}{good}"), "PT-FRAME-05"),
            (format!("ready\n{good}"), "PT-FRAME-05"),
            (format!("{} {good}", NOISE[0]), "PT-OUT-01"),
            (format!("{good}{}", NOISE[1]), "PT-OUT-02"),
            (good[..30].to_owned(), "PT-RES-06"),
            (good.replace("{}", "NaN"), "PT-RES-04"),
            (good.replace("{}}", "{},}"), "PT-REPLY-05"),
            ("[]".to_owned(), "PT-FRAME-05"),
        ] {
            assert_eq!(broken(&text, Exit::Code(0)).as_deref(), Some(clause), "{text}");
        }
    }
}
