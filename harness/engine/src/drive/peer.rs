//! Peers under test, and how to start one as a child process or inside this process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::data::blame::{Misconfigured, Unprepared};
use crate::drive::machine::Machine;
use serde_json::Value;

use crate::contract::boundary::{Boundary, ConfigKey};
use crate::data::budget::Budget;
use crate::data::carriage::{HTTP, READY};
use crate::data::facts::Facts;
use crate::data::pace::Pace;
use crate::data::plan::Session;
use crate::data::secrets::{is_secret_name, secrets_of_argv};
use crate::data::transcript::Secrets;
use crate::drive::fixture::spawn_guard;
use crate::drive::transport::child::{ChildConnection, ChildSpec, guardian};
use crate::drive::transport::http;
use crate::drive::transport::in_process::InProcessConnection;
use crate::drive::transport::{Connection, Log};

pub(crate) mod launchers;
mod program;

pub(crate) use program::find_program;
use program::is_script;

/// Value of a placeholder that stands for a free port, for a server that is not spoken to.
pub const FREE_PORT: &str = "<free>";

/// Variables of the caller, whose environment is `variables`, that each process gets: `PATH` and `HOME`. A process with
/// a home of its own gets the folders of launchers instead of `HOME`.
pub fn inherited(boundary: &dyn Boundary, variables: &BTreeMap<String, OsString>) -> Vec<(String, OsString)> {
    let given = |name: &str| Some((name.to_owned(), variables.get(name)?.clone()));
    if boundary.description().runs_apart {
        return given(PATH).into_iter().chain(launchers::folders(variables)).collect();
    }
    [PATH, HOME].into_iter().filter_map(given).collect()
}

/// Environment variable with the folder in which programs keep files.
const HOME: &str = "HOME";

/// Environment variable with the folders of programs.
const PATH: &str = "PATH";
/// Folders of programs for a peer without `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Makes an in-process peer from arguments and environment.
pub type MakeMachine = Arc<dyn Fn(&[String], &[(String, String)]) -> Option<Box<dyn Machine>> + Send + Sync>;

/// Origin of a peer's processes.
#[derive(Clone)]
pub enum Origin {
    /// Child processes.
    Process {
        /// Inherited environment: `PATH`, `HOME` and the like. Configured variables override it.
        base_env: Vec<(String, OsString)>,
        /// Working directory.
        current_dir: Option<PathBuf>,
        /// Processors of the children; empty for those of the harness.
        cpus: Vec<usize>,
    },
    /// Machines inside this process, with a virtual clock.
    InProcess(MakeMachine),
}

/// Peer under test.
#[derive(Clone)]
pub struct Peer {
    /// Name in reports.
    pub name: String,
    /// Boundary of the peer.
    pub boundary: &'static dyn Boundary,
    /// Command lines by name; each session fills in their `{placeholder}`s.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Configured environment.
    pub env: Vec<(String, String)>,
    /// Facts about the peer.
    pub facts: Facts,
    /// Set if the configuration says which features it claims.
    pub features_given: bool,
    /// Process or machine.
    pub origin: Origin,
    /// Measured pace; deadlines follow from it.
    pub pace: Arc<Pace>,
}

/// Shows only the name, because environment and command lines may hold secrets.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Peer {
    /// True if its sessions are real processes.
    pub fn is_process(&self) -> bool {
        matches!(self.origin, Origin::Process { .. })
    }

    /// Secrets in its environment and command lines, recognised by name.
    pub fn secrets(&self) -> Secrets {
        let mut secrets = Secrets::default();
        let inherited = match &self.origin {
            Origin::Process { base_env, .. } => base_env.as_slice(),
            Origin::InProcess(_) => &[],
        };
        let inherited = inherited.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str()?)));
        let configured = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (_, value) in inherited.chain(configured).filter(|(name, _)| is_secret_name(name)) {
            secrets.add_configured(value);
        }
        for value in self.commands.values().flat_map(|argv| secrets_of_argv(argv)) {
            secrets.add_configured(value);
        }
        secrets
    }

    /// Folders in which its processes look for programs, in the form of `PATH`.
    pub(crate) fn search_path(&self) -> String {
        let configured = self.env.iter().rev().find(|(name, _)| name == PATH).map(|(_, value)| value.clone());
        let inherited = || match &self.origin {
            Origin::Process { base_env, .. } => {
                let path = base_env.iter().rev().find(|(name, _)| name == PATH);
                path.and_then(|(_, value)| value.to_str()).map(str::to_owned)
            }
            Origin::InProcess(_) => None,
        };
        let path = configured.or_else(inherited).filter(|path| !path.is_empty());
        path.unwrap_or_else(|| USUAL_PATH.to_owned())
    }

    /// Command line of one session.
    ///
    /// # Errors
    /// Fails for an unknown command or a placeholder without a value.
    pub fn command_line(&self, session: &Session) -> Result<Vec<String>, Misconfigured> {
        let template = self
            .commands
            .get(&session.command)
            .ok_or_else(|| format!("the peer has no command {:?}", session.command))?;
        let mut argv = Vec::with_capacity(template.len() + 1);
        for part in template.iter().chain(&session.arguments) {
            argv.push(fill(part, &session.placeholders)?);
        }
        Ok(argv)
    }

    /// Fills command-line placeholders in a configured variable; `None` if this session lacks a value. Other braces
    /// stay.
    fn filled(&self, value: &str, session: &Session) -> Option<String> {
        let mut filled = value.to_owned();
        for placeholder in self.boundary.description().config_keys.iter().flat_map(ConfigKey::placeholders) {
            if filled.contains(placeholder.text) {
                filled = filled.replace(placeholder.text, session.placeholders.get(placeholder.name())?);
            }
        }
        Some(filled)
    }

    /// True if a session needs an empty working folder.
    pub(crate) fn needs_folder(&self, session: &Session) -> bool {
        let is_free = matches!(&self.origin, Origin::Process { current_dir: None, .. });
        is_free && session.folder.is_none() && self.boundary.description().runs_apart
    }

    /// Variables of a process that runs apart, with `home` as its home.
    pub fn own_env(&self, home: impl Into<OsString>) -> Vec<(&'static str, OsString)> {
        if !self.boundary.description().runs_apart {
            return Vec::new();
        }
        vec![("CI", "1".into()), ("NO_COLOR", "1".into()), (HOME, home.into())]
    }

    /// Specification of a session's process. `temp_dir` becomes its `TMPDIR`, unless the session sets one, and is
    /// watched.
    ///
    /// # Errors
    /// Fails for an unknown command, a placeholder without a value, or a peer that is not a process.
    pub(crate) fn child_spec(&self, session: &Session, temp_dir: &Path) -> Result<ChildSpec, Misconfigured> {
        let Origin::Process { base_env, current_dir, cpus } = &self.origin else {
            return Err("this peer is not a process".into());
        };
        let mut env: Vec<(OsString, OsString)> =
            base_env.iter().map(|(name, value)| (name.into(), value.clone())).collect();
        let folder = session.folder.as_ref().map(Path::new).or(current_dir.as_deref());
        let folder = std::path::absolute(folder.unwrap_or(Path::new("."))).unwrap_or_default();
        // Variables that are passed through win.
        env.splice(..0, self.own_env(folder).into_iter().map(|(name, value)| (name.into(), value)));
        for (name, value) in &self.env {
            env.extend(self.filled(value, session).map(|value| (name.into(), value.into())));
        }
        env.retain(|(name, _)| session.without.iter().all(|gone| *name != **gone) && *name != *"TMPDIR");
        for (name, value) in &session.env {
            env.push((name.into(), value.into()));
        }
        let mut argv: Vec<OsString> = self.command_line(session)?.into_iter().map(OsString::from).collect();
        if session.command == HTTP && argv.first().is_some_and(is_url) {
            argv.remove(0);
        }
        if session.env.contains_key(PATH) && !argv.is_empty() {
            // A folder that the conversation adds to `PATH` is for the peer to search, and must not replace the peer
            // itself.
            let words: Vec<String> = argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let path = self.search_path();
            let program = find_program(&words, Some(path.as_ref()), current_dir.as_deref())?;
            if is_script(&program) {
                return Err(format!(
                    "{} is a script, and its interpreter may depend on PATH; put the interpreter itself \
                     first",
                    program.display()
                )
                .into());
            }
            argv[0] = program.into_os_string();
        }
        let mut current_dir = current_dir.clone();
        if let Some(folder) = &session.folder {
            let configured = current_dir.replace(folder.into()).unwrap_or_default();
            argv.iter_mut().enumerate().for_each(|(at, word)| stays(word, at > 0, &configured));
        }
        let mut spec = ChildSpec::new(argv, temp_dir.to_owned(), guardian::mark());
        spec.env = env;
        spec.current_dir = current_dir;
        spec.cpus.clone_from(cpus);
        spec.limits = session.limits;
        Ok(spec)
    }

    /// Starts one session. `temp_dir` becomes its `TMPDIR` and is watched; `exe` is the harness binary.
    ///
    /// # Errors
    /// Names the reason, by blame.
    pub fn open(
        &self,
        session: &Session,
        temp_dir: &Path,
        exe: &Path,
        budget: &Budget,
        log: &mut dyn Log,
    ) -> Result<Box<dyn Connection>, Unprepared> {
        match &self.origin {
            // A server with a `port` placeholder is not spoken to and may not listen at all.
            Origin::Process { .. }
                if session.command == HTTP && !session.placeholders.contains_key("port") =>
            {
                self.open_http(session, temp_dir, budget, log)
            }
            Origin::Process { .. } => {
                let mut session = session.clone();
                let is_free = session.placeholders.get("port").is_some_and(|port| port == FREE_PORT);
                // The port is reserved until the process runs.
                let claim = if is_free { Some(http::free_address()?) } else { None };
                if let Some(claim) = &claim {
                    let free = claim.get().port().to_string();
                    let told = session.placeholders.values_mut();
                    told.for_each(|value| *value = value.replace(FREE_PORT, &free));
                }
                let mut spec = self.child_spec(&session, temp_dir)?;
                spec.shim = Some(exe.to_owned());
                let _guard = spawn_guard();
                let connection = ChildConnection::spawn(&spec, budget, log)
                    .map_err(|error| Misconfigured::from(error.to_string()))?;
                drop(claim);
                Ok(Box::new(connection))
            }
            Origin::InProcess(make) => {
                if session.command == HTTP {
                    return Err(Misconfigured::from("the peer in this process has no listener").into());
                }
                let argv = self.command_line(session)?;
                let mut env = self.env.clone();
                env.extend(session.env.iter().map(|(name, value)| (name.clone(), value.clone())));
                let machine = make(&argv, &env)
                    .ok_or_else(|| Misconfigured::from("this peer cannot be played in this process"))?;
                Ok(Box::new(InProcessConnection::new(machine, budget)))
            }
        }
    }
}

/// Makes a word of a command absolute if it names a file in `folder`. A program without a slash is left for `PATH`.
fn stays(word: &mut OsString, is_argument: bool, folder: &Path) {
    let file = std::path::absolute(folder.join(&word)).unwrap_or_default();
    if (is_argument || word.as_encoded_bytes().contains(&b'/')) && !word.is_empty() && file.is_file() {
        *word = file.into_os_string();
    }
}

impl Peer {
    /// Starts a server, or connects to one that already listens.
    fn open_http(
        &self,
        session: &Session,
        temp_dir: &Path,
        budget: &Budget,
        log: &mut dyn Log,
    ) -> Result<Box<dyn Connection>, Unprepared> {
        let mut fault = String::new();
        let ready = self.commands.get(READY).and_then(|told| http::ReadySign::of(told));
        for _ in 0..START_TRIES {
            let free = http::free_address()?;
            let address = free.get();
            let mut session = session.clone();
            session.placeholders.extend(http::placeholders(address));
            let argv = self.command_line(&session)?;
            let given = argv.first().filter(|word| word.starts_with(http::URL_PREFIX)).cloned();
            let runs_already = given.is_some() && argv.len() == 1;
            let child = if runs_already { None } else { Some(self.child_spec(&session, temp_dir)?) };
            let path = self.boundary.description().http_path;
            let url = given.unwrap_or_else(|| format!("{}{address}{path}", http::URL_PREFIX));
            match http::start(&http::ServerSpec { url, child, ready: ready.clone() }, budget, log) {
                Ok(connection) => return Ok(Box::new(connection)),
                // Another process may have taken the port meanwhile.
                Err(http::StartFault::Ended(sentence)) => fault = sentence,
                Err(other) => return Err(Misconfigured::from(other.sentence()).into()),
            }
        }
        Err(Misconfigured::from(fault).into())
    }
}

/// Maximum number of tries to start a server, each on a new port.
const START_TRIES: u32 = 3;

fn is_url(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.starts_with(http::URL_PREFIX))
}

/// Fills `{name}` from `values`; `{{` and `}}` stand for braces.
///
/// # Errors
/// Names the placeholder without a value, or the unclosed brace.
pub fn fill(template: &str, values: &BTreeMap<String, String>) -> Result<String, Misconfigured> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        if tail.starts_with("{{") || tail.starts_with("}}") {
            out.push_str(&tail[..1]);
            rest = &tail[2..];
        } else if let Some(body) = tail.strip_prefix('{') {
            let end =
                body.find('}').ok_or_else(|| format!("{template:?} has a brace that is never closed"))?;
            let name = &body[..end];
            let value = values
                .get(name)
                .ok_or_else(|| format!("the placeholder {{{name}}} in {template:?} has no value here"))?;
            out.push_str(value);
            rest = &body[end + 1..];
        } else {
            out.push('}');
            rest = &tail[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Fills the placeholders of a template. A string that is just one placeholder becomes the value itself, with its type.
///
/// # Errors
/// As [`fill`].
pub fn fill_template(template: &Value, values: &[(&str, Value)]) -> Result<Value, Misconfigured> {
    Ok(match template {
        Value::String(text) => {
            let whole = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            if let Some((_, value)) = values.iter().find(|(name, _)| whole == Some(*name)) {
                return Ok(value.clone());
            }
            let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let texts = values.iter().map(|(name, value)| ((*name).to_owned(), plain(value))).collect();
            Value::String(fill(text, &texts)?)
        }
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill_template(item, values)).collect::<Result<_, _>>()?)
        }
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| Ok((name.clone(), fill_template(value, values)?)))
                .collect::<Result<_, Misconfigured>>()?,
        ),
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_placeholders_and_keeps_doubled_braces() {
        let values = BTreeMap::from([("aid".to_owned(), "AID.X".to_owned())]);
        assert_eq!(fill("--aid={aid}", &values).unwrap(), "--aid=AID.X");
        assert_eq!(fill("{{aid}}", &values).unwrap(), "{aid}");
        assert!(fill("{nope}", &values).unwrap_err().to_string().contains("nope"));
        assert!(fill("{aid", &values).is_err());
    }
}
