//! Values out of replies that later steps need, and their near misses.

use std::collections::BTreeSet;

use super::Run;
use crate::json::{self, DecodeLimits, Json};
use crate::near_miss;
use crate::plan::{Act, Capture};
use crate::transcript::{Event, Kind};

/// All that the process of a session wrote.
pub fn output(events: &[Event], session: usize) -> Vec<u8> {
    let received =
        events.iter().filter(|event| event.session == session).filter_map(|event| match &event.kind {
            Kind::Received { bytes } => Some(bytes.0.as_slice()),
            _ => None,
        });
    received.collect::<Vec<_>>().concat()
}

/// Whether a reply completes the conversation by right: it says so, it has no value to take, or the one that the reply
/// `before` had.
pub fn ends(output: &[u8], before: Option<&[u8]>, capture: &Capture) -> bool {
    let Some(until) = &capture.until else { return false };
    let read = |text: &[u8]| json::decode(text.trim_ascii(), &DecodeLimits::default()).ok();
    let taken = |text: &[u8]| read(text)?.value.pointer(&capture.pointer).cloned();
    let (reply, value) = (read(output), taken(output));
    let is_last = reply.is_some_and(|reply| reply.value.pointer(until) == Some(&Json::Bool(true)));
    is_last || value.is_none() || before.is_some_and(|before| taken(before) == value)
}

impl Run<'_> {
    /// Takes a value out of the last frame; nothing where it is not there.
    pub(super) fn capture(&mut self, session: usize, capture: &Capture) -> Option<()> {
        let last = self.live[session].frames_awaited.checked_sub(1);
        let frame = last.and_then(|index| self.frame(session, index))?;
        self.learn_from(&frame, capture)
    }

    /// The same of all that the process of a session wrote; whether the conversation goes on.
    pub(super) fn capture_output(&mut self, session: usize, capture: &Capture) -> bool {
        let output = output(&self.events, session);
        let before = self.captured.replace(output.clone());
        !ends(&output, before.as_deref(), capture) && self.learn_from(&output, capture).is_some()
    }

    fn learn_from(&mut self, text: &[u8], capture: &Capture) -> Option<()> {
        let decoded = json::decode(text.trim_ascii(), &DecodeLimits::default()).ok()?;
        let value = decoded.value.pointer(&capture.pointer)?;
        let right = value.as_str().map_or_else(|| value.to_text(), str::to_owned);
        self.learn(capture.var.clone(), &right, value.as_str().is_some(), capture.secret);
        let plan = self.plan;
        let sent = plan.steps.iter().filter_map(|step| match &step.act {
            Act::Send { payload, .. } => Some(payload.variables()),
            _ => None,
        });
        for name in sent.flatten().collect::<BTreeSet<&str>>() {
            let kind =
                name.strip_prefix(capture.var.as_str()).and_then(|rest| rest.strip_prefix(near_miss::MARK));
            if let Some(kind) = kind {
                self.learn(name.to_owned(), &near_miss::near_miss(&right, kind), true, capture.secret);
            }
        }
        Some(())
    }

    /// Remembers the value of a variable: a string as it stands between quotes.
    fn learn(&mut self, name: String, value: &str, is_string: bool, secret: bool) {
        let text = Json::from(value).to_text();
        let text = if is_string { text[1..text.len() - 1].to_owned() } else { value.to_owned() };
        if secret && (is_string || value.bytes().all(|byte| byte.is_ascii_digit())) {
            self.secrets.add(value);
        }
        self.vars.insert(name, text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::tests::stage::carry_out;
    use crate::payload::Payload;
    use crate::plan::{Chunking, Step};

    /// Calls of a program that counts, each with what the one before wrote, until it says so or nothing changes.
    fn calls(most: u32) -> usize {
        let program = format!(
            "exec python3 -c \"import json, sys; n = min(json.load(sys.stdin)['n'] + 1, {most}); \
             print(json.dumps(dict(n=n, last=n == 5), indent=1), end='')\""
        );
        let capture = Capture {
            pointer: String::new(),
            var: "said".to_owned(),
            secret: false,
            until: Some("/last".to_owned()),
        };
        let steps = (0..8).flat_map(|session| {
            let payload =
                if session == 0 { Payload::text("{\"n\":0}") } else { Payload::default().var("said") };
            let send = Act::Send { payload, chunking: Chunking::Whole, await_frames: 0 };
            let finish = Step { capture: Some(capture.clone()), ..Step::new(Act::Finish) };
            [Step::new(send), finish].map(|step| Step { session, ..step })
        });
        let transcript = carry_out(&program, Vec::new(), steps.collect());
        transcript.events.iter().filter(|event| matches!(event.kind, Kind::Started { .. })).count()
    }

    #[test]
    fn output_is_fed_back_until_it_says_so_or_nothing_changes() {
        assert_eq!(calls(9), 5);
        assert_eq!(calls(3), 4);
    }
}
