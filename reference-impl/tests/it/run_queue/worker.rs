//! Tests of workers as processes.

use std::os::unix::ffi::OsStrExt as _;

use rustix::process::Signal;

use super::*;

#[test]
fn jobs_end_in_done_or_in_failed_with_a_reason() {
    let queue = Queue::new();
    queue.put("a b;$(touch x).json", &job(1));
    queue.put("-n\n.json", &job(2));
    queue.put(OsStr::from_bytes(b"\xFF.json"), &job(3));
    queue.put("é.json", &job(4));
    queue.put("f.json", "{\"goal_id\":\"fails\"}");
    queue.put("m.json", "{");
    queue.put("other.json.part", &job(5));
    std::os::unix::fs::symlink("/etc/passwd", queue.path("q/inbox/link.json")).unwrap();
    fs::create_dir(queue.path("q/inbox/folder.json")).unwrap();
    assert_eq!(queue.once(), Some(0));
    assert_eq!(queue.starts().len(), 5);
    assert_eq!(queue.names("done").len(), 4);
    assert_eq!(queue.names("failed"), ["f.json", "f.reason.txt", "m.json", "m.reason.txt"]);
    assert_eq!(queue.names("inbox"), ["link.json", "other.json.part"]);
    assert!(queue.names("processing").is_empty() && !queue.path("x").exists());
    assert!(queue.path("q/inbox/folder.json").is_dir());
    assert_eq!(fs::read_dir(queue.path("q/processing")).unwrap().count(), 0);
}

#[test]
fn links_that_lead_nowhere_fail_where_links_are_run() {
    let queue = Queue::new();
    std::os::unix::fs::symlink("nowhere", queue.path("q/inbox/link.json")).unwrap();
    queue.put("a.json", &job(1));
    let words = ["worker", "q", "--once", "--runner", "runner", "--choice", "symlink=run"];
    assert_eq!(queue.run(&words).status.code(), Some(0));
    assert_eq!(queue.names("failed"), ["link.json", "link.reason.txt"]);
    assert_eq!((queue.names("done"), queue.names("processing").len()), (vec!["a.json".to_owned()], 0));
}

#[test]
fn a_limit_on_the_size_of_files_ends_no_worker() {
    let queue = Queue::new();
    queue.put("m.json", "{");
    let mut command = queue.without_room(&["worker", "q", "--once", "--runner", "runner"]);
    assert_eq!(command.status().unwrap().code(), Some(0));
    assert_eq!(queue.names("failed"), ["m.json"]);
}

#[test]
fn a_worker_that_is_killed_is_succeeded() {
    let queue = Queue::new();
    assert!(Command::new("mkfifo").arg(queue.path("gate")).status().unwrap().success());
    queue.put("a.json", "{\"goal_id\":\"gate\"}");
    queue.put("b.json", &job(1));
    let mut first = queue.start(&["worker", "q", "--runner", "runner"]);
    until("a program runs", || queue.starts().len() == 1);
    // A job that a living worker holds is left alone.
    assert_eq!(queue.once(), Some(0));
    assert_eq!(
        (queue.names("processing"), queue.names("done")),
        (vec!["a.json".to_owned()], vec!["b.json".to_owned()])
    );
    first.kill();
    for pid in queue.pids() {
        if runs(pid) {
            rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL)
                .unwrap();
        }
    }
    // This releases the reader that the killed program left behind.
    drop(fs::OpenOptions::new().read(true).write(true).open(queue.path("gate")).unwrap());
    fs::remove_file(queue.path("gate")).unwrap();
    fs::write(queue.path("gate"), "").unwrap();
    assert_eq!(queue.once(), Some(0));
    assert_eq!(queue.names("done"), ["a.json", "b.json"]);
    assert_eq!(queue.starts().iter().filter(|text| text.contains("gate")).count(), 2);
    assert!(queue.names("processing").is_empty());
}

#[test]
fn kills_at_many_moments_lose_nothing_and_complete_nothing_twice() {
    const JOBS: usize = 60;
    let queue = Queue::new();
    write_program(
        &queue.path("runner"),
        "#!/bin/sh\nprintf '%s %s\\n' $$ \"$(cat \"$1\")\" >> \"$(dirname \"$0\")/starts\"\n",
    );
    for number in 0..JOBS {
        queue.put(format!("{number}.json"), &job(number));
    }
    let mut kills = 0;
    while queue.names("inbox").len() > 5 {
        let done = queue.names("done").len();
        let mut worker = queue.start(&["worker", "q", "--runner", "runner"]);
        until("a job is done", || queue.names("done").len() > done + kills % 3);
        worker.kill();
        kills += 1;
    }
    assert!(kills > 5, "{kills}");
    // A program that the dead worker was starting keeps its lock for a moment, so the first worker may find it locked.
    until("every job is done", || queue.once() == Some(0) && queue.names("done").len() == JOBS);
    assert!(queue.names("processing").is_empty());
    let starts = queue.starts();
    for number in 0..JOBS {
        let count = starts.iter().filter(|text| **text == job(number)).count();
        assert!((1..=1 + kills).contains(&count), "job {number}: {count}");
    }
    assert!(starts.len() <= JOBS + kills, "a kill costs one start: {} and {kills}", starts.len());
}

#[test]
fn sigterm_finishes_or_returns() {
    for choice in ["finish", "return"] {
        let queue = Queue::new();
        assert!(Command::new("mkfifo").arg(queue.path("gate")).status().unwrap().success());
        queue.put("a.json", "{\"goal_id\":\"gate\"}");
        queue.put("b.json", &job(1));
        let choice_word = format!("sigterm={choice}");
        let mut worker = queue.start(&["worker", "q", "--runner", "runner", "--choice", &choice_word]);
        until("a program runs", || queue.starts().len() == 1);
        worker.signal(Signal::TERM);
        if choice == "finish" {
            fs::write(queue.path("gate"), "").unwrap();
        }
        assert_eq!(worker.0.wait().unwrap().code(), Some(0), "{choice}");
        assert!(queue.pids().into_iter().all(|pid| !runs(pid)), "{choice}");
        let expected = if choice == "finish" {
            (&["b.json"][..], &["a.json"][..])
        } else {
            (&["a.json", "b.json"][..], &[][..])
        };
        assert_eq!(queue.names("inbox"), expected.0, "{choice}");
        assert_eq!(queue.names("done"), expected.1, "{choice}");
    }
    let queue = Queue::new();
    let mut idle = queue.start(&["worker", "q", "--runner", "runner"]);
    until("it has set up", || queue.path("q/failed").exists());
    idle.signal(Signal::TERM);
    assert!(matches!(idle.0.wait().unwrap().code(), Some(0) | None));
}

#[test]
fn a_job_that_comes_later_is_taken_and_a_second_worker_may_be_refused() {
    let queue = Queue::new();
    let words = ["worker", "q", "--runner", "runner", "--choice", "second_worker=refuse"];
    let _worker = queue.start(&words);
    until("it has set up", || queue.path("q/failed").exists());
    queue.put("a.part", &job(1));
    fs::rename(queue.path("q/inbox/a.part"), queue.path("q/inbox/a.json")).unwrap();
    until("it is done", || queue.names("done") == ["a.json"]);
    assert_eq!(queue.run(&words).status.code(), Some(3));
}

#[test]
fn several_workers_start_each_job_once() {
    const JOBS: usize = 40;
    let queue = Queue::new();
    for number in 0..JOBS {
        queue.put(format!("{number}.json"), &job(number));
    }
    let mut workers: Vec<_> =
        (0..3).map(|_| queue.start(&["worker", "q", "--once", "--runner", "runner"])).collect();
    for worker in &mut workers {
        assert_eq!(worker.0.wait().unwrap().code(), Some(0));
    }
    assert_eq!((queue.starts().len(), queue.names("done").len()), (JOBS, JOBS));
}

#[test]
fn without_a_runner_jobs_are_runs_of_the_policy_driver() {
    let queue = Queue::new();
    let driver = "cat > /dev/null\necho x >> \"$(dirname \"$0\")/drives\"\necho '<NOOP><END>'\n";
    fs::write(queue.path("driver.sh"), driver).unwrap();
    queue.put("a.json", "{\"goal_id\":\"g\",\"control_mode\":\"POLICY_ONLY\",\"inputs\":{\"job\":1}}");
    queue.put(OsStr::from_bytes(b"\xFF.json"), "{\"goal_id\":\"h\",\"control_mode\":\"POLICY_ONLY\"}");
    let mut command = queue.command(&["worker", "q", "--once"]);
    command.env("MACHINA_POLICY_CMD", format!("sh {}", queue.path("driver.sh").display()));
    command
        .env("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT", queue.0.path())
        .env("MACHINA_POLICY_TIMEOUT_MS", "60000");
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    assert_eq!((queue.names("done").len(), queue.names("out").len()), (2, 2));
    assert_eq!(fs::read_to_string(queue.path("drives")).unwrap(), "x\nx\n");
}

#[test]
fn mutants_have_drivers_and_links_their_own_way() {
    let drives = |mutant: &str| {
        let queue = Queue::new();
        let driver = "cat >> \"$(dirname \"$0\")/input\"\necho '<NOOP><END>'\n";
        fs::write(queue.path("driver.sh"), driver).unwrap();
        queue.put("a.json", "{\"goal_id\":\"g\",\"control_mode\":\"POLICY_ONLY\"}");
        let mut command = queue.command(&["worker", "q", "--once"]);
        if !mutant.is_empty() {
            command.args(["--mutant", mutant]);
        }
        command.env("MACHINA_POLICY_CMD", format!("sh {}", queue.path("driver.sh").display()));
        command.env("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT", queue.0.path());
        command.env("MACHINA_POLICY_TIMEOUT_MS", "60000");
        assert_eq!(command.output().unwrap().status.code(), Some(0));
        assert_eq!(queue.names("done"), ["a.json"]);
        fs::read_to_string(queue.path("input")).ok()
    };
    assert_eq!(drives("").as_deref(), Some(""));
    assert!(drives("work-driver-input").unwrap().contains("POLICY_ONLY"));
    assert_eq!(drives("work-no-driver"), None);
    let queue = Queue::new();
    fs::write(queue.path("target"), job(1)).unwrap();
    std::os::unix::fs::symlink(queue.path("target"), queue.path("q/inbox/link.json")).unwrap();
    let words = ["worker", "q", "--once", "--runner", "runner", "--mutant", "job-moves-target"];
    assert_eq!(queue.run(&words).status.code(), Some(0));
    assert!(!queue.path("target").exists() && queue.names("done") == ["link.json"]);
}

#[test]
fn mutants_are_processes_too() {
    let with = |mutant: &str| {
        let queue = Queue::new();
        queue.put("a.json", &job(1));
        queue.put("b.json", "{");
        let status =
            queue.run(&["worker", "q", "--once", "--runner", "runner", "--mutant", mutant]).status.code();
        (status, queue.starts().len(), queue.names("done"), queue.names("failed").len())
    };
    let done = vec!["a.json".to_owned()];
    assert_eq!(with("work-runs-nothing"), (Some(0), 0, done.clone(), 2));
    assert_eq!(with("once-starts-twice"), (Some(0), 2, done.clone(), 2));
    assert_eq!(with("work-no-reason"), (Some(0), 1, done.clone(), 1));
    assert_eq!(with("work-in-inbox"), (Some(0), 1, done, 2));
    assert_eq!(with("no-such-mutant").0, Some(2));
}
