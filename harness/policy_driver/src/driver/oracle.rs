//! Judge of a driver: its output for each payload, its exit and its remains.

use serde::Deserialize as _;

use super::super::BRIDGE;
use super::super::block::{self, Block, Fault, Form};
use super::expect::{Expect, holds};
use super::payload::{bytes_of, decoded};
use super::talk::{BESIDE, MEASURED, PAYLOAD};
use super::{asked, model};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::ending::{Ending, left_behind};
use peerproof_engine::data::finding::{Finding, Judgement, Nature};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::{Act, Plan, Step};
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};

/// Clauses about every decision.
mod clause {
    pub(crate) const STDIN_UNREAD: &str = "PD-START-02";
    pub(crate) const ONE_DECISION: &str = "PD-START-03";
    pub(crate) const IN_TIME: &str = "PD-START-04";
    pub(crate) const NOTHING_LEFT: &str = "PD-START-05";
    pub(crate) const ONE_BLOCK: &str = "PD-OUT-01";
    pub(crate) const PICK: &str = "PD-OUT-02";
    pub(crate) const NO_PICK: &str = "PD-OUT-05";
    pub(crate) const FROM_MENU: &str = "PD-OUT-06";
    pub(crate) const SIZE: &str = "PD-OUT-07";
    pub(crate) const PLAIN_PATCH: &str = "PD-OUT-08";
    pub(crate) const ENCODED_PATCH: &str = "PD-OUT-10";
    pub(crate) const NEVER_TWO: &str = "PD-OUT-11";
    pub(crate) const ENDS: &str = "PD-BAD-07";
    pub(crate) const UNDERSTOOD: &str = "PD-PAY-01";
}

/// Largest memory of a measured process, bytes.
const MEMORY_BYTES_MAX: u64 = 300 << 20;

/// Judges every decision of a conversation by the expectation of its check.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge_with(transcript, &|expect, _| expect);
    judgement.untestable = judgement.untestable.or_else(|| form_missing(transcript));
    judgement
}

/// Reason why a conversation about one form of a pick proves nothing: no decision had this form.
fn form_missing(transcript: &Transcript) -> Option<Untestable> {
    let mut missing = None;
    for step in &transcript.plan.steps {
        let Some(form) = Expect::deserialize(&step.expect).ok().and_then(|expect| expect.shows) else {
            continue;
        };
        if block::parse(&transcript.stdout(step.session)).is_ok_and(|block| block.form == form.form()) {
            return None;
        }
        missing = Some(Untestable::new("other_form", format!("no decision was {}", form.word())));
    }
    missing
}

/// Judges every decision by the bytes of its payload alone. Without aims, a payload that every driver decides is one
/// for [`clause::UNDERSTOOD`].
pub(crate) fn judge_by_model(transcript: &Transcript) -> Judgement {
    judge_with(transcript, &|expect, payload| {
        let allowed = match payload {
            Some(payload) => model::expected(payload),
            // There is no payload to read.
            None => Expect::no_pick("PD-BAD-01"),
        };
        let is_unaimed = expect.clause.0 == clause::UNDERSTOOD && allowed.clause.0 == model::DECIDED;
        let clause = if is_unaimed { expect.clause } else { allowed.clause };
        Expect { payload: expect.payload, clause, ..allowed }
    })
}

/// Derives the expectation from that of the step and the bytes of the payload.
type Expecting<'a> = dyn Fn(Expect, Option<&[u8]>) -> Expect + 'a;

fn judge_with(transcript: &Transcript, expecting: &Expecting<'_>) -> Judgement {
    let mut judgement = Judgement::default();
    for session in 0..transcript.plan.sessions.len() {
        judge_session(transcript, session, expecting, &mut judgement);
    }
    judgement
}

/// One start of a driver.
struct Decision<'a> {
    step: usize,
    canary: bool,
    expect: Expect,
    /// SIDs that may be picked; `None` if unknown, because the payload is not JSON.
    menu: Option<Vec<String>>,
    /// Patch of the decision to compare with.
    twin: Option<Json>,
    transcript: &'a Transcript,
    session: usize,
}

fn judge_session(
    transcript: &Transcript,
    session: usize,
    expecting: &Expecting<'_>,
    judgement: &mut Judgement,
) {
    let Some(decision) = find(transcript, session, expecting) else { return };
    let ending = Ending::of(transcript, session);
    let before = judgement.findings.len();
    decision.judge(&transcript.stdout(session), &ending, judgement);
    let mut left = left_behind(transcript, session, clause::NOTHING_LEFT, clause::NOTHING_LEFT);
    left.extend(left_beside(transcript, session));
    for finding in left.iter_mut().filter(|_| decision.expect.narrow) {
        finding.clause = decision.expect.clause.clone();
    }
    judgement.findings.extend(left);
    for finding in &mut judgement.findings[before..] {
        finding.step = finding.step.or(Some(decision.step));
    }
}

/// Finding about files beside a payload that was alone in its folder.
fn left_beside(transcript: &Transcript, session: usize) -> Option<Finding> {
    let mut found = transcript.of(session).filter_map(|event| match &event.kind {
        EventKind::Looked { label, found, .. } if label.starts_with(BESIDE) => Some(found),
        _ => None,
    });
    let own = |path: &[u8]| path.is_empty() || path == PAYLOAD.as_bytes();
    let other = found.find_map(|found| found.iter().find(|one| !own(&one.path.0)))?;
    let expected = "only the payload in its folder";
    let got = String::from_utf8_lossy(&other.path.0).into_owned();
    Some(Finding::new(clause::NOTHING_LEFT, "file_left", expected, got).of_nature(Nature::Leak))
}

fn find<'a>(transcript: &'a Transcript, session: usize, expecting: &Expecting<'_>) -> Option<Decision<'a>> {
    let plan: &Plan = &transcript.plan;
    let has_aims = plan.steps.iter().any(|step| !step.expect.is_null());
    plan.steps.iter().enumerate().find_map(|(index, step)| {
        let expect = match has_aims {
            true => Expect::deserialize(&step.expect).ok()?,
            false => without_aim(plan, step)?,
        };
        (step.session == session).then(|| {
            let bytes = bytes_of(plan, &expect.payload);
            let expect = expecting(expect, bytes.as_deref());
            let listed = || bytes.as_deref().and_then(decoded).map(|payload| listed(&payload));
            Decision {
                step: index,
                canary: step.canary,
                menu: expect.menu.clone().or_else(listed),
                twin: expect.twin.and_then(|twin| patch_of(transcript, twin)),
                expect,
                transcript,
                session,
            }
        })
    })
}

/// Expectation of the step that ends a decision, in a plan without aims.
fn without_aim(plan: &Plan, step: &Step) -> Option<Expect> {
    let path = plan.sessions.get(step.session)?.placeholders.get("payload")?;
    let payload = path.strip_prefix("{{")?.strip_suffix(".path}}")?.to_owned();
    (step.act == Act::Finish).then(|| Expect { payload, ..Expect::block(clause::UNDERSTOOD) })
}

/// SIDs of a payload; of both menus, if it has two.
fn listed(payload: &Json) -> Vec<String> {
    let menus = payload.as_object().unwrap_or_default().iter().filter(|(name, _)| name == "menu");
    let entries = menus.filter_map(|(_, menu)| menu.as_array()).flatten();
    entries.filter_map(|entry| Some(entry.get("sid")?.as_str()?.to_owned())).collect()
}

/// Patch in the output of a step.
fn patch_of(transcript: &Transcript, step: usize) -> Option<Json> {
    let session = transcript.plan.steps.get(step)?.session;
    block::parse(&transcript.stdout(session)).ok()?.patch
}

impl Decision<'_> {
    fn judge(&self, out: &[u8], ending: &Ending, judgement: &mut Judgement) {
        if ending.signalled {
            return self.judge_signalled(ending, judgement);
        }
        if ending.unanswered {
            let expected = "a decision while standard input stays open and silent";
            let got = "no decision until standard input was closed";
            let finding = Finding::new(clause::STDIN_UNREAD, "waits_for_stdin", expected, got);
            judgement.findings.push(finding.of_nature(Nature::Hang));
        }
        if let Some((reason, got)) = ending.flood {
            let clause = self.clause_or(clause::SIZE);
            judgement.findings.push(Finding::new(clause, reason, "at most 65,536 bytes", got));
            return;
        }
        let is_elsewhere = self.transcript.plan.sessions[self.session].folder.is_some();
        if is_elsewhere && ending.exit != Some(Exit::Code(0)) {
            let why = Untestable::new(
                "other_folder",
                "the driver does not run if started in a folder of this conversation",
            );
            judgement.untestable = Some(why);
            return;
        }
        judgement.findings.extend(self.judge_memory());
        judgement.findings.extend(asked::judge(self.transcript, self.session, &self.expect));
        match ending.exit {
            None => self.judge_hang(ending, judgement),
            Some(Exit::Code(0)) => self.judge_output(out, judgement),
            Some(exit) => self.judge_failure(exit, out, judgement),
        }
    }

    /// A hang also breaks the clause about all decisions.
    fn judge_hang(&self, ending: &Ending, judgement: &mut Judgement) {
        let general = if self.expect.allows_failure() { clause::ENDS } else { clause::IN_TIME };
        let got = ending.in_vain("no exit");
        let hung = |clause: &str| {
            Finding::new(clause, "hung", self.expect.phrase(), got.as_str()).of_nature(Nature::Hang)
        };
        judgement.findings.extend(self.broken(general).into_iter().map(hung));
    }

    /// Judges a driver that got SIGTERM. Its earlier output proves nothing.
    fn judge_signalled(&self, ending: &Ending, judgement: &mut Judgement) {
        if ending.exit.is_none() {
            let expected = "the driver ends within 2 s of SIGTERM";
            let finding = Finding::new(self.clause(), "survives_sigterm", expected, "still running");
            judgement.findings.push(finding.of_nature(Nature::Hang));
        }
    }

    /// Finding about a memory measurement over the limit. No runtime needs that much before it reads anything.
    fn judge_memory(&self) -> Option<Finding> {
        let largest = self.transcript.of(self.session).filter_map(|event| match &event.kind {
            EventKind::Memory { label, hwm_bytes } if label == MEASURED => Some(*hwm_bytes),
            _ => None,
        });
        let bytes = largest.max().filter(|bytes| *bytes > MEMORY_BYTES_MAX)?;
        let expected = format!("at most {} MiB of memory", MEMORY_BYTES_MAX >> 20);
        Some(Finding::new(self.clause(), "unbounded_memory", expected, format!("{} MiB", bytes >> 20)))
    }

    fn judge_failure(&self, exit: Exit, out: &[u8], judgement: &mut Judgement) {
        if self.expect.allows_failure() {
            let failure = super::expect::Allowed::Failure;
            let place = self.expect.allowed.iter().position(|allowed| *allowed == failure);
            self.note(place, judgement);
            return;
        }
        let said = if out.is_empty() { "nothing".to_owned() } else { text(out) };
        let reason = self.expect.reason.clone().unwrap_or_else(|| "failed".to_owned());
        let finding = Finding::new(
            self.clause(),
            reason,
            self.expect.phrase(),
            format!("{exit} after the output {said}"),
        );
        let is_crash = matches!(exit, Exit::Signal(_));
        judgement.findings.push(if is_crash { finding.of_nature(Nature::Crash) } else { finding });
    }

    fn judge_output(&self, out: &[u8], judgement: &mut Judgement) {
        let block = match block::parse(out) {
            Ok(block) => block,
            Err(fault) => return self.no_block(fault, out, judgement),
        };
        if let Some(fault) = block.driver_fault() {
            return self.no_block(fault, out, judgement);
        }
        if let Some(sid) = &block.sid
            && let Some(menu) = &self.menu
            && !menu.contains(sid)
        {
            judgement.canaries_misanswered += usize::from(self.canary);
            let expected = "a PICK of a SID in the menu";
            let clause = self.clause_or(clause::FROM_MENU);
            judgement.findings.push(Finding::new(clause, "unknown_sid", expected, text(out)));
            return;
        }
        if let Some(copied) = self.expect.copied()
            && !self.twin.as_ref().is_some_and(|twin| holds(twin, &copied))
        {
            judgement.untestable = Some(Untestable::new(
                "copies_nothing",
                "the driver copies nothing from the inputs to a patch",
            ));
            return;
        }
        match self.expect.fit(&block, self.twin.as_ref()) {
            Some(place) => {
                judgement.canaries_answered += usize::from(self.canary);
                self.note(Some(place), judgement);
            }
            None => {
                judgement.canaries_misanswered += usize::from(self.canary);
                let reason = self.expect.reason.clone().unwrap_or_else(|| reason_of(&block).to_owned());
                let finding = Finding::new(self.clause(), reason, self.expect.phrase(), text(out));
                judgement.findings.push(finding);
            }
        }
    }

    /// Reports an output without a valid block, or with one that drivers must not print.
    fn no_block(&self, fault: Fault, out: &[u8], judgement: &mut Judgement) {
        let got = if out.is_empty() { "empty output and exit status 0".to_owned() } else { text(out) };
        let expected = format!("{} ({})", self.expect.phrase(), fault.phrase());
        let general = clause_of(fault, out);
        let clauses = match fault {
            Fault::Empty => self.broken(general),
            // The encoding has a clause of its own in every decision. A bridge prints the model's block.
            Fault::BadBase64 if self.transcript.plan.sessions[self.session].command != BRIDGE => {
                vec![general]
            }
            _ => vec![self.clause_or(general)],
        };
        for clause in clauses {
            let finding = Finding::new(clause, fault.code(), expected.as_str(), got.as_str());
            judgement.findings.push(finding);
        }
        // Another check watches that clause, so this check must not pass.
        judgement.untestable = Some(Untestable::new(fault.code(), "the output is not a valid block"));
    }

    fn clause(&self) -> &str {
        &self.expect.clause.0
    }

    /// Clauses broken by a fault with a general clause; with `narrow`, that of this decision comes first.
    fn broken<'a>(&'a self, general: &'a str) -> Vec<&'a str> {
        if self.expect.narrow && self.clause() != general {
            vec![self.clause(), general]
        } else {
            vec![general]
        }
    }

    /// Clause of this decision if `narrow`, else `general`.
    fn clause_or<'a>(&'a self, general: &'a str) -> &'a str {
        if self.expect.narrow { self.clause() } else { general }
    }

    fn note(&self, place: Option<usize>, judgement: &mut Judgement) {
        let seen = self.expect.choice.as_ref().zip(place).and_then(|(choice, place)| choice.seen(place));
        if seen.is_some() {
            judgement.choice = seen;
        }
    }
}

/// Clause about the output that a fault breaks.
fn clause_of(fault: Fault, out: &[u8]) -> &'static str {
    let begins_with = |word: &str| out.trim_ascii_start().starts_with(word.as_bytes());
    match fault {
        Fault::TextBetween | Fault::Unclosed if begins_with("<ASK_SUP>") || begins_with("<NOOP>") => {
            clause::NO_PICK
        }
        Fault::Empty => clause::ONE_DECISION,
        Fault::TooLong => clause::SIZE,
        Fault::Bom | Fault::TwoBlocks | Fault::SecondPick | Fault::BothPatches => clause::NEVER_TWO,
        Fault::LowerCase | Fault::BadSid => clause::PICK,
        Fault::PatchNotJson | Fault::PatchNotObject => clause::PLAIN_PATCH,
        Fault::BadBase64 => clause::ENCODED_PATCH,
        _ => clause::ONE_BLOCK,
    }
}

fn reason_of(block: &Block) -> &'static str {
    match block.form {
        Form::Pick | Form::PickInp | Form::PickInp64 => "picked",
        Form::AskSup => "asked_supervisor",
        Form::Noop => "stopped",
    }
}

fn text(out: &[u8]) -> String {
    shorten(&String::from_utf8_lossy(out), 240).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::super::full_facts;
    use super::super::super::request::Request;
    use super::super::talk::Talk;
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::transcript::{Bytes, Event};

    /// Clauses that a driver or a bridge with this output breaks if the decision is `narrow`.
    fn broken(is_bridge: bool, said: &str) -> Vec<String> {
        let facts = full_facts::facts(Side::Provider);
        let mut talk = if is_bridge { Talk::bridge(&facts) } else { Talk::new(&facts) };
        let plan = talk.decide(&Request::plain(), Expect::block("NARROW").narrow()).plan().unwrap();
        let events = [
            EventKind::Received { bytes: Bytes(said.as_bytes().to_vec()) },
            EventKind::StdinClosed,
            EventKind::Exited { exit: Exit::Code(0) },
        ];
        let transcript = Transcript {
            boundary: "policy_driver".to_owned(),
            check: "by-hand".to_owned(),
            facts: facts.into(),
            plan: plan.into(),
            timeout_scale: 1.0,
            events: events.map(|kind| Event { at_us: 0, session: 0, kind }).into(),
        };
        judge(&transcript).findings.into_iter().map(|finding| finding.clause.0.to_string()).collect()
    }

    #[test]
    fn bad_base64_of_a_driver_breaks_the_clause_about_it_and_that_of_a_bridge_the_clause_of_its_decision() {
        let bad = "<PICK><SID0007><INP64>e30</INP64><END>";
        assert_eq!(broken(false, bad), [clause::ENCODED_PATCH]);
        assert_eq!(broken(true, bad), ["NARROW"]);
    }

    #[test]
    fn another_fault_breaks_the_clause_of_its_decision() {
        assert_eq!(broken(false, "log\n<NOOP><END>"), ["NARROW"]);
    }
}
