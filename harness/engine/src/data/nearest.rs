//! Suggestions for unknown words.

/// `; did you mean "…"?` if one of `known` is close; otherwise empty.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
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
    }
}
