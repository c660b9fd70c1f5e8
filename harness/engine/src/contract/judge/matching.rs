//! Assignment of messages to requests by key and by fit.
//!
//! Messages come in any order and carry the keys of their requests, or none if a request had no readable key. A faulty
//! peer loses messages, adds some, or changes keys. A message never answers a later request. Within that: a message
//! goes to the request with its key, or else with its key as a value of another type. Messages without a key go to
//! requests that they fit, so that as many requests as possible are answered, the latest earlier requests first.
//! Remaining messages go to remaining requests in order. So one fault gives one finding.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::contract::face::{ExpectedPart, Face, SessionPosition, fitting};

/// Maximum number of pairs that are tried one by one.
pub(crate) const PAIRS_MAX: usize = 4_000_000;

/// Result: answer of each request, and unmatched messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matching {
    /// Index of the answer for each request.
    pub answers: Vec<Option<usize>>,
    /// Messages without a request.
    pub extra: Vec<usize>,
}

/// Request to be matched.
pub(super) struct PendingRequest<'a, F: Face> {
    /// Allowed outcomes.
    pub part: &'a ExpectedPart<F>,
    /// Position in the session.
    pub spot: SessionPosition,
}

/// Message to be matched.
pub(super) struct CandidateMessage<'a, F: Face> {
    /// The message.
    pub message: &'a F::Message,
    /// Key of the message.
    pub key: Option<String>,
    /// Index of the event that completed it, within its session.
    pub came: usize,
}

impl<'a, F: Face> CandidateMessage<'a, F> {
    /// Message that was complete at event `came`.
    pub(super) fn new(face: &F, message: &'a F::Message, came: usize) -> Self {
        Self { message, key: face.key(message), came }
    }
}

/// Assigns messages to requests, ignoring their order in time.
pub(crate) fn assign<F: Face>(face: &F, parts: &[ExpectedPart<F>], messages: &[F::Message]) -> Matching {
    let places: Vec<PendingRequest<'_, F>> =
        parts.iter().map(|part| PendingRequest { part, spot: SessionPosition::default() }).collect();
    let things: Vec<CandidateMessage<'_, F>> =
        messages.iter().map(|message| CandidateMessage::new(face, message, 0)).collect();
    let must: Vec<bool> = parts.iter().map(|part| !part.may_be_silent()).collect();
    let mut answers: Vec<Option<usize>> = vec![None; places.len()];
    let mut left = by_key(&places, &things, &mut answers);
    if left.len().saturating_mul(places.len()) <= PAIRS_MAX {
        // Requests that need an answer come first. Later ones may move an answer but never take one away.
        let is_open = |at: &usize| answers[*at].is_none() && !places[*at].part.is_of_entity();
        let mut open: Vec<usize> = (0..places.len()).filter(is_open).collect();
        open.sort_by_key(|at| !must[*at]);
        let fits = |place: usize, at: usize| {
            fitting(face, places[open[place]].part, &[things[left[at]].message]).is_some()
        };
        let groups: Vec<bool> = open.iter().map(|at| must[*at]).collect();
        let holder = pair(&groups, left.len(), &fits);
        for (at, place) in holder.iter().enumerate() {
            if let Some(place) = place {
                answers[open[*place]] = Some(left[at]);
            }
        }
        let mut holder = holder.into_iter();
        left.retain(|_| holder.next().flatten().is_none());
    }
    let extra = misfits(face, &places, &things, left, &mut answers);
    Matching { answers, extra }
}

/// Assigns messages that fit nothing to unanswered requests: first by key, then in order to those of the latest round
/// before them, those that need an answer first. Returns the superfluous messages.
pub(crate) fn misfits<F: Face>(
    face: &F,
    places: &[PendingRequest<'_, F>],
    things: &[CandidateMessage<'_, F>],
    mut left: Vec<usize>,
    answers: &mut [Option<usize>],
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..places.len()).filter(|at| !places[*at].part.is_of_entity()).collect();
    order.sort_by_key(|at| (Reverse(places[*at].spot.round), places[*at].part.may_be_silent()));
    let has_key = |at: usize, thing: usize| {
        let key = things[thing].key.as_deref();
        key.is_some() && places[at].part.key() == key
    };
    // A number that came back as a string, or the other way round.
    let is_like = |at: usize, thing: usize| match (places[at].part.key(), things[thing].key.as_deref()) {
        (Some(due), Some(came)) => face.is_same_text(due, came),
        _ => false,
    };
    for is_its_key in [&has_key as &dyn Fn(usize, usize) -> bool, &is_like] {
        left.retain(|thing| {
            let is_its = |at: &&usize| {
                answers[**at].is_none()
                    && places[**at].spot.sent <= things[*thing].came
                    && is_its_key(**at, *thing)
            };
            let open = order.iter().find(is_its).copied();
            open.map(|at| answers[at] = Some(*thing)).is_none()
        });
    }
    left.retain(|thing| {
        // A second answer to a request is superfluous and does not answer another.
        if (0..places.len()).any(|at| answers[at].is_some() && has_key(at, *thing)) {
            return true;
        }
        let may = |at: &&usize| answers[**at].is_none() && places[**at].spot.sent <= things[*thing].came;
        let open = order.iter().find(may).copied();
        open.map(|at| answers[at] = Some(*thing)).is_none()
    });
    left
}

/// Assigns messages to requests by keys that are unique among the requests; returns the other messages.
pub(crate) fn by_key<F: Face>(
    places: &[PendingRequest<'_, F>],
    things: &[CandidateMessage<'_, F>],
    answers: &mut [Option<usize>],
) -> Vec<usize> {
    // `None` if several requests have the key.
    let mut of_key: HashMap<&str, Option<usize>> = HashMap::new();
    for (at, place) in places.iter().enumerate() {
        if let Some(key) = place.part.key() {
            of_key.entry(key).and_modify(|only| *only = None).or_insert(Some(at));
        }
    }
    let mut left = Vec::new();
    for (index, thing) in things.iter().enumerate() {
        let same = thing.key.as_deref().and_then(|key| of_key.get(key).copied().flatten());
        match same.filter(|at| answers[*at].is_none() && places[*at].spot.sent <= thing.came) {
            Some(at) => answers[at] = Some(index),
            None => left.push(index),
        }
    }
    left
}

/// Assigns to as many places as possible one of `things` that fits. `groups` labels each place: earlier groups are
/// served first, in order if possible. Returns for each thing its place.
pub(super) fn pair<G: PartialEq>(
    groups: &[G],
    things: usize,
    fits: &dyn Fn(usize, usize) -> bool,
) -> Vec<Option<usize>> {
    let mut holder: Vec<Option<usize>> = vec![None; things];
    let mut first = 0;
    for group in groups.chunk_by(PartialEq::eq) {
        let mut next = 0;
        let mut without = Vec::new();
        for place in first..first + group.len() {
            // Try in order first: peers usually answer in order.
            match (next..things).find(|at| holder[*at].is_none() && fits(place, *at)) {
                Some(at) => {
                    holder[at] = Some(place);
                    next = at + 1;
                }
                None => without.push(place),
            }
        }
        for place in without {
            augment(place, &mut holder, &mut vec![false; things], fits);
        }
        first += group.len();
    }
    holder
}

/// Finds a thing for `place`, moving other things if necessary (an augmenting path).
fn augment(
    place: usize,
    holder: &mut [Option<usize>],
    seen: &mut [bool],
    fits: &dyn Fn(usize, usize) -> bool,
) -> bool {
    // Path of places, each with the next thing to try.
    let mut path: Vec<(usize, usize)> = vec![(place, 0)];
    let mut taken: Vec<usize> = Vec::new();
    while let Some((place, next)) = path.last_mut() {
        let Some(at) = (*next..holder.len()).find(|at| !seen[*at] && fits(*place, *at)) else {
            path.pop();
            taken.pop();
            continue;
        };
        *next = at + 1;
        seen[at] = true;
        taken.push(at);
        match holder[at] {
            Some(other) => path.push((other, 0)),
            None => {
                for ((place, _), at) in path.iter().zip(&taken) {
                    holder[*at] = Some(*place);
                }
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_silent_takes_nothing_from_what_must_be_answered() {
        // Places 0 and 1 take things 0 and 1 in order, which leaves place 2 without the only thing that fits it.
        let fits = |place: usize, thing: usize| match place {
            0 => thing == 1,
            1 => thing == 0,
            _ => thing == 0 || thing == 2,
        };
        assert_eq!(pair(&[true, true, false], 2, &fits), vec![Some(1), Some(0)]);
    }
}
