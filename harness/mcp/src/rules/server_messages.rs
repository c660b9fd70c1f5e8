//! Rules about messages beside answers: notifications and requests of the server.

use std::collections::{BTreeMap, BTreeSet};

use super::{Form, Kind as Type, Need, first_of_each};
use crate::connection::{INITIALIZE, INITIALIZED, PING};
use crate::model::{LEVELS, Server, Session};
use crate::server_knowledge::ServerKnowledge;
use peerproof_engine::contract::face::{SessionTrace, Trace};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::transcript::EventKind;

/// A request or notification of the client.
struct ClientMessage<'a> {
    method: &'a str,
    params: Option<&'a Json>,
    id: Option<&'a Json>,
    /// Index of the event that wrote it.
    place: usize,
    /// Time, microseconds.
    at_us: u64,
    /// Index of the frame that answers it, and that answer.
    answer: Option<(usize, &'a Json)>,
    step: usize,
}

/// Faults of such messages.
pub(super) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let nobody = Session::default();
    let session = trace.state.session(heard.session).unwrap_or(&nobody);
    let known = ServerKnowledge::of(&trace.transcript.facts);
    let said = said(heard);
    let ready = ready(trace, heard.session);
    let mut ids: BTreeSet<String> = BTreeSet::new();
    let mut progress: BTreeMap<String, f64> = BTreeMap::new();
    let mut found = Vec::new();
    for (number, output) in heard.output.iter().enumerate() {
        let Some(message) = output.held.whole().filter(|message| message.get("method").is_some()) else {
            continue;
        };
        let mut form = Form::of(message, None);
        let method = message.get("method").and_then(Json::as_str).unwrap_or_default();
        let declares = |name: &str| session.declares(known, name);
        if message.get("id").is_some() {
            request(&mut form, method, output.place, &said, ready);
            let is_id = |id: &&Json| matches!(id, Json::String(_) | Json::Number(_));
            if message.get("id").filter(is_id).is_some_and(|id| !ids.insert(id.to_text())) {
                form.fault(
                    "MCP-SRQ-01",
                    "id_twice",
                    "/id",
                    "an id that no request of the session had before",
                );
            }
        }
        match method {
            "notifications/message" => {
                if !declares("logging") {
                    let expected = "no log message without the capability `logging`";
                    form.fault("MCP-CAP-03", "undeclared_log", "", expected);
                }
                log(&mut form, number, output.place, &said);
            }
            "notifications/tools/list_changed" if !declares("tools/listChanged") => {
                form.fault("MCP-CAP-06", "undeclared_change", "", "`listChanged: true` before this");
            }
            "notifications/resources/list_changed" if !declares("resources/listChanged") => {
                form.fault("MCP-CAP-06", "undeclared_change", "", "`listChanged: true` before this");
            }
            "notifications/prompts/list_changed" if !declares("prompts/listChanged") => {
                form.fault("MCP-CAP-06", "undeclared_change", "", "`listChanged: true` before this");
            }
            "notifications/resources/updated" => {
                let is_before = |said: &&ClientMessage<'_>| said.place < output.place;
                let mut subscribed =
                    said.iter().filter(is_before).filter(|said| said.method == "resources/subscribe");
                if subscribed.next().is_none() {
                    form.fault("MCP-CAP-06", "unasked_update", "", "an update of a subscribed resource");
                }
            }
            "notifications/progress" => progressed(&mut form, number, output.place, &said, &mut progress),
            _ => {}
        }
        found.append(&mut form.found);
    }
    found.extend(cancelled(trace, heard, &said));
    found.extend(slow_pings(trace, heard, &said));
    first_of_each(found)
}

/// Index of the event that ended the opening of a session.
fn ready(trace: &Trace<'_, Server>, session: usize) -> Option<usize> {
    trace.transcript.of(session).position(|event| match &event.kind {
        EventKind::Sent { payload, .. } => {
            let bytes = payload.expand(&Vars::new()).unwrap_or_default();
            bytes.windows(INITIALIZED.len()).any(|part| part == INITIALIZED.as_bytes())
        }
        _ => false,
    })
}

fn said<'a>(heard: &SessionTrace<'a, Server>) -> Vec<ClientMessage<'a>> {
    let each = heard.exchanges.iter().flat_map(|(asked, came)| {
        let asked = *asked;
        asked.due.parts.iter().zip(&came.answers).map(move |(part, answer)| ClientMessage {
            method: part.extra.method.as_deref().unwrap_or_default(),
            params: part.extra.params.as_ref(),
            id: part.extra.id.as_ref(),
            place: asked.spot.sent,
            at_us: asked.at_us,
            answer: answer.as_ref().map(|answer| (answer.frame, answer.message)),
            step: asked.step,
        })
    });
    each.collect()
}

/// Checks a request of the server: its time, its required capability, its members.
fn request(
    form: &mut Form<'_>,
    method: &str,
    place: usize,
    said: &[ClientMessage<'_>],
    ready: Option<usize>,
) {
    let before = || said.iter().filter(|said| said.place <= place);
    let is_opening = before().any(|said| said.method == INITIALIZE);
    if method != PING && is_opening && ready.is_none_or(|ready| place < ready) {
        let expected = "no request but `ping` before notifications/initialized";
        form.fault("MCP-INI-14", "early_request", "/method", expected);
    }
    let capability = match method {
        "roots/list" => "roots",
        "sampling/createMessage" => "sampling",
        "elicitation/create" => "elicitation",
        _ if method.starts_with("tasks/") => "tasks",
        _ => return,
    };
    let opening = said.iter().find(|said| said.method == INITIALIZE);
    let declared = opening.and_then(|said| said.params?.pointer(&format!("/capabilities/{capability}")));
    if opening.is_some() && declared.is_none() {
        let expected = format!("no request for `{capability}`, because the client does not declare it");
        form.fault("MCP-CAP-05", "undeclared_request", "/method", &expected);
        return;
    }
    const SHAPE: &str = "MCP-SRQ-03";
    match method {
        "sampling/createMessage" => {
            form.member(SHAPE, "/params/messages", Type::Array, Need::Required);
            form.member(SHAPE, "/params/maxTokens", Type::Number, Need::Required);
            let has_tools = form.value.pointer("/params/tools").is_some();
            if has_tools && declared.is_some_and(|declared| declared.get("tools").is_none()) {
                form.fault(
                    SHAPE,
                    "undeclared_tools",
                    "/params/tools",
                    "no `tools`, because the client does not declare them",
                );
            }
        }
        "elicitation/create" => {
            form.member(SHAPE, "/params/message", Type::Text, Need::Required);
            let mode = form.value.pointer("/params/mode").and_then(Json::as_str);
            if mode.is_none_or(|mode| mode == "form") {
                form.member(SHAPE, "/params/requestedSchema", Type::Object, Need::Required);
                flat(form, SHAPE);
            } else if declared.is_some_and(|declared| declared.get(mode.unwrap_or_default()).is_none()) {
                form.fault(SHAPE, "undeclared_mode", "/params/mode", "a mode that the client declares");
            }
        }
        _ => {}
    }
}

/// Checks that the schema of an elicitation has only properties of primitive types or sets of strings.
fn flat(form: &mut Form<'_>, clause: &str) {
    let properties = form.value.pointer("/params/requestedSchema/properties").and_then(Json::as_object);
    let is_flat = |value: &Json| match value.get("type").and_then(Json::as_str) {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => value.pointer("/items/enum").is_some() || value.pointer("/items/anyOf").is_some(),
        Some(_) => false,
        None => value.get("enum").is_some() || value.get("oneOf").is_some(),
    };
    if let Some((name, _)) = properties.unwrap_or_default().iter().find(|(_, value)| !is_flat(value)) {
        let at = format!("/params/requestedSchema/properties/{name}");
        form.fault(clause, "nested_schema", &at, "properties of primitive types");
    }
}

/// Checks a log message.
fn log(form: &mut Form<'_>, number: usize, place: usize, said: &[ClientMessage<'_>]) {
    if form.value.get("params").is_some_and(|params| params.as_object().is_none()) {
        return;
    }
    let level = form.value.pointer("/params/level").and_then(Json::as_str);
    let rank = level.and_then(|level| LEVELS.iter().position(|known| *known == level));
    if rank.is_none() {
        form.fault("MCP-UTL-04", "log_level", "/params/level", "one of the eight levels");
    }
    if form.value.pointer("/params/data").is_none() {
        form.fault("MCP-UTL-04", "log_data", "/params/data", "`data`");
    }
    form.member("MCP-UTL-04", "/params/logger", Type::Text, Need::Optional);
    let sets = || said.iter().filter(|said| said.method == "logging/setLevel");
    // A level without a confirmation may already apply.
    let is_open =
        sets().any(|said| said.place < place && said.answer.is_none_or(|(frame, _)| frame > number));
    let set = sets().rfind(|said| {
        said.answer.is_some_and(|(frame, answer)| frame < number && answer.get("result").is_some())
    });
    let least = set.and_then(|said| said.params?.get("level")?.as_str());
    let least = least.and_then(|least| LEVELS.iter().position(|known| *known == least));
    if let (Some(rank), Some(least), false) = (rank, least, is_open)
        && rank < least
    {
        let expected = format!("no message below the level {:?}", LEVELS[least]);
        form.fault("MCP-UTL-05", "below_level", "/params/level", &expected);
    }
}

/// Checks a progress notification.
fn progressed(
    form: &mut Form<'_>,
    number: usize,
    place: usize,
    said: &[ClientMessage<'_>],
    last: &mut BTreeMap<String, f64>,
) {
    form.member("MCP-PRG-01", "/params/progress", Type::Number, Need::Required);
    let Some(token) = form.value.pointer("/params/progressToken") else {
        form.fault("MCP-PRG-01", "no_token", "/params/progressToken", "the progress token of a request");
        return;
    };
    let token_of = |said: &ClientMessage<'_>| {
        said.params.and_then(|params| params.pointer("/_meta/progressToken")).cloned()
    };
    let given = said.iter().rfind(|said| said.place <= place && token_of(said).as_ref() == Some(token));
    let Some(request) = given else {
        let expected = "the progress token of a request, with the same type and value";
        form.fault("MCP-PRG-01", "unknown_token", "/params/progressToken", expected);
        return;
    };
    if request.answer.is_some_and(|(frame, _)| frame < number) {
        form.fault("MCP-PRG-03", "late_progress", "", "no progress after the response");
    }
    if let Some(progress) = form.value.pointer("/params/progress").and_then(Json::as_f64) {
        let key = format!("{} {}", token.to_text(), request.id.map(Json::to_text).unwrap_or_default());
        if last.insert(key, progress).is_some_and(|before| progress <= before) {
            form.fault("MCP-PRG-02", "no_growth", "/params/progress", "`progress` grows");
        }
    }
}

/// Clause: `ping` is answered while calls run.
pub(crate) const BESIDE_CALLS: &str = "MCP-TOL-12b";

/// Time within which an idle server answers a `ping`, microseconds.
const PONG_US: f64 = 2_000_000.0;

/// Findings about late answers to `ping`, in conversations about that: from an idle server, and from one with
/// running calls, all of which it answered earlier.
fn slow_pings(
    trace: &Trace<'_, Server>,
    heard: &SessionTrace<'_, Server>,
    said: &[ClientMessage<'_>],
) -> Vec<Finding> {
    let scale = trace.transcript.timeout_scale.max(1.0);
    let call_ms = trace.transcript.facts.roles.get("sleep").and_then(|role| role["ms"].as_u64());
    let calls = || said.iter().filter(|said| said.method == "tools/call");
    let pings = heard.answers().filter(|(_, unit, _)| unit.extra.method.as_deref() == Some(PING));
    let late = pings.filter_map(|(asked, _, answer)| {
        let (clause, most_us, expected) = match asked.aim.as_ref()?.clause.0.as_str() {
            "MCP-UTL-01" => ("MCP-UTL-01", PONG_US * scale, "a result within 2 s"),
            BESIDE_CALLS if calls().all(|call| call.answer.is_some_and(|(at, _)| at < answer.frame)) => {
                (BESIDE_CALLS, call_ms? as f64 * 500.0, "a result while the calls run")
            }
            _ => return None,
        };
        let took_us = heard.output.get(answer.frame)?.at_us.saturating_sub(asked.at_us);
        let got = format!("a result after {} ms", took_us / 1_000);
        let finding = Finding::new(clause, "late_pong", expected, got);
        (took_us as f64 > most_us).then(|| finding.at(asked.step).repaired_by(Repair::Sooner))
    });
    late.collect()
}

/// Fraction of a call's usual duration before which a result shows that it was cut short.
const EARLY_SHARE: f64 = 0.8;

/// Findings about answers to a cancelled request: errors, and results before the usual time.
fn cancelled(
    trace: &Trace<'_, Server>,
    heard: &SessionTrace<'_, Server>,
    said: &[ClientMessage<'_>],
) -> Vec<Finding> {
    let sleep = trace.transcript.facts.roles.get("sleep");
    let usual_us = |request: &ClientMessage<'_>| {
        let name = request.params?.get("name")?.as_str()?;
        let ms = sleep.filter(|role| role["name"] == name)?["ms"].as_u64()?;
        Some(ms as f64 * 1_000.0 * EARLY_SHARE)
    };
    let mut found = Vec::new();
    for cancel in said.iter().filter(|said| said.method == "notifications/cancelled") {
        let id = cancel.params.and_then(|params| params.get("requestId"));
        let Some(request) = said.iter().find(|said| said.id.is_some() && said.id == id) else { continue };
        let Some((frame, answer)) = request.answer.filter(|_| request.place < cancel.place) else { continue };
        let Some(output) = heard.output.get(frame).filter(|output| output.place > cancel.place) else {
            continue;
        };
        let took_us = output.at_us.saturating_sub(request.at_us) as f64;
        let is_early = usual_us(request).is_some_and(|usual_us| took_us < usual_us);
        let mut form = Form::of(answer, Some(request.step));
        if answer.get("error").is_some() {
            form.fault("MCP-CAN-01", "cancelled_by_error", "", "no reply to a cancelled request");
        } else if is_early {
            let expected = "no reply to a cancelled request, or a result after the usual time";
            form.fault("MCP-CAN-01", "cut_short", "", expected);
        }
        found.append(&mut form.found);
    }
    found
}
