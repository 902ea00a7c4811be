//! The key of a run: one digest over everything that its checks read. Two runs with the same key have found the same, byte for
//! byte, so that what one of them verified holds for the other.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::base::file_mode::FileMode;
use crate::base::sum::Sum;

/// What the parts of a key mean. It grows whenever a part means something else, so that no record of an earlier version fits.
pub const MEANING: u32 = 2;

/// The key of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReuseKey(Sum);

impl ReuseKey {
    /// Returns the digest that it is.
    pub fn sum(self) -> Sum {
        self.0
    }
}

impl fmt::Display for ReuseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A file as it lies in the working tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// Its mode.
    pub mode: FileMode,
    /// The digest of its content: of the target of a link, of the commit of a submodule.
    pub content: Sum,
}

/// Everything that a key is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyParts {
    /// The loop, compiled, and the loops that it runs.
    pub definition: Sum,
    /// The context: parameters and input are among it.
    pub values: Sum,
    /// The options of the command line that change what the loop does.
    pub options: Sum,
    /// The files that the loop names, by path.
    pub inputs: BTreeMap<String, KeyFile>,
    /// The files that decide what its checks say and are not among the inputs. One that is looked for and not there counts,
    /// too: a new one would be obeyed.
    pub judges: BTreeMap<String, Option<KeyFile>>,
    /// What the commands printed that say which tools there are.
    pub tools: BTreeMap<String, Sum>,
    /// The values of variables of the environment; none for one that is not set.
    pub env: BTreeMap<String, Option<Sum>>,
    /// The operating system, the architecture, the image and the directory in which actions run, each by its name.
    pub platform: BTreeMap<String, String>,
    /// How actions are confined.
    pub sandbox: Sum,
}

/// The digests of the parts of a key, from which it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartSums {
    /// Of the loop.
    pub definition: Sum,
    /// Of its values.
    pub values: Sum,
    /// Of the options.
    pub options: Sum,
    /// Of the inputs.
    pub inputs: Sum,
    /// Of the judges.
    pub judges: Sum,
    /// Of the tools.
    pub tools: Sum,
    /// Of the variables.
    pub env: Sum,
    /// Of the platform.
    pub platform: Sum,
    /// Of the sandbox.
    pub sandbox: Sum,
}

impl PartSums {
    /// Makes one whose parts all have this digest.
    #[cfg(test)]
    pub(super) fn all(sum: Sum) -> Self {
        Self {
            definition: sum,
            values: sum,
            options: sum,
            inputs: sum,
            judges: sum,
            tools: sum,
            env: sum,
            platform: sum,
            sandbox: sum,
        }
    }

    /// Returns the digests by the names that people read.
    pub fn named(&self) -> [(&'static str, Sum); 9] {
        let Self { definition, values, options, inputs, judges, tools, env, platform, sandbox } = *self;
        [
            ("loop", definition),
            ("values", values),
            ("options", options),
            ("inputs", inputs),
            ("judges", judges),
            ("tools", tools),
            ("env", env),
            ("platform", platform),
            ("sandbox", sandbox),
        ]
    }

    /// Returns the key that they make.
    pub fn key(&self) -> ReuseKey {
        // The word in front keeps any other digest of the same parts from being taken for a key.
        let mut digest = PartDigest::new("ll-loop reuse");
        digest.bytes(&MEANING.to_le_bytes());
        for (name, sum) in self.named() {
            digest.text(name);
            digest.text(&sum.to_string());
        }
        ReuseKey(digest.end())
    }
}

impl KeyParts {
    /// Returns the digests of the parts.
    pub fn sums(&self) -> PartSums {
        PartSums {
            definition: self.definition,
            values: self.values,
            options: self.options,
            inputs: files(self.inputs.iter().map(|(path, file)| (path, Some(file)))),
            judges: files(self.judges.iter().map(|(path, file)| (path, file.as_ref()))),
            tools: listed("tools", self.tools.iter().map(|(command, sum)| (command, Some(sum.to_string())))),
            env: listed("env", self.env.iter().map(|(name, sum)| (name, sum.map(|sum| sum.to_string())))),
            platform: listed(
                "platform",
                self.platform.iter().map(|(name, value)| (name, Some(value.clone()))),
            ),
            sandbox: self.sandbox,
        }
    }

    /// Returns the key.
    pub fn key(&self) -> ReuseKey {
        self.sums().key()
    }
}

/// Returns the digest of files.
fn files<'f>(all: impl Iterator<Item = (&'f String, Option<&'f KeyFile>)>) -> Sum {
    let mut digest = PartDigest::new("files");
    for (path, file) in all {
        digest.text(path);
        match file {
            Some(KeyFile { mode, content }) => {
                digest.text(mode.word());
                digest.text(&content.to_string());
            }
            // No mode has this name, and no content follows.
            None => digest.text("absent"),
        }
    }
    digest.end()
}

fn listed<'n>(what: &str, all: impl Iterator<Item = (&'n String, Option<String>)>) -> Sum {
    let mut digest = PartDigest::new(what);
    for (name, value) in all {
        digest.text(name);
        digest.text(value.as_deref().unwrap_or("unset"));
        // A variable that says `unset` is another thing than one that is not set.
        digest.bytes(&[u8::from(value.is_some())]);
    }
    digest.end()
}

/// Returns the digest of a value, whatever the order of its keys.
pub fn of_value(value: &Value) -> Sum {
    let mut digest = PartDigest::new("value");
    digest.value(value);
    digest.end()
}

/// Returns the digest of texts in their order.
pub fn of_texts<'t>(texts: impl IntoIterator<Item = &'t str>) -> Sum {
    let mut digest = PartDigest::new("texts");
    texts.into_iter().for_each(|text| digest.text(text));
    digest.end()
}

/// A digest in which no two lists of parts look the same: each part stands behind its length.
struct PartDigest(Sha256);

impl PartDigest {
    fn new(what: &str) -> Self {
        let mut this = Self(Sha256::new());
        this.text(what);
        this
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Array(items) => {
                self.text("list");
                self.bytes(&(items.len() as u64).to_le_bytes());
                for item in items {
                    self.value(item);
                }
            }
            Value::Object(entries) => {
                self.text("map");
                self.bytes(&(entries.len() as u64).to_le_bytes());
                let sorted: BTreeMap<&String, &Value> = entries.iter().collect();
                for (name, value) in sorted {
                    self.text(name);
                    self.value(value);
                }
            }
            Value::String(text) => {
                self.text("text");
                self.text(text);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {
                self.text("plain");
                self.text(&value.to_string());
            }
        }
    }

    fn end(self) -> Sum {
        Sum::end(self.0)
    }
}
