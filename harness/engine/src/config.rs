//! `peerproof.toml`: the configuration of a peer under test.
//!
//! Everything is checked before a peer is started: an unknown key, a value outside its set or a placeholder without
//! meaning is one sentence that says where it stands and what would be right.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::blame::Misconfigured;
use crate::boundary::{Boundary, ConfigKey};
use crate::carriage::{HTTP, READY};
use crate::clause::Side;
use crate::facts::Facts;
use crate::pace::Pace;
use crate::peer::{MakeMachine, Origin, Peer, find_program};
use crate::transport::http::URL_PREFIX;

mod command;
mod file;
pub mod json_schema;
mod vocabulary;

pub use file::TABLES;
pub use vocabulary::{Member, is_general, keys, keys_of, members};

/// Name of the file that is used where none is given and this one is there.
pub const DEFAULT_FILE: &str = "peerproof.toml";

/// Name of the expectations file beside a configuration.
pub const DEFAULT_EXPECTATIONS: &str = "peerproof-expected.toml";

/// What is configured about a peer: by a file, by flags, or by both.
#[derive(Clone)]
pub struct Config {
    /// The file it comes from, as the user named it.
    pub file: Option<PathBuf>,
    /// Working directory of the peer: the folder of the file; without a file that of the harness.
    pub folder: Option<PathBuf>,
    /// Working directory of the peer, where the configuration names one.
    pub cwd: Option<PathBuf>,
    /// Name for reports.
    pub name: Option<String>,
    /// The contract.
    pub boundary: &'static dyn Boundary,
    /// Side, where it is said.
    pub side: Option<Side>,
    /// argv by command name.
    pub commands: BTreeMap<String, Vec<String>>,
    /// How its server tells that it is ready, as [`READY`] has it; by default it takes a connection.
    pub ready: Option<Vec<String>>,
    /// Variables that the peer gets.
    pub env: BTreeMap<String, String>,
    /// Names of variables that are passed through.
    pub pass_env: Vec<String>,
    /// Claims; none where there is no `[features]` table, so that they are probed.
    pub features: Option<BTreeMap<String, Value>>,
    /// The peer's tools that play the conformance roles.
    pub roles: BTreeMap<String, Value>,
    /// Pinned choices.
    pub choices: BTreeMap<String, String>,
    /// Limits of the peer.
    pub limits: BTreeMap<String, u64>,
    /// The set of clauses that binds it; by default the boundary's first one.
    pub requirements: Option<String>,
}

impl Config {
    /// A configuration that says nothing but the boundary.
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

    /// Reads a file of a peer of one of `boundaries`.
    ///
    /// # Errors
    /// One sentence that begins with the file's name, with the line where that is known.
    pub fn load(path: &Path, boundaries: &[&'static dyn Boundary]) -> Result<Self, Misconfigured> {
        file::load(path, boundaries)
    }

    /// Reads the text of a file called `name` in `folder`.
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

    /// Sets one of the boundary's commands.
    ///
    /// # Errors
    /// There is no such command, it is empty, or its placeholders are wrong.
    pub fn set_command(&mut self, name: &str, argv: Vec<String>) -> Result<(), Misconfigured> {
        let name = self.boundary.command_name(name, self.side, &argv);
        let key = vocabulary::find(self.boundary, "peer", &name)?;
        let argv = command::check(&key, self.placed(argv)?)?;
        self.commands.insert(name, argv);
        Ok(())
    }

    /// Fills `{here}`, which is the folder of the file. Without a file there is none.
    fn placed(&self, argv: Vec<String>) -> Result<Vec<String>, Misconfigured> {
        let Some(folder) = &self.folder else { return Ok(argv) };
        let folder = std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let Some(folder) = folder.to_str() else { return Ok(argv) };
        let folder = folder.replace('{', "{{").replace('}', "}}");
        // Of doubled braces each stands for itself.
        let place = |word: String| {
            word.split("{{").map(|part| part.replace("{here}", &folder)).collect::<Vec<_>>().join("{{")
        };
        Ok(argv.into_iter().map(place).collect())
    }

    /// Puts the boundary's main command in the place of all commands.
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
    /// There is no such feature, or it cannot have this value.
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
    /// There is no such role, or a member of `value` is missing, unknown or of a wrong type.
    pub fn set_role(&mut self, name: &str, value: Value) -> Result<(), Misconfigured> {
        let key = vocabulary::find(self.boundary, "roles", name)?;
        vocabulary::check_members(&key, &value)?;
        self.roles.insert(name.to_owned(), value);
        Ok(())
    }

    /// Pins a choice.
    ///
    /// # Errors
    /// There is no such choice, or it has no such value.
    pub fn set_choice(&mut self, name: &str, value: &str) -> Result<(), Misconfigured> {
        let key = vocabulary::find(self.boundary, "choices", name)?;
        vocabulary::check_choice(&key, value)?;
        self.choices.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// Sets a limit.
    ///
    /// # Errors
    /// There is no such limit.
    pub fn set_limit(&mut self, name: &str, value: u64) -> Result<(), Misconfigured> {
        let key = vocabulary::find(self.boundary, "limits", name)?;
        vocabulary::check_limit(&key, value)?;
        self.limits.insert(name.to_owned(), value);
        Ok(())
    }

    /// The side that the peer plays.
    ///
    /// # Errors
    /// No command is configured, or the commands belong to different sides.
    pub fn side(&self) -> Result<Side, Misconfigured> {
        let sides: Vec<(Side, Vec<&'static str>)> = self.boundary.commands();
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

    /// Makes the peer. `variables` is the environment of the harness, of which it gets `PATH`, `HOME` and what
    /// `pass_env` names.
    ///
    /// # Errors
    /// One sentence: no command, or a program that cannot be started.
    pub fn peer(&self, variables: &BTreeMap<String, OsString>) -> Result<Peer, Misconfigured> {
        self.side()?;
        let mut base_env: Vec<(String, OsString)> = Vec::new();
        for name in ["PATH", "HOME"].into_iter().chain(self.pass_env.iter().map(String::as_str)) {
            if let Some(value) = variables.get(name) {
                base_env.push((name.to_owned(), value.clone()));
            }
        }
        let path = match self.env.get("PATH") {
            Some(path) => Some(OsString::from(path)),
            None => variables.get("PATH").cloned(),
        };
        let mut commands = self.commands.clone();
        for (name, whole) in &mut commands {
            // A command that is spoken to over HTTP may begin with its address, and that may be all.
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

    /// Makes the peer out of machines in this process: `make` gets the command lines that would have been started.
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

    /// Puts what a variable holds, of the peer or of ours, in the place of its name under `NAME_env`.
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

    /// Puts what the file of a feature holds beside its path, as `text`.
    fn read_in(&self, feature: &str, value: &mut Value) -> Result<(), Misconfigured> {
        /// More is no sample.
        const BYTES_MAX: u64 = 1 << 20;
        let key = vocabulary::find(self.boundary, "features", feature)?;
        let file = key.members.iter().find_map(|member| member.strip_suffix(": file"));
        let (Some(member), Value::Object(members)) = (file, value) else { return Ok(()) };
        let Some(path) = members.get(member).and_then(Value::as_str) else { return Ok(()) };
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

    /// The name, or the program's.
    fn shown_name(&self) -> String {
        let program = || {
            let argv = self.commands.values().next()?;
            // `python3 peer.py` is known by its second word, `sh -c 'while …'` by its first.
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

/// A peer as the header of a results file shows it; secrets are still in it.
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
