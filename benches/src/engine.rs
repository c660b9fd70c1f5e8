//! Conversations through the whole engine: lab, transcript, judge.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use peerproof::table;
use peerproof_engine::contract::boundary::{self, Boundary};
use peerproof_engine::data::budget::Budget;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::plan::Plan;
use peerproof_engine::drive::fixture::ActorExe;
use peerproof_engine::drive::lab::Lab;
use peerproof_engine::drive::peer::{Origin, Peer};
use peerproof_engine::run::fuzz::{self, Corpus, FuzzSettings, Status};
use peerproof_played::toolhost as played;
use peerproof_toolhost::expect::Expect;
use peerproof_toolhost::full_facts;
use peerproof_toolhost::talk::{Request, Talk};

use crate::error::FigureError;

/// Reference toolhost as a peer under test, with its lab.
pub struct Engine {
    peer: Peer,
    actor_exe: ActorExe,
    scratch: tempfile::TempDir,
}

impl Engine {
    /// Reference in child processes started by `command`, or in this process if that is empty.
    ///
    /// # Errors
    /// Fails without a temporary folder or a boundary of that name.
    pub fn new(command: &[OsString]) -> Result<Self, FigureError> {
        let boundary: &'static dyn Boundary =
            table::find("toolhost").ok_or_else(|| FigureError::Unfit("no such boundary".to_owned()))?;
        let origin = match command.is_empty() {
            true => Origin::InProcess(Arc::new(played::machine)),
            false => Origin::Process { base_env: Vec::new(), current_dir: None, cpus: Vec::new() },
        };
        let serve = match command.is_empty() {
            true => vec!["--serve".to_owned()],
            false => command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        };
        let peer = Peer {
            name: "reference".to_owned(),
            boundary,
            commands: BTreeMap::from([("serve".to_owned(), serve)]),
            env: Vec::new(),
            facts: full_facts::facts(Side::Provider),
            features_given: true,
            origin,
            pace: Arc::default(),
        };
        let scratch = tempfile::tempdir()?;
        let program: PathBuf = std::env::current_exe()?;
        Ok(Self { peer, actor_exe: ActorExe::new(program), scratch })
    }

    fn lab(&self) -> Lab<'_> {
        let scratch: &Path = self.scratch.path();
        Lab {
            peer: &self.peer,
            budget: Budget::default(),
            actor_exe: &self.actor_exe,
            scratch,
            timeout_scale: 1.0,
        }
    }

    /// Plan of `exchanges` small requests, each answered before the next.
    pub fn ping_pong(&self, exchanges: u32) -> Arc<Plan> {
        let mut talk = Talk::serve(&self.peer.facts);
        for _ in 0..exchanges {
            let request = Request::aid("AID.PEERPROOF.ECHO.v1").input("{\"x\":\"abcd\"}");
            talk.send(request.line(), Expect::output("TH-REPLY-01", "{\"x\":\"abcd\"}"));
        }
        Arc::new(talk.finish().plan())
    }

    /// Runs and judges `plan`.
    ///
    /// # Errors
    /// Fails for a fault of the harness or a finding.
    pub fn check(&self, plan: &Arc<Plan>) -> Result<(), FigureError> {
        let transcript = self.lab().execute_shared("bench", plan)?;
        let judgement = boundary::judge(self.peer.boundary, &transcript);
        match judgement.findings.first() {
            Some(finding) => Err(FigureError::Unfit(format!("{}: {}", finding.clause, finding.got))),
            None => Ok(()),
        }
    }

    /// Fuzzes with `jobs` workers for `time`.
    pub fn fuzz(&self, time: Duration, rng_seed: u64, jobs: usize) -> Status {
        let settings = FuzzSettings {
            time,
            conversations_max: None,
            rng_seed,
            jobs,
            shrink: Duration::ZERO,
            played: None,
        };
        fuzz::run(&self.lab(), &Corpus::default(), &settings, &|| false, &|_| {}).status
    }
}
