//! Faults of the HTTP transport, shared by all peers; `io/http_faults.rs` implements them.

/// Fault between HTTP and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFault {
    /// Successes come with status 201.
    ResultCreated,
    /// Errors come with status 500.
    ErrorIsServerError,
    /// A refusal with status 400 has an envelope as its body.
    RefusalHasBody,
    /// The second status replaces the first.
    Recodes(u16, u16),
    /// Requests of HTTP/1.0 are refused.
    RefusesOld,
    /// Requests with `Expect: 100-continue` are refused.
    RefusesExpect,
    /// Bodies have the content type of text.
    TextReplies,
    /// A notification gets the body `{}`.
    NotificationHasBody,
    /// A notification gets status 500.
    NotificationIsServerError,
    /// A body over the limit gets status 500.
    OversizeIsServerError,
    /// Methods other than POST get status 200.
    OtherMethodIsFine,
    /// Other content types get status 500.
    OtherTypeIsServerError,
    /// A chunked body counts as empty.
    ChunkedIsEmpty,
    /// Only the first 50 bytes of a body are used.
    ShortRead,
    /// Only the first piece of a body is used.
    FirstPiece,
    /// A truncated body counts as complete.
    ServesCut,
    /// The first reply on a connection repeats the first reply on the previous one.
    MixesReplies,
    /// The first large reply on a connection repeats the first large reply on the previous one.
    MixesLarge,
    /// Paths that begin with `/api/v1/process` are accepted too.
    LongerPaths,
    /// The first reply on a connection has the request id of the first reply on the previous one.
    MixesRequestIds,
    /// Chunk sizes with upper-case digits are refused.
    LowerCaseSizes,
    /// Maps called `metadata` get a member that names the transport of the reply.
    MarksReplies,
    /// The connection is closed after each reply.
    ClosesEach,
    /// The connection is closed after each reply without `Connection: close`.
    ClosesSilently,
    /// Only one connection is served at a time.
    OneConnection,
    /// More than 20 connections at a time are refused.
    FewConnections,
    /// Invalid HTTP ends the process.
    EndsAtGarbage,
    /// A connection that is closed within a request ends the process.
    EndsAtCut,
    /// A body with more than 90 opening brackets ends the process.
    EndsAtDepth,
    /// Bodies of more than 100,000 bytes get status 413.
    SmallBodies,
    /// The first of several `Content-Length` values counts, and a minus sign is ignored.
    FirstLength,
    /// A `Content-Length` may have a plus sign and underscores.
    LooseLength,
    /// A client that is silent for 250 ms is disconnected.
    Impatient,
    /// A client that is silent for 1 s is disconnected.
    DropsSilent,
    /// The body of a request with a wrong path or method is read as the next request.
    LeavesBodies,
    /// `Content-Length` takes precedence over chunks.
    LengthOverChunks,
    /// Large bodies that arrive at the same time share one buffer.
    SharesBuffer,
    /// Bodies over the limit are read into memory before they are refused.
    HoldsBodies,
    /// A content type with a parameter gets status 415.
    ExactType,
    /// After fifty messages all replies have an empty body.
    TiresAfterFifty,
    /// Invalid HTTP keeps a lock that all other requests need.
    HangsAtGarbage,
    /// `Content-Encoding` is ignored.
    IgnoresEncoding,
    /// The check sum of a compressed body is ignored.
    SkipsSum,
    /// Compressed bodies are inflated completely before their size is checked.
    InflatesFirst,
    /// The head of a reply repeats the `Authorization` of its request.
    TellsAuthorization,
    /// The status line for a valid job is written before the job is stored.
    SpeaksEarly,
    /// A body of more than 100,000 bytes without `Authorization` is authorized like the first request.
    TrustsLarge,
    /// A chunked body without `Authorization` is authorized like the first request.
    TrustsChunks,
    /// Replies of more than 300,000 bytes share one buffer, across all clients.
    SharesLarge,
    /// A compressed body that inflates beyond the limit gets status 500.
    InflatedIsServerError,
    /// Extensions of chunks are no HTTP.
    NoExtensions,
    /// `content-length` in lower case is no known header.
    ExactNames,
    /// `Content-Length` without white space behind the colon is no known header.
    WantsBlank,
}
