//! File operations as data.

use std::time::Duration;

/// Path below the root of a [`Disk`], with `/` between names; empty for the root itself. Names are bytes.
pub type Place = Vec<u8>;

/// Kind of file at a place. Links are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Missing,
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket, a device.
    Other,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: Vec<u8>,
    /// Its kind.
    pub kind: Kind,
}

/// An atomic file operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Make a folder and its parents. It may exist already.
    Make(Place),
    /// List a folder, in any order.
    List(Place),
    /// Get the kind of file at a place.
    Look(Place),
    /// Read a regular file, without waiting for a writer.
    Read {
        /// Place of the file.
        place: Place,
        /// Largest accepted size in bytes.
        bytes_max: usize,
        /// True to follow a symbolic link.
        follows: bool,
    },
    /// Create a new file with these bytes and flush it to disk. On failure no file is left.
    Write(Place, Vec<u8>),
    /// Rename without replacing an existing file at the second place.
    Move(Place, Place),
    /// Rename, replacing an existing file at the second place.
    Replace(Place, Place),
    /// Flush the names in a folder to disk.
    Sync(Place),
    /// Remove a file, or an empty folder, whose lock is released.
    Remove(Place),
    /// Lock a folder for the life of this process.
    Hold(Place),
}

/// Result of an [`Op`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpResult {
    /// Success without a value.
    Done,
    /// Result of [`Op::List`].
    Entries(Vec<Entry>),
    /// Result of [`Op::Look`].
    Kind(Kind),
    /// Result of [`Op::Read`].
    Bytes(Vec<u8>),
}

/// Reason why an [`Op`] failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A place does not exist.
    #[error("it is not there")]
    Missing,
    /// The target exists already.
    #[error("its place is taken")]
    Exists,
    /// Another process holds the lock.
    #[error("another process holds it")]
    Held,
    /// The file is over the size limit.
    #[error("it is too large")]
    TooLarge,
    /// It is not a regular file.
    #[error("it is not a regular file")]
    NotAFile,
    /// Error of the operating system.
    #[error("{0}")]
    Other(String),
}

/// Executor of [`Op`]s.
pub trait Disk: Send {
    /// Carries out one operation.
    ///
    /// # Errors
    /// The reason why it failed.
    fn act(&mut self, op: Op) -> Result<OpResult, Fault>;

    /// Sleeps. A disk without a clock lets no time pass.
    fn pause(&mut self, _time: Duration) {}

    /// Keeps a processor busy. A disk without a clock lets no time pass.
    fn spin(&mut self, _time: Duration) {}
}

/// Typed versions of [`Disk::act`], with its errors.
impl dyn Disk + '_ {
    pub(super) fn list(&mut self, place: &[u8]) -> Result<Vec<Entry>, Fault> {
        match self.act(Op::List(place.to_vec()))? {
            OpResult::Entries(entries) => Ok(entries),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn look(&mut self, place: &[u8]) -> Kind {
        match self.act(Op::Look(place.to_vec())) {
            Ok(OpResult::Kind(kind)) => kind,
            _ => Kind::Missing,
        }
    }

    pub(super) fn read(&mut self, place: Place, bytes_max: usize, follows: bool) -> Result<Vec<u8>, Fault> {
        match self.act(Op::Read { place, bytes_max, follows })? {
            OpResult::Bytes(bytes) => Ok(bytes),
            _ => Ok(Vec::new()),
        }
    }
}

/// Place of an entry of a folder.
pub fn within(folder: &[u8], name: &[u8]) -> Place {
    [folder, b"/", name].concat()
}
