//! Correct peers in all their allowed forms, against which no check may report a finding.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::row::CheckLines;
use super::{FalsePositive, Proof, Workshop};
use crate::contract::boundary::Boundary;
use crate::data::blame::HarnessFault;
use crate::data::check::Check;
use crate::data::clause::Level;
use crate::data::facts::Facts;
use crate::data::finding::Finding;
use crate::data::rng::Rng;
use crate::drive::peer::Peer;
use crate::drive::presentation::Harmless;
use crate::drive::reference_peers::Reference;
use crate::run::runner::CheckOutcome;
use crate::run::verdict::Verdict;

/// Allowed form of a correct peer.
pub(super) struct Variant {
    pub(super) name: String,
    /// Open choice that it makes: key and value.
    pub(super) choice: Option<(&'static str, &'static str)>,
    /// Further arguments.
    pub(super) extra: Vec<String>,
    pub(super) how: Option<Harmless>,
    /// Feature that it does not claim.
    pub(super) unclaimed: Option<String>,
}

impl Variant {
    /// Usual form.
    pub(super) fn plain() -> Self {
        Self::called(PLAIN)
    }

    fn called(name: &str) -> Self {
        Self { name: name.to_owned(), choice: None, extra: Vec::new(), how: None, unclaimed: None }
    }

    fn is_plain(&self) -> bool {
        self.extra.is_empty() && self.how.is_none()
    }

    /// Further arguments for a process of this form.
    fn process_extra(&self) -> Vec<String> {
        let how = self.how.map(Harmless::process_arguments).unwrap_or_default();
        self.extra.iter().cloned().chain(how).collect()
    }
}

/// Results of forms of the correct peers.
#[derive(Default)]
pub(super) struct FormResults {
    /// Findings against these forms.
    pub(super) found: Vec<FalsePositive>,
    /// Number of forms that were run.
    pub(super) forms: usize,
    /// Names of the variants that a reference could play.
    pub(super) played: BTreeSet<String>,
    /// Peers that could not be run, with the reason.
    pub(super) problems: Vec<String>,
    /// Lines for the golden record about each correct peer, by its commands.
    pub(super) said: BTreeMap<String, CheckLines>,
}

impl FormResults {
    pub(super) fn add(&mut self, other: Self) {
        self.found.extend(other.found);
        self.forms += other.forms;
        self.played.extend(other.played);
        self.problems.extend(other.problems);
        for (peer, said) in other.said {
            self.said.entry(peer).or_default().extend(said);
        }
    }

    fn played(&mut self, variant: &str, found: Vec<FalsePositive>) {
        self.forms += 1;
        self.played.insert(variant.to_owned());
        self.found.extend(found);
    }

    /// Adds the result to a proof. A variant that no reference can play was not tried, which is a problem.
    pub(super) fn enter(self, variants: &[Variant], proof: &mut Proof) {
        proof.variants += self.forms;
        proof.false_positives.extend(self.found);
        proof.problems.extend(self.problems);
        let unplayed = variants.iter().filter(|variant| !self.played.contains(&variant.name));
        proof.problems.extend(
            unplayed
                .map(|variant| format!("not tried: no reference plays the correct peer {}", variant.name)),
        );
    }
}

/// Name of the usual form.
const PLAIN: &str = "plain";

/// Number of bytes above which a check is about sizes: for it one form of the correct peer stands for all.
pub(super) const HEAVY_BYTES: usize = 1 << 20;

impl Workshop<'_> {
    /// All forms of the correct peer: choices, features and presentations.
    pub(super) fn variants(&self) -> Vec<Variant> {
        let mut variants = vec![Variant::plain()];
        for key in self.boundary().description().config_keys.iter().filter(|key| key.table() == "choices") {
            for value in key.words() {
                let choice = format!("{}={value}", key.name);
                variants.push(Variant {
                    extra: vec!["--choice".to_owned(), choice.clone()],
                    choice: Some((key.name, value)),
                    ..Variant::called(&choice)
                });
            }
        }
        let keys = self.boundary().description().config_keys.iter();
        for feature in keys.filter(|key| key.table() == "features" && !key.is_setting()) {
            let feature = feature.name.to_owned();
            variants.push(Variant {
                extra: vec!["--without".to_owned(), feature.clone()],
                unclaimed: Some(feature.clone()),
                ..Variant::called(&format!("without {feature}"))
            });
        }
        // A presentation is tried only if some reference offers it: plain words, for example, have no JSON white space.
        let references = self.played.references();
        let is_offered = |how: &&Harmless| references.iter().any(|it| it.harmless.contains(how));
        for how in Harmless::ALL.iter().filter(is_offered) {
            variants.push(Variant {
                how: Some(*how),
                ..Variant::called(&format!("presented as {}", how.name()))
            });
        }
        variants
    }

    /// Runs every form of the correct peer against the checks that can run in this process.
    pub(super) fn correct(&self, variants: &[Variant], said: &(dyn Fn(String) + Sync)) -> FormResults {
        let mut tried = FormResults::default();
        for reference in self.played.references() {
            let checks = self.checks_inside(&reference);
            let all = self.each(1, variants, |variant| {
                if variant.how.is_some_and(|how| !reference.harmless.contains(&how)) {
                    return None;
                }
                let unclaimed = variant.unclaimed.as_deref();
                let peer = self.machine_peer(&reference, &variant.extra, variant.how, unclaimed)?;
                said(format!("correct peer: {}", variant.name));
                let checks: Vec<&Check> = checks
                    .iter()
                    .filter(|(bytes, _)| variant.is_plain() || *bytes <= HEAVY_BYTES)
                    .map(|(_, check)| *check)
                    .collect();
                Some(self.complaints_about(variant, peer, &checks, true, 1))
            });
            for (variant, found) in variants.iter().zip(all) {
                if let Some((found, said)) = found {
                    tried.played(&variant.name, found);
                    if variant.name == PLAIN {
                        tried.said.insert(commands_of(&reference), said);
                    }
                }
            }
        }
        tried
    }

    /// Runs forms of the correct peers that need a process, against the checks of their choice and the quick ones.
    pub(super) fn correct_processes(
        &self,
        variants: &[Variant],
        said: &(dyn Fn(String) + Sync),
    ) -> FormResults {
        let mut tried = FormResults::default();
        let rng_seed = self.options.rng_seed;
        for reference in self.played.references() {
            let runs_inside = self.machine_peer(&reference, &[], None, None).is_some();
            let taken: Vec<&Variant> = variants
                .iter()
                .filter(|variant| self.needs_process_for(variant, &reference, runs_inside))
                .collect();
            let all = self.each(1, &taken, |variant| {
                said(format!("correct peer: {}, a {}", variant.name, reference.side.word()));
                let mut peer = (self.process)(&reference, &variant.process_extra())?;
                peer.facts.features.retain(|feature, _| Some(feature) != variant.unclaimed.as_ref());
                let checks: Vec<&Check> = self
                    .boundary()
                    .checks()
                    .iter()
                    .take_while(|_| !self.is_interrupted())
                    .filter(|check| peer.commands.contains_key(&check.command))
                    .filter(|check| !check.slow && !check.exclusive && (check.needs_process || !runs_inside))
                    .filter(|check| {
                        let key = variant.choice.map(|(key, _)| key);
                        key.is_some_and(|key| shows(self.boundary(), check, key, &peer.facts, rng_seed))
                            || !check.waits && self.bytes_written(check, &reference) <= HEAVY_BYTES
                    })
                    .collect();
                Ok(self.complaints_about(variant, peer, &checks, false, self.options.confirm))
            });
            for (variant, found) in taken.into_iter().zip(all) {
                match found {
                    Ok((found, _)) => tried.played(&variant.name, found),
                    Err(error) => tried.problems.push(error),
                }
            }
        }
        tried
    }

    /// Verdicts of these checks about the correct peer of these commands, in its usual form.
    ///
    /// # Errors
    /// Fails if a peer cannot be started.
    pub(super) fn usual(&self, commands: &str, checks: &[&Check]) -> Result<CheckLines, HarnessFault> {
        let mut said = CheckLines::new();
        for reference in self.played.references().iter().filter(|it| commands_of(it) == commands) {
            let (outside, inside): (Vec<&Check>, Vec<&Check>) =
                checks.iter().copied().partition(|check| check.needs_process);
            if let Some(peer) = self.machine_peer(reference, &[], None, None).filter(|_| !inside.is_empty()) {
                self.run(&peer, &inside, true, 1, &mut |outcome| self.hear(&mut said, &peer, &outcome, &[]));
            }
            if !outside.is_empty() {
                let (peer, confirm) = ((self.process)(reference, &[])?, self.options.confirm);
                self.run(&peer, &outside, false, confirm, &mut |outcome| {
                    self.hear(&mut said, &peer, &outcome, &[]);
                });
            }
        }
        Ok(said)
    }

    /// Runs `checks` against a variant; returns the findings and the line of each check. If checks saw another choice,
    /// runs them again with the variant's choice pinned, as a configuration would, because some checks cover only one
    /// case.
    fn complaints_about(
        &self,
        variant: &Variant,
        mut peer: Peer,
        checks: &[&Check],
        slow: bool,
        confirm: u32,
    ) -> (Vec<FalsePositive>, CheckLines) {
        let mut found = Vec::new();
        let mut doubted = Vec::new();
        let mut said = CheckLines::new();
        self.run(&peer, checks, slow, confirm, &mut |outcome| {
            self.hear(&mut said, &peer, &outcome, &[]);
            if makes_other_choice(variant, &outcome) {
                doubted.extend(checks.iter().copied().filter(|check| check.id == outcome.result.id));
            }
            if !matches!(outcome.result.verdict, Verdict::Flaky(_)) {
                found.extend(complaints(&variant.name, outcome));
            }
        });
        if let Some((key, value)) = variant.choice.filter(|_| !doubted.is_empty()) {
            peer.facts.choices.insert(key.to_owned(), value.to_owned());
            self.run(&peer, &doubted, slow, confirm, &mut |outcome| {
                found.extend(complaints(&variant.name, outcome));
            });
        }
        found.retain(|complaint| !concedes(self.boundary(), variant, &complaint.finding));
        (found, said)
    }

    /// True if `reference` plays a variant as a process and must, because it cannot do so inside this process or no
    /// check there shows the choice.
    fn needs_process_for(&self, variant: &Variant, reference: &Reference, runs_inside: bool) -> bool {
        let hidden = variant.choice.is_some_and(|(key, _)| self.needs_process(key));
        match variant.how {
            Some(how) => !runs_inside && reference.harmless.contains(&how),
            None if variant.is_plain() => false,
            None => (!runs_inside || hidden) && self.played.reference_takes(reference.side, &variant.extra),
        }
    }

    /// True if all checks about this choice need a process.
    fn needs_process(&self, key: &str) -> bool {
        let mut checks =
            self.boundary().checks().iter().filter(|check| is_about(self.boundary(), check, key)).peekable();
        checks.peek().is_some() && checks.all(|check| check.needs_process)
    }

    /// Runs the correct peers as processes for the checks that need one. A finding that does not repeat is the
    /// machine's fault.
    pub(super) fn correct_process(&self, said: &(dyn Fn(String) + Sync)) -> FormResults {
        let mut tried = FormResults::default();
        said("correct peer: as a process".to_owned());
        for reference in self.played.references() {
            let peer = match (self.process)(&reference, &[]) {
                Ok(peer) => peer,
                Err(error) => {
                    tried.problems.push(error.into());
                    continue;
                }
            };
            let checks: Vec<&Check> = self
                .boundary()
                .checks()
                .iter()
                .filter(|check| check.needs_process && peer.commands.contains_key(&check.command))
                .collect();
            let mut found = Vec::new();
            let said = tried.said.entry(commands_of(&reference)).or_default();
            self.run(&peer, &checks, false, self.options.confirm, &mut |outcome| {
                self.hear(said, &peer, &outcome, &[]);
                if outcome.result.verdict.is_failure() {
                    found.extend(complaints("as a process", outcome));
                }
            });
            tried.played(PLAIN, found);
        }
        tried
    }
}

/// Commands of a reference, which name it in the golden record.
fn commands_of(reference: &Reference) -> String {
    let commands: Vec<&str> = reference.commands.iter().map(|(name, _)| *name).collect();
    commands.join(" ")
}

/// True if a check has a clause of this choice.
fn is_about(boundary: &dyn Boundary, check: &Check, key: &str) -> bool {
    let mut clauses = boundary.clauses().iter().filter(|clause| check.clauses.contains(&clause.id));
    clauses.any(|clause| clause.choice.as_deref() == Some(key))
}

/// True if a check can show the choice `key`: one of its clauses or expectations names it.
pub fn shows(boundary: &dyn Boundary, check: &Check, key: &str, facts: &Facts, rng_seed: u64) -> bool {
    if is_about(boundary, check, key) {
        return true;
    }
    let mut rng = Rng::new(rng_seed).fork(&check.id);
    let Ok(plan) = (check.planner)(facts, &mut rng) else { return false };
    names(&plan.expect, key) || plan.steps.iter().any(|step| names(&step.expect, key))
}

/// True if a text within `expect` equals `key`.
fn names(expect: &Value, key: &str) -> bool {
    match expect {
        Value::String(text) => text == key,
        Value::Array(items) => items.iter().any(|item| names(item, key)),
        Value::Object(members) => members.values().any(|member| names(member, key)),
        _ => false,
    }
}

/// True if a check saw the variant make another choice than it was told.
fn makes_other_choice(variant: &Variant, outcome: &CheckOutcome) -> bool {
    let Some((seen, (key, value))) = outcome.result.choice.as_ref().zip(variant.choice) else { return false };
    // A behaviour that fits several values is written `a|b`.
    seen.key == key && !seen.value.split('|').any(|seen| seen == value)
}

/// True if the choice of a variant breaks the SHOULD that a finding names.
fn concedes(boundary: &dyn Boundary, variant: &Variant, finding: &Finding) -> bool {
    let Some((key, value)) = variant.choice else { return false };
    let mut rows = boundary.clauses().iter().filter(|row| row.id == finding.clause);
    rows.any(|row| {
        row.level == Level::Should
            && row.choice.as_deref() == Some(key)
            && !row.allowed.iter().any(|outcome| outcome == value)
    })
}

fn complaints(variant: &str, outcome: CheckOutcome) -> Vec<FalsePositive> {
    let check = outcome.result.id;
    let complaint = |finding| FalsePositive { variant: variant.to_owned(), check: check.clone(), finding };
    outcome.result.findings.into_iter().map(complaint).collect()
}
