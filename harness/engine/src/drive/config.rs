//! `peerproof.toml`: the configuration of a peer under test.
//!
//! Everything is checked before a peer is started: an unknown key, a disallowed value or an invalid placeholder is an
//! error of one sentence that names the line and the remedy.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::contract::boundary::{Boundary, ConfigKey, MemberKind};
use crate::data::blame::Misconfigured;
use crate::data::carriage::{HTTP, READY};
use crate::data::clause::Side;
use crate::data::facts::Facts;
use crate::data::pace::Pace;
use crate::drive::peer::{MakeMachine, Origin, Peer, find_program, inherited};
use crate::drive::transport::http::URL_PREFIX;

mod command;
mod file;
pub mod json_schema;
mod vocabulary;

pub use file::TABLES;
pub use vocabulary::{keys, keys_of};

/// Name of the configuration file that is used by default if it exists.
pub const DEFAULT_FILE: &str = "peerproof.toml";

/// Name of the expectations file next to a configuration.
pub const DEFAULT_EXPECTATIONS: &str = "peerproof-expected.toml";

/// Configuration of a peer, from a file, flags or both.
#[derive(Clone)]
pub struct Config {
    /// File it was read from, as the user named it.
    pub file: Option<PathBuf>,
    /// Folder of the file; `None` without a file. The peer's default working directory.
    pub folder: Option<PathBuf>,
    /// Working directory of the peer, if configured.
    pub cwd: Option<PathBuf>,
    /// Name in reports.
    pub name: Option<String>,
    /// The contract.
    pub boundary: &'static dyn Boundary,
    /// Side, if configured.
    pub side: Option<Side>,
    /// Command line by command name.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Readiness of the server, in the form of [`READY`]. `None` means that it accepts a connection.
    pub ready: Option<Vec<String>>,
    /// Environment variables of the peer.
    pub env: BTreeMap<String, String>,
    /// Names of variables passed through from the harness.
    pub pass_env: Vec<String>,
    /// Claimed features; `None` without a `[features]` table, so that they are probed.
    pub features: Option<BTreeMap<String, Value>>,
    /// Tools that play the conformance roles.
    pub roles: BTreeMap<String, Value>,
    /// Pinned choices.
    pub choices: BTreeMap<String, String>,
    /// Limits that the peer sets.
    pub limits: BTreeMap<String, u64>,
    /// Requirement set of the peer; `None` for the boundary's default.
    pub requirements: Option<String>,
}

impl Config {
    /// Empty configuration for a boundary.
    pub fn new(boundary: &'static dyn Boundary) -> Self {
        Self {
            file: None,
            folder: None,
            cwd: None,
            name: None,
            boundary,
            side: None,
            commands: BTreeMap::new(),
            ready: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            features: None,
            roles: BTreeMap::new(),
            choices: BTreeMap::new(),
            limits: BTreeMap::new(),
            requirements: None,
        }
    }

    /// Reads the configuration file of a peer of one of `boundaries`.
    ///
    /// # Errors
    /// One sentence that begins with the file's name, and the line if known.
    pub fn load(path: &Path, boundaries: &[&'static dyn Boundary]) -> Result<Self, Misconfigured> {
        file::load(path, boundaries)
    }

    /// Parses the text of a file called `name` in `folder`.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(
        text: &str,
        name: &str,
        folder: &Path,
        boundaries: &[&'static dyn Boundary],
    ) -> Result<Self, Misconfigured> {
        file::parse(text, name, folder, boundaries)
    }

    /// Sets a command.
    ///
    /// # Errors
    /// Fails for an unknown command, an empty command line or wrong placeholders.
    pub fn set_command(&mut self, name: &str, argv: Vec<String>) -> Result<(), Misconfigured> {
        let name = self.boundary.command_name(name, self.side, &argv);
        let key = vocabulary::find(self.boundary, "peer", &name)?;
        let argv = command::check(&key, self.placed(argv)?)?;
        self.commands.insert(name, argv);
        Ok(())
    }

    /// Fills in `{here}`, the folder of the file. Without a file it stays.
    fn placed(&self, argv: Vec<String>) -> Result<Vec<String>, Misconfigured> {
        let Some(folder) = &self.folder else { return Ok(argv) };
        let folder = std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let Some(folder) = folder.to_str() else { return Ok(argv) };
        let folder = folder.replace('{', "{{").replace('}', "}}");
        // Doubled braces stand for braces.
        let place = |word: String| {
            word.split("{{").map(|part| part.replace("{here}", &folder)).collect::<Vec<_>>().join("{{")
        };
        Ok(argv.into_iter().map(place).collect())
    }

    /// Replaces all commands by the boundary's main command.
    ///
    /// # Errors
    /// As [`Config::set_command`].
    pub fn set_main_command(&mut self, argv: Vec<String>) -> Result<(), Misconfigured> {
        let (name, side) = self.boundary.main_command(&argv);
        self.commands.clear();
        self.side = Some(side);
        self.set_command(name, argv)
    }

    /// Claims or denies a feature.
    ///
    /// # Errors
    /// Fails for an unknown feature or a value that it cannot have.
    pub fn set_feature(&mut self, name: &str, value: Value) -> Result<(), Misconfigured> {
        let key = vocabulary::find(self.boundary, "features", name)?;
        match key.is_setting() {
            true => self.boundary.check_setting(name, &value)?,
            false => vocabulary::check_feature(&key, &value)?,
        }
        self.features.get_or_insert_default().insert(name.to_owned(), value);
        Ok(())
    }

    /// Maps a role.
    ///
    /// # Errors
    /// Fails for an unknown role, or if a member of `value` is missing, unknown or of a wrong type.
    pub fn set_role(&mut self, name: &str, value: Value) -> Result<(), Misconfigured> {
        let key = vocabulary::find(self.boundary, "roles", name)?;
        vocabulary::check_members(&key, &value)?;
        self.roles.insert(name.to_owned(), value);
        Ok(())
    }

    /// Pins a choice.
    ///
    /// # Errors
    /// Fails for an unknown choice or a value that it cannot have.
    pub fn set_choice(&mut self, name: &str, value: &str) -> Result<(), Misconfigured> {
        let key = vocabulary::find(self.boundary, "choices", name)?;
        vocabulary::check_choice(&key, value)?;
        self.choices.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// Sets a limit.
    ///
    /// # Errors
    /// Fails for an unknown limit or a value below its minimum.
    pub fn set_limit(&mut self, name: &str, value: u64) -> Result<(), Misconfigured> {
        let key = vocabulary::find(self.boundary, "limits", name)?;
        vocabulary::check_limit(&key, value)?;
        self.limits.insert(name.to_owned(), value);
        Ok(())
    }

    /// Side of the peer, inferred from its commands.
    ///
    /// # Errors
    /// Fails if no command is configured, or if the commands belong to different sides or not to the configured one.
    pub fn side(&self) -> Result<Side, Misconfigured> {
        let sides = self.boundary.description().commands;
        let named =
            |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        let Some(argv) = self.commands.values().next() else {
            let all: Vec<String> =
                sides.iter().map(|(side, names)| format!("{} ({})", named(names), side.word())).collect();
            return Err(format!("no command is configured: give {}", all.join(", or ")).into());
        };
        let fitting: Vec<Side> = sides
            .iter()
            .filter(|(_, names)| self.commands.keys().all(|name| names.contains(&name.as_str())))
            .map(|(side, _)| *side)
            .collect();
        let inferred = match fitting.as_slice() {
            [] => {
                return Err("the commands belong to different sides; one configuration is one peer".into());
            }
            [side] => *side,
            _ => self.side.unwrap_or_else(|| self.boundary.main_command(argv).1),
        };
        match self.side {
            Some(side) if side != inferred => Err(format!(
                "side is {:?}, but {} is a command of the {}",
                side.word(),
                named(&self.commands.keys().map(String::as_str).collect::<Vec<_>>()),
                inferred.word()
            )
            .into()),
            _ => Ok(inferred),
        }
    }

    /// Makes the peer. From `variables`, the environment of the harness, the peer gets those of [`inherited`] and those
    /// named by `pass_env`.
    ///
    /// # Errors
    /// Fails without a command, or if a program cannot be started.
    pub fn peer(&self, variables: &BTreeMap<String, OsString>) -> Result<Peer, Misconfigured> {
        self.side()?;
        let mut base_env = inherited(self.boundary, variables);
        let passed = self.pass_env.iter();
        base_env.extend(passed.filter_map(|name| Some((name.clone(), variables.get(name)?.clone()))));
        let path = match self.env.get("PATH") {
            Some(path) => Some(OsString::from(path)),
            None => variables.get("PATH").cloned(),
        };
        let mut commands = self.commands.clone();
        for (name, whole) in &mut commands {
            // A command for HTTP may begin with a URL or consist of it.
            let addressed = name == HTTP && whole.first().is_some_and(|word| word.starts_with(URL_PREFIX));
            let Some(argv) = whole.get_mut(usize::from(addressed)..).filter(|argv| !argv.is_empty()) else {
                continue;
            };
            if let (Some(folder), Some(program)) = (&self.folder, argv.first_mut())
                && program.contains('/')
                && let Some(full) = folder.join(&*program).to_str()
            {
                *program = full.to_owned();
            }
            let key = vocabulary::find(self.boundary, "peer", name)?;
            command::check_environment(&key, argv, &self.env)?;
            find_program(argv, path.as_deref(), self.folder.as_deref())
                .map_err(|error| format!("the command `{name}` of the peer cannot be started: {error}"))?;
        }
        let current_dir = self.cwd.clone().or_else(|| self.folder.clone());
        let origin = Origin::Process { base_env, current_dir, cpus: Vec::new() };
        self.peer_from(origin, commands, variables)
    }

    /// Makes a peer from machines in this process. `make` receives the command lines that would otherwise be started.
    ///
    /// # Errors
    /// As [`Config::peer`].
    pub fn peer_in_process(
        &self,
        variables: &BTreeMap<String, OsString>,
        make: MakeMachine,
    ) -> Result<Peer, Misconfigured> {
        self.peer_from(Origin::InProcess(make), self.commands.clone(), variables)
    }

    fn peer_from(
        &self,
        origin: Origin,
        commands: BTreeMap<String, Vec<String>>,
        variables: &BTreeMap<String, OsString>,
    ) -> Result<Peer, Misconfigured> {
        let mut commands = commands;
        let side = self.side()?;
        if side == Side::Provider {
            vocabulary::refuse_untold(self.boundary, self.features.as_ref().unwrap_or(&BTreeMap::new()))?;
        }
        let mut facts = Facts::new(side);
        facts.commands.extend(commands.keys().cloned());
        facts.features = self.features.clone().unwrap_or_default();
        for (name, value) in &mut facts.features {
            let named = |error: Misconfigured| error.of(format_args!("the feature {name:?}"));
            self.fill_in(value, variables).map_err(named)?;
            self.read_in(name, value).map_err(named)?;
        }
        facts.roles.clone_from(&self.roles);
        facts.choices.clone_from(&self.choices);
        facts.limits.clone_from(&self.limits);
        facts.requirements = self.requirements.clone().unwrap_or_default();
        facts.shared =
            commands.get(HTTP).is_some_and(|argv| argv.len() == 1 && argv[0].starts_with(URL_PREFIX));
        let pace = Pace::default();
        if let Some(ms) = self.limits.get(ConfigKey::STARTUP_MS.name) {
            commands.keys().for_each(|command| pace.saw_start_up(command, Duration::from_millis(*ms)));
        }
        if let Some(ready) = self.ready.clone().filter(|_| commands.contains_key(HTTP)) {
            commands.insert(READY.to_owned(), ready);
        }
        Ok(Peer {
            name: self.shown_name(),
            boundary: self.boundary,
            commands,
            env: self.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            facts,
            features_given: self.features.is_some(),
            origin,
            pace: pace.into(),
        })
    }

    /// Replaces a `NAME_env` member by `NAME` with the value of that variable, from the peer's environment or ours.
    fn fill_in(
        &self,
        value: &mut Value,
        variables: &BTreeMap<String, OsString>,
    ) -> Result<(), Misconfigured> {
        let Value::Object(members) = value else { return Ok(()) };
        let names: Vec<String> = members.keys().filter(|name| name.ends_with("_env")).cloned().collect();
        for name in names {
            let variable = members.remove(&name);
            let variable = variable.as_ref().and_then(Value::as_str).unwrap_or_default();
            let ours = || variables.get(variable).and_then(|value| value.to_str()).map(str::to_owned);
            let held = self.env.get(variable).cloned().or_else(ours).filter(|held| !held.is_empty());
            let held = held.ok_or_else(|| {
                format!("the variable {variable}, which `{name}` names, is not set; export it first")
            })?;
            members.insert(name.trim_end_matches("_env").to_owned(), Value::from(held));
        }
        Ok(())
    }

    /// Reads the file that a feature names and adds its content as `text`.
    fn read_in(&self, feature: &str, value: &mut Value) -> Result<(), Misconfigured> {
        /// Longer files are cut.
        const BYTES_MAX: u64 = 1 << 20;
        let key = vocabulary::find(self.boundary, "features", feature)?;
        let file = key.members().iter().find(|member| member.kind == MemberKind::File);
        let (Some(member), Value::Object(members)) = (file, value) else { return Ok(()) };
        let Some(path) = members.get(member.name).and_then(Value::as_str) else { return Ok(()) };
        if members.contains_key("text") {
            return Ok(());
        }
        let path = self.folder.as_deref().unwrap_or(Path::new("")).join(path);
        let mut text = String::new();
        let read = File::open(&path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
        read.map_err(|error| format!("{}: {error}", path.display()))?;
        members.insert("text".to_owned(), Value::from(text));
        Ok(())
    }

    /// Configured name, or else the program's.
    fn shown_name(&self) -> String {
        let program = || {
            let argv = self.commands.values().next()?;
            // Names `python3 peer.py` by its second word, and `sh -c 'while …'` by its first.
            let words =
                argv.iter().filter(|word| !word.starts_with('-') && !word.contains(char::is_whitespace));
            let mut names = words.filter_map(|word| Path::new(word).file_name()?.to_str());
            let first = names.next()?;
            let interpreter = ["python", "node", "ruby", "perl", "java", "sh", "bash", "env"]
                .iter()
                .any(|known| first.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') == *known);
            Some(if interpreter { names.next().unwrap_or(first) } else { first }.to_owned())
        };
        self.name.clone().or_else(program).unwrap_or_else(|| "peer".to_owned())
    }
}

/// Description of a peer for the header of a results file. It still contains secrets.
pub fn describe(peer: &Peer) -> Value {
    let seen = peer.boundary.seen(&peer.facts);
    let mut described = json!({
        "name": peer.name,
        "boundary": peer.boundary.name(),
        "side": peer.facts.side,
        "commands": peer.commands,
        "env": peer.env.iter().cloned().collect::<BTreeMap<String, String>>(),
        "features": peer.facts.features,
        "features_given": peer.features_given,
        "roles": peer.facts.roles,
        "choices": peer.facts.choices,
        "limits": peer.facts.limits,
        "requirements": peer.facts.requirements,
    });
    if !seen.is_empty() {
        described["seen"] = json!(seen);
    }
    let libraries = peer.boundary.libraries(&peer.facts);
    if !libraries.is_empty() {
        described["libraries"] = json!(libraries);
    }
    described
}
