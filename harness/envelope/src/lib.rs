//! The envelope boundary: an engine that takes one envelope and returns one, and a caller that sends envelopes to
//! engines.

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
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::plan::{Act, Plan, Step};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::Transcript;
use peerproof_engine::drive::transport::http;
use peerproof_engine::run::matrix::exchanges;

pub(crate) mod bench;
pub mod caller;
pub(crate) mod cases;
pub(crate) mod config;
pub(crate) mod equivalence;
pub mod face;
pub mod generate;
pub(crate) mod model;
mod redundant;
mod rungs;
pub(crate) mod shape;
pub mod talk;
pub(crate) mod time;
pub(crate) mod twins;

use model::{Acceptance, Trait};

const DESCRIPTION: Description = Description {
    http_path: "/api/v1/process",
    signs: &["\"envelope_id\""],
    rungs: rungs::RUNGS,
    constant_peers: &[
        ConstantPeer::wrong(
            "the plain envelope",
            "cat >/dev/null; echo '{\"envelope_id\":\"env_0123456789abcdef\",\"request_id\":\"req_0123456789abcdef\",\"user_id\":\"u\",\"session_id\":\"sess_0123456789abcdef\",\"raw_input\":\"Analyze the authentication flow\",\"outputs\":{},\"current_stage\":\"start\",\"terminated\":false}'",
        ),
        ConstantPeer {
            name: "cat",
            script: "exec cat",
            right: &[(
                "envelope/process/{accepted,advance,bounds,canary,defaults,determinism,emitted,framing,generated,goals,kept,open,pending,process,shapes,size,terminal}/*",
                "an engine may return each valid envelope unchanged",
            )],
        },
    ],
    redundant_checks: &[redundant::CHECKS],
    ..Description::new(
        "envelope",
        "Engines that process the envelope of an agent pipeline, and their callers",
        &[(Side::Provider, &[face::COMMAND, HTTP]), (Side::Consumer, &[caller::COMMAND])],
        config::KEYS,
    )
};

static CLAUSES: LazyLock<Vec<Clause>> =
    LazyLock::new(|| clause::embedded(include_str!("../corpora/clauses.toml")));

static CHECKS: LazyLock<Vec<Check>> =
    LazyLock::new(|| cases::checks().chain(caller::cases::checks()).collect());

/// The envelope boundary.
struct Envelope;

/// The only instance. Its data is embedded and loaded on first use.
pub fn boundary() -> &'static dyn Boundary {
    &Envelope
}

impl Boundary for Envelope {
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
        match self.command_name(face::COMMAND, None, argv) == caller::COMMAND {
            true => (caller::COMMAND, Side::Consumer),
            false if argv.iter().any(|word| http::is_of_server(word)) => (HTTP, Side::Provider),
            false => (face::COMMAND, Side::Provider),
        }
    }

    fn isolation(&self, facts: &Facts, number: u64) -> Option<Isolation> {
        let canary = talk::Talk::isolating(number)?;
        let is_posted = facts.side == Side::Provider && facts.commands.contains(HTTP);
        is_posted.then_some(Isolation { pipelined: &["ENV-HTTP-23", "ENV-HTTP-22", "ENV-HTTP-21"], canary })
    }

    fn command_name(&self, name: &str, _side: Option<Side>, argv: &[String]) -> String {
        let is_caller = name == face::COMMAND && argv.iter().any(|part| part.contains("{scenario}"));
        if is_caller { caller::COMMAND } else { name }.to_owned()
    }

    fn admit(&self, transcript: &Transcript) -> Result<(), Misconfigured> {
        match is_asked(&transcript.plan) {
            true => asking::admit(&transcript.plan, caller::MEMBERS),
            false => face::admit(transcript),
        }
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        match is_asked(&transcript.plan) {
            true => caller::face::judge(transcript),
            false => face::judge(transcript),
        }
    }

    fn lives_on(&self, command: &str, _should: &str) -> Option<SurvivalClause> {
        match command {
            HTTP => Some(SurvivalClause::by(face::LIVES)),
            // A process may refuse by an exit status, but not by a signal.
            face::COMMAND => Some(SurvivalClause::by("ENV-FRAME-06")),
            _ => None,
        }
    }

    fn judge_consumer(&self, transcript: &Transcript) -> Vec<Finding> {
        wrong_inputs(transcript)
    }

    fn exchanges(&self, transcript: &Transcript) -> Vec<NormalizedExchange> {
        // Only acceptance is compared. Callers choose their requests freely, and engines their results.
        match is_asked(&transcript.plan) {
            true => Vec::new(),
            false => exchanges::of(&face::Engine, transcript, |_, message| match message {
                face::Message::Envelope { .. } => "an envelope".to_owned(),
                face::Message::Refused(_) => "a refusal".to_owned(),
            }),
        }
    }

    fn generate(&self, facts: &Facts, rng: &mut Rng) -> Plan {
        match facts.side {
            Side::Provider => generate::conversation(facts, rng),
            Side::Consumer => caller::conversation(rng),
        }
    }

    fn shrink_payload(&self, plan: &Plan, _step: usize) -> Vec<Plan> {
        if is_asked(plan) { asking::variants(plan) } else { Vec::new() }
    }

    fn full_facts(&self, side: Side) -> Facts {
        let mut facts = Facts::new(side);
        match side {
            Side::Provider => {
                facts.commands.extend([face::COMMAND, HTTP].map(str::to_owned));
                facts.features.insert("deterministic".to_owned(), true.into());
            }
            Side::Consumer => {
                facts.commands.insert(caller::COMMAND.to_owned());
            }
        }
        facts
    }
}

impl Wire for Envelope {
    fn answers_canary(&self, step: &Step, frame: &[u8]) -> bool {
        face::answers_canary(step, frame)
    }

    fn counterpart(&self, plan: &Plan, _script: &serde_json::Value) -> Option<Box<dyn Counterpart>> {
        asking::calls(plan)?;
        Some(Box::new(asking::Bystander))
    }
}

impl Discovery for Envelope {}

impl Benchmark for Envelope {
    fn workloads(&self, facts: &Facts) -> Result<Vec<Workload>, Misconfigured> {
        bench::workloads(facts)
    }
}

/// Findings about envelopes of a recorded caller that no engine accepts, each under the clause of the refusal; and
/// about inputs with further text, or against the schema.
fn wrong_inputs(transcript: &Transcript) -> Vec<Finding> {
    let lines = (0..transcript.plan.sessions.len()).filter_map(|session| lines::of_run(transcript, session));
    let wrong = lines.filter(|line| !line.bytes.is_empty()).filter_map(|line| {
        let input = model::Input::read(&transcript.facts, &line.bytes);
        let refused = input
            .traits
            .iter()
            .find(|it| it.stand == Acceptance::Refuse)
            .map(|it| (it.clause, "wrong_envelope", "a valid envelope".to_owned()));
        let (clause, reason, expected) = refused.or_else(|| input.traits.iter().find_map(wrong_of_caller))?;
        let got = shorten(&String::from_utf8_lossy(&line.bytes), 200).into_owned();
        Some(Finding::new(clause, reason, expected, got).at(line.step))
    });
    wrong.collect()
}

/// Fault of an input that engines may accept but callers must not send: clause, reason and expectation.
fn wrong_of_caller(it: &Trait) -> Option<(&'static str, &'static str, String)> {
    match it.clause {
        "ENV-FRAME-03" => {
            Some(("ENV-CALL-25", "more_than_one", "one JSON object and nothing after it".to_owned()))
        }
        "ENV-ACC-03" | "ENV-TYPE-03" | "ENV-TYPE-04" | "ENV-TIME-05" => {
            Some(("ENV-CALL-26", "not_of_schema", format!("{}: a value that the schema allows", it.at)))
        }
        _ => None,
    }
}

/// True if the peer is a caller, for which the harness plays engines.
fn is_asked(plan: &Plan) -> bool {
    plan.steps.iter().any(|step| matches!(step.act, Act::Play { .. }))
}
