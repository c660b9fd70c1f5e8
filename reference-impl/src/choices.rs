//! Clauses that allow several behaviours, as values: the choices of each boundary (contract §8 `[choices]`).

/// Defines the struct `Choices` of a boundary: type, default and named values of each key. The keys for JSON come
/// first and are those of every boundary.
macro_rules! choices {
    ($($own:tt)*) => {
        $crate::choices::choices_of! {
            /// Two members with one name, anywhere in a message.
            duplicate_keys: $crate::json::DuplicateKeys = $crate::json::DuplicateKeys::Last, {
                "last" => $crate::json::DuplicateKeys::Last,
                "first" => $crate::json::DuplicateKeys::First,
                "refuse" => $crate::json::DuplicateKeys::Refuse
            };
            /// An escaped half of a surrogate pair.
            lone_surrogates: $crate::json::LoneSurrogates = $crate::json::LoneSurrogates::Echo, {
                "echo" => $crate::json::LoneSurrogates::Echo,
                "replace" => $crate::json::LoneSurrogates::Replace,
                "refuse" => $crate::json::LoneSurrogates::Refuse
            };
            /// Integers beyond ±(2^53−1); numbers beyond a double are kept as spelled by `exact`.
            big_integers: $crate::json::BigNumbers = $crate::json::BigNumbers::Exact, {
                "exact" => $crate::json::BigNumbers::Exact,
                "round" => $crate::json::BigNumbers::Round,
                "refuse" => $crate::json::BigNumbers::Refuse
            };
            $($own)*
        }
    };
}

/// [`choices`] without the keys for JSON.
macro_rules! choices_of {
    ($($(#[$doc:meta])* $key:ident: $type:ty = $default:expr, { $($value:literal => $variant:expr),* };)*) => {
        /// One behaviour for every clause that allows several. Each field has the name of its configuration key.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Choices { $($(#[$doc])* pub $key: $type,)* }

        impl Default for Choices {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl Choices {
            /// Every key with its values.
            pub const ALL: &'static [(&'static str, &'static [&'static str])] =
                &[$((stringify!($key), &[$($value),*])),*];

            /// Chooses `value` for `key`, as `--choice key=value` does.
            ///
            /// # Errors
            /// An unknown key or a value that the key does not have; the error names the known ones.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), $crate::choices::ChoiceError> {
                match key {
                    $(stringify!($key) => match value {
                        $($value => self.$key = $variant,)*
                        _ => return Err($crate::choices::ChoiceError::value(Self::ALL, stringify!($key), value)),
                    },)*
                    _ => return Err($crate::choices::ChoiceError::key(Self::ALL, key)),
                }
                Ok(())
            }

            /// The choices that concern JSON.
            pub fn policy(&self) -> $crate::json::Policy {
                $crate::json::Policy {
                    duplicate_keys: self.duplicate_keys,
                    lone_surrogates: self.lone_surrogates,
                    big_numbers: self.big_integers,
                }
            }

            /// The value in force for `key`.
            pub fn get(&self, key: &str) -> Option<&'static str> {
                match key {
                    $(stringify!($key) => [$(($value, $variant)),*]
                        .into_iter()
                        .find(|(_, variant)| *variant == self.$key)
                        .map(|(value, _)| value),)*
                    _ => None,
                }
            }
        }
    };
}

/// Defines enumerations of two values, the form of most choices.
macro_rules! two {
    ($($(#[$doc:meta])* $name:ident { $one:ident, $other:ident }),* $(,)?) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            /// The value of this name.
            $one,
            /// The value of this name.
            $other,
        })*
    };
}

pub(crate) use {choices, choices_of, two};

two! {
    /// Treatment of a byte order mark.
    Bom { Ignore, Refuse },
    /// Treatment of input over the size limit.
    OverSize { Refuse, Process },
}

impl Bom {
    /// Returns the text without its byte order mark if marks are ignored. A mark that stays is refused later, as
    /// invalid JSON.
    pub(crate) fn strip(self, text: &[u8]) -> &[u8] {
        match self {
            Self::Ignore => text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text),
            Self::Refuse => text,
        }
    }
}

/// Keys of a boundary, each with its values.
pub type ChoiceKeys = &'static [(&'static str, &'static [&'static str])];

/// Reason why a choice was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// No choice has this key.
    #[error("unknown choice {key:?}; known: {}", keys(known))]
    Key {
        /// Refused key.
        key: String,
        /// Valid keys, each with its values.
        known: ChoiceKeys,
    },
    /// The choice does not have this value.
    #[error("choice {key} has no value {value:?}; known: {}", known.join(", "))]
    Value {
        /// The key.
        key: &'static str,
        /// Refused value.
        value: String,
        /// Valid values of the key.
        known: &'static [&'static str],
    },
}

fn keys(known: ChoiceKeys) -> String {
    known.iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", ")
}

impl ChoiceError {
    pub(crate) fn key(known: ChoiceKeys, key: &str) -> Self {
        Self::Key { key: key.to_owned(), known }
    }

    pub(crate) fn value(known: ChoiceKeys, key: &'static str, value: &str) -> Self {
        let known = known.iter().find(|(name, _)| *name == key).map_or(&[][..], |(_, values)| values);
        Self::Value { key, value: value.to_owned(), known }
    }
}
