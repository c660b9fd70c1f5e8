//! Rules about streams: messages about a task and their order.
//!
//! A stream belongs to a request whose params ask for it. Messages of several streams and responses may interleave;
//! only the order within each stream is judged.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Equality, same};
use super::role::role;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines::RequestLine;

/// Method of document 004 that streams.
const EXECUTE_TASK: &str = "execute_task";

mod clause {
    pub(crate) const START: &str = "RPC-STREAM-01";
    pub(crate) const CHUNKS: &str = "RPC-STREAM-02";
    pub(crate) const END: &str = "RPC-STREAM-03";
    pub(crate) const RESPONSE: &str = "RPC-STREAM-04";
    pub(crate) const NOTHING_AFTER: &str = "RPC-STREAM-05";
    pub(crate) const UNASKED: &str = "RPC-STREAM-06";
    pub(crate) const SOME: &str = "RPC-STREAM-07";
    pub(crate) const NO_ID: &str = "RPC-STREAM-08";
}

/// A request of a method that streams.
#[derive(Debug)]
struct Task {
    step: usize,
    id: Json,
    /// True if its params ask for a stream.
    asked: bool,
    /// True if it equals the call that the role `stream` is known to stream.
    of_role: bool,
    started: bool,
    responded: bool,
}

/// State of one stream.
#[derive(Debug, Default)]
struct Stream {
    task: Option<usize>,
    last: u64,
    chunks: u64,
    /// True if a fault in the numbers was reported; faults that follow from it are not.
    misnumbered: bool,
    ended: bool,
    early_response: bool,
    /// True if a chunk after the end or the response was reported.
    went_on: bool,
    stray: bool,
}

/// Requests that may stream.
#[derive(Default)]
struct Tasks {
    all: Vec<Task>,
    /// True if a request that may stream has an unknown id, or cannot be read for sure.
    loose: bool,
}

/// Judges the streams of a session with these sent `lines` and received `messages`.
pub(crate) fn judge(facts: &Facts, lines: &[RequestLine], messages: &[&Json]) -> Vec<Finding> {
    if !facts.claims("streaming") {
        return Vec::new();
    }
    let mut judge = Judge { tasks: tasks(facts, lines), streams: BTreeMap::new(), found: Vec::new() };
    for message in messages {
        judge.message(message);
    }
    judge.end();
    judge.found
}

fn tasks(facts: &Facts, lines: &[RequestLine]) -> Tasks {
    let role = role(facts, "stream");
    let mut tasks = Tasks::default();
    let holds = |bytes: &[u8], word: &str| memchr::memmem::find(bytes, word.as_bytes()).is_some();
    let streams =
        |method: &str| method == EXECUTE_TASK || role.as_ref().is_some_and(|role| role.method == method);
    let params = role.as_ref().and_then(|role| role.params.as_ref()?.to_string().parse::<Json>().ok());
    let mut at = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let named = holds(&line.bytes, EXECUTE_TASK)
            || role.as_ref().is_some_and(|role| holds(&line.bytes, &role.method));
        // Names may be written with escapes.
        if !named && !holds(&line.bytes, "\\u") && !holds(&line.bytes, "gzip") {
            continue;
        }
        let decoded = json::decode(&line.bytes, &DecodeLimits::default()).ok();
        let plain = decoded.filter(|found| {
            line.ended && !found.facts.duplicate_keys && matches!(found.value, Json::Object(_))
        });
        let Some(message) = plain.map(|found| found.value) else {
            tasks.loose = true;
            continue;
        };
        if !message.get("method").and_then(Json::as_str).is_some_and(streams) {
            tasks.loose |= message.get("encoding").is_some();
            continue;
        }
        let id = match message.get("id") {
            Some(Json::String(id)) => Some(Json::from(id.as_str())),
            Some(number @ Json::Number(_)) => Some(number.clone()),
            _ => None,
        };
        let twin = |task: &Task| id.as_ref().is_some_and(|id| same(&task.id, id) != Equality::No);
        if tasks.all.iter().any(twin) {
            tasks.loose = true;
        } else if let Some(id) = id {
            let asked = message.pointer("/params/options/stream") == Some(&Json::Bool(true));
            let of_role = asked && params.is_some() && message.get("params") == params.as_ref();
            tasks.all.push(Task { step: line.step, id, asked, of_role, started: false, responded: false });
            at.push(index);
        } else {
            tasks.loose = true;
        }
    }
    // An answer cannot be assigned if two messages may have the same id.
    let shared = |(task, own): (&Task, &usize)| {
        let mut others = lines.iter().enumerate().filter(|(index, _)| index != own);
        others.any(|(_, line)| may_carry(&line.bytes, &task.id))
    };
    if tasks.loose || tasks.all.iter().zip(&at).any(shared) {
        tasks = Tasks { all: Vec::new(), loose: true };
    }
    tasks
}

/// True if a line may hold a message with this id.
fn may_carry(line: &[u8], id: &Json) -> bool {
    let text = id.as_str().map_or_else(|| id.to_text(), str::to_owned);
    if memchr::memmem::find(line, text.as_bytes()).is_none() {
        return false;
    }
    let is_its = |message: &Json| message.get("id").is_some_and(|own| same(own, id) != Equality::No);
    match json::decode(line, &DecodeLimits::default()) {
        Ok(found) => match &found.value {
            Json::Array(messages) => messages.iter().any(is_its),
            message => is_its(message),
        },
        // A line that is not JSON is not answered with an id of its own.
        Err(_) => false,
    }
}

struct Judge {
    tasks: Tasks,
    streams: BTreeMap<String, Stream>,
    found: Vec<Finding>,
}

impl Judge {
    fn file(&mut self, task: Option<usize>, clause: &str, reason: &str, expected: &str, got: &Json) {
        let text = peerproof_engine::data::payload::shorten(&got.to_text(), 200).into_owned();
        let finding = Finding::new(clause, reason, expected, text);
        self.found.push(match task.and_then(|task| self.tasks.all.get(task)) {
            Some(task) => finding.at(task.step),
            None => finding,
        });
    }

    fn message(&mut self, message: &Json) {
        let is_of_stream = ["stream_start", "stream_data", "stream_end"]
            .contains(&message.get("method").and_then(Json::as_str).unwrap_or_default());
        if is_of_stream && message.get("id").is_some() && !self.tasks.loose {
            self.file(None, clause::NO_ID, "id", "no `id` in a message of a stream", message);
        }
        match message.get("method").and_then(Json::as_str) {
            Some("stream_start") => self.start(message),
            Some("stream_data") => self.data(message),
            Some("stream_end") => self.stream_end(message),
            Some(_) => {}
            None => self.response(message),
        }
    }

    /// Key of a stream; reports a missing or wrong id.
    fn stream_id(&mut self, message: &Json) -> Option<String> {
        let id = message.pointer("/params/stream_id").and_then(Json::as_str).map(str::to_owned);
        if id.is_none() {
            self.file(None, clause::START, "stream_id", "`params.stream_id` is a string", message);
        }
        id
    }

    fn task(&self, id: Option<&Json>) -> Option<usize> {
        let id = id?;
        self.tasks.all.iter().position(|task| same(&task.id, id) != Equality::No)
    }

    fn start(&mut self, message: &Json) {
        let Some(id) = self.stream_id(message) else { return };
        let task = self.task(message.pointer("/params/task_id"));
        if self.streams.get(&id).is_some_and(|open| !open.ended) {
            self.file(task, clause::START, "started_twice", "one `stream_start` for each stream", message);
        }
        let known = task
            .and_then(|at| self.tasks.all.get_mut(at))
            .map(|task| (std::mem::replace(&mut task.started, true), task.responded, task.asked));
        let stray = known.is_none() && self.tasks.loose;
        let fault = match known {
            None => (!stray).then_some((clause::START, "task_id", "`task_id` is the id of a running task")),
            Some((_, _, false)) => {
                Some((clause::UNASKED, "unasked", "no stream, because `options.stream` is not true"))
            }
            Some((_, true, _)) => {
                Some((clause::NOTHING_AFTER, "after_response", "no message of a stream after the response"))
            }
            Some((true, _, _)) => Some((clause::START, "started_twice", "one stream for each task")),
            Some(_) => None,
        };
        if let Some((clause, reason, expected)) = fault {
            self.file(task, clause, reason, expected, message);
        }
        let stream = Stream { task, stray, ..Stream::default() };
        self.streams.insert(id, stream);
    }

    fn data(&mut self, message: &Json) {
        let Some(id) = self.known(message) else { return };
        let (task, last, misnumbered, ended, stray) = match self.streams.get(&id) {
            Some(stream) => (stream.task, stream.last, stream.misnumbered, stream.ended, stream.stray),
            None => return,
        };
        let responded = task.is_some_and(|task| self.tasks.all[task].responded);
        if stray {
            return;
        }
        if ended || responded {
            let (reason, expected) = match ended {
                true => ("after_end", "no message of a stream after its `stream_end`"),
                false => ("after_response", "no message of a stream after the response"),
            };
            self.file(task, clause::NOTHING_AFTER, reason, expected, message);
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.went_on = true;
            }
            return;
        }
        if message.pointer("/params/chunk").and_then(Json::as_str).is_none() {
            self.file(task, clause::CHUNKS, "no_chunk", "`stream_data` with a string `chunk`", message);
        }
        let sequence = message.pointer("/params/sequence").and_then(Json::as_u64);
        let wrong = sequence != Some(last + 1);
        if wrong && !misnumbered {
            let expected = format!("`sequence` {}", last + 1);
            self.file(task, clause::CHUNKS, "sequence", &expected, message);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.last = sequence.unwrap_or(last + 1);
            stream.misnumbered |= wrong;
            stream.chunks += 1;
        }
    }

    fn stream_end(&mut self, message: &Json) {
        let Some(id) = self.known(message) else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let (task, last, misnumbered, stray) = (stream.task, stream.last, stream.misnumbered, stream.stray);
        let went_on = stream.went_on;
        let again = std::mem::replace(&mut stream.ended, true);
        if stray {
            return;
        }
        if again {
            self.file(task, clause::END, "ended_twice", "one `stream_end` for each stream", message);
        } else if task.is_some_and(|task| self.tasks.all[task].responded) {
            let expected = "the response after `stream_end`";
            // A chunk after the response is one fault with the end behind it.
            if !went_on {
                self.file(task, clause::RESPONSE, "response_before_end", expected, message);
            }
        } else if message.pointer("/params/total_chunks").and_then(Json::as_u64) != Some(last) && !misnumbered
        {
            let expected = format!("`total_chunks` {last}");
            self.file(task, clause::END, "total_chunks", &expected, message);
        }
    }

    /// Key of a known stream; reports the first message of a stream that was not started.
    fn known(&mut self, message: &Json) -> Option<String> {
        let id = self.stream_id(message)?;
        if !self.streams.contains_key(&id) {
            if !self.tasks.loose {
                self.file(None, clause::START, "not_started", "`stream_start` before anything else", message);
            }
            self.streams.insert(id.clone(), Stream { stray: true, ..Stream::default() });
        }
        Some(id)
    }

    fn response(&mut self, message: &Json) {
        let Some(at) = self.task(message.get("id")) else { return };
        let first = !std::mem::replace(&mut self.tasks.all[at].responded, true);
        if !first {
            return;
        }
        let task = &self.tasks.all[at];
        if task.asked && !task.started && message.get("result").is_some() {
            let expected = "a `stream_start`, because `options.stream` is true";
            self.file(Some(at), clause::START, "no_stream", expected, message);
        }
        let of_role = self.tasks.all[at].of_role && message.get("result").is_some();
        let open = self.streams.values_mut().filter(|stream| stream.task == Some(at));
        let mut empty = false;
        for stream in open {
            stream.early_response |= !stream.ended;
            empty |= stream.ended && stream.chunks == 0;
        }
        if of_role && empty {
            self.file(Some(at), clause::SOME, "no_chunks", "at least one `stream_data`", message);
        }
    }

    /// Reports responses that came before the end of their stream.
    fn end(&mut self) {
        let left: BTreeSet<usize> = self
            .streams
            .values()
            .filter(|stream| stream.early_response && !stream.ended)
            .filter_map(|stream| stream.task)
            .collect();
        for task in left {
            let id = self.tasks.all[task].id.clone();
            let expected = "`stream_end` before the response to this id";
            self.file(Some(task), clause::END, "no_end", expected, &id);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frames::messages;
    use super::super::full_facts;
    use super::*;
    use peerproof_engine::data::clause::Side;

    /// A stream of task `n` with this number of chunks, and its response.
    fn stream(n: usize, chunks: u64, error: bool) -> Vec<String> {
        let of = |method: &str, more: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"stream_{method}","params":{{"stream_id":"s{n}",{more}}}}}"#
            )
        };
        let mut all = vec![of("start", &format!(r#""task_id":"t{n}""#))];
        all.extend((1..=chunks).map(|at| of("data", &format!(r#""chunk":"c","sequence":{at}"#))));
        all.push(of("end", &format!(r#""total_chunks":{chunks}"#)));
        let outcome = if error { r#""error":{"code":-32000,"message":"m"}"# } else { r#""result":{}"# };
        all.push(format!(r#"{{"jsonrpc":"2.0",{outcome},"id":"t{n}"}}"#));
        all
    }

    fn clauses(tasks: usize, said: &[String]) -> Vec<String> {
        let facts = full_facts::facts(Side::Provider);
        let line = |n: usize| {
            RequestLine {
            step: n,
            of_step: 0,
            last_of_step: true,
            bytes: format!(
                r#"{{"jsonrpc":"2.0","method":"execute_task","params":{{"options":{{"stream":true}}}},"id":"t{n}"}}"#
            )
            .into_bytes(),
            filled: Vec::new(),
            ended: true,
            at_us: 0,
        }
        };
        let lines: Vec<RequestLine> = (0..tasks).map(line).collect();
        let text: String = said.iter().map(|line| format!("{line}\n")).collect();
        let came = messages(text.as_bytes(), 100);
        let came: Vec<&Json> = came.iter().collect();
        judge(&facts, &lines, &came).into_iter().map(|finding| finding.clause.0.to_string()).collect()
    }

    /// Streams interleaved in this order.
    fn woven(streams: &[Vec<String>], order: &[usize]) -> Vec<String> {
        let mut next = vec![0; streams.len()];
        let mut all = Vec::new();
        let mut order = order.iter().cycle();
        while let Some(at) = order.next().filter(|_| all.len() < streams.iter().map(Vec::len).sum()) {
            // The stream whose turn it is, or the next one with messages left.
            let at = (0..streams.len())
                .map(|more| (at + more) % streams.len())
                .find(|at| next[*at] < streams[*at].len());
            let Some(at) = at else { break };
            all.push(streams[at][next[at]].clone());
            next[at] += 1;
        }
        all
    }

    #[test]
    fn an_id_that_another_message_has_as_well_decides_nothing() {
        let request =
            r#"{"jsonrpc":"2.0","method":"execute_task","params":{"options":{"stream":true}},"id":"t0"}"#;
        let refused = request.replace("2.0", "0.0");
        let doubled = request.replace("{\"jsonrpc", "{\"method\":\"x\",\"jsonrpc");
        let answer = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"},"id":"t0"}"#.to_owned();
        let said = [vec![answer], stream(0, 2, false)].concat();
        let lines = |sent: [&str; 2]| -> Vec<RequestLine> {
            let line = |(step, text): (usize, &str)| RequestLine {
                step,
                of_step: 0,
                last_of_step: true,
                bytes: text.as_bytes().to_vec(),
                filled: Vec::new(),
                ended: true,
                at_us: 0,
            };
            sent.into_iter().enumerate().map(line).collect()
        };
        let facts = full_facts::facts(Side::Provider);
        let text: String = said.iter().map(|line| format!("{line}\n")).collect();
        let came = messages(text.as_bytes(), 100);
        let came: Vec<&Json> = came.iter().collect();
        let echo = r#"{"jsonrpc":"2.0","method":"echo","id":"t0"}"#;
        for sent in [[refused.as_str(), doubled.as_str()], [refused.as_str(), request], [echo, request]] {
            assert_eq!(judge(&facts, &lines(sent), &came).len(), 0, "{sent:?}");
        }
        let other = echo.replace("t0", "t1");
        assert!(!judge(&facts, &lines([&other, request]), &came).is_empty());
    }

    proptest! {
        #[test]
        fn streams_in_any_mixture_are_right_and_each_fault_in_one_is_seen(
            shapes in prop::collection::vec((1_u64..6, any::<bool>()), 1..4),
            order in prop::collection::vec(0_usize..3, 1..40),
            victim in any::<prop::sample::Index>(),
            fault in 0..5,
        ) {
            let streams: Vec<Vec<String>> =
                shapes.iter().enumerate().map(|(n, (chunks, error))| stream(n, *chunks, *error)).collect();
            prop_assert_eq!(clauses(streams.len(), &woven(&streams, &order)), Vec::<String>::new());
            let at = victim.index(streams.len());
            let (chunks, error) = shapes[at];
            let mut broken = streams.clone();
            let one = &mut broken[at];
            let last = one.len() - 1;
            let clause = match fault {
                0 => { one.remove(0); "RPC-STREAM-01" }
                1 => { one.remove(1); if chunks == 1 { "RPC-STREAM-03" } else { "RPC-STREAM-02" } }
                2 => { one.remove(last - 1); "RPC-STREAM-03" }
                3 => { one.swap(last - 1, last); "RPC-STREAM-04" }
                _ => { let chunk = one[1].clone(); one.push(chunk); "RPC-STREAM-05" }
            };
            let found = clauses(streams.len(), &woven(&broken, &order));
            // An error may come before its stream begins; messages after it then belong to no stream.
            prop_assert!(found.iter().any(|found| found == clause), "{clause} {error} {found:?}");
        }
    }
}
