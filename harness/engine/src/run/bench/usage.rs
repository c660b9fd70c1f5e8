//! Processor time and memory of a process tree, read from `/proc`.

use std::fs;
use std::time::Duration;

/// Nanoseconds per clock tick: Linux reports 100 ticks per second to user space.
const TICK_NS: u64 = 10_000_000;

/// Resources that a process tree has used so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Exact processor time of the living threads.
    threads_ns: u64,
    /// Processor time of all threads and of reaped children, in whole ticks.
    ticks: u64,
    /// Current resident memory, bytes.
    pub rss_bytes: u64,
    /// Sum of the peak resident memory of each process, bytes.
    pub peak_bytes: u64,
}

impl Usage {
    /// Reads the usage of these processes.
    pub fn of(pids: &[i32]) -> Self {
        let mut usage = Self::default();
        for &pid in pids {
            usage.threads_ns += threads_ns(pid).unwrap_or(0);
            usage.ticks += ticks(&fs::read(format!("/proc/{pid}/stat")).unwrap_or_default()).unwrap_or(0);
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            usage.rss_bytes += memory(&status, "VmRSS:").unwrap_or(0);
            usage.peak_bytes += memory(&status, "VmHWM:").unwrap_or(0);
        }
        usage
    }

    /// Processor time used since `before`. Threads that ended in between show in ticks only.
    pub(crate) fn cpu_since(&self, before: &Self) -> Duration {
        let threads = self.threads_ns.saturating_sub(before.threads_ns);
        let ticks = self.ticks.saturating_sub(before.ticks) * TICK_NS;
        Duration::from_nanos(if ticks > threads + 2 * TICK_NS { ticks } else { threads })
    }
}

/// Processor time of the living threads of a process, nanoseconds.
fn threads_ns(pid: i32) -> Option<u64> {
    let of = |path: &str| -> Option<u64> {
        fs::read_to_string(path).ok()?.split_ascii_whitespace().next()?.parse().ok()
    };
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let ids = tasks.flatten().filter_map(|task| task.file_name().into_string().ok());
    Some(ids.filter_map(|id| of(&format!("/proc/{pid}/task/{id}/schedstat"))).sum())
}

/// User and system time of a process and of its reaped children, in ticks.
fn ticks(stat: &[u8]) -> Option<u64> {
    // The command is in parentheses and may hold any byte: the last parenthesis closes it.
    let rest = std::str::from_utf8(stat.get(memchr::memrchr(b')', stat)? + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum())
}

fn memory(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_summed_behind_any_command() {
        let stat = b"42 (a) b (c) S 7 8 9 0 -1 0 0 0 0 0 3 4 5 6 20 0 1 0 777 0\n";
        assert_eq!(ticks(stat), Some(18));
        assert_eq!(ticks(b""), None);
    }

    #[test]
    fn threads_that_ended_show_in_ticks() {
        let before = Usage { threads_ns: 5, ticks: 1, ..Usage::default() };
        let after = Usage { threads_ns: 8_000_005, ticks: 2, ..Usage::default() };
        assert_eq!(after.cpu_since(&before), Duration::from_millis(8));
        let after = Usage { threads_ns: 5, ticks: 11, ..Usage::default() };
        assert_eq!(after.cpu_since(&before), Duration::from_millis(100));
    }

    #[test]
    fn this_process_uses_memory() {
        let usage = Usage::of(&[i32::try_from(std::process::id()).unwrap()]);
        assert!(usage.rss_bytes > 100_000 && usage.peak_bytes >= usage.rss_bytes / 2, "{usage:?}");
    }
}
