//! Bundles and artifacts, which strangers can write: whatever they hold, nothing is written but below the directory that
//! is meant, and no more than is allowed.
//!
//! An input that begins like a zip file is one. Any other is a plan for one in JSON, so that names and modes can be
//! hostile while digests are right: `{"manifest": {…}, "entries": [{"name", "text", "mode", "stored"}], "listed": …}`.
//! `@` in a name stands for the directory around the one that is meant.

use std::fs::{self, File};
use std::io::{Cursor, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ll_loop::internals::base::repository_address::repository;
use ll_loop::internals::base::text::hex;
use ll_loop::internals::bundle::earlier_report;
use ll_loop::internals::bundle::manifest::Manifest;
use ll_loop::internals::bundle::open::{self, Bundle};
use ll_loop::internals::files::unzip::UnzipLimits;
use ll_loop::internals::forge::archive;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::{Target, note};

/// See above.
pub const TARGET: Target = Target {
    name: "bundle",
    run,
    seeds,
    words: &[
        "manifest.json",
        "events.jsonl",
        "state.json",
        "output.log",
        "tree.bundle",
        "streams/1",
        "run-dir/a",
        "report/x",
        "loops/a.yaml",
        "../",
        "@/out",
        "/",
        "..",
        ".",
        "\\\\",
        "\\u0000",
        "run-dir/../../out",
        "run-dir/a/../../../out",
        "run-dir//x",
        "run-dir/.",
        "run-dir/CON",
        "run-dir/a\\\\b",
        "streams/./x",
        "\"mode\":41471",
        "\"mode\":33261",
        "\"mode\":16877",
        "\"mode\":4516",
        "\"stored\":true",
        "\"listed\":false",
        "\"size\":",
        "\"sha256\":",
        "\"schema\":1",
        "\"instance\":\"../x\"",
        "\"base\":\"--output=x\"",
        "18446744073709551615",
        "null",
        "[]",
        "{}",
        "PK\u{1}\u{2}",
        "PK\u{3}\u{4}",
        "PK\u{5}\u{6}",
        "a/",
        "bundle.llz",
    ],
};

/// What may be unpacked here.
const BYTES: u64 = 64 * 1024;
const ENTRIES: usize = 64;

fn seeds() -> Vec<Vec<u8>> {
    let entry = |name: &str, text: &str| json!({"name": name, "text": text});
    let start = r#"{"event":"loop_start","ts":"1970-01-01T00:00:00.000Z","seq":1}"#;
    let plans = [
        json!({"manifest": honest(), "entries": [
            entry("events.jsonl", start), entry("state.json", "{}"), entry("output.log", "out\n"),
            entry("streams/3.out", "long"), {"name": "run-dir/bin/tool", "text": "#!/bin/sh\n", "mode": 0o100_755},
            entry("report/summary.md", "# ok"), entry("loops/.loops/a.yaml", "name: a\n")]}),
        json!({"manifest": honest(), "entries": [entry("events.jsonl", start), entry("tree.bundle", "# v2 git bundle\n")]}),
        json!({"entries": [entry("a.txt", "a"), entry("dir/", ""), entry("dir/b.txt", "b")]}),
        json!({"entries": [entry("link", "@/canary"), {"name": "l", "text": "../canary", "mode": 0o120_777}]}),
        json!({"manifest": honest(), "entries": [entry("events.jsonl", start), entry("run-dir/../../out", "x")]}),
        json!({"entries": [entry("@/out", "x"), entry("../out", "x")]}),
    ];
    let mut all: Vec<Vec<u8>> = plans.iter().map(|plan| plan.to_string().into_bytes()).collect();
    all.extend(plans[..3].iter().map(|plan| zip(plan, "/nowhere")));
    all
}

/// A manifest as this program writes it, but for its files.
fn honest() -> Value {
    json!({
        "schema": 1, "written_by": "ll-loop", "written_at": "2026-01-01T00:00:00.000Z", "loop": "a", "instance": "a-1",
        "file": ".loops/a.yaml", "definition_sha256": "0".repeat(64), "repository": "github.com/a/b", "job": null,
        "outcome": "handoff", "resumable": true, "state": "check", "iteration": 1, "step": 1, "last_seq": 1,
        "tree": {"base": "1".repeat(40), "head": "1".repeat(40), "commit": "2".repeat(40), "tree": "3".repeat(40),
                 "index": null, "changed": false, "missing": null},
        "left_out": [{"path": "big", "why": "it is large"}],
    })
}

/// Makes the zip file that a plan is of.
fn zip(plan: &Value, around: &str) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut listed = Vec::new();
    let mut entries: Vec<(String, Vec<u8>, Option<u64>, bool)> = Vec::new();
    let texts = plan.get("entries").and_then(Value::as_array).into_iter().flatten();
    for entry in texts.take(ENTRIES + 8) {
        let text = |key| entry.get(key).and_then(Value::as_str).unwrap_or_default().replace('@', around);
        let (name, bytes) = (text("name"), text("text").into_bytes());
        listed.push(json!({"name": name, "size": bytes.len(), "sha256": sha256(&bytes)}));
        let stored = entry.get("stored") == Some(&Value::Bool(true));
        entries.push((name, bytes, entry.get("mode").and_then(Value::as_u64), stored));
    }
    if let Some(manifest) = plan.get("manifest") {
        let mut manifest = manifest.clone();
        if let (Some(map), None) = (manifest.as_object_mut(), plan.get("listed")) {
            map.entry("files").or_insert(Value::Array(listed));
        }
        entries.insert(0, ("manifest.json".to_owned(), manifest.to_string().into_bytes(), None, false));
    }
    for (name, bytes, mode, stored) in entries {
        let method = if stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        let mut options = SimpleFileOptions::default().compression_method(method);
        // The writer keeps the kind of a file apart from its mode.
        let mode = mode.and_then(|mode| u32::try_from(mode).ok());
        if let Some(mode) = mode {
            options = options.unix_permissions(mode & 0o7777);
        }
        let is_link = mode.is_some_and(|mode| mode & 0o170_000 == 0o120_000);
        let written = if is_link {
            zip.add_symlink(name, String::from_utf8_lossy(&bytes), options)
        } else {
            zip.start_file(name, options).and_then(|()| Ok(zip.write_all(&bytes)?))
        };
        if written.is_err() {
            break;
        }
    }
    zip.finish().map(Cursor::into_inner).unwrap_or_default()
}

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        if let Some(name) = repository(text) {
            assert_eq!(name, name.to_ascii_lowercase());
        }
        if let Ok(manifest) = serde_json::from_str::<Manifest>(text) {
            let again = serde_json::to_value(&manifest).and_then(serde_json::from_value::<Manifest>);
            assert_eq!(again.expect("what was written can be read"), manifest);
        }
    }
    let place = Place::new();
    let around = place.0.path().display().to_string();
    let plan = serde_json::from_slice::<Value>(data).ok().filter(Value::is_object);
    let bytes = plan.map_or_else(|| data.to_vec(), |plan| zip(&plan, &around));
    fs::write(place.archive(), bytes).expect("a file can be written");
    place.open();
    place.locate();
    place.unpack();
}

/// A directory with the archive, a file that must stay what it is, and the directories that may be written to.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().expect("a directory can be made"));
        fs::write(place.0.path().join("canary"), "alive").expect("a file can be written");
        for name in ["opened", "located", "unpacked"] {
            fs::create_dir(place.0.path().join(name)).expect("a directory can be made");
        }
        place
    }

    fn archive(&self) -> std::path::PathBuf {
        self.0.path().join("archive.llz")
    }

    /// Nothing but the directories may have changed, and what is below this one is plain and no more than is allowed.
    fn check(&self, written: &str) {
        let mut names: Vec<String> = fs::read_dir(self.0.path())
            .expect("the directory can be read")
            .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(
            names,
            ["archive.llz", "canary", "located", "opened", "unpacked"],
            "something was written beside it"
        );
        let canary = fs::read_to_string(self.0.path().join("canary"));
        assert_eq!(canary.ok().as_deref(), Some("alive"), "another file was written");
        let mut bytes = 0;
        plain(&self.0.path().join(written), &mut bytes);
        assert!(bytes <= BYTES, "{bytes} bytes were written");
    }

    fn open(&self) {
        let target = self.0.path().join("opened");
        let limits = UnzipLimits { entries: ENTRIES, bytes: BYTES };
        match Bundle::open(&self.archive(), limits) {
            Ok(bundle) => {
                let before = bundle.manifest.clone();
                note(("bundle", before.files.len(), before.tree.is_some()));
                let extracted = bundle.extract(&target);
                note(extracted.as_ref().map(|_| ()).map_err(std::mem::discriminant));
                if let Ok(after) = extracted {
                    assert_eq!(after, before);
                    for entry in &after.files {
                        let name = entry.name.as_str();
                        if let Ok(bytes) = fs::read(target.join(name)) {
                            assert_eq!(
                                sha256(&bytes),
                                entry.sha256.to_string(),
                                "{name} is not what it should be"
                            );
                        }
                    }
                }
            }
            Err(error) => note(std::mem::discriminant(&error)),
        }
        self.check("opened");
    }

    fn locate(&self) {
        let scratch = self.0.path().join("located");
        let limits = UnzipLimits { entries: ENTRIES, bytes: BYTES };
        if let Ok(found) = open::locate(&self.archive(), &scratch, limits) {
            assert!(found.starts_with(self.0.path()), "{}", found.display());
        }
        if let Ok(Some(bytes)) = earlier_report::read(&self.archive(), "summary.md", BYTES) {
            assert!(bytes.len() as u64 <= BYTES);
            note("report");
        }
        self.check("located");
    }

    fn unpack(&self) {
        let target = self.0.path().join("unpacked");
        let mut file = File::open(self.archive()).expect("the archive is there");
        let limits = UnzipLimits { entries: ENTRIES, bytes: BYTES };
        let unpacked = archive::unpack(&mut file, &target, limits);
        self.check("unpacked");
        match unpacked {
            Ok(paths) => {
                note(("unpacked", paths.len()));
                for path in &paths {
                    assert!(path.is_relative() && target.join(path).is_file(), "{}", path.display());
                }
            }
            Err(error) => note(std::mem::discriminant(&error)),
        }
        for entry in fs::read_dir(&target).expect("it can be read").filter_map(Result::ok) {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(!name.starts_with(".ll-loop-") || name.len() != ".ll-loop-".len() + 6, "{name} was left");
        }
    }
}

/// Checks that there is nothing but files and directories, and adds up what they take.
fn plain(directory: &Path, bytes: &mut u64) {
    for entry in fs::read_dir(directory).expect("the directory can be read") {
        let path = entry.expect("it can be read").path();
        let metadata = fs::symlink_metadata(&path).expect("it can be looked at");
        assert!(metadata.is_dir() || metadata.is_file(), "{} is not a plain file", path.display());
        assert_eq!(metadata.permissions().mode() & 0o7000, 0, "{} has odd rights", path.display());
        if metadata.is_dir() {
            plain(&path, bytes);
        } else {
            *bytes += metadata.len();
        }
    }
}
