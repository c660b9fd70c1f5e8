//! The replaceable parts of a selector.

use std::fmt::Debug;

use super::block::{Block, BlockError, BlockReader, Rules};
use super::command_line::{self, SplitError};
use super::guard::{Admitted, Denied, Files, Guard};
use super::settings::Settings;
use super::{Breaker, CountingBreaker, Menu, Request, SelectionKind, SelectorConfig, merge};
use crate::json::{Error, Policy};
use crate::refusal::Refusal;

/// Choice without a driver.
pub trait Fallback: Debug + Send {
    /// Chooses from a menu.
    fn choose(&self, menu: &Menu) -> SelectionKind;
}

/// Picks the first entry; NOOP if the menu is empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstOfMenu;

impl Fallback for FirstOfMenu {
    fn choose(&self, menu: &Menu) -> SelectionKind {
        menu.first().map_or(SelectionKind::Noop, SelectionKind::Pick)
    }
}

/// Reader of input lines.
pub trait Requests: Debug + Send {
    /// Reads a line that is not empty.
    ///
    /// # Errors
    /// One sentence that says why it is not a request.
    fn read(&mut self, line: &[u8]) -> Result<Request, Refusal>;
}

/// Reader by [`Request::read`].
#[derive(Debug, Clone, Copy)]
pub struct StrictRequests {
    /// Levels of arrays and objects.
    pub nesting_max: usize,
    /// Treatment of ambiguous JSON.
    pub policy: Policy,
}

impl Requests for StrictRequests {
    fn read(&mut self, line: &[u8]) -> Result<Request, Refusal> {
        Request::read(line, self.nesting_max, &self.policy)
    }
}

/// Check of the commands that may be started.
pub trait Admission: Debug + Send {
    /// Decides on a command that was split into at least one word.
    ///
    /// # Errors
    /// The reason why it is not started.
    fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied>;
}

impl Admission for Guard {
    fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied> {
        Guard::admit(self, words, files)
    }
}

/// Reader of a driver's output.
pub trait Blocks: Debug + Send {
    /// Reads the whole output.
    ///
    /// # Errors
    /// The reason why it is not a block.
    fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError>;
}

impl Blocks for BlockReader {
    fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError> {
        BlockReader::read(self, stdout)
    }
}

/// Function that splits a command into words.
pub type Split = fn(&str) -> Result<Vec<String>, SplitError>;

/// Function that merges a patch, the second text, into inputs. The number limits the nesting of both.
pub type Merge = fn(&str, &str, usize) -> Result<String, Error>;

/// The replaceable parts of a selector.
#[derive(Debug)]
pub struct Parts {
    /// Reader of input lines.
    pub requests: Box<dyn Requests>,
    /// Splitter of the command.
    pub split: Split,
    /// Check of the command.
    pub admission: Box<dyn Admission>,
    /// File system for that check.
    pub files: Box<dyn Files>,
    /// Counter of failures.
    pub breaker: Box<dyn Breaker>,
    /// Reader of a driver's output.
    pub blocks: Box<dyn Blocks>,
    /// Merge of a patch into inputs.
    pub merge: Merge,
    /// Choice without a driver.
    pub fallback: Box<dyn Fallback>,
}

impl Parts {
    /// Creates the correct parts.
    pub fn new(config: &SelectorConfig, files: Box<dyn Files>) -> Self {
        let Settings { fail_threshold, cooldown_ms, .. } = config.settings;
        Self {
            requests: Box::new(StrictRequests {
                nesting_max: config.limits.nesting_max,
                policy: config.choices.policy(),
            }),
            split: command_line::split,
            admission: Box::new(Self::guard(config)),
            files,
            breaker: Box::new(CountingBreaker::new(fail_threshold, cooldown_ms)),
            blocks: Box::new(BlockReader::new(Self::rules(config))),
            merge,
            fallback: Box::new(FirstOfMenu),
        }
    }

    /// Allowlist of a selector.
    pub fn guard(config: &SelectorConfig) -> Guard {
        let settings = &config.settings;
        Guard {
            allowed_programs: settings.allowed_programs.clone(),
            script_root: settings.script_root.clone(),
            allows_unsafe: settings.allows_unsafe,
            path: settings.path.clone(),
            same_name_elsewhere: config.choices.same_name_elsewhere,
        }
    }

    /// Rules for reading blocks.
    pub fn rules(config: &SelectorConfig) -> Rules {
        let choices = &config.choices;
        Rules {
            lenient_base64: choices.lenient_base64,
            trims_vt_ff: choices.vt_ff_trim,
            nesting_max: config.limits.nesting_max,
            policy: choices.policy(),
        }
    }
}
