//! Which response answers which request.
//!
//! Responses come in any order and carry the ids of their requests, or null where a message had none that could be
//! read. A faulty peer loses them, makes more, or changes ids. Each response goes to the request with its id; those
//! with null, to those messages that may be answered so, so that as many as can be are answered; and what is left, to
//! those requests that are left, in order: so one fault is one finding.

use std::collections::HashMap;

use super::model::Unit;
use crate::json::Json;

/// For each request the response that answers it, and the responses that answer nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matching {
    /// Index of a response for each request.
    pub answers: Vec<Option<usize>>,
    /// Responses without a request.
    pub extra: Vec<usize>,
}

/// Largest number of pairs that are tried one by one.
pub const PAIRS_MAX: usize = 4_000_000;

/// Gives responses to requests.
pub fn assign(units: &[&Unit], responses: &[&Json]) -> Matching {
    let must: Vec<bool> = units.iter().map(|unit| !unit.may_be_silent()).collect();
    let mut answers: Vec<Option<usize>> = vec![None; units.len()];
    let mut left = by_id(units, responses, &mut answers);
    if left.len().saturating_mul(units.len()) <= PAIRS_MAX {
        // What must be answered comes first: what comes later may move an answer, and never takes one away.
        let mut open: Vec<usize> = (0..units.len()).filter(|at| answers[*at].is_none()).collect();
        open.sort_by_key(|at| !must[*at]);
        let fits = |place: usize, at: usize| units[open[place]].fit(responses[left[at]]).is_some();
        let holder = pair(open.len(), left.len(), &fits);
        for (at, place) in holder.iter().enumerate() {
            if let Some(place) = place {
                answers[open[*place]] = Some(left[at]);
            }
        }
        left = left
            .into_iter()
            .zip(holder)
            .filter(|(_, place)| place.is_none())
            .map(|(index, _)| index)
            .collect();
    }
    let extra = misfits(units, responses, left, &mut answers);
    Matching { answers, extra }
}

/// Gives responses that fit nothing to what is left: first to requests that have their ids, then to what must be
/// answered, in order, then to what must not; returns those that are one too many.
pub fn misfits(
    units: &[&Unit],
    responses: &[&Json],
    left: Vec<usize>,
    answers: &mut [Option<usize>],
) -> Vec<usize> {
    let mut left: Vec<usize> = left
        .into_iter()
        .filter(|response| {
            let id = responses[*response].get("id");
            let open = (0..units.len()).find(|at| answers[*at].is_none() && units[*at].has_id(id));
            open.map(|at| answers[at] = Some(*response)).is_none()
        })
        .collect();
    for first in [true, false] {
        let open: Vec<usize> = (0..units.len())
            .filter(|at| answers[*at].is_none() && units[*at].may_be_silent() != first)
            .collect();
        let mut rest = Vec::new();
        let mut open = open.into_iter();
        for response in left {
            // A second answer to a request is one too many, and no answer to another.
            let repeats = answers
                .iter()
                .zip(units)
                .any(|(answer, unit)| answer.is_some() && unit.has_id(responses[response].get("id")));
            match if repeats { None } else { open.next() } {
                Some(at) => answers[at] = Some(response),
                None => rest.push(response),
            }
        }
        left = rest;
    }
    left
}

/// Gives responses to the requests whose ids they carry, where no other request has the same; returns the others.
pub fn by_id(units: &[&Unit], responses: &[&Json], answers: &mut [Option<usize>]) -> Vec<usize> {
    // `None`: more than one request has the id.
    let mut of_id: HashMap<String, Option<usize>> = HashMap::new();
    for (at, unit) in units.iter().enumerate() {
        if let Some(id) = unit.id.as_ref().and_then(key) {
            of_id.entry(id).and_modify(|only| *only = None).or_insert(Some(at));
        }
    }
    let mut left = Vec::new();
    for (index, response) in responses.iter().enumerate() {
        let same = response.get("id").and_then(key).and_then(|id| of_id.get(&id).copied().flatten());
        match same.filter(|at| answers[*at].is_none()) {
            Some(at) => answers[at] = Some(index),
            None => left.push(index),
        }
    }
    left
}

/// What ids are found by: strings as they are, numbers by value.
fn key(id: &Json) -> Option<String> {
    match id {
        Json::String(text) => Some(format!("s{text}")),
        // As doubles, so that an integer that a peer may round is found as well.
        Json::Number(number) => {
            Some(number.as_f64().map_or_else(|| format!("n{number}"), |float| format!("n{float}")))
        }
        _ => None,
    }
}

/// Gives each of `places` one of `things` that fits it, as many as can be, in order where that does as well. Returns
/// for each thing the place that has it.
pub fn pair(places: usize, things: usize, fits: &dyn Fn(usize, usize) -> bool) -> Vec<Option<usize>> {
    let mut holder: Vec<Option<usize>> = vec![None; things];
    let mut next = 0;
    let mut without = Vec::new();
    for place in 0..places {
        // In order first: peers mostly answer so.
        match (next..things).find(|at| fits(place, *at)) {
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
    holder
}

/// Finds a response for `place`, moving others to another one where that is needed.
fn augment(
    place: usize,
    holder: &mut [Option<usize>],
    seen: &mut [bool],
    fits: &dyn Fn(usize, usize) -> bool,
) -> bool {
    // A path of places, each with the next response to try.
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
    use super::super::model::{Pins, of_message};
    use super::*;
    use crate::clause::Side;
    use crate::facts::Facts;

    fn matched(requests: &[&str], responses: &[&str]) -> (Vec<Option<usize>>, Vec<usize>) {
        let facts = Facts::new(Side::Provider);
        assert!(Pins::of(&facts).profile);
        let units: Vec<Unit> =
            requests.iter().map(|text| of_message(&facts, text.as_bytes()).unwrap()).collect();
        let responses: Vec<Json> = responses.iter().map(|text| text.parse().unwrap()).collect();
        let found = assign(&units.iter().collect::<Vec<_>>(), &responses.iter().collect::<Vec<_>>());
        (found.answers, found.extra)
    }

    const A: &str = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":"a"}"#;
    const B: &str = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method","id":"b"}"#;
    const NOTE: &str = r#"{"jsonrpc":"2.0","method":"peerproof.no_such_method"}"#;
    const INVALID: &str = r#"{"jsonrpc":"2.0","method":1}"#;

    fn error(code: i64, id: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"m"}},"id":{id}}}"#)
    }

    #[test]
    fn the_order_of_responses_does_not_matter() {
        let (a, b, null) = (error(-32601, "\"a\""), error(-32601, "\"b\""), error(-32600, "null"));
        assert_eq!(matched(&[A, B, INVALID], &[&null, &b, &a]), (vec![Some(2), Some(1), Some(0)], vec![]));
    }

    #[test]
    fn a_changed_id_goes_to_the_request_that_is_left() {
        let (a, other) = (error(-32601, "\"a\""), error(-32601, "1"));
        assert_eq!(matched(&[B, A], &[&other, &a]), (vec![Some(0), Some(1)], vec![]));
    }

    #[test]
    fn wrong_answers_under_one_id_are_one_for_each_request() {
        let (first, second) = (error(-32000, "\"a\""), error(-32001, "\"a\""));
        assert_eq!(matched(&[A, B, A], &[&first, &second]), (vec![Some(0), None, Some(1)], vec![]));
    }

    #[test]
    fn a_second_answer_is_one_too_many() {
        let a = error(-32601, "\"a\"");
        assert_eq!(matched(&[A, NOTE], &[&a, &a]), (vec![Some(0), None], vec![1]));
    }

    #[test]
    fn an_answer_to_a_notification_is_its_own() {
        let (a, null) = (error(-32601, "\"a\""), error(-32601, "null"));
        assert_eq!(matched(&[NOTE, A], &[&null, &a]), (vec![Some(0), Some(1)], vec![]));
    }

    #[test]
    fn as_many_as_can_be_are_answered() {
        let facts = Facts::new(Side::Provider);
        let mut open = of_message(&facts, INVALID.as_bytes()).unwrap();
        open.allowed.push(super::super::model::Allowed::error(&[-32700], super::super::model::IdRule::Null));
        let narrow = of_message(&facts, INVALID.as_bytes()).unwrap();
        let (request, parse): (Json, Json) =
            (error(-32600, "null").parse().unwrap(), error(-32700, "null").parse().unwrap());
        let found = assign(&[&open, &narrow], &[&request, &parse]);
        assert_eq!(found, Matching { answers: vec![Some(1), Some(0)], extra: vec![] });
    }
}
