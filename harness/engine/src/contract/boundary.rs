//! Everything that the engine asks of one protocol.
//!
//! [`Description`] is data: name, commands, configuration keys. [`Boundary`] judges and generates conversations. Three
//! traits are for what not every protocol has: [`Wire`] helps while a conversation runs, [`Discovery`] finds the roles
//! and features of a peer, and [`Benchmark`] makes the requests to measure. A boundary without one of these implements
//! it without methods.

mod config_key;
mod description;
mod discovery;
mod wire;
pub mod workload;

use std::collections::{BTreeMap, BTreeSet};

use crate::data::blame::Misconfigured;
use crate::data::carriage::HTTP;
use crate::data::check::Check;
use crate::data::clause::{Clause, ClauseId, Level, Side};
use crate::data::facts::Facts;
use crate::data::finding::{CANARY_FAILED, Finding, Judgement, occasion};
use crate::data::nearest::{did_you_mean, then};
use crate::data::payload::Vars;
use crate::data::plan::{Act, Plan, Step};
use crate::data::rng::Rng;
use crate::data::transcript::Transcript;

pub use config_key::{Absence, ConfigKey, KeyForm, Member, MemberKind, Placeholder};
pub use description::{ConstantPeer, Description};
pub use discovery::Discovery;
pub use wire::{UnmatchedFrame, Wire, WriteContext};
pub use workload::Benchmark;

/// Means to find the message that a peer does not survive.
pub struct Isolation {
    /// Clauses that allow pipelining: several messages in one write, before the first reply or at the same time.
    pub pipelined: &'static [&'static str],
    /// Plain request about the clause that one process answers any number of messages. If answers name their request,
    /// its answer differs from all others.
    pub canary: Step,
}

/// A figure of a conversation. Of several conversations the largest value of each name counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Name of what is measured.
    pub name: &'static str,
    /// Value, by which conversations are compared.
    pub value: u64,
    /// Value with its unit and its cause, for people.
    pub text: String,
}

/// Sent message and its answer in a normal form, in which two peers can be compared: the order of members, the spelling
/// of numbers and the wording of messages make no difference.
#[derive(Debug, Clone, PartialEq)]
pub struct NormalizedExchange {
    /// Message sent, for people.
    pub sent: String,
    /// Answer in its normal form.
    pub came: String,
    /// Clause that says which answers are allowed.
    pub clause: String,
    /// Key of the open choice that the answer shows.
    pub choice: Option<String>,
    /// Allowed answers, in a phrase.
    pub expected: String,
    /// Reason code, if the answer is not allowed.
    pub fault: Option<String>,
}

/// MUST that forbids a peer to end because of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurvivalClause {
    /// Id of the clause.
    pub clause: &'static str,
    /// Reason codes of findings that show the clause broken.
    pub reasons: &'static [&'static str],
}

impl SurvivalClause {
    /// Clause that a peer breaks only by ending.
    pub const fn by(clause: &'static str) -> Self {
        Self { clause, reasons: &["crashed", "ended_early"] }
    }
}

/// Contract between two kinds of processes, as the engine needs it.
pub trait Boundary: Wire + Discovery + Benchmark + Sync {
    /// Name, commands, configuration keys and other data.
    fn description(&self) -> &'static Description;

    /// Name with underscores.
    fn name(&self) -> &'static str {
        self.description().name
    }

    /// All clauses, in the order of the contract file.
    fn clauses(&self) -> &[Clause];

    /// All checks of both sides, in run order.
    fn checks(&self) -> &[Check];

    /// Command and side that `-- COMMAND` stands for; by default the first command.
    fn main_command(&self, _argv: &[String]) -> (&'static str, Side) {
        let commands = self.description().commands.iter();
        let first = commands.flat_map(|(side, names)| names.iter().map(|name| (*name, *side))).next();
        first.unwrap_or_else(|| unreachable!("this boundary has no command"))
    }

    /// Name of the program that `command` belongs to, shared by all commands of that program.
    fn program_of(&self, command: &str) -> String {
        let description = self.description();
        match description.commands.iter().find(|(_, names)| names.contains(&command)) {
            Some((side, _)) if !description.commands_are_claims => side.word().to_owned(),
            _ => command.to_owned(),
        }
    }

    /// Turns the command line of a running peer back into a configured one. Returns it with placeholders, and the
    /// values they replaced.
    fn unfilled(&self, argv: &[String]) -> (Vec<String>, BTreeMap<String, String>) {
        (argv.to_vec(), BTreeMap::new())
    }

    /// Canonical name of the command configured as `name`. `side`, if configured, tells apart names used on both sides.
    fn command_name(&self, name: &str, _side: Option<Side>, _argv: &[String]) -> String {
        name.to_owned()
    }

    /// Refuses a stored conversation if a part of its expectations, scripts or scenarios is not understood: ignoring a
    /// part would blame the peer.
    ///
    /// # Errors
    /// Names the member and its place, in one sentence.
    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured>;

    /// Judges a transcript. Pure: the same transcript always gives the same judgement.
    fn judge(&self, transcript: &Transcript) -> Judgement;

    /// MUST that forbids a peer running `command` to end in a step about the SHOULD `should`. `None` if the contract
    /// lets it end.
    fn lives_on(&self, _command: &str, _should: &str) -> Option<SurvivalClause> {
        None
    }

    /// Judges generated, mutated and shrunk conversations: by the bytes actually written, ignoring `expect` in the
    /// steps.
    fn judge_by_model(&self, transcript: &Transcript) -> Judgement {
        self.judge(transcript)
    }

    /// Findings about the consumer's messages in a recorded conversation. Pure, as [`Boundary::judge`].
    fn judge_consumer(&self, _transcript: &Transcript) -> Vec<Finding> {
        Vec::new()
    }

    /// Means to isolate one message. Canaries with two numbers get different answers where possible. `None` if no
    /// process of this peer receives several messages.
    fn isolation(&self, _facts: &Facts, _number: u64) -> Option<Isolation> {
        None
    }

    /// Messages and their answers in the order of sending, for comparing peers in one conversation.
    fn exchanges(&self, _transcript: &Transcript) -> Vec<NormalizedExchange> {
        Vec::new()
    }

    /// Figures of a generated conversation, for people: a slow answer, a large result.
    fn figures(&self, _transcript: &Transcript) -> Vec<Figure> {
        Vec::new()
    }

    /// Generates a valid, nearly valid or hostile conversation.
    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan;

    /// Smaller variants of one step's payload for the shrinker, most promising first.
    fn shrink_payload(&self, _plan: &Plan, _step: usize) -> Vec<Plan> {
        Vec::new()
    }

    /// Plan of a recorded conversation with the placeholders that [`Wire::seal`] fills in, so that it can be
    /// replayed live. `None` if the plan needs none.
    fn reopened(&self, _transcript: &Transcript) -> Option<Plan> {
        None
    }

    /// Facts about a typical peer of `side` that plays every role and has every usual feature, under the usual names.
    fn full_facts(&self, side: Side) -> Facts {
        let commands = self.description().commands_of(side).map(str::to_owned).collect();
        Facts { commands, ..Facts::new(side) }
    }
}

/// Boundary called `name`; `_` and `-` are equal.
pub fn find(boundaries: &[&'static dyn Boundary], name: &str) -> Option<&'static dyn Boundary> {
    let name = name.replace('-', "_");
    boundaries.iter().copied().find(|boundary| boundary.name() == name)
}

/// Boundary with the name that a user wrote, as [`find`].
///
/// # Errors
/// Names all boundaries and suggests the closest.
pub fn named(
    boundaries: &[&'static dyn Boundary],
    name: &str,
) -> Result<&'static dyn Boundary, Misconfigured> {
    find(boundaries, name).ok_or_else(|| {
        let names: Vec<&str> = boundaries.iter().map(|boundary| boundary.name()).collect();
        let hint = match name.split_once('/') {
            Some((known, _)) if names.contains(&known) => {
                format!("; for its checks that match: peerproof check {known} -k '{name}'")
            }
            _ => did_you_mean(&name.replace('-', "_"), names.iter().copied()),
        };
        let known = then(&hint, &format!("the boundaries are: {}", names.join(", ")));
        format!("unknown boundary {name:?}{known}").into()
    })
}

/// Checks for peers of `side`, in run order.
pub fn checks_of_side(boundary: &'static dyn Boundary, side: Side) -> Vec<&'static Check> {
    let commands: Vec<&str> = boundary.description().commands_of(side).collect();
    boundary.checks().iter().filter(|check| commands.contains(&check.command.as_str())).collect()
}

/// Level of a clause by its id; an unknown id counts as MUST.
pub fn level(boundary: &dyn Boundary, clause: &ClauseId) -> Level {
    let row = boundary.clauses().iter().find(|row| row.id == *clause);
    row.map_or(Level::Must, |row| row.level)
}

/// True if the clause belongs to a requirement set larger than `requirements`, so that the peer is not held to it.
pub fn is_beyond(boundary: &dyn Boundary, requirements: &str, clause: &Clause) -> bool {
    let sets = boundary.description().requirements;
    let held = sets.iter().position(|set| *set == requirements).unwrap_or(0);
    clause.set.as_ref().is_some_and(|set| sets[..held].contains(&set.as_str()))
}

/// Lowers the number of frames that a step awaits to the number due for its bytes: waiting in vain costs a deadline.
pub(crate) fn await_what_is_due(boundary: &dyn Boundary, facts: &Facts, plan: &mut Plan, index: usize) {
    let Some(step) = plan.steps.get_mut(index) else { return };
    let over_http = plan.sessions.get(step.session).is_some_and(|session| session.command == HTTP);
    let Act::Send { payload, await_frames, .. } = &mut step.act else { return };
    if over_http || *await_frames == 0 {
        return;
    }
    let Ok(bytes) = payload.expand(&Vars::new()) else { return };
    if let Some(due) = boundary.frames_due(facts, &bytes) {
        *await_frames = due.min(*await_frames);
    }
}

/// Judges a transcript by the expectations in its steps or by the model, as its plan says. A wrong answer to a canary
/// is reported only once, by its own clause if it has one. Gives every finding its occasion.
pub fn judge(boundary: &dyn Boundary, transcript: &Transcript) -> Judgement {
    let by_model = transcript.plan.by_model;
    let mut judgement =
        if by_model { boundary.judge_by_model(transcript) } else { boundary.judge(transcript) };
    for finding in &mut judgement.findings {
        if let Some(lives_on) = broken_by_its_end(boundary, transcript, finding) {
            finding.clause = lives_on.into();
        }
    }
    let is_canary = |finding: &Finding| finding.reason == CANARY_FAILED;
    let others = judgement.findings.iter().filter(|finding| !is_canary(finding));
    let told: BTreeSet<usize> = others.filter_map(|finding| finding.step).collect();
    judgement.findings.retain(|it| !(is_canary(it) && it.step.is_some_and(|step| told.contains(&step))));
    if !judgement.findings.is_empty() {
        let by_model = findings_of_model(boundary, transcript);
        let program = |command: &str| boundary.program_of(command);
        let is_by_method = boundary.description().refuses_by_method;
        occasion::fill_in(transcript, &mut judgement.findings, &by_model, &program, is_by_method);
    }
    judgement
}

/// Findings about the conversation of a check, judged by the model without the aims of its steps.
fn findings_of_model(boundary: &dyn Boundary, transcript: &Transcript) -> Vec<Finding> {
    let plan = &*transcript.plan;
    let is_free = |step: &Step| step.expect.is_null();
    if plan.recorded || plan.steps.iter().all(is_free) {
        return Vec::new();
    }
    let steps =
        plan.steps.iter().map(|step| Step { expect: serde_json::Value::Null, ..step.clone() }).collect();
    let plan = Plan { steps, expect: serde_json::Value::Null, by_model: true, ..plan.clone() };
    boundary.judge_by_model(&Transcript { plan: plan.into(), ..transcript.clone() }).findings
}

/// MUST to charge instead of a SHOULD, if a finding of that SHOULD shows that the peer ended.
fn broken_by_its_end(
    boundary: &dyn Boundary,
    transcript: &Transcript,
    finding: &Finding,
) -> Option<&'static str> {
    let step = transcript.plan.steps.get(finding.step?)?;
    let command = &transcript.plan.sessions.get(step.session)?.command;
    let lives_on = boundary.lives_on(command, &finding.clause.0)?;
    let is_meant = lives_on.reasons.contains(&finding.reason.as_str());
    (is_meant && level(boundary, &finding.clause) == Level::Should).then_some(lives_on.clause)
}
