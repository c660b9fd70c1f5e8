//! Checks of the five forms, the white space around them, and the writes that carry them.

use super::super::super::super::block::OUTPUT_BYTES_MAX;
use super::super::super::super::request::{Entry, Request};
use super::super::super::super::selector::expect::Expect;
use super::super::super::super::selector::talk::{Talk, says};
use super::{all_taken, check, inp, inp64, open};
use peerproof_engine::data::check::Check;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::ActorStep;

/// The checks of this topic.
pub(super) fn checks() -> Vec<Check> {
    vec![
        forms(),
        forms_with_patch(),
        white_space(),
        white_space_to_the_limit(),
        around("vertical-tab-around", "\u{B}<PICK><SID0042><END>\u{B}"),
        around("form-feed-around", "\u{C}<PICK><SID0042><END>\u{C}"),
        sid_not_in_menu(),
        writes(),
        writes_of_a_patch(),
    ]
}

fn forms() -> Check {
    check(
        "grammar/each-form",
        "PICK of any entry, ASK_SUP and NOOP are accepted as the Selection that they describe.",
        &["PD-GRAM-01"],
        |talk, _| {
            talk.canary("PD-GRAM-01");
            let blocks = ["<PICK><SID0007><END>", "<ASK_SUP><END>", "<PICK><SID0003><END>", "<NOOP><END>"];
            all_taken(talk, "PD-GRAM-01", blocks);
            // The smallest and largest SID, and digits with leading zeros.
            let request = Request::of(&[0, 9_999, 100, 10].map(Entry::plain));
            for sid in ["SID9999", "SID0010", "SID0100", "SID0000"] {
                let block = format!("<PICK><{sid}><END>");
                talk.play(&request, says(block.clone()), Expect::taken("PD-GRAM-01", block));
            }
        },
    )
}

fn forms_with_patch() -> Check {
    check(
        "grammar/each-form-with-patch",
        "PICK with INP or INP64 is accepted with its object.",
        &["PD-GRAM-01", "PD-GRAM-12", "PD-SELN-03"],
        |talk, _| {
            talk.canary("PD-GRAM-01");
            all_taken(talk, "PD-GRAM-01", [inp(r#"{"k":"v"}"#), inp64("eyJrIjoidiJ9"), inp(r#"{"a":[1]}"#)]);
        },
    )
    .feature("patches")
}

fn white_space() -> Check {
    check(
        "grammar/white-space-around",
        "Space, tab, LF and CR before and after a block are removed.",
        &["PD-GRAM-02"],
        |talk, _| {
            talk.canary("PD-GRAM-02");
            let blocks = [
                "<PICK><SID0042><END>\n",
                "<NOOP><END>\r\n",
                "\n\n<PICK><SID0042><END>",
                " <ASK_SUP><END>",
                "\t<PICK><SID0042><END>\t",
                "\r<NOOP><END>\r",
                " \t\r\n \n<PICK><SID0042><END>\n\r\t \r\n",
            ];
            all_taken(talk, "PD-GRAM-02", blocks);
        },
    )
}

fn white_space_to_the_limit() -> Check {
    check(
        "grammar/white-space-to-the-limit",
        "White space that fills the 65,536 bytes of an output, before or after its block, is removed.",
        &["PD-GRAM-02"],
        |talk, _| {
            talk.canary("PD-GRAM-02");
            let block = "<PICK><SID0042><END>";
            let room = OUTPUT_BYTES_MAX - block.len();
            let (spaces, lines) = (" ".repeat(room), "\r\n".repeat(room / 2));
            all_taken(talk, "PD-GRAM-02", [format!("{block}{lines}"), format!("{spaces}{block}")]);
        },
    )
}

fn around(name: &str, output: &'static str) -> Check {
    check(
        &format!("grammar/{name}"),
        "Vertical tab or form feed around a block is removed or makes it invalid.",
        &["PD-GRAM-03"],
        move |talk, _| {
            talk.canary("PD-GRAM-03");
            open(talk, "PD-GRAM-03", output.as_bytes(), "vt_ff_trim");
            talk.canary("PD-GRAM-03");
        },
    )
}

fn sid_not_in_menu() -> Check {
    check(
        "grammar/sid-not-in-menu",
        "A SID that is not in the menu of its own request is a failure, even if it occurs elsewhere.",
        &["PD-GRAM-07"],
        |talk, _| {
            talk.canary("PD-GRAM-07");
            let plain = Request::plain();
            // The smallest and largest SID, and neighbours of listed ones.
            for sid in ["SID0000", "SID0004", "SID0043", "SID0978", "SID9999"] {
                talk.play(&plain, says(format!("<PICK><{sid}><END>")), Expect::fallback("PD-GRAM-07"));
            }
            // A SID in the menu of the request before, in a name, a tag, an AID, the inputs and the goal.
            let mut named = Entry::plain(7).named("SID0042").tagged(&["SID0042"]);
            named.aid = "SID0042".to_owned();
            let other = Request::of(&[Entry::plain(3), named])
                .inputs(r#"{"sid":"SID0042","SID0042":1}"#)
                .with("goal_digest", "SID0042");
            let picks = |sid: &str| format!("<PICK><{sid}><END>");
            talk.play(&other, says(picks("SID0042")), Expect::fallback("PD-GRAM-07"));
            talk.play(&other, says(picks("SID0007")), Expect::taken("PD-GRAM-07", picks("SID0007")));
            let empty = Request::of(&[]);
            talk.play(&empty, says(picks("SID0007")), Expect::fallback("PD-GRAM-07"));
            talk.play(&empty, says("<ASK_SUP><END>"), Expect::taken("PD-GRAM-07", "<ASK_SUP><END>"));
            talk.canary("PD-GRAM-07");
        },
    )
}

/// Output in pieces with a pause between them, so that each arrives in a read of its own.
fn pieces(pieces: &[&[u8]]) -> Vec<ActorStep> {
    let mut turn = Vec::new();
    for piece in pieces {
        turn.extend([ActorStep::Stdout(Payload::from_bytes(piece)), ActorStep::Sleep { ms: 5 }]);
    }
    turn
}

fn play_pieces(talk: &mut Talk, cut: &[&[u8]]) {
    let expect = super::Allowed::Taken(Payload::from_bytes(&cut.concat()));
    talk.play(&Request::plain(), pieces(cut), Expect::new("PD-GRAM-17", expect));
}

fn writes() -> Check {
    check(
        "grammar/cut-into-writes",
        "A block that is written byte by byte, or in pieces with short pauses, is accepted like any other.",
        &["PD-GRAM-17"],
        |talk, _| {
            talk.canary("PD-GRAM-17");
            let bytes: Vec<&[u8]> = b"<PICK><SID0042><END>\n".chunks(1).collect();
            play_pieces(talk, &bytes);
            play_pieces(talk, &[b"\n", b"<NOOP><END>", b"\n"]);
            play_pieces(talk, &[b"<PICK>", b"<SID0042>", b"<END>"]);
            // A second block makes two blocks, even if it comes late.
            let late = pieces(&[b"<PICK><SID0042><END>", b"<PICK><SID0042><END>"]);
            talk.play(&Request::plain(), late, Expect::fallback("PD-GRAM-17"));
        },
    )
}

fn writes_of_a_patch() -> Check {
    check(
        "grammar/patch-cut-into-writes",
        "A patch that is written in pieces, cut inside a character, an escape or `</INP>`, is accepted \
         like any other.",
        &["PD-GRAM-17"],
        |talk, _| {
            talk.canary("PD-GRAM-17");
            let text = inp("{\"k\":\"é\u{1F600} \\u0041  </INP> \"}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            play_pieces(talk, &bytes);
            let (head, tail) = text.as_bytes().split_at(text.find('é').unwrap_or(0) + 1);
            play_pieces(talk, &[head, tail]);
            // White space at the end of a write is part of the string that continues.
            let (head, tail) = text.as_bytes().split_at(text.find(' ').unwrap_or(0) + 1);
            play_pieces(talk, &[head, tail]);
        },
    )
    .feature("patches")
}
