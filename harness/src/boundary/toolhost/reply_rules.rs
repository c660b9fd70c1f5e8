//! What holds of every reply of a toolhost, whatever the request was.

use crate::finding::Finding;
use crate::json::{self, DecodeLimits, Json};
use crate::payload::shorten;
use crate::transcript::Transcript;

/// The four values of `status`.
const STATUSES: [&str; 4] = ["OK", "INVALID_PICK", "TOOL_ERROR", "BREAKER_TRIP"];

/// Largest reply, with its newline (`ipc` §7 as read for toolhosts), bytes.
const REPLY_BYTES_MAX: usize = 1 << 20;

/// All rules that one reply breaks; each rule is a clause of its own.
pub fn violations(transcript: &Transcript, serve: bool, reply: &Json, frame_bytes: usize) -> Vec<Finding> {
    let mut findings = Vec::new();
    let text = || shorten(&reply.to_text(), 240).into_owned();
    let mut add = |clause: &str, reason: &str, expected: &str| {
        findings.push(Finding::new(clause, reason, expected, text()));
    };
    if !matches!(reply, Json::Object(_)) {
        add("TH-REPLY-02", "reply_not_object", "a reply that is a JSON object");
        return findings;
    }
    let Some(ok) = reply.get("ok").and_then(Json::as_bool) else {
        add("TH-REPLY-03", "ok_not_boolean", "a boolean `ok`");
        return findings;
    };
    let status = reply.get("status");
    // A reply that issues a lease carries no tool result.
    let lease_issue = issues_lease(transcript, reply);
    match status.map(|status| (status, status.as_str())) {
        None if ok && !lease_issue => add("TH-REPLY-06", "member_missing", "`status` in a success reply"),
        None => {}
        Some((_, Some(text))) if !STATUSES.contains(&text) => {
            add(
                "TH-REPLY-07",
                "unknown_status",
                "a status out of OK, INVALID_PICK, TOOL_ERROR, BREAKER_TRIP",
            );
        }
        Some((_, None)) => add("TH-REPLY-07", "unknown_status", "a string `status`"),
        Some((_, Some(text))) if (text == "OK") != ok => {
            add("TH-REPLY-03", "ok_against_status", "ok:true exactly when status is OK");
        }
        Some(_) => {}
    }
    match (ok, reply.get("error").map(Json::as_str)) {
        (true, None) if !lease_issue => add("TH-REPLY-06", "member_missing", "`error` in a success reply"),
        (true, Some(error)) if error != Some("") => {
            add("TH-REPLY-04", "error_with_success", "an empty `error` with ok:true");
        }
        (false, error) if error.flatten().is_none_or(str::is_empty) => {
            add("TH-REPLY-04", "error_missing", "a non-empty string `error` with ok:false");
        }
        _ => {}
    }
    match reply.get("output_json") {
        None if ok && !lease_issue => {
            add("TH-REPLY-06", "member_missing", "`output_json` in a success reply")
        }
        None => {}
        Some(output) => {
            let strict = output
                .as_str()
                .is_some_and(|text| json::decode(text.as_bytes(), &DecodeLimits::default()).is_ok());
            // An error reply may carry the member empty; a value there must still be JSON.
            if !strict && !(output.as_str() == Some("") && !ok) {
                add(
                    "TH-REPLY-05",
                    "output_not_json",
                    "`output_json` is a string that holds one strict JSON value",
                );
            }
        }
    }
    match reply.get("ds_state") {
        None if ok && !lease_issue => add("TH-REPLY-06", "member_missing", "`ds_state` in a success reply"),
        None => {}
        Some(state) => {
            let delta = state.get("delta");
            if serve && delta.and_then(Json::as_bool) != Some(true) {
                add("TH-REPLY-08", "not_a_delta", "a `ds_state` with \"delta\":true in serve mode");
            }
            if !serve && delta.and_then(Json::as_bool) == Some(true) {
                add("TH-REPLY-09", "not_full", "a full `ds_state` in run mode");
            }
            if let Some(fault) = super::state::fault(state) {
                add("TH-REPLY-10", "state_shape", &fault);
            } else if transcript.facts.claims("ds_state")
                && let Some(fault) = super::state::size_fault(state)
            {
                add("TH-STATE-10", "wrong_size_bytes", &format!("the right `size_bytes`; {fault}"));
            }
        }
    }
    if frame_bytes + 1 > REPLY_BYTES_MAX {
        let got = format!("{} bytes with its newline", frame_bytes + 1);
        findings.push(Finding::new(
            "TH-LIMIT-07",
            "reply_too_large",
            "a reply of at most 1,048,576 bytes",
            got,
        ));
    }
    findings
}

/// Whether a reply has the token that the configured lease command hands out.
fn issues_lease(transcript: &Transcript, reply: &Json) -> bool {
    let pointer = transcript.facts.features.get("lease").and_then(|lease| lease.get("token")?.as_str());
    reply.pointer(pointer.unwrap_or("/token_id")).is_some()
}
