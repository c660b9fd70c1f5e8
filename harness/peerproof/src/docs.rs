//! Generated parts of the documentation.

use peerproof_engine::contract::boundary::{Boundary, ConfigKey, KeyForm};
use peerproof_engine::data::text::one_line;
use peerproof_engine::drive::config;
use std::fmt::Write as _;

/// Marker after which a contract page lists its clauses.
pub const CLAUSES_MARK: &str = "<!-- clauses: generated -->";
/// Marker after which the page of the configuration lists its keys.
pub const KEYS_MARK: &str = "<!-- keys: generated -->";

/// Markdown sections about all clauses of a boundary, in table order.
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
        item("Source", markdown(&clause.source));
    }
    out
}

/// Markdown tables of all keys of `peerproof.toml`: common keys first, then each boundary's own.
pub fn keys(boundaries: &[&'static dyn Boundary]) -> String {
    let mut out = String::from("\n## Keys of every boundary\n");
    let all: Vec<Vec<ConfigKey>> = boundaries.iter().map(|boundary| config::keys(*boundary)).collect();
    let is_general = |key: &ConfigKey| matches!(key.form, KeyForm::General(_));
    let is_common = |key: &ConfigKey| is_general(key) && all.iter().all(|keys| keys.contains(key));
    if let Some(keys) = all.first() {
        rows("peer", keys.iter().filter(|key| is_common(key)), &mut out);
    }
    // A general key with one value is nothing to choose.
    let is_own = |key: &ConfigKey| !is_general(key) || !is_common(key) && key.words().len() > 1;
    for (boundary, keys) in boundaries.iter().zip(&all) {
        let _ = writeln!(out, "\n## {}\n\n{}", boundary.name(), markdown(boundary.description().summary));
        for name in config::TABLES {
            let own = keys.iter().filter(|key| key.table() == name && is_own(key));
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
        let values = key.shown_values();
        let values = if values.is_empty() { key.shown_members() } else { values };
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        let cell = |text: &str| text.replace('|', "\\|");
        let (values, meaning) = (cell(&values.join(", ")), cell(&markdown(key.meaning)));
        let _ = writeln!(out, "| `{}` | {values} | {meaning} |", key.name);
    }
}

/// Converts our text to Markdown: keeps backticks and escapes angle brackets outside of them.
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
