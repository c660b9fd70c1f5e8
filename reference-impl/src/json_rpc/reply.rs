//! Replies: their bytes, and the errors with their codes (RPC Error Handling).

use super::method::Outcome;
use crate::json::write_str;

/// The id of a reply to what cannot be told apart from anything else.
pub(super) const NULL: &str = "null";

/// What went wrong with a call, and the code that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The text is not JSON.
    ParseError,
    /// The message is no request.
    InvalidRequest,
    /// The message has more bytes than are accepted.
    MessageTooLarge,
    /// The message is nested more deeply than is accepted.
    NestedTooDeeply,
    /// No method has this name.
    MethodNotFound,
    /// The params do not fit the method.
    InvalidParams,
    /// The result has more bytes than a message may have.
    ResultTooLarge,
    /// The call was not done in its time.
    Timeout,
    /// The method failed.
    ExecutionError,
    /// Something the call needs is not there.
    Unavailable,
    /// More requests than the rate limit allows.
    RateLimited,
    /// The signature is missing, malformed, wrong, stale or repeated.
    Unauthorized,
}

impl FailureKind {
    /// The code of the error, its message, and `data.type`.
    fn words(self) -> (i32, &'static str, &'static str) {
        match self {
            Self::ParseError => (-32700, "Parse error", "PARSE_ERROR"),
            Self::InvalidRequest => (-32600, "Invalid Request", "INVALID_REQUEST"),
            Self::MessageTooLarge => (-32600, "Invalid Request", "MESSAGE_TOO_LARGE"),
            Self::NestedTooDeeply => (-32600, "Invalid Request", "NESTED_TOO_DEEPLY"),
            Self::MethodNotFound => (-32601, "Method not found", "METHOD_NOT_FOUND"),
            Self::InvalidParams => (-32602, "Invalid params", "INVALID_PARAMS"),
            Self::ResultTooLarge => (-32603, "Internal error", "RESULT_TOO_LARGE"),
            Self::Timeout => (-32000, "Execution timeout", "TIMEOUT"),
            Self::ExecutionError => (-32000, "Execution failed", "EXECUTION_ERROR"),
            Self::Unavailable => (-32001, "Resource unavailable", "UNAVAILABLE"),
            Self::RateLimited => (-32002, "Rate limit exceeded", "RATE_LIMIT"),
            Self::Unauthorized => (-32003, "Authentication failed", "AUTH"),
        }
    }

    /// The code of the error.
    pub fn code(self) -> i32 {
        self.words().0
    }
}

/// An error object under construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub kind: FailureKind,
    /// Why, in words of ours; never a copy of what was sent.
    pub details: String,
    /// Time after which another try is worth while, in ms.
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// A failure with its reason.
    pub fn new(kind: FailureKind, details: impl Into<String>) -> Self {
        Self { kind, details: details.into(), retry_after_ms: None }
    }

    /// -32600 with its reason.
    pub(super) fn invalid_request(details: impl Into<String>) -> Self {
        Self::new(FailureKind::InvalidRequest, details)
    }

    /// -32602 with its reason.
    pub fn invalid_params(details: impl Into<String>) -> Self {
        Self::new(FailureKind::InvalidParams, details)
    }

    fn write(&self, out: &mut Vec<u8>, with_data: bool) {
        let (code, message, kind) = self.kind.words();
        out.extend_from_slice(format!("{{\"code\":{code},\"message\":\"{message}\"").as_bytes());
        if with_data {
            out.extend_from_slice(format!(",\"data\":{{\"type\":\"{kind}\",\"details\":").as_bytes());
            write_str(out, &self.details);
            if let Some(wait_ms) = self.retry_after_ms {
                out.extend_from_slice(format!(",\"retry_after_ms\":{wait_ms}").as_bytes());
            }
            out.push(b'}');
        }
        out.push(b'}');
    }
}

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"result\":";
const ID: &[u8] = b",\"id\":";

/// Bytes that are kept behind a result: the id, if it is a short one, and what is around it.
const ROOM_BYTES: usize = 32;

/// The JSON text of a result, without a line feed.
///
/// It stands where it stands in the response, which is made of it without a copy: memory for two texts of a megabyte is
/// more than an allocator keeps, and every large reply would have to get it from the system, page by page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultText(Vec<u8>);

impl<T: AsRef<[u8]>> From<T> for ResultText {
    fn from(text: T) -> Self {
        let text = text.as_ref();
        let mut out = Vec::with_capacity(HEAD.len() + text.len() + ROOM_BYTES);
        out.extend_from_slice(HEAD);
        out.extend_from_slice(text);
        Self(out)
    }
}

impl ResultText {
    /// The response with this result.
    fn close(self, id: &str) -> Vec<u8> {
        close(self.0, id)
    }

    /// Bytes of that response.
    fn closed_len(&self, id: &str) -> usize {
        self.0.len() + ID.len() + id.len() + 1
    }
}

/// A response with an error, with `data` or without.
pub(super) fn error(id: &str, failure: &Failure, with_data: bool) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\",\"error\":".to_vec();
    failure.write(&mut out, with_data);
    close(out, id)
}

fn close(mut out: Vec<u8>, id: &str) -> Vec<u8> {
    out.extend_from_slice(ID);
    out.extend_from_slice(id.as_bytes());
    out.push(b'}');
    out
}

/// The response to a call, within `bytes_max` bytes: a result that would be larger gives way to an error, and an id that
/// leaves no room for that is not echoed.
pub(super) fn response(id: &str, outcome: Outcome, bytes_max: usize) -> Vec<u8> {
    let failure = match outcome {
        Ok(result) if result.closed_len(id) <= bytes_max => return result.close(id),
        Ok(_) => Failure::new(FailureKind::ResultTooLarge, "the result does not fit into a message"),
        Err(failure) => failure,
    };
    let reply = error(id, &failure, true);
    if reply.len() <= bytes_max { reply } else { error(NULL, &failure, true) }
}

/// What takes the place of an outcome for which there is no room.
pub(super) fn give_way(outcome: &Outcome) -> FailureKind {
    outcome.as_ref().map_or_else(|failure| failure.kind, |_| FailureKind::ResultTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_does_not_fit_gives_way() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let value = || Ok("\"xxxxxxxxxx\"".into());
        let whole = text(response("1", value(), 1000));
        assert_eq!(whole, r#"{"jsonrpc":"2.0","result":"xxxxxxxxxx","id":1}"#);
        assert_eq!(text(response("1", value(), whole.len())), whole);
        assert!(text(response("1", value(), whole.len() - 1)).contains("-32603"));
        let long_id = format!("\"{}\"", "i".repeat(500));
        assert!(text(response(&long_id, value(), 300)).ends_with(",\"id\":null}"));
    }
}
