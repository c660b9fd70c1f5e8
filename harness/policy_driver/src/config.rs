//! The configuration vocabulary of the policy_driver boundary.

use peerproof_engine::boundary::ConfigKey;
use peerproof_engine::clause::Side;

const fn role(name: &'static str, meaning: &'static str) -> ConfigKey {
    ConfigKey::role(name, &["payload: object"], meaning).of(Side::Provider)
}

/// Variables of a selector that the contract gives a meaning.
pub const VARIABLES: &[&str] = &[
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
pub const KEYS: &[ConfigKey] = &[
    ConfigKey::command(
        "command",
        &["{payload}+"],
        "argv of a driver; `{payload}` stands for the path of the payload, which is appended where it is not named",
    ),
    ConfigKey::command(
        "bridge",
        &["{payload}+"],
        "argv of a driver that asks a model at MACHINA_POLICY_LLM_URL",
    ),
    ConfigKey::command(
        "selector",
        &["{driver}?"],
        "argv of a selector (`command` with side = \"consumer\"); what it starts is in MACHINA_POLICY_CMD, and `{driver}` stands for that text",
    ),
    ConfigKey::feature("patches", "the driver prints, the selector takes `<INP>` and `<INP64>`"),
    ConfigKey::feature("merged_inputs", "a Selection shows the merged inputs as `inputs`").of(Side::Consumer),
    role("pick", "a payload for which the driver promises a PICK without a patch"),
    role("pick_inp", "a payload for which it promises a PICK with `<INP>`"),
    role("pick_inp64", "a payload for which it promises a PICK with `<INP64>`"),
    ConfigKey::DUPLICATE_KEYS,
    ConfigKey::LONE_SURROGATES,
    ConfigKey::BIG_INTEGERS,
    ConfigKey::choice("nearly_json_payload", &["pick", "refuse"], "a driver's payload that is almost JSON").of(Side::Provider),
    ConfigKey::choice("absent_fields", &["default", "malformed"], "a payload or an entry that lacks fields").of(Side::Provider),
    ConfigKey::choice("duplicate_sids", &["default", "malformed"], "a menu in which one SID stands twice").of(Side::Provider),
    ConfigKey::choice("blank_line", &["ignore", "refuse"], "a line of white space for a selector").of(Side::Consumer),
    ConfigKey::choice(
        "last_line_without_lf",
        &["process", "refuse", "silent"],
        "a selector's last line that is not ended",
    ).of(Side::Consumer),
    ConfigKey::choice(
        "lenient_base64",
        &["accept", "refuse"],
        "INP64 without padding, of the URL alphabet, with unused bits or with white space",
    ).of(Side::Consumer),
    ConfigKey::choice("vt_ff_trim", &["accept", "refuse"], "vertical tab or form feed around a block").of(Side::Consumer),
    ConfigKey::choice(
        "pipe_held_by_child",
        &["pick", "failure"],
        "a driver that ended well while a child of it holds its output",
    ).of(Side::Consumer),
    ConfigKey::choice(
        "invalid_variables",
        &["default", "refuse"],
        "a variable that is no number: its default, or no start",
    ).of(Side::Consumer),
    ConfigKey::choice(
        "same_name_elsewhere",
        &["accept", "refuse"],
        "a listed name under another path than PATH finds",
    ).of(Side::Consumer),
    ConfigKey::choice(
        "other_modes",
        &["fallback", "invalid"],
        "a control mode that is neither POLICY_ONLY nor FALLBACK_ONLY",
    ).of(Side::Consumer),
    ConfigKey::limit(
        "timeout_ms",
        "time that a driver may take for a decision, start-up not counted; 2500 by default",
    ).of(Side::Provider),
    ConfigKey::limit(
        "address_space_mb",
        "address space that a driver needs to start, MiB, where its runtime reserves more than the documented 768",
    ).of(Side::Provider),
];

/// Every feature of this boundary; the reference selector has all.
pub const FEATURES: &[&str] = &["patches", "merged_inputs"];
