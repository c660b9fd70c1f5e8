//! Log lines about calls (RPC Monitoring "Logging Format").

use jiff::Timestamp;

use crate::json::write_str;
use crate::machine::Millis;

/// Longest method name or id in a log line, in bytes. A longer one is omitted.
const QUOTED_BYTES_MAX: usize = 256;

/// Contents of a log line.
pub(super) struct Entry<'e> {
    pub method: &'e [u8],
    pub id: Option<&'e str>,
    pub duration_ms: Millis,
    /// Error code, if the call failed.
    pub code: Option<i32>,
}

/// Log line with its LF. `unix_ms` is in milliseconds since 1970.
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

/// Time in the form of RFC 3339. A time beyond the calendar becomes the beginning of 1970.
fn timestamp(unix_ms: u64) -> String {
    let time = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or_default())
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
            (u64::MAX, "1970-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(unix_ms), text);
        }
    }
}
