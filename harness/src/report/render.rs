//! Writes reports to files.

use std::path::Path;

use super::junit::junit;
use super::markdown::markdown;
use crate::results::ResultsFile;

/// Renders `file` into the forms that are asked for.
///
/// # Errors
/// One sentence with the path that cannot be written.
pub fn render(file: &ResultsFile, junit_to: Option<&Path>, markdown_to: Option<&Path>) -> Result<(), String> {
    if let Some(path) = junit_to {
        write(path, &junit(file)?)?;
    }
    if let Some(path) = markdown_to {
        write(path, &markdown(file))?;
    }
    Ok(())
}

/// Writes a text file, with the folder it lies in.
///
/// # Errors
/// One sentence with the path.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    let sentence = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(sentence)?;
    }
    std::fs::write(path, text).map_err(sentence)
}
