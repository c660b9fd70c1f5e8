//! Parts of a run on several machines.

use std::str::FromStr;

use peerproof_engine::data::blame::Misconfigured;
use sha2::{Digest as _, Sha256};

/// Part of a run on several machines: `hash:k/n`, `k` from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    part: u64,
    parts: u64,
}

impl Shard {
    /// Number of the part, and number of parts.
    pub fn numbers(self) -> (u64, u64) {
        (self.part, self.parts)
    }

    /// True if the check `id` belongs to this part. Equal on every machine and in every version.
    pub fn takes(self, id: &str) -> bool {
        let hash = Sha256::digest(id.as_bytes());
        let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        number % self.parts + 1 == self.part
    }
}

impl FromStr for Shard {
    type Err = Misconfigured;

    fn from_str(text: &str) -> Result<Self, Misconfigured> {
        let numbers = || {
            let (part, parts) = text.strip_prefix("hash:")?.split_once('/')?;
            Some((part.parse().ok()?, parts.parse().ok()?))
        };
        match numbers() {
            Some((part, parts)) if (1..=parts).contains(&part) => Ok(Self { part, parts }),
            _ => Err("it must be hash:k/n with k from 1 to n, such as hash:1/4".into()),
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "hash:{}/{}", self.part, self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_in_exactly_one_shard() {
        let shards: Vec<Shard> = (1..=3).map(|part| format!("hash:{part}/3").parse().unwrap()).collect();
        for id in ["a", "b", "toolhost/serve/json/nan"] {
            assert_eq!(shards.iter().filter(|shard| shard.takes(id)).count(), 1, "{id}");
        }
        for bad in ["1/3", "hash:0/3", "hash:4/3", "hash:1/0", "hash:a/b"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
        assert_eq!(shards[1].to_string(), "hash:2/3");
    }
}
