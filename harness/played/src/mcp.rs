//! The reference MCP server as a peer under test.

use peerproof_engine::boundary::Boundary;
use peerproof_engine::machine::Machine;
use peerproof_engine::played::{Mutant, Played, Reference};

struct Mcp;

/// The reference server.
pub fn played() -> &'static dyn Played {
    &Mcp
}

impl Played for Mcp {
    fn boundary(&self) -> &'static dyn Boundary {
        peerproof_mcp::boundary()
    }

    fn references(&self) -> Vec<Reference> {
        Vec::new()
    }

    fn run_reference(&self, _args: &[String], _env: &[(String, String)]) -> i32 {
        2
    }

    fn reference_machine(&self, _args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        None
    }

    fn mutants(&self) -> Vec<Mutant> {
        Vec::new()
    }
}
