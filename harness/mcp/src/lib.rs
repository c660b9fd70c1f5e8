//! The mcp boundary: a server of the Model Context Protocol, whatever its language and its tools.
//!
//! An MCP connection is a JSON-RPC connection with some configuration around it:
//!
//! | part | value | where |
//! |---|---|---|
//! | framing | a message on each line of the standard streams | [`server::Server`], `Framing::Lines` |
//! | opening | `initialize`, its result, `notifications/initialized` | [`talk::Talk::open`] |
//! | closing | none; the end of input ends a server | `Act::Finish` |
//! | canary | `ping`, which changes nothing | [`talk::Talk::canary`] |
//! | requests of the server | answered while the harness waits | [`connection::unmatched_frame`] |
//!
//! **Shared with JSON-RPC.** `peerproof-json-rpc` supplies decoding, ids, the matching of answers, kinds of answers
//! and the form of responses. MCP narrows them: ids are strings or integers, params are objects, batches exist in
//! one revision only. So its face has clauses of its own, and a model with the state of a session.
//!
//! **Knowledge.** A probe opens the server once and reads its lists ([`probe`]). The knowledge is stored with the
//! facts of a peer, so that a stored conversation is judged by the knowledge of its time
//! ([`server_knowledge::ServerKnowledge`]).
//!
//! **Model.** [`model`] derives the allowed answers to each line. The state of a session has the opening, the
//! capabilities that the server declares and the cursors that it gave. A wrong answer breaks a clause that depends
//! on its fault (`Blame` of an allowed answer): a success for an unknown tool breaks another clause than an error
//! with an unusual code.
//!
//! **Rules.** [`rules`] judge a whole conversation: the form of messages, the results of each method, and messages
//! beside answers.
//!
//! **Revisions.** A conversation is judged at the revision that its opening agreed on. Findings about clauses that
//! this revision lacks are dropped.
//!
//! **Faults of the opening** are found by the checks about it. Another check whose opening fails decides nothing.
//!
//! **Effects.** A tool is called only if its annotations declare it read-only, or if the configuration names it.
//!
//! Possible extensions: servers over HTTP (another command with another framing), the stateless revision (no
//! opening, another canary) and clients (the other side).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::Value;

use peerproof_engine::contract::boundary::workload::Workload;
use peerproof_engine::contract::boundary::{
    Benchmark, Boundary, Description, Discovery, Figure, Isolation, NormalizedExchange, SurvivalClause,
    UnmatchedFrame, Wire,
};
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::{self, Clause, Side, StimulusValidity};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::Judgement;
use peerproof_engine::data::plan::{Plan, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::text::visible;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::run::matrix::exchanges;
use peerproof_json_rpc::settings;

pub(crate) mod bench;
pub(crate) mod cases;
pub(crate) mod checks;
pub(crate) mod config;
pub mod connection;
mod figures;
pub mod full_facts;
pub mod generate;
pub(crate) mod library;
pub(crate) mod model;
pub mod probe;
pub(crate) mod revision;
pub mod role;
pub(crate) mod rules;
mod rungs;
pub(crate) mod sample;
pub mod server;
pub mod server_knowledge;
pub mod talk;
pub(crate) mod trial;
mod unknown;

const DESCRIPTION: Description = Description {
    requirements: &["mcp"],
    runs_apart: true,
    refuses_by_method: true,
    converses: true,
    signs: &["\"protocolVersion\""],
    rungs: rungs::RUNGS,
    ..Description::new(
        "mcp",
        "Servers of the Model Context Protocol (tools, resources and prompts for agents) over stdio",
        &[(Side::Provider, &["command"])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(checks::all);

/// The mcp boundary.
struct Mcp;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &Mcp
}

impl Boundary for Mcp {
    fn description(&self) -> &'static Description {
        &DESCRIPTION
    }

    fn clauses(&self) -> &[Clause] {
        &CLAUSES
    }

    fn checks(&self) -> &[Check] {
        &CHECKS
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        server::admit(&transcript.plan)
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        server::judge(transcript)
    }

    fn lives_on(&self, _command: &str, should: &str) -> Option<SurvivalClause> {
        let is_valid = self
            .clauses()
            .iter()
            .any(|clause| clause.id.0 == should && clause.stimulus == StimulusValidity::Valid);
        match should {
            // A request before the end of the opening is valid.
            "MCP-INI-12" => None,
            _ if is_valid => Some(SurvivalClause { clause: server::ONE_REPLY, ..server::LIVES_ON }),
            _ => Some(server::LIVES_ON),
        }
    }

    fn exchanges(&self, transcript: &Transcript) -> Vec<NormalizedExchange> {
        exchanges::of(&server::Server, transcript, server::compared)
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        generate::conversation(facts, rng)
    }

    fn figures(&self, transcript: &Transcript) -> Vec<Figure> {
        figures::of(transcript)
    }

    fn isolation(&self, facts: &Facts, number: u64) -> Option<Isolation> {
        let mut talk = talk::Talk::bare(facts);
        let canary = talk.aim("MCP-BAS-02").numbered(number).canary().plan().steps.pop()?;
        Some(Isolation { pipelined: &["MCP-BAS-21", "MCP-BAS-13"], canary })
    }

    fn full_facts(&self, side: Side) -> Facts {
        full_facts::facts(side)
    }
}

impl Wire for Mcp {
    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool {
        server::answers(step, frame)
    }

    fn unmatched_frame(&self, facts: &Facts, plan: &Plan, frame: &[u8]) -> Option<UnmatchedFrame> {
        connection::unmatched_frame(facts, plan, frame)
    }

    fn frames_due(&self, facts: &Facts, bytes: &[u8]) -> Option<u32> {
        Some(model::frames_due(facts, bytes))
    }
}

impl Discovery for Mcp {
    fn complete_recorded(&self, facts: &mut Facts, transcript: &Transcript) {
        facts.learned = probe::learned(transcript);
    }

    fn probes(&self, facts: &Facts) -> Vec<Plan> {
        probe::plans(facts)
    }

    fn complete(&self, facts: &mut Facts, _features_given: bool, probes: &[Transcript]) {
        probe::complete(facts, probes);
    }

    fn seen(&self, facts: &Facts) -> Vec<String> {
        role::seen(facts)
    }

    fn check_setting(&self, name: &str, value: &Value) -> Result<(), Misconfigured> {
        settings::check(name, value)
    }

    fn inventory(&self, facts: &Facts) -> Vec<String> {
        role::inventory(facts)
    }

    fn candidates(&self, facts: &Facts) -> Vec<(&'static str, Value)> {
        trial::candidates(facts)
    }

    fn trials(&self, facts: &Facts) -> Option<Vec<(&'static str, Plan)>> {
        Some(trial::plans(facts))
    }

    fn role_fault(&self, facts: &Facts, role: &str, trial: &Transcript) -> Option<String> {
        trial::role_fault(facts, role, trial)
    }

    fn unavailable(&self, facts: &Facts) -> Option<String> {
        let asked = facts.choices.get("revision")?;
        let known = server_knowledge::ServerKnowledge::of(facts);
        if known.offered().is_some() {
            return Some(format!("revision {asked} is refused"));
        }
        let answered = known.revision_named()?;
        (asked != answered).then(|| format!("revision {asked} is answered by {}", visible(answered)))
    }

    fn libraries(&self, facts: &Facts) -> BTreeMap<String, String> {
        server_knowledge::ServerKnowledge::of(facts).libraries()
    }

    fn further_probes(&self, facts: &Facts) -> Vec<Plan> {
        probe::further(facts)
    }
}

impl Benchmark for Mcp {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        Ok(bench::workloads(facts))
    }

    fn bench_opening(&self, facts: &Facts) -> Vec<(Vec<u8>, bool)> {
        bench::session(facts)
    }
}
