//! Machines of another build, reached over the standard streams of this process.

use std::io::{BufWriter, Read as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use peerproof_engine::drive::machine::{Action, Machine, MachineEvent, Millis};
use peerproof_engine::drive::transport::in_process::UNIX_MS_AT_START;

/// Connection to the process that runs the machines.
pub(crate) struct Line {
    input: std::io::Stdin,
    output: BufWriter<std::io::Stdout>,
    machines: u32,
}

/// Connection shared by all machines.
pub(crate) type SharedLine = Arc<Mutex<Line>>;

/// Opens the connection on the standard streams of this process.
pub(crate) fn line() -> SharedLine {
    let output = BufWriter::new(std::io::stdout());
    Arc::new(Mutex::new(Line { input: std::io::stdin(), output, machines: 0 }))
}

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

    /// Reads an answer: true if the machine wants more input, and its actions.
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
                // There is no network, so any fetch is as good.
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

/// Machine at the other end of the connection.
struct Remote {
    line: SharedLine,
    machine: u32,
    wants_stdin: bool,
}

impl Remote {
    fn ask(&mut self, op: u8, now: Millis, bytes: &[u8], actions: &mut Vec<Action>) {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        match line.write(op, self.machine, now, bytes).and_then(|()| line.answer(actions)) {
            Ok(wants) => self.wants_stdin = wants,
            // A mutant has ended the other process.
            Err(_) => std::process::exit(1),
        }
    }
}

impl Machine for Remote {
    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.ask(b'b', now, b"", actions);
    }

    fn handle(&mut self, event: MachineEvent<'_>, now: Millis, actions: &mut Vec<Action>) {
        let (op, bytes) = match event {
            MachineEvent::Stdin(bytes) => (b'i', bytes),
            MachineEvent::StdinEof => (b'z', b"".as_slice()),
            MachineEvent::Terminate => (b't', b"".as_slice()),
            MachineEvent::Wake => (b'w', b"".as_slice()),
            _ => (b'f', b"".as_slice()),
        };
        self.ask(op, now, bytes, actions);
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

/// Opens the machine that `refpeer` would play with these arguments and variables.
pub(crate) fn open(line: &SharedLine, args: &[String], env: &[(String, String)]) -> Option<Box<dyn Machine>> {
    let mut locked = line.lock().unwrap_or_else(PoisonError::into_inner);
    locked.machines += 1;
    let machine = locked.machines;
    let env = env.iter().map(|(name, value)| format!("{name}={value}"));
    let words: Vec<String> = args.iter().cloned().chain([String::new()]).chain(env).collect();
    locked.write(b'n', machine, UNIX_MS_AT_START, words.join("\0").as_bytes()).ok()?;
    let wants_stdin = locked.answer(&mut Vec::new()).ok()?;
    drop(locked);
    Some(Box::new(Remote { line: Arc::clone(line), machine, wants_stdin }))
}
