//! What is done and seen beside the processes of a conversation.

use super::stage::{carry_out, those};
use super::*;
use crate::plan::{Fixture, PathKind};
use crate::transcript::{Bytes, Found, FoundKind};

fn step(act: Act) -> Step {
    Step::new(act)
}

fn look(path: &str) -> Step {
    step(Act::Look { label: path.to_owned(), path: Payload::text(path), after_ms: 0 })
}

fn looked(transcript: &Transcript, wanted: &str) -> Vec<Found> {
    let of_label = |kind: &Kind| match kind {
        Kind::Looked { label, found, .. } if label == wanted => Some(found.clone()),
        _ => None,
    };
    let [found] = &those(transcript, of_label)[..] else { panic!("{wanted}: {:?}", transcript.events) };
    found.clone()
}

fn directory(name: &str) -> Fixture {
    Fixture::Path { name: name.to_owned(), what: PathKind::Directory }
}

#[test]
fn what_lies_at_a_path_is_told_and_that_nothing_does() {
    let script = "cd \"$ROOT/d\" && mkdir -p s/e && printf abc > s/f && ln -s ../../secret l && mkfifo p && \
        printf x > \"$(printf '\\377\\nx')\" && ln -s / \"$ROOT/out\"";
    let transcript = carry_out(
        script,
        vec![directory("d")],
        vec![look("d"), step(Act::Finish), look("d/"), look("d/s/f"), look("none"), look("out/etc")],
    );
    assert_eq!(looked(&transcript, "none"), []);
    assert_eq!(looked(&transcript, "out/etc"), [], "what leads out of the folder is not followed");
    assert_eq!(looked(&transcript, "d").len(), 1, "no session is opened for a look");
    let found = looked(&transcript, "d/");
    let names: Vec<(&[u8], FoundKind)> = found.iter().map(|one| (&one.path.0[..], one.kind)).collect();
    let folder = FoundKind::Folder;
    assert_eq!(
        names,
        [
            (&b""[..], folder),
            (b"l", FoundKind::Link),
            (b"p", FoundKind::Other),
            (b"s", folder),
            (b"s/e", folder),
            (b"s/f", FoundKind::File),
            (b"\xff\nx", FoundKind::File),
        ]
    );
    assert_eq!(found[1].bytes, Some(Bytes(b"../../secret".to_vec())));
    let file = &looked(&transcript, "d/s/f")[0];
    assert_eq!((&file.bytes, file.total_bytes), (&Some(Bytes(b"abc".to_vec())), 3));
    assert_eq!((file.path.0.len(), file.inode), (0, found[5].inode));
    assert!(transcript.events.is_sorted_by_key(|event| event.at_us), "{:?}", transcript.events);
}

#[test]
fn what_is_looked_at_is_bounded() {
    let script = "cd \"$ROOT/d\" && truncate -s 17M large && seq -f n%g 5000 | xargs touch";
    let transcript =
        carry_out(script, vec![directory("d")], vec![step(Act::Finish), look("d"), look("d/large")]);
    let is_cut = |kind: &Kind| match kind {
        Kind::Looked { cut, found, .. } => Some((*cut, found.len())),
        _ => None,
    };
    assert_eq!(those(&transcript, is_cut), [(true, 4_096), (false, 1)]);
    let large = &looked(&transcript, "d/large")[0];
    assert_eq!((large.bytes.as_ref().unwrap().0.len(), large.total_bytes), (16 << 20, 17 << 20));
}
