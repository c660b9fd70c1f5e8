//! Generated conversations.

use super::super::generate;
use peerproof_engine::check::Check;

/// Conversations, one check each: they differ by the stream of random numbers that the id gives.
const CONVERSATIONS: [&str; 3] = ["first", "second", "third"];

/// The checks of this topic.
pub fn checks() -> Vec<Check> {
    let one = |name: &str| {
        Check::new(
            format!("json_rpc/stdio/model/generated-conversation-{name}"),
            "Generated messages, good, nearly good and bad, are each answered as the specification has it.",
            ["RPC-FRAME-01", "RPC-REQ-03", "RPC-JSON-01"],
            "command",
            |facts, rng| Ok(generate::conversation(facts, rng)),
        )
    };
    CONVERSATIONS.into_iter().map(one).collect()
}
