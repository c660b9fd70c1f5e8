//! What stands before a script, and files that are their own script.

use super::super::super::select::expect::Expect;
use super::super::super::select::provided::Provided;
use super::super::super::select::talk::{ALLOWED_EXE, Talk, says};
use super::check;
use super::starts::{PICKED, SCRIPT, accepts, accepts_as, link, opens, program, refuses, script_for, shell};
use crate::check::Check;

const BEFORE: &str = "PD-ALLOW-11";
const ITSELF: &str = "PD-ALLOW-12";

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    vec![options(), other_interpreters(), no_script(), behind_the_script(), itself()]
}

fn options() -> Check {
    check(
        "interpreter/option-before-the-script",
        "A shell that is given an option, `--`, `-` or `+x` before a script that it may run is refused.",
        &[BEFORE],
        |talk, _| {
            talk.driver(says(PICKED));
            accepts(talk, BEFORE, &[], &format!("sh {SCRIPT}"));
            for option in ["-c", "-e", "-m", "-s", "-", "--", "+x", "-u", "-eu", "-o errexit"] {
                refuses(talk, BEFORE, &[], &format!("sh {option} {SCRIPT}"));
            }
        },
    )
}

/// Puts a shell under the name of each other interpreter into the path that is returned, so that what a selector lets through
/// would run; the twin that is accepted comes first.
fn pretended(talk: &mut Talk) -> [(&'static str, &'static str); 1] {
    let path = [("PATH", "{{folder}}/bin:{{PATH}}")];
    talk.driver(says(PICKED));
    accepts(talk, BEFORE, &[], &format!("sh {SCRIPT}"));
    for name in ["bash", "python3", "node"] {
        shell(talk, &format!("bin/{name}"));
        let script = script_for(talk, name);
        opens(talk, BEFORE, &path, &format!("{name} {script}"));
    }
    path
}

fn other_interpreters() -> Check {
    check(
        "interpreter/inline-code",
        "Inline code, modules and options of bash, python3 and node are refused.",
        &[BEFORE],
        |talk, _| {
            let path = pretended(talk);
            let print = format!("\"printf '%s' '{PICKED}'\"");
            for command in [
                format!("bash -c {print}"),
                format!("bash --norc {SCRIPT}"),
                format!("bash -s {SCRIPT}"),
                format!("python3 -c {print}"),
                "python3 -m http.server".to_owned(),
                "python3 -u {{policies/python3/driver.py.path}}".to_owned(),
                "python3 - {{policies/python3/driver.py.path}}".to_owned(),
                format!("node -e {print}"),
                "node -r {{policies/node/driver.js.path}} {{policies/node/driver.js.path}}".to_owned(),
            ] {
                refuses(talk, BEFORE, &path, &command);
            }
        },
    )
}

fn no_script() -> Check {
    check(
        "interpreter/no-script",
        "An interpreter without a script is refused: it would run the payload.",
        &[BEFORE],
        |talk, _| {
            let path = pretended(talk);
            for name in ["sh", "bash", "python3", "node"] {
                refuses(talk, BEFORE, &path, name);
            }
        },
    )
}

fn behind_the_script() -> Check {
    check(
        "interpreter/option-behind-the-script",
        "Words that look like options of an interpreter are the script's own behind it.",
        &[BEFORE],
        |talk, _| {
            talk.driver(says(PICKED));
            let words = ["-c", "-e", "-m", "-s", "-", "--", "+x", "-u"];
            let own = words.iter().map(|word| (*word).to_owned()).collect();
            let expect = Expect::taken(BEFORE, PICKED)
                .starts(BEFORE, 1)
                .provided(Provided::Words { clause: BEFORE.into(), words: own });
            accepts_as(talk, &[], &format!("sh {SCRIPT} {}", words.join(" ")), expect);
        },
    )
}

fn itself() -> Check {
    check(
        "interpreter/file-that-is-its-own-script",
        "A `#!` file runs without a script where it lies under the root and is listed, and only there.",
        &[ITSELF],
        |talk, _| {
            const NAME: &str = "peerproof-tool";
            program(talk, &format!("policies/bin/{NAME}"));
            program(talk, &format!("outside/bin/{NAME}"));
            link(talk, &format!("policies/out/{NAME}"), &format!("{{{{outside/bin/{NAME}.path}}}}"));
            link(talk, &format!("outside/in/{NAME}"), &format!("{{{{policies/bin/{NAME}.path}}}}"));
            talk.driver(says(PICKED));
            let path = |folder: &str| format!("{{{{folder}}}}/{folder}:{{{{PATH}}}}");
            for folder in ["policies/bin", "outside/in"] {
                accepts(talk, ITSELF, &[("PATH", &path(folder)), (ALLOWED_EXE, NAME)], NAME);
            }
            for folder in ["outside/bin", "policies/out"] {
                refuses(talk, ITSELF, &[("PATH", &path(folder)), (ALLOWED_EXE, NAME)], NAME);
                // A script that may run does not make up for it.
                let command = format!("{NAME} {SCRIPT}");
                refuses(talk, ITSELF, &[("PATH", &path(folder)), (ALLOWED_EXE, NAME)], &command);
            }
            refuses(talk, ITSELF, &[("PATH", &path("policies/bin")), (ALLOWED_EXE, "sh,node")], NAME);
        },
    )
}
