//! What the contract leaves open for a toolhost, as values (contract §8 `[choices]`).

pub use crate::choices::Bom;
use crate::choices::choices;
pub use crate::frame::LastLine;

choices! {
    /// A byte order mark before a request.
    bom: Bom = Bom::Ignore, { "ignore" => Bom::Ignore, "refuse" => Bom::Refuse };
    /// A line of nothing but white space, in serve mode.
    blank_line: BlankLine = BlankLine::Ignore, {
        "ignore" => BlankLine::Ignore, "refuse" => BlankLine::Refuse, "end" => BlankLine::End
    };
    /// What stands after the last LF when standard input ends, in serve mode.
    last_line_without_lf: LastLine = LastLine::Process, {
        "process" => LastLine::Process, "refuse" => LastLine::Refuse, "silent" => LastLine::Silent
    };
    /// `null` as the value of a member of the request.
    null_member: NullMember = NullMember::Absent, { "absent" => NullMember::Absent, "refuse" => NullMember::Refuse };
    /// `inputs` beside no `input_json`.
    inputs_member: InputsMember = InputsMember::Ignore, {
        "ignore" => InputsMember::Ignore, "refuse" => InputsMember::Refuse
    };
    /// A live idempotency key that comes back with another input.
    same_key_other_input: SameKeyOtherInput = SameKeyOtherInput::First, {
        "first" => SameKeyOtherInput::First, "refuse" => SameKeyOtherInput::Refuse
    };
    /// A keyed request that ended in `TOOL_ERROR` is answered from the cache as a success is.
    tool_error_cached: bool = true, { "true" => true, "false" => false };
    /// The `ds_state` of a request that is answered from the cache is applied.
    hit_applies_state: bool = false, { "true" => true, "false" => false };
    /// A request that is answered from the cache spends its lease token.
    hit_spends_token: bool = true, { "true" => true, "false" => false };
    /// What a tool wrote before it failed stays in the state.
    tool_error_keeps_writes: bool = false, { "true" => true, "false" => false };
    /// Exit status of run mode after a host error.
    host_error_exit: HostErrorExit = HostErrorExit::Zero, {
        "zero" => HostErrorExit::Zero, "nonzero" => HostErrorExit::Nonzero
    };
    /// An artifact whose `size_bytes` is not the length of its `content_json`.
    size_bytes_wrong: SizeBytesWrong = SizeBytesWrong::Refuse, {
        "refuse" => SizeBytesWrong::Refuse, "correct" => SizeBytesWrong::Correct
    };
    /// What the `crash` tool does.
    crash_kind: CrashKind = CrashKind::Throw, { "throw" => CrashKind::Throw, "abort" => CrashKind::Abort };
    /// A redirect met by `http_get`.
    redirects: Redirects = Redirects::Follow, { "follow" => Redirects::Follow, "refuse" => Redirects::Refuse };
    /// A host of this machine that the list allows, as `http_get` meets it.
    loopback_hosts: LoopbackHosts = LoopbackHosts::Fetch, {
        "fetch" => LoopbackHosts::Fetch, "refuse" => LoopbackHosts::Refuse
    };
    /// A slot that one delta both sets and removes.
    slot_set_and_removed: SetAndRemoved = SetAndRemoved::Refuse, {
        "set" => SetAndRemoved::Set, "removed" => SetAndRemoved::Removed, "refuse" => SetAndRemoved::Refuse
    };
    /// A `delta` of a `ds_state` that is no boolean.
    delta_not_boolean: OddDelta = OddDelta::Refuse, {
        "delta" => OddDelta::Delta, "full" => OddDelta::Full, "refuse" => OddDelta::Refuse
    };
    /// `removed_slots` beside a full state.
    removed_slots_in_full_state: RemovedInFull = RemovedInFull::Ignore, {
        "ignore" => RemovedInFull::Ignore, "apply" => RemovedInFull::Apply, "refuse" => RemovedInFull::Refuse
    };
    /// A delta as the state of a run.
    delta_in_run_mode: DeltaInRun = DeltaInRun::Apply, {
        "apply" => DeltaInRun::Apply, "refuse" => DeltaInRun::Refuse
    };
    /// Idempotency keys that give way when one too many is to be held.
    keys_given_up: KeysGivenUp = KeysGivenUp::Oldest, {
        "oldest" => KeysGivenUp::Oldest, "another" => KeysGivenUp::Another, "several" => KeysGivenUp::Several
    };
    /// What the lease token `""` is answered with.
    empty_lease_token: EmptyToken = EmptyToken::Rejected, {
        "lease_required" => EmptyToken::Required, "lease_rejected" => EmptyToken::Rejected
    };
    /// `MACHINA_LEASE_ENFORCE=0` asks for leases.
    lease_enforce_0: bool = false, { "off" => false, "enforce" => true };
    /// `MACHINA_LEASE_ENFORCE=true` asks for leases.
    lease_enforce_true: bool = false, { "off" => false, "enforce" => true };
    /// A run asks for leases where a session would. No run can have one: each is refused.
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
    /// As if the member were not there.
    Absent,
    /// A wrong type.
    Refuse,
}

/// See [`Choices::inputs_member`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputsMember {
    /// An unknown member.
    Ignore,
    /// A malformed request.
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
    /// The right length is stored.
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
    /// Contacted like any other.
    Fetch,
    /// `TOOL_ERROR`.
    Refuse,
}

/// See [`Choices::slot_set_and_removed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetAndRemoved {
    /// It ends up set.
    Set,
    /// It ends up empty.
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
    /// An unknown member.
    Ignore,
    /// The slots it names end up empty, also those that the state itself fills.
    Apply,
    /// The state is malformed.
    Refuse,
}

/// See [`Choices::delta_in_run_mode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeltaInRun {
    /// Applied to the empty state.
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
    /// As a token that was never issued.
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
