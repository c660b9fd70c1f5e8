//! Toy faces, whose peers are judged by effects: a dispatcher, a runner of tools and a job queue as real processes,
//! correct and faulty, and a peer that asks, with hand-made transcripts.

mod asker;
mod queue;
mod relay;
mod tool;

use crate::contract::face::Face;
use crate::contract::judge::judge;
use crate::data::finding::Judgement;
use crate::data::transcript::Transcript;

/// Shell command for a peer in Python.
fn python(program: &str) -> String {
    format!("exec python3 -c \"$(cat <<'END'\n{program}\nEND\n)\"")
}

/// Clause and reason of each finding, in order; or the reason why nothing was decided.
fn said<F: Face>(face: &F, transcript: &Transcript) -> Vec<String> {
    let Judgement { findings, untestable, .. } = judge(face, transcript);
    let findings = findings.iter().map(|finding| format!("{} {}", finding.clause, finding.reason));
    let why = untestable.iter().map(|why| why.code.to_string());
    findings.chain(why).collect()
}
