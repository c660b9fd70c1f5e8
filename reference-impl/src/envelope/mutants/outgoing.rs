//! Mutants that return wrong replies.

use std::sync::atomic::{AtomicI64, Ordering};

use super::super::validate::over_bound;
use super::super::{Members, get, number, object, set, slot};
use super::Mutant;
use super::edit::Edit::{Advanced, Ended, Loses, Reply};
use super::edit::{is_advanced, is_ended};
use crate::json::Value;
use crate::mutant::values::{edit_string, unescape};

/// Changes every value in free data, children before their container.
fn each(value: &mut Value, change: fn(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each(item, change)),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| each(member, change)),
        _ => {}
    }
    change(value);
}

/// Changes every value in the free data of a reply.
fn in_free_data(reply: &mut Members, change: fn(&mut Value)) {
    for name in ["outputs", "metadata", "prior_plans", "errors"] {
        match slot(reply, name) {
            Value::Array(items) => items.iter_mut().for_each(|item| each(item, change)),
            Value::Object(members) => members.iter_mut().for_each(|(_, member)| each(member, change)),
            _ => {}
        }
    }
}

/// Removes a member from an object.
fn drop_key(value: &mut Value, key: &str) {
    if let Value::Object(members) = value {
        members.retain(|(name, _)| *name != *key);
    }
}

fn reverse(reply: &mut Members, lists: &[&str]) {
    for name in lists {
        if let Value::Array(items) = slot(reply, name) {
            items.reverse();
        }
    }
}

/// True if the terminal reason is a bound.
fn is_of_bound(reply: &Members) -> bool {
    get(reply, "terminal_reason").and_then(Value::as_str).is_some_and(|it| it.starts_with("max_"))
}

static CALLS: AtomicI64 = AtomicI64::new(0);

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = table! {
    "loses-metadata" ["ENV-KEEP-02"] "Metadata is lost." =>
        Loses("metadata");
    "loses-feedback" ["ENV-KEEP-01", "ENV-ADV-04"] "The critic's feedback is lost." =>
        Loses("critic_feedback");
    "loses-the-reason" ["ENV-KEEP-01"] "The human-readable reason is lost." =>
        Loses("termination_reason");
    "loses-the-history" ["ENV-PROP-37"] "The processing history is lost." =>
        Loses("processing_history");
    "fills-missing-with-nothing" ["ENV-ACC-04"] "A missing user id becomes the empty string." =>
        Reply(|given, reply| {
            if get(given, "user_id").is_none() {
                set(reply, "user_id", Value::from(""));
            }
        });
    "other-default" ["ENV-DEF-01"] "Without a word at most five iterations are allowed." =>
        Reply(|given, reply| {
            if get(given, "max_iterations").is_none() {
                set(reply, "max_iterations", number(5));
            }
        });
    "waits-where-a-response-is-null" ["ENV-DEF-01"] "No stage is run where a response is null, though none is waited for." =>
        Advanced(|given, reply| {
            if get(given, "confirmation_response") == Some(&Value::Null) {
                reply.clone_from(given);
            }
        });
    "waits-where-errors-are-null" ["ENV-TYPE-03"] "No stage is run where the list of errors is null." =>
        Advanced(|given, reply| {
            if get(given, "errors") == Some(&Value::Null) {
                let errors = get(reply, "errors").cloned();
                reply.clone_from(given);
                set(reply, "errors", errors.unwrap_or(Value::Null));
            }
        });
    "receives-at-null" ["ENV-DEF-02"] "An absent time of receipt comes back as null." =>
        Reply(|given, reply| {
            if get(given, "received_at").is_none() {
                set(reply, "received_at", Value::Null);
            }
        });
    "receives-at-zero" ["ENV-DEF-02"] "An absent time of receipt comes back as the zero of times." =>
        Reply(|given, reply| {
            if get(given, "received_at").is_none() {
                set(reply, "received_at", Value::from("0001-01-01T00:00:00Z"));
            }
        });
    "null-for-empty" ["ENV-OUT-02"] "Empty lists of errors are given back as null." =>
        Reply(|_, reply| {
            if matches!(slot(reply, "errors"), Value::Array(errors) if errors.is_empty()) {
                set(reply, "errors", Value::Null);
            }
        });
    "counts-in-strings" ["ENV-OUT-01"] "The number of the current stage comes back as a string." =>
        Reply(|_, reply| set(reply, "current_stage_number", Value::from("1")));
    "cuts-times-to-seconds" ["ENV-TIME-09"] "Times lose what is behind the second, as `time.RFC3339` does." =>
        Reply(|_, reply| {
            edit_string(slot(reply, "received_at"), |time| match time.split_once('.') {
                Some((head, tail)) => {
                    format!("{head}{}", tail.trim_start_matches(|digit: char| digit.is_ascii_digit()))
                }
                None => time.to_owned(),
            });
            if get(reply, "received_at") == Some(&Value::Null) {
                reply.retain(|(name, _)| *name != *"received_at");
            }
        });
    "drops-zeros-of-fractions" ["ENV-TIME-09"] "The fraction of a time is spelled as a number, without the zeros in front." =>
        Reply(|_, reply| {
            edit_string(slot(reply, "received_at"), |time| match time.split_once('.') {
                Some((head, tail)) => match tail.trim_start_matches('0') {
                    digits if digits.starts_with(|it: char| it.is_ascii_digit()) => format!("{head}.{digits}"),
                    _ => time.to_owned(),
                },
                None => time.to_owned(),
            });
            if get(reply, "received_at") == Some(&Value::Null) {
                reply.retain(|(name, _)| *name != *"received_at");
            }
        });
    "rounds-times-without-carry" ["ENV-TIME-09"] "A fraction that rounds up to a whole second gets a seventh digit." =>
        Reply(|given, reply| {
            let given = get(given, "received_at").and_then(Value::as_str).and_then(|time| time.split_once('.'));
            if let Some((head, tail)) = given.filter(|(_, tail)| tail.starts_with("9999996")) {
                let offset = tail.trim_start_matches(|it: char| it.is_ascii_digit());
                set(reply, "received_at", Value::from(format!("{head}.1000000{offset}").as_str()));
            }
        });
    "respells-times-in-free-data" ["ENV-TIME-11"] "Times in free data are respelled." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| edit_string(value, |text| text.replace("+00:00", "Z")));
        });
    "halves-precision" ["ENV-JSON-08", "ENV-KEEP-06"] "Numbers in free data go through single precision." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| {
                if let Value::Number(given) = value {
                    let text = format!("{:e}", given.as_f64() as f32);
                    let parsed = Value::parse(text.as_bytes(), 1, &crate::json::Policy::default());
                    *value = parsed.unwrap_or(Value::Null);
                }
            });
        });
    "wraps-counters" ["ENV-TYPE-05", "ENV-KEEP-01"] "A counter that does not fit becomes the largest that does." =>
        Reply(|_, reply| {
            for name in ["max_iterations", "max_llm_calls", "max_agent_hops", "max_stages"] {
                let most = i64::from(i32::MAX);
                if slot(reply, name).as_i64().is_none_or(|count| count > most) {
                    set(reply, name, number(most));
                }
            }
        });
    "drops-nulls" ["ENV-KEEP-02"] "Members of free data that are null are dropped." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| {
                if let Value::Object(members) = value {
                    members.retain(|(_, value)| *value != Value::Null);
                }
            });
        });
    "lists-for-maps" ["ENV-KEEP-02"] "Empty objects in free data come back as empty lists." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| {
                if matches!(value, Value::Object(members) if members.is_empty()) {
                    *value = Value::Array(Vec::new());
                }
            });
            if let Value::Object(outputs) = slot(reply, "outputs") {
                outputs
                    .iter_mut()
                    .filter(|(_, it)| it.as_array().is_some())
                    .for_each(|(_, it)| *it = object([]));
            }
        });
    "drops-the-undocumented" ["ENV-KEEP-03"] "Members that are not documented are dropped." =>
        Reply(|_, reply| {
            reply
                .retain(|(name, _)| name.as_str().is_some_and(|it| super::super::members::find(it).is_some()))
        });
    "drops-the-undocumented-in-stages" ["ENV-KEEP-03"] "Members of completed stages that are not documented are dropped." =>
        Reply(|_, reply| {
            let known = ["stage_number", "satisfied_goals", "summary", "plan_id"];
            if let Value::Array(stages) = slot(reply, "completed_stages") {
                for stage in stages {
                    if let Value::Object(members) = stage {
                        members.retain(|(name, _)| name.as_str().is_some_and(|it| known.contains(&it)));
                    }
                }
            }
        });
    "marks-summaries" ["ENV-KEEP-02"] "The summary of a completed stage gets a member." =>
        Reply(|_, reply| {
            if let Value::Array(stages) = slot(reply, "completed_stages") {
                for stage in stages {
                    if let Value::Object(stage) = stage
                        && let Value::Object(summary) = slot(stage, "summary")
                    {
                        set(summary, "seen", Value::Bool(true));
                    }
                }
            }
        });
    "takes-no-for-silence" ["ENV-KEEP-05"] "A confirmation that was denied comes back without a response." =>
        Reply(|_, reply| {
            if get(reply, "confirmation_response") == Some(&Value::Bool(false)) {
                set(reply, "confirmation_response", Value::Null);
            }
        });
    "takes-empty-for-null" ["ENV-KEEP-05"] "Empty strings come back as null." =>
        Reply(|_, reply| {
            for name in
                ["termination_reason", "confirmation_id", "confirmation_message", "clarification_question"]
            {
                if get(reply, name) == Some(&Value::from("")) {
                    set(reply, name, Value::Null);
                }
            }
        });
    "composes-characters" ["ENV-KEEP-07"] "Strings are normalised." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| edit_string(value, |text| text.replace("e\u{301}", "é")));
        });
    "loses-proto" ["ENV-KEEP-08"] "Members called `__proto__` are lost." =>
        Reply(|_, reply| in_free_data(reply, |value| drop_key(value, "__proto__")));
    "renews-the-request" ["ENV-ADV-01"] "Each stage makes a request of its own." =>
        Advanced(|_, reply| set(reply, "request_id", Value::from("req_0000000000000000")));
    "keeps-the-last-output" ["ENV-ADV-02"] "Outputs of earlier agents are dropped by the next." =>
        Reply(|given, reply| {
            if is_advanced(given, reply)
                && let Value::Object(outputs) = slot(reply, "outputs")
            {
                outputs.drain(..outputs.len().saturating_sub(1));
            }
        });
    "keeps-the-last-record" ["ENV-ADV-03"] "The processing history holds the last record alone." =>
        Reply(|given, reply| {
            if is_advanced(given, reply)
                && let Value::Array(history) = slot(reply, "processing_history")
            {
                history.drain(..history.len().saturating_sub(1));
            }
        });
    "keeps-the-last-two" ["ENV-ADV-03"] "Plans and completed stages beyond the last two are dropped." =>
        Reply(|_, reply| {
            for name in ["prior_plans", "completed_stages"] {
                if let Value::Array(items) = slot(reply, name) {
                    items.drain(..items.len().saturating_sub(2));
                }
            }
        });
    "sorts-goals" ["ENV-KEEP-01"] "Goals and feedback come back sorted, each once." =>
        Reply(|_, reply| {
            for name in ["all_goals", "remaining_goals", "critic_feedback"] {
                if let Value::Array(items) = slot(reply, name) {
                    items.sort_by_key(|item| item.as_text().map(|text| text.as_bytes().to_vec()));
                    items.dedup();
                }
            }
        });
    "reverses-goals" ["ENV-KEEP-01"] "Goals and stages come back in reverse order." =>
        Reply(|_, reply| reverse(reply, &["all_goals", "remaining_goals", "stage_order"]));
    "reverses-records" ["ENV-ADV-03"] "The newest errors, records, plans and stages stand first." =>
        Advanced(|_, reply| {
            reverse(reply, &["errors", "processing_history", "prior_plans", "completed_stages"]);
        });
    "clears-errors" ["ENV-ADV-03"] "Errors are cleared when the pipeline goes on." =>
        Advanced(|_, reply| set(reply, "errors", Value::Array(Vec::new())));
    "counts-hops-anew" ["ENV-ADV-05"] "The number of hops is that of one call." =>
        Advanced(|_, reply| set(reply, "agent_hop_count", number(1)));
    "forgets-retries" ["ENV-ADV-06"] "The number of the retry is lost though the stage stays." =>
        Advanced(|given, reply| {
            set(reply, "iteration", number(0));
            set(reply, "current_stage", get(given, "current_stage").cloned().unwrap_or(Value::Null));
        });
    "begins-again-at-a-bound" ["ENV-ADV-06"] "Where a bound stops it, the number of the retry is 0." =>
        Ended(|_, reply| {
            if is_of_bound(reply) {
                set(reply, "iteration", number(0));
            }
        });
    "hops-by-two" ["ENV-BOUND-01"] "Each stage counts as two hops, though one is left." =>
        Advanced(|_, reply| {
            let hops = slot(reply, "agent_hop_count").as_i64().unwrap_or(0);
            set(reply, "agent_hop_count", number(hops + 1));
        });
    "calls-a-bound-success" ["ENV-BOUND-03"] "An envelope that a bound stops was completed successfully." =>
        Ended(|_, reply| {
            if is_of_bound(reply) && over_bound(reply).is_none() {
                set(reply, "terminal_reason", Value::from("completed_successfully"));
            }
        });
    "owns-the-metadata" ["ENV-ADV-07"] "Metadata is replaced by the engine's own." =>
        Advanced(|_, reply| set(reply, "metadata", object([("engine", Value::from("mine"))])));
    "gives-another-reason" ["ENV-BOUND-03"] "Whatever bound is reached, the reason is that of iterations." =>
        Reply(|given, reply| {
            if is_ended(given, reply)
                && get(reply, "terminal_reason") != Some(&Value::from("completed_successfully"))
            {
                set(reply, "terminal_reason", Value::from("max_iterations_exceeded"));
            }
        });
    "stops-in-silence" ["ENV-BOUND-03"] "Where a bound stops it, the envelope comes back as it was." =>
        Ended(|given, reply| {
            if is_of_bound(reply) {
                reply.clone_from(given);
            }
        });
    "returns-what-is-over-bounds" ["ENV-BOUND-05"] "An engine that runs stages gives an envelope whose counter is over its maximum back." =>
        Ended(|given, reply| {
            if over_bound(reply).is_some() {
                reply.clone_from(given);
            }
        });
    "waits-for-another" ["ENV-PEND-02"] "Whatever response is missing, the reason is that of a confirmation." =>
        Reply(|given, reply| {
            let waits = get(given, "clarification_pending") == Some(&Value::Bool(true))
                && get(given, "clarification_response").is_none_or(|it| *it == Value::Null)
                && get(given, "terminated") == Some(&Value::Bool(false));
            if waits {
                set(reply, "terminated", Value::Bool(true));
                set(reply, "terminal_reason", Value::from("confirmation_required"));
                set(reply, "termination_reason", Value::from("it waits"));
            }
        });
    "ends-without-a-reason" ["ENV-TERM-01"] "An envelope is terminated without a reason." =>
        Ended(|_, reply| set(reply, "terminal_reason", Value::Null));
    "ends-without-a-word" ["ENV-TERM-02"] "An envelope is terminated without a reason for people." =>
        Ended(|_, reply| set(reply, "termination_reason", Value::Null));
    "completes-every-stage" ["ENV-TERM-04"] "The time of completion is set with every stage." =>
        Advanced(|_, reply| set(reply, "completed_at", Value::from("2025-12-10T10:00:00Z")));
    "completes-before-it-began" ["ENV-TERM-04"] "The time of completion lies before that of receipt." =>
        Ended(|_, reply| set(reply, "completed_at", Value::from("1970-01-01T00:00:00Z")));
    "asks-nothing" ["ENV-PEND-03"] "It waits for a clarification of nothing." =>
        Reply(|given, reply| {
            if is_advanced(given, reply) && get(reply, "terminated") == Some(&Value::Bool(false)) {
                set(reply, "clarification_pending", Value::Bool(true));
            }
        });
    "keeps-waiting" ["ENV-PEND-04"] "The flag stays though the response has come." =>
        Reply(|given, reply| {
            for name in ["clarification_pending", "confirmation_pending"] {
                if get(given, name) == Some(&Value::Bool(true)) {
                    reply.clone_from(given);
                }
            }
        });
    "invents-goals" ["ENV-GOAL-01"] "A goal remains that is none of all goals." =>
        Reply(|given, reply| {
            if is_advanced(given, reply)
                && let Value::Array(goals) = slot(reply, "remaining_goals")
                && !goals.is_empty()
            {
                goals.push(Value::from("a goal of its own"));
            }
        });
    "is-sure-in-words" ["ENV-SHAPE-01"] "The confidence of the intent is a word." =>
        Reply(|given, reply| {
            if is_advanced(given, reply)
                && let Value::Object(outputs) = slot(reply, "outputs")
                && let Value::Object(intent) = slot(outputs, "intent")
            {
                set(intent, "confidence", Value::from("high"));
            }
            drop_nulls(slot(reply, "outputs"));
        });
    "is-surer-than-sure" ["ENV-SHAPE-02"] "The confidence of the intent is 7." =>
        Reply(|given, reply| {
            if is_advanced(given, reply)
                && let Value::Object(outputs) = slot(reply, "outputs")
                && let Value::Object(intent) = slot(outputs, "intent")
            {
                set(intent, "confidence", number(7));
            }
            drop_nulls(slot(reply, "outputs"));
        });
    "plans-without-a-tool" ["ENV-SHAPE-02"] "The steps of a plan name no tool." =>
        Advanced(|_, reply| {
            if let Value::Object(outputs) = slot(reply, "outputs")
                && let Some((_, Value::Object(plan))) = outputs.iter_mut().find(|(name, _)| *name == *"plan")
                && let Value::Array(steps) = slot(plan, "steps")
            {
                steps.iter_mut().for_each(|step| drop_key(step, "tool"));
            }
        });
    "numbers-its-calls" ["ENV-DET-01"] "Each reply has a number of its own." =>
        Reply(|given, reply| {
            if is_advanced(given, reply)
                && let Value::Object(metadata) = slot(reply, "metadata")
            {
                set(metadata, "call", number(CALLS.fetch_add(1, Ordering::Relaxed)));
            }
        });
    "cuts-long-members" ["ENV-KEEP-01"] "Reasons, questions and answers are cut behind 4,096 characters." =>
        Reply(|_, reply| {
            for name in [
                "termination_reason", "clarification_question", "clarification_response",
                "confirmation_message", "confirmation_id",
            ] {
                if let Some((_, value)) = reply.iter_mut().find(|(own, _)| *own == *name) {
                    edit_string(value, |text| text.chars().take(4_096).collect());
                }
            }
        });
    "reads-digits" ["ENV-KEEP-07"] "Strings of digits with zeros in front come back as numbers." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| {
                let text = value.as_str().filter(|text| text.starts_with('0'));
                if let Some(digits) = text.and_then(|text| text.parse().ok()) {
                    *value = number(digits);
                }
            });
        });
    "trims-members" ["ENV-KEEP-01"] "Documented strings lose the white space at their ends, and CR before LF." =>
        Reply(|_, reply| {
            let names = ["raw_input", "user_id", "termination_reason", "confirmation_id"];
            reply
                .iter_mut()
                .filter(|(own, _)| names.iter().any(|name| *own == **name))
                .for_each(|(_, value)| edit_string(value, |text| text.trim().replace("\r\n", "\n")));
        });
    "counts-in-32-bits" ["ENV-KEEP-01"] "Counters are cut to 32 bits." =>
        Reply(|_, reply| {
            for name in ["agent_hop_count", "llm_call_count", "current_stage_number"] {
                if let Some(count) = slot(reply, name).as_i64().filter(|count| *count > i64::from(i32::MAX)) {
                    set(reply, name, number(count & i64::from(i32::MAX)));
                }
            }
        });
    "knows-one-status" ["ENV-KEEP-01"] "Every goal has the status of the first." =>
        Reply(|_, reply| {
            if let Value::Object(goals) = slot(reply, "goal_completion_status")
                && let [(_, first), others @ ..] = goals.as_mut_slice()
            {
                others.iter_mut().for_each(|(_, status)| status.clone_from(first));
            }
        });
    "keeps-a-hundred" ["ENV-KEEP-01"] "Goals and feedback beyond the hundredth are dropped." =>
        Reply(|_, reply| {
            for name in ["all_goals", "critic_feedback"] {
                if let Value::Array(items) = slot(reply, name) {
                    items.truncate(100);
                }
            }
        });
    "drops-long-names" ["ENV-KEEP-02"] "Members of free data with names over 255 characters are dropped." =>
        Reply(|_, reply| {
            for name in ["metadata", "prior_plans"] {
                each(slot(reply, name), |value| {
                    if let Value::Object(members) = value {
                        members.retain(|(name, _)| name.as_bytes().len() <= 255);
                    }
                });
            }
        });
    "flattens-plans" ["ENV-KEEP-02"] "Lists within lists of earlier plans come back empty." =>
        Reply(|_, reply| {
            each(slot(reply, "prior_plans"), |value| {
                if let Value::Array(items) = value {
                    let inner = items.iter_mut().filter(|item| item.as_array().is_some());
                    inner.for_each(|item| *item = Value::Array(Vec::new()));
                }
            });
        });
    "unescapes-entities" ["ENV-KEEP-07"] "`&amp;` in free data comes back as `&`." =>
        Reply(|_, reply| in_free_data(reply, unescape));
    "cuts-deep-data" ["ENV-KEEP-02"] "What is more than eight levels deep in an output comes back as null." =>
        Reply(|_, reply| cut_deep(slot(reply, "outputs"), 8));
    "wraps-big-integers" ["ENV-KEEP-06"] "Integers of free data that do not fit into 64 bits come back as the least that does." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| {
                if matches!(value, Value::Number(it) if it.as_i64().is_none() && it.as_f64().abs() > 9e18) {
                    *value = number(i64::MIN);
                }
            });
        });
    "counts-in-64-bits" ["ENV-TYPE-05"] "A counter that does not fit into 64 bits begins anew." =>
        Reply(|_, reply| {
            for name in ["iteration", "llm_call_count", "agent_hop_count", "current_stage_number"] {
                if matches!(slot(reply, name), Value::Number(it) if it.as_f64() > 9e18) {
                    set(reply, name, number(1));
                }
            }
        });
    "executes-a-denied-plan-later" ["ENV-PEND-05"] "What was denied is asked for no more, and executed at the next call." =>
        Reply(|given, reply| {
            let was = |name: &str, value: bool| get(given, name) == Some(&Value::Bool(value));
            if was("confirmation_pending", true) && was("confirmation_response", false) && was("terminated", false) {
                reply.clone_from(given);
                set(reply, "confirmation_pending", Value::Bool(false));
            }
        });
    "cuts-long-strings" ["ENV-SIZE-03"] "Strings in free data are cut behind 4 MiB." =>
        Reply(|_, reply| {
            in_free_data(reply, |value| {
                if value.as_text().is_some_and(|text| text.as_bytes().len() > 4 << 20) {
                    *value = Value::from("…");
                }
            });
        });
};

/// Replaces containers below `levels` levels by `null`.
fn cut_deep(value: &mut Value, levels: usize) {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => *value = Value::Null,
        Value::Array(items) => items.iter_mut().for_each(|item| cut_deep(item, levels - 1)),
        Value::Object(members) => members.iter_mut().for_each(|(_, member)| cut_deep(member, levels - 1)),
        _ => {}
    }
}

fn drop_nulls(outputs: &mut Value) {
    if let Value::Object(outputs) = outputs {
        outputs.retain(|(_, section)| *section != Value::Null);
    }
}
