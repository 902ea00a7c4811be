//! Texts as parts of file and artifact names: what does not fit is replaced, and a digest keeps different texts apart.

use super::sum::Sum;
use super::text::head;

/// The longest slug, in bytes.
pub const MAX: usize = 60;

/// The characters of a digest that make a slug distinct.
const DIGEST: usize = 8;

/// Tells whether a character fits into the name of a file or an artifact everywhere.
pub fn is_safe(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

/// Makes a text fit for the name of a file. Where that changes it, or where asked for, it gets a digest of `whole`.
pub fn slug(readable: &str, whole: &str, is_ambiguous: bool) -> String {
    let clean: String = readable.chars().map(|c| if is_safe(c) { c } else { '-' }).collect();
    if clean == readable && clean.len() <= MAX && !is_ambiguous {
        return clean;
    }
    let digest = Sum::of(whole.as_bytes()).to_string();
    format!("{}-{}", head(&clean, MAX - DIGEST - 1), head(&digest, DIGEST))
}
