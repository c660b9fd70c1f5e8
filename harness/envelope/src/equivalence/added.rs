//! Rules about additions of an engine: they have the shape of the document's examples.

use peerproof_engine::data::json::Json;

use super::{Comparison, length};
use crate::model::{self, Acceptance};
use crate::shape::{self, AGENTS, Shape, ValueType};
use crate::time::{Spelling, spelling};

impl Comparison<'_> {
    /// Judges the changes of an engine that runs stages.
    pub(super) fn advanced(&mut self) {
        for (flag, response, question, reason) in model::PENDINGS {
            let was = self.old.get(flag).and_then(Json::as_bool) == Some(true);
            let answer = self.old.get(response).cloned().unwrap_or_default();
            if self.flag(flag)
                && !was
                && self.new.get(question).and_then(Json::as_str).is_none_or(str::is_empty)
            {
                self.add(
                    "ENV-PEND-03",
                    "no_question",
                    &format!("/{question}"),
                    format!("a question or message, because {flag} is set"),
                );
            }
            // An engine that asks again sets the flag again.
            let stays = |name: &&str| self.old.get(name) == self.new.get(name);
            let is_answered = was && !answer.is_null() && answer != Json::from("");
            let is_unchanged = [question, response].iter().all(stays);
            if is_answered
                && self.flag(flag)
                && !self.flag("terminated")
                && model::has_stages_left(self.old)
                && is_unchanged
                && stays(&"current_stage")
            {
                self.add(
                    "ENV-PEND-04",
                    "still_pending",
                    &format!("/{flag}"),
                    "false, because the envelope contains the response",
                );
            }
            let was_terminated = self.old.get("terminated").and_then(Json::as_bool) == Some(true);
            let told = self.new.get("terminal_reason").and_then(Json::as_str);
            if is_answered && is_unchanged && !was_terminated && told == Some(reason) {
                self.add(
                    "ENV-PEND-04",
                    "still_pending",
                    "/terminal_reason",
                    format!("not {reason}, for the response has come"),
                );
            }
            let execution = |it: &Json| it.pointer("/outputs/execution").cloned();
            if was && answer == Json::from(false) && execution(self.old) != execution(&self.new) {
                self.add(
                    "ENV-PEND-05",
                    "executed",
                    "/outputs/execution",
                    "unchanged, because the confirmation was denied",
                );
            }
        }
        if !model::are_goals_wrong(self.old) && model::are_goals_wrong(&self.new) {
            self.add(
                "ENV-GOAL-01",
                "goals",
                "/remaining_goals",
                "goals from `all_goals` that are not satisfied",
            );
        }
        for agent in AGENTS {
            let at = format!("/outputs/{agent}");
            let section = self.new.pointer(&at).cloned();
            if let (Some(section), Some(shape)) = (section, shape::named(agent))
                && self.old.pointer(&at) != Some(&section)
            {
                self.section(&at, shape, &section, self.old.pointer(&at));
            }
        }
        for (list, name) in [("processing_history", "processing_record"), ("errors", "error_record")] {
            let items = self.new.get(list).and_then(Json::as_array).unwrap_or_default().to_vec();
            for (index, item) in items.iter().enumerate().skip(length(self.old, list)) {
                if let Some(shape) = shape::named(name) {
                    self.section(&format!("/{list}/{index}"), shape, item, None);
                }
            }
        }
    }

    /// Judges a section written by an engine against its example; `old` is the sent section.
    pub(super) fn section(&mut self, at: &str, shape: &Shape, section: &Json, old: Option<&Json>) {
        let mut traits = Vec::new();
        model::of_value(at, "ENV-SHAPE-01", shape, section, true, &mut traits);
        let is_own = |it: &&model::Trait| {
            let inner = it.at.strip_prefix(at).unwrap_or_default();
            section.pointer(inner) != old.and_then(|old| old.pointer(inner))
        };
        traits = traits.iter().filter(is_own).cloned().collect();
        // null counts as absent, and a time without an offset is still a time.
        let wrong = |stand: fn(&Acceptance) -> bool| traits.iter().find(|it| stand(&it.stand));
        if let Some(wrong) = wrong(|it| *it == Acceptance::Refuse) {
            self.add("ENV-SHAPE-01", "shape", &wrong.at, "a value of the type in the documented example");
        } else if let Some(doubtful) = wrong(|it| *it != Acceptance::Accept) {
            self.add("ENV-SHAPE-02", "shape", &doubtful.at, "a value of the type in the documented example");
        } else if let Some((reason, at, expected)) = doubt(at, shape, section, old) {
            self.add("ENV-SHAPE-02", reason, &at, expected);
        }
    }
}

/// First deviation from a SHOULD in a value: reason, pointer and expectation.
fn doubt(
    at: &str,
    shape: &Shape,
    value: &Json,
    old: Option<&Json>,
) -> Option<(&'static str, String, &'static str)> {
    if old == Some(value) {
        return None;
    }
    match (&shape.what, value) {
        (ValueType::List(item), Json::Array(items)) => items.iter().enumerate().find_map(|(index, value)| {
            let old = old.and_then(|old| old.as_array()?.get(index));
            doubt(&format!("{at}/{index}"), item, value, old)
        }),
        (ValueType::Record(members), Json::Object(_)) => {
            let is_new = old.is_none_or(|old| old.as_object().is_none());
            let lacks = members.iter().find(|(name, _)| is_new && value.get(name).is_none());
            if let Some((name, _)) = lacks {
                return Some((
                    "member_missing",
                    format!("{at}/{name}"),
                    "a value, because the documented example has this member",
                ));
            }
            range(at, value, old).or_else(|| {
                members.iter().find_map(|(name, shape)| {
                    let old = old.and_then(|old| old.get(name));
                    doubt(&format!("{at}/{name}"), shape, value.get(name)?, old)
                })
            })
        }
        _ => None,
    }
}

/// First member out of its range.
fn range(at: &str, record: &Json, old: Option<&Json>) -> Option<(&'static str, String, &'static str)> {
    let is_own = |name: &str| record.get(name) != old.and_then(|old| old.get(name));
    let number = |name: &str| record.get(name).filter(|_| is_own(name)).and_then(Json::as_f64);
    let time = |name: &str| record.get(name)?.as_str().map(spelling).and_then(Spelling::unix_us);
    let told = |name: &str, expected| Some(("range", format!("{at}/{name}"), expected));
    if number("confidence").is_some_and(|it| !(0.0..=1.0).contains(&it)) {
        return told("confidence", "a number from 0 to 1");
    }
    if let Some(name) =
        ["duration_ms", "step_index"].into_iter().find(|name| number(name).is_some_and(|it| it < 0.0))
    {
        return told(name, "a number of at least 0");
    }
    let is_backward = time("completed_at").zip(time("started_at")).is_some_and(|(end, begin)| end < begin);
    if is_backward && (is_own("completed_at") || is_own("started_at")) {
        return told("completed_at", "not before `started_at`");
    }
    None
}
