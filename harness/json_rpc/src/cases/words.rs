//! Placeholders in rows about a server. Each stands for JSON text.
//!
//! | | |
//! |---|---|
//! | `$ECHO`, `$FAIL`, `$NAMED`, `$COUNTER` | method of that role, quoted |
//! | `$SUBTRACT` | method of the role `named`, which must subtract |
//! | `$NONE` | a method that no server has, quoted |
//! | `$ECHO_OR_NONE` | method of the role `echo` if it is mapped, else `$NONE` |
//! | `$GOOD`, `$GOOD(7,"id")` | a request with a known answer, its id, and a number for its params if they are free |
//! | `$HEAD(7,"id")`, `$TAIL(7,"id")` | `$GOOD` without its last brace; without its first brace and first member |
//! | `$WIDE` | a request with UTF-8 characters of all lengths, for cuts within characters |
//! | `$SLEEP(500,"id")`, `$BLOB(9,"id")`, `$STREAM("id")` | a call of that role; the id `-` makes it a notification |
//! | `$SLEEP(500,"id",timeout_ms=5)` | a call with an option, or without a member of its params (`without=options`) |
//! | `$PACKED(7,"id")` | placeholder of the compressed `$GOOD(7,"id")` |
//! | `$N` | index of this line in its write, from 0 |

use serde_json::{Value, json};

use super::super::role::{ROLES, Role, difference, role};
use super::super::talk::{UNKNOWN_METHOD, call, good, packed, quoted};
use peerproof_engine::data::case::fill_in;
use peerproof_engine::data::check::Untestable;
use peerproof_engine::data::facts::Facts;
use peerproof_engine::data::packing::Packing;

/// Fills in every placeholder of `text`. `roles` are the roles that the case needs, `number` is the index of the
/// line.
pub(super) fn filled(text: &str, roles: &[&str], number: u64, facts: &Facts) -> Result<String, Untestable> {
    let numbered = fill_in(text, &|name, behind| Ok((name == "N").then(|| (number.to_string(), behind))))?;
    fill_in(&numbered, &|name, behind| {
        let (arguments, behind) = match behind.strip_prefix('(') {
            Some(inside) => inside.split_once(')').ok_or("a parenthesis is not closed")?,
            None => ("", behind),
        };
        let text = value(name, &arguments.split(',').collect::<Vec<_>>(), roles, facts)?;
        Ok(Some((text, behind)))
    })
}

fn value(name: &str, arguments: &[&str], roles: &[&str], facts: &Facts) -> Result<String, Untestable> {
    let known =
        ROLES.iter().find(|role| role.to_uppercase() == name || (name, **role) == ("SUBTRACT", "named"));
    if let Some(known) = known.filter(|known| !roles.contains(known)) {
        return Err(format!("the role {known:?} is not among the case's `roles`").into());
    }
    let method = |name: &str| role(facts, name).map(|role| role.method).unwrap_or_default();
    match (name, arguments) {
        ("NONE", [""]) => Ok(quoted(UNKNOWN_METHOD)),
        ("ECHO_OR_NONE", [""]) => {
            Ok(quoted(&role(facts, "echo").map_or(UNKNOWN_METHOD.to_owned(), |echo| echo.method)))
        }
        ("ECHO" | "FAIL" | "NAMED" | "COUNTER", [""]) => Ok(quoted(&method(&name.to_lowercase()))),
        ("SUBTRACT", [""]) => Ok(quoted(&difference(facts)?.method)),
        ("WIDE", [""]) => Ok(match role(facts, "echo") {
            Some(echo) => call(&echo.method, Some("[\"aé€😀\\u00e9\\ud83d\\ude00\\n\"]"), Some("\"aé€😀\"")),
            None => good(facts, 1, "\"aé€😀\""),
        }),
        ("GOOD", [""]) => Ok(good(facts, 0, "\"good\"")),
        ("GOOD" | "HEAD" | "TAIL" | "PACKED", [number, id]) => {
            let text = good(facts, amount(number)?, id);
            Ok(match name {
                "HEAD" => text[..text.len() - 1].to_owned(),
                "TAIL" => text.split_once(',').map_or_else(String::new, |(_, tail)| tail.to_owned()),
                "PACKED" => packed(&text, Packing::Whole),
                _ => text,
            })
        }
        ("SLEEP", [ms, rest @ ..]) => role_call(facts, "sleep", Some(("ms", amount(ms)?)), rest),
        ("BLOB", [bytes, rest @ ..]) => role_call(facts, "blob", Some(("bytes", amount(bytes)?)), rest),
        ("STREAM", rest) => role_call(facts, "stream", None, rest),
        _ => Err(format!("there is no placeholder ${name} with these arguments").into()),
    }
}

fn amount(text: &str) -> Result<u64, Untestable> {
    text.parse().map_err(|_| format!("{text:?} is not a number").into())
}

/// A call of a role's method with its own params, an amount in them and an option. The id `-` makes it a
/// notification.
pub(crate) fn role_call(
    facts: &Facts,
    name: &str,
    amount: Option<(&str, u64)>,
    rest: &[&str],
) -> Result<String, Untestable> {
    let (id, option) = match rest {
        [id] => (id, None),
        [id, option] => (id, Some(option.split_once('=').ok_or("an option is NAME=VALUE")?)),
        _ => return Err(format!("a call of the role `{name}` has an id and an option").into()),
    };
    let role = match name {
        "stream" => streaming(facts)?,
        _ => role(facts, name).ok_or_else(|| format!("the role `{name}` is not mapped"))?,
    };
    let mut params = match amount {
        Some((place, amount)) => role.filled(place, amount)?,
        None => role.params.clone().unwrap_or_default(),
    };
    if let Some((option, value)) = option {
        let object = params
            .as_object_mut()
            .ok_or_else(|| format!("the role `{name}` takes its params by position: no room for options"))?;
        if option == "without" {
            object.remove(value);
        } else {
            let options = object.entry("options").or_insert_with(|| json!({}));
            let value = serde_json::from_str(value).map_err(|error| error.to_string())?;
            options
                .as_object_mut()
                .ok_or_else(|| format!("`options` of the role `{name}` are not an object"))?
                .insert(option.to_owned(), value);
        }
    }
    Ok(call(&role.method, Some(&params.to_string()), Some(*id).filter(|id| *id != "-")))
}

/// The role `stream`, if its params ask for a stream.
fn streaming(facts: &Facts) -> Result<Role, Untestable> {
    let asks = |role: &Role| {
        role.params.as_ref().and_then(|params| params.pointer("/options/stream")) == Some(&Value::Bool(true))
    };
    role(facts, "stream").filter(asks).ok_or_else(|| {
        Untestable::new("role_probes_nothing", "the params of the role `stream` lack `options.stream` true")
    })
}
