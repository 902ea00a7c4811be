//! Parts of a file that are judges, where the rest is work: tables of a configuration, rules of a Makefile, blocks of
//! tests. Each format yields a list of texts, and two lists are compared; how a file is laid out counts for nothing.

use std::ops::Range;

use regex::Regex;
use serde_json::Value;

use super::judge_catalog::{InsideRow, Language, PartFormat, SectionRow};
use super::makefile;
use super::source_lines::source_lines;

/// What decides which parts of a file count.
pub(super) struct PartSelection<'a> {
    pub(super) format: PartFormat,
    pub(super) keys: &'a [String],
    pub(super) pattern: Option<&'a Regex>,
    pub(super) language: Option<&'a Language>,
}

impl<'a> PartSelection<'a> {
    /// The parts that a row of shared files names.
    pub(super) fn of_section(row: &'a SectionRow, language: Option<&'a Language>) -> Self {
        let pattern = row.pattern.as_deref();
        Self { format: row.format, keys: &row.keys, pattern, language }
    }

    /// The tests that a row of sources names.
    pub(super) fn of_tests(row: &'a InsideRow, language: &'a Language) -> Self {
        Self { format: row.format, keys: &[], pattern: Some(&row.pattern), language: Some(language) }
    }
}

/// Returns the parts of a file that are wanted, in their order; none where the file does not have the format that its name promises.
pub(super) fn parts(text: &str, wanted: &PartSelection<'_>) -> Option<Vec<String>> {
    match (wanted.format, wanted.pattern) {
        (PartFormat::Toml, _) => {
            let table: toml::Table = toml::from_str(text).ok()?;
            Some(of_value(&serde_json::to_value(table).ok()?, wanted.keys))
        }
        (PartFormat::Json, _) => Some(of_value(&serde_json::from_str(text).ok()?, wanted.keys)),
        (PartFormat::Ini, _) => Some(of_ini(text, wanted.keys)),
        (PartFormat::Make, _) => Some(makefile::rules(text, wanted.keys)),
        (PartFormat::Lines, Some(pattern)) => {
            let lines = text.lines().filter(|line| pattern.is_match(line));
            Some(lines.map(collapsed).collect())
        }
        (PartFormat::Blocks, Some(pattern)) => Some(blocks(text, pattern, wanted.language)),
        (PartFormat::Fences, Some(pattern)) => Some(fences(text, pattern)),
        (PartFormat::Prompts, Some(pattern)) => Some(prompts(text, pattern)),
        (PartFormat::Lines | PartFormat::Blocks | PartFormat::Fences | PartFormat::Prompts, None) => None,
    }
}

/// Tells whether one list is the other with more in between.
pub(super) fn is_grown<T: PartialEq>(start: &[T], end: &[T]) -> bool {
    let mut rest = end.iter();
    start.iter().all(|part| rest.any(|other| other == part))
}

fn collapsed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what stands at keys such as `tool.ruff` or `bin.*.test`.
fn of_value(value: &Value, keys: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for key in keys {
        let way: Vec<&str> = key.split('.').collect();
        at_key(value, &way, &mut String::new(), &mut found);
    }
    found
}

fn at_key(value: &Value, way: &[&str], at: &mut String, found: &mut Vec<String>) {
    let Some((first, rest)) = way.split_first() else {
        // Items of a list are parts of their own, so that more of them can be told from less.
        match value {
            // So that a list that only grew can be told from one that lost an item.
            Value::Array(items) => found.extend(items.iter().map(|item| format!("{at} = {item}"))),
            Value::Object(entries) if !entries.is_empty() => {
                let mut entries: Vec<_> =
                    entries.iter().map(|(key, item)| format!("{at}.{key} = {item}")).collect();
                // Keys of a mapping have no order that means anything.
                entries.sort();
                found.extend(entries);
            }
            Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                found.push(format!("{at} = {value}"));
            }
        }
        return;
    };
    let length = at.len();
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(entries) => {
            let wanted = entries.iter().filter(|(key, _)| *first == "*" || key == first);
            wanted.map(|(key, item)| (key.clone(), item)).collect()
        }
        Value::Array(items) if *first == "*" => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    for (key, item) in entries {
        at.push('.');
        at.push_str(&key);
        at_key(item, rest, at, found);
        at.truncate(length);
    }
}

/// Returns the lines of sections, each with the name of its section.
fn of_ini(text: &str, keys: &[String]) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for line in text.lines() {
        let plain = line.trim();
        if let Some(name) = plain.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim();
        }
        let is_wanted = keys.iter().any(|key| match key.strip_suffix('*') {
            Some(start) => section.starts_with(start),
            None => section == key,
        });
        if !is_wanted || plain.is_empty() || plain.starts_with(['#', ';']) {
            continue;
        }
        let value = match plain.split_once('=') {
            Some((key, value)) => format!("{}={}", key.trim(), value.trim()),
            None => plain.to_owned(),
        };
        found.push(format!("{section}: {value}"));
    }
    found
}

/// Returns the lines of blocks.
fn blocks(text: &str, pattern: &Regex, language: Option<&Language>) -> Vec<String> {
    let written: Vec<&str> = text.lines().collect();
    let lines = block_ranges(text, pattern, language).into_iter().flat_map(|range| &written[range]);
    lines.map(|line| collapsed(line)).filter(|line| !line.is_empty()).collect()
}

/// Returns where blocks stand, by lines: from one that the pattern finds to the bracket or tag that closes it.
pub(super) fn block_ranges(text: &str, pattern: &Regex, language: Option<&Language>) -> Vec<Range<usize>> {
    let written: Vec<&str> = text.lines().collect();
    // Brackets within texts and comments close nothing.
    let bare: Vec<String> = match language {
        Some(language) => source_lines(text, language).into_iter().map(|line| line.bare).collect(),
        None => written.iter().map(|line| (*line).to_owned()).collect(),
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < bare.len().min(written.len()) {
        let Some(begin) = pattern.find(&bare[at]) else {
            at += 1;
            continue;
        };
        let end = match tag(begin.as_str()) {
            Some(name) => end_of_tag(&written, at, name),
            None => end_of_braces(&bare, at, begin.start()),
        };
        found.push(at..end.min(written.len() - 1) + 1);
        at = end + 1;
    }
    found
}

fn tag(begin: &str) -> Option<&str> {
    // Components of markup keep scripts and tests within tags.
    begin.strip_prefix('<')
}

fn end_of_tag(lines: &[&str], from: usize, name: &str) -> usize {
    let close = format!("</{name}");
    let end = (from..lines.len()).find(|at| lines[*at].contains(&close));
    end.unwrap_or(from)
}

/// Returns the line in which the braces are closed that are opened from a place on. What ends before one is opened is a
/// block of its own.
fn end_of_braces(lines: &[String], from: usize, column: usize) -> usize {
    let (mut depth, mut brackets, mut is_open) = (0_usize, 0_usize, false);
    for (at, line) in lines.iter().enumerate().skip(from) {
        let line = if at == from { line.get(column..).unwrap_or("") } else { line.as_str() };
        for sign in line.chars() {
            match sign {
                '{' => (depth, is_open) = (depth + 1, true),
                '}' => depth = depth.saturating_sub(1),
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                // A declaration such as `mod tests;` ends before any brace.
                ';' if !is_open && brackets == 0 => return at,
                _ => {}
            }
            if is_open && depth == 0 {
                return at;
            }
        }
    }
    // Never closed: the rest of the file may be part of it.
    if is_open { lines.len() - 1 } else { from }
}

/// Returns the lines of examples in comments.
fn fences(text: &str, pattern: &Regex) -> Vec<String> {
    let written: Vec<&str> = text.lines().collect();
    fence_ranges(text, pattern)
        .into_iter()
        .flat_map(|range| &written[range])
        .map(|line| collapsed(line))
        .collect()
}

/// Returns where examples in comments stand, from fence to fence.
pub(super) fn fence_ranges(text: &str, pattern: &Regex) -> Vec<Range<usize>> {
    let mut open = None;
    let mut found = Vec::new();
    let mut count = 0;
    for (at, line) in text.lines().enumerate() {
        count = at + 1;
        if pattern.is_match(line) {
            match open.take() {
                Some(begin) => found.push(begin..at + 1),
                None => open = Some(at),
            }
        }
    }
    found.extend(open.map(|begin| begin..count));
    found
}

/// Returns the lines behind prompts, and what is expected below them.
fn prompts(text: &str, pattern: &Regex) -> Vec<String> {
    let written: Vec<&str> = text.lines().collect();
    let lines = prompt_ranges(text, pattern).into_iter().flat_map(|range| &written[range]);
    lines.map(|line| line.trim().to_owned()).collect()
}

/// Returns where prompts stand, with what is expected below them.
pub(super) fn prompt_ranges(text: &str, pattern: &Regex) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut is_inside = false;
    for (at, line) in text.lines().enumerate() {
        // A blank line or the end of the docstring ends what is expected.
        let ends = line.trim().is_empty() || line.contains("\"\"\"") || line.contains("'''");
        let goes_on = is_inside && !ends;
        is_inside = pattern.is_match(line) || goes_on;
        match found.last_mut() {
            Some(last) if is_inside && last.end == at => last.end = at + 1,
            _ if is_inside => found.push(at..at + 1),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::judge_catalog::CATALOG;
    use super::*;

    #[test]
    fn each_row_of_sections_tells_its_examples_apart() {
        for row in &CATALOG.sections {
            // Which rules of a Makefile count is for the commands of checks to say.
            let keys =
                if row.format == PartFormat::Make { vec!["test".to_owned()] } else { row.keys.clone() };
            let changed = |[start, end]: &[String; 2]| {
                let wanted = PartSelection { keys: &keys, ..PartSelection::of_section(row, None) };
                let (start, end) = (parts(start, &wanted).unwrap(), parts(end, &wanted).unwrap());
                if row.grows { !is_grown(&start, &end) } else { start != end }
            };
            for example in &row.examples {
                assert!(changed(example), "{} of {}: {example:?}", row.what, row.ecosystem);
            }
            for other in &row.others {
                assert!(!changed(other), "{}: {other:?}", row.what);
            }
            assert!(!row.examples.is_empty() && !row.others.is_empty(), "{}", row.what);
        }
    }

    #[test]
    fn each_row_of_tests_within_sources_tells_its_examples_apart() {
        for row in &CATALOG.inside {
            let language = CATALOG.languages.iter().find(|language| language.name == row.language).unwrap();
            let changed = |[start, end]: &[String; 2]| {
                let wanted = PartSelection::of_tests(row, language);
                parts(start, &wanted).unwrap() != parts(end, &wanted).unwrap()
            };
            for example in &row.examples {
                assert!(changed(example), "{}: {example:?}", row.what);
            }
            for other in &row.others {
                assert!(!changed(other), "{}: {other:?}", row.what);
            }
            assert!(!row.examples.is_empty() && !row.others.is_empty(), "{}", row.what);
        }
    }
}
