//! Stack traces in error messages, in the formats of many languages.

use peerproof_engine::data::finding::{Finding, Repair};
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::shorten;

/// Phrases that occur only in stack traces: of Python, Rust, Java, Lua, .NET and Julia.
const WORDS: [&str; 7] = [
    "Traceback (most recent call last)",
    "stack backtrace:",
    "Exception in thread \"",
    "stack traceback:\n\t",
    "--- End of stack trace from previous location",
    "--- End of inner exception stack trace ---",
    "Stacktrace:\n [1] ",
];

/// Finding about a stack trace in an error, outside `data.stack_trace`. Text of the request itself is ignored.
pub(crate) fn judge(response: &Json, request: &[u8]) -> Option<Finding> {
    let Some(Json::Object(error)) = response.get("error") else { return None };
    let mut open: Vec<&Json> = Vec::new();
    for (name, value) in error {
        match value {
            Json::Object(data) if name == "data" => {
                open.extend(data.iter().filter(|(name, _)| name != "stack_trace").map(|(_, value)| value));
            }
            value => open.push(value),
        }
    }
    let text = texts(open).find(|text| frame(text).is_some_and(|frame| !is_quoted(request, frame)))?;
    let expected = "no stack trace outside `data.stack_trace`";
    let finding = Finding::new("RPC-ERR-04", "stack_trace", expected, shorten(text, 240));
    Some(finding.repaired_by(Repair::other("/error")))
}

/// All strings in these values, and the names of their members.
fn texts<'j>(mut open: Vec<&'j Json>) -> impl Iterator<Item = &'j str> {
    let mut names: Vec<&'j str> = Vec::new();
    std::iter::from_fn(move || {
        loop {
            if let Some(name) = names.pop() {
                return Some(name);
            }
            match open.pop()? {
                Json::String(text) => return Some(text),
                Json::Array(items) => open.extend(items),
                Json::Object(members) => {
                    open.extend(members.iter().map(|(_, value)| value));
                    names.extend(members.iter().map(|(name, _)| name.as_str()));
                }
                _ => {}
            }
        }
    })
}

fn is_quoted(request: &[u8], frame: &str) -> bool {
    let decoded = json::decode(request, &DecodeLimits::default()).ok();
    memchr::memmem::find(request, frame.as_bytes()).is_some()
        || decoded.is_some_and(|decoded| texts(vec![&decoded.value]).any(|text| text.contains(frame)))
}

/// The part of a text that only occurs in stack traces.
fn frame(text: &str) -> Option<&str> {
    let words = WORDS.iter().find(|words| text.contains(**words)).copied();
    // The message comes before its trace.
    let behind = || text.lines().skip(1).find(|line| is_at(line));
    let anywhere = || text.lines().find(|line| FRAMES.iter().any(|is_frame| is_frame(line)));
    words.or_else(behind).or_else(anywhere).or_else(|| tcl(text))
}

const FRAMES: [fn(&str) -> bool; 5] = [is_python, is_ruby, is_php, is_perl, is_go];

/// `    at f (file.js:1:2)`, `\tat a.B.c(B.java:5)`, `   at A.B.C(String s) in C:\c.cs:line 5`, `   at A.B.C(String s)`.
fn is_at(line: &str) -> bool {
    let line = line.trim_end();
    let Some(place) = line.trim_start().strip_prefix("at ").filter(|_| line.starts_with([' ', '\t'])) else {
        return false;
    };
    let number = place.trim_end_matches(')').rsplit(':').next().unwrap_or_default();
    let number = number.strip_prefix("line ").unwrap_or(number);
    if place.contains(['(', '/']) && number.parse::<u32>().is_ok() {
        return true;
    }
    let Some((name, of)) = place.strip_suffix(')').and_then(|place| place.split_once('(')) else {
        return false;
    };
    let is_name = |c: char| c.is_alphanumeric() || "._$<>`[]+".contains(c);
    let is_place = |c: char| c.is_ascii_digit() || c == ',' || c == ' ';
    name.contains('.') && name.chars().all(is_name) && (of.is_empty() || !of.chars().all(is_place))
}

/// The rest of a text after the digits at its start.
fn number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    (rest.len() < text.len()).then_some(rest)
}

/// `  File "x.py", line 1, in f`.
fn is_python(line: &str) -> bool {
    let named = line.trim_start().strip_prefix("File \"").and_then(|rest| rest.split_once("\", line "));
    named.and_then(|(_, rest)| number(rest)).is_some_and(|rest| rest.starts_with(", in "))
}

/// ``x.rb:1:in `f'``.
fn is_ruby(line: &str) -> bool {
    let is_method = |rest: &str| rest.strip_prefix(":in ").is_some_and(|rest| rest.starts_with(['`', '\'']));
    line.split(".rb:").skip(1).any(|rest| number(rest).is_some_and(is_method))
}

/// `#0 /x.php(1): f()`, `#1 {main}`.
fn is_php(line: &str) -> bool {
    let Some(of) = line.trim().strip_prefix('#').and_then(number).and_then(|rest| rest.strip_prefix(' '))
    else {
        return false;
    };
    let called = of.split_once("): ").and_then(|(place, _)| place.rsplit_once('('));
    let is_numbered = called.and_then(|(_, at)| number(at)).is_some_and(str::is_empty);
    of == "{main}" || of.starts_with("[internal function]: ") || is_numbered && of.ends_with(')')
}

/// `\tmain::f(1) called at x.pl line 1`.
fn is_perl(line: &str) -> bool {
    let called = line.split_once(") called at ").and_then(|(_, rest)| rest.rsplit_once(" line "));
    line.starts_with([' ', '\t']) && called.is_some_and(|(_, rest)| number(rest).is_some())
}

/// `goroutine 1 [running]:`.
fn is_go(line: &str) -> bool {
    let rest = line.split_once("goroutine ").and_then(|(_, rest)| number(rest));
    rest.is_some_and(|rest| rest.starts_with(" [") && rest.contains(']'))
}

/// `    while executing`, and on the next line the executed command.
fn tcl(text: &str) -> Option<&str> {
    let is_command = |words: &&str| text.split_once(*words).is_some_and(|(_, rest)| rest.starts_with("\n\""));
    ["\n    while executing", "\n    invoked from within"].into_iter().find(is_command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(error: &str, request: &str) -> bool {
        judge(&format!("{{\"error\":{error}}}").parse().unwrap(), request.as_bytes()).is_some()
    }

    fn of(text: &str) -> String {
        Json::object([("code", Json::from(-32603)), ("message", Json::from(text))]).to_text()
    }

    #[test]
    fn traces_are_found_where_they_must_not_be() {
        for error in [
            r#"{"code":-32000,"message":"Traceback (most recent call last):\n  File \"x.py\", line 1"}"#,
            r#"{"code":-32603,"message":"m","data":{"details":"Error: no\n    at f (/app/x.js:10:5)\n"}}"#,
            r#"{"code":-32603,"message":"m","data":"java.lang.E\n\tat a.B.c(B.java:5)"}"#,
            r#"{"code":-32603,"message":"m","data":{"more":{"stack_trace":"stack backtrace:"}}}"#,
        ] {
            assert!(has(error, ""), "{error}");
        }
        for error in [
            r#"{"code":-32000,"message":"failed at line 5: look"}"#,
            r#"{"code":-32000,"message":"m","data":{"stack_trace":"Traceback (most recent call last)"}}"#,
            r#"{"code":-32700,"message":"m","data":{"details":"expected a value\n  at line 1, column 2"}}"#,
        ] {
            assert!(!has(error, ""), "{error}");
        }
    }

    const OF_LANGUAGES: [&str; 14] = [
        "  File \"/srv/x.py\", line 12, in fail\n    raise E",
        "no\n    at async f (file:///srv/x.mjs:10:5)",
        "no\n\tat java.base/java.util.A.get(Unknown Source)\n\tat a.B.c(Native Method)",
        "System.E: no\n   at A.B.Fail(String s) in C:\\src\\b.cs:line 12",
        "System.E: no\n   at A.B.<Fail>d__1.MoveNext()",
        "/srv/x.rb:12:in `fail': no (RuntimeError)",
        "no\n\tfrom /srv/x.rb:3:in 'Server#run'",
        "E: no in /srv/x.php:12\nStack trace:\n#0 /srv/x.php(40): fail(Array)\n#1 {main}",
        "no at /srv/x.pl line 12.\n\tmain::fail(1) called at /srv/x.pl line 40",
        "no\n    while executing\n\"error no\"\n    (procedure \"fail\" line 1)\n    invoked from within\n\"fail\"",
        "panic: no\n\ngoroutine 17 [running]:\nmain.fail()",
        "x.lua:1: no\nstack traceback:\n\t[C]: in function 'error'",
        "no\nStacktrace:\n [1] fail() at ./x.jl:1",
        "thread 'main' panicked\nstack backtrace:\n   0: fail",
    ];

    #[test]
    fn traces_of_many_languages_are_known() {
        for text in OF_LANGUAGES {
            assert!(has(&of(text), ""), "{text}");
        }
    }

    #[test]
    fn what_a_request_holds_is_quoted() {
        for text in OF_LANGUAGES {
            let params = Json::array([Json::from(text)]).to_text();
            assert!(!has(&of(text), &format!("{{\"params\":{params}}}")), "{text}");
        }
        let cut = "{\"method\":\"Traceback (most recent call last)";
        assert!(!has(&of("no JSON: {\"method\":\"Traceback (most recent call last)"), cut));
    }

    #[test]
    fn places_are_no_traces() {
        for text in [
            "no at /srv/x.pl line 12.",
            "unexpected token at config.json line 3",
            "invalid task:\n  at tasks[0].name (expected a string)",
            "invalid:\n  at config.yaml(3)",
            "while executing the task, an error occurred",
            "failed while executing \"build\"",
            "see #12 (3): fix it",
            "#1 the first rule\n#2 the second (2)",
            "File \"x.py\", line 3: no such rule",
            "src/main.rs:12:5: no such method",
            "use app.rb:12 instead",
            "goroutine limit reached",
            "called at 12:00 line busy",
        ] {
            assert!(!has(&of(text), ""), "{text}");
        }
    }
}
