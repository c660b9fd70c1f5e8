//! Date-times as peers may spell them.

/// What a text is as a date-time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    /// RFC 3339, at so many microseconds since 1970.
    Right(i128),
    /// The same with a `t` or `z` in lower case.
    LowerCase(i128),
    /// The same with a second called 60.
    LeapSecond(i128),
    /// The same with a space for the T.
    Space(i128),
    /// The same outside the years 1 to 9999.
    Far(i128),
    /// The same without an offset.
    Naive,
    /// What ISO 8601 or a lenient reader takes.
    Lenient,
    /// Anything else.
    Wrong,
}

impl Spelling {
    /// Microseconds since 1970 of what is RFC 3339, or nearly.
    pub fn unix_us(self) -> Option<i128> {
        match self {
            Self::Right(us)
            | Self::LowerCase(us)
            | Self::LeapSecond(us)
            | Self::Space(us)
            | Self::Far(us) => Some(us),
            Self::Naive | Self::Lenient | Self::Wrong => None,
        }
    }
}

/// The fields of a text that is laid out as RFC 3339 has it, whatever they say.
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Minutes; `None`: there is none.
    offset: Option<(i64, i64)>,
    separator: u8,
    has_lower_z: bool,
}

fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Fields by the places of `0000-00-00T00:00:00`, then a fraction and an offset.
fn fields(text: &str) -> Option<Fields> {
    let head = text.get(..19)?;
    let marks: Vec<u8> = [4, 7, 13, 16].iter().map(|at| head.as_bytes()[*at]).collect();
    let separator = head.as_bytes()[10];
    if marks != *b"--::" || !b"Tt ".contains(&separator) {
        return None;
    }
    let part = |from: usize, to: usize| head.get(from..to).and_then(number);
    let mut rest = &text[19..];
    let mut micros = 0;
    if let Some(fraction) = rest.strip_prefix('.') {
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        micros = number(&format!("{:0<6}", &fraction[..digits.min(6)])).filter(|_| digits > 0)?;
        rest = &fraction[digits..];
    }
    let offset = match rest {
        "" => None,
        "Z" | "z" => Some((0, 0)),
        _ => {
            let sign = match rest.as_bytes()[0] {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let (hours, minutes) = rest[1..].split_once(':').filter(|(hours, _)| hours.len() == 2)?;
            Some((sign * number(hours)?, sign * number(minutes).filter(|_| minutes.len() == 2)?))
        }
    };
    Some(Fields {
        year: part(0, 4)?,
        month: part(5, 7)?,
        day: part(8, 10)?,
        hour: part(11, 13)?,
        minute: part(14, 16)?,
        second: part(17, 19)?,
        micros,
        offset,
        separator,
        has_lower_z: rest == "z",
    })
}

/// What `text` is.
pub fn spelling(text: &str) -> Spelling {
    let Some(fields) = fields(text) else { return loosely(text) };
    let Fields { year, month, day, hour, minute, second, micros, offset, separator, .. } = fields;
    let leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap_year),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let (hours, minutes) = offset.unwrap_or_default();
    if !(1..=12).contains(&month)
        || !(1..=days).contains(&day)
        || minute > 59
        || second > 60
        || minutes.abs() > 59
    {
        return Spelling::Wrong;
    }
    if hour > 24 || hours.abs() > 24 {
        return Spelling::Wrong;
    }
    if hour == 24 || hours.abs() == 24 {
        return Spelling::Lenient;
    }
    if offset.is_none() {
        return Spelling::Naive;
    }
    let since = days_since_1970(year, month, day) * 1_440 + hour * 60 + minute - hours * 60 - minutes;
    let us = (i128::from(since) * 60 + i128::from(second)) * 1_000_000 + i128::from(micros);
    let far = !(FIRST_US..=LAST_US).contains(&us) || year == 0;
    match (second, separator) {
        _ if far => Spelling::Far(us),
        (60, _) => Spelling::LeapSecond(us),
        (_, b' ') => Spelling::Space(us),
        (_, b't') => Spelling::LowerCase(us),
        _ if fields.has_lower_z => Spelling::LowerCase(us),
        _ => Spelling::Right(us),
    }
}

/// The first and the last moment of the years 1 to 9999.
const FIRST_US: i128 = -62_135_596_800_000_000;
const LAST_US: i128 = 253_402_300_799_999_999;

/// Days from 1970-01-01 to a date, by the rule that a year has 365 days and every fourth one more, but for most hundredths.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap_days = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let is_leap = leap_days(year) != leap_days(year - 1);
    let index = usize::try_from(month - 1).unwrap_or(0).min(11);
    (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969)
        + before[index]
        + i64::from(is_leap && month > 2)
        + day
        - 1
}

/// What is laid out otherwise: lenient readers take much of it. A date alone, and a time with something before or behind,
/// is wrong all the same.
fn loosely(text: &str) -> Spelling {
    let is_date = text.len() == 10 && text.split('-').map(number).filter(Option::is_some).count() == 3;
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || b"TtZzW:+-.,".contains(&byte));
    if !plain
        || is_date
        || digits < 7
        || !text.starts_with(|first: char| first.is_ascii_digit() || first == '+')
    {
        return Spelling::Wrong;
    }
    Spelling::Lenient
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_told_apart() {
        const US: i128 = 1_765_360_800_000_000;
        for (text, spelling_of) in [
            ("2025-12-10T10:00:00Z", Spelling::Right(US)),
            ("2025-12-10T12:30:00.000000000+02:30", Spelling::Right(US)),
            ("2025-12-10T10:00:00.123456Z", Spelling::Right(US + 123_456)),
            ("2025-12-10t10:00:00z", Spelling::LowerCase(US)),
            ("2025-12-10 10:00:00Z", Spelling::Space(US)),
            ("2016-12-31T23:59:60Z", Spelling::LeapSecond(1_483_228_800_000_000)),
            ("0001-01-01T00:00:00+23:59", Spelling::Far(FIRST_US - 86_340_000_000)),
            ("2025-12-10T10:00:00", Spelling::Naive),
            ("2025-12-10T24:00:00Z", Spelling::Lenient),
            ("2025-12-10T10:00:00+24:00", Spelling::Lenient),
            ("2025-12-10T10:00:00,5Z", Spelling::Lenient),
            ("2025-12-10T10:00Z", Spelling::Lenient),
            ("20251210T100000Z", Spelling::Lenient),
            ("2025-W50-3T10:00:00Z", Spelling::Lenient),
            ("2025-1-2T3:4:5Z", Spelling::Lenient),
            ("2025-12-10", Spelling::Wrong),
            ("", Spelling::Wrong),
            ("yesterday", Spelling::Wrong),
            ("2025-12-10T10:00:00Z\n", Spelling::Wrong),
            (" 2025-12-10T10:00:00Z", Spelling::Wrong),
            ("2025-13-10T10:00:00Z", Spelling::Wrong),
            ("2025-02-29T10:00:00Z", Spelling::Wrong),
            ("2025-12-10T10:60:00Z", Spelling::Wrong),
        ] {
            assert_eq!(spelling(text), spelling_of, "{text:?}");
        }
    }
}
