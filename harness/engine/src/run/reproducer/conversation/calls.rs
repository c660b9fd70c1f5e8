//! Calls of a scenario: a finding about one call is shown by this call alone, with the program that it reaches and its result.

use std::collections::BTreeSet;

use super::excerpt::{self, LIMITS};
use super::inputs::of_session;
use super::{CAME, EVENT, ShownLine};
use crate::data::finding::Finding;
use crate::data::json::{Json, decode};
use crate::data::payload::shorten;
use crate::data::text::visible;
use crate::data::transcript::{EventKind, Transcript};

/// Member that names a call, in scenarios and in results.
const REF: &str = "ref";

/// Call that a finding is about.
pub(super) struct NamedCall {
    name: String,
    /// Names of the fixtures in the call.
    pub(super) fixtures: BTreeSet<String>,
}

/// Shows only the call that a finding names, and only its result. `None` for another kind of conversation or finding.
pub(super) fn only_named_call(
    lines: &mut [ShownLine],
    transcript: &Transcript,
    finding: &Finding,
    (session, chars_max): (usize, usize),
) -> Option<NamedCall> {
    let name = named_in(finding)?;
    let (input, place, call) = of_session(&transcript.plan, session).into_iter().find_map(|input| {
        let scenario = decode(input.text.as_bytes(), &LIMITS).ok()?.value;
        let (place, call) = call_of(&scenario, &name)?;
        Some((input, place, call.to_text()))
    })?;
    let is_scenario = |line: &ShownLine| {
        line.session == session && line.event.is_some() && line.text.starts_with(&input.line("", chars_max))
    };
    if let Some(line) = lines.iter_mut().find(|line| is_scenario(line)) {
        let room = chars_max.saturating_sub(input.line("", chars_max).chars().count());
        let text = excerpt::around(&input.text, &place, room)?;
        line.text = shorten(&visible(&input.line(&text, chars_max)), chars_max).into_owned();
    }
    for line in lines {
        let Some(EventKind::FileHeld { file, bytes }) =
            line.event.map(|event| &transcript.events[event].kind)
        else {
            continue;
        };
        let results = String::from_utf8_lossy(&bytes.0);
        if let Some(result) = results.lines().find(|result| ref_in(result).is_some_and(|own| own == name)) {
            let text = format!("{EVENT}{file} holds {result}");
            line.text = shorten(&visible(&text), chars_max).into_owned();
        }
    }
    Some(NamedCall { name, fixtures: fixtures_in(&call) })
}

impl NamedCall {
    /// Index of the line with the result of the call.
    pub(super) fn result(&self, lines: &[ShownLine], transcript: &Transcript) -> Option<usize> {
        lines.iter().position(|line| match line.event.and_then(|event| transcript.events.get(event)) {
            Some(event) if matches!(event.kind, EventKind::FileHeld { .. }) => {
                line.text.contains(&format!("{:?}", self.name))
            }
            _ => line.text.starts_with(CAME) && ref_in(&line.text[CAME.len()..]).as_ref() == Some(&self.name),
        })
    }
}

/// Name of the call in a result that the finding quotes, or behind the words "the call".
fn named_in(finding: &Finding) -> Option<String> {
    let of_words = || {
        let (_, behind) = finding.expected.split_once("the call \"")?;
        Some(behind.split_once('"')?.0.to_owned())
    };
    ref_in(&finding.got).or_else(of_words)
}

/// Name of the call in the text of a result, which may be cut.
fn ref_in(result: &str) -> Option<String> {
    let (_, behind) = result.strip_prefix('{')?.split_once("\"ref\"")?;
    let behind = behind.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    behind.split_once('"').map(|(name, _)| name.to_owned())
}

/// Place and value of the call with this name in a scenario.
fn call_of<'j>(scenario: &'j Json, name: &str) -> Option<(String, &'j Json)> {
    scenario.as_object()?.iter().find_map(|(key, calls)| {
        let calls = calls.as_array()?;
        let at = calls.iter().position(|call| call.get(REF).and_then(Json::as_str) == Some(name))?;
        Some((format!("/{key}/{at}"), &calls[at]))
    })
}

/// Names of the fixtures that a text refers to, as `⟨NAME.path⟩`.
fn fixtures_in(text: &str) -> BTreeSet<String> {
    let parts = text.split('⟨').skip(1).filter_map(|part| part.split_once('⟩'));
    parts.filter_map(|(variable, _)| Some(variable.split_once('.')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_result_or_in_words() {
        let named = |expected: &str, got: &str| named_in(&Finding::new("C", "wrong", expected, got));
        assert_eq!(named("a crash", r#"{"outcome":"result","ref":"c1","result":1}"#).as_deref(), Some("c1"));
        assert_eq!(named(r#"`timeout_ms` in the request of the call "c2""#, "1000").as_deref(), Some("c2"));
        assert_eq!(named("a crash", r#"{"outcome":"result"}"#), None);
        let call = r#"{"ref":"c1","command":["⟨played-c1.path⟩"],"url":"http://⟨one.address⟩/"}"#;
        let scenario = format!(r#"{{"project":{{}},"calls":[{{"ref":"c0"}},{call}]}}"#);
        let scenario = decode(scenario.as_bytes(), &LIMITS).unwrap().value;
        assert_eq!(call_of(&scenario, "c1").map(|(place, _)| place).as_deref(), Some("/calls/1"));
        assert_eq!(fixtures_in(call).into_iter().collect::<Vec<_>>(), ["one", "played-c1"]);
    }
}
