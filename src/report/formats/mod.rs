//! What a run looks like as a file: a table of formats, each a function of the digest.

pub mod dotenv;
pub mod junit;
pub mod markdown;
pub mod outputs;
pub mod result;
pub mod summary;
pub mod text;

use super::digest::Digest;

/// A format in which a run can be written down.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// The name of the file it is written to.
    pub file_name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// Writes a run down.
    pub render: fn(&Digest) -> String,
}

/// Every format there is.
pub const FORMATS: &[Format] = &[
    Format {
        name: "summary",
        file_name: "summary.md",
        about: "Markdown for a step summary or a comment",
        render: summary::render,
    },
    Format {
        name: "junit",
        file_name: "junit.xml",
        about: "JUnit XML: a case per state or task and one for the outcome",
        render: junit::render,
    },
    Format { name: "result", file_name: "result.json", about: "everything as JSON", render: result::render },
    Format {
        name: "outputs",
        file_name: "outputs.env",
        about: "one `key=value` per line",
        render: outputs::render,
    },
    Format {
        name: "dotenv",
        file_name: "gitlab.env",
        about: "variables for later jobs of GitLab",
        render: dotenv::render,
    },
    Format {
        name: "text",
        file_name: "summary.txt",
        about: "plain text for a terminal",
        render: text::render,
    },
];

/// Returns the format with this name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Journal, failing};
    use super::*;

    #[test]
    fn every_format_writes_every_run_down() {
        for format in FORMATS {
            for digest in [Digest::default(), Journal::start().digest(), failing().digest()] {
                let text = (format.render)(&digest);
                assert!(text.ends_with('\n'), "{}", format.name);
            }
            assert!(by_name(format.name).is_some());
        }
    }
}
