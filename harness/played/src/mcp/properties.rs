//! Properties of the reference server and the model for any conversation. Fuzz targets and tests call the same
//! functions, which panic if a property does not hold.

use std::sync::{Arc, OnceLock};

use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Bytes, Event as Happened, EventKind, Exit, Transcript};
use peerproof_engine::drive::machine::{Action, MachineEvent};
use peerproof_mcp::{connection, full_facts, generate, server};

/// The model allows the reference's answers in generated conversations.
///
/// # Panics
/// Panics if the model finds a fault.
pub fn generated(mut rng: Rng) {
    holds(generate::conversation(facts(), &mut rng));
}

/// The model allows the reference's answers to any bytes on an open connection.
///
/// # Panics
/// Panics if the model finds a fault.
pub fn bytes(data: &[u8]) {
    let mut talk = peerproof_mcp::talk::Talk::opened(facts());
    talk.push(Payload::from_bytes(&[data, b"\n"].concat()), peerproof_engine::data::plan::Chunking::Whole, 0);
    holds(talk.finish());
}

fn facts() -> &'static Arc<Facts> {
    static FACTS: OnceLock<Arc<Facts>> = OnceLock::new();
    FACTS.get_or_init(|| Arc::new(full_facts::facts(Side::Provider)))
}

/// Checks that the model finds no fault in the reference's answers to a plan.
fn holds(plan: Plan) {
    let mut machine = super::machine(&["server".to_owned()]).unwrap_or_else(|| panic!("no reference"));
    let (mut events, mut actions) = (Vec::new(), Vec::new());
    machine.begin(0, &mut actions);
    for (at, step) in plan.steps.iter().enumerate() {
        let Act::Send { payload, .. } = &step.act else { continue };
        let bytes = payload.expand(&Vars::new()).unwrap_or_default();
        events.push(EventKind::Sent { step: at, payload: payload.clone() });
        machine.handle(MachineEvent::Stdin(&bytes), 0, &mut actions);
        answer(&plan, &mut *machine, &mut actions, &mut events);
    }
    events.push(EventKind::StdinClosed);
    machine.handle(MachineEvent::StdinEof, 0, &mut actions);
    answer(&plan, &mut *machine, &mut actions, &mut events);
    let events = events.into_iter().map(|kind| Happened { at_us: 0, session: 0, kind }).collect();
    let transcript = Transcript {
        boundary: "mcp".to_owned(),
        check: "property".to_owned(),
        facts: Arc::clone(facts()),
        plan: Arc::new(plan),
        timeout_scale: 1.0,
        events,
    };
    let findings = server::judge(&transcript).findings;
    let written = transcript.plan.steps.iter().filter_map(|step| match &step.act {
        Act::Send { payload, .. } => Some(payload.summary(400)),
        _ => None,
    });
    assert!(findings.is_empty(), "{findings:#?}\nin {}", written.collect::<Vec<_>>().join("\n"));
}

/// Records the reference's output and answers its requests.
fn answer(
    plan: &Plan,
    machine: &mut dyn peerproof_engine::drive::machine::Machine,
    actions: &mut Vec<Action>,
    events: &mut Vec<EventKind>,
) {
    loop {
        let mut replies = Vec::new();
        for action in actions.drain(..) {
            match action {
                Action::Stdout(bytes) => {
                    let frames = bytes.split(|byte| *byte == b'\n').filter(|frame| !frame.is_empty());
                    replies.extend(
                        frames.filter_map(|frame| connection::unmatched_frame(facts(), plan, frame)?.reply),
                    );
                    events.push(EventKind::Received { bytes: Bytes(bytes) });
                }
                Action::Exit(code) => events.push(EventKind::Exited { exit: Exit::Code(code) }),
                _ => {}
            }
        }
        if replies.is_empty() {
            return;
        }
        for reply in replies {
            machine.handle(MachineEvent::Stdin(&reply), 0, actions);
            events.push(EventKind::Answered { bytes: Bytes(reply) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_conversations_hold() {
        for seed in 0..150 {
            generated(Rng::new(seed));
        }
    }

    #[test]
    fn odd_lines_hold() {
        for line in [
            "",
            " ",
            "{",
            "{}",
            "[]",
            "[[]]",
            "null",
            "7",
            "\"a\"",
            "{\"id\":7}",
            "{\"jsonrpc\":\"2.0\",\"id\":7}",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":7}",
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}",
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}",
            "\u{feff}{}",
            "{\"a\":1,\"a\":2}",
            "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[\"\\ud800\"]}",
        ] {
            bytes(line.as_bytes());
        }
    }
}
