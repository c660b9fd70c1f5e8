//! Tests of `http_get`: the contacted hosts, and the treatment of the reply.

use peerproof_reference::machine::{FetchError, Fetched};
use serde_json::{Value, json};

use super::peer::{Peer, is_tool_error, output, request};

fn page(status: u16, location: Option<&str>, body: &[u8]) -> Result<Fetched, FetchError> {
    Ok(Fetched { status, location: location.map(str::to_owned), body: body.to_vec() })
}

fn get(
    allowed: Option<&str>,
    choice: &str,
    url: &str,
    web: Vec<Result<Fetched, FetchError>>,
) -> (Value, Vec<String>) {
    let mut peer = Peer::with(|config| {
        config.http_allowed_hosts = allowed.map(str::to_owned);
        if let Some((key, value)) = choice.split_once('=') {
            config.choices.set(key, value).unwrap();
        }
    });
    peer.web = web;
    let by_role = peer.call("HTTP_GET", json!({ "url": "nothing" }));
    assert!(is_tool_error(&by_role));
    let mut line = request("HTTP_GET", json!({ "url": url }));
    line["aid"] = json!("AID.NET.HTTP_GET.v1");
    (peer.send(line), peer.fetched)
}

#[test]
fn the_page_is_the_output() {
    let (reply, fetched) = get(None, "", "http://H.example:81/a?b#c", vec![page(404, None, b"\xff\"x\0")]);
    assert_eq!(output(&reply), json!({ "status": 404, "body": "\u{FFFD}\"x\0" }));
    assert_eq!(fetched, ["h.example 81 /a?b"]);
    let (reply, _) = get(None, "", "http://h/", vec![Err(FetchError("refused".to_owned()))]);
    assert!(is_tool_error(&reply));
    let (reply, _) = get(None, "", "http://h/", vec![page(200, None, &vec![b'x'; 1 << 20])]);
    assert!(is_tool_error(&reply), "it does not fit into a reply");
}

#[test]
fn an_unlisted_host_is_never_contacted() {
    for url in [
        "http://evil/",
        "http://good@evil/",
        "http://good:80@evil/",
        "http://evil/?good",
        "http://evil#good",
        "http://evil?@good/",
        "http://evil./",
        "http://xgood/",
        "http://good.evil/",
        "http://[::1]/",
        "http://good\\@evil/",
        "http://evil/good",
        "http://2130706433/",
        "http://sub.good/",
        "http://.good/",
        "http://good..suffix/",
        "http://suffix/",
        "http:good",
    ] {
        let (reply, fetched) = get(Some("good,*.suffix"), "", url, vec![]);
        assert!(is_tool_error(&reply) && fetched.is_empty(), "{url}");
    }
    for url in ["http://good/", "http://GOOD.:99/", "http://a.suffix/", "http://A.B.Suffix./"] {
        let (reply, fetched) = get(Some("Good,*.suffix"), "", url, vec![page(200, None, b"")]);
        assert!(reply["ok"] == true && fetched.len() == 1, "{url}");
    }
    assert!(get(Some(" ,"), "", "http://good/", vec![]).1.is_empty());
}

#[test]
fn redirects_follow_the_choice_and_the_list() {
    let hop = |to: &str| page(302, Some(to), b"");
    let (reply, fetched) =
        get(Some("good"), "", "http://good/a/b", vec![hop("c"), hop("//good:81"), page(200, None, b"x")]);
    assert_eq!(output(&reply), json!({ "status": 200, "body": "x" }));
    assert_eq!(fetched, ["good 80 /a/b", "good 80 /a/c", "good 81 /"]);
    for to in [
        "http://evil/",
        "//evil/",
        "http://good@evil/",
        "https://good/",
        "//good\\@evil",
        "http://good.evil/",
    ] {
        let (reply, fetched) = get(Some("good"), "", "http://good/", vec![hop(to)]);
        assert!(is_tool_error(&reply), "{to}");
        assert_eq!(fetched, ["good 80 /"], "{to}");
    }
    let (reply, fetched) = get(None, "", "http://good/", (0..9).map(|_| hop("/")).collect());
    assert!(is_tool_error(&reply));
    assert_eq!(fetched.len(), 6, "five redirects");
    let (reply, fetched) = get(None, "redirects=refuse", "http://good/", vec![hop("/x")]);
    assert!(is_tool_error(&reply));
    assert_eq!(fetched.len(), 1);
    let (reply, _) = get(None, "", "http://good/", vec![page(302, None, b"")]);
    assert_eq!(output(&reply)["status"], 302);
}
