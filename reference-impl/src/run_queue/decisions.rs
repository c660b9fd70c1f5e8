//! Decisions of workers and writers.

use std::fmt::Debug;
use std::net::IpAddr;

use super::Config;
use super::choices::Choices;
use super::disk::{Entry, Kind, Place};
use crate::json::{Policy, Value, write_str, write_value};
use crate::machine::ChildExit;
use crate::refusal::Refusal;
use crate::run_log::choices::UnknownMode;
use crate::run_log::{self, RunRequest};

/// Longest file name in bytes.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// Treatment of an inbox entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treat {
    /// Run it as a job.
    Run,
    /// Leave it alone.
    Leave,
    /// Move it to `failed/` unread.
    Fail,
}

/// Decisions of workers and writers. The default methods are correct; mutants override them.
pub trait Decisions: Debug + Send {
    /// Treatment of an inbox entry.
    fn treats(&self, entry: &Entry, choices: &Choices) -> Treat {
        let (stem, suffix) = split(&entry.name);
        if suffix.is_empty() {
            return Treat::Leave;
        }
        let open = [
            (stem.first().is_none_or(|first| *first == b'.'), choices.dot_name),
            (suffix != b".json", choices.upper_case_suffix),
            (std::str::from_utf8(&entry.name).is_err(), choices.not_utf8_name),
            (entry.kind == Kind::Link, choices.symlink),
            (matches!(entry.kind, Kind::Folder | Kind::Other), choices.special_file),
        ];
        let says = |treat| open.iter().any(|(applies, chosen)| *applies && *chosen == treat);
        if says(Treat::Leave) {
            Treat::Leave
        } else if says(Treat::Fail) {
            Treat::Fail
        } else {
            Treat::Run
        }
    }

    /// Reads a job.
    ///
    /// # Errors
    /// One sentence that says why it is malformed.
    fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
        read(text, config)
    }

    /// True if a program with this exit has succeeded.
    fn succeeded(&self, exit: ChildExit) -> bool {
        exit == ChildExit::Code(0)
    }

    /// Bytes to store for a job that was sent as `text`.
    fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
        stored(text, config)
    }

    /// Variant of `name` that contains `part`.
    fn renamed(&self, name: &[u8], part: &str) -> Vec<u8> {
        let (stem, suffix) = split(name);
        let kept = stem.len().min(NAME_BYTES_MAX - part.len() - suffix.len());
        [stem.get(..kept).unwrap_or_default(), part.as_bytes(), suffix].concat()
    }

    /// Job in the input of the enqueuing tool.
    ///
    /// # Errors
    /// One sentence: it holds no job.
    fn request(&self, input: &Value) -> Result<Vec<u8>, Refusal> {
        request(input)
    }

    /// Answer of a writer for a stored job.
    fn told(&self, name: &str) -> String {
        told(name)
    }

    /// Place of a source file below the source folder.
    ///
    /// # Errors
    /// One sentence: the path leads outside.
    fn source(&self, path: &str, choices: &Choices) -> Result<Place, Refusal> {
        source(path, choices)
    }

    /// Text of a source file.
    ///
    /// # Errors
    /// One sentence: the text is missing.
    fn content(&self, input: &Value) -> Result<String, Refusal> {
        let content = input.get("content").and_then(Value::as_str);
        content.map(str::to_owned).ok_or_else(|| "content must be a string".into())
    }

    /// True if a path to a source file may lead through this kind of file; links are forbidden.
    fn passes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Missing | Kind::Folder)
    }

    /// True if this is a valid name of a tool.
    fn is_plain(&self, name: &str) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (1..=64).contains(&name.len()) && name.bytes().all(is_word)
    }

    /// True if a program has the digest that was recorded when it was compiled.
    fn is_made(&self, noted: Option<&str>, is: Option<&str>) -> bool {
        noted.is_some() && noted == is
    }

    /// True if an HTTP request bears the token.
    fn is_authorized(&self, authorization: Option<&str>, token: &str) -> bool {
        super::token_matches(authorization, token)
    }

    /// True if an address is reachable only from this machine, and so needs no token.
    fn is_near(&self, address: IpAddr) -> bool {
        address.is_loopback()
    }
}

/// The correct decisions.
#[derive(Debug, Clone, Copy)]
pub struct Careful;

impl Decisions for Careful {}

/// Splits off the suffix `.json`, in any letter case. The suffix is empty if there is none.
pub(super) fn split(name: &[u8]) -> (&[u8], &[u8]) {
    let at = name.len().saturating_sub(b".json".len());
    let (stem, suffix) = name.split_at(at);
    if suffix.eq_ignore_ascii_case(b".json") { (stem, suffix) } else { (name, b"") }
}

pub(super) fn read(text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
    let Choices { duplicate_keys, lone_surrogates, big_integers, goal_id_with_bar, .. } = config.choices;
    let mut as_runner = run_log::Config::new("");
    as_runner.choices = run_log::Choices {
        duplicate_keys,
        lone_surrogates,
        big_integers,
        goal_id_with_bar,
        control_mode_unknown: UnknownMode::Default,
        ..run_log::Choices::default()
    };
    as_runner.limits = config.limits.clone();
    RunRequest::read(text, &as_runner)
}

fn request(input: &Value) -> Result<Vec<u8>, Refusal> {
    match input.get("request_json") {
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(request @ Value::Object(_)) => {
            let mut text = Vec::new();
            write_value(&mut text, request);
            Ok(text)
        }
        Some(_) => Err("request_json must be an object or a string that holds one".into()),
        None => Err("request_json is missing".into()),
    }
}

fn told(name: &str) -> String {
    let mut out = b"{\"queued\":".to_vec();
    write_str(&mut out, name);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

/// The text itself if it is unambiguous, else its parsed value.
pub(super) fn stored(text: &[u8], config: &Config) -> Vec<u8> {
    let policy = config.choices.policy();
    match Value::parse(text, config.limits.nesting_max, &policy) {
        Ok(value) if policy != Policy::default() => {
            let mut out = Vec::new();
            write_value(&mut out, &value);
            out
        }
        _ => text.to_vec(),
    }
}

fn source(path: &str, choices: &Choices) -> Result<Place, Refusal> {
    if path.starts_with('/') || path.contains('\0') {
        return Err("path must be relative and without U+0000".into());
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "." => {}
            "" => return Err("path names no file".into()),
            ".." => {
                names.pop().ok_or("path leaves the folder of sources")?;
                choices.write_dotdot_inside.allow("path has .. in it")?;
            }
            name => names.push(name),
        }
    }
    if names.len() > 1 {
        choices.write_subfolder.allow("path names a folder")?;
    }
    if names.is_empty() { Err("path names no file".into()) } else { Ok(names.join("/").into_bytes()) }
}
