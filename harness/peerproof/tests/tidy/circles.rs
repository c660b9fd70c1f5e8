//! Import circles between the modules of a folder. `x.rs` and the folder `x` are one module.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Modules that each module's code names, with the first place as `file:line`.
pub(crate) type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// Code of a crate: paths below `src` and texts, without files of tests.
pub(crate) fn code(files: Vec<(String, String)>) -> Vec<(String, String)> {
    let tests: BTreeSet<String> = files.iter().flat_map(|(path, text)| test_modules(path, text)).collect();
    let is_test = |path: &str| {
        let stem = path.trim_end_matches(".rs");
        tests.iter().any(|test| {
            stem.strip_prefix(test.as_str()).is_some_and(|it| it.is_empty() || it.starts_with('/'))
        })
    };
    let is_code = |path: &str| path != "lib.rs" && path != "main.rs" && !is_test(path);
    let code = files.into_iter().filter(|(path, _)| is_code(path));
    code.map(|(path, text)| (path, super::code(&text))).collect()
}

/// Folders of a crate, each with `/` behind it; the first is the crate itself.
pub(crate) fn folders(code: &[(String, String)]) -> BTreeSet<&str> {
    let ends = |path: &'_ str| path.match_indices('/').map(|(at, _)| at + 1).collect::<Vec<_>>();
    code.iter().flat_map(|(path, _)| [0].into_iter().chain(ends(path)).map(|end| &path[..end])).collect()
}

/// Edges between the modules of a folder.
pub(crate) fn edges(code: &[(String, String)], folder: &str) -> Edges {
    let inside = || code.iter().filter_map(|(path, text)| Some((path.strip_prefix(folder)?, text)));
    let modules: BTreeSet<&str> = inside().map(|(path, _)| module(path)).collect();
    let root = format!("crate::{}", folder.replace('/', "::"));
    let mut edges = Edges::new();
    for (path, code) in inside() {
        for (at, to) in named(code, &root, path.matches('/').count() + 1) {
            if to != module(path) && modules.contains(to) {
                let line = code[..at].matches('\n').count() + 1;
                let from = edges.entry(module(path).to_owned()).or_default();
                from.entry(to.to_owned()).or_insert_with(|| format!("{folder}{path}:{line}"));
            }
        }
    }
    edges
}

/// Top-level module of a file.
fn module(path: &str) -> &str {
    path.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// Paths, without `.rs`, of test-only modules in files of their own.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let folder = if path == "lib.rs" { String::new() } else { format!("{}/", path.trim_end_matches(".rs")) };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]").filter_map(|pair| {
        let (_, declaration) = pair[1].split_once("mod ").filter(|(before, _)| !before.contains("//"))?;
        declaration.strip_suffix(';')
    });
    declared.map(|name| format!("{folder}{name}")).collect()
}

/// Names after the path `root` of a folder, each with its offset in `code`. `depth` is the number of `super` from the
/// file to the folder.
fn named<'c>(code: &'c str, root: &str, depth: usize) -> Vec<(usize, &'c str)> {
    let above = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in [root, &above] {
        for (at, _) in code.match_indices(root) {
            let before = &code[..at];
            if !before.ends_with(|it: char| it.is_alphanumeric() || it == '_' || it == ':') {
                found.extend(heads(&code[at + root.len()..]).into_iter().map(|name| (at, name)));
            }
        }
    }
    found
}

/// First names of a path, or of each path in a brace group.
fn heads(path: &str) -> Vec<&str> {
    let head = |path: &str| path.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(path.len());
    let Some(group) = path.trim_start().strip_prefix('{') else { return vec![&path[..head(path)]] };
    let (mut open, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, it) in group.char_indices() {
        match it {
            '{' => open += 1,
            '}' if open == 0 => {
                parts.push(&group[begin..at]);
                break;
            }
            '}' => open -= 1,
            ',' if open == 0 => {
                parts.push(&group[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.into_iter().map(str::trim_start).map(|part| &part[..head(part)]).collect()
}

/// A shortest circle, one edge per line: `from → to  file:line`.
pub(crate) fn circle(edges: &Edges) -> Option<String> {
    let circles = edges.keys().filter_map(|from| shortest(edges, from));
    circles.min_by_key(Vec::len).map(|circle| {
        let line = |(from, to): (&str, &str)| format!("{from} → {to}  {}\n", edges[from][to]);
        circle.into_iter().map(line).collect()
    })
}

/// Edges of a shortest path from a module back to itself.
fn shortest<'e>(edges: &'e Edges, start: &'e str) -> Option<Vec<(&'e str, &'e str)>> {
    let mut reached: BTreeMap<&str, &str> = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(from) = open.pop_front() {
        for to in edges.get(from).into_iter().flat_map(BTreeMap::keys) {
            if !reached.contains_key(to.as_str()) {
                reached.insert(to, from);
                open.push_back(to);
            }
        }
    }
    let mut way = vec![(*reached.get(start)?, start)];
    while let Some((from, _)) = way.last().filter(|(from, _)| *from != start) {
        way.push((reached[from], from));
    }
    way.reverse();
    Some(way)
}

#[test]
fn a_circle_is_found_in_a_tree_that_has_one() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let mut tree = vec![
        file("lib.rs", "pub mod a;\n#[cfg(test)]\nmod toy;\nuse crate::a::Thing;\n"),
        file("a.rs", "//! Not crate::d.\n\nuse crate::a::inner;\nuse crate::b::Thing;\n"),
        file("a/inner.rs", "fn go() {\n    crate::b::go(super::Thing, other_crate::d::Thing);\n}\n"),
        file("b.rs", "use crate::{\n    c::{self, a},\n    d,\n};\n"),
        file("c/deep.rs", "pub(crate) use super::super::a::Thing;\n"),
        file("d.rs", "#[cfg(test)]\nmod slow;\n\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
        file("d/slow.rs", "use crate::a;\n"),
        file("d/a.rs", "use super::{b, Thing};\n"),
        file("d/b/c.rs", "use super::super::{super::c, b::d};\n\nuse crate::d::a::Thing;\n"),
        file("toy.rs", "use crate::b;\n"),
    ];
    let found = circle(&edges(&code(tree.clone()), "")).unwrap();
    assert_eq!(found, "a → b  a.rs:4\nb → c  b.rs:1\nc → a  c/deep.rs:1\n");
    tree.retain(|(path, _)| path != "c/deep.rs");
    let code = code(tree);
    assert_eq!(folders(&code).into_iter().collect::<Vec<_>>(), ["", "a/", "d/", "d/b/"]);
    assert_eq!(circle(&edges(&code, "d/")).unwrap(), "a → b  d/a.rs:1\nb → a  d/b/c.rs:3\n");
    assert_eq!(circle(&edges(&code, "")), None);
    assert_eq!(
        edges(&code, "").into_iter().map(|(from, to)| (from, to.into_keys().collect())).collect::<Vec<_>>(),
        [("a".to_owned(), vec!["b".to_owned()]), ("b".to_owned(), vec!["d".to_owned()])]
    );
}
