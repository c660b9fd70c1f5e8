//! The handling of one request in both modes: all refusals first, then state, then the tool, then the reply.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::cache::{Entry, Key};
use super::choices::{DeltaInRun, EmptyToken, SameKeyOtherInput};
use super::lease::Grant;
use super::reply::{self, ActionBuilder, OutputRef, Reply, StateRef};
use super::request::Request;
use super::state::{Slots, StateChange};
use super::tool::{Answer, Context, Input, Output, Printed, Status, Step, ToolResult};
use super::{Components, Config, Mode};
use crate::json::{
    Document, Kind, RawStr, Scanner, Text, Traits, Value, unescape_document, write_canonical, write_str,
};
use crate::machine::{Action, Millis};

/// Aid of the command that issues leases (contract §1).
pub(crate) const LEASE_ISSUE: &str = "_lease.issue";

/// Progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The reply is written. `host_error` is true if no tool ran.
    Answered { host_error: bool },
    /// The tool waits for [`Host::resume`].
    Waiting,
    /// The tool ended the process.
    Aborted,
}

/// Reply to a request for which no tool runs.
enum Refusal {
    Error(String),
    LeaseRequired { tier: u8, aid: Arc<str> },
    LeaseRejected { reason: String },
}

impl<T: Into<String>> From<T> for Refusal {
    fn from(error: T) -> Self {
        Self::Error(error.into())
    }
}

/// Key under which a result will be cached.
struct Keyed {
    key: Key,
    input: Option<[u8; 32]>,
}

/// A call without a reply yet.
struct Call {
    tool: usize,
    keyed: Option<Keyed>,
    /// Slots after the request's `ds_state`, before the tool ran.
    before: Slots,
}

/// A toolhost that is idle or waits for a tool.
pub(super) struct Host {
    config: Config,
    components: Components,
    scanner: Scanner,
    input_scanner: Scanner,
    /// Buffer for the text of the next input.
    document: Vec<u8>,
    printed: Printed,
    waiting: Option<(Call, Waiting)>,
}

/// Event for which a call waits.
enum Waiting {
    Time,
    Reply,
}

/// Capacity in bytes that is kept for the input of the next request. A larger buffer is freed.
const KEPT_BYTES: usize = 4 << 20;

impl Host {
    pub(super) fn new(config: Config, components: Components) -> Self {
        let nesting_max = config.limits.nesting_max;
        Self {
            config,
            components,
            scanner: Scanner::new(nesting_max).with_document("input_json"),
            input_scanner: Scanner::new(nesting_max),
            document: Vec::new(),
            printed: Printed::default(),
            waiting: None,
        }
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// True while a tool waits. No other request may be started then.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Refuses a request that could not be read.
    pub(super) fn refuse(error: &str, out: &mut ActionBuilder<'_>) -> Progress {
        reply::write_host_error(out.replies(), error);
        Progress::Answered { host_error: true }
    }

    /// Answers one request, or starts a tool that waits.
    pub(super) fn request(&mut self, text: &[u8], now: Millis, out: &mut ActionBuilder<'_>) -> Progress {
        let mut document = std::mem::take(&mut self.document);
        let progress = match self.start(text, &mut document, now, out) {
            Ok(progress) => progress,
            Err(refusal) => {
                match refusal {
                    Refusal::Error(error) => reply::write_host_error(out.replies(), &error),
                    Refusal::LeaseRequired { tier, aid } => {
                        reply::write_lease_required(out.replies(), tier, &aid);
                    }
                    Refusal::LeaseRejected { reason } => reply::write_lease_rejected(out.replies(), &reason),
                }
                Progress::Answered { host_error: true }
            }
        };
        if document.capacity() <= KEPT_BYTES {
            self.document = document;
        }
        progress
    }

    /// Starts a request. `document` is a buffer for the text of the input.
    fn start(
        &mut self,
        text: &[u8],
        document: &mut Vec<u8>,
        now: Millis,
        out: &mut ActionBuilder<'_>,
    ) -> Result<Progress, Refusal> {
        let Self { config, components, scanner, input_scanner, printed, .. } = self;
        let Config { choices, limits, .. } = &*config;
        let text = choices.bom.strip(text);
        let serve = config.mode == Mode::Serve;
        let request = Request::read(scanner, text, serve, limits.nesting_max, choices)?;

        let tool = match (&config.mode, request.aid()) {
            (Mode::Run { aid }, _) => {
                let found = components.tools.entries.iter().position(|entry| *entry.aid == **aid);
                found.ok_or_else(|| tool_not_found(aid))?
            }
            (Mode::Serve, Some(aid)) if aid.is(LEASE_ISSUE) => {
                let (token, ttl_ms) = issue_lease(&request, config, components, now)?;
                reply::write_lease_issued(out.replies(), &token, ttl_ms);
                return Ok(Progress::Answered { host_error: false });
            }
            (Mode::Serve, aid) => {
                let aid = aid.ok_or("malformed request: aid must be a non-empty string")?;
                components.tools.find(aid).ok_or_else(|| tool_not_found(&aid.text().to_lossy()))?
            }
        };
        let entry = components.tools.entries.get_mut(tool).ok_or("tool not found")?;

        let input = read_input(&request, document, input_scanner, config)?;
        let change =
            request.ds_state.map(|raw| StateChange::read(raw, limits.nesting_max, choices)).transpose()?;
        let is_delta = change.as_ref().is_some_and(|change| !change.full);
        if is_delta && !serve && choices.delta_in_run_mode == DeltaInRun::Refuse {
            return Err("ds_state: a run starts from a full state, not from a delta".into());
        }

        let enforced = config.lease_enforce && (serve || choices.lease_enforce_in_run_mode);
        let leased = enforced && entry.tier > 0;
        let token = request.lease_token().filter(|_| leased).map(RawStr::bytes);
        let token =
            token.filter(|token| !token.is_empty() || choices.empty_lease_token == EmptyToken::Rejected);
        if leased {
            let token = token
                .as_ref()
                .ok_or_else(|| Refusal::LeaseRequired { tier: entry.tier, aid: Arc::clone(&entry.aid) })?;
            components
                .leases
                .check(token, &entry.aid, entry.tier, now)
                .map_err(|rejection| Refusal::LeaseRejected { reason: rejection.to_string() })?;
        }

        let keyed = request.idempotency_key().and_then(Key::new).map(|key| Keyed {
            key,
            input: (choices.same_key_other_input == SameKeyOtherInput::Refuse).then(|| fingerprint(&input)),
        });
        if let Some(Keyed { key, input }) = &keyed
            && let Some(hit) = components.cache.lookup(key, now)
        {
            if *hit.aid != *entry.aid {
                return Err("idempotency_key belongs to a request for another aid".into());
            }
            if hit.input != *input {
                return Err("idempotency_key belongs to a request with another input".into());
            }
            if let Some(token) = token.filter(|_| choices.hit_spends_token) {
                components.leases.spend(&token);
            }
            if let Some(change) = change.filter(|_| choices.hit_applies_state) {
                components.state.apply(&change);
            }
            write_hit(hit, limits.reply_bytes_max, out);
            return Ok(Progress::Answered { host_error: false });
        }

        // The request can no longer be refused and takes effect from here on.
        if let Some(token) = token {
            components.leases.spend(&token);
        }
        if let Some(change) = change {
            components.state.apply(&change);
        }
        let call = Call { tool, keyed, before: components.state.slots().clone() };
        let mut cx = Context { now, limits, choices, state: &mut *components.state, printed };
        let step = entry.tool.call(&input, &mut cx);
        Ok(self.step(call, step, Some(input.output()), now, out))
    }

    /// Continues the waiting tool. Returns `None` if no tool waits for `answer`.
    pub(crate) fn resume(
        &mut self,
        answer: Answer,
        now: Millis,
        out: &mut ActionBuilder<'_>,
    ) -> Option<Progress> {
        let (call, _) = self.waiting.take_if(|(_, waiting)| {
            matches!(
                (waiting, &answer),
                (Waiting::Time, Answer::Woken) | (Waiting::Reply, Answer::Fetched(_))
            )
        })?;
        let Self { config, components, printed, .. } = self;
        let Config { choices, limits, .. } = &*config;
        let mut cx = Context { now, limits, choices, state: &mut *components.state, printed };
        let step = match components.tools.entries.get_mut(call.tool) {
            Some(entry) => entry.tool.resume(answer, &mut cx),
            None => Step::Done(ToolResult::error("the tool is gone")),
        };
        Some(self.step(call, step, None, now, out))
    }

    /// Carries out a step of a tool. `given` is the input, if it is available.
    fn step(
        &mut self,
        call: Call,
        step: Step,
        given: Option<OutputRef<'_>>,
        now: Millis,
        out: &mut ActionBuilder<'_>,
    ) -> Progress {
        for printed in [&mut self.printed.stdout, &mut self.printed.stderr] {
            if !printed.is_empty() {
                out.push(Action::Stderr(std::mem::take(printed)));
            }
        }
        let limits = &self.config.limits;
        match step {
            Step::Done(result) => self.finish(call, result, given, now, out),
            Step::Abort => {
                out.push(Action::Abort);
                Progress::Aborted
            }
            Step::WaitUntil(until) => {
                out.push(Action::WakeAt(until));
                self.waiting = Some((call, Waiting::Time));
                Progress::Waiting
            }
            Step::Fetch(request) => {
                out.push(Action::Fetch {
                    host: request.host,
                    port: request.port,
                    path: request.path,
                    host_header: request.host_header,
                    body_bytes_max: limits.http_body_bytes_max,
                    timeout_ms: limits.http_timeout_ms,
                });
                self.waiting = Some((call, Waiting::Reply));
                Progress::Waiting
            }
        }
    }

    /// Writes the reply of a call, and caches it if the request has a key.
    fn finish(
        &mut self,
        call: Call,
        result: ToolResult,
        given: Option<OutputRef<'_>>,
        now: Millis,
        out: &mut ActionBuilder<'_>,
    ) -> Progress {
        let Self { config, components, .. } = self;
        let Config { choices, limits, .. } = &*config;
        let Call { tool, keyed, before } = call;
        let tools = &mut components.tools.entries;
        for made in tools.get_mut(tool).map(|entry| entry.tool.made()).unwrap_or_default() {
            if tools.iter().all(|entry| entry.aid != made.aid) {
                tools.push(made);
            }
        }
        let ToolResult { mut status, output, mut error } = result;
        let output = match (&output, given) {
            (Output::Input, Some(given)) => given,
            (Output::Json(text), _) => OutputRef::Json(text),
            (Output::Input, None) => {
                (status, error) = (Status::ToolError, "the tool gave back an input that is gone".into());
                OutputRef::Escaped("{}")
            }
        };
        let hit = keyed.is_some().then_some(false);
        let mut write = |status: Status, error: &Text, with_state: bool| {
            if status != Status::Ok && !choices.tool_error_keeps_writes {
                components.state.restore(before.clone());
            }
            let after = components.state.slots();
            let state = match config.mode {
                Mode::Serve => StateRef::Delta { before: &before, after },
                Mode::Run { .. } => StateRef::Full(after),
            };
            let reply = Reply { status, output, error, hit, state: with_state.then_some(state) };
            reply.write(out.replies(), limits.reply_bytes_max)
        };
        // An error reply may omit the state. A result that does not fit becomes an error.
        let fits = write(status, &error, true) || (status != Status::Ok && write(status, &error, false));
        if !fits {
            status = Status::ToolError;
            error = format!("the reply would have more than {} bytes", limits.reply_bytes_max).into();
            if !write(status, &error, true) && !write(status, &error, false) {
                reply::write_host_error(out.replies(), "reply too large");
            }
        }
        if let Some(Keyed { key, input }) = keyed
            && (status == Status::Ok || choices.tool_error_cached)
            && let Some(entry) = components.tools.entries.get(tool)
        {
            let output = (status == Status::Ok).then(|| match output {
                OutputRef::Escaped(inside) => inside.into(),
                OutputRef::Json(text) => escape(text),
            });
            let entry = Entry { aid: Arc::clone(&entry.aid), input, status, output, error };
            components.cache.insert(key, entry, now);
        }
        Progress::Answered { host_error: false }
    }
}

/// `text` as the inside of a JSON string.
fn escape(text: &str) -> Box<str> {
    let mut out = Vec::new();
    write_str(&mut out, text);
    let quoted = String::from_utf8_lossy(&out);
    quoted.get(1..quoted.len() - 1).unwrap_or_default().into()
}

/// Digest that is equal exactly for inputs with equal JSON values.
fn fingerprint(input: &Input<'_>) -> [u8; 32] {
    let mut canonical = Vec::new();
    if let Ok(value) = input.value() {
        write_canonical(&mut canonical, &value);
    }
    Sha256::digest(&canonical).into()
}

/// Input of a request. `document` and `scanner` are used if the request's scanner could not decide.
fn read_input<'a>(
    request: &Request<'a>,
    document: &'a mut Vec<u8>,
    scanner: &mut Scanner,
    config: &Config,
) -> Result<Input<'a>, Refusal> {
    let policy = config.choices.policy();
    let nesting_max = config.limits.nesting_max;
    let input = match (request.input_json(), request.document()) {
        (None, _) => Input::new("{}", Traits::default(), policy, nesting_max),
        (Some(string), Some(Document { kind: Kind::Object, traits })) => {
            Input::escaped(string, traits, policy, nesting_max)
        }
        (Some(string), _) => {
            unescape_document(string, document);
            let scanned = scanner.scan(document).map_err(|error| format!("input_json: {error}"))?;
            if scanned.kind() != Kind::Object {
                return Err("input_json must hold a JSON object".into());
            }
            if request.lone_surrogates {
                // A lone surrogate escape in the request becomes an escape within the document.
                Input::new(scanned.text(), scanned.traits(), policy, nesting_max)
            } else {
                Input::escaped(string, scanned.traits(), policy, nesting_max)
            }
        }
    };
    input.check().map_err(|error| format!("input_json: {error}"))?;
    Ok(input)
}

/// Writes a reply from the cache.
fn write_hit(hit: &Entry, reply_bytes_max: usize, out: &mut ActionBuilder<'_>) {
    let reply = Reply {
        status: hit.status,
        output: OutputRef::Escaped(hit.output.as_deref().unwrap_or_default()),
        error: &hit.error,
        hit: Some(true),
        state: Some(StateRef::Unchanged),
    };
    if !reply.write(out.replies(), reply_bytes_max) {
        reply::write_host_error(out.replies(), "the cached reply is too large");
    }
}

/// Error for an unknown aid. Only its beginning is shown, because it may be as long as a request.
fn tool_not_found(aid: &str) -> String {
    format!("tool not found: {aid:.200}")
}

/// Issues a lease: `{"aid":"_lease.issue","tool_aid":…,"tier":…,"ttl_ms":…}` returns its token and life.
fn issue_lease(
    request: &Request<'_>,
    config: &Config,
    components: &mut Components,
    now: Millis,
) -> Result<(String, u64), Refusal> {
    let limits = &config.limits;
    let aid = request.tool_aid.and_then(|aid| aid.as_str()).ok_or("tool_aid must be a string")?;
    let tool = components.tools.find(aid).and_then(|tool| components.tools.entries.get(tool));
    let tool = tool.ok_or_else(|| tool_not_found(&aid.text().to_lossy()))?;
    let number = |name: &str, raw: Option<crate::json::Raw<'_>>| match raw {
        None => Ok(None),
        Some(raw) => {
            let value = Value::parse(raw.text().as_bytes(), limits.nesting_max, &config.choices.policy());
            let number = value.ok().and_then(|value| value.as_i64());
            number.map(Some).ok_or_else(|| format!("{name} must be an integer"))
        }
    };
    let tier = match number("tier", request.tier)? {
        None => tool.tier,
        Some(tier) => u8::try_from(tier).ok().filter(|tier| *tier <= 3).ok_or("tier must be 0, 1, 2 or 3")?,
    };
    let ttl_ms = match number("ttl_ms", request.ttl_ms)? {
        None => limits.lease_ttl_default_ms,
        Some(ttl_ms) => u64::try_from(ttl_ms).unwrap_or(0),
    };
    let ttl_ms = ttl_ms.max(limits.lease_ttl_min_ms).min(limits.lease_ttl_max_ms);
    let grant = Grant { aid: Arc::clone(&tool.aid), tier, ttl_ms };
    let token = components.leases.issue(grant, now).ok_or("too many leases")?;
    Ok((token, ttl_ms))
}
