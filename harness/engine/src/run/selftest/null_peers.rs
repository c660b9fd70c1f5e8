//! Null peers: programs that ignore the contract, and must pass no check.

use std::sync::Mutex;

use crate::data::blame::HarnessFault;
use globset::{Glob, GlobMatcher};

use super::{Proof, Workshop};
use crate::contract::boundary::{Boundary, ConstantPeer};
use crate::data::carriage::HTTP;
use crate::data::check::Check;
use crate::data::facts::Facts;
use crate::drive::peer::Peer;
use crate::drive::reference_peers::Reference;
use crate::run::runner::{self, Options};

/// Name and `sh` script of the null peers that know no word of a boundary.
const NULL_PEERS: &[(&str, &str)] = &[
    // If echoing is a good answer, this one runs all checks and waits at each end: it starts first.
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

/// Name of each null server and its answer to everything. With an empty answer it closes the connection.
const NULL_SERVERS: &[(&str, &str)] = &[
    ("server that closes", ""),
    ("server that is silent", "silence"),
    ("server of a banner", "welcome\r\n"),
    ("constant 200", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"),
    ("constant 400", "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    ("constant 401", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"),
];

/// Plays a null server. Its arguments are the answer, then words among which the address or port is.
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

/// Number of checks run in parallel against one null peer. They mostly wait.
const AT_ONCE: usize = 16;

/// Null peer.
struct NullPeer {
    name: &'static str,
    /// Checks that it may pass, see [`ConstantPeer::right`](crate::contract::boundary::ConstantPeer::right).
    right: &'static [(&'static str, &'static str)],
    /// Program and first arguments, before those of the peer's own command.
    argv: Vec<&'static str>,
    listens: bool,
}

impl NullPeer {
    /// Checks that it wrongly passed according to `passed` (null peer, check), and globs that allow a check but matched
    /// none.
    fn wrong(&self, passed: &[(&'static str, String)]) -> Vec<(String, String)> {
        let own = || passed.iter().filter(|(name, _)| *name == self.name).map(|(_, check)| check);
        // An invalid glob matches nothing and is reported as useless.
        let globs =
            self.right.iter().map(|(glob, _)| (*glob, Glob::new(glob).map(|glob| glob.compile_matcher())));
        let globs: Vec<_> = globs.collect();
        let takes =
            |glob: &Result<GlobMatcher, _>, check: &str| glob.as_ref().is_ok_and(|it| it.is_match(check));
        let more = own().filter(|check| !globs.iter().any(|(_, glob)| takes(glob, check))).cloned();
        let useless = globs.iter().filter(|(_, glob)| !own().any(|check| takes(glob, check)));
        let useless = useless.map(|(text, _)| format!("nothing that {text:?} takes, though it may"));
        more.chain(useless).map(|said| (self.name.to_owned(), said)).collect()
    }
}

/// Null peers for a boundary, including those that use its words.
fn of(boundary: &dyn Boundary) -> Vec<NullPeer> {
    let by_rote = boundary.description().constant_peers;
    let of_all = NULL_PEERS.iter().filter(|(name, _)| by_rote.iter().all(|own| own.name != *name));
    let of_all = of_all.map(|&(name, script)| ConstantPeer::wrong(name, script));
    let scripts = of_all.chain(by_rote.iter().copied()).map(|ConstantPeer { name, script, right }| {
        NullPeer { name, right, argv: vec!["sh", "-c", script, "sh"], listens: false }
    });
    let servers = NULL_SERVERS.iter().map(|&(name, answer)| NullPeer {
        name,
        right: &[],
        argv: vec!["python3", "-c", SERVER, answer],
        listens: true,
    });
    let listens = boundary.checks().iter().any(|check| check.command == HTTP);
    scripts.chain(servers.filter(|_| listens)).collect()
}

impl Workshop<'_> {
    /// Proof by null peers only.
    pub fn prove_null_peers(&self, said: &(dyn Fn(String) + Sync)) -> Proof {
        let mut proof = Proof { null_peers: count(self.boundary()), ..Proof::default() };
        match prove(self, said) {
            Ok(greens) => proof.false_greens = greens,
            Err(error) => proof.problems.push(error.to_string()),
        }
        proof
    }
}

/// Number of null peers for a boundary.
pub(super) fn count(boundary: &dyn Boundary) -> usize {
    of(boundary).len()
}

/// Runs every check against every null peer, in the place of a peer of each side. Returns the peers and checks that
/// wrongly passed, and the useless entries in lists of allowed checks.
///
/// # Errors
/// Fails if there is no peer to replace.
pub(super) fn prove(
    workshop: &Workshop<'_>,
    said: &(dyn Fn(String) + Sync),
) -> Result<Vec<(String, String)>, HarnessFault> {
    let mut passed = Vec::new();
    for reference in workshop.played.references() {
        passed.extend(prove_side(workshop, &reference, said)?);
    }
    if workshop.is_interrupted() {
        return Ok(Vec::new());
    }
    Ok(of(workshop.boundary()).iter().flat_map(|peer| peer.wrong(&passed)).collect())
}

fn prove_side(
    workshop: &Workshop<'_>,
    reference: &Reference,
    said: &(dyn Fn(String) + Sync),
) -> Result<Vec<(&'static str, String)>, HarnessFault> {
    let boundary = workshop.boundary();
    let template = (workshop.process)(reference, &[])?;
    let greens = workshop.each(1, &of(boundary), |NullPeer { name, argv, listens, .. }| {
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
        // Nothing is measured here.
        let options = Options { confirm: 1, jobs: AT_ONCE, keep_going: false, ..workshop.options.clone() };
        let passed = Mutex::new(Vec::new());
        runner::run(&peer, &checks, &options, workshop.around, &|outcome| {
            if outcome.result.verdict.is_good() {
                let mut passed = passed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                passed.push((*name, outcome.result.id));
            }
        });
        passed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    });
    Ok(greens.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_peer_may_pass_what_is_listed_with_a_reason_and_must() {
        let told = |right, passed: &[&str]| {
            let peer = NullPeer { name: "own", right, argv: Vec::new(), listens: false };
            let of_another = [("other", "t/refused/all".to_owned())];
            let passed = passed.iter().map(|check| ("own", (*check).to_owned())).chain(of_another);
            let wrong = peer.wrong(&passed.collect::<Vec<_>>());
            wrong.into_iter().map(|(_, check)| check).collect::<Vec<_>>()
        };
        let refusal = "t/refused/all";
        assert_eq!(told(&[], &[refusal]), [refusal]);
        let right: &[_] = &[("t/accepted/*", "it accepts all")];
        assert_eq!(told(right, &["t/accepted/one", refusal]), [refusal]);
        assert_eq!(told(right, &[]), ["nothing that \"t/accepted/*\" takes, though it may"]);
    }
}
