//! Generated parts of the documentation, and the addresses of its pages.

use std::fmt::Write as _;

use crate::table;
use peerproof_engine::boundary::{Boundary, ConfigKey};
use peerproof_engine::clause::{Clause, ClauseId};
use peerproof_engine::config;
use peerproof_engine::text::one_line;

/// Address of the documentation.
pub const BOOK: &str = "https://peerproof.github.io/peerproof";
/// Line behind which a contract page lists its clauses.
pub const CLAUSES_MARK: &str = "<!-- clauses: generated -->";
/// Line behind which the page of the configuration lists its keys.
pub const KEYS_MARK: &str = "<!-- keys: generated -->";

/// Source documents: the word that `source` of a clause begins with, the title, and the public address, if any.
const DOCUMENTS: [(&str, &str, Option<&str>); 7] = [
    ("spec", "JSON-RPC 2.0 Specification", Some("https://www.jsonrpc.org/specification")),
    ("RFC", "RFC", Some("https://www.rfc-editor.org/rfc/rfc8259")),
    ("rpc", "JSON-RPC Communication Protocol", None),
    ("ipc", "IPC JSON Schema", None),
    ("policy", "Policy Driver", None),
    ("envelope", "Envelope State Exchange JSON Schema", None),
    ("pytool", "Python Tool Protocol", None),
];
/// Word of a source that is peerproof's own page about the boundary.
const READINGS: &str = "readings";

/// Address of the section about a clause in the contract page of its boundary; `None` for a clause of no known boundary.
pub fn clause_url(id: &ClauseId) -> Option<String> {
    let is_of = |boundary: &&'static dyn Boundary| boundary.clauses().iter().any(|clause| clause.id == *id);
    let boundary = table::all().into_iter().find(is_of)?;
    Some(format!("{BOOK}/contract/{}.html#{}", boundary.name(), id.0.to_lowercase()))
}

/// Address of a document that sources of clauses name by `word`.
fn document(word: &str) -> Option<(&'static str, Option<&'static str>)> {
    DOCUMENTS.iter().find(|(known, ..)| *known == word).map(|(_, title, url)| (*title, *url))
}

/// Sources of a clause by title, with addresses of public documents.
pub fn sources(clause: &Clause) -> String {
    let mut parts: Vec<String> = Vec::new();
    for part in clause.source.split(';').map(str::trim) {
        let (word, place) = part.split_once(' ').unwrap_or((part, ""));
        let text = match document(word) {
            Some((title, None)) => format!("{title} {place}"),
            Some((title, Some(url))) => format!("{title} {place} ({url})"),
            None if word == READINGS => "peerproof's contract page".to_owned(),
            None => part.to_owned(),
        };
        let text = text.trim().to_owned();
        if !parts.contains(&text) {
            parts.push(text);
        }
    }
    parts.join("; ")
}

/// Markdown sections about all clauses of a boundary, in the order of its table.
pub fn clauses(boundary: &dyn Boundary) -> String {
    let mut out = String::from(
        "\n## Clauses\n\nA clause is one rule that peerproof checks. MUST clauses decide the exit status; SHOULD clauses do with \
         `--strict`. OPEN clauses allow several behaviours: peerproof records the observed one, and another is a broken \
         MUST. `peerproof explain ID` lists the checks of a clause.\n",
    );
    for clause in boundary.clauses() {
        let _ = writeln!(out, "\n### {}\n", clause.id);
        let mut head = vec![
            format!("**{}**", clause.level.word().to_uppercase()),
            clause.side.word().to_owned(),
            clause.modes.join(", "),
        ];
        head.extend(clause.feature.iter().map(|feature| format!("feature `{feature}`")));
        let _ = writeln!(out, "{}\n\n{}\n", head.join(" · "), markdown(&clause.text));
        let mut item = |name: &str, text: String| {
            let _ = writeln!(out, "- {name}: {text}");
        };
        if let Some(reading) = &clause.reading {
            item("Reading", markdown(reading));
        }
        if !clause.allowed.is_empty() {
            let words: Vec<String> = clause.allowed.iter().map(|word| format!("`{word}`")).collect();
            item("Allowed", words.join(", "));
        }
        if let Some(choice) = &clause.choice {
            item("Set by", format!("`{choice}` under `[choices]`"));
        }
        if let Some(excluded) = &clause.excluded {
            item("Not checked", markdown(excluded));
        }
        item("Source", markdown(&sources(clause)));
    }
    out
}

/// Markdown tables of all keys of `peerproof.toml`: those of every boundary first, then each boundary's own.
pub fn keys(boundaries: &[&'static dyn Boundary]) -> String {
    let mut out = String::from("\n## Keys of every boundary\n");
    let general = |key: &ConfigKey| config::is_general(key.name) && key.table == "peer";
    if let Some(boundary) = boundaries.first() {
        let keys = config::keys(*boundary);
        rows("peer", keys.iter().filter(|key| general(key)), &mut out);
    }
    for boundary in boundaries {
        let _ = writeln!(out, "\n## {}\n\n{}", boundary.name(), markdown(boundary.summary()));
        let keys = config::keys(*boundary);
        for name in config::TABLES {
            let own = keys.iter().filter(|key| key.table == name && !general(key));
            rows(name, own, &mut out);
        }
    }
    out
}

fn rows<'k>(name: &str, keys: impl Iterator<Item = &'k ConfigKey>, out: &mut String) {
    let mut keys = keys.peekable();
    if keys.peek().is_none() {
        return;
    }
    let _ = writeln!(out, "\n**`[{name}]`**\n\n| key | values | meaning |\n|---|---|---|");
    for key in keys {
        let values = if key.values.is_empty() { key.members } else { key.values };
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        let cell = |text: &str| text.replace('|', "\\|");
        let (values, meaning) = (cell(&values.join(", ")), cell(&markdown(key.meaning)));
        let _ = writeln!(out, "| `{}` | {values} | {meaning} |", key.name);
    }
}

/// Text of ours as Markdown: backticks stay, and angle brackets outside of them are escaped.
fn markdown(text: &str) -> String {
    let mut is_code = false;
    let mut out = String::new();
    for c in one_line(text).chars() {
        match c {
            '`' => is_code = !is_code,
            '<' if !is_code => {
                out.push_str("&lt;");
                continue;
            }
            '*' | '_' | '[' | ']' if !is_code => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}
