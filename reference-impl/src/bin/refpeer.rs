//! `refpeer <boundary> …`: a reference peer on the standard streams of this process.

use std::env;
use std::io::Write as _;
use std::process::ExitCode;

use peerproof_reference::io;

/// First argument that makes this program start a policy driver.
const SHIM: [&str; 1] = [io::policy_exec::WORD];

/// The environment, as far as it is text.
fn variables() -> Vec<(String, String)> {
    env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let boundary = arguments.next();
    let arguments: Vec<String> = arguments.collect();
    let variable = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let status = match boundary.as_deref() {
        Some("toolhost") => io::toolhost::run_toolhost(&arguments, &variable),
        Some("dispatch") => io::dispatcher::run_dispatch(&arguments, &variable),
        Some("envelope") => match arguments.split_first() {
            Some((word, rest)) if word == io::envelope_caller::WORD => {
                io::envelope_caller::run_envelope_caller(rest)
            }
            _ => io::envelope::run_envelope(&arguments, None),
        },
        Some("json-rpc") => io::json_rpc::run_json_rpc(&arguments),
        Some("json-rpc-client") => io::json_rpc_client::run_json_rpc_client(&arguments),
        Some("mcp") => io::mcp::run_mcp(&arguments),
        Some("policy-driver") => io::policy_driver::run_policy_driver(&arguments, &|driver| driver),
        Some("policy-llm") => io::policy_driver::run_policy_llm(&arguments, &variable, &|bridge| bridge),
        Some("policy-select") => {
            io::policy_selector::run_policy_select(&arguments, &variables(), &SHIM, &|selector| selector)
        }
        Some("run-log") => {
            io::run_log::run_run_log(&arguments, &variables(), &SHIM, &io::run_log::Peers::CORRECT)
        }
        Some("run-queue" | "run_queue") => {
            io::run_queue::run_run_queue(&arguments, &variables(), &SHIM, &["run-queue"])
        }
        Some("python-tool") => match arguments.split_first() {
            Some((word, rest)) if word == io::python_runtime::WORD => {
                io::python_runtime::run_python_runtime(rest, variable("http_proxy"), None)
            }
            _ => io::python_tool::run_python_tool(&arguments, &["python-tool"], None, |machine| machine),
        },
        Some(io::policy_exec::WORD) => io::policy_exec::run_policy_exec(&arguments),
        _ => {
            let _ = writeln!(
                std::io::stderr(),
                "usage: refpeer toolhost … | refpeer dispatch … | refpeer envelope … | refpeer json-rpc … | refpeer json-rpc-client … | refpeer mcp server … | \
                 refpeer policy-driver … | refpeer policy-select … | refpeer policy-llm … | refpeer python-tool … | \
                 refpeer run-log … | refpeer run-queue …"
            );
            2
        }
    };
    ExitCode::from(u8::try_from(status).unwrap_or(70))
}
