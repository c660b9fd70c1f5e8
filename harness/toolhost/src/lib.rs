//! The toolhost boundary: a process that runs tools (`--run`) or serves them line by line (`--serve`), and the
//! dispatcher that starts it.

use std::collections::BTreeMap;
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
use peerproof_engine::data::finding::{Finding, Judgement};
use peerproof_engine::data::plan::{Plan, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{Transcript, strict};

pub(crate) mod align;
pub(crate) mod artifact;
pub(crate) mod bench;
pub(crate) mod cases;
pub(crate) mod checks;
pub(crate) mod config;
pub(crate) mod consumer;
pub(crate) mod dispatcher;
pub(crate) mod exchanges;
pub mod expect;
pub(crate) mod frames;
pub mod full_facts;
pub(crate) mod generate;
pub mod model;
pub mod oracle;
pub(crate) mod probe;
mod redundant;
pub(crate) mod relation;
pub mod reply_rules;
pub mod role;
mod rungs;
pub(crate) mod state;
pub mod talk;
pub(crate) mod talk_state;

const DESCRIPTION: Description = Description {
    variables: &["MACHINA_LEASE_ENFORCE", "MACHINA_HTTP_ALLOWED_HOSTS"],
    signs: &["{\"ok\":", "{\"ok\": "],
    rungs: rungs::RUNGS,
    constant_peers: &[ConstantPeer::wrong(
        "constant full reply",
        "while read -r line; do echo '{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\",\
     \"ds_state\":{\"delta\":true}}'; done",
    )],
    redundant_checks: &[redundant::CHECKS],
    ..Description::new(
        "toolhost",
        "Toolhosts that run tools (run mode, serve mode, leases, idempotency, DSState), and their dispatchers",
        &[(Side::Provider, &["run", "serve"]), (Side::Consumer, &["command"])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(checks::all);

/// The toolhost boundary.
struct Toolhost;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &Toolhost
}

impl Boundary for Toolhost {
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
        if argv.iter().any(|part| part.contains("{peer}")) {
            ("command", Side::Consumer)
        } else if argv.iter().any(|part| part == "--run") {
            ("run", Side::Provider)
        } else {
            ("serve", Side::Provider)
        }
    }

    fn unfilled(&self, argv: &[String]) -> (Vec<String>, BTreeMap<String, String>) {
        let mut argv = argv.to_vec();
        let mut values = BTreeMap::new();
        // The form is `--run <plugin> <aid>`. A peer with one plugin may omit it.
        if let Some(run) = argv.iter().position(|word| word == "--run")
            && !argv.iter().any(|word| word.contains("{aid}"))
        {
            let operands = argv[run + 1..].iter().take_while(|word| !word.starts_with('-')).count();
            if operands > 0 {
                let aid = std::mem::replace(&mut argv[run + operands.min(2)], "{aid}".to_owned());
                values.insert("aid".to_owned(), aid);
            }
        }
        (argv, values)
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        match transcript.facts.side {
            Side::Provider => strict::expectations::<expect::Expect>(&transcript.plan)?,
            Side::Consumer => strict::expectations::<dispatcher::expect::CallExpect>(&transcript.plan)?,
        }
        relation::admit(&transcript.plan)
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        oracle::judge(transcript)
    }

    fn judge_by_model(&self, transcript: &Transcript) -> Judgement {
        model::judge(transcript)
    }

    fn lives_on(&self, command: &str, should: &str) -> Option<SurvivalClause> {
        match (command, should) {
            // A tool that aborts its process may take the toolhost down.
            (_, "TH-TOOL-04") => None,
            ("serve", "TH-LIMIT-04" | "TH-LIMIT-06") => Some(SurvivalClause::by("TH-LIMIT-05")),
            ("serve", _) => Some(SurvivalClause::by("TH-FRAME-01")),
            ("run", _) => Some(SurvivalClause::by("TH-RUN-04")),
            _ => None,
        }
    }

    fn judge_consumer(&self, transcript: &Transcript) -> Vec<Finding> {
        consumer::judge(transcript)
    }

    fn isolation(&self, facts: &Facts, number: u64) -> Option<Isolation> {
        let canary =
            talk::Talk::serve(facts).numbered(number).canary_for("TH-FRAME-01").plan().steps.pop()?;
        (facts.side == Side::Provider).then_some(Isolation { pipelined: &["TH-FRAME-04"], canary })
    }

    fn exchanges(&self, transcript: &Transcript) -> Vec<NormalizedExchange> {
        exchanges::of(transcript)
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        generate::conversation(facts, rng)
    }

    fn shrink_payload(&self, plan: &Plan, step: usize) -> Vec<Plan> {
        generate::variants(plan, step)
    }

    fn full_facts(&self, side: Side) -> Facts {
        full_facts::facts(side)
    }
}

impl Wire for Toolhost {
    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool {
        oracle::answers_canary(step, frame)
    }

    fn issued(&self, facts: &Facts, frame: &[u8]) -> Option<String> {
        let reply = frames::decode(frame.trim_ascii_end()).value.ok()?;
        let pointer = facts.features.get("lease").and_then(|lease| lease.get("token")?.as_str());
        Some(reply.pointer(pointer.unwrap_or("/token_id"))?.as_str()?.to_owned())
    }
}

impl Discovery for Toolhost {
    fn probes(&self, facts: &Facts) -> Vec<Plan> {
        probe::plans(facts)
    }

    fn complete(&self, facts: &mut Facts, features_given: bool, probes: &[Transcript]) {
        probe::complete(facts, features_given, probes);
    }
}

impl Benchmark for Toolhost {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        bench::workloads(facts)
    }

    fn small_exchanges(&self, facts: &Facts, exchanges: usize) -> Option<Plan> {
        bench::small_exchanges(facts, exchanges)
    }
}
