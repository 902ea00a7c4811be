//! What a run looks like as a file: a table of formats, each a function of the digest.

pub mod dotenv;
pub mod junit;
pub mod markdown;
mod merge_items;
pub mod outputs;
pub mod prometheus;
pub mod result_json;
pub mod summary;
pub mod text_report;

use super::detail::Detail;
use super::digest::Digest;
use super::html;

/// A format in which a run can be written down.
#[derive(Clone, Copy, Debug)]
pub struct ReportFormat {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// The name of the file it is written to.
    pub file_name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    render: Render,
}

/// What a format is made of.
#[derive(Clone, Copy, Debug)]
enum Render {
    /// What all formats know of a run.
    Digest(fn(&Digest) -> String),
    /// Every step as well, for which somebody has to look closer.
    Detail(fn(&Digest, Detail) -> String),
}

impl ReportFormat {
    /// Tells whether it shows every step, for which somebody has to look closer at the run.
    pub fn looks_closer(&self) -> bool {
        matches!(self.render, Render::Detail(_))
    }

    /// Writes a run down. Without details, every format knows the same.
    pub fn write(&self, digest: &Digest, detail: Option<Detail>) -> String {
        match self.render {
            Render::Digest(render) => render(digest),
            Render::Detail(render) => render(digest, detail.unwrap_or_else(|| Detail::of(digest))),
        }
    }
}

/// Every format there is.
pub const FORMATS: &[ReportFormat] = &[
    ReportFormat {
        name: "summary",
        file_name: "summary.md",
        about: "Markdown for a step summary or a comment",
        render: Render::Digest(summary::render),
    },
    ReportFormat {
        name: "junit",
        file_name: "junit.xml",
        about: "JUnit XML: a case per state or task and one for the outcome",
        render: Render::Digest(junit::render),
    },
    ReportFormat {
        name: "result",
        file_name: "result.json",
        about: "everything as JSON",
        render: Render::Digest(result_json::render),
    },
    ReportFormat {
        name: "outputs",
        file_name: "outputs.env",
        about: "one `key=value` per line",
        render: Render::Digest(outputs::render),
    },
    ReportFormat {
        name: "dotenv",
        file_name: "gitlab.env",
        about: "variables for later jobs of GitLab",
        render: Render::Digest(dotenv::render),
    },
    ReportFormat {
        name: "prometheus",
        file_name: "metrics.prom",
        about: "metrics as a text file for Prometheus",
        render: Render::Digest(prometheus::render),
    },
    ReportFormat {
        name: "html",
        file_name: "report.html",
        about: "one page for a browser, with every step and what it printed",
        render: Render::Detail(html::render),
    },
    ReportFormat {
        name: "text",
        file_name: "summary.txt",
        about: "plain text for a terminal",
        render: Render::Digest(text_report::render),
    },
];

/// Returns the format with this name.
pub fn by_name(name: &str) -> Option<&'static ReportFormat> {
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
                let text = format.write(&digest, None);
                assert!(text.ends_with('\n'), "{}", format.name);
            }
            assert!(by_name(format.name).is_some());
        }
    }
}
