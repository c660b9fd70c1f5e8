//! Builder of conversations with the Genesis tools.

use peerproof_engine::contract::face::Aim;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::CANARY_FAILED;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Chunking, Fixture, Plan, Session, Step};
use peerproof_engine::data::rng::Rng;

use super::kit::{Kit, LETTERS, Tool};
use super::model::{GENERAL, OUTER, ROOT};
use crate::SERVE;

/// Time limit for a compiler, ms.
pub(crate) const COMPILE_MS: u64 = 30_000;

/// Time for a plugin to start and do its small task, ms.
const PLUGIN_MS: u64 = 10_000;

/// Delimiter around the name of a variable within a written text.
const MARK: &str = "%%";

/// A conversation under construction.
pub(super) struct Talk {
    /// Tools and sample of the peer.
    pub kit: Kit,
    plan: Plan,
    canaries: usize,
}

impl Talk {
    /// A conversation with one process and its own root folder.
    pub(super) fn new(facts: &Facts) -> Self {
        let folder =
            |name: &str| Fixture::Folder { name: name.to_owned(), folders: Vec::new(), watched: false };
        let session = Session {
            command: SERVE.to_owned(),
            placeholders: [("root".to_owned(), format!("{{{{{ROOT}.path}}}}"))].into(),
            ..Session::default()
        };
        let plan = Plan {
            fixtures: vec![folder(OUTER), folder(ROOT)],
            sessions: vec![session],
            by_model: true,
            ..Plan::default()
        };
        Self { kit: Kit::of(facts), plan, canaries: 0 }
    }

    /// Adds variables to the environment of the process. Values may name plan variables.
    pub(super) fn env(&mut self, env: impl IntoIterator<Item = (String, String)>) -> &mut Self {
        self.plan.sessions[0].env.extend(env);
        self
    }

    /// Adds a fixture.
    pub(super) fn fixture(&mut self, fixture: Fixture) -> &mut Self {
        self.plan.fixtures.push(fixture);
        self
    }

    fn push(&mut self, clause: &str, payload: Payload, await_frames: u32, allow_ms: u64) -> &mut Self {
        let act = Act::Send { payload, chunking: Chunking::Whole, await_frames };
        let expect = Aim::about(clause);
        self.plan.steps.push(Step { expect, allow_ms, ..Step::new(act) });
        self
    }

    /// Writes a source. `path` and `content` may hold variables as `%%NAME%%`.
    pub(super) fn write(&mut self, clause: &str, path: &str, content: &str) -> &mut Self {
        self.write_values(clause, Some(path.into()), Some(content.into()))
    }

    /// Calls the write tool with any values; `None` omits a member.
    pub(crate) fn write_values(
        &mut self,
        clause: &str,
        path: Option<Json>,
        content: Option<Json>,
    ) -> &mut Self {
        let line = line(&self.kit.write, &[("path", path), ("content", content)]);
        self.push(clause, line, 1, 0)
    }

    /// Compiles a source.
    pub(crate) fn compile(&mut self, clause: &str, path: &str, name: &str) -> &mut Self {
        let line = self.compile_line(path, name);
        self.push(clause, line, 1, COMPILE_MS)
    }

    fn compile_line(&self, path: &str, name: &str) -> Payload {
        line(&self.kit.compile, &[("path", Some(path.into())), ("name", Some(name.into()))])
    }

    /// Loads a compiled plugin.
    pub(super) fn load(&mut self, clause: &str, name: &str) -> &mut Self {
        let line = line(&self.kit.load, &[("name", Some(name.into()))]);
        self.push(clause, line, 1, PLUGIN_MS)
    }

    /// Calls a tool.
    pub(super) fn call(&mut self, clause: &str, aid: &str, allow_ms: u64) -> &mut Self {
        self.push(clause, request(aid, "{}"), 1, PLUGIN_MS + allow_ms)
    }

    /// Calls the tool of the sample.
    pub(crate) fn call_sample(&mut self, clause: &str) -> &mut Self {
        let aid = self.kit.aid.clone();
        self.call(clause, &aid, 0)
    }

    /// Writes a small file.
    pub(super) fn canary(&mut self) -> &mut Self {
        let line = self.canary_line(0);
        self.push(GENERAL, line, 1, 0);
        if let Some(step) = self.plan.steps.last_mut() {
            step.canary = true;
            let aim = Aim { clause: GENERAL.into(), reason: Some(CANARY_FAILED.to_owned()) };
            step.expect = serde_json::to_value(aim).unwrap_or_default();
        }
        self
    }

    /// Request of a canary, with this many bytes of padding.
    fn canary_line(&mut self, padding: u64) -> Payload {
        self.canaries += 1;
        let path = self.kit.file(&format!("canary_{}", self.canaries));
        let content = format!("canary {}", self.canaries);
        let line = line(&self.kit.write, &[("path", Some(path.into())), ("content", Some(content.into()))]);
        if padding == 0 {
            return line;
        }
        let rest = line.expand(&peerproof_engine::data::payload::Vars::new()).unwrap_or_default();
        let rest = String::from_utf8_lossy(&rest).replacen('{', ",", 1);
        Payload::text("{\"pad\":\"").repeat("x", padding).then(Payload::text(format!("\"{rest}")))
    }

    /// Compiles a source while further requests, more than a pipe holds, wait in standard input; then closes it.
    pub(crate) fn compile_before(
        &mut self,
        clause: &str,
        path: &str,
        name: &str,
        lines: usize,
        bytes: u64,
    ) -> &mut Self {
        let mut payload = self.compile_line(path, name);
        for _ in 0..lines {
            payload = payload.then(self.canary_line(bytes));
        }
        self.push(clause, payload.merged(), 0, 0);
        self.plan.steps.push(Step { allow_ms: COMPILE_MS, ..Step::new(Act::Finish) });
        self
    }

    /// Adds any other step.
    pub(super) fn act(&mut self, act: Act) -> &mut Self {
        self.plan.steps.push(Step::new(act));
        self
    }

    /// Ends the process, looks at the folder around the root, and returns the plan.
    pub(super) fn plan(&mut self) -> Plan {
        if !self.plan.steps.iter().any(|step| step.act == Act::Finish) {
            self.act(Act::Finish);
        }
        self.look(OUTER, OUTER);
        std::mem::take(&mut self.plan)
    }

    /// Looks at a path.
    pub(super) fn look(&mut self, label: &str, path: &str) -> &mut Self {
        self.act(Act::Look { label: label.to_owned(), path: Payload::text(path), after_ms: 0 })
    }
}

/// Random letters that occur nowhere else.
pub(crate) fn letters(rng: &mut Rng) -> String {
    (0..LETTERS).map(|_| char::from(b'a' + u8::try_from(rng.below(26)).unwrap_or(0))).collect()
}

fn line(tool: &Tool, values: &[(&str, Option<Json>)]) -> Payload {
    request(&tool.aid, &tool.input(values))
}

/// A request line; variables in it are written `%%NAME%%`.
fn request(aid: &str, input: &str) -> Payload {
    let text = Json::object([("aid", Json::from(aid)), ("input_json", input.into())]).to_text() + "\n";
    let parts = text.split(MARK).enumerate();
    let payload = parts.fold(Payload::default(), |payload, (at, part)| match at % 2 {
        0 => payload.then(Payload::text(part)),
        _ => payload.var(part),
    });
    payload.merged()
}
