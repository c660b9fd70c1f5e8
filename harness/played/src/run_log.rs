//! The reference runner and the reference replayer as peers under test.

use peerproof_reference::io;
use peerproof_reference::io::run_log::{self as shell, Peers};
use peerproof_reference::machine::Machine as Acting;
use peerproof_reference::mutant::ShellFault;
use peerproof_reference::run_log::mutants::{replayer, runner};

use super::arguments::{ArgumentError, correct, refuse, run_with_fault, split_mutant};
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_run_log::{REPLAYER, RUNNER};

pub mod properties;

struct RunLog;

/// Word that selects the launcher of drivers for the runner's selector.
const SHIM: &str = "exec";

/// Words that make this program the launcher.
const OWN_SHIM: [&str; 3] = ["peer", "run_log", SHIM];

/// The reference runner and the reference replayer.
pub fn played() -> &'static dyn Played {
    &RunLog
}

impl Played for RunLog {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_run_log::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        let reference = |side, word: &'static str, files: &[&str]| {
            let args = [word].iter().chain(files).map(|word| (*word).to_owned()).collect();
            Reference { side, commands: vec![(word, args)], harmless: &[] }
        };
        vec![
            reference(Side::Provider, RUNNER, &["{request}", "{log}", "{peer}"]),
            reference(Side::Consumer, REPLAYER, &["{log}", "{peer}"]),
        ]
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        match args.split_first() {
            Some((word, rest)) if word == SHIM => io::policy_exec::run_policy_exec(rest),
            Some((word, _)) if word == REPLAYER => run(split_mutant(args, replayer::find), env, |mutant| {
                let replayer = move |config| -> Box<dyn Acting> { mutant.machine(config) };
                (mutant.shell_fault(), move |args: &[String]| match mutant.carrier_fault() {
                    Some(fault) => {
                        let correct = correct(&["run_log"], args.to_vec()).unwrap_or_default();
                        shell::run_around(fault, &correct, env)
                    }
                    None => {
                        let peers = Peers { replayer: &replayer, ..Peers::CORRECT };
                        shell::run_run_log(args, env, &OWN_SHIM, &peers)
                    }
                })
            }),
            _ => run(split_mutant(args, runner::find), env, |mutant| {
                let runner = move |config, selector| -> Box<dyn Acting> { mutant.machine(config, selector) };
                (mutant.shell_fault(), move |args: &[String]| match mutant.carrier_fault() {
                    Some(fault) => {
                        let correct = correct(&["run_log"], args.to_vec()).unwrap_or_default();
                        shell::run_around_runner(fault, &correct)
                    }
                    None => {
                        let peers = Peers { runner: &runner, ..Peers::CORRECT };
                        shell::run_run_log(args, env, &OWN_SHIM, &peers)
                    }
                })
            }),
        }
    }

    fn reference_machine(&self, _args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        // They read files and start programs.
        None
    }

    fn reference_takes(&self, side: Side, extra: &[String]) -> bool {
        let reference = self.references().into_iter().find(|reference| reference.side == side);
        let args = reference.and_then(|reference| reference.commands.into_iter().next());
        args.is_some_and(|(_, args)| shell::parse(&[args.as_slice(), extra].concat(), &[]).is_ok())
    }

    fn mutants(&self) -> Vec<Mutant> {
        let entry = |id, clauses, side, fault| Mutant {
            id,
            clauses,
            side,
            fault,
            needs_process: true,
            unclaimed: None,
        };
        let runners = runner::MUTANTS.iter().map(|it| entry(it.id, it.clauses, Side::Provider, it.fault));
        let replayers = replayer::MUTANTS.iter().map(|it| entry(it.id, it.clauses, Side::Consumer, it.fault));
        runners.chain(replayers).collect()
    }
}

/// Runs the correct peer or a mutant: in a shell with a fault, or by `of`.
fn run<M, R: FnOnce(&[String]) -> i32>(
    split: Result<(Option<M>, Vec<String>), ArgumentError>,
    env: &[(String, String)],
    of: impl FnOnce(M) -> (Option<ShellFault>, R),
) -> i32 {
    match split {
        Ok((Some(mutant), args)) => match of(mutant) {
            (Some(fault), _) => run_with_fault(fault, &["run_log"], args, env),
            (None, run) => run(&args),
        },
        Ok((None, args)) => shell::run_run_log(&args, env, &OWN_SHIM, &Peers::CORRECT),
        Err(error) => refuse(&error),
    }
}
