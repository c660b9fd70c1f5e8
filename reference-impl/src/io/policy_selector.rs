//! `policy-select`: the reference selector on the standard streams of this process.
//!
//! ```text
//! policy-select [--without patches|merged_inputs]… [--choice KEY=VALUE]… [--limit NAME=VALUE]…
//! ```
//!
//! The variables `MACHINA_POLICY_*`, `MACHINA_PROFILE`, `MACHINA_ROOT` and `PATH` configure everything else.

use std::env;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use super::StartError;
use super::dispatcher::{Careful, Handling, Launcher, run_with_launcher};
use super::policy_faults::Careless;
use crate::limits::Limits;
use crate::machine::{Machine, Wrap};
use crate::policy_driver::guard::{FileKind, Files};
use crate::policy_driver::mutants::selector::{LaunchFault, Mutant};
use crate::policy_driver::settings::Settings;
use crate::policy_driver::{Parts, Selector, SelectorChoices, SelectorConfig, environment};

/// Exit status for invalid arguments, and by choice for invalid variables.
const STATUS_USAGE: i32 = 2;

/// Exit status after an I/O error on the standard streams.
const STATUS_STREAMS: i32 = 70;

/// Runs the selector on the standard streams of this process and returns its exit status: 0 at the end of its input, 2
/// for invalid arguments, 70 after an I/O error, 143 after SIGTERM.
///
/// `arguments` are those after the `policy-select` word, `variables` the environment. `shim` holds the arguments that
/// make this program the shim of [`super::policy_exec`]. `wrap` may wrap the selector to change its output.
pub fn run_policy_select(
    arguments: &[String],
    variables: &[(String, String)],
    shim: &[&str],
    wrap: &Wrap<'_>,
) -> i32 {
    let machine = |config| {
        let parts = Parts::new(&config, Box::new(Disk));
        wrap(Box::new(Selector::new(config, parts)))
    };
    let launcher = launcher(variables, shim, Box::new(Careful), &environment::passes);
    run(parse(arguments, variables).map(machine), launcher)
}

/// Runs a mutant of the selector as [`run_policy_select`] runs the correct one.
pub fn run_mutant(
    mutant: &Mutant,
    arguments: &[String],
    variables: &[(String, String)],
    shim: &[&str],
) -> i32 {
    let machine = |config| -> Box<dyn Machine> { mutant.machine(config, Box::new(Disk)) };
    let launcher = match mutant.carrier_fault() {
        None => launcher(variables, shim, Box::new(Careful), &environment::passes),
        Some(fault) => Careless::new(fault).map_err(StartError::from).and_then(|careless| {
            launcher(
                variables,
                shim,
                Box::new(careless),
                &match fault {
                    LaunchFault::Passes(passes) => passes,
                    _ => environment::passes,
                },
            )
        }),
    };
    run(parse(arguments, &mutant.variables(variables)).map(machine), launcher)
}

fn run(machine: Result<Box<dyn Machine>, StartError>, launcher: Result<Launcher, StartError>) -> i32 {
    let failed = |error: StartError, status| {
        super::complain(&format!("policy-select: {error}"));
        status
    };
    let mut machine = match machine {
        Ok(machine) => machine,
        Err(error) => return failed(error, STATUS_USAGE),
    };
    let launcher = match launcher {
        Ok(launcher) => launcher,
        Err(error) => return failed(error, STATUS_STREAMS),
    };
    run_with_launcher(&mut *machine, launcher).unwrap_or_else(|error| failed(error.into(), STATUS_STREAMS))
}

/// Settings for the start of drivers: this program as the shim, with the part of the environment that `passes` allows.
///
/// # Errors
/// A sentence that says that this program does not know its own path.
pub(super) fn launcher(
    variables: &[(String, String)],
    shim: &[&str],
    handling: Box<dyn Handling>,
    passes: &dyn Fn(&str) -> bool,
) -> Result<Launcher, StartError> {
    let own = env::current_exe().map_err(StartError::OwnPath)?;
    let own = own.into_os_string().into_string().map_err(|_| StartError::OwnPathNotText)?;
    Ok(Launcher {
        shim: [own].into_iter().chain(shim.iter().map(|word| (*word).to_owned())).collect(),
        variables: variables.iter().filter(|(name, _)| passes(name)).cloned().collect(),
        temp_dir: value(variables, "TMPDIR").filter(|folder| !folder.is_empty()).unwrap_or("/tmp".to_owned()),
        handling,
        own_group: true,
        appended: None,
    })
}

fn value(variables: &[(String, String)], name: &str) -> Option<String> {
    variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

/// Reads the arguments and the environment variables.
///
/// # Errors
/// A sentence that names the unknown or malformed argument, or by choice the variable.
pub fn parse(arguments: &[String], variables: &[(String, String)]) -> Result<SelectorConfig, StartError> {
    let (mut choices, mut limits) = (SelectorChoices::default(), Limits::default());
    let (mut patches, mut merged_inputs) = (true, true);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| StartError::no_value(argument));
        match argument.as_str() {
            "--without" => match value()?.as_str() {
                "patches" => patches = false,
                "merged_inputs" => merged_inputs = false,
                other => return Err(StartError::name("feature", other, "patches, merged_inputs")),
            },
            "--choice" | "--limit" => {
                let value = value()?;
                super::set(argument, value, |name, value| choices.set(name, value), &mut limits)?;
            }
            _ => return Err(StartError::argument(argument, None)),
        }
    }
    let settings = Settings::read(&|name| value(variables, name), &limits, &choices)?;
    Ok(SelectorConfig { settings, choices, limits, patches, merged_inputs })
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Disk;

impl Files for Disk {
    fn kind(&self, path: &str) -> FileKind {
        let Ok(about) = fs::metadata(path) else { return FileKind::Missing };
        if about.is_dir() {
            return FileKind::Folder;
        }
        if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
            return FileKind::Plain;
        }
        let mut head = Vec::new();
        let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut head));
        head.resize(4, 0);
        FileKind::Program(read.ok().and_then(|_| head.try_into().ok()))
    }

    fn canonical(&self, path: &str) -> Option<String> {
        fs::canonicalize(path).ok()?.into_os_string().into_string().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str], variables: &[(&str, &str)]) -> Result<SelectorConfig, StartError> {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        parse(&arguments, &variables.iter().map(own).collect::<Vec<_>>())
    }

    #[test]
    fn reads_arguments_and_variables() {
        let arguments =
            ["--without", "patches", "--choice", "other_modes=invalid", "--limit", "nesting_max=70"];
        let config = parsed(&arguments, &[("MACHINA_POLICY_TIMEOUT_MS", "9")]).unwrap();
        assert_eq!((config.patches, config.merged_inputs, config.limits.nesting_max), (false, true, 70));
        assert_eq!((config.settings.timeout_ms, config.choices.get("other_modes")), (9, Some("invalid")));
    }

    #[test]
    fn names_what_it_does_not_understand() {
        for (arguments, part) in [
            (&["x"][..], "\"x\""),
            (&["--without", "x"][..], "\"x\""),
            (&["--without"][..], "--without needs"),
            (&["--choice", "bom=ignore"][..], "bom"),
            (&["--limit", "x"][..], "--limit needs"),
        ] {
            let error = parsed(arguments, &[]).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let refusing = ["--choice", "invalid_variables=refuse"];
        assert!(
            parsed(&refusing, &[("MACHINA_POLICY_COOLDOWN_MS", "-1")])
                .unwrap_err()
                .to_string()
                .contains("COOLDOWN")
        );
    }

    #[test]
    fn looks_at_the_disk() {
        assert_eq!(Disk.kind("/"), FileKind::Folder);
        assert_eq!(Disk.kind("/nonexistent"), FileKind::Missing);
        assert!(matches!(Disk.kind("/bin/sh"), FileKind::Program(Some(_))));
        assert_eq!(
            Disk.canonical("/bin/../bin/."),
            fs::canonicalize("/bin").unwrap().to_str().map(str::to_owned)
        );
    }
}
