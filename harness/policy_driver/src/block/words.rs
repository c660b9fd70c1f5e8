//! Forms of a block, open points and faults.

use std::fmt;

/// The five forms of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// `<PICK><SID0007><END>`
    Pick,
    /// `<PICK><SID0007><INP>{…}</INP><END>`
    PickInp,
    /// `<PICK><SID0007><INP64>…</INP64><END>`
    PickInp64,
    /// `<ASK_SUP><END>`
    AskSup,
    /// `<NOOP><END>`
    Noop,
}

impl Form {
    /// All forms.
    pub const ALL: [Form; 5] = [Form::Pick, Form::PickInp, Form::PickInp64, Form::AskSup, Form::Noop];

    /// Name in snake case, such as `pick_inp64`.
    pub fn name(self) -> &'static str {
        match self {
            Form::Pick => "pick",
            Form::PickInp => "pick_inp",
            Form::PickInp64 => "pick_inp64",
            Form::AskSup => "ask_sup",
            Form::Noop => "noop",
        }
    }

    /// `kind` of the resulting Selection: `PICK`, `ASK_SUP` or `NOOP`.
    pub fn kind(self) -> &'static str {
        match self {
            Form::Pick | Form::PickInp | Form::PickInp64 => "PICK",
            Form::AskSup => "ASK_SUP",
            Form::Noop => "NOOP",
        }
    }

    /// True for a form that picks an entry of the menu.
    pub fn picks(self) -> bool {
        self.kind() == "PICK"
    }
}

/// A point of a block that the contract leaves to the selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Open {
    /// `INP64` is lenient base64: unpadded, wrongly padded, of the URL alphabet, with spare bits set, or with white
    /// space.
    LenientBase64,
    /// A vertical tab or a form feed occurs around the block.
    VtFfTrim,
    /// An object of the patch has a repeated key.
    DuplicateKeys,
    /// A string of the patch has a lone surrogate escape.
    LoneSurrogates,
    /// The patch has an integer beyond ±(2^53−1), or a number that is not equal to any double, such as `1e400`.
    BigNumbers,
    /// The patch nests deeper than 64 levels.
    DeepNesting,
}

macro_rules! faults {
    ($($name:ident $code:literal $phrase:literal),* $(,)?) => {
        /// Reason why an output is not exactly one block.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $(
                #[doc = $phrase]
                $name,
            )*
        }

        impl Fault {
            /// All faults.
            pub const ALL: &[Fault] = &[$(Fault::$name),*];

            /// Name in snake case.
            pub fn code(self) -> &'static str {
                match self {
                    $(Fault::$name => $code,)*
                }
            }

            /// Description in one phrase.
            pub fn phrase(self) -> &'static str {
                match self {
                    $(Fault::$name => $phrase,)*
                }
            }
        }
    };
}

faults! {
    Empty "empty" "the output is empty or white space",
    TooLong "too_long" "the output is longer than its limit",
    NotUtf8 "not_utf8" "the output is not UTF-8",
    Bom "bom" "a byte order mark stands before the block or the patch",
    NoBlock "no_block" "the output contains no block",
    TextBefore "text_before" "text before the block",
    TextBetween "text_between" "text between the parts of the block",
    TextAfter "text_after" "text after the block",
    TwoBlocks "two_blocks" "a second block follows",
    SecondPick "second_pick" "a second PICK inside the block",
    BothPatches "both_patches" "a second patch follows the first",
    LowerCase "lower_case" "a tag of the block is not in upper case",
    BadSid "bad_sid" "the selection id is not `SID` and exactly four digits",
    PatchNotJson "patch_not_json" "the patch is not strict JSON",
    PatchNotObject "patch_not_object" "the patch is JSON, but not an object",
    BadBase64 "bad_base64" "INP64 does not contain padded base64 of the standard alphabet",
    Unclosed "unclosed" "the output ends inside the block",
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phrase())
    }
}
