//! Smaller texts of a message that keep its spelling, for when white space, escapes or the order of members matter.

use std::ops::Range;

use crate::data::json::string_end;

/// Removable pieces of a JSON text: members and elements with a comma, largest first, then white space.
pub(super) fn pieces(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut children: Vec<Range<usize>> = Vec::new();
    let mut spaces: Vec<Range<usize>> = Vec::new();
    // For each open container: start of the current child, and the children before it.
    let mut open: Vec<(usize, Vec<Range<usize>>)> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at + 1);
                continue;
            }
            b'{' | b'[' => open.push((at + 1, Vec::new())),
            b',' => {
                if let Some((begin, before)) = open.last_mut() {
                    before.push(*begin..at);
                    *begin = at + 1;
                }
            }
            b'}' | b']' => {
                if let Some((begin, mut of_this)) = open.pop() {
                    if !text[begin..at].trim().is_empty() {
                        of_this.push(begin..at);
                    }
                    children.extend(with_commas(&of_this));
                }
            }
            b' ' | b'\t' | b'\r' => {
                let end = at + bytes[at..].iter().take_while(|byte| b" \t\r".contains(byte)).count();
                spaces.push(at..end);
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    children.sort_by_key(|range| std::cmp::Reverse(range.len()));
    children.extend(spaces);
    children
}

/// Each child with the comma after it; the last one with the comma before it.
fn with_commas(children: &[Range<usize>]) -> Vec<Range<usize>> {
    let one = |at: usize| {
        let child = children[at].clone();
        match (children.get(at + 1), at) {
            (Some(next), _) => child.start..next.start,
            (None, 0) => child,
            (None, _) => children[at - 1].end..child.end,
        }
    };
    (0..children.len()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::Json;

    #[test]
    fn what_is_left_is_json_in_the_same_spelling() {
        let text = "{\"a\" : [1 , {\"b\":\"\\\",]\"} ],\t\"c\":{}}";
        let left: Vec<String> = pieces(text)
            .into_iter()
            .map(|piece| [&text[..piece.start], &text[piece.end..]].concat())
            .collect();
        assert!(left.iter().all(|text| text.parse::<Json>().is_ok()), "{left:#?}");
        for expected in ["{\t\"c\":{}}", "{\"a\" : [1 , {\"b\":\"\\\",]\"} ]}", "{\"a\" : [1 ],\t\"c\":{}}"] {
            assert!(left.iter().any(|text| text == expected), "{expected} is not in {left:#?}");
        }
        assert!(left.contains(&text.replacen(' ', "", 1)), "{left:#?}");
    }
}
