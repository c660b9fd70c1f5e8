//! Serde support in natural JSON form, not as a tree of enum variants.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error as _, SerializeMap as _, SerializeSeq as _, Serializer};
use serde::{Deserialize, Serialize};

use super::{Json, Number};

/// Maximum nesting for serde, which recurses. Deeper values are an error.
pub(crate) const SERDE_DEPTH_MAX: usize = 128;

/// Value with the number of levels that may still open inside it.
struct NestedValue<'a>(&'a Json, usize);

impl Serialize for Json {
    /// Writes integers of `i64` and `u64` exactly and other numbers as the nearest double.
    ///
    /// # Errors
    ///
    /// Fails for a number beyond the range of doubles, or nesting beyond [`SERDE_DEPTH_MAX`].
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        NestedValue(self, SERDE_DEPTH_MAX).serialize(serializer)
    }
}

impl Serialize for NestedValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let NestedValue(value, levels) = *self;
        let inner = || levels.checked_sub(1).ok_or_else(|| S::Error::custom(too_deep()));
        match value {
            Json::Null => serializer.serialize_unit(),
            Json::Bool(value) => serializer.serialize_bool(*value),
            Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), ..) => serializer.serialize_u64(value),
                (_, Some(value), _) => serializer.serialize_i64(value),
                (.., Some(value)) => serializer.serialize_f64(value),
                _ => {
                    Err(S::Error::custom(format_args!("the number {number} is beyond the range of a double")))
                }
            },
            Json::String(string) => serializer.serialize_str(string),
            Json::Array(items) => {
                let inner = inner()?;
                let mut sequence = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    sequence.serialize_element(&NestedValue(item, inner))?;
                }
                sequence.end()
            }
            Json::Object(members) => {
                let inner = inner()?;
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (key, value) in members {
                    map.serialize_entry(key, &NestedValue(value, inner))?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    /// Accepts any self-describing format; doubles get their shortest spelling.
    ///
    /// # Errors
    ///
    /// Fails for NaN and infinities, or nesting beyond [`SERDE_DEPTH_MAX`].
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        Builder(SERDE_DEPTH_MAX).deserialize(deserializer)
    }
}

/// Builder of a value in which this many levels may open.
#[derive(Clone, Copy)]
struct Builder(usize);

impl Builder {
    fn inner<E: serde::de::Error>(self) -> Result<Builder, E> {
        self.0.checked_sub(1).map(Builder).ok_or_else(|| E::custom(too_deep()))
    }
}

impl<'de> DeserializeSeed<'de> for Builder {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Builder {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_none<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        let number = Number::from_f64(value);
        Ok(number.ok_or_else(|| E::custom(format_args!("JSON cannot represent the number {value}")))?.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Json, A::Error> {
        let inner = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = sequence.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let inner = self.inner::<A::Error>()?;
        let mut members = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            members.push((key, map.next_value_seed(inner)?));
        }
        Ok(Json::Object(members))
    }
}

fn too_deep() -> String {
    format!("nested deeper than {SERDE_DEPTH_MAX} levels")
}
