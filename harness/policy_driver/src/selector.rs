//! The selector as peer: the harness sends requests and plays the drivers that it starts.
//!
//! [`talk`] builds conversations: requests on standard input, scripted drivers, and the variables that configure
//! them. [`expect`] defines expectations, [`oracle`] compares.

use peerproof_engine::contract::boundary::NormalizedExchange;
use peerproof_engine::data::payload::{Vars, shorten};
use peerproof_engine::data::transcript::{EventKind, Transcript};

pub mod expect;
pub(crate) mod generate;
pub mod model;
pub(crate) mod oracle;
pub(crate) mod payload_requirement;
pub(crate) mod probe;
pub(crate) mod provided;
pub(crate) mod selection;
mod sent_requests;
pub mod talk;

/// Requests with their replies, in a form that can be compared between selectors.
pub fn compared(transcript: &Transcript) -> Vec<NormalizedExchange> {
    let mut all = Vec::new();
    for session in 0..transcript.plan.sessions.len() {
        let asked = sent_requests::asked(transcript, session);
        let frames = selection::frames(transcript, session);
        let mut sent = transcript.of(session).filter_map(|event| match &event.kind {
            EventKind::Sent { step, payload } => {
                Some((*step, payload.expand(&Vars::new()).unwrap_or_default()))
            }
            _ => None,
        });
        for (asked, frame) in asked.iter().zip(&frames) {
            let line = sent.find(|(step, _)| *step == asked.step).map(|(_, bytes)| bytes).unwrap_or_default();
            let came = match &frame.value {
                // The fallback is chosen freely.
                Ok(_) if asked.expect.allowed == [expect::Allowed::Anything] => "a Selection".to_owned(),
                Ok(selection) => selection.gist(),
                Err(_) => "no JSON".to_owned(),
            };
            all.push(NormalizedExchange {
                sent: shorten(&String::from_utf8_lossy(&line), 240).into_owned(),
                came,
                clause: asked.expect.clause.0.clone(),
                choice: asked.expect.choice.as_ref().map(|choice| choice.key.clone()),
                expected: asked.expect.phrase(),
                fault: None,
            });
        }
    }
    all
}
