//! The run_queue boundary: a folder of jobs, the worker that runs them, and the tools that put them there.
//!
//! It has four roles, all providers: [`worker`] (`autopilot`), [`http`] (`serve`), [`enqueue`]
//! (`AID.QUEUE.ENQUEUE.v1`) and [`genesis`]. Each role has its own commands, model and checks. The command of the
//! first session shows the role of a transcript.

use std::sync::LazyLock;

use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::contract::boundary::{
    Benchmark, Boundary, Description, Discovery, Isolation, SurvivalClause, Wire,
};
use peerproof_engine::contract::program::Program;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::{self, Clause, Side};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Judgement;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::Transcript;

pub(crate) mod bench;
pub mod config;
pub(crate) mod enqueue;
pub(crate) mod genesis;
pub mod http;
pub mod inbox;
pub mod job;
mod refusal;
mod rungs;
mod trial;
pub(crate) mod worker;

/// Command of a worker that never ends by itself.
pub const WORKER: &str = "worker";

/// Command of a worker that ends when the queue is empty.
pub const ONCE: &str = "once";

/// Command of a toolhost with the enqueue tool.
pub const ENQUEUE: &str = "enqueue";

/// Command of the toolhost with the Genesis tools.
pub const SERVE: &str = "serve";

/// Folders of a queue.
pub const FOLDERS: [&str; 4] = ["inbox", "processing", "done", "failed"];

const DESCRIPTION: Description = Description {
    http_path: "/enqueue",
    commands_are_claims: true,
    rungs: rungs::RUNGS,
    constant_peers: const { &[worker::MOVES_ALL, worker::FAILS_ALL, enqueue::BY_ROTE, genesis::BY_ROTE] },
    redundant_checks: &[worker::REDUNDANT, http::REDUNDANT, genesis::REDUNDANT],
    ..Description::new(
        "run_queue",
        "Workers that run jobs from a folder, the tool and the HTTP adapter that enqueue them, and the Genesis \
 tools",
        &[(Side::Provider, &[WORKER, ONCE, ENQUEUE, HTTP, SERVE])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> =
    LazyLock::new(|| [worker::checks(), enqueue::checks(), http::checks(), genesis::checks()].concat());

/// The run_queue boundary.
struct RunQueue;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &RunQueue
}

impl Boundary for RunQueue {
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
        let has = |word: &str| argv.iter().any(|part| part.contains(word));
        let command = match () {
            () if has("{aid}") => ENQUEUE,
            () if has("{port}") || has("{addr}") => HTTP,
            () if has("{root}") => SERVE,
            () => WORKER,
        };
        (command, Side::Provider)
    }

    fn command_name(&self, name: &str, _side: Option<Side>, _argv: &[String]) -> String {
        if name == config::COMMAND { WORKER } else { name }.to_owned()
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        match command_of(&transcript.plan) {
            ENQUEUE => enqueue::admit(transcript),
            HTTP => http::admit(transcript),
            SERVE => genesis::admit(transcript),
            _ => worker::admit(transcript),
        }
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        match command_of(&transcript.plan) {
            ENQUEUE => enqueue::judge(transcript),
            HTTP => http::judge(transcript),
            SERVE => genesis::judge(transcript),
            _ => worker::judge(transcript),
        }
    }

    fn lives_on(&self, command: &str, should: &str) -> Option<SurvivalClause> {
        // A plugin may end a Genesis toolhost.
        if command == HTTP { http::lives_on(should) } else { None }
    }

    fn isolation(&self, facts: &Facts, number: u64) -> Option<Isolation> {
        let canary = http::isolating(number);
        facts.commands.contains(HTTP).then_some(Isolation { pipelined: &["QUE-HTTP-28"], canary })
    }

    fn full_facts(&self, side: Side) -> Facts {
        let commands = DESCRIPTION.commands_of(side).map(str::to_owned).collect();
        let mut facts = Facts { commands, ..Facts::new(side) };
        trial::fill_roles(&mut facts);
        facts
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        let commands = &facts.commands;
        let roles: Vec<&str> =
            [WORKER, ENQUEUE, HTTP, SERVE].into_iter().filter(|role| commands.contains(*role)).collect();
        let role = if roles.is_empty() { WORKER } else { *rng.pick(&roles) };
        match role {
            ENQUEUE => enqueue::conversation(facts, rng),
            HTTP => http::conversation(facts, rng),
            SERVE => genesis::conversation(facts, rng),
            _ => worker::conversation(facts, rng),
        }
    }
}

impl Wire for RunQueue {
    fn program(&self, name: &str, _argv: &[String]) -> Option<Box<dyn Program>> {
        (name == job::PROGRAM).then(|| Box::new(job::Player) as Box<dyn Program>)
    }
}

impl Discovery for RunQueue {
    fn probes(&self, facts: &Facts) -> Vec<Plan> {
        trial::plans(facts)
    }

    fn complete(&self, facts: &mut Facts, _features_given: bool, probes: &[Transcript]) {
        genesis::complete(facts);
        trial::fill_roles(facts);
        trial::enter(facts, probes);
    }
}

impl Benchmark for RunQueue {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        bench::workloads(facts)
    }
}

/// Command of the plan's first session.
fn command_of(plan: &Plan) -> &str {
    plan.sessions.first().map_or(WORKER, |session| session.command.as_str())
}
