//! Temporary folders of a run, and those that killed runs have left behind.
//!
//! The name of a folder tells its owner: the id of the process, its start time, and the namespace of the id. A folder is
//! removed by the next run once that process is gone. Folders of others, and those whose owner cannot be seen from here, stay.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use tempfile::TempDir;

use crate::process;

/// Beginning of the names of temporary folders.
const PREFIX: &str = "peerproof-";

/// Makes a temporary folder in `parent`, and removes those in it whose owners are dead.
///
/// # Errors
/// Those of making a folder.
pub fn make(parent: &Path) -> io::Result<TempDir> {
    let own = Owner::own();
    if let Some(own) = &own {
        sweep(parent, own);
    }
    let prefix = own.map_or_else(|| PREFIX.to_owned(), |own| own.prefix());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)
}

/// Process that a folder belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    pid: i32,
    /// In clock ticks.
    start: u64,
    /// Inode of its namespace of process ids.
    namespace: u64,
}

impl Owner {
    /// This process; `None` without `/proc`.
    fn own() -> Option<Self> {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        let start = process::look_at(pid)?.start;
        Some(Self { pid, start, namespace: fs::metadata("/proc/self/ns/pid").ok()?.ino() })
    }

    fn prefix(&self) -> String {
        format!("{PREFIX}{}-{:x}-{:x}-", self.pid, self.start, self.namespace)
    }

    /// The owner that the name of a folder tells.
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

/// Removes the folders in `parent` that dead processes of this user have left. What cannot be removed stays.
fn sweep(parent: &Path, own: &Owner) {
    let user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(Owner::of) else { continue };
        // The entry itself, where it is a link.
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
