//! Properties of the reference and of both block parsers for any bytes. Fuzz targets and tests call the same functions,
//! which panic if a property does not hold.

mod spell;
#[cfg(test)]
mod stored;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use peerproof_reference::json::{BigNumbers, DuplicateKeys, LoneSurrogates, Policy};
use peerproof_reference::machine::{Action, Event, Machine};
use peerproof_reference::policy_driver::block::{Block as Theirs, BlockReader, Rules};
use peerproof_reference::policy_driver::{Choices, Config, Driver, merge as merge_texts};

use peerproof_engine::data::json::{self, DecodeLimits, Decoded, Json};
use peerproof_policy_driver::block::{self, Block, Fault, OUTPUT_BYTES_MAX, Open};

use crate::input::Pieces;
pub use spell::{Merge, Payload};

/// Nesting that works everywhere.
const DEPTH: usize = 64;
/// Maximum nesting of the lenient reference, which writes trees recursively.
const LENIENT_DEPTH: usize = 1_000;

const KEEP: Policy = Policy {
    duplicate_keys: DuplicateKeys::Last,
    lone_surrogates: LoneSurrogates::Echo,
    big_numbers: BigNumbers::Exact,
};
const REFUSE: Policy = Policy {
    duplicate_keys: DuplicateKeys::Refuse,
    lone_surrogates: LoneSurrogates::Refuse,
    big_numbers: BigNumbers::Refuse,
};

/// The reference's parser, strict and lenient, and this crate's parser agree about the validity of a block, its form,
/// its SID and the value of its patch. Returns the result of this crate's parser.
///
/// # Panics
/// Panics if they differ although the contract leaves no choice.
pub fn block(data: &[u8]) -> Result<Block, Fault> {
    let text = spell::block(data);
    let ours = block::parse_within(&text, usize::MAX);
    for lenient in [false, true] {
        for policy in [KEEP, REFUSE] {
            compare(&text, &ours, lenient, policy);
        }
    }
    if let Ok(found) = &ours {
        let mut alone = found.clone();
        alone.span = 0..found.span.len();
        alone.open.remove(&Open::VtFfTrim);
        assert_eq!(block::parse_within(&text[found.span.clone()], usize::MAX), Ok(alone), "trimmed");
    }
    let limited = block::parse(&text);
    match text.len() > OUTPUT_BYTES_MAX {
        true => assert_eq!(limited, Err(Fault::TooLong)),
        false => assert_eq!(limited, ours),
    }
    limited
}

fn compare(text: &[u8], ours: &Result<Block, Fault>, lenient: bool, policy: Policy) {
    let nesting_max = if lenient { LENIENT_DEPTH } else { DEPTH };
    let rules = Rules { lenient_base64: lenient, trims_vt_ff: lenient, nesting_max, policy };
    let mut reader = BlockReader::new(rules);
    let theirs = reader.read(text);
    let said = || format!("{:?} under {rules:?}", String::from_utf8_lossy(text));
    match (ours, &theirs) {
        (Err(_), Err(_)) => {}
        (Err(fault), Ok(_)) => panic!("the reference takes what is no block ({}): {}", fault.code(), said()),
        (Ok(ours), Err(error)) => {
            // The reference does not accept a vertical tab in base64, and limits nesting.
            let may: &[Open] = match lenient {
                true => &[Open::LenientBase64, Open::DeepNesting],
                false => &[Open::LenientBase64, Open::DeepNesting, Open::VtFfTrim],
            };
            let refused = refused_by(&policy, &[Open::BigNumbers]);
            let open = ours.open.iter().any(|open| may.contains(open) || refused.contains(open));
            assert!(open, "the reference refuses a block ({error}): {}", said());
        }
        (Ok(ours), Ok(theirs)) => {
            let strict = [Open::LenientBase64, Open::DeepNesting, Open::VtFfTrim];
            let mut must = refused_by(&policy, &[]);
            must.extend(if lenient { &[][..] } else { &strict });
            let overlooked: Vec<_> = ours.open.intersection(&must).collect();
            assert!(overlooked.is_empty(), "the reference overlooks {overlooked:?}: {}", said());
            same(ours, theirs);
        }
    }
}

/// Open points that a policy has refused, including `more`, which it may refuse.
fn refused_by(policy: &Policy, more: &[Open]) -> BTreeSet<Open> {
    let always = [Open::DuplicateKeys, Open::LoneSurrogates];
    let all = always.iter().chain(more).copied();
    all.filter(|_| policy.duplicate_keys == DuplicateKeys::Refuse).collect()
}

fn same(ours: &Block, theirs: &Theirs<'_>) {
    let (kind, sid, patch) = match theirs {
        Theirs::Pick { sid, patch } => ("PICK", Some(sid.to_string()), patch.as_deref()),
        Theirs::AskSup => ("ASK_SUP", None, None),
        Theirs::Noop => ("NOOP", None, None),
    };
    assert_eq!((ours.form.kind(), &ours.sid), (kind, &sid));
    let patch = patch.map(|text| read(text.as_bytes()).value);
    // Names that differ only in lone surrogates are equal in the harness.
    if !(ours.open.contains(&Open::DuplicateKeys) && ours.open.contains(&Open::LoneSurrogates)) {
        assert_eq!(ours.patch, patch, "the value of the patch");
    }
}

/// For any payload and every choice, the reference driver either writes nothing and fails, or writes one valid block
/// that picks from the menu. Returns the block of the driver with default choices.
///
/// # Panics
/// Panics if the property does not hold.
pub fn payload(text: &[u8], pieces: Pieces) -> Option<Block> {
    for (key, values) in Choices::ALL {
        for value in *values {
            let mut choices = Choices::default();
            choices.set(key, value).unwrap_or_else(|error| panic!("{error}"));
            let config = Config { choices, ..Config::default() };
            let written = run(config, text, Pieces::Whole);
            judge(text, &written, (key, value));
        }
    }
    let written = run(Config::default(), text, pieces);
    assert_eq!(written, run(Config::default(), text, Pieces::Whole), "any chunking means the same");
    judge(text, &written, ("", ""))
}

/// Output and exit status of the driver.
fn run(config: Config, payload: &[u8], pieces: Pieces) -> (Vec<u8>, i32) {
    let mut driver = Driver::new(config);
    let mut actions = Vec::new();
    for bytes in pieces.of(payload) {
        driver.handle(Event::Stdin(bytes), 0, &mut actions);
    }
    assert!(actions.is_empty(), "it waits for the whole payload");
    driver.handle(Event::StdinEof, 0, &mut actions);
    let (mut stdout, mut status) = (Vec::new(), None);
    for action in actions {
        assert_eq!(status, None, "nothing follows the end");
        match action {
            Action::Stdout(bytes) => stdout.extend(bytes),
            Action::Stderr(_) => {}
            Action::Exit(code) => status = Some(code),
            other => panic!("unexpected {other:?}"),
        }
    }
    (stdout, status.unwrap_or_else(|| panic!("it ends")))
}

/// Judges the output of a driver with one choice.
fn judge(text: &[u8], (stdout, status): &(Vec<u8>, i32), choice: (&str, &str)) -> Option<Block> {
    if stdout.is_empty() {
        assert_ne!(*status, 0, "it wrote nothing");
        return None;
    }
    assert_eq!(*status, 0, "it wrote a block");
    let said = || format!("{} for {:?}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(text));
    let block = block::parse(stdout).unwrap_or_else(|fault| panic!("{}: {}", fault.code(), said()));
    assert!(block.driver_fault().is_none() && !block.open.contains(&Open::VtFfTrim), "{}", said());
    let Some(sid) = &block.sid else { return Some(block) };
    if choice == ("nearly_json_payload", "pick") {
        return Some(block);
    }
    let ignored = text.strip_prefix(b"\xEF\xBB\xBF").filter(|_| choice == ("bom", "ignore"));
    let bare = ignored.unwrap_or(text);
    let Ok(Decoded { value, facts }) = json::decode(bare, &DecodeLimits::default()) else {
        panic!("a pick from no JSON: {}", said());
    };
    // With this choice, the driver uses another value than this crate.
    if choice == ("duplicate_keys", "first") && facts.duplicate_keys {
        return Some(block);
    }
    let menu = value.get("menu").and_then(Json::as_array).unwrap_or_default();
    let listed = menu.iter().any(|entry| entry.get("sid").and_then(Json::as_str) == Some(sid));
    assert!(listed, "a pick that is not in the menu: {}", said());
    let inputs = value.get("inputs");
    assert!(inputs.is_none_or(|inputs| inputs.as_object().is_some()), "inputs of a wrong type: {}", said());
    let sent = ["policy_patch", "policy_patch64"].map(|name| inputs.and_then(|inputs| inputs.get(name)));
    let sent = sent.into_iter().flatten().find(|patch| patch.as_object().is_some());
    if !(facts.duplicate_keys && facts.lone_surrogates) && choice.1 != "round" {
        assert_eq!(block.patch.as_ref(), sent, "the patch that was asked for: {}", said());
    }
    Some(block)
}

/// The reference merges two objects, one per line, as the model does: every member of the patch replaces one of the
/// inputs. Returns true if there was something to merge.
///
/// # Panics
/// Panics if the property does not hold.
pub fn merge(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Some((inputs, patch)) = text.split_once('\n') else { return false };
    let limits = DecodeLimits { depth_max: DEPTH, ..DecodeLimits::default() };
    let both = [inputs, patch].map(|text| json::decode(text.as_bytes(), &limits));
    let merged = merge_texts(inputs, patch, DEPTH);
    let [Ok(of_inputs), Ok(of_patch)] = both else {
        assert!(merged.is_err(), "{merged:?} of what is no JSON: {inputs:?} and {patch:?}");
        return false;
    };
    let is_open = |decoded: &Decoded| decoded.facts.duplicate_keys || decoded.facts.lone_surrogates;
    let objects = of_inputs.value.as_object().is_some() && of_patch.value.as_object().is_some();
    if !objects || is_open(&of_inputs) || is_open(&of_patch) {
        return false;
    }
    let mut model = of_inputs.value;
    of_patch
        .value
        .as_object()
        .unwrap_or_default()
        .iter()
        .for_each(|(name, value)| model.set(name, value.clone()));
    let merged = merged.unwrap_or_else(|error| panic!("{error}: {inputs} and {patch}"));
    let read = read(merged.as_bytes());
    assert!(!read.facts.duplicate_keys, "a name twice in {merged}");
    assert_eq!(read.value, model, "{inputs} and {patch}");
    assert_eq!(merge_texts(&merged, patch, DEPTH).as_ref(), Ok(&merged), "merging twice is merging once");
    true
}

fn read(text: &[u8]) -> Decoded {
    json::decode(text, &DecodeLimits::default())
        .unwrap_or_else(|error| panic!("{error} in {:?}", String::from_utf8_lossy(text)))
}
