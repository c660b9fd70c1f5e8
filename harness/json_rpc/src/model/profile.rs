//! The four methods of the profile (RPC Message Types): required params and results.

use std::collections::{HashMap, HashSet};

use super::NOT_FROM_METHODS_OF_THE_PROFILE;
use super::allowed;
use super::work::{RequestedTimeout, wish};
use super::{AnswerKind, Codes, Demand, ErrorRule, IdRule, RequestPart, code};
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::shorten;

/// Methods, in the order of the document.
pub const METHODS: [&str; 4] = ["execute_task", "create_plan", "validate_code", "update_context"];

/// Required shape of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A task.
    Task,
    /// A plan with at most this number of tasks.
    Plan(Option<u64>),
}

/// Type of a member of params.
enum Kind {
    /// Text. Another type or an empty text is open.
    Text,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// An object with these members. Further members are open.
    Object(&'static [Member]),
    /// An array of anything.
    Array,
    /// An array of texts.
    Texts,
    /// An integer of at least this value.
    From(i64),
    /// A boolean.
    Flag,
    /// `timeout_ms`.
    Timeout,
    /// An object with any members.
    AnyObject,
}

struct Member {
    name: &'static str,
    required: bool,
    kind: Kind,
}

const fn needed(name: &'static str, kind: Kind) -> Member {
    Member { name, required: true, kind }
}

const fn may(name: &'static str, kind: Kind) -> Member {
    Member { name, required: false, kind }
}

const EXECUTE_TASK: &[Member] = &[
    needed("task_type", Kind::OneOf(&["code_generation", "refactoring", "analysis", "testing"])),
    needed("prompt", Kind::Text),
    may(
        "context",
        Kind::Object(&[
            may("files", Kind::Texts),
            may("current_directory", Kind::Text),
            may("dependencies", Kind::Texts),
            may("constraints", Kind::Array),
        ]),
    ),
    may(
        "options",
        Kind::Object(&[
            may("language", Kind::Text),
            may("framework", Kind::Text),
            may("style_guide", Kind::Text),
            may("timeout_ms", Kind::Timeout),
            may("stream", Kind::Flag),
        ]),
    ),
];

const CREATE_PLAN: &[Member] = &[
    needed("user_request", Kind::Text),
    may(
        "current_state",
        Kind::Object(&[
            may("completed_tasks", Kind::Array),
            may("pending_tasks", Kind::Array),
            may("context", Kind::AnyObject),
        ]),
    ),
    may(
        "constraints",
        Kind::Object(&[may("max_tasks", Kind::From(1)), may("time_limit_seconds", Kind::From(0))]),
    ),
];

const VALIDATE_CODE: &[Member] =
    &[needed("code", Kind::Text), needed("language", Kind::Text), may("rules", Kind::Texts)];

const UPDATE_CONTEXT: &[Member] = &[
    needed("action", Kind::OneOf(&["add", "remove", "modify"])),
    needed("context_type", Kind::OneOf(&["file", "dependency", "state"])),
    needed("data", Kind::AnyObject),
];

/// Verdict about the params of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// Must be accepted.
    Fine,
    /// May be accepted or refused.
    Open,
    /// Must be refused.
    Wrong,
}

fn all(members: &[Member], object: &[(String, Json)]) -> Fit {
    let unknown = object.iter().any(|(name, _)| !members.iter().any(|member| member.name == name));
    let fits = members.iter().map(|member| match object.iter().find(|(name, _)| name == member.name) {
        None if member.required => Fit::Wrong,
        None => Fit::Fine,
        Some((_, Json::Null)) => Fit::Open,
        Some((_, value)) => one(&member.kind, value),
    });
    fits.max().unwrap_or(Fit::Fine).max(if unknown { Fit::Open } else { Fit::Fine })
}

fn one(kind: &Kind, value: &Json) -> Fit {
    let fine = |is: bool| if is { Fit::Fine } else { Fit::Open };
    match kind {
        Kind::Text => fine(value.as_str().is_some_and(|text| !text.is_empty())),
        Kind::OneOf(known) => match value.as_str() {
            Some(text) if known.contains(&text) => Fit::Fine,
            _ => Fit::Wrong,
        },
        // Faults within an optional member are open, like its type.
        Kind::Object(members) => {
            value.as_object().map_or(Fit::Open, |object| all(members, object).min(Fit::Open))
        }
        Kind::AnyObject => fine(matches!(value, Json::Object(_))),
        Kind::Array => fine(matches!(value, Json::Array(_))),
        Kind::Texts => {
            fine(value.as_array().is_some_and(|items| items.iter().all(|item| item.as_str().is_some())))
        }
        Kind::From(least) => fine(value.as_i64().is_some_and(|number| number >= *least)),
        Kind::Flag => fine(matches!(value, Json::Bool(_))),
        // The bounds of the timeout are checked with the whole params.
        Kind::Timeout => fine(matches!(value, Json::Number(_))),
    }
}

/// Required `data.type` of a method's error.
const DISCRIMINATED: ErrorRule = ErrorRule {
    clause: "RPC-ERR-03",
    codes: &[],
    of: code::EXECUTION,
    types: &["TIMEOUT", "PARSE_ERROR", "EXECUTION_ERROR"],
};

/// Allowed replies to a call of one of the four methods. `params` are absent, an array or an object.
pub(super) fn called(id: Json, method: &str, params: Option<&Json>) -> RequestPart {
    let (clause, members) = match method {
        "execute_task" => ("RPC-EXEC-01", EXECUTE_TASK),
        "create_plan" => ("RPC-PLAN-04", CREATE_PLAN),
        "validate_code" => ("RPC-VALID-02", VALIDATE_CODE),
        _ => ("RPC-CTX-02", UPDATE_CONTEXT),
    };
    let mut unit = allowed::unit(Some(id), clause, Vec::new());
    let invalid = allowed::error(&[code::PARAMS], IdRule::Own);
    let failed = AnswerKind::Error(Codes::But(NOT_FROM_METHODS_OF_THE_PROFILE));
    let done = [allowed::result(Demand::Any), allowed::way(failed, IdRule::Own)];
    let fit = match params {
        None => {
            unit.clause = "RPC-PARAMS-08";
            all(members, &[])
        }
        Some(Json::Object(object)) => match (all(members, object), wish(params)) {
            (Fit::Fine, RequestedTimeout::Beyond(_) | RequestedTimeout::Odd) => {
                unit.clause = "RPC-TIME-05";
                Fit::Open
            }
            (fit, _) => fit,
        },
        // Params are named, so an array lacks all of them.
        Some(_) => {
            unit.clause = "RPC-PARAMS-08";
            Fit::Wrong
        }
    };
    if fit == Fit::Open && unit.clause != "RPC-TIME-05" {
        unit.clause = "RPC-PARAMS-07";
    }
    unit.allowed = match fit {
        Fit::Fine => done.into(),
        Fit::Open => done.into_iter().chain([invalid]).collect(),
        Fit::Wrong => vec![invalid],
    };
    if fit != Fit::Wrong {
        unit.extra.error_rule = Some(DISCRIMINATED);
        unit.extra.shape = match method {
            "execute_task" => Some(Shape::Task),
            "create_plan" => {
                let most = params.and_then(|params| params.pointer("/constraints/max_tasks"));
                Some(Shape::Plan(most.and_then(Json::as_u64).filter(|most| *most > 0)))
            }
            _ => None,
        };
    }
    unit
}

impl Shape {
    /// Faults of a result.
    pub fn violations(self, result: &Json) -> Vec<Finding> {
        let text = || shorten(&result.to_text(), 240).into_owned();
        let found = match self {
            Self::Task => task(result),
            Self::Plan(tasks_max) => plan(result, tasks_max),
        };
        found
            .into_iter()
            .map(|(clause, reason, expected)| Finding::new(clause, reason, expected, text()))
            .collect()
    }
}

/// A broken rule: clause, reason code and expectation.
type Broken = (&'static str, &'static str, String);

/// Name of the first member of `object` with a wrong type. Absent members and nulls are skipped.
fn types(object: Option<&Json>, members: &[(&'static str, &str)]) -> Option<&'static str> {
    let fits = |value: &Json, kind: &str| match kind {
        "array" => matches!(value, Json::Array(_)),
        "number" => matches!(value, Json::Number(_)),
        _ => value.as_str().is_some(),
    };
    let wrong = |(name, kind): &&(&'static str, &str)| {
        object.and_then(|object| object.get(name)).is_some_and(|value| !value.is_null() && !fits(value, kind))
    };
    members.iter().find(wrong).map(|(name, _)| *name)
}

fn task(result: &Json) -> Vec<Broken> {
    if result.get("status").and_then(Json::as_str).is_none_or(str::is_empty) {
        return vec![("RPC-EXEC-02", "no_status", "`result.status` is a non-empty string".to_owned())];
    }
    let output = [
        ("code", "string"),
        ("explanation", "string"),
        ("files_modified", "array"),
        ("files_created", "array"),
    ];
    let metadata = [("execution_time_ms", "number"), ("tokens_used", "number"), ("model", "string")];
    let wrong = types(result.get("output"), &output).or_else(|| types(result.get("metadata"), &metadata));
    let expected = |name: &str| format!("`{name}` has the type of the documented example");
    wrong.map(|name| ("RPC-EXEC-03", "member_type", expected(name))).into_iter().collect()
}

fn plan(result: &Json, tasks_max: Option<u64>) -> Vec<Broken> {
    let Some(tasks) = result.pointer("/plan/tasks").and_then(Json::as_array) else {
        return vec![("RPC-PLAN-03", "no_tasks", "`result.plan.tasks` is an array".to_owned())];
    };
    let mut broken: Vec<Broken> = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    let mut dependencies: Vec<Vec<&str>> = Vec::new();
    for task in tasks {
        let of = task.get("dependencies").filter(|value| !value.is_null());
        let names = of.map_or(Some(Vec::new()), |of| of.as_array()?.iter().map(Json::as_str).collect());
        let (Some(id), Some(names)) = (task.get("id").and_then(Json::as_str), names) else {
            let expected = "each task has a string `id`, and `dependencies` is an array of strings";
            return vec![("RPC-PLAN-03", "task_shape", expected.to_owned())];
        };
        ids.push(id);
        dependencies.push(names);
    }
    if tasks_max.is_some_and(|most| tasks.len() as u64 > most) {
        let most = tasks_max.unwrap_or_default();
        broken.push(("RPC-PLAN-02", "too_many_tasks", format!("a plan of at most {most} tasks")));
    }
    if ids.iter().collect::<HashSet<_>>().len() < ids.len() {
        broken.push(("RPC-PLAN-01", "same_id", "unique ids of the tasks of a plan".to_owned()));
    } else if dependencies.iter().flatten().any(|name| !ids.contains(name)) {
        let expected = "dependencies that are tasks of the plan";
        broken.push(("RPC-PLAN-01", "unknown_dependency", expected.to_owned()));
    } else if has_cycle(&ids, &dependencies) {
        broken.push((
            "RPC-PLAN-01",
            "cycle",
            "no task depends on itself, directly or through other tasks".to_owned(),
        ));
    }
    let members = [("type", "string"), ("description", "string"), ("priority", "number")];
    let wrong = tasks.iter().find_map(|task| types(Some(task), &members));
    let around = [("estimated_time_seconds", "number"), ("explanation", "string")];
    if let Some(name) = wrong.or_else(|| types(result.get("plan"), &around)) {
        let expected = format!("`{name}` has the type of the documented example");
        broken.push(("RPC-PLAN-05", "member_type", expected));
    }
    broken
}

/// True if the dependencies have a cycle: some tasks remain after repeatedly removing those without dependencies.
fn has_cycle(ids: &[&str], dependencies: &[Vec<&str>]) -> bool {
    let mut left: HashMap<&str, HashSet<&str>> =
        ids.iter().zip(dependencies).map(|(id, names)| (*id, names.iter().copied().collect())).collect();
    loop {
        let free: HashSet<&str> =
            left.iter().filter(|(_, names)| names.is_empty()).map(|(id, _)| *id).collect();
        if free.is_empty() {
            return !left.is_empty();
        }
        left.retain(|id, _| !free.contains(id));
        left.values_mut().for_each(|names| names.retain(|name| !free.contains(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(method: &str, params: &str) -> Vec<i64> {
        let unit = called(Json::from("1"), method, Some(&params.parse().unwrap()));
        let takes = |code: i64| {
            let error = format!("{{\"id\":\"1\",\"error\":{{\"code\":{code},\"message\":\"\"}}}}");
            super::super::fit(&unit, &error.parse().unwrap()).is_some()
        };
        let result =
            super::super::fit(&unit, &r#"{"id":"1","result":{"status":"success"}}"#.parse().unwrap())
                .is_some();
        assert_eq!(result, takes(-32000), "{params}");
        [0, code::PARAMS].into_iter().filter(|code| if *code == 0 { result } else { takes(*code) }).collect()
    }

    #[test]
    fn examples_have_to_be_accepted() {
        for (method, params) in [
            (
                "execute_task",
                r#"{"task_type":"testing","prompt":"p","context":{"files":["a"],"constraints":[]},
                "options":{"language":"javascript","timeout_ms":600000,"stream":true}}"#,
            ),
            (
                "create_plan",
                r#"{"user_request":"u","current_state":{"context":{}},"constraints":{"max_tasks":1}}"#,
            ),
            ("validate_code", r#"{"code":"c","language":"klingon","rules":["r"]}"#),
            ("update_context", r#"{"action":"modify","context_type":"file","data":{}}"#),
        ] {
            assert_eq!(fit(method, params), [0], "{params}");
        }
    }

    #[test]
    fn unknown_values_and_missing_members_have_to_be_refused() {
        for (method, params) in [
            ("execute_task", r#"{"task_type":"cooking","prompt":"p"}"#),
            ("execute_task", r#"{"task_type":1,"prompt":"p"}"#),
            ("execute_task", r#"{"task_type":"testing"}"#),
            ("execute_task", r#"["testing","p"]"#),
            ("create_plan", "{}"),
            ("validate_code", r#"{"code":"c"}"#),
            ("update_context", r#"{"action":"add","context_type":"file"}"#),
            ("update_context", r#"{"action":"Add","context_type":"file","data":{}}"#),
        ] {
            assert_eq!(fit(method, params), [code::PARAMS], "{params}");
        }
    }

    #[test]
    fn wrong_types_of_optional_members_are_left_open() {
        for (method, params) in [
            ("execute_task", r#"{"task_type":"testing","prompt":"p","context":5}"#),
            ("execute_task", r#"{"task_type":"testing","prompt":"p","options":{"timeout_ms":0}}"#),
            ("execute_task", r#"{"task_type":"testing","prompt":"p","options":null}"#),
            ("create_plan", r#"{"user_request":"u","constraints":{"max_tasks":0}}"#),
            ("validate_code", r#"{"code":"c","language":"l","rules":"r"}"#),
            ("update_context", r#"{"action":"add","context_type":"file","data":[]}"#),
        ] {
            assert_eq!(fit(method, params), [0, code::PARAMS], "{params}");
        }
    }

    #[test]
    fn plans_are_looked_through() {
        let reasons = |tasks: &str| -> Vec<&str> {
            let result = format!("{{\"plan\":{{\"tasks\":{tasks}}}}}");
            plan(&result.parse().unwrap(), Some(2)).into_iter().map(|(_, reason, _)| reason).collect()
        };
        assert_eq!(reasons(r#"[{"id":"a","dependencies":["b"]},{"id":"b","dependencies":[]}]"#), [""; 0]);
        assert_eq!(reasons(r#"[{"id":"a"},{"id":"b","dependencies":null}]"#), [""; 0]);
        assert_eq!(reasons("5"), ["no_tasks"]);
        assert_eq!(reasons(r#"[{"id":1}]"#), ["task_shape"]);
        assert_eq!(reasons(r#"[{"id":"a"},{"id":"b"},{"id":"c"}]"#), ["too_many_tasks"]);
        assert_eq!(reasons(r#"[{"id":"a"},{"id":"a"}]"#), ["same_id"]);
        assert_eq!(reasons(r#"[{"id":"a","dependencies":["z"]}]"#), ["unknown_dependency"]);
        assert_eq!(
            reasons(r#"[{"id":"a","dependencies":["b"]},{"id":"b","dependencies":["a"]}]"#),
            ["cycle"]
        );
        assert_eq!(reasons(r#"[{"id":"a","priority":"high"}]"#), ["member_type"]);
    }
}
