//! Bounded framing of a byte stream into lines.
//!
//! A [`LineReader`] holds at most one unfinished line of at most `line_bytes_max` bytes. A longer line is reported
//! once, at the byte that crosses the limit; the rest of it is dropped up to its LF.

use memchr::memchr;

/// Capacity in bytes that is kept for the next line. A larger buffer is freed after its line.
const KEPT_BYTES: usize = 4 * 1024 * 1024;

/// One frame of a stream of lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line without its LF and without a CR before it.
    Line(&'a [u8]),
    /// A line longer than the limit, whose bytes were dropped.
    TooLong,
}

/// Treatment of a line of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlankLine {
    /// The line is ignored.
    Ignore,
    /// The line is a malformed message.
    Refuse,
}

/// Treatment of a last line without LF.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLine {
    /// Processed like any other line.
    Process,
    /// Refused, whatever its content.
    Refuse,
    /// Processed if it is complete, silently dropped if it is cut.
    Silent,
}

/// Splits a byte stream into lines, independent of chunk boundaries.
#[derive(Debug)]
pub struct LineReader {
    line_bytes_max: usize,
    partial: Vec<u8>,
    /// True if `partial` was returned as a line; it is dropped at the next call.
    spent: bool,
    /// True if the bytes up to the next LF belong to a line that was reported as too long.
    discarding: bool,
}

impl LineReader {
    /// Creates a reader that accepts lines of up to `line_bytes_max` bytes, LF not counted.
    pub fn new(line_bytes_max: usize) -> Self {
        Self { line_bytes_max, partial: Vec::new(), spent: false, discarding: false }
    }

    /// Takes the next frame from the front of `input`. Consumes all of `input` if no frame ends in it.
    pub fn next<'f, 'i: 'f>(&'f mut self, input: &mut &'i [u8]) -> Option<Frame<'f>> {
        self.drop_spent();
        let end = memchr(b'\n', input);
        if self.discarding {
            let Some(end) = end else {
                *input = &[];
                return None;
            };
            *input = &input[end + 1..];
            self.discarding = false;
            return self.next(input);
        }
        let head = &input[..end.unwrap_or(input.len())];
        if head.len() > self.line_bytes_max - self.partial.len() {
            self.partial = Vec::new();
            self.discarding = end.is_none();
            *input = end.map_or(&[], |end| &input[end + 1..]);
            return Some(Frame::TooLong);
        }
        let Some(end) = end else {
            self.append(head);
            *input = &[];
            return None;
        };
        *input = &input[end + 1..];
        if self.partial.is_empty() {
            return Some(Frame::Line(without_cr(head)));
        }
        self.append(head);
        self.spent = true;
        Some(Frame::Line(without_cr(&self.partial)))
    }

    /// Last line of a stream that ended without an LF; `None` if it was reported as too long.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.drop_spent();
        self.discarding = false;
        if self.partial.is_empty() {
            return None;
        }
        self.spent = true;
        Some(Frame::Line(without_cr(&self.partial)))
    }

    /// Bytes of the unfinished line in memory.
    pub fn held_bytes(&self) -> usize {
        if self.spent { 0 } else { self.partial.len() }
    }

    fn drop_spent(&mut self) {
        if self.spent {
            self.spent = false;
            self.partial.clear();
            if self.partial.capacity() > KEPT_BYTES {
                self.partial = Vec::new();
            }
        }
    }

    /// Appends within the limit; capacity doubles but never exceeds the limit.
    fn append(&mut self, bytes: &[u8]) {
        let needed = self.partial.len() + bytes.len();
        if needed > self.partial.capacity() {
            let target = needed.max(self.partial.capacity() * 2).min(self.line_bytes_max);
            self.partial.reserve_exact(target - self.partial.len());
        }
        self.partial.extend_from_slice(bytes);
    }
}

/// Appends to the buffer of a stream that is read as a whole. If the result would exceed `bytes_max`, empties the
/// buffer and returns false.
pub(crate) fn append_within(held: &mut Vec<u8>, bytes: &[u8], bytes_max: usize) -> bool {
    if bytes.len() > bytes_max.saturating_sub(held.len()) {
        *held = Vec::new();
        return false;
    }
    held.extend_from_slice(bytes);
    true
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frames of `stream` fed in chunks of the given sizes (cycled); `None` stands for a too long line.
    fn frames(stream: &[u8], sizes: &[usize], line_bytes_max: usize) -> Vec<Option<Vec<u8>>> {
        let mut reader = LineReader::new(line_bytes_max);
        let mut out = Vec::new();
        let mut keep = |frame: Frame<'_>| match frame {
            Frame::Line(line) => out.push(Some(line.to_vec())),
            Frame::TooLong => out.push(None),
        };
        let mut rest = stream;
        let mut turn = 0;
        while !rest.is_empty() {
            let (mut chunk, tail) = rest.split_at(sizes[turn % sizes.len()].min(rest.len()));
            turn += 1;
            rest = tail;
            while !chunk.is_empty() {
                if let Some(frame) = reader.next(&mut chunk) {
                    keep(frame);
                }
                assert!(reader.held_bytes() <= line_bytes_max);
            }
        }
        if let Some(frame) = reader.finish() {
            keep(frame);
        }
        out
    }

    fn line(text: &str) -> Option<Vec<u8>> {
        Some(text.as_bytes().to_vec())
    }

    #[test]
    fn every_chunking_gives_the_same_frames() {
        let stream = "ab\n\r\ncdé\r\n12345678\n123456789\nx\n1234567890123".as_bytes();
        let expected = [line("ab"), line(""), line("cdé"), line("12345678"), None, line("x"), None];
        for size in 1..=stream.len() {
            assert_eq!(frames(stream, &[size], 8), expected, "chunks of {size}");
        }
    }

    #[test]
    fn accepts_line_at_limit_without_lf() {
        assert_eq!(frames(b"1234", &[1], 4), [line("1234")]);
        assert_eq!(frames(b"12345", &[1], 4), [None]);
        assert_eq!(frames(b"12345", &[5], 4), [None]);
    }

    #[test]
    fn gives_back_the_buffer_of_a_refused_line() {
        let mut reader = LineReader::new(100);
        let block = [b'x'; 60];
        assert_eq!(reader.next(&mut &block[..]), None);
        assert_eq!(reader.next(&mut &block[..]), Some(Frame::TooLong));
        assert_eq!(reader.partial.capacity(), 0);
        for _ in 0..1000 {
            assert_eq!(reader.next(&mut &block[..]), None);
        }
        assert_eq!(reader.partial.capacity(), 0);
        let mut tail = &b"x\nok\n"[..];
        assert_eq!(reader.next(&mut tail), Some(Frame::Line(b"ok")));
    }

    proptest! {
        #[test]
        fn chunking_changes_nothing(
            stream in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a'), any::<u8>()], 0..200),
            sizes in proptest::collection::vec(1usize..20, 1..8),
            max in 0usize..12,
        ) {
            prop_assert_eq!(frames(&stream, &sizes, max), frames(&stream, &[1000], max));
        }
    }
}
