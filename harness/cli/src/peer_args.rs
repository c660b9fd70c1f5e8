//! Arguments that select a peer; shared by every command that starts one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Context, Stop, boundary_named};
use peerproof::table;
use peerproof_engine::contract::boundary::{Boundary, ConfigKey};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::clause::Side;
use peerproof_engine::drive::config::{Config, DEFAULT_FILE};
use peerproof_engine::drive::peer::{Origin, Peer, inherited};
use peerproof_engine::drive::reference_peers::{Reference, peer_inside};

/// Value of `--revision` for all revisions of the boundary.
const EACH: &str = "all";
/// Key under `[choices]` for the requested revision.
const REVISION: &str = "revision";

/// The peer: a configuration file, flags that override it, and a command line after `--`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "The peer")]
pub(crate) struct PeerArgs {
    /// Configuration of the peer [default: ./peerproof.toml, if it exists].
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Id of a tool that succeeds (sets the role `any`).
    #[arg(long, value_name = "AID")]
    pub aid: Option<String>,
    /// Input with which the tool of --aid succeeds [default: {}].
    #[arg(long, value_name = "JSON", requires = "aid")]
    pub input: Option<String>,
    /// Claim a feature. Features that are not named are then not claimed. May be repeated.
    #[arg(long = "feature", value_name = "NAME[=VALUE]")]
    pub features: Vec<String>,
    /// Map a role to one of the peer's own tools or methods. May be repeated.
    #[arg(long = "role", value_name = "NAME=OWN")]
    pub roles: Vec<String>,
    /// Set the behaviour of the peer where the contract allows several. May be repeated.
    #[arg(long = "choice", value_name = "KEY=VALUE")]
    pub choices: Vec<String>,
    /// Set of clauses that apply to the peer, if the boundary has several.
    #[arg(long, value_name = "SET")]
    pub requirements: Option<String>,
    /// Revision of the contract to ask for, if the boundary has several; `all` checks each that the peer accepts.
    #[arg(long, value_name = "DATE")]
    pub revision: Option<String>,
    /// Set an environment variable for the peer. May be repeated.
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Command line of the peer.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

impl PeerArgs {
    /// The selected peer.
    ///
    /// # Errors
    /// Fails if none is selected or the configuration is invalid.
    pub(crate) fn peer(&self, boundary: Option<&str>, context: &Context) -> Result<Peer, Stop> {
        self.one_revision()?;
        match self.config(boundary, context)? {
            Some(config) => Ok(config.peer(&context.variables)?),
            None => Err(Stop::usage(
                "no peer to test; give its command line after `--`, or --config FILE (`peerproof init` writes one)",
            )),
        }
    }

    /// The selected peer; without a command and a configuration, the reference peers of `boundary`.
    ///
    /// # Errors
    /// Fails if neither peer nor boundary is named, or the configuration is invalid.
    pub(crate) fn peer_or_references(
        &self,
        boundary: Option<&str>,
        context: &Context,
    ) -> Result<Vec<Peer>, Stop> {
        match (self.config(boundary, context)?, boundary) {
            (Some(config), _) => self.at_revisions(&config, context),
            (None, Some(_)) => self.peers_or_references(boundary, context),
            (None, None) => Err(Stop::usage(
                "no peer to test; name a boundary for its reference peer, or give a command line after `--`, or \
                 --config FILE (`peerproof init` writes one)",
            )),
        }
    }

    /// The selected peers; without a command and a configuration, the reference peers of `boundary` or of all.
    ///
    /// # Errors
    /// Fails if the configuration is invalid.
    pub(crate) fn peers_or_references(
        &self,
        boundary: Option<&str>,
        context: &Context,
    ) -> Result<Vec<Peer>, Stop> {
        if let Some(config) = self.config(boundary, context)? {
            return self.at_revisions(&config, context);
        }
        let boundaries = match boundary {
            Some(name) => vec![boundary_named(name)?],
            None => table::all(),
        };
        let mut peers = Vec::new();
        for boundary in boundaries {
            for reference in table::played(boundary).references() {
                peers.push(reference_peer(boundary, &reference, &[], context)?);
            }
        }
        Ok(peers)
    }

    /// True with `--revision all`.
    pub(crate) fn is_each_revision(&self) -> bool {
        self.revision.as_deref() == Some(EACH)
    }

    /// Refuses `--revision all`, for commands about one peer at one revision.
    ///
    /// # Errors
    /// Explains it in one sentence.
    pub(crate) fn one_revision(&self) -> Result<(), Stop> {
        match self.is_each_revision() {
            true => {
                Err(Stop::usage("--revision all: only `check` and `fuzz` go through all revisions; name one"))
            }
            false => Ok(()),
        }
    }

    /// Peer of a configuration; with `--revision all` once per revision, newest first.
    fn at_revisions(&self, config: &Config, context: &Context) -> Result<Vec<Peer>, Stop> {
        if !self.is_each_revision() {
            return Ok(vec![config.peer(&context.variables)?]);
        }
        let key = config
            .boundary
            .description()
            .config_keys
            .iter()
            .find(|key| (key.table(), key.name) == ("choices", REVISION));
        let one = || Stop::usage(format!("--revision: {} has one revision", config.boundary.name()));
        let at = |revision: &&str| {
            let mut config = config.clone();
            config.set_choice(REVISION, revision)?;
            let mut peer = config.peer(&context.variables)?;
            peer.name = format!("{} at {revision}", peer.name);
            Ok::<_, Stop>(peer)
        };
        key.ok_or_else(one)?.words().iter().rev().map(at).collect()
    }

    /// Configuration file: the named one, or else the default one if it exists.
    pub(crate) fn file(&self, context: &Context) -> Option<PathBuf> {
        let named = self.config.clone().or_else(|| context.setting("CONFIG").map(PathBuf::from));
        named.or_else(|| Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE)))
    }

    /// Configuration from file and flags; `None` if neither selects a peer.
    ///
    /// # Errors
    /// Fails if the configuration is invalid, or flags are given without a peer.
    pub(crate) fn config(&self, boundary: Option<&str>, context: &Context) -> Result<Option<Config>, Stop> {
        let boundary = boundary.map(boundary_named).transpose()?;
        let mut config = match (self.file(context), boundary) {
            (Some(path), _) => Config::load(&path, &table::all())?,
            (None, Some(boundary)) if !self.command.is_empty() => Config::new(boundary),
            (None, None) if !self.command.is_empty() => {
                return Err(Stop::usage(
                    "no boundary is named; name it before the `--`: peerproof check BOUNDARY -- COMMAND \
                     (`peerproof list boundaries` shows them)",
                ));
            }
            (None, _) if self.has_flags() => {
                return Err(Stop::usage(
                    "flags about a peer need a peer; give its command line after `--`, or --config FILE",
                ));
            }
            (None, _) => return Ok(None),
        };
        if let Some(boundary) = boundary
            && boundary.name() != config.boundary.name()
        {
            if self.command.is_empty() || self.config.is_some() {
                let file = config.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE)).display();
                return Err(Stop::usage(format!(
                    "{file} configures a peer of the boundary {}, not {}",
                    config.boundary.name(),
                    boundary.name()
                )));
            }
            // The default file is about another boundary than the command line.
            config = Config::new(boundary);
        }
        self.apply(&mut config)?;
        Ok(Some(config))
    }

    /// Note about a configuration found in the current folder, if none was named.
    pub(crate) fn picked_up(&self, config: Option<&Config>, context: &Context) -> Option<String> {
        if self.config.is_some() || context.setting("CONFIG").is_some() {
            return None;
        }
        let file = self.file(context)?;
        let file = file.display();
        Some(match config.filter(|config| config.file.is_some()) {
            Some(_) if self.command.is_empty() => format!("with {file}"),
            Some(_) => format!("with {file}, except for the command line"),
            None => format!("{file} belongs to another peer and is not used"),
        })
    }

    /// Configuration from the flags only, for writing a new file.
    ///
    /// # Errors
    /// Fails for an unknown boundary or an invalid flag.
    pub(crate) fn for_init(&self, boundary: &str) -> Result<Config, Stop> {
        self.one_revision()?;
        let mut config = Config::new(boundary_named(boundary)?);
        self.apply(&mut config)?;
        Ok(config)
    }

    /// Arguments that select the same peer on another command line: file and flags, then the command line after `--`.
    /// Empty for the reference peers.
    pub(crate) fn again(&self, boundary: Option<&str>, context: &Context) -> Vec<String> {
        let mut args = Vec::new();
        let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
        let config = self.config(boundary, context).ok().flatten();
        if let Some(path) = config.as_ref().and_then(|config| config.file.as_deref()?.to_str()) {
            add("--config", path);
        }
        if let Some(aid) = &self.aid {
            add("--aid", aid);
        }
        if let Some(input) = &self.input {
            add("--input", input);
        }
        if let Some(set) = &self.requirements {
            add("--requirements", set);
        }
        if let Some(revision) = self.revision.as_ref().filter(|_| !self.is_each_revision()) {
            add("--revision", revision);
        }
        let lists = [
            ("--feature", &self.features),
            ("--role", &self.roles),
            ("--choice", &self.choices),
            ("--env", &self.env),
        ];
        for (flag, values) in lists {
            values.iter().for_each(|value| add(flag, value));
        }
        if !self.command.is_empty() {
            args.push("--".to_owned());
            args.extend(self.command.iter().cloned());
        }
        args
    }

    fn has_flags(&self) -> bool {
        self.aid.is_some()
            || self.requirements.is_some()
            || self.revision.is_some()
            || [&self.features, &self.roles, &self.choices, &self.env].iter().any(|list| !list.is_empty())
    }

    fn apply(&self, config: &mut Config) -> Result<(), Misconfigured> {
        if !self.command.is_empty() {
            config.set_main_command(self.command.clone()).map_err(|error| {
                let (argv, values) = config.boundary.unfilled(&self.command);
                match values.is_empty() {
                    true => error,
                    false => format!("{error}: -- {}", quoted_line(&argv)).into(),
                }
            })?;
            // Words of the command line refer to the folder where it was typed.
            config.folder = None;
        }
        if let Some(aid) = &self.aid {
            let input = self.input.as_deref().unwrap_or("{}");
            let input: Value = serde_json::from_str(input)
                .map_err(|error| format!("--input is not JSON: {error}; quote it for your shell"))?;
            config.set_role("any", json!({ "aid": aid, "input": input }))?;
        }
        for role in &self.roles {
            let (name, own) = pair("--role", "NAME=OWN", role)?;
            // The first member of a role names the peer's own tool or method.
            let members = role_keys(config).find_map(|key| key.members().first());
            let member = members.map_or("aid", |member| member.name);
            let whole = serde_json::from_str::<Value>(own).ok().filter(Value::is_object);
            let is_part =
                whole.is_none() && role_keys(config).any(|key| key.name == name && key.members().len() > 1);
            let set = config.set_role(name, whole.unwrap_or_else(|| json!({ member: own })));
            set.map_err(|error| match is_part {
                true => Misconfigured::from(format!(
                    "{error}. Write it under [roles] in peerproof.toml, or as JSON: --role '{name}={{…}}'"
                )),
                false => error,
            })
            .map_err(|error| error.of("--role"))?;
        }
        for feature in &self.features {
            let (name, value) = match feature.split_once('=') {
                None => (feature.as_str(), Value::Bool(true)),
                // Text that is not JSON is a word, which some features take.
                Some((name, text)) => {
                    (name, serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
                }
            };
            config.set_feature(name, value).map_err(|error| error.of("--feature"))?;
        }
        if let Some(set) = &self.requirements {
            let sets = config.boundary.description().requirements;
            if !sets.contains(&set.as_str()) {
                return Err(format!(
                    "--requirements {set:?}: {} has the sets {}",
                    config.boundary.name(),
                    sets.join(", ")
                )
                .into());
            }
            config.requirements = Some(set.clone());
        }
        if let Some(revision) = self.revision.as_ref().filter(|_| !self.is_each_revision()) {
            config.set_choice(REVISION, revision).map_err(|error| error.of("--revision"))?;
        }
        for choice in &self.choices {
            let (name, value) = pair("--choice", "KEY=VALUE", choice)?;
            config.set_choice(name, value)?;
        }
        for variable in &self.env {
            let (name, value) = pair("--env", "NAME=VALUE", variable)?;
            config.env.insert(name.to_owned(), value.to_owned());
        }
        Ok(())
    }
}

/// Configuration keys of the roles of the boundary.
fn role_keys(config: &Config) -> impl Iterator<Item = &'static ConfigKey> {
    config.boundary.description().config_keys.iter().filter(|key| key.table() == "roles")
}

/// Command line quoted for a shell.
pub(crate) fn quoted_line(argv: &[String]) -> String {
    argv.iter().map(|word| peerproof_engine::run::reproducer::quoted(word)).collect::<Vec<_>>().join(" ")
}

fn pair<'a>(flag: &str, form: &str, text: &'a str) -> Result<(&'a str, &'a str), Misconfigured> {
    text.split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("{flag} takes {form}, not {text:?}").into())
}

/// Reference peer that answers, for the boundary with this name.
///
/// # Errors
/// Fails for an unknown boundary, or one without a reference peer that answers.
pub(crate) fn provider(name: &str, context: &Context) -> Result<Peer, Stop> {
    let boundary = boundary_named(name)?;
    let references = table::played(boundary).references();
    let provider = references.iter().find(|reference| reference.side == Side::Provider);
    let provider =
        provider.ok_or_else(|| Stop::usage(format!("{name} has no reference peer that answers")))?;
    reference_peer(boundary, provider, &[], context)
}

/// Reference peer as child processes of our own binary, with `extra` arguments such as `--choice key=value`.
///
/// # Errors
/// Fails if our own binary cannot be found.
pub(crate) fn reference_peer(
    boundary: &'static dyn Boundary,
    reference: &Reference,
    extra: &[String],
    context: &Context,
) -> Result<Peer, Stop> {
    let exe = context.exe()?;
    let exe = exe.to_str().ok_or_else(|| Stop::harness("the path of the peerproof binary is not UTF-8"))?;
    let command = |args: &[String]| {
        let own = [exe, "peer", boundary.name()].into_iter().map(str::to_owned);
        own.chain(args.iter().cloned()).chain(extra.iter().cloned()).collect::<Vec<_>>()
    };
    let facts = table::played(boundary).facts_of(reference);
    let usual = boundary.full_facts(reference.side);
    let more: Vec<&str> = facts
        .features
        .keys()
        .filter(|name| !usual.features.contains_key(*name))
        .map(String::as_str)
        .collect();
    let mut name = format!("reference {} {}", boundary.name(), reference.side.word());
    if !more.is_empty() {
        name.push_str(&format!(" with {}", more.join(", ")));
    }
    Ok(Peer {
        name,
        boundary,
        commands: reference.commands.iter().map(|(name, args)| ((*name).to_owned(), command(args))).collect(),
        env: Vec::new(),
        facts,
        features_given: true,
        origin: Origin::Process {
            base_env: inherited(boundary, &context.variables),
            current_dir: None,
            cpus: Vec::new(),
        },
        pace: std::sync::Arc::default(),
    })
}

/// Makes the reference peer `peer` inside this process; `None` if only a process can play it.
pub(crate) fn reference_inside(peer: &Peer) -> Option<Peer> {
    let played = table::played(peer.boundary);
    let reference =
        played.references().into_iter().find(|reference| played.facts_of(reference) == peer.facts)?;
    peer_inside(played, &reference, &[], |machine| machine)
}
