use std::collections::BTreeSet;
use std::io::BufRead as _;
use std::sync::{Arc, LazyLock};

use serde_json::Value;

use crate::table;
use peerproof_engine::contract::boundary::{Boundary, checks_of_side, judge};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Event, EventKind, Exit, Transcript};
use peerproof_engine::drive::stored;

/// Empty conversation of every check of both sides. Made once, because all plans together take seconds.
static TRANSCRIPTS: LazyLock<Vec<(&'static dyn Boundary, Transcript)>> = LazyLock::new(transcripts);

fn transcripts() -> Vec<(&'static dyn Boundary, Transcript)> {
    let mut all = Vec::new();
    for boundary in table::all() {
        for side in [Side::Provider, Side::Consumer] {
            let facts = Arc::new(boundary.full_facts(side));
            for check in checks_of_side(boundary, side) {
                let Ok(plan) = (check.planner)(&facts, &mut Rng::new(1)) else { continue };
                let kinds = [
                    EventKind::Started { argv: vec!["x".to_owned()] },
                    EventKind::StdinClosed,
                    EventKind::Exited { exit: Exit::Code(0) },
                ];
                let events = kinds.into_iter().map(|kind| Event { at_us: 1, session: 0, kind }).collect();
                all.push((
                    boundary,
                    Transcript {
                        boundary: boundary.name().to_owned(),
                        check: check.id.clone(),
                        facts: Arc::clone(&facts),
                        plan: Arc::new(plan),
                        timeout_scale: 2.0,
                        events,
                    },
                ));
            }
        }
    }
    all
}

fn text(transcript: &Transcript) -> Vec<u8> {
    let mut bytes = Vec::new();
    transcript.store(&mut bytes).unwrap();
    bytes
}

fn admit(boundary: &dyn Boundary, text: &[u8]) -> Result<(), Misconfigured> {
    stored::admit(boundary, &Transcript::load(text)?)
}

/// Paths of all members with fixed names, excluding names chosen by a peer or a check.
fn members(value: &Value, at: &str, found: &mut Vec<String>) {
    let chosen = ["env", "placeholders", "members", "output_members", "calls"];
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let path = format!("{at}/{name}");
                found.push(path.clone());
                if !chosen.contains(&name.as_str()) && !at.ends_with("/facts") {
                    members(value, &path, found);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                members(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Place of a member without indices, and the names next to it: its kind, wherever it stands.
fn shape(value: &Value, path: &str) -> (String, Vec<String>) {
    let names: Vec<&str> = path.split('/').filter(|name| name.parse::<usize>().is_err()).collect();
    let beside = path.rsplit_once('/').and_then(|(above, _)| value.pointer(above)?.as_object());
    (names.join("/"), beside.into_iter().flat_map(|map| map.keys().cloned()).collect())
}

fn misspelt(value: &Value, path: &str) -> Value {
    let mut value = value.clone();
    let (above, name) = path.rsplit_once('/').unwrap();
    if let Some(Value::Object(map)) = value.pointer_mut(above) {
        let held = map.remove(name).unwrap();
        map.insert(format!("{name}x"), held);
    }
    value
}

#[test]
fn every_conversation_of_ours_is_admitted() {
    let mut admitted = 0;
    for (boundary, transcript) in &*TRANSCRIPTS {
        if let Err(error) = admit(*boundary, &text(transcript)) {
            panic!("{}: {error}", transcript.check);
        }
        admitted += 1;
    }
    assert!(admitted > 500, "{admitted}");
}

#[test]
fn a_misspelt_member_is_refused_wherever_it_stands() {
    // One conversation per topic shows every kind of expectation.
    let (mut topics, mut shapes) = (BTreeSet::new(), BTreeSet::new());
    let mut tried = 0;
    for (boundary, transcript) in &*TRANSCRIPTS {
        let topic = peerproof_engine::data::check::topic_of(&transcript.check);
        if topics.contains(topic) {
            continue;
        }
        let stored = text(transcript);
        if stored.len() > 20_000 {
            continue;
        }
        topics.insert(topic);
        let lines: Vec<String> = stored.lines().map(Result::unwrap).collect();
        for (number, line) in lines.iter().enumerate() {
            let value: Value = serde_json::from_str(line).unwrap();
            let mut paths = Vec::new();
            members(&value, "", &mut paths);
            paths.retain(|path| shapes.insert((boundary.name(), shape(&value, path))));
            for path in paths {
                let mut changed = lines.clone();
                changed[number] = misspelt(&value, &path).to_string();
                let refused = admit(*boundary, changed.join("\n").as_bytes());
                let Err(error) = refused else { panic!("{}: {path} is admitted misspelt", transcript.check) };
                assert_eq!(error.to_string().lines().count(), 1, "{error}");
                tried += 1;
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
}

#[test]
fn a_refusal_names_the_member_its_place_and_the_nearest() {
    let (boundary, transcript) = TRANSCRIPTS.iter().find(|(_, it)| it.plan.steps.len() > 1).unwrap();
    let stored = String::from_utf8(text(transcript)).unwrap();
    for (from, to, place) in [
        ("\"await_frames\"", "\"await_frame\"", "await_frames"),
        ("\"sessions\"", "\"sesions\"", "sessions"),
        ("\"timeout_scale\"", "\"timeout_scal\"", "timeout_scale"),
        ("\"stdin_closed\"", "\"stdin_close\"", "stdin_closed"),
    ] {
        assert!(stored.contains(from), "{stored}");
        let error = admit(*boundary, stored.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(to.trim_matches('"')), "{error}");
    }
}

#[test]
fn every_finding_carries_its_occasion() {
    let mut found = 0;
    for (boundary, transcript) in &*TRANSCRIPTS {
        for finding in judge(*boundary, transcript).findings {
            let occasion = finding.occasion.as_ref();
            assert!(occasion.is_some_and(|it| !it.command.is_empty()), "{}: {finding:?}", transcript.check);
            found += 1;
        }
    }
    assert!(found > 500, "{found}");
}

/// A stored name is useless if it is unknown. A few conversations per boundary show that.
#[test]
fn clauses_and_programs_that_a_boundary_lacks_are_refused() {
    const OF_EACH: usize = 12;
    let mut refused = std::collections::BTreeMap::<&str, [usize; 2]>::new();
    for (boundary, transcript) in &*TRANSCRIPTS {
        let refused = refused.entry(boundary.name()).or_default();
        if refused[0] == OF_EACH && transcript.plan.fixtures.is_empty() {
            continue;
        }
        let stored = String::from_utf8(text(transcript)).unwrap();
        let (head, events) = stored.split_once('\n').unwrap();
        let head: Value = serde_json::from_str(head).unwrap();
        let clause = (0..transcript.plan.steps.len())
            .flat_map(|at| ["", "/0"].map(|one| format!("/plan/steps/{at}/expect{one}/clause")))
            .find(|place| head.pointer(place).is_some());
        let script = (0..transcript.plan.fixtures.len())
            .flat_map(|at| {
                ["converse", "perform"].map(|step| format!("/plan/fixtures/{at}/actor/script/0/{step}"))
            })
            .find(|place| head.pointer(place).is_some());
        for (sort, place) in [clause, script].into_iter().enumerate() {
            let Some(place) = place.filter(|_| refused[sort] < OF_EACH) else { continue };
            let mut head = head.clone();
            *head.pointer_mut(&place).unwrap() = "NONE-SUCH".into();
            let error = admit(*boundary, format!("{head}\n{events}").as_bytes()).unwrap_err().to_string();
            assert!(error.contains("\"NONE-SUCH\"") && error.lines().count() == 1, "{error}");
            refused[sort] += 1;
        }
    }
    assert!(refused.values().all(|[clauses, _]| *clauses == OF_EACH), "{refused:?}");
    assert!(["run_log", "run_queue"].iter().all(|name| refused[name][1] > 0), "{refused:?}");
}
