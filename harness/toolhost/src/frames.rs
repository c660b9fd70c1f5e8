//! Standard output of a toolhost, split into reply frames and other output.

use super::align::Frame;
use peerproof_engine::data::finding::Finding;
use peerproof_engine::data::json::{self, DecodeErrorKind, DecodeLimits, Json};
use peerproof_engine::data::lines;
use peerproof_engine::data::payload::shorten;
use peerproof_engine::data::transcript::{EventKind, Transcript};

/// Clause: replies are strict JSON in strict UTF-8.
const STRICT_JSON: &str = "TH-REPLY-01";
/// Clause: a reply is one object on one line.
const ONE_OBJECT: &str = "TH-REPLY-02";

/// Number of frames checked beyond twice the number of requests, so that endless output costs no more.
const FRAMES_SPARE: usize = 1_000;
/// Largest number of lines of a reply that is recognised although it is spread over several lines.
const SPREAD_LINES_MAX: usize = 64;

/// A JSON string literal for `text`.
pub fn quoted(text: &str) -> String {
    Json::from(text).to_text()
}

/// One frame, decoded if it is strict JSON.
pub(crate) fn decode(bytes: &[u8]) -> Frame {
    let value = json::decode(bytes, &DecodeLimits::default())
        .map(|decoded| decoded.value)
        .map_err(|error| error.to_string());
    Frame { bytes: bytes.to_vec(), value, place: 0 }
}

/// Frames of a session, and the output after the last of them. In run mode a frame has no position, because all of
/// standard input is one request.
pub(crate) fn of(transcript: &Transcript, session: usize) -> (Vec<Frame>, Vec<u8>) {
    let out = transcript.stdout(session);
    if transcript.plan.sessions[session].command == "run" {
        let mut frames = whole(&out);
        frames.iter_mut().for_each(|frame| frame.place = usize::MAX);
        return (frames, Vec::new());
    }
    let sent = transcript.of(session).map(|event| match &event.kind {
        EventKind::Sent { payload, .. } => payload.lines(),
        _ => 0,
    });
    let (frames, rest) = lines(&out, &lines::line_feeds(transcript, session), 1 + sent.sum::<usize>());
    (frames, rest.to_vec())
}

/// Complete lines of serve mode, up to a limit that depends on `requests`, and the output after the last line feed. An
/// object that spans several lines is one frame; [`shape`] reports it. `places` holds the position of each line feed.
pub(crate) fn lines<'a>(out: &'a [u8], places: &[usize], requests: usize) -> (Vec<Frame>, &'a [u8]) {
    let end = out.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let frames: Vec<Frame> = out[..end]
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| &line[..line.len() - 1])
        .zip(places)
        .map(|(line, place)| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            Frame { place: *place, ..decode(line) }
        })
        .take(requests * 2 + FRAMES_SPARE)
        .collect();
    let broken = frames.iter().any(|frame| frame.value.is_err());
    (if broken { joined(frames) } else { frames }, &out[end..])
}

fn joined(lines: Vec<Frame>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let spread = starts_object(&lines[at]).then(|| spread_object(&lines[at..])).flatten();
        let (frame, used) = spread.unwrap_or_else(|| (decode(&lines[at].bytes), 1));
        at += used;
        frames.push(Frame { place: lines[at - 1].place, ..frame });
    }
    frames
}

fn starts_object(line: &Frame) -> bool {
    line.value.is_err() && line.bytes.trim_ascii_start().starts_with(b"{")
}

/// Object that begins on the first of these lines, with its number of lines.
fn spread_object(lines: &[Frame]) -> Option<(Frame, usize)> {
    let mut bytes = lines.first()?.bytes.clone();
    for (index, line) in lines.iter().enumerate().take(SPREAD_LINES_MAX).skip(1) {
        bytes.push(b'\n');
        bytes.extend(&line.bytes);
        let frame = decode(&bytes);
        if frame.value.is_ok() {
            return Some((frame, index + 1));
        }
    }
    None
}

/// Frames of run mode. All of standard output should be one reply; otherwise replies on single lines are recognised.
pub(crate) fn whole(out: &[u8]) -> Vec<Frame> {
    if out.iter().all(u8::is_ascii_whitespace) {
        return Vec::new();
    }
    let all = decode(out);
    let is_reply = |frame: &Frame| frame.value.as_ref().is_ok_and(|value| value.get("ok").is_some());
    if all.value.is_ok() {
        return vec![all];
    }
    let lines: Vec<Frame> = out.split(|byte| *byte == b'\n').map(decode).collect();
    if !lines.iter().any(is_reply) {
        return vec![all];
    }
    let mut frames: Vec<Frame> = Vec::new();
    for line in lines {
        match frames.last_mut() {
            Some(last) if !is_reply(last) && !is_reply(&line) => {
                last.bytes.push(b'\n');
                last.bytes.extend(&line.bytes);
            }
            _ if line.bytes.is_empty() => {}
            _ => frames.push(line),
        }
    }
    frames
}

/// True if run mode writes line feeds before its object, or more than one after it.
pub(crate) fn has_blank_lines(out: &[u8]) -> bool {
    let after = out.iter().rev().take_while(|byte| byte.is_ascii_whitespace());
    out.starts_with(b"\n") || out.starts_with(b"\r\n") || after.filter(|byte| **byte == b'\n').count() > 1
}

/// Fault in the form of a frame that is JSON.
pub(crate) fn shape(frame: &Frame, serve: bool) -> Option<Finding> {
    (serve && frame.value.is_ok() && frame.bytes.contains(&b'\n')).then(|| {
        let got = shorten(&String::from_utf8_lossy(&frame.bytes), 200).into_owned();
        Finding::new(ONE_OBJECT, "line_feed_inside", "a reply on one line", got)
    })
}

/// Finding about a reply that is not JSON.
pub(crate) fn undecodable(frame: &Frame, error: &str) -> Finding {
    let got = format!("{error}: {}", shorten(&String::from_utf8_lossy(&frame.bytes), 160));
    if has_second_value(&frame.bytes) {
        return Finding::new(ONE_OBJECT, "two_values", "exactly one JSON object", got);
    }
    Finding::new(STRICT_JSON, "reply_not_json", "a reply in strict JSON", got)
}

fn has_second_value(bytes: &[u8]) -> bool {
    match json::decode(bytes, &DecodeLimits::default()) {
        Err(error) if error.kind == DecodeErrorKind::TrailingBytes => {
            let rest = bytes.get(error.offset..).unwrap_or_default();
            json::decode(rest, &DecodeLimits::default()).is_ok_and(|rest| !rest.value.is_null())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &str = r#"{"ok":false,"error":"e"}"#;

    fn texts(frames: &[Frame]) -> Vec<String> {
        frames.iter().map(|frame| String::from_utf8_lossy(&frame.bytes).into_owned()).collect()
    }

    #[test]
    fn an_object_over_several_lines_is_one_frame() {
        let out = format!("{REPLY}\n{{\n  \"ok\": false,\n  \"error\": \"e\"\n}}\n{REPLY}\n");
        let (frames, rest) = lines(out.as_bytes(), &[0; 9], 3);
        assert_eq!(frames.len(), 3, "{:?}", texts(&frames));
        assert!(rest.is_empty());
        assert_eq!(shape(&frames[1], true).unwrap().reason, "line_feed_inside");
        assert!(shape(&frames[0], true).is_none() && shape(&frames[1], false).is_none());
    }

    #[test]
    fn lines_that_only_begin_like_objects_stay_apart() {
        let out = format!("{{ broken\nx\n{REPLY}\n{{\n");
        let (frames, _) = lines(out.as_bytes(), &[0; 9], 1);
        assert_eq!(texts(&frames), ["{ broken", "x", REPLY, "{"]);
    }

    #[test]
    fn noise_around_a_run_reply_is_told_from_it() {
        let frames = whole(format!("banner\nmore\n{REPLY}\n").as_bytes());
        assert_eq!(texts(&frames), ["banner\nmore", REPLY]);
        assert_eq!(whole(format!("{REPLY}\n").as_bytes()).len(), 1);
        assert_eq!(texts(&whole(b"no json at all\n")), ["no json at all\n"]);
        assert!(whole(b" \n").is_empty());
    }

    #[test]
    fn two_objects_on_a_line_are_not_one() {
        let frame = decode(format!("{REPLY}{REPLY}").as_bytes());
        let error = frame.value.as_ref().unwrap_err().clone();
        assert_eq!(undecodable(&frame, &error).reason, "two_values");
        let frame = decode(format!("{REPLY} bye").as_bytes());
        let error = frame.value.as_ref().unwrap_err().clone();
        assert_eq!(undecodable(&frame, &error).reason, "reply_not_json");
    }

    #[test]
    fn one_newline_after_a_run_reply_is_allowed() {
        let blank = |text: String| has_blank_lines(text.as_bytes());
        assert!(!blank(REPLY.to_owned()) && !blank(format!("{REPLY}\n")) && !blank(format!("{REPLY}\r\n")));
        assert!(blank(format!("\n{REPLY}")) && blank(format!("{REPLY}\n\n")));
    }
}
