//! What became of what a loop of a board delivered: whether people kept it, and what that has cost.

use crate::base::text::one_line;
use crate::report::delivery_fates::{DeliveryFate, FixCost, KnownDelivery};

/// The longest text of a delivery on a board, in characters.
const LONGEST: usize = 200;

/// The deliveries of a loop that are known.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopDeliveries {
    known: Vec<KnownDelivery>,
    /// Whether the server was asked for all of them.
    pub is_whole: bool,
}

impl LoopDeliveries {
    /// Begins with none.
    pub(super) fn none(is_whole: bool) -> Self {
        Self { known: Vec::new(), is_whole }
    }

    /// Adds one. Its texts are claims of whoever wrote them, and are cut.
    pub(super) fn add(&mut self, delivery: KnownDelivery) {
        let cut = |text: String| one_line(&text, LONGEST);
        self.known.push(KnownDelivery {
            url: cut(delivery.url),
            run: cut(delivery.run),
            loop_name: delivery.loop_name.map(cut),
            model: delivery.model.map(cut),
            ..delivery
        });
    }

    /// Returns those with each fate that some have.
    pub fn by_fate(&self) -> impl Iterator<Item = (DeliveryFate, usize)> {
        let count = |fate| self.known.iter().filter(|delivery| delivery.fate == fate).count();
        DeliveryFate::ALL.into_iter().map(move |fate| (fate, count(fate))).filter(|(_, count)| *count > 0)
    }

    /// Returns what they came to by model.
    pub fn by_model(&self) -> Vec<FixCost> {
        FixCost::by_loop_and_model(&self.known)
    }

    /// Returns what all of them came to.
    pub fn all(&self) -> FixCost {
        let mut all = FixCost::default();
        self.known.iter().for_each(|delivery| all.add(delivery));
        all
    }

    /// Returns the deliveries, in the order in which they were read: the latest first.
    pub fn known(&self) -> &[KnownDelivery] {
        &self.known
    }
}
