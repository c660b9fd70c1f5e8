//! Standard error of the toolhost, which must be drained and never parsed, and descendants that hold the pipes.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::ActorStep;

use super::super::super::dispatcher::call::{Call, LATER, Reply, answering};
use super::super::super::dispatcher::expect::{CallExpect, Expect};
use super::{check, succeeds};

const NOT_PARSED: &str = "TH-DISP-28";
const NEVER_BLOCKS: &str = "TH-DISP-29";
const HELD_PIPES: &str = "TH-DISP-30";

pub(super) fn checks() -> Vec<Check> {
    vec![
        error_text(),
        reply_on_stderr(),
        failure_with_success_on_stderr(),
        flood("four-mib-before-the-reply", "before", true),
        flood("four-mib-after-the-reply", "after", false),
        binary(),
        holder("child-in-the-group", false),
        holder("child-outside-the-group", true),
    ]
}

fn error_text() -> Check {
    check(
        "stderr/error-reply-on-it",
        "A success is still a success with errors, or a failed reply, on stderr.",
        &[NOT_PARSED],
        |talk, _| {
            succeeds(talk, &Call::plain(), NOT_PARSED, |reply| {
                let noise =
                    "{\"ok\":false,\"error\":\"lost\"}\nTraceback (most recent call last):\nfatal: error\n";
                vec![
                    ActorStep::ReadRequest,
                    ActorStep::Stderr(Payload::text(noise)),
                    ActorStep::Stdout(reply.payload()),
                    ActorStep::Stderr(Payload::text("Segmentation fault\n")),
                ]
            });
        },
    )
}

fn reply_on_stderr() -> Check {
    check(
        "stderr/reply-on-it-alone",
        "A good reply on stderr, with empty stdout, does not count as a reply.",
        &[NOT_PARSED],
        |talk, _| {
            let reply = Reply::ok(&talk.output()).payload();
            let script = vec![ActorStep::ReadRequest, ActorStep::Stderr(reply)];
            let expect = Expect::error(NOT_PARSED, &["parse_error"]);
            talk.call(&Call::plain(), script, expect);
        },
    )
}

fn failure_with_success_on_stderr() -> Check {
    check(
        "stderr/success-on-it-beside-a-failure",
        "A failed reply is still a failure with a good reply on stderr.",
        &[NOT_PARSED],
        |talk, _| {
            let good = Reply::ok(&talk.output()).payload();
            let mut script = answering(Reply::failed("no such tool").payload());
            script.insert(1, ActorStep::Stderr(good));
            talk.call(&Call::plain(), script, Expect::error(NOT_PARSED, &[]));
        },
    )
}

fn flood(name: &str, when: &str, before: bool) -> Check {
    let title = format!("4 MiB on stderr {when} the reply do not block the call.");
    check(&format!("stderr/{name}"), &title, &[NEVER_BLOCKS], move |talk, _| {
        succeeds(talk, &Call::plain().allow_ms(1_000), NEVER_BLOCKS, |reply| {
            let noise = ActorStep::Stderr(Payload::default().repeat("0123456789abcde\n", 4 << 16));
            let reply = ActorStep::Stdout(reply.payload());
            if before {
                vec![ActorStep::ReadRequest, noise, reply]
            } else {
                vec![ActorStep::ReadRequest, reply, noise]
            }
        });
    })
}

fn binary() -> Check {
    check(
        "stderr/bytes-that-are-no-text",
        "Bytes on stderr that are not UTF-8 do not disturb the call.",
        &[NOT_PARSED],
        |talk, _| {
            succeeds(talk, &Call::plain(), NOT_PARSED, |reply| {
                let noise = Payload(vec![Segment::Hex("fffe00c3280aeda080".to_owned())]);
                vec![ActorStep::ReadRequest, ActorStep::Stderr(noise), ActorStep::Stdout(reply.payload())]
            });
        },
    )
}

fn holder(name: &str, leave_group: bool) -> Check {
    check(
        &format!("held-pipes/{name}"),
        "A child that keeps the pipes open after the toolhost answered and exited neither delays the call \
         nor survives it.",
        &[HELD_PIPES],
        move |talk, _| {
            let output = talk.output();
            let path = talk.toolhost(vec![
                ActorStep::ReadRequest,
                ActorStep::ForkHolder { ms: 60_000, leave_group },
                ActorStep::Stdout(Reply::ok(&output).payload()),
            ]);
            let role = if leave_group { "left_group" } else { "child" };
            let expect =
                CallExpect::from(Expect::output(HELD_PIPES, output)).gone(HELD_PIPES, LATER, &[role]);
            let call = Call::plain();
            let session = talk.begin(&call, &path, expect);
            talk.result(session, &call).linger(session, 300);
        },
    )
}
