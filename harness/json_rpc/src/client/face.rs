//! The face of a client: derives the allowed ends of each call from the scenario and the server's messages.

use super::allowed_outcome::AllowedOutcome;
use super::client_conversation::{Client, ClientConversation};
use super::observations::{self, CallResult, LINES_MAX};
use super::scenario::Scenario;
use super::script::Script;
use super::{CANARY, COMMAND, outcomes, rules};
use peerproof_engine::contract::face::{
    Aim, Expectation, Expected, Face, Frame, Framing, Misfit, PlacedExpectation, Reading, Rule,
    SessionClauses, Stimulus, StimulusKind, Subject,
};
use peerproof_engine::contract::judge;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::finding::{Finding, Judgement, Repair};
use peerproof_engine::data::json::{self, DecodeLimits};
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::transcript::{Event, Transcript, strict};

const RESULTS: &str = "RPC-CLIENT-08";
const LIVES_ON: &str = "RPC-CLIENT-23";
const NOTHING_LEFT: &str = "RPC-CLIENT-25";

const SESSION_CLAUSES: SessionClauses = SessionClauses {
    protocol_only: "RPC-CLIENT-01",
    lives_on: LIVES_ON,
    no_process_left: NOTHING_LEFT,
    no_file_left: NOTHING_LEFT,
    ..SessionClauses::all("RPC-CLIENT-22")
};

impl Face for Client {
    type Message = CallResult;
    type Answer = AllowedOutcome;
    type Notes = ();
    type State = ClientConversation;

    fn framing(&self, command: &str) -> Option<Framing> {
        (command == COMMAND).then_some(Framing::Asks)
    }

    fn session_clauses(&self) -> &SessionClauses {
        &SESSION_CLAUSES
    }

    fn begin(&self, transcript: &Transcript) -> ClientConversation {
        ClientConversation::of(transcript)
    }

    fn expect(
        &self,
        known: &mut ClientConversation,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedOutcome>> {
        let StimulusKind::Begun = stimulus.what else { return None };
        let parts = (0..known.scenario.calls.len()).map(|at| outcomes::of(known, at)).collect();
        Some(Expectation { parts, together: false, whole: None })
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<CallResult> {
        if frame.bytes.iter().all(u8::is_ascii_whitespace) {
            return Reading::Blank;
        }
        let Err(error) = json::check(frame.bytes, &DecodeLimits::default()) else { return Reading::Blank };
        let got = format!("{error}: {}", String::from_utf8_lossy(frame.bytes));
        let expected = "only JSON-RPC messages";
        Reading::Broken(Finding::new(SESSION_CLAUSES.protocol_only, "other_output", expected, got))
    }

    fn observe(&self, event: &Event) -> Vec<(String, CallResult)> {
        observations::results(event).0.into_iter().map(|noted| (noted.name.clone(), noted)).collect()
    }

    fn fit(
        &self,
        _: &Expected<AllowedOutcome>,
        way: &AllowedOutcome,
        came: &[&CallResult],
    ) -> Result<(), Misfit> {
        let (clause, reason, repair) = match came.first().map(|noted| way.misfit(noted)) {
            None => (Some(RESULTS), "no_result_line", Repair::Do),
            Some(None) => return Ok(()),
            Some(Some(reason)) => (None, reason, Repair::Set { at: String::new(), to: None }),
        };
        // The misfit of the nearest outcome says most.
        Err(Misfit { rank: u8::from(reason == "wrong_outcome"), clause, reason, repair })
    }

    fn is_canary(&self, _: &PlacedExpectation<Self>, part: &Expected<AllowedOutcome>) -> bool {
        part.subject == Subject::Entity(CANARY.to_owned())
    }

    fn phrase(&self, _: &Expected<AllowedOutcome>, way: &AllowedOutcome) -> String {
        way.phrase()
    }

    fn text(&self, noted: &CallResult) -> String {
        noted.phrase()
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[rules::judge]
    }

    fn frames_spare(&self, _: &Transcript) -> usize {
        LINES_MAX
    }
}

/// Judges a transcript.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    judge::judge(&Client, transcript)
}

/// Refuses a plan whose aims, script or scenario have unread members.
///
/// # Errors
/// Names the unread member.
pub(crate) fn admit(plan: &Plan) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(plan)?;
    let mut played = plan.steps.iter().enumerate().filter_map(|(at, step)| match &step.act {
        Act::Play { script, .. } => Some((at, script)),
        _ => None,
    });
    if let Some((at, script)) = played.next() {
        strict::read::<Script>(script, &format!("plan/steps/{at}/play/script"))?;
    }
    if played.next().is_some() || plan.sessions.len() > 1 {
        return Err("plan: a check of a client needs exactly one played server".into());
    }
    let unread = "plan/fixtures: the scenario cannot be read, so nothing can be judged";
    Scenario::of(plan).ok_or(unread)?;
    match Scenario::unread(plan) {
        Some(place) => Err(format!("plan/fixtures: {place} of the scenario is unknown").into()),
        None => Ok(()),
    }
}
