//! Rules about replies: exit statuses, messages, reason codes, and delays.

use peerproof_engine::contract::face::{Answer, Face as _, Framing, PlacedExpectation, SessionTrace, Trace};
use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::transcript::{EventKind, Exit};

use super::{Message, ReplyNotes, Runner};

/// Reason code of a blocked call.
pub(crate) const BLOCKED: &str = "guarantee_blocked";

/// Delay that a process left by a tool may cause, microseconds.
const HELD_UP_US: f64 = 2e6;

/// Replies with their requests.
pub(super) fn answers<'a>(
    heard: &SessionTrace<'a, Runner>,
) -> impl Iterator<Item = (&'a PlacedExpectation<Runner>, &'a ReplyNotes, &'a Message)> {
    heard.answers().map(|(asked, part, Answer { message, .. })| (asked, &part.extra, message))
}

/// Finding about a failure with an exit status other than 0, where 0 is required.
pub(super) fn exits(_: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    let wrong = |(asked, extra, message): (&PlacedExpectation<Runner>, &ReplyNotes, &Message)| {
        let Message::Failure { exit, .. } = message else { return None };
        if *exit == Exit::Code(0) || extra.any_exit {
            return None;
        }
        let is_missing = extra.call.as_ref().is_some_and(|call| call.role.is_none());
        let clause = if is_missing { "PT-REQ-09" } else { "PT-FAIL-06" };
        let finding = Finding::new(clause, "exit_status", "exit status 0 with `ok` false", exit.to_string());
        Some(finding.repaired_by(Repair::Exit(Exit::Code(0))).at(asked.step))
    };
    answers(heard).filter_map(wrong).collect()
}

/// Finding about a failure whose message lacks the text of the exception.
pub(super) fn messages(_: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    let wrong = |(asked, extra, message): (&PlacedExpectation<Runner>, &ReplyNotes, &Message)| {
        let (Some(text), Message::Failure { message, .. }) = (&extra.raises, message) else { return None };
        if message.contains(text.as_str()) {
            return None;
        }
        let expected = format!("a message that contains {text:?}");
        let repair = Repair::Set { at: "/error/message".to_owned(), to: Some(format!("{text:?}")) };
        let finding = Finding::new("PT-FAIL-03", "wrong_message", expected, format!("{message:?}"));
        Some(finding.repaired_by(repair).at(asked.step))
    };
    answers(heard).filter_map(wrong).collect()
}

/// Findings about reason codes: a blocked call must have its reason code, and no other call may.
pub(super) fn reasons(_: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    let wrong = |(asked, extra, message): (&PlacedExpectation<Runner>, &ReplyNotes, &Message)| {
        let call = extra.call.as_ref()?;
        let reason = match message {
            Message::Failure { reason, .. } => reason.as_deref(),
            _ => None,
        };
        let finding = match (extra.is_blocked, message) {
            (true, Message::Failure { .. }) if reason != Some(BLOCKED) => {
                let clause = if extra.route == "urllib" { "PT-GUAR-02" } else { "PT-GUAR-01" };
                let expected = format!("`reason_code` {BLOCKED:?}");
                Finding::new(clause, "no_reason", expected, format!("{reason:?}"))
            }
            (true, Message::Success { .. }) if extra.may_be_empty => return None,
            (true, Message::Success { .. } | Message::Ended(_) | Message::Status(_)) => {
                let expected = format!("`ok` false with `reason_code` {BLOCKED:?}");
                Finding::new("PT-GUAR-01", "not_blocked", expected, Runner.text(message))
            }
            (false, _) if reason == Some(BLOCKED) && !call.asks_for_some && !call.is_sandboxed => {
                let expected = format!("`reason_code` {BLOCKED:?} only with a guarantee in force");
                Finding::new("PT-GUAR-08", "reason_without_guarantee", expected, Runner.text(message))
            }
            _ => return None,
        };
        let to = Some(format!("{BLOCKED:?}")).filter(|_| extra.is_blocked);
        Some(finding.repaired_by(Repair::Set { at: "/error/reason_code".to_owned(), to }).at(asked.step))
    };
    answers(heard).filter_map(wrong).collect()
}

/// Finding about a reply that a process left by the tool delays, compared with a canary of the conversation.
pub(super) fn held_up(trace: &Trace<'_, Runner>, heard: &SessionTrace<'_, Runner>) -> Vec<Finding> {
    let took = |session: usize| {
        let at = |is: fn(&EventKind) -> bool| {
            trace.transcript.of(session).find(|event| is(&event.kind)).map(|event| event.at_us)
        };
        let from = at(|kind| matches!(kind, EventKind::StdinClosed))?;
        Some(at(|kind| matches!(kind, EventKind::Exited { .. }))?.saturating_sub(from))
    };
    let is_spawn = |extra: &ReplyNotes| extra.call.as_ref().is_some_and(|call| call.role == Some("spawn"));
    let Some((asked, ..)) = answers(heard).find(|(_, extra, _)| is_spawn(extra)) else { return Vec::new() };
    let took = |asked: &PlacedExpectation<Runner>| match (heard.framing, asked.line) {
        (Framing::Bodies, Some(line)) => {
            let exchange = heard.carriages.get(line).filter(|_| asked.session == heard.session)?;
            exchange.reply.map(|_| exchange.at_us.saturating_sub(asked.at_us))
        }
        _ => took(asked.session),
    };
    let usual = trace.asked.iter().filter(|asked| asked.canary).find_map(took);
    let (Some(usual), Some(took)) = (usual, took(asked)) else { return Vec::new() };
    if took.saturating_sub(usual) as f64 <= HELD_UP_US * trace.transcript.timeout_scale {
        return Vec::new();
    }
    let got = format!("{} ms, and {} ms without a remaining process", took / 1_000, usual / 1_000);
    let expected = "a delay of the reply of at most 2 s";
    let finding = Finding::new("PT-TIME-02", "held_up", expected, got);
    vec![finding.repaired_by(Repair::Sooner).at(asked.step)]
}
