//! Model of an input: allowed replies and normal form.

use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeErrorKind, DecodeLimits, Json, Number};

use super::shape::{self, AGENTS, BOUNDS, STAGE_CLAUSES, Shape, ValueType};
use super::time::{Spelling, spelling};

/// Largest envelope that must be accepted, bytes (document readings: 10 MB).
pub(crate) const BYTES_MAX: usize = 10 << 20;

/// Nesting that every peer accepts, levels.
const NESTING_MAX: u64 = 64;

/// Most traits of one kind, and most differences of one reply, that are reported.
pub(crate) const TOLD_MAX: usize = 20;

/// Largest integer that every peer keeps exactly.
const SAFE: f64 = 9_007_199_254_740_991.0;

/// Effect of a trait on the acceptance of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// Must be refused.
    Refuse,
    /// SHOULD be refused.
    Doubt,
    /// Must be accepted, although some peers refuse it.
    Accept,
    /// May be accepted or refused: the choice, and its values for acceptance and refusal.
    Open(Option<&'static str>, &'static str, &'static str),
}

/// An unusual or wrong property of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trait {
    /// JSON pointer to it.
    pub at: String,
    /// Its effect.
    pub stand: Acceptance,
    /// Clause of the effect.
    pub clause: &'static str,
}

/// A sent envelope.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The object as it was written.
    pub raw: Json,
    /// Normal form. If members are repeated, a second normal form with the first of each.
    pub normal: Vec<Json>,
    /// Normal form of a second object after it.
    pub second: Option<Json>,
    /// Its unusual properties.
    pub traits: Vec<Trait>,
}

/// An input as the model reads it.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    /// Properties that affect its acceptance.
    pub traits: Vec<Trait>,
    /// Its envelope, if it is an object.
    pub sent: Option<Sent>,
}

fn refuse(clause: &'static str) -> Trait {
    Trait { at: String::new(), stand: Acceptance::Refuse, clause }
}

fn open(clause: &'static str, key: &'static str, taken: &'static str, refused: &'static str) -> Trait {
    Trait {
        at: String::new(),
        stand: Acceptance::Open((!key.is_empty()).then_some(key), taken, refused),
        clause,
    }
}

impl Input {
    /// Reads the bytes of an input.
    pub(crate) fn read(facts: &Facts, bytes: &[u8]) -> Self {
        let mut traits = Vec::new();
        let mut text = json::trim(bytes);
        if let Some(rest) = text.strip_prefix(b"\xef\xbb\xbf") {
            traits.push(open("ENV-JSON-09", "bom", "ignore", "refuse"));
            text = rest;
        }
        if text.len() > BYTES_MAX {
            traits.push(open("ENV-SIZE-02", "over_size", "process", "refuse"));
        } else if bytes.len() > BYTES_MAX {
            traits.push(open("ENV-SIZE-02", "", "", ""));
        }
        let decode = |text: &[u8]| json::decode(text, &DecodeLimits::default());
        let mut second = None;
        let decoded = decode(text).or_else(|error| {
            let head = &text[..error.offset.min(text.len())];
            let is_whole =
                matches!(error.kind, DecodeErrorKind::TrailingBytes | DecodeErrorKind::InvalidUtf8);
            let first = || match decode(head) {
                Err(again) if again.kind == DecodeErrorKind::TrailingBytes => decode(&head[..again.offset]),
                decoded => decoded,
            };
            match is_whole.then(first) {
                Some(Ok(decoded)) if decoded.value.as_object().is_some() => {
                    traits.push(open("ENV-FRAME-03", "trailing_text", "ignore", "refuse"));
                    second = decode(&text[error.offset.min(text.len())..]).ok();
                    Ok(decoded)
                }
                _ => Err(error),
            }
        });
        let mut decoded = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                let is_text = error.kind != DecodeErrorKind::InvalidUtf8;
                return Self {
                    traits: vec![refuse(if is_text { "ENV-JSON-01" } else { "ENV-JSON-02" })],
                    sent: None,
                };
            }
        };
        if decoded.value.as_object().is_none() {
            return Self { traits: vec![refuse("ENV-JSON-10")], sent: None };
        }
        let nesting_max = facts.limits.get("nesting_max").copied().unwrap_or(NESTING_MAX);
        if decoded.facts.depth as u64 > nesting_max {
            traits.push(open("ENV-JSON-04", "", "", ""));
        }
        if decoded.facts.duplicate_keys {
            traits.push(open("ENV-JSON-05", "duplicate_keys", "last", "refuse"));
        }
        if decoded.facts.lone_surrogates {
            traits.push(open("ENV-JSON-06", "lone_surrogates", "echo", "refuse"));
        }
        if decoded.value.has_number(Number::is_beyond_double) {
            // The treatment of such a number shows nothing about big integers.
            traits.push(open("ENV-JSON-07", "", "", ""));
        } else if decoded.value.has_number(Number::is_big) {
            traits.push(open("ENV-JSON-07", "big_integers", "exact", "refuse"));
        }
        let first = decoded.facts.duplicate_keys.then(|| {
            let mut first = decoded.value.clone();
            first.keep_first();
            decoded.value.keep_last();
            first
        });
        let of_last = of_envelope(&decoded.value);
        let mut normal = vec![normal(&decoded.value)];
        match first {
            Some(first) => {
                normal.push(self::normal(&first));
                traits.extend(of_either(of_last, of_envelope(&first)));
            }
            None => traits.extend(of_last),
        }
        let second = second.filter(|it| it.value.as_object().is_some()).map(|it| self::normal(&it.value));
        Self { sent: Some(Sent { raw: decoded.value, normal, second, traits: traits.clone() }), traits }
    }
}

/// Combines the traits of two readings. Every reply that one of them allows is allowed.
fn of_either(last: Vec<Trait>, first: Vec<Trait>) -> Vec<Trait> {
    let is_wrong =
        |traits: &[Trait]| traits.iter().any(|it| matches!(it.stand, Acceptance::Refuse | Acceptance::Doubt));
    match (is_wrong(&last), is_wrong(&first)) {
        (true, false) => first,
        (_, true) => last,
        (false, false) => {
            let more = first.into_iter().filter(|it| !last.contains(it)).collect();
            [last, more].concat()
        }
    }
}

/// Properties of an object that affect its acceptance as an envelope.
pub(crate) fn of_envelope(envelope: &Json) -> Vec<Trait> {
    let mut traits = Vec::new();
    for (name, shape) in shape::envelope().members() {
        match envelope.get(name) {
            Some(value) => of_member(name, shape, value, &mut traits),
            None if shape.core => traits.push(Trait {
                at: format!("/{name}"),
                ..open("ENV-ACC-03", "missing_required", "default", "refuse")
            }),
            None => {}
        }
    }
    of_states(&normal(envelope), &mut traits);
    traits
}

/// Properties of a member that affect acceptance.
fn of_member(name: &str, shape: &Shape, value: &Json, traits: &mut Vec<Trait>) {
    let (at, clause) = (format!("/{name}"), shape::clause_of(name));
    if name == "processing_history" {
        if value.as_array().is_none() {
            traits.push(Trait { at, ..open("ENV-ACC-11", "", "", "") });
        }
        return;
    }
    let here = traits.len();
    of_value(&at, clause, shape, value, true, traits);
    if let ValueType::List(stage) = &shape.what
        && let (Some(stages), false) = (value.as_array(), stage.members().is_empty())
    {
        traits.truncate(here);
        for (index, item) in stages.iter().enumerate() {
            let at = format!("{at}/{index}");
            if item.as_object().is_none() {
                traits.push(Trait { at, ..refuse(clause) });
                continue;
            }
            for ((name, shape), clause) in stage.members().iter().zip(STAGE_CLAUSES) {
                if let Some(value) = item.get(name) {
                    of_value(&format!("{at}/{name}"), clause, shape, value, true, traits);
                }
            }
        }
    }
    if name == "outputs" {
        for agent in AGENTS {
            if let (Some(section), Some(shape)) = (value.get(agent), shape::named(agent)) {
                let mut inner = Vec::new();
                of_value(&format!("{at}/{agent}"), clause, shape, section, true, &mut inner);
                // Only a wrong type inside the section may be refused. A text outside an enumeration is free data.
                let is_word = |it: &Trait| {
                    let name = it.at.rsplit('/').next().unwrap_or_default();
                    let is_text = section.get(name).is_some_and(|value| value.as_str().is_some());
                    is_text && shape.member(name).is_some_and(|member| !member.one_of.is_empty())
                };
                inner.retain(|it| it.at.matches('/').count() > 2 && !is_word(it));
                if let Some(first) = inner.into_iter().next() {
                    traits
                        .push(Trait { at: first.at, ..open("ENV-ACC-10", "agent_shapes", "keep", "refuse") });
                }
            }
        }
    }
}

/// Wrong and unusual properties of a value and its parts.
pub(crate) fn of_value(
    at: &str,
    clause: &'static str,
    shape: &Shape,
    value: &Json,
    is_member: bool,
    traits: &mut Vec<Trait>,
) {
    let add = |traits: &mut Vec<Trait>, stand, clause| {
        let of_kind = |it: &&Trait| it.stand == stand && it.clause == clause;
        if traits.iter().filter(of_kind).count() < TOLD_MAX {
            traits.push(Trait { at: at.to_owned(), stand, clause });
        }
    };
    match (&shape.what, value) {
        (ValueType::Any, _) => {}
        (_, Json::Null) if shape.nullable => {}
        (_, Json::Null) if is_member && shape.is_container() => {
            add(traits, Acceptance::Accept, "ENV-TYPE-03")
        }
        (_, Json::Null) if is_member => {
            add(traits, Acceptance::Open(Some("null_member"), "absent", "refuse"), "ENV-TYPE-04");
        }
        (ValueType::Text, Json::String(text)) => {
            if !shape.one_of.is_empty() && !shape.one_of.contains(text) {
                add(traits, Acceptance::Refuse, clause);
            }
        }
        (ValueType::Id(prefix), Json::String(text)) => {
            if !is_id(text, prefix) {
                let line_feed = text.strip_suffix('\n').is_some_and(|text| is_id(text, prefix));
                add(traits, Acceptance::Refuse, if line_feed { "ENV-ID-02" } else { "ENV-ID-01" });
            }
        }
        (ValueType::Time, Json::String(text)) => match spelling(text) {
            Spelling::Right(_) => {}
            Spelling::LowerCase(_) => add(traits, Acceptance::Accept, "ENV-TIME-02"),
            Spelling::LeapSecond(_) => {
                add(traits, Acceptance::Open(Some("leap_second"), "accept", "refuse"), "ENV-TIME-03");
            }
            Spelling::Space(_) => {
                add(traits, Acceptance::Open(Some("space_for_t"), "accept", "refuse"), "ENV-TIME-04");
            }
            Spelling::Naive => add(traits, Acceptance::Doubt, "ENV-TIME-05"),
            Spelling::Wrong => add(traits, Acceptance::Refuse, "ENV-TIME-06"),
            Spelling::Lenient => add(traits, Acceptance::Doubt, "ENV-TIME-07"),
            Spelling::Far(_) => add(traits, Acceptance::Open(None, "", ""), "ENV-TIME-08"),
        },
        (ValueType::Whole(least), Json::Number(number)) if number.is_integral() => {
            let value = number.as_f64().unwrap_or(f64::INFINITY);
            if least.is_some_and(|least| value < least as f64) {
                add(traits, Acceptance::Refuse, clause);
            } else if value.abs() > SAFE {
                add(traits, Acceptance::Open(None, "", ""), "ENV-TYPE-05");
            } else if number.text().contains(['.', 'e', 'E']) {
                add(traits, Acceptance::Accept, "ENV-TYPE-02");
            }
        }
        (ValueType::Number, Json::Number(_)) | (ValueType::Flag, Json::Bool(_)) => {}
        (ValueType::List(item), Json::Array(items)) => {
            for (index, value) in items.iter().enumerate() {
                of_value(&format!("{at}/{index}"), clause, item, value, false, traits);
            }
        }
        (ValueType::Map(item), Json::Object(members)) => {
            for (name, value) in members {
                of_value(&format!("{at}/{}", token(name)), clause, item, value, false, traits);
            }
        }
        (ValueType::Record(members), Json::Object(_)) => {
            for (name, shape) in members {
                if let Some(value) = value.get(name) {
                    of_value(&format!("{at}/{name}"), clause, shape, value, true, traits);
                }
            }
        }
        _ => add(traits, Acceptance::Refuse, clause),
    }
}

/// Properties of the envelope's state; an engine may refuse some states.
fn of_states(normal: &Json, traits: &mut Vec<Trait>) {
    if is_terminated(normal) {
        traits.push(open("ENV-TERM-05", "terminated_input", "same", "refuse"));
    }
    if !pending(normal).is_empty() {
        traits.push(open("ENV-PEND-01", "pending_input", "same", "refuse"));
    }
    if is_over_bound(normal) {
        traits.push(open("ENV-BOUND-05", "over_bound", "same", "refuse"));
    } else if count(normal, "current_stage_number") > count(normal, "max_stages") {
        // The contract does not define this state.
        traits.push(open("ENV-BOUND-05", "", "", ""));
    }
    if is_inconsistent(normal) {
        traits.push(open("ENV-TERM-03", "inconsistent_input", "keep", "refuse"));
    }
}

/// True if the envelope is terminated.
pub(crate) fn is_terminated(normal: &Json) -> bool {
    normal.get("terminated").and_then(Json::as_bool) == Some(true)
}

/// Pending flags, each with its response, its question and the reason for terminating.
pub(crate) const PENDINGS: [(&str, &str, &str, &str); 2] = [
    ("clarification_pending", "clarification_response", "clarification_question", "clarification_required"),
    ("confirmation_pending", "confirmation_response", "confirmation_message", "confirmation_required"),
];

/// Terminal reasons of flags that are set and lack a response.
pub(crate) fn pending(normal: &Json) -> Vec<&'static str> {
    let waits = |(flag, response, _, _): &&(&str, &str, &str, &str)| {
        normal.get(flag).and_then(Json::as_bool) == Some(true)
            && normal.get(response).is_none_or(Json::is_null)
    };
    PENDINGS.iter().filter(waits).map(|(.., reason)| *reason).collect()
}

/// True if an engine that runs the stages of `stage_order` has a stage to run.
pub(crate) fn has_stages_left(normal: &Json) -> bool {
    let order = strings(normal, "stage_order");
    let stage = normal.get("current_stage").and_then(Json::as_str).unwrap_or_default();
    let is_left = match order.iter().position(|name| *name == stage) {
        Some(at) => at + 1 < order.len(),
        None => stage == "start" && !order.is_empty(),
    };
    let is_at_bound = BOUNDS.iter().any(|(counter, most, ..)| count(normal, counter) >= count(normal, most));
    is_left && !is_terminated(normal) && pending(normal).is_empty() && !is_at_bound
}

/// Value of a counter; 0 if absent.
pub(crate) fn count(envelope: &Json, name: &str) -> f64 {
    envelope.get(name).and_then(Json::as_f64).unwrap_or(0.0)
}

/// True if a counter is over its maximum.
pub(crate) fn is_over_bound(normal: &Json) -> bool {
    BOUNDS.iter().any(|(counter, most, ..)| count(normal, counter) > count(normal, most))
}

/// Strings of a list.
pub(crate) fn strings<'a>(envelope: &'a Json, name: &str) -> Vec<&'a str> {
    let items = envelope.get(name).and_then(Json::as_array).unwrap_or_default();
    items.iter().filter_map(Json::as_str).collect()
}

/// True if a remaining goal is satisfied, or is missing from all goals.
pub(crate) fn are_goals_wrong(normal: &Json) -> bool {
    let (all, left) = (strings(normal, "all_goals"), strings(normal, "remaining_goals"));
    let status = |goal: &str| normal.get("goal_completion_status")?.get(goal)?.as_str();
    left.iter().any(|goal| !all.is_empty() && !all.contains(goal) || status(goal) == Some("satisfied"))
}

/// True if members contradict each other.
pub(crate) fn is_inconsistent(normal: &Json) -> bool {
    let is_null = |name: &str| normal.get(name).is_none_or(Json::is_null);
    let time = |name: &str| spelling(normal.get(name)?.as_str()?).unix_us();
    let is_early = time("completed_at").zip(time("received_at")).is_some_and(|(end, begin)| end < begin);
    is_terminated(normal) == is_null("terminal_reason")
        || !is_null("completed_at") && (!is_terminated(normal) || is_early)
        || are_goals_wrong(normal)
}

fn is_id(text: &str, prefix: &str) -> bool {
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    digits.len() == 16 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A name as token of a JSON pointer.
pub(crate) fn token(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Normal form: defaults replace absent members, and null members whose type lacks null.
pub(crate) fn normal(envelope: &Json) -> Json {
    filled(shape::envelope(), envelope)
}

fn filled(shape: &Shape, value: &Json) -> Json {
    let mut filled = value.clone();
    for (name, shape) in shape.members() {
        let is_absent = match filled.get(name) {
            None => true,
            Some(value) => value.is_null() && !shape.nullable && !matches!(shape.what, ValueType::Any),
        };
        match (&shape.default, &shape.what) {
            (Some(default), _) if is_absent => filled.set(name, default.clone()),
            (None, _) if is_absent => {
                filled.remove(name);
            }
            (_, ValueType::List(item)) if !item.members().is_empty() => {
                let items = filled.get_mut(name).and_then(Json::as_array_mut);
                for one in items.into_iter().flatten().filter(|one| one.as_object().is_some()) {
                    *one = self::filled(item, one);
                }
            }
            _ => {}
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk;
    use peerproof_engine::data::clause::Side;

    fn of(text: &str) -> Vec<(Acceptance, String)> {
        let traits = Input::read(&Facts::new(Side::Provider), text.as_bytes()).traits;
        traits.into_iter().map(|it| (it.stand, it.at)).collect()
    }

    fn open_once(text: &str) -> bool {
        matches!(of(text)[..], [(Acceptance::Open(..), _)])
    }

    #[test]
    fn of_two_readings_either_may_be_right() {
        let open = talk::PLAIN.strip_suffix('}').unwrap();
        assert!(open_once(&format!("{open},\"iteration\":1,\"iteration\":-1}}")));
        assert!(open_once(&format!("{open},\"iteration\":-1,\"iteration\":1}}")));
        let both = of(&format!("{open},\"iteration\":-2,\"iteration\":-1}}"));
        assert!(both.iter().any(|(stand, _)| *stand == Acceptance::Refuse), "{both:?}");
    }

    #[test]
    fn sections_are_refused_for_types_alone() {
        let section = |section: &str| of(&talk::with(talk::PLAIN, [("outputs", section)]));
        assert_eq!(section(r#"{"critic":{"verdict":"perhaps"},"execution":{"status":""}}"#), []);
        for wrong in
            [r#"{"critic":{"verdict":5}}"#, r#"{"intent":{"goals":null}}"#, r#"{"plan":{"steps":[1]}}"#]
        {
            assert!(
                matches!(section(wrong)[..], [(Acceptance::Open(Some("agent_shapes"), ..), _)]),
                "{wrong}"
            );
        }
    }

    #[test]
    fn more_stages_than_the_most_may_be_refused() {
        assert!(open_once(&talk::with(talk::PLAIN, [("current_stage_number", "6")])));
        assert_eq!(of(&talk::with(talk::PLAIN, [("current_stage_number", "5")])), []);
    }

    #[test]
    fn a_form_feed_is_no_white_space() {
        assert_eq!(of(&format!(" \t\r\n{}\n", talk::PLAIN)), []);
        assert_eq!(of(&format!("\u{c}{}", talk::PLAIN))[0].0, Acceptance::Refuse);
        assert!(open_once(&format!("{}\u{c}", talk::PLAIN)));
    }

    #[test]
    fn of_many_traits_some_are_told() {
        let text = talk::with(talk::PLAIN, [("errors", &*format!("[{}1]", "1,".repeat(1_000)))]);
        assert_eq!(of(&text).len(), TOLD_MAX);
    }
}
