//! Remembers which clauses a peer breaks by not answering, so that later checks wait less and need fewer confirmations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::lock;
use crate::data::clause::ClauseId;
use crate::data::finding::{Finding, Judgement, Nature};
use crate::data::plan::{Plan, Session};
use crate::data::transcript::{EventKind, Transcript};
use crate::drive::lab::Lab;

/// Minimum of a short wait.
const SHORT_WAIT: Duration = Duration::from_millis(500);
/// Minimum wait for a reply before a canary is sent after the message.
const SHORT_PATIENCE: Duration = Duration::from_millis(50);
/// Minimum wait before a canary, as a multiple of the usual latency of canaries.
const LATENCIES_PER_SHORT_PATIENCE: u32 = 4;
/// Divisor of the time for large input.
const LARGE_SHARE: u32 = 10;
/// Divisor of the time for an effect outside a session.
const EFFECT_SHARE: u32 = 3;
/// Short wait as a multiple of the slowest canary.
const LATENCIES_PER_SHORT_WAIT: u32 = 10;

/// Length of the waits of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As long as a peer may take.
    Full,
    /// Longer than the peer has taken so far by a good margin. A new silence in a short wait leads to a full wait.
    Short,
}

impl Wait {
    /// Sets the time limits of a lab for a conversation.
    pub(crate) fn apply(self, lab: &mut Lab<'_>, plan: &Plan) {
        if self == Self::Short {
            let latency_of = |session: &Session| lab.peer.pace.of(&session.command).latency;
            let latency = plan.sessions.iter().filter_map(latency_of).max().unwrap_or_default();
            let short = (latency * LATENCIES_PER_SHORT_WAIT).max(SHORT_WAIT).mul_f64(lab.timeout_scale);
            lab.budget.reply = lab.budget.reply.min(short);
            lab.budget.reply_per_mib /= LARGE_SHARE;
            lab.budget.allow_large = short;
            lab.budget.patience = SHORT_PATIENCE;
            lab.budget.latencies_per_patience = LATENCIES_PER_SHORT_PATIENCE;
            lab.budget.effect_share = EFFECT_SHARE;
            lab.budget.hurries = true;
        }
    }
}

/// Clause and reason code of a silence.
type SilenceKey = (ClauseId, String);

/// Silences that a run has met.
#[derive(Default)]
pub(crate) struct Silences {
    /// Known silences; true if confirmed.
    met: Mutex<BTreeMap<SilenceKey, bool>>,
    /// Silences for which some check waits in full now.
    awaited: Mutex<BTreeSet<SilenceKey>>,
    /// Notified when a check stops waiting.
    settled: Condvar,
}

/// Claim on silences for a full wait, until dropped.
pub(super) struct Claim<'a> {
    silences: &'a Silences,
    keys: Vec<SilenceKey>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut awaited = lock(&self.silences.awaited);
        self.keys.iter().for_each(|key| {
            awaited.remove(key);
        });
        self.silences.settled.notify_all();
    }
}

impl Silences {
    /// Records an unconfirmed silence; ignores other findings.
    pub(crate) fn seen(&self, finding: &Finding) {
        if is_silence(finding) {
            lock(&self.met).entry(key(finding)).or_default();
        }
    }

    /// Records a confirmed silence; ignores other findings.
    pub(super) fn confirmed(&self, finding: &Finding) {
        if is_silence(finding) {
            lock(&self.met).insert(key(finding), true);
        }
    }

    /// True if a silence with this clause and reason code was confirmed.
    pub(super) fn has(&self, finding: &Finding) -> bool {
        lock(&self.met).get(&key(finding)).is_some_and(|confirmed| *confirmed)
    }

    /// True if any silence was confirmed.
    pub(super) fn any_confirmed(&self) -> bool {
        lock(&self.met).values().any(|confirmed| *confirmed)
    }

    /// True if a silence with this reason code was confirmed for any clause: the peer is then silent, not late.
    pub(super) fn has_like(&self, finding: &Finding) -> bool {
        is_silence(finding)
            && lock(&self.met).iter().any(|((_, reason), confirmed)| *confirmed && *reason == finding.reason)
    }

    /// Makes a first attempt, with short waits if silences are known and nothing new is missing.
    pub(crate) fn first_attempt<E>(
        &self,
        attempt: impl Fn(Wait) -> Result<(Judgement, Transcript), E>,
    ) -> Result<(Judgement, Transcript), E> {
        let wait = self.wait();
        let made = attempt(wait)?;
        if wait == Wait::Full || self.explain(&made.0, &made.1) { Ok(made) } else { attempt(Wait::Full) }
    }

    /// Silences of a judgement that are new.
    fn news(&self, judgement: &Judgement) -> Vec<SilenceKey> {
        let met = lock(&self.met);
        let silences = judgement.findings.iter().filter(|finding| is_silence(finding)).map(key);
        silences.filter(|key| !met.contains_key(key)).collect()
    }

    /// Claims a full wait for the new silences of a judgement; `None` if other checks already wait for each of them.
    pub(super) fn claim(&self, judgement: &Judgement) -> Option<Claim<'_>> {
        let mut keys = self.news(judgement);
        let mut awaited = lock(&self.awaited);
        if !keys.is_empty() && keys.iter().all(|key| awaited.contains(key)) {
            return None;
        }
        keys.retain(|key| awaited.insert(key.clone()));
        Some(Claim { silences: self, keys })
    }

    /// Waits until all silences of a judgement are known or no longer claimed.
    pub(super) fn wait_for_others(&self, judgement: &Judgement) {
        let news = self.news(judgement);
        let mut awaited = lock(&self.awaited);
        while news.iter().any(|key| awaited.contains(key)) {
            awaited = self.settled.wait(awaited).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Length of the waits in a check's first attempt.
    pub(super) fn wait(&self) -> Wait {
        if lock(&self.met).is_empty() { Wait::Full } else { Wait::Short }
    }

    /// True if a short wait was enough: everything came, or the missing part is known.
    pub(super) fn explain(&self, judgement: &Judgement, transcript: &Transcript) -> bool {
        let findings = &judgement.findings;
        let met = lock(&self.met);
        let known = !findings.is_empty() && findings.iter().all(|finding| met.contains_key(&key(finding)));
        let is_late = |kind: &EventKind| matches!(kind, EventKind::DeadlinePassed { .. });
        // A reply overtaken by a canary is late although no deadline passed.
        let is_news = |finding: &Finding| is_silence(finding) && !met.contains_key(&key(finding));
        // A short wait for a value may have ended the conversation early.
        let is_cut = findings.is_empty() && judgement.untestable.is_some();
        let is_missed = transcript.events.iter().any(|event| is_late(&event.kind));
        known || !(is_missed || is_cut || findings.iter().any(is_news))
    }
}

fn key(finding: &Finding) -> (ClauseId, String) {
    (finding.clause.clone(), finding.reason.clone())
}

/// True if a finding means that a reply or the end did not come.
pub(crate) fn is_silence(finding: &Finding) -> bool {
    finding.nature == Nature::Hang || finding.reason == "no_reply"
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::data::clause::Side;
    use crate::data::facts::Facts;
    use crate::data::transcript::{Awaited, Event};

    fn transcript(kinds: Vec<EventKind>) -> Transcript {
        Transcript {
            boundary: "toy".to_owned(),
            check: "by-hand".to_owned(),
            facts: Arc::new(Facts::new(Side::Provider)),
            plan: Arc::new(Plan::default()),
            timeout_scale: 1.0,
            events: kinds.into_iter().map(|kind| Event { at_us: 0, session: 0, kind }).collect(),
        }
    }

    #[test]
    fn a_silence_is_waited_for_in_full_by_one_check_at_a_time() {
        let silences = Silences::default();
        let found = |clauses: &[&str]| Judgement {
            findings: clauses
                .iter()
                .map(|clause| Finding::new(*clause, "no_reply", "a reply", "none"))
                .collect(),
            ..Judgement::default()
        };
        let claim = silences.claim(&found(&["C-1"]));
        assert!(claim.is_some());
        assert!(silences.claim(&found(&["C-1"])).is_none());
        assert!(silences.claim(&found(&["C-1", "C-2"])).is_some(), "one of them is waited for by nobody");
        assert!(silences.claim(&found(&[])).is_some(), "what was missed is unknown");
        drop(claim);
        silences.wait_for_others(&found(&["C-1"]));
        assert!(silences.claim(&found(&["C-1"])).is_some(), "it did not show");
    }

    #[test]
    fn a_short_wait_is_enough_for_silences_that_are_known() {
        let silences = Silences::default();
        let silence = Finding::new("C-1", "no_reply", "a reply", "none");
        let late = transcript(vec![EventKind::DeadlinePassed {
            awaited: Awaited::Frames,
            waited_ms: 1_000,
            slept: false,
        }]);
        let found = |findings: &[Finding]| Judgement { findings: findings.to_vec(), ..Judgement::default() };
        assert_eq!(silences.wait(), Wait::Full);
        silences.confirmed(&Finding::new("C-1", "wrong_code", "-32700", "-32600"));
        assert_eq!(silences.wait(), Wait::Full, "only silences make waits short");
        silences.seen(&silence);
        assert_eq!(silences.wait(), Wait::Short);
        assert!(!silences.has(&silence), "it is to be confirmed in full");
        silences.confirmed(&silence);
        assert!(silences.has(&silence));
        assert!(silences.has_like(&Finding::new("C-2", "no_reply", "a reply", "none")));
        assert!(
            !silences.has_like(&Finding::new("C-1", "no_exit", "an exit", "none").of_nature(Nature::Hang))
        );
        assert!(silences.explain(&found(&[]), &transcript(Vec::new())));
        let cut = Judgement { untestable: Some("1 of 2".into()), ..found(&[]) };
        assert!(!silences.explain(&cut, &transcript(Vec::new())), "a full wait may bring it further");
        assert!(silences.explain(&found(std::slice::from_ref(&silence)), &late));
        assert!(!silences.explain(&found(&[]), &late), "what was missed may be late");
        let other = Finding::new("C-2", "no_reply", "a reply", "none");
        assert!(
            !silences.explain(&found(std::slice::from_ref(&other)), &transcript(Vec::new())),
            "it may be late"
        );
        let of_bytes = Finding::new("C-3", "wrong_code", "-32700", "-32600");
        assert!(silences.explain(&found(&[of_bytes]), &transcript(Vec::new())));
        assert!(!silences.explain(&found(&[silence, other]), &late));
    }
}
