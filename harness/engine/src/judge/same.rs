//! Answers to the same request: asked twice in a conversation, of one process or of several, over one channel or over two.

use crate::face::{Answer, Asked, Face, Heard, Part, Trace};

/// An answer, and that which came for the same request before.
pub struct Twins<'a, F: Face> {
    /// The later request.
    pub asked: &'a Asked<F>,
    /// The part of it that is answered.
    pub part: &'a Part<F>,
    /// The answer to it.
    pub answer: &'a F::Message,
    /// The answer to the earlier one.
    pub earlier: &'a F::Message,
    /// The two were asked by different commands: over two channels of one peer.
    pub is_of_two_channels: bool,
}

/// The answers of a session that have an earlier twin: of each the first one, in this or an earlier session, where
/// `are_same` says that the same was asked. What may differ between the two answers is for the face to say.
pub fn twins<'a, F: Face>(
    trace: &Trace<'a, F>,
    heard: &Heard<'a, F>,
    are_same: impl Fn(&Part<F>, &Part<F>) -> bool,
) -> Vec<Twins<'a, F>> {
    let earlier = trace.sessions.iter().take_while(|other| other.session <= heard.session);
    let earlier: Vec<(usize, Found<'a, F>)> =
        earlier.flat_map(|other| other.answers().map(|found| (other.session, found))).collect();
    let command = |session: usize| trace.transcript.plan.sessions.get(session).map(|spec| &spec.command);
    let begin = earlier.partition_point(|(session, _)| *session < heard.session);
    let own = earlier.iter().enumerate().skip(begin);
    own.filter_map(|(at, (session, (asked, part, answer)))| {
        let (other, (_, _, first)) = earlier[..at].iter().find(|(_, (_, other, _))| are_same(other, part))?;
        Some(Twins {
            asked,
            part,
            answer: answer.message,
            earlier: first.message,
            is_of_two_channels: command(*session) != command(*other),
        })
    })
    .collect()
}

/// A request that was answered.
type Found<'a, F> = (&'a Asked<F>, &'a Part<F>, Answer<'a, F>);
