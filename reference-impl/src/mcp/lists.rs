//! Lists and their pages.

use super::choices::BadCursor;
use super::message::{Failure, Outcome};
use super::method::{Call, World};
use crate::json::Value;

/// Number of items per page.
const PAGE_ITEMS: usize = 4;

/// One page of a list of the catalog. A cursor is the name of the list and the number of the first item.
pub(super) fn page(list: &str, call: &Call<'_>, world: &World) -> Outcome {
    let items = world.catalog.list(list, world.revision);
    let from = match call.params.get("cursor") {
        None => 0,
        Some(cursor) => {
            let place = cursor.as_str().and_then(|cursor| cursor.strip_prefix(list)?.strip_prefix(':'));
            let place = place.and_then(|place| place.parse::<usize>().ok());
            let is_given =
                |place: &usize| *place > 0 && place.is_multiple_of(PAGE_ITEMS) && *place < items.len();
            match place.filter(is_given) {
                Some(place) => place,
                None if world.choices.mcp_bad_cursor == BadCursor::Ignore => 0,
                None => return Err(Failure::invalid_params("no such cursor")),
            }
        }
    };
    let end = from + PAGE_ITEMS;
    let more = (end < items.len()).then(|| ("nextCursor".into(), format!("{list}:{end}").into()));
    let shown: Vec<Value> = items.into_iter().skip(from).take(PAGE_ITEMS).collect();
    Ok(Value::Object([(list.into(), shown.into())].into_iter().chain(more).collect()))
}
