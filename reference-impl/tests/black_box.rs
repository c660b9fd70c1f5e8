//! Judges the reference peers of a boundary with the suite, from outside. `reference-impl/mutants.sh` runs this
//! against each mutant of their source. The judge, an example of the harness, is built beforehand from unmutated code.
//! It talks to the machines of this build over its standard streams, and starts the `refpeer` of this build.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use peerproof_reference::io::toolhost::Command as Asked;
use peerproof_reference::machine::{Action, Event, FetchError, Machine};
use peerproof_reference::{envelope, io, json_rpc, json_rpc_client, mcp, toolhost};

/// Exit status of the judge after a broken clause.
const STATUS_BROKEN: i32 = 1;
/// Exit status of the judge if no check reached a verdict.
const STATUS_UNDECIDED: i32 = 3;

/// Fixed seed of a client's random numbers.
const RNG_SEED: u64 = 11;

/// A machine with the file to which it appends.
struct Running {
    machine: Box<dyn Machine + Send>,
    results: Option<File>,
}

/// Creates a machine from words separated by NUL: the arguments of `refpeer`, an empty one, variables. Its time 0 is
/// `unix_ms` after 1970.
fn start(text: &str, unix_ms: u64) -> Running {
    let words: Vec<&str> = text.split('\0').collect();
    let end = words.iter().position(|word| word.is_empty()).unwrap_or(words.len());
    let arguments: Vec<String> = words[1..end].iter().map(|word| (*word).to_owned()).collect();
    let variable = |name: &str| {
        let value = |word: &&str| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        words[end..].iter().filter_map(value).next_back()
    };
    match words[0] {
        "toolhost" => match io::toolhost::parse(&arguments, &variable).unwrap() {
            Asked::Host(config) => Running { machine: toolhost::machine(*config), results: None },
            Asked::List => panic!("{arguments:?} is no toolhost"),
        },
        "envelope" => {
            let (config, _) = io::envelope::parse(&arguments).unwrap();
            let config = envelope::Config { started_unix_ms: unix_ms, id_seed: RNG_SEED, ..config };
            Running { machine: envelope::machine(config), results: None }
        }
        "json-rpc" => {
            let config = io::json_rpc::parse(&arguments).unwrap();
            let config = json_rpc::Config { started_unix_ms: unix_ms, ..config };
            Running { machine: json_rpc::machine(config), results: None }
        }
        "json-rpc-client" => {
            let arguments = io::json_rpc_client::parse(&arguments).unwrap();
            let config = arguments.config(RNG_SEED, unix_ms).unwrap();
            let results = Some(arguments.open_results().unwrap());
            Running { machine: json_rpc_client::machine(config), results }
        }
        "mcp" => {
            let config = io::mcp::parse(&arguments).unwrap();
            Running { machine: mcp::machine(config), results: None }
        }
        word => panic!("there is no reference {word:?}"),
    }
}

/// Actions of a machine in the encoding for the judge.
fn answer(running: &mut Running, actions: Vec<Action>) -> Vec<u8> {
    let mut out = vec![u8::from(running.machine.wants_stdin())];
    let mut asked = 0_u32;
    let count_at = out.len();
    out.extend(asked.to_le_bytes());
    for action in actions {
        let (kind, number, bytes) = match action {
            Action::Stdout(bytes) => (b'o', 0, bytes),
            Action::Stderr(bytes) => (b'e', 0, bytes),
            Action::WakeAt(at) => (b'w', at, Vec::new()),
            Action::Exit(status) => (b'x', u64::try_from(status).unwrap(), Vec::new()),
            Action::Abort => (b'a', 0, Vec::new()),
            Action::Append(bytes) => {
                running.results.as_mut().unwrap().write_all(&bytes).unwrap();
                continue;
            }
            _ => (b'f', 0, Vec::new()),
        };
        asked += 1;
        out.push(kind);
        out.extend(number.to_le_bytes());
        out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        out.extend(bytes);
    }
    out[count_at..count_at + 4].copy_from_slice(&asked.to_le_bytes());
    out
}

#[test]
#[ignore = "judges mutants of the source: `reference-impl/mutants.sh` runs it with a judge built beforehand"]
fn holds_the_contract() {
    let judge = std::env::var_os("JUDGE").expect("JUDGE names the judge");
    let boundary = std::env::var("JUDGE_BOUNDARY").unwrap_or_else(|_| "toolhost".to_owned());
    let mut judge = Command::new(judge)
        .arg(boundary)
        .arg(env!("CARGO_BIN_EXE_refpeer"))
        .args(std::env::var_os("JUDGE_UNDECIDED"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to_judge = judge.stdin.take().unwrap();
    let mut from_judge = BufReader::new(judge.stdout.take().unwrap());
    let mut machines: HashMap<u32, Running> = HashMap::new();
    let mut head = [0; 17];
    while from_judge.read_exact(&mut head).is_ok() {
        let id = u32::from_le_bytes(head[1..5].try_into().unwrap());
        let now = u64::from_le_bytes(head[5..13].try_into().unwrap());
        let mut bytes = vec![0; u32::from_le_bytes(head[13..].try_into().unwrap()) as usize];
        from_judge.read_exact(&mut bytes).unwrap();
        if head[0] == b'n' {
            let mut running = start(std::str::from_utf8(&bytes).unwrap(), now);
            to_judge.write_all(&answer(&mut running, Vec::new())).unwrap();
            machines.insert(id, running);
            continue;
        }
        if head[0] == b'd' {
            machines.remove(&id);
            continue;
        }
        let running = machines.get_mut(&id).unwrap();
        let mut actions = Vec::new();
        let event = match head[0] {
            b'b' => None,
            b'i' => Some(Event::Stdin(&bytes)),
            b'z' => Some(Event::StdinEof),
            b't' => Some(Event::Terminate),
            b'w' => Some(Event::Wake),
            _ => Some(Event::Fetched(Err(FetchError("there is no network here".to_owned())))),
        };
        match event {
            None => running.machine.begin(now, &mut actions),
            Some(event) => running.machine.handle(event, now, &mut actions),
        }
        to_judge.write_all(&answer(running, actions)).unwrap();
    }
    drop(to_judge);
    let status = judge.wait().unwrap();
    // Without a verdict the judge has found nothing. It reports that itself, unless it crashed.
    if !matches!(status.code(), Some(0 | STATUS_BROKEN | STATUS_UNDECIDED)) {
        writeln!(std::io::stderr(), "undecided: the judge ended with {status}").unwrap();
    }
    assert_ne!(status.code(), Some(STATUS_BROKEN), "the judge found a broken clause");
}
