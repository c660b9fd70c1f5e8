//! The server that the harness plays.

use std::collections::BTreeSet;

use super::scenario::Scenario;
use super::script::{On, Rule, Script, What};
use peerproof_engine::counterpart::{Counterpart, Doing};
use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::near_miss::near_misses;
use peerproof_engine::payload::{Payload, Segment, Vars};
use peerproof_engine::plan::Chunking;

/// More is not kept to be done: a client that asks without end is ended by the budget for its output.
const QUEUE_MAX: usize = 10_000;

/// A scripted server.
pub struct Server {
    rules: Vec<Rule>,
    scenario: Scenario,
    vars: Vars,
    /// Attempts of each call so far.
    attempts: Vec<u32>,
    /// Rules that apply once and did.
    applied: BTreeSet<usize>,
    /// What is to be done, and when; the order of equals is that of their numbers.
    queue: Vec<(u64, u64, Doing)>,
    count: u64,
    begun: bool,
}

/// A request or notification of a known call.
struct Seen {
    call: usize,
    id: Option<Json>,
}

impl Server {
    /// A server for the client of `scenario`.
    pub fn new(script: Script, scenario: Scenario) -> Self {
        Self {
            attempts: vec![0; scenario.calls.len()],
            rules: script.rules,
            scenario,
            vars: Vars::new(),
            applied: BTreeSet::new(),
            queue: Vec::new(),
            count: 0,
            begun: false,
        }
    }

    fn push(&mut self, due_us: u64, doing: Doing) {
        if self.queue.len() < QUEUE_MAX {
            self.count += 1;
            self.queue.push((due_us, self.count, doing));
        }
    }

    /// Does what rule `at` says; `id` is that of the request at hand.
    fn apply(&mut self, at: usize, id: Option<&Json>, now_us: u64) {
        let near = id.map(nearly).unwrap_or_default();
        let near = (0..NEAR_IDS_MAX).map(|n| (format!("id-near-{n}"), near.get(n).cloned()));
        let others = [("id", id.cloned()), ("id-of-the-other-type", id.and_then(of_the_other_type))];
        for (name, id) in others.into_iter().map(|(name, id)| (name.to_owned(), id)).chain(near) {
            match id {
                Some(id) => self.vars.insert(name, id.to_text()),
                None => self.vars.remove(&name),
            };
        }
        for deed in self.rules[at].deeds.clone() {
            let due_us = now_us + deed.after_ms * 1_000;
            match deed.what {
                What::HangUp => self.push(due_us, Doing::HangUp),
                What::Die => self.push(due_us, Doing::Die),
                What::Write { payload, chunking } => {
                    if let Some(payload) = filled(&payload, &self.vars) {
                        self.push(due_us, Doing::Write { payload, chunking });
                    }
                }
            }
        }
    }

    /// The rule for this attempt of a call.
    fn rule_for(&self, call: &str, attempt: u32) -> Option<usize> {
        let fits = |on: &On, wanted: Option<u32>| matches!(on, On::Call { name, attempt } if name == call && *attempt == wanted);
        let find = |wanted| self.rules.iter().position(|rule| fits(&rule.on, wanted));
        find(Some(attempt)).or_else(|| find(None))
    }

    /// Whether some rule answers this call together with others.
    fn is_awaited_with_others(&self, call: &str) -> bool {
        self.rules
            .iter()
            .any(|rule| matches!(&rule.on, On::All(names) if names.iter().any(|name| name == call)))
    }

    fn note(&mut self, message: &Json) -> Option<Seen> {
        let method = message.get("method")?.as_str()?;
        let call = self.scenario.calls.iter().position(|call| call.method == method)?;
        let id = message.get("id").cloned();
        self.attempts[call] += 1;
        if let Some(id) = &id {
            let name = &self.scenario.calls[call].name;
            self.vars.insert(format!("id:{name}"), id.to_text());
            self.vars.insert(format!("id:{name}:{}", self.attempts[call]), id.to_text());
        }
        Some(Seen { call, id })
    }

    /// What the server says to a request that no rule is about.
    fn usual(&self, seen: &Seen) -> Option<String> {
        let id = seen.id.as_ref()?.to_text();
        let name = Json::from(self.scenario.calls[seen.call].name.as_str()).to_text();
        Some(format!("{{\"jsonrpc\":\"2.0\",\"result\":{{\"answer\":{name}}},\"id\":{id}}}"))
    }
}

impl Counterpart for Server {
    fn take(&mut self, frame: &[u8], now_us: u64) {
        let Ok(decoded) = json::decode(frame, &DecodeLimits::default()) else { return };
        let is_batch = decoded.value.as_array().is_some();
        let messages = match decoded.value.as_array() {
            Some(messages) => messages.to_vec(),
            None => vec![decoded.value],
        };
        let seen: Vec<Seen> = messages.iter().filter_map(|message| self.note(message)).collect();
        let mut usual = Vec::new();
        for seen in &seen {
            let name = self.scenario.calls[seen.call].name.clone();
            match self.rule_for(&name, self.attempts[seen.call]) {
                Some(at) => self.apply(at, seen.id.as_ref(), now_us),
                None if self.attempts[seen.call] == 1 && self.is_awaited_with_others(&name) => {}
                None => usual.extend(self.usual(seen)),
            }
        }
        for at in 0..self.rules.len() {
            let On::All(names) = &self.rules[at].on else { continue };
            let came = |name: &String| {
                let call = self.scenario.calls.iter().position(|call| call.name == *name);
                call.is_some_and(|call| self.attempts[call] > 0)
            };
            if names.iter().all(came) && self.applied.insert(at) {
                self.apply(at, None, now_us);
            }
        }
        if !usual.is_empty() {
            let text =
                if is_batch { format!("[{}]\n", usual.join(",")) } else { format!("{}\n", usual.join("\n")) };
            self.push(now_us, Doing::Write { payload: Payload::text(text), chunking: Chunking::Whole });
        }
    }

    fn next(&mut self, now_us: u64) -> Option<Doing> {
        if !std::mem::replace(&mut self.begun, true) {
            for at in 0..self.rules.len() {
                if self.rules[at].on == On::Start {
                    self.apply(at, None, now_us);
                }
            }
        }
        let first = self.queue.iter().enumerate().min_by_key(|(_, (due_us, number, _))| (*due_us, *number));
        let (at, (due_us, _, _)) = first?;
        (*due_us <= now_us).then(|| self.queue.swap_remove(at).2)
    }

    fn due_us(&self) -> Option<u64> {
        self.queue.iter().map(|(due_us, _, _)| *due_us).min()
    }
}

/// `payload` with every variable replaced; `None` where one has no value.
fn filled(payload: &Payload, vars: &Vars) -> Option<Payload> {
    let fill = |segment: &Segment| match segment {
        Segment::Var(name) => vars.get(name).cloned().map(Segment::Text),
        other => Some(other.clone()),
    };
    payload.0.iter().map(fill).collect::<Option<_>>().map(Payload)
}

/// Most near misses of an id that a script can name.
pub const NEAR_IDS_MAX: usize = 32;

/// Ids that a careless comparison takes for `id`, and that no small number is.
fn nearly(id: &Json) -> Vec<Json> {
    let text = |text: &str| near_misses(text).into_iter().map(|miss| Json::from(miss.text.as_str()));
    match id {
        Json::String(id) => text(id).collect(),
        // Where the number is small and counted up, its neighbours may be ids of others: these are not.
        Json::Number(_) => id.as_i64().map_or_else(Vec::new, |number| {
            let numbers =
                [format!("{number}.5"), (number + (1 << 32)).to_string(), (-number - 1).to_string()];
            let numbers = numbers.iter().filter_map(|number| number.parse().ok());
            let number = number.to_string();
            let texts = near_misses(&number).into_iter().map(|miss| miss.text);
            // Without a blank it would be the number in text.
            let texts = texts.filter(|text| text.trim() == number || text.parse::<i64>().is_err());
            numbers.chain(texts.map(|text| Json::from(text.as_str()))).collect()
        }),
        _ => Vec::new(),
    }
}

/// An id that who does not look at types takes for the same: an integer as text, the text of one as a number.
fn of_the_other_type(id: &Json) -> Option<Json> {
    match id {
        Json::Number(_) => id.as_i64().map(|number| Json::from(number.to_string().as_str())),
        Json::String(text) => {
            let number: i64 = text.parse().ok()?;
            (number.to_string() == *text).then(|| Json::from(number))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ids_are_others() {
        for id in ["7", "0", "-3", "\"a-1\"", "\"7\""] {
            let id: Json = id.parse().unwrap();
            let near = nearly(&id);
            assert!((3..=NEAR_IDS_MAX).contains(&near.len()) && !near.contains(&id), "{near:?}");
        }
        assert_eq!(nearly(&Json::Null), []);
    }

    #[test]
    fn an_id_has_another_type_where_it_is_an_integer() {
        let other = |text: &str| of_the_other_type(&text.parse().unwrap()).map(|id| id.to_text());
        assert_eq!(other("7").as_deref(), Some("\"7\""));
        assert_eq!(other("\"-7\"").as_deref(), Some("-7"));
        for id in ["\"07\"", "\"a-1\"", "1.5", "null", "\"\""] {
            assert_eq!(other(id), None, "{id}");
        }
    }
}
