//! Comparison of a tool event with its execution.

use peerproof_engine::data::json::Json;

use super::super::log::Entry;
use super::super::observations::{Execution, ExecutionOutcome, decoded};
use super::{At, LastEvent, Walk, quoted};
use crate::state::{Artifact, SLOTS, State, slot_of};
use crate::{digest, tools};

impl Walk<'_> {
    pub(super) fn patched(&mut self, patch: Option<&Json>, step: u64) {
        if let Some(Json::Object(members)) = patch {
            members.iter().for_each(|(name, value)| self.inputs.set(name, value.clone()));
        }
        let is_empty = patch.and_then(Json::as_object).is_some_and(<[_]>::is_empty);
        let entry = self.next_is(&["inputs_patched"]);
        if is_empty && (entry.is_some() || self.next().is_some()) {
            self.shown.insert("empty_patch_logged", entry.is_some().to_string());
        }
        let Some(entry) = entry else {
            if patch.is_some() && !is_empty && !(self.course.killed && self.next().is_none()) {
                let got = self.next().map_or("the end of the log".to_owned(), |it| {
                    format!("`{}` on line {}", it.event, it.line)
                });
                self.faults.add(
                    "LOG-WRITE-PATCHED",
                    "not_there",
                    "`inputs_patched` after a selection with a patch",
                    got,
                );
            }
            return;
        };
        self.at += 1;
        self.step_is(entry, step);
        let told = entry.payload.get("patch");
        if told != patch || patch.is_none() {
            let expected = format!(
                "`patch` on line {} equals the patch of the selection: {}",
                entry.line,
                quoted(patch)
            );
            self.faults.add("LOG-WRITE-PATCHED", "patch", expected, quoted(told));
        }
        if let Some(inputs) = entry.payload.get("inputs").filter(|inputs| **inputs != self.inputs) {
            self.wrong.push((At::Shown, self.selections, inputs.clone(), self.inputs.clone()));
        }
    }

    /// Compares a tool event with its execution.
    pub(super) fn tool(&mut self, aid: &str, step: u64) -> Option<()> {
        let course = self.course;
        let execution = course.tools.get(self.picks);
        // A tool that the request does not offer may be built into the runner.
        let is_builtin = self.request.tools.iter().all(|tool| tool.aid != aid)
            && execution.is_none_or(|execution| execution.aid != aid);
        let execution = execution.filter(|_| !is_builtin);
        let event = self.next_is(&["tool_ok", "tool_error"]);
        if event.is_none() && course.killed && self.next().is_none() {
            self.picks += usize::from(execution.is_some());
            return Some(());
        }
        self.picks += usize::from(!is_builtin);
        let Some(event) = event else {
            let expected = "`tool_ok` or `tool_error` after a PICK";
            let next = self.next().map(|entry| format!("no tool event before line {}", entry.line));
            let got = next.unwrap_or_else(|| "no tool event before the end of the log".to_owned());
            self.faults.add("LOG-RUN-ONCE", "no_event", expected, got);
            return None;
        };
        let line = event.line;
        self.at += 1;
        self.step_is(event, step);
        if let Some(second) = self.next_is(&["tool_ok", "tool_error"]) {
            let expected = "one tool event for each PICK";
            self.faults.add(
                "LOG-RUN-ONCE",
                "second_event",
                expected,
                format!("a second tool event on line {}", second.line),
            );
            return None;
        }
        let before = self.state.clone();
        let came = match execution {
            None if is_builtin => {
                // The output and the effect of a built-in tool are unknown.
                self.is_off = true;
                let told = event.payload.get("output_json").and_then(Json::as_str).unwrap_or_default();
                ExecutionOutcome::Either(Some((told.to_owned(), before.clone())))
            }
            None if course.has_toolhost => {
                let expected = "one execution of a tool for each PICK";
                self.faults.add(
                    "LOG-RUN-ONCE",
                    "no_execution",
                    expected,
                    format!("no execution for line {line}"),
                );
                return None;
            }
            None => ExecutionOutcome::Failure,
            Some(execution) => {
                self.given(execution, aid, step)?;
                execution.came.clone()
            }
        };
        let is_ok = event.event == "tool_ok";
        let success = match came {
            ExecutionOutcome::Success(output, state) => Some((output, state)).filter(|_| is_ok),
            ExecutionOutcome::Failure | ExecutionOutcome::Late => None,
            ExecutionOutcome::Either(success) if is_ok => success,
            ExecutionOutcome::Either(_) => None,
        };
        let is_due = execution.is_some_and(|it| matches!(it.came, ExecutionOutcome::Success(..)));
        if is_ok != success.is_some() || is_due && !is_ok {
            let is_late = execution.is_some_and(|it| it.came == ExecutionOutcome::Late);
            let clause = match () {
                () if is_late => "LOG-RUN-TIME",
                () if tools::is_patient(aid) => "LOG-RUN-CLOSED",
                () => "LOG-RUN-OK",
            };
            let expected = if is_ok { "`tool_error`" } else { "`tool_ok`" };
            let got = format!("`{}` on line {line}: {}", event.event, quoted(Some(&event.payload)));
            self.faults.add(clause, if is_ok { "failure_as_ok" } else { "success_as_error" }, expected, got);
            return None;
        }
        let is_own = event.payload.get("aid").and_then(Json::as_str) == Some(aid);
        self.member(event, "aid", &format!("{aid:?}"), is_own)?;
        match success {
            Some((output, after)) => {
                self.ok(event, &output, &before, &after)?;
                self.state = after;
                (self.has_failed, self.last) = (false, LastEvent::Ok);
            }
            None => {
                let text = |name: &str| event.payload.get(name).and_then(Json::as_str).unwrap_or_default();
                let is_status = ["TOOL_ERROR", "INVALID_PICK", "BREAKER_TRIP"].contains(&text("status"));
                self.member(event, "status", "TOOL_ERROR, INVALID_PICK or BREAKER_TRIP", is_status)?;
                self.member(event, "error", "a string that is not empty", !text("error").is_empty())?;
                (self.has_failed, self.last) = (true, LastEvent::Error);
            }
        }
        self.whole += 1;
        Some(())
    }

    /// Compares the request that a tool got with the one that is due.
    fn given(&mut self, execution: &Execution, aid: &str, step: u64) -> Option<()> {
        match &execution.given {
            Err(why) => {
                let expected = "a valid request to a toolhost";
                self.faults.add("LOG-RUN-REQUEST", "bad_request", expected, *why);
                return None;
            }
            Ok((input, state)) => {
                if execution.aid != aid {
                    let got = format!("{:?} was run", execution.aid);
                    self.faults.add("LOG-RUN-ONCE", "other_tool", format!("{aid:?} is run"), got);
                    return None;
                }
                if *input != self.inputs {
                    self.wrong.push((At::Tool, self.selections, input.clone(), self.inputs.clone()));
                }
                if *state != self.state {
                    let expected =
                        format!("the tool of step {step} gets the state {}", self.state.to_json().to_text());
                    self.off("LOG-RUN-STATE", "state", expected, state.to_json().to_text());
                }
            }
        }
        Some(())
    }

    fn ok(&mut self, event: &Entry, output: &str, before: &State, after: &State) -> Option<()> {
        let payload = &event.payload;
        let flag = payload.get("deterministic").and_then(Json::as_bool);
        self.member(event, "deterministic", "a boolean", flag.is_some())?;
        let aid = payload.get("aid").and_then(Json::as_str);
        let offered = self.request.tools.iter().find(|tool| Some(tool.aid.as_str()) == aid);
        if let Some(tool) = offered.filter(|tool| Some(tool.deterministic) != flag) {
            let expected = format!("`deterministic` of {} is {}", tool.aid, tool.deterministic);
            self.faults.add("LOG-RUN-FLAG", "deterministic", expected, quoted(payload.get("deterministic")));
        }
        let told = payload.get("output_json").and_then(Json::as_str);
        let value = told.and_then(|text| decoded(text.as_bytes()));
        self.member(event, "output_json", "a string that holds strict JSON", value.is_some())?;
        if value != decoded(output.as_bytes()) {
            self.faults.add("LOG-RUN-OUTPUT", "output_json", output, told.unwrap_or_default());
        } else if told != Some(output) {
            self.faults.add("LOG-RUN-BYTES", "output_json", output, told.unwrap_or_default());
        }
        let items = payload.get("tx_patch").and_then(Json::as_array);
        self.member(event, "tx_patch", "an array", items.is_some())?;
        let digest = payload.get("state_digest").and_then(Json::as_str);
        self.member(event, "state_digest", "a string", digest.is_some())?;
        if !self.is_off {
            let told = self.items(event, items.unwrap_or_default(), before, after);
            let right = digest::of_state(after);
            let is_other =
                told.is_some_and(|told| told != *after && digest == Some(&digest::of_state(&told)));
            if is_other {
                // Patch and digest agree on another state, so there is one fault.
                self.is_off = true;
            } else if digest != Some(&right) {
                let expected = format!("`state_digest` on line {} is {right}", event.line);
                self.faults.add("LOG-RUN-DIGEST", "state_digest", expected, digest.unwrap_or_default());
            }
        }
        Some(())
    }

    /// Judges a `tx_patch`. Returns the resulting state if the patch is well-formed.
    fn items(&mut self, event: &Entry, items: &[Json], before: &State, after: &State) -> Option<State> {
        let (mut state, mut seen) = (before.clone(), [false; SLOTS]);
        for item in items {
            let got = || format!("line {}: {}", event.line, quoted(Some(item)));
            let op = item.get("op").and_then(Json::as_str).unwrap_or_default();
            let value = item.get("value").map(Artifact::read);
            let is_whole = match op {
                "add" | "replace" => matches!(value, Some(Ok(_))),
                "remove" => item.get("value").is_none(),
                _ => false,
            };
            let Some(slot) = slot_of(item).filter(|_| is_whole) else {
                let expected = "`op` add or replace with an Artifact, or remove without one, and `path` \
                    from /slots/0 to /slots/7";
                self.faults.add("LOG-WRITE-ITEMS", "bad_item", expected, got());
                return None;
            };
            if state.0[slot].is_some() == (op == "add") {
                let expected = "`op` add for an empty slot, replace or remove for a used one";
                self.faults.add("LOG-WRITE-OP", "op", expected, got());
            }
            if std::mem::replace(&mut seen[slot], true) {
                self.faults.add("LOG-WRITE-SLOT", "slot_twice", "one item per slot", got());
            }
            state.0[slot] = value.and_then(Result::ok);
            if let Some(artifact) = state.0[slot].as_mut().filter(|artifact| !artifact.has_right_size()) {
                artifact.size_bytes = artifact.content_json.len() as u64;
                let expected = format!("`size_bytes` is {}", artifact.size_bytes);
                self.faults.add("LOG-WRITE-SIZE", "size_bytes", expected, got());
            }
        }
        if state != *after {
            let expected =
                format!("`tx_patch` on line {} leads to the state {}", event.line, after.to_json().to_text());
            self.faults.add("LOG-WRITE-ITEMS", "other_state", expected, state.to_json().to_text());
        } else if before == after && !items.is_empty() {
            let got = format!("line {}: {} items", event.line, items.len());
            self.faults.add(
                "LOG-WRITE-UNCHANGED",
                "items",
                "`tx_patch` is [], because the tool changed nothing",
                got,
            );
        }
        Some(state)
    }
}
