//! Answers to equal requests: within a conversation, of one process or several, over one channel or two.

use crate::contract::face::{Answer, ExpectedPart, Face, PlacedExpectation, SessionTrace, Trace};

/// Answer, and an earlier answer to an equal request.
pub struct EqualRequests<'a, F: Face> {
    /// Later request.
    pub asked: &'a PlacedExpectation<F>,
    /// Answered part of the later request.
    pub part: &'a ExpectedPart<F>,
    /// Answer to that part.
    pub answer: &'a F::Message,
    /// Answer to the earlier request.
    pub earlier: &'a F::Message,
    /// Set if two commands were asked: two channels of one peer.
    pub is_of_two_channels: bool,
}

/// Answers of a session with their first earlier twin in this or an earlier session. `are_same` compares the requests;
/// the face decides which differences between answers are allowed.
pub fn twins<'a, F: Face>(
    trace: &Trace<'a, F>,
    heard: &SessionTrace<'a, F>,
    are_same: impl Fn(&ExpectedPart<F>, &ExpectedPart<F>) -> bool,
) -> Vec<EqualRequests<'a, F>> {
    let earlier = trace.sessions.iter().take_while(|other| other.session <= heard.session);
    let earlier: Vec<(usize, AnsweredRequest<'a, F>)> =
        earlier.flat_map(|other| other.answers().map(|found| (other.session, found))).collect();
    let command = |session: usize| trace.transcript.plan.sessions.get(session).map(|spec| &spec.command);
    let begin = earlier.partition_point(|(session, _)| *session < heard.session);
    let own = earlier.iter().enumerate().skip(begin);
    own.filter_map(|(at, (session, (asked, part, answer)))| {
        let (other, (_, _, first)) = earlier[..at].iter().find(|(_, (_, other, _))| are_same(other, part))?;
        Some(EqualRequests {
            asked,
            part,
            answer: answer.message,
            earlier: first.message,
            is_of_two_channels: command(*session) != command(*other),
        })
    })
    .collect()
}

/// Answered request.
type AnsweredRequest<'a, F> = (&'a PlacedExpectation<F>, &'a ExpectedPart<F>, Answer<'a, F>);
