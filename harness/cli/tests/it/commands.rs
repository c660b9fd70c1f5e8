//! Tests of the command line as a user starts it.

mod bench;
mod cli_check;
mod cli_usage;
mod example_peers;
mod expect;
mod first_contact;
mod interrupt;
mod matrix;
mod mcp;
mod memory;
mod private;
mod record;
mod replay;
mod roles;
mod screens;
