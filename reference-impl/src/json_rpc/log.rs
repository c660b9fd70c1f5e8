//! Log lines about calls (RPC Monitoring "Logging Format").

use crate::json::write_str;
use crate::machine::Millis;

/// Bytes of a method's name or an id that a log line repeats; what is longer is left out.
const QUOTED_BYTES_MAX: usize = 256;

/// What a line says of one call.
pub(super) struct Entry<'e> {
    pub method: &'e [u8],
    pub id: Option<&'e str>,
    pub duration_ms: Millis,
    /// Code of the error, if it is one.
    pub code: Option<i32>,
}

/// The line, LF included; `unix_ms` are milliseconds since 1970.
pub(super) fn line(entry: &Entry<'_>, unix_ms: u64) -> Vec<u8> {
    let level = if entry.code.is_some() { "WARN" } else { "INFO" };
    let head = format!(
        "{{\"timestamp\":\"{}\",\"level\":\"{level}\",\"message\":\"RPC Request\",\"data\":{{\"method\":",
        timestamp(unix_ms)
    );
    let mut out = head.into_bytes();
    let method = if entry.method.len() <= QUOTED_BYTES_MAX { entry.method } else { b"..." };
    write_str(&mut out, &String::from_utf8_lossy(method));
    out.extend_from_slice(b",\"id\":");
    let id = entry.id.filter(|id| id.len() <= QUOTED_BYTES_MAX).unwrap_or("null");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(format!(",\"duration_ms\":{}", entry.duration_ms).as_bytes());
    match entry.code {
        None => out.extend_from_slice(b",\"status\":\"success\"}}\n"),
        Some(code) => {
            out.extend_from_slice(format!(",\"status\":\"error\",\"code\":{code}}}}}\n").as_bytes())
        }
    }
    out
}

/// A time in the form of RFC 3339.
fn timestamp(unix_ms: u64) -> String {
    let (seconds, ms) = (unix_ms / 1_000, unix_ms % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that a leap day is the last; days are counted from 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        for (unix_ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_705_314_600_123, "2024-01-15T10:30:00.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(unix_ms), text);
        }
    }
}
