//! Paths without a usable toolhost.

use peerproof_engine::data::check::Check;
use peerproof_engine::data::plan::PathKind;

use super::super::super::dispatcher::call::{Call, Talk};
use super::super::super::dispatcher::expect::{Allowed, Expect};
use super::check;

pub(super) fn checks() -> Vec<Check> {
    vec![
        check(
            "start/missing",
            "A toolhost path that does not exist gives not_found.",
            &["TH-DISP-22"],
            |talk, _| {
                let path = talk.obstacle(PathKind::Missing);
                not_started(talk, "TH-DISP-22", &path, &["not_found"]);
            },
        ),
        check(
            "start/missing-folder",
            "A toolhost path in a folder that does not exist gives not_found.",
            &["TH-DISP-22"],
            |talk, _| {
                let path = talk.obstacle(PathKind::Missing) + "/bin/toolhost";
                not_started(talk, "TH-DISP-22", &path, &["not_found"]);
            },
        ),
        check(
            "start/directory",
            "A directory as toolhost gives not_found or exception.",
            &["TH-DISP-23"],
            |talk, _| {
                let path = talk.obstacle(PathKind::Directory);
                not_started(talk, "TH-DISP-23", &path, &["not_found", "exception"]);
            },
        ),
        check(
            "start/no-run-bit",
            "A file without execute permission as toolhost gives not_found or exception.",
            &["TH-DISP-23"],
            |talk, _| {
                let path = talk.obstacle(PathKind::NotExecutable);
                not_started(talk, "TH-DISP-23", &path, &["not_found", "exception"]);
            },
        ),
    ]
}

fn not_started(talk: &mut Talk, clause: &str, path: &str, types: &[&str]) {
    let call = Call::plain();
    let mut kinds = types.iter();
    let first = kinds.next().map_or_else(|| Allowed::error(&[]), |kind| Allowed::error(&[kind]));
    let expect = kinds.fold(Expect::new(clause, first), |expect, kind| expect.or(Allowed::error(&[kind])));
    let expect = if types.len() > 1 { expect.choice("unrunnable_path", types) } else { expect };
    let session = talk.begin(&call, path, expect);
    talk.result(session, &call).finish(session);
}
