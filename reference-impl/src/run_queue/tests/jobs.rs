//! Tests of the life of jobs.

use super::*;
use crate::run_queue::Treat;
use crate::run_queue::choices::{Choices, SecondWorker, Sigterm};
use crate::run_queue::worker::STATUS_SECOND;

fn worked(world: &World, config: Config) -> AtWork {
    let mut worker = AtWork::new(world, 1, config);
    worker.drain();
    worker
}

#[test]
fn jobs_go_through_processing_to_done_or_failed() {
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    world.put("inbox/b.json", "{\"goal_id\":\"g\",\"exit\":3}");
    world.put("inbox/c.json", "{}");
    world.put("inbox/other.txt", "x");
    let mut worker = AtWork::new(&world, 1, once());
    assert!(worker.running.is_some() && world.names("inbox") == ["b.json", "c.json", "other.txt"]);
    assert_eq!(world.names("processing").len(), 1);
    worker.drain();
    assert_eq!(worker.exit, Some(0));
    assert_eq!(
        worker.starts.iter().map(|start| &start.text).collect::<Vec<_>>(),
        [&job(1), "{\"goal_id\":\"g\",\"exit\":3}"]
    );
    assert_eq!(world.below("done"), [("a.json".to_owned(), job(1))]);
    assert_eq!(world.names("failed"), ["b.json", "b.reason.txt", "c.json", "c.reason.txt"]);
    let reason = |name: &str| world.below("failed").into_iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!(reason("b.reason.txt"), "its program ended with status 3\n");
    assert!(reason("c.reason.txt").contains("goal_id"));
    assert_eq!(world.names("inbox"), ["other.txt"]);
    assert!(world.names("processing").is_empty());
    let nonzero =
        Choices { once_failed_exit: super::super::choices::ExitStatus::Nonzero, ..Choices::default() };
    world.put("inbox/d.json", "");
    assert_eq!(worked(&world, Config { choices: nonzero, ..once() }).exit, Some(1));
}

#[test]
fn names_that_are_taken_stay_with_what_has_them() {
    let world = World::default();
    for (place, text) in [
        ("done/a.json", "1"),
        ("failed/b.json", "2"),
        ("failed/c.reason.txt", "3"),
        ("processing/x/a.json", &job(4)),
        ("inbox/a.json", &job(5)),
        ("inbox/b.json", "6"),
        ("inbox/c.json", "7"),
    ] {
        world.put(place, text);
    }
    worked(&world, once());
    let done = world.below("done");
    assert_eq!(done.len(), 3, "{done:?}");
    assert_eq!(done[0], ("a.json".to_owned(), "1".to_owned()));
    assert!(done[1..].iter().all(|(name, _)| name.starts_with("a~") && name.ends_with(".json")));
    let failed = world.below("failed");
    let text = |wanted: &str| failed.iter().find(|(name, _)| name == wanted).map(|(_, text)| text.as_str());
    assert_eq!((text("b.json"), text("c.reason.txt"), text("c.json")), (Some("2"), Some("3"), Some("7")));
    assert_eq!(failed.len(), 6, "{failed:?}");
    assert!(failed.iter().any(|(name, _)| name.starts_with("b~") && name.ends_with(".reason.txt")));
    assert!(failed.iter().any(|(name, _)| name.starts_with("c~") && name.ends_with(".reason.txt")));
}

#[test]
fn choices_say_what_odd_entries_are() {
    let odd = [
        ("dot_name", b".x.json".to_vec(), Kind::File),
        ("upper_case_suffix", b"X.JSON".to_vec(), Kind::File),
        ("not_utf8_name", b"\xFF.json".to_vec(), Kind::File),
        ("symlink", b"l.json".to_vec(), Kind::Link),
        ("special_file", b"f.json".to_vec(), Kind::Other),
    ];
    for (key, name, kind) in odd {
        for value in ["run", "leave", "failed"] {
            let world = World::default();
            let place = [b"inbox/", &name[..]].concat();
            world.put("inbox/plain.json", &job(1));
            if kind == Kind::File {
                world.files().files.insert(place.clone(), job(2).into_bytes());
            } else {
                world.files().odd.insert(place.clone(), kind);
            }
            let mut config = once();
            config.choices.set(key, value).unwrap();
            let worker = worked(&world, config);
            let (runs, is_left) = (kind == Kind::File && value == "run", world.files().is_there(&place));
            assert_eq!(
                (worker.starts.len(), is_left),
                (1 + usize::from(runs), value == "leave"),
                "{key} {value}"
            );
            let failed = world.files().is_there(&[b"failed/", &name[..]].concat());
            assert_eq!(failed, value == "failed" || value == "run" && !runs, "{key} {value}");
        }
    }
    assert_eq!(Choices::default().not_utf8_name, Treat::Run);
}

#[test]
fn long_names_get_parts_of_their_own_within_bounds() {
    let world = World::default();
    let name = format!("{}.json", "x".repeat(250));
    world.put(&format!("failed/{name}"), "1");
    world.put(&format!("inbox/{name}"), "2");
    worked(&world, once());
    let failed = world.names("failed");
    assert!(failed.len() == 3 && failed.iter().all(|name| name.len() <= 255), "{failed:?}");
}

#[test]
fn attempts_are_counted_and_waited_for() {
    let world = World::default();
    world.put("inbox/a.json", "{\"goal_id\":\"g\",\"exit\":1}");
    let mut worker = AtWork::new(&world, 1, Config { attempts: 3, retry_ms: 50, ..once() });
    for starts in 1..=3 {
        assert_eq!((worker.starts.len(), worker.running.is_some()), (starts, true));
        worker.end_program();
        assert!(!worker.step());
        worker.wait();
        worker.step();
    }
    assert_eq!((worker.exit, world.names("failed").len()), (Some(0), 2));
}

#[test]
fn neither_sigterm_nor_a_death_loses_the_count_of_failed_starts() {
    for (choice, dies) in [("finish", false), ("return", false), ("finish", true)] {
        let world = World::default();
        world.put("inbox/a.json", "{\"goal_id\":\"g\",\"exit\":1}");
        let mut config = Config { attempts: 3, ..once() };
        config.choices.set("sigterm", choice).unwrap();
        let mut first = AtWork::new(&world, 1, config.clone());
        first.end_program();
        first.step();
        assert_eq!((first.starts.len(), first.running.is_some()), (2, true));
        if dies {
            world.bury(1);
        } else {
            first.tell(Event::Terminate);
            first.end_program();
            assert_eq!(first.exit, Some(0), "{choice}");
            world.bury(1);
        }
        assert_eq!((world.names("inbox").len(), world.names("processing").len()), (0, 1));
        let mut second = AtWork::new(&world, 2, config);
        second.drain();
        // A job that was interrupted by a death or SIGTERM has not failed.
        let left = if choice == "finish" && !dies { 1 } else { 2 };
        assert_eq!((second.starts.len(), second.exit), (left, Some(0)), "{choice} {dies}");
        assert_eq!(world.names("failed"), ["a.json", "a.reason.txt"]);
        assert!(world.names("processing").is_empty());
    }
}

/// Actions of a worker after these events at these times.
fn asked(world: &World, config: Config, events: &[(Millis, Event<'_>)]) -> Vec<Action> {
    let mut worker = Worker::new(config, world.parts(1));
    let mut actions = Vec::new();
    worker.begin(0, &mut actions);
    events.iter().for_each(|(at, event)| worker.handle(event.clone(), *at, &mut actions));
    actions
}

#[test]
fn sigterm_that_comes_while_a_job_is_read_lets_it_not_begin() {
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    let actions = asked(&world, Config::default(), &[(0, Event::Wake), (0, Event::Terminate)]);
    assert!(!actions.iter().any(|action| matches!(action, Action::Job(_))));
    assert_eq!((actions.last(), world.names("inbox")), (Some(&Action::Exit(0)), vec!["a.json".to_owned()]));
}

#[test]
fn what_cannot_be_taken_is_told_once() {
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    world.files().full = Some("processing/");
    let events = [(0, Event::Wake), (250, Event::Wake), (500, Event::Wake)];
    let actions = asked(&world, Config::default(), &events);
    let says = |action: &&Action| matches!(action, Action::Stderr(text) if text.ends_with(b"a.json cannot be taken: no space left\n"));
    assert_eq!(actions.iter().filter(says).count(), 1, "{actions:?}");
    assert_eq!(world.names("inbox"), ["a.json"]);
}

#[test]
fn a_worker_that_is_to_end_looks_again_at_what_is_held() {
    for dies in [true, false] {
        let world = World::default();
        world.put("inbox/a.json", &job(1));
        let first = AtWork::new(&world, 1, Config::default());
        assert!(first.running.is_some());
        let mut second = AtWork::new(&world, 2, once());
        assert_eq!((second.step(), second.exit), (false, None));
        if dies {
            world.bury(1);
        }
        let mut waits = 0;
        while second.exit.is_none() && waits < 100 {
            second.wait();
            second.drain();
            waits += 1;
        }
        assert_eq!((second.exit, second.starts.len()), (Some(0), usize::from(dies)));
        assert!(waits < 20 && second.now < 1_000, "{waits}");
    }
}

#[test]
fn an_idle_worker_looks_again_and_makes_up_for_what_is_taken_away() {
    let world = World::default();
    let mut worker = AtWork::new(&world, 1, Config::default());
    worker.drain();
    assert_eq!((worker.exit, worker.wake_at), (None, Some(250)));
    let kept = world.files().folders.clone();
    world.files().folders.clear();
    worker.wait();
    worker.drain();
    assert_eq!(worker.exit, None);
    world.files().folders = kept;
    world.files().folders.retain(|place, _| !place.starts_with(b"processing/") && place != b"done");
    world.put("inbox/a.json", &job(1));
    worker.wait();
    worker.drain();
    assert_eq!(world.names("done"), ["a.json"]);
}

#[test]
fn a_full_disk_loses_nothing_and_runs_nothing_twice() {
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    world.put("inbox/b.json", "no job");
    world.files().full = Some("done");
    world.files().room = Some(0);
    let mut worker = worked(&world, Config::default());
    assert_eq!((worker.starts.len(), world.names("processing").len()), (1, 1));
    world.files().full = None;
    worker.wait();
    worker.drain();
    assert_eq!((worker.starts.len(), world.names("done")), (1, vec!["a.json".to_owned()]));
    assert_eq!(world.names("failed"), ["b.json"]);
}

#[test]
fn sigterm_finishes_or_returns_what_is_in_flight() {
    for (choice, started) in [(Sigterm::Finish, true), (Sigterm::Return, true), (Sigterm::Finish, false)] {
        let world = World::default();
        if started {
            world.put("inbox/a.json", &job(1));
            world.put("inbox/b.json", &job(2));
        }
        let choices = Choices { sigterm: choice, ..Choices::default() };
        let mut worker = AtWork::new(&world, 1, Config { choices, ..Config::default() });
        worker.step();
        worker.tell(Event::Terminate);
        assert_eq!(worker.exit, (!started).then_some(0));
        assert_eq!(worker.killed, choice == Sigterm::Return);
        worker.end_program();
        worker.step();
        assert_eq!((worker.exit, worker.starts.len()), (Some(0), usize::from(started)));
        if started {
            let returned = choice == Sigterm::Return;
            assert_eq!(world.names("inbox").len(), if returned { 2 } else { 1 });
            assert_eq!(world.names("done").len(), usize::from(!returned));
        }
        assert!(world.names("processing").is_empty());
    }
}

#[test]
fn a_second_worker_shares_or_ends() {
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    world.put("inbox/b.json", &job(2));
    let (one, other) = (AtWork::new(&world, 1, once()), AtWork::new(&world, 2, once()));
    assert!(one.running.is_some() && other.running.is_some() && one.running != other.running);
    let choices = Choices { second_worker: SecondWorker::Refuse, ..Choices::default() };
    let config = || Config { choices, ..once() };
    let world = World::default();
    world.put("inbox/a.json", &job(1));
    let one = AtWork::new(&world, 1, config());
    assert_eq!((one.exit, AtWork::new(&world, 2, config()).exit), (None, Some(STATUS_SECOND)));
    world.bury(1);
    assert_eq!(worked(&world, Config { seed: 3, ..config() }).exit, Some(0));
}

#[test]
fn what_is_no_job_is_told_from_what_is_one() {
    let config = Config::default();
    for text in [
        "",
        "[]",
        "{",
        "{\"goal_id\":\"g\"} x",
        "{'goal_id':'g'}",
        "{\"goal_id\":\"\"}",
        "{\"goal_id\":1}",
        "{\"goal_id\":\"g\",\"inputs\":[]}",
        "{\"goal_id\":\"g\",\"inputs\":null}",
        "\u{FEFF}{\"goal_id\":\"g\"}",
    ] {
        assert!(super::super::decisions::read(text.as_bytes(), &config).is_err(), "{text}");
    }
    for text in [
        "{\"goal_id\":\"g\"}",
        " {\"goal_id\":\"g\",\"inputs\":{\"a\":null},\"x\":[1.0]}\n",
        "{\"goal_id\":\"a|b\"}",
    ] {
        assert!(super::super::decisions::read(text.as_bytes(), &config).is_ok(), "{text}");
    }
}
