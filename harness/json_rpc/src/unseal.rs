//! Makes a recorded conversation replayable: values that depend on the time of writing become placeholders of
//! [`super::seal`].
//!
//! A right signature becomes right again. A wrong one stays as it was, with a fresh time and nonce. Repeated nonces
//! stay repeated, and a timestamp keeps its distance from the time of writing.

use std::collections::BTreeMap;
use std::ops::Range;

use super::model::auth::key;
use super::seal::{ABSENT, elements};
use super::signature::{Signable, signable, signature};
use super::talk::quoted;
use peerproof_engine::data::json::{self, DecodeLimits, Json, string_end};
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Distance within which a timestamp counts as the time of writing, s.
const NOW_S: u64 = 2;
/// Longest nonce that is replaced, characters; longer ones are intentional.
const NONCE_CHARS_MAX: usize = 64;

/// The plan of a recorded conversation with a server that checks signatures, ready to be sealed again. `None` if
/// the plan needs no change.
pub(crate) fn reopened(transcript: &Transcript) -> Option<Plan> {
    let key = key(&transcript.facts).filter(|_| transcript.plan.recorded)?;
    let clock_us = transcript.events.iter().find_map(|event| match event.kind {
        EventKind::Clock { unix_ms } => Some(i128::from(unix_ms) * 1_000 - i128::from(event.at_us)),
        _ => None,
    })?;
    let mut opener = Opener { key: key.as_bytes(), nonces: BTreeMap::new(), unix_s: 0 };
    let mut plan = Plan::clone(&transcript.plan);
    for event in &transcript.events {
        let EventKind::Sent { step, .. } = &event.kind else { continue };
        let Some(Act::Send { payload, .. }) = plan.steps.get_mut(*step).map(|step| &mut step.act) else {
            continue;
        };
        let Ok(bytes) = payload.expand(&Vars::new()) else { continue };
        opener.unix_s = i64::try_from((clock_us + i128::from(event.at_us)) / 1_000_000).unwrap_or(0);
        if let Some(opened) = opener.lines(&bytes) {
            *payload = Payload::from_bytes(&opened);
        }
    }
    Some(plan)
}

struct Opener<'a> {
    key: &'a [u8],
    /// Numbers that stand for the recorded nonces.
    nonces: BTreeMap<String, usize>,
    /// Time at which the message was written, seconds since 1970.
    unix_s: i64,
}

impl Opener<'_> {
    /// Reopens whole lines. `None` if nothing changes.
    fn lines(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            match self.line(line) {
                Some(opened) => out.push_str(&opened),
                None => out.push_str(line),
            }
        }
        (out != text).then(|| out.into_bytes())
    }

    fn line(&mut self, line: &str) -> Option<String> {
        let value = json::decode(line.as_bytes(), &DecodeLimits::default()).ok()?.value;
        match &value {
            Json::Object(_) => self.message(line, &value),
            Json::Array(items) => {
                let (mut out, mut at) = (String::new(), 0);
                for (range, item) in elements(line).into_iter().zip(items) {
                    let element = &line[range.clone()];
                    out.push_str(&line[at..range.start]);
                    out.push_str(&self.message(element, item).unwrap_or_else(|| element.to_owned()));
                    at = range.end;
                }
                out.push_str(&line[at..]);
                Some(out)
            }
            _ => None,
        }
    }

    fn message(&mut self, text: &str, message: &Json) -> Option<String> {
        let Json::Object(members) = message else { return None };
        if message.get("encoding").is_some() && message.get("method").is_none()
            || signable(message) == Signable::No
        {
            return None;
        }
        let Some(auth) = message.get("auth") else {
            let member = if members.is_empty() { ABSENT.trim_end_matches(',') } else { ABSENT };
            return Some(text.replacen('{', &format!("{{{member}"), 1));
        };
        let place = member(text, "auth")?;
        let mut words = Vec::new();
        if auth.get("signature").and_then(Json::as_str) == Some(&signature(self.key, message)) {
            words.push(("signature", "\"@signature\"".to_owned()));
        }
        if let Some(timestamp) = auth.get("timestamp").and_then(Json::as_i64) {
            let ahead = timestamp.saturating_sub(self.unix_s);
            let offset = if ahead.unsigned_abs() <= NOW_S { String::new() } else { format!("{ahead:+}") };
            words.push(("timestamp", format!("\"@now{offset}\"")));
        }
        let of_length = |nonce: &&str| (1..=NONCE_CHARS_MAX).contains(&nonce.chars().count());
        if let Some(nonce) = auth.get("nonce").and_then(Json::as_str).filter(of_length) {
            let next = self.nonces.len() + 1;
            let number = self.nonces.entry(nonce.to_owned()).or_insert(next);
            words.push(("nonce", quoted(&format!("@nonce:{number}"))));
        }
        let mut opened = text[place.clone()].to_owned();
        for (name, word) in words {
            opened.replace_range(member(&opened, name)?, &word);
        }
        Some([&text[..place.start], &opened, &text[place.end..]].concat())
    }
}

/// Position of the value of this member in the text of an object, which is valid JSON.
fn member(text: &str, name: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let (mut depth, mut at, mut start, mut is_wanted) = (0_usize, 0, None, false);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = string_end(bytes, at + 1);
                if depth == 1 && start.is_none() {
                    is_wanted = text[at..end].parse::<Json>().ok()?.as_str() == Some(name);
                }
                at = end;
                continue;
            }
            b':' if depth == 1 => start = Some(at + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b',' | b'}' if depth == 1 => {
                if let Some(start) = start.take().filter(|_| is_wanted) {
                    return Some(start..at);
                }
                if *byte == b'}' {
                    return None;
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::seal::seal;
    use super::*;
    use peerproof_engine::contract::boundary::WriteContext;
    use peerproof_engine::data::clause::Side;
    use peerproof_engine::data::facts::Facts;
    use peerproof_engine::data::plan::{Session, Step};
    use peerproof_engine::data::transcript::Event;

    fn facts() -> Facts {
        let mut facts = Facts::new(Side::Provider);
        facts.features.insert("auth".to_owned(), serde_json::json!({ "key": "k" }));
        facts
    }

    fn sealed(text: &str, unix_ms: u64) -> String {
        let moment = WriteContext { unix_ms, run: "r".to_owned(), step: 0, is_one_body: false };
        String::from_utf8(seal(&facts(), text.as_bytes(), &moment).unwrap()).unwrap()
    }

    /// The reopened form of this text, recorded two seconds after the start.
    fn opened(text: &str) -> String {
        let payload = Payload::text(text);
        let step = Step::new(Act::Send {
            payload: payload.clone(),
            chunking: peerproof_engine::data::plan::Chunking::Whole,
            await_frames: 0,
        });
        let plan =
            Plan { sessions: vec![Session::default()], steps: vec![step], recorded: true, ..Plan::default() };
        let event = |at_us, kind| Event { at_us, session: 0, kind };
        let transcript = Transcript {
            boundary: "json_rpc".to_owned(),
            check: "recorded".to_owned(),
            facts: Arc::new(facts()),
            plan: Arc::new(plan),
            timeout_scale: 1.0,
            events: vec![
                event(0, EventKind::Clock { unix_ms: 1_000_000 }),
                event(2_000_000, EventKind::Sent { step: 0, payload }),
            ],
        };
        let plan = reopened(&transcript).unwrap();
        let Act::Send { payload, .. } = &plan.steps[0].act else { panic!("{plan:?}") };
        String::from_utf8(payload.expand(&Vars::new()).unwrap()).unwrap()
    }

    #[test]
    fn what_was_signed_is_signed_anew_and_what_was_not_is_not() {
        let text =
            "{ \"id\":1, \"x\" : \"\\u0041\"}\n[{\"auth\":\"@absent\",\"id\":2},7,{\"id\":3}]\n{}\nno JSON\n";
        let opened = opened(&sealed(text, 1_002_000));
        let lines: Vec<&str> = opened.lines().collect();
        assert!(lines[0].contains("\"@signature\"") && lines[0].contains("\"@now\""), "{opened}");
        assert!(lines[0].ends_with(", \"x\" : \"\\u0041\"}"), "{opened}");
        assert!(lines[1].starts_with("[{\"auth\":\"@absent\",\"id\":2},7,{\"auth\":{"), "{opened}");
        assert_eq!(lines[3], "no JSON");
        let again = sealed(&opened, 9_000_000);
        let first: Json = again.lines().next().unwrap().parse().unwrap();
        assert_eq!(first.pointer("/auth/timestamp").and_then(Json::as_u64), Some(9_000));
        let signed = signature(b"k", &first);
        assert_eq!(first.pointer("/auth/signature").and_then(Json::as_str), Some(signed.as_str()));
        assert!(again.lines().nth(1).unwrap().starts_with("[{\"id\":2},7,"), "{again}");
    }

    #[test]
    fn what_was_wrong_with_a_seal_stays_wrong() {
        let auth = |word: &str, nonce: &str| {
            format!(
                "{{\"auth\":{{\"timestamp\":\"{word}\",\"nonce\":\"{nonce}\",\"signature\":\"@signature\"}},\"id\":1}}\n"
            )
        };
        let text =
            auth("@now-301", "@nonce:a") + &auth("@now", "@nonce:a") + "{\"auth\":{\"signature\":\"AA\"}}\n";
        let opened = opened(&sealed(&text, 1_002_000));
        assert!(opened.contains("\"@now-301\"") && opened.matches("\"@nonce:1\"").count() == 2, "{opened}");
        assert!(opened.ends_with("{\"auth\":{\"signature\":\"AA\"}}\n"), "{opened}");
    }
}
