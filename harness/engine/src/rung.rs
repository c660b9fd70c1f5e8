//! Rungs: the distance of a check from what a correct counterpart sends.

use std::fmt;
use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::blame::Misconfigured;

/// The distance of a check from what a correct counterpart sends, the nearest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// A correct counterpart sends this.
    #[default]
    Ordinary,
    /// A counterpart with a fault sends this: text that is no JSON, members that are missing or of a wrong type.
    Malformed,
    /// An enemy, or a machine in trouble, sends this: floods, deep nesting, inputs about the limits, bodies that are cut.
    Hostile,
}

impl Rung {
    /// All rungs, the nearest first.
    pub const ALL: [Self; 3] = [Self::Ordinary, Self::Malformed, Self::Hostile];

    /// The word for it in reports and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ordinary => "ordinary",
            Self::Malformed => "malformed",
            Self::Hostile => "hostile",
        }
    }

    /// True of the rung that results leave out.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for Rung {
    type Err = Misconfigured;

    fn from_str(word: &str) -> Result<Self, Misconfigured> {
        let known = Self::ALL.into_iter().find(|rung| rung.word() == word);
        known.ok_or_else(|| {
            format!("{word:?} is not a rung; the rungs are: {}", Self::ALL.map(Self::word).join(", ")).into()
        })
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The rungs of the checks of one boundary.
#[derive(Debug)]
pub struct Rungs(Vec<(GlobMatcher, Rung)>);

impl Rungs {
    /// Reads the table of the boundary `name`: globs on ids of checks behind that name.
    pub fn new(name: &str, rows: &[(&str, Rung)]) -> Self {
        let row = |(pattern, rung): &(&str, Rung)| {
            let glob = Glob::new(&format!("{name}/{pattern}")).ok()?;
            Some((glob.compile_matcher(), *rung))
        };
        Self(rows.iter().filter_map(row).collect())
    }

    /// The rung of a check: that of the first row that its id fits; [`Rung::Ordinary`] where none does.
    pub fn of_check(&self, id: &str) -> Rung {
        self.0.iter().find(|(glob, _)| glob.is_match(id)).map_or(Rung::Ordinary, |(_, rung)| *rung)
    }
}
