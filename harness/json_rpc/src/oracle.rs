//! Judges transcripts of a JSON-RPC server: what the model expects of each message, what holds of every response, and
//! of the process.

mod http;
mod lateness;

use std::collections::BTreeSet;

use super::deal::{Came, deal};
use super::frames::{self, Frame};
use super::model::{self, Aim, Asked, Unit, What};
use super::{rates, rules, streams};
use peerproof_engine::boundary;
use peerproof_engine::ending::{Ending, left_behind};
use peerproof_engine::finding::{ChoiceSeen, Finding, Judgement, Nature};
use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::lines::{self, Line};
use peerproof_engine::matrix::canonical::canonical;
use peerproof_engine::memory;
use peerproof_engine::payload::shorten;
use peerproof_engine::plan::{Act, Plan, Step};
use peerproof_engine::transcript::{Exit, Transcript, strict};

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
    pub const UTF_8: &str = "RPC-JSON-02";
    pub const ENDS_AT_EOF: &str = "RPC-PROC-02";
    pub const ENDS_AT_TERM: &str = "RPC-PROC-03";
    pub const NO_PROCESS_LEFT: &str = "RPC-PROC-04";
    pub const NO_FILE_LEFT: &str = "RPC-PROC-05";
    pub const TOO_LARGE: &str = "RPC-SIZE-02";
    pub const CONCURRENT: &str = "RPC-CONC-01";
    /// Those of which only a result shows anything.
    pub const OF_RESULTS: [&str; 5] =
        ["RPC-EXEC-02", "RPC-EXEC-03", "RPC-PLAN-01", "RPC-PLAN-02", "RPC-PLAN-03"];
}

/// Member of what a plan expects: the clause about memory that it is about, where that is not the one about lines.
pub const MEMORY: &str = "memory";

/// Refuses a plan whose aims are not wholly read.
///
/// # Errors
/// One sentence.
pub fn admit(plan: &Plan) -> Result<(), String> {
    strict::expectations::<Aim>(plan)?;
    match plan.expect.as_object().and_then(|members| members.keys().find(|name| *name != MEMORY)) {
        Some(name) => Err(format!("plan/expect: {name:?} is unknown; what is known is {MEMORY:?}")),
        None => Ok(()),
    }
}

/// Time that a quick call has to be answered before a slow one, microseconds.
const HELD_UP_US: u64 = 1_000_000;

/// Whether `frame` is certainly the answer of a canary: it has its id and fits.
pub fn answers_canary(step: &Step, frame: &[u8]) -> bool {
    let Act::Send { payload, .. } = &step.act else { return false };
    let Ok(bytes) = payload.expand(&peerproof_engine::payload::Vars::new()) else { return false };
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
    let of_memory = transcript.plan.expect.get(MEMORY).and_then(serde_json::Value::as_str);
    memory::judge(transcript, of_memory.unwrap_or("RPC-SIZE-04"), &mut judgement);
    // What is no part of the set that binds the peer is no finding; but no input may end the peer, whatever it is an
    // example of: bytes that are no text are a message of no sort.
    let is_beyond = |finding: &Finding| {
        let row = super::boundary().clauses().iter().find(|clause| clause.id == finding.clause);
        row.is_some_and(|row| boundary::is_beyond(super::boundary(), &transcript.facts.requirements, row))
    };
    let ends = ["crashed", "hung", "ended_early", "output_flood", "memory_flood"];
    for finding in &mut judgement.findings {
        let is_of_bytes = finding.clause.0 == clause::UTF_8;
        if (is_beyond(finding) || is_of_bytes) && ends.contains(&finding.reason.as_str()) {
            finding.clause = clause::LIVES_ON.into();
        }
    }
    judgement.findings.retain(|finding| !is_beyond(finding));
    judgement
}

/// The units of a line that were answered, with their answers.
fn answered<'a>(asked: &'a Asked, came: &Came<'a>) -> Vec<(&'a Unit, &'a Json)> {
    let pairs = asked.units.iter().zip(&came.answers);
    pairs.filter_map(|(unit, answer)| answer.map(|answer| (unit, answer))).collect()
}

type Place<'a> = dyn Fn(usize) -> Option<usize> + 'a;
type Beside<'a> = dyn Fn(usize, usize) -> bool + 'a;

/// One session under judgement.
struct Session<'a> {
    transcript: &'a Transcript,
    session: usize,
    ending: Ending,
    /// What ended the replies has been said.
    over: bool,
    /// Some reply holds a surrogate escape without its other half.
    lone_surrogates: bool,
    /// The first error that refused a signature, and whether another one differed.
    unauthorized: Option<(String, bool)>,
    own: Judgement,
}

impl<'a> Session<'a> {
    fn new(transcript: &'a Transcript, session: usize) -> Self {
        let ending = Ending::of(transcript, session);
        Self {
            transcript,
            session,
            ending,
            over: false,
            lone_surrogates: false,
            unauthorized: None,
            own: Judgement::default(),
        }
    }

    fn judge(mut self, judgement: &mut Judgement) {
        let lines = lines::of_session(self.transcript, self.session);
        let asked = model::asked(self.transcript, self.session, &lines);
        if http::is_http(self.transcript, self.session) {
            self.judge_http(asked, &lines);
        } else {
            self.judge_lines(asked, &lines);
        }
        let finish = self.transcript.plan.steps.iter().position(|step| {
            step.session == self.session && matches!(step.act, Act::Finish | Act::Signal(_))
        });
        judgement.findings.extend(self.own.findings.into_iter().map(|finding| match finding.step {
            Some(_) => finding,
            None => Finding { step: finish, ..finding },
        }));
        judgement.canaries_answered += self.own.canaries_answered;
        judgement.choice = self.own.choice.or(judgement.choice.take());
        judgement.untestable = self.own.untestable.or(judgement.untestable.take());
    }

    /// Judges a session on standard streams.
    fn judge_lines(&mut self, asked: Vec<Asked>, lines: &[Line]) {
        let out = self.transcript.stdout(self.session);
        let (frames, rest) = frames::answering(&out, &asked, self.transcript, self.session);
        self.lone_surrogates = frames.iter().any(|frame| frame.lone_surrogates);
        self.output(&frames, rest, !asked.is_empty());
        let (came, extra) = deal(&asked, &frames);
        let last =
            came.iter().rposition(|came| came.whole.is_some() || came.answers.iter().any(Option::is_some));
        for (index, (asked, came)) in asked.iter().zip(&came).enumerate() {
            self.line(asked, came, last > Some(index));
        }
        self.extra(&asked, &extra);
        let place = |at: usize| {
            let response = came[at].answers.first().copied().flatten()?;
            frames
                .iter()
                .position(|frame| frame.value.as_ref().is_ok_and(|value| std::ptr::eq(value, response)))
        };
        self.held_up(&asked, &place, &|_, _| true);
        self.own.findings.extend(rules::of_frames(&frames));
        self.own.findings.extend(rules::of_logs(self.transcript, self.session));
        let answered_us = |at: usize| {
            let frame = frames.get(place(at)?)?;
            self.transcript.of(self.session).nth(frame.place).map(|event| event.at_us)
        };
        let late = lateness::judge(&asked, &answered_us, self.transcript.timeout_scale);
        late.into_iter().for_each(|(at, finding)| self.file(&asked[at], finding));
        let answers: Vec<(&Unit, &Json)> =
            asked.iter().zip(&came).flat_map(|(asked, came)| answered(asked, came)).collect();
        self.rate(&asked, &answers);
        self.own.findings.extend(streams::judge(&self.transcript.facts, lines, &frames));
        self.end();
        if !self.ending.late {
            self.own.findings.extend(lateness::end(self.transcript, self.session));
        }
        let left = left_behind(self.transcript, self.session, clause::NO_PROCESS_LEFT, clause::NO_FILE_LEFT);
        self.own.findings.extend(left);
    }

    /// Whether requests were let through that are too many, or kept out that are not.
    fn rate(&mut self, asked: &[Asked], answers: &[(&Unit, &Json)]) {
        if self.transcript.facts.claims("rate_limit") {
            let found = rates::judge(&self.transcript.facts, self.transcript, self.session, asked, answers);
            self.own.findings.extend(found);
        }
    }

    /// What is output and no message.
    fn output(&mut self, frames: &[Frame], rest: &[u8], any_asked: bool) {
        if let Some((frame, error)) =
            frames.iter().find_map(|frame| Some((frame, frame.value.as_ref().err()?)))
        {
            let resembles =
                [&b"{"[..], b"[{"].iter().any(|start| frame.bytes.trim_ascii_start().starts_with(start));
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
        if any_asked
            && self.ending.exit.is_some()
            && !self.ending.cut
            && !rest.iter().all(u8::is_ascii_whitespace)
        {
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
        let unwrapped =
            || came.unwrapped.first().map(|response| shorten(&response.to_text(), 200).into_owned());
        if asked.batch
            && let Some(got) = came.array.map(Frame::text).or_else(unwrapped)
            && asked.units.iter().all(Unit::must_be_silent)
        {
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
        self.twins(asked, came);
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

    /// What is wrong with the refusal of a signature: it tells what the right one is, or what was wrong.
    fn refusal(&mut self, asked: &Asked, unit: &Unit, response: &Json) {
        let Some(error) = model::auth::refusal(response) else { return };
        let told = unit.sealed.as_ref().and_then(|sealed| model::auth::leak(sealed, response));
        self.own.findings.extend(told.map(|finding| finding.at(asked.step)));
        let text = canonical(error);
        match &mut self.unauthorized {
            None => self.unauthorized = Some((text, false)),
            Some((first, differed)) if *first != text && !*differed => {
                *differed = true;
                let expected = format!("the error that another message was refused with: {first}");
                let finding = Finding::new("RPC-AUTH-11", "errors_differ", expected, text);
                self.own.findings.push(finding.at(asked.step));
            }
            Some(_) => {}
        }
    }

    /// Elements of a batch with one nonce of which more than one was accepted.
    fn twins(&mut self, asked: &Asked, came: &Came<'_>) {
        let mut accepted = BTreeSet::new();
        for (unit, response) in answered(asked, came) {
            let twin = unit.sealed.as_ref().and_then(|sealed| sealed.twin.as_ref());
            let Some(nonce) = twin.filter(|_| rates::passed(response)) else { continue };
            if !accepted.insert(nonce) {
                let got = shorten(&response.to_text(), 200).into_owned();
                let expected = "a nonce is accepted once, in one batch too";
                self.file(asked, Finding::new("RPC-AUTH-03", "nonce_accepted_twice", expected, got));
                return;
            }
        }
    }

    fn reply(&mut self, asked: &Asked, unit: &Unit, response: &Json) {
        if !unit.old {
            for finding in frames::violations(response) {
                self.own.findings.push(finding.at(asked.step));
            }
            let facts = &self.transcript.facts;
            let has_key = facts.claims("auth");
            let signed = has_key.then(|| model::auth::violation(response)).flatten();
            let limited = facts.claims("rate_limit").then(|| model::rate::violation(response)).flatten();
            let found = signed.into_iter().chain(limited).map(|finding| finding.at(asked.step));
            self.own.findings.extend(found);
            if has_key {
                self.refusal(asked, unit, response);
            }
        }
        self.own.findings.extend(rules::trace(response).map(|finding| finding.at(asked.step)));
        match unit.fit(response) {
            Some(allowed) => {
                let found = rules::of_response(unit, allowed, response);
                self.own.findings.extend(found.into_iter().map(|finding| finding.at(asked.step)));
                self.open_question(asked, unit, response);
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
                self.file(
                    asked,
                    Finding::new(unit.clause, misfit.reason(), unit.phrase(), response.to_text()),
                );
            }
        }
    }

    /// An answer that is right and leaves open what the step asks.
    fn open_question(&mut self, asked: &Asked, unit: &Unit, response: &Json) {
        let code = response.pointer("/error/code").and_then(Json::as_i64);
        let of_results = |clause: &str| clause::OF_RESULTS.contains(&clause);
        if let (Some(code), Some((nothing, why))) = (code, unit.shows_nothing)
            && code == nothing
        {
            self.own.untestable = Some(format!("role_misbehaves: {why}"));
        } else if let Some(code) = code
            && unit.shape.is_some()
            && asked.aim.as_ref().is_some_and(|aim| of_results(&aim.clause.0))
        {
            self.own.untestable = Some(format!("no_result: the call was answered by error {code}"));
        }
    }

    /// Calls that were answered after a slow one that was sent before them, though calls run beside each other; `place`
    /// gives the place of an answer among all, `beside` says whether two calls can be under way at once.
    fn held_up(&mut self, asked: &[Asked], place: &Place<'_>, beside: &Beside<'_>) {
        if !self.transcript.facts.claims("concurrent") {
            return;
        }
        let single = |at: &usize| !asked[*at].batch && asked[*at].units.len() == 1;
        for slow in (0..asked.len()).filter(single) {
            let Some(work) = asked[slow].units[0].work else { continue };
            let until_us = asked[slow].at_us + work.busy_ms.min(work.timeout_ms).saturating_mul(1_000);
            let Some(answered) = place(slow) else { continue };
            let held = (slow + 1..asked.len()).filter(single).find(|at| {
                let quick = &asked[*at];
                let in_time = quick.at_us.saturating_add(HELD_UP_US) <= until_us;
                in_time
                    && beside(slow, *at)
                    && quick.units[0].work.is_none()
                    && place(*at).is_some_and(|place| place > answered)
            });
            if let Some(at) = held {
                let expected = "a call that is not held up by a slow one before it";
                let got = "answered after the slow call";
                let finding = Finding::new(clause::CONCURRENT, "held_up", expected, got);
                self.own.findings.push(finding.at(asked[at].step).timed());
            }
        }
    }

    /// A request without a reply: the peer died of it, hangs in it, or passed it over.
    fn missing(&mut self, asked: &Asked, unit: &Unit, others_answered_later: bool) {
        if self.ending.cut {
            return;
        }
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
            Finding::new(unit.clause, "hung", expected, ending.in_vain("no reply")).of_nature(Nature::Hang)
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
        // A second refusal, or answers to what stands in a line behind the limit, have nothing else to belong to.
        let of_large = |asked: &&Asked| asked.units.iter().any(|unit| unit.clause == clause::TOO_LARGE);
        let repeats = repeats.or_else(|| asked.iter().find(of_large));
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
        let may_leave =
            self.transcript.plan.recorded && self.transcript.facts.requirements == "spec" && !is_missing;
        let mut add = |finding: Finding| self.own.findings.push(finding);
        if (ending.unanswered || ending.unread) && !is_missing {
            let expected = "a reply that comes while input stays open";
            let finding = Finding::new(
                clause::FLUSHED,
                "late_reply",
                expected,
                ending.in_vain("no reply") + ", then one",
            );
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
            // A client may have asked it to end, by a method of its own that the specification says nothing of.
            Some(Exit::Code(0)) if !ending.input_ended && may_leave => {}
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
            self.own.choice =
                Some(ChoiceSeen { pinned: false, key: key.to_owned(), value: value.to_owned() });
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
