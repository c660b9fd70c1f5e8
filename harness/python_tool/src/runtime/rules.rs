//! Rules about a whole scenario: started programs, sent requests, the results file and its traces.

use super::allowed_outcome::{AllowedOutcome, EARLY_MS, RESULTS, Runtime, duration_ms, wrong};
use super::cases::{PROJECT, PROXY, TELLS_MEMORY, target};
use super::outcomes::{
    BAD_CALL, CallNotes, POSTED, REDIRECT, REQUEST, fixture, late_ms, required, runner, times_ms,
};
use super::{HANDSHAKE_PATH, USUAL_MS};
use peerproof_engine::contract::asking::{
    self, Call, CallResult, CallTimeline, Clauses, GRACE_MS, ObservedCalls,
};
use peerproof_engine::contract::face::{Allowed, ExpectedPart, Outcome, SessionTrace, Trace};
use peerproof_engine::contract::memory;
use peerproof_engine::data::finding::{Finding, Judgement};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{ActorStep, Fixture};
use peerproof_engine::data::transcript::{EventKind, Transcript};

const MESSAGE: &str = "PT-RT-03";
const OPTIONS: &str = "PT-RT-27";
const CONTEXT: &str = "PT-RT-28";
const POSTS: &str = "PT-RT-30";
const ARGV: &str = "PT-RT-32";
const FOLDER: &str = "PT-RT-34";
const NO_PROXY: &str = "PT-RT-40";
const HELD_PIPE: &str = "PT-RT-45";
const HANDSHAKE: &str = "PT-RT-46";
const TRACE: &str = "PT-RT-52";
const DURATION: &str = "PT-RT-53";
const LOCAL: &str = "PT-RT-54";
const SANDBOX: &str = "PT-RT-55";
const SERVICE: &str = "PT-RT-56";
const CREDENTIALS: &str = "PT-RT-57";
const LEVEL: &str = "PT-RT-58";
const CONTAINER: &str = "PT-RT-59";
const PACK: &str = "PT-RT-60";
const OVERRIDE: &str = "PT-RT-61";
const FOREIGN: &str = "PT-RT-62";
const CONTAINER_ARGV: &str = "PT-RT-63";
const MEMORY: &str = "PT-RT-66";
const CONTAINER_GUARANTEES: &str = "PT-RT-64";

const CLAUSES: Clauses = Clauses { results: RESULTS, once: "PT-RT-33", order: "PT-RT-35", late: "PT-RT-18" };

/// Members of a trace, each with the only runner that may have it.
const OWN: [(&str, &str); 10] = [
    ("local", "python_env"),
    ("local", "python_path"),
    ("local", "deps_source"),
    ("service", "service_url"),
    ("service", "service_handshake"),
    ("service", "enforcement_level"),
    ("container", "container_runtime"),
    ("container", "image"),
    ("container", "command"),
    ("container", "container_enforcement"),
];

fn quoted(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Judges the scenario of one runtime.
pub(super) fn judge(trace: &Trace<'_, Runtime>, heard: &SessionTrace<'_, Runtime>) -> Vec<Finding> {
    let (transcript, known) = (trace.transcript, trace.state);
    let mut times_us = transcript.of(heard.session).map(|event| event.at_us);
    let begun_us = times_us.next().unwrap_or_default();
    let run_ms = (times_us.last().unwrap_or(begun_us) - begun_us) as f64 / 1e3;
    let results = asking::noted(transcript, heard.session, wrong);
    let mut found = asking::faults(transcript, &known.calls, &known.courses, &results, USUAL_MS, &CLAUSES);
    let told = asking::told(&transcript.plan).unwrap_or_default();
    let is_hit = |name: &str| {
        let of =
            |kind: &EventKind| matches!(kind, EventKind::ListenerHit { listener, .. } if listener == name);
        transcript.events.iter().any(|event| of(&event.kind))
    };
    if is_hit(PROXY) {
        let got = "the client connected to the proxy in the environment".to_owned();
        found.push(Finding::new(NO_PROXY, "proxy_used", "no use of a proxy for a server on loopback", got));
    }
    let parts =
        trace.asked.iter().filter(|asked| asked.session == heard.session).flat_map(|it| &it.due.parts);
    for (at, part) in parts.enumerate().take(known.calls.len()) {
        let call = One { known, told: &told, call: &known.calls[at], course: &known.courses[at], at };
        let noted = results.0.iter().find(|noted| noted.name == call.call.name);
        // A report of a reply that must not come is found already.
        let is_found =
            noted.is_some_and(|it| matches!(it.outcome.as_str(), "result" | "tool_error" | "crash"));
        if is_hit(&target(&call.call.name)) && !is_found {
            let got = format!("the client connected to the redirect target of the call {:?}", call.call.name);
            found.push(Finding::new(REDIRECT, "target_contacted", "no request to the redirect target", got));
        }
        if let Some(clause) = part.extra.forbidden.filter(|_| call.course.is_executed()) {
            let expected = "no execution of a call that is invalid or whose guarantees are not assured";
            let got = format!("the call {:?} was started", call.call.name);
            found.extend((!is_found).then(|| Finding::new(clause, "begun", expected, got)));
            continue;
        }
        let is_blocked = part.extra.forbidden.is_some()
            && noted.is_some_and(|it| matches!(it.outcome.as_str(), "blocked" | "unavailable" | "invalid"));
        found.extend(call.sent(is_blocked));
        if let Some(noted) = noted {
            found.extend(call.told(noted, &part.extra, run_ms));
            found.extend(call.timed_out(noted, part));
        }
    }
    found
}

/// Judges the memory for over-long replies, by samples that programs took after short and long ones.
pub(super) fn memory(transcript: &Transcript, judgement: &mut Judgement) {
    let known = ObservedCalls::of(transcript);
    let is_told = |call: &&Call| {
        let command = call.told.get("command").and_then(Json::as_array).unwrap_or_default();
        command.iter().any(|word| word.as_str() == Some(TELLS_MEMORY))
    };
    if !known.calls.iter().any(|call| is_told(&call)) {
        return;
    }
    let sample = |(call, course): (&Call, &CallTimeline)| {
        let kilobytes: u64 = course.starts.first()?.1.last()?.parse().ok()?;
        (kilobytes > 0).then_some((call.name.clone(), kilobytes << 10))
    };
    let told = known.calls.iter().zip(&known.courses).filter(|(call, _)| is_told(call));
    let samples: Vec<(String, u64)> = told.filter_map(sample).collect();
    let samples = samples.iter().map(|(label, bytes)| (label.as_str(), *bytes)).collect();
    memory::judge_samples(&[samples], MEMORY, judgement);
}

/// One call under judgement.
struct One<'a> {
    known: &'a ObservedCalls,
    told: &'a Json,
    call: &'a Call,
    course: &'a CallTimeline,
    at: usize,
}

impl One<'_> {
    fn member(&self, name: &str) -> Option<&Json> {
        self.call.told.get(name)
    }

    /// Findings about the started program and the sent requests.
    fn sent(&self, is_blocked: bool) -> Vec<Finding> {
        let mut found = Vec::new();
        if let Some((_, argv)) = self.course.starts.first() {
            found.extend(self.started(argv));
            let script = match fixture(self.known, self.at) {
                Some(Fixture::Actor { script, .. }) => script.as_slice(),
                _ => &[],
            };
            let reads =
                script.iter().any(|step| matches!(step, ActorStep::ReadRequest | ActorStep::ReadToEnd));
            if let Some(received) = self.course.received.as_ref().filter(|_| reads) {
                let request = read(received);
                let is_service_style = request.as_ref().is_some_and(|it| it.get("tool_name").is_some());
                let is_local = runner(self.call) == "local" || !is_service_style;
                let clause = if runner(self.call) == "local" { REQUEST } else { CONTAINER_ARGV };
                found.extend(self.request(received, request, is_local, clause));
            }
        }
        if let Some(request) = self.course.requests.first() {
            found.extend(request.misposted("/tools/call", POSTS));
            // The service replies only after the whole body has come.
            if self.course.replied_us.is_some() {
                found.extend(self.request(&request.body, read(&request.body), false, POSTED));
            }
        }
        if runner(self.call) == "service" && !required(self.call).is_empty() {
            found.extend(self.handshake(is_blocked));
        }
        found
    }

    fn started(&self, argv: &[String]) -> Option<Finding> {
        let told = self.member("command").and_then(Json::as_array).unwrap_or_default();
        let told: Vec<&str> = told.iter().filter_map(Json::as_str).collect();
        let is_asked_for_folder = told.first() == Some(&"/bin/sh");
        match runner(self.call) {
            "container" => {
                let image = self.member("image").and_then(Json::as_str);
                let tail: Vec<&str> = image.into_iter().chain(told).collect();
                let is_right = argv.len() >= tail.len() && argv[argv.len() - tail.len()..] == tail[..];
                let expected = format!("arguments that end with {tail:?}");
                (!is_right)
                    .then(|| Finding::new(CONTAINER_ARGV, "other_arguments", expected, format!("{argv:?}")))
            }
            _ if told.contains(&TELLS_MEMORY) => None,
            _ if is_asked_for_folder => {
                let folder = argv.last().map(String::as_str).unwrap_or_default();
                let expected = "the working directory is the scenario's `app_root`";
                (!folder.ends_with(&format!("/{PROJECT}")))
                    .then(|| Finding::new(FOLDER, "other_folder", expected, folder.to_owned()))
            }
            _ => {
                let told = told.get(1..).unwrap_or_default();
                let expected = format!("the arguments {told:?}, as they are");
                (argv != told).then(|| Finding::new(ARGV, "other_arguments", expected, format!("{argv:?}")))
            }
        }
    }

    /// Findings about the text of a request.
    fn request(
        &self,
        text: &[u8],
        request: Option<Json>,
        is_local: bool,
        clause: &'static str,
    ) -> Vec<Finding> {
        let name = &self.call.name;
        let Some(request) = request else {
            let expected = format!("one JSON object: the request of the call {name:?}");
            return vec![Finding::new(clause, "no_object", expected, quoted(text))];
        };
        let mut found = Vec::new();
        let mut differs = |clause, member: &str, sent: &str, is: &dyn Fn(&Json) -> bool| {
            let null = Json::Null;
            if !is(request.get(sent).unwrap_or(&null)) {
                let expected = self.call.told.get(member).map_or("as documented".to_owned(), Json::to_text);
                let expected = format!("{sent:?} in the request of the call {name:?}: {expected}");
                found.push(Finding::new(clause, "other_member", expected, quoted(text)));
            }
        };
        let same = |member: &str| {
            let own = self.call.told.get(member).cloned();
            move |came: &Json| own.as_ref().is_some_and(|own| json::is_kept(own, came))
        };
        differs(clause, "", "protocol_version", &|it| it.as_f64() == Some(1.0));
        differs(clause, "tool", if is_local { "tool" } else { "tool_name" }, &same("tool"));
        differs(clause, "entry", "entry", &same("entry"));
        differs(clause, "payload", "payload", &same("payload"));
        // The contract leaves the request of a container open.
        if runner(self.call) == "container" {
            return found;
        }
        let is_given = |member: &str| self.call.told.get(member).is_some();
        let is_null = |it: &Json| *it == Json::Null;
        match is_given("trace_id") {
            true => differs(OPTIONS, "trace_id", "trace_id", &same("trace_id")),
            false => differs(OPTIONS, "", "trace_id", &|it| is_null(it) || it.as_str().is_some()),
        }
        if is_local {
            match is_given("sandbox") {
                true => differs(OPTIONS, "sandbox", "sandbox", &same("sandbox")),
                false => differs(OPTIONS, "", "sandbox", &|it| is_null(it) || it.as_bool().is_some()),
            }
            let required = required(self.call);
            differs(CONTEXT, "guarantees", "capability_context", &|context| {
                let sent = context.get("guarantees").and_then(Json::as_object).unwrap_or_default();
                let is_true =
                    |name: &str| sent.iter().any(|(own, value)| own == name && value.as_bool() == Some(true));
                required.iter().all(|name| is_true(name))
                    && sent.iter().all(|(name, value)| {
                        value.as_bool().is_some() && (!is_true(name) || required.contains(&name.as_str()))
                    })
            });
            return found;
        }
        let time_ms = times_ms(self.call).0 as f64;
        differs(clause, "", "kind", &|it| it.as_str() == Some("python"));
        differs(clause, "timeout_ms", "timeout_ms", &|it| it.as_f64() == Some(time_ms));
        let flow = self.told.get("project").and_then(|project| project.get("flow"));
        differs(clause, "", "project", &|it| {
            let root = it.get("app_root").and_then(Json::as_str).unwrap_or_default();
            root.ends_with(&format!("/{PROJECT}")) && it.get("flow") == flow
        });
        found
    }

    /// Start of the first call that waits for this one, microseconds. Its outcome was known by then.
    fn followed_us(&self) -> Option<u64> {
        let others = self.known.calls.iter().zip(&self.known.courses);
        others
            .filter(|(other, _)| other.after.contains(&self.call.name))
            .filter_map(|(_, it)| it.begun_us())
            .min()
    }

    /// Finding about a `timeout` that came too early or without a start, by the clock of the harness.
    fn timed_out(&self, noted: &CallResult, part: &ExpectedPart<Runtime>) -> Option<Finding> {
        let (clause, extra) = (part.clause, &part.extra);
        let is_late =
            |it: &Allowed<AllowedOutcome>| matches!(it.outcome, Outcome::Answer(AllowedOutcome::Timeout(..)));
        let may_be_late = part.allowed.iter().any(is_late);
        if noted.outcome != "timeout" {
            return None;
        }
        let Some(begun_us) = self.course.begun_us() else {
            let expected =
                format!("the call {:?} was started before the timeout of the call before it", self.call.name);
            // A forbidden timeout is found already.
            let unbegun = extra.unbegun.filter(|_| extra.forbidden.is_none() && may_be_late)?;
            return Some(Finding::new(unbegun, "never_begun", expected, noted.phrase()).timed());
        };
        let (time_ms, _) = times_ms(self.call);
        // An early timeout is found already by its own report. A handshake may use up all the time.
        let is_told = duration_ms(noted).is_none_or(|ms| ms + EARLY_MS < time_ms as f64);
        // The start of a program may be recorded with a delay of a fifth of the timeout.
        let least_us = begun_us.saturating_add(time_ms.saturating_mul(800));
        let is_early = self.course.asides.is_empty() && self.followed_us().is_some_and(|it| it < least_us);
        let expected =
            format!("calls after {:?} begin when its timeout of {time_ms} ms has passed", self.call.name);
        (is_early && !is_told).then(|| Finding::new(clause, "too_early", expected, noted.phrase()).timed())
    }

    /// Findings about the handshake.
    fn handshake(&self, is_blocked: bool) -> Vec<Finding> {
        let name = &self.call.name;
        let Some(first) = self.course.asides.first() else {
            // A handshake that decides nothing may be omitted.
            let overrides = self.member("unsafe_override").and_then(Json::as_bool) == Some(true);
            let expected = format!("a handshake before the call {name:?}");
            let found = Finding::new(HANDSHAKE, "no_handshake", expected, "none".to_owned());
            // A runtime that blocks the call without asking knows nothing about the service.
            let is_played = matches!(fixture(self.known, self.at), Some(Fixture::Listener { .. }));
            let is_due = self.course.is_executed() || is_blocked && is_played;
            return if is_due && !overrides { vec![found] } else { Vec::new() };
        };
        let mut found: Vec<Finding> = first.misposted(HANDSHAKE_PATH, HANDSHAKE).into_iter().collect();
        if self.course.requests.first().is_some_and(|request| request.at_us < first.at_us) {
            let expected = format!("the handshake of {name:?} before the call");
            found.push(Finding::new(HANDSHAKE, "too_late", expected, "the call came first".to_owned()));
        }
        if self.course.aside_replied_us.is_none() {
            return found;
        }
        let request = read(&first.body).unwrap_or_default();
        let members = request.as_object().unwrap_or_default();
        let required = required(self.call);
        let tool = self.member("tool").and_then(Json::as_str);
        let is_right = |(name, value): &(String, Json)| match name.as_str() {
            "protocol_version" => value.as_f64() == Some(1.0),
            "tool_name" => value.as_str() == tool,
            "runner" => value.as_str() == Some("service"),
            "required_guarantees" => {
                let is_true = |name: &str| value.get(name).and_then(Json::as_bool) == Some(true);
                required.iter().all(|name| is_true(name))
                    && value.as_object().is_some_and(|own| {
                        own.iter()
                            .all(|(name, value)| value.as_bool() == Some(required.contains(&name.as_str())))
                    })
            }
            _ => false,
        };
        if members.len() != 4 || !members.iter().all(is_right) {
            let expected = format!(
                "protocol_version 1, tool_name {tool:?}, runner \"service\" and required_guarantees \
                 {required:?} for the call {name:?}"
            );
            found.push(Finding::new(HANDSHAKE, "other_handshake", expected, quoted(&first.body)));
        }
        found
    }

    /// Findings about the report of the call, apart from its outcome.
    fn told(&self, noted: &CallResult, extra: &CallNotes, run_ms: f64) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut add = |clause, reason, expected: String| {
            found.push(Finding::new(clause, reason, expected, noted.phrase()));
        };
        let outcome = noted.outcome.as_str();
        if outcome != "result" {
            let error = noted.line.get("error");
            let message = error.and_then(|error| error.get("message")?.as_str()).unwrap_or_default();
            // A `tool_error` passes on any message of the runner.
            if error.is_none() || message.is_empty() && outcome != "tool_error" {
                add(MESSAGE, "no_message", "an `error` with a non-empty `message`".to_owned());
            }
        }
        // Another outcome of a wrong call is reported by itself.
        if outcome == "bad_call" || extra.forbidden == Some(BAD_CALL) {
            return found;
        }
        let Some(trace) = noted.line.get("trace").filter(|trace| trace.as_object().is_some()) else {
            add(TRACE, "no_trace", "a `trace`".to_owned());
            return found;
        };
        let null = Json::Null;
        let runner = runner(self.call);
        let came = |name: &str| trace.get(name).unwrap_or(&null);
        let mut must = |clause, name: &str, expected: String, is_right: bool| {
            if !is_right {
                add(clause, "other_trace", format!("`{name}` of the trace: {expected}"));
            }
        };
        let source = self.member("resolved_source").and_then(Json::as_str).unwrap_or("binding");
        let is_text = |name: &str| came(name).as_str().is_some_and(|text| !text.is_empty());
        must(TRACE, "runner", runner.to_owned(), came("runner").as_str() == Some(runner));
        must(TRACE, "resolved_source", source.to_owned(), came("resolved_source").as_str() == Some(source));
        must(TRACE, "protocol_version", "1".to_owned(), came("protocol_version").as_f64() == Some(1.0));
        let (time_ms, rounded_ms) = times_ms(self.call);
        let is_time =
            came("timeout_ms").as_f64().is_some_and(|ms| ms == time_ms as f64 || ms == rounded_ms as f64);
        let in_seconds = self.member("timeout_ms").is_none() && self.member("timeout_seconds").is_some();
        must(if in_seconds { "PT-RT-22" } else { TRACE }, "timeout_ms", time_ms.to_string(), is_time);
        let least_ms = self.course.begun_us().zip(self.course.ended.filter(|_| outcome != "timeout"));
        let least_ms =
            least_ms.map_or(0, |(begun_us, (ended_us, _))| ended_us.saturating_sub(begun_us) / 1_000);
        let least_ms = match fixture(self.known, self.at) {
            Some(Fixture::Listener { manner, .. }) if self.course.replied_us.is_some() => {
                late_ms(manner.fault)
            }
            _ => least_ms,
        };
        let is_duration = duration_ms(noted)
            .is_some_and(|ms| ms >= 0.0 && ms + EARLY_MS >= least_ms as f64 && ms <= run_ms + EARLY_MS);
        must(DURATION, "duration_ms", format!("from {least_ms} to {run_ms:.0}"), is_duration);
        let latest_ms = rounded_ms + GRACE_MS + self.known.late_ms;
        let is_late = duration_ms(noted).is_some_and(|ms| is_duration && ms > latest_ms as f64)
            || extra.is_held && self.is_followed_after(latest_ms);
        match runner {
            "local" => {
                for name in ["python_env", "python_path", "deps_source"] {
                    must(LOCAL, name, "a string that is not empty".to_owned(), is_text(name));
                }
                if let Some(given) = self.member("sandbox").filter(|_| self.course.is_executed()) {
                    must(SANDBOX, "sandbox", given.to_text(), came("sandbox") == given);
                }
            }
            "service" => self.told_service(trace, &mut must),
            _ => self.told_container(trace, &mut must),
        }
        if let Some(pack) = self.member("pack") {
            for name in ["pack_id", "pack_name", "pack_version"] {
                let given = pack.get(name).unwrap_or(&null);
                must(PACK, name, given.to_text(), came(name) == given);
            }
        }
        let went_on = extra.unassured && self.course.is_executed();
        let is_told = came("unsafe_override").as_bool() == Some(true);
        let is_given = self.member("unsafe_override").and_then(Json::as_bool) == Some(true);
        if went_on {
            must(OVERRIDE, "unsafe_override", "true".to_owned(), is_told);
        } else if !is_given {
            let is_off = matches!(came("unsafe_override"), Json::Null | Json::Bool(false));
            must(OVERRIDE, "unsafe_override", "absent or false".to_owned(), is_off);
        }
        for (_, name) in OWN.iter().filter(|(own, _)| *own != runner) {
            must(FOREIGN, name, "absent or null".to_owned(), *came(name) == Json::Null);
        }
        // The lateness of other calls is found by their outcomes. After a complete reply any outcome may be late.
        if is_late && (outcome != "timeout" || extra.is_held) {
            let clause = if extra.is_held { HELD_PIPE } else { CLAUSES.late };
            let expected = format!("an outcome within {latest_ms} ms");
            found.push(Finding::new(clause, "too_late", expected, noted.phrase()).timed());
        }
        found
    }

    /// True if the next call began later than this time after it, ms, while no other call ran.
    fn is_followed_after(&self, ms: u64) -> bool {
        let Some((begun_us, followed_us)) = self.course.begun_us().zip(self.followed_us()) else {
            return false;
        };
        let others = self.known.courses.iter().filter(|other| *other != self.course);
        let is_alone = others.filter_map(CallTimeline::begun_us).all(|other_us| other_us >= followed_us);
        is_alone && followed_us > begun_us.saturating_add(ms.saturating_mul(1_000))
    }

    fn told_container(&self, trace: &Json, must: &mut dyn FnMut(&'static str, &str, String, bool)) {
        let null = Json::Null;
        let came = |name: &str| trace.get(name).unwrap_or(&null);
        let runtime = format!("/{}", asking::played(&self.call.name));
        let is_path = came("container_runtime").as_str().is_some_and(|path| path.ends_with(&runtime));
        must(CONTAINER, "container_runtime", runtime, is_path);
        let image = self.member("image").unwrap_or(&null);
        must(CONTAINER, "image", image.to_text(), came("image") == image);
        // The contract leaves open if it is a list or a text.
        let is_command = came("command").as_str().is_some_and(|text| !text.is_empty())
            || came("command").as_array().is_some_and(|argv| !argv.is_empty());
        must(CONTAINER, "command", "a command".to_owned(), is_command);
        if !required(self.call).is_empty() && self.course.is_executed() {
            let is_there = *came("container_enforcement") != Json::Null;
            must(CONTAINER_GUARANTEES, "container_enforcement", "not null".to_owned(), is_there);
        }
    }

    fn told_service(&self, trace: &Json, must: &mut dyn FnMut(&'static str, &str, String, bool)) {
        let text = |name: &str| trace.get(name).and_then(Json::as_str);
        let url = self.member("url").and_then(Json::as_str).unwrap_or_default();
        let told = text("service_url").unwrap_or_default();
        let path = url.splitn(4, '/').nth(3).unwrap_or_default();
        // A variable in the address stands for the address that the request used.
        let asked = self.course.requests.first().or(self.course.asides.first());
        let host = asked.and_then(|request| request.header("host")).unwrap_or_default();
        let is_url = match url.contains('⟦') {
            true => told.starts_with("http://") && told.ends_with(&format!("{host}/{path}")),
            false => told == url,
        };
        must(SERVICE, "service_url", url.to_owned(), is_url);
        if let Some((credentials, _)) = url.split_once('@') {
            let secret = credentials.rsplit(':').next().unwrap_or_default();
            let is_in = trace.to_text().contains(secret);
            must(CREDENTIALS, "service_url", "a URL without credentials".to_owned(), !is_in);
        }
        if required(self.call).is_empty() || self.course.asides.is_empty() {
            return;
        }
        let is_there = trace.get("service_handshake").is_some_and(|it| *it != Json::Null);
        must(LEVEL, "service_handshake", "not null".to_owned(), is_there);
        let Some(Fixture::Listener { manner, .. }) = fixture(self.known, self.at) else { return };
        let aside = manner.aside.as_ref().filter(|aside| aside.fault.is_none());
        let Some(aside) = aside.filter(|_| self.course.aside_replied_us.is_some()) else { return };
        if aside.status != 200 {
            return;
        }
        let reply = read(&aside.body.expand(&Vars::new()).unwrap_or_default());
        let word = reply.as_ref().and_then(|it| it.get("enforcement")?.as_str());
        let level = text("enforcement_level");
        let is_right = match word {
            // Only a runtime that executed the call knows that the guarantees were assured.
            Some(word) if self.course.is_executed() && word == "enforced" => level == Some(word),
            Some(word) if ["enforced", "partial", "none"].contains(&word) => {
                level == Some(word) || level == Some("none")
            }
            _ => level.is_some_and(|level| !level.is_empty() && level != "enforced"),
        };
        let expected = format!("{} or \"none\"", word.unwrap_or("no word of the service"));
        must(LEVEL, "enforcement_level", expected, is_right);
    }
}

/// Decodes one JSON object.
fn read(text: &[u8]) -> Option<Json> {
    let decoded = json::decode(text, &DecodeLimits::default()).ok()?;
    decoded.value.as_object().is_some().then_some(decoded.value)
}
