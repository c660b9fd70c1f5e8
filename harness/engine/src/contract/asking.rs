//! Support for peers that run calls by starting programs and connecting to servers. The peer reads a scenario of calls
//! from a file and writes one line per call to a results file. The harness plays the program or server of each call.
//!
//! A boundary defines the further fields of a call, the possible outcomes, and which outcomes are correct for the
//! script played.

mod observed_calls;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::contract::counterpart::{Counterpart, CounterpartAction};
use crate::contract::face::Aim;
use crate::data::blame::Misconfigured;
use crate::data::carriage::path_of;
use crate::data::clause::ClauseId;
use crate::data::finding::{Finding, Repair};
use crate::data::json::{self, DecodeLimits, Json};
use crate::data::nearest::did_you_mean;
use crate::data::payload::{Payload, Segment, Vars, shorten};
use crate::data::pieces::without_pieces;
use crate::data::plan::{Act, ActorStep, Fixture, Plan, Session, Step};
use crate::data::transcript::{EventKind, Exit, Transcript};

pub use observed_calls::{ObservedCalls, noted};

/// Name of the fixture that holds the scenario.
pub const SCENARIO: &str = "scenario";

/// Name of the fixture that receives the results.
pub const RESULTS: &str = "results";

/// Name of a watched folder. Watching gives the events of played programs their timestamps.
const CLOCK: &str = "clock";

/// Ref of the last call, which shows that the peer still works.
pub const CANARY: &str = "canary";

/// Time allowed for the outcome after the timeout of a call, ms.
pub const GRACE_MS: u64 = 1_000;

/// Extra delay allowed on a busy machine, ms; `--timeout-scale` stretches it.
pub const LATE_MS: u64 = 1_500;

/// Time allowed for starting each call on a busy machine, ms.
const START_MS: u64 = 300;

/// Assumed rate at which a slow peer reads a reply and records it, bytes per millisecond.
const BYTES_PER_MS: u64 = 500;

/// Maximum number of results lines read.
const LINES_MAX: usize = 4_096;

/// Number of writes from which a program counts as trickling.
const TRICKLES: usize = 3;

/// Maximum number of JSON values in a results line. No played reply has as many, and each takes memory.
const VALUES_MAX: usize = 1 << 19;

/// Maximum length of a quoted result, characters.
const QUOTED_CHARS: usize = 160;

/// Name of the fixture that is played for a call.
pub fn played(call: &str) -> String {
    format!("played-{call}")
}

/// Mark that stands for a fixture variable, such as `played-a.path`, in a scenario.
pub fn variable(name: &str) -> String {
    format!("⟦{name}⟧")
}

/// One call of a scenario, as the peer reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Ref of the call.
    pub name: String,
    /// Refs of the calls that must end before this one begins.
    pub after: Vec<String>,
    /// The whole object; fixture variables are written as [`variable`] says.
    pub told: Json,
}

impl Call {
    fn read(told: &Json) -> Option<Self> {
        let after = told.get("after").and_then(Json::as_array).unwrap_or_default();
        let after = after.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        Some(Self { name: told.get("ref")?.as_str()?.to_owned(), after, told: told.clone() })
    }

    /// Timeout in milliseconds, from `timeout_ms` or else `timeout_seconds`; `None` if neither is given.
    pub fn timeout_ms(&self) -> Option<u64> {
        if let Some(ms) = self.told.get("timeout_ms") {
            return ms.as_u64();
        }
        let seconds = self.told.get("timeout_seconds")?.as_f64()?;
        // Longer than a day is no usable timeout.
        (0.0..86_400.0).contains(&seconds).then(|| (seconds * 1_000.0).round() as u64)
    }
}

/// Describes the outcome `timeout`: not before `ms` (0: at any time) and not after `latest_ms`.
pub fn timeout_phrase(ms: u64, latest_ms: u64) -> String {
    match ms {
        0 => format!("timeout within {latest_ms} ms"),
        ms => format!("timeout after {ms} to {latest_ms} ms"),
    }
}

/// Builder for a conversation with a scenario.
#[derive(Debug, Clone, Default)]
pub struct SceneBuilder {
    told: Vec<(String, Json)>,
    env: BTreeMap<String, String>,
    calls: Vec<Json>,
    fixtures: Vec<Fixture>,
    lasts_ms: u64,
    is_slow: bool,
}

impl SceneBuilder {
    /// Adds a top-level member to the scenario. Fixture variables are written as [`variable`] says.
    pub fn tell(&mut self, name: &str, value: Json) {
        self.told.push((name.to_owned(), value));
    }

    /// Sets an environment variable of the peer; `{{fixture.member}}` stands for a variable of a fixture.
    pub fn set_env(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    /// Adds a fixture that belongs to no single call.
    pub fn fixture(&mut self, fixture: Fixture) {
        self.fixtures.push(fixture);
    }

    /// Adds a call with its fixtures; `lasts_ms` is how long they take.
    pub fn call(&mut self, told: Json, fixtures: impl IntoIterator<Item = Fixture>, lasts_ms: u64) {
        self.calls.push(told);
        self.fixtures.extend(fixtures);
        self.lasts_ms += lasts_ms + START_MS;
        self.is_slow |= lasts_ms > 0;
    }

    /// Refs of all calls so far.
    pub fn names(&self) -> Vec<String> {
        self.calls.iter().filter_map(Call::read).map(|call| call.name).collect()
    }

    /// Builds the plan for `command`, whose aim is `clause`.
    pub fn plan(self, command: &str, clause: &str) -> Plan {
        let file = |name: &str, content: Payload, kept: bool| Fixture::File {
            name: name.to_owned(),
            content,
            mode: None,
            kept,
        };
        let path = |name: &str| (name.to_owned(), format!("{{{{{name}.path}}}}"));
        let clock = Fixture::Folder { name: CLOCK.to_owned(), folders: Vec::new(), watched: true };
        let own = [
            file(SCENARIO, scenario(self.told, self.calls), false),
            file(RESULTS, Payload::default(), true),
            clock,
        ];
        let aim = Aim { clause: ClauseId(clause.to_owned()), reason: None };
        // The peer may run the calls one after the other.
        let reads_ms = self.fixtures.iter().map(written).sum::<u64>() / BYTES_PER_MS;
        let life_ms = self.lasts_ms + reads_ms + GRACE_MS + LATE_MS;
        let act = Act::Play { script: Value::Null, life_ms };
        Plan {
            fixtures: own.into_iter().chain(self.fixtures).collect(),
            sessions: vec![Session {
                command: command.to_owned(),
                placeholders: BTreeMap::from([path(SCENARIO), path(RESULTS)]),
                env: self.env,
                shows_start: Some(!self.is_slow),
                ..Session::default()
            }],
            steps: vec![Step { expect: serde_json::to_value(aim).unwrap_or_default(), ..Step::new(act) }],
            ..Plan::default()
        }
    }
}

/// Number of bytes that a fixture writes.
fn written(fixture: &Fixture) -> u64 {
    let bytes = |payload: &Payload| payload.len(&Vars::new()) as u64;
    match fixture {
        Fixture::Listener { body, .. } => bytes(body),
        Fixture::Actor { script, .. } => bytes(&Script::of(script).output),
        _ => 0,
    }
}

/// Scenario text with fixture variables as segments.
fn scenario(told: Vec<(String, Json)>, calls: Vec<Json>) -> Payload {
    let whole = Json::Object([told, vec![("calls".to_owned(), Json::array(calls))]].concat());
    let text = whole.to_text();
    let mut payload = Payload::default();
    for (at, part) in text.split('⟦').enumerate() {
        let literal = match part.split_once('⟧').filter(|_| at > 0) {
            Some((name, rest)) => {
                payload = payload.var(name);
                rest
            }
            None => part,
        };
        payload = payload.then(Payload::from_bytes(literal.as_bytes()));
    }
    payload
}

/// Scenario of a plan, with [`variable`] marks in place of fixture variables.
pub fn told(plan: &Plan) -> Option<Json> {
    let content = plan.fixtures.iter().find_map(|fixture| match fixture {
        Fixture::File { name, content, .. } if name == SCENARIO => Some(content),
        _ => None,
    })?;
    let vars: Vars = content.variables().map(|name| (name.to_owned(), variable(name))).collect();
    let text = content.expand(&vars).ok()?;
    Some(json::decode(&text, &DecodeLimits::default()).ok()?.value)
}

/// Calls in the scenario of a plan.
pub fn calls(plan: &Plan) -> Option<Vec<Call>> {
    told(plan)?.get("calls")?.as_array()?.iter().map(Call::read).collect()
}

/// Counterpart that only waits while fixtures are played, for
/// [`Wire::counterpart`](crate::contract::boundary::Wire::counterpart).
pub struct Bystander;

impl Counterpart for Bystander {
    fn take(&mut self, _frame: &[u8], _now_us: u64) {}

    fn next(&mut self, _now_us: u64) -> Option<CounterpartAction> {
        None
    }

    fn due_us(&self) -> Option<u64> {
        None
    }
}

/// Summary of the steps of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// Everything written to standard output.
    pub output: Payload,
    /// Number of writes to standard output.
    pub writes: usize,
    /// Total time slept, ms.
    pub sleeps_ms: u64,
    /// Exit, if the script sets one.
    pub exit: Option<Exit>,
    /// Set if the program reads its input.
    pub reads: bool,
    /// Set if the program writes to standard output before it reads its input.
    pub writes_first: bool,
    /// Set if the program writes to standard error.
    pub complains: bool,
    /// Set if the program leaves a process that holds its pipes.
    pub forks: bool,
}

impl Script {
    /// True if the program writes its output little by little.
    pub fn trickles(&self) -> bool {
        self.writes >= TRICKLES
    }

    /// Duration of a call with this script and timeout, ms. A trickling program runs to its end: a peer may count its
    /// timeout anew after each write.
    pub fn lasts_ms(&self, timeout_ms: u64) -> u64 {
        if self.trickles() { self.sleeps_ms } else { self.sleeps_ms.min(timeout_ms + GRACE_MS) }
    }

    /// Summarizes steps.
    pub fn of(steps: &[ActorStep]) -> Self {
        let mut script = Self::default();
        for step in steps {
            match step {
                ActorStep::ReadRequest | ActorStep::ReadToEnd => script.reads = true,
                ActorStep::Stdout(payload) => {
                    script.output = std::mem::take(&mut script.output).then(payload.clone());
                    script.writes += 1;
                    script.writes_first |= !script.reads;
                }
                ActorStep::Stderr(_) => script.complains = true,
                ActorStep::Sleep { ms } => script.sleeps_ms += ms,
                ActorStep::ForkHolder { .. } => script.forks = true,
                ActorStep::Die(signal) => script.exit = Some(Exit::Signal(*signal)),
                ActorStep::Exit(status) => script.exit = Some(Exit::Code(*status)),
                _ => {}
            }
            if script.exit.is_some() {
                break;
            }
        }
        script.exit = script.exit.or(Some(Exit::Code(0)));
        script
    }
}

/// Steps of a program that replies. The variables `reply`, `first` and `rest` in its output become the reply, its first
/// half and its second half.
pub fn replying(script: Vec<ActorStep>, reply: &Payload) -> Vec<ActorStep> {
    let half = reply.len(&Vars::new()) as u64 / 2;
    let fill = |segment: Segment| match &segment {
        Segment::Var(name) if name == "reply" => reply.clone(),
        Segment::Var(name) if name == "first" => reply.prefix(half),
        Segment::Var(name) if name == "rest" => {
            let text = reply.expand(&Vars::new()).unwrap_or_default();
            Payload::from_bytes(&text[text.len().min(half as usize)..])
        }
        _ => Payload(vec![segment]),
    };
    let filled = |step| match step {
        ActorStep::Stdout(payload) => {
            ActorStep::Stdout(payload.0.into_iter().map(fill).fold(Payload::default(), Payload::then))
        }
        other => other,
    };
    script.into_iter().map(filled).collect()
}

/// HTTP request that a played server received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Time of the connection, microseconds.
    pub at_us: u64,
    /// Request line and headers.
    pub head: Vec<u8>,
    /// Body, if the server reads it.
    pub body: Vec<u8>,
}

impl Request {
    /// Value of the first header with this name, given in lower case.
    pub fn header(&self, name: &str) -> Option<String> {
        let head = String::from_utf8_lossy(&self.head);
        head.lines().skip(1).find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }

    /// Finding against `clause` if the head is not that of a JSON text posted to `path`.
    pub fn misposted(&self, path: &str, clause: &'static str) -> Option<Finding> {
        let head = String::from_utf8_lossy(&self.head);
        let first = head.lines().next().unwrap_or_default();
        let mut words = first.split(' ');
        if words.next() != Some("POST") || words.next().is_none_or(|target| path_of(target) != path) {
            let expected = format!("POST {path}");
            let finding = Finding::new(clause, "other_request", expected, shorten(first, QUOTED_CHARS));
            return Some(finding.repaired_by(Repair::other("")));
        }
        let given = self.header("content-type").unwrap_or_default();
        let came = given.split(';').next().unwrap_or_default().trim();
        (!came.eq_ignore_ascii_case("application/json")).then(|| {
            let expected = "Content-Type: application/json";
            Finding::new(clause, "content_type", expected, shorten(came, QUOTED_CHARS))
                .repaired_by(Repair::set("", "\"application/json\""))
        })
    }
}

/// Events of one call as the harness observed them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallTimeline {
    /// Starts of the program: time in microseconds, arguments.
    pub starts: Vec<(u64, Vec<String>)>,
    /// Input that the program read, if it read any.
    pub received: Option<Vec<u8>>,
    /// Time and kind of the program's own end.
    pub ended: Option<(u64, Exit)>,
    /// Requests to the server of the call.
    pub requests: Vec<Request>,
    /// Requests to the path that has a reply of its own.
    pub asides: Vec<Request>,
    /// Time at which the reply on that path was written whole, microseconds.
    pub aside_replied_us: Option<u64>,
    /// Time at which the server's reply was written whole, microseconds.
    pub replied_us: Option<u64>,
}

impl CallTimeline {
    /// Time of the first start or request, microseconds.
    pub fn begun_us(&self) -> Option<u64> {
        let starts = self.starts.iter().map(|(at_us, _)| *at_us);
        starts.chain(self.requests.iter().chain(&self.asides).map(|request| request.at_us)).min()
    }

    /// True if the program was started or the server received a request other than an aside.
    pub fn is_executed(&self) -> bool {
        !self.starts.is_empty() || !self.requests.is_empty()
    }

    /// Time at which the program or the server finished by itself, microseconds.
    pub fn over_us(&self) -> Option<u64> {
        self.ended.map(|(at_us, _)| at_us).or(self.replied_us)
    }
}

/// Courses of all calls, in their order.
pub fn courses(transcript: &Transcript, calls: &[Call]) -> Vec<CallTimeline> {
    let names: Vec<String> = calls.iter().map(|call| played(&call.name)).collect();
    let mut courses = vec![CallTimeline::default(); calls.len()];
    for event in &transcript.events {
        let of = |name: &String| names.iter().position(|known| known == name);
        let beside = |listener: &String| of(&listener.split_once('/')?.0.to_owned());
        match &event.kind {
            EventKind::ActorStarted { actor, argv, .. } => {
                of(actor).into_iter().for_each(|at| courses[at].starts.push((event.at_us, argv.clone())));
            }
            EventKind::ActorReceived { actor, bytes, .. } => {
                if let Some(at) = of(actor) {
                    courses[at].received.get_or_insert_default().extend_from_slice(&bytes.0);
                }
            }
            EventKind::ActorEnded { actor, exit, .. } => {
                of(actor).into_iter().for_each(|at| courses[at].ended = Some((event.at_us, *exit)));
            }
            // A peer may open a connection without using it.
            EventKind::ListenerHit { listener, head, body } if !head.0.is_empty() => {
                let request = Request { at_us: event.at_us, head: head.0.clone(), body: body.0.clone() };
                match (of(listener), beside(listener)) {
                    (Some(at), _) => courses[at].requests.push(request),
                    (None, Some(at)) => courses[at].asides.push(request),
                    (None, None) => {}
                }
            }
            EventKind::ListenerReplied { listener, whole: true, .. } => {
                match (of(listener), beside(listener)) {
                    (Some(at), _) => courses[at].replied_us = Some(event.at_us),
                    (None, Some(at)) => courses[at].aside_replied_us = Some(event.at_us),
                    (None, None) => {}
                }
            }
            _ => {}
        }
    }
    courses
}

/// One line of the results file.
#[derive(Debug, Clone, PartialEq)]
pub struct CallResult {
    /// Ref of the call.
    pub name: String,
    /// Reported outcome.
    pub outcome: String,
    /// The whole object.
    pub line: Json,
}

impl CallResult {
    /// Shortened text of the line.
    pub fn phrase(&self) -> String {
        shorten(&self.line.to_text(), QUOTED_CHARS).into_owned()
    }
}

/// Number of `,`, `[` and `{` outside strings. It bounds the number of values before the text is decoded.
fn separators(text: &[u8]) -> usize {
    let (mut is_text, mut is_escaped) = (false, false);
    let is_one = |byte: &&u8| {
        let was_escaped = is_escaped;
        is_escaped = is_text && !was_escaped && **byte == b'\\';
        is_text ^= **byte == b'"' && !was_escaped;
        !is_text && matches!(byte, b',' | b'[' | b'{')
    };
    text.iter().filter(is_one).count()
}

/// Results lines in an event, and the first fault of their form. `wrong` checks a line beyond its ref and outcome.
pub fn results(
    kind: &EventKind,
    wrong: impl Fn(&CallResult) -> Option<&'static str>,
) -> (Vec<CallResult>, Option<String>) {
    let held = match kind {
        EventKind::FileHeld { file, bytes } if file == RESULTS => bytes.0.as_slice(),
        _ => &[],
    };
    let (mut noted, mut fault) = (Vec::new(), None);
    for line in held.split(|byte| *byte == b'\n').take(LINES_MAX) {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let read = match separators(line) {
            VALUES_MAX.. => Err("more JSON values than peerproof ever sends".into()),
            _ => json::decode(line, &DecodeLimits::default()).map_err(|error| error.to_string()),
        };
        let read = read.and_then(|decoded| {
            let text = |name: &str| decoded.value.get(name).and_then(Json::as_str).map(str::to_owned);
            let (name, outcome) =
                (text("ref").ok_or("no string `ref`")?, text("outcome").ok_or("no string `outcome`")?);
            let one = CallResult { name, outcome, line: decoded.value };
            wrong(&one).map_or(Ok(one), |what| Err(what.to_owned()))
        });
        match read {
            Ok(one) => noted.push(one),
            Err(error) => {
                let text = String::from_utf8_lossy(&line[..line.len().min(QUOTED_CHARS)]).into_owned();
                fault.get_or_insert(format!("{error}: {text}"));
            }
        }
    }
    (noted, fault)
}

/// Clauses that hold for every scenario.
#[derive(Debug, Clone, Copy)]
pub struct Clauses {
    /// Each call has exactly one line, well formed.
    pub results: &'static str,
    /// A program is started, or a request made, only once.
    pub once: &'static str,
    /// A call begins after the calls it depends on have ended.
    pub order: &'static str,
    /// The outcome is decided when the timeout of a call has passed.
    pub late: &'static str,
}

/// Findings about the form of the results and about when and how often calls were made, but not about outcomes.
/// `usual_ms` is the timeout of a call without one of its own.
pub fn faults(
    transcript: &Transcript,
    calls: &[Call],
    courses: &[CallTimeline],
    (noted, fault): &(Vec<CallResult>, Option<String>),
    usual_ms: u64,
    clauses: &Clauses,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |clause, reason, expected: &str, got: String, repair| {
        found.push(Finding::new(clause, reason, expected, got).repaired_by(repair));
    };
    if let Some(fault) = fault {
        let expected = "each line of the results file is a JSON object with the documented members";
        add(clauses.results, "bad_result_line", expected, fault.clone(), Repair::other(""));
    }
    if let Some(unknown) = noted.iter().find(|it| calls.iter().all(|call| call.name != it.name)) {
        let expected = "results for the calls of the scenario only";
        add(clauses.results, "unknown_ref", expected, unknown.phrase(), Repair::Drop);
    }
    for (call, course) in calls.iter().zip(courses) {
        let name = &call.name;
        if noted.iter().filter(|it| it.name == *name).count() > 1 {
            let expected = "one line in the results file for each call";
            let got = format!("several lines for the call {name:?}");
            add(clauses.results, "second_result_line", expected, got, Repair::Drop);
        }
        let times = course.starts.len().max(course.requests.len());
        if times > 1 {
            let expected = "one process start or one request for each call";
            add(clauses.once, "repeated", expected, format!("{times} for the call {name:?}"), Repair::Undo);
        }
        let Some(begun_us) = course.begun_us() else { continue };
        let before: Vec<(&Call, &CallTimeline)> =
            calls.iter().zip(courses).filter(|(other, _)| call.after.contains(&other.name)).collect();
        let is_early = |other: &CallTimeline| {
            // The harness cannot see when the peer had read a server's reply.
            let over_us = other.ended.map(|(at_us, _)| at_us).or(other.begun_us());
            over_us.is_some_and(|over_us| begun_us < over_us)
        };
        if let Some((other, _)) = before.iter().find(|(_, course)| is_early(course)) {
            let got = format!("the call {name:?} began before the call {:?} ended", other.name);
            let expected = "a call begins after all calls in its `after` have ended";
            add(clauses.order, "too_early", expected, got, Repair::Undo);
        }
        // A peer that runs calls one after the other may have been busy with others.
        let due_us = |(call, course): (&Call, &CallTimeline)| {
            let own_us = course.begun_us().filter(|own_us| *own_us < begun_us)?;
            let time_us = (call.timeout_ms().unwrap_or(usual_ms) + GRACE_MS) * 1_000;
            Some(own_us + time_us)
        };
        let late_us = transcript.stretched_ms(LATE_MS) * 1_000;
        let is_cut =
            before.iter().any(|(_, course)| course.begun_us().is_some() && course.over_us().is_none());
        let due_us = calls.iter().zip(courses).filter_map(due_us).max();
        if let Some(due_us) = due_us.filter(|due_us| is_cut && begun_us > due_us + late_us) {
            let ms = (begun_us - due_us) / 1_000;
            let got = format!("the call {name:?} began {ms} ms after the timeouts of all earlier calls");
            let expected = "the outcome of a call is final at most 1 s after its timeout";
            found.push(
                Finding::new(clauses.late, "pending_too_long", expected, got).repaired_by(Repair::Sooner),
            );
            return found;
        }
    }
    found
}

/// Smaller variants of a plan, with fewer calls.
pub fn variants(plan: &Plan) -> Vec<Plan> {
    let Some(all) = calls(plan) else { return Vec::new() };
    let names: Vec<&str> = all.iter().map(|call| call.name.as_str()).collect();
    let fewer = without_pieces(&names).into_iter().filter(|kept| !kept.is_empty());
    fewer.map(|kept| without(plan, &all, &kept)).collect()
}

fn without(plan: &Plan, all: &[Call], kept: &[&str]) -> Plan {
    let mut plan = plan.clone();
    let stays = |call: &&Call| kept.contains(&call.name.as_str());
    let told = all.iter().filter(stays).map(|call| {
        let mut told = call.told.clone();
        let after = call.after.iter().map(String::as_str).filter(|name| kept.contains(name));
        if !call.after.is_empty() {
            told.set("after", Json::array(after));
        }
        told
    });
    let mut others = self::told(&plan).unwrap_or_default();
    others.remove("calls");
    let others = others.as_object().unwrap_or_default().to_vec();
    let content = scenario(others, told.collect());
    let gone: Vec<String> = all.iter().filter(|call| !stays(call)).map(|call| played(&call.name)).collect();
    plan.fixtures.retain(|fixture| !gone.contains(&fixture.name().to_owned()));
    for fixture in &mut plan.fixtures {
        if let Fixture::File { name, content: old, .. } = fixture
            && name == SCENARIO
        {
            old.clone_from(&content);
        }
    }
    plan
}

/// Names of the members that a face reads.
#[derive(Debug, Clone, Copy)]
pub struct AskingMembers {
    /// Members of the scenario besides `calls`.
    pub scenario: &'static [&'static str],
    /// Members of a call besides those that the engine reads: `ref`, `after` and `timeout_ms`.
    pub call: &'static [&'static str],
}

/// Refuses a plan if a part of its scenario or aims is not understood.
///
/// # Errors
/// Names the unreadable part, or the unknown member with the most similar known name.
pub fn admit(plan: &Plan, members: AskingMembers) -> Result<(), Misconfigured> {
    crate::data::transcript::strict::expectations::<Aim>(plan)?;
    let unread = "plan/fixtures: the scenario cannot be read, so nothing can be judged";
    let calls = calls(plan).ok_or_else(|| unread.to_owned())?;
    let known = [members.scenario, &["calls"]].concat();
    refuse_unknown(&told(plan).unwrap_or_default(), &known, "the scenario")?;
    let known = [members.call, &["ref", "after", "timeout_ms"]].concat();
    calls.iter().try_for_each(|call| refuse_unknown(&call.told, &known, &format!("call {:?}", call.name)))
}

fn refuse_unknown(told: &Json, known: &[&str], whose: &str) -> Result<(), Misconfigured> {
    let mut names = told.as_object().unwrap_or_default().iter().map(|(name, _)| name.as_str());
    let Some(unknown) = names.find(|name| !known.contains(name)) else { return Ok(()) };
    let meant = did_you_mean(unknown, known.iter().copied());
    Err(format!("plan/fixtures: {whose} has an unknown member {unknown:?}{meant}").into())
}

#[cfg(test)]
mod tests;
