//! Tests of workers and writers that die after each of their operations.

use super::*;
use crate::run_queue::{Refused, enqueue};

/// Number of starts and completions of each job.
fn census(world: &World, jobs: usize, starts: &[Start]) -> Vec<(usize, usize)> {
    let everywhere: Vec<String> = ["inbox", "processing", "done", "failed"]
        .iter()
        .flat_map(|folder| world.below(folder))
        .map(|(_, text)| text)
        .collect();
    let count = |number: usize| {
        let text = job(number);
        assert_eq!(
            everywhere.iter().filter(|other| **other == text).count(),
            1,
            "job {number} is in one place"
        );
        let done = world.below("done").iter().filter(|(_, other)| *other == text).count();
        (starts.iter().filter(|start| start.text == text).count(), done)
    };
    (1..=jobs).map(count).collect()
}

fn world_of(jobs: usize) -> World {
    let world = World::default();
    for number in 1..=jobs {
        // Two of them have the same names as existing jobs.
        world.put(&format!("inbox/{number}.json"), &job(number));
    }
    world.put("done/1.json", "old");
    world.put("processing/2.json", "{\"goal_id\":\"by hand\"}");
    world
}

#[test]
fn a_worker_that_dies_behind_any_operation_loses_nothing_and_completes_nothing_twice() {
    const JOBS: usize = 3;
    let mut died = 0;
    for after in 0.. {
        let world = world_of(JOBS);
        world.files().dies_after = Some(after);
        let mut first = AtWork::new(&world, 1, once());
        first.drain();
        if first.exit.is_some() {
            break;
        }
        died += 1;
        world.bury(1);
        let before = census(&world, JOBS, &first.starts);
        let mut second = AtWork::new(&world, 2, once());
        second.drain();
        assert_eq!(second.exit, Some(0), "after {after}");
        let starts = [first.starts.clone(), second.starts.clone()].concat();
        for (number, ((starts, done), was)) in
            census(&world, JOBS, &starts).into_iter().zip(before).enumerate()
        {
            assert_eq!(done, 1, "after {after}: job {}", number + 1);
            // A death costs one more start of the running job, and none of a completed job.
            assert!(starts <= if was.1 == 1 { 1 } else { was.0 + 1 }, "after {after}: job {}", number + 1);
        }
        let again = first.starts.iter().filter(|start| second.starts.iter().any(|it| it.text == start.text));
        assert!(again.count() <= 1, "after {after}");
        assert!(world.names("processing").is_empty() && world.names("inbox").is_empty(), "after {after}");
        assert!(world.files().folders.keys().filter(|place| place.starts_with(b"processing/")).count() == 0);
    }
    assert!(died > 20, "{died}");
}

#[test]
fn workers_that_die_one_after_the_other_leave_all_to_the_last() {
    const JOBS: usize = 2;
    for after in (0..60).step_by(3) {
        let world = world_of(JOBS);
        let mut starts = Vec::new();
        for who in 1..=3 {
            let done = world.files().done.len();
            world.files().dies_after = Some(done + after + who);
            let mut worker = AtWork::new(&world, who, once());
            worker.drain();
            starts.extend(worker.starts.clone());
            world.bury(who);
        }
        let mut last = AtWork::new(&world, 9, once());
        last.drain();
        starts.extend(last.starts);
        for (starts, done) in census(&world, JOBS, &starts) {
            assert!(done == 1 && starts <= 4, "after {after}");
        }
    }
}

#[test]
fn what_a_living_worker_holds_is_left_alone_until_it_dies() {
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    let first = AtWork::new(&world, 1, Config::default());
    assert!(first.running.is_some());
    let mut second = AtWork::new(&world, 2, Config::default());
    for _ in 0..5 {
        second.drain();
        second.wait();
    }
    assert!(second.starts.is_empty());
    // Process ids have no meaning: a program with the dead worker's id changes nothing.
    world.bury(1);
    second.drain();
    assert_eq!((second.starts.len(), world.names("done").len()), (1, 1));
}

#[test]
fn many_workers_start_each_job_once() {
    const JOBS: usize = 20;
    for order in 1..8 {
        let world = World::default();
        for number in 1..=JOBS {
            world.put(&format!("inbox/{number}.json"), &job(number));
        }
        let mut workers: Vec<AtWork> = (1..=3).map(|who| AtWork::new(&world, who, once())).collect();
        for turn in 0.. {
            let worker = &mut workers[turn * order % 3 + usize::from(order % 3 == 0) * (turn % 3) % 3];
            if worker.step() {
                worker.end_program();
            }
            workers.iter_mut().for_each(AtWork::wait);
            if workers.iter().all(|worker| worker.exit.is_some()) || turn > 10_000 {
                break;
            }
        }
        workers.iter_mut().for_each(AtWork::drain);
        let starts: Vec<Start> = workers.iter().flat_map(|worker| worker.starts.clone()).collect();
        assert!(census(&world, JOBS, &starts).iter().all(|counts| *counts == (1, 1)), "order {order}");
    }
}

#[test]
fn a_writer_that_dies_leaves_a_whole_job_or_none() {
    for after in 0.. {
        let world = World::default();
        world.files().dies_after = Some(after);
        let put = enqueue(job(1).as_bytes(), &Config::default(), &mut world.parts(1), &mut 0);
        let names = world.names("inbox");
        assert!(names.iter().all(|name| name.ends_with(".json")), "after {after}: {names:?}");
        assert!(world.below("inbox").iter().all(|(_, text)| *text == job(1)), "after {after}");
        match put {
            Ok(name) => {
                assert_eq!(names, [name]);
                break;
            }
            Err(refused) => assert!(matches!(refused, Refused::Disk(_)), "{refused}"),
        }
    }
}
