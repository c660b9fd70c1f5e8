//! The golden record: what every check says of the correct peers and of every mutant, as text to be kept and compared.
//!
//! A change that moves code changes none of it; one that means to change a verdict changes the line that says so.

use std::collections::BTreeMap;

use super::{OF_MACHINE, Workshop, arguments, is_at_risk};
use crate::boundary::{Mutant, Reference};
use crate::check::Check;
use crate::peer::Peer;
use crate::report::verdicts;
use crate::verdict::CheckResult;

/// What each check came to, by id, as [`verdicts::line`] writes it.
type Said = BTreeMap<String, String>;

impl Workshop<'_> {
    /// The record of one boundary: a paragraph for each correct peer with every check, then one for each mutant with the
    /// checks of its clauses that say something else of it than of the correct peer.
    ///
    /// # Errors
    /// One sentence where a reference peer cannot be started.
    pub fn golden(&self, said: &(dyn Fn(String) + Sync)) -> Result<String, String> {
        let mut record = String::new();
        let mut correct: Vec<Said> = Vec::new();
        for reference in self.boundary.references() {
            said(format!("correct peer: {}", reference.side.word()));
            let all = self.of_reference(&reference)?;
            let commands: Vec<&str> = reference.commands.iter().map(|(name, _)| *name).collect();
            paragraph(&mut record, &format!("correct {}", commands.join(" ")), &all);
            correct.push(all);
        }
        let mutants = self.boundary.mutants();
        let rows = self.each(1, &mutants, |mutant| {
            said(format!("mutant {}", mutant.id));
            self.of_mutant(mutant, &correct)
        });
        for (mutant, row) in mutants.iter().zip(rows) {
            paragraph(&mut record, &format!("mutant {}", mutant.id), &row?);
        }
        Ok(record)
    }

    /// Every check of a correct peer, in this process where it can be.
    fn of_reference(&self, reference: &Reference) -> Result<Said, String> {
        let mut all = Said::new();
        let inside = self.inside(reference);
        if let Some(peer) = self.machine_peer(reference, &[], None, None) {
            self.say(&peer, &inside, true, &mut all);
        }
        let peer = (self.process)(reference, &[])?;
        let outside: Vec<&Check> = self
            .boundary
            .checks()
            .iter()
            .filter(|check| peer.commands.contains_key(&check.command) && !all.contains_key(&check.id))
            .collect();
        self.say(&peer, &outside, false, &mut all);
        Ok(all)
    }

    /// What the checks of a mutant's clauses say otherwise of it: in this process where they can, else as a process.
    fn of_mutant(&self, mutant: &Mutant, correct: &[Said]) -> Result<Said, String> {
        let mut all = Said::new();
        let references = self.boundary.references();
        let played = references.iter().zip(correct).filter(|(it, _)| self.boundary.plays(it, mutant));
        for (reference, correct) in played {
            let at_risk = |check: &&Check| is_at_risk(check, mutant);
            let machine = (!mutant.needs_process)
                .then(|| self.machine_peer(reference, &arguments(mutant), None, mutant.unclaimed));
            if let Some(peer) = machine.flatten() {
                let checks: Vec<&Check> = self.inside(reference).into_iter().filter(at_risk).collect();
                self.say(&peer, &checks, true, &mut all);
            } else {
                let peer = self.process_peer(reference, mutant)?;
                let runs = |check: &&Check| peer.commands.contains_key(&check.command) && !check.slow;
                let checks: Vec<&Check> =
                    self.boundary.checks().iter().filter(at_risk).filter(runs).collect();
                self.say(&peer, &checks, false, &mut all);
            }
            all.retain(|check, line| correct.get(check) != Some(line) && !line.contains(OF_MACHINE));
        }
        Ok(all)
    }

    fn inside(&self, reference: &Reference) -> Vec<&Check> {
        self.checks_inside(reference).into_iter().map(|(_, check)| check).collect()
    }

    fn say(&self, peer: &Peer, checks: &[&Check], slow: bool, all: &mut Said) {
        self.run(peer, checks, slow, 1, &mut |outcome| {
            let result: &CheckResult = &outcome.result;
            all.insert(result.id.clone(), verdicts::line(result));
        });
    }
}

fn paragraph(record: &mut String, title: &str, lines: &Said) {
    record.push_str("= ");
    record.push_str(title);
    record.push('\n');
    for line in lines.values() {
        record.push_str(line);
        record.push('\n');
    }
}
