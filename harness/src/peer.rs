//! Peers under test: how to start one, as a child process or in this process.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use peerproof_reference::machine::Machine;

use crate::boundary::Boundary;
use crate::budget::Budget;
use crate::facts::Facts;
use crate::fixture::spawn_guard;
use crate::plan::Session;
use crate::transport::child::{ChildConnection, ChildSpec};
use crate::transport::in_process::InProcessConnection;
use crate::transport::{Connection, Log};

/// Makes an in-process peer from arguments and environment.
pub type MakeMachine = Arc<dyn Fn(&[String], &[(String, String)]) -> Option<Box<dyn Machine>> + Send + Sync>;

/// How the processes of a peer come to be.
#[derive(Clone)]
pub enum Origin {
    /// Child processes.
    Process {
        /// Environment that every child gets before the configured one: `PATH`, `HOME`.
        base_env: Vec<(String, OsString)>,
        /// Working directory.
        current_dir: Option<PathBuf>,
        /// Processors that children may run on; empty: those of the harness.
        cpus: Vec<usize>,
    },
    /// Machines in this process, with a virtual clock.
    InProcess(MakeMachine),
}

/// A peer under test.
#[derive(Clone)]
pub struct Peer {
    /// Name for reports.
    pub name: String,
    /// Its boundary.
    pub boundary: &'static dyn Boundary,
    /// Command lines by name; `{placeholder}`s are filled in for each session.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Configured environment.
    pub env: Vec<(String, String)>,
    /// What is known about it.
    pub facts: Facts,
    /// Whether the configuration says which features it claims.
    pub features_given: bool,
    /// Process or machine.
    pub origin: Origin,
    /// Slowest answer to a first request seen so far, microseconds; waits are measured by it.
    pub latency_us: Arc<AtomicU64>,
}

impl Peer {
    /// Whether its sessions are real processes.
    pub fn is_process(&self) -> bool {
        matches!(self.origin, Origin::Process { .. })
    }

    /// Remembers how long a first answer took.
    pub fn saw_latency_us(&self, us: u64) {
        self.latency_us.fetch_max(us, Ordering::Relaxed);
    }

    /// The command line and the environment of one session.
    ///
    /// # Errors
    /// One sentence: no such command, or a placeholder without a value.
    pub fn command_line(&self, session: &Session) -> Result<Vec<String>, String> {
        let template = self
            .commands
            .get(&session.command)
            .ok_or_else(|| format!("the peer has no command {:?}", session.command))?;
        let mut argv = Vec::with_capacity(template.len() + 1);
        for part in template {
            argv.push(fill(part, &session.placeholders)?);
        }
        Ok(argv)
    }

    /// How the process of one session is started. `temp_dir` becomes its `TMPDIR` and is watched.
    ///
    /// # Errors
    /// One sentence: no such command, a placeholder without a value, or a peer that is no process.
    pub fn child_spec(&self, session: &Session, temp_dir: &Path) -> Result<ChildSpec, String> {
        let Origin::Process { base_env, current_dir, cpus } = &self.origin else {
            return Err("this peer is no process".to_owned());
        };
        let mut env: Vec<(OsString, OsString)> =
            base_env.iter().map(|(name, value)| (name.into(), value.clone())).collect();
        for (name, value) in &self.env {
            env.push((name.into(), value.into()));
        }
        for (name, value) in &session.env {
            env.push((name.into(), value.into()));
        }
        let argv = self.command_line(session)?.into_iter().map(OsString::from).collect();
        let mut spec = ChildSpec::new(argv, temp_dir.to_owned(), marker());
        spec.env = env;
        spec.current_dir.clone_from(current_dir);
        spec.cpus.clone_from(cpus);
        Ok(spec)
    }

    /// Starts one session. `temp_dir` becomes its `TMPDIR` and is watched.
    ///
    /// # Errors
    /// One sentence that says why it could not be started.
    pub fn open(
        &self,
        session: &Session,
        temp_dir: &Path,
        budget: &Budget,
        log: &mut dyn Log,
    ) -> Result<Box<dyn Connection>, String> {
        match &self.origin {
            Origin::Process { .. } => {
                let spec = self.child_spec(session, temp_dir)?;
                let _guard = spawn_guard();
                let connection =
                    ChildConnection::spawn(&spec, budget, log).map_err(|error| error.to_string())?;
                Ok(Box::new(connection))
            }
            Origin::InProcess(make) => {
                let argv = self.command_line(session)?;
                let mut env = self.env.clone();
                env.extend(session.env.iter().map(|(name, value)| (name.clone(), value.clone())));
                let machine = make(&argv, &env).ok_or("this peer cannot be played in this process")?;
                Ok(Box::new(InProcessConnection::new(machine, budget)))
            }
        }
    }
}

/// A variable that no other peer of this or another harness has with this value.
fn marker() -> (String, String) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    ("PEERPROOF_PEER".to_owned(), format!("{}-{count}", std::process::id()))
}

/// Fills `{name}` from `values`; `{{` and `}}` are braces.
///
/// # Errors
/// Names the placeholder that has no value, or the brace that is never closed.
pub fn fill(template: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        if tail.starts_with("{{") || tail.starts_with("}}") {
            out.push_str(&tail[..1]);
            rest = &tail[2..];
        } else if let Some(body) = tail.strip_prefix('{') {
            let end =
                body.find('}').ok_or_else(|| format!("{template:?} has a brace that is never closed"))?;
            let name = &body[..end];
            let value = values
                .get(name)
                .ok_or_else(|| format!("the placeholder {{{name}}} in {template:?} has no value here"))?;
            out.push_str(value);
            rest = &body[end + 1..];
        } else {
            out.push('}');
            rest = &tail[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_placeholders_and_keeps_doubled_braces() {
        let values = BTreeMap::from([("aid".to_owned(), "AID.X".to_owned())]);
        assert_eq!(fill("--aid={aid}", &values).unwrap(), "--aid=AID.X");
        assert_eq!(fill("{{aid}}", &values).unwrap(), "{aid}");
        assert!(fill("{nope}", &values).unwrap_err().contains("nope"));
        assert!(fill("{aid", &values).is_err());
    }
}
