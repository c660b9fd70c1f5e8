//! Order of measuring: the rounds of a group of rows.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::drive::Driver;
use super::figures::{Metric, RoundFigures};
use super::live::{LivePeer, Trouble};
use super::placement::Pinned;
use super::slice::Slice;
use super::usage::Usage;
use super::verify::Verifier;
use super::watchdog::Watchdog;
use super::{BenchRow, BenchSettings, BenchSurroundings, Missing, Rival, RowGroup};
use crate::contract::boundary::workload::{Shape, Workload};
use crate::data::blame::HarnessFault;
use crate::data::plan::{FOLDER, Session};

/// Number of requests under way in the search for the highest rate.
const WINDOW_MAX: u32 = 64;
/// Number of parts of a soak; memory is read between them.
const SOAK_PIECES: u32 = 12;
/// Divisor of a slice that gives the time to warm up a new process.
const WARM_UP: u32 = 10;
/// Start-up time above which a process is kept for all rounds.
const SLOW_START: Duration = Duration::from_millis(150);
/// Time allowed for a peer to end after its input ended.
const END: Duration = Duration::from_secs(2);
/// Number of strikes that ends a run; a hang counts twice.
const STRIKES_MAX: u32 = 4;

/// Run in progress.
pub(super) struct Bench<'a> {
    pub(super) rivals: Vec<&'a Rival<'a>>,
    pub(super) settings: &'a BenchSettings,
    pub(super) around: BenchSurroundings<'a>,
    pub(super) watchdog: Watchdog,
    /// Time for one row, one round and one rival.
    pub(super) slice: Duration,
    /// Time after which no new measurement begins.
    pub(super) deadline: Instant,
    /// Failures so far; a hang counts twice.
    pub(super) strikes: u32,
    /// Longest time to a first reply seen so far, microseconds.
    pub(super) start_us: u64,
    pub(super) progress: &'a dyn Fn(&str),
}

/// Place of one rival in a group, with its process.
struct RivalSeat<'a> {
    rival: &'a Rival<'a>,
    workload: &'a Workload,
    tape: Vec<u8>,
    verifier: Verifier,
    live: Option<LivePeer>,
    /// Latest latency, which scales the patience.
    latency: Duration,
    failed: bool,
    /// Set once the memory of a one-shot process was read.
    looked_at: bool,
}

impl<'a> Bench<'a> {
    /// Measures the rows of a group until the deadline or too many failures.
    pub(super) fn group(&mut self, group: &RowGroup) -> Result<Vec<BenchRow>, HarnessFault> {
        let _pinned = Pinned::to(group.placement.harness)?;
        let name = &self.rivals[0].workloads[group.workload].name;
        let mut seats: Vec<RivalSeat<'a>> = Vec::new();
        for rival in &self.rivals {
            // The second peer may lack a command of the first.
            if let Some(workload) = rival.workloads.iter().find(|workload| workload.name == *name) {
                seats.push(RivalSeat {
                    rival,
                    workload,
                    tape: workload.tape(),
                    verifier: Verifier::new(
                        Arc::clone(&workload.judge),
                        workload.requests.len(),
                        rival.peer.secrets(),
                    ),
                    live: None,
                    latency: Duration::ZERO,
                    failed: false,
                    looked_at: false,
                });
            }
        }
        let mut rows: Vec<BenchRow> = group.rows.iter().map(|(shape, id)| planned(*shape, id)).collect();
        let all = seats.len();
        'rounds: for round in 0..self.settings.rounds {
            let mut rate_max = None;
            for (row, (shape, id)) in group.rows.iter().enumerate() {
                (self.progress)(id);
                // An open loop needs the peer's rate, so the peer goes first.
                let turn = if matches!(shape, Shape::Open(_)) { 0 } else { round % all };
                for place in (0..all).map(|nth| (nth + turn) % all) {
                    if let Some(why) = self.over() {
                        mark(&mut rows, row, why);
                        break 'rounds;
                    }
                    if seats[place].failed {
                        continue;
                    }
                    match self.measure(&mut seats[place], place, *shape, group, &mut rate_max) {
                        Ok(measured) => {
                            if place == 0 && *shape == Shape::Window(WINDOW_MAX) {
                                rate_max = Some(measured.slice.rate());
                            }
                            rows[row].of(place).0.push(RoundFigures { round, ..measured });
                        }
                        Err(trouble) => {
                            seats[place].failed = true;
                            seats[place].live = None;
                            if self.around.interrupted.load(Ordering::Relaxed) {
                                mark(&mut rows, row, Missing::Interrupted);
                                break 'rounds;
                            }
                            if place == 0 {
                                self.strikes += if matches!(trouble, Trouble::Hung(_)) { 2 } else { 1 };
                                mark(&mut rows, row, Missing::Peer(trouble));
                                break 'rounds;
                            }
                            let who = if place == 1 { "calibration peer" } else { "second peer" };
                            rows[row].missing = Some(Missing::Other(who, trouble));
                        }
                    }
                }
            }
            // Processes that start slowly live through all rounds.
            if self.start_us < SLOW_START.as_micros() as u64 {
                for live in seats.iter_mut().filter_map(|seat| seat.live.take()) {
                    live.end(END);
                }
            }
        }
        for live in seats.iter_mut().filter_map(|seat| seat.live.take()) {
            live.end(END);
        }
        Ok(rows)
    }

    /// Reason to measure nothing more; `None` to go on.
    fn over(&self) -> Option<Missing> {
        if self.around.interrupted.load(Ordering::Relaxed) {
            Some(Missing::Interrupted)
        } else if self.strikes >= STRIKES_MAX {
            Some(Missing::AfterTrouble)
        } else {
            (Instant::now() >= self.deadline).then_some(Missing::Time)
        }
    }

    fn patience(&self, seat: &RivalSeat<'_>, window: u32) -> Duration {
        let mib = seat.workload.request_bytes() as f64 / f64::from(1 << 20);
        self.settings.patience.mul_f64(1.0 + mib) + seat.latency * window * 4
    }

    /// Measures one slice of one row for one rival; the caller sets the round number.
    fn measure(
        &mut self,
        seat: &mut RivalSeat<'_>,
        place: usize,
        shape: Shape,
        group: &RowGroup,
        rate_max: &mut Option<f64>,
    ) -> Result<RoundFigures, Trouble> {
        let time = self.slice * shape.weight();
        if shape == Shape::StartUp || seat.workload.one_shot {
            return self.starts(seat, place, shape, group, time);
        }
        if seat.live.is_none() {
            self.sit_down(seat, place, group)?;
        }
        let window = if let Shape::Window(window) = shape { window } else { WINDOW_MAX };
        let patience = self.patience(seat, window);
        let workload = seat.workload;
        let Some(live) = seat.live.as_mut() else {
            return Err(Trouble::CannotStart("not started".to_owned()));
        };
        let killer = live.killer();
        let before = live.usage();
        let mut rss = vec![(0, before.rss_bytes)];
        let watchdog = &self.watchdog;
        let mut driver = Driver::new(live, &mut seat.verifier, workload, &seat.tape);
        let guarded = |time: Duration, run: &mut dyn FnMut() -> Result<Slice, Trouble>| {
            watchdog.arm(killer.clone(), patience + time * 2);
            let slice = run();
            if watchdog.disarm() {
                return Err(Trouble::Hung(format!("no answer for {:.0} s", patience.as_secs_f64())));
            }
            slice
        };
        let slice = match shape {
            Shape::Open(percent) => {
                let rate = match *rate_max {
                    Some(rate) => rate,
                    None => guarded(time, &mut || driver.closed(u64::from(WINDOW_MAX), time))?.rate(),
                };
                *rate_max = Some(rate);
                guarded(time, &mut || driver.open_loop(rate * f64::from(percent) / 100.0, time))?
            }
            Shape::Soak => {
                let (mut sum, end) = (Slice::empty(), Instant::now() + time);
                // A slow peer may exceed the time of a part.
                while sum.requests == 0 || Instant::now() < end {
                    let time = time / SOAK_PIECES;
                    let piece = guarded(time, &mut || driver.closed(u64::from(window), time))?;
                    sum.add(&piece);
                    rss.push((sum.requests, driver.usage().rss_bytes));
                }
                sum
            }
            _ => guarded(time, &mut || driver.closed(u64::from(window), time))?,
        };
        let after = driver.usage();
        if shape != Shape::Soak {
            rss.push((slice.requests, after.rss_bytes));
        }
        seat.latency = Duration::from_nanos(slice.latencies.value_at_quantile(0.5)) / window;
        let cpu_s = after.cpu_since(&before).as_secs_f64();
        Ok(RoundFigures { round: 0, slice, cpu_s, rss_peak: seen(after.peak_bytes), rss })
    }

    /// Starts the process of a seat and warms it up.
    fn sit_down(&mut self, seat: &mut RivalSeat<'_>, place: usize, group: &RowGroup) -> Result<(), Trouble> {
        let mut live = self.start(seat, place, group)?;
        let patience = self.patience(seat, 1);
        let warm_up = self.slice / WARM_UP;
        self.watchdog.arm(live.killer(), patience + warm_up);
        let mut driver = Driver::new(&mut live, &mut seat.verifier, seat.workload, &seat.tape);
        let first = driver.first_reply();
        let warm = first.and_then(|first| Ok((first, driver.closed(1, warm_up)?)));
        if self.watchdog.disarm() {
            return Err(Trouble::Hung(format!("no answer for {:.0} s", patience.as_secs_f64())));
        }
        let (first, warm) = warm?;
        self.start_us = self.start_us.max(first.as_micros() as u64);
        seat.latency = Duration::from_nanos(warm.latencies.value_at_quantile(0.5));
        seat.live = Some(live);
        Ok(())
    }

    fn start(&self, seat: &RivalSeat<'_>, place: usize, group: &RowGroup) -> Result<LivePeer, Trouble> {
        let temp_dir = self.around.scratch.join(format!("bench{place}"));
        std::fs::create_dir_all(&temp_dir).map_err(|error| {
            Trouble::CannotStart(format!("cannot make the folder {}: {error}", temp_dir.display()))
        })?;
        let BenchSurroundings { interrupted, .. } = self.around;
        let session =
            with_files(seat.workload, &temp_dir).map_err(|error| Trouble::CannotStart(error.into()))?;
        LivePeer::start(seat.rival.peer, &session, &group.placement, &temp_dir, interrupted)
    }

    /// Starts processes one after the other, for one answer each.
    fn starts(
        &mut self,
        seat: &mut RivalSeat<'_>,
        place: usize,
        shape: Shape,
        group: &RowGroup,
        time: Duration,
    ) -> Result<RoundFigures, Trouble> {
        let (mut slice, mut cpu, mut peak_bytes) = (Slice::empty(), Duration::ZERO, 0);
        if shape != Shape::StartUp && !std::mem::replace(&mut seat.looked_at, true) {
            peak_bytes = self.one_start(seat, place, shape, group, true)?.1.peak_bytes;
        }
        let end = Instant::now() + time;
        while slice.requests == 0 || Instant::now() < end {
            let (took, usage) = self.one_start(seat, place, shape, group, false)?;
            cpu += usage.cpu_since(&Usage::default());
            peak_bytes = peak_bytes.max(usage.peak_bytes);
            slice.requests += 1;
            slice.request_bytes += seat.workload.request_bytes() as u64;
            slice.busy += took;
            slice.latencies.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            if shape == Shape::StartUp {
                self.start_us = self.start_us.max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            }
        }
        let cpu_s = cpu.as_secs_f64();
        Ok(RoundFigures { round: 0, slice, cpu_s, rss_peak: seen(peak_bytes), rss: Vec::new() })
    }

    /// Starts a process for one answer; returns the time it took and the resources used.
    fn one_start(
        &self,
        seat: &mut RivalSeat<'_>,
        place: usize,
        shape: Shape,
        group: &RowGroup,
        look: bool,
    ) -> Result<(Duration, Usage), Trouble> {
        let mut live = self.start(seat, place, group)?;
        let patience = self.patience(seat, 1);
        self.watchdog.arm(live.killer(), patience);
        let mut driver = Driver::new(&mut live, &mut seat.verifier, seat.workload, &seat.tape);
        let took = if shape == Shape::StartUp { driver.first_reply() } else { driver.one_shot(look) };
        let peak_bytes = driver.peak_bytes();
        if self.watchdog.disarm() {
            return Err(Trouble::Hung(format!("no answer for {:.0} s", patience.as_secs_f64())));
        }
        let took = took?;
        if shape != Shape::StartUp {
            live.wait_for_end(END);
        }
        let mut usage = live.usage();
        usage.peak_bytes = usage.peak_bytes.max(peak_bytes);
        live.end(END);
        Ok((took, usage))
    }
}

/// Session of a workload, after writing the workload's files.
fn with_files(workload: &Workload, temp_dir: &Path) -> Result<Session, HarnessFault> {
    let mut session = workload.session.clone();
    // The files stand beside the temporary folder, which belongs to the peer.
    let folder = temp_dir.with_extension("files");
    for (path, text) in &workload.files {
        let file = folder.join(path);
        let made = || {
            std::fs::create_dir_all(file.parent().unwrap_or(&folder))?;
            std::fs::write(&file, text)
        };
        if !file.exists() {
            made().map_err(|error| format!("cannot write {}: {error}", file.display()))?;
        }
    }
    let placeholder = format!("{{{{{FOLDER}}}}}");
    let Session { env, placeholders, folder: started_in, .. } = &mut session;
    for value in env.values_mut().chain(placeholders.values_mut()).chain(started_in) {
        *value = value.replace(&placeholder, &folder.to_string_lossy());
    }
    Ok(session)
}

/// Memory in bytes; `None` for 0, because the process had ended before it was read.
fn seen(bytes: u64) -> Option<u64> {
    (bytes > 0).then_some(bytes)
}

fn planned(shape: Shape, id: &str) -> BenchRow {
    let decisive = match shape {
        Shape::Open(_) => Metric::P99Us,
        Shape::StartUp => Metric::P50Us,
        Shape::Window(_) | Shape::Soak => Metric::ReqS,
    };
    BenchRow { decisive, ..BenchRow::planned(id) }
}

/// Marks a row as incomplete for `why`, and the later rows of its group with it.
fn mark(rows: &mut [BenchRow], from: usize, why: Missing) {
    let later = if let Missing::Peer(_) = why { Missing::AfterTrouble } else { why.clone() };
    for (nth, row) in rows.iter_mut().enumerate() {
        if nth == from {
            row.missing = Some(why.clone());
        } else if nth > from || row.peer.0.is_empty() {
            row.missing = Some(later.clone());
        }
    }
}
