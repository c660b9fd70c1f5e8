//! From the bytes of a request to its members (IPC §3).

use super::choices::{Bom, Choices, InputsMember, NullMember};
use crate::json::{Document, DuplicateKeys, Kind, Raw, RawStr, Scanner, Value};

/// The members of a request, of the right types.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Request<'t> {
    /// Tool to run; serve mode only.
    pub aid: Option<RawStr<'t>>,
    /// The tool's input, `"{}"` when absent.
    pub input_json: Option<RawStr<'t>>,
    /// What is known about the document in `input_json`.
    pub document: Option<Document>,
    /// An object; not yet read.
    pub ds_state: Option<Raw<'t>>,
    /// Serve mode only.
    pub idempotency_key: Option<RawStr<'t>>,
    /// Serve mode only.
    pub lease_token: Option<RawStr<'t>>,
    /// What `_lease.issue` reads; of any type.
    pub tool_aid: Option<Raw<'t>>,
    /// What `_lease.issue` reads; of any type.
    pub tier: Option<Raw<'t>>,
    /// What `_lease.issue` reads; of any type.
    pub ttl_ms: Option<Raw<'t>>,
    /// A string of the request holds half of a surrogate pair.
    pub lone_surrogates: bool,
}

/// Values of the known members before their types are looked at.
#[derive(Default)]
struct Members<'t> {
    aid: Option<Raw<'t>>,
    input_json: Option<Raw<'t>>,
    inputs: Option<Raw<'t>>,
    ds_state: Option<Raw<'t>>,
    idempotency_key: Option<Raw<'t>>,
    lease_token: Option<Raw<'t>>,
    tool_aid: Option<Raw<'t>>,
    tier: Option<Raw<'t>>,
    ttl_ms: Option<Raw<'t>>,
}

impl<'t> Members<'t> {
    fn slot(&mut self, name: &str) -> Option<&mut Option<Raw<'t>>> {
        Some(match name {
            "aid" => &mut self.aid,
            "input_json" => &mut self.input_json,
            "inputs" => &mut self.inputs,
            "ds_state" => &mut self.ds_state,
            "idempotency_key" => &mut self.idempotency_key,
            "_lease_token" => &mut self.lease_token,
            "tool_aid" => &mut self.tool_aid,
            "tier" => &mut self.tier,
            "ttl_ms" => &mut self.ttl_ms,
            _ => return None,
        })
    }
}

/// True for a request of nothing but white space.
pub(super) fn is_blank(request: &[u8]) -> bool {
    request.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
}

/// `request` without a byte order mark, where that is chosen.
pub(super) fn without_bom<'t>(request: &'t [u8], choices: &Choices) -> &'t [u8] {
    match choices.bom {
        Bom::Ignore => request.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(request),
        Bom::Refuse => request,
    }
}

impl<'t> Request<'t> {
    /// Reads a request. In run mode (`serve` false) only `input_json` and `ds_state` are known members.
    ///
    /// # Errors
    /// A sentence that says why the request is malformed.
    pub fn read(
        scanner: &mut Scanner,
        text: &'t [u8],
        serve: bool,
        nesting_max: usize,
        choices: &Choices,
    ) -> Result<Self, String> {
        let scanned = scanner.scan(text).map_err(|error| format!("malformed request: {error}"))?;
        if scanned.kind() != Kind::Object {
            return Err("malformed request: it must be an object".to_owned());
        }
        let policy = choices.policy();
        if policy.may_refuse(scanned.traits()) {
            Value::parse(text, nesting_max, &policy)
                .map_err(|error| format!("malformed request: {error}"))?;
        }
        let lone_surrogates = scanned.traits().lone_surrogates;
        let mut members = Members::default();
        for (name, value) in scanned.members() {
            let slot = if name.is_escaped() {
                name.text().as_str().and_then(|name| members.slot(name))
            } else {
                members.slot(name.raw())
            };
            if let Some(slot) = slot
                && (slot.is_none() || choices.duplicate_keys != DuplicateKeys::First)
            {
                *slot = Some(value);
            }
        }
        let known = |value: Option<Raw<'t>>| match (value.map(Raw::kind), choices.null_member) {
            (Some(Kind::Null), NullMember::Absent) => None,
            _ => value,
        };
        let string = |name: &str, value: Option<Raw<'t>>| match known(value) {
            None => Ok(None),
            Some(value) => {
                value.as_str().map(Some).ok_or_else(|| format!("malformed request: {name} must be a string"))
            }
        };
        let input_json = string("input_json", members.input_json)?;
        let document = members.input_json.and_then(Raw::document);
        if input_json.is_none() && members.inputs.is_some() && choices.inputs_member == InputsMember::Refuse {
            return Err("malformed request: inputs is not read here; send input_json".to_owned());
        }
        let ds_state = known(members.ds_state);
        if ds_state.is_some_and(|state| state.kind() != Kind::Object) {
            return Err("malformed request: ds_state must be an object".to_owned());
        }
        if !serve {
            return Ok(Self { input_json, document, ds_state, lone_surrogates, ..Self::default() });
        }
        let aid = string("aid", members.aid)?;
        if aid.is_none_or(|aid| aid.raw().is_empty()) {
            return Err("malformed request: aid must be a non-empty string".to_owned());
        }
        Ok(Self {
            aid,
            input_json,
            document,
            ds_state,
            idempotency_key: string("idempotency_key", members.idempotency_key)?,
            lease_token: string("_lease_token", members.lease_token)?,
            tool_aid: known(members.tool_aid),
            tier: known(members.tier),
            ttl_ms: known(members.ttl_ms),
            lone_surrogates,
        })
    }
}
