//! Text from outside in Markdown: as code, in a form that nothing in it can leave. As code it mentions nobody, refers
//! to no issue and holds no HTML.

use std::fmt::Write as _;

use crate::base::text::{is_direction, is_line_end, one_line, plain};

/// Returns one line of text as inline code, safe in paragraphs, lists and tables.
pub fn code(text: &str, limit: usize) -> String {
    let line = one_line(text, limit);
    if line.is_empty() {
        return String::new();
    }
    // A pipe would end a table cell even in a code span, and a backslash would be read together with it.
    if !line.contains(['`', '|', '\\']) {
        return format!("`{line}`");
    }
    let mut out = String::from("<code>");
    for c in line.chars() {
        if c.is_ascii_punctuation() {
            let _ = write!(out, "&#{};", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out + "</code>"
}

/// Returns one line of words that may hold something from outside: nothing in it is Markdown, HTML, a mention or the
/// number of an issue. The empty comment parts what GitHub would look for in the rendered text.
pub fn words(text: &str) -> String {
    const PART: &str = "<!-- -->";
    let line: String =
        text.chars().filter(|c| !is_direction(*c)).map(|c| if is_line_end(c) { ' ' } else { c }).collect();
    let mut out = String::with_capacity(line.len());
    for c in plain(&line).chars() {
        match c {
            '.' | ',' | ';' | ':' | '/' | '(' | ')' | '\'' | '"' | '%' => out.push(c),
            // At the beginning of a line these make a list or underline a heading.
            '-' | '+' | '=' if !out.is_empty() => out.push(c),
            '@' | '#' => {
                let _ = write!(out, "&#{};{PART}", u32::from(c));
            }
            c if c.is_ascii_punctuation() => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    // GitHub makes links of these three without any other sign of Markdown.
    out.replace("://", ":&#47;&#47;").replace("www.", "www&#46;").replace("GH-", &format!("GH{PART}-"))
}

/// The most characters of a name within a sentence.
const LONGEST_NAME: usize = 120;

/// Returns a sentence of ours as Markdown: what stands between backticks is code, and everything else is only words.
pub fn with_code(sentence: &str) -> String {
    let pieces: Vec<&str> = sentence.split('`').collect();
    // A backtick that nothing closes is a letter.
    let closed = pieces.len() - 1 - (pieces.len() - 1) % 2;
    let piece = |(at, piece): (usize, &&str)| {
        if at % 2 == 1 && at < closed { code(piece, LONGEST_NAME) } else { words(piece) }
    };
    pieces.iter().enumerate().map(piece).collect()
}

/// Returns text as a block of code behind a fence that it cannot close.
pub fn fenced(text: &str) -> String {
    let clean = plain(text).replace("\r\n", "\n").replace('\r', "\n");
    let clean: String = clean.chars().filter(|c| !is_direction(*c)).collect();
    let fence = "`".repeat(longest_run(&clean).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", clean.trim_end())
}

/// Returns how many backticks stand in a row at most.
pub fn longest_run(text: &str) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    #[test]
    fn inline_code_holds_anything() {
        let shown =
            ["cargo test", "a | b", "`rm`", "<img src=x>", "@somebody fixes #1", "a\\|b", "one\ntwo", " "];
        let lines = shown.map(|text| code(text, 40));
        assert_snapshot!(lines.join("\n"), @r"
        `cargo test`
        <code>a &#124; b</code>
        <code>&#96;rm&#96;</code>
        `<img src=x>`
        `@somebody fixes #1`
        <code>a&#92;&#124;b</code>
        `one…`
        ");
    }

    #[test]
    fn words_are_nothing_but_words() {
        let shown = [
            "failure: 3 of 3 (2.3s)",
            "@somebody #1 GH-2 o/r#3",
            "<b>*x*</b> [a](http://b) www.c.d",
            "# x\n- y",
        ];
        assert_snapshot!(shown.map(words).join("\n"), @r"
        failure: 3 of 3 (2.3s)
        &#64;<!-- -->somebody &#35;<!-- -->1 GH<!-- -->-2 o/r&#35;<!-- -->3
        &#60;b&#62;&#42;x&#42;&#60;/b&#62; &#91;a&#93;(http:&#47;&#47;b) www&#46;c.d
        &#35;<!-- --> x - y
        ");
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(fenced("x\n"), "```text\nx\n```\n");
        assert_eq!(fenced("````\nx"), "`````text\n````\nx\n`````\n");
        assert_eq!(fenced("a\r```"), "````text\na\n```\n````\n");
    }
}
