//! Judgement of a dispatcher's transcripts: its result, its request to the toolhost, its exit and its leftovers.

use std::collections::BTreeSet;

use serde::Deserialize as _;

use super::expect::{
    CallExpect, ERROR_TYPES, ExitedProcesses, MemoryBound, PrintedResult, Reveals, is_error,
};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::ending::Ending;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, Nature};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Vars, shorten};
use peerproof_engine::data::plan::{Act, ActorStep, Fixture};
use peerproof_engine::data::transcript::{Awaited, EventKind, Exit, Transcript};

/// Clauses of every call.
mod clause {
    pub(crate) const ONE_REQUEST: &str = "TH-DISP-01";
    pub(crate) const STRICT_REQUEST: &str = "TH-DISP-03";
    pub(crate) const REQUEST_IS_THE_CALL: &str = "TH-DISP-04";
    pub(crate) const ONE_VALUE: &str = "TH-DISP-07";
    pub(crate) const ERROR_MEMBERS: &str = "TH-DISP-10";
    pub(crate) const ERROR_TYPE: &str = "TH-DISP-11";
    pub(crate) const NOTHING_LEFT: &str = "TH-DISP-31";
    pub(crate) const NEVER_A_SIGNAL: &str = "TH-DISP-32";
}

/// One call to a dispatcher process.
struct Call<'a> {
    transcript: &'a Transcript,
    session: usize,
    step: usize,
    canary: bool,
    expect: CallExpect,
    /// The call as written to the dispatcher.
    asked: Json,
    /// The scripted toolhost, if the path leads to one.
    toolhost: Option<(&'a str, &'a [ActorStep])>,
}

/// Recorded events of an actor.
#[derive(Default)]
struct Played<'a> {
    pids: Vec<i32>,
    received: Vec<&'a [u8]>,
}

/// Judges the call of `session`.
pub(crate) fn judge_session(transcript: &Transcript, session: usize, judgement: &mut Judgement) {
    let Some(call) = Call::find(transcript, session) else { return };
    let before = judgement.findings.len();
    let seen_shape = call.toolhost(judgement);
    call.result(seen_shape, judgement);
    call.process(judgement);
    for gone in &call.expect.gone {
        call.gone(gone, judgement);
    }
    if let Some(bound) = &call.expect.memory {
        call.memory(bound, judgement);
    }
    let mut seen = BTreeSet::new();
    let mut place = 0;
    judgement.findings.retain_mut(|finding| {
        place += 1;
        finding.step = finding.step.or(Some(call.step));
        // A fault that repeats in a later call of the conversation is not a second finding.
        seen.insert((finding.clause.0.clone(), finding.reason.clone())) || place <= before
    });
}

impl<'a> Call<'a> {
    fn find(transcript: &'a Transcript, session: usize) -> Option<Self> {
        let (index, step, expect) = transcript.of(session).find_map(|event| {
            let EventKind::Sent { step: index, .. } = event.kind else { return None };
            let step = transcript.plan.steps.get(index)?;
            let expect = CallExpect::deserialize(&step.expect).ok()?;
            Some((index, step, expect))
        })?;
        let asked = match &step.act {
            Act::Send { payload, .. } => decode(&payload.expand(&Vars::new()).ok()?).ok()?,
            _ => return None,
        };
        let path = transcript.plan.sessions[session].placeholders.get("peer")?;
        let toolhost = transcript.plan.fixtures.iter().find_map(|fixture| match fixture {
            Fixture::Actor { name, script, .. } if *path == format!("{{{{{name}.path}}}}") => {
                Some((name.as_str(), script.as_slice()))
            }
            _ => None,
        });
        Some(Self { transcript, session, step: index, canary: step.canary, expect, asked, toolhost })
    }

    /// Clause that a missing answer breaks.
    fn clause(&self) -> &str {
        self.expect.results.first().map_or(clause::ONE_VALUE, |expect| expect.clause.0.as_str())
    }

    fn phrase(&self) -> String {
        self.expect.results.first().map_or_else(|| "one JSON value".to_owned(), |expect| expect.phrase())
    }

    fn hung(&self) -> bool {
        self.transcript.of(self.session).any(|event| matches!(event.kind, EventKind::DeadlinePassed { .. }))
    }

    /// Compares the printed result with the expectation.
    fn result(&self, seen_shape: Option<&'static str>, judgement: &mut Judgement) {
        let out = self.transcript.stdout(self.session);
        let overflow = self
            .transcript
            .of(self.session)
            .any(|event| matches!(event.kind, EventKind::StdoutOverflow { .. }));
        if overflow {
            let got = "endless output".to_owned();
            judgement.findings.push(Finding::new(clause::ONE_VALUE, "output_flood", "one JSON value", got));
            return;
        }
        let is_blank = out.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        let value = match decode(&out) {
            Ok(value) => value,
            Err(_) if is_blank => return self.silence(judgement),
            Err(error) => {
                let got = format!("{error}: {}", shorten(&String::from_utf8_lossy(&out), 160));
                let expected = "exactly one strict JSON value on standard output";
                judgement.findings.push(Finding::new(clause::ONE_VALUE, "result_not_json", expected, got));
                // If another check covers that clause, this check must not pass either.
                judgement.untestable =
                    Some(Untestable::new("result_not_json", "standard output is not valid JSON"));
                return;
            }
        };
        let printed = PrintedResult::new(&value);
        let mut fits = true;
        for expect in &self.expect.results {
            let Some(reason) = expect.misfit(&printed) else { continue };
            fits = false;
            let got = shorten(&String::from_utf8_lossy(&out), 240).into_owned();
            judgement.findings.push(Finding::new(expect.clause.0.as_str(), reason, expect.phrase(), got));
            break;
        }
        let is_output = self.expect.results.iter().any(|expect| expect.is_output(&printed));
        if printed.error.is_some() && !is_output {
            self.error_form(&value, judgement);
        }
        if fits && self.canary && is_output {
            judgement.canaries_answered += 1;
        }
        if fits {
            self.reveal(&printed, seen_shape, judgement);
        }
    }

    /// Judges a missing result: the dispatcher hangs, died, or printed nothing.
    fn silence(&self, judgement: &mut Judgement) {
        let (clause, expected) = (self.clause(), self.phrase());
        let finding = match self.transcript.exit(self.session) {
            exit if exit.is_none() || self.hung() => {
                let got = Ending::of(self.transcript, self.session).in_vain("no output");
                Finding::new(clause, "hung", expected, got).of_nature(Nature::Hang)
            }
            None => return,
            Some(exit @ Exit::Signal(_)) => {
                Finding::new(clause, "crashed", expected, format!("empty standard output, {exit}"))
                    .of_nature(Nature::Crash)
            }
            Some(exit) => {
                Finding::new(clause, "no_result", expected, format!("empty standard output, {exit}"))
            }
        };
        judgement.findings.push(finding);
    }

    /// Checks the four members of an error object.
    fn error_form(&self, value: &Json, judgement: &mut Judgement) {
        let kind = value.get("type").and_then(Json::as_str);
        let wrong = if value.get("error").and_then(Json::as_bool) != Some(true) {
            Some((clause::ERROR_MEMBERS, "error_not_true", "`error` is true"))
        } else if value.get("aid") != self.asked.get("aid") {
            Some((clause::ERROR_MEMBERS, "error_aid", "`aid` equals the aid of the call"))
        } else if !self.is_detail(value.get("detail")) {
            Some((clause::ERROR_MEMBERS, "error_detail", "`detail` is a non-empty string"))
        } else if !kind.is_some_and(|kind| ERROR_TYPES.contains(&kind)) {
            Some((
                clause::ERROR_TYPE,
                "error_type",
                "`type` is timeout, crash, parse_error, not_found or exception",
            ))
        } else {
            None
        };
        if let Some((clause, reason, expected)) = wrong {
            let got = shorten(&value.to_text(), 240).into_owned();
            judgement.findings.push(Finding::new(clause, reason, expected, got));
        }
    }

    /// True if `detail` is a string, and not empty unless that is allowed.
    fn is_detail(&self, detail: Option<&Json>) -> bool {
        let text = detail.and_then(Json::as_str);
        text.is_some_and(|text| !text.is_empty() || self.expect.reasonless)
    }

    fn reveal(
        &self,
        printed: &PrintedResult<'_>,
        seen_shape: Option<&'static str>,
        judgement: &mut Judgement,
    ) {
        let revealing =
            self.expect.results.iter().find_map(|expect| Some((expect, expect.reveals.as_ref()?)));
        let Some((expect, what)) = revealing else { return };
        let value = match what {
            Reveals::RequestShape => seen_shape.map(str::to_owned),
            Reveals::PrintedAs => match (&printed.error, printed.value) {
                (None, Json::String(_)) => Some("string".to_owned()),
                (None, _) => Some("value".to_owned()),
                (Some(_), _) => None,
            },
            Reveals::Choice { values, .. } => expect.fit(printed).and_then(|at| values.get(at).cloned()),
            Reveals::ExitStatus => self.transcript.exit(self.session).map(|exit| match exit {
                Exit::Code(0) => "zero".to_owned(),
                Exit::Code(_) | Exit::Signal(_) => "nonzero".to_owned(),
            }),
        };
        if let Some(value) = value {
            judgement.choice = Some(ChoiceSeen { pinned: false, key: what.key().to_owned(), value });
        }
    }

    /// Checks that the toolhost was started once with one request for this call. Returns the shape of the request.
    fn toolhost(&self, judgement: &mut Judgement) -> Option<&'static str> {
        let (name, script) = self.toolhost?;
        let played = self.played(name);
        let mut add = |finding: Finding| judgement.findings.push(finding);
        if played.pids.len() > 1 {
            let got = format!("{} starts of the toolhost", played.pids.len());
            add(Finding::new(clause::ONE_REQUEST, "started_again", "the toolhost is started once", got));
        }
        let (first, rest) = match played.received.split_first() {
            Some((first, rest)) => (*first, rest),
            None => {
                // An error object is judged by its type: a dispatcher may have a reason to start no toolhost.
                let succeeded = self.succeeded();
                if succeeded && played.pids.is_empty() {
                    let got = "the dispatcher printed a result without starting the toolhost";
                    add(Finding::new(clause::ONE_REQUEST, "not_started", "a start of the toolhost", got));
                } else if succeeded && matches!(script.first(), Some(ActorStep::ReadRequest)) {
                    let got = "the dispatcher printed a result without sending a request";
                    add(Finding::new(clause::ONE_REQUEST, "no_request", "a request to the toolhost", got));
                }
                return None;
            }
        };
        // Each start has its own request, so a second start is one finding.
        for extra in rest.iter().filter(|_| played.pids.len() < 2) {
            let got = shorten(&String::from_utf8_lossy(extra), 160).into_owned();
            add(match decode(extra) {
                Ok(Json::Object(_)) => Finding::new(
                    clause::ONE_REQUEST,
                    "second_request",
                    "one request to the toolhost for one call",
                    got,
                ),
                _ => Finding::new(
                    clause::STRICT_REQUEST,
                    "bytes_after_request",
                    "only white space after the request",
                    got,
                ),
            });
        }
        let clause_or = |general| self.expect.request.as_ref().map_or(general, |clause| clause.0.as_str());
        match decode(first) {
            Ok(request @ Json::Object(_)) => match request_fault(&request, &self.asked) {
                Ok(shape) => return Some(shape),
                Err((reason, expected)) => {
                    let got = shorten(&String::from_utf8_lossy(first), 240).into_owned();
                    add(Finding::new(clause_or(clause::REQUEST_IS_THE_CALL), reason, expected, got));
                }
            },
            other => {
                let text = shorten(&String::from_utf8_lossy(first), 160).into_owned();
                let got = match other {
                    Err(error) => format!("{error}: {text}"),
                    Ok(_) => text,
                };
                let expected = "one strict JSON object";
                add(Finding::new(clause_or(clause::STRICT_REQUEST), "request_not_json", expected, got));
            }
        }
        None
    }

    fn succeeded(&self) -> bool {
        decode(&self.transcript.stdout(self.session)).is_ok_and(|value| !is_error(&value))
    }

    fn played(&self, name: &str) -> Played<'a> {
        let mut played = Played::default();
        for event in &self.transcript.events {
            match &event.kind {
                EventKind::ActorStarted { actor, pid, .. } if actor == name => played.pids.push(*pid),
                EventKind::ActorReceived { actor, bytes, .. } if actor == name => {
                    played.received.push(&bytes.0)
                }
                _ => {}
            }
        }
        played
    }

    /// Checks the exit of the dispatcher and its leftovers.
    fn process(&self, judgement: &mut Judgement) {
        let answered = decode(&self.transcript.stdout(self.session)).is_ok();
        let mut add = |finding: Finding| judgement.findings.push(finding);
        // If the result itself was late, the time since then is unknown.
        if answered && self.passed(Awaited::Exit) && !self.passed(Awaited::Frames) {
            let expected = "the dispatcher ends within 2 s of printing its result";
            let finding = Finding::new(clause::NOTHING_LEFT, "does_not_end", expected, "still running");
            add(finding.of_nature(Nature::Hang));
        }
        if answered && let Some(exit @ Exit::Signal(_)) = self.transcript.exit(self.session) {
            let finding = Finding::new(
                clause::NEVER_A_SIGNAL,
                "died_by_signal",
                "an exit status, not a signal",
                exit.to_string(),
            );
            add(finding.of_nature(Nature::Crash));
        }
        let started = self.toolhost.map(|(name, _)| self.played(name).pids).unwrap_or_default();
        // A probe gives more details about the toolhost, under its own clause.
        let is_probed = self.expect.gone.iter().any(|gone| gone.roles.iter().any(|role| role == "self"));
        // Processes that the script starts are judged at probes, at their own level.
        let has_holders = self.toolhost.is_some_and(|(_, script)| {
            script.iter().any(|step| matches!(step, ActorStep::ForkHolder { .. }))
        });
        for event in self.transcript.of(self.session) {
            match &event.kind {
                EventKind::LeakedProcess { pid, .. } if started.contains(pid) && is_probed => {}
                EventKind::LeakedProcess { pid, command } if started.contains(pid) || !has_holders => {
                    let expected = "no process of the dispatcher is left after the call";
                    let got = format!("{command} was still running");
                    let finding = Finding::new(clause::NOTHING_LEFT, "process_left", expected, got);
                    add(finding.of_nature(Nature::Leak));
                }
                EventKind::LeftFile { path } => {
                    let expected = "no temporary file of the dispatcher is left after the call";
                    let finding = Finding::new(clause::NOTHING_LEFT, "file_left", expected, path.clone());
                    add(finding.of_nature(Nature::Leak));
                }
                _ => {}
            }
        }
    }

    /// True if the harness waited for this until the deadline.
    fn passed(&self, wanted: Awaited) -> bool {
        let is = |kind: &EventKind| matches!(kind, EventKind::DeadlinePassed { awaited, .. } if *awaited == wanted);
        self.transcript.of(self.session).any(|event| is(&event.kind))
    }

    fn gone(&self, gone: &ExitedProcesses, judgement: &mut Judgement) {
        let Some((name, _)) = self.toolhost else { return };
        if self.passed(Awaited::Frames) {
            // The probe came before the result, so the toolhost may still be running.
            return;
        }
        for role in &gone.roles {
            let alive = self.transcript.events.iter().any(|event| match &event.kind {
                EventKind::ActorAlive { actor, label, role: which } => {
                    actor == name && *label == gone.label && which == role
                }
                _ => false,
            });
            if alive {
                let who = match role.as_str() {
                    "self" => "the toolhost",
                    "child" => "a child of the toolhost",
                    _ => "a descendant of the toolhost outside its process group",
                };
                let expected = "no process of the toolhost is running";
                let got = format!("{who} is still running");
                let finding = Finding::new(gone.clause.0.as_str(), format!("{role}_lives"), expected, got);
                judgement.findings.push(finding.of_nature(Nature::Leak));
            }
        }
    }

    fn memory(&self, bound: &MemoryBound, judgement: &mut Judgement) {
        let most = |wanted: &str| {
            let samples = self.transcript.events.iter().filter_map(|event| match &event.kind {
                EventKind::Memory { label, hwm_bytes } if label == wanted => Some(*hwm_bytes),
                _ => None,
            });
            samples.max()
        };
        let Some(got) = most(&bound.label) else { return };
        let Some(base) = most(&bound.baseline) else {
            judgement.untestable = Some(Untestable::new(
                "no_baseline",
                "the dispatcher's memory with a small reply was not measured",
            ));
            return;
        };
        if got > base.saturating_add(bound.growth_bytes_max) {
            let mib = |bytes: u64| bytes / (1 << 20);
            let expected = format!(
                "at most {} MiB more than the {} MiB with a small reply",
                mib(bound.growth_bytes_max),
                mib(base)
            );
            let got = format!("{} MiB", mib(got));
            judgement.findings.push(Finding::new(bound.clause.0.as_str(), "memory_grows", expected, got));
        }
    }
}

/// Checks that `request` carries the call `asked`. Returns its shape, or the reason code and expectation.
fn request_fault(request: &Json, asked: &Json) -> Result<&'static str, (&'static str, &'static str)> {
    let inputs = asked.get("inputs");
    if let Some(aid) = request.get("aid")
        && Some(aid) != asked.get("aid")
    {
        return Err(("request_aid", "`aid` equals the aid of the call"));
    }
    if let Some(given) = request.get("inputs")
        && !inputs.is_some_and(|inputs| is_same(inputs, given))
    {
        return Err(("request_inputs", "`inputs` equals the inputs of the call"));
    }
    match request.get("input_json") {
        Some(text) => {
            let value = text.as_str().and_then(|text| decode(text.as_bytes()).ok());
            match value {
                Some(value) if inputs.is_some_and(|inputs| is_same(inputs, &value)) => Ok("input_json"),
                _ => Err((
                    "request_inputs",
                    "the text of `input_json` equals the inputs of the call as a JSON value",
                )),
            }
        }
        None if request.get("inputs").is_none() => {
            Err(("request_inputs", "the inputs of the call in `inputs` or `input_json`"))
        }
        None if request.get("aid").is_none() => Err(("request_aid", "`aid` beside `inputs`")),
        None => Ok("inputs"),
    }
}

/// True if the values are equal, except that a large integer may have become the nearest double (readings §0).
fn is_same(asked: &Json, given: &Json) -> bool {
    given == asked || json::is_kept(asked, given)
}

fn decode(bytes: &[u8]) -> Result<Json, String> {
    json::decode(bytes, &DecodeLimits::default())
        .map(|decoded| decoded.value)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
