//! Values out of replies that later steps need, and their near misses.

use std::collections::BTreeSet;

use super::Run;
use crate::json::{self, DecodeLimits, Json};
use crate::near_miss;
use crate::plan::{Act, Capture};

impl Run<'_> {
    /// Takes a value out of the last frame; nothing where it is not there.
    pub(super) fn capture(&mut self, session: usize, capture: &Capture) -> Option<()> {
        let last = self.live[session].frames_awaited.checked_sub(1);
        let frame = last.and_then(|index| self.frame(session, index))?;
        let decoded = json::decode(&frame, &DecodeLimits::default()).ok()?;
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
