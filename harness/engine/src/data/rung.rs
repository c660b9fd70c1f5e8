//! Rungs: how unusual the input of a check is.

use std::fmt;
use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::data::blame::Misconfigured;

/// Distance of a check from the behaviour of a correct counterpart, the nearest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// Input that a correct counterpart sends.
    #[default]
    Ordinary,
    /// Input that a faulty counterpart sends: text that is not JSON, members that are missing or of a wrong type.
    Malformed,
    /// Input of an attacker or of a machine in trouble: floods, deep nesting, sizes around the limits, cut bodies.
    Hostile,
}

impl Rung {
    /// All rungs, the nearest first.
    pub const ALL: [Self; 3] = [Self::Ordinary, Self::Malformed, Self::Hostile];

    /// Word in reports and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Malformed => "malformed",
            Self::Hostile => "hostile",
        }
    }

    /// True for the rung that results omit.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for Rung {
    type Err = Misconfigured;

    fn from_str(word: &str) -> Result<Self, Misconfigured> {
        let known = Self::ALL.into_iter().find(|rung| rung.word() == word);
        known.ok_or_else(|| {
            format!("unknown rung {word:?}; the rungs are: {}", Self::ALL.map(Self::word).join(", ")).into()
        })
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Rungs of one boundary's checks.
#[derive(Debug)]
pub struct Rungs(Vec<(GlobMatcher, Rung)>);

impl Rungs {
    /// Builds the table of the boundary `name` from globs on check ids without that name.
    pub fn new(name: &str, rows: &[(&str, Rung)]) -> Self {
        let row = |(pattern, rung): &(&str, Rung)| {
            let glob = Glob::new(&format!("{name}/{pattern}")).ok()?;
            Some((glob.compile_matcher(), *rung))
        };
        Self(rows.iter().filter_map(row).collect())
    }

    /// Rung of a check, from the first row that matches its id, or else [`Rung::Ordinary`].
    pub fn of_check(&self, id: &str) -> Rung {
        self.0.iter().find(|(glob, _)| glob.is_match(id)).map_or(Rung::Ordinary, |(_, rung)| *rung)
    }
}
