//! Faults in a dispatcher's requests to a toolhost, as far as a recorded conversation shows them.

use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::Transcript;

/// Clause: each request is one strict JSON object.
const ONE_OBJECT: &str = "TH-DISP-03";
/// Clause: the request has one of two shapes.
const SHAPE: &str = "TH-DISP-02";

/// Judges the requests of each session.
pub(crate) fn judge(transcript: &Transcript) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (session, spec) in transcript.plan.sessions.iter().enumerate() {
        let serve = spec.command != "run";
        let lines = match serve {
            true => lines::of_session(transcript, session),
            false => lines::of_run(transcript, session).into_iter().collect(),
        };
        for line in lines {
            if let Some((clause, reason, expected)) = fault(&line.bytes, serve) {
                let text = String::from_utf8_lossy(&line.bytes);
                findings.push(Finding::new(clause, reason, expected, shorten(&text, 240)).at(line.step));
            }
        }
    }
    findings
}

/// Clause, reason code and expectation.
fn fault(bytes: &[u8], serve: bool) -> Option<(&'static str, &'static str, &'static str)> {
    if serve && bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let Ok(decoded) = json::decode(bytes, &DecodeLimits::default()) else {
        return Some((ONE_OBJECT, "not_json", "one strict JSON object in UTF-8"));
    };
    let request = decoded.value;
    if request.as_object().is_none() {
        return Some((ONE_OBJECT, "not_an_object", "one strict JSON object in UTF-8"));
    }
    let aid = request.get("aid");
    if (serve || aid.is_some()) && aid.and_then(Json::as_str).is_none_or(str::is_empty) {
        return Some((SHAPE, "no_aid", "`aid`, a string that is not empty"));
    }
    if request.get("input_json").is_some_and(|input| input.as_str().is_none()) {
        return Some((SHAPE, "input_type", "`input_json` that is a string, or `inputs` that is an object"));
    }
    if request.get("input_json").is_none()
        && request.get("inputs").is_some_and(|input| input.as_object().is_none())
    {
        return Some((SHAPE, "input_type", "`input_json` that is a string, or `inputs` that is an object"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes_are_right_and_others_are_named() {
        for good in [
            r#"{"aid":"AID.X","input_json":"{}"}"#,
            r#"{"aid":"AID.X","inputs":{}}"#,
            r#"{"aid":"AID.X"}"#,
            " ",
        ] {
            assert_eq!(fault(good.as_bytes(), true), None, "{good}");
        }
        assert_eq!(fault(b"{}", false), None);
        for (bad, reason) in [
            ("{", "not_json"),
            ("[]", "not_an_object"),
            ("{}", "no_aid"),
            (r#"{"aid":""}"#, "no_aid"),
            (r#"{"aid":"a","input_json":{}}"#, "input_type"),
            (r#"{"aid":"a","inputs":"{}"}"#, "input_type"),
        ] {
            assert_eq!(fault(bad.as_bytes(), true).map(|(_, reason, _)| reason), Some(reason), "{bad}");
        }
    }
}
