//! Writes data to stdout and messages to stderr. Decides once about colour, and treats a closed pipe as success.
//! Output may quote files, so this module redacts secrets and escapes terminal control sequences.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

use super::flags::Color;
use crate::base::redact::Redactor;
use crate::base::text::{screen, screen_drawn, screen_json};
use crate::ci::Provider;
use crate::ci::harmless::{HarmlessLines, Syntax, harmless};
use crate::context::audience::Audience;
use crate::context::environment::Environment;
use crate::context::error::Error;
use crate::context::talk::{Findings, Talk, Watched};
use crate::definition::render;
use crate::engine::event::Shown;
use crate::inspect::shown_log::Part;
use crate::report::Sink;
use crate::report::ci_log::CiLog;
use crate::report::console::{Console, ConsoleOptions, Verbosity};

/// Standard output and standard error, and what they can show.
#[derive(Debug)]
pub(super) struct Output {
    /// Whether standard output may use colour.
    pub(super) color: bool,
    /// Whether standard error may use colour.
    color_errors: bool,
    /// Whether standard output is a terminal.
    pub(super) is_terminal: bool,
    /// The columns of the window, where there is one.
    pub(super) width: Option<usize>,
    /// Hides the secrets of the environment.
    pub(super) redactor: Redactor,
    /// Whose job this is: it may obey what is printed.
    provider: Provider,
}

impl Output {
    /// Inspects the terminal and the variables about colour.
    pub(super) fn new(choice: Color, env: &Environment) -> Self {
        // Such a terminal has no colours, and takes no line back.
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
            // One of the two may lead into a file.
            color_errors: allowed(io::stderr().is_terminal()),
            is_terminal: is_terminal && !dumb,
            width: columns.filter(|_| is_terminal),
            redactor: env.redactor(),
            // Also with `--no-ci`: how a run is shown does not change who reads the log.
            provider: Provider::detect(&env.lookup()),
        }
    }

    /// Writes data to standard output.
    pub(super) fn data(&self, text: &str) {
        let _closed = self.copy(text);
    }

    /// Writes data to standard output, and fails if the reader is gone.
    pub(super) fn copy(&self, text: &str) -> io::Result<()> {
        let text = self.redactor.text(text);
        // In pages and pictures a sign in front of a command would change what they show.
        let syntax = if text.starts_with('<') { Syntax::Markup } else { Syntax::Text };
        write(&self.harmless(&screen(&text), syntax))
    }

    /// Writes data to standard output if not a letter of it has to be hidden or broken, and tells whether that was so: whoever
    /// puts it in the place of a file would lose the rest.
    pub(super) fn exactly(&self, text: &str) -> io::Result<bool> {
        let shown = self.redactor.text(text);
        let is_exact = self.harmless(&screen(&shown), Syntax::Text) == text;
        if is_exact {
            write(text)?;
        }
        Ok(is_exact)
    }

    /// Writes commands in the language of the CI system with this name, in which what they quote is harmless already.
    /// Another system obeys nothing of it.
    pub(super) fn commands(&self, text: &str, language: &str) {
        let language = Provider::by_name(language, &|_| None);
        let text = self.redactor.text(text);
        let _closed = self.stream(language.as_ref()).write_all(screen(&text).as_bytes());
    }

    /// Writes text with colour codes of our own to standard output.
    pub(super) fn drawn(&self, text: &str) {
        let text = self.redactor.text(text);
        let _closed = write(&self.harmless(&screen_drawn(&text), Syntax::Text));
    }

    /// Writes a line of JSON to standard output.
    pub(super) fn json(&self, value: Value) {
        self.json_text(&self.clean(value).to_string());
    }

    /// Writes indented JSON to standard output.
    pub(super) fn pretty_json(&self, value: Value) {
        self.json_text(&format!("{:#}", self.clean(value)));
    }

    /// Writes serialized JSON to standard output.
    pub(super) fn json_text(&self, text: &str) {
        let text = self.redactor.text(text);
        let _closed = write(&format!("{}\n", self.harmless(&screen_json(&text), Syntax::Json)));
    }

    fn clean(&self, mut value: Value) -> Value {
        self.redactor.json(&mut value);
        value
    }

    /// Writes a message to standard error, without secrets, for messages quote files and values.
    pub(super) fn talk(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        let text = self.redactor.text(text);
        let _closed = stderr.write_all(self.harmless(&screen_drawn(&text), Syntax::Text).as_bytes());
    }

    /// Breaks what the CI system would obey: it reads both streams.
    fn harmless<'t>(&self, text: &'t str, syntax: Syntax) -> Cow<'t, str> {
        harmless(text, syntax, self.provider.dialect().as_ref())
    }

    /// Writes what the parser of the command line says: help to standard output, a mistake to standard error.
    pub(super) fn parsed(&self, message: &clap::Error) {
        let rendered = message.render();
        let is_mistake = message.use_stderr();
        let shown = if if is_mistake { self.color_errors } else { self.color } {
            rendered.ansi().to_string()
        } else {
            rendered.to_string()
        };
        if is_mistake { self.talk(&shown) } else { self.drawn(&shown) }
    }

    /// Writes an error.
    pub(super) fn error(&self, message: &str) {
        self.labelled("error", console::Style::new().red().bold(), message);
    }

    /// Writes an error and its help.
    pub(super) fn failure(&self, error: &Error) {
        self.error(error.message());
        if let Some(hint) = error.hint() {
            self.help(hint);
        }
    }

    /// Writes a warning.
    pub(super) fn warning(&self, message: &str) {
        self.labelled("warning", console::Style::new().yellow().bold(), message);
    }

    /// Writes a line of help.
    pub(super) fn help(&self, message: &str) {
        self.labelled("help", console::Style::new().cyan().bold(), message);
    }

    fn labelled(&self, label: &str, style: console::Style, message: &str) {
        let label = style.force_styling(self.color_errors).apply_to(label);
        self.talk(&format!("{label}: {}\n", screen(message)));
    }
}

impl Talk for Output {
    fn note(&self, text: &str) {
        self.talk(&format!("{text}\n"));
    }

    fn progress(&self, line: &str) {
        // Only a terminal can take a line back.
        if io::stderr().is_terminal() && self.is_terminal {
            // Two for the indent, and room left over: a line that wraps cannot be taken back.
            let shown: String =
                screen(line).chars().take(self.width.unwrap_or(80).saturating_sub(4)).collect();
            let indent = if line.is_empty() { "" } else { "  " };
            self.talk(&format!("\r\u{1b}[2K{indent}{shown}"));
        }
    }

    fn warning(&self, text: &str) {
        Self::warning(self, text);
    }

    fn findings(&self, findings: &Findings<'_>) {
        let Findings { found, sources, tree } = findings;
        self.talk(&format!("{}\n\n", render::to_text(found, sources, *tree, self.color_errors)));
    }

    fn ci_line(&self, line: &str, language: &Provider) {
        let _closed = self.stream(Some(language)).write_all(format!("{line}\n").as_bytes());
    }

    fn closing(&self, text: &str, audience: &Audience) {
        Self::closing(self, text, audience);
    }

    fn watch(&self, run: &Watched<'_>) -> Option<Box<dyn Sink>> {
        Some(self.shown(run, Verbosity::Normal))
    }
}

impl Output {
    /// Returns the sink that shows a run on standard output.
    pub(super) fn shown(&self, run: &Watched<'_>, verbosity: Verbosity) -> Box<dyn Sink> {
        let (stdout, reader) = (self.stream(run.audience.provider()), run.reader.clone());
        let (colour, width) = (self.color, self.width);
        // The journal keeps how it looked, so that `replay` prints the same bytes.
        let look = |provider: Option<&str>| {
            let (provider, verbosity) = (provider.map(str::to_owned), verbosity.word().to_owned());
            Shown::Look { provider, colour, width, verbosity }
        };
        match run.audience {
            Audience::Ci(provider) => {
                let log = CiLog::new(stdout, provider.dialect(), colour).of_look(look(Some(provider.name())));
                Box::new(log.read_by(reader))
            }
            Audience::Person => {
                let options = ConsoleOptions { verbosity, colour, width, interactive: self.is_terminal };
                Box::new(Console::new(stdout, options).of_look(look(None)).read_by(reader))
            }
        }
    }

    /// Returns standard output for what is written in the language of one CI system, or of none: where it is read by
    /// another one, that one obeys nothing of it.
    fn stream(&self, language: Option<&Provider>) -> Box<dyn io::Write + Send> {
        let is_meant = language.is_some_and(|language| language.speaks_like(&self.provider));
        // A terminal obeys nothing, whichever system's language is written to it.
        if is_meant || self.is_terminal {
            return Box::new(io::stdout());
        }
        Box::new(HarmlessLines::new(Box::new(io::stdout()), self.provider.dialect()))
    }

    /// Returns the sink that shows a part of a run again, as it looked, or as this provider shows it.
    pub(super) fn replayed(&self, part: &Part, provider: Option<&Provider>) -> Box<dyn Sink> {
        let reader = part.reader.clone();
        let (colour, width, verbosity) =
            part.look.as_ref().map_or((self.color, self.width, Verbosity::Normal), |look| look.console);
        let provider = provider.or(part.look.as_ref().and_then(|look| look.provider.as_ref()));
        let stdout = self.stream(provider);
        if let Some(provider) = provider {
            let log = CiLog::new(stdout, provider.dialect(), colour);
            // The tokens are random: with new ones the log would not be the same again.
            return Box::new(log.with_tokens(part.tokens.iter().cloned()).read_by(reader));
        }
        // All of it comes at once, so there is nothing to wait for with a spinner.
        let options = ConsoleOptions { verbosity, colour, width, interactive: false };
        Box::new(Console::new(stdout, options).read_by(reader))
    }

    /// Shows the last line about a run, where the rest of it was shown.
    pub(super) fn closing(&self, text: &str, audience: &Audience) {
        match audience {
            Audience::Ci(provider) => {
                let dialect = provider.dialect();
                // `untrusted` has disarmed the text, so it is written as it is.
                let _closed = write(&format!("· {}\n", dialect.untrusted(&self.redactor.text(text))));
            }
            Audience::Person => self.drawn(&format!("{}\n", self.dim(&screen(text)))),
        }
    }

    fn dim(&self, text: &str) -> String {
        console::Style::new().dim().force_styling(self.color).apply_to(text).to_string()
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
