//! Tests with misbehaving servers: none may hang the harness or fill its memory.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::data::carriage::Pause;
use crate::data::transcript::{Event, Transcript};
use crate::drive::fixture::spawn_guard;
use crate::drive::transport::child::ChildSpec;

#[derive(Default)]
struct Tape(Vec<EventKind>);

impl Log for Tape {
    fn record(&mut self, _at_us: u64, kind: EventKind) {
        self.0.push(kind);
    }
}

impl Tape {
    fn lines(&self) -> Vec<String> {
        let line = |kind: &EventKind| match kind {
            EventKind::Received { bytes } => Some(String::from_utf8(bytes.0.clone()).unwrap()),
            _ => None,
        };
        self.0.iter().filter_map(line).collect()
    }

    fn failures(&self) -> Vec<String> {
        let reason = |kind: &EventKind| match kind {
            EventKind::HttpFailed { reason, will_retry, .. } if !will_retry => Some(reason.clone()),
            _ => None,
        };
        self.0.iter().filter_map(reason).collect()
    }
}

/// Reads one request with a `Content-Length`; returns its body.
fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        (stream.read(&mut byte).ok()? == 1).then(|| bytes.push(byte[0]))?;
    }
    let head = String::from_utf8(bytes).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1)?.lines().next()?.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

fn reply(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Connection to a server that runs `serve` for each connection on a thread of its own.
fn connect(serve: impl Fn(TcpStream) + Send + Sync + 'static, budget: &Budget) -> HttpConnection {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/rpc", listener.local_addr().unwrap());
    let serve = std::sync::Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = std::sync::Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    match start(&ServerSpec { url, child: None, ready: None }, budget, &mut Silent) {
        Ok(connection) => connection,
        Err(fault) => panic!("{}", fault.sentence()),
    }
}

/// Connection to a Python server started with its port and these arguments.
fn serve(program: &str, args: &[&str], ready: Option<ReadySign>, temp: &Path) -> HttpConnection {
    let free = free_address().unwrap();
    let url = format!("http://{}/", free.get());
    let port = free.get().port().to_string();
    let argv = ["python3", "-c", program, &port].iter().chain(args).map(Into::into).collect();
    let child = ChildSpec::new(argv, temp.to_owned(), crate::drive::transport::child::guardian::mark());
    let start = start(&ServerSpec { url, child: Some(child), ready }, &Budget::default(), &mut Silent);
    start.unwrap_or_else(|fault| panic!("{}", fault.sentence()))
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn lines_are_posted_in_order_and_bodies_are_lines() {
    let echo = |mut stream: TcpStream| {
        while let Some(body) = request(&mut stream) {
            stream.write_all(&reply(&format!("[\n{body}\n]\n"))).unwrap();
        }
    };
    let mut connection = connect(echo, &Budget::default());
    let mut tape = Tape::default();
    connection.queue_step(3, b"one\ntwo\nth".to_vec(), Chunking::Dribble, None);
    connection.queue_step(4, b"ree\n".to_vec(), Chunking::Every(2), None);
    let how = Carriage::post().on(7);
    connection.queue_step(5, b"a\nb\n".to_vec(), Chunking::Whole, Some(&how));
    assert_eq!(connection.pump(Until::Frames(4), LONG, &mut tape), Pumped::Reached);
    let mut lines = tape.lines();
    lines.sort();
    assert_eq!(lines, ["[\ra\rb\r]\n", "[\rone\r]\n", "[\rthree\r]\n", "[\rtwo\r]\n"]);
    let places: Vec<(usize, usize, bool)> = tape
        .0
        .iter()
        .filter_map(|kind| match kind {
            EventKind::HttpReply { step, of_step, connection: 0, reused, .. } => {
                Some((*step, *of_step, *reused))
            }
            _ => None,
        })
        .collect();
    assert_eq!(places, [(3, 0, false), (3, 1, true), (4, 0, true)]);
}

#[test]
fn what_came_of_a_reply_before_its_server_was_killed_is_the_reply() {
    let cut = |mut stream: TcpStream| {
        request(&mut stream).unwrap();
        stream.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\nab").unwrap();
    };
    let mut connection = connect(cut, &Budget::default());
    let mut tape = Tape::default();
    let how = Carriage { killing: true, counted: true, ..Carriage::post() };
    connection.queue_step(0, b"x\n".to_vec(), Chunking::Whole, Some(&how));
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
    let status = |kind: &EventKind| match kind {
        EventKind::HttpReply { status, body_bytes, .. } => Some((*status, *body_bytes)),
        _ => None,
    };
    assert_eq!(tape.0.iter().find_map(status), Some((202, 2)));
    assert!(connection.signalled && tape.failures().is_empty());
}

#[test]
fn bodies_are_told_to_the_byte() {
    let bodies = ["plain", "", " \n", "[\r\n1]\n", "\ttabs ", "x\ny"];
    let answers = move |mut stream: TcpStream| {
        for body in bodies {
            request(&mut stream).unwrap();
            stream.write_all(&reply(body)).unwrap();
        }
    };
    let mut connection = connect(answers, &Budget::default());
    let mut tape = Tape::default();
    connection.queue_step(0, b"1\n2\n3\n4\n5\n6\n".to_vec(), Chunking::Whole, None);
    assert_eq!(connection.pump(Until::Frames(4), LONG, &mut tape), Pumped::Reached);
    let transcript = Transcript {
        boundary: "toy".to_owned(),
        check: "by-hand".to_owned(),
        facts: std::sync::Arc::new(crate::data::facts::Facts::new(crate::data::clause::Side::Provider)),
        plan: std::sync::Arc::default(),
        timeout_scale: 1.0,
        events: tape.0.into_iter().map(|kind| Event { at_us: 0, session: 0, kind }).collect(),
    };
    let told: Vec<&[u8]> = (0..transcript.events.len()).filter_map(|event| transcript.body(event)).collect();
    assert_eq!(told, bodies.map(str::as_bytes));
    let is_twice = |event: &&Event| matches!(event.kind, EventKind::HttpReply { body: Some(_), .. });
    assert_eq!(transcript.events.iter().filter(is_twice).count(), 4, "what a line says is stored once");
}

#[test]
fn a_body_is_compressed_where_its_carriage_says_so() {
    use std::io::BufRead;
    let inflate = |stream: TcpStream| {
        let mut reader = std::io::BufReader::new(stream);
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|bytes| bytes > 2) {}
        let length = head.split("Content-Length: ").nth(1).and_then(|rest| rest.lines().next());
        let mut packed = vec![0; length.unwrap().parse().unwrap()];
        reader.read_exact(&mut packed).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
        let said = head.contains("\r\nContent-Encoding: gzip\r\n");
        reader.get_mut().write_all(&reply(&format!("{said} {text}"))).unwrap();
    };
    let mut connection = connect(inflate, &Budget::default());
    let mut tape = Tape::default();
    let how = Carriage::post().gzip(crate::data::packing::Packing::Whole);
    connection.queue_step(0, b"[1,\n2]\n".to_vec(), Chunking::Whole, Some(&how));
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
    assert_eq!(tape.lines(), ["true [1,\r2]\n"]);
}

#[test]
fn a_wait_that_nothing_can_satisfy_ends_at_once() {
    let mute = |mut stream: TcpStream| {
        while request(&mut stream).is_some() {
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        }
    };
    let mut connection = connect(mute, &Budget::default());
    connection.queue(b"note\n".to_vec(), Chunking::Whole);
    let began = Instant::now();
    let pumped = connection.pump(Until::Frames(1), LONG, &mut Silent);
    assert_eq!(pumped, Pumped::Nothing(Awaited::Frames));
    assert!(began.elapsed() < LONG);
}

#[test]
fn a_reply_that_lies_or_breaks_off_is_a_failure_and_the_next_one_counts() {
    for (bad, why) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", "middle of the body"),
        ("HTTP/1.1 200 OK\r\nContent-Le", "middle of the head"),
        ("nonsense\r\n\r\n", "status line"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "hexadecimal"),
        ("", "without a reply"),
    ] {
        let lies = move |mut stream: TcpStream| {
            while let Some(body) = request(&mut stream) {
                if body == "bad" {
                    stream.write_all(bad.as_bytes()).unwrap();
                    return;
                }
                stream.write_all(&reply("\"good\"")).unwrap();
            }
        };
        let mut connection = connect(lies, &Budget::default());
        let mut tape = Tape::default();
        connection.queue(b"first\nbad\nlast\n".to_vec(), Chunking::Whole);
        assert_eq!(connection.pump(Until::Frames(2), LONG, &mut tape), Pumped::Reached, "{bad:?}");
        assert_eq!(tape.lines(), ["\"good\"\n", "\"good\"\n"]);
        let failures = tape.failures();
        assert!(failures.len() == 1 && failures[0].contains(why), "{bad:?}: {failures:?}");
    }
}

#[test]
fn what_came_of_a_reply_that_never_ends_is_recorded() {
    let (wrote, written) = std::sync::mpsc::channel();
    let stops = move |mut stream: TcpStream| {
        request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort").unwrap();
        wrote.send(()).unwrap();
        // Stays open until the harness closes it.
        let _ = stream.read(&mut [0]);
    };
    let mut connection = connect(stops, &Budget::default());
    let mut tape = Tape::default();
    connection.queue(b"first\n".to_vec(), Chunking::Whole);
    // Look once more after the write: everything written is read.
    let mut is_written = false;
    loop {
        let pumped = connection.pump(Until::Frames(1), Duration::from_millis(20), &mut tape);
        assert!(matches!(pumped, Pumped::Deadline(_)), "{pumped:?}");
        if is_written {
            break;
        }
        is_written = written.try_recv().is_ok();
    }
    assert_eq!(tape.failures(), Vec::<String>::new(), "it may still come");
    connection.close_stdin();
    connection.pump(Until::Exited, Duration::from_millis(1), &mut tape);
    let came = "status 200 and 5 bytes of a body; Content-Length is 100, and no more";
    assert_eq!(tape.failures(), [came]);
}

#[test]
fn an_endless_body_ends_at_the_budget() {
    let endless = |mut stream: TcpStream| {
        request(&mut stream);
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while sent.is_ok() {
            sent = stream.write_all(&[b'x'; 1 << 16]);
        }
    };
    let budget = Budget { stdout_bytes_max: 1 << 20, ..Budget::default() };
    let mut connection = connect(endless, &budget);
    let mut tape = Tape::default();
    connection.queue(b"ask\n".to_vec(), Chunking::Whole);
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::OverBudget);
    assert!(
        tape.0
            .iter()
            .any(|kind| matches!(kind, EventKind::StdoutOverflow { bytes_max, .. } if *bytes_max == 1 << 20))
    );
}

#[test]
fn a_late_reply_holds_nobody_up_and_still_counts() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let slow = move |mut stream: TcpStream| {
        while let Some(body) = request(&mut stream) {
            if body == "slow" {
                // Sends part of the reply, and the rest when told.
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n\"la").unwrap();
                wait.lock().unwrap().recv().unwrap();
                stream.write_all(b"te\"").unwrap();
            } else {
                stream.write_all(&reply("\"quick\"")).unwrap();
            }
        }
    };
    let mut connection = connect(slow, &Budget::default());
    let mut tape = Tape::default();
    connection.queue(b"slow\n".to_vec(), Chunking::Whole);
    let pumped = connection.pump(Until::Frames(1), Duration::from_millis(50), &mut tape);
    assert!(matches!(pumped, Pumped::Deadline(_)), "{pumped:?}");
    connection.queue(b"quick\n".to_vec(), Chunking::Whole);
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
    assert_eq!(tape.lines(), ["\"quick\"\n"]);
    go.send(()).unwrap();
    assert_eq!(connection.pump(Until::Frames(2), LONG, &mut tape), Pumped::Reached);
    assert_eq!(tape.lines(), ["\"quick\"\n", "\"late\"\n"]);
}

#[test]
fn a_connection_that_was_dropped_without_a_word_is_tried_again_once() {
    let drops = |mut stream: TcpStream| {
        if request(&mut stream).is_some() {
            stream.write_all(&reply("1")).unwrap();
            // Reads the next request and never answers.
            request(&mut stream);
        }
    };
    let mut connection = connect(drops, &Budget::default());
    let mut tape = Tape::default();
    connection.queue(b"a\nb\n".to_vec(), Chunking::Whole);
    assert_eq!(connection.pump(Until::Frames(2), LONG, &mut tape), Pumped::Reached);
    assert!(tape.0.iter().any(|kind| matches!(kind, EventKind::HttpFailed { will_retry: true, .. })));
    assert!(tape.failures().is_empty());
}

#[test]
fn a_connection_that_ends_while_idle_is_not_passed_over() {
    let (gone, heard) = std::sync::mpsc::channel();
    let closes = move |mut stream: TcpStream| {
        if request(&mut stream).is_some() {
            stream.write_all(&reply("1")).unwrap();
            drop(stream);
            gone.send(()).unwrap();
        }
    };
    let mut connection = connect(closes, &Budget::default());
    let mut tape = Tape::default();
    for frames in 1..=2 {
        connection.queue(b"a\n".to_vec(), Chunking::Whole);
        assert_eq!(connection.pump(Until::Frames(frames), LONG, &mut tape), Pumped::Reached);
        heard.recv_timeout(LONG).unwrap();
    }
    let ends = tape.0.iter().filter(|kind| matches!(kind, EventKind::HttpFailed { will_retry: true, .. }));
    assert_eq!(ends.count(), 1);
    assert!(tape.failures().is_empty());
}

#[test]
fn raw_bytes_are_written_as_they_are_and_nothing_is_awaited() {
    let (said, heard) = std::sync::mpsc::channel();
    let listens = move |mut stream: TcpStream| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        said.send(String::from_utf8(bytes).unwrap()).unwrap();
    };
    let mut connection = connect(listens, &Budget::default());
    let how = Carriage::post().framing(BodyFraming::Cut).on(1);
    connection.queue_step(0, b"half a hea".to_vec(), Chunking::Whole, Some(&how));
    connection.pump(Until::Written, LONG, &mut Silent);
    let pumped = connection.pump(Until::Frames(1), LONG, &mut Silent);
    assert!(matches!(pumped, Pumped::Nothing(_)), "{pumped:?}");
    assert_eq!(heard.recv_timeout(LONG).unwrap(), "half a hea");
}

/// Head and body as written. The end of a counted request is awaited even without a body or reply.
#[test]
fn verbatim_requests_are_counted_however_they_end() {
    let listens = move |mut stream: TcpStream| {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        if bytes == b"POST / HTTP/1.1\r\n\r\n" {
            stream.write_all(b"HTTP/1.1 411 Length Required\r\nContent-Length: 0\r\n\r\n").unwrap();
        }
    };
    let mut connection = connect(listens, &Budget::default());
    let mut tape = Tape::default();
    for (text, number) in [("POST / HTTP/1.1\r\n\r\n", 1), ("half a hea", 2)] {
        let how = Carriage { counted: true, ..Carriage::post().framing(BodyFraming::Verbatim).on(number) };
        connection.queue_step(0, text.into(), Chunking::Whole, Some(&how));
    }
    assert_eq!(connection.pump(Until::Frames(2), LONG, &mut tape), Pumped::Reached);
    assert_eq!(tape.lines(), ["\n", "\n"]);
    let statuses = tape.0.iter().filter(|kind| matches!(kind, EventKind::HttpReply { status: 411, .. }));
    assert_eq!((statuses.count(), tape.failures().len()), (1, 1));
}

#[test]
fn a_request_as_it_is_written_may_be_whole() {
    let of =
        |lines: &str, body: &str| super::is_whole(format!("POST / HTTP/1.1\r\n{lines}\r\n{body}").as_bytes());
    let (chunked, length) = ("Transfer-Encoding: chunked\r\n", "content-length: 2\r\n");
    assert!(of(length, "{}") && of(chunked, "2\r\n{}\r\n0\r\n\r\n"));
    assert!(!of("", "") && !of(length, "{") && !of(&length.repeat(2), "{}"));
    assert!(!of(chunked, "2\r\n{}\r\n") && !of(chunked, "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n"));
}

#[test]
fn a_body_is_drawn_out_and_comes_whole() {
    let echo = |mut stream: TcpStream| {
        let body = request(&mut stream).unwrap();
        stream.write_all(&reply(&body)).unwrap();
    };
    let mut connection = connect(echo, &Budget::default());
    let mut tape = Tape::default();
    let how = Carriage { drawn_out_ms: 40, ..Carriage::post() };
    connection.queue_step(0, b"0123456789".to_vec(), Chunking::Whole, Some(&how));
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
    assert_eq!(tape.lines(), ["0123456789\n"]);
}

#[test]
fn a_body_pauses_once_and_comes_whole() {
    for after_bytes in [0, 4, 99] {
        let echo = |mut stream: TcpStream| {
            let body = request(&mut stream).unwrap();
            stream.write_all(&reply(&body)).unwrap();
        };
        let mut connection = connect(echo, &Budget::default());
        let mut tape = Tape::default();
        let how = Carriage { pause: Some(Pause { after_bytes, ms: 40 }), ..Carriage::post() };
        let begun = Instant::now();
        connection.queue_step(0, b"0123456789".to_vec(), Chunking::Whole, Some(&how));
        assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
        assert_eq!(tape.lines(), ["0123456789\n"]);
        assert!(after_bytes == 99 || begun.elapsed() >= Duration::from_millis(40));
    }
}

#[test]
fn an_address_is_given_once_until_its_server_listens() {
    // Other tests look for addresses, too: one success is enough.
    let (place, free) = (0..1_000).find_map(|place| Some((place, FreeAddress::take(place)?))).unwrap();
    assert!(FreeAddress::take(place).is_none(), "{:?} is claimed", free.get());
    let server = TcpListener::bind(free.get()).unwrap();
    drop(free);
    assert!(FreeAddress::take(place).is_none(), "{:?} is listened at", server.local_addr());
}

/// A process forked during the test of a port once received the server's connection.
#[test]
fn nobody_listens_at_an_address_while_processes_are_started() {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let starts = || {
            while !ended.load(Ordering::SeqCst) {
                let _guard = spawn_guard();
                Command::new("/bin/true").status().unwrap();
            }
        };
        for _ in 0..4 {
            scope.spawn(starts);
        }
        let open = (0..300).filter(|_| {
            let free = free_address().unwrap();
            TcpStream::connect(free.get()).is_ok()
        });
        let open = open.count();
        ended.store(true, Ordering::SeqCst);
        assert_eq!(open, 0, "addresses that were taken");
    });
}

#[test]
fn nobody_who_listens_is_said_to_be_nobody() {
    let free = free_address().unwrap();
    let address = free.get();
    let budget = Budget { reply: Duration::from_millis(10), ..Budget::default() };
    let start = start(
        &ServerSpec { url: format!("http://{address}/"), child: None, ready: None },
        &budget,
        &mut Silent,
    );
    let Err(fault) = start else { panic!("somebody listens at {address}") };
    let words = fault.sentence();
    assert!(words.contains("nothing listens"), "{words}");
    for url in ["https://a/", "http://127.0.0.1:1/a b", "http://"] {
        assert!(ServerAddress::of(url).is_err(), "{url}");
    }
}

/// Received lines for bodies sent with these settings on one connection number.
fn carried(serve: impl Fn(TcpStream) + Send + Sync + 'static, all: &[(&str, Carriage)]) -> Vec<String> {
    let mut connection = connect(serve, &Budget::default());
    let mut tape = Tape::default();
    for (step, (body, how)) in all.iter().enumerate() {
        connection.queue_step(step, body.as_bytes().to_vec(), Chunking::Whole, Some(how));
    }
    connection.pump(Until::Frames(all.len() as u64), LONG, &mut tape);
    connection.finish(&mut Silent);
    tape.lines()
}

#[test]
fn pipelined_requests_are_written_before_the_first_is_answered() {
    let both_first = |mut stream: TcpStream| {
        while let (Some(one), Some(two)) = (request(&mut stream), request(&mut stream)) {
            // In one write: bytes after the first reply belong to the second.
            let _ = stream.write_all(&[reply(&one), reply(&two)].concat());
        }
    };
    let next = || Carriage { pipelined: true, ..Carriage::post() };
    let lines = carried(both_first, &[("1", Carriage::post()), ("2", next())]);
    assert_eq!(lines, ["1\n", "2\n"]);
}

#[test]
fn a_pipelined_request_whose_connection_is_closed_is_sent_again() {
    let one_each = |mut stream: TcpStream| {
        let Some(one) = request(&mut stream) else { return };
        let _ = stream.write_all(&reply(&one));
    };
    let next = || Carriage { pipelined: true, ..Carriage::post() };
    let lines = carried(one_each, &[("1", Carriage::post()), ("2", next())]);
    assert_eq!(lines, ["1\n", "2\n"]);
}

#[test]
fn a_body_is_held_back_until_the_server_says_that_it_may_come() {
    let asks = |mut stream: TcpStream| {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(1) = stream.read(&mut byte) else { return };
            head.push(byte[0]);
        }
        stream.set_nonblocking(true).unwrap();
        let came_early = stream.read(&mut byte).is_ok();
        stream.set_nonblocking(false).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        let mut body = [0; 4];
        if stream.read_exact(&mut body).is_ok() {
            let says = String::from_utf8_lossy(&body).into_owned();
            let _ = stream.write_all(&reply(&format!("{came_early} {says}")));
        }
    };
    let how =
        Carriage { held_back: true, headers: vec!["Expect: 100-continue".to_owned()], ..Carriage::post() };
    assert_eq!(carried(asks, &[("body", how)]), ["false body\n"]);
}

#[test]
fn a_body_that_is_cut_ends_what_is_written_and_is_answered() {
    let shows = |mut stream: TcpStream| {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let text = String::from_utf8(all).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let line = head.lines().last().unwrap_or_default();
        let path = head.lines().next().unwrap_or_default();
        let _ = stream.write_all(&reply(&format!("{path}|{line}|{}", body.replace("\r\n", "."))));
    };
    let elsewhere = || Carriage { path: Some("/x".to_owned()), http_1_0: true, ..Carriage::post() };
    for (framing, shown) in [
        (BodyFraming::Short(3), "POST /x HTTP/1.0|Content-Length: 7|body\n"),
        (BodyFraming::OpenChunks(3), "POST /x HTTP/1.0|Transfer-Encoding: chunked|3.bod.1.y.\n"),
    ] {
        assert_eq!(carried(shows, &[("body", elsewhere().framing(framing))]), [shown]);
    }
}

/// A server with a full queue has not refused a connection: it accepts it later.
#[test]
fn a_connection_that_nobody_has_taken_yet_has_not_failed() {
    const COUNT: u32 = 30;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let url = format!("http://{}/rpc", listener.local_addr().unwrap());
    let start = start(&ServerSpec { url, child: None, ready: None }, &Budget::default(), &mut Silent);
    let Ok(mut connection) = start else { panic!("it listens") };
    let mut tape = Tape::default();
    for number in 1..=COUNT {
        connection.queue_step(0, b"x\n".to_vec(), Chunking::Whole, Some(&Carriage::post().on(number)));
    }
    let all = Until::Frames(u64::from(COUNT));
    let early = connection.pump(all, Duration::from_millis(50), &mut tape);
    assert!(matches!(early, Pumped::Deadline(_)), "{early:?}");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || request(&mut stream).map(|body| stream.write_all(&reply(&body))));
        }
    });
    assert_eq!(connection.pump(all, LONG, &mut tape), Pumped::Reached, "{:?}", tape.failures());
    assert_eq!(tape.failures(), [""; 0]);
}

/// A server may serve a connection to its end before it accepts the next.
#[test]
fn a_connection_that_nothing_is_asked_on_is_closed_before_another_is_used() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/rpc", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            while let Some(body) = request(&mut stream) {
                stream.write_all(&reply(&body)).unwrap();
            }
        }
    });
    let start = start(&ServerSpec { url, child: None, ready: None }, &Budget::default(), &mut Silent);
    let Ok(mut connection) = start else { panic!("it listens") };
    let mut tape = Tape::default();
    for (at, number) in [0, 0, 1, 2, 0].into_iter().enumerate() {
        let how = Carriage::post().on(number);
        connection.queue_step(at, format!("{at}\n").into_bytes(), Chunking::Whole, Some(&how));
        let next = Until::Frames(at as u64 + 1);
        assert_eq!(connection.pump(next, LONG, &mut tape), Pumped::Reached);
    }
    // A connection that announces its end closes at once, whatever else is asked.
    let last = Carriage { headers: vec!["Connection: close".to_owned()], ..Carriage::post() };
    for number in 3..6 {
        let how = last.clone().on(number);
        connection.queue_step(5, b"5\n".to_vec(), Chunking::Whole, Some(&how));
    }
    assert_eq!(connection.pump(Until::Frames(8), LONG, &mut tape), Pumped::Reached);
    let reused = tape.0.iter().filter(|kind| matches!(kind, EventKind::HttpReply { reused: true, .. }));
    assert_eq!(reused.count(), 1, "what goes on is used on");
}

/// Output of a server before it is ready does not count.
#[test]
fn a_server_that_tells_when_it_is_ready_is_asked_nothing_before() {
    const SERVER: &str = "
import http.server, sys, threading
class H(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        H.asked += 1
        if H.asked == 3:
            print('now', flush=True)
            print('now', file=sys.stderr, flush=True)
        self.answer(200 if H.asked > 3 else 503, b'')
    def do_POST(self):
        self.answer(200, b'%d' % H.asked)
    def answer(self, status, body):
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H)
if sys.argv[2] != 'get':
    H.asked = 2
    class Once:
        path = ''
    threading.Timer(0.2, lambda: H.do_GET(type('Fake', (), {'answer': lambda *_: None})())).start()
server.serve_forever()
";
    for (told, asked) in [(["get", "/health"], "4"), (["stdout", "now"], "3"), (["stderr", "now"], "3")] {
        let temp = tempfile::tempdir().unwrap();
        let mut connection = serve(SERVER, &told[..1], ReadySign::of(&told.map(str::to_owned)), temp.path());
        let mut tape = Tape::default();
        connection.queue_step(0, b"x\n".to_vec(), Chunking::Whole, None);
        assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Reached);
        assert_eq!(tape.lines(), [format!("{asked}\n")], "{told:?}");
        connection.finish(&mut tape);
    }
}

/// A dying process closes its connections before its end is visible, on a busy machine long before.
#[test]
fn an_end_that_comes_behind_a_connection_that_it_closed_is_on_record() {
    const SERVER: &str = "
import os, socket, sys, time
listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))
while True:
    connection = listener.accept()[0]
    if connection.recv(1): break
listener.close()
connection.close()
time.sleep(0.2)
os._exit(3)
";
    let temp = tempfile::tempdir().unwrap();
    let mut connection = serve(SERVER, &[], None, temp.path());
    let mut tape = Tape::default();
    connection.queue(b"x\n".to_vec(), Chunking::Whole);
    assert_eq!(connection.pump(Until::Frames(1), LONG, &mut tape), Pumped::Nothing(Awaited::Frames));
    connection.finish(&mut tape);
    assert!(
        tape.0.iter().any(|kind| matches!(kind, EventKind::Exited { exit: Exit::Code(3), .. })),
        "{:?}",
        tape.0
    );
}
