//! Assignment of output to requests: messages to single requests, frames of several messages to groups, and single
//! messages to groups as a whole.

use std::cmp::Reverse;

use super::matching::{self, CandidateMessage, PendingRequest};
use super::order::{self, OrderedRequest};
use crate::contract::face::{
    Answer, Expected, Face, FrameContent, Match, Output, PlacedExpectation, Subject, fitting,
};

/// Frame of several messages: its number, the frame, the messages.
type BatchFrame<'a, F> = (usize, &'a Output<<F as Face>::Message>, &'a [<F as Face>::Message]);

/// Candidate for an answer: a single part or a group.
#[derive(Clone, Copy)]
enum MatchCandidate {
    Alone(usize),
    Group(usize),
}

/// Assigns messages to earlier requests; returns the assigned answers and the unmatched messages. `first` is the number
/// of the first frame.
pub(crate) fn deal<'a, F: Face>(
    face: &F,
    asked: &[&PlacedExpectation<F>],
    output: &'a [Output<F::Message>],
    first: usize,
) -> (Vec<Match<'a, F>>, Vec<&'a F::Message>) {
    if asked.iter().flat_map(|asked| &asked.due.parts).any(|part| part.subject == Subject::Turn) {
        return in_order(face, asked, output, first);
    }
    let mut deal = Deal::by_keys(face, asked, output, first);
    deal.pair_the_rest();
    deal.place_remaining_frames();
    deal.refuse_as_a_whole();
    deal.done()
}

/// Assignment under way.
struct Deal<'p, 'a, F: Face> {
    face: &'p F,
    asked: &'p [&'p PlacedExpectation<F>],
    /// Answers to each request.
    came: Vec<Match<'a, F>>,
    /// Single messages, and the number of the frame of each.
    things: Vec<CandidateMessage<'a, F>>,
    frame_of: Vec<usize>,
    /// Frames of several messages, and the request that each answers.
    groups: Vec<BatchFrame<'a, F>>,
    asked_by: Vec<Option<usize>>,
    /// Single parts of requests, the request of each, and the message that answers it.
    places: Vec<PendingRequest<'p, F>>,
    of_place: Vec<usize>,
    answers: Vec<Option<usize>>,
    /// For each request the single message that answers it as a whole.
    whole: Vec<Option<usize>>,
    /// Single messages that answer nothing so far.
    left: Vec<usize>,
    /// Undecodable answers: number of the frame, and index of the event that completed it.
    garbled: Vec<(usize, usize)>,
}

impl<'p, 'a, F: Face> Deal<'p, 'a, F> {
    /// Assigns by keys: one that only one request has decides.
    fn by_keys(
        face: &'p F,
        asked: &'p [&'p PlacedExpectation<F>],
        output: &'a [Output<F::Message>],
        first: usize,
    ) -> Self {
        let mut things: Vec<CandidateMessage<'a, F>> = Vec::new();
        let mut frame_of: Vec<usize> = Vec::new();
        let mut groups: Vec<BatchFrame<'a, F>> = Vec::new();
        let mut garbled = Vec::new();
        for (number, frame) in (first..).zip(output) {
            match &frame.held {
                FrameContent::Message(message) => {
                    things.push(CandidateMessage::new(face, message, frame.place));
                    frame_of.push(number);
                }
                FrameContent::Together { messages, .. } => groups.push((number, frame, messages)),
                FrameContent::Garbled => garbled.push((number, frame.place)),
                FrameContent::Beside(_) | FrameContent::Nothing => {}
            }
        }
        let mut places: Vec<PendingRequest<'p, F>> = Vec::new();
        let mut of_place: Vec<usize> = Vec::new();
        for (at, one) in asked.iter().enumerate().filter(|(_, one)| !one.due.together) {
            places.extend(one.due.parts.iter().map(|part| PendingRequest { part, spot: one.spot }));
            of_place.extend(one.due.parts.iter().map(|_| at));
        }
        let mut answers: Vec<Option<usize>> = vec![None; places.len()];
        let left = matching::by_key(&places, &things, &mut answers);
        let asked_by = groups_by_keys(face, asked, &groups);
        let came = asked.iter().map(|asked| Match::nothing(asked.due.parts.len())).collect();
        let whole = vec![None; asked.len()];
        Self {
            face,
            asked,
            came,
            things,
            frame_of,
            groups,
            asked_by,
            places,
            of_place,
            answers,
            whole,
            left,
            garbled,
        }
    }

    /// Request of a candidate.
    fn asked_of(&self, place: &MatchCandidate) -> usize {
        match place {
            MatchCandidate::Alone(at) => self.of_place[*at],
            MatchCandidate::Group(at) => *at,
        }
    }

    /// Rank of a candidate. Requests that need an answer come first, and among them those of the last round: earlier
    /// output cannot answer them, and later output answers them rather than a request that is no longer awaited.
    fn rank_of(&self, place: &MatchCandidate) -> (bool, Reverse<usize>) {
        let may_be_silent = match place {
            MatchCandidate::Alone(at) => self.places[*at].part.may_be_silent(),
            MatchCandidate::Group(at) => self.asked[*at].due.may_be_silent(),
        };
        (may_be_silent, Reverse(self.asked[self.asked_of(place)].spot.round))
    }

    /// Single parts and groups without an answer, the most urgent first.
    fn open(&self) -> Vec<MatchCandidate> {
        let is_open = |at: &usize| self.answers[*at].is_none() && !self.places[*at].part.is_of_entity();
        let mut open: Vec<MatchCandidate> =
            (0..self.places.len()).filter(is_open).map(MatchCandidate::Alone).collect();
        let is_missing = |at: &usize| self.asked[*at].due.together && !self.asked_by.contains(&Some(*at));
        open.extend((0..self.asked.len()).filter(is_missing).map(MatchCandidate::Group));
        open.sort_by_key(|place| (self.rank_of(place), self.asked_of(place)));
        open
    }

    /// Assigns the rest so that as many single requests and groups as possible are answered.
    fn pair_the_rest(&mut self) {
        let free: Vec<usize> =
            (0..self.groups.len()).filter(|index| self.asked_by[*index].is_none()).collect();
        let open = self.open();
        let count = self.left.len() + free.len();
        if open.len().saturating_mul(count) > matching::PAIRS_MAX {
            return;
        }
        let ranks: Vec<_> = open.iter().map(|place| self.rank_of(place)).collect();
        let fits = |place: usize, thing: usize| match thing.checked_sub(self.left.len()) {
            None => self.message_fits(open[place], self.left[thing]),
            Some(index) => self.frame_fits(open[place], free[index]),
        };
        let holder = matching::pair(&ranks, count, &fits);
        let mut rest = Vec::new();
        for (thing, place) in holder.into_iter().enumerate() {
            match (place.map(|place| open[place]), thing.checked_sub(self.left.len())) {
                (Some(MatchCandidate::Alone(at)), None) => self.answers[at] = Some(self.left[thing]),
                (Some(MatchCandidate::Group(at)), None) => self.whole[at] = Some(self.left[thing]),
                (Some(MatchCandidate::Group(at)), Some(index)) => self.asked_by[free[index]] = Some(at),
                (_, None) => rest.push(self.left[thing]),
                (_, Some(_)) => {}
            }
        }
        self.left = rest;
    }

    /// True if a single message is a correct answer to a candidate.
    fn message_fits(&self, place: MatchCandidate, thing: usize) -> bool {
        let thing = &self.things[thing];
        let fits = |part| fitting(self.face, part, &[thing.message]).is_some();
        self.asked[self.asked_of(&place)].spot.sent <= thing.came
            && match place {
                MatchCandidate::Alone(at) => fits(self.places[at].part),
                MatchCandidate::Group(at) => self.asked[at].due.whole.as_ref().is_some_and(fits),
            }
    }

    /// True if a frame of several messages is a correct answer to a candidate.
    fn frame_fits(&self, place: MatchCandidate, group: usize) -> bool {
        let MatchCandidate::Group(at) = place else { return false };
        let (_, frame, messages) = self.groups[group];
        self.asked[at].spot.sent <= frame.place && group_fits(self.face, self.asked[at], messages)
    }

    /// Assigns unmatched frames of several messages to remaining groups, or counts them as superfluous messages.
    fn place_remaining_frames(&mut self) {
        for (index, (number, frame, _)) in self.groups.iter().enumerate() {
            if self.asked_by[index].is_some() {
                continue;
            }
            let open = || {
                (0..self.asked.len()).rev().filter(|at| {
                    self.asked[*at].due.together
                        && self.asked[*at].spot.sent <= frame.place
                        && self.whole[*at].is_none()
                        && !self.asked_by.contains(&Some(*at))
                })
            };
            let at = open().find(|at| !self.asked[*at].due.may_be_silent()).or_else(|| open().next());
            self.asked_by[index] = at;
            if let (None, FrameContent::Together { all, .. }) = (at, &frame.held) {
                self.left.push(self.things.len());
                self.things.push(CandidateMessage::new(self.face, all, frame.place));
                self.frame_of.push(*number);
            }
        }
    }

    /// Assigns refusals of everything to groups whose frame is missing: these were refused as a whole.
    fn refuse_as_a_whole(&mut self) {
        let Self { face, asked, came, things, whole, asked_by, left, .. } = self;
        left.retain(|index| {
            let thing = &things[*index];
            let missing = |at: &usize| {
                asked[*at].due.together
                    && asked[*at].spot.sent <= thing.came
                    && !asked[*at].due.may_be_silent()
                    && whole[*at].is_none()
                    && came[*at].apart.is_empty()
                    && !asked_by.contains(&Some(*at))
            };
            let at = (0..asked.len()).rev().find(missing).filter(|_| face.refuses_all(thing.message));
            at.map(|at| came[at].apart.push(thing.message)).is_none()
        });
    }

    /// Assigned answers and unmatched messages.
    fn done(self) -> (Vec<Match<'a, F>>, Vec<&'a F::Message>) {
        let Self {
            face, asked, mut came, things, frame_of, groups, places, mut answers, left, garbled, ..
        } = self;
        for ((number, _, messages), at) in groups.iter().zip(&self.asked_by) {
            let Some(at) = at else { continue };
            let found = matching::assign(face, &asked[*at].due.parts, messages);
            came[*at].frame = Some(*number);
            let answer = |index: usize| Answer { message: &messages[index], frame: *number };
            came[*at].answers = found.answers.iter().map(|found| found.map(answer)).collect();
            came[*at].extra = found.extra.iter().map(|index| &messages[*index]).collect();
        }
        let mut alone = Vec::new();
        for index in left {
            let thing = &things[index];
            let has_key = |part: &Expected<_, _>| thing.key.is_some() && part.key() == thing.key.as_deref();
            let is_of_single =
                || places.iter().zip(&answers).any(|(place, answer)| answer.is_none() && has_key(place.part));
            let of_element = |(one, came): &(&&PlacedExpectation<F>, &mut Match<'a, F>)| {
                one.due.together
                    && one.spot.sent <= thing.came
                    && came.frame.is_none()
                    && one.due.parts.iter().any(has_key)
            };
            match asked.iter().zip(&mut came).find(of_element).filter(|_| !is_of_single()) {
                Some((_, came)) => came.apart.push(thing.message),
                None => alone.push(index),
            }
        }
        let left = matching::misfits(face, &places, &things, alone, &mut answers);
        let answer_of = |index: usize| Answer { message: things[index].message, frame: frame_of[index] };
        let mut next = vec![0; asked.len()];
        for (at, answer) in self.of_place.iter().zip(&answers) {
            came[*at].answers[next[*at]] = answer.map(answer_of);
            next[*at] += 1;
        }
        for (came, whole) in came.iter_mut().zip(&self.whole) {
            came.whole = whole.map(answer_of);
        }
        let extra = left.into_iter().map(|index| things[index].message).collect();
        place_garbled(asked, &mut came, &garbled);
        (came, extra)
    }
}

/// Assigns undecodable answers to unanswered requests of the latest round before them, in order.
fn place_garbled<F: Face>(
    asked: &[&PlacedExpectation<F>],
    came: &mut [Match<'_, F>],
    garbled: &[(usize, usize)],
) {
    if garbled.is_empty() {
        return;
    }
    let is_open = |at: &usize| {
        let (asked, came) = (asked[*at], &came[*at]);
        let mut parts = came.answers.iter().zip(&asked.due.parts);
        let has_other = came.whole.is_some() || came.frame.is_some() || !came.apart.is_empty();
        !has_other
            && parts.any(|(answer, part)| answer.is_none() && !part.may_be_silent() && !part.is_of_entity())
    };
    let mut open: Vec<usize> = (0..asked.len()).filter(is_open).collect();
    open.sort_by_key(|at| Reverse(asked[*at].spot.round));
    for (number, place) in garbled {
        if let Some(next) = open.iter().position(|at| asked[*at].spot.sent <= *place) {
            came[open.remove(next)].garbled = Some(*number);
        }
    }
}

/// Assigns messages if answers come in the order of requests.
fn in_order<'a, F: Face>(
    face: &F,
    asked: &[&PlacedExpectation<F>],
    output: &'a [Output<F::Message>],
    first: usize,
) -> (Vec<Match<'a, F>>, Vec<&'a F::Message>) {
    let parts: Vec<(usize, usize)> = (0..asked.len())
        .flat_map(|at| (0..asked[at].due.parts.len()).map(move |part| (at, part)))
        .filter(|(at, part)| !asked[*at].due.parts[*part].is_of_entity())
        .collect();
    let part = |turn: usize| &asked[parts[turn].0].due.parts[parts[turn].1];
    let turns: Vec<OrderedRequest> = (0..parts.len())
        .map(|turn| {
            let may_be_silent = part(turn).may_be_silent();
            OrderedRequest { may_be_silent, may_be_passed_over: may_be_silent, may_end: false }
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
    let mut came: Vec<Match<'a, F>> =
        asked.iter().map(|asked| Match::nothing(asked.due.parts.len())).collect();
    for ((at, part), answer) in parts.into_iter().zip(alignment.answers) {
        let Some((frame, message)) = answer.map(|thing| things[thing]) else { continue };
        if message.is_none() {
            came[at].garbled = Some(frame);
        }
        came[at].answers[part] = message.map(|message| Answer { message, frame });
    }
    (came, alignment.extra.into_iter().filter_map(|thing| things[thing].1).collect())
}

/// True if a frame of several messages is a correct answer to a group.
fn group_fits<F: Face>(face: &F, group: &PlacedExpectation<F>, messages: &[F::Message]) -> bool {
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
fn groups_by_keys<F: Face>(
    face: &F,
    asked: &[&PlacedExpectation<F>],
    groups: &[BatchFrame<'_, F>],
) -> Vec<Option<usize>> {
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
