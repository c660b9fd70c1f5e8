//! The toolhost with the Genesis tools: sources are written, compiled, loaded and called, and no other file
//! appears.

use peerproof_engine::contract::boundary::ConstantPeer;
use peerproof_engine::contract::face::Aim;
use peerproof_engine::contract::judge as engine;
use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::finding::{Judgement, Nature};
use peerproof_engine::data::json::Json;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Fixture, PathKind};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::transcript::{EventKind, Exit, Transcript, strict};

use crate::SERVE;

mod face;
mod generate;
pub(crate) mod kit;
mod model;
mod steps;
mod talk;
mod tool_trials;

use kit::{COMPILER, End, GENESIS, NO_COMPILER};
use model::{Ended, GENERAL, MARK, OUTER, ROOT, SOURCES};
use steps::{ASIDE, again, ends, fixtures, garbage, made, named, refused, unknown};
use talk::{Talk, letters};

pub(crate) use generate::conversation;
pub(crate) use kit::complete;
pub(crate) use tool_trials::{trial, tried};

/// A broken peer that answers every request with the same good reply.
pub(crate) const BY_ROTE: ConstantPeer = ConstantPeer::wrong(
    "constant good reply",
    "while read -r line; do echo '{\"ok\":true,\"status\":\"OK\",\"output_json\":\"{}\",\"error\":\"\",\
     \"ds_state\":{\"delta\":true}}'; done",
);

/// Checks that kill no mutant, with reasons.
pub(crate) const REDUNDANT: &[(&str, &str)] = &[
    (
        "run_queue/genesis/load/built-in",
        "the table of the reference's tools takes no aid twice, and has no seam for it",
    ),
    ("run_queue/genesis/write/folder", "no file takes the place of a folder, whatever the reference decides"),
    (
        "run_queue/genesis/names/options",
        "the reference gives compilers absolute paths, and has no seam for others",
    ),
    (
        "run_queue/genesis/compile/hang",
        "its mutant is one that takes what no compiler takes, and --slow alone shows it",
    ),
    (
        "run_queue/genesis/load/never-made",
        "the system's loader refuses a text file, whatever the reference decides; load/no-plugin has a mutant",
    ),
    ("run_queue/genesis/plugin/hangs", "the same of a plugin that exits notices its mutant sooner"),
];

/// Adds the steps of a check.
type StepAdder = fn(&mut Talk, &mut Rng) -> Result<(), Untestable>;

fn check(name: &str, clauses: &[&'static str], title: &str, tell: StepAdder) -> Check {
    let plan = move |facts: &Facts, rng: &mut Rng| {
        let mut talk = Talk::new(facts);
        talk.canary();
        tell(&mut talk, rng)?;
        Ok(talk.plan())
    };
    let clauses = clauses.iter().copied();
    let check = Check::new(format!("run_queue/genesis/{name}"), title, clauses, SERVE, plan);
    check.roles(&kit::ROLES[..1]).feature(GENESIS).on_process()
}

fn compiled(name: &str, clauses: &[&'static str], title: &str, tell: StepAdder) -> Check {
    check(name, clauses, title, tell).roles(&kit::ROLES).also_feature(COMPILER)
}

/// All checks of the Genesis tools.
pub(crate) fn checks() -> Vec<Check> {
    [
        flows(),
        writes(),
        writes_elsewhere(),
        names(),
        compilations(),
        faults_of_the_compiler(),
        loads(),
        ends_of_plugins(),
        vec![without_compiler()],
    ]
    .concat()
}

fn flows() -> Vec<Check> {
    vec![
        check("canary/plain-request", &[GENERAL, "QUE-GEN-04"], "A small file is written.", |_, _| Ok(()))
            .first_canary(),
        check(
            "manners",
            &[GENERAL],
            "There is one reply for each request, nothing else, and the toolhost ends with its input.",
            |talk, _| {
                talk.call("QUE-GEN-02", "AID.PEERPROOF.NOBODY.v1", 0).canary();
                Ok(())
            },
        )
        .ambient(),
        compiled("flow/letters", &["QUE-GEN-01"], "The loaded tool has the written text.", |talk, rng| {
            let path = made(talk, &letters(rng));
            talk.load("QUE-GEN-01", "made").call_sample("QUE-GEN-01").canary();
            talk.compile("QUE-GEN-01", &path, "other").canary();
            Ok(())
        }),
        compiled(
            "flow/before-load",
            &["QUE-GEN-02"],
            "A tool is unknown before it is loaded.",
            |talk, rng| {
                talk.call_sample("QUE-GEN-02");
                made(talk, &letters(rng));
                talk.call_sample("QUE-GEN-02").load("QUE-GEN-01", "made").call_sample("QUE-GEN-01").canary();
                Ok(())
            },
        ),
        compiled(
            "flow/written-again",
            &["QUE-GEN-12"],
            "After writing and compiling again, the tool has the new text.",
            |talk, rng| {
                let path = made(talk, &letters(rng));
                again(talk, rng, "QUE-GEN-06", &path);
                Ok(())
            },
        ),
        compiled(
            "flow/written-elsewhere",
            &["QUE-GEN-12"],
            "After writing elsewhere and compiling under the same name, the tool has the new text.",
            |talk, rng| {
                made(talk, &letters(rng));
                let path = talk.kit.other_file();
                again(talk, rng, "QUE-GEN-04", &path);
                Ok(())
            },
        ),
        compiled(
            "flow/loaded-again",
            &["QUE-GEN-16"],
            "Loading a loaded name again replaces the tool or is refused.",
            |talk, rng| {
                made(talk, &letters(rng));
                talk.load("QUE-GEN-01", "made").load("QUE-GEN-16", "made").call_sample("QUE-GEN-16").canary();
                Ok(())
            },
        ),
    ]
}

fn writes() -> Vec<Check> {
    vec![
        check("write/content", &["QUE-GEN-04"], "A file contains exactly the given bytes.", |talk, _| {
            let texts = [
                "",
                "a",
                "\n",
                "no line feed",
                "two\r\nlines\n",
                "\u{feff}mark",
                "n\u{0}l",
                "é 漢 😀 \u{2028}",
                "\t\\\"'$%",
            ];
            for (at, text) in texts.iter().enumerate() {
                let path = talk.kit.file(&format!("content_{at}"));
                talk.write("QUE-GEN-04", &path, text);
            }
            let path = talk.kit.file("long");
            talk.write("QUE-GEN-04", &path, &"line of text\n".repeat(8_000)).canary();
            Ok(())
        }),
        check("write/no-content", &["QUE-GEN-05"], "A write without `content` makes no file.", |talk, _| {
            let values = [
                None,
                Some(Json::Null),
                Some(1.into()),
                Some(true.into()),
                Some(Json::array(["x"])),
                Some(Json::Object(Vec::new())),
            ];
            for (at, value) in values.into_iter().enumerate() {
                let path = talk.kit.file(&format!("nothing_{at}"));
                talk.write_values("QUE-GEN-05", Some(path.into()), value);
            }
            talk.canary();
            Ok(())
        }),
        check("write/overwrite", &["QUE-GEN-06"], "A second write is done or refused.", |talk, _| {
            let path = talk.kit.file("twice");
            talk.write("QUE-GEN-04", &path, "the first text")
                .write("QUE-GEN-06", &path, "the second text")
                .canary();
            Ok(())
        }),
        check("write/subfolder", &["QUE-GEN-18"], "A subfolder is accepted or refused.", |talk, _| {
            let path = talk.kit.file("folder/file");
            talk.write("QUE-GEN-18", &path, "text of a file in a folder").canary();
            Ok(())
        }),
        check("write/dotdot-inside", &["QUE-GEN-19"], "`..` inside is accepted or refused.", |talk, _| {
            fixtures(talk);
            let path = talk.kit.file("folder/../inside");
            talk.write("QUE-GEN-19", &path, "text of a file that is inside").canary();
            Ok(())
        }),
    ]
}

fn writes_elsewhere() -> Vec<Check> {
    vec![
        check("write/absolute", &["QUE-GEN-03"], "Nothing is written at an absolute path.", |talk, _| {
            refused(
                talk,
                &[
                    "%%outer.path%%/absolute",
                    "%%outer/root.path%%/runtime_genesis/src/absolute",
                    "/%%outer.path%%/absolute",
                ],
            );
            Ok(())
        }),
        check("write/leaves", &["QUE-GEN-03"], "Nothing is written if `..` leaves.", |talk, _| {
            refused(
                talk,
                &[
                    "../up",
                    "../../up",
                    "../../../up",
                    "folder/../../up",
                    "./../up",
                    "../../../aside/up",
                    "../src-beside/up",
                    "../src.beside",
                    "folder/../../src-beside/up",
                ],
            );
            Ok(())
        }),
        check(
            "write/encoded-separators",
            &["QUE-GEN-03"],
            "Separators of other systems and encoded separators do not lead outside.",
            |talk, _| {
                fixtures(talk);
                let path = talk.kit.file("first");
                talk.write("QUE-GEN-04", &path, "text that is written");
                let stems = r"..\up ..\..\..\up folder\..\..\up ..%2fup ..%2F..%2F..%2Fup %2e%2e/up %2e%2e%2f%2e%2e%2fup ..%5cup";
                for stem in stems.split(' ') {
                    let path = talk.kit.file(stem);
                    talk.write("QUE-GEN-03", &path, "text that lies nowhere else");
                }
                talk.canary();
                Ok(())
            },
        ),
        check("write/link", &["QUE-GEN-03"], "Nothing is written through a symbolic link.", |talk, _| {
            refused(talk, &["link/new", "link/kept", "filelink", "newlink", "inner/new"]);
            Ok(())
        }),
        check(
            "write/folder",
            &["QUE-GEN-03"],
            "Nothing is written at the path of a folder, or at an empty path.",
            |talk, _| {
                refused(talk, &["*folder", "*", "*.", "*./", "*folder/.", "*folder/.."]);
                talk.write_values("QUE-GEN-03", None, Some("text without a path".into()));
                talk.write_values("QUE-GEN-03", Some(1.into()), Some("text at a number".into())).canary();
                Ok(())
            },
        ),
        check("write/nul", &["QUE-GEN-03"], "Nothing is written at a path with U+0000.", |talk, _| {
            refused(talk, &["n\u{0}l", "*\u{0}", "*whole.c\u{0}", "*../up.c\u{0}.c"]);
            Ok(())
        }),
    ]
}

fn names() -> Vec<Check> {
    vec![
        compiled("names/shell", &["QUE-GEN-07"], "A name is never part of a shell command.", |talk, rng| {
            talk.env([("PEERPROOF_AT".to_owned(), format!("{{{{{OUTER}.path}}}}"))]);
            let command = format!("cd $PEERPROOF_AT;touch {}", face::INJECTED);
            let around = ["$(@)", "`@`", ";@;", "';@;'", "\";@;\"", "x\n@\n", "|@;"];
            let names = around.map(|around| around.replace('@', &command));
            let path = made(talk, &letters(rng));
            for name in &names {
                named(talk, rng, name);
                talk.compile("QUE-GEN-07", &path, name);
            }
            talk.canary();
            Ok(())
        }),
        compiled("names/options", &["QUE-GEN-07"], "A name is never an option.", |talk, rng| {
            let path = made(talk, &letters(rng));
            let (source, to) = (
                format!("%%{ROOT}.path%%/runtime_genesis/src/{path}"),
                format!("%%{OUTER}.path%%/{}", face::INJECTED),
            );
            if let Some(options) = talk.kit.options(&to, &source) {
                let file = talk.kit.file("x");
                talk.write("QUE-GEN-04", &file, &options);
            }
            for stem in ["@x", "-oinjected", "--version", "-"] {
                named(talk, rng, stem);
            }
            for name in ["-oinjected", "--version", "-"] {
                talk.compile("QUE-GEN-07", &path, name);
            }
            talk.canary();
            Ok(())
        }),
    ]
}

fn compilations() -> Vec<Check> {
    vec![
        compiled("compile/path", &["QUE-GEN-08"], "A file outside is not compiled.", |talk, rng| {
            fixtures(talk);
            let file = Fixture::File {
                name: format!("{ASIDE}/{}", talk.kit.file("kept")),
                content: Payload::text(talk.kit.sample(&letters(rng))),
                mode: None,
                kept: false,
            };
            talk.fixture(file);
            let beside = Fixture::File {
                name: format!("{SOURCES}-beside/{}", talk.kit.file("kept")),
                content: Payload::text(talk.kit.sample(&letters(rng))),
                mode: None,
                kept: false,
            };
            talk.fixture(beside);
            for stem in [
                "link/kept",
                "../../../aside/kept",
                "../src-beside/kept",
                "%%outer/aside.path%%/kept",
                "filelink",
            ] {
                let path = talk.kit.file(stem);
                talk.compile("QUE-GEN-08", &path, "elsewhere");
            }
            for path in ["", ".", "folder", "n\u{0}l"] {
                talk.compile("QUE-GEN-08", path, "nothing");
            }
            made(talk, &letters(rng));
            talk.canary();
            Ok(())
        }),
        compiled(
            "compile/name-that-leaves",
            &["QUE-GEN-10"],
            "A name that leads out of the root, plain or encoded, creates no file there.",
            |talk, rng| {
                let path = made(talk, &letters(rng));
                let names = r"../../up ../../../up made/../../../up %%outer.path%%/up ../../aside/up ..\..\up ..%2f..%2fup";
                for name in names.split(' ') {
                    talk.compile("QUE-GEN-10", &path, name);
                }
                talk.load("QUE-GEN-01", "made").call_sample("QUE-GEN-01").canary();
                Ok(())
            },
        ),
        compiled("compile/missing", &["QUE-GEN-08"], "A missing file is not compiled.", |talk, _| {
            let path = talk.kit.file("missing");
            talk.compile("QUE-GEN-08", &path, "missing").canary();
            Ok(())
        }),
    ]
}

fn faults_of_the_compiler() -> Vec<Check> {
    vec![
        compiled(
            "compile/error",
            &["QUE-GEN-08"],
            "An error of the compiler is answered TOOL_ERROR.",
            |talk, rng| {
                garbage(talk, rng, 1);
                talk.compile("QUE-GEN-08", &talk.kit.file("garbage"), "garbage").canary();
                made(talk, &letters(rng));
                Ok(())
            },
        ),
        compiled(
            "compile/flood",
            &["QUE-GEN-08"],
            "A compiler that floods its output is answered TOOL_ERROR.",
            |talk, rng| {
                garbage(talk, rng, 4_000);
                talk.compile("QUE-GEN-08", &talk.kit.file("garbage"), "garbage").canary();
                made(talk, &letters(rng));
                Ok(())
            },
        ),
        compiled(
            "compile/hang",
            &["QUE-GEN-20", "QUE-GEN-08"],
            "A compiler that hangs ends within 30 s, and the session goes on.",
            |talk, rng| {
                made(talk, &letters(rng));
                talk.fixture(Fixture::Path { name: format!("{OUTER}/fifo"), what: PathKind::Fifo });
                let text = talk.kit.including("%%outer/fifo.path%%").ok_or_else(|| unknown(talk))?;
                let path = talk.kit.file("hangs");
                talk.write("QUE-GEN-04", &path, &text).compile("QUE-GEN-20", &path, "hangs");
                let next = talk.kit.file("behind");
                talk.write("QUE-GEN-08", &next, "text behind it").canary();
                Ok(())
            },
        )
        .slow(),
        compiled(
            "compile/failed-then-load",
            &["QUE-GEN-09"],
            "A name whose compilation failed is not loaded.",
            |talk, rng| {
                made(talk, &letters(rng));
                garbage(talk, rng, 1);
                talk.compile("QUE-GEN-08", &talk.kit.file("garbage"), "garbage")
                    .load("QUE-GEN-09", "garbage");
                talk.compile("QUE-GEN-08", &talk.kit.file("absent"), "absent")
                    .load("QUE-GEN-09", "absent")
                    .canary();
                Ok(())
            },
        ),
        compiled(
            "compile/stdin",
            &["QUE-GEN-11"],
            "The compiler does not read the session's input.",
            |talk, rng| {
                made(talk, &letters(rng));
                let text = talk.kit.including("/dev/stdin").ok_or_else(|| unknown(talk))?;
                let path = talk.kit.file("reads");
                talk.write("QUE-GEN-04", &path, &text).compile_before(
                    "QUE-GEN-11",
                    &path,
                    "reads",
                    10,
                    40_000,
                );
                Ok(())
            },
        ),
        compiled(
            "left",
            &["QUE-GEN-10"],
            "No file is written outside the root, and no temporary file is left.",
            |talk, rng| {
                made(talk, &letters(rng));
                garbage(talk, rng, 1);
                talk.compile("QUE-GEN-08", &talk.kit.file("garbage"), "garbage");
                talk.load("QUE-GEN-01", "made").call_sample("QUE-GEN-01").canary();
                Ok(())
            },
        )
        .ambient(),
    ]
}

fn loads() -> Vec<Check> {
    vec![
        compiled("load/names", &["QUE-GEN-13"], "Only a plugin with a plain name is loaded.", |talk, rng| {
            let path = made(talk, &letters(rng));
            talk.compile("QUE-GEN-13", &path, "../up");
            for name in [
                "../up",
                "./made",
                "../runtime_plugins/made",
                "..\\runtime_plugins\\made",
                "..%2fruntime_plugins%2fmade",
                "MADE",
                "mad",
                "made.made",
                "%%outer/root.path%%/runtime_plugins/made",
                "..",
                "",
                "missing",
                "made/",
            ] {
                talk.load("QUE-GEN-13", name);
            }
            talk.load("QUE-GEN-01", "made").canary();
            Ok(())
        }),
        compiled(
            "load/never-made",
            &["QUE-GEN-13"],
            "A text file among the plugins is not loaded.",
            |talk, rng| {
                // A plugin of another origin cannot be distinguished from one of an earlier session.
                for name in ["text", "text.so"] {
                    let (name, content) =
                        (format!("{ROOT}/runtime_plugins/{name}"), Payload::text("no plugin\n"));
                    talk.fixture(Fixture::File { name, content, mode: Some(0o644), kept: false });
                }
                made(talk, &letters(rng));
                talk.load("QUE-GEN-13", "text").load("QUE-GEN-01", "made").canary();
                Ok(())
            },
        ),
        compiled("load/no-plugin", &["QUE-GEN-13"], "A non-plugin file is not loaded.", |talk, rng| {
            let text = talk.kit.no_plugin().ok_or_else(|| unknown(talk))?;
            let path = talk.kit.file("none");
            talk.write("QUE-GEN-04", &path, text)
                .compile("QUE-GEN-13", &path, "none")
                .load("QUE-GEN-13", "none");
            made(talk, &letters(rng));
            talk.load("QUE-GEN-01", "made").canary();
            Ok(())
        }),
        compiled(
            "load/built-in",
            &["QUE-GEN-15"],
            "A plugin does not replace a built-in tool.",
            |talk, rng| {
                let (aid, own) = (talk.kit.aid.clone(), talk.kit.write.aid.clone());
                let text = talk.kit.sample(&letters(rng)).replace(&aid, &own);
                if !talk.kit.sample.contains(&aid) {
                    return Err(Untestable::new(
                        "no_aid",
                        "the sample source does not contain its aid as plain text",
                    ));
                }
                let path = talk.kit.sample_file();
                talk.write("QUE-GEN-04", &path, &text)
                    .compile("QUE-GEN-15", &path, "replaces")
                    .load("QUE-GEN-15", "replaces");
                let next = talk.kit.file("behind");
                talk.write("QUE-GEN-15", &next, "text that is written all the same");
                Ok(())
            },
        ),
    ]
}

fn ends_of_plugins() -> Vec<Check> {
    vec![
        compiled("plugin/exits", &["QUE-GEN-14"], "A plugin that exits does not succeed.", |talk, rng| {
            ends(talk, rng, End::Exit)
        }),
        compiled("plugin/aborts", &["QUE-GEN-14"], "A plugin that aborts does not succeed.", |talk, rng| {
            ends(talk, rng, End::Abort)
        }),
        compiled("plugin/hangs", &["QUE-GEN-14"], "A plugin that hangs does not succeed.", |talk, rng| {
            ends(talk, rng, End::Hang)
        })
        .slow(),
        compiled("state", &["QUE-GEN-17"], "A failed call changes no slot.", |talk, rng| {
            made(talk, &letters(rng));
            talk.load("QUE-GEN-01", "made").call_sample("QUE-GEN-01");
            garbage(talk, rng, 1);
            talk.compile("QUE-GEN-08", &talk.kit.file("garbage"), "garbage").load("QUE-GEN-09", "garbage");
            talk.write("QUE-GEN-03", "", "text without a path")
                .call("QUE-GEN-02", "AID.PEERPROOF.NOBODY.v1", 0)
                .canary();
            Ok(())
        }),
    ]
}

/// Check of a peer that declares that it has no compiler.
fn without_compiler() -> Check {
    let without = |facts: &Facts, rng: &mut Rng| {
        let mut talk = Talk::new(facts);
        talk.env(kit::without_compiler(facts)).canary();
        let (path, text) = (talk.kit.sample_file(), talk.kit.sample(&letters(rng)));
        talk.write("QUE-GEN-04", &path, &text).compile("QUE-GEN-21", &path, "made").canary();
        Ok(talk.plan())
    };
    Check::new(
        "run_queue/genesis/no-compiler",
        "Without a compiler, COMPILE is answered TOOL_ERROR.",
        ["QUE-GEN-21"],
        SERVE,
        without,
    )
    .feature(GENESIS)
    .also_feature(NO_COMPILER)
    .on_process()
}

/// Refuses a plan with unread members.
///
/// # Errors
/// Names the unread member.
pub(crate) fn admit(transcript: &Transcript) -> Result<(), Misconfigured> {
    strict::expectations::<Aim>(&transcript.plan)
}

/// Judges a transcript.
pub(crate) fn judge(transcript: &Transcript) -> Judgement {
    let mut judgement = engine::judge(&face::Genesis, transcript);
    let is_cut = |kind: &EventKind| matches!(kind, EventKind::Looked { label, cut: true, .. } if label == OUTER || label == MARK);
    if transcript.events.iter().any(|event| is_cut(&event.kind)) {
        judgement.untestable = Some(Untestable::new(
            "look_cut",
            "the folder around the root contains more files than peerproof looks at",
        ));
    }
    if let Some(ended) = model::ended(transcript) {
        // A toolhost that runs the plugin in its own process may do anything then. A hang is reported for the call
        // itself.
        let is_whole = ended == Ended::Apart || transcript.exit(0) == Some(Exit::Code(0));
        judgement.findings.retain(|it| {
            it.clause.0 != GENERAL || is_whole && it.nature != Nature::Hang && it.reason != "ended_early"
        });
    }
    judgement
}
