//! Checks of the start and the end of a driver.

use super::super::super::driver::expect::Expect;
use super::super::super::request::{Entry, Request};
use super::check;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        long_path(),
        odd_path(),
        two_payloads(),
        in_time(),
        open_stdin(),
        sigterm(),
        working_folder(),
        beside_its_payload(),
    ]
}

fn long_path() -> Check {
    check(
        "start/long-path",
        "A payload with a path of several hundred bytes is read like one with a short path.",
        &["PD-START-01"],
        |talk| {
            let folder = "a-folder_with-a-name-of-64-bytes_so-that-the-path-becomes-long-1";
            let name = [folder; 5].join("/") + "/payload-0";
            let (request, expect) = talk.pickable("PD-START-01");
            talk.decide(&request, expect.clone());
            talk.decide_in(&name, Payload::text(request.text()), expect);
        },
    )
}

fn odd_path() -> Check {
    check(
        "start/odd-path",
        "Blanks and letters beyond ASCII in the path of a payload are ordinary characters.",
        &["PD-START-01"],
        |talk| {
            let (request, expect) = talk.pickable("PD-START-01");
            for name in ["my payloads/pay load", "größe/日本"] {
                talk.decide_in(name, Payload::text(request.text()), expect.clone());
            }
        },
    )
}

fn working_folder() -> Check {
    check(
        "start/working-folder",
        "The driver leaves no file in its working folder, whatever the payload.",
        &["PD-START-05"],
        |talk| {
            for request in talk.payloads().into_iter().chain([Request::plain()]) {
                talk.decide(&request, Expect::block("PD-START-05")).works_where_it_is_watched();
            }
        },
    )
}

fn beside_its_payload() -> Check {
    check(
        "start/beside-its-payload",
        "The driver leaves no file in the folder of its payload, whatever the payload.",
        &["PD-START-05"],
        |talk| {
            for request in talk.payloads().into_iter().chain([Request::plain()]) {
                talk.decide_in_a_folder(&request, Expect::block("PD-START-05"));
            }
        },
    )
}

fn in_time() -> Check {
    check(
        "start/in-time",
        "A plain payload is decided within the time that the contract gives.",
        &["PD-START-04"],
        |talk| {
            talk.starts().decide(&Request::plain(), Expect::block("PD-START-04").narrow());
        },
    )
}

fn two_payloads() -> Check {
    check(
        "start/two-payloads",
        "Two payloads in the same folder are each decided by their own menu.",
        &["PD-START-01"],
        |talk| {
            for number in [11, 22] {
                let request = Request::of(&[Entry::plain(number)]);
                talk.decide(&request, Expect::block("PD-START-01").narrow());
            }
        },
    )
}

fn open_stdin() -> Check {
    check(
        "start/open-stdin",
        "With a standard input that stays open, silent or with another payload on it, the driver decides \
         as usual.",
        &["PD-START-02"],
        |talk| {
            let expect = || Expect::block("PD-START-02").narrow();
            let other = Payload::text(Request::of(&[Entry::plain(11)]).text() + "\n");
            talk.decide(&Request::plain(), expect()).with_open_stdin(Payload::default());
            talk.decide(&Request::plain(), expect()).with_open_stdin(other);
        },
    )
}

fn sigterm() -> Check {
    check(
        "start/sigterm",
        "SIGTERM ends a driver that waits for its payload within 2 s.",
        &["PD-START-06"],
        |talk| {
            talk.end_by_sigterm("PD-START-06");
        },
    )
    .waits()
}
