//! Faults of what carries messages over HTTP, whoever's they are; `io/http_faults.rs` has them.

/// What is wrong between HTTP and messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpFault {
    /// Where all is well, the status is 201.
    ResultCreated,
    /// Errors come with status 500.
    ErrorIsServerError,
    /// What is refused is given back.
    RefusalHasBody,
    /// The second status comes in the place of the first.
    Recodes(u16, u16),
    /// Requests of HTTP/1.0 are refused.
    RefusesOld,
    /// Requests that wait before their body are refused.
    RefusesExpect,
    /// Bodies are called text.
    TextReplies,
    /// A notification is answered by `{}`.
    NotificationHasBody,
    /// A notification is answered by status 500.
    NotificationIsServerError,
    /// A body that is too large is answered by status 500.
    OversizeIsServerError,
    /// Other methods than POST are answered by status 200.
    OtherMethodIsFine,
    /// Another content type is answered by status 500.
    OtherTypeIsServerError,
    /// A body in chunks is taken for an empty one.
    ChunkedIsEmpty,
    /// What came with the first 50 bytes of a body is all that is looked at.
    ShortRead,
    /// What came first of a body, in one piece, is all that is looked at.
    FirstPiece,
    /// A body that is cut short is taken for a whole one.
    ServesCut,
    /// The first reply on a connection is the last that was given on another.
    MixesReplies,
    /// The same, where replies are large.
    MixesLarge,
    /// What follows a request with a body that was answered 404 or 405 is no request.
    LeavesBodies,
    /// What begins as the path of `/api/v1/process` is that path.
    LongerPaths,
    /// The first reply on a connection has the request id of the last that was given on another.
    MixesRequestIds,
    /// Sizes of chunks with capital digits are no HTTP.
    LowerCaseSizes,
    /// Maps called `metadata` get a member that tells how the reply came.
    MarksReplies,
    /// The connection is closed after each reply.
    ClosesEach,
    /// The connection is closed after each reply, without a word.
    ClosesSilently,
    /// One connection is served at a time.
    OneConnection,
    /// More than 20 connections at a time are refused.
    FewConnections,
    /// What is no HTTP request ends the process.
    EndsAtGarbage,
    /// A connection that breaks off within a request ends the process.
    EndsAtCut,
    /// A body with more than 90 opening brackets ends the process.
    EndsAtDepth,
    /// Bodies of more than 100,000 bytes are answered 413.
    SmallBodies,
    /// Of several lengths the first one counts, and no sign is looked at.
    FirstLength,
    /// A length may have a plus sign and underscores.
    LooseLength,
    /// A client that is silent for a quarter of a second is dropped.
    Impatient,
    /// Bodies that are too large are held whole before they are refused.
    HoldsBodies,
    /// A content type with a parameter is answered 415.
    ExactType,
    /// After fifty messages nothing is answered but by an empty body.
    TiresAfterFifty,
    /// What is no HTTP request keeps the lock that every other request needs.
    HangsAtGarbage,
    /// `Content-Encoding` is not looked at.
    IgnoresEncoding,
    /// Compressed bodies are inflated by their data alone, whatever their check sum.
    SkipsSum,
    /// Compressed bodies are inflated whole before their size is looked at.
    InflatesFirst,
    /// The head of a reply repeats how its request was authorized.
    TellsAuthorization,
    /// The status of a job that can be stored is written before it is.
    SpeaksEarly,
    /// A body of more than 100,000 bytes without an `Authorization` counts as authorized as the first request was.
    TrustsLarge,
    /// The same for a body in chunks.
    TrustsChunks,
    /// What a compressed body inflates to is answered by status 500 where it is too large.
    InflatedIsServerError,
}
