//! Knowledge about the idempotency cache.

use std::collections::BTreeMap;

/// Time in microseconds until which a key is surely held, and after which it is surely forgotten, with a margin for
/// clocks.
const HELD_US: u64 = 59_500_000;
const FORGOTTEN_US: u64 = 60_500_000;
/// Number of keys held at the same time.
const KEYS_MAX: usize = 1_024;

/// The first result of a keyed request.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub aid: String,
    /// Text of `input_json`.
    pub input: Option<String>,
    /// `ok` and output of the first reply, if known.
    pub result: Option<(bool, Option<String>)>,
    /// True if it is surely held until it expires.
    pub certain: bool,
    /// Earliest start and latest end of its first execution, in microseconds.
    pub from_us: u64,
    pub to_us: u64,
}

/// State of an entry at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    Held,
    Perhaps,
    Gone,
}

impl Entry {
    /// State of the entry for a request that is processed between `from_us` and `to_us`.
    pub(crate) fn life(&self, from_us: u64, to_us: u64) -> EntryState {
        if from_us.saturating_sub(self.to_us) > FORGOTTEN_US {
            EntryState::Gone
        } else if self.certain && to_us.saturating_sub(self.from_us) < HELD_US {
            EntryState::Held
        } else {
            EntryState::Perhaps
        }
    }
}

/// All keys that were used.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Entries by key, one per aid.
    entries: BTreeMap<String, Vec<Entry>>,
    /// Number of entries made so far.
    made: usize,
    /// True if there may be unknown entries.
    pub blurred: bool,
}

impl Cache {
    /// Entries under `key`.
    pub(super) fn of(&self, key: &str) -> &[Entry] {
        self.entries.get(key).map_or(&[], Vec::as_slice)
    }

    /// Adds `entry`, replacing one of the same aid. Entries of other aids become uncertain.
    pub(super) fn insert(&mut self, key: &str, entry: Entry) {
        let entries = self.entries.entry(key.to_owned()).or_default();
        entries.retain(|known| known.aid != entry.aid);
        let others = !entries.is_empty();
        for known in entries.iter_mut() {
            known.certain = false;
        }
        let certain = entry.certain && !others;
        entries.push(Entry { certain, ..entry });
        self.made += 1;
        if self.made > KEYS_MAX {
            for entry in self.entries.values_mut().flatten() {
                entry.certain = false;
            }
        }
    }

    /// Records that the entry of `aid` under `key` may have been replaced.
    pub(crate) fn doubt(&mut self, key: &str, entry: Entry) {
        let from_us = self.of(key).iter().find(|known| known.aid == entry.aid).map(|known| known.from_us);
        let entry =
            Entry { certain: false, result: None, from_us: from_us.unwrap_or(entry.from_us), ..entry };
        self.insert(key, entry);
    }
}
