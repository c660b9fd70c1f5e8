//! The face of a runtime: derives the allowed ends of its calls from the scenario and the replies.

use super::allowed_outcome::{AllowedOutcome, EARLY_MS, RESULTS, Runtime, duration_ms, wrong};
use super::outcomes::{self, CallNotes};
use super::{COMMAND, rules};
use peerproof_engine::contract::asking::{self, CANARY, CallResult, ObservedCalls};
use peerproof_engine::contract::face::{
    Expectation, Expected, Face, Frame, Framing, Misfit, PlacedExpectation, Reading, Rule, SessionClauses,
    Stimulus, StimulusKind, Subject,
};
use peerproof_engine::contract::judge;
use peerproof_engine::data::finding::{Judgement, Repair};
use peerproof_engine::data::json::{self, Json};
use peerproof_engine::data::transcript::{Event, Transcript};

const EXITS: &str = "PT-RT-02";
const GROUP_GONE: &str = "PT-RT-20";
const STDIN_CLOSED: &str = "PT-RT-31";
const NOTHING_LEFT: &str = "PT-RT-65";

const SESSION_CLAUSES: SessionClauses = SessionClauses {
    no_process_left: NOTHING_LEFT,
    no_file_left: NOTHING_LEFT,
    ..SessionClauses::all(EXITS)
};

impl Face for Runtime {
    type Message = CallResult;
    type Answer = AllowedOutcome;
    type Notes = CallNotes;
    type State = ObservedCalls;

    fn framing(&self, command: &str) -> Option<Framing> {
        (command == COMMAND).then_some(Framing::Calls)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn session_clauses_of(&self, transcript: &Transcript, _session: usize) -> SessionClauses {
        ObservedCalls::of(transcript).session_clauses(SESSION_CLAUSES, GROUP_GONE)
    }

    fn begin(&self, transcript: &Transcript) -> ObservedCalls {
        outcomes::known(transcript)
    }

    fn expect(
        &self,
        known: &mut ObservedCalls,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedOutcome, CallNotes>> {
        let StimulusKind::Begun = stimulus.what else { return None };
        let parts = (0..known.calls.len()).map(|at| outcomes::of(known, at)).collect();
        Some(Expectation { parts, together: false, whole: None })
    }

    fn read(&self, _: &Frame<'_>) -> Reading<CallResult> {
        Reading::Blank
    }

    fn observe(&self, event: &Event) -> Vec<(String, CallResult)> {
        let noted = asking::results(&event.kind, wrong).0;
        noted.into_iter().map(|noted| (noted.name.clone(), noted)).collect()
    }

    fn fit(
        &self,
        part: &Expected<AllowedOutcome, CallNotes>,
        way: &AllowedOutcome,
        came: &[&CallResult],
    ) -> Result<(), Misfit> {
        let misfit =
            |rank, clause, reason, repair| Err(Misfit { rank, clause: Some(clause), reason, repair });
        let set = || Repair::Set { at: String::new(), to: None };
        let Some(noted) = came.first() else { return misfit(0, RESULTS, "no_result_line", Repair::Do) };
        // On a busy machine nothing may have been started before the timeout.
        let is_left = match noted.outcome.as_str() {
            "blocked" | "bad_call" | "timeout" => true,
            "unavailable" => part.extra.unasked,
            _ => false,
        };
        if let Some(clause) = part.extra.unbegun
            && part.extra.forbidden.is_none()
            && !is_left
        {
            return misfit(0, clause, "never_begun", Repair::Send);
        }
        match (way, noted.outcome.as_str()) {
            (AllowedOutcome::Result(sent), "result") => {
                let came = noted.line.get("result").is_some_and(|result| json::is_kept(sent, result));
                let to = Some(sent.to_text()).filter(|text| text.len() < 1_000);
                let repair = Repair::Set { at: "/result".to_owned(), to };
                let clause =
                    if part.clause == outcomes::PIECES { outcomes::PIECES } else { outcomes::UNCHANGED };
                if came { Ok(()) } else { misfit(0, clause, "other_result", repair) }
            }
            (AllowedOutcome::ToolError(None), "tool_error") => Ok(()),
            (AllowedOutcome::ToolError(Some(sent)), "tool_error") => {
                let told = |name: &str| noted.line.get("error").and_then(|error| error.get(name));
                let of = |value: Option<&Json>| value.and_then(Json::as_str).map(str::to_owned);
                let names = ["type", "message", "reason_code"];
                match names.into_iter().find(|name| of(sent.get(name)) != of(told(name))) {
                    None => Ok(()),
                    Some(name) => {
                        let to = sent.get(name).map(Json::to_text);
                        let repair = Repair::Set { at: format!("/error/{name}"), to };
                        misfit(0, outcomes::FAILURE, "other_error", repair)
                    }
                }
            }
            (AllowedOutcome::Timeout(ms, latest_ms), "timeout") => match duration_ms(noted) {
                Some(took) if took + EARLY_MS < *ms as f64 => misfit(
                    0,
                    part.clause,
                    "too_early",
                    Repair::Set { at: "/trace/duration_ms".to_owned(), to: None },
                ),
                Some(took) if took > *latest_ms as f64 => misfit(0, part.clause, "too_late", Repair::Sooner),
                _ => Ok(()),
            },
            (AllowedOutcome::Plain(outcome), told) if *outcome == told => Ok(()),
            (_, "timeout") if part.extra.early => misfit(1, outcomes::READS_EARLY, "wrong_outcome", set()),
            (_, "timeout") if part.extra.unread => misfit(1, STDIN_CLOSED, "wrong_outcome", set()),
            _ => misfit(1, part.clause, "wrong_outcome", set()),
        }
    }

    fn is_canary(&self, _: &PlacedExpectation<Self>, part: &Expected<AllowedOutcome, CallNotes>) -> bool {
        part.subject == Subject::Entity(CANARY.to_owned())
    }

    fn phrase(&self, _: &Expected<AllowedOutcome, CallNotes>, way: &AllowedOutcome) -> String {
        match way {
            AllowedOutcome::Result(result) => format!("result: {}", result.to_text()),
            AllowedOutcome::ToolError(Some(error)) => format!("tool_error: {}", error.to_text()),
            AllowedOutcome::ToolError(None) => "tool_error".to_owned(),
            AllowedOutcome::Timeout(ms, latest_ms) => asking::timeout_phrase(*ms, *latest_ms),
            AllowedOutcome::Plain(outcome) => (*outcome).to_owned(),
        }
    }

    fn text(&self, noted: &CallResult) -> String {
        noted.phrase()
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[rules::judge]
    }
}

/// Judges a transcript.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge::judge(&Runtime, transcript);
    rules::memory(transcript, &mut judgement);
    judgement
}

#[cfg(test)]
mod tests {
    use super::super::cases::{called, canary, reply, scene};
    use super::*;
    use peerproof_engine::contract::asking::RESULTS as FILE;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::transcript::{Bytes, EventKind, Exit};
    use std::sync::Arc;

    const REQUEST: &str = r#"{"protocol_version":1,"tool":"greeter","entry":"tools.sample_tool:greet","payload":{"name":"Ada"}}"#;
    const TRACE: &str = r#""trace":{"runner":"local","resolved_source":"binding","timeout_ms":8000,"duration_ms":0,"protocol_version":1,"python_env":"x","python_path":"x","deps_source":"x"}"#;
    const RESULT: &str = r#""outcome":"result","result":{"message":"Hello Ada","ok":true}"#;
    const INVALID: &str = r#""outcome":"invalid","error":{"type":"x","message":"x"}"#;

    /// Clauses of the findings about a runtime that started these programs and wrote `told` for the call `a`. The
    /// runner replies with `text`.
    fn found(text: &str, started: &[&str], told: &str) -> Vec<String> {
        let mut scene = scene();
        called(&mut scene, "a", false, 0, text.to_owned());
        canary(&mut scene, vec!["a".to_owned()]);
        let mut kinds = Vec::new();
        for actor in started.iter().map(|name| asking::played(name)) {
            let bytes = Bytes(REQUEST.as_bytes().to_vec());
            kinds.push(EventKind::ActorStarted { actor: actor.clone(), argv: Vec::new(), pid: 1 });
            kinds.push(EventKind::ActorReceived { actor: actor.clone(), bytes, pid: None });
            kinds.push(EventKind::ActorEnded { actor, pid: 1, exit: Exit::Code(0) });
        }
        let lines =
            format!("{{\"ref\":\"a\",{told}}}\n{{\"ref\":\"canary\",{RESULT},{TRACE}}}\n").into_bytes();
        kinds.push(EventKind::Exited { exit: Exit::Code(0) });
        kinds.push(EventKind::FileHeld { file: FILE.to_owned(), bytes: Bytes(lines) });
        let transcript = Transcript {
            boundary: "python_tool".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Consumer)),
            plan: Arc::new(scene.plan(COMMAND, "PT-RT-04")),
            timeout_scale: 1.0,
            events: (0..).zip(kinds).map(|(at_us, kind)| Event { at_us, session: 0, kind }).collect(),
        };
        judge(&transcript).findings.into_iter().map(|it| format!("{} {}", it.clause, it.reason)).collect()
    }

    #[test]
    fn what_came_is_what_may_be_told() {
        let both = ["a", "canary"];
        let right = format!("{RESULT},{TRACE}");
        let invalid = format!("{INVALID},{TRACE}");
        let success = reply(false, false);
        assert_eq!(found(success, &both, &right), [""; 0]);
        assert_eq!(found(success, &both, &invalid), ["PT-RT-04 wrong_outcome"]);
        assert_eq!(found("{}", &both, &invalid), [""; 0]);
        assert_eq!(found("{}", &both, &right), ["PT-RT-09 wrong_outcome"]);
        assert_eq!(found(success, &["canary"], &right), ["PT-RT-26 never_begun"]);
        assert_eq!(found(success, &["a", "a", "canary"], &right)[..1], ["PT-RT-33 repeated"]);
        assert_eq!(found(success, &both, RESULT), ["PT-RT-52 no_trace"]);
        let failed = |error: &str| format!(r#""outcome":"tool_error"{error},{TRACE}"#);
        let bare = r#"{"ok":false,"protocol_version":1,"error":{"type":"E"}}"#;
        assert_eq!(found(bare, &both, &failed(r#","error":{"type":"E"}"#)), [""; 0]);
        assert_eq!(found(bare, &both, &failed("")), ["PT-RT-03 no_message"]);
    }
}
