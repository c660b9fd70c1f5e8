//! Checks with random payloads.

use super::super::super::driver::expect::Expect;
use super::super::super::generate;
use super::super::super::request::{Entry, Request};
use super::seeded;
use peerproof_engine::data::check::Check;
use peerproof_engine::data::rng::Rng;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![small_menus(), large_menus()]
}

fn small_menus() -> Check {
    seeded(
        "properties/small-menus",
        "For each of a dozen generated payloads, the driver picks an entry of its menu or prints another \
         form.",
        &["PD-LOAD-07"],
        |talk, rng| {
            for _ in 0..12 {
                talk.decide(&generate::request(rng), Expect::block("PD-LOAD-07").narrow());
            }
        },
    )
}

fn large_menus() -> Check {
    seeded(
        "properties/large-menus",
        "For each of six generated menus of hundreds of entries, the driver picks one or prints another \
         form.",
        &["PD-LOAD-07"],
        |talk, rng| {
            for _ in 0..6 {
                talk.decide(&large(rng), Expect::block("PD-LOAD-07").narrow());
            }
        },
    )
}

/// A request with hundreds of entries in random order, with names and tags of any characters.
fn large(rng: &mut Rng) -> Request {
    const TAGS: [&str; 6] = ["http", "shell", "file", "", "HTTP", "tag"];
    let mut numbers: Vec<u32> = (0..10_000).collect();
    rng.shuffle(&mut numbers);
    let count = 100 + rng.index(400);
    let entries = numbers.into_iter().take(count).map(|number| {
        let tags: Vec<&str> = (0..rng.index(4)).map(|_| *rng.pick(&TAGS)).collect();
        let aid = (*rng.pick(&["AID.A.v1", "AID.B.v1", ""])).to_owned();
        Entry { aid, ..Entry::plain(number) }.named(&text(rng)).tagged(&tags)
    });
    let entries: Vec<Entry> = entries.collect();
    let wanted = *rng.pick(&["url", "cmd", "path", "text"]);
    let inputs = peerproof_engine::data::json::Json::object([
        (wanted, text(rng).into()),
        ("x", peerproof_engine::data::json::Json::Null),
    ]);
    Request::of(&entries).with("inputs", inputs).with("goal_digest", text(rng))
}

/// Up to a dozen characters, a third of them from any Unicode plane.
fn text(rng: &mut Rng) -> String {
    let character = |rng: &mut Rng| match rng.index(3) {
        0 => u32::try_from(rng.below(0x11_0000)).ok().and_then(char::from_u32).unwrap_or('\u{0}'),
        _ => char::from(u8::try_from(rng.below(128)).unwrap_or(0)),
    };
    (0..rng.index(13)).map(|_| character(rng)).collect()
}
