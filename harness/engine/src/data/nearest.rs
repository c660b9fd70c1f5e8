//! Suggestions for unknown words.

/// `; did you mean "…"?` if one of `known` is close; otherwise empty.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

/// Clause `rest` behind a hint: a sentence of its own behind a question, otherwise after a semicolon.
pub fn then(hint: &str, rest: &str) -> String {
    if !hint.ends_with('?') {
        return format!("{hint}; {rest}");
    }
    let mut letters = rest.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    let sentence: String = first.into_iter().chain(letters).collect();
    format!("{hint} {sentence}")
}

/// Closest one of `known`, if any is close enough.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&word, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_or_none() {
        let known = ["idempotency", "lease", "ds_state"];
        assert_eq!(nearest("idempotence", known), Some("idempotency"));
        assert_eq!(nearest("LEASES", known), Some("lease"));
        assert_eq!(nearest("xyzzy", known), None);
        let sentence = |word| format!("no {word}{}", then(&did_you_mean(word, known), "there are three"));
        assert_eq!(sentence("leese"), "no leese; did you mean \"lease\"? There are three");
        assert_eq!(sentence("xyzzy"), "no xyzzy; there are three");
    }
}
