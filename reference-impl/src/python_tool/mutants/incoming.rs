//! Mutants that misread requests.

use super::edit::{remove, slot};
use super::{Edit, Mutant, role};
use crate::json::{Policy, Value};
use crate::python_tool::request::is_entry;

/// All mutants of this file.
pub(super) const MUTANTS: &[Mutant] = table! {
    "one-line-alone" ["PT-FRAME-02"] "Only the first line is read." => Edit::Bytes(|bytes| {
        bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec()
    });
    "ignores-what-follows" ["PT-FRAME-03"] "What follows the object is ignored." => Edit::Bytes(first_object);
    "takes-nan" ["PT-JSON-01"] "NaN and Infinity are taken for null." => Edit::Bytes(|bytes| {
        replaced(bytes, &[("NaN", "null"), ("-Infinity", "null")])
    });
    "takes-single-quotes" ["PT-JSON-01"] "Single quotes are quotes." => Edit::Bytes(|bytes| {
        replaced(bytes, &[("'", "\"")])
    });
    "takes-comments" ["PT-JSON-01"] "Comments are white space." => Edit::Bytes(|bytes| {
        replaced(bytes, &[("/* x */", "")])
    });
    "takes-trailing-commas" ["PT-JSON-01"] "A comma may follow the last member." => Edit::Bytes(|bytes| {
        replaced(bytes, &[(",}", "}")])
    });
    "takes-control-characters" ["PT-JSON-01"] "Raw control characters are taken." => Edit::Bytes(|bytes| {
        replaced(bytes, &[("\t", " ")])
    });
    "takes-python-words" ["PT-JSON-01"] "True is true." => Edit::Bytes(|bytes| replaced(bytes, &[("True", "true")]));
    "mends-utf8" ["PT-JSON-02"] "Invalid UTF-8 is replaced." => Edit::Bytes(|bytes| {
        String::from_utf8_lossy(&bytes).into_owned().into_bytes()
    });
    "takes-a-list" ["PT-JSON-09"] "The first of a list is the request." => Edit::Bytes(|bytes| {
        match bytes.trim_ascii().strip_prefix(b"[").and_then(|rest| rest.strip_suffix(b"]")) {
            Some(inner) => inner.to_vec(),
            None => bytes,
        }
    });
    "malformed-is-plain" ["PT-JSON-01"] "What is no JSON is a plain call." => Edit::Bytes(|bytes| {
        let is_malformed = !bytes.trim_ascii().is_empty() && parsed(&bytes).is_none();
        if is_malformed { PLAIN_CALL.to_vec() } else { bytes }
    });
    "takes-what-is-no-object" ["PT-JSON-09"] "Another value than an object is a plain call." => Edit::Bytes(|bytes| {
        let is_other = parsed(&bytes).is_some_and(|value| value.as_object().is_none());
        if is_other { PLAIN_CALL.to_vec() } else { bytes }
    });
    "takes-nothing-for-a-call" ["PT-JSON-09"] "No input is a plain call." => Edit::Bytes(|bytes| {
        match bytes.trim_ascii().is_empty() {
            true => PLAIN_CALL.to_vec(),
            false => bytes,
        }
    });
    "members-in-order" ["PT-JSON-10"] "The version has to come first." => Edit::Bytes(|bytes| {
        let is_first = bytes.trim_ascii().starts_with(b"{\"protocol_version\"");
        if is_first || bytes.len() > 4_000 { bytes } else { Vec::new() }
    });
    "refuses-version-1" ["PT-REQ-01"] "Version 1 is too old for a plain call." => Edit::Request(|request| {
        if role(request) == "any" {
            *slot(request, "protocol_version") = Value::Number(2.into());
        }
    });
    "takes-version-2" ["PT-REQ-02", "PT-REQ-19"] "A later version is taken for 1." => Edit::Request(|request| version(request, |it| it.as_i64() == Some(2)));
    "takes-version-0" ["PT-REQ-02", "PT-REQ-19"] "An earlier version is taken for 1." => Edit::Request(|request| version(request, |it| it.as_i64() == Some(0)));
    "takes-version-text" ["PT-REQ-02"] "The version may be a string." => Edit::Request(|request| version(request, |it| it.as_str() == Some("1")));
    "takes-version-true" ["PT-REQ-02"] "The version true is 1, as Python has it." => Edit::Request(|request| version(request, |it| it.as_bool() == Some(true)));
    "takes-no-version" ["PT-REQ-02"] "Without a version it is 1." => Edit::Request(|request| version(request, |it| *it == Value::Null));
    "needs-no-tool" ["PT-REQ-04"] "Nobody asks for the name of the tool." => Edit::Request(|request| {
        *slot(request, "tool") = Value::from("tool");
    });
    "trims-the-entry" ["PT-REQ-06"] "White space around the entry is ignored." => Edit::Request(|request| entry(request, |it| Some(it.trim().to_owned())));
    "finds-entries-in-any-case" ["PT-REQ-08"] "An entry is found whatever case its letters have." => Edit::Request(|request| entry(request, |it| Some(it.to_lowercase())));
    "wrong-entry-is-any" ["PT-REQ-06"] "Another entry than two dotted names is that of a plain call." => Edit::Request(|request| {
        if !request.get("entry").and_then(Value::as_str).is_some_and(is_entry) {
            *slot(request, "entry") = Value::from("tools.peerproof:any");
        }
    });
    "takes-paths" ["PT-REQ-06"] "The entry may be a path." => Edit::Request(|request| {
        entry(request, |it| Some(it.replace(".py:", ":").replace('/', ".")));
    });
    "reads-two-names-of-three" ["PT-REQ-06"] "What follows a second colon of the entry is ignored." => Edit::Request(|request| entry(request, |it| {
        let (two, _) = it.rsplit_once(':').filter(|(two, _)| two.contains(':'))?;
        Some(two.to_owned())
    }));
    "takes-dots-for-a-colon" ["PT-REQ-06"] "The last dot may stand for the colon." => Edit::Request(|request| entry(request, |it| {
        let (module, function) = it.rsplit_once('.').filter(|_| !it.contains(':'))?;
        Some(format!("{module}:{function}"))
    }));
    "finds-one-module" ["PT-REQ-05"] "No module is found but one." => Edit::Request(|request| {
        let entry = request.get("entry").and_then(Value::as_str).unwrap_or_default();
        let is_known = |module: &str| ["tools.peerproof", "tools.peerproof_effects"].contains(&module);
        if entry.starts_with("tools.") && !entry.split_once(':').is_some_and(|(module, _)| is_known(module)) {
            *slot(request, "entry") = Value::from("tools.lost:lost");
        }
    });
    "needs-a-package" ["PT-REQ-05"] "No module is found that lies in no package." => Edit::Request(|request| entry(request, |it| {
        let (module, function) = it.split_once(':').filter(|(module, _)| *module == "peerproof_top")?;
        Some(format!("tools.{module}:{function}"))
    }));
    "needs-tool-names-in-ascii" ["PT-REQ-04"] "A tool is refused whose name has letters beyond ASCII." => Edit::Request(|request| {
        if !request.get("tool").and_then(Value::as_str).is_none_or(str::is_ascii) {
            remove(request, "tool");
        }
    });
    "needs-no-payload" ["PT-REQ-11"] "Without a payload it is empty." => Edit::Request(|request| {
        if request.get("payload").is_none_or(|payload| payload.as_object().is_none()) {
            *slot(request, "payload") = Value::Object(Vec::new());
        }
    });
    "minds-unknown-members" ["PT-REQ-14"] "A member that is not documented is refused." => Edit::Request(|request| {
        if request.get("x_unknown").is_some() {
            remove(request, "protocol_version");
        }
    });
    "minds-a-null-context" ["PT-REQ-16"] "A context that is null is refused." => Edit::Request(|request| {
        if request.get("capability_context") == Some(&Value::Null) {
            remove(request, "protocol_version");
        }
    });
    "minds-false-guarantees" ["PT-REQ-17"] "An unknown guarantee is refused, though it is false." => Edit::Request(|request| {
        let given = request.get("capability_context").and_then(|context| context.get("guarantees"));
        if given.is_some_and(|given| given.get("no_peerproof_unknown").is_some()) {
            remove(request, "protocol_version");
        }
    });
    "runs-before-it-refuses" ["PT-REQ-19"] "A request is run, and then refused." => Edit::Both(
        |request| {
            *slot(request, "protocol_version") = Value::Number(1.into());
            *slot(request, "tool") = Value::from("tool");
        },
        |request, reply| {
            let is_right = request.get("protocol_version").and_then(Value::as_i64) == Some(1);
            let is_named = request.get("tool").and_then(Value::as_str).is_some_and(|tool| !tool.is_empty());
            if !is_right || !is_named {
                fail(reply, "BadRequest");
            }
        },
    );
};

/// A valid call.
const PLAIN_CALL: &[u8] =
    br#"{"protocol_version":1,"tool":"any","entry":"tools.peerproof:any","payload":{}}"#;

/// JSON value, if its nesting is within the limit.
fn parsed(bytes: &[u8]) -> Option<Value> {
    Value::parse(bytes, super::edit::NESTING_MAX, &Policy::default()).ok()
}

/// Replaces a version by 1 if `is` returns true for it. A missing version is null.
fn version(request: &mut Value, is: fn(&Value) -> bool) {
    let version = slot(request, "protocol_version");
    if is(version) {
        *version = Value::Number(1.into());
    }
}

/// Reads an entry differently.
fn entry(request: &mut Value, read: fn(&str) -> Option<String>) {
    let other = request.get("entry").and_then(Value::as_str).and_then(read);
    if let Some(other) = other {
        *slot(request, "entry") = Value::from(other.as_str());
    }
}

/// Turns a reply into a failure.
pub(super) fn fail(reply: &mut Value, kind: &str) {
    remove(reply, "result");
    *slot(reply, "ok") = Value::Bool(false);
    let error = slot(reply, "error");
    *slot(error, "type") = Value::from(kind);
    *slot(error, "message") = Value::from("");
}

fn replaced(bytes: Vec<u8>, what: &[(&str, &str)]) -> Vec<u8> {
    match String::from_utf8(bytes) {
        Ok(text) => what.iter().fold(text, |text, (from, to)| text.replace(from, to)).into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

fn first_object(bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() > 1 << 16 {
        return bytes;
    }
    let ends = (1..=bytes.len()).filter(|end| bytes[end - 1] == b'}');
    let whole =
        ends.map(|end| &bytes[..end]).find(|head| Value::parse(head, 100, &Policy::default()).is_ok());
    whole.map(<[u8]>::to_vec).unwrap_or(bytes)
}
