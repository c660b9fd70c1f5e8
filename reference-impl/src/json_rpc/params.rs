//! Params of a method, and typed access to them.

use std::borrow::Cow;

use super::reply::Failure;
use crate::json::{Kind, Policy, Raw, Text, Value};
use crate::limits::Limits;

/// Levels of nesting for parsing; the whole message was checked before.
const NESTING_MAX: usize = 1024;

/// Raw params of a call.
#[derive(Debug, Clone, Copy)]
pub struct Params<'t>(Form<'t>);

#[derive(Debug, Clone, Copy)]
enum Form<'t> {
    Absent,
    Structured(Raw<'t>),
    /// Neither an array nor an object.
    Malformed,
}

impl<'t> Params<'t> {
    pub(super) fn absent() -> Self {
        Self(Form::Absent)
    }

    pub(super) fn structured(raw: Raw<'t>) -> Self {
        Self(Form::Structured(raw))
    }

    pub(super) fn malformed() -> Self {
        Self(Form::Malformed)
    }

    /// JSON text of the params, without a line feed; `None` if there are none.
    ///
    /// # Errors
    /// Fails with -32602 if the params are neither an array nor an object.
    pub fn text(&self) -> Result<Option<&'t str>, Failure> {
        match self.0 {
            Form::Absent => Ok(None),
            Form::Structured(raw) => Ok(Some(raw.text())),
            Form::Malformed => Err(Failure::invalid_params("params are neither an array nor an object")),
        }
    }

    /// Params as a tree.
    ///
    /// # Errors
    /// Fails with -32602 if the params are neither an array nor an object.
    pub fn value(&self) -> Result<Option<Value>, Failure> {
        let Some(text) = self.text()? else { return Ok(None) };
        match Value::parse(text.as_bytes(), NESTING_MAX, &Policy::default()) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(Failure::invalid_params(error.to_string())),
        }
    }

    /// Params by name; empty if there are none. Also reads `options.timeout_ms`.
    ///
    /// # Errors
    /// Fails with -32602 if the params are given by position, or `timeout_ms` is out of range.
    pub fn named(&self, limits: &Limits) -> Result<Named, Failure> {
        if let Form::Structured(raw) = self.0
            && raw.kind() == Kind::Array
        {
            return Err(Failure::invalid_params("params have to be given by name"));
        }
        let object = self.value()?.unwrap_or(Value::Object(Vec::new()));
        let timeout_ms = timeout_ms(&object, limits)?;
        Ok(Named { object, timeout_ms })
    }
}

/// Params by name.
#[derive(Debug)]
pub struct Named {
    object: Value,
    /// Time limit in ms, from the receipt of the call.
    pub timeout_ms: u64,
}

impl Named {
    /// The members of the params.
    pub fn members(&self) -> Members<'_> {
        members(&self.object)
    }
}

fn timeout_ms(object: &Value, limits: &Limits) -> Result<u64, Failure> {
    let max = limits.rpc_timeout_max_ms;
    match object.get("options").and_then(|options| options.get("timeout_ms")) {
        None | Some(Value::Null) => Ok(limits.rpc_timeout_default_ms),
        Some(wish) => wish
            .as_i64()
            .and_then(|wish| u64::try_from(wish).ok())
            .filter(|wish| (1..=max).contains(wish))
            .ok_or_else(|| {
                Failure::invalid_params(format!("options.timeout_ms is no integer from 1 to {max}"))
            }),
    }
}

/// Members of an object, read by name and type. A member that is `null` counts as absent.
#[derive(Debug, Clone, Copy)]
pub struct Members<'v>(&'v [(Text, Value)]);

/// Members of `value`; empty if it is not an object.
pub fn members(value: &Value) -> Members<'_> {
    Members(value.as_object().unwrap_or_default())
}

fn wrong(name: &str, what: &str) -> Failure {
    Failure::invalid_params(format!("{name} is no {what}"))
}

impl<'v> Members<'v> {
    /// All members in order.
    pub fn all(self) -> &'v [(Text, Value)] {
        self.0
    }

    /// Member `name` of any type.
    pub fn get(self, name: &str) -> Option<&'v Value> {
        let value = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        value.filter(|value| **value != Value::Null)
    }

    /// String `name`. A lone surrogate in it becomes U+FFFD.
    ///
    /// # Errors
    /// Fails with -32602 if it is missing or not a string.
    pub fn string(self, name: &str) -> Result<Cow<'v, str>, Failure> {
        self.optional_string(name)?.ok_or_else(|| Failure::invalid_params(format!("{name} is missing")))
    }

    /// String `name`, if present.
    ///
    /// # Errors
    /// Fails with -32602 if it is not a string.
    pub(crate) fn optional_string(self, name: &str) -> Result<Option<Cow<'v, str>>, Failure> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.to_lossy())),
            Some(_) => Err(wrong(name, "string")),
        }
    }

    /// String `name`, one of `known`.
    ///
    /// # Errors
    /// Fails with -32602 if it is missing, not a string, or unknown.
    pub(crate) fn one_of(self, name: &str, known: &[&'static str]) -> Result<&'static str, Failure> {
        let value = self.string(name)?;
        known
            .iter()
            .find(|known| **known == value)
            .copied()
            .ok_or_else(|| Failure::invalid_params(format!("{name} is none of {}", known.join(", "))))
    }

    /// Object `name`.
    ///
    /// # Errors
    /// Fails with -32602 if it is missing or not an object.
    pub fn object(self, name: &str) -> Result<Members<'v>, Failure> {
        match self.get(name) {
            None => Err(Failure::invalid_params(format!("{name} is missing"))),
            Some(_) => self.optional_object(name),
        }
    }

    /// Object `name`; empty if it is absent.
    ///
    /// # Errors
    /// Fails with -32602 if it is not an object.
    pub(crate) fn optional_object(self, name: &str) -> Result<Members<'v>, Failure> {
        match self.get(name) {
            None => Ok(Members(&[])),
            Some(Value::Object(members)) => Ok(Members(members)),
            Some(_) => Err(wrong(name, "object")),
        }
    }

    /// Array `name`; empty if it is absent.
    ///
    /// # Errors
    /// Fails with -32602 if it is not an array.
    pub(crate) fn optional_array(self, name: &str) -> Result<&'v [Value], Failure> {
        match self.get(name) {
            None => Ok(&[]),
            Some(Value::Array(elements)) => Ok(elements),
            Some(_) => Err(wrong(name, "array")),
        }
    }

    /// Array `name` of strings; empty if it is absent.
    ///
    /// # Errors
    /// Fails with -32602 if it is not an array of strings.
    pub(crate) fn optional_strings(self, name: &str) -> Result<Vec<Cow<'v, str>>, Failure> {
        let text = |value: &'v Value| match value {
            Value::String(text) => Ok(text.to_lossy()),
            _ => Err(wrong(name, "array of strings")),
        };
        self.optional_array(name)?.iter().map(text).collect()
    }

    /// Integer `name` in any spelling, if present.
    ///
    /// # Errors
    /// Fails with -32602 if it is not an integer within `range`.
    pub(crate) fn optional_integer(
        self,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, Failure> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let integer = value.as_i64().filter(|integer| range.contains(integer));
        integer.map(Some).ok_or_else(|| {
            Failure::invalid_params(format!("{name} is no integer from {} to {}", range.start(), range.end()))
        })
    }

    /// Boolean `name`; false if it is absent.
    ///
    /// # Errors
    /// Fails with -32602 if it is not a boolean.
    pub(crate) fn optional_bool(self, name: &str) -> Result<bool, Failure> {
        match self.get(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| wrong(name, "truth value")),
        }
    }
}
