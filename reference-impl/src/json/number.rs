//! Numbers as text, and a test for those beyond the exact range of a double.

/// A JSON number as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number(Box<str>);

impl Number {
    /// Takes the text of a number, which the caller has validated.
    pub(super) fn from_valid(text: &str) -> Self {
        Self(text.into())
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Value as an integer, if it is one and fits. The spelling does not matter: `1`, `1.0` and `1e0` are one number.
    pub fn as_i64(&self) -> Option<i64> {
        integer(&self.0)
    }

    /// The nearest double; infinite beyond its range.
    pub fn as_f64(&self) -> f64 {
        self.0.parse().unwrap_or(f64::NAN)
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(value.to_string().into())
    }
}

/// Sign, digits without leading and trailing zeros, and the power of ten of the last digit. Zero is `(false, "", 0)`.
pub(super) fn decimal(text: &str) -> (bool, String, i64) {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // An exponent beyond i64 means zero or infinity in any case; it is clamped to a large value.
    let exponent =
        exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') { -1 } else { 1 } * (1 << 40));
    let mut power = exponent.saturating_sub(fraction.len() as i64);
    let mut digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0').len();
    power = power.saturating_add((digits.len() - kept) as i64);
    digits.truncate(kept);
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() { (false, digits, 0) } else { (negative, digits, power) }
}

fn integer(text: &str) -> Option<i64> {
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let (negative, digits, power) = decimal(text);
    if digits.is_empty() {
        return Some(0);
    }
    if !(0..19).contains(&power) {
        return None;
    }
    let magnitude = digits.parse::<i128>().ok()?.checked_mul(10i128.checked_pow(power as u32)?)?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// True for an integer beyond ±(2^53−1) and for any number beyond a double.
pub(crate) fn is_big(text: &str) -> bool {
    const SAFE: u64 = (1 << 53) - 1;
    if text.len() <= 15 && !text.bytes().any(|b| b == b'e' || b == b'E') {
        return false;
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        return digits.parse::<u64>().map_or(true, |value| value > SAFE);
    }
    text.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Nearest finite double to a number for which [`is_big`] is true.
pub fn rounded(text: &str) -> String {
    let value: f64 = text.parse().unwrap_or(f64::MAX);
    format!("{:e}", value.clamp(f64::MIN, f64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_integers_in_every_spelling() {
        for text in ["1", "1.0", "1e0", "10e-1", "0.1E+1", "1.000"] {
            assert_eq!(integer(text), Some(1), "{text}");
        }
        assert_eq!(integer("-0.0"), Some(0));
        assert_eq!(integer("-1.5e1"), Some(-15));
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("1e19"), None);
        assert_eq!(integer("1e999999999999999999999"), None);
        assert_eq!(integer("0e999999999999999999999"), Some(0));
        assert_eq!(integer("-9223372036854775808"), Some(i64::MIN));
    }

    #[test]
    fn big_starts_after_two_to_53_minus_one() {
        assert!(!is_big("9007199254740991"));
        assert!(is_big("9007199254740992"));
        assert!(!is_big("-9007199254740991"));
        assert!(is_big("-9007199254740992"));
        assert!(is_big("1e400"));
        assert!(!is_big("1e308"));
        assert!(!is_big("0.10000000000000000000000001"));
        assert_eq!(rounded("9007199254740993"), "9.007199254740992e15");
        assert_eq!(rounded("-1e400"), "-1.7976931348623157e308");
    }
}
