//! Scenarios: the calls that a client is told to make (contract §7 "Client").

use std::ops::RangeInclusive;

use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{Fixture, Plan};

/// Timeout of a call that is answered at once, ms.
pub(crate) const TIMEOUT_MS: u64 = 8_000;

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Ref of the call.
    pub name: String,
    /// Method, unique in the scenario, so that it identifies the call.
    pub method: String,
    /// Params, if any.
    pub params: Option<Json>,
    /// Time for all attempts, ms.
    pub timeout_ms: u64,
    /// Number of attempts and mean first delay in ms, if the call sets them.
    pub retry: Option<(u64, u64)>,
    /// Makes the call a notification.
    pub notify: bool,
    /// Name of the batch in which the call is sent.
    pub batch: Option<String>,
    /// Refs of calls that must finish first.
    pub after: Vec<String>,
}

impl Call {
    /// A plain call.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            method: format!("call.{name}"),
            params: Some(Json::object([("of", Json::from(name))])),
            timeout_ms: TIMEOUT_MS,
            retry: None,
            notify: false,
            batch: None,
            after: Vec::new(),
        }
    }

    fn to_json(&self) -> Json {
        let mut call = Json::object([
            ("ref", Json::from(self.name.as_str())),
            ("method", Json::from(self.method.as_str())),
            ("timeout_ms", Json::from(self.timeout_ms)),
        ]);
        if let Some(params) = &self.params {
            call.set("params", params.clone());
        }
        if let Some((max_attempts, base_ms)) = self.retry {
            call.set("retry", retry_json(max_attempts, base_ms));
        }
        if self.notify {
            call.set("notify", true);
        }
        if let Some(batch) = &self.batch {
            call.set("batch", batch.as_str());
        }
        if !self.after.is_empty() {
            call.set("after", Json::array(self.after.iter().map(String::as_str)));
        }
        call
    }

    fn read(value: &Json) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Json::as_str).map(str::to_owned);
        let after = value.get("after").and_then(Json::as_array).unwrap_or_default();
        Some(Self {
            name: text("ref")?,
            method: text("method")?,
            params: value.get("params").cloned(),
            timeout_ms: value.get("timeout_ms").and_then(Json::as_u64)?,
            retry: read_retry(value.get("retry")),
            notify: value.get("notify").and_then(Json::as_bool).unwrap_or_default(),
            batch: text("batch"),
            after: after.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        })
    }
}

fn retry_json(max_attempts: u64, base_ms: u64) -> Json {
    Json::object([("max_attempts", Json::from(max_attempts)), ("base_ms", Json::from(base_ms))])
}

fn read_retry(value: Option<&Json>) -> Option<(u64, u64)> {
    let member = |name: &str| value?.get(name)?.as_u64();
    Some((member("max_attempts")?, member("base_ms")?))
}

/// The key that a client signs with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Auth {
    /// The secret.
    pub key: String,
    /// Name of the key.
    pub key_id: Option<String>,
}

/// Content of the scenario file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Scenario {
    /// Key that signs the requests, if any.
    pub auth: Option<Auth>,
    /// Retry setting of calls without their own.
    pub retry: Option<(u64, u64)>,
    /// The calls.
    pub calls: Vec<Call>,
}

impl Scenario {
    /// The text of the file.
    pub(crate) fn to_text(&self) -> String {
        self.to_json().to_text()
    }

    fn to_json(&self) -> Json {
        let mut scenario = Json::object::<&str>([]);
        if let Some(Auth { key, key_id }) = &self.auth {
            let mut auth = Json::object([("key", Json::from(key.as_str()))]);
            if let Some(key_id) = key_id {
                auth.set("key_id", key_id.as_str());
            }
            scenario.set("auth", auth);
        }
        if let Some((max_attempts, base_ms)) = self.retry {
            scenario.set("retry", retry_json(max_attempts, base_ms));
        }
        scenario.set("calls", Json::array(self.calls.iter().map(Call::to_json)));
        scenario
    }

    /// Reads the scenario from the fixture of a plan.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        Self::read(&told(plan)?)
    }

    /// Place of the first member in a plan's scenario that is not read; `None` if all are read.
    pub(crate) fn unread(plan: &Plan) -> Option<String> {
        let told = told(plan)?;
        unread(&told, &Self::read(&told)?.to_json(), "")
    }

    fn read(value: &Json) -> Option<Self> {
        let auth = value.get("auth").and_then(|auth| {
            let text = |name: &str| auth.get(name).and_then(Json::as_str).map(str::to_owned);
            Some(Auth { key: text("key")?, key_id: text("key_id") })
        });
        let calls = value.get("calls")?.as_array()?.iter().map(Call::read).collect::<Option<_>>()?;
        Some(Self { auth, retry: read_retry(value.get("retry")), calls })
    }

    /// Possible lengths in bytes of the line that carries a call: from the request alone in its shortest spelling
    /// to its whole batch in the longest usual one.
    pub(crate) fn request_bytes(&self, call: &Call) -> RangeInclusive<usize> {
        /// Room for ids and signatures.
        const MORE: usize = 512;
        let text = |call: &Call| {
            let method = Json::from(call.method.as_str());
            let mut request =
                Json::object([("jsonrpc", Json::from("2.0")), ("id", Json::from(0)), ("method", method)]);
            call.params.iter().for_each(|params| request.set("params", params.clone()));
            request.to_text()
        };
        let escaped = |sign: char| if sign.is_ascii() { 1 } else { 6 * sign.len_utf16() };
        let together = self
            .calls
            .iter()
            .filter(|other| other.name == call.name || call.batch.is_some() && other.batch == call.batch);
        text(call).len()..=together.map(|call| MORE + text(call).chars().map(escaped).sum::<usize>()).sum()
    }

    /// Number of attempts and mean first delay in ms of a call, if set.
    pub(crate) fn retry_of(&self, call: &Call) -> Option<(u64, u64)> {
        call.retry.or(self.retry)
    }
}

/// JSON of the scenario file of a plan.
fn told(plan: &Plan) -> Option<Json> {
    let content = plan.fixtures.iter().find_map(|fixture| match fixture {
        Fixture::File { name, content, .. } if name == super::SCENARIO => Some(content),
        _ => None,
    })?;
    let text = content.expand(&Vars::new()).ok()?;
    Some(json::decode(&text, &DecodeLimits::default()).ok()?.value)
}

/// Place of the first member of `told` that `read` lacks.
fn unread(told: &Json, read: &Json, place: &str) -> Option<String> {
    match (told, read) {
        (Json::Object(members), Json::Object(_)) => members.iter().find_map(|(name, value)| {
            let place = format!("{place}/{name}");
            match read.get(name) {
                Some(read) => unread(value, read, &place),
                None => Some(place),
            }
        }),
        (Json::Array(items), Json::Array(read)) => {
            let mut pairs = items.iter().zip(read).enumerate();
            pairs.find_map(|(at, (item, read))| unread(item, read, &format!("{place}/{at}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_with_a_member_that_is_not_read_is_told_by_its_place() {
        let retry = Some((3, 50));
        let call = Call {
            notify: true,
            batch: Some("b".to_owned()),
            after: vec!["x".to_owned()],
            retry,
            ..Call::new("a")
        };
        let auth = Some(Auth { key: "k".to_owned(), key_id: Some("1".to_owned()) });
        let text = Scenario { auth, retry, calls: vec![Call::new("x"), call] }.to_text();
        let unread = |text: &str| {
            let content = peerproof_engine::data::payload::Payload::text(text);
            let (name, mode, kept) = (super::super::SCENARIO.to_owned(), None, false);
            Scenario::unread(&Plan {
                fixtures: vec![Fixture::File { name, content, mode, kept }],
                ..Plan::default()
            })
        };
        assert_eq!(unread(&text), None);
        for (member, place) in
            [("key_id", "/auth/key_idx"), ("notify", "/calls/1/notifyx"), ("base_ms", "/retry")]
        {
            let wrong = text.replacen(&format!("\"{member}\""), &format!("\"{member}x\""), 1);
            assert_eq!(unread(&wrong).as_deref(), Some(place), "{wrong}");
        }
    }
}
