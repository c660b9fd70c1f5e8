//! What is done around a policy driver: its payload, its process and its end.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::tree::{Bystanders, kill_all};
use crate::io::payload_file::PayloadFile;

/// The ways of a selector with its drivers; what is provided is right.
pub(in crate::io) trait Handling {
    /// Writes a payload to a file of its own in `folder`.
    fn write(&self, folder: &str, payload: &[u8]) -> io::Result<PayloadFile> {
        PayloadFile::create(folder, payload)
    }

    /// Puts the path of the payload to the arguments of a driver.
    fn arguments(&self, argv: Vec<String>, payload: &Path) -> Vec<OsString> {
        argv.into_iter().map(OsString::from).chain([payload.into()]).collect()
    }

    /// What a driver with this payload gets as its standard input.
    fn stdin(&self, _payload: &Path) -> Stdio {
        Stdio::null()
    }

    /// Ends a driver and all that it started; `wait` waits for the end of any child, at most the given time.
    fn kill(&self, child: &mut Child, bystanders: &Bystanders, wait: &mut dyn FnMut(Duration)) {
        kill_all(child, bystanders, wait);
    }

    /// Does away with a payload whose driver has ended.
    fn remove(&self, payload: PayloadFile) {
        drop(payload);
    }

    /// Signals that ask this process to end.
    fn signals(&self) -> &'static [i32] {
        &[SIGTERM, SIGINT, SIGHUP]
    }
}

/// The right ways.
#[derive(Debug, Clone, Copy)]
pub(in crate::io) struct Careful;

impl Handling for Careful {}
