//! Findings about entities outside conversations, and about the end of a peer that asks.

use std::collections::BTreeMap;

use super::answers::{is_right, note, still_running};
use crate::contract::face::{
    ExpectedPart, Face, PlacedExpectation, SessionTrace, Subject, Trace, misfit, phrase,
};
use crate::data::check::Untestable;
use crate::data::finding::{Finding, Judgement, Nature, Repair};
use crate::data::transcript::{EventKind, Exit};

/// Expectation for an entity that was never seen.
type Pending<'a, F> = (&'a PlacedExpectation<F>, &'a ExpectedPart<F>, &'a String);

/// Judges the history of every entity and the end of each peer that asks.
pub(super) fn judge<F: Face>(face: &F, trace: &Trace<'_, F>, judgement: &mut Judgement) {
    let mut seen: BTreeMap<String, Vec<F::Message>> = BTreeMap::new();
    for (thing, message) in trace.transcript.events.iter().flat_map(|event| face.observe(event)) {
        seen.entry(thing).or_default().push(message);
    }
    let is_lost = trace.transcript.events.iter().any(|event| event.kind == EventKind::WatchOverflow);
    let mut pending: BTreeMap<usize, Pending<'_, F>> = BTreeMap::new();
    for (asked, part) in trace.asked.iter().flat_map(|it| it.due.parts.iter().map(move |part| (it, part))) {
        let Subject::Entity(thing) = &part.subject else { continue };
        let history: Vec<&F::Message> = seen.get(thing).map(|seen| seen.iter().collect()).unwrap_or_default();
        if history.is_empty()
            && let Some(silence) = part.silence()
        {
            note(face, asked, part, silence.shows, judgement);
            continue;
        }
        let is_asker = |heard: &SessionTrace<'_, F>| heard.session == asked.session && is_cut_short(heard);
        if history.is_empty() && trace.sessions.iter().any(is_asker) {
            pending.entry(asked.session).or_insert((asked, part, thing));
            continue;
        }
        if is_right(face, asked, part, &history, judgement) {
            continue;
        }
        if is_lost {
            let why = "the system dropped events of the watched folder, so a missing file proves nothing";
            judgement.untestable = Some(Untestable::new("watch_overflow", why));
            continue;
        }
        let misfit = misfit(face, part, &history);
        let got = match history.as_slice() {
            [] => format!("no message about {thing:?}"),
            history => history.iter().map(|message| face.text(message)).collect::<Vec<_>>().join(", then "),
        };
        let clause = misfit.clause.unwrap_or(part.clause);
        let finding = Finding::new(clause, misfit.reason, phrase(face, part), got);
        let finding = finding.repaired_by(misfit.repair);
        judgement.findings.push(match misfit.clause {
            Some(_) => finding.at(asked.step),
            None => asked.file(finding),
        });
    }
    for heard in trace.sessions.iter().filter(|heard| heard.framing.asks()) {
        let first = trace.asked.iter().find(|asked| asked.session == heard.session);
        let finding = end(face, heard, first, pending.get(&heard.session));
        let step = first.map(|asked| asked.step);
        judgement.findings.extend(finding.map(|it| Finding { step: it.step.or(step), ..it }));
    }
}

/// True if a peer that asks was stopped or did not exit in order. Its open calls are then reported once.
fn is_cut_short<F: Face>(heard: &SessionTrace<'_, F>) -> bool {
    heard.framing.asks() && heard.ending.exit != Some(Exit::Code(0))
}

/// Judges the end of a peer that asks. `first` gives the aim of its session, `pending` its first open call.
fn end<F: Face>(
    face: &F,
    heard: &SessionTrace<'_, F>,
    first: Option<&PlacedExpectation<F>>,
    pending: Option<&Pending<'_, F>>,
) -> Option<Finding> {
    let (ending, session_clauses) = (&heard.ending, face.session_clauses());
    let file = |finding: Finding| match first {
        Some(asked) => asked.file(finding),
        None => finding,
    };
    if let Some((reason, got)) = ending.flood {
        let finding = Finding::new(session_clauses.lives_on, reason, "output of limited length", got);
        return Some(file(finding.repaired_by(Repair::Undo)));
    }
    Some(match (ending.exit, pending) {
        (Some(Exit::Code(0)), _) => return None,
        (Some(exit @ Exit::Signal(_)), _) => {
            let finding = Finding::new(
                session_clauses.lives_on,
                "crashed",
                "an exit status, not a signal",
                exit.to_string(),
            );
            file(finding.of_nature(Nature::Crash))
        }
        (Some(exit), pending) => {
            let expected = "exit status 0 after the last request";
            let finding =
                Finding::new(session_clauses.ends_at_eof, "exit_status", expected, exit.to_string());
            let finding = finding.repaired_by(Repair::Exit(Exit::Code(0)));
            if pending.is_some() { file(finding) } else { finding }
        }
        (None, Some((asked, part, thing))) => {
            let got = format!("{thing:?} never finished");
            let finding = Finding::new(part.clause, "hung", phrase(face, part), got);
            asked.file(finding.of_nature(Nature::Hang).repaired_by(Repair::Send))
        }
        (None, None) => {
            let expected = "the process ends after the last request";
            still_running(ending, session_clauses.ends_at_term, session_clauses.ends_at_eof, expected)
        }
    })
}
