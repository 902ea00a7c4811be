//! The helper process that answers queries, and the format in which it receives one. It limits itself before it executes
//! an expression of a loop file.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use crate::evaluate::jq;
use crate::evaluate::jq_question::Query;
use crate::process::memory_bounds::{self, ProcessBounds};

/// The memory that a query may take.
pub(super) const MEMORY: u64 = 1024 * 1024 * 1024;

/// The time of a processor that a query may take, if nobody ends it before. It is for one whose run was killed.
const LONGEST: Duration = Duration::from_hours(1);

/// The program that answers queries: one that calls [`serve`] and nothing else.
#[derive(Clone, Debug)]
pub struct Helper {
    /// The program and its arguments.
    pub argv: Vec<String>,
}

impl Default for Helper {
    /// The program of this crate, wherever PATH finds it.
    fn default() -> Self {
        Self::of(Path::new("ll-loop"), "answer-query")
    }
}

impl Helper {
    /// Makes a helper of a program that calls [`serve`] when its first argument is this.
    pub fn of(program: &Path, argument: &str) -> Self {
        Self { argv: vec![program.to_string_lossy().into_owned(), argument.to_owned()] }
    }
}

/// Writes a query as the helper reads it: who asks and the length of the expression in a line, the expression, the
/// document.
pub(super) fn written(query: &Query) -> String {
    // The length stands in front, because the expression and the document may hold anything.
    format!("{} {}\n{}{}", std::process::id(), query.filter.len(), query.filter, query.text)
}

/// Reads back who asks, the expression and the document.
fn understood(text: &str) -> Option<(u32, &str, &str)> {
    let (line, rest) = text.split_once('\n')?;
    let (asker, length) = line.split_once(' ')?;
    let (filter, document) = rest.split_at_checked(length.parse().ok()?)?;
    Some((asker.parse().ok()?, filter, document))
}

/// Answers one query, which is read from `input`, and writes the answer to `output`. This process is bounded by it.
pub fn serve(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let mut text = String::new();
    input.read_to_string(&mut text)?;
    let (parent, filter, document) = understood(&text).ok_or(io::ErrorKind::InvalidInput)?;
    // Before a single byte of the expression is parsed.
    memory_bounds::apply(ProcessBounds { parent, memory: MEMORY, processor: LONGEST })?;
    let answer = jq::run(filter, document);
    serde_json::to_writer(&mut output, &answer)?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_back_as_it_was_written() {
        for (filter, text) in [(".a | 1", "{}"), ("", ""), ("\n3\n", "\n"), (".ключ|.", "é")] {
            let query = Query { filter: filter.to_owned(), text: text.to_owned() };
            assert_eq!(understood(&written(&query)), Some((std::process::id(), filter, text)));
        }
        let broken = ["", "x", "1 9\nab", "1 1\né", "1\na", "x 1\na"];
        assert_eq!(broken.map(understood), [None; 6]);
    }
}
