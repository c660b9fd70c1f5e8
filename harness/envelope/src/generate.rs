//! Random envelopes of every version level.

use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::free_data;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Chunking, Plan};
use peerproof_engine::data::rng::Rng;

use super::face::COMMAND;
use super::model::{Input, Trait};
use super::shape::{self, Shape, ValueType};
use super::talk::{self, Talk};

/// Member names that are easily lost.
const NAMES: &[&str] =
    &["k", "", "__proto__", "constructor", "a.b", "a/b~c", "Envelope_Id", "K", "é", "error"];

/// Date-times in every legal spelling.
const TIMES: &[&str] = &[
    "2025-12-10T10:00:00Z",
    "2025-12-10T10:00:00.5+00:00",
    "2024-02-29T23:59:59.123456789-23:59",
    "1999-12-31T23:59:59.999999Z",
    "2025-12-10t10:00:00.123z",
    "2025-12-10T10:00:00.000001+14:00",
    "2025-12-10T10:00:00.10-00:00",
    "2025-12-10t23:59:00Z",
    "0001-01-01T00:00:00Z",
    "1970-01-01T00:00:00.000000000000+23:59",
];

/// Members that later versions added: bounds in 1.2, several stages in 1.1.
const ADDED: [&[&str]; 2] = [
    &["llm_call_count", "max_llm_calls", "agent_hop_count", "max_agent_hops"],
    &[
        "completed_stages",
        "current_stage_number",
        "max_stages",
        "all_goals",
        "remaining_goals",
        "goal_completion_status",
    ],
];

/// Integers up to the limits of exact representation.
const WHOLE: [i64; 6] = [-9_007_199_254_740_991, -1, 0, 1, 16_777_217, 9_007_199_254_740_991];

/// Counters that do not fit into 32 bits, or barely into 53.
const LARGE: [i64; 4] = [2_147_483_648, 4_294_967_301, 1 << 52, 9_007_199_254_740_990];

/// Units of long inputs.
const UNITS: [&str; 3] = ["x", "é€😀", "\\u00e9"];

/// A conversation: a canary and a few envelopes, some with one wrong member.
pub fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let is_server = !facts.commands.contains(COMMAND) && facts.commands.contains(HTTP);
    let mut talk = Talk::new(if is_server { HTTP } else { COMMAND });
    for _ in 0..rng.range(1..=4) {
        let mut text = envelope(rng);
        if rng.chance(1, 4) {
            text = spoilt(&text, rng);
        }
        let bytes = match rng.below(400) {
            0 => 9 << 20,
            1..=3 => 1 << 20,
            4..=19 => 64 << 10,
            20..=49 => 1 << 10,
            _ => 0,
        };
        talk.send("ENV-PROC-01", sized(&text, bytes, rng), Chunking::Whole);
    }
    let mut plan = talk.plan();
    // The allowed replies follow from the bytes alone.
    plan.steps.iter_mut().filter(|step| !step.canary).for_each(|step| step.expect = serde_json::Value::Null);
    plan
}

/// An envelope that every engine accepts, possibly a terminated one. The start of a chain is never terminated.
pub(crate) fn accepted(facts: &Facts, is_start: bool, rng: &mut Rng) -> String {
    loop {
        let text = envelope(rng);
        let is_taken = |it: &Trait| it.clause == "ENV-TERM-05" && !is_start;
        if Input::read(facts, text.as_bytes()).traits.iter().all(is_taken) {
            return text;
        }
    }
}

/// The envelope, padded in its metadata to this size. Not in the user's input, because an engine that runs stages
/// may copy that into several places.
pub(crate) fn sized(text: &str, bytes: u64, rng: &mut Rng) -> Payload {
    let unit = *rng.pick(&UNITS);
    let times = bytes.saturating_sub(text.len() as u64) / unit.len() as u64;
    let long = talk::with(text, [("metadata", "{\"long\":\"\"}")]);
    let name = "\"long\":\"";
    match long.find(name).filter(|_| times > 0) {
        Some(at) => {
            let (before, behind) = long.split_at(at + name.len());
            Payload::text(before).repeat(unit, times).then(Payload::text(behind))
        }
        None => Payload::text(text),
    }
}

/// A valid envelope.
pub fn envelope(rng: &mut Rng) -> String {
    let base = *rng.pick(&["plain", "done", "full", "full-done"]);
    let is_done = base.ends_with("done");
    let base = talk::base(base).unwrap_or_default();
    let mut changes: Vec<(String, String)> = Vec::new();
    // Members that belong to a state keep the values of the base.
    let of_state = [
        "terminated",
        "terminal_reason",
        "completed_at",
        "remaining_goals",
        "goal_completion_status",
        "all_goals",
    ];
    for (name, shape) in shape::envelope().members() {
        let is_bound = name.starts_with("max_") || name.ends_with("_count") || name.ends_with("_pending");
        if is_bound || name == "iteration" || of_state.contains(&name.as_str()) || !rng.chance(1, 4) {
            continue;
        }
        if !shape.core && rng.chance(1, 6) {
            changes.push((name.clone(), String::new()));
        } else {
            changes.push((name.clone(), value(shape, rng).to_text()));
        }
    }
    if is_done && rng.chance(1, 3) {
        for (counter, most, ..) in shape::BOUNDS {
            let (count, bound) = (rng.pick(&LARGE), WHOLE.iter().max().unwrap_or(&1));
            changes.extend([(counter.to_owned(), count.to_string()), (most.to_owned(), bound.to_string())]);
        }
    }
    let newer = *rng.pick(&[0, 1, 2]);
    changes.extend(
        ADDED.iter().take(newer).flat_map(|names| *names).map(|name| ((*name).to_owned(), String::new())),
    );
    for _ in 0..rng.below(3) {
        changes.push((format!("x_{}", rng.below(9)), free_data::value(NAMES, rng, 3).to_text()));
    }
    talk::with(&base, changes.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// Gives one member a wrong value.
fn spoilt(text: &str, rng: &mut Rng) -> String {
    let members = shape::envelope().members();
    let (name, shape) = rng.pick(members);
    let wrong = shape.wrong();
    if wrong.is_empty() {
        text.to_owned()
    } else {
        talk::with(text, [(name.as_str(), rng.pick(&wrong).as_str())])
    }
}

/// A valid value of a shape.
fn value(shape: &Shape, rng: &mut Rng) -> Json {
    match &shape.what {
        _ if shape.nullable && rng.chance(1, 4) => Json::Null,
        ValueType::Any => {
            Json::array((0..rng.below(3)).map(|_| free_data::object(NAMES, rng, 2)).collect::<Vec<_>>())
        }
        ValueType::Text if !shape.one_of.is_empty() => Json::from(rng.pick(&shape.one_of).as_str()),
        ValueType::Text => free_data::string(rng),
        ValueType::Id(prefix) => Json::from(format!("{prefix}{:016x}", rng.next_u64())),
        ValueType::Time => Json::from(*rng.pick(TIMES)),
        ValueType::Whole(None) => Json::from(*rng.pick(&WHOLE)),
        ValueType::Whole(least) => Json::from(least.unwrap_or(0) + i64::try_from(rng.below(4)).unwrap_or(0)),
        ValueType::Number => free_data::number(rng),
        ValueType::Flag => Json::from(rng.chance(1, 2)),
        ValueType::List(item) => Json::array((0..rng.below(3)).map(|_| value(item, rng)).collect::<Vec<_>>()),
        ValueType::Map(item) if matches!(item.what, ValueType::Any) => free_data::object(NAMES, rng, 4),
        ValueType::Map(item) => {
            let mut map = Json::Object(Vec::new());
            for _ in 0..rng.below(4) {
                map.set(rng.pick::<&str>(NAMES), value(item, rng));
            }
            map
        }
        ValueType::Record(members) => {
            let mut record = free_data::object(NAMES, rng, 2);
            for (name, shape) in members {
                if rng.chance(2, 3) {
                    record.set(name, value(shape, rng));
                }
            }
            record
        }
    }
}
