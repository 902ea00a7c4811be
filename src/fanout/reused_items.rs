//! Which items of a plan an earlier run stands for, so that no job has to be started for them. Each is asked for with the key
//! that its leg would make: of the same loop, values and scope.

use std::cell::Cell;

use super::candidates::{Candidate, LoopHere, PlanOptions};
use super::item::ItemId;
use super::item_plan::{Item, ReusedItem};
use crate::base::object::ObjectId;
use crate::base::relative::Line;
use crate::base::text::{one_line, plural};
use crate::context::Session;
use crate::context::error::{Error, Kind};
use crate::context::interrupts::Interrupts;
use crate::context::options::{BeginOptions, ReuseUse, RunOptions};
use crate::context::talk::Talk;
use crate::session::prepare::reuse_decision::ReuseDecision;

/// About how many items it is said why they are not reused.
// Lines about thousands of items would bury what else a plan says.
const MOST_SAID: usize = 10;

/// Takes the items out of a plan that an earlier run stands for, and marks those that are to prove one.
///
/// # Errors
/// Somebody ended it.
pub(super) fn take_out(
    candidates: Vec<Candidate>,
    loops: &[LoopHere],
    commit: &ObjectId,
    options: &PlanOptions,
    session: &Session<'_>,
) -> Result<(Vec<Candidate>, Vec<ReusedItem>), Error> {
    let says_reuse = |candidate: &Candidate| loops[candidate.place].prepared.machine.reuse.is_some();
    // Of a checkout with changes no commit is green, so that nothing stands for its items.
    if options.reuse == ReuseUse::Never || options.dirty || !candidates.iter().any(says_reuse) {
        return Ok((candidates, Vec::new()));
    }
    let interrupts = Interrupts::listen(&session.stop_by)?;
    let said = Cell::new(0);
    let (mut kept, mut reused) = (Vec::new(), Vec::new());
    for mut candidate in candidates {
        let one = &loops[candidate.place];
        if one.prepared.machine.reuse.is_none() {
            kept.push(candidate);
            continue;
        }
        let talk = ItemTalk { id: &candidate.item.id, talk: session.talk, said: &said };
        let asked = AskedOfStore { item: &candidate.item, one, commit, options };
        match asked.decide(&interrupts, &session.clone().talking_to(&talk)) {
            // A hit on inputs that differ from the commit is green for no commit, and a plan is about one.
            Ok(ReuseDecision::Hit(proof)) if !proof.has_uncommitted => {
                reused.push(ReusedItem { item: candidate.item, proof: *proof });
                continue;
            }
            Ok(ReuseDecision::Make(pending)) => {
                candidate.item.proves = pending.verifies.map(|record| Line::of(&record.run.run));
            }
            Ok(ReuseDecision::Hit(_) | ReuseDecision::None) => {}
            Err(error) if matches!(error.kind(), Kind::Interrupted(_)) => return Err(error),
            // Its leg says it, too, with everything that is to be done about it.
            Err(error) => talk.warning(&format!("not reused: {}", error.message())),
        }
        kept.push(candidate);
    }
    let unsaid = said.get().saturating_sub(MOST_SAID);
    if unsaid > 0 {
        session.talk.note(&format!("{} more about items that are not reused", plural(unsaid as u64, "line")));
    }
    Ok((kept, reused))
}

/// An item that an earlier run may stand for.
struct AskedOfStore<'a> {
    item: &'a Item,
    one: &'a LoopHere,
    commit: &'a ObjectId,
    options: &'a PlanOptions,
}

impl AskedOfStore<'_> {
    /// Decides as its leg would.
    fn decide(&self, interrupts: &Interrupts, session: &Session<'_>) -> Result<ReuseDecision, Error> {
        let Self { item, one, commit, options } = self;
        let prepared = session.prepare(one.prepared.located.clone())?;
        let begin = BeginOptions {
            context: options.context.clone(),
            params: item.params.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
            scope: Some(item.scope.clone()),
            reuse: options.reuse,
            reuse_store: options.reuse_store.clone(),
            run: RunOptions {
                audience: options.audience.clone(),
                beside: options.written.clone(),
                ..RunOptions::default()
            },
            ..BeginOptions::default()
        };
        // By the commit, so that a plan that is made again decides the same.
        let id = format!("{commit} {}", item.id);
        prepared.bind(begin, session)?.foresee_reuse(&id, interrupts)
    }
}

/// Says of which item something is, for the first ones.
struct ItemTalk<'t> {
    id: &'t ItemId,
    talk: &'t dyn Talk,
    said: &'t Cell<usize>,
}

impl ItemTalk<'_> {
    fn say(&self, text: &str, say: impl FnOnce(&str)) {
        self.said.set(self.said.get() + 1);
        if self.said.get() <= MOST_SAID {
            say(&format!("{}: {}", self.id, one_line(text, 400)));
        }
    }
}

impl Talk for ItemTalk<'_> {
    fn note(&self, text: &str) {
        self.say(text, |text| self.talk.note(text));
    }

    fn warning(&self, text: &str) {
        self.say(text, |text| self.talk.warning(text));
    }
}
