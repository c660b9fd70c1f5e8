//! Tests of the adapter and the tool.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};

use super::*;

/// An adapter with its own address.
struct Adapter {
    address: SocketAddr,
    process: Running,
}

/// Address of this machine that no other test gets. A search for a free port would leave others time to take it.
fn free_address() -> SocketAddr {
    static GIVEN: AtomicU8 = AtomicU8::new(1);
    let [.., high, low] = std::process::id().to_be_bytes();
    SocketAddr::from(([127, GIVEN.fetch_add(1, Ordering::Relaxed), high, low], 21_047))
}

fn adapter(queue: &Queue, more: &[&str]) -> Adapter {
    let address = free_address();
    let (host, port) = (address.ip().to_string(), address.port().to_string());
    let words = [&["http", "--queue", "q", "--host", &host, "--port", &port], more].concat();
    let mut command = queue.command(&words);
    let process = Running(command.env("QUEUE_TOKEN", "Secret1").stdout(Stdio::null()).spawn().unwrap());
    until("it listens", || TcpStream::connect(address).is_ok());
    Adapter { address, process }
}

impl Adapter {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// Sends bytes, closes the sending side, and returns the status; 0 for none.
    fn send(&self, bytes: &[u8]) -> u16 {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let text = String::from_utf8_lossy(&reply).into_owned();
        assert!(!text.contains("Secret1"));
        text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    fn post(&self, body: &str, more: &str) -> u16 {
        self.send(
            format!(
                "POST /enqueue HTTP/1.1\r\nHost: a\r\n{more}Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    }
}

#[test]
fn a_job_is_whole_in_the_inbox_at_the_first_byte_of_its_reply() {
    let queue = Queue::new();
    for number in 0..10 {
        let mut adapter = adapter(&queue, &[]);
        let mut stream = adapter.connect();
        let body = job(number);
        write!(stream, "POST /enqueue HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .unwrap();
        stream.read_exact(&mut [0]).unwrap();
        adapter.process.kill();
        let jobs = queue.names("inbox");
        assert_eq!(jobs.len(), number + 1);
        let is_there = |name: &String| fs::read_to_string(queue.path("q/inbox").join(name)).unwrap() == body;
        assert!(jobs.iter().any(is_there));
    }
    assert!(queue.names("tmp").is_empty());
    assert_eq!(queue.once(), Some(0));
    assert_eq!(queue.names("done").len(), 10);
}

#[test]
fn bodies_that_are_no_whole_job_put_nothing() {
    let queue = Queue::new();
    let adapter = adapter(&queue, &[]);
    let head = "POST /enqueue HTTP/1.1\r\nHost: a\r\n";
    let body = job(1);
    for (request, statuses) in [
        (format!("{head}Content-Length: 500\r\n\r\n{body}"), &[0, 400][..]),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n", body.len()), &[0, 400][..]),
        (format!("{head}Content-Length: 1\r\nContent-Length: {}\r\n\r\n{body}", body.len()), &[400][..]),
        (format!("{head}Content-Length: -3\r\n\r\n{body}"), &[400][..]),
        (format!("{head}\r\n{body}"), &[400][..]),
        (
            format!("{head}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", body.len()),
            &[400][..],
        ),
        (format!("{head}Content-Length: 2\r\n\r\n{{}}"), &[400][..]),
        (
            format!("POST /other HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
            &[404][..],
        ),
        (
            format!("PUT /enqueue HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
            &[405][..],
        ),
        ("garbage\r\n\r\n".to_owned(), &[400][..]),
    ] {
        let status = adapter.send(request.as_bytes());
        assert!(statuses.contains(&status), "{status}: {request}");
    }
    let large = format!("{{\"goal_id\":\"g\",\"x\":\"{}\"}}", "x".repeat(10 << 20));
    assert_eq!(adapter.post(&large, ""), 413);
    assert!(queue.names("inbox").is_empty() && queue.names("tmp").is_empty());
    assert_eq!(adapter.post(&job(2), "Expect: 100-continue\r\n"), 100);
    let largest = format!("{{\"goal_id\":\"g\",\"x\":\"{}\"}}", "x".repeat((10 << 20) - 22));
    assert_eq!((largest.len(), adapter.post(&largest, "")), (10 << 20, 202));
    assert_eq!(queue.names("inbox").len(), 2);
}

#[test]
fn a_length_beside_chunks_is_passed_over_by_choice() {
    let queue = Queue::new();
    let adapter = adapter(&queue, &["--choice", "length_and_chunked=accept"]);
    let body = job(1);
    let request = format!(
        "POST /enqueue HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    assert_eq!((adapter.send(request.as_bytes()), queue.names("inbox").len()), (202, 1));
}

#[test]
fn a_reply_to_head_has_no_body() {
    let queue = Queue::new();
    let adapter = adapter(&queue, &[]);
    let mut stream = adapter.connect();
    stream.write_all(b"HEAD /enqueue HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 405 ") && reply.ends_with("\r\n\r\n"), "{reply}");
    assert!(reply.contains("Content-Length: ") && !reply.contains("Content-Length: 0"), "{reply}");
}

#[test]
fn mutants_take_lengths_and_clients_their_own_way() {
    let queue = Queue::new();
    let body = job(1);
    let lengths = |adapter: &Adapter, one: &str, other: &str| {
        adapter.send(format!("POST /enqueue HTTP/1.1\r\nHost: a\r\n{one}{other}\r\n{body}").as_bytes())
    };
    let lenient = adapter(&queue, &["--mutant", "http-first-length"]);
    let right = format!("Content-Length: {}\r\n", body.len());
    assert_eq!(lengths(&lenient, &right, "content-length: 1\r\n"), 202);
    assert_eq!(lengths(&lenient, &right.replace(": ", ": -"), ""), 202);
    let impatient = adapter(&queue, &["--mutant", "http-impatient"]);
    assert_eq!(lengths(&impatient, &right, ""), 202);
    let mut slow = impatient.connect();
    slow.write_all(b"POST /enqueue HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n").unwrap();
    assert_eq!(slow.read(&mut [0]).unwrap_or(0), 0);
    assert_eq!(queue.names("inbox").len(), 3);
}

#[test]
fn a_token_is_wanted_where_one_is_named() {
    let queue = Queue::new();
    let adapter = adapter(&queue, &["--token-env", "QUEUE_TOKEN"]);
    assert_eq!(adapter.post(&job(1), ""), 401);
    assert_eq!(adapter.post(&job(1), "Authorization: Bearer Secret\r\n"), 401);
    assert!(queue.names("inbox").is_empty());
    assert_eq!(adapter.post(&job(1), "authorization: Bearer Secret1\r\n"), 202);
    assert_eq!(adapter.send(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
    // The first port is in use, and the second address is reachable from outside.
    let (host, port) = (adapter.address.ip().to_string(), adapter.address.port().to_string());
    for host in [&host, "0.0.0.0"] {
        let words = ["http", "--queue", "q", "--port", &port, "--host", host];
        assert_eq!(queue.run(&words).status.code(), Some(2), "{host}");
    }
}

#[test]
fn many_clients_put_a_job_each_beside_some_that_stall() {
    const JOBS: usize = 100;
    let queue = Queue::new();
    let adapter = adapter(&queue, &[]);
    let stalled: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = adapter.connect();
            stream.write_all(b"POST /enqueue HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\n\r\n{").unwrap();
            stream
        })
        .collect();
    thread::scope(|scope| {
        for number in 0..JOBS {
            let adapter = &adapter;
            scope.spawn(move || assert_eq!(adapter.post(&job(number), ""), 202));
        }
    });
    drop(stalled);
    assert_eq!(queue.names("inbox").len(), JOBS);
}

#[test]
fn the_tool_is_a_toolhost() {
    let queue = Queue::new();
    let talk_to = |mut command: Command, input: &str| {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let talk = |words: &[&str], input: &str| talk_to(queue.command(words), input);
    let aid = "AID.QUEUE.ENQUEUE.v1";
    let input = r#""input_json":"{\"request_json\":{\"goal_id\":\"g\"}}""#;
    let reply = talk(&["enqueue", "--run", "plugin", aid, "--queue", "q"], &format!("{{{input}}}"));
    assert!(reply.contains("\"ok\":true"), "{reply}");
    let line = format!("{{\"aid\":\"{aid}\",{input}}}\n");
    let replies = talk(&["enqueue", "--serve", "plugin", "--queue", "q"], &line.repeat(2));
    assert_eq!(replies.lines().filter(|line| line.contains("\"ok\":true")).count(), 2);
    let names = queue.names("inbox");
    assert!(names.len() == 3 && names.iter().all(|name| name.ends_with(".json")), "{names:?}");
    let mutant = ["enqueue", "--run", "plugin", aid, "--queue", "other", "--mutant", "enq-no-state"];
    assert!(!talk(&mutant, &format!("{{{input}}}")).contains("\"ds_state\""));
    let full = queue.without_room(&["enqueue", "--run", aid, "--queue", "q"]);
    assert!(talk_to(full, &format!("{{{input}}}")).contains("\"ok\":false"));
    let refused = talk(&["enqueue", "--run", "plugin", aid, "--queue", "q"], "{\"input_json\":\"{}\"}");
    assert!(refused.contains("\"ok\":false") && queue.names("inbox").len() == 3);
}
