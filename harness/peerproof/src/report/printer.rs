//! Output streams and colours.

use std::io::{self, IsTerminal, Write};
use std::str::FromStr;

use anstyle::{AnsiColor, Style};

use peerproof_engine::data::blame::Misconfigured;
use peerproof_engine::data::text::{one_line, visible_lines};

/// Use of colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    /// Only on a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl FromStr for Color {
    type Err = Misconfigured;

    fn from_str(word: &str) -> Result<Self, Misconfigured> {
        match word {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("PEERPROOF_COLOR is {word:?}; it must be auto, always or never").into()),
        }
    }
}

/// Writer to the standard streams. If the reader has gone, the rest is dropped without an error.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    color_out: bool,
    color_err: bool,
    /// Set if standard error is a terminal, so that a progress line can be shown.
    pub live: bool,
    /// Width of a line of a report, columns.
    pub columns: usize,
}

/// Default width of a line, and the allowed range on a terminal.
const COLUMNS: usize = 80;
const COLUMNS_RANGE: (usize, usize) = (60, 100);

/// Meaning of a piece of text, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Good news.
    Good,
    /// A broken clause, an error.
    Bad,
    /// A warning: untestable, flaky, broken SHOULD.
    Warn,
    /// Names such as ids and files.
    Name,
    /// Less important text.
    Dim,
    /// A heading.
    Head,
}

impl Tone {
    const ALL: [Self; 6] = [Self::Good, Self::Bad, Self::Warn, Self::Name, Self::Dim, Self::Head];

    fn style(self) -> Style {
        match self {
            Self::Good => AnsiColor::Green.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
            Self::Warn => AnsiColor::Yellow.on_default(),
            Self::Name => AnsiColor::Cyan.on_default(),
            Self::Dim => Style::new().dimmed(),
            Self::Head => Style::new().bold(),
        }
    }
}

impl Printer {
    /// Printer without colours and progress lines.
    pub fn plain() -> Self {
        Self { color_out: false, color_err: false, live: false, columns: COLUMNS }
    }

    /// Printer for this `color` and the streams; `term` is the variable `TERM`.
    pub fn new(color: Color, term: Option<&str>) -> Self {
        let able = term != Some("dumb");
        let (out, err) = (io::stdout().is_terminal() && able, io::stderr().is_terminal() && able);
        let (color_out, color_err) = match color {
            Color::Auto => (out, err),
            Color::Always => (true, true),
            Color::Never => (false, false),
        };
        let size = ::console::Term::stdout().size_checked().filter(|_| io::stdout().is_terminal());
        let (least, most) = COLUMNS_RANGE;
        let columns = size.map_or(COLUMNS, |(_, columns)| usize::from(columns).clamp(least, most));
        Self { color_out, color_err, live: err, columns }
    }

    /// Removes colours and progress lines.
    pub fn as_plain(self) -> Self {
        Self { columns: self.columns, ..Self::plain() }
    }

    /// Wraps text to the printer's width. The first line begins with `label`, the others with equally many spaces.
    /// Words longer than a line are broken. There is no final line feed.
    pub(crate) fn hang(&self, label: &str, text: &str) -> String {
        self.fill(label, &one_line(text))
    }

    /// Wraps text of ours, which may be painted, as [`Printer::hang`] does.
    pub(crate) fn fill(&self, label: &str, text: &str) -> String {
        let indent = " ".repeat(textwrap::core::display_width(label));
        let options = textwrap::Options::new(self.columns)
            .initial_indent(label)
            .subsequent_indent(&indent)
            .word_separator(textwrap::WordSeparator::Custom(pieces))
            .word_splitter(textwrap::WordSplitter::NoHyphenation);
        textwrap::fill(text, options)
    }

    /// Writes to standard output.
    pub fn out(&self, text: &str) {
        let text = shown(self.color_out, text);
        let mut to = io::stdout().lock();
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    }

    /// Standard output as a file, for streaming.
    ///
    /// # Errors
    /// Fails if it is closed.
    pub fn out_file(&self) -> std::io::Result<std::fs::File> {
        use std::os::fd::AsFd as _;
        std::io::stdout().as_fd().try_clone_to_owned().map(std::fs::File::from)
    }

    /// Standard error as a file, for text of others.
    ///
    /// # Errors
    /// Fails if it is closed.
    pub fn err_file(&self) -> std::io::Result<std::fs::File> {
        use std::os::fd::AsFd as _;
        std::io::stderr().as_fd().try_clone_to_owned().map(std::fs::File::from)
    }

    /// Writes to standard error.
    pub fn err(&self, text: &str) {
        let text = shown(self.color_err, text);
        let mut to = io::stderr().lock();
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    }

    /// Writes `error: …` to standard error.
    pub fn error(&self, sentence: &str) {
        self.sentence(Tone::Bad, "error", sentence);
    }

    /// Writes `note: …` to standard error.
    pub fn note(&self, sentence: &str) {
        self.sentence(Tone::Warn, "note", sentence);
    }

    fn sentence(&self, tone: Tone, word: &str, sentence: &str) {
        self.err(&format!("{}: {}\n", paint(self.color_err, tone, word), visible_lines(sentence)));
    }

    /// Paints `text` for standard output.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        paint(self.color_out, tone, text)
    }
}

/// Unbreakable pieces of a line: words, commands in backticks, and the text between commas in JSON without spaces.
fn pieces(line: &str) -> Box<dyn Iterator<Item = textwrap::core::Word<'_>> + '_> {
    let mut rest = line;
    Box::new(std::iter::from_fn(move || {
        let is_end = |at: &usize| {
            let (piece, behind) = rest.split_at(*at);
            let is_command = piece.matches('`').count() % 2 == 1;
            let is_within_number =
                piece.strip_suffix(',').is_some_and(ends_in_digit) && starts_with_group(behind);
            !is_command && !is_within_number && !behind.starts_with(' ') && piece.ends_with([' ', ','])
        };
        let ends = rest.char_indices().skip(1).map(|(at, _)| at);
        let end = ends.into_iter().find(is_end).unwrap_or(rest.len());
        let (piece, behind) = rest.split_at(end);
        rest = behind;
        (!piece.is_empty()).then(|| textwrap::core::Word::from(piece))
    }))
}

fn ends_in_digit(text: &str) -> bool {
    text.ends_with(|last: char| last.is_ascii_digit())
}

/// True if text begins with exactly three digits, as after a comma in 1,048,576.
fn starts_with_group(text: &str) -> bool {
    text.bytes().take_while(u8::is_ascii_digit).take(4).count() == 3
}

/// Escapes text for a stream, whatever a peer has put into it. Keeps our colours; a peer's escapes were removed before.
fn shown(color: bool, text: &str) -> String {
    if !color {
        return visible_lines(text).into_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        out.push_str(&visible_lines(&rest[..at]));
        rest = &rest[at..];
        let ours = Tone::ALL.iter().map(|tone| tone.style().render().to_string());
        let ours =
            ours.chain([Style::new().bold().render_reset().to_string()]).find(|own| rest.starts_with(own));
        let length = ours.as_ref().map_or(1, String::len);
        out.push_str(&ours.unwrap_or_else(|| visible_lines(&rest[..1]).into_owned()));
        rest = &rest[length..];
    }
    out.push_str(&visible_lines(rest));
    out
}

fn paint(color: bool, tone: Tone, text: &str) -> String {
    if color {
        let style = tone.style();
        format!("{}{}{}", style.render(), visible_lines(text), style.render_reset())
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_colours_reach_a_terminal() {
        let text = format!("{} \u{1b}]0;x\u{7}\u{9b}2J\u{1b}[2J\n", paint(true, Tone::Bad, "\u{1b}[32mred"));
        let style = Tone::Bad.style();
        let expected = format!(
            "{}\\u001b[32mred{} \\u001b]0;x\\u0007\\u009b2J\\u001b[2J\n",
            style.render(),
            style.render_reset()
        );
        assert_eq!(shown(true, &text), expected);
        assert!(!shown(false, &text).contains('\u{1b}'));
    }

    #[test]
    fn text_hangs_behind_its_label_within_the_width() {
        let printer = Printer { columns: 20, ..Printer::plain() };
        let text = printer.hang("  got  ", "an-error and a very_long_word_that_fits_nowhere\u{7}");
        assert!(text.lines().all(|line| line.chars().count() <= 20), "{text}");
        assert!(text.starts_with("  got  an-error and\n       a\n       very_long"), "{text}");
        assert!(text.contains("\\u0007"), "{text}");
        assert_eq!(
            printer.hang("  ", r#"{"id":1,"message":"no, it is not"}"#),
            "  {\"id\":1,\n  \"message\":\"no, it\n  is not\"}"
        );
        assert_eq!(printer.hang("  ", "of at most 1,048,576 bytes"), "  of at most\n  1,048,576 bytes");
    }
}
