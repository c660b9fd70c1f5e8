//! Tests of parts of `peerproof selftest`: the choice of mutants, and verdicts about panics and on a busy machine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use peerproof::shard::Shard;
use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::drive::reference_peers::Mutant;
use peerproof_engine::run::runner::{self, Options, Surroundings};
use peerproof_engine::run::selftest::golden::GoldenRecord;
use peerproof_engine::run::selftest::{Against, Forms, Proof, Scope, Workshop, mutants_of};
use peerproof_engine::run::verdict::Verdict;

use crate::start::{actor_exe, binary};

/// Mutant of one clause that some in-process checks notice, but not all.
const NOTICED_INSIDE: &str = "strips-marks";

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

#[test]
fn parts_of_the_mutants_are_all_of_them_and_share_none() {
    let shards: Vec<Shard> = (1..=10).map(|part| format!("hash:{part}/10").parse().unwrap()).collect();
    for boundary in table::all() {
        let mutants = mutants_of(table::played(boundary), None);
        let taken = |mutant: &Mutant| shards.iter().filter(|shard| shard.takes(mutant.id)).count();
        assert!(
            !mutants.is_empty() && mutants.iter().all(|mutant| taken(mutant) == 1),
            "{}",
            boundary.name()
        );
    }
}

#[test]
fn a_sample_without_a_mutant_is_refused_by_one_sentence() {
    let args = ["selftest", "toolhost", "--mutants", "-k", "cat", "--shard", "hash:1/1000000"];
    let said = std::process::Command::new(env!("CARGO_BIN_EXE_peerproof")).args(args).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    let stderr = String::from_utf8(said.stderr).unwrap();
    let expected = "the shard hash:1/1000000 has no mutant of those that contain \"cat\"; use fewer shards";
    assert!(stderr.contains(expected) && stderr.lines().count() == 1, "{stderr}");
}

/// Proof of one mutant inside this process, without correct peers.
fn proof_of(mutant: &Mutant, kept: Option<&GoldenRecord>) -> Proof {
    let options = Options::default();
    with_surroundings(|around| {
        let workshop = Workshop {
            played: table::played(toolhost()),
            process: &|_, _| Err("no process is started here".into()),
            options: &options,
            around,
        };
        let against = if kept.is_some() { Against::Known } else { Against::Clauses };
        let scope = Scope { mutants: vec![mutant.clone()], correct: Forms::None, kept, against };
        workshop.prove(&scope, &|_| {})
    })
}

#[test]
fn checks_that_noticed_a_mutant_before_are_enough_while_they_say_the_same() {
    let mutant = mutants_of(table::played(toolhost()), Some(NOTICED_INSIDE)).remove(0);
    let (clause, whole) = (mutant.clauses[0], proof_of(&mutant, None));
    let row = &whole.rows[0];
    assert!(whole.holds() && row.checks_run > row.killers[clause].len() && row.killers[clause].len() > 1);

    let known = proof_of(&mutant, Some(&whole.record));
    assert!(known.holds() && known.rows[0].is_known, "{known:?}");
    assert_eq!(known.rows[0].checks_run, 1);
    assert_eq!(known.rows[0].killers[clause], row.killers[clause][..1]);

    // The record has another reason, so the check is no longer relied on.
    let before = whole.record.to_string().replace(&format!(" {clause} "), &format!(" {clause} other_"));
    let changed = proof_of(&mutant, Some(&GoldenRecord::read(&before)));
    assert!(!changed.holds() && !changed.rows[0].is_known);
    assert_eq!(changed.rows[0].killers, row.killers);
    assert_eq!(changed.changes.len(), row.killers[clause].len(), "{:?}", changed.changes);
}

#[test]
fn where_a_known_check_no_longer_notices_a_mutant_the_others_do_and_the_change_is_told() {
    let mutant = mutants_of(table::played(toolhost()), Some(NOTICED_INSIDE)).remove(0);
    let (clause, whole) = (mutant.clauses[0], proof_of(&mutant, None));
    let row = &whole.rows[0];
    let is_of_it = |check: &&Check| check.clauses.iter().any(|it| it.0 == clause) && !check.needs_process;
    let mut checks = toolhost().checks().iter().filter(is_of_it);
    let passes = checks.find(|check| !row.killers[clause].contains(&check.id)).unwrap();
    let before = format!("= mutant {}\n{} fail {clause} x\n", mutant.id, passes.id);
    let proof = proof_of(&mutant, Some(&GoldenRecord::read(&before)));
    assert_eq!(proof.summary.survivors, Vec::<String>::new());
    assert_eq!(proof.rows[0].killers, row.killers);
    let changes: Vec<String> = proof.changes.iter().map(ToString::to_string).collect();
    let gone = format!("mutant {}: {}: ", mutant.id, passes.id);
    assert!(
        changes.iter().any(|it| it.starts_with(&gone) && it.ends_with(&format!("before: fail {clause} x")))
    );
    assert!(!proof.holds());
}

/// Only clauses that no check in the golden record notices are listed, each with its reason.
#[test]
fn the_golden_record_tells_of_every_mutant() {
    let folder = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../golden"));
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let listed = read("blind");
    let listed: BTreeSet<&str> =
        listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut blind = BTreeSet::new();
    for boundary in table::all() {
        let record = GoldenRecord::read(&read(&format!("{}.txt", boundary.name())));
        let of_it = record.blind(&mutants_of(table::played(boundary), None));
        blind.extend(of_it.into_iter().map(|line| format!("{} {line}", boundary.name())));
    }
    assert_eq!(blind.iter().map(String::as_str).collect::<BTreeSet<_>>(), listed);
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
        facts: toolhost().full_facts(mutant.side),
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
        facts: toolhost().full_facts(Side::Provider),
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

/// Toolhost that does not end with its input, on a machine where our probe is as slow, and on one without a probe.
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
    assert!(busy.verdict.is_untestable("too_busy"), "{:?}", busy.verdict);
    assert!(busy.findings.is_empty(), "nothing is held against the peer");
}
