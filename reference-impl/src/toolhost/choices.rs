//! Behaviours that the contract leaves open for a toolhost, as values (contract §8 `[choices]`).

pub use crate::choices::Bom;
use crate::choices::choices;
pub use crate::frame::LastLine;

choices! {
    /// Treatment of a byte order mark before a request.
    bom: Bom = Bom::Ignore, { "ignore" => Bom::Ignore, "refuse" => Bom::Refuse };
    /// Treatment of a line of white space in serve mode.
    blank_line: BlankLine = BlankLine::Ignore, {
        "ignore" => BlankLine::Ignore, "refuse" => BlankLine::Refuse, "end" => BlankLine::End
    };
    /// Treatment of a last line without LF at the end of standard input, in serve mode.
    last_line_without_lf: LastLine = LastLine::Process, {
        "process" => LastLine::Process, "refuse" => LastLine::Refuse, "silent" => LastLine::Silent
    };
    /// Treatment of `null` in a member of the request.
    null_member: NullMember = NullMember::Absent, { "absent" => NullMember::Absent, "refuse" => NullMember::Refuse };
    /// Treatment of `inputs` in a request without `input_json`.
    inputs_member: InputsMember = InputsMember::Ignore, {
        "ignore" => InputsMember::Ignore, "refuse" => InputsMember::Refuse
    };
    /// Treatment of a live idempotency key with another input.
    same_key_other_input: SameKeyOtherInput = SameKeyOtherInput::First, {
        "first" => SameKeyOtherInput::First, "refuse" => SameKeyOtherInput::Refuse
    };
    /// True to cache a `TOOL_ERROR` of a keyed request like a success.
    tool_error_cached: bool = true, { "true" => true, "false" => false };
    /// True to apply the `ds_state` of a request that is answered from the cache.
    hit_applies_state: bool = false, { "true" => true, "false" => false };
    /// True to spend the lease token of a request that is answered from the cache.
    hit_spends_token: bool = true, { "true" => true, "false" => false };
    /// True to keep a tool's writes to the state when it fails.
    tool_error_keeps_writes: bool = false, { "true" => true, "false" => false };
    /// Exit status of run mode after a host error.
    host_error_exit: HostErrorExit = HostErrorExit::Zero, {
        "zero" => HostErrorExit::Zero, "nonzero" => HostErrorExit::Nonzero
    };
    /// Treatment of an artifact whose `size_bytes` differs from the length of its `content_json`.
    size_bytes_wrong: SizeBytesWrong = SizeBytesWrong::Refuse, {
        "refuse" => SizeBytesWrong::Refuse, "correct" => SizeBytesWrong::Correct
    };
    /// Effect of the `crash` tool.
    crash_kind: CrashKind = CrashKind::Throw, { "throw" => CrashKind::Throw, "abort" => CrashKind::Abort };
    /// Treatment of a redirect in `http_get`.
    redirects: Redirects = Redirects::Follow, { "follow" => Redirects::Follow, "refuse" => Redirects::Refuse };
    /// Treatment of an allowed loopback host in `http_get`.
    loopback_hosts: LoopbackHosts = LoopbackHosts::Fetch, {
        "fetch" => LoopbackHosts::Fetch, "refuse" => LoopbackHosts::Refuse
    };
    /// Treatment of a slot that one delta both sets and removes.
    slot_set_and_removed: SetAndRemoved = SetAndRemoved::Refuse, {
        "set" => SetAndRemoved::Set, "removed" => SetAndRemoved::Removed, "refuse" => SetAndRemoved::Refuse
    };
    /// Treatment of a `delta` in `ds_state` that is not a boolean.
    delta_not_boolean: OddDelta = OddDelta::Refuse, {
        "delta" => OddDelta::Delta, "full" => OddDelta::Full, "refuse" => OddDelta::Refuse
    };
    /// Treatment of `removed_slots` in a full state.
    removed_slots_in_full_state: RemovedInFull = RemovedInFull::Ignore, {
        "ignore" => RemovedInFull::Ignore, "apply" => RemovedInFull::Apply, "refuse" => RemovedInFull::Refuse
    };
    /// Treatment of a delta in run mode.
    delta_in_run_mode: DeltaInRun = DeltaInRun::Apply, {
        "apply" => DeltaInRun::Apply, "refuse" => DeltaInRun::Refuse
    };
    /// Idempotency keys that are dropped to make room for a new one.
    keys_given_up: KeysGivenUp = KeysGivenUp::Oldest, {
        "oldest" => KeysGivenUp::Oldest, "another" => KeysGivenUp::Another, "several" => KeysGivenUp::Several
    };
    /// Error for the lease token `""`.
    empty_lease_token: EmptyToken = EmptyToken::Rejected, {
        "lease_required" => EmptyToken::Required, "lease_rejected" => EmptyToken::Rejected
    };
    /// True to require leases under `MACHINA_LEASE_ENFORCE=0`.
    lease_enforce_0: bool = false, { "off" => false, "enforce" => true };
    /// True to require leases under `MACHINA_LEASE_ENFORCE=true`.
    lease_enforce_true: bool = false, { "off" => false, "enforce" => true };
    /// True to require leases in run mode too. A run cannot have a lease, so each such request is refused.
    lease_enforce_in_run_mode: bool = false, { "off" => false, "enforce" => true };
}

/// See [`Choices::blank_line`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlankLine {
    /// No reply.
    Ignore,
    /// A malformed request.
    Refuse,
    /// The session ends in order, exit status 0.
    End,
}

/// See [`Choices::null_member`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullMember {
    /// As if the member were missing.
    Absent,
    /// As a wrong type.
    Refuse,
}

/// See [`Choices::inputs_member`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputsMember {
    /// As an unknown member.
    Ignore,
    /// As a malformed request.
    Refuse,
}

/// See [`Choices::same_key_other_input`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameKeyOtherInput {
    /// The first result.
    First,
    /// A host error.
    Refuse,
}

/// See [`Choices::host_error_exit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostErrorExit {
    /// Status 0.
    Zero,
    /// Status 1.
    Nonzero,
}

/// See [`Choices::size_bytes_wrong`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeBytesWrong {
    /// The artifact is malformed.
    Refuse,
    /// The correct length is stored.
    Correct,
}

/// See [`Choices::crash_kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashKind {
    /// The tool throws: `TOOL_ERROR`, the session goes on.
    Throw,
    /// The tool aborts the process.
    Abort,
}

/// See [`Choices::redirects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Followed, each target checked against the allowed hosts.
    Follow,
    /// `TOOL_ERROR`.
    Refuse,
}

/// See [`Choices::loopback_hosts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopbackHosts {
    /// They are contacted like any other host.
    Fetch,
    /// `TOOL_ERROR`.
    Refuse,
}

/// See [`Choices::slot_set_and_removed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetAndRemoved {
    /// The slot is set.
    Set,
    /// The slot is empty.
    Removed,
    /// The state is malformed.
    Refuse,
}

/// See [`Choices::delta_not_boolean`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddDelta {
    /// Read as `true`.
    Delta,
    /// Read as `false`.
    Full,
    /// The state is malformed.
    Refuse,
}

/// See [`Choices::removed_slots_in_full_state`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedInFull {
    /// As an unknown member.
    Ignore,
    /// The named slots become empty, even those that the state itself fills.
    Apply,
    /// The state is malformed.
    Refuse,
}

/// See [`Choices::delta_in_run_mode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaInRun {
    /// It is applied to the empty state.
    Apply,
    /// A host error.
    Refuse,
}

/// See [`Choices::keys_given_up`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeysGivenUp {
    /// The oldest key.
    Oldest,
    /// The youngest key.
    Another,
    /// The older half of the keys.
    Several,
}

/// See [`Choices::empty_lease_token`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmptyToken {
    /// As if there were no token.
    Required,
    /// Like a token that was never issued.
    Rejected,
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
        assert!(choices.set("bom", "maybe").unwrap_err().to_string().contains("ignore, refuse"));
        assert_eq!(choices, Choices::default());
    }
}
