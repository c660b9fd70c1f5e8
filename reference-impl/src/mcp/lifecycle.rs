//! Opening of a session.

use super::choices::{SecondInitialize, UnknownVersion};
use super::message::{Failure, INVALID_PARAMS, Outcome};
use super::method::{Call, Phase, World};
use super::revision::Revision;
use crate::json::Value;

/// `initialize`
pub(super) fn initialize(call: &Call<'_>, world: &mut World) -> Outcome {
    if world.phase > Phase::New && world.choices.mcp_second_initialize == SecondInitialize::Error {
        return Err(Failure::invalid_request("the session is open already"));
    }
    let asked = call.text("protocolVersion")?;
    let client = match call.params.get("capabilities") {
        None => Value::Object(Vec::new()),
        Some(client @ Value::Object(_)) => client.clone(),
        Some(_) => return Err(Failure::invalid_params("capabilities are not an object")),
    };
    let known = asked.as_str().and_then(Revision::find).filter(|revision| *revision <= world.newest);
    if known.is_none() && world.choices.mcp_unknown_version == UnknownVersion::Error {
        let supported = Revision::ALL.iter().filter(|revision| **revision <= world.newest);
        let supported: Vec<Value> = supported.map(|revision| revision.name().into()).collect();
        let data = [("supported", supported.into()), ("requested", Value::String(asked.clone()))].into();
        let message = "Unsupported protocol version".to_owned();
        return Err(Failure { code: INVALID_PARAMS, message, data: Some(data) });
    }
    let revision = known.unwrap_or(world.newest);
    world.revision = revision;
    world.client = client;
    world.phase = world.phase.max(Phase::Opened);
    let mut result: Vec<(&str, Value)> = vec![
        ("protocolVersion", revision.name().into()),
        ("capabilities", world.catalog.object("capabilities", revision)),
        ("serverInfo", world.catalog.object("serverInfo", revision)),
    ];
    result.extend(world.catalog.0.get("instructions").map(|text| ("instructions", text.clone())));
    Ok(Value::Object(result.into_iter().map(|(name, value)| (name.into(), value)).collect()))
}
