//! What `peerproof doctor` shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::console::failure_text;
use super::printer::{Printer, Tone};
use peerproof_engine::boundary::Boundary;
use peerproof_engine::clause::Side;
use peerproof_engine::facts::RoleTrial;
use peerproof_engine::pace::Measured;
use peerproof_engine::text::wrap;
use peerproof_engine::verdict::CheckResult;

/// A conformance role and the tool that plays it.
#[derive(Debug, Clone)]
pub struct Role {
    /// Name.
    pub name: &'static str,
    /// What the tool does.
    pub meaning: &'static str,
    /// The peer's tool, where one is known.
    pub tool: Option<String>,
    /// It was configured, not found.
    pub configured: bool,
    /// What a trial of it came to, where it was tried.
    pub trial: Option<RoleTrial>,
    /// Number of checks that need it.
    pub checks: usize,
}

/// A feature of the boundary.
#[derive(Debug, Clone)]
pub struct Feature {
    /// Name.
    pub name: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// Whether the peer is held to it.
    pub claimed: bool,
    /// Where that comes from.
    pub why: &'static str,
}

/// Everything that is known about a peer before it is checked.
#[derive(Clone)]
pub struct Diagnosis {
    /// Its name.
    pub name: String,
    /// Its boundary.
    pub boundary: &'static dyn Boundary,
    /// Its side.
    pub side: Side,
    /// The configuration file.
    pub file: Option<PathBuf>,
    /// Command lines by name, quoted for a shell.
    pub commands: Vec<(String, String)>,
    /// Working directory.
    pub folder: Option<String>,
    /// Its environment, without secrets.
    pub environment: Vec<(String, String)>,
    /// The first things that were said.
    pub conversation: Vec<String>,
    /// The first lines of its standard error.
    pub stderr: Vec<String>,
    /// How quick it was, by command.
    pub pace: BTreeMap<String, Measured>,
    /// Roles of the boundary.
    pub roles: Vec<Role>,
    /// Features of the boundary.
    pub features: Vec<Feature>,
    /// Pinned choices.
    pub choices: BTreeMap<String, String>,
    /// The first canaries.
    pub first: Vec<CheckResult>,
    /// What to do about it.
    pub notes: Vec<String>,
}

/// Renders a diagnosis.
pub fn render(diagnosis: &Diagnosis, printer: &Printer) -> String {
    let mut out = String::new();
    let head = |text: &str| printer.paint(Tone::Head, text);
    let name = |text: &str| printer.paint(Tone::Name, text);
    let side = diagnosis.side.word();
    let _ = writeln!(out, "{}", head(&format!("{} · {} {side}", diagnosis.name, diagnosis.boundary.name())));
    match &diagnosis.file {
        Some(file) => {
            let _ = writeln!(out, "  configured by {}", file.display());
        }
        None => out.push_str("  configured by the command line\n"),
    }
    let _ = writeln!(out, "\n{}", head("Commands"));
    for (command, line) in &diagnosis.commands {
        let _ = writeln!(out, "  {}  {line}", name(command));
    }
    if let Some(folder) = &diagnosis.folder {
        let _ = writeln!(out, "  in {folder}");
    }
    let _ = writeln!(out, "\n{}", head("Environment (plus TMPDIR; nothing else is passed)"));
    for (variable, value) in &diagnosis.environment {
        let _ = writeln!(out, "  {variable}={value}");
    }
    if !diagnosis.conversation.is_empty() {
        let _ = writeln!(out, "\n{}", head("First conversation"));
        for line in &diagnosis.conversation {
            let _ = writeln!(out, "  {}", printer.paint(Tone::Dim, line));
        }
    }
    if !diagnosis.stderr.is_empty() {
        let _ = writeln!(out, "\n{}", head("Standard error of the peer"));
        for line in &diagnosis.stderr {
            let _ = writeln!(out, "  {line}");
        }
    }
    if !diagnosis.pace.is_empty() {
        let _ = writeln!(out, "\n{}", head("Times"));
    }
    for (command, measured) in &diagnosis.pace {
        let _ = writeln!(out, "  {}  {measured}", name(command));
    }
    if !diagnosis.roles.is_empty() {
        let _ = writeln!(out, "\n{}", head("Roles"));
    }
    for role in &diagnosis.roles {
        let (tone, what) = match (&role.trial, &role.tool) {
            (Some(RoleTrial::Misplays(why)), _) => (Tone::Warn, format!("does not play the role: {why}")),
            (trial, Some(tool)) => {
                let from = if role.configured { "configured" } else { "found" };
                let works = match trial {
                    Some(RoleTrial::Untold(why)) => {
                        format!("; its trial was inconclusive: {why}")
                    }
                    Some(_) => "; its trial passed".to_owned(),
                    None => String::new(),
                };
                (Tone::Good, format!("{tool} ({from}{works})"))
            }
            (_, None) => (Tone::Warn, role.meaning.to_owned()),
        };
        let needed = format!(" ({} checks need it)", role.checks);
        let (mark, needed) = if tone == Tone::Good { ("yes", "") } else { ("no ", needed.as_str()) };
        let _ = writeln!(out, "  {} {:10} {what}{needed}", printer.paint(tone, mark), role.name);
    }
    if !diagnosis.features.is_empty() {
        let _ = writeln!(out, "\n{}", head("Features"));
    }
    for feature in &diagnosis.features {
        let mark =
            if feature.claimed { printer.paint(Tone::Good, "yes") } else { printer.paint(Tone::Warn, "no ") };
        let _ = writeln!(out, "  {mark} {:12} {}", feature.name, feature.why);
    }
    if !diagnosis.choices.is_empty() {
        let list: Vec<String> =
            diagnosis.choices.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let _ = writeln!(out, "\n{}\n{}", head("Pinned choices"), wrap(&list.join("  "), "  "));
    }
    let clauses = diagnosis.boundary.clauses();
    if !diagnosis.first.is_empty() {
        let _ = writeln!(out, "\n{}", head("First request"));
    }
    for check in &diagnosis.first {
        if check.verdict.is_good() {
            let _ = writeln!(out, "  {} {}", printer.paint(Tone::Good, "answered"), check.id);
        } else if check.verdict.is_failure() {
            let _ = writeln!(out, "{}", failure_text(check, clauses, &[]).trim_end());
        } else {
            let detail = check.verdict.detail().unwrap_or_default();
            let word = printer.paint(Tone::Warn, check.verdict.word());
            let _ = writeln!(out, "  {word} {}: {detail}", check.id);
        }
    }
    let _ = writeln!(out, "\n{}", head("Advice"));
    let unanswered = diagnosis.first.iter().filter(|check| !check.verdict.is_good());
    let fix = unanswered.map(|check| {
        format!(
            "fix the fault that {} shows: `peerproof check` reaches no other verdict about a command that does not \
             answer its first request",
            check.id
        )
    });
    let notes: Vec<String> = diagnosis.notes.iter().cloned().chain(fix).collect();
    if notes.is_empty() {
        out.push_str("  none: `peerproof check` can start\n");
    }
    for note in notes {
        let _ = writeln!(out, "{}", wrap(&format!("- {note}"), "  "));
    }
    out
}
