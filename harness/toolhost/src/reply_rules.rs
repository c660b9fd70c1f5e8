//! Rules for every reply of a toolhost, independent of the request.

use std::sync::OnceLock;

use include_dir::include_dir;

use super::expect::{is_strict, parse};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::schema::Schemas;
use peerproof_engine::data::transcript::Transcript;

/// Allowed values of `status`.
const STATUSES: [&str; 4] = ["OK", "INVALID_PICK", "TOOL_ERROR", "BREAKER_TRIP"];

/// Largest reply with its newline in bytes (`ipc` §7 as read for toolhosts).
const REPLY_BYTES_MAX: usize = 1 << 20;

/// Violations of the rules by one reply; each rule has its own clause. `asks_lease` is true for a lease request, whose
/// reply carries no tool result.
pub fn violations(
    transcript: &Transcript,
    serve: bool,
    asks_lease: bool,
    reply: &Json,
    frame_bytes: usize,
) -> Vec<Finding> {
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
    let lease_issue = asks_lease || issues_lease(transcript, reply);
    match status.map(|status| (status, status.as_str())) {
        None if ok && !lease_issue => add("TH-REPLY-06", "member_missing", "`status` in a success reply"),
        None => {}
        Some((_, Some(text))) if !STATUSES.contains(&text) => {
            add("TH-REPLY-07", "unknown_status", "`status` is OK, INVALID_PICK, TOOL_ERROR or BREAKER_TRIP");
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
        Some(output) if output.as_str().is_some_and(is_strict) => {}
        Some(_) => {
            add(
                "TH-REPLY-05",
                "output_not_json",
                "`output_json` is a string that contains one strict JSON value",
            );
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
                add("TH-STATE-10", "wrong_size_bytes", &format!("a correct `size_bytes`; {fault}"));
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
    // The schemas are a second opinion, used only if no rule is broken.
    if findings.is_empty() && !lease_issue {
        findings.extend(schema_violation(serve, reply, &text));
    }
    findings
}

/// Copies of a reply without the faults that [`violations`] finds in `ok`, `status` and `output_json`, one for each
/// possible meaning.
pub(crate) fn mended(reply: &Json) -> Vec<Json> {
    if !matches!(reply, Json::Object(_)) {
        return Vec::new();
    }
    let says_ok = reply.get("status").and_then(Json::as_str).map(|status| status == "OK");
    let meant = match (reply.get("ok").and_then(Json::as_bool), says_ok) {
        (Some(ok), None) => vec![ok],
        (Some(ok), Some(says_ok)) if ok == says_ok => vec![ok],
        (None, Some(says_ok)) => vec![says_ok],
        _ => vec![true, false],
    };
    let with = |ok: bool| {
        let mut mended = reply.clone();
        mended.set("ok", ok);
        if says_ok.is_some_and(|says_ok| says_ok != ok) {
            mended.set("status", if ok { "OK" } else { "TOOL_ERROR" });
        }
        if let Some(output) = reply.get("output_json").filter(|output| output.as_str().is_none()) {
            mended.set("output_json", output.to_text());
        }
        mended
    };
    meant.into_iter().map(with).filter(|mended| mended != reply).collect()
}

/// Copy of a reply with correct `size_bytes` in its output's artifacts; `None` if none was wrong.
pub(crate) fn with_right_sizes(reply: &Json) -> Option<Json> {
    let mut output = parse(reply.get("output_json")?.as_str()?)?;
    if !right_sizes(&mut output) {
        return None;
    }
    let mut right = reply.clone();
    right.set("output_json", output.to_text());
    Some(right)
}

/// Corrects `size_bytes` in each artifact. Returns true if one was wrong.
fn right_sizes(value: &mut Json) -> bool {
    let length = value.get("content_json").and_then(Json::as_str).map(|content| content.len() as u64);
    let size = value.get("size_bytes").and_then(Json::as_u64);
    let is_wrong = length.is_some() && size.is_some() && length != size;
    if let Some(length) = length.filter(|_| is_wrong) {
        value.set("size_bytes", length);
    }
    let members = value.as_object_mut().into_iter().flatten().map(|(_, value)| value);
    members.fold(is_wrong, |is_wrong, member| right_sizes(member) | is_wrong)
}

/// Violation of a reply's JSON Schema, under the clause of its place.
fn schema_violation(serve: bool, reply: &Json, text: &dyn Fn() -> String) -> Option<Finding> {
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    if !Schemas::enabled() {
        return None;
    }
    let schemas = SCHEMAS.get_or_init(|| {
        let files = include_dir!("$CARGO_MANIFEST_DIR/corpora/schemas");
        Schemas::load_dir(&files)
            .unwrap_or_else(|error| unreachable!("corpora/toolhost/schemas do not load: {error}"))
    });
    let name = if serve { "reply_serve" } else { "reply_run" };
    // A missing schema would be a fault of the harness. A test shows that both exist.
    let violations = schemas.validate(name, reply).ok()?;
    let violation = violations.first()?;
    let place = violation.instance_path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let clause = match place {
        "ok" => "TH-REPLY-03",
        "error" => "TH-REPLY-04",
        "output_json" => "TH-REPLY-05",
        "status" => "TH-REPLY-07",
        "idempotent_hit" => "TH-IDEM-03",
        "reason" => "TH-LEASE-04",
        "tier" | "aid" => "TH-LEASE-02",
        "" if reply.get("error").and_then(Json::as_str) == Some("lease_required") => "TH-LEASE-02",
        "" if reply.get("error").and_then(Json::as_str) == Some("lease_rejected") => "TH-LEASE-04",
        _ => "TH-REPLY-10",
    };
    let expected = format!("a reply that conforms to the JSON Schema `{name}`");
    let got = format!("at {:?}: {}; {}", violation.instance_path, violation.message, text());
    Some(Finding::new(clause, "schema", expected, got))
}

/// True if a reply has the token of the configured lease command.
fn issues_lease(transcript: &Transcript, reply: &Json) -> bool {
    let pointer = transcript.facts.features.get("lease").and_then(|lease| lease.get("token")?.as_str());
    reply.pointer(pointer.unwrap_or("/token_id")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::plan::Plan;

    fn keys(serve: bool, reply: &str) -> Vec<String> {
        let transcript = Transcript {
            boundary: "toolhost".to_owned(),
            check: String::new(),
            facts: Facts::new(Side::Provider).into(),
            plan: Plan::default().into(),
            timeout_scale: 1.0,
            events: Vec::new(),
        };
        let reply: Json = reply.parse().unwrap();
        violations(&transcript, serve, false, &reply, 100)
            .into_iter()
            .map(|finding| format!("{} {}", finding.clause, finding.reason))
            .collect()
    }

    fn success(change: &str, to: &str) -> String {
        let good = r#"{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"delta":true,"slots":{"0":{"type":"t","provenance":"p","content_json":"{}","size_bytes":2}},"removed_slots":[1]}}"#;
        assert!(good.contains(change), "{change}");
        good.replace(change, to)
    }

    #[test]
    fn good_replies_break_no_rule() {
        let full = success("\"delta\":true,", "").replace(",\"removed_slots\":[1]", "");
        assert_eq!(keys(true, &success("{}", "{}")), [""; 0]);
        assert_eq!(keys(true, &success("\"ok\"", "\"more\":[null],\"ok\"")), [""; 0]);
        assert_eq!(keys(true, &success("\"ok\"", "\"idempotent_hit\":false,\"ok\"")), [""; 0]);
        assert_eq!(keys(false, &full), [""; 0]);
        for serve in [true, false] {
            assert_eq!(keys(serve, r#"{"ok":false,"error":"e"}"#), [""; 0]);
            assert_eq!(
                keys(serve, r#"{"ok":false,"status":"TOOL_ERROR","error":"lease_required"}"#),
                [""; 0]
            );
            assert_eq!(
                keys(serve, r#"{"ok":false,"status":"BREAKER_TRIP","error":"e","output_json":"null"}"#),
                [""; 0]
            );
        }
        assert_eq!(keys(true, r#"{"ok":true,"token_id":"tok"}"#), [""; 0]);
    }

    #[test]
    fn each_rule_has_its_clause() {
        for (change, to, key) in [
            ("\"ok\":true", "\"ok\":\"true\"", "TH-REPLY-03 ok_not_boolean"),
            ("\"OK\"", "\"TOOL_ERROR\"", "TH-REPLY-03 ok_against_status"),
            ("\"OK\"", "\"ok\"", "TH-REPLY-07 unknown_status"),
            ("\"error\":\"\"", "\"error\":\"e\"", "TH-REPLY-04 error_with_success"),
            ("\"error\":\"\"", "\"error\":null", "TH-REPLY-04 error_with_success"),
            ("\"output_json\":\"{}\"", "\"output_json\":{}", "TH-REPLY-05 output_not_json"),
            ("\"output_json\":\"{}\"", "\"output_json\":\"\"", "TH-REPLY-05 output_not_json"),
            ("\"status\":\"OK\",", "", "TH-REPLY-06 member_missing"),
            ("\"delta\":true", "\"delta\":false", "TH-REPLY-08 not_a_delta"),
            ("\"0\"", "\"8\"", "TH-REPLY-10 state_shape"),
            ("[1]", "[8]", "TH-REPLY-10 state_shape"),
            ("\"size_bytes\":2", "\"size_bytes\":\"2\"", "TH-REPLY-10 state_shape"),
        ] {
            assert_eq!(keys(true, &success(change, to)), [key]);
        }
        assert_eq!(keys(false, &success("{}", "{}")), ["TH-REPLY-09 not_full"]);
        assert_eq!(keys(true, r#"{"ok":false,"error":""}"#), ["TH-REPLY-04 error_missing"]);
        assert_eq!(
            keys(true, r#"{"ok":false,"error":"e","output_json":""}"#),
            ["TH-REPLY-05 output_not_json"]
        );
        assert_eq!(keys(true, "[]"), ["TH-REPLY-02 reply_not_object"]);
    }

    #[test]
    fn the_schemas_see_what_no_rule_sees() {
        if Schemas::enabled() {
            let hit = success("\"ok\"", "\"idempotent_hit\":1,\"ok\"");
            assert_eq!(keys(true, &hit), ["TH-IDEM-03 schema"]);
            assert_eq!(
                keys(true, r#"{"ok":false,"error":"lease_required","tier":1}"#),
                ["TH-LEASE-02 schema"]
            );
        }
    }
}
