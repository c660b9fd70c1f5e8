//! Tests of the recorded output and end of actors.

use super::stage::{carry_out, those};
use super::*;
use crate::data::payload::Vars;
use crate::data::plan::{ActorStep, Fixture, PathKind};
use crate::data::transcript::Exit;

const FLOOD_BYTES: u64 = 1 << 20;

fn wrote(transcript: &Transcript, name: &str) -> Vec<(Vec<u8>, bool)> {
    those(transcript, |kind| match kind {
        EventKind::ActorWrote { actor, bytes, whole, .. } if actor == name => {
            Some((bytes.expand(&Vars::new()).unwrap(), *whole))
        }
        _ => None,
    })
}

#[test]
fn what_each_start_wrote_is_told_and_how_it_ended() {
    let flood = vec![
        ActorStep::Stdout(Payload::text("hello ")),
        ActorStep::Flood { unit: "abc".to_owned(), bytes_max: FLOOD_BYTES },
        ActorStep::Exit(3),
    ];
    let stays = vec![ActorStep::Stdout(Payload::text("here\n")), ActorStep::Sleep { ms: 50_000 }];
    let stuck = vec![
        ActorStep::Stderr(Payload::text("there\n")),
        ActorStep::Flood { unit: "x".to_owned(), bytes_max: FLOOD_BYTES },
    ];
    let dies = vec![ActorStep::Stdout(Payload::default()), ActorStep::Die(15)];
    let actor = |name: &str, script: Vec<ActorStep>, later: Vec<Vec<ActorStep>>| Fixture::Actor {
        name: name.to_owned(),
        script,
        later,
    };
    let transcript = carry_out(
        "read -r line; \"$ROOT/a\" > /dev/null; \"$ROOT/a\" | head -c 8 > /dev/null; \"$ROOT/dies\"; \
         \"$ROOT/a\" & sleep 50 < \"$ROOT/pipe\" & \"$ROOT/b\" 2>&1 > \"$ROOT/pipe\" & cat",
        vec![
            actor("a", flood.clone(), vec![flood, stays]),
            actor("b", stuck, Vec::new()),
            actor("dies", dies, Vec::new()),
            Fixture::Path { name: "pipe".to_owned(), what: PathKind::Fifo },
        ],
        vec![hello(2), Step::new(Act::Signal("KILL".to_owned()))],
    );
    let whole: Vec<u8> = b"hello ".iter().chain(b"abc".iter().cycle().take(1 << 20)).copied().collect();
    let [(first, true), (second, false), (third, true)] = &wrote(&transcript, "a")[..] else {
        panic!("{:?}", transcript.events)
    };
    assert!(*first == whole, "all of it was taken");
    assert!((8..whole.len()).contains(&second.len()) && whole.starts_with(second), "{}", second.len());
    assert_eq!(third, b"here\n", "it was killed, behind all that it had to write");
    assert_eq!(wrote(&transcript, "b"), [(Vec::new(), false)], "it was killed within a write");
    assert_eq!(wrote(&transcript, "dies"), [(Vec::new(), true)]);
    let ended = those(&transcript, |kind| match kind {
        EventKind::ActorEnded { actor, exit, .. } => Some((actor.clone(), *exit)),
        _ => None,
    });
    let (code, signal) = (Exit::Code(3), Exit::Signal(15));
    assert_eq!(ended, [("a".to_owned(), code), ("a".to_owned(), code), ("dies".to_owned(), signal)]);
    let mut stored = Vec::new();
    transcript.store(&mut stored).unwrap();
    assert!(stored.len() < 16 << 10, "floods are recipes: {} bytes", stored.len());
}
