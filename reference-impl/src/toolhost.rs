//! The provider of the toolhost boundary: a process that runs tools for an agent (IPC §3–§7, contract §1).
//!
//! [`machine`] returns the pure peer. Its parts are replaceable: the tools, the idempotency cache, the lease table and
//! the state store ([`Components`]), the limits and choices ([`Config`]), and around them the events, the actions and
//! the clock of [`crate::machine::Machine`].
//!
//! A request goes through the codec → refusals → `ds_state` → tool → reply; the order is in `host.rs`. A refused
//! request changes nothing.

mod cache;
mod choices;
mod host;
mod http_get;
mod lease;
pub mod mutants;
mod reply;
mod request;
mod run;
mod serve;
mod state;
mod tool;
mod tools;
mod url;

pub use cache::{Cache, Entry, FixedCache, Key};
pub use choices::{
    BlankLine, Bom, Choices, CrashKind, DeltaInRun, EmptyToken, HostErrorExit, InputsMember, KeysGivenUp,
    LastLine, LoopbackHosts, NullMember, OddDelta, Redirects, RemovedInFull, SameKeyOtherInput,
    SetAndRemoved, SizeBytesWrong,
};
pub use http_get::{AllowedHosts, HttpGet};
pub use lease::{Grant, LeaseTable, MemoryLeases, Rejection};
pub use run::Run;
pub use serve::Serve;
pub use state::{Artifact, MemoryState, Slots, StateChange, StateStore};
pub(crate) use state::{SLOTS, write_full};
pub use tool::{
    Answer, Context, FetchRequest, Input, Output, Printed, Status, Step, Tool, ToolEntry, ToolResult,
    ToolTable,
};
pub use tools::table;
pub use url::{Url, UrlHost};

use crate::limits::Limits;
use crate::machine::Machine;

/// Start mode of a toolhost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// `--run <plugin> <aid>`: one request on all of standard input.
    Run {
        /// Tool to run.
        aid: String,
    },
    /// `--serve <plugin>`: one request per line.
    Serve,
}

impl Mode {
    /// Exit status after SIGTERM: 0 if all replies are written; in run mode 143, as shells show it, because the reply
    /// is missing.
    pub fn status_terminated(&self) -> i32 {
        match self {
            Self::Run { .. } => 143,
            Self::Serve => 0,
        }
    }
}

/// Configuration of a toolhost.
#[derive(Debug, Clone)]
pub struct Config {
    /// Start mode.
    pub mode: Mode,
    /// Chosen behaviour for each open clause.
    pub choices: Choices,
    /// Limits in force.
    pub limits: Limits,
    /// True to require leases for tools of tier 1 and above (`MACHINA_LEASE_ENFORCE=1`), in run mode only if so
    /// configured.
    pub lease_enforce: bool,
    /// Value of `MACHINA_HTTP_ALLOWED_HOSTS`, if set.
    pub http_allowed_hosts: Option<String>,
    /// Seed of lease tokens; random in a real peer.
    pub token_seed: [u8; 32],
}

impl Config {
    /// Creates a configuration with the contract's limits, default choices and no leases. Its tokens are predictable.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            choices: Choices::default(),
            limits: Limits::default(),
            lease_enforce: false,
            http_allowed_hosts: None,
            token_seed: [0; 32],
        }
    }

    /// Sets [`Config::lease_enforce`] from the value of `MACHINA_LEASE_ENFORCE`: `1` enforces, `0` and `true` only by
    /// the choices. The choices must be set before.
    pub fn read_lease_enforce(&mut self, value: Option<&str>) {
        self.lease_enforce = match value {
            Some("1") => true,
            Some("0") => self.choices.lease_enforce_0,
            Some("true") => self.choices.lease_enforce_true,
            _ => false,
        };
    }
}

/// Replaceable parts of a toolhost.
pub struct Components {
    /// Tools.
    pub tools: ToolTable,
    /// First results of keyed requests.
    pub cache: Box<dyn Cache>,
    /// Issued leases.
    pub leases: Box<dyn LeaseTable>,
    /// DSState.
    pub state: Box<dyn StateStore>,
}

impl Components {
    /// Creates the correct parts.
    pub fn new(config: &Config) -> Self {
        let Limits { idempotency_entries_max, idempotency_ttl_ms, lease_entries_max, .. } = config.limits;
        Self {
            tools: table(config.http_allowed_hosts.as_deref()),
            cache: Box::new(
                FixedCache::new(idempotency_entries_max, idempotency_ttl_ms)
                    .giving_up(config.choices.keys_given_up),
            ),
            leases: Box::new(MemoryLeases::new(lease_entries_max, config.token_seed)),
            state: Box::new(MemoryState::default()),
        }
    }
}

/// The correct toolhost.
pub fn machine(config: Config) -> Box<dyn Machine + Send> {
    let components = Components::new(&config);
    machine_with(config, components)
}

/// Toolhost made of `components`.
pub fn machine_with(config: Config, components: Components) -> Box<dyn Machine + Send> {
    match config.mode {
        Mode::Run { .. } => Box::new(Run::new(config, components)),
        Mode::Serve => Box::new(Serve::new(config, components)),
    }
}
