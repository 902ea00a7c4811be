//! The terminal below the console: lines and the spinner go the same way, so that neither tears the other apart.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indicatif::TermLike;

/// Narrower windows get lines of this width, broken by the terminal.
pub(super) const MIN_WIDTH: usize = 20;

/// The one way to the terminal, for the lines and for the spinner, which swallows its errors: the first one is kept
/// and returned by the next write.
#[derive(Clone)]
pub(super) struct SharedScreen(Arc<Mutex<ScreenOutput>>);

struct ScreenOutput {
    out: Box<dyn Write + Send>,
    error: Option<io::Error>,
}

impl SharedScreen {
    pub(super) fn new(out: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(ScreenOutput { out, error: None })))
    }

    fn inner(&self) -> MutexGuard<'_, ScreenOutput> {
        // A panic elsewhere must not swallow the last words of a run; at worst, a line is torn.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn line(&self, line: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.take_error()?;
        inner.out.write_all(format!("{line}\n").as_bytes())
    }

    pub(super) fn flush(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.take_error()?;
        inner.out.flush()
    }

    fn draw(&self, text: &str) {
        let mut inner = self.inner();
        if let Err(error) = inner.out.write_all(text.as_bytes()) {
            inner.error.get_or_insert(error);
        }
    }
}

impl ScreenOutput {
    fn take_error(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }
}

/// The terminal as the spinner draws on it.
pub(super) struct Screen {
    pub(super) out: SharedScreen,
    pub(super) width: usize,
}

impl fmt::Debug for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Screen").field("width", &self.width).finish_non_exhaustive()
    }
}

impl Screen {
    #[expect(clippy::unnecessary_wraps, reason = "the shape of the methods of `TermLike`")]
    fn cursor(&self, count: usize, direction: char) -> io::Result<()> {
        // Terminals take 0 for 1 in these sequences.
        if count > 0 {
            self.out.draw(&format!("\u{1b}[{count}{direction}"));
        }
        Ok(())
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        u16::try_from(self.width.max(MIN_WIDTH)).unwrap_or(u16::MAX)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.cursor(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.cursor(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.cursor(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.cursor(n, 'D')
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.out.draw(&format!("{line}\n"));
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.out.draw(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.out.draw("\r\u{1b}[2K");
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        let mut inner = self.out.inner();
        if let Err(error) = inner.out.flush() {
            inner.error.get_or_insert(error);
        }
        Ok(())
    }
}
