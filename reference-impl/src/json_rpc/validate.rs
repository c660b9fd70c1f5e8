//! `validate_code` (RPC "Validation Request"): the problems of a text, by its language and the requested rules.

mod rules;
mod source;

use std::borrow::Cow;

use super::execute::clipped;
use super::method::{Call, Outcome};
use crate::json::{Scanner, write_str};

/// Largest number of problems in a reply.
const PROBLEMS_MAX: usize = 100;

/// Severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Severity {
    Error,
    Warning,
}

/// A problem with its position.
#[derive(Debug)]
struct Problem {
    severity: Severity,
    rule: &'static str,
    message: String,
    /// Byte offset in the code; `None` for a problem of the request itself.
    at: Option<usize>,
}

/// Family of languages with similar comments and strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Braces, `//` and `/* */`.
    C { template: bool, lifetimes: bool },
    /// `#` comments and triple quotes.
    Hash { triple: bool },
    /// A data format with a parser.
    Json,
    /// A data format with a parser.
    Toml,
    /// Prose, or an unknown language. Brackets are not checked.
    Other,
}

fn family(language: &str) -> Family {
    match language.to_ascii_lowercase().as_str() {
        "json" => Family::Json,
        "toml" => Family::Toml,
        "javascript" | "js" | "jsx" | "typescript" | "ts" | "tsx" | "go" => {
            Family::C { template: true, lifetimes: false }
        }
        "rust" | "rs" => Family::C { template: false, lifetimes: true },
        "c" | "c++" | "cpp" | "c#" | "csharp" | "java" | "kotlin" | "swift" | "css" | "php" => {
            Family::C { template: false, lifetimes: false }
        }
        "python" | "py" => Family::Hash { triple: true },
        "ruby" | "r" | "elixir" => Family::Hash { triple: false },
        _ => Family::Other,
    }
}

/// Runs the method. `valid` is false if there is an error; warnings do not affect it.
pub(super) fn validate_code(call: &Call<'_>) -> Outcome {
    let params = call.params.named(call.limits)?;
    let params = params.members();
    let code = params.string("code")?;
    let language = params.string("language")?;
    let rules = params.optional_strings("rules")?;
    let family = family(&language);
    let mut problems = syntax(&code, family, call.limits.nesting_max);
    problems.extend(rules::apply(&code, family, &rules));
    problems.sort_by_key(|problem| problem.at);
    Ok(write(&code, &language, &problems).into())
}

fn syntax(code: &str, family: Family, nesting_max: usize) -> Vec<Problem> {
    let problem = |message: String, at| Problem { severity: Severity::Error, rule: "syntax", message, at };
    match family {
        Family::Json => match Scanner::new(nesting_max).scan(code.as_bytes()) {
            Ok(_) => Vec::new(),
            Err(error) => vec![problem(error.to_string(), Some(error.at))],
        },
        Family::Toml => match code.parse::<toml::Table>() {
            Ok(_) => Vec::new(),
            Err(error) => {
                let at = error.span().map(|span| span.start);
                vec![problem(clipped(error.message()).into_owned(), at)]
            }
        },
        Family::C { .. } | Family::Hash { .. } => source::unbalanced(code, family)
            .into_iter()
            .map(|(message, at)| problem(message, Some(at)))
            .collect(),
        Family::Other => Vec::new(),
    }
}

/// Line and column of a byte, both from 1, the column in characters.
fn place(code: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(code.len());
    while !code.is_char_boundary(at) {
        at -= 1;
    }
    let before = code.get(..at).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let lines = before.bytes().filter(|byte| *byte == b'\n').count();
    (lines + 1, before.get(line_start..).unwrap_or_default().chars().count() + 1)
}

fn write(code: &str, language: &str, problems: &[Problem]) -> Vec<u8> {
    let valid = problems.iter().all(|problem| problem.severity == Severity::Warning);
    let mut out = format!("{{\"valid\":{valid},\"language\":").into_bytes();
    write_str(&mut out, &clipped(language));
    for (name, severity) in [("errors", Severity::Error), ("warnings", Severity::Warning)] {
        out.extend_from_slice(format!(",\"{name}\":[").as_bytes());
        let of_severity = problems.iter().filter(|problem| problem.severity == severity);
        for (at, problem) in of_severity.take(PROBLEMS_MAX).enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(format!("{{\"rule\":\"{}\",\"message\":", problem.rule).as_bytes());
            write_str(&mut out, &problem.message);
            if let Some(at) = problem.at {
                let (line, column) = place(code, at);
                out.extend_from_slice(format!(",\"line\":{line},\"column\":{column}").as_bytes());
            }
            out.push(b'}');
        }
        out.push(b']');
    }
    out.push(b'}');
    out
}

/// Distinct names in order of appearance, each with its number of occurrences.
fn distinct<'v>(names: &'v [Cow<'_, str>]) -> Vec<(&'v str, usize)> {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    let mut seen = std::collections::HashMap::new();
    for name in names {
        let at = *seen.entry(name.as_ref()).or_insert_with(|| {
            counted.push((name, 0));
            counted.len() - 1
        });
        if let Some((_, count)) = counted.get_mut(at) {
            *count += 1;
        }
    }
    counted
}
