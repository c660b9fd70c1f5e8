//! Faults of policy drivers and selectors outside their machines.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process_group, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::dispatcher::{Bystanders, Handling, kill_all};
use super::faults::CHILD_LIFE_S;
use super::payload_file::PayloadFile;
use crate::json::{Policy, Value};
use crate::policy_driver::mutants::driver::DriverFault;
use crate::policy_driver::mutants::selector::LaunchFault;

/// Delay before a late payload is written.
const LATE: Duration = Duration::from_millis(200);

/// Time between SIGTERM and SIGKILL in a patient selector.
const PATIENCE: Duration = Duration::from_secs(3);

/// Open files allowed to a selector that limits itself.
const OWN_FILES_MAX: u64 = 64;

/// A selector with a fault.
pub(super) struct Careless {
    fault: LaunchFault,
    /// True if the driver had to be killed.
    was_killed: Cell<bool>,
}

impl Careless {
    /// Creates a selector with this fault, and applies the fault to the process if it belongs there.
    ///
    /// # Errors
    /// The failed system call.
    pub(super) fn new(fault: LaunchFault) -> io::Result<Self> {
        match fault {
            LaunchFault::LimitsItself => {
                let maximum = getrlimit(Resource::Nofile).maximum;
                let current = Some(maximum.map_or(OWN_FILES_MAX, |maximum| maximum.min(OWN_FILES_MAX)));
                setrlimit(Resource::Nofile, Rlimit { current, maximum })?;
                let maximum = getrlimit(Resource::Fsize).maximum;
                setrlimit(Resource::Fsize, Rlimit { current: Some(1 << 20), maximum })?;
            }
            LaunchFault::IgnoresTerm => {
                signal_hook::flag::register(SIGTERM, Arc::new(AtomicBool::new(false)))?;
            }
            _ => {}
        }
        Ok(Self { fault, was_killed: Cell::new(false) })
    }
}

impl Handling for Careless {
    fn write(&self, folder: &str, payload: &[u8]) -> io::Result<PayloadFile> {
        match self.fault {
            LaunchFault::OpenPayload => {
                let file = PayloadFile::create(folder, payload)?;
                fs::set_permissions(file.path(), Permissions::from_mode(0o644))?;
                Ok(file)
            }
            LaunchFault::LeavesLock => {
                let file = PayloadFile::create(folder, payload)?;
                File::create(file.path().with_extension("lock"))?;
                Ok(file)
            }
            LaunchFault::LatePayload => {
                let file = PayloadFile::create(folder, b"")?;
                let (path, payload) = (file.path().to_owned(), payload.to_owned());
                thread::spawn(move || {
                    thread::sleep(LATE);
                    OpenOptions::new().write(true).open(path)?.write_all(&payload)
                });
                Ok(file)
            }
            _ => PayloadFile::create(folder, payload),
        }
    }

    fn arguments(&self, argv: Vec<String>, payload: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = argv.into_iter().map(OsString::from).collect();
        match self.fault {
            LaunchFault::PayloadFirst => arguments.insert(arguments.len().min(2), payload.into()),
            LaunchFault::PayloadAsOption => {
                let mut option = OsString::from("--payload=");
                option.push(payload);
                arguments.push(option);
            }
            _ => arguments.push(payload.into()),
        }
        arguments
    }

    fn stdin(&self, payload: &Path) -> Stdio {
        match (self.fault, File::open(payload)) {
            (LaunchFault::SharesStdin, _) => Stdio::inherit(),
            (LaunchFault::FeedsPayload, Ok(file)) => file.into(),
            _ => Stdio::null(),
        }
    }

    fn kill(&self, child: &mut Child, bystanders: &Bystanders, wait: &mut dyn FnMut(Duration)) {
        let lives = matches!(child.try_wait(), Ok(None));
        self.was_killed.set(lives);
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let signal = |signal| {
            let _ = group.map(|group| kill_process_group(group, signal));
        };
        match self.fault {
            LaunchFault::KillsNobody => {}
            LaunchFault::KillsDriver => {
                let _ = child.kill();
                let _ = child.wait();
            }
            LaunchFault::KillsGroup => {
                signal(Signal::KILL);
                let _ = child.wait();
            }
            LaunchFault::KillsLate if !lives => {}
            LaunchFault::KillsGently => signal(Signal::TERM),
            LaunchFault::KillsPatiently if lives => {
                signal(Signal::TERM);
                let rounds = 100;
                for _ in 0..rounds {
                    if !matches!(child.try_wait(), Ok(None)) {
                        break;
                    }
                    thread::sleep(PATIENCE / rounds);
                }
                kill_all(child, bystanders, wait);
            }
            _ => kill_all(child, bystanders, wait),
        }
    }

    fn remove(&self, payload: PayloadFile) {
        let stays = match self.fault {
            LaunchFault::LeavesPayload => true,
            LaunchFault::LeavesPayloadOfKilled => self.was_killed.get(),
            _ => false,
        };
        if stays {
            std::mem::forget(payload);
        }
    }

    fn signals(&self) -> &'static [i32] {
        match self.fault {
            LaunchFault::IgnoresTerm => &[SIGINT, SIGHUP],
            _ => &[SIGTERM, SIGINT, SIGHUP],
        }
    }
}

/// Applies `fault` before a driver decides on the payload at `path`. Returns the path that the driver reads, and true
/// if it picks an entry even when it cannot read the payload.
///
/// # Errors
/// The failed system call, which ends the driver.
pub(super) fn before_deciding(
    fault: DriverFault,
    path: &str,
    temp_dir: Option<PathBuf>,
) -> io::Result<(PathBuf, bool)> {
    let temp_dir = temp_dir.unwrap_or_else(|| PathBuf::from("/tmp"));
    let scratch = temp_dir.join(format!("policy-scratch-{}", std::process::id()));
    let payload = || fs::read(path).unwrap_or_default();
    match fault {
        DriverFault::Path(spell) => return Ok((spell(path).into(), false)),
        DriverFault::PayloadFromStdin => return Ok(("/dev/stdin".into(), false)),
        DriverFault::PicksUnread => return Ok((path.into(), true)),
        DriverFault::ReadsStdin => drop(io::stdin().read_to_end(&mut Vec::new())?),
        DriverFault::Sleeps(ms, when) => {
            if fs::metadata(path).is_ok_and(|about| about.is_file()) && when(&payload()) {
                thread::sleep(Duration::from_millis(ms));
            }
        }
        DriverFault::LeavesSession => {
            let streams = (Stdio::null(), Stdio::null(), Stdio::null());
            let mut command = Command::new("setsid");
            command.arg("sleep").arg(CHILD_LIFE_S).process_group(0);
            command.stdin(streams.0).stdout(streams.1).stderr(streams.2).spawn()?;
        }
        DriverFault::LeavesSocket => drop(UnixListener::bind(temp_dir.join("policy-driver.sock"))?),
        DriverFault::LeavesRecord => {
            let works_in = std::env::current_dir()?;
            if works_in == temp_dir.canonicalize()? {
                fs::write(works_in.join("last-decision.json"), b"{}")?;
            }
        }
        DriverFault::LeavesBeside => {
            let _ = fs::copy(path, format!("{path}.seen"));
        }
        DriverFault::EchoesByShell => echo_names(&payload()),
        DriverFault::Reserves(bytes) => {
            let mut room: Vec<u8> = Vec::new();
            room.try_reserve_exact(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            std::hint::black_box(&room);
        }
        DriverFault::Opens(count) => {
            let files: Result<Vec<File>, _> = (0..count).map(|_| File::open("/dev/null")).collect();
            drop(files?);
        }
        DriverFault::Writes(bytes) => {
            let written = fs::write(&scratch, vec![0; bytes]);
            let _ = fs::remove_file(&scratch);
            written?;
        }
    }
    Ok((path.into(), false))
}

/// Runs a shell that echoes the name of each of the first entries in double quotes.
fn echo_names(payload: &[u8]) {
    let payload = Value::parse(payload, 128, &Policy::default()).unwrap_or(Value::Null);
    let entries = payload.get("menu").and_then(Value::as_array).unwrap_or_default();
    let inputs = payload.get("inputs").and_then(Value::as_object).unwrap_or_default();
    let names = entries.iter().filter_map(|entry| entry.get("name")?.as_str()).take(20);
    let texts = inputs.iter().filter_map(|(_, value)| value.as_str()).take(20);
    for text in names.chain(texts).filter(|text| text.len() < 4096 && !text.contains('\0')) {
        let streams = (Stdio::null(), Stdio::null(), Stdio::null());
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("echo \"{text}\""));
        let _ = command.stdin(streams.0).stdout(streams.1).stderr(streams.2).status();
    }
}
