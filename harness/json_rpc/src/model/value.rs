//! Comparison of a received value with the sent one.

use peerproof_engine::data::json::{Json, Number};

/// Degree of equality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Equality {
    /// Different.
    No,
    /// Equal up to the precision of a double.
    Rounded,
    /// Equal as JSON values; fractions as the nearest double.
    Exactly,
}

/// Compares a received value with the sent one. The order of members does not matter.
pub fn same(sent: &Json, came: &Json) -> Equality {
    let mut least = Equality::Exactly;
    let mut open = vec![(sent, came)];
    while let Some((sent, came)) = open.pop() {
        match (sent, came) {
            (Json::Number(sent), Json::Number(came)) => least = least.min(numbers(sent, came)),
            (Json::Array(sent), Json::Array(came)) if sent.len() == came.len() => {
                open.extend(sent.iter().zip(came));
            }
            (Json::Object(sent), Json::Object(came)) if sent.len() == came.len() => {
                for (index, (name, value)) in sent.iter().enumerate() {
                    // Most peers keep the order; members are searched for only if it differs.
                    let there = came.get(index).filter(|(other, _)| other == name);
                    match there.or_else(|| came.iter().find(|(other, _)| other == name)) {
                        Some((_, other)) => open.push((value, other)),
                        None => return Equality::No,
                    }
                }
            }
            (sent, came) if sent == came => {}
            _ => return Equality::No,
        }
        if least == Equality::No {
            return least;
        }
    }
    least
}

/// True if a name or string contains a noncharacter. RFC 8785 signs I-JSON, which forbids them.
pub(crate) fn has_noncharacters(value: &Json) -> bool {
    let in_text = |text: &str| {
        text.chars().any(|c| u32::from(c) & 0xfffe == 0xfffe || ('\u{fdd0}'..='\u{fdef}').contains(&c))
    };
    match value {
        Json::String(text) => in_text(text),
        Json::Array(items) => items.iter().any(has_noncharacters),
        Json::Object(members) => {
            members.iter().any(|(name, value)| in_text(name) || has_noncharacters(value))
        }
        _ => false,
    }
}

fn numbers(sent: &Number, came: &Number) -> Equality {
    if sent == came {
        return Equality::Exactly;
    }
    match (sent.as_f64(), came.as_f64()) {
        // Every finite number counts as equally close to one beyond all doubles.
        (None, Some(_)) => Equality::Rounded,
        (Some(a), Some(b)) if a == b => {
            if sent.is_integral() {
                Equality::Rounded
            } else {
                Equality::Exactly
            }
        }
        _ => Equality::No,
    }
}

/// True if a number in `value` is an integer that a double may not hold, or is beyond all doubles.
pub(crate) fn has_big_numbers(value: &Json) -> bool {
    value.has_number(Number::is_big)
}

/// True if a number in `value` is beyond all doubles.
pub(crate) fn has_numbers_beyond_doubles(value: &Json) -> bool {
    value.has_number(Number::is_beyond_double)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(sent: &str, came: &str) -> Equality {
        same(&sent.parse().unwrap(), &came.parse().unwrap())
    }

    #[test]
    fn presentation_does_not_matter() {
        for (sent, came) in [
            (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1e0}"#),
            ("0.1", "0.1000000000000000055"),
            ("1e400", "1e400"),
            ("-0", "0"),
            (r#""a\u0041""#, r#""aA""#),
        ] {
            assert_eq!(compare(sent, came), Equality::Exactly, "{sent} {came}");
        }
    }

    #[test]
    fn only_what_a_double_cannot_hold_may_be_rounded() {
        assert_eq!(compare("9007199254740993", "9007199254740992"), Equality::Rounded);
        assert_eq!(compare("1e400", "1.7976931348623157e308"), Equality::Rounded);
        assert_eq!(compare("9007199254740991", "9007199254740990"), Equality::No);
        assert_eq!(compare("1", "\"1\""), Equality::No);
        assert_eq!(compare("[1]", "[1,1]"), Equality::No);
        assert_eq!(compare(r#"{"a":1}"#, r#"{"b":1}"#), Equality::No);
    }

    #[test]
    fn big_numbers_are_found_anywhere() {
        assert!(has_big_numbers(&r#"{"a":[9007199254740992]}"#.parse().unwrap()));
        assert!(has_big_numbers(&"1e400".parse().unwrap()));
        assert!(!has_big_numbers(&"[9007199254740991,1.5,1e3]".parse().unwrap()));
    }
}
