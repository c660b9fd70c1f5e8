//! Checks of commands: interpreters and options before a script, and files that are their own script.

use super::super::super::request::Request;
use super::super::super::selector::expect::Expect;
use super::super::super::selector::provided::Provided;
use super::super::super::selector::talk::{ALLOWED_EXE, SCRIPT_ROOT, Talk, says};
use super::check;
use super::starts::{
    PICKED, SCRIPT, accepts, accepts_as, link, name_of_the_shell, opens, program, refuses, script_for,
    selector, shell,
};
use peerproof_engine::data::check::Check;

const BEFORE: &str = "PD-ALLOW-11";
const ITSELF: &str = "PD-ALLOW-12";
const UNDER_ROOT: &str = "PD-ALLOW-08";
const NO_SCRIPT_NEEDED: &str = "PD-ALLOW-15";

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        options(),
        other_interpreters(),
        no_script(),
        link_to_a_listed_one(),
        behind_the_script(),
        itself(),
        no_interpreter(),
    ]
}

fn link_to_a_listed_one() -> Check {
    check(
        "interpreter/link-to-a-listed-interpreter",
        "A listed name that is a link to a listed shell is that shell: without a script, with an option, or with a script \
         outside the root it is refused.",
        &[BEFORE, UNDER_ROOT],
        |talk, _| {
            const NAME: &str = "peerproof-tool";
            link(talk, &format!("bin/{NAME}"), "/bin/sh");
            program(talk, "outside/driver.sh");
            talk.driver(says(PICKED));
            let list = format!("{NAME},{},sh", name_of_the_shell());
            let usual = [("PATH", "{{folder}}/bin:{{PATH}}"), (ALLOWED_EXE, list.as_str())];
            let outside = format!("{NAME} {{{{outside/driver.sh.path}}}}");
            accepts(talk, BEFORE, &usual, &format!("sh {SCRIPT}"));
            opens(talk, BEFORE, &usual, &format!("{NAME} {SCRIPT}"));
            opens(talk, UNDER_ROOT, &[usual[0], usual[1], (SCRIPT_ROOT, "{{folder}}")], &outside);
            refuses(talk, UNDER_ROOT, &usual, &outside);
            for command in [NAME.to_owned(), format!("{NAME} -u {SCRIPT}"), format!("{NAME} -c \"printf x\"")]
            {
                refuses(talk, BEFORE, &usual, &command);
            }
        },
    )
}

fn no_interpreter() -> Check {
    check(
        "interpreter/program-that-is-none",
        "A listed program in machine code that is not an interpreter runs without a script.",
        &[NO_SCRIPT_NEEDED],
        |talk, _| {
            // It prints its first argument and ignores the payload path.
            let command = format!("printf '{PICKED}'");
            talk.driver(says(PICKED));
            accepts(talk, NO_SCRIPT_NEEDED, &[], &format!("sh {SCRIPT}"));
            opens(talk, NO_SCRIPT_NEEDED, &[("MACHINA_POLICY_ALLOW_UNSAFE", "1")], &command);
            selector(talk, &[(ALLOWED_EXE, "printf")], &command);
            talk.ask(&Request::plain(), Expect::taken(NO_SCRIPT_NEEDED, PICKED));
        },
    )
}

fn options() -> Check {
    check(
        "interpreter/option-before-the-script",
        "A shell with an option, `--`, `-` or `+x` before an allowed script is refused.",
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

/// Makes a shell available under the name of each other interpreter, so that a command would run if the selector
/// let it. Plays the accepted twin first. Returns the PATH.
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
        "Words after the script that look like options of an interpreter belong to the script.",
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
        "A `#!` file runs without a script if it is under the root and listed, and only then.",
        &[ITSELF],
        |talk, _| {
            const NAME: &str = "peerproof-tool";
            program(talk, &format!("policies/bin/{NAME}"));
            program(talk, &format!("outside/bin/{NAME}"));
            program(talk, &format!("policies-old/bin/{NAME}"));
            link(talk, &format!("policies/out/{NAME}"), &format!("{{{{outside/bin/{NAME}.path}}}}"));
            link(talk, &format!("outside/in/{NAME}"), &format!("{{{{policies/bin/{NAME}.path}}}}"));
            talk.driver(says(PICKED));
            let path = |folder: &str| format!("{{{{folder}}}}/{folder}:{{{{PATH}}}}");
            for folder in ["policies/bin", "outside/in"] {
                accepts(talk, ITSELF, &[("PATH", &path(folder)), (ALLOWED_EXE, NAME)], NAME);
            }
            for folder in ["outside/bin", "policies/out", "policies-old/bin"] {
                let path = path(folder);
                let everywhere = [("PATH", path.as_str()), (ALLOWED_EXE, NAME), (SCRIPT_ROOT, "{{folder}}")];
                opens(talk, ITSELF, &everywhere, NAME);
                refuses(talk, ITSELF, &[("PATH", &path), (ALLOWED_EXE, NAME)], NAME);
                // A script that may run does not make the command valid.
                let command = format!("{NAME} {SCRIPT}");
                refuses(talk, ITSELF, &[("PATH", &path), (ALLOWED_EXE, NAME)], &command);
            }
            refuses(talk, ITSELF, &[("PATH", &path("policies/bin")), (ALLOWED_EXE, "sh,node")], NAME);
        },
    )
}
