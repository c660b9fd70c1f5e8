//! What a benchmark sends to a replayer: logs on its standard input, which is a file like any other to most. Nothing in them
//! is run again, so that what is measured is reading and following them. Logs differ by their length alone: where time
//! grows with it as it should, all take as much processor time for a step.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof_engine::bench::workload::{Judge, Shape, Workload};
use peerproof_engine::face::{Face as _, Frame, Reading};
use peerproof_engine::json::Json;
use peerproof_engine::plan::Session;

use super::face::{Message, Replayer};
use super::talk::{Maker, Pick, header, start};
use crate::REPLAYER;

/// Steps of the logs.
const STEPS: [usize; 3] = [100, 10_000, 100_000];

/// The workloads for a replayer.
pub fn workloads() -> Vec<Workload> {
    STEPS.map(workload).into()
}

fn workload(steps: usize) -> Workload {
    let judge: Judge = Arc::new(|_, reply| {
        let frame = Frame { bytes: reply, exit: None, status: None, is_due: true };
        match Replayer.read(&frame) {
            Reading::Message(Message::Ok) => Ok(()),
            _ => Err(format!("the log is right, and the reply {:?}", String::from_utf8_lossy(reply))),
        }
    });
    let placeholders = [("log", "/dev/stdin"), ("peer", "/bin/true")];
    let placeholders = placeholders.map(|(name, path)| (name.to_owned(), path.to_owned()));
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
        requests: vec![log(steps).into_bytes()],
        files: Vec::new(),
        one_shot: true,
        echoes: false,
        shapes: vec![Shape::Window(1)],
        judge,
    }
}

/// The log of a run that does the same again and again, and then nothing.
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
