//! The checks of the adapter.

use peerproof_engine::contract::memory;
use peerproof_engine::data::carriage::{BodyFraming, Carriage, Pause};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{
    Act, Chunking, Fixture, Limits, ListenerSettings, Placing, Session, Step,
};
use peerproof_engine::drive::peer::FREE_PORT;

use super::{ANYWHERE, ANYWHERE_IPV6, HEALTH, LOOPBACK, PATH, Talk, beside, check};
use crate::FOLDERS;
use crate::inbox::{self, DISK_BYTES, QUEUE};
use crate::job::{BYTES_MAX, DEPTH_MAX, VERY_DEEP, arrays, with_member};

/// Extra time for a start that must fail, ms.
const START_MS: u64 = 3_000;

/// Time that a slow client takes for its body, ms.
const SLOW_MS: u64 = 3_000;

/// Time in which an adapter that runs jobs would start one, ms.
pub(super) const AFTERWARDS_MS: u64 = 1_500;

/// Size of a large job, bytes: more than a socket buffers.
const LARGE_BYTES: usize = 400_000;

/// Number of concurrent requests.
const MANY: u32 = 200;

pub(super) fn post() -> Carriage {
    Carriage::post()
}

/// A job of this size, padded by repetitions of `unit`.
pub(super) fn sized(job: &str, bytes: usize, unit: &str) -> Payload {
    let (before, behind) = (format!("{},\"pad\":\"", job.strip_suffix('}').unwrap_or(job)), "\"}");
    let room = bytes.saturating_sub(before.len() + behind.len());
    let rest = " ".repeat(room % unit.len());
    Payload::text(before).repeat(unit, (room / unit.len()) as u64).then(Payload::text(rest + behind))
}

pub(super) fn puts() -> Vec<Check> {
    vec![
        check(
            "put/kinds-of-jobs",
            "Jobs of every kind are stored unchanged, under the name in the reply.",
            &["QUE-HTTP-01", "QUE-HTTP-02", "QUE-HTTP-06", "QUE-HTTP-18", "QUE-JOB-04", "QUE-JOB-21"],
            |talk| {
                let job = talk.job();
                let nested = format!("\"deep\":{}", arrays(DEPTH_MAX - 1));
                let word = format!("{}-plain", talk.word);
                let texts = [
                    ("", format!("{{\"goal_id\":\"{word}\"}}")),
                    ("", format!(" \r\n\t{{ \"goal_id\" : \"g\\u00e9-{word}\", \"inputs\" : {{}} }} \n")),
                    ("QUE-JOB-21", with_member(&job, &nested)),
                    ("", inbox::exact(&talk.job())),
                    ("", format!("{{\"inputs\":{{\"goal_id\":1,\"inputs\":[]}},\"goal_id\":\"../{word}\"}}")),
                ];
                for (aim, text) in texts {
                    talk.put(aim, post(), &text);
                    talk.look();
                }
                talk.canary();
                talk.look();
                Ok(())
            },
        )
        .ambient(),
        check(
            "put/the-same-twice",
            "Two requests make two jobs, even if both are equal.",
            &["QUE-HTTP-04"],
            |talk| {
                let job = format!("{{\"goal_id\":\"{}\",\"inputs\":{{}}}}", talk.word);
                for connection in [0, 1] {
                    talk.put("QUE-HTTP-04", post().on(connection), &job);
                }
                talk.canary();
                talk.look();
                Ok(())
            },
        ),
        check(
            "put/same-request-id",
            "Two jobs with one `request_id` make one job or two.",
            &["QUE-ENQ-12"],
            |talk| {
                let job = talk.job();
                talk.put("QUE-ENQ-12", post(), &job);
                talk.ask("QUE-ENQ-12", post(), Payload::text(job));
                Ok(())
            },
        ),
        check(
            "put/request-id-that-is-a-path",
            "A `request_id` that is a path does not change where a job is stored.",
            &["QUE-HTTP-18"],
            |talk| {
                for id in inbox::PATHS {
                    let job = inbox::called(&talk.job(), id);
                    talk.ask("QUE-HTTP-18", post(), Payload::text(job));
                }
                Ok(())
            },
        ),
        check(
            "put/half-surrogate",
            "A job with a lone surrogate escape is enqueued with it or with U+FFFD, or refused.",
            &["QUE-HTTP-06"],
            |talk| {
                let job = inbox::halved(&talk.job());
                talk.ask("", post(), Payload::text(job));
                Ok(())
            },
        ),
        check(
            "put/goal-id-with-bar",
            "A `goal_id` with `|` is accepted or refused.",
            &["QUE-JOB-24"],
            |talk| {
                let job = talk.job().replace("\"g-", "\"g|");
                talk.ask("QUE-JOB-24", post(), Payload::text(job));
                Ok(())
            },
        ),
    ]
}

/// Checks about the jobs and files of others, and about the death of the adapter.
pub(super) fn others() -> Vec<Check> {
    vec![
        check(
            "put/killed-behind-the-reply",
            "A job is in the inbox from the first line of its reply on, even if the adapter is killed at \
             once.",
            &["QUE-HTTP-03"],
            |talk| {
                // Only one adapter at a time uses a queue.
                talk.step(Act::Finish);
                for bytes in [0, 3_000, 1 << 20] {
                    talk.open(Session::default());
                    talk.canary();
                    let job = talk.job();
                    let payload = if bytes == 0 { Payload::text(job) } else { sized(&job, bytes, "x") };
                    talk.send("QUE-HTTP-03", Carriage { killing: true, ..post() }, payload, 1);
                    talk.step(Act::Signal("KILL".to_owned()));
                    talk.look();
                }
                Ok(())
            },
        ),
        check(
            "put/among-other-files",
            "The adapter does not touch jobs and other files, also at its start, and needs no worker.",
            &["QUE-HTTP-33"],
            |talk| {
                for name in ["own.json", "0.json"] {
                    let content = Payload::text(talk.job());
                    let path = inbox::place(&format!("/inbox/{name}"));
                    talk.step(Act::Put { path, content, by: Placing::Rename });
                }
                for place in ["/processing/held.json", "/done/done.json", "/inbox/note.txt"] {
                    let content = Payload::text(talk.job());
                    talk.step(Act::Put { path: inbox::place(place), content, by: Placing::Write });
                }
                talk.canary();
                talk.look();
                talk.step(Act::Finish);
                talk.open(Session::default());
                talk.canary();
                talk.look();
                Ok(())
            },
        ),
        check(
            "put/left-alone",
            "An enqueued job still exists a moment later: the adapter runs no job.",
            &["QUE-HTTP-33"],
            |talk| {
                let job = talk.job();
                talk.put("QUE-HTTP-33", post(), &job);
                talk.look();
                talk.step(inbox::look_after(AFTERWARDS_MS));
                Ok(())
            },
        )
        .waits(),
    ]
}

pub(super) fn malformed() -> Vec<Check> {
    let refused = |id: &str, title: &str, change: fn(&str) -> Vec<Vec<u8>>| {
        check(
            &format!("malformed/{id}"),
            title,
            &["QUE-HTTP-07", "QUE-HTTP-08", "QUE-HTTP-09"],
            move |talk| {
                let job = talk.job();
                for body in change(&job) {
                    talk.ask("", post(), Payload::from_bytes(&body));
                }
                Ok(())
            },
        )
    };
    vec![
        refused("syntax", "Text that is not strict JSON is refused, and enqueues nothing.", |job| {
            let more = |member: &str| with_member(job, member);
            let texts = [
                job.replace('"', "'"),
                job.replacen('}', ",}", 1),
                job.replacen(',', ",/* more */", 1),
                more("\"x\":NaN"),
                more("\"x\":-Infinity"),
                more("\"x\":01"),
                more("\"x\":\"\u{1}\""),
                more("\"x\":.5"),
                more("x:1"),
                job[..job.len() - 1].to_owned(),
                "{".to_owned(),
            ];
            texts.map(String::into_bytes).to_vec()
        }),
        refused("behind-the-value", "Bytes after a job are refused, and enqueue nothing.", |job| {
            let texts = [format!("{job}x"), format!("{job}\n{job}"), format!("{job},"), format!("{job}\0")];
            texts.map(String::into_bytes).to_vec()
        }),
        refused("empty", "An empty body and one of white space are refused, and enqueue nothing.", |_| {
            vec![Vec::new(), b" \r\n\t".to_vec()]
        }),
        refused("encoding", "A body that is not UTF-8 is refused, and enqueues nothing.", |job| {
            let bytes = |wrong: &[u8]| [&job.as_bytes()[..12], wrong, &job.as_bytes()[12..]].concat();
            let wide: Vec<u8> = job.encode_utf16().flat_map(u16::to_le_bytes).collect();
            vec![bytes(b"\xff"), bytes(b"\xc0\xaf"), bytes(b"\xed\xa0\x80"), bytes(b"\xe2\x82"), wide]
        }),
        refused("no-job", "JSON that is not an object is refused, and enqueues nothing.", |job| {
            let text = peerproof_engine::data::json::Json::from(job).to_text();
            let texts =
                [format!("[{job}]"), text, "\"goal_id\"".to_owned(), "7".to_owned(), "null".to_owned()];
            texts.map(String::into_bytes).to_vec()
        }),
        refused("goal-id", "A job whose `goal_id` is not a non-empty string is refused.", |job| {
            let goal = |text: &str| {
                let at = job.find(",\"inputs\"").unwrap_or(0);
                format!("{{{text}{}", &job[at + usize::from(text.is_empty())..])
            };
            let texts = [
                "",
                "\"goal_id\":\"\"",
                "\"goal_id\":7",
                "\"goal_id\":true",
                "\"goal_id\":[\"g\"]",
                "\"goal_id\":{\"goal_id\":\"g\"}",
                "\"Goal_Id\":\"g\"",
                "\"goal_id \":\"g\"",
            ];
            texts.map(|text| goal(text).into_bytes()).to_vec()
        }),
        refused("inputs", "A job whose `inputs` are not an object is refused, and enqueues nothing.", |_| {
            let texts = ["[]", "[{}]", "\"{}\"", "1", "true", "null"];
            texts.map(|text| format!("{{\"goal_id\":\"g\",\"inputs\":{text}}}").into_bytes()).to_vec()
        }),
    ]
}

/// Head and body of a request with these further header lines.
pub(super) fn head(lines: &str, body: &str) -> String {
    format!("POST {PATH} HTTP/1.1\r\nHost: {LOOPBACK}\r\nContent-Type: application/json\r\n{lines}\r\n{body}")
}

pub(super) fn sizes() -> Vec<Check> {
    let over = |id: &str, title: &str, bytes: usize, framing: BodyFraming| {
        let clauses = ["QUE-HTTP-11", "QUE-HTTP-10"];
        let clauses = if framing == BodyFraming::Length { &clauses[..] } else { &clauses[..1] }.to_vec();
        check(&format!("size/{id}"), title, &clauses, move |talk| {
            let job = talk.job();
            talk.ask("", post().framing(framing).on(1), sized(&job, bytes, "x"));
            Ok(())
        })
    };
    let within = |id: &str, title: &str, bytes: usize, unit: &'static str, how: (BodyFraming, Chunking)| {
        check(&format!("size/{id}"), title, &["QUE-HTTP-12"], move |talk| {
            let job = talk.job();
            let step = talk.send("QUE-HTTP-12", post().framing(how.0), sized(&job, bytes, unit), 1);
            if let Act::Send { chunking, .. } = &mut step.act {
                *chunking = how.1;
            }
            talk.look();
            talk.canary();
            Ok(())
        })
    };
    let (whole, length) = (Chunking::Whole, BodyFraming::Length);
    let mut memory = check(
        "size/memory",
        "Bodies of twice and ten times the limit are refused, and memory does not grow with their size.",
        &["QUE-HTTP-38"],
        |talk| {
            talk.step(memory::sample(memory::IDLE));
            for (pieces, label) in memory::INPUTS {
                let bytes = pieces as usize * memory::PIECE_BYTES as usize + 1_000_000;
                let job = talk.job();
                talk.send("QUE-HTTP-11", post().on(pieces), sized(&job, bytes, "x"), 1);
                talk.canary();
                talk.step(memory::sample(label));
            }
            talk.look();
            Ok(())
        },
    );
    memory = memory.exclusive();
    vec![
        within("limit", "A job of exactly 10 MB is enqueued.", BYTES_MAX, "x", (length, whole)),
        within(
            "limit-in-chunks",
            "A chunked job of 10 MB is enqueued, if the adapter accepts chunked bodies.",
            BYTES_MAX,
            "x",
            (BodyFraming::Chunked(64 << 10), whole),
        ),
        within(
            "below-limit",
            "A job of one byte less than 10 MB is enqueued.",
            BYTES_MAX - 1,
            "x",
            (length, whole),
        ),
        within(
            "limit-dribbled",
            "A job of 10 MB of multi-byte characters, in small pieces, is enqueued.",
            BYTES_MAX,
            "ü✓",
            (length, Chunking::Dribble),
        ),
        within(
            "limit-of-escapes",
            "A job of 10 MB of escapes is enqueued.",
            BYTES_MAX,
            "\\u00e9",
            (length, whole),
        ),
        within(
            "byte-by-byte",
            "A job that comes byte by byte is enqueued.",
            9_000,
            "ü",
            (length, Chunking::Dribble),
        ),
        over("over-limit", "A job of one byte over 10 MB is refused.", BYTES_MAX + 1, length),
        over(
            "over-limit-in-chunks",
            "A chunked job of one byte over 10 MB is refused.",
            BYTES_MAX + 1,
            BodyFraming::Chunked(64 << 10),
        ),
        over("twice-the-limit", "A job of 20 MB is refused.", 2 * BYTES_MAX, length),
        memory,
    ]
}

pub(super) fn around() -> Vec<Check> {
    vec![
        check(
            "path/other",
            "Another path is answered by 404, and enqueues nothing.",
            &["QUE-HTTP-19"],
            |talk| {
                for path in ["/", "/queue", "/enqueued", "/enqueue/x", "/v1/enqueue", "/inbox/x.json"] {
                    let job = talk.job();
                    talk.ask(
                        "QUE-HTTP-19",
                        Carriage { path: Some(path.to_owned()), ..post() },
                        Payload::text(job),
                    );
                }
                Ok(())
            },
        ),
        check(
            "path/query",
            "A query after the path is accepted, or answered by 404.",
            &["QUE-HTTP-21"],
            |talk| {
                let job = talk.job();
                let path = Some(format!("{PATH}?priority=1"));
                talk.ask("QUE-HTTP-21", Carriage { path, ..post() }, Payload::text(job));
                Ok(())
            },
        ),
        check(
            "method/other",
            "Another method is answered by 405 or 404, and enqueues nothing.",
            &["QUE-HTTP-20"],
            |talk| {
                for method in ["GET", "PUT", "DELETE", "PATCH", "JOB"] {
                    let text = if method == "GET" { String::new() } else { talk.job() };
                    talk.ask("QUE-HTTP-20", post().method(method).on(1), Payload::text(text));
                }
                Ok(())
            },
        ),
        check(
            "content-type/other",
            "Another content type, or none, is accepted, or answered by 415.",
            &["QUE-HTTP-22"],
            |talk| {
                // An adapter that refuses other content types may also refuse a missing one.
                for (aim, content_type) in [("QUE-HTTP-22", Some("text/plain")), ("", None)] {
                    let job = talk.job();
                    talk.ask(aim, post().content_type(content_type), Payload::text(job));
                }
                Ok(())
            },
        ),
        check("health", "`GET /health` is answered by 200.", &["QUE-HTTP-23"], |talk| {
            health(talk, "QUE-HTTP-23");
            Ok(())
        }),
    ]
}

pub(super) fn beside_slow_clients() -> Vec<Check> {
    vec![
        check(
            "stalled/four",
            "With four stalled clients, a job is answered within 2 s.",
            &["QUE-HTTP-25"],
            |talk| stalled(talk, "QUE-HTTP-25", 4),
        ),
        check(
            "stalled/hundred",
            "With a hundred stalled clients, a job is answered within 2 s.",
            &["QUE-HTTP-26"],
            |talk| stalled(talk, "QUE-HTTP-26", 100),
        ),
        check("slow/body", "A client that needs 3 s for its body is served.", &["QUE-HTTP-27"], |talk| {
            let job = talk.job();
            let how = Carriage { drawn_out_ms: SLOW_MS, ..post() };
            talk.put("QUE-HTTP-27", how.on(1), &job).allow_ms = SLOW_MS;
            talk.look();
            talk.canary();
            Ok(())
        })
        .waits(),
        check(
            "slow/silence",
            "A client that pauses for most of 3 s, before, in or at the end of its body, is served.",
            &["QUE-HTTP-27"],
            |talk| {
                for (at, connection) in (0_usize..).zip(1..=3) {
                    let job = talk.job();
                    let after_bytes = [0, job.len() / 2, job.len() - 1][at];
                    let pause = Some(Pause { after_bytes, ms: SLOW_MS - 100 });
                    let how = Carriage { pause, ..post() }.on(connection);
                    let step = talk.put("QUE-HTTP-27", how, &job);
                    if let Act::Send { await_frames, .. } = &mut step.act {
                        *await_frames = if connection == 3 { 3 } else { 0 };
                    }
                    step.allow_ms = if connection == 3 { SLOW_MS } else { 0 };
                }
                talk.look();
                talk.canary();
                Ok(())
            },
        )
        .waits(),
    ]
}

pub(super) fn crowds() -> Vec<Check> {
    vec![
        check(
            "many/large-at-once",
            "Eight concurrent large jobs are each stored unchanged.",
            &["QUE-HTTP-06", "QUE-HTTP-28"],
            |talk| {
                for connection in 1..=8 {
                    let job = talk.job();
                    let unit = ["a", "bc", "def", "ghij"][connection as usize % 4];
                    let step =
                        talk.send("QUE-HTTP-28", post().on(connection), sized(&job, LARGE_BYTES, unit), 0);
                    if let Act::Send { await_frames, .. } = &mut step.act {
                        *await_frames = if connection == 8 { 8 } else { 0 };
                    }
                    step.allow_ms = if connection == 8 { 10_000 } else { 0 };
                }
                talk.look();
                talk.canary();
                Ok(())
            },
        ),
        check(
            "many/at-once",
            "Of 200 concurrent requests, each accepted one becomes one job, and a refused one becomes none.",
            &["QUE-HTTP-28"],
            |talk| {
                for connection in 1..=MANY {
                    let job = talk.job();
                    let step = talk.put("QUE-HTTP-28", post().on(connection), &job);
                    let is_last = connection == MANY;
                    if let Act::Send { await_frames, .. } = &mut step.act {
                        *await_frames = if is_last { MANY } else { 0 };
                    }
                    step.allow_ms = if is_last { 10_000 } else { 0 };
                }
                talk.look();
                talk.canary();
                talk.look();
                Ok(())
            },
        ),
        check(
            "garbage",
            "Invalid, incomplete and very deeply nested requests do not end the adapter.",
            &["QUE-HTTP-31", "QUE-JOB-28"],
            |talk| {
                let huge = format!("Content-Length: {}\r\n", "9".repeat(30));
                let texts = [
                    "\r\n\r\n".to_owned(),
                    "garbage\r\n\r\n".to_owned(),
                    format!("POST {PATH}\r\n\r\n"),
                    format!("POST {PATH} HTTP/1.1\r\nno colon\r\n\r\n"),
                    format!("POST {PATH} HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(200_000)),
                    format!("{} {PATH} HTTP/1.1\r\nHost: a\r\n\r\n", "P".repeat(100_000)),
                    head(&huge, "{}"),
                    head("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
                    head("Transfer-Encoding: chunked\r\n", "ffffffffffffffffff\r\n{}\r\n0\r\n\r\n"),
                    "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03".to_owned(),
                ];
                for text in texts {
                    talk.say("QUE-HTTP-31", &text);
                }
                let deep = format!("{{\"goal_id\":\"g\",\"deep\":{}", "[".repeat(VERY_DEEP));
                talk.ask("", post(), Payload::text(deep));
                let deep = with_member(&talk.job(), &format!("\"deep\":{}", arrays(VERY_DEEP)));
                talk.ask("QUE-JOB-28", post(), Payload::text(deep));
                for text in ["", "PO", "POST /enqueue HTTP/1.1\r\nHost"] {
                    let how = post().framing(BodyFraming::Cut).on(1);
                    talk.ask("QUE-HTTP-31", how, Payload::text(text));
                }
                Ok(())
            },
        ),
    ]
}

pub(super) fn health(talk: &mut Talk<'_>, aim: &str) {
    talk.ask(aim, asks_health(), Payload::default());
}

pub(super) fn asks_health() -> Carriage {
    Carriage { path: Some(HEALTH.to_owned()), ..post().method("GET").content_type(None) }
}

/// Clients that stop at different places within a request, and a job that is posted meanwhile.
fn stalled(talk: &mut Talk<'_>, aim: &str, clients: u32) -> Result<(), Untestable> {
    for client in 1..=clients {
        let job = talk.job();
        let whole = head(&format!("Content-Length: {}\r\n", job.len()), &job);
        let body = whole.len() - job.len();
        let ends = [body, body + 3, 20, whole.len() - 1];
        let text = &whole[..ends[client as usize % ends.len()]];
        let how = post().framing(BodyFraming::Held).on(client);
        let payload = Payload::from_bytes(text.as_bytes());
        talk.send("QUE-HTTP-13", how, payload, 0);
    }
    talk.step(Act::Flush);
    let job = talk.job();
    talk.put(aim, post().on(clients + 1), &job).canary = true;
    talk.look();
    Ok(())
}

pub(super) fn processes() -> Vec<Check> {
    vec![
        check(
            "disk/full",
            "On a full disk (simulated by a limit on file sizes), no job is accepted, and no part of a job \
             is left.",
            &["QUE-HTTP-29", "QUE-HTTP-30"],
            |talk| {
                let limits = Limits { file_bytes: Some(DISK_BYTES), ..Limits::default() };
                talk.plan.sessions[0].limits = limits;
                for aim in ["QUE-HTTP-29", "QUE-HTTP-30"] {
                    let job = talk.job();
                    let bytes = 2 * usize::try_from(DISK_BYTES).unwrap_or_default();
                    talk.send(aim, post().on(1), sized(&job, bytes, "x"), 1);
                    talk.canary();
                    talk.look();
                }
                Ok(())
            },
        ),
        check(
            "process/sigterm",
            "SIGTERM ends the adapter within 2 s, and no process or file of it is left.",
            &["QUE-HTTP-32", "QUE-HTTP-39"],
            |talk| {
                talk.step(Act::Signal("TERM".to_owned()));
                talk.look();
                Ok(())
            },
        ),
        check(
            "process/reached-from-everywhere",
            "With a host that is not loopback, and without a token, the adapter ends.",
            &["QUE-HTTP-34"],
            |talk| {
                ends(talk, ANYWHERE, FREE_PORT);
                Ok(())
            },
        ),
        check(
            "process/reached-over-ipv6",
            "With all IPv6 addresses as host, and without a token, the adapter ends.",
            &["QUE-HTTP-34"],
            |talk| {
                if std::net::TcpListener::bind((std::net::Ipv6Addr::LOCALHOST, 0)).is_err() {
                    return Err(Untestable::new(Untestable::MACHINE, "this machine has no IPv6"));
                }
                ends(talk, ANYWHERE_IPV6, FREE_PORT);
                Ok(())
            },
        ),
        check(
            "process/port-in-use",
            "With a port that is in use, the adapter ends.",
            &["QUE-HTTP-35"],
            |talk| {
                talk.plan.fixtures.push(Fixture::Listener {
                    name: "holder".to_owned(),
                    status: 200,
                    location: None,
                    body: Payload::default(),
                    manner: ListenerSettings::default(),
                });
                ends(talk, LOOPBACK, "{{holder.port}}");
                Ok(())
            },
        ),
    ]
}

/// A start that must fail.
fn ends(talk: &mut Talk<'_>, host: &str, port: &str) {
    let mut start = beside(host, port);
    // This process has a queue of its own.
    let folders = FOLDERS.map(str::to_owned).to_vec();
    let name = format!("other-{}", talk.plan.sessions.len());
    start.placeholders.insert(QUEUE.to_owned(), format!("{{{{{name}.path}}}}"));
    talk.plan.fixtures.push(Fixture::Folder { name, folders, watched: false });
    talk.open(start);
    let session = talk.session;
    talk.plan.steps.push(Step { session, allow_ms: START_MS, ..Step::new(Act::Finish) });
    talk.session = 0;
    talk.canary();
    talk.look();
}
