//! Before the first run: loops that come along, and what a repository has for them.

mod accounted_lines;
mod called_in_ci;
mod catalog;
mod composed_checks;
mod doctor;
mod init;
mod jobs_of_ci;
mod layouts_of_ci;
mod layouts_of_tasks;
mod legs_of_ci;
mod mistakes;
mod prepared_jobs;
mod surroundings;
