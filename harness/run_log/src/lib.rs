//! The run_log boundary: runners, which write the log of a run, and replayers, which decide if a log is valid.

use std::sync::LazyLock;

use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::contract::boundary::{Benchmark, Boundary, ConstantPeer, Description, Discovery, Wire};
use peerproof_engine::contract::program::Program;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::{self, Clause, Side};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Judgement;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::Transcript;

pub(crate) mod config;
pub(crate) mod digest;
pub mod replayer;
mod rungs;
pub(crate) mod runner;
pub(crate) mod state;
pub mod tools;

/// The command of a replayer.
pub const REPLAYER: &str = "replayer";

/// The command of a runner.
pub const RUNNER: &str = "runner";

/// True if two values differ only in numbers that are integers in `one`.
fn only_integers_differ(one: &Json, other: &Json) -> bool {
    let mut places = vec![(one, other)];
    while let Some(pair) = places.pop() {
        match pair {
            (Json::Number(one), Json::Number(other)) if one == other || one.as_i64().is_some() => {}
            (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
                places.extend(one.iter().zip(other));
            }
            (Json::Object(members), Json::Object(others)) if members.len() == others.len() => {
                for (name, value) in members {
                    let Some(other) = pair.1.get(name) else { return false };
                    places.push((value, other));
                }
            }
            (one, other) if one == other => {}
            _ => return false,
        }
    }
    one != other
}

const DESCRIPTION: Description = Description {
    rungs: rungs::RUNGS,
    constant_peers: &[
        ConstantPeer {
            name: "accepts every log",
            script: "echo 'REPLAY_STRICT OK'",
            right: &[
                ("run_log/replayer/{accepted,open,sizes}/*", "it also accepts correct logs and open points"),
                ("run_log/replayer/rerun/never", "it runs no tool; other checks of `rerun` show that"),
            ],
        },
        ConstantPeer::wrong("refuses every log", "echo 'REPLAY_STRICT FAIL line 1: no'; exit 1"),
        ConstantPeer::wrong("writes an empty log", ": > '{log}'"),
        ConstantPeer::wrong("writes a constant log", runner::CONSTANT),
    ],
    redundant_checks: &[&[
        (
            "run_log/replayer/refused/patch-of-a-failure",
            "the reference has no seam at which what a failure brings is applied",
        ),
        ("run_log/replayer/rerun/hang-by-default", "the same with a bound of 1 s notices its mutant sooner"),
    ]],
    ..Description::new(
        "run_log",
        "Runners that write the log of a run, and replayers that check such a log",
        &[(Side::Provider, &[RUNNER]), (Side::Consumer, &[REPLAYER])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> =
    LazyLock::new(|| [runner::checks(), replayer::cases::checks()].concat());

/// The run_log boundary.
struct RunLog;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &RunLog
}

impl Boundary for RunLog {
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
        match argv.iter().any(|part| part.contains("{request}")) {
            true => (RUNNER, Side::Provider),
            false => (REPLAYER, Side::Consumer),
        }
    }

    fn command_name(&self, name: &str, _side: Option<Side>, argv: &[String]) -> String {
        if name == config::COMMAND { self.main_command(argv).0 } else { name }.to_owned()
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        match transcript.facts.side {
            Side::Provider => runner::admit(transcript),
            Side::Consumer => replayer::face::admit(transcript),
        }
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        match transcript.facts.side {
            Side::Provider => runner::judge(transcript),
            Side::Consumer => replayer::face::judge(transcript),
        }
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        match facts.side {
            Side::Provider => runner::conversation(facts, rng),
            Side::Consumer => replayer::generate::conversation(rng),
        }
    }

    fn shrink_payload(&self, plan: &Plan, step: usize) -> Vec<Plan> {
        replayer::talk::variants(plan, step)
    }
}

impl Wire for RunLog {
    fn program(&self, name: &str, argv: &[String]) -> Option<Box<dyn Program>> {
        (name == tools::TOOLHOST).then(|| Box::new(tools::Toolhost::new(argv)) as Box<dyn Program>)
    }
}

impl Discovery for RunLog {}

impl Benchmark for RunLog {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        match facts.side {
            Side::Consumer => replayer::bench::workloads(),
            Side::Provider => Err("a runner is not measured; give a replayer".into()),
        }
    }
}
