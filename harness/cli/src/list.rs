//! `peerproof list`: lists checks, clauses, boundaries and mutants.

use std::fmt::Write as _;

use clap::ValueEnum as _;
use serde_json::{Value, json};

use super::{CommandResult, Context, Exit, Stop, boundary_named};
use peerproof::report::printer::{Printer, Tone};
use peerproof::report::screen::plural;
use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::text::one_line;

/// Lists checks, clauses, boundaries or mutants.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Things to list: checks (the default), clauses, boundaries or mutants; add a boundary to list only its own.
    #[arg(value_name = "WHAT|BOUNDARY", num_args = 0..=2)]
    words: Vec<String>,
    /// List only those of this boundary.
    #[arg(long, short, value_name = "BOUNDARY")]
    boundary: Option<String>,
    /// List every key, role, feature, choice and limit of `peerproof.toml` for a boundary.
    #[arg(long, value_name = "BOUNDARY", conflicts_with_all = ["words", "boundary"])]
    config_keys: Option<String>,
    /// Print newline-delimited JSON, one object per line.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ListSubject {
    /// Every check with its title.
    Checks,
    /// Every clause of the contracts.
    Clauses,
    /// The boundaries.
    Boundaries,
    /// Reference peers that break one clause each.
    Mutants,
}

/// Runs the command.
///
/// # Errors
/// Fails for an unknown boundary.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let printer = &context.printer;
    if let Some(name) = &args.config_keys {
        config_keys(boundary_named(name)?, args.json, printer);
        return Ok(Exit::Good);
    }
    let mut what = None;
    let mut name = args.boundary.clone();
    for word in &args.words {
        match ListSubject::from_str(word, true) {
            Ok(one) if what.is_none() => what = Some(one),
            Err(_) if name.is_none() => name = Some(word.clone()),
            _ => {
                return Err(Stop::usage(format!(
                    "unexpected argument {word:?}; use peerproof list [WHAT] [BOUNDARY]"
                )));
            }
        }
    }
    let what = what.unwrap_or(ListSubject::Checks);
    let boundaries = match &name {
        Some(name) => vec![boundary_named(name)?],
        None => table::all(),
    };
    let rows: Vec<Row> = boundaries
        .into_iter()
        .flat_map(|boundary| match what {
            ListSubject::Checks => checks(boundary),
            ListSubject::Clauses => clauses(boundary),
            ListSubject::Boundaries => vec![one_boundary(boundary)],
            ListSubject::Mutants => mutants(boundary),
        })
        .collect();
    if rows.is_empty() {
        return Err(Stop { exit: Exit::Undecided, message: "nothing to list".to_owned() });
    }
    print(&rows, args.json, printer);
    Ok(Exit::Good)
}

/// Line of a list.
struct Row {
    name: String,
    /// Short words after the name.
    marks: Vec<String>,
    text: String,
    json: Value,
}

fn print(rows: &[Row], as_json: bool, printer: &Printer) {
    let mut out = String::new();
    for row in rows {
        if as_json {
            let _ = writeln!(out, "{}", row.json);
            continue;
        }
        let marks =
            if row.marks.is_empty() { String::new() } else { format!("  [{}]", row.marks.join(", ")) };
        let _ = writeln!(
            out,
            "{}{}\n    {}",
            printer.paint(Tone::Name, &row.name),
            printer.paint(Tone::Dim, &marks),
            one_line(&row.text)
        );
    }
    printer.out(&out);
}

fn checks(boundary: &'static dyn Boundary) -> Vec<Row> {
    let row = |check: &peerproof_engine::data::check::Check| {
        let clauses: Vec<&str> = check.clauses.iter().map(|clause| clause.0.as_str()).collect();
        let mut marks: Vec<String> = clauses.iter().map(|clause| (*clause).to_owned()).collect();
        marks.extend(check.feature.iter().map(|feature| format!("feature {feature}")));
        marks.extend(check.roles.iter().map(|role| format!("role {role}")));
        if check.slow {
            marks.push(if check.very_slow { "very slow" } else { "slow" }.to_owned());
        }
        Row {
            name: check.id.clone(),
            marks,
            text: check.title.clone(),
            json: json!({
                "id": check.id, "title": check.title, "clauses": clauses, "command": check.command,
                "roles": check.roles, "feature": check.feature, "slow": check.slow, "very_slow": check.very_slow,
            }),
        }
    };
    boundary.checks().iter().map(row).collect()
}

fn clauses(boundary: &'static dyn Boundary) -> Vec<Row> {
    let row = |clause: &peerproof_engine::data::clause::Clause| {
        let checks: Vec<&str> = checks_of(boundary, &clause.id.0);
        let mut marks =
            vec![clause.level.word().to_owned(), clause.side.word().to_owned(), clause.modes.join("+")];
        marks.extend(clause.feature.iter().map(|feature| format!("feature {feature}")));
        marks.push(match (&clause.excluded, checks.len()) {
            (Some(_), _) => "excluded".to_owned(),
            (None, count) => plural(count, "check"),
        });
        let mut json = serde_json::to_value(clause).unwrap_or_default();
        json["checks"] = json!(checks);
        Row { name: clause.id.0.clone(), marks, text: clause.text.clone(), json }
    };
    boundary.clauses().iter().map(row).collect()
}

/// Ids of the checks that test a clause.
pub(super) fn checks_of(boundary: &'static dyn Boundary, clause: &str) -> Vec<&'static str> {
    boundary
        .checks()
        .iter()
        .filter(|check| check.clauses.iter().any(|id| id.0 == clause))
        .map(|check| check.id.as_str())
        .collect()
}

fn one_boundary(boundary: &'static dyn Boundary) -> Row {
    let (checks, clauses) = (boundary.checks().len(), boundary.clauses().len());
    Row {
        name: boundary.name().to_owned(),
        marks: vec![format!("{clauses} clauses"), format!("{checks} checks")],
        text: boundary.description().summary.to_owned(),
        json: json!({
            "name": boundary.name(), "summary": boundary.description().summary, "clauses": clauses, "checks": checks,
        }),
    }
}

fn mutants(boundary: &'static dyn Boundary) -> Vec<Row> {
    let row = |mutant: peerproof_engine::drive::reference_peers::Mutant| Row {
        name: mutant.id.to_owned(),
        marks: vec![mutant.clauses.join(" "), mutant.side.word().to_owned()],
        text: mutant.fault.to_owned(),
        json: json!({
            "id": mutant.id, "clauses": mutant.clauses, "side": mutant.side, "fault": mutant.fault,
            "needs_process": mutant.needs_process,
        }),
    };
    table::played(boundary).mutants().into_iter().map(row).collect()
}

fn config_keys(boundary: &'static dyn Boundary, as_json: bool, printer: &Printer) {
    let mut out = String::new();
    let mut table = "";
    for key in peerproof_engine::drive::config::keys(boundary) {
        if as_json {
            let line = json!({
                "table": key.table(), "name": key.name, "values": key.shown_values(),
                "members": key.shown_members(), "meaning": key.meaning,
            });
            let _ = writeln!(out, "{line}");
            continue;
        }
        if key.table() != table {
            table = key.table();
            let gap = if out.is_empty() { "" } else { "\n" };
            let _ = writeln!(out, "{gap}{}", printer.paint(Tone::Head, &format!("[{table}]")));
        }
        let values = match (key.shown_values(), key.shown_members()) {
            (values, members) if values.is_empty() && members.is_empty() => String::new(),
            (values, members) if values.is_empty() => format!("  {}", members.join(", ")),
            (values, _) => format!("  {}", values.join(" | ")),
        };
        let _ = writeln!(
            out,
            "{}{}\n    {}",
            printer.paint(Tone::Name, key.name),
            printer.paint(Tone::Dim, &values),
            key.meaning
        );
    }
    printer.out(&out);
}
