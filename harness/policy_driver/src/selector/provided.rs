//! Judge of a driver's environment, apart from its payload: arguments, variables, resource limits and standard
//! input. The driver reports them itself.

pub(crate) use super::expect::Provided;
use super::sent_requests::SentRequest;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::finding::{Finding, Judgement};
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{EventKind, SightResult, Transcript};

/// Clause about standard input, for every driver that looks at it.
const STDIN: &str = "PD-CMD-04";

/// Row of the limit that does not apply to root.
pub(crate) const PROCESSES: &str = "Max processes";

/// Judges the environment of one request's driver. `fell_back` is true if the Selection is the fallback, so the
/// driver failed.
pub(super) fn judge(
    asked: &SentRequest,
    session: usize,
    fell_back: bool,
    transcript: &Transcript,
    judgement: &mut Judgement,
) {
    let events = transcript.events[asked.from..asked.to].iter().filter(|event| event.session == session);
    let kinds: Vec<&EventKind> = events.map(|event| &event.kind).collect();
    let seen = || {
        kinds.iter().filter_map(|kind| match kind {
            EventKind::ActorSaw { seen, .. } => Some(seen),
            _ => None,
        })
    };
    for provided in &asked.expect.provided {
        let finding = match provided {
            Provided::Words { clause, words } => kinds.iter().find_map(|kind| match kind {
                EventKind::ActorStarted { argv, .. } => wrong_words(clause, words, argv),
                EventKind::ActorSaw { seen: SightResult::NoPayload { path, error }, .. } => {
                    let expected = "the path of the payload as the last argument";
                    let got = format!("{}: {error}", shorten(path, 160));
                    Some(Finding::new(clause.0.as_str(), "no_payload_path", expected, got))
                }
                _ => None,
            }),
            Provided::Variable { clause, name, part } => seen().find_map(|seen| {
                let value = variable(seen, name)?;
                let is_right = value.as_ref().is_some_and(|value| value.contains(part.as_str()));
                (!is_right).then(|| {
                    let expected = format!("the driver sees {name} with {part:?}");
                    let got = value.map_or("not set".to_owned(), |value| shorten(&value, 160).into_owned());
                    Finding::new(clause.0.as_str(), "no_variable", expected, got)
                })
            }),
            Provided::NoVariable { clause, name } => seen().find_map(|seen| {
                let value = variable(seen, name)??;
                let expected = format!("the driver does not see {name}");
                Some(Finding::new(clause.0.as_str(), "variable", expected, shorten(&value, 160)))
            }),
            Provided::Raised { clause, row, default } => {
                // A driver whose block is taken reached its goal, whatever its limits; that of processes does not
                // apply to root.
                let is_default = found_limit(seen(), row).is_some_and(|found| found == default.to_string());
                (is_default && fell_back).then(|| {
                    let expected =
                        format!("a limit ({row}) above the default of {default}, as the variable sets it");
                    Finding::new(
                        clause.0.as_str(),
                        "limit_not_raised",
                        expected,
                        "the default limit, and the driver failed",
                    )
                })
            }
            Provided::Limit { clause, row, soft, is_tried } => {
                let found = found_limit(seen(), row);
                let is_root =
                    seen().any(|seen| matches!(seen, SightResult::Status { text } if is_of_root(text)));
                match found {
                    // The driver did not get so far; the Selection shows that.
                    None => None,
                    Some(found) if found == soft.to_string() || fell_back => None,
                    Some(_) if !is_tried => {
                        let why =
                            format!("the soft limit is not {soft}, and this check does not try its effect");
                        judgement.untestable = Some(why.into());
                        None
                    }
                    Some(_) if row == PROCESSES && is_root => {
                        let why = Untestable::new(
                            Untestable::MACHINE,
                            "the system does not limit the processes of root, and the soft limit has \
                             another value",
                        );
                        judgement.untestable = Some(why);
                        None
                    }
                    Some(found) => {
                        let expected = format!("soft limit {soft} ({row}), or a driver that fails beyond it");
                        Some(Finding::new(
                            clause.0.as_str(),
                            "no_limit",
                            expected,
                            format!("soft limit {found}, and the driver did not fail"),
                        ))
                    }
                }
            }
        };
        judgement.findings.extend(finding);
    }
}

/// Judges the standard input of all drivers that looked at it.
pub(super) fn judge_stdin(session: usize, transcript: &Transcript, judgement: &mut Judgement) {
    let found = transcript.of(session).find_map(|event| match &event.kind {
        EventKind::ActorSaw { seen: SightResult::Stdin { bytes, .. }, .. } if !bytes.0.is_empty() => {
            Some(bytes)
        }
        _ => None,
    });
    if let Some(bytes) = found {
        let expected = "an empty standard input of the driver";
        let got = shorten(&String::from_utf8_lossy(&bytes.0), 160).into_owned();
        judgement.findings.push(Finding::new(STDIN, "bytes_on_stdin", expected, got));
    }
}

fn wrong_words(clause: &ClauseId, words: &[String], argv: &[String]) -> Option<Finding> {
    let is_same = |word: &String, given: &String| match word.split_once("{{folder}}") {
        Some((begin, end)) => given.starts_with(begin) && given.ends_with(end),
        None => given == word,
    };
    let is_right =
        argv.len() == words.len() + 1 && words.iter().zip(argv).all(|(word, given)| is_same(word, given));
    (!is_right).then(|| {
        let expected = format!("the arguments {words:?}, then the path of the payload");
        Finding::new(clause.0.as_str(), "other_words", expected, shorten(&format!("{argv:?}"), 400))
    })
}

/// Value of a variable: inner `None` if it is absent, outer `None` if `seen` is not an environment.
fn variable(seen: &SightResult, name: &str) -> Option<Option<String>> {
    let SightResult::Environment { bytes } = seen else { return None };
    let mut values = bytes.0.split(|byte| *byte == 0).filter_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    });
    Some(values.next_back())
}

/// Soft limit of a row, as a driver saw it.
fn found_limit<'s>(mut seen: impl Iterator<Item = &'s SightResult>, row: &str) -> Option<String> {
    seen.find_map(|seen| match seen {
        SightResult::Limits { text } => soft_limit(text, row),
        _ => None,
    })
}

/// Soft limit of a row as text.
fn soft_limit(text: &str, row: &str) -> Option<String> {
    let rest = text.lines().find_map(|line| line.strip_prefix(row))?;
    rest.split_whitespace().next().map(str::to_owned)
}

fn is_of_root(status: &str) -> bool {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.is_some_and(|ids| ids.split_whitespace().next() == Some("0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::transcript::Bytes;

    #[test]
    fn words_are_compared_one_by_one() {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let clause = ClauseId::from("C");
        let words = own(&["{{folder}}/a/b", "", "x y"]);
        assert_eq!(wrong_words(&clause, &words, &own(&["/tmp/q/a/b", "", "x y", "/tmp/p"])), None);
        for argv in [
            &["/tmp/q/a/c", "", "x y", "/tmp/p"][..],
            &["/tmp/q/a/b", "", "x y"],
            &["/tmp/q/a/b", "x y", "/tmp/p"],
            &["/tmp/q/a/b", "", "x", "y", "/tmp/p"],
        ] {
            assert!(wrong_words(&clause, &words, &own(argv)).is_some(), "{argv:?}");
        }
    }

    #[test]
    fn reads_what_the_system_tells() {
        let seen = SightResult::Environment { bytes: Bytes(b"AB=1\0A=x=y\0".to_vec()) };
        assert_eq!(variable(&seen, "A"), Some(Some("x=y".to_owned())));
        assert_eq!(variable(&seen, "B"), Some(None));
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                      Max cpu time              unlimited            unlimited            seconds   \n\
                      Max open files            64                   128                  files     \n";
        assert_eq!(soft_limit(limits, "Max cpu time").as_deref(), Some("unlimited"));
        assert_eq!(soft_limit(limits, "Max open files").as_deref(), Some("64"));
        assert!(is_of_root("Name:\tx\nUid:\t0\t0\t0\t0\n") && !is_of_root("Uid:\t1000\t0\t0\t0\n"));
    }
}
