//! Benchmark workloads for replayers: logs in files. They re-run no tool, so that only reading and following is
//! measured. The logs differ in length alone; a linear replayer uses equal processor time per step. The log is also
//! on standard input, for the echo peer; a replayer ignores it.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof_engine::contract::boundary::workload::{ReplyVerifier, Shape, Workload};
use peerproof_engine::contract::face::{Face as _, Frame, Reading};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::{FOLDER, Session};

use super::face::{Message, Replayer};
use super::talk::{Maker, Pick, header, start};
use crate::REPLAYER;

/// Number of steps of the logs, and their file names.
const LOGS: [(usize, &str); 3] = [(100, "log-100"), (10_000, "log-10000"), (100_000, "log-100000")];

/// Workloads for a replayer.
///
/// # Errors
/// The path of the harness's own program, which stands for a toolhost, is unknown.
pub(crate) fn workloads() -> Result<Vec<Workload>, Misconfigured> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find this program, which stands for a toolhost: {error}"))?;
    Ok(LOGS.map(|(steps, file)| workload(steps, file, &program.to_string_lossy())).into())
}

fn workload(steps: usize, file: &'static str, toolhost: &str) -> Workload {
    let judge: ReplyVerifier = Arc::new(|_, reply| {
        let frame = Frame { bytes: reply, exit: None, status: None, is_due: true };
        match Replayer.read(&frame) {
            Reading::Message(Message::Ok) => Ok(()),
            _ => Err(format!("the log is valid, but the reply is {:?}", String::from_utf8_lossy(reply))),
        }
    });
    let log = log(steps).into_bytes();
    let placeholders = [("log", format!("{{{{{FOLDER}}}}}/{file}")), ("peer", toolhost.to_owned())];
    let placeholders = placeholders.map(|(name, path)| (name.to_owned(), path));
    Workload {
        name: format!("replay/{steps}-steps"),
        meaning: format!(
            "one process a log of {steps} steps with two events each, none of which is run again"
        ),
        session: Session {
            command: REPLAYER.to_owned(),
            placeholders: BTreeMap::from(placeholders),
            ..Session::default()
        },
        files: vec![(file, log.as_slice().into())],
        requests: vec![log],
        one_shot: true,
        echoes: false,
        shapes: vec![Shape::Window(1)],
        judge,
    }
}

/// The log of a run that repeats one selection and ends with NOOP.
fn log(steps: usize) -> String {
    let mut run = Maker::new(header(), start());
    run.pick(&Pick::default());
    run.pick(&Pick { kind: "NOOP".to_owned(), ..Pick::default() });
    let mut lines = run.finish("noop");
    let last = steps.saturating_sub(1);
    let mut text = String::new();
    let mut write = |line: &mut Json, step: usize| {
        line.set("step", step);
        text += &(line.to_text() + "\n");
    };
    if let [started, chosen, told, ended, finished] = &mut lines[..] {
        write(started, 0);
        for step in 0..last {
            write(chosen, step);
            write(told, step);
        }
        write(ended, last);
        if let Some(payload) = finished.get_mut("payload") {
            payload.set("steps", steps);
        }
        write(finished, last);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::model;
    use super::*;

    #[test]
    fn logs_are_right_and_of_the_length_that_they_say() {
        for steps in [1, 2, 50] {
            let text = log(steps);
            let told = model::read(text.as_bytes(), true);
            assert_eq!((told.wrong, told.open), (None, Vec::new()), "{text}");
            assert_eq!(text.lines().count(), 2 * steps + 1);
        }
    }
}
