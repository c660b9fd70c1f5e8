//! The reference engine as a peer under test.

use std::sync::atomic::{AtomicU64, Ordering};

use peerproof_reference::envelope::mutants;
use peerproof_reference::{envelope, io};

use super::arguments::{refuse, run_with_fault, split_mutant};
use super::inside;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::presentation::Harmless;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_engine::drive::transport::in_process::UNIX_MS_AT_START;
use peerproof_envelope::face::COMMAND;

pub(crate) mod caller;
pub mod properties;

struct Envelope;

/// The reference engine and caller.
pub fn played() -> &'static dyn Played {
    &Envelope
}

impl Played for Envelope {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_envelope::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        let over_http = (HTTP, own(&["engine", "--http", "{addr}"]));
        let commands = vec![(COMMAND, own(&["engine", "process"])), over_http];
        let engine = Reference { side: Side::Provider, commands, harmless: Harmless::ALL };
        vec![engine, caller::command()]
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        if let Some(args) = caller::arguments(args) {
            return caller::run(args, env);
        }
        let (mutant, args) = match split_mutant(&claimed(args), mutants::find) {
            Ok(split) => split,
            Err(error) => return refuse(&error),
        };
        match mutant.and_then(|mutant| mutant.shell_fault()) {
            Some(fault) => run_with_fault(fault, &["envelope"], args, env),
            None => io::envelope::run_envelope(&args, mutant),
        }
    }

    fn reference_machine(&self, args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        // Each process has ids of its own.
        static PROCESSES: AtomicU64 = AtomicU64::new(0);
        if caller::arguments(args).is_some() {
            // The caller starts real programs.
            return None;
        }
        let (mutant, args) = split_mutant(&claimed(args), mutants::find).ok()?;
        let config = envelope::Config {
            started_unix_ms: UNIX_MS_AT_START,
            id_seed: PROCESSES.fetch_add(1_000, Ordering::Relaxed),
            ..io::envelope::parse(&args).ok()?.0
        };
        Some(inside(match mutant {
            Some(mutant) => mutant.machine(config),
            None => envelope::machine(config),
        }))
    }

    fn mutants(&self) -> Vec<Mutant> {
        let entry = |mutant: mutants::Mutant| Mutant {
            id: mutant.id,
            clauses: mutant.clauses,
            side: Side::Provider,
            fault: mutant.fault,
            needs_process: mutant.shell_fault().is_some() || mutant.carrier_fault().is_some(),
            unclaimed: None,
        };
        mutants::all().into_iter().map(entry).chain(caller::mutants()).collect()
    }

    fn reference_takes(&self, side: Side, extra: &[String]) -> bool {
        match side {
            Side::Provider => {
                io::envelope::parse(&[self.references()[0].commands[0].1.clone(), claimed(extra)].concat())
                    .is_ok()
            }
            Side::Consumer => caller::takes(extra),
        }
    }
}

/// Arguments without the one that denies determinism, which the engine need not know.
fn claimed(args: &[String]) -> Vec<String> {
    super::json_rpc::unclaimed(args, "deterministic")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::*;
    use peerproof_engine::data::plan::{Act, Chunking};
    use peerproof_engine::drive::fixture::ActorExe;
    use peerproof_engine::drive::lab::Lab;
    use peerproof_engine::drive::peer::{Origin, Peer};
    use peerproof_engine::run::runner::Failure;
    use peerproof_engine::run::shrink::shrink;
    use peerproof_engine::{contract::boundary, data::payload::Payload, data::payload::Vars};
    use peerproof_envelope::talk::{self, Talk};

    /// Shrunken envelope that shows a mutant's fault, and the JSON Pointer of the finding.
    fn shrunk(mutant: &'static str, clause: &str, text: String) -> (String, String) {
        let reference = played().references().remove(0);
        let peer = Peer {
            name: mutant.to_owned(),
            boundary: played().boundary(),
            facts: played().facts_of(&reference),
            commands: reference.commands.into_iter().map(|(name, args)| (name.to_owned(), args)).collect(),
            env: Vec::new(),
            features_given: true,
            origin: Origin::InProcess(Arc::new(move |args, env| {
                let extra = ["--mutant".to_owned(), mutant.to_owned()];
                played().reference_machine(&[args, extra.as_slice()].concat(), env)
            })),
            pace: Arc::default(),
        };
        let (scratch, actor_exe) = (tempfile::tempdir().unwrap(), ActorExe::new(Path::new("/none")));
        let budget = peerproof_engine::data::budget::Budget::default();
        let lab =
            Lab { peer: &peer, budget, actor_exe: &actor_exe, scratch: scratch.path(), timeout_scale: 1.0 };
        let mut talk = Talk::new(COMMAND);
        talk.send("ENV-KEEP-01", Payload::text(text), Chunking::Whole);
        let transcript = lab.execute("test", &talk.plan()).unwrap();
        let findings = boundary::judge(peer.boundary, &transcript).findings;
        let finding = findings.into_iter().find(|finding| finding.clause.0 == clause).unwrap();
        let failure = Failure { check: "test".to_owned(), transcript, finding };
        let shrunk = shrink(&lab, Some(played()), &failure, Instant::now() + Duration::from_secs(20));
        assert!(shrunk.confirmed);
        let left = shrunk.plan.steps.iter().find_map(|step| match &step.act {
            Act::Send { payload, .. } if !step.canary => payload.expand(&Vars::new()).ok(),
            _ => None,
        });
        let at = shrunk.finding.expected.split(':').next().unwrap_or_default().to_owned();
        (String::from_utf8(left.unwrap()).unwrap(), at)
    }

    #[test]
    fn a_loss_shrinks_to_the_member_that_is_lost() {
        let full = talk::base("full-done").unwrap();
        let text = talk::with(&full, [("metadata", "{\"a\":[1,{\"b\":null}],\"c\":{\"d\":[{\"e\":null}]}}")]);
        let (left, at) = shrunk("drops-nulls", "ENV-KEEP-02", text);
        assert!(left.len() < 80, "{left}");
        assert!(left.contains("null") && at.starts_with('/'), "{left}: {at}");
    }
}
