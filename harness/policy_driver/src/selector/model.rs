//! Model of the circuit breaker and of the outcome of a scripted driver, written from the contract alone.
//!
//! Times are spans between two recorded moments. If they do not decide whether a driver must start, both outcomes
//! are allowed, and the model continues with the recorded one.

use super::super::block;
use super::super::request::sids;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::ActorStep;

pub(super) mod walk;

/// Two moments between which an event happened, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Earliest moment.
    pub from_us: u64,
    /// Latest moment.
    pub to_us: u64,
}

impl Span {
    /// A known moment.
    pub fn at(us: u64) -> Self {
        Self { from_us: us, to_us: us }
    }
}

/// Requirement to start a driver for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A driver must start: the breaker is closed, or its cooldown is over.
    Must,
    /// No driver may start: the breaker is open.
    MustNot,
    /// Both are allowed, because the times do not decide.
    May,
}

/// State of the circuit breaker.
#[derive(Debug, Clone)]
pub struct Breaker {
    threshold: u64,
    cooldown_us: u64,
    /// Number of consecutive failures.
    failures: u64,
    /// Span of the last failure that opened it, and number of openings since the last success.
    opened: Option<(Span, u64)>,
}

impl Breaker {
    /// A closed breaker without failures.
    pub fn new(threshold: u64, cooldown_ms: u64) -> Self {
        Self { threshold, cooldown_us: cooldown_ms.saturating_mul(1_000), failures: 0, opened: None }
    }

    /// Requirement to start a driver at a moment in `span`.
    pub fn start(&self, span: Span) -> Start {
        let Some((opened, _)) = self.opened else { return Start::Must };
        if span.from_us >= opened.to_us.saturating_add(self.cooldown_us) {
            Start::Must
        } else if span.to_us < opened.from_us.saturating_add(self.cooldown_us) {
            Start::MustNot
        } else {
            Start::May
        }
    }

    /// Records a failure at a moment in `span`.
    pub fn fails(&mut self, span: Span) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.threshold {
            let times = self.opened.map_or(0, |(_, times)| times);
            self.opened = Some((span, times + 1));
        }
    }

    /// Records a success.
    pub fn succeeds(&mut self) {
        (self.failures, self.opened) = (0, None);
    }

    /// Clause that a missing start breaks.
    fn clause_of_start(&self) -> &'static str {
        match self.opened {
            None if self.failures == 0 => "PD-MODE-01",
            None => "PD-BRK-01",
            Some(_) if self.cooldown_us == 0 => "PD-BRK-08",
            Some(_) => "PD-BRK-04",
        }
    }

    /// Clause that a forbidden start breaks.
    fn clause_of_rest(&self) -> &'static str {
        match self.opened {
            Some((_, times)) if times > 1 => "PD-BRK-06",
            _ => "PD-BRK-03",
        }
    }
}

/// Outcome of a driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverOutcome {
    /// One valid block.
    Block,
    /// Failure, under this clause.
    Failure(&'static str),
    /// Either, because of the contract or of a busy machine.
    Either,
}

/// Settings that decide the outcome of a driver.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Timeout, ms.
    pub timeout_ms: u64,
    /// Largest output, bytes.
    pub stdout_bytes_max: u64,
    /// True if patches are accepted.
    pub patches: bool,
}

/// Outcome and output of a driver with this script for `request`.
pub fn deed(turn: &[ActorStep], request: &Json, bounds: &Bounds) -> (DriverOutcome, Vec<u8>) {
    let mut run = Run::default();
    for step in turn {
        if run.status.is_some() {
            break;
        }
        run.play(step, bounds);
    }
    (run.comes_to(request, bounds), run.output)
}

#[derive(Default)]
struct Run {
    output: Vec<u8>,
    /// True if the output exceeded its limit.
    is_over: bool,
    is_closed: bool,
    is_held: bool,
    slept_ms: u64,
    /// True if it exited with status 0.
    status: Option<bool>,
}

impl Run {
    fn play(&mut self, step: &ActorStep, bounds: &Bounds) {
        match step {
            ActorStep::Stdout(payload) if !self.is_closed => {
                self.print(&payload.expand(&Vars::new()).unwrap_or_default(), bounds);
            }
            ActorStep::Flood { unit, bytes_max } if !self.is_closed => {
                let bytes = (*bytes_max).min(bounds.stdout_bytes_max.saturating_add(1));
                let times = bytes / (unit.len() as u64).max(1) + 1;
                self.print(unit.repeat(usize::try_from(times).unwrap_or(0)).as_bytes(), bounds);
            }
            ActorStep::Sleep { ms } => self.slept_ms = self.slept_ms.saturating_add(*ms),
            ActorStep::CloseStdout => self.is_closed = true,
            ActorStep::ForkHolder { .. } => self.is_held = true,
            ActorStep::Exit(status) => self.status = Some(*status == 0),
            ActorStep::Die(_) | ActorStep::Exhaust { .. } => self.status = Some(false),
            ActorStep::Stdout(_)
            | ActorStep::Flood { .. }
            | ActorStep::Stderr(_)
            | ActorStep::ReadRequest
            | ActorStep::ReadToEnd
            | ActorStep::Converse(_)
            | ActorStep::Perform(_)
            | ActorStep::Quote(_)
            | ActorStep::Look(_)
            | ActorStep::IgnoreTerm => {}
        }
    }

    fn print(&mut self, bytes: &[u8], bounds: &Bounds) {
        self.is_over |= (self.output.len() + bytes.len()) as u64 > bounds.stdout_bytes_max;
        if !self.is_over {
            self.output.extend_from_slice(bytes);
        }
    }

    fn comes_to(&self, request: &Json, bounds: &Bounds) -> DriverOutcome {
        // Several causes make one failure; the first match names it.
        if self.is_over {
            return DriverOutcome::Failure("PD-FAIL-05");
        }
        if self.slept_ms >= bounds.timeout_ms {
            return DriverOutcome::Failure("PD-FAIL-02");
        }
        if self.status == Some(false) {
            return DriverOutcome::Failure("PD-FAIL-03");
        }
        let block = match block::parse_within(&self.output, usize::MAX) {
            Ok(block) => block,
            Err(block::Fault::Empty) => return DriverOutcome::Failure("PD-FAIL-04"),
            Err(_) => return DriverOutcome::Failure("PD-FAIL-06"),
        };
        let is_known = block.sid.as_deref().is_none_or(|sid| sids(request).contains(&sid));
        if !is_known || block.patch.is_some() && !bounds.patches {
            return DriverOutcome::Failure("PD-FAIL-06");
        }
        if self.is_held || !block.open.is_empty() { DriverOutcome::Either } else { DriverOutcome::Block }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::request::Request;
    use super::super::talk::{prints, says};
    use super::*;
    use peerproof_engine::data::payload::Payload;

    const BLOCK: &str = "<PICK><SID0042><END>";

    fn comes_to(turn: &[ActorStep]) -> DriverOutcome {
        let bounds = Bounds { timeout_ms: 1_000, stdout_bytes_max: 100, patches: true };
        deed(turn, &Request::plain().0, &bounds).0
    }

    #[test]
    fn knows_what_a_driver_comes_to() {
        let after = |step: ActorStep| [says(BLOCK), vec![step]].concat();
        let padded = |bytes: u64| prints(Payload::text(BLOCK).repeat(" ", bytes - 20));
        assert_eq!(comes_to(&says(BLOCK)), DriverOutcome::Block);
        assert_eq!(comes_to(&after(ActorStep::Exit(0))), DriverOutcome::Block);
        assert_eq!(comes_to(&padded(100)), DriverOutcome::Block);
        assert_eq!(comes_to(&padded(101)), DriverOutcome::Failure("PD-FAIL-05"));
        assert_eq!(
            comes_to(&after(ActorStep::Flood { unit: " ".to_owned(), bytes_max: u64::MAX })),
            DriverOutcome::Failure("PD-FAIL-05")
        );
        assert_eq!(comes_to(&after(ActorStep::Exit(1))), DriverOutcome::Failure("PD-FAIL-03"));
        assert_eq!(comes_to(&after(ActorStep::Die(9))), DriverOutcome::Failure("PD-FAIL-03"));
        assert_eq!(comes_to(&after(ActorStep::Sleep { ms: 60_000 })), DriverOutcome::Failure("PD-FAIL-02"));
        assert_eq!(
            comes_to(&[vec![ActorStep::CloseStdout], says(BLOCK)].concat()),
            DriverOutcome::Failure("PD-FAIL-04")
        );
        assert_eq!(comes_to(&[]), DriverOutcome::Failure("PD-FAIL-04"));
        assert_eq!(comes_to(&says("<PICK><SID0001><END>")), DriverOutcome::Failure("PD-FAIL-06"));
        let holder = ActorStep::ForkHolder { ms: 1, leave_group: false };
        assert_eq!(comes_to(&after(holder.clone())), DriverOutcome::Either);
        let quiet = [says(BLOCK), vec![ActorStep::CloseStdout, holder.clone()]].concat();
        // The child holds standard error.
        assert_eq!(comes_to(&quiet), DriverOutcome::Either);
        assert_eq!(
            comes_to(&[after(holder), vec![ActorStep::Exit(1)]].concat()),
            DriverOutcome::Failure("PD-FAIL-03")
        );
    }

    #[test]
    fn says_nothing_where_the_times_tell_nothing() {
        let span = |from_us, to_us| Span { from_us, to_us };
        let mut breaker = Breaker::new(1, 1);
        assert_eq!(breaker.start(span(0, 9)), Start::Must);
        breaker.fails(span(100, 200));
        assert_eq!(breaker.start(span(201, 1_099)), Start::MustNot);
        assert_eq!(breaker.start(span(201, 1_100)), Start::May);
        assert_eq!(breaker.start(span(1_199, 1_300)), Start::May);
        assert_eq!(breaker.start(span(1_200, 1_300)), Start::Must);
        breaker.succeeds();
        assert_eq!(breaker.start(span(1_300, 1_300)), Start::Must);
    }
}
