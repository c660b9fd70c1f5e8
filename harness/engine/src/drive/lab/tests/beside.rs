//! Tests of actions and events outside the processes of a conversation.

use super::stage::{carry_out, those};
use super::*;
use crate::data::plan::{ActorStep, Fixture, PathKind, Placing};
use crate::data::transcript::{Bytes, FolderChange, FoundEntry, FoundKind};
use crate::drive::fixture::Fixtures;

pub(super) fn step(act: Act) -> Step {
    Step::new(act)
}

pub(super) fn look(path: &str) -> Step {
    step(Act::Look { label: path.to_owned(), path: Payload::text(path), after_ms: 0 })
}

pub(super) fn looked(transcript: &Transcript, wanted: &str) -> Vec<FoundEntry> {
    let of_label = |kind: &EventKind| match kind {
        EventKind::Looked { label, found, .. } if label == wanted => Some(found.clone()),
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
    let script = "cd \"$ROOT/d\" && truncate -s 65M large && seq -f n%g 5000 | xargs touch";
    let transcript =
        carry_out(script, vec![directory("d")], vec![step(Act::Finish), look("d"), look("d/large")]);
    let is_cut = |kind: &EventKind| match kind {
        EventKind::Looked { cut, found, .. } => Some((*cut, found.len())),
        _ => None,
    };
    assert_eq!(those(&transcript, is_cut), [(true, 4_096), (false, 1)]);
    let large = &looked(&transcript, "d/large")[0];
    assert_eq!((large.bytes.as_ref().unwrap().0.len(), large.total_bytes), (1 << 20, 65 << 20));
}

pub(super) fn put(path: &str, by: Placing) -> Step {
    step(Act::Put { path: Payload::text(path), content: Payload::default().repeat("x", 9), by })
}

pub(super) fn queue() -> Fixture {
    let folders = ["inbox", "processing", "done", "failed"].map(str::to_owned).to_vec();
    Fixture::Folder { name: "queue".to_owned(), folders, watched: true }
}

pub(super) fn job(script: Vec<ActorStep>) -> Fixture {
    Fixture::Actor { name: "job".to_owned(), script, later: Vec::new() }
}

/// Events of files and actors, one word each.
fn story(transcript: &Transcript) -> Vec<String> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(&bytes.0).into_owned();
    those(transcript, |kind| match kind {
        EventKind::FilePut { path, error: None, .. } => Some(format!("put {}", text(path))),
        EventKind::FileMoved { from, to, error: None } => Some(format!("move {} {}", text(from), text(to))),
        EventKind::FolderChanged { folder, path, change, .. } => {
            let change = match change {
                FolderChange::Appeared => "+",
                FolderChange::Written => "=",
                FolderChange::Vanished => "-",
                FolderChange::MovedIn => ">",
                FolderChange::MovedOut => "<",
            };
            Some(format!("{change} {folder}/{}", text(path)))
        }
        EventKind::ActorStarted { .. } => Some("starts".to_owned()),
        EventKind::ActorEnded { .. } => Some("ends".to_owned()),
        _ => None,
    })
}

#[test]
fn changes_of_a_folder_stand_in_order_with_puts_and_with_starts_and_ends_of_actors() {
    let script = "cd \"$ROOT/queue\"; echo ready; until [ -e inbox/a ]; do sleep 0.01; done; \
        mv inbox/a processing/b; \"$ROOT/job\" processing/b; mv processing/b done/c; mkdir new; echo done; cat; \
        rm new/f";
    let moves = Act::Move { from: Payload::text("queue/done/c"), to: Payload::text("queue/failed/d") };
    let transcript = carry_out(
        script,
        vec![queue(), job(vec![ActorStep::Sleep { ms: 1 }])],
        vec![
            hello(1),
            put("queue/inbox/a", Placing::Rename),
            hello(1),
            put("queue/new/f", Placing::Write),
            step(moves),
            step(Act::Finish),
            look("queue/failed"),
        ],
    );
    let expected = "+ queue/inbox/.put-1, = queue/inbox/.put-1, put queue/inbox/a, < queue/inbox/.put-1, \
        > queue/inbox/a, < queue/inbox/a, > queue/processing/b, starts, ends, < queue/processing/b, > queue/done/c, \
        + queue/new, put queue/new/f, + queue/new/f, = queue/new/f, move queue/done/c queue/failed/d, \
        < queue/done/c, > queue/failed/d, - queue/new/f";
    assert_eq!(story(&transcript).join(", "), expected);
    let pairs = those(&transcript, |kind| match kind {
        EventKind::FolderChanged { pair, .. } if *pair > 0 => Some(*pair),
        _ => None,
    });
    assert!(pairs.len() == 8 && pairs.chunks(2).all(|ends| ends[0] == ends[1]), "{pairs:?}");
    assert_eq!(looked(&transcript, "queue/failed")[1].bytes, Some(Bytes(b"xxxxxxxxx".to_vec())));
    assert!(transcript.events.is_sorted_by_key(|event| event.at_us), "{:?}", transcript.events);
}

#[test]
fn changes_that_were_lost_are_told() {
    let script = "cd \"$ROOT/queue\"; seq 20000 | xargs touch";
    let transcript = carry_out(script, vec![queue()], vec![Step { allow_ms: 10_000, ..step(Act::Finish) }]);
    let lost = those(&transcript, |kind| (*kind == EventKind::WatchOverflow).then_some(()));
    assert!(!lost.is_empty(), "{} events", transcript.events.len());
    assert!(transcript.events.len() < 20_000);
}

#[test]
fn nothing_is_done_outside_the_folder_of_the_fixtures() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let exe = ActorExe::new(Path::new("/nowhere"));
    let mut fixtures = Fixtures::start(&[queue()], dir.path(), &exe).unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("out")).unwrap();
    let text = Payload::text;
    for path in ["../x", "/etc/passwd", "queue/../../x"] {
        assert!(fixtures.look("", &text(path)).is_err(), "{path}");
        assert!(fixtures.put(&text(path), &text("x"), Placing::Write).is_err(), "{path}");
        assert!(fixtures.move_file(&text("queue"), &text(path)).is_err(), "{path}");
    }
    let error = |kind: EventKind| match kind {
        EventKind::FilePut { error, .. } | EventKind::FileMoved { error, .. } => error,
        _ => None,
    };
    for by in [Placing::Write, Placing::Rename] {
        assert!(error(fixtures.put(&text("out/x"), &text("x"), by).unwrap().1).is_some());
        assert!(error(fixtures.put(&text("none/x"), &text("x"), by).unwrap().1).is_some());
    }
    assert!(error(fixtures.move_file(&text("queue"), &text("out/x")).unwrap().1).is_some());
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
    let whole = Payload::default()
        .var("folder")
        .then(text("/queue/inbox/"))
        .then(Payload(vec![crate::data::payload::Segment::Hex("ff".to_owned())]));
    assert_eq!(error(fixtures.put(&whole, &text("x"), Placing::Write).unwrap().1), None);
    let EventKind::Looked { path, found, .. } = fixtures.look("", &whole).unwrap() else { panic!() };
    assert_eq!((&path.0[..], found.len()), (&b"queue/inbox/\xff"[..], 1));
}

#[test]
fn what_is_sent_is_told_as_it_was_written_with_placeholders_for_secrets() {
    let token = crate::data::plan::Capture {
        pointer: "/t".to_owned(),
        var: "token".to_owned(),
        secret: true,
        until: None,
    };
    let send = |payload: Payload| Act::Send { payload, chunking: Chunking::Whole, await_frames: 1 };
    let transcript = carry_out(
        "read -r line; echo '{{\"t\":\"s3cr3t-word\"}}'; cat",
        vec![directory("d")],
        vec![
            Step { capture: Some(token), ..hello(1) },
            step(send(
                Payload::text("<")
                    .var("token")
                    .then(Payload::text("|"))
                    .var("d.path")
                    .then(Payload::text(">\n")),
            )),
            step(Act::Finish),
        ],
    );
    let sent = those(&transcript, |kind| match kind {
        EventKind::Sent { step: 1, payload } => Some(payload.clone()),
        _ => None,
    });
    let text = sent[0].summary(1_000);
    assert!(text.starts_with("<REDACTED1_x|/") && text.ends_with("/d>"), "{text}");
    assert_eq!(sent[0].variables().count(), 0);
    let echoed = transcript.stdout(0);
    assert!(echoed.ends_with(format!("{text}\n").as_bytes()), "what came back reads the same: {text}");
    let filled = &crate::data::lines::of_session(&transcript, 0)[1].filled;
    let names: Vec<(&str, &[u8])> = filled.iter().map(|one| (one.name.as_str(), &one.bytes[..])).collect();
    assert!(matches!(names[..], [("token", b"REDACTED1_x"), ("d.path", _)]), "{filled:?}");
    let earlier = EventKind::Sent { step: 1, payload: Payload::default().var("token") };
    let mut stored = Vec::new();
    Transcript {
        events: vec![crate::data::transcript::Event { at_us: 0, session: 0, kind: earlier }],
        ..transcript
    }
    .store(&mut stored)
    .unwrap();
    let refused = Transcript::load(stored.as_slice()).unwrap_err().to_string();
    assert!(refused.starts_with("line 2: ") && refused.contains("name of a variable"), "{refused}");
}
