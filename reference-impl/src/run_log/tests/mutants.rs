//! Every mutant is seen to differ from the correct machine, on some log or some request.

use super::bench::{BLOCKS, REQUEST, Seen, config, honest, replay, replay_by, run, run_by, selector};
use super::replays::{ERROR, EXAMPLE, OK, one_step};
use crate::mutant;
use crate::run_log::mutants::{replayer, runner};
use crate::run_log::{Config, Replayer, Right};

/// Mutants that show in real memory, with a longer time limit than that of these configurations, where much is read at once,
/// or in logs and with tools that the harness plays alone.
const UNSEEN: [&str; 23] = [
    "replay-sets",
    "replay-knows-the-last-op",
    "run-finds-tools-by-name",
    "replay-holds-the-log",
    "replay-waits-as-long-as-it-is-told",
    "run-dies-of-nesting",
    "run-dies-of-halves",
    "replay-dies-of-halves",
    "run-passes-over-slots",
    "run-keeps-the-state-of-failures",
    "run-keeps-the-state-of-doubts",
    "run-takes-no-state-for-an-empty-one",
    "run-copies-empty-errors",
    "run-keeps-patches-of-fallbacks",
    "run-compares-contents",
    "run-composes-outputs",
    "replay-lets-steps-lag",
    "replay-compares-numbers-of-slots",
    "replay-compares-contents",
    "replay-compares-contents-as-json",
    "replay-tells-no-removals",
    "replay-compares-six-digits",
    "run-takes-other-names-of-slots",
];

/// Logs, right and damaged, on which one of the mutants says or does something else.
fn logs() -> Vec<Vec<u8>> {
    let edit = |from: &str, to: &str| {
        let edited = EXAMPLE.replace(from, to);
        assert_ne!(edited, EXAMPLE, "{from}");
        edited
    };
    let item = |item: &str| {
        let value = r#"{"type":"text","provenance":"tool","content_json":"{\"a\":1}","size_bytes":7}"#;
        edit("\"tx_patch\":[", &format!("\"tx_patch\":[{},", item.replace("VALUE", value)))
    };
    let once = |from: &str, to: &str| EXAMPLE.replacen(from, to, 1);
    let id = "0123456789abcdef0123456789abcdef";
    let other = format!("{{\"run_id\":\"{id}\",\"event\":\"x\",\"step\":0,\"payload\":{{}}}}\n");
    let without = |at: usize| {
        let lines = EXAMPLE.lines().enumerate().filter(|(number, _)| *number != at);
        lines.map(|(_, line)| format!("{line}\n")).collect::<String>()
    };
    let mut lines: Vec<&str> = EXAMPLE.lines().collect();
    lines.insert(1, other.trim_end());
    let with_other: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let spelled =
        |output: &str| one_step("SPELLED", "tool_ok", &OK.replace("\"{}\"", &format!("{output:?}")));
    let merged = r#""patch":{"k":2},"inputs":"#;
    let nested = EXAMPLE.replace(r#"{"k":1}"#, r#"{"k":{"a":1},"l":null}"#);
    let nested = nested
        .replace(r#"{\"k\":2}"#, r#"{\"k\":{\"b\":null}}"#)
        .replace(r#""patch":{"k":2}"#, r#""patch":{"k":{"b":null}},"inputs":{"k":{"b":null},"l":null}"#);
    let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
    let mut logs: Vec<String> = vec![
        honest(),
        honest().replacen("\"output_json\":\"{}\"", "\"output_json\":\"[]\"", 1),
        honest().replace("\"inputs\":{\"k\":1}", "\"inputs\":{\"k\":1,\"n\":2}"),
        EXAMPLE.to_owned(),
        once(id, "00000000000000000000000000000000"),
        edit("{\"run_id\"", "{\"ts\":1,\"run_id\""),
        format!("{EXAMPLE}not json\n"),
        EXAMPLE.replacen('\n', " trailing\n", 1),
        with_other,
        without(2),
        without(3),
        without(5),
        String::new(),
        format!("{EXAMPLE}{other}"),
        EXAMPLE.lines().flat_map(|line| [line, "\n", line, "\n"]).collect(),
        edit("\"event\":\"tool_ok\",\"step\":0", "\"event\":\"tool_ok\",\"step\":1"),
        edit("\"event\":\"run_finished\",\"step\":1", "\"event\":\"run_finished\",\"step\":0"),
        edit("\"deterministic\":false,", ""),
        edit(
            ",\"state_digest\":\"41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902\"}}\n{",
            "}}\n{",
        ),
        edit("\"reason\":\"noop\",", ""),
        edit("\"goal_id\":\"g\",", ""),
        edit("\"goal_id\":\"g\",", "\"goal_id\":\"g\",\"state\":7,"),
        edit("\"kind\":\"NOOP\"", "\"kind\":\"STOP\""),
        edit("\"kind\":\"NOOP\",\"raw\":\"<NOOP><END>\"", "\"kind\":\"NOOP\""),
        one_step("AID.A", "tool_ok", &OK.replace("\"tx_patch\":[],", "")),
        EXAMPLE.replace('\n', "\r\n"),
        without(0),
        edit(&format!("{{\"run_id\":\"{id}\",\"event\":\"tool_ok\""), "{\"event\":\"tool_ok\""),
        once("\"state_digest\":\"4", "\"state_digest\":\"5"),
        edit("\"sid\":\"SID0001\"", "\"sid\":\"SID1\""),
        edit("\"output_json\":\"{}\"", "\"output_json\":\"{\""),
        edit(
            "\"tool_ok\",\"step\":0,\"payload\":{\"aid\":\"AID.A.v1\"",
            "\"tool_ok\",\"step\":0,\"payload\":{\"aid\":\"AID.B.v1\"",
        ),
        edit("\"steps\":2", "\"steps\":3"),
        edit("\"patch\":{\"k\":2}", "\"patch\":{\"k\":3}"),
        edit("\"patch\":{\"k\":2}", &format!("{merged}{{\"k\":3}}")),
        edit("\"patch\":{\"k\":2}", &format!("{merged}{{\"k\":2}}")),
        nested,
        item(r#"{"op":"add","path":"/slots/1","value":VALUE},{"op":"remove","path":"/slots/1"}"#),
        item(r#"{"op":"add","path":"/slots/9","value":VALUE}"#),
        item(r#"{"op":"add","path":"/slots/01","value":VALUE},{"op":"remove","path":"/slots/1"}"#),
        edit("\"sid\":\"SID0001\"", "\"sid\":\"SID0001\\n\""),
        edit(
            "\"tool_ok\",\"step\":0,\"payload\":{\"aid\":\"AID.A.v1\"",
            "\"tool_ok\",\"step\":0,\"payload\":{\"aid\":\"aid.a.v1\"",
        ),
        item(r#"{"op":"add","path":"/slots/1\n","value":VALUE},{"op":"remove","path":"/slots/1"}"#),
        item(
            r#"{"op":"add","path":"/slots/1","value":{"type":"t","provenance":"p","content_json":"1","size_bytes":true}},{"op":"remove","path":"/slots/1"}"#,
        ),
        edit("\"op\":\"add\"", "\"op\":\"Add\""),
        edit("\"provenance\":\"tool\",", ""),
        item(
            r#"{"op":"add","path":"/slots/1","value":VALUE},{"op":"remove","path":"/slots/1","value":VALUE}"#,
        ),
        once("8902\"}}", "8903\"}}"),
        edit("8902\"}}\n{", "8903\"}}\n{"),
        EXAMPLE
            .trim_end()
            .replace("8902\"}}", "8902\"}}\n")
            .replace("\n\n", "\n")
            .replace("\"steps\":2,\"state_digest\":\"4", "\"steps\":2,\"state_digest\":\"5"),
        edit("{\"k\":1}", &format!("{{\"k\":{deep}}}")),
        edit("{\"k\":1}", &format!("{{\"k\":\"{}\"}}", "x".repeat(2 << 20))),
        spelled(r#"{"a":[1,2],"b":1}"#),
        spelled(r#"{"a":[2,1],"b":1}"#),
        spelled(r#"{"a":[1,2],"b\u0000":1}"#),
        spelled(r#"{"a":[1,2],"b":"1"}"#),
        spelled(r#"{"a":[1,2],"b":1,"c":null}"#),
        edit("{\"run_id\"", "{\"request_id\":null,\"run_id\""),
        once("{\"run_id\"", &format!("{{\"ts\":{}{},\"run_id\"", "[".repeat(5_000), "]".repeat(5_000))),
        EXAMPLE
            .replace("{\\\"k\\\":2}", "{\\\"k\\\":9007199254740991}")
            .replace("{\"k\":2}", "{\"k\":9007199254740990}"),
        one_step("CRASH", "tool_ok", OK),
        one_step("HANG", "tool_ok", OK),
        one_step("AID.A", "tool_error", &ERROR.replace("TOOL_ERROR", "OK")),
        one_step("AID.A", "tool_error", &ERROR.replace("true", "false")),
    ];
    // What leads to another state than the log says, and is digested so.
    let forged = one_step("AID.PEERPROOF.ANY.v1", "tool_ok", OK);
    let artifact = r#"{"op":"add","path":"/slots/0","value":{"type":"text","provenance":"tool","content_json":"{\"a\":1}","size_bytes":7}}"#;
    logs.push(forged.replace("\"tx_patch\":[]", &format!("\"tx_patch\":[{artifact}]")).replace(
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902",
    ));
    let mut logs: Vec<Vec<u8>> = logs.into_iter().map(String::into_bytes).collect();
    let mut broken = EXAMPLE.as_bytes().to_vec();
    let at = EXAMPLE.find("\"g\"").unwrap() + 1;
    broken[at] = 0xFF;
    logs.push(broken);
    logs
}

/// Requests with the outputs of drivers.
fn requests() -> Vec<(String, Vec<&'static str>)> {
    let of = |aid: &str| {
        format!(r#"{{"goal_id":"g","control_mode":"POLICY_ONLY","max_steps":2,"tools":[{{"aid":"{aid}"}}]}}"#)
    };
    let artifact = r#"<PICK><SID0001><INP>{"slot":7,"artifact":{"type":"t","provenance":"p","content_json":"1","size_bytes":1}}</INP><END>"#;
    let again = r#"<PICK><SID0001><INP>{"artifact":{"type":"u","provenance":"p","content_json":"2","size_bytes":1}}</INP><END>"#;
    vec![
        (REQUEST.to_owned(), BLOCKS.to_vec()),
        (REQUEST.to_owned(), vec![artifact, again, "<NOOP><END>"]),
        (REQUEST.to_owned(), vec![artifact, artifact, "<NOOP><END>"]),
        (REQUEST.to_owned(), vec![r#"<PICK><SID0002><INP>{"n":9007199254740991}</INP><END>"#, "<NOOP><END>"]),
        (format!(r#"{{"goal_id":"g","x":{}{}}}"#, "[".repeat(5_000), "]".repeat(5_000)), vec!["<NOOP><END>"]),
        (REQUEST.to_owned(), vec!["nothing", "<NOOP><END>"]),
        (of(&format!("A\"}}{},{{\"aid\":\"B", r#",{"aid":"A"}"#.repeat(20))), vec!["<NOOP><END>"]),
        (
            REQUEST.replace("{\"k\":1}", "{\"k\":{\"a\":1},\"l\":null}"),
            vec![r#"<PICK><SID0002><INP>{"k":{"b":2}}</INP><END>"#, "<NOOP><END>"],
        ),
        (of("AID.PEERPROOF.ANY.v1"), vec!["<PICK><SID0001><END>"]),
        (REQUEST.to_owned(), vec!["<PICK>< SID0001><END>", "<PICK><SID0001 ><END>"]),
        (REQUEST.to_owned(), vec!["<PICK><sid0001><END>", "<NOOP><END>"]),
        (of("HANG"), vec!["<PICK><SID0001><END>"]),
        ("{}".to_owned(), vec!["<NOOP><END>"]),
        (r#"{"goal_id":"g","max_steps":1}"#.to_owned(), vec!["<ASK_SUP><END>"]),
        (format!(r#"{{"goal_id":"g","x":"{}"}}"#, "x".repeat(1 << 20)), vec!["<NOOP><END>"]),
    ]
}

#[test]
fn the_tables_are_sound() {
    mutant::assert_sound(replayer::MUTANTS, "LOG-");
    mutant::assert_sound(runner::MUTANTS, "LOG-");
    assert!(replayer::MUTANTS.iter().all(|mutant| mutant.id.starts_with("replay-")));
    assert!(runner::MUTANTS.iter().all(|mutant| mutant.id.starts_with("run-")));
    assert!(replayer::MUTANTS.len() + runner::MUTANTS.len() >= 40);
}

#[test]
fn every_replayer_differs_on_some_log() {
    let logs = logs();
    let seen =
        |build: &dyn Fn(Config) -> mutant::Inner, log: &[u8]| replay_by(|| build(config(&[])), log, 1 << 16);
    let right: Vec<Seen> = logs
        .iter()
        .map(|log| seen(&|config| Box::new(Replayer::new(config, Box::new(Right))), log))
        .collect();
    assert_eq!(right[0], replay(&[], &honest()));
    let mut alike = Vec::new();
    for mutant in replayer::MUTANTS
        .iter()
        .filter(|mutant| mutant.shell_fault().is_none() && mutant.carrier_fault().is_none())
        .filter(|mutant| !UNSEEN.contains(&mutant.id))
    {
        let differs = |(log, right): (&Vec<u8>, &Seen)| seen(&|config| mutant.machine(config), log) != *right;
        if !logs.iter().zip(&right).any(differs) {
            alike.push(mutant.id);
        }
    }
    assert!(alike.is_empty(), "{alike:?}");
}

#[test]
fn every_runner_differs_on_some_request() {
    let requests = requests();
    let choices = [("ask_sup_ends", "false")];
    let mut alike = Vec::new();
    for mutant in runner::MUTANTS
        .iter()
        .filter(|mutant| mutant.shell_fault().is_none() && mutant.carrier_fault().is_none())
        .filter(|mutant| !UNSEEN.contains(&mutant.id))
    {
        let differs = |(request, blocks): &(String, Vec<&str>)| {
            let build = || mutant.machine(config(&choices), selector(true));
            run_by(build, request, blocks) != run(&choices, request, blocks)
        };
        if !requests.iter().any(differs) {
            alike.push(mutant.id);
        }
    }
    assert!(alike.is_empty(), "{alike:?}");
}
