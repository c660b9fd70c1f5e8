//! Expectation about a request: allowed replies, and required and forbidden effects.

use std::collections::BTreeMap;
use std::sync::Arc;

use peerproof_engine::contract::face::{Allowed, Effect, Need, Outcome as Comes, Sign};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::{Act, Plan};

use super::allowed_answer::{AllowedReply, Pending, ReplyNotes};
use super::config;
use super::model::{Acceptance, Assured, Call, Request};
use super::probe::{self, about};
use super::roles::{self, Outcome};

/// Time after a timeout in which a tool may be stopped or not, ms.
const TIMEOUT_DOUBT_MS: u64 = 3_000;

/// Divisor of the timeout; a tool that takes less than the quotient must not be stopped.
const TIMEOUT_SHARE: u64 = 10;

/// Timeout below which a call over HTTP may be stopped whatever it does, ms.
const TIMEOUT_SHORT_MS: u64 = 5_000;

/// Clause: a tool is called once per request.
const ONCE: &str = "PT-REQ-21";

/// Expectation about a call that appends a text to a file: the text is there, and not twice.
fn once(sign: Option<Sign>) -> ExpectationBuilder {
    let effect = |need, reason, sign, control| Effect { clause: ONCE, reason, need, sign, control };
    let effects = match sign {
        Some(Sign::Found { label, holds: Some(text) }) => {
            let seen = Sign::Found { label: label.clone(), holds: Some(text.clone()) };
            let twice = Sign::Found { label, holds: Some(text.repeat(2)) };
            let must = effect(Need::Must, "not_called", seen.clone(), None);
            vec![must, effect(Need::MustNot, "called_twice", twice, Some(seen))]
        }
        _ => Vec::new(),
    };
    let ways = vec![Allowed::answer(AllowedReply::Success(None))];
    ExpectationBuilder { clause: ONCE, ways, choice: None, effects, extra: ReplyNotes::default() }
}

/// State of a conversation.
pub struct State {
    pub(super) facts: Arc<Facts>,
    pub(super) plan: Arc<Plan>,
    /// Role and payload of the module that was written last, which plays them at import.
    pub(super) imported: Option<(String, Json)>,
    /// Signs of the effects of calls without a guarantee, by role, route, and import or call.
    pub(super) twins: BTreeMap<(String, String, bool), Sign>,
    /// Sign that a tool with enough time reaches its end.
    pub(super) slept: Option<Sign>,
    /// Assurances of handshakes, by session.
    pub(super) assured: BTreeMap<usize, Assured>,
    /// Handshake without a reply so far.
    pub(super) pending: Option<Pending>,
}

/// Expectation about a request, under construction.
pub(super) struct ExpectationBuilder {
    pub clause: &'static str,
    pub ways: Vec<Allowed<AllowedReply>>,
    pub choice: Option<&'static str>,
    pub effects: Vec<Effect>,
    pub extra: ReplyNotes,
}

impl State {
    /// Expects a refusal, and no effect of the tool.
    pub(super) fn refused(&self, clause: &'static str, bytes: &[u8], aim: &str) -> ExpectationBuilder {
        let looks = self.plan.steps.iter().filter_map(|step| match &step.act {
            Act::Look { label, .. } => Some(label),
            _ => None,
        });
        let text = String::from_utf8_lossy(bytes);
        // A peer that accepts a request which only SHOULD be refused may run it.
        let asked_for = looks.filter(|label| text.contains(&format!("/{label}\"")) && clause != "PT-SRV-03");
        let control = self.twins.values().next();
        let effects = asked_for.map(|label| Effect {
            clause: "PT-REQ-19",
            reason: "was_run",
            need: Need::MustNot,
            sign: Sign::Found { label: label.clone(), holds: None },
            control: control.cloned(),
        });
        let effects = effects.collect();
        let extra = ReplyNotes { any_exit: true, is_refusal: true, ..ReplyNotes::default() };
        let (by_reply, refused) =
            (Allowed::answer(AllowedReply::Failure), Allowed::answer(AllowedReply::Refused));
        match aim {
            "PT-REQ-20" => {
                let ways = vec![by_reply.shows("reply"), refused.shows("crash")];
                ExpectationBuilder { clause: "PT-REQ-20", ways, choice: Some("refusal"), effects, extra }
            }
            _ => ExpectationBuilder { clause, ways: vec![refused], choice: None, effects, extra },
        }
    }

    /// Expectation about a request without certain faults.
    pub(super) fn accepted(&mut self, request: Request, session: usize, aim: &str) -> ExpectationBuilder {
        let Some(call) = request.call.clone() else {
            // A request without a readable call may still be accepted.
            let ways =
                vec![Allowed::answer(AllowedReply::Refused), Allowed::answer(AllowedReply::Success(None))];
            return ExpectationBuilder {
                clause: "PT-FRAME-01",
                ways,
                choice: None,
                effects: Vec::new(),
                extra: ReplyNotes::default(),
            };
        };
        let mut made = self.of_call(&call, session, aim);
        if call.timeout.is_some() {
            made.ways.retain(|way| way.outcome != Comes::Answer(AllowedReply::Ended));
            let is_short = call.timeout.is_some_and(|(limit_ms, _)| limit_ms < TIMEOUT_SHORT_MS);
            if is_short && call.role != Some("sleep") {
                made.ways.push(Allowed::answer(AllowedReply::TimedOut));
            }
        }
        made.extra.is_unclear |= call.timeout.is_some() && call.asks_for_some && call.guarantees.is_empty();
        made.extra.call = Some(call);
        if request.of(|it| *it == Acceptance::Strict).is_some() {
            made.clause = "PT-GUAR-09";
            made.effects.iter_mut().for_each(|effect| effect.clause = "PT-GUAR-09");
            made.ways.push(Allowed::answer(AllowedReply::Refused));
            made.extra.any_exit = true;
            made.extra.is_blocked = false;
        }
        let open: Vec<_> =
            request.traits.iter().filter(|it| matches!(it.stand, Acceptance::Open(..))).collect();
        if let Some(first) = open.first() {
            made.extra.any_exit = true;
            made.extra.is_blocked = false;
            made.clause = first.clause;
            made.choice = None;
            made.ways.iter_mut().for_each(|way| way.shows = None);
            let refused = Allowed::answer(AllowedReply::Refused);
            match first.stand {
                // Two open questions get one answer, which does not show which question it answers.
                Acceptance::Open(Some(key), taken, none) if open.iter().all(|it| it.stand == first.stand) => {
                    made.choice = Some(key);
                    for way in &mut made.ways {
                        way.shows = Some(taken);
                    }
                    if let Some(call) = &made.extra.call
                        && let Some(earlier) = call.first.as_ref().filter(|_| call.role == Some("echo"))
                    {
                        made.ways.push(
                            Allowed::answer(AllowedReply::Success(Some(earlier.clone()))).shows("first"),
                        );
                    }
                    made.ways.push(refused.shows(none));
                }
                _ => {
                    // The result is compared even with a number beyond doubles, or with an open timeout.
                    if open.iter().any(|it| !matches!(it.clause, "PT-JSON-11" | "PT-SRV-16")) {
                        made.ways.push(Allowed::answer(AllowedReply::Success(None)));
                    }
                    made.ways.push(refused);
                }
            }
        }
        made
    }

    fn of_call(&mut self, call: &Call, session: usize, aim: &str) -> ExpectationBuilder {
        let Some(role) = call.role else {
            let mut ways = vec![Allowed::answer(AllowedReply::Failure)];
            if call.is_outside {
                ways.extend([
                    Allowed::answer(AllowedReply::Success(None)),
                    Allowed::answer(AllowedReply::Refused),
                ]);
            }
            let clause = if call.is_outside { "PT-REQ-10" } else { "PT-REQ-08" };
            let extra = ReplyNotes { any_exit: call.is_outside, ..ReplyNotes::default() };
            return ExpectationBuilder { clause, ways, choice: None, effects: Vec::new(), extra };
        };
        if role != "imported" {
            return self.of_role(call, role, &call.payload, false, session, aim);
        }
        match self.imported.clone() {
            Some((role, payload)) => self.of_role(call, &role, &payload, true, session, aim),
            // The module was never written.
            None => self.of_call(&Call { role: None, ..call.clone() }, session, aim),
        }
    }

    /// Expectation about a role, played by the call itself or at the import of its module.
    fn of_role(
        &mut self,
        call: &Call,
        role: &str,
        payload: &Json,
        at_import: bool,
        session: usize,
        aim: &str,
    ) -> ExpectationBuilder {
        let made = |clause, ways: Vec<AllowedReply>, extra| ExpectationBuilder {
            clause,
            ways: ways.into_iter().map(Allowed::answer).collect(),
            choice: None,
            effects: Vec::new(),
            extra,
        };
        let whatever = || vec![AllowedReply::Success(None), AllowedReply::Failure, AllowedReply::Ended];
        let any_exit = ReplyNotes { any_exit: true, ..ReplyNotes::default() };
        if let Some(guarantee) = about(role) {
            return self.of_probe(call, guarantee, payload, at_import, session, aim);
        }
        if let Some((limit_ms, clause)) = call.timeout.filter(|_| role == "sleep" && !at_import) {
            return self.of_sleep(payload, limit_ms, clause);
        }
        let outcome = roles::outcome(role, payload);
        let changes_nothing = matches!(role, "any" | "echo" | "greet" | "value" | "fail" | "blob");
        if !call.guarantees.is_empty() && !changes_nothing {
            return made("PT-GUAR-10", whatever(), any_exit);
        }
        let Some(outcome) = outcome else {
            // The tool itself fails with such a payload.
            return made("PT-FAIL-01", vec![AllowedReply::Failure], ReplyNotes::default());
        };
        let unless_imported = |clause, imported| if at_import { imported } else { clause };
        match outcome {
            Outcome::Raises(clause, kind, is_own, text) => {
                let extra = ReplyNotes { raises: Some(text), ..ReplyNotes::default() };
                made(unless_imported(clause, "PT-FAIL-04"), vec![AllowedReply::Raised(kind, is_own)], extra)
            }
            Outcome::Ends if call.timeout.is_some() => made(
                unless_imported("PT-SRV-07", "PT-FAIL-09"),
                vec![AllowedReply::Failure],
                ReplyNotes::default(),
            ),
            Outcome::Ends => {
                let clause = unless_imported("PT-FAIL-07", "PT-FAIL-09");
                let mut made =
                    made(clause, vec![AllowedReply::Failure, AllowedReply::Ended], ReplyNotes::default());
                // Runners can catch some ends of a tool, but not these.
                let is_sudden = matches!(payload.get("how").and_then(Json::as_str), Some("os" | "kill"));
                if !at_import && is_sudden {
                    made.choice = Some("tool_exit");
                    made.ways[0].shows = Some("reply");
                    made.ways[1].shows = Some("crash");
                }
                made
            }
            Outcome::Open(clause) => made(clause, whatever(), any_exit),
            // The result includes the value returned at import, so it is not compared.
            _ if at_import => {
                let clause = if role == "noise" { "PT-OUT-02" } else { "PT-REQ-05" };
                made(clause, vec![AllowedReply::Success(None)], ReplyNotes::default())
            }
            Outcome::Result(clause, result) => {
                made(clause, vec![AllowedReply::Success(Some(result))], ReplyNotes::default())
            }
            Outcome::ResultOrFailure(clause, result) => {
                let extra = ReplyNotes { any_exit: role == "value", ..ReplyNotes::default() };
                made(clause, vec![AllowedReply::Success(Some(result)), AllowedReply::Failure], extra)
            }
            Outcome::Any => made("PT-TIME-02", vec![AllowedReply::Success(None)], ReplyNotes::default()),
            Outcome::Fails(clause) => made(clause, vec![AllowedReply::Failure], any_exit),
        }
    }

    /// Expectation about a tool that sleeps, within or beyond the timeout of a call over HTTP.
    fn of_sleep(&mut self, payload: &Json, limit_ms: u64, clause: &'static str) -> ExpectationBuilder {
        let whole = |name: &str| payload.get(name).and_then(Json::as_u64);
        let touched = payload.get("touch").and_then(Json::as_str).and_then(|path| path.rsplit('/').next());
        let sign = touched.map(|label| Sign::Found { label: label.to_owned(), holds: None });
        let mut made = ExpectationBuilder {
            clause,
            ways: vec![Allowed::answer(AllowedReply::Failure)],
            choice: None,
            effects: Vec::new(),
            extra: ReplyNotes::default(),
        };
        // The tool fails with such a payload.
        let Some(ms) = whole("ms") else { return made };
        let slept = Json::object([("slept_ms", Json::from(ms))]);
        let slept = Allowed::answer(AllowedReply::Success(Some(slept)));
        let timed_out = Allowed::answer(AllowedReply::TimedOut);
        if ms >= limit_ms.saturating_add(TIMEOUT_DOUBT_MS) {
            made.ways = vec![timed_out];
            made.extra.limit = Some((limit_ms, clause));
            let control = self.slept.clone();
            made.effects.extend(sign.map(|sign| Effect {
                clause: "PT-SRV-13",
                reason: "tool_goes_on",
                need: Need::MustNot,
                sign,
                control,
            }));
        } else if ms.saturating_mul(TIMEOUT_SHARE) <= limit_ms {
            made.ways = vec![slept];
            self.slept = sign.or(self.slept.take());
        } else if ms.saturating_add(TIMEOUT_DOUBT_MS) <= limit_ms {
            made.ways = vec![slept];
        } else {
            made.ways = vec![slept, timed_out];
        }
        made
    }

    /// Expectation about a call with an external effect.
    fn of_probe(
        &mut self,
        call: &Call,
        guarantee: &'static probe::Guarantee,
        payload: &Json,
        at_import: bool,
        session: usize,
        aim: &str,
    ) -> ExpectationBuilder {
        let route = payload.get("route").and_then(Json::as_str).unwrap_or_default().to_owned();
        let catches = payload.get("catch").and_then(Json::as_bool) == Some(true);
        let sign = probe::sign(&self.plan, session, guarantee.role, payload);
        if aim == ONCE && call.guarantees.is_empty() {
            return once(sign);
        }
        let key = (guarantee.role.to_owned(), route.clone(), at_import);
        let is_plain = guarantee.plain.contains(&route.as_str());
        let is_guarded = call.guarantees.contains(guarantee.name);
        // The guarantee was requested, but no handshake assured it.
        let is_unclear = call.timeout.is_some() && call.asks_for_some && !is_guarded;
        let answers = [AllowedReply::Success(None), AllowedReply::Failure, AllowedReply::Ended];
        let mut ways: Vec<_> = answers.into_iter().map(Allowed::answer).collect();
        let mut effects = Vec::new();
        let (mut clause, mut choice) = ("PT-GUAR-05", None);
        let is_named = is_guarded && (is_plain || self.facts.claims(config::ENFORCED));
        match sign {
            Some(sign) if is_named => {
                clause = match () {
                    () if aim == "PT-HS-07" => "PT-HS-07",
                    () if !call.is_sandboxed => "PT-GUAR-07",
                    () if at_import => "PT-GUAR-06",
                    () => guarantee.clause(&route),
                };
                let (need, control) = (Need::MustNot, self.twins.get(&key).cloned());
                effects.push(Effect { clause, reason: "effect_seen", need, sign, control });
            }
            Some(sign) if call.guarantees.is_empty() && !is_unclear => {
                if aim == clause {
                    let (need, sign) = (Need::Must, sign.clone());
                    effects.push(Effect { clause, reason: "no_effect", need, sign, control: None });
                }
                self.twins.insert(key, sign);
            }
            _ => {}
        }
        let mut extra =
            ReplyNotes { any_exit: true, route: route.clone(), is_unclear, ..ReplyNotes::default() };
        if is_named && catches {
            clause = "PT-GUAR-03";
            // A tool that finds an empty environment has caught nothing.
            if guarantee.role != "env_read" {
                choice = Some("caught_block");
                for (way, word) in ways.iter_mut().zip(["success", "failure"]) {
                    way.shows = Some(word);
                }
            }
        } else if is_named && is_plain && guarantee.role == "env_read" {
            (clause, choice) = ("PT-GUAR-04", Some("env_read_block"));
            for (way, word) in ways.iter_mut().zip(["empty", "refuse"]) {
                way.shows = Some(word);
            }
        }
        extra.may_be_empty = guarantee.role == "env_read";
        extra.is_blocked = is_named && is_plain && !catches && call.is_sandboxed;
        ExpectationBuilder { clause, ways, choice, effects, extra }
    }
}
