//! Mutants of the replayer.

mod reran;

use super::memory::{Forgetful, Lingering};
use super::values::{coarse, counted, cut, each, filled, first_page, folded, given_as_object, has, with};
use super::wire::{
    Memory, Rewired, Rewrite, brittle, changed, edit, fragile, member, members, merged_by, merged_deep, put,
    take, text_in, without_nulls,
};
use crate::json::{Error, Policy, Text, Value};
use crate::machine::Machine;
use crate::mutant::{self, Seam, carrier, config, machine, parts};
use crate::policy_driver::{SelectionKind, Sid};
use crate::refusal::Refusal;
use crate::run_log::digest::state_digest;
use crate::run_log::event::{Event, FAILED, Reading};
use crate::run_log::line::{Header, Line, text_of};
use crate::run_log::state::{Item, State};
use crate::run_log::{Choices, Config, CorrectDecisions, Expected, LogFault, Place, Replayer, Rerun, Rules};

/// A replayer that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Box<dyn Rules>, Rewrite, ReplayerFault>;

/// Fault around a correct replayer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayerFault {
    /// It starts a policy process.
    StartsPolicy,
    /// It appends a line to the log.
    ChangesLog,
    /// It accepts an unreadable log.
    TakesNoLog,
    /// It keeps running for some time after its verdict.
    StaysOn,
}

impl Mutant {
    /// The mutant as a machine. If the fault lies around the machine, the machine is correct.
    pub fn machine(&self, config: Config) -> Box<dyn Machine + Send> {
        let right = |_: &Config| -> Box<dyn Rules> { Box::new(CorrectDecisions) };
        let build = |config, rules| -> mutant::Inner { Box::new(Replayer::new(config, rules)) };
        self.build(config, right, build, |machine, rewrite| Box::new(Rewired::new(machine, rewrite)))
    }
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    MUTANTS.iter().find(|mutant| mutant.id == id).copied()
}

/// Creates a mutant that replaces decisions: given methods; or an edit of a line before its payload is read (`read`),
/// of the items of a patch (`items`), or of both values of a comparison (`compared`); or the equality of artifacts
/// (`states`).
macro_rules! decides {
    ($id:literal, $clause:literal, $fault:literal, { $($methods:tt)* }) => {
        parts($id, &[$clause], $fault, |_, rules| {
            #[derive(Debug)]
            struct Careless;
            impl Rules for Careless { $($methods)* }
            *rules = Box::new(Careless);
        })
    };
    ($id:literal, $clause:literal, $fault:literal, read: $change:expr) => {
        decides!($id, $clause, $fault, {
            fn event(&self, line: &Line, reading: Reading) -> Result<Event, Refusal> {
                let change: fn(&Line) -> Line = $change;
                CorrectDecisions.event(&change(line), reading)
            }
        })
    };
    ($id:literal, $clause:literal, $fault:literal, items: $change:expr) => {
        decides!($id, $clause, $fault, {
            fn items(&self, tx_patch: &[Value], choices: &Choices) -> Result<Vec<Item>, Refusal> {
                let change: fn(&[Value]) -> Vec<Value> = $change;
                CorrectDecisions.items(&change(tx_patch), choices)
            }
        })
    };
    ($id:literal, $clause:literal, $fault:literal, compared: $change:expr) => {
        decides!($id, $clause, $fault, {
            fn same(&self, one: &Value, other: &Value) -> bool {
                let change: fn(&Value) -> Value = $change;
                CorrectDecisions.same(&change(one), &change(other))
            }
        })
    };
    ($id:literal, $clause:literal, $fault:literal, states: $same:expr) => {
        decides!($id, $clause, $fault, {
            fn same_state(&self, own: &State, logged: &State) -> bool {
                let same: fn(&Artifact, &Artifact) -> bool = $same;
                own.slots.iter().zip(&logged.slots).all(|(own, logged)| match (own, logged) {
                    (Some(own), Some(logged)) => same(own, logged),
                    (own, logged) => own.is_none() && logged.is_none(),
                })
            }
        })
    };
}

pub(super) use decides;

const fn reads(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    edit: fn(&mut Memory, Vec<u8>) -> Vec<Vec<u8>>,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite::Read(edit)))
}

/// All mutants.
pub const MUTANTS: &[Mutant] = &{
    let mut all = [LOGS[0]; LOGS.len() + reran::MUTANTS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < LOGS.len() { LOGS[at] } else { reran::MUTANTS[at - LOGS.len()] };
        at += 1;
    }
    all
};

/// Mutants that misread a log.
const LOGS: &[Mutant] = &[
    carrier(
        "replay-starts-a-policy",
        &["LOG-RERUN-POLICY"],
        "A policy process is started.",
        ReplayerFault::StartsPolicy,
    ),
    carrier("replay-changes-the-log", &["LOG-RERUN-LOG"], "The log gets a line.", ReplayerFault::ChangesLog),
    carrier(
        "replay-takes-no-log",
        &["LOG-VERDICT-UNREAD"],
        "A log that is missing is accepted.",
        ReplayerFault::TakesNoLog,
    ),
    carrier(
        "replay-stays-on",
        &["LOG-VERDICT-ENDS"],
        "The process ends 4 s behind its verdict.",
        ReplayerFault::StaysOn,
    ),
    // This fault shows only after minutes of waiting. The other mutants are tested meanwhile.
    config(
        "replay-waits-as-long-as-it-is-told",
        &["LOG-RERUN-BOUND"],
        "MACHINA_TOOLHOST_TIMEOUT may be longer than 60 s.",
        |config| {
            if config.limits.toolhost_timeout_ms >= 60_000 {
                config.limits.toolhost_timeout_ms = 1 << 40;
            }
        },
    ),
    reads("replay-holds-the-log", &["LOG-LINE-MEMORY"], "All lines are held to the end.", |memory, line| {
        memory.held.extend_from_slice(&line);
        vec![line]
    }),
    reads(
        "replay-wants-request-ids",
        &["LOG-HEADER-REQUEST"],
        "A request_id of null is refused.",
        |_, line| {
            if has(&line, b"\"request_id\":null") { vec![b"no request\n".to_vec()] } else { vec![line] }
        },
    ),
    reads(
        "replay-skips-other-events",
        &["LOG-LINE-JSON"],
        "A line of an event without a name here is not looked at.",
        |_, line| if has(&line, b"\"menu_built\"") { Vec::new() } else { vec![line] },
    ),
    machine(
        "replay-dies-of-nesting",
        &["LOG-LINE-DEEPER"],
        "A line of many levels ends the process.",
        fragile,
    ),
    mutant::machine(
        "replay-dies-of-halves",
        &["LOG-LINE-HALVES"],
        "A line with half of a surrogate pair ends the process.",
        brittle,
    ),
    decides!("replay-gives-input-as-object", "LOG-RERUN-REQUEST", "input_json is an object.", {
        fn request(&self, rerun: &Rerun) -> Vec<u8> {
            given_as_object(&CorrectDecisions.request(rerun))
        }
    }),
    decides!("replay-compares-short-floats", "LOG-EQUAL-INTEGERS", "Integers are compared as short floats.",
        compared: coarse),
    parts(
        "replay-forgets-at-failures",
        &["LOG-EVENT-FAILED"],
        "A failed tool empties the state.",
        |_, rules| {
            *rules = Box::new(Forgetful::default());
        },
    ),
    parts("replay-goes-on", &["LOG-RERUN-STOPS"], "A failure is told at the end.", |_, rules| {
        *rules = Box::new(Lingering::default());
    }),
    reads(
        "replay-fills-run-ids",
        &["LOG-LINE-JSON"],
        "A line without run_id belongs to the run of the line before.",
        |memory, line| {
            let before = Value::parse(&memory.last, 128, &Policy::default()).ok();
            match before.as_ref().and_then(|before| before.get("run_id")) {
                Some(run) if !has(&line, b"\"run_id\"") => {
                    changed(line, "", |whole, _| put(whole, "run_id", run.clone()))
                }
                _ => vec![line],
            }
        },
    ),
    decides!("replay-needs-no-start", "LOG-ORDER-LINES", "A log may lack its run_started.", {
        fn follows(&self, expected: &Expected, event: &Event, choices: &Choices) -> Result<(), LogFault> {
            match expected {
                Expected::Start => Ok(()),
                _ => CorrectDecisions.follows(expected, event, choices),
            }
        }
    }),
    decides!("replay-starts-empty", "LOG-EVENT-STATE", "The state at the start is passed over.",
        read: |line| with(line, "run_started", |payload| take(payload, "state"))),
    decides!("replay-takes-any-kind", "LOG-EVENT-KIND", "A kind that is not known picks nothing.",
    read: |line| {
        let known = ["PICK", "ASK_SUP", "NOOP", "INVALID"];
        with(line, "selector_chosen", |payload| {
            if !known.contains(&text_in(payload, "kind")) {
                put(payload, "kind", "NOOP".into());
            }
        })
    }),
    decides!("replay-needs-no-raw", "LOG-EVENT-CHOSEN", "A selection may lack its raw.",
        read: |line| filled(line, "selector_chosen", "raw", "r".into())),
    decides!("replay-needs-no-tx-patch", "LOG-EVENT-PATCH", "A tool_ok may lack its tx_patch.",
        read: |line| filled(line, "tool_ok", "tx_patch", Value::Array(Vec::new()))),
    decides!("replay-believes-digests", "LOG-PATCH-CHANGED", "No digest is looked at.", {
        fn same_digest(&self, _: &State, _: &Text, _: bool, _: &Choices) -> bool {
            true
        }
    }),
    decides!("replay-cuts-texts", "LOG-EQUAL-CHARS", "A text ends at U+0000.",
        compared: cut),
    reads("replay-wants-lf-alone", &["LOG-LINE-CR"], "CR before LF is refused.", |_, line| {
        if line.ends_with(b"\r\n") { vec![b"CR\n".to_vec()] } else { vec![line] }
    }),
    decides!("replay-takes-any-run", "LOG-HEADER-RUN", "Lines of another run count.", {
        fn header(&self, _: Option<&Header>, own: &Header, choices: &Choices) -> Result<(), LogFault> {
            CorrectDecisions.header(None, own, choices)
        }
    }),
    decides!("replay-wants-dashes", "LOG-HEADER-FORM", "A run_id of 32 digits is refused.", {
        fn header(&self, first: Option<&Header>, own: &Header, choices: &Choices) -> Result<(), LogFault> {
            if own.run_id.as_bytes().len() == 32 {
                Err(LogFault::Header("no UUID"))
            } else {
                CorrectDecisions.header(first, own, choices)
            }
        }
    }),
    reads("replay-wants-versions", &["LOG-HEADER-DEFAULT"], "A line needs a spec_version.", |_, line| {
        if has(&line, b"\"spec_version\"") { vec![line] } else { vec![b"no version\n".to_vec()] }
    }),
    reads(
        "replay-wants-known-members",
        &["LOG-LINE-MEMBERS"],
        "A member that is not named is refused.",
        |_, line| {
            if has(&line, b"\"ts\"") { vec![b"ts\n".to_vec()] } else { vec![line] }
        },
    ),
    reads("replay-mends-utf8", &["LOG-LINE-JSON"], "Bytes that are no UTF-8 are replaced.", |_, line| {
        vec![String::from_utf8_lossy(&line).into_owned().into_bytes()]
    }),
    reads(
        "replay-skips-what-is-no-json",
        &["LOG-LINE-JSON"],
        "A line that is no JSON is passed over.",
        |_, line| {
            if Value::parse(&line, 128, &Policy::default()).is_ok() { vec![line] } else { Vec::new() }
        },
    ),
    reads(
        "replay-reads-to-the-brace",
        &["LOG-LINE-JSON"],
        "What follows the last brace does not count.",
        |_, line| {
            let end = memchr::memrchr(b'}', &line).map_or(line.len(), |end| end + 1);
            vec![[&line[..end], b"\n"].concat()]
        },
    ),
    config("replay-takes-small-lines", &["LOG-LINE-SIZE"], "A line has at most 1 MB.", |config| {
        config.limits.stdin_bytes_max = 1 << 20;
    }),
    config("replay-is-shallow", &["LOG-LINE-DEPTH"], "At most 32 levels are read.", |config| {
        config.limits.nesting_max = 32;
    }),
    decides!("replay-counts-no-steps", "LOG-STEP-NUMBER", "A step may have any number.", {
        fn step(&self, _: &Place, _: &Event, _: u64) -> Result<(), LogFault> {
            Ok(())
        }
    }),
    decides!(
        "replay-lets-steps-lag",
        "LOG-STEP-NUMBER",
        "A selection may have the step of the one before.",
        {
            fn step(&self, place: &Place, event: &Event, step: u64) -> Result<(), LogFault> {
                match event {
                    Event::Chosen(chosen)
                        if !matches!(chosen.kind, SelectionKind::Pick(_)) && step == place.last_step =>
                    {
                        Ok(())
                    }
                    _ => CorrectDecisions.step(place, event, step),
                }
            }
        }
    ),
    decides!("replay-ends-at-any-step", "LOG-STEP-END", "run_finished may have any number.", {
        fn step(&self, place: &Place, event: &Event, step: u64) -> Result<(), LogFault> {
            if matches!(event, Event::Finished { .. }) {
                Ok(())
            } else {
                CorrectDecisions.step(place, event, step)
            }
        }
    }),
    decides!("replay-knows-six-events", "LOG-ORDER-OTHER", "An event that is not named is refused.", {
        fn follows(&self, expected: &Expected, event: &Event, choices: &Choices) -> Result<(), LogFault> {
            if *event == Event::Other {
                Err(LogFault::Order("unknown"))
            } else {
                CorrectDecisions.follows(expected, event, choices)
            }
        }
    }),
    decides!("replay-needs-no-patched", "LOG-ORDER-PATCHED", "A patch may lack its inputs_patched.", {
        fn follows(&self, expected: &Expected, event: &Event, choices: &Choices) -> Result<(), LogFault> {
            match expected {
                Expected::Pick(Some(_)) if !matches!(event, Event::Patched { .. }) => {
                    CorrectDecisions.follows(&Expected::Tool, event, choices)
                }
                _ => CorrectDecisions.follows(expected, event, choices),
            }
        }
    }),
    decides!("replay-needs-no-tool-event", "LOG-ORDER-TOOL", "A PICK may lack its tool event.", {
        fn follows(&self, expected: &Expected, event: &Event, choices: &Choices) -> Result<(), LogFault> {
            match (expected, event) {
                (Expected::Tool | Expected::Pick(None), Event::Chosen(_) | Event::Finished { .. }) => Ok(()),
                _ => CorrectDecisions.follows(expected, event, choices),
            }
        }
    }),
    decides!("replay-needs-no-end", "LOG-ORDER-END", "A log without run_finished is whole.", {
        fn end(&self, expected: &Expected) -> Result<(), LogFault> {
            if *expected == Expected::Start { CorrectDecisions.end(expected) } else { Ok(()) }
        }
    }),
    decides!("replay-takes-nothing-for-a-log", "LOG-ORDER-EMPTY", "An empty file is a log.", {
        fn end(&self, expected: &Expected) -> Result<(), LogFault> {
            if *expected == Expected::Start { Ok(()) } else { CorrectDecisions.end(expected) }
        }
    }),
    reads(
        "replay-stops-at-the-end",
        &["LOG-ORDER-LAST", "LOG-ORDER-SECOND"],
        "Lines behind run_finished are not read.",
        |memory, line| {
            let seen = memory.seen;
            memory.seen |= has(&line, b"\"run_finished\"");
            if seen { Vec::new() } else { vec![line] }
        },
    ),
    reads(
        "replay-drops-what-stands-twice",
        &["LOG-ORDER-ONCE"],
        "A line like the one before is dropped.",
        |memory, line| {
            if memory.last == line { Vec::new() } else { vec![line] }
        },
    ),
    decides!("replay-reads-no-flag-as-false", "LOG-EVENT-FLAG",
        "A tool_ok without deterministic is not run.",
        read: |line| filled(line, "tool_ok", "deterministic", Value::Bool(false))),
    decides!("replay-needs-no-digest", "LOG-EVENT-DIGEST", "A tool_ok without state_digest is believed.", {
        fn event(&self, line: &Line, reading: Reading) -> Result<Event, Refusal> {
            CorrectDecisions.event(&filled(line, "tool_ok", "state_digest", "none".into()), reading)
        }
        fn same_digest(&self, state: &State, logged: &Text, last: bool, choices: &Choices) -> bool {
            *logged == "none" || CorrectDecisions.same_digest(state, logged, last, choices)
        }
    }),
    decides!("replay-needs-no-reason", "LOG-EVENT-END", "A run may end without a reason.",
        read: |line| filled(line, "run_finished", "reason", "r".into())),
    decides!("replay-needs-no-goal", "LOG-EVENT-START", "A run may begin without a goal.",
        read: |line| filled(line, "run_started", "goal_id", "g".into())),
    decides!("replay-takes-any-status", "LOG-EVENT-STATUS", "A tool_error may have any status.",
        read: |line| with(line, "tool_error", |payload| put(payload, "status", FAILED[0].into()))),
    decides!("replay-takes-any-sid", "LOG-EVENT-SID", "A SID may have any form.",
    read: |line| {
        with(line, "selector_chosen", |payload| {
            let sid = member(payload, "sid").and_then(Value::as_str);
            if sid.is_some_and(|sid| Sid::parse(sid.as_bytes()).is_none()) {
                put(payload, "sid", "SID0000".into());
            }
        })
    }),
    decides!(
        "replay-takes-any-output",
        "LOG-EVENT-OUTPUT",
        "An output may be no JSON where it is not compared.",
        {
            fn event(&self, line: &Line, reading: Reading) -> Result<Event, Refusal> {
                CorrectDecisions.event(line, reading).or_else(|_| {
                    let output = Value::from("{}");
                    CorrectDecisions
                        .event(&with(line, "tool_ok", |payload| put(payload, "output_json", output)), reading)
                })
            }
        }
    ),
    decides!("replay-takes-any-tool", "LOG-EVENT-AID", "The tool event may be that of another tool.", {
        fn same_tool(&self, _: &Text, _: &Text) -> bool {
            true
        }
    }),
    decides!("replay-ignores-the-case-of-tools", "LOG-EVENT-AID", "Aids are compared regardless of case.", {
        fn same_tool(&self, selected: &Text, aid: &Text) -> bool {
            selected.as_bytes().eq_ignore_ascii_case(aid.as_bytes())
        }
    }),
    decides!("replay-trims-sids", "LOG-EVENT-SID", "A SID may have a line feed behind it.",
    read: |line| {
        with(line, "selector_chosen", |payload| {
            if let Some(sid) = text_in(payload, "sid").strip_suffix('\n').map(Value::from) {
                put(payload, "sid", sid);
            }
        })
    }),
    decides!("replay-takes-any-count", "LOG-EVENT-STEPS", "The number of steps is not looked at.", {
        fn same_steps(&self, _: u64, _: u64) -> bool {
            true
        }
    }),
    decides!("replay-takes-any-patch", "LOG-INPUT-SAME", "inputs_patched may have another patch.", {
        fn same_patch(&self, _: &Value, _: &Value) -> bool {
            true
        }
    }),
    decides!("replay-takes-any-inputs", "LOG-INPUT-SHOWN", "The inputs that are shown are not looked at.", {
        fn same_inputs(&self, _: &Value, _: &Value) -> bool {
            true
        }
    }),
    decides!("replay-merges-deep", "LOG-INPUT-SHALLOW", "A patch is merged into the values.", {
        fn merge(&self, inputs: &str, patch: &str, nesting_max: usize) -> Result<String, Error> {
            merged_by(merged_deep, inputs, patch, nesting_max)
        }
    }),
    decides!("replay-takes-null-for-removal", "LOG-INPUT-NULL", "null removes a key.", {
        fn merge(&self, inputs: &str, patch: &str, nesting_max: usize) -> Result<String, Error> {
            let merged = CorrectDecisions.merge(inputs, patch, nesting_max)?;
            merged_by(|merged, _| without_nulls(merged), &merged, "{}", nesting_max)
        }
    }),
    decides!("replay-forgets-inputs", "LOG-INPUT-STAYS", "A patch takes the place of the inputs.", {
        fn merge(&self, _: &str, patch: &str, _: usize) -> Result<String, Error> {
            Ok(patch.to_owned())
        }
        fn same_inputs(&self, _: &Value, _: &Value) -> bool {
            true
        }
    }),
    decides!("replay-applies-backwards", "LOG-PATCH-ORDER", "Items apply from the last to the first.", {
        fn apply(&self, state: &State, items: &[Item], choices: &Choices) -> Result<State, LogFault> {
            let items: Vec<Item> = items.iter().rev().cloned().collect();
            CorrectDecisions.apply(state, &items, choices)
        }
    }),
    decides!("replay-skips-bad-items", "LOG-PATCH-WHOLE", "An invalid item is passed over.", {
        fn items(&self, tx_patch: &[Value], choices: &Choices) -> Result<Vec<Item>, Refusal> {
            Ok(tx_patch.iter().filter_map(|item| Item::read(item, choices).ok()).collect())
        }
    }),
    decides!("replay-takes-other-paths", "LOG-PATCH-PATH", "A path may have zeros before the digit.",
    items: |patch| {
        each(patch, "path", |path| match path.strip_prefix("/slots/0") {
            Some(digit) if !digit.is_empty() => format!("/slots/{digit}"),
            _ => path.to_owned(),
        })
    }),
    decides!("replay-trims-paths", "LOG-PATCH-PATH", "A path may have a line feed behind it.",
        items: |patch| each(patch, "path", |path| path.strip_suffix('\n').unwrap_or(path).to_owned())),
    decides!("replay-counts-true", "LOG-PATCH-VALUE", "A size of true is 1.",
        items: counted),
    decides!("replay-takes-other-ops", "LOG-PATCH-OP", "An op may have capitals.",
        items: |patch| each(patch, "op", str::to_ascii_lowercase)),
    decides!("replay-sets", "LOG-PATCH-OP", "An item may have the op set, which is add.",
        items: |patch| each(patch, "op", |op| if op == "set" { "add" } else { op }.to_owned())),
    decides!("replay-knows-the-last-op", "LOG-PATCH-OP",
    "The last of several items may have any op, which is remove.",
    items: |patch| {
        let Some((last, others @ [_, ..])) = patch.split_last() else { return patch.to_vec() };
        let known = |op: &str| if ["add", "replace"].contains(&op) { op } else { "remove" }.to_owned();
        [others, &each(std::slice::from_ref(last), "op", known)].concat()
    }),
    decides!("replay-fills-artifacts", "LOG-PATCH-VALUE", "An artifact may lack its provenance.",
    items: |patch| {
        let fill = |item: &Value| {
            let mut item = item.clone();
            edit(&mut item, "value", |value| {
                let mut artifact = members(value);
                if member(&artifact, "provenance").is_none() {
                    put(&mut artifact, "provenance", "tool".into());
                }
                *value = Value::Object(artifact);
            });
            item
        };
        patch.iter().map(fill).collect()
    }),
    decides!("replay-removes-with-values", "LOG-PATCH-REMOVE", "remove may have a value.",
    items: |patch| {
        let strip = |item: &Value| {
            let mut members = members(item);
            if item.get("op") == Some(&"remove".into()) {
                take(&mut members, "value");
            }
            Value::Object(members)
        };
        patch.iter().map(strip).collect()
    }),
    decides!("replay-looks-at-the-last-digest", "LOG-DIGEST-MIDDLE", "Only the last digest is looked at.", {
        fn same_digest(&self, state: &State, logged: &Text, last: bool, choices: &Choices) -> bool {
            !last || CorrectDecisions.same_digest(state, logged, last, choices)
        }
    }),
    reads(
        "replay-folds-names",
        &["LOG-LINE-JSON", "LOG-LINE-MEMBERS"],
        "Names of members may have any case.",
        |_, line| match Value::parse(&line, 128, &Policy::default()) {
            Ok(value) => vec![(text_of(&folded(&value)) + "\n").into_bytes()],
            Err(_) => vec![line],
        },
    ),
    reads("replay-reads-steps-as-text", &["LOG-LINE-JSON"], "A step may be a text.", |_, line| {
        changed(line, "", |whole, _| {
            if let Ok(step) = text_in(whole, "step").parse::<i64>() {
                put(whole, "step", Value::Number(step.into()));
            }
        })
    }),
    reads("replay-takes-no-step-for-zero", &["LOG-LINE-JSON"], "A step of null is 0.", |_, line| {
        changed(line, "", |whole, _| {
            if member(whole, "step") == Some(&Value::Null) {
                put(whole, "step", Value::Number(0_i64.into()));
            }
        })
    }),
    decides!("replay-takes-a-thousand-steps", "LOG-VERDICT-OK", "A log has at most 1,000 steps.", {
        fn step(&self, place: &Place, event: &Event, step: u64) -> Result<(), LogFault> {
            if step < 1_000 {
                CorrectDecisions.step(place, event, step)
            } else {
                Err(LogFault::Order("too many steps"))
            }
        }
    }),
    decides!("replay-counts-in-32-bits", "LOG-STEP-NUMBER", "Steps count in their last 32 bits.", {
        fn step(&self, place: &Place, event: &Event, step: u64) -> Result<(), LogFault> {
            CorrectDecisions.step(place, event, step & 0xffff_ffff)
        }
        fn same_steps(&self, selections: u64, steps: u64) -> bool {
            selections == steps & 0xffff_ffff
        }
    }),
    reads("replay-splits-at-separators", &["LOG-VERDICT-OK"], "U+2028 ends a line.", |_, line| {
        let text = String::from_utf8_lossy(&line).into_owned();
        let lines: Vec<&str> = text.trim_end_matches('\n').split('\u{2028}').collect();
        lines.iter().map(|line| format!("{line}\n").into_bytes()).collect()
    }),
    decides!("replay-reads-entities", "LOG-RERUN-INPUT", "`&amp;` in an input is `&`.", {
        fn request(&self, rerun: &Rerun) -> Vec<u8> {
            String::from_utf8_lossy(&CorrectDecisions.request(rerun)).replace("&amp;", "&").into_bytes()
        }
    }),
    decides!("replay-knows-one-status", "LOG-EVENT-STATUS", "A failure has the status TOOL_ERROR.",
    read: |line| with(line, "tool_error", |payload| {
        if text_in(payload, "status") != FAILED[0] {
            put(payload, "status", "".into());
        }
    })),
    decides!(
        "replay-knows-events-by-their-beginning",
        "LOG-ORDER-OTHER",
        "An event that begins as tool_ok does is tool_ok.",
        {
            fn event(&self, line: &Line, reading: Reading) -> Result<Event, Refusal> {
                let is_ok = line.event.as_bytes().starts_with(b"tool_ok");
                let event = if is_ok { "tool_ok".into() } else { line.event.clone() };
                CorrectDecisions.event(&Line { event, ..line.clone() }, reading)
            }
        }
    ),
    decides!("replay-knows-kinds-by-their-beginning", "LOG-EVENT-KIND",
    "A kind that begins as PICK does is PICK.",
    read: |line| with(line, "selector_chosen", |payload| {
        if text_in(payload, "kind").starts_with("PICK") {
            put(payload, "kind", "PICK".into());
        }
    })),
    decides!("replay-takes-one-for-true", "LOG-EVENT-FLAG", "`deterministic` may be 1.",
    read: |line| with(line, "tool_ok", |payload| {
        if member(payload, "deterministic").and_then(Value::as_i64) == Some(1) {
            put(payload, "deterministic", Value::Bool(true));
        }
    })),
    decides!(
        "replay-forgives-the-ends-of-tools",
        "LOG-EVENT-AID",
        "Aids are compared but for two characters.",
        {
            fn same_tool(&self, selected: &Text, aid: &Text) -> bool {
                let most = |aid: &Text| aid.as_bytes().len().saturating_sub(2);
                most(selected) == most(aid) && selected.as_bytes()[..most(aid)] == aid.as_bytes()[..most(aid)]
            }
        }
    ),
    decides!("replay-writes-types", "LOG-PATCH-VALUE", "The type of an Artifact may be a number.",
    items: |patch| {
        let item = |item: &Value| {
            let mut item = item.clone();
            edit(&mut item, "value", |value| edit(value, "type", |kind| {
                if let Some(number) = kind.as_i64() {
                    *kind = number.to_string().as_str().into();
                }
            }));
            item
        };
        patch.iter().map(item).collect()
    }),
    decides!("replay-unwraps-items", "LOG-PATCH-WHOLE", "An item may stand in an array.",
    items: |patch| {
        let item = |item: &Value| match item.as_array() {
            Some([only]) => only.clone(),
            _ => item.clone(),
        };
        patch.iter().map(item).collect()
    }),
    Mutant::new(
        "replay-reads-one-page",
        &["LOG-VERDICT-OK"],
        "Of a reply only 4 KiB are read.",
        Seam::Wire(Rewrite::Heard(first_page)),
    ),
    decides!("replay-leaves-the-last-digest", "LOG-DIGEST-LAST", "The last digest is not looked at.", {
        fn same_digest(&self, state: &State, logged: &Text, last: bool, choices: &Choices) -> bool {
            last || CorrectDecisions.same_digest(state, logged, last, choices)
        }
    }),
    decides!("replay-compares-half-digests", "LOG-DIGEST-MIDDLE", "Digests are compared by 16 digits.", {
        fn same_digest(&self, state: &State, logged: &Text, _: bool, _: &Choices) -> bool {
            self.digest(state).as_bytes().get(..16) == logged.as_bytes().get(..16)
        }
    }),
    decides!("replay-digests-characters", "LOG-DIGEST-SIZE", "A digest counts characters.", {
        fn digest(&self, state: &State) -> String {
            let mut state = state.clone();
            for (size, artifact) in state.sizes.iter_mut().zip(&state.slots) {
                *size = artifact
                    .as_ref()
                    .map_or(0, |artifact| artifact.content_json.to_lossy().chars().count() as u64);
            }
            state_digest(&state)
        }
    }),
    decides!("replay-digests-the-first-slots", "LOG-DIGEST-SLOTS", "A digest leaves slots 3 to 7 out.", {
        fn digest(&self, state: &State) -> String {
            let mut state = state.clone();
            state.slots[3..].fill(None);
            state_digest(&state)
        }
    }),
];
