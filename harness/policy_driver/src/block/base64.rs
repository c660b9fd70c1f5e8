//! Base64 as a driver must print it (RFC 4648 §4, padded, spare bits zero), and in the spellings of lenient
//! readers.

/// Decoded bytes, and true if they were spelled as in RFC 4648 §4.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Base64 {
    pub bytes: Vec<u8>,
    pub is_standard: bool,
}

/// Decodes base64 of either alphabet, with white space anywhere and any number of `=` at the end. `None` for other
/// text, or if a single character is left over.
pub(super) fn decode(text: &str) -> Option<Base64> {
    let mut is_standard = text.len().is_multiple_of(4);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count, mut padding) = (0_u32, 0_u32, 0_usize);
    for byte in text.bytes() {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'-' | b'_' => {
                is_standard = false;
                if byte == b'-' { 62 } else { 63 }
            }
            b' ' | b'\t'..=b'\r' => {
                is_standard = false;
                continue;
            }
            b'=' => {
                padding += 1;
                continue;
            }
            _ => return None,
        };
        if padding > 0 {
            return None;
        }
        bits = bits << 6 | u32::from(digit);
        count += 1;
        if count == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    let missing = match count {
        0 => 0,
        2 => 2,
        3 => 1,
        _ => return None,
    };
    // The remaining digits in the upper part of 24 bits. Bits below the last whole byte are spare.
    let last = (bits << (6 * missing)).to_be_bytes();
    let whole = if count == 0 { 0 } else { 3 - missing as usize };
    bytes.extend_from_slice(&last[1..1 + whole]);
    let spare = last[1 + whole..].iter().any(|byte| *byte != 0);
    is_standard &= padding == missing as usize && !spare;
    Some(Base64 { bytes, is_standard })
}
