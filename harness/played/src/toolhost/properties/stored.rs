//! Runs all stored inputs through the properties of the fuzz targets.

use super::Talk;
use crate::stored::{drawn, replay};

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
    replay("toolhost", |data| {
        super::serve(&Talk::of(data));
    });
    let mut requests = 0;
    drawn("toolhost", 20, 200, |it| requests += super::serve(&it));
    assert!(requests > 2_000, "only {requests} requests");
}

#[test]
fn serve_mode_with_small_limits() {
    replay("toolhost", |data| super::serve_small(&Talk::of(data)));
    drawn("toolhost", 20, 200, |it| super::serve_small(&it));
}

#[test]
fn replies_to_the_dispatcher() {
    replay("toolhost", super::dispatcher_reply);
}

#[test]
fn oracles() {
    replay("toolhost", super::oracles);
}
