//! Every mutant does something that the correct peer does not.

use std::collections::BTreeSet;

use super::*;
use crate::mutant::assert_sound;
use crate::run_queue::mutants::{self, Mutant};

#[test]
fn tables_are_sound_and_long() {
    let mut all = 0;
    for role in ["worker", "http", "enqueue", "genesis"] {
        let table: Vec<Mutant> = mutants::of(role).copied().collect();
        assert_sound(&table, "QUE-");
        assert!(table.iter().all(|mutant| mutants::find(role, mutant.id).is_some()));
        all += table.len();
    }
    assert!(all >= 40, "{all}");
    assert!(mutants::find("worker", "http-late").is_none());
}

/// What can be seen of a worker: starts, files, folders, and how it ended.
fn seen(make: &dyn Fn(&World, Who, Config) -> AtWork) -> Vec<String> {
    let mut seen = Vec::new();
    let mut note = |what: &str, world: &World, workers: &[&AtWork]| {
        let files: Vec<_> = ["inbox", "processing", "done", "failed", "tmp"].map(|it| world.below(it)).into();
        let folders: Vec<_> = world.files().folders.keys().cloned().collect();
        let told: Vec<_> =
            workers.iter().map(|it| (&it.starts, &it.running, it.exit, it.wake_at, it.killed)).collect();
        seen.push(format!("{what}: {files:?} {folders:?} {told:?}"));
    };
    // All that jobs can be.
    let world = World::default();
    let texts = [
        job(1),
        "{\"goal_id\":\"g\",\"exit\":3}".to_owned(),
        String::new(),
        "{".to_owned(),
        "[1]".to_owned(),
        "{}".to_owned(),
        "{\"goal_id\":\"\"}".to_owned(),
        "{\"goal_id\":1}".to_owned(),
        "{\"goal_id\":\"g\",\"inputs\":1}".to_owned(),
        "{\"goal_id\":\"g\"} x".to_owned(),
        "{\"goal_id\":\"g\",\"other\":1}".to_owned(),
        format!("{{\"goal_id\":\"g\",\"d\":{}{}}}", "[".repeat(30), "]".repeat(30)),
        format!("{{\"goal_id\":\"g\",\"d\":\"{}\"}}", "x".repeat(2 << 20)),
        "x".repeat(11 << 20),
    ];
    for (number, text) in texts.iter().enumerate() {
        world.put(&format!("inbox/{number:02}.json"), text);
    }
    for (name, text) in [
        ("a b.json", job(2)),
        ("l\nf.json", job(3)),
        ("é.json", job(4)),
        ("x.json.part", job(5)),
        ("x.txt", job(6)),
    ] {
        world.put(&format!("inbox/{name}"), &text);
    }
    world.files().files.insert(b"inbox/u.json".to_vec(), b"{\"goal_id\":\"\xFF\"}".to_vec());
    world.files().odd.insert(b"inbox/fifo.json".to_vec(), Kind::Other);
    world.put("done/00.json", "old");
    world.put("failed/01.json", "old");
    world.put("failed/02.reason.txt", "old");
    world.put("processing/worker-x/dead.json", &job(7));
    world.put("processing/hand.json", &job(8));
    let mut worker = make(&world, 1, once());
    for _ in 0..60 {
        note("jobs", &world, &[&worker]);
        if worker.step() {
            note("running", &world, &[&worker]);
            worker.end_program();
        } else {
            worker.wait();
        }
    }
    // Without an end, with a full disk, and with one that has nothing.
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    world.files().full = Some("done");
    let mut worker = make(&world, 1, Config::default());
    worker.drain();
    note("full", &world, &[&worker]);
    // Several, and SIGTERM.
    for sigterm in ["finish", "return"] {
        for (jobs, killed) in [(0, 0), (3, 0), (3, 9)] {
            let world = World::default();
            (1..=jobs).for_each(|number| world.put(&format!("inbox/{number}.json"), &job(number)));
            let mut config = Config::default();
            config.choices.set("sigterm", sigterm).unwrap();
            let (mut one, two) = (make(&world, 1, config.clone()), make(&world, 2, config));
            note("two", &world, &[&one, &two]);
            if killed == 9 && one.running.take().is_some() {
                one.tell(Event::ChildExit(ChildExit::Signal(9)));
            }
            one.step();
            one.tell(Event::Terminate);
            note("asked", &world, &[&one, &two]);
            one.end_program();
            one.step();
            note("ended", &world, &[&one, &two]);
        }
    }
    seen
}

#[test]
fn each_mutant_of_the_worker_shows() {
    let right = seen(&AtWork::new);
    assert_eq!(right, seen(&AtWork::new));
    let mut silent = BTreeSet::new();
    for mutant in mutants::of("worker") {
        let mutated = seen(&|world, who, config| {
            let config = Config { seed: who as u64, ..config };
            AtWork::with(world, who, mutants::worker(mutant, config, world.parts(who)))
        });
        if mutated == right {
            silent.insert(mutant.id);
        }
    }
    assert!(silent.is_empty(), "{silent:?}");
}
