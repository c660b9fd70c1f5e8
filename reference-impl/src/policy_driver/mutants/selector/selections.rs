//! Mutants whose Selections are wrong, or do not report the choice.

use super::super::tree::{self, Members, edited, get, put, take};
use super::{Mutant, Rewiring, wire};
use crate::json::{Error, Text, Value};
use crate::mutant::parts;
use crate::mutant::text::{swap, swap_all};

/// True if a Selection is a fallback whose reason contains one of `reasons`.
pub(super) fn is_fallback_for(line: &[u8], reasons: &[&str]) -> bool {
    let raw = raw(line);
    raw.starts_with("fallback: ") && reasons.iter().any(|reason| raw.contains(reason))
}

/// Reduces a Selection to `kind` and its reason.
pub(super) fn retold(line: &[u8], kind: &str) -> Vec<u8> {
    changed(line, |members| {
        members.retain(|(name, _)| name == "raw");
        members.insert(0, ("kind".into(), kind.into()));
    })
}

/// True if `raw` of a Selection contains `part`.
pub(super) fn raw_has(line: &[u8], part: &str) -> bool {
    raw(line).contains(part)
}

fn raw(line: &[u8]) -> String {
    let raw = tree::members(line).and_then(|mut members| take(&mut members, "raw"));
    raw.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn kind(members: &mut Members) -> String {
    get(members, "kind").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned()
}

/// Edits the members of a Selection.
pub(super) fn changed(line: &[u8], change: impl FnOnce(&mut Members)) -> Vec<u8> {
    let mut line = edited(line, change);
    if line.last() != Some(&b'\n') {
        line.push(b'\n');
    }
    line
}

/// True for a failure or a cooldown: a fallback without a FALLBACK_ONLY request.
fn is_failure(line: &[u8]) -> bool {
    let raw = raw(line);
    raw.starts_with("fallback: ") && !raw.contains("the mode is") && !raw.contains("no policy is")
}

/// Merges as trees.
fn merged(inputs: &str, patch: &str, merge: fn(&mut Members, Members)) -> Result<String, Error> {
    let (Some(mut inputs), Some(patch)) = (tree::members(inputs.as_bytes()), tree::members(patch.as_bytes()))
    else {
        return Ok("{}".to_owned());
    };
    merge(&mut inputs, patch);
    Ok(String::from_utf8_lossy(&tree::text(&Value::Object(inputs))).into_owned())
}

fn set(members: &mut Members, name: &Text, value: Value) {
    match members.iter_mut().find(|(key, _)| key == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.clone(), value)),
    }
}

fn deep(inputs: &mut Members, patch: Members) {
    for (name, value) in patch {
        let old = inputs.iter_mut().find(|(key, _)| *key == name).map(|(_, old)| old);
        match (old, value) {
            (Some(Value::Object(old)), Value::Object(new)) => deep(old, new),
            (_, value) => set(inputs, &name, value),
        }
    }
}

fn all_but(inputs: &mut Members, patch: Members, loses: fn(&Text, &Value) -> bool) {
    for (name, value) in patch {
        if !loses(&name, &value) {
            set(inputs, &name, value);
        }
    }
}

/// Mutants of this file in the order of the clauses.
pub(super) const MUTANTS: &[Mutant] = &[
    wire(
        "select-log-line",
        &["PD-SEL-04"],
        "A log line precedes each Selection.",
        Rewiring::Selection(|line| [b"policy: selected\n", line].concat()),
    ),
    wire(
        "select-trailing-comma",
        &["PD-SEL-04"],
        "A Selection has a trailing comma.",
        Rewiring::Selection(|line| swap(line, "}\n", ",}\n")),
    ),
    wire(
        "select-over-two-lines",
        &["PD-SEL-04"],
        "A Selection is laid out over several lines.",
        Rewiring::Selection(|line| swap(line, ",\"raw\"", ",\n  \"raw\"")),
    ),
    wire(
        "select-raw-newlines",
        &["PD-SEL-04"],
        "Line feeds in `raw` are not escaped.",
        Rewiring::Selection(|line| swap_all(line, "\\n", "\n")),
    ),
    wire(
        "select-not-utf8",
        &["PD-SEL-04"],
        "Letters beyond ASCII are written as Latin-1.",
        Rewiring::Selection(|line| {
            let letters = String::from_utf8_lossy(line);
            let byte = |letter: char| u8::try_from(u32::from(letter)).unwrap_or(b'?');
            letters.chars().map(byte).collect()
        }),
    ),
    wire(
        "select-rounds-patches",
        &["PD-SEL-17"],
        "Integers of a patch go through 32-bit floats.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                let patch = get(members, "input_patch_json");
                if let Some((patch, mut value)) = patch.and_then(|patch| {
                    let value = tree::parse(patch.as_str()?.as_bytes())?;
                    Some((patch, value))
                }) {
                    tree::each(&mut value, &tree::round);
                    *patch = String::from_utf8_lossy(&tree::text(&value)).as_ref().into();
                }
            })
        }),
    ),
    wire(
        "select-kind-in-lower-case",
        &["PD-SELN-01"],
        "`kind` is in lower case.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                let kind = kind(members).to_lowercase();
                put(members, "kind", kind.as_str().into());
            })
        }),
    ),
    wire(
        "select-kind-of-its-own",
        &["PD-SELN-01", "PD-SELN-05"],
        "A fallback after a failure has the kind FALLBACK.",
        Rewiring::Selection(|line| {
            if is_failure(line) {
                changed(line, |members| put(members, "kind", "FALLBACK".into()))
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-sid-without-pick",
        &["PD-SELN-02"],
        "`sid` is there for NOOP and ASK_SUP too.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if matches!(kind(members).as_str(), "NOOP" | "ASK_SUP") {
                    put(members, "sid", "SID0001".into());
                }
            })
        }),
    ),
    wire(
        "select-empty-sid",
        &["PD-SELN-02"],
        "`sid` is an empty string for NOOP and ASK_SUP.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if matches!(kind(members).as_str(), "NOOP" | "ASK_SUP") {
                    put(members, "sid", "".into());
                }
            })
        }),
    ),
    wire(
        "select-pick-without-sid",
        &["PD-SELN-02"],
        "A PICK has no `sid`.",
        Rewiring::Selection(|line| changed(line, |members| drop(take(members, "sid")))),
    ),
    wire(
        "select-sid-as-number",
        &["PD-SELN-02"],
        "`sid` is the number of the SID.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if let Some(sid) = get(members, "sid") {
                    let number = sid.as_str().and_then(|sid| sid.get(3..)?.parse::<i64>().ok());
                    *sid = Value::Number(number.unwrap_or_default().into());
                }
            })
        }),
    ),
    wire(
        "select-patch-as-object",
        &["PD-SELN-03"],
        "`input_patch_json` is the object itself.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if let Some(patch) = get(members, "input_patch_json") {
                    let object = patch.as_str().and_then(|patch| tree::parse(patch.as_bytes()));
                    *patch = object.unwrap_or(Value::Null);
                }
            })
        }),
    ),
    wire(
        "select-patch-in-a-string",
        &["PD-SELN-03"],
        "`input_patch_json` holds a JSON string of the object.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if let Some(patch) = get(members, "input_patch_json") {
                    *patch = String::from_utf8_lossy(&tree::text(patch)).as_ref().into();
                }
            })
        }),
    ),
    wire(
        "select-loses-patch",
        &["PD-SELN-03"],
        "A patch is not shown.",
        Rewiring::Selection(|line| changed(line, |members| drop(take(members, "input_patch_json")))),
    ),
    wire(
        "select-patch-in-base64",
        &["PD-SELN-03"],
        "An encoded patch is shown as it was encoded.",
        Rewiring::Selection(|line| {
            let raw = raw(line);
            let Some(base64) = raw.split("<INP64>").nth(1).and_then(|rest| rest.split("</INP64>").next())
            else {
                return line.to_vec();
            };
            changed(line, |members| put(members, "input_patch_json", base64.into()))
        }),
    ),
    wire(
        "select-patch-without-one",
        &["PD-SELN-03"],
        "A PICK without a patch shows an empty one.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if kind(members) == "PICK" && get(members, "input_patch_json").is_none() {
                    put(members, "input_patch_json", "{}".into());
                }
            })
        }),
    ),
    wire(
        "select-patch-loses-nested",
        &["PD-SELN-03"],
        "Of a patch only what is no object is shown.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if let Some(patch) = get(members, "input_patch_json") {
                    let flat = edited(patch.as_str().unwrap_or_default().as_bytes(), |patch| {
                        patch.retain(|(_, value)| value.as_object().is_none());
                    });
                    *patch = String::from_utf8_lossy(&flat).as_ref().into();
                }
            })
        }),
    ),
    wire(
        "select-empty-raw",
        &["PD-SELN-04"],
        "`raw` of a choice of the driver is empty.",
        Rewiring::Selection(|line| {
            let is_choice = raw(line).trim_start().starts_with('<');
            if is_choice { changed(line, |members| put(members, "raw", "".into())) } else { line.to_vec() }
        }),
    ),
    wire(
        "select-raw-of-forty",
        &["PD-SELN-04"],
        "`raw` holds no more than 40 bytes.",
        Rewiring::Selection(|line| {
            let raw: String = raw(line).trim_start().chars().take(40).collect();
            changed(line, |members| put(members, "raw", raw.as_str().into()))
        }),
    ),
    wire(
        "select-raw-without-patch",
        &["PD-SELN-04"],
        "`raw` does not hold the patch of a block.",
        Rewiring::Selection(|line| {
            let raw = raw(line);
            match (raw.split_once("<INP"), raw.rsplit_once("<END>")) {
                (Some((before, _)), Some(_)) => {
                    let raw = format!("{before}<END>");
                    changed(line, |members| put(members, "raw", raw.as_str().into()))
                }
                _ => line.to_vec(),
            }
        }),
    ),
    wire(
        "select-raw-as-object",
        &["PD-SELN-04"],
        "`raw` is an object.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if let Some(raw) = take(members, "raw") {
                    put(members, "raw", Value::Object(vec![("stdout".into(), raw)]));
                }
            })
        }),
    ),
    wire(
        "select-failure-is-noop",
        &["PD-SELN-05"],
        "A failure is answered by NOOP.",
        Rewiring::Selection(|line| if is_failure(line) { retold(line, "NOOP") } else { line.to_vec() }),
    ),
    wire(
        "select-failure-with-patch",
        &["PD-SELN-05"],
        "A fallback after a failure carries a patch.",
        Rewiring::Selection(|line| {
            if is_failure(line) {
                changed(line, |members| put(members, "input_patch_json", "{}".into()))
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-fallback-without-reason",
        &["PD-SELN-10"],
        "`raw` of a fallback is empty.",
        Rewiring::Selection(|line| {
            let is_fallback = raw(line).starts_with("fallback: ");
            if is_fallback { changed(line, |members| put(members, "raw", "".into())) } else { line.to_vec() }
        }),
    ),
    wire(
        "select-fallback-as-block",
        &["PD-SELN-06"],
        "`raw` of a fallback is the block that a driver would have written.",
        Rewiring::Selection(|line| {
            if !raw(line).starts_with("fallback: ") {
                return line.to_vec();
            }
            changed(line, |members| {
                let sid = get(members, "sid").and_then(|sid| sid.as_str()).map(str::to_owned);
                let block = sid.map_or("<NOOP><END>".to_owned(), |sid| format!("<PICK><{sid}><END>"));
                put(members, "raw", block.as_str().into());
            })
        }),
    ),
    wire(
        "select-failure-as-block",
        &["PD-SELN-06"],
        "`raw` of a fallback after a failure is a block.",
        Rewiring::Selection(|line| {
            if is_failure(line) {
                changed(line, |members| put(members, "raw", "<NOOP><END>\n".into()))
            } else {
                line.to_vec()
            }
        }),
    ),
    wire(
        "select-hides-large-merges",
        &["PD-SELN-07"],
        "Merged inputs are not shown for patches of 4,096 bytes and more.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                let patch = get(members, "input_patch_json").and_then(|patch| patch.as_str());
                if patch.is_some_and(|patch| patch.len() >= 4_096) {
                    take(members, "inputs");
                }
            })
        }),
    ),
    parts(
        "select-merges-deep",
        &["PD-SELN-07", "PD-SELN-09"],
        "Objects are merged member by member at any depth.",
        |_, parts| parts.merge = |inputs, patch, _| merged(inputs, patch, deep),
    ),
    parts(
        "select-patch-replaces-inputs",
        &["PD-SELN-07", "PD-SELN-09"],
        "A patch takes the place of the inputs.",
        |_, parts| parts.merge = |_, patch, _| Ok(patch.to_owned()),
    ),
    parts(
        "select-patch-adds-only",
        &["PD-SELN-07"],
        "A patch does not replace what is there.",
        |_, parts| {
            parts.merge = |inputs, patch, _| {
                merged(inputs, patch, |inputs, patch| {
                    let old = inputs.clone();
                    all_but(inputs, patch, |_, _| false);
                    all_but(inputs, old, |_, _| false);
                })
            };
        },
    ),
    parts(
        "select-ignores-patch",
        &["PD-SELN-07", "PD-SELN-09"],
        "The inputs are shown without the patch.",
        |_, parts| parts.merge = |inputs, _, _| Ok(inputs.to_owned()),
    ),
    parts(
        "select-joins-arrays",
        &["PD-SELN-07"],
        "Arrays of a patch are appended to those of the inputs.",
        |_, parts| {
            parts.merge = |inputs, patch, _| {
                merged(inputs, patch, |inputs, patch| {
                    for (name, value) in patch {
                        let old = inputs.iter_mut().find(|(key, _)| *key == name).map(|(_, old)| old);
                        match (old, value) {
                            (Some(Value::Array(old)), Value::Array(new)) => old.extend(new),
                            (_, value) => set(inputs, &name, value),
                        }
                    }
                })
            };
        },
    ),
    parts("select-null-removes", &["PD-SELN-08"], "null in a patch removes a member.", |_, parts| {
        parts.merge = |inputs, patch, _| {
            merged(inputs, patch, |inputs, patch| {
                inputs.retain(|(name, _)| {
                    !patch.iter().any(|(key, value)| key == name && *value == Value::Null)
                });
                all_but(inputs, patch, |_, value| *value == Value::Null);
            })
        };
    }),
    parts("select-null-leaves", &["PD-SELN-08"], "null in a patch leaves a member as it was.", |_, parts| {
        parts.merge = |inputs, patch, _| {
            merged(inputs, patch, |inputs, patch| {
                all_but(inputs, patch, |_, value| *value == Value::Null);
            })
        };
    }),
    parts("select-loses-proto", &["PD-SELN-08"], "`__proto__` of a patch is lost.", |_, parts| {
        parts.merge = |inputs, patch, _| {
            merged(inputs, patch, |inputs, patch| {
                all_but(inputs, patch, |name, _| name == "__proto__");
            })
        };
    }),
    parts("select-loses-constructor", &["PD-SELN-08"], "`constructor` of a patch is lost.", |_, parts| {
        parts.merge = |inputs, patch, _| {
            merged(inputs, patch, |inputs, patch| {
                all_but(inputs, patch, |name, _| name == "constructor");
            })
        };
    }),
    parts("select-loses-sid", &["PD-SELN-08"], "`sid` of a patch is lost.", |_, parts| {
        parts.merge = |inputs, patch, _| {
            merged(inputs, patch, |inputs, patch| {
                all_but(inputs, patch, |name, _| name == "sid");
            })
        };
    }),
    parts(
        "select-loses-empty-name",
        &["PD-SELN-08"],
        "A member of a patch whose name is empty is lost.",
        |_, parts| {
            parts.merge = |inputs, patch, _| {
                merged(inputs, patch, |inputs, patch| {
                    all_but(inputs, patch, |name, _| name.as_bytes().is_empty());
                })
            };
        },
    ),
    wire(
        "select-inputs-as-text",
        &["PD-SELN-09"],
        "The merged inputs are shown as a string.",
        Rewiring::Selection(|line| {
            changed(line, |members| {
                if let Some(inputs) = get(members, "inputs") {
                    *inputs = String::from_utf8_lossy(&tree::text(inputs)).as_ref().into();
                }
            })
        }),
    ),
];
