//! The run_log boundary: runners, which write the log of a run, and replayers, which decide if a log is valid.

use std::sync::OnceLock;

use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::contract::boundary::{Boundary, ConfigKey, ConstantPeer};
use peerproof_engine::contract::program::Program;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::{self, Clause, Side};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Judgement;
use peerproof_engine::data::json::Json;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::rung::Rung;
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

/// The run_log boundary. Loads its data on first use.
struct RunLog {
    clauses: OnceLock<Vec<Clause>>,
    checks: OnceLock<Vec<Check>>,
}

/// The only instance. Its data is embedded; a test shows that it loads.
pub fn boundary() -> &'static dyn Boundary {
    static RUN_LOG: RunLog = RunLog { clauses: OnceLock::new(), checks: OnceLock::new() };
    &RUN_LOG
}

impl Boundary for RunLog {
    fn name(&self) -> &'static str {
        "run_log"
    }

    fn summary(&self) -> &'static str {
        "Runners that write the log of a run, and replayers that check such a log"
    }

    fn clauses(&self) -> &[Clause] {
        self.clauses.get_or_init(|| {
            clause::load(include_str!("../corpora/clauses.toml"))
                .unwrap_or_else(|error| unreachable!("corpora/run_log/clauses.toml does not load: {error}"))
        })
    }

    fn checks(&self) -> &[Check] {
        self.checks.get_or_init(|| [runner::checks(), replayer::cases::checks()].concat())
    }

    fn config_keys(&self) -> &[ConfigKey] {
        config::KEYS
    }

    fn commands(&self) -> Vec<(Side, Vec<&'static str>)> {
        vec![(Side::Provider, vec![RUNNER]), (Side::Consumer, vec![REPLAYER])]
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

    fn program(&self, name: &str, argv: &[String]) -> Option<Box<dyn Program>> {
        (name == tools::TOOLHOST).then(|| Box::new(tools::Toolhost::new(argv)) as Box<dyn Program>)
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

    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        match facts.side {
            Side::Consumer => replayer::bench::workloads(),
            Side::Provider => Err("a runner is not measured; give a replayer".into()),
        }
    }

    fn rungs(&self) -> &'static [(&'static str, Rung)] {
        rungs::RUNGS
    }

    fn redundant_checks(&self) -> &'static [(&'static str, &'static str)] {
        &[
            (
                "run_log/replayer/refused/patch-of-a-failure",
                "the reference has no seam at which what a failure brings is applied",
            ),
            (
                "run_log/replayer/rerun/hang-by-default",
                "the same with a bound of 1 s notices its mutant sooner",
            ),
        ]
    }

    fn constant_peers(&self) -> &'static [ConstantPeer] {
        const {
            &[
                ConstantPeer {
                    name: "accepts every log",
                    script: "echo 'REPLAY_STRICT OK'",
                    right: &[
                        (
                            "run_log/replayer/{accepted,open,sizes}/*",
                            "it also accepts correct logs and open points",
                        ),
                        (
                            "run_log/replayer/rerun/never",
                            "it runs no tool; other checks of `rerun` show that",
                        ),
                    ],
                },
                ConstantPeer::wrong("refuses every log", "echo 'REPLAY_STRICT FAIL line 1: no'; exit 1"),
                ConstantPeer::wrong("writes an empty log", ": > '{log}'"),
                ConstantPeer::wrong("writes a constant log", runner::CONSTANT),
            ]
        }
    }
}
