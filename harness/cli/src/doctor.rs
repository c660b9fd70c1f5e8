//! `peerproof doctor`: starts the peer and reports its roles, features and answers.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::peer_args::PeerArgs;
use super::run_args::RunArgs;
use super::{CommandResult, Context, Exit};
use peerproof::report::doctor::{Diagnosis, Feature, Role, render};
use peerproof::report::screen::plural;
use peerproof_engine::contract::boundary::{Absence, ConfigKey, checks_of_side};
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::data::secrets::{self, is_secret_name, redact_argv};
use peerproof_engine::data::transcript::{EventKind, Transcript};
use peerproof_engine::drive::config::Config;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::run::runner::{self, CheckOutcome, Options, Surroundings};
use peerproof_engine::run::verdict::Verdict;

/// Starts the peer once and shows its command line, environment, answers, roles and features, with advice.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The boundary, such as toolhost.
    boundary: Option<String>,
    #[command(flatten)]
    peer: PeerArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// Runs the command. The status is 4 if the peer starts but answers nothing.
///
/// # Errors
/// Fails for wrong usage or configuration, a peer that cannot be started, or a fault of this machine.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let options = args.run.options(context)?;
    let config = args.peer.config(args.boundary.as_deref(), context)?;
    let mut peer = args.peer.peer(args.boundary.as_deref(), context)?;
    context.catch_interrupts();
    let scratch = super::check::scratch()?;
    let actor_exe = ActorExe::new(context.exe()?);
    let around =
        Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &context.interrupted };
    let said = peer.facts.clone();
    let probes = runner::prepare(&mut peer, &options, around)?;
    if context.interrupted.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    let checks = checks_of_side(peer.boundary, peer.facts.side);
    let first: Vec<&Check> = checks
        .iter()
        .copied()
        .filter(|check| check.first_canary && peer.commands.contains_key(&check.command))
        .collect();
    let outcomes: Mutex<Vec<CheckOutcome>> = Mutex::default();
    runner::run(&peer, &first, &options, around, &|outcome| {
        outcomes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(outcome);
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut notes = Vec::new();
    if let Some(config) = &config {
        let unset = config.pass_env.iter().filter(|name| !context.variables.contains_key(*name));
        notes.extend(unset.map(|name| format!("`pass_env` names {name}, which is not set in this shell")));
    }
    let answered = probes.iter().any(|probe| !output(probe).is_empty());
    let tried = !probes.is_empty();
    let working = outcomes.iter().all(|outcome| outcome.result.verdict.is_good());
    let silent = tried && !answered;
    let probed = |name: &str| suggestion(&peer, config.as_ref()?, name, &options, around, context);
    notes.extend(unfound(&peer, &probes));
    notes.extend(advice(&peer, silent, &checks, &probed));
    let played = runner::try_roles(&peer, &probes, &options, around)?;
    let undeclared = peer.boundary.undeclared(&peer.facts, &probes);
    // Only a peer that ends may be of another kind. A hanging one would hang again, even if the machine is too busy to
    // say so. A role played by another tool is no sign of another kind.
    let is_this = outcomes.iter().any(|outcome| match &outcome.result.verdict {
        Verdict::Untestable(why) => [Untestable::TOO_BUSY, Untestable::ROLE_MISBEHAVES].contains(&&*why.code),
        verdict => *verdict == Verdict::Hang,
    });
    if !working
        && !is_this
        && let Some(config) = &config
    {
        notes.extend(as_another(config, peer.facts.side, &options, around, context));
    }
    if context.interrupted.load(Ordering::Relaxed) {
        return Ok(Exit::Interrupted);
    }
    let diagnosis = Diagnosis {
        name: peer.name.clone(),
        boundary: peer.boundary,
        side: peer.facts.side,
        file: config.and_then(|config| config.file),
        commands: commands(&peer),
        folder: folder(&peer),
        environment: environment(&peer),
        conversation: probes.first().map(excerpt).unwrap_or_default(),
        stderr: probes.first().map(stderr).unwrap_or_default(),
        pace: peer.pace.all(),
        roles: roles(&peer, &said, &played, &checks),
        features: features(&peer, &said, &undeclared),
        choices: peer.facts.choices.clone(),
        first: outcomes.into_iter().map(|outcome| outcome.result).collect(),
        notes,
    };
    context.printer.out(&render(&diagnosis, &context.printer));
    Ok(if working && (answered || !tried) { Exit::Good } else { Exit::Undecided })
}

fn output(transcript: &Transcript) -> Vec<u8> {
    (0..transcript.plan.sessions.len()).flat_map(|session| transcript.stdout(session)).collect()
}

/// First lines of the conversation.
fn excerpt(transcript: &Transcript) -> Vec<String> {
    peerproof_engine::run::reproducer::conversation(transcript, 160, 24)
}

fn stderr(transcript: &Transcript) -> Vec<String> {
    let bytes = transcript.events.iter().find_map(|event| match &event.kind {
        EventKind::Stderr { bytes, total_bytes } if *total_bytes > 0 => Some(bytes.0.clone()),
        _ => None,
    });
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    text.lines()
        .take(8)
        .map(|line| peerproof_engine::data::payload::shorten(line, 160).into_owned())
        .collect()
}

fn commands(peer: &Peer) -> Vec<(String, String)> {
    peer.commands.iter().map(|(name, argv)| (name.clone(), line(argv))).collect()
}

/// Command line for a shell, without secrets.
fn line(argv: &[String]) -> String {
    super::peer_args::quoted_line(&redact_argv(argv))
}

fn folder(peer: &Peer) -> Option<String> {
    match &peer.origin {
        Origin::Process { current_dir, .. } => Some(match current_dir {
            Some(folder) => folder.display().to_string(),
            None => std::env::current_dir().map_or_else(|_| ".".to_owned(), |dir| dir.display().to_string()),
        }),
        Origin::InProcess(_) => None,
    }
}

fn environment(peer: &Peer) -> Vec<(String, String)> {
    let own = peer.own_env("the working folder").into_iter();
    let mut all: BTreeMap<_, _> =
        own.map(|(name, value)| (name.to_owned(), value.to_string_lossy().into_owned())).collect();
    if let Origin::Process { base_env, .. } = &peer.origin {
        for (name, value) in base_env {
            all.insert(name.clone(), value.to_string_lossy().into_owned());
        }
    }
    all.extend(peer.env.iter().cloned());
    all.into_iter()
        .map(|(name, value)| {
            let shown = if is_secret_name(&name) { secrets::REDACTED.to_owned() } else { value };
            (name, shown)
        })
        .collect()
}

fn keys(peer: &Peer, table: &'static str) -> impl Iterator<Item = ConfigKey> + use<> {
    let keys = peerproof_engine::drive::config::keys_of(peer.boundary, peer.facts.side);
    keys.into_iter().filter(move |key| key.table() == table)
}

fn roles(peer: &Peer, said: &Facts, played: &BTreeMap<String, RoleTrial>, checks: &[&Check]) -> Vec<Role> {
    let keys = keys(peer, "roles");
    keys.map(|key| {
        let mapped = peer.facts.roles.get(key.name);
        Role {
            name: key.name,
            meaning: key.meaning,
            tool: mapped.map(|value| match value.get("aid").and_then(Value::as_str) {
                Some(aid) => aid.to_owned(),
                None => value.to_string(),
            }),
            configured: said.roles.contains_key(key.name),
            trial: played.get(key.name).cloned(),
            checks: checks.iter().filter(|check| check.roles.iter().any(|role| role == key.name)).count(),
        }
    })
    .collect()
}

fn features(peer: &Peer, said: &Facts, undeclared: &[(&'static str, &'static str)]) -> Vec<Feature> {
    keys(peer, "features")
        .map(|key| {
            let known = || match (said.features.contains_key(key.name), peer.facts.claims(key.name)) {
                (true, true) => "set in the configuration",
                (true, false) => "set to false in the configuration",
                (false, true) => "seen in the peer's answers",
                (false, false) if peer.features_given => "not listed in the configuration",
                (false, false) => "not seen in the peer's answers",
            };
            let shown = undeclared.iter().find(|(name, _)| *name == key.name);
            let why = shown.map_or_else(known, |(_, what)| *what);
            Feature { name: key.name, meaning: key.meaning, claimed: peer.facts.claims(key.name), why }
        })
        .collect()
}

/// Tries a silent peer under each other command of the boundary, starting with the other side, and names the one that
/// works.
fn as_another(
    config: &Config,
    side: Side,
    options: &Options,
    around: Surroundings<'_>,
    context: &Context,
) -> Option<String> {
    let [(own, argv)] = config.commands.iter().collect::<Vec<_>>()[..] else { return None };
    let keys = peerproof_engine::drive::config::keys(config.boundary);
    let key = |name: &str| keys.iter().find(|key| key.name == name);
    let commands = config.boundary.description().commands.iter();
    let mut tries: Vec<(Side, &str)> =
        commands.flat_map(|(side, names)| names.iter().map(|name| (*side, *name))).collect();
    tries.retain(|(_, name)| name != own);
    tries.sort_by_key(|(other, _)| *other == side);
    tries.into_iter().find_map(|(other_side, name)| {
        let argv = retold(argv, key(own)?, key(name)?)?;
        let mut other = Config { commands: BTreeMap::new(), side: Some(other_side), ..config.clone() };
        other.roles.clear();
        let answers = answers_as(other, name, argv.clone(), options, around, context);
        answers.then(|| match other_side == side {
            true => format!("it answers as `{name}`: configure `{name}` with {}", line(&argv)),
            false => format!(
                "it answers as `{name}`, a {side} of this boundary: configure it with side = \"{side}\" and \
                 its command line under `{name}`",
                side = other_side.word()
            ),
        })
    })
}

/// Adapts a command line to `other`: removes placeholders that `other` lacks with the flags before them, and adds those
/// it needs. `None` if a peer that must be told where to listen is not.
fn retold(argv: &[String], own: &ConfigKey, other: &ConfigKey) -> Option<Vec<String>> {
    let is_added =
        |word: &str| own.placeholders().iter().any(|it| it.absence == Absence::Appended && it.text == word);
    let names = |key: &ConfigKey, word: &str| key.placeholders().iter().any(|it| word.contains(it.text));
    let mut told: Vec<String> = Vec::new();
    for word in argv.iter().filter(|word| !is_added(word)) {
        if !names(own, word) || names(other, word) {
            told.push(word.clone());
        } else if told.last().is_some_and(|flag| flag.starts_with('-')) {
            told.pop();
        }
    }
    let is_there = |told: &[String], part: &str| told.iter().any(|word| word.contains(part));
    if other.name == HTTP && !["{port}", "{addr}"].iter().any(|part| is_there(&told, part)) {
        return None;
    }
    for required in other.placeholders().iter().filter(|it| it.absence == Absence::Refused) {
        if !is_there(&told, required.text) {
            told.push(required.text.to_owned());
        }
    }
    Some(told)
}

/// Command line for `missing`, made from that for `known` if it names its mode: `--serve` becomes `--run`. Suggested
/// only if it answers.
fn suggestion(
    peer: &Peer,
    config: &Config,
    missing: &str,
    options: &Options,
    around: Surroundings<'_>,
    context: &Context,
) -> Option<String> {
    let key = keys(peer, "peer").find(|key| key.name == missing)?;
    peer.commands.iter().find_map(|(known, argv)| {
        let flag = format!("--{known}");
        let mut argv = argv.clone();
        let at = argv.iter().position(|word| *word == flag)?;
        argv[at] = format!("--{missing}");
        let needed = key.placeholders().iter().filter(|it| it.absence != Absence::Allowed);
        argv.extend(needed.map(|it| it.text.to_owned()));
        let other = Config { commands: BTreeMap::new(), ..config.clone() };
        answers_as(other, missing, argv.clone(), options, around, context).then(|| line(&argv))
    })
}

/// True if a peer with only the command `name` answers its first request.
fn answers_as(
    mut config: Config,
    name: &str,
    argv: Vec<String>,
    options: &Options,
    around: Surroundings<'_>,
    context: &Context,
) -> bool {
    let is_set = config.set_command(name, argv).is_ok() && config.commands.contains_key(name);
    let Some(mut peer) = is_set.then(|| config.peer(&context.variables).ok()).flatten() else { return false };
    if runner::prepare(&mut peer, options, around).is_err() {
        return false;
    }
    let checks = checks_of_side(peer.boundary, peer.facts.side);
    let first: Vec<&Check> =
        checks.into_iter().filter(|check| check.first_canary && check.command == name).collect();
    let good = std::sync::atomic::AtomicUsize::new(0);
    runner::run(&peer, &first, options, around, &|outcome| {
        good.fetch_add(usize::from(outcome.result.verdict.is_good()), Ordering::Relaxed);
    });
    good.into_inner() > 0
}

/// Note about the requested URL, if every request was answered 404.
fn unfound(peer: &Peer, probes: &[Transcript]) -> Option<String> {
    let mut statuses = probes.iter().flat_map(|probe| &probe.events).filter_map(|event| match event.kind {
        EventKind::HttpReply { status, .. } => Some(status),
        _ => None,
    });
    let is_unfound = statuses.next() == Some(404) && statuses.all(|status| status == 404);
    let url = peer.commands.get(HTTP)?.iter().find(|word| word.starts_with("http://"));
    is_unfound.then(|| {
        let asked = url.map_or_else(|| "the path `/`".to_owned(), |url| format!("`{url}`"));
        format!("every request to {asked} is answered 404: add the path of the server to `url` of `http`")
    })
}

fn advice(
    peer: &Peer,
    silent: bool,
    checks: &[&Check],
    suggestion: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if silent {
        notes.push(
            "the peer did not answer: does it read requests from its standard input, flush each reply, and stay \
             alive until its input ends?"
                .to_owned(),
        );
        return notes;
    }
    let needs = |role: &str| checks.iter().filter(|check| check.roles.iter().any(|r| r == role)).count();
    if !peer.facts.roles.contains_key("any") && needs("any") > 0 {
        notes.push(format!(
            "no tool is known to succeed, so {} cannot run: pass --aid AID --input JSON, or map the role \
             `any` under [roles]",
            plural(needs("any"), "check")
        ));
    }
    let commands = peer.boundary.description().commands_of(peer.facts.side);
    for name in commands.filter(|name| !peer.commands.contains_key(*name)) {
        let count = plural(checks.iter().filter(|check| check.command == name).count(), "check");
        let like = suggestion(name).map(|line| format!("; it answers as {line}")).unwrap_or_default();
        notes.push(format!(
            "no command `{name}` is configured, so {count} cannot run: `peerproof init` writes a file for all{like}"
        ));
    }
    notes
}
