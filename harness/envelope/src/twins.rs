//! Comparison of replies to equal envelopes, except for generated values.

use peerproof_engine::data::json::{Json, Number};

use super::model::{self, Sent, token};
use super::shape;
use super::time::{Spelling, spelling};

/// Words in names of members with generated values: ids, times and durations.
const GENERATED: [&str; 45] = [
    "id",
    "ids",
    "uuid",
    "guid",
    "ulid",
    "key",
    "token",
    "nonce",
    "trace",
    "span",
    "hash",
    "ref",
    "at",
    "on",
    "time",
    "times",
    "timing",
    "timings",
    "timestamp",
    "date",
    "now",
    "ts",
    "epoch",
    "start",
    "started",
    "end",
    "ended",
    "finished",
    "created",
    "updated",
    "ms",
    "us",
    "ns",
    "sec",
    "secs",
    "seconds",
    "duration",
    "durations",
    "elapsed",
    "latency",
    "took",
    "age",
    "uptime",
    "clock",
    "millis",
];

/// Members whose values an engine chooses among known words.
const WORDS: [&str; 3] = ["current_stage", "stage_order", "terminal_reason"];

/// JSON pointer to the first difference between two replies to `sent`, except for generated ids and times.
pub(crate) fn parted(sent: &Sent, other: &Json, reply: &Json) -> Option<String> {
    let (other, reply) = (model::normal(other), model::normal(reply));
    // Undocumented members are the engine's own affair.
    shape::envelope().members().iter().find_map(|(name, _)| {
        let old = sent.normal.first().and_then(|it| it.get(name)).filter(|_| sent.raw.get(name).is_some());
        let pair = Pair { old, one: other.get(name), two: reply.get(name) };
        pair.parts(&format!("/{name}"), WORDS.contains(&name.as_str()), is_named(name))
    })
}

/// Values at one pointer: the sent one, and those of two replies.
#[derive(Clone, Copy)]
struct Pair<'a> {
    old: Option<&'a Json>,
    one: Option<&'a Json>,
    two: Option<&'a Json>,
}

impl<'a> Pair<'a> {
    /// Pointer to the first difference. `is_generated` is true if a name on the path means a time or an id.
    fn parts(self, at: &str, is_word: bool, is_generated: bool) -> Option<String> {
        let Self { old, one, two } = self;
        if one == two {
            return None;
        }
        let deeper = |key: &str, name: &str, pick: &dyn Fn(&'a Json) -> Option<&'a Json>| {
            let pair = Pair { old: old.and_then(pick), one: one.and_then(pick), two: two.and_then(pick) };
            pair.parts(&format!("{at}/{key}"), is_word, is_generated || is_named(name))
        };
        // A sent value comes back, or is changed in the same way each time.
        let is_own = old.is_none() || (old != one && old != two);
        match (one, two) {
            (Some(Json::Object(members)), Some(Json::Object(others))) => {
                let is_key = |name: &str| is_random(name) && old.is_none_or(|old| old.get(name).is_none());
                let names = members.iter().chain(others).map(|(name, _)| name);
                names
                    .filter(|name| !is_key(name))
                    .find_map(|name| deeper(&token(name), name, &|it| it.get(name)))
            }
            (Some(Json::Array(items)), Some(Json::Array(others))) if items.len() == others.len() => (0
                ..items.len())
                .find_map(|index| deeper(&index.to_string(), "", &|it| it.as_array()?.get(index))),
            (Some(Json::Number(one)), Some(Json::Number(two)))
                if is_own && (is_generated || are_measured(at, one, two)) =>
            {
                None
            }
            (Some(Json::String(one)), Some(Json::String(two)))
                if is_own && !is_word && (is_generated || are_generated(one, two)) =>
            {
                None
            }
            _ => Some(at.to_owned()),
        }
    }
}

/// True if a name has a word for ids or times.
fn is_named(name: &str) -> bool {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = letter.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.iter().any(|word| GENERATED.contains(&word.as_str()))
}

/// True if two numbers look like times or durations, whatever their name. The document has only one other fraction.
fn are_measured(at: &str, one: &Number, two: &Number) -> bool {
    const UNIX_TIME_MIN: f64 = 1e9;
    let is_measured = |it: &Number| !it.is_integral() || it.as_f64().is_some_and(|it| it >= UNIX_TIME_MIN);
    !at.ends_with("/confidence") && (is_measured(one) || is_measured(two))
}

/// True if a text looks like a generated key: a word of several characters, digits among them.
fn is_random(text: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    words.into_iter().any(|word| word.len() >= 4 && word.bytes().any(|byte| byte.is_ascii_digit()))
}

/// True if two texts differ only in times, durations and generated ids: in words with digits.
fn are_generated(one: &str, two: &str) -> bool {
    if [one, two].iter().all(|text| spelling(text) != Spelling::Wrong) {
        return true;
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
    let words = |text: &str| -> Vec<Vec<u8>> {
        text.as_bytes().chunk_by(|one, two| is_word(one) == is_word(two)).map(<[u8]>::to_vec).collect()
    };
    let is_counted = |word: &[u8]| {
        let has_digit = word.iter().any(u8::is_ascii_digit);
        has_digit || word.len() >= 4 && word.iter().all(u8::is_ascii_hexdigit)
    };
    let (one, two) = (words(one), words(two));
    one.len() == two.len()
        && one.iter().zip(&two).all(|(one, two)| one == two || is_counted(one) && is_counted(two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Input;
    use crate::talk;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;

    fn said(name: &str, sent: &str, one: &str, two: &str) -> Option<String> {
        let with = |text: &str| talk::with(talk::PLAIN, [(name, text)]);
        let input = Input::read(&Facts::new(Side::Provider), with(sent).as_bytes());
        parted(&input.sent.unwrap(), &with(one).parse().unwrap(), &with(two).parse().unwrap())
    }

    #[test]
    fn generated_ids_and_times_may_differ_wherever_an_engine_writes_them() {
        for (name, sent, one, two) in [
            ("outputs", "{}", r#"{"plan":{"plan_id":"x"}}"#, r#"{"plan":{"plan_id":"y"}}"#),
            (
                "outputs",
                "{}",
                r#"{"plan":{"note":"plan 3f9a, 12 ms"}}"#,
                r#"{"plan":{"note":"plan ccda, 7 ms"}}"#,
            ),
            (
                "outputs",
                "{}",
                r#"{"execution":{"results":[{"result":{"when":"2025-12-10T10:00:00Z"}}]}}"#,
                r#"{"execution":{"results":[{"result":{"when":"2025-12-10T10:00:00.5Z"}}]}}"#,
            ),
            ("metadata", r#"{"a":1}"#, r#"{"a":1,"elapsedSeconds":0.25}"#, r#"{"a":1,"elapsedSeconds":0.5}"#),
            ("metadata", "", r#"{"timings":{"plan":3}}"#, r#"{"timings":{"plan":4}}"#),
            ("metadata", "", r#"{"wall":0.25,"when":1765360800}"#, r#"{"wall":0,"when":1765360801}"#),
            ("metadata", "", r#"{"run_7f3a":{"a":1}}"#, r#"{"run_81bc":{"a":1}}"#),
            (
                "processing_history",
                "",
                r#"[{"run":"0b1c-77aa","llm_calls":1}]"#,
                r#"[{"run":"99ac-d7ee","llm_calls":1}]"#,
            ),
            ("envelope_id", "", "\"env_0000000000000001\"", "\"env_0000000000000002\""),
            ("more", "", "1", "2"),
        ] {
            assert_eq!(said(name, sent, one, two), None, "{name} {one} {two}");
        }
    }

    #[test]
    fn nothing_else_may_differ() {
        for (name, sent, one, two, at) in [
            ("metadata", "", r#"{"call":1}"#, r#"{"call":2}"#, "/metadata/call"),
            ("metadata", r#"{"id":"a"}"#, r#"{"id":"a"}"#, r#"{"id":"b"}"#, "/metadata/id"),
            (
                "outputs",
                "{}",
                r#"{"intent":{"intent":"explain"}}"#,
                r#"{"intent":{"intent":"trace"}}"#,
                "/outputs/intent/intent",
            ),
            (
                "outputs",
                "{}",
                r#"{"intent":{"goals":["a"]}}"#,
                r#"{"intent":{"goals":[]}}"#,
                "/outputs/intent/goals",
            ),
            (
                "outputs",
                "{}",
                r#"{"intent":{"confidence":0.5}}"#,
                r#"{"intent":{"confidence":0.25}}"#,
                "/outputs/intent/confidence",
            ),
            ("current_stage", "\"start\"", "\"stage1\"", "\"stage2\"", "/current_stage"),
            ("llm_call_count", "0", "1", "2", "/llm_call_count"),
        ] {
            assert_eq!(said(name, sent, one, two).as_deref(), Some(at), "{name} {one} {two}");
        }
    }
}
