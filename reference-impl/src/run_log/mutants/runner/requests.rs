//! Mutants of the runner that read a request differently.

use super::super::values::{folded, nan_as_null};
use super::super::wire::{
    behind_noise, changed, edit, hears, known_members, odd_sizes, put, reads_once, text_in,
};
use super::{Mutant, decides, writes};
use crate::json::{Policy, Value};
use crate::mutant::{self, parts};
use crate::refusal::Refusal;
use crate::run_log::event::{Event, FAILED};
use crate::run_log::line::text_of;
use crate::run_log::state::State;
use crate::run_log::tool::{Failed, Outcome};
use crate::run_log::{Config, Mode, Ordinary, Run, RunRequest, RunnerDecisions, ToolEntry};

/// Characters of a request_id that are kept by whoever cuts it.
const REQUEST_ID_CHARS: usize = 64;

/// Edits the value of a request. Text that is not JSON stays as it is.
fn as_read(text: &[u8], change: impl Fn(&Value) -> Value) -> Vec<u8> {
    let value = Value::parse(text, 128, &Policy::default());
    value.map_or_else(|_| text.to_vec(), |value| text_of(&change(&value)).into_bytes())
}

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = &[
    decides!(
        "run-takes-any-request",
        "LOG-RUN-REFUSES",
        "A request that is wrong is run as an empty one.",
        {
            fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
                RunRequest::read(text, config).or_else(|_| RunRequest::read(br#"{"goal_id":"none"}"#, config))
            }
        }
    ),
    decides!("run-folds-names", "LOG-RUN-REFUSES", "Names of members may have any case.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            RunRequest::read(&as_read(text, folded), config)
        }
    }),
    decides!("run-unwraps-lists", "LOG-RUN-REFUSES", "A request may stand in an array.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            let unwrapped = |value: &Value| match value.as_array() {
                Some([only]) => only.clone(),
                _ => value.clone(),
            };
            RunRequest::read(&as_read(text, unwrapped), config)
        }
    }),
    decides!("run-reads-flags-as-text", "LOG-RUN-REFUSES", "`deterministic` may be a text.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            let text =
                String::from_utf8_lossy(text).replace("\"deterministic\":\"true\"", "\"deterministic\":true");
            RunRequest::read(text.as_bytes(), config)
        }
    }),
    decides!(
        "run-loses-tools-without-tags",
        "LOG-RUN-MENU",
        "A tool whose tags are no list is not on the menu.",
        {
            fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
                let without = |value: &Value| {
                    let mut value = value.clone();
                    edit(&mut value, "tools", |tools| {
                        let is_right =
                            |tool: &&Value| tool.get("tags").is_none_or(|tags| tags.as_array().is_some());
                        let kept =
                            tools.as_array().unwrap_or_default().iter().filter(is_right).cloned().collect();
                        *tools = Value::Array(kept);
                    });
                    value
                };
                RunRequest::read(&as_read(text, without), config)
            }
        }
    ),
    decides!("run-refuses-other-members", "LOG-RUN-MEMBERS", "A member that is not named is refused.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            if memchr::memmem::find(text, b"\"x\":").is_some() {
                return Err("x is unknown".into());
            }
            RunRequest::read(text, config)
        }
    }),
    decides!("run-asks-a-driver-unasked", "LOG-RUN-DEFAULTS", "Without control_mode the driver selects.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            let mut request = RunRequest::read(text, config)?;
            if memchr::memmem::find(text, b"\"control_mode\"").is_none() {
                request.mode = Mode::PolicyOnly;
            }
            Ok(request)
        }
    }),
    decides!("run-wants-inputs", "LOG-RUN-DEFAULTS", "A request without inputs is refused.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            match memchr::memmem::find(text, b"\"inputs\"") {
                Some(_) => RunRequest::read(text, config),
                None => Err("no inputs".into()),
            }
        }
    }),
    decides!("run-takes-nan", "LOG-RUN-REFUSES", "NaN in a request is null.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            RunRequest::read(&nan_as_null(text), config)
        }
    }),
    decides!("run-takes-trailing-commas", "LOG-RUN-REFUSES", "A comma before a brace is left out.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            let text = String::from_utf8_lossy(text).replace(",}", "}");
            RunRequest::read(text.as_bytes(), config)
        }
    }),
    decides!("run-trims-goals", "LOG-WRITE-EVENTS", "White space around goal_id is no part of it.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            let mut request = RunRequest::read(text, config)?;
            request.goal_id = request.goal_id.to_lossy().trim().into();
            Ok(request)
        }
    }),
    writes(
        "run-cuts-request-ids",
        &["LOG-WRITE-REQUEST"],
        "Only 64 characters of a request_id are written.",
        |_, line| {
            changed(line, "", |whole, _| {
                let id: String = text_in(whole, "request_id").chars().take(REQUEST_ID_CHARS).collect();
                put(whole, "request_id", id.as_str().into());
            })
        },
    ),
    writes(
        "run-tells-of-changes-only",
        &["LOG-WRITE-PATCHED"],
        "A patch that leaves the inputs as they are has no inputs_patched.",
        |memory, line| {
            let inputs = |line: &[u8]| {
                let line = Value::parse(line, 128, &Policy::default()).ok()?;
                line.get("payload")?.get("inputs").map(text_of)
            };
            match inputs(&line) {
                Some(inputs) if memory.held == inputs.as_bytes() => return Vec::new(),
                Some(inputs) => memory.held = inputs.into_bytes(),
                None => {}
            }
            vec![line]
        },
    ),
    hears(
        "run-finds-replies-in-noise",
        &["LOG-RUN-OK"],
        "What stands before a reply is passed over.",
        behind_noise,
    ),
    hears("run-takes-nan-for-an-output", &["LOG-RUN-OK"], "NaN in a reply is null.", nan_as_null),
    hears(
        "run-wants-known-members",
        &["LOG-RUN-OK"],
        "A reply with a member that it does not know is garbage.",
        known_members,
    ),
    mutant::machine(
        "run-reads-once",
        &["LOG-RUN-OK"],
        "Of a reply only what comes first is read.",
        reads_once,
    ),
    mutant::machine(
        "run-writes-sizes-as-told",
        &["LOG-WRITE-SIZE"],
        "A wrong size_bytes of a reply is written as it is.",
        odd_sizes,
    ),
    decides!("run-wants-outputs", "LOG-RUN-OK", "A success whose output is null, false, 0 or empty has failed.",
    ended: |_, outcome| {
        let is_none = |text: &str| ["null", "false", "0", "\"\""].contains(&text);
        match outcome {
            Ok(success) if is_none(&success.output_json.to_lossy()) => {
                Err(Failed { status: FAILED[0].into(), error: "no output".into() })
            }
            other => other,
        }
    }),
    decides!("run-drops-empty-contents", "LOG-WRITE-ITEMS", "A slot with an empty content_json is empty.",
    ended: |_, outcome| {
        outcome.map(|mut success| {
            for slot in &mut success.state.slots {
                *slot = slot.take().filter(|held| !held.content_json.as_bytes().is_empty());
            }
            success
        })
    }),
];
