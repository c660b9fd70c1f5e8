//! Null peers: programs that do nothing of what the contract asks for. Whatever a check says about them, it must not
//! be a pass.

use std::sync::Mutex;

use super::Workshop;
use crate::boundary::Boundary;
use crate::carriage::HTTP;
use crate::check::Check;
use crate::facts::Facts;
use crate::peer::Peer;
use crate::played::Reference;
use crate::runner::{self, Options};

/// Name and `sh` script of each that knows no word of a boundary.
const NULL_PEERS: &[(&str, &str)] = &[
    // Where `cat` answers well it is asked everything, and waited for at each end: it begins first.
    ("child that stays", "sleep 30 & exec cat"),
    ("cat", "exec cat"),
    ("true", "exec true"),
    ("false", "exec false"),
    ("yes", "exec yes"),
    ("sleep", "exec sleep 30"),
    ("random bytes", "exec head -c 200000 /dev/urandom"),
    ("endless random bytes", "exec cat /dev/urandom"),
    ("constant ok", "while read -r line; do echo '{\"ok\":true}'; done"),
    ("constant ok at once", "echo '{\"ok\":true}'; exec cat >/dev/null"),
    ("constant refusal", "while read -r line; do echo '{\"ok\":false,\"error\":\"no\"}'; done"),
    ("closes stdin", "exec <&-; sleep 5"),
    ("closes stdout", "exec >&-; sleep 5"),
    ("never reads", "exec sleep 30 </dev/null"),
    ("banner", "echo welcome; exec cat >/dev/null"),
];

/// Name of each server that knows no word of a boundary, and what it answers to whatever comes; in place of an empty
/// answer it closes the connection.
const NULL_SERVERS: &[(&str, &str)] = &[
    ("server that closes", ""),
    ("server that is silent", "silence"),
    ("server of a banner", "welcome\r\n"),
    ("constant 200", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"),
    ("constant 400", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    ("constant 401", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"),
];

/// Plays them: the answer, and among the words behind it the address or the port.
const SERVER: &str = r#"
import socket, sys, threading
answer, told = sys.argv[1].encode(), sys.argv[2:]
host = [word.split(":")[0] for word in told if word.startswith("127.")][0]
port = [word.split(":")[-1] for word in told if word.split(":")[-1].isdigit()][0]
def serve(connection):
    while answer and connection.recv(65536):
        if answer != b"silence": connection.sendall(answer)
    connection.close()
listener = socket.create_server((host, int(port)), backlog=512)
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

/// Checks that one of them is asked at a time: they are waited for, and hardly one of them needs a processor.
const AT_ONCE: usize = 16;

/// Null peers that answer by rote hold some clauses by accident: they are only asked not to be clean.
fn by_rote(boundary: &dyn Boundary, name: &str) -> bool {
    matches!(name, "constant refusal" | "constant 200" | "constant 400" | "constant 401")
        || boundary.answers_by_rote().iter().any(|(own, _)| *own == name)
}

/// One of them.
struct NullPeer {
    name: &'static str,
    /// The program and its first arguments; what a peer's own command is told comes behind them.
    argv: Vec<&'static str>,
    listens: bool,
}

/// Those for a boundary: with those that answer in its words.
fn of(boundary: &dyn Boundary) -> Vec<NullPeer> {
    let scripts = NULL_PEERS.iter().chain(boundary.answers_by_rote());
    let scripts = scripts.map(|(name, script)| (*name, vec!["sh", "-c", *script, "sh"], false));
    let servers =
        NULL_SERVERS.iter().map(|(name, answer)| (*name, vec!["python3", "-c", SERVER, *answer], true));
    let listens = boundary.checks().iter().any(|check| check.command == HTTP);
    let all = scripts.chain(servers.filter(|_| listens));
    all.map(|(name, argv, listens)| NullPeer { name, argv, listens }).collect()
}

/// How many there are for a boundary.
pub(super) fn count(boundary: &dyn Boundary) -> usize {
    of(boundary).len()
}

/// Runs every check against every null peer, which takes the place of a peer of each side; gives what passed: peer and
/// check.
///
/// # Errors
/// One sentence where there is no peer to take the place of.
pub(super) fn prove(
    workshop: &Workshop<'_>,
    said: &(dyn Fn(String) + Sync),
) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for reference in workshop.played.references() {
        found.extend(prove_side(workshop, &reference, said)?);
    }
    Ok(found)
}

fn prove_side(
    workshop: &Workshop<'_>,
    reference: &Reference,
    said: &(dyn Fn(String) + Sync),
) -> Result<Vec<(String, String)>, String> {
    let boundary = workshop.boundary();
    let template = (workshop.process)(reference, &[])?;
    let greens = workshop.each(1, &of(boundary), |NullPeer { name, argv, listens }| {
        let commands = template.commands.keys().filter(|command| (*command == HTTP) == *listens);
        if commands.clone().next().is_none() {
            return Vec::new();
        }
        said(format!("null peer: {name}"));
        let is_told = |word: &&String| word.starts_with('{') && word.ends_with('}');
        let argv = |command: &String| {
            let told = template.commands[command].iter().filter(is_told).cloned();
            argv.iter().map(|word| (*word).to_owned()).chain(told).collect::<Vec<_>>()
        };
        let peer = Peer {
            name: (*name).to_owned(),
            commands: commands.map(|command| (command.clone(), argv(command))).collect(),
            facts: Facts { side: reference.side, ..template.facts.clone() },
            ..template.clone()
        };
        let checks: Vec<&Check> = boundary
            .checks()
            .iter()
            .filter(|check| peer.commands.contains_key(&check.command) && !check.slow && !check.exclusive)
            .collect();
        // Nothing is measured.
        let options = Options { confirm: 1, jobs: AT_ONCE, keep_going: false, ..workshop.options.clone() };
        let seen = Mutex::new((Vec::new(), 0_usize));
        runner::run(&peer, &checks, &options, workshop.around, &|outcome| {
            let mut seen = seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if outcome.result.verdict.is_good() {
                seen.0.push(outcome.result.id.clone());
            }
            seen.1 += usize::from(outcome.result.verdict.is_failure());
        });
        let (good, failures) = seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        if by_rote(boundary, name) {
            // It must be found out; what it holds by accident it may hold.
            let clean = failures == 0 && !good.is_empty();
            return if clean { vec![((*name).to_owned(), "every check".to_owned())] } else { Vec::new() };
        }
        good.into_iter().map(|check| ((*name).to_owned(), check)).collect()
    });
    Ok(greens.into_iter().flatten().collect())
}
