//! Properties of the reference engine and the model for any bytes. Fuzz targets and tests call the same functions,
//! which panic if a property does not hold.

#[cfg(test)]
mod stored;

use std::sync::{Arc, OnceLock};

use peerproof_reference::envelope::{Choices, Config, choices::Process, machine};
use peerproof_reference::machine::{Action, Event, Machine};

use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Bytes, Event as Happened, EventKind, Exit, Transcript};
use peerproof_envelope::face::{COMMAND, judge};
use peerproof_envelope::generate;

/// The model allows every answer of the reference engines to any bytes.
///
/// # Panics
/// Panics if the property does not hold.
pub fn process(data: &[u8]) {
    for process in [Process::Advance, Process::Identity] {
        holds(process, &[data.to_vec()]);
    }
}

/// Generated envelopes come back unchanged and get equal replies in every presentation.
///
/// # Panics
/// Panics if the property does not hold.
pub fn generated(mut rng: Rng) {
    let text = generate::envelope(&mut rng);
    let value: Json = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
    let mut inputs = vec![text.into_bytes()];
    for how in Presentation::ALL.into_iter().filter(|how| *how != Presentation::ExtraMembers) {
        inputs.push(present(&value, how, &mut || rng.next_u64()).into_bytes());
    }
    for process in [Process::Advance, Process::Identity] {
        let replies = holds(process, &inputs);
        assert!(replies.iter().all(|(status, _)| *status == 0), "{value:?} is refused");
        // The reply is an envelope again and can be processed again.
        holds(process, &replies.into_iter().map(|(_, reply)| reply).collect::<Vec<_>>());
    }
}

fn facts() -> &'static Arc<Facts> {
    static FACTS: OnceLock<Arc<Facts>> = OnceLock::new();
    FACTS.get_or_init(|| Arc::new(peerproof_envelope::boundary().full_facts(Side::Provider)))
}

/// Checks that the model finds no fault in the answer to each input; returns exit statuses and replies.
fn holds(process: Process, inputs: &[Vec<u8>]) -> Vec<(i32, Vec<u8>)> {
    let (mut events, mut steps, mut sessions, mut replies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (session, input) in inputs.iter().enumerate() {
        let choices = Choices { process, ..Choices::default() };
        let mut engine = machine(Config { choices, id_seed: session as u64 * 100, ..Config::default() });
        let mut note = |kind| events.push(Happened { at_us: session as u64, session, kind });
        let payload = Payload::from_bytes(input);
        note(EventKind::Sent { step: steps.len(), payload: payload.clone() });
        note(EventKind::StdinClosed);
        let mut actions = Vec::new();
        engine.handle(Event::Stdin(input), 0, &mut actions);
        engine.handle(Event::StdinEof, 0, &mut actions);
        let (mut status, mut reply) = (-1, Vec::new());
        for action in actions {
            match action {
                Action::Stdout(bytes) => {
                    reply.extend_from_slice(&bytes);
                    note(EventKind::Received { bytes: Bytes(bytes) });
                }
                Action::Exit(code) => {
                    status = code;
                    note(EventKind::Exited { exit: Exit::Code(code) });
                }
                other => panic!("unexpected {other:?}"),
            }
        }
        replies.push((status, reply));
        sessions.push(Session { command: COMMAND.to_owned(), ..Session::default() });
        let send = Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 };
        steps.extend([send, Act::Finish].map(|act| Step { session, ..Step::new(act) }));
    }
    let transcript = Transcript {
        boundary: "envelope".to_owned(),
        check: "property".to_owned(),
        facts: Arc::clone(facts()),
        plan: Arc::new(Plan { sessions, steps, by_model: true, ..Plan::default() }),
        timeout_scale: 1.0,
        events,
    };
    let findings = judge(&transcript).findings;
    let said = || inputs.iter().map(|input| String::from_utf8_lossy(input) + "\n").collect::<String>();
    assert!(findings.is_empty(), "{findings:#?}\nin {}", said());
    replies
}
