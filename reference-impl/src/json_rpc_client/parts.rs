//! The replaceable parts of a client.

use super::Config;
use super::answer::{Reader, StrictReader};
use super::backoff::{Backoff, Exponential};
use crate::json::Value;
use crate::json_rpc::{AuthConfig, signature};

/// Source of request ids.
pub trait Ids: Send {
    /// Returns an id that no pending request has.
    fn next(&mut self) -> Value;
}

/// The correct ids: 1, 2, 3 …
#[derive(Debug, Default)]
pub struct Counter {
    last: i64,
}

impl Ids for Counter {
    fn next(&mut self) -> Value {
        self.last += 1;
        Value::Number(self.last.into())
    }
}

/// Signer of requests.
pub trait Signer: Send {
    /// Returns `message`, the text of a request without `auth`, with a signature.
    fn sign(&mut self, message: Vec<u8>, unix_s: u64) -> Vec<u8>;
}

/// The correct signer.
#[derive(Debug)]
pub struct HmacSigner {
    key: AuthConfig,
    nonce_seed: u64,
    count: u64,
}

impl HmacSigner {
    /// Creates a signer with `key`; the seed determines the nonces.
    pub fn new(key: AuthConfig, nonce_seed: u64) -> Self {
        Self { key, nonce_seed, count: 0 }
    }
}

impl Signer for HmacSigner {
    fn sign(&mut self, message: Vec<u8>, unix_s: u64) -> Vec<u8> {
        self.count += 1;
        let mut auth = format!(
            ",\"auth\":{{\"timestamp\":{unix_s},\"nonce\":\"{:016x}-{}\"",
            self.nonce_seed, self.count
        )
        .into_bytes();
        if let Some(key_id) = &self.key.key_id {
            auth.extend_from_slice(b",\"key_id\":");
            crate::json::write_str(&mut auth, key_id);
        }
        let mut text = message;
        text.pop();
        text.extend_from_slice(&auth);
        let whole = [text.as_slice(), b"}}"].concat();
        let signature = signature(&self.key.key, &whole).unwrap_or_default();
        text.extend_from_slice(format!(",\"signature\":\"{signature}\"}}}}").as_bytes());
        text
    }
}

/// Components of a client.
pub struct Components {
    /// Source of ids.
    pub ids: Box<dyn Ids>,
    /// Delays of retries.
    pub backoff: Box<dyn Backoff>,
    /// Reader of responses.
    pub reader: Box<dyn Reader>,
    /// Signer, if the scenario has a key.
    pub signer: Option<Box<dyn Signer>>,
}

impl Components {
    /// Creates the correct components.
    pub fn new(config: &Config) -> Self {
        let signer =
            |key: &AuthConfig| Box::new(HmacSigner::new(key.clone(), config.rng_seed)) as Box<dyn Signer>;
        Self {
            ids: Box::new(Counter::default()),
            backoff: Box::new(Exponential::new(config.rng_seed)),
            reader: Box::new(StrictReader),
            signer: config.scenario.auth.as_ref().map(signer),
        }
    }
}
