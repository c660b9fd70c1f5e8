//! Shallow merging of patches (`policy` §2; contract §2 "Patches").

use std::borrow::Cow;
use std::collections::HashMap;

use crate::json::{Error, Object, Scanner};

/// Merges the object `patch` into the object `inputs`. A member of the patch replaces the whole value of the same name
/// in place; a new name is appended. `null` is an ordinary value, and no name is special. Values keep their spelling.
/// Both are JSON texts whose objects hold each name once.
///
/// # Errors
/// Fails for a text that is not strict JSON, or is nested deeper than `nesting_max` levels.
pub fn merge(inputs: &str, patch: &str, nesting_max: usize) -> Result<String, Error> {
    let (mut of_inputs, mut of_patch) = (Scanner::new(nesting_max), Scanner::new(nesting_max));
    let inputs = of_inputs.scan(inputs.as_bytes())?;
    let patch = of_patch.scan(patch.as_bytes())?;
    let mut new: HashMap<Cow<'_, [u8]>, (usize, Object<'_>)> =
        patch.members().enumerate().map(|(place, member)| (member.0.bytes(), (place, member))).collect();
    let mut merged = String::with_capacity(inputs.text().len() + patch.text().len());
    merged.push('{');
    let mut put = |(name, value): Object<'_>| {
        if merged.len() > 1 {
            merged.push(',');
        }
        merged.push('"');
        merged.push_str(name.raw());
        merged.push_str("\":");
        merged.push_str(value.text());
    };
    for member in inputs.members() {
        put(new.remove(&member.0.bytes()).map_or(member, |(_, replaced)| replaced));
    }
    let mut rest: Vec<_> = new.into_values().collect();
    rest.sort_unstable_by_key(|(place, _)| *place);
    rest.into_iter().for_each(|(_, member)| put(member));
    merged.push('}');
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(inputs: &str, patch: &str) -> String {
        merge(inputs, patch, 64).unwrap()
    }

    #[test]
    fn replaces_whole_values_and_keeps_the_rest() {
        assert_eq!(
            merged(r#"{"a":{"x":1,"y":2}, "b" : [1] ,"c":1.0}"#, r#"{"a":{"z":3},"d":null}"#),
            r#"{"a":{"z":3},"b":[1],"c":1.0,"d":null}"#
        );
    }

    #[test]
    fn null_is_a_value_and_no_name_is_special() {
        assert_eq!(
            merged(r#"{"a":1}"#, r#"{"a":null,"__proto__":{},"":0}"#),
            r#"{"a":null,"__proto__":{},"":0}"#
        );
        assert_eq!(merged("{}", "{}"), "{}");
        assert_eq!(merged(r#"{"a":1}"#, "{}"), r#"{"a":1}"#);
    }

    #[test]
    fn names_are_compared_unescaped() {
        assert_eq!(merged(r#"{"\u0061":1,"b":2}"#, r#"{"a":3}"#), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn merging_twice_is_merging_once() {
        let once = merged(r#"{"a":1,"b":2}"#, r#"{"b":[3],"c":4}"#);
        assert_eq!(merged(&once, r#"{"b":[3],"c":4}"#), once);
    }
}
