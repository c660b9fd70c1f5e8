//! Checks of workers: jobs, starts of workers, and looks.

mod once;
mod special;

use peerproof_engine::contract::memory;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::{Payload, Segment};
use peerproof_engine::data::plan::{Act, ActorStep, AwaitedEffect, Fixture};

use super::talk::{REASON_MS, SETTLE_MS, SIGN_MS, START_MS, Talk, looks_at_stdin, sleep};
use super::{BEACON, IDLE, LIFE, MADE, NO_INBOX, QUEUE, REST, RUNNER};
use crate::config::{POLL_MS, RECOVER_MS};
use crate::job::{BYTES_MAX, DEPTH_MAX, Draft, VERY_DEEP, arrays};
use crate::{FOLDERS, ONCE, WORKER};

/// Scripts of programs that fail.
const FAILS: [ActorStep; 2] = [ActorStep::Exit(3), ActorStep::Die(9)];

/// Time for a worker to notice a file in its inbox, ms.
const NOTICE_MS: u64 = 700;

/// Duration of a program that is observed while it runs, ms.
const LONG_MS: u64 = 900;

/// Duration of the observation of an idle worker, ms.
const IDLE_MS: u64 = 2_000;

/// Clauses about the resources of a worker; their checks run alone.
const MEASURED: [&str; 2] = ["QUE-JOB-19", "QUE-WORK-16"];

type Row = (&'static str, &'static str, &'static [&'static str], fn(&mut Talk));

/// All checks except those of dying workers, in the order in which they run.
pub(crate) fn checks() -> Vec<Check> {
    let of = |command: &'static str, rows: &[Row]| -> Vec<Check> {
        let check = |(id, title, clauses, make): &Row| {
            let (about, make) = (clauses[0], *make);
            let planner = move |facts: &_, _: &mut _| {
                let mut talk = Talk::new(facts, command, about);
                make(&mut talk);
                Ok(talk.done())
            };
            let (is_ambient, is_first) = (AMBIENT.contains(id), *id == FIRST_CANARY);
            let id = format!("run_queue/{command}/{id}");
            let check = Check::new(id, *title, clauses.iter().copied(), command, planner);
            let is_measured = clauses.iter().any(|clause| MEASURED.contains(clause));
            let check = check.vouched().on_process();
            let check = if is_measured { check.exclusive() } else { check.waits() };
            let check = if is_first { check.first_canary() } else { check };
            if is_ambient { check.ambient() } else { check }
        };
        rows.iter().map(check).collect()
    };
    let workers = [of(WORKER, WORKERS), of(WORKER, special::SPECIALS)].concat();
    [workers, vec![special::unreadable(), later()], of(ONCE, once::ONCES)].concat()
}

/// Checks about every job. They report findings of all conversations, once.
const AMBIENT: [&str; 3] = ["life/stdin", "life/renamed", "life/failure"];

/// The check of each command that vouches for all others.
const FIRST_CANARY: &str = "canary/plain-request";

const WORKERS: &[Row] = &[
    (FIRST_CANARY, "A plain job is run and moved to done/.", &["QUE-JOB-01", "QUE-WORK-09"], canary),
    (
        "life/places",
        "While its program runs, a job is in processing/ and nowhere else.",
        &["QUE-WORK-03", "QUE-WORK-01", "QUE-WORK-02"],
        |talk| {
            let job = talk.draft().plays(sleep(LONG_MS));
            talk.put(&job);
            talk.look_before();
            talk.start();
            talk.wait_for(&job, false, START_MS);
            talk.look_in_run();
            talk.wait_for_ends();
            talk.look_at_rest();
        },
    ),
    (
        "life/renamed",
        "Jobs move by rename, keep their inode, their name and their bytes, and end in one place.",
        &[
            "QUE-WORK-06",
            "QUE-WORK-04",
            "QUE-WORK-05",
            "QUE-WORK-07",
            "QUE-WORK-09",
            "QUE-ONCE-01",
            "QUE-ONCE-02",
        ],
        |talk| {
            for play in [vec![], sleep(30), vec![FAILS[0].clone()], vec![]] {
                let job = talk.draft().plays(play);
                talk.put(&job);
            }
            talk.run_all();
        },
    ),
    (
        "life/failure",
        "A job whose program fails, by a status or a signal, is moved to failed/ with a reason.",
        &["QUE-WORK-11", "QUE-WORK-10", "QUE-WORK-12"],
        |talk| {
            talk.put_plain();
            for end in [ActorStep::Exit(1), ActorStep::Exit(255), ActorStep::Die(9), ActorStep::Die(15)] {
                let job = talk.draft().plays(vec![end]);
                talk.put(&job);
            }
            talk.run_all();
        },
    ),
    (
        "life/none-held-up",
        "After malformed or failed jobs, all others are taken.",
        &["QUE-WORK-14"],
        |talk| {
            let bad = talk.draft().named("a@.json");
            talk.put_as(&bad, Payload::text(format!("{{{}", bad.tag)));
            talk.may_fail();
            for end in FAILS {
                let job = talk.draft().named("b@.json").plays(vec![end]);
                talk.put(&job);
            }
            for _ in 0..6 {
                let job = talk.draft().named("c@.json");
                talk.put(&job);
            }
            talk.run_all();
            // And jobs that arrive after the failure.
            talk.run_one_more();
        },
    ),
    ("life/members", "Members that the contract does not name change nothing.", &["QUE-JOB-01"], |talk| {
        let job = talk.draft().with("peerproof_other", "{\"a\":[1,2.5e3,null]}").with("", "\"\\u0000\"");
        talk.put(&job);
        let least = talk.draft().with("request_id", "").with("peerproof_ü", "1");
        talk.put(&least);
        talk.run_all();
    }),
    ("life/loud", "A program that writes very much is not blocked.", &["QUE-WORK-23"], |talk| {
        for step in [
            ActorStep::Flood { unit: "loud\n".to_owned(), bytes_max: 2 << 20 },
            ActorStep::Stderr(Payload::default().repeat("loud\n", 400_000)),
        ] {
            let job = talk.draft().plays(vec![step]);
            talk.put(&job);
        }
        talk.run_all();
    }),
    (
        "life/stdin",
        "A program whose path contains a blank gets the file of its job and an empty standard input.",
        &["QUE-WORK-20", "QUE-WORK-21"],
        |talk| at_stdin(talk.run_behind_a_blank()),
    ),
    (
        "driver/stdin",
        "Without a runner the standard input of the policy driver is empty.",
        &["QUE-WORK-22"],
        at_stdin,
    ),
    (
        "driver/runs",
        "Without a runner a job is a run whose driver MACHINA_POLICY_CMD names.",
        &["QUE-WORK-24"],
        |talk| {
            for ms in [0, 30] {
                let job = talk.draft().plays(sleep(ms));
                talk.put(&job);
            }
            talk.run_all();
        },
    ),
    (
        "names/plain",
        "Names in UTF-8 of up to 100 bytes, with any characters, are run.",
        &["QUE-JOB-08", "QUE-WORK-05"],
        |talk| {
            let long = format!("@{}.json", "n".repeat(90));
            for name in [
                "a b @.json",
                "-@.json",
                "--help@.json",
                "é日本@.json",
                "'@\".json",
                "$(id)@.json",
                "@;echo`.json",
                "*?[@].json",
                "@.tar.json",
                "~@ .json",
                "@\\.json",
                "%s@%n.json",
                "@&|<>.json",
                &long,
            ] {
                let job = talk.draft().named(name);
                talk.put(&job);
            }
            talk.run_all();
        },
    ),
    (
        "names/odd",
        "Names with line feeds and of 255 bytes are run or failed, and never lost.",
        &["QUE-JOB-07"],
        |talk| {
            talk.put_plain();
            let long = format!("@{}.json", "n".repeat(255 - 5 - 5));
            for name in ["@\n.json", "@\n\nq.json", "@\t\u{1}\u{7f}.json", "@\r.json", &long] {
                let job = talk.draft().named(name);
                talk.put(&job);
            }
            talk.may_fail();
            talk.run_all();
        },
    ),
    ("names/not-utf8", "A name that is not UTF-8 is run, left or failed.", &["QUE-JOB-09"], |talk| {
        talk.put_plain();
        let job = talk.draft();
        let hex = Segment::Hex("ff80".to_owned());
        let tag = Payload::text(job.tag.clone());
        let name = tag.then(Payload(vec![hex])).then(Payload::text(".json"));
        left_or_run(talk, Draft { name, ..job });
    }),
    ("names/dot", "A name that begins with a dot is run, left or failed.", &["QUE-JOB-02"], |talk| {
        talk.put_plain();
        let job = talk.draft().named(".@.json");
        left_or_run(talk, job);
    }),
    ("names/upper-case", "A suffix in upper case is run, left or failed.", &["QUE-JOB-03"], |talk| {
        talk.put_plain();
        let job = talk.draft().named("@.JSON");
        left_or_run(talk, job);
    }),
    ("names/others", "Files with other names are not moved or changed.", &["QUE-JOB-05"], |talk| {
        for name in [
            "@.json.tmp",
            "@.json~",
            "@.txt",
            "@",
            "@.jsonl",
            "@.json.part",
            "json",
            ".@.tmp",
            "@json",
            "@.json\n",
            "@.json ",
            "@.jso",
            "@_json",
            "@.json\u{200b}",
            "@.ｊson",
        ] {
            let draft = talk.draft().named(name);
            let path = Payload::text(format!("{QUEUE}/inbox/")).then(draft.name.clone());
            talk.place(path.merged(), Payload::text(draft.text()));
        }
        talk.put_plain();
        talk.run_all();
        let after_ms = talk.limit(POLL_MS).max(NOTICE_MS);
        talk.look(REST, after_ms);
    }),
    (
        "malformed/no-json",
        "Text that is not strict JSON is moved to failed/ unchanged, and nothing is started.",
        &["QUE-JOB-13", "QUE-JOB-15", "QUE-JOB-16", "QUE-JOB-06", "QUE-WORK-12"],
        |talk| {
            talk.put_plain();
            for how in [
                "",
                "{",
                "@",
                "{'goal_id':'@'}",
                "{\"goal_id\":\"@\",}",
                "{\"goal_id\":\"@\"} x",
                "{\"goal_id\":\"@\"}}",
                "{\"goal_id\":\"@\"} {\"goal_id\":\"@\"}",
                "{\"goal_id\":\"@\",\"x\":NaN}",
                "{\"goal_id\":\"@\",\"x\":01}",
                "{\"goal_id\":\"@\" // c\n}",
                "{\"goal_id\":\"@\nx\"}",
                "{\"goal_id\":\"@\",\"inputs\":{}",
            ] {
                let job = talk.draft();
                talk.put_as(&job, Payload::text(how.replace('@', &job.tag)));
            }
            // Invalid UTF-8: an impossible byte, a lone surrogate, an overlong NUL, a character beyond the last.
            for hex in ["ff", "eda080", "c080", "f4908080"] {
                let job = talk.draft();
                let head = Payload::text(format!("{{\"goal_id\":\"{}", job.tag));
                let bytes = Payload(vec![Segment::Hex(hex.to_owned())]);
                talk.put_as(&job, head.then(bytes).then(Payload::text("\"}")));
            }
            talk.may_fail();
            talk.run_all();
        },
    ),
    (
        "malformed/members",
        "A job without a goal, or with inputs that are not an object, is moved to failed/ unchanged, and \
         nothing is started.",
        &["QUE-JOB-14", "QUE-JOB-15", "QUE-JOB-16", "QUE-WORK-12"],
        |talk| {
            talk.put_plain();
            for how in ["[\"@\"]", "\"@\"", "null  ", "17", "true"] {
                let job = talk.draft();
                talk.put_as(&job, Payload::text(how.replace('@', &job.tag)));
            }
            // A job within an array, an object or a string.
            let around: [fn(&str) -> String; 4] = [
                |job| format!("[{job}]"),
                |job| format!("[{job},{job}]"),
                |job| format!("{{\"job\":{job}}}"),
                |job| Json::from(job).to_text(),
            ];
            for around in around {
                let job = talk.draft();
                talk.put_as(&job, Payload::text(around(&job.text())));
            }
            for name in ["Goal_Id", "GOAL_ID", "goal_id ", "goal_i", "goal.goal_id"] {
                let job = talk.draft().with("goal_id", "").with(name, "\"g\"");
                talk.put(&job);
            }
            for (name, value) in [
                ("goal_id", ""),
                ("goal_id", "\"\""),
                ("goal_id", "7"),
                ("goal_id", "null"),
                ("goal_id", "[\"g\"]"),
                ("goal_id", "true"),
                ("goal_id", "{\"goal_id\":\"g\"}"),
                ("inputs", "[]"),
                ("inputs", "[{}]"),
                ("inputs", "\"{}\""),
                ("inputs", "7"),
                ("inputs", "null"),
            ] {
                let job = talk.draft().with(name, value);
                talk.put(&job);
            }
            talk.may_fail();
            talk.run_all();
        },
    ),
    ("malformed/goes-on", "After a malformed job the worker keeps running.", &["QUE-JOB-17"], |talk| {
        let bad = talk.draft().named("a@.json");
        talk.put_as(&bad, Payload::text(format!("{{\"{}", bad.tag)));
        let plain = talk.draft().named("b@.json");
        talk.put(&plain);
        talk.may_fail();
        talk.run_all();
        talk.run_one_more();
    }),
    ("sizes/up-to-10-mb", "Jobs of 1 MB and of 10 MB are run.", &["QUE-JOB-20"], |talk| {
        talk.put_plain();
        for bytes in [(1 << 20) + 1, BYTES_MAX - 1, BYTES_MAX] {
            let job = talk.draft();
            let content = job.padded(bytes);
            talk.put_as(&job, content);
        }
        talk.run_all();
    }),
    (
        "sizes/over-10-mb",
        "A job of more than 10 MB is moved to failed/, and costs little memory.",
        &["QUE-JOB-18", "QUE-JOB-19"],
        |talk| {
            talk.put_plain();
            let session = talk.run_all();
            talk.step(session, memory::sample(memory::IDLE));
            for bytes in [BYTES_MAX + 1, 12 * BYTES_MAX] {
                let job = talk.draft();
                let content = job.padded(bytes);
                talk.put_as(&job, content);
            }
            talk.may_fail();
            talk.wait_for_ends_within(4_000);
            talk.step(session, memory::sample("after"));
            talk.look_at_rest();
        },
    ),
    ("sizes/nested", "A job nested up to 64 levels is run.", &["QUE-JOB-21"], |talk| {
        for levels in [30, DEPTH_MAX - 1] {
            let job = talk.draft().with("peerproof_nested", &arrays(levels));
            talk.put(&job);
        }
        talk.run_all();
    }),
    (
        "sizes/very-deep",
        "Very deeply nested files, jobs or not, complete or cut, are run or failed, and the worker keeps \
         running.",
        &["QUE-JOB-28", "QUE-JOB-17"],
        |talk| {
            let job = talk.draft().named("a@.json").with("peerproof_nested", &arrays(VERY_DEEP));
            talk.put(&job);
            for text in [arrays(VERY_DEEP), arrays(VERY_DEEP)[..VERY_DEEP].to_owned()] {
                let bad = talk.draft().named("a@.json");
                talk.put_as(&bad, Payload::text(format!("[\"{}\",{text}]", bad.tag)));
            }
            talk.may_fail();
            let plain = talk.draft().named("b@.json");
            talk.put(&plain);
            talk.run_all();
            talk.run_one_more();
        },
    ),
    ("names/bar", "A `goal_id` that contains `|` is accepted or refused.", &["QUE-JOB-24"], |talk| {
        talk.put_plain();
        let job = talk.draft();
        let job = job.clone().with("goal_id", &format!("\"goal|{}\"", job.tag));
        talk.put(&job);
        talk.may_fail();
        talk.run_all();
    }),
    (
        "collision/done",
        "A job whose name exists in done/, failed/ or processing/ replaces no file.",
        &["QUE-WORK-13"],
        |talk| {
            let [done, failed] = [vec![], vec![FAILS[0].clone()]].map(|play| {
                let job = talk.draft().plays(play);
                talk.put(&job);
                job
            });
            for folder in ["done", "failed"] {
                for job in [&done, &failed] {
                    let path = Payload::text(format!("{QUEUE}/{folder}/")).then(job.name.clone());
                    let own = format!("{{\"goal_id\":\"earlier {folder} {}\"}}", job.tag);
                    talk.place(path.merged(), Payload::text(own));
                }
            }
            talk.run_all();
        },
    ),
    (
        "collision/twice",
        "Two jobs with one name are both run, one after the other, and the reason of the first stays.",
        &["QUE-WORK-13"],
        |talk| {
            let first = talk.draft().plays(vec![FAILS[0].clone()]);
            let good = talk.draft();
            talk.put(&first);
            talk.put(&good);
            talk.run_all();
            // The first failed job goes, but its reason file stays.
            let from = Payload::text(format!("{QUEUE}/failed/")).then(first.name.clone()).merged();
            talk.step(0, Act::Move { from, to: Payload::text("taken-away") });
            let [again, good_again] = [&first, &good].map(|before| {
                let draft = talk.draft();
                // It fails in another way, so that its reason differs.
                let fails = !before.play.is_empty();
                let play = if fails { vec![ActorStep::Exit(77)] } else { Vec::new() };
                Draft { name: before.name.clone(), play, ..draft }
            });
            for job in [&again, &good_again] {
                talk.put_unseen(job, Payload::text(job.text()));
            }
            talk.wait_for_ends();
            talk.look(super::LATER, REASON_MS);
        },
    ),
    (
        "idle/start",
        "A job that is enqueued while the worker is idle starts in time.",
        &["QUE-WORK-15", "QUE-WORK-17"],
        |talk| {
            talk.put_plain();
            talk.run_all();
            talk.look(BEACON, NOTICE_MS);
            talk.run_one_more();
        },
    ),
    ("idle/processor", "An idle worker takes little processor time.", &["QUE-WORK-16"], |talk| {
        talk.put_plain();
        let session = talk.run_all();
        idle(talk, session);
    }),
    ("idle/lives-on", "Neither an empty inbox nor a failed job ends the worker.", &["QUE-WORK-17"], |talk| {
        for play in [vec![], vec![FAILS[0].clone()], vec![]] {
            let job = talk.draft().plays(play);
            talk.put(&job);
        }
        talk.run_all();
        let later = talk.draft();
        talk.look(LIFE, NOTICE_MS);
        talk.put(&later);
        talk.wait_for_ends();
        talk.look_at_rest();
    }),
    (
        "idle/inbox-missing",
        "An inbox that is missing for a moment does not end the worker.",
        &["QUE-WORK-18"],
        |talk| {
            talk.put_plain();
            let session = talk.run_all();
            let inbox = || Payload::text(format!("{QUEUE}/inbox"));
            talk.step(session, Act::Move { from: inbox(), to: Payload::text("aside") });
            talk.look(NO_INBOX, NOTICE_MS);
            talk.step(session, Act::Move { from: Payload::text("aside"), to: inbox() });
            let later = talk.draft();
            talk.put(&later);
            talk.wait_for_ends_within(2_000);
            talk.look_at_rest();
        },
    ),
    ("idle/folders", "A worker creates missing folders.", &["QUE-WORK-19"], |talk| {
        talk.plan.fixtures[0] =
            Fixture::Folder { name: QUEUE.to_owned(), folders: Vec::new(), watched: true };
        talk.start();
        talk.wait(AwaitedEffect::Path { folder: QUEUE.to_owned(), glob: "inbox".to_owned() }, START_MS);
        let globs = FOLDERS.map(str::to_owned).to_vec();
        talk.wait(AwaitedEffect::Each { folder: QUEUE.to_owned(), globs }, SETTLE_MS);
        talk.look(MADE, 0);
        talk.put_plain();
        let ready = AwaitedEffect::Starts { actor: RUNNER.to_owned(), start: 0 };
        talk.wait(ready, SIGN_MS);
        talk.wait_for_ends();
        talk.look_at_rest();
    }),
    ("dead/by-hand", "A job file that was put into processing/ is taken up.", &["QUE-ONCE-05"], |talk| {
        talk.put_plain();
        let job = talk.draft();
        let path = Payload::text(format!("{QUEUE}/processing/")).then(job.name.clone());
        talk.place(path.merged(), Payload::text(job.text()));
        talk.look_before();
        talk.start();
        talk.wait_ready();
        talk.expect_run(&job, false);
        talk.expect_end(&job);
        let recover_ms = talk.limit(RECOVER_MS);
        talk.wait_for_ends_within(recover_ms);
        talk.look_at_rest();
    }),
    (
        "dead/same-name",
        "A job of a dead worker and a new job with the same name are both kept.",
        &["QUE-ONCE-04"],
        |talk| {
            let first = same_name_in_flight(talk);
            talk.kill(first);
            talk.start();
            let recover_ms = talk.limit(RECOVER_MS);
            talk.wait_for_ends_within(recover_ms);
            // The name does not show which of them was moved.
            let after_ms = talk.limit(POLL_MS) + NOTICE_MS;
            talk.look(REST, after_ms);
        },
    ),
    ("several/together", "Three workers on one queue start each job once.", &["QUE-LIVE-01"], |talk| {
        for _ in 0..24 {
            let job = talk.draft().plays(sleep(10));
            talk.put(&job);
        }
        let sessions = [talk.start(), talk.start(), talk.start()];
        talk.wait_ready();
        talk.wait_for_ends();
        talk.look_at_rest();
        for session in &sessions[..2] {
            talk.kill(*session);
        }
    }),
    ("several/second", "A second worker shares the queue, or refuses to start.", &["QUE-LIVE-04"], |talk| {
        let held = talk.draft().plays(sleep(LONG_MS));
        talk.put(&held);
        let first = talk.start();
        talk.wait_for(&held, false, START_MS);
        let second = talk.start();
        let others: Vec<Draft> = (0..4).map(|_| talk.draft().plays(sleep(LONG_MS / 3))).collect();
        others.iter().for_each(|job| talk.put(job));
        talk.wait_for_ends();
        talk.look_at_rest();
        // The second worker, if it is there, does this job alone.
        talk.kill(first);
        talk.put_plain();
        talk.wait_for_ends();
        talk.look_at_rest();
        talk.kill(second);
    }),
    ("term/idle", "An idle worker ends within 2 s of SIGTERM.", &["QUE-TERM-01", "QUE-WORK-31"], |talk| {
        talk.put_plain();
        let session = talk.run_all();
        talk.step(session, Act::Signal("TERM".to_owned()));
        talk.look_at_rest();
    }),
    (
        "term/in-flight",
        "At SIGTERM a job in flight is finished or returned, no job is lost, and no other job is started.",
        &["QUE-TERM-03", "QUE-TERM-04", "QUE-TERM-05", "QUE-TERM-06", "QUE-TERM-07"],
        in_flight,
    ),
    (
        "term/same-name",
        "A job in flight at SIGTERM and a new job with the same name are both kept.",
        &["QUE-TERM-03"],
        |talk| {
            let session = same_name_in_flight(talk);
            talk.step(session, Act::Signal("TERM".to_owned())).allow_ms = LONG_MS;
            talk.look(REST, 50);
        },
    ),
    ("term/choice", "A job in flight at SIGTERM is finished or returned.", &["QUE-TERM-02"], in_flight),
];

/// Starts a second worker while the first has a job for longer than the time after which workers count as dead.
fn later() -> Check {
    let id = "run_queue/worker/several/later";
    let title = "A worker that starts does not touch the jobs of a living worker, however long they take.";
    let planner = |facts: &_, _: &mut _| {
        let mut talk = Talk::new(facts, WORKER, "QUE-LIVE-02");
        let recover_ms = talk.limit(RECOVER_MS);
        // Jobs must take less than 15 s, and less than 3 times `recover_ms`.
        let ms = (3 * recover_ms).min(15_000).saturating_sub(JOB_SLACK_MS);
        if ms < recover_ms + 2 * JOB_SLACK_MS {
            return Err(Untestable::new(
                "recover_ms",
                format!("the limit recover_ms = {recover_ms} also bounds the time of a running job"),
            ));
        }
        let held = talk.draft().plays(sleep(ms));
        talk.put(&held);
        let first = talk.start();
        talk.wait_for(&held, false, START_MS);
        let other = talk.draft();
        talk.put(&other);
        talk.start();
        talk.wait_for_ends();
        talk.look_at_rest();
        talk.kill(first);
        Ok(talk.done())
    };
    Check::new(id, title, ["QUE-LIVE-02"], WORKER, planner).vouched().on_process().waits()
}

/// Distance of a job's duration from its upper limit, ms.
const JOB_SLACK_MS: u64 = 300;

/// Measures the processor time of an idle worker.
fn idle(talk: &mut Talk, session: usize) {
    talk.step(session, Act::SampleProcessor { label: IDLE.to_owned() });
    talk.step(session, Act::Wait { ms: IDLE_MS });
    talk.step(session, Act::SampleProcessor { label: IDLE.to_owned() });
}

fn at_stdin(talk: &mut Talk) {
    let job = talk.draft().plays(looks_at_stdin());
    talk.put(&job);
    talk.run_all();
}

fn canary(talk: &mut Talk) {
    talk.put_plain();
    talk.plan.steps[0].canary = true;
    talk.run_all();
}

/// Puts a job that need not be taken, and looks once a worker would have taken it.
fn left_or_run(talk: &mut Talk, job: Draft) {
    let path = Payload::text(format!("{QUEUE}/inbox/")).then(job.name.clone());
    talk.place(path.merged(), Payload::text(job.text()));
    talk.may_fail();
    talk.start();
    talk.wait_ready();
    talk.wait_for_ends();
    let after_ms = talk.limit(POLL_MS) + NOTICE_MS;
    talk.look(REST, after_ms + REASON_MS);
}

/// Starts a worker, and puts a second job of the same name while the first is in flight.
fn same_name_in_flight(talk: &mut Talk) -> usize {
    let held = talk.draft().plays(sleep(LONG_MS));
    talk.put(&held);
    let session = talk.start();
    talk.wait_for(&held, false, START_MS);
    let namesake = Draft { name: held.name, ..talk.draft() };
    talk.put_unseen(&namesake, Payload::text(namesake.text()));
    session
}

fn in_flight(talk: &mut Talk) {
    for _ in 0..3 {
        let job = talk.draft().plays(sleep(1_500));
        talk.put(&job);
    }
    talk.look_before();
    let session = talk.worker();
    // Any of the jobs may be first. A job that has not run for sure could not be distinguished from a left one.
    let what =
        AwaitedEffect::Performs { actor: RUNNER.to_owned(), holds: "\"job\"".to_owned(), ended: false };
    let signal = "TERM".to_owned();
    talk.step(session, Act::SignalWhen { signal, what, within_ms: START_MS }).allow_ms = 1_700;
    talk.look(REST, 50);
}
