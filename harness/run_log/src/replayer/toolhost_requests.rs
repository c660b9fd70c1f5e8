//! Re-runs of a replay, as the toolhost saw them: tools, inputs and states.

use std::collections::BTreeMap;

use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{EventKind, Transcript};

use super::model::{LogReading, Need, Run};
use super::talk::named;
use crate::only_integers_differ;
use crate::state::State;
use crate::tools::{self, ExecutionResult, Toolhost};

/// Most characters of a quoted request.
const QUOTED_CHARS: usize = 240;

/// One execution of a tool.
struct Execution {
    aid: String,
    input: Json,
    state: State,
}

/// Requests to a toolhost.
#[derive(Default)]
struct ToolhostRequests {
    executions: Vec<Execution>,
    /// Tools that were started and ended without reading anything.
    unread: Vec<String>,
    /// Arguments of a toolhost that was started with wrong ones.
    odd_start: Option<Vec<String>>,
    /// A member of a request that no re-run may carry.
    key: Option<&'static str>,
    /// A malformed request and its fault.
    bad: Option<(&'static str, String)>,
}

/// Executions of a session in order. `None` if two tools ran at once, because their requests cannot be told apart.
fn seen(transcript: &Transcript, session: usize) -> Option<ToolhostRequests> {
    let toolhost = named("peer", session);
    let mut seen = ToolhostRequests::default();
    let mut running: BTreeMap<i32, Toolhost> = BTreeMap::new();
    for event in &transcript.events {
        match &event.kind {
            EventKind::ActorStarted { actor, argv, pid } if *actor == toolhost => {
                running.insert(*pid, Toolhost::new(argv));
                if !tools::is_start(argv) {
                    seen.odd_start.get_or_insert_with(|| argv.clone());
                }
                seen.unread.extend(tools::aid_of(argv).map(str::to_owned));
            }
            // End of the input.
            EventKind::ActorReceived { bytes, pid: None, .. } if bytes.0.trim_ascii().is_empty() => {}
            EventKind::ActorReceived { actor, bytes, pid } if *actor == toolhost => {
                seen.key = seen.key.or(key_in(&bytes.0));
                let host = running.get_mut(pid.as_ref()?)?;
                let (aid, input, state) = match host.asked(&bytes.0) {
                    Ok(asked) => asked,
                    Err(why) => {
                        seen.bad.get_or_insert_with(|| (why, String::from_utf8_lossy(&bytes.0).into_owned()));
                        continue;
                    }
                };
                if seen.unread.iter().any(|other| *other != aid) {
                    return None;
                }
                seen.unread.pop();
                if let ExecutionResult::Done(_, after) = tools::run(&aid, &input, &state) {
                    host.keep(*after);
                }
                seen.executions.push(Execution { aid, input, state });
            }
            _ => {}
        }
    }
    Some(seen)
}

/// Name of an idempotency key or a lease in a request.
fn key_in(request: &[u8]) -> Option<&'static str> {
    let request = json::decode(json::trim(request), &DecodeLimits::default()).ok()?.value;
    let is_there =
        |name: &&str| request.get(name).is_some_and(|value| !value.is_null() && value.as_str() != Some(""));
    ["idempotency_key", "_lease_token"].into_iter().find(is_there)
}

/// True if a tool with an optional re-run was run. `None` without one, or if the executions are unknown.
pub(crate) fn has_rerun(transcript: &Transcript, session: usize, told: &LogReading) -> Option<bool> {
    let wrong = told.wrong.as_ref().map(|wrong| wrong.line);
    let optional = told.runs.iter().find(|run| run.need == Need::May && Some(run.line) != wrong)?;
    Some(seen(transcript, session)?.executions.iter().any(|one| one.aid == optional.aid))
}

/// True if a tool that replies only at the end of its input was started.
pub(crate) fn has_waited(transcript: &Transcript, session: usize) -> bool {
    let toolhost = named("peer", session);
    let is_patient = |argv: &[String]| tools::aid_of(argv).is_some_and(tools::is_patient);
    transcript.events.iter().any(
        |event| matches!(&event.kind, EventKind::ActorStarted { actor, argv, .. } if *actor == toolhost && is_patient(argv)),
    )
}

/// True if a toolhost got a request.
pub(crate) fn has_asked(transcript: &Transcript, session: usize) -> bool {
    let toolhost = named("peer", session);
    let is_own =
        |kind: &EventKind| matches!(kind, EventKind::ActorReceived { actor, .. } if *actor == toolhost);
    transcript.events.iter().any(|event| is_own(&event.kind))
}

/// Findings about how toolhosts are started and asked.
fn of_requests(
    odd_start: Option<Vec<String>>,
    key: Option<&'static str>,
    bad: Option<(&'static str, String)>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |clause, reason, expected: String, got: String, repair| {
        findings.push(Finding::new(clause, reason, expected, got).repaired_by(repair));
    };
    if let Some(argv) = odd_start {
        let expected = "a toolhost is started with --run PLUGIN AID or --serve PLUGIN".to_owned();
        add("LOG-RERUN-START", "other_arguments", expected, format!("{argv:?}"), Repair::Undo);
    }
    if let Some(key) = key {
        let expected = "no idempotency key and no lease in a re-run".to_owned();
        add("LOG-RERUN-KEYS", "key_given", expected, format!("the request has `{key}`"), Repair::Undo);
    }
    if let Some((why, request)) = bad {
        let expected = "a valid request to a toolhost".to_owned();
        let got = format!("{why}: {}", shorten(&request, QUOTED_CHARS));
        add("LOG-RERUN-REQUEST", "bad_request", expected, got, Repair::Set { at: String::new(), to: None });
    }
    findings
}

/// Compares the re-runs with the log.
pub(crate) fn judge(transcript: &Transcript, session: usize, told: &LogReading, is_ok: bool) -> Vec<Finding> {
    let Some(ToolhostRequests { executions: seen, unread, odd_start, key, bad }) = seen(transcript, session)
    else {
        return Vec::new();
    };
    let mut findings = of_requests(odd_start, key, bad);
    let mut add = |clause, reason, expected: String, got: String, repair| {
        findings.push(Finding::new(clause, reason, expected, got).repaired_by(repair));
    };
    // The contract leaves open which of two equal members counts, and all consequences.
    if told.first_wins.is_some() {
        return findings;
    }
    let due: Vec<&Run> = told.runs.iter().filter(|run| !matches!(run.need, Need::Never(_))).collect();
    let never = |aid: &str| {
        let is_due = due.iter().any(|run| run.aid == aid);
        let run = told.runs.iter().find(|run| run.aid == aid && matches!(run.need, Need::Never(_)));
        run.filter(|_| !is_due).map(|run| run.need)
    };
    let is_same =
        |run: &Run, one: &Execution| run.aid == one.aid && run.input == one.input && run.before == one.state;
    let set = || Repair::Set { at: String::new(), to: None };
    let mut next = 0;
    for one in &seen {
        if let Some(Need::Never(clause)) = never(&one.aid) {
            add(
                clause,
                "run_again",
                format!("no run of {}", one.aid),
                "the tool was run".to_owned(),
                Repair::Undo,
            );
            continue;
        }
        let ahead = due[next..].iter().position(|run| is_same(run, one));
        // Optional re-runs may be missing.
        let ahead = ahead.filter(|ahead| due[next..next + ahead].iter().all(|run| run.need == Need::May));
        if let Some(ahead) = ahead {
            next += ahead + 1;
            continue;
        }
        if due[..next].last().is_some_and(|run| is_same(run, one)) {
            let expected = format!("one run of {} for its line", one.aid);
            add("LOG-RERUN-ONCE", "run_twice", expected, "the tool was run twice".to_owned(), Repair::Undo);
            continue;
        }
        match due.get(next) {
            Some(run) if run.aid != one.aid => {
                let expected = format!("the next run is {}, for line {}", run.aid, run.line);
                add("LOG-RERUN-DETERMINISTIC", "other_order", expected, one.aid.clone(), set());
            }
            Some(run) if run.input != one.input => {
                let of_numbers = only_integers_differ(&run.input, &one.input);
                let clause = if of_numbers { "LOG-EQUAL-INTEGERS" } else { "LOG-RERUN-INPUT" };
                add(clause, "other_input", run.input.to_text(), one.input.to_text(), set());
            }
            Some(run) => {
                let (expected, got) = (run.before.to_json().to_text(), one.state.to_json().to_text());
                add("LOG-RERUN-STATE", "other_state", expected, got, set());
            }
            // A replayer that accepts the first fault may continue.
            None if told.wrong.is_some() && is_ok => {}
            None if told.wrong.is_some() => {
                let expected = "no run of a tool after the first wrong line".to_owned();
                add("LOG-RERUN-STOPS", "goes_on", expected, format!("a run of {}", one.aid), Repair::Undo);
            }
            None => {
                let expected = "no run of another tool".to_owned();
                add("LOG-RERUN-ONCE", "run_twice", expected, one.aid.clone(), Repair::Undo);
            }
        }
        next = (next + 1).min(due.len());
    }
    for aid in unread {
        let count = seen.iter().filter(|one| one.aid == aid).count();
        match never(&aid) {
            Some(Need::Never(clause)) => {
                add(
                    clause,
                    "run_again",
                    format!("no run of {aid}"),
                    "the tool was started".to_owned(),
                    Repair::Undo,
                );
            }
            _ if count >= due.iter().filter(|run| run.aid == aid).count() => {
                let expected = format!("one start of {aid} for each of its lines");
                add(
                    "LOG-RERUN-ONCE",
                    "run_twice",
                    expected,
                    "the tool was started again".to_owned(),
                    Repair::Undo,
                );
            }
            _ => {}
        }
    }
    let missed = due[next..].iter().find(|run| run.need == Need::Must);
    if let Some(run) = missed.filter(|_| is_ok) {
        let expected = format!("a run of {} for line {}", run.aid, run.line);
        add("LOG-RERUN-DETERMINISTIC", "not_run", expected, "the tool was not run".to_owned(), Repair::Do);
    }
    findings
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::transcript::{Bytes, Event};

    use super::super::model;
    use super::super::talk::{Maker, Pick, Talk, header, start, text};
    use super::*;

    /// Reasons of the findings if these runs are re-run, in a session that another session overlaps from the second
    /// run on.
    fn found(told: &LogReading, runs: &[Run]) -> Vec<String> {
        let actor = named("peer", 0);
        let started = |pid| EventKind::ActorStarted {
            actor: actor.clone(),
            argv: vec!["--serve".to_owned(), "default".to_owned()],
            pid,
        };
        let mut kinds = vec![started(1)];
        for (at, run) in runs.iter().enumerate() {
            let kept = Json::object([("delta", true.into())]);
            let request = Json::object([
                ("aid", Json::from(run.aid.as_str())),
                ("input_json", run.input.to_text().into()),
                ("ds_state", if at == 0 { run.before.to_json() } else { kept }),
            ]);
            let bytes = Bytes((request.to_text() + "\n").into_bytes());
            kinds.push(EventKind::ActorReceived { actor: actor.clone(), bytes, pid: Some(1) });
            kinds.extend((at == 0).then(|| started(2)));
        }
        let transcript = Transcript {
            boundary: "run_log".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Consumer)),
            plan: Arc::new(Talk::default().plan()),
            timeout_scale: 1.0,
            events: (0..).zip(kinds).map(|(at_us, kind)| Event { at_us, session: 0, kind }).collect(),
        };
        let findings = judge(&transcript, 0, told, told.wrong.is_none());
        findings.into_iter().map(|it| format!("{} {}", it.clause, it.reason)).collect()
    }

    #[test]
    fn sessions_keep_their_states_and_a_wrong_line_may_be_run_first() {
        let set = r#"{"do":{"set":{"0":{"type":"t","provenance":"p","content_json":"1","size_bytes":1}}}}"#;
        let pick = Pick {
            tool: "DO".to_owned(),
            deterministic: true,
            patch: Some(set.to_owned()),
            ..Pick::default()
        };
        let mut run = Maker::new(header(), start());
        run.pick(&pick);
        run.pick(&Pick { patch: Some("{\"k\":2}".to_owned()), ..pick });
        let log = text(&run.finish("noop"));
        let told = model::read(log.as_bytes(), true);
        assert_eq!((&told.wrong, told.runs.len()), (&None, 2));
        assert_eq!(found(&told, &told.runs), [""; 0]);
        assert_eq!(found(&told, &told.runs[..1]), ["LOG-RERUN-DETERMINISTIC not_run"]);
        let damaged = model::read(log.replacen("/slots/0", "/slots/9", 1).as_bytes(), true);
        assert_eq!(damaged.wrong.as_ref().map(|wrong| wrong.clause), Some("LOG-PATCH-PATH"));
        assert_eq!(found(&damaged, &told.runs[..1]), [""; 0]);
        assert_eq!(found(&damaged, &told.runs), ["LOG-RERUN-STOPS goes_on"]);
    }
}
