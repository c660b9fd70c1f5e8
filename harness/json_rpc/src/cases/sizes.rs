//! Messages whose sizes depend on the line limits, and the memory that refusing long lines takes.

use super::super::model::{LINE_BYTES_CERTAIN, LINE_BYTES_MAX};
use super::super::talk::{Talk, call, good, quoted};
use super::words::role_call;
use peerproof_engine::contract::memory::{IDLE, INPUTS, further, piece, sample};
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::near_miss::MARK;
use peerproof_engine::data::payload::Payload;
use peerproof_engine::data::plan::{Capture, Chunking};
use peerproof_engine::data::rng::Rng;
use peerproof_engine::data::sizes::{Fill, padded};

/// Distance of the checks from both limits, bytes. A carriage return more or less changes nothing.
const CLEAR_BYTES: usize = 2;
const ACCEPTED: usize = LINE_BYTES_CERTAIN - CLEAR_BYTES;
const REFUSED: usize = LINE_BYTES_MAX + CLEAR_BYTES;
/// Time for a slow peer to read or write a large message, ms.
pub(crate) const LARGE_MS: u64 = 10_000;

fn line(body: Payload) -> Payload {
    body.then(Payload::text("\n"))
}

/// A line that just fits, mostly white space around a message.
pub(crate) fn white_space_that_fits(
    talk: &mut Talk<'_>,
    facts: &Facts,
    _: &mut Rng,
) -> Result<(), Untestable> {
    white_space(talk, facts, ACCEPTED)
}

/// As [`white_space_that_fits`], but too long.
pub(crate) fn white_space_over_limit(
    talk: &mut Talk<'_>,
    facts: &Facts,
    _: &mut Rng,
) -> Result<(), Untestable> {
    white_space(talk, facts, REFUSED)
}

fn white_space(talk: &mut Talk<'_>, facts: &Facts, bytes: usize) -> Result<(), Untestable> {
    let body = good(facts, 0, &quoted(&bytes.to_string()));
    let spaces = (bytes - body.len()) as u64;
    let spaced = Payload::default().repeat(" ", spaces / 2).then(Payload::text(body));
    talk.send_as(line(spaced.repeat(" ", spaces - spaces / 2)), Chunking::Whole);
    Ok(())
}

/// A line of twice the limit, full of requests.
pub(crate) fn many_requests_in_one_line(
    talk: &mut Talk<'_>,
    facts: &Facts,
    _: &mut Rng,
) -> Result<(), Untestable> {
    let inside = good(facts, 0, "\"inside\"");
    let times = 2 * (LINE_BYTES_MAX / inside.len()) as u64;
    talk.send_as(line(Payload::default().repeat(inside + " ", times)), Chunking::Whole);
    Ok(())
}

/// An over-long line between two requests, all in one write.
pub(crate) fn over_limit_between_others(
    talk: &mut Talk<'_>,
    facts: &Facts,
    _: &mut Rng,
) -> Result<(), Untestable> {
    let request = |number, id| Payload::text(good(facts, number, id));
    let long = padded(request(0, "\"long\""), Fill::MultiByte.unit(), REFUSED);
    let all = line(request(1, "\"before\"")).then(line(long)).then(line(request(2, "\"behind\"")));
    talk.send_as(all, Chunking::Whole);
    Ok(())
}

/// Params of almost a megabyte.
pub(crate) fn large_echoes(talk: &mut Talk<'_>, _: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    let frame = call(&talk.method("echo"), Some("[\"#\"]"), Some("0"));
    let (head, tail) = frame.split_once('#').unwrap_or_default();
    for (at, unit) in ["x", "é€😀", "\\\"\\\\\\n\\u0001"].into_iter().enumerate() {
        let tail = tail.replace("\"id\":0", &format!("\"id\":{at}"));
        let times = (ACCEPTED - frame.len()) / unit.len();
        let body = Payload::text(head).repeat(unit, times as u64).then(Payload::text(tail));
        talk.send_as(line(body), Chunking::Whole).allow_ms(LARGE_MS);
    }
    Ok(())
}

/// A result that would be one byte too long. The length of the message around it is measured first, with a smaller
/// result.
pub(crate) fn one_byte_over_limit(talk: &mut Talk<'_>, facts: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    /// Bytes of a result that always fits.
    const MEASURED: u64 = 80_000;
    /// Placeholder for a number that is still unknown.
    const UNKNOWN: u64 = 987_654_321_098;
    let call = |bytes| role_call(facts, "blob", Some(("bytes", bytes)), &["\"edge\""]);
    let (pointer, var) = ("/result/data".to_owned(), "data".to_owned());
    let length = format!("{var}{MARK}fill-{}", LINE_BYTES_MAX + 1);
    let capture = Capture { pointer, var, secret: false, until: None };
    talk.send(&call(MEASURED)?).allow_ms(LARGE_MS).last(|step| step.capture = Some(capture));
    let text = call(UNKNOWN)?;
    let (head, tail) = text.split_once(&UNKNOWN.to_string()).unwrap_or_default();
    let body = Payload::text(head).var(length).then(Payload::text(tail));
    talk.push(line(body), Chunking::Whole, 1).allow_ms(LARGE_MS);
    Ok(())
}

/// Two lines far over the limit, and the memory that refusing them takes.
pub(super) fn memory(talk: &mut Talk<'_>, _: &Facts, _: &mut Rng) -> Result<(), Untestable> {
    talk.act(sample(IDLE));
    for (pieces, label) in INPUTS {
        talk.push(Payload::text("{\"pad\":\"").then(piece()), Chunking::Whole, 0);
        for act in further(pieces, "\"}\n") {
            talk.act(act).allow_ms(LARGE_MS);
        }
        talk.canary().allow_ms(LARGE_MS);
        talk.act(sample(label));
    }
    Ok(())
}
