//! Findings about answers that do not fit, are missing or superfluous, and about the end of the process.

use crate::contract::face::{
    Answer, ExpectedPart, Face, FrameContent, Framing, HttpTrace, Match, Output, PlacedExpectation,
    SessionTrace, fitting, misfit, phrase,
};
use crate::data::ending::Ending;
use crate::data::finding::{
    ChoiceSeen, Finding, Judgement, LATE_REPLY, NO_REPLY_UNTIL_THE_END, Nature, Repair,
};
use crate::data::json::{self, DecodeLimits};
use crate::data::payload::shorten;
use crate::data::transcript::{Exit, Transcript};

/// Maximum length of a quoted superfluous answer, characters.
const QUOTED_CHARS: usize = 200;

/// Returns true if `came` fits the part, and then records what it shows.
pub(super) fn is_right<F: Face>(
    face: &F,
    asked: &PlacedExpectation<F>,
    part: &ExpectedPart<F>,
    came: &[&F::Message],
    own: &mut Judgement,
) -> bool {
    let Some(allowed) = fitting(face, part, came) else { return false };
    if let Some(why) = face.leaves_open(part, asked.aim.as_ref(), came) {
        own.untestable = Some(why);
    }
    own.canaries_answered += usize::from(face.is_canary(asked, part));
    note(face, asked, part, face.shows(part, allowed, came), own);
    true
}

/// Notes what the peer chose, where the step is about that.
pub(super) fn note<F: Face>(
    face: &F,
    asked: &PlacedExpectation<F>,
    part: &ExpectedPart<F>,
    shows: Option<&str>,
    own: &mut Judgement,
) {
    let is_about = asked.aim.as_ref().map_or(face.is_about_its_message(), |aim| aim.clause.0 == part.clause);
    if !is_about {
        return;
    }
    if let (Some(key), Some(value)) = (part.choice, shows) {
        own.choice = Some(ChoiceSeen { pinned: false, key: key.to_owned(), value: value.to_owned() });
    }
}

/// Judges the output of one session. Also returns findings about malformed answers, which count unless a rule reports
/// them.
pub(super) fn judge<F: Face>(
    face: &F,
    transcript: &Transcript,
    heard: &SessionTrace<'_, F>,
) -> (Judgement, Vec<Finding>) {
    let framing = heard.framing;
    let (own, of_malformed) = (Judgement::default(), Vec::new());
    let mut session = SessionJudge { face, transcript, framing, heard, over: false, own, of_malformed };
    session.output();
    let last = heard.exchanges.iter().rposition(|(_, came)| came.is_answered());
    for (index, (asked, came)) in heard.exchanges.iter().enumerate() {
        match framing {
            Framing::Bodies => session.carried(index, last > Some(index)),
            _ => session.exchange(asked, came, last > Some(index)),
        }
    }
    match framing {
        Framing::Bodies => {
            heard.extra.chunk_by(|one, next| one.0 == next.0).for_each(|of_one| session.extra(of_one))
        }
        _ => session.extra(&heard.extra),
    }
    match framing {
        Framing::Lines => session.end(),
        Framing::Bodies => session.end_of_server(),
        Framing::Whole | Framing::Silent => session.end_of_one(),
        // `entities.rs` judges the end of these.
        Framing::Asks | Framing::Calls => {}
    }
    (session.own, session.of_malformed)
}

struct SessionJudge<'a, 'h, F: Face> {
    face: &'a F,
    transcript: &'a Transcript,
    framing: Framing,
    heard: &'a SessionTrace<'h, F>,
    /// Set once a finding explains why no further answers came.
    over: bool,
    own: Judgement,
    /// Misfits of answers that are malformed at the same place.
    of_malformed: Vec<Finding>,
}

impl<F: Face> SessionJudge<'_, '_, F> {
    fn quoted(&self, message: &F::Message) -> String {
        shorten(&self.face.text(message), QUOTED_CHARS).into_owned()
    }

    fn file(&mut self, asked: &PlacedExpectation<F>, finding: Finding) {
        self.own.findings.push(asked.file(finding));
    }

    /// Reports output that is not a message, in one finding.
    fn output(&mut self) {
        let rest = self.heard.rest;
        match self.framing {
            Framing::Bodies => {
                let broken = self.heard.lines.iter().zip(self.heard.output);
                let broken = broken.filter_map(|(line, output)| Some(output.broken.clone()?.at(line.step)));
                self.own.findings.extend(broken);
            }
            _ => {
                if let Some(frame) = self.first_broken()
                    && let Some(finding) = self.heard.output[frame].broken.clone()
                {
                    let asked = self.heard.exchanges.iter().find(|(_, came)| came.garbled == Some(frame));
                    self.own.findings.push(match asked {
                        Some((asked, _)) => finding.at(asked.step),
                        None => finding,
                    });
                }
            }
        }
        let ending = &self.heard.ending;
        let has_rest = !rest.iter().all(u8::is_ascii_whitespace);
        let is_over = match self.framing {
            // A peer left alone may stop in the middle of a frame.
            Framing::Asks => ending.exit == Some(Exit::Code(0)) && !ending.input_ended,
            _ => !self.heard.exchanges.is_empty() && ending.exit.is_some() && !ending.cut,
        };
        if has_rest && is_over {
            let got = shorten(&String::from_utf8_lossy(rest), QUOTED_CHARS).into_owned();
            let expected = "every message ends with a line feed";
            let clause = self.face.session_clauses().protocol_only;
            self.own.findings.push(Finding::new(clause, "unfinished_line", expected, got));
        }
    }

    /// Judges an HTTP exchange: its head first, then the body unless the head explains everything.
    fn carried(&mut self, index: usize, others_answered_later: bool) {
        let (asked, came) = &self.heard.exchanges[index];
        let Some(line) = asked.line else { return self.exchange(asked, came, others_answered_later) };
        let exchange = self.heard.carriages[line];
        let of_head = self.face.status(&HttpTrace {
            transcript: self.transcript,
            asked,
            line: &self.heard.lines[line],
            how: self.transcript.plan.steps.get(asked.step).and_then(|step| step.http.as_ref()),
            exchange,
            output: &self.heard.output[line],
            is_over: self.over || self.heard.ending.exit.is_some(),
        });
        let is_said = !of_head.findings.is_empty();
        self.own.choice = of_head.choice.or(self.own.choice.take());
        self.own.untestable = of_head.untestable.or(self.own.untestable.take());
        self.own.findings.extend(of_head.findings);
        let is_answered =
            came.frame.is_some() || came.is_answered() || !came.apart.is_empty() || came.garbled.is_some();
        if let Some(status) = exchange.status().filter(|_| !is_answered && !asked.due.may_be_silent()) {
            // An HTTP reply came, so nothing was lost or hung.
            if let Some(part) = asked.due.parts.iter().find(|part| !part.may_be_silent()).filter(|_| !is_said)
            {
                let got = format!("HTTP status {status} with no reply in the body");
                let finding = Finding::new(part.clause, "no_reply", phrase(self.face, part), got);
                self.file(asked, finding.repaired_by(Repair::Send));
            }
            return;
        }
        let before = self.own.findings.len();
        self.exchange(asked, came, others_answered_later);
        for finding in &mut self.own.findings[before..] {
            match exchange.failure {
                Some(failure) => finding.got = finding.got.replacen("no reply", failure, 1),
                // Its connection was still open; other connections do not wait for it.
                None => finding.timed |= finding.reason == "no_reply",
            }
        }
    }

    fn exchange(&mut self, asked: &PlacedExpectation<F>, came: &Match<'_, F>, others_answered_later: bool) {
        if let (Some(part), Some(answer)) = (&asked.due.whole, came.whole)
            && let Some(allowed) = fitting(self.face, part, &[answer.message])
        {
            note(self.face, asked, part, allowed.shows, &mut self.own);
            return;
        }
        self.group(asked, came);
        if asked.due.together
            && asked.due.must_be_silent()
            && (came.frame.is_some() || !came.apart.is_empty())
        {
            return;
        }
        let silent =
            came.frame.is_none() && asked.due.whole.as_ref().is_some_and(ExpectedPart::<F>::may_be_silent);
        let mut garbled = came.garbled;
        for (part, answer) in asked.due.parts.iter().zip(&came.answers) {
            match answer {
                Some(answer) => self.answer(asked, part, *answer),
                None if part.may_be_silent() || silent => {
                    note(
                        self.face,
                        asked,
                        part,
                        part.silence().and_then(|silence| silence.shows),
                        &mut self.own,
                    );
                }
                None if came.garbled.is_some() => {
                    if let Some(frame) = garbled.take() {
                        self.garbled(asked, part, frame);
                    }
                }
                None if !came.apart.is_empty() => {}
                None if came.frame.is_some() => {
                    let group = self.face.session_clauses().together;
                    let once = group.map_or(part.clause, |clauses| clauses.once);
                    let got =
                        format!("no response in the {}", group.map_or("frame", |clauses| clauses.frame));
                    let finding = Finding::new(once, "no_reply", phrase(self.face, part), got);
                    self.file(asked, finding.repaired_by(Repair::Send));
                }
                None => self.missing(asked, part, others_answered_later),
            }
        }
    }

    /// Number of the first frame that is not a message.
    fn first_broken(&self) -> Option<usize> {
        self.heard.output.iter().position(|output| output.broken.is_some())
    }

    /// Files an undecodable answer under the aim of its step. The finding about the output stands for the first of those
    /// without an aim, and of canaries, which only ask for an answer.
    fn garbled(&mut self, asked: &PlacedExpectation<F>, part: &ExpectedPart<F>, frame: usize) {
        let Output { held: FrameContent::Garbled, broken: Some(broken), .. } = &self.heard.output[frame]
        else {
            return;
        };
        if asked.aim.is_some() && !asked.canary {
            self.file(asked, Finding { expected: phrase(self.face, part), ..broken.clone() });
        } else if self.framing != Framing::Bodies && self.first_broken() != Some(frame) {
            self.own.findings.push(broken.clone().at(asked.step));
        }
    }

    /// Checks that the answers to a group came together.
    fn group(&mut self, asked: &PlacedExpectation<F>, came: &Match<'_, F>) {
        let Some(clauses) = self.face.session_clauses().together.filter(|_| asked.due.together) else {
            return;
        };
        let in_frame = came.frame.map(|frame| &self.heard.output[frame].held);
        let first =
            in_frame.map(|held| held.text(self.face)).or_else(|| Some(self.face.text(came.apart.first()?)));
        if asked.due.must_be_silent()
            && let Some(got) = first
        {
            let expected = format!("no reply to a {} without requests", clauses.group);
            let got = shorten(&got, QUOTED_CHARS).into_owned();
            // Only an empty frame is about the group rather than about its members.
            let has_answer = came.is_answered() || !came.apart.is_empty() || !came.extra.is_empty();
            let member = asked.due.parts.first().filter(|_| has_answer);
            let clause = member.map_or(clauses.nothing, |part| part.clause);
            self.file(asked, Finding::new(clause, "answered", expected, got).repaired_by(Repair::Drop));
            return;
        }
        for message in &came.apart {
            let expected =
                format!("the responses to a {} come together in one {}", clauses.group, clauses.frame);
            let finding = Finding::new(clauses.in_one, "no_array", expected, self.quoted(message));
            self.file(asked, finding.repaired_by(Repair::Wrap));
        }
        for message in &came.extra {
            let expected = format!("one response for each request of the {}", clauses.group);
            let finding = Finding::new(clauses.once, "extra_reply", expected, self.quoted(message));
            self.file(asked, finding.repaired_by(Repair::Drop));
        }
    }

    fn answer(&mut self, asked: &PlacedExpectation<F>, part: &ExpectedPart<F>, answer: Answer<'_, F>) {
        let came = [answer.message];
        if !is_right(self.face, asked, part, &came, &mut self.own) {
            let misfit = misfit(self.face, part, &came);
            let is_malformed = self.face.is_malformed_at(answer.message, &misfit);
            let got = self.face.text(answer.message);
            let clause = misfit.clause.unwrap_or(part.clause);
            let finding = Finding::new(clause, misfit.reason, phrase(self.face, part), got);
            let finding = finding.repaired_by(misfit.repair);
            let is_own = part.key().is_none_or(|key| self.face.key(answer.message).as_deref() == Some(key));
            let shows_work = is_own && self.face.shows_work(answer.message);
            self.own.canaries_misanswered += usize::from(shows_work && self.face.is_canary(asked, part));
            if is_malformed {
                self.of_malformed.push(asked.file(finding));
            }
            // A canary that names no reason only asks for an answer of any kind.
            else if asked.canary && asked.aim.as_ref().is_none_or(|aim| aim.reason.is_none()) {
                self.own.findings.push(finding.at(asked.step));
            } else {
                self.file(asked, finding);
            }
        }
    }

    /// Reports a request without an answer: the peer died, hung or skipped it.
    fn missing(&mut self, asked: &PlacedExpectation<F>, part: &ExpectedPart<F>, others_answered_later: bool) {
        let ending = &self.heard.ending;
        if ending.cut {
            return;
        }
        let expected = phrase(self.face, part);
        if others_answered_later {
            let got = "no reply, although later messages were answered";
            self.file(asked, Finding::new(part.clause, "no_reply", expected, got).repaired_by(Repair::Send));
            return;
        }
        if self.over {
            return;
        }
        self.over = true;
        let by_itself = ending.exit.filter(|_| !ending.in_order() && !ending.signalled);
        let is_hung = (ending.unanswered || ending.unread) && !ending.in_order() || ending.late;
        if is_hung && !ending.signalled && self.framing == Framing::Whole && self.has_answer() {
            let session_clauses = self.face.session_clauses();
            let expected = "the process ends within 2 s of its reply";
            let finding =
                still_running(ending, session_clauses.ends_at_term, session_clauses.ends_at_eof, expected);
            self.own.findings.push(finding.at(asked.step));
            return;
        }
        let finding = if let Some((reason, got)) = ending.flood {
            Finding::new(part.clause, reason, expected, got)
        } else if let Some(exit) = by_itself.filter(|exit| self.is_crash(*exit)) {
            let reason = if exit == Exit::Code(0) { "ended_early" } else { "crashed" };
            Finding::new(part.clause, reason, expected, format!("no reply, {exit}")).of_nature(Nature::Crash)
        } else if is_hung {
            Finding::new(part.clause, "hung", expected, ending.in_vain("no reply")).of_nature(Nature::Hang)
        } else {
            self.over = false;
            Finding::new(part.clause, "no_reply", expected, NO_REPLY_UNTIL_THE_END)
        };
        self.file(asked, finding.repaired_by(Repair::Send));
    }

    /// True if the output of a one-exchange process is complete although the process goes on.
    fn has_answer(&self) -> bool {
        let out = self.transcript.stdout(self.heard.session);
        json::check(&out, &DecodeLimits::default()).is_ok()
    }

    /// True if the exit came too early.
    fn is_crash(&self, exit: Exit) -> bool {
        self.framing == Framing::Lines || exit != Exit::Code(0)
    }

    /// Reports messages that answer nothing.
    fn extra(&mut self, extra: &[(usize, &F::Message)]) {
        let Some((at, first)) = extra.first() else { return };
        let mut got = self.quoted(first);
        if extra.len() > 1 {
            got.push_str(&format!(" (and {} more)", extra.len() - 1));
        }
        let key = self.face.key(first);
        let has_key = |part: &ExpectedPart<F>| key.is_some() && part.key() == key.as_deref();
        let exchanges = match self.framing {
            Framing::Bodies => &self.heard.exchanges[*at..=*at],
            _ => &self.heard.exchanges,
        };
        let asked = || exchanges.iter().map(|(asked, _)| *asked);
        let repeats = asked()
            .find(|asked| asked.due.parts.iter().any(has_key))
            .or_else(|| asked().find(|asked| asked.due.parts.iter().any(|part| self.face.may_repeat(part))));
        let expected = "exactly one response for each request";
        let finding = Finding::new(self.face.session_clauses().one_reply, "extra_reply", expected, got);
        let finding = finding.repaired_by(Repair::Drop);
        self.own.findings.push(match repeats {
            Some(asked) => asked.file(finding),
            None => finding,
        });
    }

    /// Judges the end of a serving process, unless an unanswered request has already explained it.
    fn end(&mut self) {
        if self.over {
            return;
        }
        let ending = self.heard.ending.clone();
        let session_clauses = self.face.session_clauses();
        let is_missing = self.own.findings.iter().any(Finding::lacks_answer);
        // A message assigned to no request leaves another request unanswered.
        let is_misled = is_missing || self.own.findings.iter().any(|finding| finding.step.is_some());
        let may_leave = self.transcript.plan.recorded && !is_missing && self.face.may_leave(self.transcript);
        let mut add = |finding: Finding| self.own.findings.push(finding);
        if (ending.unanswered || ending.unread) && !is_misled {
            let expected = "a reply while standard input is still open";
            let got = ending.in_vain("no reply") + ", then one";
            let finding = Finding::new(session_clauses.flushed, LATE_REPLY, expected, got);
            add(finding.of_nature(Nature::Hang).repaired_by(Repair::Sooner));
        }
        if ending.late {
            let expected = match ending.signalled {
                true => "the process ends within 2 s of SIGTERM",
                false => "exit status 0 within 2 s of the last reply",
            };
            add(still_running(&ending, session_clauses.ends_at_term, session_clauses.ends_at_eof, expected));
        }
        match ending.exit {
            Some(_) if ending.signalled => {}
            // A client may have asked it to end by a method that the specification does not cover.
            Some(Exit::Code(0)) if !ending.input_ended && may_leave => {}
            Some(Exit::Code(0)) if !ending.input_ended => add(Finding::new(
                session_clauses.one_reply,
                "ended_early",
                "the process keeps running while its standard input is open",
                "exit status 0, although standard input was still open",
            )
            .repaired_by(Repair::Undo)),
            Some(exit) if exit != Exit::Code(0) => {
                let nature = if matches!(exit, Exit::Signal(_)) { Nature::Crash } else { Nature::Violation };
                let expected = "exit status 0 at the end of input";
                let finding =
                    Finding::new(session_clauses.ends_at_eof, "exit_status", expected, exit.to_string());
                add(finding.of_nature(nature).repaired_by(Repair::Exit(Exit::Code(0))));
            }
            _ => {}
        }
    }

    /// Judges the end of a server, which must come when told and never by itself.
    fn end_of_server(&mut self) {
        if self.over {
            return;
        }
        let (ending, session_clauses) = (&self.heard.ending, self.face.session_clauses());
        if let Some(exit) = ending.exit.filter(|_| !ending.signalled) {
            let expected = "a server that keeps running after any input";
            let finding = Finding::new(session_clauses.lives_on, "ended_early", expected, exit.to_string());
            self.own.findings.push(finding.of_nature(Nature::Crash).repaired_by(Repair::Undo));
        }
        if ending.signalled && ending.late {
            let expected = "the process ends within 2 s of SIGTERM";
            let finding =
                still_running(ending, session_clauses.ends_at_term, session_clauses.ends_at_eof, expected);
            self.own.findings.push(finding);
        }
    }

    /// Judges the end of a one-exchange process. Its status belongs to its answer.
    fn end_of_one(&mut self) {
        let ending = &self.heard.ending;
        if !self.over && ending.late {
            let session_clauses = self.face.session_clauses();
            let expected = match ending.signalled {
                true => "the process ends within 2 s of SIGTERM",
                false => "the process ends within 2 s of its reply",
            };
            let finding =
                still_running(ending, session_clauses.ends_at_term, session_clauses.ends_at_eof, expected);
            self.own.findings.push(finding);
        }
    }
}

pub(super) fn still_running(ending: &Ending, at_term: &str, at_eof: &str, expected: &str) -> Finding {
    let clause = if ending.signalled { at_term } else { at_eof };
    let finding = Finding::new(clause, "does_not_end", expected, "still running; peerproof killed it");
    finding.of_nature(Nature::Hang).repaired_by(Repair::Sooner)
}
