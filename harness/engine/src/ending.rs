//! How a session came to its end, and what it left behind.

use std::time::Duration;

use crate::finding::{Finding, Nature};
use crate::pace::written;
use crate::transcript::{Awaited, Exit, Kind, Transcript};

/// How the process of a session ended, and which deadlines passed before.
#[derive(Debug, Clone)]
pub struct Ending {
    /// How the process ended by itself.
    pub exit: Option<Exit>,
    /// Its input was closed.
    pub input_ended: bool,
    /// The harness sent a signal.
    pub signalled: bool,
    /// A deadline for replies passed.
    pub unanswered: bool,
    /// The deadline for taking what was written passed.
    pub unread: bool,
    /// The deadline for its end passed.
    pub late: bool,
    /// In a recorded conversation somebody else ended the peer, or the end was not recorded: it owes no more replies.
    pub cut: bool,
    /// How long was waited for what did not come first.
    pub waited: Option<Duration>,
    /// The budget it exceeded: reason code and phrase.
    pub flood: Option<(&'static str, &'static str)>,
}

impl Ending {
    /// That of a session.
    pub fn of(transcript: &Transcript, session: usize) -> Self {
        let any = |is: &dyn Fn(&Kind) -> bool| transcript.of(session).any(|event| is(&event.kind));
        let passed = |what: Awaited| {
            any(&|kind| matches!(kind, Kind::DeadlinePassed { awaited, .. } if *awaited == what))
        };
        let flood = if any(&|kind| matches!(kind, Kind::StdoutOverflow { .. })) {
            Some(("output_flood", "endless output"))
        } else if any(&|kind| matches!(kind, Kind::Memory { label, .. } if label == "over_budget")) {
            Some(("memory_flood", "endless memory"))
        } else {
            None
        };
        let exit = transcript.exit(session);
        let signalled = any(&|kind| matches!(kind, Kind::Signalled { .. }));
        let stopped = any(&|kind| matches!(kind, Kind::Killed | Kind::RecordingStopped { .. }));
        Self {
            exit,
            input_ended: any(&|kind| matches!(kind, Kind::StdinClosed)),
            cut: transcript.plan.recorded && (exit.is_none() || signalled || stopped),
            signalled,
            unanswered: passed(Awaited::Frames),
            unread: passed(Awaited::Writing),
            late: passed(Awaited::Exit),
            waited: transcript.of(session).find_map(|event| match event.kind {
                Kind::DeadlinePassed { waited_ms, .. } if waited_ms > 0 => {
                    Some(Duration::from_millis(waited_ms))
                }
                _ => None,
            }),
            flood,
        }
    }

    /// `what` and for how long it was waited: `no reply within 4.0 s`.
    pub fn in_vain(&self, what: &str) -> String {
        match self.waited {
            Some(waited) => format!("{what} within {}", written(waited)),
            None => what.to_owned(),
        }
    }

    /// It ended because its input had ended, with status 0.
    pub fn in_order(&self) -> bool {
        self.input_ended && self.exit == Some(Exit::Code(0))
    }
}

/// What outlived the process of a session, under the boundary's clauses about processes and about files.
pub fn left_behind(transcript: &Transcript, session: usize, no_process: &str, no_file: &str) -> Vec<Finding> {
    let left = transcript.of(session).filter_map(|event| match &event.kind {
        Kind::LeakedProcess { command, .. } => Some(Finding::new(
            no_process,
            "process_left",
            "no process of the peer is left after it ended",
            format!("{command} was still running"),
        )),
        Kind::LeftFile { path } => Some(Finding::new(
            no_file,
            "file_left",
            "no temporary file is left after the peer ended",
            path.clone(),
        )),
        _ => None,
    });
    left.map(|finding| finding.of_nature(Nature::Leak)).collect()
}
