//! Mutants of the tools of Genesis.

use super::{Mutant, decides, disk, is_in};
use crate::mutant::config;
use crate::run_log::choices::Verdict;
use crate::run_queue::Config;
use crate::run_queue::choices::Choices;
use crate::run_queue::disk::{Fault, Kind, Op, Out, Place};
use crate::run_queue::Careful;

pub(super) const MUTANTS: &[Mutant] = &[
    decides!("gen-leaves", &["QUE-GEN-03"], "Paths with .. leave the folder of sources.", {
        fn source(&self, path: &str, choices: &Choices) -> Result<Place, String> {
            Careful
                .source(path, choices)
                .or_else(|why| if path.contains("..") { Ok(path.into()) } else { Err(why) })
        }
    }),
    decides!("gen-absolute", &["QUE-GEN-03"], "Absolute paths are taken for relative ones.", {
        fn source(&self, path: &str, choices: &Choices) -> Result<Place, String> {
            Careful.source(path.trim_start_matches('/'), choices)
        }
    }),
    decides!("gen-cuts-at-nul", &["QUE-GEN-03"], "Paths end at U+0000.", {
        fn source(&self, path: &str, choices: &Choices) -> Result<Place, String> {
            Careful.source(path.split('\0').next().unwrap_or_default(), choices)
        }
    }),
    decides!("gen-follows", &["QUE-GEN-03"], "Links are followed.", {
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
                    Out::Kind(Kind::Missing) if place.ends_with(b".c") => {
                        disk.act(Op::Make(b"runtime_genesis/src".to_vec()))?;
                        disk.act(Op::Write(place, b"int main(void) { return 0; }\n".to_vec()))?;
                        Ok(Out::Kind(Kind::File))
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
    config(
        "gen-other-overwrite",
        &["QUE-GEN-06"],
        "The other choice is made for a file that is there.",
        |config: &mut Config| {
            config.choices.write_overwrite = match config.choices.write_overwrite {
                Verdict::Accept => Verdict::Fail,
                Verdict::Fail => Verdict::Accept,
            };
        },
    ),
];
