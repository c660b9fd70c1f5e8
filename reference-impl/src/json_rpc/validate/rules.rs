//! The rules that `validate_code` knows by name.

use std::borrow::Cow;
use std::collections::HashMap;

use super::source::{Part, parts};
use super::{Family, Problem, Severity, distinct};
use crate::json_rpc::execute::clipped;

/// Longest line in characters that `max-len` accepts.
const LINE_CHARS_MAX: usize = 120;
/// Largest number of problems from one rule.
const FOUND_MAX: usize = 100;

/// Languages of a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RuleLanguages {
    Script,
    Text,
}

type Apply = fn(&Words<'_>, &mut dyn FnMut(String, usize));

const RULES: [(&str, RuleLanguages, Apply); 9] = [
    ("no-unused-vars", RuleLanguages::Script, unused_variables),
    ("no-console", RuleLanguages::Script, |words, see| words.each("console", "console is used", see)),
    ("no-debugger", RuleLanguages::Script, |words, see| words.each("debugger", "debugger is used", see)),
    ("no-eval", RuleLanguages::Script, |words, see| words.each("eval", "eval is used", see)),
    ("no-var", RuleLanguages::Script, |words, see| words.each("var", "var is used", see)),
    ("eqeqeq", RuleLanguages::Script, loose_equality),
    ("max-len", RuleLanguages::Text, long_lines),
    ("no-tabs", RuleLanguages::Text, |words, see| {
        for (at, _) in words.code.match_indices('\t').take(FOUND_MAX) {
            see("a tab".to_owned(), at);
        }
    }),
    ("no-trailing-spaces", RuleLanguages::Text, trailing_spaces),
];

/// Words of the code parts of a text, with their positions.
struct Words<'c> {
    code: &'c str,
    ranges: Vec<std::ops::Range<usize>>,
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

impl<'c> Words<'c> {
    fn all(&self) -> impl Iterator<Item = (usize, &'c str)> {
        self.ranges.iter().flat_map(|range| {
            let code = self.code.get(range.clone()).unwrap_or_default();
            let mut at = 0;
            std::iter::from_fn(move || {
                let bytes = code.as_bytes();
                while at < bytes.len() && !is_word(bytes[at]) {
                    at += 1;
                }
                let from = at;
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                code.get(from..at).filter(|word| !word.is_empty()).map(|word| (range.start + from, word))
            })
        })
    }

    fn each(&self, word: &str, message: &str, see: &mut dyn FnMut(String, usize)) {
        for (at, _) in self.all().filter(|(_, other)| *other == word).take(FOUND_MAX) {
            see(message.to_owned(), at);
        }
    }
}

/// Problems found by the requested rules. A rule that is unknown, repeated, or not meant for the language is a
/// warning, because a rule without effect is a mistake in the request.
pub(super) fn apply(code: &str, family: Family, names: &[Cow<'_, str>]) -> Vec<Problem> {
    let mut ranges = Vec::new();
    parts(code, family, |part, range| {
        if part == Part::Code {
            ranges.push(range);
        }
    });
    let words = Words { code, ranges };
    let mut problems = Vec::new();
    let warn = |rule, message| Problem { severity: Severity::Warning, rule, message, at: None };
    for (name, count) in distinct(names).into_iter().take(FOUND_MAX) {
        let shown = clipped(name);
        if count > 1 {
            problems.push(warn("unused-rule", format!("the rule {shown:?} is named {count} times")));
        }
        match RULES.iter().find(|(known, _, _)| *known == name) {
            None => problems.push(warn("undefined-rule", format!("there is no rule {shown:?}"))),
            Some((_, RuleLanguages::Script, _)) if !matches!(family, Family::C { template: true, .. }) => {
                problems
                    .push(warn("unused-rule", format!("the rule {shown:?} does not apply to this language")));
            }
            Some((rule, _, find)) => find(&words, &mut |message, at| {
                problems.push(Problem { severity: Severity::Error, rule, message, at: Some(at) });
            }),
        }
    }
    problems
}

/// Reports names that are declared and never mentioned again.
fn unused_variables(words: &Words<'_>, see: &mut dyn FnMut(String, usize)) {
    let mut uses: HashMap<&str, usize> = HashMap::new();
    let mut declared = Vec::new();
    let mut after_keyword = false;
    for (at, word) in words.all() {
        *uses.entry(word).or_default() += 1;
        if after_keyword {
            declared.push((at, word));
        }
        after_keyword = matches!(word, "let" | "const" | "var");
    }
    let unused = declared.into_iter().filter(|(_, name)| uses.get(name) == Some(&1));
    for (at, name) in unused.take(FOUND_MAX) {
        see(format!("{:?} is never used", clipped(name)), at);
    }
}

fn loose_equality(words: &Words<'_>, see: &mut dyn FnMut(String, usize)) {
    for range in &words.ranges {
        let code = words.code.get(range.clone()).unwrap_or_default();
        for (at, found) in code.match_indices(['=', '!']).take(FOUND_MAX) {
            let before = at.checked_sub(1).and_then(|at| code.as_bytes().get(at));
            let rest = code.get(at + found.len()..).unwrap_or_default();
            let begins = !matches!(before, Some(b'=' | b'!' | b'<' | b'>'));
            if begins && rest.starts_with('=') && !rest.starts_with("==") {
                see(format!("{found}= compares loosely"), range.start + at);
            }
        }
    }
}

fn lines(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    code.split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line.trim_end_matches(['\n', '\r']))
    })
}

fn long_lines(words: &Words<'_>, see: &mut dyn FnMut(String, usize)) {
    let long = lines(words.code).filter(|(_, line)| line.chars().count() > LINE_CHARS_MAX);
    for (at, _) in long.take(FOUND_MAX) {
        see(format!("the line has more than {LINE_CHARS_MAX} characters"), at);
    }
}

fn trailing_spaces(words: &Words<'_>, see: &mut dyn FnMut(String, usize)) {
    let trailing = lines(words.code).filter(|(_, line)| line.ends_with([' ', '\t']));
    for (at, line) in trailing.take(FOUND_MAX) {
        see("white space at the end of the line".to_owned(), at + line.trim_end().len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JS: Family = Family::C { template: true, lifetimes: false };

    fn found(code: &str, family: Family, names: &[&str]) -> Vec<(&'static str, Option<usize>)> {
        let names: Vec<_> = names.iter().map(|name| Cow::Borrowed(*name)).collect();
        apply(code, family, &names).into_iter().map(|problem| (problem.rule, problem.at)).collect()
    }

    #[test]
    fn rules_find_what_they_are_for() {
        let code = "let a = 1; const b = a == 2; // console\nconsole.log('debugger');\t";
        assert_eq!(found(code, JS, &["no-unused-vars"]), [("no-unused-vars", Some(17))]);
        assert_eq!(found(code, JS, &["no-console"]), [("no-console", Some(40))]);
        assert_eq!(found(code, JS, &["eqeqeq"]), [("eqeqeq", Some(23))]);
        assert_eq!(found(code, JS, &["no-debugger"]), []);
        assert_eq!(found(code, JS, &["no-tabs", "no-trailing-spaces"]).len(), 2);
        assert_eq!(found("a === b; a !== b; a <= b; c = d", JS, &["eqeqeq"]), []);
        assert_eq!(found(&"x".repeat(121), JS, &["max-len"]), [("max-len", Some(0))]);
        assert_eq!(found(&"é".repeat(120), JS, &["max-len"]), []);
        assert_eq!(found(&format!("x\n{}", "x".repeat(121)), JS, &["max-len"]), [("max-len", Some(2))]);
        assert_eq!(found("a\nb  \n", JS, &["no-trailing-spaces"]), [("no-trailing-spaces", Some(3))]);
        assert_eq!(found("a >= b; /* == */ a != b", JS, &["eqeqeq"]), [("eqeqeq", Some(19))]);
    }

    #[test]
    fn names_are_whole() {
        for name in ["a_", "a$", "a1", "aé"] {
            let code = format!("let {name} = 1; f(a)");
            assert_eq!(found(&code, JS, &["no-unused-vars"]), [("no-unused-vars", Some(4))], "{name}");
        }
    }

    #[test]
    fn rules_that_do_nothing_are_named() {
        let names = ["no-such-rule", "no-tabs", "no-tabs", "no-console"];
        let python = Family::Hash { triple: true };
        assert_eq!(
            found("x", python, &names),
            [("undefined-rule", None), ("unused-rule", None), ("unused-rule", None)]
        );
    }
}
