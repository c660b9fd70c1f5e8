//! Cost of recording and judging: the rate of judged exchanges as a share of a bare loop with the same peer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::drive::Driver;
use super::figures::Spread;
use super::live::LivePeer;
use super::placement::{Pinned, Placement};
use super::verify::Verifier;
use crate::contract::boundary;
use crate::contract::boundary::workload::Workload;
use crate::data::blame::HarnessFault;
use crate::data::plan::Plan;
use crate::drive::lab::Lab;
use crate::drive::peer::Origin;

/// Lengths of the two conversations; their difference cancels the cost of a process.
const EXCHANGES: [usize; 2] = [20, 1_020];

/// Measured overhead.
#[derive(Debug, Clone, Copy)]
pub struct Overhead {
    /// Exchanges per second without a record.
    pub bare: Spread,
    /// Exchanges per second with transcript and judge.
    pub checked: Spread,
    /// `checked` as a share of `bare`, round by round.
    pub share: Spread,
}

/// Measures `rounds` times, with both processes at their place. `lab` belongs to the same peer.
///
/// # Errors
/// Fails if this peer has no conversation of this kind, or fails in it.
pub fn measure(
    lab: &Lab<'_>,
    workload: &Workload,
    placement: &Placement,
    rounds: usize,
    time: Duration,
) -> Result<Overhead, HarnessFault> {
    let _pinned = Pinned::to(placement.harness)?;
    let mut peer = lab.peer.clone();
    if let Origin::Process { cpus, .. } = &mut peer.origin {
        *cpus = placement.peer.into_iter().collect();
    }
    let lab = Lab {
        peer: &peer,
        budget: lab.budget.clone(),
        actor_exe: lab.actor_exe,
        scratch: lab.scratch,
        timeout_scale: lab.timeout_scale,
    };
    let plan = |exchanges| {
        peer.boundary
            .small_exchanges(&peer.facts, exchanges)
            .map(Arc::new)
            .ok_or_else(|| "this peer has no benchmark conversation of small exchanges".to_owned())
    };
    let plans = [plan(EXCHANGES[0])?, plan(EXCHANGES[1])?];
    let (mut bare, mut checked) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        bare.push(bare_rate(&lab, workload, placement, time)?);
        let end = Instant::now() + time;
        let mut rates = Vec::new();
        while rates.is_empty() || Instant::now() < end {
            let short = conversation(&lab, &plans[0])?;
            let long = conversation(&lab, &plans[1])?;
            let exchanges = (EXCHANGES[1] - EXCHANGES[0]) as f64;
            rates.push(exchanges / long.saturating_sub(short).as_secs_f64().max(1e-9));
        }
        checked.push(Spread::of(rates).map_or(0.0, |rates| rates.median));
    }
    let shares = checked.iter().zip(&bare).map(|(checked, bare)| checked / bare).collect::<Vec<_>>();
    let spread = |values: Vec<f64>| Spread::of(values).ok_or_else(|| "nothing was measured".to_owned());
    Ok(Overhead { share: spread(shares)?, bare: spread(bare)?, checked: spread(checked)? })
}

/// Runs and judges one conversation; returns the time it took.
fn conversation(lab: &Lab<'_>, plan: &Arc<Plan>) -> Result<Duration, HarnessFault> {
    let began = Instant::now();
    let transcript = lab.execute_shared("bench", plan).map_err(|error| error.to_string())?;
    let judgement = boundary::judge(lab.peer.boundary, &transcript);
    let took = began.elapsed();
    match judgement.findings.first() {
        None => Ok(took),
        Some(finding) => Err(format!(
            "the peer breaks {} in a plain conversation: expected {}, got {}",
            finding.clause, finding.expected, finding.got
        )
        .into()),
    }
}

fn bare_rate(
    lab: &Lab<'_>,
    workload: &Workload,
    placement: &Placement,
    time: Duration,
) -> Result<f64, HarnessFault> {
    let temp_dir = lab.scratch.join("bare");
    std::fs::create_dir_all(&temp_dir).map_err(|error| format!("cannot make a folder: {error}"))?;
    let text = |trouble: super::live::Trouble| trouble.to_string();
    let mut live =
        LivePeer::start(lab.peer, &workload.session, placement, &temp_dir, &lab.budget.interrupted)
            .map_err(text)?;
    let judge = std::sync::Arc::clone(&workload.judge);
    let mut verifier = Verifier::new(judge, workload.requests.len(), lab.peer.secrets());
    let tape = workload.tape();
    let mut driver = Driver::new(&mut live, &mut verifier, workload, &tape);
    driver.closed(1, time / 10).map_err(text)?;
    let slice = driver.closed(1, time).map_err(text)?;
    live.end(lab.budget.exit);
    Ok(slice.rate())
}
