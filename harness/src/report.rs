//! Reports: the only code that prints.

pub mod console;
pub mod printer;
pub mod progress;
pub mod text;
