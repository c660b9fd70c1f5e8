//! Judges transcripts of a client: what it sent and when, how its calls ended, and how it ended itself.

use serde::Deserialize as _;

use super::expect::{CallExpect, Expect};
use super::scenario::{Call, Scenario};
use super::script::Script;
use super::seen::{self, From, Line, Noted};
use peerproof_engine::ending::{Ending, left_behind};
use peerproof_engine::finding::{ChoiceSeen, Finding, Judgement, Nature};
use peerproof_engine::json::Json;
use peerproof_engine::payload::shorten;
use peerproof_engine::plan::{Act, Plan};
use peerproof_engine::transcript::strict;
use peerproof_engine::transcript::{Exit, Transcript};

mod auth;
mod retries;
#[cfg(test)]
mod tests;
mod wire;

/// Clauses that every conversation watches.
mod clause {
    pub const PROTOCOL_ONLY: &str = "RPC-CLIENT-01";
    pub const WELL_FORMED: &str = "RPC-CLIENT-02";
    pub const THE_CALL: &str = "RPC-CLIENT-03";
    pub const NOTIFICATION: &str = "RPC-CLIENT-04";
    pub const ID_IN_FLIGHT: &str = "RPC-CLIENT-05";
    pub const BATCH: &str = "RPC-CLIENT-06";
    pub const AFTER: &str = "RPC-CLIENT-07";
    pub const RESULTS: &str = "RPC-CLIENT-08";
    pub const TIMEOUT: &str = "RPC-CLIENT-11";
    pub const NO_OTHER_RETRY: &str = "RPC-CLIENT-13";
    pub const DELAY: &str = "RPC-CLIENT-14";
    pub const JITTER: &str = "RPC-CLIENT-15";
    pub const RETRY_AFTER: &str = "RPC-CLIENT-16";
    pub const ENDS: &str = "RPC-CLIENT-22";
    pub const SIGNED: &str = "RPC-CLIENT-24";
    pub const NOTHING_LEFT: &str = "RPC-CLIENT-25";
}

/// A call may last so much longer than its time, ms: a loaded machine. More with `--timeout-scale`.
const LATE_MS: u64 = 1_500;

/// Refuses a plan whose expectations, scripts or scenario are not wholly read.
///
/// # Errors
/// One sentence.
pub fn admit(plan: &Plan) -> Result<(), String> {
    strict::expectations::<Expect>(plan)?;
    for (at, step) in plan.steps.iter().enumerate() {
        if let Act::Play { script, .. } = &step.act {
            strict::read::<Script>(script, &format!("plan/steps/{at}/play/script"))?;
            Scenario::of(plan)
                .ok_or("plan/fixtures: the scenario cannot be read, so nothing can be judged by it")?;
        }
    }
    Ok(())
}

/// Judges the client of every session.
pub fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = Judgement::default();
    for (step, planned) in transcript.plan.steps.iter().enumerate() {
        let (Ok(expect), Some(scenario)) =
            (Expect::deserialize(&planned.expect), Scenario::of(&transcript.plan))
        else {
            continue;
        };
        let script = match &planned.act {
            Act::Play { script, .. } => Script::deserialize(script).ok(),
            _ => None,
        };
        let mut client = Client {
            transcript,
            session: planned.session,
            ending: Ending::of(transcript, planned.session),
            scenario,
            expect,
            own: Judgement::default(),
            deaf: script.as_ref().is_some_and(Script::dies),
            deserted: script.as_ref().is_some_and(Script::goes_away),
        };
        client.judge();
        let found = client.own.findings.into_iter().map(|finding| finding.at(step));
        judgement.findings.extend(found);
        judgement.canaries_answered += client.own.canaries_answered;
        judgement.choice = client.own.choice.or(judgement.choice);
    }
    judgement
}

/// One client under judgement.
struct Client<'a> {
    transcript: &'a Transcript,
    session: usize,
    ending: Ending,
    scenario: Scenario,
    expect: Expect,
    own: Judgement,
    /// The server goes away and reads no more: not everything that is sent is seen.
    deaf: bool,
    /// The server goes away, so that the client may give up what it is writing.
    deserted: bool,
}

/// A request or notification that the client sent.
struct Asked {
    /// Which call.
    call: usize,
    at_us: u64,
    id: Option<Json>,
    /// Lines of ours before it.
    place: usize,
}

impl Client<'_> {
    fn add(&mut self, clause: &str, reason: &str, expected: impl Into<String>, got: impl Into<String>) {
        let got = shorten(&got.into(), 240).into_owned();
        self.own.findings.push(Finding::new(clause, reason, expected, got));
    }

    fn judge(&mut self) {
        let (lines, rest) = seen::conversation(self.transcript, self.session);
        let (noted, fault) = seen::results(self.transcript, self.session);
        let asked = self.wire(&lines, &rest);
        self.retries(&lines, &asked);
        self.lateness(&asked);
        self.results(&noted, fault, &asked);
        self.end(&noted);
        let mut left = left_behind(self.transcript, self.session, clause::NOTHING_LEFT, clause::NOTHING_LEFT);
        self.own.findings.append(&mut left);
        self.choice(&lines, &noted);
    }

    /// Whether the client, whatever it says of its calls, did nothing when the times of all that it had sent were over.
    ///
    /// They count from the first request of each call: how long the client took to start is no part of them.
    fn lateness(&mut self, asked: &[Asked]) {
        let mut over_us: Vec<Option<u64>> = vec![None; self.scenario.calls.len()];
        let late_us = self.transcript.stretched_ms(LATE_MS) * 1_000;
        for request in asked {
            let all_over_us = over_us.iter().flatten().max();
            if let Some(over_us) = all_over_us.filter(|over_us| request.at_us > **over_us + late_us) {
                let name = &self.scenario.calls[request.call].name;
                let late_ms = (request.at_us - over_us) / 1_000;
                let got =
                    format!("nothing until {name:?} went out {late_ms} ms after the last of these times");
                let expected = "no call is pending when its time is over";
                self.own
                    .findings
                    .push(Finding::new(clause::TIMEOUT, "pending_too_long", expected, got).timed());
                return;
            }
            let timeout_us = self.scenario.calls[request.call].timeout_ms * 1_000;
            over_us[request.call].get_or_insert(request.at_us + timeout_us);
        }
    }

    /// How the calls ended.
    fn results(&mut self, noted: &[Noted], fault: Option<String>, asked: &[Asked]) {
        if let Some(fault) = fault {
            let expected = "each line of the results is an object with ref, outcome, attempts and elapsed_ms";
            self.add(clause::RESULTS, "bad_result_line", expected, fault);
        }
        let unknown =
            noted.iter().find(|noted| self.scenario.calls.iter().all(|call| call.name != noted.name));
        if let Some(unknown) = unknown {
            self.add(clause::RESULTS, "unknown_ref", "results of the scenario's calls", unknown.name.clone());
        }
        let has_ended = self.ending.exit.is_some();
        let in_order = self.ending.exit == Some(Exit::Code(0));
        for call in self.scenario.calls.clone() {
            let Some(expect) = self.expect.calls.get(&call.name).cloned() else { continue };
            let mut of_call = noted.iter().filter(|noted| noted.name == call.name);
            let Some(first) = of_call.next() else {
                // What ended the client, or keeps it, is said once.
                if in_order {
                    self.add(
                        clause::RESULTS,
                        "no_result_line",
                        expect.phrase(),
                        format!("no line for {:?}", call.name),
                    );
                } else if !has_ended && self.own.findings.iter().all(|finding| finding.reason != "hung") {
                    let clause = self.clause_of(&expect);
                    let got = format!("{:?} is still pending", call.name);
                    self.own.findings.push(
                        Finding::new(clause.as_str(), "hung", expect.phrase(), got).of_nature(Nature::Hang),
                    );
                }
                continue;
            };
            if of_call.next().is_some() {
                let got = format!("several lines for {:?}", call.name);
                self.add(clause::RESULTS, "second_result_line", "one line for each call", got);
            }
            self.outcome(&call, &expect, first, asked);
        }
    }

    fn clause_of(&self, expect: &CallExpect) -> String {
        expect.clause.as_ref().unwrap_or(&self.expect.clause).0.clone()
    }

    fn outcome(&mut self, call: &Call, expect: &CallExpect, noted: &Noted, asked: &[Asked]) {
        let misfits: Vec<&str> = expect.allowed.iter().filter_map(|allowed| allowed.misfit(noted)).collect();
        if misfits.len() == expect.allowed.len() {
            // The misfit of what comes nearest says most.
            let reason = misfits.iter().find(|reason| **reason != "wrong_outcome").or(misfits.first());
            let clause = self.clause_of(expect);
            let mut got =
                format!("{} after {} requests and {} ms", noted.outcome, noted.attempts, noted.elapsed_ms);
            if let Some(value) = &noted.value {
                got.push_str(&format!(": {}", value.to_text()));
            }
            let expected = format!("{:?}: {}", call.name, expect.phrase());
            self.add(&clause, reason.unwrap_or(&"wrong_outcome"), expected, got);
            return;
        }
        if expect.canary {
            self.own.canaries_answered += 1;
        }
        let sent =
            asked.iter().filter(|asked| self.scenario.calls[asked.call].name == call.name).count() as u64;
        if sent != noted.attempts && !self.deaf {
            let got = format!("{} attempts of {:?}, which sent {sent} requests", noted.attempts, call.name);
            let expected = "`attempts` is the number of requests that were written whole";
            self.add(clause::RESULTS, "other_attempts", expected, got);
        }
        // A call that comes after others may count from the beginning of all.
        if noted.elapsed_ms > call.timeout_ms + self.transcript.stretched_ms(LATE_MS) && call.after.is_empty()
        {
            let got = format!("{:?} lasted {} ms", call.name, noted.elapsed_ms);
            let expected = format!("no call is pending beyond its {} ms", call.timeout_ms);
            self.own.findings.push(Finding::new(clause::TIMEOUT, "pending_too_long", expected, got).timed());
        }
    }

    /// How the client ended.
    fn end(&mut self, noted: &[Noted]) {
        let own = self.expect.clause.0.clone();
        if let Some((reason, got)) = self.ending.flood {
            self.add(&own, reason, "requests of the scenario", got);
            return;
        }
        let all_noted =
            self.scenario.calls.iter().all(|call| noted.iter().any(|noted| noted.name == call.name));
        match self.ending.exit {
            Some(Exit::Code(0)) => {}
            Some(exit @ Exit::Code(_)) => {
                let clause = if all_noted { clause::ENDS } else { own.as_str() };
                self.add(
                    clause,
                    "exit_status",
                    "exit status 0 when every call has finished",
                    exit.to_string(),
                );
            }
            Some(exit @ Exit::Signal(_)) => {
                let finding = Finding::new(own.as_str(), "crashed", "the client lives on", exit.to_string());
                self.own.findings.push(finding.of_nature(Nature::Crash));
            }
            None if all_noted => {
                let expected = "the client ends when every call has finished";
                let finding = Finding::new(clause::ENDS, "does_not_end", expected, "still running, killed");
                self.own.findings.push(finding.of_nature(Nature::Hang));
            }
            None => {}
        }
    }

    /// What the conversation shows of something open.
    fn choice(&mut self, lines: &[Line], noted: &[Noted]) {
        let Some(key) = self.expect.choice.clone() else { return };
        let shown = self.expect.calls.iter().find_map(|(name, expect)| {
            let noted = noted.iter().find(|noted| noted.name == *name)?;
            expect.allowed.iter().find(|allowed| allowed.misfit(noted).is_none())?.shows.clone()
        });
        let answered = lines
            .iter()
            .filter(|line| line.from == From::Client)
            .any(|line| line.value.as_ref().is_ok_and(wire::is_response));
        let value = match shown {
            Some(value) if value == "ignore" && answered => "answer".to_owned(),
            Some(value) => value,
            None => return,
        };
        self.own.choice = Some(ChoiceSeen { pinned: false, key, value });
    }
}
