//! Harmless presentations: the replies of a correct peer in another spelling, cut into other pieces.

mod slow;

use crate::json::{self, DecodeLimits, Presentation, present};
use crate::load::{REPLY_AFTER, START_AFTER};
use crate::machine::{Action, Event, Machine, Millis};
use crate::rng::Rng;
use slow::{Late, Sleepy};

/// The option of a reference peer whose output is to be presented in another harmless way.
pub const PRESENT: &str = "--present";

/// One way to present replies that changes nothing of what they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harmless {
    /// The same value in another text.
    Text(Presentation),
    /// One byte a write.
    OneByteWrites,
    /// It reads and writes nothing before [`START_AFTER_MS`] have passed.
    SlowStart,
    /// Everything is written [`REPLY_AFTER_MS`] late.
    LateReplies,
}

impl Harmless {
    /// All of those that change the text.
    pub const ALL: &'static [Self] = &[
        Self::Text(Presentation::ShuffledKeys),
        Self::Text(Presentation::WhiteSpace),
        Self::Text(Presentation::UnicodeEscapes),
        Self::Text(Presentation::NumberSpelling),
        Self::OneByteWrites,
        Self::Text(Presentation::ExtraMembers),
    ];

    /// Those of a whole text that a peer hands over at once, to which no member is added.
    pub const OF_TEXTS: &'static [Self] = &[
        Self::Text(Presentation::ShuffledKeys),
        Self::Text(Presentation::WhiteSpace),
        Self::Text(Presentation::UnicodeEscapes),
        Self::Text(Presentation::NumberSpelling),
    ];

    /// Those of what a peer asks for, which is exactly what it was told to ask for: no member is added.
    pub const OF_REQUESTS: &'static [Self] = &[
        Self::Text(Presentation::ShuffledKeys),
        Self::Text(Presentation::WhiteSpace),
        Self::Text(Presentation::UnicodeEscapes),
        Self::Text(Presentation::NumberSpelling),
        Self::OneByteWrites,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text(how) => how.name(),
            Self::OneByteWrites => "one-byte-writes",
            Self::SlowStart => "slow-start",
            Self::LateReplies => "late-replies",
        }
    }

    /// Arguments of `peerproof peer` that ask for it.
    pub fn process_arguments(self) -> Vec<String> {
        let (option, value) = match self {
            Self::SlowStart => (START_AFTER, START_AFTER_MS.to_string()),
            Self::LateReplies => (REPLY_AFTER, REPLY_AFTER_MS.to_string()),
            how => (PRESENT, how.name().to_owned()),
        };
        vec![option.to_owned(), value]
    }
}

/// Longer replies stay as they are: escaping could take them over the limit of the contract.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// What a slow peer takes before it begins.
pub const START_AFTER_MS: Millis = 5_000;

/// How late a peer with late replies writes.
pub const REPLY_AFTER_MS: Millis = 1_000;

/// Presents what `inner` writes.
pub fn wrap(inner: Box<dyn Machine>, how: Harmless) -> Box<dyn Machine> {
    match how {
        Harmless::SlowStart => return Box::new(Sleepy::new(inner, START_AFTER_MS)),
        Harmless::LateReplies => return Box::new(Late::new(inner, REPLY_AFTER_MS)),
        _ => {}
    }
    Box::new(Presented { inner, presenter: Presenter::new(how) })
}

/// As [`wrap`], where a presentation is asked for.
pub fn wrap_as(inner: Box<dyn Machine>, how: Option<Harmless>) -> Box<dyn Machine> {
    match how {
        Some(how) => wrap(inner, how),
        None => inner,
    }
}

/// Bytes of a correct peer, presented in another way.
pub struct Presenter {
    how: Harmless,
    rng: Rng,
    pending: Vec<u8>,
}

impl Presenter {
    /// Presents `how`; each one in the same way.
    pub fn new(how: Harmless) -> Self {
        Self { how, rng: Rng::new(7), pending: Vec::new() }
    }

    /// Gives `write` what stands for `bytes`, write by write.
    pub fn present(&mut self, bytes: Vec<u8>, write: &mut dyn FnMut(Vec<u8>)) {
        match self.how {
            Harmless::OneByteWrites if bytes.len() <= REPLY_BYTES_MAX => {
                bytes.into_iter().for_each(|byte| write(vec![byte]));
            }
            Harmless::OneByteWrites | Harmless::SlowStart | Harmless::LateReplies => write(bytes),
            Harmless::Text(how) => {
                self.pending.extend_from_slice(&bytes);
                while let Some(end) = memchr::memchr(b'\n', &self.pending) {
                    let line: Vec<u8> = self.pending.drain(..=end).collect();
                    write(self.line(&line, how));
                }
            }
        }
    }

    fn line(&mut self, line: &[u8], how: Presentation) -> Vec<u8> {
        if line.len() > REPLY_BYTES_MAX {
            return line.to_vec();
        }
        match json::decode(line, &DecodeLimits::default()) {
            // A lone surrogate has no other spelling, and duplicate keys none that keeps them apart.
            Ok(decoded) if !decoded.facts.lone_surrogates && !decoded.facts.duplicate_keys => {
                let rng = &mut self.rng;
                let mut text = present(&decoded.value, how, &mut || rng.next_u64()).into_bytes();
                text.push(b'\n');
                text
            }
            _ => line.to_vec(),
        }
    }
}

struct Presented {
    inner: Box<dyn Machine>,
    presenter: Presenter,
}

impl Presented {
    fn present(&mut self, inner_actions: Vec<Action>, actions: &mut Vec<Action>) {
        for action in inner_actions {
            match action {
                Action::Stdout(bytes) => {
                    self.presenter.present(bytes, &mut |bytes| actions.push(Action::Stdout(bytes)));
                }
                other => actions.push(other),
            }
        }
    }
}

impl Machine for Presented {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut inner_actions = Vec::new();
        self.inner.handle(event, now, &mut inner_actions);
        self.present(inner_actions, actions);
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        let mut inner_actions = Vec::new();
        self.inner.begin(now, &mut inner_actions);
        self.present(inner_actions, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}
