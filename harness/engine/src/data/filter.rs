//! Selection of the checks of a run.

use globset::{Glob, GlobMatcher};

use crate::data::blame::Misconfigured;
use crate::data::check::Check;
use crate::data::nearest::did_you_mean;

/// Selection of checks that match any pattern; without patterns all checks.
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
    /// Makes a filter from patterns: globs on check ids (`toy/serve/json/*`) or clause ids (`TOY-FRAME-*`), or whole
    /// words of a check id (`nan`, `json/nan`; a folder such as `serve/json` selects all checks in it).
    ///
    /// # Errors
    /// Fails for an invalid glob.
    pub fn new(patterns: &[String]) -> Result<Self, Misconfigured> {
        let pattern = |text: &String| {
            let glob = Glob::new(text)
                .map_err(|error| format!("the filter {text:?} is not a valid pattern: {}", error.kind()))?;
            Ok(Pattern { text: text.clone(), glob: glob.compile_matcher() })
        };
        Ok(Self { patterns: patterns.iter().map(pattern).collect::<Result<_, Misconfigured>>()? })
    }

    /// Refuses a pattern that matches nothing in `checks`.
    ///
    /// # Errors
    /// Names the first such pattern and the closest id.
    pub fn refuse_useless(&self, checks: &[&Check]) -> Result<(), Misconfigured> {
        for pattern in &self.patterns {
            if checks.iter().any(|check| pattern.matches(check)) {
                continue;
            }
            let ids = checks.iter().map(|check| check.id.as_str());
            let clauses =
                checks.iter().flat_map(|check| check.clauses.iter().map(|clause| clause.0.as_str()));
            let names = checks.iter().filter_map(|check| check.id.rsplit('/').next());
            let hint = did_you_mean(&pattern.text, ids.chain(clauses).chain(names));
            return Err(format!(
                "the filter {:?} matches no check{hint} (`peerproof list` shows them)",
                pattern.text
            )
            .into());
        }
        Ok(())
    }

    /// True if `check` is selected.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, clause: &str) -> Check {
        Check::new(id, "t", [clause], "serve", |_, _| Err("no plan".into()))
    }

    #[test]
    fn patterns_are_globs_folders_names_and_clauses() {
        let check = check("toy/serve/json/nan", "TOY-JSON-01");
        for pattern in [
            "toy/serve/json/nan",
            "toy/*/nan",
            "*json*",
            "toy/serve",
            "toy/serve/",
            "serve",
            "serve/json",
            "nan",
            "json/nan",
            "TOY-JSON-01",
            "TOY-JSON-*",
        ] {
            let filter = Filter::new(&[pattern.to_owned()]).unwrap();
            assert!(filter.takes(&check), "{pattern}");
        }
        for pattern in ["toy/serve/js", "an", "TOY-JSON-0", "erve/json", "/"] {
            let filter = Filter::new(&[pattern.to_owned()]).unwrap();
            assert!(!filter.takes(&check), "{pattern}");
            assert!(filter.refuse_useless(&[&check]).is_err(), "{pattern}");
        }
        let near = Filter::new(&["toy/serve/json/nam".to_owned()]).unwrap();
        let sentence = near.refuse_useless(&[&check]).unwrap_err().to_string();
        assert!(sentence.contains("did you mean \"toy/serve/json/nan\"?"), "{sentence}");
        assert!(Filter::new(&["[".to_owned()]).is_err());
    }
}
