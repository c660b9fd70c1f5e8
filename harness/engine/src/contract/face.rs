//! Faces: one side of a boundary with one model.
//!
//! A face models and the engine judges (`judge.rs`). The model sees every recorded stimulus in order: a line written, a
//! process that ended, output of an actor, a file put somewhere. For each it states the allowed answers and the
//! required or forbidden effects. The judge matches answers to requests, looks for the effects, and turns every
//! difference into a finding. A model never sees the judge's verdicts, and the judge never learns the meaning of a
//! message.

mod trace;

use std::fmt::Debug;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::data::carriage::Carriage;
use crate::data::check::Untestable;
use crate::data::clause::ClauseId;
use crate::data::finding::{Finding, Judgement, Repair};
use crate::data::lines::RequestLine;
use crate::data::plan::{Plan, Step};
use crate::data::transcript::{Event, EventKind, Exit, Transcript};

pub use trace::{
    Answer, FrameContent, HttpExchange, HttpReplyHead, HttpTrace, Match, Output, SessionTrace, Trace,
};

/// Clause that a step of a plan is about; stored in `Step::expect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aim {
    /// Clause that a wrong answer to the step breaks.
    pub clause: ClauseId,
    /// Reason code; `None` for that of the misfit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Aim {
    /// Value of `Step::expect` for a step about `clause`; null if that is empty.
    pub fn about(clause: &str) -> serde_json::Value {
        let aim = (!clause.is_empty()).then(|| Self { clause: clause.into(), reason: None });
        serde_json::to_value(aim).unwrap_or_default()
    }

    /// The aim of a step; `None` for a step without one.
    pub fn of(step: &Step) -> Option<Self> {
        serde_json::from_value(step.expect.clone()).ok()
    }
}

/// Form in which a command takes input and gives output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One message per line in both directions, as long as the process lives.
    Lines,
    /// One exchange per process: all of standard input is the message, all of standard output the answer.
    Whole,
    /// HTTP server: the body of each request is a message, the body of its reply the answer.
    Bodies,
    /// The process asks and the harness answers, one message per line in both directions, until the process has no more
    /// to ask. The outcomes of its calls are histories of entities.
    Asks,
    /// As [`Framing::Asks`], but the process asks by starting programs and connecting to servers: its output has no
    /// meaning.
    Calls,
    /// The harness does not talk to the process, whose acts show only in their effects.
    Silent,
}

impl Framing {
    /// True if the process asks: it ends when it has no more to ask, and the outcomes of its calls are things.
    pub fn asks(self) -> bool {
        matches!(self, Self::Asks | Self::Calls)
    }
}

/// Rule that assigns an answer to its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// Answers come in the order of requests.
    Turn,
    /// The answer carries this key (an id). A message without a key answers whatever it fits.
    Key(Option<String>),
    /// The answer is the history of this entity outside the conversation, such as a job.
    Entity(String),
}

/// Allowed outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed<W> {
    /// Kind of outcome.
    pub outcome: Outcome<W>,
    /// Value of the open choice that the outcome shows.
    pub shows: Option<&'static str>,
}

/// Kind of outcome of a stimulus.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<W> {
    /// Fitting answer.
    Answer(W),
    /// No answer.
    Silence,
}

impl<W> Allowed<W> {
    /// Allows an answer.
    pub fn answer(way: W) -> Self {
        Self { outcome: Outcome::Answer(way), shows: None }
    }

    /// Allows no answer.
    pub fn silence() -> Self {
        Self { outcome: Outcome::Silence, shows: None }
    }

    /// Sets the value of the open choice that the outcome shows.
    #[must_use]
    pub fn shows(self, value: &'static str) -> Self {
        Self { shows: Some(value), ..self }
    }

    /// True if the outcome is silence.
    pub(crate) fn is_silence(&self) -> bool {
        matches!(self.outcome, Outcome::Silence)
    }
}

/// Allowed outcomes of one stimulus, and its required or forbidden effects.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected<W, X = ()> {
    /// Clause that any other outcome breaks.
    pub clause: &'static str,
    /// Assignment of its answer.
    pub subject: Subject,
    /// Allowed outcomes.
    pub allowed: Vec<Allowed<W>>,
    /// Key of the open choice that the alternatives show.
    pub choice: Option<&'static str>,
    /// Required or forbidden effects.
    pub effects: Vec<Effect>,
    /// Notes of the face for later.
    pub extra: X,
}

impl<W, X: Default> Expected<W, X> {
    /// Allows these outcomes, under this clause.
    pub fn new(clause: &'static str, subject: Subject, allowed: Vec<Allowed<W>>) -> Self {
        Self { clause, subject, allowed, choice: None, effects: Vec::new(), extra: X::default() }
    }
}

impl<W, X> Expected<W, X> {
    /// Adds a required or forbidden effect.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Sets the open choice that the alternatives show.
    #[must_use]
    pub fn about(self, choice: &'static str) -> Self {
        Self { choice: Some(choice), ..self }
    }

    /// Removes the choices: if two are open at once, an outcome does not tell which of them it shows.
    pub fn clear_choices(&mut self) {
        self.choice = None;
        self.allowed.iter_mut().for_each(|allowed| allowed.shows = None);
    }

    /// True if its answer is the history of an entity, so that no message is due.
    pub(crate) fn is_of_entity(&self) -> bool {
        matches!(self.subject, Subject::Entity(_))
    }

    /// True if silence is allowed.
    pub fn may_be_silent(&self) -> bool {
        self.is_of_entity() || self.silence().is_some()
    }

    /// True if only silence is allowed.
    pub fn must_be_silent(&self) -> bool {
        self.is_of_entity() || self.allowed.iter().all(Allowed::is_silence)
    }

    /// The alternative that allows no reply, if any.
    pub fn silence(&self) -> Option<&Allowed<W>> {
        self.allowed.iter().find(|allowed| allowed.is_silence())
    }

    /// Allowed answers, each with its alternative.
    pub fn allowed_answers(&self) -> impl Iterator<Item = (&Allowed<W>, &W)> {
        self.allowed.iter().filter_map(|allowed| match &allowed.outcome {
            Outcome::Answer(way) => Some((allowed, way)),
            Outcome::Silence => None,
        })
    }

    /// Key of its message.
    pub fn key(&self) -> Option<&str> {
        match &self.subject {
            Subject::Key(key) => key.as_deref(),
            Subject::Turn | Subject::Entity(_) => None,
        }
    }
}

/// Answers due for one stimulus.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation<W, X = ()> {
    /// Parts with one answer each.
    pub parts: Vec<Expected<W, X>>,
    /// Set if the answers come together in one frame (a batch).
    pub together: bool,
    /// Single answer that may come instead of the parts.
    pub whole: Option<Expected<W, X>>,
}

impl<W, X> Expectation<W, X> {
    /// True if silence is allowed.
    pub fn may_be_silent(&self) -> bool {
        self.parts.iter().all(Expected::may_be_silent)
            || self.whole.as_ref().is_some_and(Expected::may_be_silent)
    }

    /// True if only silence is allowed.
    pub fn must_be_silent(&self) -> bool {
        self.parts.iter().all(Expected::must_be_silent)
    }

    /// One answer is due.
    pub fn one(part: Expected<W, X>) -> Self {
        Self { parts: vec![part], together: false, whole: None }
    }
}

/// Requirement on an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The effect must be seen.
    Must,
    /// The effect must not be seen, although its control is.
    MustNot,
}

/// Required or forbidden effect outside the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// Clause of the effect.
    pub clause: &'static str,
    /// Reason code of its finding.
    pub reason: &'static str,
    /// Requirement on it.
    pub need: Need,
    /// Sign that shows it.
    pub sign: Sign,
    /// Sign of the same effect in an allowed place, which shows that the effect could be seen. Without a control, only
    /// the absence of [`Sign::Told`] proves anything.
    pub control: Option<Sign>,
}

/// Trace of an effect in a transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Sign {
    /// A look with this label found a file, or with `holds` a file with these bytes.
    Found {
        /// Label of the look.
        label: String,
        /// Bytes that the file must contain.
        holds: Option<Vec<u8>>,
    },
    /// A look with this label found no file, or with `holds` no file with these bytes.
    Gone {
        /// Label of the look.
        label: String,
        /// Bytes that no file contains.
        holds: Option<Vec<u8>>,
    },
    /// A look with this label found a file with these permission bits.
    Mode {
        /// Label of the look.
        label: String,
        /// Permission bits.
        mode: u32,
    },
    /// A listener was contacted, or with `holds` by a request with these bytes.
    Hit {
        /// Name of the fixture.
        listener: String,
        /// Bytes that the request must contain.
        holds: Option<Vec<u8>>,
    },
    /// An actor was started this many times with these bytes.
    Starts {
        /// Name of the fixture.
        actor: String,
        /// Bytes in its input or arguments; empty matches any.
        holds: Vec<u8>,
        /// Number of starts.
        times: RangeInclusive<usize>,
    },
    /// The peer's output contains these bytes.
    Told {
        /// Bytes to find.
        holds: Vec<u8>,
    },
}

/// Frame of the peer's output.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Exact bytes without the delimiter.
    pub bytes: &'a [u8],
    /// Exit of the process, for [`Framing::Whole`]; the face judges it.
    pub exit: Option<Exit>,
    /// Status of the HTTP reply, for [`Framing::Bodies`].
    pub status: Option<u16>,
    /// Set if an answer is due to its request; always set for lines, which are not assigned yet.
    pub is_due: bool,
}

/// Content of a decoded frame.
pub enum Reading<M> {
    /// One message.
    Message(M),
    /// Several messages in one frame.
    Together {
        /// All of the frame as one message, for use if no group was asked.
        all: M,
        /// The single messages.
        messages: Vec<M>,
    },
    /// Allowed message that answers nothing, such as a call of the peer's own.
    Beside(M),
    /// Neither a message nor a fault, such as a blank line.
    Blank,
    /// Answer that cannot be decoded. It stands in the place of an answer, so that its request is not reported as
    /// unanswered.
    Garbled(Finding),
    /// Undecodable frame that need not be an answer, such as a log line.
    Broken(Finding),
}

/// Event that the peer had to react to, in transcript order.
#[derive(Debug, Clone, Copy)]
pub struct Stimulus<'a> {
    /// Session of the plan.
    pub session: usize,
    /// Time, microseconds.
    pub at_us: u64,
    /// Step of the plan that caused it, if any.
    pub step: Option<usize>,
    /// Set if the harness has awaited all answers to earlier stimuli.
    pub fenced: bool,
    /// HTTP settings of the message.
    pub how: Option<&'a Carriage>,
    /// Kind of stimulus.
    pub what: StimulusKind<'a>,
}

/// Kind of stimulus.
#[derive(Debug, Clone, Copy)]
pub enum StimulusKind<'a> {
    /// The session begins, with everything that the plan gives its peer.
    Begun,
    /// A message was written to the peer.
    Said(&'a RequestLine),
    /// Another event was recorded: a process ended, a file was put, an actor wrote.
    Happened(&'a EventKind),
}

/// Reason why an answer does not fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Misfit {
    /// Distance from fitting; among several misfits the least counts.
    pub rank: u8,
    /// Broken clause; `None` for that of the part.
    pub clause: Option<&'static str>,
    /// Reason code.
    pub reason: &'static str,
    /// Smallest edit that makes the answer fit.
    pub repair: Repair,
}

/// Clauses about frames and processes that apply to every conversation of a face.
#[derive(Debug, Clone, Copy)]
pub struct SessionClauses {
    /// Exactly one answer comes per request, as long as input stays open.
    pub one_reply: &'static str,
    /// An answer comes before the end of input.
    pub flushed: &'static str,
    /// Standard output holds only messages.
    pub protocol_only: &'static str,
    /// Answers to a group of requests come in one frame.
    pub together: Option<BatchClauses>,
    /// The process exits in order after the end of its input.
    pub ends_at_eof: &'static str,
    /// The process ends on SIGTERM.
    pub ends_at_term: &'static str,
    /// A server survives every input.
    pub lives_on: &'static str,
    /// The process leaves no process behind.
    pub no_process_left: &'static str,
    /// The process leaves no file behind.
    pub no_file_left: &'static str,
}

impl SessionClauses {
    /// Uses one clause for everything.
    pub const fn all(clause: &'static str) -> Self {
        Self {
            one_reply: clause,
            flushed: clause,
            protocol_only: clause,
            together: None,
            ends_at_eof: clause,
            ends_at_term: clause,
            lives_on: clause,
            no_process_left: clause,
            no_file_left: clause,
        }
    }
}

/// Answers that come together: words and clauses.
#[derive(Debug, Clone, Copy)]
pub struct BatchClauses {
    /// Word for requests together, such as `batch`.
    pub group: &'static str,
    /// Word for answers together, such as `array`.
    pub frame: &'static str,
    /// The answers come in one frame.
    pub in_one: &'static str,
    /// Each request of the group has one answer.
    pub once: &'static str,
    /// No frame comes if no answer is due.
    pub nothing: &'static str,
}

/// Finds faults of one session, given the whole trace.
pub type Rule<F> = fn(&Trace<'_, F>, &SessionTrace<'_, F>) -> Vec<Finding>;

/// Part of the model's expectation for one answer.
pub type ExpectedPart<F> = Expected<<F as Face>::Answer, <F as Face>::Notes>;

/// One side of a boundary with one model. All methods are pure.
pub trait Face: Sync + Sized {
    /// Decoded frame.
    type Message;
    /// Description of one allowed answer.
    type Answer: Clone + Debug;
    /// Notes of the face about an expectation.
    type Notes: Clone + Debug;
    /// State of the model while it reads a conversation.
    type State;

    /// Framing of the processes of `command`; `None` if they are not peers of this face.
    fn framing(&self, command: &str) -> Option<Framing>;

    /// Clauses about frames and processes.
    fn session_clauses(&self) -> &SessionClauses;

    /// Clauses about frames and processes in one session, if its requests change the blame.
    fn session_clauses_of(&self, _transcript: &Transcript, _session: usize) -> SessionClauses {
        *self.session_clauses()
    }

    /// State before the first event.
    fn begin(&self, transcript: &Transcript) -> Self::State;

    /// Answers due for a stimulus; `None` if it only changes the state.
    fn expect(
        &self,
        state: &mut Self::State,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<Self::Answer, Self::Notes>>;

    /// Completes expectations once all stimuli are known.
    fn complete(&self, _state: &mut Self::State, _plan: &Plan, _asked: &mut [PlacedExpectation<Self>]) {}

    /// Completes the expectation for an HTTP request from the fate of that request.
    fn carried(
        &self,
        _asked: &mut PlacedExpectation<Self>,
        _line: &RequestLine,
        _how: Option<&Carriage>,
        _exchange: &HttpExchange<'_>,
    ) {
    }

    /// Findings or choices that the head of an HTTP reply shows.
    fn status(&self, _exchange: &HttpTrace<'_, Self>) -> Judgement {
        Judgement::default()
    }

    /// Decodes a frame.
    fn read(&self, frame: &Frame<'_>) -> Reading<Self::Message>;

    /// Names of entities outside conversations that an event shows, each with its new state.
    fn observe(&self, _event: &Event) -> Vec<(String, Self::Message)> {
        Vec::new()
    }

    /// Key of the request that a message answers.
    fn key(&self, _message: &Self::Message) -> Option<String> {
        None
    }

    /// True if two keys differ only in the type of their value, as `1` and `"1"`.
    fn is_same_text(&self, _due: &str, _came: &str) -> bool {
        false
    }

    /// True if a message refuses a whole group of requests of any kind.
    fn refuses_all(&self, _message: &Self::Message) -> bool {
        false
    }

    /// Compares `came` with `way`. `came` is one message or the whole history of an entity.
    ///
    /// # Errors
    /// Returns the misfit.
    fn fit(
        &self,
        part: &ExpectedPart<Self>,
        way: &Self::Answer,
        came: &[&Self::Message],
    ) -> Result<(), Misfit>;

    /// True if `came` fits `way`. A face may decide it faster than [`Face::fit`] does.
    fn fits(&self, part: &ExpectedPart<Self>, way: &Self::Answer, came: &[&Self::Message]) -> bool {
        self.fit(part, way, came).is_ok()
    }

    /// True if a message breaks a rule for every message at the place of a misfit. The misfit is then only a
    /// consequence.
    fn is_malformed_at(&self, _message: &Self::Message, _misfit: &Misfit) -> bool {
        false
    }

    /// Value of the open choice that a fitting answer shows.
    fn shows(
        &self,
        _part: &ExpectedPart<Self>,
        allowed: &Allowed<Self::Answer>,
        _came: &[&Self::Message],
    ) -> Option<&'static str> {
        allowed.shows
    }

    /// True where a step without an aim is about the question that its message asks.
    fn is_about_its_message(&self) -> bool {
        false
    }

    /// Reason why a fitting answer does not decide its step.
    fn leaves_open(
        &self,
        _part: &ExpectedPart<Self>,
        _aim: Option<&Aim>,
        _came: &[&Self::Message],
    ) -> Option<Untestable> {
        None
    }

    /// True if a correct answer shows that the peer still works.
    fn is_canary(&self, asked: &PlacedExpectation<Self>, _part: &ExpectedPart<Self>) -> bool {
        asked.canary
    }

    /// True if a wrong answer to a canary still shows a working peer. A refusal that any broken program might give does
    /// not.
    fn shows_work(&self, _message: &Self::Message) -> bool {
        true
    }

    /// Describes a way in one phrase.
    fn phrase(&self, part: &ExpectedPart<Self>, way: &Self::Answer) -> String;

    /// Renders a message as text.
    fn text(&self, message: &Self::Message) -> String;

    /// True if an unmatched message may be a second answer to this part.
    fn may_repeat(&self, _part: &ExpectedPart<Self>) -> bool {
        false
    }

    /// Number of frames accepted besides answers.
    fn frames_spare(&self, _transcript: &Transcript) -> usize {
        0
    }

    /// Rules for the whole trace.
    fn rules(&self) -> &[Rule<Self>] {
        &[]
    }

    /// Revises the judgement of a conversation, given its whole trace.
    fn revise(&self, _trace: &Trace<'_, Self>, _judgement: &mut Judgement) {}

    /// True if a peer may end by itself in a recorded conversation.
    fn may_leave(&self, _transcript: &Transcript) -> bool {
        false
    }
}

/// Position of a request in its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionPosition {
    /// Index of the event that began it.
    pub sent: usize,
    /// Number of times the harness had awaited replies before it.
    pub round: usize,
}

/// Answers due for one stimulus, with its place in the conversation.
pub struct PlacedExpectation<F: Face> {
    /// Session of the plan.
    pub session: usize,
    /// Step of the plan.
    pub step: usize,
    /// Number of its line among those of the session.
    pub line: Option<usize>,
    /// Set if the step is a canary.
    pub canary: bool,
    /// Aim of the step.
    pub aim: Option<Aim>,
    /// Time, microseconds.
    pub at_us: u64,
    /// Position among the events of the session.
    pub spot: SessionPosition,
    /// Answers due.
    pub due: Expectation<F::Answer, F::Notes>,
}

impl<F: Face> PlacedExpectation<F> {
    /// True if all its answers are histories of entities.
    pub(crate) fn is_of_entities(&self) -> bool {
        !self.due.parts.is_empty() && self.due.parts.iter().all(Expected::is_of_entity)
    }

    /// Files a finding about its answer under the aim of its step.
    #[must_use]
    pub fn file(&self, mut finding: Finding) -> Finding {
        if let Some(aim) = &self.aim {
            finding.clause.clone_from(&aim.clause);
            if let Some(reason) = &aim.reason {
                finding.reason.clone_from(reason);
            }
        }
        finding.at(self.step)
    }
}

/// First alternative that `came` fits.
pub fn fitting<'a, F: Face>(
    face: &F,
    part: &'a ExpectedPart<F>,
    came: &[&F::Message],
) -> Option<&'a Allowed<F::Answer>> {
    part.allowed_answers().find(|(_, way)| face.fits(part, way, came)).map(|(allowed, _)| allowed)
}

/// Misfit of the closest alternative. If no answer is allowed, the misfit is that one came.
pub fn misfit<F: Face>(face: &F, part: &ExpectedPart<F>, came: &[&F::Message]) -> Misfit {
    let misfits = part.allowed_answers().filter_map(|(_, way)| face.fit(part, way, came).err());
    let unasked = Misfit { rank: u8::MAX, clause: None, reason: "answered", repair: Repair::Drop };
    misfits.min_by_key(|misfit| misfit.rank).unwrap_or(unasked)
}

/// Describes the allowed outcomes in one phrase.
pub fn phrase<F: Face>(face: &F, part: &ExpectedPart<F>) -> String {
    let phrases = part.allowed.iter().map(|allowed| match &allowed.outcome {
        Outcome::Answer(way) => face.phrase(part, way),
        Outcome::Silence => "no reply".to_owned(),
    });
    phrases.collect::<Vec<_>>().join(", or ")
}
