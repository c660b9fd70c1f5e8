//! Mutants of the runner.

mod requests;

use super::values::{coarse, first_page, first_paragraph, given_as_object};
use super::wire::{
    Edit, Members, Rewired, Rewrite, asks, brittle, changed, edit, fragile, hears, keeps_doubted,
    keeps_failed, left_open, member, members, merged_by, merged_deep, more, put, replied, take, text_in,
    without_nulls,
};
use crate::json::{Policy, Value};
use crate::machine::{Action, Machine};
use crate::mutant::{self, Seam, ShellFault, config, parts, shell};
use crate::policy_driver::{Merge, SelectionKind};
use crate::run_log::digest::{digested, sha256_hex, state_digest};
use crate::run_log::event::{Event, ToolOk};
use crate::run_log::line::text_of;
use crate::run_log::state::{Item, State, request};
use crate::run_log::tool::{Outcome, Success, UNSAID};
use crate::run_log::{Config, Ordinary, Run, Runner, RunnerDecisions, RunnerParts, ToolEntry};

/// A runner that breaks clauses.
pub type Mutant = mutant::Mutant<Config, Box<dyn RunnerDecisions>, Rewrite, RunnerFault>;

/// Fault around a correct runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerFault {
    /// The log always ends with `run_finished`, which the next line replaces.
    ClosesLog,
}

impl Mutant {
    /// The mutant as a machine with this selector. If the fault lies around the machine, the machine is correct.
    pub fn machine(&self, config: Config, selector: Box<dyn Machine + Send>) -> Box<dyn Machine + Send> {
        let right = |_: &Config| -> Box<dyn RunnerDecisions> { Box::new(Ordinary) };
        let build =
            |config, ways| -> mutant::Inner { Box::new(Runner::new(config, RunnerParts { selector, ways })) };
        self.build(config, right, build, |machine, rewrite| Box::new(Rewired::new(machine, rewrite)))
    }
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    MUTANTS.iter().find(|mutant| mutant.id == id).copied()
}

/// Creates a mutant that replaces decisions: given methods; or an edit of the run before the selector sees it
/// (`shown`), of the end of an execution (`ended`), or of a correct `tool_ok`, given the run before and the state
/// after (`ok`).
macro_rules! decides {
    ($id:literal, $clause:literal, $fault:literal, { $($methods:tt)* }) => {
        parts($id, &[$clause], $fault, |_, ways| {
            #[derive(Debug)]
            struct Careless;
            impl RunnerDecisions for Careless { $($methods)* }
            *ways = Box::new(Careless);
        })
    };
    ($id:literal, $clause:literal, $fault:literal, shown: $change:expr) => {
        decides!($id, $clause, $fault, {
            fn selection_request(&self, run: &Run) -> Vec<u8> {
                let (mut run, change): (Run, fn(&mut Run)) = (run.clone(), $change);
                change(&mut run);
                Ordinary.selection_request(&run)
            }
        })
    };
    ($id:literal, $clause:literal, $fault:literal, ended: $change:expr) => {
        decides!($id, $clause, $fault, {
            fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
                let change: fn(&Run, Outcome) -> Outcome = $change;
                Ordinary.outcome(run, tool, change(run, outcome))
            }
        })
    };
    ($id:literal, $clause:literal, $fault:literal, ok: $change:expr) => {
        decides!($id, $clause, $fault, {
            fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
                let change: fn(&Run, &mut ToolOk, &State) = $change;
                let (mut event, after) = Ordinary.outcome(run, tool, outcome);
                if let Event::ToolOk(event) = &mut event {
                    change(run, event, &after);
                }
                (event, after)
            }
        })
    };
}

pub(super) use decides;

pub(super) const fn writes(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    edit: Edit,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(Rewrite::Written(edit)))
}

/// Corrects the SID in a driver's pick.
fn sid_put_right(said: &[u8], right: fn(&str) -> String) -> Vec<u8> {
    const PICK: &str = "<PICK><";
    let parts = std::str::from_utf8(said).ok().and_then(|text| text.strip_prefix(PICK)?.split_once('>'));
    parts.map_or_else(|| said.to_vec(), |(sid, rest)| format!("{PICK}{}>{rest}", right(sid)).into_bytes())
}

/// All mutants.
pub const MUTANTS: &[Mutant] = &{
    let mut all = [RUNS[0]; RUNS.len() + requests::MUTANTS.len()];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < RUNS.len() { RUNS[at] } else { requests::MUTANTS[at - RUNS.len()] };
        at += 1;
    }
    all
};

/// Mutants with a fault after the request.
const RUNS: &[Mutant] = &[
    writes("run-ends-without-header", &["LOG-WRITE-HEADER"], "run_finished has no run_id.", |_, line| {
        changed(line, "run_finished", |whole, _| take(whole, "run_id"))
    }),
    writes("run-numbers-its-version", &["LOG-WRITE-HEADER"], "spec_version is a number.", |_, line| {
        changed(line, "", |whole, _| put(whole, "spec_version", Value::Number(1_i64.into())))
    }),
    writes("run-names-itself", &["LOG-WRITE-FORM"], "run_id is no UUID.", |_, line| {
        changed(line, "", |whole, _| {
            let id = format!("run-{}", text_in(whole, "run_id"));
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
        RunnerFault::ClosesLog,
    ),
    decides!("run-replaces-what-stays", "LOG-WRITE-UNCHANGED",
    "A patch that changes nothing replaces slots.",
    ok: |_, event, after| {
        if event.tx_patch.is_empty() {
            let replace = |item: &Item| {
                let mut item = members(&item.to_value());
                put(&mut item, "op", "replace".into());
                Value::Object(item)
            };
            event.tx_patch = State::default().patch_to(after).iter().map(replace).collect();
        }
    }),
    decides!("run-digests-in-capitals", "LOG-RUN-DIGEST", "Digests have upper-case digits.",
        ok: |_, event, after| event.state_digest = state_digest(after).to_uppercase().as_str().into()),
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
            given_as_object(&Ordinary.tool_request(run))
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
    hears(
        "run-takes-other-names-of-slots",
        &["LOG-RUN-OK"],
        "The slots 07, +7 and so on of a reply are slot 7.",
        |said| {
            let text = String::from_utf8_lossy(said).into_owned();
            let mended = |text: String, name: &&str| text.replace(&format!("\"{name}\":"), "\"7\":");
            ["07", "+7", " 7", "٧"].iter().fold(text, mended).into_bytes()
        },
    ),
    hears("run-passes-over-slots", &["LOG-RUN-OK"], "The slot 8 of a reply is passed over.", |said| {
        replied(said, |reply| {
            edit(reply, "ds_state", |state| {
                edit(state, "slots", |slots| {
                    let mut kept = members(slots);
                    take(&mut kept, "8");
                    *slots = Value::Object(kept);
                });
            });
        })
    }),
    hears(
        "run-takes-no-state-for-an-empty-one",
        &["LOG-WRITE-ITEMS"],
        "A success without ds_state empties the state.",
        |said| {
            replied(said, |reply| {
                if reply.get("ds_state").is_none() {
                    let mut members = members(reply);
                    put(&mut members, "ds_state", Value::Object(Vec::new()));
                    *reply = Value::Object(members);
                }
            })
        },
    ),
    mutant::machine(
        "run-keeps-the-state-of-failures",
        &["LOG-RUN-FAILED"],
        "The tool behind one that failed gets the state of its reply.",
        keeps_failed,
    ),
    mutant::machine(
        "run-keeps-the-state-of-doubts",
        &["LOG-RUN-FAILED"],
        "A success with an error is a tool_error, and the next tool gets its state.",
        keeps_doubted,
    ),
    writes(
        "run-keeps-patches-of-fallbacks",
        &["LOG-WRITE-RAW"],
        "A pick that is not on the menu leaves its patch to the fallback.",
        |_, line| {
            changed(line, "selector_chosen", |_, payload| {
                if text_in(payload, "raw").ends_with("not in the menu") {
                    put(payload, "input_patch_json", "{\"k\":2}".into());
                }
            })
        },
    ),
    decides!("run-compares-contents", "LOG-WRITE-ITEMS",
    "A slot has no item where its content alone stays.",
    ok: |run, event, after| {
        let content =
            |state: &State, at: usize| state.slots[at].as_ref().map(|held| held.content_json.clone());
        let is_new = |it: &Item| content(&run.state, it.slot) != content(after, it.slot);
        let items = run.state.patch_to(after).into_iter().filter(is_new);
        event.tx_patch = items.map(|item| item.to_value()).collect();
    }),
    decides!("run-knows-seven-slots", "LOG-WRITE-ITEMS", "The slot 7 of a reply is passed over.",
    ended: |_, outcome| {
        outcome.map(|mut success| {
            success.state.slots[7] = None;
            success
        })
    }),
    decides!("run-composes-outputs", "LOG-RUN-OUTPUT", "An output is brought into the form NFC.",
    ended: |_, outcome| {
        outcome.map(|success| {
            let text = success.output_json.to_lossy().replace("e\u{301}", "é");
            Success { output_json: text.as_str().into(), ..success }
        })
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
    writes(
        "run-lowers-request-ids",
        &["LOG-WRITE-REQUEST"],
        "request_id is written in lower case.",
        |_, line| {
            changed(line, "", |whole, _| {
                let id = text_in(whole, "request_id").to_lowercase();
                put(whole, "request_id", id.as_str().into());
            })
        },
    ),
    writes("run-loses-request-ids", &["LOG-WRITE-REQUEST"], "Tool events have no request_id.", |_, line| {
        changed(line, "tool_ok", |whole, _| take(whole, "request_id"))
    }),
    writes("run-counts-by-two", &["LOG-WRITE-STEP"], "Steps are 0, 2, 4.", |_, line| {
        changed(line, "", |whole, _| {
            let step = member(whole, "step").and_then(Value::as_i64).unwrap_or_default();
            put(whole, "step", Value::Number((step * 2).into()));
        })
    }),
    writes("run-counts-one-more", &["LOG-WRITE-STEPS"], "`steps` is one too many.", |_, line| {
        changed(line, "run_finished", |_, payload| {
            let steps = member(payload, "steps").and_then(Value::as_i64).unwrap_or_default();
            put(payload, "steps", Value::Number((steps + 1).into()));
        })
    }),
    writes("run-hides-fallbacks", &["LOG-WRITE-RAW"], "The raw of a fallback is a block.", |_, line| {
        changed(line, "selector_chosen", |_, payload| {
            if text_in(payload, "raw").starts_with("fallback") {
                put(payload, "raw", "<PICK><SID0001><END>".into());
            }
        })
    }),
    writes("run-blanks-raw", &["LOG-WRITE-RAW"], "The raw of a PICK is empty.", |_, line| {
        changed(line, "selector_chosen", |_, payload| {
            if text_in(payload, "raw").contains("<PICK>") {
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
                if member(payload, "aid").is_none() {
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
                let patch = member(payload, "patch").cloned().unwrap_or(Value::Null);
                put(payload, "inputs", patch);
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
            vec![Value::Object(item)]
        })
    }),
    writes("run-adds-to-used-slots", &["LOG-WRITE-OP"], "A used slot is added to.", |_, line| {
        items(line, |item| {
            let mut members = members(item);
            if item.get("op") == Some(&"replace".into()) {
                put(&mut members, "op", "add".into());
            }
            vec![Value::Object(members)]
        })
    }),
    writes(
        "run-hides-removals",
        &["LOG-WRITE-ITEMS"],
        "A patch does not tell what was removed.",
        |_, line| {
            items(line, |item| {
                if item.get("op") == Some(&"remove".into()) { Vec::new() } else { vec![item.clone()] }
            })
        },
    ),
    writes("run-takes-two-items", &["LOG-WRITE-SLOT"], "A slot is emptied and filled anew.", |_, line| {
        items(line, |item| {
            let mut filled = members(item);
            if item.get("op") != Some(&"replace".into()) {
                return vec![item.clone()];
            }
            let mut emptied = filled.clone();
            take(&mut emptied, "value");
            put(&mut emptied, "op", "remove".into());
            put(&mut filled, "op", "add".into());
            vec![Value::Object(emptied), Value::Object(filled)]
        })
    }),
    writes("run-spells-outputs-anew", &["LOG-RUN-BYTES"], "An output is written anew.", |_, line| {
        changed(line, "tool_ok", |_, payload| {
            let value = Value::parse(text_in(payload, "output_json").as_bytes(), 128, &Policy::default());
            put(payload, "output_json", text_of(&value.unwrap_or(Value::Null)).as_str().into());
        })
    }),
    asks(
        "run-writes-no-log",
        &["LOG-RUN-UNWRITTEN", "LOG-WRITE-END"],
        "There is no log, and nobody is told.",
        |action| match action {
            Action::Append(_) => Vec::new(),
            other => vec![other],
        },
    ),
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
    decides!("run-shows-drivers-old-inputs", "LOG-RUN-PAYLOAD", "Drivers get the inputs of the request.",
        shown: |run| run.inputs = text_of(&run.request.inputs)),
    decides!("run-shows-drivers-no-state", "LOG-RUN-PAYLOAD", "Drivers get the digest of an empty state.",
        shown: |run| run.state = State::default()),
    decides!("run-hides-a-tool", "LOG-RUN-MENU", "The last tool is not on the menu.",
        shown: |run| drop(run.request.tools.pop())),
    decides!("run-offers-twenty-tools", "LOG-RUN-MENU", "A menu has at most 20 tools.",
        shown: |run| run.request.tools.truncate(20)),
    decides!("run-offers-a-hundred-tools", "LOG-RUN-MENU", "A menu has at most 100 tools.",
        shown: |run| run.request.tools.truncate(100)),
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
    decides!("run-takes-failures-for-success", "LOG-RUN-OK", "A tool that failed is tool_ok.",
    ended: |run, outcome| {
        let nothing = |_| Success { output_json: "{}".into(), state: run.state.clone() };
        Ok(outcome.unwrap_or_else(nothing))
    }),
    decides!("run-copies-empty-errors", "LOG-WRITE-EVENTS",
    "The error of a failure is empty where the toolhost told none.",
    ended: |_, outcome| {
        outcome.map_err(|mut failed| {
            if failed.error == UNSAID {
                failed.error = "".into();
            }
            failed
        })
    }),
    decides!("run-drops-the-state-of-failures", "LOG-RUN-FAILED", "A failure empties the state.", {
        fn outcome(&self, run: &Run, tool: &ToolEntry, outcome: Outcome) -> (Event, State) {
            match Ordinary.outcome(run, tool, outcome) {
                (event @ Event::ToolError { .. }, _) => (event, State::default()),
                right => right,
            }
        }
    }),
    decides!("run-calls-all-random", "LOG-RUN-FLAG", "Every tool is deterministic:false.",
        ok: |_, event, _| event.deterministic = false),
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
    decides!("run-loses-outputs", "LOG-RUN-OUTPUT", "Every output is {}.",
        ended: |_, outcome| outcome.map(|success| Success { output_json: "{}".into(), ..success })),
    decides!("run-digests-the-state-before", "LOG-RUN-DIGEST", "A digest is that of the state before.",
        ok: |run, event, _| event.state_digest = state_digest(&run.state).as_str().into()),
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
    decides!("run-digests-in-order-of-filling", "LOG-RUN-DIGEST",
    "The slots of a digest stand in the order in which they were filled.",
    ok: |run, event, after| {
        let of = |is_new: bool| {
            let mut state = after.clone();
            for (held, before) in state.slots.iter_mut().zip(&run.state.slots) {
                if before.is_none() != is_new {
                    *held = None;
                }
            }
            digested(&state)
        };
        event.state_digest = sha256_hex(&[of(false), of(true)].concat()).as_str().into();
    }),
    decides!("run-writes-entities", "LOG-RUN-OUTPUT", "`<` in an output becomes `&lt;`.",
    ended: |_, outcome| {
        outcome.map(|success| {
            let text = success.output_json.to_lossy().replace('<', "&lt;");
            Success { output_json: text.as_str().into(), ..success }
        })
    }),
    hears("run-reads-one-page", &["LOG-RUN-OUTPUT"], "Of a reply only 4 KiB are read.", first_page),
    hears(
        "run-splits-at-separators",
        &["LOG-WRITE-RAW"],
        "U+2028 ends what a program says.",
        first_paragraph,
    ),
    config("run-waits-for-ever", &["LOG-RUN-TIME"], "A tool may take as long as it likes.", |config| {
        config.limits.toolhost_timeout_ms = 1 << 40;
    }),
    config(
        "run-waits-six-times-as-long",
        &["LOG-RUN-TIME"],
        "A tool may take six times as long.",
        |config| {
            config.limits.toolhost_timeout_ms *= 6;
        },
    ),
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

/// True if a selection is a fallback without a FALLBACK_ONLY request.
fn is_fallback(payload: &Members) -> bool {
    let raw = text_in(payload, "raw");
    raw.starts_with("fallback") && !raw.contains("FALLBACK_ONLY")
}

/// Replaces each item in the patch of a `tool_ok` line.
fn items(line: Vec<u8>, change: fn(&Value) -> Vec<Value>) -> Vec<Vec<u8>> {
    changed(line, "tool_ok", |_, payload| {
        let patch = member(payload, "tx_patch").and_then(Value::as_array).unwrap_or_default();
        let patch = patch.iter().flat_map(change).collect();
        put(payload, "tx_patch", Value::Array(patch));
    })
}
