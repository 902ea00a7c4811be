//! Reads the lines of JSON that an agent prints while it works. What the lines mean is the business of each host; that
//! nothing but a whole stream with a good end is a success is decided here, once for all of them.

use serde_json::{Map, Value};

use super::host_output::{excerpt, object_in};
use super::interface::{Counting, Failure, Listener, Pulse};
use crate::base::text::{plain, tail};
use crate::evaluate::model::Usage;

/// Makes a failure of what is said of it.
pub(super) type Kind = fn(String) -> Failure;

/// What is kept of what an agent says.
const KEPT: usize = 8 * 1024 * 1024;

/// What the lines of a host mean.
pub(super) trait StreamFormat {
    /// Takes an event. One that ends the call sets `is_done`.
    fn event(&mut self, event: &Map<String, Value>, so_far: &mut StreamState, say: &mut dyn FnMut(&str));

    /// Returns the final message of a finished call, or why the call failed.
    fn last_words(&self, so_far: &StreamState) -> Result<String, Failure>;

    /// Returns the structured answer of a finished call, or why the call failed.
    fn answer(&self, so_far: &StreamState) -> Result<String, Failure> {
        self.last_words(so_far)
    }

    /// Returns what the host said went wrong before the call broke off.
    fn complaint(&self) -> Option<&str> {
        None
    }

    /// Takes a line of the error output.
    fn heard_of_trouble(&mut self, _line: &str) {}

    /// Tells whether the result says more than the exit code: it is an error, and holds a complete answer.
    fn outranks_exit(&self) -> bool {
        false
    }

    /// Returns what an exit code says of a failure that nothing else tells from others.
    fn failure_of(&self, _exit_code: i32) -> Option<Kind> {
        None
    }

    /// Tells how the call is getting on.
    fn pulse(&self) -> Pulse {
        Pulse::Thinking
    }

    /// Tells what the counts mean.
    fn counting(&self) -> Counting {
        Counting::Call
    }
}

/// What was read so far.
#[derive(Default)]
pub(super) struct StreamState {
    /// What the agent says.
    pub(super) said: Transcript,
    /// What it costs.
    pub(super) usage: Usage,
    /// Whether the call has come to its end.
    pub(super) is_done: bool,
    /// Whether there was any event.
    is_stream: bool,
    /// The first line that is not part of a stream.
    stray: Option<String>,
    /// The lines before any event, which may be a document together.
    strays: String,
}

/// How what is wanted of a stream is taken from it.
type Wanted<F> = fn(&F, &StreamState) -> Result<String, Failure>;

/// The reader of a stream.
pub(super) struct StreamReader<F> {
    format: F,
    so_far: StreamState,
    /// The last line of its error output that says something.
    complaint: Option<String>,
}

impl<F: StreamFormat> StreamReader<F> {
    /// Makes the reader of a host.
    pub(super) fn new(format: F) -> Self {
        Self { format, so_far: StreamState::default(), complaint: None }
    }

    /// Reads a whole stream, and the object that the last words of the agent are.
    pub(super) fn reply(mut self, stdout: &str, exit_code: i32) -> (Result<Value, Failure>, Usage) {
        for line in stdout.lines() {
            self.line(line, &mut |_| {});
        }
        self.so_far.usage.calls = 1;
        let answer = self.finish(exit_code, F::answer).and_then(|last| {
            object_in(&last).ok_or_else(|| {
                Failure::WrongForm(format!("its answer is not a JSON object: {}", excerpt(&last)))
            })
        });
        (answer, self.so_far.usage)
    }

    /// Returns what is wanted of a good stream: its last words or its answer.
    fn finish(&mut self, exit_code: i32, wanted: Wanted<F>) -> Result<String, Failure> {
        self.whole();
        self.ended(exit_code, wanted).map_err(|failure| by_code(failure, self.format.failure_of(exit_code)))
    }

    /// Reads an output that is one JSON document on several lines instead of a stream.
    fn whole(&mut self) {
        if self.so_far.is_stream {
            return;
        }
        if let Ok(Value::Object(event)) = serde_json::from_str(&std::mem::take(&mut self.so_far.strays)) {
            self.format.event(&event, &mut self.so_far, &mut |_| {});
            self.so_far.usage.calls = 1;
        }
    }

    fn ended(&self, exit_code: i32, wanted: Wanted<F>) -> Result<String, Failure> {
        if !self.so_far.is_done {
            return Err(self.broken_off(exit_code));
        }
        let last = wanted(&self.format, &self.so_far)?;
        if exit_code != 0 && !self.format.outranks_exit() {
            return Err(Failure::Failed(format!("it exited with {exit_code}, after a good result")));
        }
        if last.trim().is_empty() {
            return Err(Failure::Failed("its result is empty".to_owned()));
        }
        Ok(last)
    }

    /// Says how a call ended that did not come to its end.
    fn broken_off(&self, exit_code: i32) -> Failure {
        let mut why = format!("it ended without a result (exit {exit_code})");
        if let Some(complaint) = self.format.complaint() {
            return Failure::Failed(format!("{why}: {}", excerpt(complaint)));
        }
        if let Some(line) = &self.so_far.stray {
            why = format!("its output is not a stream of JSON lines (exit {exit_code}): {line}");
        } else if let Some(complaint) = &self.complaint {
            why = format!("{why}: {complaint}");
        }
        if exit_code == 0 { Failure::Misunderstood(why) } else { Failure::Failed(why) }
    }
}

impl<F: StreamFormat> Listener for StreamReader<F> {
    fn line(&mut self, line: &str, say: &mut dyn FnMut(&str)) {
        self.so_far.usage.calls = 1;
        if line.trim().is_empty() || self.so_far.is_done {
            return;
        }
        if let Ok(Value::Object(event)) = serde_json::from_str(line) {
            self.so_far.is_stream = true;
            self.format.event(&event, &mut self.so_far, say);
        } else {
            self.so_far.stray.get_or_insert_with(|| excerpt(line));
            self.so_far.keep_stray(line);
            say(&plain(line));
        }
    }

    fn complaint(&mut self, line: &str) {
        self.format.heard_of_trouble(line);
        // A trace of the stack goes on below what it is about.
        if line.starts_with(|first: char| !first.is_whitespace() && first != '}') {
            self.complaint = Some(excerpt(&plain(line)));
        }
    }

    fn pulse(&self) -> Pulse {
        self.format.pulse()
    }

    fn trouble(&self) -> Option<&str> {
        self.format.complaint()
    }

    fn counting(&self) -> Counting {
        self.format.counting()
    }

    fn is_done(&self) -> bool {
        self.so_far.is_done
    }

    fn usage(&self) -> &Usage {
        &self.so_far.usage
    }

    fn said(&self) -> &str {
        &self.so_far.said.text
    }

    fn end(&mut self, exit_code: i32) -> Result<String, Failure> {
        let last = self.finish(exit_code, F::last_words)?;
        let text = std::mem::take(&mut self.so_far.said).text;
        Ok(if text.trim().is_empty() { format!("{last}\n") } else { text })
    }

    fn answer(&mut self, exit_code: i32) -> Result<String, Failure> {
        let answer = self.finish(exit_code, F::answer)?;
        Ok(if answer.ends_with('\n') { answer } else { answer + "\n" })
    }
}

impl StreamState {
    /// Keeps a line that is not an event, until the first event comes.
    fn keep_stray(&mut self, line: &str) {
        if !self.is_stream && self.strays.len() + line.len() < KEPT {
            self.strays.extend([line, "\n"]);
        }
    }
}

/// Reads a count from untrusted data: anything but a number counts as 0, and a number that is too large as the maximum.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn count(counts: Option<&Value>, key: &str) -> u64 {
    let count = counts.and_then(|counts| counts.get(key));
    count.and_then(|count| count.as_u64().or_else(|| Some(count.as_f64()? as u64))).unwrap_or(0)
}

/// Returns what a status of a service says of a call that failed by it; nothing where another call may do better.
pub(super) fn status_failure(status: u16) -> Option<Kind> {
    match status {
        401..=404 => Some(Failure::Unavailable),
        429 | 500..=599 => Some(Failure::Transient),
        _ => None,
    }
}

/// Makes of a failure what the exit code says of it.
fn by_code(failure: Failure, says: Option<Kind>) -> Failure {
    match (failure, says) {
        (Failure::Failed(why) | Failure::Misunderstood(why), Some(says)) => says(why),
        (failure, _) => failure,
    }
}

/// What an agent says, put together from pieces: lines are shown when they are whole, and the end of it all is kept.
#[derive(Default)]
pub(super) struct Transcript {
    text: String,
    /// Where the lines begin that were not shown yet.
    unseen: usize,
    /// Where the last message begins.
    last: usize,
    is_open: bool,
}

impl Transcript {
    /// Adds a piece of a message.
    pub(super) fn add(&mut self, piece: &str, say: &mut dyn FnMut(&str)) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.last = self.text.len();
        }
        let mut new = self.text.len();
        self.text.push_str(piece);
        while let Some(length) = self.text[new..].find('\n') {
            let end = new + length;
            say(&plain(self.text[self.unseen..end].trim_end_matches('\r')));
            (self.unseen, new) = (end + 1, end + 1);
        }
        // At twice as much and not at every piece: what is kept is copied by the cut.
        if self.text.len() > 2 * KEPT {
            let kept = tail(&self.text, KEPT).to_owned();
            let cut = self.text.len() - kept.len();
            (self.text, self.unseen, self.last) =
                (kept, self.unseen.saturating_sub(cut), self.last.saturating_sub(cut));
        }
    }

    /// Ends a message, and its line with it.
    pub(super) fn end_message(&mut self, say: &mut dyn FnMut(&str)) {
        if self.unseen < self.text.len() {
            self.add("\n", say);
        }
        self.is_open = false;
    }

    /// Adds a whole message.
    pub(super) fn message(&mut self, text: &str, say: &mut dyn FnMut(&str)) {
        self.add(text, say);
        self.end_message(say);
    }

    /// Returns everything that was kept.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Takes everything that was kept.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(self).text
    }

    /// Returns the last message.
    pub(super) fn last(&self) -> &str {
        &self.text[self.last..]
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Host, Terms};
    use super::*;

    /// Plays lines to the reader of a host, with what was shown of them.
    fn heard(host: &dyn Host, lines: &[Value]) -> (Vec<String>, Box<dyn Listener>) {
        let (mut shown, mut listener) = (Vec::new(), host.listen(&Terms::default()));
        for line in lines {
            let line = line.as_str().map_or_else(|| line.to_string(), str::to_owned);
            listener.line(&line, &mut |line| shown.push(line.to_owned()));
        }
        (shown, listener)
    }

    /// Plays lines to the reader of a host: what was shown, what came out, and what it cost.
    pub(in crate::host) fn play(
        host: &dyn Host,
        lines: &[Value],
        exit_code: i32,
    ) -> (Vec<String>, Result<String, Failure>, Usage) {
        let (shown, mut listener) = heard(host, lines);
        let end = listener.end(exit_code);
        (shown, end, listener.usage().clone())
    }

    /// Plays lines to the reader of a host that was asked for an answer in a certain form.
    pub(in crate::host) fn play_answer(
        host: &dyn Host,
        lines: &[Value],
        exit_code: i32,
    ) -> Result<String, Failure> {
        heard(host, lines).1.answer(exit_code)
    }

    /// Asserts that a stream is a failure like any other, for this reason.
    #[track_caller]
    pub(in crate::host) fn assert_failed(host: &dyn Host, lines: &[Value], exit_code: i32, why: &str) {
        match play(host, lines, exit_code).1.unwrap_err() {
            Failure::Failed(said) | Failure::Misunderstood(said) => assert!(said.contains(why), "{said}"),
            other @ (Failure::Transient(_)
            | Failure::Quota(..)
            | Failure::Missing(_)
            | Failure::Unavailable(_)
            | Failure::OverBudget(_)
            | Failure::OutOfTurns(_)
            | Failure::WrongForm(_)) => {
                panic!("{other:?}")
            }
        }
    }

    fn collected(pieces: &[&str]) -> (Vec<String>, Transcript) {
        let (mut shown, mut said) = (Vec::new(), Transcript::default());
        for piece in pieces {
            let mut say = |line: &str| shown.push(line.to_owned());
            if piece.is_empty() { said.end_message(&mut say) } else { said.add(piece, &mut say) }
        }
        (shown, said)
    }

    #[test]
    fn lines_are_shown_when_they_are_whole() {
        let (shown, said) = collected(&["on", "e\r\ntw", "o", "", "three\n", "", "\u{1b}[1mfour"]);
        assert_eq!(shown, ["one", "two", "three"]);
        assert_eq!((said.last(), &said.text[..]), ("\u{1b}[1mfour", "one\r\ntwo\nthree\n\u{1b}[1mfour"));
        let (shown, said) = collected(&["\u{1b}[1mfour", "", ""]);
        assert_eq!((&shown[..], said.last()), (&["four".to_owned()][..], "\u{1b}[1mfour\n"));
    }

    #[test]
    fn a_reader_that_has_ended_can_be_asked_again() {
        for host in [&super::super::codex::Codex as &dyn Host, &super::super::gemini::Gemini] {
            let said = serde_json::json!({"type": "item.completed", "item": {"type": "agent_message", "text": "one"}});
            let piece =
                serde_json::json!({"type": "message", "role": "assistant", "content": "one", "delta": true});
            let (_, mut listener) = heard(host, &[said.clone(), piece.clone()]);
            assert!(listener.end(1).is_err());
            for line in [said, piece] {
                listener.line(&line.to_string(), &mut |_| {});
            }
            listener.line(r#"{"type": "turn.completed"}"#, &mut |_| {});
            listener.line(r#"{"type": "result", "status": "success"}"#, &mut |_| {});
            assert!(listener.end(0).is_ok());
            assert!(listener.end(0).is_err() && listener.answer(0).is_err(), "its words were taken");
        }
    }

    #[test]
    fn the_end_of_much_is_kept() {
        let much = "é".repeat(KEPT / 2);
        let (_, said) = collected(&["first", "", &much, &much, "the end", "", "last"]);
        assert!(said.text.len() <= 2 * KEPT && said.text.contains("the end\n"));
        assert_eq!(said.last(), "last");
    }

    #[test]
    fn some_codes_say_that_a_host_is_not_set_up() {
        let failed = || Failure::Failed("x".into());
        assert_eq!(by_code(failed(), Some(Failure::Unavailable)), Failure::Unavailable("x".into()));
        assert_eq!(by_code(failed(), None), failed());
        let busy = Failure::Transient("x".into());
        assert_eq!(by_code(busy.clone(), Some(Failure::Unavailable)), busy);
    }
}
