//! Mutants of the runner.

use super::wire::{
    Edit, Members, Rewired, Rewrite, brittle, changed, coarse, fragile, keeps_failed, left_open,
    lenient_slots, members, merged_by, merged_deep, more, put, skips_slots, take, without_nulls,
};
use crate::json::{Policy, Value};
use crate::machine::{Action, Machine};
use crate::mutant::{self, Seam, ShellFault, config, parts, shell};
use crate::policy_driver::{Merge, SelectionKind};
use crate::run_log::digest::state_digest;
use crate::run_log::event::{Event, ToolOk};
use crate::run_log::line::text_of;
use crate::run_log::state::{Item, State, request};
use crate::run_log::tool::{Outcome, Success};
use crate::run_log::{Config, Mode, Ordinary, Run, RunRequest, Runner, RunnerParts, ToolEntry, Ways};

/// A runner that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Box<dyn Ways>, Rewrite, Around>;

/// What goes wrong around a correct runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    /// The log always ends with `run_finished`, which the next line takes the place of.
    ClosesLog,
}

impl Mutant {
    /// The mutant as a machine with this selector (a correct one where the fault lies around it).
    pub fn machine(&self, config: Config, selector: Box<dyn Machine + Send>) -> Box<dyn Machine + Send> {
        let right = |_: &Config| -> Box<dyn Ways> { Box::new(Ordinary) };
        let build =
            |config, ways| -> mutant::Inner { Box::new(Runner::new(config, RunnerParts { selector, ways })) };
        self.build(config, right, build, |machine, rewrite| Box::new(Rewired::new(machine, rewrite)))
    }
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    MUTANTS.iter().find(|mutant| mutant.id == id).copied()
}

/// Makes a mutant of decisions that replace the right ones.
macro_rules! decides {
    ($id:literal, $clause:literal, $fault:literal, { $($methods:tt)* }) => {
        parts($id, &[$clause], $fault, |_, ways| {
            #[derive(Debug)]
            struct Careless;
            impl Ways for Careless { $($methods)* }
            *ways = Box::new(Careless);
        })
    };
}

const fn writes(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    edit: Edit,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite::Written(edit)))
}

const fn asks(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(Action) -> Vec<Action>,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite::Asked(change)))
}

const fn hears(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: fn(&[u8]) -> Vec<u8>,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite::Heard(change)))
}

/// What a driver says, with the SID that it picks put right.
fn sid_put_right(said: &[u8], right: fn(&str) -> String) -> Vec<u8> {
    const PICK: &str = "<PICK><";
    let parts = std::str::from_utf8(said).ok().and_then(|text| text.strip_prefix(PICK)?.split_once('>'));
    parts.map_or_else(|| said.to_vec(), |(sid, rest)| format!("{PICK}{}>{rest}", right(sid)).into_bytes())
}

/// All mutants.
pub const MUTANTS: &[Mutant] = &[
    writes("run-ends-without-header", &["LOG-WRITE-HEADER"], "run_finished has no run_id.", |_, line| {
        changed(line, "run_finished", |whole, _| take(whole, "run_id"))
    }),
    writes("run-numbers-its-version", &["LOG-WRITE-HEADER"], "spec_version is a number.", |_, line| {
        changed(line, "", |whole, _| put(whole, "spec_version", Value::Number(1_i64.into())))
    }),
    writes("run-names-itself", &["LOG-WRITE-FORM"], "run_id is no UUID.", |_, line| {
        changed(line, "", |whole, _| {
            let id = whole.iter().find(|(name, _)| *name == "run_id").and_then(|(_, id)| id.as_str());
            let id = format!("run-{}", id.unwrap_or_default());
            put(whole, "run_id", id.as_str().into());
        })
    }),
    hears(
        "run-trims-sids",
        &["LOG-WRITE-RAW"],
        "Blanks around the SID that a driver picks are taken away.",
        |said| sid_put_right(said, |sid| sid.trim().to_owned()),
    ),
    hears(
        "run-takes-sids-in-any-case",
        &["LOG-WRITE-RAW"],
        "The SID that a driver picks is read in upper case.",
        |said| sid_put_right(said, str::to_uppercase),
    ),
    writes("run-writes-no-json", &["LOG-WRITE-JSON"], "tool_ok has a comma too many.", |_, mut line| {
        if memchr::memmem::find(&line, b"\"tool_ok\"").is_some() {
            line.truncate(line.len() - 2);
            line.extend_from_slice(b",}\n");
        }
        vec![line]
    }),
    writes(
        "run-tells-of-tools-first",
        &["LOG-WRITE-EVENTS", "LOG-WRITE-ORDER"],
        "A selection stands behind the event of its tool.",
        |memory, line| {
            let is = |name: &[u8]| memchr::memmem::find(&line, name).is_some();
            if is(b"\"selector_chosen\"") && is(b"\"PICK\"") {
                memory.held = line;
                return Vec::new();
            }
            let held = std::mem::take(&mut memory.held);
            if held.is_empty() { vec![line] } else { vec![line, held] }
        },
    ),
    mutant::carrier(
        "run-closes-its-log-early",
        &["LOG-WRITE-ORDER"],
        "run_finished is the last line at any time.",
        Around::ClosesLog,
    ),
    decides!(
        "run-replaces-what-stays",
        "LOG-WRITE-UNCHANGED",
        "A patch that changes nothing replaces slots.",
        {
            fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
                match Ordinary.outcome(run, tool, outcome) {
                    (Event::ToolOk(event), after) if event.tx_patch.is_empty() => {
                        let replace = |item: &Item| {
                            let mut item = members(&item.to_value());
                            put(&mut item, "op", "replace".into());
                            Value::Object(item)
                        };
                        let tx_patch = State::default().patch_to(&after).iter().map(replace).collect();
                        (Event::ToolOk(ToolOk { tx_patch, ..event }), after)
                    }
                    right => right,
                }
            }
        }
    ),
    decides!("run-digests-in-capitals", "LOG-RUN-DIGEST", "Digests have upper-case digits.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            match Ordinary.outcome(run, tool, outcome) {
                (Event::ToolOk(event), after) => {
                    let state_digest = state_digest(&after).to_uppercase().as_str().into();
                    (Event::ToolOk(ToolOk { state_digest, ..event }), after)
                }
                right => right,
            }
        }
    }),
    decides!(
        "run-merges-short-floats",
        "LOG-RUN-INTEGERS",
        "Integers of a patch go through short floats.",
        {
            fn merge(&self) -> Merge {
                |inputs, patch, nesting_max| {
                    let merged = crate::policy_driver::merge(inputs, patch, nesting_max)?;
                    merged_by(|merged, _| coarse(merged), &merged, "{}", nesting_max)
                }
            }
        }
    ),
    decides!("run-gives-input-as-object", "LOG-RUN-REQUEST", "input_json is an object.", {
        fn tool_request(&self, run: &Run) -> Vec<u8> {
            let request = Value::parse(&Ordinary.tool_request(run), 128, &Policy::default());
            let mut request = members(&request.unwrap_or(Value::Null));
            let input = Value::parse(run.inputs.as_bytes(), 128, &Policy::default());
            put(&mut request, "input_json", input.unwrap_or(Value::Null));
            text_of(&Value::Object(request)).into_bytes()
        }
    }),
    mutant::machine(
        "run-dies-of-nesting",
        &["LOG-RUN-DEEPER"],
        "A request of many levels ends the process.",
        fragile,
    ),
    mutant::machine(
        "run-dies-of-halves",
        &["LOG-RUN-HALVES"],
        "A request with half of a surrogate pair ends the process.",
        brittle,
    ),
    mutant::machine(
        "run-takes-other-names-of-slots",
        &["LOG-RUN-OK"],
        "The slots 07, +7 and so on of a reply are slot 7.",
        lenient_slots,
    ),
    mutant::machine(
        "run-passes-over-slots",
        &["LOG-RUN-OK"],
        "The slot 8 of a reply is passed over.",
        skips_slots,
    ),
    mutant::machine(
        "run-keeps-the-state-of-failures",
        &["LOG-RUN-FAILED"],
        "The tool behind one that failed gets the state of its reply.",
        keeps_failed,
    ),
    writes(
        "run-keeps-patches-of-fallbacks",
        &["LOG-WRITE-RAW"],
        "A pick that is not on the menu leaves its patch to the fallback.",
        |_, line| {
            changed(line, "selector_chosen", |_, payload| {
                let raw = payload.iter().find(|(name, _)| *name == "raw").and_then(|(_, raw)| raw.as_str());
                if raw.is_some_and(|raw| raw.ends_with("not in the menu")) {
                    put(payload, "input_patch_json", "{\"k\":2}".into());
                }
            })
        },
    ),
    decides!(
        "run-compares-contents",
        "LOG-WRITE-ITEMS",
        "A slot has no item where its content alone stays.",
        {
            fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
                match Ordinary.outcome(run, tool, outcome) {
                    (Event::ToolOk(event), after) => {
                        let content = |state: &State, slot: usize| {
                            state.slots[slot].as_ref().map(|held| held.content_json.clone())
                        };
                        let items = run.state.patch_to(&after).into_iter();
                        let items =
                            items.filter(|it| content(&run.state, it.slot) != content(&after, it.slot));
                        let tx_patch = items.map(|item| item.to_value()).collect();
                        (Event::ToolOk(ToolOk { tx_patch, ..event }), after)
                    }
                    right => right,
                }
            }
        }
    ),
    decides!("run-composes-outputs", "LOG-RUN-OUTPUT", "An output is brought into the form NFC.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            let composed = |success: Success| {
                let text = success.output_json.to_lossy().replace("e\u{301}", "é");
                Success { output_json: text.as_str().into(), ..success }
            };
            Ordinary.outcome(run, tool, outcome.map(composed))
        }
    }),
    asks(
        "run-never-ends",
        &["LOG-RUN-ENDS"],
        "The process stays when the run is over.",
        |action| match action {
            Action::Exit(0) => Vec::new(),
            other => vec![other],
        },
    ),
    writes(
        "run-tells-what-it-is-first",
        &["LOG-WRITE-EVENTS"],
        "An event stands before run_started.",
        |_, line| {
            let mut lines = changed(line.clone(), "run_started", |whole, payload| {
                put(whole, "event", "runner_started".into());
                payload.clear();
            });
            if lines[0] != line {
                lines.push(line);
            }
            lines
        },
    ),
    config("run-repeats-its-id", &["LOG-WRITE-RUN"], "Every run has the same run_id.", |config| {
        config.run_seed = [7; 16];
    }),
    writes("run-loses-request-ids", &["LOG-WRITE-REQUEST"], "Tool events have no request_id.", |_, line| {
        changed(line, "tool_ok", |whole, _| take(whole, "request_id"))
    }),
    writes("run-counts-by-two", &["LOG-WRITE-STEP"], "Steps are 0, 2, 4.", |_, line| {
        changed(line, "", |whole, _| {
            let step = whole.iter().find(|(name, _)| *name == "step").and_then(|(_, step)| step.as_i64());
            put(whole, "step", Value::Number((step.unwrap_or_default() * 2).into()));
        })
    }),
    writes("run-counts-one-more", &["LOG-WRITE-STEPS"], "`steps` is one too many.", |_, line| {
        changed(line, "run_finished", |_, payload| {
            let steps =
                payload.iter().find(|(name, _)| *name == "steps").and_then(|(_, steps)| steps.as_i64());
            put(payload, "steps", Value::Number((steps.unwrap_or_default() + 1).into()));
        })
    }),
    writes("run-hides-fallbacks", &["LOG-WRITE-RAW"], "The raw of a fallback is a block.", |_, line| {
        changed(line, "selector_chosen", |_, payload| {
            let raw = payload.iter().find(|(name, _)| *name == "raw").and_then(|(_, raw)| raw.as_str());
            if raw.is_some_and(|raw| raw.starts_with("fallback")) {
                put(payload, "raw", "<PICK><SID0001><END>".into());
            }
        })
    }),
    writes("run-blanks-raw", &["LOG-WRITE-RAW"], "The raw of a PICK is empty.", |_, line| {
        changed(line, "selector_chosen", |_, payload| {
            let raw = payload.iter().find(|(name, _)| *name == "raw").and_then(|(_, raw)| raw.as_str());
            if raw.is_some_and(|raw| raw.contains("<PICK>")) {
                put(payload, "raw", "".into());
            }
        })
    }),
    writes(
        "run-gives-all-an-aid",
        &["LOG-WRITE-KIND"],
        "A selection that picks nothing has an aid.",
        |_, line| {
            changed(line, "selector_chosen", |_, payload| {
                if !payload.iter().any(|(name, _)| *name == "aid") {
                    put(payload, "aid", "".into());
                }
            })
        },
    ),
    writes("run-loses-patches", &["LOG-WRITE-PATCH"], "A selection shows no patch.", |_, line| {
        changed(line, "selector_chosen", |_, payload| take(payload, "input_patch_json"))
    }),
    writes("run-tells-of-no-patch", &["LOG-WRITE-PATCHED"], "There is no inputs_patched.", |_, line| {
        if memchr::memmem::find(&line, b"\"inputs_patched\"").is_some() { Vec::new() } else { vec![line] }
    }),
    writes(
        "run-shows-the-patch-only",
        &["LOG-WRITE-INPUTS"],
        "The inputs that are shown are the patch.",
        |_, line| {
            changed(line, "inputs_patched", |_, payload| {
                let patch = payload.iter().find(|(name, _)| *name == "patch").map(|(_, patch)| patch.clone());
                put(payload, "inputs", patch.unwrap_or(Value::Null));
            })
        },
    ),
    writes("run-ends-without-a-word", &["LOG-WRITE-END"], "There is no run_finished.", |_, line| {
        if memchr::memmem::find(&line, b"\"run_finished\"").is_some() { Vec::new() } else { vec![line] }
    }),
    writes("run-leaves-the-last-lf-out", &["LOG-WRITE-LF"], "The last line has no LF.", |_, mut line| {
        if memchr::memmem::find(&line, b"\"run_finished\"").is_some() {
            line.pop();
        }
        vec![line]
    }),
    writes(
        "run-begins-with-a-mark",
        &["LOG-WRITE-BOM"],
        "A byte order mark stands before the first line.",
        |memory, line| {
            let first = !std::mem::replace(&mut memory.seen, true);
            if first { vec![[b"\xEF\xBB\xBF", &line[..]].concat()] } else { vec![line] }
        },
    ),
    writes("run-counts-characters", &["LOG-WRITE-SIZE"], "`size_bytes` counts characters.", |_, line| {
        items(line, |item| {
            let mut item = members(item);
            if let Some((_, value)) = item.iter_mut().find(|(name, _)| *name == "value") {
                let mut artifact = members(value);
                let content = value.get("content_json").and_then(Value::as_str).unwrap_or_default();
                let size = i64::try_from(content.chars().count()).unwrap_or_default();
                put(&mut artifact, "size_bytes", Value::Number(size.into()));
                *value = Value::Object(artifact);
            }
            Some(Value::Object(item))
        })
    }),
    writes("run-adds-to-used-slots", &["LOG-WRITE-OP"], "A used slot is added to.", |_, line| {
        items(line, |item| {
            let mut members = members(item);
            if item.get("op") == Some(&"replace".into()) {
                put(&mut members, "op", "add".into());
            }
            Some(Value::Object(members))
        })
    }),
    writes(
        "run-hides-removals",
        &["LOG-WRITE-ITEMS"],
        "A patch does not tell what was removed.",
        |_, line| items(line, |item| (item.get("op") != Some(&"remove".into())).then(|| item.clone())),
    ),
    writes("run-takes-two-items", &["LOG-WRITE-SLOT"], "A slot is emptied and filled anew.", |_, line| {
        changed(line, "tool_ok", |_, payload| {
            let patch =
                payload.iter().find(|(name, _)| *name == "tx_patch").and_then(|(_, patch)| patch.as_array());
            let mut items = Vec::new();
            for item in patch.unwrap_or_default() {
                let mut filled = members(item);
                if item.get("op") == Some(&"replace".into()) {
                    let mut emptied = filled.clone();
                    take(&mut emptied, "value");
                    put(&mut emptied, "op", "remove".into());
                    items.push(Value::Object(emptied));
                    put(&mut filled, "op", "add".into());
                }
                items.push(Value::Object(filled));
            }
            put(payload, "tx_patch", Value::Array(items));
        })
    }),
    writes("run-spells-outputs-anew", &["LOG-RUN-BYTES"], "An output is written anew.", |_, line| {
        changed(line, "tool_ok", |_, payload| {
            let output =
                payload.iter().find(|(name, _)| *name == "output_json").and_then(|(_, text)| text.as_str());
            let value = Value::parse(output.unwrap_or_default().as_bytes(), 128, &Policy::default());
            put(payload, "output_json", text_of(&value.unwrap_or(Value::Null)).as_str().into());
        })
    }),
    asks("run-writes-no-log", &["LOG-RUN-UNWRITTEN"], "There is no log, and nobody is told.", |action| {
        match action {
            Action::Append(_) => Vec::new(),
            other => vec![other],
        }
    }),
    config(
        "run-refuses-long-requests",
        &["LOG-WRITE-LONG"],
        "A request of more than 1 MB is refused.",
        |config| {
            config.limits.stdin_bytes_max = 1 << 20;
        },
    ),
    decides!("run-digests-menus-alike", "LOG-RUN-DIGESTS", "All menus have the same digest.", {
        fn selection_request(&self, run: &Run) -> Vec<u8> {
            let request = String::from_utf8(Ordinary.selection_request(run)).unwrap_or_default();
            request.replacen(&run.request.menu_digest(), "menu", 1).into_bytes()
        }
    }),
    decides!("run-shortens-digests", "LOG-RUN-MENUDIGEST", "The digest of a menu lacks its end.", {
        fn selection_request(&self, run: &Run) -> Vec<u8> {
            let request = String::from_utf8(Ordinary.selection_request(run)).unwrap_or_default();
            let digest = run.request.menu_digest();
            request.replacen(&digest, &digest[..16], 1).into_bytes()
        }
    }),
    decides!("run-asks-a-driver-unasked", "LOG-RUN-DEFAULTS", "Without control_mode the driver selects.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            let mut request = RunRequest::read(text, config)?;
            if memchr::memmem::find(text, b"\"control_mode\"").is_none() {
                request.mode = Mode::PolicyOnly;
            }
            Ok(request)
        }
    }),
    decides!("run-wants-inputs", "LOG-RUN-DEFAULTS", "A request without inputs is refused.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            match memchr::memmem::find(text, b"\"inputs\"") {
                Some(_) => RunRequest::read(text, config),
                None => Err("no inputs".to_owned()),
            }
        }
    }),
    Mutant::new(
        "run-writes-at-the-end",
        &["LOG-WRITE-KEPT"],
        "The log is written when all is over.",
        Seam::Wire(Rewrite::Late),
    ),
    decides!("run-merges-deep", "LOG-RUN-MERGE", "A patch is merged into the values.", {
        fn merge(&self) -> Merge {
            |inputs, patch, nesting_max| merged_by(merged_deep, inputs, patch, nesting_max)
        }
    }),
    decides!("run-takes-null-for-removal", "LOG-RUN-MERGE", "null removes a key.", {
        fn merge(&self) -> Merge {
            |inputs, patch, nesting_max| {
                let merged = crate::policy_driver::merge(inputs, patch, nesting_max)?;
                merged_by(|merged, _| without_nulls(merged), &merged, "{}", nesting_max)
            }
        }
    }),
    decides!("run-forgets-inputs", "LOG-RUN-MERGE", "A patch takes the place of the inputs.", {
        fn merge(&self) -> Merge {
            |_, patch, _| Ok(patch.to_owned())
        }
    }),
    decides!("run-shows-drivers-old-inputs", "LOG-RUN-PAYLOAD", "Drivers get the inputs of the request.", {
        fn selection_request(&self, run: &Run) -> Vec<u8> {
            let inputs = text_of(&run.request.inputs);
            Ordinary.selection_request(&Run { inputs, ..run.clone() })
        }
    }),
    decides!("run-shows-drivers-no-state", "LOG-RUN-PAYLOAD", "Drivers get the digest of an empty state.", {
        fn selection_request(&self, run: &Run) -> Vec<u8> {
            Ordinary.selection_request(&Run { state: State::default(), ..run.clone() })
        }
    }),
    decides!("run-hides-a-tool", "LOG-RUN-MENU", "The last tool is not on the menu.", {
        fn selection_request(&self, run: &Run) -> Vec<u8> {
            let mut run = run.clone();
            run.request.tools.pop();
            Ordinary.selection_request(&run)
        }
    }),
    decides!("run-gives-no-flags", "LOG-RUN-GOAL", "A goal digest has two parts.", {
        fn selection_request(&self, run: &Run) -> Vec<u8> {
            let request = String::from_utf8(Ordinary.selection_request(run)).unwrap_or_default();
            request.replacen("|FLAGS:", "", 1).into_bytes()
        }
    }),
    decides!("run-starts-tools-without-state", "LOG-RUN-STATE", "Tools run on an empty state.", {
        fn tool_request(&self, run: &Run) -> Vec<u8> {
            request(&run.inputs, &State::default())
        }
    }),
    decides!("run-starts-tools-with-old-inputs", "LOG-RUN-INPUT", "Tools get the inputs of the request.", {
        fn tool_request(&self, run: &Run) -> Vec<u8> {
            request(&text_of(&run.request.inputs), &run.state)
        }
    }),
    Mutant::new(
        "run-starts-tools-twice",
        &["LOG-RUN-ONCE"],
        "A tool is run twice.",
        Seam::Wire(Rewrite::Twice),
    ),
    asks("run-starts-tools-otherwise", &["LOG-RUN-START"], "A toolhost has one argument more.", more),
    asks("run-leaves-input-open", &["LOG-RUN-CLOSED"], "A toolhost's input stays open.", left_open),
    writes("run-falls-back-to-nothing", &["LOG-RUN-FALLBACK"], "A driver that fails is NOOP.", |_, line| {
        changed(line, "selector_chosen", |_, payload| {
            if is_fallback(payload) {
                put(payload, "kind", "NOOP".into());
                take(payload, "sid");
                take(payload, "aid");
            }
        })
    }),
    writes(
        "run-falls-back-elsewhere",
        &["LOG-RUN-FALLBACK"],
        "A fallback has no SID of the menu.",
        |_, line| {
            changed(line, "selector_chosen", |_, payload| {
                if is_fallback(payload) {
                    put(payload, "sid", "SID9999".into());
                }
            })
        },
    ),
    decides!("run-takes-failures-for-success", "LOG-RUN-OK", "A tool that failed is tool_ok.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            let nothing = |_| Success { output_json: "{}".into(), state: run.state.clone() };
            Ordinary.outcome(run, tool, Ok(outcome.unwrap_or_else(nothing)))
        }
    }),
    decides!("run-drops-the-state-of-failures", "LOG-RUN-FAILED", "A failure empties the state.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            match Ordinary.outcome(run, tool, outcome) {
                (event @ Event::ToolError { .. }, _) => (event, State::default()),
                right => right,
            }
        }
    }),
    decides!("run-calls-all-random", "LOG-RUN-FLAG", "Every tool is deterministic:false.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            Ordinary.outcome(run, &ToolEntry { deterministic: false, ..tool.clone() }, outcome)
        }
    }),
    decides!(
        "run-finds-tools-by-name",
        "LOG-RUN-FLAG",
        "`deterministic` is that of the first tool of the name.",
        {
            fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
                let first = run.request.tools.iter().find(|it| it.name == tool.name);
                let deterministic = first.is_some_and(|it| it.deterministic);
                Ordinary.outcome(run, &ToolEntry { deterministic, ..tool.clone() }, outcome)
            }
        }
    ),
    decides!("run-loses-outputs", "LOG-RUN-OUTPUT", "Every output is {}.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            Ordinary.outcome(
                run,
                tool,
                outcome.map(|success| Success { output_json: "{}".into(), ..success }),
            )
        }
    }),
    decides!("run-digests-the-state-before", "LOG-RUN-DIGEST", "A digest is that of the state before.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            match Ordinary.outcome(run, tool, outcome) {
                (Event::ToolOk(event), after) => {
                    let state_digest = state_digest(&run.state).as_str().into();
                    (Event::ToolOk(ToolOk { state_digest, ..event }), after)
                }
                right => right,
            }
        }
    }),
    decides!("run-goes-on-behind-noop", "LOG-RUN-NOOP", "NOOP ends nothing.", {
        fn ends(&self, _: SelectionKind, _: &Config) -> Option<&'static str> {
            None
        }
    }),
    decides!("run-selects-once-more", "LOG-RUN-MAX", "There is a selection too many.", {
        fn is_last(&self, run: &Run, config: &Config) -> bool {
            run.selections > run.request.max_steps.unwrap_or(config.steps_default)
        }
    }),
    asks("run-exits-one", &["LOG-RUN-EXIT"], "A run that ended well has status 1.", |action| match action {
        Action::Exit(0) => vec![Action::Exit(1)],
        other => vec![other],
    }),
    decides!(
        "run-takes-any-request",
        "LOG-RUN-REFUSES",
        "A request that is wrong is run as an empty one.",
        {
            fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
                RunRequest::read(text, config).or_else(|_| RunRequest::read(br#"{"goal_id":"none"}"#, config))
            }
        }
    ),
    decides!("run-refuses-other-members", "LOG-RUN-MEMBERS", "A member that is not named is refused.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
            if memchr::memmem::find(text, b"\"x\":").is_some() {
                return Err("x is unknown".to_owned());
            }
            RunRequest::read(text, config)
        }
    }),
    config("run-waits-for-ever", &["LOG-RUN-TIME"], "A tool may take as long as it likes.", |config| {
        config.limits.toolhost_timeout_ms = 1 << 40;
    }),
    asks("run-leaves-tools", &["LOG-RUN-LEAVES"], "A toolhost that hangs is left running.", |action| {
        match action {
            Action::Kill => Vec::new(),
            other => vec![other],
        }
    }),
    shell("run-ignores-sigterm", &["LOG-RUN-SIGTERM"], "SIGTERM ends nothing.", ShellFault::IgnoresTerm),
    shell("run-leaves-a-child", &["LOG-RUN-LEAVES"], "A child outlives the run.", ShellFault::LeavesChild),
    shell("run-leaves-a-file", &["LOG-RUN-LEAVES"], "A file is left behind.", ShellFault::LeavesFile),
];

/// Whether a selection is a fallback that FALLBACK_ONLY did not ask for.
fn is_fallback(payload: &Members) -> bool {
    let raw = payload.iter().find(|(name, _)| *name == "raw").and_then(|(_, raw)| raw.as_str());
    raw.is_some_and(|raw| raw.starts_with("fallback") && !raw.contains("FALLBACK_ONLY"))
}

/// The line of a `tool_ok` with the items of its patch changed, or left out.
fn items(line: Vec<u8>, change: fn(&Value) -> Option<Value>) -> Vec<Vec<u8>> {
    changed(line, "tool_ok", |_, payload| {
        let patch =
            payload.iter().find(|(name, _)| *name == "tx_patch").and_then(|(_, patch)| patch.as_array());
        let patch = patch.unwrap_or_default().iter().filter_map(change).collect();
        put(payload, "tx_patch", Value::Array(patch));
    })
}
