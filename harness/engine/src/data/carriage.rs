//! Settings for sending the bytes of a step over HTTP. Sessions on standard streams ignore them.
//!
//! Without a [`Carriage`], each line of a step is the body of a POST on one connection that stays open. With one, the
//! whole payload of the step, without a last line feed, is sent as one body with these settings.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::data::packing::Packing;

/// Command name of a server reached by HTTP POST. Its command line has `{port}` or `{addr}` and may begin with the URL
/// to post to. A URL alone stands for a server that already runs.
pub const HTTP: &str = "http";

/// Key in a peer's commands for the readiness of its server: one of `stdout`, `stderr` and `get`, then the text or the
/// path.
pub(crate) const READY: &str = "http.ready";

/// `Content-Type` of a JSON message.
pub(crate) const JSON_TYPE: &str = "application/json";

/// Settings for sending one body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carriage {
    /// HTTP method.
    pub method: String,
    /// Value of `Content-Type`; `None` omits the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Delimiting of the body.
    #[serde(default)]
    pub framing: BodyFraming,
    /// Number of the connection; a step without a [`Carriage`] uses connection 0.
    #[serde(default)]
    pub connection: u32,
    /// Adds `Content-Encoding: gzip` and packs the payload this way; `None` sends it uncompressed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gzip: Option<Packing>,
    /// Path that replaces that of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Address to connect to instead of that of the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<IpAddr>,
    /// Spelling of the header lines.
    #[serde(default, skip_serializing_if = "Spelling::is_usual")]
    pub spelling: Spelling,
    /// Further header lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Sends an HTTP/1.0 request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http_1_0: bool,
    /// Sends the body one second after the head, or when the server answers `100 Continue`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_back: bool,
    /// Sends the body in pieces after the head, over this many milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drawn_out_ms: u64,
    /// Pause within the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
    /// Yields exactly one received line per request, so that its end can be awaited: an empty line if the reply has no
    /// body or does not come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub counted: bool,
    /// Sends the request without waiting for the reply to the request before it on its connection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pipelined: bool,
    /// Keeps the connection open after its last request, even if another connection waits to be served.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays: bool,
    /// Kills the server with `KILL` when the status line of its reply arrives. The reply then ends with the bytes
    /// received.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub killing: bool,
}

/// Long pause within a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Bytes of the framed body that are sent with the head.
    pub after_bytes: usize,
    /// Time until the rest follows, milliseconds.
    pub ms: u64,
}

/// Spelling of header lines. All spellings mean the same (RFC 9110 §5.1, RFC 9112 §5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spelling {
    /// `Content-Length: 5`.
    #[default]
    Usual,
    /// `content-length: 5`.
    LowerCase,
    /// `Content-Length:5`.
    Tight,
}

impl Spelling {
    /// Spells the header lines of a head, whose first line stays as it is.
    pub fn of(self, head: String) -> String {
        if self == Self::Usual {
            return head;
        }
        let mut lines = head.split_inclusive('\n');
        let first = lines.next().unwrap_or_default().to_owned();
        let spelled = lines.map(|line| match (self, line.split_once(": ")) {
            (Self::LowerCase, Some((name, value))) => format!("{}: {value}", name.to_ascii_lowercase()),
            (Self::Tight, Some((name, value))) => format!("{name}:{value}"),
            _ => line.to_owned(),
        });
        first + &spelled.collect::<String>()
    }

    // Serde passes the field by reference.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

/// Delimiting of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyFraming {
    /// `Content-Length`.
    #[default]
    Length,
    /// `Transfer-Encoding: chunked`, in chunks of this many bytes.
    Chunked(u32),
    /// As [`BodyFraming::Chunked`], with an extension after each chunk size and a trailer field after the last chunk.
    ExtendedChunks(u32),
    /// `Content-Length` that is this many bytes too large. Then the harness stops writing, but reads the reply.
    Short(u32),
    /// As [`BodyFraming::Chunked`], without the last chunk. Then the harness stops writing, but reads the reply.
    OpenChunks(u32),
    /// The payload is head and body. Then the harness stops writing, but reads the reply.
    Verbatim,
    /// The payload is everything written; the connection then stays open until the session ends.
    Held,
    /// The payload is everything written; the connection is then closed.
    Cut,
}

impl Carriage {
    /// Usual settings for a message: `POST` with `Content-Length` and a JSON `Content-Type`.
    pub fn post() -> Self {
        Self {
            method: "POST".to_owned(),
            content_type: Some(JSON_TYPE.to_owned()),
            framing: BodyFraming::Length,
            connection: 0,
            gzip: None,
            path: None,
            host: None,
            spelling: Spelling::Usual,
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

    /// Sets the method.
    #[must_use]
    pub fn method(self, method: &str) -> Self {
        Self { method: method.to_owned(), ..self }
    }

    /// Sets or removes the content type.
    #[must_use]
    pub fn content_type(self, content_type: Option<&str>) -> Self {
        Self { content_type: content_type.map(str::to_owned), ..self }
    }

    /// Sets the framing.
    #[must_use]
    pub fn framing(self, framing: BodyFraming) -> Self {
        Self { framing, ..self }
    }

    /// Sets the number of the connection.
    #[must_use]
    pub fn on(self, connection: u32) -> Self {
        Self { connection, ..self }
    }

    /// Packs the body and adds `Content-Encoding: gzip`.
    #[must_use]
    pub fn gzip(self, packing: Packing) -> Self {
        Self { gzip: Some(packing), ..self }
    }

    /// True if only the payload is written and no reply has to come.
    pub fn is_raw(&self) -> bool {
        matches!(self.framing, BodyFraming::Held | BodyFraming::Cut)
    }

    /// True if nothing is added to the payload.
    pub fn is_verbatim(&self) -> bool {
        self.is_raw() || self.framing == BodyFraming::Verbatim
    }

    /// True if the body ends before it is complete.
    pub fn is_cut(&self) -> bool {
        matches!(self.framing, BodyFraming::Short(_) | BodyFraming::OpenChunks(_))
    }

    /// True if the content type is JSON.
    pub fn is_json(&self) -> bool {
        self.content_type.as_deref().is_some_and(|name| {
            let name = name.split(';').next().unwrap_or_default();
            name.trim().eq_ignore_ascii_case(JSON_TYPE)
        })
    }
}

/// Path of a request target, without scheme and authority.
pub(crate) fn path_of(target: &str) -> &str {
    let behind = target.strip_prefix("http://").and_then(|rest| rest.get(rest.find('/')?..));
    behind.unwrap_or(target)
}

// Serde passes the field by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_lines_have_several_spellings() {
        let head = "POST /: HTTP/1.1\r\nHost: a:80\r\nX-Y: b: C\r\n\r\n";
        assert_eq!(Spelling::Usual.of(head.to_owned()), head);
        assert_eq!(
            Spelling::LowerCase.of(head.to_owned()),
            "POST /: HTTP/1.1\r\nhost: a:80\r\nx-y: b: C\r\n\r\n"
        );
        assert_eq!(Spelling::Tight.of(head.to_owned()), "POST /: HTTP/1.1\r\nHost:a:80\r\nX-Y:b: C\r\n\r\n");
    }

    #[test]
    fn a_target_may_name_an_authority() {
        let path = "/capabilities/handshake";
        assert_eq!(path_of(path), path);
        assert_eq!(path_of("http://127.0.0.1:80/capabilities/handshake"), path);
        assert_ne!(path_of("/tools/capabilities/handshake"), path);
        assert_eq!(path_of("http://127.0.0.1"), "http://127.0.0.1");
    }
}
