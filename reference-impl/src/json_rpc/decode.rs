//! From the bytes of a body to a text without ambiguities, and the elements of a batch.

use memchr::memchr2;

use super::choices::Choices;
use super::reply::{Failure, FailureKind};
use crate::json::{
    BigNumbers, DuplicateKeys, Error, ErrorKind, LoneSurrogates, Policy, Traits, Value, write_value,
};

/// True if [`rewritten`] would change more of a text than its line feeds.
pub(super) fn needs_rewriting(traits: Traits, choices: &Choices) -> bool {
    let policy = choices.policy();
    traits.duplicate_keys
        || (traits.lone_surrogates && policy.lone_surrogates != LoneSurrogates::Echo)
        || (traits.big_numbers && policy.big_numbers != BigNumbers::Exact)
}

/// Text of a valid JSON document with each name once, and with surrogates replaced and numbers rounded as the choices
/// say. It has no line feeds, so that parts of it fit on a line.
///
/// # Errors
/// Fails for an ambiguity that the choices refuse.
pub(super) fn rewritten(
    text: &[u8],
    traits: Traits,
    nesting_max: usize,
    choices: &Choices,
) -> Result<Vec<u8>, Failure> {
    let policy = choices.policy();
    if traits == Traits::default() {
        // Line feeds occur only between tokens, where a space is equivalent.
        return Ok(text.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect());
    }
    if traits.big_numbers && policy.big_numbers == BigNumbers::Round {
        let exact = Policy { big_numbers: BigNumbers::Exact, ..policy };
        if holds_infinite(&Value::parse(text, nesting_max, &exact).map_err(refusal)?) {
            return Err(Failure::new(FailureKind::ParseError, "a number is beyond every double"));
        }
    }
    let value = Value::parse(text, nesting_max, &policy).map_err(refusal)?;
    let mut out = Vec::with_capacity(text.len());
    write_value(&mut out, &value);
    Ok(out)
}

/// Failure for a text that is not JSON.
pub(crate) fn refusal(error: Error) -> Failure {
    let kind = match error.kind {
        ErrorKind::Depth => FailureKind::NestedTooDeeply,
        _ => FailureKind::ParseError,
    };
    Failure::new(kind, error.to_string())
}

fn holds_infinite(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_infinite(),
        Value::Array(elements) => elements.iter().any(holds_infinite),
        Value::Object(members) => members.iter().any(|(_, value)| holds_infinite(value)),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// True for a text without a canonical form: it has a duplicate name, a lone surrogate, or a number beyond the exact
/// range of a double (contract §7 "Auth").
pub(super) fn is_ambiguous(text: &[u8], nesting_max: usize) -> bool {
    const STRICT: Policy = Policy {
        duplicate_keys: DuplicateKeys::Refuse,
        lone_surrogates: LoneSurrogates::Refuse,
        big_numbers: BigNumbers::Refuse,
    };
    Value::parse(text, nesting_max, &STRICT).is_err()
}

/// Raw elements of an array of valid JSON.
pub(super) fn elements(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let (mut depth, mut start, mut at) = (0_usize, 0, 0);
    let mut push = |start: usize, end: usize| {
        let element = text.get(start..end).unwrap_or_default().trim_ascii();
        if !element.is_empty() {
            found.push(element);
        }
    };
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = string_end(text, at + 1),
            b'[' | b'{' => {
                depth += 1;
                if depth == 1 {
                    start = at + 1;
                }
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    push(start, at);
                }
            }
            b',' if depth == 1 => {
                push(start, at);
                start = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Offset of the closing quote of the string whose first character is at `at`.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(next) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if text.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_cut_at_their_own_commas() {
        let cut = |text: &str| -> Vec<String> {
            let text = text.as_bytes();
            elements(text).iter().map(|e| String::from_utf8(e.to_vec()).unwrap()).collect()
        };
        assert_eq!(cut("[]"), Vec::<String>::new());
        assert_eq!(cut("[ ]"), Vec::<String>::new());
        assert_eq!(cut("[1]"), ["1"]);
        assert_eq!(
            cut(r#" [ {"a":[1,2]} , "],\"" , [[],{}] ] "#),
            [r#"{"a":[1,2]}"#, r#""],\"""#, "[[],{}]"]
        );
        assert_eq!(cut(r#"["\\","a"]"#), [r#""\\""#, r#""a""#]);
    }
}
