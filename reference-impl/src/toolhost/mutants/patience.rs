//! Mutants with wrong timing: they give up in a pause, or carry out a refused action later.

use super::{Mutant, Rewiring};
use crate::machine::{Action, Event, Machine, Millis};
use crate::mutant::text::{find, has, swap};
use crate::mutant::{Inner, Seam, machine as mutant};

/// Longest tolerated pause in ms.
const PATIENCE_MS: Millis = 1_000;

/// Delay between a refusal and the forbidden action, in ms.
const BELATED_MS: Millis = 700;

/// The mutants of this seam.
pub(super) const MUTANTS: &[Mutant] = &[
    mutant(
        "ends-in-a-pause",
        &["TH-FRAME-01"],
        "A session ends after a second without a request.",
        |inner| Box::new(Restless { inner, read_at: 0, is_open: false, ended: false }),
    ),
    Mutant::new(
        "run-reads-for-a-second",
        &["TH-FRAME-04"],
        "What comes later than a second after the first bytes of a run is not read.",
        Seam::Wire(Rewiring::RunMode(|inner| Box::new(Hurried { inner, began: None }))),
    ),
    mutant(
        "mixes-large-replies",
        &["TH-REPLY-01"],
        "Replies that are ready together are written in turn, 64 KiB of each.",
        |inner| Box::new(Mixing { inner, ready: Vec::new() }),
    ),
    mutant(
        "runs-refused-requests-later",
        &["TH-REQ-17"],
        "A request whose input is an object is refused and run a little later.",
        |inner| {
            belated(inner, |request, _| {
                has(request, "\"input_json\":{}")
                    .then(|| Belated::Request(swap(request, "\"input_json\":{}", "\"input_json\":\"{}\"")))
            })
        },
    ),
    mutant(
        "applies-refused-states-later",
        &["TH-STATE-07"],
        "A state with a slot 8 is refused and its other slots applied a little later.",
        |inner| {
            belated(inner, |request, reply| {
                let is_refused = has(reply, "\"ok\":false") && has(request, "\"8\":{");
                let state = b"{\"aid\":\"AID.PEERPROOF.ANY.v1\",\"ds_state\":{}}\n".to_vec();
                is_refused.then_some(Belated::Request(state))
            })
        },
    ),
    mutant(
        "fetches-refused-hosts-later",
        &["TH-HTTP-03"],
        "A host that is not listed is refused and contacted a little later.",
        |inner| {
            belated(inner, |request, reply| {
                let at = find(request, "http://127.0.0.1:").filter(|_| has(reply, "host not allowed"))?;
                let digits = request.get(at + 17..)?.iter().take_while(|byte| byte.is_ascii_digit());
                let port = digits.fold(0, |port: u32, digit| port * 10 + u32::from(digit - b'0'));
                Some(Belated::Fetch(u16::try_from(port).ok()?))
            })
        },
    ),
];

/// Interleaves the first two lines in blocks of 64 KiB if both are longer.
fn mixed(bytes: &[u8]) -> Vec<u8> {
    const TURN: usize = 64 << 10;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    match (lines.next(), lines.next()) {
        (Some(one), Some(two)) if one.len() > 2 * TURN && two.len() > 2 * TURN => {
            let rest = &bytes[one.len() + two.len()..];
            [&one[..TURN], &two[..TURN], &one[TURN..], &two[TURN..], rest].concat()
        }
        _ => bytes.to_vec(),
    }
}

/// A mutant that collects replies while more are ready, and interleaves them.
struct Mixing {
    inner: Inner,
    ready: Vec<u8>,
}

impl Machine for Mixing {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        let (mut new, mut others) = (Vec::new(), Vec::new());
        self.inner.handle(event, now, &mut new);
        for action in new {
            match action {
                Action::Stdout(bytes) => self.ready.extend(bytes),
                other => others.push(other),
            }
        }
        let goes_on = others.iter().any(|action| matches!(action, Action::WakeAt(at) if *at <= now));
        if !goes_on && !self.ready.is_empty() {
            actions.push(Action::Stdout(mixed(&std::mem::take(&mut self.ready))));
        }
        actions.append(&mut others);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that exits after a pause between two lines.
struct Restless {
    inner: Inner,
    read_at: Millis,
    is_open: bool,
    ended: bool,
}

impl Machine for Restless {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if self.ended {
            return;
        }
        if let Event::Stdin(bytes) = event {
            if !self.is_open && now.saturating_sub(self.read_at) > PATIENCE_MS {
                self.ended = true;
                actions.push(Action::Exit(0));
                return;
            }
            self.read_at = now;
            self.is_open = !bytes.ends_with(b"\n");
        }
        self.inner.handle(event, now, actions);
    }

    fn begin(&mut self, now: Millis, actions: &mut Vec<Action>) {
        self.read_at = now;
        self.inner.begin(now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// A mutant that stops reading after a while.
struct Hurried {
    inner: Inner,
    began: Option<Millis>,
}

impl Machine for Hurried {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Event::Stdin(_) = event
            && now.saturating_sub(*self.began.get_or_insert(now)) > PATIENCE_MS
        {
            return;
        }
        self.inner.handle(event, now, actions);
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Action that is delayed so that it is not noticed at once.
enum Belated {
    /// Run this request and discard the reply.
    Request(Vec<u8>),
    /// Connect to this port of the machine.
    Fetch(u16),
}

/// Selects the delayed action, given a request and its reply.
type Pick = fn(&[u8], &[u8]) -> Option<Belated>;

fn belated(inner: Inner, pick: Pick) -> Inner {
    Box::new(Later { inner, pick, due: None })
}

struct Later {
    inner: Inner,
    pick: Pick,
    due: Option<(Millis, Belated)>,
}

impl Machine for Later {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if let Some((_, act)) = self.due.take_if(|(due, _)| *due <= now) {
            match act {
                Belated::Request(request) => {
                    self.inner.handle(Event::Stdin(&request), now, &mut Vec::new());
                }
                Belated::Fetch(port) => actions.push(Action::Fetch {
                    host: "127.0.0.1".to_owned(),
                    port,
                    path: "/".to_owned(),
                    host_header: "127.0.0.1".to_owned(),
                    body_bytes_max: 1 << 20,
                    timeout_ms: 1_000,
                }),
            }
        }
        let asked = match &event {
            Event::Stdin(bytes) => bytes.to_vec(),
            _ => Vec::new(),
        };
        let from = actions.len();
        self.inner.handle(event, now, actions);
        let mut replies = actions[from..].iter().filter_map(|action| match action {
            Action::Stdout(bytes) => Some(bytes),
            _ => None,
        });
        if let Some(act) = replies.next().and_then(|reply| (self.pick)(&asked, reply)) {
            let due = now + BELATED_MS;
            self.due = Some((due, act));
            actions.push(Action::WakeAt(due));
        }
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}
