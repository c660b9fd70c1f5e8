//! JUnit XML, for programs that collect test results.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::screen::{distinct, level_of_finding};
use peerproof_engine::data::blame::HarnessFault;
use peerproof_engine::data::check::topic_of;
use peerproof_engine::run::results::{ResultsFile, StoredRun};
use peerproof_engine::run::verdict::{CheckResult, Verdict};

/// Renders the results as JUnit XML, with one suite per topic and one case per check. Failures are `failure`, undecided
/// and skipped checks are `skipped` with their reason, harness faults are `error`, and so are planned checks that a cut
/// results file lacks.
///
/// # Errors
/// Fails if the XML cannot be written.
pub(crate) fn junit(file: &ResultsFile) -> Result<String, HarnessFault> {
    let mut report = Report::new("peerproof");
    for run in &file.runs {
        let mut suites: Vec<TestSuite> = Vec::new();
        for check in &run.checks {
            suite(&mut suites, run, &check.id).add_test_case(case(check));
        }
        for id in run.missing() {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status
                .set_type("no_result")
                .set_message(file.incomplete.as_deref().unwrap_or("there is no result"));
            let mut missing = TestCase::new(id, status);
            missing.set_classname(topic_of(id).replace('/', "."));
            suite(&mut suites, run, id).add_test_case(missing);
        }
        for suite in &mut suites {
            let time = suite.test_cases.iter().filter_map(|case| case.time).sum();
            suite.set_time(time);
        }
        report.add_test_suites(suites);
    }
    let xml = report.to_string().map_err(|error| format!("the JUnit report cannot be written: {error}"))?;
    Ok(without_total_of_skipped(xml))
}

/// Attribute of the root element that the Jenkins schema does not allow; each suite has its own.
const SKIPPED: &str = " skipped=\"";

/// Removes the count of skipped cases from the root element, whose attributes are ours.
fn without_total_of_skipped(mut xml: String) -> String {
    let root = xml.find("<testsuites").and_then(|at| Some(at..at + xml[at..].find('>')?));
    if let Some(root) = root
        && let Some(at) = xml[root.clone()].find(SKIPPED).map(|at| root.start + at)
        && let Some(length) = xml[at + SKIPPED.len()..].find('"')
    {
        xml.replace_range(at..=at + SKIPPED.len() + length, "");
    }
    xml
}

fn suite<'s>(suites: &'s mut Vec<TestSuite>, run: &StoredRun, id: &str) -> &'s mut TestSuite {
    let name = format!("{}: {}", run.header.peer, topic_of(id));
    let index = suites.iter().position(|suite| suite.name.as_str() == name).unwrap_or_else(|| {
        let mut suite = TestSuite::new(name);
        for (key, value) in [
            ("peerproof", run.header.peerproof.clone()),
            ("side", run.header.side.word().to_owned()),
            ("rng_seed", run.header.rng_seed.to_string()),
            ("started", run.header.started.clone()),
        ] {
            suite.add_property(Property::new(key, value));
        }
        suites.push(suite);
        suites.len() - 1
    });
    &mut suites[index]
}

fn case(check: &CheckResult) -> TestCase {
    let status = match &check.verdict {
        Verdict::Pass | Verdict::Open(_) => TestCaseStatus::success(),
        Verdict::Fail | Verdict::Crash | Verdict::Hang | Verdict::Leak | Verdict::Flaky(_) => failure(check),
        Verdict::HarnessError(error) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("harness_error").set_message(error.as_str());
            status
        }
        verdict @ (Verdict::Untestable(_)
        | Verdict::NotClaimed(_)
        | Verdict::NotRun(_)
        | Verdict::Masked(_)
        | Verdict::Expected(_)) => {
            let mut status = TestCaseStatus::skipped();
            status.set_type(check.verdict.word());
            let reason = verdict.detail().unwrap_or_default();
            status.set_message(format!("{}: {reason}", verdict.word()));
            status
        }
    };
    let mut case = TestCase::new(check.id.as_str(), status);
    case.set_classname(check.topic().replace('/', "."));
    case.set_time(Duration::from_millis(check.ms));
    if let Verdict::Open(choice) = &check.verdict {
        case.set_system_out(format!("the contract leaves it open; the peer: {choice}"));
    }
    case
}

fn failure(check: &CheckResult) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_type(check.reason.as_deref().unwrap_or(check.verdict.word()));
    let level = check.broken_level().map_or("", level_of_finding);
    let head = check.findings.first().map_or_else(
        || check.verdict.word().to_owned(),
        |finding| format!("{} ({level}): expected {}, got {}", finding.clause, finding.expected, finding.got),
    );
    status.set_message(match &check.verdict {
        Verdict::Flaky(times) => format!("flaky {times}: {head}"),
        _ => head,
    });
    let mut text = format!("{}\n", check.title);
    for (finding, times) in distinct(&check.findings) {
        let times = if times > 1 { format!(" ({times} times)") } else { String::new() };
        text.push_str(&format!(
            "\n{} {}{times}\n  expected {}\n  got      {}\n",
            finding.clause, finding.reason, finding.expected, finding.got
        ));
    }
    if !check.conversation.is_empty() {
        text.push_str(&format!("\n{}\n", check.conversation.join("\n")));
    }
    if let Some(folder) = &check.reproducer {
        text.push_str(&format!("\nagain: {folder}/repro.sh\n"));
    }
    status.set_description(text);
    status
}
