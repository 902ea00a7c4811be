//! Writes findings as annotations on the lines of a pull request.

use super::found::{Reports, objects, word};
use crate::ci::github::commands::WorkflowCommands;
use crate::cli::output::Output;
use crate::report::annotations::{Annotation, AnnotationLevel, Location};
use crate::report::dialect::Dialect as _;

pub(super) fn write(reports: &Reports, output: &Output) {
    let found = reports.files.iter().flat_map(objects).map(|object| annotation(&object, reports));
    let unread = reports.unread.iter().map(|unread| Annotation {
        level: AnnotationLevel::Error,
        title: "unreadable".to_owned(),
        message: unread.error.message().to_owned(),
        // Only what was asked for is known, which may be the name of a loop.
        location: None,
    });
    let commands = WorkflowCommands::default();
    let lines = found.chain(unread).map(|annotation| commands.annotation(&annotation) + "\n");
    output.commands(&lines.collect::<String>(), "github");
}

fn annotation(object: &serde_json::Value, reports: &Reports) -> Annotation {
    let level = match word(object, "severity") {
        Some("error") => AnnotationLevel::Error,
        Some("warning") => AnnotationLevel::Warning,
        _ => AnnotationLevel::Notice,
    };
    let number = |key: &str| object.get(key)?.as_u64().and_then(|number| u32::try_from(number).ok());
    let location = word(object, "file").map(|file| Location {
        file: reports.in_repository(file),
        line: number("line"),
        column: number("column"),
    });
    let mut message = word(object, "message").unwrap_or("").to_owned();
    if let Some(help) = word(object, "help") {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    Annotation { level, title: word(object, "code").unwrap_or("").to_owned(), message, location }
}
