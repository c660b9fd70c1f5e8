//! Allowed ends of each call, derived from the scripted reply and from its real course.

use super::allowed_outcome::AllowedOutcome;
use super::{REPLY_BYTES_MAX, USUAL_MS};
use crate::model::{Acceptance, Input, Trait, of_envelope};
use crate::shape::{self, Shape, ValueType};
use peerproof_engine::contract::asking::{Call, CallTimeline, GRACE_MS, ObservedCalls, Script};
use peerproof_engine::contract::face::{Allowed, Expected, Subject};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Fixture, ListenerSettings, ReplyFault};
use peerproof_engine::data::transcript::Exit;

const SUCCESS: &str = "ENV-CALL-03";
const SUCCESS_HTTP: &str = "ENV-CALL-04";
const STATUS: &str = "ENV-CALL-05";
const STATUS_HTTP: &str = "ENV-CALL-06";
const ONE_OBJECT: &str = "ENV-CALL-07";
const TYPES: &str = "ENV-CALL-08";
const WORDS: &str = "ENV-CALL-09";
const MINIMA: &str = "ENV-CALL-10";
const PATTERNS: &str = "ENV-CALL-11";
const TIMES: &str = "ENV-CALL-12";
const DEFAULTS: &str = "ENV-CALL-13";
const CORE: &str = "ENV-CALL-14";
const NO_ID: &str = "ENV-CALL-15";
const OTHER_ID: &str = "ENV-CALL-16";
const UNDOCUMENTED: &str = "ENV-CALL-17";
const FREE_DATA: &str = "ENV-CALL-18";
const VALUES: &str = "ENV-CALL-19";
/// Clause: the outcome is written within a second after the timeout.
pub(crate) const TIMEOUT: &str = "ENV-CALL-20";
const TRICKLE: &str = "ENV-CALL-21";
const FAILED: &str = "ENV-CALL-23";
/// Clause: nothing is started for an unacceptable envelope.
pub(crate) const BAD_INPUT: &str = "ENV-CALL-24";
const ARGV: &str = "ENV-CALL-30";
/// Choice: order of calls that need not wait for others.
pub(crate) const ORDER_OF_CALLS: &str = "ENV-CALL-32";
const STDERR: &str = "ENV-CALL-33";
/// Clause: the caller reads output while it writes the request.
pub(crate) const READS_EARLY: &str = "ENV-CALL-34";
const REDIRECT: &str = "ENV-CALL-35";
const OVER_SIZE: &str = "ENV-CALL-36";
const LARGE: &str = "ENV-CALL-37";
const PIPE_HELD: &str = "ENV-CALL-38";

/// Size above which a reply tests sizes, bytes.
const LARGE_BYTES: usize = 1 << 20;

/// Further notes of the model about a call.
#[derive(Debug, Clone, Default)]
pub(super) struct CallNotes {
    /// True if its program was started, and waits for the end of its input.
    pub unread: bool,
    /// True if its program writes before it reads.
    pub early: bool,
    /// Latest time of the outcome, ms; 0 if the reply determines it.
    pub latest_ms: u64,
    /// True if no program was started and no request was sent for it.
    pub unbegun: bool,
}

/// Clause about callers for a difference under a clause about engines.
pub(crate) fn kept_clause(clause: &str) -> &'static str {
    match clause {
        "ENV-DEF-01" | "ENV-DEF-02" => DEFAULTS,
        "ENV-ACC-04" => CORE,
        "ENV-KEEP-03" => UNDOCUMENTED,
        "ENV-KEEP-02" | "ENV-KEEP-06" | "ENV-KEEP-07" | "ENV-KEEP-08" | "ENV-JSON-08" | "ENV-JSON-12"
        | "ENV-TIME-11" | "ENV-SIZE-03" => FREE_DATA,
        _ => VALUES,
    }
}

/// Allowed ends of the call with index `at`.
pub(super) fn of(known: &ObservedCalls, at: usize) -> Expected<AllowedOutcome, CallNotes> {
    let (call, course) = (&known.calls[at], &known.courses[at]);
    let subject = Subject::Entity(call.name.clone());
    let null = Json::Null;
    let envelope = call.told.get("envelope").unwrap_or(&null);
    let given = acceptance(envelope);
    if given == Some(false) {
        return Expected::new(BAD_INPUT, subject, vec![Allowed::answer(AllowedOutcome::Plain("bad_input"))]);
    }
    let mut fate = OutcomeBuilder {
        known,
        call,
        course,
        envelope,
        clause: SUCCESS,
        allowed: Vec::new(),
        shown: None,
        early: false,
        is_held: false,
    };
    match known.fixture(at) {
        Some(Fixture::Actor { script, .. }) => fate.program(&Script::of(script)),
        Some(Fixture::Listener { status, location, body, manner, .. }) => {
            fate.server(*status, location.is_some(), body, manner);
        }
        _ => fate.only(FAILED, AllowedOutcome::Plain("failed")),
    }
    if given.is_none() {
        fate.allow(AllowedOutcome::Plain("bad_input"));
    }
    let is_played = matches!(known.fixture(at), Some(Fixture::Actor { .. } | Fixture::Listener { .. }));
    let extra = CallNotes {
        unread: !course.starts.is_empty() && course.received.is_none(),
        early: fate.early,
        latest_ms: if fate.is_held { fate.timeout_ms() + GRACE_MS + known.late_ms } else { 0 },
        unbegun: is_played && course.begun_us().is_none(),
    };
    let mut part = Expected { extra, ..Expected::new(fate.clause, subject, fate.allowed) };
    part.choice = fate.shown;
    known.ordered(ORDER_OF_CALLS, at, part)
}

/// True if an envelope of the scenario is acceptable; `None` if the contract leaves it open.
fn acceptance(envelope: &Json) -> Option<bool> {
    if envelope.as_object().is_none() {
        return Some(false);
    }
    let traits = of_envelope(envelope);
    let is_state = |it: &&Trait| !STATES.contains(&it.clause);
    let mut left = traits.iter().filter(is_state).peekable();
    if traits.iter().any(|it| it.stand == Acceptance::Refuse) {
        return Some(false);
    }
    if left.peek().is_some() { None } else { Some(true) }
}

/// Clauses about states that an engine may refuse; they do not concern callers.
const STATES: [&str; 2] = ["ENV-TERM-05", "ENV-PEND-01"];

/// Builder of the allowed ends of one call.
struct OutcomeBuilder<'a> {
    known: &'a ObservedCalls,
    call: &'a Call,
    course: &'a CallTimeline,
    envelope: &'a Json,
    clause: &'static str,
    allowed: Vec<Allowed<AllowedOutcome>>,
    shown: Option<&'static str>,
    early: bool,
    is_held: bool,
}

impl OutcomeBuilder<'_> {
    fn allow(&mut self, way: AllowedOutcome) {
        self.allowed.push(Allowed::answer(way));
    }

    fn only(&mut self, clause: &'static str, way: AllowedOutcome) {
        self.clause = clause;
        self.allow(way);
    }

    fn timeout_ms(&self) -> u64 {
        self.call.timeout_ms().unwrap_or(USUAL_MS)
    }

    fn times_out(&mut self, clause: &'static str) {
        let ms = self.timeout_ms();
        let own = if self.call.timeout_ms().is_none() { "ENV-CALL-41" } else { clause };
        self.only(own, AllowedOutcome::Timeout(ms, ms + GRACE_MS + self.known.late_ms));
    }

    fn program(&mut self, script: &Script) {
        (self.early, self.is_held) = (script.writes_first, script.forks);
        let (timeout_ms, late_ms) = (self.timeout_ms(), self.known.late_ms);
        let late = if script.trickles() { TRICKLE } else { TIMEOUT };
        let Some((took_ms, exit)) = self.known.end(self.course, script, timeout_ms) else {
            return self.times_out(late);
        };
        let success = match () {
            () if script.forks => PIPE_HELD,
            () if script.complains => STDERR,
            () if script.writes_first => READS_EARLY,
            () if self
                .call
                .told
                .get("command")
                .and_then(Json::as_array)
                .is_some_and(|argv| argv.len() > 1) =>
            {
                ARGV
            }
            () => SUCCESS,
        };
        match exit {
            Some(Exit::Signal(_)) => self.only(FAILED, AllowedOutcome::Plain("failed")),
            Some(Exit::Code(status)) if status != 0 => {
                self.only(STATUS, AllowedOutcome::Refused(i64::from(status)))
            }
            _ => self.reply(&script.output, success),
        }
        if took_ms + (timeout_ms / 2).max(50) >= timeout_ms {
            self.allow(AllowedOutcome::Timeout(timeout_ms, timeout_ms + GRACE_MS + late_ms));
        }
    }

    fn server(&mut self, status: u16, is_redirect: bool, body: &Payload, manner: &ListenerSettings) {
        let timeout_ms = self.timeout_ms();
        match manner.fault {
            Some(ReplyFault::Silent) => return self.times_out(TIMEOUT),
            Some(ReplyFault::Dribbled) => return self.times_out(TRICKLE),
            Some(ReplyFault::Endless) => {
                self.only(OVER_SIZE, AllowedOutcome::Plain("invalid"));
                return self
                    .allow(AllowedOutcome::Timeout(timeout_ms, timeout_ms + GRACE_MS + self.known.late_ms));
            }
            Some(ReplyFault::Closed) => return self.only(FAILED, AllowedOutcome::Plain("failed")),
            Some(ReplyFault::Cut) => {
                self.only(FAILED, AllowedOutcome::Plain("failed"));
                return self.allow(AllowedOutcome::Plain("invalid"));
            }
            Some(ReplyFault::Trickled { ms }) if ms > timeout_ms + GRACE_MS + self.known.late_ms => {
                return self.times_out(TRICKLE);
            }
            Some(ReplyFault::Trickled { .. }) => {
                self.allow(AllowedOutcome::Timeout(timeout_ms, timeout_ms + GRACE_MS + self.known.late_ms));
            }
            // No call has such a reply.
            None | Some(ReplyFault::Late { .. }) => {}
        }
        match status {
            200 => self.reply(body, SUCCESS_HTTP),
            _ => self.only(
                if is_redirect { REDIRECT } else { STATUS_HTTP },
                AllowedOutcome::Refused(i64::from(status)),
            ),
        }
    }

    /// Allows the ends after a reply: of a program with exit status 0, or of a server with status 200.
    fn reply(&mut self, text: &Payload, success: &'static str) {
        let length = text.len(&Vars::new());
        if length > REPLY_BYTES_MAX {
            self.only(OVER_SIZE, AllowedOutcome::Plain("invalid"));
        } else {
            self.clause = if length > LARGE_BYTES { LARGE } else { success };
        }
        let text = text.expand(&Vars::new()).unwrap_or_default();
        let input = Input::read(&self.known.facts, &text);
        let (Some(sent), false) = (input.sent, input.traits.iter().any(|it| it.clause == "ENV-FRAME-03"))
        else {
            return self.only(ONE_OBJECT, AllowedOutcome::Plain("invalid"));
        };
        let refused = input.traits.iter().find(|it| it.stand == Acceptance::Refuse);
        if let Some(it) = refused {
            return self.only(wrong_clause(it, &sent.raw), AllowedOutcome::Plain("invalid"));
        }
        let missing: Vec<&Trait> = input.traits.iter().filter(|it| it.clause == "ENV-ACC-03").collect();
        if missing.iter().any(|it| it.at.ends_with("_id") && it.at != "/user_id") {
            return self.only(NO_ID, AllowedOutcome::Plain("invalid"));
        }
        let is_other = |name: &&str| {
            let sent_id = self.envelope.get(name);
            sent_id.is_some() && sent_id != sent.raw.get(name)
        };
        if ["envelope_id", "request_id", "session_id"].iter().any(is_other) {
            return self.only(OTHER_ID, AllowedOutcome::Plain("invalid"));
        }
        let is_open = input.traits.iter().any(|it| it.clause != "ENV-ACC-03" && !STATES.contains(&it.clause));
        let envelope = Allowed::answer(AllowedOutcome::Envelope(Box::new(sent)));
        let invalid = Allowed::answer(AllowedOutcome::Plain("invalid"));
        if missing.is_empty() {
            self.allowed.push(envelope);
            self.allowed.extend(is_open.then_some(invalid));
        } else {
            self.clause = CORE;
            self.shown = Some("missing_core_in_reply");
            self.allowed.extend([envelope.shows("default"), invalid.shows("invalid")]);
        }
    }
}

/// Clause that a caller breaks if it accepts a reply with this fault.
fn wrong_clause(it: &Trait, reply: &Json) -> &'static str {
    match it.clause {
        "ENV-ID-01" | "ENV-ID-02" => return PATTERNS,
        "ENV-TIME-06" => return TIMES,
        clause if clause.starts_with("ENV-JSON") => return ONE_OBJECT,
        _ => {}
    }
    let mut shape: Option<&Shape> = Some(shape::envelope());
    for token in it.at.split('/').skip(1) {
        shape = shape.and_then(|shape| match &shape.what {
            ValueType::List(item) | ValueType::Map(item) => Some(&**item),
            _ => shape.member(token),
        });
    }
    match (reply.pointer(&it.at), shape) {
        (Some(Json::String(_)), Some(shape)) if !shape.one_of.is_empty() => WORDS,
        (Some(Json::Number(number)), Some(Shape { what: ValueType::Whole(_), .. }))
            if number.is_integral() =>
        {
            MINIMA
        }
        _ => TYPES,
    }
}
