//! `--budget FILE`: bounds that the figures of a peer must keep.
//!
//! ```toml
//! [rows."serve/64B/ping-pong/one-core"]
//! req_s_min = 50_000
//! p99_us_max = 100
//! req_s_of_echo_min = 0.5
//! ```

use crate::data::blame::Misconfigured;
use std::collections::BTreeMap;
use std::path::Path;

use globset::{Glob, GlobMatcher};

use super::BenchRow;
use super::figures::{Metric, Spread};

/// Bound on one figure.
#[derive(Debug, Clone)]
struct Bound {
    key: String,
    figure: Metric,
    of_echo: bool,
    is_least: bool,
    value: f64,
}

/// Bounds on rows.
#[derive(Debug, Clone)]
pub struct FigureBudget {
    rows: Vec<(String, GlobMatcher, Vec<Bound>)>,
}

/// Bound that was not kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Broken {
    /// Id of the row.
    pub row: String,
    /// Key in the file.
    pub key: String,
    /// Value in the file.
    pub bound: f64,
    /// Measured value; `None` if the row lacks the figure.
    pub got: Option<f64>,
}

/// Keys of a table: a figure, or its ratio to the calibration peer (`_of_echo`), with `_min` or `_max`. Each with its
/// figure, true for a ratio, and true for `_min`.
fn keys() -> Vec<(String, Metric, bool, bool)> {
    let mut keys = Vec::new();
    for figure in Metric::ALL {
        for (middle, of_echo) in [("", false), ("_of_echo", true)] {
            for (end, is_least) in [("_min", true), ("_max", false)] {
                if is_least == figure.more_is_better() {
                    keys.push((format!("{}{middle}{end}", figure.name()), figure, of_echo, is_least));
                }
            }
        }
    }
    keys
}

impl FigureBudget {
    /// Reads a file.
    ///
    /// # Errors
    /// One sentence that begins with the file's name.
    pub fn load(path: &Path) -> Result<Self, Misconfigured> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {name}: {error}"))?;
        Self::parse(&text).map_err(|error| error.of(name))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// One phrase.
    pub fn parse(text: &str) -> Result<Self, Misconfigured> {
        let table: toml::Table = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(0, |span| text[..span.start].lines().count().max(1));
            format!("line {line}: {}", error.message().lines().next().unwrap_or("it is not TOML"))
        })?;
        if let Some(other) = table.keys().find(|key| *key != "rows") {
            return Err(format!("unknown key {other:?}; bounds stand under [rows.\"ID\"]").into());
        }
        let tables = match table.get("rows") {
            Some(toml::Value::Table(rows)) if !rows.is_empty() => rows,
            Some(toml::Value::Table(_)) | None => {
                return Err("it has no bounds; write bounds under [rows.\"ID\"]".into());
            }
            Some(_) => return Err("`rows` is not a table; write bounds under [rows.\"ID\"]".into()),
        };
        let rows = tables.iter().map(|(pattern, value)| row(pattern, value)).collect::<Result<_, _>>()?;
        Ok(Self { rows })
    }

    /// Refuses a pattern that matches none of `ids`.
    ///
    /// # Errors
    /// Names the first such pattern.
    pub fn refuse_useless(&self, ids: &[String]) -> Result<(), Misconfigured> {
        match self.rows.iter().find(|(_, glob, _)| !ids.iter().any(|id| glob.is_match(id))) {
            None => Ok(()),
            Some((pattern, ..)) => {
                Err(format!("{pattern:?} matches no row of this run; its rows are {}", ids.join(", ")).into())
            }
        }
    }

    /// Finds the bounds that `rows` break.
    pub fn judge(&self, rows: &[BenchRow]) -> Vec<Broken> {
        let mut broken = Vec::new();
        for (_, glob, bounds) in &self.rows {
            for row in rows.iter().filter(|row| glob.is_match(&row.id)) {
                for bound in bounds {
                    let got = bound.measured(row).map(|spread| spread.median);
                    let holds =
                        got.is_some_and(
                            |got| {
                                if bound.is_least { got >= bound.value } else { got <= bound.value }
                            },
                        );
                    if !holds {
                        let (row, key) = (row.id.clone(), bound.key.clone());
                        broken.push(Broken { row, key, bound: bound.value, got });
                    }
                }
            }
        }
        broken
    }
}

impl Bound {
    fn measured(&self, row: &BenchRow) -> Option<Spread> {
        if self.of_echo { row.peer.ratio(&row.echo, self.figure) } else { row.peer.figure(self.figure) }
    }
}

fn row(pattern: &str, value: &toml::Value) -> Result<(String, GlobMatcher, Vec<Bound>), Misconfigured> {
    let glob = Glob::new(pattern)
        .map_err(|error| format!("{pattern:?} is not a valid pattern: {}", error.kind()))?;
    let toml::Value::Table(table) = value else {
        return Err(format!("[rows.{pattern:?}] is not a table").into());
    };
    let known = keys();
    let bounds: BTreeMap<String, Bound> = table
        .iter()
        .map(|(key, value)| {
            let Some((_, figure, of_echo, is_least)) = known.iter().find(|(name, ..)| name == key) else {
                let hint =
                    crate::data::nearest::did_you_mean(key, known.iter().map(|(name, ..)| name.as_str()));
                return Err(format!("unknown key {key:?} for {pattern:?}{hint}"));
            };
            let value = match value {
                toml::Value::Integer(value) => *value as f64,
                toml::Value::Float(value) if value.is_finite() => *value,
                _ => return Err(format!("{key} of {pattern:?} is not a number")),
            };
            let bound =
                Bound { key: key.clone(), figure: *figure, of_echo: *of_echo, is_least: *is_least, value };
            Ok((key.clone(), bound))
        })
        .collect::<Result<_, String>>()?;
    if bounds.is_empty() {
        return Err(format!("[rows.{pattern:?}] has no bounds").into());
    }
    Ok((pattern.to_owned(), glob.compile_matcher(), bounds.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read() {
        let text =
            "[rows.\"serve/*\"]\nreq_s_min = 10\np99_us_max = 1.5\ncpu_us_per_request_of_echo_max = 2\n";
        let budget = FigureBudget::parse(text).unwrap();
        let (pattern, glob, bounds) = &budget.rows[0];
        assert_eq!(pattern, "serve/*");
        assert!(glob.is_match("serve/64B/ping-pong/one-core"));
        assert_eq!(bounds.len(), 3);
        budget.refuse_useless(&["serve/a".to_owned()]).unwrap();
        assert!(budget.refuse_useless(&["run/a".to_owned()]).unwrap_err().to_string().contains("serve/*"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, word) in [
            ("", "has no bounds"),
            ("rows = 1", "not a table"),
            ("[row.x]\nreq_s_min = 1", "unknown key \"row\""),
            ("[rows.x]\n", "has no bounds"),
            ("[rows.x]\nreq_s_mni = 1", "did you mean \"req_s_min\"?"),
            ("[rows.x]\nreq_s_max = 1", "unknown key \"req_s_max\""),
            ("[rows.x]\nreq_s_min = \"1\"", "not a number"),
            ("[rows.x]\nreq_s_min = nan", "not a number"),
            ("[rows.\"[\"]\nreq_s_min = 1", "not a valid pattern"),
            ("[rows.x\n", "line 1"),
        ] {
            let error = FigureBudget::parse(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(word), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_was_not_measured_does_not_hold() {
        let budget = FigureBudget::parse("[rows.\"*\"]\nreq_s_min = 0\n").unwrap();
        let broken = budget.judge(&[BenchRow::planned("serve/a")]);
        assert_eq!(broken.len(), 1);
        assert_eq!(broken[0].got, None);
    }
}
