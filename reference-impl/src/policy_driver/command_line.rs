//! The command of a driver as one string, split into words like a POSIX shell, without other features of a shell
//! (`policy` §1; contract §2 "`MACHINA_POLICY_CMD` is split").

/// Reason why a command cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// A quotation is not closed.
    #[error("a quotation has no end")]
    OpenQuote,
    /// The last character is a backslash.
    #[error("a backslash stands at the end")]
    LastBackslash,
}

/// Splits a command into words: blanks separate, quotes and backslashes quote (POSIX shell, 2.2). Nothing is expanded,
/// and operators are ordinary characters.
///
/// # Errors
/// Fails for an unclosed quotation, or a backslash at the end.
pub(crate) fn split(command: &str) -> Result<Vec<String>, SplitError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or(SplitError::OpenQuote)? {
                        '\'' => break,
                        quoted => word.push(quoted),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next().ok_or(SplitError::OpenQuote)? {
                        '"' => break,
                        '\\' => match rest.next().ok_or(SplitError::OpenQuote)? {
                            '\n' => {}
                            escaped @ ('$' | '`' | '"' | '\\') => word.push(escaped),
                            other => word.extend(['\\', other]),
                        },
                        quoted => word.push(quoted),
                    }
                }
            }
            '\\' => match rest.next().ok_or(SplitError::LastBackslash)? {
                // A backslash before a line end joins the two lines.
                '\n' => {}
                escaped => word.get_or_insert_default().push(escaped),
            },
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn splits_as_a_shell_does() {
        for (command, words) in [
            ("python3 a.py", &["python3", "a.py"][..]),
            ("  a\tb\n c  ", &["a", "b", "c"]),
            (r#"a 'b c' "d e" f\ g"#, &["a", "b c", "d e", "f g"]),
            (r#"a'b'"c"d"#, &["abcd"]),
            (r#"'' "" x"#, &["", "", "x"]),
            (r#""\$\`\"\\\n" '\n"'"#, &["$`\"\\\\n", "\\n\""]),
            ("a\\\nb", &["ab"]),
            ("\"a\\\nb\"", &["ab"]),
            ("", &[]),
            (" \t\n", &[]),
        ] {
            assert_eq!(split(command).unwrap(), words, "{command:?}");
        }
    }

    #[test]
    fn expands_and_operates_on_nothing() {
        let command = "sh a.sh $HOME `id` $(id) *.py ~ a;b | c && d > e # f";
        let words: Vec<&str> = command.split(' ').collect();
        assert_eq!(split(command).unwrap(), words);
    }

    #[test]
    fn refuses_what_is_cut() {
        assert_eq!(split("a 'b"), Err(SplitError::OpenQuote));
        assert_eq!(split("a \"b"), Err(SplitError::OpenQuote));
        assert_eq!(split("a \"b\\"), Err(SplitError::OpenQuote));
        assert_eq!(split("a\\"), Err(SplitError::LastBackslash));
    }

    proptest! {
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec(".{0,8}", 0..5)) {
            let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
            let command = words.iter().map(quote).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split(&command).unwrap(), words);
        }
    }
}
