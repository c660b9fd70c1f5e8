//! `tools/call` and the tools.

use super::choices::InvalidArguments;
use super::message::{Failure, Outcome, notification};
use super::method::{Answer, Call, Methods, Phase, Step, World};
use super::resources::{COUNTER, LEVELS, PIXEL, contents};
use super::revision::Revision;
use super::{schema, tasks};
use crate::json::{Value, write_value};

/// Name of the logger of log messages.
const LOGGER: &str = "peerproof";

/// Duration of a call of `job`, in ms.
const JOB_MS: u64 = 20;
/// Number of progress notifications per call.
const PROGRESS_STEPS: i64 = 4;

/// All tools.
pub(super) fn tools() -> Methods {
    Methods::default()
        .with("echo", |call, _| Ok(text_result(call.params.get("text").cloned())).into())
        .with("sleep", |call, _| sleep(call))
        .with("noargs", |_, _| Ok(text_result(Some("nothing".into()))).into())
        .with("counter", |_, world| counter(world))
        .with("blob", |call, _| {
            let bytes = call.params.get("bytes").and_then(Value::as_i64).unwrap_or_default();
            let data = "x".repeat(usize::try_from(bytes).unwrap_or_default());
            Ok(text_result(Some(format!("{{\"data\":\"{data}\"}}").into()))).into()
        })
        .with("job", |_, _| {
            Answer::Later(vec![Step::Wait(JOB_MS), Step::Done(Ok(text_result(Some("done".into()))))])
        })
        .with("fail", |call, _| Ok(failed(call.params.get("text").cloned())).into())
        .with("log", |_, world| log(world))
        .with("ask", |_, world| ask(world))
        .with("media", |_, world| media(world).into())
        .with("measure", |call, world| measure(call, world).into())
}

/// `tools/call`
pub(super) fn call(call: &Call<'_>, world: &mut World) -> Answer {
    match find(call, world) {
        Ok((tool, arguments)) => match tasks::support(call, &tool, world) {
            Ok(true) => {
                let answer = run(call, &tool, &arguments, world);
                tasks::begin(call, answer, world)
            }
            Ok(false) => run(call, &tool, &arguments, world),
            Err(failure) => Answer::Done(Err(failure)),
        },
        Err(failure) => Answer::Done(Err(failure)),
    }
}

/// Description of the called tool, and its arguments.
fn find(call: &Call<'_>, world: &World) -> Result<(Value, Value), Failure> {
    let name = call.text("name")?;
    let Some(tool) = world.catalog.item("tools", "name", name, world.revision) else {
        return Err(Failure::invalid_params("no tool has this name"));
    };
    match call.params.get("arguments") {
        None | Some(Value::Null) => Ok((tool, Value::Object(Vec::new()))),
        Some(arguments @ Value::Object(_)) => Ok((tool, arguments.clone())),
        Some(_) => Err(Failure::invalid_params("arguments are not an object")),
    }
}

fn run(call: &Call<'_>, tool: &Value, arguments: &Value, world: &mut World) -> Answer {
    if let Some(fault) =
        tool.get("inputSchema").and_then(|schema| schema::fault(schema, arguments, "arguments"))
    {
        let is_error =
            world.revision >= Revision::V25c || world.choices.mcp_invalid_args == InvalidArguments::IsError;
        return if is_error {
            Ok(failed(Some(fault.into()))).into()
        } else {
            Err(Failure::invalid_params(fault)).into()
        };
    }
    let tools = std::mem::take(&mut world.tools);
    let answer = match tool.get("name").and_then(Value::as_text).and_then(|name| tools.get(name)) {
        Some(tool) => tool(&Call { params: arguments, has_params: true, token: call.token.clone() }, world),
        None => Err(Failure::invalid_params("no tool has this name")).into(),
    };
    world.tools = tools;
    answer
}

fn text_block(text: Value) -> Value {
    [("type", "text".into()), ("text", text)].into()
}

/// Result with one text block.
fn text_result(text: Option<Value>) -> Value {
    let blocks = vec![text_block(text.unwrap_or("".into()))];
    [("content", blocks.into()), ("isError", false.into())].into()
}

/// Result of a failed call.
fn failed(text: Option<Value>) -> Value {
    let blocks = vec![text_block(text.unwrap_or("it failed".into()))];
    [("content", blocks.into()), ("isError", true.into())].into()
}

/// `{"ms":n,"text":"…"}` → the text after that time, with progress notifications in between.
fn sleep(call: &Call<'_>) -> Answer {
    let ms = call.params.get("ms").and_then(Value::as_i64).unwrap_or_default();
    let text = call.params.get("text").cloned().unwrap_or_else(|| format!("slept {ms} ms").into());
    let done = Step::Done(Ok(text_result(Some(text))));
    let ms = u64::try_from(ms).unwrap_or_default();
    let Some(token) = &call.token else { return Answer::Later(vec![Step::Wait(ms), done]) };
    let mut steps = Vec::new();
    let parts = PROGRESS_STEPS.unsigned_abs();
    for (part, progress) in (0..parts).zip(1_i64..) {
        let params = [
            ("progressToken", token.clone()),
            ("progress", progress.into()),
            ("total", PROGRESS_STEPS.into()),
        ];
        steps.push(Step::Say(notification("notifications/progress", params.into())));
        steps.push(Step::Wait(ms * (part + 1) / parts - ms * part / parts));
    }
    steps.push(done);
    Answer::Later(steps)
}

fn counter(world: &mut World) -> Answer {
    world.count += 1;
    let done = Step::Done(Ok(text_result(Some(format!("{{\"count\":{}}}", world.count).into()))));
    let mut steps = Vec::new();
    if world.subscriptions.iter().any(|uri| uri == COUNTER) {
        let params = [("uri", COUNTER.into())].into();
        steps.push(Step::Say(notification("notifications/resources/updated", params)));
    }
    steps.push(done);
    Answer::Later(steps)
}

fn log(world: &World) -> Answer {
    let mut steps = Vec::new();
    let levels = if world.catalog.declares("logging", world.revision) { &LEVELS[..] } else { &[] };
    for level in levels.iter().skip(world.level) {
        let data = [("note", "a message of this level".into()), ("level", (*level).into())];
        let params = [("level", (*level).into()), ("logger", LOGGER.into()), ("data", data.into())].into();
        steps.push(Step::Say(notification("notifications/message", params)));
    }
    steps.push(Step::Done(Ok(text_result(Some("logged".into())))));
    Answer::Later(steps)
}

/// Sends a request for each capability that the client declared.
fn ask(world: &World) -> Answer {
    let mut steps = Vec::new();
    let client = |name: &str| world.client.get(name).and_then(Value::as_object);
    if world.phase == Phase::Ready {
        if client("roots").is_some() {
            steps.push(Step::Ask("roots/list", Value::Object(Vec::new())));
        }
        if client("sampling").is_some() {
            let content = [("type", "text".into()), ("text", "Say hello.".into())].into();
            let messages = vec![[("role", "user".into()), ("content", content)].into()];
            let params = [("messages", Value::from(messages)), ("maxTokens", 16.into())].into();
            steps.push(Step::Ask("sampling/createMessage", params));
        }
        let takes_forms = |modes: &[_]| {
            modes.is_empty()
                || world.client.get("elicitation").is_some_and(|modes| modes.get("form").is_some())
        };
        if world.revision >= Revision::V25b && client("elicitation").is_some_and(takes_forms) {
            steps.push(Step::Ask("elicitation/create", form(world.revision)));
        }
    }
    steps.push(Step::Tell(|responses| {
        let heard: Vec<&str> = responses
            .iter()
            .map(|response| match response {
                Value::Null => "no answer",
                response if response.get("result").is_some() => "result",
                _ => "error",
            })
            .collect();
        Ok(text_result(Some(format!("asked: {}", heard.join(", ")).into())))
    }));
    Answer::Later(steps)
}

fn form(revision: Revision) -> Value {
    let name = [("type", "string".into()), ("title", "Name".into())].into();
    let schema = [
        ("type", "object".into()),
        ("properties", [("name", name)].into()),
        ("required", Value::from(vec!["name".into()])),
    ];
    let mut form = vec![("message".into(), "Who are you?".into()), ("requestedSchema".into(), schema.into())];
    if revision >= Revision::V25c {
        form.insert(0, ("mode".into(), "form".into()));
    }
    Value::Object(form)
}

/// Returns a block of each kind in the revision.
fn media(world: &World) -> Outcome {
    let mut blocks = vec![
        text_block("Blocks of each kind.".into()),
        [("type", "image".into()), ("data", PIXEL.into()), ("mimeType", "image/png".into())].into(),
    ];
    if world.revision >= Revision::V25a {
        blocks.push(
            [("type", "audio".into()), ("data", "UklGRg==".into()), ("mimeType", "audio/wav".into())].into(),
        );
    }
    if world.revision >= Revision::V25b {
        blocks.push(
            [("type", "resource_link".into()), ("uri", COUNTER.into()), ("name", "counter".into())].into(),
        );
    }
    if let Some(resource) = contents(&COUNTER.into(), world) {
        blocks.push([("type", "resource".into()), ("resource", resource)].into());
    }
    Ok([("content", blocks.into()), ("isError", false.into())].into())
}

fn measure(call: &Call<'_>, world: &World) -> Outcome {
    let text = call.text("text")?.to_lossy();
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX).into();
    let measured: Value =
        [("characters", count(text.chars().count())), ("words", count(text.split_whitespace().count()))]
            .into();
    let mut json = Vec::new();
    write_value(&mut json, &measured);
    let mut result = text_result(Some(String::from_utf8_lossy(&json).into_owned().into()));
    if let Value::Object(members) = &mut result
        && world.revision >= Revision::V25b
    {
        members.push(("structuredContent".into(), measured));
    }
    Ok(result)
}
