//! Allowed ends of each call, derived from the call, the scripted reply and its real course.

use super::allowed_outcome::AllowedOutcome;
use super::cases::PROXY;
use super::{USUAL_BYTES_MAX, USUAL_MS};
use crate::model::{BYTES_MAX, Form, form_of};
use peerproof_engine::contract::asking::{
    Call, CallTimeline, GRACE_MS, ObservedCalls, Request, Script, played, variable,
};
use peerproof_engine::contract::face::{Allowed, Expected, Subject};
use peerproof_engine::data::json::{self, DecodeLimits, Decoded, Json};
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Fixture, ListenerSettings, PathReply, ReplyFault};
use peerproof_engine::data::transcript::{Exit, Transcript};

const SUCCESS: &str = "PT-RT-04";
const SUCCESS_HTTP: &str = "PT-RT-05";
const STATUS: &str = "PT-RT-06";
const STATUS_HTTP: &str = "PT-RT-07";
const ONE_OBJECT: &str = "PT-RT-08";
const OK: &str = "PT-RT-09";
const NO_RESULT: &str = "PT-RT-10";
const BOTH: &str = "PT-RT-11";
const VERSION: &str = "PT-RT-12";
const VERSION_HTTP: &str = "PT-RT-13";
/// Clause: a failure is passed on.
pub(super) const FAILURE: &str = "PT-RT-14";
const BAD_FAILURE: &str = "PT-RT-15";
/// Clause: a result is passed on unchanged.
pub(crate) const UNCHANGED: &str = "PT-RT-16";
/// Clause about requests to a local runner.
pub(super) const REQUEST: &str = "PT-RT-26";
/// Clause about requests to a service.
pub(crate) const POSTED: &str = "PT-RT-29";
const UNAVAILABLE: &str = "PT-RT-17";
const TIMEOUT: &str = "PT-RT-18";
const TRICKLE: &str = "PT-RT-19";
const USUAL: &str = "PT-RT-21";
const SECONDS: &str = "PT-RT-22";
const BOTH_TIMES: &str = "PT-RT-23";
const ROUNDS: &str = "PT-RT-24";
/// Clause: nothing is started for an invalid call.
pub(crate) const BAD_CALL: &str = "PT-RT-25";
const ARGV: &str = "PT-RT-32";
/// Choice: order of calls that need not wait for others.
pub(crate) const ORDER_OF_CALLS: &str = "PT-RT-36";
const STDERR: &str = "PT-RT-37";
/// Clause: the runtime reads output while it writes the request.
pub(crate) const READS_EARLY: &str = "PT-RT-38";
/// Clause: a redirect is not followed.
pub(crate) const REDIRECT: &str = "PT-RT-39";
const USUAL_SIZE: &str = "PT-RT-41";
const OVER_SIZE: &str = "PT-RT-42";
const LARGE: &str = "PT-RT-43";
const PIPE_HELD: &str = "PT-RT-44";
/// Clause: a call is not executed without assurance.
pub(crate) const BLOCKED: &str = "PT-RT-47";
const NO_HANDSHAKE: &str = "PT-RT-48";
const OVERRIDE: &str = "PT-RT-50";
const UNSANDBOXED: &str = "PT-RT-51";
const CONTAINER: &str = "PT-RT-63";
const CONTAINER_GUARANTEES: &str = "PT-RT-64";
const DEPTH: &str = "PT-RT-70";
/// Clause: a reply may arrive in pieces.
pub(super) const PIECES: &str = "PT-RT-71";

/// Size up to which white space may count as empty output, bytes.
const BLANK_BYTES: u64 = 64;

/// Nesting above which a reply tests nesting, levels.
const USUAL_DEPTH: usize = 32;

/// Further notes of the model about a call.
#[derive(Debug, Clone, Default)]
pub(super) struct CallNotes {
    /// True if its program was started, and waits for the end of its input.
    pub unread: bool,
    /// True if its program writes before it reads.
    pub early: bool,
    /// Clause broken by reporting a reply that was never sent.
    pub unbegun: Option<&'static str>,
    /// Clause that an execution breaks, if it must not be executed.
    pub forbidden: Option<&'static str>,
    /// True if another process holds its pipe.
    pub is_held: bool,
    /// True if it may continue without assurance.
    pub unassured: bool,
    /// True if it may be reported as unavailable before anything is started.
    pub unasked: bool,
}

/// Guarantees of a call with the value true.
pub(super) fn required(call: &Call) -> Vec<&str> {
    let given = call.told.get("guarantees").and_then(Json::as_object).unwrap_or_default();
    given.iter().filter(|(_, value)| value.as_bool() == Some(true)).map(|(name, _)| name.as_str()).collect()
}

/// Runner of a call.
pub(super) fn runner(call: &Call) -> &str {
    call.told.get("runner").and_then(Json::as_str).unwrap_or_default()
}

/// Possible timeouts of a call, ms: as given, and rounded up to whole seconds.
pub(crate) fn times_ms(call: &Call) -> (u64, u64) {
    let ms = call.timeout_ms().unwrap_or(USUAL_MS);
    (ms, ms.div_ceil(1_000) * 1_000)
}

/// True for a valid call, false for an invalid one; `None` if the contract leaves it open.
fn is_right(calls: &[Call], call: &Call) -> Option<bool> {
    let told = &call.told;
    let text = |name: &str| told.get(name).is_some_and(|value| value.as_str().is_some());
    let texts = |value: Option<&Json>| {
        value.and_then(Json::as_array).is_some_and(|items| items.iter().all(|item| item.as_str().is_some()))
    };
    let optional = |name: &str, is: &dyn Fn(&Json) -> bool| told.get(name).is_none_or(is);
    let is_positive = |value: &Json| value.as_f64().is_some_and(|number| number > 0.0);
    let is_text = |value: &Json| value.as_str().is_some();
    let is_bool = |value: &Json| value.as_bool().is_some();
    let is_named = |value: &Json, is: &dyn Fn(&Json) -> bool| {
        value.as_object().is_some_and(|members| members.iter().all(|(_, value)| is(value)))
    };
    let has_target = match runner(call) {
        "local" => texts(told.get("command")),
        "service" => text("url"),
        "container" => text("container_runtime") && text("image") && texts(told.get("command")),
        _ => false,
    };
    let form = told.get("entry").and_then(Json::as_str).map(form_of);
    let is_right = has_target
        && told.get("tool").and_then(Json::as_str).is_some_and(|tool| !tool.is_empty())
        && form.is_some_and(|form| form != Form::Wrong)
        && told.get("payload").is_some_and(|payload| payload.as_object().is_some())
        && optional("timeout_ms", &is_positive)
        && optional("timeout_seconds", &is_positive)
        && optional("trace_id", &is_text)
        && optional("resolved_source", &is_text)
        && optional("sandbox", &is_bool)
        && optional("unsafe_override", &is_bool)
        && optional("guarantees", &|value| is_named(value, &is_bool))
        && optional("pack", &|value| is_named(value, &is_text))
        && optional("after", &|value| texts(Some(value)))
        && is_reached(calls, call);
    let has_both = told.get("timeout_ms").is_some() && told.get("timeout_seconds").is_some();
    // A null member may stand for an absent one.
    let is_null = |members: &[(String, Json)]| members.iter().any(|(_, value)| *value == Json::Null);
    match is_right {
        true if has_both || form != Some(Form::Right) => None,
        false if told.as_object().is_some_and(is_null) => None,
        known => Some(known),
    }
}

/// True if all calls that a call waits for exist, and none of them waits for it.
fn is_reached(calls: &[Call], call: &Call) -> bool {
    let mut pending: Vec<&str> = call.after.iter().map(String::as_str).collect();
    let mut seen = Vec::new();
    while let Some(name) = pending.pop() {
        let Some(other) = calls.iter().find(|other| other.name == name) else {
            return !call.after.iter().any(|own| own == name);
        };
        if name == call.name {
            return false;
        }
        if !seen.contains(&name) {
            seen.push(name);
            pending.extend(other.after.iter().map(String::as_str));
        }
    }
    true
}

/// Outcome of a handshake.
enum HandshakeOutcome {
    Assured,
    /// A reply that does not assure everything.
    Short,
    /// A reply that says `enforced` without assuring everything.
    Untrue,
    /// A malformed reply.
    NoReply,
    /// No reply.
    Silent,
}

fn shake(aside: &PathReply, required: &[&str]) -> HandshakeOutcome {
    match aside.fault {
        None | Some(ReplyFault::Late { .. } | ReplyFault::Trickled { .. }) => {}
        Some(ReplyFault::Cut | ReplyFault::Closed | ReplyFault::Endless) => return HandshakeOutcome::NoReply,
        Some(ReplyFault::Silent | ReplyFault::Dribbled) => return HandshakeOutcome::Silent,
    }
    let text = aside.body.expand(&Vars::new()).unwrap_or_default();
    let reply = json::decode(&text, &DecodeLimits::default()).map(|it| it.value).unwrap_or_default();
    let supported = reply.get("supported_guarantees").and_then(Json::as_object);
    let is_listed = |name: &&str| {
        let own = reply.get("supported_guarantees").and_then(|supported| supported.get(name));
        own.and_then(Json::as_bool) == Some(true)
    };
    let level = reply.get("enforcement").and_then(Json::as_str);
    match reply.get("ok").and_then(Json::as_bool) {
        _ if aside.status != 200 => HandshakeOutcome::NoReply,
        Some(false) if reply.get("error").is_some_and(|error| error.as_object().is_some()) => {
            HandshakeOutcome::Short
        }
        Some(true) if level == Some("enforced") && required.iter().all(is_listed) => {
            HandshakeOutcome::Assured
        }
        Some(true)
            if level.is_some_and(|level| ["enforced", "partial", "none"].contains(&level))
                && supported.is_some_and(|it| it.iter().all(|(_, value)| value.as_bool().is_some())) =>
        {
            if level == Some("enforced") {
                HandshakeOutcome::Untrue
            } else {
                HandshakeOutcome::Short
            }
        }
        _ => HandshakeOutcome::NoReply,
    }
}

/// Delay of a reply with this fault, ms.
pub(crate) fn late_ms(fault: Option<ReplyFault>) -> u64 {
    fault.map_or(0, ReplyFault::lasts_ms)
}

/// Index of another call to the same service.
fn same_as(calls: &[Call], call: &Call) -> Option<usize> {
    let url = call.told.get("url").and_then(Json::as_str)?;
    let is_its = |name: &str| url.contains(&variable(&format!("{}.address", played(name))));
    calls.iter().position(|other| other.name != call.name && is_its(&other.name))
}

/// Fixture of a call.
pub(super) fn fixture(known: &ObservedCalls, at: usize) -> Option<&Fixture> {
    known.fixture(at).or_else(|| known.fixture(same_as(&known.calls, &known.calls[at])?))
}

/// Reads a transcript. Several calls to one service are distinguished by their payloads, and their handshakes by
/// tool and required guarantees.
pub(super) fn known(transcript: &Transcript) -> ObservedCalls {
    let mut known = ObservedCalls::of(transcript);
    for at in 0..known.calls.len() {
        let call = known.calls[at].clone();
        let Some(other) = same_as(&known.calls, &call) else { continue };
        let member = |body: &[u8], name: &str| {
            json::decode(body, &DecodeLimits::default()).ok().and_then(|it| it.value.get(name).cloned())
        };
        let is_call = |request: &Request| {
            let payload = call.told.get("payload");
            payload.zip(member(&request.body, "payload")).is_some_and(|(own, came)| json::is_kept(own, &came))
        };
        let is_handshake = |request: &Request| {
            let asked = member(&request.body, "required_guarantees").unwrap_or_default();
            let names: Vec<&str> =
                asked.as_object().unwrap_or_default().iter().map(|(name, _)| name.as_str()).collect();
            member(&request.body, "tool_name").as_ref() == call.told.get("tool") && names == required(&call)
        };
        let from = &mut known.courses[other];
        let own = CallTimeline {
            requests: from.requests.extract_if(.., |request| is_call(request)).collect(),
            asides: from.asides.extract_if(.., |request| is_handshake(request)).collect(),
            replied_us: from.replied_us,
            aside_replied_us: from.aside_replied_us,
            ..CallTimeline::default()
        };
        known.courses[at] = own;
    }
    known
}

/// Allowed ends of the call with index `at`.
pub(super) fn of(known: &ObservedCalls, at: usize) -> Expected<AllowedOutcome, CallNotes> {
    let (call, course) = (&known.calls[at], &known.courses[at]);
    let subject = Subject::Entity(call.name.clone());
    let given = is_right(&known.calls, call);
    let bad = || Allowed::answer(AllowedOutcome::Plain("bad_call"));
    if given == Some(false) {
        let extra = CallNotes { forbidden: Some(BAD_CALL), ..CallNotes::default() };
        return Expected { extra, ..Expected::new(BAD_CALL, subject, vec![bad()]) };
    }
    let mut fate = OutcomeBuilder {
        known,
        call,
        course,
        clause: SUCCESS,
        allowed: Vec::new(),
        choice: None,
        extra: CallNotes::default(),
        is_local: runner(call) == "local",
    };
    let fixture = fixture(known, at);
    match fixture {
        Some(Fixture::Actor { script, .. }) => fate.program(&Script::of(script)),
        Some(Fixture::Listener { status, location, body, manner, .. }) => {
            fate.server(*status, location.is_some(), body, manner);
        }
        _ => fate.only(UNAVAILABLE, AllowedOutcome::Plain("unavailable")),
    }
    fate.guard(fixture);
    if given.is_none() {
        fate.clause = BOTH_TIMES;
        fate.allowed.push(bad());
    }
    let is_played = matches!(fixture, Some(Fixture::Actor { .. } | Fixture::Listener { .. }));
    fate.extra.unread = !course.starts.is_empty() && course.received.is_none();
    // The runtime may have used a proxy instead.
    let may_be_elsewhere =
        runner(call) == "service" && known.fixtures.iter().any(|fixture| fixture.name() == PROXY);
    let begins = match runner(call) {
        "service" => POSTED,
        "container" => CONTAINER,
        _ => REQUEST,
    };
    fate.extra.unbegun = (is_played && !course.is_executed() && !may_be_elsewhere).then_some(begins);
    let (clause, choice) = (fate.clause, fate.choice);
    let part = Expected { extra: fate.extra, choice, ..Expected::new(clause, subject, fate.allowed) };
    known.ordered(ORDER_OF_CALLS, at, part)
}

/// Builder of the allowed ends of one call.
struct OutcomeBuilder<'a> {
    known: &'a ObservedCalls,
    call: &'a Call,
    course: &'a CallTimeline,
    clause: &'static str,
    allowed: Vec<Allowed<AllowedOutcome>>,
    choice: Option<&'static str>,
    extra: CallNotes,
    is_local: bool,
}

impl OutcomeBuilder<'_> {
    fn allow(&mut self, way: AllowedOutcome) {
        self.allowed.push(Allowed::answer(way));
    }

    fn only(&mut self, clause: &'static str, way: AllowedOutcome) {
        self.clause = clause;
        self.allow(way);
    }

    fn late(&self) -> AllowedOutcome {
        let (ms, rounded_ms) = times_ms(self.call);
        AllowedOutcome::Timeout(ms, rounded_ms + GRACE_MS + self.known.late_ms)
    }

    /// Timeout of a call with a handshake. The contract leaves open if the handshake's time counts.
    fn late_handshake(&self) -> AllowedOutcome {
        let (_, rounded_ms) = times_ms(self.call);
        AllowedOutcome::Timeout(0, rounded_ms + GRACE_MS + self.known.late_ms)
    }

    fn times_out(&mut self, clause: &'static str, late: AllowedOutcome) {
        let told = &self.call.told;
        let own = match (told.get("timeout_ms"), told.get("timeout_seconds")) {
            (None, None) => USUAL,
            (None, Some(_)) => SECONDS,
            _ => clause,
        };
        self.only(own, late);
    }

    /// Adds the effects of guarantees to a call's allowed ends.
    fn guard(&mut self, fixture: Option<&Fixture>) {
        let required = required(self.call);
        if required.is_empty() {
            return;
        }
        let is_told = self.call.told.get("unsafe_override").and_then(Json::as_bool) == Some(true);
        let overrides = is_told && self.known.facts.claims(super::UNSAFE_OVERRIDE);
        let blocked = Allowed::answer(AllowedOutcome::Plain("blocked"));
        let choose = |fate: &mut Self, clause, choice, goes_on| {
            fate.allowed =
                std::mem::take(&mut fate.allowed).into_iter().map(|it| it.shows(goes_on)).collect();
            fate.allowed.push(blocked.clone().shows("blocked"));
            (fate.clause, fate.choice) = (clause, Some(choice));
        };
        match (runner(self.call), fixture) {
            (_, _) if overrides && self.is_local => {}
            ("local", _) if self.call.told.get("sandbox").and_then(Json::as_bool) != Some(true) => {
                choose(self, UNSANDBOXED, "local_guarantees_unsandboxed", "send");
            }
            ("container", _) if !overrides => {
                choose(self, CONTAINER_GUARANTEES, "container_guarantees", "run");
            }
            (
                "service",
                Some(Fixture::Listener { manner: ListenerSettings { aside: Some(aside), .. }, .. }),
            ) => {
                let came = shake(aside, &required);
                if matches!(came, HandshakeOutcome::Assured) {
                    return;
                }
                self.extra.unassured = true;
                if overrides {
                    self.clause = OVERRIDE;
                    if matches!(came, HandshakeOutcome::Silent) {
                        self.allow(self.late_handshake());
                    }
                    return;
                }
                self.allowed = vec![blocked];
                (self.clause, self.extra.forbidden) = (BLOCKED, Some(BLOCKED));
                match came {
                    HandshakeOutcome::Assured | HandshakeOutcome::Short => {}
                    HandshakeOutcome::Untrue | HandshakeOutcome::NoReply => {
                        if matches!(came, HandshakeOutcome::NoReply) {
                            self.clause = NO_HANDSHAKE;
                        }
                        self.allow(AllowedOutcome::Plain("unavailable"));
                        self.allow(AllowedOutcome::Plain("invalid"));
                    }
                    HandshakeOutcome::Silent => {
                        self.clause = NO_HANDSHAKE;
                        self.allow(AllowedOutcome::Plain("unavailable"));
                        self.allow(self.late_handshake());
                    }
                }
            }
            // A missing server assures nothing either.
            ("service", None) => self.allowed.push(blocked),
            _ => {}
        }
    }

    fn program(&mut self, script: &Script) {
        (self.extra.early, self.extra.is_held) = (script.writes_first, script.forks);
        let (time_ms, rounded_ms) = times_ms(self.call);
        let late = if script.trickles() { TRICKLE } else { TIMEOUT };
        let Some((took_ms, exit)) = self.known.end(self.course, script, rounded_ms) else {
            return self.times_out(late, self.late());
        };
        let has_arguments = self.is_local
            && self.call.told.get("command").and_then(Json::as_array).is_some_and(|argv| argv.len() > 1);
        let success = match () {
            () if script.forks => PIPE_HELD,
            () if script.complains => STDERR,
            () if script.writes_first => READS_EARLY,
            () if script.writes > 1 => PIECES,
            () if !self.is_local => CONTAINER,
            () if has_arguments => ARGV,
            () => SUCCESS,
        };
        match exit {
            Some(Exit::Code(0)) | None => {
                self.reply(&script.output, success);
                if !script.reads {
                    // The contract is silent about programs that do not read their input.
                    self.allow(AllowedOutcome::Plain("crash"));
                    self.allow(AllowedOutcome::Plain("unavailable"));
                }
                let text = script.output.prefix(BLANK_BYTES).expand(&Vars::new()).unwrap_or_default();
                if text.trim_ascii().is_empty() {
                    self.allow(AllowedOutcome::Plain("crash"));
                }
            }
            Some(_) => {
                self.only(STATUS, AllowedOutcome::Plain("crash"));
                if !self.is_local {
                    // Only for local runners is a non-zero status defined as a crash.
                    self.allow(AllowedOutcome::Plain("invalid"));
                    self.allow(AllowedOutcome::Plain("unavailable"));
                }
                self.failing(&script.output);
            }
        }
        let rounds = took_ms > time_ms && took_ms <= rounded_ms && rounded_ms > time_ms;
        if rounds {
            self.allowed = std::mem::take(&mut self.allowed).into_iter().map(|it| it.shows("true")).collect();
            self.allowed.push(Allowed::answer(self.late()).shows("false"));
            (self.clause, self.choice) = (ROUNDS, Some("round_timeout_up"));
        } else if took_ms + (time_ms / 2).max(50) >= time_ms {
            self.allow(self.late());
        }
    }

    fn server(&mut self, status: u16, is_redirect: bool, body: &Payload, manner: &ListenerSettings) {
        let aside = manner.aside.as_ref().filter(|_| !required(self.call).is_empty());
        let lasts_ms: u64 = [manner.fault, aside.and_then(|aside| aside.fault)].map(late_ms).iter().sum();
        // The trace may exclude the time of the handshake.
        let late = if aside.is_some() { self.late_handshake() } else { self.late() };
        match manner.fault {
            Some(ReplyFault::Trickled { .. }) if lasts_ms > times_ms(self.call).1 => {
                return self.times_out(TRICKLE, late);
            }
            _ if lasts_ms > times_ms(self.call).1 => return self.times_out(TIMEOUT, late),
            Some(ReplyFault::Silent) => return self.times_out(TIMEOUT, late),
            Some(ReplyFault::Dribbled) => return self.times_out(TRICKLE, late),
            Some(ReplyFault::Endless) => {
                self.only(OVER_SIZE, AllowedOutcome::Plain("invalid"));
                return self.allow(late);
            }
            Some(ReplyFault::Cut | ReplyFault::Closed) => {
                self.only(UNAVAILABLE, AllowedOutcome::Plain("unavailable"));
                return self.allow(AllowedOutcome::Plain("invalid"));
            }
            None | Some(ReplyFault::Late { .. } | ReplyFault::Trickled { .. }) => {}
        }
        if self.call.told.get("url").and_then(Json::as_str).is_some_and(|url| url.contains('@')) {
            // The contract is silent about credentials in a URL.
            self.extra.unasked = true;
            self.allow(AllowedOutcome::Plain("unavailable"));
            self.allow(AllowedOutcome::Plain("bad_call"));
        }
        if status == 200 {
            return self.reply(body, SUCCESS_HTTP);
        }
        self.only(if is_redirect { REDIRECT } else { STATUS_HTTP }, AllowedOutcome::Plain("unavailable"));
        self.failing(body);
    }

    /// Adds the ends after output with a failing status.
    fn failing(&mut self, output: &Payload) {
        let text = output.expand(&Vars::new()).unwrap_or_default();
        match json::decode(&text, &DecodeLimits::default()).ok().and_then(|it| self.failure(&it.value)) {
            Some((way, true)) => self.allow(way),
            Some((way, false)) => {
                self.allow(way);
                self.allow(AllowedOutcome::Plain("invalid"));
            }
            // Several definitions apply.
            None if !text.is_empty() => self.allow(AllowedOutcome::Plain("invalid")),
            None => {}
        }
    }

    /// The failure in a reply, and true if it is well-formed.
    fn failure(&self, reply: &Json) -> Option<(AllowedOutcome, bool)> {
        if reply.get("ok").and_then(Json::as_bool) != Some(false) {
            return None;
        }
        let empty = Json::default();
        let error = reply.get("error").unwrap_or(&empty);
        let text = |name: &str| error.get(name).and_then(Json::as_str);
        let reason = error.get("reason_code").filter(|reason| **reason != Json::Null);
        let is_proper = text("type").is_some_and(|kind| !kind.is_empty())
            && text("message").is_some()
            && reason.is_none_or(|reason| reason.as_str().is_some())
            && reply.get("result").is_none_or(|result| *result == Json::Null)
            && self.has_version(reply);
        let is_told = is_proper || text("type").is_some() && text("message").is_some();
        Some((AllowedOutcome::ToolError(is_told.then(|| Box::new(error.clone()))), is_proper))
    }

    fn has_version(&self, reply: &Json) -> bool {
        let version = reply.get("protocol_version");
        version.map_or(!self.is_local, |version| version.as_f64() == Some(1.0))
    }

    /// Adds the ends after a reply: of a program with exit status 0, or of a service with status 200.
    fn reply(&mut self, text: &Payload, success: &'static str) {
        let length = text.len(&Vars::new());
        let success = match length {
            ..=10_000 => success,
            _ if length <= USUAL_BYTES_MAX => USUAL_SIZE,
            _ => LARGE,
        };
        if length > USUAL_BYTES_MAX {
            self.allow(AllowedOutcome::Plain("invalid"));
            if length > BYTES_MAX {
                self.clause = OVER_SIZE;
                return;
            }
        }
        let text = text.expand(&Vars::new()).unwrap_or_default();
        let Ok(Decoded { value, facts }) = json::decode(&text, &DecodeLimits::default()) else {
            return self.only(ONE_OBJECT, AllowedOutcome::Plain("invalid"));
        };
        let is_open = facts.duplicate_keys || facts.lone_surrogates || value.has_number(|it| it.is_big());
        if value.as_object().is_none() {
            return self.only(ONE_OBJECT, AllowedOutcome::Plain("invalid"));
        }
        if let Some((way, is_proper)) = self.failure(&value) {
            self.only(if is_proper { FAILURE } else { BAD_FAILURE }, way);
            if !is_proper || is_open {
                self.allow(AllowedOutcome::Plain("invalid"));
            }
            return;
        }
        let is_null = |value: &Json| *value == Json::Null;
        let wrong = match () {
            () if value.get("ok").and_then(Json::as_bool) != Some(true) => Some(OK),
            () if value.get("result").is_none() => Some(NO_RESULT),
            () if !value.get("error").is_none_or(is_null) => Some(BOTH),
            () if !self.has_version(&value) && self.is_local => Some(VERSION),
            () if !self.has_version(&value) => Some(VERSION_HTTP),
            () => None,
        };
        if let Some(clause) = wrong {
            return self.only(clause, AllowedOutcome::Plain("invalid"));
        }
        let result = value.get("result").cloned().unwrap_or_default();
        let success = match result.get("ok").and_then(Json::as_bool) {
            _ if result == Json::Null => NO_RESULT,
            Some(false) => UNCHANGED,
            _ => success,
        };
        let success = if facts.depth > USUAL_DEPTH { DEPTH } else { success };
        self.only(success, AllowedOutcome::Result(Box::new(result)));
        if is_open {
            self.allow(AllowedOutcome::Plain("invalid"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_assures_falls_short_or_is_none() {
        let shaken = |text: &str| {
            let (path, body) = (String::new(), Payload::text(text));
            match shake(&PathReply { path, status: 200, body, fault: None }, &["no_network"]) {
                HandshakeOutcome::Assured => "assured",
                HandshakeOutcome::Short => "short",
                HandshakeOutcome::Untrue => "untrue",
                HandshakeOutcome::NoReply => "no reply",
                HandshakeOutcome::Silent => "silent",
            }
        };
        let ok = |level: &str, listed: &str| {
            shaken(&format!(r#"{{"ok":true,"enforcement":"{level}","supported_guarantees":{listed}}}"#))
        };
        assert_eq!(ok("enforced", r#"{"no_network":true}"#), "assured");
        assert_eq!(ok("enforced", "{}"), "untrue");
        assert_eq!(ok("partial", "{}"), "short");
        assert_eq!(ok("full", "{}"), "no reply");
        assert_eq!(shaken(r#"{"ok":false,"error":{}}"#), "short");
        assert_eq!(shaken(r#"{"ok":false}"#), "no reply");
    }
}
