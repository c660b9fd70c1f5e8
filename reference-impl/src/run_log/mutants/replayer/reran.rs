//! Mutants of the replayer that re-run tools differently, compare values differently, or give another verdict.

use super::super::memory::{Additive, Remembering};
use super::super::values::{nan_as_null, rounded, shallow, sorted, unquoted, with};
use super::super::wire::{
    asks, behind_noise, hears, known_members, left_open, members, more, put, reads_once, text_in,
    without_nulls,
};
use super::{Mutant, decides};
use crate::json::{Policy, Text, Value};
use crate::machine::Action;
use crate::mutant::{ShellFault, config, machine, parts, shell};
use crate::refusal::Refusal;
use crate::run_log::event::{Event, Reading, ToolOk};
use crate::run_log::line::Line;
use crate::run_log::state::{State, request};
use crate::run_log::tool::Outcome;
use crate::run_log::{Choices, Config, CorrectDecisions, LogFault, Rerun, Rules};
use crate::toolhost::Artifact;

/// Shell script that runs a program twice with the same input.
const TWICE: &str = r#"asked=$(cat); printf %s "$asked" | "$@" >/dev/null; printf %s "$asked" | "$@""#;

/// An object without the members that another one lacks.
fn narrowed(wide: &Value, narrow: &Value) -> Value {
    let known = |name: &Text| narrow.get(&name.to_lossy()).is_some();
    Value::Object(members(wide).into_iter().filter(|(name, _)| known(name)).collect())
}

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = &[
    decides!("replay-runs-nothing", "LOG-RERUN-DETERMINISTIC", "No tool is run again.", {
        fn reruns(&self, _: &ToolOk) -> bool {
            false
        }
    }),
    decides!("replay-runs-everything", "LOG-RERUN-NEVER", "Every tool that succeeded is run again.", {
        fn reruns(&self, _: &ToolOk) -> bool {
            true
        }
    }),
    decides!("replay-runs-what-failed", "LOG-RERUN-FAILED", "Every tool that failed is run again.", {
        fn reruns_failed(&self, _: bool, _: &Choices) -> bool {
            true
        }
        fn reran(&self, rerun: &Rerun, outcome: &Outcome, reading: Reading) -> Result<(), LogFault> {
            if rerun.output_json.is_none() { Ok(()) } else { CorrectDecisions.reran(rerun, outcome, reading) }
        }
    }),
    asks("replay-runs-twice", &["LOG-RERUN-ONCE"], "A tool is run twice.", |action| match action {
        Action::Spawn { argv, stdin } => {
            let own = ["sh", "-c", TWICE, "sh"].map(str::to_owned);
            vec![Action::Spawn { argv: own.into_iter().chain(argv).collect(), stdin }]
        }
        other => vec![other],
    }),
    asks("replay-starts-tools-otherwise", &["LOG-RERUN-START"], "A toolhost has one argument more.", more),
    asks("replay-leaves-input-open", &["LOG-RERUN-CLOSED"], "A toolhost's input stays open.", left_open),
    decides!("replay-gives-keys", "LOG-RERUN-KEYS", "A re-run has an idempotency key.", {
        fn request(&self, rerun: &Rerun) -> Vec<u8> {
            let request = CorrectDecisions.request(rerun);
            let rest = request.strip_prefix(b"{").unwrap_or(&request);
            [br#"{"idempotency_key":"replay","#.as_slice(), rest].concat()
        }
    }),
    decides!("replay-runs-without-input", "LOG-RERUN-INPUT", "A tool is run again with no input.", {
        fn request(&self, rerun: &Rerun) -> Vec<u8> {
            request("{}", &rerun.before)
        }
    }),
    decides!("replay-runs-without-state", "LOG-RERUN-STATE", "A tool is run again on an empty state.", {
        fn request(&self, rerun: &Rerun) -> Vec<u8> {
            request(&rerun.input, &State::default())
        }
    }),
    decides!(
        "replay-runs-on-what-came-of-it",
        "LOG-RERUN-STATE",
        "A tool is run again on the state after it.",
        {
            fn request(&self, rerun: &Rerun) -> Vec<u8> {
                request(&rerun.input, &rerun.after)
            }
        }
    ),
    decides!("replay-believes-outputs", "LOG-RERUN-OUTPUT", "An output is not compared.", {
        fn same_output(&self, _: &Text, _: &Text, _: Reading) -> bool {
            true
        }
    }),
    decides!("replay-believes-states", "LOG-RERUN-RESULT", "The state after a re-run is not compared.", {
        fn same_state(&self, _: &State, _: &State) -> bool {
            true
        }
    }),
    decides!("replay-compares-numbers-of-slots", "LOG-RERUN-RESULT",
        "Of the state after a re-run only the numbers of its slots count.",
        states: |_, _| true),
    decides!("replay-compares-contents", "LOG-RERUN-RESULT",
        "Of the state after a re-run only the contents count.",
        states: |own, logged| own.content_json == logged.content_json),
    decides!("replay-compares-contents-as-json", "LOG-RERUN-RESULT", "Contents are compared as JSON values.",
    states: |own, logged| {
        let value =
            |text: &Text| Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap_or(Value::Null);
        own.kind == logged.kind
            && own.provenance == logged.provenance
            && CorrectDecisions.same(&value(&own.content_json), &value(&logged.content_json))
    }),
    parts(
        "replay-tells-no-removals",
        &["LOG-RERUN-STATE"],
        "A session is not told that a slot is gone.",
        |_, rules| {
            *rules = Box::new(Additive::default());
        },
    ),
    decides!("replay-forgives-failures", "LOG-RERUN-FAILS", "A tool may fail at its re-run.", {
        fn reran(&self, rerun: &Rerun, outcome: &Outcome, reading: Reading) -> Result<(), LogFault> {
            if outcome.is_err() { Ok(()) } else { CorrectDecisions.reran(rerun, outcome, reading) }
        }
    }),
    config("replay-waits-for-ever", &["LOG-RERUN-TIME"], "A tool may take as long as it likes.", |config| {
        config.limits.toolhost_timeout_ms = 1 << 40;
    }),
    asks("replay-leaves-tools", &["LOG-RERUN-LEAVES"], "A toolhost that hangs is left running.", |action| {
        match action {
            Action::Kill => Vec::new(),
            other => vec![other],
        }
    }),
    decides!("replay-compares-bytes", "LOG-EQUAL-SPELLING", "Outputs are compared as they are written.", {
        fn same_output(&self, own: &Text, logged: &Text, _: Reading) -> bool {
            own == logged
        }
    }),
    decides!("replay-compares-six-digits", "LOG-RERUN-OUTPUT", "Fractions are compared to six digits.",
        compared: rounded),
    decides!("replay-sorts-arrays", "LOG-EQUAL-ARRAYS", "The order in an array does not count.",
        compared: sorted),
    decides!("replay-compares-six-levels", "LOG-EQUAL-ARRAYS", "Arrays are compared down to six levels.",
        compared: shallow),
    decides!("replay-mixes-types", "LOG-EQUAL-TYPES", "A string equals the value that it holds.",
        compared: unquoted),
    decides!("replay-takes-null-for-absent", "LOG-EQUAL-NULL", "A member that is null is as absent.",
        compared: without_nulls),
    decides!("replay-exits-zero", "LOG-VERDICT-EXIT", "A log that fails ends with status 0.", {
        fn verdict(&self, failure: Option<(u64, &str)>, config: &Config) -> (String, i32) {
            (CorrectDecisions.verdict(failure, config).0, 0)
        }
    }),
    decides!("replay-gives-no-reason", "LOG-VERDICT-REASON", "A failure has no reason.", {
        fn verdict(&self, failure: Option<(u64, &str)>, config: &Config) -> (String, i32) {
            failure.map_or_else(
                || CorrectDecisions.verdict(None, config),
                |_| ("REPLAY_STRICT FAIL\n".to_owned(), 1),
            )
        }
    }),
    decides!("replay-says-it-twice", "LOG-VERDICT-ONCE", "The verdict is given twice.", {
        fn verdict(&self, failure: Option<(u64, &str)>, config: &Config) -> (String, i32) {
            let (line, status) = CorrectDecisions.verdict(failure, config);
            (line.repeat(2), status)
        }
    }),
    decides!("replay-blames-the-first-line", "LOG-VERDICT-LINE", "Every failure is one of line 1.", {
        fn verdict(&self, failure: Option<(u64, &str)>, config: &Config) -> (String, i32) {
            CorrectDecisions.verdict(failure.map(|(_, why)| (1, why)), config)
        }
    }),
    decides!("replay-counts-lines-from-zero", "LOG-VERDICT-LINE", "Lines are numbered from 0.", {
        fn verdict(&self, failure: Option<(u64, &str)>, config: &Config) -> (String, i32) {
            CorrectDecisions
                .verdict(failure.map(|(line, _)| (line.saturating_sub(1), "not as it should be")), config)
        }
    }),
    decides!("replay-accepts-all", "LOG-VERDICT-FAIL", "Every log is accepted.", {
        fn verdict(&self, _: Option<(u64, &str)>, config: &Config) -> (String, i32) {
            CorrectDecisions.verdict(None, config)
        }
    }),
    decides!("replay-refuses-all", "LOG-VERDICT-OK", "Every log is refused.", {
        fn verdict(&self, failure: Option<(u64, &str)>, config: &Config) -> (String, i32) {
            CorrectDecisions.verdict(failure.or(Some((1, "no"))), config)
        }
    }),
    shell("replay-ignores-sigterm", &["LOG-RERUN-SIGTERM"], "SIGTERM ends nothing.", ShellFault::IgnoresTerm),
    shell(
        "replay-leaves-a-child",
        &["LOG-RERUN-LEAVES"],
        "A child outlives the replay.",
        ShellFault::LeavesChild,
    ),
    shell("replay-leaves-a-file", &["LOG-RERUN-LEAVES"], "A file is left behind.", ShellFault::LeavesFile),
    parts(
        "replay-remembers-tools",
        &["LOG-RERUN-DETERMINISTIC"],
        "A tool whose event is equal to an earlier one is not run again.",
        |_, rules| *rules = Box::new(Remembering::default()),
    ),
    decides!(
        "replay-takes-more-of-patches",
        "LOG-INPUT-SAME",
        "inputs_patched may have members that the patch of the selection lacks.",
        {
            fn same_patch(&self, selected: &Value, patch: &Value) -> bool {
                CorrectDecisions.same(selected, &narrowed(patch, selected))
            }
        }
    ),
    decides!(
        "replay-takes-more-inputs",
        "LOG-INPUT-SHOWN",
        "The inputs that are shown may have members that the merged ones lack.",
        {
            fn same_inputs(&self, merged: &Value, shown: &Value) -> bool {
                CorrectDecisions.same(merged, &narrowed(shown, merged))
            }
        }
    ),
    decides!(
        "replay-wants-outputs",
        "LOG-VERDICT-OK",
        "An output that is null, false, 0 or empty is none.",
        {
            fn same_output(&self, own: &Text, logged: &Text, reading: Reading) -> bool {
                let is_none = ["null", "false", "0", "\"\""].iter().any(|none| *logged == **none);
                !is_none && CorrectDecisions.same_output(own, logged, reading)
            }
        }
    ),
    decides!("replay-takes-nan-for-an-output", "LOG-EVENT-JSON", "An output of NaN is null.",
    read: |line| with(line, "tool_ok", |payload| {
        if text_in(payload, "output_json") == "NaN" {
            put(payload, "output_json", "null".into());
        }
    })),
    hears("replay-takes-nan", &["LOG-RERUN-FAILS"], "NaN in a reply is null.", nan_as_null),
    hears(
        "replay-finds-replies-in-noise",
        &["LOG-RERUN-FAILS"],
        "What stands before a reply is passed over.",
        behind_noise,
    ),
    hears(
        "replay-wants-known-members-of-replies",
        &["LOG-VERDICT-OK"],
        "A reply with a member that it does not know is garbage.",
        known_members,
    ),
    machine(
        "replay-reads-once",
        &["LOG-VERDICT-OK"],
        "Of a reply only what comes first is read.",
        reads_once,
    ),
];
