//! `peerproof init`: writes a configuration for a peer.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::peer_args::PeerArgs;
use super::run_args::RunArgs;
use super::{CommandResult, Context, Exit, Stop};
use peerproof::report::screen::plural;
use peerproof_engine::contract::boundary::{ConfigKey, Member, MemberKind};
use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::drive::config::{self, Config, DEFAULT_FILE};
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::private;
use peerproof_engine::run::runner::{self, Surroundings};

/// Starts a peer once, probes its roles and features, and writes a commented peerproof.toml for it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  peerproof init toolhost -- ./my_toolhost --serve plugin.so")]
pub(crate) struct Args {
    /// The boundary, such as toolhost.
    boundary: String,
    #[command(flatten)]
    peer: PeerArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs the command. `--config FILE` names the file to write.
///
/// # Errors
/// Fails if the file exists or cannot be written, or the peer cannot be started.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    if args.peer.command.is_empty() {
        return Err(Stop::usage(
            "no command line of a peer; give it after `--`: peerproof init BOUNDARY -- ./my_peer --serve",
        ));
    }
    let path = args.peer.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    if path.symlink_metadata().is_ok() {
        return Err(Stop::usage(format!(
            "{} already exists and was not changed; remove it, or name another file with --config",
            path.display()
        )));
    }
    let options = args.run.options(context)?;
    let config = args.peer.for_init(&args.boundary)?;
    let mut peer = config.peer(&context.variables)?;
    context.catch_interrupts();
    let scratch = super::check::scratch()?;
    let actor_exe = ActorExe::new(context.exe()?);
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let probes = runner::prepare(&mut peer, &options, around)?;
    let tried = runner::try_roles(&peer, &probes, &options, around)?;
    runner::find_roles(&mut peer, &probes, &options, around)?;
    if context.interrupted.load(Ordering::Relaxed) {
        context.printer.note("interrupted; nothing was written");
        return Ok(Exit::Interrupted);
    }
    let text = text(&config, &peer.name, &peer.facts, &path);
    private::write_new(&path, &text)
        .map_err(|error| Stop::usage(format!("cannot write {}: {error}", path.display())))?;
    for (role, trial) in tried {
        match trial {
            RoleTrial::Plays => {}
            RoleTrial::Misplays(why) => {
                context.printer.note(&format!("no tool plays the role `{role}`: {why}"));
            }
            RoleTrial::Untold(why) => {
                context.printer.note(&format!("the trial of the role `{role}` was inconclusive: {why}"));
            }
        }
    }
    for (feature, what) in peer.boundary.undeclared(&peer.facts, &probes) {
        context.printer.note(&format!("the feature `{feature}`: {what}"));
    }
    let found = plural(peer.facts.roles.len(), "role");
    context.printer.out(&format!(
        "wrote {}: {found} found; check the file, then run `peerproof check{}`\n",
        path.display(),
        if path == Path::new(DEFAULT_FILE) { String::new() } else { format!(" --config {}", path.display()) }
    ));
    Ok(Exit::Good)
}

/// Text of the file: known facts as settings, everything else as comments.
fn text(config: &Config, name: &str, facts: &Facts, path: &Path) -> String {
    let boundary = config.boundary.name();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "# Configuration of a peer. Check the peer with: peerproof check\n\
         # Every key: peerproof list --config-keys {boundary}\n\n\
         [peer]\nname = {}\nboundary = {}\nside = {}",
        toml(&Value::from(name)),
        toml(&Value::from(boundary)),
        toml(&Value::from(facts.side.word()))
    );
    let keys = config::keys_of(config.boundary, facts.side);
    let of = |table: &'static str| keys.iter().filter(move |key| key.table() == table);
    let commands: Vec<&str> = config.boundary.description().commands_of(facts.side).collect();
    for key in of("peer").filter(|key| commands.contains(&key.name)) {
        match config.commands.get(key.name) {
            Some(argv) => {
                let argv: Value = argv_from(argv, path).into_iter().map(Value::from).collect();
                let _ = writeln!(out, "# {}\n{} = {}", key.meaning, key.name, toml(&argv));
            }
            None => {
                let parts = key.placeholders().iter().map(|placeholder| placeholder.text);
                let argv: Value = std::iter::once("./my_peer").chain(parts).map(Value::from).collect();
                let _ = writeln!(out, "# {}\n# {} = {}", key.meaning, key.name, toml(&argv));
            }
        }
    }
    if let Some(requirements) = &config.requirements {
        let _ = writeln!(out, "requirements = {}", toml(&Value::from(requirements.as_str())));
    }
    if !config.env.is_empty() {
        let env: Value =
            config.env.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect();
        let _ = writeln!(out, "env = {}", toml(&env));
    }
    if of("features").next().is_some() {
        out.push_str(
            "\n# Features of the peer. A feature after `#` was not detected and is not checked; \
             remove the `#` if the peer has it.\n\
             [features]\n",
        );
    }
    for key in of("features") {
        let _ = match facts.features.get(key.name) {
            Some(value) => writeln!(out, "# {}\n{} = {}", key.meaning, key.name, toml(value)),
            None if key.is_setting() => writeln!(out, "# {}\n# {} = …", key.meaning, key.name),
            None => {
                let blanks = blanks(key);
                let word = key.words().first();
                let value = match word {
                    Some(word) => format!("{word:?}"),
                    None if blanks.is_empty() => "true".to_owned(),
                    None => format!("{{ {blanks} }}"),
                };
                writeln!(out, "# {}\n# {} = {value}", key.meaning, key.name)
            }
        };
    }
    if of("roles").next().is_some() {
        out.push_str("\n# Tools of the peer that play the roles.\n");
        for line in config.boundary.inventory(facts) {
            let _ = writeln!(out, "# {line}");
        }
        out.push_str("[roles]\n");
    }
    for key in of("roles") {
        let _ = match facts.roles.get(key.name) {
            Some(value) => writeln!(out, "# {}\n{} = {}", key.meaning, key.name, toml(value)),
            None => writeln!(out, "# {}\n# {} = {{ {} }}", key.meaning, key.name, blanks(key)),
        };
    }
    if of("choices").next().is_some() {
        out.push_str(
            "\n# Behaviour that the contract leaves open. Set a key to have it checked. \
             `peerproof check` shows the observed values.\n\
             [choices]\n",
        );
    }
    for key in of("choices") {
        let _ = writeln!(out, "# {}", choice(key, facts));
    }
    out
}

fn choice(key: &ConfigKey, facts: &Facts) -> String {
    match facts.choices.get(key.name) {
        Some(value) => format!("{}\n{} = {}", key.meaning, key.name, toml(&Value::from(value.as_str()))),
        None => format!("{} = \"{}\"   # {}", key.name, key.words().join(" | "), key.meaning),
    }
}

/// Required members of a role, to be filled in.
fn blanks(key: &ConfigKey) -> String {
    let blank = |member: &Member| {
        let name = member.names().collect::<Vec<_>>().join("|");
        match member.kind {
            MemberKind::String => format!("{name} = \"…\""),
            _ => format!("{name} = {{ … }}"),
        }
    };
    key.members().iter().filter(|member| member.is_required).map(blank).collect::<Vec<_>>().join(", ")
}

/// Command line for a file at `path`, whose folder is the peer's working directory.
fn argv_from(argv: &[String], path: &Path) -> Vec<String> {
    let mut argv = argv.to_vec();
    let here = path.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if let Some(program) = argv.first_mut()
        && !here
        && program.contains('/')
        && let Ok(full) = std::path::absolute(&*program)
        && let Some(full) = full.to_str()
    {
        *program = full.to_owned();
    }
    argv
}

/// Value on one line of TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let members: Vec<String> =
                members.iter().map(|(name, value)| format!("{} = {}", key(name), toml(value))).collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::String(text) => toml::Value::from(text.as_str()).to_string(),
        // TOML has no null, and no configured value can be one.
        other => other.to_string(),
    }
}

fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { name.to_owned() } else { toml::Value::from(name).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use peerproof::table;

    #[test]
    fn what_is_written_is_a_configuration_that_says_the_same() {
        let boundary = table::find("toolhost").unwrap();
        let mut config = Config::new(boundary);
        config
            .set_main_command(vec!["./a b\"c".to_owned(), "--serve".to_owned(), "{{x}}".to_owned()])
            .unwrap();
        config.env.insert("A".to_owned(), "line\nfeed".to_owned());
        let mut facts = boundary.full_facts(peerproof_engine::data::clause::Side::Provider);
        facts.roles.insert("any".to_owned(), json!({"aid": "A", "input": {"x y": [1, "é"]}}));
        facts.choices.insert("bom".to_owned(), "refuse".to_owned());
        let text = text(&config, "my peer", &facts, Path::new("peerproof.toml"));
        let read = Config::parse(&text, "p.toml", Path::new("/"), &table::all())
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(read.commands, config.commands);
        assert_eq!(read.env, config.env);
        assert_eq!(read.roles, facts.roles);
        assert_eq!(read.choices, facts.choices);
        assert_eq!(read.features.unwrap(), facts.features);
        assert_eq!(read.name.as_deref(), Some("my peer"));
    }

    #[test]
    fn blanks_are_the_required_members_of_a_role() {
        const MEMBERS: &[Member] =
            &[Member::string("method"), Member::object("params"), Member::string("expect").optional()];
        let key = ConfigKey::role("named", MEMBERS, "");
        assert_eq!(blanks(&key), "method = \"…\", params = { … }");
    }
}
