//! `refpeer policy-select` with real drivers: small shell scripts under a root in a temporary folder.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PAYLOAD, refpeer};
use crate::{REFPEER, runs, write_program};

struct Bench {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
    arguments: Vec<&'static str>,
}

impl Bench {
    /// Creates a selector with this shell script as its driver.
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["root", "tmp"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let bench = Self { folder, variables: Vec::new(), arguments: Vec::new() };
        fs::write(
            bench.path("root/driver.sh"),
            format!("cd '{}'\n{script}\n", bench.folder.path().display()),
        )
        .unwrap();
        let command = format!("sh {}", bench.path("root/driver.sh").display());
        bench.with("MACHINA_POLICY_CMD", &command)
    }

    /// Creates a selector whose driver prints a block and records its start.
    fn printing(block: &str) -> Self {
        Self::new(&format!("echo start >>starts; printf '%s\\n' '{block}'"))
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.to_owned()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn variables(&self) -> Vec<(String, String)> {
        let mut variables = vec![
            ("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT".to_owned(), self.path("root").display().to_string()),
            ("MACHINA_POLICY_TIMEOUT_MS".to_owned(), "30000".to_owned()),
            ("TMPDIR".to_owned(), self.path("tmp").display().to_string()),
        ];
        variables.extend(self.variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        variables
    }

    /// Selections for the lines.
    fn select(&self, lines: &[String]) -> Vec<Value> {
        let output = refpeer("policy-select")
            .args(&self.arguments)
            .envs(self.variables())
            .current_dir(self.folder.path())
            .write_stdin(lines.concat())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
        assert_eq!(fs::read_dir(self.path("tmp")).unwrap().count(), 0, "the payloads are gone");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let selections: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(selections.len(), lines.len(), "{stdout}");
        selections
    }

    fn selection(&self) -> Value {
        self.select(&[asked()]).remove(0)
    }

    /// Number of recorded starts of the driver.
    fn starts(&self) -> usize {
        fs::read_to_string(self.path("starts")).unwrap_or_default().lines().count()
    }

    fn pids(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path("pids")).unwrap();
        text.lines().map(|line| line.trim().parse().unwrap()).collect()
    }
}

fn asked() -> String {
    format!("{}\n", PAYLOAD.replace('\n', " "))
}

fn assert_fallback(selection: &Value) {
    assert_eq!((&selection["kind"], &selection["sid"]), (&json!("PICK"), &json!("SID0007")), "{selection}");
    assert!(selection["raw"].as_str().unwrap().starts_with("fallback: "), "{selection}");
}

#[test]
fn takes_what_the_driver_chose() {
    let bench = Bench::printing("<PICK><SID0008><INP>{\"k\": [1]}</INP><END>");
    let lines = [asked(), "{\n".to_owned(), asked().replace("POLICY_ONLY", "FALLBACK_ONLY"), asked()];
    let selections = bench.select(&lines);
    for picked in [&selections[0], &selections[3]] {
        assert_eq!((&picked["kind"], &picked["sid"]), (&json!("PICK"), &json!("SID0008")));
        let patch: Value = serde_json::from_str(picked["input_patch_json"].as_str().unwrap()).unwrap();
        assert_eq!((patch, &picked["inputs"]), (json!({"k": [1]}), &json!({"k": [1]})));
    }
    assert_eq!(selections[1]["kind"], "INVALID");
    assert_fallback(&selections[2]);
    assert_eq!(bench.starts(), 2);
}

#[test]
fn works_with_the_reference_driver() {
    let name = "MACHINA_POLICY_CMD";
    let command = format!("{REFPEER} policy-driver");
    let bench = Bench::new("").with(name, &command).with("MACHINA_POLICY_ALLOWED_EXE", "refpeer");
    let line = asked().replace("\"inputs\":{}", "\"inputs\":{\"policy_patch64\":{\"k\":\"é\"},\"a\":1}");
    let selection = bench.select(&[line]).remove(0);
    assert_eq!(selection["inputs"]["k"], "é", "{selection}");
    assert!(selection["raw"].as_str().unwrap().starts_with("<PICK><SID0007><INP64>"));
}

#[test]
fn the_driver_sees_a_private_payload_and_little_else() {
    let bench = Bench::new(
        "stat -c '%a' \"$1\" >mode; cat \"$1\" >payload; cat >stdin; env >env; echo $# >count; echo '<NOOP><END>'; echo '<PICK>' >&2",
    )
    .with("BASH_ENV", "/nonexistent")
    .with("MY_SECRET", "x")
    .with("MACHINA_POLICY_LLM_AUTH", "y")
    .with("HOME", "/h");
    assert_eq!(bench.selection()["kind"], "NOOP");
    let read = |name: &str| fs::read_to_string(bench.path(name)).unwrap();
    assert_eq!((read("mode").as_str(), read("stdin").as_str(), read("count").as_str()), ("600\n", "", "1\n"));
    let (payload, sent): (Value, Value) =
        (serde_json::from_str(&read("payload")).unwrap(), serde_json::from_str(PAYLOAD).unwrap());
    assert_eq!(payload, sent);
    let environment = read("env");
    assert!(
        environment.contains("\nMACHINA_POLICY_LLM_AUTH=y")
            || environment.starts_with("MACHINA_POLICY_LLM_AUTH")
    );
    assert!(environment.contains("HOME=/h") && environment.contains("PATH="), "{environment}");
    assert!(!environment.contains("SECRET") && !environment.contains("BASH_ENV"), "{environment}");
}

#[test]
fn resource_limits_are_in_force() {
    let bench = Bench::new(
        "for l in t f v n; do ulimit -S -$l; done >limits; grep processes /proc/self/limits >>limits; echo '<NOOP><END>'",
    )
    .with("MACHINA_POLICY_RLIMIT_CPU_SEC", "7")
    .with("MACHINA_POLICY_RLIMIT_FSIZE_MB", "3")
    .with("MACHINA_POLICY_RLIMIT_NOFILE", "33");
    assert_eq!(bench.selection()["kind"], "NOOP");
    let limits = fs::read_to_string(bench.path("limits")).unwrap();
    let values: Vec<&str> = limits.split_whitespace().collect();
    assert_eq!(values[..4], ["7", "6144", "786432", "33"]);
    assert_eq!(values[4..], ["Max", "processes", "32", "32", "processes"]);
}

#[test]
fn a_limit_that_is_exceeded_is_a_failure() {
    let bench =
        Bench::new("echo start >>starts; while :; do :; done").with("MACHINA_POLICY_RLIMIT_CPU_SEC", "1");
    let selections = bench.select(&[asked(), asked().replace("POLICY_ONLY", "FALLBACK_ONLY")]);
    assert_fallback(&selections[0]);
    assert!(selections[0]["raw"].as_str().unwrap().contains("signal"), "{}", selections[0]);
}

#[test]
fn floods_and_hangs_end_and_nothing_is_left() {
    let family =
        "trap '' TERM\nsleep 1000 & echo $! >>pids\nsetsid sleep 1000 & echo $! >>pids\necho $$ >>pids\n";
    for (script, timeout) in [
        ("exec cat /dev/zero", "30000"),
        ("echo '<PICK><SID0008><END>'; exec 1>&- 2>&-; wait", "3000"),
        ("printf '<PICK><SID00'; wait", "3000"),
        ("echo '<PICK><SID0008><END>'; exit 3", "30000"),
        ("echo '<PICK><SID0008><END>'; kill -9 $$", "30000"),
    ] {
        let bench = Bench::new(&format!("{family}{script}")).with("MACHINA_POLICY_TIMEOUT_MS", timeout);
        assert_fallback(&bench.selection());
        let pids = bench.pids();
        assert_eq!(pids.len(), 3, "setsid (util-linux) is needed");
        assert!(pids.iter().all(|&pid| !runs(pid)), "{script}: {pids:?}");
    }
}

#[test]
fn a_process_that_forks_and_ends_for_ever_is_caught() {
    // Each process of the chain has the folder among its arguments.
    let script = "echo $$ >>pids\nsetsid sh -c 'f() { (f) & exit; }; f' '{}' &\nsleep 1000";
    let bench = Bench::new("");
    let folder = bench.folder.path().display().to_string();
    let script = format!("cd '{folder}'\n{}", script.replace("{}", &folder));
    fs::write(bench.path("root/driver.sh"), script).unwrap();
    let bench = bench.with("MACHINA_POLICY_TIMEOUT_MS", "700");
    assert_fallback(&bench.selection());
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        let is_link = line.contains("f() { (f) & exit; }") && line.contains(&folder);
        assert!(!is_link, "{} runs {line:?}", entry.path().display());
    }
}

#[test]
fn a_child_that_holds_the_pipe_delays_nothing() {
    let bench = Bench::new("sleep 1000 & echo $! >>pids; echo '<PICK><SID0008><END>'")
        .with("MACHINA_POLICY_TIMEOUT_MS", "600000");
    assert_eq!(bench.selection()["sid"], "SID0008");
    assert!(bench.pids().into_iter().all(|pid| !runs(pid)));
}

#[test]
fn the_breaker_stops_starts() {
    let bench = Bench::new("echo start >>starts").with("MACHINA_POLICY_FAIL_THRESHOLD", "2");
    let lines = [asked(), asked(), asked(), asked()];
    bench.select(&lines).iter().for_each(assert_fallback);
    assert_eq!(bench.starts(), 2);
    let bench = Bench::new("echo start >>starts").with("MACHINA_POLICY_FAIL_THRESHOLD", "2");
    bench.with("MACHINA_POLICY_COOLDOWN_MS", "0").select(&lines).iter().for_each(assert_fallback);
}

#[test]
fn only_listed_programs_with_scripts_under_the_root_are_started() {
    let bench = Bench::printing("<PICK><SID0008><END>");
    let script = bench.path("root/driver.sh");
    fs::copy(&script, bench.path("outside.sh")).unwrap();
    symlink(bench.path("outside.sh"), bench.path("root/out.sh")).unwrap();
    symlink(&script, bench.path("root/in.sh")).unwrap();
    let text = format!("#!/bin/sh\n{}", fs::read_to_string(&script).unwrap());
    for place in ["root/sh", "sh", "root/text"] {
        write_program(&bench.path(place), &text);
    }
    let root = bench.path("root").display().to_string();
    let mut bench = bench;
    for (command, is_allowed) in [
        (format!("sh {root}/in.sh"), true),
        ("sh root/../root/driver.sh".to_owned(), true),
        (format!("'sh' \"{root}\"/driver.sh '$(touch touched)' ; touch touched"), true),
        (format!("{root}/sh"), true),
        (format!("sh {root}/out.sh"), false),
        (format!("sh {root}/../outside.sh"), false),
        ("./sh".to_owned(), false),
        (format!("sh -x {root}/driver.sh"), false),
        ("sh -c 'touch touched'".to_owned(), false),
        ("sh".to_owned(), false),
        (format!("SH {root}/driver.sh"), false),
        (format!("{root}/text"), false),
    ] {
        bench = bench.with("MACHINA_POLICY_CMD", &command);
        let (before, selection) = (bench.starts(), bench.selection());
        assert!(!bench.path("touched").exists(), "no shell splits the command");
        if is_allowed {
            assert_eq!((&selection["sid"], bench.starts()), (&json!("SID0008"), before + 1), "{command}");
        } else {
            assert_eq!((&selection["kind"], bench.starts()), (&json!("INVALID"), before), "{command}");
        }
    }
    bench = bench
        .with("MACHINA_POLICY_CMD", "sh -c 'echo \"<NOOP><END>\"'")
        .with("MACHINA_POLICY_ALLOW_UNSAFE", "1");
    assert_eq!(bench.selection()["kind"], "NOOP");
}

#[test]
fn what_cannot_be_started_is_a_failed_launch() {
    let bench = Bench::new("").with("MACHINA_POLICY_CMD", "no-such-driver");
    let bench = bench.with("MACHINA_POLICY_ALLOWED_EXE", "no-such-driver,text");
    assert_fallback(&bench.selection());
    let text = bench.path("root/text");
    write_program(&text, "echo start >>starts; echo '<PICK><SID0008><END>'");
    let bench = bench.with("MACHINA_POLICY_CMD", &text.display().to_string());
    assert_fallback(&bench.selection());
    assert_eq!(bench.starts(), 0, "no shell runs what is no program");
}

#[test]
fn ten_megabytes_go_through() {
    let bench = Bench::new("wc -c <\"$1\" >bytes; echo '<PICK><SID0008><END>'");
    let padding = "x".repeat((10 << 20) - asked().len() - "\"x\":\"\"".len() + 1);
    let line = asked().replace("\"inputs\":{}", &format!("\"inputs\":{{\"x\":\"{padding}\"}}"));
    assert_eq!(line.len(), (10 << 20) + 1);
    let selections = bench.select(&[line.clone(), line.replacen('x', "xx", 1), asked()]);
    assert_eq!(selections[0]["sid"], "SID0008");
    assert_eq!(selections[0]["inputs"]["x"].as_str().unwrap().len(), padding.len());
    assert_eq!((&selections[1]["kind"], &selections[2]["sid"]), (&json!("INVALID"), &json!("SID0008")));
}

#[test]
fn sigterm_takes_driver_and_payload_along() {
    let bench = Bench::new("trap '' TERM; echo $$ >>pids; sleep 1000 & echo $! >>pids; mkfifo x; wait");
    let mut selector = Command::new(REFPEER)
        .arg("policy-select")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .envs(bench.variables())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    selector.stdin.as_mut().unwrap().write_all(asked().as_bytes()).unwrap();
    let started = std::time::Instant::now();
    while !bench.path("x").exists() {
        assert!(started.elapsed() < super::DEADLINE, "the driver did not start");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(fs::read_dir(bench.path("tmp")).unwrap().count(), 1);
    kill_process(Pid::from_child(&selector), Signal::TERM).unwrap();
    let mut line = String::new();
    BufReader::new(selector.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!((selector.wait().unwrap().code(), line.as_str()), (Some(143), ""));
    assert_eq!(fs::read_dir(bench.path("tmp")).unwrap().count(), 0);
    assert!(bench.pids().into_iter().all(|pid| !runs(pid)));
}

#[test]
fn misuse_is_explained() {
    for arguments in [&["x"][..], &["--choice", "x=y"], &["--without", "x"]] {
        let output = refpeer("policy-select").args(arguments).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 1);
    }
    let mut refusing = refpeer("policy-select");
    refusing.args(["--choice", "invalid_variables=refuse"]).env("MACHINA_POLICY_TIMEOUT_MS", "soon");
    assert_eq!(refusing.output().unwrap().status.code(), Some(2));
}
