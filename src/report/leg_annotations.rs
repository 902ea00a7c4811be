//! The annotations of a leg: its items are one step for the CI system, which keeps ten of each level, so they share what one
//! run has. Each item has one first; what there is room for beyond that comes at the end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::annotations::{Annotation, AnnotationLevel, MAX_PER_LEVEL};
use crate::base::text::{listed_in_part, one_line, plural};

/// Characters of a title.
const MAX_TITLE: usize = 200;

/// The annotations of a leg, which all of its items share, as one of the items has them.
#[derive(Clone, Debug, Default)]
pub struct LegAnnotations {
    item: String,
    shared: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The levels of those that were shown.
    shown: Vec<AnnotationLevel>,
    /// The first ones of items for which there was no room.
    left_out: Vec<(String, Annotation)>,
    /// All others, in order.
    more: Vec<Annotation>,
}

impl LegAnnotations {
    /// Returns those of an item.
    #[must_use]
    pub fn of(&self, item: &str) -> Self {
        Self { item: item.to_owned(), shared: Arc::clone(&self.shared) }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the annotations of the item, the one about its end first. Returns what is shown at once.
    pub fn item(&self, all: Vec<Annotation>) -> Option<Annotation> {
        let mut kept = self.kept();
        let mut all = all.into_iter();
        let first = all.next()?;
        let title = one_line(&format!("{} ({})", first.title, self.item), MAX_TITLE);
        let first = Annotation { title, ..first };
        kept.more.extend(all);
        // One place is for what says that there are more.
        if kept.count(first.level) + 1 < MAX_PER_LEVEL {
            kept.shown.push(first.level);
            return Some(first);
        }
        kept.left_out.push((self.item.clone(), first));
        None
    }

    /// Returns what is shown at the end of the leg.
    pub fn rest(&self) -> Vec<Annotation> {
        let mut kept = self.kept();
        let mut rest = Vec::new();
        for level in [AnnotationLevel::Error, AnnotationLevel::Warning, AnnotationLevel::Notice] {
            let left_out = kept.left_out.extract_if(.., |(_, annotation)| annotation.level == level);
            let left_out: Vec<(String, Annotation)> = left_out.collect();
            if let Some(one) = in_one(left_out, level) {
                kept.shown.push(level);
                rest.push(one);
            }
        }
        for annotation in std::mem::take(&mut kept.more) {
            if kept.count(annotation.level) < MAX_PER_LEVEL {
                kept.shown.push(annotation.level);
                rest.push(annotation);
            }
        }
        rest
    }
}

impl Kept {
    fn count(&self, level: AnnotationLevel) -> usize {
        self.shown.iter().filter(|shown| **shown == level).count()
    }
}

/// Says in one annotation what there is no room for.
fn in_one(mut left_out: Vec<(String, Annotation)>, level: AnnotationLevel) -> Option<Annotation> {
    if left_out.len() < 2 {
        return left_out.pop().map(|(_, annotation)| annotation);
    }
    let title = plural(left_out.len() as u64, "more item");
    let message = listed_in_part(left_out.iter().map(|(item, _)| item.as_str()));
    Some(Annotation { level, title, message, location: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(title: &str, level: AnnotationLevel) -> Annotation {
        let (title, message) = (title.to_owned(), String::new());
        Annotation { level, title, message, location: None }
    }

    /// Returns the titles of what a leg of so many red items shows, of which each has so many places.
    fn shown(items: usize, places: usize) -> Vec<String> {
        let leg = LegAnnotations::default();
        let mut shown = Vec::new();
        for item in 1..=items {
            let places = (0..places).map(|_| annotation("place", AnnotationLevel::Error));
            let first = annotation("failure", AnnotationLevel::Error);
            let all = [first].into_iter().chain(places).collect();
            shown.extend(leg.of(&format!("item {item}")).item(all));
        }
        shown.extend(leg.rest());
        shown.into_iter().map(|annotation| annotation.title).collect()
    }

    #[test]
    fn every_item_comes_before_the_places_of_any() {
        let two = shown(2, 9);
        assert_eq!((two.len(), two[1].as_str()), (MAX_PER_LEVEL, "failure (item 2)"));
        assert!(two[2..].iter().all(|title| title == "place"), "{two:?}");
        assert_eq!(shown(8, 9).last().unwrap(), "failure (item 8)");
        let many = shown(60, 119);
        assert_eq!((many.len(), many[7].as_str()), (MAX_PER_LEVEL, "53 more items"));
        assert_eq!(shown(1, 0), ["failure (item 1)"]);
    }
}
