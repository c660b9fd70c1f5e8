//! Checks of callers: rows of the files `caller*.toml` below `corpora/envelope/cases`.
//!
//! A step is a call with what is played for it: a program that reads the request, writes a reply and ends, or a server. What may
//! come of it follows from that. Beside a call that cannot end as `envelope` stands its control, over the same channel: the
//! same with right values, which can. A canary comes after all others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use serde::Deserialize;

use super::{COMMAND, REPLY_BYTES_MAX, USUAL_MS};
use crate::cases::files;
use crate::model::{BYTES_MAX, Stand, of_envelope};
use crate::{shape, talk};
use peerproof_engine::asking::{CANARY, GRACE_MS, Scene, Script, played, replying, variable};
use peerproof_engine::case::{self, Amount, Case, Loaded, Recipe};
use peerproof_engine::check::{Check, Untestable};
use peerproof_engine::json::Json;
use peerproof_engine::payload::{Payload, Vars};
use peerproof_engine::plan::{ActorStep, Fixture, Manner, PathKind, Plan};
use peerproof_engine::sizes::padded;

/// Time for a call that is answered at once, ms.
const TIMEOUT_MS: u64 = 8_000;

/// Where an engine's URL leads.
const PATH: &str = "/api/v1/process";

/// A URL at which nobody listens.
const NOBODY: &str = "http://127.0.0.1:1/api/v1/process";

/// Time between blanks that trickle, ms: less than that of the call.
const TRICKLE_MS: u64 = 700;

/// Longer replies have no control.
const REPLY_BYTES_MAX_OF_CONTROL: usize = 1 << 20;

/// More than a pipe holds.
const PAD_BYTES: usize = 300_000;

/// Limits by name, for recipes.
fn limit(name: &str) -> Option<u64> {
    match name {
        "bytes_max" => Some(BYTES_MAX as u64),
        "reply_bytes_max" => Some(REPLY_BYTES_MAX as u64),
        _ => None,
    }
}

/// What plays for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Over {
    /// A program.
    #[default]
    Stdio,
    /// A server.
    Http,
    /// One call for each.
    Both,
}

/// One call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    /// Its ref.
    call: Option<String>,
    over: Over,
    /// Members of the envelope as JSON texts; an empty one takes the member away. `$PAD` stands for more than a pipe holds.
    sent: BTreeMap<String, String>,
    /// Name of the envelope that the sent one is made from; by default `plain`.
    sent_base: Option<String>,
    /// The envelope itself, in the place of a plain one.
    envelope: Option<String>,
    /// Members of the reply, which is the plain envelope otherwise.
    with: BTreeMap<String, String>,
    /// Members of the reply that are strings, as they are: a line feed is one.
    texts: BTreeMap<String, String>,
    /// What the reply begins with; by default `plain`.
    base: Option<String>,
    /// The text of the reply; `$PLAIN` stands for an envelope, `$OPEN` for it without its last brace.
    raw: Option<Recipe>,
    /// The reply is made so many bytes long.
    pad_to: Option<Amount>,
    /// Exit status of the program, 0 by default; HTTP status of the server, 200 by default.
    status: i32,
    /// What the program does, in the place of reading, replying and ending; the variables `reply`, `first` and `rest` stand for
    /// the reply and its halves.
    script: Vec<ActorStep>,
    /// The program writes a blank every [`TRICKLE_MS`], so often, and then a right reply: a caller that waits for that is told by
    /// its outcome, and not by its time alone.
    trickles: usize,
    /// How the server replies.
    manner: Option<Manner>,
    /// The server leads to another one, which replies.
    redirect: bool,
    /// Nothing that could be started is there.
    path: Option<PathKind>,
    /// Nobody listens.
    nobody: bool,
    /// Arguments of the program.
    args: Vec<String>,
    /// Time of the call, ms; 0: it says nothing.
    timeout_ms: Option<u64>,
    after: Vec<String>,
    /// Nothing is asked after it.
    last: bool,
}

impl Over {
    /// Whether it goes over HTTP, for each call.
    fn channels(self) -> &'static [bool] {
        match self {
            Self::Stdio => &[false],
            Self::Http => &[true],
            Self::Both => &[false, true],
        }
    }
}

/// A text with a right value in the place of each that no caller accepts, the ids of the plain envelope among them, or that
/// envelope in the place of what is none; `None` where nothing is wrong.
fn mended(text: &str) -> Option<String> {
    let plain: Json = talk::PLAIN.parse().unwrap_or_default();
    let Some(own) = text.trim().parse::<Json>().ok().filter(|it| it.get("outputs").is_some()) else {
        return Some(talk::PLAIN.to_owned());
    };
    let mut envelope = own.clone();
    for id in ["envelope_id", "request_id", "session_id"] {
        envelope.set(id, plain.get(id).cloned().unwrap_or_default());
    }
    for wrong in of_envelope(&envelope).into_iter().filter(|it| it.stand == Stand::Refuse) {
        let name = wrong.at.split('/').nth(1).unwrap_or_default();
        let sample = || shape::envelope().member(name)?.samples().first()?.parse::<Json>().ok();
        envelope.set(name, plain.get(name).cloned().or_else(sample).unwrap_or_default());
    }
    (envelope != own).then(|| envelope.to_text())
}

/// What is played for a call.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// The text of the reply.
    pub text: Payload,
    /// Exit or HTTP status; 0 is success.
    pub status: i32,
    /// What a program does instead.
    pub script: Vec<ActorStep>,
    /// How a server replies instead.
    pub manner: Option<Manner>,
    /// Another server that it leads to.
    pub redirect: bool,
    /// Arguments of a program.
    pub args: Vec<String>,
    /// Time of the call, ms, where it is not the usual one; 0: the call says nothing.
    pub timeout_ms: Option<u64>,
    /// Calls before it.
    pub after: Vec<String>,
}

/// All rows; the data is embedded and a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        case::load(files(true))
            .unwrap_or_else(|error| unreachable!("corpora/envelope/cases does not load: {error}"))
    })
}

/// All checks, in the order in which they run.
pub fn checks() -> impl Iterator<Item = Check> {
    all().iter().map(|loaded| {
        let own = loaded.case.clone();
        let planner = move |_: &_, _: &mut _| plan(&own);
        let id = format!("envelope/caller/{}", loaded.case.id);
        loaded.case.check(id, COMMAND, planner).vouched().on_process()
    })
}

fn plan(case: &Case<Row>) -> Result<Plan, Untestable> {
    let mut scene = Scene::default();
    // The call at the end is one of them.
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

/// Adds a call after all others that shows that the caller still works.
pub fn canary(scene: &mut Scene) {
    let reply = Reply { text: Payload::text(talk::PLAIN), after: scene.names(), ..Reply::default() };
    called(scene, CANARY, talk::PLAIN, false, reply);
}

/// Adds a call of this envelope, a JSON text, to a program or a server.
pub fn called(scene: &mut Scene, name: &str, envelope: &str, is_http: bool, reply: Reply) {
    let own = played(name);
    let mut told = told(name, envelope, &reply);
    if is_http {
        told.set("transport", "http");
        told.set("url", format!("http://{}{PATH}", variable(&format!("{own}.address"))));
        let timeout_ms = reply.timeout_ms.filter(|ms| *ms > 0).unwrap_or(USUAL_MS);
        let fault = reply.manner.as_ref().and_then(|it| it.fault);
        let lasts_ms = fault.map_or(0, |fault| fault.lasts_ms().max(timeout_ms + GRACE_MS));
        let status = if reply.status == 0 { 200 } else { u16::try_from(reply.status).unwrap_or(500) };
        let manner = |given: Option<Manner>| {
            let usual = Manner { whole: true, ..Manner::default() };
            let given = given.unwrap_or(usual);
            let content_type = given.content_type.or_else(|| Some("application/json".to_owned()));
            Manner { content_type, ..given }
        };
        let server =
            |name: String, status: u16, location: Option<String>, body: Payload, how: Option<Manner>| {
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

/// What a call says whatever plays for it.
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
    /// The envelope of the scenario.
    fn sent(&self) -> String {
        let envelope = self.envelope.clone();
        let base = talk::base(self.sent_base.as_deref().unwrap_or("plain")).unwrap_or_default();
        let envelope = envelope.unwrap_or_else(|| talk::changed(&base, &self.sent, &BTreeMap::new()));
        envelope.replace("$PAD", &"x".repeat(PAD_BYTES))
    }

    /// Whether this call cannot end as `envelope`; with the envelope and the reply of one that can, and differs in that alone.
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

    fn add(&self, number: usize, scene: &mut Scene) -> Result<(), Untestable> {
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
                Over::Stdio => called(scene, &name, &envelope, false, reply),
                Over::Http => called(scene, &name, &envelope, true, reply),
                Over::Both => {
                    called(scene, &name, &envelope, false, reply.clone());
                    called(scene, &format!("{name}h"), &envelope, true, reply);
                }
            }
        }
        Ok(())
    }

    /// The text of the reply.
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
    use peerproof_engine::asking;

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
