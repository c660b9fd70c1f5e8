//! Tests of generated conversations with the reference and its mutants in this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::budget::Budget;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{Act, Plan};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::drive::lab::Lab;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::run::fuzz::{self, Corpus, FuzzSettings, FuzzSummary};
use peerproof_engine::run::shrink::shrink;

use crate::start::actor_exe;

fn toolhost() -> &'static dyn Boundary {
    table::find("toolhost").unwrap()
}

const CONVERSATIONS: u64 = 12;

/// Fuzzes the reference, or a mutant of it, for twelve conversations, and passes the summary to `look`.
fn fuzz<T>(mutant: Option<&str>, look: impl FnOnce(&Lab<'_>, FuzzSummary) -> T) -> T {
    fuzz_from(&Corpus::default(), mutant, look)
}

/// Fuzzes starting from the findings of earlier runs.
fn fuzz_from<T>(corpus: &Corpus, mutant: Option<&str>, look: impl FnOnce(&Lab<'_>, FuzzSummary) -> T) -> T {
    let boundary = toolhost();
    let extra: Vec<String> = mutant.iter().flat_map(|id| ["--mutant".to_owned(), (*id).to_owned()]).collect();
    let reference = table::played(boundary).references().remove(0);
    let commands = reference.commands.into_iter().map(|(name, args)| (name.to_owned(), args));
    let peer = Peer {
        name: "reference".to_owned(),
        boundary,
        commands: commands.collect(),
        env: Vec::new(),
        facts: boundary.full_facts(Side::Provider),
        features_given: true,
        origin: Origin::InProcess(Arc::new(move |args, env| {
            table::played(boundary).reference_machine(&[args, &extra].concat(), env)
        })),
        pace: Arc::default(),
    };
    let scratch = tempfile::tempdir().unwrap();
    let lab = Lab {
        peer: &peer,
        budget: Budget::default(),
        actor_exe: &actor_exe(),
        scratch: scratch.path(),
        timeout_scale: 1.0,
    };
    let settings = FuzzSettings {
        time: Duration::from_secs(600),
        conversations_max: Some(CONVERSATIONS),
        rng_seed: 1,
        jobs: 2,
        shrink: Duration::ZERO,
        played: Some(table::played(toolhost())),
    };
    let summary = fuzz::run(&lab, corpus, &settings, &|| false, &|_| {});
    look(&lab, summary)
}

fn generated(n: u64) -> Plan {
    let facts = toolhost().full_facts(Side::Provider);
    toolhost().generate(&facts, &mut Rng::new(n))
}

fn lines(plan: &Plan) -> usize {
    let lines = plan.steps.iter().map(|step| match &step.act {
        Act::Send { payload, .. } => payload.lines(),
        _ => 0,
    });
    lines.sum()
}

#[test]
fn the_reference_is_clean() {
    let summary = fuzz(None, |_, summary| summary);
    assert_eq!(summary.status.conversations, CONVERSATIONS);
    assert!(summary.status.messages > 1_000, "{:?}", summary.status);
    let found: Vec<_> = summary.found.iter().map(|found| &found.failure.finding).collect();
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(summary.given_up, (0, None));
}

/// Findings of conversations with another side say nothing about this peer, and are not repeated.
#[test]
fn conversations_with_other_peers_are_left_out() {
    let keys = |summary: &FuzzSummary| {
        let found = summary.found.iter().map(|found| &found.failure.finding);
        found.map(|finding| format!("{}--{}", finding.clause.0, finding.reason)).collect::<Vec<_>>()
    };
    let found = fuzz(Some("no-cache"), |_, summary| keys(&summary));
    let folder = tempfile::tempdir().unwrap();
    let mut plan = generated(1);
    plan.sessions[0].command = "dispatcher".to_owned();
    for key in &found {
        std::fs::write(folder.path().join(format!("{key}.json")), serde_json::to_string(&plan).unwrap())
            .unwrap();
    }
    let corpus = Corpus::load(folder.path()).unwrap();
    fuzz_from(&corpus, Some("no-cache"), |_, summary| {
        assert!(summary.known.is_empty(), "{:?}", summary.known);
        assert_eq!(keys(&summary), found);
    });
}

#[test]
fn a_finding_in_a_long_conversation_is_shrunk_to_a_short_one() {
    let (found, shrunk) = fuzz(Some("no-cache"), |lab, summary| {
        let missed = summary.found.into_iter().find(|found| found.failure.finding.clause.0 == "TH-IDEM-01");
        let missed = missed.expect("a key that comes again shows that nothing is kept");
        let shrunk = shrink(
            lab,
            Some(table::played(toolhost())),
            &missed.failure,
            Instant::now() + Duration::from_secs(120),
        );
        (missed, shrunk)
    });
    assert!(found.steady);
    assert!(shrunk.confirmed);
    assert!(lines(&shrunk.plan) <= 3, "{:#?}", shrunk.plan);
}

#[test]
fn one_stream_of_random_numbers_gives_one_conversation() {
    for n in 0..8 {
        assert_eq!(generated(n), generated(n));
    }
}

#[test]
fn conversations_are_of_all_lengths_within_a_bound() {
    let mut lengths = Vec::new();
    for n in 0..60 {
        let plan = generated(n);
        lengths.push(lines(&plan));
        let sent = |act: &Act| match act {
            Act::Send { payload, .. } => payload.len(&Vars::new()),
            _ => 0,
        };
        let bytes: usize = plan.steps.iter().map(|step| sent(&step.act)).sum();
        // A line of 10 MiB, which takes a few bytes as a recipe, may be the last that fits.
        assert!(bytes < 32 << 20, "conversation {n} has {bytes} bytes");
    }
    assert!(lengths.iter().any(|lines| *lines < 150), "{lengths:?}");
    assert!(lengths.iter().any(|lines| *lines > 1_000), "{lengths:?}");
}
