//! How the bytes of a step are carried where a session speaks HTTP. Sessions on standard streams know nothing of it.
//!
//! Without a [`Carriage`] each line of a step is the body of a POST, on one connection that is kept open. With one, the
//! whole payload of the step, but for a last line feed, is one body, carried as it says.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::packing::Packing;

/// Name of the command of a peer that is spoken to by HTTP POST: its command line has `{port}` or `{addr}`, and may begin
/// with the URL to post to. A URL alone is a server that listens already.
pub const HTTP: &str = "http";

/// Name under which a peer's commands have how its server tells that it is ready: one of `stdout`, `stderr` and `get`, and the
/// text or the path.
pub const READY: &str = "http.ready";

/// What a body is called that is a message.
pub const JSON_TYPE: &str = "application/json";

/// One body and its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carriage {
    /// The method.
    pub method: String,
    /// Value of `Content-Type`; no such header where this is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// How the body is delimited.
    #[serde(default)]
    pub framing: Framing,
    /// Connections have numbers; what has no [`Carriage`] goes on connection 0.
    #[serde(default)]
    pub connection: u32,
    /// `Content-Encoding: gzip`, and what of the payload is then the body; the payload as it is where this is `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gzip: Option<Packing>,
    /// The path in the place of that of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The address that is connected to in the place of that of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
    /// Further lines of the head.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// It is a request of HTTP/1.0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http_1_0: bool,
    /// The body follows a second behind the head, or as soon as the server says 100.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
    /// The body follows the head in pieces, the last one so many milliseconds behind it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drawn_out_ms: u64,
    /// Nothing is written for a while within the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// A line is received whatever becomes of it: an empty one where its reply has no body, and where none comes. So its end can
    /// be waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// It is written behind the request before it on its connection, without waiting for the reply to that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipelined: bool,
    /// Its connection is kept open when nothing more is asked on it, also where another one waits to be served.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// The server is sent `KILL` as soon as the status of its reply has come. What comes of the reply is then all of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killing: bool,
}

/// One long silence within a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Bytes of the body, as it is framed, that come with the head.
    pub after_bytes: usize,
    /// Time until the others follow, milliseconds.
    pub ms: u64,
}

/// How a body is delimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Framing {
    /// `Content-Length`.
    #[default]
    Length,
    /// `Transfer-Encoding: chunked`, chunks of this many bytes.
    Chunked(u32),
    /// As [`Framing::Chunked`], with an extension behind each size and a trailer field behind the last chunk.
    ExtendedChunks(u32),
    /// `Content-Length`, of so many bytes more than there are. Then nothing more is written, but the reply is read.
    Short(u32),
    /// As [`Framing::Chunked`], without the last chunk. Then nothing more is written, but the reply is read.
    OpenChunks(u32),
    /// The payload is head and body. Then nothing more is written, but the reply is read.
    Verbatim,
    /// The payload is no body but all that is written; the connection then stays open until the session ends.
    Held,
    /// The payload is all that is written; the connection is then closed.
    Cut,
}

impl Carriage {
    /// A message as it is usually carried.
    pub fn post() -> Self {
        Self {
            method: "POST".to_owned(),
            content_type: Some(JSON_TYPE.to_owned()),
            framing: Framing::Length,
            connection: 0,
            gzip: None,
            path: None,
            host: None,
            headers: Vec::new(),
            http_1_0: false,
            held_back: false,
            drawn_out_ms: 0,
            pause: None,
            counted: false,
            pipelined: false,
            stays: false,
            killing: false,
        }
    }

    /// Another method.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        Self { method: method.to_owned(), ..self }
    }

    /// Another content type, or none.
    #[must_use]
    pub fn content_type(self, content_type: Option<&str>) -> Self {
        Self { content_type: content_type.map(str::to_owned), ..self }
    }

    /// Another framing.
    #[must_use]
    pub fn framing(self, framing: Framing) -> Self {
        Self { framing, ..self }
    }

    /// A connection of its own.
    #[must_use]
    pub fn on(self, connection: u32) -> Self {
        Self { connection, ..self }
    }

    /// The body is compressed, or called so.
    #[must_use]
    pub fn gzip(self, packing: Packing) -> Self {
        Self { gzip: Some(packing), ..self }
    }

    /// Whether the payload is what is written, and nothing need come back.
    pub fn is_raw(&self) -> bool {
        matches!(self.framing, Framing::Held | Framing::Cut)
    }

    /// Whether nothing is added to the payload.
    pub fn is_verbatim(&self) -> bool {
        self.is_raw() || self.framing == Framing::Verbatim
    }

    /// Whether the body ends before it is complete.
    pub fn is_cut(&self) -> bool {
        matches!(self.framing, Framing::Short(_) | Framing::OpenChunks(_))
    }

    /// Whether the body is called JSON.
    pub fn is_json(&self) -> bool {
        self.content_type.as_deref().is_some_and(|name| {
            let name = name.split(';').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case(JSON_TYPE)
        })
    }
}

/// Path and query of a request target: a target in absolute form loses its scheme and authority.
pub fn path_of(target: &str) -> &str {
    let behind = target.strip_prefix("http://").and_then(|rest| rest.get(rest.find('/')?..));
    behind.unwrap_or(target)
}

// Serde hands the field over by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_may_name_an_authority() {
        let path = "/capabilities/handshake";
        assert_eq!(path_of(path), path);
        assert_eq!(path_of("http://127.0.0.1:80/capabilities/handshake"), path);
        assert_ne!(path_of("/tools/capabilities/handshake"), path);
        assert_eq!(path_of("http://127.0.0.1"), "http://127.0.0.1");
    }
}
