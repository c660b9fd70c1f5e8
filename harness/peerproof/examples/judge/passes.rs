//! Passes: the order in which the reference peers of a boundary are judged in their forms.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::drive::reference_peers::Reference;
use peerproof_engine::run::selftest;

use crate::boundaries::{Form, Judged};
use crate::remote::{self, SharedLine};

/// Maximum number of values of a choice: this many forms cover every value of every choice except the default.
const CHOICE_VALUES_MAX: usize = 3;

/// Environment variables that a process inherits.
const INHERITED: [&str; 2] = ["PATH", "HOME"];

/// Part of the checks in a pass.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Checks that show the peer's choices.
    Choices,
    /// Checks that a failure ends at once: none waits or collects findings of others.
    Quick,
    /// Checks that are not quick.
    Rest,
    /// All checks.
    All,
}

/// Form of a reference peer, with its checks.
pub(crate) struct Pass {
    /// Unique name of the pass.
    pub name: String,
    /// Index of the reference.
    reference: usize,
    /// Further arguments.
    extra: Vec<String>,
    /// Choices that it makes.
    choices: Vec<(String, String)>,
    /// Features that it does not claim.
    unclaimed: Vec<String>,
    /// The only feature to check.
    feature: Option<&'static str>,
    /// Set for a process.
    pub is_process: bool,
    /// Set if no machine plays this reference.
    is_process_only: bool,
    part: Part,
}

impl Pass {
    fn new(name: &str, reference: usize, part: Part) -> Self {
        Self {
            name: format!("{name}-{reference}"),
            reference,
            extra: Vec::new(),
            choices: Vec::new(),
            unclaimed: Vec::new(),
            feature: None,
            is_process: false,
            is_process_only: false,
            part,
        }
    }

    fn choosing(mut self, choices: Vec<(String, String)>) -> Self {
        for (key, value) in &choices {
            self.extra.extend(["--choice".to_owned(), format!("{key}={value}")]);
        }
        self.choices = choices;
        self
    }

    fn of_form(form: &Form, reference: usize) -> Self {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let choices = form.choices.iter().map(owned).collect();
        let mut pass = Self::new(form.name, reference, Part::All).choosing(choices);
        for (key, value) in form.own {
            pass.extra.extend(["--choice".to_owned(), format!("{key}={value}")]);
        }
        for feature in form.without {
            pass.extra.extend(["--without".to_owned(), (*feature).to_owned()]);
            pass.unclaimed.push((*feature).to_owned());
        }
        Self { feature: form.feature, ..pass }
    }

    fn facts(&self, boundary: &dyn Boundary, judged: &Judged, reference: &Reference) -> Facts {
        let mut facts = table::played(boundary).facts_of(reference);
        let told = self.choices.iter().filter(|(key, _)| !judged.untold.contains(&key.as_str()));
        facts.choices.extend(told.cloned());
        facts.features.retain(|feature, _| !self.unclaimed.contains(feature));
        facts
    }

    /// Peer of this pass: machines at the other end of the connection, or processes of `refpeer`.
    pub(crate) fn peer(
        &self,
        boundary: &'static dyn Boundary,
        judged: &Judged,
        line: &SharedLine,
        refpeer: &str,
    ) -> Option<Peer> {
        let references = table::played(boundary).references();
        let reference = references.get(self.reference)?;
        let command = |args: &[String]| -> Vec<String> {
            let program = self.is_process.then(|| refpeer.to_owned());
            let words = words(judged, args).into_iter().chain(self.extra.iter().cloned());
            // `refpeer` takes the payload after all options.
            let (payload, words): (Vec<String>, Vec<String>) = words.partition(|word| word == "{payload}");
            program.into_iter().chain(words).chain(payload).collect()
        };
        let commands: BTreeMap<String, Vec<String>> =
            reference.commands.iter().map(|(name, args)| ((*name).to_owned(), command(args))).collect();
        let origin = if self.is_process {
            let inherited = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
            let base_env = INHERITED.into_iter().filter_map(inherited).collect();
            Origin::Process { base_env, current_dir: None, cpus: Vec::new() }
        } else {
            let line = Arc::clone(line);
            Origin::InProcess(Arc::new(move |args, env| remote::open(&line, args, env)))
        };
        Some(Peer {
            name: "mutant".to_owned(),
            boundary,
            commands,
            env: Vec::new(),
            facts: self.facts(boundary, judged, reference),
            features_given: true,
            origin,
            pace: Arc::default(),
        })
    }

    /// Checks of the pass, cheapest first.
    pub(crate) fn checks<'c>(&self, checks: &'c [Check], peer: &Peer, rng_seed: u64) -> Vec<&'c Check> {
        let mut checks: Vec<&Check> = checks
            .iter()
            .filter(|check| self.is_process_only || check.needs_process == self.is_process)
            .filter(|check| peer.commands.contains_key(&check.command))
            .filter(|check| self.feature.is_none_or(|feature| check.feature.as_deref() == Some(feature)))
            .filter(|check| self.has(check, peer, rng_seed))
            .collect();
        checks.sort_by_cached_key(|check| bytes_written(check, peer, rng_seed));
        checks
    }

    fn has(&self, check: &Check, peer: &Peer, rng_seed: u64) -> bool {
        let is_quick = !(check.ambient || check.waits || check.slow || check.exclusive);
        match self.part {
            Part::All => true,
            Part::Quick => is_quick,
            Part::Rest => !is_quick,
            Part::Choices => {
                let shows = |(key, _): &(String, String)| {
                    selftest::shows(peer.boundary, check, key, &peer.facts, rng_seed)
                };
                self.choices.iter().any(shows)
            }
        }
    }
}

/// Number of bytes that a check writes.
fn bytes_written(check: &Check, peer: &Peer, rng_seed: u64) -> usize {
    let Ok(plan) = (check.planner)(&peer.facts, &mut Rng::new(rng_seed).fork(&check.id)) else { return 0 };
    let bytes = |act: &Act| match act {
        Act::Send { payload, .. } => payload.len(&Vars::new()),
        _ => 0,
    };
    plan.steps.iter().map(|step| bytes(&step.act)).sum()
}

/// Arguments of `refpeer` for those of `peerproof peer`.
fn words(judged: &Judged, args: &[String]) -> Vec<String> {
    let named = args.split_first().and_then(|(first, rest)| {
        let (_, word) = judged.words.iter().find(|(name, _)| name == first)?;
        Some((*word, rest))
    });
    let usual = judged.boundary.replace('_', "-");
    let usual = judged.words.last().map_or(usual.as_str(), |(_, word)| *word);
    let (word, args) = named.unwrap_or((usual, args));
    [word.to_owned()].into_iter().chain(args.iter().cloned()).collect()
}

/// Value number `nth` of every choice that a reference of this side makes, starting with the default.
fn choices(boundary: &dyn Boundary, side: Side, nth: usize) -> Vec<(String, String)> {
    let keys = boundary.description().config_keys.iter().filter(|key| key.table() == "choices");
    keys.filter_map(|key| {
        let value = key.words().get(nth).or_else(|| key.words().last())?;
        Some((key.name.to_owned(), (*value).to_owned()))
    })
    .filter(|(key, value)| {
        table::played(boundary).reference_takes(side, &["--choice".to_owned(), format!("{key}={value}")])
    })
    .collect()
}

/// Reference under judgement.
struct Subject {
    at: usize,
    side: Side,
    /// Set if a machine can play it.
    has_machine: bool,
    /// Set if it is the first of its side.
    is_first: bool,
}

fn subjects(boundary: &dyn Boundary, judged: &Judged) -> Vec<Subject> {
    let mut seen = Vec::new();
    let references = table::played(boundary).references();
    let references =
        references.iter().enumerate().filter(|(_, reference)| judged.sides.contains(&reference.side));
    references
        .map(|(at, reference)| {
            let side = reference.side;
            let first = reference.commands.first();
            let machine = first.and_then(|(_, args)| table::played(boundary).reference_machine(args, &[]));
            let is_first = !seen.contains(&side);
            seen.push(side);
            Subject { at, side, has_machine: machine.is_some(), is_first }
        })
        .collect()
}

/// All passes: those without processes first, those that wait last.
pub(crate) fn all(boundary: &dyn Boundary, judged: &Judged) -> Vec<Pass> {
    let subjects = subjects(boundary, judged);
    let (machines, processes): (Vec<&Subject>, Vec<&Subject>) =
        subjects.iter().partition(|subject| subject.has_machine);
    // References of one side differ in features, which choices do not depend on.
    let choosing = |subjects: &[&Subject], part| -> Vec<Pass> {
        let firsts = subjects.iter().filter(|subject| subject.is_first);
        let each = firsts.flat_map(|subject| (0..CHOICE_VALUES_MAX).map(move |nth| (subject, nth)));
        each.map(|(subject, nth)| {
            let pass = Pass::new(&format!("choices-{nth}"), subject.at, part);
            pass.choosing(choices(boundary, subject.side, nth))
        })
        .collect()
    };
    let forms = judged.forms.iter().filter_map(|form| {
        let subject = subjects.iter().find(|subject| subject.side == form.side)?;
        Some((Pass::of_form(form, subject.at), form.is_process || !subject.has_machine))
    });
    let (in_process, inside): (Vec<_>, Vec<_>) = forms.partition(|(_, is_process)| *is_process);
    let process = |pass: Pass| {
        let is_process_only = processes.iter().any(|subject| subject.at == pass.reference);
        Pass { is_process: true, is_process_only, ..pass }
    };

    let mut passes: Vec<Pass> =
        machines.iter().map(|subject| Pass::new("plain", subject.at, Part::All)).collect();
    passes.extend(choosing(&machines, Part::All));
    passes.extend(inside.into_iter().map(|(pass, _)| pass));
    passes.extend(subjects.iter().map(|subject| process(Pass::new("quick", subject.at, Part::Quick))));
    passes.extend(choosing(&processes, Part::Choices).into_iter().map(process));
    passes.extend(in_process.into_iter().map(|(pass, _)| process(pass)));
    passes.extend(subjects.iter().map(|subject| process(Pass::new("slower", subject.at, Part::Rest))));
    passes
}
