//! The enqueue tool, in a toolhost in run mode: one process per call.

use std::collections::BTreeSet;

use peerproof_engine::contract::boundary::ConstantPeer;
use peerproof_engine::contract::face::{
    Aim, Allowed, Expectation, Expected, ExpectedPart, Face, Frame, Framing, Misfit, Reading, Rule,
    SessionClauses, SessionTrace, Stimulus, StimulusKind, Subject, Trace,
};
use peerproof_engine::contract::judge;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::data::finding::{Finding, Judgement, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars, shorten};
use peerproof_engine::data::plan::{Act, Chunking, Fixture, Limits, Placing, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{EventKind, Exit, FoundKind, Transcript, strict};

use super::ENQUEUE;
use crate::inbox::{self, Clauses, DISK_BYTES, Outcome, QUEUE};
use crate::job::{DEPTH_MAX, Job, VERY_DEEP, arrays, with_member};

/// Default aid of the tool.
pub(crate) const AID: &str = "AID.QUEUE.ENQUEUE.v1";

/// A broken toolhost that reports every job as queued.
pub(crate) const BY_ROTE: ConstantPeer = ConstantPeer::wrong(
    "says queued and enqueues nothing",
    "cat >/dev/null; echo '{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{\\\"queued\\\":\\\"x.json\\\"}\",\"error\":\"\",\"ds_state\":{\"slots\":{}}}'",
);

/// A folder outside the queue.
const OUTSIDE: &str = "outside";

/// Most characters of a quoted answer.
const QUOTED_CHARS: usize = 200;

const SUCCESS: &str = "QUE-ENQ-03";
const OBJECT: &str = "QUE-ENQ-01";
const TEXT: &str = "QUE-ENQ-02";
const NO_REQUEST: &str = "QUE-ENQ-06";
const NO_OBJECT: &str = "QUE-ENQ-07";
const NO_JOB: &str = "QUE-ENQ-08";
const OTHERS: &str = "QUE-ENQ-09";
const STATE: &str = "QUE-ENQ-10";
const LEAVES: &str = "QUE-ENQ-14";
const BAR: &str = "QUE-JOB-24";
const NESTED: &str = "QUE-JOB-21";
const DEEP: &str = "QUE-JOB-28";
const BEFORE: &str = "QUE-ENQ-04";

const CLAUSES: Clauses = Clauses {
    named: OTHERS,
    equal: SUCCESS,
    whole: BEFORE,
    own: OTHERS,
    kept: OTHERS,
    told: None,
    queued: "QUE-ENQ-05",
    leaves: LEAVES,
};

/// The face of the tool.
struct Tool;

/// Answer of the tool.
#[derive(Debug)]
enum Message {
    /// `ok` true, with the output. The flag is true if the state has its form.
    Done(Option<String>, bool),
    /// `ok` false.
    Refused(String),
}

/// Allowed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AllowedAnswer {
    Done,
    Refused,
}

/// Content of a call.
#[derive(Debug, Clone, Default)]
struct Call {
    /// Clause that any other answer breaks.
    clause: &'static str,
    may_put: bool,
    may_refuse: bool,
    job: Option<Json>,
}

impl Call {
    /// Reads the standard input of a process.
    fn of(bytes: &[u8]) -> Self {
        let decode = |text: &[u8]| json::decode(text, &DecodeLimits::default()).ok();
        let value = |text: &[u8]| decode(text).map(|it| it.value);
        let is_plain = |text: &[u8]| matches!(Job::read(text), Job::Unclear);
        let refused = |clause| Self { clause, may_refuse: true, ..Self::default() };
        let either = |job: Job| Self { clause: SUCCESS, may_put: true, may_refuse: true, job: job.value() };
        let outer = value(bytes);
        let text = outer.as_ref().and_then(|outer| outer.get("input_json")?.as_str());
        let Some((text, decoded)) = text.and_then(|text| Some((text, decode(text.as_bytes())?))) else {
            // The toolhost boundary judges requests themselves.
            return either(Job::Unclear);
        };
        let (input, is_halved) = (decoded.value, decoded.facts.lone_surrogates);
        if input.as_object().is_none() {
            return either(Job::Unclear);
        }
        // A string with duplicate keys or deep nesting makes the whole request doubtful.
        if is_plain(text.as_bytes())
            && !matches!(input.get("request_json"), None | Some(Json::Object(_) | Json::String(_)))
        {
            return either(Job::Unclear);
        }
        let (clause, job) = match input.get("request_json") {
            Some(request @ Json::Object(_)) => (OBJECT, Job::read(request.to_text().as_bytes())),
            Some(Json::String(text)) => match value(text.as_bytes()) {
                Some(request) if request.as_object().is_some() => (TEXT, Job::read(text.as_bytes())),
                _ if text.starts_with('\u{feff}') => return either(Job::Unclear),
                _ => return refused(NO_OBJECT),
            },
            _ => return refused(NO_REQUEST),
        };
        let has_others = input.as_object().is_some_and(|members| members.len() > 1);
        match job {
            Job::Malformed => refused(NO_JOB),
            Job::Barred(_) => Self { clause: BAR, ..either(job) },
            Job::Halved(_) | Job::Unclear => either(job),
            Job::Right(_) if is_halved => either(job),
            // Further members are ignored or honoured; a tool may refuse to honour them.
            Job::Right(_) if has_others => Self { clause: OTHERS, ..either(job) },
            Job::Right(_) => Self { clause, may_put: true, may_refuse: false, job: job.value() },
        }
    }
}

impl Face for Tool {
    type Message = Message;
    type Answer = AllowedAnswer;
    type Notes = Call;
    /// Every `request_id` so far, and the sessions with a full disk.
    type State = (BTreeSet<String>, BTreeSet<usize>);

    fn framing(&self, command: &str) -> Option<Framing> {
        (command == ENQUEUE).then_some(Framing::Whole)
    }

    fn session_clauses(&self) -> &SessionClauses {
        const { &SessionClauses { no_process_left: LEAVES, no_file_left: LEAVES, ..SessionClauses::all(SUCCESS) } }
    }

    fn begin(&self, transcript: &Transcript) -> Self::State {
        (BTreeSet::new(), inbox::full_disks(&transcript.plan))
    }

    fn expect(
        &self,
        (ids, full): &mut Self::State,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedAnswer, Call>> {
        let StimulusKind::Said(line) = stimulus.what else { return None };
        let mut call = Call::of(&line.bytes);
        let id = call.job.as_ref().filter(|_| call.may_put).and_then(|job| job.get("request_id")?.as_str());
        // A tool that makes one job of two equal ids may refuse the second.
        call.may_refuse |= id.is_some_and(|id| !ids.insert(id.to_owned()));
        let mut allowed = Vec::new();
        if full.contains(&stimulus.session) && line.bytes.len() as u64 > DISK_BYTES {
            (call.clause, call.may_refuse) = (BEFORE, true);
            // The signal of the file size limit may end the process.
            allowed.push(Allowed::silence());
        }
        allowed.extend(call.may_put.then(|| Allowed::answer(AllowedAnswer::Done).shows("accept")));
        allowed.extend(call.may_refuse.then(|| Allowed::answer(AllowedAnswer::Refused).shows("refuse")));
        let choice = (call.clause == BAR).then_some("goal_id_with_bar");
        let (clause, effects) = (call.clause, Vec::new());
        Some(Expectation::one(Expected {
            clause,
            subject: Subject::Turn,
            allowed,
            choice,
            effects,
            extra: call,
        }))
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Message> {
        let text = String::from_utf8_lossy(frame.bytes);
        if text.trim().is_empty() {
            return Reading::Blank;
        }
        let decoded = json::decode(json::trim(frame.bytes), &DecodeLimits::default()).ok();
        let reply = decoded.map(|decoded| decoded.value);
        let ok = reply.as_ref().and_then(|reply| reply.get("ok")?.as_bool());
        match (reply, ok, frame.exit) {
            (Some(reply), Some(true), Some(Exit::Code(0)) | None) => {
                let output = reply.get("output_json").and_then(Json::as_str).map(str::to_owned);
                let is_map = |value: &Json| value.as_object().is_some();
                let state = reply.get("ds_state").filter(|state| is_map(state));
                let is_full = state.is_some_and(|state| state.get("slots").is_none_or(is_map));
                Reading::Message(Message::Done(output, is_full))
            }
            (Some(reply), Some(false), _) => Reading::Message(Message::Refused(reply.to_text())),
            (.., exit) => {
                let exit = exit.map(|exit| format!("{exit}, ")).unwrap_or_default();
                let got = format!("{exit}{}", shorten(&text, QUOTED_CHARS));
                Reading::Broken(Finding::new(SUCCESS, "no_reply_of_a_tool", "an object with `ok`", got))
            }
        }
    }

    fn fit(&self, _: &ExpectedPart<Self>, way: &AllowedAnswer, came: &[&Message]) -> Result<(), Misfit> {
        let set = |to: &str| Repair::Set { at: "/ok".to_owned(), to: Some(to.to_owned()) };
        let misfit = |reason, to| Err(Misfit { rank: 0, clause: None, reason, repair: set(to) });
        match (way, came.first()) {
            (AllowedAnswer::Done, Some(Message::Refused(_))) => misfit("refused", "true"),
            (AllowedAnswer::Refused, Some(Message::Done(..))) => misfit("accepted", "false"),
            _ => Ok(()),
        }
    }

    fn phrase(&self, _: &ExpectedPart<Self>, way: &AllowedAnswer) -> String {
        match way {
            AllowedAnswer::Done => "`ok` true".to_owned(),
            AllowedAnswer::Refused => "`ok` false".to_owned(),
        }
    }

    fn text(&self, message: &Message) -> String {
        match message {
            Message::Done(output, _) => format!("`ok` true, {output:?}"),
            Message::Refused(reply) => reply.clone(),
        }
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[states]
    }
}

/// Finding about a success without the state of a run.
fn states(_: &Trace<'_, Tool>, heard: &SessionTrace<'_, Tool>) -> Vec<Finding> {
    let wrong = heard.answers().find(|(.., answer)| matches!(answer.message, Message::Done(_, false)));
    let finding = wrong.map(|(asked, ..)| {
        let expected = "a full `ds_state` beside `ok` true";
        Finding::new(STATE, "no_state", expected, "no `ds_state`, or a malformed one").at(asked.step)
    });
    finding.into_iter().collect()
}

/// Outcome of each call, for the inbox rules.
fn requests(trace: &Trace<'_, Tool>) -> Vec<inbox::Request> {
    let mut all: Vec<inbox::Request> = Vec::new();
    for heard in &trace.sessions {
        for (asked, came) in &heard.exchanges {
            let Some(part) = asked.due.parts.first() else { continue };
            let answer = came.answers.first().and_then(|answer| answer.as_ref()).map(|answer| answer.message);
            let (outcome, told) = match answer {
                Some(Message::Done(output, _)) if part.extra.may_put => {
                    (Outcome::Put, Some(inbox::told(output.as_deref().unwrap_or_default().as_bytes())))
                }
                Some(_) => (Outcome::Not, None),
                None if part.extra.may_put => (Outcome::Unknown, None),
                None => (Outcome::Not, None),
            };
            let default = if part.extra.may_put { SUCCESS } else { part.extra.clause };
            let aim = asked.aim.as_ref().map(|aim| aim.clause.0.clone());
            let is_aimed = aim.is_some();
            let clause = aim.unwrap_or_else(|| default.to_owned());
            let job = part.extra.job.clone();
            all.push(inbox::Request { step: asked.step, outcome, job, clause, is_aimed, told });
        }
    }
    all
}

/// Judges a transcript.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge::judge(&Tool, transcript);
    let requests = judge::listen(&Tool, transcript, requests);
    inbox::judge(transcript, &requests, &CLAUSES, &mut judgement);
    let full = inbox::full_disks(&transcript.plan);
    let is_full =
        |step: usize| transcript.plan.steps.get(step).is_some_and(|step| full.contains(&step.session));
    let is_whole = |it: &inbox::Request| judgement.findings.iter().all(|one| one.step != Some(it.step));
    if requests.iter().any(|it| it.outcome == Outcome::Put && is_full(it.step) && is_whole(it)) {
        judgement.untestable = Some(inbox::not_full());
    }
    // Findings of a deep conversation belong to the clause about depth, because no text shows that clause.
    if transcript.plan.steps.iter().filter_map(Aim::of).any(|aim| aim.clause.0 == DEEP) {
        let is_end = |it: &&mut Finding| it.clause.0 == SUCCESS && it.reason != "missing";
        judgement.findings.iter_mut().filter(is_end).for_each(|it| it.clause = DEEP.into());
    }
    let file = transcript.events.iter().find_map(|event| match &event.kind {
        EventKind::Looked { label, found, .. } if label == OUTSIDE => {
            found.iter().find(|one| one.kind == FoundKind::File)
        }
        _ => None,
    });
    judgement.findings.extend(file.map(|file| {
        let got = String::from_utf8_lossy(&file.path.0).into_owned();
        Finding::new(OTHERS, "outside", "no file outside the inbox", got).repaired_by(Repair::Undo)
    }));
    judgement
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub(crate) fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(&transcript.plan)
}

/// Builder of conversations with the tool.
struct Talk {
    plan: Plan,
    aid: String,
    word: String,
    count: usize,
}

impl Talk {
    fn new(facts: &Facts, rng: &mut Rng) -> Self {
        let aid = facts.roles.get(ROLE).and_then(|role| role.get("aid")?.as_str()).unwrap_or(AID);
        let outside = Fixture::Folder { name: OUTSIDE.to_owned(), folders: Vec::new(), watched: false };
        let plan = Plan { fixtures: vec![inbox::fixture(), outside], ..Plan::default() };
        let word = format!("{:016x}", rng.next_u64());
        let mut talk = Self { plan, aid: aid.to_owned(), word, count: 0 };
        talk.canary();
        talk
    }

    fn job(&mut self) -> String {
        self.count += 1;
        inbox::job(&format!("{}-{}", self.word, self.count))
    }

    /// Starts a process with this input of the tool.
    fn call(&mut self, aim: &str, input: &Payload, is_canary: bool) {
        let session = self.plan.sessions.len();
        let told = [("aid", self.aid.as_str()), (QUEUE, "{{queue.path}}")];
        let placeholders = told.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        self.plan.sessions.push(Session { command: ENQUEUE.to_owned(), placeholders, ..Session::default() });
        let text = input.expand(&Vars::new()).map_or_else(
            |_| input.clone(),
            |text| {
                let text = Json::from(String::from_utf8_lossy(&text).into_owned()).to_text();
                Payload::from_bytes(format!("{{\"input_json\":{text}}}").as_bytes())
            },
        );
        let send = Act::Send { payload: text, chunking: Chunking::Whole, await_frames: 0 };
        let expect = Aim::about(aim);
        let step = |act| Step { session, canary: is_canary, ..Step::new(act) };
        self.plan.steps.push(Step { expect, ..step(send) });
        self.plan.steps.push(step(Act::Finish));
    }

    /// Calls the tool with this request, written as it stands: an object, or any other JSON text.
    fn ask(&mut self, aim: &str, request: &str) {
        self.call(aim, &Payload::text(format!("{{\"request_json\":{request}}}")), false);
    }

    /// Calls the tool with this request as a string.
    fn ask_text(&mut self, aim: &str, request: &str) {
        self.ask(aim, &Json::from(request).to_text());
    }

    /// A job with this many levels of nesting within it.
    fn nested(&mut self, levels: usize) -> String {
        with_member(&self.job(), &format!("\"deep\":{}", arrays(levels)))
    }

    /// Replaces the wait for the last process: kills it as soon as it answers.
    fn kill_at_reply(&mut self) {
        let Some(finish) = self.plan.steps.pop() else { return };
        let answer = Act::Send { payload: Payload::default(), chunking: Chunking::Whole, await_frames: 1 };
        for act in [Act::CloseStdin, answer, Act::Signal("KILL".to_owned())] {
            self.plan.steps.push(Step { session: finish.session, ..Step::new(act) });
        }
    }

    fn canary(&mut self) {
        let job = self.job();
        self.call("", &Payload::text(format!("{{\"request_json\":{job}}}")), true);
        self.look();
    }

    fn look(&mut self) {
        let session = self.plan.sessions.len() - 1;
        let outside = Payload::default().var(format!("{OUTSIDE}.path"));
        let outside = Act::Look { label: OUTSIDE.to_owned(), path: outside, after_ms: 0 };
        self.plan.steps.extend([inbox::look(), outside].map(|act| Step { session, ..Step::new(act) }));
    }
}

fn check(
    id: &str,
    title: &str,
    clauses: &[&str],
    build: impl Fn(&mut Talk) + Send + Sync + 'static,
) -> Check {
    let planner = move |facts: &Facts, rng: &mut Rng| -> Result<Plan, Untestable> {
        let mut talk = Talk::new(facts, rng);
        build(&mut talk);
        talk.canary();
        Ok(talk.plan)
    };
    let id = format!("run_queue/enqueue/{id}");
    Check::new(id, title, clauses.iter().copied(), ENQUEUE, planner).roles(&[ROLE]).on_process()
}

/// Check that these requests are refused.
fn refused(id: &str, title: &str, clause: &'static str, requests: &'static [&str]) -> Check {
    check(&format!("refused/{id}"), title, &[clause], move |talk| {
        // A string that holds a job is accepted.
        let job = Json::from(talk.job()).to_text();
        talk.call("", &Payload::text(format!("{{\"request_json\":{job}}}")), true);
        for request in requests {
            talk.ask(clause, request);
            talk.look();
        }
    })
}

/// All checks of the tool.
pub(crate) fn checks() -> Vec<Check> {
    [puts(), odd_puts(), refusals(), places()].concat()
}

fn puts() -> Vec<Check> {
    vec![
        check(
            "put/object",
            "A request that is an object is stored unchanged, under the name in the reply.",
            &[OBJECT, SUCCESS, BEFORE, "QUE-ENQ-05", "QUE-JOB-04", STATE, LEAVES],
            |talk| {
                let (job, exact, word) = (talk.job(), inbox::exact(&talk.job()), talk.word.clone());
                talk.ask(OBJECT, &job);
                talk.ask(OBJECT, &exact);
                talk.ask(OBJECT, &format!("{{\"goal_id\":\"../{word}\"}}"));
                talk.look();
            },
        )
        .ambient(),
        check(
            "put/text",
            "A request that is a string with an object is stored as that object.",
            &[TEXT],
            |talk| {
                let (job, word) = (talk.job(), talk.word.clone());
                talk.ask_text(TEXT, &job);
                talk.ask_text(TEXT, &format!(" \n{{ \"goal_id\" : \"g\\u00e9-{word}\" }}\r\n"));
                talk.look();
            },
        ),
        check(
            "put/killed-behind-the-reply",
            "A job is in the inbox from the first byte of the reply on, even if the tool is killed at once.",
            &[BEFORE],
            |talk| {
                for _ in 0..3 {
                    let job = talk.job();
                    talk.ask(BEFORE, &job);
                    talk.kill_at_reply();
                    talk.look();
                }
            },
        ),
        check("put/nested", "A request nested up to 64 levels is enqueued.", &[NESTED], |talk| {
            // The object around the job is one more level.
            for (levels, is_text) in [(DEPTH_MAX - 2, false), (DEPTH_MAX - 1, true)] {
                let job = talk.nested(levels);
                if is_text {
                    talk.ask_text(NESTED, &job)
                } else {
                    talk.ask(NESTED, &job)
                }
                talk.look();
            }
        }),
    ]
}

/// Requests that a tool may treat in several ways.
fn odd_puts() -> Vec<Check> {
    vec![
        check("put/very-deep", "A very deeply nested request is enqueued or refused.", &[DEEP], |talk| {
            let job = talk.nested(VERY_DEEP);
            talk.ask(DEEP, &job);
            talk.ask_text(DEEP, &job);
            talk.look();
        }),
        check(
            "put/half-surrogate",
            "A request with a lone surrogate escape is enqueued with it or with U+FFFD, or refused.",
            &[SUCCESS],
            |talk| {
                let [job, other] = [talk.job(), talk.job()].map(|job| inbox::halved(&job));
                talk.ask("", &job);
                talk.ask_text("", &other);
                talk.look();
            },
        ),
        check("put/the-same-twice", "Two calls make two jobs.", &["QUE-ENQ-11"], |talk| {
            let job = format!("{{\"goal_id\":\"{}\",\"inputs\":{{}}}}", talk.word);
            talk.ask("QUE-ENQ-11", &job);
            talk.ask("QUE-ENQ-11", &job);
            talk.look();
        }),
        check(
            "put/same-request-id",
            "Two calls with one `request_id` make one job or two.",
            &["QUE-ENQ-12"],
            |talk| {
                let job = talk.job();
                talk.ask("QUE-ENQ-12", &job);
                talk.ask("QUE-ENQ-12", &job);
                talk.look();
            },
        ),
        check("put/goal-id-with-bar", "A `goal_id` with `|` is accepted or refused.", &[BAR], |talk| {
            let job = talk.job().replace("\"g-", "\"g|");
            talk.ask(BAR, &job);
            talk.look();
        }),
    ]
}

fn refusals() -> Vec<Check> {
    vec![
        check("refused/absent", "A call without a request enqueues nothing.", &[NO_REQUEST], |talk| {
            let job = talk.job();
            let near = ["request", "Request_Json", "request_json.x", "request_jso"];
            let near = near.map(|name| format!("{{\"{name}\":{job}}}"));
            let around = format!("[{{\"request_json\":{job}}}]");
            for input in near.into_iter().chain(["{}".to_owned(), around, job]) {
                talk.call(NO_REQUEST, &Payload::text(input), false);
                talk.look();
            }
        }),
        refused(
            "type",
            "A request of another type is refused.",
            NO_REQUEST,
            &["7", "true", "[]", "[{\"goal_id\":\"g\"}]"],
        ),
        refused(
            "text",
            "A string that does not contain strict JSON, or not an object, is refused.",
            NO_OBJECT,
            &[
                "\"\"",
                "\"{\"",
                "\"{'goal_id':'g'}\"",
                "\"{\\\"goal_id\\\":\\\"g\\\"} x\"",
                "\"{\\\"goal_id\\\":\\\"g\\\",}\"",
                "\"[{\\\"goal_id\\\":\\\"g\\\"}]\"",
                "\"7\"",
                "\"null\"",
            ],
        ),
        refused(
            "malformed-job",
            "A malformed job is refused, as an object and as a string.",
            NO_JOB,
            &[
                "{}",
                "{\"goal_id\":\"\"}",
                "{\"goal_id\":7}",
                "{\"goal_id\":[\"g\"]}",
                "{\"Goal_Id\":\"g\"}",
                "{\"goal_id\":\"g\",\"inputs\":[{}]}",
                "{\"goal_id\":\"g\",\"inputs\":[]}",
                "{\"goal_id\":\"g\",\"inputs\":\"{}\"}",
                "{\"goal_id\":\"g\",\"inputs\":null}",
                "\"{}\"",
                "\"{\\\"goal_id\\\":\\\"\\\",\\\"inputs\\\":{}}\"",
                "\"{\\\"goal_id\\\":\\\"g\\\",\\\"inputs\\\":1}\"",
            ],
        ),
    ]
}

fn places() -> Vec<Check> {
    vec![
        check(
            "disk/full",
            "On a full disk (simulated by a limit on file sizes), no job is reported as queued, and no \
             part of a job is left.",
            &[BEFORE],
            |talk| {
                let job = talk.job();
                let pad = "x".repeat(usize::try_from(DISK_BYTES).unwrap_or_default());
                talk.ask(BEFORE, &with_member(&job, &format!("\"pad\":\"{pad}\"")));
                let limits = Limits { file_bytes: Some(DISK_BYTES), ..Limits::default() };
                if let Some(session) = talk.plan.sessions.last_mut() {
                    session.limits = limits;
                }
                talk.look();
            },
        ),
        check(
            "members/names-and-places",
            "No file is created outside the inbox, and none is overwritten, whatever other members say.",
            &[OTHERS],
            |talk| {
                let session = talk.plan.sessions.len() - 1;
                let content = Payload::text(talk.job());
                let put = Act::Put { path: inbox::place("/inbox/own.json"), content, by: Placing::Rename };
                talk.plan.steps.push(Step { session, ..Step::new(put) });
                let texts =
                    ["own.json", "own", "x.txt", ".hidden.json", "../above.json", "../../outside/x.json"];
                let texts = texts.into_iter().chain(["../processing/x.json", "a/b.json", "", "x\u{0}.json"]);
                let texts = texts.chain([
                    "..\\..\\outside\\x.json",
                    "..%2f..%2foutside%2fx.json",
                    "%2e%2e/%2e%2e/outside/x.json",
                    "../inbox-other/x.json",
                ]);
                for text in texts {
                    let text = Json::from(text).to_text();
                    let job = talk.job();
                    let members = ["filename", "name", "path", "queue", "job_id", "id"];
                    let members: String = members.map(|name| format!(",\"{name}\":{text}")).concat();
                    let input = format!("{{\"request_json\":{job}{members},\"priority\":9}}");
                    talk.call(OTHERS, &Payload::text(input), false);
                    talk.look();
                }
                for id in inbox::PATHS {
                    let job = inbox::called(&talk.job(), id);
                    talk.ask(OTHERS, &job);
                    talk.look();
                }
            },
        ),
    ]
}

/// Role of the enqueue tool.
pub(crate) const ROLE: &str = "enqueue";

/// One plain call, which shows whether the tool of the role enqueues.
pub(crate) fn trial(facts: &Facts) -> Plan {
    Talk::new(facts, &mut Rng::new(0)).plan
}

/// Outcome of the trial call.
pub(crate) fn tried(trial: &Transcript) -> RoleTrial {
    let refusal = judge::listen(&Tool, trial, |trace| {
        let mut answers = trace.sessions.iter().flat_map(SessionTrace::answers);
        answers.find_map(|(.., answer)| match answer.message {
            Message::Refused(reply) => Some(reply.clone()),
            Message::Done(..) => None,
        })
    });
    match (refusal, self::judge(trial).findings.first()) {
        (Some(reply), _) => crate::refusal::refused(&reply),
        (None, Some(finding)) => RoleTrial::Untold(finding.got.clone()),
        (None, None) => RoleTrial::Plays,
    }
}

/// A random conversation.
pub(crate) fn conversation(facts: &Facts, rng: &mut Rng) -> Plan {
    let mut talk = Talk::new(facts, rng);
    for _ in 0..=rng.below(3) {
        let job = talk.job();
        match rng.below(4) {
            0 => talk.ask("", &job),
            1 => talk.ask_text("", &job),
            2 => {
                let job = String::from_utf8_lossy(&inbox::near_miss(job.into_bytes(), rng)).into_owned();
                talk.ask_text("", &job);
            }
            _ => {
                let input = format!("{{\"request_json\":{job}}}").into_bytes();
                let input = String::from_utf8_lossy(&inbox::near_miss(input, rng)).into_owned();
                talk.call("", &Payload::text(input), false);
            }
        }
        talk.look();
    }
    talk.canary();
    talk.plan.by_model = true;
    talk.plan
}
