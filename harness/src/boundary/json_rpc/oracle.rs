//! Judges transcripts of a JSON-RPC server: what the model expects of each message, what holds of every response, and
//! of the process.

use super::deal::{Came, deal};
use super::frames::{self, Frame};
use super::model::{self, Asked, Unit, What};
use crate::boundary;
use crate::ending::{Ending, left_behind};
use crate::finding::{ChoiceSeen, Finding, Judgement, Nature};
use crate::json::{self, DecodeLimits, Json};
use crate::payload::shorten;
use crate::plan::{Act, Step};
use crate::transcript::{Exit, Transcript};

/// Clauses about lines and processes that every conversation watches.
mod clause {
    pub const ONE_REPLY: &str = "RPC-FRAME-01";
    pub const FLUSHED: &str = "RPC-FRAME-03";
    pub const PROTOCOL_ONLY: &str = "RPC-FRAME-05";
    pub const STRICT_JSON: &str = "RPC-MSG-05";
    pub const BATCH_REPLY: &str = "RPC-BATCH-01";
    pub const BATCH_ONCE: &str = "RPC-BATCH-05";
    pub const BATCH_NOTHING: &str = "RPC-BATCH-04";
    pub const LIVES_ON: &str = "RPC-ERR-01";
    pub const ENDS_AT_EOF: &str = "RPC-PROC-02";
    pub const ENDS_AT_TERM: &str = "RPC-PROC-03";
    pub const NO_PROCESS_LEFT: &str = "RPC-PROC-04";
    pub const NO_FILE_LEFT: &str = "RPC-PROC-05";
}

/// Whether `frame` is certainly the answer of a canary: it has its id and fits.
pub fn answers_canary(step: &Step, frame: &[u8]) -> bool {
    let Act::Send { payload, .. } = &step.act else { return false };
    let Ok(bytes) = payload.expand(&crate::payload::Vars::new()) else { return false };
    let decode = |bytes: &[u8]| json::decode(bytes, &DecodeLimits::default()).ok().map(|found| found.value);
    let (Some(request), Some(response)) = (decode(&bytes), decode(frame)) else { return false };
    request.get("id").is_some_and(|id| !id.is_null() && response.get("id") == Some(id))
}

/// Judges a transcript.
pub fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = Judgement::default();
    for session in 0..transcript.plan.sessions.len() {
        Session::new(transcript, session).judge(&mut judgement);
    }
    // What is no part of the set that binds the peer is no finding; but no input may end the peer, whatever it is an
    // example of.
    let is_beyond = |finding: &Finding| {
        let row = super::boundary().clauses().iter().find(|clause| clause.id == finding.clause);
        row.is_some_and(|row| boundary::is_beyond(super::boundary(), &transcript.facts.requirements, row))
    };
    let ends = ["crashed", "hung", "ended_early", "output_flood", "memory_flood"];
    for finding in &mut judgement.findings {
        if is_beyond(finding) && ends.contains(&finding.reason.as_str()) {
            finding.clause = clause::LIVES_ON.into();
        }
    }
    judgement.findings.retain(|finding| !is_beyond(finding));
    judgement
}

/// One session under judgement.
struct Session<'a> {
    transcript: &'a Transcript,
    session: usize,
    ending: Ending,
    /// What ended the replies has been said.
    over: bool,
    /// Some reply holds a surrogate escape without its other half.
    lone_surrogates: bool,
    own: Judgement,
}

impl<'a> Session<'a> {
    fn new(transcript: &'a Transcript, session: usize) -> Self {
        let ending = Ending::of(transcript, session);
        Self { transcript, session, ending, over: false, lone_surrogates: false, own: Judgement::default() }
    }

    fn judge(mut self, judgement: &mut Judgement) {
        let asked = model::asked(self.transcript, self.session);
        let out = self.transcript.stdout(self.session);
        let messages: usize = asked.iter().map(|asked| asked.units.len().max(1)).sum();
        let (frames, rest) = frames::lines(&out, messages);
        self.lone_surrogates = frames.iter().any(|frame| frame.lone_surrogates);
        self.output(&frames, rest, !asked.is_empty());
        let (came, extra) = deal(&asked, &frames);
        let last =
            came.iter().rposition(|came| came.whole.is_some() || came.answers.iter().any(Option::is_some));
        for (index, (asked, came)) in asked.iter().zip(&came).enumerate() {
            self.line(asked, came, last > Some(index));
        }
        self.extra(&asked, &extra);
        self.end();
        let left = left_behind(self.transcript, self.session, clause::NO_PROCESS_LEFT, clause::NO_FILE_LEFT);
        self.own.findings.extend(left);
        let finish = self.transcript.plan.steps.iter().position(|step| {
            step.session == self.session && matches!(step.act, Act::Finish | Act::Signal(_))
        });
        judgement.findings.extend(self.own.findings.into_iter().map(|finding| match finding.step {
            Some(_) => finding,
            None => Finding { step: finish, ..finding },
        }));
        judgement.canaries_answered += self.own.canaries_answered;
        judgement.choice = self.own.choice.or(judgement.choice.take());
    }

    /// What is output and no message.
    fn output(&mut self, frames: &[Frame], rest: &[u8], any_asked: bool) {
        if let Some((frame, error)) =
            frames.iter().find_map(|frame| Some((frame, frame.value.as_ref().err()?)))
        {
            let resembles = frame.bytes.trim_ascii_start().starts_with(b"{");
            let (clause, reason) = match resembles {
                true => (clause::STRICT_JSON, "reply_not_json"),
                false => (clause::PROTOCOL_ONLY, "other_output"),
            };
            let got = format!("{error}: {}", frame.text());
            self.own.findings.push(Finding::new(
                clause,
                reason,
                "nothing but JSON-RPC messages, each on a line",
                got,
            ));
        }
        if any_asked && self.ending.exit.is_some() && !rest.iter().all(u8::is_ascii_whitespace) {
            let got = shorten(&String::from_utf8_lossy(rest), 200).into_owned();
            let expected = "every message ends with a line feed";
            self.own.findings.push(Finding::new(clause::PROTOCOL_ONLY, "unfinished_line", expected, got));
        }
    }

    fn line(&mut self, asked: &Asked, came: &Came<'_>, others_answered_later: bool) {
        let whole = came.whole.and_then(|response| {
            let unit = asked.whole.as_ref()?;
            unit.fit(response).map(|allowed| (unit, allowed.shows))
        });
        if let Some((unit, shows)) = whole {
            self.note(asked, unit, shows);
            return;
        }
        if asked.batch && came.array.is_some() && asked.units.iter().all(Unit::must_be_silent) {
            let got = came.array.map(Frame::text).unwrap_or_default();
            let expected = "nothing comes back for a batch of notifications";
            self.file(asked, Finding::new(clause::BATCH_NOTHING, "answered", expected, got));
            return;
        }
        for response in &came.unwrapped {
            let got = shorten(&response.to_text(), 200).into_owned();
            let expected = "the responses to a batch come in one array";
            self.file(asked, Finding::new(clause::BATCH_REPLY, "no_array", expected, got));
        }
        for response in &came.extra {
            let got = shorten(&response.to_text(), 200).into_owned();
            let expected = "one response for each request of the batch";
            self.file(asked, Finding::new(clause::BATCH_ONCE, "extra_reply", expected, got));
        }
        let silent = asked.whole.as_ref().is_some_and(Unit::may_be_silent) && came.array.is_none();
        for (unit, answer) in asked.units.iter().zip(&came.answers) {
            match answer {
                Some(response) => self.reply(asked, unit, response),
                None if unit.may_be_silent() || silent => {
                    let shows = unit.allowed.iter().find(|allowed| allowed.what == What::Silence);
                    self.note(asked, unit, shows.and_then(|allowed| allowed.shows));
                }
                None if !came.unwrapped.is_empty() => {}
                None if came.array.is_some() => {
                    let finding = Finding::new(
                        clause::BATCH_ONCE,
                        "no_reply",
                        unit.phrase(),
                        "no response in the array",
                    );
                    self.file(asked, finding);
                }
                None => self.missing(asked, unit, others_answered_later),
            }
        }
    }

    fn reply(&mut self, asked: &Asked, unit: &Unit, response: &Json) {
        if !unit.old {
            for finding in frames::violations(response) {
                self.own.findings.push(finding.at(asked.step));
            }
        }
        match unit.fit(response) {
            Some(allowed) => {
                if asked.canary {
                    self.own.canaries_answered += 1;
                }
                let shows = match unit.choice {
                    Some("lone_surrogates") if allowed.shows.is_none() => {
                        Some(if self.lone_surrogates { "echo" } else { "replace" })
                    }
                    _ => allowed.shows,
                };
                self.note(asked, unit, shows);
            }
            None => {
                let misfit = unit.misfit(response);
                let got = shorten(&response.to_text(), 240).into_owned();
                self.file(asked, Finding::new(unit.clause, misfit.reason(), unit.phrase(), got));
            }
        }
    }

    /// A request without a reply: the peer died of it, hangs in it, or passed it over.
    fn missing(&mut self, asked: &Asked, unit: &Unit, others_answered_later: bool) {
        let expected = unit.phrase();
        if others_answered_later {
            let got = "no reply, though later messages were answered";
            self.file(asked, Finding::new(unit.clause, "no_reply", expected, got));
            return;
        }
        if self.over {
            return;
        }
        self.over = true;
        let ending = &self.ending;
        let by_itself = ending.exit.filter(|_| !ending.in_order() && !ending.signalled);
        let finding = if let Some((reason, got)) = ending.flood {
            Finding::new(unit.clause, reason, expected, got)
        } else if let Some(exit) = by_itself {
            let reason = if exit == Exit::Code(0) { "ended_early" } else { "crashed" };
            Finding::new(unit.clause, reason, expected, format!("no reply, {exit}")).of_nature(Nature::Crash)
        } else if (ending.unanswered || ending.unread) && !ending.in_order() || ending.late {
            Finding::new(unit.clause, "hung", expected, "no reply in time").of_nature(Nature::Hang)
        } else {
            self.over = false;
            Finding::new(unit.clause, "no_reply", expected, "no reply until the end")
        };
        self.file(asked, finding);
    }

    /// Responses that answer nothing.
    fn extra(&mut self, asked: &[Asked], extra: &[&Json]) {
        let Some(first) = extra.first() else { return };
        let mut got = shorten(&first.to_text(), 200).into_owned();
        if extra.len() > 1 {
            got.push_str(&format!(" (and {} more)", extra.len() - 1));
        }
        let id = first.get("id");
        let repeats = asked.iter().find(|asked| asked.units.iter().any(|unit| unit.has_id(id)));
        let finding =
            Finding::new(clause::ONE_REPLY, "extra_reply", "exactly one response for each request", got);
        match repeats {
            Some(asked) => self.file(asked, finding),
            None => self.own.findings.push(finding),
        }
    }

    /// How the process ended. What an unanswered request has already shown is not said again.
    fn end(&mut self) {
        if self.over {
            return;
        }
        let ending = self.ending.clone();
        let is_missing = self.own.findings.iter().any(|finding| finding.reason == "no_reply");
        let mut add = |finding: Finding| self.own.findings.push(finding);
        if (ending.unanswered || ending.unread) && !is_missing {
            let expected = "a reply that comes while input stays open";
            let finding = Finding::new(clause::FLUSHED, "late_reply", expected, "no reply in time, then one");
            add(finding.of_nature(Nature::Hang));
        }
        if ending.late {
            let (clause, expected) = match ending.signalled {
                true => (clause::ENDS_AT_TERM, "the process ends within 2 s of SIGTERM"),
                false => (clause::ENDS_AT_EOF, "exit status 0 within 2 s of the last reply"),
            };
            add(Finding::new(clause, "does_not_end", expected, "still running, killed")
                .of_nature(Nature::Hang));
        }
        match ending.exit {
            Some(_) if ending.signalled => {}
            Some(Exit::Code(0)) if !ending.input_ended => add(Finding::new(
                clause::ONE_REPLY,
                "ended_early",
                "one process serves for as long as its input stays open",
                "exit status 0 before the end of input",
            )),
            Some(exit) if exit != Exit::Code(0) => {
                let nature = if matches!(exit, Exit::Signal(_)) { Nature::Crash } else { Nature::Violation };
                let expected = "exit status 0 at the end of input";
                add(Finding::new(clause::ENDS_AT_EOF, "exit_status", expected, exit.to_string())
                    .of_nature(nature));
            }
            _ => {}
        }
    }

    /// Notes what the peer chose, where the step is about that.
    fn note(&mut self, asked: &Asked, unit: &Unit, shows: Option<&str>) {
        if asked.aim.as_ref().is_none_or(|aim| aim.clause.0 != unit.clause) {
            return;
        }
        if let (Some(key), Some(value)) = (unit.choice, shows) {
            self.own.choice = Some(ChoiceSeen { key: key.to_owned(), value: value.to_owned() });
        }
    }

    /// Files a finding under the clause that its step is about.
    fn file(&mut self, asked: &Asked, mut finding: Finding) {
        if let Some(aim) = &asked.aim {
            finding.clause.clone_from(&aim.clause);
            if let Some(reason) = &aim.reason {
                finding.reason.clone_from(reason);
            }
        }
        self.own.findings.push(finding.at(asked.step));
    }
}
