//! A fix as suggestions in the review of a pull request: for forks, which nobody but their owners writes to. GitHub takes
//! a comment only on lines that the pull request's own diff shows, and rejects a whole review for one that is elsewhere;
//! so everything is placed here, before anything is sent.

use std::ops::Range;

use super::change::FileChange;
use crate::base::escape::is_hidden;
use crate::base::object::ObjectId;
use crate::base::text::is_line_end;
use crate::engine::changes::FileMode;
use crate::report::formats::markdown::longest_run;

/// The most comments of one review.
pub const MOST: usize = 50;

/// The longest comment in bytes. GitHub takes 65,536 characters.
const MAX_BODY: usize = 60_000;

/// Lines of two versions of a file that correspond, counted from zero. Where one of them has none, its range is empty
/// and stands where they would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The lines before.
    pub old: Range<usize>,
    /// The lines after.
    pub new: Range<usize>,
}

/// Reads the hunks of one file's unified diff, up to where it stops to be one: what is cut off shows no lines.
pub fn hunks(diff: &[u8]) -> Vec<Hunk> {
    let mut lines = diff.split(|byte| *byte == b'\n').peekable();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(mut hunk) = header(line) else { continue };
        let (mut old, mut new) = (hunk.old.len(), hunk.new.len());
        while old > 0 || new > 0 {
            let kind = lines.peek().and_then(|line| line.first().copied());
            match kind {
                Some(b' ') if old > 0 && new > 0 => (old, new) = (old - 1, new - 1),
                Some(b'-') if old > 0 => old -= 1,
                Some(b'+') if new > 0 => new -= 1,
                Some(b'\\') => {}
                Some(_) | None => break,
            }
            lines.next();
        }
        let is_whole = old == 0 && new == 0;
        hunk.old.end -= old;
        hunk.new.end -= new;
        found.push(hunk);
        if !is_whole {
            break;
        }
    }
    found
}

/// Reads `@@ -1,2 +3,4 @@`, behind which anything may stand.
fn header(line: &[u8]) -> Option<Hunk> {
    let line = std::str::from_utf8(line.get(..line.len().min(100))?)
        .or_else(|error| std::str::from_utf8(&line[..error.valid_up_to()]))
        .ok()?;
    let (ranges, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    Some(Hunk { old: range(old)?, new: range(new)? })
}

fn range(text: &str) -> Option<Range<usize>> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    let (start, count): (usize, usize) = (start.parse().ok()?, count.parse().ok()?);
    // No lines are named by the line before them, some by the first of them.
    let start = if count == 0 { start } else { start.checked_sub(1)? };
    Some(start..start.checked_add(count)?)
}

/// A file of a pull request, as its diff shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullFile {
    /// Its path at the head.
    pub path: String,
    /// Its content at the head, as far as the server says it.
    pub id: Option<ObjectId>,
    /// What is shown of it.
    pub hunks: Vec<Hunk>,
}

/// Why a change cannot be a suggestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotSuggested {
    /// The diff of the pull request does not show these lines.
    Outside,
    /// The file is new.
    Added,
    /// The file goes.
    Deleted,
    /// It is not a file of text that stays one: its mode changes, or it is a link.
    Mode,
    /// It is not text.
    Binary,
    /// Lines end as on Windows, which a comment does not keep.
    LineEnds,
    /// The last line has no end, which a comment cannot say.
    LastLine,
    /// It has characters that a reader of the comment does not see.
    Hidden,
    /// It is longer than a comment.
    TooLong,
    /// There are [`MOST`] already.
    TooMany,
}

impl NotSuggested {
    /// Says it behind the name of a file.
    pub fn words(self) -> &'static str {
        match self {
            Self::Outside => "outside of the lines that the pull request shows",
            Self::Added => "a new file",
            Self::Deleted => "a deleted file",
            Self::Mode => "a change of mode, or a link",
            Self::Binary => "not text",
            Self::LineEnds => "line ends of Windows",
            Self::LastLine => "a last line without an end",
            Self::Hidden => "characters that are not shown",
            Self::TooLong => "too long for a comment",
            Self::TooMany => "more than a review should have",
        }
    }
}

/// A file of the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedFile {
    path: String,
    content: Result<FixedText, NotSuggested>,
}

/// What a fix does to a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FixedText {
    id: ObjectId,
    old: String,
    new: String,
    edits: Vec<Hunk>,
}

impl FixedFile {
    /// Says why a change cannot be suggested, whatever its content is; nothing where that has to be looked at.
    pub fn kind(change: &FileChange) -> Option<NotSuggested> {
        let is_text = |mode| matches!(mode, FileMode::File | FileMode::Executable);
        match (&change.old, &change.new) {
            (None, _) => Some(NotSuggested::Added),
            (_, None) => Some(NotSuggested::Deleted),
            (Some(old), Some(new)) => {
                (old.mode != new.mode || !is_text(old.mode)).then_some(NotSuggested::Mode)
            }
        }
    }

    /// Takes a file that cannot be suggested.
    pub fn unfit(path: &str, why: NotSuggested) -> Self {
        Self { path: path.to_owned(), content: Err(why) }
    }

    /// Takes a file with both of its contents, and their diff without lines around (`git diff -U0`).
    pub fn new(path: &str, id: &ObjectId, old: Vec<u8>, new: Vec<u8>, diff: &[u8]) -> Self {
        let content = (|| {
            let text = |bytes| String::from_utf8(bytes).map_err(|_| NotSuggested::Binary);
            let (old, new) = (text(old)?, text(new)?);
            if old.contains('\0') || new.contains('\0') {
                return Err(NotSuggested::Binary);
            }
            if old.contains('\r') || new.contains('\r') {
                return Err(NotSuggested::LineEnds);
            }
            let edits = hunks(diff);
            // A diff that does not lead from one to the other would suggest something else than what was verified.
            if edited(&lines(&old), &lines(&new), &edits).as_deref() != Some(new.as_str()) {
                return Err(NotSuggested::Binary);
            }
            Ok(FixedText { id: id.clone(), old, new, edits })
        })();
        Self { path: path.to_owned(), content }
    }
}

/// Makes edits to a text. They have to be in order, and within it.
fn edited(old: &[&str], new: &[&str], edits: &[Hunk]) -> Option<String> {
    let mut out = String::new();
    let mut at = 0;
    for edit in edits {
        out.extend(old.get(at..edit.old.start)?.iter().copied());
        out.extend(new.get(edit.new.clone())?.iter().copied());
        at = edit.old.end;
    }
    out.extend(old.get(at..)?.iter().copied());
    Some(out)
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Lines at the head of a pull request, and what is suggested in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The file.
    pub path: String,
    /// The first of the lines, counted from 1.
    pub first: usize,
    /// The last of them.
    pub last: usize,
    /// Whole lines; none where they are to go.
    replacement: String,
}

impl Suggestion {
    /// Returns the comment, in Markdown.
    pub fn body(&self) -> String {
        let fence = "`".repeat(longest_run(&self.replacement).max(2) + 1);
        format!("{fence}suggestion\n{}{fence}", self.replacement)
    }
}

/// What of a file is not suggested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftChange {
    /// The file.
    pub path: String,
    /// Why.
    pub why: NotSuggested,
    /// How many changes these are.
    pub count: usize,
}

/// A fix, as a review can show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suggestions {
    /// The comments, in the order of files and lines.
    pub comments: Vec<Suggestion>,
    /// What is not in them.
    pub rest: Vec<LeftChange>,
}

/// Changes that are to be one suggestion.
struct SuggestionGroup {
    /// The hunk of the pull request that they are in.
    hunk: usize,
    /// The lines that are replaced: at least one.
    lines: Range<usize>,
    edits: Vec<Hunk>,
}

impl Suggestions {
    /// Places a fix in the diff of a pull request.
    pub fn new(fix: &[FixedFile], shown: &[PullFile]) -> Self {
        let mut made = Self::default();
        for file in fix {
            let text = match &file.content {
                Ok(text) => text,
                Err(why) => {
                    made.leave(&file.path, *why, 1);
                    continue;
                }
            };
            let is_it = |shown: &&PullFile| shown.path == file.path && shown.id.as_ref() == Some(&text.id);
            match shown.iter().find(is_it) {
                Some(shown) => made.place(&file.path, text, &shown.hunks),
                None => made.leave(&file.path, NotSuggested::Outside, text.edits.len()),
            }
        }
        made
    }

    /// Returns how many changes are not suggested.
    pub fn left(&self) -> usize {
        self.rest.iter().map(|left| left.count).sum()
    }

    fn place(&mut self, path: &str, text: &FixedText, hunks: &[Hunk]) {
        let (old, new) = (lines(&text.old), lines(&text.new));
        let mut groups: Vec<SuggestionGroup> = Vec::new();
        for edit in &text.edits {
            let Some((hunk, lines)) = anchored(&edit.old, hunks) else {
                self.leave(path, NotSuggested::Outside, 1);
                continue;
            };
            match groups.last_mut().filter(|last| last.hunk == hunk && last.lines.end >= lines.start) {
                Some(last) => {
                    last.lines = last.lines.start.min(lines.start)..last.lines.end.max(lines.end);
                    last.edits.push(edit.clone());
                }
                None => groups.push(SuggestionGroup { hunk, lines, edits: vec![edit.clone()] }),
            }
        }
        for group in groups {
            match group.replacement(&old, &new) {
                Ok(_) if self.comments.len() == MOST => {
                    self.leave(path, NotSuggested::TooMany, group.edits.len());
                }
                Ok(replacement) => self.comments.push(Suggestion {
                    path: path.to_owned(),
                    first: group.lines.start + 1,
                    last: group.lines.end,
                    replacement,
                }),
                Err(why) => self.leave(path, why, group.edits.len()),
            }
        }
    }

    fn leave(&mut self, path: &str, why: NotSuggested, count: usize) {
        match self.rest.iter_mut().rfind(|left| left.path == path && left.why == why) {
            Some(left) => left.count += count,
            None => self.rest.push(LeftChange { path: path.to_owned(), why, count }),
        }
    }
}

/// Returns the hunk that shows these lines, and the lines. New lines are shown with one beside them, the one before if
/// it can be seen.
fn anchored(edit: &Range<usize>, hunks: &[Hunk]) -> Option<(usize, Range<usize>)> {
    let shown = |lines: Range<usize>| {
        let is_in = |hunk: &Hunk| hunk.new.start <= lines.start && lines.end <= hunk.new.end;
        Some((hunks.iter().position(is_in)?, lines))
    };
    if !edit.is_empty() {
        return shown(edit.clone());
    }
    let before = edit.start.checked_sub(1).and_then(|before| shown(before..edit.start));
    before.or_else(|| shown(edit.start..edit.start + 1))
}

impl SuggestionGroup {
    /// Returns what stands in the place of its lines in the end.
    fn replacement(&self, old: &[&str], new: &[&str]) -> Result<String, NotSuggested> {
        // A hunk may show lines that the file does not have, if whoever made it is mistaken.
        let here = old.get(..self.lines.end).ok_or(NotSuggested::Outside)?;
        let inside = |at: usize| at - self.lines.start;
        let edits: Vec<Hunk> = self
            .edits
            .iter()
            .map(|edit| Hunk { old: inside(edit.old.start)..inside(edit.old.end), new: edit.new.clone() })
            .collect();
        let replacement = edited(&here[self.lines.start..], new, &edits).ok_or(NotSuggested::Outside)?;
        let is_cut = |text: &str| !text.is_empty() && !text.ends_with('\n');
        if is_cut(&replacement) || here.last().is_some_and(|last| is_cut(last)) {
            return Err(NotSuggested::LastLine);
        }
        if replacement.chars().any(|c| is_hidden(c) || (is_line_end(c) && c != '\n')) {
            return Err(NotSuggested::Hidden);
        }
        if replacement.len() > MAX_BODY {
            return Err(NotSuggested::TooLong);
        }
        Ok(replacement)
    }
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of one hunk, and not of its lines")]
mod tests {
    use std::fmt::Write as _;

    use proptest::prelude::*;

    use super::*;

    const PATH: &str = "src/a b.rs";

    fn id(digit: &str) -> ObjectId {
        ObjectId::parse(&digit.repeat(40)).unwrap()
    }

    /// Writes edits as `git diff -U0` does.
    fn diff(old: &[&str], new: &[&str], edits: &[Hunk]) -> String {
        let mut out = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n".to_owned();
        let at = |range: &Range<usize>| {
            let start = if range.is_empty() { range.start } else { range.start + 1 };
            format!("{start},{}", range.len())
        };
        for edit in edits {
            writeln!(out, "@@ -{} +{} @@ fn f() {{", at(&edit.old), at(&edit.new)).unwrap();
            let sides = [("-", &old[edit.old.clone()]), ("+", &new[edit.new.clone()])];
            for (sign, line) in
                sides.iter().flat_map(|(sign, lines)| lines.iter().map(move |line| (sign, line)))
            {
                out += sign;
                out += line;
                if !line.ends_with('\n') {
                    out += "\n\\ No newline at end of file\n";
                }
            }
        }
        out
    }

    fn fixed(old: &str, new: &str, edits: &[Hunk]) -> FixedFile {
        let diff = diff(&lines(old), &lines(new), edits);
        FixedFile::new(PATH, &id("1"), old.as_bytes().to_vec(), new.as_bytes().to_vec(), diff.as_bytes())
    }

    fn edit(old: Range<usize>, new: Range<usize>) -> Hunk {
        Hunk { old, new }
    }

    /// A file of a pull request that shows these lines, counted from zero.
    fn shown(ranges: &[Range<usize>]) -> PullFile {
        let hunks = ranges.iter().map(|range| edit(0..0, range.clone())).collect();
        PullFile { path: PATH.to_owned(), id: Some(id("1")), hunks }
    }

    /// Returns what stands in a comment, read as Markdown is read.
    fn suggested(body: &str) -> String {
        let mut all = body.split_inclusive('\n');
        let open = all.next().unwrap().trim_end();
        let fence = open.strip_suffix("suggestion").unwrap();
        assert!(fence.len() >= 3 && fence.chars().all(|c| c == '`'), "{body}");
        let is_end = |line: &&str| {
            let inner = line.trim_start_matches(' ');
            let is_indented = line.len() - inner.len() > 3;
            let inner = inner.trim_end();
            !is_indented && inner.len() >= fence.len() && inner.chars().all(|c| c == '`')
        };
        let inside: Vec<&str> = all.by_ref().take_while(|line| !is_end(line)).collect();
        assert_eq!(all.next(), None, "{body}");
        assert!(body.ends_with(fence), "{body}");
        inside.concat()
    }

    /// Applies comments as GitHub does: each stands for its lines of the head.
    fn applied(head: &str, comments: &[Suggestion]) -> String {
        let mut lines: Vec<String> = lines(head).into_iter().map(str::to_owned).collect();
        for comment in comments.iter().rev() {
            assert!(1 <= comment.first && comment.first <= comment.last && comment.last <= lines.len());
            lines.splice(comment.first - 1..comment.last, [suggested(&comment.body())]);
        }
        lines.concat()
    }

    fn of(made: &Suggestions) -> Vec<(usize, usize, String)> {
        made.comments.iter().map(|c| (c.first, c.last, c.body())).collect()
    }

    #[track_caller]
    fn check(
        (old, new): (&str, &str),
        edits: &[Hunk],
        ranges: &[Range<usize>],
        comments: &[(usize, usize, &str)],
        rest: &[(NotSuggested, usize)],
    ) {
        let made = Suggestions::new(&[fixed(old, new, edits)], &[shown(ranges)]);
        let expected: Vec<_> = comments.iter().map(|(a, b, body)| (*a, *b, (*body).to_owned())).collect();
        assert_eq!(of(&made), expected);
        let left: Vec<_> = made.rest.iter().map(|left| (left.why, left.count)).collect();
        assert_eq!(left, rest);
    }

    #[test]
    fn a_change_is_suggested_where_the_pull_request_shows_its_lines() {
        let texts = ("a\nb\nc\nd\n", "a\nB\nc\nd\n");
        let edits = [edit(1..2, 1..2)];
        let comment = [(2, 2, "```suggestion\nB\n```")];
        check(texts, &edits, &[0..3], &comment, &[]);
        check(texts, &edits, &[1..2], &comment, &[]);
        let outside = [(NotSuggested::Outside, 1)];
        check(texts, &edits, &[0..1, 2..4], &[], &outside);
        check(texts, &edits, &[], &[], &outside);
        let two = ("a\nb\nc\nd\n", "a\nB\nC\nd\n");
        check(two, &[edit(1..3, 1..3)], &[0..2, 2..4], &[], &outside);
        check(two, &[edit(1..3, 1..3)], &[0..4], &[(2, 3, "```suggestion\nB\nC\n```")], &[]);
    }

    #[test]
    fn new_lines_stand_beside_one_that_is_there_and_lines_that_go_leave_nothing() {
        let texts = ("a\nb\n", "a\nnew\nb\n");
        let edits = [edit(1..1, 1..2)];
        check(texts, &edits, &[0..2], &[(1, 1, "```suggestion\na\nnew\n```")], &[]);
        check(texts, &edits, &[1..2], &[(2, 2, "```suggestion\nnew\nb\n```")], &[]);
        let first = ("a\n", "new\na\n");
        check(first, &[edit(0..0, 0..1)], &[0..1], &[(1, 1, "```suggestion\nnew\na\n```")], &[]);
        check(("a\nb\n", "a\n"), &[edit(1..2, 1..1)], &[0..2], &[(2, 2, "```suggestion\n```")], &[]);
        let blank = ("a\nb\n", "a\n\n");
        check(blank, &[edit(1..2, 1..2)], &[0..2], &[(2, 2, "```suggestion\n\n```")], &[]);
        check(("", "a\n"), &[edit(0..0, 0..1)], &[0..1], &[], &[(NotSuggested::Outside, 1)]);
    }

    #[test]
    fn changes_that_touch_are_one_suggestion() {
        let edits = [edit(0..1, 0..1), edit(1..2, 1..2), edit(3..4, 3..4)];
        let expected = [(1, 2, "```suggestion\nA\nB\n```"), (4, 4, "```suggestion\nD\n```")];
        check(("a\nb\nc\nd\n", "A\nB\nc\nD\n"), &edits, &[0..4], &expected, &[]);
        // Both can only stand beside the same line.
        let edits = [edit(0..0, 0..1), edit(1..1, 2..3)];
        let expected = [(1, 1, "```suggestion\nx\na\ny\n```")];
        check(("a\nb\n", "x\na\ny\nb\n"), &edits, &[0..1], &expected, &[]);
    }

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        let texts = ("a\n", "````suggestion\n");
        let expected = [(1, 1, "`````suggestion\n````suggestion\n`````")];
        check(texts, &[edit(0..1, 0..1)], &[0..1], &expected, &[]);
    }

    #[test]
    fn what_a_comment_cannot_say_is_left() {
        let all = [edit(0..1, 0..1)];
        let left = |old: &str, new: &str, why| check((old, new), &all, &[0..9], &[], &[(why, 1)]);
        left("a\n", "b", NotSuggested::LastLine);
        left("a", "b\n", NotSuggested::LastLine);
        left("a\r\n", "b\r\n", NotSuggested::LineEnds);
        left("a\n", "b\u{202e}c\n", NotSuggested::Hidden);
        left("a\n", "b\u{1b}[1m\n", NotSuggested::Hidden);
        left("a\n", "b\u{2028}c\n", NotSuggested::Hidden);
        left("a\n", "b\0\n", NotSuggested::Binary);
        left("a\n", &format!("{}\n", "x".repeat(MAX_BODY)), NotSuggested::TooLong);
        check(("a\n", "\tb\n"), &all, &[0..9], &[(1, 1, "```suggestion\n\tb\n```")], &[]);
        check(("a\nb", "A\nb"), &all, &[0..2], &[(1, 1, "```suggestion\nA\n```")], &[]);
        // New lines behind the last one, where that has no end.
        check(("a", "a\nb"), &[edit(0..1, 0..2)], &[0..1], &[], &[(NotSuggested::LastLine, 1)]);
        let latin = FixedFile::new(PATH, &id("1"), b"a\n".to_vec(), b"\xe9\n".to_vec(), b"");
        assert_eq!(Suggestions::new(&[latin], &[shown(&[0..9])]).rest[0].why, NotSuggested::Binary);
    }

    #[test]
    fn a_diff_that_does_not_make_the_fix_is_not_suggested() {
        let file_of =
            |diff: &[u8]| FixedFile::new(PATH, &id("1"), b"a\nb\n".to_vec(), b"a\nc\n".to_vec(), diff);
        for diff in
            ["", "Binary files a/x and b/x differ\n", "@@ -1 +1 @@\n-a\n+c\n", "@@ -9 +9 @@\n-b\n+c\n"]
        {
            let file = file_of(diff.as_bytes());
            let made = Suggestions::new(&[file], &[shown(&[0..9])]);
            assert_eq!((made.comments.len(), made.left()), (0, 1), "{diff:?}");
        }
        let file = file_of(b"@@ -2 +2 @@ x\n-b\n+c\n");
        assert_eq!(Suggestions::new(&[file], &[shown(&[0..9])]).comments.len(), 1);
    }

    #[test]
    fn another_file_or_another_version_of_it_shows_nothing() {
        let fix = fixed("a\n", "b\n", &[edit(0..1, 0..1)]);
        let whole = || shown(&[Range { start: 0, end: 1 }]);
        let other = PullFile { path: "src/b.rs".to_owned(), ..whole() };
        let moved = PullFile { id: Some(id("2")), ..whole() };
        let unknown = PullFile { id: None, ..whole() };
        let count = |shown: &[PullFile]| Suggestions::new(std::slice::from_ref(&fix), shown).comments.len();
        assert_eq!((count(&[other.clone(), moved, unknown]), count(&[other, whole()])), (0, 1));
    }

    #[test]
    fn a_change_of_more_than_text_is_left() {
        use super::super::change::FileSide;
        let side = |mode| Some(FileSide { mode, id: id("1"), size: 1 });
        let kind = |old, new| FixedFile::kind(&FileChange { path: PATH.to_owned(), old, new });
        let (file, run, link) = (side(FileMode::File), side(FileMode::Executable), side(FileMode::Link));
        assert_eq!(kind(file.clone(), file.clone()), None);
        assert_eq!(kind(run.clone(), run.clone()), None);
        assert_eq!(kind(file.clone(), run), Some(NotSuggested::Mode));
        assert_eq!(kind(link.clone(), link), Some(NotSuggested::Mode));
        assert_eq!(kind(None, file.clone()), Some(NotSuggested::Added));
        assert_eq!(kind(file, None), Some(NotSuggested::Deleted));
        let made = Suggestions::new(&[FixedFile::unfit(PATH, NotSuggested::Added)], &[shown(&[])]);
        let left = LeftChange { path: PATH.to_owned(), why: NotSuggested::Added, count: 1 };
        assert_eq!(made, Suggestions { comments: Vec::new(), rest: vec![left] });
    }

    #[test]
    fn a_review_has_at_most_fifty_comments() {
        let numbers: Vec<String> = (0..120).map(|number| format!("{number}\n")).collect();
        let old = numbers.concat();
        let new: String = numbers
            .iter()
            .enumerate()
            .map(|(at, line)| if at % 2 == 0 { "x\n" } else { line.as_str() })
            .collect();
        let edits: Vec<Hunk> = (0..60).map(|n| edit(2 * n..2 * n + 1, 2 * n..2 * n + 1)).collect();
        let made = Suggestions::new(&[fixed(&old, &new, &edits)], &[shown(&[Range { start: 0, end: 120 }])]);
        assert_eq!(made.comments.len(), 50);
        assert_eq!(made.rest, [LeftChange { path: PATH.to_owned(), why: NotSuggested::TooMany, count: 10 }]);
    }

    #[test]
    fn a_patch_is_read_as_far_as_it_is_one() {
        let read = |text: &str| hunks(text.as_bytes());
        let patch = "@@ -1,2 +1,3 @@ fn é\n a\n+@@ -9,9 +9,9 @@\n-b\n+c\n\\ No newline at end of file\n@@ -9 +10,0 @@\n-x";
        assert_eq!(read(patch), [edit(0..2, 0..3), edit(8..9, 10..10)]);
        assert_eq!(read("@@ -0,0 +1 @@\n+a"), [edit(0..0, 0..1)]);
        assert_eq!(read("@@ -1,5 +1,9 @@\n a\n+b"), [edit(0..1, 0..2)], "what is cut off is not shown");
        assert_eq!(read("@@ -1 +1 @@\nodd\n@@ -5 +5 @@\n-a\n+b"), [edit(0..0, 0..0)]);
        let odd =
            ["", "@@", "@@ -1 @@", "@@ -0 +0 @@", "@@ -x,1 +1,1 @@", "@@ -1,99999999999999999999 +1 @@"];
        for odd in odd {
            assert_eq!(read(odd), [], "{odd}");
        }
        assert_eq!(hunks(b"@@ -1 +1 @@ \xff\n-a\n+b"), [edit(0..1, 0..1)]);
        let long = format!("@@ -1 +1 @@ {}\n-a\n+b", "é".repeat(200));
        assert_eq!(read(&long), [edit(0..1, 0..1)]);
        assert_eq!(read(&format!("@@ -1,{0} +1,{0} @@\n a", usize::MAX)), [edit(0..1, 0..1)]);
    }

    const LINES: [&str; 8] = ["a", "", "b ", "\tc", "```", "  ````suggestion", "~~~", "</details>"];

    /// A text, a fix of it, and the lines that a pull request shows.
    #[derive(Clone, Debug)]
    struct Case {
        old: String,
        new: String,
        edits: Vec<Hunk>,
        shown: Vec<Range<usize>>,
    }

    fn cases() -> impl Strategy<Value = Case> {
        let some = |most| prop::collection::vec(0..LINES.len(), 0..most);
        let part = (some(4), some(3), some(3));
        let parts = prop::collection::vec(part, 0..12);
        let ranges = prop::collection::vec((1..6_usize, 1..9_usize), 0..6);
        (parts, ranges, any::<bool>()).prop_map(|(parts, ranges, is_cut)| {
            let (mut old, mut new, mut edits) = (Vec::new(), Vec::new(), Vec::new());
            for (same, goes, comes) in parts {
                old.extend(&same);
                new.extend(&same);
                let (from, to) = (old.len(), new.len());
                old.extend(goes);
                new.extend(comes);
                if old.len() > from || new.len() > to {
                    edits.push(edit(from..old.len(), to..new.len()));
                }
            }
            let mut shown = Vec::new();
            let mut at = 0;
            for (gap, length) in ranges {
                shown.push(at + gap - 1..at + gap - 1 + length);
                at += gap + length;
            }
            let text = |lines: &[usize]| {
                let mut text: String = lines.iter().flat_map(|line| [LINES[*line], "\n"]).collect();
                if is_cut && text.len() > 1 && !text.ends_with("\n\n") {
                    text.pop();
                }
                text
            };
            Case { old: text(&old), new: text(&new), edits, shown }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
        #[test]
        fn whatever_a_patch_is_its_lines_are_few(patch in "(@@ -[0-9]{1,3},[0-9]{1,20} \\+[0-9]{1,20}(,[0-9])? @@|[-+ a\\\\]|\n){0,40}") {
            let most = patch.split('\n').count();
            for Hunk { old, new } in hunks(patch.as_bytes()) {
                prop_assert!(old.len() <= most && new.len() <= most, "{patch}");
            }
        }

        #[test]
        fn suggestions_make_the_fix_as_far_as_they_go(case in cases()) {
            let Case { old, new, edits, shown: ranges } = case;
            let file = fixed(&old, &new, &edits);
            // Without their ends, last lines may differ that no edit names.
            prop_assume!(file.content.is_ok());
            let made = Suggestions::new(&[file], &[shown(&ranges)]);
            let mut end = 0;
            for comment in &made.comments {
                prop_assert!(comment.first > end, "they overlap: {made:?}");
                end = comment.last;
                let is_in = |range: &Range<usize>| range.start < comment.first && comment.last <= range.end;
                prop_assert!(ranges.iter().any(is_in), "outside: {made:?}");
            }
            let is_covered = |edit: &&Hunk| {
                made.comments.iter().any(|comment| {
                    comment.first - 1 <= edit.old.start && edit.old.end <= comment.last
                })
            };
            let covered: Vec<Hunk> = edits.iter().filter(is_covered).cloned().collect();
            prop_assert_eq!(covered.len() + made.left(), edits.len());
            let expected = edited(&lines(&old), &lines(&new), &covered).unwrap();
            prop_assert_eq!(applied(&old, &made.comments), expected);
            // Whatever can be suggested is.
            let count = lines(&old).len();
            for edit in edits.iter().filter(|edit| !is_covered(edit)) {
                let is_in = |from: usize, to: usize| ranges.iter().any(|range| range.start <= from && to <= range.end);
                let is_shown = if edit.old.is_empty() {
                    (edit.old.start > 0 && is_in(edit.old.start - 1, edit.old.start))
                        || (edit.old.start < count && is_in(edit.old.start, edit.old.start + 1))
                } else {
                    is_in(edit.old.start, edit.old.end)
                };
                let is_cut = !old.ends_with('\n') || !new.ends_with('\n');
                prop_assert!(!is_shown || is_cut || made.comments.len() == MOST, "left: {edit:?} {made:?}");
            }
        }
    }
}
