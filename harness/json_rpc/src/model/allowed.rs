//! Allowed replies to one request.

use peerproof_engine::contract::face::{self, Expected, Subject};
use peerproof_engine::data::json::Json;

use super::value::{Equality, same};
use super::{ErrorRule, Shape, Work, code};

/// Error codes of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes {
    /// One of these.
    Of(&'static [i64]),
    /// Error of a failing method: any integer except these.
    But(&'static [i64]),
}

impl Codes {
    /// True if only messages that are no requests get these codes.
    fn is_of_invalid(self) -> bool {
        matches!(self, Self::Of(codes) if codes.iter().all(|it| matches!(*it, code::PARSE | code::REQUEST)))
    }

    fn has(self, code: i64) -> bool {
        match self {
            Self::Of(codes) => codes.contains(&code),
            Self::But(codes) => !codes.contains(&code),
        }
    }
}

/// Id of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdRule {
    /// Id of the request.
    Own,
    /// null.
    Null,
    /// Id of the request, or null.
    OwnOrNull,
    /// null, or absent.
    NullOrAbsent,
    /// Id of the request, null, or absent.
    OwnNullOrAbsent,
    /// Any id.
    Any,
}

/// Required result.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// Any JSON value.
    Any,
    /// Equal to this.
    Equals(Json),
    /// Equal to one of these.
    OneOf(Vec<Json>),
    /// Equal to this value, except for digits that doubles cannot hold.
    Rounds(Json),
    /// `{"count":n}` with n within these bounds.
    Count(u64, u64),
    /// `{"data":"xx…"}` with this number of bytes.
    Blob(usize),
}

impl Demand {
    fn holds(&self, result: &Json) -> bool {
        match self {
            Self::Any => true,
            Self::Equals(wanted) => same(wanted, result) == Equality::Exactly,
            Self::OneOf(wanted) => wanted.iter().any(|wanted| same(wanted, result) == Equality::Exactly),
            Self::Rounds(wanted) => same(wanted, result) != Equality::No,
            Self::Count(low, high) => result
                .get("count")
                .and_then(Json::as_u64)
                .is_some_and(|count| (*low..=*high).contains(&count)),
            Self::Blob(bytes) => result
                .get("data")
                .and_then(Json::as_str)
                .is_some_and(|data| data.len() == *bytes && data.bytes().all(|byte| byte == b'x')),
        }
    }

    fn phrase(&self) -> String {
        match self {
            Self::Any => "a result".to_owned(),
            Self::Equals(wanted) | Self::Rounds(wanted) => format!("the result {}", wanted.to_text()),
            Self::OneOf(wanted) => {
                let texts: Vec<String> = wanted.iter().map(Json::to_text).collect();
                format!("the result {}", texts.join(" or "))
            }
            Self::Count(low, high) if low == high => format!("the result {{\"count\":{low}}}"),
            Self::Blob(bytes) => format!("the result {{\"data\":\"xx…\"}} of {bytes} bytes"),
            Self::Count(low, high) => format!("a result {{\"count\":n}} with n from {low} to {high}"),
        }
    }
}

/// Kinds of answers.
#[derive(Debug, Clone, PartialEq)]
pub enum AnswerKind {
    /// A success.
    Result(Demand),
    /// An error.
    Error(Codes),
    /// A success or an error.
    Reply,
}

/// One allowed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AllowedAnswer {
    /// Kind of the answer.
    pub what: AnswerKind,
    /// Its id.
    pub id: IdRule,
}

/// Facts about the signature of a message, used to find leaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Bytes of the right signature.
    pub mac: Vec<u8>,
    /// The signature that was sent.
    pub given: String,
    /// The nonce, if another element of the batch has it as well and either may be accepted.
    pub twin: Option<String>,
}

/// Allowed outcomes of one request, or of one invalid message.
pub type RequestPart = Expected<AllowedAnswer, RequestNotes>;

/// One allowed outcome.
pub type Allowed = face::Allowed<AllowedAnswer>;

/// Further notes of the model about a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestNotes {
    /// Id of the request, if a reply can carry it.
    pub id: Option<Json>,
    /// Minimum and maximum number of runs of the counting method.
    pub counts: (u64, u64),
    /// True for a request of JSON-RPC 1.0; its reply may have that form.
    pub old: bool,
    /// Required content of its error.
    pub error_rule: Option<ErrorRule>,
    /// Required shape of its result.
    pub shape: Option<Shape>,
    /// Time that the request takes.
    pub work: Option<Work>,
    /// Minimum size of its result in bytes, for large results.
    pub result_bytes: usize,
    /// Codes of allowed errors that leave the question undecided, and the reason.
    pub shows_nothing: Option<(&'static [i64], &'static str)>,
    /// Its signature, if it is wrong or its nonce occurs twice in the batch.
    pub sealed: Option<Box<Sealed>>,
}

/// A request with this id. Any other answer breaks `clause`.
pub fn unit(id: Option<Json>, clause: &'static str, allowed: Vec<Allowed>) -> RequestPart {
    let subject = Subject::Key(id.as_ref().and_then(key));
    let extra = RequestNotes { id, ..RequestNotes::default() };
    RequestPart { clause, subject, allowed, choice: None, effects: Vec::new(), extra }
}

/// Key of an id: strings as they are, numbers by value.
pub fn key(id: &Json) -> Option<String> {
    match id {
        Json::String(text) => Some(format!("s{text}")),
        // Numbers become doubles, so that an integer that a peer may round is found as well.
        Json::Number(number) => {
            Some(number.as_f64().map_or_else(|| format!("n{number}"), |float| format!("n{float}")))
        }
        _ => None,
    }
}

/// True if two keys of ids differ only in the type of the id.
pub fn is_same_text(due: &str, came: &str) -> bool {
    due.get(1..) == came.get(1..)
}

/// A result with the id of the request.
pub fn result(demand: Demand) -> Allowed {
    way(AnswerKind::Result(demand), IdRule::Own)
}

/// An error with one of these codes.
pub fn error(codes: &'static [i64], id: IdRule) -> Allowed {
    way(AnswerKind::Error(Codes::Of(codes)), id)
}

/// Any reply.
pub fn reply(id: IdRule) -> Allowed {
    way(AnswerKind::Reply, id)
}

/// An answer of this kind.
pub fn way(what: AnswerKind, id: IdRule) -> Allowed {
    Allowed::answer(AllowedAnswer { what, id })
}

/// Difference between a reply and an allowed answer, smallest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// Kind and content are right, the id is not.
    WrongId,
    /// An error with another code.
    WrongCode,
    /// Another result.
    WrongResult,
    /// An error instead of a result.
    Refused,
    /// A result instead of an error, or an error that only a valid request gets.
    Accepted,
}

impl Misfit {
    /// Reason code.
    pub fn reason(self) -> &'static str {
        match self {
            Self::WrongId => "wrong_id",
            Self::WrongCode => "wrong_code",
            Self::WrongResult => "wrong_result",
            Self::Refused => "refused",
            Self::Accepted => "accepted",
        }
    }

    /// JSON pointer to the wrong member.
    pub fn place(self) -> &'static str {
        match self {
            Self::WrongId => "/id",
            Self::WrongCode => "/error/code",
            Self::WrongResult => "/result",
            Self::Refused | Self::Accepted => "",
        }
    }
}

impl AllowedAnswer {
    /// Difference between a response object and this answer; `own` is the id of the request.
    pub fn misfit(&self, own: Option<&Json>, response: &Json) -> Option<Misfit> {
        let came = response.pointer("/error/code").and_then(Json::as_i64);
        let error =
            response.get("error").is_some_and(|error| !error.is_null() || response.get("result").is_none());
        match &self.what {
            AnswerKind::Reply => {}
            AnswerKind::Result(_) if error => return Some(Misfit::Refused),
            AnswerKind::Result(demand) => {
                if !demand.holds(response.get("result").unwrap_or(&Json::Null)) {
                    return Some(Misfit::WrongResult);
                }
            }
            AnswerKind::Error(_) if !error => return Some(Misfit::Accepted),
            AnswerKind::Error(codes) => {
                match came {
                    Some(code) if codes.has(code) => {}
                    // Only a message that was taken for a request has a method.
                    Some(code::METHOD) if codes.is_of_invalid() => {
                        return Some(Misfit::Accepted);
                    }
                    _ => return Some(Misfit::WrongCode),
                }
            }
        }
        let id = response.get("id");
        let is_own = || own.is_some_and(|own| id.is_some_and(|id| same(own, id) != Equality::No));
        let is_null = || id.is_some_and(Json::is_null);
        let fits = match self.id {
            IdRule::Own => is_own(),
            IdRule::Null => is_null(),
            IdRule::OwnOrNull => is_own() || is_null(),
            IdRule::NullOrAbsent => id.is_none() || is_null(),
            IdRule::OwnNullOrAbsent => id.is_none() || is_own() || is_null(),
            IdRule::Any => true,
        };
        // A parse error without the id of a request that can be read says that nobody read it.
        let is_unread = self.id == IdRule::Own && came == Some(code::PARSE);
        (!fits).then_some(if is_unread { Misfit::Refused } else { Misfit::WrongId })
    }

    /// Describes the expectation in one phrase.
    pub fn phrase(&self, own: Option<&Json>) -> String {
        let mut text = match &self.what {
            AnswerKind::Reply => "a reply".to_owned(),
            AnswerKind::Result(demand) => demand.phrase(),
            AnswerKind::Error(Codes::Of(codes)) => {
                let codes: Vec<String> = codes.iter().map(ToString::to_string).collect();
                format!("error {}", codes.join(" or "))
            }
            AnswerKind::Error(Codes::But(_)) => "an error of the method".to_owned(),
        };
        let own = own.map_or_else(
            || "null".to_owned(),
            |id| peerproof_engine::data::payload::shorten(&id.to_text(), 60).into_owned(),
        );
        text.push_str(&match self.id {
            IdRule::Own => format!(" with id {own}"),
            IdRule::Null => " with id null".to_owned(),
            IdRule::OwnOrNull => format!(" with id {own} or null"),
            IdRule::NullOrAbsent => " with id null or without one".to_owned(),
            IdRule::OwnNullOrAbsent => format!(" with id {own}, null or without one"),
            IdRule::Any => String::new(),
        });
        text
    }
}
