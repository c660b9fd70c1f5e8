//! What has to be computed of conversations with a client.

use super::super::client::expect::Allowed;
use super::super::client::scenario::Call;
use super::super::client::scene::{Scene, usual_result};
use super::super::client::script::Deed;
use peerproof_engine::facts::Facts;
use peerproof_engine::rng::Rng;

/// A call that is never answered, by a server that says other things all the time.
pub fn chatter(scene: &mut Scene, _: &Facts, _: &mut Rng) {
    let noise = "{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{\"percent\":1}}";
    let usual = usual_result("nobody");
    let unknown = format!("{{\"jsonrpc\":\"2.0\",\"result\":{usual},\"id\":\"nobody\"}}");
    scene.call(Call::new("a").timeout_ms(500), [Allowed::timeout(500).attempts(1)]);
    let talk = (1..60).map(|n| Deed::line(if n % 2 == 0 { noise } else { &unknown }).in_ms(n * 50));
    scene.on("a", talk);
}
