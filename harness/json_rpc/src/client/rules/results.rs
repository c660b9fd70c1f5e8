//! Rules about the results file and the duration of calls.

use super::Session;
use crate::client::client_conversation::{Client, LATE_MS};
use crate::client::observations::{Request, is_over};
use peerproof_engine::contract::face::fitting;
use peerproof_engine::data::finding::{Finding, Repair};

impl Session<'_> {
    /// Finds requests that a client sent after the times of all earlier calls were over, whatever its results say.
    ///
    /// The time of a call counts from its first request, so that a slow start of the client does not count.
    pub(super) fn lateness(&mut self) {
        let calls = &self.known.scenario.calls;
        let mut over_us: Vec<Option<u64>> = vec![None; calls.len()];
        let late_us = self.transcript.stretched_ms(LATE_MS) * 1_000;
        for request in &self.known.talk.requests {
            let all_over_us = over_us.iter().flatten().max();
            if let Some(over_us) = all_over_us.filter(|over_us| request.at_us > **over_us + late_us) {
                let name = &calls[request.call].name;
                let late_ms = (request.at_us - over_us) / 1_000;
                let got = format!("no result until {name:?} was sent, {late_ms} ms after the last timeout");
                return self.too_long("no call is pending after its timeout", got);
            }
            let timeout_us = calls[request.call].timeout_ms * 1_000;
            over_us[request.call].get_or_insert(request.at_us + timeout_us);
        }
    }

    fn too_long(&mut self, expected: impl Into<String>, got: String) {
        let finding = Finding::new("RPC-CLIENT-11", "pending_too_long", expected, got);
        self.found.push(finding.repaired_by(Repair::Sooner));
    }

    /// Compares the results with the scenario and the requests. `fault` describes a malformed result.
    pub(super) fn results(&mut self, fault: Option<String>) {
        let noted = std::mem::take(&mut self.noted);
        if let Some(fault) = fault {
            let expected =
                "each line of the results file is an object with ref, outcome, attempts and elapsed_ms";
            self.add("RPC-CLIENT-08", "bad_result_line", expected, fault);
        }
        let known = self.known;
        let calls = &known.scenario.calls;
        if let Some(unknown) = noted.iter().find(|noted| calls.iter().all(|call| call.name != noted.name)) {
            self.add(
                "RPC-CLIENT-08",
                "unknown_ref",
                "results for the calls of the scenario only",
                unknown.name.clone(),
            );
        }
        for (at, (call, part)) in calls.iter().zip(self.parts.clone()).enumerate() {
            let mut of_call = noted.iter().filter(|noted| noted.name == call.name);
            let Some(first) = of_call.next() else { continue };
            if of_call.next().is_some() {
                let got = format!("several lines for the call {:?}", call.name);
                self.add(
                    "RPC-CLIENT-08",
                    "second_result_line",
                    "one line in the results file for each call",
                    got,
                );
            }
            if fitting(&Client, part, &[first]).is_none() {
                continue;
            }
            let own = || known.talk.requests.iter().filter(|request| request.call == at);
            let sent = own().count() as u64;
            // The time of a call without `after` may have been over before its batch was written.
            let may_be_over = |request: &Request| is_over(0, request.at_us, call.timeout_ms);
            let is_unwritten = first.attempts == 0 && first.outcome == "timeout" && own().all(may_be_over);
            // A server that stopped reading does not see all requests.
            if sent != first.attempts && !is_unwritten && !known.script.dies() {
                let got = format!(
                    "`attempts` is {} for the call {:?}, for which the client sent {sent} requests",
                    first.attempts, call.name
                );
                let expected = "`attempts` equals the number of completely sent requests";
                self.add("RPC-CLIENT-08", "other_attempts", expected, got);
            }
            // The time of a call with `after` may count from the start of the scenario.
            let late_ms = self.transcript.stretched_ms(LATE_MS);
            if first.elapsed_ms > call.timeout_ms + late_ms && call.after.is_empty() {
                let got = format!("the call {:?} took {} ms", call.name, first.elapsed_ms);
                self.too_long(
                    format!("no call takes longer than its timeout of {} ms", call.timeout_ms),
                    got,
                );
            }
        }
    }
}
