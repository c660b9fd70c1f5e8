//! Which output answers which line: responses to single messages, arrays to batches, and a single response to a batch
//! as a whole.

use std::cmp::Reverse;

use super::frames::Frame;
use super::matching::{self, Spot};
use super::model::{Asked, Unit};
use peerproof_engine::json::Json;

/// What came for one line.
#[derive(Default)]
pub struct Came<'a> {
    /// For each unit the response to it.
    pub answers: Vec<Option<&'a Json>>,
    /// A response to the line as a whole.
    pub whole: Option<&'a Json>,
    /// The array that answers a batch.
    pub array: Option<&'a Frame>,
    /// Elements of it that answer nothing.
    pub extra: Vec<&'a Json>,
    /// Responses outside an array to elements of a batch, or one error to all of it.
    pub unwrapped: Vec<&'a Json>,
}

/// What can be answered: a message, or a batch.
#[derive(Clone, Copy)]
enum Place {
    /// Place of the message among all that stand alone.
    Message(usize),
    /// Line.
    Batch(usize),
}

/// Gives what came to the lines it answers, each of which was begun before it; and what answers nothing.
pub fn deal<'a>(asked: &[Asked], frames: &'a [Frame]) -> (Vec<Came<'a>>, Vec<&'a Json>) {
    let mut came: Vec<Came<'a>> = asked
        .iter()
        .map(|asked| Came { answers: vec![None; asked.units.len()], ..Came::default() })
        .collect();
    let mut objects: Vec<&Json> = Vec::new();
    let mut came_at: Vec<usize> = Vec::new();
    let mut arrays: Vec<(&Frame, &[Json])> = Vec::new();
    for frame in frames.iter().filter(|frame| !frame.is_call()) {
        match &frame.value {
            Ok(Json::Array(items)) => arrays.push((frame, items)),
            Ok(value) => {
                objects.push(value);
                came_at.push(frame.place);
            }
            Err(_) => {}
        }
    }
    // What carries an id that only one message has belongs to it.
    let mut units: Vec<&Unit> = Vec::new();
    let mut lines: Vec<usize> = Vec::new();
    let mut spots: Vec<Spot> = Vec::new();
    for (at, line) in asked.iter().enumerate().filter(|(_, line)| !line.batch) {
        units.extend(&line.units);
        lines.extend(line.units.iter().map(|_| at));
        spots.extend(line.units.iter().map(|_| line.spot));
    }
    let mut answers: Vec<Option<usize>> = vec![None; units.len()];
    let mut left = matching::by_id(&units, &spots, &objects, &came_at, &mut answers);
    let mut of = batches_by_ids(asked, &arrays);
    // The rest, so that as much as can be is answered: messages and batches, by objects and arrays.
    let free: Vec<usize> = (0..arrays.len()).filter(|index| of[*index].is_none()).collect();
    let mut places: Vec<Place> =
        (0..units.len()).filter(|at| answers[*at].is_none()).map(Place::Message).collect();
    places
        .extend((0..asked.len()).filter(|at| asked[*at].batch && !of.contains(&Some(*at))).map(Place::Batch));
    let line_of = |place: &Place| match place {
        Place::Message(at) => lines[*at],
        Place::Batch(at) => *at,
    };
    // What must be answered comes first, and of that what was sent in the last round: what came before it is no answer to
    // it, and what came after, rather to it than to what nobody waits for any more.
    let group_of = |place: &Place| {
        let may_be_silent = match place {
            Place::Message(at) => units[*at].may_be_silent(),
            Place::Batch(at) => asked[*at].may_be_silent(),
        };
        (may_be_silent, Reverse(asked[line_of(place)].spot.round))
    };
    places.sort_by_key(|place| (group_of(place), line_of(place)));
    let groups: Vec<_> = places.iter().map(group_of).collect();
    let fits = |place: usize, thing: usize| {
        let sent = asked[line_of(&places[place])].spot.sent;
        match (places[place], thing.checked_sub(left.len())) {
            (Place::Message(at), None) => {
                sent <= came_at[left[thing]] && units[at].fit(objects[left[thing]]).is_some()
            }
            (Place::Batch(at), None) => {
                let whole = asked[at].whole.as_ref();
                sent <= came_at[left[thing]]
                    && whole.is_some_and(|whole| whole.fit(objects[left[thing]]).is_some())
            }
            (Place::Message(_), Some(_)) => false,
            (Place::Batch(at), Some(index)) => {
                let (frame, items) = arrays[free[index]];
                sent <= frame.place && array_fits(&asked[at], items)
            }
        }
    };
    let things = left.len() + free.len();
    let mut whole: Vec<Option<usize>> = vec![None; asked.len()];
    if places.len().saturating_mul(things) <= matching::PAIRS_MAX {
        let holder = matching::pair(&groups, things, &fits);
        let mut rest = Vec::new();
        for (thing, place) in holder.into_iter().enumerate() {
            match (place.map(|place| places[place]), thing.checked_sub(left.len())) {
                (Some(Place::Message(at)), None) => answers[at] = Some(left[thing]),
                (Some(Place::Batch(at)), None) => whole[at] = Some(left[thing]),
                (Some(Place::Batch(at)), Some(index)) => of[free[index]] = Some(at),
                (_, None) => rest.push(left[thing]),
                (_, Some(_)) => {}
            }
        }
        left = rest;
    }
    // What fits nothing: an array goes to a batch that is left, or is as wrong as any other response.
    for (index, (frame, _)) in arrays.iter().enumerate() {
        if of[index].is_none() {
            let open = || {
                (0..asked.len()).rev().filter(|at| {
                    asked[*at].batch
                        && asked[*at].spot.sent <= frame.place
                        && whole[*at].is_none()
                        && !of.contains(&Some(*at))
                })
            };
            let at = open().find(|at| !asked[*at].may_be_silent()).or_else(|| open().next());
            of[index] = at;
            if at.is_none() {
                objects.extend(frame.value.as_ref());
                came_at.push(frame.place);
                left.push(objects.len() - 1);
            }
        }
    }
    // An error under no id, where an array is missing: a batch was refused as a whole.
    left.retain(|index| {
        let is_error = objects[*index].get("id").is_some_and(Json::is_null)
            && objects[*index].get("error").is_some_and(|error| !error.is_null());
        let missing = |at: &usize| {
            asked[*at].batch
                && asked[*at].spot.sent <= came_at[*index]
                && !asked[*at].may_be_silent()
                && whole[*at].is_none()
                && came[*at].unwrapped.is_empty()
                && !of.contains(&Some(*at))
        };
        let at = (0..asked.len()).rev().find(missing).filter(|_| is_error);
        at.map(|at| came[at].unwrapped.push(objects[*index])).is_none()
    });
    let left = matching::misfits(&units, &spots, &objects, &came_at, left, &mut answers);
    for ((frame, items), at) in arrays.iter().zip(&of) {
        let Some(at) = at else { continue };
        let items: Vec<&Json> = items.iter().collect();
        let units: Vec<&Unit> = asked[*at].units.iter().collect();
        let found = matching::assign(&units, &items);
        came[*at].array = Some(frame);
        came[*at].answers = found.answers.iter().map(|answer| answer.map(|index| items[index])).collect();
        came[*at].extra = found.extra.iter().map(|index| items[*index]).collect();
    }
    let mut of_line = vec![0; asked.len()];
    for (at, answer) in lines.iter().zip(&answers) {
        came[*at].answers[of_line[*at]] = answer.map(|index| objects[index]);
        of_line[*at] += 1;
    }
    for (came, whole) in came.iter_mut().zip(&whole) {
        came.whole = whole.map(|index| objects[index]);
    }
    let mut extra: Vec<&Json> = Vec::new();
    for index in left {
        let id = objects[index].get("id");
        let of_element = |(line, came): &(&Asked, &mut Came<'a>)| {
            line.batch
                && line.spot.sent <= came_at[index]
                && came.array.is_none()
                && line.units.iter().any(|unit| unit.has_id(id))
        };
        let batch = asked.iter().zip(&mut came).find(of_element);
        match batch {
            Some((_, came)) => came.unwrapped.push(objects[index]),
            None => extra.push(objects[index]),
        }
    }
    (came, extra)
}

/// Whether an array is a right answer to a batch.
fn array_fits(batch: &Asked, items: &[Json]) -> bool {
    let units: Vec<&Unit> = batch.units.iter().collect();
    let found = matching::assign(&units, &items.iter().collect::<Vec<_>>());
    let fitting = |(unit, answer): (&&Unit, &Option<usize>)| match answer {
        Some(index) => unit.fit(&items[*index]).is_some(),
        None => unit.may_be_silent(),
    };
    found.extra.is_empty() && units.iter().zip(&found.answers).all(fitting)
}

/// For each array the batch that has most of its ids, where there is one.
fn batches_by_ids(asked: &[Asked], arrays: &[(&Frame, &[Json])]) -> Vec<Option<usize>> {
    let mut of: Vec<Option<usize>> = vec![None; arrays.len()];
    let mut taken = vec![false; asked.len()];
    let common = |at: usize, items: &[Json]| {
        let has = |item: &&Json| asked[at].units.iter().any(|unit| unit.has_id(item.get("id")));
        items.iter().take(64).filter(has).count()
    };
    for (index, (frame, items)) in arrays.iter().enumerate() {
        let may = |at: &usize| asked[*at].batch && !taken[*at] && asked[*at].spot.sent <= frame.place;
        let open: Vec<usize> = (0..asked.len()).filter(may).collect();
        let most = open.iter().map(|at| common(*at, items)).max().filter(|most| *most > 0);
        let mut best = open.iter().copied().filter(|at| Some(common(*at, items)) == most);
        let first = best.next();
        let at = match best.next() {
            // Batches with the same ids: one that the array fits.
            Some(_) => open
                .iter()
                .copied()
                .find(|at| Some(common(*at, items)) == most && array_fits(&asked[*at], items))
                .or(first),
            None => first,
        };
        if let Some(at) = at {
            (of[index], taken[at]) = (Some(at), true);
        }
    }
    of
}
