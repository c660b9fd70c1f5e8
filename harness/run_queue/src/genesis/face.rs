//! The face of a toolhost with the Genesis tools: its answers, and the files that may exist afterwards.

use std::collections::BTreeMap;

use peerproof_engine::contract::face::{
    Aim, Expectation, Expected, ExpectedPart, Face, Frame, Framing, Misfit, Reading, Rule, SessionClauses,
    SessionTrace, Stimulus, StimulusKind, Subject, Trace,
};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::Fixture;
use peerproof_engine::data::transcript::{EventKind, FoundEntry, FoundKind, Transcript};

use super::model::{AllowedAnswer, Call, GENERAL, OUTER, PathDestination, ROOT, SOURCES, State};
use crate::SERVE;

/// Clause: no file is written or left elsewhere.
const LEFT: &str = "QUE-GEN-10";

/// Clause: built-in tools stay.
const BUILT_IN: &str = "QUE-GEN-15";

/// Beginning of the names of files that only an injected command creates.
pub(crate) const INJECTED: &str = "injected";

/// Shortest text that cannot occur by chance, bytes.
const TOKEN_BYTES: usize = 8;

/// A toolhost with the Genesis tools.
pub(super) struct Genesis;

impl Face for Genesis {
    type Message = Json;
    type Answer = AllowedAnswer;
    type Notes = Option<Call>;
    type State = State;

    fn framing(&self, command: &str) -> Option<Framing> {
        (command == SERVE).then_some(Framing::Lines)
    }

    fn session_clauses(&self) -> &SessionClauses {
        const SESSION_CLAUSES: SessionClauses =
            SessionClauses { no_file_left: LEFT, ..SessionClauses::all(GENERAL) };
        &SESSION_CLAUSES
    }

    fn begin(&self, transcript: &Transcript) -> State {
        State::new(transcript)
    }

    fn expect(
        &self,
        state: &mut State,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedAnswer, Option<Call>>> {
        let StimulusKind::Said(line) = stimulus.what else { return None };
        let (call, (clause, choice, allowed)) = state.expect(&line.bytes);
        let (effects, extra) = (Vec::new(), Some(call));
        Some(Expectation::one(Expected { clause, subject: Subject::Turn, allowed, choice, effects, extra }))
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Json> {
        let decoded = json::decode(json::trim(frame.bytes), &DecodeLimits::default());
        match decoded.map(|decoded| decoded.value) {
            Ok(value) if is_ok(&value).is_some() => Reading::Message(value),
            _ => {
                let got = shorten(&String::from_utf8_lossy(frame.bytes), 200).into_owned();
                Reading::Broken(Finding::new(GENERAL, "other_output", "each line is a reply", got))
            }
        }
    }

    fn fit(&self, _: &ExpectedPart<Self>, way: &AllowedAnswer, came: &[&Json]) -> Result<(), Misfit> {
        let Some(reply) = came.first() else { return Ok(()) };
        let misfit = |rank, reason, at: &str, to: &str| {
            let repair = Repair::Set { at: at.to_owned(), to: (!to.is_empty()).then(|| to.to_owned()) };
            Err(Misfit { rank, clause: None, reason, repair })
        };
        let has_error = reply.get("error").and_then(Json::as_str).is_some_and(|error| !error.is_empty());
        match (way, is_ok(reply)) {
            (AllowedAnswer::Reply, _) | (AllowedAnswer::Ok, Some(true)) => Ok(()),
            (AllowedAnswer::Ok | AllowedAnswer::Told(_), Some(false)) => misfit(1, "refused", "/ok", "true"),
            (AllowedAnswer::Told(letters), _) => {
                let slots = reply.pointer("/ds_state/slots").and_then(Json::as_object).unwrap_or_default();
                let holds = |slot: &Json| {
                    let content = slot.get("content_json").and_then(Json::as_str).unwrap_or_default();
                    letters.iter().any(|letters| content.contains(letters.as_str()))
                };
                match slots.iter().any(|(_, slot)| holds(slot)) {
                    true => Ok(()),
                    false => misfit(0, "wrong_slot", "/ds_state/slots", ""),
                }
            }
            (_, Some(true)) => misfit(1, "accepted", "/ok", "false"),
            _ if !has_error => misfit(0, "no_error", "/error", ""),
            (AllowedAnswer::ToolError, _)
                if reply.get("status").and_then(Json::as_str) != Some("TOOL_ERROR") =>
            {
                misfit(0, "no_tool_error", "/status", "\"TOOL_ERROR\"")
            }
            _ => Ok(()),
        }
    }

    fn leaves_open(&self, part: &ExpectedPart<Self>, _: Option<&Aim>, _: &[&Json]) -> Option<Untestable> {
        let is_open = matches!(part.extra, Some(Call::Ending(false)));
        is_open.then(|| Untestable::new("no_end", "the plugin did not run to its end"))
    }

    fn phrase(&self, _: &ExpectedPart<Self>, way: &AllowedAnswer) -> String {
        match way {
            AllowedAnswer::Ok => "ok:true".to_owned(),
            AllowedAnswer::Told(letters) => {
                format!("ok:true and a slot whose content_json holds {}", letters.join(" or "))
            }
            AllowedAnswer::Refused => "ok:false with an error".to_owned(),
            AllowedAnswer::ToolError => "ok:false with the status TOOL_ERROR and an error".to_owned(),
            AllowedAnswer::Reply => "a reply".to_owned(),
        }
    }

    fn text(&self, message: &Json) -> String {
        message.to_text()
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[what_lies_there, what_the_state_is]
    }
}

pub(super) fn is_ok(reply: &Json) -> Option<bool> {
    reply.get("ok")?.as_bool()
}

/// Files that the last look found, by path below the folder of the fixtures; `None` without a look.
fn looked(transcript: &Transcript) -> Option<Vec<(String, &FoundEntry)>> {
    let looks = transcript.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Looked { label, found, cut: false, .. } if label == OUTER => Some(found),
        _ => None,
    });
    let named = |one: &'_ FoundEntry| format!("{OUTER}/{}", String::from_utf8_lossy(&one.path.0));
    Some(looks?.iter().map(|one| (named(one), one)).collect())
}

/// Checks that the written files have their content, and that no other file is around the root.
fn what_lies_there(trace: &Trace<'_, Genesis>, heard: &SessionTrace<'_, Genesis>) -> Vec<Finding> {
    let Some(found) = looked(trace.transcript).filter(|_| heard.session == 0) else { return Vec::new() };
    let mut findings = what_is_written(&found, heard);
    let told = |at: &str| findings.iter().any(|finding| finding.got == at);
    let stray = what_lies_elsewhere(trace.transcript, &found, &told);
    findings.extend(stray);
    findings
}

fn bytes(one: &FoundEntry) -> &[u8] {
    one.bytes.as_ref().map_or(&[], |bytes| bytes.0.as_slice())
}

/// Checks that accepted files hold their content, and that refused files do not exist.
fn what_is_written(found: &[(String, &FoundEntry)], heard: &SessionTrace<'_, Genesis>) -> Vec<Finding> {
    let is_file = |one: &FoundEntry| one.kind == FoundKind::File;
    let mut findings = Vec::new();
    let (mut last, mut without) = (BTreeMap::new(), Vec::new());
    for (asked, part, answer) in heard.answers() {
        let Some(Call::Write { path, content, spot }) = &part.extra else { continue };
        let is_done = is_ok(answer.message) == Some(true);
        match (spot, content) {
            (PathDestination::At(place, _), Some(content)) if is_done => {
                let aim = asked.aim.as_ref().filter(|aim| aim.clause.0 == BUILT_IN).map(|_| BUILT_IN);
                last.insert(place.clone(), (asked.step, aim.unwrap_or("QUE-GEN-04"), content));
            }
            (PathDestination::At(place, _), None) => without.push((place, asked.step)),
            (PathDestination::Bad | PathDestination::Open | PathDestination::Link(_), Some(content))
                if content.len() >= TOKEN_BYTES =>
            {
                let holds = |one: &FoundEntry| {
                    is_file(one) && bytes(one).windows(content.len()).any(|part| part == content.as_bytes())
                };
                let is_allowed = |at: &str| {
                    *spot != PathDestination::Bad && is_done && at.starts_with(&format!("{ROOT}/"))
                };
                if let Some((at, _)) = found.iter().find(|(at, one)| holds(one) && !is_allowed(at)) {
                    let expected = format!("no file for the path {:?}", path.as_deref().unwrap_or_default());
                    findings.push(Finding::new("QUE-GEN-03", "written", expected, at.clone()).at(asked.step));
                }
            }
            _ => {}
        }
    }
    // A file that another call wrote may be there.
    for (place, step) in without.into_iter().filter(|(place, _)| !last.contains_key(*place)) {
        let at = format!("{SOURCES}/{place}");
        if found.iter().any(|(path, _)| *path == at) {
            let expected = "no file for a request without `content`";
            findings.push(Finding::new("QUE-GEN-05", "written", expected, at).at(step));
        }
    }
    for (place, (step, clause, content)) in last {
        let at = format!("{SOURCES}/{place}");
        let there = found.iter().find(|(path, one)| *path == at && is_file(one));
        let is_cut = |one: &FoundEntry| one.bytes.is_none() || bytes(one).len() as u64 != one.total_bytes;
        let finding = match there {
            None => ("no_file", "no file".to_owned()),
            Some((_, one)) if is_cut(one) || bytes(one) == content.as_bytes() => continue,
            Some((_, one)) => ("other_content", String::from_utf8_lossy(bytes(one)).into_owned()),
        };
        let expected = format!("{at} holds {content}");
        findings.push(Finding::new(clause, finding.0, expected, finding.1).at(step));
    }
    findings
}

/// Finding about a file around the root that the harness did not put there and that is not reported already; or
/// about a file anywhere that only a name read as a command or option creates.
fn what_lies_elsewhere(
    transcript: &Transcript,
    found: &[(String, &FoundEntry)],
    told: &dyn Fn(&str) -> bool,
) -> Option<Finding> {
    let below = |name: &str, other: &str| name == other || name.starts_with(&format!("{other}/"));
    let is_own = |at: &str| {
        let mut own = transcript.plan.fixtures.iter().map(Fixture::name);
        own.any(|name| below(name, at.trim_end_matches('/'))) || below(at, ROOT)
    };
    let is_injected = |at: &str| at.rsplit('/').next().is_some_and(|name| name.starts_with(INJECTED));
    let find = |is: &dyn Fn(&str) -> bool| found.iter().map(|(at, _)| at.as_str()).find(|at| is(at));
    let injected = find(&is_injected)
        .map(|at| ("QUE-GEN-07", "a file name that is not run as a command or an option", at));
    let stray = || find(&|at| !is_own(at) && !told(at));
    let (clause, expected, at) =
        injected.or_else(|| Some((LEFT, "no file outside of the root", stray()?)))?;
    Some(Finding::new(clause, "file_left", expected, at.to_owned()))
}

/// Checks that a failed call changes no slot.
fn what_the_state_is(_: &Trace<'_, Genesis>, heard: &SessionTrace<'_, Genesis>) -> Vec<Finding> {
    let mut known: Vec<(String, Json)> = Vec::new();
    let mut findings = Vec::new();
    for (asked, _, answer) in heard.answers() {
        let Some(state) = answer.message.get("ds_state") else { continue };
        let slots = state.get("slots").and_then(Json::as_object).unwrap_or_default();
        let removed = state.get("removed_slots").and_then(Json::as_array).unwrap_or_default();
        let names = removed.iter().filter_map(|slot| Some(slot.as_u64()?.to_string()));
        let names: Vec<String> = names.collect();
        if is_ok(answer.message) == Some(true) {
            known.retain(|(name, _)| !names.contains(name) && slots.iter().all(|(slot, _)| slot != name));
            known.extend(slots.iter().cloned());
            continue;
        }
        let is_new = slots.iter().any(|slot| !known.contains(slot));
        let is_gone = known.iter().any(|(name, _)| names.contains(name));
        if is_new || is_gone {
            let expected = "a failed call leaves the state unchanged";
            let finding = Finding::new("QUE-GEN-17", "state_changed", expected, state.to_text());
            findings.push(finding.at(asked.step));
        }
    }
    findings
}
