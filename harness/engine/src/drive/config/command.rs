//! Command lines in a configuration, and their placeholders.

use std::collections::BTreeMap;

use crate::contract::boundary::{ConfigKey, unmarked};
use crate::data::blame::Misconfigured;
use crate::data::carriage::HTTP;
use crate::drive::transport::http::URL_PREFIX;

/// Checks the command line of `key`, whose members are its placeholders. Returns it with omitted placeholders appended
/// if they are marked `+`.
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
    let known: Vec<&str> = key.members.iter().map(|member| unmarked(member)).collect();
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
    let missing = |member: &&&str| !used.iter().any(|placeholder| placeholder == unmarked(member));
    for required in key.members.iter().filter(missing).filter(|member| !member.ends_with(['?', '*'])) {
        if required.ends_with('+') {
            argv.push(unmarked(required).to_owned());
        } else {
            return Err(format!(
                "the command `{name}` has no {required}: add it as the argument that the peer expects"
            )
            .into());
        }
    }
    Ok(argv)
}

/// Checks that each placeholder marked `*` appears in the command line or in an environment variable.
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
    let mut asked = key.members.iter().filter_map(|member| member.strip_suffix('*'));
    match asked.find(|placeholder| !is_there(placeholder)) {
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
