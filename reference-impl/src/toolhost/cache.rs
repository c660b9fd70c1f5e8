//! The idempotency cache of serve mode (IPC §3b, §7; contract §1).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::choices::KeysGivenUp;
use super::tool::Status;
use crate::json::{RawStr, Text};
use crate::machine::Millis;

/// Idempotency key. A long one is stored as its SHA-256, so that a thousand 10 MB keys do not need 10 GB.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(Arc<[u8]>);

/// Longest key in bytes that is stored itself.
const PLAIN_KEY_BYTES_MAX: usize = 128;

impl Key {
    /// Creates the key of a request; `None` for `""`, which is no key.
    pub fn new(key: RawStr<'_>) -> Option<Self> {
        let bytes = key.bytes();
        if bytes.is_empty() {
            return None;
        }
        if bytes.len() <= PLAIN_KEY_BYTES_MAX {
            return Some(Self(bytes.as_ref().into()));
        }
        // UTF-8 never begins with 0xFF, so a digest never equals a plain key.
        let mut digest = vec![0xFF];
        digest.extend_from_slice(&Sha256::digest(&bytes));
        Some(Self(digest.into()))
    }
}

/// First result of a keyed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Tool that ran.
    pub aid: Arc<str>,
    /// Fingerprint of the input as a JSON value, if other inputs are refused.
    pub input: Option<[u8; 32]>,
    /// Outcome.
    pub status: Status,
    /// Escaped `output_json` of a success, as in a reply.
    pub output: Option<Box<str>>,
    /// `error` of a failure.
    pub error: Text,
}

/// Store for the first results of keyed requests.
pub trait Cache: Send {
    /// Live entry of `key`.
    fn lookup(&mut self, key: &Key, now: Millis) -> Option<&Entry>;
    /// Stores `entry`. There must be no live entry of that key.
    fn insert(&mut self, key: Key, entry: Entry, now: Millis);
}

/// The correct [`Cache`]: entries live `ttl_ms` from the end of the first execution, independent of later hits.
/// [`FixedCache::giving_up`] decides which entries make room.
///
/// It holds at most `entries_max` replies.
#[derive(Debug)]
pub struct FixedCache {
    entries_max: usize,
    ttl_ms: u64,
    given_up: KeysGivenUp,
    entries: HashMap<Key, Entry>,
    /// Keys by time of insertion, oldest first, one per entry.
    order: VecDeque<(Millis, Key)>,
}

impl FixedCache {
    /// Creates a cache of up to `entries_max` entries that live `ttl_ms`. The oldest makes room.
    pub fn new(entries_max: usize, ttl_ms: u64) -> Self {
        let given_up = KeysGivenUp::Oldest;
        Self { entries_max, ttl_ms, given_up, entries: HashMap::new(), order: VecDeque::new() }
    }

    /// Changes which entries make room.
    #[must_use]
    pub(crate) fn giving_up(mut self, given_up: KeysGivenUp) -> Self {
        self.given_up = given_up;
        self
    }

    fn make_room(&mut self) {
        match self.given_up {
            KeysGivenUp::Oldest => self.drop_oldest(),
            KeysGivenUp::Another => {
                if let Some((_, key)) = self.order.pop_back() {
                    self.entries.remove(&key);
                }
            }
            KeysGivenUp::Several => (0..self.order.len().div_ceil(2)).for_each(|_| self.drop_oldest()),
        }
    }

    fn drop_expired(&mut self, now: Millis) {
        while let Some((inserted, _)) = self.order.front()
            && now.saturating_sub(*inserted) >= self.ttl_ms
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_front() {
            self.entries.remove(&key);
        }
    }
}

impl Cache for FixedCache {
    fn lookup(&mut self, key: &Key, now: Millis) -> Option<&Entry> {
        self.drop_expired(now);
        self.entries.get(key)
    }

    fn insert(&mut self, key: Key, entry: Entry, now: Millis) {
        self.drop_expired(now);
        if self.entries_max == 0 {
            return;
        }
        while self.entries.len() >= self.entries_max {
            self.make_room();
        }
        self.order.push_back((now, key.clone()));
        self.entries.insert(key, entry);
    }
}
