//! `toolhost`: the reference toolhost on the standard streams of this process.
//!
//! ```text
//! toolhost --run [PLUGIN] AID | --serve [PLUGIN] | --list   [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```
//!
//! The plugin is accepted and ignored: the tools are built in.

use std::io::Write as _;

use super::StartError;
use super::stdio::run_machine;
use crate::toolhost::{Config, Mode, machine, table};

/// Environment variable that makes tools of tier 1 and above require a lease if it is `1` (other values: see the
/// choices).
pub(crate) const LEASE_VARIABLE: &str = "MACHINA_LEASE_ENFORCE";

/// Environment variable with the hosts that `http_get` may contact.
pub(crate) const HOSTS_VARIABLE: &str = "MACHINA_HTTP_ALLOWED_HOSTS";

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

const USAGE: &str = "usage: toolhost --run [PLUGIN] AID | --serve [PLUGIN] | --list \
                     [--choice KEY=VALUE]... [--limit NAME=VALUE]...";

/// Parsed command line.
#[derive(Debug, Clone)]
pub enum Command {
    /// Print the aids of the tools, one per line.
    List,
    /// Run as a toolhost.
    Host(Box<Config>),
}

/// Runs the toolhost on the standard streams of this process and returns its exit status: 2 for invalid arguments, 70
/// after an I/O error, else the status that the contract demands.
///
/// `arguments` are those after the `toolhost` word; `variable` looks up an environment variable.
pub fn run_toolhost(arguments: &[String], variable: &dyn Fn(&str) -> Option<String>) -> i32 {
    match parse(arguments, variable) {
        Ok(Command::List) => {
            let aids: String = table(None).entries.iter().map(|entry| format!("{}\n", entry.aid)).collect();
            i32::from(std::io::stdout().write_all(aids.as_bytes()).is_err())
        }
        Ok(Command::Host(mut config)) => {
            config.token_seed = random_seed();
            let status_at_rest = config.mode.status_terminated();
            run_machine(machine(*config), status_at_rest)
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "toolhost: {error}");
            STATUS_USAGE
        }
    }
}

/// Returns 32 random bytes for lease tokens, or zeros if the kernel has none yet, early during boot.
pub fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    let _ = rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty());
    seed
}

/// Reads the arguments and the two variables.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Result<Command, StartError> {
    let mut config = Config::new(Mode::Serve);
    config.http_allowed_hosts = variable(HOSTS_VARIABLE);
    let mut option = None;
    let mut operands = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--run" | "--serve" | "--list" => {
                if let Some(first) = option.replace(argument.as_str()) {
                    return Err(StartError::Exclusive(first.to_owned(), argument.to_owned()));
                }
            }
            "--choice" | "--limit" => {
                let value = arguments.next().ok_or_else(|| StartError::no_value(argument))?;
                super::set(
                    argument,
                    value,
                    |name, value| config.choices.set(name, value),
                    &mut config.limits,
                )?;
            }
            _ if argument.starts_with('-') => return Err(StartError::option(argument, Some(USAGE))),
            operand => operands.push(operand),
        }
    }
    match (option, &operands[..]) {
        (Some("--list"), []) => return Ok(Command::List),
        (Some("--serve"), [] | [_]) => {}
        (Some("--run"), [aid] | [_, aid]) => config.mode = Mode::Run { aid: (*aid).to_owned() },
        (Some("--run"), []) => return Err(StartError::Other(format!("--run needs an AID; {USAGE}"))),
        (Some(_), [.., extra]) => return Err(StartError::argument(extra, Some(USAGE))),
        _ => return Err(StartError::Usage(USAGE)),
    }
    config.read_lease_enforce(variable(LEASE_VARIABLE).as_deref());
    Ok(Command::Host(Box::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, StartError> {
        let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        parse(&arguments, &|name| (name == LEASE_VARIABLE).then(|| "1".to_owned()))
    }

    fn config(line: &str) -> Config {
        match parsed(line) {
            Ok(Command::Host(config)) => *config,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn plugin_is_optional() {
        for line in ["--run AID.X", "--run p.so AID.X", "p.so AID.X --run"] {
            assert_eq!(config(line).mode, Mode::Run { aid: "AID.X".to_owned() }, "{line}");
        }
        for line in ["--serve", "--serve p.so"] {
            assert_eq!(config(line).mode, Mode::Serve, "{line}");
            assert!(config(line).lease_enforce);
        }
        assert!(matches!(parsed("--list"), Ok(Command::List)));
    }

    #[test]
    fn choices_and_limits_repeat() {
        let config = config("--serve --limit stdin_bytes_max=64 --choice bom=refuse --choice blank_line=end");
        assert_eq!(config.limits.stdin_bytes_max, 64);
        assert_eq!(
            (config.choices.get("bom"), config.choices.get("blank_line")),
            (Some("refuse"), Some("end"))
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (line, word) in [
            ("", "usage"),
            ("--run", "AID"),
            ("--serve a b", "\"b\""),
            ("--run a b c", "\"c\""),
            ("--serve --run x", "exclude"),
            ("--serve --loud", "--loud"),
            ("--serve --choice", "needs a value"),
            ("--serve --choice bom", "NAME=VALUE"),
            ("--serve --choice bom=x", "refuse"),
            ("--serve --limit x=1", "stdin_bytes_max"),
            ("--list x", "\"x\""),
        ] {
            let error = parsed(line).map(|_| ()).unwrap_err();
            assert!(error.to_string().contains(word), "{line}: {error}");
        }
    }
}
