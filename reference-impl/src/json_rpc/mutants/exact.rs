//! Mutants that blur exact rules: near misses of names and versions, rules not applied within a batch, line ends, ids
//! beyond a machine word, and late actions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Mutant;
use super::edit::{
    Object, edited, ended, find, find_mut, has, incoming, method, number, object_mut, outgoing, remove,
    replaced, responses, set, swap_all, text, value,
};
use super::wire::Pass;
use crate::json::Value;
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::{Inner, machine};

/// Methods with params by name.
const NAMED: [&str; 5] =
    ["execute_task", "create_plan", "validate_code", "update_context", "peerproof.named"];

/// Renames members that match a known name except for case. Later members win.
fn fold(members: &mut Object, known: &[&str]) -> bool {
    let mut folded = false;
    for (name, value) in members.clone() {
        let Some(right) = known.iter().find(|right| name != ***right && is_like(&name, right)) else {
            continue;
        };
        set(members, right, value);
        folded = true;
    }
    folded
}

fn is_like(name: &crate::json::Text, right: &str) -> bool {
    name.as_str().is_some_and(|name| name.eq_ignore_ascii_case(right))
}

/// Edits the objects of an array.
fn in_batches(line: &[u8], edit: fn(&mut Value)) -> Pass {
    let Some(Value::Array(mut elements)) = value(line) else { return Pass::Forward };
    elements.iter_mut().for_each(edit);
    replaced(line, text(&Value::Array(elements)))
}

/// Splits a line at each of these characters.
fn cut_at(line: &[u8], separators: &[char]) -> Pass {
    let Ok(whole) = std::str::from_utf8(line) else { return Pass::Forward };
    match whole.contains(separators) {
        true => Pass::Replace(whole.split(separators).map(|part| part.as_bytes().to_vec()).collect()),
        false => Pass::Forward,
    }
}

fn is_call(message: &Value) -> bool {
    method(message).is_some() && message.get("id").is_some()
}

/// Replaces a wrapper in a batch by its message.
fn unwrap(element: &mut Value) {
    let body = element.get("body").and_then(Value::as_str).and_then(|body| STANDARD.decode(body).ok());
    let inflated = body.and_then(|body| super::super::inflate(&body, 1 << 20).ok());
    if let Some(message) = inflated.as_deref().and_then(value) {
        *element = message;
    }
}

/// The mutants.
pub(super) const MUTANTS: &[Mutant] = &[
    outgoing(
        "wraps-large-ids",
        &["RPC-JSON-06"],
        "An id of 2^63 and more comes back as -2^63.",
        |_, line| {
            responses(line, |response| {
                let is_large = |id: &Value| matches!(id, Value::Number(id) if id.as_str().parse::<i128>().is_ok_and(|id| id > i128::from(i64::MAX)));
                if find(response, "id").is_some_and(is_large) {
                    set(response, "id", number(i64::MIN));
                }
            })
        },
    ),
    outgoing(
        "loses-ids-beyond-doubles",
        &["RPC-JSON-11"],
        "An id of 1e400 comes back as null.",
        |_, line| {
            responses(line, |response| {
                if let Some(Value::Number(id)) = find(response, "id")
                    && id.as_f64().is_infinite()
                {
                    set(response, "id", Value::Null);
                }
            })
        },
    ),
    incoming(
        "ends-lines-at-separators",
        &["RPC-FRAME-09"],
        "U+2028, U+2029 and U+0085 end a line.",
        |_, line| cut_at(line, &['\u{2028}', '\u{2029}', '\u{85}']),
    ),
    incoming(
        "ends-lines-at-control-characters",
        &["RPC-FRAME-01"],
        "VT, FF and the separators of files, groups and records end a line.",
        |_, line| cut_at(line, &['\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}']),
    ),
    incoming("reads-ids-in-capitals", &["RPC-NOTE-01"], "`ID` and `Id` are the id.", |_, line| {
        edited(line, |message| find(message, "id").is_none() && fold(message, &["id"]))
    }),
    incoming(
        "names-count-without-case",
        &["RPC-REQ-04"],
        "A member that is there twice but for its case counts as it came last.",
        |_, line| {
            edited(line, |message| {
                find(message, "id").is_some() && fold(message, &["id", "jsonrpc", "method", "params"])
            })
        },
    ),
    incoming(
        "params-count-without-case",
        &["RPC-EXEC-01", "RPC-PLAN-04", "RPC-VALID-02", "RPC-CTX-02"],
        "Params of the four methods are known whatever the case of their names.",
        |_, line| {
            const MEMBERS: [&str; 8] =
                ["task_type", "prompt", "user_request", "code", "language", "action", "context_type", "data"];
            edited(line, |message| object_mut(message, "params").is_some_and(|params| fold(params, &MEMBERS)))
        },
    ),
    incoming(
        "takes-params-in-an-array",
        &["RPC-PARAMS-04", "RPC-PARAMS-08"],
        "Named params may stand in an array.",
        |_, line| {
            edited(line, |message| {
                let is_named =
                    find(message, "method").and_then(Value::as_str).is_some_and(|own| NAMED.contains(&own));
                match find_mut(message, "params") {
                    Some(params) if is_named => match params.as_array() {
                        Some([inner @ Value::Object(_)]) => {
                            *params = inner.clone();
                            true
                        }
                        _ => false,
                    },
                    _ => false,
                }
            })
        },
    ),
    incoming("trims-versions", &["RPC-REQ-01"], "White space behind a version does not count.", |_, line| {
        edited(line, |message| {
            let version = find(message, "jsonrpc").and_then(Value::as_str).map(str::to_owned);
            let trims = version.is_some_and(|version| version != "2.0" && version.trim() == "2.0");
            if trims {
                set(message, "jsonrpc", Value::from("2.0"));
            }
            trims
        })
    }),
    incoming("decodes-entities", &["RPC-PARAMS-01", "RPC-ID-01"], "`&amp;` is read as `&`.", |_, line| {
        replaced(line, swap_all(line, "&amp;", "&"))
    }),
    incoming(
        "takes-any-version-in-batches",
        &["RPC-BATCH-03"],
        "The version of the elements of a batch is not looked at.",
        |_, line| {
            in_batches(line, |element| {
                if let Value::Object(message) = element
                    && find(message, "method").is_some()
                {
                    set(message, "jsonrpc", Value::from("2.0"));
                }
            })
        },
    ),
    incoming(
        "silent-on-batches-without-calls",
        &["RPC-BATCH-03"],
        "A batch without a call that holds a notification is not answered.",
        |_, line| match value(line).as_ref().and_then(Value::as_array) {
            Some(all) if !all.iter().any(is_call) && all.iter().any(|one| method(one).is_some()) => {
                Pass::Drop
            }
            _ => Pass::Forward,
        },
    ),
    outgoing("ids-in-batches-are-text", &["RPC-BATCH-05"], "Ids in batches come back as text.", |_, line| {
        if !line.starts_with(b"[") {
            return ended(line.to_vec());
        }
        responses(line, |response| {
            if let Some(Value::Number(id)) = find(response, "id").cloned() {
                set(response, "id", Value::from(id.as_str()));
            }
        })
    }),
    incoming(
        "loses-notifications-in-batches",
        &["RPC-NOTE-02"],
        "Notifications in a batch with a call are not carried out.",
        |_, line| match value(line) {
            Some(Value::Array(mut all)) if all.iter().any(is_call) => {
                all.retain(|one| method(one).is_none() || one.get("id").is_some());
                Pass::Replace(vec![text(&Value::Array(all))])
            }
            _ => Pass::Forward,
        },
    ),
    incoming(
        "carries-refused-calls-out-later",
        &["RPC-NOTE-02"],
        "A call that was refused for its version is carried out behind the next one.",
        |memory, line| {
            let Some(mut message) = value(line) else { return Pass::Forward };
            let is_wrong = message.get("jsonrpc").and_then(Value::as_str) != Some("2.0");
            if let Value::Object(members) = &mut message
                && is_wrong
                && find(members, "method").and_then(Value::as_str) == Some("peerproof.counter")
            {
                remove(members, "id");
                set(members, "jsonrpc", Value::from("2.0"));
                memory.kept.insert(b"later".to_vec(), text(&message));
                return Pass::Forward;
            }
            if method(&message) != Some("peerproof.counter") {
                return Pass::Forward;
            }
            memory
                .kept
                .remove(&b"later"[..])
                .map_or(Pass::Forward, |later| Pass::Replace(vec![line.to_vec(), later]))
        },
    ),
    incoming(
        "takes-undeclared-gzip-in-batches",
        &["RPC-GZIP-07"],
        "Compressed elements of a batch are taken though they are not declared.",
        |_, line| in_batches(line, unwrap),
    ),
    incoming("encodings-without-case", &["RPC-GZIP-04"], "`GZIP` is taken for `gzip`.", |_, line| {
        replaced(line, swap_all(line, "\"encoding\":\"GZIP\"", "\"encoding\":\"gzip\""))
    })
    .needing("gzip"),
    incoming(
        "wraps-in-any-case-of-names",
        &["RPC-GZIP-04"],
        "`Encoding` and `Body` wrap a message as well.",
        |_, line| {
            edited(line, |message| find(message, "method").is_none() && fold(message, &["encoding", "body"]))
        },
    )
    .needing("gzip"),
    machine(
        "answers-notifications-late",
        &["RPC-NOTE-01"],
        "A notification is answered a second later.",
        |inner| Box::new(Late { inner, due: None }),
    ),
    machine(
        "drops-slow-lines",
        &["RPC-FRAME-02"],
        "Half a line that nothing follows for a second is taken for a whole one.",
        |inner| Box::new(Impatient { inner, half_since: None }),
    ),
    machine(
        "interleaves-large-replies",
        &["RPC-ID-01"],
        "Replies of more than 300,000 bytes that are under way together are written into each other.",
        |inner| Box::new(Interleaving { inner, held: Vec::new(), due: 0 }),
    ),
    machine(
        "limits-one-too-late-and-starts-slowly",
        &["RPC-RATE-01"],
        "One request more passes, and nothing is read in the first 700 ms.",
        |inner| Box::new(Generous { inner, ready: None, held: Vec::new(), has_passed: false }),
    )
    .needing("rate_limit"),
];

/// Size in bytes above which a message is large.
const LARGE_BYTES: usize = 300_000;

/// Pause within a large reply.
const REST_MS: Millis = 300;

/// Delay of one second.
const LATE_MS: Millis = 1_000;

/// A mutant that answers the last notification late.
struct Late {
    inner: Inner,
    due: Option<Millis>,
}

impl Machine for Late {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(bytes) = &event
            && bytes.split(|byte| *byte == b'\n').any(|line| has(line, "\"method\"") && !has(line, "\"id\""))
        {
            self.due = Some(now + LATE_MS);
            actions.push(Action::WakeAt(now + LATE_MS));
        }
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            let late = b"{\"jsonrpc\":\"2.0\",\"result\":null,\"id\":null}\n";
            actions.push(Action::Stdout(late.to_vec()));
        }
        self.inner.handle(event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that ends a line itself if its sender pauses.
struct Impatient {
    inner: Inner,
    half_since: Option<Millis>,
}

impl Machine for Impatient {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(bytes) = &event {
            if self.half_since.is_some_and(|since| now >= since + LATE_MS) {
                self.inner.handle(Event::Stdin(b"\n"), now, actions);
            }
            self.half_since = (!bytes.ends_with(b"\n")).then_some(now);
        }
        self.inner.handle(event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that pauses within each large reply and interleaves another one.
struct Interleaving {
    inner: Inner,
    /// Rest of the replies, and the time to write it.
    held: Vec<u8>,
    due: Millis,
}

impl Machine for Interleaving {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner = Vec::new();
        self.inner.handle(event, now, &mut inner);
        if now >= self.due && !self.held.is_empty() {
            actions.push(Action::Stdout(std::mem::take(&mut self.held)));
        }
        for action in inner {
            match action {
                Action::Stdout(mut bytes) if bytes.len() > LARGE_BYTES => {
                    self.held.extend(bytes.split_off(bytes.len() / 2));
                    self.due = now + REST_MS;
                    actions.extend([Action::Stdout(bytes), Action::WakeAt(self.due)]);
                }
                Action::Stdout(_) | Action::Exit(_) if !self.held.is_empty() => {
                    actions.extend([Action::Stdout(std::mem::take(&mut self.held)), action]);
                }
                action => actions.push(action),
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that reads nothing at its start and lets one rate-limited request pass.
struct Generous {
    inner: Inner,
    ready: Option<Millis>,
    held: Vec<u8>,
    has_passed: bool,
}

impl Machine for Generous {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let ready = *self.ready.get_or_insert(now + 700);
        if let Event::Stdin(bytes) = &event
            && now < ready
        {
            self.held.extend_from_slice(bytes);
            return actions.push(Action::WakeAt(ready));
        }
        let known = actions.len();
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.inner.handle(Event::Stdin(&held), now, actions);
        }
        self.inner.handle(event, now, actions);
        for action in &mut actions[known..] {
            let Action::Stdout(bytes) = action else { continue };
            let lines = bytes.split_inclusive(|byte| *byte == b'\n');
            let passed = lines.map(|line| {
                match has(line, "-32002") && !std::mem::replace(&mut self.has_passed, true) {
                    true => responses(line, |response| {
                        remove(response, "error");
                        set(response, "result", Value::Null);
                    }),
                    false => line.to_vec(),
                }
            });
            *bytes = passed.collect::<Vec<_>>().concat();
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}
