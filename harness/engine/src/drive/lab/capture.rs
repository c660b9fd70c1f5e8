//! Capture of values from replies for later steps, and of their near misses.

use std::collections::BTreeSet;

use super::PlanRun;
use crate::data::json::{self, DecodeLimits, Json};
use crate::data::near_miss;
use crate::data::plan::{Act, Capture};
use crate::data::transcript::redact;

/// Prefix of a near-miss kind, followed by a number of bytes: the length of a string that fills the frame up to this
/// size. The frame's other contents are the peer's own.
const FILL: &str = "fill-";

/// Value captured from a reply.
pub(crate) struct CapturedValue {
    value: Option<Json>,
    /// Set if the reply says that it is the last.
    is_last: bool,
}

impl CapturedValue {
    /// Captures from `reply`.
    pub(crate) fn of(reply: &[u8], capture: &Capture) -> Self {
        let decoded = json::decode(json::trim(reply), &DecodeLimits::default()).ok();
        let reply = decoded.as_ref().map(|decoded| &decoded.value);
        let is_last = capture.until.as_ref().and_then(|until| reply?.pointer(until));
        Self {
            value: reply.and_then(|reply| reply.pointer(&capture.pointer)).cloned(),
            is_last: is_last == Some(&Json::Bool(true)),
        }
    }

    /// True if the conversation is complete: the reply says so, lacks a value, or repeats the value of the reply
    /// before.
    pub(crate) fn completes(&self, before: Option<&Self>, capture: &Capture) -> bool {
        let is_again = || before.is_some_and(|before| before.value == self.value);
        capture.until.is_some() && (self.is_last || self.value.is_none() || is_again())
    }
}

impl PlanRun<'_> {
    /// Captures a value from the last awaited frame; `None` if it lacks one.
    pub(super) fn capture(&mut self, session: usize, capture: &Capture) -> Option<()> {
        let frame = self.last_frame(session)?;
        self.learn_from(CapturedValue::of(&frame, capture).value.as_ref()?, frame.len(), capture);
        Some(())
    }

    /// Last awaited frame.
    pub(super) fn last_frame(&self, session: usize) -> Option<Vec<u8>> {
        let last = self.live[session].frames_awaited.checked_sub(1);
        last.and_then(|index| self.frame(session, index))
    }

    /// Captures from the whole output of a step in a chain; returns true if the conversation goes on.
    pub(super) fn capture_output(&mut self, output: &[u8], capture: &Capture) -> bool {
        let taken = CapturedValue::of(output, capture);
        let goes_on = taken.value.is_some() && !taken.completes(self.captured.as_ref(), capture);
        if let Some(value) = taken.value.as_ref().filter(|_| goes_on) {
            self.learn_from(value, output.len(), capture);
        }
        self.captured = Some(taken);
        goes_on
    }

    /// Sets the variables of a captured value. `frame_bytes` is the length of the frame it was in.
    fn learn_from(&mut self, value: &Json, frame_bytes: usize, capture: &Capture) {
        let right = value.as_str().map_or_else(|| value.to_text(), str::to_owned);
        if capture.secret && self.lab.peer.is_process() {
            redact::remember(&right);
        }
        self.learn(capture.var.clone(), &right, value.as_str().is_some(), capture.secret);
        let plan = self.plan;
        let sent = plan.steps.iter().filter_map(|step| match &step.act {
            Act::Send { payload, .. } => Some(payload.variables()),
            _ => None,
        });
        for name in sent.flatten().collect::<BTreeSet<&str>>() {
            let kind =
                name.strip_prefix(capture.var.as_str()).and_then(|rest| rest.strip_prefix(near_miss::MARK));
            let frame_wanted = kind.and_then(|kind| kind.strip_prefix(FILL)?.parse::<usize>().ok());
            if let Some(wanted) = frame_wanted {
                let length = (wanted + right.len()).saturating_sub(frame_bytes);
                self.learn(name.to_owned(), &length.to_string(), false, capture.secret);
            } else if let Some(kind) = kind {
                self.learn(name.to_owned(), &near_miss::near_miss(&right, kind), true, capture.secret);
            }
        }
    }

    /// Sets a variable; a string is stored as it stands between quotes.
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
    use crate::data::payload::Payload;
    use crate::data::plan::{Chunking, Step};
    use crate::data::transcript::EventKind;
    use crate::drive::lab::tests::stage::carry_out;

    /// Number of calls of a counting program, each with the output of the one before, until it says stop or nothing
    /// changes.
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
        transcript.events.iter().filter(|event| matches!(event.kind, EventKind::Started { .. })).count()
    }

    #[test]
    fn output_is_fed_back_until_it_says_so_or_nothing_changes() {
        assert_eq!(calls(9), 5);
        assert_eq!(calls(3), 4);
    }
}
