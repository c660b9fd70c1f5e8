//! Canonical form of JSON for signatures (RFC 8785).

use std::cmp::Ordering;

use crate::json::{Text, Value, write_text};

/// Appends the canonical form of `value`, which must have no lone surrogates and no numbers beyond a double.
pub fn write_jcs(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Number(number) => out.extend_from_slice(number_text(number.as_f64()).as_bytes()),
        Value::Array(elements) => {
            out.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_jcs(out, element);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by(|a, b| by_units(&a.0, &b.0));
            out.push(b'{');
            for (at, (name, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_text(out, name);
                out.push(b':');
                write_jcs(out, value);
            }
            out.push(b'}');
        }
        other => crate::json::write_value(out, other),
    }
}

/// Compares by UTF-16 code units (RFC 8785 §3.2.3).
fn by_units(a: &Text, b: &Text) -> Ordering {
    let (a, b) = (a.to_lossy(), b.to_lossy());
    a.encode_utf16().cmp(b.encode_utf16())
}

/// Double in the notation of ECMAScript (RFC 8785 §3.2.2.3): the shortest digits that identify it.
fn number_text(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = even_digits(value.abs(), digits_of(mantissa));
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // Position of the decimal point, counted from before the first digit.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let at = usize::try_from(point).unwrap_or_default();
    let text = if (count..=21).contains(&point) {
        format!("{digits}{}", zeros(point - count))
    } else if (1..=21).contains(&point) {
        let (whole, fraction) = digits.split_at(at);
        format!("{whole}.{fraction}")
    } else if (-5..=0).contains(&point) {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let fraction = if rest.is_empty() { String::new() } else { format!(".{rest}") };
        format!("{first}{fraction}e{}{}", if point > 0 { "+" } else { "-" }, (point - 1).abs())
    };
    if value < 0.0 { format!("-{text}") } else { text }
}

fn digits_of(mantissa: &str) -> String {
    mantissa.chars().filter(char::is_ascii_digit).collect()
}

/// Resolves a tie: if two shortest texts are equally close to a double, ECMAScript takes the one with an even last
/// digit, Rust the larger.
fn even_digits(value: f64, shortest: String) -> String {
    /// Largest number of digits of an exact double.
    const EXACT_DIGITS: usize = 770;
    let count = shortest.len();
    let longer = |more: usize| {
        let text = format!("{value:.*e}", more);
        digits_of(text.split('e').next().unwrap_or_default()).trim_end_matches('0').to_owned()
    };
    // A tie means one more digit, a five, and nothing after it. A few digits are computed first, all of them only if
    // needed.
    let is_tie = |digits: &String| digits.len() == count + 1 && digits.ends_with('5');
    let tie = Some(longer(count + 8)).filter(is_tie).map(|_| longer(EXACT_DIGITS)).filter(is_tie);
    let lower = tie.as_deref().and_then(|digits| digits.get(..count)).unwrap_or_default();
    if lower.ends_with(['0', '2', '4', '6', '8']) { lower.to_owned() } else { shortest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Policy;

    fn canonical(text: &str) -> String {
        let value = Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap();
        let mut out = Vec::new();
        write_jcs(&mut out, &value);
        String::from_utf8(out).unwrap()
    }

    /// Samples of RFC 8785 appendix B, by their bits.
    #[test]
    fn numbers_are_written_as_ecmascript_does() {
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
            (0x4314_3ff3_c1cb_095b, "1424953923781206.8"),
            (0x3fe0_0000_0000_0000, "0.5"),
        ] {
            assert_eq!(number_text(f64::from_bits(bits)), text, "{bits:x}");
        }
    }

    #[test]
    fn names_are_sorted_by_code_units_and_strings_escaped_alike() {
        let text = r#"{ "\ud83d\ude00":1.0, "\ufb33":[ 1e0, 100E-2 ], "1":"\u20ac\/\u000f\n\u007f", "":{} }"#;
        assert_eq!(canonical(text), "{\"\":{},\"1\":\"€/\\u000f\\n\u{7f}\",\"😀\":1,\"\u{fb33}\":[1,1]}");
    }
}
