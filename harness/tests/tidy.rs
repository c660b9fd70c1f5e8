//! The rules of the tree, as tests. Each failure names the place and what to do.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use peerproof::carriage::HTTP;
use peerproof::payload::Vars;
use peerproof::plan::{Act, Chunking};
use peerproof::rng::Rng;
use peerproof::table;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files below `folder` with their text; binary files are left out.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let built = matches!(
                name.as_str(),
                "target" | ".git" | "__pycache__" | "artifacts" | "corpus" | "coverage"
            );
            if name == ".git" {
                continue;
            }
            if path.is_dir() {
                if !built && !name.starts_with("mutants.out") && name != "peerproof-out" {
                    open.push(path);
                }
            } else if let Ok(text) = fs::read_to_string(&path) {
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let found: Vec<_> = files(&root().join(folder))
        .into_iter()
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "rs"))
        .collect();
    assert!(!found.is_empty(), "no sources under {folder}");
    found
}

/// The code of a source file: without comments and without its test module.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    text.lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .collect::<Vec<_>>()
        .join("\n")
}

fn relative(path: &Path) -> String {
    let root = root().canonicalize().unwrap();
    path.canonicalize().unwrap().strip_prefix(root).unwrap().to_string_lossy().into_owned()
}

#[test]
fn every_clause_has_a_check_or_a_reason() {
    for boundary in table::all() {
        let tested: BTreeSet<_> = boundary.checks().iter().flat_map(|check| &check.clauses).collect();
        let mut faults = Vec::new();
        for clause in boundary.clauses() {
            match (tested.contains(&clause.id), clause.excluded.is_some()) {
                (false, false) => {
                    faults.push(format!("{} has neither a check nor an `excluded` reason", clause.id))
                }
                (true, true) => {
                    faults.push(format!("{} is excluded and has a check all the same", clause.id))
                }
                _ => {}
            }
        }
        assert!(faults.is_empty(), "{}:\n{}", boundary.name(), faults.join("\n"));
    }
}

#[test]
fn every_check_has_a_good_id_and_known_clauses() {
    for boundary in table::all() {
        let clauses: BTreeMap<_, _> = boundary.clauses().iter().map(|clause| (&clause.id, clause)).collect();
        let mut seen = BTreeSet::new();
        for check in boundary.checks() {
            assert!(seen.insert(&check.id), "{} is there twice", check.id);
            let good =
                check.id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'/'));
            assert!(good && check.id.starts_with(boundary.name()), "{} is no kebab path", check.id);
            assert!(!check.clauses.is_empty(), "{} puts no clause at risk", check.id);
            assert!(check.title.ends_with('.'), "{}: the title is no sentence", check.id);
            for clause in &check.clauses {
                assert!(clauses.contains_key(clause), "{} names the unknown clause {clause}", check.id);
            }
        }
    }
}

/// Files whose help texts and error messages show a user an example.
const EXAMPLES: [&str; 4] = [
    "harness/src/cli/check.rs",
    "harness/src/cli/init.rs",
    "harness/src/cli/matrix.rs",
    "harness/src/cli/peer.rs",
];

/// Places in the code below `folder`, outside `may`, where one of `words` stands.
fn places(folder: &str, may: &[&str], words: &[&str]) -> String {
    let mut found = String::new();
    for (path, text) in sources(folder) {
        let path = relative(&path);
        if may.iter().any(|prefix| path.starts_with(prefix)) {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push_str(&format!("{path}:{}: {}\n", number + 1, line.trim()));
            }
        }
    }
    found
}

#[test]
fn only_the_boundaries_name_a_boundary() {
    let names: Vec<&str> = table::all().iter().map(|boundary| boundary.name()).collect();
    let own =
        ["harness/src/boundary/", "harness/src/boundary.rs", "harness/src/reference", "harness/src/table"];
    let may: Vec<&str> = own.into_iter().chain(EXAMPLES).collect();
    let found = places("harness/src", &may, &names);
    assert!(found.is_empty(), "only boundary/, reference/ and table.rs may name a boundary:\n{found}");
}

/// Everything else is handed the boundary, or those that it may be, as a value.
#[test]
fn only_what_a_user_starts_knows_the_table() {
    let may = ["harness/src/table", "harness/src/cli", "harness/src/test_runner.rs"];
    let found = places("harness/src", &may, &["table::", "::table;"]);
    assert!(found.is_empty(), "only cli/ and test_runner.rs may use the table of boundaries:\n{found}");
}

#[test]
fn only_reports_print() {
    // Peers that we play own their standard streams; everything else goes through report/.
    let may = [
        "harness/src/report",
        "harness/src/fixture/",
        "harness/src/transport/child/shim.rs",
        "harness/src/load.rs",
        "harness/src/runner/probe.rs",
        "harness/src/main.rs",
    ];
    let words = ["println!", "print!", "eprintln!", "eprint!", "io::stdout()", "io::stderr()"];
    let found = places("harness/src", &may, &words);
    assert!(found.is_empty(), "output goes through harness/src/report/ only:\n{found}");
}

#[test]
fn what_is_written_is_private() {
    // What the harness plays has the permissions that a plan says; temporary folders are private anyway.
    let may = [
        "harness/src/private.rs",
        "harness/src/fixture",
        "harness/src/lab",
        "harness/src/bench/",
        "harness/src/table/tests/",
        "harness/src/load.rs",
        "harness/src/transport/child/tests.rs",
    ];
    let words = ["File::create", "fs::write", "create_dir", "OpenOptions", "File::options"];
    let found = places("harness/src", &may, &words);
    assert!(found.is_empty(), "files that hold what peers said are written by private.rs:\n{found}");
}

#[test]
fn only_main_reads_the_environment() {
    // The tests of a Rust project have a `main` that is one line: for them `test_runner.rs` is it.
    let may = ["harness/src/main.rs", "harness/src/test_runner.rs"];
    let words = ["env::var(", "env::var_os(", "env::vars(", "env::vars_os("];
    let found = places("harness/src", &may, &words);
    assert!(found.is_empty(), "environment variables are read in main.rs and passed down:\n{found}");
}

#[test]
fn the_reference_is_sans_io() {
    let words = [
        "std::fs",
        "TcpStream",
        "TcpListener",
        "UdpSocket",
        "ToSocketAddrs",
        "std::process",
        "std::env",
        "Instant::now",
        "SystemTime",
        "std::thread",
        "rustix::",
        "std::io::stdin",
        "std::io::stdout",
    ];
    let may = ["reference-impl/src/io", "reference-impl/src/bin"];
    let found = places("reference-impl/src", &may, &words);
    assert!(found.is_empty(), "I/O and clocks belong to io/ and bin/:\n{found}");
}

#[test]
fn the_reference_depends_on_nothing_in_the_workspace() {
    let manifest = fs::read_to_string(root().join("reference-impl/Cargo.toml")).unwrap();
    assert!(!manifest.contains("peerproof.") && !manifest.contains("peerproof ="), "{manifest}");
}

#[test]
fn every_boundary_has_its_folders() {
    for boundary in table::all() {
        let name = boundary.name();
        for folder in [
            format!("reference-impl/src/{name}"),
            format!("harness/src/boundary/{name}"),
            format!("corpora/{name}/cases"),
            format!("corpora/{name}/schemas"),
            format!("corpora/{name}/seeds/accept"),
            format!("corpora/{name}/seeds/reject"),
            format!("corpora/{name}/seeds/either"),
            format!("corpora/{name}/conversations"),
        ] {
            assert!(root().join(&folder).is_dir(), "the boundary {name} has no folder {folder}");
        }
        let clauses = format!("corpora/{name}/clauses.toml");
        assert!(root().join(&clauses).is_file(), "the boundary {name} has no {clauses}");
    }
}

#[test]
fn corpora_hold_recipes_and_no_blobs() {
    const BYTES_MAX: u64 = 64 << 10;
    for (path, _) in files(&root().join("corpora")) {
        let bytes = fs::metadata(&path).unwrap().len();
        assert!(bytes <= BYTES_MAX, "{} has {bytes} bytes; write a recipe instead", path.display());
    }
}

#[test]
fn modules_stay_readable() {
    const LINES_MAX: usize = 700;
    let mut faults = Vec::new();
    for folder in ["harness/src", "reference-impl/src"] {
        for (path, text) in sources(folder) {
            let lines = text.lines().count();
            if lines > LINES_MAX {
                faults.push(format!("{} has {lines} lines: which two things is it?", relative(&path)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_tree_speaks_of_the_project_alone() {
    // Built from parts, so that this file does not name what it looks for.
    let words = [["..", "/shared"].concat(), ["/wo", "rk/"].concat(), ["helper", " session"].concat()];
    let mut faults = Vec::new();
    for (path, text) in files(&root()) {
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word.as_str())) {
                faults.push(format!("{}:{}: {}", relative(&path), number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Pieces that come while a peer still starts are one to it: a canary is answered before. A process that is sent one
/// thing and no more has none; there the first piece waits until it is read.
#[test]
fn what_is_cut_is_sent_behind_a_canary() {
    let mut cut = 0;
    let mut early = Vec::new();
    for boundary in table::all() {
        for reference in table::played(boundary).references() {
            let facts = table::played(boundary).facts_of(&reference);
            for check in boundary.checks() {
                let Ok(plan) = (check.planner)(&facts, &mut Rng::new(1).fork(&check.id)) else { continue };
                for (at, step) in plan.steps.iter().enumerate() {
                    let Act::Send { chunking, .. } = &step.act else { continue };
                    if *chunking == Chunking::Whole || plan.sessions[step.session].command == HTTP {
                        continue;
                    }
                    cut += 1;
                    let is_ready = plan.steps[..at].iter().any(|it| it.session == step.session && it.canary);
                    let sends = plan.steps.iter().filter(|it| it.session == step.session);
                    let sends = sends.filter(|it| match &it.act {
                        Act::Send { payload, .. } => payload.len(&Vars::new()) > 0,
                        _ => false,
                    });
                    if !is_ready && sends.count() > 1 {
                        early.push(check.id.clone());
                    }
                }
            }
        }
    }
    early.dedup();
    assert_eq!(early, Vec::<String>::new());
    assert!(cut > 50, "{cut}");
}
