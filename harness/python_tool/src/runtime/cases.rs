//! Checks of runtimes: rows of the files `runtime*.toml` below `corpora/python_tool/cases`.
//!
//! A step is a call and the reply to it: from a local runner, a container or a service. The allowed outcomes follow
//! from the reply. A canary comes after all other calls.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use super::{COMMAND, HANDSHAKE_PATH, USUAL_BYTES_MAX, USUAL_MS};
use crate::cases::files;
use crate::model::BYTES_MAX;
use peerproof_engine::contract::asking::{
    CANARY, GRACE_MS, SceneBuilder, Script, played, replying, variable,
};
use peerproof_engine::data::case::{self, Amount, Case, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{
    ActorStep, Fixture, ListenerSettings, PathKind, PathReply, Plan, ReplyFault,
};
use peerproof_engine::data::sizes::padded;

/// Timeout of a call that is answered at once, ms.
const TIMEOUT_MS: u64 = 8_000;

/// Path in the URL of a service.
const PATH: &str = "/tools/call";

/// A URL without a server.
const NOBODY: &str = "http://127.0.0.1:1/tools/call";

/// Name of the fixture for the scenario's project folder.
pub(crate) const PROJECT: &str = "app-of-the-scenario";

/// Name of the server that the environment declares as proxy.
pub(crate) const PROXY: &str = "proxy";

/// Name of the server that a redirect leads to.
pub(crate) fn target(name: &str) -> String {
    format!("target-{name}")
}

/// A program that passes the peak memory of its ancestor processes, in kB, to the next program.
pub(crate) const TELLS_MEMORY: &str = r#"m=0 p=$PPID
while tr '\0' '\n' </proc/"$p"/environ | grep -q '^PEERPROOF_PEER='; do
h=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/"$p"/status)
m=$((m + ${h:-0})) p=$(sed -n 's/^PPid:[^0-9]*//p' /proc/"$p"/status)
done
exec "$0" "$m""#;

/// Size of a text that a pipe does not hold, bytes.
const PAD_BYTES: usize = 300_000;

const SUCCESS: &str = r#"{"ok":true,"protocol_version":1,"result":{"message":"Hello Ada","ok":true}}"#;
const SUCCESS_HTTP: &str = r#"{"ok":true,"result":{"message":"Hello Ada"}}"#;
const FAILURE: &str =
    r#"{"ok":false,"protocol_version":1,"error":{"type":"ValueError","message":"Missing input"}}"#;
const FAILURE_HTTP: &str = r#"{"ok":false,"error":{"type":"ValueError","message":"Missing input"}}"#;

fn limit(name: &str) -> Option<u64> {
    match name {
        "bytes_max" => Some(BYTES_MAX as u64),
        "usual_bytes_max" => Some(USUAL_BYTES_MAX as u64),
        _ => None,
    }
}

/// Kind of runner for a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunnerKind {
    /// A local runner.
    #[default]
    Local,
    /// A service.
    Service,
    /// A container.
    Container,
    /// A runner and a service, each with a call of its own.
    Both,
}

/// One call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    /// Ref of the call.
    call: Option<String>,
    over: RunnerKind,
    /// Members of the call as JSON texts; empty text removes a member. `$PAD` stands for a text that a pipe does
    /// not hold, here and in `with`.
    set: BTreeMap<String, String>,
    /// Makes the reply a failure.
    fails: bool,
    /// Members of the reply as JSON texts; empty text removes a member.
    with: BTreeMap<String, String>,
    /// Text of the reply. `$REPLY` stands for the reply, `$OPEN` for it without its last brace.
    raw: Option<Recipe>,
    /// Length of the reply in bytes; it is padded.
    pad_to: Option<Amount>,
    /// Exit status of the program, by default 0, or HTTP status of the service, by default 200.
    status: i32,
    /// Steps of the program, instead of a read, a reply and an exit. The variables `reply`, `first` and `rest`
    /// stand for the reply and its halves.
    script: Vec<ActorStep>,
    /// Fault of the service's reply.
    fault: Option<ReplyFault>,
    /// Makes the service redirect to another one, which replies.
    redirect: bool,
    /// Entry at the path of the program that cannot be started.
    path: Option<PathKind>,
    /// Sends the call to an address without a server.
    nobody: bool,
    /// Ref of the call whose service is used, with another payload.
    same_as: Option<String>,
    /// Credentials in the URL.
    credentials: Option<String>,
    /// Arguments of the program.
    args: Vec<String>,
    /// Appends the working directory of the program to its arguments.
    in_folder: bool,
    /// Samples the peak memory of the program's ancestors; the ref names the sample.
    memory: bool,
    after: Vec<String>,
    /// Members of the reply to a handshake as JSON texts. The default reply assures all requirements.
    handshake: BTreeMap<String, String>,
    /// Text of that reply.
    handshake_raw: Option<String>,
    /// Status of that reply, by default 200.
    handshake_status: u16,
    /// Fault of that reply.
    handshake_fault: Option<ReplyFault>,
    /// Lets the canary start without waiting for this call.
    apart: bool,
    /// Sets a proxy in the environment.
    proxy: bool,
}

fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        case::load(files(true))
            .unwrap_or_else(|error| unreachable!("corpora/python_tool/cases does not load: {error}"))
    })
}

/// All checks, in the order in which they run.
pub(crate) fn checks() -> impl Iterator<Item = Check> {
    all().iter().map(|loaded| {
        let own = loaded.case.clone();
        let planner = move |_: &_, _: &mut _| plan(&own);
        let id = format!("python_tool/runtime/{}", loaded.case.id);
        loaded.case.check(id, COMMAND, planner).vouched().on_process()
    })
}

fn plan(case: &Case<Row>) -> Result<Plan, Untestable> {
    let mut scene = scene();
    let mut before = Vec::new();
    for (number, row) in case.steps.iter().enumerate() {
        let known = scene.names().len();
        row.add(number, &mut scene)?;
        before.extend(scene.names().into_iter().skip(known).filter(|_| !row.apart));
    }
    canary(&mut scene, before);
    Ok(scene.plan(COMMAND, &case.clauses[0].0))
}

/// A scenario without calls.
pub(crate) fn scene() -> SceneBuilder {
    let mut scene = SceneBuilder::default();
    let root = Json::from(variable(&format!("{PROJECT}.path")));
    scene.tell("project", Json::object([("app_root", root), ("flow", Json::from("demo"))]));
    scene.fixture(Fixture::Folder { name: PROJECT.to_owned(), folders: Vec::new(), watched: false });
    scene
}

/// Adds a canary after these calls, which shows that the runtime still works.
pub(crate) fn canary(scene: &mut SceneBuilder, after: Vec<String>) {
    let row = Row { after, ..Row::default() };
    row.called(scene, CANARY, false, Payload::text(SUCCESS));
}

/// Adds a call to a runner or a service with this reply.
pub(crate) fn called(scene: &mut SceneBuilder, name: &str, is_service: bool, status: i32, reply: String) {
    let row = Row { status, ..Row::default() };
    row.called(scene, name, is_service, Payload::text(reply));
}

/// Text of a default reply.
pub(crate) fn reply(is_service: bool, fails: bool) -> &'static str {
    match (is_service, fails) {
        (false, false) => SUCCESS,
        (true, false) => SUCCESS_HTTP,
        (false, true) => FAILURE,
        (true, true) => FAILURE_HTTP,
    }
}

/// An object with changed members, given as JSON texts; empty text removes a member.
pub(crate) fn edited(base: &str, members: &BTreeMap<String, String>) -> Json {
    let mut value: Json = base.parse().unwrap_or_default();
    edit(&mut value, members);
    value
}

/// Changes members of an object, as [`edited`] does. `$PAD` stands for a text that a pipe does not hold.
fn edit(value: &mut Json, members: &BTreeMap<String, String>) {
    let pad = "x".repeat(PAD_BYTES);
    for (name, text) in members {
        match text.replace("$PAD", &pad).parse::<Json>() {
            Ok(member) => value.set(name, member),
            Err(_) => drop(value.remove(name)),
        }
    }
}

impl Row {
    fn add(&self, number: usize, scene: &mut SceneBuilder) -> Result<(), Untestable> {
        let name = self.call.clone().unwrap_or_else(|| format!("c{number}"));
        if self.proxy {
            let manner = ListenerSettings { whole: true, ..ListenerSettings::default() };
            let body = Payload::text(SUCCESS_HTTP);
            scene.fixture(Fixture::Listener {
                name: PROXY.to_owned(),
                status: 200,
                location: None,
                body,
                manner,
            });
            for variable in ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"] {
                scene.set_env(variable, &format!("http://{{{{{PROXY}.address}}}}"));
            }
        }
        if let Some(what) = &self.path {
            let path = variable(&format!("{}.path", played(&name)));
            let told = self.told(&name, "local", [("command", Json::array([path]))]);
            scene.call(told, [Fixture::Path { name: played(&name), what: what.clone() }], 0);
        } else if let Some(other) = &self.same_as {
            let url = format!("http://{}{PATH}", variable(&format!("{}.address", played(other))));
            scene.call(self.told(&name, "service", [("url", Json::from(url))]), [], 0);
        } else if self.nobody {
            scene.call(self.told(&name, "service", [("url", Json::from(NOBODY))]), [], 0);
        } else {
            if self.over != RunnerKind::Service {
                self.called(scene, &name, false, self.reply(false)?);
            }
            match self.over {
                RunnerKind::Service => self.called(scene, &name, true, self.reply(true)?),
                RunnerKind::Both => self.called(scene, &format!("{name}h"), true, self.reply(true)?),
                RunnerKind::Local | RunnerKind::Container => {}
            }
        }
        Ok(())
    }

    fn called(&self, scene: &mut SceneBuilder, name: &str, is_service: bool, text: Payload) {
        let own = played(name);
        if is_service {
            let credentials = self.credentials.as_deref().unwrap_or_default();
            let url = format!("http://{credentials}{}{PATH}", variable(&format!("{own}.address")));
            let told = self.told(name, "service", [("url", Json::from(url))]);
            let faults = [self.fault, self.handshake_fault].into_iter().flatten();
            let lasts_ms = faults.map(|fault| fault.lasts_ms().max(time_ms(&told) + GRACE_MS)).max();
            let lasts_ms = lasts_ms.unwrap_or(0);
            let status = if self.status == 0 { 200 } else { u16::try_from(self.status).unwrap_or(500) };
            let manner = ListenerSettings {
                whole: true,
                content_type: Some("application/json".to_owned()),
                fault: self.fault,
                aside: Some(Box::new(self.aside(&told))),
                ..ListenerSettings::default()
            };
            let server = |name: String, status: u16, location: Option<String>, body: Payload| {
                Fixture::Listener { name, status, location, body, manner: manner.clone() }
            };
            let location = self.redirect.then(|| format!("http://{{{{{}.address}}}}{PATH}", target(name)));
            let other = self.redirect.then(|| server(target(name), 200, None, text.clone()));
            let first = server(own, status, location, text);
            return scene.call(told, [Some(first), other].into_iter().flatten(), lasts_ms);
        }
        let path = Json::from(variable(&format!("{own}.path")));
        let args = self.args.iter().map(|arg| Json::from(arg.as_str()));
        let told = match self.over {
            RunnerKind::Container => {
                let image = Json::from("registry.example/tools:1");
                let members = [("container_runtime", path), ("image", image), ("command", Json::array(args))];
                self.told(name, "container", members)
            }
            _ if self.in_folder || self.memory => {
                let tells = if self.memory { TELLS_MEMORY } else { "exec \"$0\" \"$(pwd)\"" };
                let shell = ["/bin/sh", "-c", tells].map(Json::from);
                self.told(name, "local", [("command", Json::array(shell.into_iter().chain([path])))])
            }
            _ => self.told(name, "local", [("command", Json::array([path].into_iter().chain(args)))]),
        };
        let usual = || {
            vec![
                ActorStep::ReadRequest,
                ActorStep::Stdout(Payload::default().var("reply")),
                ActorStep::Exit(self.status),
            ]
        };
        let script = if self.script.is_empty() { usual() } else { self.script.clone() };
        let script = replying(script, &text);
        let lasts_ms = Script::of(&script).lasts_ms(time_ms(&told));
        scene.call(told, [Fixture::Actor { name: own, script, later: Vec::new() }], lasts_ms);
    }

    /// The call with the members of its runner.
    fn told<const N: usize>(&self, name: &str, runner: &str, members: [(&str, Json); N]) -> Json {
        let payload = Json::object([("name", Json::from("Ada"))]);
        let mut told = Json::object([
            ("ref", Json::from(name)),
            ("runner", Json::from(runner)),
            ("tool", Json::from("greeter")),
            ("entry", Json::from("tools.sample_tool:greet")),
            ("payload", payload),
        ]);
        members.into_iter().for_each(|(name, value)| told.set(name, value));
        if !self.set.contains_key("timeout_seconds") {
            told.set("timeout_ms", TIMEOUT_MS);
        }
        if !self.after.is_empty() {
            told.set("after", Json::array(self.after.iter().map(String::as_str)));
        }
        edit(&mut told, &self.set);
        told
    }

    /// Text of the reply.
    fn reply(&self, is_service: bool) -> Result<Payload, Untestable> {
        let text = edited(reply(is_service, self.fails), &self.with).to_text();
        let open = text.strip_suffix('}').unwrap_or(&text);
        let filled = |recipe: &str| Ok(recipe.replace("$REPLY", &text).replace("$OPEN", open));
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

    /// Reply to a handshake.
    fn aside(&self, told: &Json) -> PathReply {
        let supported = told.get("guarantees").map_or("{}".to_owned(), Json::to_text);
        let usual = format!(
            r#"{{"ok":true,"enforcement":"enforced","supported_guarantees":{supported},"service_version":"1.0.0"}}"#
        );
        let text = self.handshake_raw.clone().unwrap_or_else(|| edited(&usual, &self.handshake).to_text());
        let status = if self.handshake_status == 0 { 200 } else { self.handshake_status };
        let (path, fault) = (HANDSHAKE_PATH.to_owned(), self.handshake_fault);
        PathReply { path, status, body: Payload::text(text), fault }
    }
}

/// Timeout of a call, ms.
fn time_ms(told: &Json) -> u64 {
    let ms = told.get("timeout_ms").and_then(Json::as_u64);
    let seconds = told.get("timeout_seconds").and_then(Json::as_u64).map(|seconds| seconds * 1_000);
    ms.or(seconds).unwrap_or(USUAL_MS).min(USUAL_MS)
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
