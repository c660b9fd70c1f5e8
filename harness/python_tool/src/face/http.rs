//! Rules of HTTP: handshakes, framing of calls, status and headers of replies, and timeouts.

use std::collections::BTreeSet;

use peerproof_engine::contract::face::{
    Aim, Allowed, Answer, HttpExchange, HttpTrace, PlacedExpectation, SessionTrace, Trace,
};
use peerproof_engine::contract::judge;
use peerproof_engine::contract::memory;
use peerproof_engine::data::carriage::Carriage;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::{Act, Step};
use peerproof_engine::data::transcript::{EventKind, Transcript};

use super::super::allowed_answer::Pending;
use super::super::config;
use super::super::expect::{ExpectationBuilder, State};
use super::super::model::{BYTES_MAX, TIMEOUT_DEFAULT_MS};
use super::super::talk::HANDSHAKE;
use super::rules::answers;
use super::{AllowedReply, Message, ReplyNotes, Runner};

/// Clause about a plain reply.
pub(crate) const ANSWER: &str = "PT-SRV-01";
const SUCCESS: &str = "PT-SRV-05";
const FAILURE: &str = "PT-SRV-06";
const REFUSAL: &str = "PT-SRV-08";
const REFUSAL_STATUS: &str = "PT-SRV-09";
const MALFORMED: &str = "PT-SRV-10";
const TYPE: &str = "PT-SRV-11";
const AT_TIMEOUT: &str = "PT-SRV-14";
/// Clause: a service survives its tools.
pub(crate) const SURVIVES: &str = "PT-SRV-17";
const SERVED: &str = "PT-SRV-18";
const CONCURRENT: &str = "PT-SRV-19";
const OF_METHOD: &str = "PT-SRV-20";
const CUT: &str = "PT-SRV-23";
const OF_TYPE: &str = "PT-SRV-24";
/// Clause: connections stay open after a reply.
pub(crate) const KEEP_ALIVE: &str = "PT-SRV-22";
const LOOPBACK: &str = "PT-SRV-26";
const ELSEWHERE: &str = "PT-SRV-28";
const OF_MEMORY: &str = "PT-SIZE-04";
const SHAKEN: &str = "PT-HS-01";
const VERSION: &str = "PT-HS-02";
const FORM: &str = "PT-HS-03";
const LISTED: &str = "PT-HS-04";
const UNKNOWN: &str = "PT-HS-05";
const SHORTFALL: &str = "PT-HS-06";
const UNCLAIMED: &str = "PT-HS-08";

/// Time after a timeout within which the reply must come, ms.
const LATE_MS: u64 = 1_000;

/// Tolerance for clocks at a timeout, ms.
const EARLY_MS: u64 = 100;

/// Time within which the body of a held-back call follows its head, microseconds.
const HELD_BACK_US: u64 = 1_000_000;

/// True for a handshake.
pub(crate) fn is_handshake(how: &Carriage) -> bool {
    how.path.as_deref() == Some(HANDSHAKE)
}

/// Expectation that follows from the framing of a request alone.
pub(super) fn carried(state: &State, how: &Carriage, bytes: &[u8], aim: &str) -> Option<ExpectationBuilder> {
    if how.is_cut() {
        let mut made = state.refused(CUT, bytes, aim);
        // A reply is judged by its status.
        made.ways.extend([Allowed::answer(AllowedReply::Success(None)), Allowed::silence()]);
        return Some(made);
    }
    (how.method != "POST").then(|| state.refused(OF_METHOD, bytes, aim))
}

/// Expectation about a handshake.
pub(super) fn handshake(state: &mut State, bytes: &[u8], session: usize, step: usize) -> ExpectationBuilder {
    let decoded = json::decode(json::trim(bytes), &DecodeLimits::default()).ok();
    let asked = decoded.map(|decoded| decoded.value).unwrap_or_default();
    let extra = |is_refusal| ReplyNotes {
        required: Some(Vec::new()),
        is_refusal,
        any_exit: true,
        ..ReplyNotes::default()
    };
    let made = |clause, ways: Vec<AllowedReply>, extra| {
        let ways = ways.into_iter().map(Allowed::answer).collect();
        ExpectationBuilder { clause, ways, choice: None, effects: Vec::new(), extra }
    };
    if !state.facts.claims(config::HANDSHAKE) {
        return made(UNCLAIMED, vec![AllowedReply::Refused], extra(true));
    }
    let version = asked.get("protocol_version").and_then(Json::as_number);
    if version.and_then(json::Number::as_i64) != Some(1) {
        return made(VERSION, vec![AllowedReply::Refused], extra(true));
    }
    let tool = asked.get("tool_name").and_then(Json::as_str).filter(|tool| !tool.is_empty());
    let members = asked.get("required_guarantees").and_then(Json::as_object);
    let (Some(tool), Some(members)) = (tool, members) else {
        return made(SHAKEN, vec![AllowedReply::Refused, AllowedReply::Handshake(true)], extra(false));
    };
    let required: BTreeSet<String> = members
        .iter()
        .filter(|(_, value)| value.as_bool() == Some(true))
        .map(|(name, _)| name.clone())
        .collect();
    let is_plain = version.is_some_and(|version| version.text() == "1")
        && members.iter().all(|(_, value)| value.as_bool().is_some())
        && asked.get("runner").is_none_or(|runner| runner.as_str() == Some("service"));
    let is_short = required.iter().any(|name| !config::NAMES.contains(&name.as_str()));
    let names = required.iter().cloned().collect();
    if !required.is_empty() {
        // As long as there is no reply.
        state.assured.entry(session).or_default().entry(tool.to_owned()).or_default().is_unclear = true;
    }
    state.pending = Some(Pending { session, step, tool: tool.to_owned(), required, is_next: false });
    let may_fail = state.pending.as_ref().is_some_and(|pending| !pending.required.is_empty());
    let mut ways = vec![AllowedReply::Handshake(may_fail)];
    if !is_plain {
        ways.push(AllowedReply::Refused);
    }
    let mut made = made(SHAKEN, ways, ReplyNotes { required: Some(names), ..extra(false) });
    if is_short {
        (made.clause, made.choice) = (SHORTFALL, Some("handshake_shortfall"));
    }
    made
}

/// Records the assurances in the reply to a handshake.
pub(super) fn learn(state: &mut State, session: usize, kind: &EventKind) {
    let Some(pending) = state.pending.as_mut().filter(|pending| pending.session == session) else { return };
    let body = match kind {
        EventKind::HttpReply { step, status, body, .. } if *step == pending.step => match body {
            _ if *status != 200 => None,
            Some(body) => Some(&body.0),
            None => {
                pending.is_next = true;
                return;
            }
        },
        EventKind::Received { bytes } if pending.is_next => Some(&bytes.0),
        _ => return,
    };
    let Some(pending) = state.pending.take() else { return };
    let decoded = body.and_then(|body| json::decode(json::trim(body), &DecodeLimits::default()).ok());
    let reply = decoded.map(|decoded| decoded.value).unwrap_or_default();
    let is_enforced = reply.get("ok").and_then(Json::as_bool) == Some(true)
        && reply.get("enforcement").and_then(Json::as_str) == Some("enforced");
    if pending.required.is_empty() {
        return;
    }
    let of_session = state.assured.entry(session).or_default();
    let assurance = of_session.entry(pending.tool).or_default();
    match !std::mem::replace(&mut assurance.is_answered, true) {
        true if is_enforced => (assurance.guarantees, assurance.is_unclear) = (pending.required, false),
        true => {}
        // The document does not say if a second handshake revokes assurances.
        false => {
            assurance.is_unclear = true;
            assurance.guarantees.retain(|name| is_enforced && pending.required.contains(name));
        }
    }
}

/// Adds the replies that HTTP allows because of the call's framing.
pub(super) fn allow(
    asked: &mut PlacedExpectation<Runner>,
    how: Option<&Carriage>,
    exchange: &HttpExchange<'_>,
) {
    let (Some(how), Some(part)) = (how, asked.due.parts.first_mut()) else { return };
    if how.host.is_some() {
        part.clause = LOOPBACK;
        part.allowed.extend([Allowed::answer(AllowedReply::Refused), Allowed::silence()]);
        part.clear_choices();
    } else if how.method != "POST" {
        // A service may answer another method in any way.
        part.allowed.extend(exchange.reply.map(|_| Allowed::silence()));
    } else if !how.is_cut() && !how.is_json() {
        part.allowed.push(Allowed::answer(AllowedReply::Refused));
        part.clear_choices();
    } else if !how.is_cut() && how.path.is_some() && !is_handshake(how) {
        part.clause = ELSEWHERE;
        part.allowed.push(Allowed::answer(AllowedReply::Refused));
        part.clear_choices();
    } else if part.clause == "PT-SIZE-03" && exchange.failure.is_some() {
        // A reset connection counts as a refusal.
        part.allowed.push(Allowed::silence().shows("refuse"));
    }
}

/// Judges the status and the content type of a reply.
pub(super) fn status(carried: &HttpTrace<'_, Runner>) -> Judgement {
    let HttpTrace { asked, exchange, how, output, .. } = carried;
    let (Some(status), Some(how), Some(part)) = (exchange.status(), how, asked.due.parts.first()) else {
        return Judgement::default();
    };
    let one = |clause: &'static str, expected: &str| {
        let finding = Finding::new(clause, "http_status", expected, format!("status {status}"));
        Judgement { findings: vec![finding.at(asked.step)], ..Judgement::default() }
    };
    if how.host.is_some() {
        return one(LOOPBACK, "no listening socket on an address other than loopback");
    }
    let is_about = |clause: &str| asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == clause);
    // Another status code is reported once.
    let code = |clause: &'static str, codes: &[u16], expected: &str| match is_about(clause) {
        true if !codes.contains(&status) => one(clause, expected),
        _ => Judgement::default(),
    };
    if how.method != "POST" {
        return match status {
            501 => Judgement::default(),
            500.. => one(REFUSAL, "no status of 500 or above, except 501 for a method"),
            _ => code(OF_METHOD, &[404, 405], "405, 404 or 501 for another method"),
        };
    }
    let Some(message) = output.held.whole() else { return Judgement::default() };
    if how.is_cut() {
        return match message {
            Message::Success { .. } => one(CUT, "no success for an incomplete body"),
            _ => Judgement::default(),
        };
    }
    // Refusals in conversations about survival have that clause.
    let refusal = if is_about(SERVED) { SERVED } else { REFUSAL };
    let is_shaken = part.extra.required.is_some();
    let is_of_refusal = matches!(status, 200 | 400..=499);
    match message {
        // An accepted request is reported already.
        Message::Success { .. } if part.clause == UNCLAIMED => Judgement::default(),
        Message::Other { value, .. } if part.clause == UNCLAIMED && is_ok(value) => Judgement::default(),
        _ if part.clause == UNCLAIMED => match status {
            400..=499 => Judgement::default(),
            _ => one(UNCLAIMED, "status 4xx from a service without handshakes"),
        },
        Message::Failure { .. }
            if is_shaken
                && status != 200
                && part.allowed_answers().all(|(_, way)| *way != AllowedReply::Refused) =>
        {
            one(SHAKEN, "status 200 for a handshake, even for a failed one")
        }
        Message::Success { .. } if status != 200 => one(SUCCESS, "status 200 for the success of a tool"),
        Message::Other { value, .. } if is_shaken && is_ok(value) && status != 200 => {
            one(SHAKEN, "status 200 for a handshake")
        }
        Message::Failure { .. } | Message::Status(_) | Message::Other { .. }
            if part.allowed_answers().any(|(_, way)| *way == AllowedReply::Refused) =>
        {
            match part.clause {
                _ if part.extra.limit.is_some() && matches!(status, 408 | 504) => {
                    content_type(carried, status)
                }
                // A failure of the tool is not a refusal, even if the call might also be refused.
                _ if !is_of_refusal && part.extra.may_fail && matches!(message, Message::Failure { .. }) => {
                    one(FAILURE, "status 200 for the failure of a tool")
                }
                _ if status >= 500 => one(refusal, "a refusal with status 4xx or 200"),
                _ if !is_of_refusal => one(REFUSAL_STATUS, "a refusal with status 4xx or 200"),
                _ if !how.is_json() => {
                    code(OF_TYPE, &[415], "status 415 for another content type, or a reply as for JSON")
                }
                "PT-JSON-01" | "PT-JSON-02" if part.extra.is_refusal => {
                    code(MALFORMED, &[400], "status 400 for malformed JSON")
                }
                _ if is_about(REFUSAL_STATUS) && part.extra.is_refusal => {
                    let value = if status == 200 { "200" } else { "400" };
                    let key = "refusal_status".to_owned();
                    let choice = ChoiceSeen { pinned: false, key, value: value.to_owned() };
                    Judgement { choice: Some(choice), ..content_type(carried, status) }
                }
                _ => content_type(carried, status),
            }
        }
        Message::Failure { .. } | Message::Status(_) if part.extra.limit.is_some() => match status {
            200 | 408 | 504 => content_type(carried, status),
            _ => one(AT_TIMEOUT, "after a timeout, status 200 with `ok` false, 408 or 504"),
        },
        Message::Failure { .. } if part.extra.may_fail && status != 200 => {
            one(FAILURE, "status 200 for the failure of a tool")
        }
        _ => content_type(carried, status),
    }
}

fn content_type(carried: &HttpTrace<'_, Runner>, status: u16) -> Judgement {
    let given = carried.exchange.content_type.unwrap_or("no Content-Type");
    let name = given.split(';').next().unwrap_or_default();
    if status != 200 || name.trim().eq_ignore_ascii_case("application/json") {
        return Judgement::default();
    }
    let finding = Finding::new(TYPE, "content_type", "Content-Type: application/json", given);
    Judgement { findings: vec![finding.at(carried.asked.step)], ..Judgement::default() }
}

fn is_ok(value: &Json) -> bool {
    value.get("ok").and_then(Json::as_bool) == Some(true)
}

/// Findings about objects that are not replies to a call, although one was due.
pub(super) fn forms(_: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    let wrong = |(asked, extra, message): (&PlacedExpectation<Runner>, &ReplyNotes, &Message)| match message {
        Message::Other { wrong, .. } if extra.required.is_none() => Some((**wrong).clone().at(asked.step)),
        _ => None,
    };
    answers(heard).filter_map(wrong).collect()
}

/// Findings about replies to handshakes, at most one per clause.
pub(super) fn handshakes(trace: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    if !trace.state.facts.claims(config::HANDSHAKE) {
        return Vec::new();
    }
    let mut found: Vec<Finding> = Vec::new();
    for (asked, extra, message) in answers(heard) {
        let (Some(required), Message::Other { value, .. }) = (&extra.required, message) else { continue };
        let may_be_refused = asked
            .due
            .parts
            .iter()
            .any(|part| part.allowed_answers().any(|(_, way)| *way == AllowedReply::Refused));
        let Some((clause, reason, expected)) = wrong_about(required, extra.is_refusal, may_be_refused, value)
        else {
            continue;
        };
        if found.iter().all(|finding| finding.clause.0 != clause) {
            found.push(Finding::new(clause, reason, expected, value.to_text()).at(asked.step));
        }
    }
    found
}

/// Fault of the reply to a handshake: clause, reason and expectation.
fn wrong_about(
    required: &[String],
    is_refusal: bool,
    may_be_refused: bool,
    value: &Json,
) -> Option<(&'static str, &'static str, String)> {
    if is_refusal {
        return None;
    }
    if !is_ok(value) {
        // `error` is only required if not everything can be assured.
        let has_error = value.get("error").is_some_and(|error| !error.is_null());
        let is_failure = value.get("ok").and_then(Json::as_bool) == Some(false);
        return (is_failure && !has_error && !may_be_refused)
            .then(|| (FORM, "no_error", "`ok` false with an `error`".to_owned()));
    }
    let word = value.get("enforcement").and_then(Json::as_str).unwrap_or_default();
    let listed = value.get("supported_guarantees").and_then(Json::as_object);
    let version = value.get("service_version").and_then(Json::as_str).unwrap_or_default();
    let is_right = ["enforced", "partial", "none"].contains(&word)
        && listed.is_some_and(|listed| listed.iter().all(|(_, value)| value.as_bool().is_some()))
        && !version.is_empty();
    let has = |name: &str| value.get("supported_guarantees").and_then(|listed| listed.get(name)?.as_bool());
    let is_unknown = |name: &str| !config::NAMES.contains(&name);
    let is_listed = |name: &&String| has(name) == Some(true);
    if !is_right {
        let expected = "valid `enforcement`, `supported_guarantees` and `service_version`";
        Some((FORM, "form_of_handshake", expected.to_owned()))
    } else if let Some(name) = required.iter().find(|name| is_unknown(name) && is_listed(name)) {
        Some((UNKNOWN, "unknown_listed", format!("no {name:?}: true in `supported_guarantees`")))
    } else if word == "enforced"
        && let Some(name) = required.iter().find(|name| !is_listed(name))
    {
        let expected = match is_unknown(name) {
            true => format!("`partial`, `none` or an error, because {name:?} is required and unknown"),
            false => format!("{name:?}: true in `supported_guarantees`, because `enforcement` is `enforced`"),
        };
        Some((LISTED, "not_listed", expected))
    } else {
        None
    }
}

/// Findings about replies to calls that time out: they must come within a second after the timeout, and not before.
/// A service may be slow in general, so the duration of earlier plain calls is added.
pub(super) fn timely(trace: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    let is_plain = |asked: &PlacedExpectation<Runner>| {
        let Some(part) = asked.due.parts.first() else { return false };
        let role = part.extra.call.as_ref().and_then(|call| call.role);
        part.extra.limit.is_none() && matches!(role, Some("any" | "echo"))
    };
    let late_ms = (LATE_MS as f64 * trace.transcript.timeout_scale) as u64;
    let found = judge::timed(heard, is_plain).filter_map(|mut timed| {
        let part = timed.asked.due.parts.first()?;
        let (limit_ms, clause) = part.extra.limit?;
        let how = trace.transcript.plan.steps.get(timed.asked.step).and_then(|step| step.http.as_ref());
        let held_back_us = if how.is_some_and(|how| how.held_back) { HELD_BACK_US } else { 0 };
        timed.took_us = timed.took_us.saturating_sub(held_back_us);
        let answer = timed.came.answers.first();
        let is_success = matches!(answer, Some(Some(Answer { message: Message::Success { .. }, .. })));
        let may_be_refused = part.allowed_answers().any(|(_, way)| *way != AllowedReply::TimedOut);
        let is_early = !is_success && !may_be_refused && timed.took_us / 1_000 + EARLY_MS < limit_ms;
        timed.late(clause, limit_ms.saturating_add(late_ms), "").or_else(|| {
            let expected = format!("no timeout before {limit_ms} ms");
            is_early.then(|| Finding::new(clause, "early", expected, timed.got()).at(timed.asked.step))
        })
    });
    found.collect()
}

/// Marks findings about calls whose whole timeout passed: on a busy machine a tool may need it.
pub(super) fn used_up(transcript: &Transcript, judgement: &mut Judgement) {
    let is_used_up = |session: usize, step: usize| {
        judge::said(transcript, session).iter().any(|(line, exchange)| {
            let call = json::decode(&line.bytes, &DecodeLimits::default());
            let limit = call.ok().and_then(|call| call.value.get("timeout_ms").and_then(Json::as_u64));
            let took_ms = exchange.at_us.saturating_sub(line.at_us) / 1_000;
            line.step == step
                && exchange.reply.is_some()
                && took_ms + EARLY_MS >= limit.unwrap_or(TIMEOUT_DEFAULT_MS)
        })
    };
    for finding in &mut judgement.findings {
        let step = finding.step.and_then(|at| Some((transcript.plan.steps.get(at)?.session, at)));
        finding.timed |= step.is_some_and(|(session, step)| is_used_up(session, step));
    }
}

/// Keeps the first of equal findings about statuses.
pub(super) fn told_once(judgement: &mut Judgement) {
    let mut told: Vec<Finding> = Vec::new();
    judgement.findings.retain(|finding| {
        let is_same = |other: &Finding| {
            (&other.clause, &other.expected, &other.got) == (&finding.clause, &finding.expected, &finding.got)
        };
        let is_new = finding.reason != "http_status" || !told.iter().any(is_same);
        if is_new {
            told.push(finding.clone());
        }
        is_new
    });
}

/// Excuses a service that answers everything with 401. It wants a caller's identity, for which the configuration
/// has no key.
pub(super) fn unknown_caller(transcript: &Transcript, judgement: &mut Judgement) {
    if judgement.canaries_answered == 0 && judge::are_refused(transcript, |_| true) {
        judge::excuse(
            judgement,
            "status 401: the service requires a token, which is not part of the protocol",
        );
    }
}

/// Makes checks of listed guarantees untestable for a service that never says `enforced`, or that lists nothing.
pub(super) fn nothing_listed(transcript: &Transcript, judgement: &mut Judgement) {
    let is_about =
        |clause: &str| transcript.plan.steps.iter().filter_map(Aim::of).any(|aim| aim.clause.0 == clause);
    let says = |body: &[u8]| {
        let Ok(reply) = json::decode(json::trim(body), &DecodeLimits::default()) else { return false };
        let listed = reply.value.get("supported_guarantees").and_then(Json::as_object).unwrap_or_default();
        let is_enforced = reply.value.get("enforcement").and_then(Json::as_str) == Some("enforced");
        match is_about(UNKNOWN) {
            true => listed.iter().any(|(_, value)| value.as_bool() == Some(true)),
            false => is_enforced,
        }
    };
    let said = |session: usize| {
        judge::said(transcript, session).iter().any(|(_, exchange)| exchange.body.is_some_and(says))
    };
    if (is_about(LISTED) || is_about(UNKNOWN))
        && judgement.findings.is_empty()
        && !(0..transcript.plan.sessions.len()).any(said)
    {
        let why =
            Untestable::new("nothing_listed", "no handshake reports a guarantee as supported or enforced");
        judgement.untestable = Some(why);
    }
}

/// Judges the memory for refusing over-long bodies. A service that processes them may need that memory.
pub(super) fn memory(transcript: &Transcript, judgement: &mut Judgement) {
    let is_asked = |step: &Step| matches!(&step.act, Act::SampleMemory { label } if label == memory::IDLE);
    let Some(first) = transcript.plan.steps.iter().find(|step| is_asked(step)) else { return };
    let is_taken = judge::said(transcript, first.session).iter().any(|(line, exchange)| {
        let reply =
            exchange.body.and_then(|body| json::decode(json::trim(body), &DecodeLimits::default()).ok());
        line.bytes.len() > BYTES_MAX && reply.is_some_and(|reply| is_ok(&reply.value))
    });
    if is_taken {
        judgement.untestable = Some(Untestable::new(
            "over_size",
            "this service processes bodies of more than 10 MB instead of refusing them",
        ));
    } else {
        memory::judge(transcript, OF_MEMORY, judgement);
    }
}

/// Finding about a slow call that delays others.
pub(super) fn concurrent(_: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    let places = || {
        let about = |asked: &PlacedExpectation<Runner>| {
            asked.aim.as_ref().is_some_and(|aim| aim.clause.0 == CONCURRENT)
        };
        let own = heard.exchanges.iter().filter(move |(asked, _)| about(asked));
        own.filter_map(|(asked, _)| {
            let call = asked.due.parts.first()?.extra.call.as_ref()?;
            Some((*asked, call.role == Some("sleep"), heard.carriages[asked.line?].place))
        })
    };
    let slow = places().filter(|(_, is_slow, place)| *is_slow && *place > 0).map(|(_, _, place)| place).min();
    let held_up = places().find(|(_, is_slow, place)| !is_slow && slow.is_some_and(|slow| *place > slow));
    let finding = held_up.map(|(asked, ..)| {
        let got = "a reply after the reply to an earlier, slow call";
        let expected = "a reply before the reply to the slow call";
        Finding::new(CONCURRENT, "held_up", expected, got).repaired_by(Repair::Sooner).at(asked.step)
    });
    finding.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use peerproof_engine::data::carriage::HTTP;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::payload::Payload;
    use peerproof_engine::data::plan::{Chunking, Plan, Session};
    use peerproof_engine::data::transcript::{Bytes, Event};

    use super::*;

    #[test]
    fn a_failure_after_the_whole_timeout_may_be_lateness() {
        for (took_ms, timed) in [(2_000, false), (6_950, true)] {
            let payload = Payload::text("{\"timeout_ms\":7000}\n");
            let send = Act::Send { payload: payload.clone(), chunking: Chunking::Whole, await_frames: 1 };
            let plan = Plan {
                sessions: vec![Session { command: HTTP.to_owned(), ..Session::default() }],
                steps: vec![Step::new(send)],
                ..Plan::default()
            };
            let reply = EventKind::HttpReply {
                step: 0,
                of_step: 0,
                connection: 0,
                reused: false,
                status: 200,
                content_type: None,
                head: Bytes::default(),
                body_bytes: 2,
                body: Some(Bytes(b"{}".to_vec())),
                keeps_open: true,
                took_us: took_ms * 1_000,
            };
            let events = [(0, EventKind::Sent { step: 0, payload }), (took_ms * 1_000, reply)];
            let transcript = Transcript {
                boundary: "python_tool".to_owned(),
                check: "by-hand".to_owned(),
                facts: Arc::new(Facts::new(Side::Provider)),
                plan: Arc::new(plan),
                timeout_scale: 1.0,
                events: events.map(|(at_us, kind)| Event { at_us, session: 0, kind }).into(),
            };
            let failed = Finding::new("PT-SRV-12", "failed", "`ok` true", "`ok` false").at(0);
            let mut judgement = Judgement { findings: vec![failed], ..Judgement::default() };
            used_up(&transcript, &mut judgement);
            assert_eq!(judgement.findings[0].timed, timed, "after {took_ms} ms");
        }
    }
}
