//! The methods: lists, resources, prompts, logging, completion.

use super::choices::UnknownResource;
use super::lifecycle;
use super::lists::page;
use super::message::{Failure, INVALID_PARAMS, Outcome, RESOURCE_NOT_FOUND};
use super::method::{Call, Methods, World};
use super::resources::{LEVELS, contents};
use super::{tasks, tools};
use crate::json::{Text, Value};

/// Largest number of values in a completion.
const VALUES_MAX: usize = 100;

/// All methods.
pub(super) fn methods() -> Methods {
    tasks::methods(Methods::default())
        .with("initialize", |call, world| lifecycle::initialize(call, world).into())
        .with("ping", |_, _| Ok(Value::Object(Vec::new())).into())
        .with("tools/list", |call, world| page("tools", call, world).into())
        .with("tools/call", tools::call)
        .with("resources/list", |call, world| page("resources", call, world).into())
        .with("resources/templates/list", |call, world| page("resourceTemplates", call, world).into())
        .with("resources/read", |call, world| read(call, world).into())
        .with("resources/subscribe", |call, world| {
            subscribe(call, world, |world, uri| world.subscriptions.insert(uri)).into()
        })
        .with("resources/unsubscribe", |call, world| {
            subscribe(call, world, |world, uri| world.subscriptions.remove(&uri)).into()
        })
        .with("prompts/list", |call, world| page("prompts", call, world).into())
        .with("prompts/get", |call, world| prompt(call, world).into())
        .with("logging/setLevel", |call, world| set_level(call, world).into())
        .with("completion/complete", |call, world| complete(call, world).into())
}

fn empty() -> Value {
    Value::Object(Vec::new())
}

fn not_found(uri: &Text, world: &World) -> Failure {
    let code = match world.choices.mcp_resource_unknown {
        UnknownResource::NotFound => RESOURCE_NOT_FOUND,
        UnknownResource::InvalidParams => INVALID_PARAMS,
    };
    let data = Some([("uri", Value::String(uri.clone()))].into());
    Failure { code, message: "Resource not found".to_owned(), data }
}

fn read(call: &Call<'_>, world: &World) -> Outcome {
    let uri = call.text("uri")?;
    let contents = contents(uri, world).ok_or_else(|| not_found(uri, world))?;
    Ok([("contents", vec![contents].into())].into())
}

fn subscribe(call: &Call<'_>, world: &mut World, change: fn(&mut World, Text) -> bool) -> Outcome {
    let uri = call.text("uri")?;
    if contents(uri, world).is_none() {
        return Err(not_found(uri, world));
    }
    change(world, uri.clone());
    Ok(empty())
}

fn prompt(call: &Call<'_>, world: &World) -> Outcome {
    let name = call.text("name")?;
    let Some(prompt) = world.catalog.item("prompts", "name", name, world.revision) else {
        return Err(Failure::invalid_params("no prompt has this name"));
    };
    let nothing = empty();
    let given = match call.params.get("arguments") {
        None | Some(Value::Null) => &nothing,
        Some(given @ Value::Object(members))
            if members.iter().all(|(_, value)| value.as_text().is_some()) =>
        {
            given
        }
        Some(_) => return Err(Failure::invalid_params("arguments are not an object of strings")),
    };
    for argument in prompt.get("arguments").and_then(Value::as_array).unwrap_or_default() {
        let name = argument.get("name").and_then(Value::as_str).unwrap_or_default();
        let is_required = argument.get("required").and_then(Value::as_bool) == Some(true);
        if is_required && given.get(name).is_none() {
            return Err(Failure::invalid_params(format!("the argument {name} is missing")));
        }
    }
    let argument =
        |name: &str| given.get(name).and_then(Value::as_text).map(|text| text.to_lossy().into_owned());
    let text = match argument("name") {
        Some(name) => format!("Greet {name} in a {} tone.", argument("tone").unwrap_or("plain".to_owned())),
        None => "Say something.".to_owned(),
    };
    let says = |role: &str, text: &str| {
        let content = [("type", "text".into()), ("text", text.into())].into();
        [("role", role.into()), ("content", content)].into()
    };
    let messages: Vec<Value> = vec![says("user", &text), says("assistant", "With pleasure.")];
    let description = prompt.get("description").cloned().unwrap_or("".into());
    Ok([("description", description), ("messages", messages.into())].into())
}

fn set_level(call: &Call<'_>, world: &mut World) -> Outcome {
    let level = call.text("level")?;
    let Some(level) = LEVELS.iter().position(|name| level == name) else {
        return Err(Failure::invalid_params("no such level"));
    };
    world.level = level;
    Ok(empty())
}

fn complete(call: &Call<'_>, world: &World) -> Outcome {
    let wrong = |what: &str| Failure::invalid_params(what);
    let of = |object: &Value, name: &str| object.get(name).and_then(Value::as_text).cloned();
    let reference = call.params.get("ref").ok_or_else(|| wrong("ref is missing"))?;
    let argument = call.params.get("argument").ok_or_else(|| wrong("argument is missing"))?;
    let (Some(name), Some(begin)) = (of(argument, "name"), of(argument, "value")) else {
        return Err(wrong("argument needs name and value"));
    };
    let item = match reference.get("type").and_then(Value::as_str) {
        Some("ref/prompt") => of(reference, "name")
            .and_then(|name| world.catalog.item("prompts", "name", &name, world.revision)),
        Some("ref/resource") => of(reference, "uri")
            .and_then(|uri| world.catalog.item("resourceTemplates", "uriTemplate", &uri, world.revision)),
        _ => None,
    };
    if item.is_none() {
        return Err(wrong("ref names nothing that is there"));
    }
    let all: Vec<String> = match name.as_str() {
        Some("name") => (0..150).map(|number| format!("name-{number:03}")).collect(),
        Some("tone") => ["loud", "plain"].map(str::to_owned).to_vec(),
        _ => Vec::new(),
    };
    let fitting: Vec<String> =
        all.into_iter().filter(|value| value.as_bytes().starts_with(begin.as_bytes())).collect();
    let total = i64::try_from(fitting.len()).unwrap_or(i64::MAX);
    let has_more = fitting.len() > VALUES_MAX;
    let values: Vec<Value> = fitting.into_iter().take(VALUES_MAX).map(Value::from).collect();
    let completion =
        [("values", values.into()), ("total", total.into()), ("hasMore", has_more.into())].into();
    Ok([("completion", completion)].into())
}
