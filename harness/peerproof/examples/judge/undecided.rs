//! Checks that decide nothing about the unmutated reference.

use std::collections::BTreeSet;
use std::path::Path;

/// Lines, one per pass and check.
pub(crate) enum Undecided {
    /// Lines gathered so far.
    Gathered(BTreeSet<String>),
    /// Known lines.
    Known(BTreeSet<String>),
}

impl Undecided {
    /// Reads a file. Without a path, or if the file does not exist, lines are gathered.
    pub(crate) fn read(path: Option<&Path>) -> std::io::Result<Self> {
        match path.map(std::fs::read_to_string) {
            None => Ok(Self::Gathered(BTreeSet::new())),
            Some(Ok(text)) => Ok(Self::Known(text.lines().map(str::to_owned).collect())),
            Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self::Gathered(BTreeSet::new()))
            }
            Some(Err(error)) => Err(error),
        }
    }

    /// True if this check is expected to decide nothing.
    pub(crate) fn expects(&mut self, line: String) -> bool {
        match self {
            Self::Gathered(lines) => {
                lines.insert(line);
                true
            }
            Self::Known(lines) => lines.contains(&line),
        }
    }

    /// True if the lines are known.
    pub(crate) fn is_known(&self) -> bool {
        matches!(self, Self::Known(_))
    }

    /// Writes the gathered lines.
    pub(crate) fn write(&self, path: &Path) -> std::io::Result<()> {
        match self {
            Self::Gathered(lines) => {
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                std::fs::write(path, text)
            }
            Self::Known(_) => Ok(()),
        }
    }
}
