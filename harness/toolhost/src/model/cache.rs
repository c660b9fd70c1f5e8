//! What is known of the idempotency cache.

use std::collections::BTreeMap;

/// Microseconds after which a key is still held, and after which it is forgotten, with the margin for clocks.
const HELD_US: u64 = 59_500_000;
const FORGOTTEN_US: u64 = 60_500_000;
/// Keys that are held at the same time.
const KEYS_MAX: usize = 1_024;

/// The first result of a keyed request.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub aid: String,
    /// Text of `input_json`.
    pub input: Option<String>,
    /// `ok` of the first reply and its output, where they are known.
    pub result: Option<(bool, Option<String>)>,
    /// It is certainly there while its time lasts.
    pub certain: bool,
    /// Its first execution began no earlier and ended no later, microseconds.
    pub from_us: u64,
    pub to_us: u64,
}

/// How an entry stands at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Held,
    Perhaps,
    Gone,
}

impl Entry {
    /// Whether it is held by the time when a request between `from_us` and `to_us` is looked at.
    pub fn life(&self, from_us: u64, to_us: u64) -> Life {
        if from_us.saturating_sub(self.to_us) > FORGOTTEN_US {
            Life::Gone
        } else if self.certain && to_us.saturating_sub(self.from_us) < HELD_US {
            Life::Held
        } else {
            Life::Perhaps
        }
    }
}

/// All keys that were seen.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// By key; one entry for each aid that came with it.
    entries: BTreeMap<String, Vec<Entry>>,
    /// Number of entries that were ever made.
    made: usize,
    /// There may be entries that are not known.
    pub blurred: bool,
}

impl Cache {
    /// The entries under `key`.
    pub fn of(&self, key: &str) -> &[Entry] {
        self.entries.get(key).map_or(&[], Vec::as_slice)
    }

    /// Holds `entry` in place of one of the same aid; entries of other aids may have made way for it.
    pub fn insert(&mut self, key: &str, entry: Entry) {
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

    /// The entry of `aid` under `key` may have been made anew since `from_us`.
    pub fn doubt(&mut self, key: &str, entry: Entry) {
        let from_us = self.of(key).iter().find(|known| known.aid == entry.aid).map(|known| known.from_us);
        let entry =
            Entry { certain: false, result: None, from_us: from_us.unwrap_or(entry.from_us), ..entry };
        self.insert(key, entry);
    }
}
