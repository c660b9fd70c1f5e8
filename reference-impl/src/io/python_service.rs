//! `python-tool service --http ADDRESS`: the reference service of Python tools. A local runner handles each call: a
//! process of this program in its own process group.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::http_faults::faulty;
use super::http_server::{self, Front, HttpReply, Plain, serve};
use crate::choices::OverSize;
use crate::http::HttpRequest;
use crate::json::{Policy, Value, write_value};
use crate::python_tool::Config;
use crate::python_tool::mutants::{Edit, Mutant};
use crate::python_tool::service::{Ended, Reply, Sent, Service, Step};

/// Largest body in bytes for a service without a size limit.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Time between the two signals at a timeout.
const GRACE: Duration = Duration::from_millis(200);

/// Levels of nesting that a mutant parses.
const NESTING_MAX: usize = 1_000;

/// Serves until the process is terminated. Returns the exit status if it cannot: 2 for an address in use, else 70.
/// `runner` holds program and arguments of the runner for each call.
pub(super) fn run(address: SocketAddr, config: Config, runner: Vec<String>, mutant: Option<&Mutant>) -> i32 {
    let bytes_max = match config.choices.over_size {
        OverSize::Refuse => config.limits.stdin_bytes_max,
        OverSize::Process => BODY_BYTES_MAX,
    };
    let front: Box<dyn Front> = match mutant {
        Some(mutant) => match (mutant.carrier_fault(), mutant.rewriting()) {
            (Some(fault), _) => faulty(fault),
            (None, Some(edit)) => Box::new(Edited { edit, is_stuck: AtomicBool::new(false) }),
            (None, None) => Box::new(Plain),
        },
        None => Box::new(Plain),
    };
    let at_timeout = config.at_timeout;
    let tools = Tools { service: Mutex::new(Service::new(config)), runner, at_timeout };
    serve("python-tool", address, bytes_max, Box::new(tools), front)
}

struct Tools {
    service: Mutex<Service>,
    runner: Vec<String>,
    at_timeout: [Sent; 2],
}

impl Tools {
    fn lock(&self) -> MutexGuard<'_, Service> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, request: &HttpRequest) -> Reply {
        if request.method != "POST" {
            return (405, Vec::new());
        }
        let content_type = request.content_type.as_deref().unwrap_or("application/json");
        let name = content_type.split(';').next().unwrap_or_default().trim();
        if !name.eq_ignore_ascii_case("application/json") {
            return (415, Vec::new());
        }
        let path = request.target.split('?').next().unwrap_or_default();
        let step = self.lock().receive(path, request.body.as_deref());
        match step {
            Step::Reply(reply) => reply,
            Step::Run { request, timeout_ms } => {
                let ended = self.run(request, Duration::from_millis(timeout_ms));
                self.lock().answer(ended)
            }
        }
    }

    fn run(&self, request: Vec<u8>, timeout: Duration) -> Ended {
        let Some((program, arguments)) = self.runner.split_first() else {
            return Ended::NotStarted("there is no runner".to_owned());
        };
        let (started, group) = mpsc::channel();
        let (sender, ended) = mpsc::channel();
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        // The runner dies with the thread that started it, and the thread waits for it.
        let served = thread::Builder::new().spawn(move || {
            let child = command.spawn().map_err(|error| error.to_string());
            let _ =
                started.send(child.as_ref().ok().and_then(|child| Pid::from_raw(child.id().cast_signed())));
            let _ = sender.send(child.map_or_else(Ended::NotStarted, |child| await_end(child, &request)));
        });
        match served {
            Ok(_) => self.wait(&ended, group.recv().ok().flatten(), timeout),
            Err(error) => Ended::NotStarted(error.to_string()),
        }
    }

    fn wait(&self, ended: &Receiver<Ended>, group: Option<Pid>, timeout: Duration) -> Ended {
        if let Ok(ended) = ended.recv_timeout(timeout) {
            return ended;
        }
        for signal in self.at_timeout {
            let signal = match signal {
                Sent::Terminate => Signal::TERM,
                Sent::Kill => Signal::KILL,
                Sent::Continue => Signal::CONT,
            };
            // This fails if the group is gone.
            let _ = group.map(|group| kill_process_group(group, signal));
            if ended.recv_timeout(GRACE).is_ok() {
                break;
            }
        }
        Ended::TimedOut
    }
}

fn await_end(mut child: Child, request: &[u8]) -> Ended {
    // A runner reads all of its input before it writes. A failed write means that it has exited.
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(request));
    let mut reply = Vec::new();
    let _ = child.stdout.take().map(|mut stdout| stdout.read_to_end(&mut reply));
    Ended::Exited(child.wait().ok().and_then(|status| status.code()), reply)
}

impl http_server::Service for Tools {
    fn respond(&self, request: &HttpRequest) -> HttpReply {
        let (status, body) = self.reply(request);
        HttpReply::json(status, body, request.keeps_open)
    }
}

/// Front that rewrites requests and replies.
struct Edited {
    edit: Edit,
    /// True once the service has stopped answering.
    is_stuck: AtomicBool,
}

fn parsed(bytes: &[u8]) -> Option<Value> {
    Value::parse(bytes, NESTING_MAX, &Policy::default()).ok()
}

fn text(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(&mut out, value);
    out
}

impl Front for Edited {
    fn request(&self, mut request: HttpRequest) -> HttpRequest {
        while self.is_stuck.load(Ordering::SeqCst) {
            thread::park();
        }
        match self.edit {
            Edit::Posted(edit) => {
                if let Some(mut value) = request.body.as_deref().and_then(parsed) {
                    edit(&mut value);
                    request.body = Some(text(&value));
                }
            }
            Edit::Carried(edit) => edit(&mut request),
            _ => {}
        }
        request
    }

    fn reply(&self, request: Option<&HttpRequest>, mut reply: HttpReply) -> HttpReply {
        let Edit::Answered(edit) = self.edit else { return reply };
        let asked = request.and_then(|request| parsed(request.body.as_deref()?)).unwrap_or(Value::Null);
        let mut value = parsed(&reply.body).unwrap_or(Value::Null);
        let (before, status) = (value.clone(), reply.status);
        edit(&asked, &mut reply.status, &mut value);
        if reply.status == 0 {
            self.is_stuck.store(true, Ordering::SeqCst);
            reply.status = status;
        }
        if value != before {
            reply.body = text(&value);
        }
        reply
    }
}
