//! Tests of `peerproof check`: verdicts on good and dead peers, exit statuses, files.

use std::fs;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use peerproof_engine::run::results::ResultsFile;
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;

use crate::start::{binary, peerproof, start};

fn lines(bytes: &[u8]) -> Vec<Value> {
    std::str::from_utf8(bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn planned(header: &Value) -> Vec<String> {
    header["planned"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
fn without_arguments_the_reference_peers_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let assert = peerproof(folder.path()).args(["check", "-k", "toolhost/serve/chunking"]).assert().code(0);
    assert.stdout(contains("toolhost provider").and(contains("0 failed").not()).and(contains("passed")));
    let results = fs::read(folder.path().join("peerproof-out/results.ndjson")).unwrap();
    let lines = lines(&results);
    assert_eq!(lines[0]["type"], "run");
    assert_eq!(lines.last().unwrap()["type"], "end");
    assert_eq!(lines.last().unwrap()["exit_code"], 0);
    assert_eq!(lines.len(), planned(&lines[0]).len() + 2);
}

/// Verdicts by id, run by run.
fn verdicts(command: &str, args: &[String]) -> Vec<(String, Vec<(String, String)>)> {
    let folder = tempfile::tempdir().unwrap();
    let mut peerproof = peerproof(folder.path());
    let assert = peerproof.args(command.split(' ')).args(args).args(["--format", "ndjson"]).assert().code(0);
    let mut runs: Vec<(String, Vec<(String, String)>)> = Vec::new();
    for line in lines(&assert.get_output().stdout) {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        match line["type"].as_str() {
            Some("run") => runs.push((text("peer"), Vec::new())),
            Some("check") => runs.last_mut().unwrap().1.push((text("id"), text("verdict"))),
            _ => {}
        }
    }
    runs.iter_mut().for_each(|(_, checks)| checks.sort());
    runs
}

#[test]
fn parts_beside_each_other_come_to_what_each_comes_to_alone() {
    let more = ["toolhost/serve/request/*", "json_rpc/*/rate/*", "policy_driver/*/time/in-time/*"];
    let filter = |patterns: &[String]| -> Vec<String> {
        patterns.iter().flat_map(|pattern| ["-k".to_owned(), pattern.clone()]).collect()
    };
    let patterns_of = |name: &str| -> Vec<String> {
        let own =
            more.iter().filter(|pattern| pattern.starts_with(name)).map(|pattern| (*pattern).to_owned());
        own.chain([format!("{name}/*/canary/*")]).collect()
    };
    let names = || peerproof::table::all().into_iter().map(|boundary| boundary.name());
    let all: Vec<String> = names().flat_map(patterns_of).collect();
    let together = verdicts("check", &filter(&all));
    let alone = names().flat_map(|name| verdicts(&format!("check {name}"), &filter(&patterns_of(name))));
    assert_eq!(together, alone.collect::<Vec<_>>());
}

#[test]
fn reports_of_parts_stand_in_the_order_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let assert = peerproof(folder.path()).args(["check", "-k", "*/canary/*"]).assert().code(0);
    let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    let heads = text.lines().filter(|line| line.starts_with("reference ") && line.contains(" · "));
    let mut boundaries: Vec<&str> = heads.filter_map(|line| line.split(' ').nth(1)).collect();
    boundaries.dedup();
    assert_eq!(
        boundaries,
        peerproof::table::all().iter().map(|boundary| boundary.name()).collect::<Vec<_>>()
    );
    assert!(text.lines().last().unwrap().contains(" peers, "), "{text}");
}

#[test]
fn ndjson_is_the_results_file_on_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = peerproof(folder.path());
    command.args(["check", "-k", "toolhost/serve/chunking", "--format", "ndjson", "--rng-seed", "7"]);
    command
        .args(["--report", "results=r/x.ndjson,junit=x.xml,md=x.md,html=x.html,sarif=x.sarif"])
        .env("PEERPROOF_RNG_SEED", "8");
    let assert = command.assert().code(0);
    let out = assert.get_output().stdout.clone();
    assert_eq!(lines(&out)[0]["rng_seed"], 7, "a flag stands above a variable");
    assert_eq!(out, fs::read(folder.path().join("r/x.ndjson")).unwrap());
    assert!(fs::read_to_string(folder.path().join("x.xml")).unwrap().contains("<testsuite"));
    assert!(fs::read_to_string(folder.path().join("x.md")).unwrap().contains("toolhost"));
    assert!(!folder.path().join("peerproof-out").exists());
}

#[test]
fn shards_are_disjoint_and_complete() {
    let folder = tempfile::tempdir().unwrap();
    let of = |shard: Option<&str>| {
        let mut command = peerproof(folder.path());
        command.args(["check", "-k", "toolhost/serve/request", "--format", "ndjson"]);
        if let Some(shard) = shard {
            command.args(["--shard", shard]);
        }
        planned(&lines(&command.assert().code(0).get_output().stdout)[0])
    };
    let (mut parts, mut all) = (of(Some("hash:1/2")), of(None));
    let second = of(Some("hash:2/2"));
    assert!(!parts.is_empty() && !second.is_empty());
    parts.extend(second);
    parts.sort();
    all.sort();
    assert_eq!(parts, all);

    // A single check of the other side is in only one shard; both shards can still be merged.
    let files = ["hash:1/2", "hash:2/2"].map(|shard| {
        let file = folder.path().join(shard.replace([':', '/'], "-"));
        let mut command = peerproof(folder.path());
        command.args([
            "check",
            "-k",
            "toolhost/serve/chunking",
            "-k",
            "toolhost/dispatch/canary",
            "--shard",
            shard,
        ]);
        command.arg("--report").arg(format!("results={}", file.display())).assert().code(0);
        file
    });
    let mut merge = peerproof(folder.path());
    merge.args(["report", "merge", "--out", "all.ndjson"]).args(&files).assert().code(0);
    let merged = lines(&fs::read(folder.path().join("all.ndjson")).unwrap());
    let sides: Vec<&Value> =
        merged.iter().filter(|line| line["type"] == "run").map(|run| &run["side"]).collect();
    assert_eq!(sides, ["provider", "consumer"]);
}

/// Output about a peer that does not speak the protocol. `selftest` shows that null peers prove nothing.
#[test]
fn a_dead_peer_fails_and_is_reproduced() {
    for command in [&["false"][..], &["sleep", "1000"]] {
        let folder = tempfile::tempdir().unwrap();
        let assert = peerproof(folder.path())
            .args(["check", "toolhost", "--timeout-scale", "0.1", "--"])
            .args(command)
            .assert()
            .code(1);
        let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
        assert!(text.contains("MUST   0/"), "{command:?}: {text}");
        assert!(text.contains("TH-FRAME-01"), "{command:?}: {text}");
        assert!(text.contains("repro.sh"), "{command:?}: {text}");
        let script = folder.path().join("peerproof-out/01-toolhost__serve__canary__plain-request/repro.sh");
        assert!(fs::read_to_string(script).unwrap().starts_with("#!/bin/sh"));
    }
}

#[test]
fn a_peer_without_a_known_tool_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let refuses = "while read -r line; do echo '{{\"ok\":false,\"error\":\"unknown aid\"}}'; done";
    let mut command = peerproof(folder.path());
    command.args(["check", "toolhost", "-k", "toolhost/serve/canary", "-k", "toolhost/serve/chunking"]);
    let assert = command.args(["--", "sh", "-c", refuses]).assert().code(4);
    assert
        .stdout(contains("--aid AID --input JSON"))
        .stderr(contains("exit status 4: no check reached a verdict"));
}

#[test]
fn a_command_that_refuses_everything_is_not_green() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.sh"), "cat >/dev/null\necho '{\"ok\":false,\"error\":\"no\"}'\n")
        .unwrap();
    let config = format!(
        "[peer]\nboundary = \"toolhost\"\nrun = [\"sh\", \"run.sh\", \"{{aid}}\"]\n\
         serve = [\"{binary}\", \"peer\", \"toolhost\", \"--serve\"]\n"
    );
    fs::write(folder.path().join("peerproof.toml"), config).unwrap();
    let mut command = peerproof(folder.path());
    command.args(["check", "-k", "toolhost/*/canary/*", "-k", "toolhost/*/request/not-an-object"]);
    command.assert().code(4).stdout(contains("`run` refuses the plain request"));
}

/// Each check of a refusal has a control: a tool that refuses every address does not prove its rule.
#[test]
fn a_tool_that_refuses_every_address_proves_no_refusal() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let config = format!(
        "[peer]\nboundary = \"toolhost\"\nserve = [\"{binary}\", \"peer\", \"toolhost\", \"--serve\"]\n\
         [roles]\nhttp_get = {{ aid = \"AID.PEERPROOF.NO_SUCH.v1\" }}\n"
    );
    fs::write(folder.path().join("peerproof.toml"), config).unwrap();
    let mut command = peerproof(folder.path());
    command.args(["check", "--format", "ndjson", "-k", "toolhost/serve/http_get/*"]);
    let out = command.assert().get_output().stdout.clone();
    let lines = lines(&out);
    let checks: Vec<&Value> = lines.iter().filter(|line| line["type"] == "check").collect();
    assert!(checks.len() > 50, "{}", checks.len());
    let passed: Vec<_> = checks.iter().filter(|check| check["verdict"] == "pass").collect();
    assert!(passed.is_empty(), "{passed:#?}");
    let untestable = checks.iter().filter(|check| check["verdict"] == "untestable").count();
    assert!(untestable > 50, "{untestable}");
}

#[test]
fn a_role_of_another_tool_is_untestable_and_told_by_doctor() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let roles = |of: &dyn Fn(&str) -> String| {
        let serve = format!("serve = [{binary:?}, \"peer\", \"toolhost\", \"--serve\", \"p\"]");
        let mut text = format!("[peer]\nboundary = \"toolhost\"\n{serve}\n[roles]\n");
        for role in ["any", "echo", "counter", "put", "get", "remove", "fail", "sleep", "blob", "tier1"] {
            text.push_str(&format!(
                "{role} = {{ aid = \"AID.PEERPROOF.{}.v1\" }}\n",
                of(role).to_uppercase()
            ));
        }
        fs::write(folder.path().join("peerproof.toml"), text).unwrap();
    };
    let checked = |code: i32| {
        let check = [
            "check",
            "-k",
            "toolhost/serve/request",
            "-k",
            "toolhost/serve/state",
            "-k",
            "lease",
            "-k",
            "idempotency",
        ];
        peerproof(folder.path()).args(check).assert().code(code)
    };
    let told = |role: &str| format!("as role `{role}` ");

    roles(&|role| role.to_owned());
    checked(0).stdout(contains("as role").not());

    // Each tool plays another role: this breaks no clause, and doctor names the tools.
    roles(&|role| match role {
        "any" => "no_such_tool".to_owned(),
        "counter" | "put" | "fail" => "echo".to_owned(),
        "tier1" => "put".to_owned(),
        other => other.to_owned(),
    });
    let checked = checked(0).stdout(contains(" 0 failed").or(contains(" failed").not()));
    let doctor = peerproof(folder.path()).args(["doctor"]).assert().code(0);
    for role in ["any", "counter", "put", "tier1", "fail"] {
        doctor
            .get_output()
            .stdout
            .windows(told(role).len())
            .find(|part| *part == told(role).as_bytes())
            .unwrap();
    }
    let out = String::from_utf8_lossy(&checked.get_output().stdout).into_owned();
    assert!(out.contains(&told("counter")) && !out.contains(&told("echo")), "{out}");
}

#[test]
fn a_broken_should_that_a_check_does_not_list_does_not_decide() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let argv = format!(
        "[{binary:?}, \"peer\", \"policy_driver\", \"--select\", \"--mutant\", \"select-open-payload\"]"
    );
    let text = format!("[peer]\nboundary = \"policy_driver\"\nselector = {argv}\n");
    fs::write(folder.path().join("peerproof.toml"), text).unwrap();
    let arguments = ["check", "-k", "policy_driver/select/payload/values"];
    let mut command = peerproof(folder.path());
    command.args(arguments).assert().code(0).stdout(contains("PD-FILE-03"));
    let mut command = peerproof(folder.path());
    command.args(arguments).arg("--strict").assert().code(1);
}

#[test]
fn a_stale_expectation_has_its_own_status() {
    let folder = tempfile::tempdir().unwrap();
    let expected = "[[expect]]\ncheck = \"toolhost/serve/chunking/byte-by-byte\"\nverdict = \"fail\"\n\
                    reason = \"hung\"\n";
    fs::write(folder.path().join("known.toml"), expected).unwrap();
    let mut command = peerproof(folder.path());
    command.args(["check", "-k", "toolhost/serve/chunking", "--expect", "known.toml"]);
    command.assert().code(3).stderr(contains("known.toml").and(contains("passes now")));
    fs::write(folder.path().join("known.toml"), "[[expect]]\nchekc = 1\n").unwrap();
    let mut command = peerproof(folder.path());
    command.args(["check", "--expect", "known.toml"]).assert().code(2).stderr(contains("known.toml"));
}

#[test]
fn a_full_disk_costs_the_results_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = peerproof(folder.path());
    command.args(["check", "-k", "toolhost/serve/chunking", "--report", "results=/dev/full"]);
    command.args(["--report", "junit=/dev/null/j.xml"]);
    let assert = command.assert().code(5).stdout(contains("passed"));
    assert.stderr(contains("cannot write to the results file /dev/full").and(contains("/dev/null/j.xml")));
}

#[test]
fn a_configuration_is_written_once_and_can_be_checked() {
    let folder = tempfile::tempdir().unwrap();
    let init = || {
        let mut command = peerproof(folder.path());
        command.args(["init", "toolhost", "--", binary(), "peer", "toolhost", "--serve"]);
        command
    };
    init().assert().code(0).stdout(contains("15 roles"));
    let written = fs::read(folder.path().join("peerproof.toml")).unwrap();
    init().assert().code(2).stderr(contains("already exists"));
    assert_eq!(fs::read(folder.path().join("peerproof.toml")).unwrap(), written);
    peerproof(folder.path()).args(["check", "-k", "toolhost/serve/chunking"]).assert().code(0);
    let assert = peerproof(folder.path()).arg("doctor").assert().code(0);
    assert.stdout(contains("serve  start-up").and(contains("no command `run` is configured")));
}

#[test]
fn init_tries_the_roles_that_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let mut init = peerproof(folder.path());
    init.args(["init", "json_rpc", "--role", "echo=peerproof.echo", "--role", "fail=peerproof.echo"]);
    let told = contains("no tool plays the role `fail`: answers {\"jsonrpc\":\"2.0\"")
        .and(contains("the role `echo`").not());
    init.args(["--", binary(), "peer", "json_rpc", "--stdio"]).assert().code(0).stderr(told);
}

#[test]
fn init_leaves_no_part_of_a_file_that_does_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    // A block of `ulimit` has 512 bytes, less than the configuration.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let mut init = std::process::Command::new("sh");
    init.args([
        "-c",
        script,
        "sh",
        binary(),
        "init",
        "json_rpc",
        "--",
        binary(),
        "peer",
        "json_rpc",
        "--stdio",
    ]);
    let ended = init.current_dir(folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(told.contains("cannot write peerproof.toml"), "{told}");
    assert!(!folder.path().join("peerproof.toml").exists());
}

#[test]
fn a_worker_is_configured_and_looked_at_like_any_peer() {
    let folder = tempfile::tempdir().unwrap();
    let worker = ["--", binary(), "peer", "run_queue", "worker", "{queue}", "--runner", "{runner}"];
    peerproof(folder.path()).args(["init", "run_queue"]).args(worker).assert().code(0);
    let written = fs::read_to_string(folder.path().join("peerproof.toml")).unwrap();
    for line in
        ["\nworker = [", "\n# http = [", "\n# serve = [\"./my_peer\", \"{root}\"]", "\n# token = ", "sigterm"]
    {
        assert!(written.contains(line), "{line:?} is not in {written}");
    }
    let doctor = peerproof(folder.path()).arg("doctor").assert().code(0);
    doctor.stdout(contains("worker").and(contains("genesis")));
    let check = peerproof(folder.path()).args(["check", "-k", "canary/plain-request"]).assert().code(0);
    let named_as = |kind: &str| predicates::str::is_match(format!(r"{kind}s? [^;]*\bonce \(")).unwrap();
    check.stdout(named_as("command").and(named_as("feature").not()));
}

#[test]
fn a_toolhost_that_is_not_told_where_it_works_is_refused() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let configured = |root: &str, env: &str| {
        let serve = format!("[{binary:?}, \"peer\", \"run_queue\", \"genesis\", {root} \"--serve\"]");
        let text = format!("[peer]\nboundary = \"run_queue\"\nserve = {serve}\nenv = {{ {env} }}\n");
        fs::write(folder.path().join("peerproof.toml"), text).unwrap();
        peerproof(folder.path()).arg("doctor").assert()
    };
    configured("\"--root\", \"x\",", "").code(2).stderr(contains("`serve` has no {root}"));
    for (root, env) in [("\"--root\", \"{root}\",", ""), ("", "MACHINA_ROOT = \"{root}\"")] {
        configured(root, env).stderr(contains("has no {root}").not()).stdout(contains("serve"));
    }
}

#[test]
fn a_server_that_wants_signatures_is_not_blamed_and_its_key_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let keyed = ["--", binary(), "peer", "json_rpc", "--stdio", "--auth-key", "k"];
    let mut init = peerproof(folder.path());
    let needs = contains("error -32003: the server refuses unsigned messages")
        .and(contains("set auth = { key_env = \"NAME\" }"));
    init.args(["init", "json_rpc"]).args(keyed).assert().code(0).stderr(needs);
    let assert = peerproof(folder.path()).arg("check").assert().code(4);
    assert.stdout(
        contains("the first canary failed: error -32003: the server refuses unsigned")
            .and(contains("FAIL").not()),
    );
    let configuration = folder.path().join("peerproof.toml");
    let written = fs::read_to_string(&configuration).unwrap();
    assert!(written.contains("\n# auth = "), "it did not show: {written}");
    let claimed = written.replace("[features]", "[features]\nauth = { key_env = \"NAME\" }");
    fs::write(&configuration, claimed).unwrap();
    let mut signed = peerproof(folder.path());
    signed.env("NAME", "k").args(["check", "-k", "json_rpc/stdio/lines"]).assert().code(0);
}

/// JSON-RPC server that refuses unknown methods as invalid requests.
const WRONG_CODE: &str = r#"
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    error = {"code": -32600, "message": "unknown"}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}), flush=True)
"#;

#[test]
fn a_plain_request_that_is_answered_wrongly_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("peer.py"), WRONG_CODE).unwrap();
    let mut check = peerproof(folder.path());
    check.args(["check", "json_rpc", "-k", "canary/plain-request", "-k", "json_rpc/stdio/{flush,chunks}/*"]);
    let assert = check.args(["--", "python3", "peer.py"]).assert().code(1);
    assert.stdout(contains("1 cause, 5 failed checks").and(contains("1 check waits for RPC-METHOD-01")));
    let results = ResultsFile::load(&folder.path().join("peerproof-out/results.ndjson")).unwrap();
    let results = results.whole().unwrap();
    let cause = &results.runs[0].causes[0];
    let canary = "json_rpc/stdio/canary/plain-request";
    assert_eq!((cause.clause.0.as_str(), cause.check.as_str()), ("RPC-METHOD-01", canary));
    // A peer with one answer to everything proves nothing.
    assert!(results.checks().all(|check| !check.verdict.is_good()));
}

#[test]
fn a_run_ends_at_a_rung_or_at_a_number_of_causes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("peer.py"), WRONG_CODE).unwrap();
    let check = |args: &[&str], peer: &[&str]| {
        let mut check = peerproof(folder.path());
        check.args(["check", "json_rpc"]).args(args).arg("--").args(peer);
        check.assert()
    };
    let (right, wrong) = ([binary(), "peer", "json_rpc", "--stdio"], ["python3", "peer.py"]);
    let some = ["-k", "json_rpc/stdio/{flush,nesting}/*"];
    let left_out =
        contains("Not run because of --rung ordinary: malformed, hostile").and(contains("1 check: 1 passed"));
    check(&[&some[..], &["--rung", "ordinary"]].concat(), &right).code(0).stdout(left_out);
    check(&[&some[..], &["--rung", "near"]].concat(), &right)
        .code(2)
        .stderr(contains("; the rungs are: ordinary"));
    let stopped = check(&["--max-causes", "1", "--shrink-time", "0"], &wrong).code(5);
    stopped.stdout(contains("1 cause, 1 failed check")).stderr(contains("stopped by --max-causes"));
    check(&["-k", "json_rpc/stdio/flush/*", "--max-causes", "1"], &right).code(0);
}

#[test]
fn what_answers_the_first_canary_wrongly_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"while read -r line; do echo '{{"jsonrpc":"2.0","result":43,"id":1}}'; done"#;
    let mut check = peerproof(folder.path());
    check.args(["check", "json_rpc", "-k", "canary/plain-request", "-k", "json_rpc/stdio/lines"]);
    let told = contains("got       {\"jsonrpc\":\"2.0\",\"result\":43,\"id\":1}")
        .and(contains(" checks wait for RPC-"));
    check.args(["--", "sh", "-c", script]).assert().code(1).stdout(told);
}

#[test]
fn doctor_tells_roles_features_and_sides_by_what_it_sees() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let doctor = |boundary: &str, flags: &[&str], own: &[&str]| {
        let mut command = peerproof(folder.path());
        command.args(["doctor", boundary]).args(flags).args(["--", binary, "peer", boundary]).args(own);
        String::from_utf8(command.assert().get_output().stdout.clone()).unwrap()
    };
    let said = |out: &str, parts: &[&str]| {
        // Long lines are wrapped.
        let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(words.contains(part), "{part:?} is not in {out}");
        }
    };
    let out = doctor("toolhost", &[], &["--serve"]);
    said(&out, &["it answers as", "peer toolhost --run '{aid}'"]);
    let roles: Vec<&str> =
        ["echo=peerproof.echo", "fail=peerproof.echo", "counter=nowhere", "sleep=peerproof.echo"]
            .into_iter()
            .flat_map(|role| ["--role", role])
            .collect();
    let out = doctor("json_rpc", &roles, &["--stdio"]);
    said(
        &out,
        &[
            "yes echo {\"method\":\"peerproof.echo\"} (configured; its trial passed)",
            "no fail does not play the role: answers {\"jsonrpc\"",
            "no counter does not play the role",
            "-32601",
            "no sleep does not play the role: answers after",
        ],
    );
    // A server that prints something other than a message breaks a clause, and no role is to blame.
    let script = format!("echo ready; exec {binary} peer json_rpc --stdio");
    let mut command = peerproof(folder.path());
    command.args(["doctor", "json_rpc", "--role", "fail=peerproof.fail", "--", "sh", "-c", &script]);
    let out = String::from_utf8_lossy(&command.assert().get_output().stdout).into_owned();
    said(&out, &["yes fail {\"method\":\"peerproof.fail\"} (configured; its trial passed)"]);
    // Server that listens at another path.
    let script = "import http.server,sys\nclass H(http.server.BaseHTTPRequestHandler):\n  def do_POST(s):\n    \
                  s.send_response(404)\n    s.send_header('Content-Length','0')\n    s.end_headers()\n\
                  http.server.HTTPServer(('127.0.0.1',int(sys.argv[1])),H).serve_forever()";
    let mut command = peerproof(folder.path());
    command.args(["doctor", "json_rpc", "--", "python3", "-c", script, "{port}"]);
    let out = String::from_utf8_lossy(&command.assert().get_output().stdout).into_owned();
    said(&out, &["answered 404: add the path of the server to `url` of `http`"]);
    let out = doctor("json_rpc", &[], &["--stdio", "--auth-key", "k"]);
    said(&out, &["no auth error -32003: the server refuses unsigned messages"]);
    let out = doctor("policy_driver", &[], &["--drive", "{payload}"]);
    assert!(out.contains("patches") && !out.contains("merged_inputs"), "{out}");
    // Payload that asks for a NOOP although there is something to pick.
    let stops = r#"pick = { payload = { goal_digest = "g|m|FLAGS:", state_digest = "s", control_mode = "POLICY_ONLY",
        inputs = { policy = "stop" }, menu = [{ sid = "SID0007", aid = "AID.A.v1", name = "a", tags = [] }] } }"#;
    let stops = stops.replace('\n', "");
    let command = format!("[{binary:?}, \"peer\", \"policy_driver\", \"--drive\", \"{{payload}}\"]");
    let text = format!("[peer]\nboundary = \"policy_driver\"\ncommand = {command}\n[roles]\n{stops}\n");
    fs::write(folder.path().join("peerproof.toml"), text).unwrap();
    let out = peerproof(folder.path()).arg("doctor").assert().code(0).get_output().stdout.clone();
    let told = "no pick does not play the role: with its payload the driver gives exit status 0 and \"<NOOP><END>\\n\", not a PICK";
    said(&String::from_utf8_lossy(&out), &[told]);
    let out = doctor("policy_driver", &[], &["--select"]);
    said(&out, &["it answers as `selector`", "side = \"consumer\""]);
}

#[test]
fn init_and_doctor_know_engines_and_callers_of_envelopes() {
    for (own, key, side, told, check) in [
        (
            &["engine", "process"][..],
            "command = [",
            "provider",
            "no command `http`",
            "envelope/process/canary",
        ),
        (
            &["engine", "--http", "{addr}"],
            "http = [",
            "provider",
            "no command `command`",
            "envelope/http/canary",
        ),
        (
            &["caller", "{scenario}", "{results}"],
            "caller = [",
            "consumer",
            "caller",
            "envelope/caller/canary",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut init = peerproof(folder.path());
        init.args(["init", "envelope", "--", binary(), "peer", "envelope"]).args(own).assert().code(0);
        let written = fs::read_to_string(folder.path().join("peerproof.toml")).unwrap();
        assert!(written.lines().any(|line| line.starts_with(key)), "{written}");
        assert!(written.contains(&format!("side = \"{side}\"")), "{written}");
        let choice = if side == "consumer" { "missing_core_in_reply" } else { "over_bound" };
        assert!(written.contains(choice), "{written}");
        let doctor = peerproof(folder.path()).arg("doctor").assert().code(0);
        // Long lines are wrapped.
        let said = String::from_utf8_lossy(&doctor.get_output().stdout).into_owned();
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(told) && (side == "consumer" || words.contains("deterministic")), "{said}");
        peerproof(folder.path()).args(["check", "-k", check]).assert().code(0);
    }
}

#[test]
fn doctor_says_of_a_silent_engine_that_nothing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let mut doctor = peerproof(folder.path());
    doctor.args(["doctor", "envelope", "--", "sh", "-c", "cat >/dev/null"]).assert().code(4);
}

#[test]
fn runners_and_replayers_of_logs_are_configured_and_diagnosed_by_their_placeholders() {
    for (words, check) in [
        (&["replayer", "{log}", "{peer}"][..], "run_log/replayer/verdict/form"),
        (&["runner", "{request}", "{log}", "{peer}"], "run_log/runner/end/noop"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut init = peerproof(folder.path());
        init.args(["init", "run_log", "--", binary(), "peer", "run_log"]).args(words).assert().code(0);
        let written = fs::read_to_string(folder.path().join("peerproof.toml")).unwrap();
        assert!(
            written.contains("\"run_log\"") && words.iter().all(|word| written.contains(word)),
            "{written}"
        );
        let first = format!("run_log/{}/canary/plain-request", words[0]);
        let doctor = peerproof(folder.path()).arg("doctor").assert().code(0);
        doctor.stdout(contains(words[0]).and(contains(first.as_str())));
        peerproof(folder.path()).args(["check", "-k", check]).assert().code(0).stdout(contains("1 passed"));
        // A program that does nothing is not this kind of peer.
        let mut doctor = peerproof(folder.path());
        let idle = ["true"].iter().chain(&words[1..]);
        doctor.args(["doctor", "run_log", "--"]).args(idle).assert().code(4).stdout(contains(first.as_str()));
    }
}

#[test]
fn runners_services_and_runtimes_of_python_tools_are_configured_and_diagnosed() {
    for (words, key, side, check) in [
        (&["runner"][..], "command = [", "provider", "python_tool/runner/canary/plain-request"),
        (
            &["service", "--http", "{addr}"],
            "http = [",
            "provider",
            "python_tool/service/canary/plain-request",
        ),
        (
            &["runtime", "{scenario}", "{results}"],
            "runtime = [",
            "consumer",
            "python_tool/runtime/canary/plain-request",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut init = peerproof(folder.path());
        init.args(["init", "python_tool", "--", binary(), "peer", "python_tool"])
            .args(words)
            .assert()
            .code(0);
        let written = fs::read_to_string(folder.path().join("peerproof.toml")).unwrap();
        assert!(written.lines().any(|line| line.starts_with(key)), "{written}");
        assert!(written.contains(&format!("side = \"{side}\"")), "{written}");
        peerproof(folder.path()).arg("doctor").assert().code(0).stdout(contains(words[0]));
        peerproof(folder.path()).args(["check", "-k", check]).assert().code(0).stdout(contains("1 passed"));
    }
}

/// A peer configured as the wrong command is recognised, because it answers as another one.
#[test]
fn doctor_tells_a_peer_that_is_configured_as_another_command() {
    for (boundary, key, words, told) in [
        ("envelope", "command", &["caller"][..], "it answers as `caller`, a consumer of this boundary"),
        (
            "run_log",
            "runner",
            &["replayer", "{request}", "{log}", "{peer}"],
            "it answers as `replayer`, a consumer of this boundary",
        ),
        (
            "python_tool",
            "http",
            &["runner", "--http", "{addr}"],
            "it answers as `command`: configure `command`",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let argv: Vec<&str> = [binary(), "peer", boundary].iter().chain(words).copied().collect();
        let text = format!("[peer]\nboundary = {boundary:?}\nside = \"provider\"\n{key} = {argv:?}\n");
        fs::write(folder.path().join("peerproof.toml"), text).unwrap();
        let assert = peerproof(folder.path()).arg("doctor").assert().code(4);
        let said = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(told), "{boundary}: {said}");
    }
}

#[test]
fn secrets_do_not_reach_the_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = peerproof(folder.path());
    command.args(["check", "toolhost", "-k", "toolhost/serve/chunking", "--env", "API_KEY=t0psecret"]);
    command.args(["--", binary(), "peer", "toolhost", "--serve"]).assert().code(0);
    let results = fs::read_to_string(folder.path().join("peerproof-out/results.ndjson")).unwrap();
    assert!(results.contains("API_KEY") && !results.contains("t0psecret"), "{results}");
}

#[test]
fn an_interrupt_ends_the_run_with_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(binary());
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.args(["check", "toolhost", "--timeout-scale", "0.5", "--", "sleep", "1000"]);
    let mut child = start(&mut command);
    // The file is created after interrupts are caught and before the peer is asked anything.
    let results = folder.path().join("peerproof-out/results.ndjson");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !results.exists() {
        assert!(Instant::now() < deadline, "the run did not begin");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{text}");
    let lines = lines(&fs::read(results).unwrap());
    assert_eq!(lines.last().unwrap()["type"], "end", "{text}");
    assert!(text.contains("interrupted"), "{text}");
}

/// The README's example of a failing peer is the real output.
#[test]
fn the_example_of_the_readme_is_real() {
    let readme = fs::read_to_string("../../README.md").unwrap();
    let command = readme.lines().find(|line| line.contains("--mutant defaults-aid")).unwrap();
    let words: Vec<&str> = command.trim_matches(['(', ')', '`', ':']).split_whitespace().collect();
    let shown = readme.split_once("```text\nFAIL ").unwrap().1.split_once("\n```").unwrap().0;
    let folder = tempfile::tempdir().unwrap();
    let mut run = peerproof(folder.path());
    let args = words[1..]
        .iter()
        .map(|word| word.trim_matches('\''))
        .map(|word| if word == "peerproof" { binary() } else { word });
    let assert = run.args(args).assert().code(1);
    let stdout = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(
        stdout.contains(&format!("FAIL {shown}\n")),
        "README shows\nFAIL {shown}\nbut there is\n{stdout}"
    );
}

#[test]
fn what_came_instead_of_the_answer_to_the_first_canary_is_said() {
    for (peer, checks, said) in [
        (
            "boundary = \"toolhost\"\nserve = [\"sh\", \"-c\", \"while read -r line; do echo odd; done\"]\n\
             [roles]\nany = { aid = \"a\" }",
            "toolhost/serve/{canary,chunking}/*",
            "found `o`: odd",
        ),
        (
            "boundary = \"policy_driver\"\ncommand = [\"sh\", \"-c\", \"echo odd\"]",
            "policy_driver/driver/{canary,load}/*",
            "odd",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("peerproof.toml"), format!("[peer]\n{peer}\n")).unwrap();
        let assert = peerproof(folder.path()).args(["check", "-k", checks]).assert().code(1);
        let said = predicates::str::is_match(format!("got .*{said}")).unwrap();
        assert.stdout(said.and(contains("FAIL")).and(contains(" checks wait for ")));
    }
}

#[test]
fn failures_are_told_as_they_come_and_reproducers_stand_by_cause_beside_those_of_earlier_runs() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("peerproof.toml"), "[peer]\nboundary = \"toolhost\"\nserve = [\"true\"]\n")
        .unwrap();
    let check = |more: &[&str], code: i32| {
        let mut check = peerproof(folder.path());
        check.args(["check", "toolhost", "-k", "toolhost/serve/request/aid-missing", "--"]);
        check.args([binary(), "peer", "toolhost", "--serve"]).args(more).assert().code(code)
    };
    check(&["--mutant", "defaults-aid"], 1)
        .stdout(contains("with peerproof.toml, except for the command line"))
        .stderr(contains("FAIL TH-REQ-02 accepted: toolhost/serve/request/aid-missing"));
    let out = folder.path().join("peerproof-out");
    let name = "01-toolhost__serve__request__aid-missing";
    let script = fs::read_to_string(out.join(name).join("repro.sh")).unwrap();
    assert!(!script.contains("replay --live"), "its input is known: {script}");
    check(&[], 0);
    assert!(!out.join(name).exists() && out.join("earlier").join(name).join("repro.sh").exists());
}
