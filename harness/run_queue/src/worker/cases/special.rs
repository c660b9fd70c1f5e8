//! Checks of entries with job names that are not readable files.

use std::os::unix::fs::MetadataExt as _;

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::plan::PathKind;

use super::*;
use crate::worker::{TARGET, TREATED};

pub(super) const SPECIALS: &[Row] = &[
    (
        "special/link",
        "A link with the name of a job is run, left or failed, and its target is unchanged.",
        &["QUE-JOB-10", "QUE-JOB-11"],
        |talk| {
            let target = talk.draft();
            let content = Payload::text(target.text());
            let name = "target".to_owned();
            talk.plan.fixtures.push(Fixture::File { name, content, mode: None, kept: false });
            special(talk, "link", PathKind::Link { to: "{{target.path}}".to_owned() });
            treated(talk);
            let act = Act::Look { label: TARGET.to_owned(), path: Payload::text("target"), after_ms: 0 };
            talk.step(0, act);
        },
    ),
    (
        "special/folder-fifo-socket",
        "A folder, a FIFO and a socket with the name of a job are run, left or failed.",
        &["QUE-JOB-22"],
        |talk| {
            special(talk, "folder", PathKind::Directory);
            special(talk, "fifo", PathKind::Fifo);
            special(talk, "socket", PathKind::Socket);
            treated(talk);
        },
    ),
    (
        "special/goes-on",
        "A folder, FIFO, socket or link with the name of a job does not block the worker, end it, or make \
         it spin.",
        &["QUE-JOB-12"],
        |talk| {
            for (name, what) in [
                ("fifo", PathKind::Fifo),
                ("folder", PathKind::Directory),
                ("socket", PathKind::Socket),
                ("dangling", PathKind::Link { to: "nowhere".to_owned() }),
                ("loop", PathKind::Link { to: "aa-loop.json".to_owned() }),
            ] {
                special(talk, name, what);
            }
            talk.put_plain();
            let session = talk.run_all();
            talk.run_one_more();
            idle(talk, session);
        },
    ),
];

/// Check of an unreadable file. Untestable for a superuser.
pub(super) fn unreadable() -> Check {
    let id = "run_queue/worker/special/unreadable";
    let title = "A file that cannot be read is run, left or failed.";
    let planner = |facts: &_, _: &mut _| {
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
        if is_root {
            return Err(Untestable::new("superuser", "this user can read every file"));
        }
        let mut talk = Talk::new(facts, WORKER, "QUE-JOB-23");
        let (plain, job) = (talk.draft(), talk.draft());
        let (content, name) = (Payload::text(job.text()), "unreadable".to_owned());
        talk.plan.fixtures.push(Fixture::File { name: name.clone(), content, mode: Some(0), kept: false });
        let to = Payload::text(format!("{QUEUE}/inbox/aa-unreadable.json"));
        talk.step(0, Act::Move { from: Payload::text(name), to });
        put_and_look(&mut talk, &plain);
        Ok(talk.done())
    };
    Check::new(id, title, ["QUE-JOB-23"], WORKER, planner).vouched().on_process().waits()
}

/// Moves an entry that is not a file into the inbox, under a job name that sorts before all others.
fn special(talk: &mut Talk, name: &str, what: PathKind) {
    let fixture = format!("special-{name}");
    talk.plan.fixtures.push(Fixture::Path { name: fixture.clone(), what });
    let to = Payload::text(format!("{QUEUE}/inbox/aa-{name}.json"));
    talk.step(0, Act::Move { from: Payload::text(fixture), to });
}

/// Runs a plain job beside the earlier entries, and looks at these.
fn treated(talk: &mut Talk) {
    let plain = talk.draft();
    put_and_look(talk, &plain);
}

fn put_and_look(talk: &mut Talk, plain: &Draft) {
    talk.put(plain);
    talk.may_fail();
    talk.run_all();
    let after_ms = talk.limit(POLL_MS) + NOTICE_MS;
    talk.look(TREATED, after_ms);
}
