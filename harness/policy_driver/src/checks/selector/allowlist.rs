//! Checks of the allowlist of programs (`policy` §1 "Allowlist controls").

use super::super::super::request::Request;
use super::super::super::selector::expect::{Allowed, Expect};
use super::super::super::selector::talk::{
    ALLOWED_EXE, COMMAND, COOLDOWN, SCRIPT_ROOT, THRESHOLD, TIMEOUT, Talk, says,
};
use super::check;
use super::starts::{
    PICKED, SCRIPT, Variables, accepts, accepts_as, actor, file_names, is_shell_of_any_name, link,
    name_of_the_shell, opens, program, refuses, relinks, script_for, selector, shell, variable_names,
};
use peerproof_engine::data::check::{Check, Untestable};
use peerproof_engine::data::near_miss::near_misses;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

const LISTED: &str = "PD-ALLOW-01";
const DEFAULT_LIST: &str = "PD-ALLOW-02";
const REFUSAL: &str = "PD-ALLOW-03";
const EXACT: &str = "PD-ALLOW-04";
const THROUGH_PATH: &str = "PD-ALLOW-05";
const LINKS: &str = "PD-ALLOW-06";
const ELSEWHERE: &str = "PD-ALLOW-07";
const SWITCH: &str = "PD-ALLOW-13";

/// Variable: switches off the allowlist and the script root.
const UNSAFE: &str = "MACHINA_POLICY_ALLOW_UNSAFE";
/// Variable: limit of processes for a driver. Drivers that start programs need more than the default.
const PROCESSES: &str = "MACHINA_POLICY_RLIMIT_NPROC";
/// A cooldown longer than any conversation, ms.
const LONG_MS: &str = "600000";
/// PATH that begins with a folder under the script root.
const PROGRAMS_FIRST: (&str, &str) = ("PATH", "{{folder}}/policies/bin:{{PATH}}");

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        listed(),
        default_list(),
        exact_names(),
        look_alikes(),
        through_path(),
        link_to_another(),
        link_to_a_version(),
        same_name_elsewhere(),
        switched_off(),
        other_rules_stay(),
        other_values(),
        not_counted_when_closed(),
        refused_when_open(),
    ]
}

fn listed() -> Check {
    check(
        "allowlist/program-beside-the-list",
        "A program runs if its base name is listed; with another list the same command is refused.",
        &[LISTED],
        |talk, _| {
            program(talk, "policies/bin/tool");
            talk.driver(says(PICKED));
            let command = format!("tool {SCRIPT}");
            let with = |list| [PROGRAMS_FIRST, (ALLOWED_EXE, list)];
            accepts(talk, LISTED, &with("sh,tool"), &command);
            refuses(talk, LISTED, &with("sh"), &command);
            refuses(talk, LISTED, &with("sh"), &format!("{{{{policies/bin/tool.path}}}} {SCRIPT}"));
            refuses(talk, LISTED, &with("tool"), &format!("sh {SCRIPT}"));
            refuses(talk, LISTED, &with("node,tools,sh"), &command);
            accepts(talk, LISTED, &with("tool"), &command);
        },
    )
}

fn default_list() -> Check {
    check(
        "allowlist/no-list",
        "Without a list python3, python, bash, sh and node run, and other interpreters do not.",
        &[DEFAULT_LIST],
        |talk, _| {
            talk.driver(says(PICKED));
            accepts(talk, DEFAULT_LIST, &[], &format!("sh {SCRIPT}"));
            for name in ["python3", "python", "bash", "node"] {
                program(talk, &format!("policies/bin/{name}"));
                let script = script_for(talk, name);
                accepts(talk, DEFAULT_LIST, &[PROGRAMS_FIRST], &format!("{name} {script}"));
            }
            for name in ["perl", "ruby", "zsh", "deno", "tool"] {
                program(talk, &format!("policies/bin/{name}"));
                let command = format!("{name} {SCRIPT}");
                opens(talk, DEFAULT_LIST, &[PROGRAMS_FIRST, (ALLOWED_EXE, name)], &command);
                refuses(talk, DEFAULT_LIST, &[PROGRAMS_FIRST], &command);
            }
        },
    )
}

fn exact_names() -> Check {
    check(
        "allowlist/name-that-differs-by-little",
        "Upper case, a part of a listed name, a longer name, a name with a blank or a look-alike are not \
         listed, even if such programs exist.",
        &[EXACT],
        |talk, _| {
            program(talk, "policies/bin/tool");
            talk.driver(says(PICKED));
            let variables = [PROGRAMS_FIRST, (ALLOWED_EXE, "sh,tool,node")];
            accepts(talk, EXACT, &variables, &format!("tool {SCRIPT}"));
            let others = [
                "toolx",
                "xtool",
                "tool-",
                "t00l",
                "toom",
                "uool",
                "nod",
                "tool.evil",
                "tool.sh",
                "evil.tool",
                "node.evil",
            ];
            let others = others.map(str::to_owned);
            for name in file_names(near_misses("tool")).chain(others) {
                program(talk, &format!("policies/bin/{name}"));
                let command = format!("'{name}' {SCRIPT}");
                // A selector may trim the blanks around names in the list.
                opens(talk, EXACT, &[PROGRAMS_FIRST, (UNSAFE, "1")], &command);
                refuses(talk, EXACT, &variables, &command);
            }
        },
    )
}

fn look_alikes() -> Check {
    check(
        "allowlist/name-that-looks-alike",
        "Letters of another alphabet or width, and blanks in a quoted name, make a different name, which \
         is not listed.",
        &[EXACT],
        |talk, _| {
            talk.driver(says(PICKED));
            accepts(talk, EXACT, &[], &format!("'sh' {SCRIPT}"));
            for name in ["\u{FF53}\u{FF48}", "\u{455}h", "s\u{200D}h", "'sh '", "' sh'"] {
                refuses(talk, EXACT, &[], &format!("{name} {SCRIPT}"));
            }
        },
    )
}

fn through_path() -> Check {
    check(
        "allowlist/program-in-two-folders",
        "The program in the first folder of PATH runs; a program in no folder of PATH cannot be started.",
        &[THROUGH_PATH],
        |talk, _| {
            const FIRST: &str = "{{folder}}/policies/first";
            const SECOND: &str = "{{folder}}/policies/second";
            actor(talk, "policies/first/peerproof-tool", says("<PICK><SID0042><END>"));
            actor(talk, "policies/second/peerproof-tool", says("<PICK><SID0007><END>"));
            let command = format!("peerproof-tool {SCRIPT}");
            let takes = |talk: &mut Talk, path: &str, block: &str| {
                let variables = [("PATH", path), (ALLOWED_EXE, "peerproof-tool")];
                accepts_as(
                    talk,
                    &variables,
                    &command,
                    Expect::taken(THROUGH_PATH, block).starts(THROUGH_PATH, 1),
                );
            };
            takes(talk, &format!("{FIRST}:{SECOND}:{{{{PATH}}}}"), "<PICK><SID0042><END>");
            takes(talk, &format!("{SECOND}:{FIRST}:{{{{PATH}}}}"), "<PICK><SID0007><END>");
            takes(talk, &format!("{{{{folder}}}}/policies:{{{{PATH}}}}:{SECOND}"), "<PICK><SID0007><END>");
            selector(talk, &[(ALLOWED_EXE, "peerproof-tool")], &command);
            talk.ask(&Request::plain(), Expect::fallback(THROUGH_PATH).starts(THROUGH_PATH, 0));
        },
    )
}

fn link_to_another() -> Check {
    check(
        "allowlist/link-to-another-program",
        "A listed name that is a link to a shell that is not listed is refused; the system's own sh runs.",
        &[LINKS],
        |talk, _| {
            talk.driver(says(PICKED));
            for name in ["python3", "node", "peerproof-tool"] {
                link(talk, &format!("bin/{name}"), "/bin/sh");
                let list = format!("{name},python");
                let path = ("PATH", "{{folder}}/bin:{{PATH}}");
                let both = format!("{name},{}", name_of_the_shell());
                let command = format!("{name} {SCRIPT}");
                opens(talk, LINKS, &[path, (ALLOWED_EXE, both.as_str())], &command);
                refuses(talk, LINKS, &[path, (ALLOWED_EXE, list.as_str())], &command);
            }
            // The rest of these names is not a version suffix.
            let longer =
                [("peerproof-tool", "peerproof-toolbox"), ("peerproof-tool3", "peerproof-tool3.evil")];
            for (name, other) in longer.into_iter().filter(|_| is_shell_of_any_name()) {
                shell(talk, &format!("policies/bin/{other}"));
                link(talk, &format!("policies/bin/{name}"), other);
                let command = format!("{name} {SCRIPT}");
                let both = format!("{name},{other}");
                opens(talk, LINKS, &[PROGRAMS_FIRST, (ALLOWED_EXE, both.as_str())], &command);
                refuses(talk, LINKS, &[PROGRAMS_FIRST, (ALLOWED_EXE, name)], &command);
            }
            accepts(talk, LINKS, &[(ALLOWED_EXE, "sh")], &format!("sh {SCRIPT}"));
        },
    )
}

fn link_to_a_version() -> Check {
    check(
        "allowlist/link-to-a-version",
        "A listed name that is a link to the same program with a version suffix runs.",
        &[LINKS],
        |talk, _| {
            program(talk, "policies/bin/tool3");
            link(talk, "policies/bin/tool", "tool3");
            if is_shell_of_any_name() {
                shell(talk, "policies/bin/python311");
            } else {
                program(talk, "policies/bin/python311");
            }
            link(talk, "policies/bin/python3", "python311");
            talk.driver(says(PICKED));
            for name in ["tool", "python3"] {
                accepts(talk, LINKS, &[PROGRAMS_FIRST, (ALLOWED_EXE, name)], &format!("{name} {SCRIPT}"));
            }
        },
    )
}

fn same_name_elsewhere() -> Check {
    check(
        "allowlist/same-name-elsewhere",
        "A different file with a listed name, given by its path, is started or refused.",
        &[ELSEWHERE],
        |talk, _| {
            shell(talk, "elsewhere/sh");
            talk.driver(says(PICKED));
            accepts(talk, ELSEWHERE, &[], &format!("sh {SCRIPT}"));
            selector(talk, &[], &format!("{{{{elsewhere/sh.path}}}} {SCRIPT}"));
            let either = Expect::taken(ELSEWHERE, PICKED).or(Allowed::Invalid);
            talk.ask(&Request::plain(), either.choice("same_name_elsewhere", &["accept", "refuse"]));
        },
    )
}

fn switched_off() -> Check {
    check(
        "allowlist/switched-off",
        "With MACHINA_POLICY_ALLOW_UNSAFE=1 any program and any script run.",
        &[SWITCH],
        |talk, _| {
            program(talk, "outside/peerproof-tool");
            program(talk, "outside/tool.sh");
            actor(talk, "outside/liar.sh", says(format!("I pick {PICKED}")));
            talk.driver(says(PICKED));
            let variables = [("PATH", "{{folder}}/outside:{{PATH}}"), (ALLOWED_EXE, "node"), (UNSAFE, "1")];
            accepts(talk, SWITCH, &variables, "peerproof-tool");
            accepts(talk, SWITCH, &variables, "sh {{outside/tool.sh.path}}");
            accepts(talk, SWITCH, &variables, "sh -u {{outside/tool.sh.path}}");
            accepts(talk, SWITCH, &variables, &format!("sh {SCRIPT}"));
        },
    )
}

fn other_rules_stay() -> Check {
    check(
        "allowlist/switched-off-other-rules",
        "With MACHINA_POLICY_ALLOW_UNSAFE=1 the rules for grammar, timeout, output length and exit status \
         still apply.",
        &[SWITCH],
        |talk, _| {
            let picks_after = |step| [vec![step], says(PICKED)].concat();
            let flood = Payload(Vec::new()).repeat(" ", 70_000);
            for (name, script) in [
                ("outside/liar.sh", says(format!("I pick {PICKED}"))),
                ("outside/failing.sh", [says(PICKED), vec![ActorStep::Exit(1)]].concat()),
                ("outside/long.sh", picks_after(ActorStep::Stdout(flood))),
                ("outside/late.sh", picks_after(ActorStep::Sleep { ms: 20_000 })),
            ] {
                actor(talk, name, script);
                let time = if name == "outside/late.sh" { "1000" } else { "20000" };
                let variables = [(ALLOWED_EXE, "node"), (UNSAFE, "1"), (TIMEOUT, time)];
                selector(talk, &variables, &format!("sh {{{{{name}.path}}}}"));
                talk.ask(&Request::plain(), Expect::fallback(SWITCH)).allow_ms(2_000);
            }
            talk.driver(says(PICKED));
            accepts(talk, SWITCH, &[(ALLOWED_EXE, "node"), (UNSAFE, "1")], &format!("sh {SCRIPT}"));
        },
    )
    .waits()
}

fn other_values() -> Check {
    check(
        "allowlist/not-switched-off",
        "With 0, false or off in MACHINA_POLICY_ALLOW_UNSAFE the allowlist and the script root still apply.",
        &[SWITCH],
        |talk, _| {
            program(talk, "outside/driver.sh");
            talk.driver(says(PICKED));
            let (inside, outside) = (format!("sh {SCRIPT}"), "sh {{outside/driver.sh.path}}");
            opens(talk, SWITCH, &[(ALLOWED_EXE, "node"), (UNSAFE, "1")], &inside);
            opens(talk, SWITCH, &[(UNSAFE, "1")], outside);
            for value in ["0", "false", "off"] {
                refuses(talk, SWITCH, &[(ALLOWED_EXE, "node"), (UNSAFE, value)], &inside);
                refuses(talk, SWITCH, &[(UNSAFE, value)], outside);
            }
            // Variables with similar names have no effect.
            let names: Vec<String> = variable_names(UNSAFE).collect();
            let mut near: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1")).collect();
            refuses(talk, SWITCH, &near, outside);
            near.push((ALLOWED_EXE, "node"));
            refuses(talk, SWITCH, &near, &inside);
            accepts(talk, SWITCH, &[(UNSAFE, "0")], &inside);
        },
    )
}

/// Starts the first selector, whose script is a link that a driver can change.
fn linked(talk: &mut Talk, from: &str, to: &str, variables: Variables<'_>) {
    link(talk, "policies/link.sh", &format!("{{{{{from}.path}}}}"));
    relinks(talk, "policies/relink.sh", "policies/link.sh", to);
    selector(talk, variables, "sh {{folder}}/policies/link.sh");
}

/// Lets another selector change the link, and returns to the first one.
fn relink(talk: &mut Talk) {
    talk.beside();
    talk.env(COMMAND, "sh {{policies/relink.sh.path}}").env(PROCESSES, "4096");
    talk.ask(&Request::plain(), Expect::taken(REFUSAL, PICKED)).counts_as_canary();
    talk.back_to(0);
}

fn not_counted_when_closed() -> Check {
    check(
        "allowlist/refused-more-often-than-the-threshold",
        "Refusals do not open the breaker, even if there are more than its threshold: an allowed script \
         runs next.",
        &[REFUSAL],
        |talk, _| {
            program(talk, "outside/driver.sh");
            let variables = [(THRESHOLD, "2"), (COOLDOWN, LONG_MS), (SCRIPT_ROOT, "{{folder}}/policies")];
            talk.driver(says(PICKED));
            linked(talk, "outside/driver.sh", "policies/driver.sh", &variables);
            for _ in 0..4 {
                talk.ask(&Request::plain(), Expect::refused(REFUSAL));
            }
            relink(talk);
            // A selector may check the command only once.
            let why = "after one refusal the selector refuses everything, so nothing shows how it counts";
            let why = Untestable::new("looked_once", why);
            let expect = Expect::taken(REFUSAL, PICKED).or_undecided(Allowed::Invalid, why).reason("counted");
            talk.ask(&Request::plain(), expect);
        },
    )
}

fn refused_when_open() -> Check {
    check(
        "allowlist/refused-while-the-breaker-is-open",
        "A script that is outside the root by then is also refused while the breaker is open.",
        &[REFUSAL],
        |talk, _| {
            program(talk, "outside/driver.sh");
            actor(talk, "policies/failing.sh", vec![ActorStep::Exit(3)]);
            let variables = [(THRESHOLD, "1"), (COOLDOWN, LONG_MS)];
            linked(talk, "policies/failing.sh", "outside/driver.sh", &variables);
            talk.ask(&Request::plain(), Expect::fallback(REFUSAL).starts(REFUSAL, 1));
            talk.ask(&Request::plain(), Expect::fallback(REFUSAL).starts(REFUSAL, 0));
            relink(talk);
            talk.ask(&Request::plain(), Expect::refused(REFUSAL));
        },
    )
}
