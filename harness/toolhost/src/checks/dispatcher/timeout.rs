//! Toolhosts that take too long, and their remaining processes.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

use super::super::super::dispatcher::call::{Call, LATER, Reply};
use super::super::super::dispatcher::expect::{Allowed, CallExpect, Expect};
use super::check;

const TIMEOUT: &str = "TH-DISP-12";
const DEFAULT: &str = "TH-DISP-13";
const GROUP_GONE: &str = "TH-DISP-14";
const FAMILY_GONE: &str = "TH-DISP-15";
const FRACTION: &str = "TH-DISP-16";

/// Sleep beyond every time limit here. An actor never lives longer.
const FOR_EVER: ActorStep = ActorStep::Sleep { ms: 60_000 };

/// Time after a timeout until which the processes must be gone (readings §1), in ms.
const GONE_AFTER_MS: u64 = 1_000;

pub(super) fn checks() -> Vec<Check> {
    vec![
        hangs("silent", "A toolhost that reads its request and writes nothing", || {
            vec![ActorStep::ReadRequest, FOR_EVER]
        }),
        amid_its_reply(),
        hangs("trickling", "A toolhost that trickles white space and never begins its reply", || {
            let mut script = vec![ActorStep::ReadRequest];
            for _ in 0..150 {
                script.push(ActorStep::Stdout(Payload::text(" ")));
                script.push(ActorStep::Sleep { ms: 100 });
            }
            script
        }),
        hangs("ignoring-sigterm", "A toolhost that ignores SIGTERM and writes nothing", || {
            vec![ActorStep::IgnoreTerm, ActorStep::ReadRequest, FOR_EVER]
        }),
        hangs("busy-on-stderr", "A toolhost that writes to stderr all the time and never answers", || {
            let mut script = vec![ActorStep::ReadRequest];
            for _ in 0..150 {
                script.push(ActorStep::Stderr(Payload::text("working\n")));
                script.push(ActorStep::Sleep { ms: 100 });
            }
            script
        }),
        unread_request(),
        closed_stdout(),
        lives_on_after_its_reply(),
        late(),
        in_time(),
        with_child(),
        with_runaway(),
        fraction(),
        default_long_enough(),
        default_short_enough(),
    ]
}

/// Creates a check with a toolhost that never answers: the result is a timeout, and the group is gone.
fn hangs(name: &str, what: &str, script: fn() -> Vec<ActorStep>) -> Check {
    let title = format!("{what} leads to type timeout, and is gone 1 s later.");
    check(&format!("timeout/{name}"), &title, &[TIMEOUT, GROUP_GONE], move |talk, _| {
        let path = talk.toolhost(script());
        let expect =
            CallExpect::from(Expect::error(TIMEOUT, &["timeout"])).gone(GROUP_GONE, LATER, &["self"]);
        let call = Call::plain().timeout_s(1);
        let session = talk.begin(&call, &path, expect);
        talk.result(session, &call).linger(session, GONE_AFTER_MS);
    })
    .waits()
}

fn amid_its_reply() -> Check {
    check(
        "timeout/amid-its-reply",
        "A toolhost that stops in the middle of its reply gives timeout (or parse_error), and is gone.",
        &[TIMEOUT, GROUP_GONE],
        |talk, _| {
            let text = Reply::ok("{}").text();
            let half = Payload::text(&text[..text.len() / 2]);
            let path = talk.toolhost(vec![ActorStep::ReadRequest, ActorStep::Stdout(half), FOR_EVER]);
            let call = Call::plain().timeout_s(1);
            // Truncated output is not JSON either. If several types apply, each is correct.
            let expect = CallExpect::from(Expect::error(TIMEOUT, &["timeout", "parse_error"])).gone(
                GROUP_GONE,
                LATER,
                &["self"],
            );
            let session = talk.begin(&call, &path, expect);
            talk.result(session, &call).linger(session, GONE_AFTER_MS);
        },
    )
    .waits()
}

fn unread_request() -> Check {
    check(
        "timeout/never-reading-its-request",
        "A toolhost that never reads its request of 1,000,000 bytes leads to type timeout.",
        &[TIMEOUT, GROUP_GONE],
        |talk, _| {
            let path = talk.toolhost(vec![FOR_EVER]);
            let head = "{\"aid\":\"AID.PEERPROOF.CALL.v1\",\"inputs\":{\"text\":\"";
            let body = Payload::text(head).repeat("x", 1_000_000).then(Payload::text("\"}}"));
            let call = Call::written(body).timeout_s(1);
            let expect =
                CallExpect::from(Expect::error(TIMEOUT, &["timeout"])).gone(GROUP_GONE, LATER, &["self"]);
            let session = talk.begin(&call, &path, expect);
            talk.result(session, &call).linger(session, GONE_AFTER_MS);
        },
    )
    .waits()
}

fn closed_stdout() -> Check {
    check(
        "timeout/closed-stdout",
        "A toolhost that closes its stdout without a reply and keeps running gives timeout (or \
         parse_error), and is gone.",
        &[TIMEOUT, GROUP_GONE],
        |talk, _| {
            let path = talk.toolhost(vec![ActorStep::ReadRequest, ActorStep::CloseStdout, FOR_EVER]);
            let call = Call::plain().timeout_s(1);
            let expect = CallExpect::from(Expect::error(TIMEOUT, &["timeout", "parse_error"])).gone(
                GROUP_GONE,
                LATER,
                &["self"],
            );
            let session = talk.begin(&call, &path, expect);
            talk.result(session, &call).linger(session, GONE_AFTER_MS);
        },
    )
    .waits()
}

fn lives_on_after_its_reply() -> Check {
    check(
        "timeout/living-on-after-its-reply",
        "A toolhost that answers and does not end gives its output or timeout, and is gone.",
        &[TIMEOUT, GROUP_GONE],
        |talk, _| {
            let output = talk.output();
            let reply = Payload::text(Reply::ok(&output).text() + "\n");
            let path = talk.toolhost(vec![ActorStep::ReadRequest, ActorStep::Stdout(reply), FOR_EVER]);
            let call = Call::plain().timeout_s(1);
            let expect = Expect::error(TIMEOUT, &["timeout"])
                .or(Allowed::output(output))
                .choice("lives_on_after_reply", &["timeout", "result"]);
            let expect = CallExpect::from(expect).gone(GROUP_GONE, LATER, &["self"]);
            let session = talk.begin(&call, &path, expect);
            talk.result(session, &call).linger(session, GONE_AFTER_MS);
        },
    )
    .waits()
}

/// Steps that read the request, wait, answer and exit.
fn answering_after(ms: u64, output: &str) -> Vec<ActorStep> {
    vec![
        ActorStep::ReadRequest,
        ActorStep::Sleep { ms },
        ActorStep::Stdout(Reply::ok(output).payload()),
        ActorStep::Exit(0),
    ]
}

fn late() -> Check {
    check(
        "timeout/answering-too-late",
        "A good reply 1.3 s after the timeout of 2 s is too late: timeout.",
        &[TIMEOUT],
        |talk, _| {
            let output = talk.output();
            let call = Call::plain().timeout_s(2);
            talk.call(&call, answering_after(3_300, &output), Expect::error(TIMEOUT, &["timeout"]));
        },
    )
    .waits()
}

fn in_time() -> Check {
    check(
        "timeout/answering-in-time",
        "A good reply after 1.2 s, with a timeout of 4 s, is a success.",
        &[TIMEOUT],
        |talk, _| {
            let output = talk.output();
            let call = Call::plain().timeout_s(4);
            talk.call(&call, answering_after(1_200, &output), Expect::output(TIMEOUT, output))
                .counts_as_canary();
        },
    )
    .waits()
}

fn with_child() -> Check {
    check(
        "timeout/with-a-child",
        "After a timeout a child of the toolhost in its process group is gone as well.",
        &[GROUP_GONE],
        |talk, _| {
            let path = talk.toolhost(vec![
                ActorStep::ForkHolder { ms: 60_000, leave_group: false },
                ActorStep::ReadRequest,
                FOR_EVER,
            ]);
            let call = Call::plain().timeout_s(1);
            let expect = CallExpect::from(Expect::error(GROUP_GONE, &["timeout"])).gone(
                GROUP_GONE,
                LATER,
                &["self", "child"],
            );
            let session = talk.begin(&call, &path, expect);
            talk.result(session, &call).linger(session, GONE_AFTER_MS);
        },
    )
    .waits()
}

fn with_runaway() -> Check {
    check(
        "timeout/with-a-child-outside-the-group",
        "After a timeout a child of the toolhost that left its process group is gone as well.",
        &[FAMILY_GONE],
        |talk, _| {
            let path = talk.toolhost(vec![
                ActorStep::ForkHolder { ms: 60_000, leave_group: true },
                ActorStep::ReadRequest,
                FOR_EVER,
            ]);
            let call = Call::plain().timeout_s(1);
            let expect = CallExpect::from(Expect::error(FAMILY_GONE, &["timeout"])).gone(
                FAMILY_GONE,
                LATER,
                &["left_group"],
            );
            let session = talk.begin(&call, &path, expect);
            talk.result(session, &call).linger(session, GONE_AFTER_MS);
        },
    )
    .waits()
}

fn fraction() -> Check {
    check(
        "timeout/fraction-of-a-second",
        "A timeout of 1.5 s is honoured, rounded, replaced by the default, or refused as an exception.",
        &[FRACTION],
        |talk, _| {
            let output = talk.output();
            let call = Call::plain().timeout_text("1.5").allow_ms(4_000);
            let expect = Expect::error(FRACTION, &["timeout"])
                .or(Allowed::output(&output))
                .or(Allowed::error(&["exception"]))
                .choice("fractional_timeout", &["number", "default", "refuse"]);
            talk.call(&call, answering_after(3_200, &output), expect);
        },
    )
    .waits()
}

fn default_long_enough() -> Check {
    check(
        "timeout/default-answering-after-28-s",
        "Without MACHINA_TOOLHOST_TIMEOUT a good reply after 28 s is a success.",
        &[DEFAULT],
        |talk, _| {
            let output = talk.output();
            let call = Call::plain().allow_ms(29_000);
            talk.call(&call, answering_after(28_000, &output), Expect::output(DEFAULT, output))
                .counts_as_canary();
        },
    )
    .slow()
}

fn default_short_enough() -> Check {
    check(
        "timeout/default-answering-after-32-s",
        "Without MACHINA_TOOLHOST_TIMEOUT a toolhost that is silent for 32 s leads to type timeout.",
        &[DEFAULT],
        |talk, _| {
            let output = talk.output();
            let call = Call::plain().allow_ms(32_000);
            talk.call(&call, answering_after(32_000, &output), Expect::error(DEFAULT, &["timeout"]));
        },
    )
    .slow()
}
