//! `policy-exec`: sets resource limits and becomes a policy driver. The selector starts its drivers through it.
//! Setting limits in a closure before `exec` would force a fork of the selector, which is slow if that uses much
//! memory.
//!
//! ```text
//! policy-exec LIMITS PROGRAM NAME ARGUMENT…
//! ```

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::resources::ResourceLimits;

/// Argument that makes `refpeer` the shim.
pub const WORD: &str = "policy-exec";

/// Exit status if the driver could not be started, as in shells.
pub const STATUS_FAILED: i32 = 127;

/// Sets the limits and becomes the program. Returns only on failure, with [`STATUS_FAILED`] and a sentence on standard
/// error.
pub fn run_policy_exec(arguments: &[String]) -> i32 {
    let error = match arguments {
        [limits, program, name, arguments @ ..] => match ResourceLimits::decode(limits) {
            Some(limits) => {
                set(&limits);
                let error = Command::new(program).arg0(name).args(arguments).exec();
                format!("cannot start {program}: {error}")
            }
            None => format!("malformed limits {limits:?}"),
        },
        _ => "usage: policy-exec LIMITS PROGRAM NAME [ARGUMENT]...".to_owned(),
    };
    super::complain(&format!("policy-exec: {error}"));
    STATUS_FAILED
}

/// Sets each limit. A value above the maximum of this process is lowered to that maximum.
fn set(limits: &ResourceLimits) {
    for (resource, value) in [
        (Resource::Cpu, limits.cpu_s),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.processes),
        (Resource::As, limits.address_space_bytes),
    ] {
        let wanted = Rlimit { current: Some(value), maximum: Some(value) };
        if setrlimit(resource, wanted).is_err() {
            let maximum = getrlimit(resource).maximum;
            let current = Some(maximum.map_or(value, |maximum| maximum.min(value)));
            let _ = setrlimit(resource, Rlimit { current, maximum });
        }
    }
}
