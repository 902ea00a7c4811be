//! A comparison with a value of a matrix, as conditions of workflows have it: `matrix.os == 'ubuntu-24.04'`.

/// A condition about a value of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatrixCondition {
    pub(super) key: String,
    pub(super) way: Comparison,
    pub(super) text: String,
}

/// How the value is compared with the text of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Is,
    IsNot,
    Begins,
    Ends,
    Contains,
}

impl MatrixCondition {
    /// Reads `matrix.rust == 'nightly'`, `startsWith(matrix.rust, 'nightly')` or `matrix.experimental`.
    pub(super) fn of(text: &str) -> Option<Self> {
        let calls = [
            ("startsWith(", Comparison::Begins),
            ("endsWith(", Comparison::Ends),
            ("contains(", Comparison::Contains),
        ];
        let of_call = calls.into_iter().find_map(|(begin, way)| {
            let (key, text) = text.strip_prefix(begin)?.strip_suffix(')')?.split_once(',')?;
            Some((key, way, text))
        });
        let of_sign = || {
            let signs = [("==", Comparison::Is), ("!=", Comparison::IsNot)];
            signs.into_iter().find_map(|(sign, way)| {
                let (key, text) = text.split_once(sign)?;
                Some((key, way, text))
            })
        };
        let of_truth = || {
            Some(match text.strip_prefix('!') {
                Some(key) => (key, Comparison::IsNot, "true"),
                None => (text, Comparison::Is, "true"),
            })
        };
        let (key, way, compared) = of_call.or_else(of_sign).or_else(of_truth)?;
        let key = key.trim().strip_prefix("matrix.")?;
        let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let compared = compared.trim().trim_matches('\'');
        (is_name && !compared.contains(['\'', '&', '('])).then(|| Self {
            key: key.to_owned(),
            way,
            text: compared.to_owned(),
        })
    }

    pub(super) fn holds_for(&self, value: &str) -> bool {
        match self.way {
            Comparison::Is => value == self.text,
            Comparison::IsNot => value != self.text,
            Comparison::Begins => value.starts_with(&self.text),
            Comparison::Ends => value.ends_with(&self.text),
            Comparison::Contains => value.contains(&self.text),
        }
    }
}
