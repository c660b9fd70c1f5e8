//! Which response answers which request.
//!
//! Responses come in any order and carry the ids of their requests, or null where a message had none that could be
//! read. A faulty peer loses them, makes more, or changes ids. A response never answers what was sent after it. Within
//! that each response goes to the request with its id; those with null, to those messages that may be answered so, so
//! that as many as can be are answered, to those that were sent last before it first; and what is left, to those
//! requests that are left, in order: so one fault is one finding.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::model::Unit;
use peerproof_engine::json::Json;

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

/// Where a request stands in its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spot {
    /// Place of the event that began it.
    pub sent: usize,
    /// How often the harness had waited for replies before.
    pub round: usize,
}

/// Gives responses to requests, whenever either was written.
pub fn assign(units: &[&Unit], responses: &[&Json]) -> Matching {
    let (spots, came) = (vec![Spot::default(); units.len()], vec![0; responses.len()]);
    let must: Vec<bool> = units.iter().map(|unit| !unit.may_be_silent()).collect();
    let mut answers: Vec<Option<usize>> = vec![None; units.len()];
    let mut left = by_id(units, &spots, responses, &came, &mut answers);
    if left.len().saturating_mul(units.len()) <= PAIRS_MAX {
        // What must be answered comes first: what comes later may move an answer, and never takes one away.
        let mut open: Vec<usize> = (0..units.len()).filter(|at| answers[*at].is_none()).collect();
        open.sort_by_key(|at| !must[*at]);
        let fits = |place: usize, at: usize| units[open[place]].fit(responses[left[at]]).is_some();
        let groups: Vec<bool> = open.iter().map(|at| must[*at]).collect();
        let holder = pair(&groups, left.len(), &fits);
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
    let extra = misfits(units, &spots, responses, &came, left, &mut answers);
    Matching { answers, extra }
}

/// Gives responses that fit nothing to what is left: first to requests that have their ids, then to what was sent in the
/// last round before them, in order, and of that first to what must be answered; returns those that are one too many.
/// `came` has the place of each response.
pub fn misfits(
    units: &[&Unit],
    spots: &[Spot],
    responses: &[&Json],
    came: &[usize],
    mut left: Vec<usize>,
    answers: &mut [Option<usize>],
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..units.len()).collect();
    order.sort_by_key(|at| (Reverse(spots[*at].round), units[*at].may_be_silent()));
    left.retain(|response| {
        let id = responses[*response].get("id");
        let is_its = |at: &&usize| {
            answers[**at].is_none() && spots[**at].sent <= came[*response] && units[**at].has_id(id)
        };
        let open = order.iter().find(is_its).copied();
        open.map(|at| answers[at] = Some(*response)).is_none()
    });
    left.retain(|response| {
        // A second answer to a request is one too many, and no answer to another.
        let id = responses[*response].get("id");
        if answers.iter().zip(units).any(|(answer, unit)| answer.is_some() && unit.has_id(id)) {
            return true;
        }
        let may = |at: &&usize| answers[**at].is_none() && spots[**at].sent <= came[*response];
        let open = order.iter().find(may).copied();
        open.map(|at| answers[at] = Some(*response)).is_none()
    });
    left
}

/// Gives responses to the requests whose ids they carry, where no other request has the same; returns the others.
pub fn by_id(
    units: &[&Unit],
    spots: &[Spot],
    responses: &[&Json],
    came: &[usize],
    answers: &mut [Option<usize>],
) -> Vec<usize> {
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
        match same.filter(|at| answers[*at].is_none() && spots[*at].sent <= came[index]) {
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
    use peerproof_engine::clause::Side;
    use peerproof_engine::facts::Facts;

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

    /// Answers for messages sent one after the other, each awaited; `came` says after how many of them each response came.
    fn in_turn(requests: &[&str], responses: &[(&str, usize)]) -> (Vec<Option<usize>>, Vec<usize>) {
        use super::super::deal::deal;
        use super::super::frames::lines;
        use super::super::model::Asked;
        let facts = Facts::new(Side::Provider);
        let asked: Vec<Asked> = (0..)
            .zip(requests)
            .map(|(at, text)| Asked {
                units: vec![of_message(&facts, text.as_bytes()).unwrap()],
                spot: Spot { sent: at * 2 + 1, round: at },
                ..Asked::default()
            })
            .collect();
        let text: String = responses.iter().map(|(text, _)| format!("{text}\n")).collect();
        let (mut frames, _) = lines(text.as_bytes(), responses.len());
        frames.iter_mut().zip(responses).for_each(|(frame, (_, after))| frame.place = after * 2);
        let (came, extra) = deal(&asked, &frames);
        let index = |found: &Json| {
            frames.iter().position(|frame| std::ptr::eq(frame.value.as_ref().unwrap(), found)).unwrap()
        };
        let answers = came.iter().map(|came| came.answers[0].map(index)).collect();
        (answers, extra.into_iter().map(index).collect())
    }

    #[test]
    fn nothing_answers_what_was_sent_after_it() {
        let (a, null) = (error(-32601, "\"a\""), error(-32600, "null"));
        assert_eq!(in_turn(&[INVALID, INVALID], &[(&null, 1)]), (vec![Some(0), None], vec![]));
        assert_eq!(in_turn(&[INVALID, INVALID], &[(&null, 2)]), (vec![None, Some(0)], vec![]));
        assert_eq!(in_turn(&[A], &[(&a, 0), (&a, 1)]), (vec![Some(1)], vec![0]));
        assert_eq!(in_turn(&[INVALID, INVALID], &[(&null, 2), (&null, 2)]).1, vec![0; 0]);
    }

    #[test]
    fn a_wrong_answer_belongs_to_what_was_sent_last_before_it() {
        let (parse, null) = (error(-32700, "null"), error(-32601, "null"));
        assert_eq!(in_turn(&[INVALID, NOTE], &[(&null, 2)]), (vec![None, Some(0)], vec![]));
        assert_eq!(in_turn(&[INVALID, A], &[(&parse, 1)]), (vec![Some(0), None], vec![]));
    }

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
