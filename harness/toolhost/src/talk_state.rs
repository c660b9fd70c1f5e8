//! Helpers for conversations about state, leases and fetching: artifacts, `ds_state` texts, lease requests, URLs.

use serde_json::Value;

pub(crate) use super::artifact::{Artifact, Slots};
use super::expect::{Allowed, Expect, Match, Outcome};
use super::role::role;
use super::talk::{Request, Talk, quoted};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Fixture, ListenerSettings};
use peerproof_engine::drive::peer::fill_template;

/// Short artifact, unique for this name.
pub(crate) fn note(name: &str) -> Artifact {
    Artifact::new(&format!("{{\"note\":\"{name}\"}}"))
}

/// The `slots` object.
pub(crate) fn slots_text(slots: &[(u8, &Artifact)]) -> String {
    let members: Vec<String> =
        slots.iter().map(|(slot, artifact)| format!("\"{slot}\":{}", artifact.text())).collect();
    format!("{{{}}}", members.join(","))
}

/// A full state.
pub(crate) fn full(slots: &[(u8, &Artifact)]) -> String {
    format!("{{\"slots\":{}}}", slots_text(slots))
}

/// A delta.
pub(crate) fn delta(slots: &[(u8, &Artifact)], removed: &[u8]) -> String {
    let removed: Vec<String> = removed.iter().map(u8::to_string).collect();
    let removed = match removed.as_slice() {
        [] => String::new(),
        removed => format!(",\"removed_slots\":[{}]", removed.join(",")),
    };
    format!("{{\"delta\":true,\"slots\":{}{removed}}}", slots_text(slots))
}

/// State with these slots.
pub(crate) fn slots(slots: &[(u8, &Artifact)]) -> Slots {
    slots.iter().map(|(slot, artifact)| (slot.to_string(), (*artifact).clone())).collect()
}

/// Input of the role `put`.
pub(crate) fn put_input(slot: u8, artifact: &Artifact) -> String {
    format!("{{\"slot\":{slot},\"artifact\":{}}}", artifact.text())
}

/// Expected answer of `get`.
pub(crate) fn got(artifact: Option<&Artifact>) -> Allowed {
    match artifact {
        None => Allowed::of(Outcome::Ok).output_member("/artifact", Match::Equals("null".to_owned())),
        Some(artifact) => artifact
            .members("/artifact")
            .into_iter()
            .fold(Allowed::of(Outcome::Ok), |allowed, (pointer, what)| allowed.output_member(&pointer, what)),
    }
}

/// Success reply of run mode with exactly this full state.
pub(crate) fn whole_state(state: &[(u8, &Artifact)]) -> Allowed {
    (0..8_u8).fold(Allowed::of(Outcome::Ok), |allowed, slot| {
        let pointer = format!("/ds_state/slots/{slot}");
        match state.iter().find(|(number, _)| *number == slot) {
            None => allowed.member(&pointer, Match::Absent),
            Some((_, artifact)) => artifact
                .members(&pointer)
                .into_iter()
                .fold(allowed, |allowed, (pointer, what)| allowed.member(&pointer, what)),
        }
    })
}

impl Talk<'_> {
    /// Sends a plain valid request with this `ds_state`, which must be accepted.
    pub fn apply(&mut self, clause: &str, ds_state: &str) -> &mut Self {
        let (request, expect) = self.good(clause);
        self.send(request.state(ds_state).line(), expect)
    }

    /// Sends a plain valid request with this `ds_state`, which must be refused.
    pub(crate) fn apply_refused(&mut self, clause: &str, ds_state: &str) -> &mut Self {
        let (request, _) = self.good(clause);
        self.send(request.state(ds_state).line(), Expect::refused(clause))
    }

    /// Writes a slot through the tool of role `put`.
    pub fn put(&mut self, clause: &str, slot: u8, artifact: &Artifact) -> &mut Self {
        let request = self.ask("put", &put_input(slot, artifact));
        self.send(request.line(), Expect::ok(clause))
    }

    /// Reads a slot through the tool of role `get`, which must return this artifact.
    pub(crate) fn get_is(&mut self, clause: &str, slot: u8, artifact: Option<&Artifact>) -> &mut Self {
        self.get(slot, Expect::new(clause, got(artifact)))
    }

    /// Reads a slot through the tool of role `get`.
    pub fn get(&mut self, slot: u8, expect: Expect) -> &mut Self {
        let request = self.ask("get", &format!("{{\"slot\":{slot}}}"));
        self.send(request.line(), expect)
    }

    /// Reads all slots, which must hold exactly this state.
    pub(crate) fn state_is(&mut self, clause: &str, state: &[(u8, &Artifact)]) -> &mut Self {
        for slot in 0..8 {
            let held = state.iter().find(|(number, _)| *number == slot).map(|(_, artifact)| *artifact);
            self.get_is(clause, slot, held);
        }
        self
    }

    /// Calls the counter, which must answer `count`; `false` demands that the reply is not a hit.
    pub fn count(&mut self, clause: &str, count: u64) -> &mut Self {
        let request = self.ask("counter", "{}");
        self.send(request.line(), Expect::new(clause, Allowed::count(count).hit(false)))
    }
}

/// A conversation with a process that enforces leases.
///
/// # Errors
/// Fails if the tools of plain requests need a lease themselves.
pub(crate) fn leased(facts: &Facts) -> Result<Talk<'_>, Untestable> {
    for name in ["any", "echo", "counter", "get"] {
        if role(facts, name).and_then(|role| role.tier).is_some_and(|tier| tier > 0) {
            return Err(Untestable::new("tier", format!("the tool of role `{name}` requires a lease")));
        }
    }
    Ok(Talk::serve_env(facts, &[("MACHINA_LEASE_ENFORCE", "1")]))
}

/// Lease tier of a mapped tool: the configured one, else the number in the name of its role.
pub(crate) fn tier_of(facts: &Facts, name: &str) -> u64 {
    let by_name = name.strip_prefix("tier").and_then(|digits| digits.parse().ok()).unwrap_or(0);
    role(facts, name).and_then(|role| role.tier).unwrap_or(by_name)
}

/// Terms of a requested lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lease<'a> {
    /// Role of the tool.
    pub role: &'a str,
    /// Tier.
    pub tier: u64,
    /// Life in ms.
    pub ttl_ms: u64,
}

impl<'a> Lease<'a> {
    /// Terms for the tool of a role, with the tier that it needs, for a minute.
    pub(crate) fn of(facts: &Facts, role: &'a str) -> Self {
        Self { role, tier: tier_of(facts, role), ttl_ms: 60_000 }
    }
}

impl Talk<'_> {
    /// Sends the configured lease request. The token becomes the secret variable `var`.
    ///
    /// # Errors
    /// Fails if the configuration has no such request.
    pub(crate) fn issue(
        &mut self,
        clause: &str,
        lease: Lease<'_>,
        var: &str,
    ) -> Result<&mut Self, Untestable> {
        let configured = self.facts().features.get("lease");
        let issue = configured.and_then(|lease| lease.get("issue"));
        let token = configured.and_then(|lease| lease.get("token")).and_then(Value::as_str);
        let (Some(issue), Some(token)) = (issue, token) else {
            return Err(Untestable::new("lease", "[features] lease has no `issue` request and no `token`"));
        };
        let values = [
            ("aid", Value::from(self.role(lease.role).aid)),
            ("tier", Value::from(lease.tier)),
            ("ttl_ms", Value::from(lease.ttl_ms)),
        ];
        let request = fill_template(issue, &values)?;
        // The reply may have any form, but it must come.
        let expect = Expect::new(clause, Allowed::of(Outcome::Any));
        self.send(Payload::text(format!("{request}\n")), expect);
        Ok(self.capture(token, var, true))
    }

    /// A request for the tool of a role with a token.
    pub(crate) fn ask_with(&self, role: &str, var: &str) -> Request {
        self.ask(role, "{}").token_var(var)
    }
}

/// True if the configured lease request contains a placeholder.
pub(crate) fn issue_names(facts: &Facts, placeholder: &str) -> bool {
    let issue = facts.features.get("lease").and_then(|lease| lease.get("issue"));
    issue.is_some_and(|issue| issue.to_string().contains(placeholder))
}

/// A listener that answers every request.
pub(crate) fn listener(name: &str, status: u16, location: Option<&str>, body: &str) -> Fixture {
    Fixture::Listener {
        name: name.to_owned(),
        status,
        location: location.map(str::to_owned),
        body: Payload::text(body),
        manner: ListenerSettings::default(),
    }
}

/// `{"url":…}` as a JSON string, with `{{name.member}}` for variables of fixtures.
pub(crate) fn url_input(url: &str) -> Payload {
    let mut payload = Payload::text("\"{\\\"url\\\":\\\"");
    let mut rest = url;
    while let Some((before, tail)) = rest.split_once("{{") {
        let Some((name, after)) = tail.split_once("}}") else { break };
        payload = payload.then(Payload::text(twice_escaped(before))).var(name);
        rest = after;
    }
    payload.then(Payload::text(twice_escaped(rest))).then(Payload::text("\\\"}\""))
}

/// Text as the inside of a JSON string within a JSON string.
fn twice_escaped(text: &str) -> String {
    let inside = |text: &str| {
        let quoted = quoted(text);
        quoted[1..quoted.len() - 1].to_owned()
    };
    inside(&inside(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use peerproof_engine::data::payload::Vars;
    use serde_json::json;

    #[test]
    fn placeholders_take_the_native_type_of_their_value() {
        let template =
            json!({"aid": "x", "tool": "{aid}", "tier": "{tier}", "note": "t{tier}-{{x}}", "n": [1]});
        let values = [("aid", json!("AID.A")), ("tier", json!(2))];
        assert_eq!(
            fill_template(&template, &values).unwrap(),
            json!({"aid": "x", "tool": "AID.A", "tier": 2, "note": "t2-{x}", "n": [1]})
        );
        assert!(fill_template(&json!("{nope}"), &values).is_err());
    }

    #[test]
    fn a_url_is_escaped_for_both_strings() {
        let vars = Vars::from([("web.port".to_owned(), "81".to_owned())]);
        let bytes = url_input("http://h:{{web.port}}\\@x/\"").expand(&vars).unwrap();
        let text: String = serde_json::from_slice(&bytes).unwrap();
        let input: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(input, json!({"url": "http://h:81\\@x/\""}));
    }
}
