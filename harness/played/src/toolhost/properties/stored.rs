//! Every stored input, through the properties that the fuzz targets check.

use peerproof_engine::rng::Rng;

use crate::stored::{replay, spelled};

#[test]
fn frames() {
    replay("toolhost", super::frame);
}

#[test]
fn run_mode() {
    replay("toolhost", super::run);
}

#[test]
fn serve_mode() {
    replay("toolhost", super::serve);
}

#[test]
fn serve_mode_with_small_limits() {
    replay("toolhost", super::serve_small);
}

#[test]
fn replies_to_the_dispatcher() {
    replay("toolhost", super::dispatcher_reply);
}

#[test]
fn oracles() {
    replay("toolhost", super::oracles);
}

#[test]
fn spelled_conversations() {
    let mut rng = Rng::new(20);
    for _ in 0..200 {
        let bytes = spelled(&mut rng, 400);
        super::serve(&bytes);
        super::serve_small(&bytes);
    }
}
