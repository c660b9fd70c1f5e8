//! The file system of a queue, or of a folder of tools.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;

use crate::run_queue::disk::{Disk, Entry, Fault, Kind, Op, OpResult, Place};

/// Largest number of entries read from one folder.
const ENTRIES_MAX: usize = 1 << 20;

/// Files below a folder.
pub(super) struct Folder {
    root: PathBuf,
    /// Locked folders, each with the open file that holds its lock.
    held: HashMap<Place, File>,
}

impl Folder {
    /// Creates the view of the files below `root`.
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), held: HashMap::new() }
    }

    /// Path of a place.
    pub(super) fn path(&self, place: &[u8]) -> PathBuf {
        if place.is_empty() { self.root.clone() } else { self.root.join(OsStr::from_bytes(place)) }
    }

    fn hold(&mut self, place: Place) -> Result<(), Fault> {
        let path = self.path(&place);
        if self.held.get(&place).is_some_and(|folder| is_at(folder, &path)) {
            return Ok(());
        }
        self.held.remove(&place);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(flags(OFlags::DIRECTORY | OFlags::NOFOLLOW));
        let folder = options.open(&path).map_err(fault)?;
        match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(Fault::Held),
            other => other.map_err(|errno| fault(errno.into()))?,
        }
        // The previous holder of the lock may have removed the folder, and another process may have created it again.
        if !is_at(&folder, &path) {
            return Err(Fault::Missing);
        }
        self.held.insert(place, folder);
        Ok(())
    }
}

/// True if an open folder is the one at `path`.
fn is_at(folder: &File, path: &Path) -> bool {
    match (folder.metadata(), fs::symlink_metadata(path)) {
        (Ok(own), Ok(there)) => (own.dev(), own.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

fn flags(flags: OFlags) -> i32 {
    i32::try_from(flags.bits()).unwrap_or_default()
}

fn fault(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::NotFound => Fault::Missing,
        io::ErrorKind::AlreadyExists => Fault::Exists,
        _ => Fault::Other(error.to_string()),
    }
}

fn kind(kind: fs::FileType) -> Kind {
    if kind.is_file() {
        Kind::File
    } else if kind.is_dir() {
        Kind::Folder
    } else if kind.is_symlink() {
        Kind::Link
    } else {
        Kind::Other
    }
}

fn list(path: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)?.take(ENTRIES_MAX) {
        let entry = entry?;
        // An entry that disappeared in between is skipped.
        if let Ok(file_type) = entry.file_type() {
            entries.push(Entry { name: entry.file_name().as_bytes().to_vec(), kind: kind(file_type) });
        }
    }
    Ok(entries)
}

fn read(path: &Path, bytes_max: usize, follows: bool) -> Result<Vec<u8>, Fault> {
    let link = if follows { OFlags::empty() } else { OFlags::NOFOLLOW };
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags(OFlags::NONBLOCK | OFlags::NOCTTY | link));
    let file =
        options.open(path).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP | Errno::NXIO) => Fault::NotAFile,
            _ => fault(error),
        })?;
    let about = file.metadata().map_err(fault)?;
    if !about.is_file() {
        return Err(Fault::NotAFile);
    }
    if about.len() > bytes_max as u64 {
        return Err(Fault::TooLarge);
    }
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() > bytes_max { Err(Fault::TooLarge) } else { Ok(bytes) }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

/// Renames without replacing on systems that lack such a call: links the new name, then removes the old one.
fn relink(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

impl Disk for Folder {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        let done = |result: io::Result<()>| result.map(|()| OpResult::Done).map_err(fault);
        match op {
            Op::Make(place) => done(fs::create_dir_all(self.path(&place))),
            Op::List(place) => list(&self.path(&place)).map(OpResult::Entries).map_err(fault),
            Op::Look(place) => match fs::symlink_metadata(self.path(&place)) {
                Ok(about) => Ok(OpResult::Kind(kind(about.file_type()))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(OpResult::Kind(Kind::Missing)),
                Err(error) => Err(fault(error)),
            },
            Op::Read { place, bytes_max, follows } => {
                read(&self.path(&place), bytes_max, follows).map(OpResult::Bytes)
            }
            Op::Write(place, bytes) => done(write(&self.path(&place), &bytes)),
            Op::Move(from, to) => {
                let (from, to) = (self.path(&from), self.path(&to));
                done(match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => relink(&from, &to),
                    other => other.map_err(io::Error::from),
                })
            }
            Op::Replace(from, to) => done(fs::rename(self.path(&from), self.path(&to))),
            Op::Sync(place) => done(File::open(self.path(&place)).and_then(|folder| folder.sync_all())),
            Op::Remove(place) => {
                let path = self.path(&place);
                match fs::symlink_metadata(&path) {
                    Ok(about) if about.is_dir() => {
                        fs::remove_dir(&path).map_err(fault)?;
                        self.held.remove(&place);
                        Ok(OpResult::Done)
                    }
                    _ => done(fs::remove_file(&path)),
                }
            }
            Op::Hold(place) => self.hold(place).map(|()| OpResult::Done),
        }
    }

    fn pause(&mut self, time: Duration) {
        super::faults::pause(time);
    }

    fn spin(&mut self, time: Duration) {
        super::faults::spin(time);
    }
}

/// A faulty file system that moves the target of a symbolic link instead of the link.
pub(super) struct Following(pub(super) Folder);

impl Disk for Following {
    fn act(&mut self, op: Op) -> Result<OpResult, Fault> {
        match op {
            Op::Move(from, to) if from.starts_with(b"inbox/") => {
                let target = fs::canonicalize(self.0.path(&from)).map_err(fault)?;
                fs::rename(target, self.0.path(&to)).map(|()| OpResult::Done).map_err(fault)
            }
            op => match self.0.act(op)? {
                OpResult::Entries(mut entries) => {
                    let links = entries.iter_mut().filter(|entry| entry.kind == Kind::Link);
                    links.for_each(|entry| entry.kind = Kind::File);
                    Ok(OpResult::Entries(entries))
                }
                out => Ok(out),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn act(folder: &mut Folder, op: Op) -> Result<OpResult, Fault> {
        folder.act(op)
    }

    #[test]
    fn moves_replace_nothing_and_reads_wait_for_nothing() {
        let root = tempfile::tempdir().unwrap();
        let mut folder = Folder::new(root.path());
        assert_eq!(act(&mut folder, Op::Make(b"a/b".to_vec())), Ok(OpResult::Done));
        for name in ["a/x", "a/y"] {
            assert_eq!(act(&mut folder, Op::Write(name.into(), name.into())), Ok(OpResult::Done));
        }
        assert_eq!(act(&mut folder, Op::Write(b"a/x".to_vec(), vec![])), Err(Fault::Exists));
        assert_eq!(act(&mut folder, Op::Move(b"a/x".to_vec(), b"a/y".to_vec())), Err(Fault::Exists));
        assert_eq!(act(&mut folder, Op::Move(b"a/z".to_vec(), b"a/v".to_vec())), Err(Fault::Missing));
        let path = |name: &str| root.path().join(name);
        assert_eq!(relink(&path("a/x"), &path("a/y")).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        relink(&path("a/x"), &path("a/w")).unwrap();
        assert!(!path("a/x").exists());
        assert_eq!(act(&mut folder, Op::Move(b"a/w".to_vec(), b"a/b/x".to_vec())), Ok(OpResult::Done));
        symlink("y", root.path().join("a/link")).unwrap();
        rustix::fs::mknodat(
            CWD,
            root.path().join("a/fifo"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let mut read = |place: &str, bytes_max, follows| {
            let place = place.into();
            act(&mut folder, Op::Read { place, bytes_max, follows })
        };
        assert_eq!(read("a/y", 3, false), Ok(OpResult::Bytes(b"a/y".to_vec())));
        assert_eq!(read("a/y", 2, false), Err(Fault::TooLarge));
        assert_eq!(read("a/link", 3, false), Err(Fault::NotAFile));
        assert_eq!(read("a/link", 3, true), Ok(OpResult::Bytes(b"a/y".to_vec())));
        assert_eq!(read("a/fifo", 3, true), Err(Fault::NotAFile));
        assert_eq!(read("a/b", 3, true), Err(Fault::NotAFile));
        assert_eq!(read("a/none", 3, true), Err(Fault::Missing));
    }

    #[test]
    fn a_lock_is_held_until_its_folder_is_removed_or_its_holder_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (Folder::new(root.path()), Folder::new(root.path()));
        let hold = || Op::Hold(b"a".to_vec());
        assert_eq!(one.act(hold()), Err(Fault::Missing));
        assert_eq!(one.act(Op::Make(b"a".to_vec())), Ok(OpResult::Done));
        assert_eq!((one.act(hold()), one.act(hold())), (Ok(OpResult::Done), Ok(OpResult::Done)));
        assert_eq!(other.act(hold()), Err(Fault::Held));
        drop(one);
        assert_eq!(other.act(hold()), Ok(OpResult::Done));
        assert_eq!(other.act(Op::Remove(b"a".to_vec())), Ok(OpResult::Done));
        assert_eq!(other.act(hold()), Err(Fault::Missing));
    }
}
