//! Mutants that start a driver when they should not, or run another command.

use super::super::super::Mode;
use super::super::super::command_line::split;
use super::super::tree::{edited, get, put};
use super::selections::{is_fallback_for, retold};
use super::time::{set_default, unset, watching};
use super::{Mutant, Rewiring, wire};
use crate::machine::{Action, ChildExit, DriveOrder, Event, Machine, Millis};
use crate::mutant::{Inner, machine, parts};

fn own(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Starts the driver through a shell script, whose last command runs `"$@"` with the payload.
pub(super) fn started_by(order: &mut DriveOrder, script: &str) {
    let program = std::mem::replace(&mut order.program, "/bin/sh".to_owned());
    let arguments = order.argv.drain(..).skip(1);
    let mut argv = own(&["sh", "-c", script, "sh", &program]);
    argv.extend(arguments);
    order.argv = argv;
}

/// A mutant that starts the last driver again after a pause that follows a FALLBACK_ONLY request.
struct Late {
    inner: Inner,
    last: Option<DriveOrder>,
    due: Option<Millis>,
}

impl Machine for Late {
    fn handle(&mut self, event: Event<'_>, now: Millis, actions: &mut Vec<Action>) {
        if event == Event::Wake && self.due.is_some_and(|due| now >= due) {
            self.due = None;
            actions.extend(self.last.take().map(|order| Action::Drive(Box::new(order))));
            return;
        }
        if event != Event::Wake {
            self.due = None;
        }
        let from = actions.len();
        self.inner.handle(event, now, actions);
        for action in &actions[from..] {
            match action {
                Action::Drive(order) => self.last = Some((**order).clone()),
                Action::Stdout(line) if is_fallback_for(line, &["the mode is FALLBACK_ONLY"]) => {
                    self.due = Some(now + 800);
                }
                _ => {}
            }
        }
        actions.extend(self.due.map(Action::WakeAt));
    }

    fn wants_stdin(&self) -> bool {
        self.inner.wants_stdin()
    }
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    machine(
        "select-retries-once",
        &["PD-MODE-01"],
        "A driver that fails by its status is started a second time.",
        |inner| {
            watching(inner, |inner, memory, event, now, actions| match (&event, memory.order.take()) {
                (Event::ChildExit(ChildExit::Code(1..)), Some(order)) if memory.writes == 0 => {
                    actions.extend([Action::Kill, Action::Drive(Box::new(order))]);
                }
                (_, order) => {
                    memory.order = order;
                    inner.handle(event, now, actions);
                }
            })
        },
    ),
    wire(
        "select-fallback-only-starts",
        &["PD-MODE-02"],
        "FALLBACK_ONLY starts a driver too.",
        Rewiring::Request(|request| {
            if request.mode == Mode::FallbackOnly {
                request.mode = Mode::PolicyOnly;
            }
        }),
    ),
    wire(
        "select-other-modes-start",
        &["PD-MODE-06"],
        "Every control mode but FALLBACK_ONLY starts a driver.",
        Rewiring::Request(|request| {
            if request.mode == Mode::Other {
                request.mode = Mode::PolicyOnly;
            }
        }),
    ),
    wire(
        "select-mode-in-any-case",
        &["PD-MODE-06"],
        "The control mode may be in any case, with white space around it.",
        Rewiring::Line(|line| {
            edited(line, |members| {
                if let Some(mode) = get(members, "control_mode") {
                    let upper = mode.as_str().unwrap_or_default().trim().to_uppercase();
                    if mode.as_str().is_some() {
                        *mode = upper.as_str().into();
                    }
                }
            })
        }),
    ),
    wire(
        "select-mode-by-default",
        &["PD-MODE-06"],
        "Without a control mode a driver is started.",
        Rewiring::Line(|line| {
            edited(line, |members| {
                if get(members, "control_mode").is_none() {
                    put(members, "control_mode", "POLICY_ONLY".into());
                }
            })
        }),
    ),
    wire(
        "select-mode-under-a-name-of-any-case",
        &["PD-MODE-06"],
        "Without a control mode a member counts whose name differs from `control_mode` by case.",
        Rewiring::Line(|line| {
            edited(line, |members| {
                let is_like = |name: &str| name.replace('_', "").eq_ignore_ascii_case("controlmode");
                let like = members.iter().find(|(name, _)| is_like(&name.to_lossy())).cloned();
                if let Some((_, mode)) = like.filter(|_| get(members, "control_mode").is_none()) {
                    put(members, "control_mode", mode);
                }
            })
        }),
    ),
    wire(
        "select-mode-but-for-its-last-letter",
        &["PD-MODE-06"],
        "The last letter of the control mode is not compared.",
        Rewiring::Line(|line| {
            edited(line, |members| {
                if let Some(mode) = get(members, "control_mode")
                    && mode.as_str().is_some_and(|mode| mode.len() == 11 && mode.starts_with("POLICY_ONL"))
                {
                    *mode = "POLICY_ONLY".into();
                }
            })
        }),
    ),
    machine(
        "select-starts-later",
        &["PD-MODE-02"],
        "A FALLBACK_ONLY request that nothing follows for 0.8 s starts the last driver again.",
        |inner| Box::new(Late { inner, last: None, due: None }),
    ),
    wire(
        "select-other-modes-are-questions",
        &["PD-MODE-06"],
        "Another control mode is answered by ASK_SUP.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["the mode is not"]) { retold(line, "ASK_SUP") } else { line.to_vec() }
        }),
    ),
    wire(
        "select-invalid-without-command",
        &["PD-MODE-04"],
        "Without a command a request is INVALID.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["no policy is configured"]) {
                retold(line, "INVALID")
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-noop-without-command",
        &["PD-MODE-04"],
        "Without a command a request is answered by NOOP.",
        Rewiring::Selection(|line| {
            if is_fallback_for(line, &["no policy is configured"]) {
                retold(line, "NOOP")
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-command-in-a-like-variable",
        &["PD-MODE-04"],
        "A variable whose name differs from MACHINA_POLICY_CMD by case or white space is that variable.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_CMD";
            let is_like = |known: &str| known.trim().eq_ignore_ascii_case(name) && known != name;
            if let Some((_, value)) = variables.iter().find(|(known, _)| is_like(known)).cloned() {
                variables.push((name.to_owned(), value));
            }
        }),
    ),
    wire(
        "select-runs-all-by-sh",
        &["PD-MODE-05"],
        "Every script is run by sh.",
        Rewiring::Order(|order| "/bin/sh".clone_into(&mut order.program)),
    ),
    parts(
        "select-splits-at-blanks",
        &["PD-CMD-01"],
        "Quotes and backslashes are characters of a word.",
        |_, parts| parts.split = |command| Ok(command.split_whitespace().map(str::to_owned).collect()),
    ),
    parts(
        "select-splits-at-spaces-only",
        &["PD-CMD-01"],
        "Tabs and line feeds do not separate words.",
        |_, parts| {
            parts.split = |command| split(&command.replace('\t', "\\\t").replace('\n', "'\n'"));
        },
    ),
    parts(
        "select-knows-no-single-quotes",
        &["PD-CMD-01"],
        "Single quotes are characters of a word.",
        |_, parts| parts.split = |command| split(&command.replace('\'', "\\'")),
    ),
    parts(
        "select-knows-no-double-quotes",
        &["PD-CMD-01"],
        "Double quotes are characters of a word.",
        |_, parts| parts.split = |command| split(&command.replace('"', "\\\"")),
    ),
    parts(
        "select-knows-no-backslash",
        &["PD-CMD-01"],
        "Backslashes are characters of a word.",
        |_, parts| parts.split = |command| split(&command.replace('\\', "\\\\")),
    ),
    parts("select-drops-empty-words", &["PD-CMD-01"], "Empty words are dropped.", |_, parts| {
        parts.split = |command| Ok(split(command)?.into_iter().filter(|word| !word.is_empty()).collect());
    }),
    parts(
        "select-escapes-in-single-quotes",
        &["PD-CMD-01"],
        "A backslash quotes within single quotes too.",
        |_, parts| {
            parts.split = |command| {
                let has_double = command.contains('"');
                if has_double { split(command) } else { split(&command.replace('\'', "\"")) }
            };
        },
    ),
    parts(
        "select-expands-variables",
        &["PD-CMD-02"],
        "A word that begins with a dollar sign is taken for an unset variable.",
        |_, parts| {
            parts.split = |command| {
                let expand = |word: String| if word.starts_with('$') { String::new() } else { word };
                Ok(split(command)?.into_iter().map(expand).collect())
            };
        },
    ),
    parts(
        "select-expands-tilde",
        &["PD-CMD-02"],
        "A tilde at the start of a word becomes `/root`.",
        |_, parts| {
            parts.split = |command| {
                let expand = |word: String| match word.strip_prefix('~') {
                    Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("/root{rest}"),
                    _ => word,
                };
                Ok(split(command)?.into_iter().map(expand).collect())
            };
        },
    ),
    parts(
        "select-expands-tilde-within",
        &["PD-CMD-02"],
        "A tilde before a slash becomes `/root`, within a word and between quotes too.",
        |_, parts| {
            parts.split =
                |command| Ok(split(command)?.into_iter().map(|word| word.replace("~/", "/root/")).collect());
        },
    ),
    parts("select-drops-comments", &["PD-CMD-02"], "What follows a number sign is dropped.", |_, parts| {
        parts.split =
            |command| Ok(split(command)?.into_iter().take_while(|word| !word.starts_with('#')).collect());
    }),
    wire(
        "select-runs-a-shell",
        &["PD-CMD-01", "PD-CMD-02"],
        "The command is run by a shell.",
        Rewiring::Order(|order| {
            let line = format!("exec {} \"$@\"", order.argv.join(" "));
            order.argv = own(&["sh", "-c", &line, "sh"]);
            "/bin/sh".clone_into(&mut order.program);
        }),
    ),
    wire(
        "select-quotes-for-a-shell",
        &["PD-CMD-02"],
        "The command is run by a shell, its words in double quotes.",
        Rewiring::Order(|order| {
            let line = format!("exec \"{}\" \"$@\"", order.argv.join("\" \""));
            order.argv = own(&["sh", "-c", &line, "sh"]);
            "/bin/sh".clone_into(&mut order.program);
        }),
    ),
    wire(
        "select-drops-own-arguments",
        &["PD-CMD-03"],
        "Arguments of the script itself are dropped.",
        Rewiring::Order(|order| order.argv.truncate(2)),
    ),
    wire(
        "select-sorts-own-arguments",
        &["PD-CMD-03"],
        "Arguments of the script itself come in reverse order.",
        Rewiring::Order(|order| {
            if let Some(arguments) = order.argv.get_mut(2..) {
                arguments.reverse();
            }
        }),
    ),
    wire(
        "select-marks-end-of-options",
        &["PD-CMD-03"],
        "A double dash stands before the path of the payload.",
        Rewiring::Order(|order| order.argv.push("--".to_owned())),
    ),
    wire(
        "select-reads-stderr",
        &["PD-CMD-05"],
        "Standard error of a driver is read as its output.",
        Rewiring::Order(|order| started_by(order, "exec \"$@\" 2>&1")),
    ),
    wire(
        "select-blocks-stderr",
        &["PD-CMD-05"],
        "Standard error of a driver is a pipe that nobody reads.",
        Rewiring::Order(|order| {
            let script =
                "f=\"${TMPDIR:-/tmp}/stderr.$$\"; mkfifo \"$f\" && exec 2<>\"$f\" && rm \"$f\"; exec \"$@\"";
            started_by(order, script);
        }),
    ),
    wire(
        "select-ignores-root",
        &["PD-CMD-08", "PD-ALLOW-09"],
        "MACHINA_ROOT means nothing.",
        Rewiring::Variables(|variables| unset(variables, "MACHINA_ROOT")),
    ),
    wire(
        "select-root-by-default",
        &["PD-CMD-08", "PD-ALLOW-09"],
        "Without MACHINA_ROOT the root is `/`.",
        Rewiring::Variables(|variables| set_default(variables, "MACHINA_ROOT", "/")),
    ),
];
