//! Which reply answers which request.
//!
//! Replies come in the order of the requests, but some requests may stay unanswered by right, and a faulty peer loses
//! replies or makes extra ones. Where the numbers agree there is nothing to decide. Where they do not, the assignment
//! that keeps the order and fits the most expectations is taken, so that one lost reply is one finding.

use super::expect::Expect;
use crate::json::Json;

/// One reply frame, decoded where it could be.
pub struct Frame {
    /// Exact bytes, without the line feed.
    pub bytes: Vec<u8>,
    /// The strict JSON value, or why it is none.
    pub value: Result<Json, String>,
}

/// For each expectation the index of the frame that answers it; and the frames that answer nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Alignment {
    /// `None`: no reply.
    pub answers: Vec<Option<usize>>,
    /// Frames without a request.
    pub extra: Vec<usize>,
}

/// Longest problem solved by the quadratic search; longer ones are cut at their ends first.
const SEARCH_CELLS_MAX: usize = 4_000_000;

/// Assigns frames to expectations.
pub fn align(expects: &[&Expect], frames: &[Frame]) -> Alignment {
    let fits =
        |e: usize, f: usize| frames[f].value.as_ref().is_ok_and(|value| expects[e].fit(value).is_some());
    if expects.len() == frames.len() && !expects.iter().any(|expect| expect.may_be_silent()) {
        return Alignment { answers: (0..frames.len()).map(Some).collect(), extra: Vec::new() };
    }
    // What fits from both ends on needs no search.
    let mut head = 0;
    while head < expects.len().min(frames.len()) && fits(head, head) && !expects[head].may_be_silent() {
        head += 1;
    }
    let (mut e_end, mut f_end) = (expects.len(), frames.len());
    while e_end > head && f_end > head && fits(e_end - 1, f_end - 1) && !expects[e_end - 1].may_be_silent() {
        e_end -= 1;
        f_end -= 1;
    }
    let mut answers: Vec<Option<usize>> = (0..head).map(Some).collect();
    let mut extra = Vec::new();
    let (rows, columns) = (e_end - head, f_end - head);
    if rows.saturating_mul(columns) > SEARCH_CELLS_MAX {
        // Far out of step: in order, as far as the frames go.
        answers.extend((0..rows).map(|row| (row < columns).then_some(head + row)));
        extra.extend((rows..columns).map(|column| head + column));
    } else {
        search(expects, (head, e_end), (head, f_end), &fits, &mut answers, &mut extra);
    }
    answers.extend((0..expects.len() - e_end).map(|n| Some(f_end + n)));
    Alignment { answers, extra }
}

/// Weights: a fitting pair is best; an ill-fitting pair is better than a lost reply and an extra one.
const FIT: i64 = 4;
const MISFIT: i64 = 1;
const ALLOWED_SILENCE: i64 = 2;

fn search(
    expects: &[&Expect],
    (e_from, e_to): (usize, usize),
    (f_from, f_to): (usize, usize),
    fits: &dyn Fn(usize, usize) -> bool,
    answers: &mut Vec<Option<usize>>,
    extra: &mut Vec<usize>,
) {
    let (rows, columns) = (e_to - e_from, f_to - f_from);
    let width = columns + 1;
    // best[r][c]: best weight for the expectations from r and the frames from c on.
    let mut best = vec![0_i64; (rows + 1) * width];
    for row in (0..rows).rev() {
        let silence = if expects[e_from + row].may_be_silent() { ALLOWED_SILENCE } else { 0 };
        for column in (0..=columns).rev() {
            let mut value = silence + best[(row + 1) * width + column];
            if column < columns {
                value = value.max(best[row * width + column + 1]);
                let pair = if fits(e_from + row, f_from + column) { FIT } else { MISFIT };
                value = value.max(pair + best[(row + 1) * width + column + 1]);
            }
            best[row * width + column] = value;
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < rows {
        let here = best[row * width + column];
        if column < columns {
            let pair = if fits(e_from + row, f_from + column) { FIT } else { MISFIT };
            if here == pair + best[(row + 1) * width + column + 1] {
                answers.push(Some(f_from + column));
                row += 1;
                column += 1;
                continue;
            }
            if here == best[row * width + column + 1] {
                extra.push(f_from + column);
                column += 1;
                continue;
            }
        }
        answers.push(None);
        row += 1;
    }
    extra.extend((column..columns).map(|column| f_from + column));
}

#[cfg(test)]
mod tests {
    use super::super::expect::{Allowed, Outcome, parse};
    use super::*;

    fn frame(text: &str) -> Frame {
        Frame { bytes: text.as_bytes().to_vec(), value: Ok(parse(text).unwrap()) }
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
    fn an_allowed_silence_takes_no_frame() {
        let (first, first_frame) = echo(1);
        let (last, last_frame) = echo(2);
        let blank = Expect::refused("C").or(Allowed::of(Outcome::Silence));
        let alignment = align(&[&first, &blank, &last], &[first_frame, last_frame]);
        assert_eq!(alignment.answers, [Some(0), None, Some(1)]);
    }
}
