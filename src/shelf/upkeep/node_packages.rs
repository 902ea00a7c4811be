//! By which manager the packages of Node are installed, and their scripts called.

use super::found_repository::Repository;
use super::lined_yaml;

/// Returns how the scripts of a package are called.
pub(super) fn package_manager(repository: &Repository) -> &'static str {
    // This key was written on purpose, while a lock file may be left over from an earlier manager.
    let said = repository.text("package.json").and_then(lined_yaml::parse);
    let said = said.as_ref().and_then(|root| lined_yaml::text(root.get("packageManager"))).unwrap_or("");
    let known = ["pnpm", "yarn", "bun", "npm"];
    if let Some(name) = known.into_iter().find(|name| said.starts_with(&format!("{name}@"))) {
        return name;
    }
    match repository.first(&["pnpm-lock.yaml", "yarn.lock", "bun.lockb", "bun.lock"]) {
        Some("pnpm-lock.yaml") => "pnpm",
        Some("yarn.lock") => "yarn",
        Some(_) => "bun",
        None => "npm",
    }
}
