//! stdout is data, stderr is talk. Colour is decided here, once; a closed pipe is no reason to fail. What is written may
//! quote files, so secrets are hidden here, and nothing that a terminal would obey goes through.

use std::io::{self, IsTerminal as _, Write as _};

use super::args::Color;
use super::env::Env;
use serde_json::Value;

use crate::base::redact::Redactor;
use crate::base::text::{screen, screen_drawn, screen_json};
use crate::ci::Provider;

/// The terminal, or what stands in its place.
#[derive(Debug)]
pub(super) struct Output {
    /// Whether standard output may use colour.
    pub(super) color: bool,
    /// Whether standard error may use colour.
    color_errors: bool,
    /// Whether a person looks at standard output.
    pub(super) is_terminal: bool,
    /// The columns of the window.
    pub(super) width: usize,
    /// Hides the secrets of the environment.
    pub(super) redactor: Redactor,
}

/// The width of a log that is no window.
const LOG_WIDTH: usize = 120;

impl Output {
    /// Looks at the terminal and at what the environment says about colour.
    pub(super) fn new(choice: Color, env: &Env) -> Self {
        let dumb = env.get("TERM") == Some("dumb");
        let allowed = |is_terminal: bool| match choice {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if env.get("NO_COLOR").is_some() => false,
            Color::Auto if env.is_on("FORCE_COLOR") || env.is_on("CLICOLOR_FORCE") => true,
            Color::Auto => (is_terminal && !dumb) || Provider::detect(&env.lookup()).shows_colours(),
        };
        let is_terminal = io::stdout().is_terminal();
        let columns = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        Self {
            color: allowed(is_terminal),
            color_errors: allowed(io::stderr().is_terminal()),
            is_terminal: is_terminal && !dumb,
            width: columns.filter(|_| is_terminal).unwrap_or(LOG_WIDTH),
            redactor: Redactor::new(env.secrets()),
        }
    }

    /// Writes data to standard output.
    pub(super) fn data(&self, text: &str) {
        let _closed = self.copy(text);
    }

    /// Writes data to standard output, and says when nobody reads it any more.
    pub(super) fn copy(&self, text: &str) -> io::Result<()> {
        write(&screen(&self.redactor.text(text)))
    }

    /// Writes what we have drawn to standard output, with its colours.
    pub(super) fn drawn(&self, text: &str) {
        let _closed = write(&screen_drawn(&self.redactor.text(text)));
    }

    /// Writes a line of JSON to standard output.
    pub(super) fn json(&self, value: Value) {
        let _closed = write(&format!("{}\n", screen_json(&self.clean(value).to_string())));
    }

    /// Writes JSON of many lines to standard output.
    pub(super) fn pretty_json(&self, value: Value) {
        self.json_text(&format!("{:#}", self.clean(value)));
    }

    /// Writes what is JSON already to standard output.
    pub(super) fn json_text(&self, text: &str) {
        let _closed = write(&format!("{}\n", screen_json(&self.redactor.text(text))));
    }

    /// Writes a command for the CI system, which may name a secret to hide.
    #[expect(clippy::unused_self, reason = "who writes has an output")]
    pub(super) fn command(&self, line: &str) {
        let _closed = write(&format!("{line}\n"));
    }

    fn clean(&self, mut value: Value) -> Value {
        self.redactor.json(&mut value);
        value
    }

    /// Tells whether findings on standard error may use colour.
    pub(super) fn color_findings(&self) -> bool {
        self.color_errors
    }

    /// Writes talk to standard error, without secrets: a message quotes what it is about.
    pub(super) fn talk(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let _closed = stderr.write_all(screen_drawn(&self.redactor.text(text)).as_bytes());
    }

    /// Says what went wrong.
    pub(super) fn error(&self, message: &str) {
        self.labelled("error", console::Style::new().red().bold(), message);
    }

    /// Says what is odd.
    pub(super) fn warning(&self, message: &str) {
        self.labelled("warning", console::Style::new().yellow().bold(), message);
    }

    /// Says what to do.
    pub(super) fn help(&self, message: &str) {
        self.labelled("help", console::Style::new().cyan().bold(), message);
    }

    fn labelled(&self, label: &str, style: console::Style, message: &str) {
        let label = style.force_styling(self.color_errors).apply_to(label);
        self.talk(&format!("{label}: {}\n", screen(message)));
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
