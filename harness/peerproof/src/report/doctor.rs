//! Report of `peerproof doctor`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use super::console::failure_text;
use super::printer::{Printer, Tone};
use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::clause::Side;
use peerproof_engine::data::facts::RoleTrial;
use peerproof_engine::data::pace::Measured;
use peerproof_engine::data::text::wrap;
use peerproof_engine::run::verdict::CheckResult;

/// Conformance role and the tool that plays it.
#[derive(Debug, Clone)]
pub struct Role {
    /// Name.
    pub name: &'static str,
    /// Behaviour of the tool.
    pub meaning: &'static str,
    /// The peer's tool, if known.
    pub tool: Option<String>,
    /// Set if it was configured rather than found.
    pub configured: bool,
    /// Result of its trial, if tried.
    pub trial: Option<RoleTrial>,
    /// Number of checks that need it.
    pub checks: usize,
}

/// Feature of the boundary.
#[derive(Debug, Clone)]
pub struct Feature {
    /// Name.
    pub name: &'static str,
    /// Meaning of the feature.
    pub meaning: &'static str,
    /// Set if the peer is held to the feature.
    pub claimed: bool,
    /// Reason why the peer is or is not held to the feature.
    pub why: &'static str,
}

/// Knowledge about a peer before it is checked.
#[derive(Clone)]
pub struct Diagnosis {
    /// Name of the peer.
    pub name: String,
    /// Boundary of the peer.
    pub boundary: &'static dyn Boundary,
    /// Side of the peer.
    pub side: Side,
    /// Configuration file.
    pub file: Option<PathBuf>,
    /// Command lines by name, quoted for a shell.
    pub commands: Vec<(String, String)>,
    /// Working directory.
    pub folder: Option<String>,
    /// Environment without secrets.
    pub environment: Vec<(String, String)>,
    /// First messages.
    pub conversation: Vec<String>,
    /// First lines of standard error.
    pub stderr: Vec<String>,
    /// Measured pace, by command.
    pub pace: BTreeMap<String, Measured>,
    /// Roles of the boundary.
    pub roles: Vec<Role>,
    /// Features of the boundary.
    pub features: Vec<Feature>,
    /// Pinned choices.
    pub choices: BTreeMap<String, String>,
    /// Results of the first canaries.
    pub first: Vec<CheckResult>,
    /// Advice.
    pub notes: Vec<String>,
}

/// Line about a role: the tool that plays it, or the reason why none does.
fn role_line(role: &Role, printer: &Printer) -> String {
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
    let needed = match role.checks {
        1 => " (1 check needs it)".to_owned(),
        checks => format!(" ({checks} checks need it)"),
    };
    let (mark, needed) = if tone == Tone::Good { ("yes", "") } else { ("no ", needed.as_str()) };
    format!("{} {:10} {what}{needed}", printer.paint(tone, mark), role.name)
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
        let _ = writeln!(out, "  {}", role_line(role, printer));
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
