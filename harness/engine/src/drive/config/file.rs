//! The file form of a configuration.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::Table;

use super::{Config, vocabulary};
use crate::contract::boundary::{Boundary, KeyForm, named};
use crate::data::blame::Misconfigured;
use crate::data::carriage::HTTP;
use crate::data::clause::Side;
use crate::data::nearest::{did_you_mean, then};
use crate::drive::transport::http::URL_PREFIX;

/// Tables of the file.
pub const TABLES: [&str; 5] = ["peer", "features", "roles", "choices", "limits"];

/// Reads a file. See [`Config::load`].
pub(super) fn load(path: &Path, boundaries: &[&'static dyn Boundary]) -> Result<Config, Misconfigured> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            format!("there is no configuration {shown}; `peerproof init -- COMMAND` writes one")
        }
        std::io::ErrorKind::IsADirectory => {
            format!("{shown} is a directory; --config takes the file itself")
        }
        std::io::ErrorKind::InvalidData => format!("{shown} is not UTF-8 text"),
        _ => format!("cannot read the configuration {shown}: {error}"),
    })?;
    let full =
        std::path::absolute(path).map_err(|error| format!("cannot find the folder of {shown}: {error}"))?;
    let folder = full.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let mut config = parse(&text, &shown.to_string(), &folder, boundaries)?;
    config.file = Some(path.to_owned());
    Ok(config)
}

/// Reads the text of a file. See [`Config::parse`].
pub(super) fn parse(
    text: &str,
    name: &str,
    folder: &Path,
    boundaries: &[&'static dyn Boundary],
) -> Result<Config, Misconfigured> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map(|span| line_of_offset(text, span.start));
        let place = line.map(|line| format!(" line {line}")).unwrap_or_default();
        let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{name}{place} is not TOML: {message}")
    })?;
    let reader = ConfigReader { text, name, boundaries };
    reader.config(&table, folder)
}

fn line_of_offset(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

struct ConfigReader<'a> {
    text: &'a str,
    name: &'a str,
    boundaries: &'a [&'static dyn Boundary],
}

impl ConfigReader<'_> {
    /// Prefixes a sentence with the place of a key.
    fn at(&self, table: &str, key: &str, sentence: impl fmt::Display) -> Misconfigured {
        match self.line_of(table, key) {
            Some(line) => format!("{} line {line}: {sentence}", self.name),
            None => format!("{}: {sentence}", self.name),
        }
        .into()
    }

    /// Line on which `key` is set in `table`, if a simple search finds it.
    fn line_of(&self, table: &str, key: &str) -> Option<usize> {
        let mut current = String::new();
        for (index, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                current = header.split(']').next().unwrap_or("").trim().to_owned();
                if (key.is_empty() && current == table) || current == format!("{table}.{key}") {
                    return Some(index + 1);
                }
            } else if let Some((word, _)) = line.split_once('=') {
                let word = word.trim().trim_matches(['"', '\'']);
                let dotted = word == format!("{table}.{key}") && current.is_empty();
                if dotted || (current == table && word.split('.').next() == Some(key)) {
                    return Some(index + 1);
                }
            }
        }
        None
    }

    fn config(&self, file: &Table, folder: &Path) -> Result<Config, Misconfigured> {
        for (name, value) in file {
            if !TABLES.contains(&name.as_str()) {
                let hint = did_you_mean(name, TABLES);
                let sentence = format!(
                    "there is no table [{name}]{}",
                    then(&hint, &format!("there is: [{}]", TABLES.join("], [")))
                );
                return Err(self.at(name, "", sentence));
            }
            if !value.is_table() {
                return Err(self.at("", name, format_args!("{name:?} must be a table: write [{name}]")));
            }
        }
        let empty = Table::new();
        let table = |name: &str| file.get(name).and_then(toml::Value::as_table).unwrap_or(&empty);
        let peer = table("peer");
        let boundary = match peer.get("boundary") {
            None => {
                let first = self.boundaries.first().map_or("NAME", |boundary| boundary.name());
                let sentence = format!(
                    "[peer] has no `boundary`; add boundary = \"{first}\" or another of `peerproof list boundaries`"
                );
                return Err(self.at("peer", "", sentence));
            }
            Some(value) => {
                let word = value.as_str().ok_or_else(|| {
                    self.at("peer", "boundary", format_args!("`boundary` must be a string, not {value}"))
                })?;
                named(self.boundaries, word).map_err(|error| self.at("peer", "boundary", error))?
            }
        };
        let mut config = Config::new(boundary);
        config.folder = Some(folder.to_owned());
        // The name of a command may depend on the side.
        let (side, others): (Vec<_>, Vec<_>) = peer.iter().partition(|(key, _)| *key == "side");
        for (key, value) in side.into_iter().chain(others) {
            self.peer_key(&mut config, key, value).map_err(|error| self.at("peer", key, error))?;
        }
        if file.contains_key("features") {
            config.features = Some(std::collections::BTreeMap::new());
        }
        for (key, value) in table("features") {
            config.set_feature(key, json(value)).map_err(|error| self.at("features", key, error))?;
        }
        for (key, value) in table("roles") {
            config.set_role(key, json(value)).map_err(|error| self.at("roles", key, error))?;
        }
        for (key, value) in table("choices") {
            let word = match value {
                toml::Value::String(word) => word.clone(),
                other => other.to_string(),
            };
            config.set_choice(key, &word).map_err(|error| self.at("choices", key, error))?;
        }
        for (key, value) in table("limits") {
            let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
            let set = match number {
                Some(number) => config.set_limit(key, number),
                None => vocabulary::find(boundary, "limits", key).and_then(|_| {
                    Err(format!("the limit {key:?} must be a whole number, not {value}").into())
                }),
            };
            set.map_err(|error| self.at("limits", key, error))?;
        }
        config.side().map_err(|error| self.at("peer", "", error))?;
        Ok(config)
    }

    fn peer_key(&self, config: &mut Config, key: &str, value: &toml::Value) -> Result<(), Misconfigured> {
        let known = vocabulary::find(config.boundary, "peer", key)?;
        if !matches!(known.form, KeyForm::General(_)) {
            if key == HTTP
                && let Some(table) = value.as_table()
            {
                config.ready = table.get("ready").map(ready).transpose()?;
                return config.set_command(key, http_command(table)?);
            }
            let argv = strings(value).ok_or_else(|| {
                format!("`{key}` must be a list of strings, one per argument (no shell is used), not {value}")
            })?;
            return config.set_command(key, argv);
        }
        let word = || {
            let word = value.as_str().ok_or_else(|| format!("`{key}` must be a string, not {value}"))?;
            vocabulary::check_choice(&known, word).map(|()| word.to_owned())
        };
        match key {
            "name" => config.name = Some(word()?),
            "side" => {
                config.side =
                    Some(if word()? == Side::Consumer.word() { Side::Consumer } else { Side::Provider });
            }
            "env" => {
                let table = value.as_table().ok_or_else(|| format!("`env` must be a table, not {value}"))?;
                for (name, value) in table {
                    let text = value
                        .as_str()
                        .ok_or_else(|| format!("the variable {name:?} must be a string, not {value}"))?;
                    config.env.insert(name.clone(), text.to_owned());
                }
            }
            "pass_env" => {
                config.pass_env = strings(value)
                    .ok_or_else(|| format!("`pass_env` must be a list of names, not {value}"))?;
            }
            "cwd" => {
                let folder = config.folder.clone().unwrap_or_default();
                config.cwd = Some(folder.join(word()?));
            }
            "requirements" => config.requirements = Some(word()?),
            // `boundary` was read before. Each of the others has one value so far, which is also the default.
            _ => {
                word()?;
            }
        }
        Ok(())
    }
}

/// Parses the readiness of a server.
fn ready(value: &toml::Value) -> Result<Vec<String>, Misconfigured> {
    let one = value.as_table().filter(|table| table.len() == 1).and_then(|table| table.iter().next());
    let told = one.and_then(|(how, text)| Some((how, text.as_str()?)));
    let told = told.filter(|(how, text)| match how.as_str() {
        "stdout" | "stderr" => !text.is_empty(),
        "get" => text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()),
        _ => false,
    });
    let (how, text) = told.ok_or_else(|| {
        format!(
            "`ready` of `http` must be {{ stdout = \"text\" }}, {{ stderr = \"text\" }} or {{ get = \"/path\" }}, not {value}"
        )
    })?;
    Ok(vec![how.clone(), text.to_owned()])
}

/// URL, if given, followed by the command.
fn http_command(table: &Table) -> Result<Vec<String>, Misconfigured> {
    let mut argv = Vec::new();
    if let Some(unknown) = table.keys().find(|key| !["command", "url", "ready"].contains(&key.as_str())) {
        return Err(format!(
            "`http` has no {unknown:?}; it is a list of strings, or a table with command, url and ready"
        )
        .into());
    }
    if let Some(url) = table.get("url") {
        let url = url.as_str().filter(|url| url.starts_with(URL_PREFIX));
        argv.push(
            url.ok_or("`url` of `http` must be an address such as \"http://127.0.0.1:8080/\"")?.to_owned(),
        );
    }
    if let Some(command) = table.get("command") {
        let command = strings(command).filter(|argv| !argv.is_empty());
        argv.extend(command.ok_or("`command` of `http` must be a list of strings, one per argument")?);
    }
    Ok(argv)
}

fn strings(value: &toml::Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Converts a value to JSON; dates become text.
fn json(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => Value::from(*number),
        toml::Value::Boolean(flag) => Value::from(*flag),
        toml::Value::Datetime(date) => Value::from(date.to_string()),
        toml::Value::Array(items) => items.iter().map(json).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.iter().map(|(name, value)| (name.clone(), json(value))).collect())
        }
    }
}
