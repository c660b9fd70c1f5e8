//! Expected results of a call, as data.

use serde::{Deserialize, Serialize};

use super::super::expect::parse;
use peerproof_engine::data::clause::ClauseId;
use peerproof_engine::data::json::{self, DecodeLimits, Json};
use peerproof_engine::data::payload::{Payload, Vars};

/// The five types of an error object (`ipc` §5).
pub(crate) const ERROR_TYPES: [&str; 5] = ["timeout", "crash", "parse_error", "not_found", "exception"];

/// Expectations of one call, stored in the `expect` of the step that sends it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallExpect {
    /// Allowed results by clause, the most severe clause first. The first contradicted one becomes the finding.
    pub results: Vec<Expect>,
    /// Clause for a request that does not carry the call; `None` for the general one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<ClauseId>,
    /// True if the toolhost gave no reason, so that `detail` may be empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reasonless: bool,
    /// Processes of the toolhost that must be gone at a probe.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<ExitedProcesses>,
    /// Limit on memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryBound>,
}

/// Allowed results under one clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// Clause that is broken if no allowed result fits, nothing is printed, or the dispatcher dies.
    pub clause: ClauseId,
    /// Allowed results.
    pub allowed: Vec<Allowed>,
    /// Reason code if none fits. The default is derived from the printed result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Open choice that this call reveals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reveals: Option<Reveals>,
}

/// One allowed result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Allowed {
    /// This JSON text, compared as a value, or a JSON string with a text of it.
    Output(Payload),
    /// An error object.
    Error {
        /// Allowed types; empty for any of the five.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        types: Vec<String>,
        /// Text that `detail` contains.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Any well-formed result.
    Anything,
}

/// Open choice that a call reveals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reveals {
    /// Shape of the request to the toolhost.
    RequestShape,
    /// Form of the printed result: value or string.
    PrintedAs,
    /// The exit status: `zero` or `nonzero`.
    ExitStatus,
    /// Value of a choice, shown by the allowed result that was printed.
    Choice {
        /// Key under `[choices]`.
        key: String,
        /// Values, one per allowed result, in order.
        values: Vec<String>,
    },
}

impl Reveals {
    /// Configuration key of the choice.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::RequestShape => "request_shape",
            Self::PrintedAs => "printed_as",
            Self::ExitStatus => "exit_status",
            Self::Choice { key, .. } => key,
        }
    }
}

/// Demand that processes of the toolhost are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExitedProcesses {
    /// Clause that a living process breaks.
    pub clause: ClauseId,
    /// Label of the probe.
    pub label: String,
    /// Roles of the processes: `self`, `child`, `left_group`.
    pub roles: Vec<String>,
}

/// Limit on the memory of the dispatcher with its toolhost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryBound {
    /// Clause that is broken above the limit.
    pub clause: ClauseId,
    /// Label of the samples with a small reply, in any session.
    pub baseline: String,
    /// Label of the samples to judge. Without samples, the call was over before it could be measured.
    pub label: String,
    /// Allowed difference in bytes.
    pub growth_bytes_max: u64,
}

/// A printed result with its parts.
pub(crate) struct PrintedResult<'a> {
    /// The value.
    pub value: &'a Json,
    /// Value within a string that holds JSON.
    pub inner: Option<Json>,
    /// `type` and `detail` of an error object.
    pub error: Option<(&'a str, &'a str)>,
}

impl<'a> PrintedResult<'a> {
    /// Splits `value` into its parts.
    pub(crate) fn new(value: &'a Json) -> Self {
        let text = |name| value.get(name).and_then(Json::as_str).unwrap_or_default();
        Self {
            value,
            inner: value.as_str().and_then(parse),
            error: is_error(value).then(|| (text("type"), text("detail"))),
        }
    }
}

/// True if this can only be an error object, even a faulty one.
pub(crate) fn is_error(value: &Json) -> bool {
    let Some(error) = value.get("error") else { return false };
    error.as_bool() == Some(true) || value.get("type").is_some() && value.get("detail").is_some()
}

impl CallExpect {
    /// Adds an expectation of lower weight.
    #[must_use]
    pub(crate) fn and(mut self, expect: impl Into<Self>) -> Self {
        self.results.extend(expect.into().results);
        self
    }

    /// Sets the clause for a request that does not carry the call.
    #[must_use]
    pub(crate) fn request(mut self, clause: &str) -> Self {
        self.request = Some(clause.into());
        self
    }

    /// Allows an empty `detail`, because the toolhost gave no reason.
    #[must_use]
    pub(crate) fn reasonless(mut self) -> Self {
        self.reasonless = true;
        self
    }

    /// Demands that processes of the toolhost are gone at the probe `label`.
    #[must_use]
    pub(crate) fn gone(mut self, clause: &str, label: &str, roles: &[&str]) -> Self {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        self.gone.push(ExitedProcesses { clause: clause.into(), label: label.to_owned(), roles });
        self
    }

    /// Limits the growth of memory from the samples `baseline` to the samples `label`.
    #[must_use]
    pub(crate) fn memory(mut self, clause: &str, baseline: &str, label: &str, growth_bytes_max: u64) -> Self {
        let (baseline, label) = (baseline.to_owned(), label.to_owned());
        self.memory = Some(MemoryBound { clause: clause.into(), baseline, label, growth_bytes_max });
        self
    }
}

impl From<Expect> for CallExpect {
    fn from(expect: Expect) -> Self {
        Self { results: vec![expect], ..Self::default() }
    }
}

impl Expect {
    /// One allowed result for `clause`.
    pub(crate) fn new(clause: &str, allowed: Allowed) -> Self {
        Self { clause: clause.into(), allowed: vec![allowed], reason: None, reveals: None }
    }

    /// Success with this output (JSON text, compared as a value).
    pub(crate) fn output(clause: &str, output: impl Into<String>) -> Self {
        Self::new(clause, Allowed::output(output))
    }

    /// An error object of one of these types; of any type if the list is empty.
    pub(crate) fn error(clause: &str, types: &[&str]) -> Self {
        Self::new(clause, Allowed::error(types))
    }

    /// Adds another allowed result.
    #[must_use]
    pub(crate) fn or(mut self, allowed: Allowed) -> Self {
        self.allowed.push(allowed);
        self
    }

    /// Sets the reason code for a wrong result.
    #[must_use]
    pub(crate) fn reason(mut self, reason: &str) -> Self {
        self.reason = Some(reason.to_owned());
        self
    }

    /// Sets the open choice that the call reveals.
    #[must_use]
    pub(crate) fn reveals(mut self, what: Reveals) -> Self {
        self.reveals = Some(what);
        self
    }

    /// Sets the value of a choice for each allowed result, in their order.
    #[must_use]
    pub(crate) fn choice(self, key: &str, values: &[&str]) -> Self {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        self.reveals(Reveals::Choice { key: key.to_owned(), values })
    }

    /// Index of the first allowed result that `printed` fits.
    pub(crate) fn fit(&self, printed: &PrintedResult<'_>) -> Option<usize> {
        self.allowed.iter().position(|allowed| allowed.misfit(printed).is_none())
    }

    /// Reason code if no allowed result fits.
    pub(crate) fn misfit(&self, printed: &PrintedResult<'_>) -> Option<String> {
        let mut codes = Vec::with_capacity(self.allowed.len());
        for allowed in &self.allowed {
            codes.push(allowed.misfit(printed)?);
        }
        // The closest alternative is the most informative.
        codes.sort_by_key(|code| code.starts_with("reported_"));
        let code = codes.first().copied().unwrap_or("nothing_allowed");
        Some(self.reason.clone().unwrap_or_else(|| code.to_owned()))
    }

    /// True if `printed` is an allowed output.
    pub(crate) fn is_output(&self, printed: &PrintedResult<'_>) -> bool {
        let mut outputs = self.allowed.iter().filter(|allowed| matches!(allowed, Allowed::Output(_)));
        outputs.any(|allowed| allowed.misfit(printed).is_none())
    }

    /// Expectation in one phrase.
    pub(crate) fn phrase(&self) -> String {
        self.allowed.iter().map(Allowed::phrase).collect::<Vec<_>>().join(", or ")
    }
}

impl Allowed {
    /// Success with this output.
    pub(crate) fn output(output: impl Into<String>) -> Self {
        Self::Output(Payload::text(output))
    }

    /// An error object of one of these types.
    pub(crate) fn error(types: &[&str]) -> Self {
        Self::Error { types: types.iter().map(|kind| (*kind).to_owned()).collect(), detail: None }
    }

    fn misfit(&self, printed: &PrintedResult<'_>) -> Option<&'static str> {
        match self {
            Self::Output(output) => {
                let expected = output
                    .expand(&Vars::new())
                    .ok()
                    .and_then(|text| json::decode(&text, &DecodeLimits::default()).ok())
                    .map(|decoded| decoded.value);
                if expected.as_ref().is_some_and(|value| *value == *printed.value)
                    || expected.is_some() && expected == printed.inner
                {
                    None
                } else if printed.error.is_some() {
                    Some("reported_error")
                } else {
                    Some("wrong_output")
                }
            }
            Self::Error { types, detail } => {
                let Some((kind, text)) = printed.error else { return Some("reported_success") };
                if !types.is_empty() && !types.iter().any(|allowed| allowed == kind) {
                    Some("wrong_type")
                } else if detail.as_ref().is_some_and(|part| !text.contains(part.as_str())) {
                    Some("detail_lacks_error")
                } else {
                    None
                }
            }
            Self::Anything => None,
        }
    }

    fn phrase(&self) -> String {
        match self {
            Self::Output(output) => format!("the output {}", output.summary(120)),
            Self::Error { types, detail } => {
                let mut text = match types.as_slice() {
                    [] => "an error object".to_owned(),
                    types => format!("an error of type {}", types.join(" or ")),
                };
                if let Some(detail) = detail {
                    text.push_str(&format!(" with {detail:?} in its detail"));
                }
                text
            }
            Self::Anything => "a result or an error object".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misfit(expect: &Expect, printed: &str) -> Option<String> {
        expect.misfit(&PrintedResult::new(&parse(printed).unwrap()))
    }

    #[test]
    fn an_output_fits_as_value_and_as_string() {
        let expect = Expect::output("C", r#"{"a":[1,"x"]}"#);
        assert_eq!(misfit(&expect, r#"{"a":[1.0,"\u0078"]}"#), None);
        assert_eq!(misfit(&expect, r#""{\"a\": [1, \"x\"]}""#), None);
        assert_eq!(misfit(&expect, r#"{"a":[1,"y"]}"#).as_deref(), Some("wrong_output"));
        let error = r#"{"error":true,"aid":"a","type":"crash","detail":"d"}"#;
        assert_eq!(misfit(&expect, error).as_deref(), Some("reported_error"));
    }

    #[test]
    fn a_string_output_is_not_taken_for_its_content() {
        assert_eq!(misfit(&Expect::output("C", r#""[1]""#), r#""[1]""#), None);
        assert_eq!(misfit(&Expect::output("C", r#""[1]""#), r#""\"[1]\"""#), None);
        assert_eq!(misfit(&Expect::output("C", r#""[1]""#), "[1]").as_deref(), Some("wrong_output"));
    }

    #[test]
    fn an_error_fits_by_type_and_detail() {
        let printed = r#"{"error":true,"aid":"a","type":"exception","detail":"tool: no disk"}"#;
        assert_eq!(misfit(&Expect::error("C", &[]), printed), None);
        assert_eq!(misfit(&Expect::error("C", &["crash"]), printed).as_deref(), Some("wrong_type"));
        let said = |text: &str| {
            Expect::new("C", Allowed::Error { types: Vec::new(), detail: Some(text.to_owned()) })
        };
        assert_eq!(misfit(&said("no disk"), printed), None);
        assert_eq!(misfit(&said("no tape"), printed).as_deref(), Some("detail_lacks_error"));
        assert_eq!(misfit(&Expect::error("C", &[]), "{}").as_deref(), Some("reported_success"));
    }

    #[test]
    fn survives_storage() {
        let expect = CallExpect::from(Expect::error("C", &["crash"]).or(Allowed::output("1")))
            .and(Expect::output("D", "2").reveals(Reveals::PrintedAs))
            .gone("E", "later", &["self", "child"])
            .memory("F", "small", "flood", 64 << 20);
        let text = serde_json::to_string(&expect).unwrap();
        assert_eq!(serde_json::from_str::<CallExpect>(&text).unwrap(), expect, "{text}");
    }
}
