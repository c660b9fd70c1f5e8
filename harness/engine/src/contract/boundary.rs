//! The [`Boundary`] trait: everything that the engine asks of one protocol.

pub mod workload;

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::counterpart::Counterpart;
use crate::contract::program::Program;
use crate::data::blame::Misconfigured;
use crate::data::carriage::HTTP;
use crate::data::check::Check;
use crate::data::clause::{Clause, ClauseId, Level, Side};
use crate::data::facts::Facts;
use crate::data::finding::{CANARY_FAILED, Finding, Judgement, occasion};
use crate::data::nearest::did_you_mean;
use crate::data::payload::Vars;
use crate::data::plan::{Act, Plan, Step};
use crate::data::rng::Rng;
use crate::data::rung::Rung;
use crate::data::transcript::Transcript;

use workload::Workload;

/// Key that `peerproof.toml` may hold for a boundary. `list --config-keys` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigKey {
    /// Table of the key: `peer`, `roles`, `features`, `choices` or `limits`.
    pub table: &'static str,
    /// Name within the table.
    pub name: &'static str,
    /// Allowed values, if they are a fixed set; for a limit the minimum, written `64..`.
    pub values: &'static [&'static str],
    /// Placeholders of a command with their braces, or members of a table as `name: type`, where the type is `string`,
    /// `object`, `integer`, `pointer`, `empty` or `any`. An object that is a template names its placeholders after the
    /// type. Marks after a name: `?` optional; `+` appended to the command if missing there; `*` taken from a variable
    /// of `env` if missing in the command. Exactly one of several names separated by `|` must be given. `NAME_env`
    /// names the variable that holds the value.
    pub members: &'static [&'static str],
    /// Meaning in one sentence.
    pub meaning: &'static str,
    /// Side to which the key applies; `None` for both.
    pub side: Option<Side>,
}

impl ConfigKey {
    /// Choice among the values of a repeated key.
    pub const DUPLICATE_KEYS: Self = Self::choice(
        "duplicate_keys",
        &["last", "first", "refuse"],
        "Handling of a repeated key in one object: the last value counts, the first one, or the object is \
         refused",
    );
    /// Choice of the handling of an unpaired surrogate in a string.
    pub const LONE_SURROGATES: Self = Self::choice(
        "lone_surrogates",
        &["echo", "replace", "refuse"],
        "Handling of an unpaired surrogate such as `\\ud800`",
    );
    /// Choice of the handling of integers that a double cannot represent.
    pub const BIG_INTEGERS: Self =
        Self::choice("big_integers", &["exact", "round", "refuse"], "Handling of integers beyond ±(2^53−1)");

    /// Command line of a command with these placeholders.
    pub const fn command(
        name: &'static str,
        placeholders: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "peer", name, values: &[], members: placeholders, meaning, side: None }
    }

    /// Role given as a table with these members.
    pub const fn role(name: &'static str, members: &'static [&'static str], meaning: &'static str) -> Self {
        Self { table: "roles", name, values: &[], members, meaning, side: None }
    }

    /// Feature that a peer has or lacks.
    pub const fn feature(name: &'static str, meaning: &'static str) -> Self {
        Self { table: "features", name, values: &["true", "false"], members: &[], meaning, side: None }
    }

    /// Feature with these settings.
    pub const fn set_feature(
        name: &'static str,
        members: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "features", name, values: &[], members, meaning, side: None }
    }

    /// Feature that is off, has one of these values or a list of them.
    pub const fn feature_with_values(
        name: &'static str,
        values: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "features", name, values, members: &[], meaning, side: None }
    }

    /// Feature that is either off or a table with these settings.
    pub const fn optional_feature(
        name: &'static str,
        members: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "features", name, values: &["false"], members, meaning, side: None }
    }

    /// Setting under `[features]` whose form the boundary checks, see [`Boundary::check_setting`].
    pub const fn setting(name: &'static str, meaning: &'static str) -> Self {
        Self { table: "features", name, values: &["…"], members: &[], meaning, side: None }
    }

    /// True if [`ConfigKey::setting`] made this key.
    pub fn is_setting(&self) -> bool {
        self.table == "features" && self.values == ["…"]
    }

    /// Open clause with its possible values.
    pub const fn choice(name: &'static str, values: &'static [&'static str], meaning: &'static str) -> Self {
        Self { table: "choices", name, values, members: &[], meaning, side: None }
    }

    /// Number that the contract lets a peer set.
    pub const fn limit(name: &'static str, meaning: &'static str) -> Self {
        Self { table: "limits", name, values: &[], members: &[], meaning, side: None }
    }

    /// Number with a minimum, written `64..`, that the contract lets a peer set.
    pub const fn limit_from(
        name: &'static str,
        from: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "limits", name, values: from, members: &[], meaning, side: None }
    }

    /// Start-up time of a peer in milliseconds, see [`Peer::pace`](crate::drive::peer::Peer::pace).
    pub const STARTUP_MS: Self = Self::limit(
        "startup_ms",
        "Start-up time of a process in milliseconds, unless a longer one is measured; time limits include it",
    );

    /// Restricts the key to one side.
    #[must_use]
    pub const fn of(self, side: Side) -> Self {
        Self { side: Some(side), ..self }
    }
}

/// Name of a member of a [`ConfigKey`] without its mark.
pub fn unmarked(member: &str) -> &str {
    member.trim_end_matches(['?', '+', '*'])
}

/// Circumstances of a write that no plan can know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteContext {
    /// Time of day, milliseconds since 1970, on the peer's clock, which may be virtual.
    pub unix_ms: u64,
    /// Word that is unique to this conversation.
    pub run: String,
    /// Index of the step in the plan.
    pub step: usize,
    /// Set if the bytes are one message, even if they contain line feeds.
    pub is_one_body: bool,
}

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

/// Frame that answers nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnmatchedFrame {
    /// Bytes that the harness writes at once, delimiter included.
    pub reply: Option<Vec<u8>>,
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

/// Null peer that gives one answer to everything.
#[derive(Debug, Clone, Copy)]
pub struct ConstantPeer {
    /// Name of the null peer.
    pub name: &'static str,
    /// Script for `sh`; `$1`, `$2` … are the placeholders of the command.
    pub script: &'static str,
    /// Checks for which its answer happens to be right: globs on check ids, each with the reason. It may pass only
    /// these, and at least one per glob.
    pub right: &'static [(&'static str, &'static str)],
}

impl ConstantPeer {
    /// Null peer whose answer is never right: it never answers a canary.
    pub const fn wrong(name: &'static str, script: &'static str) -> Self {
        Self { name, script, right: &[] }
    }
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
pub trait Boundary: Sync {
    /// Name with underscores.
    fn name(&self) -> &'static str;

    /// One line for `list`.
    fn summary(&self) -> &'static str;

    /// All clauses, in the order of the contract file.
    fn clauses(&self) -> &[Clause];

    /// All checks of both sides, in run order.
    fn checks(&self) -> &[Check];

    /// Keys of `peerproof.toml` for this boundary.
    fn config_keys(&self) -> &[ConfigKey];

    /// Requirement sets, each a subset of the one before; the first is the default.
    fn requirements(&self) -> &'static [&'static str] {
        &["all"]
    }

    /// Commands of each side, provider first.
    fn commands(&self) -> Vec<(Side, Vec<&'static str>)>;

    /// Command and side that `-- COMMAND` stands for; by default the first command.
    fn main_command(&self, _argv: &[String]) -> (&'static str, Side) {
        let first = self.commands().into_iter().find_map(|(side, names)| Some((*names.first()?, side)));
        first.unwrap_or_else(|| unreachable!("this boundary has no command"))
    }

    /// Path to post to if the configuration of a server names no URL.
    fn http_path(&self) -> &'static str {
        "/"
    }

    /// True if each command is a role of its own: a peer claims only the commands that it configures.
    fn commands_are_claims(&self) -> bool {
        false
    }

    /// Name of the program that `command` belongs to, shared by all commands of that program.
    fn program_of(&self, command: &str) -> String {
        let own = |(_, names): &(Side, Vec<&str>)| names.contains(&command);
        match self.commands().iter().find(|it| own(it)) {
            Some((side, _)) if !self.commands_are_claims() => side.word().to_owned(),
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

    /// Counterpart of a peer that asks, for the `script` of an [`Act::Play`] in `plan`. `None` if the boundary plays
    /// none or the script is invalid.
    fn counterpart(&self, _plan: &Plan, _script: &serde_json::Value) -> Option<Box<dyn Counterpart>> {
        None
    }

    /// Program of this name that an actor plays to answer requests
    /// ([`ActorStep::Converse`](crate::data::plan::ActorStep::Converse)); `argv` is the command line it was started with.
    fn program(&self, _name: &str, _argv: &[String]) -> Option<Box<dyn Program>> {
        None
    }

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

    /// Environment variables to which the contract gives a meaning. A recording of a peer must know them.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Adds facts that a recorded conversation shows.
    fn complete_recorded(&self, _facts: &mut Facts, _transcript: &Transcript) {}

    /// True if `frame` is certainly the answer to the canary `step`. The harness then stops waiting for an earlier
    /// reply, which is lost.
    fn answers_canary(&self, _step: &Step, _frame: &[u8]) -> bool {
        false
    }

    /// True if each process gets an empty working folder, unless the configuration names one, and environment variables
    /// that keep it from prompting people.
    fn runs_apart(&self) -> bool {
        false
    }

    /// True if each broken clause is a fault of its own where a request is answered by another kind of answer or error
    /// code: each method decides about that by itself.
    fn refuses_by_method(&self) -> bool {
        false
    }

    /// True if peers send messages of their own between answers. [`Boundary::unmatched_frame`] tells them apart.
    fn converses(&self) -> bool {
        false
    }

    /// Classifies a frame that answers nothing, such as a notification or a request of the peer's own. Only frames
    /// without an aside are counted where replies are awaited.
    fn unmatched_frame(&self, _facts: &Facts, _plan: &Plan, _frame: &[u8]) -> Option<UnmatchedFrame> {
        None
    }

    /// Secret that a whole frame of a recorded provider gives out, such as a token. Secrets are not stored.
    fn issued(&self, _facts: &Facts, _frame: &[u8]) -> Option<String> {
        None
    }

    /// Means to isolate one message. Canaries with two numbers get different answers where possible. `None` if no
    /// process of this peer receives several messages.
    fn isolation(&self, _facts: &Facts, _number: u64) -> Option<Isolation> {
        None
    }

    /// Conversations that show which roles and features a peer has, given the configured `facts`.
    fn probes(&self, _facts: &Facts) -> Vec<Plan> {
        Vec::new()
    }

    /// Lines for people about a peer: results of the probes and their consequences.
    fn seen(&self, _facts: &Facts) -> Vec<String> {
        Vec::new()
    }

    /// Checks the value of a key that [`ConfigKey::setting`] made.
    ///
    /// # Errors
    /// Describes in one sentence why its form is wrong.
    fn check_setting(&self, _name: &str, _value: &serde_json::Value) -> Result<(), Misconfigured> {
        Ok(())
    }

    /// Lines that open a session for a benchmark, each with `true` if its answer must be awaited.
    fn bench_opening(&self, _facts: &Facts) -> Vec<(Vec<u8>, bool)> {
        Vec::new()
    }

    /// Lines about the peer's tools for a generated configuration.
    fn inventory(&self, facts: &Facts) -> Vec<String> {
        self.seen(facts)
    }

    /// Tools that may play roles and may be tried, the likeliest first.
    fn candidates(&self, _facts: &Facts) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }

    /// Reason why the peer cannot be checked as configured, such as a revision that it does not speak.
    fn unavailable(&self, _facts: &Facts) -> Option<String> {
        None
    }

    /// Clauses that a library breaks in every peer that uses it, each with the name of the library. Only libraries that
    /// this peer's answers reveal.
    fn libraries(&self, _facts: &Facts) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Second round of probes, made after [`Boundary::complete`] has read the first.
    fn further_probes(&self, _facts: &Facts) -> Vec<Plan> {
        Vec::new()
    }

    /// Completes `facts` from the transcripts of the probes. `features_given` is false if the configuration lacks a
    /// `[features]` table; features that show then count as claimed.
    fn complete(&self, _facts: &mut Facts, _features_given: bool, _probes: &[Transcript]) {}

    /// Conversations that show whether the tool configured for a role plays it, each with the role. They give no
    /// findings. `None` if the probes already try configured tools.
    fn trials(&self, _facts: &Facts) -> Option<Vec<(&'static str, Plan)>> {
        None
    }

    /// Description of what the peer did in a trial instead of playing `role`; `None` if it plays it.
    fn role_fault(&self, _facts: &Facts, _role: &str, _trial: &Transcript) -> Option<String> {
        None
    }

    /// Features that `facts` do not claim but the probes show, each with the advice for the user.
    fn undeclared(&self, _facts: &Facts, _probes: &[Transcript]) -> Vec<(&'static str, &'static str)> {
        Vec::new()
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

    /// Fills in timestamps and signatures just before `bytes` are written. Returns `None` if nothing needs filling in.
    /// The transcript records the returned bytes.
    fn seal(&self, _facts: &Facts, _bytes: &[u8], _moment: &WriteContext) -> Option<Vec<u8>> {
        None
    }

    /// Plan of a recorded conversation with the placeholders that [`Boundary::seal`] fills in, so that it can be
    /// replayed live. `None` if the plan needs none.
    fn reopened(&self, _transcript: &Transcript) -> Option<Plan> {
        None
    }

    /// Minimum number of reply frames for these complete lines; `None` if the bytes alone do not tell.
    fn frames_due(&self, _facts: &Facts, _bytes: &[u8]) -> Option<u32> {
        None
    }

    /// Facts about a typical peer of `side` that plays every role and has every usual feature, under the usual names.
    fn full_facts(&self, side: Side) -> Facts {
        let own = self.commands().into_iter().filter(|(other, _)| *other == side);
        let commands = own.flat_map(|(_, names)| names).map(str::to_owned).collect();
        Facts { commands, ..Facts::new(side) }
    }

    /// Benchmark workloads for a peer with these facts, smallest first.
    ///
    /// # Errors
    /// Describes in one sentence what a benchmark needs and the peer lacks.
    fn workloads(&self, _facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        Err("this boundary has no benchmark".into())
    }

    /// Conversation of this many small exchanges with one process, each with its expectation. It measures the overhead
    /// of the harness. `None` if the peer has no such conversation.
    fn small_exchanges(&self, _facts: &Facts, _exchanges: usize) -> Option<Plan> {
        None
    }

    /// Texts that identify the messages of this protocol.
    fn signs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Rungs of checks: globs on check ids without the boundary's name; the first match counts. Other checks are
    /// [`Rung::Ordinary`].
    fn rungs(&self) -> &'static [(&'static str, Rung)] {
        &[]
    }

    /// Null peers of this boundary that give one answer to everything. Selftest shows that the checks find out each of
    /// them.
    fn constant_peers(&self) -> &'static [ConstantPeer] {
        &[]
    }

    /// Checks that notice no mutant, each with the reason to keep it.
    fn redundant_checks(&self) -> &'static [(&'static str, &'static str)] {
        &[]
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
        format!("unknown boundary {name:?}{hint}; the boundaries are: {}", names.join(", ")).into()
    })
}

/// Checks for peers of `side`, in run order.
pub fn checks_of_side(boundary: &'static dyn Boundary, side: Side) -> Vec<&'static Check> {
    let commands: Vec<&str> = boundary
        .commands()
        .into_iter()
        .filter(|(other, _)| *other == side)
        .flat_map(|(_, names)| names)
        .collect();
    boundary.checks().iter().filter(|check| commands.contains(&check.command.as_str())).collect()
}

/// Level of a clause by its id; an unknown id counts as MUST.
pub fn level(boundary: &dyn Boundary, clause: &ClauseId) -> Level {
    let row = boundary.clauses().iter().find(|row| row.id == *clause);
    row.map_or(Level::Must, |row| row.level)
}

/// True if the clause belongs to a requirement set larger than `requirements`, so that the peer is not held to it.
pub fn is_beyond(boundary: &dyn Boundary, requirements: &str, clause: &Clause) -> bool {
    let sets = boundary.requirements();
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
        let is_by_method = boundary.refuses_by_method();
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
