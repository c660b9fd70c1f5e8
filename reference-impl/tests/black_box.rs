//! The reference toolhost judged from outside by the suite: what `reference-impl/mutants.sh` runs against each mutant of
//! its source. It needs a `peerproof` that was built beforehand, from code without the mutant.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// A setting of the choices and the checks that are run with it; none: all.
type Pass = (&'static [(&'static str, &'static str)], &'static [&'static str]);

/// First those checks that notice most and cost least, then all, then all with another value of every choice.
const PASSES: [Pass; 3] = [
    (
        &[],
        &[
            "toolhost/serve/model/*",
            "toolhost/serve/lease/*",
            "toolhost/serve/idempotency/*",
            "toolhost/run/state/*",
            "toolhost/run/stdin/*",
            "toolhost/serve/http_get/*",
        ],
    ),
    (&[], &[]),
    (OTHER_CHOICES, &[]),
];

/// The second value of every choice.
const OTHER_CHOICES: &[(&str, &str)] = &[
    ("duplicate_keys", "first"),
    ("lone_surrogates", "replace"),
    ("big_integers", "round"),
    ("bom", "refuse"),
    ("blank_line", "refuse"),
    ("last_line_without_lf", "refuse"),
    ("null_member", "refuse"),
    ("inputs_member", "refuse"),
    ("same_key_other_input", "refuse"),
    ("tool_error_cached", "true"),
    ("hit_applies_state", "true"),
    ("hit_spends_token", "true"),
    ("tool_error_keeps_writes", "true"),
    ("host_error_exit", "nonzero"),
    ("size_bytes_wrong", "correct"),
    ("crash_kind", "abort"),
    ("redirects", "refuse"),
];

/// A configuration for `refpeer` with these choices.
fn configuration(choices: &[(&str, &str)]) -> String {
    let quote = |word: &str| format!("{word:?}");
    let options: Vec<String> = choices
        .iter()
        .flat_map(|(key, value)| [quote("--choice"), quote(&format!("{key}={value}"))])
        .collect();
    let command = |mode: &[&str]| {
        let words = [env!("CARGO_BIN_EXE_refpeer"), "toolhost"].iter().chain(mode).map(|word| quote(word));
        words.chain(options.iter().cloned()).collect::<Vec<_>>().join(", ")
    };
    let pinned: String = choices.iter().map(|(key, value)| format!("{key} = {value:?}\n")).collect();
    format!(
        "[peer]\nname = \"refpeer\"\nboundary = \"toolhost\"\nrun = [{}]\nserve = [{}]\n\n\
         [features]\nidempotency = true\nds_state = true\nhttp_get = true\n\
         lease = {{ issue = {{ aid = \"_lease.issue\", tool_aid = \"{{aid}}\", tier = \"{{tier}}\", ttl_ms = \
         \"{{ttl_ms}}\" }}, token = \"/token_id\" }}\n\n[choices]\n{pinned}",
        command(&["--run", "{aid}"]),
        command(&["--serve"]),
    )
}

/// Checks until the first failure, which it returns.
fn first_failure(peerproof: &Path, (choices, filters): Pass) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("refpeer.toml");
    std::fs::write(&file, configuration(choices)).unwrap();
    let mut check = Command::new(peerproof)
        .args(["check", "toolhost", "--format", "ndjson", "--shrink-time", "0s", "--config"])
        .arg(&file)
        .arg("--out")
        .arg(folder.path())
        .args(filters.iter().flat_map(|filter| ["-k", filter]))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut failure = None;
    for line in BufReader::new(check.stdout.take().unwrap()).lines() {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = line["id"].as_str().unwrap_or_default();
        let verdict = line["verdict"].as_str().unwrap_or_default();
        // The suite leaves it open whether a peer that refuses every plain request is configured wrongly; this one is not.
        let mute = line["detail"].as_str().is_some_and(|detail| detail.starts_with("no_working_reply"));
        if mute || matches!(verdict, "fail" | "crash" | "hang" | "leak" | "flaky" | "harness_error") {
            failure = Some(format!("{id}: {verdict} {}", line["reason"]));
            break;
        }
    }
    if failure.is_some() {
        // Interrupted in order, it takes its peers along: a mutant may never end by itself. That may take its time.
        Command::new("kill").args(["-INT", &check.id().to_string()]).status().unwrap();
        return failure;
    }
    let status = check.wait().unwrap();
    // A peer that cannot even be talked to ends the run before any check failed.
    (status.code() != Some(0)).then(|| status.to_string())
}

#[test]
#[ignore = "judges mutants of the source: `reference-impl/mutants.sh` runs it with a peerproof built beforehand"]
fn holds_the_contract() {
    let peerproof = std::env::var_os("SUITE").expect("SUITE names a peerproof binary");
    for pass in PASSES {
        assert_eq!(first_failure(Path::new(&peerproof), pass), None, "in {pass:?}");
    }
}
