//! Detection of a toolhost's roles and features that its configuration does not declare.
//!
//! Every role is tried once. An unmapped role is tried with the reference's action id, and mapped if the tool answers
//! as the table of roles demands, or is there and answers with a fault: the checks tell what is wrong. Two requests to
//! action ids that no tool has show how the peer says that a tool is missing. A configured role whose tool answers
//! differently is removed and recorded as misbehaving: its checks are untestable and blame no clause. Features are
//! probed only if the configuration has no `[features]` table. A claimed `http_get` stays mapped, so that checks judge
//! it.

use serde_json::{Value, json};

use super::config::KEYS;
use super::expect::{Allowed, Expect, Outcome, parse};
use super::reply_rules::mended;
use super::role::{ROLES, reference_aid, role};
use super::talk::{Request, Talk, quoted};
use super::talk_state::url_input;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::{Facts, RoleTrial};
use peerproof_engine::data::json::{self as strict, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, shorten};
use peerproof_engine::data::plan::{Fixture, ListenerSettings, Plan};
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Lease request of the reference, the default for peers without a configured one.
pub(crate) fn default_lease() -> Value {
    json!({
        "issue": {"aid": "_lease.issue", "tool_aid": "{aid}", "tier": "{tier}", "ttl_ms": "{ttl_ms}"},
        "token": "/token_id"
    })
}

/// Key of the limit that holds the size of this peer's replies without the data of a blob.
pub(crate) const REPLY_FRAME: &str = "reply_frame_bytes";

/// Clause of the probes, which are never judged.
const CLAUSE: &str = "TH-FRAME-01";

/// Action ids that no tool has, with inputs. The inputs differ, so that equal answers are about the tool alone.
const MISSING_TOOLS: [(&str, &str); 2] =
    [("AID.PEERPROOF.NO_SUCH_TOOL.v1", "{\"message\":\"probe\"}"), ("AID.PEERPROOF.NOR_THIS_ONE.v1", "{}")];

/// Number of requests with one key at the end of the questions.
const REPEATS: usize = 2;

/// Plans of the probes.
pub(crate) fn plans(facts: &Facts) -> Vec<Plan> {
    if facts.side == Side::Consumer {
        return Vec::new();
    }
    let mut plans = Vec::new();
    if facts.commands.contains("serve") {
        plans.push(serve_plan(facts));
        if !facts.features.contains_key("lease") {
            plans.push(lease_plan(facts));
        }
        plans.push(crash_plan(facts));
    } else if facts.commands.contains("run") {
        plans.push(run_plan(facts));
    }
    plans
}

fn anything() -> Expect {
    Expect::new(CLAUSE, Allowed::of(Outcome::Any))
}

fn aid_of(facts: &Facts, name: &str) -> String {
    role(facts, name).map_or_else(|| reference_aid(name), |role| role.aid)
}

/// Request to the tool of a role.
struct Question {
    role: &'static str,
    aid: String,
    input: String,
}

/// Questions in order. The counter is asked first, before its tool may count for another role, and twice, to show its
/// step. A slot is read after it was written, and again after it was emptied. `crash` has its own plan, because it may
/// end the process.
fn questions(facts: &Facts) -> Vec<Question> {
    let input_of =
        |name: &str| ROLES.iter().find(|(known, _)| *known == name).map_or("{}", |(_, input)| input);
    let others = ROLES.iter().map(|(name, _)| *name).filter(|name| !matches!(*name, "crash" | "counter"));
    let mut names = vec!["counter", "counter"];
    for name in others {
        names.push(name);
        if name == "remove" {
            names.push("get");
        }
    }
    let question = |name: &'static str| {
        let input = role(facts, name).filter(|_| name == "any").and_then(|any| any.input);
        let input = input.map_or_else(|| input_of(name).to_owned(), |input| input.to_string());
        Question { role: name, aid: aid_of(facts, name), input }
    };
    names.into_iter().map(question).collect()
}

impl Question {
    fn payload(&self) -> Payload {
        if self.role == "http_get" {
            url_input("http://127.0.0.1:{{web.port}}/")
        } else {
            Payload::text(quoted(&self.input))
        }
    }
}

fn web(talk: &mut Talk<'_>) {
    talk.fixture(Fixture::Listener {
        name: "web".to_owned(),
        status: 200,
        location: None,
        body: Payload::text("probe"),
        manner: ListenerSettings::default(),
    });
}

fn serve_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::serve(facts);
    web(&mut talk);
    for question in questions(facts) {
        let request = Request::aid(&question.aid).payload("input_json", question.payload());
        talk.send(request.line(), anything());
    }
    let (aid, input) = repeatable(facts);
    for _ in 0..REPEATS {
        talk.send(Request::aid(&aid).input(&input).key("peerproof-probe").line(), anything());
    }
    for (aid, input) in MISSING_TOOLS {
        talk.send(Request::aid(aid).input(input).line(), anything());
    }
    talk.finish();
    talk.plan()
}

/// Tool that shows if a repeated key runs it again: the counter, if there is one.
fn repeatable(facts: &Facts) -> (String, String) {
    match role(facts, "counter").or_else(|| role(facts, "any")) {
        Some(role) => (role.aid, role.input.map_or_else(|| "{}".to_owned(), |input| input.to_string())),
        None => (reference_aid("counter"), "{}".to_owned()),
    }
}

fn lease_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::serve_env(facts, &[("MACHINA_LEASE_ENFORCE", "1")]);
    let request = Request::aid("_lease.issue")
        .member("tool_aid", quoted(&aid_of(facts, "tier1")))
        .member("tier", "1")
        .member("ttl_ms", "10000");
    talk.send(request.line(), anything());
    talk.capture("/token_id", "token", true);
    talk.finish();
    talk.plan()
}

fn crash_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::serve(facts);
    let request = Request::aid(&aid_of(facts, "crash")).input("{}");
    talk.send(request.line(), anything());
    talk.finish();
    talk.plan()
}

fn run_plan(facts: &Facts) -> Plan {
    let mut talk = Talk::runs(facts);
    web(&mut talk);
    for question in questions(facts) {
        let body = Request::empty().payload("input_json", question.payload()).body();
        talk.run(&question.aid, body, &[], anything());
    }
    for (aid, input) in MISSING_TOOLS {
        talk.run(aid, Request::empty().input(input).body(), &[], anything());
    }
    talk.plan()
}

/// Completes the facts with the results of the probes.
pub(crate) fn complete(facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
    let asked = questions(facts);
    let serve = facts.commands.contains("serve");
    let mut misfits: Vec<Misfit> = Vec::new();
    let claimed_http = aid_of(facts, "http_get");
    let missing_tool =
        probes.first().and_then(|first| MissingTool::told(&replies(first, serve), asked.len(), serve));
    let mut leases = false;
    let mut repeats = false;
    let mut reply_frame = None;
    for (index, transcript) in probes.iter().enumerate() {
        let replies = replies(transcript, serve);
        let is_lease = index == 1 && probes.len() == 3;
        let is_crash = serve && index + 1 == probes.len() && index > 0;
        if is_lease {
            leases = replies
                .first()
                .and_then(|reply| reply.as_ref()?.get("token_id")?.as_str().map(str::is_empty))
                == Some(false);
        } else if is_crash {
            let succeeds = replies.first().is_some_and(|reply| reply.as_ref().is_some_and(is_ok));
            if facts.roles.contains_key("crash") {
                let why = succeeds.then(|| "succeeds".to_owned());
                misfits.extend(why.map(|why| ("crash", aid_of(facts, "crash"), why)));
            } else if crashes(&replies, transcript, facts, missing_tool.as_ref()) {
                map(facts, "crash");
            }
        } else {
            let answers: Vec<(&Question, &Json)> = asked
                .iter()
                .zip(&replies)
                .filter_map(|(asked, reply)| Some((asked, reply.as_ref()?)))
                .collect();
            misfits.extend(try_each(&answers, facts, missing_tool.as_ref()));
            if serve {
                reply_frame = reply_frame.or_else(|| bytes_around_blob(transcript, &asked));
                misfits.extend(miscounts(&answers, facts));
                misfits.extend(misfits_of_slots(&answers, facts));
            }
            repeats = serve && repeated(&replies[..replies.len().min(asked.len() + REPEATS)]);
        }
    }
    for (name, aid, why) in misfits {
        let meaning =
            KEYS.iter().find(|key| key.table() == "roles" && key.name == name).map_or("", |key| key.meaning);
        let why = format!("{aid} as role `{name}` {why}; the role: {meaning}");
        facts.enter(name, RoleTrial::Misplays(why));
    }
    if let Some(bytes) = reply_frame.filter(|_| facts.roles.contains_key("blob")) {
        facts.limits.insert(REPLY_FRAME.to_owned(), bytes);
    }
    if features_given && claims_http(facts) && !facts.roles.contains_key("http_get") {
        // The contract names this tool. The claim stays, and a check shows the tool's actual answer.
        map_to(facts, "http_get", claimed_http);
    }
    if !facts.roles.contains_key("any")
        && let Some(echo) = role(facts, "echo")
    {
        facts.roles.insert("any".to_owned(), json!({"aid": echo.aid, "input": {"any": 1}}));
    }
    if features_given {
        for feature in ["lease"] {
            if facts.features.get(feature) == Some(&Value::Bool(true)) {
                facts.features.insert(feature.to_owned(), default_lease());
            }
        }
        return;
    }
    let has = |facts: &Facts, role: &str| facts.roles.contains_key(role);
    if repeats {
        facts.features.insert("idempotency".to_owned(), Value::Bool(true));
    }
    if leases {
        facts.features.insert("lease".to_owned(), default_lease());
    }
    if has(facts, "put") && has(facts, "get") {
        facts.features.insert("ds_state".to_owned(), Value::Bool(true));
    }
    if has(facts, "http_get") {
        facts.features.insert("http_get".to_owned(), Value::Bool(true));
    }
}

/// Enters the conclusion about each role but `crash`. Returns the misfits.
fn try_each(
    answers: &[(&Question, &Json)],
    facts: &mut Facts,
    missing_tool: Option<&MissingTool>,
) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    for name in ROLES.iter().map(|(name, _)| *name) {
        let configured = facts.roles.contains_key(name);
        let Some((question, reply)) = answers.iter().find(|(question, _)| question.role == name) else {
            if configured && name != "crash" {
                facts.enter(name, RoleTrial::Untold("its call gets no readable reply".to_owned()));
            }
            continue;
        };
        match seen(question, reply, missing_tool) {
            ProbeConclusion::Plays | ProbeConclusion::Faulty | ProbeConclusion::Fails(_) if !configured => {
                map(facts, name);
            }
            ProbeConclusion::Fails(why) => misfits.push((name, question.aid.clone(), why)),
            ProbeConclusion::Other(why) if configured || (name == "http_get" && claims_http(facts)) => {
                misfits.push((name, question.aid.clone(), why));
            }
            ProbeConclusion::Faulty | ProbeConclusion::Nothing if configured => {
                let why = format!("it answers {}", shorten(&reply.to_text(), 80));
                facts.enter(name, RoleTrial::Untold(why));
            }
            _ => {}
        }
    }
    misfits
}

fn map(facts: &mut Facts, name: &str) {
    map_to(facts, name, reference_aid(name));
}

fn map_to(facts: &mut Facts, name: &str, aid: String) {
    facts.roles.insert(name.to_owned(), json!({ "aid": aid }));
}

fn claims_http(facts: &Facts) -> bool {
    facts.claims("http_get")
}

/// Reply to each step: lines of a serve session, or whole outputs of run sessions.
fn replies(transcript: &Transcript, serve: bool) -> Vec<Option<Json>> {
    let decode =
        |bytes: &[u8]| strict::decode(bytes, &DecodeLimits::default()).ok().map(|decoded| decoded.value);
    if serve {
        let out = transcript.stdout(0);
        return out.split(|byte| *byte == b'\n').take(transcript.plan.steps.len()).map(decode).collect();
    }
    (0..transcript.plan.sessions.len()).map(|session| decode(&transcript.stdout(session))).collect()
}

/// Output of a success reply, also one that is wrongly a JSON value instead of its text.
fn output(reply: &Json) -> Option<Json> {
    let output = reply.get("output_json").filter(|_| is_ok(reply))?;
    output.as_str().map_or_else(|| Some(output.clone()), parse)
}

/// Peer's answer to an action id that no tool has: `ok`, `status`, and `error` without the action id.
#[derive(PartialEq)]
struct MissingTool([Option<String>; 3]);

impl MissingTool {
    /// Answer to an unknown action id, after `asked` questions; `None` if it does not depend on the action id alone.
    fn told(replies: &[Option<Json>], asked: usize, serve: bool) -> Option<Self> {
        let first = asked + if serve { REPEATS } else { 0 };
        let form = |at: usize| Self::form(replies.get(first + at)?.as_ref()?, MISSING_TOOLS[at].0);
        form(0).filter(|told| form(1).as_ref() == Some(told))
    }

    /// Form of a reply for comparison; `None` for a success.
    fn form(reply: &Json, aid: &str) -> Option<Self> {
        let status = reply.get("status").map(Json::to_text);
        let succeeds = reply.get("ok").and_then(Json::as_bool).unwrap_or(status.as_deref() == Some("\"OK\""));
        let error = reply.get("error").map(|error| error.to_text().replace(aid, ""));
        (!succeeds).then(|| Self([reply.get("ok").map(Json::to_text), status, error]))
    }

    /// True if `reply` says that there is no tool for `aid`.
    fn fits(&self, reply: &Json, aid: &str) -> bool {
        Self::form(reply, aid).as_ref() == Some(self)
    }
}

/// Size of the reply to the question for a blob, line feed included, without its data.
fn bytes_around_blob(transcript: &Transcript, asked: &[Question]) -> Option<u64> {
    let at = asked.iter().position(|question| question.role == "blob")?;
    let out = transcript.stdout(0);
    let line = out.split_inclusive(|byte| *byte == b'\n').nth(at)?;
    line.len().checked_sub("xxx".len()).map(|bytes| bytes as u64)
}

/// Conclusion from the reply to a question.
enum ProbeConclusion {
    /// The tool answers as the table of roles demands.
    Plays,
    /// The tool does something else, described here, or does not exist.
    Other(String),
    /// The tool exists and refuses the call, as described here.
    Fails(String),
    /// The tool exists, and its reply has a fault that checks tell.
    Faulty,
    /// Nothing is certain: the fault may lie in the toolhost, which checks judge.
    Nothing,
}

fn is_ok(reply: &Json) -> bool {
    reply.get("ok").and_then(Json::as_bool) == Some(true)
}

/// Conclusion from a reply, or from what it means if only its members contradict each other.
fn seen(question: &Question, reply: &Json, missing_tool: Option<&MissingTool>) -> ProbeConclusion {
    // `None` if nothing is certain.
    let exists = missing_tool.map(|missing_tool| !missing_tool.fits(reply, &question.aid));
    match conclude(question, reply, exists) {
        ProbeConclusion::Plays => ProbeConclusion::Plays,
        _ if exists != Some(false)
            && mended(reply)
                .iter()
                .any(|meant| matches!(conclude(question, meant, exists), ProbeConclusion::Plays)) =>
        {
            ProbeConclusion::Faulty
        }
        other => other,
    }
}

fn conclude(question: &Question, reply: &Json, exists: Option<bool>) -> ProbeConclusion {
    let error = reply.get("error").and_then(Json::as_str).unwrap_or_default();
    let failed = reply.get("status").and_then(Json::as_str) == Some("TOOL_ERROR");
    let refused = || format!("is refused: {}", shorten(&quoted(error), 80));
    match (question.role, reply.get("ok").and_then(Json::as_bool), exists) {
        (_, None, _) => return ProbeConclusion::Nothing,
        ("fail", Some(true), _) => return ProbeConclusion::Other("succeeds".to_owned()),
        // The peer may refuse this machine, or wrongly demand a lease.
        ("http_get", Some(false), _) => return ProbeConclusion::Nothing,
        (_, Some(false), Some(false)) => return ProbeConclusion::Other(refused()),
        ("fail", Some(false), _) => {
            return match (failed, error.contains("probe")) {
                (true, true) => ProbeConclusion::Plays,
                _ if exists == Some(true) => ProbeConclusion::Faulty,
                (false, false) => ProbeConclusion::Other(refused()),
                _ => ProbeConclusion::Nothing,
            };
        }
        (_, Some(false), Some(true)) if error.starts_with("lease_") => return ProbeConclusion::Faulty,
        (_, Some(false), None) if error.starts_with("lease_") => return ProbeConclusion::Nothing,
        (_, Some(false), Some(true)) => return ProbeConclusion::Fails(refused()),
        (_, Some(false), None) => return ProbeConclusion::Other(refused()),
        (_, Some(true), _) => {}
    }
    let Some(output) = output(reply) else { return ProbeConclusion::Faulty };
    let plays = match question.role {
        "echo" => Some(&output) == parse(&question.input).as_ref(),
        "counter" | "tier1" | "tier2" | "tier3" => count(&output).is_some(),
        "get" => output.get("artifact").is_some(),
        "sleep" => output.get("slept_ms").is_some(),
        "blob" => output.get("data").and_then(Json::as_str) == Some("xxx"),
        "http_get" => {
            output.get("status").and_then(Json::as_u64) == Some(200)
                && output.get("body").and_then(Json::as_str) == Some("probe")
        }
        _ => true,
    };
    if plays { ProbeConclusion::Plays } else { ProbeConclusion::Other(answers(&output)) }
}

fn answers(output: &Json) -> String {
    format!("answers {}", shorten(&output.to_text(), 80))
}

fn count(output: &Json) -> Option<u64> {
    output.get("count").and_then(Json::as_u64)
}

/// Misfit: role, action id, and the actual behaviour of its tool.
type Misfit = (&'static str, String, String);

/// Misfits among counters: they do not start from nothing, have unequal steps, or change with plain requests. Steps of
/// two mean that the toolhost runs a tool twice, which checks judge.
fn miscounts(answers: &[(&Question, &Json)], facts: &Facts) -> Vec<Misfit> {
    let mut misfits = Vec::new();
    let counts: Vec<u64> = answers
        .iter()
        .filter(|(question, _)| question.role == "counter")
        .filter_map(|(_, reply)| count(&output(reply)?))
        .collect();
    if let [first, second] = counts[..]
        && (first == 0 || second != first.saturating_mul(2))
    {
        misfits.push(("counter", aid_of(facts, "counter"), format!("answers {first}, then {second}")));
    }
    for name in ["counter", "tier1", "tier2", "tier3"] {
        let aid = role(facts, name).map(|role| role.aid);
        if aid.is_some() && aid == role(facts, "any").map(|any| any.aid) && role(facts, "echo").is_none() {
            let why = "also plays `any`, so that every plain request counts".to_owned();
            misfits.push((name, aid.unwrap_or_default(), why));
        }
    }
    misfits.retain(|(name, ..)| facts.roles.contains_key(*name));
    misfits
}

/// Misfits among tools for slots: they leave the slot unchanged and answer something other than `{}`. A tool that
/// answers `{}` may have written; then the toolhost lost it.
fn misfits_of_slots(answers: &[(&Question, &Json)], facts: &Facts) -> Vec<Misfit> {
    let own = |role: &'static str| {
        answers.iter().filter(move |(question, _)| question.role == role).map(|(_, reply)| *reply)
    };
    let shown: Vec<bool> =
        own("get").filter_map(|reply| Some(output(reply)?.get("artifact")?.as_object().is_some())).collect();
    let [written, still] = shown[..] else { return Vec::new() };
    let mut misfits = Vec::new();
    for (name, done) in [("put", written), ("remove", !(written && still))] {
        let Some(output) = own(name).next().filter(|_| facts.roles.contains_key(name)).and_then(output)
        else {
            continue;
        };
        if !done && output.as_object().is_none_or(|members| !members.is_empty()) {
            misfits.push((name, aid_of(facts, name), self::answers(&output)));
        }
    }
    misfits
}

/// True if the tool exists and crashes: it answers an error or ends the process. A missing tool is refused.
fn crashes(
    replies: &[Option<Json>],
    transcript: &Transcript,
    facts: &Facts,
    missing_tool: Option<&MissingTool>,
) -> bool {
    match (replies.first().and_then(Option::as_ref), missing_tool) {
        (Some(reply), Some(missing_tool)) => {
            !is_ok(reply) && !missing_tool.fits(reply, &aid_of(facts, "crash"))
        }
        (Some(reply), None) => reply.get("status").and_then(Json::as_str) == Some("TOOL_ERROR"),
        (None, _) => {
            facts.roles.contains_key("echo")
                && transcript.events.iter().any(|event| matches!(event.kind, EventKind::Exited { .. }))
        }
    }
}

/// True if the second of two requests with one key was answered from a cache.
fn repeated(replies: &[Option<Json>]) -> bool {
    let answered: Vec<&Json> = replies.iter().flatten().collect();
    let [.., first, second] = answered.as_slice() else { return false };
    let hit = second.get("idempotent_hit").and_then(Json::as_bool) == Some(true);
    let counted = |reply: &Json| count(&output(reply)?);
    hit || (counted(first).is_some() && counted(first) == counted(second))
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::transcript::{Bytes, Event};

    /// Transcript of the questions of a serve process that printed `out`.
    fn probe_of(facts: &Facts, out: String) -> Transcript {
        let received =
            Event { at_us: 1, session: 0, kind: EventKind::Received { bytes: Bytes(out.into_bytes()) } };
        Transcript {
            boundary: "toolhost".to_owned(),
            check: "probe".to_owned(),
            facts: facts.clone().into(),
            plan: serve_plan(facts).into(),
            timeout_scale: 1.0,
            events: vec![received],
        }
    }

    /// Facts after a serve process has answered `own` to the question for `role`, and that there is no tool to the
    /// others.
    fn after(mut facts: Facts, role: &str, own: &str) -> Facts {
        let missing = |aid: &str| format!("{{\"ok\":false,\"error\":\"no tool {aid}\"}}\n");
        let reply =
            |asked: &Question| if asked.role == role { format!("{own}\n") } else { missing(&asked.aid) };
        let repeated = std::iter::repeat_n(missing(&repeatable(&facts).0), REPEATS);
        let missing_tool = MISSING_TOOLS.iter().map(|(aid, _)| missing(aid));
        let out: String = questions(&facts).iter().map(reply).chain(repeated).chain(missing_tool).collect();
        let probe = probe_of(&facts, out);
        complete(&mut facts, false, &[probe]);
        facts
    }

    fn serving() -> Facts {
        let mut facts = Facts::new(Side::Provider);
        facts.commands.insert("serve".to_owned());
        facts
    }

    #[test]
    fn a_tool_that_answers_with_a_fault_is_there() {
        let success = |status: &str, output: &str| {
            format!("{{\"ok\":true,\"status\":{status},\"output_json\":{output},\"error\":\"\"}}")
        };
        for (role, reply) in [
            ("echo", success("\"OK\"", "{\"probe\":\"echo\"}")),
            ("echo", success("\"TOOL_ERROR\"", "\"{\\\"probe\\\":\\\"echo\\\"}\"")),
            ("echo", success("\"OK\"", "\"{'probe':'echo'}\"")),
            ("tier2", success("\"OK\"", "{\"count\":1}")),
            ("put", "{\"ok\":true}".to_owned()),
            ("get", "{\"ok\":\"true\",\"status\":\"OK\",\"output_json\":{\"artifact\":null}}".to_owned()),
            ("put", "{\"ok\":false,\"error\":\"bad slot\"}".to_owned()),
            ("tier1", "{\"ok\":false,\"error\":\"lease_required\"}".to_owned()),
            ("fail", "{\"ok\":false,\"status\":\"ERROR\",\"error\":\"probe\"}".to_owned()),
            ("fail", "{\"ok\":false,\"status\":\"TOOL_ERROR\",\"error\":\"failed\"}".to_owned()),
            ("fail", "{\"ok\":false}".to_owned()),
            ("fail", "{\"ok\":true,\"status\":\"TOOL_ERROR\",\"error\":\"probe\"}".to_owned()),
        ] {
            assert!(after(serving(), role, &reply).roles.contains_key(role), "{role}: {reply}");
        }
    }

    #[test]
    fn a_tool_that_is_missing_or_does_something_else_plays_no_role() {
        for (role, reply) in [
            ("fail", "{\"ok\":false,\"error\":\"no tool AID.PEERPROOF.FAIL.v1\"}"),
            ("put", "{\"ok\":false,\"error\":\"no tool AID.PEERPROOF.PUT.v1\"}"),
            ("fail", "{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\"}"),
            ("echo", "{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\"}"),
            ("echo", "{\"ok\":true,\"status\":\"OK\",\"output_json\":{},\"error\":\"\"}"),
        ] {
            assert!(after(serving(), role, reply).roles.is_empty(), "{role}: {reply}");
        }
    }

    #[test]
    fn a_configured_tool_that_refuses_its_call_misplays() {
        let mut facts = serving();
        map_to(&mut facts, "put", "AID.X".to_owned());
        let facts = after(facts, "put", "{\"ok\":false,\"error\":\"bad slot\"}");
        assert!(matches!(facts.trial("put"), RoleTrial::Misplays(_)), "{:?}", facts.trial("put"));
    }

    #[test]
    fn what_stands_around_a_result_is_measured() {
        let mut facts = Facts::new(Side::Provider);
        facts.commands.insert("serve".to_owned());
        const BLOB: &str = "{\"ok\": true, \"status\": \"OK\", \"output_json\": \"{\\\"data\\\": \\\"xxx\\\"}\", \
                            \"error\": \"\", \"ds_state\": {\"delta\": true}}\n";
        let reply =
            |asked: &Question| if asked.role == "blob" { BLOB } else { "{\"ok\":false,\"error\":\"e\"}\n" };
        let out: String = questions(&facts).iter().map(reply).collect();
        let probe = probe_of(&facts, out);
        complete(&mut facts, false, &[probe]);
        assert_eq!(facts.limits.get(REPLY_FRAME), Some(&(BLOB.len() as u64 - 3)));
    }
}
