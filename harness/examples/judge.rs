//! Judges a reference toolhost of another build: `reference-impl/mutants.sh` runs it against each mutant of the source.
//!
//! ```text
//! judge REFPEER
//! ```
//!
//! What can be judged without processes is: the machines of the other build are spoken to over standard input and
//! output, on a virtual clock, so that hundreds of checks take a second and none depends on how busy the machine is. The
//! checks that need a process run against the binary REFPEER. The first failure ends it: one line on standard error, and
//! status 1.

use std::io::{BufWriter, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use peerproof::boundary::{self, Boundary};
use peerproof::check::Check;
use peerproof::clause::Side;
use peerproof::fixture::ActorExe;
use peerproof::peer::{Origin, Peer};
use peerproof::runner::{self, Options, Outcome, Surroundings};
use peerproof::verdict::Verdict;
use peerproof_reference::machine::{Action, Event, Machine, Millis};

/// Upper bounds of time are not what is judged here.
const TIMEOUT_SCALE: f64 = 4.0;

/// The line to the process that has the machines.
struct Line {
    input: std::io::Stdin,
    output: BufWriter<std::io::Stdout>,
    machines: u32,
}

type SharedLine = Arc<Mutex<Line>>;

impl Line {
    fn write(&mut self, op: u8, machine: u32, now: Millis, bytes: &[u8]) -> std::io::Result<()> {
        self.output.write_all(&[op])?;
        self.output.write_all(&machine.to_le_bytes())?;
        self.output.write_all(&now.to_le_bytes())?;
        self.output.write_all(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        self.output.write_all(bytes)?;
        self.output.flush()
    }

    fn number<const N: usize>(&mut self) -> std::io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Whether the machine wants more input, and what it asks for.
    fn answer(&mut self, actions: &mut Vec<Action>) -> std::io::Result<bool> {
        let [wants] = self.number()?;
        let count = u32::from_le_bytes(self.number()?);
        for _ in 0..count {
            let [kind] = self.number()?;
            let number = u64::from_le_bytes(self.number()?);
            let length = u32::from_le_bytes(self.number()?);
            let mut bytes = vec![0; length as usize];
            self.input.read_exact(&mut bytes)?;
            actions.push(match kind {
                b'o' => Action::Stdout(bytes),
                b'e' => Action::Stderr(bytes),
                b'w' => Action::WakeAt(number),
                b'x' => Action::Exit(i32::try_from(number).unwrap_or(i32::MAX)),
                b'a' => Action::Abort,
                // There is no network here: any fetch will do.
                _ => Action::Fetch {
                    host: "nobody.invalid".to_owned(),
                    port: 80,
                    path: "/".to_owned(),
                    host_header: "nobody.invalid".to_owned(),
                    body_bytes_max: 0,
                    timeout_ms: 0,
                },
            });
        }
        Ok(wants == 1)
    }
}

/// A machine on the other end of the line.
struct Remote {
    line: SharedLine,
    machine: u32,
    wants_stdin: bool,
}

impl Machine for Remote {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = match event {
            Event::Stdin(bytes) => line.write(b'i', self.machine, now, bytes),
            Event::StdinEof => line.write(b'z', self.machine, now, b""),
            Event::Terminate => line.write(b't', self.machine, now, b""),
            Event::Wake => line.write(b'w', self.machine, now, b""),
            _ => line.write(b'f', self.machine, now, b""),
        };
        match sent.and_then(|()| line.answer(actions)) {
            Ok(wants) => self.wants_stdin = wants,
            // The other end is gone: a mutant took it along.
            Err(_) => std::process::exit(1),
        }
    }

    fn wants_stdin(&self) -> bool {
        self.wants_stdin
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = line.write(b'd', self.machine, 0, b"");
    }
}

/// Asks for a machine with these arguments and variables.
fn open(line: &SharedLine, args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>> {
    let mut locked = line.lock().unwrap_or_else(PoisonError::into_inner);
    locked.machines += 1;
    let machine = locked.machines;
    let env = env.iter().map(|(name, value)| format!("{name}={value}"));
    let words: Vec<String> = args.iter().cloned().chain([String::new()]).chain(env).collect();
    locked.write(b'n', machine, 0, words.join("\0").as_bytes()).ok()?;
    let wants_stdin = locked.answer(&mut Vec::new()).ok()?;
    drop(locked);
    Some(Box::new(Remote { line: Arc::clone(line), machine, wants_stdin }))
}

/// The `pass`th value of every choice; the defaults first.
fn choices(boundary: &dyn Boundary, pass: usize) -> Vec<(String, String)> {
    let keys = boundary.config_keys().iter().filter(|key| key.table == "choices" && pass > 0);
    keys.filter_map(|key| {
        let value = key.values.get(pass - 1).or_else(|| key.values.last())?;
        Some((key.name.to_owned(), (*value).to_owned()))
    })
    // Some keys are about the other side, which is not judged here.
    .filter(|(key, value)| {
        let args = ["--serve".to_owned(), "--choice".to_owned(), format!("{key}={value}")];
        boundary.reference_machine(&args, &[]).is_some()
    })
    .collect()
}

fn peer(
    boundary: &'static dyn Boundary,
    choices: &[(String, String)],
    refpeer: Option<&str>,
) -> Option<Peer> {
    let reference = boundary.references().into_iter().find(|reference| reference.side == Side::Provider)?;
    let options = choices.iter().flat_map(|(key, value)| ["--choice".to_owned(), format!("{key}={value}")]);
    let options: Vec<String> = options.collect();
    let program = refpeer.map(|refpeer| [refpeer.to_owned(), "toolhost".to_owned()]);
    let command = |args: &[String]| program.iter().flatten().chain(args).chain(&options).cloned().collect();
    let mut facts = boundary.reference_facts(Side::Provider);
    facts.choices.extend(choices.iter().cloned());
    Some(Peer {
        name: "mutant".to_owned(),
        boundary,
        commands: reference.commands.iter().map(|(name, args)| ((*name).to_owned(), command(args))).collect(),
        env: Vec::new(),
        facts,
        features_given: true,
        origin: Origin::Process { base_env: Vec::new(), current_dir: None, cpus: Vec::new() },
        latency_us: Arc::default(),
    })
}

/// The first failure of these checks.
fn first_failure(peer: &Peer, checks: &[&Check], jobs: usize) -> Option<String> {
    let actor_exe = ActorExe::new(PathBuf::from("peerproof"));
    let scratch = tempfile::tempdir().ok()?;
    let stop = AtomicBool::new(false);
    let around = Surroundings { actor_exe: &actor_exe, scratch: scratch.path(), interrupted: &stop };
    let options = Options {
        slow: !peer.is_process(),
        jobs,
        timeout_scale: TIMEOUT_SCALE,
        confirm: 1,
        ..Options::default()
    };
    let failure = Mutex::new(None);
    runner::run(peer, checks, &options, around, &|outcome: Outcome| {
        let result = outcome.result;
        let mute = matches!(&result.verdict, Verdict::Untestable(why) if why.starts_with("no_working_reply"));
        if mute || result.verdict.is_failure() {
            stop.store(true, Ordering::Relaxed);
            let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| format!("{}: {:?}", result.id, result.verdict));
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn judge(refpeer: &str) -> Option<String> {
    let boundary = boundary::find("toolhost")?;
    let line: SharedLine = Arc::new(Mutex::new(Line {
        input: std::io::stdin(),
        output: BufWriter::new(std::io::stdout()),
        machines: 0,
    }));
    let (outside, inside): (Vec<&Check>, Vec<&Check>) =
        boundary.checks().iter().partition(|check| check.needs_process);
    for pass in 0..=3 {
        let Some(mut peer) = peer(boundary, &choices(boundary, pass), None) else { break };
        let line = Arc::clone(&line);
        peer.origin = Origin::InProcess(Arc::new(move |args, env| open(&line, args, env)));
        let checks: Vec<&Check> =
            inside.iter().copied().filter(|check| peer.commands.contains_key(&check.command)).collect();
        if let Some(failure) = first_failure(&peer, &checks, 1) {
            return Some(format!("in pass {pass}: {failure}"));
        }
    }
    for choices in [Vec::new(), vec![("redirects".to_owned(), "refuse".to_owned())]] {
        let peer = peer(boundary, &choices, Some(refpeer))?;
        let checks: Vec<&Check> = outside
            .iter()
            .copied()
            .filter(|check| peer.commands.contains_key(&check.command))
            .filter(|check| choices.is_empty() || check.feature.as_deref() == Some("http_get"))
            .collect();
        if let Some(failure) = first_failure(&peer, &checks, 2) {
            return Some(format!("as a process with {choices:?}: {failure}"));
        }
    }
    None
}

fn main() -> ExitCode {
    let failure = match std::env::args().nth(1) {
        Some(refpeer) => judge(&refpeer),
        None => Some("usage: judge REFPEER".to_owned()),
    };
    match failure {
        Some(failure) => {
            let _ = writeln!(std::io::stderr(), "{failure}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}
