//! Calls that take time or make large results: the roles `sleep` and `blob`, and what follows for what is sent with
//! them.

use super::super::role::Role;
use super::super::server::Server;
use super::allowed;
use super::methods::NOT_FROM_METHODS_OF_THE_PROFILE;
use super::{
    Allowed, Asking, Codes, Demand, ErrorRule, IdRule, LINE_BYTES_CERTAIN, LINE_BYTES_MAX, Pins, Unit, What,
    bursts, code,
};
use peerproof_engine::face::Asked;
use peerproof_engine::json::Json;
use peerproof_engine::plan::Step;

/// Time for a call that asks for none, ms (RPC Performance "Default timeout 30s").
pub const TIMEOUT_DEFAULT_MS: u64 = 30_000;
/// Longest time that a call may ask for, ms.
pub const TIMEOUT_MAX_MS: u64 = 600_000;
/// Time after its timeout that a call may stay without an answer, and half as much again, ms: work that would end
/// within it may be done before anybody looks at the clock.
pub const TIMEOUT_SLACK_MS: u64 = 1_500;
/// Work that is done so long before its timeout is done in time, ms.
const EARLY_MS: u64 = 2_000;
/// Work that is still finished after the end of input, ms; the contract says 1,000, and it begins before that end.
const FINISHED_AT_EOF_MS: u64 = 800;
/// Bytes of a reply around its result, at most and at least, but for the id.
const FRAME_BYTES: (usize, usize) = (200, 36);
/// Bytes that a character takes at most: a code unit that is escaped twice.
const SPELLED_BYTES_MAX: usize = 12;

/// Work that one request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// What the method takes, ms.
    pub busy_ms: u64,
    /// What the request gives it, ms.
    pub timeout_ms: u64,
}

/// The wish of params for a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// None, or one within the bounds.
    Within(u64),
    /// An integer that is out of bounds, moved to the nearest one: such a request may be refused.
    Beyond(u64),
    /// No integer.
    Odd,
}

/// What `options.timeout_ms` of params asks for.
pub fn wish(params: Option<&Json>) -> Wish {
    let wish = params.and_then(|params| params.get("options")?.get("timeout_ms"));
    match wish {
        None => Wish::Within(TIMEOUT_DEFAULT_MS),
        Some(Json::Number(number)) => match number.as_i64() {
            Some(ms) if ms < 1 => Wish::Beyond(1),
            Some(ms) if ms.unsigned_abs() > TIMEOUT_MAX_MS => Wish::Beyond(TIMEOUT_MAX_MS),
            Some(ms) if number.text() == ms.to_string() => Wish::Within(ms.unsigned_abs()),
            _ => Wish::Odd,
        },
        Some(_) => Wish::Odd,
    }
}

/// A call of the method that sleeps.
pub fn sleep(unit: &mut Unit, role: &Role, params: Option<&Json>, pins: &Pins) {
    unit.allowed = vec![allowed::reply(IdRule::Own)];
    let amount = params.and_then(|params| role.amount("ms", params));
    let Some(busy_ms) = amount.filter(|_| pins.profile) else { return };
    let options = params.and_then(|params| params.get("options"));
    let (timeout_ms, beyond) = match wish(params) {
        Wish::Within(ms) => (ms, false),
        Wish::Beyond(ms) => (ms, true),
        Wish::Odd => return,
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
        // The method is the peer's own, and may take no such member: then it shows nothing of timeouts.
        unit.allowed.push(refused);
        unit.extra.shows_nothing =
            Some((&[code::PARAMS], "the method of role `sleep` does not take `options.timeout_ms`"));
    }
}

/// What the error of a call that ran out of time says of itself.
const TIMED_OUT: ErrorRule =
    ErrorRule { clause: "RPC-TIME-03", codes: &[], of: code::EXECUTION, types: &["TIMEOUT"] };

/// A call of the method that makes results of any size.
pub fn blob(unit: &mut Unit, role: &Role, params: Option<&Json>, pins: &Pins) {
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
        // A method may have a bound of its own; then there is no result that could be too large.
        unit.allowed.push(allowed::error(OWN_REFUSAL, IdRule::Own));
        unit.extra.shows_nothing = Some((OWN_REFUSAL, "the method of role `blob` refuses to make so much"));
    }
}

/// What a method answers that will not do what it is asked for: invalid params, or an exception.
const OWN_REFUSAL: &[i64] = &[code::PARAMS, code::EXECUTION];

/// Bytes of the reply to a unit with a large result, however it is spelled.
fn worst(unit: &Unit) -> usize {
    let id = unit.extra.id.as_ref().map_or(4, |id| id.to_text().len());
    FRAME_BYTES.0 + (unit.extra.result_bytes + id).saturating_mul(SPELLED_BYTES_MAX)
}

/// Where the results of a batch may not fit together, any of them may give way.
pub fn give_way(asked: &mut Asking) {
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

/// What follows for calls from work that was under way when they were sent, and from the end of input behind them.
pub fn settle(steps: &[Step], all: &mut [&mut Asked<Server>]) {
    for burst in bursts(steps, all) {
        let total_ms: u64 = burst
            .iter()
            .flat_map(|asked| &asked.due.parts)
            .filter_map(|unit| unit.extra.work)
            .fold(0, |total, work| total + work.busy_ms.min(work.timeout_ms + TIMEOUT_SLACK_MS));
        for asked in burst.iter_mut() {
            // Nobody waits for it, so that the input may end before it is done.
            let is_awaited = steps.get(asked.step).is_some_and(Step::awaits_answers);
            let may_be_cut = !is_awaited && total_ms > FINISHED_AT_EOF_MS;
            for unit in &mut asked.due.parts {
                let Some(work) = unit.extra.work else { continue };
                if total_ms > work.busy_ms && total_ms + EARLY_MS > work.timeout_ms {
                    unit.allowed.push(allowed::error(&[code::EXECUTION], IdRule::Own));
                }
                if may_be_cut {
                    let error = What::Error(Codes::But(NOT_FROM_METHODS_OF_THE_PROFILE));
                    unit.allowed.push(allowed::way(error, IdRule::Own));
                    unit.allowed.push(Allowed::silence());
                    unit.extra.error_rule = None;
                }
            }
        }
    }
}
