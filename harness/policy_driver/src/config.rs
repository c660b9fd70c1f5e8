//! The configuration vocabulary of the policy_driver boundary.

use peerproof_engine::contract::boundary::{ConfigKey, Member, Placeholder};
use peerproof_engine::data::clause::Side;

const fn role(name: &'static str, meaning: &'static str) -> ConfigKey {
    const PAYLOAD: &[Member] = &[Member::object("payload")];
    ConfigKey::role(name, PAYLOAD, meaning).of(Side::Provider)
}

/// Variables of a selector with a meaning in the contract.
pub(crate) const VARIABLES: &[&str] = &[
    "MACHINA_POLICY_CMD",
    "MACHINA_POLICY_TIMEOUT_MS",
    "MACHINA_POLICY_STDOUT_MAX",
    "MACHINA_POLICY_ALLOWED_EXE",
    "MACHINA_POLICY_ALLOWED_SCRIPT_ROOT",
    "MACHINA_POLICY_ALLOW_UNSAFE",
    "MACHINA_POLICY_RLIMIT_CPU_SEC",
    "MACHINA_POLICY_RLIMIT_AS_MB",
    "MACHINA_POLICY_RLIMIT_FSIZE_MB",
    "MACHINA_POLICY_RLIMIT_NOFILE",
    "MACHINA_POLICY_RLIMIT_NPROC",
    "MACHINA_POLICY_FAIL_THRESHOLD",
    "MACHINA_POLICY_COOLDOWN_MS",
    "MACHINA_POLICY_LLM_URL",
    "MACHINA_POLICY_LLM_AUTH",
    "MACHINA_PROFILE",
    "MACHINA_ROOT",
];

/// Every key that a configuration for a driver or a selector may hold.
pub(crate) const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        "command",
        &[Placeholder::appended("{payload}")],
        "Command line of a driver; `{payload}` is replaced by the path of the payload file. Without it, the \
         path is the last argument",
    ),
    ConfigKey::command(
        "bridge",
        &[Placeholder::appended("{payload}")],
        "Command line of a driver that asks a model at MACHINA_POLICY_LLM_URL",
    ),
    ConfigKey::command(
        "selector",
        &[Placeholder::optional("{driver}")],
        "Command line of a selector; `command` with side = \"consumer\" means the same. MACHINA_POLICY_CMD \
         holds the command of the driver that it starts; `{driver}` is replaced by the same text",
    ),
    ConfigKey::feature("patches", "The driver prints `<INP>` and `<INP64>`, or the selector accepts them"),
    ConfigKey::feature("merged_inputs", "A Selection contains the merged inputs as `inputs`")
        .of(Side::Consumer),
    role("pick", "Payload for which the driver answers with a PICK without a patch"),
    role("pick_inp", "Payload for which the driver answers with a PICK with `<INP>`"),
    role("pick_inp64", "Payload for which the driver answers with a PICK with `<INP64>`"),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::choice(
        "nearly_json_payload",
        &["pick", "refuse"],
        "Handling of a payload that is almost JSON",
    )
    .of(Side::Provider),
    ConfigKey::choice(
        "absent_fields",
        &["default", "malformed"],
        "Handling of a payload or a menu entry without some fields",
    )
    .of(Side::Provider),
    ConfigKey::choice(
        "duplicate_sids",
        &["default", "malformed"],
        "Handling of a menu with the same SID in two entries",
    )
    .of(Side::Provider),
    ConfigKey::choice("blank_line", &["ignore", "refuse"], "Handling of a line of white space")
        .of(Side::Consumer),
    ConfigKey::choice(
        "last_line_without_lf",
        &["process", "refuse", "silent"],
        "Handling of a last line without a line feed",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "lenient_base64",
        &["accept", "refuse"],
        "Handling of base64 in INP64 without padding, in the URL alphabet, with unused bits set, or with \
         white space",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "vt_ff_trim",
        &["accept", "refuse"],
        "Handling of a vertical tab or form feed around a block",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "pipe_held_by_child",
        &["pick", "failure"],
        "Handling of a driver that exited with 0 while a child process keeps its output open",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "invalid_variables",
        &["default", "refuse"],
        "Handling of an environment variable that is not a valid number: its default, or refusal to start",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "same_name_elsewhere",
        &["accept", "refuse"],
        "Handling of an allowed program name with a different path than the one that PATH finds",
    )
    .of(Side::Consumer),
    ConfigKey::choice(
        "other_modes",
        &["fallback", "invalid"],
        "Handling of a control mode other than POLICY_ONLY and FALLBACK_ONLY",
    )
    .of(Side::Consumer),
    ConfigKey::limit(
        "timeout_ms",
        "Milliseconds that a driver may take for a decision, without its start-up; default: 2500",
    )
    .of(Side::Provider),
    ConfigKey::limit(
        "address_space_mb",
        "MiB of address space that a driver needs to start, if its runtime reserves more than the \
         documented 768",
    )
    .of(Side::Provider),
];

/// All features of this boundary; the reference selector has all of them.
pub(crate) const FEATURES: &[&str] = &["patches", "merged_inputs"];
