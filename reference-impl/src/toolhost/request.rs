//! From the bytes of a request to its members (IPC §3).

use super::choices::{Choices, InputsMember, NullMember};
use crate::json::{Document, DuplicateKeys, Kind, Raw, RawStr, Scanner, Value};
use crate::refusal::Refusal;

/// Members of a request, with checked types.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Request<'t> {
    aid: Option<Raw<'t>>,
    input_json: Option<Raw<'t>>,
    inputs: Option<Raw<'t>>,
    idempotency_key: Option<Raw<'t>>,
    lease_token: Option<Raw<'t>>,
    /// An object, not yet parsed.
    pub ds_state: Option<Raw<'t>>,
    /// Member of `_lease.issue`, of any type.
    pub tool_aid: Option<Raw<'t>>,
    /// Member of `_lease.issue`, of any type.
    pub tier: Option<Raw<'t>>,
    /// Member of `_lease.issue`, of any type.
    pub ttl_ms: Option<Raw<'t>>,
    /// True if a string of the request holds a lone surrogate.
    pub lone_surrogates: bool,
}

/// True for a request of white space only.
pub(super) fn is_blank(request: &[u8]) -> bool {
    request.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

impl<'t> Request<'t> {
    /// Reads a request. In run mode (`serve` false) only `input_json` and `ds_state` are known members.
    ///
    /// # Errors
    /// A sentence that says why the request is malformed.
    pub(super) fn read(
        scanner: &mut Scanner,
        text: &'t [u8],
        serve: bool,
        nesting_max: usize,
        choices: &Choices,
    ) -> Result<Self, Refusal> {
        let scanned = scanner.scan(text).map_err(Refusal::of("malformed request"))?;
        if scanned.kind() != Kind::Object {
            return Err("malformed request: it must be an object".into());
        }
        let policy = choices.policy();
        if policy.may_refuse(scanned.traits()) {
            Value::parse(text, nesting_max, &policy).map_err(Refusal::of("malformed request"))?;
        }
        let mut request = Self { lone_surrogates: scanned.traits().lone_surrogates, ..Self::default() };
        for (name, value) in scanned.members() {
            let slot = if name.is_escaped() {
                name.text().as_str().and_then(|name| request.slot(name, serve))
            } else {
                request.slot(name.raw(), serve)
            };
            if let Some(slot) = slot
                && (slot.is_none() || choices.duplicate_keys != DuplicateKeys::First)
            {
                *slot = Some(value);
            }
        }
        request.check(serve, choices)?;
        Ok(request)
    }

    /// Place for the value of the member `name`, if it is known.
    fn slot(&mut self, name: &str, serve: bool) -> Option<&mut Option<Raw<'t>>> {
        Some(match name {
            "input_json" => &mut self.input_json,
            "inputs" => &mut self.inputs,
            "ds_state" => &mut self.ds_state,
            _ if !serve => return None,
            "aid" => &mut self.aid,
            "idempotency_key" => &mut self.idempotency_key,
            "_lease_token" => &mut self.lease_token,
            "tool_aid" => &mut self.tool_aid,
            "tier" => &mut self.tier,
            "ttl_ms" => &mut self.ttl_ms,
            _ => return None,
        })
    }

    /// Refuses wrong types. No value is replaced by a default.
    fn check(&mut self, serve: bool, choices: &Choices) -> Result<(), Refusal> {
        if choices.null_member == NullMember::Absent {
            for member in [
                &mut self.aid,
                &mut self.input_json,
                &mut self.idempotency_key,
                &mut self.lease_token,
                &mut self.ds_state,
                &mut self.tool_aid,
                &mut self.tier,
                &mut self.ttl_ms,
            ] {
                if member.is_some_and(|value| value.kind() == Kind::Null) {
                    *member = None;
                }
            }
        }
        let is_other = |member: Option<Raw<'_>>, kind| member.is_some_and(|value| value.kind() != kind);
        let no_string = |name| Err(format!("malformed request: {name} must be a string").into());
        if is_other(self.input_json, Kind::String) {
            return no_string("input_json");
        }
        if self.inputs.is_some() && self.input_json.is_none() && choices.inputs_member == InputsMember::Refuse
        {
            return Err("malformed request: inputs is not read here; send input_json".into());
        }
        if is_other(self.ds_state, Kind::Object) {
            return Err("malformed request: ds_state must be an object".into());
        }
        if serve && self.aid().is_none_or(|aid| aid.raw().is_empty()) {
            return Err("malformed request: aid must be a non-empty string".into());
        }
        if is_other(self.idempotency_key, Kind::String) {
            return no_string("idempotency_key");
        }
        if is_other(self.lease_token, Kind::String) {
            return no_string("_lease_token");
        }
        Ok(())
    }

    /// Tool to run, in serve mode only.
    pub(super) fn aid(&self) -> Option<RawStr<'t>> {
        self.aid.and_then(Raw::as_str)
    }

    /// Input of the tool; `"{}"` if absent.
    pub(crate) fn input_json(&self) -> Option<RawStr<'t>> {
        self.input_json.and_then(Raw::as_str)
    }

    /// Facts about the document in `input_json`.
    pub(super) fn document(&self) -> Option<Document> {
        self.input_json.and_then(Raw::document)
    }

    /// Idempotency key, in serve mode only.
    pub(crate) fn idempotency_key(&self) -> Option<RawStr<'t>> {
        self.idempotency_key.and_then(Raw::as_str)
    }

    /// Lease token, in serve mode only.
    pub(crate) fn lease_token(&self) -> Option<RawStr<'t>> {
        self.lease_token.and_then(Raw::as_str)
    }
}
