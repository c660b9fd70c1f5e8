//! The digests of a state, a menu and a goal (contract §3 "State digest"; `policy` §2).

use sha2::{Digest as _, Sha256};

use super::state::State;
use crate::json::Text;

/// Lower-case SHA-256 hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Digest of a state. The hashed text lists the used slots in ascending order.
pub(crate) fn state_digest(state: &State) -> String {
    sha256_hex(&digested(state))
}

/// Text that is hashed for the digest of a state.
pub(super) fn digested(state: &State) -> Vec<u8> {
    let mut text = Vec::new();
    for (slot, held) in state.slots.iter().enumerate() {
        let (Some(artifact), Some(size)) = (held, state.sizes.get(slot)) else { continue };
        text.extend_from_slice(format!("{slot}:").as_bytes());
        text.extend_from_slice(artifact.kind.as_bytes());
        text.push(b':');
        text.extend_from_slice(artifact.provenance.as_bytes());
        let content = sha256_hex(artifact.content_json.as_bytes());
        text.extend_from_slice(format!(":{size}:{content}|").as_bytes());
    }
    text
}

/// Digest of a menu: its entries, each with SID, AID and tags.
pub(crate) fn menu_digest(entries: &[(String, Text, Vec<Text>)]) -> String {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let entries: Vec<String> = entries
        .into_iter()
        .map(|(sid, aid, tags)| {
            let mut tags: Vec<_> = tags.iter().map(Text::to_lossy).collect();
            tags.sort();
            format!("{sid}={aid}:{}", tags.join(","))
        })
        .collect();
    sha256_hex(entries.join("|").as_bytes())
}

/// Goal for a driver: `goal_id|menu_digest|FLAGS:`.
pub(crate) fn goal_digest(goal_id: &Text, menu_digest: &str) -> String {
    format!("{goal_id}|{menu_digest}|FLAGS:")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Policy, Value};
    use crate::run_log::Choices;

    fn state(text: &str) -> State {
        let value = Value::parse(text.as_bytes(), 64, &Policy::default()).unwrap();
        State::from_ds_state(&value, &Choices::default()).unwrap()
    }

    #[test]
    fn states_have_the_digests_of_the_contract() {
        let zero = r#""0":{"type":"text","provenance":"tool","content_json":"{\"a\":1}","size_bytes":7}"#;
        let five = r#""5":{"type":"json","provenance":"peer:1","content_json":"\"é\"","size_bytes":4}"#;
        for (slots, digest) in [
            (String::new(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (zero.to_owned(), "41c17a4799aafdb5b340f2cf844b3c6ba5214d379238b585c9c739d4954b8902"),
            (format!("{five},{zero}"), "00e3d6527928404d16ef0a31a042faa7d097a27dc2c3dc34ea425759144f4afe"),
        ] {
            assert_eq!(state_digest(&state(&format!("{{\"slots\":{{{slots}}}}}"))), digest);
        }
    }

    #[test]
    fn menus_have_the_digest_of_the_contract() {
        let entry = |sid: &str, aid: &str, tags: &[&str]| {
            (sid.to_owned(), Text::from(aid), tags.iter().map(|tag| Text::from(*tag)).collect())
        };
        let entries = [entry("SID0002", "AID.B.v1", &[]), entry("SID0001", "AID.A.v1", &["b", "a"])];
        let digest = "d5d4ecfa29b0fd8f2149e5f4a07db7fa129395ae5a3ba68eadfec35a756966ea";
        assert_eq!(menu_digest(&entries), digest);
        assert_eq!(goal_digest(&"g".into(), digest), format!("g|{digest}|FLAGS:"));
    }
}
