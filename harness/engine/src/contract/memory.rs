//! Memory cost of refusing a large input: its conversation and its judge.

use crate::data::check::Untestable;
use crate::data::finding::{Finding, Judgement, Repair};
use crate::data::payload::Payload;
use crate::data::plan::{Act, Chunking};
use crate::data::transcript::{EventKind, Transcript};

/// Label of the sample before the large input, after the peer has shown that it works.
pub const IDLE: &str = "idle";
/// Label of the sample after the smaller of two inputs.
pub const AFTER_SMALLER: &str = "after_smaller";
/// Label of the sample after the larger of two inputs.
pub const AFTER_LARGER: &str = "after_larger";

/// Size of a piece of the large input, bytes. Pieces keep the harness itself small.
pub const PIECE_BYTES: u64 = 10_000_000;
/// Number of pieces of each input, with the label of the sample after it.
pub const INPUTS: [(u32, &str); 2] = [(2, AFTER_SMALLER), (10, AFTER_LARGER)];

/// Maximum growth for a refusal, bytes.
const GROWTH_BYTES_MAX: u64 = 64 << 20;
/// Difference in growth between the two inputs that still counts as none, because of uncollected garbage. The inputs
/// themselves differ by more than twice as much.
const SLACK_BYTES: u64 = 32 << 20;

/// Piece of a large input.
pub fn piece() -> Payload {
    Payload::default().repeat("x", PIECE_BYTES)
}

/// Acts after the first of `pieces` pieces: the other pieces, each flushed before the next, then the `last` bytes.
pub fn further(pieces: u32, last: &str) -> Vec<Act> {
    let send = |payload| Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 };
    let mut acts: Vec<Act> = (1..pieces).flat_map(|_| [Act::Flush, send(piece())]).collect();
    acts.push(Act::Flush);
    if !last.is_empty() {
        acts.push(send(Payload::text(last)));
    }
    acts
}

/// Records the memory of the peer.
pub fn sample(label: &str) -> Act {
    Act::SampleMemory { label: label.to_owned() }
}

/// Adds a finding about `clause` for each session whose memory grew too much, and one if the larger input cost more
/// than the smaller.
pub fn judge(transcript: &Transcript, clause: &str, judgement: &mut Judgement) {
    let is_asked = transcript
        .plan
        .steps
        .iter()
        .any(|step| matches!(&step.act, Act::SampleMemory { label } if label == IDLE));
    let of_session = |session| {
        let samples = transcript.of(session).filter_map(|event| match &event.kind {
            EventKind::Memory { label, hwm_bytes } => Some((label.as_str(), *hwm_bytes)),
            _ => None,
        });
        samples.collect::<Vec<_>>()
    };
    let samples: Vec<_> = (0..transcript.plan.sessions.len()).map(of_session).collect();
    if is_asked {
        judge_samples(&samples, clause, judgement);
    }
}

/// Judges samples taken in another way as [`judge`] does: per process, labels with bytes.
pub fn judge_samples(processes: &[Vec<(&str, u64)>], clause: &str, judgement: &mut Judgement) {
    let mut is_known = false;
    let (mut smaller, mut larger) = (None, None);
    for samples in processes {
        let mut idle = None;
        for (label, hwm_bytes) in samples {
            let Some(idle_bytes) = idle else {
                idle = (*label == IDLE).then_some(*hwm_bytes);
                is_known |= idle.is_some();
                continue;
            };
            let growth = hwm_bytes.saturating_sub(idle_bytes);
            match *label {
                AFTER_SMALLER => smaller = Some(growth),
                AFTER_LARGER => larger = Some(growth),
                _ => {}
            }
            if growth > GROWTH_BYTES_MAX {
                let got = format!("{} MiB more than the idle size of {} MiB", growth >> 20, idle_bytes >> 20);
                let expected = "memory grows by at most 64 MiB while the peer refuses a large input";
                let finding = Finding::new(clause, "memory_grew", expected, got);
                judgement.findings.push(finding.repaired_by(Repair::Undo));
                break;
            }
        }
    }
    if let (Some(smaller), Some(larger)) = (smaller, larger)
        && larger > smaller + SLACK_BYTES
        && !judgement.findings.iter().any(|finding| finding.reason == "memory_grew")
    {
        let got = format!("growth of {} MiB, then of {} MiB for a longer input", smaller >> 20, larger >> 20);
        let expected = "memory growth that does not depend on the length of the refused input";
        let finding = Finding::new(clause, "memory_grows_with_input", expected, got);
        judgement.findings.push(finding.repaired_by(Repair::Undo));
    }
    if !is_known {
        let why = "this system does not report the memory of a process";
        judgement.untestable.get_or_insert_with(|| Untestable::new("no_memory_figures", why));
    }
}
