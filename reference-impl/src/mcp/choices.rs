//! Behaviours that the contract leaves open for an MCP server (contract §9 `[choices]`).

use crate::choices::{choices, two};
pub use crate::frame::BlankLine;

choices! {
    /// Treatment of a line of white space.
    blank_line: BlankLine = BlankLine::Ignore, { "ignore" => BlankLine::Ignore, "refuse" => BlankLine::Refuse };
    /// Treatment of bytes that are not UTF-8.
    utf8_invalid: InvalidUtf8 = InvalidUtf8::Refuse, {
        "refuse" => InvalidUtf8::Refuse, "replace" => InvalidUtf8::Replace
    };
    /// Treatment of an id with a fraction.
    fractional_id: FractionalId = FractionalId::Echo, {
        "echo" => FractionalId::Echo, "refuse" => FractionalId::Refuse, "silent" => FractionalId::Silent
    };
    /// Treatment of a response without a request from the server.
    response_to_server: StrayResponse = StrayResponse::Silent, {
        "refuse" => StrayResponse::Refuse, "silent" => StrayResponse::Silent
    };
    /// Treatment of a batch in a revision without batches.
    mcp_batch: Batch = Batch::Error, {
        "error" => Batch::Error, "answer" => Batch::Answer, "silent" => Batch::Silent
    };
    /// Treatment of `initialize` with an unknown version.
    mcp_unknown_version: UnknownVersion = UnknownVersion::Other, {
        "other" => UnknownVersion::Other, "error" => UnknownVersion::Error
    };
    /// Treatment of a request before `initialize`; `ping` is always answered.
    mcp_early_request: EarlyRequest = EarlyRequest::Error, {
        "serve" => EarlyRequest::Serve, "error" => EarlyRequest::Error, "silent" => EarlyRequest::Silent
    };
    /// Treatment of a second `initialize`.
    mcp_second_initialize: SecondInitialize = SecondInitialize::Error, {
        "result" => SecondInitialize::Result, "error" => SecondInitialize::Error
    };
    /// Treatment of a cursor that the server never issued.
    mcp_bad_cursor: BadCursor = BadCursor::Error, { "error" => BadCursor::Error, "ignore" => BadCursor::Ignore };
    /// Treatment of arguments that violate the schema of their tool, before 2025-11-25.
    mcp_invalid_args: InvalidArguments = InvalidArguments::IsError, {
        "is_error" => InvalidArguments::IsError, "error" => InvalidArguments::Error
    };
    /// Error code for an unknown resource.
    mcp_resource_unknown: UnknownResource = UnknownResource::NotFound, {
        "-32002" => UnknownResource::NotFound, "-32602" => UnknownResource::InvalidParams
    };
    /// Treatment of a running call that is cancelled.
    mcp_cancelled: Cancelled = Cancelled::Silent, {
        "silent" => Cancelled::Silent, "result" => Cancelled::Result
    };
    /// Error for a tool that requires a task and is called without one.
    mcp_task_required: RequiredTask = RequiredTask::MethodNotFound, {
        "-32601" => RequiredTask::MethodNotFound, "-32600" => RequiredTask::InvalidRequest
    };
    /// Treatment of running calls at the end of input.
    mcp_eof_pending: PendingAtEof = PendingAtEof::Answer, {
        "answer" => PendingAtEof::Answer, "drop" => PendingAtEof::Drop
    };
}

two! {
    /// See [`Choices::utf8_invalid`].
    InvalidUtf8 { Refuse, Replace },
    /// See [`Choices::response_to_server`].
    StrayResponse { Refuse, Silent },
    /// See [`Choices::mcp_unknown_version`].
    UnknownVersion { Other, Error },
    /// See [`Choices::mcp_second_initialize`].
    SecondInitialize { Result, Error },
    /// See [`Choices::mcp_bad_cursor`].
    BadCursor { Error, Ignore },
    /// See [`Choices::mcp_invalid_args`].
    InvalidArguments { IsError, Error },
    /// See [`Choices::mcp_resource_unknown`].
    UnknownResource { NotFound, InvalidParams },
    /// See [`Choices::mcp_cancelled`].
    Cancelled { Silent, Result },
    /// See [`Choices::mcp_task_required`].
    RequiredTask { MethodNotFound, InvalidRequest },
    /// See [`Choices::mcp_eof_pending`].
    PendingAtEof { Answer, Drop },
}

/// See [`Choices::fractional_id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FractionalId {
    /// An id like any other.
    Echo,
    /// An invalid request.
    Refuse,
    /// Dropped.
    Silent,
}

/// See [`Choices::mcp_batch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Batch {
    /// One error.
    Error,
    /// Answered as in 2025-03-26.
    Answer,
    /// Dropped.
    Silent,
}

/// See [`Choices::mcp_early_request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyRequest {
    /// Answered as in the newest revision.
    Serve,
    /// Refused.
    Error,
    /// Dropped.
    Silent,
}
