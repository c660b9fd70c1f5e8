//! Program of a command line.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::USUAL_PATH;
use crate::data::blame::Misconfigured;

/// File that a command line starts. A program with a slash is relative to `folder`; others are looked up in `path`, the
/// value of `PATH`.
///
/// # Errors
/// Describes in one sentence the obstacle and the remedy.
pub(crate) fn find_program(
    argv: &[String],
    path: Option<&OsStr>,
    folder: Option<&Path>,
) -> Result<PathBuf, Misconfigured> {
    let program = argv.first().map_or("", String::as_str);
    let here = folder.unwrap_or(Path::new("."));
    if program.contains('/') {
        let file = here.join(program);
        let meta = file.metadata().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!("there is no file {program}"),
            _ => format!("{program}: {error}"),
        })?;
        if meta.is_dir() {
            return Err(format!("{program} is a directory; name the program in it").into());
        }
        if meta.permissions().mode() & 0o111 == 0 {
            let interpreter = with_interpreter(program);
            return Err(format!(
                "{program} is not executable; put its interpreter before it{interpreter}, or use chmod +x"
            )
            .into());
        }
        return Ok(file);
    }
    let path = path.unwrap_or(OsStr::new(USUAL_PATH));
    let executable =
        |file: &PathBuf| file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if let Some(file) = std::env::split_paths(path).map(|folder| folder.join(program)).find(executable) {
        return Ok(file);
    }
    let hint = match here.join(program) {
        file if executable(&file) => format!("; did you mean ./{program}?"),
        file if file.exists() => {
            format!("; for the file {program}, put its interpreter before it{}", with_interpreter(program))
        }
        _ => String::new(),
    };
    Err(format!("there is no program {program:?} in the PATH of the peer{hint}").into())
}

/// Command line of a script, in words that follow an advice; empty for an unknown kind.
fn with_interpreter(script: &str) -> String {
    let extension = Path::new(script).extension().and_then(OsStr::to_str);
    let known = INTERPRETERS.iter().find(|(of, _)| extension == Some(of));
    known.map(|(_, interpreter)| format!(", as in `{interpreter} {script}`")).unwrap_or_default()
}

/// Interpreters by the extension of a script.
const INTERPRETERS: &[(&str, &str)] =
    &[("py", "python3"), ("js", "node"), ("mjs", "node"), ("rb", "ruby"), ("pl", "perl"), ("sh", "sh")];

/// True if the file begins with `#!`.
pub(super) fn is_script(file: &Path) -> bool {
    let mut head = [0; 2];
    File::open(file).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *b"#!"
}
