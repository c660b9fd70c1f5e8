//! Check of the commands that may be started (`policy` §1 "Allowlist controls"; contract §2 "Allowlist").
//!
//! [`Files`] gives access to the file system, so that the decision itself is pure.

use super::choices::SameNameElsewhere;

/// Kind of the file at a path, after following links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Missing or inaccessible.
    Missing,
    /// A folder.
    Folder,
    /// A file that is not executable.
    Plain,
    /// An executable file, with its first four bytes, padded with zeros; `None` if it is unreadable.
    Program(Option<[u8; 4]>),
}

/// Access to the file system. Relative paths start at the working directory.
pub trait Files: std::fmt::Debug + Send + Sync {
    /// Kind of the file at `path`.
    fn kind(&self, path: &str) -> FileKind;
    /// Absolute path without links and `..`; `None` if it does not exist.
    fn canonical(&self, path: &str) -> Option<String>;
}

/// A command that may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Path of the program.
    pub program: String,
    /// Its arguments, beginning with `argv[0]`.
    pub argv: Vec<String>,
}

/// Reason why a command is not started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// It is not allowed.
    Refused(String),
    /// It is allowed but cannot be started, which is a failure of the launch.
    NotStartable(String),
}

/// Allowlist of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Base names of allowed programs.
    pub allowed_programs: Vec<String>,
    /// Folder in which scripts must lie.
    pub script_root: String,
    /// True to refuse nothing.
    pub allows_unsafe: bool,
    /// Folders of the search path.
    pub path: Vec<String>,
    /// Treatment of a program with a listed name outside the search path.
    pub same_name_elsewhere: SameNameElsewhere,
}

/// Programs that run their first argument as a script. Their names may end with a version.
const INTERPRETERS: &[&str] = &[
    "python", "pypy", "bash", "sh", "dash", "ash", "ksh", "mksh", "yash", "zsh", "fish", "node", "nodejs",
    "bun", "perl", "ruby", "php", "lua", "luajit", "tclsh",
];

/// Programs that run any other program.
const LAUNCHERS: &[&str] = &[
    "env", "busybox", "toybox", "nice", "nohup", "timeout", "xargs", "setsid", "stdbuf", "sudo", "su",
    "doas", "unshare", "chroot", "strace", "deno",
];

/// Suffixes that node tries for a missing script.
const NODE_SUFFIXES: &[&str] = &[".js", ".json", ".node"];

/// Magic numbers of executables: ELF, and the forms of Mach-O.
const MARKS: &[[u8; 4]] = &[
    *b"\x7fELF",
    [0xFE, 0xED, 0xFA, 0xCE],
    [0xFE, 0xED, 0xFA, 0xCF],
    [0xCE, 0xFA, 0xED, 0xFE],
    [0xCF, 0xFA, 0xED, 0xFE],
    [0xCA, 0xFE, 0xBA, 0xBE],
];

impl Guard {
    /// Decides on a command that was split into at least one word.
    ///
    /// # Errors
    /// The reason why it is not started.
    pub fn admit(&self, words: &[String], files: &dyn Files) -> Result<Admitted, Denied> {
        let [word, arguments @ ..] = words else { return Err(refused("the command has no words")) };
        let name = base_name(word);
        if !self.allows_unsafe && !self.allowed_programs.iter().any(|allowed| allowed == name) {
            return Err(Denied::Refused(format!("the program {name:?} is not allowed")));
        }
        let found = if word.contains('/') { Some(word.clone()) } else { self.find(word, files) };
        let Some(program) = found else {
            return Err(Denied::NotStartable(format!("there is no program {word:?} in PATH")));
        };
        let head = match files.kind(&program) {
            FileKind::Program(head) => head,
            FileKind::Missing => {
                return Err(Denied::NotStartable(format!("there is no program {program:?}")));
            }
            FileKind::Folder => return Err(Denied::NotStartable(format!("{program:?} is a folder"))),
            FileKind::Plain => return Err(Denied::NotStartable(format!("{program:?} may not be run"))),
        };
        let is_script = head.is_some_and(|head| head.starts_with(b"#!"));
        let mut argv = words.to_vec();
        if !self.allows_unsafe {
            self.check_program(name, word, &program, is_script, files)?;
            if is_script {
                self.check_script(&program, files)?;
            } else if LAUNCHERS.contains(&name) {
                return Err(Denied::Refused(format!("{name:?} runs other programs")));
            } else if is_interpreter(name) || is_interpreter(base_name(&canonical(&program, files))) {
                let script = arguments.first().map_or("", String::as_str);
                if script.is_empty() || script.starts_with(['-', '+']) {
                    return Err(Denied::Refused(format!("{name} is not told a script first")));
                }
                self.check_script(script, files)?;
                // A shell searches PATH for a bare name that the working directory lacks.
                if let Some(argument) = argv.get_mut(1).filter(|script| !script.contains('/')) {
                    argument.insert_str(0, "./");
                }
            }
        }
        // The C library would run a file without a magic number as a shell script.
        if !is_script && head.is_some_and(|head| !MARKS.contains(&head)) {
            return Err(Denied::NotStartable(format!("{program:?} is no program")));
        }
        Ok(Admitted { program, argv })
    }

    fn find(&self, name: &str, files: &dyn Files) -> Option<String> {
        if name.is_empty() {
            return None;
        }
        let places = self.path.iter().map(|folder| format!("{folder}/{name}"));
        places.into_iter().find(|place| matches!(files.kind(place), FileKind::Program(_)))
    }

    /// Checks that a listed name is not a link to a program of another name.
    fn check_program(
        &self,
        name: &str,
        word: &str,
        program: &str,
        is_script: bool,
        files: &dyn Files,
    ) -> Result<(), Denied> {
        let real = canonical(program, files);
        let real_name = base_name(&real);
        let listed = self.allowed_programs.iter().any(|allowed| {
            let version = real_name.strip_prefix(allowed.as_str());
            version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        });
        let is_own_sh = name == "sh" && files.canonical("/bin/sh").is_some_and(|sh| sh == real);
        if !(listed || is_own_sh || is_script) {
            return Err(Denied::Refused(format!("{name:?} is a link to {real:?}, which is not allowed")));
        }
        if word.contains('/') && !is_script && self.same_name_elsewhere == SameNameElsewhere::Refuse {
            let in_path = self.find(name, files).map(|place| canonical(&place, files));
            if in_path.as_deref() != Some(&real) {
                return Err(Denied::Refused(format!("{word:?} is not the {name} of PATH")));
            }
        }
        Ok(())
    }

    /// Checks that a script lies below the root. A script that is missing there is admitted; the interpreter then
    /// fails.
    fn check_script(&self, script: &str, files: &dyn Files) -> Result<(), Denied> {
        let outside = || Denied::Refused(format!("the script {script:?} is not under the script root"));
        let root = files.canonical(&self.script_root).ok_or_else(outside)?;
        let lies_below = |path: &str| {
            path.strip_prefix(root.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
        };
        if let Some(real) = files.canonical(script) {
            return match files.kind(&real) {
                FileKind::Folder => Err(Denied::Refused(format!("{script:?} is a folder"))),
                _ if lies_below(&real) => Ok(()),
                _ => Err(outside()),
            };
        }
        // For a missing script, node tries the same name with a suffix.
        let leads_out = |suffix: &&str| {
            files.canonical(&format!("{script}{suffix}")).is_some_and(|real| !lies_below(&real))
        };
        if NODE_SUFFIXES.iter().any(leads_out) {
            return Err(outside());
        }
        let (folder, name) = script.rsplit_once('/').unwrap_or((".", script));
        let folder = if folder.is_empty() { "/" } else { folder };
        let real =
            files.canonical(folder).filter(|_| !matches!(name, "" | "." | "..")).ok_or_else(outside)?;
        if real == root || lies_below(&real) { Ok(()) } else { Err(outside()) }
    }
}

fn refused(why: &str) -> Denied {
    Denied::Refused(why.to_owned())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn canonical(path: &str, files: &dyn Files) -> String {
    files.canonical(path).unwrap_or_else(|| path.to_owned())
}

fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    INTERPRETERS.contains(&stem.trim_end_matches('-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const ELF: FileKind = FileKind::Program(Some(*b"\x7fELF"));
    const SCRIPT: FileKind = FileKind::Program(Some(*b"#!/b"));

    /// Paths, with the kind and the target of each.
    #[derive(Debug)]
    struct Disk(BTreeMap<&'static str, (FileKind, &'static str)>);

    impl Files for Disk {
        fn kind(&self, path: &str) -> FileKind {
            self.0.get(self.key(path).as_str()).map_or(FileKind::Missing, |(kind, _)| *kind)
        }

        fn canonical(&self, path: &str) -> Option<String> {
            self.0.get(self.key(path).as_str()).map(|(_, real)| (*real).to_owned())
        }
    }

    impl Disk {
        fn key(&self, path: &str) -> String {
            let path = path.strip_prefix("./").unwrap_or(path);
            if path.starts_with('/') { path.to_owned() } else { format!("/cwd/{path}") }
        }
    }

    fn disk() -> Disk {
        let same = |path, kind| (path, (kind, path));
        Disk(BTreeMap::from([
            same("/bin/bash", ELF),
            same("/bin/dash", ELF),
            ("/bin/sh", (ELF, "/bin/dash")),
            ("/bin/python3", (ELF, "/bin/python3.11")),
            same("/bin/python3.11", ELF),
            ("/bin/node", (ELF, "/bin/evil")),
            same("/bin/evil", ELF),
            same("/bin/env", ELF),
            same("/bin/bun", SCRIPT),
            same("/bin/native", ELF),
            same("/bin/text", FileKind::Program(Some(*b"echo"))),
            same("/bin/plain", FileKind::Plain),
            same("/else/bash", ELF),
            same("/root", FileKind::Folder),
            same("/root/a.py", FileKind::Plain),
            same("/root/dir", FileKind::Folder),
            same("/root/tool", SCRIPT),
            ("/root/out.py", (FileKind::Plain, "/etc/passwd")),
            ("/root/../etc/passwd", (FileKind::Plain, "/etc/passwd")),
            ("/root/link.js", (FileKind::Plain, "/etc/passwd")),
            ("/in.py", (FileKind::Plain, "/root/a.py")),
            same("/etc/passwd", FileKind::Plain),
            same("/rootless/a.py", FileKind::Plain),
            same("/rootless", FileKind::Folder),
            same("/tools/tool", SCRIPT),
            ("/cwd/.", (FileKind::Folder, "/root")),
            ("/cwd/a.py", (FileKind::Plain, "/root/a.py")),
        ]))
    }

    fn guard() -> Guard {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Guard {
            allowed_programs: own(&[
                "python3", "python", "bash", "sh", "node", "tool", "native", "text", "plain", "env", "gone",
                "bun",
            ]),
            script_root: "/root".to_owned(),
            allows_unsafe: false,
            path: own(&["/none", "/bin"]),
            same_name_elsewhere: SameNameElsewhere::Accept,
        }
    }

    fn admit(guard: &Guard, command: &str) -> Result<Admitted, Denied> {
        guard.admit(&super::super::command_line::split(command).unwrap(), &disk())
    }

    fn assert_refused(command: &str) {
        let admitted = admit(&guard(), command);
        assert!(matches!(admitted, Err(Denied::Refused(_))), "{command}: {admitted:?}");
    }

    #[test]
    fn admits_interpreters_with_a_script_under_the_root() {
        for (command, program) in [
            ("python3 /root/a.py", "/bin/python3"),
            ("python3 /root/a.py -c x", "/bin/python3"),
            ("sh /in.py", "/bin/sh"),
            ("/bin/bash /root/a.py", "/bin/bash"),
            ("/else/bash /root/a.py", "/else/bash"),
            ("native --anything", "/bin/native"),
            ("/root/tool -x", "/root/tool"),
            ("bash /root/missing.sh", "/bin/bash"),
        ] {
            assert_eq!(
                admit(&guard(), command).map(|admitted| admitted.program),
                Ok(program.to_owned()),
                "{command}"
            );
        }
    }

    #[test]
    fn a_bare_script_is_not_looked_for_in_path() {
        assert_eq!(admit(&guard(), "bash a.py x").unwrap().argv, ["bash", "./a.py", "x"]);
        assert_eq!(admit(&guard(), "bash gunzip").unwrap().argv, ["bash", "./gunzip"]);
    }

    #[test]
    fn refuses_other_names() {
        for command in
            ["perl /root/a.py", "Python3 /root/a.py", "pyth\u{43E}n3 /root/a.py", "python33x /root/a.py"]
        {
            assert_refused(command);
        }
        assert_refused("'' /root/a.py");
        assert_refused("node /root/a.py");
        assert_refused("env python3 /root/a.py");
    }

    #[test]
    fn refuses_options_inline_code_and_no_script() {
        for command in [
            "python3",
            "python3 -c 1",
            "python3 -m http.server",
            "python3 -u /root/a.py",
            "python3 -",
            "bash -- /root/a.py",
            "bash +x /root/a.py",
            "bash -s",
            "python3 ''",
            "sh /root/dir",
        ] {
            assert_refused(command);
        }
    }

    #[test]
    fn refuses_scripts_that_lie_elsewhere() {
        for command in [
            "python3 /etc/passwd",
            "python3 /root/out.py",
            "python3 /root/../etc/passwd",
            "python3 /rootless/a.py",
            "python3 /rootless/missing.py",
            "python3 /nowhere/missing.py",
            "python3 /root/dir/..",
            "/tools/tool",
            "bash /root/link",
            // A version manager replaces an interpreter by a script too.
            "bun /root/a.py",
        ] {
            assert_refused(command);
        }
        let rootless = Guard { script_root: "/no-root".to_owned(), ..guard() };
        assert!(matches!(admit(&rootless, "python3 /root/a.py"), Err(Denied::Refused(_))));
    }

    #[test]
    fn what_cannot_be_started_is_a_failed_launch() {
        for command in ["gone /root/a.py", "/bin/gone", "plain", "text", "/bin/plain x"] {
            assert!(matches!(admit(&guard(), command), Err(Denied::NotStartable(_))), "{command}");
        }
    }

    #[test]
    fn unsafe_allows_everything_but_a_shell_in_disguise() {
        let guard = Guard { allows_unsafe: true, ..guard() };
        for command in ["evil -c x", "python3 -c 1", "env python3", "/tools/tool"] {
            assert!(admit(&guard, command).is_ok(), "{command}");
        }
        assert!(matches!(admit(&guard, "text"), Err(Denied::NotStartable(_))));
    }

    #[test]
    fn same_name_elsewhere_is_a_choice() {
        let guard = Guard { same_name_elsewhere: SameNameElsewhere::Refuse, ..guard() };
        assert!(admit(&guard, "/bin/bash /root/a.py").is_ok());
        assert!(matches!(admit(&guard, "/else/bash /root/a.py"), Err(Denied::Refused(_))));
    }
}
