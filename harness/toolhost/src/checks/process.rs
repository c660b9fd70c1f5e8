//! End of input, signals, leftovers, and the flow of bytes under load.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking};

use super::super::expect::{Allowed, Expect, Outcome};
use super::super::talk::{Request, Talk};

pub(super) fn checks() -> Vec<Check> {
    vec![
        eof_behind_pipelined_requests(),
        eof_behind_large_replies(),
        eof_behind_slow_tool(),
        eof_at_once(),
        idle_with_open_input(),
        run_waits_for_the_end_of_input(),
        run_waits_inside_the_object(),
        term_while_idle(),
        term_in_the_middle_of_a_line(),
        term_during_a_tool(),
        term_in_run_mode(),
        term_during_a_run(),
        many_pipelined_requests(),
        large_replies_pipelined(),
        large_replies_in_flight(),
        stderr_flood("serve"),
        stderr_flood("run"),
        nothing_left_after_large_input(),
    ]
}

/// Size above the capacity of a pipe: once it is written, the peer has started to read.
const BEYOND_PIPE_BYTES: u64 = 300_000;

/// Good requests, one per line, with their expected answers.
fn good_lines(talk: &mut Talk<'_>, clause: &str, count: u32, pad: u64) -> (Payload, Vec<Expect>) {
    let mut lines = String::new();
    let mut expects = Vec::new();
    for _ in 0..count {
        let (request, expect) = talk.good(clause);
        let line = request.payload("pad", Payload::text(format!("\"{}\"", "p".repeat(pad as usize)))).line();
        for segment in line.0 {
            if let peerproof_engine::data::payload::Segment::Text(text) = segment {
                lines.push_str(&text);
            }
        }
        expects.push(expect);
    }
    (Payload::text(lines), expects)
}

fn eof_behind_pipelined_requests() -> Check {
    Check::new(
        "toolhost/serve/eof/behind-pipelined-requests",
        "Input ends directly after 200 requests in one write: all are answered, then the process exits \
         with 0.",
        ["TH-PROC-01", "TH-PROC-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-PROC-01");
            let (lines, expects) = good_lines(&mut talk, "TH-PROC-01", 200, 0);
            Ok(talk.queue_all(lines, Chunking::Whole, expects).finish().plan())
        },
    )
    .roles(&["any"])
}

/// Creates a check with replies larger than a pipe, which are written after the end of input.
fn eof_behind_large_replies() -> Check {
    Check::new(
        "toolhost/serve/eof/behind-large-replies",
        "Input ends directly after 40 requests with replies of 25,000 bytes: all replies are complete \
         before the exit.",
        ["TH-PROC-01", "TH-PROC-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-PROC-01");
            let (lines, expects) = blob_lines(&mut talk, "TH-PROC-01", 40, 25_000);
            Ok(talk.queue_all(lines, Chunking::Whole, expects).finish().plan())
        },
    )
    .roles(&["any", "blob"])
}

fn blob_lines(talk: &mut Talk<'_>, clause: &str, count: u64, bytes: u64) -> (Payload, Vec<Expect>) {
    let mut lines = Payload::default();
    let mut expects = Vec::new();
    for n in 0..count {
        let bytes = bytes + n;
        lines = lines.then(talk.ask("blob", &format!("{{\"bytes\":{bytes}}}")).line());
        let data = Payload::text("{\"data\":\"").repeat("x", bytes).then(Payload::text("\"}"));
        // The content of the results is not checked here.
        expects.push(Expect::new(clause, Allowed::large_output(data)).or(Allowed::of(Outcome::ToolError)));
    }
    (lines, expects)
}

fn eof_behind_slow_tool() -> Check {
    Check::new(
        "toolhost/serve/eof/behind-slow-tool",
        "Input ends while a tool takes 300 ms and another request waits: both are answered.",
        ["TH-PROC-01", "TH-PROC-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-PROC-01");
            let slow = talk.ask("sleep", "{\"ms\":300}").line();
            let (next, next_expect) = talk.good("TH-PROC-01");
            let expects = vec![Expect::holding("TH-PROC-01", "{\"slept_ms\":300}"), next_expect];
            talk.queue_all(slow.then(next.line()), Chunking::Whole, expects);
            Ok(talk.finish().allow_ms(300).plan())
        },
    )
    .roles(&["any", "sleep"])
}

fn eof_at_once() -> Check {
    Check::new(
        "toolhost/serve/eof/no-request",
        "Input ends before any request: the process writes nothing and exits with 0.",
        ["TH-PROC-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            // Start-up time does not count as time to exit.
            talk.finish().allow_ms(4_000);
            talk.add_session("serve", &[], &[]);
            Ok(talk.canary_for("TH-PROC-02").finish().plan())
        },
    )
    .roles(&["any"])
}

fn idle_with_open_input() -> Check {
    Check::new(
        "toolhost/serve/eof/idle-is-not-eof",
        "A process still answers after its input was open and silent for 2 s, before the first request and \
         between two requests.",
        ["TH-FRAME-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.act(Act::Wait { ms: 2_000 });
            talk.canary_for("TH-FRAME-01");
            talk.act(Act::Wait { ms: 2_000 });
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
    .waits()
}

/// Creates a check that a run waits for the end of its input.
fn run_waits_inside_the_object() -> Check {
    Check::new(
        "toolhost/run/chunking/pause-inside-the-object",
        "A request whose second half comes 2 s after the first is one request.",
        ["TH-FRAME-04"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            talk.run_canary();
            let (aid, request, expect) = talk.good_run_request("TH-FRAME-04");
            talk.add_session("run", &[("aid", &aid)], &[]);
            talk.send_as(Payload::text("{\"paused\":[true,"), Chunking::Whole, 0, expect);
            talk.act(Act::Wait { ms: 2_000 });
            let payload = Payload::text("false],").then(request.tail());
            talk.act(Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 });
            Ok(talk.act(Act::Finish).plan())
        },
    )
    .roles(&["any"])
    .waits()
}

/// Creates a check that text after a complete object still makes the request malformed.
fn run_waits_for_the_end_of_input() -> Check {
    Check::new(
        "toolhost/run/eof/object-complete-before-eof",
        "A complete object is not the end of input: garbage that follows later is still refused.",
        ["TH-RUN-01"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (aid, request, _) = talk.good_run_request("TH-RUN-01");
            talk.add_session("run", &[("aid", &aid)], &[]);
            let refusal = Expect::refused("TH-RUN-01").reason("ran_before_end_of_input");
            talk.send_as(request.line(), Chunking::Whole, 0, refusal);
            talk.act(Act::Wait { ms: 200 });
            let payload = Payload::text("garbage\n");
            talk.act(Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 });
            talk.act(Act::Finish);
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any"])
}

fn term() -> Act {
    Act::Signal("TERM".to_owned())
}

/// Allowed outcomes of a request that is running when SIGTERM comes.
fn cut_short() -> Expect {
    Expect::new("TH-PROC-04", Allowed::of(Outcome::Any))
        .or(Allowed::of(Outcome::Silence))
        .or(Allowed::of(Outcome::Dies))
}

fn term_while_idle() -> Check {
    Check::new(
        "toolhost/serve/sigterm/idle",
        "SIGTERM ends an idle process within 2 s, and no process of it is left.",
        ["TH-PROC-04", "TH-PROC-05", "TH-PROC-06"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            Ok(talk.canary_for("TH-PROC-04").act(term()).plan())
        },
    )
    .roles(&["any"])
    .on_process()
}

fn term_in_the_middle_of_a_line() -> Check {
    Check::new(
        "toolhost/serve/sigterm/in-the-middle-of-a-line",
        "SIGTERM ends a process that waits for the rest of a line within 2 s, and no process of it is left.",
        ["TH-PROC-04", "TH-PROC-05", "TH-PROC-06"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-PROC-04");
            let part = Payload::text("{\"pad\":\"").repeat("x", BEYOND_PIPE_BYTES);
            talk.send_as(part, Chunking::Whole, 0, cut_short());
            talk.act(Act::Flush);
            Ok(talk.act(term()).plan())
        },
    )
    .roles(&["any"])
    .on_process()
}

fn term_during_a_tool() -> Check {
    Check::new(
        "toolhost/serve/sigterm/during-a-tool",
        "SIGTERM ends a process whose tool runs for 20 s within 2 s, and no process of it is left.",
        ["TH-PROC-04", "TH-PROC-05", "TH-PROC-06"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-PROC-04");
            // The answer to the first request shows that the second is next.
            let (first, first_expect) = talk.good("TH-PROC-04");
            let slow = talk.ask("sleep", "{\"ms\":20000}").line();
            let both = first.line().then(slow);
            talk.send_all(both, Chunking::Whole, vec![first_expect, cut_short()]);
            Ok(talk.act(term()).plan())
        },
    )
    .roles(&["any", "sleep"])
    .on_process()
}

fn term_in_run_mode() -> Check {
    Check::new(
        "toolhost/run/sigterm/in-the-middle-of-input",
        "SIGTERM ends a run that waits for the rest of its input within 2 s, and no process of it is left.",
        ["TH-PROC-04", "TH-PROC-05", "TH-PROC-06"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (aid, ..) = talk.good_run_request("TH-PROC-04");
            talk.add_session("run", &[("aid", &aid)], &[]);
            let part = Payload::text("{\"pad\":\"").repeat("x", BEYOND_PIPE_BYTES);
            talk.send_as(part, Chunking::Whole, 0, cut_short());
            talk.act(Act::Flush).act(term());
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any"])
    .on_process()
}

/// Creates a check of SIGTERM during a tool. A run's output does not show that its tool runs. So its input is larger
/// than a pipe and has been read, and the pause is as long as another run took. A slower run must exit too.
fn term_during_a_run() -> Check {
    Check::new(
        "toolhost/run/sigterm/during-a-tool",
        "SIGTERM ends a run whose tool takes 20 s within 2 s.",
        ["TH-PROC-04"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            talk.run_canary();
            let aid = talk.role("sleep").aid;
            talk.add_session("run", &[("aid", &aid)], &[]);
            let request = Request::empty().input("{\"ms\":20000}").padded_to(BEYOND_PIPE_BYTES as usize);
            talk.send_as(request, Chunking::Whole, 0, cut_short());
            talk.act(Act::Flush).act(Act::CloseStdin).act(Act::AwaitStart).act(term());
            Ok(talk.plan())
        },
    )
    .roles(&["any", "sleep"])
}

fn many_pipelined_requests() -> Check {
    Check::new(
        "toolhost/serve/load/pipelined-requests",
        "1,500 requests in one write are answered one by one, in order, and none is lost.",
        ["TH-FRAME-01", "TH-FRAME-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            let (lines, expects) = good_lines(&mut talk, "TH-FRAME-02", 1_500, 200);
            talk.send_all(lines, Chunking::Whole, expects).allow_ms(10_000);
            Ok(talk.canary_for("TH-FRAME-01").finish().plan())
        },
    )
    .roles(&["any"])
}

/// Creates a check in which requests come faster than replies are read. The peer may stop reading, but must lose
/// nothing.
fn large_replies_pipelined() -> Check {
    Check::new(
        "toolhost/serve/load/large-replies-pipelined",
        "50 requests in one write, with replies of 25,000 bytes, are all answered completely and in order.",
        ["TH-FRAME-01", "TH-FRAME-02"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            // With double escaping it is 45 MB, below the limit on a peer's output in one conversation.
            let (lines, expects) = blob_lines(&mut talk, "TH-FRAME-02", 50, 25_000);
            talk.send_all(lines, Chunking::Whole, expects).allow_ms(10_000);
            Ok(talk.canary_for("TH-FRAME-01").finish().plan())
        },
    )
    .roles(&["any", "blob"])
}

/// Creates a check with replies larger than a pipe and the reader's buffer.
fn large_replies_in_flight() -> Check {
    Check::new(
        "toolhost/serve/load/400000-byte-replies-in-flight",
        "6 requests in one write with replies of 400,000 bytes are answered one after the other, none inside another.",
        ["TH-FRAME-02", "TH-REPLY-01"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-FRAME-02");
            let (lines, expects) = blob_lines(&mut talk, "TH-FRAME-02", 6, 400_000);
            talk.send_all(lines, Chunking::Whole, expects).allow_ms(10_000);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "blob"])
}

fn stderr_flood(command: &'static str) -> Check {
    Check::new(
        format!("toolhost/{command}/load/stderr-of-1-mb"),
        "A tool that writes 1 MB to standard error is answered as usual, and none of its text is on \
         standard output.",
        ["TH-TOOL-03"],
        command,
        move |facts, _| {
            let input = Payload::text("\"{\\\"stdout\\\":\\\"\\\",\\\"stderr\\\":\\\"")
                .repeat("e", 1 << 20)
                .then(Payload::text("\\\"}\""));
            let expect = Expect::ok("TH-TOOL-03").stray("TH-TOOL-03");
            if command == "run" {
                let mut talk = Talk::runs(facts);
                let aid = talk.role("noise").aid;
                talk.run(&aid, Request::empty().payload("input_json", input).body(), &[], expect);
                return Ok(talk.run_canary().plan());
            }
            let mut talk = Talk::serve(facts);
            let request = Request::aid(&talk.role("noise").aid).payload("input_json", input);
            talk.send(request.line(), expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any", "noise"])
    .on_process()
}

/// Creates a check that a file for large input is removed in time.
fn nothing_left_after_large_input() -> Check {
    Check::new(
        "toolhost/serve/leftovers/after-large-input",
        "After a large request and a normal end no process and no file is left.",
        ["TH-PROC-05", "TH-PROC-06"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            // Other checks cover the acceptance of this request.
            let (request, _) = talk.good("TH-PROC-06");
            let expect = Expect::new("TH-PROC-06", Allowed::of(Outcome::Any));
            talk.send(request.padded_to(5_000_000).then(Payload::text("\n")), expect);
            Ok(talk.canary().finish().plan())
        },
    )
    .roles(&["any"])
    .on_process()
}
