//! The python_tool boundary: runners and services that take a call of a Python tool and give its result back.
//!
//! Its face is that of a local runner and of a service over HTTP ([`face`]). A runtime that calls them is a face of its own.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use peerproof_engine::bench::workload::Workload;
use peerproof_engine::boundary::{Boundary, ConfigKey};
use peerproof_engine::carriage::HTTP;
use peerproof_engine::check::Check;
use peerproof_engine::clause::{self, Clause, Side};
use peerproof_engine::facts::Facts;
use peerproof_engine::finding::{Finding, Judgement};
use peerproof_engine::matrix::differences::Exchange;
use peerproof_engine::matrix::exchanges;
use peerproof_engine::plan::{Plan, Step};
use peerproof_engine::rng::Rng;
use peerproof_engine::transcript::Transcript;

pub mod bench;
pub mod cases;
pub mod config;
pub mod expect;
pub mod face;
pub mod generate;
pub mod model;
pub mod probe;
pub mod project;
mod redundant;
pub mod roles;
pub mod talk;

/// The python_tool boundary. Its data is loaded when it is asked for.
struct PythonTool {
    clauses: OnceLock<Vec<Clause>>,
    checks: OnceLock<Vec<Check>>,
}

/// The one instance; its data is embedded and a test shows that it loads.
pub fn boundary() -> &'static dyn Boundary {
    static PYTHON_TOOL: PythonTool = PythonTool { clauses: OnceLock::new(), checks: OnceLock::new() };
    &PYTHON_TOOL
}

impl Boundary for PythonTool {
    fn name(&self) -> &'static str {
        "python_tool"
    }

    fn summary(&self) -> &'static str {
        "runs Python tools and gives their results back, within the guarantees that it is asked for"
    }

    fn clauses(&self) -> &[Clause] {
        self.clauses.get_or_init(|| {
            clause::load(include_str!("../corpora/clauses.toml")).unwrap_or_else(|error| {
                unreachable!("corpora/python_tool/clauses.toml does not load: {error}")
            })
        })
    }

    fn checks(&self) -> &[Check] {
        self.checks.get_or_init(cases::checks)
    }

    fn config_keys(&self) -> &[ConfigKey] {
        config::KEYS
    }

    fn commands(&self) -> Vec<(Side, Vec<&'static str>)> {
        vec![(Side::Provider, vec![face::COMMAND, HTTP])]
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), String> {
        face::admit(transcript)
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        face::judge(transcript)
    }

    fn judge_consumer(&self, transcript: &Transcript) -> Vec<Finding> {
        face::wrong_requests(transcript)
    }

    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool {
        face::answers_canary(step, frame)
    }

    fn complete(&self, facts: &mut Facts, _features_given: bool, _probes: &[Transcript]) {
        config::fill_roles(facts);
        config::spell_out(facts);
    }

    fn exchanges(&self, transcript: &Transcript) -> Vec<Exchange> {
        exchanges::of(&face::Runner, transcript, face::compared)
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        generate::conversation(facts, rng)
    }

    fn usual_facts(&self, side: Side) -> Facts {
        let mut facts = Facts::new(side);
        facts.commands = BTreeSet::from([face::COMMAND, HTTP].map(str::to_owned));
        facts
            .features
            .extend([config::HANDSHAKE, config::CONCURRENT].map(|name| (name.to_owned(), true.into())));
        facts.features.insert(config::ENFORCEMENT.to_owned(), "enforced".into());
        config::fill_roles(&mut facts);
        config::spell_out(&mut facts);
        facts
    }

    fn redundant_checks(&self) -> &'static [(&'static str, &'static str)] {
        redundant::CHECKS
    }

    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, String> {
        bench::workloads(facts)
    }

    fn answers_by_rote(&self) -> &'static [(&'static str, &'static str)] {
        &[(
            "the result of the canary",
            "cat >/dev/null; echo '{\"ok\":true,\"protocol_version\":1,\"result\":{\"any\":1}}'",
        )]
    }
}
