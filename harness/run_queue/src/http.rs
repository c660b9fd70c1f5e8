//! The HTTP adapter: a job posted to it is in the inbox before it says so.

use std::collections::BTreeMap;

use peerproof_engine::blame::Misconfigured;
use peerproof_engine::carriage::{Carriage, Framing, HTTP};
use peerproof_engine::check::{Check, Untestable};
use peerproof_engine::face::Aim;
use peerproof_engine::facts::Facts;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_engine::rng::Rng;
use peerproof_engine::transcript::{Transcript, strict};
use serde_json::Value;

use crate::inbox::{self, QUEUE};

mod cases;
mod face;
mod framings;
mod generate;
mod request;
#[cfg(test)]
mod tests;
mod tokens;

pub use cases::checks;
pub use face::{judge, lives_on};
pub use generate::conversation;
use request::{Request, Token};

/// Checks without a mutant, and why.
pub const REDUNDANT: &[(&str, &str)] = &[
    (
        "run_queue/http/length/none",
        "to the reference a body without a length is an empty one, which is refused anyway",
    ),
    (
        "run_queue/http/size/limit-in-chunks",
        "what takes chunks lies around the machine; the same with a length notices its mutant",
    ),
    (
        "run_queue/http/process/port-in-use",
        "what binds the reference's port lies around the machine, and has no seam",
    ),
];

/// The feature that is a token, and its placeholder.
const TOKEN: &str = "token";

/// Where jobs are posted to.
const PATH: &str = "/enqueue";

/// Where its health is asked after.
const HEALTH: &str = "/health";

/// Time that an adapter has, milliseconds, to enqueue what it must not, where no reply shows when it is through.
const RAW_MS: u64 = 300;

/// The host that it listens at.
const LOOPBACK: &str = "127.0.0.1";

/// A host that is reached from everywhere, and the same over IPv6.
const ANYWHERE: &str = "0.0.0.0";
const ANYWHERE_IPV6: &str = "::";

/// Refuses a plan that is not wholly read.
///
/// # Errors
/// One sentence.
pub fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(&transcript.plan)
}

/// Whether an adapter without a token may answer a request by this status; `bytes` are all of the request, head and body.
pub fn may_answer(bytes: &[u8], status: u16) -> bool {
    let how = Carriage::post().framing(Framing::Verbatim);
    Request::of(&how, bytes).stand(None).allows(status)
}

/// A plain job, which no other of these numbers equals, of an adapter without a token.
pub fn isolating(number: u64) -> Step {
    let payload = Payload::text(inbox::job(&format!("isolating-{number}")));
    let act = Act::Send { payload, chunking: Chunking::Whole, await_frames: 1 };
    Step { canary: true, http: Some(Carriage { counted: true, ..Carriage::post() }), ..Step::new(act) }
}

/// Makes conversations with the adapter.
struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    /// A word that no other conversation has.
    word: String,
    count: usize,
    session: usize,
    token: Option<Token>,
    /// Something was said as it is written.
    has_said: bool,
}

impl<'a> Talk<'a> {
    /// A conversation with one process, which is told a token where that is said. Nothing is said yet.
    fn begin(facts: &'a Facts, rng: &mut Rng, has_token: bool) -> Result<Self, Untestable> {
        if facts.shared {
            return Err(Untestable::new("shared", "the queue of an adapter that runs already is not known"));
        }
        let word = format!("{:016x}", rng.next_u64());
        let letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ";
        let mut letter = || letters.as_bytes()[rng.next_u64() as usize % letters.len()] as char;
        let token = has_token.then(|| Token::new(facts, &(0..24).map(|_| letter()).collect::<String>()));
        let plan = Plan { fixtures: vec![inbox::fixture()], ..Plan::default() };
        let mut talk = Self { facts, plan, word, count: 0, session: 0, token, has_said: false };
        talk.open(Session::default());
        Ok(talk)
    }

    /// Begins with a canary.
    fn new(facts: &'a Facts, rng: &mut Rng, has_token: bool) -> Result<Self, Untestable> {
        let mut talk = Self::begin(facts, rng, has_token)?;
        talk.canary();
        talk.look();
        Ok(talk)
    }

    /// Adds a process; what follows is said to it.
    fn open(&mut self, mut session: Session) {
        session.command = HTTP.to_owned();
        let usual = [(QUEUE, "{{queue.path}}"), ("host", LOOPBACK)];
        for (name, value) in usual {
            session.placeholders.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        if let Some(Token { token, .. }) = &self.token {
            session.placeholders.insert(TOKEN.to_owned(), token.clone());
            let setting = |name: &str| self.facts.features.get(TOKEN).and_then(|it| it.get(name));
            if let Some(name) = setting("env").and_then(Value::as_str) {
                session.env.insert(name.to_owned(), token.clone());
            }
            let arguments = setting("args").and_then(Value::as_array).into_iter().flatten();
            session.arguments.extend(arguments.filter_map(Value::as_str).map(str::to_owned));
        }
        self.plan.sessions.push(session);
        self.session = self.plan.sessions.len() - 1;
    }

    /// A job that no other equals.
    fn job(&mut self) -> String {
        self.count += 1;
        inbox::job(&format!("{}-{}", self.word, self.count))
    }

    fn step(&mut self, act: Act) -> &mut Step {
        let at = self.plan.steps.len();
        self.plan.steps.push(Step { session: self.session, ..Step::new(act) });
        &mut self.plan.steps[at]
    }

    /// Sends a request, with the token where there is one, and waits for so many replies.
    fn send(&mut self, aim: &str, mut how: Carriage, payload: Payload, await_frames: u32) -> &mut Step {
        if let Some(Token { header, value, .. }) = self.token.as_ref().filter(|_| !how.is_verbatim()) {
            let is_there = how
                .headers
                .iter()
                .any(|line| line.split_once(':').is_some_and(|(name, _)| name.eq_ignore_ascii_case(header)));
            if !is_there {
                how.headers.push(format!("{header}: {value}"));
            }
        }
        how.counted = !how.is_raw();
        let step = self.step(Act::Send { payload, chunking: Chunking::Whole, await_frames });
        step.http = Some(how);
        step.expect = Aim::about(aim);
        step
    }

    /// A job that has to be enqueued, however it is carried.
    fn put(&mut self, aim: &str, how: Carriage, text: &str) -> &mut Step {
        self.send(aim, how, Payload::from_bytes(text.as_bytes()), 1)
    }

    /// A request that may be refused; a canary and a look follow.
    fn ask(&mut self, aim: &str, how: Carriage, payload: Payload) {
        let is_raw = how.is_raw();
        self.send(aim, how, payload, u32::from(!is_raw));
        self.canary();
        // No reply tells that the adapter is through with it, and a canary on another connection may overtake it.
        self.step(inbox::look_after(if is_raw { RAW_MS } else { 0 }));
    }

    /// The same as it is written, head and all; a line of its end is a line feed behind a carriage return. What is said first
    /// comes behind a job that is said so and put.
    fn say(&mut self, aim: &str, text: &str) {
        if !std::mem::replace(&mut self.has_said, true) {
            let job = self.job();
            let text = cases::head(&format!("Content-Length: {}\r\n", job.len()), &job);
            let connection = u32::try_from(self.count).unwrap_or(1);
            let how = Carriage::post().framing(Framing::Verbatim).on(connection);
            self.send("", how, Payload::from_bytes(text.as_bytes()), 1).canary = true;
        }
        self.count += 1;
        let connection = u32::try_from(self.count).unwrap_or(1);
        let how = Carriage::post().framing(Framing::Verbatim).on(connection);
        self.ask(aim, how, Payload::from_bytes(text.as_bytes()));
    }

    fn canary(&mut self) {
        let job = self.job();
        self.put("", Carriage::post(), &job).canary = true;
    }

    fn look(&mut self) {
        self.step(inbox::look());
    }
}

/// A check of the adapter: a conversation that begins and ends with a canary, and a look behind each.
fn check(
    id: &str,
    title: &str,
    clauses: &[&str],
    build: impl Fn(&mut Talk<'_>) -> Result<(), Untestable> + Send + Sync + 'static,
) -> Check {
    of(id, title, clauses, false, build)
}

/// The same with a token.
fn with_token(
    id: &str,
    title: &str,
    clauses: &[&str],
    build: impl Fn(&mut Talk<'_>) -> Result<(), Untestable> + Send + Sync + 'static,
) -> Check {
    of(id, title, clauses, true, build).feature(TOKEN)
}

fn of(
    id: &str,
    title: &str,
    clauses: &[&str],
    has_token: bool,
    build: impl Fn(&mut Talk<'_>) -> Result<(), Untestable> + Send + Sync + 'static,
) -> Check {
    let planner = move |facts: &Facts, rng: &mut Rng| {
        let mut talk = Talk::new(facts, rng, has_token)?;
        build(&mut talk)?;
        Ok(talk.plan)
    };
    let id = format!("run_queue/http/{id}");
    Check::new(id, title, clauses.iter().copied(), HTTP, planner).on_process()
}

/// A process that is started beside the others, and not spoken to: it listens at this host and port, or does not.
fn beside(host: &str, port: &str) -> Session {
    let told = [("host", host), ("port", port), ("addr", &format!("{host}:{port}"))];
    let placeholders: BTreeMap<String, String> =
        told.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Session { placeholders, ..Session::default() }
}
