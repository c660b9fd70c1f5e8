//! The python_tool boundary: runners and services that call a Python tool and return its result.
//!
//! [`face`] is the face of local runners and of services over HTTP. [`runtime`] is about runtimes that call them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use peerproof_engine::contract::asking;
use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::contract::boundary::{
    Benchmark, Boundary, ConstantPeer, Description, Discovery, Isolation, NormalizedExchange, SurvivalClause,
    Wire,
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
use peerproof_engine::run::matrix::exchanges;

mod allowed_answer;
pub(crate) mod bench;
pub(crate) mod cases;
pub(crate) mod config;
pub(crate) mod expect;
pub mod face;
pub mod generate;
pub mod model;
pub(crate) mod probe;
pub(crate) mod project;
mod redundant;
pub mod roles;
mod rungs;
pub mod runtime;
pub(crate) mod talk;
mod trial;

const DESCRIPTION: Description = Description {
    signs: &["\"protocol_version\""],
    rungs: rungs::RUNGS,
    constant_peers: &[
        ConstantPeer::wrong(
            "the result of the canary",
            "cat >/dev/null; echo '{\"ok\":true,\"protocol_version\":1,\"result\":{\"any\":1}}'",
        ),
        ConstantPeer::wrong("a result for every call", runtime::RESULT_FOR_ALL),
        ConstantPeer::wrong("a failure for every call", runtime::FAILURE_FOR_ALL),
    ],
    redundant_checks: &[redundant::CHECKS],
    ..Description::new(
        "python_tool",
        "Runners, services and runtimes that call Python tools with guarantees such as no network",
        &[(Side::Provider, &[face::COMMAND, HTTP]), (Side::Consumer, &[runtime::COMMAND])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> =
    LazyLock::new(|| cases::checks().chain(runtime::cases::checks()).collect());

/// The python_tool boundary.
struct PythonTool;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &PythonTool
}

impl Boundary for PythonTool {
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
        match self.command_name(face::COMMAND, None, argv) == runtime::COMMAND {
            true => (runtime::COMMAND, Side::Consumer),
            false if argv.iter().any(|word| http::is_of_server(word)) => (HTTP, Side::Provider),
            false => (face::COMMAND, Side::Provider),
        }
    }

    fn command_name(&self, name: &str, _side: Option<Side>, argv: &[String]) -> String {
        let is_runtime = name == face::COMMAND && argv.iter().any(|part| part.contains("{scenario}"));
        if is_runtime { runtime::COMMAND } else { name }.to_owned()
    }

    fn shrink_payload(&self, plan: &Plan, _step: usize) -> Vec<Plan> {
        if is_asked(plan) { asking::variants(plan) } else { Vec::new() }
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        match is_asked(&transcript.plan) {
            true => asking::admit(&transcript.plan, runtime::MEMBERS),
            false => face::admit(transcript),
        }
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        match is_asked(&transcript.plan) {
            true => runtime::face::judge(transcript),
            false => face::judge(transcript),
        }
    }

    fn lives_on(&self, command: &str, should: &str) -> Option<SurvivalClause> {
        let clause =
            if should == "PT-SRV-06" { face::http::SURVIVES } else { face::SESSION_CLAUSES.lives_on };
        (command == HTTP).then_some(SurvivalClause::by(clause))
    }

    fn judge_consumer(&self, transcript: &Transcript) -> Vec<Finding> {
        face::wrong_requests(transcript)
    }

    fn isolation(&self, facts: &Facts, number: u64) -> Option<Isolation> {
        let canary = talk::Talk::isolating(facts, number)?;
        let is_posted = facts.side == Side::Provider && facts.commands.contains(HTTP);
        is_posted.then_some(Isolation { pipelined: &["PT-SRV-18", "PT-SRV-19"], canary })
    }

    fn exchanges(&self, transcript: &Transcript) -> Vec<NormalizedExchange> {
        exchanges::of(&face::Runner, transcript, face::compared)
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        match facts.side {
            Side::Provider => generate::conversation(facts, rng),
            Side::Consumer => runtime::conversation(rng),
        }
    }

    fn full_facts(&self, side: Side) -> Facts {
        let mut facts = Facts::new(side);
        if side == Side::Consumer {
            facts.commands.insert(runtime::COMMAND.to_owned());
            let claims = [runtime::CONTAINER, runtime::UNSAFE_OVERRIDE];
            facts.features.extend(claims.map(|name| (name.to_owned(), true.into())));
            return facts;
        }
        facts.commands = BTreeSet::from([face::COMMAND, HTTP].map(str::to_owned));
        facts
            .features
            .extend([config::HANDSHAKE, config::CONCURRENT].map(|name| (name.to_owned(), true.into())));
        facts.features.insert(config::ENFORCEMENT.to_owned(), "enforced".into());
        config::fill_roles(&mut facts);
        config::spell_out(&mut facts);
        facts
    }
}

impl Wire for PythonTool {
    fn counterpart(&self, plan: &Plan, _script: &serde_json::Value) -> Option<Box<dyn Counterpart>> {
        asking::calls(plan)?;
        Some(Box::new(asking::Bystander))
    }

    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool {
        face::answers_canary(step, frame)
    }
}

impl Discovery for PythonTool {
    fn probes(&self, facts: &Facts) -> Vec<Plan> {
        trial::plan(facts).into_iter().collect()
    }

    fn complete(&self, facts: &mut Facts, _features_given: bool, probes: &[Transcript]) {
        if facts.side == Side::Provider {
            config::fill_roles(facts);
            config::spell_out(facts);
            trial::enter(facts, probes);
        }
    }
}

impl Benchmark for PythonTool {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        bench::workloads(facts)
    }
}

/// True if the peer is a runtime, for which the harness plays runners and services.
fn is_asked(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step.act, Act::Play { .. }))
}
