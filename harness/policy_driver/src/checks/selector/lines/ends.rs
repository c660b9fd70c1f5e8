//! Checks of the end of input, and of SIGTERM.

use super::super::super::super::request::Request;
use super::super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::super::selector::talk::says;
use super::{BLOCK, check};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, ActorStep, Chunking};

const CUT: &str = "PD-SEL-19";

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![eof_amid_a_step(), eof_behind_lines(), last_line(), last_line_cut(), term_idle(), term_amid_a_step()]
}

fn eof_amid_a_step() -> Check {
    check(
        "ends/eof-amid-a-step",
        "Input ends while a driver runs: its pick is accepted, then the selector exits with 0.",
        &["PD-SEL-09"],
        |talk, _| {
            talk.canary("PD-SEL-09");
            let turn = [vec![ActorStep::Sleep { ms: 300 }], says(BLOCK)].concat();
            talk.driver(turn);
            talk.send(Request::plain().line(), Chunking::Whole, 0, Expect::taken("PD-SEL-09", BLOCK));
            talk.finish().allow_ms(2_000);
        },
    )
}

fn eof_behind_lines() -> Check {
    check(
        "ends/eof-behind-lines",
        "Input ends directly after five requests in one write: all are answered, then the selector exits \
         with 0.",
        &["PD-SEL-09"],
        |talk, _| {
            talk.canary("PD-SEL-09");
            let mut expects = Vec::new();
            for block in ["<NOOP><END>", BLOCK, "<ASK_SUP><END>", "<PICK><SID0007><END>", BLOCK] {
                talk.driver(says(block));
                expects.push(Expect::taken("PD-SEL-09", block));
            }
            let lines = (Request::plain().text() + "\n").repeat(expects.len());
            talk.send_lines(Payload::text(lines), Chunking::Whole, 0, &expects);
            talk.finish().allow_ms(5_000);
        },
    )
}

fn last_line() -> Check {
    check(
        "ends/last-line-without-lf",
        "A complete last line without LF is served or refused, with one Selection.",
        &["PD-SEL-10"],
        |talk, _| {
            talk.canary("PD-SEL-10");
            talk.driver(says(BLOCK));
            // The value `silent` is about incomplete lines only.
            let expect = Expect::new("PD-SEL-10", Allowed::Invalid)
                .or(Allowed::taken(BLOCK))
                .choice("last_line_without_lf", &["refuse|silent", "process|silent"]);
            talk.send(Payload::text(Request::plain().text()), Chunking::Whole, 0, expect);
            talk.finish().allow_ms(2_000);
        },
    )
}

fn last_line_cut() -> Check {
    check(
        "ends/last-line-cut",
        "A last line that is cut inside its object is never served: nothing starts, and no Selection \
         except INVALID is printed.",
        &[CUT],
        |talk, _| {
            talk.canary(CUT);
            let text = Request::plain().text();
            let expect = Expect::new(CUT, Allowed::Nothing).or(Allowed::Invalid).starts(CUT, 0);
            talk.send(Payload::text(&text[..text.len() - 1]), Chunking::Whole, 0, expect);
            talk.finish().allow_ms(2_000);
        },
    )
}

fn term() -> Act {
    Act::Signal("TERM".to_owned())
}

fn term_idle() -> Check {
    check("ends/term-idle", "SIGTERM ends an idle selector within 2 s.", &["PD-SEL-11"], |talk, _| {
        talk.canary("PD-SEL-11");
        talk.act(term());
    })
}

fn term_amid_a_step() -> Check {
    check(
        "ends/term-amid-a-step",
        "SIGTERM ends a selector whose driver runs within 2 s, and the driver, its child and its payload are gone.",
        &["PD-SEL-11"],
        |talk, _| {
            talk.canary("PD-SEL-11");
            talk.driver(vec![
                ActorStep::ForkHolder { ms: 30_000, leave_group: true },
                ActorStep::Sleep { ms: 30_000 },
            ]);
            let expect = Expect::new("PD-SEL-11", Allowed::Nothing).or(Allowed::Anything).gone("PD-SEL-11");
            talk.send(Request::plain().line(), Chunking::Whole, 0, expect);
            // Long enough for a driver to start. If none has started, none can be left.
            talk.act(Act::Wait { ms: 700 });
            talk.act(term());
            talk.probe_after(0);
        },
    )
    .waits()
}
