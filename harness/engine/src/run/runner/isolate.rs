//! Isolation: finds the message of a burst that a peer dies of, hangs in or loses.
//!
//! If several messages were under way, the judge can only name the first without an answer. The live peer tells more:
//! its messages are sent one by one, each followed by a canary. If all are answered, the fault lies in pipelining.
//! Otherwise the shortest failing prefix ends with the culprit, which is tried alone; if it is harmless alone, the
//! messages before it are reduced. Each try uses a fresh process and keeps the opening steps. Over HTTP, messages are
//! under way on several connections or pipelined on one; lines on one connection go one by one anyway.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::aside::Deferred;
use super::silence::Wait;
use super::{CheckOutcome, RunContext, interrupted, lab};
use crate::contract::boundary::{self, Isolation};
use crate::data::carriage::{Carriage, HTTP};
use crate::data::check::Check;
use crate::data::finding::{CANARY_FAILED, Finding, Judgement, Nature};
use crate::data::payload::{Payload, Vars};
use crate::data::plan::{Act, Plan, Step};
use crate::data::text::visible;
use crate::data::transcript::Transcript;
use crate::run::verdict::Verdict;

/// Maximum number of processes started for one cause.
const STARTS_MAX: usize = 12;
/// Maximum number of messages in an isolated burst: each costs a round trip and a canary.
const MESSAGES_MAX: usize = 1_024;
/// Number of messages above which their round trips may take at most [`ROUND_TRIPS_MAX`].
const MESSAGES_WHATEVER_THEY_TAKE: usize = 128;
const ROUND_TRIPS_MAX: Duration = Duration::from_secs(2);
/// Maximum length of a message in a sentence, characters.
const SUMMARY_CHARS: usize = 120;

/// Finding after confirmation and isolation.
pub(super) struct ConfirmedFinding {
    pub(super) finding: Finding,
    /// Conversation that shows it.
    pub(super) transcript: Transcript,
    /// Flaky if it did not show each time; `None` otherwise.
    pub(super) undecided: Option<Verdict>,
}

impl ConfirmedFinding {
    /// True if this is the first finding of a judgement.
    pub(super) fn is_first_of(&self, judgement: &Judgement) -> bool {
        judgement.findings.first() == Some(&self.finding)
    }
}

/// True if a finding means that a reply is missing for any reason.
fn is_lost(finding: &Finding) -> bool {
    matches!(finding.nature, Nature::Hang | Nature::Crash)
        || matches!(finding.reason.as_str(), "no_reply" | CANARY_FAILED)
}

/// Step of the conversation, except the one that ends it.
struct PrefixStep {
    step: Step,
    /// Set for a message, which can be left out; other steps are set-up.
    is_message: bool,
}

/// Messages of a burst and the steps before them.
struct Burst {
    items: Vec<PrefixStep>,
    session: usize,
    over_http: bool,
    /// Set if the model judges instead of the expectations in the steps.
    by_model: bool,
    /// Step that ends the session.
    finish: Option<Step>,
    /// Maximum extra time of a message or of all together, milliseconds.
    allow_ms: u64,
}

/// Failed try.
struct Failed {
    /// Number of the message that was not answered, or after which the canary was not.
    at: usize,
    /// Set if the canary after it was not answered.
    behind: bool,
    finding: Finding,
    /// Further findings of the same kind.
    others: Vec<Finding>,
    transcript: Transcript,
}

/// Splits the lines of a message step into steps of their own, if possible.
fn split(step: &Step, by_model: &mut bool) -> Vec<Step> {
    let whole = || vec![step.clone()];
    let Act::Send { payload, chunking, await_frames } = &step.act else { return whole() };
    // An HTTP body is one message.
    if payload.variables().next().is_some() || step.http.is_some() {
        return whole();
    }
    let Ok(bytes) = payload.expand(&Vars::new()) else { return whole() };
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() < 2 {
        return whole();
    }
    let expects = step.expect.as_array().filter(|expects| expects.len() == lines.len());
    *by_model |= expects.is_none();
    let pieces = lines.iter().enumerate().map(|(at, line)| Step {
        // Actors started for the lines belong to the first one.
        turn: step.turn.filter(|_| at == 0),
        act: Act::Send {
            payload: Payload::from_bytes(line),
            chunking: *chunking,
            await_frames: (*await_frames).min(1),
        },
        expect: expects.map_or_else(|| step.expect.clone(), |expects| expects[at].clone()),
        ..step.clone()
    });
    pieces.collect()
}

impl Burst {
    /// Burst around step `blamed`, between the canaries before and after it. `None` if each message was awaited by
    /// itself or the steps do more than send messages.
    fn around(plan: &Plan, blamed: usize, strip: bool) -> Option<Self> {
        let session = plan.steps.get(blamed)?.session;
        let over_http = plan.sessions.get(session)?.command == HTTP;
        if plan.recorded {
            return None;
        }
        let own = |index: &usize| plan.steps[*index].session == session;
        let is_canary = |index: &usize| plan.steps[*index].canary && *index != blamed;
        let begin = (0..blamed).rev().filter(own).find(is_canary).map_or(0, |canary| canary + 1);
        let end = (blamed..plan.steps.len()).filter(own).find(is_canary).unwrap_or(plan.steps.len());
        let waits = plan.steps.iter().any(|step| {
            step.await_answers > 0
                // An open connection may be what blocks the next one.
                || step.http.as_ref().is_some_and(|http| http.is_raw() || http.stays)
                // Files next to a server are looked at without sending anything.
                || match step.act {
                    Act::Send { .. } | Act::Finish | Act::Flush => false,
                    Act::Look { after_ms: 0, .. } => !over_http,
                    _ => true,
                }
        });
        let (mut lines, mut unawaited, mut allow_ms) = (0, false, 0);
        let may_be = |step: &&Step| step.session == session && !step.canary && !step.setup;
        for step in plan.steps[begin..end].iter().filter(may_be) {
            allow_ms = allow_ms.max(step.allow_ms);
            let Act::Send { payload, await_frames, .. } = &step.act else { continue };
            let bytes = payload.expand(&Vars::new()).ok().filter(|_| step.http.is_none());
            let count =
                bytes.as_ref().map_or(1, |bytes| bytes.split_inclusive(|byte| *byte == b'\n').count());
            // A canary would land in the middle of a line.
            if bytes.is_some_and(|bytes| !bytes.ends_with(b"\n")) {
                return None;
            }
            lines += count;
            unawaited |= (count > 1 && !over_http) || *await_frames == 0;
        }
        if waits || lines < 2 || !unawaited {
            return None;
        }
        let mut by_model = plan.by_model || strip;
        let mut items = Vec::new();
        for (index, step) in plan.steps[..end].iter().enumerate() {
            let sends = matches!(step.act, Act::Send { .. });
            let is_message =
                step.session == session && sends && !step.canary && !step.setup && step.capture.is_none();
            // Each message gets its own canary anyway.
            if step.session == session && step.canary && index >= begin {
                continue;
            }
            let steps = if is_message { split(step, &mut by_model) } else { vec![step.clone()] };
            items.extend(steps.into_iter().map(|step| PrefixStep { step, is_message }));
        }
        if strip {
            for item in items.iter_mut().filter(|item| item.is_message) {
                item.step.expect = serde_json::Value::Null;
            }
        }
        let is_finish = |step: &&Step| step.session == session && matches!(step.act, Act::Finish);
        let finish = plan.steps.iter().find(is_finish).cloned();
        Some(Self { items, session, over_http, by_model, finish, allow_ms })
    }

    fn messages(&self) -> usize {
        self.items.iter().filter(|item| item.is_message).count()
    }

    fn message(&self, number: usize) -> Option<&Step> {
        self.items.iter().filter(|item| item.is_message).nth(number).map(|item| &item.step)
    }

    /// Plan that sends the messages with these numbers, each awaited and followed by a canary; and for each step the
    /// number of its message.
    fn plan(
        &self,
        of: &Plan,
        kept: &[usize],
        canary: &dyn Fn(u64) -> Option<Step>,
    ) -> Option<(Plan, Vec<Option<usize>>)> {
        let mut plan = Plan { steps: Vec::new(), by_model: self.by_model, ..of.clone() };
        let mut numbers = Vec::new();
        let mut number = 0;
        for item in &self.items {
            if !item.is_message {
                plan.steps.push(item.step.clone());
                numbers.push(None);
                continue;
            }
            if kept.contains(&number) {
                let mut step = Step { allow_ms: self.allow_ms, ..item.step.clone() };
                let mut canary = Step { session: self.session, ..canary(number as u64)? };
                let Act::Send { await_frames, .. } = &mut step.act else { return None };
                *await_frames = (*await_frames).max(1);
                if self.over_http && !step.http.as_ref().is_some_and(|http| http.counted) {
                    // A reply without a body has no frame: the next answer on its connection shows that it is over.
                    (*await_frames, canary.await_answers, canary.allow_ms) = (0, 1, self.allow_ms);
                }
                if let Some(http) = &mut step.http {
                    http.pipelined = false;
                    canary.http = Some(Carriage {
                        connection: http.connection,
                        ..canary.http.unwrap_or_else(Carriage::post)
                    });
                }
                plan.steps.extend([step, canary]);
                numbers.extend([Some(number), Some(number)]);
            }
            number += 1;
        }
        plan.steps.extend(self.finish.clone());
        numbers.push(None);
        plan.keep_turns(of);
        Some((plan, numbers))
    }
}

/// Tries against the live peer.
struct LiveTries<'a> {
    round: &'a RunContext<'a>,
    check: &'a Check,
    burst: &'a Burst,
    plan: &'a Plan,
    wait: Wait,
    starts: usize,
}

impl LiveTries<'_> {
    fn go_on(&self) -> bool {
        self.starts < STARTS_MAX && !self.round.around.interrupted.load(Ordering::Relaxed)
    }

    /// Sends these messages one by one. `Ok(None)` means that each was answered, `Err` that nothing can be said.
    fn send(&mut self, kept: &[usize]) -> Result<Option<Failed>, ()> {
        self.starts += 1;
        let RunContext { peer, options, around, .. } = self.round;
        let canary = |number: u64| Some(peer.boundary.isolation(&peer.facts, number)?.canary);
        let (mut plan, numbers) = self.burst.plan(self.plan, kept, &canary).ok_or(())?;
        for index in 0..plan.steps.len() {
            boundary::await_what_is_due(peer.boundary, &peer.facts, &mut plan, index);
        }
        let mut lab = lab(peer, options, *around);
        self.wait.apply(&mut lab, &plan);
        let transcript = lab.execute(&self.check.id, &plan).map_err(|_| ())?;
        let findings = boundary::judge(peer.boundary, &transcript).findings;
        let mut lost = findings.into_iter().filter(is_lost).filter(|finding| finding.step.is_some());
        let Some(finding) = lost.next() else { return Ok(None) };
        let step = finding.step.ok_or(())?;
        let at = numbers.get(step).copied().flatten().ok_or(())?;
        let behind = plan.steps[step].canary;
        Ok(Some(Failed { at, behind, finding, others: lost.collect(), transcript }))
    }

    /// Shortens a failing prefix by bisection, given one that fails.
    fn shortest(&mut self, mut failed: Failed) -> Result<Failed, ()> {
        let (mut clean, mut next) = (0, failed.at);
        while failed.at > clean && self.go_on() {
            match self.send(&(0..next).collect::<Vec<_>>())? {
                Some(shorter) => failed = shorter,
                None => clean = next,
            }
            next = clean + (failed.at + 1 - clean) / 2;
        }
        Ok(failed)
    }

    /// Reduces the messages before the culprit; returns the failure and the number of messages left before it.
    fn reduced(&mut self, failed: Failed) -> Result<(Failed, usize), ()> {
        let culprit = failed.at;
        let is_it = |tried: Option<Failed>| tried.filter(|tried| tried.at == culprit);
        if culprit == 0 {
            return Ok((failed, 0));
        }
        if self.go_on()
            && let Some(alone) = is_it(self.send(&[culprit])?)
        {
            return Ok((alone, 0));
        }
        let (mut failed, mut before): (Failed, Vec<usize>) = (failed, (0..culprit).collect());
        let mut size = before.len() / 2;
        while size > 0 {
            let mut begin = 0;
            while begin < before.len() && self.go_on() {
                let end = (begin + size).min(before.len());
                let fewer: Vec<usize> = [&before[..begin], &before[end..]].concat();
                let kept = [fewer.as_slice(), &[culprit]].concat();
                match if fewer.is_empty() { None } else { is_it(self.send(&kept)?) } {
                    Some(smaller) => (failed, before) = (smaller, fewer),
                    None => begin = end,
                }
            }
            size /= 2;
        }
        Ok((failed, before.len()))
    }
}

impl RunContext<'_> {
    /// Burst that contains the first missing reply of a check, if it is small enough.
    fn burst_of(&self, failed: &Deferred, blamed: &Finding) -> Option<Burst> {
        let Isolation { pipelined, .. } = self.peer.boundary.isolation(&self.peer.facts, 0)?;
        // In a check about bursts, the aims of its messages do not count.
        let strip = is_about(&failed.check, pipelined);
        let plan = &failed.transcript.plan;
        let burst = Burst::around(plan, blamed.step?, strip)?;
        let latency = self.peer.pace.of(&plan.sessions.get(burst.session)?.command).usual_latency;
        let messages = burst.messages();
        let take = latency.unwrap_or_default() * u32::try_from(messages).unwrap_or(u32::MAX);
        let is_little = messages <= MESSAGES_WHATEVER_THEY_TAKE || take <= ROUND_TRIPS_MAX;
        (is_little && messages <= MESSAGES_MAX).then_some(burst)
    }

    /// True if a missing reply of a check may be the fault of another message. Then makes it the first finding.
    pub(super) fn is_burst(&self, failed: &mut Deferred) -> bool {
        let Some(at) = failed.judgement.findings.iter().position(is_lost) else { return false };
        let blamed = failed.judgement.findings[at].clone();
        if self.burst_of(failed, &blamed).is_none() {
            return false;
        }
        failed.burst = Some(at);
        failed.verdict = Verdict::of_findings(std::slice::from_ref(&blamed)).unwrap_or(Verdict::Fail);
        failed.judgement.findings.remove(at);
        failed.judgement.findings.insert(0, blamed);
        true
    }

    /// Outcome of a confirmed check with a burst. Isolation replaces the missing reply, unless the user interrupted it.
    pub(super) fn confirmed_burst(&self, mut failed: Deferred, verdict: Verdict) -> Option<CheckOutcome> {
        let isolated = if verdict.is_failure() { self.isolate(&mut failed) } else { None };
        if self.around.interrupted.load(Ordering::Relaxed) {
            let Deferred { check, judgement, elapsed, .. } = failed;
            let judgement = Judgement { findings: Vec::new(), ..judgement };
            return Some(self.finish(&check, interrupted(), judgement, None, elapsed));
        }
        let finding = failed.judgement.findings.remove(0);
        failed.judgement.findings.insert(failed.burst.take()?, finding.clone());
        let settled = ConfirmedFinding {
            finding,
            transcript: isolated.unwrap_or_else(|| failed.transcript.clone()),
            undecided: Some(verdict).filter(|verdict| !verdict.is_failure()),
        };
        self.tried(failed, Some(&settled))
    }

    /// Finds the message that causes the first missing reply, and replaces the finding accordingly. Returns the
    /// conversation that shows it; `None` if sending one by one cannot be judged.
    fn isolate(&self, failed: &mut Deferred) -> Option<Transcript> {
        let blamed = failed.judgement.findings.first()?.clone();
        let burst = self.burst_of(failed, &blamed)?;
        let Isolation { pipelined, .. } = self.peer.boundary.isolation(&self.peer.facts, 0)?;
        let Deferred { check, judgement, transcript, .. } = failed;
        let wait = if self.silences.has(&blamed) { Wait::Short } else { Wait::Full };
        let mut tries =
            LiveTries { round: self, check, burst: &burst, plan: &transcript.plan, wait, starts: 0 };
        let all: Vec<usize> = (0..burst.messages()).collect();
        let (finding, shown, others) = match tries.send(&all).ok()? {
            None => {
                let is_own = check.clauses.contains(&blamed.clause);
                let clause = if is_own { blamed.clause.clone() } else { pipelined.first().copied()?.into() };
                let got = format!("{}; the answer comes when the messages are sent one by one", blamed.got);
                (Finding { clause, got, ..blamed }, transcript.clone(), Vec::new())
            }
            Some(mut lost) => {
                let others = std::mem::take(&mut lost.others);
                let lost = tries.shortest(lost).ok()?;
                let (lost, before) = tries.reduced(lost).ok()?;
                let mut finding = lost.finding;
                if lost.behind && !is_about(check, pipelined) && check.clauses.contains(&blamed.clause) {
                    finding.clause = blamed.clause;
                }
                let message = burst.message(lost.at).and_then(|step| match &step.act {
                    Act::Send { payload, .. } => Some(payload.summary(SUMMARY_CHARS)),
                    _ => None,
                });
                let place = if lost.behind { "after" } else { "the message was" };
                let company = match before {
                    0 => "sent alone".to_owned(),
                    1 => "after one other message".to_owned(),
                    count => format!("after {count} other messages"),
                };
                let message = message.unwrap_or_default();
                finding.got.push_str(&visible(&format!("; {place} {message}, {company}")));
                (finding, lost.transcript, others)
            }
        };
        // Missing replies that do not show one by one are consequences.
        judgement.findings[0] = finding;
        let mut at = 0;
        judgement.findings.retain(|finding| {
            at += 1;
            at == 1 || !is_lost(finding) || others.iter().any(|other| other.key() == finding.key())
        });
        Some(shown)
    }
}

/// True if a check is about messages sent before the first reply.
fn is_about(check: &Check, pipelined: &[&str]) -> bool {
    check.ambient || check.clauses.iter().any(|clause| pipelined.contains(&clause.0.as_str()))
}
