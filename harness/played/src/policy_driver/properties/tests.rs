//! Tests with generated blocks and near misses of each, besides the corpora and fuzz targets.

use ::base64::Engine as _;
use ::base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use super::*;
use peerproof_engine::data::json::{Presentation, present};
use peerproof_engine::data::rng::Rng;
use peerproof_policy_driver::block::Form;

/// Pieces of strings in a patch; some have a meaning around it.
const PIECES: [&str; 14] = [
    "</INP>",
    "<INP64>",
    "<END>",
    "<PICK><SID0001><END>",
    "\"",
    "\\",
    "\n",
    "\0",
    "é",
    "\u{2028}",
    "😀",
    "a",
    "",
    "</INP64>",
];

fn string(rng: &mut Rng) -> String {
    (0..rng.below(4)).map(|_| *rng.pick(&PIECES)).collect()
}

fn value(rng: &mut Rng, depth: u64) -> Json {
    match rng.below(if depth == 0 { 5 } else { 7 }) {
        0 => Json::Null,
        1 => rng.chance(1, 2).into(),
        2 => Json::from(rng.below(1 << 53)),
        3 => (rng.below(2_000) as i64 - 1_000).into(),
        4 => string(rng).into(),
        5 => Json::Array((0..rng.below(4)).map(|_| value(rng, depth - 1)).collect()),
        _ => object(rng, depth - 1),
    }
}

fn object(rng: &mut Rng, depth: u64) -> Json {
    let mut object = Json::Object(Vec::new());
    for _ in 0..rng.below(4) {
        object.set(&string(rng), value(rng, depth));
    }
    object
}

fn white_space(rng: &mut Rng) -> String {
    (0..rng.below(4)).map(|_| *rng.pick(&[' ', '\t', '\r', '\n'])).collect()
}

/// Block with its meaning.
fn valid(rng: &mut Rng) -> (String, Form, Option<String>, Option<Json>) {
    let form = *rng.pick(&Form::ALL);
    let sid = form.picks().then(|| format!("SID{:04}", rng.below(10_000)));
    let patch = matches!(form, Form::PickInp | Form::PickInp64).then(|| object(rng, 3));
    let pick = format!("<PICK><{}>", sid.as_deref().unwrap_or_default());
    let shown = patch.as_ref().map_or(String::new(), |patch| {
        // Respelled numbers and shuffled names keep the meaning; further members do not.
        let how = *rng.pick(&Presentation::ALL[..4]);
        present(patch, how, &mut || rng.next_u64())
    });
    let text = match form {
        Form::Pick => format!("{pick}<END>"),
        Form::PickInp => format!("{pick}<INP>{}{shown}</INP><END>", white_space(rng)),
        Form::PickInp64 => format!("{pick}<INP64>{}</INP64><END>", STANDARD.encode(shown)),
        Form::AskSup => "<ASK_SUP><END>".to_owned(),
        Form::Noop => "<NOOP><END>".to_owned(),
    };
    (white_space(rng) + &text + &white_space(rng), form, sid, patch)
}

#[test]
fn generated_blocks_are_read_as_they_were_meant() {
    let mut rng = Rng::new(41);
    for _ in 0..3_000 {
        let (text, form, sid, patch) = valid(&mut rng);
        let found = block(text.as_bytes()).unwrap_or_else(|fault| panic!("{}: {text:?}", fault.code()));
        assert_eq!((found.form, found.sid, found.patch), (form, sid, patch), "{text:?}");
        assert_eq!(found.open, BTreeSet::new(), "{text:?}");
    }
}

/// Makes one change, after which the text may or may not be a block.
fn near_miss(text: &mut Vec<u8>, rng: &mut Rng) {
    const TAGS: [&[u8]; 10] = [
        b"<PICK>",
        b"<INP>",
        b"</INP>",
        b"<INP64>",
        b"</INP64>",
        b"<END>",
        b"<NOOP>",
        b"<ASK_SUP>",
        b"<SID0007>",
        b"\xEF\xBB\xBF",
    ];
    const BYTES: [u8; 20] = *b" \n\x0B\x0C\"\\{}[]<>=-_+/\0\xFFa";
    let at = rng.index(text.len() + 1);
    let end = at + rng.index((text.len() - at).min(8) + 1);
    match rng.below(10) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..end)),
        2 => text.insert(at, *rng.pick(&BYTES)),
        3 => drop(text.splice(at..at, rng.pick(&TAGS).iter().copied())),
        4 => text[at..end].make_ascii_lowercase(),
        5 => drop(text.splice(at..end, rng.pick(&TAGS).iter().copied())),
        6 => text.extend_from_within(..),
        7 => text[at..end].reverse(),
        8 => text.iter_mut().for_each(|byte| match byte {
            b'{' => *byte = b'[',
            b'}' => *byte = b']',
            _ => {}
        }),
        _ => {
            let copy = text[at..end].to_vec();
            text.splice(at..at, copy);
        }
    }
}

#[test]
fn both_parsers_agree_on_near_misses() {
    let mut rng = Rng::new(42);
    let (mut taken, mut open, mut refused) = (0, 0, BTreeSet::new());
    for _ in 0..30_000 {
        let mut text = valid(&mut rng).0.into_bytes();
        for _ in 0..=rng.below(2) {
            near_miss(&mut text, &mut rng);
        }
        match block(&text) {
            Ok(block) if block.open.is_empty() => taken += 1,
            Ok(_) => open += 1,
            Err(fault) => drop(refused.insert(fault)),
        }
    }
    assert!(taken > 1_000 && open > 50, "{taken} taken, {open} open");
    // Another test covers too long blocks.
    assert_eq!(refused.len(), Fault::ALL.len() - 1, "{refused:?}");
}

#[test]
fn both_parsers_agree_on_sloppy_base64() {
    let mut rng = Rng::new(43);
    let (mut open, mut standard) = (0, 0);
    for _ in 0..3_000 {
        let patch = object(&mut rng, 2).to_text();
        let mut text = match rng.below(3) {
            0 => STANDARD.encode(patch),
            1 => STANDARD_NO_PAD.encode(patch),
            _ => URL_SAFE.encode(patch),
        }
        .into_bytes();
        for _ in 0..rng.below(3) {
            let at = rng.index(text.len() + 1);
            match rng.below(4) {
                0 => text.insert(at, *rng.pick(b" \n=\t")),
                1 => text.push(b'='),
                2 => drop(text.pop()),
                _ => text[at.saturating_sub(1)] = *rng.pick(b"AQgw_-+/"),
            }
        }
        let text = [b"<PICK><SID0001><INP64>", text.as_slice(), b"</INP64><END>"].concat();
        match block(&text) {
            Ok(block) if block.open.contains(&Open::LenientBase64) => open += 1,
            Ok(_) => standard += 1,
            Err(_) => {}
        }
    }
    assert!(open > 300 && standard > 300, "{open} open, {standard} standard");
}

#[test]
fn spelled_data_reaches_every_form() {
    let mut rng = Rng::new(44);
    let mut forms = BTreeSet::new();
    for round in 0..4_000 {
        let bytes: Vec<u8> = (0..rng.below(12)).map(|_| rng.next_u64() as u8).collect();
        let data = [&[round as u8 % 9], bytes.as_slice()].concat();
        forms.extend(block(&data).map(|block| block.form));
    }
    // Every word of these three is one byte of many.
    for form in [Form::PickInp, Form::PickInp64, Form::Noop] {
        assert!(forms.contains(&form), "{forms:?}");
    }
}

#[test]
fn arbitrary_bytes_break_nothing() {
    let mut rng = Rng::new(45);
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..rng.below(64)).map(|_| rng.next_u64() as u8).collect();
        drop(block(&bytes));
        payload(&bytes, Pieces::Every(3));
        merge(&bytes);
    }
}

#[test]
fn a_block_of_64_kib_is_read() {
    let frame = "<PICK><SID0001><INP>{\"a\":\"\"}</INP><END>".len();
    let filled = |bytes: usize| {
        let text = "é".repeat((bytes - frame) / 2) + &"x".repeat((bytes - frame) % 2);
        format!("<PICK><SID0001><INP>{{\"a\":\"{text}\"}}</INP><END>")
    };
    assert!(block(filled(OUTPUT_BYTES_MAX).as_bytes()).is_ok());
    assert_eq!(block(filled(OUTPUT_BYTES_MAX + 1).as_bytes()), Err(Fault::TooLong));
}
