//! Mutants: the correct caller with other parts, another configuration, or faults in its handling of programs and
//! servers. Clauses are those of `corpora/envelope/clauses.toml`.

mod edit;
mod near;
#[cfg(test)]
mod tests;

use self::edit::{drop_wrong, edited, fill_ids, ids, parsed, with_text, without_nulls};
use super::caller::{accept, judge, line};
use super::{CallSpec, Config, End, Outcome, Parts, Target};
use crate::envelope::kind::{is_id, is_of_kind};
use crate::envelope::members::{Kind, MEMBERS};
use crate::envelope::{self, Members, get, number, set};
use crate::json::{ErrorKind, Value};
use crate::machine::ChildExit;
use crate::mutant::{self, Seam, ShellFault, carrier, shell};

/// A caller that breaks clauses.
pub type Mutant = mutant::Mutant<Config, (), Change, Fault>;

/// Change that a mutant makes to a caller.
#[derive(Clone, Copy)]
pub enum Change {
    /// Changes its configuration.
    Config(fn(&mut Config)),
    /// Replaces the end of a counterpart.
    End(fn(End) -> End),
    /// Rewrites the reply before it is read.
    Reply(fn(&CallSpec, &mut Members)),
    /// Replaces the outcome before it is reported.
    Outcome(fn(Outcome) -> Outcome),
    /// Rewrites the envelope before it is sent.
    Sent(fn(&mut Members)),
    /// Replaces other parts.
    Parts(fn(&mut Parts)),
    /// Replaces the exit status.
    Status(fn(i32) -> i32),
}

/// Fault in the handling of programs and servers; see `io/asking.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Standard input stays open.
    LeavesStdinOpen,
    /// Output is read only after the request is written.
    WritesFirst,
    /// Standard error is not read.
    LeavesStderr,
    /// Standard error counts as output.
    MixesStderr,
    /// The time limit restarts with each read.
    WaitsAnew,
    /// The time limit ends with the first bytes of the reply.
    WaitsForTheHead,
    /// The time limit applies only after the request is written.
    OutlastsWriting,
    /// Each chunk of output is converted to UTF-8 by itself.
    MendsPieces,
    /// Only the program is killed, not its group.
    KillsOne,
    /// The end of a pipe that another process holds is awaited.
    WaitsForPipe,
    /// The end of a pipe that another process holds is awaited beyond the time limit.
    OutwaitsPipe,
    /// The exit of a program that has closed its output is awaited beyond the time limit.
    OutwaitsExit,
    /// A late program gets SIGTERM and is awaited.
    AsksToEnd,
    /// A request is repeated if its connection was lost.
    PostsLostAgain,
    /// Each call is made twice.
    CallsTwice,
    /// Requests have another content type.
    PostsText,
    /// Redirects are followed.
    Follows,
    /// A body that ends before its `Content-Length` is accepted.
    TakesCut,
    /// One second of silence ends a call.
    CutsSilence,
    /// A program that does not read its request has failed.
    FailsUnread,
}

impl Mutant {
    /// Parts of the mutant. Changes `config` if the fault lies there.
    pub fn parts(&self, config: &mut Config) -> Parts {
        let mut parts = Parts::default();
        match self.rewriting() {
            Some(Change::Config(change)) => change(config),
            Some(Change::End(change)) => {
                parts.judge = Box::new(move |call, config, end| judge(call, config, change(end)));
            }
            Some(Change::Reply(change)) => {
                parts.judge = Box::new(move |call, config, end| {
                    judge(call, config, with_text(end, |text| edited(text, |reply| change(call, reply))))
                });
            }
            Some(Change::Outcome(change)) => {
                parts.judge = Box::new(move |call, config, end| change(judge(call, config, end)));
            }
            Some(Change::Sent(change)) => {
                parts.accept = Box::new(move |call, config| {
                    let mut members = accept(call, config)?;
                    change(&mut members);
                    Some(members)
                });
            }
            Some(Change::Parts(change)) => change(&mut parts),
            Some(Change::Status(_)) | None => {}
        }
        parts
    }

    /// Exit status of the mutant, given the correct one.
    pub fn status(&self, status: i32) -> i32 {
        match self.rewriting() {
            Some(Change::Status(change)) => change(status),
            _ => status,
        }
    }
}

/// The mutant called `id`.
pub fn find(id: &str) -> Option<Mutant> {
    all().into_iter().find(|mutant| mutant.id == id)
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    [MUTANTS, near::MUTANTS].concat()
}

const fn of(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: Change,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(change))
}

use Change::{Config as Told, End as Ends, Outcome as Comes, Parts as Made, Reply, Sent, Status};

const MUTANTS: &[Mutant] = &[
    of(
        "caller-forgets-refusals",
        &["ENV-CALL-01"],
        "Of a refused call nothing is written.",
        Made(|parts| {
            parts.line = Box::new(|call, told| match told.outcome {
                Outcome::Refused(_) => Vec::new(),
                _ => line(call, told),
            });
        }),
    ),
    of(
        "caller-tells-twice",
        &["ENV-CALL-01"],
        "Each call has two lines.",
        Made(|parts| {
            parts.line = Box::new(|call, told| [line(call, told.clone()), line(call, told)].concat());
        }),
    ),
    of(
        "caller-tells-in-single-quotes",
        &["ENV-CALL-01"],
        "Results of refused calls are no JSON.",
        Made(|parts| {
            parts.line = Box::new(|call, told| {
                let is_refused = matches!(told.outcome, Outcome::Refused(_));
                let text = line(call, told);
                if !is_refused {
                    return text;
                }
                text.into_iter().map(|byte| if byte == b'"' { b'\'' } else { byte }).collect()
            });
        }),
    ),
    of("caller-exits-1", &["ENV-CALL-02"], "It exits with status 1.", Status(|status| status.max(1))),
    of(
        "caller-takes-success-for-invalid",
        &["ENV-CALL-03"],
        "A reply on standard output is invalid.",
        Ends(|end| match end {
            End::Exited(ChildExit::Code(0), _) => End::Exited(ChildExit::Code(0), Vec::new()),
            other => other,
        }),
    ),
    of(
        "caller-takes-200-for-refused",
        &["ENV-CALL-04"],
        "A reply with status 200 is refused.",
        Ends(|end| match end {
            End::Replied(200, body) => End::Replied(201, body),
            other => other,
        }),
    ),
    of(
        "caller-takes-any-exit",
        &["ENV-CALL-05"],
        "An envelope counts whatever the exit status.",
        Ends(|end| match end {
            End::Exited(ChildExit::Code(_), text) if text.starts_with(b"{\"env") => {
                End::Exited(ChildExit::Code(0), text)
            }
            other => other,
        }),
    ),
    of(
        "caller-tells-status-1",
        &["ENV-CALL-05"],
        "Every failing program has exit status 1.",
        Comes(|outcome| match outcome {
            Outcome::Refused(status) if status < 256 => Outcome::Refused(status.min(1)),
            other => other,
        }),
    ),
    of(
        "caller-takes-errors-for-envelopes",
        &["ENV-CALL-06"],
        "An envelope counts whatever the HTTP status.",
        Ends(|end| match end {
            End::Replied(_, body) => End::Replied(200, body),
            other => other,
        }),
    ),
    of(
        "caller-takes-201-for-200",
        &["ENV-CALL-06"],
        "Any status from 200 to 299 is success.",
        Ends(|end| match end {
            End::Replied(200..300, body) => End::Replied(200, body),
            other => other,
        }),
    ),
    of(
        "caller-takes-the-first-object",
        &["ENV-CALL-07"],
        "What follows the first object is dropped.",
        Ends(|end| {
            with_text(end, |text| match parsed(&text) {
                Err((ErrorKind::Trailing, at)) => text[..at].to_vec(),
                _ => text,
            })
        }),
    ),
    of(
        "caller-completes-what-is-cut",
        &["ENV-CALL-07"],
        "A cut object is closed.",
        Ends(|end| {
            with_text(end, |text| {
                let close = |end: &str| [text.as_slice(), end.as_bytes()].concat();
                ["", "}", "\"}", "}}", "\":null}"]
                    .map(close)
                    .into_iter()
                    .find(|it| parsed(it).is_ok())
                    .unwrap_or(text)
            })
        }),
    ),
    of(
        "caller-takes-trailing-commas",
        &["ENV-CALL-07"],
        "A comma before a brace is skipped.",
        Ends(|end| with_text(end, |text| String::from_utf8_lossy(&text).replace(",}", "}").into_bytes())),
    ),
    of(
        "caller-drops-wrong-types",
        &["ENV-CALL-08"],
        "A member of a wrong type has its default.",
        Reply(|_, reply| {
            drop_wrong(reply, |kind, value| match kind {
                Kind::Count(_) => value.as_i64().is_none(),
                Kind::OneOf(_) | Kind::Time | Kind::Id(_) => value.as_text().is_none(),
                _ => true,
            });
        }),
    ),
    of(
        "caller-repairs-what-is-required",
        &["ENV-CALL-08"],
        "A required member of a wrong type is the one that was sent.",
        Reply(|call, reply| {
            let choices = envelope::Choices::default();
            for row in MEMBERS.iter().filter(|row| row.core && !matches!(row.kind, Kind::Id(_))) {
                if get(reply, row.name).is_some_and(|value| !is_of_kind(value, row.kind, &choices)) {
                    set(reply, row.name, call.envelope.get(row.name).cloned().unwrap_or(Value::Null));
                }
            }
        }),
    ),
    of(
        "caller-reads-numbers-in-text",
        &["ENV-CALL-08"],
        "\"5\" is 5.",
        Reply(|_, reply| {
            for (name, value) in reply.iter_mut() {
                let is_count =
                    MEMBERS.iter().any(|row| *name == *row.name && matches!(row.kind, Kind::Count(_)));
                if let Some(count) = value.as_str().filter(|_| is_count).and_then(|text| text.parse().ok()) {
                    *value = number(count);
                }
            }
        }),
    ),
    of(
        "caller-drops-unknown-words",
        &["ENV-CALL-09"],
        "A word outside its enumeration is dropped.",
        Reply(|_, reply| {
            drop_wrong(reply, |kind, value| match kind {
                Kind::OneOf(_) => value.as_text().is_some(),
                Kind::Goals => true,
                _ => false,
            });
        }),
    ),
    of(
        "caller-drops-what-is-too-little",
        &["ENV-CALL-10"],
        "A counter under its minimum is dropped.",
        Reply(|_, reply| {
            drop_wrong(reply, |kind, value| matches!(kind, Kind::Count(_)) && value.as_i64().is_some());
        }),
    ),
    of(
        "caller-repairs-ids",
        &["ENV-CALL-11"],
        "An id of another form is the one that was sent.",
        Reply(|call, reply| {
            for (prefix, name) in ids() {
                let is_wrong = |value: &Value| value.as_text().is_some_and(|text| !is_id(text, prefix));
                if get(reply, name).is_some_and(is_wrong) {
                    set(reply, name, call.envelope.get(name).cloned().unwrap_or(Value::Null));
                }
            }
        }),
    ),
    of(
        "caller-drops-wrong-times",
        &["ENV-CALL-12"],
        "An impossible date-time is dropped.",
        Reply(|_, reply| {
            drop_wrong(reply, |kind, value| kind == Kind::Time && value.as_text().is_some());
        }),
    ),
    of(
        "caller-has-a-leap-day-in-1900",
        &["ENV-CALL-12"],
        "A 29 February of 1900 is dropped.",
        Reply(|_, reply| reply.retain(|(_, value)| *value != Value::from("1900-02-29T10:00:00Z"))),
    ),
    of(
        "caller-has-other-defaults",
        &["ENV-CALL-13"],
        "A bound that is absent is 5.",
        Reply(|_, reply| {
            if get(reply, "max_iterations").is_none() {
                set(reply, "max_iterations", number(5));
            }
        }),
    ),
    of(
        "caller-makes-up-ids",
        &["ENV-CALL-15"],
        "An id that is missing is a new one.",
        Made(|parts| {
            parts.judge = Box::new(|call, config, end| {
                let mut missing = Vec::new();
                let end = with_text(end, |text| {
                    edited(text, |reply| {
                        missing.extend(ids().filter(|(_, name)| get(reply, name).is_none()));
                        fill_ids(call, reply);
                    })
                });
                let mut outcome = judge(call, config, end);
                if let Outcome::Envelope(members) = &mut outcome {
                    for (prefix, name) in missing {
                        set(members, name, Value::from(format!("{prefix}0011223344556677").as_str()));
                    }
                }
                outcome
            });
        }),
    ),
    of(
        "caller-fills-ids-in",
        &["ENV-CALL-15"],
        "An id that is missing is the one that was sent.",
        Reply(fill_ids),
    ),
    of(
        "caller-heeds-no-ids",
        &["ENV-CALL-16"],
        "Another id is replaced by the one that was sent.",
        Reply(|call, reply| {
            for (prefix, name) in ids() {
                let is_other = |value: &Value| value.as_text().is_some_and(|text| is_id(text, prefix));
                if get(reply, name).is_some_and(is_other) {
                    set(reply, name, call.envelope.get(name).cloned().unwrap_or(Value::Null));
                }
            }
        }),
    ),
    of(
        "caller-drops-unknown-members",
        &["ENV-CALL-17"],
        "Undocumented members are dropped.",
        Reply(|_, reply| {
            reply.retain(|(name, _)| MEMBERS.iter().any(|row| *name == *row.name));
        }),
    ),
    of(
        "caller-drops-nulls",
        &["ENV-CALL-18"],
        "Members that are null are dropped from free data.",
        Reply(|_, reply| {
            for name in ["metadata", "outputs", "errors", "processing_history"] {
                if let Some((_, value)) = reply.iter_mut().find(|(key, _)| *key == *name) {
                    without_nulls(value);
                }
            }
        }),
    ),
    of(
        "caller-keeps-three",
        &["ENV-CALL-18"],
        "The fourth error and those behind it are dropped.",
        Reply(|_, reply| {
            for (_, value) in reply.iter_mut().filter(|(name, _)| *name == *"errors") {
                if let Value::Array(errors) = value {
                    errors.truncate(3);
                }
            }
        }),
    ),
    of(
        "caller-takes-false-for-nothing",
        &["ENV-CALL-19"],
        "`confirmation_response` false is null.",
        Reply(|_, reply| {
            if get(reply, "confirmation_response") == Some(&Value::Bool(false)) {
                set(reply, "confirmation_response", Value::Null);
            }
        }),
    ),
    of(
        "caller-never-times-out",
        &["ENV-CALL-20"],
        "No call ever times out.",
        Told(|config| {
            config.scenario.calls.iter_mut().for_each(|call| call.timeout_ms = 1 << 32);
        }),
    ),
    of(
        "caller-counts-from-the-scenario",
        &["ENV-CALL-03"],
        "The time of a call that waits for another one begins three seconds early.",
        Told(|config| {
            let calls = config.scenario.calls.iter_mut();
            calls.filter(|call| !call.after.is_empty()).for_each(|call| {
                call.timeout_ms = call.timeout_ms.saturating_sub(3_000);
            });
        }),
    ),
    of(
        "caller-halves-timeouts",
        &["ENV-CALL-20"],
        "A call has half of its time.",
        Told(|config| {
            config.scenario.calls.iter_mut().for_each(|call| call.timeout_ms /= 2);
        }),
    ),
    carrier(
        "caller-waits-anew",
        &["ENV-CALL-21"],
        "The time of a call begins anew with each byte.",
        Fault::WaitsAnew,
    ),
    carrier(
        "caller-waits-for-the-head",
        &["ENV-CALL-21"],
        "The time of a call is over once its reply has begun.",
        Fault::WaitsForTheHead,
    ),
    carrier(
        "caller-asks-to-end",
        &["ENV-CALL-20"],
        "A program that is late is asked to end by SIGTERM, and waited for.",
        Fault::AsksToEnd,
    ),
    carrier(
        "caller-outwaits-the-exit",
        &["ENV-CALL-20"],
        "A program that has closed its output is waited for beyond the time of the call.",
        Fault::OutwaitsExit,
    ),
    carrier(
        "caller-takes-cut-bodies",
        &["ENV-CALL-23"],
        "The body of a reply that ends before its length is taken as it is.",
        Fault::TakesCut,
    ),
    carrier(
        "caller-outwaits-the-pipe",
        &["ENV-CALL-20"],
        "A pipe that another process holds is waited for beyond the time of the call.",
        Fault::OutwaitsPipe,
    ),
    carrier(
        "caller-kills-one-process",
        &["ENV-CALL-22"],
        "Of a program that is late only its first process is killed.",
        Fault::KillsOne,
    ),
    of(
        "caller-takes-signals-for-statuses",
        &["ENV-CALL-23"],
        "A signal is an exit status over 128.",
        Ends(|end| match end {
            End::Exited(ChildExit::Signal(signal), text) => End::Exited(ChildExit::Code(128 + signal), text),
            other => other,
        }),
    ),
    of(
        "caller-takes-absence-for-invalid",
        &["ENV-CALL-23"],
        "What cannot be started or connected to is invalid.",
        Ends(|end| match end {
            End::Failed => End::Unreadable,
            other => other,
        }),
    ),
    of(
        "caller-sends-anything",
        &["ENV-CALL-24"],
        "The scenario's envelope is not looked at.",
        Made(|parts| {
            parts.accept = Box::new(|call, _| call.envelope.as_object().map(<[_]>::to_vec));
        }),
    ),
    of(
        "caller-sends-no-metadata",
        &["ENV-CALL-25"],
        "`metadata` is not sent.",
        Sent(|sent| {
            sent.retain(|(name, _)| *name != *"metadata");
        }),
    ),
    of(
        "caller-sends-nulls",
        &["ENV-CALL-26"],
        "Empty lists are sent as null.",
        Sent(|sent| {
            sent.iter_mut()
                .filter(|(_, value)| *value == Value::Array(Vec::new()))
                .for_each(|(_, value)| *value = Value::Null);
        }),
    ),
    carrier(
        "caller-leaves-stdin-open",
        &["ENV-CALL-27"],
        "Standard input stays open behind the request.",
        Fault::LeavesStdinOpen,
    ),
    carrier("caller-posts-text", &["ENV-CALL-28"], "Requests are `text/plain`.", Fault::PostsText),
    carrier(
        "caller-posts-again-what-was-lost",
        &["ENV-CALL-29"],
        "A request is made again whose connection ended without a reply.",
        Fault::PostsLostAgain,
    ),
    carrier("caller-calls-twice", &["ENV-CALL-29"], "Each call is made twice.", Fault::CallsTwice),
    of(
        "caller-tries-again",
        &["ENV-CALL-29"],
        "What is refused is run again by a shell.",
        Told(|config| {
            for call in &mut config.scenario.calls {
                if let Target::Program(argv) = &mut call.target {
                    let script = "t=$(mktemp) && cat >\"$t\" && { \"$0\" \"$@\" <\"$t\" || \"$0\" \"$@\" <\"$t\"; s=$?; rm \"$t\"; exit $s; }";
                    argv.splice(0..0, ["sh", "-c", script].map(str::to_owned));
                }
            }
        }),
    ),
    of(
        "caller-uses-a-shell",
        &["ENV-CALL-30"],
        "Commands are given to a shell.",
        Told(|config| {
            for call in &mut config.scenario.calls {
                if let Target::Program(argv) = &mut call.target {
                    *argv = vec!["sh".to_owned(), "-c".to_owned(), argv.join(" ")];
                }
            }
        }),
    ),
    of(
        "caller-heeds-no-order",
        &["ENV-CALL-31"],
        "No call waits for another.",
        Told(|config| {
            config.scenario.calls.iter_mut().for_each(|call| call.after.clear());
        }),
    ),
    carrier("caller-leaves-stderr", &["ENV-CALL-33"], "Standard error is not read.", Fault::LeavesStderr),
    carrier("caller-mixes-stderr", &["ENV-CALL-33"], "Standard error counts as output.", Fault::MixesStderr),
    carrier(
        "caller-writes-first",
        &["ENV-CALL-34"],
        "Output is read once the request is written.",
        Fault::WritesFirst,
    ),
    carrier("caller-follows-redirects", &["ENV-CALL-35"], "Redirects are followed.", Fault::Follows),
    of(
        "caller-takes-little",
        &["ENV-CALL-37"],
        "A reply has at most 8 MiB.",
        Told(|config| {
            config.reply_bytes_max = 8 << 20;
        }),
    ),
    carrier(
        "caller-waits-for-the-pipe",
        &["ENV-CALL-38"],
        "A pipe that another process holds is waited for.",
        Fault::WaitsForPipe,
    ),
    shell(
        "caller-leaves-a-child",
        &["ENV-CALL-39"],
        "A child process outlives the caller.",
        ShellFault::LeavesChild,
    ),
    shell(
        "caller-leaves-a-file",
        &["ENV-CALL-39"],
        "A temporary file outlives the caller.",
        ShellFault::LeavesFile,
    ),
    of(
        "caller-sends-known-members",
        &["ENV-CALL-40"],
        "Undocumented members are not sent.",
        Sent(|sent| {
            sent.retain(|(name, _)| MEMBERS.iter().any(|row| *name == *row.name));
        }),
    ),
    of(
        "caller-waits-longer",
        &["ENV-CALL-41"],
        "A call that says nothing has 30 seconds.",
        Told(|config| {
            config
                .scenario
                .calls
                .iter_mut()
                .filter(|call| call.timeout_ms == 10_000)
                .for_each(|call| call.timeout_ms = 30_000);
        }),
    ),
];
