//! Valid requests for the tools that a peer has.

use super::super::role::{ROLES, Role, role};
use super::super::talk::Request;
use super::{GeneratedLine, Pace, values};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::json::{Json, Presentation, present};
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::rng::Rng;

/// Roles that a conversation may use at any time. Fetching is excluded, because its target is unknown.
const PLAIN_ROLES: &[&str] = &["any", "echo", "counter", "put", "get", "remove", "fail", "blob", "noise"];

/// True if leases can be requested: the peer has a template, and a tool that requires one.
pub(super) fn can_lease(facts: &Facts) -> bool {
    let template = facts.features.get("lease").and_then(|lease| lease.get("issue")?.as_object());
    template.is_some() && ["tier1", "tier2", "tier3"].iter().any(|name| facts.roles.contains_key(*name))
}

/// A requested lease.
struct Issued {
    var: String,
    role: &'static str,
}

/// Generator of requests. It remembers keys and leases for repeated use.
pub(super) struct Maker {
    roles: Vec<(&'static str, Role)>,
    idempotency: bool,
    ds_state: bool,
    keys: Vec<(String, &'static str, String)>,
    enforce: bool,
    issue: Option<serde_json::Value>,
    issued: Vec<Issued>,
    leases: usize,
    pace: Pace,
}

/// Number of remembered keys, and of those kept for the next chapter.
const KEYS_MAX: usize = 40;
const KEYS_KEPT: usize = 8;

impl Maker {
    pub(super) fn new(facts: &Facts, enforce: bool, pace: Pace) -> Self {
        let issue = facts.features.get("lease").and_then(|lease| lease.get("issue")).cloned();
        Self {
            roles: ROLES.iter().filter_map(|(name, _)| Some((*name, role(facts, name)?))).collect(),
            idempotency: facts.claims("idempotency"),
            ds_state: facts.claims("ds_state"),
            keys: Vec::new(),
            enforce,
            issue,
            issued: Vec::new(),
            leases: 0,
            pace,
        }
    }

    /// Forgets all but the latest keys, to make room for those of the next chapter.
    pub(crate) fn forget(&mut self) {
        let spare = self.keys.len().saturating_sub(KEYS_KEPT);
        self.keys.drain(..spare);
    }

    /// True if a slow request may come now: always at a close pace, else once in `times`.
    pub(crate) fn affords(&self, times: u64, rng: &mut Rng) -> bool {
        self.pace == Pace::Close || rng.chance(1, times)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.roles.iter().any(|(role, _)| *role == name)
    }

    fn role(&self, name: &str) -> Option<&Role> {
        self.roles.iter().find(|(role, _)| *role == name).map(|(_, role)| role)
    }

    fn aid(&self, name: &str) -> String {
        self.role(name).map_or_else(|| "AID.NO.SUCH.v1".to_owned(), |role| role.aid.clone())
    }

    /// Random role from `names` that the peer has.
    fn pick(&self, names: &[&'static str], rng: &mut Rng) -> &'static str {
        let there: Vec<&'static str> = names.iter().copied().filter(|name| self.has(name)).collect();
        if there.is_empty() { "any" } else { rng.pick::<&str>(&there) }
    }

    /// Valid input of the role's tool; `None` to omit it.
    fn input(&self, role: &str, rng: &mut Rng) -> Option<Json> {
        let slot = |rng: &mut Rng| Json::from(rng.below(8));
        Some(match role {
            "any" => {
                let known = self.role("any").and_then(|role| role.input.clone());
                known?.to_string().parse().ok()?
            }
            "echo" => values::object(rng, 3),
            "counter" | "tier1" | "tier2" | "tier3" | "crash" if rng.chance(1, 8) => return None,
            "put" => Json::object([("slot", slot(rng)), ("artifact", values::artifact(rng))]),
            "get" | "remove" => Json::object([("slot", slot(rng))]),
            "fail" => {
                let message = if rng.chance(1, 8) { String::new() } else { values::string(rng) };
                Json::object([("message", Json::from(message))])
            }
            "sleep" => {
                let ms_max = if self.affords(8, rng) { 7 } else { 1 };
                Json::object([("ms", Json::from(rng.range(0..=ms_max)))])
            }
            "blob" => {
                let bytes = if rng.chance(1, 12) && self.affords(4, rng) {
                    rng.range(20_000..=28_000)
                } else {
                    rng.below(300)
                };
                Json::object([("bytes", Json::from(bytes))])
            }
            "noise" => {
                let shouts = ["", "noise", "line\n", "{\"ok\":true}\n", "\u{e9}\n\n"];
                Json::object([
                    ("stdout", Json::from(*rng.pick(&shouts))),
                    ("stderr", Json::from(*rng.pick(&shouts))),
                ])
            }
            _ => Json::Object(Vec::new()),
        })
    }

    /// The members of a valid request.
    fn members(&self, role: &'static str, input: Option<&str>) -> Json {
        let mut request = Json::object([("aid", Json::from(self.aid(role)))]);
        if let Some(input) = input {
            request.set("input_json", input);
        }
        request
    }

    fn text(&self, value: &Json, rng: &mut Rng) -> String {
        match rng.below(10) {
            0 => present(value, *rng.pick(&Presentation::ALL), &mut || rng.next_u64()),
            _ => value.to_text(),
        }
    }

    fn input_text(&self, role: &str, rng: &mut Rng) -> Option<String> {
        let input = self.input(role, rng)?;
        // Unrequested members belong to the request, not to the input of a tool.
        let how = *rng.pick(&Presentation::ALL[..4]);
        // How a tool reads its own numbers is nobody's promise.
        let counts = matches!(role, "blob" | "sleep") && how == Presentation::NumberSpelling;
        Some(match rng.below(10) {
            0 if !counts => present(&input, how, &mut || rng.next_u64()),
            _ => input.to_text(),
        })
    }

    /// A valid request for `role`.
    pub(super) fn valid(&mut self, role: &'static str, rng: &mut Rng) -> GeneratedLine {
        let input = self.input_text(role, rng);
        let request = self.members(role, input.as_deref());
        self.made(&request, role, rng)
    }

    fn made(&self, request: &Json, role: &str, rng: &mut Rng) -> GeneratedLine {
        let mut text = self.text(request, rng);
        if rng.chance(1, 60) {
            text.push('\r');
        }
        GeneratedLine {
            allow_ms: if role == "sleep" { 50 } else { 0 },
            ..GeneratedLine { payload: Payload::text(text), ..GeneratedLine::default() }
        }
    }

    /// A request of any kind.
    pub(super) fn any(&mut self, rng: &mut Rng) -> GeneratedLine {
        match rng.below(12) {
            0 | 1 if self.idempotency => self.keyed(rng),
            2 | 3 if self.ds_state => self.state(rng),
            4 if self.has("sleep") && rng.chance(1, 6) && self.affords(16, rng) => self.valid("sleep", rng),
            5 => self.unknown(rng),
            // Leases are not enforced here.
            6 if !self.enforce && self.has("tier1") => {
                let role = self.pick(&["tier1", "tier2", "tier3"], rng);
                self.valid(role, rng)
            }
            _ => {
                let role = self.pick(PLAIN_ROLES, rng);
                self.valid(role, rng)
            }
        }
    }

    /// Request for an unknown tool.
    fn unknown(&self, rng: &mut Rng) -> GeneratedLine {
        let role = self.pick(PLAIN_ROLES, rng);
        let aid = self.aid(role);
        let aid = match rng.below(4) {
            0 => "AID.NO.SUCH.v1".to_owned(),
            1 => format!("{aid}x"),
            2 => format!("{aid}\u{0}"),
            _ => aid.chars().skip(1).collect(),
        };
        let mut request = Json::object([("aid", Json::from(aid))]);
        request.set("input_json", "{}");
        if self.ds_state && rng.chance(1, 3) {
            request.set("ds_state", values::state(rng));
        }
        GeneratedLine::bytes(self.text(&request, rng).as_bytes())
    }

    /// A request that reads or writes slots.
    pub(super) fn state(&mut self, rng: &mut Rng) -> GeneratedLine {
        let role = self.pick(&["put", "get", "get", "get", "remove", "echo", "counter", "fail"], rng);
        let input = self.input_text(role, rng);
        let mut request = self.members(role, input.as_deref());
        if rng.chance(1, 3) {
            request.set("ds_state", values::state(rng));
        }
        self.made(&request, role, rng)
    }

    /// A request with a new or a used key.
    pub(super) fn keyed(&mut self, rng: &mut Rng) -> GeneratedLine {
        let role = self.pick(&["counter", "counter", "echo", "put", "fail", "get"], rng);
        let (key, role, input) = match rng.below(10) {
            // Repeats a request.
            0..=3 if !self.keys.is_empty() => rng.pick(&self.keys).clone(),
            // Repeats a key with another request.
            4 if !self.keys.is_empty() => {
                let (key, ..) = rng.pick(&self.keys).clone();
                (key, role, self.input_text(role, rng).unwrap_or_else(|| "{}".to_owned()))
            }
            5 => {
                let role = self.pick(&["counter", "echo", "get"], rng);
                return self.valid(role, rng);
            }
            6 => (String::new(), role, self.input_text(role, rng).unwrap_or_else(|| "{}".to_owned())),
            _ => {
                let key = match rng.below(4) {
                    0 => values::string(rng),
                    1 => format!("k{}\u{0}{}", rng.below(3), rng.below(3)),
                    2 => format!("{}{}", "k".repeat(1_000), rng.below(3)),
                    _ => format!("k{}", rng.below(10)),
                };
                (key, role, self.input_text(role, rng).unwrap_or_else(|| "{}".to_owned()))
            }
        };
        let mut request = self.members(role, Some(&input));
        request.set("idempotency_key", key.as_str());
        if !key.is_empty() && self.keys.len() < KEYS_MAX {
            self.keys.push((key, role, input));
        }
        if self.ds_state && rng.chance(1, 6) {
            request.set("ds_state", values::state(rng));
        }
        self.made(&request, role, rng)
    }

    /// A request with or about leases.
    pub(crate) fn leased(&mut self, rng: &mut Rng) -> GeneratedLine {
        let tiers: [&'static str; 3] = ["tier1", "tier2", "tier3"];
        let role = self.pick(&tiers, rng);
        match rng.below(10) {
            0..=2 => self.issuing(role, rng),
            3..=6 if !self.issued.is_empty() => {
                let at = rng.index(self.issued.len());
                let own = self.issued[at].role;
                let var = self.issued[at].var.clone();
                let role = if rng.chance(4, 5) { own } else { role };
                self.with_token(role, Payload::default().var(var), rng)
            }
            7 => {
                let token = *rng.pick(&["tok_of_nobody", "", "nobody\u{0}"]);
                let token = Json::from(token).to_text();
                self.with_token(role, Payload::text(&token[1..token.len() - 1]), rng)
            }
            8 => self.valid(role, rng),
            _ if self.issued.is_empty() || rng.chance(3, 4) => {
                let role = self.pick(PLAIN_ROLES, rng);
                self.valid(role, rng)
            }
            _ => {
                let var = rng.pick(&self.issued).var.clone();
                self.with_token(role, Payload::default().var(var).then(Payload::text("x")), rng)
            }
        }
    }

    fn with_token(&self, role: &'static str, token: Payload, rng: &mut Rng) -> GeneratedLine {
        let token = Payload::text("\"").then(token).then(Payload::text("\""));
        let mut request = Request::aid(&self.aid(role)).payload("_lease_token", token);
        // A wrong type in another member does not affect the token.
        request = if rng.chance(1, 12) { request.member("input_json", "5") } else { request.input("{}") };
        if self.idempotency && rng.chance(1, 8) {
            request = request.key(&format!("lk{}", rng.below(3)));
        }
        if self.ds_state && rng.chance(1, 8) {
            request = request.state(&values::state(rng).to_text());
        }
        GeneratedLine { payload: request.body(), ..GeneratedLine::default() }
    }

    /// The configured request for a lease.
    fn issuing(&mut self, role: &'static str, rng: &mut Rng) -> GeneratedLine {
        let Some(template) = self.issue.as_ref().and_then(|issue| issue.as_object()).filter(|_| self.enforce)
        else {
            return self.valid(role, rng);
        };
        let own = self.role(role).and_then(|role| role.tier);
        let tier = own.unwrap_or_else(|| role.trim_start_matches("tier").parse().unwrap_or(1));
        let mut request = Json::Object(Vec::new());
        for (name, value) in template {
            let value = match value.as_str() {
                Some("{aid}") => Json::from(self.aid(role)),
                Some("{tier}") if rng.chance(1, 10) => Json::from(rng.range(0..=3)),
                Some("{tier}") => Json::from(tier),
                Some("{ttl_ms}") => Json::from(*rng.pick(&[1_000_u64, 10_000, 60_000, 300_000])),
                _ => match value.to_string().parse() {
                    Ok(value) => value,
                    Err(_) => continue,
                },
            };
            request.set(name, value);
        }
        self.leases += 1;
        let var = format!("token{}", self.leases);
        self.issued.push(Issued { var: var.clone(), role });
        GeneratedLine { issues: Some(var), ..GeneratedLine::bytes(request.to_text().as_bytes()) }
    }

    /// Action id and standard input of a run.
    pub(crate) fn for_run(&mut self, rng: &mut Rng) -> (String, GeneratedLine) {
        let role = self.pick(PLAIN_ROLES, rng);
        let mut request = Json::Object(Vec::new());
        if let Some(input) = self.input_text(role, rng) {
            request.set("input_json", input);
        }
        if self.ds_state && rng.chance(1, 2) {
            request.set("ds_state", values::state(rng));
        }
        let made = self.made(&request, role, rng);
        (self.aid(role), made)
    }

    /// Another action id of this peer.
    pub(crate) fn other_aid(&self, rng: &mut Rng) -> String {
        let role = self.pick(PLAIN_ROLES, rng);
        self.aid(role)
    }
}

/// True if a payload holds a variable, which must not be split.
pub(super) fn has_variable(payload: &Payload) -> bool {
    payload.0.iter().any(|segment| matches!(segment, Segment::Var(_)))
}
