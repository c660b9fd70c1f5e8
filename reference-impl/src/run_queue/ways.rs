//! The decisions of workers and writers.

use std::fmt::Debug;
use std::net::IpAddr;

use super::Config;
use super::choices::Choices;
use super::disk::{Entry, Kind, Place};
use crate::json::{Policy, Value, write_str, write_value};
use crate::machine::ChildExit;
use crate::run_log::choices::UnknownMode;
use crate::run_log::{self, RunRequest};

/// Longest name of a file.
pub(super) const NAME_BYTES_MAX: usize = 255;

/// What a worker does with an entry of the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treat {
    /// It is a job.
    Run,
    /// It is not touched.
    Leave,
    /// It goes to `failed/` unread.
    Fail,
}

/// The decisions; what is provided is right.
pub trait Ways: Debug + Send {
    /// What to do with an entry of the inbox.
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
    /// One sentence: it is malformed.
    fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, String> {
        read(text, config)
    }

    /// Whether a program that ended so did its job.
    fn succeeded(&self, exit: ChildExit) -> bool {
        exit == ChildExit::Code(0)
    }

    /// The bytes of a file for a job that came as `text`.
    fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
        stored(text, config)
    }

    /// A name like `name` with a part of its own.
    fn renamed(&self, name: &[u8], part: &str) -> Vec<u8> {
        let (stem, suffix) = split(name);
        let kept = stem.len().min(NAME_BYTES_MAX - part.len() - suffix.len());
        [stem.get(..kept).unwrap_or_default(), part.as_bytes(), suffix].concat()
    }

    /// The job that the input of the tool that enqueues holds.
    ///
    /// # Errors
    /// One sentence: it holds none.
    fn request(&self, input: &Value) -> Result<Vec<u8>, String> {
        request(input)
    }

    /// What a writer says of a job whose file is called so.
    fn told(&self, name: &str) -> String {
        told(name)
    }

    /// The place of a source file below the folder of sources.
    ///
    /// # Errors
    /// One sentence: the path leads elsewhere.
    fn source(&self, path: &str, choices: &Choices) -> Result<Place, String> {
        source(path, choices)
    }

    /// The text of a source file.
    ///
    /// # Errors
    /// One sentence: there is none.
    fn content(&self, input: &Value) -> Result<String, String> {
        let content = input.get("content").and_then(Value::as_str);
        content.map(str::to_owned).ok_or_else(|| "content must be a string".to_owned())
    }

    /// Whether what stands in the way of a source file is let be: links are not.
    fn passes(&self, kind: Kind) -> bool {
        matches!(kind, Kind::Missing | Kind::Folder)
    }

    /// Whether a tool may be called so.
    fn is_plain(&self, name: &str) -> bool {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        (1..=64).contains(&name.len()) && name.bytes().all(is_word)
    }

    /// Whether a program is what was compiled, by the digest that was noted then and the one that it has.
    fn is_made(&self, noted: Option<&str>, is: Option<&str>) -> bool {
        noted.is_some() && noted == is
    }

    /// Whether a request over HTTP bears the token.
    fn is_authorized(&self, authorization: Option<&str>, token: &str) -> bool {
        super::token_matches(authorization, token)
    }

    /// Whether an address is reached from this machine alone, and needs no token.
    fn is_near(&self, address: IpAddr) -> bool {
        address.is_loopback()
    }
}

/// The right decisions.
#[derive(Debug, Clone, Copy)]
pub struct Careful;

impl Ways for Careful {}

/// The part of a name before `.json`, in any case, and that; all of it where it has none.
pub(super) fn split(name: &[u8]) -> (&[u8], &[u8]) {
    let at = name.len().saturating_sub(b".json".len());
    let (stem, suffix) = name.split_at(at);
    if suffix.eq_ignore_ascii_case(b".json") { (stem, suffix) } else { (name, b"") }
}

pub(super) fn read(text: &[u8], config: &Config) -> Result<RunRequest, String> {
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

fn request(input: &Value) -> Result<Vec<u8>, String> {
    match input.get("request_json") {
        Some(Value::String(text)) => Ok(text.as_bytes().to_vec()),
        Some(request @ Value::Object(_)) => {
            let mut text = Vec::new();
            write_value(&mut text, request);
            Ok(text)
        }
        Some(_) => Err("request_json must be an object or a string that holds one".to_owned()),
        None => Err("request_json is missing".to_owned()),
    }
}

fn told(name: &str) -> String {
    let mut out = b"{\"queued\":".to_vec();
    write_str(&mut out, name);
    out.push(b'}');
    String::from_utf8_lossy(&out).into_owned()
}

/// The text itself where it means the same to every reader, else what was read.
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

fn source(path: &str, choices: &Choices) -> Result<Place, String> {
    if path.starts_with('/') || path.contains('\0') {
        return Err("path must be relative and without U+0000".to_owned());
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "." => {}
            "" => return Err("path names no file".to_owned()),
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
    if names.is_empty() { Err("path names no file".to_owned()) } else { Ok(names.join("/").into_bytes()) }
}
