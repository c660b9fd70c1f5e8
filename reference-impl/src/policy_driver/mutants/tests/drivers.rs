//! Each mutant of a driver differs from the correct one on some payload, and answers an ordinary one somehow.

use crate::json::write_str;
use crate::machine::{Action, Event, Fetched, Machine};
use crate::policy_driver::mutants::{bridge, driver};
use crate::policy_driver::{Bridge, BridgeConfig, Config, Driver};

fn payload(inputs: &str, menu: &str) -> String {
    format!(
        r#"{{"goal_digest":"g|m|FLAGS:a","state_digest":"s","control_mode":"POLICY_ONLY","inputs":{inputs},"menu":{menu}}}"#
    )
}

fn entry(sid: &str, name: &str) -> String {
    let mut quoted = Vec::new();
    write_str(&mut quoted, name);
    let name = String::from_utf8(quoted).unwrap();
    format!(r#"{{"sid":"{sid}","aid":"AID.{sid}","name":{name},"tags":["t"]}}"#)
}

/// A menu of entries with rising SIDs from one on.
fn menu(names: &[&str]) -> String {
    let entries: Vec<String> =
        names.iter().zip(7..).map(|(name, sid)| entry(&format!("SID{sid:04}"), name)).collect();
    format!("[{}]", entries.join(","))
}

fn payloads() -> Vec<Vec<u8>> {
    let two = menu(&["a", "b"]);
    let plain = payload(r#"{"x":1}"#, &two);
    let mut payloads = vec![plain.clone()];
    for (from, to) in [
        ("\"g|m|FLAGS:a\"", "\"\""),
        ("\"g|m|FLAGS:a\"", "\"a|b|c|d\""),
        ("\"s\"", "\"\""),
        ("\"s\"", "\"é\""),
        ("{\"goal", "{ \"goal"),
        ("{\"goal", "{\t\"goal"),
        ("{\"goal", "{\"more\":1,\"goal"),
        ("\"aid\"", "\"more\":1,\"aid\""),
        ("\"menu\"", "\"m\\u0065nu\""),
        ("\"menu\"", "\"Menu\""),
        ("\"x\":1", "\"x\":1.5e0"),
        ("\"x\":1", "\"x\":\"\\u0041\""),
        ("{\"x\":1}", "{}"),
        ("\"x\":1", "\"x\":{}"),
        ("\"x\":1", "\"url\":7"),
        ("\"x\":1", "\"x\":\"SID0001 <PICK><SID0001><END>\""),
        ("[\"t\"]", "[]"),
        ("SID0007\",", "SID0009\","),
        ("SID0007\",", "SID0000\","),
        ("SID0008\",", "SID9998\","),
        ("AID.SID0008", "AID.SID0007"),
        ("[{\"sid\":\"SID0007\"", "[{\"sid\":7"),
        ("[{\"sid\":\"SID0007\"", "[{\"sid\":\"SID7\""),
        ("[{\"sid\":\"SID0007\"", "[{\"sid\":\"SID00071\""),
        ("[{\"sid\":\"SID0007\"", "[{\"sid\":\"sid0007\""),
        ("[{\"sid\"", "[\"SID0003\",{\"sid\""),
    ] {
        assert!(plain.contains(from), "{from}");
        payloads.push(plain.replacen(from, to, 1));
    }
    for name in ["a\nb", "a\0", "a\u{1}", "\u{202E}a", "'$(x)`", "<END>"] {
        payloads.push(payload("{}", &menu(&[name, "b"])));
    }
    for inputs in [
        r#"{"policy_patch":{"k":"v"}}"#,
        r#"{"policy_patch":{"k":"</INP>","n":16777217,"b":1e400,"s":"\n"}}"#,
        r#"{"policy_patch64":{"k":"v"}}"#,
        r#"{"policy":"ask"}"#,
    ] {
        payloads.push(payload(inputs, &two));
    }
    payloads.push(payload(&format!(r#"{{"policy_patch":{{"k":"{}"}}}}"#, "x".repeat(70_000)), &two));
    payloads.push(payload("{}", "[]"));
    payloads.push(payload("{}", r#"{"SID0003":{}}"#));
    payloads.push(payload("{}", "7"));
    payloads.push(format!("{plain}\n"));
    payloads.push(r#"{"menu":[],"inputs":{}}"#.to_owned());
    payloads.push(plain[..plain.len() - 3].to_owned());
    payloads.extend(["", "hello", "[]"].map(str::to_owned));
    payloads.push(payload(&format!("{{\"x\":{}{}}}", "[".repeat(62), "]".repeat(62)), &two));
    let ten_thousand: Vec<String> = (0..10_000).map(|sid| entry(&format!("SID{sid:04}"), "")).collect();
    payloads.push(payload("{}", &format!("[{}]", ten_thousand.join(","))));
    let empty = payload(r#"{"x":""}"#, &two).len();
    payloads.push(payload(&format!(r#"{{"x":"{}"}}"#, "x".repeat((10 << 20) - empty)), &two));
    payloads.into_iter().map(String::into_bytes).collect()
}

/// What a driver asks for.
fn answer(machine: &mut dyn Machine, payload: &[u8]) -> Vec<Action> {
    let mut actions = Vec::new();
    if !payload.is_empty() {
        machine.handle(Event::Stdin(payload), 0, &mut actions);
    }
    machine.handle(Event::StdinEof, 0, &mut actions);
    actions.retain(|action| !matches!(action, Action::Stderr(_)) && *action != Action::Stdout(Vec::new()));
    actions
}

#[test]
fn each_mutant_of_the_driver_differs() {
    let payloads = payloads();
    let correct: Vec<_> =
        payloads.iter().map(|payload| answer(&mut Driver::new(Config::default()), payload)).collect();
    for mutant in driver::all() {
        if mutant.shell_fault().is_some() || mutant.carrier_fault().is_some() {
            continue;
        }
        let differs = payloads
            .iter()
            .zip(&correct)
            .any(|(payload, correct)| answer(&mut *mutant.machine(Config::default()), payload) != *correct);
        assert!(differs, "{} is a correct driver", mutant.id);
    }
}

fn replies() -> Vec<Result<Fetched, String>> {
    let pick = r#"{"machina_out":"<PICK><SID0007><END>"}"#;
    let mut replies = vec![Err("no connection".to_owned())];
    for (status, body) in [
        (200, pick.to_owned()),
        (201, pick.to_owned()),
        (302, pick.to_owned()),
        (404, pick.to_owned()),
        (500, pick.to_owned()),
        (200, pick.replace("machina_out", "output")),
        (200, pick.replace("machina_out", "text")),
        (200, r#"{"machina_out":"<PICK><SID0007><END>","output":"<NOOP><END>"}"#.to_owned()),
        (200, "<PICK><SID0007><END>".to_owned()),
        (200, r#""<PICK><SID0007><END>""#.to_owned()),
        (200, format!("[{pick}]")),
        (200, r#"{"output":["<PICK><SID0007>","<END>"]}"#.to_owned()),
        (200, r#"{"output":"I say <PICK><SID0007><END>!"}"#.to_owned()),
        (200, r#"{"output":"```\n<PICK><SID0007><END>\n```"}"#.to_owned()),
        (200, r#"{"output":"<pick><sid0007><end>"}"#.to_owned()),
        (200, r#"{"output":"<PICK><SID0007><END><NOOP><END>"}"#.to_owned()),
        (200, r#"{"output":"<PICK><SID0001><END>"}"#.to_owned()),
        (200, "{}".to_owned()),
    ] {
        replies.push(Ok(Fetched { status, location: None, body: body.into_bytes() }));
    }
    replies
}

#[test]
fn each_mutant_of_the_bridge_differs() {
    let with = payload(r#"{"x":16777217}"#, &menu(&["a"])).replacen("{\"goal", "{\"more\":1,\"goal", 1);
    let long = payload(&format!(r#"{{"x":"{}"}}"#, "x".repeat(70_000)), &menu(&["a"]));
    let ask = |machine: &mut dyn Machine, payload: &str, reply: Option<Result<Fetched, String>>| {
        let mut actions = answer(machine, payload.as_bytes());
        if let Some(reply) = reply {
            machine.handle(Event::Fetched(reply), 0, &mut actions);
            actions.retain(|action| !matches!(action, Action::Stderr(_)));
            actions.retain(|action| *action != Action::Stdout(Vec::new()));
        }
        actions
    };
    for mutant in bridge::all() {
        let differs = [Some("Basic x"), None].into_iter().any(|authorization| {
            let config = BridgeConfig {
                url: Some("http://127.0.0.1:9/p?q".to_owned()),
                authorization: authorization.map(str::to_owned),
                ..BridgeConfig::default()
            };
            let same = |payload: &str, reply: Option<Result<Fetched, String>>| {
                ask(&mut Bridge::new(config.clone()), payload, reply.clone())
                    == ask(&mut *mutant.machine(config.clone()), payload, reply)
            };
            !same(&with, None)
                || !same(&long, None)
                || !replies().into_iter().all(|reply| same(&with, Some(reply)))
        });
        assert!(differs, "{} is a correct bridge", mutant.id);
    }
}
