//! Toys of faces whose peers are judged by what they do beside their words: a dispatcher, a runner of tools and a queue of jobs,
//! real processes, right ones and wrong ones; and one that asks, by hand.

mod asker;
mod queue;
mod relay;
mod tool;

use crate::face::Face;
use crate::finding::Judgement;
use crate::judge::judge;
use crate::transcript::Transcript;

/// A peer in Python.
fn python(program: &str) -> String {
    format!("exec python3 -c \"$(cat <<'END'\n{program}\nEND\n)\"")
}

/// Clause and reason of each finding, in order; or why nothing was decided.
fn said<F: Face>(face: &F, transcript: &Transcript) -> Vec<String> {
    let Judgement { findings, untestable, .. } = judge(face, transcript);
    let findings = findings.iter().map(|finding| format!("{} {}", finding.clause, finding.reason));
    let why = untestable.iter().map(|why| why.code.to_string());
    findings.chain(why).collect()
}
