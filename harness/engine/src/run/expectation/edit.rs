//! Text edits of expectations files that keep comments and order.

use std::collections::BTreeSet;

use super::{Expectations, can_be_expected, reasons, word};
use crate::data::blame::Misconfigured;
use crate::run::verdict::CheckResult;

const HEAD: &str = "\
# Known failures. An expected failure still runs; a check that passes, fails for another reason or does not exist, and
# an entry that has expired, make `peerproof check` exit with 3. `issue` and `expires` (\"2027-01-31\", the last day)
# are optional; `check` may be a glob.
";

/// Text of a file that expects every failure in `results`.
pub fn init(results: &[CheckResult]) -> String {
    add(HEAD, &Expectations::default(), results)
}

/// Adds an entry to `text` for every failure that `expectations` (parsed from `text`) does not cover.
pub fn add(text: &str, expectations: &Expectations, results: &[CheckResult]) -> String {
    let mut out = text.to_owned();
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    for result in results.iter().filter(|result| can_be_expected(&result.verdict)) {
        for reason in reasons(result) {
            if expectations.covering(result, reason).is_some() {
                continue;
            }
            out.push_str(&format!(
                "\n[[expect]]\ncheck = {}\nverdict = {}\nreason = {}\n",
                literal(&result.id),
                literal(word(result)),
                literal(reason)
            ));
        }
    }
    out
}

/// Quotes a text for TOML.
fn literal(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Removes the entries at these indices from `text`, with the comments directly above them.
///
/// # Errors
/// Fails if the entries cannot be located in the text.
pub fn remove(
    text: &str,
    expectations: &Expectations,
    gone: &BTreeSet<usize>,
) -> Result<String, Misconfigured> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut begins = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let words: String = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        if words == "[[expect]]" {
            let above = lines[..number].iter().rev().take_while(|line| line.trim_start().starts_with('#'));
            begins.push(number - above.count());
        }
    }
    if begins.len() != expectations.entries.len() {
        return Err("the entries cannot be told apart; write each one below a line [[expect]]".into());
    }
    let mut out: String = lines[..begins.first().copied().unwrap_or(lines.len())].concat();
    for (entry, begin) in begins.iter().enumerate() {
        if !gone.contains(&entry) {
            out.push_str(&lines[*begin..begins.get(entry + 1).copied().unwrap_or(lines.len())].concat());
        }
    }
    Ok(out)
}
