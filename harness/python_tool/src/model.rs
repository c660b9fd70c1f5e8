//! Model of a request: allowed treatment and parsed call.

use std::collections::{BTreeMap, BTreeSet};

use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{self, DecodeErrorKind, DecodeLimits, Json, Number};

use super::config;
use super::roles::role_of;

/// Largest request that a runner SHOULD accept, bytes (readings §6: 10 MB).
pub const BYTES_MAX: usize = 10 << 20;

/// Default timeout of a call over HTTP, ms.
pub(crate) const TIMEOUT_DEFAULT_MS: u64 = 10_000;

/// Nesting that every runner accepts, levels.
pub(crate) const NESTING_MAX: u64 = 64;

/// Effect of a trait on the acceptance of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// Must be refused.
    Refuse,
    /// Must be refused, or run within the stricter guarantees.
    Strict,
    /// May be accepted or refused: the choice, and its values for acceptance and refusal.
    Open(Option<&'static str>, &'static str, &'static str),
}

/// An unusual or wrong property of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trait {
    /// Its effect.
    pub stand: Acceptance,
    /// Clause of the effect.
    pub clause: &'static str,
}

/// A request as the model reads it.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Properties that affect its acceptance.
    pub traits: Vec<Trait>,
    /// Its call, if it is readable.
    pub call: Option<Call>,
}

/// A call.
#[derive(Debug, Clone, Default)]
pub struct Call {
    /// Role of the tool; `None` if the tool does not exist.
    pub role: Option<&'static str>,
    /// True if the module may lie outside the project.
    pub is_outside: bool,
    /// Payload. The last of repeated members counts.
    pub payload: Json,
    /// Payload in which the first of repeated members counts, if there are any.
    pub first: Option<Json>,
    /// True if a string in it has a lone surrogate.
    pub lone_surrogates: bool,
    /// True if a number in it is large.
    pub big_numbers: bool,
    /// Guarantees in force, as far as the runner claims to enforce them.
    pub guarantees: BTreeSet<&'static str>,
    /// True if any guarantee is requested, known or unknown.
    pub asks_for_some: bool,
    /// True if `sandbox` is true or has a value that counts as true.
    pub is_sandboxed: bool,
    /// Over HTTP: timeout in ms, and its clause.
    pub timeout: Option<(u64, &'static str)>,
}

/// Assurances of handshakes, by tool name.
pub type Assured = BTreeMap<String, Assurance>;

/// Assurance of handshakes for one tool.
#[derive(Debug, Clone, Default)]
pub struct Assurance {
    /// Guarantees that are certainly enforced.
    pub guarantees: BTreeSet<String>,
    /// True if further guarantees may be in force.
    pub is_unclear: bool,
    /// True if a handshake was answered.
    pub is_answered: bool,
}

fn refuse(clause: &'static str) -> Trait {
    Trait { stand: Acceptance::Refuse, clause }
}

fn open(clause: &'static str, key: &'static str, taken: &'static str, refused: &'static str) -> Trait {
    Trait { stand: Acceptance::Open((!key.is_empty()).then_some(key), taken, refused), clause }
}

impl Request {
    /// Reads the request of a local runner.
    pub fn read(facts: &Facts, bytes: &[u8]) -> Self {
        Self::read_as(facts, bytes, None)
    }

    /// Reads the body of a call over HTTP, given earlier assurances.
    pub(crate) fn read_posted(facts: &Facts, bytes: &[u8], assured: &Assured) -> Self {
        Self::read_as(facts, bytes, Some(assured))
    }

    fn read_as(facts: &Facts, bytes: &[u8], posted: Option<&Assured>) -> Self {
        let mut traits = Vec::new();
        let mut text = json::trim(bytes);
        if let Some(rest) = text.strip_prefix(b"\xef\xbb\xbf") {
            traits.push(open("PT-FRAME-11", "bom", "ignore", "refuse"));
            text = rest;
        }
        if text.len() > BYTES_MAX {
            traits.push(open("PT-SIZE-03", "over_size", "process", "refuse"));
        } else if bytes.len() > BYTES_MAX {
            traits.push(open("PT-SIZE-03", "", "", ""));
        }
        let refused = |clause| Self { traits: vec![refuse(clause)], call: None };
        let decoded = match json::decode(text, &DecodeLimits::default()) {
            Ok(decoded) => decoded,
            Err(error) => {
                return refused(match error.kind {
                    DecodeErrorKind::TrailingBytes => "PT-FRAME-03",
                    DecodeErrorKind::InvalidUtf8 => "PT-JSON-02",
                    _ if text.is_empty() => "PT-JSON-09",
                    _ => "PT-JSON-01",
                });
            }
        };
        if decoded.value.as_object().is_none() {
            return refused("PT-JSON-09");
        }
        let nesting_max = facts.limits.get("nesting_max").copied().unwrap_or(NESTING_MAX);
        if decoded.facts.depth as u64 > nesting_max {
            traits.push(open("PT-JSON-04", "", "", ""));
        }
        if decoded.facts.duplicate_keys {
            traits.push(open("PT-JSON-05", "duplicate_keys", "last", "refuse"));
        }
        if decoded.facts.lone_surrogates {
            traits.push(open("PT-JSON-06", "lone_surrogates", "echo", "refuse"));
        }
        let big_numbers = decoded.value.has_number(Number::is_big);
        if decoded.value.has_number(Number::is_beyond_double) {
            traits.push(open("PT-JSON-11", "", "", ""));
        } else if big_numbers {
            traits.push(open("PT-JSON-07", "big_integers", "exact", "refuse"));
        }
        let mut call = of_request(facts, &decoded.value, posted, &mut traits);
        if let Some(call) = &mut call {
            call.big_numbers = big_numbers;
            call.lone_surrogates = decoded.facts.lone_surrogates;
            call.first = decoded.facts.duplicate_keys.then(|| {
                let mut first = decoded.value.clone();
                first.keep_first();
                first.get("payload").cloned().unwrap_or_default()
            });
        }
        Self { traits, call }
    }

    /// First trait whose stand matches.
    pub fn of(&self, is: impl Fn(&Acceptance) -> bool) -> Option<&Trait> {
        self.traits.iter().find(|it| is(&it.stand))
    }
}

/// Properties of an object that affect its acceptance as a request, and its call.
fn of_request(
    facts: &Facts,
    request: &Json,
    posted: Option<&Assured>,
    traits: &mut Vec<Trait>,
) -> Option<Call> {
    let member = |name: &str| request.get(name).filter(|value| !value.is_null());
    match member("protocol_version") {
        Some(Json::Number(number)) if number.as_i64() == Some(1) => {
            if number.text() != "1" {
                traits.push(open("PT-REQ-03", "", "", ""));
            }
        }
        _ => traits.push(refuse("PT-REQ-02")),
    }
    let name = member(if posted.is_some() { "tool_name" } else { "tool" }).and_then(Json::as_str);
    if name.is_none_or(str::is_empty) {
        traits.push(refuse("PT-REQ-04"));
    }
    if member("trace_id").is_some_and(|trace_id| trace_id.as_str().is_none()) {
        traits.push(open("PT-REQ-13", "", "", ""));
    }
    // Over HTTP these members are unknown.
    let local = |name: &str| request.get(name).filter(|_| posted.is_none());
    let sandbox = local("sandbox").filter(|sandbox| !sandbox.is_null());
    if sandbox.is_some_and(|sandbox| sandbox.as_bool().is_none()) {
        traits.push(Trait { stand: Acceptance::Strict, clause: "PT-GUAR-09" });
    }
    if local("sandbox").is_some_and(Json::is_null) {
        traits.push(open("PT-REQ-16", "", "", ""));
    }
    let mut is_sandboxed = sandbox.is_some_and(|sandbox| sandbox.as_bool() != Some(false));
    let context = local("capability_context").filter(|context| !context.is_null());
    let (mut in_force, mut asks_for_some) = guarantees(facts, context, traits);
    if is_sandboxed && !asks_for_some {
        traits.push(open("PT-REQ-15", "sandbox_unsupported", "run", "refuse"));
    }
    let timeout = posted.map(|_| timeout(request, traits));
    if let Some(assurance) = posted.zip(name).and_then(|(assured, name)| assured.get(name)) {
        let is_assured = |name: &&'static str| assurance.guarantees.contains(*name);
        in_force = config::NAMES.into_iter().filter(is_assured).collect();
        asks_for_some = assurance.is_unclear || !assurance.guarantees.is_empty();
        is_sandboxed = true;
    }
    let payload = member("payload").filter(|payload| payload.as_object().is_some());
    if payload.is_none() {
        traits.push(refuse("PT-REQ-11"));
    }
    let entry = member("entry").and_then(Json::as_str);
    let role = entry.and_then(|entry| role_of(facts, entry));
    // A peer with a configured tool name need not know another name.
    let own = role.and_then(|role| facts.roles.get(role)?.get("tool")?.as_str());
    if own.is_some() && own != name {
        traits.push(open("PT-REQ-04", "", "", ""));
    }
    // The entry of a mapped role exists.
    let form = if role.is_some() { Form::Right } else { entry.map_or(Form::Wrong, form_of) };
    match form {
        Form::Right => {}
        Form::Dotted => traits.push(open("PT-REQ-07", "", "", "")),
        Form::Unsure => traits.push(open("PT-REQ-06", "", "", "")),
        Form::Wrong => traits.push(refuse("PT-REQ-06")),
    }
    let entry = entry.filter(|_| form != Form::Wrong)?;
    let is_outside = role.is_none() && !entry.starts_with("tools.");
    Some(Call {
        role,
        is_outside,
        payload: payload?.clone(),
        guarantees: in_force,
        asks_for_some,
        is_sandboxed,
        timeout,
        ..Call::default()
    })
}

/// Reads members that only calls over HTTP have: timeout and clause.
fn timeout(request: &Json, traits: &mut Vec<Trait>) -> (u64, &'static str) {
    match request.get("kind") {
        None => {}
        Some(Json::Null) => traits.push(open("PT-SRV-03", "", "", "")),
        Some(kind) if kind.as_str() != Some("python") => traits.push(refuse("PT-SRV-03")),
        Some(_) => {}
    }
    if request.get("project").is_some_and(|project| project.as_object().is_none()) {
        traits.push(open("PT-SRV-02", "", "", ""));
    }
    match request.get("timeout_ms") {
        None => (TIMEOUT_DEFAULT_MS, "PT-SRV-15"),
        Some(Json::Number(number)) if number.as_u64().is_some_and(|given| given > 0) => {
            if number.text().contains(|char: char| !char.is_ascii_digit()) {
                traits.push(open("PT-SRV-16", "", "", ""));
            }
            (number.as_u64().unwrap_or_default(), "PT-SRV-12")
        }
        Some(_) => {
            traits.push(open("PT-SRV-16", "", "", ""));
            (TIMEOUT_DEFAULT_MS, "PT-SRV-16")
        }
    }
}

/// Guarantees in force, and true if any is requested.
fn guarantees(
    facts: &Facts,
    context: Option<&Json>,
    traits: &mut Vec<Trait>,
) -> (BTreeSet<&'static str>, bool) {
    let claimed = || config::NAMES.into_iter().filter(|name| facts.claims(name));
    let strict = Trait { stand: Acceptance::Strict, clause: "PT-GUAR-09" };
    let Some(context) = context else { return (BTreeSet::new(), false) };
    let given = match context.as_object() {
        None => {
            traits.push(strict);
            return (claimed().collect(), true);
        }
        Some(_) => context.get("guarantees").filter(|given| !given.is_null()),
    };
    let Some(given) = given else { return (BTreeSet::new(), false) };
    let Some(members) = given.as_object() else {
        traits.push(strict);
        return (claimed().collect(), true);
    };
    let (mut in_force, mut asks) = (BTreeSet::new(), false);
    for (name, value) in members {
        if value.is_null() {
            // The contract leaves open if null means absent or a wrong type.
            traits.push(open("PT-REQ-16", "", "", ""));
            asks = true;
            continue;
        }
        if value.as_bool().is_none() {
            traits.push(strict);
        }
        if value.as_bool() == Some(false) {
            continue;
        }
        asks = true;
        match claimed().find(|known| known == name) {
            Some(known) => {
                in_force.insert(known);
            }
            None => traits.push(open("PT-REQ-18", "unknown_guarantee", "ignore", "refuse")),
        }
    }
    (in_force, asks)
}

/// Form of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Two dotted names around one colon.
    Right,
    /// The function part has a dot.
    Dotted,
    /// Some characters may not be allowed in names.
    Unsure,
    /// Anything else.
    Wrong,
}

/// Form of an entry.
pub(crate) fn form_of(entry: &str) -> Form {
    let Some((module, function)) = entry.split_once(':') else { return Form::Wrong };
    let is_wrong = |char: char| char.is_whitespace() || char.is_control() || matches!(char, '/' | '\\');
    let parts = || module.split('.').chain(function.split('.'));
    if entry.matches(':').count() > 1 || entry.contains(is_wrong) || parts().any(str::is_empty) {
        return Form::Wrong;
    }
    let is_plain = |part: &str| {
        let is_name = |char: char| char.is_ascii_alphanumeric() || char == '_';
        part.chars().all(is_name) && !part.starts_with(|char: char| char.is_ascii_digit())
    };
    match () {
        () if !parts().all(is_plain) => Form::Unsure,
        () if function.contains('.') => Form::Dotted,
        () => Form::Right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::clause::Side;

    fn request(with: &str) -> Request {
        let text = format!(
            "{{\"protocol_version\":1,\"tool\":\"t\",\"entry\":\"tools.peerproof:any\",\"payload\":{{}},{with}}}"
        );
        let mut facts = Facts::new(Side::Provider);
        facts.features.insert("no_network".to_owned(), true.into());
        Request::read(&facts, text.as_bytes())
    }

    #[test]
    fn guarantees_are_in_force_where_they_are_asked_for_and_claimed() {
        let of = |with: &str| {
            let request = request(&format!("\"capability_context\":{with}"));
            let is_strict = request.of(|it| *it == Acceptance::Strict).is_some();
            let is_open = request.of(|it| matches!(it, Acceptance::Open(..))).is_some();
            (!request.call.unwrap().guarantees.is_empty(), is_strict, is_open)
        };
        assert_eq!(of("{\"guarantees\":{\"no_network\":true}}"), (true, false, false));
        assert_eq!(of("{\"guarantees\":{\"no_network\":false}}"), (false, false, false));
        assert_eq!(of("{\"guarantees\":{\"no_network\":1}}"), (true, true, false));
        assert_eq!(of("[\"no_network\"]"), (true, true, false));
        assert_eq!(of("null"), (false, false, false));
        assert_eq!(of("{\"guarantees\":{\"no_network\":null}}"), (false, false, true));
        assert_eq!(of("{\"guarantees\":{\"no_subprocess\":true}}"), (false, false, true));
    }

    #[test]
    fn entries_have_forms() {
        for (entry, form) in [
            ("a:b", Form::Right),
            ("tools.a_1:b", Form::Right),
            ("a:B.c", Form::Dotted),
            ("é:b", Form::Unsure),
            ("", Form::Wrong),
            ("a", Form::Wrong),
            ("a:", Form::Wrong),
            (":b", Form::Wrong),
            ("a:b:c", Form::Wrong),
            (".a:b", Form::Wrong),
            ("a..b:c", Form::Wrong),
            ("a/b:c", Form::Wrong),
            (" a:b", Form::Wrong),
        ] {
            assert_eq!(form_of(entry), form, "{entry:?}");
        }
    }
}
