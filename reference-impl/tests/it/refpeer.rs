//! Tests of the `refpeer` binary that need a real process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::REFPEER;

fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Child {
    Command::new(REFPEER)
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Writes `input`, closes standard input, and returns both outputs and the exit status.
fn run(arguments: &[&str], input: &str) -> (String, String, Option<i32>) {
    let mut child = start(arguments, &[]);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// Peak resident memory of a live process, in bytes.
fn peak_bytes(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() * 1024
}

fn terminate(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
}

#[test]
fn serves_until_end_of_input() {
    let lines = "{\"aid\":\"AID.PEERPROOF.COUNTER.v1\"}\n\
                 {\"aid\":\"AID.PEERPROOF.SLEEP.v1\",\"input_json\":\"{\\\"ms\\\":20}\"}\n\
                 {\"aid\":\"AID.PEERPROOF.NOISE.v1\",\"input_json\":\"{\\\"stdout\\\":\\\"OUT\\\"}\"}\n\
                 {\"aid\":\"AID.PEERPROOF.COUNTER.v1\"}";
    let (stdout, stderr, status) = run(&["toolhost", "--serve", "plugin.so"], lines);
    assert_eq!(stdout.lines().count(), 4);
    assert!(stdout.lines().all(|line| line.starts_with("{\"ok\":true")), "{stdout}");
    assert_eq!((stderr.as_str(), status), ("OUT", Some(0)));
}

#[test]
fn runs_once() {
    let run = |aid, choice| run(&["toolhost", "--run", "plugin.so", aid, "--choice", choice], "{}");
    assert_eq!(run("AID.PEERPROOF.ANY.v1", "bom=ignore").2, Some(0));
    let (stdout, _, status) = run("AID.NONE", "host_error_exit=nonzero");
    assert!(stdout.starts_with("{\"ok\":false"));
    assert_eq!(status, Some(1));
}

#[test]
fn lists_its_tools_and_explains_misuse() {
    let (stdout, _, status) = run(&["toolhost", "--list"], "");
    assert!(stdout.lines().count() == 16 && stdout.lines().all(|aid| aid.starts_with("AID.")));
    assert_eq!(status, Some(0));
    for arguments in [&["toolhost"][..], &[], &["x"], &["toolhost", "--serve", "--limit", "x=1"]] {
        let (stdout, stderr, status) = run(arguments, "");
        assert_eq!((stdout.as_str(), stderr.lines().count(), status), ("", 1, Some(2)), "{arguments:?}");
    }
}

#[test]
fn termination_ends_it_while_it_reads_and_while_it_waits() {
    for first in [
        "{\"aid\":\"AID.PEERPROOF.ANY.v1\"}\n",
        "{\"aid\":\"AID.PEERPROOF.ANY.v1\"}\n{\"aid\":\"AID.PEERPROOF.SLEEP.v1\",\"input_json\":\"{\\\"ms\\\":600000}\"}\n",
    ] {
        let mut child = start(&["toolhost", "--serve"], &[]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(first.as_bytes()).unwrap();
        let mut reply = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut reply).unwrap();
        terminate(&child);
        assert_eq!(child.wait().unwrap().code(), Some(0));
        reply.clear();
        assert_eq!(stdout.read_to_string(&mut reply).unwrap(), 0, "{reply}");
    }
}

#[test]
fn termination_ends_it_though_nobody_reads() {
    let mut child = start(&["toolhost", "--serve"], &[]);
    let mut stdin = child.stdin.take().unwrap();
    let line = "{\"aid\":\"AID.PEERPROOF.BLOB.v1\",\"input_json\":\"{\\\"bytes\\\":1000000}\"}\n";
    stdin.write_all(line.as_bytes()).unwrap();
    // One byte of the reply shows that the process is in the middle of writing.
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn an_aborting_tool_ends_it_by_signal() {
    let mut child = start(&["toolhost", "--serve", "--choice", "crash_kind=abort"], &[]);
    child.stdin.as_mut().unwrap().write_all(b"{\"aid\":\"AID.PEERPROOF.CRASH.v1\"}\n").unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(6));
}

#[test]
fn refusing_a_long_line_takes_no_memory() {
    let mut child = start(&["toolhost", "--serve"], &[]);
    let mut stdin = child.stdin.take().unwrap();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        stdin.write_all(&block).unwrap();
    }
    stdin.write_all(b"\n{\"aid\":\"AID.PEERPROOF.ANY.v1\"}\n").unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(stdout.next().unwrap().unwrap().starts_with("{\"ok\":false"));
    assert!(stdout.next().unwrap().unwrap().starts_with("{\"ok\":true"));
    assert!(peak_bytes(&child) < 32 << 20, "{}", peak_bytes(&child));
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn fetches_over_http() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let request: Vec<String> =
            lines.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
        request
    });
    let variables = [("MACHINA_HTTP_ALLOWED_HOSTS", "127.0.0.1")];
    let mut child = start(&["toolhost", "--run", "AID.NET.HTTP_GET.v1"], &variables);
    let input = format!("{{\"input_json\":\"{{\\\"url\\\":\\\"http://127.0.0.1:{port}/a?b\\\"}}\"}}");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains(r#""output_json":"{\"status\":200,\"body\":\"hi\"}""#), "{stdout}");
    let request = server.join().unwrap();
    assert_eq!(request[0], "GET /a?b HTTP/1.1");
    assert!(request.contains(&format!("Host: 127.0.0.1:{port}")));
}
