//! Checks about the framing of bodies.

use peerproof_engine::data::carriage::{BodyFraming, Carriage, Spelling};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;

use super::cases::{AFTERWARDS_MS, head, post};
use super::check;
use crate::inbox;

/// All checks about framing.
pub(super) fn checks() -> Vec<Check> {
    [cut(), lengths(), chunks()].concat()
}

fn cut() -> Vec<Check> {
    vec![
        check(
            "cut/length-too-long",
            "A body that is shorter than its length enqueues nothing, even if the received part is a job.",
            &["QUE-HTTP-13"],
            |talk| {
                for missing in [1, 2, 1_000] {
                    let job = talk.job();
                    talk.ask(
                        "QUE-HTTP-13",
                        post().framing(BodyFraming::Short(missing)).on(1),
                        Payload::text(job),
                    );
                }
                Ok(())
            },
        ),
        check(
            "cut/last-chunk-missing",
            "A body without its last chunk enqueues nothing, even if the received part is a job.",
            &["QUE-HTTP-13"],
            |talk| {
                for size in [1 << 20, 7] {
                    let job = talk.job();
                    talk.ask(
                        "QUE-HTTP-13",
                        post().framing(BodyFraming::OpenChunks(size)).on(1),
                        Payload::text(job),
                    );
                }
                Ok(())
            },
        ),
        check(
            "cut/closed",
            "A connection that is closed before its body is complete enqueues nothing.",
            &["QUE-HTTP-13", "QUE-HTTP-31"],
            |talk| {
                for rest in [0, 5] {
                    let job = talk.job();
                    let lines = format!("Content-Length: {}\r\n", job.len() + 9);
                    let text = head(&lines, &job[..job.len() - rest]);
                    talk.ask("QUE-HTTP-13", post().framing(BodyFraming::Cut).on(1), Payload::text(text));
                }
                Ok(())
            },
        ),
    ]
}

fn lengths() -> Vec<Check> {
    vec![
        check(
            "length/two-that-differ",
            "Two lengths that differ are refused, and enqueue nothing.",
            &["QUE-HTTP-14"],
            |talk| {
                for more in [1, 1_000] {
                    let job = talk.job();
                    let lines =
                        format!("Content-Length: {}\r\nContent-Length: {}\r\n", job.len(), job.len() + more);
                    talk.say("QUE-HTTP-14", &head(&lines, &job));
                }
                Ok(())
            },
        ),
        check(
            "length/no-number",
            "A length that is negative or not decimal is refused, and enqueues nothing.",
            &["QUE-HTTP-14"],
            |talk| {
                let ways: [fn(usize) -> String; 7] = [
                    |length| format!("-{length}"),
                    |_| "-1".to_owned(),
                    |length| format!("+{length}"),
                    |length| format!("{}_{:02}", length / 100, length % 100),
                    |length| format!("0x{length:x}"),
                    |length| format!("{length}.0"),
                    |_| String::new(),
                ];
                for way in ways {
                    let job = talk.job();
                    let lines = format!("Content-Length: {}\r\n", way(job.len()));
                    talk.say("QUE-HTTP-14", &head(&lines, &job));
                }
                Ok(())
            },
        ),
        check(
            "length/none",
            "A body without a length is refused, and enqueues nothing.",
            &["QUE-HTTP-14"],
            |talk| {
                let job = talk.job();
                talk.say("QUE-HTTP-14", &head("", &job));
                Ok(())
            },
        ),
        check(
            "length/beside-chunks",
            "For a request with both a length and chunks, the chunks are used, or the request is refused.",
            &["QUE-HTTP-15"],
            |talk| {
                let (job, shorter) = (talk.job(), format!("{{\"goal_id\":\"{}\"}}", talk.word));
                for (body, length) in [(job, 5), (shorter, 100)] {
                    let chunk = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
                    let lines = format!("Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n");
                    talk.say("QUE-HTTP-15", &head(&lines, &chunk));
                }
                Ok(())
            },
        ),
        check(
            "length/inside-chunks",
            "For a request with both a length and chunks, the length never determines the end of the body: \
             no part of the chunks becomes a request.",
            &["QUE-HTTP-40"],
            |talk| {
                let job = talk.job();
                let within = head(&format!("Content-Length: {}\r\n", job.len()), &job);
                let size = format!("{:x}\r\n", within.len());
                let lines = format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", size.len());
                talk.say("QUE-HTTP-40", &head(&lines, &format!("{size}{within}\r\n0\r\n\r\n")));
                talk.step(inbox::look_after(AFTERWARDS_MS));
                Ok(())
            },
        ),
        check(
            "put/spellings-of-headers",
            "A job is enqueued whatever the case of header names, and without white space after their colons.",
            &["QUE-HTTP-12"],
            |talk| {
                for spelling in [Spelling::LowerCase, Spelling::Tight] {
                    let job = talk.job();
                    talk.put("QUE-HTTP-12", Carriage { spelling, ..post() }, &job);
                }
                talk.look();
                Ok(())
            },
        ),
    ]
}

fn chunks() -> Vec<Check> {
    vec![
        check("chunks/of-any-size", "A body in chunks is accepted, or refused.", &["QUE-HTTP-16"], |talk| {
            for size in [1 << 20, 1, 17] {
                let job = talk.job();
                talk.ask("QUE-HTTP-16", post().framing(BodyFraming::Chunked(size)), Payload::text(job));
            }
            Ok(())
        }),
        check(
            "expect/100-continue",
            "A client that waits for 100 before its body is served.",
            &["QUE-HTTP-17"],
            |talk| {
                let headers = vec!["Expect: 100-continue".to_owned()];
                let how = Carriage { headers, held_back: true, ..post() };
                let job = talk.job();
                talk.put("QUE-HTTP-17", how.on(1), &job).allow_ms = 1_000;
                talk.canary();
                talk.look();
                Ok(())
            },
        ),
    ]
}
