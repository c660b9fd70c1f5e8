//! Process trees, read from `/proc`.

use std::fs;
use std::time::{Duration, Instant};

use memchr::memmem;

/// Maximum bytes read of an environment.
const ENVIRONMENT_BYTES_MAX: u64 = 1 << 20;
/// Time to wait for a process to get its environment: a starting program briefly has none.
const EXEC_PATIENCE: Duration = Duration::from_millis(20);
/// Maximum number of processes in a tree, so that a fork bomb does not stall the harness.
const PROCESSES_MAX: usize = 4_096;

/// Milliseconds per tick: `/proc` counts processor time in USER_HZ, which is 100 on Linux.
const MS_PER_TICK: u64 = 10;

/// Snapshot of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) command: String,
    pub(crate) state: u8,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Start time in clock ticks, which tells the process from a later one with the same id.
    pub(crate) start: u64,
}

impl Process {
    /// True if it is dead or a zombie.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// True if this very process is still alive.
    pub(crate) fn still_lives(&self) -> bool {
        look_at(self.pid).is_some_and(|now| now.start == self.start && !now.is_dead())
    }
}

/// Reads `/proc/PID/stat`; `None` if there is no such process.
pub(crate) fn look_at(pid: i32) -> Option<Process> {
    parse_stat(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(pid: i32, stat: &[u8]) -> Option<Process> {
    // The command is in parentheses and may hold any byte, even parentheses: the last one closes it.
    let open = memchr::memchr(b'(', stat)?;
    let close = memchr::memrchr(b')', stat)?;
    let command = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(stat.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse().ok());
    Some(Process {
        pid,
        command,
        state: *fields.first()?.as_bytes().first()?,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        start: fields.get(19)?.parse().ok()?,
    })
}

/// True if every thread of a process sleeps: it waits for neither a processor nor a disk.
pub(crate) fn sleeps(pid: i32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let state = |task: fs::DirEntry| Some(parse_stat(pid, &fs::read(task.path().join("stat")).ok()?)?.state);
    tasks.flatten().all(|task| state(task) == Some(b'S'))
}

/// True if a process holds a socket by which it may wait for a process that is not its child, such as the daemon of a
/// container. The sockets of its own server at `port` are not meant. True if unknown.
pub(crate) fn may_wait_for_others(pid: i32, port: Option<u16>) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return true };
    let own = port.map(|port| sockets_at(pid, port)).unwrap_or_default();
    let socket = |file: fs::DirEntry| {
        let target = fs::read_link(file.path()).ok()?.into_os_string().into_string().ok()?;
        target.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok()
    };
    files.flatten().filter_map(socket).any(|inode| !own.contains(&inode))
}

/// Inodes of the TCP sockets at a local port, as a process sees them.
fn sockets_at(pid: i32, port: u16) -> Vec<u64> {
    let tables = ["tcp", "tcp6"].map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")));
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = words.get(1)?.rsplit_once(':')?;
        (u16::from_str_radix(local, 16) == Ok(port)).then(|| words.get(9)?.parse().ok())?
    };
    tables.iter().flatten().flat_map(|table| table.lines().filter_map(inode)).collect()
}

/// Process ids of the children of `pid`, dead ones included.
pub(crate) fn children(pid: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return found;
    };
    for task in tasks.flatten() {
        match fs::read_to_string(task.path().join("children")) {
            Ok(list) => found.extend(list.split_ascii_whitespace().filter_map(|id| id.parse::<i32>().ok())),
            // Either the thread has ended, or this kernel lacks the file.
            Err(_) if task.path().exists() => return scan_for_children(pid),
            Err(_) => {}
        }
    }
    found
}

fn scan_for_children(pid: i32) -> Vec<i32> {
    pids().filter(|&id| look_at(id).is_some_and(|process| process.parent == pid)).collect()
}

/// All living processes of this machine that are visible.
pub(crate) fn all() -> Vec<Process> {
    pids().filter_map(look_at).filter(|process| !process.is_dead()).collect()
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Living descendants of `root`, without `root` itself.
pub(crate) fn descendants(root: i32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut open = vec![root];
    while let Some(parent) = open.pop() {
        for pid in children(parent) {
            if found.len() >= PROCESSES_MAX {
                return found;
            }
            if let Some(process) = look_at(pid).filter(|process| !process.is_dead())
                && !found.iter().any(|known| known.pid == pid)
            {
                open.push(pid);
                found.push(process);
            }
        }
    }
    found
}

/// True if the initial environment of `pid` contains `entry` (`NAME=value`).
pub(crate) fn carries(pid: i32, entry: &[u8]) -> bool {
    let end = Instant::now() + EXEC_PATIENCE;
    let environment = loop {
        let environment = environment(pid).unwrap_or_default();
        let is_there = || look_at(pid).is_some_and(|process| !process.is_dead());
        // The environment is empty for a moment while exec replaces the program.
        if !environment.is_empty() || Instant::now() >= end || !is_there() {
            break environment;
        }
        std::thread::sleep(EXEC_PATIENCE / 100);
    };
    entries_that_begin(&environment, entry).any(|rest| rest.first().is_none_or(|&byte| byte == 0))
}

/// True if the initial environment of `pid` has an entry that begins with `begin`. Looks only once.
pub(crate) fn carries_now(pid: i32, begin: &[u8]) -> bool {
    environment(pid).is_some_and(|environment| entries_that_begin(&environment, begin).next().is_some())
}

/// Rest of each entry of `environment` that begins with `begin`.
fn entries_that_begin<'a>(environment: &'a [u8], begin: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    memmem::find_iter(environment, begin)
        .filter(|&at| at == 0 || environment[at - 1] == 0)
        .map(|at| &environment[at + begin.len()..])
}

/// Initial environment of `pid`, each entry followed by a NUL.
fn environment(pid: i32) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut environment = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/environ")).ok()?;
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut environment).ok()?;
    Some(environment)
}

/// Peak resident memory of one process in bytes; `None` if it has ended.
pub(crate) fn hwm_bytes(pid: i32) -> Option<u64> {
    hwm_in(&fs::read(format!("/proc/{pid}/status")).ok()?)
}

fn hwm_in(status: &[u8]) -> Option<u64> {
    // The process name comes before it and may be cut within a character.
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"VmHWM:"))?;
    let kib: u64 = std::str::from_utf8(line).ok()?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

/// User and system time that one process has used; `None` if it has ended.
pub(crate) fn cpu_time(pid: i32) -> Option<Duration> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let rest = std::str::from_utf8(stat.get(memchr::memrchr(b')', &stat)? + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    let ticks = ticks()? + ticks()?;
    Some(Duration::from_millis(ticks * MS_PER_TICK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_with_parentheses_does_not_confuse_the_fields() {
        let stat = b"42 (a) b (c) S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0\n";
        let process = parse_stat(42, stat).unwrap();
        assert_eq!(process.command, "a) b (c");
        assert_eq!((process.state, process.parent, process.group, process.session), (b'S', 7, 8, 9));
        assert_eq!(process.start, 777);
    }

    #[test]
    fn a_name_that_is_cut_within_a_character_hides_nothing() {
        let stat = b"42 (caf\xc3) S 7 8 9 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0\n";
        assert_eq!(parse_stat(42, stat).unwrap().start, 777);
        assert_eq!(hwm_in(b"Name:\tcaf\xc3\nVmHWM:\t     412 kB\n"), Some(412 * 1_024));
    }

    #[test]
    fn this_process_is_found_and_measured() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert!(look_at(pid).unwrap().still_lives());
        assert!(hwm_bytes(pid).unwrap() > 100_000);
        assert!(cpu_time(pid).unwrap() < Duration::from_secs(86_400));
        assert!(!carries(pid, b"PEERPROOF_NO_SUCH_VARIABLE=1"));
    }

    #[test]
    fn a_socket_to_another_process_is_not_one_of_the_own_server() {
        let me = i32::try_from(std::process::id()).unwrap();
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (accepted, _) = server.accept().unwrap();
        let inode = |file: &dyn std::os::fd::AsRawFd| {
            let link = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
            link.to_str().unwrap().trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap()
        };
        let own = sockets_at(me, port);
        assert!(own.contains(&inode(&server)) && own.contains(&inode(&accepted)));
        assert!(!own.contains(&inode(&client)));
        assert!(may_wait_for_others(me, Some(port)));
    }

    #[test]
    fn both_ways_to_list_children_agree() {
        let mut child = std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        let (listed, scanned) = (children(me), scan_for_children(me));
        let end = Instant::now() + Duration::from_secs(20);
        while !sleeps(pid) && Instant::now() < end {
            std::thread::sleep(EXEC_PATIENCE);
        }
        assert!(sleeps(pid) && !sleeps(me), "a test runs");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(listed.contains(&pid), "{listed:?}");
        assert!(scanned.contains(&pid), "{scanned:?}");
    }
}
