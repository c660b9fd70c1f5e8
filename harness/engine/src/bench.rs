//! Benchmarks: how fast a peer answers, what it costs, and how that compares.
//!
//! A boundary supplies workloads; the engine drives them in several shapes and placements. Every row is measured in
//! rounds, in which the peer, the calibration peer and a second peer take turns, so that a ratio is one of neighbours
//! in time. Processes are started anew in every round: what depends on the luck of one process shows as spread.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use globset::GlobMatcher;

use crate::blame::HarnessFault;
use crate::boundary::workload::{Shape, Workload};
use crate::peer::Peer;
use echo::Manner;
use figures::{Comparison, Figure, Rounds, compare};
use live::Trouble;
use placement::Placement;
use turns::Bench;
use watchdog::Watchdog;

pub mod budget;
pub mod drive;
pub mod echo;
pub mod figures;
pub mod live;
pub mod overhead;
pub mod placement;
pub mod schedule;
pub mod slice;
mod turns;
pub mod usage;
pub mod verify;
pub mod watchdog;

/// What starting processes may take, besides half as much again of the time for measuring.
const OVERTIME: Duration = Duration::from_secs(15);
/// Shortest piece of measuring.
const SLICE_MIN: Duration = Duration::from_millis(2);

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
    pub interrupted: &'a Arc<AtomicBool>,
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
            if right { Ok(()) } else { Err("the calibration peer does not answer as it must".into()) }
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
) -> Result<(), HarnessFault> {
    let all: Vec<&Rival<'_>> = [&rivals.peer, &rivals.echo].into_iter().chain(&rivals.against).collect();
    let weights: u32 = groups.iter().flat_map(|group| &group.rows).map(|(shape, _)| shape.weight()).sum();
    let shares = weights.max(1) * settings.rounds.max(1) as u32 * all.len() as u32;
    let watchdog = Watchdog::start(around.interrupted)?;
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
