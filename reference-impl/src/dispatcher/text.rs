//! JSON texts in transit: ambiguities are resolved, everything else keeps its spelling.

use std::borrow::Cow;

use crate::json::{Error, Policy, Scanner, Value, write_value};

/// Validates `text` and resolves its ambiguities: duplicate keys always (a text that is passed on must mean one
/// thing), lone surrogates and large numbers as `policy` says.
///
/// # Errors
/// Fails for a text that is not strict JSON, is nested too deeply, or holds something that `policy` refuses.
pub(crate) fn normalise<'t>(
    text: &'t [u8],
    nesting_max: usize,
    policy: &Policy,
) -> Result<Cow<'t, [u8]>, Error> {
    normalise_with(&mut Scanner::new(nesting_max), text, nesting_max, policy)
}

/// [`normalise`] with an existing scanner, which must have this nesting limit.
///
/// # Errors
/// As for [`normalise`].
pub(crate) fn normalise_with<'t>(
    scanner: &mut Scanner,
    text: &'t [u8],
    nesting_max: usize,
    policy: &Policy,
) -> Result<Cow<'t, [u8]>, Error> {
    let traits = scanner.scan(text)?.traits();
    if !(traits.duplicate_keys || traits.lone_surrogates || traits.big_numbers) {
        return Ok(Cow::Borrowed(text));
    }
    let value = Value::parse(text, nesting_max, policy)?;
    let mut normal = Vec::with_capacity(text.len());
    write_value(&mut normal, &value);
    Ok(Cow::Owned(normal))
}

/// Copy of a valid JSON text without white space between its tokens, so that it fits on one line.
pub(crate) fn compact(text: &str) -> String {
    let mut in_string = false;
    let mut escaped = false;
    let kept = |c: &char| {
        if in_string {
            in_string = escaped || *c != '"';
            escaped = !escaped && *c == '\\';
            return true;
        }
        in_string = *c == '"';
        !matches!(c, ' ' | '\t' | '\n' | '\r')
    };
    text.chars().filter(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_leaves_strings_alone() {
        assert_eq!(
            compact("{ \"a b\" :\t\"\\\" \\\\\" ,\r\n\"c\": [ 1 , \"\\\\\\\" x\" ] }"),
            "{\"a b\":\"\\\" \\\\\",\"c\":[1,\"\\\\\\\" x\"]}"
        );
    }

    #[test]
    fn unambiguous_text_is_untouched() {
        let text = br#" {"a":1.0, "b":"\u0041"} "#;
        assert!(matches!(normalise(text, 8, &Policy::default()), Ok(Cow::Borrowed(same)) if same == text));
        assert_eq!(normalise(br#"{"a":1,"a":2}"#, 8, &Policy::default()).unwrap(), &br#"{"a":2}"#[..]);
    }
}
