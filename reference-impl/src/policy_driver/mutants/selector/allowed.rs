//! Mutants that start forbidden commands, or refuse allowed ones.

use super::super::super::guard::{Denied, Guard};
use super::super::tree::put;
use super::admit::{
    CanonicalFiles, Named, absolute, anywhere, base_name, is_own_script, lexical, plain, program, refused,
    script, unsafe_if, with_names, without_options,
};
use super::selections::{changed, raw_has, retold};
use super::{Mutant, Rewiring, wire};
use crate::mutant::config;

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    wire(
        "select-any-program",
        &["PD-ALLOW-01"],
        "Every program may be started.",
        Rewiring::Admission(|guard, words, files| with_names(guard, words, files, |_, _| true)),
    ),
    wire(
        "select-ignores-allowlist",
        &["PD-ALLOW-01"],
        "MACHINA_POLICY_ALLOWED_EXE means nothing.",
        Rewiring::Variables(|variables| variables.retain(|(name, _)| name != "MACHINA_POLICY_ALLOWED_EXE")),
    ),
    config(
        "select-first-of-allowlist",
        &["PD-ALLOW-01"],
        "Of the listed names the first counts.",
        |config| config.settings.allowed_programs.truncate(1),
    ),
    wire(
        "select-adds-to-allowlist",
        &["PD-ALLOW-01"],
        "The listed names are added to those of the default.",
        Rewiring::Variables(|variables| {
            for (_, list) in variables.iter_mut().filter(|(name, _)| name == "MACHINA_POLICY_ALLOWED_EXE") {
                list.push_str(",python3,python,bash,sh,node");
            }
        }),
    ),
    wire(
        "select-default-with-perl",
        &["PD-ALLOW-02"],
        "Without the variable perl and awk are listed too.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_ALLOWED_EXE";
            if !variables.iter().any(|(known, _)| known == name) {
                variables.push((name.to_owned(), "python3,python,bash,sh,node,perl,awk".to_owned()));
            }
        }),
    ),
    wire(
        "select-default-without-node",
        &["PD-ALLOW-02"],
        "Without the variable node is not listed.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_ALLOWED_EXE";
            if !variables.iter().any(|(known, _)| known == name) {
                variables.push((name.to_owned(), "python3,python,bash,sh".to_owned()));
            }
        }),
    ),
    wire(
        "select-default-without-python",
        &["PD-ALLOW-02"],
        "Without the variable python is not listed.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_ALLOWED_EXE";
            if !variables.iter().any(|(known, _)| known == name) {
                variables.push((name.to_owned(), "python3,bash,sh,node".to_owned()));
            }
        }),
    ),
    wire(
        "select-default-without-bash",
        &["PD-ALLOW-02"],
        "Without the variable bash is not listed.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_ALLOWED_EXE";
            if !variables.iter().any(|(known, _)| known == name) {
                variables.push((name.to_owned(), "python3,python,sh,node".to_owned()));
            }
        }),
    ),
    wire(
        "select-disallowed-is-noop",
        &["PD-ALLOW-03"],
        "A command that is not allowed is answered by NOOP.",
        Rewiring::Selection(|line| {
            if raw_has(line, "the policy is not started") { retold(line, "NOOP") } else { line.to_vec() }
        }),
    ),
    wire(
        "select-disallowed-without-reason",
        &["PD-ALLOW-03"],
        "`raw` of an INVALID Selection for a command that is not allowed is empty.",
        Rewiring::Selection(|line| {
            if raw_has(line, "the policy is not started") {
                changed(line, |members| put(members, "raw", "".into()))
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-disallowed-is-a-failure",
        &["PD-ALLOW-03"],
        "A command that is not allowed is taken for a launch that failed.",
        Rewiring::Admission(|guard, words, files| {
            guard.admit(words, files).map_err(|denied| match denied {
                Denied::Refused(why) | Denied::NotStartable(why) => Denied::NotStartable(why),
            })
        }),
    ),
    wire(
        "select-names-in-any-case",
        &["PD-ALLOW-04"],
        "Listed names may be in any case.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| name.eq_ignore_ascii_case(listed))
        }),
    ),
    wire(
        "select-names-by-prefix",
        &["PD-ALLOW-04"],
        "A name that begins with a listed one is listed.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| name.starts_with(listed))
        }),
    ),
    wire(
        "select-names-by-suffix",
        &["PD-ALLOW-04"],
        "A name that ends with a listed one is listed.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| name.ends_with(listed))
        }),
    ),
    wire(
        "select-names-up-to-a-dot",
        &["PD-ALLOW-04"],
        "What stands behind a dot in the name of a program does not count.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| {
                name.split_once('.').is_some_and(|(stem, _)| stem == listed)
            })
        }),
    ),
    wire(
        "select-names-but-for-the-last-letter",
        &["PD-ALLOW-04"],
        "The last letter of a name is not compared.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| {
                let head = |name: &str| name.char_indices().next_back().map(|(at, _)| name[..at].to_owned());
                name.len() == listed.len() && head(name) == head(listed)
            })
        }),
    ),
    wire(
        "select-names-by-part",
        &["PD-ALLOW-04"],
        "A name that is part of a listed one is listed.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| !name.is_empty() && listed.starts_with(name))
        }),
    ),
    wire(
        "select-names-that-look-alike",
        &["PD-ALLOW-04"],
        "Letters that look alike are the same.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| plain(name) == listed)
        }),
    ),
    wire(
        "select-names-without-blanks",
        &["PD-ALLOW-04"],
        "Blanks around a name do not count.",
        Rewiring::Admission(|guard, words, files| {
            with_names(guard, words, files, |name, listed| name.trim() == listed)
        }),
    ),
    config(
        "select-path-of-its-own",
        &["PD-ALLOW-05"],
        "Programs are looked for in `/usr/bin` and `/bin` alone.",
        |config| config.settings.path = vec!["/usr/bin".to_owned(), "/bin".to_owned()],
    ),
    config(
        "select-path-from-its-end",
        &["PD-ALLOW-05"],
        "Programs are looked for in PATH from its end.",
        |config| config.settings.path.reverse(),
    ),
    wire(
        "select-follows-any-link",
        &["PD-ALLOW-06"],
        "A listed name may be a link to any program.",
        Rewiring::Admission(|guard, words, files| {
            let mut guard = guard.clone();
            let word = words.first().map_or("", String::as_str);
            let is_listed = guard.allowed_programs.iter().any(|name| name == base_name(word));
            let real = files.canonical(&program(&guard, word, files)).unwrap_or_default();
            if is_listed {
                guard.allowed_programs.push(base_name(&real).to_owned());
            }
            guard.admit(words, files)
        }),
    ),
    wire(
        "select-follows-links-to-names-with-a-suffix",
        &["PD-ALLOW-06"],
        "A listed name may be a link to a program of that name with anything behind a dot.",
        Rewiring::Admission(|guard, words, files| {
            let mut guard = guard.clone();
            let word = words.first().map_or("", String::as_str);
            let real = files.canonical(&program(&guard, word, files)).unwrap_or_default();
            if base_name(&real).strip_prefix(base_name(word)).is_some_and(|rest| rest.starts_with('.')) {
                let is_listed = guard.allowed_programs.iter().any(|name| name == base_name(word));
                guard.allowed_programs.extend(is_listed.then(|| base_name(&real).to_owned()));
            }
            guard.admit(words, files)
        }),
    ),
    wire(
        "select-follows-no-link",
        &["PD-ALLOW-06"],
        "A listed name that is a link to another name is refused.",
        Rewiring::Admission(|guard, words, files| {
            let word = words.first().map_or("", String::as_str);
            let program = program(guard, word, files);
            match files.canonical(&program) {
                Some(real) if base_name(&real) != base_name(word) => refused("a link"),
                _ => guard.admit(words, files),
            }
        }),
    ),
    wire("select-any-script", &["PD-ALLOW-08"], "A script may lie anywhere.", Rewiring::Admission(anywhere)),
    wire(
        "select-relative-scripts",
        &["PD-ALLOW-08"],
        "A script with a relative path is not looked at.",
        Rewiring::Admission(|guard, words, files| {
            if script(words).starts_with('/') {
                guard.admit(words, files)
            } else {
                anywhere(guard, words, files)
            }
        }),
    ),
    wire(
        "select-scripts-by-suffix",
        &["PD-ALLOW-08"],
        "A script with a known suffix may lie anywhere.",
        Rewiring::Admission(|guard, words, files| {
            let is_known = [".sh", ".py", ".js"].iter().any(|suffix| script(words).ends_with(suffix));
            if is_known { anywhere(guard, words, files) } else { guard.admit(words, files) }
        }),
    ),
    wire(
        "select-scripts-of-shells",
        &["PD-ALLOW-08"],
        "A script of a shell may lie anywhere.",
        Rewiring::Admission(|guard, words, files| {
            let is_shell = words.first().is_some_and(|word| base_name(word).ends_with("sh"));
            if is_shell { anywhere(guard, words, files) } else { guard.admit(words, files) }
        }),
    ),
    wire(
        "select-default-root-is-repository",
        &["PD-ALLOW-09"],
        "Without the variable every folder of the repository is the script root.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_ALLOWED_SCRIPT_ROOT";
            if !variables.iter().any(|(known, value)| known == name && !value.is_empty()) {
                let root = variables.iter().find(|(known, _)| known == "MACHINA_ROOT");
                let root = root.map_or(".".to_owned(), |(_, root)| root.clone());
                variables.push((name.to_owned(), root));
            }
        }),
    ),
    wire(
        "select-resolves-no-links",
        &["PD-ALLOW-10"],
        "Links are not resolved before a script is held against the root.",
        Rewiring::Admission(|guard, words, files| {
            guard.admit(words, &CanonicalFiles { files, spell: |path| lexical(&path) })
        }),
    ),
    wire(
        "select-resolves-nothing",
        &["PD-ALLOW-10"],
        "Neither links nor `..` are resolved before a script is held against the root.",
        Rewiring::Admission(|guard, words, files| {
            guard.admit(words, &CanonicalFiles { files, spell: |path| path })
        }),
    ),
    wire(
        "select-root-by-prefix",
        &["PD-ALLOW-10"],
        "A folder whose name begins like the root is taken for it.",
        Rewiring::Admission(|guard, words, files| {
            let real = files.canonical(script(words)).unwrap_or_default();
            let root = files.canonical(&guard.script_root).unwrap_or_default();
            let starts = !root.is_empty() && real.starts_with(&root);
            if starts { anywhere(guard, words, files) } else { guard.admit(words, files) }
        }),
    ),
    wire(
        "select-own-scripts-by-prefix",
        &["PD-ALLOW-12"],
        "A file that begins with `#!` may lie in a folder whose name begins like the root.",
        Rewiring::Admission(|guard, words, files| {
            let program = program(guard, words.first().map_or("", String::as_str), files);
            let real = files.canonical(&program).unwrap_or_default();
            let root = files.canonical(&guard.script_root).unwrap_or_default();
            if is_own_script(&program, files) && !root.is_empty() && real.starts_with(&root) {
                anywhere(guard, words, files)
            } else {
                guard.admit(words, files)
            }
        }),
    ),
    wire(
        "select-decodes-separators",
        &["PD-ALLOW-10"],
        "Percent signs and backslashes in the path of a script are decoded after it was held against the root.",
        Rewiring::Admission(|guard, words, files| {
            let mut admitted = guard.admit(words, files)?;
            if let Some(script) = admitted.argv.get_mut(1) {
                let decoded = script.replace("%2e", ".").replace("%2f", "/").replace('\\', "/");
                if files.canonical(script).is_none() && files.canonical(&decoded).is_some() {
                    *script = decoded;
                }
            }
            Ok(admitted)
        }),
    ),
    wire(
        "select-root-in-any-case",
        &["PD-ALLOW-10"],
        "A folder whose name differs from that of the root by case is taken for it.",
        Rewiring::Admission(|guard, words, files| {
            let real = files.canonical(script(words)).unwrap_or_default();
            let root = files.canonical(&guard.script_root).unwrap_or_default();
            let lies_below = !root.is_empty()
                && real.get(..=root.len()).is_some_and(|head| head.eq_ignore_ascii_case(&format!("{root}/")));
            if lies_below { anywhere(guard, words, files) } else { guard.admit(words, files) }
        }),
    ),
    wire(
        "select-refuses-dots",
        &["PD-ALLOW-10"],
        "A path with `..` is refused, wherever it leads.",
        Rewiring::Admission(|guard, words, files| {
            if script(words).split('/').any(|part| part == "..") {
                refused("dots")
            } else {
                guard.admit(words, files)
            }
        }),
    ),
    wire(
        "select-refuses-links",
        &["PD-ALLOW-10"],
        "A script that is reached by a link is refused, wherever it leads.",
        Rewiring::Admission(|guard, words, files| {
            let path = script(words);
            match files.canonical(path) {
                Some(real) if real != lexical(&absolute(path, files)) => refused("a link"),
                _ => guard.admit(words, files),
            }
        }),
    ),
    wire(
        "select-inline-code",
        &["PD-ALLOW-11"],
        "`-c` and `-e` are allowed.",
        Rewiring::Admission(|guard, words, files| {
            unsafe_if(guard, words, files, |first| matches!(first, Some("-c" | "-e")))
        }),
    ),
    wire(
        "select-interpreters-by-the-name-of-a-link",
        &["PD-ALLOW-08", "PD-ALLOW-11"],
        "A link to an interpreter under a name that is none is taken for a program like any other.",
        Rewiring::Admission(|guard, words, files| {
            let program = program(guard, words.first().map_or("", String::as_str), files);
            if is_own_script(&program, files) {
                guard.admit(words, files)
            } else {
                guard.admit(words, &Named { files, program })
            }
        }),
    ),
    wire(
        "select-options-anywhere",
        &["PD-ALLOW-11"],
        "Words behind the script that look like options of an interpreter are refused.",
        Rewiring::Admission(|guard, words, files| {
            let is_option = |word: &String| word.starts_with(['-', '+']);
            match words.get(2..).unwrap_or_default().iter().find(|word| is_option(word)) {
                Some(word) => Err(Denied::Refused(format!("{word:?} is an option"))),
                None => guard.admit(words, files),
            }
        }),
    ),
    wire(
        "select-modules",
        &["PD-ALLOW-11"],
        "`-m` is allowed.",
        Rewiring::Admission(|guard, words, files| {
            unsafe_if(guard, words, files, |first| first == Some("-m"))
        }),
    ),
    wire(
        "select-scripts-on-stdin",
        &["PD-ALLOW-11"],
        "`-` and `-s` are allowed.",
        Rewiring::Admission(|guard, words, files| {
            unsafe_if(guard, words, files, |first| matches!(first, Some("-" | "-s")))
        }),
    ),
    wire(
        "select-no-script",
        &["PD-ALLOW-11"],
        "An interpreter without a script is started.",
        Rewiring::Admission(|guard, words, files| unsafe_if(guard, words, files, |first| first.is_none())),
    ),
    wire(
        "select-unbuffered",
        &["PD-ALLOW-11"],
        "`-u` may come before the script.",
        Rewiring::Admission(|guard, words, files| without_options(guard, words, files, |word| word == "-u")),
    ),
    wire(
        "select-double-dash",
        &["PD-ALLOW-11"],
        "`--` may come before the script.",
        Rewiring::Admission(|guard, words, files| without_options(guard, words, files, |word| word == "--")),
    ),
    wire(
        "select-plus-options",
        &["PD-ALLOW-11"],
        "Options with a plus sign may come before the script.",
        Rewiring::Admission(|guard, words, files| {
            without_options(guard, words, files, |word| word.starts_with('+'))
        }),
    ),
    wire(
        "select-options-before-script",
        &["PD-ALLOW-11"],
        "Options of several letters may come before the script.",
        Rewiring::Admission(|guard, words, files| {
            without_options(guard, words, files, |word| word.starts_with('-') && word.len() > 2)
        }),
    ),
    wire(
        "select-own-scripts-anywhere",
        &["PD-ALLOW-12"],
        "A file that begins with `#!` may lie anywhere.",
        Rewiring::Admission(|guard, words, files| {
            let program = program(guard, words.first().map_or("", String::as_str), files);
            if is_own_script(&program, files) {
                anywhere(guard, words, files)
            } else {
                guard.admit(words, files)
            }
        }),
    ),
    wire(
        "select-own-scripts-by-any-name",
        &["PD-ALLOW-12"],
        "A file that begins with `#!` need not be listed.",
        Rewiring::Admission(|guard, words, files| {
            let program = program(guard, words.first().map_or("", String::as_str), files);
            let is_script = is_own_script(&program, files);
            with_names(guard, words, files, |_, _| is_script)
        }),
    ),
    wire(
        "select-no-own-scripts",
        &["PD-ALLOW-12"],
        "A file that begins with `#!` is refused.",
        Rewiring::Admission(|guard, words, files| {
            let program = program(guard, words.first().map_or("", String::as_str), files);
            if is_own_script(&program, files) { refused("a script") } else { guard.admit(words, files) }
        }),
    ),
    wire(
        "select-unsafe-by-a-like-variable",
        &["PD-ALLOW-13"],
        "A variable whose name begins with MACHINA_POLICY_ALLOW_UNSAFE, in any case, is that variable.",
        Rewiring::Variables(|variables| {
            let name = "MACHINA_POLICY_ALLOW_UNSAFE";
            let is_like = |known: &str| known.to_ascii_uppercase().starts_with(name) && known != name;
            if let Some((_, value)) = variables.iter().find(|(known, _)| is_like(known)).cloned() {
                variables.push((name.to_owned(), value));
            }
        }),
    ),
    wire(
        "select-ignores-unsafe",
        &["PD-ALLOW-13"],
        "MACHINA_POLICY_ALLOW_UNSAFE means nothing.",
        Rewiring::Variables(|variables| variables.retain(|(name, _)| name != "MACHINA_POLICY_ALLOW_UNSAFE")),
    ),
    wire(
        "select-unsafe-by-any-value",
        &["PD-ALLOW-13"],
        "MACHINA_POLICY_ALLOW_UNSAFE means the same with any value.",
        Rewiring::Variables(|variables| {
            for (_, value) in variables.iter_mut().filter(|(name, _)| name == "MACHINA_POLICY_ALLOW_UNSAFE") {
                "1".clone_into(value);
            }
        }),
    ),
    wire(
        "select-unsafe-for-programs-only",
        &["PD-ALLOW-13"],
        "MACHINA_POLICY_ALLOW_UNSAFE does not switch the script root off.",
        Rewiring::Admission(|guard, words, files| {
            let is_unsafe = guard.allows_unsafe;
            let guard = Guard { allows_unsafe: false, ..guard.clone() };
            with_names(&guard, words, files, |_, _| is_unsafe)
        }),
    ),
    config(
        "select-unsafe-has-time",
        &["PD-ALLOW-13"],
        "With MACHINA_POLICY_ALLOW_UNSAFE a driver has ten minutes.",
        |config| {
            if config.settings.allows_unsafe {
                config.settings.timeout_ms = 600_000;
            }
        },
    ),
    config(
        "select-unsafe-has-room",
        &["PD-ALLOW-13"],
        "With MACHINA_POLICY_ALLOW_UNSAFE a driver may write a megabyte.",
        |config| {
            if config.settings.allows_unsafe {
                config.settings.stdout_bytes_max = 1 << 20;
            }
        },
    ),
    wire(
        "select-default-root-stays",
        &["PD-ALLOW-14"],
        "Scripts in `policies` are allowed whatever the script root.",
        Rewiring::Admission(|guard, words, files| {
            let policies = Guard { script_root: "policies".to_owned(), ..guard.clone() };
            guard.admit(words, files).or_else(|denied| policies.admit(words, files).map_err(|_| denied))
        }),
    ),
    wire(
        "select-ignores-script-root",
        &["PD-ALLOW-14"],
        "The variable for the script root means nothing.",
        Rewiring::Variables(|variables| {
            variables.retain(|(name, _)| name != "MACHINA_POLICY_ALLOWED_SCRIPT_ROOT")
        }),
    ),
    wire(
        "select-every-program-is-an-interpreter",
        &["PD-ALLOW-15"],
        "A program that is no interpreter is refused without a script under the root.",
        Rewiring::Admission(|guard, words, files| {
            let program = program(guard, words.first().map_or("", String::as_str), files);
            let lies_below = files.canonical(script(words)).is_some_and(|real| {
                files.canonical(&guard.script_root).is_some_and(|root| real.starts_with(&root))
            });
            if guard.allows_unsafe || is_own_script(&program, files) || lies_below {
                guard.admit(words, files)
            } else {
                guard.admit(words, files).and(refused("no script"))
            }
        }),
    ),
];
