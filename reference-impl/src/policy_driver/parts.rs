//! The replaceable parts of a selector.

use std::fmt::Debug;

use super::block::{Block, BlockError, BlockReader, Rules};
use super::command_line::{self, SplitError};
use super::guard::{Admitted, Denied, Files, Guard};
use super::settings::Settings;
use super::{Breaker, CountingBreaker, Menu, Request, SelectionKind, SelectorConfig, merge};
use crate::json::{Error, Policy};

/// Chooses where no driver does.
pub trait Fallback: Debug + Send {
    /// What is chosen from a menu.
    fn choose(&self, menu: &Menu) -> SelectionKind;
}

/// Picks the first entry; NOOP where there is none.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstOfMenu;

impl Fallback for FirstOfMenu {
    fn choose(&self, menu: &Menu) -> SelectionKind {
        menu.first().map_or(SelectionKind::Noop, SelectionKind::Pick)
    }
}

/// Reads lines of the input.
pub trait Requests: Debug + Send {
    /// Reads a line that is not blank.
    ///
    /// # Errors
    /// One sentence: why it is no request.
    fn read(&mut self, line: &[u8]) -> Result<Request, String>;
}

/// Reads them as [`Request::read`] does.
#[derive(Debug, Clone, Copy)]
pub struct StrictRequests {
    /// Levels of arrays and objects.
    pub nesting_max: usize,
    /// What is done with JSON on which implementations differ.
    pub policy: Policy,
}

impl Requests for StrictRequests {
    fn read(&mut self, line: &[u8]) -> Result<Request, String> {
        Request::read(line, self.nesting_max, &self.policy)
    }
}

/// Decides which commands may be started.
pub trait Admission: Debug + Send {
    /// Decides on a command that was split into words; there is at least one.
    ///
    /// # Errors
    /// Why it is not started.
    fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied>;
}

impl Admission for Guard {
    fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied> {
        Guard::admit(self, words, files)
    }
}

/// Reads what a driver wrote.
pub trait Blocks: Debug + Send {
    /// Reads all of it.
    ///
    /// # Errors
    /// Why it is no block.
    fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError>;
}

impl Blocks for BlockReader {
    fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError> {
        BlockReader::read(self, stdout)
    }
}

/// Splits a command into words.
pub type Split = fn(&str) -> Result<Vec<String>, SplitError>;

/// Merges a patch, the second text, with inputs; the number bounds the levels of both.
pub type Merge = fn(&str, &str, usize) -> Result<String, Error>;

/// The replaceable parts of a selector.
#[derive(Debug)]
pub struct Parts {
    /// Reads lines of the input.
    pub requests: Box<dyn Requests>,
    /// Splits the command.
    pub split: Split,
    /// Decides whether it may be started.
    pub admission: Box<dyn Admission>,
    /// The disk, for deciding that.
    pub files: Box<dyn Files>,
    /// Counts failures.
    pub breaker: Box<dyn Breaker>,
    /// Reads what a driver wrote.
    pub blocks: Box<dyn Blocks>,
    /// Merges a patch with inputs.
    pub merge: Merge,
    /// Chooses where no driver does.
    pub fallback: Box<dyn Fallback>,
}

impl Parts {
    /// The correct parts.
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

    /// What may be started.
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

    /// How blocks are read.
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
