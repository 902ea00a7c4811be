//! Programs that a run put where its checks find them, and whether they were installed. What was there before any check had
//! looked was; of what comes later a package manager has to know that it put it there. Otherwise a fix could write a
//! `.venv/bin/pytest` of its own. What a package manager knows lies in files that whoever wrote the program can write as
//! well, so that its word counts only of files that stand there since a time at which no agent could write them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::composer_proxy;
use crate::base::gitpath;
use crate::files::read;

/// The longest program that is compared with what its package says of it, and the longest list of a package.
const LONGEST: u64 = 16 * read::MIB;

/// Packages of an environment whose lists are read.
const MOST_PACKAGES: usize = 2000;

/// How the names of interpreters of Python begin.
const INTERPRETERS: [&str; 3] = ["python", "pypy", "graalpy"];

/// What package managers of JavaScript leave beside what they installed.
const STATES: [&str; 5] =
    [".package-lock.json", ".yarn-integrity", ".yarn-state.yml", ".modules.yaml", ".bun-tag"];

/// Tells whether a package manager says that it put a program at a path, from the top of the working tree. The program, and
/// what is its package's own of what shows it, have to be files that may be trusted.
pub(super) fn is_known_to_a_package(path: &str, top: &Path, is_trusted: &dyn Fn(&Path) -> bool) -> bool {
    let program = top.join(OsStr::from_bytes(&gitpath::to_bytes(path)));
    let (Some(folder), Some(name)) = (program.parent(), program.file_name().and_then(OsStr::to_str)) else {
        return false;
    };
    if !is_trusted(&program) {
        return false;
    }
    let known = match folder.file_name().and_then(OsStr::to_str) {
        Some(".bin") => of_javascript(&program, folder, is_trusted),
        // `pyvenv.cfg` marks a virtual environment, whose layout is known.
        Some("bin") if folder.join("../pyvenv.cfg").is_file() => {
            of_python(&program, folder, name, is_trusted)
        }
        Some("bin") => of_composer(folder, name, is_trusted),
        _ => None,
    };
    known.is_some()
}

/// `RECORD` of a package names its programs with their digests: `../../../bin/NAME,sha256=DIGEST,SIZE`.
fn of_python(program: &Path, folder: &Path, name: &str, is_trusted: &dyn Fn(&Path) -> bool) -> Option<()> {
    // An interpreter is a link to the one of the machine, and not to `/bin/true`.
    if name.starts_with("python") && program.is_symlink() {
        let target = program.canonicalize().ok()?;
        let is_inside = target.starts_with(folder.parent()?.parent()?.canonicalize().ok()?);
        let name = target.file_name()?.to_string_lossy().to_lowercase();
        let is_interpreter = INTERPRETERS.iter().any(|begin| name.starts_with(begin));
        return (is_interpreter && !is_inside).then_some(());
    }
    // pip writes scripts as files; a link was made by somebody else.
    if program.is_symlink() {
        return None;
    }
    // The digest, because a package that names a program says nothing about what stands there now.
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(read::bytes(program, LONGEST).ok()?));
    let wanted = format!("/bin/{name},sha256={digest},");
    let libraries = entries(folder.parent()?.join("lib"));
    let packages = libraries.flat_map(|library| entries(library.join("site-packages")));
    let mut lists = packages.filter(|package| package.extension() == Some(OsStr::new("dist-info")));
    let mut lists = lists.by_ref().take(MOST_PACKAGES).map(|package| package.join("RECORD"));
    let names_it = |list: &Path| read::text(list, LONGEST).is_ok_and(|text| text.contains(&wanted));
    lists.any(|list| names_it(&list) && is_trusted(&list)).then_some(())
}

/// A link to a file that the manifest of an installed package names among its programs.
fn of_javascript(program: &Path, folder: &Path, is_trusted: &dyn Fn(&Path) -> bool) -> Option<()> {
    let modules = folder.parent()?;
    // Without a state, nothing shows that a package manager was here at all.
    STATES.iter().any(|state| modules.join(state).is_file()).then_some(())?;
    let target = program.is_symlink().then(|| program.canonicalize().ok()).flatten()?;
    let home = modules.parent()?.canonicalize().ok()?;
    let package = target.ancestors().skip(1).find(|place| place.join("package.json").is_file())?;
    // A package of the project itself is work, not an installation.
    (package.starts_with(&home) && package != home).then_some(())?;
    // The state is written anew whenever anything is installed; the package is written once.
    let manifest = package.join("package.json");
    (is_trusted(&target) && is_trusted(&manifest)).then_some(())?;
    let manifest: Value = serde_json::from_str(&read::text(&manifest, LONGEST).ok()?).ok()?;
    let leads_there = |file: &Value| {
        file.as_str()
            .and_then(|file| package.join(file).canonicalize().ok())
            .is_some_and(|file| file == target)
    };
    let bin = &manifest["bin"];
    let is_named = leads_there(bin) || bin.as_object().is_some_and(|named| named.values().any(leads_there));
    is_named.then_some(())
}

/// `vendor/composer/installed.json` names the programs of each package.
fn of_composer(folder: &Path, name: &str, is_trusted: &dyn Fn(&Path) -> bool) -> Option<()> {
    let vendor = folder.parent()?;
    let list = read::text(&vendor.join("composer/installed.json"), LONGEST).ok()?;
    let list: Value = serde_json::from_str(&list).ok()?;
    let packages = list["packages"].as_array()?;
    let is_it = |file: &Value| file.as_str().is_some_and(|file| file.rsplit('/').next() == Some(name));
    let has_it = |package: &&Value| package["bin"].as_array().is_some_and(|files| files.iter().any(is_it));
    let package = packages.iter().find(has_it)?;
    let file = package["bin"].as_array()?.iter().find(|file| is_it(file))?.as_str()?;
    let real = vendor.join(package["name"].as_str()?).join(file).canonicalize().ok()?;
    is_trusted(&real).then_some(())?;
    let program = folder.join(name);
    if program.is_symlink() {
        return (program.canonicalize().ok()? == real).then_some(());
    }
    let text = read::text(&program, read::MIB).ok()?;
    let target = composer_proxy::target(&text)?;
    (folder.join(target).canonicalize().ok()? == real).then_some(())
}

fn entries(folder: PathBuf) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    fn is_known_to_a_package(path: &str, top: &Path) -> bool {
        super::is_known_to_a_package(path, top, &|_| true)
    }

    fn written(top: &Path, path: &str, text: &str) {
        fs::create_dir_all(top.join(path).parent().unwrap()).unwrap();
        fs::write(top.join(path), text).unwrap();
    }

    #[test]
    fn a_program_of_python_is_in_the_list_of_its_package() {
        let top = TempDir::new().unwrap();
        let (top, script) = (top.path(), "#!/x/.venv/bin/python\nimport pytest\n");
        written(top, ".venv/bin/pytest", script);
        assert!(!is_known_to_a_package(".venv/bin/pytest", top));
        written(top, ".venv/pyvenv.cfg", "home = /usr/bin\n");
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(script));
        let list = format!("pytest/__init__.py,sha256=x,1\n../../../bin/pytest,sha256={digest},40\n");
        written(top, ".venv/lib/python3.12/site-packages/pytest-8.0.dist-info/RECORD", &list);
        assert!(is_known_to_a_package(".venv/bin/pytest", top));
        written(top, ".venv/bin/pytest", "#!/bin/sh\nexit 0\n");
        assert!(!is_known_to_a_package(".venv/bin/pytest", top));
        symlink("/usr/bin/python3", top.join(".venv/bin/python")).unwrap();
        assert!(is_known_to_a_package(".venv/bin/python", top));
        symlink("pytest", top.join(".venv/bin/python3")).unwrap();
        assert!(!is_known_to_a_package(".venv/bin/python3", top));
        symlink("/bin/true", top.join(".venv/bin/python3.12")).unwrap();
        assert!(!is_known_to_a_package(".venv/bin/python3.12", top));
    }

    #[test]
    fn a_program_of_javascript_leads_into_its_package() {
        let top = TempDir::new().unwrap();
        let top = top.path();
        written(top, "node_modules/jest/package.json", r#"{"bin": {"jest": "./bin/jest.js"}}"#);
        written(top, "node_modules/jest/bin/jest.js", "");
        written(top, "node_modules/jest/other.js", "");
        fs::create_dir(top.join("node_modules/.bin")).unwrap();
        symlink("../jest/bin/jest.js", top.join("node_modules/.bin/jest")).unwrap();
        assert!(!is_known_to_a_package("node_modules/.bin/jest", top));
        written(top, "node_modules/.package-lock.json", "{}");
        assert!(is_known_to_a_package("node_modules/.bin/jest", top));
        symlink("../jest/other.js", top.join("node_modules/.bin/other")).unwrap();
        symlink("/bin/true", top.join("node_modules/.bin/true")).unwrap();
        written(top, "node_modules/.bin/file", "#!/bin/sh\n");
        for name in ["other", "true", "file", "gone"] {
            assert!(!is_known_to_a_package(&format!("node_modules/.bin/{name}"), top), "{name}");
        }
    }

    #[test]
    fn a_program_of_php_is_in_the_list_of_composer() {
        let top = TempDir::new().unwrap();
        let top = top.path();
        written(top, "vendor/phpunit/phpunit/phpunit", "");
        let proxy = |place: &str| {
            format!(
                "#!/usr/bin/env php\n<?php\nnamespace Composer;\nreturn include __DIR__ . '/..'.'/{place}';\n"
            )
        };
        written(top, "vendor/bin/phpunit", &proxy("phpunit/phpunit/phpunit"));
        assert!(!is_known_to_a_package("vendor/bin/phpunit", top));
        let list = r#"{"packages": [{"name": "phpunit/phpunit", "bin": ["phpunit"]}]}"#;
        written(top, "vendor/composer/installed.json", list);
        assert!(is_known_to_a_package("vendor/bin/phpunit", top));
        written(top, "vendor/other", "");
        for text in ["#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 0 # Composer\n", &proxy("other")] {
            written(top, "vendor/bin/phpunit", text);
            assert!(!is_known_to_a_package("vendor/bin/phpunit", top), "{text}");
        }
    }

    #[test]
    fn the_word_of_a_package_counts_where_its_files_may_be_trusted() {
        let top = TempDir::new().unwrap();
        let top = top.path();
        let script = "#!/x/.venv/bin/python\nimport pytest\n";
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(script));
        written(top, ".venv/pyvenv.cfg", "home = /usr/bin\n");
        written(top, ".venv/bin/pytest", script);
        let list = ".venv/lib/python3.12/site-packages/pytest-8.0.dist-info/RECORD";
        written(top, list, &format!("../../../bin/pytest,sha256={digest},40\n"));
        written(top, "node_modules/jest/package.json", r#"{"bin": "jest.js"}"#);
        written(top, "node_modules/jest/jest.js", "");
        written(top, "node_modules/.package-lock.json", "{}");
        fs::create_dir(top.join("node_modules/.bin")).unwrap();
        symlink("../jest/jest.js", top.join("node_modules/.bin/jest")).unwrap();
        for (program, files) in [
            (".venv/bin/pytest", [".venv/bin/pytest", list].as_slice()),
            (
                "node_modules/.bin/jest",
                ["node_modules/.bin/jest", "node_modules/jest/jest.js", "node_modules/jest/package.json"]
                    .as_slice(),
            ),
        ] {
            assert!(is_known_to_a_package(program, top));
            for file in files {
                let is_trusted = |path: &Path| !path.ends_with(file);
                assert!(!super::is_known_to_a_package(program, top, &is_trusted), "{file}");
            }
        }
    }
}
