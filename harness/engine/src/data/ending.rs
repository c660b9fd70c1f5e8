//! End of a session: its exit, missed deadlines and leftovers.

use std::time::Duration;

use crate::data::finding::{Finding, Nature};
use crate::data::pace::written;
use crate::data::transcript::{Awaited, EventKind, Exit, Transcript};

/// End of a session's process and the deadlines that passed before.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Exit of the process by itself.
    pub exit: Option<Exit>,
    /// Set if its input was closed.
    pub input_ended: bool,
    /// Set if the harness sent it a signal.
    pub signalled: bool,
    /// Set if a deadline for replies passed.
    pub unanswered: bool,
    /// Set if the deadline for reading its input passed.
    pub unread: bool,
    /// Set if the deadline for its exit passed.
    pub late: bool,
    /// Set in a recorded conversation if something else ended the peer or its end was not recorded. It owes no more
    /// replies.
    pub cut: bool,
    /// Time waited until the first missed deadline.
    pub waited: Option<Duration>,
    /// Exceeded budget: reason code and phrase.
    pub flood: Option<(&'static str, &'static str)>,
}

impl Ending {
    /// Ending of a session.
    pub fn of(transcript: &Transcript, session: usize) -> Self {
        let any = |is: &dyn Fn(&EventKind) -> bool| transcript.of(session).any(|event| is(&event.kind));
        let passed = |what: Awaited| {
            any(&|kind| matches!(kind, EventKind::DeadlinePassed { awaited, .. } if *awaited == what))
        };
        let flood = if any(&|kind| matches!(kind, EventKind::StdoutOverflow { .. })) {
            Some(("output_flood", "unlimited output"))
        } else if any(&|kind| matches!(kind, EventKind::Memory { label, .. } if label == "over_budget")) {
            Some(("memory_flood", "unlimited memory growth"))
        } else {
            None
        };
        let exit = transcript.exit(session);
        let signalled = any(&|kind| matches!(kind, EventKind::Signalled { .. }));
        let stopped = any(&|kind| matches!(kind, EventKind::Killed | EventKind::RecordingStopped { .. }));
        Self {
            exit,
            input_ended: any(&|kind| matches!(kind, EventKind::StdinClosed)),
            cut: transcript.plan.recorded && (exit.is_none() || signalled || stopped),
            signalled,
            unanswered: passed(Awaited::Frames),
            unread: passed(Awaited::Writing),
            late: passed(Awaited::Exit),
            waited: transcript.of(session).find_map(|event| match event.kind {
                EventKind::DeadlinePassed { waited_ms, .. } if waited_ms > 0 => {
                    Some(Duration::from_millis(waited_ms))
                }
                _ => None,
            }),
            flood,
        }
    }

    /// Appends the time waited to `what`, such as `no reply within 4.0 s`.
    pub fn in_vain(&self, what: &str) -> String {
        match self.waited {
            Some(waited) => format!("{what} within {}", written(waited)),
            None => what.to_owned(),
        }
    }

    /// True if it exited with status 0 after its input had ended.
    pub fn in_order(&self) -> bool {
        self.input_ended && self.exit == Some(Exit::Code(0))
    }
}

/// Findings about processes and temporary files that outlived a session, under the boundary's clauses `no_process` and
/// `no_file`.
pub fn left_behind(transcript: &Transcript, session: usize, no_process: &str, no_file: &str) -> Vec<Finding> {
    let left = transcript.of(session).filter_map(|event| match &event.kind {
        EventKind::LeakedProcess { command, .. } => Some(Finding::new(
            no_process,
            "process_left",
            "no process of the peer is left after its end",
            format!("{command} was still running"),
        )),
        EventKind::LeftFile { path } => Some(Finding::new(
            no_file,
            "file_left",
            "no temporary file of the peer is left after its end",
            path.clone(),
        )),
        _ => None,
    });
    left.map(|finding| finding.of_nature(Nature::Leak)).collect()
}
