//! Differences between the answers of peers to equal generated conversations.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::contract::boundary::NormalizedExchange;
use crate::data::blame::HarnessFault;
use crate::data::facts::Facts;
use crate::data::plan::Plan;
use crate::data::rng::Rng;
use crate::drive::peer::Peer;

/// Kind of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// Some answers break a clause.
    Fault,
    /// The contract leaves a named choice.
    Choice,
    /// All answers are allowed but no choice is named: a question to the contract.
    Question,
}

/// Peers with equal answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cluster {
    /// Normalised answer of these peers in the first conversation with the difference.
    pub came: String,
    /// Names of the peers.
    pub peers: Vec<String>,
    /// Reason code if the answer breaks the clause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Shortest conversation that shows a difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shortest {
    /// Messages to and from the first deviating peer.
    pub conversation: Vec<String>,
    /// Number of steps in the original conversation and in this one.
    pub steps: (usize, usize),
    /// Number of bytes in both.
    pub bytes: (usize, usize),
    /// Number of conversations with all peers that shrinking took.
    pub runs: usize,
    /// Path of its transcript, relative to the folder of the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
}

impl Shortest {
    /// True if shrinking made it shorter.
    pub fn is_shorter(&self) -> bool {
        self.steps.1 < self.steps.0 || self.bytes.1 < self.bytes.0
    }

    /// Lines to show; none if shrinking failed, because the long conversation is in its transcript.
    pub fn shown(&self) -> &[String] {
        if self.is_shorter() { &self.conversation } else { &[] }
    }
}

/// Difference, with all its occurrences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Kind of difference.
    pub sort: Sort,
    /// Clause that says which answers are allowed.
    pub clause: String,
    /// Key of the open choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    /// Allowed answers.
    pub expected: String,
    /// Message sent in the first conversation with the difference.
    pub sent: String,
    /// Number of the first conversation with the difference.
    pub conversation: u64,
    /// Number of occurrences.
    pub times: u64,
    /// Groups of equal answers, the largest first.
    pub clusters: Vec<Cluster>,
    /// Deviating peers: those that break the clause (perhaps all), or else those outside the largest cluster.
    pub apart: Vec<String>,
    /// Number of repetitions that showed it, up to [`TIMES`](super::confirm::TIMES), until one did not.
    pub shown: u32,
    /// Reason why the conversation could not be repeated often enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// Shortest conversation that shows it, if one was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortest: Option<Shortest>,
}

impl Difference {
    /// True if both have one subject, and the same peers deviate for the same reasons.
    pub fn is_like(&self, other: &Self) -> bool {
        let faults = |difference: &Self| -> BTreeSet<(Vec<String>, Option<String>)> {
            let apart =
                difference.clusters.iter().filter(|cluster| difference.apart.contains(&cluster.peers[0]));
            apart.map(|cluster| (cluster.peers.clone(), cluster.fault.clone())).collect()
        };
        (self.sort, &self.clause, &self.choice) == (other.sort, &other.clause, &other.choice)
            && faults(self) == faults(other)
    }
}

/// Result of a differential run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Differences {
    /// Boundary of all peers.
    pub boundary: String,
    /// Seed of every random choice.
    pub rng_seed: u64,
    /// Names of the peers.
    pub peers: Vec<String>,
    /// Number of conversations that every peer finished.
    pub conversations: u64,
    /// Number of compared answers.
    pub exchanges: u64,
    /// Number of answers in which all peers agreed.
    pub alike: u64,
    /// Number of answers that differ only because earlier correct ones did.
    pub follow: u64,
    /// Differences: faults, then choices, then questions.
    pub differences: Vec<Difference>,
    /// Differences that did not show in every repetition.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<Difference>,
    /// First conversation that could not be finished, with the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
}

impl Differences {
    /// True if a peer broke a clause.
    pub fn any_fault(&self) -> bool {
        self.differences.iter().any(|difference| difference.sort == Sort::Fault)
    }
}

/// Facts that all peers share. Conversations made from them mean the same to each.
pub fn common(peers: &[Peer]) -> Facts {
    let Some((first, rest)) = peers.split_first() else {
        return Facts::new(crate::data::clause::Side::Provider);
    };
    let mut facts = first.facts.clone();
    for other in rest.iter().map(|peer| &peer.facts) {
        facts.commands.retain(|name| other.commands.contains(name));
        facts.roles.retain(|name, value| other.roles.get(name) == Some(value));
        facts.features.retain(|name, value| other.features.get(name) == Some(value));
        facts.choices.retain(|name, value| other.choices.get(name) == Some(value));
        facts.limits.retain(|name, value| other.limits.get(name) == Some(value));
    }
    facts
}

/// Plan of conversation `n` for peers with these common `facts`.
pub fn plan(peers: &[Peer], facts: &Facts, rng_seed: u64, n: u64) -> Option<Plan> {
    let mut rng = Rng::new(rng_seed).fork(&format!("matrix/{n}"));
    Some(peers.first()?.boundary.generate(facts, &mut rng))
}

/// Identity of a difference: its subject, the deviating peers and their reasons.
type DifferenceKey = (Sort, String, Option<String>, Vec<(Vec<String>, Option<String>)>);

pub(super) struct DifferenceTally {
    names: Vec<String>,
    out: Differences,
    by_key: BTreeMap<DifferenceKey, Difference>,
}

impl DifferenceTally {
    /// Records a conversation that could not be held.
    pub(super) fn give_up(&mut self, n: u64, error: &HarnessFault) {
        self.out.given_up.get_or_insert(format!("conversation {n}: {error}"));
    }

    pub(super) fn new(peers: &[Peer], rng_seed: u64) -> Self {
        let names: Vec<String> = peers.iter().map(|peer| peer.name.clone()).collect();
        let out = Differences {
            boundary: peers.first().map_or("", |peer| peer.boundary.name()).to_owned(),
            rng_seed,
            peers: names.clone(),
            conversations: 0,
            exchanges: 0,
            alike: 0,
            follow: 0,
            differences: Vec::new(),
            unsteady: Vec::new(),
            given_up: None,
        };
        Self { names, out, by_key: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, conversation: u64, all: &[Vec<NormalizedExchange>]) {
        self.out.conversations += 1;
        // A peer that ended early was sent less.
        let count = all.iter().map(Vec::len).max().unwrap_or(0);
        for at in 0..count {
            self.one(conversation, &all.iter().map(|list| list.get(at)).collect::<Vec<_>>());
        }
    }

    fn one(&mut self, conversation: u64, answers: &[Option<&NormalizedExchange>]) {
        // Peers that were not asked, because their conversation had stopped, do not count.
        let there: Vec<(&String, &NormalizedExchange)> =
            self.names.iter().zip(answers).filter_map(|(name, answer)| Some((name, (*answer)?))).collect();
        let mut clusters: Vec<Cluster> = Vec::new();
        for (name, answer) in &there {
            let same = |cluster: &&mut Cluster| cluster.came == answer.came && cluster.fault == answer.fault;
            match clusters.iter_mut().find(same) {
                Some(cluster) => cluster.peers.push((*name).clone()),
                None => clusters.push(Cluster {
                    came: answer.came.clone(),
                    peers: vec![(*name).clone()],
                    fault: answer.fault.clone(),
                }),
            }
        }
        let Some((_, about)) = there.iter().find(|(_, answer)| answer.fault.is_some()).or(there.first())
        else {
            return;
        };
        self.out.exchanges += 1;
        let faulty = about.fault.is_some();
        if clusters.len() < 2 {
            self.out.alike += 1;
        }
        // The consequence of an earlier difference is not a difference of its own.
        let follows = there.iter().any(|(_, answer)| answer.expected != about.expected);
        let sort = match (faulty, &about.choice) {
            (true, _) => Sort::Fault,
            (false, _) if clusters.len() < 2 => return,
            (false, _) if follows => {
                self.out.follow += 1;
                return;
            }
            (false, Some(_)) => Sort::Choice,
            (false, None) => Sort::Question,
        };
        clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.peers.len()));
        let stands_apart =
            |(at, cluster): &(usize, &Cluster)| if faulty { cluster.fault.is_some() } else { *at > 0 };
        let apart: Vec<&Cluster> =
            clusters.iter().enumerate().filter(stands_apart).map(|(_, cluster)| cluster).collect();
        let who = apart.iter().map(|cluster| (cluster.peers.clone(), cluster.fault.clone())).collect();
        let key = (sort, about.clause.clone(), about.choice.clone(), who);
        let apart = apart.iter().flat_map(|cluster| cluster.peers.clone()).collect();
        let difference = self.by_key.entry(key).or_insert_with(|| Difference {
            sort,
            clause: about.clause.clone(),
            choice: about.choice.clone(),
            expected: about.expected.clone(),
            sent: about.sent.clone(),
            conversation,
            times: 0,
            apart,
            clusters,
            shown: 1,
            cut: None,
            shortest: None,
        });
        difference.times += 1;
    }

    pub(super) fn done(mut self) -> Differences {
        // Keys begin with the sort, so faults come first.
        self.out.differences = self.by_key.into_values().collect();
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::clause::Side;

    fn exchange(came: &str, fault: Option<&str>, choice: Option<&str>) -> NormalizedExchange {
        NormalizedExchange {
            sent: "x".to_owned(),
            came: came.to_owned(),
            clause: "X-01".to_owned(),
            choice: choice.map(str::to_owned),
            expected: "y".to_owned(),
            fault: fault.map(str::to_owned),
        }
    }

    fn tally(answers: &[&[NormalizedExchange]]) -> Differences {
        let names = (0..answers.len()).map(|at| format!("p{at}")).collect();
        let mut tally = DifferenceTally::new(&[], 1);
        tally.names = names;
        tally.add(0, &answers.iter().map(|list| list.to_vec()).collect::<Vec<_>>());
        tally.done()
    }

    #[test]
    fn who_breaks_the_clause_stands_apart_else_the_smaller_part() {
        let right = || exchange("a", None, None);
        let wrong = || exchange("b", Some("accepted"), None);
        let found = tally(&[&[wrong(), right()], &[wrong(), right()], &[right(), exchange("c", None, None)]]);
        let [fault, question] = &found.differences[..] else { panic!("{found:?}") };
        assert_eq!((fault.sort, &fault.apart[..]), (Sort::Fault, &["p0".to_owned(), "p1".to_owned()][..]));
        assert_eq!((question.sort, &question.apart[..]), (Sort::Question, &["p2".to_owned()][..]));
    }

    #[test]
    fn a_named_choice_is_no_question_and_what_all_break_is_a_fault() {
        let chosen = |came| exchange(came, None, Some("null_id"));
        let found = tally(&[&[chosen("a"), chosen("a")], &[chosen("b")]]);
        assert_eq!(
            found.differences.iter().map(|one| (one.sort, one.times)).collect::<Vec<_>>(),
            [(Sort::Choice, 1)]
        );
        assert!(!found.any_fault());
        let found = tally(&[&[exchange("b", Some("x"), None)], &[exchange("b", Some("x"), None)]]);
        assert!(found.any_fault());
        assert_eq!(found.differences[0].apart, ["p0", "p1"]);
    }

    #[test]
    fn what_follows_from_an_earlier_difference_is_none() {
        let other = NormalizedExchange { expected: "z".to_owned(), ..exchange("b", None, None) };
        let found = tally(&[&[exchange("a", None, None)], &[other]]);
        assert_eq!((found.differences.len(), found.follow), (0, 1));
    }

    #[test]
    fn nothing_is_common_to_no_peers() {
        assert_eq!(common(&[]), Facts::new(Side::Provider));
    }
}
