//! Scenarios: what a client is told to do (contract §7 "Client").

use std::ops::RangeInclusive;

use peerproof_engine::json::{self, DecodeLimits, Json};
use peerproof_engine::payload::Vars;
use peerproof_engine::plan::{Fixture, Plan};

/// Time for a call that is answered at once, ms.
pub const TIMEOUT_MS: u64 = 8_000;

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its ref.
    pub name: String,
    /// What is called; no other call of the scenario has it, so that requests are told apart by it.
    pub method: String,
    /// With what.
    pub params: Option<Json>,
    /// Time for all attempts, ms.
    pub timeout_ms: u64,
    /// Attempts in all and middle of the first delay in ms, where the call says so.
    pub retry: Option<(u64, u64)>,
    /// It is a notification.
    pub notify: bool,
    /// The array in which it goes out.
    pub batch: Option<String>,
    /// Refs of the calls that it comes after.
    pub after: Vec<String>,
}

impl Call {
    /// A plain call.
    pub fn new(name: &str) -> Self {
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
pub struct Auth {
    /// The secret.
    pub key: String,
    /// Its name.
    pub key_id: Option<String>,
}

/// All that a client is told.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scenario {
    /// Requests are signed.
    pub auth: Option<Auth>,
    /// For calls that do not say themselves.
    pub retry: Option<(u64, u64)>,
    /// The calls.
    pub calls: Vec<Call>,
}

impl Scenario {
    /// The text of the file.
    pub fn to_text(&self) -> String {
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

    /// The scenario of a plan, out of its fixture.
    pub fn of(plan: &Plan) -> Option<Self> {
        Self::read(&told(plan)?)
    }

    /// The place of a member in the scenario of a plan that is not read; `None` where all of it is.
    pub fn unread(plan: &Plan) -> Option<String> {
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

    /// Bytes of the line in which a call goes out: of its request alone in the shortest spelling, and of all that goes out with
    /// it in the longest that is usual.
    pub fn request_bytes(&self, call: &Call) -> RangeInclusive<usize> {
        /// Ids and signatures.
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

    /// Attempts in all and middle of the first delay in ms that hold for a call, where the scenario says.
    pub fn retry_of(&self, call: &Call) -> Option<(u64, u64)> {
        call.retry.or(self.retry)
    }
}

/// The file of a plan's scenario.
fn told(plan: &Plan) -> Option<Json> {
    let content = plan.fixtures.iter().find_map(|fixture| match fixture {
        Fixture::File { name, content, .. } if name == super::SCENARIO => Some(content),
        _ => None,
    })?;
    let text = content.expand(&Vars::new()).ok()?;
    Some(json::decode(&text, &DecodeLimits::default()).ok()?.value)
}

/// The place of the first member of `told` that `read` lacks.
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
            let content = peerproof_engine::payload::Payload::text(text);
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
