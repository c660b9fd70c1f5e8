//! Helpers of checks about commands. A command is fixed for the life of a selector, so each has a selector of its
//! own.

use super::super::super::request::Request;
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{COMMAND, Talk, says};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::near_miss::{NearMiss, near_misses};
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{ActorStep, Fixture, PathKind};

/// Output of every driver in these conversations, so that the order of their starts does not matter.
pub(crate) const PICKED: &str = "<PICK><SID0042><END>";

/// Path of the scripted driver, as script of a command.
pub(crate) const SCRIPT: &str = "{{policies/driver.sh.path}}";

/// Variables and their values.
pub(super) type Variables<'a> = &'a [(&'a str, &'a str)];

/// Expects that a selector with this command and these variables starts the driver and takes its block.
pub(super) fn accepts(talk: &mut Talk, clause: &str, variables: Variables<'_>, command: &str) {
    accepts_as(talk, variables, command, Expect::taken(clause, PICKED).starts(clause, 1));
}

/// Adds a selector with this command and these variables, and expects `expect`.
pub(crate) fn accepts_as(talk: &mut Talk, variables: Variables<'_>, command: &str, expect: Expect) {
    selector(talk, variables, command);
    talk.ask(&Request::plain(), expect).counts_as_canary();
}

/// Reason why a refusal proves nothing without its control.
const NO_CONTROL: &str = "the same command is not started either without the part that must be refused";

/// Adds a control: a selector with this command and these variables. If it does not start the driver and take its
/// block, refusals of similar commands prove nothing.
pub(crate) fn opens(talk: &mut Talk, clause: &str, variables: Variables<'_>, command: &str) {
    selector(talk, variables, command);
    let expect = Expect::taken(clause, PICKED)
        .or_undecided(Allowed::Anything, Untestable::new("no_control", NO_CONTROL));
    talk.ask(&Request::plain(), expect);
}

/// Expects that a selector with this command and these variables refuses it, twice.
pub(super) fn refuses(talk: &mut Talk, clause: &str, variables: Variables<'_>, command: &str) {
    selector(talk, variables, command);
    for _ in 0..2 {
        talk.ask(&Request::plain(), Expect::refused(clause));
    }
}

/// Continues with a new selector with this command and these variables. An empty value unsets a variable.
pub(super) fn selector(talk: &mut Talk, variables: Variables<'_>, command: &str) {
    talk.another();
    for (name, value) in variables {
        if value.is_empty() {
            talk.unset(name);
        } else {
            talk.env(name, value);
        }
    }
    talk.env(COMMAND, command);
}

/// A program that prints [`PICKED`].
pub(super) fn program(talk: &mut Talk, name: &str) {
    actor(talk, name, says(PICKED));
}

/// A program that plays this script at each start.
pub(super) fn actor(talk: &mut Talk, name: &str, script: Vec<ActorStep>) {
    talk.fixture(Fixture::Actor { name: name.to_owned(), script, later: Vec::new() });
}

/// Path of a script for this interpreter, with the usual extension. Adds its program; call it once.
pub(crate) fn script_for(talk: &mut Talk, interpreter: &str) -> String {
    let extension = match interpreter {
        "python" | "python3" => "py",
        "node" => "js",
        _ => return SCRIPT.to_owned(),
    };
    let name = format!("policies/{interpreter}/driver.{extension}");
    program(talk, &name);
    format!("{{{{{name}.path}}}}")
}

/// Near misses of a name that can be names of fixtures.
pub(crate) fn file_names(misses: Vec<NearMiss>) -> impl Iterator<Item = String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == ' ' || !letter.is_ascii();
    misses.into_iter().map(|miss| miss.text).filter(move |name| name.chars().all(is_plain))
}

/// Near misses of a variable's name that can be names of variables.
pub(crate) fn variable_names(name: &str) -> impl Iterator<Item = String> {
    near_misses(name).into_iter().map(|miss| miss.text).filter(|name| !name.contains(['\0', '=']))
}

/// Adds a symbolic link.
pub(super) fn link(talk: &mut Talk, name: &str, to: &str) {
    talk.fixture(Fixture::Path { name: name.to_owned(), what: PathKind::Link { to: to.to_owned() } });
}

/// Adds a copy of the system's shell under another name: a program in machine code.
pub(super) fn shell(talk: &mut Talk, name: &str) {
    let what = PathKind::Copy { of: "/bin/sh".to_owned() };
    talk.fixture(Fixture::Path { name: name.to_owned(), what });
}

/// Base name of the file behind `/bin/sh`.
pub(crate) fn name_of_the_shell() -> String {
    let real = std::fs::canonicalize("/bin/sh").unwrap_or_default();
    real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// True if a copy of the system's shell works under any name. A multi-call binary depends on its name.
pub(crate) fn is_shell_of_any_name() -> bool {
    ["dash", "bash"].contains(&name_of_the_shell().as_str())
}

/// Adds a driver that replaces the link `name` and then picks.
pub(crate) fn relinks(talk: &mut Talk, driver: &str, name: &str, to: &str) {
    let content = Payload::text("rm -f '")
        .var(format!("{name}.path"))
        .then(Payload::text("' && ln -s '"))
        .var(format!("{to}.path"))
        .then(Payload::text("' '"))
        .var(format!("{name}.path"))
        .then(Payload::text(format!("' && printf '%s' '{PICKED}'\n")));
    talk.fixture(Fixture::File { name: driver.to_owned(), content, mode: None, kept: false });
}
