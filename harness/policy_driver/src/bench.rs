//! Benchmark workloads for drivers and selectors, and the test of their replies.
//!
//! A driver reads its payload from `/dev/stdin`, a plain file for most drivers. A selector is measured twice: with
//! FALLBACK_ONLY, which starts nothing, and with the reference driver. The difference is the cost of a start.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::block;
use super::request::{Entry, FALLBACK_ONLY, POLICY_ONLY, Request, sids};
use super::{DRIVER, SELECTOR};
use peerproof_engine::contract::boundary::workload::{ReplyVerifier, Shape, Workload};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::plan::Session;

/// Path of the payload of a measured driver.
const STDIN: &str = "/dev/stdin";

/// Number of variants of a small request. Their menus differ, so a mixed-up answer shows by its SID.
const VARIANTS: u32 = 8;

/// Size of a large request, bytes.
const LARGE_BYTES: usize = 1 << 20;

/// Workloads for a peer of this side.
///
/// # Errors
/// The path of the harness's own program, which selectors start, is unknown.
pub(crate) fn workloads(facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
    match facts.side {
        Side::Provider => Ok(vec![
            decisions("drive/small", "one process a payload with three entries", small(POLICY_ONLY)),
            decisions("drive/1MiB", "one process a payload of 1 MiB", vec![large(POLICY_ONLY)]),
        ]),
        Side::Consumer => {
            let program = std::env::current_exe().map_err(|error| {
                format!("cannot find this program, which selectors are to start: {error}")
            })?;
            let program = program.to_string_lossy().replace('\'', "'\\''");
            let command = format!("'{program}' peer policy_driver --drive");
            let shapes = || vec![Shape::StartUp, Shape::Window(1), Shape::Window(64)];
            let (one, parsing) = (vec![Shape::Window(1)], "a request of 1 MiB, nothing started");
            Ok(vec![
                requests(
                    "select/parse",
                    "requests for which nothing is started",
                    FALLBACK_ONLY,
                    shapes(),
                    &command,
                    small,
                ),
                requests("select/parse-1MiB", parsing, FALLBACK_ONLY, one.clone(), &command, |mode| {
                    vec![large(mode)]
                }),
                requests(
                    "select/pick",
                    "the reference driver started for each request",
                    POLICY_ONLY,
                    one,
                    &command,
                    small,
                ),
            ])
        }
    }
}

/// Small requests, each with its own menu.
fn small(mode: &str) -> Vec<Request> {
    let menu = |variant: u32| [1, 2, 3].map(|place| Entry::plain(variant * 10 + place));
    (1..=VARIANTS).map(|variant| Request::of(&menu(variant)).mode(mode)).collect()
}

/// A request with large inputs.
fn large(mode: &str) -> Request {
    let request = Request::plain().mode(mode);
    let room = LARGE_BYTES.saturating_sub(request.text().len());
    let record = |number: usize| Json::from(format!("record {number:08} of what was found so far"));
    let records = room / (record(0).to_text().len() + 1);
    request.with("inputs", Json::object([("records", Json::array((0..records).map(record)))]))
}

fn decisions(name: &str, meaning: &str, requests: Vec<Request>) -> Workload {
    let menus = menus(&requests);
    let judge: ReplyVerifier = Arc::new(move |variant, reply| {
        let block = block::parse(reply).map_err(|fault| format!("no valid block: {fault}"))?;
        in_menu(block.sid.as_deref(), &menus, variant)
    });
    Workload {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        session: Session {
            command: DRIVER.to_owned(),
            placeholders: BTreeMap::from([("payload".to_owned(), STDIN.to_owned())]),
            ..Session::default()
        },
        requests: requests.iter().map(|request| request.text().into_bytes()).collect(),
        files: Vec::new(),
        one_shot: true,
        echoes: false,
        shapes: vec![Shape::Window(1)],
        judge,
    }
}

fn requests(
    name: &str,
    meaning: &str,
    mode: &str,
    shapes: Vec<Shape>,
    command: &str,
    make: impl Fn(&str) -> Vec<Request>,
) -> Workload {
    let requests = make(mode);
    let menus = menus(&requests);
    let judge: ReplyVerifier = Arc::new(move |variant, reply| {
        let decoded = json::decode(reply, &DecodeLimits::default())
            .map_err(|error| format!("the Selection is not JSON ({error})"))?;
        match decoded.value.get("kind").and_then(Json::as_str) {
            Some("PICK" | "ASK_SUP" | "NOOP") => {
                in_menu(decoded.value.get("sid").and_then(Json::as_str), &menus, variant)
            }
            _ => Err("the Selection is INVALID or missing".to_owned()),
        }
    });
    let env = [
        ("MACHINA_POLICY_CMD", command),
        ("MACHINA_POLICY_ALLOW_UNSAFE", "1"),
        ("MACHINA_POLICY_TIMEOUT_MS", "20000"),
    ];
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Workload {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        session: Session {
            command: SELECTOR.to_owned(),
            placeholders: BTreeMap::from([("driver".to_owned(), command.to_owned())]),
            env: BTreeMap::from(env),
            ..Session::default()
        },
        requests: requests.iter().map(|request| (request.text() + "\n").into_bytes()).collect(),
        files: Vec::new(),
        one_shot: false,
        echoes: false,
        shapes,
        judge,
    }
}

/// SIDs in the menu of each request.
fn menus(requests: &[Request]) -> Vec<Vec<String>> {
    requests.iter().map(|request| sids(&request.0).into_iter().map(str::to_owned).collect()).collect()
}

fn in_menu(sid: Option<&str>, menus: &[Vec<String>], variant: usize) -> Result<(), String> {
    match (sid, menus.get(variant)) {
        (Some(sid), Some(menu)) if !menu.iter().any(|known| known == sid) => {
            Err(format!("{sid} is not in the menu of its request"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::full_facts;
    use super::*;

    #[test]
    fn variants_have_one_length_and_answers_are_told_apart() {
        for side in [Side::Provider, Side::Consumer] {
            for workload in workloads(&full_facts::facts(side)).unwrap() {
                let bytes = workload.request_bytes();
                assert!(workload.requests.iter().all(|request| request.len() == bytes), "{}", workload.name);
            }
        }
        let driver = &workloads(&full_facts::facts(Side::Provider)).unwrap()[0];
        assert!((driver.judge)(0, b"<PICK><SID0011><END>").is_ok());
        assert!((driver.judge)(1, b"<PICK><SID0011><END>").is_err());
        assert!((driver.judge)(0, b"<NOOP><END>").is_ok());
        assert!((driver.judge)(0, b"<noop><end>").is_err());
    }
}
