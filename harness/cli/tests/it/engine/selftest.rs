//! What `peerproof selftest` goes by: which mutants a word names, and what a run makes of panics and of a busy machine.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use peerproof::table;
use peerproof_engine::boundary::Boundary;
use peerproof_engine::check::Check;
use peerproof_engine::clause::Side;
use peerproof_engine::fixture::ActorExe;
use peerproof_engine::peer::{Origin, Peer};
use peerproof_engine::played::Mutant;
use peerproof_engine::runner::{self, Options, Surroundings};
use peerproof_engine::selftest::mutants_of;
use peerproof_engine::verdict::Verdict;

use crate::start::{actor_exe, binary};

fn toolhost() -> &'static dyn Boundary {
    table::find("toolhost").unwrap()
}

fn with_surroundings<R>(work: impl FnOnce(Surroundings<'_>) -> R) -> R {
    let actor_exe = actor_exe();
    let scratch = tempfile::tempdir().unwrap();
    let interrupted = Arc::<AtomicBool>::default();
    work(Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &interrupted })
}

#[test]
fn mutants_are_named_by_themselves_or_by_a_check_of_their_clauses() {
    let played = table::played(toolhost());
    let all = played.mutants();
    assert_eq!(mutants_of(played, None).len(), all.len());
    assert!(mutants_of(played, Some("nothing is called so")).is_empty());
    assert!(mutants_of(played, Some(all[0].id)).iter().all(|mutant| mutant.id.contains(all[0].id)));
    const CHECK: &str = "serve/limits/over-limit-without-lf";
    let found = mutants_of(played, Some(CHECK));
    let check = toolhost().checks().iter().find(|check| check.id.ends_with(CHECK)).unwrap();
    let is_its = |mutant: &Mutant| check.clauses.iter().any(|it| mutant.clauses.contains(&it.0.as_str()));
    assert!(!found.is_empty() && found.iter().all(is_its));
    assert_eq!(found.len(), all.iter().filter(|mutant| is_its(mutant)).count());
}

fn process_peer(mutant: &Mutant) -> Peer {
    let references = table::played(toolhost()).references();
    let reference = references.iter().find(|reference| reference.side == mutant.side).unwrap();
    let command = |args: &[String]| {
        let own = [binary(), "peer", "toolhost"].map(str::to_owned);
        let extra = ["--mutant", mutant.id].map(str::to_owned);
        own.into_iter().chain(args.iter().cloned()).chain(extra).collect::<Vec<_>>()
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    Peer {
        name: mutant.id.to_owned(),
        boundary: toolhost(),
        commands: reference.commands.iter().map(|(name, args)| ((*name).to_owned(), command(args))).collect(),
        env: Vec::new(),
        facts: toolhost().usual_facts(mutant.side),
        features_given: true,
        origin: Origin::Process {
            base_env: vec![("PATH".to_owned(), path)],
            current_dir: None,
            cpus: Vec::new(),
        },
        pace: Arc::default(),
    }
}

#[test]
fn a_check_that_panics_is_a_harness_error_and_the_others_go_on() {
    let reference = table::played(toolhost()).references().remove(0);
    let peer = Peer {
        name: "reference".to_owned(),
        boundary: toolhost(),
        commands: reference.commands.into_iter().map(|(name, args)| (name.to_owned(), args)).collect(),
        env: Vec::new(),
        facts: toolhost().usual_facts(Side::Provider),
        features_given: true,
        origin: Origin::InProcess(Arc::new(|args, env| {
            table::played(toolhost()).reference_machine(args, env)
        })),
        pace: Arc::default(),
    };
    let panics = Check::new("toolhost/serve/panics", "t", ["TH-FRAME-01"], "serve", |_, _| {
        panic!("byte index 39 is not a char boundary")
    });
    let is_good = |check: &&Check| check.command == "serve" && check.id.ends_with("plain-request");
    let good = toolhost().checks().iter().find(is_good).unwrap();
    let verdicts = Mutex::new(BTreeMap::new());
    with_surroundings(|around| {
        runner::run(&peer, &[&panics, good], &Options::default(), around, &|outcome| {
            verdicts.lock().unwrap().insert(outcome.result.id, outcome.result.verdict);
        });
    });
    let verdicts = verdicts.into_inner().unwrap();
    let why = "peerproof panicked: byte index 39 is not a char boundary";
    assert_eq!(verdicts["toolhost/serve/panics"], Verdict::HarnessError(why.to_owned()));
    assert_eq!(verdicts[&good.id], Verdict::Pass);
}

/// A toolhost that does not end with its input, on a machine where a probe of our own is as slow, and on one where
/// none can be asked.
#[test]
fn a_hang_counts_unless_the_machine_was_too_busy() {
    let mutant = table::played(toolhost())
        .mutants()
        .into_iter()
        .find(|mutant| mutant.id == "stays-after-eof")
        .unwrap();
    let check = toolhost()
        .checks()
        .iter()
        .find(|check| check.id == "toolhost/serve/eof/behind-pipelined-requests")
        .unwrap();
    let slow = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/probe/slow.sh");
    let scratch = tempfile::tempdir().unwrap();
    let interrupted = Arc::new(AtomicBool::new(false));
    let options = Options { confirm: 2, timeout_scale: 0.25, keep_going: true, ..Options::default() };
    let verdict = |probe: &str| {
        let actor_exe = ActorExe::new(probe);
        let around =
            Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &interrupted };
        let seen = Mutex::new(None);
        runner::run(&process_peer(&mutant), &[check], &options, around, &|outcome| {
            *seen.lock().unwrap() = Some(outcome.result);
        });
        seen.into_inner().unwrap().unwrap()
    };
    assert_eq!(verdict("/bin/false").verdict, Verdict::Hang);
    let busy = verdict(slow);
    assert!(
        matches!(&busy.verdict, Verdict::Untestable(why) if why.starts_with("too_busy: ")),
        "{:?}",
        busy.verdict
    );
    assert!(busy.findings.is_empty(), "nothing is held against the peer");
}
