//! From a JSON value to a request (JSON-RPC 2.0 §4, contract §7 "Messages, ids, batches").

use std::borrow::Cow;

use super::choices::{Choices, FractionalId, NullId, ParamsNull, ParamsScalar, ResponseToServer};
use super::params::Params;
use super::reply::Failure;
use crate::json::{Kind, Raw, Scanned};

/// A request or a notification.
#[derive(Debug)]
pub(super) struct Request<'t> {
    /// Unescaped bytes of the method's name.
    pub method: Cow<'t, [u8]>,
    /// Params of the method.
    pub params: Params<'t>,
    /// Id as spelled; `None` for a notification.
    pub id: Option<&'t str>,
    /// Raw text of the request.
    pub text: &'t str,
}

/// A message that is not a request.
#[derive(Debug)]
pub(super) enum Refusal<'t> {
    /// Answer with this error and this id.
    Answer(Failure, Option<&'t str>),
    /// Drop it.
    Silent,
}

/// Reads one request object.
pub(super) fn read<'t>(scanned: &Scanned<'_, 't>, choices: &Choices) -> Result<Request<'t>, Refusal<'t>> {
    if scanned.kind() != Kind::Object {
        return Err(Refusal::Answer(Failure::invalid_request("a request is an object"), None));
    }
    let (mut jsonrpc, mut method, mut params, mut id, mut is_response) = (None, None, None, None, false);
    for (name, value) in scanned.members() {
        // An escaped name is still the same name.
        let slot = match name.bytes().as_ref() {
            b"jsonrpc" => &mut jsonrpc,
            b"method" => &mut method,
            b"params" => &mut params,
            b"id" => &mut id,
            b"result" | b"error" => {
                is_response = true;
                continue;
            }
            _ => continue,
        };
        *slot = Some(value);
    }
    if is_response && method.is_none() && choices.response_to_server == ResponseToServer::Silent {
        return Err(Refusal::Silent);
    }
    let id = id.map(|id| read_id(id, choices));
    let refuse = |why: &str| {
        let readable = id.as_ref().and_then(|id| id.as_ref().ok().copied());
        Err(Refusal::Answer(Failure::invalid_request(why), readable))
    };
    if !jsonrpc.and_then(Raw::as_str).is_some_and(|version| version.is("2.0")) {
        return refuse("jsonrpc is not \"2.0\"");
    }
    let Some(method) = method.and_then(Raw::as_str) else { return refuse("method is not a string") };
    let params = match params.map(|params| (params, params.kind())) {
        None => Params::absent(),
        Some((params, Kind::Array | Kind::Object)) => Params::structured(params),
        Some((_, Kind::Null)) if choices.params_null == ParamsNull::Absent => Params::absent(),
        Some(_) if choices.params_scalar == ParamsScalar::InvalidParams => Params::malformed(),
        Some(_) => return refuse("params are neither an array nor an object"),
    };
    let id = match id {
        None => None,
        Some(Ok(id)) if id == super::reply::NULL && choices.null_id == NullId::Silent => None,
        Some(Ok(id)) => Some(id),
        Some(Err(why)) => return Err(Refusal::Answer(Failure::invalid_request(why), None)),
    };
    Ok(Request { method: method.bytes(), params, id, text: scanned.text() })
}

/// Id for the reply.
fn read_id<'t>(id: Raw<'t>, choices: &Choices) -> Result<&'t str, &'static str> {
    match id.kind() {
        Kind::String => Ok(id.text()),
        Kind::Null if choices.null_id == NullId::Refuse => Err("id is null"),
        Kind::Null => Ok(id.text()),
        Kind::Number => {
            let fractional = id.text().bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
            if fractional && choices.fractional_id == FractionalId::Refuse {
                return Err("id is no integer");
            }
            Ok(id.text())
        }
        Kind::Bool(_) | Kind::Array | Kind::Object => Err("id is neither a string nor a number"),
    }
}
