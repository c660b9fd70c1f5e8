//! Hidden functions of a binary that runs checks: programs that peers start, and reference peers.

use std::ffi::OsString;

use peerproof_engine::drive::slowdown;

use crate::table;

/// Plays a hidden function of this binary: an actor, the shim that sets limits or, with the feature `reference`, a
/// reference peer. Returns the exit status; `None` if the arguments (the binary's own name first) are for the command
/// line. A binary that runs checks calls this first.
pub fn hidden(args: &[OsString], variables: &dyn Fn() -> Vec<(OsString, OsString)>) -> Option<i32> {
    use peerproof_engine::drive::transport::child::{guardian, shim};
    use peerproof_engine::run::runner::probe;

    let programs = |name: &str, argv: &[String]| {
        table::all().into_iter().find_map(|boundary| boundary.program(name, argv))
    };
    if let Some(status) = peerproof_engine::drive::fixture::actor::dispatch(args.iter().cloned(), &programs) {
        return Some(status);
    }
    if args.get(1).is_some_and(|first| first == shim::SHIM_ARGUMENT) {
        shim::main(args[2..].iter().cloned());
    }
    if args.get(1).is_some_and(|first| first == guardian::GUARDIAN_ARGUMENT) {
        return Some(guardian::main(args[2..].iter().cloned()));
    }
    if args.get(1).is_some_and(|first| first == peerproof_engine::run::bench::echo::ECHO_ARGUMENT) {
        return Some(peerproof_engine::run::bench::echo::main(args.get(2)?.to_str()?));
    }
    if args.get(1).is_some_and(|first| first == slowdown::LOAD_ARGUMENT) {
        return Some(slowdown::keep_busy());
    }
    if args.get(1).is_some_and(|first| first == probe::PROBE_ARGUMENT) {
        return Some(probe::main());
    }
    #[cfg(feature = "reference")]
    if args.get(1).is_some_and(|first| first == "peer") {
        return reference_peer(args, variables);
    }
    #[cfg(not(feature = "reference"))]
    let _ = variables;
    None
}

/// Runs a reference peer until it ends and returns its status; `None` if the command line must answer, as for `--help`.
#[cfg(feature = "reference")]
fn reference_peer(args: &[OsString], variables: &dyn Fn() -> Vec<(OsString, OsString)>) -> Option<i32> {
    let boundary = table::find(args.get(2)?.to_str()?)?;
    let rest: Option<Vec<String>> = args[3..].iter().map(|arg| arg.to_str().map(str::to_owned)).collect();
    let rest = rest?;
    if rest.is_empty() || rest.iter().any(|arg| arg == "--help") {
        return None;
    }
    let env = variables()
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env: Vec<_> = env.collect();
    Some(slowdown::paced(rest, peerproof_played::reply_late_over_http, |args| {
        table::played(boundary).run_reference(args, &env)
    }))
}
