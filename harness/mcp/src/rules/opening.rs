//! Rules about the result of `initialize`.

use super::{Form, Kind, Need, results};
use crate::connection::INITIALIZE;
use crate::model::{RequestPart, Server};
use crate::revision::Revision;
use crate::server_knowledge::ServerKnowledge;
use peerproof_engine::contract::face::{SessionTrace, Trace};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;

const FORM: &str = "MCP-INI-01";
const UNKNOWN_REVISION: &str = "MCP-INI-03";
const NEWEST_OFFERED: &str = "MCP-INI-04";
/// Capabilities that are objects, with their flags.
const FLAGS: [(&str, &str); 6] = [
    ("tools", "listChanged"),
    ("prompts", "listChanged"),
    ("resources", "listChanged"),
    ("resources", "subscribe"),
    ("logging", ""),
    ("completions", ""),
];

/// Findings about openings.
pub(super) fn judge(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (asked, unit, result) in results(heard, INITIALIZE) {
        let mut form = Form::of(result, Some(asked.step));
        form.member(FORM, "/protocolVersion", Kind::Text, Need::Required);
        form.member(FORM, "/capabilities", Kind::Object, Need::Required);
        form.member(FORM, "/serverInfo", Kind::Object, Need::Required);
        if result.get("serverInfo").and_then(Json::as_object).is_some() {
            form.member(FORM, "/serverInfo/name", Kind::Text, Need::Required);
            form.member(FORM, "/serverInfo/version", Kind::Text, Need::Required);
            form.member(FORM, "/serverInfo/title", Kind::Text, Need::Optional);
        }
        form.member(FORM, "/instructions", Kind::Text, Need::Optional);
        form.member(FORM, "/capabilities/experimental", Kind::Object, Need::Optional);
        for (name, flag) in FLAGS {
            let at = format!("/capabilities/{name}");
            match flag {
                "" => form.member(FORM, &at, Kind::Object, Need::Optional),
                flag if result.pointer(&at).and_then(Json::as_object).is_some() => {
                    form.member(FORM, &format!("{at}/{flag}"), Kind::Bool, Need::Optional);
                }
                _ => form.member(FORM, &at, Kind::Object, Need::Optional),
            }
        }
        // A capability may be checked twice.
        form.found.dedup_by(|one, other| one.repair == other.repair);
        negotiated(trace, unit.extra.params.as_ref(), &mut form);
        found.append(&mut form.found);
    }
    found
}

/// Checks the revision that the server offers for an unknown one.
fn negotiated(trace: &Trace<'_, Server>, params: Option<&Json>, form: &mut Form<'_>) {
    let asked = params.and_then(|params| params.get("protocolVersion")).and_then(Json::as_str);
    let offered = form.value.get("protocolVersion").and_then(Json::as_str);
    let (Some(asked), Some(offered)) = (asked, offered) else { return };
    if Revision::of(asked).is_some() {
        return;
    }
    let known = ServerKnowledge::of(&trace.transcript.facts).revision_named();
    if offered == asked && known != Some(asked) {
        let expected = "a supported revision, or an error";
        form.fault(UNKNOWN_REVISION, "unknown_accepted", "/protocolVersion", expected);
    } else if known.is_some_and(|known| offered < known) {
        let expected = format!("the newest revision of the server, {}", known.unwrap_or_default());
        form.fault(NEWEST_OFFERED, "older_offered", "/protocolVersion", &expected);
    }
}

/// Findings about revisions that the server names but does not accept in `initialize`, compared over all sessions
/// of a conversation.
pub(crate) fn revisions(trace: &Trace<'_, Server>, heard: &SessionTrace<'_, Server>) -> Vec<Finding> {
    let offered = trace
        .sessions
        .iter()
        .flat_map(|session| results(session, INITIALIZE))
        .filter_map(|(_, _, result)| result.get("protocolVersion").and_then(Json::as_str));
    let refusals = trace.sessions.iter().flat_map(|session| session.answers());
    let supported = refusals.filter_map(|(_, _, answer)| answer.message.pointer("/error/data/supported"));
    let supported = supported.filter_map(Json::as_array).flatten().filter_map(Json::as_str);
    let named: Vec<&str> = offered.chain(supported).collect();
    let mut found = Vec::new();
    // A second one may be refused.
    let of_opening = |unit: &RequestPart| unit.extra.method.as_deref() == Some(INITIALIZE);
    for (asked, unit, answer) in heard.answers().filter(|(_, unit, _)| of_opening(unit)).take(1) {
        let wanted = unit.extra.params.as_ref().and_then(|params| params.get("protocolVersion"));
        let wanted = wanted.and_then(Json::as_str).filter(|wanted| Revision::of(wanted).is_some());
        let Some(wanted) = wanted.filter(|wanted| named.contains(wanted)) else { continue };
        let came = answer.message.pointer("/result/protocolVersion").and_then(Json::as_str);
        // A wrong type is a fault of its own.
        if came.map_or(answer.message.get("error").is_some(), |came| came != wanted) {
            let result = answer.message.get("result").unwrap_or(answer.message);
            let mut form = Form::of(result, Some(asked.step));
            let expected = format!("the requested revision {wanted}, because the server supports it");
            form.fault("MCP-INI-02", "other_offered", "/protocolVersion", &expected);
            found.append(&mut form.found);
        }
    }
    found
}
