//! SARIF 2.1.0, for code scanners and editors that show findings of many tools.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::data::clause::{Clause, Level};
use peerproof_engine::data::text::percent_encoded;
use peerproof_engine::run::causes::{Cause, Certainty};
use peerproof_engine::run::results::{self, ResultsFile, StoredRun};
use peerproof_engine::run::verdict::{CheckResult, Verdict};

/// Address of the schema.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Renders the results as a SARIF log: one run per peer, one rule per broken clause, one result per cause. A MUST is an
/// `error`, a SHOULD a `warning`; expected causes are suppressed. Undecided checks, harness faults and a cut file are
/// notifications of the invocation, because they are not findings about the peer.
///
/// # Errors
/// Fails if the log cannot be written as JSON.
pub(crate) fn sarif(
    file: &ResultsFile,
    boundaries: &[&'static dyn Boundary],
) -> Result<String, HarnessFault> {
    let one = |run: &StoredRun| log(run, boundaries, file.incomplete.as_deref());
    let runs: Vec<Value> = file.runs.iter().map(one).collect();
    let log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": runs });
    serde_json::to_string_pretty(&log)
        .map(|text| text + "\n")
        .map_err(|error| format!("the SARIF report cannot be written: {error}").into())
}

fn log(run: &StoredRun, boundaries: &[&'static dyn Boundary], incomplete: Option<&str>) -> Value {
    let clauses = boundary::find(boundaries, &run.header.boundary).map_or(&[][..], Boundary::clauses);
    let told: Vec<&Cause> =
        run.causes.iter().filter(|cause| cause.certainty != Certainty::Undecided).collect();
    let mut rules: BTreeMap<&str, Option<&Clause>> = BTreeMap::new();
    for cause in &told {
        rules.insert(&cause.clause.0, clauses.iter().find(|clause| clause.id == cause.clause));
    }
    let places: Vec<&str> = rules.keys().copied().collect();
    let of = |cause: &Cause| run.checks.iter().find(|check| check.id == cause.check);
    let results: Vec<Value> = told
        .iter()
        .filter_map(|cause| Some((cause, of(cause)?)))
        .map(|(cause, check)| {
            result(cause, check, places.binary_search(&cause.clause.0.as_str()).unwrap_or(0))
        })
        .collect();
    let invocation = json!({
        "executionSuccessful": incomplete.is_none() && run.footer.is_some() && run.missing().is_empty(),
        "exitCode": run.footer.as_ref().map_or_else(
            || results::exit_code(&run.checks, false),
            |footer| footer.exit_code,
        ),
        "startTimeUtc": run.header.started,
        "toolExecutionNotifications": notifications(run, incomplete),
    });
    json!({
        "tool": { "driver": {
            "name": "peerproof",
            "informationUri": env!("CARGO_PKG_HOMEPAGE"),
            "version": run.header.peerproof,
            "rules": rules.iter().map(|(id, clause)| rule(id, *clause)).collect::<Vec<_>>(),
        } },
        "automationDetails": { "id": format!("peerproof/{}/{}/", run.header.boundary, run.header.peer) },
        "invocations": [invocation],
        "results": results,
    })
}

fn rule(id: &str, clause: Option<&Clause>) -> Value {
    let Some(clause) = clause else { return json!({ "id": id }) };
    let mut rule = json!({
        "id": id,
        "shortDescription": { "text": clause.text },
        "help": {
            "text": format!("Source: {}. `peerproof explain {id}` lists its checks.", clause.source),
        },
        "defaultConfiguration": { "level": severity(Some(clause.level)) },
    });
    if !clause.page.is_empty() {
        rule["helpUri"] = Value::from(clause.page.as_str());
    }
    rule
}

fn severity(level: Option<Level>) -> &'static str {
    match level {
        Some(Level::Must) | None => "error",
        Some(Level::Should) => "warning",
        Some(Level::Open) => "note",
    }
}

fn result(cause: &Cause, check: &CheckResult, rule: usize) -> Value {
    let mut text =
        format!("{}: expected {}, got {}. {}", cause.reason, cause.expected, cause.got, check.title);
    if let Verdict::Flaky(times) = &check.verdict {
        text = format!("flaky {times}: {text}");
    }
    let place = |id: &str| json!({ "logicalLocations": [{ "fullyQualifiedName": id, "kind": "member" }] });
    let mut location = place(&check.id);
    if let Some(folder) = &check.reproducer {
        location["physicalLocation"] = json!({ "artifactLocation": { "uri": percent_encoded(format!("{folder}/transcript.ndjson").as_bytes()) } });
    }
    let others = cause.checks.iter().filter(|share| share.check != check.id);
    let mut result = json!({
        "ruleId": cause.clause,
        "ruleIndex": rule,
        // An undeclared behaviour for an open clause counts like a broken MUST.
        "level": if cause.level == Level::Should { "warning" } else { "error" },
        "message": { "text": text },
        "locations": [location],
        "relatedLocations": others.map(|share| place(&share.check)).collect::<Vec<_>>(),
        "partialFingerprints": { "peerproof/v2": cause.id },
    });
    if cause.certainty == Certainty::Expected
        && let Verdict::Expected(why) = &check.verdict
    {
        result["suppressions"] = json!([{ "kind": "external", "justification": why }]);
    }
    result
}

fn notifications(run: &StoredRun, incomplete: Option<&str>) -> Vec<Value> {
    let mut list = Vec::new();
    if let Some(sentence) = incomplete {
        list.push(json!({ "level": "error", "message": { "text": sentence } }));
    }
    for check in &run.checks {
        let level = match check.verdict {
            Verdict::HarnessError(_) => "error",
            Verdict::Untestable(_) | Verdict::NotRun(_) | Verdict::Masked(_) => "note",
            _ => continue,
        };
        let text =
            format!("{}: {}: {}", check.id, check.verdict.word(), check.verdict.detail().unwrap_or_default());
        list.push(json!({ "level": level, "message": { "text": text } }));
    }
    list
}
