//! Puts the parts of a file that are judges as they were at the start, and leaves the work around them as it is: the
//! tests within a source, the tables of a manifest. A check can then be made with the judges of the commit and the work of
//! the run.

use std::ops::Range;

use serde_json::{Map, Value};

use super::judge_catalog::PartFormat;
use super::judge_parts::{PartSelection, block_ranges, fence_ranges, parts, prompt_ranges};

/// Returns a file of the end with the judges of the start; none where they cannot be put into it. How the file is laid
/// out may change.
pub(super) fn put_back(start: &str, end: &str, wanted: &PartSelection<'_>) -> Option<String> {
    let whole = match (wanted.format, wanted.pattern) {
        (PartFormat::Json, _) => {
            let value = merged(&json(start)?, json(end)?, wanted.keys);
            serde_json::to_string_pretty(&value).ok()? + "\n"
        }
        (PartFormat::Toml, _) => {
            let value = merged(&of_toml(start)?, of_toml(end)?, wanted.keys);
            toml::to_string(&toml::Table::try_from(value).ok()?).ok()?
        }
        (PartFormat::Ini, _) => of_sections(start, end, wanted.keys),
        (PartFormat::Blocks, Some(pattern)) => {
            let ranges = |text: &str| block_ranges(text, pattern, wanted.language);
            one_by_one(start, end, &ranges).or_else(|| at_the_end(start, end, &ranges))?
        }
        (PartFormat::Fences, Some(pattern)) => one_by_one(start, end, &|text| fence_ranges(text, pattern))?,
        (PartFormat::Prompts, Some(pattern)) => one_by_one(start, end, &|text| prompt_ranges(text, pattern))?,
        (PartFormat::Lines | PartFormat::Make, _)
        | (PartFormat::Blocks | PartFormat::Fences | PartFormat::Prompts, None) => return None,
    };
    // Whatever was put together has to say what the start said.
    let of = |text: &str| if text.trim().is_empty() { Some(Vec::new()) } else { parts(text, wanted) };
    (of(&whole)? == of(start)?).then_some(whole)
}

fn json(text: &str) -> Option<Value> {
    if text.is_empty() { Some(Value::Object(Map::new())) } else { serde_json::from_str(text).ok() }
}

/// Reads TOML as JSON. A date has no form there.
fn of_toml(text: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(text).ok()?;
    // JSON has no dates, so one would come back as a text: another value.
    let has_date = text.contains('T') && table.values().any(holds_date);
    if has_date { None } else { serde_json::to_value(table).ok() }
}

fn holds_date(value: &toml::Value) -> bool {
    match value {
        toml::Value::Datetime(_) => true,
        toml::Value::Array(items) => items.iter().any(holds_date),
        toml::Value::Table(table) => table.values().any(holds_date),
        toml::Value::String(_)
        | toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_) => false,
    }
}

fn merged(start: &Value, mut end: Value, keys: &[String]) -> Value {
    for key in keys {
        let way: Vec<&str> = key.split('.').collect();
        put_at(&mut end, Some(start), &way);
    }
    end
}

/// Puts what stands at a key of the start there, or takes away what the start does not have.
fn put_at(end: &mut Value, start: Option<&Value>, way: &[&str]) {
    let Some((first, rest)) = way.split_first() else { return };
    if let (Value::Array(items), "*") = (&mut *end, *first) {
        for (at, item) in items.iter_mut().enumerate() {
            put_at(item, start.and_then(|start| start.get(at)), rest);
        }
        return;
    }
    let Value::Object(entries) = end else { return };
    let of_start = |key: &str| start.and_then(|start| start.get(key));
    let mut keys: Vec<String> = vec![(*first).to_owned()];
    if *first == "*" {
        keys = entries.keys().cloned().collect();
        let more = start.and_then(Value::as_object).into_iter().flat_map(Map::keys);
        keys.extend(more.filter(|key| !entries.contains_key(*key)).cloned().collect::<Vec<_>>());
    }
    for key in keys {
        match (of_start(&key), rest) {
            (Some(value), []) => drop(entries.insert(key, value.clone())),
            (None, []) => drop(entries.remove(&key)),
            (value, _) => {
                if value.is_some_and(Value::is_object) && !entries.contains_key(&key) {
                    entries.insert(key.clone(), Value::Object(Map::new()));
                }
                if let Some(inner) = entries.get_mut(&key) {
                    put_at(inner, value, rest);
                }
            }
        }
    }
}

/// Returns a file without the sections that are judges, and with those of the start behind it.
fn of_sections(start: &str, end: &str, keys: &[String]) -> String {
    let lines = |text: &str, wanted: bool| -> String {
        let mut is_judge = false;
        let mut found = String::new();
        for line in text.lines() {
            if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                is_judge = keys.iter().any(|key| match key.strip_suffix('*') {
                    Some(begin) => name.trim().starts_with(begin),
                    None => name.trim() == key,
                });
            }
            if is_judge == wanted {
                found.extend([line, "\n"]);
            }
        }
        found
    };
    // Behind the file, since the place where a section stood may be gone. Only its name counts.
    lines(end, false) + &lines(start, true)
}

/// Puts each part of the start in the place of the one that follows as many others at the end.
fn one_by_one(start: &str, end: &str, ranges: &dyn Fn(&str) -> Vec<Range<usize>>) -> Option<String> {
    let (old, new) = (ranges(start), ranges(end));
    // As many as before, so each knows its place. With more or fewer, which belongs to which is a
    // guess.
    if old.len() != new.len() {
        return None;
    }
    let (start, end): (Vec<&str>, Vec<&str>) = (start.lines().collect(), end.lines().collect());
    let mut whole = String::new();
    let mut at = 0;
    for (old, new) in old.into_iter().zip(new) {
        for line in end[at..new.start].iter().chain(&start[old]) {
            whole.extend([line, "\n"]);
        }
        at = new.end;
    }
    for line in &end[at..] {
        whole.extend([line, "\n"]);
    }
    Some(whole)
}

/// Takes all parts away, and puts those of the start behind the file: where none of them is a part of something else.
fn at_the_end(start: &str, end: &str, ranges: &dyn Fn(&str) -> Vec<Range<usize>>) -> Option<String> {
    let (old, new) = (ranges(start), ranges(end));
    let (start, end): (Vec<&str>, Vec<&str>) = (start.lines().collect(), end.lines().collect());
    // Within something else, such as a class, a block at the end of the file would be another
    // thing.
    let is_outermost = |lines: &[&str], range: &Range<usize>| !lines[range.start].starts_with([' ', '\t']);
    let are_outermost = old.iter().all(|range| is_outermost(&start, range))
        && new.iter().all(|range| is_outermost(&end, range));
    if !are_outermost {
        return None;
    }
    let work = end.iter().enumerate().filter(|(at, _)| !new.iter().any(|range| range.contains(at)));
    let judges = old.into_iter().flat_map(|range| &start[range]);
    Some(work.map(|(_, line)| line).chain(judges).flat_map(|line| [line, "\n"]).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::judge_catalog::CATALOG;
    use super::*;

    #[test]
    fn each_row_puts_the_parts_of_its_examples_back() {
        let mut count = 0;
        for row in &CATALOG.sections {
            let wanted = PartSelection::of_section(row, None);
            for [start, end] in &row.examples {
                if matches!(row.format, PartFormat::Json | PartFormat::Toml | PartFormat::Ini) {
                    assert!(put_back(start, end, &wanted).is_some(), "{}: {end}", row.what);
                    count += 1;
                }
            }
        }
        for row in &CATALOG.inside {
            let language = CATALOG.languages.iter().find(|language| language.name == row.language).unwrap();
            for [start, end] in &row.examples {
                assert!(put_back(start, end, &PartSelection::of_tests(row, language)).is_some(), "{end}");
                count += 1;
            }
        }
        assert!(count > 10);
    }

    #[test]
    fn the_work_around_judges_stays() {
        let rust = CATALOG.inside.iter().find(|row| row.language == "rust").unwrap();
        let tests = PartSelection::of_tests(rust, CATALOG.language("a.rs").unwrap());
        let keys: Vec<String> = ["tool.ruff", "bin.*.test"].map(str::to_owned).into();
        let of_format = |format| PartSelection { format, keys: &keys, pattern: None, language: None };
        let json = of_format(PartFormat::Json);
        for (start, end, wanted, expected) in [
            (
                "fn a() { 1 }\n#[cfg(test)]\nmod tests {\n  old\n}\n",
                "fn a() { 2 }\n#[cfg(test)]\nmod tests {\n  new\n}\nfn b() {}\n",
                &tests,
                "fn a() { 2 }\n#[cfg(test)]\nmod tests {\n  old\n}\nfn b() {}\n",
            ),
            ("a\n#[cfg(test)]\nmod tests {\n}\n", "b\n", &tests, "b\n#[cfg(test)]\nmod tests {\n}\n"),
            ("a\n", "b\n#[cfg(test)]\nmod tests {\n}\n", &tests, "b\n"),
            (
                "{\"tool\":{\"ruff\":1,\"b\":2}}",
                "{\"version\":3,\"tool\":{\"ruff\":2,\"b\":4}}",
                &json,
                "{\n  \"version\": 3,\n  \"tool\": {\n    \"ruff\": 1,\n    \"b\": 4\n  }\n}\n",
            ),
        ] {
            let found = put_back(start, end, wanted).unwrap();
            let same = |text: &str| serde_json::from_str::<Value>(text).ok();
            assert!(
                found == expected || (same(&found).is_some() && same(&found) == same(expected)),
                "{found}"
            );
        }
        let found = put_back(
            "[[bin]]\nname = 'a'\ntest = true\n",
            "[package]\nversion = '2'\n[tool.ruff]\nignore = ['ALL']\n[[bin]]\nname = 'b'\ntest = false\n",
            &of_format(PartFormat::Toml),
        );
        let found: toml::Table = toml::from_str(&found.unwrap()).unwrap();
        assert_eq!(found["package"]["version"].as_str(), Some("2"));
        assert_eq!(found["bin"][0]["test"].as_bool(), Some(true));
        assert!(found["tool"].get("ruff").is_none());
    }

    proptest! {
        #[test]
        fn what_is_put_together_says_what_the_start_said(
            pieces in prop::collection::vec(
                (prop::sample::select(vec![
                    "fn a() {}\n", "#[cfg(test)]\nmod tests {\n", "  #[test]\n", "}\n", "\"\n", "/*\n", "*/\n", "é\n",
                ]), any::<bool>()),
                0..12,
            ),
        ) {
            let of = |which: bool| -> String {
                pieces.iter().filter(|(_, one)| *one == which).map(|(piece, _)| *piece).collect()
            };
            let (start, end) = (of(true), of(false));
            let rust = CATALOG.inside.iter().find(|row| row.language == "rust").unwrap();
            let wanted = PartSelection::of_tests(rust, CATALOG.language("a.rs").unwrap());
            if let Some(whole) = put_back(&start, &end, &wanted) {
                prop_assert_eq!(parts(&whole, &wanted), parts(&start, &wanted));
            }
        }
    }
}
