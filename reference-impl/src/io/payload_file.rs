//! The file that carries a payload to a policy driver (`contract` §2, last of "Selector").

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Attempts with other names if one is in use.
const TRIES: usize = 16;

/// File that only its owner can read. It is removed on drop.
#[derive(Debug)]
pub(super) struct PayloadFile(PathBuf);

impl PayloadFile {
    /// Writes `payload` to a new file in `folder`.
    ///
    /// # Errors
    /// Fails if no file can be created or written there. No file is left behind.
    pub(super) fn create(folder: &str, payload: &[u8]) -> io::Result<Self> {
        let mut last = None;
        for _ in 0..TRIES {
            let path = Path::new(folder).join(format!("policy-payload-{:016x}.json", random()?));
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(mut file) => {
                    let created = Self(path);
                    file.write_all(payload)?;
                    return Ok(created);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("every name is taken")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PayloadFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn is_private_and_goes_away() {
        let folder = tempfile::tempdir().unwrap();
        let file = PayloadFile::create(folder.path().to_str().unwrap(), b"{}").unwrap();
        let path = file.path().to_owned();
        assert_eq!(fs::read(&path).unwrap(), b"{}");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        drop(file);
        assert!(!path.exists());
        assert!(PayloadFile::create("/nonexistent", b"{}").is_err());
    }
}
