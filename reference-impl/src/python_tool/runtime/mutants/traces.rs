//! Mutants that report calls differently, or omit a part.

use super::super::{End, Target};
use super::Change::{Config as Told, End as Ends, Line, Trace};
use super::{Mutant, drop_member, each, has, of};
use crate::envelope::{get, number, set};
use crate::json::Value;
use crate::mutant::{ShellFault, shell};

pub(super) const MUTANTS: &[Mutant] = &[
    of(
        "runtime-traces-no-failures",
        &["PT-RT-52"],
        "Only results have a trace.",
        Line(|line| {
            if get(line, "outcome") != Some(&Value::from("result")) {
                line.retain(|(name, _)| *name != *"trace");
            }
        }),
    ),
    of(
        "runtime-traces-no-source",
        &["PT-RT-52"],
        "The trace has always the source `binding`.",
        Trace(|_, trace| {
            set(trace, "resolved_source", Value::from("binding"));
        }),
    ),
    of(
        "runtime-takes-no-time",
        &["PT-RT-53"],
        "Every call took no time.",
        Trace(|_, trace| {
            set(trace, "duration_ms", number(0));
        }),
    ),
    of(
        "runtime-takes-an-hour",
        &["PT-RT-53"],
        "Every call took an hour.",
        Trace(|_, trace| {
            set(trace, "duration_ms", number(3_600_000));
        }),
    ),
    of(
        "runtime-traces-no-path",
        &["PT-RT-54"],
        "The trace lacks `python_path`.",
        Trace(|_, trace| drop_member(trace, "python_path")),
    ),
    of(
        "runtime-traces-no-sandbox",
        &["PT-RT-55"],
        "The trace lacks `sandbox`.",
        Trace(|_, trace| drop_member(trace, "sandbox")),
    ),
    of(
        "runtime-traces-no-url",
        &["PT-RT-56"],
        "The trace lacks `service_url`.",
        Trace(|_, trace| drop_member(trace, "service_url")),
    ),
    of(
        "runtime-traces-another-host",
        &["PT-RT-56"],
        "The trace has always the same host.",
        Trace(|_, trace| {
            if let Some(Value::String(url)) = get(trace, "service_url") {
                let url = url.to_lossy().into_owned();
                let path = url.splitn(4, '/').nth(3).unwrap_or_default();
                set(trace, "service_url", Value::from(format!("http://service/{path}").as_str()));
            }
        }),
    ),
    of(
        "runtime-takes-no-time-for-services",
        &["PT-RT-53"],
        "A call of a service took no time.",
        Trace(|ready, trace| {
            if matches!(ready.target, Target::Service(_)) {
                set(trace, "duration_ms", number(0));
            }
        }),
    ),
    of(
        "runtime-traces-credentials",
        &["PT-RT-57"],
        "Credentials stay in the trace.",
        Trace(|ready, trace| {
            if let Target::Service(url) = &ready.target {
                set(trace, "service_url", Value::from(url.as_str()));
            }
        }),
    ),
    of(
        "runtime-traces-no-handshake",
        &["PT-RT-58"],
        "The trace lacks `service_handshake`.",
        Trace(|_, trace| drop_member(trace, "service_handshake")),
    ),
    of(
        "runtime-traces-too-much-assurance",
        &["PT-RT-58"],
        "The trace says `enforced` of every handshake.",
        Trace(|_, trace| {
            if get(trace, "enforcement_level").is_some() {
                set(trace, "enforcement_level", Value::from("enforced"));
            }
        }),
    ),
    of(
        "runtime-traces-no-image",
        &["PT-RT-59"],
        "The trace lacks `image`.",
        Trace(|_, trace| drop_member(trace, "image")),
    )
    .needing("container"),
    of(
        "runtime-traces-no-pack",
        &["PT-RT-60"],
        "The trace lacks `pack_version`.",
        Trace(|_, trace| drop_member(trace, "pack_version")),
    ),
    of(
        "runtime-traces-no-override",
        &["PT-RT-61"],
        "The trace lacks `unsafe_override`.",
        Trace(|_, trace| drop_member(trace, "unsafe_override")),
    )
    .needing("unsafe_override"),
    of(
        "runtime-traces-overrides",
        &["PT-RT-61"],
        "The trace always has `unsafe_override` true.",
        Trace(|_, trace| {
            set(trace, "unsafe_override", Value::Bool(true));
        }),
    ),
    of(
        "runtime-traces-everything",
        &["PT-RT-62"],
        "Every trace has an `image`.",
        Trace(|ready, trace| {
            if !matches!(ready.target, Target::Container(..)) {
                set(trace, "image", Value::from("none"));
            }
        }),
    ),
    of(
        "runtime-names-no-image",
        &["PT-RT-63"],
        "A container is run without its image.",
        Told(|config| {
            each(config, |ready| {
                if let Target::Container(_, image, _) = &mut ready.target {
                    image.clear();
                }
            });
        }),
    )
    .needing("container"),
    of(
        "runtime-reads-containers-as-runners",
        &["PT-RT-63"],
        "A container's reply needs a version.",
        Ends(|ready, end| match end {
            End::Exited(exit, text)
                if matches!(ready.target, Target::Container(..)) && !has(&text, "protocol_version") =>
            {
                End::Exited(exit, Vec::new())
            }
            other => other,
        }),
    )
    .needing("container"),
    shell(
        "runtime-leaves-a-child",
        &["PT-RT-65"],
        "A child process outlives the runtime.",
        ShellFault::LeavesChild,
    ),
    shell(
        "runtime-leaves-a-file",
        &["PT-RT-65"],
        "A temporary file outlives the runtime.",
        ShellFault::LeavesFile,
    ),
];
