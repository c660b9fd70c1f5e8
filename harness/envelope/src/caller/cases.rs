//! Checks of callers: rows of the files `caller*.toml` below `corpora/envelope/cases`.
//!
//! A step is a call and the reply to it: a program that reads the request, writes a reply and exits, or a server.
//! The allowed outcomes follow from the reply. A call that cannot end as `envelope` has a control over the same
//! transport: a call with right values, which can. A canary comes after all other calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;

use super::{COMMAND, REPLY_BYTES_MAX, USUAL_MS};
use crate::cases::files;
use crate::model::{Acceptance, BYTES_MAX, of_envelope};
use crate::{shape, talk};
use peerproof_engine::contract::asking::{
    CANARY, GRACE_MS, SceneBuilder, Script, played, replying, variable,
};
use peerproof_engine::data::case::{self, Amount, Case, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::{Payload, Vars};
use peerproof_engine::data::plan::{ActorStep, Fixture, ListenerSettings, PathKind, Plan};
use peerproof_engine::data::sizes::padded;

/// Timeout of a call that is answered at once, ms.
const TIMEOUT_MS: u64 = 8_000;

/// Path in an engine's URL.
const PATH: &str = "/api/v1/process";

/// A URL without a server.
const NOBODY: &str = "http://127.0.0.1:1/api/v1/process";

/// Time between blanks that trickle, ms; shorter than the timeout of the call.
const TRICKLE_MS: u64 = 700;

/// Largest reply that has a control, bytes.
const REPLY_BYTES_MAX_OF_CONTROL: usize = 1 << 20;

/// Size of a text that a pipe does not hold, bytes.
const PAD_BYTES: usize = 300_000;

/// Limits by name, for recipes.
fn limit(name: &str) -> Option<u64> {
    match name {
        "bytes_max" => Some(BYTES_MAX as u64),
        "reply_bytes_max" => Some(REPLY_BYTES_MAX as u64),
        _ => None,
    }
}

/// Kind of engine for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EngineKind {
    /// A program.
    #[default]
    Stdio,
    /// A server.
    Http,
    /// A program and a server, each with a call of its own.
    Both,
}

/// One call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    /// Ref of the call.
    call: Option<String>,
    over: EngineKind,
    /// Members of the envelope as JSON texts; empty text removes a member. `$PAD` stands for a text that a pipe
    /// does not hold.
    sent: BTreeMap<String, String>,
    /// Name of the base of the sent envelope; by default `plain`.
    sent_base: Option<String>,
    /// The envelope itself, instead of a changed base.
    envelope: Option<String>,
    /// Members of the reply as JSON texts; the others are those of its base.
    with: BTreeMap<String, String>,
    /// Members of the reply that are strings, taken literally; a line feed stays one.
    texts: BTreeMap<String, String>,
    /// Name of the base of the reply; by default `plain`.
    base: Option<String>,
    /// Text of the reply. `$PLAIN` stands for an envelope, `$OPEN` for it without its last brace.
    raw: Option<Recipe>,
    /// Length of the reply in bytes; it is padded.
    pad_to: Option<Amount>,
    /// Exit status of the program, by default 0, or HTTP status of the server, by default 200.
    status: i32,
    /// Steps of the program, instead of a read, a reply and an exit. The variables `reply`, `first` and `rest`
    /// stand for the reply and its halves.
    script: Vec<ActorStep>,
    /// Number of blanks that the program writes, one every [`TRICKLE_MS`], before a valid reply. A caller that
    /// waits for the reply is found by its outcome, not by its time alone.
    trickles: usize,
    /// Manner of the server's reply.
    manner: Option<ListenerSettings>,
    /// Makes the server redirect to another one, which replies.
    redirect: bool,
    /// Entry at the path of the program that cannot be started.
    path: Option<PathKind>,
    /// Sends the call to an address without a server.
    nobody: bool,
    /// Arguments of the program.
    args: Vec<String>,
    /// Timeout of the call, ms. 0: the call has none.
    timeout_ms: Option<u64>,
    after: Vec<String>,
    /// Omits the canary after this call.
    last: bool,
}

impl EngineKind {
    /// Transport of each call; true for HTTP.
    fn channels(self) -> &'static [bool] {
        match self {
            Self::Stdio => &[false],
            Self::Http => &[true],
            Self::Both => &[false, true],
        }
    }
}

/// A text with a valid value for each one that callers must refuse, and with the ids of the plain envelope. If it
/// is not an envelope: the plain one. `None` if nothing is wrong.
fn mended(text: &str) -> Option<String> {
    let plain: Json = talk::PLAIN.parse().unwrap_or_default();
    let Some(own) = text.trim().parse::<Json>().ok().filter(|it| it.get("outputs").is_some()) else {
        return Some(talk::PLAIN.to_owned());
    };
    let mut envelope = own.clone();
    for id in ["envelope_id", "request_id", "session_id"] {
        envelope.set(id, plain.get(id).cloned().unwrap_or_default());
    }
    for wrong in of_envelope(&envelope).into_iter().filter(|it| it.stand == Acceptance::Refuse) {
        let name = wrong.at.split('/').nth(1).unwrap_or_default();
        let sample = || shape::envelope().member(name)?.samples().first()?.parse::<Json>().ok();
        envelope.set(name, plain.get(name).cloned().or_else(sample).unwrap_or_default());
    }
    (envelope != own).then(|| envelope.to_text())
}

/// Reply to a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    /// Text of the reply.
    pub text: Payload,
    /// Exit status or HTTP status; 0 means success.
    pub status: i32,
    /// Steps of a program, instead.
    pub script: Vec<ActorStep>,
    /// Manner of a server's reply, if unusual.
    pub manner: Option<ListenerSettings>,
    /// Makes the server redirect to another one.
    pub redirect: bool,
    /// Arguments of a program.
    pub args: Vec<String>,
    /// Timeout of the call in ms, if not the usual one. 0: the call has none.
    pub timeout_ms: Option<u64>,
    /// Refs of calls that must finish first.
    pub after: Vec<String>,
}

/// All rows. The data is embedded; a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        case::load(files(true))
            .unwrap_or_else(|error| unreachable!("corpora/envelope/cases does not load: {error}"))
    })
}

/// All checks, in the order in which they run.
pub(crate) fn checks() -> impl Iterator<Item = Check> {
    all().iter().map(|loaded| {
        let own = loaded.case.clone();
        let planner = move |_: &_, _: &mut _| plan(&own);
        let id = format!("envelope/caller/{}", loaded.case.id);
        loaded.case.check(id, COMMAND, planner).vouched().on_process()
    })
}

fn plan(case: &Case<Row>) -> Result<Plan, Untestable> {
    let mut scene = SceneBuilder::default();
    // The canary is the control of plain calls.
    let mut shown = BTreeSet::from([(false, talk::PLAIN.to_owned(), talk::PLAIN.to_owned())]);
    let mut due = Vec::new();
    for (number, row) in case.steps.iter().enumerate() {
        row.add(number, &mut scene)?;
        let (cannot, sent, reply) = row.control()?;
        for &is_http in row.over.channels() {
            let call = (is_http, sent.clone(), reply.trim().to_owned());
            if cannot { due.push(call) } else { _ = shown.insert(call) }
        }
    }
    for control in due {
        if shown.insert(control.clone()) {
            let (is_http, sent, reply) = control;
            let name = format!("control{}", shown.len());
            let reply = Reply { text: Payload::text(reply), ..Reply::default() };
            called(&mut scene, &name, &sent, is_http, reply);
        }
    }
    if case.steps.iter().all(|row| !row.last) {
        canary(&mut scene);
    }
    Ok(scene.plan(COMMAND, &case.clauses[0].0))
}

/// Adds a last call which shows that the caller still works.
pub(crate) fn canary(scene: &mut SceneBuilder) {
    let reply = Reply { text: Payload::text(talk::PLAIN), after: scene.names(), ..Reply::default() };
    called(scene, CANARY, talk::PLAIN, false, reply);
}

/// Adds a call of this envelope (JSON text) to a program or a server.
pub(crate) fn called(scene: &mut SceneBuilder, name: &str, envelope: &str, is_http: bool, reply: Reply) {
    let own = played(name);
    let mut told = told(name, envelope, &reply);
    if is_http {
        told.set("transport", "http");
        told.set("url", format!("http://{}{PATH}", variable(&format!("{own}.address"))));
        let timeout_ms = reply.timeout_ms.filter(|ms| *ms > 0).unwrap_or(USUAL_MS);
        let fault = reply.manner.as_ref().and_then(|it| it.fault);
        let lasts_ms = fault.map_or(0, |fault| fault.lasts_ms().max(timeout_ms + GRACE_MS));
        let status = if reply.status == 0 { 200 } else { u16::try_from(reply.status).unwrap_or(500) };
        let manner = |given: Option<ListenerSettings>| {
            let usual = ListenerSettings { whole: true, ..ListenerSettings::default() };
            let given = given.unwrap_or(usual);
            let content_type = given.content_type.or_else(|| Some("application/json".to_owned()));
            ListenerSettings { content_type, ..given }
        };
        let server = |name: String,
                      status: u16,
                      location: Option<String>,
                      body: Payload,
                      how: Option<ListenerSettings>| {
            Fixture::Listener { name, status, location, body, manner: manner(how) }
        };
        let target = format!("target-{name}");
        let location = reply.redirect.then(|| format!("http://{{{{{target}.address}}}}{PATH}"));
        let other = reply.redirect.then(|| server(target, 200, None, reply.text.clone(), None));
        let first = server(own, status, location, reply.text, reply.manner);
        return scene.call(told, [Some(first), other].into_iter().flatten(), lasts_ms);
    }
    let argv = std::iter::once(variable(&format!("{own}.path"))).chain(reply.args);
    told.set("transport", "stdio");
    told.set("command", Json::array(argv));
    let usual = [
        ActorStep::ReadRequest,
        ActorStep::Stdout(Payload::default().var("reply")),
        ActorStep::Exit(reply.status),
    ];
    let script = if reply.script.is_empty() { usual.to_vec() } else { reply.script };
    let script = replying(script, &reply.text);
    let timeout_ms = reply.timeout_ms.filter(|ms| *ms > 0).unwrap_or(USUAL_MS);
    let lasts_ms = Script::of(&script).lasts_ms(timeout_ms);
    scene.call(told, [Fixture::Actor { name: own, script, later: Vec::new() }], lasts_ms);
}

/// Members of a call that do not depend on its transport.
fn told(name: &str, envelope: &str, reply: &Reply) -> Json {
    let envelope: Json = envelope.parse().unwrap_or_default();
    let mut told = Json::object([("ref", Json::from(name)), ("envelope", envelope)]);
    match reply.timeout_ms {
        Some(0) => {}
        ms => told.set("timeout_ms", ms.unwrap_or(TIMEOUT_MS)),
    }
    if !reply.after.is_empty() {
        told.set("after", Json::array(reply.after.iter().map(String::as_str)));
    }
    told
}

impl Row {
    /// Envelope of the scenario.
    fn sent(&self) -> String {
        let envelope = self.envelope.clone();
        let base = talk::base(self.sent_base.as_deref().unwrap_or("plain")).unwrap_or_default();
        let envelope = envelope.unwrap_or_else(|| talk::changed(&base, &self.sent, &BTreeMap::new()));
        envelope.replace("$PAD", &"x".repeat(PAD_BYTES))
    }

    /// Control of a call. The flag is true if the call cannot end as `envelope`; the texts are the envelope and the
    /// reply of a call that can, and differs in that alone.
    fn control(&self) -> Result<(bool, String, String), Untestable> {
        let (sent, reply) = (self.sent(), self.reply()?);
        if reply.len(&Vars::new()) > REPLY_BYTES_MAX_OF_CONTROL {
            return Ok((false, sent, String::new()));
        }
        let reply = String::from_utf8_lossy(&reply.expand(&Vars::new()).unwrap_or_default()).into_owned();
        let is_played = self.status == 0
            && self.script.is_empty()
            && self.trickles == 0
            && self.manner.as_ref().is_none_or(|manner| manner.fault.is_none())
            && !(self.redirect || self.nobody || self.path.is_some());
        let (mended_sent, mended_reply) = (mended(&sent), mended(&reply));
        let cannot = !is_played || mended_sent.is_some() || mended_reply.is_some();
        Ok((cannot, mended_sent.unwrap_or(sent), mended_reply.unwrap_or(reply)))
    }

    fn add(&self, number: usize, scene: &mut SceneBuilder) -> Result<(), Untestable> {
        let name = self.call.clone().unwrap_or_else(|| format!("c{number}"));
        let envelope = self.sent();
        let mut script = self.script.clone();
        if self.trickles > 0 {
            script.push(ActorStep::ReadRequest);
            let blank = [ActorStep::Stdout(Payload::text(" ")), ActorStep::Sleep { ms: TRICKLE_MS }];
            script.extend(std::iter::repeat_n(blank, self.trickles).flatten());
            script.push(ActorStep::Stdout(Payload::default().var("reply")));
        }
        let reply = Reply {
            text: self.reply()?,
            status: self.status,
            script,
            manner: self.manner.clone(),
            redirect: self.redirect,
            args: self.args.clone(),
            timeout_ms: self.timeout_ms,
            after: self.after.clone(),
        };
        if let Some(what) = &self.path {
            let mut told = told(&name, &envelope, &reply);
            told.set("transport", "stdio");
            told.set("command", Json::array([variable(&format!("{}.path", played(&name)))]));
            let fixture = Fixture::Path { name: played(&name), what: what.clone() };
            scene.call(told, [fixture], 0);
        } else if self.nobody {
            let mut told = told(&name, &envelope, &reply);
            told.set("transport", "http");
            told.set("url", NOBODY);
            scene.call(told, [], 0);
        } else {
            match self.over {
                EngineKind::Stdio => called(scene, &name, &envelope, false, reply),
                EngineKind::Http => called(scene, &name, &envelope, true, reply),
                EngineKind::Both => {
                    called(scene, &name, &envelope, false, reply.clone());
                    called(scene, &format!("{name}h"), &envelope, true, reply);
                }
            }
        }
        Ok(())
    }

    /// Text of the reply.
    fn reply(&self) -> Result<Payload, Untestable> {
        let base = self.base.as_deref().unwrap_or("plain");
        let base = talk::base(base).ok_or_else(|| format!("no base is called {base:?}"))?;
        let text = talk::changed(&base, &self.with, &self.texts);
        let filled = |recipe: &str| {
            Ok(recipe.replace("$PLAIN", &text).replace("$OPEN", text.strip_suffix('}').unwrap_or(&text)))
        };
        let payload = match &self.raw {
            Some(recipe) => recipe.payload(&limit, &filled)?,
            None => Payload::text(text.clone()),
        };
        Ok(match &self.pad_to {
            Some(bytes) => {
                let bytes = usize::try_from(bytes.resolve(&limit)?).unwrap_or(usize::MAX);
                padded(payload, "x", bytes)
            }
            None => payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::contract::asking;

    #[test]
    fn every_row_becomes_a_plan_that_can_be_read() {
        for Loaded { case, file } in all() {
            let plan = plan(case).unwrap_or_else(|error| panic!("{file}, {}: {error}", case.id));
            asking::admit(&plan, super::super::MEMBERS)
                .unwrap_or_else(|error| panic!("{file}, {}: {error}", case.id));
            let stored = serde_json::to_string(&plan).unwrap().len();
            assert!(stored < 1 << 20, "{} is {stored} bytes", case.id);
        }
    }
}
