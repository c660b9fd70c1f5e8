//! One validating pass over a text, without a tree.

use memchr::memchr;

use super::bytes::word;
use super::embedded::Embedded;
use super::grammar::{Sink, StrSpan, walk, walk_value};
use super::number::is_big;
use super::text::RawStr;
use super::{Error, ErrorKind};

/// Kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Ambiguities of a text, on which implementations differ (contract §0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traits {
    /// True if an object may hold one name twice: it does, or an escaped name was not compared.
    pub duplicate_keys: bool,
    /// True if a string holds a lone surrogate.
    pub lone_surrogates: bool,
    /// True if a number is beyond the exact range of a double.
    pub big_numbers: bool,
}

/// Facts about a JSON document within a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// Kind of its top-level value.
    pub kind: Kind,
    /// Ambiguities of the document.
    pub traits: Traits,
}

/// Raw value in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'t> {
    text: &'t str,
    kind: Kind,
    escaped: bool,
    document: Option<Document>,
}

impl<'t> Raw<'t> {
    /// The text of the value, with its quotes or brackets.
    pub fn text(self) -> &'t str {
        self.text
    }

    /// Kind of the value.
    pub fn kind(self) -> Kind {
        self.kind
    }

    /// The JSON document in this string, if the scanner was told to look for it and found it well-formed on the way.
    /// After `None`, unescape the string and scan it.
    pub fn document(self) -> Option<Document> {
        self.document
    }

    /// The string, if it is one.
    pub fn as_str(self) -> Option<RawStr<'t>> {
        let inside = self.text.get(1..self.text.len().saturating_sub(1));
        (self.kind == Kind::String).then(|| RawStr { raw: inside.unwrap_or_default(), escaped: self.escaped })
    }
}

/// A validated text and the members of its top-level object.
#[derive(Debug, Clone, Copy)]
pub struct Scanned<'s, 't> {
    text: &'t str,
    kind: Kind,
    traits: Traits,
    members: &'s [Member],
}

/// Raw name and value of a member.
pub type Object<'t> = (RawStr<'t>, Raw<'t>);

impl<'s, 't> Scanned<'s, 't> {
    /// Kind of the top-level value.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The whole text.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Ambiguities of the text, at any depth.
    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Members of the top-level object in order, duplicates included; empty for other kinds of values.
    pub fn members(&self) -> impl Iterator<Item = Object<'t>> + use<'s, 't> {
        let text = self.text;
        let members = self.members;
        members.iter().map(move |member| {
            let slice = |span: &Span| text.get(span.start as usize..span.end as usize).unwrap_or_default();
            let key = RawStr { raw: slice(&member.key), escaped: member.key_escaped };
            let Member { value, kind, escaped, document, .. } = member;
            (key, Raw { text: slice(value), kind: *kind, escaped: *escaped, document: *document })
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    end: u32,
}

#[derive(Debug, Clone, Copy)]
struct Member {
    key: Span,
    value: Span,
    kind: Kind,
    key_escaped: bool,
    escaped: bool,
    document: Option<Document>,
}

/// Name in an object that is still open. `head` holds its first bytes for a quick comparison.
#[derive(Debug, Clone, Copy)]
struct Name {
    head: u64,
    span: Span,
}

/// Largest number of names that are compared pairwise. Larger objects are sorted when they end.
const PAIRWISE_MAX: usize = 16;

/// Validator of texts. It keeps its buffers from one text to the next.
#[derive(Debug)]
pub struct Scanner {
    nesting_max: usize,
    document_member: Option<&'static str>,
    buffers: Buffers,
    /// Buffers for the document within the text.
    inner: Buffers,
}

#[derive(Debug, Default)]
struct Buffers {
    stack: Vec<bool>,
    names: Vec<Name>,
    enclosing: Vec<Level>,
    members: Vec<Member>,
}

/// State of an open array or object.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Number of names before the object's own.
    base: usize,
    /// Bloom filter of the object's names: a name whose bit is not set is new.
    seen: u64,
}

/// Entries that stay allocated between texts. Larger buffers are freed.
const KEPT_ENTRIES: usize = 4096;

impl Buffers {
    fn clear(&mut self) {
        self.names.clear();
        self.names.shrink_to(KEPT_ENTRIES);
        self.enclosing.clear();
        self.members.clear();
        self.members.shrink_to(KEPT_ENTRIES);
    }
}

impl Scanner {
    /// A scanner that accepts up to `nesting_max` levels of arrays and objects.
    pub fn new(nesting_max: usize) -> Self {
        Self { nesting_max, document_member: None, buffers: Buffers::default(), inner: Buffers::default() }
    }

    /// Makes the scanner validate the JSON document in the string of the top-level member `name` in the same pass; see
    /// [`Raw::document`]. Its levels of nesting are counted separately.
    pub fn with_document(mut self, name: &'static str) -> Self {
        self.document_member = Some(name);
        self
    }

    /// Validates `text`, which must hold one JSON value, with or without white space around it.
    ///
    /// # Errors
    /// Fails at the first byte at which the text is not strict JSON in UTF-8, or is nested too deeply.
    pub fn scan<'s, 't>(&'s mut self, text: &'t [u8]) -> Result<Scanned<'s, 't>, Error> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error { kind: ErrorKind::Size, at: u32::MAX as usize });
        }
        let utf8 = std::str::from_utf8(text)
            .map_err(|error| Error { kind: ErrorKind::Utf8, at: error.valid_up_to() })?;
        self.buffers.clear();
        let Buffers { stack, names, enclosing, members } = &mut self.buffers;
        let inner = self.document_member.map(|name| Inner {
            name,
            nesting_max: self.nesting_max,
            buffers: &mut self.inner,
            next: false,
        });
        let mut pass = Pass::<true>::new(text, names, enclosing, members, inner);
        walk(text, self.nesting_max, stack, &mut pass)?;
        let (kind, traits) = (pass.kind, pass.traits);
        Ok(Scanned { text: utf8, kind, traits, members: &self.buffers.members })
    }
}

/// One pass over a text. The top-level members are recorded only with `MEMBERS`.
struct Pass<'p, const MEMBERS: bool> {
    text: &'p [u8],
    names: &'p mut Vec<Name>,
    /// The innermost open array or object, and those around it.
    level: Level,
    enclosing: &'p mut Vec<Level>,
    members: &'p mut Vec<Member>,
    traits: Traits,
    kind: Kind,
    /// Start of the open value that belongs to a top-level member.
    opened: usize,
    inner: Option<Inner<'p>>,
}

/// State of the validation of an inner document.
struct Inner<'p> {
    name: &'static str,
    nesting_max: usize,
    buffers: &'p mut Buffers,
    /// True if the next value is the document.
    next: bool,
}

impl<'p, const MEMBERS: bool> Pass<'p, MEMBERS> {
    fn new(
        text: &'p [u8],
        names: &'p mut Vec<Name>,
        enclosing: &'p mut Vec<Level>,
        members: &'p mut Vec<Member>,
        inner: Option<Inner<'p>>,
    ) -> Self {
        let (traits, kind) = (Traits::default(), Kind::Null);
        let level = Level::default();
        Self { text, names, level, enclosing, members, traits, kind, opened: 0, inner }
    }

    /// Validates the document that starts at `start`. Returns the offset of its closing quote.
    fn document(&mut self, start: usize) -> Option<usize> {
        let Inner { nesting_max, buffers, .. } = self.inner.as_mut()?;
        buffers.clear();
        let Buffers { stack, names, enclosing, members } = &mut **buffers;
        let mut pass = Pass::<false>::new(self.text, names, enclosing, members, None);
        let end = walk_value::<Embedded, _>(self.text, start, *nesting_max, stack, &mut pass).ok()?;
        let document = Document { kind: pass.kind, traits: pass.traits };
        let inside = self.text.get(start..end)?;
        if self.text.get(end) != Some(&b'"') {
            return None;
        }
        self.value(Kind::String, start - 1, end + 1, memchr(b'\\', inside).is_some());
        if let Some(member) = self.members.last_mut() {
            member.document = Some(document);
        }
        Some(end)
    }
}

impl<const MEMBERS: bool> Pass<'_, MEMBERS> {
    /// Records a value of the top level or of a top-level member.
    #[inline(always)]
    fn value(&mut self, kind: Kind, start: usize, end: usize, escaped: bool) {
        match self.enclosing.len() {
            0 => self.kind = kind,
            1 if MEMBERS => {
                // Only a top-level object has members; in an array there is none to complete.
                if let Some(member) = self.members.last_mut() {
                    *member = Member { value: span(start, end), kind, escaped, ..*member };
                }
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn name(&mut self, key: StrSpan) {
        if self.traits.duplicate_keys {
            return;
        }
        if key.escaped {
            self.traits.duplicate_keys = true;
            return;
        }
        let name = Name { head: head(self.text, key.start, key.end), span: span(key.start, key.end) };
        let bit = 1 << (name.head.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58);
        if self.level.seen & bit != 0 {
            self.compare(name);
        }
        self.level.seen |= bit;
        self.names.push(name);
    }

    /// Compares a name with its siblings, unless there are so many that they are sorted at the end. The name is passed
    /// by value: a reference would keep every name in memory, and storing it from there costs a third of a pass.
    fn compare(&mut self, name: Name) {
        let siblings = self.names.get(self.level.base..).unwrap_or_default();
        if siblings.len() < PAIRWISE_MAX
            && siblings.iter().any(|other| other.head == name.head && self.bytes(other) == self.bytes(&name))
        {
            self.traits.duplicate_keys = true;
        }
    }

    fn bytes(&self, name: &Name) -> &[u8] {
        self.text.get(name.span.start as usize..name.span.end as usize).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn sort_names(&mut self, base: usize) {
        let mut names = self.names.split_off(base);
        names.sort_unstable_by(|a, b| self.bytes(a).cmp(self.bytes(b)));
        if names.windows(2).any(|pair| self.bytes(&pair[0]) == self.bytes(&pair[1])) {
            self.traits.duplicate_keys = true;
        }
    }
}

impl<const MEMBERS: bool> Sink for Pass<'_, MEMBERS> {
    #[inline(always)]
    fn open(&mut self, _object: bool, at: usize) {
        if MEMBERS && self.enclosing.len() == 1 {
            self.opened = at;
        }
        self.enclosing.push(self.level);
        self.level = Level { base: self.names.len(), seen: 0 };
    }

    #[inline(always)]
    fn close(&mut self, object: bool, end: usize) {
        let base = self.level.base;
        if self.names.len() > base + PAIRWISE_MAX {
            self.sort_names(base);
        }
        self.names.truncate(base);
        self.level = self.enclosing.pop().unwrap_or_default();
        let kind = if object { Kind::Object } else { Kind::Array };
        self.value(kind, self.opened, end, false);
    }

    #[inline(always)]
    fn key(&mut self, key: StrSpan) {
        if key.lone_surrogate {
            self.traits.lone_surrogates = true;
        }
        if MEMBERS && self.enclosing.len() == 1 {
            self.members.push(Member {
                key: span(key.start, key.end),
                value: span(0, 0),
                kind: Kind::Null,
                key_escaped: key.escaped,
                escaped: false,
                document: None,
            });
            if let Some(inner) = &mut self.inner {
                inner.next = self.text.get(key.start..key.end) == Some(inner.name.as_bytes());
            }
        }
        self.name(key);
    }

    #[inline(always)]
    fn string(&mut self, string: StrSpan) {
        if string.lone_surrogate {
            self.traits.lone_surrogates = true;
        }
        self.value(Kind::String, string.start - 1, string.end + 1, string.escaped);
    }

    #[inline(always)]
    fn number(&mut self, start: usize, end: usize, exponent: bool) {
        let simple = end - start <= 15 && !exponent;
        if !simple && std::str::from_utf8(&self.text[start..end]).is_ok_and(is_big) {
            self.traits.big_numbers = true;
        }
        self.value(Kind::Number, start, end, false);
    }

    #[inline(always)]
    fn take_string(&mut self, start: usize) -> Option<usize> {
        if MEMBERS && self.enclosing.len() == 1 && self.inner.as_ref().is_some_and(|inner| inner.next) {
            return self.document(start);
        }
        None
    }

    #[inline(always)]
    fn literal(&mut self, value: Option<bool>, start: usize, end: usize) {
        self.value(value.map_or(Kind::Null, Kind::Bool), start, end, false);
    }
}

/// Offsets fit: texts of 4 GiB and more were refused.
fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

/// Up to eight bytes from `start`, zero-filled.
#[inline(always)]
fn head(text: &[u8], start: usize, end: usize) -> u64 {
    let len = end - start;
    match word(text, start) {
        Some(word) if len >= 8 => word,
        Some(word) => word & ((1 << (8 * len)) - 1),
        None => text[start..end].iter().take(8).rev().fold(0, |head, &b| head << 8 | u64::from(b)),
    }
}
