//! The face of the adapter: allowed statuses of each request, and the inbox afterwards.

use std::collections::BTreeSet;

use peerproof_engine::contract::boundary::SurvivalClause;
use peerproof_engine::contract::face::{
    Aim, Allowed, Expectation, Expected, ExpectedPart, Face, Frame, Framing, HttpExchange, HttpTrace, Misfit,
    PlacedExpectation, Reading, Rule, SessionClauses, SessionTrace, Stimulus, StimulusKind, Subject, Trace,
};
use peerproof_engine::contract::judge;
use peerproof_engine::contract::memory;
use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::finding::{ChoiceSeen, Finding, Judgement, Nature, Repair};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::lines::RequestLine;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::{Act, Step};
use peerproof_engine::data::transcript::{Awaited, Event, EventKind, Exit, FoundEntry, Transcript};

use super::TOKEN;
use super::request::{AllowedReplies, CLIENT, LARGE, Request, Token, is_put};
use crate::FOLDERS;
use crate::inbox::{self, Clauses, Outcome};
use crate::job::{self, Job};

/// Number of SIGXFSZ, the signal for over-large files.
const XFSZ: i32 = 25;

/// Time within which a job must be answered while other clients stall, ms.
const BESIDE_MS: u64 = 2_000;

const DURABLE: &str = "QUE-HTTP-03";
const ELSEWHERE: &str = "QUE-HTTP-34";
const IN_USE: &str = "QUE-HTTP-35";
const STALLED: [&str; 2] = ["QUE-HTTP-25", "QUE-HTTP-26"];
const MANY: &str = "QUE-HTTP-28";
const FULL: &str = "QUE-HTTP-29";
const FULL_IS_TOLD: &str = "QUE-HTTP-30";
const LIVES: &str = "QUE-HTTP-31";
const TERM: &str = "QUE-HTTP-32";
const SECRET: &str = "QUE-TOK-02";
const MEMORY: &str = "QUE-HTTP-38";
const LEAVES: &str = "QUE-HTTP-39";

const CLAUSES: Clauses = Clauses {
    named: "QUE-HTTP-18",
    equal: "QUE-HTTP-06",
    whole: DURABLE,
    own: "QUE-HTTP-04",
    kept: "QUE-HTTP-33",
    told: Some("QUE-HTTP-01"),
    queued: "QUE-HTTP-02",
    leaves: LEAVES,
};

/// The face of the adapter.
struct Adapter;

/// State of a conversation.
struct State {
    /// Token of each session.
    tokens: Vec<Option<Token>>,
    /// Configured choice about chunked bodies.
    chunked: Option<String>,
    /// Every `request_id` so far.
    ids: BTreeSet<String>,
}

/// Status and body of a reply.
struct Message(u16, Vec<u8>);

/// Allowed outcome of a request, as a phrase.
#[derive(Debug, Clone)]
struct AllowedOutcome(String);

impl Face for Adapter {
    type Message = Message;
    type Answer = AllowedOutcome;
    type Notes = AllowedReplies;
    type State = State;

    fn framing(&self, command: &str) -> Option<Framing> {
        (command == HTTP).then_some(Framing::Bodies)
    }

    fn session_clauses(&self) -> &SessionClauses {
        const {
            &SessionClauses {
                ends_at_term: TERM,
                lives_on: LIVES,
                no_process_left: LEAVES,
                no_file_left: LEAVES,
                ..SessionClauses::all("QUE-HTTP-01")
            }
        }
    }

    fn begin(&self, transcript: &Transcript) -> Self::State {
        let sessions = 0..transcript.plan.sessions.len();
        let chunked = transcript.facts.choices.get("chunked").cloned();
        let tokens = sessions.map(|session| Token::of(transcript, session)).collect();
        State { tokens, chunked, ids: BTreeSet::new() }
    }

    fn expect(
        &self,
        state: &mut Self::State,
        stimulus: &Stimulus<'_>,
    ) -> Option<Expectation<AllowedOutcome, AllowedReplies>> {
        let StimulusKind::Said(line) = stimulus.what else { return None };
        let plain = Carriage::post();
        let how = stimulus.how.unwrap_or(&plain);
        let token = state.tokens.get(stimulus.session).and_then(Option::as_ref);
        let request = Request::of(how, &line.bytes);
        let mut stand = request.stand(token);
        match state.chunked.as_deref() {
            Some("accept") if request.is_in_chunks() => {
                stand.takes_chunks = true;
                if stand.clause == "QUE-HTTP-11" {
                    (stand.careful, stand.may_refuse) = (Some(LARGE), CLIENT);
                }
            }
            // An adapter that refuses chunked bodies has no choice about a length beside them.
            Some("refuse") => stand.choice = stand.choice.filter(|(key, ..)| *key != "length_and_chunked"),
            _ => {}
        }
        let id = stand.job.as_ref().filter(|_| stand.may_put).and_then(|job| job.get("request_id")?.as_str());
        // An adapter that makes one job of two equal ids answers the second with 409.
        if id.is_some_and(|id| !state.ids.insert(id.to_owned())) && stand.is_put() {
            stand.may_refuse = &[409..=409];
        }
        let allowed = vec![Allowed::answer(AllowedOutcome(phrase(&stand)))];
        Some(Expectation::one(Expected {
            clause: stand.clause,
            subject: Subject::Turn,
            allowed,
            choice: None,
            effects: Vec::new(),
            extra: stand,
        }))
    }

    fn carried(
        &self,
        asked: &mut PlacedExpectation<Self>,
        _: &RequestLine,
        _: Option<&Carriage>,
        exchange: &HttpExchange<'_>,
    ) {
        let aim = asked.aim.as_ref().map(|aim| aim.clause.0.clone()).unwrap_or_default();
        let Some(part) = asked.due.parts.first_mut() else { return };
        let stand = &mut part.extra;
        if aim == MANY {
            stand.may_refuse = &[429..=429, 503..=503];
        } else if [FULL, FULL_IS_TOLD].contains(&aim.as_str()) {
            (stand.may_refuse, stand.may_close) = (&[300..=599], true);
        } else if aim == "QUE-HTTP-12" && stand.takes_chunks {
            stand.may_refuse = &[];
        }
        if stand.may_be_silent || stand.may_close && exchange.failure.is_some() {
            part.allowed.push(Allowed::silence());
        }
    }

    fn status(&self, carried: &HttpTrace<'_, Self>) -> Judgement {
        let HttpTrace { asked, exchange, .. } = carried;
        let mut own = Judgement::default();
        let Some(part) = asked.due.parts.first() else { return own };
        let (stand, aim) = (&part.extra, asked.aim.as_ref().map(|aim| aim.clause.0.as_str()));
        let put = exchange.status().is_some_and(is_put);
        if let Some((key, accepts, refuses)) = stand.choice
            && aim == Some(stand.clause)
            // A closed connection shows nothing if the job may have been enqueued.
            && (exchange.reply.is_some() || exchange.failure.is_some() && !stand.may_put)
        {
            let value = if put { accepts } else { refuses };
            own.choice = Some(ChoiceSeen { pinned: false, key: key.to_owned(), value: value.to_owned() });
        }
        let Some(status) = exchange.status() else { return own };
        let mut add = |clause: &str, expected: String| {
            let finding = Finding::new(clause, "http_status", expected, format!("status {status}"));
            own.findings.push(finding.at(asked.step));
        };
        let is_allowed = aim == Some(FULL) || aim == Some(FULL_IS_TOLD) || stand.allows(status);
        match stand.careful {
            // The clause of the step takes precedence, except for malformed and over-large jobs.
            _ if !is_allowed => {
                add(aim.filter(|_| stand.careful.is_none()).unwrap_or(stand.clause), phrase(stand))
            }
            Some((clause, codes)) if !codes.contains(&status) => {
                add(clause, format!("one of the statuses {codes:?}"));
            }
            _ => {}
        }
        own
    }

    fn read(&self, frame: &Frame<'_>) -> Reading<Message> {
        Reading::Message(Message(frame.status.unwrap_or_default(), frame.bytes.to_vec()))
    }

    fn fit(&self, _: &ExpectedPart<Self>, _: &AllowedOutcome, _: &[&Message]) -> Result<(), Misfit> {
        // The status decides, see `status`.
        Ok(())
    }

    fn is_canary(&self, asked: &PlacedExpectation<Self>, part: &ExpectedPart<Self>) -> bool {
        asked.canary && (part.extra.is_put() || part.extra.is_health)
    }

    fn phrase(&self, _: &ExpectedPart<Self>, way: &AllowedOutcome) -> String {
        way.0.clone()
    }

    fn text(&self, Message(status, body): &Message) -> String {
        format!("status {status}, {}", String::from_utf8_lossy(body))
    }

    fn rules(&self) -> &[Rule<Self>] {
        &[beside, secret]
    }
}

fn phrase(stand: &AllowedReplies) -> String {
    let mut ways: Vec<String> = Vec::new();
    if stand.is_health {
        ways.push("200".to_owned());
    }
    if stand.may_put {
        ways.push("status 200, 201 or 202 and the name of the file".to_owned());
    }
    if stand.may_be_fine {
        ways.push("2xx".to_owned());
    }
    ways.extend(stand.may_refuse.iter().map(|range| match range.start() == range.end() {
        true => range.start().to_string(),
        false => format!("a status from {} to {}", range.start(), range.end()),
    }));
    if stand.may_close {
        ways.push("the connection was closed".to_owned());
    }
    ways.join(", or ")
}

/// Finding about a late answer while other clients stall.
fn beside(trace: &Trace<'_, Adapter>, heard: &SessionTrace<'_, Adapter>) -> Vec<Finding> {
    let clause = |asked: &PlacedExpectation<Adapter>| {
        let aim = asked.aim.as_ref().map(|aim| aim.clause.0.as_str());
        STALLED.into_iter().find(|clause| aim == Some(*clause))
    };
    let within_ms = trace.transcript.stretched_ms(BESIDE_MS);
    let timed = judge::timed(heard, |asked| asked.canary && clause(asked).is_none());
    timed.filter_map(|it| it.late(clause(it.asked)?, within_ms, " beside clients that stall")).collect()
}

/// Finding about a token in a reply or in a job.
fn secret(trace: &Trace<'_, Adapter>, heard: &SessionTrace<'_, Adapter>) -> Vec<Finding> {
    let Some(Token { token, .. }) = &trace.state.tokens[heard.session] else { return Vec::new() };
    let holds = |bytes: &[u8]| bytes.windows(token.len()).any(|part| part == token.as_bytes());
    let told = heard.carriages.iter().zip(heard.lines).find_map(|(exchange, line)| {
        let place = match () {
            () if exchange.body.is_some_and(holds) => "the body of a reply",
            () if holds(exchange.head) => "the head of a reply",
            () => return None,
        };
        Some((place, Some(line.step)))
    });
    let stored = || {
        trace.transcript.of(heard.session).find_map(|event| match &event.kind {
            EventKind::Looked { found, .. } => {
                let is_job =
                    |one: &&FoundEntry| FOLDERS.iter().any(|it| one.path.0.starts_with(it.as_bytes()));
                let mut jobs = found.iter().filter(is_job).filter_map(|one| one.bytes.as_ref());
                jobs.any(|bytes| holds(&bytes.0)).then_some(("a job", None))
            }
            _ => None,
        })
    };
    let finding = told.or_else(stored).map(|(place, step)| {
        let finding = Finding::new(SECRET, "token_told", "no token in any reply or job", place);
        Finding { step, ..finding.repaired_by(Repair::Undo) }
    });
    finding.into_iter().collect()
}

/// Outcomes of all requests of all sessions, for the inbox rules.
fn requests(transcript: &Transcript, trace: &Trace<'_, Adapter>) -> Vec<inbox::Request> {
    let mut all: Vec<inbox::Request> = Vec::new();
    for heard in &trace.sessions {
        for (asked, _) in &heard.exchanges {
            let (Some(part), Some(line)) = (asked.due.parts.first(), asked.line) else { continue };
            let (stand, exchange) = (&part.extra, &heard.carriages[line]);
            let aim = asked.aim.as_ref().map(|aim| aim.clause.0.as_str());
            let is_full = aim == Some(FULL) || aim == Some(FULL_IS_TOLD);
            let outcome = match exchange.status() {
                // An unfinished file has no job name.
                None if is_full => Outcome::Not,
                Some(200..=202) if stand.may_put && !stand.may_be_fine => Outcome::Put,
                Some(200..=299) if stand.may_put => Outcome::Unknown,
                Some(_) => Outcome::Not,
                None if stand.is_put() || stand.may_put => Outcome::Unknown,
                None => Outcome::Not,
            };
            let how = transcript.plan.steps.get(asked.step).and_then(|step| step.http.as_ref());
            // A reply that the kill cut off need not name the file.
            let is_told = outcome == Outcome::Put && how.is_none_or(|how| !how.killing);
            let told = exchange.body.filter(|_| is_told).map(inbox::told);
            let default = if stand.may_put { DURABLE } else { stand.nothing };
            // A refusal, or a rule about the job itself, is judged by the clause of the step.
            let clause = match aim {
                Some("QUE-HTTP-08" | "QUE-HTTP-09" | "QUE-HTTP-10") | None => default,
                Some(FULL_IS_TOLD) => FULL,
                Some(aim) => aim,
            };
            all.push(inbox::Request {
                step: asked.step,
                outcome,
                job: stand.job.clone().or_else(|| refused_job(stand, &heard.lines[line])),
                clause: clause.to_owned(),
                is_aimed: aim.is_some(),
                told,
            });
        }
    }
    // A raw request has no reply: its connection is held open or cut off.
    for (step, spec) in transcript.plan.steps.iter().enumerate() {
        if let (Act::Send { .. }, Some(true)) = (&spec.act, spec.http.as_ref().map(Carriage::is_raw)) {
            let clause = Aim::of(spec).map_or("QUE-HTTP-13".to_owned(), |aim| aim.clause.0);
            all.push(inbox::Request {
                step,
                outcome: Outcome::Not,
                job: None,
                clause,
                is_aimed: true,
                told: None,
            });
        }
    }
    all.sort_by_key(|request| request.step);
    all
}

/// The job in a request that must be refused.
fn refused_job(stand: &AllowedReplies, line: &RequestLine) -> Option<Json> {
    if stand.may_put || line.bytes.len() > job::BYTES_MAX {
        return None;
    }
    Job::read(&line.bytes).value()
}

/// Judges starts that must fail: the process must exit with a non-zero status.
fn starts(transcript: &Transcript, judgement: &mut Judgement) {
    for (session, spec) in transcript.plan.sessions.iter().enumerate() {
        if !spec.placeholders.contains_key("port") {
            continue;
        }
        let is_its = |finding: &Finding| {
            let step = finding.step.and_then(|step| transcript.plan.steps.get(step));
            step.is_some_and(|step| step.session == session)
        };
        judgement.findings.retain(|finding| !is_its(finding));
        let host = spec.placeholders.get("host").map_or(super::LOOPBACK, String::as_str);
        let is_local = host == super::LOOPBACK;
        let clause = if is_local { IN_USE } else { ELSEWHERE };
        let step = transcript.plan.steps.iter().position(|step| step.session == session);
        // A command without the placeholders listens elsewhere, which is fine.
        let argv = |session: usize| {
            transcript.of(session).find_map(|event| match &event.kind {
                EventKind::Started { argv } => Some(argv.clone()),
                _ => None,
            })
        };
        let first = argv(0).unwrap_or_default();
        let is_new = |word: &&String| !first.contains(word);
        let is_told = argv(session)
            .is_some_and(|argv| argv.iter().filter(is_new).any(|word| is_local || word.contains(host)));
        let lives = transcript
            .of(session)
            .any(|event| matches!(event.kind, EventKind::DeadlinePassed { awaited: Awaited::Exit, .. }));
        let got = match transcript.exit(session) {
            _ if !is_told => {
                let why =
                    Untestable::new("not_told", "the command has neither {host} nor {port} in its arguments");
                judgement.untestable = Some(why);
                continue;
            }
            None if lives => "still running".to_owned(),
            Some(Exit::Code(0)) => "exit status 0".to_owned(),
            Some(Exit::Signal(signal)) => format!("signal {signal}"),
            None => {
                judgement.untestable =
                    Some(Untestable::new(Untestable::NOT_STARTED, "the adapter could not be started"));
                continue;
            }
            Some(_) => continue,
        };
        let finding = Finding::new(clause, "does_not_end", "an exit status other than 0 within 5 s", got);
        let finding = Finding { step, ..finding.repaired_by(Repair::Exit(Exit::Code(1))) };
        judgement.findings.push(if lives { finding.of_nature(Nature::Hang) } else { finding });
    }
}

/// Judges a full disk: no success, and no file with a job name.
fn full(transcript: &Transcript, requests: &[inbox::Request], judgement: &mut Judgement) {
    let steps = &transcript.plan.steps;
    let aim = |step: usize| steps.get(step).and_then(Aim::of).map(|aim| aim.clause.0).unwrap_or_default();
    let Some(session) = inbox::full_disks(&transcript.plan).first().copied() else { return };
    // A shell around the process reports the signal by its own status. If a child process serves, only the
    // connection ends.
    let is_cut_off = transcript.of(session).any(|event| {
        matches!(event.kind, EventKind::HttpFailed { step, will_retry: false, .. }
            if [FULL, FULL_IS_TOLD].contains(&aim(step).as_str()))
    });
    let by_signal = [Exit::Signal(XFSZ), Exit::Code(128 + XFSZ)];
    let exit = transcript.exit(session);
    let has_exited = exit.is_some_and(|exit| by_signal.contains(&exit));
    let is_ended = has_exited || exit.is_none() && is_cut_off;
    let of_session = |finding: &Finding| {
        finding.step.and_then(|step| steps.get(step)).is_none_or(|it| it.session == session)
    };
    if has_exited {
        // The signal may end the process; then no reply follows.
        let is_of_end = |finding: &Finding| finding.nature == Nature::Crash || finding.reason == "no_reply";
        judgement.findings.retain(|finding| !(of_session(finding) && is_of_end(finding)));
    }
    let mut was_ended = false;
    let is_about = |request: &&inbox::Request| [FULL, FULL_IS_TOLD].contains(&aim(request.step).as_str());
    for request in requests.iter().filter(is_about) {
        let status = transcript.events.iter().find_map(|event| match event.kind {
            EventKind::HttpReply { step, status, .. } if step == request.step => Some(status),
            _ => None,
        });
        let is_whole = judgement.findings.iter().all(|it| it.step != Some(request.step));
        let mut add = |clause: &str, expected: &str, got: String| {
            judgement.findings.push(Finding::new(clause, "http_status", expected, got).at(request.step));
        };
        match status {
            Some(status @ 200..=299) if !is_whole || !is_put(status) => {
                add(FULL, "no status 2xx on a full disk", format!("status {status}"));
            }
            // The job was stored completely.
            Some(200..=299) => {
                judgement.untestable = Some(inbox::not_full());
            }
            Some(500..=599) => {}
            None if is_ended => was_ended = true,
            Some(status) => {
                add(FULL_IS_TOLD, "a status from 500 to 599 on a full disk", format!("status {status}"))
            }
            None => add(FULL_IS_TOLD, "a status from 500 to 599 on a full disk", "no reply".to_owned()),
        }
    }
    // Serving again after a full disk is a clause of its own, other than the clause that no input ends the server.
    let first = requests.iter().find(is_about).map(|request| request.step);
    let is_behind = |finding: &&mut Finding| {
        of_session(finding)
            && finding.step.is_none_or(|step| Some(step) > first)
            && [LIVES, "QUE-HTTP-01"].contains(&finding.clause.0.as_str())
    };
    judgement.findings.iter_mut().filter(is_behind).for_each(|finding| finding.clause = FULL_IS_TOLD.into());
    if was_ended {
        let why = Untestable::new("ended_by_the_signal", "the behaviour on a full disk was not seen");
        judgement.untestable = Some(why);
    }
}

/// MUST clause that an adapter breaks if input about a SHOULD ends it. A full disk or a used port is not input.
pub(crate) fn lives_on(should: &str) -> Option<SurvivalClause> {
    (![IN_USE, FULL_IS_TOLD].contains(&should)).then_some(SurvivalClause::by(LIVES))
}

/// Judges a transcript.
pub fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = judge::judge(&Adapter, transcript);
    let requests = judge::listen(&Adapter, transcript, |trace| requests(transcript, trace));
    inbox::judge(transcript, &requests, &CLAUSES, &mut judgement);
    starts(transcript, &mut judgement);
    full(transcript, &requests, &mut judgement);
    memory::judge(transcript, MEMORY, &mut judgement);
    // An unanswered later canary shows the effect of earlier requests on the server. So does an end of the server
    // in a step without a clause.
    for finding in &mut judgement.findings {
        let Some(step) = finding.step.filter(|step| *step > 0) else { continue };
        let is_hung = finding.nature == Nature::Hang && finding.clause.0 == "QUE-HTTP-01";
        let is_aimed = transcript.plan.steps.get(step).and_then(Aim::of).is_some();
        if is_hung || finding.nature == Nature::Crash && !is_aimed {
            finding.clause = LIVES.into();
        }
    }
    // A killed process cannot clean up.
    let is_killed =
        |event: &Event| matches!(&event.kind, EventKind::Signalled { signal } if signal == "KILL");
    if transcript.events.iter().any(is_killed) {
        judgement.findings.retain(|finding| finding.nature != Nature::Leak);
    }
    for finding in &mut judgement.findings {
        finding.got = shorten(&finding.got, 400).into_owned();
    }
    // The adapter learned a token from elsewhere.
    let posts = |step: &Step| step.canary && step.http.as_ref().is_some_and(|how| how.method == "POST");
    if !transcript.facts.claims(TOKEN) && judge::are_refused(transcript, posts) {
        judge::excuse(&mut judgement, UNTOLD);
    }
    judgement
}

/// Advice for an adapter that demands a token which the configuration does not mention.
const UNTOLD: &str = "status 401: the adapter requires a token; tell peerproof how to pass one: token = { \
    env = \"NAME\" } or token = { args = [..., \"{token}\"] } under [features]";
