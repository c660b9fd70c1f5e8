//! Execution of the steps of a plan.

use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::PlanRun;
use crate::contract::boundary::WriteContext;
use crate::data::blame::HarnessFault;
use crate::data::json::Json;
use crate::data::payload::Payload;
use crate::data::plan::{Act, CWD, Chunking, ROOT_URI, Step};
use crate::data::text::percent_encoded;
use crate::data::transcript::{Awaited, EventKind, stdout};
use crate::drive::fixture::{Fixtures, now_us};
use crate::drive::transport::in_process::UNIX_MS_AT_START;
use crate::drive::transport::{Pumped, Until};

impl PlanRun<'_> {
    pub(super) fn step(
        &mut self,
        index: usize,
        step: &Step,
        fixtures: Option<&mut Fixtures>,
    ) -> Result<(), HarnessFault> {
        let session = step.session;
        // Processes that a peer started can be inspected even after the peer has ended.
        let is_beside = step.act.is_beside();
        // A session opened without its message would answer nothing.
        let is_new = !is_beside && !self.live[session].opened;
        if is_new && (self.is_drawn_out() || self.is_given_up(session)) {
            return Ok(());
        }
        if !is_beside && !self.open(session)? && !matches!(step.act, Act::ProbeActor { .. }) {
            return Ok(());
        }
        match &step.act {
            Act::Send { payload, chunking, await_frames } => {
                self.send(index, step, payload, *chunking, *await_frames)?;
            }
            Act::Finish => {
                if let Some(connection) = self.connections[session].as_mut() {
                    connection.close_stdin();
                }
                let start = self.until_ready(session);
                self.await_end(session, self.stretched(step.allow_ms), start);
                self.end(session);
                if let Some(capture) = &step.capture {
                    let output = stdout(&self.events, session);
                    self.complete = !self.capture_output(&output, capture);
                }
            }
            Act::CloseStdin => {
                if let Some(connection) = self.connections[session].as_mut() {
                    connection.close_stdin();
                }
            }
            Act::Signal(name) => {
                self.send_signal(session, name);
                self.await_signalled(session, step);
            }
            Act::SignalWhen { signal, what, within_ms } => {
                let within = self.stretched(*within_ms);
                if let Some(fixtures) = fixtures
                    && self.await_effect(session, what, within, fixtures)?
                {
                    self.send_signal(session, signal);
                    if !matches!(signal.as_str(), "STOP" | "CONT") {
                        self.await_signalled(session, step);
                    }
                }
            }
            Act::Await { what, within_ms } => {
                if let Some(fixtures) = fixtures {
                    self.await_effect(session, what, self.stretched(*within_ms), fixtures)?;
                }
            }
            Act::Wait { ms } => {
                self.let_pass(session, Duration::from_millis(*ms));
            }
            Act::AwaitStart => {
                self.let_pass(session, self.least_start_left(session));
            }
            Act::Flush => {
                let deadline = self.deadline(session, step) + self.until_ready(session);
                let since_us = self.now_us(session);
                if let Pumped::Deadline(_) = self.pump(session, Until::Written, deadline) {
                    self.deadline_passed(session, Awaited::Writing, since_us);
                    self.live[session].over = true;
                }
            }
            Act::SampleMemory { label } => {
                let bytes = self.connections[session].as_mut().and_then(|c| c.memory_hwm_bytes());
                if let Some(hwm_bytes) = bytes {
                    self.record(session, EventKind::Memory { label: label.clone(), hwm_bytes });
                }
            }
            Act::SampleProcessor { label } => {
                let used = self.connections[session].as_ref().and_then(|it| it.cpu_time());
                if let Some(used_ms) = used.and_then(|used| u64::try_from(used.as_millis()).ok()) {
                    self.record(session, EventKind::Processor { label: label.clone(), used_ms });
                }
            }
            Act::Play { script, life_ms } => {
                if !script.is_null() {
                    let unix_ms = self.moment(session, index).unix_ms;
                    self.record(session, EventKind::Clock { unix_ms });
                }
                self.play(index, session, script, *life_ms)?;
                if let Some(fixtures) = fixtures {
                    for kind in fixtures.kept_files()? {
                        self.record(session, kind);
                    }
                }
            }
            Act::Hide { .. }
            | Act::Look { .. }
            | Act::Put { .. }
            | Act::Move { .. }
            | Act::ProbeActor { .. } => self.on_fixtures(session, &step.act, fixtures)?,
        }
        Ok(())
    }

    /// Writes a message, and waits for as many frames as the step says.
    fn send(
        &mut self,
        index: usize,
        step: &Step,
        payload: &Payload,
        chunking: Chunking,
        await_frames: u32,
    ) -> Result<(), HarnessFault> {
        let session = step.session;
        if self.live[session].over || self.is_drawn_out() {
            return Ok(());
        }
        if payload.variables().any(|name| [CWD, ROOT_URI].contains(&name)) {
            self.learn_folder(session);
        }
        let mut bytes = payload.expand(&self.vars)?;
        let mut written = payload.filled(&self.vars)?;
        let is_one_body = step.http.as_ref().is_some_and(|how| !how.is_raw());
        let moment = WriteContext { is_one_body, ..self.moment(session, index) };
        if let Some(sealed) = self.lab.peer.boundary.seal(&self.lab.peer.facts, &bytes, &moment) {
            self.record(session, EventKind::Clock { unix_ms: moment.unix_ms });
            written = Payload::from_bytes(&sealed);
            bytes = sealed;
        }
        let (length, lines) = (bytes.len(), memchr::memchr_iter(b'\n', &bytes).count());
        let kind = EventKind::Sent { step: index, payload: written };
        self.record(session, kind);
        let live = &mut self.live[session];
        live.bytes_pending += length;
        live.lines_pending += lines;
        live.lines_sent += lines as u64;
        live.frames_awaited += u64::from(await_frames);
        if let Some(connection) = self.connections[session].as_mut() {
            connection.queue_step(index, bytes, chunking, step.http.as_ref());
        }
        if step.unread_ms > 0 {
            let idle = self.stretched(step.unread_ms);
            self.with_log(session, |connection, log| connection.write_unread(idle, log));
        }
        if step.await_answers > 0 {
            self.await_answers(index, step);
        } else if await_frames > 0 {
            self.await_reply(index, step);
            match &step.capture {
                Some(capture) if capture.until.is_some() => {
                    let reply = self.last_frame(session).unwrap_or_default();
                    self.complete = !self.capture_output(&reply, capture);
                }
                // Later steps need the value: the conversation can go no further.
                Some(capture) if self.capture(session, capture).is_none() => {
                    self.live[session].over = true;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks at the fixtures or changes them.
    fn on_fixtures(
        &mut self,
        session: usize,
        act: &Act,
        fixtures: Option<&mut Fixtures>,
    ) -> Result<(), HarnessFault> {
        if let Act::Look { after_ms, .. } | Act::ProbeActor { after_ms, .. } = act
            && *after_ms > 0
        {
            self.let_pass(session, self.stretched(*after_ms));
        }
        let Some(fixtures) = fixtures else { return Ok(()) };
        match act {
            Act::Hide { fixture, hidden } => fixtures.hide(fixture, *hidden)?,
            Act::Look { label, path, .. } => {
                let kind = fixtures.look(label, path)?;
                self.note(session, vec![(now_us(), kind)]);
            }
            Act::Put { path, content, by } => {
                let put = fixtures.put(path, content, *by)?;
                self.note(session, vec![put]);
            }
            Act::Move { from, to } => {
                let moved = fixtures.move_file(from, to)?;
                self.note(session, vec![moved]);
            }
            Act::ProbeActor { actor, label, .. } => {
                for kind in fixtures.probe_actor(actor, label)? {
                    self.record(session, kind);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Learns the working folder of a process. A peer without a process has the root.
    fn learn_folder(&mut self, session: usize) {
        let pid = self.connections[session].as_ref().and_then(|connection| connection.pid());
        let folder = pid.and_then(|pid| std::fs::read_link(format!("/proc/{pid}/cwd")).ok());
        let folder = folder.unwrap_or_else(|| "/".into());
        let text = Json::from(folder.to_string_lossy().as_ref()).to_text();
        let uri = format!("file://{}", percent_encoded(folder.as_os_str().as_bytes()));
        let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
        self.vars.insert(CWD.to_owned(), text.to_owned());
        self.vars.insert(ROOT_URI.to_owned(), uri);
    }

    fn send_signal(&mut self, session: usize, name: &str) {
        self.with_log(session, |connection, log| connection.signal(name, log));
    }

    /// Waits for the end of a process after a signal.
    fn await_signalled(&mut self, session: usize, step: &Step) {
        self.live[session].bytes_pending = 0;
        self.live[session].frames_awaited = 0;
        // A signal also ends a peer that is still starting.
        self.await_end(session, self.stretched(step.allow_ms), Duration::ZERO);
        self.end(session);
    }

    /// Current time for a server in this session.
    fn moment(&self, session: usize, step: usize) -> WriteContext {
        let now_ms = self.now_us(session) / 1_000;
        let unix_ms = match self.lab.peer.is_process() {
            true => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            false => UNIX_MS_AT_START + now_ms,
        };
        WriteContext { unix_ms, run: self.run.clone(), step, is_one_body: false }
    }
}
