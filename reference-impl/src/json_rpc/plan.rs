//! `create_plan` (RPC "Planning Request"): a plan from the words of a request.

use std::collections::HashSet;

use super::execute::clipped;
use super::method::{Call, Outcome};
use super::params::Members;
use crate::json::{Value, write_str};

/// Largest number of tasks in a plan if the request sets none (RPC example).
const TASKS_DEFAULT: i64 = 10;
/// Estimated time of a task in seconds.
const TASK_S: u64 = 60;

/// One task of a plan. It depends only on earlier tasks, so that a plan has no cycles.
struct Planned {
    kind: &'static str,
    description: String,
    dependencies: Vec<usize>,
}

/// Runs the method.
pub(super) fn create_plan(call: &Call<'_>) -> Outcome {
    let params = call.params.named(call.limits)?;
    let params = params.members();
    let request = params.string("user_request")?;
    let state = params.optional_object("current_state")?;
    let (completed, pending) =
        (state.optional_array("completed_tasks")?, state.optional_array("pending_tasks")?);
    state.optional_object("context")?;
    let constraints: Members<'_> = params.optional_object("constraints")?;
    let tasks_max = constraints.optional_integer("max_tasks", 1..=i64::MAX)?.unwrap_or(TASKS_DEFAULT);
    let tasks_max = usize::try_from(tasks_max).unwrap_or(usize::MAX).min(call.limits.rpc_plan_tasks_max);
    let time_s = constraints.optional_integer("time_limit_seconds", 0..=i64::MAX)?;

    let done: HashSet<&str> = completed.iter().filter_map(described).collect();
    let steps = steps(&request, tasks_max, |step| done.contains(step));
    let taken: HashSet<&str> = completed.iter().chain(pending).filter_map(identified).collect();
    let tasks = planned(steps);
    let ids = ids(tasks.len(), &taken);
    let needed_s = TASK_S.saturating_mul(u64::try_from(tasks.len()).unwrap_or(u64::MAX));
    let time_s = time_s.and_then(|s| u64::try_from(s).ok()).map_or(needed_s, |limit| needed_s.min(limit));
    Ok(write(&tasks, &ids, time_s).into())
}

/// Description of a task in the state, given as a string or as an object.
fn described(task: &Value) -> Option<&str> {
    task.as_str().or_else(|| task.get("description")?.as_str())
}

fn identified(task: &Value) -> Option<&str> {
    task.as_str().or_else(|| task.get("id")?.as_str())
}

/// Steps of a request in order, split at sentence ends, semicolons, line ends and " then ". Beyond `steps_max`,
/// further steps are appended to the last one.
fn steps(request: &str, steps_max: usize, is_done: impl Fn(&str) -> bool) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    for sentence in request.split(['.', ';', '\n', '!', '?']) {
        for step in sentence.split(" then ") {
            let step = step.trim().trim_start_matches(['-', '*', ' ', ',']).trim_end_matches([',', ' ']);
            let step = step.strip_suffix(" and").unwrap_or(step).trim();
            if !step.chars().any(char::is_alphanumeric) || is_done(step) {
                continue;
            }
            let full = steps.len() >= steps_max;
            match steps.last_mut() {
                Some(last) if full => {
                    if last.len() < 400 {
                        last.push_str("; ");
                        last.push_str(&clipped(step));
                    }
                }
                _ => steps.push(clipped(step).into_owned()),
            }
        }
    }
    steps
}

fn planned(steps: Vec<String>) -> Vec<Planned> {
    let mut tasks: Vec<Planned> = Vec::with_capacity(steps.len());
    for description in steps {
        let kind = kind(&description);
        // Analysis and tests wait for the last change. A change waits for the step before it.
        let last_change =
            tasks.iter().rposition(|task| matches!(task.kind, "code_generation" | "refactoring"));
        let dependencies = match kind {
            "testing" | "analysis" => last_change.into_iter().collect(),
            _ => tasks.len().checked_sub(1).into_iter().collect(),
        };
        tasks.push(Planned { kind, description, dependencies });
    }
    tasks
}

/// The type of a task, from its words.
fn kind(description: &str) -> &'static str {
    let words = description.to_lowercase();
    let has = |stems: &[&str]| {
        words
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| stems.iter().any(|stem| word.starts_with(stem)))
    };
    if has(&["test", "check", "verif", "assert"]) {
        "testing"
    } else if has(&["refactor", "rename", "clean", "split", "simplif", "move"]) {
        "refactoring"
    } else if has(&["analy", "review", "find", "why", "measure", "profile", "explain", "read"]) {
        "analysis"
    } else {
        "code_generation"
    }
}

/// Ids that no other task has.
fn ids(count: usize, taken: &HashSet<&str>) -> Vec<String> {
    let all = (1_u64..).map(|number| format!("task_{number:03}"));
    all.filter(|id| !taken.contains(id.as_str())).take(count).collect()
}

fn write(tasks: &[Planned], ids: &[String], time_s: u64) -> Vec<u8> {
    let mut out = b"{\"plan\":{\"tasks\":[".to_vec();
    for (at, (task, id)) in tasks.iter().zip(ids).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(
            format!("{{\"id\":\"{id}\",\"type\":\"{}\",\"description\":", task.kind).as_bytes(),
        );
        write_str(&mut out, &task.description);
        let dependencies: Vec<_> =
            task.dependencies.iter().filter_map(|at| ids.get(*at)).map(|id| format!("\"{id}\"")).collect();
        out.extend_from_slice(
            format!(",\"dependencies\":[{}],\"priority\":{}}}", dependencies.join(","), at + 1).as_bytes(),
        );
    }
    out.extend_from_slice(
        format!(
            "],\"estimated_time_seconds\":{time_s},\
             \"explanation\":\"one task for each step that the request names, in its order\"}}}}"
        )
        .as_bytes(),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_come_in_order_and_within_the_limit() {
        let request = "Create a component, then test it. Refactor the old one;\n- review everything!";
        let all = steps(request, 10, |_| false);
        assert_eq!(all, ["Create a component", "test it", "Refactor the old one", "review everything"]);
        assert_eq!(
            steps(request, 2, |_| false),
            ["Create a component", "test it; Refactor the old one; review everything"]
        );
        assert_eq!(steps(request, 10, |step| step == "test it").len(), 3);
        let kinds: Vec<_> = all.iter().map(|step| kind(step)).collect();
        assert_eq!(kinds, ["code_generation", "testing", "refactoring", "analysis"]);
    }
}
