//! Writing a job into the inbox, and the tool for it.

use sha2::{Digest, Sha256};

use super::choices::SameRequestId;
use super::disk::{Fault, Kind, Op, Place, within};
use super::{Config, Parts};
use crate::json::{Text, Value};
use crate::refusal::Refusal;
use crate::toolhost::{Context, Input, Step, Tool, ToolResult};

/// Aid of the tool.
pub const AID: &str = "AID.QUEUE.ENQUEUE.v1";

/// Attempts with other names if one is in use.
const TRIES: u64 = 64;

/// Reason why a job was not stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is malformed.
    #[error(transparent)]
    Malformed(#[from] Refusal),
    /// A file operation failed.
    #[error("the queue cannot take it: {0}")]
    Disk(#[from] Fault),
}

/// Stores a job in the inbox and returns the name of its file. `put` counts the jobs of this process.
///
/// On return the file is flushed to disk. Its name is flushed too, unless the disk reports an error.
///
/// # Errors
/// Fails if the job is malformed or cannot be stored. No file with the name of a job is left then.
pub fn enqueue(text: &[u8], config: &Config, parts: &mut Parts, put: &mut u64) -> Result<String, Refused> {
    let request = parts.ways.read(text, config)?;
    let bytes = parts.ways.stored(text, config);
    let only = request.request_id.filter(|_| config.choices.same_request_id == SameRequestId::One);
    let only = only.map(|id| name_of(&id));
    if let Some(name) = only.as_ref().filter(|name| is_there(parts, name.as_bytes())) {
        return Ok(name.clone());
    }
    let mut last = Fault::Exists;
    for _ in 0..TRIES {
        *put += 1;
        let own = format!("{:013}-{:016x}-{put:06}", config.started_unix_ms, config.seed);
        let name = only.clone().unwrap_or_else(|| format!("{own}.json"));
        let to = within(b"inbox", name.as_bytes());
        match store(parts, &within(b"tmp", own.as_bytes()), to, bytes.clone()) {
            Err(Fault::Exists) if only.is_some() => return Ok(name),
            Err(Fault::Exists) => last = Fault::Exists,
            Err(fault) => return Err(fault.into()),
            Ok(()) => return Ok(name),
        }
    }
    Err(last.into())
}

/// Writes a file elsewhere, and moves it into place once it is complete and flushed.
fn store(parts: &mut Parts, written: &[u8], to: Place, bytes: Vec<u8>) -> Result<(), Fault> {
    let disk = &mut *parts.disk;
    let write = Op::Write(written.to_vec(), bytes);
    match disk.act(write.clone()) {
        Err(Fault::Missing) => {
            disk.act(Op::Make(b"tmp".to_vec()))?;
            disk.act(write)?;
        }
        other => drop(other?),
    }
    let step = Op::Move(written.to_vec(), to);
    let moved = match disk.act(step.clone()) {
        Err(Fault::Missing) => disk.act(Op::Make(b"inbox".to_vec())).and_then(|_| disk.act(step)),
        other => other,
    };
    if let Err(fault) = moved {
        let _ = disk.act(Op::Remove(written.to_vec()));
        return Err(fault);
    }
    // The job may be running already, so an error of this flush cannot undo it.
    let _ = disk.act(Op::Sync(b"inbox".to_vec()));
    Ok(())
}

/// File name of the only job of a `request_id`.
fn name_of(id: &Text) -> String {
    let digest = Sha256::digest(id.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("request-{hex}.json")
}

/// True if the queue has a file of this name. The folders are searched in the order in which a job moves, so that it
/// cannot be missed.
fn is_there(parts: &mut Parts, name: &[u8]) -> bool {
    let disk = &mut *parts.disk;
    let mut has = |folder: &[u8]| disk.look(&within(folder, name)) != Kind::Missing;
    if has(b"inbox") {
        return true;
    }
    let workers = parts.disk.list(b"processing").unwrap_or_default();
    let folders = workers.iter().map(|worker| within(b"processing", &worker.name));
    let mut folders = folders.chain([b"done".to_vec(), b"failed".to_vec()]);
    folders.any(|folder| parts.disk.look(&within(&folder, name)) != Kind::Missing)
}

/// The tool `AID.QUEUE.ENQUEUE.v1`.
pub struct EnqueueTool {
    config: Config,
    parts: Parts,
    put: u64,
}

impl EnqueueTool {
    /// Creates the tool for a queue.
    pub fn new(config: Config, parts: Parts) -> Self {
        Self { config, parts, put: 0 }
    }

    fn run(&mut self, input: &Value) -> Result<String, Refused> {
        let text = self.parts.ways.request(input)?;
        if text.len() > self.config.limits.stdin_bytes_max {
            return Err(Refusal::from("the job is too large").into());
        }
        enqueue(&text, &self.config, &mut self.parts, &mut self.put)
    }
}

impl Tool for EnqueueTool {
    fn call(&mut self, input: &Input<'_>, _cx: &mut Context<'_>) -> Step {
        let queued = match input.value() {
            Ok(value) => self.run(&value),
            Err(error) => Err(Refusal::from(error).into()),
        };
        Step::Done(match queued {
            Ok(name) => ToolResult::json(self.parts.ways.told(&name)),
            Err(why) => ToolResult::error(why.to_string()),
        })
    }
}
