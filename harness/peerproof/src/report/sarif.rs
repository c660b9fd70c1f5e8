//! SARIF 2.1.0, for code scanners and editors that show findings of many tools side by side.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use peerproof_engine::boundary::{self, Boundary};
use peerproof_engine::clause::{Clause, Level};
use peerproof_engine::finding::Finding;
use peerproof_engine::results::{ResultsFile, Run, hex};
use peerproof_engine::verdict::{CheckResult, Verdict};

/// Where the form is described.
const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The results as a SARIF log: one run a peer, one rule a broken clause, one result a finding. A MUST is an `error`, a
/// SHOULD a `warning`; a failure that the expectations file names is suppressed. What could not be decided, a harness
/// fault and a cut file are notifications of the invocation, since they are no findings about the peer.
///
/// # Errors
/// The log cannot be written as JSON.
pub fn sarif(file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> Result<String, String> {
    let one = |run: &Run| log(run, boundaries, file.incomplete.as_deref());
    let runs: Vec<Value> = file.runs.iter().map(one).collect();
    let log = json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": runs });
    serde_json::to_string_pretty(&log)
        .map(|text| text + "\n")
        .map_err(|error| format!("the SARIF report cannot be written: {error}"))
}

fn log(run: &Run, boundaries: &[&'static dyn Boundary], incomplete: Option<&str>) -> Value {
    let clauses = boundary::find(boundaries, &run.header.boundary).map_or(&[][..], Boundary::clauses);
    let mut rules: BTreeMap<&str, Option<&Clause>> = BTreeMap::new();
    for finding in run.checks.iter().flat_map(|check| &check.findings) {
        let id = finding.clause.0.as_str();
        rules.insert(id, clauses.iter().find(|clause| clause.id == finding.clause));
    }
    let places: Vec<&str> = rules.keys().copied().collect();
    let results: Vec<Value> = run
        .checks
        .iter()
        .flat_map(|check| check.findings.iter().map(move |finding| (check, finding)))
        .map(|(check, finding)| {
            let level = rules.get(finding.clause.0.as_str()).copied().flatten().map(|clause| clause.level);
            result(run, check, finding, level, places.binary_search(&finding.clause.0.as_str()).unwrap_or(0))
        })
        .collect();
    let invocation = json!({
        "executionSuccessful": incomplete.is_none() && run.footer.is_some() && run.missing().is_empty(),
        "exitCode": run.footer.as_ref().map(|footer| footer.exit_code),
        "startTimeUtc": run.header.started,
        "toolExecutionNotifications": notifications(run, incomplete),
    });
    json!({
        "tool": { "driver": {
            "name": "peerproof",
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
    json!({
        "id": id,
        "shortDescription": { "text": clause.text },
        "help": { "text": format!("Source: {}. `peerproof explain {id}` tells more.", clause.source) },
        "defaultConfiguration": { "level": severity(Some(clause.level)) },
    })
}

fn severity(level: Option<Level>) -> &'static str {
    match level {
        Some(Level::Must) | None => "error",
        Some(Level::Should) => "warning",
        Some(Level::Open) => "note",
    }
}

fn result(run: &Run, check: &CheckResult, finding: &Finding, level: Option<Level>, rule: usize) -> Value {
    let mut text =
        format!("{}: expected {}, got {}. {}", finding.reason, finding.expected, finding.got, check.title);
    if let Verdict::Flaky(times) = &check.verdict {
        text = format!("flaky {times}: {text}");
    }
    let mut location = json!({ "logicalLocations": [{ "fullyQualifiedName": check.id, "kind": "member" }] });
    if let Some(folder) = &check.reproducer {
        location["physicalLocation"] =
            json!({ "artifactLocation": { "uri": format!("{folder}/transcript.ndjson") } });
    }
    let mut result = json!({
        "ruleId": finding.clause,
        "ruleIndex": rule,
        "level": severity(level),
        "message": { "text": text },
        "locations": [location],
        "partialFingerprints": { "peerproof/v1": fingerprint(run, check, finding) },
    });
    if let Verdict::Expected(why) = &check.verdict {
        result["suppressions"] = json!([{ "kind": "external", "justification": why }]);
    }
    result
}

/// The same for the same fault of the same peer in every run.
fn fingerprint(run: &Run, check: &CheckResult, finding: &Finding) -> String {
    let parts = [&run.header.peer, &check.id, &finding.clause.0, &finding.reason];
    hex(&Sha256::digest(parts.map(String::as_str).join("\n")))
}

fn notifications(run: &Run, incomplete: Option<&str>) -> Vec<Value> {
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
