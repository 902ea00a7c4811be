//! What is wrong with the value of an option. The parser of the command line shows it behind the option and the value.

/// A value that an option does not take, with what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Misread(pub(super) &'static str);

/// Reads how many of something there may be.
pub(super) fn count<N: std::str::FromStr + PartialOrd + From<u8>>(text: &str) -> Result<N, Misread> {
    let number = text.trim().parse::<N>().ok().filter(|number| *number >= N::from(1));
    number.ok_or(Misread("write a whole number from 1, such as 10"))
}
