//! Merging of the shards of a run.

use std::collections::{BTreeMap, BTreeSet};

use crate::shard::Shard;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::blame::Incomplete;
use peerproof_engine::run::results::{RunHeader, StoredRun};

/// Merges runs from several results files, each with the name of its file. Runs of one peer must be all shards of one
/// run, each once; other runs are passed through.
///
/// # Errors
/// Fails if a shard is missing or repeated, a check has two results, or the shards ran differently.
pub fn merge(
    runs: Vec<(String, StoredRun)>,
    boundaries: &[&'static dyn Boundary],
) -> Result<Vec<StoredRun>, Incomplete> {
    let mut groups: Vec<Vec<(String, StoredRun)>> = Vec::new();
    for (name, run) in runs {
        let same = |other: &RunHeader| {
            (&other.boundary, other.side, &other.peer)
                == (&run.header.boundary, run.header.side, &run.header.peer)
        };
        match groups.iter_mut().find(|group| same(&group[0].1.header)) {
            Some(group) => group.push((name, run)),
            None => groups.push(vec![(name, run)]),
        }
    }
    groups.into_iter().map(|group| one(group, boundaries)).collect()
}

fn one(
    group: Vec<(String, StoredRun)>,
    boundaries: &[&'static dyn Boundary],
) -> Result<StoredRun, Incomplete> {
    let Some((first_name, first)) = group.first() else {
        return Err("no results to merge".into());
    };
    let peer = first.header.peer.clone();
    complete(&group, &peer)?;
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (name, run) in &group {
        if let Some(what) = difference(&first.header, &run.header) {
            return Err(
                format!("{first_name} and {name} belong to different runs: they differ in {what}").into()
            );
        }
        for check in &run.checks {
            if let Some(other) = seen.insert(&check.id, name) {
                return Err(format!("the check {} has a result in {other} and in {name}", check.id).into());
            }
        }
    }
    let mut header = first.header.clone();
    header.shard = None;
    header.planned = group.iter().flat_map(|(_, run)| run.header.planned.iter().cloned()).collect();
    if let Some(started) = group.iter().map(|(_, run)| &run.header.started).min() {
        header.started.clone_from(started);
    }
    let exit_code = group.iter().filter_map(|(_, run)| run.footer.as_ref()).map(|footer| footer.exit_code);
    let mut exit_code = gravest(exit_code);
    let mut checks: Vec<_> = group.into_iter().flat_map(|(_, run)| run.checks).collect();
    if exit_code == 0 {
        // Commands without any decision show only in the merged checks.
        exit_code = peerproof_engine::run::results::exit_code(&checks, false);
    }
    in_boundary_order(boundaries, &mut header.planned, &mut checks);
    Ok(StoredRun::new(header, checks).ended(exit_code))
}

/// Refuses gaps and overlaps.
fn complete(group: &[(String, StoredRun)], peer: &str) -> Result<(), Incomplete> {
    let mut parts: BTreeMap<u64, &str> = BTreeMap::new();
    let mut total = None;
    for (name, run) in group {
        let Some(text) = &run.header.shard else {
            if group.len() == 1 {
                return Ok(());
            }
            return Err(
                format!("{name} is a whole run of {peer}, not a shard, so it cannot be merged").into()
            );
        };
        let shard: Shard = text.parse().map_err(|error| format!("{name}: the shard {text:?}: {error}"))?;
        let (part, of) = shard.numbers();
        if *total.get_or_insert(of) != of {
            return Err(format!(
                "{name} is one of {of} shards of {peer}, but the other files have another number of shards"
            )
            .into());
        }
        if let Some(other) = parts.insert(part, name) {
            return Err(format!("{other} and {name} are both the shard {text} of {peer}").into());
        }
        if let Some(stray) = run.header.planned.iter().find(|id| !shard.takes(id)) {
            return Err(format!("{name}: the check {stray} does not belong to the shard {text}").into());
        }
    }
    let total = total.unwrap_or(0);
    let missing: Vec<String> = (1..=total)
        .filter(|part| !parts.contains_key(part))
        .map(|part| format!("hash:{part}/{total}"))
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("shards of {peer} are missing: {}", missing.join(", ")).into())
    }
}

/// First property in which two shards wrongly differ.
fn difference(one: &RunHeader, other: &RunHeader) -> Option<&'static str> {
    let checks = [
        (one.peerproof == other.peerproof, "the version of peerproof"),
        (one.clauses_sha256 == other.clauses_sha256, "the clauses"),
        (one.config == other.config, "the configuration"),
        (one.selection == other.selection, "the selection of checks"),
        (one.rng_seed == other.rng_seed, "the rng seed"),
        (one.timeout_scale.to_bits() == other.timeout_scale.to_bits(), "the timeout scale"),
    ];
    checks.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
}

/// Exit status of all shards together.
pub fn gravest(codes: impl IntoIterator<Item = i32>) -> i32 {
    const ORDER: [i32; 8] = [130, 70, 5, 1, 3, 6, 0, 4];
    let there: BTreeSet<i32> = codes.into_iter().collect();
    ORDER.into_iter().find(|code| there.contains(code)).or(there.into_iter().next()).unwrap_or(4)
}

/// Sorts as the boundary lists its checks, regardless of the names of the shards.
fn in_boundary_order(
    boundaries: &[&'static dyn Boundary],
    planned: &mut [String],
    checks: &mut [peerproof_engine::run::verdict::CheckResult],
) {
    let order: BTreeMap<&str, usize> = boundaries
        .iter()
        .flat_map(|boundary| boundary.checks())
        .enumerate()
        .map(|(place, check)| (check.id.as_str(), place))
        .collect();
    let place = |id: &str| order.get(id).copied().unwrap_or(usize::MAX);
    planned.sort_by(|a, b| (place(a), a).cmp(&(place(b), b)));
    checks.sort_by(|a, b| (place(&a.id), &a.id).cmp(&(place(&b.id), &b.id)));
}
