//! Replies: their bytes, and the errors with their codes (RPC Error Handling).

use crate::json::write_str;

/// Id of a reply to a message without a readable id.
pub(super) const NULL: &str = "null";

/// Outcome of a call: a result or an error.
pub type Outcome = Result<ResultText, Failure>;

/// Kind of error, with its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The text is not JSON.
    ParseError,
    /// The message is not a request.
    InvalidRequest,
    /// The message is over the size limit.
    MessageTooLarge,
    /// The message is nested too deeply.
    NestedTooDeeply,
    /// No method has this name.
    MethodNotFound,
    /// The params do not fit the method.
    InvalidParams,
    /// The result is over the size limit of a message.
    ResultTooLarge,
    /// The call exceeded its time limit.
    Timeout,
    /// The method failed.
    ExecutionError,
    /// A resource that the call needs is not available.
    Unavailable,
    /// The rate limit is exceeded.
    RateLimited,
    /// The signature is missing, malformed, wrong, stale or repeated.
    Unauthorized,
}

impl FailureKind {
    /// Error code, message, and `data.type`.
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

    /// Error code.
    pub fn code(self) -> i32 {
        self.words().0
    }
}

/// An error object under construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Kind of error.
    pub kind: FailureKind,
    /// Explanation in the server's own words; never a copy of the request.
    pub details: String,
    /// Time in ms after which a retry may succeed.
    pub retry_after_ms: Option<u64>,
}

impl Failure {
    /// Creates a failure with its details.
    pub fn new(kind: FailureKind, details: impl Into<String>) -> Self {
        Self { kind, details: details.into(), retry_after_ms: None }
    }

    /// Creates a -32600 with its details.
    pub(super) fn invalid_request(details: impl Into<String>) -> Self {
        Self::new(FailureKind::InvalidRequest, details)
    }

    /// Creates a -32602 with its details.
    pub(crate) fn invalid_params(details: impl Into<String>) -> Self {
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

/// Bytes reserved after a result for a short id and the end of the response.
const ROOM_BYTES: usize = 32;

/// The JSON text of a result, without a line feed.
///
/// It is stored at its place in the response, so that the response needs no copy. Memory for two texts of a megabyte
/// is more than an allocator keeps: every large reply would have to get it from the system, page by page.
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
    /// Response with this result.
    fn close(self, id: &str) -> Vec<u8> {
        close(self.0, id)
    }

    /// Size of that response in bytes.
    fn closed_len(&self, id: &str) -> usize {
        self.0.len() + ID.len() + id.len() + 1
    }
}

/// Error response, with or without `data`.
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

/// Response to a call, within `bytes_max` bytes. A larger result is replaced by an error, and an id that leaves no
/// room for the error is not echoed.
pub(super) fn response(id: &str, outcome: Outcome, bytes_max: usize) -> Vec<u8> {
    let failure = match outcome {
        Ok(result) if result.closed_len(id) <= bytes_max => return result.close(id),
        Ok(_) => Failure::new(FailureKind::ResultTooLarge, "the result does not fit into a message"),
        Err(failure) => failure,
    };
    let reply = error(id, &failure, true);
    if reply.len() <= bytes_max { reply } else { error(NULL, &failure, true) }
}

/// Kind of the error that replaces an outcome that is too large.
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
