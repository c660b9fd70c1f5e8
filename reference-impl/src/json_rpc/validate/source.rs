//! Source code split into code, strings and comments, with a check of its brackets.

use super::Family;

/// Kind of a part of a source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Code,
    Comment,
    String,
}

/// Largest number of open brackets; deeper ones are reported as too deep.
const OPEN_MAX: usize = 10_000;

/// Calls `see` for each part of `code` with its byte range. Returns the start and kind of an unterminated string or
/// comment.
pub(super) fn parts(
    code: &str,
    family: Family,
    mut see: impl FnMut(Part, std::ops::Range<usize>),
) -> Option<(usize, Part)> {
    let text = code.as_bytes();
    let starts = |at: usize, what: &[u8]| text.get(at..).is_some_and(|rest| rest.starts_with(what));
    let (hash, template, triple, lifetimes) = match family {
        Family::Hash { triple } => (true, false, triple, false),
        Family::C { template, lifetimes } => (false, template, false, lifetimes),
        Family::Json | Family::Toml | Family::Other => (false, false, false, false),
    };
    let (mut at, mut from) = (0, 0);
    while let Some(byte) = text.get(at) {
        let (part, end) = match byte {
            b'#' if hash => (Part::Comment, Some(line_end(text, at))),
            b'/' if !hash && starts(at, b"//") => (Part::Comment, Some(line_end(text, at))),
            b'/' if !hash && starts(at, b"/*") => (Part::Comment, closed(text, at + 2, b"*/")),
            b'"' | b'\'' if triple && starts(at, &[*byte; 3]) => {
                (Part::String, closed(text, at + 3, &[*byte; 3]))
            }
            b'\'' if lifetimes && !is_char(text, at) => {
                at += 1;
                continue;
            }
            b'`' if template => (Part::String, quoted(text, at, false)),
            b'"' | b'\'' => (Part::String, quoted(text, at, !lifetimes)),
            _ => {
                at += 1;
                continue;
            }
        };
        see(Part::Code, from..at);
        let Some(end) = end else {
            see(part, at..text.len());
            return Some((at, part));
        };
        see(part, at..end);
        at = end;
        from = end;
    }
    see(Part::Code, from..text.len());
    None
}

fn line_end(text: &[u8], at: usize) -> usize {
    text.get(at..).and_then(|rest| memchr::memchr(b'\n', rest)).map_or(text.len(), |end| at + end)
}

fn closed(text: &[u8], at: usize, by: &[u8]) -> Option<usize> {
    memchr::memmem::find(text.get(at..)?, by).map(|end| at + end + by.len())
}

/// Offset after the string that begins at `at`; `None` if it is unterminated.
fn quoted(text: &[u8], at: usize, one_line: bool) -> Option<usize> {
    let quote = *text.get(at)?;
    let mut at = at + 1;
    loop {
        match text.get(at)? {
            b'\\' => at += 2,
            b'\n' if one_line => return None,
            byte if *byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
}

/// True if a character literal begins here, not a lifetime.
fn is_char(text: &[u8], at: usize) -> bool {
    let rest = text.get(at + 1..at + 12).or_else(|| text.get(at + 1..)).unwrap_or_default();
    if rest.first() == Some(&b'\\') {
        return true;
    }
    let length = match rest.first() {
        Some(0xF0..) => 4,
        Some(0xE0..) => 3,
        Some(0xC0..) => 2,
        _ => 1,
    };
    rest.get(length) == Some(&b'\'')
}

/// Unmatched brackets, and unterminated strings and comments, each with its position.
pub(super) fn unbalanced(code: &str, family: Family) -> Vec<(String, usize)> {
    let mut open: Vec<(u8, usize)> = Vec::new();
    let mut found = Vec::new();
    let unended = parts(code, family, |part, range| {
        if part != Part::Code || !found.is_empty() {
            return;
        }
        for (at, byte) in range.clone().zip(code.as_bytes().get(range).unwrap_or_default()) {
            let opener = match byte {
                b'(' | b'[' | b'{' => {
                    if open.len() == OPEN_MAX {
                        found.push(("brackets are nested too deeply".to_owned(), at));
                        return;
                    }
                    open.push((*byte, at));
                    continue;
                }
                b')' => b'(',
                b']' => b'[',
                b'}' => b'{',
                _ => continue,
            };
            match open.pop() {
                Some((last, _)) if last == opener => {}
                Some((last, from)) => {
                    let (last, byte) = (char::from(last), char::from(*byte));
                    found.push((format!("'{byte}' where '{last}' of byte {from} is open"), at));
                    return;
                }
                None => {
                    found.push((format!("'{}' closes nothing", char::from(*byte)), at));
                    return;
                }
            }
        }
    });
    if let Some((at, part)) = unended {
        let what = if part == Part::Comment { "comment" } else { "string" };
        found.push((format!("the {what} has no end"), at));
    } else if let (true, Some((bracket, at))) = (found.is_empty(), open.last()) {
        found.push((format!("'{}' is never closed", char::from(*bracket)), *at));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const JS: Family = Family::C { template: true, lifetimes: false };
    const RUST: Family = Family::C { template: false, lifetimes: true };
    const PYTHON: Family = Family::Hash { triple: true };

    #[test]
    fn brackets_in_strings_and_comments_do_not_count() {
        for (family, code) in [
            (JS, "f(a[0], {b: ')'}); // (\n/* [ */ `{${x}`"),
            (RUST, "fn f<'a>(x: &'a str) -> char { '{' } // )"),
            (RUST, "let s = \"multi\nline (\"; let c = '\\''; let d = 'é';"),
            (PYTHON, "x = [1, # (\n '''}\n''', \"(\"]"),
            (PYTHON, "x = (a // 2) + (b /* 2)"),
            (JS, "x /*/ ( */"),
            (JS, "x = 'a\\'(b'"),
            (JS, ""),
        ] {
            assert_eq!(unbalanced(code, family), [], "{code}");
        }
    }

    #[test]
    fn halves_are_found_where_they_stand() {
        for (family, code, at) in [
            (JS, "f(a", 1),
            (JS, "f)", 1),
            (JS, "f(]", 2),
            (JS, "{ x /* y", 4),
            (JS, "x = 'ab\ny'", 4),
            (PYTHON, "x = '''ab", 4),
            (RUST, "'a' (", 4),
            (RUST, "'é'('x", 4),
            (RUST, "'€'('x", 5),
            (RUST, "'😀'('x", 6),
            (RUST, "`(`", 1),
            (JS, "# (", 2),
            (JS, "/* x */(", 7),
        ] {
            let found = unbalanced(code, family);
            assert_eq!(found.first().map(|(_, at)| *at), Some(at), "{code}: {found:?}");
        }
        assert_eq!(unbalanced("/* x", JS), [("the comment has no end".to_owned(), 0)]);
        assert_eq!(unbalanced("'x", JS), [("the string has no end".to_owned(), 0)]);
    }
}
