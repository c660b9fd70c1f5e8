use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::table;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::config::Config;

const PEER: &str = "[peer]\nboundary = \"toolhost\"\nserve = [\"./host\", \"--serve\"]\n";

fn parse(text: &str) -> Result<Config, Misconfigured> {
    Config::parse(text, "p.toml", Path::new("/folder"), &table::all())
}

fn with(rest: &str) -> Result<Config, Misconfigured> {
    parse(&format!("{PEER}{rest}"))
}

fn error(rest: &str) -> String {
    match with(rest) {
        Ok(_) => panic!("{rest:?} was accepted"),
        Err(error) => error.into(),
    }
}

#[test]
fn a_full_configuration_is_read() {
    let config = with(
        "run = [\"./host\", \"--run\", \"{aid}\"]\nname = \"mine\"\nside = \"provider\"\nenv = { LANG = \"C\" }\n\
         pass_env = [\"LD_LIBRARY_PATH\"]\nrequirements = \"all\"\nstop = \"eof\"\n[features]\nidempotency = true\n\
         lease = { issue = { aid = \"x\" }, token = \"/t\" }\n[roles]\necho = { aid = \"A\" }\n\
         any = { aid = \"B\", input = { x = 1 } }\ntier1 = { aid = \"T\", tier = 2 }\n\
         [choices]\nblank_line = \"end\"\ntool_error_cached = true\n",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(config.side(), Ok(Side::Provider));
    assert_eq!(config.commands["run"], ["./host", "--run", "{aid}"]);
    assert_eq!(config.env["LANG"], "C");
    assert_eq!(config.features.unwrap()["lease"]["token"], "/t");
    assert_eq!(config.roles["any"]["input"]["x"], 1);
    assert_eq!(config.choices["tool_error_cached"], "true");
}

#[test]
fn mistakes_are_named_with_their_line_and_the_nearest_word() {
    for (rest, parts) in [
        ("nmae = \"x\"\n", vec!["p.toml line 4", "\"nmae\"", "did you mean \"name\"?"]),
        ("[feature]\n", vec!["line 4", "[feature]", "did you mean \"features\"?"]),
        ("[features]\nidempotence = true\n", vec!["line 5", "did you mean \"idempotency\"?"]),
        ("[features]\nds_state = 1\n", vec!["line 5", "true or false"]),
        ("[features]\nlease = { isue = {} }\n", vec!["\"isue\"", "did you mean \"issue\"?"]),
        ("[features]\nlease = { issue = {} }\n", vec!["has no \"token\""]),
        (
            "[features]\nlease = { issue = { of = [\"{tool_aid}\"] }, token = \"/t\" }\n",
            vec!["unknown placeholder {tool_aid}", "{aid}, {tier}, {ttl_ms}"],
        ),
        ("[roles]\nehco = { aid = \"A\" }\n", vec!["did you mean \"echo\"?"]),
        ("[roles]\necho = \"A\"\n", vec!["\"echo\" must be a table with aid"]),
        ("[roles]\necho = { aid = 1 }\n", vec!["\"aid\" of \"echo\"", "string"]),
        ("[choices]\nblank_line = \"ingore\"\n", vec!["did you mean \"ignore\"?", "refuse"]),
        ("[choices]\necho = \"x\"\n", vec!["belongs under [roles]"]),
        ("[limits]\nnesting_max = 64\n", vec!["toolhost has nothing under [limits]"]),
        ("side = \"server\"\n", vec!["provider, consumer"]),
        ("side = \"consumer\"\n", vec!["`serve` is a command of the provider"]),
        ("command = [\"d\", \"{peer}\"]\n", vec!["different sides"]),
        ("run = [\"./host\", \"--run\"]\n", vec!["line 4", "has no {aid}"]),
        ("run = [\"./host\", \"{aid}\", \"{plugin}\"]\n", vec!["unknown placeholder {plugin}"]),
        ("run = [\"./host\", \"{aid\"]\n", vec!["never closed"]),
        ("run = \"./host {aid}\"\n", vec!["list of strings"]),
        ("run = []\n", vec!["empty"]),
        ("env = { A = 1 }\n", vec!["\"A\" must be a string"]),
        ("serve = [\"again\"]\n", vec!["line 4 is not TOML"]),
    ] {
        let error = error(rest);
        for part in parts {
            assert!(error.contains(part), "{rest:?} gives {error:?}, without {part:?}");
        }
    }
}

#[test]
fn doubled_braces_are_braces() {
    assert!(with("run = [\"./host\", \"{{x}}\", \"{aid}\"]\n").is_ok());
}

#[test]
fn here_is_the_folder_of_the_file() {
    for (boundary, command) in [("toolhost", "serve"), ("python_tool", "command")] {
        let text = format!(
            "[peer]\nboundary = \"{boundary}\"\n{command} = [\"x\", \"{{here}}/a\", \"-I{{here}}\", \"{{{{here}}}}\"]\n"
        );
        let config = parse(&text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.commands[command], ["x", "/folder/a", "-I/folder", "{{here}}"]);
    }
}

#[test]
fn a_start_up_that_is_told_is_measured_at_least() {
    let text = "[peer]\nboundary = \"python_tool\"\ncommand = [\"/bin/sh\"]\n[limits]\nstartup_ms = 7000\n";
    let peer = parse(text).unwrap_or_else(|error| panic!("{error}")).peer(&BTreeMap::new());
    let peer = peer.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(peer.pace.of("command").start_up, Some(std::time::Duration::from_secs(7)));
}

#[test]
fn a_boundary_is_needed_and_its_name_takes_either_dash() {
    let without = parse("[peer]\nserve = [\"x\"]\n").err().unwrap().to_string();
    assert!(without.contains("no `boundary`"), "{without}");
    let unknown = parse("[peer]\nboundary = \"tool-hots\"\nserve = [\"x\"]\n").err().unwrap().to_string();
    assert!(unknown.contains("line 2") && unknown.contains("\"toolhost\""), "{unknown}");
}

#[test]
fn the_folder_of_the_file_is_where_the_peer_runs() {
    let folder = tempfile::tempdir().unwrap();
    let error = |text: &str| {
        let config = Config::parse(text, "p.toml", folder.path(), &table::all())
            .unwrap_or_else(|error| panic!("{error}"));
        config.peer(&BTreeMap::new()).err().unwrap().to_string()
    };
    assert!(error(PEER).contains("there is no file"), "{}", error(PEER));
    std::fs::write(folder.path().join("host"), "").unwrap();
    assert!(error(PEER).contains("not executable"), "{}", error(PEER));
    let bare = "[peer]\nboundary = \"toolhost\"\nserve = [\"host\"]\n";
    assert!(error(bare).contains("put its interpreter before it"), "{}", error(bare));
}

#[test]
fn features_of_json_rpc_are_told_whole() {
    let config = || Config::new(table::find("json_rpc").unwrap());
    let refused = |name: &str, value: Value| config().set_feature(name, value).unwrap_err().to_string();
    for (name, members) in [("auth", "key|key_env"), ("rate_limit", "requests")] {
        let mut server = config();
        server.set_feature(name, json!(true)).unwrap();
        let mut client = server.clone();
        server.set_command("command", vec!["sh".to_owned()]).unwrap();
        let error = server.peer(&BTreeMap::new()).err().unwrap().to_string();
        assert!(error.contains(&format!("must be false or a table with {members}")), "{error}");
        // A client gets its settings from the scenario.
        let argv = ["sh", "{scenario}", "{results}"].map(str::to_owned).to_vec();
        client.set_command("command", argv).unwrap();
        let error = client.peer(&BTreeMap::new()).err().map(String::from).unwrap_or_default();
        assert!(!error.contains("must be false or"), "{error}");
    }
    assert!(refused("auth", json!({})).contains("either key or key_env"));
    assert!(refused("auth", json!({ "key": "k", "key_env": "PATH" })).contains("either key or key_env"));
    for good in [json!(false), json!({ "key": "k", "key_id": "1" })] {
        config().set_feature("auth", good).unwrap();
    }
    // The key may come from a variable, of the peer or of ours.
    let key_of = |own: Option<&str>, ours: &[(&str, &str)]| {
        let mut config = config();
        config.set_command("command", vec!["/bin/sh".to_owned()]).unwrap();
        config.set_feature("auth", json!({ "key_env": "KEY", "key_id": "1" })).unwrap();
        config.env.extend(own.map(|key| ("KEY".to_owned(), key.to_owned())));
        let ours = ours.iter().map(|(name, value)| ((*name).to_owned(), value.into())).collect();
        config.peer(&ours).map(|peer| peer.facts.features["auth"].clone())
    };
    assert_eq!(key_of(Some("k"), &[("KEY", "other")]), Ok(json!({ "key": "k", "key_id": "1" })));
    assert_eq!(key_of(None, &[("KEY", "k")]), Ok(json!({ "key": "k", "key_id": "1" })));
    let unset = key_of(None, &[]).unwrap_err().to_string();
    assert!(unset.contains("KEY") && unset.contains("is not set"), "{unset}");
}

#[test]
fn roles_of_json_rpc_may_repeat_the_params_of_the_table() {
    let mut config = Config::new(table::find("json_rpc").unwrap());
    for role in ["fail", "counter"] {
        config.set_role(role, json!({ "method": "m", "params": {} })).unwrap();
        assert!(config.set_role(role, json!({ "method": "m", "params": { "a": 1 } })).is_err());
    }
    config.set_role("echo", json!({ "method": "m", "params": [1] })).unwrap();
    assert!(config.set_limit("nesting_max", 63).unwrap_err().to_string().contains("at least 64"));
    config.set_limit("nesting_max", 100).unwrap();
}

/// The parser accepts every key with every value that the table of keys lists.
#[test]
fn the_parser_takes_every_key_of_the_table() {
    for boundary in table::all() {
        for key in boundary.description().config_keys {
            let mut config = Config::new(boundary);
            match key.table() {
                "peer" => {
                    let mut argv = vec!["program".to_owned()];
                    argv.extend(key.placeholders().iter().map(|placeholder| placeholder.text.to_owned()));
                    config.set_command(key.name, argv).unwrap();
                }
                // Each has a form of its own.
                "features" if key.is_setting() => {
                    assert!(config.set_feature(key.name, Value::Bool(true)).is_err());
                }
                "features" => config.set_feature(key.name, Value::Bool(true)).unwrap(),
                "roles" => {
                    assert!(!key.members().is_empty(), "{} has no members", key.name);
                    assert!(config.set_role(key.name, json!({})).is_err());
                }
                "choices" => {
                    assert!(key.words().len() > 1, "{} is no choice", key.name);
                    for value in key.words() {
                        config.set_choice(key.name, value).unwrap();
                    }
                    assert!(config.set_choice(key.name, "no-such-value").is_err());
                }
                "limits" => config.set_limit(key.name, 64).unwrap(),
                table => panic!("{table} is no table of the configuration"),
            }
        }
    }
}
