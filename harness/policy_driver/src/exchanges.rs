//! Requests with their replies, in a form that can be compared between peers.

use serde::Deserialize as _;

use super::block;
use super::driver::expect::Expect;
use peerproof_engine::contract::boundary::NormalizedExchange;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::payload::{Vars, shorten};
use peerproof_engine::data::plan::Fixture;
use peerproof_engine::data::transcript::{Exit, Transcript};

/// Most characters of a payload that are shown and compared.
const CHARS_MAX: usize = 240;

/// Exchanges of all sessions, in the order of the requests.
pub(crate) fn of(transcript: &Transcript) -> Vec<NormalizedExchange> {
    match transcript.facts.side {
        Side::Provider => {
            transcript.plan.steps.iter().filter_map(|step| decision(transcript, step)).collect()
        }
        Side::Consumer => super::selector::compared(transcript),
    }
}

fn decision(
    transcript: &Transcript,
    step: &peerproof_engine::data::plan::Step,
) -> Option<NormalizedExchange> {
    let expect = Expect::deserialize(&step.expect).ok()?;
    let content = transcript.plan.fixtures.iter().find_map(|fixture| match fixture {
        Fixture::File { name, content, .. } if *name == expect.payload => content.expand(&Vars::new()).ok(),
        _ => None,
    })?;
    let came = match (transcript.exit(step.session), block::parse(&transcript.stdout(step.session))) {
        // A driver chooses its picks freely.
        (Some(Exit::Code(0)), Ok(block)) => block.form.name().to_owned(),
        (Some(Exit::Code(0)), Err(fault)) => fault.phrase().to_owned(),
        (Some(_), _) => "a failure".to_owned(),
        (None, _) => "no Selection in time".to_owned(),
    };
    Some(NormalizedExchange {
        sent: shorten(&String::from_utf8_lossy(&content), CHARS_MAX).into_owned(),
        came,
        clause: expect.clause.0.clone(),
        choice: expect.choice.as_ref().map(|choice| choice.key.clone()),
        expected: expect.phrase(),
        fault: None,
    })
}
