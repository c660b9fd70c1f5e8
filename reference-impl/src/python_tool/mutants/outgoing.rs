//! Mutants that misreport the outcome of a call.

use super::edit::{remove, slot};
use super::incoming::fail;
use super::{Edit, Mutant, role};
use crate::json::{Policy, Value};
use crate::mutant::values::each;

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = table! {
    "says-nothing" ["PT-FRAME-01"] "It exits with status 0 and says nothing." => Edit::Output(|_, _| Vec::new());
    "says-it-twice" ["PT-FRAME-05"] "Each reply is written twice." => Edit::Output(|_, reply| reply.repeat(2));
    "greets" ["PT-FRAME-05"] "A line of its own stands before the reply." => Edit::Output(|_, reply| {
        [b"runner ready\n".to_vec(), reply].concat()
    });
    "says-goodbye" ["PT-FRAME-05"] "A line of its own stands behind the reply." => Edit::Output(|_, reply| {
        [reply, b"done\n".to_vec()].concat()
    });
    "latin-1" ["PT-FRAME-06"] "Replies are not UTF-8." => Edit::Output(|_, reply| {
        let text = String::from_utf8_lossy(&reply).into_owned();
        text.chars().map(|char| u8::try_from(u32::from(char)).unwrap_or(b'?')).collect()
    });
    "rounds-integers" ["PT-JSON-08"] "Integers have fifteen digits." => Edit::Reply(|_, reply| {
        each(reply, 0, &mut |value, _| if let Value::Number(number) = value
            && number.as_str().trim_start_matches('-').len() > 15
            && let Some(whole) = number.as_i64()
        {
            *value = Value::Number((whole / 10 * 10).into());
        });
    });
    "rounds-fractions" ["PT-RES-01"] "Fractions have seven digits." => Edit::Reply(|_, reply| {
        each(reply, 0, &mut |value, _| if let Value::Number(number) = value
            && number.as_f64().fract() != 0.0
            && let Ok(rounded) = Value::parse(format!("{:.6e}", number.as_f64()).as_bytes(), 1, &Policy::default())
        {
            *value = rounded;
        });
    });
    "infinity" ["PT-JSON-11"] "A number beyond a double comes back as a word." => Edit::Reply(|request, reply| {
        let is_beyond = |value: &Value| matches!(value, Value::Number(number) if number.as_f64().is_infinite());
        if request.get("payload").and_then(|payload| payload.get("a")).is_some_and(is_beyond) {
            remove(reply, "error");
            *slot(reply, "ok") = Value::Bool(true);
            *slot(slot(reply, "result"), "a") = Value::from("Infinity");
        }
    });
    "crashes-where-nothing-is" ["PT-REQ-08"] "A tool that does not exist ends the runner." => Edit::Status(|_, reply| {
        is_missing(reply).then_some(-2)
    });
    "status-where-nothing-is" ["PT-REQ-09"] "A tool that does not exist is told by an exit status." => Edit::Status(|_, reply| {
        is_missing(reply).then_some(1)
    });
    "trace-in-the-result" ["PT-REQ-12"] "The trace id is part of the result." => Edit::Reply(|request, reply| {
        if let Some(trace) = request.get("trace_id") {
            *slot(slot(reply, "result"), "trace_id") = trace.clone();
        }
    });
    "success-without-version" ["PT-REPLY-01"] "A success has no version." => Edit::Reply(|_, reply| {
        if is_ok(reply) {
            remove(reply, "protocol_version");
        }
    });
    "success-with-an-error" ["PT-REPLY-01"] "A success has an empty error." => Edit::Reply(|_, reply| {
        if is_ok(reply) {
            *slot(reply, "error") = Value::Object(Vec::new());
        }
    });
    "ok-in-words" ["PT-REPLY-01"] "`ok` is a string." => Edit::Reply(|_, reply| {
        if is_ok(reply) {
            *slot(reply, "ok") = Value::from("true");
        }
    });
    "failure-without-type" ["PT-REPLY-02"] "A failure has no type." => Edit::Reply(|_, reply| {
        if !is_ok(reply) {
            remove(slot(reply, "error"), "type");
        }
    });
    "failure-in-words" ["PT-REPLY-02"] "The error of a failure is a string." => Edit::Reply(|_, reply| {
        if !is_ok(reply) {
            *slot(reply, "error") = Value::from("failed");
        }
    });
    "failure-with-a-result" ["PT-REPLY-02"] "A failure has a result as well." => Edit::Reply(|_, reply| {
        if !is_ok(reply) {
            *slot(reply, "result") = Value::Object(Vec::new());
        }
    });
    "failure-without-version" ["PT-REPLY-02"] "A failure has no version." => Edit::Reply(|_, reply| {
        if !is_ok(reply) {
            remove(reply, "protocol_version");
        }
    });
    "reason-in-numbers" ["PT-REPLY-03"] "The reason code is a number." => Edit::Reply(|_, reply| {
        if !is_ok(reply) {
            *slot(slot(reply, "error"), "reason_code") = Value::Number(7.into());
        }
    });
    "ok-of-the-result" ["PT-REPLY-04"] "`ok` in a result is that of the call." => Edit::Reply(|_, reply| {
        let inner = reply.get("result").and_then(|result| result.get("ok")).and_then(Value::as_bool);
        if is_ok(reply) && inner == Some(false) {
            fail(reply, "ToolError");
        }
    });
    "nearly-json" ["PT-REPLY-05"] "A comma stands behind the last member of a failure." => Edit::Output(|_, reply| {
        let text = String::from_utf8_lossy(&reply).replace("}}\n", ",}}\n");
        if text.contains("\"ok\":false") { text.into_bytes() } else { reply }
    });
    "one-type-for-all" ["PT-FAIL-01"] "Each exception is an Error." => Edit::Reply(|request, reply| {
        if role(request) == "fail" && kind(reply) != "Own" {
            *slot(slot(reply, "error"), "type") = Value::from("Error");
        }
    });
    "own-classes-are-lost" ["PT-FAIL-02"] "An exception of the tool's own is an Exception." => Edit::Reply(|_, reply| {
        if kind(reply) == "Own" {
            *slot(slot(reply, "error"), "type") = Value::from("Exception");
        }
    });
    "messages-are-lost" ["PT-FAIL-03"] "A failure does not say what the exception says." => Edit::Reply(|_, reply| {
        if !is_ok(reply) {
            *slot(slot(reply, "error"), "message") = Value::from("the tool failed");
        }
    });
    "success-with-status-3" ["PT-FAIL-05"] "A success has the exit status 3." => Edit::Status(|request, reply| {
        (role(request) == "value" && is_ok(reply)).then_some(3)
    });
    "failure-with-status-1" ["PT-FAIL-06"] "A failure has the exit status 1." => Edit::Status(|_, reply| {
        (!is_ok(reply)).then_some(1)
    });
    "ended-tools-with-their-status" ["PT-FAIL-06"] "A tool that ends its process is told by a failure, and by its exit status." => Edit::Status(|_, reply| {
        matches!(kind(reply), "ToolExit" | "SystemExit").then_some(3)
    });
    "silent-exit" ["PT-FAIL-08", "PT-FAIL-09"] "A tool that ends its process leaves exit status 0 and nothing else." => Edit::Status(|_, reply| {
        matches!(kind(reply), "ToolExit" | "SystemExit").then_some(-1)
    });
    "silent-exit-at-import" ["PT-FAIL-09"] "A tool that ends its process at its import leaves nothing." => Edit::Status(|request, reply| {
        let entry = request.get("entry").and_then(Value::as_str).unwrap_or_default();
        (entry.contains("_import:") && !is_ok(reply)).then_some(-1)
    });
    "prints-show" ["PT-OUT-01"] "What a tool prints stands before the reply." => Edit::Output(|request, reply| {
        match printed(request, &["print", "buffered"]) {
            Some(text) => [text, reply].concat(),
            None => reply,
        }
    });
    "descriptors-show" ["PT-OUT-01"] "What a tool or its child writes to descriptor 1 stands before the reply." => Edit::Output(|request, reply| {
        match printed(request, &["fd", "child", "dunder", "thread_late"]) {
            Some(text) => [text, reply].concat(),
            None => reply,
        }
    });
    "late-prints-show" ["PT-OUT-01"] "What a tool prints at its end stands behind the reply." => Edit::Output(|request, reply| {
        match printed(request, &["atexit"]) {
            Some(text) => [reply, text].concat(),
            None => reply,
        }
    });
    "errors-show" ["PT-OUT-01"] "What a tool writes to standard error stands before the reply." => Edit::Output(|request, reply| {
        match printed(request, &["stderr"]) {
            Some(text) => [text, reply].concat(),
            None => reply,
        }
    });
    "imports-show-below" ["PT-OUT-02"] "What a module or its child writes to descriptor 1 at its import stands before the reply." => Edit::Printing {
        from: "        tool = imported(module)\n",
        to: "        aside, kept = os.memfd_create(\"aside\"), os.dup(1)\n\
             \x20       os.dup2(aside, 1)\n\
             \x20       tool = imported(module)\n\
             \x20       os.dup2(kept, 1)\n\
             \x20       printed = os.pread(aside, 1 << 16, 0).decode()\n\
             \x20       if printed:\n\
             \x20           return {\"ok\": True, \"result\": {\"printed\": printed}}\n",
    };
    "imports-show" ["PT-OUT-02"] "What a module prints at its import stands before the reply." => Edit::Printing {
        from: "        tool = imported(module)\n",
        to: "        import contextlib, io\n\
             \x20       out = io.StringIO()\n\
             \x20       with contextlib.redirect_stdout(out):\n\
             \x20           tool = imported(module)\n\
             \x20       if out.getvalue():\n\
             \x20           return {\"ok\": True, \"result\": {\"printed\": out.getvalue()}}\n",
    };
    "nulls-are-lost" ["PT-RES-01"] "Members that are null are left out of a result." => Edit::Reply(|_, reply| {
        each(slot_of_result(reply), 0, &mut |value, _| if let Value::Object(members) = value {
            members.retain(|(_, value)| *value != Value::Null);
        });
    });
    "loses-empty-lists" ["PT-RES-01"] "Items that are an empty list are left out of a result." => Edit::Reply(|_, reply| {
        each(slot_of_result(reply), 0, &mut |value, _| if let Value::Array(items) = value {
            items.retain(|item| *item != Value::Array(Vec::new()));
        });
    });
    "results-are-objects" ["PT-RES-02"] "Another result than an object is put into one." => Edit::Reply(|_, reply| {
        if is_ok(reply) && reply.get("result").is_some_and(|result| result.as_object().is_none()) {
            let result = reply.get("result").cloned().unwrap_or(Value::Null);
            *slot(reply, "result") = Value::Object(vec![("value".into(), result)]);
        }
    });
    "nan-is-null" ["PT-RES-04"] "What JSON lacks becomes null." => Edit::Reply(|request, reply| {
        let kind = request.get("payload").and_then(|payload| payload.get("kind")).and_then(Value::as_str);
        if matches!(kind, Some("nan" | "inf" | "cycle")) {
            remove(reply, "error");
            *slot(reply, "ok") = Value::Bool(true);
            *slot(slot(reply, "result"), "v") = Value::Null;
        }
    });
    "half-a-reply" ["PT-RES-06"] "A result that fails at its end is written to there." => Edit::Output(|request, reply| {
        let kind = request.get("payload").and_then(|payload| payload.get("kind")).and_then(Value::as_str);
        match kind.is_some_and(|kind| kind.starts_with("late_")) {
            true => b"{\"ok\":true,\"protocol_version\":1,\"result\":{\"a\":\"xxxxxx\",\"v\":".to_vec(),
            false => reply,
        }
    });
    "small-replies" ["PT-SIZE-01"] "A reply has at most half a megabyte." => Edit::Reply(|_, reply| {
        let is_large = |value: &Value| matches!(value, Value::String(text) if text.as_bytes().len() > 1 << 19);
        if reply.get("result").and_then(|result| result.get("data")).is_some_and(is_large) {
            fail(reply, "TooLarge");
        }
    });
};

fn is_ok(reply: &Value) -> bool {
    reply.get("ok").and_then(Value::as_bool) == Some(true)
}

fn kind(reply: &Value) -> &str {
    reply.get("error").and_then(|error| error.get("type")).and_then(Value::as_str).unwrap_or_default()
}

fn is_missing(reply: &Value) -> bool {
    matches!(kind(reply), "ModuleNotFoundError" | "AttributeError" | "TypeError")
}

fn slot_of_result(reply: &mut Value) -> &mut Value {
    match reply.get("result") {
        Some(_) => slot(reply, "result"),
        None => reply,
    }
}

/// Text that the tool of a call prints through one of these routes.
fn printed(request: &Value, routes: &[&str]) -> Option<Vec<u8>> {
    let payload = request.get("payload").filter(|_| role(request) == "noise")?;
    let is_one = payload.get("route").and_then(Value::as_str).is_some_and(|route| routes.contains(&route));
    Some(payload.get("text").and_then(Value::as_str).filter(|_| is_one)?.as_bytes().to_vec())
}
