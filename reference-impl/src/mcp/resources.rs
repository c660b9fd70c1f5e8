//! Resources, and the levels of log messages.

use super::method::World;
use crate::json::{Text, Value};

/// Log levels in ascending order.
pub(super) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Uri of the changing resource.
pub(super) const COUNTER: &str = "peerproof:///counter";

/// Prefix of the uris of the template.
const GREETINGS: &str = "peerproof:///greetings/";

/// A PNG file of one pixel, base64.
pub(super) const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Contents of a resource.
pub(super) fn contents(uri: &Text, world: &World) -> Option<Value> {
    let (kind, member, content): (&str, &str, Value) = match uri.as_str()? {
        "peerproof:///readme" => ("text/plain", "text", "A resource of peerproof.\n".into()),
        COUNTER => ("application/json", "text", format!("{{\"count\":{}}}", world.count).into()),
        "peerproof:///pixel.png" => ("image/png", "blob", PIXEL.into()),
        other => {
            let name =
                other.strip_prefix(GREETINGS).filter(|name| !name.is_empty() && !name.contains('/'))?;
            ("text/plain", "text", format!("Hello, {name}!").into())
        }
    };
    Some([("uri", Value::String(uri.clone())), ("mimeType", kind.into()), (member, content)].into())
}
