//! Wrong decisions on commands, for mutants of the selector.

use super::super::super::guard::{Admitted, Denied, FileKind, Files, Guard};

pub(super) fn refused<T>(why: &str) -> Result<T, Denied> {
    Err(Denied::Refused(why.to_owned()))
}

pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Decides as if every name were listed that is similar to a listed one by `is_like`.
pub(super) fn with_names(
    guard: &Guard,
    words: &[String],
    files: &dyn Files,
    is_like: impl Fn(&str, &str) -> bool,
) -> Result<Admitted, Denied> {
    let mut guard = guard.clone();
    let name = words.first().map(|word| base_name(word)).unwrap_or_default();
    if guard.allowed_programs.iter().any(|listed| is_like(name, listed)) {
        guard.allowed_programs.push(name.to_owned());
    }
    guard.admit(words, files)
}

/// Decides as if the whole file system were the script root.
pub(super) fn anywhere(guard: &Guard, words: &[String], files: &dyn Files) -> Result<Admitted, Denied> {
    Guard { script_root: "/".to_owned(), ..guard.clone() }.admit(words, files)
}

/// Ignores the options before the script in its decision, but starts the full command.
pub(super) fn without_options(
    guard: &Guard,
    words: &[String],
    files: &dyn Files,
    is_option: fn(&str) -> bool,
) -> Result<Admitted, Denied> {
    let Some((program, arguments)) = words.split_first() else { return guard.admit(words, files) };
    let script = arguments.iter().position(|argument| !is_option(argument)).unwrap_or(arguments.len());
    let rest = [std::slice::from_ref(program), &arguments[script..]].concat();
    let admitted = guard.admit(&rest, files)?;
    Ok(Admitted { argv: words.to_vec(), ..admitted })
}

/// Decides without the allowlist and the root if `is_first` returns true for the first argument.
pub(super) fn unsafe_if(
    guard: &Guard,
    words: &[String],
    files: &dyn Files,
    is_first: fn(Option<&str>) -> bool,
) -> Result<Admitted, Denied> {
    let admitted = guard.admit(words, files);
    let is_listed =
        words.first().is_some_and(|word| guard.allowed_programs.iter().any(|name| name == base_name(word)));
    if is_listed && is_first(words.get(1).map(String::as_str)) {
        return Guard { allows_unsafe: true, ..guard.clone() }.admit(words, files);
    }
    admitted
}

/// A file system whose paths are canonicalised by `spell`.
#[derive(Debug)]
pub(super) struct CanonicalFiles<'f> {
    pub(super) files: &'f dyn Files,
    pub(super) spell: fn(String) -> String,
}

impl Files for CanonicalFiles<'_> {
    fn kind(&self, path: &str) -> FileKind {
        self.files.kind(path)
    }

    fn canonical(&self, path: &str) -> Option<String> {
        self.files.canonical(path)?;
        Some((self.spell)(absolute(path, self.files)))
    }
}

/// A file system in which the path of `program` counts as canonical, even if it is a link.
#[derive(Debug)]
pub(super) struct Named<'f> {
    pub(super) files: &'f dyn Files,
    pub(super) program: String,
}

impl Files for Named<'_> {
    fn kind(&self, path: &str) -> FileKind {
        self.files.kind(path)
    }

    fn canonical(&self, path: &str) -> Option<String> {
        if path == self.program { Some(path.to_owned()) } else { self.files.canonical(path) }
    }
}

pub(super) fn absolute(path: &str, files: &dyn Files) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{}/{path}", files.canonical(".").unwrap_or_default())
    }
}

/// Removes `.` and `..` without following links.
pub(super) fn lexical(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Script of an interpreter's command.
pub(super) fn script(words: &[String]) -> &str {
    words.get(1).map_or("", String::as_str)
}

/// Replaces look-alike letters.
pub(super) fn plain(name: &str) -> String {
    let letter = |letter: char| match letter {
        '\u{430}' => 'a',
        '\u{435}' => 'e',
        '\u{43E}' => 'o',
        '\u{440}' => 'p',
        '\u{441}' => 'c',
        '\u{443}' => 'y',
        '\u{4BB}' => 'h',
        '\u{455}' => 's',
        '\u{501}' => 'd',
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        other => other,
    };
    name.chars().map(letter).collect()
}

/// Program that a command names, if it exists.
pub(super) fn program(guard: &Guard, word: &str, files: &dyn Files) -> String {
    let places = guard.path.iter().map(|folder| format!("{folder}/{word}"));
    let found = places.into_iter().find(|place| matches!(files.kind(place), FileKind::Program(_)));
    if word.contains('/') { word.to_owned() } else { found.unwrap_or_default() }
}

pub(super) fn is_own_script(program: &str, files: &dyn Files) -> bool {
    matches!(files.kind(program), FileKind::Program(Some([b'#', b'!', ..])))
}
