//! Conversations with shell peers, and actors played by this test binary.

use std::fs::{self, OpenOptions, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use crate::data::plan::Fixture;
use crate::drive::fixture::actor::run_actor;
use crate::drive::fixture::no_births;

/// Name of the test that plays an actor if the arguments of this process contain it.
const ACTOR_TEST: &str = "drive::lab::tests::stage::plays_an_actor_where_it_is_started_as_one";

/// Runs `steps` with shell peers, one per session. `$ROOT` is the folder of the fixtures.
pub(crate) fn carry_out(script: &str, fixtures: Vec<Fixture>, steps: Vec<Step>) -> Transcript {
    let peer = sh(script);
    let sessions = steps.iter().map(|step| step.session).max().unwrap_or(0) + 1;
    let session = Session {
        command: "command".to_owned(),
        env: BTreeMap::from([("ROOT".to_owned(), "{{folder}}".to_owned())]),
        ..Session::default()
    };
    let plan = Plan { sessions: vec![session; sessions], fixtures, steps, ..Plan::default() };
    let scratch = tempfile::tempdir().unwrap();
    let lab = Lab {
        peer: &peer,
        budget: Budget::default(),
        actor_exe: &actor_exe(scratch.path()),
        scratch: scratch.path(),
        timeout_scale: 1.0,
    };
    let transcript = lab.execute("stage", &plan).unwrap();
    let mut stored = Vec::new();
    transcript.store(&mut stored).unwrap();
    assert_eq!(Transcript::load(stored.as_slice()).unwrap().events, transcript.events, "it survives storage");
    transcript
}

/// Selected events of a transcript.
pub(super) fn those<T>(transcript: &Transcript, wanted: impl Fn(&EventKind) -> Option<T>) -> Vec<T> {
    transcript.events.iter().filter_map(|event| wanted(&event.kind)).collect()
}

/// Program that runs this test binary as an actor, with the test runner's own output discarded.
fn actor_exe(folder: &Path) -> ActorExe {
    let path = folder.join("plays-actors");
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nshift\nexec 3>&1 >/dev/null\nexec '{}' --exact --nocapture -- {ACTOR_TEST} \"$@\"\n",
        exe.display()
    );
    let _guard = no_births();
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    ActorExe::new(path)
}

#[test]
fn plays_an_actor_where_it_is_started_as_one() {
    let mut args = std::env::args().skip_while(|arg| arg != ACTOR_TEST).skip(1);
    let Some(scenario) = args.next() else { return };
    let stdout = OpenOptions::new().write(true).open("/dev/fd/3").unwrap();
    rustix::stdio::dup2_stdout(stdout).unwrap();
    std::process::exit(run_actor(Path::new(&scenario), &args.collect::<Vec<String>>(), &|_, _| None));
}
