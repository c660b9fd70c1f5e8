//! Toolhosts that exit with a status other than 0, or by a signal.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

use super::super::super::dispatcher::call::{Call, Reply};
use super::super::super::dispatcher::expect::Expect;
use super::check;

const CLAUSE: &str = "TH-DISP-17";

/// Output of the toolhost before its end.
#[derive(Clone, Copy)]
enum OutputBeforeEnd {
    /// A complete reply.
    Reply,
    /// Half a reply.
    Half,
    /// Nothing.
    Nothing,
}

/// Name, title, output, end.
const ENDS: &[(&str, &str, OutputBeforeEnd, ActorStep)] = &[
    (
        "exit-1-after-a-good-reply",
        "Exit status 1 after a good reply",
        OutputBeforeEnd::Reply,
        ActorStep::Exit(1),
    ),
    ("exit-1-with-nothing", "Exit status 1 without a reply", OutputBeforeEnd::Nothing, ActorStep::Exit(1)),
    (
        "exit-2-after-half-a-reply",
        "Exit status 2 after half a reply",
        OutputBeforeEnd::Half,
        ActorStep::Exit(2),
    ),
    (
        "exit-255-after-a-good-reply",
        "Exit status 255 after a good reply",
        OutputBeforeEnd::Reply,
        ActorStep::Exit(255),
    ),
    ("sigkill-after-a-good-reply", "SIGKILL after a good reply", OutputBeforeEnd::Reply, ActorStep::Die(9)),
    ("sigsegv-with-nothing", "SIGSEGV without a reply", OutputBeforeEnd::Nothing, ActorStep::Die(11)),
    ("sigterm-after-a-good-reply", "SIGTERM after a good reply", OutputBeforeEnd::Reply, ActorStep::Die(15)),
];

pub(super) fn checks() -> Vec<Check> {
    let mut checks: Vec<Check> = ENDS
        .iter()
        .map(|(name, what, before, end)| {
            // If the output is not a reply either, both types apply.
            let (types, also): (&[&str], _) = match before {
                OutputBeforeEnd::Reply => (&["crash"], ""),
                OutputBeforeEnd::Half | OutputBeforeEnd::Nothing => {
                    (&["crash", "parse_error"], " (or parse_error)")
                }
            };
            let title = format!("{what} of the toolhost gives crash{also}.");
            check(&format!("crash/{name}"), &title, &[CLAUSE], move |talk, _| {
                let text = Reply::ok(&talk.output()).text();
                let mut script = vec![ActorStep::ReadRequest];
                match before {
                    OutputBeforeEnd::Reply => script.push(ActorStep::Stdout(Payload::text(text + "\n"))),
                    OutputBeforeEnd::Half => {
                        script.push(ActorStep::Stdout(Payload::text(&text[..text.len() / 2])))
                    }
                    OutputBeforeEnd::Nothing => {}
                }
                script.push(end.clone());
                talk.call(&Call::plain(), script, Expect::error(CLAUSE, types));
            })
        })
        .collect();
    checks.push(check(
        "crash/exit-3-before-it-reads",
        "A toolhost that exits with status 3 before it reads its request of 1,000,000 bytes gives crash \
         (or parse_error).",
        &[CLAUSE],
        |talk, _| {
            let head = "{\"aid\":\"AID.PEERPROOF.CALL.v1\",\"inputs\":{\"text\":\"";
            let body = Payload::text(head).repeat("x", 1_000_000).then(Payload::text("\"}}"));
            let expect = Expect::error(CLAUSE, &["crash", "parse_error"]);
            talk.call(&Call::written(body), vec![ActorStep::Exit(3)], expect);
        },
    ));
    checks
}
