//! Example boundary: a peer that asks. It is given words, sends each in a line, and records which ones it has sent.

use std::sync::Arc;

use crate::contract::face::{
    Aim, Allowed, Expectation, Expected, Face, Frame, Framing, Misfit, Reading, SessionClauses, Stimulus,
    StimulusKind, Subject,
};
use crate::contract::judge::judge;
use crate::data::clause::Side;
use crate::data::facts::Facts;
use crate::data::finding::{Finding, Repair};
use crate::data::plan::{Act, Plan, Session, Step};
use crate::data::transcript::{Awaited, Bytes, Event, EventKind, Exit, Transcript};

const SESSION_CLAUSES: SessionClauses =
    SessionClauses { protocol_only: "ASK-01", lives_on: "ASK-02", ..SessionClauses::all("ASK-03") };

struct Asker;

impl Face for Asker {
    type Message = String;
    type Answer = String;
    type Notes = ();
    type State = ();

    fn framing(&self, _command: &str) -> Option<Framing> {
        Some(Framing::Asks)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, _transcript: &Transcript) {}

    fn expect(&self, (): &mut (), stimulus: &Stimulus<'_>) -> Option<Expectation<String>> {
        let StimulusKind::Begun = stimulus.what else { return None };
        let word = |word: &str| {
            let thing = Subject::Entity(word.to_owned());
            Expected::new("ASK-04", thing, vec![Allowed::answer("said".to_owned())])
        };
        Some(Expectation { parts: vec![word("a"), word("b")], together: false, whole: None })
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<String> {
        match frame.bytes {
            b"a" | b"b" => Reading::Blank,
            other => {
                let got = String::from_utf8_lossy(other).into_owned();
                Reading::Broken(Finding::new("ASK-01", "other_output", "a word", got))
            }
        }
    }

    fn observe(&self, event: &Event) -> Vec<(String, String)> {
        let EventKind::FileHeld { bytes, .. } = &event.kind else { return Vec::new() };
        let text = String::from_utf8_lossy(&bytes.0).into_owned();
        let pair = |line: &str| line.split_once(' ').map(|(word, how)| (word.to_owned(), how.to_owned()));
        text.lines().filter_map(pair).collect()
    }

    fn fit(&self, _: &Expected<String>, way: &String, came: &[&String]) -> Result<(), Misfit> {
        let misfit = |clause, reason| Err(Misfit { rank: 0, clause, reason, repair: Repair::Do });
        match came.first() {
            None => misfit(Some("ASK-05"), "no_line"),
            Some(how) if *how == way => Ok(()),
            Some(_) => misfit(None, "wrong_word"),
        }
    }

    fn is_canary(&self, _: &crate::contract::face::PlacedExpectation<Self>, part: &Expected<String>) -> bool {
        part.subject == Subject::Entity("b".to_owned())
    }

    fn phrase(&self, _: &Expected<String>, way: &String) -> String {
        way.clone()
    }

    fn text(&self, how: &String) -> String {
        how.clone()
    }
}

/// Transcript of a peer that printed `out`, wrote `file` and ended with `exit`.
fn transcript(out: &str, file: &str, exit: Option<Exit>) -> Transcript {
    let aim = Aim { clause: "ASK-09".into(), reason: None };
    let play = Act::Play { script: serde_json::Value::Null, life_ms: 1 };
    let step = Step { expect: serde_json::to_value(aim).unwrap(), ..Step::new(play) };
    let end = match exit {
        Some(exit) => EventKind::Exited { exit },
        None => EventKind::DeadlinePassed { awaited: Awaited::Exit, waited_ms: 9, slept: false },
    };
    let held = EventKind::FileHeld { file: "words".to_owned(), bytes: Bytes(file.as_bytes().to_vec()) };
    let kinds = [EventKind::Received { bytes: Bytes(out.as_bytes().to_vec()) }, end, held];
    Transcript {
        boundary: "toy".to_owned(),
        check: "by-hand".to_owned(),
        facts: Arc::new(Facts::new(Side::Consumer)),
        plan: Arc::new(Plan { sessions: vec![Session::default()], steps: vec![step], ..Plan::default() }),
        timeout_scale: 1.0,
        events: kinds.into_iter().map(|kind| Event { at_us: 0, session: 0, kind }).collect(),
    }
}

/// Clause, reason, nature and step of each finding.
fn said(transcript: &Transcript) -> Vec<String> {
    let findings = judge(&Asker, transcript).findings.into_iter();
    findings.map(|it| format!("{} {} {:?} {:?}", it.clause, it.reason, it.nature, it.step)).collect()
}

const WHOLE: &str = "a said\nb said\n";

#[test]
fn a_peer_that_says_all_and_ends_is_clean_and_shows_that_it_works() {
    let judgement = judge(&Asker, &transcript("a\nb\n", WHOLE, Some(Exit::Code(0))));
    assert_eq!((judgement.findings.as_slice(), judgement.canaries_answered), (&[][..], 1));
}

#[test]
fn what_is_wrong_with_a_call_is_told_under_the_aim_and_what_is_not_told_under_its_own_clause() {
    let of = |file: &str| said(&transcript("a\nb\n", file, Some(Exit::Code(0))));
    assert_eq!(of("a sung\nb said\n"), ["ASK-09 wrong_word Violation Some(0)"]);
    assert_eq!(of("b said\n"), ["ASK-05 no_line Violation Some(0)"]);
}

#[test]
fn an_end_is_told_once() {
    let of = |file: &str, exit| said(&transcript("a\n", file, exit));
    assert_eq!(of("", None), ["ASK-09 hung Hang Some(0)"]);
    assert_eq!(of(WHOLE, None), ["ASK-03 does_not_end Hang Some(0)"]);
    assert_eq!(of("", Some(Exit::Code(3))), ["ASK-09 exit_status Violation Some(0)"]);
    assert_eq!(of(WHOLE, Some(Exit::Code(3))), ["ASK-03 exit_status Violation Some(0)"]);
    assert_eq!(of("a said\n", Some(Exit::Signal(9))), ["ASK-09 crashed Crash Some(0)"]);
    let mut flood = transcript("a\n", "", None);
    let kind = EventKind::StdoutOverflow { bytes_max: 1, lines_max: None };
    flood.events.insert(1, Event { at_us: 0, session: 0, kind });
    assert_eq!(said(&flood), ["ASK-09 output_flood Violation Some(0)"]);
}

#[test]
fn output_that_asks_nothing_is_told_and_half_a_line_where_nobody_went_away() {
    let of = |out: &str| said(&transcript(out, WHOLE, Some(Exit::Code(0))));
    assert_eq!(of("a\nc\n"), ["ASK-01 other_output Violation Some(0)"]);
    assert_eq!(of("a\nb"), ["ASK-01 unfinished_line Violation Some(0)"]);
    let mut left = transcript("a\nb", WHOLE, Some(Exit::Code(0)));
    left.events.insert(1, Event { at_us: 0, session: 0, kind: EventKind::StdinClosed });
    assert_eq!(said(&left), [""; 0]);
}
