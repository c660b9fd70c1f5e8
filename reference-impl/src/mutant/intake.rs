//! Input in the pieces that a rewriting wrapper handles.

/// Collector of input into pieces.
pub struct Intake {
    pending: Vec<u8>,
    /// Number of bytes of `pending` that are known to hold no line feed.
    seen: usize,
    /// True while an overlong line passes in parts.
    passing: bool,
    bytes_max: usize,
    by_line: bool,
}

/// A piece of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A line with its line feed.
    Line(Vec<u8>),
    /// A part of an overlong line or input. The last part ends with a line feed or with the input.
    Part(Vec<u8>),
}

impl Intake {
    /// Creates a collector of lines of at most about `bytes_max` bytes. Longer ones pass in parts.
    pub fn lines(bytes_max: usize) -> Self {
        Self { pending: Vec::new(), seen: 0, passing: false, bytes_max, by_line: true }
    }

    /// Creates a collector of the whole input, with the same limit.
    pub fn whole(bytes_max: usize) -> Self {
        Self { by_line: false, ..Self::lines(bytes_max) }
    }

    /// Adds bytes and returns the complete pieces.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        self.pending.extend_from_slice(bytes);
        if self.by_line {
            while let Some(end) = memchr::memchr(b'\n', &self.pending[self.seen..]) {
                let line: Vec<u8> = self.pending.drain(..=self.seen + end).collect();
                self.seen = 0;
                let passing = std::mem::take(&mut self.passing);
                pieces.push(if passing { Piece::Part(line) } else { Piece::Line(line) });
            }
        }
        self.seen = self.pending.len();
        if self.seen > self.bytes_max || (self.passing && self.seen > 0) {
            self.passing = true;
            self.seen = 0;
            pieces.push(Piece::Part(std::mem::take(&mut self.pending)));
        }
        pieces
    }

    /// Rest of the input without a line feed; `Err` if earlier parts of it were returned before.
    pub fn rest(&mut self) -> Result<Vec<u8>, Vec<u8>> {
        self.seen = 0;
        let rest = std::mem::take(&mut self.pending);
        if std::mem::take(&mut self.passing) { Err(rest) } else { Ok(rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_and_what_is_too_long_in_parts() {
        let mut intake = Intake::lines(4);
        assert_eq!(intake.take(b"a"), []);
        assert_eq!(intake.take(b"b\ncd"), [Piece::Line(b"ab\n".to_vec())]);
        assert_eq!(intake.take(b"efg"), [Piece::Part(b"cdefg".to_vec())]);
        assert_eq!(intake.take(b"h\ni\n"), [Piece::Part(b"h\n".to_vec()), Piece::Line(b"i\n".to_vec())]);
        assert_eq!(intake.take(b"jk"), []);
        assert_eq!(intake.rest(), Ok(b"jk".to_vec()));
    }

    #[test]
    fn the_whole_input_comes_at_its_end() {
        let mut intake = Intake::whole(4);
        assert_eq!(intake.take(b"a\nb"), []);
        assert_eq!(intake.rest(), Ok(b"a\nb".to_vec()));
        assert_eq!(intake.take(b"abcde"), [Piece::Part(b"abcde".to_vec())]);
        assert_eq!(intake.rest(), Err(Vec::new()));
    }
}
