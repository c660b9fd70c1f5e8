//! Tests of `peerproof record` between live peers, and of `peerproof lint` on its output: bytes are relayed unchanged,
//! and the faulty side is blamed under the broken clause.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};

use predicates::prelude::*;
use predicates::str::contains;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::start::{Command, binary, peerproof, start};

/// Sends each line and awaits its answer.
const ASK: &str = r#"ask() { printf '%s\n' "$1"; IFS= read -r reply || exit 9; }
say() { printf '%s\n' "$1"; }
"#;

const PLAIN_CLIENT: &str = r#"
ask '{"jsonrpc":"2.0","method":"peerproof.echo","params":{"n":1,"b":[1,2]},"id":1}'
ask '{"jsonrpc":"2.0","method":"peerproof.echo","params":[1,2],"id":"two"}'
say '{"jsonrpc":"2.0","method":"peerproof.counter","params":{}}'
ask '{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":0}'
ask '[{"jsonrpc":"2.0","method":"peerproof.echo","params":[],"id":"a"},{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":"b"}]'
ask '{"jsonrpc":"2.0","method":"peerproof.counter","params":{},"id":99}'
exit 7
"#;

/// Records the sh client `script` against `server`; returns the transcript.
fn recorded(folder: &Path, boundary: &str, script: &str, server: &[&str], code: i32) -> PathBuf {
    let client = folder.join("client.sh");
    fs::write(&client, format!("{ASK}{script}")).unwrap();
    let mut command = peerproof(folder);
    command.args(["record", "--boundary", boundary, "--grace", "2s", "--", "sh"]).arg(&client).arg("---");
    let out = command.args(server).assert().code(code).get_output().clone();
    let said = String::from_utf8(out.stderr).unwrap();
    let path = said.split("peerproof lint ").nth(1).unwrap_or_else(|| panic!("{said}"));
    folder.join(path.trim())
}

fn json_rpc<'a>(extra: &[&'a str]) -> Vec<&'a str> {
    [&[binary(), "peer", "json_rpc", "--stdio"], extra].concat()
}

/// Side, clause and reason of each finding.
fn blamed(folder: &Path, transcript: &Path, flags: &[&str]) -> Vec<(String, String, String)> {
    let mut command = peerproof(folder);
    let out = command.args(["lint", "--format", "ndjson"]).args(flags).arg(transcript).output();
    let lines: Vec<Value> = std::str::from_utf8(&out.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!((&lines[0]["type"], &lines.last().unwrap()["type"]), (&"lint".into(), &"end".into()));
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let findings: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "finding")
        .map(|line| (text(line, "side"), text(line, "clause"), text(line, "reason")))
        .collect();
    let broken = lines.iter().any(|line| line["type"] == "finding" && line["level"] != "should");
    assert_eq!(out.status.code(), Some(i32::from(broken)), "{findings:?}");
    findings
}

#[test]
fn a_clean_pair_is_clean_and_both_ends_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let transcript = recorded(folder.path(), "json_rpc", PLAIN_CLIENT, &json_rpc(&[]), 0);
    let text = fs::read_to_string(&transcript).unwrap();
    assert!(text.contains(r#""what":"client_exited","exit":{"code":7}"#), "{text}");
    assert!(text.contains(r#""what":"exited","exit":{"code":0}"#), "{text}");
    assert_eq!(blamed(folder.path(), &transcript, &["--role", "counter=peerproof.counter"]), []);
    let lint = peerproof(folder.path()).args(["lint", "--strict"]).arg(&transcript).assert().code(0);
    lint.stdout(contains("provider  no finding").and(contains("consumer  no finding")));
    peerproof(folder.path()).arg("replay").arg(&transcript).assert().code(0);
    // The client's bytes are an ordinary plan.
    let mut live = peerproof(folder.path());
    live.args(["replay", "--live"]).arg(&transcript).arg("--").args(json_rpc(&[])).assert().code(0);
}

#[test]
fn a_wrong_server_is_blamed_and_its_client_is_not() {
    let folder = tempfile::tempdir().unwrap();
    for (mutant, clause, reason) in [
        ("prints-banner", "RPC-FRAME-05", "other_output"),
        ("id-as-string", "RPC-ID-02", "wrong_id"),
        ("result-and-error", "RPC-MSG-02", "result_and_error"),
        ("jsonrpc-missing", "RPC-MSG-01", "wrong_version"),
        ("code-as-string", "RPC-MSG-04", "error_code"),
        ("unknown-method-as-invalid", "RPC-METHOD-01", "wrong_code"),
        ("drops-batch-element", "RPC-BATCH-05", "no_reply"),
        ("answers-notifications", "RPC-NOTE-01", "answered"),
        ("runs-notifications-twice", "RPC-NOTE-02", "wrong_result"),
        ("reverses-positional-params", "RPC-PARAMS-02", "wrong_result"),
    ] {
        let server = json_rpc(&["--mutant", mutant]);
        let transcript = recorded(folder.path(), "json_rpc", PLAIN_CLIENT, &server, 0);
        let flags = ["--role", "counter=peerproof.counter", "--role", "echo=peerproof.echo"];
        let found = blamed(folder.path(), &transcript, &flags);
        let expected = ("provider".to_owned(), clause.to_owned(), reason.to_owned());
        assert!(found.contains(&expected), "{mutant}: {found:?}");
        assert!(found.iter().all(|(side, ..)| side == "provider"), "{mutant}: {found:?}");
    }
}

#[test]
fn a_wrong_client_is_blamed_and_its_server_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let good = r#"{"jsonrpc":"2.0","method":"peerproof.echo","params":{},"id":1}"#;
    for (script, found) in [
        ("ask '{oops}'".to_owned(), vec![("RPC-SENT-01", "not_json")]),
        ("ask '[]'".to_owned(), vec![("RPC-SENT-01", "empty_batch")]),
        ("ask '7'".to_owned(), vec![("RPC-SENT-01", "not_an_object")]),
        (format!("printf '%s' '{good}'"), vec![("RPC-SENT-01", "unfinished_line")]),
        (r#"ask '{"method":"peerproof.echo","id":1}'"#.to_owned(), vec![("RPC-SENT-02", "wrong_version")]),
        (r#"ask '{"jsonrpc":"2.0","method":1,"id":1}'"#.to_owned(), vec![("RPC-SENT-02", "method_type")]),
        (
            r#"ask '{"jsonrpc":"2.0","method":"peerproof.echo","params":7,"id":1}'"#.to_owned(),
            vec![("RPC-SENT-02", "params_type")],
        ),
        (r#"ask '{"jsonrpc":"2.0","method":"x","id":[1]}'"#.to_owned(), vec![("RPC-SENT-03", "id_type")]),
        (
            r#"ask '{"jsonrpc":"2.0","method":"x","id":1.5}'"#.to_owned(),
            vec![("RPC-SENT-04", "fractional_id")],
        ),
        (format!("ask '{good}\n{good}'; read -r more"), vec![("RPC-SENT-05", "id_reused")]),
        (format!("ask '{good}'; ask '{good}'"), vec![]),
        (r#"ask '{"jsonrpc":"2.0","result":1,"id":1}'"#.to_owned(), vec![("RPC-SENT-06", "answers_nothing")]),
        ("kill -SEGV $$".to_owned(), vec![("RPC-SENT-07", "crashed")]),
    ] {
        let transcript = recorded(folder.path(), "json_rpc", &script, &json_rpc(&[]), 0);
        let blamed = blamed(folder.path(), &transcript, &[]);
        let expected: Vec<_> = found
            .into_iter()
            .map(|(clause, reason)| ("consumer".to_owned(), clause.to_owned(), reason.to_owned()))
            .collect();
        assert_eq!(blamed, expected, "{script}");
    }
}

#[test]
fn the_specification_alone_asks_less() {
    let folder = tempfile::tempdir().unwrap();
    let good = r#"{"jsonrpc":"2.0","method":"peerproof.echo","params":{},"id":1}"#;
    let script = format!("ask '{good}\n{good}'; read -r more");
    let transcript = recorded(folder.path(), "json_rpc", &script, &json_rpc(&[]), 0);
    assert_eq!(blamed(folder.path(), &transcript, &[]).len(), 1);
    assert_eq!(blamed(folder.path(), &transcript, &["--requirements", "spec"]), []);
    assert_eq!(blamed(folder.path(), &transcript, &["--side", "provider"]), []);
}

#[test]
fn toolhosts_and_dispatchers_are_judged_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let call = r#"{"aid":"AID.PEERPROOF.ECHO.v1","input_json":"{\"x\":1}"}"#;
    let host = |extra: &[&'static str]| [&[binary(), "peer", "toolhost", "--serve"][..], extra].concat();
    let role = ["--role", "echo=AID.PEERPROOF.ECHO.v1"];
    let script = format!("ask '{call}'; ask '{{oops'; ask '{call}'");
    let transcript = recorded(folder.path(), "toolhost", &script, &host(&[]), 0);
    let consumer = |clause: &str, reason: &str| ("consumer".to_owned(), clause.to_owned(), reason.to_owned());
    assert_eq!(blamed(folder.path(), &transcript, &role), [consumer("TH-DISP-03", "not_json")]);
    let transcript = recorded(folder.path(), "toolhost", "ask '{}'", &host(&[]), 0);
    assert_eq!(blamed(folder.path(), &transcript, &role), [consumer("TH-DISP-02", "no_aid")]);
    let transcript = recorded(folder.path(), "toolhost", "ask '{}'", &host(&["--mutant", "defaults-aid"]), 0);
    let found = blamed(folder.path(), &transcript, &role);
    assert!(found.iter().any(|(side, clause, _)| side == "provider" && clause == "TH-REQ-02"), "{found:?}");
}

#[test]
fn a_run_is_judged_by_the_rules_of_run_mode() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let role = ["--role", "echo=AID.PEERPROOF.ECHO.v1"];
    let host = |extra: &[&'static str]| {
        [&[binary, "peer", "toolhost", "--run", "AID.PEERPROOF.ECHO.v1"][..], extra].concat()
    };
    let hear = "exec >&-; cat >/dev/null";
    let call = format!(r#"printf '%s\n%s' '{{' '"input_json":"{{\"x\":1}}"}}'; {hear}"#);
    let transcript = recorded(folder.path(), "toolhost", &call, &host(&[]), 0);
    assert_eq!(blamed(folder.path(), &transcript, &role), []);
    peerproof(folder.path()).arg("replay").arg(&transcript).assert().code(0);
    let mut live = peerproof(folder.path());
    live.args(["replay", "--live"]).arg(&transcript).arg("--").args(host(&[])).assert().code(0);
    // The plugin before the AID is the host's own word.
    let shell = format!("exec {binary} peer toolhost --run \"$2\"");
    let plugin = ["/bin/sh", "-c", &shell, "--run", "tools", "AID.PEERPROOF.ECHO.v1"];
    let transcript = recorded(folder.path(), "toolhost", &call, &plugin, 0);
    assert_eq!(blamed(folder.path(), &transcript, &role), []);
    let transcript = recorded(folder.path(), "toolhost", &format!("printf '{{oops'; {hear}"), &host(&[]), 0);
    let found = blamed(folder.path(), &transcript, &role);
    assert_eq!(found, [("consumer".to_owned(), "TH-DISP-03".to_owned(), "not_json".to_owned())]);
    for (mutant, clause, script) in [
        ("exit-status-after-success", "TH-RUN-02", call.as_str()),
        ("delta-in-run-mode", "TH-REPLY-09", &call),
        ("silent-in-run-mode", "TH-RUN-04", &call),
        ("runs-empty-stdin", "TH-RUN-01", hear),
    ] {
        let server = host(&["--mutant", mutant]);
        let transcript = recorded(folder.path(), "toolhost", script, &server, 0);
        let found = blamed(folder.path(), &transcript, &[&role[..], &["--side", "provider"]].concat());
        assert_eq!(
            found.iter().map(|(_, clause, _)| clause.as_str()).collect::<Vec<_>>(),
            [clause],
            "{mutant}"
        );
        let mut shrink = peerproof(folder.path());
        shrink.arg("shrink").arg(&transcript).arg("--").args(server).assert().code(1);
    }
}

#[test]
fn which_command_a_server_is_can_be_said() {
    let binary = binary();
    let folder = tempfile::tempdir().unwrap();
    let script = r#"printf '{"input_json":"{}"}'; exec >&-; cat >/dev/null"#;
    fs::write(folder.path().join("client.sh"), script).unwrap();
    let aid = "AID.PEERPROOF.ECHO.v1";
    fs::write(folder.path().join("host.sh"), format!("exec {binary} peer toolhost --run {aid}")).unwrap();
    let record = |extra: &[&str], file: &str| {
        let mut command = peerproof(folder.path());
        command.args(["record", "--boundary", "toolhost"]).args(extra);
        command.args(["--", "sh", "client.sh", "---", "sh", "host.sh"]).assert().code(0);
        blamed(folder.path(), &folder.path().join("peerproof-out/recorded").join(file), &[])
    };
    assert!(!record(&[], "transcript.ndjson").is_empty(), "nothing tells that it is a run");
    assert_eq!(record(&["--as", "run", "--aid", aid], "transcript-2.ndjson"), []);
    assert_eq!(record(&["--as", "run"], "transcript-3.ndjson"), []);
    let mut command = peerproof(folder.path());
    command.args(["record", "--boundary", "toolhost", "--as", "ran", "--", "sh", "host.sh"]);
    command.assert().code(2).stderr(contains("the servers of toolhost are run, serve"));
}

#[test]
fn in_the_place_of_the_server_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let sent =
        "{\"jsonrpc\":\"2.0\",\"method\":\"peerproof.echo\",\"params\":{\"t\":\"é\"},\"id\":1}\r\n\n[1]\n";
    let bare = Command::new(binary()).args(["peer", "json_rpc", "--stdio"]).write_stdin(sent).output();
    let mut command = peerproof(folder.path());
    command.args(["record", "--boundary", "json_rpc", "--out", "here", "--"]).args(json_rpc(&[]));
    let between = command.write_stdin(sent).assert().code(0).get_output().clone();
    assert_eq!(between.stdout, bare.stdout);
    let mut again = peerproof(folder.path());
    again.args(["record", "--boundary", "json_rpc", "--out", "here", "--"]).args(json_rpc(&[]));
    again.write_stdin(sent).assert().code(0).stderr(contains("transcript-2.ndjson"));
    assert!(folder.path().join("here/transcript.ndjson").exists(), "no recording takes another's place");
}

#[test]
fn any_bytes_pass_unchanged_and_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = peerproof_engine::data::rng::Rng::new(8);
    let bytes: Vec<u8> = (0..300_000).map(|_| (rng.next_u64() >> 13) as u8).collect();
    fs::write(folder.path().join("sent"), &bytes).unwrap();
    let server = ["sh", "-c", "cat > got; cat sent"];
    let transcript = recorded(folder.path(), "json_rpc", "cat sent; exec >&-; cat > back", &server, 0);
    assert_eq!(fs::read(folder.path().join("got")).unwrap(), bytes);
    assert_eq!(fs::read(folder.path().join("back")).unwrap(), bytes);
    let transcript =
        peerproof_engine::data::transcript::Transcript::load(&*fs::read(transcript).unwrap()).unwrap();
    assert_eq!(transcript.stdout(0), bytes);
}

#[test]
fn a_flood_goes_through_and_the_file_keeps_its_bound() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = peerproof(folder.path());
    command.args(["record", "--boundary", "json_rpc", "--bytes-max", "200000", "--out", "o", "--"]);
    command.args(["sh", "-c", "head -c 20000000 /dev/urandom", "---", "sh", "-c", "wc -c >&2"]);
    command.assert().code(5).stderr(contains("20000000\n").and(contains("the size limit of 200000 bytes")));
    let file = folder.path().join("o/transcript.ndjson");
    assert!(fs::metadata(&file).unwrap().len() < 201_000);
}

#[test]
fn a_server_that_dies_is_blamed_and_nobody_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"ask '{"jsonrpc":"2.0","method":"x","id":1}'"#;
    let transcript = recorded(folder.path(), "json_rpc", script, &["sh", "-c", "read line; exit 3"], 0);
    let found = blamed(folder.path(), &transcript, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].0.as_str(), found[0].2.as_str()), ("provider", "crashed"));
}

#[test]
fn a_server_that_does_not_end_is_ended_and_owes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"say '{"jsonrpc":"2.0","method":"x","id":1}'"#;
    let transcript = recorded(folder.path(), "json_rpc", script, &["sleep", "1000"], 5);
    let found = blamed(folder.path(), &transcript, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].2, "does_not_end");
    assert_eq!(blamed(folder.path(), &transcript, &["--requirements", "spec"]), []);
}

#[test]
fn an_interrupted_recording_is_whole_and_blames_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = process::Command::new(binary());
    command.args(["record", "--boundary", "json_rpc", "--out", "o", "--"]);
    command.args(["sh", "-c", "read line; echo '[]'; cat"]).current_dir(folder.path());
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = start(command);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"id\":1}\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "[]\n");
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdin);
    let found = blamed(folder.path(), &folder.path().join("o/transcript.ndjson"), &[]);
    assert!(found.iter().all(|(_, _, reason)| reason != "no_reply"), "{found:?}");
}

#[test]
fn transcripts_of_checks_are_judged_on_the_side_that_was_checked() {
    let folder = tempfile::tempdir().unwrap();
    let mut check = peerproof(folder.path());
    check.args(["check", "json_rpc", "-k", "json_rpc/*/requests/*", "--role", "echo=peerproof.echo", "--"]);
    check.args(json_rpc(&["--mutant", "takes-any-version"])).assert().code(1);
    let out = fs::read_dir(folder.path().join("peerproof-out")).unwrap();
    let transcript = out
        .map(|entry| entry.unwrap().path().join("transcript.ndjson"))
        .find(|path| path.exists())
        .expect("a reproducer");
    let found = blamed(folder.path(), &transcript, &[]);
    assert_eq!(found[0].1, "RPC-REQ-01", "{found:?}");
    assert!(found.iter().all(|(side, ..)| side == "provider"), "{found:?}");
    let consumer = peerproof(folder.path()).args(["lint", "--side", "consumer"]).arg(&transcript).assert();
    consumer.code(4).stdout(contains("peerproof played the other side"));
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 6] = [
        (&["record", "--", "cat"], "no boundary is named"),
        (&["record", "--boundary", "json_rpc"], "no peer is given"),
        (&["record", "--boundary", "json_rpc", "--", "---", "cat"], "no peer is given"),
        (&["record", "--boundary", "json_rpc", "--", "no-such-program"], "no-such-program"),
        (&["record", "--boundary", "json_rpc", "--", "no-such-client", "---", "cat"], "start the client"),
        (&["lint", "nothing.ndjson"], "cannot read nothing.ndjson"),
    ];
    for (args, said) in cases {
        peerproof(folder.path()).args(args).assert().code(2).stderr(contains(said));
    }
}

const KEYED: &str = r#"
[peer]
boundary = "json_rpc"
command = ["none"]
[features]
auth = { key = "peerproof-test-key", key_id = "k1" }
[roles]
echo = { method = "peerproof.echo" }
"#;

#[test]
fn standard_error_of_both_is_kept_and_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("c.sh"), "echo from the client >&2; exec cat >/dev/null").unwrap();
    let mut command = peerproof(folder.path());
    command.args(["record", "--boundary", "json_rpc", "--", "sh", "c.sh", "---", "sh", "-c"]);
    let out = command.arg("echo from the server >&2").assert().code(0).get_output().clone();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("from the client\n") && said.contains("from the server\n"), "{said}");
    let path = folder.path().join("peerproof-out/recorded/transcript.ndjson");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(r#""what":"stderr","#) && text.contains(r#""what":"client_stderr","#), "{text}");
    let replay = peerproof(folder.path()).arg("replay").arg(&path).output();
    let shown = String::from_utf8(replay.stdout).unwrap();
    assert!(shown.contains("stderr of the client (16 bytes): from the client"), "{shown}");
}

#[test]
fn http_is_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = peerproof(folder.path());
    command
        .args(["record", "--boundary", "json_rpc", "--", "./server", "{port}"])
        .assert()
        .code(2)
        .stderr(contains("HTTP is not recorded"));
}

/// A recorded conversation is signed again when repeated, because the old time and nonces would be refused.
#[test]
fn what_was_signed_in_a_recording_is_signed_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("keyed.toml"), KEYED).unwrap();
    let server = |mutant: &str| {
        let args = ["--auth-key", "peerproof-test-key", "--auth-key-id", "k1"];
        let own = json_rpc(&args).into_iter().map(str::to_owned).collect::<Vec<_>>();
        if mutant.is_empty() { own } else { [own, vec!["--mutant".to_owned(), mutant.to_owned()]].concat() }
    };
    // Signed by a check, then recorded as a client's message.
    let mut check = peerproof(folder.path());
    check.args([
        "check",
        "json_rpc",
        "--config",
        "keyed.toml",
        "-k",
        "json_rpc/stdio/auth/nonce-repeated",
        "--",
    ]);
    check.args(server("forgets-nonces")).assert().code(1);
    let kept = "peerproof-out/01-json_rpc__stdio__auth__nonce-repeated";
    let stdin = fs::read_to_string(folder.path().join(kept).join("stdin.bin")).unwrap();
    assert!(stdin.contains("\"signature\":\"") && !stdin.contains('@'), "{stdin}");
    fs::write(folder.path().join("said"), &stdin).unwrap();
    let mut record = peerproof(folder.path());
    record.args(["record", "--config", "keyed.toml", "--", "sh", "-c", "cat said", "---"]);
    record.args(server("forgets-nonces")).assert().code(0);
    let file = "peerproof-out/recorded/transcript.ndjson";
    let live = |mutant: &str| {
        let mut live = peerproof(folder.path());
        live.args(["replay", "--live", file, "--config", "keyed.toml", "--"]).args(server(mutant));
        let out = live.output();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    let (code, text) = live("");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("-32003") && !text.contains("-twice"), "{text}");
    let (code, text) = live("forgets-nonces");
    assert!(code == Some(1) && text.contains("RPC-AUTH-03"), "{text}");
    let mut shrink = peerproof(folder.path());
    shrink.args(["shrink", file, "--config", "keyed.toml", "--"]).args(server("forgets-nonces"));
    shrink.assert().code(1).stdout(contains("shrunk from"));
}

/// Known secrets, and the token from a reply, are stored as placeholders of equal length; both sides are judged with
/// these.
#[test]
fn secrets_of_a_recording_are_not_stored() {
    const KEY: &str = "also-Secret-77";
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
ask '{"aid":"_lease.issue","tool_aid":"AID.PEERPROOF.TIER1.v1","tier":1,"ttl_ms":10000}'
token=$(printf '%s' "$reply" | sed 's/.*"token_id":"\([^"]*\)".*/\1/')
printf '%s' "$token" > token
ask "{\"aid\":\"AID.PEERPROOF.TIER1.v1\",\"input_json\":\"{}\",\"lease_token\":\"$token\"}"
ask "{\"aid\":\"AID.PEERPROOF.ECHO.v1\",\"input_json\":\"{\\\"k\\\":\\\"$MY_API_KEY\\\"}\"}"
echo "with $MY_API_KEY" >&2
"#;
    let client = folder.path().join("client.sh");
    fs::write(&client, format!("{ASK}{script}")).unwrap();
    let mut command = peerproof(folder.path());
    command.env("MY_API_KEY", KEY).env("MACHINA_LEASE_ENFORCE", "1");
    command.args(["record", "--boundary", "toolhost", "--", "sh"]).arg(&client).arg("---");
    command.args([binary(), "peer", "toolhost", "--serve"]).assert().code(0);
    let token = fs::read_to_string(folder.path().join("token")).unwrap();
    let transcript = folder.path().join("peerproof-out/recorded/transcript.ndjson");
    let stored = fs::read_to_string(&transcript).unwrap();
    assert!(token.len() > 4 && !stored.contains(&token) && !stored.contains(KEY), "{token}: {stored}");
    assert!(stored.contains("with REDACTED") && stored.matches("REDACTED").count() >= 5, "{stored}");
    assert_eq!(blamed(folder.path(), &transcript, &[]), []);
}

const PLAIN_ENVELOPE: &str = r#"{"envelope_id":"env_0123456789abcdef","request_id":"req_0123456789abcdef","user_id":"u","session_id":"sess_0123456789abcdef","raw_input":"x","outputs":{},"current_stage":"start","terminated":false}"#;

#[test]
fn a_caller_of_one_exchange_is_told_what_no_peer_takes() {
    let folder = tempfile::tempdir().unwrap();
    for (boundary, said, server, clause) in [
        ("envelope", r#"{"user_id":7}"#, ["peer", "envelope", "engine", "process"].as_slice(), "ENV-PROP-03"),
        ("envelope", r#"{"user_id":"u"}"#, &["peer", "envelope", "engine", "process"], "ENV-CALL-26"),
        ("envelope", "PLAIN x", &["peer", "envelope", "engine", "process"], "ENV-CALL-25"),
        ("python_tool", r#"{"protocol_version":2}"#, &["peer", "python_tool", "runner"], "PT-REQ-02"),
    ] {
        let server = [&[binary()], server].concat();
        let said = said.replace("PLAIN", PLAIN_ENVELOPE);
        let transcript = recorded(folder.path(), boundary, &format!("say '{said}'"), &server, 0);
        let blamed = blamed(folder.path(), &transcript, &[]);
        assert_eq!(blamed.len(), 1, "{blamed:?}");
        assert!(blamed[0].0 == "consumer" && blamed[0].1.starts_with(clause), "{blamed:?}");
        fs::remove_dir_all(folder.path().join("peerproof-out")).unwrap();
    }
}
