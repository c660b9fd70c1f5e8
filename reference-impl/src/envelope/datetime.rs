//! Date-times of RFC 3339.

/// A valid date-time, with the peculiarities of its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DateTime {
    /// Microseconds since 1970, truncated.
    pub unix_us: i128,
    /// True if the second is 60.
    pub leap_second: bool,
    /// True if a space replaces the `T`.
    pub space_for_t: bool,
}

/// Reads a date-time such as `2025-12-10T10:00:00.123456Z`, with any number of fraction digits and an offset.
pub(crate) fn read(text: &str) -> Option<DateTime> {
    let bytes = text.as_bytes();
    let digits = |at: usize, count: usize| -> Option<i64> {
        let part = text.get(at..at + count)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    let separated = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    let mut at = 19;
    let mut micros = 0;
    if is(at, b".") {
        let fraction: &str = text.get(at + 1..)?;
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        let six: String = fraction.chars().take(length).chain("000000".chars()).take(6).collect();
        micros = six.parse().ok().filter(|_| length > 0)?;
        at += 1 + length;
    }
    let offset_minutes = if is(at, b"Zz") {
        at += 1;
        0
    } else {
        let (hours, minutes) = (digits(at + 1, 2)?, digits(at + 4, 2)?);
        let sign = if is(at, b"-") { -1 } else { 1 };
        if !is(at, b"+-") || !is(at + 3, b":") || hours > 23 || minutes > 59 {
            return None;
        }
        at += 6;
        sign * (hours * 60 + minutes)
    };
    let possible = (1..=12).contains(&month)
        && (1..=month_days(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 60
        && at == bytes.len();
    if !separated || !possible {
        return None;
    }
    let minutes = i128::from(days(year, month, day)) * 1_440 + i128::from(hour * 60 + minute)
        - i128::from(offset_minutes);
    let unix_us = (minutes * 60 + i128::from(second)) * 1_000_000 + i128::from(micros);
    Some(DateTime { unix_us, leap_second: second == 60, space_for_t: is(10, b" ") })
}

fn month_days(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// A time in UTC with milliseconds.
pub(crate) fn written(unix_ms: u64) -> String {
    let days = i64::try_from(unix_ms / 86_400_000).unwrap_or(0) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let ms = unix_ms % 86_400_000;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spellings_of_rfc_3339_are_read() {
        let us = |text: &str| read(text).map(|read| read.unix_us);
        for text in [
            "2025-12-10T10:00:00Z",
            "2025-12-10T10:00:00+00:00",
            "2025-12-10t10:00:00.000z",
            "2025-12-10T12:30:00+02:30",
            "2025-12-09T10:01:00.0000000-23:59",
        ] {
            assert_eq!(us(text), Some(1_765_360_800_000_000), "{text}");
        }
        assert_eq!(us("2025-12-10T10:00:00.1234569Z"), Some(1_765_360_800_123_456));
        assert_eq!(us("2024-02-29T00:00:00Z"), Some(1_709_164_800_000_000));
        assert!(read("2016-12-31T23:59:60Z").is_some_and(|read| read.leap_second));
        assert!(read("2016-12-31 23:59:59Z").is_some_and(|read| read.space_for_t));
    }

    #[test]
    fn nothing_else_is_read() {
        for text in [
            "",
            "2025-12-10",
            "2025-12-10T10:00:00",
            "2025-12-10T10:00Z",
            "2025-12-10T24:00:00Z",
            "2025-13-10T10:00:00Z",
            "2025-02-29T10:00:00Z",
            "2025-12-10T10:60:00Z",
            "2025-12-10T10:00:61Z",
            "2025-12-10T10:00:00+24:00",
            "2025-12-10T10:00:00+0100",
            "2025-12-10T10:00:00,5Z",
            "2025-12-10T10:00:00.Z",
            "2025-12-10T10:00:00Z\n",
            " 2025-12-10T10:00:00Z",
            "20251210T100000Z",
            "+2025-12-10T10:00:00Z",
            "2025-12-1é",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for unix_ms in [0, 951_782_400_123, 1_765_360_800_000, 4_102_444_799_999] {
            let text = written(unix_ms);
            assert_eq!(read(&text).map(|read| read.unix_us), Some(i128::from(unix_ms) * 1_000), "{text}");
        }
    }
}
