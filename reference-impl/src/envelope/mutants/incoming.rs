//! Mutants that accept input they should refuse, or refuse valid input.

use super::super::{Members, get, set, slot};
use super::Mutant;
use super::edit::Edit::{Both, Coerces, CoercesInStage, Given, Text};
use crate::json::{Policy, Value};
use crate::mutant::Seam;
use crate::mutant::text::{first_line, has, swap, swap_all};

/// Mutants that replace an invalid value of a member by its default.
macro_rules! coerces {
    ($($clause:literal $name:literal),* $(,)?) => {
        &[$(Mutant::new(
            concat!("coerces-", $name),
            &[$clause],
            concat!("What `", $name, "` cannot be is taken for its default."),
            Seam::Wire(Coerces($name)),
        )),*]
    };
}

/// Makes an envelope invalid, so that the engine refuses it.
fn refuse(envelope: &mut Members) {
    set(envelope, "terminated", Value::from("no"));
}

/// Returns true if a response has come for which an envelope waits.
fn is_answered(envelope: &Members) -> bool {
    [("clarification_pending", "clarification_response"), ("confirmation_pending", "confirmation_response")]
        .into_iter()
        .any(|(pending, response)| {
            is(envelope, pending, |it| *it == Value::Bool(true))
                && is(envelope, response, |it| *it != Value::Null && *it != Value::Bool(false))
        })
}

fn is_denied_beside_an_answer(envelope: &Members) -> bool {
    is_answered(envelope) && is(envelope, "confirmation_response", |it| *it == Value::Bool(false))
}

fn is(envelope: &Members, name: &str, test: fn(&Value) -> bool) -> bool {
    get(envelope, name).is_some_and(test)
}

fn lower_case(envelope: &mut Members) {
    edit_ids(envelope, |id| id.to_lowercase());
}

fn edit_ids(envelope: &mut Members, edit: fn(&str) -> String) {
    for name in ["envelope_id", "request_id", "session_id"] {
        if let Some(id) = get(envelope, name).and_then(Value::as_str).map(edit) {
            set(envelope, name, Value::from(id.as_str()));
        }
    }
}

const TIMES: [&str; 2] = ["received_at", "completed_at"];

fn edit_times(envelope: &mut Members, edit: fn(&str) -> Option<String>) {
    for name in TIMES {
        if let Some(time) = get(envelope, name).and_then(Value::as_str).map(edit) {
            match time {
                Some(time) => set(envelope, name, Value::from(time.as_str())),
                None => envelope.retain(|(key, _)| *key != *name),
            }
        }
    }
}

const NAIVE: usize = "2025-12-10T10:00:00".len();

/// Text after the first object, if it begins another.
fn behind_first(text: &[u8]) -> Option<Vec<u8>> {
    let error = Value::parse(text, 256, &Policy::default()).err()?;
    let rest = text.get(error.at..)?;
    rest.starts_with(b"{").then(|| rest.to_vec())
}

const COERCING: &[Mutant] = coerces! {
    "ENV-PROP-01" "envelope_id", "ENV-PROP-02" "request_id", "ENV-PROP-03" "user_id", "ENV-PROP-04" "session_id",
    "ENV-PROP-05" "raw_input", "ENV-PROP-06" "received_at", "ENV-PROP-07" "outputs", "ENV-PROP-08" "current_stage",
    "ENV-PROP-09" "stage_order", "ENV-PROP-10" "iteration", "ENV-PROP-11" "max_iterations",
    "ENV-PROP-12" "llm_call_count", "ENV-PROP-13" "max_llm_calls", "ENV-PROP-14" "agent_hop_count",
    "ENV-PROP-15" "max_agent_hops", "ENV-PROP-16" "terminal_reason", "ENV-PROP-17" "terminated",
    "ENV-PROP-18" "termination_reason", "ENV-PROP-19" "clarification_pending", "ENV-PROP-20" "clarification_question",
    "ENV-PROP-21" "clarification_response", "ENV-PROP-22" "confirmation_pending", "ENV-PROP-23" "confirmation_id",
    "ENV-PROP-24" "confirmation_message", "ENV-PROP-25" "confirmation_response", "ENV-PROP-26" "completed_stages",
    "ENV-PROP-27" "current_stage_number", "ENV-PROP-28" "max_stages", "ENV-PROP-29" "all_goals",
    "ENV-PROP-30" "remaining_goals", "ENV-PROP-31" "goal_completion_status", "ENV-PROP-32" "prior_plans",
    "ENV-PROP-33" "critic_feedback", "ENV-PROP-34" "errors", "ENV-PROP-35" "completed_at", "ENV-PROP-36" "metadata",
};

const READING: &[Mutant] = table! {
    "coerces-stage-number" ["ENV-STAGE-01"] "A stage number that is no integer is dropped." =>
        CoercesInStage("stage_number");
    "coerces-satisfied-goals" ["ENV-STAGE-02"] "Satisfied goals that are no list of strings are taken for none." =>
        CoercesInStage("satisfied_goals");
    "coerces-summary" ["ENV-STAGE-03"] "A summary that is no object is taken for an empty one." =>
        CoercesInStage("summary");
    "coerces-plan-id" ["ENV-STAGE-04"] "A plan id that is no string is taken for null." =>
        CoercesInStage("plan_id");
    "reads-one-line" ["ENV-FRAME-02"] "Of several lines only the first that is not blank is read." =>
        Text(|text| {
            let lines = text.split(|byte| *byte == b'\n');
            lines.into_iter().find(|line| !line.trim_ascii().is_empty()).unwrap_or_default().to_vec()
        });
    "drops-halves" ["ENV-JSON-06"] "Half of a surrogate pair is dropped." =>
        Text(|text| swap_all(&text, "\\ud800", ""));
    "takes-the-second-object" ["ENV-FRAME-04"] "Of two objects the second is processed." =>
        Text(|text| behind_first(&text).unwrap_or(text));
    "lenient-json" ["ENV-JSON-01"] "A comma in front of a closing brace is passed over." =>
        Text(|text| swap(&swap(&text, ",}", "}"), ",]", "]"));
    "takes-numbers-for-null" ["ENV-JSON-12"] "A number beyond a double is taken for null." =>
        Text(|text| swap(&text, "1e400", "null"));
    "replaces-what-is-no-utf8" ["ENV-JSON-02"] "Bytes that are no UTF-8 become U+FFFD." =>
        Text(|text| String::from_utf8_lossy(&text).into_owned().into_bytes());
    "unwraps-a-list" ["ENV-JSON-10"] "A list of one envelope is taken for the envelope." =>
        Text(|text| match text.trim_ascii() {
            [b'[', inner @ .., b']'] => inner.to_vec(),
            _ => text,
        });
    "takes-escapes-for-text" ["ENV-JSON-11"] "Escapes in strings are not decoded." =>
        Text(|text| String::from_utf8_lossy(&text).replace("\\u", "\\\\u").into_bytes());
    "needs-an-order-of-keys" ["ENV-JSON-11"] "Of an envelope that does not begin with its id no counter is read." =>
        Given(|envelope| {
            if envelope.first().is_some_and(|(name, _)| *name != *"envelope_id") {
                envelope.retain(|(name, _)| *name != *"agent_hop_count");
            }
        });
    "needs-bounds" ["ENV-ACC-01", "ENV-FRAME-01"] "An envelope without counters is refused." =>
        Given(|envelope| {
            if get(envelope, "iteration").is_none() {
                refuse(envelope);
            }
        });
    "needs-goals-with-stages" ["ENV-ACC-02"] "Completed stages without the statuses of goals are refused." =>
        Given(|envelope| {
            if get(envelope, "completed_stages").is_some()
                && get(envelope, "goal_completion_status").is_none()
            {
                refuse(envelope);
            }
        });
    "starts-anew" ["ENV-ACC-06"] "Where a required member is missing, outputs are emptied." =>
        Given(|envelope| {
            if get(envelope, "user_id").is_none() {
                set(envelope, "outputs", Value::Object(Vec::new()));
            }
        });
    "needs-a-known-stage" ["ENV-ACC-07"] "A current stage outside the pipeline is refused." =>
        Given(|envelope| {
            let known = |value: &Value| {
                value.as_str().is_some_and(|stage| {
                    ["start", "end"].contains(&stage) || super::super::agents::AGENTS.contains(&stage)
                })
            };
            if get(envelope, "current_stage").is_some_and(|stage| !known(stage)) {
                refuse(envelope);
            }
        });
    "names-nobody" ["ENV-KEEP-01"] "An empty user id becomes that of the anonymous user." =>
        Given(|envelope| {
            if is(envelope, "user_id", |user| *user == Value::from("")) {
                set(envelope, "user_id", Value::from("anonymous"));
            }
        });
    "knows-six-agents" ["ENV-ACC-08"] "Outputs of an unknown agent are refused." =>
        Given(|envelope| {
            let known = |name: &str| super::super::agents::AGENTS.contains(&name);
            let outputs = get(envelope, "outputs").and_then(Value::as_object).unwrap_or_default();
            if !outputs.iter().all(|(name, _)| name.as_str().is_some_and(known)) {
                refuse(envelope);
            }
        });
    "needs-whole-errors" ["ENV-ACC-09"] "An error record without an agent is refused." =>
        Given(|envelope| {
            let errors = get(envelope, "errors").and_then(Value::as_array).unwrap_or_default();
            if errors.iter().any(|error| error.get("agent").is_none()) {
                refuse(envelope);
            }
        });
    "knows-three-verdicts" ["ENV-ACC-09"] "A verdict of the critic that is none of three is refused." =>
        Given(|envelope| {
            let verdict = get(envelope, "outputs").and_then(|it| it.get("critic")?.get("verdict")?.as_str());
            if verdict.is_some_and(|it| !["approved", "reintent", "next_stage"].contains(&it)) {
                refuse(envelope);
            }
        });
    "needs-a-pattern-of-confirmations" ["ENV-ACC-12"] "A confirmation id of another form than an id of the envelope is refused." =>
        Given(|envelope| {
            if get(envelope, "confirmation_id").and_then(Value::as_str).is_some_and(|id| id.len() < 20) {
                refuse(envelope);
            }
        });
    "takes-upper-case-ids" ["ENV-ID-01"] "Ids in upper case are lowered." =>
        Given(lower_case);
    "cuts-long-ids" ["ENV-ID-01"] "What an id has beyond 16 digits is cut." =>
        Given(|envelope| {
            edit_ids(envelope, |id| match id.split_once('_') {
                Some((prefix, digits)) => format!("{prefix}_{}", digits.chars().take(16).collect::<String>()),
                None => id.to_owned(),
            });
        });
    "takes-a-line-feed-behind-ids" ["ENV-ID-02"] "A line feed behind an id is passed over, as `$` of many engines does." =>
        Given(|envelope| edit_ids(envelope, |id| id.strip_suffix('\n').unwrap_or(id).to_owned()));
    "needs-few-digits" ["ENV-TIME-01"] "A time with more than six digits behind the second is refused." =>
        Given(|envelope| {
            let digits = |time: &Value| {
                let fraction = time.as_str().and_then(|time| time.split_once('.'));
                fraction.is_some_and(|(_, it)| it.bytes().take_while(u8::is_ascii_digit).count() > 6)
            };
            if TIMES.iter().any(|name| get(envelope, name).is_some_and(digits)) {
                refuse(envelope);
            }
        });
    "refuses-lower-case-times" ["ENV-TIME-02"] "A lower-case `t` or `z` in a time is refused." =>
        Given(|envelope| edit_times(envelope, |time| Some(time.replace(['t', 'z'], "?"))));
    "takes-naive-times" ["ENV-TIME-05"] "A time without an offset is taken for one in UTC." =>
        Given(|envelope| {
            edit_times(envelope, |time| {
                Some(if time.len() == NAIVE { format!("{time}Z") } else { time.to_owned() })
            });
        });
    "gives-naive-times-back" ["ENV-TIME-10"] "A time without an offset is taken, and comes back without one." =>
        Both(
            |envelope| {
                edit_times(envelope, |time| {
                    Some(if time.len() == NAIVE { format!("{time}Z") } else { time.to_owned() })
                });
            },
            |given, reply| {
                let naive = get(given, "received_at")
                    .filter(|time| time.as_str().is_some_and(|time| time.len() == NAIVE));
                if let Some(naive) = naive {
                    set(reply, "received_at", naive.clone());
                }
            },
        );
    "forgets-impossible-times" ["ENV-TIME-06"] "An impossible time is taken for none." =>
        Given(|envelope| {
            edit_times(envelope, |time| super::super::datetime::read(time).map(|_| time.to_owned()));
        });
    "takes-a-date-alone" ["ENV-TIME-06"] "A date alone is its midnight." =>
        Given(|envelope| {
            edit_times(envelope, |time| {
                Some(if time.len() == 10 { format!("{time}T00:00:00Z") } else { time.to_owned() })
            });
        });
    "takes-two-letters" ["ENV-TIME-06"] "A second letter behind a time is passed over." =>
        Given(|envelope| edit_times(envelope, |time| Some(time.replace("ZZ", "Z"))));
    "takes-iso-8601" ["ENV-TIME-07"] "A comma stands for the point of a time, and a minute for its first second." =>
        Given(|envelope| edit_times(envelope, |time| Some(time.replace(',', "."))));
    "needs-plain-integers" ["ENV-TYPE-02"] "An integer with a point or an exponent is refused." =>
        Text(|text| match has(&text, "\"iteration\":1.0") || has(&text, "\"iteration\":1e0") {
            true => b"{}".to_vec(),
            false => text,
        });
    "refuses-null-lists" ["ENV-TYPE-03"] "`null` for a list or a map is refused." =>
        Given(|envelope| {
            let lists = ["errors", "outputs", "metadata", "all_goals", "stage_order", "prior_plans"];
            if lists.iter().any(|name| get(envelope, name) == Some(&Value::Null)) {
                refuse(envelope);
            }
        });
    "takes-ids-in-any-case" ["ENV-KEEP-04"] "`Envelope_Id` counts as `envelope_id`." =>
        Given(|envelope| {
            if let Some(id) = get(envelope, "Envelope_Id").cloned() {
                set(envelope, "envelope_id", id);
            }
        });
    "takes-other-case-for-missing" ["ENV-KEEP-04"] "Where an id is missing, a member that is called so in another case counts." =>
        Given(|envelope| {
            for name in ["envelope_id", "request_id", "session_id"] {
                let is_so = |key: &str| key.eq_ignore_ascii_case(name);
                let other = envelope.iter().find(|(key, _)| key.as_str().is_some_and(is_so));
                if let Some((_, id)) = other.cloned().filter(|_| get(envelope, name).is_none()) {
                    set(envelope, name, id);
                }
            }
        });
    "loses-the-sign-of-half-hours" ["ENV-KEEP-01"] "An offset of `-00:30` is read as `+00:30`." =>
        Given(|envelope| edit_times(envelope, |time| Some(time.replace("-00:", "+00:"))));
    "overlooks-small-bounds" ["ENV-BOUND-02"] "A maximum of less than five is not looked at before it is passed." =>
        Both(
            |envelope| {
                let small = get(envelope, "max_agent_hops").and_then(Value::as_i64).is_some_and(|most| most < 5);
                if small && super::super::validate::over_bound(envelope).is_none() {
                    raise_bounds(envelope);
                }
            },
            restore_bounds,
        );
    "goes-past-bounds" ["ENV-BOUND-01"] "No bound stops it." =>
        Both(raise_bounds, restore_bounds);
    "knows-the-usual-bounds-alone" ["ENV-BOUND-02"] "Whatever bounds the envelope carries, the defaults count." =>
        Both(
            |envelope| {
                for name in ["max_iterations", "max_llm_calls", "max_agent_hops"] {
                    envelope.retain(|(key, _)| *key != *name);
                }
            },
            restore_bounds,
        );
    "ends-beyond-bounds-with-a-stage" ["ENV-BOUND-04"] "An envelope whose counter is over its maximum is ended behind one more stage." =>
        Both(
            |envelope| {
                if super::super::validate::over_bound(envelope).is_some() {
                    raise_bounds(envelope);
                }
            },
            |given, reply| {
                restore_bounds(given, reply);
                if let Some(reason) = super::super::validate::over_bound(given) {
                    set(reply, "terminated", Value::Bool(true));
                    set(reply, "terminal_reason", Value::from(reason));
                    set(reply, "termination_reason", Value::from(reason));
                }
            },
        );
    "goes-on-beyond-bounds" ["ENV-BOUND-04"] "An envelope whose counter is over its maximum is advanced all the same." =>
        Both(
            |envelope| {
                if super::super::validate::over_bound(envelope).is_some() {
                    raise_bounds(envelope);
                }
            },
            restore_bounds,
        );
    "wakes-the-terminated" ["ENV-TERM-06"] "A terminated envelope is processed further." =>
        Given(|envelope| {
            set(envelope, "terminated", Value::Bool(false));
            for name in ["terminal_reason", "termination_reason", "completed_at"] {
                set(envelope, name, Value::Null);
            }
        });
    "resumes-at-a-response" ["ENV-TERM-06"] "An envelope that was terminated for want of a response goes on once it has one." =>
        Given(|envelope| {
            let has_one = ["clarification_response", "confirmation_response"]
                .iter()
                .any(|name| is(envelope, name, |it| *it != Value::Null));
            let is_waiting = is(envelope, "terminal_reason", |it| it.as_str().is_some_and(|it| it.ends_with("_required")));
            if has_one && is_waiting {
                set(envelope, "terminated", Value::Bool(false));
                set(envelope, "terminal_reason", Value::Null);
            }
        });
    "waits-for-one-response" ["ENV-PEND-02"] "Of two responses one is enough." =>
        Given(|envelope| {
            for (one, other) in [("clarification", "confirmation"), ("confirmation", "clarification")] {
                let has_come = is(envelope, &format!("{one}_response"), |it| *it != Value::Null);
                if has_come && is(envelope, &format!("{one}_pending"), |it| *it == Value::Bool(true)) {
                    set(envelope, &format!("{other}_pending"), Value::Bool(false));
                }
            }
        });
    "hears-one-answer" ["ENV-PEND-05"] "A denied confirmation counts as given where a clarification was answered beside it." =>
        Both(
            |envelope| {
                if is_denied_beside_an_answer(envelope) {
                    set(envelope, "confirmation_response", Value::Bool(true));
                }
            },
            |given, reply| {
                if is_denied_beside_an_answer(given) {
                    set(reply, "confirmation_response", Value::Bool(false));
                }
            },
        );
    "resumes-beyond-bounds" ["ENV-BOUND-04"] "An envelope that gets its response goes on, though a counter is over its maximum." =>
        Both(
            |envelope| {
                if is_answered(envelope) {
                    raise_bounds(envelope);
                }
            },
            |given, reply| {
                if is_answered(given) {
                    restore_bounds(given, reply);
                }
            },
        );
    "splits-at-unicode-lines" ["ENV-KEEP-07"] "Of several lines, as Unicode has them, only the first is read." =>
        Text(|text| first_line(&text));
    "unwraps-an-envelope" ["ENV-ACC-04"] "An envelope in an object of its own is taken out of it." =>
        Given(|envelope| {
            let inner = envelope.iter().find_map(|(_, value)| Some(value.as_object()?.to_vec()));
            if let Some(inner) = inner.filter(|inner| envelope.len() == 1 && get(inner, "outputs").is_some()) {
                *envelope = inner;
            }
        });
    "reads-false-in-text" ["ENV-PROP-17"] "\"false\" counts as false." =>
        Given(|envelope| {
            if is(envelope, "terminated", |it| *it == Value::from("false")) {
                set(envelope, "terminated", Value::Bool(false));
            }
        });
    "repairs-words-at-the-end" ["ENV-PROP-16"] "Where it is terminated, an unknown reason is taken for success." =>
        Given(|envelope| {
            let known = crate::envelope::members::find("terminal_reason").map(|row| row.kind);
            let is_known = |word: &str| matches!(known, Some(super::super::members::Kind::OneOf(words)) if words.contains(&word));
            let is_end = is(envelope, "terminated", |it| *it == Value::Bool(true));
            if is_end && get(envelope, "terminal_reason").and_then(Value::as_str).is_some_and(|it| !is_known(it)) {
                set(envelope, "terminal_reason", Value::from("completed_successfully"));
            }
        });
    "knows-nine-reasons" ["ENV-PROP-16"] "The reason of a tool that failed for good is refused." =>
        Given(|envelope| {
            if is(envelope, "terminal_reason", |it| *it == Value::from("tool_failed_fatally")) {
                refuse(envelope);
            }
        });
    "looks-at-first-items" ["ENV-PROP-29"] "Of goals only the first ten are looked at; what is none among the others is dropped." =>
        Given(|envelope| {
            if let Value::Array(goals) = slot(envelope, "all_goals") {
                let mut place = 0;
                goals.retain(|goal| {
                    place += 1;
                    place <= 10 || goal.as_text().is_some()
                });
            }
        });
    "waits-for-nobody" ["ENV-PEND-02"] "An envelope that waits for a response is advanced." =>
        Given(|envelope| {
            for name in ["clarification_pending", "confirmation_pending"] {
                set(envelope, name, Value::Bool(false));
            }
        });
    "ends-while-it-waits-with-a-stage" ["ENV-PEND-02"] "An envelope that waits for a response is ended behind one more stage." =>
        Both(
            |envelope| set(envelope, "clarification_pending", Value::Bool(false)),
            |given, reply| {
                if is(given, "clarification_pending", |it| *it == Value::Bool(true))
                    && get(given, "clarification_response").is_none_or(|it| *it == Value::Null)
                {
                    set(reply, "clarification_pending", Value::Bool(true));
                    set(reply, "terminated", Value::Bool(true));
                    set(reply, "terminal_reason", Value::from("clarification_required"));
                    set(reply, "termination_reason", Value::from("it waits"));
                }
            },
        );
    "takes-a-denial-for-none" ["ENV-PEND-04"] "A denied confirmation counts as none that was given." =>
        Both(
            |envelope| {
                if is(envelope, "confirmation_response", |it| *it == Value::Bool(false)) {
                    set(envelope, "confirmation_response", Value::Null);
                }
            },
            |given, reply| {
                if let Some(response) = get(given, "confirmation_response") {
                    *slot(reply, "confirmation_response") = response.clone();
                }
            },
        );
    "overhears-a-denial" ["ENV-PEND-05"] "A denied confirmation counts as one that was given." =>
        Both(
            |envelope| {
                if is(envelope, "confirmation_response", |it| *it == Value::Bool(false)) {
                    set(envelope, "confirmation_response", Value::Bool(true));
                }
            },
            |given, reply| {
                if let Some(response) = get(given, "confirmation_response") {
                    *slot(reply, "confirmation_response") = response.clone();
                }
            },
        );
};

fn raise_bounds(envelope: &mut Members) {
    for name in ["max_iterations", "max_llm_calls", "max_agent_hops"] {
        set(envelope, name, super::super::number(1_000_000));
    }
}

fn restore_bounds(given: &Members, reply: &mut Members) {
    for (name, usual) in [("max_iterations", 3), ("max_llm_calls", 10), ("max_agent_hops", 21)] {
        set(reply, name, get(given, name).cloned().unwrap_or(super::super::number(usual)));
    }
}

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = &{
    let mut all = [COERCING[0]; COERCING.len() + READING.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < COERCING.len() { COERCING[at] } else { READING[at - COERCING.len()] };
        at += 1;
    }
    all
};
