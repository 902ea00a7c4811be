//! An in-toto statement of version 1: some subjects, each by its digest, and a predicate about them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The type of every statement.
pub(crate) const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// A statement about subjects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Statement<P> {
    /// [`STATEMENT_TYPE`].
    #[serde(rename = "_type")]
    pub(crate) kind: String,
    /// What it is about.
    pub(crate) subject: Vec<Subject>,
    /// What the predicate means.
    #[serde(rename = "predicateType")]
    pub(crate) predicate_type: String,
    /// What is said.
    pub(crate) predicate: P,
}

/// Something that a statement is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) name: Option<String>,
    /// Its digests by algorithm, in hexadecimal digits.
    pub(crate) digest: BTreeMap<String, String>,
}

impl<P> Statement<P> {
    /// Says something about subjects.
    pub(crate) fn of(subject: Vec<Subject>, predicate_type: &str, predicate: P) -> Self {
        let (kind, predicate_type) = (STATEMENT_TYPE.to_owned(), predicate_type.to_owned());
        Self { kind, subject, predicate_type, predicate }
    }
}

impl<P: Serialize> Statement<P> {
    /// Writes it as a file.
    pub(crate) fn text(&self) -> String {
        // What is in it are texts, numbers, lists and maps with texts as keys.
        let text = serde_json::to_string_pretty(self).expect("a statement has a text");
        text + "\n"
    }
}

impl Subject {
    /// Names something by one digest.
    pub(crate) fn new(name: &str, algorithm: &str, digest: &str) -> Self {
        let digest = BTreeMap::from([(algorithm.to_owned(), digest.to_owned())]);
        Self { name: Some(name.to_owned()), digest }
    }
}
