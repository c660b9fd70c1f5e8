//! Limits of the reference peers, defined once, as values.
//!
//! [`Limits::default`] holds the values of the contract. All code takes its limits as a parameter, so that tests can
//! shrink them and cross an edge in microseconds.

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr;)*) => {
        /// Limits in force. The last word of each name is the unit.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits { $($(#[$doc])* pub $name: $type,)* }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Limits {
            /// Names that [`Limits::set`] accepts, in the order of declaration.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// Sets the limit `name` to the decimal number `value`, for `--limit name=value`.
            ///
            /// # Errors
            /// Fails for an unknown name, or a value that is not a whole number in the limit's range.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), LimitError> {
                match name {
                    $(stringify!($name) => {
                        self.$name = value.parse().map_err(|_| LimitError::Value {
                            name: stringify!($name),
                            value: value.to_owned(),
                        })?;
                    })*
                    _ => return Err(LimitError::Name(name.to_owned())),
                }
                Ok(())
            }

            /// Name and value of every limit, in the order of declaration.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name as u64)),*]
            }
        }
    };
}

limits! {
    /// Largest request in bytes, inclusive: all of standard input in run mode, one line without its LF in serve mode
    /// (IPC §7 `MAX_STDIN_BYTES`, 10 MB).
    stdin_bytes_max: usize = 10 * 1024 * 1024;
    /// Largest reply in bytes, including its newline, inclusive (IPC §7 `_TOOLHOST_MAX_OUTPUT`, 1 MB).
    reply_bytes_max: usize = 1024 * 1024;
    /// Levels of arrays and objects within one JSON text; the contract demands at least 64.
    nesting_max: usize = 128;
    /// Idempotency keys held at the same time (IPC §7 `IDEMP_MAX_ENTRIES`).
    idempotency_entries_max: usize = 1024;
    /// Life of an idempotency key from the end of its first execution, in ms (IPC §7 `IDEMP_DEFAULT_TTL_MS`).
    idempotency_ttl_ms: u64 = 60_000;
    /// Life of a lease whose request does not set one, in ms.
    lease_ttl_default_ms: u64 = 10_000;
    /// Shortest life of a lease in ms; shorter requests are raised to it.
    lease_ttl_min_ms: u64 = 1_000;
    /// Longest life of a lease in ms; longer requests are lowered to it.
    lease_ttl_max_ms: u64 = 300_000;
    /// Leases held at the same time; expired ones make room, live ones are never dropped.
    lease_entries_max: usize = 65_536;
    /// Longest time the `sleep` tool accepts, in ms.
    sleep_ms_max: u64 = 3_600_000;
    /// Bytes of an HTTP body that `http_get` accepts; more cannot fit into a reply.
    http_body_bytes_max: usize = 1024 * 1024;
    /// Time from the start of one HTTP request to the end of its body, in ms.
    http_timeout_ms: u64 = 10_000;
    /// Redirects that one `http_get` call follows.
    http_redirects_max: usize = 5;
    /// Bytes of replies that are collected before they are passed to the shell. Limits the replies to pipelined
    /// requests.
    output_batch_bytes: usize = 256 * 1024;
    /// Bytes of a toolhost's standard output that the dispatcher accepts (IPC §7 `_TOOLHOST_MAX_OUTPUT`, 1 MB).
    toolhost_stdout_bytes_max: usize = 1024 * 1024;
    /// Time that the dispatcher gives a toolhost, in ms (IPC §7 `MACHINA_TOOLHOST_TIMEOUT`, 30 s).
    toolhost_timeout_ms: u64 = 30_000;
    /// Time in ms that the dispatcher waits for the rest of the output of an exited toolhost whose pipes a descendant
    /// holds. The contract allows 1 s.
    toolhost_pipe_grace_ms: u64 = 250;
    /// Largest JSON-RPC message in bytes, received or sent, without its LF, inclusive (RPC Performance "under 1MB";
    /// anything from 1,000,000 to 1,048,576 is allowed).
    rpc_message_bytes_max: usize = 1024 * 1024;
    /// Largest number of elements in a JSON-RPC batch. The contract allows to refuse more than 10,000.
    rpc_batch_elements_max: usize = 10_000;
    /// JSON-RPC calls in progress at the same time. Further input stays unread.
    rpc_pending_max: usize = 16_384;
    /// Bytes held for JSON-RPC calls in progress and unfinished batch replies. Further input stays unread.
    rpc_pending_bytes_max: usize = 16 * 1024 * 1024;
    /// Time limit in ms of a JSON-RPC call without `timeout_ms` (RPC Performance "Default timeout 30s").
    rpc_timeout_default_ms: u64 = 30_000;
    /// Largest accepted `timeout_ms` of a JSON-RPC call.
    rpc_timeout_max_ms: u64 = 600_000;
    /// Time in ms for calls to finish after the end of input.
    rpc_eof_grace_ms: u64 = 1_000;
    /// Bytes of text in one chunk of a JSON-RPC stream.
    rpc_chunk_bytes_max: usize = 4096;
    /// Bytes of the context that `update_context` keeps, names and values.
    rpc_context_bytes_max: usize = 512 * 1024;
    /// Largest number of tasks in a plan, even if the request allows more.
    rpc_plan_tasks_max: usize = 1_000;
    /// Largest accepted difference between a signature's timestamp and the clock, in s.
    rpc_clock_skew_s: u64 = 300;
    /// Nonces of signed messages remembered at the same time; live ones are never dropped.
    rpc_nonces_max: usize = 65_536;
    /// Time for which a nonce is remembered, in ms.
    rpc_nonce_ttl_ms: u64 = 600_000;
    /// Bytes of a payload that a policy driver reads; the contract demands 10 MB.
    policy_payload_bytes_max: usize = 16 * 1024 * 1024;
    /// Bytes of a policy driver's standard output (`policy` §1 `MACHINA_POLICY_STDOUT_MAX`). Inclusive.
    policy_stdout_bytes_max: usize = 65_536;
    /// Time limit of a policy driver in ms (`policy` §1 `MACHINA_POLICY_TIMEOUT_MS`, code default).
    policy_timeout_ms: u64 = 2_500;
    /// Time limit of a policy driver under `MACHINA_PROFILE=dev`, in ms.
    policy_timeout_dev_ms: u64 = 60_000;
    /// Time limit of a policy driver under `MACHINA_PROFILE=prod`, in ms.
    policy_timeout_prod_ms: u64 = 30_000;
    /// Time in ms that a selector waits for the rest of the output of an exited driver whose pipe a descendant holds.
    policy_pipe_grace_ms: u64 = 250;
    /// Failures in a row that open the circuit breaker (`policy` "Circuit breaker").
    policy_fail_threshold: u64 = 5;
    /// Time for which the circuit breaker stays open, in ms (`policy` "Circuit breaker").
    policy_cooldown_ms: u64 = 30_000;
    /// Processor time of a policy driver, in s (`policy` §1 "Resource limits", as the next four).
    policy_cpu_s_max: u64 = 2;
    /// Address space of a policy driver, in MiB.
    policy_address_space_mb_max: u64 = 768;
    /// Largest file that a policy driver writes, in MiB.
    policy_file_mb_max: u64 = 10;
    /// Open files of a policy driver.
    policy_open_files_max: u64 = 64;
    /// Processes of the user of a policy driver.
    policy_processes_max: u64 = 32;
    /// Time of the bridge for one exchange with its model, in ms.
    policy_llm_timeout_ms: u64 = 20_000;
    /// Bytes of a model's reply that the bridge reads.
    policy_llm_reply_bytes_max: usize = 1024 * 1024;
}

/// Reason why [`Limits::set`] refused a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// No limit has this name.
    #[error("unknown limit {0:?}; known: {names}", names = Limits::NAMES.join(", "))]
    Name(String),
    /// The value does not fit the limit.
    #[error("limit {name} needs a whole number, not {value:?}")]
    Value {
        /// Name of the limit.
        name: &'static str,
        /// The refused value.
        value: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_by_name_and_names_what_it_knows() {
        let mut limits = Limits::default();
        limits.set("stdin_bytes_max", "64").unwrap();
        assert_eq!(limits.stdin_bytes_max, 64);
        assert!(limits.set("stdin_bytes_max", "-1").is_err());
        assert!(limits.set("stdin", "1").unwrap_err().to_string().contains("stdin_bytes_max"));
        assert_eq!(limits.entries()[0], ("stdin_bytes_max", 64));
    }
}
