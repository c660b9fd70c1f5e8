//! Mutants that claim guarantees that they do not enforce.

use super::edit::{remove, slot};
use super::incoming::fail;
use super::{Edit, Mutant, asks, patch, role};
use crate::json::{Text, Value};
use crate::mutant::config;
use crate::python_tool::{Config, GUARANTEES};

/// Mutants with rewritten requests and replies.
pub(super) const MUTANTS: &[Mutant] = table! {
    "blocks-in-words" ["PT-FSW-01", "PT-NET-01", "PT-SUB-01"] "A tool runs without any guarantee, and the reply says that it was blocked." => Edit::Both(
        |request| remove(request, "capability_context"),
        |request, reply| {
            if asks(request) && ROLES.contains(&role(request)) {
                fail(reply, "Blocked");
                *slot(slot(reply, "error"), "reason_code") = Value::from("guarantee_blocked");
            }
        },
    );
    "tells-what-it-read" ["PT-FSR-01", "PT-FSR-02", "PT-ENR-01", "PT-ENR-02", "PT-ENW-01", "PT-ENW-02"] "A tool runs without any guarantee." => Edit::Request(|request| remove(request, "capability_context"));
    "guards-plain-routes-alone" ["PT-FSW-02", "PT-FSR-02", "PT-NET-02", "PT-SUB-02", "PT-ENR-02", "PT-ENW-02"] "No guarantee is in force on other than plain routes." => Edit::Request(|request| {
        let route = request.get("payload").and_then(|payload| payload.get("route")).and_then(Value::as_str);
        if route.is_some_and(|route| !PLAIN.contains(&route)) {
            remove(request, "capability_context");
        }
    });
    "blocks-without-reason" ["PT-GUAR-01"] "What a guarantee forbids is a failure like any other." => Edit::Reply(|_, reply| {
        if kind(reply) != "URLError" && reply.get("error").is_some() {
            remove(slot(reply, "error"), "reason_code");
        }
    });
    "loses-a-wrapped-reason" ["PT-GUAR-02"] "The reason is lost where a library wraps the refusal." => Edit::Reply(|_, reply| {
        if kind(reply) == "URLError" {
            remove(slot(reply, "error"), "reason_code");
        }
    });
    "guards-always" ["PT-GUAR-05", "PT-GUAR-08"] "Every guarantee is in force, asked for or not." => Edit::Request(|request| {
        if request.get("capability_context").is_none() && ROLES.contains(&role(request)) {
            let all = GUARANTEES.iter().map(|name| (Text::from(*name), Value::Bool(true))).collect();
            *slot(slot(request, "capability_context"), "guarantees") = Value::Object(all);
        }
    });
    "guards-in-a-sandbox-alone" ["PT-GUAR-07"] "Without `sandbox` no guarantee is in force." => Edit::Request(|request| {
        if request.get("sandbox").and_then(Value::as_bool) != Some(true) {
            remove(request, "capability_context");
        }
    });
    "one-reason-for-all" ["PT-GUAR-08"] "A tool's own PermissionError is told as blocked by a guarantee." => Edit::Reply(|_, reply| {
        if kind(reply) == "PermissionError" {
            *slot(slot(reply, "error"), "reason_code") = Value::from("guarantee_blocked");
        }
    });
    "ignores-wrong-types" ["PT-GUAR-09"] "What has a wrong type in the context is as if it were not there." => Edit::Request(|request| {
        let is_flag = request.get("sandbox").is_none_or(|sandbox| sandbox.as_bool().is_some());
        let context = request.get("capability_context");
        let given = context.and_then(|context| context.get("guarantees")).and_then(Value::as_object);
        let is_right =
            given.is_some_and(|given| given.iter().all(|(_, value)| value.as_bool().is_some()));
        if !is_flag || context.is_some() && !is_right {
            remove(request, "capability_context");
            remove(request, "sandbox");
        }
    });
    "lets-nothing-through" ["PT-GUAR-10"] "Within a guarantee every tool is blocked." => Edit::Reply(|request, reply| {
        if asks(request) {
            fail(reply, "Blocked");
            *slot(slot(reply, "error"), "reason_code") = Value::from("guarantee_blocked");
        }
    });
    "works-without-guarantees-alone" ["PT-GUAR-10"] "Within a guarantee a tool gets nothing." => Edit::Reply(|request, reply| {
        if asks(request) && role(request) == "echo" {
            *slot(reply, "result") = Value::Object(Vec::new());
        }
    });
};

/// Mutants with another shim or guard.
pub(crate) const CONFIGURED: &[Mutant] = &[
    config(
        "guards-after-the-import",
        &["PT-GUAR-06"],
        "Guarantees are in force once the module is imported.",
        |config| {
            config.guarded.clear();
            patch(config, "        guard(guarantees)\n", "");
            let import = "        tool = imported(module)\n";
            patch(
                config,
                import,
                &format!("{import}        if guarantees:\n            guard(guarantees)\n"),
            );
        },
    ),
    config("writes-are-watched", &["PT-FSW-02"], WATCHED, |config| hook_alone(config, "no_filesystem_write")),
    config("reads-are-watched", &["PT-FSR-02"], WATCHED, |config| hook_alone(config, "no_filesystem_read")),
    config("connections-are-watched", &["PT-NET-02"], WATCHED, |config| hook_alone(config, "no_network")),
    config("processes-are-watched", &["PT-SUB-02"], WATCHED, |config| hook_alone(config, "no_subprocess")),
    config(
        "the-environment-is-emptied",
        &["PT-ENR-02"],
        "The environment is emptied in the process that was started with it.",
        |config| {
            hook_alone(config, "no_env_read");
            let set = "        guard(guarantees)\n";
            patch(
                config,
                set,
                &format!("        if \"no_env_read\" in guarantees:\n            os.environ.clear()\n{set}"),
            );
        },
    ),
    config("libraries-set-variables", &["PT-ENW-02"], "What a library sets is not watched.", |config| {
        patch(config, "os.putenv os.unsetenv ctypes.dlopen", "os.putenv os.unsetenv");
    }),
    config("folders-are-made", &["PT-FSW-01"], "Folders are no files.", |config| {
        hook_alone(config, "no_filesystem_write");
        patch(config, "os.mkdir os.remove", "os.remove");
    }),
    config("temporary-files-are-no-files", &["PT-FSW-01"], "What is temporary is not written.", |config| {
        hook_alone(config, "no_filesystem_write");
        let temporary = " and not str(args[0]).startswith(os.environ.get(\"TMPDIR\", \"/tmp/\"))";
        patch(config, " and path != os.devnull", &format!(" and path != os.devnull{temporary}"));
    }),
    config("variables-are-taken-away", &["PT-ENW-02"], "What is taken away is not written.", |config| {
        patch(config, "os.putenv os.unsetenv", "os.putenv");
    }),
    config("files-are-removed", &["PT-FSW-01"], "What is removed is not written.", |config| {
        hook_alone(config, "no_filesystem_write");
        patch(config, "os.mkdir os.remove", "os.mkdir");
    }),
    config("appends", &["PT-FSW-01"], "What is added to a file is not written.", |config| opens(config, "a")),
    config("makes-new-files", &["PT-FSW-01"], "A new file is no write.", |config| opens(config, "x")),
    config("updates", &["PT-FSW-01"], "What is opened for reading is not written.", |config| {
        opens(config, "r+")
    }),
    config("relative-files-are-read", &["PT-FSR-01"], "What is read has a path from the root.", |config| {
        hook_alone(config, "no_filesystem_read");
        patch(config, " and path and not is_module", " and path.startswith(\"/\") and not is_module");
    }),
    config("modes-change", &["PT-FSW-02"], "Permission bits are no files.", |config| {
        hook_alone(config, "no_filesystem_write");
        patch(config, "os.truncate os.chmod", "os.truncate");
    }),
    config("names-are-told", &["PT-FSR-03"], "Folders are read.", |config| {
        patch(config, "\"os.listdir os.scandir sqlite3.connect\"", "\"sqlite3.connect\"");
    }),
    config("shells-run", &["PT-SUB-01"], "What a shell runs is no process of the tool.", |config| {
        hook_alone(config, "no_subprocess");
        patch(config, "subprocess.Popen os.system", "subprocess.Popen");
    }),
    config("datagrams-go-out", &["PT-NET-02"], "Only connections are the network.", |config| {
        hook_alone(config, "no_network");
        patch(config, "socket.connect socket.sendto socket.sendmsg", "socket.connect");
    }),
];

/// Fault of the mutants that enforce a guarantee only in Python.
const WATCHED: &str = "An audit hook of Python alone sees to the guarantee.";

/// Routes that every guard covers.
const PLAIN: [&str; 14] = [
    "open",
    "append",
    "exclusive",
    "update",
    "relative",
    "pathlib",
    "mkdir",
    "remove",
    "create_connection",
    "urllib",
    "subprocess",
    "system",
    "environ",
    "getenv",
];

/// Roles with an effect.
const ROLES: [&str; 6] = ["write", "read", "connect", "process", "env_read", "env_write"];

fn kind(reply: &Value) -> &str {
    reply.get("error").and_then(|error| error.get("type")).and_then(Value::as_str).unwrap_or_default()
}

/// A mutant for which `open` in this mode is not a write.
fn opens(config: &mut Config, mode: &str) {
    hook_alone(config, "no_filesystem_write");
    let known = "isinstance(flags, int) else False";
    patch(
        config,
        known,
        &format!("isinstance(flags, int) and not str(mode).startswith({mode:?}) else False"),
    );
}

/// Enforces a guarantee only in Python.
pub(super) fn hook_alone(config: &mut Config, guarantee: &str) {
    config.guarded.retain(|name| *name != guarantee);
}
