//! Boundary for tests of the engine, whose peers echo each line.

use std::sync::OnceLock;

use crate::contract::boundary::{Benchmark, Boundary, ConfigKey, Description, Discovery, Placeholder, Wire};
use crate::data::blame::Misconfigured;
use crate::data::check::Check;
use crate::data::clause::{Clause, ClauseId, Level, Side};
use crate::data::facts::Facts;
use crate::data::finding::{Finding, Judgement, Nature};
use crate::data::payload::Payload;
use crate::data::plan::{Act, Chunking, Plan, Session, Step};
use crate::data::rng::Rng;
use crate::data::transcript::{EventKind, Transcript};
use crate::drive::machine::Machine;
use crate::drive::presentation::Harmless;
use crate::drive::reference_peers::{Mutant, Played, Reference};

/// Only command of the toy boundary.
pub(crate) const COMMAND: &str = "command";
const CLAUSE: &str = "TOY-ECHO-01";

/// The boundary.
pub(crate) struct Toy;

/// Plan with one line and the end of the input.
pub(crate) fn plan() -> Plan {
    let line = Act::Send { payload: Payload::text("hello\n"), chunking: Chunking::Whole, await_frames: 1 };
    Plan {
        sessions: vec![Session { command: COMMAND.to_owned(), ..Session::default() }],
        steps: vec![Step::new(line), Step::new(Act::Finish)],
        ..Plan::default()
    }
}

impl Boundary for Toy {
    fn description(&self) -> &'static Description {
        const KEYS: &[ConfigKey] =
            &[ConfigKey::command(COMMAND, &[Placeholder::optional("{folder}")], "answers lines")];
        const COMMANDS: &[(Side, &[&str])] = &[(Side::Provider, &[COMMAND])];
        const { &Description::new("toy", "answers each line with the same line", COMMANDS, KEYS) }
    }

    fn clauses(&self) -> &[Clause] {
        static CLAUSES: OnceLock<Vec<Clause>> = OnceLock::new();
        CLAUSES.get_or_init(|| {
            vec![Clause {
                id: ClauseId::from(CLAUSE),
                level: Level::Must,
                side: Side::Provider,
                modes: vec![COMMAND.to_owned()],
                source: "this file".to_owned(),
                page: String::new(),
                text: "Each line is answered with the same line.".to_owned(),
                reading: None,
                choice: None,
                allowed: Vec::new(),
                excluded: None,
                feature: None,
                set: None,
                stimulus: crate::data::clause::StimulusValidity::Valid,
                since: None,
                until: None,
            }]
        })
    }

    fn checks(&self) -> &[Check] {
        static CHECKS: OnceLock<Vec<Check>> = OnceLock::new();
        CHECKS.get_or_init(|| {
            vec![Check::new("toy/echo", "One line comes back.", [CLAUSE], COMMAND, |_, _| Ok(plan()))]
        })
    }

    fn admit(&self, _transcript: &Transcript) -> Result<(), Misconfigured> {
        Ok(())
    }

    fn judge(&self, transcript: &Transcript) -> Judgement {
        let of = |wanted: fn(&EventKind) -> Option<Vec<u8>>| -> Vec<u8> {
            transcript.events.iter().filter_map(|event| wanted(&event.kind)).flatten().collect()
        };
        let sent = of(|kind| match kind {
            EventKind::Sent { payload, .. } => payload.expand(&Default::default()).ok(),
            _ => None,
        });
        let came = of(|kind| match kind {
            EventKind::Received { bytes } => Some(bytes.0.clone()),
            _ => None,
        });
        let mut judgement = Judgement::default();
        if sent != came {
            let finding = Finding::new(CLAUSE, "other_line", "the same line", "another");
            let nature = if came.is_empty() { Nature::Hang } else { Nature::Violation };
            judgement.findings.push(finding.of_nature(nature));
        }
        judgement
    }

    fn generate(&self, _facts: &Facts, _rng: &mut Rng) -> Plan {
        plan()
    }

    /// Replaces the line by an empty one.
    fn shrink_payload(&self, plan: &Plan, step: usize) -> Vec<Plan> {
        let mut plan = plan.clone();
        let Some(Act::Send { payload, .. }) = plan.steps.get_mut(step).map(|step| &mut step.act) else {
            return Vec::new();
        };
        let is_new = *payload != Payload::text("\n");
        *payload = Payload::text("\n");
        is_new.then_some(plan).into_iter().collect()
    }
}

impl Wire for Toy {}

impl Discovery for Toy {}

impl Benchmark for Toy {}

impl Played for Toy {
    fn boundary(&self) -> &'static dyn Boundary {
        &Toy
    }

    fn references(&self) -> Vec<Reference> {
        vec![Reference {
            commands: vec![(COMMAND, vec!["--lines".to_owned()])],
            side: Side::Provider,
            harmless: Harmless::ALL,
        }]
    }

    fn run_reference(&self, _args: &[String], _env: &[(String, String)]) -> i32 {
        2
    }

    fn reference_machine(&self, _args: &[String], _env: &[(String, String)]) -> Option<Box<dyn Machine>> {
        None
    }

    fn mutants(&self) -> Vec<Mutant> {
        Vec::new()
    }
}
