//! The configuration vocabulary of the run_queue boundary.

use peerproof_engine::boundary::ConfigKey;
use peerproof_engine::carriage::HTTP;

use super::{ENQUEUE, ONCE, SERVE, WORKER};

/// What the command of a worker is called where nothing else is meant.
pub const COMMAND: &str = "command";

/// Limit: starts of a job whose run fails.
pub const ATTEMPTS: &str = "attempts";

/// Limit: time between those, ms.
pub const RETRY_MS: &str = "retry_ms";

/// Limit: time after which an idle worker looks again, ms.
pub const POLL_MS: &str = "poll_ms";

/// Limit: time after which what a dead worker held is taken up, ms.
pub const RECOVER_MS: &str = "recover_ms";

const VERDICT: &[&str] = &["accept", "refuse"];
const TREAT: &[&str] = &["run", "leave", "failed"];

const A_WORKER: &str = "argv of a worker, `command` or `worker`: the folder of the queue, and the program that it runs for a \
                        job, with the job's file as last argument; without {runner} a job is a run whose driver is \
                        MACHINA_POLICY_CMD";

/// Every key that a configuration for a queue may hold.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::command(COMMAND, &["{queue}*", "{runner}?"], A_WORKER),
    ConfigKey::command(WORKER, &["{queue}*", "{runner}?"], A_WORKER),
    ConfigKey::command(
        ONCE,
        &["{queue}*", "{runner}?"],
        "argv of a worker that ends when there is nothing more to take",
    ),
    ConfigKey::command(
        ENQUEUE,
        &["{queue}*", "{aid}"],
        "argv of a toolhost in run mode with the tool that enqueues",
    ),
    ConfigKey::command(
        HTTP,
        &["{queue}*", "{port}?", "{host}?", "{addr}?"],
        "argv of the HTTP adapter; or { command, url, ready }",
    ),
    ConfigKey::command(SERVE, &["{root}*"], "argv of a toolhost in serve mode with the Genesis tools"),
    ConfigKey::told_feature(
        "token",
        &["env|args: any", "header?: string", "value?: string"],
        "the HTTP adapter asks for a token: the name of the variable that holds it, or the arguments that are added \
         with {token} in them",
    ),
    ConfigKey::told_feature(
        "genesis",
        &["source: file", "aid: string", "compile?: any", "text?: string"],
        "the Genesis tools: a sample source file with @NONCE@ in it, the aid of the tool that it makes, and whether there \
         is a compiler; `text` is what the file holds",
    ),
    ConfigKey::role("enqueue", &["aid: string"], "the tool that enqueues; by default AID.QUEUE.ENQUEUE.v1"),
    ConfigKey::role(
        "write_file",
        &["aid: string", "input: object {path} {content}"],
        "writes a source file; by default AID.GENESIS.WRITE_FILE.v1",
    ),
    ConfigKey::role(
        "compile",
        &["aid: string", "input: object {path} {name}"],
        "compiles one; by default AID.GENESIS.COMPILE.v1",
    ),
    ConfigKey::role(
        "load",
        &["aid: string", "input: object {name}"],
        "loads what was compiled; by default AID.GENESIS.LOAD.v1",
    ),
    ConfigKey::choice("dot_name", TREAT, "what becomes of `.x.json` and `.json`"),
    ConfigKey::choice("upper_case_suffix", TREAT, "what becomes of `X.JSON`"),
    ConfigKey::choice("not_utf8_name", TREAT, "what becomes of a job whose name is not UTF-8"),
    ConfigKey::choice("symlink", TREAT, "what becomes of a link with the name of a job"),
    ConfigKey::choice("special_file", TREAT, "what becomes of a folder, a FIFO or a socket with such a name"),
    ConfigKey::choice("unreadable", TREAT, "what becomes of a job that cannot be read"),
    ConfigKey::choice("second_worker", &["share", "refuse"], "what a second worker on one queue does"),
    ConfigKey::choice("sigterm", &["finish", "return"], "what becomes of the job in flight at SIGTERM"),
    ConfigKey::choice("once_failed_exit", &["zero", "nonzero"], "status of `once` where a job failed"),
    ConfigKey::choice("goal_id_with_bar", VERDICT, "what becomes of a `goal_id` with `|`"),
    ConfigKey::choice("same_request_id", &["one", "two"], "what two jobs with one `request_id` become"),
    ConfigKey::choice("chunked", VERDICT, "HTTP: a body in chunks"),
    ConfigKey::choice("content_type_other", VERDICT, "HTTP: another content type than JSON, or none"),
    ConfigKey::choice("query_string", VERDICT, "HTTP: `?` behind the path"),
    ConfigKey::choice("length_and_chunked", VERDICT, "HTTP: a length beside chunks"),
    ConfigKey::choice(
        "health_without_token",
        &["200", "401"],
        "HTTP: status of `GET /health` without the token",
    ),
    ConfigKey::choice("write_overwrite", VERDICT, "Genesis: writing a file that is there"),
    ConfigKey::choice("write_subfolder", VERDICT, "Genesis: writing below a folder of the source folder"),
    ConfigKey::choice("write_dotdot_inside", VERDICT, "Genesis: `..` in a path that stays inside"),
    ConfigKey::choice("load_again", &["replace", "refuse"], "Genesis: loading a name that is loaded"),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::limit(ATTEMPTS, "starts of a job whose run fails; 1"),
    ConfigKey::limit(RETRY_MS, "time between those, milliseconds; 0"),
    ConfigKey::limit(POLL_MS, "time after which an idle worker sees a job at the latest, milliseconds; 2000"),
    ConfigKey::limit(RECOVER_MS, "time in which what a dead worker held is taken up, milliseconds; 5000"),
    ConfigKey::STARTUP_MS,
];
