//! Checks that kill no mutant, with the reason why they are kept.

/// Check ids and reasons.
pub(crate) const CHECKS: &[(&str, &str)] = &[
    (
        "policy_driver/driver/canary/plain-request",
        "it is asked first: a driver that does not answer it is not judged further",
    ),
    (
        "policy_driver/select/canary/plain-request",
        "it is asked first: a selector that does not answer it is not judged further",
    ),
    (
        "policy_driver/select/time/profile/dev-65-s",
        "it takes more than a minute: 33 s show the same mutants, and this the rest of the time",
    ),
    (
        "policy_driver/select/numbers/timeout-empty",
        "the empty text of other variables notices its mutant sooner: this one takes the time of the default",
    ),
    (
        "policy_driver/select/resources/processes",
        "the system limits the processes of users other than root only",
    ),
    (
        "policy_driver/driver/malformed/without-permission",
        "it notices driver-picks-unread, but root reads every file: as root it is not carried out",
    ),
];
