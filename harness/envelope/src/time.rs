//! Spellings of date-times.

/// Classification of a text as a date-time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// RFC 3339, microseconds since 1970.
    Right(i128),
    /// RFC 3339 with `t` or `z` in lower case.
    LowerCase(i128),
    /// RFC 3339 with the second 60.
    LeapSecond(i128),
    /// RFC 3339 with a space instead of T.
    Space(i128),
    /// RFC 3339 outside the years 1 to 9999.
    Far(i128),
    /// RFC 3339 without offset.
    Naive,
    /// ISO 8601, or accepted by a lenient parser.
    Lenient,
    /// Anything else.
    Wrong,
}

impl Spelling {
    /// Microseconds since 1970 of a date-time in RFC 3339, or nearly so.
    pub(crate) fn unix_us(self) -> Option<i128> {
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

/// Fields of a text with the layout of RFC 3339, not validated.
struct Fields {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Hours and minutes; `None` without offset.
    offset: Option<(i64, i64)>,
    separator: u8,
    has_lower_z: bool,
}

fn number(text: &str) -> Option<i64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Reads the fields of `0000-00-00T00:00:00`, then a fraction and an offset.
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

/// Classifies `text`.
pub(crate) fn spelling(text: &str) -> Spelling {
    let Some(fields) = fields(text) else { return loosely(text) };
    let Fields { year, month, day, hour, minute, second, micros, offset, separator, .. } = fields;
    let (hours, minutes) = offset.unwrap_or_default();
    if !(1..=12).contains(&month)
        || !(1..=days_of(year, month)).contains(&day)
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

/// Days of a month.
fn days_of(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// 2020-01-01: earlier times are past for every clock.
pub(crate) const PAST_US: i128 = 1_577_836_800_000_000;

/// The first and the last moment of the years 1 to 9999.
const FIRST_US: i128 = -62_135_596_800_000_000;
const LAST_US: i128 = 253_402_300_799_999_999;

/// Days from 1970-01-01 to a date in the Gregorian calendar.
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

/// Classifies a text with another layout: lenient if it reads as a possible date and time.
fn loosely(text: &str) -> Spelling {
    let is_ascii = text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    let read = || {
        let (date, time) = text.split_once(['T', 't', ' '])?;
        let (month, day) = loose_date(date)?;
        let clock = time.strip_suffix(['Z', 'z']);
        let (clock, offset) = match clock {
            Some(clock) => (clock, "00"),
            None => time.find(['+', '-']).map_or((time, "00"), |at| (&time[..at], &time[at + 1..])),
        };
        let clock = match clock.split_once(['.', ',']) {
            Some((clock, fraction)) => number(fraction).map(|_| clock)?,
            None => clock,
        };
        let (hour, minute, second) = loose_clock(clock)?;
        let (hours, minutes, _) = loose_clock(offset).filter(|_| offset.split(':').count() < 3)?;
        let is_possible = hour <= 24 && minute <= 59 && second <= 60 && hours <= 24 && minutes <= 59;
        (is_possible && (1..=12).contains(&month) && (1..=31).contains(&day)).then_some(())
    };
    if is_ascii && read().is_some() { Spelling::Lenient } else { Spelling::Wrong }
}

/// Month and day of a date: with one-digit fields, in the basic format, by weeks or by days of the year.
fn loose_date(date: &str) -> Option<(i64, i64)> {
    let (year, rest) = date.split_at_checked(4)?;
    let year = number(year)?;
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    if let Some(week) = rest.strip_prefix('W') {
        let (week, day) = week.split_at_checked(2)?;
        let day = day.strip_prefix('-').unwrap_or(day);
        let is_week = (1..=53).contains(&number(week)?);
        return (is_week && day.len() == 1 && (1..=7).contains(&number(day)?)).then_some((1, 1));
    }
    if let Some((month, day)) = rest.split_once('-') {
        let is_short = |field: &str| field.len() <= 2;
        let (month, day) =
            (number(month).filter(|_| is_short(month))?, number(day).filter(|_| is_short(day))?);
        return ((1..=12).contains(&month) && day <= days_of(year, month)).then_some((month, day));
    }
    match rest.len() {
        3 => (1..=366).contains(&number(rest)?).then_some((1, 1)),
        4 => {
            let (month, day) = (number(&rest[..2])?, number(&rest[2..])?);
            ((1..=12).contains(&month) && day <= days_of(year, month)).then_some((month, day))
        }
        _ => None,
    }
}

/// Hour, minute and second of a time or an offset, with or without colons; absent fields are zero.
fn loose_clock(clock: &str) -> Option<(i64, i64, i64)> {
    let fields: Vec<&str> = match clock.contains(':') {
        true => clock.split(':').collect(),
        false if clock.len() == 1 => vec![clock],
        false => (0..clock.len()).step_by(2).map(|at| clock.get(at..at + 2)).collect::<Option<_>>()?,
    };
    let values: Vec<i64> =
        fields.iter().map(|field| number(field).filter(|_| field.len() <= 2)).collect::<Option<_>>()?;
    match values[..] {
        [hour] => Some((hour, 0, 0)),
        [hour, minute] => Some((hour, minute, 0)),
        [hour, minute, second] => Some((hour, minute, second)),
        _ => None,
    }
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
            ("2025-12-10T10Z", Spelling::Lenient),
            ("20251210T100000.5+0100", Spelling::Lenient),
            ("2025W503T10:00:00Z", Spelling::Lenient),
            ("2025-344T10:00:00Z", Spelling::Lenient),
            ("2025-12-10T10:00:00+01", Spelling::Lenient),
            ("2025-12-10", Spelling::Wrong),
            ("20251210", Spelling::Wrong),
            ("2025-1-2", Spelling::Wrong),
            ("2025-W50-3", Spelling::Wrong),
            ("2025-12-10Z", Spelling::Wrong),
            ("2025-12-10T", Spelling::Wrong),
            ("2025-12-10T10:00:00ZZ", Spelling::Wrong),
            ("2025-12-10T10:00Zx", Spelling::Wrong),
            ("2025-13-10T10:00Z", Spelling::Wrong),
            ("20251310T100000Z", Spelling::Wrong),
            ("2025-2-29T10:00:00Z", Spelling::Wrong),
            ("2025-12-10T10:60Z", Spelling::Wrong),
            ("2025-12-10T10:00:00,Z", Spelling::Wrong),
            ("2025-12-10T10:00:00Z+01:00", Spelling::Wrong),
            ("10:00:00Z", Spelling::Wrong),
            ("1765360800", Spelling::Wrong),
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
