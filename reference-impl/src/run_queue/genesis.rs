//! The Genesis tools: write a source file, compile it, load the program (document `policy` §4; contract §4 "Genesis").
//!
//! Sources lie in `runtime_genesis/src`, programs in `runtime_plugins`. A program is a toolhost (contract §1), and
//! prints its aids, one per line, when started with `--list`. `runtime_genesis/made` holds the digest of each compiled
//! program, so that nothing else is loaded. `runtime_genesis/loaded` holds the name of the program for each loaded
//! aid, so that a toolhost in run mode has these tools too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::choices::LoadAgain;
use super::disk::{Fault, Kind, Op, Place, within};
use super::{Config, Parts};
use crate::json::{self, Policy, Value, write_str};
use crate::machine::ChildExit;
use crate::refusal::Refusal;
use crate::run_log::digest::sha256_hex;
use crate::toolhost::{
    Context, Input, StateChange, Step, Tool, ToolEntry, ToolResult, ToolTable, write_full,
};

/// Aid of the writing tool.
pub const WRITE_AID: &str = "AID.GENESIS.WRITE_FILE.v1";
/// Aid of the compiling tool.
pub const COMPILE_AID: &str = "AID.GENESIS.COMPILE.v1";
/// Aid of the loading tool.
pub const LOAD_AID: &str = "AID.GENESIS.LOAD.v1";

/// Sample source in C. Letters replace `@NONCE@`.
pub const SAMPLE_C: &str = include_str!("sample.c");
/// Sample source in Rust.
pub const SAMPLE_RUST: &str = include_str!("sample.rs.txt");
/// Aid of the sample's tool.
pub const SAMPLE_AID: &str = "AID.GENESIS.SAMPLE.v1";

const SOURCES: &[u8] = b"runtime_genesis/src";
const PROGRAMS: &[u8] = b"runtime_plugins";
const MADE: &[u8] = b"runtime_genesis/made";
const LOADED: &[u8] = b"runtime_genesis/loaded";

/// Largest program in bytes.
const PROGRAM_BYTES_MAX: usize = 256 << 20;
/// Largest record in bytes.
const RECORD_BYTES_MAX: usize = 256;

/// Largest number of aids of a program.
const AIDS_MAX: usize = 64;

/// Reason why a Genesis tool fails. Its text is the error of the tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// The input is refused.
    #[error(transparent)]
    Input(#[from] Refusal),
    /// A folder cannot be created.
    #[error("{0}")]
    Folder(#[source] Fault),
    /// A file cannot be written.
    #[error("it cannot be written: {0}")]
    Write(#[source] Fault),
    /// A compiler or a program failed.
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
    /// A program does not behave like a toolhost, or its tool failed.
    #[error("{0}")]
    Program(#[source] Refusal),
}

impl GenesisError {
    fn program(reason: impl Into<Refusal>) -> Self {
        Self::Program(reason.into())
    }
}

impl From<&'static str> for GenesisError {
    fn from(reason: &'static str) -> Self {
        Self::Input(reason.into())
    }
}

/// Reason why a compiler or a program failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkshopError {
    /// The workshop has no compiler.
    #[error("there is no compiler")]
    NoCompiler,
    /// The workshop runs no programs.
    #[error("it cannot be run")]
    CannotRun,
    /// The name of the source belongs to no known language.
    #[error("sources are called .c, .cpp, .cc or .rs")]
    UnknownLanguage,
    /// A path is not UTF-8.
    #[error("the path is no text")]
    PathNotText,
    /// The program cannot be started.
    #[error("it cannot be started: {0}")]
    NotStarted(String),
    /// The program did not end in time.
    #[error("it took too long")]
    TimedOut,
    /// The program wrote too much.
    #[error("it said too much")]
    TooLarge,
    /// The program ended with an error.
    #[error("it ended by {exit:?}: {output}")]
    Ended {
        /// Its exit.
        exit: ChildExit,
        /// Beginning of its output.
        output: String,
    },
    /// Error of the operating system.
    #[error("{0}")]
    Other(String),
}

/// Compiler and runner of programs. It blocks, within limits of time and output.
pub trait Workshop: Send {
    /// Compiles the source at one place into a program at another. On failure the old program stays.
    ///
    /// # Errors
    /// The compiler's errors, or the lack of a compiler.
    fn compile(&mut self, source: &[u8], program: &[u8]) -> Result<(), WorkshopError>;

    /// Runs a program and returns its output.
    ///
    /// # Errors
    /// One sentence that says why it failed.
    fn run(&mut self, program: &[u8], arguments: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, WorkshopError>;
}

/// A workshop without a compiler.
pub struct NoWorkshop;

impl Workshop for NoWorkshop {
    fn compile(&mut self, _source: &[u8], _program: &[u8]) -> Result<(), WorkshopError> {
        Err(WorkshopError::NoCompiler)
    }

    fn run(
        &mut self,
        _program: &[u8],
        _arguments: &[&str],
        _stdin: Vec<u8>,
    ) -> Result<Vec<u8>, WorkshopError> {
        Err(WorkshopError::CannotRun)
    }
}

/// State shared by the tools.
struct Shop {
    config: Config,
    parts: Parts,
    /// Programs by their loaded aids.
    loaded: BTreeMap<String, Place>,
    written: u64,
}

type Shared = Arc<Mutex<Shop>>;

/// Adds the three tools. In run mode also adds the tool `aid`, if it was loaded before.
pub fn add(tools: &mut ToolTable, config: &Config, parts: Parts, aid: Option<&str>) {
    let config = config.clone();
    let shop = Shop { config, parts, loaded: BTreeMap::new(), written: 0 };
    let shop: Shared = Arc::new(Mutex::new(shop));
    tools.add(WRITE_AID, 0, Command { shop: Arc::clone(&shop), does: Shop::write, made: Vec::new() });
    tools.add(COMPILE_AID, 0, Command { shop: Arc::clone(&shop), does: Shop::compile, made: Vec::new() });
    let before = aid.filter(|aid| ![WRITE_AID, COMPILE_AID, LOAD_AID].contains(aid));
    if let Some(aid) = before.filter(|aid| lock(&shop).loads_again(aid)) {
        tools.add(aid, 0, Loaded { shop: Arc::clone(&shop), aid: aid.to_owned() });
    }
    tools.add(LOAD_AID, 0, Command { shop, does: Shop::load, made: Vec::new() });
}

fn lock(shop: &Shared) -> MutexGuard<'_, Shop> {
    shop.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the three tools; it returns the loaded aids.
struct Command {
    shop: Shared,
    does: fn(&mut Shop, &Value) -> Result<Vec<String>, GenesisError>,
    made: Vec<String>,
}

impl Tool for Command {
    fn call(&mut self, input: &Input<'_>, _cx: &mut Context<'_>) -> Step {
        let mut shop = lock(&self.shop);
        let value = input.value().map_err(|error| Refusal::from(error).into());
        Step::Done(match value.and_then(|value| (self.does)(&mut shop, &value)) {
            Ok(aids) => {
                self.made = aids;
                ToolResult::json("{}")
            }
            Err(why) => ToolResult::error(why.to_string()),
        })
    }

    fn made(&mut self) -> Vec<ToolEntry> {
        let entry = |aid: String| {
            let tool = Box::new(Loaded { shop: Arc::clone(&self.shop), aid: aid.clone() });
            ToolEntry { aid: aid.into(), tier: 0, tool }
        };
        std::mem::take(&mut self.made).into_iter().map(entry).collect()
    }
}

fn text<'a>(input: &'a Value, name: &str) -> Result<&'a str, GenesisError> {
    input
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Refusal::from(format!("{name} must be a string")).into())
}

impl Shop {
    /// Place of the source file `path`, with the kind of file there.
    fn source(&mut self, path: &str) -> Result<(Place, Kind), GenesisError> {
        let place = within(SOURCES, &self.parts.ways.source(path, &self.config.choices)?);
        for (at, _) in place.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
            let kind = self.parts.disk.look(&place[..at]);
            if !self.parts.ways.passes(kind) {
                return Err("path does not lead through folders".into());
            }
        }
        let kind = self.parts.disk.look(&place);
        if kind != Kind::File && (kind == Kind::Folder || !self.parts.ways.passes(kind)) {
            return Err("path leads to what is no file".into());
        }
        Ok((place, kind))
    }

    fn write(&mut self, input: &Value) -> Result<Vec<String>, GenesisError> {
        let path = text(input, "path")?;
        let content = self.parts.ways.content(input)?;
        let (place, kind) = self.source(path)?;
        if kind != Kind::Missing {
            self.config.choices.write_overwrite.allow("the file is there already")?;
        }
        self.put(&place, content.into_bytes())?;
        Ok(Vec::new())
    }

    /// Writes a file, replacing an existing one.
    fn put(&mut self, place: &[u8], bytes: Vec<u8>) -> Result<(), GenesisError> {
        let folder = place.iter().rposition(|byte| *byte == b'/').map_or(SOURCES, |at| &place[..at]);
        self.written += 1;
        let part = format!("runtime_genesis/write-{:016x}-{}", self.config.seed, self.written).into_bytes();
        let disk = &mut *self.parts.disk;
        disk.act(Op::Make(folder.to_vec())).map_err(GenesisError::Write)?;
        disk.act(Op::Write(part.clone(), bytes)).map_err(GenesisError::Write)?;
        disk.act(Op::Replace(part.clone(), place.to_vec())).map(|_| ()).map_err(|fault| {
            let _ = disk.act(Op::Remove(part));
            GenesisError::Write(fault)
        })
    }

    /// Text of a record.
    fn record(&mut self, folder: &[u8], name: &str) -> Option<String> {
        let text = self.parts.disk.read(within(folder, name.as_bytes()), RECORD_BYTES_MAX, false).ok()?;
        String::from_utf8(text).ok()
    }

    /// Digest of a program.
    fn digest(&mut self, program: &Place) -> Option<String> {
        let bytes = self.parts.disk.read(program.clone(), PROGRAM_BYTES_MAX, false).ok()?;
        Some(sha256_hex(&bytes))
    }

    /// True if a program is a regular file that was compiled under this name.
    fn is_made(&mut self, name: &str, program: &Place) -> bool {
        if self.parts.disk.look(PROGRAMS) != Kind::Folder || self.parts.disk.look(program) != Kind::File {
            return false;
        }
        let (made, is) = (self.record(MADE, name), self.digest(program));
        self.parts.ways.is_made(made.as_deref(), is.as_deref())
    }

    /// True if a tool was loaded before and can be loaded again.
    fn loads_again(&mut self, aid: &str) -> bool {
        let Some(name) = self.record(LOADED, &sha256_hex(aid.as_bytes())) else { return false };
        let program = within(PROGRAMS, name.as_bytes());
        let is_made = self.parts.ways.is_plain(&name) && self.is_made(&name, &program);
        is_made && self.loaded.insert(aid.to_owned(), program).is_none()
    }

    /// Name and place of a program.
    fn program<'a>(&self, input: &'a Value) -> Result<(&'a str, Place), GenesisError> {
        let name = text(input, "name")?;
        if !self.parts.ways.is_plain(name) {
            return Err("name must be of letters, digits and _".into());
        }
        Ok((name, within(PROGRAMS, name.as_bytes())))
    }

    fn compile(&mut self, input: &Value) -> Result<Vec<String>, GenesisError> {
        let (name, program) = self.program(input)?;
        let (source, kind) = self.source(text(input, "path")?)?;
        if kind == Kind::Missing {
            return Err("there is no such source file".into());
        }
        self.parts.disk.act(Op::Make(PROGRAMS.to_vec())).map_err(GenesisError::Folder)?;
        if self.parts.disk.look(PROGRAMS) != Kind::Folder {
            return Err("the folder of programs is none".into());
        }
        self.parts.bench.compile(&source, &program)?;
        if let Some(digest) = self.digest(&program) {
            self.put(&within(MADE, name.as_bytes()), digest.into_bytes())?;
        }
        Ok(Vec::new())
    }

    fn load(&mut self, input: &Value) -> Result<Vec<String>, GenesisError> {
        let (name, program) = self.program(input)?;
        if !self.is_made(name, &program) {
            return Err("nothing of this name was compiled".into());
        }
        let listed = self.parts.bench.run(&program, &["--list"], Vec::new())?;
        let listed = String::from_utf8(listed).map_err(|_| GenesisError::program("its aids are not text"))?;
        let aids: Vec<String> = listed.lines().map(str::to_owned).collect();
        let is_aid = |aid: &String| !aid.is_empty() && !aid.contains(char::is_whitespace);
        if aids.is_empty() || aids.len() > AIDS_MAX || !aids.iter().all(is_aid) {
            return Err(GenesisError::program("it has no aids"));
        }
        if aids.iter().any(|aid| [WRITE_AID, COMPILE_AID, LOAD_AID].contains(&aid.as_str())) {
            return Err(GenesisError::program("it has the aid of another tool"));
        }
        let again = aids.iter().any(|aid| self.loaded.contains_key(aid));
        if again && self.config.choices.load_again == LoadAgain::Refuse {
            return Err(GenesisError::program("it is loaded already"));
        }
        for aid in &aids {
            self.put(&within(LOADED, sha256_hex(aid.as_bytes()).as_bytes()), name.as_bytes().to_vec())?;
        }
        self.loaded.extend(aids.iter().map(|aid| (aid.clone(), program.clone())));
        Ok(aids)
    }
}

/// A tool of a loaded program.
struct Loaded {
    shop: Shared,
    aid: String,
}

impl Tool for Loaded {
    fn call(&mut self, input: &Input<'_>, cx: &mut Context<'_>) -> Step {
        let mut request = b"{\"input_json\":".to_vec();
        write_str(&mut request, &input.text());
        request.extend_from_slice(b",\"ds_state\":");
        write_full(&mut request, cx.state.slots());
        request.extend_from_slice(b"}\n");
        Step::Done(self.run(request, cx).unwrap_or_else(|why| ToolResult::error(why.to_string())))
    }
}

impl Loaded {
    fn run(&self, request: Vec<u8>, cx: &mut Context<'_>) -> Result<ToolResult, GenesisError> {
        let mut shop = lock(&self.shop);
        let program =
            shop.loaded.get(&self.aid).cloned().ok_or_else(|| GenesisError::program("it is not loaded"))?;
        let reply = shop.parts.bench.run(&program, &["--run", "plugin", &self.aid], request)?;
        let malformed =
            |part: &'static str| move |error: json::Error| GenesisError::program(Refusal::of(part)(error));
        let parse = |text: &[u8]| Value::parse(text, cx.limits.nesting_max, &Policy::default());
        let reply = parse(&reply).map_err(malformed("its reply is malformed"))?;
        let member = |name: &str| reply.get(name).and_then(Value::as_str);
        if reply.get("ok").and_then(Value::as_bool) != Some(true) || member("status") != Some("OK") {
            let error = member("error").filter(|error| !error.is_empty());
            return Err(GenesisError::program(error.unwrap_or("it failed").to_owned()));
        }
        let output =
            member("output_json").ok_or_else(|| GenesisError::program("its reply has no output_json"))?;
        parse(output.as_bytes()).map_err(malformed("its output is malformed"))?;
        if let Some(state) = reply.get("ds_state") {
            cx.state.apply(&StateChange::from_value(state, cx.choices).map_err(GenesisError::program)?);
        }
        Ok(ToolResult::json(output))
    }
}
