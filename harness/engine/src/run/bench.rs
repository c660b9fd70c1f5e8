//! Benchmarks: how fast a peer answers, what it costs, and how that compares.
//!
//! A boundary supplies workloads; the engine runs them in several shapes and placements. Every row is measured in
//! rounds, in which the peer, the calibration peer and a second peer take turns, so that a ratio compares neighbours in
//! time. Every round starts new processes, so that the luck of one process shows as spread.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use globset::GlobMatcher;

use crate::contract::boundary::workload::{Shape, Workload};
use crate::data::blame::HarnessFault;
use crate::drive::peer::Peer;
use echo::EchoMode;
use figures::{Comparison, Metric, Rounds, compare};
use live::Trouble;
use placement::Placement;
use turns::Bench;
use watchdog::Watchdog;

pub mod budget;
pub(crate) mod drive;
pub mod echo;
pub mod figures;
pub mod live;
pub mod overhead;
pub mod placement;
pub(crate) mod schedule;
pub(crate) mod slice;
mod turns;
pub(crate) mod usage;
pub(crate) mod verify;
pub(crate) mod watchdog;

/// Time for starting processes, on top of one and a half times the time for measuring.
const OVERTIME: Duration = Duration::from_secs(15);
/// Shortest slice of measuring.
const SLICE_MIN: Duration = Duration::from_millis(2);

/// Settings of a benchmark.
#[derive(Debug, Clone)]
pub struct BenchSettings {
    /// Time for measuring. The run may take half as much again plus 15 seconds for starting and ending processes; rows
    /// not measured by then are left out.
    pub time: Duration,
    /// Number of rounds.
    pub rounds: usize,
    /// Deadline for one answer, and the addition to it per MiB of the request.
    pub patience: Duration,
    /// Globs on row ids; empty selects all rows.
    pub select: Vec<GlobMatcher>,
}

/// Peer with its workloads.
#[derive(Clone)]
pub struct Rival<'a> {
    /// The peer to start.
    pub peer: &'a Peer,
    /// Workloads in the order of the boundary.
    pub workloads: Vec<Workload>,
}

/// The peers that take turns.
#[derive(Clone)]
pub struct Rivals<'a> {
    /// The peer under test.
    pub peer: Rival<'a>,
    /// The calibration peer.
    pub echo: Rival<'a>,
    /// The second peer, to compare with.
    pub against: Option<Rival<'a>>,
}

/// Surroundings of a run.
#[derive(Clone, Copy)]
pub struct BenchSurroundings<'a> {
    /// Folder for temporary folders.
    pub scratch: &'a Path,
    /// Set when the user asks to stop.
    pub interrupted: &'a Arc<AtomicBool>,
}

/// Reason why a row is incomplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The peer failed.
    Peer(Trouble),
    /// Another peer failed: `calibration peer` or `second peer`.
    Other(&'static str, Trouble),
    /// The peer failed in an earlier row, and this row needed the same process or the run was ended.
    AfterTrouble,
    /// The time was used up.
    Time,
    /// The user stopped the run.
    Interrupted,
}

/// One line of the report.
#[derive(Debug, Clone)]
pub struct BenchRow {
    /// Workload, shape and placement, such as `serve/64B/ping-pong/one-core`.
    pub id: String,
    /// Rounds of the peer.
    pub peer: Rounds,
    /// Rounds of the calibration peer.
    pub echo: Rounds,
    /// Rounds of the second peer.
    pub against: Option<Rounds>,
    /// Figure that decides a comparison.
    pub decisive: Metric,
    /// Reason why the row is incomplete.
    pub missing: Option<Missing>,
}

impl BenchRow {
    /// A row without figures.
    pub fn planned(id: &str) -> Self {
        Self {
            id: id.to_owned(),
            peer: Rounds::default(),
            echo: Rounds::default(),
            against: None,
            decisive: Metric::ReqS,
            missing: None,
        }
    }

    /// Compares the peer with the second peer.
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
pub struct RowGroup {
    placement: Placement,
    workload: usize,
    rows: Vec<(Shape, String)>,
}

/// Groups of rows to measure, and notes on rows that this machine cannot measure.
pub fn plan(workloads: &[Workload], select: &[GlobMatcher]) -> (Vec<RowGroup>, Vec<String>) {
    let (placements, notes) = placement::placements();
    let mut groups = Vec::new();
    for (nth, placement) in placements.iter().enumerate() {
        for (index, workload) in workloads.iter().enumerate() {
            let shapes = workload.shapes.iter().copied();
            // The cost of a start and the growth of memory do not depend on the placement.
            let shapes = shapes.filter(|shape| nth == 0 || !matches!(shape, Shape::StartUp | Shape::Soak));
            let rows: Vec<_> = shapes
                .map(|shape| (shape, format!("{}/{}/{}", workload.name, shape.name(), placement.name)))
                .filter(|(_, id)| select.is_empty() || select.iter().any(|glob| glob.is_match(id)))
                .collect();
            if !rows.is_empty() {
                groups.push(RowGroup { placement: placement.clone(), workload: index, rows });
            }
        }
    }
    (groups, notes)
}

/// The ids of all rows.
pub fn ids(groups: &[RowGroup]) -> Vec<String> {
    groups.iter().flat_map(|group| &group.rows).map(|(_, id)| id.clone()).collect()
}

/// Workloads of the calibration peer, one for each of `workloads`. Its commands are the words of [`EchoMode`].
pub fn calibration(workloads: &[Workload]) -> Vec<Workload> {
    let beside = |workload: &Workload| {
        let manner = match (workload.one_shot, workload.echoes) {
            (true, _) => EchoMode::Once,
            (false, true) => EchoMode::Lines,
            (false, false) => EchoMode::Short,
        };
        let mut beside = workload.clone();
        manner.word().clone_into(&mut beside.session.command);
        beside.session.placeholders.clear();
        beside.session.env.clear();
        let requests = workload.requests.clone();
        beside.judge = Arc::new(move |variant, reply| {
            let line = requests.get(variant).map_or(&[][..], |line| line.strip_suffix(b"\n").unwrap_or(line));
            let right = if manner == EchoMode::Lines { reply == line } else { !reply.is_empty() };
            if right { Ok(()) } else { Err("the calibration peer gave a wrong answer".into()) }
        });
        beside
    };
    workloads.iter().map(beside).collect()
}

/// Measures all groups. Calls `done` with each complete row and `progress` with the id of the next one. Reports every
/// planned row in any case.
///
/// # Errors
/// Fails if this machine does not permit measuring.
pub fn run(
    rivals: &Rivals<'_>,
    groups: &[RowGroup],
    settings: &BenchSettings,
    around: BenchSurroundings<'_>,
    progress: &dyn Fn(&str),
    done: &mut dyn FnMut(BenchRow),
) -> Result<(), HarnessFault> {
    let all: Vec<&Rival<'_>> = [&rivals.peer, &rivals.echo].into_iter().chain(&rivals.against).collect();
    let weights: u32 = groups.iter().flat_map(|group| &group.rows).map(|(shape, _)| shape.weight()).sum();
    let shares = weights.max(1) * settings.rounds.max(1) as u32 * all.len() as u32;
    let watchdog = Watchdog::start(around.interrupted)?;
    // Sets the timer slack to 1 ns: by default the kernel delays a wait by up to 50 µs, which makes the pace uneven.
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
