//! Arguments about the settings of a run; shared by the commands that run checks.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::{Context, Stop};
use peerproof::report::console::Detail;
use peerproof::report::render::Form;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::nearest::{did_you_mean, then};
use peerproof_engine::run::runner::Options;

/// Settings of a run. Each flag overrides its variable `PEERPROOF_…`, which overrides the default.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "The run")]
pub(crate) struct RunArgs {
    /// Also run checks that wait for the time limits of the contract (up to three minutes).
    #[arg(long)]
    pub slow: bool,
    /// Also run checks that wait longer (up to twelve minutes); implies --slow.
    #[arg(long)]
    pub very_slow: bool,
    /// Continue if the first plain request is not answered.
    #[arg(long)]
    pub keep_going: bool,
    /// Number of checks that run at the same time [default: the number of processors].
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<usize>,
    /// Seed of all random choices [default: 1].
    #[arg(long, value_name = "N")]
    pub rng_seed: Option<u64>,
    /// Factor on the time limits of the peer, for slow machines [default: 1].
    #[arg(long, value_name = "F")]
    pub timeout_scale: Option<f64>,
}

/// Maximum factor on times, and the inverse of the minimum.
const TIMEOUT_SCALE_MAX: f64 = 1_000.0;

impl RunArgs {
    /// Options from flags, variables and defaults.
    ///
    /// # Errors
    /// Fails if a variable is not a number, or a number is out of range.
    pub(crate) fn options(&self, context: &Context) -> Result<Options, Stop> {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        let jobs = setting(self.jobs, "JOBS", context)?.unwrap_or(processors);
        if jobs == 0 {
            return Err(Stop::usage("--jobs is 0; it must be at least 1"));
        }
        let timeout_scale = setting(self.timeout_scale, "TIMEOUT_SCALE", context)?.unwrap_or(1.0);
        if !(1.0 / TIMEOUT_SCALE_MAX..=TIMEOUT_SCALE_MAX).contains(&timeout_scale) {
            return Err(Stop::usage(format!(
                "--timeout-scale is {timeout_scale}; it must be from 0.001 to {TIMEOUT_SCALE_MAX}"
            )));
        }
        let very_slow = self.very_slow || switch("VERY_SLOW", context)?;
        Ok(Options {
            slow: self.slow || very_slow || switch("SLOW", context)?,
            very_slow,
            keep_going: self.keep_going || switch("KEEP_GOING", context)?,
            jobs,
            rng_seed: setting(self.rng_seed, "RNG_SEED", context)?.unwrap_or(1),
            timeout_scale,
            ..Options::default()
        })
    }
}

/// Value of a flag, or else of the variable `PEERPROOF_<NAME>`.
///
/// # Errors
/// Fails if the variable has an invalid value.
pub(crate) fn setting<T: FromStr>(flag: Option<T>, name: &str, context: &Context) -> Result<Option<T>, Stop> {
    match (flag, context.setting(name)) {
        (Some(value), _) => Ok(Some(value)),
        (None, None) => Ok(None),
        (None, Some(text)) => text.parse().map(Some).map_err(|_| {
            Stop::usage(format!("the variable PEERPROOF_{name} has the invalid value {text:?}"))
        }),
    }
}

/// Value of a variable that is `1` or `0`.
///
/// # Errors
/// Fails for another value.
pub(crate) fn switch(name: &str, context: &Context) -> Result<bool, Stop> {
    match context.setting(name) {
        None | Some("0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(other) => {
            Err(Stop::usage(format!("the variable PEERPROOF_{name} is {other:?}; it must be 1 or 0")))
        }
    }
}

/// Time from a flag, or else from the variable `PEERPROOF_<NAME>`.
///
/// # Errors
/// Fails for an invalid time, see [`duration`].
pub(crate) fn time(flag: Option<&str>, name: &str, context: &Context) -> Result<Option<Duration>, Stop> {
    let text = flag.or_else(|| context.setting(name));
    Ok(text.map(duration).transpose()?)
}

/// Output: formats, files and folders.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Format of the results; `ndjson` prints the lines of the results file.
    #[arg(long, value_name = "FORM")]
    pub format: Option<Format>,
    /// Also write reports: results=FILE, junit=FILE, html=FILE, sarif=FILE, md=FILE, verdicts=FILE; `github` writes
    /// annotations and a step summary in GitHub Actions.
    #[arg(long, value_name = "FORM=FILE", value_delimiter = ',')]
    pub report: Vec<String>,
    /// Folder for results.ndjson and reproducers [default: peerproof-out].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Level of detail of the console.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct DetailArgs {
    /// List all checks that a cause made fail.
    #[arg(long, short)]
    pub verbose: bool,
    /// After the causes, show every failed check with its conversation and findings.
    #[arg(long)]
    pub all: bool,
}

impl DetailArgs {
    /// Level of detail from both flags.
    pub(crate) fn level(&self) -> Detail {
        match (self.all, self.verbose) {
            (true, _) => Detail::Checks,
            (false, true) => Detail::Seen,
            (false, false) => Detail::Causes,
        }
    }
}

/// Format of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text for people, with colours and a progress line on a terminal.
    #[default]
    Pretty,
    /// Text for people, without colours and progress line.
    Plain,
    /// Newline-delimited JSON.
    Ndjson,
}

impl FromStr for Format {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        <Self as clap::ValueEnum>::from_str(word, false).map_err(|_| ())
    }
}

/// Word of `--report` without a file.
const GITHUB: &str = "github";

/// Requested report files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reports {
    /// File of `results=`.
    pub results: Option<PathBuf>,
    /// Forms to render from the results, with their files.
    pub rendered: Vec<(Form, PathBuf)>,
    /// Set for annotations and a step summary for GitHub Actions.
    pub github: bool,
}

impl OutputArgs {
    /// Format on the console.
    ///
    /// # Errors
    /// Fails if the variable `PEERPROOF_FORMAT` is invalid.
    pub(crate) fn form(&self, context: &Context) -> Result<Format, Stop> {
        Ok(setting(self.format, "FORMAT", context)?.unwrap_or_default())
    }

    /// Folder for results and reproducers.
    pub(crate) fn folder(&self, context: &Context) -> PathBuf {
        let named = self.out.clone().or_else(|| context.setting("OUT").map(PathBuf::from));
        named.unwrap_or_else(|| PathBuf::from("peerproof-out"))
    }

    /// Report files from `--report`.
    ///
    /// # Errors
    /// Fails if a form is unknown or lacks a file.
    pub(crate) fn reports(&self) -> Result<Reports, Stop> {
        let mut reports = Reports::default();
        for part in &self.report {
            if part == GITHUB {
                reports.github = true;
                continue;
            }
            let Some((form, file)) = part.split_once('=').filter(|(_, file)| !file.is_empty()) else {
                return Err(Stop::usage(format!("--report takes FORM=FILE, not {part:?}")));
            };
            let file = PathBuf::from(file);
            if form == "results" {
                reports.results = Some(file);
            } else if let Some(form) = Form::ALL.into_iter().find(|known| known.word() == form) {
                reports.rendered.push((form, file));
            } else {
                let words = || ["results", GITHUB].into_iter().chain(Form::ALL.map(Form::word));
                let forms = words().collect::<Vec<_>>().join(", ");
                let known = then(&did_you_mean(form, words()), &format!("the reports are: {forms}"));
                return Err(Stop::usage(format!("unknown report {form:?}{known}")));
            }
        }
        Ok(reports)
    }
}

/// Parses `10m`, `90s`, `250ms`, `1h` or a bare number of seconds.
///
/// # Errors
/// Fails for other texts.
pub(crate) fn duration(text: &str) -> Result<Duration, Misconfigured> {
    let no_time = || format!("{text:?} is not a time; write it as 250ms, 90s, 10m or 1h");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(no_time().into()),
    };
    let number: f64 = digits.parse().map_err(|_| no_time())?;
    let time = Duration::try_from_secs_f64(number * seconds);
    Ok(time.map_err(|error| format!("{text:?} is not a time: {error}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("20"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        for bad in ["", "m", "-1s", "10y", "1e400"] {
            assert!(duration(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn reports_are_named_with_files() {
        let args = |text: &str| OutputArgs { report: vec![text.to_owned()], ..OutputArgs::default() };
        let junit = (Form::Junit, PathBuf::from("a.xml"));
        assert_eq!(args("junit=a.xml").reports().unwrap().rendered, [junit]);
        assert!(args("juint=a").reports().unwrap_err().message.contains("did you mean \"junit\"?"));
        assert!(args("junit").reports().is_err());
        assert!(args("github").reports().unwrap().github);
    }
}
