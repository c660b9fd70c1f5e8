//! Reports. No other code prints.

pub mod bench;
pub mod console;
pub mod diff;
pub mod doctor;
pub mod first_contact;
pub mod github;
#[cfg(feature = "html")]
pub(crate) mod html;
pub mod judged;
pub(crate) mod junit;
pub mod lint;
pub(crate) mod markdown;
pub mod matrix;
pub mod merge;
pub mod printer;
pub mod recorded;
pub mod render;
pub(crate) mod sarif;
pub mod screen;
