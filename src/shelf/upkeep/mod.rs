//! Finds out how a repository checks itself: from its own tasks, what its CI runs, and the tests of its toolchain. It knows
//! no file system; whoever asks gives it the texts.

mod accounted_lines;
mod allowed_failures;
mod altered_checkout;
mod block_checks;
mod called_as_in_ci;
mod checkouts;
mod chosen_commands;
mod ci;
mod ci_checks;
mod ci_files;
mod ci_jobs;
mod ci_steps;
mod cmake_targets;
mod drift_checks;
mod found_repository;
mod gitlab;
mod hooks;
mod install_lines;
mod install_steps;
mod job_services;
mod licence_header;
mod line_purpose;
mod lined_yaml;
mod long_jobs;
mod loop_reuse;
mod loop_text;
mod matrix_condition;
mod matrix_leg;
mod named_environments;
mod no_checks;
mod node_packages;
mod offers;
mod recipes;
mod result_files;
mod rust_toolchain;
mod script_lines;
mod setup;
mod step_titles;
mod task_texts;
mod tasks;
mod terminal;
mod test_text;
mod toolchains;
mod trial;
mod unused;
mod usual_versions;
mod when_jobs_run;
mod workflow;
mod workflow_loop;
pub(super) mod yaml_style;

pub use chosen_commands::{Check, Plan, Planned, PlannedLoop, loops};
pub use found_repository::Repository;
pub use loop_text::{loop_text, source};
pub use setup::install_of;
pub use test_text::test_text;
pub use trial::{Trials, Tried};
pub use unused::{Reason, UnusedCommand, UnusedPackage, by_reason};
pub use workflow::{Ci, workflow};
pub use workflow_loop::WorkflowLoop;

/// Returns the comment that a text of ours needs in a repository whose words are checked.
pub fn note_of_words(repository: &Repository, text: &str) -> String {
    let is_spelt = yaml_style::is_spelt(repository);
    yaml_style::known_words(text).filter(|_| is_spelt).unwrap_or_default()
}

/// Tells whether a text is YAML.
pub fn is_yaml(text: &str) -> bool {
    lined_yaml::parse(text).is_some()
}

/// Rewrites a text of YAML that was made here, as the repository writes YAML: with its licence, where something looks for that.
pub fn in_style(repository: &Repository, path: &str, text: &str) -> String {
    let header = licence_header::licence_header(repository).unwrap_or_default();
    yaml_style::YamlStyle::of(repository, path).applied(&(header + text))
}
