//! Text in lines.

/// Columns of a line, indentation not counted.
const COLUMNS: usize = 100;

/// Words in lines behind `indent`; no line feed at the end.
pub fn wrap(text: &str, indent: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > COLUMNS {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(indent);
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}

/// The same words with single spaces between them.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_becomes_indented_lines() {
        let text = wrap(&"word ".repeat(40), "  ");
        assert_eq!(text.lines().count(), 2);
        assert!(text.lines().all(|line| line.starts_with("  word") && line.len() <= COLUMNS + 2), "{text}");
        assert_eq!(wrap("", "  "), "");
        assert_eq!(one_line(" a\n b "), "a b");
    }
}
