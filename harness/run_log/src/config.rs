//! The configuration vocabulary of the run_log boundary.

use peerproof_engine::contract::boundary::{ConfigKey, Placeholder};
use peerproof_engine::data::clause::Side;

use super::{REPLAYER, RUNNER};

/// Name of a command whose placeholders tell whether it is a runner or a replayer.
pub(crate) const COMMAND: &str = "command";

const VERDICT: &[&str] = &["accept", "fail"];
const FLAG: &[&str] = &["true", "false"];

const fn open(name: &'static str, meaning: &'static str) -> ConfigKey {
    ConfigKey::choice(name, VERDICT, meaning).of(Side::Consumer)
}

const fn choice(name: &'static str, values: &'static [&'static str], meaning: &'static str) -> ConfigKey {
    ConfigKey::choice(name, values, meaning).of(Side::Provider)
}

/// Every key that a configuration for a runner or a replayer may hold.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        COMMAND,
        &[
            Placeholder::optional("{request}"),
            Placeholder::required("{log}"),
            Placeholder::required("{peer}"),
        ],
        "Command line of a runner if it contains {request}, otherwise of a replayer",
    ),
    ConfigKey::command(
        RUNNER,
        &[
            Placeholder::required("{request}"),
            Placeholder::required("{log}"),
            Placeholder::required("{peer}"),
        ],
        "Command line of a runner: {request} is the file with its request, {log} the log that it writes, \
         {peer} the toolhost that it starts",
    ),
    ConfigKey::command(
        REPLAYER,
        &[Placeholder::required("{log}"), Placeholder::required("{peer}")],
        "Command line of a replayer: {log} is the log that it reads, {peer} the toolhost that runs the \
         tools again",
    ),
    choice("run_id_form", &["uuid", "hex32"], "Form of a `run_id`"),
    choice("first_step", &["0", "1"], "Step number of the first selection"),
    choice(
        "request_id_absent",
        &["absent", "null", "empty"],
        "Form of `request_id` in the log if the request has none",
    ),
    choice("empty_patch_logged", FLAG, "A patch of {} is logged as `inputs_patched`"),
    choice("ask_sup_ends", FLAG, "ASK_SUP ends the run"),
    choice("invalid_ends", FLAG, "INVALID ends the run"),
    choice("tool_error_ends", FLAG, "A failure of a tool ends the run"),
    choice("control_mode_unknown", &["default", "refuse"], "Handling of an unknown `control_mode`"),
    choice("goal_id_with_bar", &["accept", "refuse"], "Handling of a `goal_id` that contains `|`"),
    open("log_bom", "Handling of a byte order mark before the first line"),
    open("log_blank_line", "Handling of an empty line or a line of white space"),
    open("log_last_line_without_lf", "Handling of a last line without a line feed"),
    open("other_spec_version", "Handling of a `spec_version` or `profile_id` other than the default"),
    open("run_id_other_form", "Handling of a `run_id` that is neither a UUID nor 32 hex digits"),
    open(
        "patch_extra_members",
        "Handling of unknown members in a patch item, and of `value` null with remove",
    ),
    open("patch_on_other_state", "Handling of add on a used slot, and of replace or remove on an empty one"),
    ConfigKey::choice(
        "size_bytes_wrong",
        &["as_written", "correct", "fail"],
        "Handling of a `size_bytes` that differs from the length of `content_json`",
    )
    .of(Side::Consumer),
    open("digest_upper_case", "Handling of a state digest in upper-case digits"),
    open(
        "patch_without_selection_patch",
        "Handling of `inputs_patched` after a PICK without `input_patch_json`",
    ),
    ConfigKey::choice(
        "tool_error_rerun",
        FLAG,
        "The replayer runs the tool of a `tool_error` with `deterministic` true again",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "two_runs",
        &["each", "fail"],
        "Handling of a second run in the file: each run is replayed, or the file is refused",
    )
    .of(Side::Consumer),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
];
