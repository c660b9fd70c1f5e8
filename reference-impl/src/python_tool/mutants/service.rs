//! Mutants of the service: faults in requests, replies, timeouts and transport.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::edit::{NESTING_MAX, remove, slot};
use super::{Edit, Mutant};
use crate::json::{Policy, Text, Value, write_value};
use crate::mutant::http::HttpFault;
use crate::mutant::{carrier, config};
use crate::python_tool::Config;
use crate::python_tool::service::{HANDSHAKE, Sent};

/// The tool of the last handshake.
static LAST_SHAKEN: Mutex<Option<String>> = Mutex::new(None);

/// Mutants with rewritten bodies.
pub(super) const MUTANTS: &[Mutant] = table! {
    "service-asks-for-tool" ["PT-SRV-01"] "The name of a tool is `tool`." => Edit::Posted(|request| {
        if is_call(request) {
            let tool = request.get("tool").cloned().unwrap_or(Value::Null);
            *slot(request, "tool_name") = tool;
        }
    });
    "service-takes-anything-for-a-call" ["PT-JSON-01", "PT-JSON-02", "PT-JSON-09", "PT-FRAME-03"] "A body that is no object is a plain call." => Edit::Carried(|request| {
        let is_object = |body: &[u8]| parsed(body).is_some_and(|value| value.as_object().is_some());
        if request.method == "POST" && !request.body.as_deref().is_none_or(is_object) {
            request.body = Some(PLAIN_CALL.to_vec());
        }
    });
    "service-reads-one-line" ["PT-FRAME-02"] "Only the first line of a body is read." => Edit::Carried(|request| {
        if let Some(body) = &mut request.body {
            body.truncate(body.iter().position(|byte| *byte == b'\n').unwrap_or(body.len()));
        }
    });
    "service-has-members-in-order" ["PT-JSON-10"] "The version has to come first." => Edit::Carried(|request| {
        let is_first = |body: &[u8]| body.starts_with(b"{\"protocol_version\"") || body.starts_with(b"{\"kind\"");
        if !request.body.as_deref().is_none_or(is_first) {
            request.body = Some(Vec::new());
        }
    });
    "service-finds-what-is-missing" ["PT-REQ-08"] "A tool that does not exist has the result {}." => Edit::Answered(|_, _, reply| {
        if matches!(kind(reply), "ModuleNotFoundError" | "AttributeError" | "TypeError") {
            succeed(reply);
        }
    });
    "service-needs-a-kind" ["PT-SRV-02"] "A call without `kind` is refused." => Edit::Posted(|request| {
        if is_call(request) && request.get("kind").is_none() {
            remove(request, "protocol_version");
        }
    });
    "service-needs-a-project" ["PT-SRV-02"] "A call without `project` is refused." => Edit::Posted(|request| {
        if is_call(request) && request.get("project").is_none() {
            remove(request, "protocol_version");
        }
    });
    "service-takes-any-kind" ["PT-SRV-03"] "`kind` is not looked at." => Edit::Posted(|request| remove(request, "kind"));
    "service-minds-other-members" ["PT-SRV-04"] "A member of a local request is refused." => Edit::Posted(|request| {
        if request.get("sandbox").is_some() {
            remove(request, "protocol_version");
        }
    });
    "service-fails-with-500" ["PT-SRV-06"] "The failure of a tool has status 500." => Edit::Answered(|_, status, reply| {
        if *status == 200 && reply.get("error").is_some() {
            *status = 500;
        }
    });
    "service-takes-exits-for-results" ["PT-SRV-07", "PT-FAIL-09"] "A tool that ends its process has the result {}." => Edit::Answered(|_, _, reply| {
        if is_exit(reply) {
            succeed(reply);
        }
    });
    "service-refuses-malformed-by-422" ["PT-SRV-10"] "Malformed JSON has status 422." => Edit::Answered(|request, status, _| {
        if *status == 400 && *request == Value::Null {
            *status = 422;
        }
    });
    "service-has-long-timeouts" ["PT-SRV-12"] "Every timeout is a minute." => Edit::Posted(|request| {
        if request.get("timeout_ms").and_then(Value::as_i64).is_some_and(|given| given > 0) {
            *slot(request, "timeout_ms") = Value::Number(60_000.into());
        }
    });
    "service-has-short-timeouts" ["PT-SRV-12"] "A tool has a tenth of its time." => Edit::Posted(|request| {
        if let Some(given) = request.get("timeout_ms").and_then(Value::as_i64).filter(|given| *given > 10) {
            *slot(request, "timeout_ms") = Value::Number((given / 10).into());
        }
    });
    "service-rounds-timeouts-up" ["PT-SRV-12"] "A tool has whole seconds, and almost one more." => Edit::Posted(|request| {
        if let Some(given) = request.get("timeout_ms").and_then(Value::as_i64).filter(|given| *given > 0) {
            *slot(request, "timeout_ms") = Value::Number((given.saturating_add(999) / 1_000 * 1_000 + 900).into());
        }
    });
    "service-gives-half-the-time" ["PT-SRV-12"] "A tool has half of a timeout of some seconds." => Edit::Posted(|request| {
        let given = request.get("timeout_ms").and_then(Value::as_i64);
        if let Some(given) = given.filter(|given| (2_000..=9_000).contains(given)) {
            *slot(request, "timeout_ms") = Value::Number((given / 2).into());
        }
    });
    "service-stops-longer-tools-early" ["PT-SRV-12"] "A tool has a third of a timeout from 5 to 9 s." => Edit::Posted(|request| {
        let given = request.get("timeout_ms").and_then(Value::as_i64);
        if let Some(given) = given.filter(|given| (5_000..=9_000).contains(given)) {
            *slot(request, "timeout_ms") = Value::Number((given / 3).into());
        }
    });
    "service-wraps-timeouts" ["PT-SRV-12"] "The time of a tool is read into 32 bits." => Edit::Posted(|request| {
        if let Some(given) = request.get("timeout_ms").and_then(Value::as_i64).filter(|given| *given > 0) {
            *slot(request, "timeout_ms") = Value::Number((given & i64::from(u32::MAX)).max(1).into());
        }
    });
    "service-counts-from-the-head" ["PT-SRV-12"] "The time of a tool begins when the head of the call has come." => Edit::Carried(|request| {
        let body = request.body.as_deref().filter(|_| request.is_held_back);
        let Some(mut call) = body.and_then(parsed).filter(|call| call.get("timeout_ms").is_some()) else { return };
        let left = slot(&mut call, "timeout_ms").as_i64().unwrap_or_default() - 1_000;
        *slot(&mut call, "timeout_ms") = Value::Number(left.into());
        let mut text = Vec::new();
        write_value(&mut text, &call);
        request.body = Some(text);
    });
    "service-blocks-with-403" ["PT-GUAR-01"] "What a guarantee forbids has status 403 and no reply." => Edit::Answered(|_, status, reply| {
        if reply.get("error").and_then(|error| error.get("reason_code")).and_then(Value::as_str) == Some("guarantee_blocked") {
            (*status, *reply) = (403, Value::Null);
        }
    });
    "service-succeeds-at-timeouts" ["PT-SRV-12"] "A tool whose time is over has the result {}." => Edit::Answered(|_, _, reply| {
        if kind(reply) == "Timeout" {
            succeed(reply);
        }
    });
    "service-has-status-500-at-timeouts" ["PT-SRV-14"] "A tool whose time is over has status 500." => Edit::Answered(|_, status, reply| {
        if kind(reply) == "Timeout" {
            *status = 500;
        }
    });
    "service-has-no-default" ["PT-SRV-15"] "Without `timeout_ms` it is a minute." => Edit::Posted(|request| {
        if is_call(request) && request.get("timeout_ms").is_none() {
            *slot(request, "timeout_ms") = Value::Number(60_000.into());
        }
    });
    "service-has-a-short-default" ["PT-SRV-15"] "Without `timeout_ms` it is 5 s." => Edit::Posted(|request| {
        if is_call(request) && request.get("timeout_ms").is_none() {
            *slot(request, "timeout_ms") = Value::Number(5_000.into());
        }
    });
    "service-takes-odd-timeouts-for-none" ["PT-SRV-16"] "`timeout_ms` that is no integer from 1 on is none." => Edit::Posted(|request| {
        let is_odd = |given: &Value| given.as_i64().is_none_or(|given| given < 1);
        if request.get("timeout_ms").is_some_and(is_odd) {
            *slot(request, "timeout_ms") = Value::Number(60_000.into());
        }
    });
    "service-hangs-with-a-tool" ["PT-SRV-17"] "After a tool that ends its process nothing is answered." => Edit::Answered(|_, status, reply| {
        if is_exit(reply) {
            *status = 0;
        }
    });
    "service-hangs-at-timeouts" ["PT-SRV-17"] "After a tool that hangs nothing is answered." => Edit::Answered(|_, status, reply| {
        if kind(reply) == "Timeout" {
            *status = 0;
        }
    });
    "service-runs-another-call-elsewhere" ["PT-SRV-28"] "At another path every call is a plain one." => Edit::Carried(|request| {
        if !["/", HANDSHAKE].contains(&request.target.as_str()) && request.method == "POST" {
            request.body = Some(PLAIN_CALL.to_vec());
        }
    });
    "service-runs-by-any-method" ["PT-SRV-20"] "Every method is POST." => Edit::Carried(|request| request.method = "POST".to_owned());
    "handshake-is-elsewhere" ["PT-HS-01"] "Handshakes are at another path." => Edit::Carried(|request| {
        if request.target == HANDSHAKE {
            request.target = "/".to_owned();
        }
    });
    "handshake-is-created" ["PT-HS-01"] "A handshake has status 201." => Edit::Answered(|request, status, _| {
        if is_handshake(request) && *status == 200 {
            *status = 201;
        }
    });
    "handshake-needs-no-runner" ["PT-HS-01"] "A handshake with `runner` is refused." => Edit::Posted(|request| {
        if is_handshake(request) && request.get("runner").is_some() {
            remove(request, "protocol_version");
        }
    });
    "handshake-takes-any-version" ["PT-HS-02"] "The version of a handshake is not looked at." => Edit::Posted(|request| {
        if is_handshake(request) {
            *slot(request, "protocol_version") = Value::Number(1.into());
        }
    });
    "handshake-is-kept-by-another-word" ["PT-HS-03"] "`enforcement` is \"full\"." => Edit::Answered(|_, _, reply| {
        if reply.get("enforcement").is_some() {
            *slot(reply, "enforcement") = Value::from("full");
        }
    });
    "handshake-lists-names" ["PT-HS-03"] "`supported_guarantees` is a list." => Edit::Answered(|_, _, reply| {
        if reply.get("enforcement").is_some() {
            *slot(reply, "supported_guarantees") = Value::Array(Vec::new());
        }
    });
    "handshake-has-no-version" ["PT-HS-03"] "`service_version` is missing." => Edit::Answered(|_, _, reply| remove(reply, "service_version"));
    "handshake-fails-without-error" ["PT-HS-03"] "A handshake that does not assure all has status 200, `ok` false and no `error`." => Edit::Answered(|request, status, reply| {
        if is_handshake(request) && reply.get("enforcement").and_then(Value::as_str) != Some("enforced") {
            *status = 200;
            *reply = Value::Object(vec![(Text::from("ok"), Value::Bool(false))]);
        }
    });
    "handshake-lists-nothing" ["PT-HS-04"] "What is enforced is not listed." => Edit::Answered(|_, _, reply| {
        if reply.get("enforcement").is_some() {
            *slot(reply, "supported_guarantees") = Value::Object(Vec::new());
        }
    });
    "handshake-says-enforced" ["PT-HS-04"] "Every handshake says `enforced`, whatever is listed." => Edit::Answered(|_, _, reply| {
        if reply.get("enforcement").is_some() {
            *slot(reply, "enforcement") = Value::from("enforced");
        }
    });
    "handshake-promises-all" ["PT-HS-05"] "Every guarantee that is required is listed." => Edit::Answered(|request, _, reply| {
        let required = request.get("required_guarantees").and_then(Value::as_object).unwrap_or_default();
        if reply.get("enforcement").is_some() {
            let listed: Vec<(Text, Value)> = required.to_vec();
            *slot(reply, "enforcement") = Value::from("enforced");
            *slot(reply, "supported_guarantees") = Value::Object(listed);
        }
    });
    "handshake-is-forgotten" ["PT-HS-07"] "What a handshake promised is in force for no call." => Edit::Posted(|request| {
        if is_call(request) && request.get("tool_name").and_then(Value::as_str).is_some_and(|name| !name.is_empty()) {
            *slot(request, "tool_name") = Value::from("another tool");
        }
    });
    "handshake-binds-names-in-ascii" ["PT-HS-07"] "What a handshake promised is in force for no tool whose name has letters beyond ASCII." => Edit::Posted(|request| {
        if is_call(request) && !request.get("tool_name").and_then(Value::as_str).is_none_or(str::is_ascii) {
            *slot(request, "tool_name") = Value::from("another tool");
        }
    });
    "handshake-binds-the-last-tool" ["PT-HS-07"] "What a handshake promised is in force until another tool has one." => Edit::Posted(|request| {
        let mut last = LAST_SHAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let name = request.get("tool_name").and_then(Value::as_str).map(str::to_owned);
        if is_handshake(request) {
            *last = name;
        } else if is_call(request) && name != *last {
            *slot(request, "tool_name") = Value::from("another tool");
        }
    });
    "handshake-binds-every-tool" ["PT-GUAR-08"] "What a handshake promised for a tool is in force for every tool." => Edit::Posted(|request| {
        let mut last = LAST_SHAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        if is_handshake(request) {
            *last = request.get("tool_name").and_then(Value::as_str).map(str::to_owned);
        } else if is_call(request) && let Some(last) = &*last {
            *slot(request, "tool_name") = Value::from(last.as_str());
        }
    });
    "handshake-binds-the-first-guarantee" ["PT-HS-07"] "Of several guarantees that a handshake promised the first is in force." => Edit::Posted(|request| {
        if is_handshake(request) && let Value::Object(required) = slot(request, "required_guarantees") {
            required.truncate(1);
        }
    });
    "handshake-binds-the-last-guarantee" ["PT-HS-07"] "Of several guarantees that a handshake promised the last is in force." => Edit::Posted(|request| {
        if is_handshake(request) && let Value::Object(required) = slot(request, "required_guarantees") {
            required.drain(..required.len().saturating_sub(1));
        }
    });
    "handshake-binds-names-in-any-case" ["PT-GUAR-08"] "What a handshake promised is in force for a tool whose name differs in case." => Edit::Posted(|request| {
        if let Some(name) = request.get("tool_name").and_then(Value::as_str).map(str::to_lowercase) {
            *slot(request, "tool_name") = Value::from(name.as_str());
        }
    });
    "handshake-binds-one-call" ["PT-HS-07"] "What a handshake promised is in force for the next call alone." => Edit::Posted(|request| {
        static IS_SPENT: AtomicBool = AtomicBool::new(false);
        if is_handshake(request) {
            IS_SPENT.store(false, Ordering::Relaxed);
        } else if is_call(request) && IS_SPENT.swap(true, Ordering::Relaxed) {
            *slot(request, "tool_name") = Value::from("another tool");
        }
    });
};

/// Mutants with a fault in timeouts or transport.
pub(crate) const CARRIED: &[Mutant] = &[
    config("service-leaves-tools-running", &["PT-SRV-13"], "A tool whose time is over goes on.", |config| {
        config.at_timeout = [Sent::Continue; 2];
    }),
    config(
        "handshake-unclaimed",
        &["PT-HS-08"],
        "Handshakes are answered, though nobody claims it.",
        |config: &mut Config| {
            config.has_handshake = true;
        },
    )
    .without("handshake"),
    carrier("service-created", &["PT-SRV-05"], "A success has status 201.", HttpFault::ResultCreated),
    carrier(
        "service-refuses-with-500",
        &["PT-SRV-08"],
        "A refusal has status 500.",
        HttpFault::Recodes(400, 500),
    ),
    carrier(
        "service-refuses-by-a-redirect",
        &["PT-SRV-09"],
        "A refusal has status 302.",
        HttpFault::Recodes(400, 302),
    ),
    carrier(
        "service-accepts-what-it-refuses",
        &["PT-SRV-09"],
        "A refusal has status 202.",
        HttpFault::Recodes(400, 202),
    ),
    carrier(
        "service-holds-bodies",
        &["PT-SIZE-04"],
        "A body that is too large is held whole before it is refused.",
        HttpFault::HoldsBodies,
    ),
    carrier("service-exact-names", &["PT-SRV-01"], "Header names have one case.", HttpFault::ExactNames),
    carrier("service-wants-blank", &["PT-SRV-01"], "`Name:value` is no header.", HttpFault::WantsBlank),
    carrier("service-text", &["PT-SRV-11"], "Replies are called text.", HttpFault::TextReplies),
    carrier("service-mixes", &["PT-SRV-18"], "A call gets the reply to another.", HttpFault::MixesReplies),
    carrier(
        "service-few-connections",
        &["PT-SRV-18"],
        "More than 20 connections at a time are refused.",
        HttpFault::FewConnections,
    ),
    carrier(
        "service-one-connection",
        &["PT-SRV-19"],
        "One connection is served at a time.",
        HttpFault::OneConnection,
    ),
    carrier(
        "service-any-method",
        &["PT-SRV-20"],
        "Another method has status 200.",
        HttpFault::OtherMethodIsFine,
    ),
    carrier("service-chunks", &["PT-SRV-21"], "A body in chunks is empty.", HttpFault::ChunkedIsEmpty),
    carrier(
        "service-closes",
        &["PT-SRV-22"],
        "The connection is closed after each reply.",
        HttpFault::ClosesEach,
    ),
    carrier("service-closes-silently", &["PT-SRV-22"], "The same without a word.", HttpFault::ClosesSilently),
    carrier(
        "service-serves-cut",
        &["PT-SRV-23"],
        "A body that is cut short is processed.",
        HttpFault::ServesCut,
    ),
    carrier(
        "service-type-500",
        &["PT-SRV-08"],
        "Another content type has status 500.",
        HttpFault::OtherTypeIsServerError,
    ),
    carrier("service-exact-type", &["PT-SRV-24"], "JSON with parameters is no JSON.", HttpFault::ExactType),
    carrier(
        "service-ends-at-garbage",
        &["PT-SRV-25"],
        "What is no HTTP ends the service.",
        HttpFault::EndsAtGarbage,
    ),
    carrier(
        "service-hangs-at-garbage",
        &["PT-SRV-25"],
        "After what is no HTTP nothing is answered.",
        HttpFault::HangsAtGarbage,
    ),
    carrier(
        "service-ends-at-cut",
        &["PT-SRV-25"],
        "A connection that breaks off ends the service.",
        HttpFault::EndsAtCut,
    ),
    carrier(
        "service-ends-at-depth",
        &["PT-JSON-04"],
        "Deep nesting ends the service.",
        HttpFault::EndsAtDepth,
    ),
    carrier(
        "service-first-piece",
        &["PT-FRAME-04"],
        "What comes first of a body is all of it.",
        HttpFault::FirstPiece,
    ),
    carrier(
        "service-small-bodies",
        &["PT-SIZE-01"],
        "A body has at most 100,000 bytes.",
        HttpFault::SmallBodies,
    ),
];

/// A valid call.
const PLAIN_CALL: &[u8] =
    br#"{"protocol_version":1,"tool_name":"any","entry":"tools.peerproof:any","payload":{}}"#;

fn parsed(body: &[u8]) -> Option<Value> {
    Value::parse(body, NESTING_MAX, &Policy::default()).ok()
}

fn is_call(request: &Value) -> bool {
    request.get("entry").is_some()
}

fn is_handshake(request: &Value) -> bool {
    request.get("required_guarantees").is_some()
}

fn kind(reply: &Value) -> &str {
    reply.get("error").and_then(|error| error.get("type")).and_then(Value::as_str).unwrap_or_default()
}

fn is_exit(reply: &Value) -> bool {
    matches!(kind(reply), "ToolExit" | "SystemExit" | "Ends")
}

fn succeed(reply: &mut Value) {
    remove(reply, "error");
    *slot(reply, "ok") = Value::Bool(true);
    *slot(reply, "result") = Value::Object(Vec::new());
}
