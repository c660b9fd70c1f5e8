//! The configuration vocabulary of the run_log boundary.

use peerproof_engine::boundary::ConfigKey;
use peerproof_engine::clause::Side;

use super::{REPLAYER, RUNNER};

/// What a command is called where its placeholders tell which.
pub const COMMAND: &str = "command";

const VERDICT: &[&str] = &["accept", "fail"];
const FLAG: &[&str] = &["true", "false"];

const fn open(name: &'static str, meaning: &'static str) -> ConfigKey {
    ConfigKey::choice(name, VERDICT, meaning).of(Side::Consumer)
}

const fn choice(name: &'static str, values: &'static [&'static str], meaning: &'static str) -> ConfigKey {
    ConfigKey::choice(name, values, meaning).of(Side::Provider)
}

/// Every key that a configuration for a runner or a replayer may hold.
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        COMMAND,
        &["{request}?", "{log}", "{peer}"],
        "argv of a runner where {request} is in it, else of a replayer",
    ),
    ConfigKey::command(
        RUNNER,
        &["{request}", "{log}", "{peer}"],
        "argv of a runner: the file with its request, the log that it writes, and the toolhost that it starts",
    ),
    ConfigKey::command(
        REPLAYER,
        &["{log}", "{peer}"],
        "argv of a replayer: the log, and the toolhost that runs tools again",
    ),
    choice("run_id_form", &["uuid", "hex32"], "how a `run_id` is spelled"),
    choice("first_step", &["0", "1"], "number of the first selection"),
    choice(
        "request_id_absent",
        &["absent", "null", "empty"],
        "how a request without `request_id` shows on a line",
    ),
    choice("empty_patch_logged", FLAG, "a patch of {} has a line `inputs_patched`"),
    choice("ask_sup_ends", FLAG, "ASK_SUP ends the run"),
    choice("invalid_ends", FLAG, "INVALID ends the run"),
    choice("tool_error_ends", FLAG, "a tool that failed ends the run"),
    choice("control_mode_unknown", &["default", "refuse"], "what becomes of another `control_mode`"),
    choice("goal_id_with_bar", &["accept", "refuse"], "what becomes of a `goal_id` with `|`"),
    open("log_bom", "a byte order mark before the first line"),
    open("log_blank_line", "a line of nothing but white space"),
    open("log_last_line_without_lf", "a last line without LF"),
    open("other_spec_version", "another `spec_version` or `profile_id` than the default"),
    open("run_id_other_form", "a `run_id` that is neither a UUID nor 32 hex digits"),
    open("patch_extra_members", "members of a patch item that are not named, and `value` null beside remove"),
    open("patch_on_other_state", "add on a used slot, replace or remove on an empty one"),
    ConfigKey::choice(
        "size_bytes_wrong",
        &["as_written", "correct", "fail"],
        "a `size_bytes` that is not the length of `content_json`",
    )
    .of(Side::Consumer),
    open("digest_upper_case", "a state digest in upper-case digits"),
    open("patch_without_selection_patch", "`inputs_patched` after a PICK without `input_patch_json`"),
    ConfigKey::choice(
        "tool_error_rerun",
        FLAG,
        "the tool of a `tool_error` with `deterministic` true is run again",
    )
    .of(Side::Consumer),
    ConfigKey::choice("two_runs", &["each", "fail"], "a second run in the file").of(Side::Consumer),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
];
