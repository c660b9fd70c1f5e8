//! Which reply answers which request.
//!
//! Replies come in the order of the requests, but some requests may stay unanswered by right, and a faulty peer loses
//! replies or makes extra ones. Where the numbers agree there is nothing to decide. Where they do not, the assignment
//! that keeps the order and fits the most expectations is taken, so that one lost reply is one finding. Whatever their
//! numbers, a frame that came before a line was sent never answers it.
//!
//! The search is that of an edit distance, in a band around the diagonal: replies that are left out by right drift to
//! one side only, and by no more than the numbers differ, so every right assignment lies inside it.

use super::expect::Expect;
use peerproof_engine::json::Json;

/// One reply frame, decoded where it could be.
pub struct Frame {
    /// Exact bytes, without the line feed.
    pub bytes: Vec<u8>,
    /// The strict JSON value, or why it is none.
    pub value: Result<Json, String>,
    /// Place of the event that completed it among those of its session.
    pub place: usize,
}

/// One line that was sent: what it may be answered with, and the place of the event that began it.
#[derive(Clone, Copy)]
pub struct Due<'a> {
    /// What may come.
    pub expect: &'a Expect,
    /// No frame that came before this place answers the line.
    pub sent: usize,
}

/// For each expectation the index of the frame that answers it; and the frames that answer nothing.
#[derive(Debug, PartialEq, Eq)]
pub struct Alignment {
    /// `None`: no reply.
    pub answers: Vec<Option<usize>>,
    /// Frames without a request.
    pub extra: Vec<usize>,
}

/// Places that a faulty peer may be out of step by, beyond the difference of the numbers, and still be followed.
const SLACK: usize = 32;

/// Largest search, in cells of the band; past it replies are taken in order.
const SEARCH_CELLS_MAX: usize = 4_000_000;

/// Assigns frames to expectations.
pub fn align(dues: &[Due<'_>], frames: &[Frame]) -> Alignment {
    let can = |e: usize, f: usize| frames[f].place >= dues[e].sent;
    let fits = |e: usize, f: usize| {
        can(e, f) && frames[f].value.as_ref().is_ok_and(|value| dues[e].expect.fit(value).is_some())
    };
    let expects: Vec<&Expect> = dues.iter().map(|due| due.expect).collect();
    let expects = expects.as_slice();
    if expects.len() == frames.len()
        && !expects.iter().any(|expect| expect.may_be_silent())
        && (0..frames.len()).all(|at| can(at, at))
    {
        return Alignment { answers: (0..frames.len()).map(Some).collect(), extra: Vec::new() };
    }
    if let Some(answers) = straight(expects, frames.len(), &fits) {
        return Alignment { answers, extra: Vec::new() };
    }
    // What fits from both ends on needs no search.
    let mut head = 0;
    while head < expects.len().min(frames.len()) && fits(head, head) && !expects[head].may_be_silent() {
        head += 1;
    }
    let (mut e_end, mut f_end) = (expects.len(), frames.len());
    // Not where the session may have ended on the way: then the last frame need not belong to a last line.
    let may_end = expects.iter().any(|expect| expect.may_end());
    while !may_end
        && e_end > head
        && f_end > head
        && fits(e_end - 1, f_end - 1)
        && !expects[e_end - 1].may_be_silent()
    {
        e_end -= 1;
        f_end -= 1;
    }
    let mut answers: Vec<Option<usize>> = (0..head).map(Some).collect();
    let mut extra = Vec::new();
    let (rows, columns) = (e_end - head, f_end - head);
    let band = Band::new(rows, columns);
    if band.cells() > SEARCH_CELLS_MAX {
        // Far out of step: in order, as far as the frames go.
        let mut next = head;
        for row in head..e_end {
            while next < f_end && !can(row, next) {
                extra.push(next);
                next += 1;
            }
            answers.push((next < f_end).then_some(next));
            next += usize::from(next < f_end);
        }
        extra.extend(next..f_end);
    } else {
        let pair = |e: usize, f: usize| match (can(e, f), fits(e, f)) {
            (false, _) => OUTSIDE,
            (true, true) => FIT,
            (true, false) => MISFIT,
        };
        search(&band, &expects[head..e_end], head, &pair, &mut answers, &mut extra);
    }
    answers.extend((0..expects.len() - e_end).map(|n| Some(f_end + n)));
    Alignment { answers, extra }
}

/// Cells (row, column) with `column - row` from `-below` to `above`: rows are expectations, columns are frames.
struct Band {
    rows: usize,
    columns: usize,
    below: usize,
    above: usize,
}

impl Band {
    fn new(rows: usize, columns: usize) -> Self {
        Self {
            rows,
            columns,
            below: rows.saturating_sub(columns) + SLACK,
            above: columns.saturating_sub(rows) + SLACK,
        }
    }

    fn width(&self) -> usize {
        self.below + self.above + 1
    }

    fn cells(&self) -> usize {
        (self.rows + 1).saturating_mul(self.width())
    }

    /// Place of a cell, `None` outside the band and the table.
    fn place(&self, row: usize, column: usize) -> Option<usize> {
        let inside = row <= self.rows
            && column <= self.columns
            && column + self.below >= row
            && column <= row + self.above;
        inside.then(|| row * self.width() + (column + self.below - row))
    }
}

/// The assignment where every frame fits the next expectation but for those that may stay unanswered. Nothing weighs
/// more, and the search would find the same, in quadratic time.
fn straight(
    expects: &[&Expect],
    frames: usize,
    fits: &dyn Fn(usize, usize) -> bool,
) -> Option<Vec<Option<usize>>> {
    let mut next = 0;
    let mut answers = Vec::with_capacity(expects.len());
    for (at, expect) in expects.iter().enumerate() {
        if next < frames && fits(at, next) {
            answers.push(Some(next));
            next += 1;
        } else if expect.may_be_silent() {
            answers.push(None);
        } else {
            return None;
        }
    }
    (next == frames).then_some(answers)
}

/// Weights: a fitting pair is best; an ill-fitting pair is better than a lost reply and an extra one.
const FIT: i64 = 4;
const MISFIT: i64 = 1;
const ALLOWED_SILENCE: i64 = 2;
const OUTSIDE: i64 = i64::MIN / 2;

/// What is done about a cell.
#[derive(Clone, Copy)]
enum Move {
    /// The frame answers the expectation.
    Pair,
    /// The frame answers nothing.
    Extra,
    /// The expectation has no reply.
    Silence,
    /// The session ends here: neither this expectation nor a later one has a reply.
    End,
}

/// Assigns all frames from `head` on to `expects`, which begin at `head` as well.
fn search(
    band: &Band,
    expects: &[&Expect],
    head: usize,
    pair_weight: &dyn Fn(usize, usize) -> i64,
    answers: &mut Vec<Option<usize>>,
    extra: &mut Vec<usize>,
) {
    // Best weight, and the move towards it, for the expectations from a row and the frames from a column on.
    let mut best = vec![(0_i64, Move::Extra); band.cells()];
    let weight = |best: &[(i64, Move)], row, column| band.place(row, column).map_or(OUTSIDE, |at| best[at].0);
    for row in (0..band.rows).rev() {
        let silence = if expects[row].may_be_passed_over() { ALLOWED_SILENCE } else { 0 };
        let last = band.columns.min(row + band.above);
        for column in (row.saturating_sub(band.below)..=last).rev() {
            let Some(here) = band.place(row, column) else { continue };
            let mut value = (silence + weight(&best, row + 1, column), Move::Silence);
            // A session that may end explains every silence from here on, and none of it may cost more than a reply that
            // a line after the end would take as gladly.
            let ended = ALLOWED_SILENCE * i64::try_from(band.rows - row).unwrap_or(0);
            if expects[row].may_end() && ended > value.0 {
                value = (ended, Move::End);
            }
            if column < band.columns {
                let skip = weight(&best, row, column + 1);
                if skip >= value.0 {
                    value = (skip, Move::Extra);
                }
                let rest = weight(&best, row + 1, column + 1);
                // A pair that could not win even if it fitted needs no look.
                if FIT + rest >= value.0 {
                    let pair = rest.saturating_add(pair_weight(head + row, head + column));
                    if pair >= value.0 {
                        value = (pair, Move::Pair);
                    }
                }
            }
            best[here] = value;
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < band.rows {
        match band.place(row, column).map_or(Move::Silence, |at| best[at].1) {
            Move::Pair => {
                answers.push(Some(head + column));
                (row, column) = (row + 1, column + 1);
            }
            Move::Extra => {
                extra.push(head + column);
                column += 1;
            }
            Move::Silence => {
                answers.push(None);
                row += 1;
            }
            Move::End => {
                answers.resize(answers.len() + band.rows - row, None);
                row = band.rows;
            }
        }
    }
    extra.extend((column..band.columns).map(|column| head + column));
}

#[cfg(test)]
mod tests {
    use super::super::expect::{Allowed, Outcome, parse};
    use super::*;

    fn frame(text: &str) -> Frame {
        Frame { bytes: text.as_bytes().to_vec(), value: Ok(parse(text).unwrap()), place: 0 }
    }

    fn align(expects: &[&Expect], frames: &[Frame]) -> Alignment {
        let dues: Vec<Due<'_>> = expects.iter().map(|expect| Due { expect, sent: 0 }).collect();
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
    fn what_needs_no_search_is_what_the_search_finds() {
        let blank = Expect::refused("C").or(Allowed::of(Outcome::Silence));
        let refusal = || frame(r#"{"ok":false,"error":"blank"}"#);
        // Each bit: a blank line; each of those that are answered: another bit.
        for (lines, answered) in (0..64_u32).flat_map(|lines| (0..64).map(move |answered| (lines, answered)))
        {
            let echoes: Vec<(Expect, Frame)> = (0..6).map(echo).collect();
            let mut expects = Vec::new();
            let mut frames = Vec::new();
            for (bit, (expect, frame)) in echoes.iter().enumerate() {
                let (is_blank, is_answered) = (lines >> bit & 1 == 1, answered >> bit & 1 == 1);
                expects.push(if is_blank { &blank } else { expect });
                if !is_blank {
                    frames.push(Frame { bytes: frame.bytes.clone(), value: frame.value.clone(), place: 0 });
                } else if is_answered {
                    frames.push(refusal());
                }
            }
            let fits =
                |e: usize, f: usize| frames[f].value.as_ref().is_ok_and(|v| expects[e].fit(v).is_some());
            let Some(found) = straight(&expects, frames.len(), &fits) else { continue };
            let (mut answers, mut extra) = (Vec::new(), Vec::new());
            let band = Band::new(expects.len(), frames.len());
            let pair = |e: usize, f: usize| if fits(e, f) { FIT } else { MISFIT };
            search(&band, &expects, 0, &pair, &mut answers, &mut extra);
            assert_eq!((found, Vec::new()), (answers, extra), "{lines:b} {answered:b}");
        }
    }

    #[test]
    fn an_allowed_silence_takes_no_frame() {
        let (first, first_frame) = echo(1);
        let (last, last_frame) = echo(2);
        let blank = Expect::refused("C").or(Allowed::of(Outcome::Silence));
        let alignment = align(&[&first, &blank, &last], &[first_frame, last_frame]);
        assert_eq!(alignment.answers, [Some(0), None, Some(1)]);
    }
    /// A banner that looks like a refusal and a refusal that never came: the numbers agree, the times do not.
    #[test]
    fn a_frame_from_before_a_line_does_not_answer_it() {
        let refused = Expect::refused("C");
        let early = || frame(r#"{"ok":false,"error":"banner"}"#);
        let alignment = super::align(&[Due { expect: &refused, sent: 1 }], &[early()]);
        assert_eq!((alignment.answers, alignment.extra), (vec![None], vec![0]));

        let (good, mut answer) = echo(1);
        answer.place = 2;
        let dues = [Due { expect: &good, sent: 1 }, Due { expect: &refused, sent: 3 }];
        let alignment = super::align(&dues, &[early(), answer]);
        assert_eq!((alignment.answers, alignment.extra), (vec![Some(1), None], vec![0]));
    }

    /// The answer to a line fits a blank one that was sent later just as well.
    #[test]
    fn a_line_that_may_stay_silent_takes_no_earlier_answer() {
        let blank = Expect::refused("C").or(Allowed::of(Outcome::Silence));
        let (good, _) = echo(1);
        let wrong = Frame { place: 2, ..frame(r#"{"ok":false,"error":"no"}"#) };
        let dues = [Due { expect: &good, sent: 1 }, Due { expect: &blank, sent: 3 }];
        assert_eq!(super::align(&dues, &[wrong]).answers, [Some(0), None]);
    }
}
