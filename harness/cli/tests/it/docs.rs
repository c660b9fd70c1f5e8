//! Tests that the documentation agrees with the code: generated parts are current, links are valid, and examples work.
//!
//! `PEERPROOF_SNAPSHOTS=write cargo test -p peerproof-cli --test it docs` writes the generated parts again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peerproof::docs::{CLAUSES_MARK, KEYS_MARK, clauses, keys};
use peerproof::table;
use peerproof_engine::drive::config::Config;
use peerproof_engine::drive::config::json_schema::json_schema;
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};
use serde_json::Value;

use crate::start::{binary, peerproof};

/// Rust example of the README with this package's binary. It is compiled, not run.
#[allow(dead_code, reason = "its `main` is not called here")]
#[rustfmt::skip]
mod conformance;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares the part of a page after `mark`, or writes it.
fn generated(page: &str, mark: &str, text: &str) {
    let path = root().join("docs").join(page);
    let old = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
    let (head, _) = old.split_once(mark).unwrap_or_else(|| panic!("{page} has no line {mark}"));
    let new = format!("{head}{mark}\n{text}");
    if old == new {
        return;
    }
    if std::env::var("PEERPROOF_SNAPSHOTS").is_ok_and(|word| word == "write") {
        fs::write(&path, new).unwrap();
    } else {
        panic!("{page} is out of date; PEERPROOF_SNAPSHOTS=write cargo test --test it docs writes it anew");
    }
}

#[test]
fn contract_pages_list_every_clause() {
    for boundary in table::all() {
        generated(&format!("contract/{}.md", boundary.name()), CLAUSES_MARK, &clauses(boundary));
    }
}

#[test]
fn the_configuration_page_lists_every_key() {
    generated("reference/configuration.md", KEYS_MARK, &keys(&table::all()));
}

/// Codes in backticks of each section of the page about reason codes.
fn listed_codes() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("docs/reference/reason-codes.md")).unwrap();
    let (mut sections, mut title, mut is_title) = (BTreeMap::new(), String::new(), false);
    for event in Parser::new_ext(&text, pulldown_cmark::Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => (title, is_title) = (String::new(), true),
            Event::End(TagEnd::Heading(_)) => is_title = false,
            Event::Text(text) | Event::Code(text) if is_title => title.push_str(&text),
            Event::Code(code) => {
                sections.entry(title.clone()).or_insert_with(BTreeSet::new).insert(code.into_string());
            }
            _ => {}
        }
    }
    sections
}

/// Sections of the page about reason codes and the codes in a line of a golden record, such as
/// `toolhost/serve/a fail TH-1 refused` and `toolhost/serve/b untestable(no_role)`.
fn codes_of(line: &str) -> Vec<(&str, &str)> {
    let words: Vec<&str> = line.split(' ').collect();
    let boundary = words[0].split('/').next().unwrap_or_default();
    let is_reason = |word: &str| word.starts_with(|first: char| first.is_ascii_lowercase());
    let is_clause = |word: &str| word.starts_with(|first: char| first.is_ascii_uppercase());
    let reasons = words.windows(2).filter(|pair| is_clause(pair[0]) && is_reason(pair[1]));
    let untestable = words.get(1).and_then(|verdict| verdict.strip_prefix("untestable("));
    let detail = untestable.map(|detail| ("Codes of untestable", detail.trim_end_matches(')')));
    reasons.map(|pair| (boundary, pair[1])).chain(detail).collect()
}

#[test]
fn every_code_of_the_golden_records_is_explained() {
    let listed = listed_codes();
    let has = |section: &str, code: &str| listed.get(section).is_some_and(|codes| codes.contains(code));
    let (mut found, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(root().join("harness/golden")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for (section, code) in text.lines().filter(|line| line.contains('/')).flat_map(codes_of) {
            found.insert(code.to_owned());
            if !has(section, code) && !has("Common codes", code) {
                missing.insert(format!("{section}: {code}"));
            }
        }
    }
    assert!(found.len() > 300, "{}", found.len());
    assert!(missing.is_empty(), "docs/reference/reason-codes.md lacks {missing:#?}");
}

/// Markdown files of the project for readers: the book and the entry pages.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)),
    );
    found.sort();
    found
}

/// Anchor of a heading, as on GitHub and in mdBook.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

/// Anchors and relative links of a page.
fn read(path: &Path) -> (BTreeSet<String>, Vec<String>) {
    let text = fs::read_to_string(path).unwrap();
    let (mut anchors, mut links, mut heading) = (BTreeSet::new(), Vec::new(), None);
    for event in Parser::new(&text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|text| anchor(&text))),
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            Event::Start(Tag::Link { dest_url, .. }) => links.push(dest_url.into_string()),
            _ => {}
        }
    }
    (anchors, links)
}

#[test]
fn links_between_pages_lead_somewhere() {
    let pages: BTreeMap<PathBuf, _> =
        pages().into_iter().map(|page| (page.canonicalize().unwrap(), read(&page))).collect();
    let mut dead = Vec::new();
    for (page, (anchors, links)) in &pages {
        for link in links.iter().filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => Ok(page.clone()),
                file => page.parent().unwrap().join(file).canonicalize(),
            };
            let is_there = target.is_ok_and(|target| {
                place.is_empty() || pages.get(&target).map_or(anchors, |(anchors, _)| anchors).contains(place)
            });
            if !is_there {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let book = root().join("docs");
    let (_, links) = read(&book.join("SUMMARY.md"));
    let listed: BTreeSet<PathBuf> = links
        .iter()
        .map(|link| book.join(link).canonicalize().unwrap_or_else(|_| panic!("{link}")))
        .collect();
    let missing: Vec<PathBuf> = pages()
        .into_iter()
        .map(|page| page.canonicalize().unwrap())
        .filter(|page| page.starts_with(book.canonicalize().unwrap()) && !page.ends_with("SUMMARY.md"))
        .filter(|page| !listed.contains(page))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_clause_has_an_anchor_that_explain_names() {
    for boundary in table::all() {
        let (anchors, _) = read(&root().join(format!("docs/contract/{}.md", boundary.name())));
        for clause in boundary.clauses() {
            let url = &clause.page;
            let (page, place) = url.split_once('#').unwrap();
            assert!(page.ends_with(&format!("/contract/{}.html", boundary.name())), "{url}");
            assert!(anchors.contains(place), "{url}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let assert = peerproof(folder.path()).args(["explain", "TH-REQ-02"]).assert().code(0);
    let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(text.contains("/contract/toolhost.html#th-req-02"), "{text}");
}

/// Fenced blocks of a language in all pages.
fn blocks(language: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let mut block: Option<String> = None;
        for event in Parser::new(&text) {
            match event {
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(word))) if *word == *language => {
                    block = Some(String::new());
                }
                Event::Text(text) => {
                    if let Some(block) = &mut block {
                        block.push_str(&text);
                    }
                }
                Event::End(TagEnd::CodeBlock) => {
                    found.extend(block.take().map(|block| (page.clone(), block)));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn configurations_in_pages_and_of_examples_fit_the_schema() {
    let schema = json_schema(&table::all());
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut texts: Vec<(PathBuf, String)> =
        blocks("toml").into_iter().filter(|(_, text)| text.starts_with("[peer]")).collect();
    for folder in ["python", "node", "sh"] {
        for entry in fs::read_dir(root().join("corpora/peers").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                texts.push((path.clone(), fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(texts.len() > 20, "{}", texts.len());
    for (path, text) in texts {
        let place = path.display();
        let value: Value = toml::from_str(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
        Config::parse(&text, "peerproof.toml", Path::new("/"), &table::all())
            .unwrap_or_else(|error| panic!("{place}: {error}\n{text}"));
        let errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{place}: {errors:?}");
    }
    let wrong: Value = toml::from_str("[peer]\nboundary = \"toolhost\"\ncomand = [\"x\"]").unwrap();
    assert!(!validator.is_valid(&wrong), "an unknown key is refused");
}

#[test]
fn completions_man_pages_and_schema_are_generated() {
    let folder = tempfile::tempdir().unwrap();
    let generate = |args: &[&str]| {
        let mut command = peerproof(folder.path());
        command.arg("generate").args(args);
        String::from_utf8(command.assert().code(0).get_output().stdout.clone()).unwrap()
    };
    for shell in ["bash", "zsh", "fish"] {
        assert!(generate(&["completions", shell]).contains("matrix"), "{shell}");
    }
    generate(&["man", "man1"]);
    assert!(fs::read_to_string(folder.path().join("man1/peerproof-check.1")).unwrap().contains(r"\-\-rung"));
    let schema: Value = serde_json::from_str(&generate(&["schema"])).unwrap();
    assert_eq!(schema, json_schema(&table::all()));
}

/// Section of a page about a minimal peer: its program, and the commands that check it.
fn minimal_peer(boundary: &str) -> (Option<String>, Vec<String>) {
    let text = fs::read_to_string(root().join(format!("docs/contract/{boundary}.md"))).unwrap();
    let section = text.split("\n## ").find(|section| section.starts_with("A minimal peer")).unwrap();
    let block = |language: &str| {
        let (_, rest) = section.split_once(&format!("```{language}\n"))?;
        Some(rest.split_once("\n```")?.0.to_owned())
    };
    let commands = block("sh").unwrap().replace("\\\n", " ");
    (block("python"), commands.lines().map(str::to_owned).collect())
}

/// Follows a page: stores its program, or takes the named example, and runs its commands.
fn passes_as_its_page_says(boundary: &str) {
    let (program, commands) = minimal_peer(boundary);
    assert!(!commands.is_empty());
    for command in commands {
        let folder = tempfile::tempdir().unwrap();
        let file = command.split(' ').find(|word| word.ends_with(".py")).unwrap();
        match &program {
            Some(text) => fs::write(folder.path().join(file), text).unwrap(),
            // Examples share a module next to them.
            None => {
                for entry in fs::read_dir(root().join("corpora/peers/python")).unwrap() {
                    let path = entry.unwrap().path();
                    if path.extension().is_some_and(|extension| extension == "py") {
                        fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
                    }
                }
            }
        }
        let arguments = command.strip_prefix("peerproof ").unwrap().replace('{', "'{").replace('}', "}'");
        let mut shell = crate::start::Command::new("sh");
        shell.current_dir(folder.path()).env("PEERPROOF", binary());
        shell.args(["-c", &format!("exec \"$PEERPROOF\" {arguments}")]);
        let assert = shell.timeout(Duration::from_secs(600)).assert();
        let output = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        assert!(output.contains("no fault seen"), "{command}\n{output}");
        assert.code(0);
    }
}

#[test]
fn the_rust_example_of_the_readme_is_compiled() {
    let examples = blocks("rust,ignore");
    let readme = examples.iter().find(|(page, _)| page.ends_with("README.md")).unwrap();
    assert_eq!(readme.1.replace("my_host", "peerproof"), include_str!("docs/conformance.rs"));
}

/// Makes a test per contract page.
macro_rules! minimal_peers {
    ($($name:ident)*) => {$(
        #[test]
        #[ignore = "slow, see CONTRIBUTING.md"]
        fn $name() {
            passes_as_its_page_says(stringify!($name));
        }
    )*};
}

mod minimal_peer_of {
    use super::passes_as_its_page_says;

    minimal_peers! { toolhost json_rpc policy_driver envelope python_tool run_log run_queue mcp }
}
