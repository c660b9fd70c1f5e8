//! End of input, signals, and what is left behind.

use super::super::talk::{Talk, good, quoted};
use peerproof_engine::check::Check;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Act;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let behind = Check::new(
        "json_rpc/stdio/eof/behind-pipelined-requests",
        "Input ends right behind 200 requests in one write: all are answered, then the process exits with 0.",
        ["RPC-PROC-01", "RPC-PROC-02"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-PROC-01");
            talk.canary();
            let text: String = (0..200).map(|n| good(facts, n, &quoted(&format!("e{n}"))) + "\n").collect();
            Ok(talk.queue(Payload::text(text)).finish())
        },
    );
    let at_once = Check::new(
        "json_rpc/stdio/eof/at-once",
        "Input that ends without a message ends the process with status 0.",
        ["RPC-PROC-02"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-PROC-02");
            talk.canary();
            let mut plan = talk.finish();
            plan.sessions.push(plan.sessions[0].clone());
            plan.steps.push(peerproof_engine::plan::Step {
                session: 1,
                ..peerproof_engine::plan::Step::new(Act::Finish)
            });
            Ok(plan)
        },
    );
    let term = Check::new(
        "json_rpc/stdio/sigterm/while-idle",
        "SIGTERM ends an idle server within 2 s.",
        ["RPC-PROC-03"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-PROC-03");
            Ok(talk.canary().act(Act::Signal("TERM".to_owned())).plan())
        },
    )
    .on_process();
    vec![behind, at_once, term]
}
