//! The six agents: the shapes of their sections, and the sections that the reference writes.

use super::Choices;
use super::kind::is_of_kind;
use super::members::Kind;
use crate::json::Value;
use crate::refusal::Refusal;

/// The agents in the order in which they run.
pub(crate) const AGENTS: [&str; 6] = ["perception", "intent", "plan", "execution", "critic", "integration"];

/// Members of each section. A string that differs from the document's example still has the right type.
const SHAPES: &[(&str, &[(&str, Kind)])] = &[
    (
        "perception",
        &[
            ("normalized_input", Kind::Text),
            ("detected_language", Kind::Text),
            ("extracted_entities", Kind::Names),
            ("context", Kind::Map),
        ],
    ),
    (
        "intent",
        &[
            ("intent", Kind::Text),
            ("goals", Kind::Names),
            ("confidence", Kind::Number),
            ("clarification_needed", Kind::Flag),
        ],
    ),
    ("plan", &[("plan_id", Kind::Text), ("steps", Kind::Records), ("estimated_complexity", Kind::Text)]),
    ("execution", &[("status", Kind::Text), ("results", Kind::Records), ("evidence", Kind::Records)]),
    (
        "critic",
        &[
            ("verdict", Kind::Text),
            ("satisfied_goals", Kind::Names),
            ("unsatisfied_goals", Kind::Names),
            ("feedback", Kind::Text),
            ("confidence", Kind::Number),
        ],
    ),
    (
        "integration",
        &[
            ("final_response", Kind::Text),
            ("citations", Kind::Records),
            ("follow_up_suggestions", Kind::Names),
        ],
    ),
];

/// Checks the sections of the six agents among `outputs`.
///
/// # Errors
/// One sentence that names the first member with another type than in the document's example.
pub(crate) fn check(outputs: Option<&Value>) -> Result<(), Refusal> {
    for (agent, members) in SHAPES {
        let Some(section) = outputs.and_then(|outputs| outputs.get(agent)) else { continue };
        for (name, kind) in *members {
            let is_right = |value| is_of_kind(value, *kind, &Choices::default());
            if !section.get(name).is_none_or(is_right) {
                return Err(format!("outputs.{agent}.{name} has another type").into());
            }
        }
    }
    Ok(())
}

/// Section that each agent writes. `$INPUT` stands for the user's message, `$GOALS` for the remaining goals.
const SECTIONS: [&str; 6] = [
    r#"{"normalized_input":"$INPUT","detected_language":"und","extracted_entities":[],
        "context":{"session_history":[],"user_preferences":{}}}"#,
    r#"{"intent":"explain","goals":"$GOALS","confidence":0.5,"clarification_needed":false}"#,
    r#"{"plan_id":"plan_1","estimated_complexity":"low",
        "steps":[{"tool":"code_search","params":{"query":"$INPUT"},"expected_output":"places"}]}"#,
    r#"{"status":"success","results":[{"step_index":0,"tool":"code_search","result":{},"duration_ms":0}],
        "evidence":[{"location":"nowhere:1","content":"$INPUT","relevance":"the message itself"}]}"#,
    r#"{"verdict":"approved","satisfied_goals":"$GOALS","unsatisfied_goals":[],"feedback":"","confidence":0.5}"#,
    r#"{"final_response":"$INPUT","citations":[{"text":"$INPUT","location":"nowhere:1"}],"follow_up_suggestions":[]}"#,
];

/// Section that an agent writes; `None` for a name that is not one of the six.
pub(crate) fn section(agent: &str, input: &str, goals: &[Value]) -> Option<Value> {
    let text = SECTIONS.get(AGENTS.iter().position(|name| *name == agent)?)?;
    let mut section = Value::parse(text.as_bytes(), 8, &crate::json::Policy::default()).ok()?;
    fill(&mut section, input, goals);
    Some(section)
}

fn fill(value: &mut Value, input: &str, goals: &[Value]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, input, goals)),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| fill(member, input, goals)),
        value if value.as_str() == Some("$INPUT") => *value = Value::from(input),
        value if value.as_str() == Some("$GOALS") => *value = Value::Array(goals.to_vec()),
        _ => {}
    }
}
