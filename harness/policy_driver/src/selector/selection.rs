//! Parser of a selector's output.

use std::sync::OnceLock;

use include_dir::include_dir;

use super::super::request::sids;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::schema::Schemas;
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Clauses about the form of a Selection.
mod clause {
    pub(crate) const KIND: &str = "PD-SELN-01";
    pub(crate) const SID: &str = "PD-SELN-02";
    pub(crate) const PATCH: &str = "PD-SELN-03";
    pub(crate) const RAW: &str = "PD-SELN-04";
    pub(super) const INPUTS: &str = "PD-SELN-09";
}

/// One line of standard output.
pub(crate) struct Frame {
    /// Bytes without the line feed.
    pub bytes: Vec<u8>,
    /// Time of its last byte, microseconds.
    pub at_us: u64,
    /// Index, within its session, of the event that completed it.
    pub place: usize,
    /// The Selection, or the reason why the line is not a JSON object.
    pub value: Result<Selection, String>,
}

impl Frame {
    /// The line, shortened for display.
    pub(crate) fn text(&self) -> String {
        shorten(&String::from_utf8_lossy(&self.bytes), 240).into_owned()
    }
}

/// Parsed members of a Selection.
pub(crate) struct Selection {
    /// `kind`; empty if absent.
    pub kind: String,
    /// `sid`, if it is a string.
    pub sid: Option<String>,
    /// Object in `input_patch_json`.
    pub patch: Option<Json>,
    /// `raw`; empty if absent.
    pub raw: String,
    /// `inputs`: the merged inputs.
    pub inputs: Option<Json>,
    /// The line, shortened for display.
    pub text: String,
    value: Json,
}

/// All lines of a selector's output. Text after the last line feed counts as a line.
pub(crate) fn frames(transcript: &Transcript, session: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut open: Vec<u8> = Vec::new();
    let mut last = (0, 0);
    for (place, event) in transcript.of(session).enumerate() {
        let EventKind::Received { bytes } = &event.kind else { continue };
        last = (event.at_us, place);
        for piece in bytes.0.split_inclusive(|byte| *byte == b'\n') {
            open.extend_from_slice(piece);
            if open.last() == Some(&b'\n') {
                open.pop();
                frames.push(frame(std::mem::take(&mut open), last));
            }
        }
    }
    if !open.is_empty() {
        frames.push(frame(open, last));
    }
    frames
}

fn frame(bytes: Vec<u8>, (at_us, place): (u64, usize)) -> Frame {
    let value = json::decode(&bytes, &DecodeLimits::default()).map_err(|error| error.to_string());
    let value = value.and_then(|decoded| match decoded.value {
        value @ Json::Object(_) => Ok(Selection::of(value, &bytes)),
        _ => Err("not a JSON object".to_owned()),
    });
    Frame { bytes, at_us, place, value }
}

impl Selection {
    pub(super) fn of(value: Json, bytes: &[u8]) -> Self {
        let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
        let patch = text("input_patch_json").and_then(|text| {
            json::decode(text.as_bytes(), &DecodeLimits::default()).ok().map(|decoded| decoded.value)
        });
        Self {
            kind: text("kind").unwrap_or_default(),
            sid: text("sid"),
            patch,
            raw: text("raw").unwrap_or_default(),
            inputs: value.get("inputs").filter(|inputs| !inputs.is_null()).cloned(),
            text: shorten(&String::from_utf8_lossy(bytes), 240).into_owned(),
            value,
        }
    }

    /// Kind and SID, for display.
    pub(crate) fn gist(&self) -> String {
        self.sid.as_ref().map_or_else(|| self.kind.clone(), |sid| format!("{} {sid}", self.kind))
    }

    /// True if it gives a reason, in `raw` or in a member beyond those of the contract.
    pub(crate) fn tells_why(&self) -> bool {
        const OTHERS: [&str; 4] = ["kind", "sid", "input_patch_json", "inputs"];
        let members = self.value.as_object().unwrap_or_default();
        members.iter().any(|(name, value)| {
            !OTHERS.contains(&name.as_str()) && value.as_str().is_some_and(|text| !text.is_empty())
        })
    }

    /// First fault that does not depend on the expectation. `request` is `None` unless it is strict JSON.
    pub(crate) fn faults(&self, request: Option<&Json>) -> Option<Finding> {
        let wrong = |clause: &str, reason: &str, expected: &str| {
            Some(Finding::new(clause, reason, expected, self.text.clone()))
        };
        // Readers treat null as absent, and an empty patch too.
        let present = |name: &str| self.value.get(name).is_some_and(|value| !value.is_null());
        if !["PICK", "ASK_SUP", "NOOP", "INVALID"].contains(&self.kind.as_str()) {
            return wrong(clause::KIND, "unknown_kind", "`kind` is PICK, ASK_SUP, NOOP or INVALID");
        }
        if self.value.get("raw").and_then(Json::as_str).is_none() {
            return wrong(clause::RAW, "no_raw", "`raw` is a string");
        }
        let has_patch =
            present("input_patch_json") && self.value.get("input_patch_json") != Some(&Json::from(""));
        let picks = self.kind == "PICK";
        if picks != present("sid") {
            return wrong(clause::SID, "sid_of_kind", "`sid` for PICK and only for PICK");
        }
        if picks
            && let Some(request) = request
            && !self.sid.as_deref().is_some_and(|sid| sids(request).contains(&sid))
        {
            return wrong(clause::SID, "sid_not_in_menu", "`sid` is in the menu of the request");
        }
        if has_patch && !matches!(self.patch, Some(Json::Object(_))) {
            return wrong(clause::PATCH, "patch_no_object", "`input_patch_json` contains one JSON object");
        }
        if has_patch && !picks {
            return wrong(clause::PATCH, "patch_without_pick", "a patch for PICK only");
        }
        if self.inputs.as_ref().is_some_and(|inputs| inputs.as_object().is_none()) {
            return wrong(clause::INPUTS, "inputs_no_object", "`inputs` is an object");
        }
        let violation = schema_violation(&self.value)?;
        let expected = "a Selection that conforms to the JSON Schema";
        Some(Finding::new(clause::KIND, "schema", expected, format!("{violation}: {}", self.text)))
    }
}

/// First violation of the schema. It is a second opinion, used only if no rule found a fault.
fn schema_violation(selection: &Json) -> Option<String> {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    if !Schemas::enabled() {
        return None;
    }
    let schemas = SCHEMAS.get_or_init(|| {
        let files = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");
        Schemas::load_dir(&files)
            .unwrap_or_else(|error| unreachable!("corpora/policy_driver/schemas do not load: {error}"))
    });
    let violations = schemas.validate("selection", selection).ok()?;
    violations.first().map(|violation| format!("{} {}", violation.instance_path, violation.message))
}
