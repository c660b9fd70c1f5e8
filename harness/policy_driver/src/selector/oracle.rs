//! Judge of a selector: each Selection against its request and its driver, and the rules for all of them.

use super::super::SELECTOR;
use super::expect::{Allowed, Expect, Starts};
use super::model::walk;
use super::provided;
use super::selection::{self, Selection};
use super::sent_requests::{SentRequest, asked, fell_back};
use peerproof_engine::contract::judge::order::{self, Alignment, OrderedRequest};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::ending::{Ending, left_behind};
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, Nature};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::Step;
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript};

/// Clauses about every conversation.
mod clause {
    pub(crate) const ONE_A_LINE: &str = "PD-SEL-01";
    pub(crate) const AT_ONCE: &str = "PD-SEL-02";
    pub(crate) const STRICT: &str = "PD-SEL-04";
    pub(crate) const ENDS_AT_EOF: &str = "PD-SEL-09";
    pub(crate) const ENDS_AT_TERM: &str = "PD-SEL-11";
    pub(crate) const NOTHING_RUNS: &str = "PD-TIME-05";
    pub(crate) const FILE_GONE: &str = "PD-FILE-04";
    pub(crate) const UNKNOWN_SID: &str = "PD-GRAM-07";
    pub(crate) const SAME_AS_FALLBACK: &str = "PD-SELN-05";
    pub(crate) const LONG_LINE: &str = "PD-SEL-08";
    pub(crate) const FLOOD: &str = "PD-TIME-08";
}

/// Reason code of an unanswered request, although the selector went on.
const NO_ANSWER: &str = "no_reply";

/// Judges the sessions of a selector by the expectations of the plan.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    judge_sessions(transcript, false)
}

/// Judges the sessions of a selector by the expectations of the model, which ignores those of the plan.
pub(crate) fn judge_by_model(transcript: &Transcript) -> Judgement {
    judge_sessions(transcript, true)
}

fn judge_sessions(transcript: &Transcript, by_model: bool) -> Judgement {
    let mut judgement = Judgement::default();
    for (session, spec) in transcript.plan.sessions.iter().enumerate() {
        if spec.command == SELECTOR {
            judge_session(transcript, session, by_model, &mut judgement);
        }
    }
    peerproof_engine::contract::memory::judge(transcript, memory_clause(transcript), &mut judgement);
    judgement
}

/// Clause about memory. It is measured while the selector refuses lines, or while a driver floods it.
fn memory_clause(transcript: &Transcript) -> &'static str {
    let refuses =
        |step: &Step| Expect::of_step(&step.expect).iter().any(|it| it.clause.0 == clause::LONG_LINE);
    if transcript.plan.steps.iter().any(refuses) { clause::LONG_LINE } else { clause::FLOOD }
}

fn judge_session(transcript: &Transcript, session: usize, by_model: bool, judgement: &mut Judgement) {
    let ending = Ending::of(transcript, session);
    let frames = selection::frames(transcript, session);
    let spec = &transcript.plan.sessions[session];
    if spec.env.contains_key("PATH") && frames.first().is_none_or(|frame| frame.value.is_err()) {
        // A selector that is itself started through PATH (`#!/usr/bin/env`, a version manager) got a program that
        // was meant for its drivers.
        let why = Untestable::new(
            "own_program_in_path",
            "the selector gives no Selection if PATH contains the programs of this conversation",
        );
        judgement.untestable = Some(why);
        return;
    }
    if spec.folder.is_some() && !works_in_its_folder(transcript) {
        let why = Untestable::new(
            "other_folder",
            "the selector does not run, or uses another working folder, if started in a folder of this \
             conversation",
        );
        judgement.untestable = Some(why);
        return;
    }
    let mut lines = asked(transcript, session);
    if by_model {
        walk::expect(&mut lines, &frames, session, transcript);
    }
    let Alignment { answers, extra } = align(&lines, &frames, transcript);
    let last_answered = answers.iter().rposition(Option::is_some);
    let selections: Vec<Option<&Selection>> =
        answers.iter().map(|answer| answer.and_then(|at| frames[at].value.as_ref().ok())).collect();
    let slack_us = slack_us(&lines, &frames, &answers);
    let mut over = false;
    for (index, line) in lines.iter().enumerate() {
        let before = judgement.findings.len();
        match answers[index] {
            Some(at) => {
                let frame = &frames[at];
                let fallback = line.fallback(&lines).and_then(|place| selections[place]);
                match &frame.value {
                    Ok(selection) => {
                        line.judge(selection, fallback, transcript, judgement);
                        line.count(judgement);
                    }
                    Err(why) => {
                        let got = format!("{why}: {}", frame.text());
                        let expected = "one strict JSON object on a line of its own";
                        judgement.findings.push(Finding::new(clause::STRICT, "not_json", expected, got));
                        judgement.untestable =
                            Some(Untestable::new("not_json", "a Selection cannot be read"));
                    }
                }
                if judgement.findings.len() > before && line.is_uncertain(frame.at_us, &lines) {
                    // Later requests depend on it.
                    judgement.findings.truncate(before);
                    judgement.untestable = Some(Untestable::new("too_slow", TOO_SLOW));
                    break;
                }
                if at > 0 {
                    line.time(frame.at_us.saturating_sub(slack_us), transcript, judgement);
                }
            }
            None if over => {}
            None if last_answered > Some(index) => line.passed_over(transcript, judgement),
            None => over = !line.silence(&ending, transcript, judgement),
        }
        line.look(session, &ending, transcript, judgement);
        line.judge_given(transcript, judgement);
        let fallback = line.fallback(&lines).and_then(|place| selections[place]);
        let fell_back = selections[index].filter(|_| fallback.is_some()).map(|it| fell_back(it, fallback));
        provided::judge(line, session, fell_back == Some(Ok(())), transcript, judgement);
        for finding in &mut judgement.findings[before..] {
            finding.step = finding.step.or(Some(line.step));
        }
    }
    provided::judge_stdin(session, transcript, judgement);
    judgement.findings.extend(extra.first().map(|at| another(&frames[*at], lines.len())));
    let missing = answers.iter().any(Option::is_none);
    end(&ending, over || (missing && !ending.signalled), judgement);
    let (runs, stays) = match ending.signalled {
        // A selector that cleans up nothing leaves both, for one reason.
        true => (clause::ENDS_AT_TERM, clause::ENDS_AT_TERM),
        false => (clause::NOTHING_RUNS, clause::FILE_GONE),
    };
    if !is_deaf(&ending) {
        judgement.findings.extend(left_behind(transcript, session, runs, stays));
    }
}

/// True if it lived on after SIGTERM. Its remains then prove nothing, because it had not finished.
fn is_deaf(ending: &Ending) -> bool {
    ending.signalled && (ending.late || ending.exit.is_none())
}

/// True if a selector works in another folder. Its launcher may need the configured folder, or change to its own.
/// The first request in the folder has a driver that is only found from there.
fn works_in_its_folder(transcript: &Transcript) -> bool {
    let first = transcript.plan.sessions.iter().position(|session| session.folder.is_some());
    let frames = first.map(|session| selection::frames(transcript, session)).unwrap_or_default();
    let picks = |frame: &selection::Frame| frame.value.as_ref().is_ok_and(|it| it.kind == "PICK");
    frames.first().is_some_and(picks)
}

/// Reason why a Selection proves nothing that came after its expectation was certain.
const TOO_SLOW: &str = "this machine was too busy to judge such short times";

/// Longest duration of a plain request, which this machine may add to any time. The first answer is left out,
/// because it includes the start of the selector.
fn slack_us(lines: &[SentRequest], frames: &[selection::Frame], answers: &[Option<usize>]) -> u64 {
    let canaries = lines.iter().zip(answers).filter(|(line, answer)| line.canary && **answer != Some(0));
    let took = canaries.filter_map(|(line, at)| Some(frames[(*at)?].at_us.saturating_sub(line.at_us)));
    took.max().unwrap_or(0)
}

/// Assigns frames to lines. Selections come in the order of the lines, and none before its line.
fn align(lines: &[SentRequest], frames: &[selection::Frame], transcript: &Transcript) -> Alignment {
    let may_be_silent = |line: &SentRequest| line.expect.may_be_silent();
    let turn = |line: &SentRequest| {
        let may_be_silent = may_be_silent(line);
        OrderedRequest { may_be_silent, may_be_passed_over: may_be_silent, may_end: false }
    };
    let turns: Vec<OrderedRequest> = lines.iter().map(turn).collect();
    let can = |line: usize, frame: usize| frames[frame].place >= lines[line].sent;
    let fits = |line: usize, frame: usize| {
        let selection = frames[frame].value.as_ref();
        selection.is_ok_and(|selection| lines[line].fit(selection, None, transcript).is_ok())
    };
    let mut alignment = order::align(&turns, frames.len(), &can, &fits);
    alignment.blame(&|line| may_be_silent(&lines[line]), &can);
    alignment
}

/// Finding about a Selection that answers no line.
fn another(frame: &selection::Frame, lines: usize) -> Finding {
    match &frame.value {
        Ok(_) => {
            let expected = format!("{lines} Selections for {lines} request lines");
            Finding::new(clause::ONE_A_LINE, "another_selection", expected, frame.text())
        }
        Err(why) => {
            let got = format!("{why}: {}", frame.text());
            Finding::new(clause::STRICT, "other_output", "only Selections on standard output", got)
        }
    }
}

/// Judges the end of the process. `over` is true if an unanswered request has been reported already.
fn end(ending: &Ending, over: bool, judgement: &mut Judgement) {
    if over {
        return;
    }
    let mut add = |finding: Finding| judgement.findings.push(finding);
    if ending.unanswered {
        // Every Selection came, but the late one only after the end of input.
        let expected = "a Selection while standard input is still open";
        let got = ending.in_vain("none") + ", then one";
        let finding = Finding::new(clause::AT_ONCE, "late_selection", expected, got);
        add(finding.of_nature(Nature::Hang));
    }
    if ending.late {
        let (clause, expected) = if ending.signalled {
            (clause::ENDS_AT_TERM, "the process ends within 2 s of SIGTERM")
        } else {
            (clause::ENDS_AT_EOF, "the process ends within 2 s of its last Selection")
        };
        let finding = Finding::new(clause, "does_not_end", expected, "still running");
        add(finding.of_nature(Nature::Hang));
    } else if let Some(exit) = ending.exit.filter(|exit| !ending.signalled && *exit != Exit::Code(0)) {
        let expected = "exit status 0 at the end of input";
        let finding = Finding::new(clause::ENDS_AT_EOF, "exit_status", expected, exit.to_string());
        let is_crash = matches!(exit, Exit::Signal(_));
        add(if is_crash { finding.of_nature(Nature::Crash) } else { finding });
    } else if ending.exit.is_some() && !ending.signalled && !ending.input_ended {
        let expected = "a selector that runs until its input ends";
        add(Finding::new(clause::ENDS_AT_EOF, "ended_early", expected, "it ended before its input"));
    }
}

impl SentRequest {
    /// True if no Selection need come; records the choice that this shows.
    fn is_silent_by_right(&self, transcript: &Transcript, judgement: &mut Judgement) -> bool {
        let place = self.expect.allowed.iter().position(|way| *way == Allowed::Nothing);
        if place.is_some() {
            self.note(place, transcript, judgement);
            self.count(judgement);
        }
        place.is_some()
    }

    /// Judges a request without a Selection, if a later one has its own.
    fn passed_over(&self, transcript: &Transcript, judgement: &mut Judgement) {
        if !self.is_silent_by_right(transcript, judgement) {
            let got = "no Selection, although a later request has one";
            let clause = self.expect.clause.0.as_str();
            judgement.findings.push(Finding::new(clause, NO_ANSWER, self.expect.phrase(), got));
        }
    }

    /// Judges a request without a Selection. Returns true if none need come.
    fn silence(&self, ending: &Ending, transcript: &Transcript, judgement: &mut Judgement) -> bool {
        if self.is_silent_by_right(transcript, judgement) {
            return true;
        }
        let expected = self.expect.phrase();
        let clause = self.expect.clause.0.as_str();
        let finding = if let Some((reason, got)) = ending.flood {
            Finding::new(clause, reason, expected, got)
        } else if let Some(exit) = ending.exit.filter(|_| !ending.in_order()) {
            let got = format!("no Selection, {exit}");
            Finding::new(clause, "crashed", expected, got).of_nature(Nature::Crash)
        } else if ending.unanswered || ending.unread || ending.late {
            let clause = self.expect.within.as_ref().map_or(clause, |within| within.clause.0.as_str());
            Finding::new(clause, "hung", expected, ending.in_vain("no Selection")).of_nature(Nature::Hang)
        } else {
            let is_about_eof = clause == clause::ENDS_AT_EOF;
            let clause = if is_about_eof { clause } else { clause::ONE_A_LINE };
            Finding::new(clause, NO_ANSWER, expected, "no Selection")
        };
        judgement.findings.push(finding);
        false
    }

    fn judge(
        &self,
        selection: &Selection,
        fallback: Option<&Selection>,
        transcript: &Transcript,
        judgement: &mut Judgement,
    ) {
        let before = judgement.findings.len();
        judgement.findings.extend(selection.faults(self.request.as_ref()));
        match self.fit(selection, fallback, transcript) {
            Ok(place) => {
                let found = judgement.findings.len() > before || self.lacks_a_start();
                match &self.expect.allowed[place] {
                    Allowed::Undecided { why, .. } => judgement.untestable = Some(why.clone()),
                    _ => judgement.canaries_answered += usize::from(self.canary && !found),
                }
                self.note(Some(place), transcript, judgement);
                judgement.findings.extend(self.tells_nothing(place, selection));
            }
            // A malformed Selection is reported once, except in conversations about the choice.
            Err(_) if judgement.findings.len() > before && !self.is_about_the_choice() => {}
            // The forbidden start is reported already.
            Err((None, "taken")) if self.has_forbidden_start() => {}
            Err((clause, reason)) => {
                judgement.canaries_misanswered += usize::from(self.canary && !self.lacks_a_start());
                // A canary that breaks another clause has not failed as a canary.
                let own = self.expect.reason.as_deref().filter(|_| clause.is_none());
                let reason = own.unwrap_or(reason).to_owned();
                let clause = clause.unwrap_or(self.expect.clause.0.as_str());
                let mut expected = self.expect.phrase();
                if let Some(fallback) = fallback.filter(|_| self.expect.may_fall_back()) {
                    expected.push_str(&format!(" ({})", fallback.gist()));
                }
                judgement.findings.push(Finding::new(clause, reason, expected, selection.text.clone()));
            }
        }
    }

    /// True if the expectation is about the right choice, so that a meaningless Selection is a wrong one.
    fn is_about_the_choice(&self) -> bool {
        [clause::UNKNOWN_SID, clause::SAME_AS_FALLBACK].contains(&self.expect.clause.0.as_str())
    }

    /// True if no driver ran that could have caused the Selection.
    fn lacks_a_start(&self) -> bool {
        self.expect.starts.as_ref().is_some_and(|starts| self.starts < starts.count)
    }

    /// True if a driver was started although the clause of the expectation forbids it.
    fn has_forbidden_start(&self) -> bool {
        let forbids = |starts: &Starts| starts.count == 0 && starts.clause == self.expect.clause;
        self.starts > 0 && self.expect.starts.as_ref().is_some_and(forbids)
    }

    /// Checks the number of started drivers.
    fn count(&self, judgement: &mut Judgement) {
        if let Some(starts) = &self.expect.starts
            && starts.count != self.starts
        {
            let expected = format!("{} starts of a driver", starts.count);
            let got = format!("{} starts of a driver", self.starts);
            let reason = if self.starts > starts.count { "started" } else { "not_started" };
            judgement.findings.push(Finding::new(starts.clause.0.as_str(), reason, expected, got));
        }
    }

    /// True if the Selection came after its expectation was certain.
    fn is_uncertain(&self, at_us: u64, lines: &[Self]) -> bool {
        let Some(certain) = &self.expect.certain else { return false };
        let since = certain.since.map_or(Some(self), |step| lines.iter().find(|line| line.step == step));
        since.is_none_or(|since| at_us.saturating_sub(since.at_us) >= certain.ms * 1_000)
    }

    /// Checks the time of the Selection.
    fn time(&self, at_us: u64, transcript: &Transcript, judgement: &mut Judgement) {
        let Some(within) = &self.expect.within else { return };
        let took_ms = at_us.saturating_sub(self.at_us) / 1_000;
        let has_ms = transcript.stretched_ms(within.ms);
        if took_ms > has_ms {
            let expected = format!("a Selection within {has_ms} ms");
            let finding = Finding::new(within.clause.0.as_str(), "late", expected, format!("{took_ms} ms"));
            judgement.findings.push(finding.of_nature(Nature::Hang));
        }
    }

    /// Judges the probe after this request.
    fn look(&self, session: usize, ending: &Ending, transcript: &Transcript, judgement: &mut Judgement) {
        let mut signalled = false;
        for event in &transcript.events[self.from..self.to] {
            signalled |= event.session == session && matches!(event.kind, EventKind::Signalled { .. });
            if signalled && is_deaf(ending) {
                return;
            }
            match &event.kind {
                EventKind::ActorAlive { role, .. } => {
                    let who = match role.as_str() {
                        "self" => "the driver",
                        "child" => "a child of the driver",
                        _ => "a descendant of the driver outside its process group",
                    };
                    let clause = self.expect.gone.as_ref().map_or(clause::NOTHING_RUNS, |id| id.0.as_str());
                    let expected = "no process of the driver is running after its Selection";
                    let got = format!("{who} is still running");
                    let finding = Finding::new(clause, format!("{role}_lives"), expected, got);
                    judgement.findings.push(finding.of_nature(Nature::Leak));
                }
                EventKind::ActorFileStays { path, .. } => {
                    let expected = "the payload file is removed before the Selection is printed";
                    let got = shorten(path, 160).into_owned();
                    let clause = if signalled { clause::ENDS_AT_TERM } else { clause::FILE_GONE };
                    let finding = Finding::new(clause, "payload_stays", expected, got);
                    judgement.findings.push(finding.of_nature(Nature::Leak));
                }
                _ => {}
            }
        }
    }

    /// Records the choice of an outcome. A choice against the configuration is not replaced by a later one.
    fn note(&self, place: Option<usize>, transcript: &Transcript, judgement: &mut Judgement) {
        let seen = self.expect.choice.as_ref().zip(place).and_then(|(choice, place)| choice.seen(place));
        let contradicts = |seen: &ChoiceSeen| {
            let pinned = transcript.facts.choices.get(&seen.key);
            pinned.is_some_and(|pinned| seen.value.split('|').all(|value| value != pinned))
        };
        if seen.is_some() && !judgement.choice.as_ref().is_some_and(contradicts) {
            judgement.choice = seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::request::Request;
    use super::super::talk::Talk;
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::plan::{Act, Plan};
    use peerproof_engine::data::transcript::{Awaited, Bytes, Event};

    /// A conversation with these events and their times, ms.
    fn transcript(
        plan: Plan,
        timeout_scale: f64,
        events: impl IntoIterator<Item = (u64, EventKind)>,
    ) -> Transcript {
        let event = |(ms, kind)| Event { at_us: ms * 1_000, session: 0, kind };
        Transcript {
            boundary: "policy_driver".to_owned(),
            check: "by-hand".to_owned(),
            facts: Facts::new(Side::Consumer).into(),
            plan: plan.into(),
            timeout_scale,
            events: events.into_iter().map(event).collect(),
        }
    }

    /// Reason codes for a Selection with a limit of 2,000 ms that took `ms`. The selector takes 3 s to start.
    fn reasons(ms: u64, timeout_scale: f64) -> Vec<String> {
        const START_MS: u64 = 3_000;
        let mut talk = Talk::new();
        let expect = || Expect::new("C", Allowed::Anything).within_ms("C", 2_000);
        talk.ask(&Request::plain(), expect()).counts_as_canary();
        talk.ask(&Request::plain(), expect()).finish();
        let plan = talk.plan();
        let Act::Send { payload, .. } = plan.steps[0].act.clone() else { panic!("no request") };
        let line = b"{\"kind\":\"NOOP\",\"raw\":\"<NOOP><END>\"}\n".to_vec();
        let ms = START_MS + ms;
        let events = [
            (0, EventKind::Sent { step: 0, payload: payload.clone() }),
            (START_MS, EventKind::Received { bytes: Bytes(line.clone()) }),
            (START_MS, EventKind::Sent { step: 1, payload }),
            (ms, EventKind::Received { bytes: Bytes(line) }),
            (ms, EventKind::StdinClosed),
            (ms, EventKind::Exited { exit: Exit::Code(0) }),
        ];
        let judgement = judge(&transcript(plan, timeout_scale, events));
        judgement.findings.into_iter().map(|finding| finding.reason).collect()
    }

    #[test]
    fn a_selection_has_longer_under_a_factor_and_never_shorter_and_a_start_is_none() {
        assert_eq!(reasons(2_000, 1.0), [""; 0]);
        assert_eq!(reasons(2_001, 1.0), ["late"]);
        assert_eq!(reasons(6_000, 3.0), [""; 0]);
        assert_eq!(reasons(6_001, 3.0), ["late"]);
        assert_eq!(reasons(2_000, 0.5), [""; 0]);
    }

    #[test]
    fn one_answer_of_several_that_contradicts_a_choice_is_the_one_that_is_told() {
        let mut talk = Talk::new();
        for _ in 0..3 {
            let expect = Expect::new("C", Allowed::Invalid).or(Allowed::Anything);
            talk.ask(&Request::plain(), expect.choice("other_modes", &["invalid", "fallback"]));
        }
        let plan = talk.finish().plan();
        let Act::Send { payload, .. } = plan.steps[0].act.clone() else { panic!("no request") };
        let answer = |step: usize| {
            let bytes = Bytes(format!("{}\n", if step == 1 { INVALID } else { NOOP }).into_bytes());
            [EventKind::Sent { step, payload: payload.clone() }, EventKind::Received { bytes }]
        };
        let mut transcript = transcript(plan, 1.0, (0..3).flat_map(answer).map(|kind| (0, kind)));
        let shown = |transcript: &Transcript| judge(transcript).choice.map(|choice| choice.value);
        assert_eq!(shown(&transcript).as_deref(), Some("fallback"));
        let mut facts = Facts::new(Side::Consumer);
        facts.choices.insert("other_modes".to_owned(), "fallback".to_owned());
        transcript.facts = facts.into();
        assert_eq!(shown(&transcript).as_deref(), Some("invalid"));
    }

    #[test]
    fn a_selection_without_the_start_of_a_driver_answers_no_canary() {
        let mut talk = Talk::new();
        talk.canary("C").finish();
        let plan = talk.plan();
        let line = b"{\"kind\":\"PICK\",\"sid\":\"SID0042\",\"raw\":\"<PICK><SID0042><END>\"}\n";
        let asks = plan.steps.iter().enumerate().filter_map(|(step, it)| match &it.act {
            Act::Send { payload, .. } => Some((step, payload.clone())),
            _ => None,
        });
        let answered = asks.flat_map(|(step, payload)| {
            [EventKind::Sent { step, payload }, EventKind::Received { bytes: Bytes(line.to_vec()) }]
        });
        let ends = [EventKind::StdinClosed, EventKind::Exited { exit: Exit::Code(0) }];
        let events: Vec<_> = answered.chain(ends).map(|kind| (0, kind)).collect();
        let judgement = judge(&transcript(plan, 1.0, events));
        assert!(judgement.findings.iter().any(|it| it.reason == "not_started"), "{:?}", judgement.findings);
        assert_eq!(judgement.canaries_answered, 0);
    }

    /// Clauses and reasons of the findings about a selector that ended like `how` during its only request, with or
    /// without SIGTERM. A probe afterwards found a driver and its payload.
    fn amid_a_step(is_signalled: bool, how: Vec<EventKind>) -> Vec<(String, String)> {
        let mut talk = Talk::new();
        let expect = Expect::new("C", Allowed::Nothing).or(Allowed::Anything).gone(clause::ENDS_AT_TERM);
        talk.ask(&Request::plain(), expect).finish();
        let plan = talk.plan();
        let Act::Send { payload, .. } = plan.steps[0].act.clone() else { panic!("no request") };
        let (actor, label) = ("driver".to_owned(), "later".to_owned());
        let alive =
            EventKind::ActorAlive { actor: actor.clone(), label: label.clone(), role: "self".to_owned() };
        let stays = EventKind::ActorFileStays { actor, label, path: "/tmp/payload".to_owned() };
        let signal = is_signalled.then(|| EventKind::Signalled { signal: "TERM".to_owned() });
        let begun = [EventKind::Sent { step: 0, payload }].into_iter().chain(signal).chain(how);
        let kinds = begun.chain([alive, stays, EventKind::LeftFile { path: "payload".to_owned() }]);
        let told = |it: Finding| (it.clause.0.to_string(), it.reason);
        let judgement = judge(&transcript(plan, 1.0, kinds.map(|kind| (0, kind))));
        judgement.findings.into_iter().map(told).collect()
    }

    #[test]
    fn what_is_there_after_a_selector_that_survives_sigterm_is_no_fault_of_its_own() {
        let late = || EventKind::DeadlinePassed { awaited: Awaited::Exit, waited_ms: 2_000, slept: false };
        let only = [(clause::ENDS_AT_TERM.to_owned(), "does_not_end".to_owned())];
        assert_eq!(amid_a_step(true, vec![late(), EventKind::Killed]), only);
        // A selector that ends only with its input ignored SIGTERM as well.
        assert_eq!(amid_a_step(true, vec![late(), EventKind::Exited { exit: Exit::Code(0) }]), only);
    }

    #[test]
    fn what_a_selector_leaves_behind_at_sigterm_breaks_one_clause_and_else_its_own() {
        let told = amid_a_step(true, vec![EventKind::Exited { exit: Exit::Signal(15) }]);
        assert!(told.iter().any(|(_, reason)| reason == "payload_stays"), "{told:?}");
        assert!(told.iter().all(|(clause, _)| clause == clause::ENDS_AT_TERM), "{told:?}");
        let told =
            amid_a_step(false, vec![EventKind::StdinClosed, EventKind::Exited { exit: Exit::Code(0) }]);
        let stays = (clause::FILE_GONE.to_owned(), "payload_stays".to_owned());
        assert!(told.contains(&stays), "{told:?}");
    }

    const NOOP: &str = r#"{"kind":"NOOP","raw":"why"}"#;
    const INVALID: &str = r#"{"kind":"INVALID","raw":"why"}"#;

    /// For each line, begun at an event index, the number of its Selection; and the Selections without a line.
    fn aligned(lines: &[(Expect, usize)], came: &[(&str, usize)]) -> (Vec<Option<usize>>, Vec<usize>) {
        let events = (0..9).map(|place| {
            let of_place = came.iter().filter(|(_, at)| *at == place);
            let text: String = of_place.map(|(text, _)| format!("{text}\n")).collect();
            (0, EventKind::Received { bytes: Bytes(text.into_bytes()) })
        });
        let transcript = transcript(Talk::new().plan(), 1.0, events);
        let line = |(expect, sent): &(Expect, usize)| SentRequest {
            step: 0,
            canary: false,
            expect: expect.clone(),
            request: Some(Request::plain().0),
            at_us: 0,
            sent: *sent,
            starts: 0,
            from: 0,
            to: 0,
        };
        let lines: Vec<SentRequest> = lines.iter().map(line).collect();
        let Alignment { answers, extra } = align(&lines, &selection::frames(&transcript, 0), &transcript);
        (answers, extra)
    }

    /// A banner resembles a Selection, and a Selection is missing. The numbers agree, the times do not.
    #[test]
    fn a_selection_from_before_a_line_does_not_answer_it() {
        let refused = || Expect::invalid("C");
        assert_eq!(aligned(&[(refused(), 1)], &[(INVALID, 0)]), (vec![None], vec![0]));
        let lines = [(Expect::fallback("C"), 1), (refused(), 3)];
        assert_eq!(aligned(&lines, &[(INVALID, 0), (NOOP, 2)]), (vec![Some(1), None], vec![0]));
    }

    #[test]
    fn a_line_that_may_stay_silent_takes_no_selection_of_another() {
        let blank = || Expect::new("C", Allowed::Nothing).or(Allowed::Invalid);
        let lines = [(Expect::fallback("C"), 1), (blank(), 3)];
        assert_eq!(aligned(&lines, &[(INVALID, 2)]), (vec![Some(0), None], vec![]));
        // The first line is answered twice before the second was sent.
        let came = [(NOOP, 2), (NOOP, 2), (NOOP, 5)];
        let lines = [(Expect::fallback("C"), 1), (blank(), 3), (Expect::fallback("C"), 4)];
        assert_eq!(aligned(&lines, &came), (vec![Some(0), None, Some(2)], vec![1]));
        // A wrong answer still belongs to its line.
        let lines = [(Expect::fallback("C"), 0), (blank(), 2), (Expect::fallback("C"), 4)];
        let came = [(NOOP, 1), (NOOP, 3), (NOOP, 5)];
        assert_eq!(aligned(&lines, &came), (vec![Some(0), Some(1), Some(2)], vec![]));
    }
}
