//! The reference driver, bridge and selector as peers under test.

use peerproof_reference::io;
use peerproof_reference::policy_driver::mutants::{bridge, driver, selector};
use serde_json::{Value, json};

use super::arguments::{refuse, split_mutant, split_presentation, variable};
use super::presented::wrap_as;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::machine::Machine;
use peerproof_engine::drive::presentation::Harmless;
use peerproof_engine::drive::reference_peers::{Mutant, Played, Reference};
use peerproof_policy_driver::request::Request;
use peerproof_policy_driver::{BRIDGE, DRIVER, SELECTOR, full_facts};

pub mod properties;

struct PolicyDriver;

/// The reference driver, bridge and selector.
pub fn played() -> &'static dyn Played {
    &PolicyDriver
}

impl Played for PolicyDriver {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_policy_driver::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        commands()
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        run(args, env)
    }

    fn least_roles(&self, side: Side) -> Vec<(&'static str, Value)> {
        least_roles(side)
    }

    fn reference_machine(&self, _args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        // A driver needs its file, a selector real processes.
        None
    }

    fn reference_takes(&self, side: Side, extra: &[String]) -> bool {
        takes(side, extra)
    }

    fn mutants(&self) -> Vec<Mutant> {
        mutants()
    }
}

/// Word that selects the driver.
const DRIVE: &str = "--drive";
/// Word that selects the bridge.
const ASK: &str = "--bridge";
/// Word that selects the selector.
const SELECT: &str = "--select";
/// Word that selects the selector's launcher of drivers.
const SHIM: &str = "--exec";
/// Words that make this program that launcher.
const OWN_SHIM: [&str; 3] = ["peer", "policy_driver", SHIM];

/// Arguments after `peerproof peer policy_driver`.
pub fn commands() -> Vec<Reference> {
    let own = |args: &[&str]| args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>();
    vec![
        Reference {
            side: Side::Provider,
            commands: vec![
                (DRIVER, own(&[DRIVE, "{payload}"])),
                (BRIDGE, own(&[ASK, "{payload}", "--limit", "policy_llm_timeout_ms=1500"])),
            ],
            // A block has one form; only its division is free.
            harmless: &[Harmless::OneByteWrites],
        },
        Reference {
            side: Side::Consumer,
            commands: vec![(SELECTOR, own(&[SELECT]))],
            harmless: Harmless::ALL,
        },
    ]
}

/// Minimal role configurations: absent, and a payload with meaningless inputs.
pub(crate) fn least_roles(side: Side) -> Vec<(&'static str, Value)> {
    let role = |request: Request| {
        let payload: Value = serde_json::from_str(&request.text()).unwrap_or_default();
        json!({ "payload": payload })
    };
    let absent = full_facts::payloads().map(|(role, _)| (role, Value::Null));
    let inputless = [
        ("pick", role(Request::plain().inputs("{}"))),
        ("pick", role(Request::plain().without("inputs"))),
        ("pick_inp", role(Request::plain().inputs(r#"{"policy_patch":{"":0}}"#))),
        ("pick_inp64", role(Request::plain().inputs(r#"{"policy_patch64":{"":0}}"#))),
    ];
    match side {
        Side::Provider => [absent.as_slice(), &inputless].concat(),
        Side::Consumer => Vec::new(),
    }
}

/// Runs a reference peer on the standard streams of this process; returns the exit status.
pub fn run(args: &[String], env: &[(String, String)]) -> i32 {
    let Some((word, args)) = args.split_first() else {
        return refuse(&"say which peer: --drive PAYLOAD, --bridge PAYLOAD or --select");
    };
    let (how, args) = match split_presentation(args) {
        Ok(split) => split,
        Err(error) => return refuse(&error),
    };
    let args = args.as_slice();
    let wrap = |machine| wrap_as(machine, how);
    let variable = variable(env);
    let run = match word.as_str() {
        DRIVE => split_mutant(&payload_last(args), driver::find).map(|split| match split {
            (None, args) => io::policy_driver::run_policy_driver(&args, &wrap),
            (Some(mutant), args) => io::policy_driver::run_driver_mutant(&mutant, &args, &variable),
        }),
        ASK => split_mutant(&payload_last(args), bridge::find).map(|split| match split {
            (None, args) => io::policy_driver::run_policy_llm(&args, &variable, &wrap),
            (Some(mutant), args) => io::policy_driver::run_bridge_mutant(&mutant, &args, &variable),
        }),
        SELECT => split_mutant(args, selector::find).map(|split| match split {
            (None, args) => io::policy_selector::run_policy_select(&args, env, &OWN_SHIM, &wrap),
            (Some(mutant), args) => io::policy_selector::run_mutant(&mutant, &args, env, &OWN_SHIM),
        }),
        SHIM => Ok(io::policy_exec::run_policy_exec(args)),
        other => {
            return refuse(&format!(
                "there is no peer {other:?}: --drive PAYLOAD, --bridge PAYLOAD or --select"
            ));
        }
    };
    run.unwrap_or_else(|error| refuse(&error))
}

/// Moves the payload after all other arguments, where a driver expects it, because options are appended to a command
/// line.
fn payload_last(args: &[String]) -> Vec<String> {
    let mut args = args.to_vec();
    if args.first().is_some_and(|first| !first.starts_with("--")) {
        args.rotate_left(1);
    }
    args
}

/// True if the reference of this side understands these further arguments.
pub fn takes(side: Side, extra: &[String]) -> bool {
    match side {
        Side::Provider => {
            let payload = ["payload".to_owned()];
            io::policy_driver::parse(&[extra, &payload].concat()).is_ok()
        }
        Side::Consumer => io::policy_selector::parse(extra, &[]).is_ok(),
    }
}

/// All mutants, those of the provider first.
pub fn mutants() -> Vec<Mutant> {
    let entry = |id, clauses, fault, unclaimed, side| Mutant {
        id,
        clauses,
        side,
        fault,
        // A driver needs its file, a selector real processes.
        needs_process: true,
        unclaimed,
    };
    let drivers = driver::all().into_iter();
    let drivers = drivers.map(|it| entry(it.id, it.clauses, it.fault, it.unclaimed, Side::Provider));
    let bridges = bridge::all().into_iter();
    let bridges = bridges.map(|it| entry(it.id, it.clauses, it.fault, it.unclaimed, Side::Provider));
    let selectors = selector::all().into_iter();
    let selectors = selectors.map(|it| entry(it.id, it.clauses, it.fault, it.unclaimed, Side::Consumer));
    drivers.chain(bridges).chain(selectors).collect()
}
