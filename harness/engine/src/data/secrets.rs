//! Redaction of secrets in everything that is stored.

use serde_json::Value;

/// Text that replaces a secret.
pub const REDACTED: &str = "[redacted]";

/// True if a variable, option or key of this name holds a secret: `*TOKEN*`, `*KEY*`, `*SECRET*`, in any case.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET"].iter().any(|part| name.contains(part))
}

/// Replaces secrets in a configuration: values under secret names, and secret assignments and options in lists of
/// strings. JSON Pointers into replies and templates stay, because they only locate a secret. Choices stay, because
/// their values are words of the contract.
pub fn redact(config: &mut Value) {
    match config {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    _ if name == "choices" => {}
                    Value::String(text) if is_secret_name(name) && !is_place(text) => {
                        *text = REDACTED.to_owned();
                    }
                    Value::Number(_) if is_secret_name(name) => *value = REDACTED.into(),
                    _ => redact(value),
                }
            }
        }
        Value::Array(items) => {
            let words: Option<Vec<String>> =
                items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            match words {
                Some(words) => *items = redact_argv(&words).into_iter().map(Value::String).collect(),
                None => items.iter_mut().for_each(redact),
            }
        }
        _ => {}
    }
}

/// Replaces secrets in a command line: `NAME=value`, `--api-key=value` and `--api-key value`.
pub fn redact_argv(argv: &[String]) -> Vec<String> {
    let redacted = |(word, secret): (&String, Option<usize>)| match secret {
        Some(at) => format!("{}{REDACTED}", &word[..at]),
        None => word.clone(),
    };
    argv.iter().zip(secret_places(argv)).map(redacted).collect()
}

/// Secrets that [`redact_argv`] replaces.
pub fn secrets_of_argv(argv: &[String]) -> Vec<&str> {
    argv.iter().zip(secret_places(argv)).filter_map(|(word, at)| at.map(|at| &word[at..])).collect()
}

/// Offset of the secret in each argument, if any; it extends to the end. `--choice` values are never secret.
fn secret_places(argv: &[String]) -> Vec<Option<usize>> {
    let mut next_is_secret = false;
    let mut next_is_choice = false;
    let mut place = |word: &String| match word.split_once('=') {
        _ if std::mem::replace(&mut next_is_choice, word == "--choice") => None,
        _ if std::mem::take(&mut next_is_secret) && !is_place(word) => Some(0),
        Some((name, value)) if is_name(name) && is_secret_name(name) && !is_place(value) => {
            Some(name.len() + 1)
        }
        None if word.starts_with("--") && is_secret_name(word) => {
            next_is_secret = true;
            None
        }
        _ => None,
    };
    argv.iter().map(&mut place).collect()
}

/// True for the name of a variable or option, in contrast to a sentence or path that contains `=`.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// True for a JSON Pointer to a captured value, or a placeholder.
fn is_place(text: &str) -> bool {
    let pointer = |text: &str| {
        text.starts_with('/')
            && text.len() <= 40
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/_".contains(&byte))
    };
    (text.starts_with('{') && text.ends_with('}')) || pointer(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_and_the_places_of_secrets_stay() {
        let mut config = serde_json::json!({
            "env": {"API_TOKEN": "t0psecret", "my_key": 7, "LANG": "C"},
            "features": {"lease": {"token": "/token_id", "aid": "_lease.issue"}},
            "serve": ["./host", "--api-key", "abc", "SECRET_X=1", "--port=8", "a=b",
                      "--choice", "empty_lease_token=lease_rejected"],
            "choices": {"duplicate_keys": "last", "empty_lease_token": "lease_required"},
        });
        redact(&mut config);
        let expected = serde_json::json!({
            "env": {"API_TOKEN": REDACTED, "my_key": REDACTED, "LANG": "C"},
            "features": {"lease": {"token": "/token_id", "aid": "_lease.issue"}},
            "serve": ["./host", "--api-key", REDACTED, "SECRET_X=[redacted]", "--port=8", "a=b",
                      "--choice", "empty_lease_token=lease_rejected"],
            "choices": {"duplicate_keys": "last", "empty_lease_token": "lease_required"},
        });
        assert_eq!(config, expected);
    }
}
