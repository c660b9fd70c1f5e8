//! Programs that the harness plays where a peer starts one.

use crate::data::plan::ActorStep;

/// A program that decides by its requests. Pure, so that a judge can ask it again.
pub trait Program {
    /// The steps that answer a request. The last request is followed by the end of the input.
    fn answer(&mut self, request: &[u8]) -> Vec<ActorStep>;

    /// True if a request ends with its line; else it ends with its JSON object.
    fn reads_lines(&self) -> bool {
        false
    }
}

/// Finds the program of this name that was started with these arguments.
pub type Programs<'a> = &'a dyn Fn(&str, &[String]) -> Option<Box<dyn Program>>;
