//! The part of the selector's environment that a driver sees (contract §2, last of "Selector").

/// Prefix of the driver's own variables, which always pass.
const OWN: &str = "MACHINA_POLICY_LLM_";

/// Prefixes of names that make an interpreter or the loader run or load something else.
const STEERING: &[&str] = &["LD_", "DYLD_", "PYTHON", "NODE_", "BASH_FUNC_", "PERL5", "RUBY"];

/// Whole names that make an interpreter or the loader run or load something else.
const STEERING_NAMES: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "IFS",
    "CDPATH",
    "PROMPT_COMMAND",
    "GCONV_PATH",
    "LUA_INIT",
    "PHPRC",
];

/// Parts of names that suggest a secret.
const SECRET: &[&str] = &["TOKEN", "KEY", "SECRET", "PASSW", "CREDENTIAL", "AUTH"];

/// True if the variable `name` is passed to a driver.
pub(crate) fn passes(name: &str) -> bool {
    if name.starts_with(OWN) {
        return true;
    }
    let upper = name.to_ascii_uppercase();
    !(STEERING.iter().any(|start| upper.starts_with(start))
        || STEERING_NAMES.contains(&upper.as_str())
        || SECRET.iter().any(|part| upper.contains(part)))
}

#[cfg(test)]
mod tests {
    use super::passes;

    #[test]
    fn passes_what_drivers_need() {
        for name in ["PATH", "HOME", "TMPDIR", "LANG", "MACHINA_POLICY_LLM_URL", "MACHINA_POLICY_LLM_AUTH"] {
            assert!(passes(name), "{name}");
        }
    }

    #[test]
    fn holds_back_what_steers_and_what_is_secret() {
        for name in [
            "BASH_ENV",
            "ENV",
            "NODE_OPTIONS",
            "PYTHONSTARTUP",
            "PYTHONPATH",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "BASH_FUNC_x%%",
            "AWS_SECRET_ACCESS_KEY",
            "github_token",
            "DB_PASSWORD",
            "HTTP_AUTHORIZATION",
        ] {
            assert!(!passes(name), "{name}");
        }
    }
}
