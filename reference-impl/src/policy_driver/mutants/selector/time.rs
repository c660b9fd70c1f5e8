//! Mutants that give drivers wrong time limits, output limits and resources.

use super::super::super::block::{Block, BlockError};
use super::super::super::guard::FileKind;
use super::super::super::{Blocks, Parts, SelectorConfig};
use super::{Files, Mutant, Rewiring, wire};
use crate::machine::{Action, DriveOrder, Event, Machine, Millis};
use crate::mutant::{Inner, config, machine, parts, wrap};

/// Removes a variable.
pub(super) fn unset(variables: &mut Vec<(String, String)>, unset: &str) {
    variables.retain(|(name, _)| name != unset);
}

/// Sets a variable that is missing or empty.
pub(super) fn set_default(variables: &mut Vec<(String, String)>, name: &str, value: &str) {
    if !variables.iter().any(|(known, value)| known == name && !value.is_empty()) {
        unset(variables, name);
        variables.push((name.to_owned(), value.to_owned()));
    }
}

fn mapped(variables: &mut [(String, String)], name: &str, map: impl Fn(&str) -> String) {
    variables.iter_mut().filter(|(known, _)| known == name).for_each(|(_, value)| *value = map(value));
}

/// Sets another time limit under a profile.
fn set_profile(variables: &mut Vec<(String, String)>, profile: &str, timeout_ms: &str) {
    if variables.iter().any(|(name, value)| name == "MACHINA_PROFILE" && value == profile) {
        set_default(variables, "MACHINA_POLICY_TIMEOUT_MS", timeout_ms);
    }
}

/// Variables with numbers.
const NUMBERS: [&str; 10] = [
    "MACHINA_POLICY_TIMEOUT_MS",
    "MACHINA_POLICY_STDOUT_MAX",
    "MACHINA_POLICY_FAIL_THRESHOLD",
    "MACHINA_POLICY_COOLDOWN_MS",
    "MACHINA_POLICY_RLIMIT_CPU_SEC",
    "MACHINA_POLICY_RLIMIT_AS_MB",
    "MACHINA_POLICY_RLIMIT_FSIZE_MB",
    "MACHINA_POLICY_RLIMIT_NOFILE",
    "MACHINA_POLICY_RLIMIT_NPROC",
    "MACHINA_POLICY_LLM_TIMEOUT_MS",
];

/// A reader of blocks that truncates or counts the output in another way.
#[derive(Debug)]
struct Counted {
    inner: Box<dyn Blocks>,
    bytes_max: usize,
    /// Part of the output to read; `None` refuses it.
    count: fn(&[u8], usize) -> Option<&[u8]>,
}

impl Blocks for Counted {
    fn read<'t>(&mut self, stdout: &'t [u8]) -> Result<Block<'t>, BlockError> {
        match (self.count)(stdout, self.bytes_max) {
            Some(text) => self.inner.read(text).map(Block::into_owned),
            None => Err(BlockError::Form),
        }
    }
}

/// Reads up to 256 MiB of output and applies the limit afterwards.
fn judge_later(config: &mut SelectorConfig, parts: &mut Parts, count: fn(&[u8], usize) -> Option<&[u8]>) {
    let bytes_max = std::mem::replace(&mut config.settings.stdout_bytes_max, 256 << 20);
    let inner = Parts::new(config, Box::new(NoFiles)).blocks;
    parts.blocks = Box::new(Counted { inner, bytes_max, count });
}

#[derive(Debug)]
struct NoFiles;

impl Files for NoFiles {
    fn kind(&self, _path: &str) -> FileKind {
        FileKind::Missing
    }

    fn canonical(&self, _path: &str) -> Option<String> {
        None
    }
}

/// State of a machine that watches a driver.
#[derive(Default)]
pub(super) struct Memory {
    /// Number of the driver's writes so far.
    pub(super) writes: usize,
    /// True after the driver's exit.
    has_ended: bool,
    /// The last order, until it was repeated.
    pub(super) order: Option<DriveOrder>,
}

/// A mutant with a handler that sees the state of the driver.
struct Watching {
    inner: Inner,
    memory: Memory,
    handle: fn(&mut Inner, &mut Memory, Event<'_>, Millis, &mut Vec<Action>),
}

impl Machine for Watching {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::ChildStdout(_) => self.memory.writes += 1,
            Event::ChildExit(_) => self.memory.has_ended = true,
            _ => {}
        }
        let from = actions.len();
        (self.handle)(&mut self.inner, &mut self.memory, event, now, actions);
        for action in &actions[from..] {
            if let Action::Drive(order) = action {
                self.memory = Memory { order: Some((**order).clone()), ..Memory::default() };
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

pub(super) fn watching(
    inner: Inner,
    handle: fn(&mut Inner, &mut Memory, Event<'_>, Millis, &mut Vec<Action>),
) -> Inner {
    Box::new(Watching { inner, memory: Memory::default(), handle })
}

/// A mutant whose clock stops while a driver writes, so that the time limit counts from its last write.
struct Sliding {
    inner: Inner,
    since: Millis,
    stood_still: Millis,
}

impl Machine for Sliding {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if matches!(event, Event::ChildStdout(_)) {
            self.stood_still += now.saturating_sub(self.since);
            self.since = now;
        }
        let from = actions.len();
        self.inner.handle(event, now - self.stood_still, actions);
        for action in actions.iter_mut().skip(from) {
            match action {
                Action::WakeAt(at) => *at += self.stood_still,
                Action::Drive(_) => self.since = now,
                _ => {}
            }
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that reports a timeout one second after the last write of a running driver.
struct Nervous {
    inner: Inner,
    last_write: Option<Millis>,
}

impl Machine for Nervous {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        match event {
            Event::ChildStdout(_) => {
                self.last_write = Some(now);
                actions.push(Action::WakeAt(now + 1_000));
            }
            Event::ChildExit(_) | Event::Stdin(_) => self.last_write = None,
            _ => {}
        }
        let is_up = event == Event::Wake && self.last_write.is_some_and(|last| now >= last + 1_000);
        if is_up {
            self.last_write = None;
        }
        // This time is later than any deadline.
        self.inner.handle(event, if is_up { now + 3_600_000 } else { now }, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    wire(
        "select-ignores-timeout",
        &["PD-TIME-01"],
        "The variable for the timeout means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_POLICY_TIMEOUT_MS")),
    ),
    wire(
        "select-timeout-in-seconds",
        &["PD-TIME-01", "PD-TIME-04"],
        "The timeout is in seconds.",
        Rewiring::Variables(|variables| {
            mapped(variables, "MACHINA_POLICY_TIMEOUT_MS", |text| format!("{text}000"));
        }),
    ),
    machine(
        "select-timeout-between-bytes",
        &["PD-TIME-01"],
        "The timeout counts from the last write of a driver.",
        |inner| Box::new(Sliding { inner, since: 0, stood_still: 0 }),
    ),
    machine(
        "select-timeout-of-first-byte",
        &["PD-TIME-01", "PD-TIME-04"],
        "A driver that has written something has all the time that it wants.",
        |inner| {
            watching(inner, |inner, memory, event, now, actions| {
                if event != Event::Wake || memory.writes == 0 {
                    inner.handle(event, now, actions);
                }
            })
        },
    ),
    wire(
        "select-ignores-profile",
        &["PD-TIME-02"],
        "MACHINA_PROFILE means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_PROFILE")),
    ),
    wire(
        "select-ignores-prod",
        &["PD-TIME-02"],
        "The profile `prod` is not known.",
        Rewiring::Variables(|variables| {
            variables.retain(|(name, value)| name != "MACHINA_PROFILE" || value != "prod");
        }),
    ),
    wire(
        "select-ignores-dev",
        &["PD-TIME-02"],
        "The profile `dev` is not known.",
        Rewiring::Variables(|variables| {
            variables.retain(|(name, value)| name != "MACHINA_PROFILE" || value != "dev");
        }),
    ),
    wire(
        "select-prod-of-20-seconds",
        &["PD-TIME-02"],
        "The profile `prod` gives 20 s.",
        Rewiring::Variables(|variables| set_profile(variables, "prod", "20000")),
    ),
    wire(
        "select-prod-of-a-minute",
        &["PD-TIME-02"],
        "The profile `prod` gives a minute.",
        Rewiring::Variables(|variables| set_profile(variables, "prod", "60000")),
    ),
    wire(
        "select-dev-of-half-a-minute",
        &["PD-TIME-02"],
        "The profile `dev` gives 30 s.",
        Rewiring::Variables(|variables| set_profile(variables, "dev", "30000")),
    ),
    wire(
        "select-profile-before-timeout",
        &["PD-TIME-01", "PD-TIME-02"],
        "Where there is a profile the variable for the timeout means nothing.",
        Rewiring::Variables(|variables| {
            if variables.iter().any(|(name, value)| name == "MACHINA_PROFILE" && !value.is_empty()) {
                unset(variables, "MACHINA_POLICY_TIMEOUT_MS");
            }
        }),
    ),
    wire(
        "select-profile-in-any-case",
        &["PD-TIME-03"],
        "The profile may be in any case.",
        Rewiring::Variables(|variables| mapped(variables, "MACHINA_PROFILE", str::to_lowercase)),
    ),
    wire(
        "select-profiles-by-prefix",
        &["PD-TIME-03"],
        "A profile that begins with `prod` or `dev` is that profile.",
        Rewiring::Variables(|variables| {
            mapped(variables, "MACHINA_PROFILE", |profile| {
                let known = ["prod", "dev"].into_iter().find(|known| profile.starts_with(known));
                known.unwrap_or(profile).to_owned()
            })
        }),
    ),
    wire(
        "select-other-profiles-are-prod",
        &["PD-TIME-03"],
        "Another profile is taken for `prod`.",
        Rewiring::Variables(|variables| {
            mapped(variables, "MACHINA_PROFILE", |profile| match profile {
                "" | "dev" => profile.to_owned(),
                _ => "prod".to_owned(),
            })
        }),
    ),
    wire(
        "select-default-timeout-of-prod",
        &["PD-TIME-03"],
        "Without either variable the timeout is 30 s.",
        Rewiring::Variables(|variables| set_default(variables, "MACHINA_PROFILE", "prod")),
    ),
    wire(
        "select-default-timeout-of-a-second",
        &["PD-TIME-03", "PD-TIME-10"],
        "Without either variable the timeout is 1 s.",
        Rewiring::Variables(|variables| {
            if !variables.iter().any(|(name, value)| name == "MACHINA_PROFILE" && !value.is_empty()) {
                set_default(variables, "MACHINA_POLICY_TIMEOUT_MS", "1000");
            }
        }),
    ),
    machine("select-never-gives-up", &["PD-TIME-04"], "A driver that does not end is waited for.", |inner| {
        wrap(inner, |inner, event, now, actions| {
            if event != Event::Wake {
                inner.handle(event, now, actions);
            }
        })
    }),
    machine(
        "select-waits-for-the-pipe",
        &["PD-TIME-04"],
        "Output that a child of an ended driver keeps open is waited for.",
        |inner| {
            watching(inner, |inner, memory, event, now, actions| {
                if event != Event::Wake || !memory.has_ended {
                    inner.handle(event, now, actions);
                }
            })
        },
    ),
    wire(
        "select-ignores-stdout-limit",
        &["PD-TIME-07"],
        "The variable for the bytes of stdout means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_POLICY_STDOUT_MAX")),
    ),
    config("select-stdout-one-too-few", &["PD-TIME-07"], "The limit of stdout is exclusive.", |config| {
        config.settings.stdout_bytes_max = config.settings.stdout_bytes_max.saturating_sub(1)
    }),
    config(
        "select-stdout-one-too-many",
        &["PD-TIME-07", "PD-FAIL-05"],
        "One byte more than the limit of stdout is read.",
        |config| config.settings.stdout_bytes_max += 1,
    ),
    wire(
        "select-default-stdout-of-a-megabyte",
        &["PD-TIME-07"],
        "Without the variable the limit of stdout is 1 MB.",
        Rewiring::Variables(|variables| set_default(variables, "MACHINA_POLICY_STDOUT_MAX", "1048576")),
    ),
    wire(
        "select-default-stdout-of-a-page",
        &["PD-TIME-07"],
        "Without the variable the limit of stdout is 4,096 bytes.",
        Rewiring::Variables(|variables| set_default(variables, "MACHINA_POLICY_STDOUT_MAX", "4096")),
    ),
    parts(
        "select-counts-trimmed-bytes",
        &["PD-TIME-07", "PD-TIME-08"],
        "White space around a block does not count for the limit of stdout.",
        |config, parts| {
            judge_later(config, parts, |stdout, max| {
                Some(stdout).filter(|stdout| stdout.trim_ascii().len() <= max)
            })
        },
    ),
    parts(
        "select-counts-characters",
        &["PD-TIME-07", "PD-TIME-08"],
        "The limit of stdout counts characters.",
        |config, parts| {
            judge_later(config, parts, |stdout, max| {
                Some(stdout).filter(|stdout| String::from_utf8_lossy(stdout).chars().count() <= max)
            })
        },
    ),
    parts(
        "select-drops-what-is-too-much",
        &["PD-FAIL-05", "PD-TIME-07"],
        "What a driver writes over the limit of stdout is dropped.",
        |config, parts| judge_later(config, parts, |stdout, max| Some(&stdout[..stdout.len().min(max)])),
    ),
    parts(
        "select-reads-floods-to-the-end",
        &["PD-TIME-08"],
        "Output over the limit is read on before it is a failure.",
        |config, parts| {
            judge_later(config, parts, |stdout, max| Some(stdout).filter(|stdout| stdout.len() <= max))
        },
    ),
    wire(
        "select-bad-numbers-are-unlimited",
        &["PD-TIME-11"],
        "A number that is none means no limit.",
        Rewiring::Variables(|variables| {
            for (name, value) in variables {
                let is_bad = NUMBERS.contains(&name.as_str()) && value.parse::<u64>().is_err();
                if is_bad && !value.is_empty() {
                    "1000000000".clone_into(value);
                }
            }
        }),
    ),
    wire(
        "select-bad-numbers-are-zero",
        &["PD-TIME-09"],
        "A number that is none means 0.",
        Rewiring::Variables(|variables| {
            for (name, value) in variables {
                let is_bad = NUMBERS.contains(&name.as_str()) && value.parse::<u64>().is_err();
                if is_bad && !value.is_empty() {
                    "0".clone_into(value);
                }
            }
        }),
    ),
    wire(
        "select-bad-resources-are-unlimited",
        &["PD-TIME-11"],
        "A resource whose variable is no number has no limit.",
        Rewiring::Variables(|variables| {
            for (name, value) in variables {
                let is_bad = name.starts_with("MACHINA_POLICY_RLIMIT_") && value.parse::<u64>().is_err();
                if is_bad && !value.is_empty() {
                    "65536".clone_into(value);
                }
            }
        }),
    ),
    wire(
        "select-empty-numbers-are-zero",
        &["PD-TIME-09"],
        "An empty number means 0.",
        Rewiring::Variables(|variables| {
            for (name, value) in variables {
                if NUMBERS.contains(&name.as_str()) && value.is_empty() {
                    "0".clone_into(value);
                }
            }
        }),
    ),
    wire(
        "select-numbers-in-32-bits",
        &["PD-TIME-09"],
        "Of a number the lowest 32 bits count.",
        Rewiring::Variables(|variables| {
            for (_, value) in variables.iter_mut().filter(|(name, _)| NUMBERS.contains(&name.as_str())) {
                if let Ok(number) = value.parse::<u64>() {
                    *value = (number & u64::from(u32::MAX)).to_string();
                }
            }
        }),
    ),
    machine(
        "select-ends-drivers-that-pause",
        &["PD-TIME-10"],
        "A driver that has written something and is silent for a second is given up.",
        |inner| Box::new(Nervous { inner, last_write: None }),
    ),
    config("select-half-the-time", &["PD-TIME-10"], "A driver has half of its time.", |config| {
        config.settings.timeout_ms /= 2
    }),
    wire(
        "select-first-resource-only",
        &["PD-RLIM-02", "PD-RLIM-04"],
        "Where the variable for the size of files is set those for other resources mean nothing.",
        Rewiring::Variables(|variables| {
            const FILES: &str = "MACHINA_POLICY_RLIMIT_FSIZE_MB";
            if variables.iter().any(|(name, _)| name == FILES) {
                variables.retain(|(name, _)| name == FILES || !name.starts_with("MACHINA_POLICY_RLIMIT_"));
            }
        }),
    ),
    config(
        "select-limits-in-32-bits",
        &["PD-RLIM-02", "PD-RLIM-03"],
        "Of the bytes of a limit the lowest 32 bits count.",
        |config| {
            let resources = &mut config.settings.resources;
            resources.address_space_bytes &= u64::from(u32::MAX);
            resources.file_bytes &= u64::from(u32::MAX);
        },
    ),
    wire(
        "select-ignores-cpu-limit",
        &["PD-RLIM-01"],
        "MACHINA_POLICY_RLIMIT_CPU_SEC means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_POLICY_RLIMIT_CPU_SEC")),
    ),
    wire(
        "select-ignores-address-space-limit",
        &["PD-RLIM-02"],
        "MACHINA_POLICY_RLIMIT_AS_MB means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_POLICY_RLIMIT_AS_MB")),
    ),
    wire(
        "select-ignores-file-size-limit",
        &["PD-RLIM-03"],
        "MACHINA_POLICY_RLIMIT_FSIZE_MB means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_POLICY_RLIMIT_FSIZE_MB")),
    ),
    wire(
        "select-ignores-open-files-limit",
        &["PD-RLIM-04"],
        "MACHINA_POLICY_RLIMIT_NOFILE means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_POLICY_RLIMIT_NOFILE")),
    ),
    wire(
        "select-ignores-processes-limit",
        &["PD-RLIM-05"],
        "MACHINA_POLICY_RLIMIT_NPROC means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_POLICY_RLIMIT_NPROC")),
    ),
    config("select-no-cpu-limit", &["PD-RLIM-01"], "No limit of `cpu_s` is set.", |config| {
        config.settings.resources.cpu_s = 1 << 20
    }),
    config(
        "select-no-address-space-limit",
        &["PD-RLIM-02"],
        "No limit of `address_space_bytes` is set.",
        |config| config.settings.resources.address_space_bytes = 1 << 45,
    ),
    config("select-no-file-size-limit", &["PD-RLIM-03"], "No limit of `file_bytes` is set.", |config| {
        config.settings.resources.file_bytes = 1 << 45
    }),
    config(
        "select-no-open-files-limit",
        &["PD-RLIM-04", "PD-TIME-11"],
        "No limit of `open_files` is set.",
        |config| config.settings.resources.open_files = 1 << 16,
    ),
    config("select-no-processes-limit", &["PD-RLIM-05"], "No limit of `processes` is set.", |config| {
        config.settings.resources.processes = 1 << 16
    }),
    config(
        "select-megabytes-of-a-million",
        &["PD-RLIM-03"],
        "A megabyte of a limit is a million bytes.",
        |config| {
            let resources = &mut config.settings.resources;
            resources.address_space_bytes = resources.address_space_bytes / (1 << 20) * 1_000_000;
            resources.file_bytes = resources.file_bytes / (1 << 20) * 1_000_000;
        },
    ),
];
