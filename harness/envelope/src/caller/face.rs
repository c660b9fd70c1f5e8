//! The face of a caller: derives the allowed ends of its calls from the scenario and the replies.

use super::allowed_outcome::{AllowedOutcome, Caller, RESULTS, wrong};
use super::outcomes::{self, CallNotes};
use super::{COMMAND, rules};
use crate::equivalence::{Mode, differences};
use peerproof_engine::contract::asking::{self, CANARY, CallResult, ObservedCalls};
use peerproof_engine::contract::face::{
    Expectation, Expected, Face, Frame, Framing, Misfit, PlacedExpectation, Reading, Rule, SessionClauses,
    Stimulus, StimulusKind, Subject,
};
use peerproof_engine::contract::judge;
use peerproof_engine::data::finding::{Judgement, Repair};
use peerproof_engine::data::transcript::{Event, Transcript};

const EXITS: &str = "ENV-CALL-02";
const GROUP_GONE: &str = "ENV-CALL-22";
const STDIN_CLOSED: &str = "ENV-CALL-27";
const NOTHING_LEFT: &str = "ENV-CALL-39";

/// Tolerance for clocks of two processes and for timers that round, ms.
const EARLY_MS: u64 = 100;

const SESSION_CLAUSES: SessionClauses = SessionClauses {
    no_process_left: NOTHING_LEFT,
    no_file_left: NOTHING_LEFT,
    ..SessionClauses::all(EXITS)
};

impl Face for Caller {
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
        ObservedCalls::of(transcript)
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
        let number = |name: &str| {
            noted.line.get(name).and_then(peerproof_engine::data::json::Json::as_f64).unwrap_or(0.0)
        };
        if part.extra.unbegun && matches!(noted.outcome.as_str(), "envelope" | "refused" | "invalid") {
            return misfit(0, rules::REQUEST, "never_begun", Repair::Send);
        }
        if part.extra.latest_ms > 0 && number("elapsed_ms") > part.extra.latest_ms as f64 {
            return misfit(0, outcomes::TIMEOUT, "too_late", Repair::Sooner);
        }
        match (way, noted.outcome.as_str()) {
            (AllowedOutcome::Envelope(reply), "envelope") => {
                let null = peerproof_engine::data::json::Json::Null;
                let told = noted.line.get("envelope").unwrap_or(&null);
                match differences(reply, told, Mode::Caller).into_iter().next() {
                    None => Ok(()),
                    Some(it) => {
                        let to = reply.raw.pointer(&it.at).map(|value| value.to_text());
                        let repair = Repair::Set { at: it.at, to: to.filter(|text| text.len() < 1_000) };
                        misfit(0, outcomes::kept_clause(it.clause), it.reason, repair)
                    }
                }
            }
            (AllowedOutcome::Refused(status), "refused") => match number("status") == *status as f64 {
                true => Ok(()),
                false => misfit(0, part.clause, "wrong_status", set()),
            },
            (AllowedOutcome::Timeout(ms, latest_ms), "timeout") => match number("elapsed_ms") {
                took if took + (EARLY_MS as f64) < *ms as f64 => misfit(0, part.clause, "too_early", set()),
                took if took > *latest_ms as f64 => misfit(0, part.clause, "too_late", Repair::Sooner),
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
            AllowedOutcome::Envelope(reply) => {
                let text = reply.raw.to_text();
                format!("envelope: {}", peerproof_engine::data::payload::shorten(&text, 240))
            }
            AllowedOutcome::Refused(status) => format!("refused with status {status}"),
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
    judge::judge(&Caller, transcript)
}

#[cfg(test)]
mod tests {
    use super::super::cases::{Reply, called, canary};
    use super::*;
    use crate::talk;
    use peerproof_engine::contract::asking::{RESULTS as FILE, SceneBuilder};
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::payload::Payload;
    use peerproof_engine::data::transcript::{Bytes, EventKind, Exit};
    use std::sync::Arc;

    /// Clauses of the findings about a caller that started these programs and wrote `line` for the call `a`. The
    /// engine replies with `reply`.
    fn found(reply: &str, started: &[&str], line: &str) -> Vec<String> {
        found_of(talk::PLAIN, talk::PLAIN, reply, started, line)
    }

    /// Clauses of the findings about a scenario with the envelope `told`, for which the caller sent `sent`.
    fn found_of(told: &str, sent: &str, reply: &str, started: &[&str], line: &str) -> Vec<String> {
        let mut scene = SceneBuilder::default();
        let reply = Reply { text: Payload::text(reply), ..Reply::default() };
        called(&mut scene, "a", told, false, reply);
        canary(&mut scene);
        let mut kinds = Vec::new();
        for (name, actor) in started.iter().map(|name| (name, asking::played(name))) {
            let sent = if *name == "a" { sent } else { talk::PLAIN };
            let bytes = Bytes(sent.as_bytes().to_vec());
            kinds.push(EventKind::ActorStarted { actor: actor.clone(), argv: Vec::new(), pid: 1 });
            kinds.push(EventKind::ActorReceived { actor: actor.clone(), bytes, pid: None });
            kinds.push(EventKind::ActorEnded { actor, pid: 1, exit: Exit::Code(0) });
        }
        let last = format!(
            "{{\"ref\":\"canary\",\"outcome\":\"envelope\",\"elapsed_ms\":1,\"envelope\":{}}}",
            talk::PLAIN
        );
        let line = line.replace("PLAIN", talk::PLAIN);
        kinds.push(EventKind::Exited { exit: Exit::Code(0) });
        kinds.push(EventKind::FileHeld {
            file: FILE.to_owned(),
            bytes: Bytes(format!("{line}\n{last}\n").into_bytes()),
        });
        let transcript = Transcript {
            boundary: "envelope".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Consumer)),
            plan: Arc::new(scene.plan(COMMAND, "ENV-CALL-03")),
            timeout_scale: 1.0,
            events: (0..).zip(kinds).map(|(at_us, kind)| Event { at_us, session: 0, kind }).collect(),
        };
        judge(&transcript).findings.into_iter().map(|it| format!("{} {}", it.clause, it.reason)).collect()
    }

    const BOTH: [&str; 2] = ["a", "canary"];
    const ENVELOPE: &str = r#"{"ref":"a","outcome":"envelope","elapsed_ms":1,"envelope":PLAIN}"#;
    const INVALID: &str = r#"{"ref":"a","outcome":"invalid","elapsed_ms":1}"#;

    #[test]
    fn what_came_is_what_may_be_told() {
        assert_eq!(found(talk::PLAIN, &BOTH, ENVELOPE), [""; 0]);
        assert_eq!(found(talk::PLAIN, &BOTH, INVALID), ["ENV-CALL-03 wrong_outcome"]);
        assert_eq!(found("{}{}", &BOTH, INVALID), [""; 0]);
        assert_eq!(found("", &BOTH, ENVELOPE), ["ENV-CALL-07 wrong_outcome"]);
        let under = talk::with(talk::PLAIN, [("iteration", "-1")]);
        assert_eq!(found(&under, &BOTH, ENVELOPE), ["ENV-CALL-10 wrong_outcome"]);
        let more = talk::with(talk::PLAIN, [("x", "1")]);
        assert_eq!(found(&more, &BOTH, ENVELOPE), ["ENV-CALL-17 lost"]);
    }

    #[test]
    fn what_was_never_begun_is_made_up_and_twice_is_too_often() {
        assert_eq!(found(talk::PLAIN, &["canary"], ENVELOPE), ["ENV-CALL-25 never_begun"]);
        assert_eq!(found("{}{}", &["canary"], INVALID), ["ENV-CALL-25 never_begun"]);
        assert_eq!(found(talk::PLAIN, &["a", "a", "canary"], ENVELOPE)[..1], ["ENV-CALL-29 repeated"]);
    }

    /// The sent envelope must satisfy the schema, even if the scenario's envelope lacks members.
    #[test]
    fn a_null_that_is_sent_is_no_date_time() {
        let null = talk::with(talk::PLAIN, [("received_at", "null")]);
        for told in [null.as_str(), talk::PLAIN] {
            let found = found_of(told, &null, talk::PLAIN, &BOTH, ENVELOPE);
            assert_eq!(found, ["ENV-CALL-26 null_emitted"], "{told}");
        }
    }

    /// A caller must not terminate an envelope.
    #[test]
    fn a_caller_ends_nothing() {
        let ended = |state| {
            let reply = talk::with(talk::PLAIN, [state]);
            let reason = "\"clarification_required\"";
            let end = [("terminated", "true"), ("terminal_reason", reason), ("termination_reason", reason)];
            let line = ENVELOPE.replace("PLAIN", &talk::with(&reply, end));
            found(&reply, &BOTH, &line)
        };
        assert_eq!(ended(("clarification_pending", "true")), ["ENV-CALL-19 advanced"]);
        assert_eq!(ended(("llm_call_count", "11")), ["ENV-CALL-19 advanced"]);
    }

    #[test]
    fn a_line_of_another_form_is_told() {
        for line in
            [r#"{"ref":"a","outcome":"done","elapsed_ms":1}"#, r#"{"ref":"a","outcome":"invalid"}"#, "{'ref'"]
        {
            assert!(found("", &BOTH, line).contains(&"ENV-CALL-01 bad_result_line".to_owned()), "{line}");
        }
    }
}
