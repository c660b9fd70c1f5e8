//! Digests of a state, a menu and a goal.

use sha2::{Digest as _, Sha256};

use super::state::State;

/// Lower-case SHA-256 hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest of a state: `SLOT:TYPE:PROVENANCE:SIZE:CONTENT|` of each used slot, in ascending order.
pub(crate) fn of_state(state: &State) -> String {
    let used = state.0.iter().enumerate().filter_map(|(slot, held)| Some((slot, held.as_ref()?)));
    let text: String = used
        .map(|(slot, held)| {
            let content = sha256_hex(held.content_json.as_bytes());
            format!("{slot}:{}:{}:{}:{content}|", held.kind, held.provenance, held.size_bytes)
        })
        .collect();
    sha256_hex(text.as_bytes())
}

/// The digest of a menu, given as SID, AID and tags of each entry.
pub(crate) fn of_menu(entries: &[(String, String, Vec<String>)]) -> String {
    let mut entries = entries.to_vec();
    entries.sort();
    let entries = entries.into_iter().map(|(sid, aid, mut tags)| {
        tags.sort();
        format!("{sid}={aid}:{}", tags.join(","))
    });
    sha256_hex(entries.collect::<Vec<_>>().join("|").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_have_the_digests_of_the_contract() {
        let zero = r#""0":{"type":"text","provenance":"tool","content_json":"{\"a\":1}","size_bytes":7}"#;
        let five = r#""5":{"type":"json","provenance":"peer:1","content_json":"\"é\"","size_bytes":4}"#;
        for (slots, digest) in [
            (String::new(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (zero.to_owned(), "41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902"),
            (format!("{five},{zero}"), "00e3d6527928404d16ef0a31a042faa7d097a27dc2c3dc34ea425759144f4afe"),
        ] {
            let value = format!("{{\"slots\":{{{slots}}}}}").parse().unwrap();
            assert_eq!(of_state(&State::read(&value).unwrap()), digest);
        }
    }

    #[test]
    fn menus_have_the_digest_of_the_contract() {
        let entry = |sid: &str, aid: &str, tags: &[&str]| {
            (sid.to_owned(), aid.to_owned(), tags.iter().map(|tag| (*tag).to_owned()).collect())
        };
        let digest = "d5d4ecfa29b0fd8f2149e5f4a07db7fa129395ae5a3ba68eadfec35a756966ea";
        let entries = [entry("SID0002", "AID.B.v1", &[]), entry("SID0001", "AID.A.v1", &["b", "a"])];
        assert_eq!(of_menu(&entries), digest);
    }
}
