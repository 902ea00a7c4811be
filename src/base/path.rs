//! Where in a document something stands: keys and indices, the handle by which a place is found later.

use std::fmt;

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// A key of a mapping.
    Key(String),
    /// An index of a sequence, from 0.
    Index(usize),
}

/// A place in a document, such as `states.fix.on_yes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DocPath(Vec<Segment>);

impl DocPath {
    /// Returns the place of the whole document.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns the place of `key` below this one.
    #[must_use]
    pub fn key(&self, key: impl Into<String>) -> Self {
        self.child(Segment::Key(key.into()))
    }

    /// Returns the place of an item below this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.child(Segment::Index(index))
    }

    /// Returns the steps from the root.
    pub fn segments(&self) -> &[Segment] {
        &self.0
    }

    fn child(&self, segment: Segment) -> Self {
        let mut path = self.clone();
        path.0.push(segment);
        path
    }
}

impl FromIterator<Segment> for DocPath {
    fn from_iter<I: IntoIterator<Item = Segment>>(segments: I) -> Self {
        Self(segments.into_iter().collect())
    }
}

impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Key(key) if position == 0 => write!(f, "{key}")?,
                Segment::Key(key) => write!(f, ".{key}")?,
                Segment::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
