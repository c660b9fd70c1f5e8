//! Mutants that accept near misses, keep half of their promises, or lose unusual values.

use super::edit::slot;
use super::guarantees::hook_alone;
use super::{Edit, Mutant, patch};
use crate::json::Value;
use crate::mutant::http::HttpFault;
use crate::mutant::text::first_line;
use crate::mutant::values::{each, unescape};
use crate::mutant::{carrier, config, ends_at_silence, machine};

/// Keeps only one of the requested guarantees.
fn keep_one(request: &mut Value, pick: fn(&mut Vec<(crate::json::Text, Value)>)) {
    if request.get("capability_context").is_some_and(|context| context.get("guarantees").is_some())
        && let Value::Object(given) = slot(slot(request, "capability_context"), "guarantees")
    {
        pick(given);
    }
}

/// Mutants with rewritten requests and replies.
pub(super) const MUTANTS: &[Mutant] = table! {
    "wraps-versions" ["PT-REQ-02"] "The protocol version is read into 32 bits." => Edit::Request(|request| {
        let version = request.get("protocol_version").and_then(Value::as_i64);
        if let Some(version) = version.filter(|version| *version > i64::from(u32::MAX)) {
            *slot(request, "protocol_version") = Value::Number((version & i64::from(u32::MAX)).into());
        }
    });
    "reads-members-in-any-case" ["PT-REQ-02", "PT-REQ-06", "PT-REQ-11"] "A member that is called so in capitals counts." => Edit::Request(|request| {
        for name in ["protocol_version", "entry", "payload"] {
            let is_so = |key: &crate::json::Text| key.as_str().is_some_and(|key| key.eq_ignore_ascii_case(name));
            let own = request.as_object().unwrap_or_default().iter().find(|(key, _)| is_so(key)).cloned();
            if let Some((_, value)) = own {
                *slot(request, name) = value;
            }
        }
    });
    "unwraps-requests" ["PT-REQ-02"] "A request in an object of its own is taken out of it." => Edit::Request(|request| {
        if let Some(inner) = request.get("request").cloned() {
            *request = inner;
        }
    });
    "takes-paths-for-entries" ["PT-REQ-06"] "A backslash in an entry is a dot, and dots and slashes before it are dropped." => Edit::Request(|request| {
        if let Some(entry) = request.get("entry").and_then(Value::as_str) {
            let entry = entry.trim_start_matches(['.', '/']).replace('\\', ".");
            *slot(request, "entry") = Value::from(entry.as_str());
        }
    });
    "splits-at-unicode-lines" ["PT-RES-01"] "Of several lines, as Unicode has them, only the first is read." => Edit::Bytes(|text| first_line(&text));
    "unescapes-entities" ["PT-RES-01"] "`&amp;` in a result comes back as `&`." => Edit::Reply(|_, reply| {
        each(slot(reply, "result"), 0, &mut |value, _| unescape(value));
        super::edit::remove_null(reply, "result");
    });
    "cuts-deep-results" ["PT-JSON-03"] "What is more than forty levels deep in a result with lists comes back as null." => Edit::Reply(|_, reply| {
        let mut has_lists = false;
        each(slot(reply, "result"), 0, &mut |value, levels| {
            has_lists |= value.as_array().is_some();
            if has_lists && levels > 40 {
                *value = Value::Null;
            }
        });
        super::edit::remove_null(reply, "result");
    });
    "guards-the-first-of-two" ["PT-FSW-01", "PT-FSR-01", "PT-NET-01", "PT-SUB-01", "PT-ENR-01", "PT-ENW-01"] "Of several guarantees the first is in force." => Edit::Request(|request| {
        keep_one(request, |given| given.truncate(1));
    });
    "guards-the-last-of-two" ["PT-FSW-01", "PT-FSR-01", "PT-NET-01", "PT-SUB-01", "PT-ENR-01", "PT-ENW-01"] "Of several guarantees the last is in force." => Edit::Request(|request| {
        keep_one(request, |given| drop(given.drain(..given.len().saturating_sub(1))));
    });
};

/// Mutants with another process or shim.
pub(crate) const CONFIGURED: &[Mutant] = &[
    machine("impatient", &["PT-FRAME-04"], "A second of silence is the end of the input.", ends_at_silence),
    config("calls-twice", &["PT-REQ-21"], "A tool is called twice for a request.", |config| {
        let call = "        result = tool(order[\"payload\"])\n";
        patch(config, call, &call.repeat(2));
    }),
    config(
        "leaves-output-in-a-pipe",
        &["PT-OUT-01"],
        "What a tool prints goes into a pipe that nobody reads.",
        |config| {
            patch(config, "os.dup2(2, 1)\n", "PIPE = os.pipe()\nos.dup2(PIPE[1], 1)\n");
        },
    ),
    config(
        "connects-before-it-refuses",
        &["PT-NET-01"],
        "A connection is made, and closed before anything is sent.",
        |config| {
            hook_alone(config, "no_network");
            patch(config, "socket.sendmsg socket.getaddrinfo", "socket.sendmsg");
            patch(config, "OWNER = os.getpid()\n", "OWNER = os.getpid()\nDIALLED = []\n");
            let refuse = "            raise Blocked(f\"{events[event]} forbids {event}\")\n";
            let dial = "            if event == \"socket.connect\":\n\
                    \x20               if DIALLED:\n\
                    \x20                   return\n\
                    \x20               DIALLED.append(1)\n\
                    \x20               args[0].connect(args[1])\n\
                    \x20               args[0].close()\n";
            patch(config, refuse, &format!("{dial}{refuse}"));
        },
    ),
    config(
        "makes-files-before-it-refuses",
        &["PT-FSW-01"],
        "A file is made, and nothing is written to it.",
        |config| {
            hook_alone(config, "no_filesystem_write");
            let refuse = "                raise Blocked(f\"no_filesystem_write forbids to open {path!r} for writing\")\n";
            patch(config, refuse, &format!("                os.mknod(path)\n{refuse}"));
        },
    ),
];

/// Mutants with a fault of the transport.
pub(crate) const CARRIED: &[Mutant] = &[
    carrier(
        "service-mixes-large-replies",
        &["PT-SRV-18"],
        "The first reply on a connection, where it is large, is a large one that belongs on another.",
        HttpFault::MixesLarge,
    ),
    carrier(
        "service-leaves-bodies",
        &["PT-SRV-25"],
        "The body of a request with another method is taken for the beginning of the next request.",
        HttpFault::LeavesBodies,
    ),
];
