//! Cases of the json_rpc boundary as data (`corpora/json_rpc/cases`): what their rows mean.
//!
//! A step is one line, without its line feed; what may come back follows from its bytes. Placeholders, all of them
//! JSON texts:
//!
//! | | |
//! |---|---|
//! | `$ECHO`, `$FAIL`, `$NAMED`, `$COUNTER` | the method of that role, with quotes; `$NAMED` subtracts |
//! | `$NONE` | a method that is there nowhere, with quotes |
//! | `$GOOD` | a whole request known to be answered, with the id `"good"` |

use std::collections::BTreeSet;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use super::model::TIMEOUT_DEFAULT_MS;
use super::role::{difference, role};
use super::talk::{Talk, UNKNOWN_METHOD, good, quoted};
use peerproof_engine::case::{self, Case, Loaded, Recipe};
use peerproof_engine::check::Check;
use peerproof_engine::clause::{ClauseId, Side};
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Chunking, Plan};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Limits by name, for recipes (document 004, Performance; contract readings).
const LIMITS: [(&str, u64); 2] = [("line_bytes_certain", 1_000_000), ("line_bytes_max", 1_048_576)];

/// One line of a case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    raw: Recipe,
    #[serde(default)]
    chunking: Chunking,
    /// Clause that the step is about; by default the case's first one.
    clause: Option<ClauseId>,
    /// No canary follows; the next step is one of the same burst.
    #[serde(default)]
    no_canary: bool,
}

/// The checks of one case file, named without its extension.
pub fn checks(file: &str) -> Vec<Check> {
    all().iter().filter(|loaded| loaded.file == file).map(|loaded| check(&loaded.case)).collect()
}

/// The names of all files.
pub fn files() -> BTreeSet<&'static str> {
    all().iter().map(|loaded| loaded.file.as_str()).collect()
}

/// All cases; the data is embedded and a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        load().unwrap_or_else(|error| unreachable!("corpora/json_rpc/cases does not load: {error}"))
    })
}

fn load() -> Result<Vec<Loaded<Row>>, String> {
    let mut files: Vec<(&str, &str)> = FILES
        .files()
        .filter_map(|file| Some((file.path().file_name()?.to_str()?, file.contents_utf8()?)))
        .collect();
    files.sort_unstable();
    let cases: Vec<Loaded<Row>> = case::load(files)?;
    let facts = super::usual::facts(Side::Provider);
    for Loaded { file, case } in &cases {
        let wrong = |error: String| format!("{file}.toml, case {:?}: {error}", case.id);
        if !case.modes.is_empty() || !case.env.is_empty() {
            return Err(wrong("`modes` and `env` mean nothing here".to_owned()));
        }
        plan(case, &facts).map_err(wrong)?;
    }
    Ok(cases)
}

fn check(case: &Case<Row>) -> Check {
    let id = format!("json_rpc/stdio/{}", case.id);
    let roles: Vec<&str> = case.roles.iter().map(String::as_str).collect();
    let own = case.clone();
    let check = Check::new(id, case.title.clone(), case.clauses.clone(), "command", move |facts, _| {
        plan(&own, facts)
    });
    let check = check.roles(&roles);
    match &case.feature {
        Some(feature) => check.feature(feature),
        None => check,
    }
}

fn plan(case: &Case<Row>, facts: &Facts) -> Result<Plan, String> {
    let mut talk = Talk::about(facts, &case.clauses[0].0);
    for row in &case.steps {
        let limits = |name: &str| LIMITS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let body = row.raw.payload(&limits, &|text| fill_in(text, case, facts))?;
        talk.aim(&row.clause.as_ref().unwrap_or(&case.clauses[0]).0);
        talk.send_as(body.then(Payload::text("\n")), row.chunking);
        if case.feature.as_deref() == Some("profile_methods") {
            // Whoever does real work may use the time that a call has.
            talk.allow_ms(TIMEOUT_DEFAULT_MS + 1_000);
        }
        if !row.no_canary {
            talk.canary();
        }
    }
    Ok(talk.finish())
}

fn fill_in(text: &str, case: &Case<Row>, facts: &Facts) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_uppercase()).unwrap_or(rest.len());
        match &rest[..end] {
            "NONE" => out.push_str(&quoted(UNKNOWN_METHOD)),
            "GOOD" => out.push_str(&good(facts, 0, "\"good\"")),
            name @ ("ECHO" | "FAIL" | "NAMED" | "COUNTER") => {
                let name = name.to_lowercase();
                if !case.roles.contains(&name) {
                    return Err(format!("the role {name:?} is not among the case's `roles`"));
                }
                let role = if name == "named" { Some(difference(facts)?) } else { role(facts, &name) };
                out.push_str(&quoted(&role.map(|role| role.method).unwrap_or_default()));
            }
            other => return Err(format!("there is no placeholder ${other}")),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_loads() {
        if let Err(error) = load() {
            panic!("{error}");
        }
    }
}
