//! Mutants that count failures wrongly, or overlook one.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::super::block::{Block, BlockError};
use super::super::super::guard::{Admitted, Denied, Files, Guard};
use super::super::super::settings::Settings;
use super::super::super::{
    Admission, Blocks, Breaker, CountingBreaker, Failure, Mode, Parts, Request, Requests, SelectorConfig,
};
use super::selections::{is_fallback_for, retold};
use super::time::set_default;
use super::{Mutant, Rewiring, wire};
use crate::machine::{ChildExit, Event, Millis};
use crate::mutant::{config, machine, parts, wrap};
use crate::refusal::Refusal;

/// Message to the breaker from another part of the selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerMessage {
    Failed,
    Succeeded,
    /// Ignore the next success.
    Hush,
}

type BreakerMailbox = Arc<Mutex<Vec<BreakerMessage>>>;

fn tell(told: &BreakerMailbox, said: Option<BreakerMessage>) {
    told.lock().unwrap_or_else(PoisonError::into_inner).extend(said);
}

/// A breaker that takes messages from other parts.
#[derive(Debug)]
struct Listening {
    inner: RefCell<Box<dyn Breaker>>,
    told: BreakerMailbox,
}

impl Listening {
    /// Applies the messages. Returns true if the next success is to be ignored.
    fn listen(&self, now: Millis) -> bool {
        let said = std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner));
        let mut inner = self.inner.borrow_mut();
        for said in &said {
            match said {
                BreakerMessage::Failed => inner.failed(&Failure::Status(1), now),
                BreakerMessage::Succeeded => inner.succeeded(),
                BreakerMessage::Hush => {}
            }
        }
        said.contains(&BreakerMessage::Hush)
    }
}

impl Breaker for Listening {
    fn is_open(&self, now: Millis) -> bool {
        self.listen(now);
        self.inner.borrow().is_open(now)
    }

    fn succeeded(&mut self) {
        if !self.listen(0) {
            self.inner.borrow_mut().succeeded();
        }
    }

    fn failed(&mut self, failure: &Failure, now: Millis) {
        self.listen(now);
        self.inner.borrow_mut().failed(failure, now);
    }
}

/// A part of a selector that sends messages to the breaker.
#[derive(Debug)]
struct Telling<T, F> {
    inner: T,
    told: BreakerMailbox,
    says: F,
}

impl Requests for Telling<Box<dyn Requests>, fn(&Result<Request, Refusal>) -> Option<BreakerMessage>> {
    fn read(&mut self, line: &[u8]) -> Result<Request, Refusal> {
        let request = self.inner.read(line);
        tell(&self.told, (self.says)(&request));
        request
    }
}

impl Blocks for Telling<Box<dyn Blocks>, fn(&Block<'_>) -> Option<BreakerMessage>> {
    fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError> {
        let block = self.inner.read(stdout)?;
        tell(&self.told, (self.says)(&block));
        Ok(block)
    }
}

/// Placeholder for a part while it is wrapped.
#[derive(Debug)]
struct Nobody;

impl Requests for Nobody {
    fn read(&mut self, _line: &[u8]) -> Result<Request, Refusal> {
        Err("".into())
    }
}

impl Admission for Nobody {
    fn admit(&self, _words: &[String], _files: &dyn Files) -> Result<Admitted, Denied> {
        Err(Denied::Refused(String::new()))
    }
}

impl Blocks for Nobody {
    fn read<'t>(&mut self, _stdout: &'t [u8]) -> Result<Block<'t>, BlockError> {
        Err(BlockError::Empty)
    }
}

/// Makes the breaker take messages. Returns the channel.
fn listen(parts: &mut Parts) -> BreakerMailbox {
    let told = BreakerMailbox::default();
    let inner = std::mem::replace(&mut parts.breaker, Box::new(CountingBreaker::new(1, 0)));
    parts.breaker = Box::new(Listening { inner: RefCell::new(inner), told: Arc::clone(&told) });
    told
}

fn requests_tell(parts: &mut Parts, says: fn(&Result<Request, Refusal>) -> Option<BreakerMessage>) {
    let told = listen(parts);
    let inner = std::mem::replace(&mut parts.requests, Box::new(Nobody));
    parts.requests = Box::new(Telling { inner, told, says });
}

fn blocks_tell(parts: &mut Parts, says: fn(&Block<'_>) -> Option<BreakerMessage>) {
    let told = listen(parts);
    let inner = std::mem::replace(&mut parts.blocks, Box::new(Nobody));
    parts.blocks = Box::new(Telling { inner, told, says });
}

/// A guard that reports a command as not startable after too many refusals.
#[derive(Debug)]
struct Tiring {
    inner: Box<dyn Admission>,
    refusals_left: Cell<u64>,
}

impl Admission for Tiring {
    fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied> {
        let admitted = self.inner.admit(words, files);
        match admitted {
            Err(Denied::Refused(why)) if self.refusals_left.get() == 0 => Err(Denied::NotStartable(why)),
            Err(Denied::Refused(_)) => {
                self.refusals_left.set(self.refusals_left.get() - 1);
                admitted
            }
            _ => admitted,
        }
    }
}

/// A guard that refuses one unlisted program, and nothing afterwards.
#[derive(Debug)]
struct Yielding {
    guard: Guard,
    has_refused: Cell<bool>,
}

impl Admission for Yielding {
    fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied> {
        let admitted = self.guard.admit(words, files);
        match &admitted {
            Err(Denied::Refused(why)) if why.starts_with("the program ") => {
                if self.has_refused.replace(true) {
                    return Guard { allows_unsafe: true, ..self.guard.clone() }.admit(words, files);
                }
                admitted
            }
            _ => admitted,
        }
    }
}

/// A breaker with another rule.
#[derive(Debug)]
struct Odd {
    rule: Rule,
    threshold: u64,
    cooldown_ms: Millis,
    state: RefCell<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// A request in the cooldown restarts it.
    Slides,
    /// The cooldown counts from the first failure in the row.
    CountsFromFirst,
    /// After the cooldown the count is 0.
    Forgets,
    /// After the cooldown a failure opens it for half the time.
    ShorterAgain,
    /// A success after the cooldown leaves the count just below the threshold.
    Remembers,
    /// Once open, it stays open.
    Stays,
    /// The cooldown ends after half of its time.
    Halves,
    /// The cooldown ends after four fifths of its time.
    EndsEarly,
    /// Failures are counted in eight bits.
    CountsInAByte,
}

#[derive(Debug, Default)]
struct State {
    failures: u64,
    first_failure: Millis,
    open_until: Millis,
    was_open: bool,
}

impl Odd {
    fn put(rule: Rule, config: &SelectorConfig, parts: &mut Parts) {
        let Settings { fail_threshold: threshold, cooldown_ms, .. } = config.settings;
        parts.breaker = Box::new(Self { rule, threshold, cooldown_ms, state: RefCell::default() });
    }
}

impl Breaker for Odd {
    fn is_open(&self, now: Millis) -> bool {
        let mut state = self.state.borrow_mut();
        let is_open = now < state.open_until || (state.was_open && self.rule == Rule::Stays);
        match self.rule {
            Rule::Slides if is_open => state.open_until = now + self.cooldown_ms,
            Rule::Forgets if state.was_open && !is_open => *state = State::default(),
            _ => {}
        }
        is_open
    }

    fn succeeded(&mut self) {
        let mut state = self.state.borrow_mut();
        let was_open = std::mem::take(&mut state.was_open);
        state.failures = if was_open && self.rule == Rule::Remembers { self.threshold - 1 } else { 0 };
    }

    fn failed(&mut self, _failure: &Failure, now: Millis) {
        let mut state = self.state.borrow_mut();
        if state.failures == 0 {
            state.first_failure = now;
        }
        state.failures += 1;
        if self.rule == Rule::CountsInAByte {
            state.failures %= 256;
        }
        if state.failures >= self.threshold {
            let from = if self.rule == Rule::CountsFromFirst { state.first_failure } else { now };
            let is_shorter = match self.rule {
                Rule::Halves => true,
                Rule::ShorterAgain => state.was_open,
                _ => false,
            };
            let cooldown_ms = match self.rule {
                Rule::EndsEarly => self.cooldown_ms / 5 * 4,
                _ if is_shorter => self.cooldown_ms / 2,
                _ => self.cooldown_ms,
            };
            state.open_until = from + cooldown_ms;
            state.was_open = true;
        }
    }
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    wire(
        "select-uncounted-launch",
        &["PD-FAIL-01"],
        "A launch that fails is not counted.",
        Rewiring::Counted(|failure| !matches!(failure, Failure::NotStartable(_) | Failure::Launch(_))),
    ),
    wire(
        "select-uncounted-timeout",
        &["PD-FAIL-02"],
        "A timeout is not counted.",
        Rewiring::Counted(|failure| !matches!(failure, Failure::Timeout { .. })),
    ),
    wire(
        "select-uncounted-status",
        &["PD-FAIL-03"],
        "An exit status is not counted.",
        Rewiring::Counted(|failure| !matches!(failure, Failure::Status(_))),
    ),
    wire(
        "select-uncounted-signal",
        &["PD-FAIL-03"],
        "A signal is not counted.",
        Rewiring::Counted(|failure| !matches!(failure, Failure::Signal(_))),
    ),
    wire(
        "select-uncounted-silence",
        &["PD-FAIL-04"],
        "Empty output is not counted.",
        Rewiring::Counted(|failure| !matches!(failure, Failure::NoBlock(BlockError::Empty))),
    ),
    wire(
        "select-uncounted-flood",
        &["PD-FAIL-05"],
        "Output over the limit is not counted.",
        Rewiring::Counted(|failure| !matches!(failure, Failure::TooLong { .. })),
    ),
    wire(
        "select-uncounted-nonsense",
        &["PD-FAIL-06"],
        "Output that is no block is not counted.",
        Rewiring::Counted(|failure| match failure {
            Failure::NoBlock(error) => *error == BlockError::Empty,
            _ => true,
        }),
    ),
    wire(
        "select-uncounted-unknown-sid",
        &["PD-FAIL-06"],
        "A SID that the menu does not have is not counted.",
        Rewiring::Counted(|failure| !matches!(failure, Failure::UnknownSid(_))),
    ),
    wire(
        "select-invalid-launch",
        &["PD-FAIL-01", "PD-SELN-05"],
        "A launch that fails is answered by INVALID.",
        Rewiring::Selection(|line| {
            if is_fallback_for(
                line,
                &["there is no program", "is no program", "may not be run", "is a folder", "not be started"],
            ) {
                retold(line, "INVALID")
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-invalid-silence",
        &["PD-FAIL-04", "PD-SELN-05"],
        "Empty output is answered by INVALID.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["nothing was written"]) {
                retold(line, "INVALID")
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-invalid-nonsense",
        &["PD-FAIL-06", "PD-SELN-05"],
        "Output that is no block is answered by INVALID.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["wrote no block"]) { retold(line, "INVALID") } else { line.to_vec() }
        }),
    ),
    wire(
        "select-invalid-timeout",
        &["PD-FAIL-02", "PD-SELN-05"],
        "A timeout is answered by INVALID.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["did not end within"]) {
                retold(line, "INVALID")
            } else {
                line.to_vec()
            }
        }),
    ),
    machine(
        "select-eof-is-the-end",
        &["PD-FAIL-02"],
        "A driver that closes its standard output has ended well.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::ChildStdoutEof => {
                    inner.handle(Event::ChildExit(ChildExit::Code(0)), now, actions);
                    inner.handle(Event::ChildStdoutEof, now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    machine(
        "select-ignores-status",
        &["PD-FAIL-03"],
        "The exit status of a driver means nothing.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::ChildExit(ChildExit::Code(_)) => {
                    inner.handle(Event::ChildExit(ChildExit::Code(0)), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    machine(
        "select-takes-high-statuses",
        &["PD-FAIL-03"],
        "An exit status over 128 means nothing.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::ChildExit(ChildExit::Code(129..)) => {
                    inner.handle(Event::ChildExit(ChildExit::Code(0)), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    machine(
        "select-forgives-limits",
        &["PD-RLIM-06"],
        "A driver that the signal of a limit ended did what it could.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                // SIGXCPU and SIGXFSZ.
                Event::ChildExit(ChildExit::Signal(24 | 25)) => {
                    inner.handle(Event::ChildExit(ChildExit::Code(0)), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    machine(
        "select-ignores-signals",
        &["PD-FAIL-03"],
        "That a signal ended a driver means nothing.",
        |inner| {
            wrap(inner, |inner, event, now, actions| match event {
                Event::ChildExit(ChildExit::Signal(_)) => {
                    inner.handle(Event::ChildExit(ChildExit::Code(0)), now, actions);
                }
                other => inner.handle(other, now, actions),
            })
        },
    ),
    parts(
        "select-never-forgives",
        &["PD-FAIL-07", "PD-BRK-01"],
        "A valid block does not set the count to 0.",
        |_, parts| {
            blocks_tell(parts, |_| Some(BreakerMessage::Hush));
        },
    ),
    parts(
        "select-forgives-picks-only",
        &["PD-FAIL-07"],
        "ASK_SUP and NOOP do not set the count to 0.",
        |_, parts| {
            blocks_tell(parts, |block| {
                (!matches!(block, Block::Pick { .. })).then_some(BreakerMessage::Hush)
            });
        },
    ),
    parts(
        "select-noop-does-not-forgive",
        &["PD-FAIL-07"],
        "NOOP does not set the count to 0.",
        |_, parts| {
            blocks_tell(parts, |block| (*block == Block::Noop).then_some(BreakerMessage::Hush));
        },
    ),
    parts(
        "select-counts-fallback-only",
        &["PD-FAIL-08"],
        "A FALLBACK_ONLY request counts as a failure.",
        |_, parts| {
            requests_tell(parts, |request| {
                request
                    .as_ref()
                    .is_ok_and(|request| request.mode == Mode::FallbackOnly)
                    .then_some(BreakerMessage::Failed)
            });
        },
    ),
    parts(
        "select-fallback-only-forgives",
        &["PD-FAIL-08"],
        "A FALLBACK_ONLY request sets the count to 0.",
        |_, parts| {
            requests_tell(parts, |request| {
                request
                    .as_ref()
                    .is_ok_and(|request| request.mode == Mode::FallbackOnly)
                    .then_some(BreakerMessage::Succeeded)
            });
        },
    ),
    parts("select-counts-malformed", &["PD-FAIL-08"], "A malformed line counts as a failure.", |_, parts| {
        requests_tell(parts, |request| request.is_err().then_some(BreakerMessage::Failed));
    }),
    parts(
        "select-counts-wrong-types",
        &["PD-FAIL-08"],
        "A line of JSON that is no request counts as a failure.",
        |_, parts| {
            requests_tell(parts, |request| {
                request
                    .as_ref()
                    .is_err_and(|why| !why.to_string().contains("JSON"))
                    .then_some(BreakerMessage::Failed)
            });
        },
    ),
    parts(
        "select-malformed-forgives",
        &["PD-FAIL-08"],
        "A malformed line sets the count to 0.",
        |_, parts| {
            requests_tell(parts, |request| request.is_err().then_some(BreakerMessage::Succeeded));
        },
    ),
    parts(
        "select-counts-disallowed",
        &["PD-ALLOW-03"],
        "A command that is not allowed counts as a failure, and once the breaker is open the fallback answers.",
        |config, parts| {
            let inner = std::mem::replace(&mut parts.admission, Box::new(Nobody));
            let refusals_left = Cell::new(config.settings.fail_threshold);
            parts.admission = Box::new(Tiring { inner, refusals_left });
        },
    ),
    config(
        "select-opens-late",
        &["PD-BRK-01", "PD-BRK-02"],
        "The breaker opens at the failure after the threshold.",
        |config| config.settings.fail_threshold += 1,
    ),
    config(
        "select-opens-early",
        &["PD-BRK-01", "PD-BRK-02"],
        "The breaker opens at the failure before the threshold.",
        |config| {
            config.settings.fail_threshold = config.settings.fail_threshold.saturating_sub(1).max(1);
        },
    ),
    wire(
        "select-ignores-threshold",
        &["PD-BRK-01"],
        "The variable for the threshold means nothing.",
        Rewiring::Variables(|variables| {
            variables.retain(|(name, _)| name != "MACHINA_POLICY_FAIL_THRESHOLD");
        }),
    ),
    wire(
        "select-default-threshold-of-three",
        &["PD-BRK-02"],
        "Without the variable the threshold is 3.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_FAIL_THRESHOLD";
            if !variables.iter().any(|(known, _)| known == name) {
                variables.push((name.to_owned(), "3".to_owned()));
            }
        }),
    ),
    parts("select-never-opens", &["PD-BRK-01", "PD-BRK-03"], "The breaker never opens.", |_, parts| {
        parts.breaker = Box::new(CountingBreaker::new(u64::MAX, 0))
    }),
    parts(
        "select-sliding-cooldown",
        &["PD-BRK-04"],
        "A request in the cooldown begins it anew.",
        |config, parts| Odd::put(Rule::Slides, config, parts),
    ),
    parts(
        "select-cooldown-from-first",
        &["PD-BRK-04"],
        "The cooldown counts from the first failure of the row.",
        |config, parts| Odd::put(Rule::CountsFromFirst, config, parts),
    ),
    parts(
        "select-cooldown-of-four-fifths",
        &["PD-BRK-04", "PD-BRK-06"],
        "The cooldown is over after four fifths of its time.",
        |config, parts| Odd::put(Rule::EndsEarly, config, parts),
    ),
    parts(
        "select-counts-in-a-byte",
        &["PD-BRK-01"],
        "Failures in a row are counted in eight bits.",
        |config, parts| Odd::put(Rule::CountsInAByte, config, parts),
    ),
    parts(
        "select-refuses-a-program-once",
        &["PD-ALLOW-01"],
        "A program that is not listed is refused the first time, and started the next.",
        |config, parts| {
            parts.admission =
                Box::new(Yielding { guard: Parts::guard(config), has_refused: Cell::new(false) });
        },
    ),
    parts(
        "select-half-cooldown",
        &["PD-BRK-04"],
        "The breaker closes after half of the cooldown.",
        |config, parts| Odd::put(Rule::Halves, config, parts),
    ),
    parts("select-stays-open", &["PD-BRK-04", "PD-BRK-06"], "The breaker never closes.", |config, parts| {
        Odd::put(Rule::Stays, config, parts)
    }),
    parts(
        "select-half-open-forgets",
        &["PD-BRK-06"],
        "After the cooldown it takes as many failures again to open.",
        |config, parts| Odd::put(Rule::Forgets, config, parts),
    ),
    parts(
        "select-reopens-for-less",
        &["PD-BRK-06"],
        "A failure after the cooldown opens for half of it.",
        |config, parts| Odd::put(Rule::ShorterAgain, config, parts),
    ),
    parts(
        "select-half-open-remembers",
        &["PD-BRK-07"],
        "A success after the cooldown leaves the count just below the threshold.",
        |config, parts| Odd::put(Rule::Remembers, config, parts),
    ),
    wire(
        "select-ignores-cooldown",
        &["PD-BRK-04", "PD-BRK-08"],
        "The variable for the cooldown means nothing.",
        Rewiring::Variables(|variables| {
            variables.retain(|(name, _)| name != "MACHINA_POLICY_COOLDOWN_MS");
        }),
    ),
    wire(
        "select-default-cooldown-of-half-a-second",
        &["PD-BRK-05"],
        "Without the variable the cooldown is 500 ms.",
        Rewiring::Variables(|variables| set_default(variables, "MACHINA_POLICY_COOLDOWN_MS", "500")),
    ),
    wire(
        "select-default-cooldown-of-20-seconds",
        &["PD-BRK-05"],
        "Without the variable the cooldown is 20 s.",
        Rewiring::Variables(|variables| set_default(variables, "MACHINA_POLICY_COOLDOWN_MS", "20000")),
    ),
    wire(
        "select-no-cooldown-is-default",
        &["PD-BRK-08"],
        "A cooldown of 0 means the default.",
        Rewiring::Variables(|variables| {
            variables.retain(|(name, value)| name != "MACHINA_POLICY_COOLDOWN_MS" || value != "0");
        }),
    ),
    wire(
        "select-no-cooldown-is-a-second",
        &["PD-BRK-08"],
        "A cooldown of 0 means one of a second.",
        Rewiring::Variables(|variables| {
            for (name, value) in variables {
                if name == "MACHINA_POLICY_COOLDOWN_MS" && value == "0" {
                    "1000".clone_into(value);
                }
            }
        }),
    ),
    wire(
        "select-invalid-in-cooldown",
        &["PD-BRK-03", "PD-BRK-09"],
        "In cooldown a request is answered by INVALID.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["failed too often"]) { retold(line, "INVALID") } else { line.to_vec() }
        }),
    ),
    wire(
        "select-noop-in-cooldown",
        &["PD-BRK-03", "PD-BRK-09"],
        "In cooldown a request is answered by NOOP.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["failed too often"]) { retold(line, "NOOP") } else { line.to_vec() }
        }),
    ),
];
