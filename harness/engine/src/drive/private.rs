//! Files with data of peers: readable only by the user who runs the harness.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{Result, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FILE_MODE: u32 = 0o600;
const SCRIPT_MODE: u32 = 0o700;
const FOLDER_MODE: u32 = 0o700;

/// Creates a folder and its parents. Existing folders keep their permissions.
///
/// # Errors
/// As [`std::fs::create_dir_all`].
pub fn folder(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates or empties a file, and creates its folder. A device or pipe is only opened.
///
/// # Errors
/// As [`File::create`].
pub fn create(path: &Path) -> Result<File> {
    with_mode(path, FILE_MODE)
}

/// Creates a new file.
///
/// # Errors
/// As [`File::create_new`].
pub fn create_new(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Writes a new file. If its text does not fit on the disk, no part of it is left.
///
/// # Errors
/// As [`File::create_new`] and [`std::fs::write`].
pub fn write_new(path: &Path, text: &str) -> Result<()> {
    let written = create_new(path)?.write_all(text.as_bytes());
    written.inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

/// Opens a file for reading and writing, creating it if missing.
///
/// # Errors
/// As [`OpenOptions::open`].
pub fn open(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)
}

/// Writes a file, and creates its folder.
///
/// # Errors
/// As [`std::fs::write`].
pub fn write(path: &Path, text: &str) -> Result<()> {
    create(path)?.write_all(text.as_bytes())
}

/// Writes an executable script.
///
/// # Errors
/// As [`std::fs::write`].
pub(crate) fn write_script(path: &Path, text: &str) -> Result<()> {
    with_mode(path, SCRIPT_MODE)?.write_all(text.as_bytes())
}

fn with_mode(path: &Path, mode: u32) -> Result<File> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        folder(above)?;
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn nobody_else_reads_what_is_written() {
        let scratch = tempfile::tempdir().unwrap();
        let below = scratch.path().join("a/b");
        let file = below.join("f");
        write(&file, "x").unwrap();
        write_script(&below.join("s"), "x").unwrap();
        assert_eq!([mode(&below), mode(&scratch.path().join("a"))], [0o700, 0o700]);
        assert_eq!([mode(&file), mode(&below.join("s"))], [0o600, 0o700]);
        std::fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        write(&file, "y").unwrap();
        assert_eq!((mode(&file), std::fs::read_to_string(&file).unwrap().as_str()), (0o600, "y"));
        assert!(create_new(&file).is_err());
        write(Path::new("/dev/null"), "x").unwrap();
    }
}
