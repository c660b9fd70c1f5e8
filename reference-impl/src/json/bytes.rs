//! Fast operations on bytes: reads past the end, and searches for the end of a plain run.

/// Byte at `at`. Past the end it is 0, which the grammar accepts nowhere.
#[inline(always)]
pub(super) fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// High bit of each byte of `word` that equals `b`. Only the lowest hit is exact, and callers use only that.
#[inline(always)]
pub(super) fn equal_mask(word: u64, b: u8) -> u64 {
    let x = word ^ (ONES * u64::from(b));
    x.wrapping_sub(ONES) & !x & HIGHS
}

/// High bit of each byte of `word` that ends a plain run: quote, backslash, control character.
#[inline(always)]
fn special_mask(word: u64) -> u64 {
    (word.wrapping_sub(ONES * 0x20) & !word & HIGHS) | equal_mask(word, b'"') | equal_mask(word, b'\\')
}

#[inline(always)]
pub(super) fn word(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..at + 8).map(|bytes| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

/// Offset of the first quote, backslash or control character from `at` on, or the length of the text.
#[inline(always)]
pub(super) fn plain_run(text: &[u8], mut at: usize) -> usize {
    for _ in 0..4 {
        let Some(word) = word(text, at) else { return plain_tail(text, at) };
        let mask = special_mask(word);
        if mask != 0 {
            return at + (mask.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    plain_blocks(text, at)
}

fn plain_tail(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(rest.len())
}

/// [`plain_run`] for long runs: whole blocks, in a form that the compiler vectorises.
#[inline(never)]
fn plain_blocks(text: &[u8], mut at: usize) -> usize {
    const BLOCK: usize = 64;
    while let Some(block) = text.get(at..at + BLOCK) {
        let special = block.iter().fold(false, |any, &b| any | (b < 0x20) | (b == b'"') | (b == b'\\'));
        if special {
            break;
        }
        at += BLOCK;
    }
    while let Some(word) = word(text, at) {
        let mask = special_mask(word);
        if mask != 0 {
            return at + (mask.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    plain_tail(text, at)
}
