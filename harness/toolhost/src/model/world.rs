//! State of a toolhost in serve mode, as far as it is known: allowed replies to a request, and conclusions from the
//! actual one.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::expect::{Allowed, Expect, Match, Outcome};
use super::cache::{Cache, Entry, EntryState};
use super::lease::{Gate, Lease, Leases};
use super::pins::Pins;
use super::request::{Request, Token};
use super::slots::{self, Change, Slot, Slots};
use super::tools::{self, Run};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;

/// Range of a counter's value.
#[derive(Debug, Clone, Copy)]
struct Count {
    low: u64,
    /// Upper bound; `None` for no bound.
    high: Option<u64>,
}

/// Largest number of alternatives that are listed for a counter.
const COUNTS_MAX: u64 = 4;

/// Possible fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// It was refused and changed nothing.
    Refused,
    /// It was answered from the cache.
    Hit,
    /// The tool succeeded.
    Ran,
    /// The tool failed.
    Failed,
    /// Its fate is unknown.
    Anything,
    /// It has no effect on later requests.
    Aside,
}

/// Consequences of the cache for a request.
#[derive(Debug, Default)]
struct Kept {
    /// Allowed hits.
    hits: Vec<Allowed>,
    /// True if the request is not run.
    must_hit: bool,
    /// True if the request may be refused for its key.
    may_refuse: bool,
    /// Clause that the request represents.
    clause: Option<&'static str>,
}

/// Earliest and latest time of processing of a request, in microseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub from_us: u64,
    pub to_us: u64,
}

/// Allowed replies to one line, with the data to learn from the actual one.
#[derive(Debug)]
pub(super) struct Judged {
    pub expect: Expect,
    /// Clauses by reason code, if they differ from the clause of `expect`.
    pub clauses: Vec<(&'static str, &'static str)>,
    cases: Vec<Case>,
    call: Option<Box<Call>>,
}

impl Judged {
    /// Judgement of the only request of a run, from which nothing is learned.
    pub(crate) fn of_run(expect: Expect) -> Self {
        Self { expect, clauses: Vec::new(), cases: Vec::new(), call: None }
    }

    /// True if only a refusal is correct.
    pub(super) fn is_refusal(&self) -> bool {
        self.call.is_none() && self.cases == [Case::Refused]
    }
}

#[derive(Debug)]
struct Call {
    aid: String,
    change: Option<Change>,
    run: Run,
    key: Option<String>,
    input: Option<String>,
    /// True if the output identifies the reply to this input.
    token: Token,
    span: Span,
}

/// Members of a reply.
struct Reply<'a> {
    ok: bool,
    hit: bool,
    output: Option<&'a str>,
    state: Option<&'a Json>,
    failed: bool,
}

impl<'a> Reply<'a> {
    fn of(value: &'a Json) -> Option<Self> {
        Some(Self {
            ok: value.get("ok")?.as_bool()?,
            hit: value.get("idempotent_hit").and_then(Json::as_bool) == Some(true),
            output: value.get("output_json").and_then(Json::as_str),
            state: value.get("ds_state"),
            failed: value.get("status").and_then(Json::as_str) == Some("TOOL_ERROR"),
        })
    }
}

/// Knowledge about a session.
pub(super) struct World<'a> {
    pins: &'a Pins,
    /// True if leases are required; `None` if the contract leaves it open.
    enforce: Option<bool>,
    slots: Slots,
    counts: BTreeMap<String, Count>,
    cache: Cache,
    leases: Leases,
    /// Events since a counter or slot was last read. They decide which clause a wrong value breaks.
    refused_since: bool,
    hit_since: bool,
}

impl<'a> World<'a> {
    pub(super) fn new(pins: &'a Pins, lease_enforce: Option<&str>) -> Self {
        let enforce = match lease_enforce {
            _ if !pins.lease => Some(false),
            None => Some(false),
            Some("1") => Some(true),
            Some(_) => None,
        };
        Self {
            pins,
            enforce,
            slots: slots::empty(),
            counts: BTreeMap::new(),
            cache: Cache::default(),
            leases: Leases::default(),
            refused_since: false,
            hit_since: false,
        }
    }

    fn reply(&self, outcome: Outcome) -> Allowed {
        let allowed = Allowed::of(outcome);
        if self.pins.idempotency { allowed.hit(false) } else { allowed }
    }

    /// Judgement of a line that every peer refuses.
    pub(super) fn refused(&self, clause: &'static str) -> Judged {
        let expect = Expect::new(clause, self.reply(Outcome::Refused));
        let mut clauses = vec![("false_hit", "TH-IDEM-03")];
        if !clause.starts_with("TH-LEASE") && clause != "TH-LIMIT-05" && clause != "TH-JSON-06" {
            let lost = if clause.starts_with("TH-JSON") { "TH-SERVE-01" } else { "TH-FRAME-01" };
            clauses.extend(["no_reply", "hung", "crashed", "ended_early"].map(|reason| (reason, lost)));
        }
        Judged { expect, clauses, cases: vec![Case::Refused], call: None }
    }

    /// Judgement of a line that gets one reply with unknown content.
    pub(crate) fn anything(&self, clause: &'static str) -> Judged {
        let mut expect = Expect::new(clause, Allowed::of(Outcome::Any));
        if self.pins.may_abort() {
            expect = expect.or(Allowed::of(Outcome::Dies));
        }
        Judged { expect, clauses: Vec::new(), cases: vec![Case::Anything], call: None }
    }

    /// Judgement of a configured lease request.
    pub(crate) fn issue(&self) -> Judged {
        Judged { cases: vec![Case::Aside], ..self.anything("TH-LEASE-03") }
    }

    /// Judgement of a blank line.
    pub(super) fn blank(&self, expect: Expect) -> Judged {
        Judged { expect, clauses: Vec::new(), cases: vec![Case::Aside], call: None }
    }

    /// Judgement of `request`.
    pub(super) fn request(&self, request: &Request, span: Span) -> Judged {
        let pins = self.pins;
        if pins.issue_aid.as_deref() == Some(request.aid.as_str()) {
            return self.anything("TH-LEASE-03");
        }
        let Some(tool) = pins.tool(&request.aid) else {
            return if pins.is_unknown(&request.aid) {
                self.refused("TH-REQ-03")
            } else {
                self.anything("TH-FRAME-01")
            };
        };
        let doubtful = request.duplicates || request.surrogates;
        let change = match &request.state {
            None => None,
            Some(state) => match slots::read(state, doubtful, pins) {
                Ok(change) => Some(change),
                Err(clause) => return self.refused(clause),
            },
        };
        // Readers disagree on the key.
        if request.surrogates && request.key.is_some() {
            return self.anything("TH-FRAME-01");
        }
        let changed = change.as_ref().map(|change| change.apply(&self.slots));
        let mut run = tools::run(tool, &request.input, changed.as_ref().unwrap_or(&self.slots), pins);
        run.fails |= request.bytes > tools::CERTAIN_BYTES_MAX;
        let soft = request.may_refuse.or(request.input.may_refuse);
        let soft = soft.or(change.as_ref().and_then(|change| change.may_refuse));
        let mut may_refuse = soft.is_some() || run.refuses;

        let mut cases = Vec::new();
        let mut allowed: Vec<Allowed> = Vec::new();
        let mut clause = self.topic(request, &run, soft);
        let gate = match (self.enforce, tool.tier) {
            (Some(false), _) | (_, Some(0)) => Gate::Open,
            (Some(true), Some(tier)) => {
                self.leases.gate(&request.token, &request.aid, tier, span.from_us, span.to_us)
            }
            _ => return self.anything("TH-FRAME-01"),
        };
        let must_fail = !run.ok && !run.dies;
        match gate {
            Gate::Open => {
                if matches!(request.token, Token::Captured(_)) {
                    clause = "TH-LEASE-03";
                }
            }
            Gate::Shut(refusals, shut) => {
                let mut judged = self.refused(shut);
                if request.key.is_some() && request.token == Token::Absent {
                    judged.expect.clause = "TH-LEASE-12".into();
                }
                // A request with another fault may be refused for that.
                judged.expect.allowed = match may_refuse || must_fail {
                    true => vec![self.reply(Outcome::Refused)],
                    false => refusals,
                };
                return judged;
            }
            Gate::Perhaps(refusals) => {
                allowed.extend(refusals);
                cases.push(Case::Refused);
            }
        }
        let key = request.key.clone().filter(|key| !key.is_empty());
        let kept = key.as_ref().map(|key| self.kept(key, request, span)).unwrap_or_default();
        may_refuse |= kept.may_refuse;
        clause = kept.clause.unwrap_or(clause);
        if !kept.hits.is_empty() {
            cases.push(Case::Hit);
            allowed.extend(kept.hits);
        }
        if !kept.must_hit {
            self.once_run(request, &run, may_refuse, &mut cases, &mut allowed);
        }
        if may_refuse {
            cases.push(Case::Refused);
            allowed.push(self.reply(Outcome::Refused));
        }
        let expect = Expect::any_of(clause, allowed);
        let mut clauses = vec![("false_hit", clause_of_false_hit(request)), ("no_hit", "TH-IDEM-01")];
        if !kept.must_hit {
            let wrong = match (run.counts, self.hit_since, self.refused_since) {
                (true, true, _) => "TH-IDEM-02",
                (true, _, true) => "TH-REQ-17",
                (false, _, true) if run.shows.is_some() => "TH-STATE-16",
                _ => run.shown_clause.unwrap_or(run.clause),
            };
            clauses.push(("wrong_output", wrong));
        }
        let call = Call {
            aid: request.aid.clone(),
            change,
            run,
            key,
            input: request.input.text.clone(),
            token: match request.token {
                Token::Captured(ref name) => Token::Captured(name.clone()),
                _ => Token::Absent,
            },
            span,
        };
        Judged { expect, clauses, cases, call: Some(Box::new(call)) }
    }

    /// Adds the outcomes of running the tool.
    fn once_run(
        &self,
        request: &Request,
        run: &Run,
        may_refuse: bool,
        cases: &mut Vec<Case>,
        allowed: &mut Vec<Allowed>,
    ) {
        if run.ok {
            cases.push(Case::Ran);
            allowed.extend(self.successes(&request.aid, run));
        }
        if run.fails {
            cases.push(Case::Failed);
            let outcome = if may_refuse { Outcome::Refused } else { Outcome::ToolError };
            allowed.push(self.reply(outcome));
        }
        if run.dies {
            allowed.push(Allowed::of(Outcome::Dies));
        }
    }

    /// Consequences of the entries under `key` for a request with it.
    fn kept(&self, key: &str, request: &Request, span: Span) -> Kept {
        let mut kept = Kept::default();
        if self.cache.blurred {
            kept.hits.push(self.hit(None, false));
            kept.hits.push(self.hit(None, true));
            kept.may_refuse = true;
        }
        for entry in self.cache.of(key) {
            let life = entry.life(span.from_us, span.to_us);
            if life == EntryState::Gone {
                continue;
            }
            if entry.aid != request.aid {
                // The request runs or is refused; the result of the other tool never comes.
                kept.may_refuse = true;
                kept.clause = Some("TH-IDEM-10");
                continue;
            }
            let other_text = entry.input != request.input.text;
            match &entry.result {
                Some((ok, text)) => kept.hits.push(self.hit(text.as_deref(), *ok)),
                None => kept.hits.extend([self.hit(None, true), self.hit(None, false)]),
            }
            if life == EntryState::Held {
                kept.must_hit = true;
                kept.clause = Some(if other_text { "TH-IDEM-11" } else { "TH-IDEM-01" });
            }
            // The request of an entry may be uncertain, so a refusal is allowed for an equal text too.
            if !self.pins.is("same_key_other_input", "first") {
                kept.may_refuse = true;
                let differs = other_text
                    && request.input.plain
                    && entry
                        .input
                        .as_deref()
                        .map_or_else(|| Some(Json::object::<&str>([])), super::super::expect::parse)
                        != request.input.value;
                if differs && life == EntryState::Held && self.pins.is("same_key_other_input", "refuse") {
                    kept.hits.clear();
                }
            }
        }
        kept
    }

    /// Clause that a request represents if it is refused or lost.
    fn topic(&self, request: &Request, run: &Run, soft: Option<&'static str>) -> &'static str {
        if let Some(clause) = soft {
            clause
        } else if !run.ok {
            run.clause
        } else if request.has_cr {
            "TH-FRAME-06"
        } else if request.key.as_deref() == Some("") {
            "TH-IDEM-12"
        } else if request.has_unknown {
            "TH-REQ-10"
        } else if request.input.text.is_none() {
            "TH-REQ-05"
        } else if request.state.is_some() {
            "TH-STATE-02"
        } else {
            run.clause
        }
    }

    fn hit(&self, output: Option<&str>, ok: bool) -> Allowed {
        let outcome = if ok { Outcome::Ok } else { Outcome::Refused };
        let mut allowed = Allowed::of(outcome).hit(true);
        allowed.output = output.filter(|_| ok).map(str::to_owned);
        allowed
    }

    fn successes(&self, aid: &str, run: &Run) -> Vec<Allowed> {
        let mut success = self.reply(Outcome::Ok);
        if !run.counts {
            success.output.clone_from(&run.output);
            success.output_members.clone_from(&run.parts);
            return vec![success];
        }
        let count = self.count(aid);
        match count.high {
            Some(high) if high - count.low < COUNTS_MAX => (count.low..=high)
                .map(|n| success.clone().output_member("/count", Match::Equals((n + 1).to_string())))
                .collect(),
            _ => vec![success],
        }
    }

    fn count(&self, aid: &str) -> Count {
        self.counts.get(aid).copied().unwrap_or(Count { low: 0, high: Some(0) })
    }

    /// Learns from the actual reply. It is `None` if the reply is unknown; `lost` is true if even its correctness is
    /// unknown. Returns a finding about the state in the reply.
    pub(crate) fn settle(
        &mut self,
        judged: &Judged,
        reply: Option<&Json>,
        lost: bool,
        at_us: u64,
    ) -> Option<Finding> {
        let reply = reply.and_then(Reply::of);
        let mut cases = judged.cases.clone();
        if reply.is_none() && lost && !cases.contains(&Case::Aside) {
            cases.push(Case::Refused);
        }
        if let Some(reply) = &reply {
            cases.retain(|case| match case {
                Case::Refused => !reply.ok && !reply.hit,
                Case::Hit => reply.hit,
                Case::Ran => reply.ok && !reply.hit,
                Case::Failed => !reply.ok && !reply.hit,
                Case::Anything | Case::Aside => true,
            });
        }
        if cases.contains(&Case::Anything) {
            self.blur();
            return None;
        }
        if cases.is_empty() && reply.as_ref().is_some_and(|reply| !reply.ok && !reply.hit && !reply.failed) {
            // The refusal was wrong, which another rule reports. A host error runs no tool and changes nothing.
            cases.push(Case::Refused);
        }
        if cases.is_empty() {
            // The reply fits no alternative, which another rule reports. Its effects are unknown.
            self.blur();
            return None;
        }
        self.refused_since |= cases.contains(&Case::Refused);
        let call = judged.call.as_ref()?;
        let before = self.slots.clone();
        let own = call.change.as_ref().map(|change| change.apply(&before));
        let own = own.as_ref().unwrap_or(&before);
        let outcomes = cases.iter().map(|case| self.slots_after(*case, &before, own, call));
        if let Some(after) = outcomes.reduce(|slots, other| slots::merge(&slots, &other)) {
            self.slots = after;
        }
        let only = |case: Case| cases.iter().all(|one| *one == case);
        let may = |case: Case| cases.contains(&case);
        self.hit_since |= may(Case::Hit);
        let reply_output = reply.as_ref().and_then(|reply| reply.output);
        if call.run.counts {
            self.learn_count(call, only(Case::Ran), may(Case::Ran) || may(Case::Failed), reply_output);
        }
        if let (true, Some(slot), Some(output)) = (only(Case::Ran), call.run.shows, reply_output) {
            self.learn_slot(slot, output);
        }
        if let Some(lease) = self.leases.get_mut(&call.token) {
            let spends = self.pins.flag("hit_spends_token");
            lease.spent = if only(Case::Ran) {
                Some(true)
            } else if only(Case::Refused) {
                // The contract does not decide if a token survives a refusal for another reason.
                lease.spent.filter(|spent| *spent)
            } else if only(Case::Hit) && lease.spent == Some(false) {
                spends.filter(|spends| !spends)
            } else {
                None
            };
        }
        if let Some(key) = &call.key {
            let result = reply.as_ref().map(|reply| {
                let plain = reply.output.filter(|text| is_plain(text)).map(str::to_owned);
                (reply.ok, plain)
            });
            let entry = Entry {
                aid: call.aid.clone(),
                input: call.input.clone(),
                result,
                certain: true,
                from_us: call.span.from_us,
                to_us: if reply.is_some() { at_us } else { call.span.to_us },
            };
            if only(Case::Ran) {
                self.cache.insert(key, entry);
            } else if may(Case::Ran) {
                self.cache.doubt(key, entry);
            } else if may(Case::Failed) {
                match self.pins.flag("tool_error_cached") {
                    Some(false) => {}
                    Some(true) if only(Case::Failed) => self.cache.insert(key, entry),
                    _ => self.cache.doubt(key, entry),
                }
            }
        }
        let reply = reply?;
        if reply.ok && only(Case::Ran) && self.pins.ds_state {
            delta_fault(&before, own, &self.slots, &reply)
        } else {
            None
        }
    }

    fn slots_after(&self, case: Case, before: &Slots, own: &Slots, call: &Call) -> Slots {
        let mut after = match case {
            Case::Refused | Case::Anything | Case::Aside => return before.clone(),
            Case::Hit => {
                return match self.pins.flag("hit_applies_state") {
                    Some(true) => own.clone(),
                    Some(false) => before.clone(),
                    None => slots::merge(before, own),
                };
            }
            Case::Ran | Case::Failed => own.clone(),
        };
        if call.run.blurs {
            return slots::unknown();
        }
        if let Some((slot, written)) = &call.run.writes {
            let kept = after[*slot] == *written;
            after[*slot] = match case {
                Case::Ran => written.clone(),
                _ if kept => written.clone(),
                _ => Slot::Unknown,
            };
        }
        after
    }

    fn learn_count(&mut self, call: &Call, ran: bool, may: bool, output: Option<&str>) {
        let count = self.count(&call.aid);
        let shown = output
            .filter(|_| ran)
            .and_then(super::super::expect::parse)
            .and_then(|output| output.get("count").and_then(Json::as_u64));
        let next = match shown {
            Some(count) => {
                self.refused_since = false;
                self.hit_since = false;
                Count { low: count, high: Some(count) }
            }
            None if ran => Count { low: count.low + 1, high: count.high.map(|high| high + 1) },
            None if may => Count { high: count.high.map(|high| high + 1), ..count },
            None => count,
        };
        self.counts.insert(call.aid.clone(), next);
        if ran || may {
            // No role demands that each leased tool has its own counter.
            let pins = self.pins;
            for aid in pins.sharers(&call.aid) {
                let count = self.count(aid);
                let next = Count { high: count.high.map(|high| high + 1), ..count };
                self.counts.insert(aid.to_owned(), next);
            }
        }
    }

    fn learn_slot(&mut self, slot: usize, output: &str) {
        if self.slots[slot] != Slot::Unknown {
            return;
        }
        let Some(output) = super::super::expect::parse(output) else { return };
        let text = |name: &str| output.pointer(name).and_then(Json::as_str).map(str::to_owned);
        if output.get("artifact").is_some_and(Json::is_null) {
            self.slots[slot] = Slot::EMPTY;
        } else if let (Some(kind), Some(provenance), Some(content)) =
            (text("/artifact/type"), text("/artifact/provenance"), text("/artifact/content_json"))
            && output.pointer("/artifact").and_then(Json::as_object).is_some_and(|members| members.len() == 4)
        {
            self.slots[slot] = Slot::Holds(Rc::new(slots::Artifact { kind, provenance, content }));
        }
    }

    /// Records a lease in the variable `name`; `None` if its terms are unknown.
    pub(super) fn issued(&mut self, name: &str, lease: Option<Lease>) {
        self.leases.issue(name, lease);
    }

    /// Records that a refused request had a token. A careful peer keeps it valid.
    pub(crate) fn doubt_leases(&mut self) {
        self.leases.doubt();
    }

    /// Records that a lease may have been issued.
    pub(crate) fn leases_exist(&mut self) {
        self.leases.any_issued = true;
    }

    /// Forgets all knowledge.
    fn blur(&mut self) {
        self.slots = slots::unknown();
        self.cache.blurred = true;
        for tool in self.pins.counters() {
            self.counts.insert(tool.to_owned(), Count { low: 0, high: None });
        }
        self.leases.any_issued = true;
        self.leases.doubt();
    }
}

/// True if a cache surely returns this text unchanged.
fn is_plain(text: &str) -> bool {
    super::super::expect::parse(text).is_some_and(|value| {
        let numbers = super::request::numbers(&value);
        !numbers.inexact && !numbers.big
    })
}

/// Fault in the delta of a success. Applied to the state before the request, or after its own `ds_state`, it must give
/// the peer's new state (TH-STATE-15).
fn delta_fault(before: &Slots, own: &Slots, after: &Slots, reply: &Reply<'_>) -> Option<Finding> {
    if !(slots::known(before) && slots::known(own) && slots::known(after)) {
        return None;
    }
    let state = reply.state?;
    let leads = |base: &Slots| slots::apply_reply(state, base).is_none_or(|reached| reached == *after);
    if leads(before) || leads(own) {
        return None;
    }
    let got = peerproof_engine::data::payload::shorten(&state.to_text(), 240).into_owned();
    let expected = "a delta that leads to the state after the request and its tool";
    Some(Finding::new("TH-STATE-15", "wrong_delta", expected, got))
}

/// Clause that a false hit of a request breaks. The empty string should not count as a key: a hit of it breaks only that.
fn clause_of_false_hit(request: &Request) -> &'static str {
    if request.key.as_deref() == Some("") { "TH-IDEM-12" } else { "TH-IDEM-03" }
}
