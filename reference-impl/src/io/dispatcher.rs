//! `dispatch`: reads one call, runs one toolhost, prints one answer (`contract` §1 "Dispatcher").
//!
//! ```text
//! dispatch PEER [--plugin NAME] [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```
//!
//! The toolhost is started as `PEER --run NAME AID`, `NAME` being `default` unless it is given. A `PEER` without a
//! slash is a file in the working directory, never looked up in `PATH`.

mod handling;
mod shell;
mod tree;

use std::io::Write as _;

pub(super) use handling::{Careful, Handling};
pub use shell::run_machine;
pub(super) use shell::{Launcher, run_with_launcher};
pub(super) use tree::{Bystanders, kill_all};

use super::StartError;
use crate::dispatcher::{
    Config, Dispatcher, FailureExit, FractionalTimeout, LivesOn, PrintedAs, RequestShape, UnrunnablePath,
};
use crate::json::{BigNumbers, DuplicateKeys, LoneSurrogates};

/// Environment variable with the time limit of a toolhost in seconds (`ipc` §7).
pub(crate) const TIMEOUT_VARIABLE: &str = "MACHINA_TOOLHOST_TIMEOUT";

/// Exit status for invalid arguments.
const STATUS_USAGE: i32 = 2;

/// Exit status after an I/O error on the standard streams.
const STATUS_STREAMS: i32 = 70;

/// Runs the dispatcher on the standard streams of this process and returns its exit status: 0 after an answer (1 after
/// an error object, if so configured), 2 for invalid arguments, 70 after an I/O error.
///
/// `arguments` are those after the `dispatch` word; `variable` looks up an environment variable.
pub fn run_dispatch(arguments: &[String], variable: &dyn Fn(&str) -> Option<String>) -> i32 {
    match parse(arguments, variable) {
        Ok(config) => run_machine(&mut Dispatcher::new(config)).unwrap_or_else(|error| {
            let _ = writeln!(std::io::stderr(), "dispatch: {error}");
            STATUS_STREAMS
        }),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "dispatch: {error}");
            STATUS_USAGE
        }
    }
}

/// Reads the arguments and [`TIMEOUT_VARIABLE`]. A value that is not a positive number leaves the default in force,
/// and `--limit` takes precedence.
///
/// # Errors
/// A sentence that names the missing, unknown or malformed argument.
pub fn parse(arguments: &[String], variable: &dyn Fn(&str) -> Option<String>) -> Result<Config, StartError> {
    let mut config = Config::new("");
    let mut fractions = FractionalTimeout::default();
    let mut limits = Vec::new();
    let mut peer = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--plugin" => value()?.clone_into(&mut config.plugin),
            "--choice" => {
                let (key, value) = pair(argument, value()?)?;
                choose(&mut config, &mut fractions, key, value)?;
            }
            "--limit" => {
                limits.push(pair(argument, value()?)?);
            }
            _ if argument.starts_with('-') => return Err(StartError::option(argument, None)),
            _ if peer.is_none() => peer = Some(argument),
            _ => return Err(StartError::argument(argument, None)),
        }
    }
    let peer =
        peer.ok_or("usage: dispatch PEER [--plugin NAME] [--choice KEY=VALUE] [--limit NAME=VALUE]")?;
    if let Some(seconds) = variable(TIMEOUT_VARIABLE) {
        config.read_timeout(&seconds, fractions);
    }
    for (name, value) in limits {
        config.limits.set(name, value)?;
    }
    config.peer = if peer.contains('/') { peer.clone() } else { format!("./{peer}") };
    Ok(config)
}

fn pair<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), StartError> {
    text.split_once('=').ok_or_else(|| StartError::value(option, "NAME=VALUE", text))
}

fn choose(
    config: &mut Config,
    fractions: &mut FractionalTimeout,
    key: &str,
    value: &str,
) -> Result<(), StartError> {
    match (key, value) {
        ("request_shape", "inputs") => config.request_shape = RequestShape::Inputs,
        ("request_shape", "input_json") => config.request_shape = RequestShape::InputJson,
        ("printed_as", "value") => config.printed_as = PrintedAs::Value,
        ("printed_as", "string") => config.printed_as = PrintedAs::Text,
        ("exit_status", "zero") => config.failure_exit = FailureExit::Zero,
        ("exit_status", "nonzero") => config.failure_exit = FailureExit::Nonzero,
        ("unrunnable_path", "not_found") => config.unrunnable_path = UnrunnablePath::NotFound,
        ("unrunnable_path", "exception") => config.unrunnable_path = UnrunnablePath::Exception,
        ("fractional_timeout", "number") => *fractions = FractionalTimeout::Number,
        ("fractional_timeout", "default") => *fractions = FractionalTimeout::Default,
        ("fractional_timeout", "refuse") => *fractions = FractionalTimeout::Refuse,
        ("lives_on_after_reply", "timeout") => config.lives_on = LivesOn::Timeout,
        ("lives_on_after_reply", "result") => config.lives_on = LivesOn::Result,
        ("duplicate_keys", "last") => config.policy.duplicate_keys = DuplicateKeys::Last,
        ("duplicate_keys", "first") => config.policy.duplicate_keys = DuplicateKeys::First,
        ("duplicate_keys", "refuse") => config.policy.duplicate_keys = DuplicateKeys::Refuse,
        ("lone_surrogates", "echo") => config.policy.lone_surrogates = LoneSurrogates::Echo,
        ("lone_surrogates", "replace") => config.policy.lone_surrogates = LoneSurrogates::Replace,
        ("lone_surrogates", "refuse") => config.policy.lone_surrogates = LoneSurrogates::Refuse,
        ("big_integers", "exact") => config.policy.big_numbers = BigNumbers::Exact,
        ("big_integers", "round") => config.policy.big_numbers = BigNumbers::Round,
        ("big_integers", "refuse") => config.policy.big_numbers = BigNumbers::Refuse,
        _ => return Err(StartError::Other(format!("unknown choice {key}={value}; known: {KNOWN_CHOICES}"))),
    }
    Ok(())
}

const KNOWN_CHOICES: &str = "request_shape=inputs|input_json, printed_as=value|string, \
                             exit_status=zero|nonzero, unrunnable_path=not_found|exception, \
                             fractional_timeout=number|default|refuse, lives_on_after_reply=timeout|result, \
                             duplicate_keys=last|first|refuse, \
                             lone_surrogates=echo|replace|refuse, big_integers=exact|round|refuse";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str], timeout: Option<&str>) -> Result<Config, StartError> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        parse(&arguments, &|name| {
            assert_eq!(name, TIMEOUT_VARIABLE);
            timeout.map(str::to_owned)
        })
    }

    #[test]
    fn reads_every_argument() {
        let config = parsed(
            &["--choice", "request_shape=inputs", "dir/peer", "--limit", "nesting_max=70", "--plugin", "p"],
            Some("1.5"),
        )
        .unwrap();
        assert_eq!((config.peer.as_str(), config.plugin.as_str()), ("dir/peer", "p"));
        assert_eq!(config.request_shape, RequestShape::Inputs);
        assert_eq!((config.limits.nesting_max, config.limits.toolhost_timeout_ms), (70, 1500));
    }

    #[test]
    fn bare_name_is_a_file_here() {
        assert_eq!(parsed(&["true"], None).unwrap().peer, "./true");
    }

    #[test]
    fn bad_timeout_leaves_the_default() {
        for value in [None, Some(""), Some("soon"), Some("-1"), Some("0"), Some("NaN"), Some("inf")] {
            assert_eq!(parsed(&["/p"], value).unwrap().limits.toolhost_timeout_ms, 30_000, "{value:?}");
        }
        assert_eq!(parsed(&["/p"], Some("0.0001")).unwrap().limits.toolhost_timeout_ms, 1);
        assert_eq!(parsed(&["/p"], Some("1e300")).unwrap().limits.toolhost_timeout_ms, u64::MAX);
        assert_eq!(parsed(&["/p"], Some(" 2 ")).unwrap().limits.toolhost_timeout_ms, 2000);
    }

    #[test]
    fn fraction_means_what_is_chosen() {
        let chosen = |value: &str, seconds: &str| {
            let config =
                parsed(&["/p", "--choice", &format!("fractional_timeout={value}")], Some(seconds)).unwrap();
            (config.limits.toolhost_timeout_ms, config.refusal.is_some())
        };
        for value in ["number", "default", "refuse"] {
            assert_eq!(chosen(value, "2"), (2_000, false), "{value}");
            assert_eq!(chosen(value, "2.0"), (2_000, false), "{value}");
            assert_eq!(chosen(value, "soon"), (30_000, false), "{value}");
        }
        assert_eq!(chosen("number", "1.5"), (1_500, false));
        assert_eq!(chosen("default", "1.5"), (30_000, false));
        assert_eq!(chosen("refuse", "1.5"), (30_000, true));
    }

    #[test]
    fn limit_goes_before_the_variable() {
        let config = parsed(&["/p", "--limit", "toolhost_timeout_ms=7"], Some("2")).unwrap();
        assert_eq!(config.limits.toolhost_timeout_ms, 7);
    }

    #[test]
    fn takes_every_choice() {
        for (key, values) in KNOWN_CHOICES.split(", ").map(|choice| choice.trim().split_once('=').unwrap()) {
            for value in values.split('|') {
                assert!(
                    parsed(&["/p", "--choice", &format!("{key}={value}")], None).is_ok(),
                    "{key}={value}"
                );
            }
        }
        assert_eq!(KNOWN_CHOICES.matches('=').count(), 9);
    }

    #[test]
    fn names_what_it_does_not_understand() {
        for (arguments, part) in [
            (&[][..], "usage"),
            (&["/p", "/q"][..], "\"/q\""),
            (&["/p", "--shape"][..], "--shape"),
            (&["/p", "--limit"][..], "--limit needs"),
            (&["/p", "--limit", "bytes=1"][..], "bytes"),
            (&["/p", "--choice", "request_shape"][..], "NAME=VALUE"),
            (&["/p", "--choice", "request_shape=both"][..], "request_shape=inputs|input_json"),
        ] {
            let error = parsed(arguments, None).unwrap_err().to_string();
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
    }
}
