//! Where people find the job on the web.

use super::github::target;
use crate::base::lookup::Lookup;

/// Where other systems than GitHub's say it.
const VARIABLES: &[&str] = &["CI_JOB_URL", "BUILDKITE_BUILD_URL", "CIRCLE_BUILD_URL", "BUILD_URL"];

/// Returns the URL of the CI job, if this is one that says it.
pub fn of_job(env: Lookup<'_>) -> Option<String> {
    let set = |name: &&str| env(name).filter(|page| !page.is_empty());
    target::page(env).or_else(|| VARIABLES.iter().find_map(set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_empty_names_no_page() {
        let page = |url: &'static str| {
            of_job(&move |name: &str| match name {
                "CI_JOB_URL" | "CIRCLE_BUILD_URL" => Some(String::new()),
                "BUILD_URL" => Some(url.to_owned()),
                _ => None,
            })
        };
        assert_eq!(page("https://j/7").as_deref(), Some("https://j/7"));
        assert_eq!(page(""), None);
    }
}
