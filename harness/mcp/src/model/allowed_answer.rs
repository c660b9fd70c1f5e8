//! Allowed answers: those of JSON-RPC, and the content of a tool's result.

use super::expected;
use peerproof_engine::contract::face::{self, Expected, Misfit};
use peerproof_engine::data::finding::Repair;
use peerproof_engine::data::json::Json;
use peerproof_json_rpc::model::{AllowedAnswer as RpcAnswer, AnswerKind, Codes, Demand, IdRule, allowed};

/// Any error code.
pub(crate) const ANY_CODE: Codes = Codes::But(&[]);

/// Reason code of a success instead of an error.
pub(crate) const NO_ERROR: &str = "no_error";

/// Clauses about messages that correct clients send, such as calls of removed tools. Input like this is not
/// malformed, even if it must be refused.
const ORDINARY: [&str; 9] = [
    "MCP-BAS-04",
    "MCP-CAP-02",
    "MCP-CAP-04",
    "MCP-TOL-01",
    "MCP-TOL-02",
    "MCP-RES-02",
    "MCP-PRM-02",
    "MCP-PRM-03",
    "MCP-TSK-04",
];

/// Required content of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Any.
    Any,
    /// `isError: true`.
    ToolError,
    /// This text, in a text block or in the structured content.
    Text(String),
}

/// One allowed answer.
#[derive(Debug, Clone, PartialEq)]
pub struct AllowedAnswer {
    /// Kind and id.
    pub rpc: RpcAnswer,
    /// Content of the result.
    pub content: Content,
}

/// One allowed outcome.
pub(crate) type Allowed = face::Allowed<AllowedAnswer>;

/// A request and its allowed answers.
pub(crate) type RequestPart = Expected<AllowedAnswer, RequestNotes>;

/// Clauses that a wrong answer breaks, by its fault; `None`: that of the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blame {
    /// Another id.
    pub id: Option<&'static str>,
    /// Another error code.
    pub code: Option<&'static str>,
    /// An error instead of a result.
    pub refused: Option<&'static str>,
    /// A result instead of an error.
    pub accepted: Option<&'static str>,
    /// A result with `isError: true` instead of an error.
    pub tool_error: Option<&'static str>,
    /// A list with items instead of an error.
    pub listed: Option<&'static str>,
}

/// Further notes of the model about a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestNotes {
    /// Id of the request, if an answer can carry it.
    pub id: Option<Json>,
    /// Method.
    pub method: Option<String>,
    /// Params.
    pub params: Option<Json>,
    /// Clauses of wrong answers.
    pub blame: Blame,
    /// Reason why an allowed error leaves the question open.
    pub open_by_error: Option<&'static str>,
    /// Id of the request that this message cancels.
    pub cancels: Option<Json>,
    /// True if a later message cancels it.
    pub was_cancelled: bool,
}

impl AllowedAnswer {
    /// An answer of this kind with any content.
    pub fn of(rpc: RpcAnswer) -> Self {
        Self { rpc, content: Content::Any }
    }

    /// Compares an answer with the request.
    ///
    /// # Errors
    /// The difference, with its clause.
    pub(crate) fn fit(&self, unit: &RequestPart, response: &Json) -> Result<(), Misfit> {
        let id = unit.extra.id.as_ref();
        let blame = &unit.extra.blame;
        let Some(misfit) = self.rpc.misfit(id, response) else { return self.fit_content(unit, response) };
        let result = response.get("result");
        let clause = match misfit {
            allowed::Misfit::WrongId => blame.id.or(Some("MCP-BAS-01")),
            allowed::Misfit::WrongCode => blame.code,
            allowed::Misfit::Refused => blame.refused,
            allowed::Misfit::Accepted if is_tool_error(result) => blame.tool_error.or(blame.accepted),
            allowed::Misfit::Accepted if has_items(result) => blame.listed.or(blame.accepted),
            allowed::Misfit::Accepted => blame.accepted,
            allowed::Misfit::WrongResult => None,
        };
        let to = match (misfit, &self.rpc.what) {
            (allowed::Misfit::WrongId, _) if self.rpc.id == IdRule::Own => id.map(Json::to_text),
            (allowed::Misfit::WrongCode, AnswerKind::Error(Codes::Of([code]))) => Some(code.to_string()),
            _ => None,
        };
        let repair = Repair::Set { at: misfit.place().to_owned(), to };
        let reason = match clause {
            Some(clause) if misfit == allowed::Misfit::Accepted && ORDINARY.contains(&clause) => NO_ERROR,
            _ => misfit.reason(),
        };
        Err(Misfit { rank: misfit as u8, clause, reason, repair })
    }

    fn fit_content(&self, unit: &RequestPart, response: &Json) -> Result<(), Misfit> {
        let result = response.get("result");
        match &self.content {
            Content::Any => Ok(()),
            Content::ToolError if is_tool_error(result) => Ok(()),
            Content::ToolError => {
                let clause = unit.extra.blame.accepted;
                let repair = Repair::set("/result/isError", "true");
                Err(Misfit { rank: u8::MAX - 1, clause, reason: NO_ERROR, repair })
            }
            Content::Text(text) => {
                let blocks = result.and_then(|result| result.get("content")?.as_array()).unwrap_or_default();
                let mut texts = blocks.iter().filter_map(|block| block.get("text")?.as_str());
                let is_structured = || {
                    let structured = result.and_then(|result| result.get("structuredContent"));
                    structured.is_some_and(|value| value.has(|part| part.as_str() == Some(text.as_str())))
                };
                if texts.any(|came| came.contains(text.as_str())) || is_structured() {
                    return Ok(());
                }
                let repair = Repair::other("/result/content");
                Err(Misfit { rank: 2, clause: None, reason: "wrong_content", repair })
            }
        }
    }

    /// Describes the answer in one phrase.
    pub fn phrase(&self, unit: &RequestPart) -> String {
        let rpc = self.rpc.phrase(unit.extra.id.as_ref());
        match &self.content {
            Content::Any => rpc,
            Content::ToolError => format!("{rpc} and `isError: true`"),
            Content::Text(text) => {
                format!("{rpc} and the text {:?}", peerproof_engine::data::payload::shorten(text, 60))
            }
        }
    }
}

/// True for a result with `isError: true`.
pub(crate) fn is_tool_error(result: Option<&Json>) -> bool {
    result.and_then(|result| result.get("isError")).and_then(Json::as_bool) == Some(true)
}

/// True for the result of a list with items, or of a completion with values.
fn has_items(result: Option<&Json>) -> bool {
    let completion = result.and_then(|result| result.get("completion"));
    let members = completion.or(result).and_then(Json::as_object).unwrap_or_default();
    members.iter().any(|(_, value)| value.as_array().is_some_and(|items| !items.is_empty()))
}

/// A request with this id. Any other answer breaks `clause`, and so does silence.
pub(super) fn unit(id: Option<&Json>, clause: &'static str, allowed: Vec<Allowed>) -> RequestPart {
    let mut unit = expected(id, clause, allowed);
    unit.extra.id = id.cloned();
    unit
}

/// A result with the id of the request.
pub(super) fn result() -> Allowed {
    Allowed::answer(AllowedAnswer::of(RpcAnswer { what: AnswerKind::Result(Demand::Any), id: IdRule::Own }))
}

/// A result with the id of the request and this content.
pub(crate) fn result_with(content: Content) -> Allowed {
    let rpc = RpcAnswer { what: AnswerKind::Result(Demand::Any), id: IdRule::Own };
    Allowed::answer(AllowedAnswer { rpc, content })
}

/// An error with one of these codes.
pub(crate) fn error_of(codes: &'static [i64], id: IdRule) -> Allowed {
    Allowed::answer(AllowedAnswer::of(RpcAnswer { what: AnswerKind::Error(Codes::Of(codes)), id }))
}

/// An error with any code but these, and the id of the request.
pub(crate) fn error_but(codes: &'static [i64]) -> Allowed {
    Allowed::answer(AllowedAnswer::of(RpcAnswer {
        what: AnswerKind::Error(Codes::But(codes)),
        id: IdRule::Own,
    }))
}

/// An error with any code and any id.
pub(crate) fn error_with_any_id() -> Allowed {
    Allowed::answer(AllowedAnswer::of(RpcAnswer { what: AnswerKind::Error(ANY_CODE), id: IdRule::Any }))
}

/// A result or an error.
pub(crate) fn any_reply(id: IdRule) -> Allowed {
    Allowed::answer(AllowedAnswer::of(RpcAnswer { what: AnswerKind::Reply, id }))
}
