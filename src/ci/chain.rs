//! The chain of CI runs in which one run goes on, hand-off after hand-off.

/// Where in a chain of runs this one stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// How many runs came before it.
    pub depth: u32,
    /// How many may come after the first one.
    pub max: u32,
}

/// What becomes of a run that was handed off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NextRun {
    /// Another run continues it.
    Started {
        /// Its number, where the server says it.
        number: Option<u64>,
        /// Its page, where the server says it.
        page: Option<String>,
    },
    /// The chain is as long as it may be.
    ChainEnded {
        /// How many runs may come after the first one.
        max: u32,
    },
    /// No run was started, and why.
    NotStarted(String),
}

impl NextRun {
    /// Says it in a sentence without its end.
    pub fn sentence(&self) -> String {
        match self {
            Self::Started { number: Some(number), .. } => format!("handed off: goes on in run {number}"),
            Self::Started { number: None, .. } => "handed off: goes on in another run".to_owned(),
            Self::ChainEnded { max } => {
                format!(
                    "handed off, and nothing goes on: the chain had its {max} further runs (`--max-chain`)"
                )
            }
            Self::NotStarted(why) => format!("handed off, and nothing goes on: {why}"),
        }
    }
}
