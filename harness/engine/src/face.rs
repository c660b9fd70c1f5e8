//! Faces: one side of a boundary with one model.
//!
//! A face models and the engine judges (`judge.rs`). The model sees every recorded stimulus in order: a line that was
//! written, a process that ended, what an actor really wrote, a file that was put somewhere. For each it says what may be
//! answered and which effects must or must not follow. The judge matches what came with what was asked, looks for the
//! effects, and turns every difference into a finding. A model never sees the judge's verdicts, and the judge never
//! learns what a message means.

mod trace;

use std::fmt::Debug;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::carriage::Carriage;
use crate::check::Untestable;
use crate::clause::ClauseId;
use crate::finding::{Finding, Judgement, Repair};
use crate::lines::Line;
use crate::plan::{Plan, Step};
use crate::transcript::{Event, Exit, Kind, Transcript};

pub use trace::{Answer, Came, Carried, Exchange, Heard, Held, Output, Reply, Trace};

/// The clause that a step of a plan is about; stored in `Step::expect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aim {
    /// The clause that is broken when the step is answered as it must not be.
    pub clause: ClauseId,
    /// Reason code, where it is not that of the misfit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Aim {
    /// What a step expects that is about this clause, and nothing where that is empty.
    pub fn about(clause: &str) -> serde_json::Value {
        let aim = (!clause.is_empty()).then(|| Self { clause: clause.into(), reason: None });
        serde_json::to_value(aim).unwrap_or_default()
    }

    /// The aim of a step; `None` for a step without one.
    pub fn of(step: &Step) -> Option<Self> {
        serde_json::from_value(step.expect.clone()).ok()
    }
}

/// How a command takes input and gives output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// A message a line, both ways, for as long as the process lives.
    Lines,
    /// One process, one exchange: all of standard input is the message, all of standard output the answer.
    Whole,
    /// A server: each body of an HTTP request is a message, the body of its reply the answer.
    Bodies,
    /// The process asks and the harness answers, a message a line both ways, until it has nothing more to ask. What becomes of
    /// its calls is the history of things.
    Asks,
    /// As [`Framing::Asks`], but the process asks by starting programs and by connecting: what it prints means nothing.
    Calls,
    /// The process is not spoken to. What it does shows in its effects.
    Silent,
}

impl Framing {
    /// Whether the process asks: it ends when it has nothing more to ask, and what becomes of its calls are things.
    pub fn asks(self) -> bool {
        matches!(self, Self::Asks | Self::Calls)
    }
}

/// What a message answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// The message whose turn it is: answers come in the order of requests.
    Turn,
    /// The message with this key (an id). A message without a key answers what it fits.
    Key(Option<String>),
    /// A thing outside any conversation, such as a job; its answer is the history of it.
    Thing(String),
}

/// One allowed outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowed<W> {
    /// What comes.
    pub outcome: Outcome<W>,
    /// Value of the open choice that it shows.
    pub shows: Option<&'static str>,
}

/// What comes for a stimulus.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<W> {
    /// An answer that fits.
    Answer(W),
    /// Nothing.
    Silence,
}

impl<W> Allowed<W> {
    /// An answer.
    pub fn answer(way: W) -> Self {
        Self { outcome: Outcome::Answer(way), shows: None }
    }

    /// No answer.
    pub fn silence() -> Self {
        Self { outcome: Outcome::Silence, shows: None }
    }

    /// Names the value of the open choice that it shows.
    #[must_use]
    pub fn shows(self, value: &'static str) -> Self {
        Self { shows: Some(value), ..self }
    }

    /// Whether no answer comes.
    pub fn is_silence(&self) -> bool {
        matches!(self.outcome, Outcome::Silence)
    }
}

/// What may come for one stimulus, and what must or must not be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected<W, X = ()> {
    /// The clause that is broken by any other answer.
    pub clause: &'static str,
    /// How its answer is found.
    pub subject: Subject,
    /// Any one of these is right.
    pub allowed: Vec<Allowed<W>>,
    /// Key of the open choice that the alternatives show.
    pub choice: Option<&'static str>,
    /// What must or must not be seen because of it.
    pub effects: Vec<Effect>,
    /// What the face itself wants to know later.
    pub extra: X,
}

impl<W, X: Default> Expected<W, X> {
    /// Any one of these, under this clause.
    pub fn new(clause: &'static str, subject: Subject, allowed: Vec<Allowed<W>>) -> Self {
        Self { clause, subject, allowed, choice: None, effects: Vec::new(), extra: X::default() }
    }
}

impl<W, X> Expected<W, X> {
    /// Adds something that must or must not be seen.
    #[must_use]
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Names the open choice that the alternatives show.
    #[must_use]
    pub fn about(self, choice: &'static str) -> Self {
        Self { choice: Some(choice), ..self }
    }

    /// Forgets which outcome shows which choice: where two questions are open at once, an outcome does not tell which
    /// of them it answers.
    pub fn mix_choices(&mut self) {
        self.choice = None;
        self.allowed.iter_mut().for_each(|allowed| allowed.shows = None);
    }

    /// Whether its answer is the history of a thing: no message is due.
    pub fn is_of_thing(&self) -> bool {
        matches!(self.subject, Subject::Thing(_))
    }

    /// Whether no message is one of the right outcomes.
    pub fn may_be_silent(&self) -> bool {
        self.is_of_thing() || self.silence().is_some()
    }

    /// Whether no message is the only right outcome.
    pub fn must_be_silent(&self) -> bool {
        self.is_of_thing() || self.allowed.iter().all(Allowed::is_silence)
    }

    /// The outcome that no message is, where that is allowed.
    pub fn silence(&self) -> Option<&Allowed<W>> {
        self.allowed.iter().find(|allowed| allowed.is_silence())
    }

    /// The answers that are allowed, each with the alternative that it is.
    pub fn ways(&self) -> impl Iterator<Item = (&Allowed<W>, &W)> {
        self.allowed.iter().filter_map(|allowed| match &allowed.outcome {
            Outcome::Answer(way) => Some((allowed, way)),
            Outcome::Silence => None,
        })
    }

    /// The key of its message.
    pub fn key(&self) -> Option<&str> {
        match &self.subject {
            Subject::Key(key) => key.as_deref(),
            Subject::Turn | Subject::Thing(_) => None,
        }
    }
}

/// What one stimulus asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Due<W, X = ()> {
    /// One answer each.
    pub parts: Vec<Expected<W, X>>,
    /// The answers come together, in one frame (a batch).
    pub together: bool,
    /// One answer to all of it may come instead.
    pub whole: Option<Expected<W, X>>,
}

impl<W, X> Due<W, X> {
    /// Whether nothing need come.
    pub fn may_be_silent(&self) -> bool {
        self.parts.iter().all(Expected::may_be_silent)
            || self.whole.as_ref().is_some_and(Expected::may_be_silent)
    }

    /// Whether nothing may come.
    pub fn must_be_silent(&self) -> bool {
        self.parts.iter().all(Expected::must_be_silent)
    }

    /// One answer.
    pub fn one(part: Expected<W, X>) -> Self {
        Self { parts: vec![part], together: false, whole: None }
    }
}

/// Whether an effect is asked for or forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It must be seen.
    Must,
    /// It must not be seen, although its control is.
    MustNot,
}

/// Something outside the conversation that must or must not be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The clause that it is about.
    pub clause: &'static str,
    /// Reason code of a finding.
    pub reason: &'static str,
    /// Whether it must be.
    pub need: Need,
    /// What shows it.
    pub sign: Sign,
    /// What shows that the way is open: the same effect where it is allowed. Without it the absence of anything but
    /// [`Sign::Told`] proves nothing.
    pub control: Option<Sign>,
}

/// What shows an effect in a transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Sign {
    /// A recorded look with this label found something; with bytes, a file that holds them.
    Found {
        /// Label of the look.
        label: String,
        /// What has to be in it.
        holds: Option<Vec<u8>>,
    },
    /// A recorded look with this label found nothing; with bytes, no file that holds them.
    Gone {
        /// Label of the look.
        label: String,
        /// What is in it no more.
        holds: Option<Vec<u8>>,
    },
    /// A recorded look with this label found something with these permission bits.
    Mode {
        /// Label of the look.
        label: String,
        /// Permission bits.
        mode: u32,
    },
    /// A listener was contacted; with bytes, by something that holds them.
    Hit {
        /// Name of the fixture.
        listener: String,
        /// What has to be in it.
        holds: Option<Vec<u8>>,
    },
    /// An actor was started so many times with input that holds these bytes.
    Starts {
        /// Name of the fixture.
        actor: String,
        /// What its input or arguments hold; empty: any.
        holds: Vec<u8>,
        /// How often.
        times: RangeInclusive<usize>,
    },
    /// These bytes are in what the peer wrote.
    Told {
        /// The bytes.
        holds: Vec<u8>,
    },
}

/// A frame: what was delimited on the way from the peer.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Exact bytes, without what delimits them.
    pub bytes: &'a [u8],
    /// How the process ended by itself, for [`Framing::Whole`]; what that is worth is the face's to judge.
    pub exit: Option<Exit>,
    /// Status of the HTTP reply, for [`Framing::Bodies`].
    pub status: Option<u16>,
    /// An answer is due to the request that it belongs to; always true of lines, which belong to nothing yet.
    pub is_due: bool,
}

/// What a frame holds.
pub enum Reading<M> {
    /// A message.
    Message(M),
    /// Several messages that came together.
    Together {
        /// All of it as one message, for where no group was asked.
        all: M,
        /// Each of them.
        messages: Vec<M>,
    },
    /// A message that answers nothing, by right: a call of the peer's own.
    Beside(M),
    /// No message, and no fault.
    Blank,
    /// No message, and a fault: reason code and clause, with what is wrong.
    Broken(Finding),
}

/// Something that the peer had to react to, in the order of the transcript.
#[derive(Debug, Clone, Copy)]
pub struct Stimulus<'a> {
    /// Session of the plan.
    pub session: usize,
    /// When, microseconds.
    pub at_us: u64,
    /// The step of the plan that it belongs to, where one brought it about.
    pub step: Option<usize>,
    /// The harness has waited for all answers since the stimulus before it.
    pub fenced: bool,
    /// How it was carried, over HTTP.
    pub how: Option<&'a Carriage>,
    /// What it is.
    pub what: What<'a>,
}

/// What a stimulus is.
#[derive(Debug, Clone, Copy)]
pub enum What<'a> {
    /// The session begins: its peer has what the plan gives it.
    Begun,
    /// A message to the peer, as it was written.
    Said(&'a Line),
    /// Anything else that was recorded: the end of a process, a file that was put, what an actor wrote.
    Happened(&'a Kind),
}

/// Why an answer does not fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Misfit {
    /// How far it is from fitting; of several the least counts.
    pub rank: u8,
    /// The clause that is broken; `None`: that of the part.
    pub clause: Option<&'static str>,
    /// Reason code.
    pub reason: &'static str,
    /// The smallest edit that would make it fit.
    pub repair: Repair,
}

/// Clauses about frames and processes that every conversation of a face watches.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// Exactly one answer for each request, for as long as input stays open.
    pub one_reply: &'static str,
    /// An answer comes without waiting for the end of input.
    pub flushed: &'static str,
    /// Nothing but messages on standard output.
    pub protocol_only: &'static str,
    /// Answers that belong together come together.
    pub together: Option<Together>,
    /// The process ends in order when its input has ended.
    pub ends_at_eof: &'static str,
    /// It ends at SIGTERM.
    pub ends_at_term: &'static str,
    /// A server lives on, whatever it is sent.
    pub lives_on: &'static str,
    /// It leaves no process.
    pub no_process_left: &'static str,
    /// It leaves no file.
    pub no_file_left: &'static str,
}

impl Manners {
    /// All of it under one clause.
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

/// Answers that come together: words for it, and clauses about it.
#[derive(Debug, Clone, Copy)]
pub struct Together {
    /// What requests are together: a `batch`.
    pub group: &'static str,
    /// What answers are together: an `array`.
    pub frame: &'static str,
    /// In one frame.
    pub in_one: &'static str,
    /// One for each request in it.
    pub once: &'static str,
    /// No frame where nothing is answered.
    pub nothing: &'static str,
}

/// What a rule finds wrong with one session, the whole trace at hand.
pub type Rule<F> = fn(&Trace<'_, F>, &Heard<'_, F>) -> Vec<Finding>;

/// The part of a face's model for one answer.
pub type Part<F> = Expected<<F as Face>::Way, <F as Face>::Extra>;

/// One side of a boundary with one model. Everything in it is pure.
pub trait Face: Sync + Sized {
    /// What a frame decodes to.
    type Message;
    /// One allowed answer.
    type Way: Clone + Debug;
    /// What it notes of what it expects.
    type Extra: Clone + Debug;
    /// What it remembers while it reads a conversation.
    type State;

    /// How the processes of `command` are spoken to; `None`: they are no peers of this face.
    fn framing(&self, command: &str) -> Option<Framing>;

    /// Clauses about frames and processes.
    fn manners(&self) -> &Manners;

    /// The same for one session, where what is asked there changes who is to blame.
    fn manners_of(&self, _transcript: &Transcript, _session: usize) -> Manners {
        *self.manners()
    }

    /// The state before anything has happened.
    fn begin(&self, transcript: &Transcript) -> Self::State;

    /// What a stimulus asks for; `None` where it only changes the state.
    fn expect(&self, state: &mut Self::State, stimulus: &Stimulus<'_>)
    -> Option<Due<Self::Way, Self::Extra>>;

    /// Completes what was expected once all stimuli are known.
    fn complete(&self, _state: &mut Self::State, _plan: &Plan, _asked: &mut [Asked<Self>]) {}

    /// Completes what may come for a request over HTTP by what became of it.
    fn carried(
        &self,
        _asked: &mut Asked<Self>,
        _line: &Line,
        _how: Option<&Carriage>,
        _exchange: &Exchange<'_>,
    ) {
    }

    /// What the head of an HTTP reply shows: what is wrong with it, or what was chosen.
    fn status(&self, _exchange: &Carried<'_, Self>) -> Judgement {
        Judgement::default()
    }

    /// What a frame holds.
    fn read(&self, frame: &Frame<'_>) -> Reading<Self::Message>;

    /// What an event shows of things outside conversations: each with what it went through.
    fn observe(&self, _event: &Event) -> Vec<(String, Self::Message)> {
        Vec::new()
    }

    /// The key of the request that a message answers.
    fn key(&self, _message: &Self::Message) -> Option<String> {
        None
    }

    /// Whether a message refuses a whole group of requests, whichever; for faces with groups.
    fn refuses_all(&self, _message: &Self::Message) -> bool {
        false
    }

    /// Whether what came is `way`: one message, or all that a thing went through.
    ///
    /// # Errors
    /// What is wrong with it.
    fn fit(&self, part: &Part<Self>, way: &Self::Way, came: &[&Self::Message]) -> Result<(), Misfit>;

    /// Whether what came is `way`. A face may say so with less effort than [`Face::fit`].
    fn fits(&self, part: &Part<Self>, way: &Self::Way, came: &[&Self::Message]) -> bool {
        self.fit(part, way, came).is_ok()
    }

    /// True where a message is malformed, by a rule of the face about every message, in the place that a misfit is about: the
    /// misfit is a consequence of that.
    fn is_malformed_at(&self, _message: &Self::Message, _misfit: &Misfit) -> bool {
        false
    }

    /// The value of the open choice that a fitting answer shows.
    fn shows(
        &self,
        _part: &Part<Self>,
        allowed: &Allowed<Self::Way>,
        _came: &[&Self::Message],
    ) -> Option<&'static str> {
        allowed.shows
    }

    /// Why a fitting answer leaves open what its step is about.
    fn leaves_open(
        &self,
        _part: &Part<Self>,
        _aim: Option<&Aim>,
        _came: &[&Self::Message],
    ) -> Option<Untestable> {
        None
    }

    /// Whether a right answer shows that the peer still works.
    fn is_canary(&self, asked: &Asked<Self>, _part: &Part<Self>) -> bool {
        asked.canary
    }

    /// True where a wrong answer to a canary shows a peer at work. A refusal that any broken program gives does not.
    fn shows_work(&self, _message: &Self::Message) -> bool {
        true
    }

    /// A way, in one phrase.
    fn phrase(&self, part: &Part<Self>, way: &Self::Way) -> String;

    /// A message as text.
    fn text(&self, message: &Self::Message) -> String;

    /// Whether what answers nothing may be a second answer to this.
    fn may_repeat(&self, _part: &Part<Self>) -> bool {
        false
    }

    /// Frames that are looked at beside answers.
    fn frames_spare(&self, _transcript: &Transcript) -> usize {
        0
    }

    /// What holds of the whole trace.
    fn rules(&self) -> &[Rule<Self>] {
        &[]
    }

    /// Whether a peer may end by itself in a conversation that was recorded.
    fn may_leave(&self, _transcript: &Transcript) -> bool {
        false
    }
}

/// Where a request stands in its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spot {
    /// Place of the event that began it.
    pub sent: usize,
    /// How often the harness had waited for replies before.
    pub round: usize,
}

/// What one stimulus asks for, with its place in the conversation.
pub struct Asked<F: Face> {
    /// Session of the plan.
    pub session: usize,
    /// Step of the plan.
    pub step: usize,
    /// Number of the line that it answers, among those of the session.
    pub line: Option<usize>,
    /// The step is a canary.
    pub canary: bool,
    /// What the step is about.
    pub aim: Option<Aim>,
    /// When, microseconds.
    pub at_us: u64,
    /// Where it stands among what was sent and what came.
    pub spot: Spot,
    /// What may come.
    pub due: Due<F::Way, F::Extra>,
}

impl<F: Face> Asked<F> {
    /// Whether its answers are histories of things, and no process's.
    pub fn is_of_things(&self) -> bool {
        !self.due.parts.is_empty() && self.due.parts.iter().all(Expected::is_of_thing)
    }

    /// A finding about its answer: under the clause that its step is about.
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

/// The first alternative that `came` fits.
pub fn fitting<'a, F: Face>(
    face: &F,
    part: &'a Part<F>,
    came: &[&F::Message],
) -> Option<&'a Allowed<F::Way>> {
    part.ways().find(|(_, way)| face.fits(part, way, came)).map(|(allowed, _)| allowed)
}

/// What is wrong with what fits no alternative: of the one that comes closest. Where nothing may come, that it came.
pub fn misfit<F: Face>(face: &F, part: &Part<F>, came: &[&F::Message]) -> Misfit {
    let misfits = part.ways().filter_map(|(_, way)| face.fit(part, way, came).err());
    let unasked = Misfit { rank: u8::MAX, clause: None, reason: "answered", repair: Repair::Drop };
    misfits.min_by_key(|misfit| misfit.rank).unwrap_or(unasked)
}

/// What is expected, in one phrase.
pub fn phrase<F: Face>(face: &F, part: &Part<F>) -> String {
    let phrases = part.allowed.iter().map(|allowed| match &allowed.outcome {
        Outcome::Answer(way) => face.phrase(part, way),
        Outcome::Silence => "no reply".to_owned(),
    });
    phrases.collect::<Vec<_>>().join(", or ")
}
