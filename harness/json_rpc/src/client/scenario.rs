//! Scenarios: what a client is told to do (contract §7 "Client").

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

    /// With these params (JSON text), or none.
    #[must_use]
    pub fn params(mut self, text: Option<&str>) -> Self {
        self.params = text.and_then(|text| text.parse().ok());
        self
    }

    /// With this time.
    #[must_use]
    pub fn timeout_ms(mut self, ms: u64) -> Self {
        self.timeout_ms = ms;
        self
    }

    /// Tried so often, with this middle of the first delay in ms.
    #[must_use]
    pub fn retry(mut self, max_attempts: u64, base_ms: u64) -> Self {
        self.retry = Some((max_attempts, base_ms));
        self
    }

    /// A notification.
    #[must_use]
    pub fn notify(mut self) -> Self {
        self.notify = true;
        self
    }

    /// In an array with others.
    #[must_use]
    pub fn batch(mut self, name: &str) -> Self {
        self.batch = Some(name.to_owned());
        self
    }

    /// After another.
    #[must_use]
    pub fn after(mut self, name: &str) -> Self {
        self.after.push(name.to_owned());
        self
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
        scenario.to_text()
    }

    /// The scenario of a plan, out of its fixture.
    pub fn of(plan: &Plan) -> Option<Self> {
        let content = plan.fixtures.iter().find_map(|fixture| match fixture {
            Fixture::File { name, content, .. } if name == super::SCENARIO => Some(content),
            _ => None,
        })?;
        let text = content.expand(&Vars::new()).ok()?;
        let value = json::decode(&text, &DecodeLimits::default()).ok()?.value;
        let auth = value.get("auth").and_then(|auth| {
            let text = |name: &str| auth.get(name).and_then(Json::as_str).map(str::to_owned);
            Some(Auth { key: text("key")?, key_id: text("key_id") })
        });
        let calls = value.get("calls")?.as_array()?.iter().map(Call::read).collect::<Option<_>>()?;
        Some(Self { auth, retry: read_retry(value.get("retry")), calls })
    }

    /// Attempts in all and middle of the first delay in ms that hold for a call, where the scenario says.
    pub fn retry_of(&self, call: &Call) -> Option<(u64, u64)> {
        call.retry.or(self.retry)
    }
}
