//! Counts what a run did for its metrics: verdicts by state and calls by model, also in the loops that it ran.

use indexmap::IndexMap;

use super::taken_edges::has_room;
use crate::base::text::one_line;
use crate::engine::event::{Event, Stamped};
use crate::engine::loop_stack::LoopStack;
use crate::evaluate::model::Usage;

/// A run counts so many different verdicts and models apart. More than that would be more series than whoever stores
/// metrics wants, and only a hostile journal has them; the rest is counted together under [`OTHERS`].
const MOST_VERDICTS: usize = 2_000;
const MOST_MODELS: usize = 50;

/// The longest name that is counted under, in characters. Two that are alike so far are counted together.
const LONGEST_NAME: usize = 200;

/// The name under which everything is counted that there is no room for.
pub const OTHERS: &str = "_other";

/// The name of a model that its host does not tell.
pub const UNNAMED: &str = "unknown";

/// Where a verdict fell, and which.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CountedVerdict {
    /// The loop.
    pub loop_name: String,
    /// Its state.
    pub state: String,
    /// The verdict.
    pub verdict: String,
}

/// A loop that runs, and the state that it is in.
#[derive(Clone, Debug)]
struct CountedLoop {
    name: String,
    state: String,
}

/// Verdicts and calls of models. What was copied from the run that this one was rewound from is that run's.
#[derive(Clone, Debug, Default)]
pub struct WorkCounts {
    levels: LoopStack<CountedLoop>,
    verdicts: IndexMap<CountedVerdict, u64>,
    models: IndexMap<String, Usage>,
}

impl WorkCounts {
    /// Takes the next event.
    pub fn event(&mut self, stamped: &Stamped) {
        let depth = stamped.depth;
        if let Event::LoopStart(start) = &stamped.event {
            let name = counted_name(start.r#loop.as_str());
            self.levels.begin(depth, CountedLoop { name, state: String::new() });
        } else if let (Event::StateEnter { state, .. }, Some(level)) =
            (&stamped.event, self.levels.at_mut(depth))
        {
            level.state = counted_name(state.as_str());
        } else if !stamped.inherited {
            self.counted(depth, &stamped.event);
        }
    }

    /// Counts an event. The calls of a loop that was run are counted one by one, and not once more with its end.
    fn counted(&mut self, depth: u32, event: &Event) {
        if let Event::Evaluate { verdict, .. } = event {
            self.fell(depth, verdict.as_str());
        } else if let Event::ActionComplete(complete) = event {
            complete.usage.iter().for_each(|usage| self.spent(usage));
        } else if let Event::Judge { usage, .. } = event {
            self.spent(usage);
        }
    }

    /// Returns how often each verdict fell, in the order of the first times.
    pub fn verdicts(&self) -> &IndexMap<CountedVerdict, u64> {
        &self.verdicts
    }

    /// Returns what each model was called for, in the order of the first calls.
    pub fn models(&self) -> &IndexMap<String, Usage> {
        &self.models
    }

    /// Returns what all models were called for.
    pub fn usage(&self) -> Usage {
        self.models.values().fold(Usage::default(), |mut all, usage| {
            all.add(usage);
            all
        })
    }

    fn fell(&mut self, depth: u32, verdict: &str) {
        let Some(CountedLoop { name: loop_name, state }) = self.levels.at(depth).cloned() else { return };
        let mut counted = CountedVerdict { loop_name, state, verdict: counted_name(verdict) };
        if !has_room(&self.verdicts, &counted, MOST_VERDICTS) {
            // One row for all the rest, whichever loop it is of: more names would be more series.
            let root = self.levels.at(0).map_or_else(String::new, |level| level.name.clone());
            counted =
                CountedVerdict { loop_name: root, state: OTHERS.to_owned(), verdict: OTHERS.to_owned() };
        }
        *self.verdicts.entry(counted).or_default() += 1;
    }

    fn spent(&mut self, usage: &Usage) {
        if usage.is_nothing() {
            return;
        }
        // A name for what has none, so that the sum over all models is what the run took.
        let mut model = usage.model.as_deref().map_or_else(|| UNNAMED.to_owned(), counted_name);
        if !has_room(&self.models, &model, MOST_MODELS) {
            OTHERS.clone_into(&mut model);
        }
        self.models.entry(model).or_default().add(usage);
    }
}

/// Returns a name as metrics have it: one line, because not every reader of a label knows where it ends.
pub(super) fn counted_name(name: &str) -> String {
    one_line(name, LONGEST_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_one_series() {
        let mut counts = WorkCounts::default();
        counts.levels.begin(0, CountedLoop { name: "main".to_owned(), state: "check".to_owned() });
        for verdict in ["odd", "odd\u{7}", "odd\u{202e}", "odder"] {
            counts.fell(0, verdict);
        }
        let found: Vec<_> =
            counts.verdicts().iter().map(|(key, count)| (key.verdict.as_str(), *count)).collect();
        assert_eq!(found, [("odd", 3), ("odder", 1)]);
    }

    #[test]
    fn a_journal_does_not_make_series_without_end() {
        let mut counts = WorkCounts::default();
        counts.levels.begin(0, CountedLoop { name: "main".to_owned(), state: "check".to_owned() });
        for number in 0..MOST_VERDICTS + 7 {
            counts.fell(0, &format!("v{number}"));
        }
        assert_eq!(counts.verdicts().len(), MOST_VERDICTS + 1);
        let (others, count) = counts.verdicts().last().unwrap();
        assert_eq!((others.verdict.as_str(), *count), (OTHERS, 7));
    }
}
