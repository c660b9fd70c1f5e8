//! The reference worker, HTTP adapter, enqueuing tool and Genesis toolhost as peers under test.

use std::process::{Command, Stdio};

use peerproof_reference::io;
use peerproof_reference::io::run_queue as shell;
use peerproof_reference::run_queue::genesis::{
    COMPILE_AID, LOAD_AID, SAMPLE_AID, SAMPLE_C, SAMPLE_RUST, WRITE_AID,
};
use peerproof_reference::run_queue::mutants;
use serde_json::{Value, json};

use super::arguments::{refuse, split_mutant};
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_run_queue::config::{ATTEMPTS, POLL_MS, RECOVER_MS, RETRY_MS};
use peerproof_run_queue::{ENQUEUE, ONCE, SERVE, WORKER};

pub mod properties;

struct RunQueue;

/// Word that selects the launcher of drivers for a worker's selector.
const SHIM: &str = "exec";

/// Words that make this program the launcher.
const OWN_SHIM: [&str; 3] = ["peer", "run_queue", SHIM];

/// Words that make this program a peer of this boundary.
const OWN: [&str; 2] = ["peer", "run_queue"];

/// Arguments of a worker that sees the exit of its programs and tries twice.
const TRIES: [&str; 4] = ["--attempts", "2", "--retry-ms", "100"];

/// Roles, by the reference's words.
const ROLES: [&str; 4] = ["worker", "http", "enqueue", "genesis"];

/// Mutants that show only in a worker without a runner.
const DRIVEN: [&str; 2] = ["work-driver-input", "work-no-driver"];

/// True for the worker without a runner.
fn is_driven(reference: &Reference) -> bool {
    reference.commands.len() == 2
}

/// The reference peers.
pub fn played() -> &'static dyn Played {
    &RunQueue
}

impl Played for RunQueue {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_run_queue::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
        let commands = vec![
            (WORKER, own(&[&["worker", "{queue}", "--runner", "{runner}"][..], &TRIES].concat())),
            (ONCE, own(&[&["worker", "{queue}", "--once", "--runner", "{runner}"][..], &TRIES].concat())),
            (ENQUEUE, own(&["enqueue", "--queue", "{queue}", "--run", "{aid}"])),
            (HTTP, own(&["http", "--queue", "{queue}", "--port", "{port}", "--host", "{host}"])),
            (SERVE, own(&["genesis", "--root", "{root}", "--serve"])),
        ];
        // Without a runner, the policy driver from an environment variable selects for each job.
        let driven =
            vec![(WORKER, own(&["worker", "{queue}"])), (ONCE, own(&["worker", "{queue}", "--once"]))];
        [commands, driven].map(|commands| Reference { side: Side::Provider, commands, harmless: &[] }).into()
    }

    fn plays(&self, reference: &Reference, mutant: &Mutant) -> bool {
        DRIVEN.contains(&mutant.id) == is_driven(reference)
    }

    fn facts_of(&self, reference: &Reference) -> Facts {
        let mut facts = self.boundary().full_facts(reference.side);
        facts.commands = reference.commands.iter().map(|(name, _)| (*name).to_owned()).collect();
        let mut limits = vec![(POLL_MS, 250), (RECOVER_MS, 1_000)];
        // Without a runner it does not see a program fail, and never retries.
        if !is_driven(reference) {
            limits.extend([(ATTEMPTS, 2), (RETRY_MS, 100)]);
        }
        facts.limits.extend(limits.into_iter().map(|(name, most)| (name.to_owned(), most)));
        facts.features.insert("token".to_owned(), json!({ "args": ["--token", "{token}"] }));
        let has = |compiler: &str| {
            let mut command = Command::new(compiler);
            let command = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let (source, text) = if has("cc") { ("sample.c", SAMPLE_C) } else { ("sample.rs", SAMPLE_RUST) };
        let genesis = json!({ "source": source, "aid": SAMPLE_AID, "text": text });
        facts.features.insert("genesis".to_owned(), genesis);
        if has("cc") || has("rustc") {
            facts.features.insert("compiler".to_owned(), true.into());
        }
        let env = json!({ "env": { "MACHINA_GENESIS_NO_COMPILER": "1" } });
        facts.features.insert("no_compiler".to_owned(), env);
        facts
    }

    fn least_roles(&self, _side: Side) -> Vec<(&'static str, Value)> {
        // The usual roles are absent and stand for the contract's tools. So the remaining minimum is another template,
        // with a useless member.
        let role = |aid: &str, input: Value| json!({ "aid": aid, "input": input });
        vec![
            (
                "write_file",
                role(WRITE_AID, json!({ "content": "{content}", "path": "{path}", "x_more": [1] })),
            ),
            ("compile", role(COMPILE_AID, json!({ "name": "{name}", "path": "{path}", "x_more": [1] }))),
            ("load", role(LOAD_AID, json!({ "name": "{name}", "x_more": [1] }))),
        ]
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        let Some((word, rest)) = args.split_first() else { return refuse(&"say which peer") };
        if word == SHIM {
            return io::policy_exec::run_policy_exec(rest);
        }
        // A mutant of another role leaves this one correct.
        match split_mutant(args, |id| {
            ROLES.iter().any(|role| mutants::find(role, id).is_some()).then_some(id.to_owned())
        }) {
            Ok((mutant, mut args)) => {
                if let Some(id) = mutant.filter(|id| mutants::find(word, id).is_some()) {
                    args.extend(["--mutant".to_owned(), id]);
                }
                shell::run_run_queue(&args, env, &OWN_SHIM, &OWN)
            }
            Err(error) => refuse(&error),
        }
    }

    fn reference_machine(&self, _args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        // These peers work on files.
        None
    }

    fn reference_takes(&self, _side: Side, extra: &[String]) -> bool {
        shell::takes(extra)
    }

    fn mutants(&self) -> Vec<Mutant> {
        let mut seen = Vec::new();
        let mut all: Vec<Mutant> = Vec::new();
        for it in ROLES.into_iter().flat_map(mutants::of) {
            if seen.contains(&it.id) {
                continue;
            }
            seen.push(it.id);
            all.push(Mutant {
                id: it.id,
                clauses: it.clauses,
                side: Side::Provider,
                fault: it.fault,
                needs_process: true,
                unclaimed: None,
            });
        }
        all
    }
}
