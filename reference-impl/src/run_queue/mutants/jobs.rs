//! Mutants of a worker that misjudge jobs.

use std::time::Duration;

use super::worker::{exits_at, tells};
use super::{Carried, Mutant, Rewrite, decides, disk, is_in, read};
use crate::json::{Policy, Value};
use crate::machine::Action;
use crate::mutant::{Seam, carrier, config};
use crate::refusal::Refusal;
use crate::run_log::RunRequest;
use crate::run_queue::choices::Choices;
use crate::run_queue::decisions;
use crate::run_queue::disk::{Entry, Fault, Kind, Op, OpResult};
use crate::run_queue::{Careful, Config, Treat};

/// Job that replaces a malformed one.
pub(super) const PLAIN: &[u8] = b"{\"goal_id\":\"g\"}";

/// Time for which a worker is busy with a special file.
const SPIN: Duration = Duration::from_millis(2_000);

/// Accepts malformed jobs for which `is_fine` returns true, as a plain job.
pub(super) fn lenient(
    text: &[u8],
    config: &Config,
    is_fine: impl Fn(&Value) -> bool,
) -> Result<RunRequest, Refusal> {
    decisions::read(text, config).or_else(|why| match Value::parse(text, 64, &Policy::default()) {
        Ok(value) if is_fine(&value) => decisions::read(PLAIN, config),
        _ => Err(why),
    })
}

/// Creates a mutant that accepts some malformed jobs.
macro_rules! reads {
    ($id:literal, $clause:literal, $fault:literal, |$text:ident, $config:ident| $read:expr) => {
        decides!($id, &[$clause], $fault, {
            fn read(&self, $text: &[u8], $config: &Config) -> Result<RunRequest, Refusal> {
                $read
            }
        })
    };
}

pub(super) const MUTANTS: &[Mutant] = &[
    config("job-small", &["QUE-JOB-20"], "A job has 1 MB at most.", |config: &mut Config| {
        config.limits.stdin_bytes_max = 1 << 20;
    }),
    config("job-large", &["QUE-JOB-18"], "A job may have 64 MiB.", |config: &mut Config| {
        config.limits.stdin_bytes_max = 64 << 20;
    }),
    disk(
        "job-holds-large",
        &["QUE-JOB-19"],
        "A job is read whole before its size is looked at.",
        |disk, op| match op {
            Op::Read { place, bytes_max, follows } => {
                let bytes = disk.read(place, usize::MAX >> 1, follows)?;
                if bytes.len() > bytes_max { Err(Fault::TooLarge) } else { Ok(OpResult::Bytes(bytes)) }
            }
            op => disk.act(op),
        },
    ),
    carrier(
        "job-moves-target",
        &["QUE-JOB-11"],
        "What a link leads to is taken in its place.",
        Carried::MovesTargets,
    ),
    config("job-shallow", &["QUE-JOB-21"], "A job is nested up to 16 levels.", |config: &mut Config| {
        config.limits.nesting_max = 16;
    }),
    decides!("job-any-suffix", &["QUE-JOB-05"], "Names that have `.json` anywhere are taken.", {
        fn treats(&self, entry: &Entry, choices: &Choices) -> Treat {
            let has = memchr::memmem::find(&entry.name, b".json").is_some_and(|at| at > 0);
            if has { Treat::Run } else { Careful.treats(entry, choices) }
        }
    }),
    decides!("job-line-feed", &["QUE-JOB-05"], "Names may have a line feed behind `.json`.", {
        fn treats(&self, entry: &Entry, choices: &Choices) -> Treat {
            let name = entry.name.strip_suffix(b"\n").unwrap_or(&entry.name).to_vec();
            Careful.treats(&Entry { name, ..entry.clone() }, choices)
        }
    }),
    decides!("job-any-name", &["QUE-JOB-05"], "Every file in the inbox is taken.", {
        fn treats(&self, entry: &Entry, _choices: &Choices) -> Treat {
            if entry.kind == Kind::File { Treat::Run } else { Treat::Leave }
        }
    }),
    disk(
        "job-clears-others",
        &["QUE-JOB-05"],
        "Files with other names are removed from the inbox.",
        |disk, op| {
            let out = disk.act(op.clone());
            if let (Op::List(place), Ok(OpResult::Entries(entries))) = (&op, &out)
                && place == b"inbox"
            {
                for entry in entries.iter().filter(|entry| entry.kind == Kind::File) {
                    if !entry.name.ends_with(b".json") {
                        let _ = disk.act(Op::Remove([b"inbox/", &entry.name[..]].concat()));
                    }
                }
            }
            out
        },
    ),
    decides!("job-ascii-names", &["QUE-JOB-08"], "Names with blanks or beyond ASCII go to failed.", {
        fn treats(&self, entry: &Entry, choices: &Choices) -> Treat {
            let is_plain = entry.name.iter().all(u8::is_ascii_graphic);
            match Careful.treats(entry, choices) {
                Treat::Run if !is_plain => Treat::Fail,
                treat => treat,
            }
        }
    }),
    disk(
        "job-loses-odd-names",
        &["QUE-JOB-07"],
        "A job with a line feed in its name is removed.",
        |disk, op| match op {
            Op::Move(from, _) if is_in(&from, "inbox") && from.contains(&b'\n') => disk.act(Op::Remove(from)),
            op => disk.act(op),
        },
    ),
    disk("job-returns", &["QUE-JOB-06"], "What fails goes back into the inbox.", |disk, op| match op {
        Op::Move(from, to) if is_in(&to, "failed") => {
            let to = [b"inbox", to.get(b"failed".len()..).unwrap_or_default()].concat();
            disk.act(Op::Move(from, to))
        }
        op => disk.act(op),
    }),
    reads!("job-not-json", "QUE-JOB-13", "What is not JSON is run.", |text, config| {
        decisions::read(text, config).or_else(|why| {
            let is_json = Value::parse(text, 64, &Policy::default()).is_ok();
            if is_json { Err(why) } else { decisions::read(PLAIN, config) }
        })
    }),
    reads!("job-lossy", "QUE-JOB-13", "Bytes that are not UTF-8 are replaced.", |text, config| {
        decisions::read(String::from_utf8_lossy(text).as_bytes(), config)
    }),
    reads!(
        "job-surrogates",
        "QUE-JOB-13",
        "Halves of surrogate pairs may be written as three bytes.",
        |text, config| {
            let mut text = text.to_vec();
            while let Some(at) = text.windows(2).position(|bytes| matches!(bytes, [0xED, 0xA0..=0xBF])) {
                let end = text.len().min(at + 3);
                text[at..end].fill(b'?');
            }
            decisions::read(&text, config)
        }
    ),
    reads!("job-tail", "QUE-JOB-13", "What follows the object is not looked at.", |text, config| {
        let end = memchr::memrchr(b'}', text).map_or(0, |end| end + 1);
        decisions::read(text.get(..end).unwrap_or_default(), config)
    }),
    reads!("job-empty", "QUE-JOB-13", "An empty file is run.", |text, config| {
        if text.is_empty() { decisions::read(PLAIN, config) } else { decisions::read(text, config) }
    }),
    reads!("job-no-object", "QUE-JOB-14", "What is not an object is run.", |text, config| {
        lenient(text, config, |value| value.as_object().is_none())
    }),
    reads!("job-unwraps-lists", "QUE-JOB-14", "A job in an array is run.", |text, config| {
        lenient(text, config, |value| {
            let one = |list: &[Value]| matches!(list, [job] if job.get("goal_id").is_some());
            value.as_array().is_some_and(one)
        })
    }),
    reads!("job-folds-names", "QUE-JOB-14", "The name of goal_id may have any case.", |text, config| {
        lenient(text, config, |value| {
            let is_goal = |name: &str| name != "goal_id" && name.eq_ignore_ascii_case("goal_id");
            let members = value.as_object().unwrap_or_default();
            members.iter().any(|(name, _)| name.as_str().is_some_and(is_goal))
        })
    }),
    reads!("job-no-goal", "QUE-JOB-14", "A job without goal_id is run.", |text, config| {
        lenient(text, config, |value| value.as_object().is_some() && value.get("goal_id").is_none())
    }),
    reads!("job-empty-goal", "QUE-JOB-14", "A job whose goal_id is empty is run.", |text, config| {
        lenient(text, config, |value| value.get("goal_id").and_then(Value::as_str) == Some(""))
    }),
    reads!("job-any-goal", "QUE-JOB-14", "A job whose goal_id is not a string is run.", |text, config| {
        lenient(text, config, |value| value.get("goal_id").is_some_and(|goal| goal.as_text().is_none()))
    }),
    reads!("job-any-inputs", "QUE-JOB-14", "A job whose inputs are not an object is run.", |text, config| {
        lenient(text, config, |value| value.get("inputs").is_some_and(|inputs| inputs.as_object().is_none()))
    }),
    reads!("job-null-inputs", "QUE-JOB-14", "A job whose inputs are null is run.", |text, config| {
        lenient(text, config, |value| value.get("inputs") == Some(&Value::Null))
    }),
    reads!(
        "job-refuses-members",
        "QUE-JOB-01",
        "A job with members that are not named fails.",
        |text, config| {
            let named = ["goal_id", "inputs", "control_mode", "request_id", "tools", "max_steps"];
            let value = Value::parse(text, 64, &Policy::default()).unwrap_or(Value::Null);
            let is_named = |name: &str| named.contains(&name);
            let members = value.as_object().unwrap_or_default();
            if members.iter().all(|(name, _)| name.as_str().is_some_and(is_named)) {
                decisions::read(text, config)
            } else {
                Err("it has other members".into())
            }
        }
    ),
    disk(
        "job-failed-changed",
        &["QUE-JOB-16"],
        "A job that fails loses its last byte.",
        |disk, op| match op {
            Op::Move(from, to) if is_in(&to, "failed") => {
                let mut bytes = read(disk, &from)?;
                bytes.pop();
                disk.act(Op::Write(to, bytes))?;
                disk.act(Op::Remove(from))
            }
            op => disk.act(op),
        },
    ),
    tells(
        "job-ends-at-malformed",
        &["QUE-JOB-17"],
        "A malformed job ends the worker.",
        |inner, event, now, actions| {
            inner.handle(event, now, actions);
            exits_at(actions, b"malformed");
        },
    ),
    tells(
        "job-ends-at-depth",
        &["QUE-JOB-28"],
        "A job that is nested too deeply ends the worker.",
        |inner, event, now, actions| {
            inner.handle(event, now, actions);
            exits_at(actions, b"nested");
        },
    ),
    disk(
        "job-spins-at-special",
        &["QUE-JOB-12"],
        "A FIFO with the name of a job keeps the worker busy.",
        |disk, op| {
            let is_inbox = op == Op::List(b"inbox".to_vec());
            let out = disk.act(op)?;
            if is_inbox
                && matches!(&out, OpResult::Entries(all) if all.iter().any(|it| it.kind == Kind::Other))
            {
                disk.spin(SPIN);
            }
            Ok(out)
        },
    ),
    Mutant::new(
        "job-ends-at-special",
        &["QUE-JOB-12"],
        "A FIFO with the name of a job ends the worker.",
        Seam::Wire(Rewrite {
            rule: |disk, op| match disk.act(op)? {
                OpResult::Entries(mut entries) => {
                    let is_special = |entry: &&mut Entry| entry.kind == Kind::Other;
                    entries.iter_mut().filter(is_special).for_each(|entry| entry.kind = Kind::File);
                    Ok(OpResult::Entries(entries))
                }
                out => Ok(out),
            },
            handle: |inner, event, now, actions| {
                inner.handle(event, now, actions);
                exits_at(actions, b"not a regular file");
            },
        }),
    ),
    tells(
        "job-starts-malformed",
        &["QUE-JOB-15"],
        "A malformed job is run before it goes to failed.",
        |inner, event, now, actions| {
            inner.handle(event, now, actions);
            let says = |action: &Action| {
                let Action::Stderr(text) = action else { return None };
                memchr::memmem::find(text, b"malformed")?;
                let end = memchr::memmem::find(text, b" failed: ")?;
                Some([b"failed/", text.get(..end)?].concat())
            };
            if let Some(place) = actions.iter().find_map(says) {
                actions.push(Action::Job(place));
            }
        },
    ),
];
