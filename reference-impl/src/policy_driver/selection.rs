//! The answer of a selector (`ipc` §2; contract §2 "Selector").

use super::Sid;
use crate::json::write_str;

/// `kind` of a [`Selection`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionKind {
    /// An entry of the menu.
    Pick(Sid),
    /// The supervisor is to be asked.
    AskSup,
    /// Nothing is done.
    Noop,
    /// No choice was possible.
    Invalid,
}

/// One answer of a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection<'t> {
    /// Kind of the choice.
    pub kind: SelectionKind,
    /// Text of the driver's patch, a JSON object.
    pub input_patch_json: Option<&'t str>,
    /// Output of the driver, or the reason why it was not asked.
    pub raw: &'t str,
    /// Text of the merged inputs, if they are included.
    pub inputs: Option<&'t str>,
}

impl Selection<'_> {
    /// The Selection as one line of JSON with its LF.
    pub fn line(&self) -> Vec<u8> {
        let texts = [self.input_patch_json, Some(self.raw), self.inputs];
        let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
        let mut line = Vec::with_capacity(bytes + bytes / 8 + 96);
        line.extend_from_slice(b"{\"kind\":\"");
        line.extend_from_slice(match self.kind {
            SelectionKind::Pick(_) => b"PICK",
            SelectionKind::AskSup => b"ASK_SUP",
            SelectionKind::Noop => b"NOOP",
            SelectionKind::Invalid => b"INVALID",
        });
        line.push(b'"');
        if let SelectionKind::Pick(sid) = self.kind {
            line.extend_from_slice(format!(",\"sid\":\"{sid}\"").as_bytes());
        }
        if let Some(patch) = self.input_patch_json {
            line.extend_from_slice(b",\"input_patch_json\":");
            write_str(&mut line, patch);
        }
        line.extend_from_slice(b",\"raw\":");
        write_str(&mut line, self.raw);
        if let Some(inputs) = self.inputs {
            line.extend_from_slice(b",\"inputs\":");
            line.extend_from_slice(inputs.as_bytes());
        }
        line.extend_from_slice(b"}\n");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_only_what_there_is() {
        let kind = SelectionKind::Pick(Sid::parse(b"SID0007").unwrap());
        let full =
            Selection { kind, input_patch_json: Some("{\"a\":1}"), raw: "<\n>", inputs: Some("{\"a\":1}") };
        assert_eq!(
            String::from_utf8(full.line()).unwrap(),
            "{\"kind\":\"PICK\",\"sid\":\"SID0007\",\"input_patch_json\":\"{\\\"a\\\":1}\",\"raw\":\"<\\n>\",\"inputs\":{\"a\":1}}\n"
        );
        let bare = Selection { kind: SelectionKind::Noop, input_patch_json: None, raw: "", inputs: None };
        assert_eq!(bare.line(), b"{\"kind\":\"NOOP\",\"raw\":\"\"}\n");
    }
}
