//! The reference toolhost judged from outside by the suite: what `reference-impl/mutants.sh` runs against each mutant of
//! its source. The judge, an example of the harness, is built beforehand from code without the mutant; it speaks to the
//! machines of this build over its standard streams, and starts the `refpeer` of this build.
#![allow(clippy::unwrap_used, reason = "the helpers are part of the tests")]

use std::collections::HashMap;
use std::io::{BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};

use peerproof_reference::io::toolhost::{Command as Asked, parse};
use peerproof_reference::machine::{Action, Event, Machine};
use peerproof_reference::toolhost;

type Running = Box<dyn Machine + Send>;

/// Makes a machine from words with NUL between them: arguments, an empty one, variables.
fn start(text: &str) -> Running {
    let words: Vec<&str> = text.split('\0').collect();
    let end = words.iter().position(|word| word.is_empty()).unwrap_or(words.len());
    let arguments: Vec<String> = words[..end].iter().map(|word| (*word).to_owned()).collect();
    let variable = |name: &str| {
        let value = |word: &&str| word.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        words[end..].iter().filter_map(value).next_back()
    };
    match parse(&arguments, &variable).unwrap() {
        Asked::Host(config) => toolhost::machine(*config),
        Asked::List => panic!("{arguments:?} is no toolhost"),
    }
}

/// What a machine asks for, as the judge reads it.
fn answer(machine: &dyn Machine, actions: Vec<Action>) -> Vec<u8> {
    let mut out = vec![u8::from(machine.wants_stdin())];
    out.extend(u32::try_from(actions.len()).unwrap().to_le_bytes());
    for action in actions {
        let (kind, number, bytes) = match action {
            Action::Stdout(bytes) => (b'o', 0, bytes),
            Action::Stderr(bytes) => (b'e', 0, bytes),
            Action::WakeAt(at) => (b'w', at, Vec::new()),
            Action::Exit(status) => (b'x', u64::try_from(status).unwrap(), Vec::new()),
            Action::Abort => (b'a', 0, Vec::new()),
            _ => (b'f', 0, Vec::new()),
        };
        out.push(kind);
        out.extend(number.to_le_bytes());
        out.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        out.extend(bytes);
    }
    out
}

#[test]
#[ignore = "judges mutants of the source: `reference-impl/mutants.sh` runs it with a judge built beforehand"]
fn holds_the_contract() {
    let judge = std::env::var_os("JUDGE").expect("JUDGE names the judge");
    let mut judge = Command::new(judge)
        .arg(env!("CARGO_BIN_EXE_refpeer"))
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
        let event = match head[0] {
            b'n' => {
                let machine = start(std::str::from_utf8(&bytes).unwrap());
                to_judge.write_all(&answer(&*machine, Vec::new())).unwrap();
                machines.insert(id, machine);
                continue;
            }
            b'd' => {
                machines.remove(&id);
                continue;
            }
            b'i' => Event::Stdin(&bytes),
            b'z' => Event::StdinEof,
            b't' => Event::Terminate,
            b'w' => Event::Wake,
            _ => Event::Fetched(Err("there is no network here".to_owned())),
        };
        let machine = machines.get_mut(&id).unwrap();
        let mut actions = Vec::new();
        machine.handle(event, now, &mut actions);
        to_judge.write_all(&answer(&**machine, actions)).unwrap();
    }
    drop(to_judge);
    assert!(judge.wait().unwrap().success(), "the judge found a broken clause");
}
