//! The surroundings of a policy driver: its payload, its process and its end.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::tree::{Bystanders, kill_all};
use crate::io::payload_file::PayloadFile;

/// Behaviour of a selector towards its drivers. The default methods are correct; mutants override them.
pub(in crate::io) trait Handling {
    /// Writes a payload to a new file in `folder`.
    fn write(&self, folder: &str, payload: &[u8]) -> io::Result<PayloadFile> {
        PayloadFile::create(folder, payload)
    }

    /// Appends the path of the payload to the arguments of a driver.
    fn arguments(&self, argv: Vec<String>, payload: &Path) -> Vec<OsString> {
        argv.into_iter().map(OsString::from).chain([payload.into()]).collect()
    }

    /// Standard input of a driver with this payload.
    fn stdin(&self, _payload: &Path) -> Stdio {
        Stdio::null()
    }

    /// Kills a driver and its descendants. `wait` waits for the end of any child, at most the given time.
    fn kill(&self, child: &mut Child, bystanders: &Bystanders, wait: &mut dyn FnMut(Duration)) {
        kill_all(child, bystanders, wait);
    }

    /// Removes the payload of an ended driver.
    fn remove(&self, payload: PayloadFile) {
        drop(payload);
    }

    /// Signals that end this process.
    fn signals(&self) -> &'static [i32] {
        &[SIGTERM, SIGINT, SIGHUP]
    }
}

/// The correct behaviour.
#[derive(Debug, Clone, Copy)]
pub(in crate::io) struct Careful;

impl Handling for Careful {}
