//! Mutants that give drivers another payload.

use super::super::tree::{self, edited, get, put, take};
use super::command::started_by;
use super::selections::is_fallback_for;
use super::{Mutant, Rewiring, wire};
use crate::json::Value;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::text::{swap, swap_last};
use crate::mutant::{Inner, machine};

/// Edits the menu of a payload.
fn in_menu(payload: &mut Vec<u8>, change: impl FnOnce(&mut Vec<Value>)) {
    *payload = edited(payload, |members| {
        if let Some(Value::Array(entries)) = get(members, "menu") {
            change(entries);
        }
    });
}

fn each_entry(payload: &mut Vec<u8>, change: impl Fn(&mut tree::Members)) {
    in_menu(payload, |entries| {
        for entry in entries {
            if let Value::Object(members) = entry {
                change(members);
            }
        }
    });
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    wire(
        "select-payload-with-comma",
        &["PD-FILE-01"],
        "The payload has a trailing comma.",
        Rewiring::Request(|request| request.payload = swap_last(&request.payload, "}", ",}")),
    ),
    wire(
        "select-payload-with-bom",
        &["PD-FILE-01"],
        "The payload begins with a byte order mark.",
        Rewiring::Request(|request| request.payload = [b"\xEF\xBB\xBF", request.payload.as_slice()].concat()),
    ),
    wire(
        "select-payload-wrapped",
        &["PD-FILE-01"],
        "The payload is a member of another object.",
        Rewiring::Request(|request| {
            request.payload = [b"{\"payload\":", request.payload.as_slice(), b"}"].concat()
        }),
    ),
    wire(
        "select-payload-without-state",
        &["PD-FILE-01"],
        "The payload has no `state_digest`.",
        Rewiring::Request(|request| {
            request.payload = swap(&request.payload, "\"state_digest\"", "\"digest\"")
        }),
    ),
    wire(
        "select-payload-without-mode",
        &["PD-FILE-01"],
        "The payload has no `control_mode`.",
        Rewiring::Request(|request| request.payload = swap(&request.payload, "\"control_mode\"", "\"mode\"")),
    ),
    wire(
        "select-payload-without-inputs",
        &["PD-FILE-02"],
        "The inputs of the payload are empty.",
        Rewiring::Request(|request| {
            request.payload =
                edited(&request.payload, |members| put(members, "inputs", Value::Object(Vec::new())))
        }),
    ),
    wire(
        "select-cuts-payloads",
        &["PD-FILE-02"],
        "Strings of a payload over 5 MB are cut to it.",
        Rewiring::Request(|request| {
            if request.payload.len() > 5 << 20 {
                request.payload = edited(&request.payload, |members| {
                    put(members, "inputs", Value::Object(vec![("k".into(), "payload".into())]));
                });
            }
        }),
    ),
    wire(
        "select-swaps-digests",
        &["PD-FILE-02"],
        "The two digests are swapped.",
        Rewiring::Request(|request| {
            request.payload = edited(&request.payload, |members| {
                let goal = take(members, "goal_digest");
                let state = take(members, "state_digest");
                put(members, "goal_digest", state.unwrap_or(Value::Null));
                put(members, "state_digest", goal.unwrap_or(Value::Null));
            })
        }),
    ),
    wire(
        "select-sorts-menu",
        &["PD-FILE-02"],
        "The menu of the payload is sorted by SID.",
        Rewiring::Request(|request| {
            in_menu(&mut request.payload, |entries| {
                entries.sort_by_key(|entry| entry.get("sid").and_then(Value::as_str).map(str::to_owned));
            })
        }),
    ),
    wire(
        "select-cuts-menu",
        &["PD-FILE-02"],
        "No more than a hundred entries of the menu reach the payload.",
        Rewiring::Request(|request| in_menu(&mut request.payload, |entries| entries.truncate(100))),
    ),
    wire(
        "select-loses-tags",
        &["PD-FILE-02"],
        "Entries of the payload have no tags.",
        Rewiring::Request(|request| {
            each_entry(&mut request.payload, |entry| put(entry, "tags", Value::Array(Vec::new())))
        }),
    ),
    wire(
        "select-sorts-tags",
        &["PD-FILE-02"],
        "Tags of an entry are sorted.",
        Rewiring::Request(|request| {
            each_entry(&mut request.payload, |entry| {
                if let Some(Value::Array(tags)) = get(entry, "tags") {
                    tags.sort_by_key(|tag| tag.as_str().map(str::to_owned));
                }
            })
        }),
    ),
    wire(
        "select-loses-aids",
        &["PD-FILE-02"],
        "Entries of the payload have no `aid`.",
        Rewiring::Request(|request| each_entry(&mut request.payload, |entry| drop(take(entry, "aid")))),
    ),
    wire(
        "select-name-is-aid",
        &["PD-FILE-02"],
        "The name of an entry is its aid.",
        Rewiring::Request(|request| {
            each_entry(&mut request.payload, |entry| {
                if let Some(aid) = get(entry, "aid").cloned() {
                    put(entry, "name", aid);
                }
            })
        }),
    ),
    machine(
        "select-keeps-patches",
        &["PD-FILE-02"],
        "The patch of a Selection stays in force for the inputs of later requests.",
        |inner| Box::new(KeepsPatches { inner, patch: tree::Members::new() }),
    ),
    machine(
        "select-quotes-stderr",
        &["PD-SELN-06"],
        "`raw` of a failure is what the driver wrote to standard error.",
        |inner| Box::new(QuotesStderr { inner, heard: Vec::new() }),
    ),
];

struct KeepsPatches {
    inner: Inner,
    patch: tree::Members,
}

impl Machine for KeepsPatches {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let from = actions.len();
        self.inner.handle(event, now, actions);
        for action in &mut actions[from..] {
            match action {
                Action::Drive(order) => {
                    order.payload = edited(&order.payload, |members| {
                        if let Some(Value::Object(inputs)) = get(members, "inputs") {
                            for (name, value) in &self.patch {
                                put(inputs, &name.to_lossy(), value.clone());
                            }
                        }
                    });
                }
                Action::Stdout(line) => {
                    let patch = tree::parse(line)
                        .and_then(|line| tree::members(line.get("input_patch_json")?.as_str()?.as_bytes()));
                    self.patch.extend(patch.unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Hears what a driver that fails wrote to standard error behind its output.
struct QuotesStderr {
    inner: Inner,
    heard: Vec<u8>,
}

impl Machine for QuotesStderr {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        const SCRIPT: &str = "f=\"${TMPDIR:-/tmp}/stderr.$$\"; \"$@\" 2>\"$f\"; s=$?; \
                              [ $s = 0 ] || cat \"$f\"; rm -f \"$f\"; exit $s";
        if let Event::ChildStdout(bytes) = event {
            self.heard.extend_from_slice(bytes);
        }
        let from = actions.len();
        self.inner.handle(event, now, actions);
        for action in &mut actions[from..] {
            match action {
                Action::Drive(order) => {
                    self.heard.clear();
                    started_by(order, SCRIPT);
                }
                Action::Stdout(line) if is_fallback_for(line, &["status"]) && !self.heard.is_empty() => {
                    let heard = String::from_utf8_lossy(&self.heard).into_owned();
                    *line = edited(line, |members| put(members, "raw", heard.as_str().into()));
                    line.push(b'\n');
                }
                _ => {}
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}
