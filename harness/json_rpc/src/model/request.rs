//! Allowed replies to one message.

use super::allowed;
use super::pins::Pins;
use super::{
    Allowed, AllowedAnswer, AnswerKind, Demand, IdRule, RequestNotes, RequestPart, code, methods, profile,
};
use peerproof_engine::contract::face::{Outcome, Subject};
use peerproof_engine::data::json::{Json, TextProperties};

const KNOWN_MEMBERS: [&str; 5] = ["jsonrpc", "method", "params", "id", "auth"];

/// Allowed replies to a value that should be a request but is not an object.
pub(crate) fn no_object(clause: &'static str) -> RequestPart {
    allowed::unit(None, clause, vec![allowed::error(&[code::REQUEST], IdRule::Null)])
}

/// Allowed replies to an object. `facts` are those of its text.
pub(super) fn unit(message: &Json, facts: &TextProperties, pins: &Pins) -> RequestPart {
    let unsignable = pins.gate.borrow_mut().unsignable(message, facts);
    if let Some(unit) = unsignable {
        return unit;
    }
    if !facts.duplicate_keys && !facts.lone_surrogates {
        return plain(message, pins);
    }
    // The contract leaves open which of two equal members counts, and the value of a lone surrogate.
    let mut unit = if facts.duplicate_keys { doubtful(message, pins) } else { plain(message, pins) };
    let (clause, choice) = if facts.duplicate_keys {
        ("RPC-JSON-04", "duplicate_keys")
    } else {
        ("RPC-JSON-05", "lone_surrogates")
    };
    let refused = allowed::error(&[code::PARSE, code::REQUEST], IdRule::OwnOrNull);
    // A method may fail on such params.
    let failed = allowed::error(&[code::PARAMS, code::INTERNAL, -32000], IdRule::Own);
    unit.allowed.push(refused.shows("refuse"));
    if unit.extra.id.as_ref().and_then(Json::as_str).is_some_and(|id| id.contains('\u{FFFD}')) {
        unit.allowed.push(allowed::reply(IdRule::Any));
    }
    if unit.extra.id.is_some() {
        unit.allowed.push(failed.shows("refuse"));
    }
    unit.clause = clause;
    unit.extra.counts.0 = 0;
    if unit.choice.is_some_and(|other| other != choice) {
        unit.clear_choices();
    } else {
        unit.choice = Some(choice);
    }
    unit
}

/// A message in a text with duplicate keys.
fn doubtful(message: &Json, pins: &Pins) -> RequestPart {
    let members = message.as_object().unwrap_or_default();
    let doubled = |name: &str| members.iter().filter(|(known, _)| known == name).count() > 1;
    if !KNOWN_MEMBERS.iter().any(|name| doubled(name)) {
        // The duplicates are nested, or in unknown members.
        let mut unit = plain(message, pins);
        if !unit.must_be_silent() {
            let id = match unit.extra.id {
                Some(_) => IdRule::Own,
                // A request with id null has no id of its own, so the reply may belong to another element of the
                // batch.
                None => {
                    unit.extra.error_rule = None;
                    IdRule::Null
                }
            };
            unit.allowed.push(allowed::reply(id));
        }
        return unit;
    }
    let once = |first: bool| {
        let mut kept: Vec<(String, Json)> = Vec::new();
        for (name, value) in members {
            match kept.iter_mut().find(|(known, _)| known == name) {
                Some(_) if first => {}
                Some((_, last)) => *last = value.clone(),
                None => kept.push((name.clone(), value.clone())),
            }
        }
        plain(&Json::Object(kept), pins)
    };
    let (mut first, last) = (once(true), once(false));
    if first == last {
        return first;
    }
    if first.extra.id == last.extra.id {
        first.allowed.iter_mut().for_each(|allowed| allowed.shows = Some("first"));
        first.allowed.extend(last.allowed.into_iter().map(|allowed| allowed.shows("last")));
        first.choice = Some("duplicate_keys");
        first.extra.counts = (0, first.extra.counts.1.max(last.extra.counts.1));
        return first;
    }
    // With two ids no one can tell which is right, so any reply is allowed.
    let mut unit = allowed::unit(None, "RPC-JSON-04", vec![Allowed::silence(), allowed::reply(IdRule::Any)]);
    unit.extra.counts = (0, first.extra.counts.1.max(last.extra.counts.1));
    unit
}

fn plain(message: &Json, pins: &Pins) -> RequestPart {
    let id = message.get("id");
    let carried = id.filter(|id| matches!(id, Json::String(_) | Json::Number(_))).cloned();
    let invalid = |clause: &'static str| {
        let rule = if carried.is_some() { IdRule::OwnOrNull } else { IdRule::Null };
        allowed::unit(carried.clone(), clause, vec![allowed::error(&[code::REQUEST], rule)])
    };
    if matches!(id, Some(Json::Bool(_) | Json::Array(_) | Json::Object(_))) {
        return invalid("RPC-ID-05");
    }
    let is_response = message.get("method").is_none()
        && (message.get("result").is_some() || message.get("error").is_some());
    if is_response {
        let mut unit = invalid("RPC-REQ-05").about("response_to_server");
        unit.allowed[0].shows = Some("refuse");
        unit.allowed.push(Allowed::silence().shows("silent"));
        return unit;
    }
    match message.get("jsonrpc") {
        Some(version) if version.as_str() == Some("2.0") => {}
        Some(_) => return invalid("RPC-REQ-01"),
        None => {
            // Servers may accept requests of JSON-RPC 1.0, which lack this member; then any reply is allowed.
            let mut unit = invalid("RPC-REQ-01");
            if !pins.profile {
                unit.allowed.extend([allowed::reply(IdRule::OwnOrNull), Allowed::silence()]);
                unit.extra.old = true;
            }
            return unit;
        }
    }
    let Some(method) = message.get("method").and_then(Json::as_str) else { return invalid("RPC-REQ-02") };
    let mut unit = called(message, method, pins);
    if method.is_empty() && !unit.must_be_silent() {
        unit.allowed.extend(invalid("RPC-REQ-02").allowed);
    }
    let members = message.as_object().unwrap_or_default();
    if !pins.profile && members.iter().any(|(name, _)| !KNOWN_MEMBERS.contains(&name.as_str())) {
        // The specification does not demand that unknown members are ignored.
        unit.allowed.extend(invalid("RPC-REQ-04").allowed);
    }
    pins.gate.borrow_mut().apply(message, &mut unit);
    unit
}

/// A request with valid version and method.
fn called(message: &Json, method: &str, pins: &Pins) -> RequestPart {
    let id = message.get("id");
    let Some(id) = id else { return notification(message, method, pins) };
    let mut unit = request(id.clone(), message, method, pins);
    let is_open = unit.choice.is_some();
    match id {
        Json::Null => {
            // The request may be answered, taken for a notification, or refused.
            (unit.extra.id, unit.subject) = (None, Subject::Key(None));
            for allowed in &mut unit.allowed {
                allowed.shows = Some("answer");
                if let Outcome::Answer(way) = &mut allowed.outcome {
                    way.id = IdRule::Null;
                }
            }
            unit.allowed.push(Allowed::silence().shows("silent"));
            unit.allowed.push(allowed::error(&[code::REQUEST], IdRule::Null).shows("refuse"));
            (unit.clause, unit.choice) = ("RPC-ID-04", Some("null_id"));
            unit.extra.counts.0 = 0;
        }
        Json::Number(number) if !is_spelled_integer(number.text()) => {
            unit.allowed.iter_mut().for_each(|allowed| allowed.shows = Some("echo"));
            unit.allowed.push(allowed::error(&[code::REQUEST], IdRule::OwnOrNull).shows("refuse"));
            (unit.clause, unit.choice) = ("RPC-ID-03", Some("fractional_id"));
            unit.extra.counts.0 = 0;
            if number.as_f64().is_none_or(|value| value.fract() == 0.0) {
                // Some JSON readers cannot distinguish 1e2 from 100, whatever they do with fractions.
                unit.clear_choices();
            }
        }
        id if super::value::has_big_numbers(id) => {
            // The id may be exact, rounded or refused.
            unit.allowed.push(allowed::error(&[code::REQUEST, code::PARSE], IdRule::OwnOrNull));
            unit.clause = "RPC-JSON-06";
            unit.extra.counts.0 = 0;
        }
        _ => return unit,
    }
    if is_open {
        unit.clear_choices();
    }
    unit
}

/// True for a number without fraction and exponent; only such numbers count as integers.
fn is_spelled_integer(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

fn notification(message: &Json, method: &str, pins: &Pins) -> RequestPart {
    let mut unit = allowed::unit(None, "RPC-NOTE-01", vec![Allowed::silence()]);
    match message.get("params") {
        Some(Json::Null) => {
            // null may count as absent, or as invalid before the message is recognised as a notification.
            unit.allowed.push(allowed::error(&[code::REQUEST, code::PARAMS], IdRule::Null));
        }
        Some(Json::Array(_) | Json::Object(_)) | None => {}
        Some(_) => unit.allowed.push(allowed::error(&[code::REQUEST], IdRule::Null)),
    }
    if method.starts_with("rpc.") || method.is_empty() {
        unit.allowed.push(allowed::error(&[code::REQUEST], IdRule::Null));
    }
    if pins.method(method).is_some_and(|(name, _)| *name == "counter") {
        let certain = unit.allowed.len() == 1
            && matches!(message.get("params"), None | Some(Json::Object(_)))
            && message.get("params").is_none_or(|params| params.as_object().is_some_and(<[_]>::is_empty));
        unit.extra.counts = (u64::from(certain), 1);
    }
    unit
}

fn request(id: Json, message: &Json, method: &str, pins: &Pins) -> RequestPart {
    let params = message.get("params");
    let own = |clause, allowed| allowed::unit(Some(id.clone()), clause, allowed);
    if method.starts_with("rpc.") {
        let unit = own(
            "RPC-METHOD-02",
            vec![
                allowed::error(&[code::METHOD], IdRule::Own).shows("-32601"),
                allowed::error(&[code::REQUEST], IdRule::OwnOrNull).shows("-32600"),
                allowed::reply(IdRule::Own).shows("answer"),
            ],
        );
        return unit.about("rpc_prefix");
    }
    if pins.is_unknown(method) {
        let mut unit = own("RPC-METHOD-01", vec![allowed::error(&[code::METHOD], IdRule::Own)]);
        if methods::INHERITED.contains(&method) {
            // A server may refuse such a name as a precaution.
            unit.allowed.push(allowed::error(&[code::REQUEST], IdRule::OwnOrNull));
        }
        if params.is_some_and(|params| !matches!(params, Json::Array(_) | Json::Object(_))) {
            unit.allowed.push(allowed::error(&[code::REQUEST, code::PARAMS], IdRule::OwnOrNull));
        }
        return unit;
    }
    let role = pins.method(method);
    let of_profile = pins.is_of_profile(method);
    if role.is_none() && !of_profile {
        // The peer may have this method or not.
        let mut unit = own("RPC-FRAME-01", vec![allowed::reply(IdRule::Own)]);
        if params.is_some_and(|params| !matches!(params, Json::Array(_) | Json::Object(_))) {
            unit.allowed.push(allowed::error(&[code::REQUEST], IdRule::OwnOrNull));
        }
        return unit;
    }
    let called = |params: Option<&Json>| {
        let Some(role) = role.filter(|_| of_profile) else {
            return match role {
                Some(role) => methods::called(id.clone(), role, params, pins),
                None => profile::called(id.clone(), method, params),
            };
        };
        let is_error = |allowed: &Allowed| {
            matches!(&allowed.outcome, Outcome::Answer(AllowedAnswer { what: AnswerKind::Error(_), .. }))
        };
        let mut unit = profile::called(id.clone(), method, params);
        if unit.allowed.iter().all(is_error) {
            // Params that the profile refuses stay wrong, whatever the role says.
            return unit;
        }
        let by_role = methods::called(id.clone(), role, params, pins);
        match role.0 {
            "named" | "stream" => {
                // The configuration says that these params succeed.
                if params.is_some() && params == methods::known_params(&role.1).as_ref() {
                    unit.allowed = vec![allowed::result(Demand::Any)];
                }
                unit
            }
            _ => {
                let extra = RequestNotes { shape: unit.extra.shape, ..by_role.extra };
                RequestPart { extra, ..by_role }
            }
        }
    };
    match params {
        Some(Json::Null) => {
            let mut unit = called(None);
            unit.allowed.iter_mut().for_each(|allowed| allowed.shows = Some("absent"));
            // -32602 may also mean that the absent params are missing.
            let invalid = allowed::error(&[code::REQUEST], IdRule::OwnOrNull).shows("refuse");
            let missing = allowed::error(&[code::PARAMS], IdRule::OwnOrNull).shows("absent|refuse");
            unit.allowed.splice(0..0, [invalid, missing]);
            (unit.clause, unit.extra.counts.0) = ("RPC-PARAMS-05", 0);
            unit.about("params_null")
        }
        None | Some(Json::Array(_) | Json::Object(_)) => called(params),
        Some(_) => {
            let unit = own(
                "RPC-PARAMS-06",
                vec![
                    allowed::error(&[code::REQUEST], IdRule::OwnOrNull).shows("-32600"),
                    allowed::error(&[code::PARAMS], IdRule::Own).shows("-32602"),
                ],
            );
            unit.about("params_scalar")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{fit, of_message};
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;

    fn accepts(choices: &[(&str, &str)], request: &str, response: &str) -> bool {
        let mut facts = Facts::new(Side::Provider);
        facts.choices.extend(choices.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let unit = of_message(&facts, request.as_bytes()).unwrap();
        fit(&unit, &response.parse().unwrap()).is_some()
    }

    #[test]
    fn a_role_never_weakens_the_profile() {
        let call = r#"{"jsonrpc":"2.0","method":"update_context","params":{},"id":1}"#;
        let done = r#"{"jsonrpc":"2.0","result":null,"id":1}"#;
        let mut facts = Facts::new(Side::Provider);
        facts.features.insert("profile_methods".to_owned(), true.into());
        for role in ["named", "echo", "counter", "stream"] {
            facts.roles =
                [(role.to_owned(), serde_json::json!({ "method": "update_context", "params": {} }))].into();
            let unit = of_message(&facts, call.as_bytes()).unwrap();
            assert!(fit(&unit, &done.parse().unwrap()).is_none(), "{role}");
        }
    }

    #[test]
    fn named_params_are_a_matter_of_the_profile() {
        let mut facts = Facts::new(Side::Provider);
        let role = serde_json::json!({ "method": "minus", "params": {}, "expect": "difference" });
        facts.roles.insert("named".to_owned(), role);
        let mut fits = |set: &str, params: &str, result: &str| {
            facts.requirements = set.to_owned();
            let request = format!(r#"{{"jsonrpc":"2.0","method":"minus","params":{params},"id":1}}"#);
            let unit = of_message(&facts, request.as_bytes()).unwrap();
            fit(&unit, &format!(r#"{{"jsonrpc":"2.0",{result},"id":1}}"#).parse().unwrap()).is_some()
        };
        let (null, failed) = (r#""result":null"#, r#""error":{"code":-32603,"message":"m"}"#);
        for params in
            [r#"{"minuend":42}"#, r#"{"a":1}"#, "[]", "[1,2,3]", r#"{"minuend":1,"subtrahend":1,"x":1}"#]
        {
            for answer in [null, failed] {
                assert!(fits("spec", params, answer), "{params} {answer}");
            }
            assert!(!fits("profile", params, failed), "{params}");
        }
        assert!(fits("profile", r#"{"minuend":42}"#, r#""error":{"code":-32602,"message":"m"}"#));
        assert!(!fits("spec", r#"{"minuend":42,"subtrahend":23}"#, null));
    }

    const FRACTION: &str = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":1.5}"#;
    const REFUSED: &str = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"m"},"id":null}"#;

    #[test]
    fn a_peer_that_refuses_fractions_may_take_what_has_none() {
        let refuse = [("fractional_id", "refuse")];
        let answered = FRACTION
            .replace("\"method\"", "\"error\"")
            .replace("\"peerproof.no_such_method\"", "{\"code\":-32601,\"message\":\"m\"}");
        assert!(accepts(&refuse, FRACTION, REFUSED));
        assert!(!accepts(&refuse, FRACTION, &answered));
        assert!(accepts(&[("fractional_id", "echo")], FRACTION, &answered));
        let (whole, answered) = (FRACTION.replace("1.5", "1e2"), answered.replace("1.5", "100"));
        assert!(accepts(&refuse, &whole, &answered));
        assert!(accepts(&refuse, &whole, REFUSED));
        assert!(!accepts(&refuse, &whole, &answered.replace("100", "101")));
    }

    #[test]
    fn of_two_open_questions_either_may_decide() {
        let surrogate = FRACTION.replace("\"id\"", "\"params\":[\"\\ud800\"],\"id\"");
        assert!(accepts(&[("lone_surrogates", "echo")], &surrogate, REFUSED));
        assert!(accepts(&[("fractional_id", "echo")], &surrogate, REFUSED));
        let double = FRACTION.replace("\"id\"", "\"params\":{\"a\":1,\"a\":2},\"id\"");
        assert!(accepts(&[("fractional_id", "echo"), ("duplicate_keys", "refuse")], &double, REFUSED));
    }
}
