//! Benchmarks: how fast a peer answers, what it costs, and how that compares.
//!
//! A boundary supplies workloads; the engine drives them in several shapes and placements. Every row is measured in
//! rounds, in which the peer, the calibration peer and a second peer take turns, so that a ratio is one of neighbours
//! in time. Processes are started anew in every round: what depends on the luck of one process shows as spread.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use globset::GlobMatcher;

use crate::peer::Peer;
use drive::Driver;
use echo::Manner;
use figures::{Comparison, Figure, Round, Rounds, compare};
use live::{Live, Trouble};
use placement::{Pinned, Placement};
use slice::Slice;
use usage::Usage;
use verify::Verifier;
use watchdog::Watchdog;
use workload::{Shape, Workload};

pub mod budget;
pub mod drive;
pub mod echo;
pub mod figures;
pub mod live;
pub mod overhead;
pub mod placement;
pub mod schedule;
pub mod slice;
pub mod usage;
pub mod verify;
pub mod watchdog;
pub mod workload;

/// Requests under way where the highest rate is looked for.
const WINDOW_MAX: u32 = 64;
/// Pieces of a soak; memory is looked at between them.
const SOAK_PIECES: u32 = 12;
/// What starting processes may take, besides half as much again of the time for measuring.
const OVERTIME: Duration = Duration::from_secs(15);
/// Shortest piece of measuring.
const SLICE_MIN: Duration = Duration::from_millis(2);
/// Part of a slice that a new process is warmed up for.
const WARM_UP: u32 = 10;
/// Slower starts are not repeated in every round.
const SLOW_START: Duration = Duration::from_millis(150);
/// How long a peer may take to end after its input ended.
const END: Duration = Duration::from_secs(2);
/// Troubles that end a run: a hang counts twice.
const STRIKES_MAX: u32 = 4;

/// How a benchmark is done.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time for measuring. Half as much again and 15 seconds are left for starting and ending processes; what is not
    /// measured then is left out.
    pub time: Duration,
    /// Rounds.
    pub rounds: usize,
    /// How long one answer may take, and as much more for every MiB.
    pub patience: Duration,
    /// Rows wanted, by id; all where there is none.
    pub select: Vec<GlobMatcher>,
}

/// A peer with what is sent to it.
#[derive(Clone)]
pub struct Rival<'a> {
    /// How to start it.
    pub peer: &'a Peer,
    /// In the order of the boundary.
    pub workloads: Vec<Workload>,
}

/// The peers that take turns.
#[derive(Clone)]
pub struct Rivals<'a> {
    /// The one that it is about.
    pub peer: Rival<'a>,
    /// The calibration peer.
    pub echo: Rival<'a>,
    /// The one to compare with.
    pub against: Option<Rival<'a>>,
}

/// What surrounds a run.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Folder for temporary folders.
    pub scratch: &'a Path,
    /// Set when the user asks to stop.
    pub interrupted: &'a AtomicBool,
}

/// Why a row is not complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The peer failed.
    Peer(Trouble),
    /// Another peer failed: `calibration peer` or `second peer`.
    Other(&'static str, Trouble),
    /// The peer failed in an earlier row, and rows that need the same process or the rest of the run are left out.
    AfterTrouble,
    /// There was no time.
    Time,
    /// The user stopped the run.
    Interrupted,
}

/// One line of the report.
#[derive(Debug, Clone)]
pub struct Row {
    /// Workload, shape and placement: `serve/64B/ping-pong/one-core`.
    pub id: String,
    /// The peer.
    pub peer: Rounds,
    /// The calibration peer.
    pub echo: Rounds,
    /// The second peer.
    pub against: Option<Rounds>,
    /// Which figure a comparison goes by.
    pub decisive: Figure,
    /// What is not there, and why.
    pub missing: Option<Missing>,
}

impl Row {
    /// A row without figures.
    pub fn planned(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            peer: Rounds::default(),
            echo: Rounds::default(),
            against: None,
            decisive: Figure::ReqS,
            missing: None,
        }
    }

    /// How the peer stands against the second one.
    pub fn comparison(&self) -> Option<Comparison> {
        let ratio = self.peer.ratio(self.against.as_ref()?, self.decisive)?;
        let rounds = self.peer.0.len().min(self.against.as_ref()?.0.len());
        Some(compare(&ratio, rounds, self.decisive))
    }

    fn of(&mut self, place: usize) -> &mut Rounds {
        match place {
            0 => &mut self.peer,
            1 => &mut self.echo,
            _ => self.against.get_or_insert_default(),
        }
    }
}

/// Rows that share their processes.
#[derive(Debug, Clone)]
pub struct Group {
    placement: Placement,
    workload: usize,
    rows: Vec<(Shape, String)>,
}

/// What there is to measure with these workloads, and the notes on what there is not.
pub fn plan(workloads: &[Workload], select: &[GlobMatcher]) -> (Vec<Group>, Vec<String>) {
    let (placements, notes) = placement::placements();
    let mut groups = Vec::new();
    for (nth, placement) in placements.iter().enumerate() {
        for (index, workload) in workloads.iter().enumerate() {
            let shapes = workload.shapes.iter().copied();
            // What a start costs and whether memory grows does not depend on the placement.
            let shapes = shapes.filter(|shape| nth == 0 || !matches!(shape, Shape::StartUp | Shape::Soak));
            let rows: Vec<_> = shapes
                .map(|shape| (shape, format!("{}/{}/{}", workload.name, shape.name(), placement.name)))
                .filter(|(_, id)| select.is_empty() || select.iter().any(|glob| glob.is_match(id)))
                .collect();
            if !rows.is_empty() {
                groups.push(Group { placement: placement.clone(), workload: index, rows });
            }
        }
    }
    (groups, notes)
}

/// The ids of all rows.
pub fn ids(groups: &[Group]) -> Vec<String> {
    groups.iter().flat_map(|group| &group.rows).map(|(_, id)| id.clone()).collect()
}

/// The workloads of the calibration peer that stand beside these. Its commands are the words of [`Manner`].
pub fn calibration(workloads: &[Workload]) -> Vec<Workload> {
    let beside = |workload: &Workload| {
        let manner = match (workload.one_shot, workload.echoes) {
            (true, _) => Manner::Once,
            (false, true) => Manner::Lines,
            (false, false) => Manner::Short,
        };
        let mut beside = workload.clone();
        manner.word().clone_into(&mut beside.session.command);
        beside.session.placeholders.clear();
        beside.session.env.clear();
        let requests = workload.requests.clone();
        beside.judge = Arc::new(move |variant, reply| {
            let line = requests.get(variant).map_or(&[][..], |line| line.strip_suffix(b"\n").unwrap_or(line));
            let right = if manner == Manner::Lines { reply == line } else { !reply.is_empty() };
            if right { Ok(()) } else { Err("the calibration peer does not answer as it must".to_owned()) }
        });
        beside
    };
    workloads.iter().map(beside).collect()
}

/// Measures all groups; `done` hears of each row when it is complete, `progress` of what comes next. Every planned row
/// is reported, whatever happens.
///
/// # Errors
/// The machine does not let us measure at all.
pub fn run(
    rivals: &Rivals<'_>,
    groups: &[Group],
    settings: &Settings,
    around: Around<'_>,
    progress: &dyn Fn(&str),
    done: &mut dyn FnMut(Row),
) -> Result<(), String> {
    let all: Vec<&Rival<'_>> = [&rivals.peer, &rivals.echo].into_iter().chain(&rivals.against).collect();
    let weights: u32 = groups.iter().flat_map(|group| &group.rows).map(|(shape, _)| shape.weight()).sum();
    let shares = weights.max(1) * settings.rounds.max(1) as u32 * all.len() as u32;
    let watchdog = Watchdog::start()?;
    // Even times are as even as the timer: by default the kernel lets a wait take 50 µs more.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    let mut bench = Bench {
        rivals: all,
        settings,
        around,
        watchdog,
        slice: (settings.time / shares).max(SLICE_MIN),
        deadline: Instant::now() + settings.time * 3 / 2 + OVERTIME,
        strikes: 0,
        start_us: 0,
        progress,
    };
    for group in groups {
        bench.group(group)?.into_iter().for_each(&mut *done);
    }
    let _ = rustix::thread::set_current_timer_slack(None);
    Ok(())
}

struct Bench<'a> {
    rivals: Vec<&'a Rival<'a>>,
    settings: &'a Settings,
    around: Around<'a>,
    watchdog: Watchdog,
    slice: Duration,
    deadline: Instant,
    strikes: u32,
    /// Longest time to a first reply seen so far.
    start_us: u64,
    progress: &'a dyn Fn(&str),
}

/// The processes of a group: one a rival.
struct Seat<'a> {
    rival: &'a Rival<'a>,
    workload: &'a Workload,
    tape: Vec<u8>,
    verifier: Verifier,
    live: Option<Live>,
    /// Latency seen last, by which patience is measured.
    latency: Duration,
    failed: bool,
    /// A one-shot process was started before, and its memory looked at.
    looked_at: bool,
}

impl<'a> Bench<'a> {
    fn group(&mut self, group: &Group) -> Result<Vec<Row>, String> {
        let _pinned = Pinned::to(group.placement.harness)?;
        let name = &self.rivals[0].workloads[group.workload].name;
        let mut seats: Vec<Seat<'a>> = Vec::new();
        for rival in &self.rivals {
            // The second peer may lack a command that the first one has.
            if let Some(workload) = rival.workloads.iter().find(|workload| workload.name == *name) {
                seats.push(Seat {
                    rival,
                    workload,
                    tape: workload.tape(),
                    verifier: Verifier::new(Arc::clone(&workload.judge), workload.requests.len()),
                    live: None,
                    latency: Duration::ZERO,
                    failed: false,
                    looked_at: false,
                });
            }
        }
        let mut rows: Vec<Row> = group.rows.iter().map(|(shape, id)| planned(*shape, id)).collect();
        let all = seats.len();
        'rounds: for round in 0..self.settings.rounds {
            let mut rate_max = None;
            for (row, (shape, id)) in group.rows.iter().enumerate() {
                (self.progress)(id);
                // An open loop needs the rate of the peer: it goes first then.
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
                        Ok((slice, cpu, usage, rss)) => {
                            if place == 0 && *shape == Shape::Window(WINDOW_MAX) {
                                rate_max = Some(slice.rate());
                            }
                            let rss_peak = Some(usage.peak_bytes).filter(|bytes| *bytes > 0);
                            let round = Round { round, slice, cpu_s: cpu.as_secs_f64(), rss_peak, rss };
                            rows[row].of(place).0.push(round);
                        }
                        Err(trouble) => {
                            seats[place].failed = true;
                            seats[place].live = None;
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
            // Processes that take long to start live through all rounds.
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

    /// Whether and why nothing more is measured.
    fn over(&self) -> Option<Missing> {
        if self.around.interrupted.load(Ordering::Relaxed) {
            Some(Missing::Interrupted)
        } else if self.strikes >= STRIKES_MAX {
            Some(Missing::AfterTrouble)
        } else {
            (Instant::now() >= self.deadline).then_some(Missing::Time)
        }
    }

    fn patience(&self, seat: &Seat<'_>, window: u32) -> Duration {
        let mib = seat.workload.request_bytes() as f64 / f64::from(1 << 20);
        self.settings.patience.mul_f64(1.0 + mib) + seat.latency * window * 4
    }

    /// One slice of one row for one rival.
    fn measure(
        &mut self,
        seat: &mut Seat<'_>,
        place: usize,
        shape: Shape,
        group: &Group,
        rate_max: &mut Option<f64>,
    ) -> Result<(Slice, Duration, Usage, Vec<(u64, u64)>), Trouble> {
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
            return Err(Trouble::CannotStart("it was not started".to_owned()));
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
                let mut sum = Slice::empty();
                for _ in 0..SOAK_PIECES {
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
        let cpu = after.cpu_since(&before);
        Ok((slice, cpu, after, rss))
    }

    /// Starts the process of a seat and warms it up.
    fn sit_down(&mut self, seat: &mut Seat<'_>, place: usize, group: &Group) -> Result<(), Trouble> {
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

    fn start(&self, seat: &Seat<'_>, place: usize, group: &Group) -> Result<Live, Trouble> {
        let temp_dir = self.around.scratch.join(format!("bench{place}"));
        std::fs::create_dir_all(&temp_dir).map_err(|error| {
            Trouble::CannotStart(format!("cannot make the folder {}: {error}", temp_dir.display()))
        })?;
        Live::start(seat.rival.peer, &seat.workload.session, &group.placement, &temp_dir)
    }

    /// Starts processes one after the other for one answer each.
    fn starts(
        &mut self,
        seat: &mut Seat<'_>,
        place: usize,
        shape: Shape,
        group: &Group,
        time: Duration,
    ) -> Result<(Slice, Duration, Usage, Vec<(u64, u64)>), Trouble> {
        let (mut slice, mut cpu, mut used) = (Slice::empty(), Duration::ZERO, Usage::default());
        if shape != Shape::StartUp && !std::mem::replace(&mut seat.looked_at, true) {
            used.peak_bytes = self.one_start(seat, place, shape, group, true)?.1.peak_bytes;
        }
        let end = Instant::now() + time;
        while slice.requests == 0 || Instant::now() < end {
            let (took, usage) = self.one_start(seat, place, shape, group, false)?;
            cpu += usage.cpu_since(&Usage::default());
            used.peak_bytes = used.peak_bytes.max(usage.peak_bytes);
            slice.requests += 1;
            slice.request_bytes += seat.workload.request_bytes() as u64;
            slice.busy += took;
            slice.latencies.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
            if shape == Shape::StartUp {
                self.start_us = self.start_us.max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            }
        }
        Ok((slice, cpu, used, Vec::new()))
    }

    /// Starts a process for one answer; how long that took, and what the process used.
    fn one_start(
        &self,
        seat: &mut Seat<'_>,
        place: usize,
        shape: Shape,
        group: &Group,
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

fn planned(shape: Shape, id: &str) -> Row {
    let decisive = match shape {
        Shape::Open(_) => Figure::P99Us,
        Shape::StartUp => Figure::P50Us,
        Shape::Window(_) | Shape::Soak => Figure::ReqS,
    };
    Row { decisive, ..Row::planned(id) }
}

/// Says of this row why it ends here, and of the later ones of its group that nothing more comes.
fn mark(rows: &mut [Row], from: usize, why: Missing) {
    let later = if let Missing::Peer(_) = why { Missing::AfterTrouble } else { why.clone() };
    for (nth, row) in rows.iter_mut().enumerate() {
        if nth == from {
            row.missing = Some(why.clone());
        } else if nth > from || row.peer.0.is_empty() {
            row.missing = Some(later.clone());
        }
    }
}
