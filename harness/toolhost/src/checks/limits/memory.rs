//! The cost of a refusal: memory while 20 MB and 100 MB arrive.

use peerproof_engine::contract::memory::{IDLE, INPUTS, further, piece, sample};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking};

use super::super::super::expect::Expect;
use super::super::super::talk::Talk;
use super::{line_refusal, run_refusal};

pub(super) fn checks() -> Vec<Check> {
    vec![serve_memory(), run_memory()]
}

/// Sends the first piece with the expectation for the whole, then the other pieces.
fn send_pieces(talk: &mut Talk<'_>, first: Payload, pieces: u32, last: &str, expect: Expect) {
    talk.send_as(first.then(piece()), Chunking::Whole, 0, expect);
    for act in further(pieces, last) {
        talk.act(act);
    }
}

fn serve_memory() -> Check {
    Check::new(
        "toolhost/serve/limits/memory-while-refusing-100-mb",
        "Refusing lines of 20 MB and 100 MB takes at most 64 MiB of memory, and no more for the longer one.",
        ["TH-LIMIT-06", "TH-LIMIT-05", "TH-LIMIT-04"],
        "serve",
        |facts, _| {
            let mut talk = Talk::serve(facts);
            talk.canary_for("TH-LIMIT-05");
            talk.act(sample(IDLE));
            for (pieces, label) in INPUTS {
                send_pieces(&mut talk, Payload::text("{\"pad\":\""), pieces, "\"}\n", line_refusal());
                talk.canary_for("TH-LIMIT-05");
                talk.act(sample(label));
            }
            Ok(talk.finish().plan())
        },
    )
    .roles(&["any"])
    .exclusive()
}

/// Creates the check for run mode. The process may exit at the limit; then nothing can be measured, which is correct.
fn run_memory() -> Check {
    // Size above the capacity of a pipe: once it is written, the peer has started to read.
    const WARM_UP_BYTES: u64 = 300_000;
    Check::new(
        "toolhost/run/limits/memory-while-refusing-100-mb",
        "Refusing 20 MB and 100 MB of standard input takes at most 64 MiB of memory, and no more for the \
         longer one.",
        ["TH-LIMIT-06", "TH-LIMIT-02"],
        "run",
        |facts, _| {
            let mut talk = Talk::runs(facts);
            let (aid, ..) = talk.good_run_request("TH-LIMIT-02");
            for (pieces, label) in INPUTS {
                talk.add_session("run", &[("aid", &aid)], &[]);
                let payload = Payload::text("{\"pad\":\"").repeat("x", WARM_UP_BYTES);
                talk.act(Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 });
                talk.act(Act::Flush);
                talk.act(sample(IDLE));
                send_pieces(&mut talk, Payload::default(), pieces, "", run_refusal("TH-LIMIT-02"));
                talk.act(sample(label));
                talk.act(Act::Send {
                    payload: Payload::text("\"}"),
                    chunking: Chunking::Whole,
                    await_frames: 0,
                });
                talk.finish();
            }
            Ok(talk.run_canary().plan())
        },
    )
    .roles(&["any"])
    .exclusive()
}
