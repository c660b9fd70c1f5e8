//! Knowledge about the leases of a session.

use std::collections::BTreeMap;

use super::super::expect::{Allowed, Match, Outcome};
use super::request::Token;

/// Margin for clocks in microseconds.
const MARGIN_US: u64 = 500_000;

/// A lease whose token was captured.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// Requested tool and tier.
    pub aid: String,
    pub tier: u64,
    /// Requested life in ms, if every peer grants it.
    pub ttl_ms: Option<u64>,
    /// Earliest and latest time of issue, in microseconds.
    pub from_us: u64,
    pub to_us: u64,
    /// True if it is spent; `None` if unknown.
    pub spent: Option<bool>,
}

/// Effect of a token on a request.
#[derive(Debug, Clone)]
pub(super) enum Gate {
    /// The request may run.
    Open,
    /// It is refused in one of these ways, for this clause.
    Shut(Vec<Allowed>, &'static str),
    /// It may run or be refused in one of these ways.
    Perhaps(Vec<Allowed>),
}

/// All leases by the variable of their token.
#[derive(Debug, Default)]
pub(super) struct Leases {
    known: BTreeMap<String, Lease>,
    /// True if a lease was issued in this session.
    pub any_issued: bool,
}

fn rejected() -> Allowed {
    Allowed::of(Outcome::LeaseRejected)
}

impl Leases {
    pub(crate) fn issue(&mut self, name: &str, lease: Option<Lease>) {
        match lease {
            Some(lease) => drop(self.known.insert(name.to_owned(), lease)),
            None => drop(self.known.remove(name)),
        }
    }

    pub(super) fn get_mut(&mut self, token: &Token) -> Option<&mut Lease> {
        match token {
            Token::Captured(name) => self.known.get_mut(name),
            _ => None,
        }
    }

    /// Records that any lease may have been spent.
    pub(crate) fn doubt(&mut self) {
        for lease in self.known.values_mut().filter(|lease| lease.spent == Some(false)) {
            lease.spent = None;
        }
    }

    /// Effect of `token` on a request for `aid` of `tier` that is processed between `from_us` and `to_us`.
    pub(super) fn gate(&self, token: &Token, aid: &str, tier: u64, from_us: u64, to_us: u64) -> Gate {
        let required = Allowed::of(Outcome::LeaseRequired)
            .member("/tier", Match::Equals(tier.to_string()))
            .member("/aid", Match::Equals(super::super::talk::quoted(aid)));
        let lease = match token {
            Token::Absent => return Gate::Shut(vec![required], "TH-LEASE-02"),
            Token::Empty => {
                let required = Allowed::of(Outcome::LeaseRequired);
                return Gate::Shut(vec![required, rejected()], "TH-LEASE-14");
            }
            Token::Altered => return Gate::Shut(vec![rejected()], "TH-LEASE-04"),
            Token::Literal(text) if !self.any_issued || text.contains("nobody") => {
                return Gate::Shut(vec![rejected()], "TH-LEASE-04");
            }
            Token::Literal(_) => return Gate::Perhaps(vec![rejected()]),
            Token::Captured(name) => match self.known.get(name) {
                None => return Gate::Perhaps(vec![rejected()]),
                Some(lease) => lease,
            },
        };
        if lease.spent == Some(true) {
            return Gate::Shut(vec![rejected()], "TH-LEASE-06");
        }
        if lease.aid != aid {
            return Gate::Shut(vec![rejected()], "TH-LEASE-07");
        }
        if lease.tier < tier {
            return Gate::Shut(vec![rejected()], "TH-LEASE-08");
        }
        let Some(ttl_us) = lease.ttl_ms.map(|ms| ms * 1_000) else { return Gate::Perhaps(vec![rejected()]) };
        if from_us.saturating_sub(lease.to_us) > ttl_us + MARGIN_US {
            return Gate::Shut(vec![rejected()], "TH-LEASE-04");
        }
        let lives = to_us.saturating_sub(lease.from_us) + MARGIN_US < ttl_us;
        if lives && lease.spent == Some(false) { Gate::Open } else { Gate::Perhaps(vec![rejected()]) }
    }
}
