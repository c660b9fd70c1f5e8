//! Mutants of the Genesis tools.

use super::{Carried, Mutant, decides, disk, is_in};
use crate::json::Value;
use crate::machine::Action;
use crate::mutant::{Seam, wrap};
use crate::refusal::Refusal;
use crate::run_queue::choices::Choices;
use crate::run_queue::disk::{Fault, Kind, Op, OpResult, Place};
use crate::run_queue::genesis::{NoWorkshop, Workshop, WorkshopError};
use crate::run_queue::{Careful, Decisions};

/// Replacement for a compilation.
type Compile = fn(&mut dyn Workshop, &[u8], &[u8]) -> Result<(), WorkshopError>;
/// Replacement for the run of a program.
type Ran = fn(&mut dyn Workshop, &[u8], &[&str], Vec<u8>) -> Result<Vec<u8>, WorkshopError>;

/// A workshop with replaced functions.
struct Careless {
    inner: Box<dyn Workshop>,
    compile: Compile,
    run: Ran,
}

impl Workshop for Careless {
    fn compile(&mut self, source: &[u8], program: &[u8]) -> Result<(), WorkshopError> {
        (self.compile)(&mut *self.inner, source, program)
    }

    fn run(&mut self, program: &[u8], arguments: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, WorkshopError> {
        (self.run)(&mut *self.inner, program, arguments, stdin)
    }
}

/// A workshop that, on a failed compilation, compiles the previous source under the new name.
struct Stubborn {
    inner: Box<dyn Workshop>,
    last: Option<Vec<u8>>,
}

impl Workshop for Stubborn {
    fn compile(&mut self, source: &[u8], program: &[u8]) -> Result<(), WorkshopError> {
        let compiled = self.inner.compile(source, program);
        match (&compiled, &self.last) {
            (Ok(()), _) => self.last = Some(source.to_vec()),
            (Err(_), Some(last)) => self.inner.compile(last, program)?,
            (Err(_), None) => {}
        }
        compiled
    }

    fn run(&mut self, program: &[u8], arguments: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, WorkshopError> {
        self.inner.run(program, arguments, stdin)
    }
}

/// A workshop that never compiles twice to the same program.
struct Settled {
    inner: Box<dyn Workshop>,
    made: Vec<Vec<u8>>,
}

impl Workshop for Settled {
    fn compile(&mut self, source: &[u8], program: &[u8]) -> Result<(), WorkshopError> {
        if !self.made.iter().any(|made| made == program) {
            self.inner.compile(source, program)?;
            self.made.push(program.to_vec());
        }
        Ok(())
    }

    fn run(&mut self, program: &[u8], arguments: &[&str], stdin: Vec<u8>) -> Result<Vec<u8>, WorkshopError> {
        self.inner.run(program, arguments, stdin)
    }
}

/// A tool that accepts every file in the folder of programs.
#[derive(Debug)]
struct Trusting;

impl Decisions for Trusting {
    fn is_made(&self, _noted: Option<&str>, is: Option<&str>) -> bool {
        is.is_some()
    }
}

/// Creates a mutant with edited replies. `$edit` gets each reply without its line feed.
macro_rules! says {
    ($id:literal, $clause:literal, $fault:literal, $edit:expr) => {
        Mutant::new(
            $id,
            &[$clause],
            $fault,
            Seam::Machine(|inner| {
                wrap(inner, |inner, event, now, actions| {
                    let edit: fn(&str) -> String = $edit;
                    let from = actions.len();
                    inner.handle(event, now, actions);
                    for action in &mut actions[from..] {
                        if let Action::Stdout(bytes) = action {
                            let text = String::from_utf8_lossy(bytes);
                            *bytes =
                                text.lines().map(|line| edit(line) + "\n").collect::<String>().into_bytes();
                        }
                    }
                })
            }),
        )
    };
}

const COMPILES: Compile = |bench, source, program| bench.compile(source, program);

/// Creates a mutant with another workshop.
macro_rules! works {
    ($id:literal, $clause:literal, $fault:literal, $compile:expr, $run:expr) => {
        Mutant::new(
            $id,
            &[$clause],
            $fault,
            Seam::Parts(|_, parts| {
                let inner = std::mem::replace(&mut parts.bench, Box::new(NoWorkshop));
                parts.bench = Box::new(Careless { inner, compile: $compile, run: $run });
            }),
        )
    };
}

pub(super) const MUTANTS: &[Mutant] = &[
    decides!("gen-leaves", &["QUE-GEN-03"], "Paths with .. leave the folder of sources.", {
        fn source(&self, path: &str, choices: &Choices) -> Result<Place, Refusal> {
            Careful
                .source(path, choices)
                .or_else(|why| if path.contains("..") { Ok(path.into()) } else { Err(why) })
        }
    }),
    decides!(
        "gen-compares-a-prefix",
        &["QUE-GEN-03"],
        "A folder whose name begins as that of the sources is inside.",
        {
            fn source(&self, path: &str, choices: &Choices) -> Result<Place, Refusal> {
                let beside = path.split_once("../src").is_some_and(|(before, _)| before.is_empty());
                if beside { Ok(path.into()) } else { Careful.source(path, choices) }
            }
        }
    ),
    decides!(
        "gen-decodes",
        &["QUE-GEN-03"],
        "Separators of other systems and encoded ones are separators.",
        {
            fn source(&self, path: &str, choices: &Choices) -> Result<Place, Refusal> {
                let decoded = path.replace('\\', "/").replace("%2f", "/");
                if decoded == path { Careful.source(path, choices) } else { Ok(decoded.as_str().into()) }
            }
        }
    ),
    decides!("gen-makes-outside", &["QUE-GEN-10"], "A name that leads out of the root is compiled there.", {
        fn is_plain(&self, name: &str) -> bool {
            name.starts_with("../../") || Careful.is_plain(name)
        }
    }),
    decides!("gen-absolute", &["QUE-GEN-03"], "Absolute paths are taken for relative ones.", {
        fn source(&self, path: &str, choices: &Choices) -> Result<Place, Refusal> {
            Careful.source(path.trim_start_matches('/'), choices)
        }
    }),
    decides!("gen-cuts-at-nul", &["QUE-GEN-03"], "Paths end at U+0000.", {
        fn source(&self, path: &str, choices: &Choices) -> Result<Place, Refusal> {
            Careful.source(path.split('\0').next().unwrap_or_default(), choices)
        }
    }),
    decides!("gen-follows", &["QUE-GEN-03", "QUE-GEN-08"], "Links are followed.", {
        fn passes(&self, kind: Kind) -> bool {
            matches!(kind, Kind::Missing | Kind::Folder | Kind::Link)
        }
    }),
    disk("gen-adds-line", &["QUE-GEN-04"], "A line feed is added to what is written.", |disk, op| match op {
        Op::Write(place, mut bytes) => {
            bytes.push(b'\n');
            disk.act(Op::Write(place, bytes))
        }
        op => disk.act(op),
    }),
    disk(
        "gen-writes-once",
        &["QUE-GEN-12"],
        "What was written stays as it was first.",
        |disk, op| match op {
            Op::Replace(from, to) => match disk.act(Op::Move(from.clone(), to)) {
                Err(Fault::Exists) => disk.act(Op::Remove(from)),
                out => out,
            },
            op => disk.act(op),
        },
    ),
    disk(
        "gen-keeps-parts",
        &["QUE-GEN-10"],
        "What is written is left beside the root as well.",
        |disk, op| match op {
            Op::Write(place, bytes) => {
                let name = place.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
                disk.act(Op::Write([b"../", &place[name..]].concat(), bytes.clone()))?;
                disk.act(Op::Write(place, bytes))
            }
            op => disk.act(op),
        },
    ),
    disk(
        "gen-believes",
        &["QUE-GEN-08"],
        "A source file that is missing is compiled as an empty one.",
        |disk, op| match op {
            Op::Look(place) if is_in(&place, "runtime_genesis/src") => {
                match disk.act(Op::Look(place.clone()))? {
                    OpResult::Kind(Kind::Missing) if place.ends_with(b".c") => {
                        disk.act(Op::Make(b"runtime_genesis/src".to_vec()))?;
                        disk.act(Op::Write(place, b"int main(void) { return 0; }\n".to_vec()))?;
                        Ok(OpResult::Kind(Kind::File))
                    }
                    out => Ok(out),
                }
            }
            op => disk.act(op),
        },
    ),
    decides!("gen-any-name", &["QUE-GEN-13"], "Programs are loaded from wherever they are named.", {
        fn is_plain(&self, name: &str) -> bool {
            !name.is_empty()
        }
    }),
    decides!("gen-no-content", &["QUE-GEN-05"], "Without a text the file is empty.", {
        fn content(&self, input: &Value) -> Result<String, Refusal> {
            Ok(input.get("content").and_then(Value::as_str).unwrap_or_default().to_owned())
        }
    }),
    works!(
        "gen-other-aid",
        "QUE-GEN-01",
        "A tool is callable under another aid.",
        COMPILES,
        |bench, program, arguments, stdin| {
            let mut output = bench.run(program, arguments, stdin)?;
            if arguments == ["--list"] {
                output.truncate(output.trim_ascii_end().len());
                output.extend_from_slice(b"x");
            }
            Ok(output)
        }
    ),
    works!(
        "gen-compiles-anything",
        "QUE-GEN-08",
        "What the compiler says is not looked at.",
        |bench, source, program| bench.compile(source, program).or(Ok(())),
        |bench, program, arguments, stdin| bench.run(program, arguments, stdin)
    ),
    works!(
        "gen-loads-anything",
        "QUE-GEN-13",
        "What cannot tell its aids is loaded with one of its own.",
        COMPILES,
        |bench, program, arguments, stdin| match bench.run(program, arguments, stdin) {
            Err(_) if arguments == ["--list"] => Ok(b"AID.GENESIS.UNKNOWN.v1\n".to_vec()),
            other => other,
        }
    ),
    works!(
        "gen-failure-is-fine",
        "QUE-GEN-14",
        "A plugin that fails when it is called did nothing, and well.",
        COMPILES,
        |bench, program, arguments, stdin| match bench.run(program, arguments, stdin) {
            Err(_) if arguments != ["--list"] => {
                Ok(br#"{"ok":true,"status":"OK","output_json":"{}","error":""}"#.to_vec())
            }
            other => other,
        }
    ),
    Mutant::new(
        "gen-compiles-the-last",
        &["QUE-GEN-09"],
        "Where the compiler fails, what it made last is loaded.",
        Seam::Parts(|_, parts| {
            let inner = std::mem::replace(&mut parts.bench, Box::new(NoWorkshop));
            parts.bench = Box::new(Stubborn { inner, last: None });
            parts.ways = Box::new(Trusting);
        }),
    ),
    Mutant::new(
        "gen-compiles-once",
        &["QUE-GEN-12"],
        "What was compiled under a name stays that.",
        Seam::Parts(|_, parts| {
            let inner = std::mem::replace(&mut parts.bench, Box::new(NoWorkshop));
            parts.bench = Box::new(Settled { inner, made: Vec::new() });
        }),
    ),
    works!(
        "gen-needs-no-compiler",
        "QUE-GEN-21",
        "Without a compiler it says that it compiled.",
        |_, _, _| Ok(()),
        |bench, program, arguments, stdin| bench.run(program, arguments, stdin)
    ),
    Mutant::new(
        "gen-in-a-shell",
        &["QUE-GEN-07"],
        "The compiler is started by a shell, with the name as it is.",
        Seam::Carrier(Carried::Shell),
    ),
    Mutant::new(
        "gen-own-stdin",
        &["QUE-GEN-11"],
        "The compiler has the standard input of the session.",
        Seam::Carrier(Carried::OwnStdin),
    ),
    says!("gen-knows-anybody", "QUE-GEN-02", "A tool that is not known did nothing, and well.", |line| {
        match line.contains("tool not found") {
            true => r#"{"ok":true,"status":"OK","output_json":"{}","error":"","ds_state":{"delta":true}}"#
                .to_owned(),
            false => line.to_owned(),
        }
    }),
    says!("gen-tells-the-state", "QUE-GEN-17", "A tool that fails leaves its error in a slot.", |line| {
        let slots = r#""slots":{"7":{"type":"text","provenance":"error","content_json":"1","size_bytes":1}}"#;
        match line.contains("\"TOOL_ERROR\"") {
            true => line.replacen("\"slots\":{}", slots, 1),
            false => line.to_owned(),
        }
    }),
    says!("gen-says-more", "QUE-GEN-24", "Behind each reply is a line about it.", |line| format!(
        "{line}\ndone: {} bytes",
        line.len()
    )),
];
