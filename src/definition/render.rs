//! Findings as people read them, with the lines they are about, and as JSON: the only file that names the library
//! that draws them.

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};

use super::source_text::{SourceFile, Sources};
use crate::base::diagnostic::{Diagnostic, Diagnostics, FindingPlace, Repair, Severity};
use crate::base::node::{FileId, Node, Span};
use crate::base::text::screen;

/// The most findings that are shown; the rest is counted.
const MAX_SHOWN: usize = 100;

/// More findings than this do not even help a program.
const MAX_LISTED: usize = 1_000;

/// Lines longer than this are not drawn but named.
const MAX_LINE: usize = 2_000;

/// Two places this far apart are drawn apart.
const MAX_WINDOW: usize = 200;

/// Draws findings, each with its place, the place that explains it, and its advice, and a blank line between them.
pub fn to_text(findings: &Diagnostics, sources: &Sources, tree: Option<&Node>, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let placed = in_order(findings, sources, tree);
    let shown = placed.iter().take(MAX_SHOWN);
    let mut drawn: Vec<String> =
        shown.map(|(finding, span)| draw(finding, span.as_ref(), sources, tree, &renderer)).collect();
    let rest = findings.total() - drawn.len();
    if rest > 0 {
        drawn.push(format!("… and {rest} more"));
    }
    drawn.join("\n\n")
}

/// Returns the findings as they come in the file, each with its place; first those about a file as a whole.
fn in_order<'f>(
    findings: &'f Diagnostics,
    sources: &Sources,
    tree: Option<&Node>,
) -> Vec<(&'f Diagnostic, Option<Span>)> {
    let mut placed: Vec<_> = findings
        .iter()
        .take(MAX_LISTED)
        .map(|finding| (finding, sources.locate(&finding.place, tree)))
        .collect();
    placed.sort_by_key(|(_, span)| span.as_ref().map(|span| (span.file, span.range.start)));
    placed
}

fn draw(
    finding: &Diagnostic,
    main: Option<&Span>,
    sources: &Sources,
    tree: Option<&Node>,
    renderer: &Renderer,
) -> String {
    let level = match finding.severity {
        Severity::Note => Level::NOTE,
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    // Messages quote the file, which may hold sequences that a terminal would obey.
    let message = screen(&finding.message);
    let mut group = Group::with_title(level.primary_title(&*message).id(finding.code));
    let related = finding
        .related
        .as_ref()
        .and_then(|(place, remark)| sources.locate(place, tree).map(|span| (span, remark.as_str())));
    // A finding about no place is about the file that was asked for.
    let file = main.map_or(FileId(0), |span| span.file);
    match (main, sources.get(file)) {
        (Some(span), Some(source)) => {
            let mut marks = vec![(span.clone(), AnnotationKind::Primary, finding.label.as_deref())];
            let mut apart = None;
            if let Some((span, remark)) = related {
                if near(source, &marks[0].0, &span) {
                    marks.push((span, AnnotationKind::Context, Some(remark)));
                } else {
                    apart = Some((span, AnnotationKind::Context, Some(remark)));
                }
            }
            group = snippet(group, source, &marks);
            if let Some(mark) = apart
                && let Some(source) = sources.get(mark.0.file)
            {
                group = snippet(group, source, &[mark]);
            }
        }
        (None, Some(source)) => group = group.element(Origin::path(source.name()).line(1).char_column(1)),
        (_, None) => {}
    }
    let help = finding.help.as_deref().map(screen);
    if let Some(help) = &help {
        group = group.element(Level::HELP.message(&**help));
    }
    renderer.render(&[group])
}

type Mark<'a> = (Span, AnnotationKind, Option<&'a str>);

fn near(source: &SourceFile, main: &Span, other: &Span) -> bool {
    let line = |span: &Span| source.position(span.range.start).line;
    main.file == other.file && line(main).abs_diff(line(other)) <= MAX_WINDOW
}

/// Draws the lines of the marks; only these lines are handed over, for the file may be large.
fn snippet<'a>(group: Group<'a>, source: &'a SourceFile, marks: &[Mark<'a>]) -> Group<'a> {
    let lines = marks.iter().map(|(span, ..)| source.position(span.range.start).line);
    let (first, last) = lines.fold((usize::MAX, 1), |(first, last), line| (first.min(line), last.max(line)));
    let window = source.lines(first..=last);
    let text = &source.text()[window.clone()];
    if text.lines().any(|line| line.len() > MAX_LINE) {
        let position = source.position(marks[0].0.range.start);
        let origin = Origin::path(source.name()).line(position.line).char_column(position.column);
        return group.element(origin);
    }
    let annotations = marks.iter().map(|(span, kind, label)| {
        let at = |byte: usize| byte.clamp(window.start, window.end) - window.start;
        let annotation: Annotation<'a> = kind.span(at(span.range.start)..at(span.range.end));
        annotation.label(*label)
    });
    group.element(Snippet::source(text).path(source.name()).line_start(first).annotations(annotations))
}

/// Returns one object a finding, with the path of the keys that it is about.
pub fn with_paths(findings: &Diagnostics, sources: &Sources, tree: Option<&Node>) -> Vec<(String, Value)> {
    let placed = in_order(findings, sources, tree).into_iter();
    placed.map(|(finding, span)| (path(&finding.place), object(finding, span, sources, tree))).collect()
}

fn path(place: &FindingPlace) -> String {
    match place {
        FindingPlace::Value(path) | FindingPlace::Key(path) | FindingPlace::Within(path, _) => {
            path.to_string()
        }
        FindingPlace::Bytes(_) | FindingPlace::At(_) | FindingPlace::File => String::new(),
    }
}

/// A finding as an object, with the bytes that it is about.
pub struct PlacedFinding {
    /// Its code.
    pub code: &'static str,
    /// What it says.
    pub message: String,
    /// The object, as [`to_json`] returns it.
    pub object: Value,
    /// Where it is; a file as a whole is its first character.
    pub span: Span,
    /// What explains it, with a remark.
    pub related: Option<(Span, String)>,
    /// What takes it away, where there is one answer.
    pub repair: Option<Repair>,
    /// Other edits that take it away.
    pub choices: Vec<Repair>,
}

/// Returns what [`to_json`] does, with places for programs that do not count characters.
pub fn placed(findings: &Diagnostics, sources: &Sources, tree: Option<&Node>) -> Vec<PlacedFinding> {
    let whole = || Span { file: FileId(0), range: 0..0 };
    let place = |(finding, span): (&Diagnostic, Option<Span>)| PlacedFinding {
        code: finding.code,
        message: finding.message.clone(),
        object: object(finding, span.clone(), sources, tree),
        span: span.unwrap_or_else(whole),
        related: finding
            .related
            .as_ref()
            .map(|(at, remark)| (sources.locate(at, tree).unwrap_or_else(whole), remark.clone())),
        repair: finding.repair.clone(),
        choices: finding.choices.clone(),
    };
    let mut all: Vec<PlacedFinding> = in_order(findings, sources, tree).into_iter().map(place).collect();
    all.extend(rest(findings.total() - all.len()).map(|message| PlacedFinding {
        code: MORE,
        object: counted(&message),
        message,
        span: whole(),
        related: None,
        repair: None,
        choices: Vec::new(),
    }));
    all
}

/// The code of what stands for findings that are only counted.
const MORE: &str = "more";

/// Says how many findings are only counted, if there are any.
fn rest(count: usize) -> Option<String> {
    (count > 0).then(|| format!("there are {count} more"))
}

/// Returns the object for findings that are only counted.
fn counted(message: &str) -> Value {
    json!({"code": MORE, "severity": "note", "message": message})
}

/// Returns one object a finding; after the first thousand, one for the rest.
pub fn to_json(findings: &Diagnostics, sources: &Sources, tree: Option<&Node>) -> Vec<Value> {
    let mut objects: Vec<Value> =
        with_paths(findings, sources, tree).into_iter().map(|(_, object)| object).collect();
    objects.extend(rest(findings.total() - objects.len()).map(|message| counted(&message)));
    objects
}

fn object(finding: &Diagnostic, span: Option<Span>, sources: &Sources, tree: Option<&Node>) -> Value {
    let severity = match finding.severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    };
    let mut object = json!({"code": finding.code, "severity": severity, "message": finding.message});
    place(&mut object, span, sources);
    if let Some(label) = &finding.label {
        object["label"] = label.as_str().into();
    }
    if let Some(help) = &finding.help {
        object["help"] = help.as_str().into();
    }
    if let Some((at, remark)) = &finding.related {
        let mut related = json!({"message": remark});
        place(&mut related, sources.locate(at, tree), sources);
        object["related"] = related;
    }
    object
}

/// Adds the file, and line and column of the beginning and the end; a file as a whole is its first character.
fn place(object: &mut Value, span: Option<Span>, sources: &Sources) {
    let span = span.unwrap_or(Span { file: FileId(0), range: 0..0 });
    if let Some(source) = sources.get(span.file) {
        let (start, end) = (source.position(span.range.start), source.position(span.range.end));
        object["file"] = source.name().into();
        object["line"] = start.line.into();
        object["column"] = start.column.into();
        object["end_line"] = end.line.into();
        object["end_column"] = end.column.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::load;

    fn rejected(text: &str) -> Box<load::Rejected> {
        load::decode(".loops/demo.yaml", text, String::new()).unwrap_err()
    }

    fn drawn(text: &str) -> String {
        let load::Rejected { findings, sources, tree, .. } = *rejected(text);
        to_text(&findings, &sources, tree.as_ref(), false)
    }

    const WRONG: &str = "name: demo
initial: fix
timeout: 0
states:
  fix:
    action: |
      echo start
      echo ${contxt.x}
    on_sucess: done
    timout: 5
  done:
    terminal: yes
    terminal: true
";

    #[test]
    fn findings_are_drawn_where_they_are() {
        insta::assert_snapshot!(drawn(WRONG), @r#"
        error[duration]: `timeout` must be more than zero
         --> .loops/demo.yaml:3:10
          |
        3 | timeout: 0
          |          ^
          |
          = help: write seconds (`90`, `0.5`) or a duration (`250ms`, `5m`, `1h30m`)

        error[template]: unknown namespace `contxt`
         --> .loops/demo.yaml:8:12
          |
        8 |       echo ${contxt.x}
          |            ^^^^^^^^^^^
          |
          = help: did you mean `context`?

        error[unknown-key]: unknown key `timout`
          --> .loops/demo.yaml:10:5
           |
        10 |     timout: 5
           |     ^^^^^^
           |
           = help: did you mean `timeout`?

        error[wrong-type]: `terminal` must be `true` or `false`, not the text `yes`
          --> .loops/demo.yaml:12:15
           |
        12 |     terminal: yes
           |               ^^^
           |
           = help: write `true`

        error[duplicate-key]: the key `terminal` stands twice in one mapping
          --> .loops/demo.yaml:13:5
           |
        12 |     terminal: yes
           |     -------- it stands here first
        13 |     terminal: true
           |     ^^^^^^^^
           |
           = help: remove one, or give it another name
        "#);
    }

    #[test]
    fn a_file_without_places_is_named() {
        insta::assert_snapshot!(drawn("name: x\ninitial: a\n"), @r#"
        error[missing-key]: the key `states` is missing
        --> .loops/demo.yaml:1:1
        "#);
        insta::assert_snapshot!(drawn(""), @r#"
        error[empty-file]: the file is empty
        --> .loops/demo.yaml:1:1
         = help: a loop needs at least `name:`, `initial:` and `states:`
        "#);
    }

    #[test]
    fn broken_syntax_is_drawn() {
        insta::assert_snapshot!(drawn("a: 'b"), @r#"
        error[yaml-syntax]: a quote is not closed
         --> .loops/demo.yaml:1:4
          |
        1 | a: 'b
          |    ^
          |
          = help: end the text with the quote it begins with
        "#);
    }

    #[test]
    fn json_has_lines_and_columns() {
        let load::Rejected { findings, sources, tree, .. } =
            *rejected("name: x\ninitial: a\nstates: {}\nname: é\nshel: sh\n");
        let json = serde_json::to_string_pretty(&to_json(&findings, &sources, tree.as_ref())).unwrap();
        insta::assert_snapshot!(json, @r#"
        [
          {
            "code": "duplicate-key",
            "severity": "error",
            "message": "the key `name` stands twice in one mapping",
            "file": ".loops/demo.yaml",
            "line": 4,
            "column": 1,
            "end_line": 4,
            "end_column": 5,
            "help": "remove one, or give it another name",
            "related": {
              "message": "it stands here first",
              "file": ".loops/demo.yaml",
              "line": 1,
              "column": 1,
              "end_line": 1,
              "end_column": 5
            }
          },
          {
            "code": "unknown-key",
            "severity": "error",
            "message": "unknown key `shel`",
            "file": ".loops/demo.yaml",
            "line": 5,
            "column": 1,
            "end_line": 5,
            "end_column": 5,
            "help": "did you mean `shell`?"
          }
        ]
        "#);
    }

    #[test]
    fn long_lines_and_many_findings_are_not_drawn_in_full() {
        let long = format!("name: x\ninitial: a\nstates: {{}}\nshel: {}\n", "x ".repeat(3_000));
        insta::assert_snapshot!(drawn(&long).lines().take(2).collect::<Vec<_>>().join("\n"), @r#"
        error[unknown-key]: unknown key `shel`
        --> .loops/demo.yaml:4:1
        "#);
        let many = (0..10_000).fold(String::new(), |text, i| text + &format!("k{i}: 1\n"));
        let shown = drawn(&format!("name: x\ninitial: a\nstates: {{}}\n{many}"));
        assert!(shown.ends_with("… and 9900 more"), "{}", &shown[shown.len() - 100..]);
    }

    #[test]
    fn line_ends_of_windows_and_wide_characters_do_no_harm() {
        insta::assert_snapshot!(drawn("\u{feff}name: x\r\ninitial: a\r\nstätes: {a: 1}\r\n"), @r#"
        error[unknown-key]: unknown key `stätes`
         --> .loops/demo.yaml:3:1
          |
        3 | stätes: {a: 1}
          | ^^^^^^
          |
          = help: did you mean `states`?
        "#);
    }
}
