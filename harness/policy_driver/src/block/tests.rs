//! Tests of every form, of near misses, and of points that are left to the selector.

use super::*;

fn patch(text: &str) -> Option<Json> {
    Some(text.parse().expect("an object of this table"))
}

/// Valid blocks without open points: text, form, SID and patch.
#[rustfmt::skip]
const TAKEN: &[(&str, Form, Option<&str>, Option<&str>)] = &[
    ("<PICK><SID0007><END>", Form::Pick, Some("SID0007"), None),
    ("<PICK><SID0000><END>", Form::Pick, Some("SID0000"), None),
    ("<ASK_SUP><END>", Form::AskSup, None, None),
    ("<NOOP><END>", Form::Noop, None, None),
    (" \t\r\n<NOOP><END>\n\r\t ", Form::Noop, None, None),
    ("<PICK><SID0007><INP>{}</INP><END>", Form::PickInp, Some("SID0007"), Some("{}")),
    ("<PICK><SID9999><INP> \r\n\t{ \"a\" : null }\n</INP><END>\n", Form::PickInp, Some("SID9999"), Some(r#"{"a":null}"#)),
    (r#"<PICK><SID0007><INP>{"a":"</INP><END>"}</INP><END>"#, Form::PickInp, Some("SID0007"), Some(r#"{"a":"</INP><END>"}"#)),
    (r#"<PICK><SID0007><INP>{"a":"\"</INP>"}</INP><END>"#, Form::PickInp, Some("SID0007"), Some(r#"{"a":"\"</INP>"}"#)),
    (r#"<PICK><SID0007><INP>{"a\\":"<INP64>"}</INP><END>"#, Form::PickInp, Some("SID0007"), Some(r#"{"a\\":"<INP64>"}"#)),
    (r#"<PICK><SID0007><INP>{"</INP>":"<PICK><SID0001><END>","é":"</inp>"}</INP><END>"#, Form::PickInp, Some("SID0007"),
     Some(r#"{"</INP>":"<PICK><SID0001><END>","é":"</inp>"}"#)),
    (r#"<PICK><SID0007><INP>{"__proto__":{"a":[9007199254740991,-9007199254740991,0.1,5e-324,1.50]}}</INP><END>"#, Form::PickInp,
     Some("SID0007"), Some(r#"{"__proto__":{"a":[9007199254740991,-9007199254740991,0.1,5e-324,1.5]}}"#)),
    (r#"<PICK><SID0007><INP>{"a":"\ud83d\ude00"}</INP><END>"#, Form::PickInp, Some("SID0007"), Some(r#"{"a":"😀"}"#)),
    ("<PICK><SID0007><INP64>e30=</INP64><END>", Form::PickInp64, Some("SID0007"), Some("{}")),
    ("<PICK><SID0007><INP64>eyJhIjoxfQ==</INP64><END>", Form::PickInp64, Some("SID0007"), Some(r#"{"a":1}"#)),
    ("<PICK><SID0007><INP64>eyJhIjoifj8ifSAK</INP64><END>", Form::PickInp64, Some("SID0007"), Some(r#"{"a":"~?"}"#)),
    ("<PICK><SID0007><INP64>eyJhIjoiPC9JTlA2ND4ifQ==</INP64><END>", Form::PickInp64, Some("SID0007"), Some(r#"{"a":"</INP64>"}"#)),
];

#[test]
fn reads_every_form() {
    for (text, form, sid, object) in TAKEN {
        let block = parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{text}: {}", fault.code()));
        assert_eq!((block.form, block.sid.as_deref()), (*form, *sid), "{text}");
        assert_eq!(block.patch, object.and_then(patch), "{text}");
        assert_eq!(block.open, BTreeSet::new(), "{text}");
        assert_eq!(&text[block.span.clone()], text.trim(), "{text}");
        assert_eq!(block.driver_fault(), None, "{text}");
    }
}

/// Outputs that are not a block in any reading, with their faults.
#[rustfmt::skip]
const REFUSED: &[(&str, Fault)] = &[
    ("", Fault::Empty), (" \n", Fault::Empty), ("\u{b}", Fault::Empty),
    ("SID0007", Fault::NoBlock), ("{\"sid\":\"SID0007\"}", Fault::NoBlock), ("\0", Fault::NoBlock), ("<END>", Fault::NoBlock),
    ("<PICK ><SID0007><END>", Fault::NoBlock), ("< PICK><SID0007><END>", Fault::NoBlock), ("<SID0007><END>", Fault::NoBlock),
    ("\u{feff}<NOOP><END>", Fault::Bom), ("\n\u{feff}<NOOP><END>", Fault::Bom),
    ("<PICK><SID0007><INP>\u{feff}{}</INP><END>", Fault::Bom), ("<PICK><SID0007><INP64>77u/e30=</INP64><END>", Fault::Bom),
    ("I pick <PICK><SID0007><END>", Fault::TextBefore), ("<NOOP <NOOP><END>", Fault::TextBefore),
    ("\u{a0}<NOOP><END>", Fault::TextBefore), ("\0<NOOP><END>", Fault::TextBefore), ("<END><NOOP><END>", Fault::TextBefore),
    ("<NOOP><END>.", Fault::TextAfter), ("<NOOP><END>\u{85}", Fault::TextAfter), ("<NOOP><END>\0", Fault::TextAfter),
    ("<NOOP><END>\n<END>", Fault::TextAfter), ("<NOOP><END>\u{feff}", Fault::TextAfter),
    ("<NOOP> <END>", Fault::TextBetween), ("<PICK> <SID0007><END>", Fault::TextBetween), ("<PICK>SID0007<END>", Fault::TextBetween),
    ("<PICK><SID0007>\n<END>", Fault::TextBetween), ("<PICK><SID0007>,<INP>{}</INP><END>", Fault::TextBetween),
    ("<PICK><SID0007><INP>{}</INP> <END>", Fault::TextBetween), ("<PICK><SID0007><SID0008><END>", Fault::TextBetween),
    ("<PICK><SID0007></INP><END>", Fault::TextBetween), ("<NOOP><INP>{}</INP><END>", Fault::TextBetween),
    ("<ASK_SUP><SID0007><END>", Fault::TextBetween), ("<PICK><SID0007><INP>{}</INP></INP><END>", Fault::TextBetween),
    ("<PICK><SID0007><INP>{}</INP>}</INP><END>", Fault::TextBetween), ("<NOOP><ASK_SUP><END>", Fault::TextBetween),
    ("<NOOP><END><NOOP><END>", Fault::TwoBlocks), ("<PICK><SID0007><END>\n<PICK><SID0007><END>", Fault::TwoBlocks),
    ("<PICK><SID0007><PICK><SID0008><END>", Fault::SecondPick), ("<PICK><SID0007><INP>{}</INP><PICK><SID0007><END>", Fault::SecondPick),
    ("<PICK><SID0007><INP>{}</INP><INP64>e30=</INP64><END>", Fault::BothPatches),
    ("<PICK><SID0007><INP64>e30=</INP64><INP>{}</INP><END>", Fault::BothPatches),
    ("<PICK><SID0007><INP>{}</INP><INP>{}</INP><END>", Fault::BothPatches),
    ("<pick><SID0007><END>", Fault::LowerCase), ("<Noop><END>", Fault::LowerCase), ("<PICK><sid0007><END>", Fault::LowerCase),
    ("<PICK><SID0007><end>", Fault::LowerCase), ("<PICK><SID0007><inp>{}</inp><END>", Fault::LowerCase),
    ("<PICK><SID0007><INP>{}</inp><END>", Fault::LowerCase), ("<PICK><SID0007><INP64>e30=</Inp64><END>", Fault::LowerCase),
    ("<PICK><SID007><END>", Fault::BadSid), ("<PICK><SID00007><END>", Fault::BadSid), ("<PICK><SID><END>", Fault::BadSid),
    ("<PICK><END>", Fault::BadSid), ("<PICK><PICK><SID0007><END>", Fault::BadSid), ("<PICK><SID 007><END>", Fault::BadSid),
    ("<PICK><SID-007><END>", Fault::BadSid), ("<PICK><SID+007><END>", Fault::BadSid), ("<PICK><SID00a7><END>", Fault::BadSid),
    ("<PICK><SID000٧><END>", Fault::BadSid), ("<PICK><AID0007><END>", Fault::BadSid), ("<PICK>< SID0007><END>", Fault::BadSid),
    ("<PICK><INP>{}</INP><END>", Fault::BadSid),
    ("<PICK><SID0007><INP></INP><END>", Fault::PatchNotJson), ("<PICK><SID0007><INP>{'a':1}</INP><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP>{\"a\":1,}</INP><END>", Fault::PatchNotJson), ("<PICK><SID0007><INP>{}{}</INP><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP>{}<!-- --></INP><END>", Fault::PatchNotJson), ("<PICK><SID0007><INP>{\"a\":NaN}</INP><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP>{\"a\":\"\n\"}</INP><END>", Fault::PatchNotJson), ("<PICK><SID0007><INP>{\"a\":01}</INP><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP>\u{b}{}</INP><END>", Fault::PatchNotJson), ("<PICK><SID0007><INP>{} x</INP><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP>{</INP>}</INP><END>", Fault::PatchNotJson), ("<PICK><SID0007><INP64></INP64><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP64>eyJhIjo=</INP64><END>", Fault::PatchNotJson), ("<PICK><SID0007><INP64>eyKAfQ==</INP64><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP><INP>{}</INP></INP><END>", Fault::PatchNotJson),
    ("<PICK><SID0007><INP>[]</INP><END>", Fault::PatchNotObject), ("<PICK><SID0007><INP>null</INP><END>", Fault::PatchNotObject),
    ("<PICK><SID0007><INP>\"{}\"</INP><END>", Fault::PatchNotObject), ("<PICK><SID0007><INP64>W10=</INP64><END>", Fault::PatchNotObject),
    ("<PICK><SID0007><INP64>MQ==</INP64><END>", Fault::PatchNotObject),
    ("<PICK><SID0007><INP64>{}</INP64><END>", Fault::BadBase64), ("<PICK><SID0007><INP64>e30=e</INP64><END>", Fault::BadBase64),
    ("<PICK><SID0007><INP64>e30=e30=</INP64><END>", Fault::BadBase64), ("<PICK><SID0007><INP64>e30ab</INP64><END>", Fault::BadBase64),
    ("<PICK><SID0007><INP64>e30.</INP64><END>", Fault::BadBase64), ("<PICK><SID0007><INP64>e\0</INP64><END>", Fault::BadBase64),
    ("<PICK><SID0007><INP64>e30=<INP64></INP64><END>", Fault::BadBase64),
    ("<PICK", Fault::Unclosed), ("<", Fault::Unclosed), ("<PICK>", Fault::Unclosed), ("<PICK><SID00", Fault::Unclosed),
    ("<PICK><SID0007", Fault::Unclosed), ("<PICK><SID0007>", Fault::Unclosed), ("<PICK><SID0007><EN", Fault::Unclosed),
    ("<NOOP>", Fault::Unclosed), ("<ASK_SUP><END", Fault::Unclosed), ("<PICK><SID0007><INP>{}", Fault::Unclosed),
    ("<PICK><SID0007><INP>{}<END>", Fault::Unclosed), ("<PICK><SID0007><INP>{\"a\":\"b</INP><END>", Fault::Unclosed),
    ("<PICK><SID0007><INP>{\"a\":\"\\", Fault::Unclosed), ("<PICK><SID0007><INP>{}</INP64><END>", Fault::Unclosed),
    ("<PICK><SID0007><INP64>e30=</INP><END>", Fault::Unclosed), ("<PICK><SID0007><INP>{}</INP>", Fault::Unclosed),
];

#[test]
fn says_why_an_output_is_no_block() {
    for (text, fault) in REFUSED {
        assert_eq!(parse(text.as_bytes()), Err(*fault), "{text:?}");
    }
    assert_eq!(parse(b"<NOOP><END>\xff"), Err(Fault::NotUtf8));
    assert_eq!(parse(b"<PICK><SID0007><INP>{\"a\":\"\xed\xa0\x80\"}</INP><END>"), Err(Fault::NotUtf8));
    let used: BTreeSet<Fault> = REFUSED.iter().map(|(_, fault)| *fault).collect();
    let rest: Vec<&Fault> = Fault::ALL.iter().filter(|fault| !used.contains(fault)).collect();
    assert_eq!(rest, [&Fault::TooLong, &Fault::NotUtf8], "a reason without an example");
}

/// Blocks that only some selectors accept: text, patch and open point.
#[rustfmt::skip]
const OPEN: &[(&str, &str, Open)] = &[
    ("\u{b}<PICK><SID0007><INP>{}</INP><END>", "{}", Open::VtFfTrim),
    ("<PICK><SID0007><INP>{}</INP><END>\n\u{c}\n", "{}", Open::VtFfTrim),
    ("<PICK><SID0007><INP64>e30</INP64><END>", "{}", Open::LenientBase64),
    ("<PICK><SID0007><INP64>e30==</INP64><END>", "{}", Open::LenientBase64),
    ("<PICK><SID0007><INP64>e31=</INP64><END>", "{}", Open::LenientBase64),
    ("<PICK><SID0007><INP64> e30=\n</INP64><END>", "{}", Open::LenientBase64),
    ("<PICK><SID0007><INP64>e3 0=</INP64><END>", "{}", Open::LenientBase64),
    ("<PICK><SID0007><INP64>eyJhIjoiw7_DvsOgIn0=</INP64><END>", "{\"a\":\"ÿþà\"}", Open::LenientBase64),
    ("<PICK><SID0007><INP64>eyJhIjoifn5-In0=</INP64><END>", "{\"a\":\"~~~\"}", Open::LenientBase64),
    (r#"<PICK><SID0007><INP>{"a":1,"\u0061":2}</INP><END>"#, r#"{"a":1,"a":2}"#, Open::DuplicateKeys),
    (r#"<PICK><SID0007><INP>{"b":[{"":1,"":1}]}</INP><END>"#, r#"{"b":[{"":1,"":1}]}"#, Open::DuplicateKeys),
    (r#"<PICK><SID0007><INP>{"a":"\udc00"}</INP><END>"#, "{\"a\":\"\u{fffd}\"}", Open::LoneSurrogates),
    (r#"<PICK><SID0007><INP>{"\ud800x":0}</INP><END>"#, "{\"\u{fffd}x\":0}", Open::LoneSurrogates),
    ("<PICK><SID0007><INP>{\"a\":1e400}</INP><END>", "{\"a\":1e400}", Open::BigNumbers),
    ("<PICK><SID0007><INP>{\"a\":[-9007199254740992]}</INP><END>", "{\"a\":[-9007199254740992]}", Open::BigNumbers),
    ("<PICK><SID0007><INP>{\"a\":1e300}</INP><END>", "{\"a\":1e300}", Open::BigNumbers),
    ("<PICK><SID0007><INP>{\"a\":1e-400}</INP><END>", "{\"a\":1e-400}", Open::BigNumbers),
    ("<PICK><SID0007><INP>{\"a\":0.30000000000000000001}</INP><END>", "{\"a\":0.30000000000000000001}", Open::BigNumbers),
];

#[test]
fn tells_what_is_left_to_the_selector() {
    for (text, object, open) in OPEN {
        let block = parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{text:?}: {}", fault.code()));
        assert_eq!(block.open, BTreeSet::from([*open]), "{text:?}");
        assert_eq!(block.patch, patch(object), "{text:?}");
        assert_eq!(block.driver_fault().is_some(), *open == Open::LenientBase64, "{text:?}");
    }
}

#[test]
fn counts_levels_of_the_patch() {
    for (levels, open) in [(64, BTreeSet::new()), (65, BTreeSet::from([Open::DeepNesting]))] {
        let arrays = levels - 1;
        let text =
            format!("<PICK><SID0007><INP>{{\"a\":{}{}}}</INP><END>", "[".repeat(arrays), "]".repeat(arrays));
        assert_eq!(parse(text.as_bytes()).map(|block| block.open), Ok(open), "{levels}");
    }
}

#[test]
fn counts_every_byte_of_the_output() {
    let output = |bytes: usize| "<NOOP><END>".to_owned() + &" ".repeat(bytes - 11);
    assert_eq!(parse(output(65_536).as_bytes()).map(|block| block.form), Ok(Form::Noop));
    assert_eq!(parse(output(65_537).as_bytes()), Err(Fault::TooLong));
    assert_eq!(parse_within(output(100).as_bytes(), 100).map(|block| block.form), Ok(Form::Noop));
    assert_eq!(parse_within(output(101).as_bytes(), 100), Err(Fault::TooLong));
}

#[test]
fn codes_are_the_names_in_snake_case() {
    for fault in Fault::ALL {
        let name: String = format!("{fault:?}").to_lowercase();
        assert_eq!(fault.code().replace('_', ""), name);
        assert!(!fault.phrase().is_empty() && fault.to_string() == fault.phrase());
    }
    for form in Form::ALL {
        assert_eq!(form.name().replace('_', ""), format!("{form:?}").to_lowercase());
        assert!(form.name().starts_with(&form.kind().to_lowercase()));
        assert_eq!(form.picks(), form.kind() == "PICK");
    }
}
