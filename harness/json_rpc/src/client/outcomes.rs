//! Allowed ends of each call. They follow from the server's messages, or from the script if the client made no
//! request.

use super::allowed_outcome::AllowedOutcome;
use super::client_conversation::ClientConversation;
use super::observations::{LONG_BYTES, Request, RequiredPart, is_answered, is_over, sense};
use super::scenario::Call;
use super::server::Server;
use super::stream::Stream;
use peerproof_engine::contract::counterpart::{Counterpart as _, CounterpartAction};
use peerproof_engine::contract::face::{Allowed, Expected, Subject};
use peerproof_engine::contract::session_lines::SessionLine;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::lines::SpokenLine;
use peerproof_engine::data::payload::Vars;

/// Most attempts that are simulated from the script.
const ATTEMPTS_MAX: u64 = 100;

/// Upper bound for times, ms; longer ones are cut to it. No call lasts that long.
pub(crate) const TIME_MS_MAX: u64 = 1 << 40;

/// Outcomes of a call after a line that the client need not understand.
const ANY_END: [&str; 6] = ["result", "error", "invalid", "timeout", "too_large", "disconnected"];

/// A transient error and its time.
struct Refusal {
    at_us: u64,
    error: Json,
}

/// Result of one attempt.
enum End {
    /// The call has ended.
    Ended,
    /// A transient error; the call may be tried again.
    Refused(Refusal),
    /// The server went away.
    Gone,
    /// No answer in time.
    Nothing,
}

/// True for an error that is retried: TIMEOUT, -32001 and -32002.
pub(crate) fn is_transient(error: &Json) -> bool {
    match error.get("code").and_then(Json::as_i64) {
        Some(-32001 | -32002) => true,
        Some(-32000) => error.pointer("/data/type").and_then(Json::as_str) == Some("TIMEOUT"),
        _ => false,
    }
}

/// The delay that an error demands (`retry_after_ms`), ms.
pub(crate) fn retry_after_ms(error: &Json) -> Option<u64> {
    error.pointer("/data/retry_after_ms").and_then(Json::as_u64).map(|ms| ms.min(TIME_MS_MAX))
}

/// Allowed ends of the call with index `at`.
pub(crate) fn of(known: &ClientConversation, at: usize) -> Expected<AllowedOutcome> {
    let call = &known.scenario.calls[at];
    let made: Vec<&Request> = known.talk.requests.iter().filter(|request| request.call == at).collect();
    let first_us = made.first().map_or(0, |request| request.at_us);
    let over_us = first_us.saturating_add(call.timeout_ms.min(TIME_MS_MAX) * 1_000);
    let part = Expected::new("RPC-CLIENT-09", Subject::Entity(call.name.clone()), Vec::new());
    let mut fate =
        OutcomeBuilder { known, at, call, made, over_us, attempt: 1, stream: Stream::default(), part };
    fate.decide(first_us);
    fate.part
}

/// Builder of the allowed ends of one call.
struct OutcomeBuilder<'a> {
    known: &'a ClientConversation,
    at: usize,
    call: &'a Call,
    /// Requests of the call.
    made: Vec<&'a Request>,
    /// End of its time, microseconds.
    over_us: u64,
    /// Current attempt, counted from 1.
    attempt: u64,
    /// Stream that belongs to the current attempt.
    stream: Stream,
    part: Expected<AllowedOutcome>,
}

impl<'a> OutcomeBuilder<'a> {
    fn allow(&mut self, clause: &'static str, way: AllowedOutcome) {
        // A clause with a choice stays.
        if self.part.choice.is_none() {
            self.part.clause = clause;
        }
        self.part.allowed.push(Allowed::answer(way));
    }

    /// Collects the allowed ends. The first request was made at `first_us`.
    fn decide(&mut self, first_us: u64) {
        let sizes = self.known.scenario.request_bytes(self.call);
        if self.call.notify {
            return match self.is_gone() {
                true => self.gone(None),
                false => self.allow("RPC-CLIENT-04", AllowedOutcome::of("sent")),
            };
        }
        if *sizes.end() > LONG_BYTES {
            self.allow("RPC-CLIENT-18", AllowedOutcome::of("too_large"));
        }
        if *sizes.start() > super::super::model::LINE_BYTES_MAX {
            return;
        }
        let (mut now_us, mut last) = (first_us, None);
        loop {
            if self.is_gone() {
                return self.gone(last);
            }
            self.stream = Stream::default();
            match self.hear(now_us) {
                End::Ended => break,
                End::Gone => return self.gone(None),
                End::Nothing => {
                    let way = AllowedOutcome::timeout(self.call.timeout_ms);
                    let way = if last.is_none() { way.after(self.attempt) } else { way };
                    self.allow("RPC-CLIENT-11", way);
                    break;
                }
                End::Refused(refusal) => {
                    let told = self.known.scenario.retry_of(self.call);
                    if told.is_some_and(|(attempts_max, _)| self.attempt >= attempts_max) {
                        let clause = if last.is_some() { "RPC-CLIENT-12" } else { "RPC-CLIENT-13" };
                        self.answered(clause, AllowedOutcome::error(&refusal.error));
                        break;
                    }
                    self.attempt += 1;
                    let is_again = self.request().is_some();
                    let power = 1 << (self.attempt - 2).min(32);
                    let middle_ms = told.map(|(_, base_ms)| base_ms.saturating_mul(power).min(TIME_MS_MAX));
                    let most_us = middle_ms
                        .map(|ms| (ms + ms / 2 + retry_after_ms(&refusal.error).unwrap_or(0)) * 1_000);
                    let next_us = most_us.map(|most_us| refusal.at_us.saturating_add(most_us));
                    let is_in_time = |next_us: u64| next_us.saturating_add(self.late_us() / 3) < self.over_us;
                    let goes_on = self.attempt < ATTEMPTS_MAX && !self.known.script.goes_away();
                    let has_time = next_us.is_some_and(is_in_time) && goes_on;
                    if !is_again && !has_time && !self.is_gone() {
                        // A client need not wait if the next attempt would come too late.
                        let rested_ms = refusal.at_us.saturating_sub(first_us) / 1_000;
                        self.allow(
                            "RPC-CLIENT-11",
                            AllowedOutcome::timeout(rested_ms.min(self.call.timeout_ms)),
                        );
                        self.allow("RPC-CLIENT-12", AllowedOutcome::error(&refusal.error));
                        break;
                    }
                    now_us = next_us.unwrap_or(now_us);
                    last = Some(refusal);
                }
            }
        }
        if last.is_some() && matches!(self.part.clause, "RPC-CLIENT-09" | "RPC-CLIENT-10") {
            self.part.clause = "RPC-CLIENT-12";
        }
        for allowed in self.part.allowed.iter_mut().filter(|allowed| allowed.shows.is_none()) {
            allowed.shows = match self.part.choice {
                Some("server_requests") if self.known.talk.has_answered => Some("answer"),
                Some(_) => Some("ignore"),
                None => None,
            };
        }
    }

    /// Tolerated delay, microseconds: the harness knows when it read a request, not when the client wrote it.
    fn late_us(&self) -> u64 {
        (self.call.timeout_ms / 2).min(self.known.late_ms).max(50) * 1_000
    }

    /// Request of the current attempt, if it was made in time.
    fn request(&self) -> Option<&'a Request> {
        let index = usize::try_from(self.attempt - 1).unwrap_or(usize::MAX);
        let in_time = |request: &&&Request| request.at_us <= self.over_us + self.late_us();
        self.made.get(index).filter(in_time).copied()
    }

    /// True if the server went away before the current attempt.
    fn is_gone(&self) -> bool {
        let gone = self.known.talk.gone.as_ref();
        gone.is_some_and(|gone| self.request().is_none_or(|request| gone.place <= request.place))
    }

    /// Allows the ends after the server went away. `last` is the transient error of the attempt before, after which
    /// a client may stop.
    fn gone(&mut self, last: Option<Refusal>) {
        let is_seen = !self.known.script.dies() && !self.made.is_empty() && last.is_none();
        let way = AllowedOutcome {
            attempts: is_seen.then_some(self.made.len() as u64),
            ..AllowedOutcome::of("disconnected")
        };
        self.allow("RPC-CLIENT-20", way);
        if self.call.notify {
            self.allow("RPC-CLIENT-20", AllowedOutcome::of("sent"));
        }
        if let Some(refusal) = last {
            self.allow("RPC-CLIENT-20", AllowedOutcome::error(&refusal.error));
        }
    }

    /// Messages to the current attempt, as recorded or else as scripted.
    fn hear(&mut self, now_us: u64) -> End {
        let Some(request) = self.request() else { return self.scripted(now_us, 0) };
        let talk = &self.known.talk;
        if talk.gone.is_none() && talk.is_doubtful(request) {
            // Only the script tells which of several requests with the same id an answer belongs to.
            return self.scripted(request.at_us, 0);
        }
        let id = request.id.clone().unwrap_or_default();
        let until = talk.gone.as_ref().map_or(talk.lines.len(), |gone| gone.place);
        match self.lines(&id, &talk.lines[..until], Some(request.place)) {
            End::Nothing => {}
            end => return end,
        }
        let Some(gone) = talk.gone.as_ref().filter(|gone| gone.at_us <= self.over_us + self.late_us()) else {
            // A client that ends early has not read all messages, so the script supplies the rest.
            return self.scripted(request.at_us, talk.end_us + 1);
        };
        // Half an answer is no message; a whole one without its line feed may be one.
        if let Some(half) = talk.lines.get(gone.place).filter(|line| !line.ended && line.is_ours) {
            if let Some(message) = half.value() {
                self.message(&id, message, half, None);
            }
            self.allow("RPC-CLIENT-20", AllowedOutcome::of("invalid"));
        }
        End::Gone
    }

    /// Simulates the script from `since_us` on for the current attempt, as if it were made at `now_us`.
    fn scripted(&mut self, now_us: u64, since_us: u64) -> End {
        let mut server = Server::new(self.known.script.clone(), self.known.scenario.clone());
        let id = |call: &Call, attempt: u64| Json::from(format!("{}, attempt {attempt}", call.name).as_str());
        let mut take = |call: &Call, attempt: u64| {
            let method = Json::from(call.method.as_str());
            let request = Json::object([("method", method), ("id", id(call, attempt))]);
            server.take(request.to_text().as_bytes(), now_us);
        };
        let others = self.known.script.answered_with(&self.call.name);
        let others = self.known.scenario.calls.iter().filter(|call| others.contains(&call.name));
        others.filter(|other| other.name != self.call.name).for_each(|other| take(other, 1));
        (1..=self.attempt).for_each(|attempt| take(self.call, attempt));
        let (mut lines, mut open, mut is_gone) = (Vec::new(), Vec::new(), false);
        while let Some(due_us) = server.due_us() {
            match server.next(due_us) {
                Some(CounterpartAction::Write { payload, .. }) => {
                    open.extend(payload.expand(&Vars::new()).unwrap_or_default());
                }
                _ => is_gone = true,
            }
            let rest = open.split_off(memchr::memrchr(b'\n', &open).map_or(0, |end| end + 1));
            let whole = std::mem::replace(&mut open, rest);
            for line in whole.split_inclusive(|byte| *byte == b'\n').filter(|_| due_us >= since_us) {
                let bytes = line[..line.len() - 1].to_vec();
                lines.push(SessionLine::of(&SpokenLine {
                    step: Some(0),
                    place: 0,
                    at_us: due_us,
                    bytes,
                    ended: true,
                }));
            }
        }
        match self.lines(&id(self.call, self.attempt), &lines, None) {
            End::Nothing if is_gone => End::Gone,
            end => end,
        }
    }

    /// Looks for the end of the request with this id in `lines`; `sent` is the index of its line.
    fn lines(&mut self, id: &Json, lines: &[SessionLine], sent: Option<usize>) -> End {
        for (place, line) in lines.iter().enumerate().skip(sent.map_or(0, |sent| sent + 1)) {
            if !line.is_ours {
                continue;
            }
            if line.at_us > self.over_us + self.late_us() {
                break;
            }
            let place = sent.map(|_| place);
            let end = line.messages().iter().find_map(|message| self.message(id, message, line, place));
            let end = end.or_else(|| (sense(line) == RequiredPart::Wild).then(|| self.wild(id, line))?);
            if let Some(end) = end {
                if line.at_us + self.late_us() > self.over_us && !matches!(end, End::Refused(_)) {
                    self.part.allowed.push(Allowed::answer(AllowedOutcome::timeout(self.call.timeout_ms)));
                }
                return end;
            }
        }
        End::Nothing
    }

    /// Allows the ends after a line that the client need not understand.
    fn wild(&mut self, id: &Json, line: &SessionLine) -> Option<End> {
        // An answer with an invalid UTF-8 byte is ignored, or ends its call as invalid.
        let mended: Option<Json> = line.text.parse().ok();
        if mended.is_some_and(|message| message.get("id") == Some(id)) {
            self.allow("RPC-CLIENT-19", AllowedOutcome::of("invalid").after(self.attempt));
            return None;
        }
        Some(self.any_of(&ANY_END))
    }

    fn any_of(&mut self, outcomes: &[&'static str]) -> End {
        outcomes.iter().for_each(|outcome| self.allow("RPC-CLIENT-23", AllowedOutcome::of(outcome)));
        End::Ended
    }

    /// Handles one message of the server; `place` is the index of its line if it was really written.
    fn message(
        &mut self,
        id: &Json,
        message: &Json,
        line: &SessionLine,
        place: Option<usize>,
    ) -> Option<End> {
        let (own, error) = (message.get("id"), message.get("error"));
        if message.get("method").is_some() {
            self.stream.hears(message, id);
            if own.is_some_and(|id| !id.is_null()) {
                (self.part.choice, self.part.clause) = (Some("server_requests"), "RPC-CLIENT-27");
            }
            return None;
        }
        if own.is_none_or(Json::is_null) {
            let error = error.filter(|error| error.as_object().is_some())?;
            if place.is_some_and(|place| self.is_alone(place, line.at_us)) {
                (self.part.choice, self.part.clause) = (Some("null_id_error"), "RPC-CLIENT-26");
                self.part.allowed.push(Allowed::answer(AllowedOutcome::error(error)).shows("ends"));
            }
            return None;
        }
        if own != Some(id) {
            return None;
        }
        if sense(line) != RequiredPart::Plain {
            return Some(self.any_of(&ANY_END));
        }
        let result = message.get("result");
        let has_code =
            |error: &Json| error.get("code").and_then(Json::as_number).is_some_and(|it| it.is_integral());
        let is_response = match (result, error) {
            (Some(result), Some(error)) => result.is_null() || error.is_null(),
            (None, error) => error.is_some_and(has_code),
            (Some(_), None) => true,
        };
        match (result, error) {
            _ if !is_response => {
                self.allow("RPC-CLIENT-17", AllowedOutcome::of("invalid").after(self.attempt))
            }
            _ if !is_plain(message) => return Some(self.any_of(&ANY_END[..4])),
            (None, Some(error)) if is_transient(error) => {
                return Some(End::Refused(Refusal { at_us: line.at_us, error: error.clone() }));
            }
            (None, Some(error)) => self.answered("RPC-CLIENT-10", AllowedOutcome::error(error)),
            (result, _) => self.answered(
                "RPC-CLIENT-09",
                AllowedOutcome { value: result.cloned(), ..AllowedOutcome::of("result") },
            ),
        }
        Some(End::Ended)
    }

    /// Ends the call with an answer to the current attempt.
    fn answered(&mut self, clause: &'static str, way: AllowedOutcome) {
        let clause = if self.stream.has_begun() { "RPC-CLIENT-21" } else { clause };
        for way in self.stream.told(way.after(self.attempt)) {
            self.allow(clause, way);
        }
    }

    /// True if certainly no other call was pending at this line of the server.
    fn is_alone(&self, place: usize, at_us: u64) -> bool {
        let talk = &self.known.talk;
        !talk.requests.iter().any(|other| {
            let call = &self.known.scenario.calls[other.call];
            other.call != self.at
                && !call.notify
                && other.place < place
                && !is_over(other.at_us, at_us, call.timeout_ms)
                && !is_answered(&talk.lines, other, place)
        })
    }
}

/// True for a response that is valid beyond doubt, with one of `result` and `error`.
fn is_plain(message: &Json) -> bool {
    let error = message.get("error");
    let has_text = error.is_none_or(|error| error.get("message").is_some_and(|text| text.as_str().is_some()));
    let wait = error.and_then(|error| error.pointer("/data/retry_after_ms"));
    message.get("jsonrpc").and_then(Json::as_str) == Some("2.0")
        && message.get("result").is_some() != error.is_some()
        && has_text
        && wait.is_none_or(|wait| wait.as_u64().is_some())
}
