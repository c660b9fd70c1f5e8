//! Calls that take time or return large results: the roles `sleep` and `blob`, and their effects on concurrent
//! calls.

use super::super::role::Role;
use super::allowed;
use super::{
    Allowed, AnswerKind, Asking, Codes, Demand, ErrorRule, IdRule, LINE_BYTES_CERTAIN, LINE_BYTES_MAX,
    NOT_FROM_METHODS_OF_THE_PROFILE, Pins, RequestPart, Server, bursts, code,
};
use peerproof_engine::contract::face::PlacedExpectation;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Step;

/// Default timeout of a call, ms (RPC Performance "Default timeout 30s").
pub(crate) const TIMEOUT_DEFAULT_MS: u64 = 30_000;
/// Largest timeout that a call may ask for, ms.
pub(crate) const TIMEOUT_MAX_MS: u64 = 600_000;
/// Time after its timeout within which a call must be answered, with half as much tolerance, ms. Work that ends
/// within this time may be finished before the server checks its clock.
pub(crate) const TIMEOUT_SLACK_MS: u64 = 1_500;
/// Work that takes this much less than its timeout must be finished in time, ms.
const EARLY_MS: u64 = 2_000;
/// Work that must be finished after the end of input, ms. The contract says 1,000, but the work begins before that
/// end.
const FINISHED_AT_EOF_MS: u64 = 800;
/// Largest and smallest number of bytes of a reply beside its result and its id.
const FRAME_BYTES: (usize, usize) = (200, 36);
/// Most bytes per character: an escaped code unit, escaped again.
const SPELLED_BYTES_MAX: usize = 12;

/// Work of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Duration of the method, ms.
    pub busy_ms: u64,
    /// Timeout of the request, ms.
    pub timeout_ms: u64,
}

/// The timeout that params ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestedTimeout {
    /// Absent, or within the bounds; ms.
    Within(u64),
    /// An integer out of bounds, moved to the nearest bound; the server may refuse such a request.
    Beyond(u64),
    /// Not an integer.
    Odd,
}

/// Reads `options.timeout_ms` of params.
pub(crate) fn wish(params: Option<&Json>) -> RequestedTimeout {
    let wish = params.and_then(|params| params.get("options")?.get("timeout_ms"));
    match wish {
        None => RequestedTimeout::Within(TIMEOUT_DEFAULT_MS),
        Some(Json::Number(number)) => match number.as_i64() {
            Some(ms) if ms < 1 => RequestedTimeout::Beyond(1),
            Some(ms) if ms.unsigned_abs() > TIMEOUT_MAX_MS => RequestedTimeout::Beyond(TIMEOUT_MAX_MS),
            Some(ms) if number.text() == ms.to_string() => RequestedTimeout::Within(ms.unsigned_abs()),
            _ => RequestedTimeout::Odd,
        },
        Some(_) => RequestedTimeout::Odd,
    }
}

/// Sets the allowed replies to a call of the role `sleep`.
pub(super) fn sleep(unit: &mut RequestPart, role: &Role, params: Option<&Json>, pins: &Pins) {
    unit.allowed = vec![allowed::reply(IdRule::Own)];
    let amount = params.and_then(|params| role.amount("ms", params));
    let Some(busy_ms) = amount.filter(|_| pins.profile) else { return };
    let options = params.and_then(|params| params.get("options"));
    let (timeout_ms, beyond) = match wish(params) {
        RequestedTimeout::Within(ms) => (ms, false),
        RequestedTimeout::Beyond(ms) => (ms, true),
        RequestedTimeout::Odd => return,
    };
    if options.is_some_and(|options| !matches!(options, Json::Object(_))) {
        return;
    }
    let done = allowed::result(Demand::Any);
    let given_up = allowed::error(&[code::EXECUTION], IdRule::Own);
    let refused = allowed::error(&[code::PARAMS], IdRule::Own);
    unit.clause = "RPC-TIME-01";
    unit.extra.work = Some(Work { busy_ms, timeout_ms });
    if busy_ms >= timeout_ms + TIMEOUT_SLACK_MS {
        unit.allowed = vec![given_up];
        unit.extra.error_rule = Some(TIMED_OUT);
    } else if busy_ms + EARLY_MS <= timeout_ms {
        unit.allowed = vec![done];
    } else {
        unit.allowed = vec![done, given_up];
    }
    if beyond {
        unit.clause = "RPC-TIME-05";
        unit.allowed.push(refused);
    } else if options.is_some() {
        // The method is the peer's own and may not know this option. Then the reply shows nothing about timeouts.
        unit.allowed.push(refused);
        unit.extra.shows_nothing =
            Some((&[code::PARAMS], "the method of role `sleep` does not accept `options.timeout_ms`"));
    }
}

/// Required error of a call that ran out of time.
const TIMED_OUT: ErrorRule =
    ErrorRule { clause: "RPC-TIME-03", codes: &[], of: code::EXECUTION, types: &["TIMEOUT"] };

/// Sets the allowed replies to a call of the role `blob`.
pub(super) fn blob(unit: &mut RequestPart, role: &Role, params: Option<&Json>, pins: &Pins) {
    unit.allowed = vec![allowed::reply(IdRule::Own)];
    let amount = params.and_then(|params| role.amount("bytes", params));
    let Some(bytes) = amount.filter(|_| pins.profile).and_then(|bytes| usize::try_from(bytes).ok()) else {
        return;
    };
    let too_large = allowed::error(&[code::INTERNAL], IdRule::Own);
    let whole = allowed::result(Demand::Blob(bytes));
    unit.clause = "RPC-SIZE-05";
    unit.extra.result_bytes = bytes;
    unit.allowed = if FRAME_BYTES.1.saturating_add(bytes) > LINE_BYTES_MAX {
        vec![too_large]
    } else if worst(unit) > LINE_BYTES_CERTAIN {
        vec![whole, too_large]
    } else {
        vec![whole]
    };
    if worst(unit) > LINE_BYTES_CERTAIN {
        // A method may have a limit of its own, below the size at which a result is too large.
        unit.allowed.push(allowed::error(OWN_REFUSAL, IdRule::Own));
        unit.extra.shows_nothing =
            Some((OWN_REFUSAL, "the method of role `blob` refuses to make so many bytes"));
    }
}

/// Error codes of a method that refuses the request: invalid params, or an exception.
const OWN_REFUSAL: &[i64] = &[code::PARAMS, code::EXECUTION];

/// Largest length of the reply to a unit with a large result, bytes.
fn worst(unit: &RequestPart) -> usize {
    let id = unit.extra.id.as_ref().map_or(4, |id| id.to_text().len());
    FRAME_BYTES.0 + (unit.extra.result_bytes + id).saturating_mul(SPELLED_BYTES_MAX)
}

/// Lets any result of a batch become an error if the results may not fit together.
pub(crate) fn give_way(asked: &mut Asking) {
    let total: usize = asked.parts.iter().map(worst).fold(0, usize::saturating_add);
    if !asked.together
        || total <= LINE_BYTES_CERTAIN
        || asked.parts.iter().all(|unit| unit.extra.result_bytes == 0)
    {
        return;
    }
    for unit in asked.parts.iter_mut().filter(|unit| !unit.must_be_silent()) {
        unit.allowed.push(allowed::error(&[code::INTERNAL], IdRule::Own));
    }
}

/// Applies the effects of concurrent work and of the end of input to calls.
pub(crate) fn settle(steps: &[Step], all: &mut [&mut PlacedExpectation<Server>]) {
    for burst in bursts(steps, all) {
        let total_ms: u64 = burst
            .iter()
            .flat_map(|asked| &asked.due.parts)
            .filter_map(|unit| unit.extra.work)
            .fold(0, |total, work| total + work.busy_ms.min(work.timeout_ms + TIMEOUT_SLACK_MS));
        for asked in burst.iter_mut() {
            // No step waits for the reply, so input may end before the work is done.
            let is_awaited = steps.get(asked.step).is_some_and(Step::awaits_answers);
            let may_be_cut = !is_awaited && total_ms > FINISHED_AT_EOF_MS;
            for unit in &mut asked.due.parts {
                let Some(work) = unit.extra.work else { continue };
                if total_ms > work.busy_ms && total_ms + EARLY_MS > work.timeout_ms {
                    unit.allowed.push(allowed::error(&[code::EXECUTION], IdRule::Own));
                }
                if may_be_cut {
                    let error = AnswerKind::Error(Codes::But(NOT_FROM_METHODS_OF_THE_PROFILE));
                    unit.allowed.push(allowed::way(error, IdRule::Own));
                    unit.allowed.push(Allowed::silence());
                    unit.extra.error_rule = None;
                }
            }
        }
    }
}
