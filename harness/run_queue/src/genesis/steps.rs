//! Steps that several checks of the tools share.

use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Act, Fixture, PathKind, Placing};
use peerproof_engine::data::rng::Rng;

use super::kit::{End, GARBAGE};
use super::model::{MARK, SOURCES};
use super::talk::{COMPILE_MS, Talk, letters};

/// A folder beside the root, with a file in it.
pub(super) const ASIDE: &str = "outer/aside";

/// Folder for the file that tells a plugin to end, and for the marks that it leaves.
pub(super) const TOLD: &str = "told";

pub(super) fn unknown(talk: &Talk) -> Untestable {
    Untestable::new("no_source", format!("peerproof has no such source for files named .{}", talk.kit.suffix))
}

/// Writes the sample and compiles it as `made`. Returns its path.
pub(super) fn made(talk: &mut Talk, letters: &str) -> String {
    let (path, text) = (talk.kit.sample_file(), talk.kit.sample(letters));
    talk.write("QUE-GEN-04", &path, &text).compile("QUE-GEN-01", &path, "made");
    path
}

/// Writes the sample with other letters, compiles it under the same name, loads and calls it.
pub(super) fn again(talk: &mut Talk, rng: &mut Rng, clause: &str, path: &str) {
    let text = talk.kit.sample(&letters(rng));
    talk.write(clause, path, &text).compile("QUE-GEN-12", path, "made");
    talk.load("QUE-GEN-12", "made").call_sample("QUE-GEN-12").canary();
}

/// Writes a source that no compiler accepts.
pub(super) fn garbage(talk: &mut Talk, rng: &mut Rng, lines: usize) {
    let (path, text) = (talk.kit.file("garbage"), GARBAGE.repeat(lines) + &talk.kit.sample(&letters(rng)));
    talk.write("QUE-GEN-04", &path, &text);
}

/// Writes the sample under an odd file name and compiles it.
pub(super) fn named(talk: &mut Talk, rng: &mut Rng, stem: &str) {
    let (path, text) = (talk.kit.file(stem), talk.kit.sample(&letters(rng)));
    talk.write("QUE-GEN-07", &path, &text).compile("QUE-GEN-07", &path, "odd");
}

/// Puts links and folders into the source folder.
pub(super) fn fixtures(talk: &mut Talk) {
    let folder = |name: String| Fixture::Folder { name, folders: Vec::new(), watched: false };
    let inner = format!("{SOURCES}/folder");
    talk.fixture(folder(ASIDE.to_owned())).fixture(folder(SOURCES.to_owned())).fixture(folder(inner.clone()));
    let suffix = talk.kit.suffix.clone();
    let links = [
        ("link".to_owned(), format!("{{{{{ASIDE}.path}}}}")),
        ("inner".to_owned(), format!("{{{{{inner}.path}}}}")),
        (format!("filelink.{suffix}"), format!("{{{{{ASIDE}.path}}}}/kept.{suffix}")),
        (format!("newlink.{suffix}"), format!("{{{{{ASIDE}.path}}}}/new.{suffix}")),
    ];
    for (name, to) in links {
        talk.fixture(Fixture::Path { name: format!("{SOURCES}/{name}"), what: PathKind::Link { to } });
    }
}

/// Writes to paths that must be refused, each followed by a twin that must be accepted. A path after `*` gets no
/// suffix.
pub(super) fn refused(talk: &mut Talk, paths: &[&str]) {
    fixtures(talk);
    for (at, path) in paths.iter().enumerate() {
        let path = path.strip_prefix('*').map_or_else(|| talk.kit.file(path), str::to_owned);
        talk.write("QUE-GEN-03", &path, &format!("text number {at} that is refused"));
        let twin = talk.kit.file(&format!("twin_{at}"));
        talk.write("QUE-GEN-04", &twin, &format!("text number {at} that is written"));
    }
    talk.canary();
}

/// Lets a plugin end while it is called.
pub(super) fn ends(talk: &mut Talk, rng: &mut Rng, how: End) -> Result<(), Untestable> {
    talk.fixture(Fixture::Folder { name: TOLD.to_owned(), folders: Vec::new(), watched: false });
    let [flag, mark] = ["flag", "mark"].map(|name| format!("%%{TOLD}.path%%/{name}"));
    let text = talk.kit.ending(&letters(rng), how, &flag, &mark).ok_or_else(|| unknown(talk))?;
    let path = talk.kit.sample_file();
    talk.write("QUE-GEN-04", &path, &text).compile("QUE-GEN-14", &path, "ends").load("QUE-GEN-14", "ends");
    let (path, content) = (Payload::text(format!("{TOLD}/flag")), Payload::text("now"));
    talk.act(Act::Put { path, content, by: Placing::Write });
    let aid = talk.kit.aid.clone();
    let time = if matches!(how, End::Hang) { COMPILE_MS } else { 0 };
    talk.call("QUE-GEN-14", &aid, time).look(MARK, &format!("{TOLD}/mark"));
    Ok(())
}
