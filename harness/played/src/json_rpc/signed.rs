//! Tests that the harness and the reference sign equally.

use proptest::prelude::*;

use peerproof_json_rpc::signature::signature;

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Into::into),
        any::<f64>().prop_filter("finite", |float| float.is_finite()).prop_map(Into::into),
        "[\\x00-\\x7fé€😀\u{fb33}\u{2028}]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-cé😀\u{fb33}\\x00]{0,3}", inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn both_implementations_sign_alike(params in any_json(), key in prop::collection::vec(any::<u8>(), 0..80)) {
        let message = serde_json::json!({ "jsonrpc": "2.0", "params": params, "auth": { "nonce": "n" } });
        let text = message.to_string();
        let theirs = peerproof_reference::json_rpc::signature(&key, text.as_bytes());
        prop_assert_eq!(theirs.ok(), Some(signature(&key, &text.parse().unwrap())), "{}", text);
    }
}
