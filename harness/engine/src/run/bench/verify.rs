//! Verification of replies at the speed of a benchmark.
//!
//! A reply that equals one already judged right costs only a comparison. Other replies are judged in full. If the
//! replies never repeat, the first ones are all judged, and later only a sample.

use crate::contract::boundary::workload::ReplyVerifier;
use crate::data::transcript::Secrets;

/// Number of differing replies that are judged before sampling begins.
const JUDGED_AT_FIRST: u64 = 64;
/// Number of differing replies per judged one during sampling.
const SAMPLE: u64 = 64;

/// Verifies the replies of one peer to one workload.
pub(crate) struct Verifier {
    judge: ReplyVerifier,
    known: Vec<Vec<u8>>,
    differing: u64,
    secrets: Secrets,
}

impl Verifier {
    /// Verifier for requests in this many variants. Its error messages show none of `secrets`.
    pub(crate) fn new(judge: ReplyVerifier, variants: usize, secrets: Secrets) -> Self {
        Self { judge, known: vec![Vec::new(); variants.max(1)], differing: 0, secrets }
    }

    /// Verifies the reply (without line feed) to request `index`, which counts from 0 over all variants.
    ///
    /// # Errors
    /// Describes in one phrase what is wrong.
    pub(crate) fn verify(&mut self, index: u64, reply: &[u8]) -> Result<(), String> {
        let variant = (index % self.known.len() as u64) as usize;
        let known = &self.known[variant];
        if !known.is_empty() && known == reply {
            return Ok(());
        }
        self.differing += 1;
        if known.is_empty() || self.differing <= JUDGED_AT_FIRST || self.differing.is_multiple_of(SAMPLE) {
            (self.judge)(variant, reply).map_err(|said| self.without_secrets(variant, reply, said))?;
            reply.clone_into(&mut self.known[variant]);
            return Ok(());
        }
        if reply.is_empty() { Err("an empty reply".to_owned()) } else { Ok(()) }
    }

    /// Replaces secrets in an error message. Judges the reply again with placeholders, because a message may quote only
    /// part of a secret.
    fn without_secrets(&self, variant: usize, reply: &[u8], mut said: String) -> String {
        let mut reply = reply.to_vec();
        if self.secrets.cover(&mut reply)
            && let Err(of_covered) = (self.judge)(variant, &reply)
        {
            said = of_covered;
        }
        self.secrets.cover_text(&mut said);
        said
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn counting() -> (Arc<AtomicU64>, ReplyVerifier) {
        let count = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&count);
        let judge: ReplyVerifier = Arc::new(move |variant, reply| {
            counter.fetch_add(1, Ordering::Relaxed);
            if reply.first() == Some(&(variant as u8)) { Ok(()) } else { Err("other variant".to_owned()) }
        });
        (count, judge)
    }

    #[test]
    fn repeated_replies_are_judged_once() {
        let (count, judge) = counting();
        let mut verifier = Verifier::new(judge, 2, Secrets::default());
        for index in 0..100 {
            verifier.verify(index, &[(index % 2) as u8, 7]).unwrap();
        }
        assert_eq!(count.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_lost_reply_shows_by_its_variant() {
        let mut verifier = Verifier::new(counting().1, 2, Secrets::default());
        verifier.verify(0, &[0]).unwrap();
        assert!(verifier.verify(1, &[0]).is_err());
    }

    #[test]
    fn replies_that_never_repeat_are_sampled() {
        let (count, judge) = counting();
        let mut verifier = Verifier::new(judge, 1, Secrets::default());
        for index in 0..6_400_u64 {
            let mut reply = vec![0];
            reply.extend(index.to_le_bytes());
            verifier.verify(index, &reply).unwrap();
        }
        let judged = count.load(Ordering::Relaxed);
        assert!((64..200).contains(&judged), "{judged}");
        assert!(verifier.verify(6_400, b"").is_err(), "an empty reply is never right");
    }
}
