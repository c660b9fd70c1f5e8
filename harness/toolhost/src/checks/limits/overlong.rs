//! Serve mode: lines over the limit, and the lines around them.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::Chunking;
use peerproof_engine::data::sizes::Fill;

use super::super::super::expect::Expect;
use super::super::super::talk::{Request, Talk};
use super::super::super::talk_state::Artifact;
use super::{INPUT_BYTES_MAX, OVERLONG_LINE, line_refusal, padded};

pub(super) fn checks() -> Vec<Check> {
    vec![
        answered_while_idle(),
        nothing_runs("over-limit-whole-request", "a whole request behind 10 MB of padding", |request| {
            padded(request, INPUT_BYTES_MAX + 1, Fill::Ascii)
        }),
        nothing_runs(
            "over-limit-prefix-is-request",
            "a request followed by 10 MB of white space",
            |request| request.body().repeat(" ", INPUT_BYTES_MAX as u64),
        ),
        // At any position after the limit, a peer that starts again finds white space and then a request.
        nothing_runs("over-limit-tail-is-request", "10 MB of text, white space, a request", |request| {
            Payload::default().repeat("x", INPUT_BYTES_MAX as u64).repeat(" ", 300_000).then(request.body())
        }),
        nothing_runs(
            "over-limit-many-tails",
            "10 MB of text, then 20 MB that ends in a request",
            |request| {
                Payload::default()
                    .repeat("x", INPUT_BYTES_MAX as u64)
                    .repeat(" ", 2 * INPUT_BYTES_MAX as u64 + 7)
                    .then(request.body())
            },
        ),
        never_ends(),
        three_in_a_row(),
        next_line_in_the_same_write(),
        state_survives(),
    ]
}

/// Creates a check without further input: no later line triggers the answer.
fn answered_while_idle() -> Check {
    Check::new(
        "toolhost/serve/limits/over-limit-then-idle",
        "A line over the limit gets its reply before anything else is sent.",
        OVERLONG_LINE,
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (request, _) = talk.good("TH-LIMIT-05");
            let line = padded(&request, INPUT_BYTES_MAX + 1, Fill::Ascii).then(Payload::text("\n"));
            talk.send(line, line_refusal());
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

/// Creates a check of a line that raises the counter if any part of it runs.
fn nothing_runs(name: &str, what: &str, line: fn(&Request) -> Payload) -> Check {
    Check::new(
        format!("toolhost/serve/limits/{name}"),
        format!("A line over the limit, {what}, is refused and no part of it runs."),
        OVERLONG_LINE,
        "serve",
        move |facts, _| {
            let mut talk = Talk::serve(facts);
            count(&mut talk, 1);
            let overlong = line(&talk.ask("counter", "{}")).then(Payload::text("\n"));
            talk.send_as(overlong, Chunking::Whole, 0, line_refusal());
            count(&mut talk, 2);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "counter"])
}

fn count(talk: &mut Talk<'_>, n: u32) {
    let request = talk.ask("counter", "{}");
    let expect = Expect::count("TH-LIMIT-05", u64::from(n)).reason("counter_off").once("TH-LIMIT-05");
    talk.send(request.line(), expect);
}

fn never_ends() -> Check {
    Check::new(
        "toolhost/serve/limits/over-limit-without-lf",
        "If input ends inside a line over the limit, the line is refused, runs nothing, and the session \
         ends normally.",
        OVERLONG_LINE,
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-LIMIT-05");
            let (request, _) = talk.good("TH-LIMIT-05");
            let endless = request.body().repeat(" ", INPUT_BYTES_MAX as u64);
            talk.send_as(endless, Chunking::Whole, 0, line_refusal());
            Ok(talk.finish().plan())
        },
    )
    .roles(&["any"])
}

fn three_in_a_row() -> Check {
    Check::new(
        "toolhost/serve/limits/three-over-limit-in-a-row",
        "Three lines over the limit between good ones get one refusal each, and every good line its reply.",
        OVERLONG_LINE,
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            for (fill, _) in Fill::ALL {
                let (request, _) = talk.good("TH-LIMIT-05");
                let line = padded(&request, INPUT_BYTES_MAX + 1, fill).then(Payload::text("\n"));
                talk.send_as(line, Chunking::Whole, 0, line_refusal());
                talk.canary();
            }
            Ok(talk.finish().plan())
        },
    )
    .roles(&["any"])
}

fn next_line_in_the_same_write() -> Check {
    Check::new(
        "toolhost/serve/limits/over-limit-and-next-in-one-write",
        "Requests in the same write before and after a line over the limit are answered in order.",
        OVERLONG_LINE,
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (before, before_expect) = talk.good("TH-LIMIT-05");
            let (overlong, _) = talk.good("TH-LIMIT-05");
            let (after, after_expect) = talk.good("TH-LIMIT-05");
            let all = before
                .line()
                .then(padded(&overlong, INPUT_BYTES_MAX + 1, Fill::MultiByte))
                .then(Payload::text("\n"))
                .then(after.line());
            talk.queue_all(all, Chunking::Whole, vec![before_expect, line_refusal(), after_expect]);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
}

fn state_survives() -> Check {
    Check::new(
        "toolhost/serve/limits/over-limit-keeps-state",
        "A line over the limit that would replace the state leaves it unchanged.",
        OVERLONG_LINE,
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let artifact = Artifact::new("{}");
            talk.put("TH-LIMIT-05", 3, &artifact);
            let (request, _) = talk.good("TH-LIMIT-05");
            let emptying = request.state("{\"slots\":{}}").body();
            let line = emptying.repeat(" ", INPUT_BYTES_MAX as u64).then(Payload::text("\n"));
            talk.send_as(line, Chunking::Whole, 0, line_refusal());
            talk.get_is("TH-LIMIT-05", 3, Some(&artifact));
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "put", "get"])
    .feature("ds_state")
}
