//! Temporary folders of a run, and leftovers of killed runs.
//!
//! The name of a folder identifies its owner: process id, start time and process-id namespace. The next run removes a
//! folder once that process has ended. Folders of other users, or with an owner that is invisible from here, stay.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::TempDir;

use crate::drive::process;

/// Prefix of the names of temporary folders.
const PREFIX: &str = "peerproof-";

/// Creates a temporary folder in `parent`, after removing those of dead owners.
///
/// # Errors
/// Fails if the folder cannot be created.
pub fn make(parent: &Path) -> io::Result<TempDir> {
    let own = Owner::own();
    if let Some(own) = &own {
        sweep(parent, own);
    }
    let prefix = own.map_or_else(|| PREFIX.to_owned(), |own| own.prefix());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)
}

/// Process that owns a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    pid: i32,
    /// Start time in clock ticks.
    start: u64,
    /// Inode of its process-id namespace.
    namespace: u64,
}

impl Owner {
    /// Entry for this process; `None` without `/proc`.
    fn own() -> Option<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let start = process::look_at(pid)?.start;
        Some(Self { pid, start, namespace: fs::metadata("/proc/self/ns/pid").ok()?.ino() })
    }

    fn prefix(&self) -> String {
        format!("{PREFIX}{}-{:x}-{:x}-", self.pid, self.start, self.namespace)
    }

    /// Parses the owner from a folder name.
    fn of(name: &str) -> Option<Self> {
        let mut parts = name.strip_prefix(PREFIX)?.splitn(4, '-');
        let pid = parts.next()?.parse().ok()?;
        let mut number = || u64::from_str_radix(parts.next()?, 16).ok();
        let (start, namespace) = (number()?, number()?);
        parts.next().map(|_| Self { pid, start, namespace })
    }

    fn is_dead(&self) -> bool {
        process::look_at(self.pid).is_none_or(|now| now.start != self.start || now.is_dead())
    }
}

/// Removes folders in `parent` that dead processes of this user left. Ignores failures.
fn sweep(parent: &Path, own: &Owner) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(Owner::of) else { continue };
        // Metadata of the entry itself, even if it is a link.
        let is_ours = entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == user);
        if is_ours && owner.namespace == own.namespace && owner.is_dead() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_owners_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let own = Owner::own().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let start = process::look_at(pid).unwrap().start;
        let of_child = Owner { pid, start, ..own.clone() };
        assert_eq!(Owner::of(&format!("{}x1", of_child.prefix())), Some(of_child.clone()));
        let earlier = Owner { start: own.start - 1, ..own.clone() };
        let elsewhere = Owner { namespace: 1, ..earlier.clone() };
        let names = [&own, &of_child, &elsewhere, &earlier].map(|owner| format!("{}x1", owner.prefix()));
        let others = ["peerproof-x1y2z3", "peerproof-out", "other"].map(str::to_owned);
        for name in names.iter().chain(&others) {
            fs::create_dir_all(parent.path().join(name).join("inner")).unwrap();
        }
        std::os::unix::fs::symlink("/", parent.path().join(format!("{}ln", earlier.prefix()))).unwrap();
        let left = || names.iter().map(|name| parent.path().join(name).exists()).collect::<Vec<_>>();
        drop(make(parent.path()).unwrap());
        assert_eq!(left(), [true, true, true, false], "one that lives, or cannot be seen, keeps its folder");
        child.kill().unwrap();
        child.wait().unwrap();
        drop(make(parent.path()).unwrap());
        assert_eq!(left(), [true, false, true, false]);
        assert!(others.iter().all(|name| parent.path().join(name).exists()));
    }
}
