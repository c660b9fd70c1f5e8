//! Isolation: which message of a burst a peer dies of, hangs in or loses.
//!
//! Where several messages were under way, the oracle can only name the first that has no answer. The live peer tells
//! more. Its messages are sent one by one, each with a canary behind it. Where all are answered, the fault lies in
//! pipelining. Else the shortest failing prefix ends with the culprit, which is tried alone; where it does no harm
//! alone, what stands before it is reduced. Each try has a fresh process and keeps the set-up steps. Over HTTP several
//! messages are under way on several connections, or on one in a pipeline; lines on one connection go one by one anyway.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::confirm::Aside;
use super::silence::Wait;
use super::{Outcome, Round, interrupted, lab};
use crate::boundary::{self, Isolation};
use crate::carriage::{Carriage, HTTP};
use crate::check::Check;
use crate::finding::{CANARY_FAILED, Finding, Judgement, Nature};
use crate::payload::{Payload, Vars};
use crate::plan::{Act, Plan, Step};
use crate::text::visible;
use crate::transcript::Transcript;
use crate::verdict::Verdict;

/// Most processes that are started for one cause.
const STARTS_MAX: usize = 12;
/// A burst of more messages is left as it is: each costs a round trip and a canary.
const MESSAGES_MAX: usize = 1_024;
/// So is one of more than this many, where their round trips take longer than so.
const MESSAGES_WHATEVER_THEY_TAKE: usize = 128;
const ROUND_TRIPS_MAX: Duration = Duration::from_secs(2);
/// Characters of a message in a sentence.
const SUMMARY_CHARS: usize = 120;

/// What confirmation, and isolation where it shows more, made of a finding.
pub(super) struct Settled {
    pub(super) finding: Finding,
    /// The conversation that shows it.
    pub(super) transcript: Transcript,
    /// Flaky where it did not show again each time.
    pub(super) undecided: Option<Verdict>,
}

impl Settled {
    /// Whether a check fails for this.
    pub(super) fn is_first_of(&self, judgement: &Judgement) -> bool {
        judgement.findings.first() == Some(&self.finding)
    }
}

/// Whether a reply is missing, however it went missing.
fn is_lost(finding: &Finding) -> bool {
    matches!(finding.nature, Nature::Hang | Nature::Crash)
        || matches!(finding.reason.as_str(), "no_reply" | CANARY_FAILED)
}

/// One step of the conversation without what ends it.
struct Item {
    step: Step,
    /// It can be left out; what is no message is set-up.
    is_message: bool,
}

/// The messages of a burst and what stands before them.
struct Burst {
    items: Vec<Item>,
    session: usize,
    over_http: bool,
    /// The model judges, not what the steps expect.
    by_model: bool,
    /// Ends the session.
    finish: Option<Step>,
    /// The longest time that a message, or all of them, may take, milliseconds.
    allow_ms: u64,
}

/// A try that failed.
struct Failed {
    /// Number of the message that was not answered, or behind which the canary was not.
    at: usize,
    /// Whether the canary behind it was not answered.
    behind: bool,
    finding: Finding,
    /// Further findings of the same kind.
    others: Vec<Finding>,
    transcript: Transcript,
}

/// The lines of a message step as steps of their own, where they can be told apart.
fn split(step: &Step, by_model: &mut bool) -> Vec<Step> {
    let whole = || vec![step.clone()];
    let Act::Send { payload, chunking, await_frames } = &step.act else { return whole() };
    // What is carried as one body is one message.
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
        // All that is started for the lines belongs to the first of them.
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
    /// The burst around the step `blamed`, from the canary before it to the one behind it; `None` where each message
    /// was awaited by itself, or something else than messages is written.
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
                // A connection that stays open can be what keeps the next from being served.
                || step.http.as_ref().is_some_and(|http| http.is_raw() || http.stays)
                // What lies beside a server is looked at without asking it anything.
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
            // A canary would come into the middle of a line.
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
            // Canaries stand behind each message anyway.
            if step.session == session && step.canary && index >= begin {
                continue;
            }
            let steps = if is_message { split(step, &mut by_model) } else { vec![step.clone()] };
            items.extend(steps.into_iter().map(|step| Item { step, is_message }));
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

    /// The plan that sends the messages of these numbers, each awaited and with a canary behind it, with the number of
    /// the message that each step stands for.
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
                    // What has no body has no frame: the answer behind it on its connection tells that it is over.
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

/// Tries on the live peer.
struct Tries<'a> {
    round: &'a Round<'a>,
    check: &'a Check,
    burst: &'a Burst,
    plan: &'a Plan,
    wait: Wait,
    starts: usize,
}

impl Tries<'_> {
    fn go_on(&self) -> bool {
        self.starts < STARTS_MAX && !self.round.around.interrupted.load(Ordering::Relaxed)
    }

    /// Sends these messages one by one. `Ok(None)`: each is answered; `Err`: nothing can be said.
    fn send(&mut self, kept: &[usize]) -> Result<Option<Failed>, ()> {
        self.starts += 1;
        let Round { peer, options, around, .. } = self.round;
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

    /// The end of the shortest prefix that fails, given a longer one that does.
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

    /// The culprit with as little before it as it takes, and how many messages that is.
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

impl Round<'_> {
    /// The burst that the first missing reply of a check is in, and whether the check is about bursts.
    fn burst_of(&self, failed: &Aside, blamed: &Finding) -> Option<Burst> {
        let Isolation { pipelined, .. } = self.peer.boundary.isolation(&self.peer.facts, 0)?;
        // Of a check about the burst itself, its messages are not what the check is about.
        let strip = is_about(&failed.check, pipelined);
        let plan = &failed.transcript.plan;
        let burst = Burst::around(plan, blamed.step?, strip)?;
        let latency = self.peer.pace.of(&plan.sessions.get(burst.session)?.command).usual_latency;
        let messages = burst.messages();
        let take = latency.unwrap_or_default() * u32::try_from(messages).unwrap_or(u32::MAX);
        let is_little = messages <= MESSAGES_WHATEVER_THEY_TAKE || take <= ROUND_TRIPS_MAX;
        (is_little && messages <= MESSAGES_MAX).then_some(burst)
    }

    /// Whether a missing reply of a check may be another message's doing; then it is made the first finding.
    pub(super) fn is_burst(&self, failed: &mut Aside) -> bool {
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

    /// The outcome of a check with a burst that was run again: what isolation shows takes the place of the missing
    /// reply. Isolation that the user cut short shows nothing.
    pub(super) fn confirmed_burst(&self, mut failed: Aside, verdict: Verdict) -> Option<Outcome> {
        let isolated = if verdict.is_failure() { self.isolate(&mut failed) } else { None };
        if self.around.interrupted.load(Ordering::Relaxed) {
            let Aside { check, judgement, elapsed, .. } = failed;
            let judgement = Judgement { findings: Vec::new(), ..judgement };
            return Some(self.finish(&check, interrupted(), judgement, None, elapsed));
        }
        let finding = failed.judgement.findings.remove(0);
        failed.judgement.findings.insert(failed.burst.take()?, finding.clone());
        let settled = Settled {
            finding,
            transcript: isolated.unwrap_or_else(|| failed.transcript.clone()),
            undecided: Some(verdict).filter(|verdict| !verdict.is_failure()),
        };
        self.tried(failed, Some(&settled))
    }

    /// Looks for the message of a burst that the first missing reply is about, and puts what shows in the place of the
    /// finding. Gives the conversation that shows it; `None` where the same burst sent one by one cannot be judged.
    fn isolate(&self, failed: &mut Aside) -> Option<Transcript> {
        let blamed = failed.judgement.findings.first()?.clone();
        let burst = self.burst_of(failed, &blamed)?;
        let Isolation { pipelined, .. } = self.peer.boundary.isolation(&self.peer.facts, 0)?;
        let Aside { check, judgement, transcript, .. } = failed;
        let wait = if self.silences.has(&blamed) { Wait::Short } else { Wait::Full };
        let mut tries = Tries { round: self, check, burst: &burst, plan: &transcript.plan, wait, starts: 0 };
        let all: Vec<usize> = (0..burst.messages()).collect();
        let (finding, shown, others) = match tries.send(&all).ok()? {
            None => {
                let is_own = check.clauses.contains(&blamed.clause);
                let clause = if is_own { blamed.clause.clone() } else { pipelined.first().copied()?.into() };
                let got = format!("{}; sent one by one, each message is answered", blamed.got);
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
                let place = if lost.behind { "behind" } else { "to" };
                let company = match before {
                    0 => "sent alone".to_owned(),
                    1 => "after one other message".to_owned(),
                    count => format!("after {count} other messages"),
                };
                let message = message.unwrap_or_default();
                finding.got.push_str(&visible(&format!(" {place} {message}, {company}")));
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

/// Whether a check is about messages that are sent before the first reply.
fn is_about(check: &Check, pipelined: &[&str]) -> bool {
    check.ambient || check.clauses.iter().any(|clause| pipelined.contains(&clause.0.as_str()))
}
