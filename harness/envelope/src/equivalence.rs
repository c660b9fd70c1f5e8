//! Comparison of a reply with the sent envelope: parts that must be kept, and parts that may change.

mod added;
mod near;
#[cfg(test)]
mod tests;

use peerproof_engine::contract::boundary::level;
use peerproof_engine::data::clause::Level;
use peerproof_engine::data::json::Json;

use self::near::is_near;
use super::model::{self, Acceptance, Sent, TOLD_MAX, Trait, count, of_envelope, strings, token};
use super::shape::{self, AGENTS, Advance, BOUNDS, Shape, ValueType};
use super::time::{PAST_US, Spelling, spelling};

/// Levels of free data that are compared by member.
const LEVELS: usize = 200;

/// Members with free data.
const FREE: [&str; 6] =
    ["outputs", "metadata", "prior_plans", "errors", "completed_stages", "processing_history"];

/// Length above which a shortened string was certainly cut for its length, bytes.
const LONG_BYTES: usize = 1 << 20;

/// A difference between the sent envelope and the reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Clause that it breaks.
    pub clause: &'static str,
    /// Reason code.
    pub reason: &'static str,
    /// JSON pointer to it.
    pub at: String,
    /// Expected value.
    pub expected: String,
    /// Actual value.
    pub got: String,
}

/// Treatment of envelopes by the peer, as far as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A caller passes the envelope on unchanged.
    Caller,
    /// An engine returns the envelope, or terminates one that waits or is over a bound.
    Identity,
    /// An engine may run stages.
    Unknown,
    /// An engine runs stages.
    Advance,
}

/// Differences between a sent envelope and its reply. Those of SHOULD clauses come last.
pub(crate) fn differences(sent: &Sent, reply: &Json, mode: Mode) -> Vec<Difference> {
    let each = sent.normal.iter().map(|normal| Comparison::of(sent, normal, reply, mode));
    let mut found = each.min_by_key(Vec::len).unwrap_or_default();
    if let Some(second) = &sent.second {
        let new = model::normal(reply);
        let tells = |it: &Difference| {
            let name = it.at.split('/').nth(1).unwrap_or_default();
            let is_own = ["envelope_id", "request_id", "session_id", "user_id", "raw_input", "outputs"]
                .contains(&name);
            is_own && new.get(name).is_some() && new.get(name) == second.get(name)
        };
        // All other differences follow from this one.
        if let Some(at) = found.iter().position(tells) {
            return vec![Difference { clause: "ENV-FRAME-04", ..found.swap_remove(at) }];
        }
    }
    found.sort_by_key(|it| level(super::boundary(), &it.clause.into()) == Level::Should);
    found
}

/// True if the reply equals the sent envelope.
pub(crate) fn is_same(sent: &Sent, reply: &Json) -> bool {
    differences(sent, reply, Mode::Caller).is_empty()
}

/// True if the reply shows that the engine correctly ran a stage of the envelope.
pub(crate) fn is_advanced(sent: &Sent, reply: &Json) -> bool {
    let ran = |normal: &Json| {
        let own =
            Comparison { sent, old: normal, new: model::normal(reply), found: Vec::new(), is_idle: false };
        own.ran(own.is_ended()).is_some()
    };
    differences(sent, reply, Mode::Advance).is_empty() && sent.normal.iter().all(ran)
}

struct Comparison<'a> {
    sent: &'a Sent,
    /// Normal form of the envelope, and of the reply.
    old: &'a Json,
    new: Json,
    found: Vec<Difference>,
    /// True if nothing shows that the engine runs stages; its changes count as losses.
    is_idle: bool,
}

impl<'a> Comparison<'a> {
    fn of(sent: &'a Sent, old: &'a Json, reply: &Json, mode: Mode) -> Vec<Difference> {
        let mut own = Self { sent, old, new: model::normal(reply), found: Vec::new(), is_idle: false };
        own.is_valid(reply);
        // An invalid envelope is not compared by member, because one fault would be reported many times.
        if own.found.is_empty() {
            own.compare(mode);
        }
        own.found
    }

    fn add(&mut self, clause: &'static str, reason: &'static str, at: &str, expected: impl Into<String>) {
        if self.found.len() >= TOLD_MAX {
            return;
        }
        let got = self.new.pointer(at).map_or("nothing".to_owned(), Json::to_text);
        let expected = format!("{at}: {}", expected.into());
        self.found.push(Difference { clause, reason, at: at.to_owned(), expected, got });
    }

    /// Checks that the reply is a valid envelope.
    fn is_valid(&mut self, reply: &Json) {
        let given = |at: &str| self.sent.traits.iter().any(|it: &Trait| it.at == at);
        let wrong = of_envelope(reply).into_iter().filter(|it| !it.at.is_empty());
        let wrong: Vec<(Trait, bool)> =
            wrong.map(|it| (given(&it.at), it)).map(|(was, it)| (it, was)).collect();
        for (it, was_given) in wrong {
            if self.found.len() >= TOLD_MAX {
                break;
            }
            let value = reply.pointer(&it.at);
            let got = value.map_or("nothing".to_owned(), Json::to_text);
            let (clause, reason, expected) = match (it.stand, it.clause) {
                (_, "ENV-TYPE-04")
                    if it.at == "/received_at" && self.sent.raw.get("received_at").is_none() =>
                {
                    ("ENV-DEF-02", "null_emitted", "absent, or the time of the call")
                }
                (_, "ENV-TYPE-03" | "ENV-TYPE-04") => {
                    ("ENV-OUT-02", "null_emitted", "no null, because the schema does not allow it here")
                }
                (_, "ENV-ACC-03") => {
                    ("ENV-OUT-01", "member_missing", "a value, because the member is required")
                }
                (_, "ENV-ACC-10" | "ENV-ACC-11" | "ENV-TYPE-02" | "ENV-TYPE-05") => continue,
                (_, "ENV-TIME-05" | "ENV-TIME-06" | "ENV-TIME-07") if was_given => {
                    ("ENV-TIME-10", "no_date_time", "an RFC 3339 date-time")
                }
                (Acceptance::Open(..), _) if was_given => continue,
                (Acceptance::Accept, _) => continue,
                _ => ("ENV-OUT-01", "invalid", "a value that the schema allows"),
            };
            let expected = format!("{}: {expected}", it.at);
            self.found.push(Difference { clause, reason, at: it.at, expected, got });
        }
        // The schema is a second opinion, used only if no rule found a fault, and not for open points.
        if self.found.is_empty()
            && let Some((at, message)) = shape::objection("envelope", reply)
            && !of_envelope(reply).iter().any(|it| it.at == at)
        {
            let expected = format!("{at}: a value that conforms to the JSON Schema `envelope`");
            self.found.push(Difference {
                clause: "ENV-OUT-01",
                reason: "schema",
                at,
                expected,
                got: message,
            });
        }
    }

    fn flag(&self, name: &str) -> bool {
        self.new.get(name).and_then(Json::as_bool) == Some(true)
    }

    /// True if the engine terminated the envelope.
    fn is_ended(&self) -> bool {
        self.flag("terminated") && !model::is_terminated(self.old)
    }

    /// Member which shows that a stage ran, preferably one that was sent. An absent counter shows nothing, because
    /// its default may be wrong. An engine that terminates may rename the stage.
    fn ran(&self, is_end: bool) -> Option<&'static str> {
        let differs = |name: &&str| self.old.get(name) != self.new.get(name);
        let is_told = |name: &&str| is_end || self.was_sent(name);
        let rose = |name: &&str| is_told(name) && count(&self.new, name) > count(self.old, name);
        let longer = |name: &&str| length(&self.new, name) > length(self.old, name);
        let counters = ["iteration", "llm_call_count", "agent_hop_count", "current_stage_number"];
        let lists = ["outputs", "completed_stages", "processing_history"];
        let stage = ["current_stage"].into_iter().filter(|_| !is_end).filter(differs);
        let shown = stage.chain(counters.into_iter().filter(rose)).chain(lists.into_iter().filter(longer));
        let shown: Vec<&'static str> = shown.collect();
        let first = shown.iter().find(|name| self.was_sent(name)).or(shown.first()).copied();
        // Other differences are compared by member, unless the engine terminated the envelope.
        first.or((is_end && !self.are_outputs_kept()).then_some("outputs"))
    }

    fn was_sent(&self, name: &str) -> bool {
        self.sent.raw.get(name).is_some_and(|value| !value.is_null())
    }

    /// Clause about the default of an absent member, and the default.
    fn default_of(&self, name: &str) -> Option<(&'static str, String)> {
        let shape = shape::envelope().member(name).filter(|_| !self.was_sent(name))?;
        let clause = if shape.core { "ENV-ACC-04" } else { "ENV-DEF-01" };
        Some((clause, self.old.get(name)?.to_text()))
    }

    fn are_outputs_kept(&self) -> bool {
        let mut own =
            Self { sent: self.sent, old: self.old, new: Json::Null, found: Vec::new(), is_idle: false };
        let (old, new) = (self.old.get("outputs"), self.new.get("outputs"));
        old.zip(new).into_iter().for_each(|(old, new)| own.value("/outputs", old, new, None));
        own.found.is_empty()
    }

    fn compare(&mut self, mode: Mode) {
        let over = model::is_over_bound(self.old);
        let pending = model::pending(self.old);
        let frozen = match () {
            () if mode == Mode::Caller => Some("ENV-PROC-02"),
            () if model::is_terminated(self.old) => Some("ENV-TERM-06"),
            () if !pending.is_empty() => Some("ENV-PEND-02"),
            () if over => Some("ENV-BOUND-04"),
            () if mode == Mode::Identity => Some("ENV-PROC-02"),
            () => None,
        };
        let is_woken = model::is_terminated(self.old) && !self.flag("terminated");
        let may_end = frozen.is_none() || frozen == Some("ENV-PEND-02") || frozen == Some("ENV-BOUND-04");
        let is_end = self.is_ended() && may_end;
        let ran = self.ran(is_end);
        if let Some(clause) = frozen {
            let is_other = is_woken || self.is_ended() && !may_end;
            if let Some(name) = ran.or(is_other.then_some("terminated")) {
                let at = format!("/{name}");
                return match self.default_of(name).filter(|_| !is_end) {
                    Some((clause, usual)) => self.add(clause, "default", &at, usual),
                    None => self.add(
                        clause,
                        "advanced",
                        &at,
                        "unchanged, because this envelope must not be advanced",
                    ),
                };
            }
        }
        let is_fixed = frozen.is_some() && !is_end;
        self.is_idle = mode == Mode::Unknown && ran.is_none() && !is_end;
        let answered = self.answered().filter(|_| frozen == Some("ENV-PEND-02"));
        for (name, shape) in shape::envelope().members() {
            if answered.is_none_or(|of_one| !of_one.contains(&name.as_str())) {
                self.member(name, shape, is_fixed);
            }
        }
        self.undocumented("", self.old, &self.new.clone(), shape::envelope());
        // Engines of any mode keep contradictory members.
        if frozen == Some("ENV-BOUND-04")
            && is_fixed
            && mode == Mode::Advance
            && !model::is_inconsistent(self.old)
        {
            self.add(
                "ENV-BOUND-05",
                "returned",
                "/terminated",
                "true, because a bound is exceeded and the engine runs stages",
            );
        }
        if !is_fixed {
            self.ending(&pending, over);
            if mode == Mode::Advance && frozen.is_none() && self.is_stopped_as_done() {
                let expected = "the reason of a bound that was reached, because no agent ran";
                self.add("ENV-BOUND-03", "wrong_reason", "/terminal_reason", expected);
            }
            self.advanced();
        }
    }

    /// Members of a flag with a response. An engine may clear them, even if it waits for another response.
    fn answered(&self) -> Option<[&'static str; 3]> {
        let is_set = |name: &str| self.old.get(name).and_then(Json::as_bool) == Some(true);
        let has_come = |name: &str| self.old.get(name).is_some_and(|response| !response.is_null());
        let of_flag = model::PENDINGS.iter().find(|(flag, response, ..)| is_set(flag) && has_come(response));
        of_flag.map(|(flag, response, question, _)| [*flag, *response, *question])
    }

    /// True if `new` is the value of a member whose name differs only in case.
    fn is_of_other_case(&self, name: &str, new: &Json) -> bool {
        let members = self.old.as_object().unwrap_or_default();
        members.iter().any(|(other, value)| other != name && other.eq_ignore_ascii_case(name) && value == new)
    }

    /// True if an envelope at a bound, whose six agents have not begun, was declared complete although nothing ran.
    /// An engine that runs these agents can only have been stopped by the bound.
    fn is_stopped_as_done(&self) -> bool {
        let order = strings(self.old, "stage_order");
        let is_at_bound =
            |(counter, most, ..): &(&str, &str, i64, &str)| count(self.old, counter) >= count(self.old, most);
        self.is_ended()
            && self.new.get("terminal_reason").and_then(Json::as_str) == Some("completed_successfully")
            && self.old.get("current_stage").and_then(Json::as_str) == Some("start")
            && length(self.old, "outputs") == 0
            && AGENTS.iter().all(|agent| order.contains(agent))
            && BOUNDS.iter().any(is_at_bound)
            && self.ran(true).is_none()
    }

    /// Compares a documented member.
    fn member(&mut self, name: &str, shape: &Shape, is_fixed: bool) {
        let at = format!("/{name}");
        let (old, new) = (self.old.get(name), self.new.get(name).cloned());
        let (Some(old), Some(new)) = (old, &new) else {
            // Only ids and the time of receipt lack a default.
            let us = new.as_ref().and_then(Json::as_str).map(spelling).and_then(Spelling::unix_us);
            match old {
                Some(old) => self.add("ENV-KEEP-01", "lost", &at, old.to_text()),
                None if new.as_ref().is_some_and(|new| self.is_of_other_case(name, new)) => {
                    self.add(
                        "ENV-KEEP-04",
                        "other_case",
                        &at,
                        "not the value of a member whose name has other case",
                    );
                }
                None if us.is_some_and(|us| us < PAST_US) => {
                    self.add("ENV-DEF-02", "made_up", &at, "absent, or the time of the call");
                }
                None => {}
            }
            return;
        };
        // A history that is not a list may be kept or read as empty.
        if old == new || name == "processing_history" && old.as_array().is_none() {
            return;
        }
        let was_sent = self.was_sent(name);
        let is_huge = |it: &Trait| it.at == at && it.clause == "ENV-TYPE-05";
        if self.sent.traits.iter().any(is_huge) {
            return self.value(&at, old, new, Some("ENV-TYPE-05"));
        }
        let may_add =
            !is_fixed && matches!(shape.advance, Advance::Append | Advance::Feedback | Advance::Add);
        match shape.advance {
            Advance::Free if !is_fixed => {}
            _ if shape.what_is_time() => self.time(&at, old, new),
            Advance::Fixed if !is_fixed && was_sent => {
                self.value(&at, old, new, Some(self.unless_idle("ENV-ADV-01", "ENV-KEEP-01")));
            }
            Advance::Rise | Advance::Retry if !is_fixed => self.counter(name, shape.advance, old),
            Advance::Outputs => self.outputs(old, new, is_fixed),
            Advance::Append | Advance::Feedback | Advance::Add if may_add => {
                let (lost, all) = match shape.advance {
                    Advance::Append => (self.unless_idle("ENV-ADV-03", "ENV-KEEP-02"), None),
                    Advance::Feedback => {
                        let clause = self.unless_idle("ENV-ADV-04", "ENV-KEEP-01");
                        (clause, Some(clause))
                    }
                    _ => (self.unless_idle("ENV-ADV-07", "ENV-KEEP-02"), None),
                };
                self.kept_within(&at, old, new, lost, all);
            }
            _ => self.fixed(name, old, new, was_sent),
        }
    }

    /// Compares a member of an envelope that is not advanced.
    fn fixed(&mut self, name: &str, old: &Json, new: &Json, was_sent: bool) {
        let at = format!("/{name}");
        let is_no = old == &Json::from("") || old == &Json::from(false);
        match () {
            () if !was_sent => {
                if let Some((clause, usual)) = self.default_of(name) {
                    self.add(clause, "default", &at, usual);
                }
            }
            () if is_no && new.is_null() => self.add("ENV-KEEP-05", "lost", &at, old.to_text()),
            () if name == "processing_history" && length(&self.new, name) < length(self.old, name) => {
                self.add("ENV-PROP-37", "lost", &at, old.to_text());
            }
            () if FREE.contains(&name) => self.value(&at, old, new, None),
            () => self.value(&at, old, new, Some("ENV-KEEP-01")),
        }
    }

    /// The clause about a change: `clause` for an engine that runs stages, `idle` for one that does not show it.
    fn unless_idle(&self, clause: &'static str, idle: &'static str) -> &'static str {
        if self.is_idle { idle } else { clause }
    }

    fn time(&mut self, at: &str, old: &Json, new: &Json) {
        let us = |value: &Json| value.as_str().map(spelling).and_then(Spelling::unix_us);
        match (us(old), us(new)) {
            (Some(old_us), Some(new_us)) if (old_us - new_us).abs() > 1 => {
                let is_cut = (old_us - new_us).abs() < 1_000_000;
                self.add(if is_cut { "ENV-TIME-09" } else { "ENV-KEEP-01" }, "changed", at, old.to_text());
            }
            (Some(_), None) => self.add("ENV-KEEP-01", "lost", at, old.to_text()),
            (None, None) if old.is_null() != new.is_null() => {
                self.add("ENV-KEEP-01", "lost", at, old.to_text())
            }
            (None, Some(_)) if old.is_null() => self.add("ENV-DEF-01", "default", at, "null"),
            // A time without an offset may be any instant.
            _ => {}
        }
    }

    fn counter(&mut self, name: &str, advance: Advance, old: &Json) {
        let at = format!("/{name}");
        let is_lower = count(&self.new, name) < count(self.old, name);
        let stays = |name: &str| self.old.get(name) == self.new.get(name);
        if is_lower && self.is_idle {
            self.value(&at, old, &self.new.get(name).cloned().unwrap_or_default(), Some("ENV-KEEP-01"));
        } else if advance == Advance::Rise && is_lower {
            self.add("ENV-ADV-05", "lowered", &at, format!("at least {}", old.to_text()));
        } else if is_lower && stays("current_stage") && stays("current_stage_number") {
            self.add(
                "ENV-ADV-06",
                "lowered",
                &at,
                format!("at least {}, because the stage is the same", old.to_text()),
            );
        }
    }

    /// Compares the agents' sections: none is lost, and those of agents that did not run are equal.
    fn outputs(&mut self, old: &Json, new: &Json, is_fixed: bool) {
        let mut run: Vec<String> = AGENTS.map(str::to_owned).to_vec();
        run.extend(
            [self.old, &self.new].into_iter().flat_map(|it| strings(it, "stage_order")).map(str::to_owned),
        );
        for (agent, section) in old.as_object().unwrap_or_default() {
            let at = format!("/outputs/{}", token(agent));
            match new.get(agent) {
                None if self.sent.traits.iter().any(|it| it.clause == "ENV-ACC-03") => {
                    self.add("ENV-ACC-06", "replaced", &at, section.to_text());
                }
                None if is_fixed => self.add("ENV-KEEP-02", "lost", &at, section.to_text()),
                None => self.add("ENV-ADV-02", "lost", &at, section.to_text()),
                Some(_) if !is_fixed && run.contains(agent) => {}
                Some(new) => self.value(&at, section, new, None),
            }
        }
    }

    /// Checks that earlier items or members are kept; there may be more.
    fn kept_within(
        &mut self,
        at: &str,
        old: &Json,
        new: &Json,
        lost: &'static str,
        all: Option<&'static str>,
    ) {
        match (old, new) {
            (Json::Array(old), Json::Array(new)) => {
                // If items are missing or moved, the following ones are moved too; that is one fault.
                if let Some(index) = (0..old.len()).find(|index| old.get(*index) != new.get(*index))
                    && (new.len() < old.len() || new.contains(&old[index]))
                {
                    return self.add(lost, "lost", &format!("{at}/{index}"), old[index].to_text());
                }
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.value(&format!("{at}/{index}"), old, new, all);
                }
            }
            (Json::Object(members), new) => {
                for (name, old) in members {
                    let at = format!("{at}/{}", token(name));
                    match new.get(name) {
                        Some(new) => self.value(&at, old, new, all),
                        None => return self.add(lost, "lost", &at, old.to_text()),
                    }
                }
            }
            _ => self.value(at, old, new, all),
        }
    }

    /// Compares free data. A difference breaks `clause`; `None` means the clause about values of that type.
    fn value(&mut self, at: &str, old: &Json, new: &Json, clause: Option<&'static str>) {
        self.value_within(at, old, new, clause, LEVELS);
    }

    fn value_within(
        &mut self,
        at: &str,
        old: &Json,
        new: &Json,
        clause: Option<&'static str>,
        levels: usize,
    ) {
        if old == new {
            return;
        }
        match (old, new) {
            (Json::Number(old), Json::Number(new)) if is_near(old, new) => {}
            (Json::Array(old), Json::Array(new)) if old.len() == new.len() && levels > 0 => {
                for (index, (old, new)) in old.iter().zip(new).enumerate() {
                    self.value_within(&format!("{at}/{index}"), old, new, clause, levels - 1);
                }
            }
            (Json::Object(members), Json::Object(others)) if levels > 0 => {
                for (name, _) in members {
                    let at = format!("{at}/{}", token(name));
                    let old = old.get(name);
                    match new.get(name) {
                        Some(new) => {
                            old.into_iter()
                                .for_each(|old| self.value_within(&at, old, new, clause, levels - 1));
                        }
                        None => {
                            let special =
                                ["", "__proto__", "constructor", "prototype", "a.b"].contains(&name.as_str());
                            let own = if special { "ENV-KEEP-08" } else { "ENV-KEEP-02" };
                            self.add(
                                clause.unwrap_or(own),
                                "lost",
                                &at,
                                old.map_or(String::new(), Json::to_text),
                            );
                        }
                    }
                }
                // Only records of the document may get further members; other objects of free data must not.
                let more = others.iter().find(|(name, _)| old.get(name).is_none());
                let is_stage = at.starts_with("/completed_stages/") && at.matches('/').count() == 2;
                if let Some((name, _)) = more.filter(|_| !is_stage) {
                    self.add(
                        clause.unwrap_or("ENV-KEEP-02"),
                        "added",
                        &format!("{at}/{}", token(name)),
                        "nothing",
                    );
                }
            }
            _ => {
                let own = match old {
                    Json::Number(number) if number.is_safe() => "ENV-JSON-08",
                    Json::Number(number) if number.is_beyond_double() && new.is_null() => "ENV-JSON-12",
                    Json::Number(_) => "ENV-KEEP-06",
                    Json::String(text) if new.as_str().is_some_and(|new| is_cut(text, new)) => "ENV-SIZE-03",
                    Json::String(text) if !matches!(spelling(text), Spelling::Wrong) => "ENV-TIME-11",
                    Json::String(text) if text.contains('\u{fffd}') && self.has_halves() => "ENV-JSON-06",
                    Json::String(_) => "ENV-KEEP-07",
                    _ => "ENV-KEEP-02",
                };
                self.add(clause.unwrap_or(own), "changed", at, old.to_text());
            }
        }
    }

    /// True if the sent text has a lone surrogate.
    fn has_halves(&self) -> bool {
        self.sent.traits.iter().any(|it| it.clause == "ENV-JSON-06")
    }

    /// Compares undocumented members, which SHOULD be kept.
    fn undocumented(&mut self, at: &str, old: &Json, new: &Json, shape: &Shape) {
        for (name, value) in old.as_object().unwrap_or_default() {
            let at = format!("{at}/{}", token(name));
            if shape.member(name).is_some() {
                continue;
            }
            match new.get(name) {
                Some(new) => self.value(&at, value, new, Some("ENV-KEEP-03")),
                None => self.add("ENV-KEEP-03", "lost", &at, value.to_text()),
            }
        }
        if at.is_empty() && shape.member("completed_stages").is_some() {
            // Completed stages are compared as free data, so their lost undocumented members get this clause here.
            self.found.iter_mut().filter(|it| it.at.starts_with("/completed_stages/")).for_each(|it| {
                let name = it.at.split('/').nth(3).unwrap_or_default();
                let known = ["stage_number", "satisfied_goals", "summary", "plan_id", ""];
                if !known.contains(&name) {
                    it.clause = "ENV-KEEP-03";
                }
            });
        }
    }

    /// Judges how the engine terminated the envelope, if it did.
    fn ending(&mut self, pending: &[&'static str], over: bool) {
        let null = Json::Null;
        let reason = self.new.get("terminal_reason").unwrap_or(&null).as_str().map(str::to_owned);
        if self.is_ended() {
            match &reason {
                None => self.add(
                    "ENV-TERM-01",
                    "no_reason",
                    "/terminal_reason",
                    "a terminal reason, because the envelope was terminated",
                ),
                // An earlier reason is not the engine's.
                Some(_) if self.old.get("terminal_reason") == self.new.get("terminal_reason") => {}
                Some(reason) => self.reason(reason, pending, over),
            }
            if self.new.get("termination_reason").and_then(Json::as_str).is_none_or(str::is_empty) {
                self.add(
                    "ENV-TERM-02",
                    "no_words",
                    "/termination_reason",
                    "a non-empty text, because the envelope was terminated",
                );
            }
        }
        for (counter, most, usual, own) in BOUNDS {
            let (before, after, bound) =
                (count(self.old, counter), count(&self.new, counter), count(self.old, most));
            let clause = if bound == usual as f64 { "ENV-BOUND-01" } else { "ENV-BOUND-02" };
            // If several bounds are passed, any of them may be the reason.
            let is_reason = |(counter, most, _, reason_of): &(&str, &str, i64, &str)| {
                reason.as_deref() == Some(*reason_of) && count(&self.new, counter) > count(self.old, most)
            };
            let is_last = after <= bound + 1.0 && self.flag("terminated") && BOUNDS.iter().any(is_reason);
            if before <= bound && after > bound && !is_last {
                let expected = format!("at most {bound}, or one more together with termination for {own}");
                self.add(clause, "over_bound", &format!("/{counter}"), expected);
            }
        }
        let time =
            |value: Option<&Json>| value.and_then(Json::as_str).map(spelling).and_then(Spelling::unix_us);
        let completed = time(self.new.get("completed_at"));
        // Only times far in the past precede the engine's clock for certain.
        let past = time(self.old.get("received_at")).filter(|received| *received <= PAST_US);
        if self.old.get("completed_at").is_none_or(Json::is_null) && completed.is_some() {
            if !self.flag("terminated") {
                self.add(
                    "ENV-TERM-04",
                    "completed",
                    "/completed_at",
                    "null, because the envelope is not terminated",
                );
            } else if completed < past {
                let received = self.new.get("received_at").map(Json::to_text).unwrap_or_default();
                self.add("ENV-TERM-04", "early", "/completed_at", format!("not before {received}"));
            }
        }
    }

    /// Checks that the terminal reason applies.
    fn reason(&mut self, reason: &str, pending: &[&'static str], over: bool) {
        if let Some((counter, most, usual, _)) = BOUNDS.iter().find(|(.., own)| *own == reason) {
            let (after, bound) = (count(&self.new, counter), count(self.old, most));
            // The bound of stages has no reason of its own.
            let is_of_stages = count(&self.new, "current_stage_number") >= count(self.old, "max_stages");
            if after < bound && !is_of_stages {
                let clause = if bound == *usual as f64 { "ENV-BOUND-03" } else { "ENV-BOUND-02" };
                let expected = format!("the reason of a bound that was reached; {counter} is below {bound}");
                self.add(clause, "wrong_reason", "/terminal_reason", expected);
            }
        } else if pending.contains(&reason) {
            // If a bound was passed as well, either reason is right.
        } else if let ([own, ..], false) = (pending, over) {
            self.add("ENV-PEND-02", "wrong_reason", "/terminal_reason", *own);
        } else if over {
            self.add(
                "ENV-BOUND-03",
                "wrong_reason",
                "/terminal_reason",
                "the reason of a bound that was reached",
            );
        }
    }
}

/// True if `new` is a cut form of a long string: its beginning, possibly with a mark at the end.
fn is_cut(old: &str, new: &str) -> bool {
    const MARK_BYTES: usize = 16;
    let kept = new.len().saturating_sub(MARK_BYTES);
    let is_begin = old.as_bytes().get(..kept) == new.as_bytes().get(..kept);
    old.len() > LONG_BYTES && new.len() < old.len() && is_begin
}

impl Shape {
    fn what_is_time(&self) -> bool {
        matches!(self.what, ValueType::Time)
    }
}

/// Number of items or members of a member.
fn length(envelope: &Json, name: &str) -> usize {
    match envelope.get(name) {
        Some(Json::Array(items)) => items.len(),
        Some(Json::Object(members)) => members.len(),
        _ => 0,
    }
}
