//! The names of a delivery on a server. One loop and one base have one branch, however often something is delivered.

use crate::base::name::LoopName;
use crate::base::parsed::parsed;

/// The error for a text that is not the name of a branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the name of a branch")]
pub struct BranchError;

/// The longest name of a branch that GitHub takes, in bytes.
const MAX_BRANCH: usize = 255;

parsed!(
    /// The name of a branch, without `refs/heads/`: what `git check-ref-format --branch` takes, and never an option.
    BranchName, BranchError, |text| if is_branch(text) { Ok(()) } else { Err(BranchError) }
);

/// Follows the rules of git-check-ref-format(1).
fn is_branch(text: &str) -> bool {
    let is_unfit = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\');
    let is_part = |part: &str| {
        let ends_in_lock = part.rsplit_once('.').is_some_and(|(_, ending)| ending == "lock");
        !part.is_empty() && !part.starts_with('.') && !ends_in_lock
    };
    !text.starts_with('-')
        && !text.ends_with('.')
        && text != "@"
        && text.len() <= MAX_BRANCH
        && !text.contains("..")
        && !text.contains("@{")
        && !text.chars().any(is_unfit)
        && text.split('/').all(is_part)
}

/// The refs of the deliveries of one loop to one base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StickyNames {
    /// The loop that it is for.
    pub r#loop: LoopName,
    /// The branch that people see: `ll-loop/LOOP/BASE`.
    pub branch: BranchName,
    /// The ref that points at the last commit that we made.
    pub delivered: String,
    /// What the names of branches begin with that stand only while a commit is made.
    pub temporary: String,
}

impl StickyNames {
    /// Names the refs.
    ///
    /// # Errors
    /// Loop and base together are longer than a branch may be, or the loop has a character that no branch has.
    pub fn new(r#loop: &LoopName, base: &BranchName) -> Result<Self, BranchError> {
        let name = format!("{}/{base}", r#loop.as_str().replace('/', "."));
        let branch = BranchName::parse(&format!("ll-loop/{name}"))?;
        let temporary = format!("ll-loop-tmp/{name}/");
        let delivered = format!("refs/ll-loop/delivered/{name}");
        Ok(Self { r#loop: r#loop.clone(), branch, delivered, temporary })
    }

    /// Returns the whole name of the branch.
    pub fn branch_ref(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_what_git_takes() {
        for name in ["main", "release/1.0", "a-b_c", "é", "v1.2", "feature/@x", "HEAD"] {
            assert!(BranchName::parse(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "-x",
            "--output=x",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a..b",
            "a.lock",
            "a.lock/b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[b",
            "a\\b",
            "@",
            "a@{1}",
            "a.",
            "a\nb",
            "a\u{7f}",
        ] {
            assert!(BranchName::parse(name).is_err(), "{name:?}");
        }
        assert!(BranchName::parse(&"a".repeat(256)).is_err());
    }

    #[test]
    fn a_loop_and_a_base_have_their_own_refs() {
        let names = |name: &str, base: &str| {
            StickyNames::new(&LoopName::parse(name).unwrap(), &BranchName::parse(base).unwrap())
        };
        let of_main = names("quality/types", "release/1.0").unwrap();
        assert_eq!(of_main.branch_ref(), "refs/heads/ll-loop/quality.types/release/1.0");
        assert_eq!(of_main.delivered, "refs/ll-loop/delivered/quality.types/release/1.0");
        assert_eq!(of_main.temporary, "ll-loop-tmp/quality.types/release/1.0/");
        assert!(names("a b", "main").is_err(), "a branch has no blanks");
        assert!(names("main", &"b".repeat(250)).is_err());
    }
}
