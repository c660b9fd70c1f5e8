//! Rules about responses and log lines, beyond the allowed replies (document 004).

use super::model::{Allowed, AnswerKind, Codes, ErrorRule, RequestPart};
use peerproof_engine::contract::face::Outcome;
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Faults of a response that fits its request by the alternative `allowed`.
pub(crate) fn of_response(unit: &RequestPart, allowed: &Allowed, response: &Json) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A message refused for its JSON never reached the method that the rule is about.
    if let Some(rule) = unit.extra.error_rule.as_ref().filter(|_| allowed.shows != Some("refuse")) {
        findings.extend(of_error(rule, &unit.allowed, response));
    }
    let result = response.get("result").filter(|_| response.get("error").is_none());
    if let (Some(shape), Some(result)) = (unit.extra.shape, result) {
        findings.extend(shape.violations(result));
    }
    findings
}

fn of_error(rule: &ErrorRule, allowed: &[Allowed], response: &Json) -> Option<Finding> {
    let error = response.get("error")?;
    let code = error.get("code").and_then(Json::as_i64)?;
    let text = || shorten(&response.to_text(), 240).into_owned();
    // Refusals for signature, rate or id come before the method and have codes of their own.
    let is_named = |allowed: &Allowed| matches!(&allowed.outcome, Outcome::Answer(way) if matches!(way.what, AnswerKind::Error(Codes::Of(codes)) if codes.contains(&code)));
    if !rule.codes.is_empty() && !rule.codes.contains(&code) && !allowed.iter().any(is_named) {
        let codes: Vec<String> = rule.codes.iter().map(ToString::to_string).collect();
        let expected = format!("error {}", codes.join(" or "));
        let repair = match rule.codes {
            [code] => Repair::set("/error/code", code.to_string()),
            _ => Repair::other("/error/code"),
        };
        return Some(Finding::new(rule.clause, "wrong_code", expected, text()).repaired_by(repair));
    }
    let kind = error.pointer("/data/type").and_then(Json::as_str);
    if code == rule.of && !kind.is_some_and(|kind| rule.types.contains(&kind)) {
        let expected = format!("`error.data.type` is {}", rule.types.join(" or "));
        let finding = Finding::new(rule.clause, "wrong_type", expected, text());
        return Some(finding.repaired_by(Repair::other("/error/data/type")));
    }
    None
}

/// Finding about a JSON object on standard error that lacks members of log lines.
pub(crate) fn of_logs(transcript: &Transcript, session: usize) -> Option<Finding> {
    transcript.of(session).find_map(|event| {
        let EventKind::Stderr { bytes, .. } = &event.kind else { return None };
        // The harness may have cut the text after the last line feed.
        bytes.0.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).find_map(|line| {
            let line = line.trim_ascii();
            let value = json::decode(line, &DecodeLimits::default()).ok()?.value;
            let has_text = |name: &str| value.get(name).and_then(Json::as_str).is_some();
            let has_time = value.get("timestamp").is_some_and(|time| !time.is_null());
            let is_good = has_time && has_text("level") && has_text("message");
            if !matches!(value, Json::Object(_)) || is_good {
                return None;
            }
            let got = shorten(&String::from_utf8_lossy(line), 240).into_owned();
            let expected = "`timestamp`, `level` and `message` in each JSON log line";
            Some(Finding::new("RPC-LOG-01", "log_member_missing", expected, got))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::model::{fit, of_message};
    use super::super::role::reference_role;
    use super::*;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;

    #[test]
    fn the_code_of_a_method_that_raises_is_asked_of_what_came_to_it() {
        let mut facts = Facts::new(Side::Provider);
        facts.roles.insert("fail".to_owned(), reference_role("fail"));
        let codes_refused = |facts: &Facts, id: &str| -> Vec<i64> {
            let request = format!(r#"{{"jsonrpc":"2.0","method":"peerproof.fail","id":{id}}}"#);
            let unit = of_message(facts, request.as_bytes()).unwrap();
            let refused = |code: &i64| {
                let error = format!(r#"{{"code":{code},"message":"m","data":{{"type":"EXECUTION_ERROR"}}}}"#);
                let response = format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{id}}}"#).parse().unwrap();
                fit(&unit, &response).is_none_or(|allowed| !of_response(&unit, allowed, &response).is_empty())
            };
            [-32600, -32003, -32002, -32000].into_iter().filter(refused).collect()
        };
        assert_eq!(codes_refused(&facts, "1"), [-32600, -32003, -32002]);
        assert_eq!(codes_refused(&facts, "9007199254740993"), [-32003, -32002]);
        facts.features.insert("auth".to_owned(), serde_json::json!({ "key": "k" }));
        assert_eq!(codes_refused(&facts, "1"), [-32600, -32002, -32000]);
    }
}
