//! Assignment of messages to requests if answers come in the order of requests.
//!
//! Some requests may stay unanswered, and a faulty peer loses answers or adds some. If the numbers agree, the
//! assignment is trivial. Otherwise the one is taken that keeps the order and fits the most requests, so that one lost
//! answer gives one finding. A message never answers a request that was sent after it.
//!
//! The search works like an edit distance in a band around the diagonal. Allowed silence drifts to one side only, by at
//! most the difference of the numbers, so every correct assignment lies inside the band.

use super::matching;

/// Request, reduced to its role in the order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderedRequest {
    /// Set if it may stay unanswered.
    pub may_be_silent: bool,
    /// Set if it may stay unanswered although later ones are answered.
    pub may_be_passed_over: bool,
    /// Set if the session may end with it.
    pub may_end: bool,
}

/// Result: answer of each request, and unmatched messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Alignment {
    /// Number of the answering message; `None` without an answer.
    pub answers: Vec<Option<usize>>,
    /// Messages without a request.
    pub extra: Vec<usize>,
}

impl Alignment {
    /// Assigns superfluous messages to unanswered requests for which `those` holds, each to the last one sent before
    /// it.
    pub fn blame(&mut self, those: &dyn Fn(usize) -> bool, can: &dyn Fn(usize, usize) -> bool) {
        let answers = &mut self.answers;
        let mut open: Vec<usize> =
            (0..answers.len()).filter(|turn| answers[*turn].is_none() && those(*turn)).collect();
        self.extra.retain(|thing| {
            let at = open.iter().rposition(|turn| can(*turn, *thing));
            at.map(|at| answers[open.remove(at)] = Some(*thing)).is_none()
        });
    }

    /// Exchanges answers if they are correct in another order. Returns the first request whose answer came out of turn.
    /// Changes nothing if no order is correct. `may_be_silent` tells if a request needs no answer, `proves` if a
    /// message can only be the answer to that request: then a request that accepts any message gives it back.
    pub fn put_in_order(
        &mut self,
        may_be_silent: &dyn Fn(usize) -> bool,
        fits: &dyn Fn(usize, usize) -> bool,
        proves: &dyn Fn(usize, usize) -> bool,
    ) -> Option<usize> {
        let is_wrong = |turn: &usize| match self.answers[*turn] {
            Some(thing) => !fits(*turn, thing),
            None => !may_be_silent(*turn),
        };
        let wrong: Vec<usize> = (0..self.answers.len()).filter(is_wrong).take(EXCHANGED_MAX + 1).collect();
        if wrong.is_empty() || wrong.len() > EXCHANGED_MAX {
            return None;
        }
        self.exchange(&wrong, fits).or_else(|| {
            let holds_another = |turn: usize| {
                self.answers[turn].is_some_and(|thing| {
                    !proves(turn, thing) && wrong.iter().any(|owner| proves(*owner, thing))
                })
            };
            let more: Vec<usize> = (0..self.answers.len())
                .filter(|turn| wrong.binary_search(turn).is_ok() || holds_another(*turn))
                .collect();
            if more.len() > wrong.len() { self.exchange(&more, fits) } else { None }
        })
    }

    /// Exchanges the answers of `turns` and the unmatched messages, if all fit in another order. Returns the first
    /// turn.
    fn exchange(&mut self, turns: &[usize], fits: &dyn Fn(usize, usize) -> bool) -> Option<usize> {
        let answers = turns.iter().filter_map(|turn| self.answers[*turn]);
        let things: Vec<usize> = answers.chain(self.extra.iter().copied()).collect();
        if turns.len() != things.len() || turns.len() > EXCHANGED_MAX {
            return None;
        }
        let pairs = |turn: usize, thing: usize| fits(turns[turn], things[thing]);
        let holder = matching::pair(&vec![(); turns.len()], things.len(), &pairs);
        if holder.contains(&None) {
            return None;
        }
        for (thing, turn) in things.iter().zip(holder) {
            self.answers[turns[turn?]] = Some(*thing);
        }
        self.extra.clear();
        turns.first().copied()
    }
}

/// Maximum number of answers that are put in order: each is compared with each request.
const EXCHANGED_MAX: usize = 512;

/// Number of positions by which a faulty peer may be out of step, beyond the difference of the numbers.
const SLACK: usize = 32;

/// Maximum number of cells to search; beyond it messages are assigned in order.
const SEARCH_CELLS_MAX: usize = 4_000_000;

/// Assigns messages `0..things` to `turns`. `can` tells if a message came after the request was begun, `fits` if it is
/// a correct answer.
pub fn align(
    turns: &[OrderedRequest],
    things: usize,
    can: &dyn Fn(usize, usize) -> bool,
    fits: &dyn Fn(usize, usize) -> bool,
) -> Alignment {
    let fits = |turn: usize, thing: usize| can(turn, thing) && fits(turn, thing);
    if turns.len() == things
        && !turns.iter().any(|turn| turn.may_be_silent)
        && (0..things).all(|at| can(at, at))
    {
        return Alignment { answers: (0..things).map(Some).collect(), extra: Vec::new() };
    }
    if let Some(answers) = straight(turns, things, &fits) {
        return Alignment { answers, extra: Vec::new() };
    }
    // Fitting pairs at both ends need no search.
    let mut head = 0;
    while head < turns.len().min(things) && fits(head, head) && !turns[head].may_be_silent {
        head += 1;
    }
    let (mut turns_end, mut things_end) = (turns.len(), things);
    // Not if the session may have ended on the way: then the last message need not belong to the last request.
    let may_end = turns.iter().any(|turn| turn.may_end);
    while !may_end
        && turns_end > head
        && things_end > head
        && fits(turns_end - 1, things_end - 1)
        && !turns[turns_end - 1].may_be_silent
    {
        turns_end -= 1;
        things_end -= 1;
    }
    let mut answers: Vec<Option<usize>> = (0..head).map(Some).collect();
    let mut extra = Vec::new();
    let band = Band::new(turns_end - head, things_end - head);
    if band.cells() > SEARCH_CELLS_MAX {
        // Far out of step: assign in order as long as messages last.
        let mut next = head;
        for row in head..turns_end {
            while next < things_end && !can(row, next) {
                extra.push(next);
                next += 1;
            }
            answers.push((next < things_end).then_some(next));
            next += usize::from(next < things_end);
        }
        extra.extend(next..things_end);
    } else {
        let pair = |turn: usize, thing: usize| match (can(turn, thing), fits(turn, thing)) {
            (false, _) => OUTSIDE,
            (true, true) => FIT,
            (true, false) => MISFIT,
        };
        search(&band, &turns[head..turns_end], head, &pair, &mut answers, &mut extra);
    }
    answers.extend((0..turns.len() - turns_end).map(|n| Some(things_end + n)));
    Alignment { answers, extra }
}

/// Cells (row, column) with `column - row` from `-below` to `above`. Rows are requests, columns are messages.
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

    /// Index of a cell; `None` outside the band and the table.
    fn place(&self, row: usize, column: usize) -> Option<usize> {
        let inside = row <= self.rows
            && column <= self.columns
            && column + self.below >= row
            && column <= row + self.above;
        inside.then(|| row * self.width() + (column + self.below - row))
    }
}

/// Assignment in which every message fits the next request; requests that may stay unanswered are skipped if it does
/// not fit them. `None` if no such assignment exists. The search would find the same in quadratic time, because nothing
/// weighs more.
fn straight(
    turns: &[OrderedRequest],
    things: usize,
    fits: &dyn Fn(usize, usize) -> bool,
) -> Option<Vec<Option<usize>>> {
    let mut next = 0;
    let mut answers = Vec::with_capacity(turns.len());
    for (at, turn) in turns.iter().enumerate() {
        if next < things && fits(at, next) {
            answers.push(Some(next));
            next += 1;
        } else if turn.may_be_silent {
            answers.push(None);
        } else {
            return None;
        }
    }
    (next == things).then_some(answers)
}

/// Weights: a fitting pair is best; a pair that does not fit is better than a lost reply plus a superfluous one.
const FIT: i64 = 4;
const MISFIT: i64 = 1;
const ALLOWED_SILENCE: i64 = 2;
const OUTSIDE: i64 = i64::MIN / 2;

/// Decision at a cell.
#[derive(Clone, Copy)]
enum AlignmentMove {
    /// The message answers the request.
    Pair,
    /// The message answers nothing.
    Extra,
    /// The request has no answer.
    Silence,
    /// The session ends here: neither this request nor a later one has an answer.
    End,
}

/// Assigns all messages from `head` on to `turns`, which also begin at `head`.
fn search(
    band: &Band,
    turns: &[OrderedRequest],
    head: usize,
    pair_weight: &dyn Fn(usize, usize) -> i64,
    answers: &mut Vec<Option<usize>>,
    extra: &mut Vec<usize>,
) {
    // Best weight and its move, for the requests from a row and the messages from a column on.
    let mut best = vec![(0_i64, AlignmentMove::Extra); band.cells()];
    let weight =
        |best: &[(i64, AlignmentMove)], row, column| band.place(row, column).map_or(OUTSIDE, |at| best[at].0);
    for row in (0..band.rows).rev() {
        let silence = if turns[row].may_be_passed_over { ALLOWED_SILENCE } else { 0 };
        let last = band.columns.min(row + band.above);
        for column in (row.saturating_sub(band.below)..=last).rev() {
            let Some(here) = band.place(row, column) else { continue };
            let mut value = (silence + weight(&best, row + 1, column), AlignmentMove::Silence);
            // A session that may end explains every later silence. Each silent line gets the weight of an allowed
            // silence, so that no reply moves there for a better total.
            let ended = ALLOWED_SILENCE * i64::try_from(band.rows - row).unwrap_or(0);
            if turns[row].may_end && ended > value.0 {
                value = (ended, AlignmentMove::End);
            }
            if column < band.columns {
                let skip = weight(&best, row, column + 1);
                if skip >= value.0 {
                    value = (skip, AlignmentMove::Extra);
                }
                let rest = weight(&best, row + 1, column + 1);
                // Skip pairs that could not win even if they fitted.
                if FIT + rest >= value.0 {
                    let pair = rest.saturating_add(pair_weight(head + row, head + column));
                    if pair >= value.0 {
                        value = (pair, AlignmentMove::Pair);
                    }
                }
            }
            best[here] = value;
        }
    }
    let (mut row, mut column) = (0, 0);
    while row < band.rows {
        match band.place(row, column).map_or(AlignmentMove::Silence, |at| best[at].1) {
            AlignmentMove::Pair => {
                answers.push(Some(head + column));
                (row, column) = (row + 1, column + 1);
            }
            AlignmentMove::Extra => {
                extra.push(head + column);
                column += 1;
            }
            AlignmentMove::Silence => {
                answers.push(None);
                row += 1;
            }
            AlignmentMove::End => {
                answers.resize(answers.len() + band.rows - row, None);
                row = band.rows;
            }
        }
    }
    extra.extend((column..band.columns).map(|column| head + column));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_another_order_are_exchanged() {
        let fits = |turn: usize, thing: usize| [2, 0, 1][turn] == thing || turn == 0 && thing == 0;
        let mut swapped = Alignment { answers: vec![Some(0), Some(1), Some(2)], extra: Vec::new() };
        assert_eq!(
            swapped.put_in_order(&|_| false, &fits, &|_, _| false),
            None,
            "the first answer fits, so the others are wrong"
        );
        let proves = |turn: usize, thing: usize| turn != 0 && fits(turn, thing);
        let mut taken = Alignment { answers: vec![Some(0), Some(1), Some(2)], extra: Vec::new() };
        assert_eq!(taken.put_in_order(&|_| false, &fits, &proves), Some(0), "it can only answer the second");
        assert_eq!(taken.answers, [Some(2), Some(0), Some(1)]);
        let fits = |turn: usize, thing: usize| [2, 0, 1][turn] == thing;
        assert_eq!(swapped.put_in_order(&|_| false, &fits, &|_, _| false), Some(0));
        assert_eq!(swapped.answers, [Some(2), Some(0), Some(1)]);
        let mut moved = Alignment { answers: vec![Some(2), None, Some(1)], extra: vec![0] };
        assert_eq!(moved.put_in_order(&|_| false, &fits, &|_, _| false), Some(1));
        assert_eq!((moved.answers, moved.extra), (vec![Some(2), Some(0), Some(1)], Vec::new()));
        let mut lost = Alignment { answers: vec![Some(2), None, Some(1)], extra: Vec::new() };
        assert_eq!(lost.put_in_order(&|_| false, &fits, &|_, _| false), None);
    }

    #[test]
    fn what_needs_no_search_is_what_the_search_finds() {
        let blank = OrderedRequest { may_be_silent: true, may_be_passed_over: true, may_end: false };
        // Each bit stands for a line, set if blank; the other bits say which blank lines are answered.
        for (lines, answered) in (0..64_u32).flat_map(|lines| (0..64).map(move |answered| (lines, answered)))
        {
            let (mut turns, mut things) = (Vec::new(), Vec::new());
            for bit in 0..6 {
                let (is_blank, is_answered) = (lines >> bit & 1 == 1, answered >> bit & 1 == 1);
                turns.push(if is_blank { blank } else { OrderedRequest::default() });
                if !is_blank || is_answered {
                    things.push(if is_blank { None } else { Some(bit) });
                }
            }
            let fits = |turn: usize, thing: usize| match things[thing] {
                None => turns[turn].may_be_silent,
                Some(bit) => bit == turn,
            };
            let Some(found) = straight(&turns, things.len(), &fits) else { continue };
            let (mut answers, mut extra) = (Vec::new(), Vec::new());
            let band = Band::new(turns.len(), things.len());
            let pair = |turn: usize, thing: usize| if fits(turn, thing) { FIT } else { MISFIT };
            search(&band, &turns, 0, &pair, &mut answers, &mut extra);
            assert_eq!((found, Vec::new()), (answers, extra), "{lines:b} {answered:b}");
        }
    }
}
