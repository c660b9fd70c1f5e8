//! Assignment of output to requests: messages to single requests, frames of several messages to groups, and single
//! messages to groups as a whole.

use std::cmp::Reverse;

use super::matching::{self, Place, Thing};
use super::order::{self, Turn};
use crate::contract::face::{Answer, Asked, Came, Expected, Face, Held, Output, Subject, fitting};

/// Frame of several messages: its number, the frame, the messages.
type Group<'a, F> = (usize, &'a Output<<F as Face>::Message>, &'a [<F as Face>::Message]);

/// Candidate for an answer: a single part or a group.
#[derive(Clone, Copy)]
enum Spotted {
    Alone(usize),
    Group(usize),
}

/// Assigns messages to earlier requests; returns the assigned answers and the unmatched messages. `first` is the number
/// of the first frame.
pub fn deal<'a, F: Face>(
    face: &F,
    asked: &[&Asked<F>],
    output: &'a [Output<F::Message>],
    first: usize,
) -> (Vec<Came<'a, F>>, Vec<&'a F::Message>) {
    if asked.iter().flat_map(|asked| &asked.due.parts).any(|part| part.subject == Subject::Turn) {
        return in_order(face, asked, output, first);
    }
    let mut came: Vec<Came<'a, F>> = asked.iter().map(|asked| Came::nothing(asked.due.parts.len())).collect();
    let mut things: Vec<Thing<'a, F>> = Vec::new();
    let mut frame_of: Vec<usize> = Vec::new();
    let mut groups: Vec<Group<'a, F>> = Vec::new();
    for (number, frame) in (first..).zip(output) {
        match &frame.held {
            Held::Message(message) => {
                things.push(Thing::new(face, message, frame.place));
                frame_of.push(number);
            }
            Held::Together { messages, .. } => groups.push((number, frame, messages)),
            Held::Beside(_) | Held::Nothing => {}
        }
    }
    // A key that only one request has decides.
    let mut places: Vec<Place<'_, F>> = Vec::new();
    let mut of_place: Vec<usize> = Vec::new();
    for (at, one) in asked.iter().enumerate().filter(|(_, one)| !one.due.together) {
        places.extend(one.due.parts.iter().map(|part| Place { part, spot: one.spot }));
        of_place.extend(one.due.parts.iter().map(|_| at));
    }
    let mut answers: Vec<Option<usize>> = vec![None; places.len()];
    let mut left = matching::by_key(&places, &things, &mut answers);
    let mut of = groups_by_keys(face, asked, &groups);
    // Assign the rest so that as many single requests and groups as possible are answered.
    let free: Vec<usize> = (0..groups.len()).filter(|index| of[*index].is_none()).collect();
    let mut open: Vec<Spotted> = (0..places.len())
        .filter(|at| answers[*at].is_none() && !places[*at].part.is_of_thing())
        .map(Spotted::Alone)
        .collect();
    open.extend(
        (0..asked.len()).filter(|at| asked[*at].due.together && !of.contains(&Some(*at))).map(Spotted::Group),
    );
    let asked_of = |place: &Spotted| match place {
        Spotted::Alone(at) => of_place[*at],
        Spotted::Group(at) => *at,
    };
    // Requests that need an answer come first, and among them those of the last round: earlier output cannot answer
    // them, and later output answers them rather than a request that is no longer awaited.
    let rank_of = |place: &Spotted| {
        let may_be_silent = match place {
            Spotted::Alone(at) => places[*at].part.may_be_silent(),
            Spotted::Group(at) => asked[*at].due.may_be_silent(),
        };
        (may_be_silent, Reverse(asked[asked_of(place)].spot.round))
    };
    open.sort_by_key(|place| (rank_of(place), asked_of(place)));
    let ranks: Vec<_> = open.iter().map(rank_of).collect();
    let fits = |place: usize, thing: usize| {
        let sent = asked[asked_of(&open[place])].spot.sent;
        match (open[place], thing.checked_sub(left.len())) {
            (Spotted::Alone(at), None) => {
                let thing = &things[left[thing]];
                sent <= thing.came && fitting(face, places[at].part, &[thing.message]).is_some()
            }
            (Spotted::Group(at), None) => {
                let thing = &things[left[thing]];
                let fits = |whole| fitting(face, whole, &[thing.message]).is_some();
                sent <= thing.came && asked[at].due.whole.as_ref().is_some_and(fits)
            }
            (Spotted::Alone(_), Some(_)) => false,
            (Spotted::Group(at), Some(index)) => {
                let (_, frame, messages) = groups[free[index]];
                sent <= frame.place && group_fits(face, asked[at], messages)
            }
        }
    };
    let count = left.len() + free.len();
    let mut whole: Vec<Option<usize>> = vec![None; asked.len()];
    if open.len().saturating_mul(count) <= matching::PAIRS_MAX {
        let holder = matching::pair(&ranks, count, &fits);
        let mut rest = Vec::new();
        for (thing, place) in holder.into_iter().enumerate() {
            match (place.map(|place| open[place]), thing.checked_sub(left.len())) {
                (Some(Spotted::Alone(at)), None) => answers[at] = Some(left[thing]),
                (Some(Spotted::Group(at)), None) => whole[at] = Some(left[thing]),
                (Some(Spotted::Group(at)), Some(index)) => of[free[index]] = Some(at),
                (_, None) => rest.push(left[thing]),
                (_, Some(_)) => {}
            }
        }
        left = rest;
    }
    // Unmatched frames of several messages go to a remaining group, or count as superfluous messages.
    for (index, (number, frame, _)) in groups.iter().enumerate() {
        if of[index].is_some() {
            continue;
        }
        let open = || {
            (0..asked.len()).rev().filter(|at| {
                asked[*at].due.together
                    && asked[*at].spot.sent <= frame.place
                    && whole[*at].is_none()
                    && !of.contains(&Some(*at))
            })
        };
        let at = open().find(|at| !asked[*at].due.may_be_silent()).or_else(|| open().next());
        of[index] = at;
        if let (None, Held::Together { all, .. }) = (at, &frame.held) {
            left.push(things.len());
            things.push(Thing::new(face, all, frame.place));
            frame_of.push(*number);
        }
    }
    // A refusal of everything stands for a missing frame: the group was refused as a whole.
    left.retain(|index| {
        let thing = &things[*index];
        let missing = |at: &usize| {
            asked[*at].due.together
                && asked[*at].spot.sent <= thing.came
                && !asked[*at].due.may_be_silent()
                && whole[*at].is_none()
                && came[*at].apart.is_empty()
                && !of.contains(&Some(*at))
        };
        let at = (0..asked.len()).rev().find(missing).filter(|_| face.refuses_all(thing.message));
        at.map(|at| came[at].apart.push(thing.message)).is_none()
    });
    let left = matching::misfits(&places, &things, left, &mut answers);
    for ((number, _, messages), at) in groups.iter().zip(&of) {
        let Some(at) = at else { continue };
        let found = matching::assign(face, &asked[*at].due.parts, messages);
        came[*at].frame = Some(*number);
        let answer = |index: usize| Answer { message: &messages[index], frame: *number };
        came[*at].answers = found.answers.iter().map(|found| found.map(answer)).collect();
        came[*at].extra = found.extra.iter().map(|index| &messages[*index]).collect();
    }
    let answer_of = |index: usize| Answer { message: things[index].message, frame: frame_of[index] };
    let mut next = vec![0; asked.len()];
    for (at, answer) in of_place.iter().zip(&answers) {
        came[*at].answers[next[*at]] = answer.map(answer_of);
        next[*at] += 1;
    }
    for (came, whole) in came.iter_mut().zip(&whole) {
        came.whole = whole.map(answer_of);
    }
    let mut extra: Vec<&'a F::Message> = Vec::new();
    for index in left {
        let thing = &things[index];
        let has_key = |part: &Expected<_, _>| thing.key.is_some() && part.key() == thing.key.as_deref();
        let of_element = |(one, came): &(&&Asked<F>, &mut Came<'a, F>)| {
            one.due.together
                && one.spot.sent <= thing.came
                && came.frame.is_none()
                && one.due.parts.iter().any(has_key)
        };
        match asked.iter().zip(&mut came).find(of_element) {
            Some((_, came)) => came.apart.push(thing.message),
            None => extra.push(thing.message),
        }
    }
    (came, extra)
}

/// Assigns messages if answers come in the order of requests.
fn in_order<'a, F: Face>(
    face: &F,
    asked: &[&Asked<F>],
    output: &'a [Output<F::Message>],
    first: usize,
) -> (Vec<Came<'a, F>>, Vec<&'a F::Message>) {
    let parts: Vec<(usize, usize)> = (0..asked.len())
        .flat_map(|at| (0..asked[at].due.parts.len()).map(move |part| (at, part)))
        .filter(|(at, part)| !asked[*at].due.parts[*part].is_of_thing())
        .collect();
    let part = |turn: usize| &asked[parts[turn].0].due.parts[parts[turn].1];
    let turns: Vec<Turn> = (0..parts.len())
        .map(|turn| {
            let may_be_silent = part(turn).may_be_silent();
            Turn { may_be_silent, may_be_passed_over: may_be_silent, may_end: false }
        })
        .collect();
    // An undecodable frame takes its turn, too, and fits nothing.
    let mut things: Vec<(usize, Option<&'a F::Message>)> = Vec::new();
    for (number, frame) in (first..).zip(output) {
        things.extend(frame.held.messages().iter().map(|message| (number, Some(message))));
        things.extend(frame.broken.is_some().then_some((number, None)));
    }
    let can =
        |turn: usize, thing: usize| asked[parts[turn].0].spot.sent <= output[things[thing].0 - first].place;
    let fits = |turn: usize, thing: usize| {
        things[thing].1.is_some_and(|message| fitting(face, part(turn), &[message]).is_some())
    };
    let mut alignment = order::align(&turns, things.len(), &can, &fits);
    // A superfluous message counts as an answer to a request that must have none.
    alignment.blame(&|turn| part(turn).must_be_silent(), &can);
    let mut came: Vec<Came<'a, F>> = asked.iter().map(|asked| Came::nothing(asked.due.parts.len())).collect();
    for ((at, part), answer) in parts.into_iter().zip(alignment.answers) {
        let Some((frame, message)) = answer.map(|thing| things[thing]) else { continue };
        came[at].is_garbled |= message.is_none();
        came[at].answers[part] = message.map(|message| Answer { message, frame });
    }
    (came, alignment.extra.into_iter().filter_map(|thing| things[thing].1).collect())
}

/// True if a frame of several messages is a correct answer to a group.
fn group_fits<F: Face>(face: &F, group: &Asked<F>, messages: &[F::Message]) -> bool {
    let parts = &group.due.parts;
    let found = matching::assign(face, parts, messages);
    found.extra.is_empty()
        && parts.iter().zip(&found.answers).all(|(part, answer)| match answer {
            Some(index) => fitting(face, part, &[&messages[*index]]).is_some(),
            None => part.may_be_silent(),
        })
}

/// Maximum number of messages of a frame whose keys are compared with those of a group.
const COMPARED_MAX: usize = 64;

/// For each frame of several messages the group that shares most of its keys, if any.
fn groups_by_keys<F: Face>(face: &F, asked: &[&Asked<F>], groups: &[Group<'_, F>]) -> Vec<Option<usize>> {
    let mut of: Vec<Option<usize>> = vec![None; groups.len()];
    let mut taken = vec![false; asked.len()];
    for (index, (_, frame, messages)) in groups.iter().enumerate() {
        let keys: Vec<String> =
            messages.iter().take(COMPARED_MAX).filter_map(|message| face.key(message)).collect();
        let common = |at: usize| {
            let has = |key: &&String| asked[at].due.parts.iter().any(|part| part.key() == Some(key.as_str()));
            keys.iter().filter(has).count()
        };
        let may = |at: &usize| asked[*at].due.together && !taken[*at] && asked[*at].spot.sent <= frame.place;
        let open: Vec<(usize, usize)> = (0..asked.len())
            .filter(may)
            .map(|at| (at, common(at)))
            .filter(|(_, common)| *common > 0)
            .collect();
        let most = open.iter().map(|(_, common)| *common).max();
        let mut best = open.iter().filter(|(_, common)| Some(*common) == most).map(|(at, _)| *at);
        let (first, second) = (best.next(), best.next());
        let at = match second {
            // Several groups share the keys: prefer one that the frame fits.
            Some(second) => first
                .into_iter()
                .chain([second])
                .chain(best)
                .find(|at| group_fits(face, asked[*at], messages))
                .or(first),
            None => first,
        };
        if let Some(at) = at {
            (of[index], taken[at]) = (Some(at), true);
        }
    }
    of
}
