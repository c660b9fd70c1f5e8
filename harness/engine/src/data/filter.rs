//! Selection of the checks of a run.

use std::collections::BTreeSet;

use globset::{Glob, GlobMatcher};

use crate::data::blame::Misconfigured;
use crate::data::check::Check;
use crate::data::nearest::{did_you_mean, nearest};

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
            let hint = by_segments(&pattern.text, checks).unwrap_or_else(|| by_whole(&pattern.text, checks));
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

/// Suggestion for a pattern: the closest id, clause or name.
fn by_whole(text: &str, checks: &[&Check]) -> String {
    let ids = checks.iter().map(|check| check.id.as_str());
    let clauses = checks.iter().flat_map(|check| check.clauses.iter().map(|clause| clause.0.as_str()));
    let names = checks.iter().filter_map(|check| check.id.rsplit('/').next());
    did_you_mean(text, ids.chain(clauses).chain(names))
}

/// Maximum number of names that a suggestion lists.
const NAMES_MAX: usize = 8;

/// Suggestion for a pattern of several segments: the pattern with its wrong segments corrected, or the names at the place
/// of the first segment that resembles none. `None` if no such pattern matches.
fn by_segments(text: &str, checks: &[&Check]) -> Option<String> {
    let segments: Vec<&str> = text.trim_matches('/').split('/').collect();
    let mut ids: Vec<Vec<&str>> = checks.iter().map(|check| check.id.split('/').collect()).collect();
    let first = segments.first().filter(|_| segments.len() > 1)?;
    let begin = place_of(first, &ids)?;
    let mut corrected: Vec<&str> = Vec::new();
    for (at, segment) in (begin..).zip(&segments) {
        let names = names_at(at, &ids);
        let is_known = names.iter().any(matcher(segment)?);
        let near = || nearest(segment, names.iter().copied());
        let Some(name) = is_known.then_some(*segment).or_else(near) else {
            return listed(&names, &corrected.join("/"));
        };
        let is_it = matcher(name)?;
        ids.retain(|id| id.get(at).is_some_and(&is_it));
        corrected.push(name);
    }
    let corrected = corrected.join("/");
    let filter = Filter::new(std::slice::from_ref(&corrected)).ok()?;
    checks.iter().any(|check| filter.takes(check)).then(|| format!("; did you mean {corrected:?}?"))
}

/// Segment of ids to which the first segment of a pattern belongs; `None` if it resembles none.
fn place_of(first: &str, ids: &[Vec<&str>]) -> Option<usize> {
    let is_it = matcher(first)?;
    let places = || 0..ids.iter().map(Vec::len).max().unwrap_or(0);
    places()
        .find(|place| names_at(*place, ids).iter().any(&is_it))
        .or_else(|| places().find(|place| nearest(first, names_at(*place, ids)).is_some()))
}

fn names_at<'i>(place: usize, ids: &[Vec<&'i str>]) -> BTreeSet<&'i str> {
    ids.iter().filter_map(|id| id.get(place).copied()).collect()
}

/// Test of a segment of an id by one segment of a pattern.
fn matcher(segment: &str) -> Option<impl Fn(&&str) -> bool> {
    let glob = Glob::new(segment).ok()?.compile_matcher();
    Some(move |name: &&str| glob.is_match(name))
}

/// List of the names in a folder of checks.
fn listed(names: &BTreeSet<&str>, folder: &str) -> Option<String> {
    let mut shown = names.iter().take(NAMES_MAX).copied().collect::<Vec<_>>().join(", ");
    if names.len() > NAMES_MAX {
        shown.push_str(&format!(" and {} more", names.len() - NAMES_MAX));
    }
    (!names.is_empty()).then(|| format!("; in {folder:?} there is: {shown}"))
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

    #[test]
    fn the_wrong_segment_of_a_pattern_is_corrected() {
        let mut checks =
            vec![check("toy/serve/json/nan", "TOY-JSON-01"), check("toy/run/end/status", "TOY-END-01")];
        checks.extend((0..9).map(|at| check(&format!("toy/serve/time/n{at}"), "TOY-TIME-01")));
        let checks: Vec<&Check> = checks.iter().collect();
        let hint = |pattern: &str| {
            let filter = Filter::new(&[pattern.to_owned()]).unwrap();
            let sentence = filter.refuse_useless(&checks).unwrap_err().to_string();
            let hint = sentence.split_once("matches no check").unwrap().1;
            hint.strip_suffix(" (`peerproof list` shows them)").unwrap().to_owned()
        };
        assert_eq!(hint("toy/serv/*"), "; did you mean \"toy/serve/*\"?");
        assert_eq!(hint("toi/*/jsn/nan"), "; did you mean \"toy/*/json/nan\"?");
        assert_eq!(hint("serv/json"), "; did you mean \"serve/json\"?");
        assert_eq!(hint("json/nam"), "; did you mean \"json/nan\"?");
        assert_eq!(hint("toy/xyzzy/*"), "; in \"toy\" there is: run, serve");
        assert_eq!(
            hint("toy/serve/time/xyzzy"),
            "; in \"toy/serve/time\" there is: n0, n1, n2, n3, n4, n5, n6, n7 and 1 more"
        );
        assert_eq!(hint("TOY-JSN-01"), "; did you mean \"TOY-JSON-01\"?");
        assert_eq!(hint("xyzzy/*"), "", "nothing is like it");
    }
}
