//! The json_rpc boundary: JSON-RPC 2.0 servers and clients, judged by the specification and the planner/executor
//! profile.

use std::sync::LazyLock;

use serde::Deserialize as _;

use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::contract::boundary::{
    Benchmark, Boundary, Description, Discovery, Isolation, NormalizedExchange, SurvivalClause, Wire,
    WriteContext,
};
use peerproof_engine::contract::counterpart::Counterpart;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::{self, Clause, Side};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{Finding, Judgement};
use peerproof_engine::data::plan::{Act, Plan, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::drive::transport::http;

pub mod bench;
pub(crate) mod cases;
pub(crate) mod checks;
pub mod client;
pub(crate) mod config;
pub(crate) mod consumer;
pub(crate) mod exchanges;
pub mod frames;
pub mod full_facts;
pub(crate) mod generate;
mod lateness;
pub mod model;
pub(crate) mod probe;
pub(crate) mod rates;
mod redundant;
pub mod role;
pub(crate) mod rules;
mod rungs;
pub(crate) mod seal;
pub mod server;
pub mod settings;
pub(crate) mod shrink;
pub mod signature;
pub(crate) mod streams;
pub mod talk;
mod traces;
pub(crate) mod trial;
pub(crate) mod unseal;

const DESCRIPTION: Description = Description {
    requirements: &["profile", "spec"],
    signs: &["\"jsonrpc\""],
    rungs: rungs::RUNGS,
    redundant_checks: &[redundant::CHECKS],
    ..Description::new(
        "json_rpc",
        "JSON-RPC 2.0 servers and clients over stdio (one message or batch per line), and servers over HTTP",
        &[(Side::Provider, &["command", HTTP]), (Side::Consumer, &[client::COMMAND])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(checks::all);

/// The json_rpc boundary.
struct JsonRpc;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &JsonRpc
}

impl Boundary for JsonRpc {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn clauses(&self) -> &[Clause] {
        &CLAUSES
    }

    fn checks(&self) -> &[Check] {
        &CHECKS
    }

    fn main_command(&self, argv: &[String]) -> (&'static str, Side) {
        match self.command_name("command", None, argv).as_str() {
            client::COMMAND => (client::COMMAND, Side::Consumer),
            _ if argv.iter().any(|word| http::is_of_server(word)) => (HTTP, Side::Provider),
            _ => ("command", Side::Provider),
        }
    }

    fn command_name(&self, name: &str, _side: Option<Side>, argv: &[String]) -> String {
        let is_client = name == "command" && argv.iter().any(|part| part.contains("{scenario}"));
        if is_client { client::COMMAND } else { name }.to_owned()
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        match is_played(&transcript.plan) {
            true => client::face::admit(&transcript.plan),
            false => server::admit(&transcript.plan),
        }
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        match is_played(&transcript.plan) {
            true => client::face::judge(transcript),
            false => server::judge(transcript),
        }
    }

    fn lives_on(&self, command: &str, _should: &str) -> Option<SurvivalClause> {
        (command != client::COMMAND).then_some(server::LIVES_ON)
    }

    fn judge_consumer(&self, transcript: &Transcript) -> Vec<Finding> {
        consumer::judge(transcript)
    }

    fn exchanges(&self, transcript: &Transcript) -> Vec<NormalizedExchange> {
        exchanges::of(transcript)
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        match facts.side {
            Side::Provider => generate::conversation(facts, rng),
            Side::Consumer => client::generate::conversation(facts, rng),
        }
    }

    fn shrink_payload(&self, plan: &Plan, step: usize) -> Vec<Plan> {
        shrink::variants(plan, step)
    }

    fn reopened(&self, transcript: &Transcript) -> Option<Plan> {
        unseal::reopened(transcript)
    }

    fn isolation(&self, facts: &Facts, number: u64) -> Option<Isolation> {
        let mut talk = talk::Talk::about(facts, "RPC-FRAME-01");
        let canary = talk.numbered(number).canary().plan().steps.pop()?;
        (facts.side == Side::Provider).then_some(Isolation { pipelined: &["RPC-FRAME-02"], canary })
    }

    fn full_facts(&self, side: Side) -> Facts {
        full_facts::facts(side)
    }
}

impl Wire for JsonRpc {
    fn counterpart(&self, plan: &Plan, script: &serde_json::Value) -> Option<Box<dyn Counterpart>> {
        let script = client::script::Script::deserialize(script).ok()?;
        Some(Box::new(client::server::Server::new(script, client::scenario::Scenario::of(plan)?)))
    }

    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool {
        server::answers_canary(step, frame)
    }

    fn seal(&self, facts: &Facts, bytes: &[u8], moment: &WriteContext) -> Option<Vec<u8>> {
        seal::seal(facts, bytes, moment)
    }

    fn frames_due(&self, facts: &Facts, bytes: &[u8]) -> Option<u32> {
        Some(model::frames_due(facts, bytes))
    }
}

impl Discovery for JsonRpc {
    fn complete_recorded(&self, facts: &mut Facts, transcript: &Transcript) {
        probe::complete_recorded(facts, transcript);
    }

    fn probes(&self, facts: &Facts) -> Vec<Plan> {
        match facts.side {
            Side::Provider => probe::plans(facts),
            Side::Consumer => Vec::new(),
        }
    }

    fn complete(&self, facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
        if facts.side == Side::Provider {
            probe::complete(facts, features_given, probes);
        }
    }

    fn trials(&self, facts: &Facts) -> Option<Vec<(&'static str, Plan)>> {
        Some(match facts.side {
            Side::Provider => trial::plans(facts),
            Side::Consumer => Vec::new(),
        })
    }

    fn role_fault(&self, facts: &Facts, role: &str, trial: &Transcript) -> Option<String> {
        trial::role_fault(facts, role, trial)
    }

    fn undeclared(&self, facts: &Facts, probes: &[Transcript]) -> Vec<(&'static str, &'static str)> {
        trial::undeclared(facts, probes)
    }
}

impl Benchmark for JsonRpc {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        match facts.side {
            Side::Provider => bench::workloads(facts),
            Side::Consumer => Err("a client is not measured; give a server".into()),
        }
    }

    fn small_exchanges(&self, facts: &Facts, exchanges: usize) -> Option<Plan> {
        (facts.side == Side::Provider).then(|| bench::small_exchanges(facts, exchanges)).flatten()
    }
}

/// True if the harness plays a server for a client.
fn is_played(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step.act, Act::Play { .. }))
}
