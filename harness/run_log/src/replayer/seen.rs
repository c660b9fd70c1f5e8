//! What the toolhost saw of a replay: which tools were run again, with which input and on which state.

use std::collections::BTreeMap;

use peerproof_engine::finding::{Finding, Repair};
use peerproof_engine::json::Json;
use peerproof_engine::transcript::{Kind, Transcript};

use super::model::{Need, Run, Told};
use super::talk::named;
use crate::state::State;
use crate::tools::{self, Ran, Toolhost};

/// One execution.
struct Execution {
    aid: String,
    input: Json,
    state: State,
}

/// What a toolhost was asked.
#[derive(Default)]
struct Seen {
    executions: Vec<Execution>,
    /// Tools that were started and had read nothing when they ended.
    unread: Vec<String>,
}

/// The executions of a session in their order; `None` where two tools were under way at once, so that nobody knows which was
/// asked what.
fn seen(transcript: &Transcript, session: usize) -> Option<Seen> {
    let toolhost = named("peer", session);
    let mut seen = Seen::default();
    let mut running: BTreeMap<i32, Toolhost> = BTreeMap::new();
    for event in &transcript.events {
        match &event.kind {
            Kind::ActorStarted { actor, argv, pid } if *actor == toolhost => {
                running.insert(*pid, Toolhost::new(argv));
                seen.unread.extend(tools::aid_of(argv).map(str::to_owned));
            }
            Kind::ActorReceived { actor, bytes, pid } if *actor == toolhost => {
                let host = running.get_mut(pid.as_ref()?)?;
                let Ok((aid, input, state)) = host.asked(&bytes.0) else { continue };
                if seen.unread.iter().any(|other| *other != aid) {
                    return None;
                }
                seen.unread.pop();
                if let Ran::Done(_, after) = tools::run(&aid, &input, &state) {
                    host.keep(*after);
                }
                seen.executions.push(Execution { aid, input, state });
            }
            _ => {}
        }
    }
    Some(seen)
}

/// Whether a tool was run again that may be; `None` where the log has none, or nobody knows.
pub fn has_rerun(transcript: &Transcript, session: usize, told: &Told) -> Option<bool> {
    let wrong = told.wrong.as_ref().map(|wrong| wrong.line);
    let optional = told.runs.iter().find(|run| run.need == Need::May && Some(run.line) != wrong)?;
    Some(seen(transcript, session)?.executions.iter().any(|one| one.aid == optional.aid))
}

/// Holds what was run again against what the log tells.
pub fn judge(transcript: &Transcript, session: usize, told: &Told, is_ok: bool) -> Vec<Finding> {
    let Some(Seen { executions: seen, unread }) = seen(transcript, session) else { return Vec::new() };
    let mut findings = Vec::new();
    let mut add = |clause, reason, expected: String, got: String, repair| {
        findings.push(Finding::new(clause, reason, expected, got).repaired_by(repair));
    };
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
                format!("{} is never run", one.aid),
                "it was run".to_owned(),
                Repair::Undo,
            );
            continue;
        }
        let ahead = due[next..].iter().position(|run| is_same(run, one));
        // What may be run again may be left out.
        let ahead = ahead.filter(|ahead| due[next..next + ahead].iter().all(|run| run.need == Need::May));
        if let Some(ahead) = ahead {
            next += ahead + 1;
            continue;
        }
        if due[..next].last().is_some_and(|run| is_same(run, one)) {
            let expected = format!("{} is run once for its line", one.aid);
            add("LOG-RERUN-ONCE", "run_twice", expected, "it was run again".to_owned(), Repair::Undo);
            continue;
        }
        match due.get(next) {
            Some(run) if run.aid != one.aid => {
                let expected = format!("{} is run next, for line {}", run.aid, run.line);
                add("LOG-RERUN-DETERMINISTIC", "other_order", expected, one.aid.clone(), set());
            }
            Some(run) if run.input != one.input => {
                add("LOG-RERUN-INPUT", "other_input", run.input.to_text(), one.input.to_text(), set());
            }
            Some(run) => {
                let (expected, got) = (run.before.to_json().to_text(), one.state.to_json().to_text());
                add("LOG-RERUN-STATE", "other_state", expected, got, set());
            }
            // Of what comes behind the first fault nothing is known here; whoever accepts it goes on by right.
            None if told.wrong.is_some() && is_ok => {}
            None if told.wrong.is_some() => {
                let expected = "no tool is run behind the first line that is wrong".to_owned();
                add("LOG-RERUN-STOPS", "goes_on", expected, one.aid.clone(), Repair::Undo);
            }
            None => {
                let expected = "no further tool is run".to_owned();
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
                    format!("{aid} is never run"),
                    "it was started".to_owned(),
                    Repair::Undo,
                );
            }
            _ if count >= due.iter().filter(|run| run.aid == aid).count() => {
                let expected = format!("{aid} is started once for each of its lines");
                add("LOG-RERUN-ONCE", "run_twice", expected, "it was started again".to_owned(), Repair::Undo);
            }
            _ => {}
        }
    }
    let missed = due[next..].iter().find(|run| run.need == Need::Must);
    if let Some(run) = missed.filter(|_| is_ok) {
        let expected = format!("{} is run again for line {}", run.aid, run.line);
        add("LOG-RERUN-DETERMINISTIC", "not_run", expected, "it was not run".to_owned(), Repair::Do);
    }
    findings
}
