//! Judgement of the relations between replies.

use std::collections::{BTreeMap, BTreeSet};

use super::super::artifact::{Artifact, Slots};
use super::super::expect::Match;
use super::super::relation::Relation;
use super::{Answer, answers};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Act;
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Judges the relations of a plan, the consistency of replies on an open choice, and the use of secrets.
pub(super) fn judge(transcript: &Transcript, judgement: &mut Judgement) {
    let plan = &transcript.plan;
    let relations = Relation::all(plan);
    let captures = plan.steps.iter().any(|step| step.capture.is_some());
    let choices = plan.steps.iter().filter(|step| step.expect.get("choice").is_some()).count();
    if relations.is_empty() && !captures && choices < 2 {
        return;
    }
    let answers = answers(transcript);
    let mut scene = Scene { transcript, answers: &answers, judgement };
    for relation in relations {
        scene.relation(relation);
    }
    scene.choices();
    scene.secrets();
}

/// Data for judging relations.
struct Scene<'a> {
    transcript: &'a Transcript,
    answers: &'a [Answer],
    judgement: &'a mut Judgement,
}

impl<'a> Scene<'a> {
    fn reply(&self, step: usize) -> Option<&'a Json> {
        self.answers.iter().find(|answer| answer.step == step)?.reply.as_ref()
    }

    /// First reply to `step` that is not a success.
    fn refusal(&self, step: usize) -> Option<&'a Json> {
        let replies = self.answers.iter().filter(|answer| answer.step == step);
        replies.filter_map(|answer| answer.reply.as_ref()).find(|reply| !is_ok(reply))
    }

    fn add(&mut self, clause: &ClauseId, step: usize, reason: &str, expected: impl Into<String>, got: &Json) {
        let finding = Finding::new(clause.0.as_str(), reason, expected, got.to_text());
        self.judgement.findings.push(finding.at(step));
    }

    /// True if the reply to `again` came at most `ms` after `first` was sent. Otherwise marks the check as undecided.
    fn came_within(&mut self, first: usize, again: usize, ms: u64) -> bool {
        let is_in_time = match (self.sent_us(first), self.received_us(again)) {
            (Some(from), Some(to)) => to.saturating_sub(from) <= ms * 1_000,
            _ => false,
        };
        if !is_in_time {
            self.cannot_decide("late", "this machine was too busy to repeat the request in time");
        }
        is_in_time
    }

    fn cannot_decide(&mut self, code: &'static str, detail: impl Into<String>) {
        self.judgement.untestable.get_or_insert_with(|| Untestable::new(code, detail));
    }

    /// Judges one relation. A missing reply is left to the expectation of its step.
    fn relation(&mut self, relation: Relation) {
        match relation {
            Relation::SameResult { clause, step, of } => {
                let (Some(reply), Some(first)) = (self.reply(step), self.reply(of)) else { return };
                if result(reply) != result(first) {
                    let first = first.to_text();
                    self.add(&clause, step, "other_result", format!("the first result: {first}"), reply);
                }
            }
            Relation::HitState { clause, full, step, of } => self.hit_state(&clause, &full, step, of),
            Relation::SomeRanAgain { clause, steps, oldest, choice } => {
                self.some_ran_again(&clause, &steps, oldest, choice);
            }
            Relation::HeldFor { clause, first, again, ms } => {
                let Some(reply) = self.reply(again).filter(|reply| !is_hit(reply)) else { return };
                if self.came_within(first, again, ms) {
                    self.add(
                        &clause,
                        again,
                        "forgotten_early",
                        "a hit, because the key has not expired",
                        reply,
                    );
                }
            }
            Relation::LivesFor { clause, first, again, ms } => {
                let Some(reply) = self.reply(again).filter(|reply| !is_ok(reply)) else { return };
                if self.came_within(first, again, ms) {
                    self.add(
                        &clause,
                        again,
                        "expired_early",
                        "ok:true, because the lease has not expired",
                        reply,
                    );
                }
            }
            Relation::SucceedsLike { clause, step, of } => {
                if !self.reply(of).is_some_and(is_ok) {
                    self.cannot_decide(
                        "control_refused",
                        "the peer also refuses this request in a case where it is allowed",
                    );
                } else if let Some(reply) = self.refusal(step) {
                    self.add(&clause, step, "refused", "ok:true", reply);
                }
            }
            Relation::Issued { clause, step, pointer } => {
                let Some(reply) = self.reply(step) else { return };
                let token = reply.pointer(&pointer);
                if token.is_none() && is_ok(reply) {
                    self.cannot_decide(
                        "wrong_pointer",
                        format!(
                            "the lease was issued, but its reply holds nothing at {pointer}; check `token` \
                         under [features] lease"
                        ),
                    );
                } else if !Match::NonEmptyString.holds(token) {
                    let expected = format!("{pointer} {}", Match::NonEmptyString.phrase());
                    self.add(&clause, step, "wrong_member", expected, reply);
                }
            }
            Relation::Control { step } => {
                if !self.reply(step).is_some_and(is_ok) {
                    self.cannot_decide(
                        "control_refused",
                        "the peer also refuses this request in a case where it is allowed",
                    );
                }
            }
            Relation::Member { clause, step, pointer, what } => {
                let Some(reply) = self.reply(step) else { return };
                if !what.holds(reply.pointer(&pointer)) {
                    self.add(&clause, step, "wrong_member", format!("{pointer} {}", what.phrase()), reply);
                }
            }
            Relation::DeltaLeads { clause, step, bases, after } => {
                let Some(reply) = self.reply(step) else { return };
                // Every conversation judges missing states and states that are not deltas.
                let Some(delta) = reply.get("ds_state").filter(|state| is_delta(state)) else { return };
                if !bases.into_iter().any(|base| applied(base, delta).as_ref() == Some(&after)) {
                    let slots: Vec<&str> = after.keys().map(String::as_str).collect();
                    let expected = format!("a delta to the state with slots [{}]", slots.join(","));
                    self.add(&clause, step, "wrong_delta", expected, reply);
                }
            }
            Relation::NotContacted { clause, listener } => {
                let hit = self.transcript.events.iter().find_map(|event| match &event.kind {
                    EventKind::ListenerHit { listener: name, head, .. } if *name == listener => Some(head),
                    _ => None,
                });
                if let Some(head) = hit {
                    let head = String::from_utf8_lossy(&head.0);
                    let got = format!("contacted: {}", head.lines().next().unwrap_or_default());
                    let finding =
                        Finding::new(clause.0.as_str(), "contacted", "no connection to the host", got);
                    self.judgement.findings.push(finding);
                }
            }
        }
    }

    fn hit_state(&mut self, clause: &ClauseId, full: &ClauseId, step: usize, of: usize) {
        let Some(reply) = self.reply(step).filter(|reply| is_hit(reply)) else { return };
        let Some(state) = reply.get("ds_state") else { return };
        if !is_delta(state) {
            self.add(full, step, "hit_reads_as_full", "a ds_state with \"delta\":true", reply);
            return;
        }
        let first = self.reply(of).and_then(|first| first.get("ds_state"));
        if !is_empty_delta(state) && first != Some(state) {
            self.add(clause, step, "hit_state", "an empty delta or the first one again", reply);
        }
    }

    fn some_ran_again(&mut self, clause: &ClauseId, steps: &[usize], oldest: usize, choice: String) {
        let asked: Vec<&Answer> = self.answers.iter().filter(|answer| steps.contains(&answer.step)).collect();
        let misses: Vec<usize> = asked
            .iter()
            .filter(|answer| answer.reply.as_ref().is_some_and(|reply| !is_hit(reply)))
            .map(|answer| answer.step)
            .collect();
        let value = match misses.as_slice() {
            [] if asked.iter().any(|answer| answer.reply.is_none()) => return,
            [] => {
                let got = format!("a hit for each of the {} keys", asked.len());
                let expected = "at least one key was dropped, so its request runs the tool again";
                let finding = Finding::new(clause.0.as_str(), "all_held", expected, got);
                self.judgement.findings.push(finding.at(oldest));
                return;
            }
            [step] if *step == oldest => "oldest",
            [_] => "another",
            _ => "several",
        };
        self.judgement.choice = Some(ChoiceSeen { pinned: false, key: choice, value: value.to_owned() });
    }

    /// Checks that replies on one open choice show one value. An outcome may fit several: `a|b`.
    fn choices(&mut self) {
        let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut several = false;
        for answer in self.answers {
            let (Some(key), Some(reply)) = (answer.expect.choice.as_deref(), &answer.reply) else { continue };
            let Some(value) = answer.expect.fit(reply).and_then(|allowed| allowed.choice.as_deref()) else {
                continue;
            };
            let values: BTreeSet<&str> = value.split('|').collect();
            match seen.get_mut(key) {
                None => {
                    seen.insert(key, values);
                }
                Some(before) => {
                    several = true;
                    let both: BTreeSet<&str> = before.intersection(&values).copied().collect();
                    if both.is_empty() {
                        let before: Vec<&str> = before.iter().copied().collect();
                        let expected = format!("{key} = {}, as in an earlier reply", before.join(" or "));
                        self.add(&answer.expect.clause, answer.step, "inconsistent", expected, reply);
                        return;
                    }
                    *before = both;
                }
            }
        }
        if several && let Some((key, values)) = seen.into_iter().next() {
            let mut values = values.into_iter();
            let only = values.next().filter(|_| values.next().is_none());
            self.judgement.choice =
                only.map(|value| ChoiceSeen { pinned: false, key: key.to_owned(), value: value.to_owned() });
        }
    }

    /// Checks for values that later steps need and did not get, and for secrets that were repeated.
    fn secrets(&mut self) {
        for (index, step) in self.transcript.plan.steps.iter().enumerate() {
            let (Some(capture), Act::Send { .. }) = (&step.capture, &step.act) else { continue };
            let Some(reply) = self.reply(index) else { continue };
            let Some(value) = reply.pointer(&capture.pointer) else {
                self.cannot_decide(
                    "not_issued",
                    "the reply to the configured `issue` request contains no token",
                );
                continue;
            };
            let Some(secret) = value.as_str().filter(|text| capture.secret && text.len() >= TOKEN_BYTES_MIN)
            else {
                continue;
            };
            let issuing =
                |reply: &Json| reply.pointer(&capture.pointer).and_then(Json::as_str) == Some(secret);
            let echo = self.answers.iter().find(|answer| {
                let reply = answer.reply.as_ref().filter(|reply| !issuing(reply));
                answer.session == step.session && reply.is_some_and(|reply| reply.to_text().contains(secret))
            });
            if let Some(Answer { step, reply: Some(reply), .. }) = echo {
                let expected = "no token in any reply except the one that issues it";
                self.add(&TOKEN_ONCE.into(), *step, "token_echoed", expected, reply);
            }
        }
    }

    fn sent_us(&self, step: usize) -> Option<u64> {
        self.transcript.events.iter().find_map(|event| match event.kind {
            EventKind::Sent { step: sent, .. } if sent == step => Some(event.at_us),
            _ => None,
        })
    }

    /// Time of the first bytes after this step, in microseconds.
    fn received_us(&self, step: usize) -> Option<u64> {
        let session = self.transcript.plan.steps.get(step)?.session;
        let sent = self.sent_us(step)?;
        self.transcript.of(session).find_map(|event| match event.kind {
            EventKind::Received { .. } if event.at_us >= sent => Some(event.at_us),
            _ => None,
        })
    }
}

/// Clause that every conversation with a lease can break.
const TOKEN_ONCE: &str = "TH-LEASE-15";

/// Shortest token that can be replaced. Shorter ones could have equal replacements.
const TOKEN_BYTES_MIN: usize = 12;

fn result(reply: &Json) -> [Option<&Json>; 4] {
    ["ok", "status", "output_json", "error"].map(|name| reply.get(name))
}

fn is_ok(reply: &Json) -> bool {
    reply.get("ok").and_then(Json::as_bool) == Some(true)
}

fn is_hit(reply: &Json) -> bool {
    reply.get("idempotent_hit").and_then(Json::as_bool) == Some(true)
}

fn is_delta(state: &Json) -> bool {
    state.get("delta").and_then(Json::as_bool) == Some(true)
}

fn is_empty_delta(state: &Json) -> bool {
    let empty = |name: &str| match state.get(name) {
        None => true,
        Some(Json::Object(members)) => members.is_empty(),
        Some(Json::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    empty("slots") && empty("removed_slots")
}

/// `base` after a delta; `None` if the delta has a wrong shape.
fn applied(mut base: Slots, delta: &Json) -> Option<Slots> {
    for slot in delta.get("removed_slots").and_then(Json::as_array).unwrap_or_default() {
        base.remove(&slot.as_u64()?.to_string());
    }
    for (name, artifact) in delta.get("slots").and_then(Json::as_object).unwrap_or_default() {
        base.insert(name.clone(), Artifact::read(artifact)?);
    }
    Some(base)
}
