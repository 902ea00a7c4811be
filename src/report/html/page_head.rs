//! The head of every page: it forbids whatever is not of the page itself, scripts and styles by their digests.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest as _, Sha256};

use crate::report::markup::Markup;

/// The colours of every page, by day and by night, and what shows where the keyboard is.
pub(crate) const LOOK: &str = include_str!("look.css");

/// Writes the head of a page with a title, with these parts of its one style and of its one script. Every page looks alike.
pub(crate) fn write(title: &str, styles: &[&'static str], scripts: &[&'static str], out: &mut Markup) {
    let styles = [&[LOOK], styles].concat();
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'",
        hash(&styles),
        hash(scripts)
    );
    out.ours("\n<head>\n<meta charset=\"utf-8\">\n");
    // A policy within a page holds only for what comes after it.
    out.open("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]).ours("\n");
    out.open("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
    out.open("meta", &[("name", "color-scheme"), ("content", "light dark")]).ours("\n");
    out.leaf("title", &[], title);
    out.ours("<style>");
    for style in styles {
        out.ours(style);
    }
    out.ours("</style>\n</head>\n");
}

fn hash(parts: &[&str]) -> String {
    // All parts together: browsers take the digest of the whole text of an element.
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    BASE64_STANDARD.encode(hasher.finalize())
}
