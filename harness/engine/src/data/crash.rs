//! Errors that a peer wrote before it died: tracebacks, uncaught exceptions and panics.
//!
//! Crashes at one place of a program by one kind of error are one fault, whichever message led to them. Line numbers do not
//! identify a place, since each edit moves them.

/// Parts of the paths of files that belong to a library or to the language, not to the peer.
const FOREIGN: [&str; 9] = [
    "/site-packages/",
    "/dist-packages/",
    "/lib/python",
    "/lib64/python",
    "/node_modules/",
    "node:",
    "<frozen ",
    "/go/src/runtime/",
    "/rustc/",
];

/// Maximum length of an identity, characters: a peer may write endless lines.
const IDENTITY_CHARS_MAX: usize = 200;

/// Beginnings of the lines of an error of npm, and of their rest if it only sorts the error.
const NPM: [&str; 2] = ["npm error ", "npm ERR! "];
const NPM_CODES: [&str; 5] = ["code ", "errno ", "syscall ", "path ", "dest "];

/// First line of a log that names an error, as tracebacks, panics and npm do.
pub(crate) fn error_line(log: &str) -> Option<&str> {
    // The last two: Rust and C++.
    let is_name = |word: &str| {
        word.ends_with("Error:") || word.ends_with("Exception:") || matches!(word, "panicked" | "what():")
    };
    let names_error = |line: &&str| {
        line.split_whitespace().any(|word| is_name(word) || word.eq_ignore_ascii_case("error:"))
    };
    let of_npm = |line: &&str| {
        let said = NPM.iter().find_map(|prefix| line.strip_prefix(prefix));
        said.is_some_and(|said| !NPM_CODES.iter().any(|code| said.starts_with(code)))
    };
    log.lines().find(names_error).or_else(|| log.lines().find(of_npm))
}

/// Identity of the error that a log ends with: its kind and the place of the program where it arose, if a traceback shows
/// them. Otherwise the error line without the parts that vary between messages.
pub(crate) fn error_identity(log: &str) -> Option<String> {
    let identity =
        python_site(log).or_else(|| node_site(log)).or_else(|| error_line(log).map(without_values));
    identity.map(|identity| identity.chars().take(IDENTITY_CHARS_MAX).collect())
}

/// True if a log ends with an uncaught error that the program did not raise itself, at a place that a traceback shows.
pub(crate) fn shows_uncaught_error(log: &str) -> bool {
    let is_raised = |site: &String| site.contains(": raise ") || site.starts_with("AssertionError at ");
    let is_thrown = |site: &String| site.starts_with("Error at ");
    python_site(log).is_some_and(|site| !is_raised(&site))
        || node_site(log).is_some_and(|site| !is_thrown(&site))
}

/// Kind, file, function and expression of the last Python traceback. Versions before 3.11 do not mark the expression, so
/// their tracebacks identify no place.
fn python_site(log: &str) -> Option<String> {
    let trace = &log[log.rfind("Traceback (most recent call last):")?..];
    let has_marks = trace.lines().any(is_marks);
    let mut site = None;
    let mut lines = trace.lines().skip(1).peekable();
    while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
        let place = line.trim().strip_prefix("File \"").and_then(|rest| rest.split_once("\", line "));
        let Some((file, rest)) = place.filter(|(file, _)| is_own(file)) else { continue };
        let function = rest.split_once(", in ").map_or("", |(_, function)| function);
        let source = lines.next_if(|line| line.starts_with("    ")).unwrap_or_default();
        // The marks are left out where the expression is the whole line.
        let expression =
            lines.next_if(|line| is_marks(line)).map_or(Some(source.trim()), |marks| marked(source, marks));
        site = expression.filter(|_| has_marks).map(|it| format!("{}, {function}: {it}", file_name(file)));
    }
    let kind = lines.next()?.split(':').next().filter(|kind| !kind.is_empty())?;
    Some(format!("{kind} at {}", site?))
}

/// Kind, file, function and column of the only exception that a log of a program for Node.js shows.
fn node_site(log: &str) -> Option<String> {
    let is_frame = |line: &&str| line.starts_with("    at ");
    let before: Vec<&str> = log.lines().take_while(|line| !is_frame(line)).collect();
    let mut behind = log.lines().skip(before.len());
    let own = behind.by_ref().take_while(is_frame).map(|line| line.trim_start_matches("    at ")).find_map(
        |frame| {
            let (function, place) = frame.split_once(" (").unwrap_or(("", frame));
            let mut parts = place.trim_end_matches(')').rsplitn(3, ':');
            let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
            let is_place = [column, line].iter().all(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
            (is_place && is_own(file)).then(|| format!("{}, {function}, column {column}", file_name(file)))
        },
    );
    let is_only = !behind.skip_while(is_frame).any(|line| is_frame(&line));
    let error = before.iter().rev().find(|line| line.contains("Error: ")).or(before.last())?;
    let kind = error.split(':').next()?;
    own.filter(|_| is_only).map(|own| format!("{kind} at {own}"))
}

fn is_own(file: &str) -> bool {
    !FOREIGN.iter().any(|part| file.contains(part))
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// True for a line that marks a part of the line above it.
fn is_marks(line: &str) -> bool {
    line.contains('^') && line.chars().all(|mark| matches!(mark, ' ' | '^' | '~'))
}

/// Part of a source line above the marks.
fn marked<'a>(source: &'a str, marks: &str) -> Option<&'a str> {
    let start = marks.find(|mark| mark != ' ')?;
    let mut places = source.char_indices().map(|(at, _)| at).chain([source.len()]);
    let from = places.by_ref().nth(start)?;
    let len = marks.trim().chars().count();
    let to = places.nth(len.checked_sub(1)?)?;
    source.get(from..to)
}

/// Error message without numbers and without quoted texts other than names, which vary between messages. A panic is
/// identified by its place.
fn without_values(message: &str) -> String {
    if let Some(at) = message.find(" panicked at ") {
        return message[at..].trim().to_owned();
    }
    let is_name = |text: &str| {
        text.len() <= 30
            && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let (mut kept, mut rest) = (String::new(), message);
    while let Some(at) = rest.find(['\'', '"', '`']) {
        kept.push_str(&rest[..at]);
        let (quote, behind) = (&rest[at..=at], &rest[at + 1..]);
        let Some((quoted, after)) = behind.split_once(quote) else { break };
        if is_name(quoted) {
            kept.push_str(quoted);
        }
        rest = after;
    }
    kept.push_str(rest);
    kept.retain(|char| !char.is_ascii_digit());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_the_program_raises_itself_is_a_refusal() {
        let log = |line: &str| {
            format!(
                "Traceback (most recent call last):\n  File \"/x/peer.py\", line 9, in main\n    {line}\n    ^^^^\n\
                 KeyError: 'id'\n"
            )
        };
        assert!(shows_uncaught_error(&log("m[1]")));
        assert!(!shows_uncaught_error(
            &log("raise KeyError(name)").replace("    ^^^^\n", "    ^^^^^^^^^^^^^^^^^^^^\n")
        ));
        let thrown = |kind: &str| {
            format!(
                "x.js:3\n\n{kind}: no\n    at f (/x/peer.js:3:7)\n    at g (/x/peer.js:9:1)\n\nNode.js v20\n"
            )
        };
        assert!(shows_uncaught_error(&thrown("TypeError")));
        assert!(!shows_uncaught_error(&thrown("Error")));
    }

    #[test]
    fn errors_that_differ_in_values_are_alike() {
        let log = "starting\nTraceback (most recent call last):\nKeyError: 'id'\nbye\n";
        assert_eq!(error_line(log), Some("KeyError: 'id'"));
        assert_eq!(error_line("starting\nbye\n"), None);
        let of_cpp =
            "terminate called after throwing an instance of 'std::out_of_range'\n  what():  map::at\n";
        assert_eq!(error_line(of_cpp).map(str::trim), Some("what():  map::at"));
        let of_npm =
            "npm error code E404\nnpm error 404 Not Found - GET\nnpm error A complete log of this run\n";
        assert_eq!(error_line(of_npm), Some("npm error 404 Not Found - GET"));
        assert_eq!(error_line("npm error code E404\n"), None);
        assert_eq!(without_values("KeyError: 'id'"), "KeyError: id");
        let of_text =
            |text: &str| without_values(&format!("UnicodeError: 'cp' codec at {text}: \"{text} x\""));
        assert_eq!(of_text("17"), of_text("4"));
        let panic = |thread: u32| format!("thread 'main' ({thread}) panicked at src/main.rs:17:5:");
        assert_eq!(without_values(&panic(8)), "panicked at src/main.rs:17:5:");
    }

    const PYTHON: &str = r#"listening
Traceback (most recent call last):
  File "/srv/server.py", line 12, in <module>
    answer(json.loads(line))
  File "/srv/server.py", line 7, in answer
    result = METHODS[request["method"]](request["params"])
             ~~~~~~~^^^^^^^^^^^^^^^^^^^
  File "/usr/lib/python3.11/enum.py", line 790, in __getitem__
    return cls._member_map_[name]
           ~~~~~~~~~~~~~~~~^^^^^^
KeyError: 'sum'
"#;

    #[test]
    fn a_traceback_identifies_the_place_in_the_program_of_the_peer() {
        let site = r#"KeyError at server.py, answer: METHODS[request["method"]]"#;
        assert_eq!(error_identity(PYTHON).as_deref(), Some(site));
        let elsewhere = PYTHON.replace("line 7", "line 70").replace("/srv/", "/opt/").replace("'sum'", "3");
        assert_eq!(error_identity(&elsewhere).as_deref(), Some(site), "an edit moves it");
        let unmarked: String =
            PYTHON.lines().filter(|line| !is_marks(line)).map(|line| format!("{line}\n")).collect();
        assert_eq!(error_identity(&unmarked).as_deref(), Some("KeyError: sum"), "an earlier version");
        let cut = &PYTHON[..PYTHON.find("KeyError").unwrap()];
        assert_eq!(error_identity(cut), None);
    }

    #[test]
    fn an_exception_of_node_identifies_function_and_column() {
        let log = "/srv/x.js:1\nfoo\n^\n\nTypeError: Cannot read properties of undefined (reading 'x')\n    \
                   at JSON.parse (<anonymous>)\n    at handle (/srv/x.js:1:37)\n    at Interface.<anonymous> \
                   (/srv/x.js:2:90)\n    at Interface.emit (node:events:524:28)\n\nNode.js v20.20.2\n";
        assert_eq!(error_identity(log).as_deref(), Some("TypeError at x.js, handle, column 37"));
        let module = log.replace("handle (/srv/x.js:1:37)", "file:///srv/x.mjs:9:3");
        assert_eq!(error_identity(&module).as_deref(), Some("TypeError at x.mjs, , column 3"));
    }
}
