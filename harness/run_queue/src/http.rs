//! The HTTP adapter: a posted job is in the inbox before the reply says so.

use std::collections::BTreeMap;

use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::carriage::{BodyFraming, Carriage, HTTP};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Transcript, strict};
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

pub use face::judge;
pub(crate) use face::lives_on;
pub use generate::conversation;
use request::{Request, Token};

/// Checks that kill no mutant, with reasons.
pub(crate) const REDUNDANT: &[(&str, &str)] = &[
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

/// All checks of the adapter.
pub fn checks() -> Vec<Check> {
    let puts = [cases::puts(), cases::others(), cases::malformed()].concat();
    let around =
        [cases::around(), cases::beside_slow_clients(), cases::crowds(), cases::processes()].concat();
    [puts, framings::checks(), cases::sizes(), around, tokens::checks()].concat()
}

/// Name of the feature for a token, and of its placeholder.
const TOKEN: &str = "token";

/// Path for jobs.
const PATH: &str = "/enqueue";

/// Path of the health check.
const HEALTH: &str = "/health";

/// Time for an adapter to enqueue a forbidden job when no reply shows the end of its work, ms.
const RAW_MS: u64 = 300;

/// Host that the adapter listens on.
const LOOPBACK: &str = "127.0.0.1";

/// Addresses of all interfaces, IPv4 and IPv6.
const ANYWHERE: &str = "0.0.0.0";
const ANYWHERE_IPV6: &str = "::";

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(&transcript.plan)
}

/// True if an adapter without a token may answer a request with this status. `bytes` are the head and the body.
pub fn may_answer(bytes: &[u8], status: u16) -> bool {
    let how = Carriage::post().framing(BodyFraming::Verbatim);
    Request::of(&how, bytes).stand(None).allows(status)
}

/// A step with a plain job that is unique to this number, for an adapter without a token.
pub(crate) fn isolating(number: u64) -> Step {
    let payload = Payload::text(inbox::job(&format!("isolating-{number}")));
    let act = Act::Send { payload, chunking: Chunking::Whole, await_frames: 1 };
    Step { canary: true, http: Some(Carriage { counted: true, ..Carriage::post() }), ..Step::new(act) }
}

/// Builder of conversations with the adapter.
struct Talk<'a> {
    facts: &'a Facts,
    plan: Plan,
    /// Word that is unique to this conversation.
    word: String,
    count: usize,
    session: usize,
    token: Option<Token>,
    /// True after the first verbatim request.
    has_said: bool,
}

impl<'a> Talk<'a> {
    /// An empty conversation with one process, which gets a token if `has_token`.
    fn begin(facts: &'a Facts, rng: &mut Rng, has_token: bool) -> Result<Self, Untestable> {
        if facts.shared {
            return Err(Untestable::new(
                "shared",
                "peerproof does not know the queue of an adapter that is already running",
            ));
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

    /// A conversation that begins with a canary.
    fn new(facts: &'a Facts, rng: &mut Rng, has_token: bool) -> Result<Self, Untestable> {
        let mut talk = Self::begin(facts, rng, has_token)?;
        talk.canary();
        talk.look();
        Ok(talk)
    }

    /// Adds a process; the following steps talk to it.
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

    /// A job that differs from all others.
    fn job(&mut self) -> String {
        self.count += 1;
        inbox::job(&format!("{}-{}", self.word, self.count))
    }

    fn step(&mut self, act: Act) -> &mut Step {
        let at = self.plan.steps.len();
        self.plan.steps.push(Step { session: self.session, ..Step::new(act) });
        &mut self.plan.steps[at]
    }

    /// Sends a request, with the token if there is one, and waits for this many replies.
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

    /// Posts a job that must be enqueued, whatever its framing.
    fn put(&mut self, aim: &str, how: Carriage, text: &str) -> &mut Step {
        self.send(aim, how, Payload::from_bytes(text.as_bytes()), 1)
    }

    /// Sends a request that may be refused, followed by a canary and a look.
    fn ask(&mut self, aim: &str, how: Carriage, payload: Payload) {
        let is_raw = how.is_raw();
        self.send(aim, how, payload, u32::from(!is_raw));
        self.canary();
        // No reply shows that the adapter is done, and a canary on another connection may overtake the request.
        self.step(inbox::look_after(if is_raw { RAW_MS } else { 0 }));
    }

    /// Sends a verbatim request, head and body. The first such request follows a valid job that is sent in the same
    /// way.
    fn say(&mut self, aim: &str, text: &str) {
        if !std::mem::replace(&mut self.has_said, true) {
            let job = self.job();
            let text = cases::head(&format!("Content-Length: {}\r\n", job.len()), &job);
            let connection = u32::try_from(self.count).unwrap_or(1);
            let how = Carriage::post().framing(BodyFraming::Verbatim).on(connection);
            self.send("", how, Payload::from_bytes(text.as_bytes()), 1).canary = true;
        }
        self.count += 1;
        let connection = u32::try_from(self.count).unwrap_or(1);
        let how = Carriage::post().framing(BodyFraming::Verbatim).on(connection);
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

/// A check of the adapter: a conversation that begins and ends with a canary, each followed by a look.
fn check(
    id: &str,
    title: &str,
    clauses: &[&str],
    build: impl Fn(&mut Talk<'_>) -> Result<(), Untestable> + Send + Sync + 'static,
) -> Check {
    of(id, title, clauses, false, build)
}

/// A check of the adapter with a token.
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

/// A further process on this host and port that gets no requests; it may fail to listen.
fn beside(host: &str, port: &str) -> Session {
    let told = [("host", host), ("port", port), ("addr", &format!("{host}:{port}"))];
    let placeholders: BTreeMap<String, String> =
        told.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Session { placeholders, ..Session::default() }
}
