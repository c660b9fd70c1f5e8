//! Behaviours that the contract leaves open for a JSON-RPC server, as values (contract §8 `[choices]`).

use crate::choices::choices;
pub use crate::frame::{BlankLine, LastLine};

choices! {
    /// Treatment of a line of white space.
    blank_line: BlankLine = BlankLine::Ignore, { "ignore" => BlankLine::Ignore, "refuse" => BlankLine::Refuse };
    /// Treatment of a last line without LF at the end of standard input.
    last_line_without_lf: LastLine = LastLine::Process, {
        "process" => LastLine::Process, "refuse" => LastLine::Refuse, "silent" => LastLine::Silent
    };
    /// Treatment of `null` as an id.
    null_id: NullId = NullId::Answer, {
        "answer" => NullId::Answer, "silent" => NullId::Silent, "refuse" => NullId::Refuse
    };
    /// Treatment of an id with a fraction or an exponent.
    fractional_id: FractionalId = FractionalId::Echo, {
        "echo" => FractionalId::Echo, "refuse" => FractionalId::Refuse
    };
    /// Treatment of `null` as params.
    params_null: ParamsNull = ParamsNull::Absent, {
        "absent" => ParamsNull::Absent, "refuse" => ParamsNull::Refuse
    };
    /// Error code for params that are neither an array nor an object.
    params_scalar: ParamsScalar = ParamsScalar::InvalidRequest, {
        "-32600" => ParamsScalar::InvalidRequest, "-32602" => ParamsScalar::InvalidParams
    };
    /// Treatment of a method whose name begins with `rpc.`.
    rpc_prefix: RpcPrefix = RpcPrefix::MethodNotFound, {
        "-32600" => RpcPrefix::InvalidRequest, "-32601" => RpcPrefix::MethodNotFound, "answer" => RpcPrefix::Answer
    };
    /// Treatment of a response object that is sent to the server.
    response_to_server: ResponseToServer = ResponseToServer::Refuse, {
        "refuse" => ResponseToServer::Refuse, "silent" => ResponseToServer::Silent
    };
    /// HTTP status of an error reply.
    error_status: ErrorStatus = ErrorStatus::Ok, { "200" => ErrorStatus::Ok, "400" => ErrorStatus::BadRequest };
    /// Form of the refusal of an HTTP body over the limit.
    over_size_body: OverSizeBody = OverSizeBody::Error, {
        "413" => OverSizeBody::Status, "-32600" => OverSizeBody::Error
    };
    /// Treatment of an HTTP body with `Content-Encoding: gzip`, if compressed messages are accepted.
    gzip_over_http: GzipOverHttp = GzipOverHttp::Accept, {
        "accept" => GzipOverHttp::Accept, "415" => GzipOverHttp::Unsupported
    };
    /// True if a request that the rate limit refuses counts against the limit.
    refused_counts: bool = false, { "true" => true, "false" => false };
    /// True if a request that the rate limit refuses spends its nonce.
    refusal_burns_nonce: bool = false, { "true" => true, "false" => false };
}

/// See [`Choices::null_id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullId {
    /// A request; its reply has id null.
    Answer,
    /// A notification.
    Silent,
    /// An invalid request.
    Refuse,
}

/// See [`Choices::fractional_id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FractionalId {
    /// An id like any other.
    Echo,
    /// An invalid request.
    Refuse,
}

/// See [`Choices::params_null`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamsNull {
    /// As if the member were missing.
    Absent,
    /// As params of any other wrong type.
    Refuse,
}

/// See [`Choices::params_scalar`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamsScalar {
    /// -32600, before all other checks of the request.
    InvalidRequest,
    /// -32602, after the method is found.
    InvalidParams,
}

/// See [`Choices::rpc_prefix`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RpcPrefix {
    /// -32600.
    InvalidRequest,
    /// -32601.
    MethodNotFound,
    /// A list of the method names.
    Answer,
}

/// See [`Choices::response_to_server`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseToServer {
    /// An invalid request.
    Refuse,
    /// Dropped.
    Silent,
}

/// See [`Choices::error_status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorStatus {
    /// 200, as for results.
    Ok,
    /// 400.
    BadRequest,
}

/// See [`Choices::over_size_body`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverSizeBody {
    /// Status 413.
    Status,
    /// An invalid request, as on lines.
    Error,
}

/// See [`Choices::gzip_over_http`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GzipOverHttp {
    /// Inflated.
    Accept,
    /// Status 415.
    Unsupported,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_value_can_be_set_and_read_back() {
        for (key, values) in Choices::ALL {
            for value in *values {
                let mut choices = Choices::default();
                choices.set(key, value).unwrap();
                assert_eq!(choices.get(key), Some(*value), "{key}");
            }
        }
    }

    #[test]
    fn refusals_name_what_is_known() {
        let mut choices = Choices::default();
        assert!(choices.set("bomb", "ignore").unwrap_err().to_string().contains("blank_line"));
        assert!(choices.set("blank_line", "end").unwrap_err().to_string().contains("ignore, refuse"));
        assert_eq!(choices, Choices::default());
    }
}
