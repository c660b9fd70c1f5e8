//! Command lines in a configuration, and their placeholders.

use std::collections::BTreeMap;

use crate::contract::boundary::{Absence, ConfigKey};
use crate::data::blame::Misconfigured;
use crate::data::carriage::HTTP;
use crate::drive::transport::http::URL_PREFIX;

/// Checks the command line of `key`. Returns it with the placeholders that are appended if they are omitted.
///
/// # Errors
/// Fails if it is empty, or if a placeholder is unknown, missing or unclosed.
pub(super) fn check(key: &ConfigKey, mut argv: Vec<String>) -> Result<Vec<String>, Misconfigured> {
    let name = key.name;
    if argv.first().is_none_or(String::is_empty) {
        return Err(format!("the command `{name}` is empty; give the program and its arguments").into());
    }
    let mut used = Vec::new();
    for part in &argv {
        used.extend(placeholders(part).map_err(|error| format!("the command `{name}`: {error}"))?);
    }
    let known: Vec<&str> = key.placeholders().iter().map(|placeholder| placeholder.text).collect();
    for placeholder in &used {
        if !known.contains(&placeholder.as_str()) {
            let can = match known.as_slice() {
                [] => "no placeholder is allowed; write {{ and }} for braces".to_owned(),
                known => format!("allowed: {}; write {{{{ and }}}} for braces", known.join(", ")),
            };
            return Err(
                format!("the command `{name}` has the unknown placeholder {placeholder}: {can}").into()
            );
        }
    }
    let runs_already = argv.len() == 1 && argv[0].starts_with(URL_PREFIX);
    if name == HTTP && used.is_empty() && !runs_already {
        return Err(format!(
            "the command `{name}` has neither {{port}} nor {{addr}}: add one as the argument for the port to listen on"
        ).into());
    }
    for missing in key.placeholders().iter().filter(|known| !used.iter().any(|word| word == known.text)) {
        match missing.absence {
            Absence::Appended => argv.push(missing.text.to_owned()),
            Absence::Refused => {
                return Err(format!(
                    "the command `{name}` has no {}: add it as the argument that the peer expects",
                    missing.text
                )
                .into());
            }
            Absence::Allowed | Absence::InEnvironment => {}
        }
    }
    Ok(argv)
}

/// Checks that each placeholder that a variable may have appears in the command line or in an environment variable.
///
/// # Errors
/// Names a placeholder that appears in neither.
pub(crate) fn check_environment(
    key: &ConfigKey,
    argv: &[String],
    env: &BTreeMap<String, String>,
) -> Result<(), Misconfigured> {
    let texts: Vec<&String> = argv.iter().chain(env.values()).collect();
    let is_there = |placeholder: &str| {
        let used =
            |text: &&String| placeholders(text).is_ok_and(|used| used.iter().any(|it| it == placeholder));
        texts.iter().any(used)
    };
    let asked = key.placeholders().iter().filter(|it| it.absence == Absence::InEnvironment);
    match asked.map(|it| it.text).find(|placeholder| !is_there(placeholder)) {
        Some(missing) => Err(format!(
            "the command `{}` has no {missing}, and no variable of `env` has it: add it to one of them",
            key.name
        )
        .into()),
        None => Ok(()),
    }
}

/// Placeholders in one word of a command line, with their braces.
pub(super) fn placeholders(part: &str) -> Result<Vec<String>, Misconfigured> {
    let mut found = Vec::new();
    let mut rest = part;
    while let Some(at) = rest.find(['{', '}']) {
        let tail = &rest[at..];
        if tail.starts_with("{{") || tail.starts_with("}}") {
            rest = &tail[2..];
        } else if tail.starts_with('{') {
            let end = tail.find('}').ok_or_else(|| {
                format!("{part:?} has a brace that is never closed; write {{{{ for a brace")
            })?;
            found.push(tail[..=end].to_owned());
            rest = &tail[end + 1..];
        } else {
            rest = &tail[1..];
        }
    }
    Ok(found)
}
