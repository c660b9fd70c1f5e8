//! Assignment of replies to requests: replies come in the order of the requests.

use super::expect::Expect;
use peerproof_engine::contract::judge::order::{self, Alignment, OrderedRequest};
use peerproof_engine::data::json::Json;

/// One reply frame, decoded if possible.
pub(crate) struct Frame {
    /// Exact bytes, without the line feed.
    pub bytes: Vec<u8>,
    /// Strict JSON value, or the reason why it is not JSON.
    pub value: Result<Json, String>,
    /// Index of the event that completed it, within its session.
    pub place: usize,
}

/// A sent line with its expected answer and the index of the event that began it.
#[derive(Clone, Copy)]
pub(crate) struct ExpectedLine<'a> {
    /// Expected answer.
    pub expect: &'a Expect,
    /// Index of the line's first event. Earlier frames cannot answer it.
    pub sent: usize,
}

/// Assigns frames to sent lines.
pub(crate) fn align(dues: &[ExpectedLine<'_>], frames: &[Frame]) -> Alignment {
    let turn = |due: &ExpectedLine<'_>| OrderedRequest {
        may_be_silent: due.expect.may_be_silent(),
        may_be_passed_over: due.expect.may_be_passed_over(),
        may_end: due.expect.may_end(),
    };
    let turns: Vec<OrderedRequest> = dues.iter().map(turn).collect();
    let can = |e: usize, f: usize| frames[f].place >= dues[e].sent;
    let fits =
        |e: usize, f: usize| frames[f].value.as_ref().is_ok_and(|value| dues[e].expect.fit(value).is_some());
    order::align(&turns, frames.len(), &can, &fits)
}

#[cfg(test)]
mod tests {
    use super::super::expect::{Allowed, Outcome, parse};
    use super::*;

    fn frame(text: &str) -> Frame {
        Frame { bytes: text.as_bytes().to_vec(), value: Ok(parse(text).unwrap()), place: 0 }
    }

    fn align(expects: &[&Expect], frames: &[Frame]) -> Alignment {
        let dues: Vec<ExpectedLine<'_>> =
            expects.iter().map(|expect| ExpectedLine { expect, sent: 0 }).collect();
        super::align(&dues, frames)
    }

    fn echo(n: u32) -> (Expect, Frame) {
        let reply = format!(r#"{{"ok":true,"status":"OK","output_json":"{{\"n\":{n}}}","error":""}}"#);
        (Expect::output("C", format!("{{\"n\":{n}}}")), frame(&reply))
    }

    #[test]
    fn a_lost_reply_is_found_in_the_middle() {
        let (expects, mut frames): (Vec<_>, Vec<_>) = (0..5).map(echo).unzip();
        frames.remove(2);
        let expects: Vec<&Expect> = expects.iter().collect();
        let alignment = align(&expects, &frames);
        assert_eq!(alignment.answers, [Some(0), Some(1), None, Some(2), Some(3)]);
        assert!(alignment.extra.is_empty());
    }

    #[test]
    fn an_extra_reply_belongs_to_nobody() {
        let (expects, mut frames): (Vec<_>, Vec<_>) = (0..4).map(echo).unzip();
        frames.insert(1, frame(r#"{"ok":false,"error":"banner"}"#));
        let expects: Vec<&Expect> = expects.iter().collect();
        let alignment = align(&expects, &frames);
        assert_eq!(alignment.answers, [Some(0), Some(2), Some(3), Some(4)]);
        assert_eq!(alignment.extra, [1]);
    }

    #[test]
    fn a_long_pipeline_with_losses_is_followed() {
        let (expects, mut frames): (Vec<_>, Vec<_>) = (0..3_000).map(echo).unzip();
        let lost = [7, 1_500, 1_501, 2_900];
        for index in lost.iter().rev() {
            frames.remove(*index);
        }
        frames.insert(2_000, frame(r#"{"ok":false,"error":"banner"}"#));
        let expects: Vec<&Expect> = expects.iter().collect();
        let alignment = align(&expects, &frames);
        let silent: Vec<usize> =
            alignment.answers.iter().enumerate().filter_map(|(n, a)| a.is_none().then_some(n)).collect();
        assert_eq!(silent, lost);
        assert_eq!(alignment.extra, [2_000]);
    }

    #[test]
    fn silences_allowed_in_a_row_drift_as_far_as_they_go() {
        let (expects, frames): (Vec<_>, Vec<_>) = (0..4).map(echo).unzip();
        let blank = Expect::refused("C").or(Allowed::of(Outcome::Silence));
        let mut all: Vec<&Expect> = vec![&expects[0]];
        all.extend(std::iter::repeat_n(&blank, 500));
        all.extend(&expects[1..]);
        let alignment = align(&all, &frames);
        assert_eq!(alignment.answers.iter().flatten().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert!(alignment.extra.is_empty());
    }

    #[test]
    fn an_allowed_silence_takes_no_frame() {
        let (first, first_frame) = echo(1);
        let (last, last_frame) = echo(2);
        let blank = Expect::refused("C").or(Allowed::of(Outcome::Silence));
        let alignment = align(&[&first, &blank, &last], &[first_frame, last_frame]);
        assert_eq!(alignment.answers, [Some(0), None, Some(1)]);
    }
    /// A banner looks like a refusal, and the refusal never comes. The numbers agree, but the times do not.
    #[test]
    fn a_frame_from_before_a_line_does_not_answer_it() {
        let refused = Expect::refused("C");
        let early = || frame(r#"{"ok":false,"error":"banner"}"#);
        let alignment = super::align(&[ExpectedLine { expect: &refused, sent: 1 }], &[early()]);
        assert_eq!((alignment.answers, alignment.extra), (vec![None], vec![0]));

        let (good, mut answer) = echo(1);
        answer.place = 2;
        let dues = [ExpectedLine { expect: &good, sent: 1 }, ExpectedLine { expect: &refused, sent: 3 }];
        let alignment = super::align(&dues, &[early(), answer]);
        assert_eq!((alignment.answers, alignment.extra), (vec![Some(1), None], vec![0]));
    }

    /// An answer also fits a blank line that was sent later.
    #[test]
    fn a_line_that_may_stay_silent_takes_no_earlier_answer() {
        let blank = Expect::refused("C").or(Allowed::of(Outcome::Silence));
        let (good, _) = echo(1);
        let wrong = Frame { place: 2, ..frame(r#"{"ok":false,"error":"no"}"#) };
        let dues = [ExpectedLine { expect: &good, sent: 1 }, ExpectedLine { expect: &blank, sent: 3 }];
        assert_eq!(super::align(&dues, &[wrong]).answers, [Some(0), None]);
    }
}
