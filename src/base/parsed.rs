//! Types for texts that were checked once. Only the parser of a type makes its values, even for serde.

/// Declares such a type: what it is called, why a text is refused, and the check.
macro_rules! parsed {
    ($(#[$doc:meta])* $name:ident, $error:ty, $check:expr) => {
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Parses the text.
            pub fn parse(text: &str) -> Result<Self, $error> {
                Self::try_from(text.to_owned())
            }

            /// Returns it as it was written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                let check: fn(&str) -> Result<(), $error> = $check;
                check(&text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(parsed: $name) -> Self {
                parsed.0
            }
        }
    };
}

pub(crate) use parsed;
