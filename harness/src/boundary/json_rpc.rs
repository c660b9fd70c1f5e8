//! The json_rpc boundary: a JSON-RPC 2.0 server, held to the specification and to the planner/executor profile.

use std::sync::OnceLock;

use peerproof_reference::machine::Machine;

use super::{Boundary, ConfigKey, Mutant, Reference};
use crate::bench::workload::Workload;
use crate::check::Check;
use crate::clause::{self, Clause, Side};
use crate::facts::Facts;
use crate::finding::Judgement;
use crate::plan::{Plan, Step};
use crate::rng::Rng;
use crate::transcript::Transcript;

pub mod bench;
pub mod cases;
pub mod checks;
pub mod config;
pub mod deal;
pub mod frames;
pub mod generate;
pub mod matching;
pub mod model;
pub mod oracle;
pub mod probe;
mod redundant;
pub mod reference;
pub mod role;
pub mod talk;

/// The json_rpc boundary. Its data is loaded when it is asked for.
struct JsonRpc {
    clauses: OnceLock<Vec<Clause>>,
    checks: OnceLock<Vec<Check>>,
}

/// The one instance; its data is embedded and a test shows that it loads.
pub fn boundary() -> &'static dyn Boundary {
    static JSON_RPC: JsonRpc = JsonRpc { clauses: OnceLock::new(), checks: OnceLock::new() };
    &JSON_RPC
}

impl Boundary for JsonRpc {
    fn name(&self) -> &'static str {
        "json_rpc"
    }

    fn summary(&self) -> &'static str {
        "answers JSON-RPC 2.0 requests, one message or batch a line"
    }

    fn clauses(&self) -> &[Clause] {
        self.clauses.get_or_init(|| {
            clause::load(include_str!("../../corpora/json_rpc/clauses.toml"))
                .unwrap_or_else(|error| unreachable!("corpora/json_rpc/clauses.toml does not load: {error}"))
        })
    }

    fn checks(&self) -> &[Check] {
        self.checks.get_or_init(checks::all)
    }

    fn config_keys(&self) -> &[ConfigKey] {
        config::KEYS
    }

    fn requirements(&self) -> &'static [&'static str] {
        &["profile", "spec"]
    }

    fn main_command(&self, _argv: &[String]) -> (&'static str, Side) {
        ("command", Side::Provider)
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        oracle::judge(transcript)
    }

    fn judge_by_model(&self, transcript: &Transcript) -> Judgement {
        oracle::judge(transcript)
    }

    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool {
        oracle::answers_canary(step, frame)
    }

    fn probes(&self, facts: &Facts) -> Vec<Plan> {
        probe::plans(facts)
    }

    fn complete(&self, facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
        probe::complete(facts, features_given, probes);
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        generate::conversation(facts, rng)
    }

    fn shrink_payload(&self, plan: &Plan, step: usize) -> Vec<Plan> {
        generate::variants(plan, step)
    }

    fn references(&self) -> Vec<Reference> {
        reference::commands()
    }

    fn run_reference(&self, args: &[String], env: &[(String, String)]) -> i32 {
        reference::run(args, env)
    }

    fn reference_facts(&self, side: Side) -> Facts {
        reference::facts(side)
    }

    fn reference_machine(&self, args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        reference::machine(args, env)
    }

    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, String> {
        bench::workloads(facts)
    }

    fn small_exchanges(&self, facts: &Facts, exchanges: usize) -> Option<Plan> {
        bench::small_exchanges(facts, exchanges)
    }

    fn mutants(&self) -> Vec<Mutant> {
        reference::mutants()
    }

    fn redundant_checks(&self) -> &'static [(&'static str, &'static str)] {
        redundant::CHECKS
    }
}
