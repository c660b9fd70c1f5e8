//! Allowed answers to one message.

use super::allowed_answer::{
    Blame, Content, any_reply, error_but, error_of, error_with_any_id, result, result_with, unit,
};
use super::arguments::{self, Fits};
use super::{
    Allowed, RequestNotes, RequestPart, Session, UNKNOWN_PROMPT, UNKNOWN_TASK, UNKNOWN_TOOL, UNKNOWN_URI,
    is_terminal,
};
use crate::connection::{DISCOVER, INITIALIZE, PING, revision_asked};
use crate::revision::Revision;
use crate::server_knowledge::{List, ServerKnowledge, list_of};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_json_rpc::model::IdRule;

/// Members that a request may have.
const MEMBERS: [&str; 4] = ["jsonrpc", "method", "params", "id"];
/// Levels of log messages, the lowest first.
pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// Prefixes of methods in some revision that the model does not cover yet.
const OTHERS: [&str; 5] = ["tasks/", "server/", "subscriptions/", "sampling/", "elicitation/"];

/// Allowed answers to an object.
pub(crate) fn unit_of(message: &Json, session: &Session, facts: &Facts) -> RequestPart {
    let id = message.get("id");
    let readable = id.filter(|id| matches!(id, Json::String(_) | Json::Number(_)));
    let method = message.get("method").and_then(Json::as_str);
    let is_versioned = message.get("jsonrpc").and_then(Json::as_str) == Some("2.0");
    if message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some())
    {
        let refused = error_of(&[-32600, -32602, -32603, -32700], IdRule::OwnNullOrAbsent);
        let allowed = vec![refused.shows("refuse"), Allowed::silence().shows("silent")];
        return unit(readable, "MCP-BAS-16", allowed).about("response_to_server");
    }
    match (id, readable) {
        (Some(_), None) => {
            let error = error_with_any_id();
            let mut unit = unit(None, "MCP-BAS-14", vec![error, Allowed::silence()]);
            unit.extra.blame.accepted = Some("MCP-BAS-14");
            return unit;
        }
        (None, _) if is_versioned && method.is_some() => return notification(message),
        (None, _) => return unit(None, "MCP-BAS-12", vec![Allowed::silence(), any_reply(IdRule::Any)]),
        _ => {}
    }
    let (Some(id), Some(method), true) = (readable, method, is_versioned) else {
        let refused = error_of(&[-32600], IdRule::OwnNullOrAbsent);
        let mut unit = unit(readable, "MCP-BAS-07", vec![refused]);
        unit.extra.blame = Blame { code: Some("MCP-BAS-08"), id: Some("MCP-BAS-08"), ..Blame::default() };
        return unit;
    };
    let params = message.get("params");
    let mut unit = match params {
        Some(Json::Object(_)) | None => called(id, method, params, session, facts),
        Some(Json::Null) => {
            let mut unit = called(id, method, None, session, facts);
            unit.allowed.push(error_of(&[-32600, -32602], IdRule::OwnNullOrAbsent));
            unit.clause = "MCP-BAS-09";
            unit
        }
        Some(_) => {
            let codes: &[i64] = match is_known(method) {
                true => &[-32600, -32602],
                false => &[-32600, -32602, -32601],
            };
            let mut unit = unit(Some(id), "MCP-BAS-09", vec![error_of(codes, IdRule::OwnNullOrAbsent)]);
            unit.extra.blame.code = Some("MCP-BAS-08");
            unit
        }
    };
    let members = message.as_object().unwrap_or_default();
    if members.iter().any(|(name, _)| !MEMBERS.contains(&name.as_str())) {
        unit.allowed.push(error_of(&[-32600], IdRule::OwnNullOrAbsent));
        unit.clause = "MCP-BAS-06";
    }
    if let Json::Number(number) = id
        && number.text().contains(['.', 'e', 'E'])
    {
        for allowed in &mut unit.allowed {
            allowed.shows = Some("echo");
        }
        let refused = error_of(&[-32600, -32700, -32602], IdRule::OwnNullOrAbsent);
        unit.allowed.extend([refused.shows("refuse"), Allowed::silence().shows("silent")]);
        unit.clause = "MCP-BAS-15";
        unit = unit.about("fractional_id");
    }
    unit.extra.id = Some(id.clone());
    unit.extra.method = Some(method.to_owned());
    unit.extra.params = params.cloned();
    unit
}

/// True for a method of some revision.
pub(crate) fn is_known(method: &str) -> bool {
    let names = [
        INITIALIZE,
        PING,
        "tools/call",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/get",
        "logging/setLevel",
        "completion/complete",
    ];
    names.contains(&method)
        || list_of(method).is_some()
        || OTHERS.iter().any(|other| method.starts_with(other))
}

/// Notification that cancels a request.
pub(crate) const CANCELLED: &str = "notifications/cancelled";

fn notification(message: &Json) -> RequestPart {
    let mut unit = unit(None, "MCP-BAS-05", vec![Allowed::silence()]);
    let method = message.get("method").and_then(Json::as_str).unwrap_or_default();
    let cancels = message.pointer("/params/requestId").filter(|_| method == CANCELLED);
    let (method, params) = (Some(method.to_owned()), message.get("params").cloned());
    unit.extra = RequestNotes { method, params, cancels: cancels.cloned(), ..unit.extra };
    unit
}

/// Allowed answers to a valid request whose params are an object or absent.
fn called(id: &Json, method: &str, params: Option<&Json>, session: &Session, facts: &Facts) -> RequestPart {
    let known = ServerKnowledge::of(facts);
    let own = |clause, allowed| unit(Some(id), clause, allowed);
    let param = |name: &str| params.and_then(|params| params.get(name));
    if session.modern && !session.opened {
        return own("MCP-INI-08", vec![any_reply(IdRule::Own)]);
    }
    if method == INITIALIZE {
        return initialize(id, params, session, facts);
    }
    if method == PING {
        let clause = if session.opening { "MCP-UTL-01" } else { "MCP-INI-05" };
        return own(clause, vec![result()]);
    }
    if method == DISCOVER {
        return own("MCP-INI-08", vec![any_reply(IdRule::Any), Allowed::silence()]);
    }
    if !session.opening {
        let allowed = vec![result().shows("serve"), error_but(&[]).shows("error")];
        return own("MCP-INI-07", allowed).about("mcp_early_request");
    }
    if !session.ready {
        return own("MCP-INI-12", vec![any_reply(IdRule::Own)]);
    }
    if let Some(list) = list_of(method) {
        return page(id, list, params, session, known);
    }
    match method {
        "tools/call" => tool_call(id, params, session, facts),
        "resources/read" => read(id, params, session, known),
        "resources/subscribe" | "resources/unsubscribe" => {
            let uri = param("uri").and_then(Json::as_str).unwrap_or_default();
            let is_listed = known.items("resources").iter().any(|item| item["uri"] == uri);
            match session.declares(known, "resources/subscribe") {
                false => undeclared(id, None),
                true if is_listed => {
                    let mut unit = own("MCP-BAS-02", vec![result()]);
                    unit.extra.blame.refused = Some("MCP-RES-05");
                    unit
                }
                true => own("MCP-BAS-02", vec![any_reply(IdRule::Own)]),
            }
        }
        "prompts/get" => prompt(id, params, session, known),
        "logging/setLevel" => {
            let level = param("level").and_then(Json::as_str);
            match session.declares(known, "logging") {
                false => undeclared(id, None),
                true if level.is_some_and(|level| LEVELS.contains(&level)) => {
                    let mut unit = own("MCP-BAS-02", vec![result()]);
                    unit.extra.blame.refused = Some("MCP-UTL-02");
                    unit
                }
                true => refused_params(id, "MCP-UTL-03"),
            }
        }
        "completion/complete" => {
            let is_unknown = params.and_then(|params| params.pointer("/ref/name")).and_then(Json::as_str)
                == Some(UNKNOWN_PROMPT);
            match (session.declares(known, "completions"), session.revision) {
                (_, None | Some(Revision::R2024Nov)) => own("MCP-BAS-02", vec![any_reply(IdRule::Own)]),
                (false, _) => undeclared(id, Some("MCP-CAP-02")),
                (true, _) if is_unknown => refused_params(id, "MCP-UTL-07"),
                (true, _) => own("MCP-BAS-02", vec![any_reply(IdRule::Own)]),
            }
        }
        "tasks/get" | "tasks/result" | "tasks/cancel" if session.declares(known, "tasks") => {
            let task = param("taskId").and_then(Json::as_str).unwrap_or_default();
            let status = session.tasks.get(task).filter(|_| method == "tasks/cancel");
            match status.is_some_and(|status| is_terminal(status)) || task == UNKNOWN_TASK {
                true => refused_params(id, "MCP-TSK-04"),
                false => own("MCP-BAS-02", vec![any_reply(IdRule::Own)]),
            }
        }
        _ if is_known(method) => own("MCP-BAS-02", vec![any_reply(IdRule::Own)]),
        _ => {
            let mut unit = own("MCP-BAS-02", vec![error_of(&[-32601], IdRule::Own)]);
            let clause = Some("MCP-BAS-04");
            unit.extra.blame = Blame { code: clause, accepted: clause, ..Blame::default() };
            unit
        }
    }
}

/// Allowed answers to a request for what the server does not declare.
fn undeclared(id: &Json, listed: Option<&'static str>) -> RequestPart {
    let mut unit = unit(Some(id), "MCP-BAS-02", vec![error_of(&[-32601], IdRule::Own)]);
    let clause = Some("MCP-CAP-04");
    unit.extra.blame = Blame { code: clause, accepted: clause, listed, ..Blame::default() };
    unit
}

/// Allowed answers to a request for a page of a list.
fn page(
    id: &Json,
    list: &List,
    params: Option<&Json>,
    session: &Session,
    known: ServerKnowledge<'_>,
) -> RequestPart {
    let own = |clause, allowed| unit(Some(id), clause, allowed);
    let is_templates = list.member == "resourceTemplates";
    if !session.declares(known, list.capability) {
        return undeclared(id, Some("MCP-CAP-02"));
    }
    if let Some(cursor) = params.and_then(|params| params.get("cursor")) {
        let given = |cursor: &str| session.cursors.contains(&(list.method.to_owned(), cursor.to_owned()));
        if cursor.as_str() == Some("") {
            // Clients disagree about its meaning, and so may servers.
            return own("MCP-BAS-02", vec![any_reply(IdRule::Own)]);
        }
        if cursor.as_str().is_some_and(given) {
            return own("MCP-LST-04", vec![result()]);
        }
        let mut unit = own("MCP-BAS-02", vec![error_of(&[-32602], IdRule::Own).shows("error")]);
        unit.extra.blame.code = Some("MCP-LST-06");
        unit.extra.blame.accepted = Some("MCP-LST-06");
        if !session.cursors.iter().any(|(of, _)| of == list.method) {
            unit.allowed.extend([result().shows("ignore"), error_but(&[]).shows("error")]);
        }
        return unit.about("mcp_bad_cursor");
    }
    let clause = if is_templates { "MCP-CAP-07" } else { "MCP-CAP-01" };
    let mut unit = own(clause, vec![result(), error_but(&[-32601])]);
    unit.extra.open_by_error = Some("the list request got an error; it may need credentials");
    unit
}

/// Allowed answers to a request for the content of a resource.
fn read(id: &Json, params: Option<&Json>, session: &Session, known: ServerKnowledge<'_>) -> RequestPart {
    let own = |clause, allowed| unit(Some(id), clause, allowed);
    match params.and_then(|params| params.get("uri")).and_then(Json::as_str) {
        _ if !session.declares(known, "resources") => own("MCP-BAS-02", vec![any_reply(IdRule::Own)]),
        Some(UNKNOWN_URI) => {
            let allowed = vec![
                error_of(&[-32002], IdRule::Own).shows("-32002"),
                error_of(&[-32602], IdRule::Own).shows("-32602"),
            ];
            let mut unit = own("MCP-BAS-02", allowed).about("mcp_resource_unknown");
            unit.extra.blame =
                Blame { code: Some("MCP-RES-03"), accepted: Some("MCP-RES-02"), ..Blame::default() };
            unit
        }
        Some(uri)
            if session.uris.contains(uri)
                || known.items("resources").iter().any(|item| item["uri"] == uri) =>
        {
            let mut unit = own("MCP-BAS-02", vec![result()]);
            unit.extra.blame.refused = Some("MCP-RES-06");
            unit
        }
        Some(_) => own("MCP-BAS-02", vec![any_reply(IdRule::Own)]),
        None => refused_params(id, "MCP-RES-04"),
    }
}

/// Allowed answers to a request that must be refused with -32602. Another answer breaks `clause`; silence breaks
/// the clause that each request is answered.
fn refused_params(id: &Json, clause: &'static str) -> RequestPart {
    let mut unit = unit(Some(id), "MCP-BAS-02", vec![error_of(&[-32602], IdRule::Own)]);
    unit.extra.blame = Blame { code: Some(clause), accepted: Some(clause), ..Blame::default() };
    unit
}

fn initialize(id: &Json, params: Option<&Json>, session: &Session, facts: &Facts) -> RequestPart {
    let own = |clause, allowed| unit(Some(id), clause, allowed);
    if session.opening {
        let allowed = vec![result().shows("result"), error_but(&[]).shows("error")];
        return own("MCP-INI-09", allowed).about("mcp_second_initialize");
    }
    let Some(asked) = params.and_then(|params| params.get("protocolVersion")).and_then(Json::as_str) else {
        let mut unit = own("MCP-INI-10", vec![error_of(&[-32602], IdRule::Own)]);
        unit.extra.blame.code = Some("MCP-INI-10");
        return unit;
    };
    let accepted = ServerKnowledge::of(facts).revision_named();
    if accepted.unwrap_or_else(|| revision_asked(facts)) == asked {
        return own("MCP-INI-01", vec![result()]);
    }
    let allowed = vec![result().shows("other"), error_of(&[-32602, -32022], IdRule::Own).shows("error")];
    own("MCP-INI-03", allowed).about("mcp_unknown_version")
}

fn tool_call(id: &Json, params: Option<&Json>, session: &Session, facts: &Facts) -> RequestPart {
    let known = ServerKnowledge::of(facts);
    let own = |clause, allowed| unit(Some(id), clause, allowed);
    let free = || own("MCP-BAS-02", vec![any_reply(IdRule::Own)]);
    if !session.declares(known, "tools") {
        return free();
    }
    let param = |name: &str| params.and_then(|params| params.get(name));
    let arguments = param("arguments");
    let is_malformed = !matches!(arguments, None | Some(Json::Null | Json::Object(_)));
    let name = param("name").and_then(Json::as_str).filter(|_| !is_malformed);
    let Some(name) = name else {
        let mut unit = own("MCP-BAS-02", vec![error_of(&[-32602, -32600], IdRule::OwnNullOrAbsent)]);
        let clause = Some("MCP-TOL-03");
        let accepted = Some("MCP-TOL-04");
        unit.extra.blame = Blame { code: clause, accepted, tool_error: clause, ..Blame::default() };
        return unit;
    };
    if name == UNKNOWN_TOOL {
        let mut unit = own("MCP-BAS-02", vec![error_of(&[-32602], IdRule::Own)]);
        unit.extra.blame = Blame {
            code: Some("MCP-TOL-13"),
            accepted: Some("MCP-TOL-02"),
            tool_error: Some("MCP-TOL-01"),
            ..Blame::default()
        };
        return unit;
    }
    let Some(tool) = known.tool(name) else { return free() };
    let has_task = param("task").is_some();
    if has_task && !session.declares(known, "tasks") {
        let mut unit = own("MCP-BAS-02", vec![result()]);
        unit.extra.blame.refused = Some("MCP-TSK-01");
        return unit;
    }
    if session.declares(known, arguments::TASKS) {
        match (has_task, arguments::task_support(tool)) {
            (true, "optional" | "required") => {
                let mut unit = own("MCP-BAS-02", vec![result()]);
                unit.extra.blame.refused = Some("MCP-TSK-02");
                return unit;
            }
            (true, _) => {
                let mut unit = own("MCP-BAS-02", vec![error_of(&[-32601], IdRule::Own)]);
                let clause = Some("MCP-TSK-06");
                unit.extra.blame = Blame { code: clause, accepted: clause, ..Blame::default() };
                return unit;
            }
            (false, "required") => {
                let codes = [(&[-32601], "-32601"), (&[-32600], "-32600")];
                let errors = codes.map(|(codes, name)| error_of(codes, IdRule::Own).shows(name));
                // Some servers refuse with a failed call.
                let allowed = errors.into_iter().chain([result_with(Content::ToolError)]).collect();
                return own("MCP-TSK-05", allowed).about("mcp_task_required");
            }
            (false, _) => {}
        }
    }
    if arguments.is_some_and(Json::is_null) {
        return free();
    }
    let empty = Json::Object(Vec::new());
    match arguments::fit(tool, arguments.unwrap_or(&empty)) {
        Fits::No => {
            let mut unit = own("MCP-BAS-02", vec![result_with(Content::ToolError)]);
            unit.extra.blame.accepted = Some("MCP-TOL-05");
            if session.revision >= Some(Revision::R2025Nov) {
                unit.extra.blame.refused = Some("MCP-TOL-06");
                return unit;
            }
            unit.allowed =
                vec![result_with(Content::ToolError).shows("is_error"), error_but(&[]).shows("error")];
            unit.about("mcp_invalid_args")
        }
        Fits::Beyond => {
            let mut unit = own("MCP-BAS-02", vec![result_with(Content::ToolError), error_but(&[])]);
            unit.extra.blame.accepted = Some("MCP-TOL-05b");
            unit
        }
        Fits::Yes if arguments.is_none() => {
            let mut unit = own("MCP-BAS-02", vec![result(), error_but(&[-32602, -32600])]);
            unit.extra.blame.code = Some("MCP-TOL-11");
            unit.extra.open_by_error = Some("the tool failed");
            unit
        }
        Fits::Yes if comes_back(name, arguments, facts).is_some() => {
            let (clause, text) = comes_back(name, arguments, facts).unwrap_or_default();
            let mut unit = own(clause, vec![result_with(Content::Text(text))]);
            unit.extra.blame.refused = Some("MCP-BAS-02");
            unit
        }
        Fits::Yes | Fits::Unclear => {
            let mut unit = free();
            unit.extra.open_by_error = Some("the tool failed");
            unit
        }
    }
}

fn prompt(id: &Json, params: Option<&Json>, session: &Session, known: ServerKnowledge<'_>) -> RequestPart {
    let free = || unit(Some(id), "MCP-BAS-02", vec![any_reply(IdRule::Own)]);
    if !session.declares(known, "prompts") {
        return free();
    }
    let name = params.and_then(|params| params.get("name")).and_then(Json::as_str);
    if name == Some(UNKNOWN_PROMPT) {
        return refused_params(id, "MCP-PRM-02");
    }
    let Some(prompt) = known.items("prompts").iter().find(|item| item["name"].as_str() == name) else {
        return free();
    };
    let given =
        |name: &str| params.and_then(|params| params.pointer("/arguments")).and_then(|all| all.get(name));
    let wanted = prompt["arguments"].as_array().into_iter().flatten();
    let mut required = wanted.filter(|argument| argument["required"] == true);
    let is_missing = required.any(|argument| given(argument["name"].as_str().unwrap_or_default()).is_none());
    if is_missing { refused_params(id, "MCP-PRM-03") } else { free() }
}

/// Text of the arguments that a role returns, with its clause.
fn comes_back(name: &str, arguments: Option<&Json>, facts: &Facts) -> Option<(&'static str, String)> {
    let of = |role: &str| facts.roles.get(role).filter(|role| role["name"] == name);
    if let Some(echo) = of("echo") {
        let text = arguments?.get(echo["arg"].as_str()?)?.as_str()?;
        return Some(("MCP-FRM-10", text.to_owned()));
    }
    let template = of("sleep")?["arguments"].as_object()?;
    let (place, _) = template.iter().find(|(_, value)| *value == "{text}")?;
    Some(("MCP-TOL-12", arguments?.get(place)?.as_str()?.to_owned()))
}
