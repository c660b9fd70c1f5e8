//! The policy_driver boundary: a driver, an external process, chooses the next action of an agent. A selector
//! starts it and tolerates its failures.
//!
//! Provider: a driver reads a payload from a file and prints one block ([`driver`]). Consumer: a selector reads
//! requests, one per line, starts the drivers that the harness plays, and prints Selections ([`selector`]).

use std::sync::LazyLock;

use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::contract::boundary::{
    Benchmark, Boundary, ConstantPeer, Description, Discovery, Isolation, NormalizedExchange, SurvivalClause,
    Wire,
};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::{self, Clause, Side};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Judgement;
use peerproof_engine::data::plan::{Plan, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Transcript, strict};

pub(crate) mod bench;
pub mod block;
pub(crate) mod cases;
pub(crate) mod checks;
pub(crate) mod choice;
pub(crate) mod config;
pub(crate) mod driver;
pub(crate) mod exchanges;
pub mod full_facts;
pub(crate) mod generate;
mod redundant;
pub mod request;
mod rungs;
pub mod selector;

/// Command of a driver.
pub const DRIVER: &str = "command";

/// Command of a bridge: a driver that asks a model over HTTP.
pub const BRIDGE: &str = "bridge";

/// Canonical name of a selector's command; a configuration may call it `command`.
pub const SELECTOR: &str = "selector";

const DESCRIPTION: Description = Description {
    variables: config::VARIABLES,
    signs: &["<PICK>", "<NOOP>", "\"kind\":\"PICK\"", "\"kind\": \"PICK\""],
    rungs: rungs::RUNGS,
    constant_peers: &[
        ConstantPeer {
            name: "constant full block",
            script: "echo '<PICK><SID0042><END>'; cat >/dev/null",
            right: &[
                (
                    "policy_driver/driver/{canary,start,payload,hostile,load,limits,open,roles}/*",
                    "a driver may pick this action wherever the menu holds it",
                ),
                (
                    "policy_driver/driver/every-decision/{one-block,leaves-nothing}",
                    "it says this one block, and starts nothing",
                ),
            ],
        },
        ConstantPeer::wrong(
            "constant full selection",
            "while read -r line; do echo '{\"kind\":\"PICK\",\"sid\":\"SID0042\",\"raw\":\"<PICK><SID0042><END>\"}'; done",
        ),
        ConstantPeer::wrong(
            "constant full fallback",
            "while read -r line; do echo '{\"kind\":\"NOOP\",\"raw\":\"fallback\"}'; done",
        ),
        ConstantPeer::wrong(
            "constant full invalid",
            "while read -r line; do echo '{\"kind\":\"INVALID\",\"raw\":\"invalid\"}'; done",
        ),
    ],
    redundant_checks: &[redundant::CHECKS],
    ..Description::new(
        "policy_driver",
        "Drivers that choose the next step of an agent (a payload file in, one block out), and selectors that \
 start them",
        &[(Side::Provider, &[DRIVER, BRIDGE]), (Side::Consumer, &[SELECTOR])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(checks::all);

/// The policy_driver boundary.
struct PolicyDriver;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &PolicyDriver
}

impl Boundary for PolicyDriver {
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
        match argv.iter().any(|part| part.contains("{driver}")) {
            true => (SELECTOR, Side::Consumer),
            false => (DRIVER, Side::Provider),
        }
    }

    fn command_name(&self, name: &str, side: Option<Side>, argv: &[String]) -> String {
        let is_selector = side == Some(Side::Consumer) || self.main_command(argv).1 == Side::Consumer;
        if is_selector && name == DRIVER { SELECTOR } else { name }.to_owned()
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        match transcript.facts.side {
            Side::Provider => strict::expectations::<driver::expect::Expect>(&transcript.plan),
            Side::Consumer => strict::expectations::<selector::expect::Expect>(&transcript.plan),
        }
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        match transcript.facts.side {
            Side::Provider => driver::oracle::judge(transcript),
            Side::Consumer => selector::oracle::judge(transcript),
        }
    }

    fn judge_by_model(&self, transcript: &Transcript) -> Judgement {
        match transcript.facts.side {
            Side::Provider => driver::oracle::judge_by_model(transcript),
            Side::Consumer => selector::oracle::judge_by_model(transcript),
        }
    }

    fn lives_on(&self, command: &str, should: &str) -> Option<SurvivalClause> {
        // To serve the lines after an over-long one is only a SHOULD.
        (command == SELECTOR && should != "PD-SEL-08").then_some(SurvivalClause::by("PD-SEL-01"))
    }

    fn isolation(&self, facts: &Facts, _number: u64) -> Option<Isolation> {
        let canary = selector::talk::Talk::new().internal_canary("PD-SEL-01").plan().steps.pop()?;
        let pipelined = &["PD-SEL-13", "PD-SEL-03"];
        (facts.side == Side::Consumer).then_some(Isolation { pipelined, canary })
    }

    fn exchanges(&self, transcript: &Transcript) -> Vec<NormalizedExchange> {
        exchanges::of(transcript)
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        match facts.side {
            Side::Provider => generate::conversation(facts, rng),
            Side::Consumer => selector::generate::conversation(rng),
        }
    }

    fn shrink_payload(&self, plan: &Plan, step: usize) -> Vec<Plan> {
        generate::variants(plan, step)
    }

    fn full_facts(&self, side: Side) -> Facts {
        full_facts::facts(side)
    }
}

impl Wire for PolicyDriver {
    fn answers_canary(&self, _step: &Step, _frame: &[u8]) -> bool {
        // A Selection does not identify its request line.
        false
    }

    fn frames_due(&self, facts: &Facts, bytes: &[u8]) -> Option<u32> {
        // A selector may ignore a blank line.
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        let due = lines.filter(|line| line.ends_with(b"\n") && !line.trim_ascii().is_empty()).count();
        (facts.side == Side::Consumer).then_some(u32::try_from(due).unwrap_or(u32::MAX))
    }
}

impl Discovery for PolicyDriver {
    fn probes(&self, facts: &Facts) -> Vec<Plan> {
        match facts.side {
            Side::Consumer => vec![selector::probe::plan()],
            Side::Provider => driver::probe::plan(facts).into_iter().collect(),
        }
    }

    fn complete(&self, facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
        if !features_given {
            facts.features.insert("patches".to_owned(), true.into());
            if facts.side == Side::Consumer && probes.iter().any(selector::probe::shows_merged_inputs) {
                facts.features.insert("merged_inputs".to_owned(), true.into());
            }
        }
        if facts.side == Side::Provider
            && let Some(measured) = probes.first()
        {
            driver::probe::complete(facts, measured);
        }
    }

    fn trials(&self, facts: &Facts) -> Option<Vec<(&'static str, Plan)>> {
        Some(driver::trial::plans(facts))
    }

    fn role_fault(&self, _facts: &Facts, role: &str, trial: &Transcript) -> Option<String> {
        driver::trial::role_fault(role, trial)
    }
}

impl Benchmark for PolicyDriver {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        bench::workloads(facts)
    }
}
