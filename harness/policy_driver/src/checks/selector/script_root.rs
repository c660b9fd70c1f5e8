//! Checks of the folder in which scripts must lie (`policy` §1 "Allowlist controls").

use super::super::super::request::Request;
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::provided::Provided;
use super::super::super::selector::talk::{SCRIPT_ROOT, Talk, says};
use super::check;
use super::starts::{
    PICKED, SCRIPT, accepts, accepts_as, file_names, link, opens, program, refuses, selector,
};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::plan::{Fixture, PathKind};

const UNDER_ROOT: &str = "PD-ALLOW-08";
const DEFAULT_ROOT: &str = "PD-ALLOW-09";
const RESOLVED: &str = "PD-ALLOW-10";
const EXAMPLES: &str = "PD-ALLOW-14";
const REPO_ROOT: &str = "PD-CMD-08";
const EXAMPLE: &str = "PD-MODE-05";

/// Variable: the `<repo_root>`.
const ROOT: &str = "MACHINA_ROOT";
/// Folder of the included examples.
const EXAMPLES_FOLDER: &str = "{{folder}}/examples/policy_drivers";

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        outside(),
        relative(),
        dots(),
        links(),
        dots_behind_links(),
        neighbours(),
        near_misses_of_the_root(),
        spelled_root(),
        encoded_separators(),
        default_root(),
        no_root(),
        working_directory(),
        examples(),
        example(),
    ]
}

/// A script root with all fixtures. Scripts that are refused under another root run there.
const EVERYWHERE: (&str, &str) = (SCRIPT_ROOT, "{{folder}}");

/// Adds a driver under the root, one in a sub-folder, and one outside, which would run if it were under the root.
fn drivers(talk: &mut Talk) {
    program(talk, "outside/driver.sh");
    program(talk, "policies/deep/er/driver.sh");
    talk.driver(says(PICKED));
    opens(talk, UNDER_ROOT, &[EVERYWHERE], "sh {{outside/driver.sh.path}}");
}

fn outside() -> Check {
    check(
        "script-root/script-outside",
        "A script in the root or in a folder below it runs; a script beside or above the root is refused, \
         even if it does not exist.",
        &[UNDER_ROOT],
        |talk, _| {
            drivers(talk);
            program(talk, "above.sh");
            for script in [SCRIPT, "{{policies/deep/er/driver.sh.path}}"] {
                accepts(talk, UNDER_ROOT, &[], &format!("sh {script}"));
            }
            for script in [
                "{{outside/driver.sh.path}}",
                "{{above.sh.path}}",
                "{{folder}}/outside/nothing",
                "{{folder}}/outside/nothing.sh",
                "{{folder}}/outside/nothing.py",
            ] {
                refuses(talk, UNDER_ROOT, &[], &format!("sh {script}"));
            }
            opens(talk, UNDER_ROOT, &[EVERYWHERE], "sh {{above.sh.path}}");
            let deep = [(SCRIPT_ROOT, "{{folder}}/policies/deep")];
            refuses(talk, UNDER_ROOT, &deep, &format!("sh {SCRIPT}"));
            accepts(talk, UNDER_ROOT, &deep, "sh {{policies/deep/er/driver.sh.path}}");
        },
    )
}

fn relative() -> Check {
    check(
        "script-root/relative-path",
        "A relative path starts at the working directory, and its target must be under the root.",
        &[UNDER_ROOT],
        |talk, _| {
            drivers(talk);
            // The root of the file system, however deep the working directory is.
            let top = [".."; 64].join("/");
            accepts(talk, UNDER_ROOT, &[], &format!("sh {top}{SCRIPT}"));
            refuses(talk, UNDER_ROOT, &[], &format!("sh {top}{{{{outside/driver.sh.path}}}}"));
            refuses(talk, UNDER_ROOT, &[], "sh driver.sh");
        },
    )
}

fn dots() -> Check {
    check(
        "script-root/two-dots",
        "A path that leaves the root by `..` is refused; a path that returns to the root or enters it by \
         `..` runs.",
        &[RESOLVED],
        |talk, _| {
            drivers(talk);
            for path in [
                "policies/../outside/driver.sh",
                "policies/deep/../../outside/driver.sh",
                "policies/./../outside/driver.sh",
            ] {
                refuses(talk, RESOLVED, &[], &format!("sh {{{{folder}}}}/{path}"));
            }
            for path in [
                "policies/../policies/driver.sh",
                "outside/../policies/driver.sh",
                "policies/deep/../driver.sh",
            ] {
                accepts(talk, RESOLVED, &[], &format!("sh {{{{folder}}}}/{path}"));
            }
        },
    )
}

fn links() -> Check {
    check(
        "script-root/links",
        "A link in the root to a script outside is refused, directly or through a second link; a link \
         outside to a script inside runs.",
        &[RESOLVED],
        |talk, _| {
            drivers(talk);
            link(talk, "policies/out.sh", "{{outside/driver.sh.path}}");
            link(talk, "policies/relative.sh", "../outside/driver.sh");
            link(talk, "policies/twice.sh", "out.sh");
            link(talk, "policies/folder", "{{folder}}/outside");
            link(talk, "policies/within.sh", "deep/er/driver.sh");
            link(talk, "outside/in.sh", "{{policies/driver.sh.path}}");
            for name in
                ["policies/out.sh", "policies/relative.sh", "policies/twice.sh", "policies/folder/driver.sh"]
            {
                refuses(talk, RESOLVED, &[], &format!("sh {{{{folder}}}}/{name}"));
            }
            for name in ["policies/within.sh", "outside/in.sh", "policies/folder/in.sh"] {
                accepts(talk, RESOLVED, &[], &format!("sh {{{{folder}}}}/{name}"));
            }
        },
    )
}

fn dots_behind_links() -> Check {
    check(
        "script-root/two-dots-behind-a-link",
        "`..` after a link means the folder above the link's target: that folder decides, not the text of \
         the path.",
        &[RESOLVED],
        |talk, _| {
            drivers(talk);
            let what = PathKind::Directory;
            talk.fixture(Fixture::Path { name: "outside/sub".to_owned(), what });
            link(talk, "policies/side", "{{outside/sub.path}}");
            link(talk, "policies/back", "{{folder}}/policies/deep");
            link(talk, "in", "{{folder}}/policies/deep");
            refuses(talk, RESOLVED, &[], "sh {{folder}}/policies/side/../driver.sh");
            for path in ["policies/back/../driver.sh", "in/../driver.sh"] {
                accepts(talk, RESOLVED, &[], &format!("sh {{{{folder}}}}/{path}"));
            }
        },
    )
}

fn neighbours() -> Check {
    check(
        "script-root/folder-whose-name-begins-alike",
        "A folder whose name begins with the name of the root is outside, however the root is spelled.",
        &[RESOLVED],
        |talk, _| {
            drivers(talk);
            program(talk, "policies-old/driver.sh");
            program(talk, "policiesx.sh");
            for script in ["{{policies-old/driver.sh.path}}", "{{policiesx.sh.path}}"] {
                opens(talk, RESOLVED, &[EVERYWHERE], &format!("sh {script}"));
            }
            for root in ["{{folder}}/policies", "{{folder}}/policies/"] {
                let variables = [(SCRIPT_ROOT, root)];
                refuses(talk, RESOLVED, &variables, "sh {{policies-old/driver.sh.path}}");
                refuses(talk, RESOLVED, &variables, "sh {{policiesx.sh.path}}");
                refuses(talk, RESOLVED, &variables, "sh {{folder}}/policies/../policies-old/driver.sh");
                accepts(talk, RESOLVED, &variables, &format!("sh {SCRIPT}"));
            }
        },
    )
}

fn near_misses_of_the_root() -> Check {
    check(
        "script-root/folder-whose-name-is-nearly-the-same",
        "A folder whose name differs from that of the root by case, length, a blank or a look-alike is \
         outside.",
        &[RESOLVED],
        |talk, _| {
            drivers(talk);
            accepts(talk, RESOLVED, &[], &format!("sh {SCRIPT}"));
            for folder in file_names(near_misses("policies")) {
                program(talk, &format!("{folder}/driver.sh"));
                let command = format!("sh '{{{{folder}}}}/{folder}/driver.sh'");
                opens(talk, RESOLVED, &[EVERYWHERE], &command);
                refuses(talk, RESOLVED, &[], &command);
            }
        },
    )
}

fn spelled_root() -> Check {
    check(
        "script-root/root-that-is-a-link",
        "A root that is a link, or spelled with `..`, means its target folder.",
        &[RESOLVED],
        |talk, _| {
            drivers(talk);
            link(talk, "outside/root", "{{folder}}/policies");
            for root in ["{{folder}}/outside/root", "{{folder}}/outside/../policies"] {
                let variables = [(SCRIPT_ROOT, root)];
                accepts(talk, RESOLVED, &variables, &format!("sh {SCRIPT}"));
                accepts(talk, RESOLVED, &variables, "sh {{folder}}/outside/root/driver.sh");
                refuses(talk, RESOLVED, &variables, "sh {{outside/driver.sh.path}}");
                refuses(talk, RESOLVED, &variables, "sh {{folder}}/outside/root/../outside/driver.sh");
            }
        },
    )
}

/// Paths that leave the root if they are decoded, and are plain names otherwise.
fn encoded_separators() -> Check {
    check(
        "script-root/separators-that-are-encoded",
        "Percent signs and backslashes in the path of a script are ordinary characters and are not decoded.",
        &[RESOLVED],
        |talk, _| {
            drivers(talk);
            accepts(talk, RESOLVED, &[], &format!("sh {SCRIPT}"));
            for path in [
                "..%2foutside%2fdriver.sh",
                "%2e%2e%2foutside%2fdriver.sh",
                "..%2Foutside/driver.sh",
                "..\\outside\\driver.sh",
                "deep\\..\\..\\outside\\driver.sh",
            ] {
                selector(talk, &[], &format!("sh '{{{{folder}}}}/policies/{path}'"));
                let expect = Expect::fallback(RESOLVED).or(Allowed::Invalid).starts(RESOLVED, 0);
                talk.ask(&Request::plain(), expect);
            }
        },
    )
}

fn default_root() -> Check {
    check(
        "script-root/default",
        "Without MACHINA_POLICY_ALLOWED_SCRIPT_ROOT the root is the folder `policies` of MACHINA_ROOT.",
        &[DEFAULT_ROOT, REPO_ROOT],
        |talk, _| {
            drivers(talk);
            program(talk, "other/policies/driver.sh");
            let here = [(SCRIPT_ROOT, ""), (ROOT, "{{folder}}")];
            let there = [(SCRIPT_ROOT, ""), (ROOT, "{{folder}}/other")];
            accepts(talk, DEFAULT_ROOT, &here, &format!("sh {SCRIPT}"));
            refuses(talk, DEFAULT_ROOT, &here, "sh {{outside/driver.sh.path}}");
            refuses(talk, REPO_ROOT, &here, "sh {{other/policies/driver.sh.path}}");
            program(talk, "policies-old/driver.sh");
            refuses(talk, DEFAULT_ROOT, &here, "sh {{policies-old/driver.sh.path}}");
            accepts(talk, REPO_ROOT, &there, "sh {{other/policies/driver.sh.path}}");
            refuses(talk, REPO_ROOT, &there, &format!("sh {SCRIPT}"));
            // The variable of the script root takes precedence.
            let outside = [(SCRIPT_ROOT, "{{folder}}/outside"), (ROOT, "{{folder}}")];
            accepts(talk, DEFAULT_ROOT, &outside, "sh {{outside/driver.sh.path}}");
            refuses(talk, DEFAULT_ROOT, &outside, &format!("sh {SCRIPT}"));
        },
    )
}

fn no_root() -> Check {
    check(
        "script-root/no-variable-at-all",
        "Without any variable the root is below the working directory, and a folder elsewhere is outside.",
        &[DEFAULT_ROOT, REPO_ROOT],
        |talk, _| {
            drivers(talk);
            refuses(talk, DEFAULT_ROOT, &[(SCRIPT_ROOT, "")], &format!("sh {SCRIPT}"));
            refuses(talk, REPO_ROOT, &[(SCRIPT_ROOT, "")], "sh {{outside/driver.sh.path}}");
            accepts(talk, DEFAULT_ROOT, &[(SCRIPT_ROOT, ""), (ROOT, "{{folder}}")], &format!("sh {SCRIPT}"));
        },
    )
}

fn working_directory() -> Check {
    check(
        "script-root/working-directory",
        "Without any variable only scripts in the folder `policies` of the working directory run; with a \
         configured root, scripts there are refused.",
        &[DEFAULT_ROOT, REPO_ROOT, EXAMPLES],
        |talk, _| {
            drivers(talk);
            program(talk, "other/policies/driver.sh");
            program(talk, "examples/policy_drivers/hello.sh");
            // Shows that the selector works at all.
            selector(talk, &[], "sh policies/driver.sh");
            talk.works_in("{{folder}}", &[ROOT]);
            talk.ask(&Request::plain(), Expect::new(REPO_ROOT, Allowed::Anything));
            let mut here = |root: &str, script: &str, is_taken: bool, clause: &str| {
                selector(talk, &[(SCRIPT_ROOT, root)], &format!("sh {{{{folder}}}}/{script}"));
                talk.works_in("{{folder}}", &[ROOT]);
                if is_taken {
                    let expect = Expect::taken(clause, PICKED).starts(clause, 1);
                    talk.ask(&Request::plain(), expect).counts_as_canary();
                } else {
                    talk.ask(&Request::plain(), Expect::refused(clause));
                }
            };
            here("", "policies/driver.sh", true, DEFAULT_ROOT);
            here("", "policies/driver.sh", true, REPO_ROOT);
            here("", "outside/driver.sh", false, DEFAULT_ROOT);
            here("", "other/policies/driver.sh", false, REPO_ROOT);
            here(EXAMPLES_FOLDER, "examples/policy_drivers/hello.sh", true, EXAMPLES);
            here(EXAMPLES_FOLDER, "policies/driver.sh", false, EXAMPLES);
        },
    )
}

fn examples() -> Check {
    check(
        "script-root/included-examples",
        "With the root at examples/policy_drivers a script there runs, and one in policies does not.",
        &[EXAMPLES],
        |talk, _| {
            drivers(talk);
            program(talk, "examples/policy_drivers/hello.sh");
            let at_examples = [(SCRIPT_ROOT, EXAMPLES_FOLDER), (ROOT, "{{folder}}")];
            accepts(talk, EXAMPLES, &at_examples, &format!("sh {EXAMPLES_FOLDER}/hello.sh"));
            refuses(talk, EXAMPLES, &at_examples, &format!("sh {SCRIPT}"));
            let usual = [(SCRIPT_ROOT, ""), (ROOT, "{{folder}}")];
            refuses(talk, EXAMPLES, &usual, &format!("sh {EXAMPLES_FOLDER}/hello.sh"));
        },
    )
}

fn example() -> Check {
    check(
        "script-root/example-under-python3",
        "The example under python3, with the root at its folder, gets that script and then the payload.",
        &[EXAMPLE],
        |talk, _| {
            // A program of that name that reports its arguments. It lies under the script root, because it begins
            // with `#!`.
            program(talk, "examples/policy_drivers/bin/python3");
            program(talk, "examples/policy_drivers/hello_policy.py");
            let path = format!("{EXAMPLES_FOLDER}/bin:{{{{PATH}}}}");
            let variables = [(SCRIPT_ROOT, EXAMPLES_FOLDER), ("PATH", path.as_str())];
            let script = format!("{EXAMPLES_FOLDER}/hello_policy.py");
            let words = Provided::Words { clause: EXAMPLE.into(), words: vec![script.clone()] };
            let expect = Expect::taken(EXAMPLE, PICKED).starts(EXAMPLE, 1).provided(words);
            accepts_as(talk, &variables, &format!("python3 {script}"), expect);
        },
    )
}
