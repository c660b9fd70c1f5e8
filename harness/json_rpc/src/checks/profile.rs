//! The four methods of the profile: what their results have to be, in every conversation.

use super::super::model::TIMEOUT_DEFAULT_MS;
use super::super::talk::{Talk, call};
use peerproof_engine::check::Check;

/// A request that names several steps, so that a plan has something to order.
const REQUEST: &str =
    "Create a component, then test it. Refactor the old one. Review everything; write the notes.";

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let example = r#"{"task_type":"code_generation","prompt":"Detailed task description","context":{"files":["file1.js","file2.js"],"current_directory":"/project/src","dependencies":["react","typescript"],"constraints":[]},"options":{"language":"javascript","framework":"react","style_guide":"airbnb"}}"#;
    let short = r#"{"task_type":"analysis","prompt":"Add two numbers."}"#;
    let task = results(
        "execute-task/results",
        "The result of a task has a status, and what else stands in the example has its types.",
        &["RPC-EXEC-02", "RPC-EXEC-03"],
        "execute_task",
        vec![example.to_owned(), short.to_owned()],
    );
    let of_request = |more: &str| format!("{{\"user_request\":\"{REQUEST}\"{more}}}");
    let order = results(
        "create-plan/order",
        "The tasks of a plan have unique ids and wait for other tasks of the plan, never for themselves.",
        &["RPC-PLAN-01", "RPC-PLAN-03", "RPC-PLAN-05"],
        "create_plan",
        vec![
            of_request(""),
            of_request(
                r#","current_state":{"completed_tasks":[],"pending_tasks":[],"context":{}},"constraints":{"max_tasks":10,"time_limit_seconds":300}"#,
            ),
        ],
    );
    let most = [1, 2, 3, 100].map(|most| of_request(&format!(",\"constraints\":{{\"max_tasks\":{most}}}")));
    let most = results(
        "create-plan/max-tasks",
        "A plan has no more tasks than its request allows.",
        &["RPC-PLAN-02"],
        "create_plan",
        most.into(),
    );
    vec![task, order, most, raised()]
}

fn raised() -> Check {
    Check::new(
        "json_rpc/stdio/methods/error-type",
        "A method that raises is answered -32603, or -32000 with data.type EXECUTION_ERROR.",
        ["RPC-ERR-03"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-ERR-03");
            let method = talk.method("fail");
            Ok(talk.send(&call(&method, Some("{}"), Some("1"))).canary().finish())
        },
    )
    .roles(&["fail"])
    .ambient()
}

fn results(
    name: &str,
    title: &str,
    clauses: &[&'static str],
    method: &'static str,
    params: Vec<String>,
) -> Check {
    let first = clauses[0];
    Check::new(
        format!("json_rpc/stdio/{name}"),
        title,
        clauses.iter().copied(),
        "command",
        move |facts, _| {
            let mut talk = Talk::about(facts, first);
            for (at, params) in params.iter().enumerate() {
                talk.send(&call(method, Some(params), Some(&at.to_string())));
                // Whoever does real work may use the time that a call has.
                talk.allow_ms(TIMEOUT_DEFAULT_MS + 1_000);
            }
            Ok(talk.canary().finish())
        },
    )
    .feature("profile_methods")
    .ambient()
}
