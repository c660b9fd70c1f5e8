//! Which message answers which request.
//!
//! Messages come in any order and carry the keys of their requests, or none where a request had no key that could be
//! read. A faulty peer loses them, makes more, or changes keys. A message never answers what was sent after it. Within
//! that each message goes to the request with its key; those without, to those requests that may be answered so, so
//! that as many as can be are answered, to those that were sent last before it first; and what is left, to those
//! requests that are left, in order: so one fault is one finding.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::face::{Face, Part, Spot, fitting};

/// Largest number of pairs that are tried one by one.
pub const PAIRS_MAX: usize = 4_000_000;

/// For each request the message that answers it, and the messages that answer nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Index of a message for each request.
    pub answers: Vec<Option<usize>>,
    /// Messages without a request.
    pub extra: Vec<usize>,
}

/// A request as it is matched.
pub struct Place<'a, F: Face> {
    /// What may come.
    pub part: &'a Part<F>,
    /// Where it stands.
    pub spot: Spot,
}

/// A message as it is matched.
pub struct Thing<'a, F: Face> {
    /// The message.
    pub message: &'a F::Message,
    /// Its key.
    pub key: Option<String>,
    /// Place of the event that completed it among those of its session.
    pub came: usize,
}

impl<'a, F: Face> Thing<'a, F> {
    /// A message that came there.
    pub fn new(face: &F, message: &'a F::Message, came: usize) -> Self {
        Self { message, key: face.key(message), came }
    }
}

/// Gives messages to requests, whenever either was written.
pub fn assign<F: Face>(face: &F, parts: &[Part<F>], messages: &[F::Message]) -> Matching {
    let places: Vec<Place<'_, F>> = parts.iter().map(|part| Place { part, spot: Spot::default() }).collect();
    let things: Vec<Thing<'_, F>> = messages.iter().map(|message| Thing::new(face, message, 0)).collect();
    let must: Vec<bool> = parts.iter().map(|part| !part.may_be_silent()).collect();
    let mut answers: Vec<Option<usize>> = vec![None; places.len()];
    let mut left = by_key(&places, &things, &mut answers);
    if left.len().saturating_mul(places.len()) <= PAIRS_MAX {
        // What must be answered comes first: what comes later may move an answer, and never takes one away.
        let is_open = |at: &usize| answers[*at].is_none() && !places[*at].part.is_of_thing();
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
    let extra = misfits(&places, &things, left, &mut answers);
    Matching { answers, extra }
}

/// Gives messages that fit nothing to what is left: first to requests that have their keys, then to what was sent in the
/// last round before them, in order, and of that first to what must be answered; returns those that are one too many.
pub fn misfits<F: Face>(
    places: &[Place<'_, F>],
    things: &[Thing<'_, F>],
    mut left: Vec<usize>,
    answers: &mut [Option<usize>],
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..places.len()).filter(|at| !places[*at].part.is_of_thing()).collect();
    order.sort_by_key(|at| (Reverse(places[*at].spot.round), places[*at].part.may_be_silent()));
    let has_key = |at: usize, thing: usize| {
        let key = things[thing].key.as_deref();
        key.is_some() && places[at].part.key() == key
    };
    left.retain(|thing| {
        let is_its = |at: &&usize| {
            answers[**at].is_none() && places[**at].spot.sent <= things[*thing].came && has_key(**at, *thing)
        };
        let open = order.iter().find(is_its).copied();
        open.map(|at| answers[at] = Some(*thing)).is_none()
    });
    left.retain(|thing| {
        // A second answer to a request is one too many, and no answer to another.
        if (0..places.len()).any(|at| answers[at].is_some() && has_key(at, *thing)) {
            return true;
        }
        let may = |at: &&usize| answers[**at].is_none() && places[**at].spot.sent <= things[*thing].came;
        let open = order.iter().find(may).copied();
        open.map(|at| answers[at] = Some(*thing)).is_none()
    });
    left
}

/// Gives messages to the requests whose keys they carry, where no other request has the same; returns the others.
pub fn by_key<F: Face>(
    places: &[Place<'_, F>],
    things: &[Thing<'_, F>],
    answers: &mut [Option<usize>],
) -> Vec<usize> {
    // `None`: more than one request has the key.
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

/// Gives each place one of `things` that fits it, as many as can be. `groups` has a word for the group of each place:
/// what stands in one group is served before the next, and in order where that does as well. Returns for each thing the
/// place that has it.
pub fn pair<G: PartialEq>(
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
            // In order first: peers mostly answer so.
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

/// Finds a thing for `place`, moving others to another one where that is needed.
fn augment(
    place: usize,
    holder: &mut [Option<usize>],
    seen: &mut [bool],
    fits: &dyn Fn(usize, usize) -> bool,
) -> bool {
    // A path of places, each with the next thing to try.
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
        // Things 0 and 1 are taken in order by 0 and 1, which leaves 2 without the only thing that fits it.
        let fits = |place: usize, thing: usize| match place {
            0 => thing == 1,
            1 => thing == 0,
            _ => thing == 0 || thing == 2,
        };
        assert_eq!(pair(&[true, true, false], 2, &fits), vec![Some(1), Some(0)]);
    }
}
