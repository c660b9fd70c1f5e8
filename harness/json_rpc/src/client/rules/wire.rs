//! Rules about the client's messages: well-formed, as in the scenario, in its order.

use super::Session;
use crate::client::observations::{CallResult, Request, is_answered, is_over, is_response};
use crate::client::scenario::Call;
use peerproof_engine::contract::session_lines::SessionLine;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;

/// Tolerance for the difference between the clocks of two processes, ms.
const EARLY_MS: u64 = 50;

/// True if `came` are the params of the call. Empty params equal absent ones.
fn are_params(call: &Call, came: Option<&Json>) -> bool {
    match (&call.params, came) {
        (None, None) => true,
        (None, Some(one)) | (Some(one), None) => match one {
            Json::Array(items) => items.is_empty(),
            Json::Object(members) => members.is_empty(),
            _ => false,
        },
        (Some(params), Some(came)) => params == came,
    }
}

impl Session<'_> {
    /// Judges every line of the client.
    pub(super) fn wire(&mut self) {
        let known = self.known;
        let talk = &known.talk;
        for (place, line, messages) in talk.of_client() {
            let is_array = line.is_array();
            if is_array && messages.is_empty() {
                self.add("RPC-CLIENT-02", "empty_batch", "an array of requests", "[]");
            }
            let is_wanted = |value: &Json| !is_array && is_response(value) && talk.was_asked(place, value);
            for message in messages.iter().filter(|message| !is_wanted(message)) {
                self.message(message, line);
            }
            let before = talk.requests.partition_point(|request| request.place < place);
            let behind = talk.requests.partition_point(|request| request.place <= place);
            let (earlier, own) = (&talk.requests[..before], &talk.requests[before..behind]);
            self.array(earlier, own, is_array, line);
            for at in before..behind {
                self.order(&talk.requests[..at], &talk.requests[at]);
                self.id_in_flight(&talk.requests[..at], &talk.requests[at]);
            }
        }
    }

    fn message(&mut self, message: &Json, line: &SessionLine) {
        if message.as_object().is_none() {
            return self.add("RPC-CLIENT-02", "not_an_object", "a request is an object", line.text.clone());
        }
        if message.get("jsonrpc").and_then(Json::as_str) != Some("2.0") {
            self.add("RPC-CLIENT-02", "wrong_version", "`jsonrpc` is \"2.0\"", line.text.clone());
        }
        let Some(method) = message.get("method").and_then(Json::as_str) else {
            return self.add("RPC-CLIENT-02", "no_method", "`method` is a string", line.text.clone());
        };
        let known = self.known;
        let Some(call) = known.scenario.calls.iter().find(|call| call.method == method) else {
            let expected = "a method and params of a call of the scenario";
            return self.add("RPC-CLIENT-03", "unknown_method", expected, line.text.clone());
        };
        if !are_params(call, message.get("params")) {
            let expected = call.params.as_ref().map_or("no `params`".to_owned(), Json::to_text);
            self.add("RPC-CLIENT-03", "other_params", expected, line.text.clone());
        }
        match message.get("id") {
            Some(_) if call.notify => {
                self.add(
                    "RPC-CLIENT-04",
                    "notification_with_id",
                    "no `id` in a notification",
                    line.text.clone(),
                );
            }
            None if !call.notify => {
                self.add("RPC-CLIENT-02", "no_id", "an `id` in a request", line.text.clone());
            }
            None | Some(Json::String(_) | Json::Number(_) | Json::Null) => {}
            Some(_) => {
                let expected = "an `id` that is a string, a number or null";
                self.add("RPC-CLIENT-02", "id_type", expected, line.text.clone());
            }
        }
    }

    /// Checks that the calls of a batch, and no others, come in one array. The form of retries is open.
    fn array(&mut self, earlier: &[Request], own: &[Request], is_array: bool, line: &SessionLine) {
        let calls = &self.known.scenario.calls;
        let is_first =
            |at: &usize| !earlier.iter().chain(&own[..*at]).any(|other| other.call == own[*at].call);
        let batches: Vec<&Option<String>> =
            (0..own.len()).filter(is_first).map(|at| &calls[own[at].call].batch).collect();
        let wrong = match batches.first() {
            None => false,
            Some(None) => is_array,
            Some(batch) => {
                let whole = calls.iter().filter(|call| call.batch == **batch).count();
                !is_array || batches.len() != whole || batches.iter().any(|other| other != batch)
            }
        };
        if wrong {
            let expected = "the calls of a batch in one array, and other calls outside of arrays";
            self.add("RPC-CLIENT-06", "other_batch", expected, line.text.clone());
        }
    }

    /// Checks that a call is sent only after the calls that it waits for have finished.
    fn order(&mut self, earlier: &[Request], request: &Request) {
        let (calls, talk) = (&self.known.scenario.calls, &self.known.talk);
        for name in &calls[request.call].after {
            let Some(before) = calls.iter().position(|call| call.name == *name) else { continue };
            // A call that is too large to send finishes without a request.
            let is_unseen = self.parts[before].allowed_answers().any(|(_, way)| way.outcome == "too_large")
                || self.is_told_over(before, earlier, request);
            let of_it = || earlier.iter().filter(|earlier| earlier.call == before);
            let is_finished = is_unseen
                || of_it().next_back().is_some_and(|last| {
                    calls[before].notify || is_answered(&talk.lines, last, request.place)
                })
                || of_it()
                    .next()
                    .is_some_and(|first| is_over(first.at_us, request.at_us, calls[before].timeout_ms))
                || talk.gone.as_ref().is_some_and(|gone| gone.place <= request.place);
            if !is_finished {
                let got = format!(
                    "the call {:?} was sent before the call {name:?} finished",
                    calls[request.call].name
                );
                let expected = "a call is sent after all calls in its `after` have finished";
                let finding = Finding::new("RPC-CLIENT-07", "too_early", expected, got);
                // The timeout of a call that was sent may have passed: a busy harness reads its request late.
                let was_sent = of_it().next().is_some();
                self.found.push(if was_sent { finding.timed() } else { finding });
            }
        }
    }

    /// True if a call was over before `request`, according to the client's own results. Only the client knows when
    /// the time of an unseen call, or of a call without `after`, began.
    fn is_told_over(&self, call: usize, earlier: &[Request], request: &Request) -> bool {
        let (own, is_seen) =
            (&self.known.scenario.calls[call], earlier.iter().any(|other| other.call == call));
        let is_over = |noted: &CallResult| {
            let is_timeout = noted.name == own.name && noted.outcome == "timeout";
            is_timeout && noted.elapsed_ms <= request.at_us / 1_000 + EARLY_MS
        };
        (own.after.is_empty() || !is_seen) && self.noted.iter().any(is_over)
    }

    /// Checks that the id of a pending request is not used again.
    fn id_in_flight(&mut self, earlier: &[Request], request: &Request) {
        let (calls, talk) = (&self.known.scenario.calls, &self.known.talk);
        let still_waits = |earlier: &&Request| {
            earlier.id == request.id
                && !is_over(earlier.at_us, request.at_us, calls[earlier.call].timeout_ms)
                && !is_answered(&talk.lines, earlier, request.place)
        };
        let Some(id) = &request.id else { return };
        if let Some(earlier) = earlier.iter().find(still_waits) {
            let names = (&calls[earlier.call].name, &calls[request.call].name);
            let got =
                format!("the id {} of the call {:?} again for the call {:?}", id.to_text(), names.0, names.1);
            let expected = "an id that no pending request has";
            // The timeout of the earlier call may have passed, as in `order`.
            self.found.push(Finding::new("RPC-CLIENT-05", "id_in_flight", expected, got).timed());
        }
    }
}
