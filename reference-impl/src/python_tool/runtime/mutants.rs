//! Mutants: the correct runtime with other parts, another configuration, or faults in its handling of programs and
//! servers. Clauses are those of `corpora/python_tool/clauses.toml`.

mod calls;
mod near;
mod replies;
mod traces;

use super::judge::{assured, judge};
use super::machine::{line, request, shake};
use super::{Config, End, Outcome, Parts, Ready};
use crate::envelope::Members;
use crate::envelope_caller::mutants::Fault;
use crate::json::{ErrorKind, Policy, Value, write_value};
use crate::mutant::{self, Seam};

/// A runtime that breaks clauses.
pub type Mutant = mutant::Mutant<Config, (), Change, Fault>;

/// Change that a mutant makes to a runtime.
#[derive(Clone, Copy)]
pub enum Change {
    /// Changes the configuration.
    Config(fn(&mut Config)),
    /// Replaces the end of a job.
    End(fn(&Ready, End) -> End),
    /// Rewrites the reply before it is read.
    Reply(fn(&Ready, &mut Members)),
    /// Replaces the outcome before it is reported.
    Outcome(fn(Outcome) -> Outcome),
    /// Rewrites the request before it is sent.
    Sent(fn(&Ready, &mut Members)),
    /// Rewrites the handshake before it is sent.
    Shaken(fn(&mut Members)),
    /// Replaces the judgement of a handshake, given the correct one.
    Assured(fn(&End, bool) -> bool),
    /// Rewrites a result line.
    Line(fn(&mut Members)),
    /// Rewrites the trace in the result line of a call.
    Trace(fn(&Ready, &mut Members)),
    /// Replaces other parts.
    Parts(fn(&mut Parts)),
    /// Changes the configuration and other parts.
    Both(fn(&mut Config, &mut Parts)),
    /// Replaces the exit status.
    Status(fn(i32) -> i32),
}

impl Mutant {
    /// Parts of the mutant. Changes `config` if the fault lies there.
    pub fn parts(&self, config: &mut Config) -> Parts {
        let mut parts = Parts::default();
        match self.rewriting() {
            Some(Change::Config(change)) => change(config),
            Some(Change::End(change)) => {
                parts.judge = Box::new(move |ready, config, end| judge(ready, config, change(ready, end)));
            }
            Some(Change::Reply(change)) => {
                parts.judge = Box::new(move |ready, config, end| {
                    judge(ready, config, with_text(end, |text| edited(text, |reply| change(ready, reply))))
                });
            }
            Some(Change::Outcome(change)) => {
                parts.judge = Box::new(move |ready, config, end| change(judge(ready, config, end)));
            }
            Some(Change::Sent(change)) => {
                parts.request = Box::new(move |ready, config| {
                    let mut members = request(ready, config);
                    change(ready, &mut members);
                    members
                });
            }
            Some(Change::Shaken(change)) => {
                parts.handshake = Box::new(move |ready| {
                    let mut members = shake(ready);
                    change(&mut members);
                    members
                });
            }
            Some(Change::Assured(change)) => {
                parts.assured = Box::new(move |ready, config, end| change(end, assured(ready, config, end)));
            }
            Some(Change::Line(change)) => {
                parts.line = Box::new(move |name, ready, told| {
                    let mut members = line(name, ready, told);
                    change(&mut members);
                    members
                });
            }
            Some(Change::Trace(change)) => {
                parts.line = Box::new(move |name, ready, told| {
                    let mut members = line(name, ready, told);
                    if let (Some(ready), Some(Value::Object(trace))) = (ready, member(&mut members, "trace"))
                    {
                        change(ready, trace);
                    }
                    members
                });
            }
            Some(Change::Parts(change)) => change(&mut parts),
            Some(Change::Both(change)) => change(config, &mut parts),
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
    [replies::MUTANTS, calls::MUTANTS, traces::MUTANTS, near::MUTANTS].concat()
}

pub(super) const fn of(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    change: Change,
) -> Mutant {
    Mutant::new(id, clauses, fault, Seam::Wire(change))
}

fn drop_member(members: &mut Members, name: &str) {
    members.retain(|(own, _)| own != name);
}

/// Changes every valid call.
fn each(config: &mut Config, change: fn(&mut Ready)) {
    config.scenario.calls.iter_mut().filter_map(|call| call.ready.as_mut().ok()).for_each(change);
}

fn member<'a>(members: &'a mut Members, name: &str) -> Option<&'a mut Value> {
    members.iter_mut().find(|(own, _)| own == name).map(|(_, value)| value)
}

fn has(text: &[u8], part: &str) -> bool {
    String::from_utf8_lossy(text).contains(part)
}

fn parsed(text: &[u8]) -> Result<Value, (ErrorKind, usize)> {
    Value::parse(text, 512, &Policy::default()).map_err(|error| (error.kind, error.at))
}

/// Changes the text of the reply in `end`.
fn with_text(end: End, change: impl FnOnce(Vec<u8>) -> Vec<u8>) -> End {
    match end {
        End::Exited(exit, text) => End::Exited(exit, change(text)),
        End::Replied(status, text) => End::Replied(status, change(text)),
        other => other,
    }
}

/// Changes the members of a reply's text. Text that is not an object stays as it is.
fn edited(text: Vec<u8>, change: impl FnOnce(&mut Members)) -> Vec<u8> {
    let Ok(Value::Object(mut members)) = parsed(&text) else { return text };
    change(&mut members);
    let mut out = Vec::new();
    write_value(&mut out, &Value::Object(members));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        mutant::assert_sound(&all(), "PT-RT-");
        assert!(all().iter().all(|mutant| mutant.id.starts_with("runtime-")));
    }
}
