//! Forms into which results are rendered, and writing them to files.

use std::path::{Path, PathBuf};

use peerproof_engine::contract::boundary::Boundary;
use peerproof_engine::data::blame::{HarnessFault, Misconfigured};
use peerproof_engine::data::text::visible_lines;
use peerproof_engine::drive::private;
use peerproof_engine::run::results::ResultsFile;
use peerproof_engine::run::results::verdicts::verdicts;

/// Form rendered from a results file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// XML for programs that collect test results.
    Junit,
    /// Page for a browser; needs the feature `html` of this crate.
    Html,
    /// SARIF 2.1.0 for code scanners.
    Sarif,
    /// Markdown for pull requests and wikis.
    Markdown,
    /// One stable line per check, to keep and compare.
    Verdicts,
}

impl Form {
    /// All forms, in the order of the help text.
    pub const ALL: [Self; 5] = [Self::Junit, Self::Html, Self::Sarif, Self::Markdown, Self::Verdicts];

    /// Word in `--report WORD=FILE`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Junit => "junit",
            Self::Html => "html",
            Self::Sarif => "sarif",
            Self::Markdown => "md",
            Self::Verdicts => "verdicts",
        }
    }

    fn text(self, file: &ResultsFile, boundaries: &[&'static dyn Boundary]) -> Result<String, HarnessFault> {
        match self {
            Self::Junit => super::junit::junit(file),
            #[cfg(feature = "html")]
            Self::Html => super::html::html(file, boundaries),
            #[cfg(not(feature = "html"))]
            Self::Html => {
                Err("this peerproof was built without HTML reports; build it with `--features html`".into())
            }
            Self::Sarif => super::sarif::sarif(file, boundaries),
            Self::Markdown => Ok(super::markdown::markdown(file, boundaries)),
            Self::Verdicts => Ok(verdicts(file)),
        }
    }
}

/// Renders `file`, from peers of `boundaries`, into each requested form, and continues if one cannot be written.
/// Reproducers are named by their paths in `folder`.
///
/// # Errors
/// Names each path that cannot be written, with the reason.
pub fn render(
    mut file: ResultsFile,
    wanted: &[(Form, PathBuf)],
    boundaries: &[&'static dyn Boundary],
    folder: &Path,
) -> Result<(), Misconfigured> {
    let checks = file.runs.iter_mut().flat_map(|run| &mut run.checks);
    for name in checks.filter_map(|check| check.reproducer.as_mut()) {
        *name = folder.join(&name).display().to_string();
    }
    let failed: Vec<String> = wanted
        .iter()
        .filter_map(|(form, path)| {
            form.text(&file, boundaries).map_err(String::from).and_then(|text| Ok(write(path, &text)?)).err()
        })
        .collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n").into()) }
}

/// Writes a text file, and creates its folder.
///
/// # Errors
/// Names the path, in one sentence.
pub fn write(path: &Path, text: &str) -> Result<(), Misconfigured> {
    let sentence = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    Ok(private::write(path, &visible_lines(text)).map_err(sentence)?)
}
