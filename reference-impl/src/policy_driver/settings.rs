//! The variables that configure a selector (`policy` §1, "Circuit breaker"; contract §2 "Selector").

use super::choices::{InvalidVariables, SelectorChoices};
use crate::limits::Limits;
use crate::machine::Millis;
use crate::resources::ResourceLimits;

/// Largest valid number. No limit is that high, so none becomes unlimited by accident.
const NUMBER_MAX: u64 = 1 << 53;

/// Settings from environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `MACHINA_POLICY_CMD`, if set.
    pub command: Option<String>,
    /// Time limit of a driver in ms (`MACHINA_POLICY_TIMEOUT_MS`, else by `MACHINA_PROFILE`).
    pub timeout_ms: Millis,
    /// Largest standard output of a driver, in bytes (`MACHINA_POLICY_STDOUT_MAX`).
    pub stdout_bytes_max: usize,
    /// Entries of `MACHINA_POLICY_ALLOWED_EXE`.
    pub allowed_programs: Vec<String>,
    /// `MACHINA_POLICY_ALLOWED_SCRIPT_ROOT`, else `<repo_root>/policies`.
    pub script_root: String,
    /// True if `MACHINA_POLICY_ALLOW_UNSAFE` is `1`.
    pub allows_unsafe: bool,
    /// Folders of `PATH`.
    pub path: Vec<String>,
    /// `MACHINA_POLICY_RLIMIT_*`.
    pub resources: ResourceLimits,
    /// Failures in a row that open the breaker (`MACHINA_POLICY_FAIL_THRESHOLD`).
    pub fail_threshold: u64,
    /// Time for which it stays open, in ms (`MACHINA_POLICY_COOLDOWN_MS`).
    pub cooldown_ms: Millis,
}

/// Variable with an invalid number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is no number that makes sense: {value:?}")]
pub struct SettingError {
    /// Name of the variable.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Settings {
    /// Reads the variables. An empty one counts as unset.
    ///
    /// # Errors
    /// One sentence that names the variable with an invalid number, under [`InvalidVariables::Refuse`].
    pub fn read(
        variable: &dyn Fn(&str) -> Option<String>,
        limits: &Limits,
        choices: &SelectorChoices,
    ) -> Result<Self, SettingError> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let mut refused = None;
        let mut number = |name: &str, min: u64, unit: u64, default: u64| {
            let Some(text) = set(name) else { return default.saturating_mul(unit) };
            match decimal(&text).and_then(|value| value.checked_mul(unit)) {
                Some(value) if (min..=NUMBER_MAX).contains(&value) => value,
                _ => {
                    refused.get_or_insert(SettingError { name: name.to_owned(), value: text });
                    default.saturating_mul(unit)
                }
            }
        };
        const MIB: u64 = 1 << 20;
        let default_timeout_ms = match set("MACHINA_PROFILE").as_deref() {
            Some("dev") => limits.policy_timeout_dev_ms,
            Some("prod") => limits.policy_timeout_prod_ms,
            _ => limits.policy_timeout_ms,
        };
        let timeout_ms = number("MACHINA_POLICY_TIMEOUT_MS", 1, 1, default_timeout_ms);
        let stdout_bytes_max =
            number("MACHINA_POLICY_STDOUT_MAX", 0, 1, limits.policy_stdout_bytes_max as u64);
        let resources = ResourceLimits {
            cpu_s: number("MACHINA_POLICY_RLIMIT_CPU_SEC", 0, 1, limits.policy_cpu_s_max),
            address_space_bytes: number(
                "MACHINA_POLICY_RLIMIT_AS_MB",
                0,
                MIB,
                limits.policy_address_space_mb_max,
            ),
            file_bytes: number("MACHINA_POLICY_RLIMIT_FSIZE_MB", 0, MIB, limits.policy_file_mb_max),
            open_files: number("MACHINA_POLICY_RLIMIT_NOFILE", 0, 1, limits.policy_open_files_max),
            processes: number("MACHINA_POLICY_RLIMIT_NPROC", 0, 1, limits.policy_processes_max),
        };
        let fail_threshold = number("MACHINA_POLICY_FAIL_THRESHOLD", 1, 1, limits.policy_fail_threshold);
        let cooldown_ms = number("MACHINA_POLICY_COOLDOWN_MS", 0, 1, limits.policy_cooldown_ms);
        if let Some(refused) = refused.filter(|_| choices.invalid_variables == InvalidVariables::Refuse) {
            return Err(refused);
        }
        let list = |text: &str, separator: char| {
            let entries = text.split(separator).map(str::trim).filter(|entry| !entry.is_empty());
            entries.map(str::to_owned).collect()
        };
        let allowed = set("MACHINA_POLICY_ALLOWED_EXE");
        let script_root = set("MACHINA_POLICY_ALLOWED_SCRIPT_ROOT")
            .unwrap_or_else(|| format!("{}/policies", set("MACHINA_ROOT").unwrap_or_else(|| ".".to_owned())));
        Ok(Self {
            command: set("MACHINA_POLICY_CMD"),
            timeout_ms,
            stdout_bytes_max: usize::try_from(stdout_bytes_max).unwrap_or(usize::MAX),
            allowed_programs: list(allowed.as_deref().unwrap_or("python3,python,bash,sh,node"), ','),
            script_root,
            allows_unsafe: set("MACHINA_POLICY_ALLOW_UNSAFE").as_deref() == Some("1"),
            path: list(&set("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".to_owned()), ':'),
            resources,
            fail_threshold,
            cooldown_ms,
        })
    }
}

/// Number in decimal digits.
fn decimal(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Settings {
        read_with(variables, SelectorChoices::default()).unwrap()
    }

    fn read_with(variables: &[(&str, &str)], choices: SelectorChoices) -> Result<Settings, SettingError> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::read(&variable, &Limits::default(), &choices)
    }

    #[test]
    fn has_the_documented_defaults() {
        let settings = read(&[]);
        assert_eq!((settings.timeout_ms, settings.stdout_bytes_max), (2_500, 65_536));
        assert_eq!(settings.allowed_programs, ["python3", "python", "bash", "sh", "node"]);
        assert_eq!((settings.script_root.as_str(), settings.allows_unsafe), ("./policies", false));
        assert_eq!(settings.resources.encode(), "t=2,v=805306368,f=10485760,n=64,u=32");
        assert_eq!((settings.fail_threshold, settings.cooldown_ms, settings.command), (5, 30_000, None));
    }

    #[test]
    fn takes_the_time_from_the_variable_then_from_the_profile() {
        for (profile, expected) in
            [("dev", 60_000), ("prod", 30_000), ("DEV", 2_500), ("x", 2_500), ("", 2_500)]
        {
            assert_eq!(read(&[("MACHINA_PROFILE", profile)]).timeout_ms, expected, "{profile:?}");
        }
        let both = [("MACHINA_PROFILE", "dev"), ("MACHINA_POLICY_TIMEOUT_MS", "7")];
        assert_eq!(read(&both).timeout_ms, 7);
        let bad = [("MACHINA_PROFILE", "dev"), ("MACHINA_POLICY_TIMEOUT_MS", "soon")];
        assert_eq!(read(&bad).timeout_ms, 60_000);
    }

    #[test]
    fn nothing_means_unlimited() {
        for bad in ["-1", "1e9", "1.5", " 1", "+1", "0x1", "18446744073709551615", "99999999999999999999999"]
        {
            let all = [
                "MACHINA_POLICY_TIMEOUT_MS",
                "MACHINA_POLICY_STDOUT_MAX",
                "MACHINA_POLICY_RLIMIT_CPU_SEC",
                "MACHINA_POLICY_RLIMIT_AS_MB",
                "MACHINA_POLICY_RLIMIT_FSIZE_MB",
                "MACHINA_POLICY_RLIMIT_NOFILE",
                "MACHINA_POLICY_RLIMIT_NPROC",
                "MACHINA_POLICY_FAIL_THRESHOLD",
                "MACHINA_POLICY_COOLDOWN_MS",
            ];
            assert_eq!(read(&all.map(|name| (name, bad))), read(&[]), "{bad:?}");
            let refusing =
                SelectorChoices { invalid_variables: InvalidVariables::Refuse, ..Default::default() };
            for name in all {
                assert_eq!(read_with(&[(name, bad)], refusing).unwrap_err().name, name);
            }
        }
        assert_eq!(read(&[("MACHINA_POLICY_TIMEOUT_MS", "0")]).timeout_ms, 2_500);
        assert_eq!(read(&[("MACHINA_POLICY_COOLDOWN_MS", "0")]).cooldown_ms, 0);
        let huge = [("MACHINA_POLICY_RLIMIT_AS_MB", "9007199254740992")];
        assert_eq!(read(&huge).resources.address_space_bytes, 768 << 20);
    }

    #[test]
    fn reads_lists_and_roots() {
        let settings = read(&[
            ("MACHINA_POLICY_ALLOWED_EXE", " python3 ,,my-driver, "),
            ("MACHINA_ROOT", "/r"),
            ("MACHINA_POLICY_ALLOW_UNSAFE", "true"),
            ("PATH", "/a::/b"),
            ("MACHINA_POLICY_CMD", ""),
        ]);
        assert_eq!(settings.allowed_programs, ["python3", "my-driver"]);
        assert_eq!((settings.script_root.as_str(), settings.allows_unsafe), ("/r/policies", false));
        assert_eq!((settings.path, settings.command), (vec!["/a".to_owned(), "/b".to_owned()], None));
        assert!(read(&[("MACHINA_POLICY_ALLOWED_EXE", ",")]).allowed_programs.is_empty());
        assert!(read(&[("MACHINA_POLICY_ALLOW_UNSAFE", "1")]).allows_unsafe);
    }
}
