//! Trials of mapped tools: one plain call of each shows whether it plays its role.
//!
//! A peer without mappings has no trial, because the tools of the scratch project are known.

use std::collections::BTreeMap;

use peerproof_engine::contract::judge::{self, effects};
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::data::json::{self, Json};
use peerproof_engine::data::payload::{Payload, shorten};
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::transcript::Transcript;

use super::face::{BLOCKED, COMMAND, Message, Runner};
use super::probe::{self, Probe};
use super::roles::{Outcome, ROLES, entry_of, maps_own, outcome, usual_payload};
use super::talk::{Sending, Talk};

/// Text that shows an effect; reversed it is another text.
const WORD: &str = "peerproof-trial-word";

/// Role whose module the harness writes for each check.
const WRITTEN_ANEW: &str = "imported";

/// Roles that are tried. The one that ends its process comes last.
fn tried(facts: &Facts) -> impl Iterator<Item = &'static str> {
    let is_last = |role: &&str| *role == "quit";
    let ordered =
        ROLES.into_iter().filter(move |role| !is_last(role)).chain(ROLES.into_iter().filter(is_last));
    ordered.filter(|role| *role != WRITTEN_ANEW && facts.roles.contains_key(*role))
}

/// Conversation with the trial calls.
pub(crate) fn plan(facts: &Facts) -> Option<Plan> {
    if facts.side == Side::Consumer || !maps_own(facts) {
        return None;
    }
    let command = [COMMAND, HTTP].into_iter().find(|name| facts.commands.contains(*name))?;
    let mut talk = Talk::without_canary(facts, command);
    for role in tried(facts) {
        let mut sending = Sending { await_frames: Some(1), ..Sending::default() };
        let mut made = None;
        let payload = match probe::about(role) {
            Some(guarantee) => {
                let route = guarantee.plain[0];
                let mut probe =
                    Probe { role, route, token: WORD, number: 0, guarded: false, temporary: false };
                let payload = talk.probe(&mut probe, "127.0.0.1", false);
                (sending.env, made) = (probe.env(), probe.made());
                payload
            }
            None => Payload::text(payload_of(role)),
        };
        talk.send(talk.request(role, payload, &[]), made, sending);
    }
    Some(talk.plan())
}

/// A payload that no runner has reason to refuse, with a result that is an object.
fn payload_of(role: &str) -> &'static str {
    match role {
        "echo" => r#"{"probe":"echo"}"#,
        "value" => r#"{"kind":"ok_false"}"#,
        "blob" => r#"{"bytes":3}"#,
        "spawn" => r#"{"ms":1,"hold":false}"#,
        _ => usual_payload(role),
    }
}

/// Records the outcomes of the trial calls.
pub(crate) fn enter(facts: &mut Facts, probes: &[Transcript]) {
    let Some(trial) = probes.first() else { return };
    let mut came = told(trial);
    if facts.roles.contains_key(WRITTEN_ANEW) {
        let why = "peerproof writes its module anew for each check";
        came.insert(WRITTEN_ANEW, RoleTrial::Untold(why.to_owned()));
    }
    for (role, came) in came {
        let came = match came {
            RoleTrial::Misplays(why) => {
                RoleTrial::Misplays(format!("{} as role `{role}` {why}", entry_of(facts, role)))
            }
            other => other,
        };
        facts.enter(role, came);
    }
}

/// Outcome of each call, by role.
fn told(trial: &Transcript) -> BTreeMap<&'static str, RoleTrial> {
    let is_call = |act: &Act| matches!(act, Act::Send { .. });
    let calls = (0..).zip(&trial.plan.steps).filter(|(_, step)| is_call(&step.act)).map(|(at, _)| at);
    let calls: BTreeMap<usize, &str> = calls.zip(tried(&trial.facts)).collect();
    let mut came: BTreeMap<&str, RoleTrial> = BTreeMap::new();
    judge::listen(&Runner, trial, |trace| {
        for heard in &trace.sessions {
            for (asked, part, answer) in heard.answers() {
                let role = calls.get(&asked.step);
                if let (Some(role), Some(call)) = (role, &part.extra.call) {
                    came.insert(role, seen(trial, heard.session, role, &call.payload, answer.message));
                }
            }
        }
    });
    for role in calls.into_values() {
        let none = || RoleTrial::Untold("its call gets no readable reply".to_owned());
        came.entry(role).or_insert_with(none);
    }
    came
}

/// Verdict about the tool of `role`, from the answer to its call.
fn seen(trial: &Transcript, session: usize, role: &str, payload: &Json, answer: &Message) -> RoleTrial {
    let Some(promised) = outcome(role, payload) else { return RoleTrial::Plays };
    let answers = |result: &Json| RoleTrial::Misplays(format!("answers {}", shorten(&result.to_text(), 80)));
    match (answer, promised) {
        (
            Message::Success { result, .. },
            Outcome::Result(_, wanted) | Outcome::ResultOrFailure(_, wanted),
        ) => match json::is_kept(&wanted, result) {
            true => RoleTrial::Plays,
            false => answers(result),
        },
        (Message::Success { result, .. }, Outcome::Raises(..) | Outcome::Ends | Outcome::Fails(_)) => {
            answers(result)
        }
        (Message::Success { result, .. }, _) if role == "spawn" => {
            match result.get("pid").and_then(Json::as_u64) {
                Some(_) => RoleTrial::Plays,
                None => answers(result),
            }
        }
        (Message::Success { result, .. }, _) => {
            let sign = probe::sign(&trial.plan, session, role, payload);
            match sign.map(|sign| effects::is_seen(trial, &sign)) {
                Some(Some(false)) => RoleTrial::Misplays(format!(
                    "answers {} and has no effect",
                    shorten(&result.to_text(), 80)
                )),
                Some(None) => RoleTrial::Untold("peerproof cannot see whether it has its effect".to_owned()),
                Some(Some(true)) | None => RoleTrial::Plays,
            }
        }
        (Message::Ended(_), Outcome::Ends) => RoleTrial::Plays,
        (Message::Failure { kind, .. }, Outcome::Ends) if kind.ends_with("Exit") => RoleTrial::Plays,
        // These tools may fail; so may a call of a missing tool.
        (Message::Failure { kind, message, .. }, Outcome::Ends | Outcome::ResultOrFailure(..)) => {
            RoleTrial::Untold(format!("fails with {}", shorten(&format!("{kind}: {message}"), 80)))
        }
        // Without a requested guarantee nothing may be blocked.
        (Message::Failure { reason: Some(reason), .. }, _) if reason == BLOCKED => {
            RoleTrial::Untold("its call is blocked, although no guarantee is requested".to_owned())
        }
        (Message::Failure { kind, message, .. }, promised) => {
            let is_raised = |wanted: &str, text: &str| kind.ends_with(wanted) || message.contains(text);
            match promised {
                Outcome::Raises(_, wanted, _, text) if is_raised(&wanted, &text) => RoleTrial::Plays,
                _ => {
                    RoleTrial::Misplays(format!("fails with {}", shorten(&format!("{kind}: {message}"), 80)))
                }
            }
        }
        (Message::Ended(exit), _) => RoleTrial::Untold(format!("its call ends with {exit} and no reply")),
        (Message::Status(status), _) => RoleTrial::Untold(format!("its call gets status {status}")),
        (Message::Other { wrong, .. }, _) => RoleTrial::Untold(wrong.got.clone()),
    }
}
