//! Behaviours that the contract leaves open for an MCP server (contract §9 `[choices]`).

use crate::choices::{choices, two};
pub use crate::frame::BlankLine;

choices! {
    /// A line of nothing but white space.
    blank_line: BlankLine = BlankLine::Ignore, { "ignore" => BlankLine::Ignore, "refuse" => BlankLine::Refuse };
    /// Bytes that are no UTF-8.
    utf8_invalid: InvalidUtf8 = InvalidUtf8::Refuse, {
        "refuse" => InvalidUtf8::Refuse, "replace" => InvalidUtf8::Replace
    };
    /// An id with a fraction.
    fractional_id: FractionalId = FractionalId::Echo, {
        "echo" => FractionalId::Echo, "refuse" => FractionalId::Refuse, "silent" => FractionalId::Silent
    };
    /// A response to no request of the server.
    response_to_server: StrayResponse = StrayResponse::Silent, {
        "refuse" => StrayResponse::Refuse, "silent" => StrayResponse::Silent
    };
    /// A batch where the revision has none.
    mcp_batch: Batch = Batch::Error, {
        "error" => Batch::Error, "answer" => Batch::Answer, "silent" => Batch::Silent
    };
    /// `initialize` with a version that the server does not know.
    mcp_unknown_version: UnknownVersion = UnknownVersion::Other, {
        "other" => UnknownVersion::Other, "error" => UnknownVersion::Error
    };
    /// A request before `initialize`; `ping` is always answered.
    mcp_early_request: EarlyRequest = EarlyRequest::Error, {
        "serve" => EarlyRequest::Serve, "error" => EarlyRequest::Error, "silent" => EarlyRequest::Silent
    };
    /// A second `initialize`.
    mcp_second_initialize: SecondInitialize = SecondInitialize::Error, {
        "result" => SecondInitialize::Result, "error" => SecondInitialize::Error
    };
    /// A cursor that the server never gave.
    mcp_bad_cursor: BadCursor = BadCursor::Error, { "error" => BadCursor::Error, "ignore" => BadCursor::Ignore };
    /// Arguments that break the schema of their tool, before 2025-11-25.
    mcp_invalid_args: InvalidArguments = InvalidArguments::IsError, {
        "is_error" => InvalidArguments::IsError, "error" => InvalidArguments::Error
    };
    /// Code for a resource that is not there.
    mcp_resource_unknown: UnknownResource = UnknownResource::NotFound, {
        "-32002" => UnknownResource::NotFound, "-32602" => UnknownResource::InvalidParams
    };
    /// A call that is cancelled under way.
    mcp_cancelled: Cancelled = Cancelled::Silent, {
        "silent" => Cancelled::Silent, "result" => Cancelled::Result
    };
    /// A tool that requires a task, called without one.
    mcp_task_required: RequiredTask = RequiredTask::MethodNotFound, {
        "-32601" => RequiredTask::MethodNotFound, "-32600" => RequiredTask::InvalidRequest
    };
    /// Calls under way at the end of input.
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
    /// Answered as by 2025-03-26.
    Answer,
    /// Dropped.
    Silent,
}

/// See [`Choices::mcp_early_request`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EarlyRequest {
    /// Served as by the newest revision.
    Serve,
    /// Refused.
    Error,
    /// Dropped.
    Silent,
}
