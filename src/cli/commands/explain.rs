//! `ll-loop explain`: explains a code of a finding, from docs/diagnostics.md, or of a link of a chain, from docs/why.md.

use std::fmt::Write as _;

use clap::Args;

use crate::base::diagnostic::nearest;
use crate::base::text::first_line;
use crate::cli::output::Output;
use crate::context::error::Error;

/// What is said of loop files.
// The page itself, so that the command and the page cannot say different things.
const FINDINGS: &str = include_str!("../../../docs/diagnostics.md");

/// What is said of runs.
const LINKS: &str = include_str!("../../../docs/why.md");

/// The arguments of `explain`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ExplainArgs {
    /// The code of a finding, such as `unknown-key`, or one that `why` says. Without one, all codes are listed
    pub(super) code: Option<String>,
}

pub(in crate::cli) fn explain(args: &ExplainArgs, output: &Output) -> Result<u8, Error> {
    let Some(code) = &args.code else {
        output.data(&list());
        return Ok(0);
    };
    match paragraph(code) {
        Some(paragraph) => {
            output.data(&format!("{code}\n\n{paragraph}\n"));
            Ok(0)
        }
        None => Err(unknown(code)),
    }
}

fn unknown(code: &str) -> Error {
    let help = match nearest(code, sections().map(|(code, _)| code)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`ll-loop explain` lists every code".to_owned(),
    };
    Error::refused(format!("nothing has the code `{code}`")).with_hint(help)
}

/// Returns every code with the first sentence about it.
fn list() -> String {
    let width = sections().map(|(code, _)| code.len()).max().unwrap_or(0);
    sections().fold(String::new(), |mut out, (code, text)| {
        let first = first_sentence(first_line(text));
        let _ = writeln!(out, "{code:width$}  {first}");
        out
    })
}

/// Returns what the page says about a code.
pub(super) fn paragraph(code: &str) -> Option<&'static str> {
    sections().find(|(heading, _)| *heading == code).map(|(_, text)| text)
}

/// Returns the first sentence behind the severity.
pub(super) fn first_sentence(text: &str) -> &str {
    let text = severity(text).map_or(text, |(_, rest)| rest);
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// Takes `Error. `, `Warning or note. ` and the like off the beginning of a text.
fn severity(text: &str) -> Option<(&str, &str)> {
    let (severity, rest) = text.split_once(". ")?;
    let is_word = |word: &str| matches!(word, "error" | "warning" | "note" | "or");
    severity.to_lowercase().split(' ').all(is_word).then_some((severity, rest))
}

/// Returns each code with its text.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    of_page(FINDINGS).chain(of_page(LINKS))
}

fn of_page(page: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    page.split("\n## `").skip(1).filter_map(|section| {
        let (code, text) = section.split_once("`\n")?;
        Some((code, text.trim()))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::report::why::code::Code;

    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                sources(&entry, found);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                found.push(entry);
            }
        }
    }

    /// The literals that findings are made with, tests left out.
    fn codes() -> BTreeSet<String> {
        let made =
            regex::Regex::new(r#"(?:Diagnostic::(?:error|warning|note)|\berror)\(\s*"([a-z-]+)","#).unwrap();
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
        let texts = files.iter().map(|file| fs_err::read_to_string(file).unwrap());
        texts
            .flat_map(|text| {
                let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned();
                made.captures_iter(&code).map(|found| found[1].to_owned()).collect::<Vec<_>>()
            })
            .collect()
    }

    #[test]
    fn every_code_is_explained_and_every_explanation_has_a_code() {
        let explained: Vec<String> = of_page(FINDINGS).map(|(code, _)| code.to_owned()).collect();
        let mut sorted = explained.clone();
        sorted.sort();
        assert_eq!(explained, sorted, "the codes stand in the order of the alphabet");
        let explained: BTreeSet<String> = explained.into_iter().collect();
        let codes = codes();
        let silent: Vec<_> = codes.difference(&explained).collect();
        let stale: Vec<_> = explained.difference(&codes).collect();
        assert!(silent.is_empty() && stale.is_empty(), "not explained: {silent:?}; no such code: {stale:?}");
    }

    #[test]
    fn every_link_of_a_chain_is_explained_and_nothing_else() {
        let explained: Vec<&str> = of_page(LINKS).map(|(code, _)| code).collect();
        let mut codes: Vec<String> = Code::all().map(Code::word).collect();
        codes.sort();
        assert_eq!(explained, codes);
        for (code, text) in of_page(LINKS) {
            assert!(text.contains("\nNext: ") && !first_sentence(text).is_empty(), "{code}: {text}");
        }
    }

    #[test]
    fn every_explanation_says_how_bad_it_is_and_what_to_do() {
        for (code, text) in of_page(FINDINGS) {
            assert!(severity(text).is_some(), "{code}: {text}");
            assert!(text.contains("\nFix: "), "{code}: {text}");
        }
    }
}
