//! Allowed replies of the methods of known roles.

use super::super::role::Role;
use super::allowed;
use super::value::{has_big_numbers, has_numbers_beyond_doubles};
use super::{
    Allowed, AnswerKind, Codes, Demand, ErrorRule, IdRule, NOT_FROM_METHODS_OF_THE_PROFILE, Pins,
    RequestPart, code, work,
};
use peerproof_engine::data::json::Json;

/// Beginning of method names that no server has.
pub(super) const UNKNOWN: &str = "peerproof.no_such_method";
/// Names of members that languages give to every object. No server has methods with these names.
pub(super) const INHERITED: [&str; 4] = ["__proto__", "hasOwnProperty", "__init__", "__class__"];

/// Error codes of messages that never reached a method.
const NOT_FROM_METHODS: &[i64] = &[code::PARSE, code::REQUEST, code::METHOD];

/// Required error of a method that raises.
const RAISED: ErrorRule = ErrorRule {
    clause: "RPC-ERR-03",
    codes: &[code::INTERNAL, code::EXECUTION],
    of: code::EXECUTION,
    types: &["EXECUTION_ERROR"],
};

/// Allowed replies to a call of a role's method. `params` are absent, an array or an object.
pub(super) fn called(
    id: Json,
    (name, role): &(&'static str, Role),
    params: Option<&Json>,
    pins: &Pins,
) -> RequestPart {
    let profile = pins.profile;
    let any = || allowed::reply(IdRule::Own);
    let is_empty = match params {
        None => true,
        Some(Json::Array(items)) => items.is_empty(),
        Some(Json::Object(members)) => members.is_empty(),
        Some(_) => false,
    };
    let mut unit = allowed::unit(Some(id), "RPC-FRAME-01", Vec::new());
    match *name {
        "echo" => {
            unit.clause =
                if matches!(params, Some(Json::Array(_))) { "RPC-PARAMS-02" } else { "RPC-PARAMS-01" };
            match params {
                None => unit.allowed = vec![any()],
                // A method that returns its params may not distinguish between empty ones.
                Some(_) if is_empty => {
                    let empty = vec![Json::Array(Vec::new()), Json::Object(Vec::new()), Json::Null];
                    unit.allowed = vec![allowed::result(Demand::OneOf(empty))];
                }
                Some(params) if has_numbers_beyond_doubles(params) => {
                    unit.clause = "RPC-JSON-11";
                    unit.allowed = vec![allowed::result(Demand::Rounds(params.clone())), refused()];
                }
                Some(params) if has_big_numbers(params) => {
                    unit.clause = "RPC-JSON-06";
                    unit.choice = Some("big_integers");
                    unit.allowed = vec![
                        allowed::result(Demand::Equals(params.clone())).shows("exact"),
                        allowed::result(Demand::Rounds(params.clone())).shows("round"),
                        refused(),
                    ];
                }
                Some(params) => unit.allowed = vec![allowed::result(Demand::Equals(params.clone()))],
            }
        }
        "fail" if is_empty => {
            unit.clause = "RPC-ERR-02";
            let not = if profile { NOT_FROM_METHODS_OF_THE_PROFILE } else { NOT_FROM_METHODS };
            let what = AnswerKind::Error(Codes::But(not));
            unit.allowed = vec![allowed::way(what, IdRule::Own)];
            unit.extra.error_rule = profile.then_some(RAISED);
        }
        "counter" if is_empty => {
            unit.clause = "RPC-NOTE-02";
            unit.extra.counts = (1, 1);
            unit.allowed = vec![allowed::result(Demand::Count(1, 1))];
        }
        "named" => named(&mut unit, role, params, profile),
        "sleep" => work::sleep(&mut unit, role, params, pins),
        "blob" => work::blob(&mut unit, role, params, pins),
        "stream" if params.is_some() && params == known_params(role).as_ref() => {
            unit.allowed = vec![allowed::result(Demand::Any)];
        }
        _ => {
            unit.allowed = vec![any()];
            if *name == "counter" {
                unit.extra.counts = (0, 1);
            }
        }
    }
    unit
}

fn refused() -> Allowed {
    // An error of the peer, or of the method.
    allowed::way(AnswerKind::Error(Codes::But(&[code::METHOD])), IdRule::OwnOrNull).shows("refuse")
}

/// Params with which the method succeeds, according to the configuration.
pub(crate) fn known_params(role: &Role) -> Option<Json> {
    role.params.as_ref().and_then(|params| params.to_string().parse::<Json>().ok())
}

/// Allowed replies of a method that takes named params and succeeds with those of the configuration. Only the
/// profile says how it treats unknown, missing and positional params (readings §7 Methods).
fn named(unit: &mut RequestPart, role: &Role, params: Option<&Json>, profile: bool) {
    let invalid = allowed::error(&[code::PARAMS], IdRule::Own);
    let difference = role.expect.as_deref() == Some("difference");
    let known = known_params(role);
    unit.clause = "RPC-PARAMS-01";
    let number = |value: Option<&Json>| value.and_then(Json::as_i64).filter(|n| n.unsigned_abs() < 1 << 31);
    let minus = |a: Option<&Json>, b: Option<&Json>| Some(Json::from(number(a)? - number(b)?));
    match params {
        Some(Json::Object(members)) if difference => {
            let of = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            match minus(of("minuend"), of("subtrahend")) {
                Some(result) if members.len() == 2 => {
                    unit.allowed = vec![allowed::result(Demand::Equals(result))];
                }
                _ if !profile => unit.allowed = vec![allowed::reply(IdRule::Own)],
                Some(result) => unit.allowed = vec![allowed::result(Demand::Equals(result)), invalid],
                None if of("minuend").is_none() || of("subtrahend").is_none() => {
                    unit.clause = "RPC-PARAMS-03";
                    unit.allowed = vec![invalid];
                }
                None => unit.allowed = vec![allowed::reply(IdRule::Own)],
            }
        }
        Some(object @ Json::Object(_)) if known.as_ref() == Some(object) => {
            unit.allowed = vec![allowed::result(Demand::Any)];
        }
        Some(Json::Array(items)) if difference && profile => {
            // A method may accept both named and positional params.
            unit.clause = "RPC-PARAMS-04";
            unit.allowed = match (minus(items.first(), items.get(1)), items.len()) {
                (Some(result), 2) => vec![invalid, allowed::result(Demand::Equals(result))],
                (None, 2) => vec![allowed::reply(IdRule::Own)],
                (_, 0 | 1) => vec![invalid],
                _ => vec![invalid, allowed::result(Demand::Any)],
            };
        }
        _ => unit.allowed = vec![allowed::reply(IdRule::Own)],
    }
}
