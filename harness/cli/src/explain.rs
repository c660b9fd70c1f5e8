//! `peerproof explain`: describes a clause or a check.

use std::fmt::Write as _;

use super::list::checks_of;
use super::{CommandResult, Context, Exit, Stop};
use peerproof::report::printer::{Printer, Tone};
use peerproof::table;
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::clause::Clause;
use peerproof_engine::data::nearest::did_you_mean;
use peerproof_engine::data::text::wrap;

/// Explains a clause or a check: its text, level, source, interpretation, checks and mutants.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of a clause (`TH-FRAME-01`) or of a check (`toolhost/serve/…`).
    id: String,
}

/// Runs the command.
///
/// # Errors
/// Fails for an unknown id and suggests the closest one.
pub(crate) fn run(args: &Args, context: &Context) -> CommandResult {
    let printer = &context.printer;
    let id = args.id.trim();
    for boundary in table::all() {
        if let Some(clause) = boundary.clauses().iter().find(|clause| clause.id.0.eq_ignore_ascii_case(id)) {
            printer.out(&explain_clause(boundary, clause, printer));
            return Ok(Exit::Good);
        }
        if let Some(check) = boundary.checks().iter().find(|check| check.id == id) {
            printer.out(&explain_check(boundary, check, printer));
            return Ok(Exit::Good);
        }
    }
    let known = table::all().into_iter().flat_map(|boundary| {
        let clauses = boundary.clauses().iter().map(|clause| clause.id.0.as_str());
        clauses.chain(boundary.checks().iter().map(|check| check.id.as_str()))
    });
    let hint = did_you_mean(id, known);
    Err(Stop::usage(format!(
        "no clause or check has the id {id:?}{hint} (`peerproof list clauses` and \
         `peerproof list checks` show all)"
    )))
}

fn explain_clause(boundary: &'static dyn Boundary, clause: &Clause, printer: &Printer) -> String {
    let mut out = String::new();
    let level = clause.level.word().to_uppercase();
    let modes = clause.modes.join(", ");
    let _ = writeln!(
        out,
        "{}  {level}  {} {} ({modes})",
        printer.paint(Tone::Name, &clause.id.0),
        boundary.name(),
        clause.side.word(),
    );
    let _ = writeln!(out, "\n{}", wrap(&clause.text, "  "));
    let mut field = |name: &str, text: &str| {
        let _ = writeln!(out, "{}\n{}", printer.paint(Tone::Head, name), wrap(text, "  "));
    };
    field("Page", &clause.page);
    field("Source", &clause.source);
    if let Some(reading) = &clause.reading {
        field("Reading", reading);
    }
    if !clause.allowed.is_empty() {
        field("Allowed outcomes", &clause.allowed.join(" | "));
    }
    if let Some(choice) = &clause.choice {
        field("Pinned by", &format!("[choices] {choice} = …"));
    }
    if let Some(feature) = &clause.feature {
        field("Binds peers that claim", feature);
    }
    if let Some(excluded) = &clause.excluded {
        field("Not checked, because", excluded);
    }
    let checks = checks_of(boundary, &clause.id.0);
    if !checks.is_empty() {
        let _ = writeln!(out, "{}", printer.paint(Tone::Head, "Checks"));
        for check in checks {
            let _ = writeln!(out, "  {check}");
        }
    }
    let mutants: Vec<_> = table::played(boundary)
        .mutants()
        .into_iter()
        .filter(|mutant| mutant.clauses.contains(&clause.id.0.as_str()))
        .collect();
    if !mutants.is_empty() {
        let _ = writeln!(out, "{}", printer.paint(Tone::Head, "Mutants that break it"));
        for mutant in mutants {
            let _ = writeln!(out, "  {}: {}", mutant.id, mutant.fault);
        }
    }
    out
}

fn explain_check(boundary: &'static dyn Boundary, check: &Check, printer: &Printer) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n\n{}", printer.paint(Tone::Name, &check.id), wrap(&check.title, "  "));
    let _ = writeln!(out, "{}\n  command `{}`", printer.paint(Tone::Head, "Needs"), check.command);
    for role in &check.roles {
        let _ = writeln!(out, "  role `{role}`");
    }
    if let Some(feature) = &check.feature {
        let _ = writeln!(out, "  feature `{feature}`");
    }
    if check.slow {
        let flag = if check.very_slow { "--very-slow" } else { "--slow" };
        let _ = writeln!(out, "  {flag}: it waits for the contract's own times");
    }
    let _ = writeln!(out, "{}", printer.paint(Tone::Head, "Clauses at risk"));
    for id in &check.clauses {
        let text = boundary.clauses().iter().find(|clause| clause.id == *id).map(|clause| {
            format!("{}, {}\n{}", clause.level.word().to_uppercase(), clause.page, wrap(&clause.text, "    "))
        });
        let _ = writeln!(
            out,
            "  {}  {}",
            printer.paint(Tone::Name, &id.0),
            text.as_deref().unwrap_or("no clause has this id").trim_end()
        );
    }
    let _ = writeln!(
        out,
        "{}\n  peerproof check {} --filter {} -- COMMAND",
        printer.paint(Tone::Head, "Run it alone"),
        boundary.name(),
        check.id
    );
    out
}
