//! Smaller variants of one step of a conversation.

use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::{Act, Plan};

use super::{GeneratedLine, silent_lines};

/// Smaller variants of step `at`, most promising first: fewer lines, then fewer and plainer members.
pub(crate) fn variants(plan: &Plan, at: usize) -> Vec<Plan> {
    let Some(step) = plan.steps.get(at) else { return Vec::new() };
    let Act::Send { payload, .. } = &step.act else { return Vec::new() };
    if step.canary || step.capture.is_some() {
        return Vec::new();
    }
    let lines = lines(payload);
    let mut variants = Vec::new();
    if lines.len() > 1 {
        let mut size = lines.len() / 2;
        while size > 0 {
            for from in (0..lines.len()).step_by(size) {
                let end = (from + size).min(lines.len());
                let kept: Vec<usize> = (0..lines.len()).filter(|line| !(from..end).contains(line)).collect();
                if !kept.is_empty() {
                    variants.push(with_lines(plan, at, &lines, &kept));
                }
            }
            size /= 2;
        }
        return variants;
    }
    let Some(line) = lines.first() else { return variants };
    for smaller in smaller_requests(line) {
        variants.push(with_line(plan, at, smaller));
    }
    variants
}

/// Lines of the payload, each without its line feed. Runs are not split.
fn lines(payload: &Payload) -> Vec<Payload> {
    let mut lines: Vec<Payload> = Vec::new();
    let mut open = Payload::default();
    for segment in &payload.0 {
        let Segment::Text(text) = segment else {
            open.0.push(segment.clone());
            continue;
        };
        let mut parts = text.split('\n').peekable();
        while let Some(part) = parts.next() {
            if !part.is_empty() {
                open.0.push(Segment::Text(part.to_owned()));
            }
            if parts.peek().is_some() {
                lines.push(std::mem::take(&mut open));
            }
        }
    }
    if !open.0.is_empty() {
        lines.push(open);
    }
    lines
}

fn with_lines(plan: &Plan, at: usize, lines: &[Payload], kept: &[usize]) -> Plan {
    let mut plan = plan.clone();
    plan.by_model = true;
    let step = &mut plan.steps[at];
    if let serde_json::Value::Array(expects) = &step.expect {
        let left = kept.iter().filter_map(|line| expects.get(*line).cloned()).collect();
        step.expect = if expects.len() == lines.len() {
            serde_json::Value::Array(left)
        } else {
            serde_json::Value::Null
        };
    } else {
        step.expect = serde_json::Value::Null;
    }
    if let Act::Send { payload, await_frames, .. } = &mut step.act {
        let mut all = Payload::default();
        let mut replies = 0;
        for line in kept {
            let line = lines[*line].clone();
            replies +=
                1 - silent_lines(&GeneratedLine { payload: line.clone(), ..GeneratedLine::default() }).min(1);
            all = all.then(line).then(Payload::text("\n"));
        }
        *payload = Payload(super::merged(all.0));
        *await_frames = (*await_frames).min(replies);
    }
    plan
}

fn with_line(plan: &Plan, at: usize, line: String) -> Plan {
    let mut plan = plan.clone();
    plan.by_model = true;
    if let Act::Send { payload, .. } = &mut plan.steps[at].act {
        let ends = matches!(payload.0.last(), Some(Segment::Text(text)) if text.ends_with('\n'));
        *payload = Payload::text(if ends { line + "\n" } else { line });
    }
    plan
}

/// Plainer requests; empty if the line is not a request.
fn smaller_requests(line: &Payload) -> Vec<String> {
    let Ok(bytes) = line.expand(&peerproof_engine::data::payload::Vars::new()) else { return Vec::new() };
    let Ok(decoded) = json::decode(&bytes, &DecodeLimits::default()) else { return Vec::new() };
    let mut request = decoded.value;
    let Some(members) = request.as_object() else { return Vec::new() };
    let mut smaller = Vec::new();
    let names: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
    for name in &names {
        let mut without = request.clone();
        drop(without.remove(name));
        smaller.push(without.to_text());
    }
    let plain = [
        ("input_json", "\"{}\""),
        ("ds_state", "{}"),
        ("ds_state", "{\"delta\":true}"),
        ("idempotency_key", "\"k\""),
    ];
    for (name, text) in plain {
        let Ok(value) = text.parse::<Json>() else { continue };
        if request.get(name).is_some_and(|known| *known != value) {
            let mut plainer = request.clone();
            plainer.set(name, value);
            smaller.push(plainer.to_text());
        }
    }
    if let Some(Json::String(text)) = request.get_mut("input_json")
        && let Ok(decoded) = json::decode(text.as_bytes(), &DecodeLimits::default())
        && let Some(members) = decoded.value.as_object()
    {
        let inner: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
        for name in inner {
            let mut without = decoded.value.clone();
            drop(without.remove(&name));
            let mut plainer = request.clone();
            plainer.set("input_json", without.to_text());
            smaller.push(plainer.to_text());
        }
    }
    smaller
}
