//! What is nearly right: names of methods, and text that some readers of JSON take.

use super::super::role::role;
use super::super::talk::{Talk, UNKNOWN_METHOD, call, quoted};
use peerproof_engine::check::Check;
use peerproof_engine::near_miss::near_misses;
use peerproof_engine::payload::Payload;
use peerproof_engine::plan::Chunking;

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let methods = Check::new(
        "json_rpc/stdio/methods/near-misses",
        "Names that are nearly that of a method (cut, longer, with blanks, of look-alikes) are answered -32601.",
        ["RPC-METHOD-01"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-METHOD-01");
            let method = talk.method("echo");
            talk.canary();
            for (n, miss) in near_misses(&method).into_iter().enumerate() {
                talk.send(&call(&miss.text, Some("[1]"), Some(&n.to_string())));
            }
            Ok(talk.canary().finish())
        },
    )
    .roles(&["echo"]);
    let readers = Check::new(
        "json_rpc/stdio/json/text-that-readers-differ-on",
        "Invalid UTF-8, numbers beyond every double, NaN and half surrogates neither end the server nor make it print what \
         is no JSON.",
        ["RPC-ERR-01", "RPC-MSG-05"],
        "command",
        |facts, _| {
            let mut talk = Talk::plain(facts);
            talk.canary();
            let method = role(facts, "echo").map_or_else(|| UNKNOWN_METHOD.to_owned(), |echo| echo.method);
            let with = |params: &str, id: &str| call(&method, Some(params), Some(id));
            let mut lines: Vec<Payload> = [
                with("[1e400,-1e400]", "1"),
                with("{\"n\":-1.5e999}", "\"n\""),
                with("[123456789012345678901234567890]", "2"),
                with("[1]", "1e400"),
                with("[NaN,Infinity,-Infinity]", "3"),
                with("[\"\\ud800\",\"\\udc00\\ud800\"]", "4"),
                with("[\"x\"]", "\"\\udfff\""),
                with("{\"a\":1,\"a\":2}", "5"),
            ]
            .map(Payload::text)
            .into();
            for bytes in
                [&b"\x80"[..], b"\xc3", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff\xfe"]
            {
                let text = with("[\"#\"]", "\"u\"");
                let (head, tail) = text.split_once('#').unwrap_or_default();
                lines.push(Payload::from_bytes(&[head.as_bytes(), bytes, tail.as_bytes()].concat()));
                lines.push(Payload::from_bytes(bytes));
            }
            for line in lines {
                talk.send_as(line.then(Payload::text("\n")), Chunking::Whole);
                talk.aim("RPC-ERR-01").canary().aim_at_nothing();
            }
            Ok(talk.finish())
        },
    );
    let examples = Check::new(
        "json_rpc/stdio/batches/one-id-twice",
        "Two requests of a batch with one id are both answered, beside one with another id.",
        ["RPC-ID-06"],
        "command",
        |facts, _| {
            let mut talk = Talk::about(facts, "RPC-ID-06");
            let one = call(UNKNOWN_METHOD, Some("[1]"), Some("\"same\""));
            let other = call(UNKNOWN_METHOD, None, Some(&quoted("other")));
            Ok(talk.send(&format!("[{one},{other},{one}]")).canary().finish())
        },
    )
    .feature("batch");
    vec![methods, readers, examples]
}
