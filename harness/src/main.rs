//! The command line of peerproof.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use peerproof::facts::Facts;
use peerproof::fixture::ActorExe;
use peerproof::peer::{Origin, Peer};
use peerproof::runner::{self, Options, Surroundings};

#[allow(clippy::print_stdout, clippy::unwrap_used)]
fn main() {
    // This binary also plays the programs that peers start.
    if let Some(status) = peerproof::fixture::actor::dispatch(std::env::args_os()) {
        std::process::exit(status);
    }
    let argv: Vec<String> = std::env::args().skip(1).collect();
    let boundary = peerproof::boundary::find("toolhost").unwrap();
    if argv.first().is_some_and(|arg| arg == "peer") {
        let env: Vec<(String, String)> = std::env::vars().collect();
        std::process::exit(boundary.run_reference(&argv[2..], &env));
    }
    let (command, side) = boundary.main_command(&argv);
    let mut facts = Facts::new(side);
    facts.commands.insert(command.to_owned());
    let mut peer = Peer {
        name: "peer".to_owned(),
        boundary,
        commands: BTreeMap::from([(command.to_owned(), argv)]),
        env: Vec::new(),
        facts,
        features_given: false,
        origin: Origin::Process {
            base_env: vec![("PATH".to_owned(), std::env::var_os("PATH").unwrap())],
            current_dir: None,
            cpus: Vec::new(),
        },
        latency_us: Default::default(),
    };
    let options = Options::default();
    let actor_exe = ActorExe::new(std::env::current_exe().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let interrupted = AtomicBool::new(false);
    let around = Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &interrupted };
    runner::prepare(&mut peer, &options, around).unwrap();
    println!("{:#?}", peer.facts);
    let checks: Vec<_> = boundary.checks().iter().collect();
    runner::run(&peer, &checks, &options, around, &|outcome| {
        println!("{} {:?} {:?}", outcome.result.id, outcome.result.verdict, outcome.result.findings);
    });
}
