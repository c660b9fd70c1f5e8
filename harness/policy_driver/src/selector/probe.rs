//! Probe of a selector without configured features: do its Selections show merged inputs, which are optional?

use super::super::request::Request;
use super::expect::{Allowed, Expect};
use super::selection;
use super::talk::{Talk, says};
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::transcript::Transcript;

/// A request whose driver picks with a patch.
pub(crate) fn plan() -> Plan {
    let block = "<PICK><SID0042><INP>{\"k\":1}</INP><END>";
    let mut talk = Talk::new();
    talk.play(&Request::plain(), says(block), Expect::new("PD-SELN-09", Allowed::Anything));
    talk.finish().plan()
}

/// True if the Selection of the probe has merged inputs.
pub(crate) fn shows_merged_inputs(transcript: &Transcript) -> bool {
    selection::frames(transcript, 0)
        .iter()
        .any(|frame| frame.value.as_ref().is_ok_and(|selection| selection.inputs.is_some()))
}
