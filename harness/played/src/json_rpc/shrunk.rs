//! Tests of shrinking that changes more than bytes: messages sealed while writing, and peers that ask.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::lab::Lab;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_engine::run::runner::Failure;
use peerproof_engine::run::shrink::{Shrunk, shrink};

fn json_rpc() -> &'static dyn Boundary {
    super::played().boundary()
}

/// Reference of a mutant, or the mutant, in this process.
fn peer(mutant: &str, broken: bool) -> Peer {
    let boundary = json_rpc();
    let played: &'static dyn Played = super::played();
    let known: Mutant = played.mutants().into_iter().find(|known| known.id == mutant).unwrap();
    let reference: Reference =
        played.references().into_iter().find(|reference| played.plays(reference, &known)).unwrap();
    let extra = if broken { vec!["--mutant".to_owned(), mutant.to_owned()] } else { Vec::new() };
    Peer {
        name: mutant.to_owned(),
        boundary,
        facts: played.facts_of(&reference),
        commands: reference.commands.into_iter().map(|(name, args)| (name.to_owned(), args)).collect(),
        env: Vec::new(),
        features_given: true,
        origin: Origin::InProcess(std::sync::Arc::new(move |args, env| {
            played.reference_machine(&[args, &extra].concat(), env)
        })),
        pace: Default::default(),
    }
}

struct Room {
    scratch: tempfile::TempDir,
    actor_exe: ActorExe,
}

impl Room {
    fn new() -> Self {
        Self { scratch: tempfile::tempdir().unwrap(), actor_exe: ActorExe::new(PathBuf::from("/none")) }
    }

    fn lab<'a>(&'a self, peer: &'a Peer) -> Lab<'a> {
        Lab {
            peer,
            budget: peerproof_engine::data::budget::Budget::default(),
            actor_exe: &self.actor_exe,
            scratch: self.scratch.path(),
            timeout_scale: 1.0,
        }
    }
}

/// Runs the plan of a check, shrinks the first finding of `clause`, and shows that the correct peer is clean with the
/// result.
fn shrunk(mutant: &str, clause: &str, plan: impl FnOnce(&Facts) -> Plan) -> Shrunk {
    let room = Room::new();
    let broken = peer(mutant, true);
    let lab = room.lab(&broken);
    let transcript = lab.execute("test", &plan(&broken.facts)).unwrap();
    let findings = boundary::judge(json_rpc(), &transcript).findings;
    let finding = findings.iter().find(|finding| finding.clause.0 == clause);
    let finding = finding.unwrap_or_else(|| panic!("no {clause} in {findings:#?}")).clone();
    let failure = Failure { check: "test".to_owned(), transcript, finding };
    let shrunk = shrink(&lab, Some(super::played()), &failure, Instant::now() + Duration::from_secs(300));
    assert_eq!(shrunk.finding.key(), failure.finding.key());
    assert!(shrunk.confirmed, "{shrunk:#?}");
    let correct = peer(mutant, false);
    let clean = room.lab(&correct).execute("test", &shrunk.plan).unwrap();
    let findings = boundary::judge(json_rpc(), &clean).findings;
    assert!(findings.is_empty(), "{findings:#?} in {:#?}", shrunk.plan);
    shrunk
}

fn of_check(id: &str) -> impl FnOnce(&Facts) -> Plan {
    let check = json_rpc().checks().iter().find(|check| check.id == id).unwrap();
    move |facts| (check.planner)(facts, &mut Rng::new(1).fork(&check.id)).unwrap()
}

fn sizes(shrunk: &Shrunk) -> String {
    format!(
        "{} → {} steps, {} → {} bytes: {}",
        shrunk.steps_before, shrunk.steps_after, shrunk.bytes_before, shrunk.bytes_after, shrunk.finding.got
    )
}

#[test]
fn a_message_under_the_seal_of_another_shrinks_together_with_it() {
    let check = "json_rpc/stdio/auth/changes-within-the-canonical-text";
    let shrunk = shrunk("overlooks-unknown-members", "RPC-AUTH-09", of_check(check));
    assert_eq!(shrunk.steps_after, 2, "{}", sizes(&shrunk));
    // The word for the other signature alone takes half of it.
    assert!(shrunk.bytes_after < 260, "{}: {:#?}", sizes(&shrunk), shrunk.plan);
}

#[test]
fn a_fault_of_spelling_keeps_its_spelling_and_loses_the_rest() {
    let check = "json_rpc/stdio/auth/changes-outside-the-canonical-text";
    let shrunk = shrunk("signs-the-spelling", "RPC-AUTH-04", of_check(check));
    let peerproof_engine::data::plan::Act::Send { payload, .. } = &shrunk.plan.steps[0].act else {
        panic!("{:#?}", shrunk.plan)
    };
    let text = payload.summary(1_000);
    // Even its seal is removed: it gets a new one when written.
    assert!(shrunk.bytes_after < 80 && text.contains(": "), "{}: {text}", sizes(&shrunk));
}

#[test]
fn what_is_sealed_as_it_is_written_is_sealed_anew_in_each_smaller_conversation() {
    let check = "json_rpc/stdio/auth/nonce-repeated";
    let shrunk = shrunk("forgets-nonces", "RPC-AUTH-03", of_check(check));
    assert_eq!(shrunk.steps_after, 3, "{}", sizes(&shrunk));
    let sent: Vec<String> = shrunk
        .transcript
        .events
        .iter()
        .filter_map(|event| match &event.kind {
            peerproof_engine::data::transcript::EventKind::Sent { payload, .. } => {
                Some(payload.summary(1_000))
            }
            _ => None,
        })
        .collect();
    assert!(sent.iter().all(|line| !line.contains('@') && line.contains("\"signature\"")), "{sent:#?}");
}

#[test]
fn a_client_is_told_less_and_hears_less() {
    // Twelve calls of every kind, with a server that says more than necessary.
    let plan = |_: &Facts| {
        of_check("json_rpc/client/error/of-each-final-code")(&json_rpc().full_facts(Side::Consumer))
    };
    let mutants = super::played().mutants();
    let mutant = mutants
        .iter()
        .find(|mutant| mutant.side == Side::Consumer && mutant.clauses.contains(&"RPC-CLIENT-10"))
        .unwrap();
    let shrunk = shrunk(mutant.id, "RPC-CLIENT-10", plan);
    assert!(shrunk.bytes_after * 4 < shrunk.bytes_before, "{}: {:#?}", sizes(&shrunk), shrunk.plan);
    let calls = format!("{:?}", shrunk.plan.fixtures).matches("\\\"ref\\\"").count();
    assert_eq!(calls, 1, "{:#?}", shrunk.plan);
}
