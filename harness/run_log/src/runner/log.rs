//! Form of a log: lines, headers and the members of each event.

use peerproof_engine::data::finding::{Finding, Nature};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;

use super::observations::decoded;
use super::request::Request;

/// Events whose order matters.
const NAMED: [&str; 6] =
    ["run_started", "selector_chosen", "inputs_patched", "tool_ok", "tool_error", "run_finished"];

/// Most characters of a quoted line.
const QUOTED_CHARS: usize = 240;

/// Findings about one run, at most one per clause.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub Vec<Finding>);

impl Faults {
    /// Adds a finding, unless its clause has one.
    pub(crate) fn add(
        &mut self,
        clause: &str,
        reason: &str,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) {
        if self.0.iter().all(|finding| finding.clause.0 != clause) {
            self.0.push(Finding::new(clause, reason, expected, got));
        }
    }

    /// Sets the nature of the last finding.
    pub(crate) fn of_nature(&mut self, nature: Nature) {
        if let Some(last) = self.0.pop() {
            self.0.push(last.of_nature(nature));
        }
    }
}

/// An event of the contract, on a well-formed line.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Number of its line, counted from 1.
    pub line: usize,
    /// Its name.
    pub event: String,
    /// Its step.
    pub step: u64,
    /// Its payload.
    pub payload: Json,
}

/// A log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Events that the contract names.
    pub entries: Vec<Entry>,
    /// Numbers of the first and the last line that is not blank.
    pub ends: Option<(usize, usize)>,
    /// Its `run_id`.
    pub run_id: Option<String>,
    /// Form in which an absent `request_id` is written.
    pub request_id_absent: Option<&'static str>,
}

/// Reads a log. The log of a killed runner may end within a line.
pub(crate) fn read(text: &[u8], killed: bool, request: &Request, faults: &mut Faults) -> Log {
    let mut log = Log::default();
    let text = text.strip_prefix(b"\xEF\xBB\xBF").map_or(text, |rest| {
        faults.add("LOG-WRITE-BOM", "bom", "no byte order mark", "U+FEFF before the first line");
        rest
    });
    let is_whole = text.is_empty() || text.ends_with(b"\n");
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if is_whole || killed {
        lines.pop();
    } else {
        faults.add(
            "LOG-WRITE-LF",
            "no_line_feed",
            "a line feed after the last line",
            "the file ends without a line feed",
        );
    }
    for (at, line) in lines.iter().enumerate() {
        let number = at + 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            faults.add("LOG-WRITE-LF", "blank_line", "no blank line", format!("line {number} is blank"));
            continue;
        }
        log.ends = Some((log.ends.map_or(number, |(first, _)| first), number));
        let quoted = || format!("line {number}: {}", shorten(&String::from_utf8_lossy(line), QUOTED_CHARS));
        let value = decoded(line).filter(|value| value.as_object().is_some());
        let event = value.as_ref().and_then(|value| value.get("event")?.as_str()).filter(|it| !it.is_empty());
        let step = value.as_ref().and_then(|value| value.get("step")?.as_u64());
        let payload =
            value.as_ref().and_then(|value| value.get("payload")).filter(|it| it.as_object().is_some());
        let (Some(value), Some(event), Some(step), Some(payload)) = (&value, event, step, payload) else {
            let expected = "one strict JSON object, with `event`, `step` and `payload`";
            faults.add("LOG-WRITE-JSON", "bad_line", expected, quoted());
            continue;
        };
        header(value, number, request, &mut log, faults);
        if NAMED.contains(&event) {
            log.entries.push(Entry { line: number, event: event.to_owned(), step, payload: payload.clone() });
        }
    }
    log
}

/// Reads the RunHeader of a line.
fn header(line: &Json, number: usize, request: &Request, log: &mut Log, faults: &mut Faults) {
    let shown = |value: Option<&Json>| {
        format!("line {number}: {}", value.map_or_else(|| "nothing".to_owned(), Json::to_text))
    };
    for name in ["spec_version", "profile_id"] {
        if let Some(value) = line.get(name).filter(|value| value.as_str().is_none()) {
            let expected = format!("`{name}` is a string, or absent");
            faults.add("LOG-WRITE-HEADER", "bad_header", expected, shown(Some(value)));
        }
    }
    let id = line.get("run_id").and_then(Json::as_str).filter(|id| !id.is_empty());
    match (id, &log.run_id) {
        (None, _) => {
            let expected = "`run_id`, a string that is not empty, on every line";
            faults.add("LOG-WRITE-HEADER", "no_run_id", expected, shown(line.get("run_id")));
        }
        (Some(id), Some(first)) if id != first => {
            let expected = format!("`run_id` is {first:?} on every line");
            faults.add("LOG-WRITE-RUN", "other_run_id", expected, shown(line.get("run_id")));
        }
        (Some(id), _) => log.run_id = Some(id.to_owned()),
    }
    let given = line.get("request_id");
    let absent = match given {
        None => Some("absent"),
        Some(Json::Null) => Some("null"),
        Some(value) => (value.as_str() == Some("")).then_some("empty"),
    };
    match (&request.request_id, absent) {
        (Some(id), _) if given.and_then(Json::as_str) == Some(id) => {}
        (Some(id), Some(_)) if id.is_empty() => {}
        (Some(id), _) => {
            let expected = format!("`request_id` is {id:?} on every line");
            faults.add("LOG-WRITE-REQUEST", "other_request_id", expected, shown(given));
        }
        (None, Some(form)) => log.request_id_absent = Some(form),
        (None, None) => {
            let expected = "`request_id` is absent, null or empty, as in the request";
            faults.add("LOG-WRITE-NOREQUEST", "request_id", expected, shown(given));
        }
    }
}

/// Form of a `run_id`; `None` if it has neither form.
pub(crate) fn run_id_form(id: &str) -> Option<&'static str> {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = id.split('-').map(str::len).collect();
    match lengths[..] {
        [32] if is_hex(id) => Some("hex32"),
        [8, 4, 4, 4, 12] if id.split('-').all(is_hex) => Some("uuid"),
        _ => None,
    }
}
