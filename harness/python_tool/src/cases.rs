//! Checks of the python_tool boundary: rows of the files below `corpora/python_tool/cases`.
//!
//! A step sends a request, a call of a role with changed members, to a process of its own, or over HTTP to one
//! service. The allowed replies follow from its bytes, and over HTTP also from the request. A step with `guarantee`
//! makes three calls: one without the guarantee, which shows that its effect can be observed; a plain call within
//! it, which shows that not everything is blocked; and the call within it. Over HTTP a handshake asks for the
//! guarantee. A row without `modes` is about runners, and about services as well if its first clause is.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use serde::Deserialize;

use peerproof_engine::data::carriage::{Carriage, HTTP};
use peerproof_engine::data::case::{self, Amount, Case, Loaded, Recipe};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::{Payload, Segment, Vars};
use peerproof_engine::data::plan::{Act, Chunking, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::sizes::padded;

use super::config::HANDSHAKE;
use super::face::{COMMAND, NOISE, NOTHING_THROUGH, http};
use super::model::{BYTES_MAX, NESTING_MAX};
use super::probe::{self, Probe};
use super::project::PROJECT;
use super::roles::{any_of_effects, entry_of, tool_of};
use super::talk::{Sending, Talk};

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/corpora/cases");

/// Pause between the halves of a request, ms. Longer than the patience of a reader that takes silence for the end.
const PAUSE_MS: u64 = 1_500;

/// Size of a text that a pipe does not hold, bytes.
const PAD_BYTES: usize = 100_000;

/// Limits by name, for recipes.
fn limit(facts: &Facts, name: &str) -> Option<u64> {
    match name {
        "bytes_max" => Some(BYTES_MAX as u64),
        "usual_bytes_max" => Some(1 << 20),
        "nesting_max" => Some(facts.limits.get(name).copied().unwrap_or(NESTING_MAX)),
        _ => None,
    }
}

/// One step.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    /// Called role; by default `any`.
    call: Option<String>,
    /// Plays the role while a module is imported.
    import: bool,
    /// Payload as JSON text; by default the usual one of the role. `$PATH` is a path in the project that is looked
    /// at, `$NOISE` a text that only a tool prints, `$PAD` a text that a pipe does not hold.
    payload: Option<String>,
    /// Members as JSON texts; empty text removes a member.
    with: BTreeMap<String, String>,
    /// Members that are strings, taken literally.
    texts: BTreeMap<String, String>,
    /// The text itself. `$REQUEST` stands for the request, `$OPEN` for it without its last brace, `$ENTRY` for the
    /// entry of the role.
    raw: Option<Recipe>,
    /// Length of the request, bytes; a member of padding in front fills it.
    pad_to: Option<Amount>,
    /// Unit of the padding; by default `x`.
    pad_with: Option<String>,
    /// Length of the text in the payload's member `data`, bytes.
    data: Option<Amount>,
    chunking: Chunking,
    /// Sends its second half [`PAUSE_MS`] after the first.
    paused: bool,
    /// Sends it in each other spelling of JSON as well.
    presented: bool,
    /// Environment of the runner.
    env: BTreeMap<String, String>,
    /// Time that the tool takes, ms.
    allow_ms: u64,
    /// Actions on the process after its request.
    acts: Vec<Act>,
    /// Settings of the HTTP request that differ from the usual; `""` removes the content type.
    #[serde(deserialize_with = "case::carriage")]
    http: Option<Carriage>,
    /// Number of replies to wait for over HTTP; by default the canary after it is awaited.
    await_frames: Option<u32>,
    /// Makes it a handshake for the tool of the role, with these required guarantees (JSON text).
    handshake: Option<String>,
    /// Delay of the look at created files, ms.
    look_after_ms: u64,
    /// Guarantee within which the call is repeated.
    guarantee: Option<String>,
    /// Number of further calls within it, of the same tool and after the same handshake.
    more: u32,
    /// Route of a probe.
    route: Option<String>,
    /// Host of a probe; by default 127.0.0.1.
    host: Option<String>,
    /// Puts created files into the folder for temporary files instead of the project.
    temporary: bool,
    /// Makes the tool catch the refusal.
    catch: bool,
    /// Context of the call within the guarantee, as JSON text with `$GUARANTEE`; by default the plain one.
    context: Option<String>,
    /// Clause of the step; by default the first clause of the case.
    clause: Option<ClauseId>,
}

/// Case files about runtimes, or about runners and services.
pub(crate) fn files(of_runtimes: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    case::files(&FILES).into_iter().filter(move |(name, _)| name.starts_with("runtime") == of_runtimes)
}

/// All rows. The data is embedded; a test shows that it loads.
fn all() -> &'static [Loaded<Row>] {
    static CASES: OnceLock<Vec<Loaded<Row>>> = OnceLock::new();
    CASES.get_or_init(|| {
        case::load(files(false))
            .unwrap_or_else(|error| unreachable!("corpora/python_tool/cases does not load: {error}"))
    })
}

/// Mode of rows about a command.
fn mode(command: &str) -> &'static str {
    if command == HTTP { "service" } else { "runner" }
}

/// All checks, in the order in which they run.
pub(crate) fn checks() -> impl Iterator<Item = Check> {
    let of_command = |command| {
        let own = all().iter().filter(move |loaded| runs_by(&loaded.case, command));
        own.map(move |loaded| of_case(&loaded.case, command))
    };
    [COMMAND, HTTP].into_iter().flat_map(of_command)
}

/// True if a clause applies to the peer of a command.
fn is_about(clause: &ClauseId, command: &str) -> bool {
    let row = super::boundary().clauses().iter().find(|row| row.id == *clause);
    row.is_some_and(|row| row.modes.iter().any(|own| own == mode(command)))
}

fn runs_by(case: &Case<Row>, command: &str) -> bool {
    match case.modes.is_empty() {
        true => command == COMMAND || is_about(&case.clauses[0], command),
        false => case.modes.iter().any(|own| own == mode(command)),
    }
}

fn of_case(case: &Case<Row>, command: &'static str) -> Check {
    let own = case.clone();
    let planner = move |facts: &Facts, rng: &mut Rng| plan(&own, command, facts, rng);
    let mut check = case.check(format!("python_tool/{}/{}", mode(command), case.id), command, planner);
    check.clauses.retain(|clause| is_about(clause, command));
    check.roles = roles(case);
    if command == HTTP {
        check = check.on_process();
        if case.steps.iter().any(Row::needs_handshake) {
            check = check.also_feature(HANDSHAKE);
        }
    }
    // The canary of another conversation vouches for these checks, because each process is separate.
    if is_probe(case) { check.vouched() } else { check }
}

/// Roles that the canaries and steps of a case call.
fn roles(case: &Case<Row>) -> Vec<String> {
    let canaries: &[&str] = if is_probe(case) { &["any"] } else { &["any", "echo"] };
    let mut roles: Vec<String> = canaries.iter().map(|role| (*role).to_owned()).collect();
    for row in &case.steps {
        let probed = row.guarantee.as_ref().map(|name| probe::role(name));
        let imported = row.import.then_some("imported");
        roles.extend([probed.unwrap_or(row.role())].into_iter().chain(imported).map(str::to_owned));
    }
    roles.sort_unstable();
    roles.dedup();
    roles
}

/// True if all steps of a case are probes of guarantees.
fn is_probe(case: &Case<Row>) -> bool {
    case.steps.iter().all(|row| row.guarantee.is_some())
}

fn plan(case: &Case<Row>, command: &'static str, facts: &Facts, rng: &mut Rng) -> Result<Plan, Untestable> {
    if case.clauses[0].0 == "PT-HS-08" && facts.claims(HANDSHAKE) {
        return Err(Untestable::new("claimed", "this check is about services without handshakes"));
    }
    let is_probe = is_probe(case);
    let mut talk = if is_probe { Talk::without_canary(facts, command) } else { Talk::new(facts, command) };
    if case.clauses[0].0 == http::SURVIVES {
        talk.lives_on(http::SURVIVES);
    }
    for row in &case.steps {
        let clause = row.clause.as_ref().map_or(&case.clauses[0].0, |clause| &clause.0);
        match &row.guarantee {
            Some(guarantee) => row.probe(clause, guarantee, &mut talk, rng),
            None => row.perform(clause, facts, &mut talk, rng)?,
        }
    }
    if !is_probe {
        talk.canary_where_due();
    }
    Ok(talk.plan())
}

impl Row {
    fn role(&self) -> &str {
        self.call.as_deref().unwrap_or("any")
    }

    fn sending(&self, clause: &str) -> Sending {
        Sending {
            clause: Some(clause.to_owned()),
            chunking: self.chunking,
            env: self.env.clone(),
            allow_ms: self.allow_ms,
            acts: self.acts.clone(),
            http: self.http.clone(),
            await_frames: self.await_frames.or(self.guarantee.as_ref().map(|_| 1)),
            look_after_ms: self.look_after_ms,
            reason: None,
        }
    }

    /// True if the step needs a handshake over HTTP, because it asks for guarantees.
    fn needs_handshake(&self) -> bool {
        self.guarantee.is_some() || self.with.contains_key(CONTEXT)
    }

    fn with(&self) -> Vec<(&str, &str)> {
        self.with.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
    }

    fn perform(
        &self,
        clause: &str,
        facts: &Facts,
        talk: &mut Talk<'_>,
        rng: &mut Rng,
    ) -> Result<(), Untestable> {
        let texts: BTreeMap<&str, String> = self
            .texts
            .iter()
            .map(|(name, text)| (name.as_str(), Json::from(text.as_str()).to_text()))
            .collect();
        let mut with = self.with();
        with.extend(texts.iter().map(|(name, text)| (*name, text.as_str())));
        if let Some(required) = &self.handshake {
            talk.handshake(tool_of(facts, self.role()), required, &with, Some(clause));
            return Ok(());
        }
        if talk.is_posted() && self.needs_handshake() {
            let context: Json = self.with[CONTEXT].parse().map_err(|error| format!("{CONTEXT}: {error}"))?;
            let required = context.get("guarantees").map(Json::to_text).unwrap_or_default();
            talk.handshake(tool_of(facts, self.role()), &required, &[], None);
            with.retain(|(name, _)| *name != CONTEXT && *name != "sandbox");
        }
        let limits = |name: &str| limit(facts, name);
        let payload = self.payload.as_deref();
        let payload = payload.map(|text| {
            text.replace("$NOISE", NOISE[usize::from(self.import)]).replace("$PAD", &"x".repeat(PAD_BYTES))
        });
        let (mut payload, made) = talk.payload(self.role(), payload.as_deref());
        if let Some(bytes) = &self.data {
            payload = Payload::text("{\"data\":\"").repeat("x", bytes.resolve(&limits)?);
            payload = payload.then(Payload::text("\"}"));
        }
        let mut role = self.role();
        if self.import {
            talk.import(role, payload);
            (role, payload) = ("imported", Payload::text("{}"));
        }
        let is_plain = self.raw.is_none() && self.pad_to.is_none() && !self.presented;
        if talk.is_posted() {
            // The member has another name over HTTP.
            with.iter_mut().filter(|(name, _)| *name == "tool").for_each(|(name, _)| *name = "tool_name");
        }
        let mut request = talk.request(role, payload, &with);
        if talk.is_posted() && is_plain && self.http.is_none() {
            request = in_project(request, &with);
        }
        let request = self.written(request, facts)?;
        let expanded = request.expand(&Vars::new()).ok();
        if self.paused {
            let text = String::from_utf8_lossy(&expanded.unwrap_or_default()).into_owned();
            talk.paused(&text, PAUSE_MS, self.sending(clause));
            return Ok(());
        }
        talk.send(request, made, self.sending(clause));
        if self.presented {
            let text = expanded.and_then(|text| String::from_utf8(text).ok()).unwrap_or_default();
            let value: Json = text.parse().map_err(|error| format!("the request is not JSON: {error}"))?;
            for how in Presentation::ALL {
                // The contract leaves a version spelled 1.0 open.
                if !matches!(how, Presentation::ExtraMembers | Presentation::NumberSpelling) {
                    let text = present(&value, how, &mut || rng.next_u64());
                    talk.send(Payload::text(text), None, self.sending(clause));
                }
            }
        }
        Ok(())
    }

    fn written(&self, request: Payload, facts: &Facts) -> Result<Payload, Untestable> {
        let limits = |name: &str| limit(facts, name);
        let request = match &self.raw {
            Some(recipe) => {
                // A path in it stays a variable.
                let whole =
                    String::from_utf8(request.expand(&Vars::new()).unwrap_or_default()).unwrap_or_default();
                let filled = |text: &str| {
                    Ok(text
                        .replace("$ENTRY", &entry_of(facts, self.role()))
                        .replace("$REQUEST", &whole)
                        .replace("$OPEN", whole.strip_suffix('}').unwrap_or(&whole)))
                };
                recipe.payload(&limits, &filled)?
            }
            None => request,
        };
        Ok(match &self.pad_to {
            Some(bytes) => {
                let bytes = usize::try_from(bytes.resolve(&limits)?).unwrap_or(usize::MAX);
                padded(request, self.pad_with.as_deref().unwrap_or("x"), bytes)
            }
            None => request,
        })
    }

    /// Adds the call without the guarantee, and the calls within it.
    fn probe(&self, clause: &str, guarantee: &str, talk: &mut Talk<'_>, rng: &mut Rng) {
        let role = probe::role(guarantee);
        let route = self.route.as_deref().unwrap_or("open");
        let context = self.context.as_deref().unwrap_or("{\"guarantees\":{\"$GUARANTEE\":true}}");
        let context = context.replace("$GUARANTEE", guarantee);
        let host = self.host.as_deref().unwrap_or("127.0.0.1");
        // Tool of the handshake.
        let mut shaken = None;
        for (guarded, is_first) in
            [(false, true), (true, true)].into_iter().chain((0..self.more).map(|_| (true, false)))
        {
            let token = format!("t{:016x}", rng.next_u64());
            let needs_control = guarded && is_first && clause != "PT-GUAR-05";
            if needs_control && !talk.is_posted() {
                let context = format!("{{\"guarantees\":{{\"{guarantee}\":true}}}}");
                control(talk, &[("sandbox", "true"), (CONTEXT, context.as_str())]);
            }
            let mut probe =
                Probe { role, route, token: &token, number: 0, guarded, temporary: self.temporary };
            let mut payload = talk.probe(&mut probe, host, self.catch && guarded);
            let env = probe.env();
            if is_first {
                talk.anew();
            }
            let mut called = role;
            if self.import {
                talk.import(role, payload);
                (called, payload) = ("imported", Payload::text("{}"));
            }
            // A running service stays bound by its promise for a tool name.
            let is_mapped = talk.facts().roles.get(called).is_some_and(|role| role.get("tool").is_some());
            let tool = match shaken.take() {
                Some(tool) => tool,
                None if is_mapped => tool_of(talk.facts(), called).to_owned(),
                None => format!("{called}-{token}"),
            };
            if guarded && talk.is_posted() {
                if is_first {
                    let required = format!("{{\"{guarantee}\":true}}");
                    talk.open_with(env.clone());
                    talk.handshake(&tool, &required, &[], None);
                }
                shaken = Some(tool.clone());
            }
            let named = format!("{tool:?}");
            if needs_control && talk.is_posted() {
                control(talk, &[("tool_name", named.as_str())]);
            }
            let mut with = match (guarded, talk.is_posted()) {
                (true, false) => vec![("sandbox", "true"), ("capability_context", context.as_str())],
                (true, true) => vec![("tool_name", named.as_str())],
                _ => Vec::new(),
            };
            let own = self.with();
            if guarded {
                with.retain(|(name, _)| own.iter().all(|(other, _)| other != name));
                with.extend(own);
            }
            // The twin proves nothing but that its effect is visible.
            let is_about = guarded || clause == "PT-GUAR-05";
            let env = if guarded && talk.is_posted() { BTreeMap::new() } else { env };
            let how = Sending { clause: is_about.then(|| clause.to_owned()), env, ..self.sending(clause) };
            talk.send(talk.request(called, payload, &with), probe.made(), how);
        }
    }
}

/// Adds a call within a guarantee that does nothing forbidden. If it is blocked too, blocked effects prove nothing.
fn control(talk: &mut Talk<'_>, with: &[(&str, &str)]) {
    let clause = Some("PT-GUAR-10".to_owned());
    let reason = Some(NOTHING_THROUGH.to_owned());
    let entry = any_of_effects(talk.facts()).map(|entry| format!("{entry:?}"));
    let entry = entry.as_deref().map(|entry| ("entry", entry));
    let with: Vec<(&str, &str)> = with.iter().copied().chain(entry).collect();
    let request = talk.request("any", Payload::text("{}"), &with);
    talk.send(request, None, Sending { clause, reason, await_frames: Some(1), ..Sending::default() });
}

/// Member of a local request that asks for guarantees.
const CONTEXT: &str = "capability_context";

/// A call with the optional members of the document's example, unless `with` sets them.
fn in_project(call: Payload, with: &[(&str, &str)]) -> Payload {
    let has = |name: &str| with.iter().any(|(own, _)| *own == name);
    let mut head = Payload::text("{");
    if !has("kind") {
        head = head.then(Payload::text("\"kind\":\"python\","));
    }
    if !has("project") {
        let path = Payload::text("\"project\":{\"app_root\":\"").var(format!("{PROJECT}.path"));
        head = head.then(path).then(Payload::text("\",\"flow\":\"demo\"},"));
    }
    let rest = Payload(
        call.0
            .into_iter()
            .enumerate()
            .map(|(at, segment)| match segment {
                Segment::Text(text) if at == 0 => {
                    Segment::Text(text.strip_prefix('{').unwrap_or(&text).to_owned())
                }
                segment => segment,
            })
            .collect(),
    );
    head.then(rest).merged()
}

#[cfg(test)]
mod tests {
    use super::super::model::{Acceptance, Assured, Request};
    use super::super::roles::{ROLES, usual_entry};
    use super::*;
    use peerproof_engine::data::clause::Side;

    fn facts() -> Facts {
        crate::boundary().full_facts(Side::Provider)
    }

    #[test]
    fn who_maps_entries_is_asked_for_nothing_else() {
        let mut facts = Facts { roles: BTreeMap::new(), ..facts() };
        for name in ["any", "echo", "write"] {
            facts
                .roles
                .insert(name.to_owned(), serde_json::json!({ "entry": format!("mine.own:{name}.run") }));
        }
        crate::config::fill_roles(&mut facts);
        let is_played = |check: &Check| check.roles.iter().all(|role| facts.roles.contains_key(role));
        let all: Vec<Check> = checks().collect();
        let played: Vec<&Check> = all.iter().filter(|check| is_played(check)).collect();
        assert!(played.len() > 100 && played.len() < all.len(), "{} of {}", played.len(), all.len());
        for plan in played.iter().filter_map(|check| (check.planner)(&facts, &mut Rng::new(1)).ok()) {
            for step in &plan.steps {
                let Act::Send { payload, .. } = &step.act else { continue };
                let text = payload.summary(10_000);
                let usual = ROLES.map(|role| format!("\"entry\":\"{}\"", usual_entry(role)));
                assert!(!usual.iter().any(|entry| text.contains(entry.as_str())), "{text}");
            }
        }
        let call = r#"{"protocol_version":1,"tool":"t","entry":"mine.own:any.run","payload":{}}"#;
        let request = Request::read(&facts, call.as_bytes());
        assert!(request.traits.is_empty() && request.call.unwrap().role == Some("any"));
    }

    /// The name of a topic agrees with the model's verdict about its bytes.
    #[test]
    fn the_model_says_of_every_row_what_its_topic_says() {
        let facts = facts();
        let vars = |name: &str| match name {
            "project.path" => "/project".to_owned(),
            _ => "1".to_owned(),
        };
        for check in checks().filter(|check| check.clauses[0].0 != "PT-HS-08") {
            let plan = (check.planner)(&facts, &mut Rng::new(1))
                .unwrap_or_else(|error| panic!("{}: {error}", check.id));
            let stored = serde_json::to_string(&plan).unwrap().len();
            assert!(stored < 1 << 20, "{} is {stored} bytes", check.id);
            let mut refused = Vec::new();
            for step in plan.steps.iter().filter(|step| !step.canary) {
                let Act::Send { payload, .. } = &step.act else { continue };
                if payload.len(&Vars::new()) > 1 << 20 {
                    continue;
                }
                let vars: Vars = payload.variables().map(|name| (name.to_owned(), vars(name))).collect();
                let bytes = payload.expand(&vars).unwrap();
                let request = match &step.http {
                    Some(how) if http::is_handshake(how) || how.is_raw() || how.is_cut() => continue,
                    Some(_) => Request::read_posted(&facts, &bytes, &Assured::new()),
                    None => Request::read(&facts, &bytes),
                };
                let is = |stand: fn(&Acceptance) -> bool| request.of(stand).is_some();
                refused.push(is(|it| *it == Acceptance::Refuse));
                let text = payload.summary(200);
                let topic = check.id.split('/').nth(2).unwrap();
                match topic {
                    "accepted" => {
                        assert!(request.traits.is_empty(), "{}: {:?} {text}", check.id, request.traits)
                    }
                    "open" => assert!(!is(|it| *it == Acceptance::Refuse), "{}: {text}", check.id),
                    _ => {}
                }
                let of_probe = facts.claims("no_network") && check.vouched;
                assert!(!of_probe || request.call.is_some(), "{}: {text}", check.id);
            }
            if check.id.split('/').nth(2) == Some("refused") {
                assert!(refused.contains(&true), "{} refuses nothing", check.id);
                assert!(refused.contains(&false), "{} has no twin that is accepted", check.id);
            }
        }
    }
}
