//! `refpeer <boundary> …`: a reference peer on the standard streams of this process.

use std::env;
use std::io::Write as _;
use std::process::ExitCode;

use peerproof_reference::io;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let boundary = arguments.next();
    let arguments: Vec<String> = arguments.collect();
    let variable = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let status = match boundary.as_deref() {
        Some("toolhost") => io::toolhost::run_toolhost(&arguments, &variable),
        Some("dispatch") => io::dispatch::run_dispatch(&arguments, &variable),
        Some("json-rpc") => io::json_rpc::run_json_rpc(&arguments),
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "usage: refpeer toolhost … | refpeer dispatch … | refpeer json-rpc …"
            );
            2
        }
    };
    ExitCode::from(u8::try_from(status).unwrap_or(70))
}
