//! What the engine needs to know of a boundary: the trait that each one implements.

pub mod workload;

use std::collections::{BTreeMap, BTreeSet};

use crate::blame::Misconfigured;
use crate::carriage::HTTP;
use crate::check::Check;
use crate::clause::{Clause, ClauseId, Level, Side};
use crate::counterpart::Counterpart;
use crate::facts::Facts;
use crate::finding::{CANARY_FAILED, Finding, Judgement, occasion};
use crate::nearest::did_you_mean;
use crate::payload::Vars;
use crate::plan::{Act, Plan, Step};
use crate::program::Program;
use crate::rng::Rng;
use crate::rung::Rung;
use crate::transcript::Transcript;

use workload::Workload;

/// A key that `peerproof.toml` may hold for a boundary; `list --config-keys` prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigKey {
    /// Table it stands in: `peer`, `roles`, `features`, `choices`, `limits`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Allowed values, where they are a named set; of a limit the lowest, written `64..`.
    pub values: &'static [&'static str],
    /// Of a command: its placeholders with their braces. Of a table: its members as `name: type`, where the type is
    /// `string`, `object`, `integer`, `pointer`, `empty` or `any`; an object that is a template names its placeholders
    /// behind it. A `?` behind the name marks what may be left out, a `+` a placeholder that is appended where it is not
    /// named, a `*` one that stands in a variable of `env` where it does not stand in the command. Of names with `|` between
    /// them there is exactly one; `NAME_env` names the variable that holds the value.
    pub members: &'static [&'static str],
    /// One sentence.
    pub meaning: &'static str,
    /// The only side that it says something of.
    pub side: Option<Side>,
}

impl ConfigKey {
    /// Which of two members with one name counts.
    pub const DUPLICATE_KEYS: Self = Self::choice(
        "duplicate_keys",
        &["last", "first", "refuse"],
        "Handling of a repeated key in one object: the last value counts, the first one, or the object is \
         refused",
    );
    /// Handling of half a surrogate pair.
    pub const LONE_SURROGATES: Self = Self::choice(
        "lone_surrogates",
        &["echo", "replace", "refuse"],
        "Handling of an unpaired surrogate such as `\\ud800`",
    );
    /// Handling of integers that a double does not hold.
    pub const BIG_INTEGERS: Self =
        Self::choice("big_integers", &["exact", "round", "refuse"], "Handling of integers beyond ±(2^53−1)");

    /// The argv of a command with these placeholders.
    pub const fn command(
        name: &'static str,
        placeholders: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "peer", name, values: &[], members: placeholders, meaning, side: None }
    }

    /// A role, as a table with these members.
    pub const fn role(name: &'static str, members: &'static [&'static str], meaning: &'static str) -> Self {
        Self { table: "roles", name, values: &[], members, meaning, side: None }
    }

    /// A feature that a peer has or lacks.
    pub const fn feature(name: &'static str, meaning: &'static str) -> Self {
        Self { table: "features", name, values: &["true", "false"], members: &[], meaning, side: None }
    }

    /// A feature with these settings.
    pub const fn set_feature(
        name: &'static str,
        members: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "features", name, values: &[], members, meaning, side: None }
    }

    /// A feature that is off, or has one of these values, or a list of them.
    pub const fn worded_feature(
        name: &'static str,
        values: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "features", name, values, members: &[], meaning, side: None }
    }

    /// A feature that says nothing without these settings: it is off, or a table with them.
    pub const fn told_feature(
        name: &'static str,
        members: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "features", name, values: &["false"], members, meaning, side: None }
    }

    /// A setting under `[features]` whose form the boundary checks: see [`Boundary::check_setting`].
    pub const fn setting(name: &'static str, meaning: &'static str) -> Self {
        Self { table: "features", name, values: &["…"], members: &[], meaning, side: None }
    }

    /// True for a key that [`ConfigKey::setting`] made.
    pub fn is_setting(&self) -> bool {
        self.table == "features" && self.values == ["…"]
    }

    /// What the contract leaves open, with the values that it can have.
    pub const fn choice(name: &'static str, values: &'static [&'static str], meaning: &'static str) -> Self {
        Self { table: "choices", name, values, members: &[], meaning, side: None }
    }

    /// A number that the contract lets a peer set.
    pub const fn limit(name: &'static str, meaning: &'static str) -> Self {
        Self { table: "limits", name, values: &[], members: &[], meaning, side: None }
    }

    /// The same with a lowest value, written `64..`.
    pub const fn limit_from(
        name: &'static str,
        from: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { table: "limits", name, values: from, members: &[], meaning, side: None }
    }

    /// What a peer may take to start, milliseconds: see [`Peer::pace`](crate::peer::Peer::pace).
    pub const STARTUP_MS: Self = Self::limit(
        "startup_ms",
        "Milliseconds that a process takes to start, unless a longer start is measured; time limits allow \
         for it",
    );

    /// The same for one side only.
    #[must_use]
    pub const fn of(self, side: Side) -> Self {
        Self { side: Some(side), ..self }
    }
}

/// A member of a [`ConfigKey`] without the mark behind it.
pub fn unmarked(member: &str) -> &str {
    member.trim_end_matches(['?', '+', '*'])
}

/// When and where something is written to a peer: what no plan can know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Time of day, milliseconds since 1970; virtual where the clock of the peer is.
    pub unix_ms: u64,
    /// A word that no other conversation has.
    pub run: String,
    /// Index of the step in the plan.
    pub step: usize,
    /// All that is written is one message, whatever line feeds are in it.
    pub is_one_body: bool,
}

/// What it takes to find out which message of several a peer does not survive.
pub struct Isolation {
    /// The clauses that several messages in one write, before the first reply or at the same time break nothing.
    pub pipelined: &'static [&'static str],
    /// A plain request, about the clause that one process answers any number of messages. Where answers say what they
    /// answer, no other has its answer.
    pub canary: Step,
}

/// A frame that answers nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aside {
    /// Bytes that the harness writes at once, delimiter included.
    pub reply: Option<Vec<u8>>,
}

/// Something that was sent, and what came for it in a form that can be compared between peers: order of members,
/// spelling of numbers and wording of messages make no difference in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// Message that was sent, for people.
    pub sent: String,
    /// Answer in its normal form.
    pub came: String,
    /// The clause that says what may come.
    pub clause: String,
    /// Key of the open choice that it shows.
    pub choice: Option<String>,
    /// Allowed answers, in a phrase.
    pub expected: String,
    /// Reason code of an answer that is not allowed.
    pub fault: Option<String>,
}

/// A null peer that gives whatever comes the same answer.
#[derive(Debug, Clone, Copy)]
pub struct ByRote {
    /// Its name.
    pub name: &'static str,
    /// What `sh` runs; `$1`, `$2` … are the placeholders of the command.
    pub script: &'static str,
    /// Where its one answer happens to be right: globs on ids of checks, each with the reason. It may pass those alone, and of
    /// each glob it passes one at least.
    pub right: &'static [(&'static str, &'static str)],
}

impl ByRote {
    /// One whose answer is right nowhere: it never answers a canary.
    pub const fn wrong(name: &'static str, script: &'static str) -> Self {
        Self { name, script, right: &[] }
    }
}

/// A MUST by which no input ends a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivesOn {
    /// The clause.
    pub clause: &'static str,
    /// Reasons of findings that show it broken.
    pub reasons: &'static [&'static str],
}

impl LivesOn {
    /// A clause that a peer breaks by its end alone.
    pub const fn by(clause: &'static str) -> Self {
        Self { clause, reasons: &["crashed", "ended_early"] }
    }
}

/// One contract between two processes: what the engine needs to know of it.
pub trait Boundary: Sync {
    /// Its name with underscores.
    fn name(&self) -> &'static str;

    /// One line for `list`.
    fn summary(&self) -> &'static str;

    /// All clauses, in the order of the file.
    fn clauses(&self) -> &[Clause];

    /// All checks of both sides, in the order in which they run.
    fn checks(&self) -> &[Check];

    /// Keys of `peerproof.toml` that it knows.
    fn config_keys(&self) -> &[ConfigKey];

    /// Sets of clauses that a peer can be held to, each within the one before it; the first is the usual one.
    fn requirements(&self) -> &'static [&'static str] {
        &["all"]
    }

    /// The commands of each side, provider first.
    fn commands(&self) -> Vec<(Side, Vec<&'static str>)>;

    /// Command that `-- COMMAND` stands for; by default the first of all.
    fn main_command(&self, _argv: &[String]) -> (&'static str, Side) {
        let first = self.commands().into_iter().find_map(|(side, names)| Some((*names.first()?, side)));
        first.unwrap_or_else(|| unreachable!("a boundary without a command"))
    }

    /// The path that is posted to where the configuration of a server names no URL.
    fn http_path(&self) -> &'static str {
        "/"
    }

    /// Whether each command is a role of its own that a peer may lack: what it has no command for, it does not claim.
    fn commands_are_claims(&self) -> bool {
        false
    }

    /// Name that `command` shares with the other commands of its program.
    fn program_of(&self, command: &str) -> String {
        let own = |(_, names): &(Side, Vec<&str>)| names.contains(&command);
        match self.commands().iter().find(|it| own(it)) {
            Some((side, _)) if !self.commands_are_claims() => side.word().to_owned(),
            _ => command.to_owned(),
        }
    }

    /// A command line of a peer that runs already as the configuration would have it: with placeholders, and what stood
    /// in their places.
    fn unfilled(&self, argv: &[String]) -> (Vec<String>, BTreeMap<String, String>) {
        (argv.to_vec(), BTreeMap::new())
    }

    /// The name under which a command that a configuration calls `name` is known: that of another side, where sides
    /// share a word. `side` is what the configuration says of it so far.
    fn command_name(&self, name: &str, _side: Option<Side>, _argv: &[String]) -> String {
        name.to_owned()
    }

    /// Refuses a stored conversation whose expectations, scripts or scenarios are not wholly read: passing over a part of
    /// one would blame the peer.
    ///
    /// # Errors
    /// One sentence: which member, and where.
    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured>;

    /// The counterpart of a peer that asks, as `script` of an [`Act::Play`] in `plan` says; `None`
    /// where nobody does, or the script makes no sense.
    fn counterpart(&self, _plan: &Plan, _script: &serde_json::Value) -> Option<Box<dyn Counterpart>> {
        None
    }

    /// The program of this name that answers what it is asked, as an actor converses
    /// ([`ActorStep::Converse`](crate::plan::ActorStep::Converse)); `argv` is what it was started with.
    fn program(&self, _name: &str, _argv: &[String]) -> Option<Box<dyn Program>> {
        None
    }

    /// Judges a transcript. Pure: the same transcript gives the same judgement for ever.
    fn judge(&self, transcript: &Transcript) -> Judgement;

    /// The MUST by which a peer that runs `command` lives on although a step is about `should` alone: one that ends there
    /// breaks more than what it is advised to do. `None` where the contract lets it end.
    fn lives_on(&self, _command: &str, _should: &str) -> Option<LivesOn> {
        None
    }

    /// Judges a transcript of any conversation by what was really written, without regard to `expect` in its steps:
    /// for generated, mutated and shrunk conversations.
    fn judge_by_model(&self, transcript: &Transcript) -> Judgement {
        self.judge(transcript)
    }

    /// What is wrong with what the consumer wrote in a recorded conversation. Pure, as [`Boundary::judge`].
    fn judge_consumer(&self, _transcript: &Transcript) -> Vec<Finding> {
        Vec::new()
    }

    /// Environment variables that the contract gives a meaning: who records a peer that has them has to know them.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }

    /// Completes what is known of a peer by what a recorded conversation with it shows.
    fn complete_recorded(&self, _facts: &mut Facts, _transcript: &Transcript) {}

    /// Whether `frame` is certainly the answer to the canary `step`; lets the harness stop waiting for a reply that
    /// was lost before it.
    fn answers_canary(&self, _step: &Step, _frame: &[u8]) -> bool {
        false
    }

    /// True where a process gets an empty working folder, unless the configuration names one, and variables that keep it from
    /// talking to people.
    fn runs_apart(&self) -> bool {
        false
    }

    /// True if peers send messages of their own between answers. [`Boundary::aside`] tells them apart.
    fn converses(&self) -> bool {
        false
    }

    /// Classifies a frame that answers nothing, such as a notification or a request of the peer's own. Only frames
    /// without an aside are counted where replies are awaited.
    fn aside(&self, _facts: &Facts, _plan: &Plan, _frame: &[u8]) -> Option<Aside> {
        None
    }

    /// The secret that a whole frame of a recorded provider gives out, such as a token; it is not stored.
    fn issued(&self, _facts: &Facts, _frame: &[u8]) -> Option<String> {
        None
    }

    /// What isolates a message; canaries of two numbers differ where their answers can. `None` where no process is sent
    /// several messages.
    fn isolation(&self, _facts: &Facts, _number: u64) -> Option<Isolation> {
        None
    }

    /// Conversations whose transcripts tell which roles and features a peer has (`facts` as configured).
    fn probes(&self, _facts: &Facts) -> Vec<Plan> {
        Vec::new()
    }

    /// Lines about a peer for people: what its probes showed, and what is done with it.
    fn seen(&self, _facts: &Facts) -> Vec<String> {
        Vec::new()
    }

    /// Checks the value of a key that [`ConfigKey::setting`] made.
    ///
    /// # Errors
    /// One sentence: its form is wrong.
    fn check_setting(&self, _name: &str, _value: &serde_json::Value) -> Result<(), Misconfigured> {
        Ok(())
    }

    /// Lines that open a session for a benchmark, each with `true` where its answer is awaited.
    fn bench_opening(&self, _facts: &Facts) -> Vec<(Vec<u8>, bool)> {
        Vec::new()
    }

    /// Lines for a configuration that is written: the tools of the peer.
    fn inventory(&self, facts: &Facts) -> Vec<String> {
        self.seen(facts)
    }

    /// Tools that may play roles and that may be tried, the likeliest first.
    fn candidates(&self, _facts: &Facts) -> Vec<(&'static str, serde_json::Value)> {
        Vec::new()
    }

    /// Reason why the peer cannot be checked as its configuration asks, such as at a revision that it does not speak.
    fn unavailable(&self, _facts: &Facts) -> Option<String> {
        None
    }

    /// Clauses that a library breaks in every peer that uses it, each with the name of the library, where the answers of this
    /// peer show that it uses that library.
    fn libraries(&self, _facts: &Facts) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Further conversations of that kind, once [`Boundary::complete`] has taken what came of the first.
    fn further_probes(&self, _facts: &Facts) -> Vec<Plan> {
        Vec::new()
    }

    /// Completes `facts` by what the probes showed; `features_given` is false where the configuration has no
    /// `[features]` table, so that features are taken as claimed where they show.
    fn complete(&self, _facts: &mut Facts, _features_given: bool, _probes: &[Transcript]) {}

    /// Conversations that show whether what a peer has configured for a role plays it, each with the role. No finding
    /// comes of them. None where the probes try what is configured as well.
    fn trials(&self, _facts: &Facts) -> Option<Vec<(&'static str, Plan)>> {
        None
    }

    /// What came in a trial of `role` instead of what the role says.
    fn misplays(&self, _facts: &Facts, _role: &str, _trial: &Transcript) -> Option<String> {
        None
    }

    /// Features that `facts` do not claim and that the probes show all the same: what was seen, and what to do.
    fn untold(&self, _facts: &Facts, _probes: &[Transcript]) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// What was sent and what came for it, in the order of sending: for comparing peers that had the same conversation.
    fn exchanges(&self, _transcript: &Transcript) -> Vec<Exchange> {
        Vec::new()
    }

    /// Makes a valid, nearly valid or hostile conversation.
    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan;

    /// Smaller variants of one step's payload, most promising first, for the shrinker.
    fn shrink_payload(&self, _plan: &Plan, _step: usize) -> Vec<Plan> {
        Vec::new()
    }

    /// The bytes to write in the place of these, where they depend on the moment of writing (a time, a signature);
    /// `None`: these. What is given is what the transcript holds.
    fn seal(&self, _facts: &Facts, _bytes: &[u8], _moment: &Moment) -> Option<Vec<u8>> {
        None
    }

    /// The plan of a recorded conversation with words in the places that [`Boundary::seal`] has to fill in again when
    /// it is carried out again; `None` where its plan is right as it stands.
    fn reopened(&self, _transcript: &Transcript) -> Option<Plan> {
        None
    }

    /// How many frames have to come at least for these bytes, which are whole lines; `None` where that is not known of
    /// the bytes alone.
    fn frames_due(&self, _facts: &Facts, _bytes: &[u8]) -> Option<u32> {
        None
    }

    /// What a configuration would say of a peer of `side` that plays every role and has every usual feature, under the
    /// names that the roles usually have.
    fn usual_facts(&self, side: Side) -> Facts {
        let own = self.commands().into_iter().filter(|(other, _)| *other == side);
        let commands = own.flat_map(|(_, names)| names).map(str::to_owned).collect();
        Facts { commands, ..Facts::new(side) }
    }

    /// What a benchmark sends to a peer of which this is known, the smallest first. Rows are made of them.
    ///
    /// # Errors
    /// One sentence: nothing can be measured, and what is needed for it.
    fn workloads(&self, _facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        Err("this boundary has no benchmark".into())
    }

    /// A conversation of this many small exchanges with one process, each with its expectation: what a benchmark of
    /// the harness itself carries out. `None` where such a peer has no such conversation.
    fn small_exchanges(&self, _facts: &Facts, _exchanges: usize) -> Option<Plan> {
        None
    }

    /// Texts by which the messages of its peers are told from those of others.
    fn signs(&self) -> &'static [&'static str] {
        &[]
    }

    /// Rungs of checks by their ids behind the boundary's name, as globs; the first that fits counts. Other checks are
    /// [`Rung::Ordinary`].
    fn rungs(&self) -> &'static [(&'static str, Rung)] {
        &[]
    }

    /// Null peers that give whatever comes the same answer, in the words of this boundary. Selftest shows that each is found out.
    fn answers_by_rote(&self) -> &'static [ByRote] {
        &[]
    }

    /// Checks that notice no mutant, each with the reason why it is kept.
    fn redundant_checks(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// The one of `boundaries` that is called `name`; `_` and `-` are the same.
pub fn find(boundaries: &[&'static dyn Boundary], name: &str) -> Option<&'static dyn Boundary> {
    let name = name.replace('-', "_");
    boundaries.iter().copied().find(|boundary| boundary.name() == name)
}

/// As [`find`], for a name that a user wrote.
///
/// # Errors
/// There is none; the nearest and all names are given.
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

/// The checks for peers of `side`, in the order in which they run.
pub fn checks_of_side(boundary: &'static dyn Boundary, side: Side) -> Vec<&'static Check> {
    let commands: Vec<&str> = boundary
        .commands()
        .into_iter()
        .filter(|(other, _)| *other == side)
        .flat_map(|(_, names)| names)
        .collect();
    boundary.checks().iter().filter(|check| commands.contains(&check.command.as_str())).collect()
}

/// How much a clause binds, by its id; one that is not known, as a MUST.
pub fn level(boundary: &dyn Boundary, clause: &ClauseId) -> Level {
    let row = boundary.clauses().iter().find(|row| row.id == *clause);
    row.map_or(Level::Must, |row| row.level)
}

/// Whether a clause belongs to a set of requirements beyond the one that a peer is held to.
pub fn is_beyond(boundary: &dyn Boundary, requirements: &str, clause: &Clause) -> bool {
    let sets = boundary.requirements();
    let held = sets.iter().position(|set| *set == requirements).unwrap_or(0);
    clause.set.as_ref().is_some_and(|set| sets[..held].contains(&set.as_str()))
}

/// Lets a step of `plan` wait for no more frames than have to come for its bytes: what is awaited in vain costs a
/// deadline.
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

/// Judges a stored or fresh transcript the way its plan asks for: by the expectations in its steps, or by the model. What is
/// wrong with the answer to a canary is told once, by its own clause where there is one. Every finding has its occasion.
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
        occasion::fill_in(transcript, &mut judgement.findings, &by_model, &program);
    }
    judgement
}

/// Findings about the conversation of a check without regard to the aims of its steps.
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

/// The MUST that is broken where a finding shows that the peer ended, or the like, of what only a SHOULD asks for.
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
