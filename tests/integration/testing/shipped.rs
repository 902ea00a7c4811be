//! The tests of the loops that come along: people wrote them, they take all ways and notice nearly all mutants.

use std::path::Path;
use std::process::Command;

use crate::common::Ran;

#[test]
fn the_loops_that_come_along_are_tested() {
    for directory in ["catalog/tests", ".loops/tests"] {
        let arguments = [
            "test",
            directory,
            "--ci",
            "--min-edges",
            "100",
            "--mutate",
            "--min-killed",
            "90",
            "--format",
            "json",
        ];
        let mut command = Command::new(crate::common::LL_LOOP.as_str());
        let output = command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        Ran::of(&output).code(0);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let files = report["files"].as_array().unwrap();
        assert!(!files.is_empty());
        for file in files {
            let generated = file["cases"].as_array().unwrap().iter().filter(|case| case["generated"] == true);
            assert_eq!(generated.count(), 0, "{}", file["file"]);
        }
    }
}

#[test]
fn every_loop_of_the_catalogue_has_tests() {
    let catalogue = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog");
    let mut count = 0;
    for entry in std::fs::read_dir(&catalogue).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        assert!(catalogue.join(format!("tests/{name}.test.yaml")).is_file(), "{name} has no tests");
        count += 1;
    }
    assert!(count >= 25, "{count}");
}
