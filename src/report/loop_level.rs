//! What a live sink knows about one loop, and the stack of them while loops run inside of steps.

use super::digest::Digest;
use super::recent::Recent;
use crate::engine::event::{Event, Stamped};

/// What a live sink knows about one loop.
#[derive(Debug)]
pub(super) struct LoopView {
    /// The events so far.
    pub(super) digest: Digest,
    /// The last lines of the step that may decide.
    pub(super) recent: Recent,
    /// The cap on passes.
    pub(super) max_iterations: u32,
    /// Whether the line that begins the current step was written.
    pub(super) headed: bool,
    /// Whether the verdict of the current step is still to be written.
    pub(super) verdict_due: bool,
    /// The loops on the way here, for titles: `kid › `, empty for the run itself.
    pub(super) prefix: String,
}

impl LoopView {
    fn new(depth: u32, prefix: String) -> Self {
        Self {
            digest: Digest::without_steps(depth),
            recent: Recent::default(),
            max_iterations: 0,
            headed: false,
            verdict_due: false,
            prefix,
        }
    }
}

/// The loops that are running, the innermost in front.
#[derive(Debug)]
pub(super) struct LoopViews {
    inner: LoopView,
    outer: Vec<LoopView>,
    /// The loop below the last one that an event was about, which goes on when the run is resumed inside of it.
    left: Option<LoopView>,
}

impl LoopViews {
    /// Makes the level of the run itself.
    pub(super) fn new() -> Self {
        Self { inner: LoopView::new(0, String::new()), outer: Vec::new(), left: None }
    }

    /// Goes up or down to the loop that an event belongs to, and gives the event to its digest. The levels above see
    /// it, too, because what decides a sub-loop may decide them.
    pub(super) fn event(&mut self, stamped: &Stamped) {
        if let (Event::LoopStart(start), true) = (&stamped.event, stamped.depth as usize > self.outer.len()) {
            let prefix = format!("{}{} › ", self.inner.prefix, start.r#loop);
            let level = LoopView::new(stamped.depth, prefix);
            self.outer.push(std::mem::replace(&mut self.inner, level));
        }
        if let (Event::LoopResume(_), true) = (&stamped.event, stamped.depth as usize > self.outer.len()) {
            let is_it = |level: &mut LoopView| level.digest.depth() == stamped.depth;
            let prefix = || {
                let name = stamped.path.last().map_or_else(String::new, ToString::to_string);
                format!("{}{name} › ", self.inner.prefix)
            };
            let level = self.left.take_if(is_it).unwrap_or_else(|| LoopView::new(stamped.depth, prefix()));
            self.outer.push(std::mem::replace(&mut self.inner, level));
        }
        while (stamped.depth as usize) < self.outer.len()
            && let Some(level) = self.outer.pop()
        {
            self.left = Some(std::mem::replace(&mut self.inner, level));
        }
        let cap = if let Event::LoopStart(start) = &stamped.event {
            Some(start.max_iterations)
        } else if let Event::LoopResume(resume) = &stamped.event {
            resume.changes.max_iterations
        } else {
            None
        };
        self.inner.max_iterations = cap.unwrap_or(self.inner.max_iterations);
        for level in self.outer.iter_mut().chain([&mut self.inner]) {
            level.digest.event(stamped);
            level.recent.settle(&level.digest);
        }
    }

    /// Tells whether the innermost loop is a sub-loop.
    pub(super) fn is_nested(&self) -> bool {
        !self.outer.is_empty()
    }
}

impl std::ops::Deref for LoopViews {
    type Target = LoopView;

    fn deref(&self) -> &LoopView {
        &self.inner
    }
}

impl std::ops::DerefMut for LoopViews {
    fn deref_mut(&mut self) -> &mut LoopView {
        &mut self.inner
    }
}
