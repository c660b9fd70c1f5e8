//! Mutants of writers: the tool and the HTTP adapter.

use std::net::IpAddr;
use std::time::Duration;

use super::jobs::{PLAIN, lenient};
use super::{Carried, Mutant, Rule, decides, disk, is_in, placed, rule};
use crate::json::{Policy, Value, write_str, write_value};
use crate::machine::{Action, Event};
use crate::mutant::http::HttpFault;
use crate::mutant::{Seam, ShellFault, carrier, config, machine, shell, wrap};
use crate::refusal::Refusal;
use crate::run_log::RunRequest;
use crate::run_queue::disk::{Disk, Fault, Op, OpResult};
use crate::run_queue::{Careful, Config, Parts, decisions, token_matches};

/// Moves a temporary file to another place.
fn first(place: Vec<u8>, other: fn(&str) -> String) -> Vec<u8> {
    match place.strip_prefix(b"tmp/") {
        Some(name) => other(&String::from_utf8_lossy(name)).into_bytes(),
        None => place,
    }
}

const WRITES_IN_PLACE: Rule =
    |disk, op| match placed(op, |place| first(place, |name| format!("inbox/{name}.json"))) {
        Op::Move(from, to) if from == to => Ok(OpResult::Done),
        op => disk.act(op),
    };

/// Mutants of both writers.
pub(super) const BOTH: &[Mutant] = &[
    disk("put-writes-in-place", &["QUE-JOB-04"], "A job is written under its own name.", WRITES_IN_PLACE),
    disk(
        "put-half-named",
        &["QUE-JOB-04"],
        "A job is written under another name that ends in .json.",
        |disk, op| disk.act(placed(op, |place| first(place, |name| format!("inbox/part-{name}.json")))),
    ),
    disk("put-appends", &["QUE-JOB-04"], "A job is written to after it has its name.", |disk, op| match op {
        Op::Move(from, to) => {
            let bytes = super::read(disk, &from)?;
            disk.act(Op::Write(to.clone(), Vec::new()))?;
            disk.act(Op::Remove(to.clone()))?;
            disk.act(Op::Write(to, bytes))?;
            disk.act(Op::Remove(from))
        }
        op => disk.act(op),
    }),
    disk(
        "put-named-by-id",
        &["QUE-HTTP-18", "QUE-ENQ-09"],
        "A request_id that is a path says where the file of its job is.",
        |disk, op| match op {
            Op::Move(from, to) => {
                let job = Value::parse(&super::read(disk, &from)?, 64, &Policy::default()).ok();
                let id = job.as_ref().and_then(|job| job.get("request_id")?.as_str());
                let named =
                    id.filter(|id| id.contains('/')).map(|id| format!("inbox/{id}.json").into_bytes());
                disk.act(Op::Move(from, named.unwrap_or(to)))
            }
            op => disk.act(op),
        },
    ),
    disk(
        "put-named-by-decoded-id",
        &["QUE-HTTP-18", "QUE-ENQ-09"],
        "A request_id that is a path once it is decoded says where the file of its job is.",
        |disk, op| match op {
            Op::Move(from, to) => {
                let job = Value::parse(&super::read(disk, &from)?, 64, &Policy::default()).ok();
                let id = job.as_ref().and_then(|job| job.get("request_id")?.as_str());
                let decoded = id.map(|id| id.replace("%2f", "/").replace('\\', "/"));
                let named = decoded
                    .filter(|decoded| decoded.contains('/') && Some(decoded.as_str()) != id)
                    .map(|decoded| format!("inbox/{decoded}.json").into_bytes());
                disk.act(Op::Move(from, named.unwrap_or(to)))
            }
            op => disk.act(op),
        },
    ),
    disk(
        "put-leaves-parts",
        &["QUE-HTTP-39", "QUE-ENQ-14"],
        "What is written first stays in the inbox beside the job.",
        |disk, op| match op {
            Op::Move(from, to) => {
                let bytes = super::read(disk, &from)?;
                let part = [&to[..], b".part"].concat();
                disk.act(Op::Write(part, bytes))?;
                disk.act(Op::Move(from, to))
            }
            op => disk.act(op),
        },
    ),
    decides!("put-composes", &["QUE-HTTP-06", "QUE-ENQ-03"], "What is put is composed.", {
        fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
            let text = String::from_utf8_lossy(&decisions::stored(text, config)).into_owned();
            text.replace("e\u{301}", "\u{e9}").replace("u\u{308}", "\u{fc}").into_bytes()
        }
    }),
    decides!("put-cuts-fractions", &["QUE-HTTP-06", "QUE-ENQ-03"], "Fractions are put with 15 digits.", {
        fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
            let mut digits = None;
            let mut out = decisions::stored(text, config);
            out.retain(|byte| {
                digits = match (byte, digits) {
                    (b'.', _) => Some(0),
                    (b'0'..=b'9', Some(count)) => Some(count + 1),
                    _ => None,
                };
                digits.is_none_or(|count| count <= 15)
            });
            out
        }
    }),
    decides!("put-drops-halves", &["QUE-HTTP-06", "QUE-ENQ-03"], "Half of a surrogate pair is left out.", {
        fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
            String::from_utf8_lossy(&decisions::stored(text, config)).replace("\\ud800", "").into_bytes()
        }
    }),
    decides!("put-null-inputs", &["QUE-HTTP-07", "QUE-ENQ-08"], "A job whose inputs are null is put.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            lenient(text, config, |value| value.get("inputs") == Some(&Value::Null))
        }
    }),
    disk(
        "put-full-is-fine",
        &["QUE-HTTP-29", "QUE-ENQ-04"],
        "A job that could not be written is empty.",
        |disk, op| {
            let out = disk.act(op.clone());
            match (op, &out) {
                (Op::Write(place, _), Err(Fault::Other(_))) => disk.act(Op::Write(place, Vec::new())),
                _ => out,
            }
        },
    ),
    Mutant::new(
        "put-full-in-place",
        &["QUE-HTTP-29", "QUE-ENQ-04"],
        "A job that could not be written whole keeps its name.",
        Seam::Parts(|_, parts| {
            rule(parts, |disk, op| {
                let out = WRITES_IN_PLACE(disk, op.clone());
                if let (Op::Write(place, bytes), Err(Fault::Other(_))) = (op, &out) {
                    let half = bytes.get(..bytes.len().min(100)).unwrap_or_default().to_vec();
                    let _ = WRITES_IN_PLACE(disk, Op::Write(place, half));
                }
                out
            });
        }),
    ),
];

/// Sets a nesting limit below the required minimum.
const SHALLOW: fn(&mut Config) = |config| config.limits.nesting_max = 16;

/// Mutants of the tool.
pub(super) const ENQUEUE: &[Mutant] = &[
    shell(
        "enq-leaves-a-child",
        &["QUE-ENQ-14"],
        "A child process outlives the tool.",
        ShellFault::LeavesChild,
    ),
    shell(
        "enq-leaves-a-file",
        &["QUE-ENQ-14"],
        "A temporary file outlives the tool.",
        ShellFault::LeavesFile,
    ),
    config("enq-shallow", &["QUE-JOB-21"], "A job is nested up to 16 levels.", SHALLOW),
    machine("enq-ends-at-depth", &["QUE-JOB-28"], "What is nested very deeply ends the tool.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            let is_deep = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'[').count() > 90;
            match event {
                Event::Stdin(bytes) if is_deep(bytes) => actions.push(Action::Exit(101)),
                event => inner.handle(event, now, actions),
            }
        })
    }),
    Mutant::new(
        "enq-late",
        &["QUE-ENQ-04"],
        "A job has its name a moment after the reply.",
        Seam::Parts(|_, parts| late(parts, Duration::from_millis(300))),
    ),
    decides!("enq-strings-only", &["QUE-ENQ-01"], "A request that is an object is refused.", {
        fn request(&self, input: &Value) -> Result<Vec<u8>, Refusal> {
            match input.get("request_json") {
                Some(Value::Object(_)) => Err("request_json must be a string".into()),
                _ => Careful.request(input),
            }
        }
    }),
    decides!("enq-objects-only", &["QUE-ENQ-02"], "A request that is a string is refused.", {
        fn request(&self, input: &Value) -> Result<Vec<u8>, Refusal> {
            match input.get("request_json") {
                Some(Value::String(_)) => Err("request_json must be an object".into()),
                _ => Careful.request(input),
            }
        }
    }),
    decides!("enq-default", &["QUE-ENQ-06"], "Without a request a job without a goal is put.", {
        fn request(&self, input: &Value) -> Result<Vec<u8>, Refusal> {
            if input.get("request_json").is_none() { Ok(PLAIN.to_vec()) } else { Careful.request(input) }
        }
    }),
    decides!("enq-folds-names", &["QUE-ENQ-06"], "The name of the request may have any case.", {
        fn request(&self, input: &Value) -> Result<Vec<u8>, Refusal> {
            let members = input.as_object().unwrap_or_default();
            let is_its = |name: &str| name.eq_ignore_ascii_case("request_json");
            let found = members.iter().find(|(name, _)| name.as_str().is_some_and(is_its));
            let named = found.map(|(_, value)| Value::Object(vec![("request_json".into(), value.clone())]));
            Careful.request(named.as_ref().unwrap_or(input))
        }
    }),
    decides!("enq-any-type", &["QUE-ENQ-06"], "A request of another type is put as an empty one.", {
        fn request(&self, input: &Value) -> Result<Vec<u8>, Refusal> {
            Careful.request(input).or_else(|why| match input.get("request_json") {
                Some(_) => Ok(PLAIN.to_vec()),
                None => Err(why),
            })
        }
    }),
    decides!("enq-not-json", &["QUE-ENQ-07"], "A string that is not JSON is put.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            decisions::read(text, config).or_else(|why| match Value::parse(text, 64, &Policy::default()) {
                Ok(_) => Err(why),
                Err(_) => decisions::read(PLAIN, config),
            })
        }
    }),
    decides!("enq-malformed", &["QUE-ENQ-08"], "A job without a goal is put.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            accept_without_goal(text, config)
        }
    }),
    decides!("enq-drops-members", &["QUE-ENQ-03"], "Members that are not named are dropped.", {
        fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
            named_members(text, config)
        }
    }),
    disk("enq-stores-nothing", &["QUE-ENQ-03"], "What is put has no name.", |disk, op| match op {
        Op::Move(..) => Ok(OpResult::Done),
        op => disk.act(op),
    }),
    disk("enq-cuts", &["QUE-ENQ-04"], "The last byte of a job is not written.", |disk, op| match op {
        Op::Write(place, mut bytes) => {
            bytes.pop();
            disk.act(Op::Write(place, bytes))
        }
        op => disk.act(op),
    }),
    decides!("enq-says-nothing", &["QUE-ENQ-05"], "The name of the file is not told.", {
        fn told(&self, _name: &str) -> String {
            "{}".to_owned()
        }
    }),
    decides!("enq-tells-another", &["QUE-ENQ-05"], "Another name is told.", {
        fn told(&self, name: &str) -> String {
            Careful.told(&format!("x{name}"))
        }
    }),
    disk("enq-other-name", &["QUE-ENQ-09"], "A job gets a name that no worker takes.", OTHER_NAME),
    disk("enq-elsewhere", &["QUE-ENQ-09"], "A job is put beside the inbox.", |disk, op| match op {
        Op::Move(from, to) => {
            disk.act(Op::Move(from, to.get(b"inbox/".len()..).unwrap_or_default().to_vec()))
        }
        op => disk.act(op),
    }),
    disk("enq-one-name", &["QUE-ENQ-11"], "All jobs have one name.", ONE_NAME),
    machine("enq-no-state", &["QUE-ENQ-10"], "A reply has no ds_state.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            inner.handle(event, now, actions);
            for action in actions {
                if let Action::Stdout(bytes) = action
                    && let Some(at) = memchr::memmem::find(bytes, b"\"ds_state\":")
                {
                    bytes.splice(at + 1..at + 3, *b"no");
                }
            }
        })
    }),
];

const OTHER_NAME: Rule = |disk, op| match op {
    Op::Move(from, mut to) => {
        to.extend_from_slice(b".txt");
        disk.act(Op::Move(from, to))
    }
    op => disk.act(op),
};

const ONE_NAME: Rule = |disk, op| match op {
    Op::Move(from, _) => disk.act(Op::Replace(from, b"inbox/job.json".to_vec())),
    op => disk.act(op),
};

fn accept_without_goal(text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
    lenient(text, config, |value| value.as_object().is_some() && value.get("goal_id").is_none())
}

/// Job with the members of the contract only.
fn named_members(text: &[u8], config: &Config) -> Vec<u8> {
    let named = ["goal_id", "inputs", "control_mode", "request_id", "tools", "max_steps"];
    match Value::parse(text, config.limits.nesting_max, &Policy::default()) {
        Ok(Value::Object(mut members)) => {
            members.retain(|(name, _)| name.as_str().is_some_and(|name| named.contains(&name)));
            let mut out = Vec::new();
            write_value(&mut out, &Value::Object(members));
            out
        }
        _ => text.to_vec(),
    }
}

const fn fault(
    id: &'static str,
    clauses: &'static [&'static str],
    fault: &'static str,
    what: HttpFault,
) -> Mutant {
    carrier(id, clauses, fault, Carried::Http(what))
}

/// A file system that delays each move until the next one, and the last one for some time after the end.
struct Late {
    inner: Box<dyn Disk>,
    held: Option<Op>,
    later: Duration,
}

fn late(parts: &mut Parts, later: Duration) {
    let inner = std::mem::replace(&mut parts.disk, Box::new(super::Nothing));
    parts.disk = Box::new(Late { inner, held: None, later });
}

impl Drop for Late {
    fn drop(&mut self) {
        if let Some(held) = self.held.take().filter(|_| !self.later.is_zero()) {
            self.inner.pause(self.later);
            let _ = self.inner.act(held);
        }
    }
}

impl Disk for Late {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        if let Op::Move(..) = op {
            if let Some(earlier) = self.held.replace(op) {
                self.inner.act(earlier)?;
            }
            return Ok(OpResult::Done);
        }
        self.inner.act(op)
    }
}

/// Mutants of the adapter.
pub(super) const HTTP: &[Mutant] = &[
    shell(
        "http-ignores-sigterm",
        &["QUE-HTTP-32"],
        "SIGTERM does not end the adapter.",
        ShellFault::IgnoresTerm,
    ),
    shell(
        "http-leaves-a-child",
        &["QUE-HTTP-39"],
        "A child process outlives the adapter.",
        ShellFault::LeavesChild,
    ),
    shell(
        "http-leaves-a-file",
        &["QUE-HTTP-39"],
        "A temporary file outlives the adapter.",
        ShellFault::LeavesFile,
    ),
    config("http-shallow", &["QUE-JOB-21"], "A job is nested up to 16 levels.", SHALLOW),
    fault(
        "http-ends-at-depth",
        &["QUE-HTTP-31"],
        "What is nested very deeply ends the process.",
        HttpFault::EndsAtDepth,
    ),
    fault("http-other-status", &["QUE-HTTP-01"], "Jobs are answered by 204.", HttpFault::Recodes(202, 204)),
    decides!("http-says-nothing", &["QUE-HTTP-01"], "The name of the file is not told.", {
        fn told(&self, _name: &str) -> String {
            "{}".to_owned()
        }
    }),
    decides!("http-plain-name", &["QUE-HTTP-02"], "The name of the file is told as a string alone.", {
        fn told(&self, name: &str) -> String {
            let mut out = Vec::new();
            write_str(&mut out, name);
            String::from_utf8_lossy(&out).into_owned()
        }
    }),
    Mutant::new(
        "http-late",
        &["QUE-HTTP-03"],
        "A job has its name once the next one comes.",
        Seam::Parts(|_, parts| late(parts, Duration::ZERO)),
    ),
    fault(
        "http-early",
        &["QUE-HTTP-03"],
        "The status of a reply is written before the job is stored.",
        HttpFault::SpeaksEarly,
    ),
    disk("http-other-name", &["QUE-HTTP-18"], "A job gets a name that no worker takes.", OTHER_NAME),
    disk("http-one-name", &["QUE-HTTP-04"], "All jobs have one name.", ONE_NAME),
    decides!("http-drops-members", &["QUE-HTTP-06"], "Members that are not named are dropped.", {
        fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
            named_members(text, config)
        }
    }),
    decides!("http-accepts-malformed", &["QUE-HTTP-07"], "A job without a goal is put.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            accept_without_goal(text, config)
        }
    }),
    decides!("http-accepts-tail", &["QUE-HTTP-07"], "What follows the job is put as well.", {
        fn read(&self, text: &[u8], config: &Config) -> Result<RunRequest, Refusal> {
            let end = memchr::memrchr(b'}', text).map_or(0, |end| end + 1);
            decisions::read(text.get(..end).unwrap_or_default(), config)
        }
    }),
    fault(
        "http-refuses-with-409",
        &["QUE-HTTP-08"],
        "What is malformed is answered by 409.",
        HttpFault::Recodes(400, 409),
    ),
    fault(
        "http-refuses-with-200",
        &["QUE-HTTP-09"],
        "What is malformed is answered by 200.",
        HttpFault::Recodes(400, 200),
    ),
    fault(
        "http-refuses-with-500",
        &["QUE-HTTP-09"],
        "What is malformed is answered by 500.",
        HttpFault::Recodes(400, 500),
    ),
    fault(
        "http-large-is-400",
        &["QUE-HTTP-10"],
        "What is too large is answered by 400.",
        HttpFault::Recodes(413, 400),
    ),
    fault(
        "http-large-is-500",
        &["QUE-HTTP-11"],
        "What is too large is answered by 500.",
        HttpFault::OversizeIsServerError,
    ),
    config("http-large", &["QUE-HTTP-11"], "A job may have 32 MiB.", |config: &mut Config| {
        config.limits.stdin_bytes_max = 32 << 20;
    }),
    fault("http-exact-names", &["QUE-HTTP-12"], "Header names have one case.", HttpFault::ExactNames),
    fault("http-wants-blank", &["QUE-HTTP-12"], "`Name:value` is no header.", HttpFault::WantsBlank),
    fault("http-small", &["QUE-HTTP-12"], "A job has 100,000 bytes at most.", HttpFault::SmallBodies),
    fault(
        "http-first-piece",
        &["QUE-HTTP-12"],
        "What comes first of a body is all of it.",
        HttpFault::FirstPiece,
    ),
    fault(
        "http-serves-cut",
        &["QUE-HTTP-13"],
        "A body that ends early is taken for a whole one.",
        HttpFault::ServesCut,
    ),
    fault(
        "http-first-length",
        &["QUE-HTTP-14"],
        "Of several lengths the first one counts, and no sign is looked at.",
        HttpFault::FirstLength,
    ),
    fault(
        "http-loose-length",
        &["QUE-HTTP-14"],
        "A length may have a plus sign and underscores.",
        HttpFault::LooseLength,
    ),
    fault(
        "http-impatient",
        &["QUE-HTTP-27"],
        "A client that is silent for a quarter of a second is dropped.",
        HttpFault::Impatient,
    ),
    fault(
        "http-drops-silent",
        &["QUE-HTTP-27"],
        "A client that is silent for a second is dropped.",
        HttpFault::DropsSilent,
    ),
    fault(
        "http-leaves-bodies",
        &["QUE-HTTP-20"],
        "The body of a request that is refused by its path or method is read as the next one.",
        HttpFault::LeavesBodies,
    ),
    fault(
        "http-length-over-chunks",
        &["QUE-HTTP-40"],
        "Of a length beside chunks the length counts.",
        HttpFault::LengthOverChunks,
    ),
    fault(
        "http-shares-a-buffer",
        &["QUE-HTTP-06"],
        "Large bodies that come at the same time share one buffer.",
        HttpFault::SharesBuffer,
    ),
    carrier(
        "http-takes-jobs",
        &["QUE-HTTP-33"],
        "A job is moved to done a second after it was put.",
        Carried::TakesJobs,
    ),
    fault(
        "http-holds-bodies",
        &["QUE-HTTP-38"],
        "A body that is too large is held before it is refused.",
        HttpFault::HoldsBodies,
    ),
    fault(
        "http-refuses-expect",
        &["QUE-HTTP-17"],
        "Who waits before the body is refused.",
        HttpFault::RefusesExpect,
    ),
    fault(
        "http-any-path",
        &["QUE-HTTP-19"],
        "Another path is answered by 200.",
        HttpFault::Recodes(404, 200),
    ),
    fault(
        "http-any-method",
        &["QUE-HTTP-20"],
        "Another method is answered by 200.",
        HttpFault::OtherMethodIsFine,
    ),
    fault("http-ill", &["QUE-HTTP-23"], "Its health is answered by 500.", HttpFault::Recodes(200, 500)),
    fault(
        "http-one-connection",
        &["QUE-HTTP-25"],
        "One connection is served at a time.",
        HttpFault::OneConnection,
    ),
    fault(
        "http-few-connections",
        &["QUE-HTTP-26"],
        "More than 20 connections are refused.",
        HttpFault::FewConnections,
    ),
    fault(
        "http-tires",
        &["QUE-HTTP-28"],
        "After fifty jobs all are answered by 200 and nothing.",
        HttpFault::TiresAfterFifty,
    ),
    fault(
        "http-ends-at-garbage",
        &["QUE-HTTP-31"],
        "What is no request ends the process.",
        HttpFault::EndsAtGarbage,
    ),
    fault(
        "http-ends-at-cut",
        &["QUE-HTTP-31"],
        "A connection that breaks off ends the process.",
        HttpFault::EndsAtCut,
    ),
    fault(
        "http-hangs-at-garbage",
        &["QUE-HTTP-31"],
        "After what is no request nothing is answered.",
        HttpFault::HangsAtGarbage,
    ),
    disk("http-completes", &["QUE-HTTP-33"], "A job is moved to done as soon as it is put.", |disk, op| {
        match op {
            Op::Move(from, to) if is_in(&to, "inbox") => {
                disk.act(Op::Make(b"done".to_vec()))?;
                disk.act(Op::Move(from, [b"done", to.get(b"inbox".len()..).unwrap_or_default()].concat()))
            }
            op => disk.act(op),
        }
    }),
    config("http-open", &["QUE-HTTP-34"], "It listens wherever it is told to.", |config: &mut Config| {
        config.token.get_or_insert_with(|| "none".to_owned());
    }),
    decides!("http-open-ipv6", &["QUE-HTTP-34"], "It listens at every address of IPv6.", {
        fn is_near(&self, address: IpAddr) -> bool {
            address.is_ipv6() || address.is_loopback()
        }
    }),
    decides!("tok-missing", &["QUE-TOK-01"], "Without a token a request is served.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            header.is_none() || token_matches(header, token)
        }
    }),
    fault(
        "tok-large",
        &["QUE-TOK-01"],
        "A job of more than 100,000 bytes needs no token.",
        HttpFault::TrustsLarge,
    ),
    fault("tok-chunks", &["QUE-TOK-01"], "A job in chunks needs no token.", HttpFault::TrustsChunks),
    decides!("tok-prefix", &["QUE-TOK-01"], "The beginning of the token will do.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            let given = header.and_then(|header| header.split_once(' ')).map(|(_, given)| given);
            given.is_some_and(|given| !given.is_empty() && token.starts_with(given))
        }
    }),
    decides!("tok-longer", &["QUE-TOK-01"], "What begins with the token will do.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            let given = header.and_then(|header| header.split_once(' ')).map(|(_, given)| given);
            given.is_some_and(|given| given.starts_with(token))
        }
    }),
    decides!("tok-all-but-the-end", &["QUE-TOK-01"], "The token is compared but for its last characters.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            let given = header.and_then(|header| header.split_once(' ')).map(|(_, given)| given.as_bytes());
            let most = token.len().saturating_sub(2);
            given.is_some_and(|given| {
                given.len() == token.len() && given.get(..most) == token.as_bytes().get(..most)
            })
        }
    }),
    decides!("tok-all-but-the-middle", &["QUE-TOK-01"], "The token is compared at its ends.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            let given = header.and_then(|header| header.split_once(' ')).map(|(_, given)| given.as_bytes());
            let (own, part) = (token.as_bytes(), token.len() / 3);
            given.is_some_and(|given| {
                given.len() == own.len()
                    && given.get(..part) == own.get(..part)
                    && given.get(given.len() - part..) == own.get(own.len() - part..)
            })
        }
    }),
    decides!("tok-any-case", &["QUE-TOK-01"], "The token is taken in any case.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            let given = header.and_then(|header| header.split_once(' ')).map(|(_, given)| given);
            given.is_some_and(|given| given.eq_ignore_ascii_case(token))
        }
    }),
    decides!("tok-no-blank", &["QUE-TOK-01"], "The token may stand right behind its scheme.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            let bare = header.and_then(|header| header.strip_prefix("Bearer")).map(str::trim_start);
            token_matches(header, token) || bare == Some(token)
        }
    }),
    decides!("tok-empty", &["QUE-TOK-01"], "An empty token will do.", {
        fn is_authorized(&self, header: Option<&str>, token: &str) -> bool {
            token_matches(header, token) || header.is_some_and(|header| header.trim() == "Bearer")
        }
    }),
    fault(
        "tok-forbidden",
        &["QUE-TOK-01"],
        "Without a token the answer is 403.",
        HttpFault::Recodes(401, 403),
    ),
    decides!("tok-stored", &["QUE-TOK-02"], "A job tells the token that it came with.", {
        fn stored(&self, text: &[u8], config: &Config) -> Vec<u8> {
            let end = memchr::memrchr(b'}', text).unwrap_or(text.len());
            let token = config.token.as_deref().unwrap_or_default();
            let mut out = text.get(..end).unwrap_or_default().to_vec();
            out.extend_from_slice(b",\"_token\":");
            write_str(&mut out, token);
            out.push(b'}');
            out
        }
    }),
    fault(
        "tok-in-head",
        &["QUE-TOK-02"],
        "The head of a reply repeats the token.",
        HttpFault::TellsAuthorization,
    ),
    config(
        "tok-always",
        &["QUE-TOK-03"],
        "A token is needed where none is configured.",
        |config: &mut Config| {
            config.token.get_or_insert_with(|| "none".to_owned());
        },
    ),
];
