//! Rules about a whole scenario: started programs, sent requests and the results file.

use super::USUAL_MS;
use super::allowed_outcome::{AllowedOutcome, Caller, RESULTS, wrong};
use super::outcomes::BAD_INPUT;
use crate::equivalence::{Mode, differences};
use crate::model::Input;
use peerproof_engine::contract::asking::{self, Call, CallTimeline, Clauses, ObservedCalls};
use peerproof_engine::contract::face::{ExpectedPart, Outcome, SessionTrace, Trace};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::{ActorStep, Fixture, ListenerSettings};

/// Clause: the caller sends the envelope once and complete.
pub(super) const REQUEST: &str = "ENV-CALL-25";
const SCHEMA: &str = "ENV-CALL-26";
const POSTS: &str = "ENV-CALL-28";
const ARGV: &str = "ENV-CALL-30";
const UNDOCUMENTED: &str = "ENV-CALL-40";

const CLAUSES: Clauses =
    Clauses { results: RESULTS, once: "ENV-CALL-29", order: "ENV-CALL-31", late: "ENV-CALL-20" };

/// Judges the scenario of one caller.
pub(super) fn judge(trace: &Trace<'_, Caller>, heard: &SessionTrace<'_, Caller>) -> Vec<Finding> {
    let (transcript, known) = (trace.transcript, trace.state);
    let (calls, courses) = (&known.calls, &known.courses);
    let results = asking::noted(transcript, heard.session, wrong);
    let mut found = asking::faults(transcript, calls, courses, &results, USUAL_MS, &CLAUSES);
    let parts =
        trace.asked.iter().filter(|asked| asked.session == heard.session).flat_map(|it| &it.due.parts);
    for (at, part) in parts.enumerate().take(calls.len()) {
        found.extend(sent(known, at, part));
    }
    found
}

/// Findings about the programs and requests of a call.
fn sent(known: &ObservedCalls, at: usize, part: &ExpectedPart<Caller>) -> Vec<Finding> {
    let (call, course) = (&known.calls[at], &known.courses[at]);
    let name = &call.name;
    if course.begun_us().is_none() {
        return Vec::new();
    }
    let is_bad =
        |way: &Outcome<AllowedOutcome>| matches!(way, Outcome::Answer(AllowedOutcome::Plain("bad_input")));
    if part.allowed.iter().all(|allowed| is_bad(&allowed.outcome)) {
        let expected = "no start and no request for an invalid envelope";
        return vec![Finding::new(BAD_INPUT, "begun", expected, format!("the call {name:?} was started"))];
    }
    match known.fixture(at) {
        Some(Fixture::Actor { script, .. }) => program(known, call, course, script),
        Some(Fixture::Listener { manner, .. }) => server(known, call, course, manner),
        _ => Vec::new(),
    }
}

fn program(known: &ObservedCalls, call: &Call, course: &CallTimeline, script: &[ActorStep]) -> Vec<Finding> {
    let mut found = Vec::new();
    let told = call.told.get("command").and_then(Json::as_array).unwrap_or_default();
    let told: Vec<&str> = told.iter().skip(1).filter_map(Json::as_str).collect();
    if let Some((_, argv)) = course.starts.first().filter(|(_, argv)| *argv != told) {
        let expected = format!("the arguments {told:?}, unchanged");
        found.push(Finding::new(ARGV, "other_arguments", expected, format!("{argv:?}")));
    }
    let reads = script.iter().any(|step| matches!(step, ActorStep::ReadRequest | ActorStep::ReadToEnd));
    if let Some(received) = course.received.as_ref().filter(|_| reads) {
        found.extend(request(known, call, received));
    }
    found
}

fn server(
    known: &ObservedCalls,
    call: &Call,
    course: &CallTimeline,
    manner: &ListenerSettings,
) -> Vec<Finding> {
    let Some(request) = course.requests.first() else { return Vec::new() };
    let mut found = Vec::new();
    let url = call.told.get("url").and_then(Json::as_str).unwrap_or_default();
    let path = url.splitn(4, '/').nth(3).map_or("/".to_owned(), |path| format!("/{path}"));
    found.extend(request.misposted(&path, POSTS));
    // The server replies only after the whole body has come.
    if manner.whole && course.replied_us.is_some() {
        found.extend(self::request(known, call, &request.body));
    }
    found
}

/// Findings about the text of a request.
fn request(known: &ObservedCalls, call: &Call, text: &[u8]) -> Vec<Finding> {
    let name = &call.name;
    let quoted = || shorten(&String::from_utf8_lossy(text), 240).into_owned();
    let input = Input::read(&known.facts, text);
    let is_more = input.traits.iter().any(|it| it.clause == "ENV-FRAME-03");
    let (Some(request), false) = (input.sent, is_more) else {
        let expected = format!("one JSON object: the envelope of the call {name:?}");
        return vec![Finding::new(REQUEST, "no_envelope", expected, quoted())];
    };
    let null = Json::Null;
    let told = call.told.get("envelope").unwrap_or(&null).to_text();
    let Some(told) = Input::read(&known.facts, told.as_bytes()).sent else { return Vec::new() };
    let differences = differences(&told, &request.raw, Mode::Caller).into_iter();
    let finding = |it: crate::equivalence::Difference| {
        let clause = match it.clause {
            "ENV-OUT-01" | "ENV-OUT-02" | "ENV-TIME-10" => SCHEMA,
            // Null for a member that the scenario lacks is a fault of the schema, not a changed value.
            "ENV-DEF-02" if it.reason == "null_emitted" => SCHEMA,
            "ENV-KEEP-03" => UNDOCUMENTED,
            _ => REQUEST,
        };
        Finding::new(clause, it.reason, format!("the request of the call {name:?}: {}", it.expected), it.got)
    };
    differences.map(finding).take(1).collect()
}
