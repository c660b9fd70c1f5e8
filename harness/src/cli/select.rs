//! Which checks a run is about.

use std::str::FromStr;

use globset::{Glob, GlobMatcher};
use sha2::{Digest as _, Sha256};

use super::{Stop, did_you_mean};
use crate::boundary::Boundary;
use crate::check::Check;
use crate::clause::Side;
use crate::config::commands_by_side;

/// The checks for peers of `side`, in the order in which they run.
pub fn of_side(boundary: &'static dyn Boundary, side: Side) -> Vec<&'static Check> {
    let commands: Vec<&str> = commands_by_side(boundary)
        .into_iter()
        .filter(|(other, _)| *other == side)
        .flat_map(|(_, names)| names)
        .collect();
    boundary.checks().iter().filter(|check| commands.contains(&check.command.as_str())).collect()
}

/// Which checks are wanted: those that match any pattern, or all where there is none.
#[derive(Debug, Default)]
pub struct Filter {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    text: String,
    glob: GlobMatcher,
}

impl Filter {
    /// A filter of these patterns: globs on ids of checks (`toolhost/serve/json/*`) or of clauses (`TH-FRAME-*`), or whole
    /// words of an id (`nan`, `json/nan`; a folder such as `serve/json` stands for all in it).
    ///
    /// # Errors
    /// A pattern is no glob.
    pub fn new(patterns: &[String]) -> Result<Self, Stop> {
        let pattern = |text: &String| {
            let glob = Glob::new(text)
                .map_err(|error| Stop::usage(format!("--filter {text:?} is no pattern: {}", error.kind())))?;
            Ok(Pattern { text: text.clone(), glob: glob.compile_matcher() })
        };
        Ok(Self { patterns: patterns.iter().map(pattern).collect::<Result<_, Stop>>()? })
    }

    /// Refuses patterns that match nothing in `checks`.
    ///
    /// # Errors
    /// Names the first such pattern and the id that is nearest to it.
    pub fn refuse_useless(&self, checks: &[&Check]) -> Result<(), Stop> {
        for pattern in &self.patterns {
            if checks.iter().any(|check| pattern.matches(check)) {
                continue;
            }
            let ids = checks.iter().map(|check| check.id.as_str());
            let clauses =
                checks.iter().flat_map(|check| check.clauses.iter().map(|clause| clause.0.as_str()));
            let names = checks.iter().filter_map(|check| check.id.rsplit('/').next());
            let hint = did_you_mean(&pattern.text, ids.chain(clauses).chain(names));
            return Err(Stop::usage(format!(
                "--filter {:?} matches no check{hint} (`peerproof list` shows them)",
                pattern.text
            )));
        }
        Ok(())
    }

    /// Whether `check` is wanted.
    pub fn takes(&self, check: &Check) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|pattern| pattern.matches(check))
    }
}

impl Pattern {
    fn matches(&self, check: &Check) -> bool {
        let words = format!("/{}/", self.text.trim_matches('/'));
        self.glob.is_match(&check.id)
            || format!("/{}/", check.id).contains(&words)
            || check.clauses.iter().any(|clause| self.glob.is_match(&clause.0))
    }
}

/// One part of a run that is spread over machines: `hash:k/n`, `k` from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: u64,
    parts: u64,
}

impl Shard {
    /// Which part it is, and of how many.
    pub fn numbers(self) -> (u64, u64) {
        (self.part, self.parts)
    }

    /// Whether the check called `id` belongs to it; the same on every machine and for ever.
    pub fn takes(self, id: &str) -> bool {
        let hash = Sha256::digest(id.as_bytes());
        let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number % self.parts + 1 == self.part
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = || {
            let (part, parts) = text.strip_prefix("hash:")?.split_once('/')?;
            Some((part.parse().ok()?, parts.parse().ok()?))
        };
        match numbers() {
            Some((part, parts)) if (1..=parts).contains(&part) => Ok(Self { part, parts }),
            _ => Err("it has to be hash:k/n with k from 1 to n, such as hash:1/4".to_owned()),
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hash:{}/{}", self.part, self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, clause: &str) -> Check {
        Check::new(id, "t", [clause], "serve", |_, _| Err("no plan".to_owned()))
    }

    #[test]
    fn patterns_are_globs_folders_names_and_clauses() {
        let check = check("toolhost/serve/json/nan", "TH-JSON-01");
        for pattern in [
            "toolhost/serve/json/nan",
            "toolhost/*/nan",
            "*json*",
            "toolhost/serve",
            "toolhost/serve/",
            "serve",
            "serve/json",
            "nan",
            "json/nan",
            "TH-JSON-01",
            "TH-JSON-*",
        ] {
            let filter = Filter::new(&[pattern.to_owned()]).unwrap();
            assert!(filter.takes(&check), "{pattern}");
        }
        for pattern in ["toolhost/serve/js", "an", "TH-JSON-0", "erve/json", "/"] {
            let filter = Filter::new(&[pattern.to_owned()]).unwrap();
            assert!(!filter.takes(&check), "{pattern}");
            assert!(filter.refuse_useless(&[&check]).is_err(), "{pattern}");
        }
        let near = Filter::new(&["toolhost/serve/json/nam".to_owned()]).unwrap();
        let stop = near.refuse_useless(&[&check]).unwrap_err();
        assert!(stop.message.contains("did you mean \"toolhost/serve/json/nan\"?"), "{stop}");
        assert!(Filter::new(&["[".to_owned()]).is_err());
    }

    #[test]
    fn every_check_is_in_exactly_one_shard() {
        let shards: Vec<Shard> = (1..=3).map(|part| format!("hash:{part}/3").parse().unwrap()).collect();
        for id in ["a", "b", "toolhost/serve/json/nan"] {
            assert_eq!(shards.iter().filter(|shard| shard.takes(id)).count(), 1, "{id}");
        }
        for bad in ["1/3", "hash:0/3", "hash:4/3", "hash:1/0", "hash:a/b"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        assert_eq!(shards[1].to_string(), "hash:2/3");
    }
}
