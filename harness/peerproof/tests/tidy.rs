//! Rules of the source tree as tests. Each failure names the place and the remedy.

#![allow(clippy::unwrap_used, reason = "clippy takes helpers of an integration test for library code")]

#[path = "tidy/circles.rs"]
mod circles;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use peerproof::table;
use peerproof_engine::data::carriage::HTTP;
use peerproof_engine::data::payload::Vars;
use peerproof_engine::data::plan::{Act, Chunking};
use peerproof_engine::data::rng::Rng;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `folder` with their text, except binary files.
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

/// Code of a source file, without comments and its test module.
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
            let is_named_so = check.id.ends_with("/canary/plain-request");
            assert_eq!(check.first_canary, is_named_so, "{}: a first canary is called so", check.id);
            assert!(check.title.ends_with('.'), "{}: the title is no sentence", check.id);
            for clause in &check.clauses {
                assert!(clauses.contains_key(clause), "{} names the unknown clause {clause}", check.id);
            }
        }
    }
}

/// Files whose help texts and error messages contain examples.
const EXAMPLES: [&str; 4] = [
    "harness/cli/src/check.rs",
    "harness/cli/src/init.rs",
    "harness/cli/src/matrix.rs",
    "harness/cli/src/peer.rs",
];

/// Places in the code below `folder`, outside `may`, that contain one of `words`.
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

/// Places in the sources of every crate below `harness/`.
fn of_harness(may: &[&str], words: &[&str]) -> String {
    crates().iter().map(|krate| places(&format!("harness/{krate}/src"), may, words)).collect()
}

/// Folders of the crates below `harness/`.
fn crates() -> Vec<String> {
    let folders = fs::read_dir(root().join("harness")).unwrap().map(|entry| entry.unwrap());
    let crates = folders.filter(|entry| entry.path().join("Cargo.toml").is_file());
    let mut found: Vec<String> =
        crates.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    found.sort();
    assert!(found.len() >= 7, "{found:?}");
    found
}

#[test]
fn only_the_boundaries_name_a_boundary() {
    let names: Vec<&str> = table::all().iter().map(|boundary| boundary.name()).collect();
    for folder in ["harness/peerproof/src", "harness/cli/src"] {
        let may: Vec<&str> = ["harness/peerproof/src/table"].into_iter().chain(EXAMPLES).collect();
        let found = places(folder, &may, &names);
        assert!(found.is_empty(), "only its own crate, played/ and table.rs may name a boundary:\n{found}");
    }
}

/// The engine with its tests, documentation and example contains no name of a boundary and no clause id.
#[test]
fn the_engine_speaks_of_no_boundary() {
    let mut words = BTreeSet::new();
    for boundary in table::all() {
        words.extend([boundary.name().to_owned(), boundary.name().replace('_', "-")]);
        let prefix = |id: &str| id.split_once('-').map(|(prefix, _)| format!("{prefix}-"));
        words.extend(boundary.clauses().iter().filter_map(|clause| prefix(&clause.id.0)));
    }
    let begins = |line: &str, at: usize| !line[..at].ends_with(|it: char| it.is_ascii_alphanumeric());
    let mut found = String::new();
    for (path, text) in files(&root().join("harness/engine")) {
        for (number, line) in text.lines().enumerate() {
            let mut named = words.iter().flat_map(|word| line.match_indices(word.as_str()));
            if named.any(|(at, _)| begins(line, at)) {
                found.push_str(&format!("{}:{}: {}\n", relative(&path), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "the engine knows no boundary:\n{found}");
}

/// Workspace crates that a crate below `harness/` depends on, tests included.
fn workspace_dependencies(krate: &str) -> BTreeSet<String> {
    let manifest = root().join("harness").join(krate).join("Cargo.toml");
    let text =
        fs::read_to_string(&manifest).unwrap_or_else(|error| panic!("{}: {error}", manifest.display()));
    let names = text.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| *name == "peerproof" || name.starts_with("peerproof-")).map(str::to_owned).collect()
}

/// cli → peerproof → played and boundaries → engine. Engine and judges never depend on the reference.
#[test]
fn crates_depend_downward_only() {
    let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<String>>();
    let boundaries: Vec<String> =
        table::all().iter().map(|it| format!("peerproof-{}", it.name().replace('_', "-"))).collect();
    assert_eq!(workspace_dependencies("engine"), of(&[]));
    // A contract on top of another one shares its model.
    let more = |name: &str| if name == "mcp" { of(&["peerproof-json-rpc"]) } else { of(&[]) };
    for boundary in table::all() {
        let mut own = more(boundary.name());
        own.insert("peerproof-engine".to_owned());
        assert_eq!(workspace_dependencies(boundary.name()), own, "{}", boundary.name());
    }
    let mut played = of(&["peerproof-engine", "peerproof-reference"]);
    played.extend(boundaries.iter().cloned());
    assert_eq!(workspace_dependencies("played"), played);
    let mut peerproof = of(&["peerproof-engine", "peerproof-played"]);
    peerproof.extend(boundaries.iter().cloned());
    assert_eq!(workspace_dependencies("peerproof"), peerproof);
    // Its tests use words of boundaries.
    let mut cli = workspace_dependencies("cli");
    cli.retain(|name| !boundaries.contains(name));
    assert_eq!(cli, of(&["peerproof", "peerproof-engine"]));
}

/// Rooms of the engine, each built on those before it.
const ROOMS: [&str; 4] = ["data", "contract", "drive", "run"];

/// Code of a crate, by its folder.
fn code_of(krate: &str) -> Vec<(String, String)> {
    let src = format!("{krate}/src/");
    let below = |path: &Path| relative(path).trim_start_matches(&src).to_owned();
    circles::code(sources(&src).into_iter().map(|(path, text)| (below(&path), text)).collect())
}

#[test]
fn rooms_of_the_engine_use_only_those_below() {
    let floor = |room: &str| ROOMS.iter().position(|it| *it == room);
    let edges = circles::edges(&code_of("harness/engine"), "");
    assert!(edges.len() > 2, "most rooms use another: {edges:?}");
    for (room, used) in edges {
        for (other, place) in used {
            assert!(floor(&other) < floor(&room), "{place}: `{room}` uses `{other}`, which is built on it");
        }
    }
}

/// The modules of each folder use each other in one direction, so that each can be read without those above it.
#[test]
fn modules_use_only_those_below() {
    let harness = crates().into_iter().map(|krate| format!("harness/{krate}"));
    let mut found = String::new();
    for krate in harness.chain(["reference-impl".to_owned(), "benches".to_owned()]) {
        let code = code_of(&krate);
        for folder in circles::folders(&code) {
            if let Some(circle) = circles::circle(&circles::edges(&code, folder)) {
                found.push_str(&format!("{krate}/src/{folder}\n{circle}\n"));
            }
        }
    }
    assert!(found.is_empty(), "move what a line of each circle names to a module below both:\n{found}");
}

/// Tests of a user compile no command line.
#[test]
fn only_the_command_line_needs_what_it_is_made_of() {
    for krate in crates().iter().filter(|krate| *krate != "cli") {
        let text = fs::read_to_string(root().join("harness").join(krate).join("Cargo.toml")).unwrap();
        for name in ["clap", "indicatif"] {
            let is_used = text.lines().any(|line| line.split(['.', ' ']).next() == Some(name));
            assert!(!is_used, "harness/{krate} depends on {name}");
        }
    }
}

/// A project that depends on `peerproof` for its tests compiles the boundaries, but not the reference peers.
#[test]
fn a_project_that_tests_its_own_peer_compiles_no_reference() {
    let tree = std::process::Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--locked",
            "--package",
            "peerproof",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("peerproof-toolhost") && names.contains("libtest-mimic"), "{names:?}");
    for name in ["peerproof-played", "peerproof-reference", "seccompiler", "landlock"] {
        assert!(!names.contains(name), "harness/peerproof depends on {name} without the feature `reference`");
    }
}

/// All other code receives the boundary, or the possible ones, as a value.
#[test]
fn only_what_a_user_starts_knows_the_table() {
    let may =
        ["harness/peerproof/src/table", "harness/peerproof/src/hidden.rs", "harness/peerproof/src/suite.rs"];
    let named = ["::table::", " table::", "(table::", "::table;"];
    let found = places("harness/peerproof/src", &may, &named);
    assert!(
        found.is_empty(),
        "only the command line and cargo_test may use the table of boundaries:\n{found}"
    );
}

/// Embedded files must lie in the crate's folder, or `cargo package` omits them.
#[test]
fn crates_reach_their_corpora_through_a_link() {
    for boundary in table::all() {
        let name = boundary.name();
        let link = root().join("harness").join(name).join("corpora");
        let to = fs::read_link(&link).unwrap_or_else(|error| panic!("{}: {error}", link.display()));
        assert_eq!(to, Path::new("../../corpora").join(name));
        let found = places(&format!("harness/{name}/src"), &[], &["../../corpora"]);
        assert!(found.is_empty(), "harness/{name}/corpora is the way to the corpora:\n{found}");
        let build = root().join("harness").join(name).join("build.rs");
        assert!(build.is_file(), "{} is missing: new files would go unseen", build.display());
    }
}

#[test]
fn only_reports_print() {
    // Played peers own their standard streams; everything else prints through report/.
    let may = [
        "harness/peerproof/src/report",
        "harness/engine/src/drive/fixture/",
        "harness/engine/src/drive/transport/child/shim.rs",
        "harness/engine/src/drive/slowdown.rs",
        "harness/engine/src/run/runner/probe.rs",
        // Sources of tools.
        "harness/run_queue/src/genesis/kit.rs",
    ];
    let words = ["println!", "print!", "eprintln!", "eprint!", "io::stdout()", "io::stderr()"];
    let found = of_harness(&may, &words);
    assert!(found.is_empty(), "output goes through harness/peerproof/src/report/ only:\n{found}");
}

#[test]
fn what_is_written_is_private() {
    // Fixtures have the permissions of their plan; temporary folders are private anyway.
    let may = [
        "harness/engine/src/drive/private.rs",
        "harness/engine/src/drive/fixture",
        "harness/engine/src/drive/lab",
        "harness/engine/src/run/bench/",
        "harness/engine/src/drive/slowdown.rs",
        "harness/engine/src/drive/transport/child/tests.rs",
        "harness/engine/src/run/runner/confirm/tests.rs",
        "harness/peerproof/src/table/tests/",
        // Sources of tools.
        "harness/run_queue/src/genesis/kit.rs",
        // Man pages, and the summary in a file created by GitHub.
        "harness/cli/src/generate.rs",
        "harness/cli/src/github.rs",
    ];
    let words = ["File::create", "fs::write", "create_dir", "OpenOptions", "File::options"];
    let found = of_harness(&may, &words);
    assert!(found.is_empty(), "files that hold what peers said are written by private.rs:\n{found}");
}

#[test]
fn only_main_reads_the_environment() {
    // A test target of a Rust project has a one-line `main`: for it, `suite.rs` plays that part.
    let may = ["harness/cli/src/main.rs", "harness/peerproof/src/suite.rs"];
    let words = ["env::var(", "env::var_os(", "env::vars(", "env::vars_os("];
    let found = of_harness(&may, &words);
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
            format!("harness/{name}/src"),
            format!("corpora/{name}/cases"),
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

/// Code outside the crates that covers all boundaries uses the names of folders and files, or names each boundary.
#[test]
fn whatever_goes_over_boundaries_knows_each() {
    let read =
        |file: &str| fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let names = |folder: &str, extension: &str| -> Vec<String> {
        let files = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_some_and(|it| it == extension));
        files.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
    };
    let (targets, fuzz) = (names("fuzz/fuzz_targets", "rs"), read("fuzz/Cargo.toml"));
    let peers = names("corpora/peers/python", "toml");
    let peers: String = peers.iter().map(|peer| read(&format!("corpora/peers/python/{peer}.toml"))).collect();
    let mut faults = Vec::new();
    for boundary in table::all() {
        let name = boundary.name();
        let word = format!("peerproof check {name} ");
        if !read("README.md").contains(&word) {
            faults.push(format!("README.md has nothing for the boundary {name}: no {word:?} in it"));
        }
        if !root().join(format!("harness/golden/{name}.txt")).is_file() {
            faults.push(format!(
                "harness/golden/ has no record of the boundary {name}: harness/golden.sh writes it"
            ));
        }
        if !targets.iter().any(|target| target.starts_with(&format!("{name}_"))) {
            faults.push(format!("no fuzz target is called after the boundary {name}"));
        }
        if !peers.contains(&format!("boundary = \"{name}\"")) {
            faults.push(format!("corpora/peers/python/ has no peer of the boundary {name}"));
        }
    }
    for target in &targets {
        let is_named = table::all().iter().any(|it| target.starts_with(&format!("{}_", it.name())));
        let is_built = fuzz.contains(&format!("name = \"{target}\"\npath = \"fuzz_targets/{target}.rs\""));
        if !is_named || !is_built {
            faults.push(format!(
                "fuzz/fuzz_targets/{target}.rs: call it BOUNDARY_PROPERTY and add it to fuzz/Cargo.toml"
            ));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
    let folders = crates().into_iter().map(|krate| format!("harness/{krate}/src"));
    for folder in folders.chain(["reference-impl/src".to_owned()]) {
        for (path, text) in sources(&folder) {
            let lines = text.lines().count();
            if lines > LINES_MAX {
                faults.push(format!("{} has {lines} lines: which two things is it?", relative(&path)));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A docstring names its subject, or says in a verb what the item does; see docs/contributing/style.md.
#[test]
fn docstrings_begin_with_a_noun_or_a_verb() {
    const OTHERS: [&str; 7] = ["What", "Whether", "Where", "How", "The same", "Such", "One that"];
    let mut faults = Vec::new();
    for folder in ["benches", "fuzz", "harness", "reference-impl"] {
        for (path, text) in sources(folder) {
            let mut is_inside = false;
            for (at, line) in text.lines().enumerate() {
                let line = line.trim_start();
                let docs = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
                let begins = |word: &&str| {
                    let rest = docs.and_then(|docs| docs.trim_start().strip_prefix(*word));
                    rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
                };
                if !is_inside && OTHERS.iter().any(begins) {
                    faults.push(format!("{}:{}: {line}", relative(&path), at + 1));
                }
                is_inside = docs.is_some();
            }
        }
    }
    assert!(faults.is_empty(), "begin with a noun or a verb:\n{}", faults.join("\n"));
}

#[test]
fn the_tree_speaks_of_the_project_alone() {
    // Built from parts, so that this file does not contain the words it looks for.
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

/// Tests that `cargo test` omits are built and listed, and one command in CONTRIBUTING runs them: one binary, one word.
/// The script of the mutants runs the judge.
#[test]
fn tests_are_left_out_for_being_slow_and_run_by_one_command() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    assert!(
        text.contains("cargo test --workspace --test it -- --ignored"),
        "CONTRIBUTING tells no slow tests"
    );
    let (mut slow, mut faults) = (0, Vec::new());
    for (path, text) in files(&root()) {
        let path = relative(&path);
        if !path.ends_with(".rs") || path == "reference-impl/tests/black_box.rs" {
            continue;
        }
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.trim().starts_with("#[ignore"))
        {
            let is_slow = line.trim() == "#[ignore = \"slow, see CONTRIBUTING.md\"]";
            if is_slow && path.starts_with("harness/cli/tests/it/") {
                slow += 1;
            } else {
                faults.push(format!("{path}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty() && slow > 10, "{slow} slow tests, and\n{}", faults.join("\n"));
}

/// Paths in backticks in a document, except patterns and those with a placeholder.
fn named_paths(text: &str) -> Vec<&str> {
    let words = text.lines().filter(|line| !line.starts_with("    ")).flat_map(|line| {
        // Every second part is in backticks.
        line.split('`').skip(1).step_by(2)
    });
    let is_path = |word: &&str| {
        let fixed = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte));
        let open = word.split('/').any(|part| ["NAME", "TARGET"].iter().any(|it| part.contains(it)));
        let is_file =
            [".rs", ".md", ".toml", ".sh", ".json", ".yml", ".py"].iter().any(|end| word.ends_with(end));
        fixed
            && !open
            && !word.starts_with('/')
            && (is_file || word.ends_with('/') || word.matches('/').count() > 1)
    };
    words.filter(is_path).collect()
}

#[test]
fn documents_name_what_is_there() {
    let there: Vec<String> = files(&root()).iter().map(|(path, _)| format!("/{}", relative(path))).collect();
    let mut faults = Vec::new();
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let named = named_paths(&text);
        assert!(named.len() > 15, "{document}: {named:?}");
        for name in named {
            let file = format!("/{}", name.trim_end_matches('/'));
            let folder = format!("{file}/");
            if !there.iter().any(|path| path.ends_with(&file) || path.contains(&folder)) {
                faults.push(format!("{document} names `{name}`, which is nowhere"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// A starting peer reads several pieces as one, so an answered canary comes first. A process with a single message has
/// no canary; its first piece waits until it is read.
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
