//! Every command that a message names is one that the command line knows.

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::{CommandFactory as _, Parser as _};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::args::Args;
use crate::base::advised_command::{self, CommandLine};
use crate::base::text::{first_line, up_to};

/// Says why a text is not a command, read as bash and the command line do.
fn fault(text: &str) -> Option<String> {
    let script =
        format!("cd() {{ :; }}; ll-loop() {{ printf '%s\\0' ll-loop \"$@\"; printf '<end>\\0'; }}; {text}");
    let ran = Command::new("bash").args(["-c", &script]).output().unwrap();
    if !ran.status.success() {
        return Some(format!("{text}: {}", String::from_utf8_lossy(&ran.stderr)));
    }
    let words = String::from_utf8(ran.stdout).unwrap();
    words.split("<end>\0").filter(|words| !words.is_empty()).find_map(|words| {
        let error =
            Args::try_parse_from(words.split_terminator('\0')).err().filter(clap::Error::use_stderr)?;
        Some(format!("{text}: {}", first_line(&error.to_string())))
    })
}

#[track_caller]
fn check(text: &str) {
    assert_eq!(fault(text), None);
}

/// Collects the texts of a program: neither its tests nor its comments.
fn texts(tokens: TokenStream, found: &mut Vec<String>) {
    let mut is_test = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let is_attribute = group.delimiter() == Delimiter::Bracket
                    && group.stream().to_string().replace(' ', "") == "cfg(test)";
                let is_skipped = is_test && group.delimiter() == Delimiter::Brace;
                is_test = is_attribute || (is_test && !is_skipped);
                let is_comment = group.delimiter() == Delimiter::Bracket
                    && group.stream().to_string().starts_with("doc =");
                if !is_skipped && !is_comment {
                    texts(group.stream(), found);
                }
            }
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                found.extend(syn::parse_str::<syn::LitStr>(&text).ok().map(|text| text.value()));
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => is_test = false,
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Returns the commands in backticks, with a word for each value that is put in.
fn commands(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_command =
        |quoted: &&str| quoted.strip_prefix("ll-loop ").is_some_and(|rest| !rest.starts_with('{'));
    quoted.filter(is_command).map(|command| {
        let rests = command.split('{').skip(1).map(|part| part.split_once('}').map_or("", |(_, rest)| rest));
        rests.fold(up_to(command, &['{']).to_owned(), |all, rest| format!("{all}x{rest}"))
    })
}

fn each_file(directory: &Path, read: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            each_file(&path, read);
        } else if path.extension().is_some_and(|end| end == "rs") && !name.contains("test") {
            read(&path, &fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns what a command and those below it say of themselves.
fn helps(command: &mut clap::Command) -> String {
    let mut help = command.render_long_help().to_string();
    command.get_subcommands_mut().for_each(|command| help.push_str(&helps(command)));
    help
}

/// Returns every long option of a command and of those below it.
fn options(command: &clap::Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(clap::Arg::get_long).map(str::to_owned);
    own.chain(command.get_subcommands().flat_map(options)).collect()
}

#[test]
fn every_option_in_a_message_is_one() {
    let known = options(&Args::command());
    let (mut count, mut faults) = (0, Vec::new());
    each_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |path, text| {
        let mut found = Vec::new();
        texts(text.parse().unwrap(), &mut found);
        for quoted in found.iter().flat_map(|text| text.split('`').skip(1).step_by(2)) {
            let Some(option) = quoted.strip_prefix("--") else { continue };
            let option = up_to(option, &[' ', '=']);
            count += 1;
            if !option.starts_with('{') && !known.iter().any(|known| known == option) {
                faults.push(format!("{}: {quoted}", path.display()));
            }
        }
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 10, "only {count} were found");
}

#[test]
fn every_command_in_a_message_is_one() {
    let (mut count, mut faults) = (0, Vec::new());
    let help = helps(&mut Args::command());
    faults.extend(commands(&help).filter_map(|command| fault(&command)));
    each_file(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut |path, text| {
        let mut found = Vec::new();
        texts(text.parse().unwrap(), &mut found);
        for command in found.iter().flat_map(|text| commands(text)) {
            count += 1;
            faults.extend(fault(&command).map(|fault| format!("{}: {fault}", path.display())));
        }
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 5, "only {count} were found");
}

#[test]
fn every_command_that_is_made_is_one() {
    for name in ["main-20260101T000000-0123ab", "it's a; $(name)", "é\u{202e}\n"] {
        let made = [
            advised_command::resume(name),
            advised_command::run(name),
            advised_command::answer(name).option("--code", "0123abcd"),
            advised_command::run(name)
                .variable("--param", name, "a\nb")
                .variable("--context", "k", "***")
                .last("-x"),
            advised_command::stop(name),
            advised_command::status(name),
            advised_command::logs(name),
            advised_command::follow(name),
            advised_command::history(name),
            advised_command::report(name),
            advised_command::validate(name),
            advised_command::resume(name)
                .option("--timeout", "60s")
                .option("--max-cost", "1.50")
                .flag("--accept-changes"),
            advised_command::resume(name)
                .option("--max-tokens", "2")
                .option("--max-llm-calls", "2")
                .flag("--strict"),
            CommandLine::of("resume").option("--from", "run:77").option("--repo", "o/r").arg(name),
            CommandLine::of("artifact download")
                .arg(name)
                .option("--run", "7")
                .option("--repo", "o/r")
                .option("--to", name),
            advised_command::run(name)
                .flag("--strict")
                .option("--max-iterations", "2")
                .option("--max-cycles", "3"),
        ];
        for command in made {
            check(&command.within("a b").env("GITHUB_API_URL", "https://x").to_string());
        }
    }
}
