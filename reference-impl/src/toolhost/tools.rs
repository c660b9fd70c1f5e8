//! The tools of the conformance roles, `AID.PEERPROOF.<ROLE>.v1` (contract §1).

use std::sync::Arc;

use super::choices::CrashKind;
use super::http_get::{AllowedHosts, HttpGet};
use super::state::{Artifact, slot_number};
use super::tool::{Answer, Context, Input, Output, Status, Step, Tool, ToolResult, ToolTable};
use crate::json::{Text, Value, write_value};
use crate::refusal::Refusal;

/// All tools; `http_allowed_hosts` is the value of `MACHINA_HTTP_ALLOWED_HOSTS`.
pub fn table(http_allowed_hosts: Option<&str>) -> ToolTable {
    let mut table = ToolTable::default();
    table.add("AID.PEERPROOF.ANY.v1", 0, Any);
    table.add("AID.PEERPROOF.ECHO.v1", 0, Echo);
    table.add("AID.PEERPROOF.COUNTER.v1", 0, Counter::default());
    table.add("AID.PEERPROOF.PUT.v1", 0, Put);
    table.add("AID.PEERPROOF.GET.v1", 0, Get);
    table.add("AID.PEERPROOF.REMOVE.v1", 0, Remove);
    table.add("AID.PEERPROOF.FAIL.v1", 0, Fail);
    table.add("AID.PEERPROOF.SLEEP.v1", 0, Sleep::default());
    table.add("AID.PEERPROOF.BLOB.v1", 0, Blob);
    table.add("AID.PEERPROOF.NOISE.v1", 0, Noise);
    table.add("AID.PEERPROOF.CRASH.v1", 0, Crash);
    table.add("AID.PEERPROOF.TIER1.v1", 1, Counter::default());
    table.add("AID.PEERPROOF.TIER2.v1", 2, Counter::default());
    table.add("AID.PEERPROOF.TIER3.v1", 3, Counter::default());
    let allowed = AllowedHosts::parse(http_allowed_hosts.unwrap_or_default());
    table.add("AID.PEERPROOF.HTTP_GET.v1", 0, HttpGet::new(allowed.clone()));
    table.add("AID.NET.HTTP_GET.v1", 0, HttpGet::new(allowed));
    table
}

/// Runs `body` on the parsed input. An error becomes a `TOOL_ERROR`.
fn with_value(input: &Input<'_>, body: impl FnOnce(&Value) -> Result<ToolResult, Refusal>) -> Step {
    let result = match input.value() {
        Ok(value) => body(&value),
        Err(error) => Err(error.into()),
    };
    Step::Done(result.unwrap_or_else(ToolResult::error))
}

fn slot(input: &Value) -> Result<usize, Refusal> {
    input.get("slot").and_then(slot_number).ok_or_else(|| "slot must be an integer from 0 to 7".into())
}

fn natural(input: &Value, name: &str) -> Result<u64, Refusal> {
    let number = input.get(name).and_then(Value::as_i64).and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| format!("{name} must be an integer of 0 or more").into())
}

/// Succeeds on any object.
struct Any;

impl Tool for Any {
    fn call(&mut self, _input: &Input<'_>, _cx: &mut Context<'_>) -> Step {
        Step::Done(ToolResult::json("{}"))
    }
}

/// Returns its input.
struct Echo;

impl Tool for Echo {
    fn call(&mut self, input: &Input<'_>, _cx: &mut Context<'_>) -> Step {
        if input.is_plain() {
            return Step::Done(ToolResult {
                status: Status::Ok,
                output: Output::Input,
                error: Text::default(),
            });
        }
        with_value(input, |value| Ok(ToolResult::json(write_json(value))))
    }
}

fn write_json(value: &Value) -> String {
    let mut out = Vec::new();
    write_value(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}

/// Counts its calls.
#[derive(Default)]
struct Counter {
    count: u64,
}

impl Tool for Counter {
    fn call(&mut self, _input: &Input<'_>, _cx: &mut Context<'_>) -> Step {
        self.count += 1;
        Step::Done(ToolResult::json(format!("{{\"count\":{}}}", self.count)))
    }
}

/// Writes a slot.
struct Put;

impl Tool for Put {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        with_value(input, |value| {
            let slot = slot(value)?;
            let artifact = Artifact::from_value(value.get("artifact").unwrap_or(&Value::Null), cx.choices)?;
            cx.state.put(slot, Arc::new(artifact));
            Ok(ToolResult::json("{}"))
        })
    }
}

/// Reads a slot.
struct Get;

impl Tool for Get {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        with_value(input, |value| {
            let slot = slot(value)?;
            let mut out = b"{\"artifact\":".to_vec();
            match &cx.state.slots()[slot] {
                Some(artifact) => artifact.write(&mut out),
                None => out.extend_from_slice(b"null"),
            }
            out.push(b'}');
            Ok(ToolResult::json(String::from_utf8_lossy(&out)))
        })
    }
}

/// Empties a slot.
struct Remove;

impl Tool for Remove {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        with_value(input, |value| {
            cx.state.remove(slot(value)?);
            Ok(ToolResult::json("{}"))
        })
    }
}

/// Fails with the given message.
struct Fail;

impl Tool for Fail {
    fn call(&mut self, input: &Input<'_>, _cx: &mut Context<'_>) -> Step {
        with_value(input, |value| {
            let message = value.get("message").and_then(Value::as_text).ok_or("message must be a string")?;
            Ok(ToolResult::error(message.clone()))
        })
    }
}

/// Waits for the given time.
#[derive(Default)]
struct Sleep {
    ms: u64,
}

impl Tool for Sleep {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        let ms = input.value().map_err(Refusal::from).and_then(|value| natural(&value, "ms"));
        match ms {
            Ok(ms) if ms <= cx.limits.sleep_ms_max => {
                self.ms = ms;
                Step::WaitUntil(cx.now.saturating_add(ms))
            }
            Ok(_) => Step::Done(ToolResult::error(format!("ms must be at most {}", cx.limits.sleep_ms_max))),
            Err(error) => Step::Done(ToolResult::error(error)),
        }
    }

    fn resume(&mut self, _answer: Answer, _cx: &mut Context<'_>) -> Step {
        Step::Done(ToolResult::json(format!("{{\"slept_ms\":{}}}", self.ms)))
    }
}

/// Returns the requested number of bytes.
struct Blob;

impl Tool for Blob {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        with_value(input, |value| {
            let bytes = natural(value, "bytes")?;
            let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= cx.limits.reply_bytes_max);
            let bytes =
                bytes.ok_or_else(|| format!("a reply has {} bytes at most", cx.limits.reply_bytes_max))?;
            Ok(ToolResult::json(format!("{{\"data\":\"{}\"}}", "x".repeat(bytes))))
        })
    }
}

/// Prints to its own standard streams.
struct Noise;

impl Tool for Noise {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        with_value(input, |value| {
            let text = |name: &str| match value.get(name) {
                None => Ok(Text::default()),
                Some(Value::String(text)) => Ok(text.clone()),
                Some(_) => Err(format!("{name} must be a string")),
            };
            let (stdout, stderr) = (text("stdout")?, text("stderr")?);
            cx.printed.stdout.extend_from_slice(stdout.to_lossy().as_bytes());
            cx.printed.stderr.extend_from_slice(stderr.to_lossy().as_bytes());
            Ok(ToolResult::json("{}"))
        })
    }
}

/// Throws, or aborts the process.
struct Crash;

impl Tool for Crash {
    fn call(&mut self, _input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        match cx.choices.crash_kind {
            CrashKind::Throw => Step::Done(ToolResult::error("the tool threw an exception")),
            CrashKind::Abort => Step::Abort,
        }
    }
}
