//! The configuration vocabulary of the run_queue boundary.

use peerproof_engine::contract::boundary::{ConfigKey, Member, Placeholder};
use peerproof_engine::data::carriage::HTTP;

use super::{ENQUEUE, ONCE, SERVE, WORKER};

/// Default name of a worker's command.
pub const COMMAND: &str = "command";

/// Limit: number of starts of a job that fails.
pub const ATTEMPTS: &str = "attempts";

/// Limit: pause before a failed job starts again, ms.
pub const RETRY_MS: &str = "retry_ms";

/// Limit: interval at which an idle worker looks into the inbox, ms.
pub const POLL_MS: &str = "poll_ms";

/// Limit: time within which the jobs of a dead worker are taken up, ms.
pub const RECOVER_MS: &str = "recover_ms";

const VERDICT: &[&str] = &["accept", "refuse"];
const TREAT: &[&str] = &["run", "leave", "failed"];

const A_WORKER: &str = "Command line of a worker, as `command` or `worker`: {queue} is the folder of the \
                        queue, {runner} the program for a job, which gets the job file as its last argument. \
                        Without {runner} a job is a run whose driver is MACHINA_POLICY_CMD";

/// Every key that a configuration for a queue may hold.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        COMMAND,
        &[Placeholder::or_in_environment("{queue}"), Placeholder::optional("{runner}")],
        A_WORKER,
    ),
    ConfigKey::command(
        WORKER,
        &[Placeholder::or_in_environment("{queue}"), Placeholder::optional("{runner}")],
        A_WORKER,
    ),
    ConfigKey::command(
        ONCE,
        &[Placeholder::or_in_environment("{queue}"), Placeholder::optional("{runner}")],
        "Command line of a worker that exits when the queue is empty",
    ),
    ConfigKey::command(
        ENQUEUE,
        &[Placeholder::or_in_environment("{queue}"), Placeholder::required("{aid}")],
        "Command line of a toolhost in run mode with the tool that enqueues jobs",
    ),
    ConfigKey::command(
        HTTP,
        &[
            Placeholder::or_in_environment("{queue}"),
            Placeholder::optional("{port}"),
            Placeholder::optional("{host}"),
            Placeholder::optional("{addr}"),
        ],
        "Command line of the HTTP adapter; or { command, url, ready }",
    ),
    ConfigKey::command(
        SERVE,
        &[Placeholder::or_in_environment("{root}")],
        "Command line of a toolhost in serve mode with the Genesis tools",
    ),
    ConfigKey::optional_feature(
        "token",
        &[
            Member::any("env").or("args"),
            Member::string("header").optional(),
            Member::string("value").optional(),
        ],
        "The HTTP adapter can require a token: `env` is the environment variable that holds it, or `args` \
         are added arguments with {token} in them",
    ),
    ConfigKey::optional_feature(
        "genesis",
        &[
            Member::file("source"),
            Member::string("aid"),
            Member::any("compile").optional(),
            Member::string("text").optional(),
        ],
        "The Genesis tools: `source` is a sample source file with @NONCE@ in it, `aid` the tool that it \
         makes, `compile` false if there is no compiler, and `text` the content of the file",
    ),
    ConfigKey::role("enqueue", &[Member::string("aid")], "Enqueues a job; default: AID.QUEUE.ENQUEUE.v1"),
    ConfigKey::role(
        "write_file",
        &[Member::string("aid"), Member::object("input").with(&["{path}", "{content}"])],
        "Writes a source file; default: AID.GENESIS.WRITE_FILE.v1",
    ),
    ConfigKey::role(
        "compile",
        &[Member::string("aid"), Member::object("input").with(&["{path}", "{name}"])],
        "Compiles a source file; default: AID.GENESIS.COMPILE.v1",
    ),
    ConfigKey::role(
        "load",
        &[Member::string("aid"), Member::object("input").with(&["{name}"])],
        "Loads a compiled plugin; default: AID.GENESIS.LOAD.v1",
    ),
    ConfigKey::choice("dot_name", TREAT, "Handling of files named `.x.json` or `.json`"),
    ConfigKey::choice("upper_case_suffix", TREAT, "Handling of a file named `X.JSON`"),
    ConfigKey::choice("not_utf8_name", TREAT, "Handling of a job whose file name is not UTF-8"),
    ConfigKey::choice("symlink", TREAT, "Handling of a symbolic link with the name of a job"),
    ConfigKey::choice(
        "special_file",
        TREAT,
        "Handling of a folder, a FIFO or a socket with the name of a job",
    ),
    ConfigKey::choice("unreadable", TREAT, "Handling of a job file that cannot be read"),
    ConfigKey::choice(
        "second_worker",
        &["share", "refuse"],
        "Behaviour of a second worker on the same queue",
    ),
    ConfigKey::choice("sigterm", &["finish", "return"], "Handling of the running job at SIGTERM"),
    ConfigKey::choice("once_failed_exit", &["zero", "nonzero"], "Exit status of `once` if a job failed"),
    ConfigKey::choice("goal_id_with_bar", VERDICT, "Handling of a `goal_id` that contains `|`"),
    ConfigKey::choice(
        "same_request_id",
        &["one", "two"],
        "Number of jobs made from two requests with the same `request_id`",
    ),
    ConfigKey::choice("chunked", VERDICT, "HTTP: handling of a chunked body"),
    ConfigKey::choice(
        "content_type_other",
        VERDICT,
        "HTTP: handling of a content type other than JSON, or of none",
    ),
    ConfigKey::choice("query_string", VERDICT, "HTTP: handling of a query string after the path"),
    ConfigKey::choice(
        "length_and_chunked",
        VERDICT,
        "HTTP: handling of a request with both Content-Length and chunks",
    ),
    ConfigKey::choice(
        "health_without_token",
        &["200", "401"],
        "HTTP: status of `GET /health` without the token",
    ),
    ConfigKey::choice("write_overwrite", VERDICT, "Genesis: handling of a write to an existing file"),
    ConfigKey::choice(
        "write_subfolder",
        VERDICT,
        "Genesis: handling of a write to a subfolder of the source folder",
    ),
    ConfigKey::choice(
        "write_dotdot_inside",
        VERDICT,
        "Genesis: handling of `..` in a path that stays inside the source folder",
    ),
    ConfigKey::choice(
        "load_again",
        &["replace", "refuse"],
        "Genesis: handling of a second load of the same name",
    ),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::limit(ATTEMPTS, "Number of starts of a job that fails; default: 1"),
    ConfigKey::limit(RETRY_MS, "Milliseconds between two starts of a job that fails; default: 0"),
    ConfigKey::limit(POLL_MS, "Milliseconds until an idle worker notices a new job, at most; default: 2000"),
    ConfigKey::limit(
        RECOVER_MS,
        "Milliseconds until another worker takes over the job of a dead worker, at most; default: 5000",
    ),
    ConfigKey::STARTUP_MS,
];
