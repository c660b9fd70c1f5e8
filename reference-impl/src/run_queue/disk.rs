//! What is done to files, as data.

/// A path below the folder that a [`Disk`] is about, `/` between names; empty for the folder itself. Names are bytes.
pub type Place = Vec<u8>;

/// What stands at a place; links are not followed.
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
    /// What it is.
    pub kind: Kind,
}

/// Something to be done to files, at once and before anything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Make a folder, and those above it; one that is there is fine.
    Make(Place),
    /// List a folder, in any order.
    List(Place),
    /// Look at a place.
    Look(Place),
    /// Read a regular file; it never waits for a writer.
    Read {
        /// Which.
        place: Place,
        /// Bytes that it may have.
        bytes_max: usize,
        /// Through a link.
        follows: bool,
    },
    /// Make a file that is not there yet, with these bytes, which are on the disk afterwards. Where that fails no file is left.
    Write(Place, Vec<u8>),
    /// Rename; what stands at the second place already stays.
    Move(Place, Place),
    /// Rename; what stands at the second place already is replaced.
    Replace(Place, Place),
    /// Wait until the names in a folder are on the disk.
    Sync(Place),
    /// Remove a file, or a folder without entries, whose lock is given up.
    Remove(Place),
    /// Lock a folder for as long as this process lives.
    Hold(Place),
}

/// What came of an [`Op`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Out {
    /// It is done.
    Done,
    /// [`Op::List`].
    Entries(Vec<Entry>),
    /// [`Op::Look`].
    Kind(Kind),
    /// [`Op::Read`].
    Bytes(Vec<u8>),
}

/// Why an [`Op`] was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A place does not exist.
    #[error("it is not there")]
    Missing,
    /// Something stands there already.
    #[error("its place is taken")]
    Exists,
    /// Another process holds it.
    #[error("another process holds it")]
    Held,
    /// It has more bytes than were allowed.
    #[error("it is too large")]
    TooLarge,
    /// It is not a regular file.
    #[error("it is not a regular file")]
    NotAFile,
    /// The operating system's words.
    #[error("{0}")]
    Other(String),
}

/// Carries out [`Op`]s.
pub trait Disk: Send {
    /// Does one thing.
    ///
    /// # Errors
    /// Why it was not done.
    fn act(&mut self, op: Op) -> Result<Out, Fault>;
}

/// The same with the results taken apart; errors are those of [`Disk::act`].
impl dyn Disk + '_ {
    pub(super) fn list(&mut self, place: &[u8]) -> Result<Vec<Entry>, Fault> {
        match self.act(Op::List(place.to_vec()))? {
            Out::Entries(entries) => Ok(entries),
            _ => Ok(Vec::new()),
        }
    }

    pub(super) fn look(&mut self, place: &[u8]) -> Kind {
        match self.act(Op::Look(place.to_vec())) {
            Ok(Out::Kind(kind)) => kind,
            _ => Kind::Missing,
        }
    }

    pub(super) fn read(&mut self, place: Place, bytes_max: usize, follows: bool) -> Result<Vec<u8>, Fault> {
        match self.act(Op::Read { place, bytes_max, follows })? {
            Out::Bytes(bytes) => Ok(bytes),
            _ => Ok(Vec::new()),
        }
    }
}

/// A place in a folder.
pub fn within(folder: &[u8], name: &[u8]) -> Place {
    [folder, b"/", name].concat()
}
