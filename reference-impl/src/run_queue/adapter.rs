//! The HTTP adapter: a request in, a reply out, and a job in the inbox.

use sha2::{Digest, Sha256};

use super::enqueue::{Refused, enqueue};
use super::{Config, Parts};
use crate::http::HttpRequest;
use crate::json::write_str;
use crate::run_log::choices::Verdict;

/// Handler of `POST /enqueue` and `GET /health`.
pub struct Adapter {
    config: Config,
    parts: Parts,
    put: u64,
}

impl Adapter {
    /// Creates an adapter for a queue.
    pub fn new(config: Config, parts: Parts) -> Self {
        Self { config, parts, put: 0 }
    }

    /// Configuration of the adapter.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Status and body of the reply to a request.
    pub fn answer(&mut self, request: &HttpRequest) -> (u16, Vec<u8>) {
        self.respond(request).unwrap_or_else(|(status, why)| {
            let mut body = b"{\"error\":".to_vec();
            write_str(&mut body, &why);
            body.push(b'}');
            (status, body)
        })
    }

    fn respond(&mut self, request: &HttpRequest) -> Result<(u16, Vec<u8>), (u16, String)> {
        let Config { choices, token, .. } = &self.config;
        let allow = |verdict: Verdict, status, why: &str| verdict.allow((status, why.to_owned()));
        let is_authorized = token
            .as_ref()
            .is_none_or(|token| self.parts.ways.is_authorized(request.authorization.as_deref(), token));
        let (path, query) = match request.target.split_once('?') {
            Some((path, _)) => (path, true),
            None => (&*request.target, false),
        };
        if path == "/health"
            && request.method == "GET"
            && (is_authorized || choices.health_without_token == 200)
        {
            return Ok((200, b"{\"ok\":true}".to_vec()));
        }
        if !is_authorized {
            return Err((401, "a token is needed".to_owned()));
        }
        if path != "/enqueue" {
            return Err((404, "there is /enqueue and /health".to_owned()));
        }
        if query {
            allow(choices.query_string, 404, "nothing stands behind the path")?;
        }
        if request.method != "POST" {
            return Err((405, "jobs are posted".to_owned()));
        }
        if request.is_chunked {
            allow(choices.chunked, 501, "bodies come by their length")?;
        }
        let content_type = request.content_type.as_deref().unwrap_or("application/json");
        let is_json = content_type.split(';').next().unwrap_or_default().trim();
        if !is_json.eq_ignore_ascii_case("application/json") {
            allow(choices.content_type_other, 415, "jobs are JSON")?;
        }
        let Some(body) = &request.body else { return Err((413, "the job is too large".to_owned())) };
        match enqueue(body, &self.config, &mut self.parts, &mut self.put) {
            Ok(name) => Ok((202, self.parts.ways.told(&name).into_bytes())),
            Err(refused) => {
                let status = if matches!(refused, Refused::Malformed(_)) { 400 } else { 500 };
                Err((status, refused.to_string()))
            }
        }
    }
}

/// True if an `Authorization` header bears the token. Digests are compared, so that the time does not reveal where
/// they differ.
pub(crate) fn token_matches(authorization: Option<&str>, token: &str) -> bool {
    let Some((scheme, given)) = authorization.and_then(|header| header.split_once(' ')) else { return false };
    let digest = |text: &str| -> [u8; 32] { Sha256::digest(text.as_bytes()).into() };
    scheme.eq_ignore_ascii_case("Bearer") && digest(given) == digest(token)
}
