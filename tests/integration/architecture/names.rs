//! Which names each file of a crate mentions, and where they are defined: read from the syntax, so that brace lists,
//! `super::`, renames, macros and re-exports make no difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// Deeper than this, re-exports lead in a circle.
const MOST_REEXPORTS: usize = 16;

/// The modules of a crate, by their paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
}

/// A file, or a module inside of one.
#[derive(Clone, Debug, Default)]
struct Module {
    file: String,
    /// What `use` brings in, by the name that it has here.
    uses: BTreeMap<String, Vec<String>>,
    /// Every path that is written here. One that begins with a module of this crate begins with `crate`.
    paths: BTreeSet<Vec<String>>,
    methods: BTreeSet<String>,
    /// What this reader cannot see through.
    opaque: BTreeSet<&'static str>,
}

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Named {
    /// Something in a file of this crate.
    File(String),
    /// Something in another crate, with its whole path.
    Elsewhere(String),
}

impl Crate {
    /// Makes a crate of files, by their names below the directory of the source.
    pub(super) fn of(files: &BTreeMap<String, String>) -> Self {
        let mut all = Self::default();
        for (file, text) in files {
            all.read(file, text);
        }
        all
    }

    /// Reads one more file, or what it says now.
    pub(super) fn read(&mut self, file: &str, text: &str) {
        self.modules.retain(|_, module| module.file != file);
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut reader = Reader { all: self, at: module_of(file), file };
        reader.module();
        reader.visit_file(&syntax);
    }

    /// Returns every file with what it names in other files and crates. A name that comes through re-exports counts for
    /// each file on its way.
    pub(super) fn names(&self) -> BTreeMap<&str, BTreeSet<Named>> {
        let mut all: BTreeMap<&str, BTreeSet<Named>> = BTreeMap::new();
        for (at, module) in &self.modules {
            let names = all.entry(&module.file).or_default();
            for path in &module.paths {
                self.resolve(at, path, MOST_REEXPORTS, names);
            }
            names.remove(&Named::File(module.file.clone()));
        }
        all
    }

    /// Returns every file with the methods that it calls.
    pub(super) fn methods(&self) -> impl Iterator<Item = (&str, &str)> {
        let modules = self.modules.values();
        modules.flat_map(|module| module.methods.iter().map(|name| (module.file.as_str(), name.as_str())))
    }

    /// Returns the files that name something by way of a module of the crate.
    pub(super) fn mentions(&self, module: &str) -> impl Iterator<Item = &str> {
        let through = move |path: &Vec<String>| path.len() > 1 && path[0] == "crate" && path[1] == module;
        let modules = self.modules.values();
        modules.filter(move |module| module.paths.iter().any(through)).map(|module| module.file.as_str())
    }

    /// Returns every file with what cannot be seen through.
    pub(super) fn opaque(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.modules
            .values()
            .flat_map(|module| module.opaque.iter().map(|what| (module.file.as_str(), *what)))
    }

    /// Follows a path to the file that defines what it names.
    fn resolve(&self, at: &[String], path: &[String], depth: usize, found: &mut BTreeSet<Named>) {
        let below = |module: &[String], name: &str| {
            let child = [module, &[name.to_owned()]].concat();
            self.modules.contains_key(&child).then_some(child)
        };
        let (first, mut rest) = (path[0].as_str(), &path[1..]);
        let mut module = match first {
            "crate" => Vec::new(),
            first => match (below(at, first), self.modules[at].uses.get(first)) {
                (Some(child), _) => child,
                (None, Some(target)) if depth > 0 => {
                    let path = [target, rest].concat();
                    return self.resolve(at, &path, depth - 1, found);
                }
                (None, _) => {
                    found.insert(Named::Elsewhere(path.join("::")));
                    return;
                }
            },
        };
        while let Some((name, behind)) = rest.split_first() {
            if let Some(child) = below(&module, name) {
                (module, rest) = (child, behind);
                continue;
            }
            if let Some(target) = self.modules.get(&module).and_then(|module| module.uses.get(name))
                && depth > 0
            {
                found.insert(Named::File(self.modules[&module].file.clone()));
                self.resolve(&module, &[target, behind].concat(), depth - 1, found);
                return;
            }
            break;
        }
        if let Some(module) = self.modules.get(&module) {
            found.insert(Named::File(module.file.clone()));
        }
    }
}

/// Returns each circle of files that name each other, directly or by way of others.
pub(super) fn circles(names: &BTreeMap<&str, BTreeSet<Named>>) -> Vec<BTreeSet<String>> {
    let next = |file: &str| {
        names.get(file).into_iter().flatten().filter_map(|name| match name {
            Named::File(file) => Some(file.as_str()),
            Named::Elsewhere(_) => None,
        })
    };
    let reached = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(file) = open.pop() {
            open.extend(next(&file).filter(|file| seen.insert((*file).to_owned())).map(str::to_owned));
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<String>> = names.keys().map(|file| (*file, reached(file))).collect();
    let circle = |file: &&str| -> BTreeSet<String> {
        let back = |other: &&String| reach.get(other.as_str()).is_some_and(|reach| reach.contains(*file));
        reach[*file].iter().filter(back).cloned().collect()
    };
    let all: BTreeSet<BTreeSet<String>> = names.keys().map(circle).collect();
    all.into_iter().filter(|circle| circle.len() > 1).collect()
}

/// Returns each circle of folders, on every level: what stands in a folder names what stands in the next one. A file is
/// one with the folder of its name, and `mod.rs` is the face of its folder, which is there to name the others.
pub(super) fn folder_circles(names: &BTreeMap<&str, BTreeSet<Named>>) -> Vec<BTreeSet<String>> {
    let above = |file: &str| -> Vec<String> {
        file.match_indices('/').map(|(at, _)| file[..=at].to_owned()).chain([String::new()]).collect()
    };
    let parents: BTreeSet<String> = names.keys().flat_map(|file| above(file)).collect();
    let circles_in = |parent: &String| {
        let unit = |file: &str| {
            let first = file.strip_prefix(parent.as_str())?.split('/').next()?;
            let name = first.strip_suffix(".rs").unwrap_or(first);
            (!matches!(first, "mod.rs" | "lib.rs" | "main.rs")).then(|| format!("{parent}{name}"))
        };
        let mut units: BTreeMap<String, BTreeSet<Named>> = BTreeMap::new();
        for (file, names) in names {
            let Some(from) = unit(file) else { continue };
            let others = names.iter().filter_map(|name| match name {
                Named::File(other) => unit(other).filter(|to| *to != from).map(Named::File),
                Named::Elsewhere(_) => None,
            });
            units.entry(from.clone()).or_default().extend(others.collect::<Vec<_>>());
        }
        circles(&units.iter().map(|(unit, names)| (unit.as_str(), names.clone())).collect())
    };
    parents.iter().flat_map(circles_in).collect()
}

/// Reads every file below a directory, but for files of tests.
pub(super) fn files(root: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    collect(root, root, &mut files);
    files
}

fn collect(root: &Path, directory: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_test = matches!(name.as_str(), "tests" | "tests.rs" | "testing.rs" | "log_tests.rs");
        if is_test {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            files.insert(file, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Returns the module that a file is.
fn module_of(file: &str) -> Vec<String> {
    let mut parts: Vec<String> =
        file.strip_suffix(".rs").unwrap_or(file).split('/').map(str::to_owned).collect();
    parts.pop_if(|last| matches!(last.as_str(), "mod" | "lib" | "main"));
    parts
}

struct Reader<'c> {
    all: &'c mut Crate,
    at: Vec<String>,
    file: &'c str,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        let module = self.all.modules.entry(self.at.clone()).or_default();
        self.file.clone_into(&mut module.file);
        module
    }

    /// Makes a path begin at the root of the crate, where it begins in this crate by a word of the language.
    fn absolute(&self, segments: &[String]) -> Vec<String> {
        let mut base = self.at.clone();
        let words = segments.iter().take_while(|word| {
            match word.as_str() {
                "crate" => base.clear(),
                "self" => {}
                "super" => drop(base.pop()),
                _ => return false,
            }
            true
        });
        match words.count() {
            0 => segments.to_vec(),
            words => {
                std::iter::once("crate".to_owned()).chain(base).chain(segments[words..].to_vec()).collect()
            }
        }
    }

    /// Notes a path. A single name is one that `use` brought in, or one of the file itself.
    fn mention(&mut self, segments: &[String]) {
        if segments.len() > 1 {
            let path = self.absolute(segments);
            self.module().paths.insert(path);
        }
    }

    fn read_use(&mut self, tree: &syn::UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.read_use(&path.tree, &with(&path.ident)),
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.bring_in(&before.last().cloned().unwrap_or_default(), before);
            }
            syn::UseTree::Name(name) => self.bring_in(&name.ident.to_string(), &with(&name.ident)),
            syn::UseTree::Rename(rename) if rename.ident == "self" => {
                self.bring_in(&rename.rename.to_string(), before);
            }
            syn::UseTree::Rename(rename) => self.bring_in(&rename.rename.to_string(), &with(&rename.ident)),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.read_use(tree, before)),
            syn::UseTree::Glob(_) => match self.absolute(before) {
                own if own.first().is_some_and(|first| first == "crate") => {
                    self.module().opaque.insert("use …::*");
                }
                other => drop(self.module().paths.insert(other)),
            },
        }
    }

    fn bring_in(&mut self, name: &str, path: &[String]) {
        let path = self.absolute(path);
        let module = self.module();
        module.paths.insert(path.clone());
        // `use a;` brings in nothing that was not there.
        if name != "_" && path[..] != [name.to_owned()] {
            module.uses.insert(name.to_owned(), path);
        }
    }

    /// Reads the paths and the calls of methods in what a macro is given.
    fn tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons, mut is_behind_dot) = (Vec::new(), 0, false);
        for token in tokens {
            match token {
                TokenTree::Ident(name) if colons == 2 || path.is_empty() => {
                    path.push(name.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Group(group) => {
                    if let ([name], true) = (&path[..], is_behind_dot) {
                        self.module().methods.insert(name.clone());
                    }
                    self.mention(&path);
                    path.clear();
                    is_behind_dot = false;
                    self.tokens(group.stream());
                }
                TokenTree::Ident(name) => {
                    self.mention(&path);
                    path = vec![name.to_string()];
                    is_behind_dot = false;
                }
                TokenTree::Punct(punct) => {
                    self.mention(&path);
                    path.clear();
                    is_behind_dot = punct.as_char() == '.';
                }
                TokenTree::Literal(_) => {
                    self.mention(&path);
                    path.clear();
                    is_behind_dot = false;
                }
            }
            colons = 0;
        }
        self.mention(&path);
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            let condition = list.tokens.to_string();
            attribute.path().is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
        }
        syn::Meta::Path(_) | syn::Meta::NameValue(_) => attribute.path().is_ident("test"),
    })
}

impl<'a> Visit<'a> for Reader<'_> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "only these kinds of items are marked as tests")]
        let is_of_tests = match item {
            syn::Item::Mod(item) => is_test(&item.attrs),
            syn::Item::Fn(item) => is_test(&item.attrs),
            syn::Item::Use(item) => is_test(&item.attrs),
            syn::Item::Impl(item) => is_test(&item.attrs),
            syn::Item::Macro(item) => is_test(&item.attrs),
            _ => false,
        };
        if !is_of_tests {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("path")) {
            self.module().opaque.insert("#[path]");
        }
        if item.content.is_some() {
            self.at.push(item.ident.to_string());
            self.module();
            visit::visit_item_mod(self, item);
            self.at.pop();
        }
    }

    fn visit_item_extern_crate(&mut self, _: &'a syn::ItemExternCrate) {
        self.module().opaque.insert("extern crate");
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.read_use(&item.tree, &[]);
    }

    // Who may see something is no use of theirs.
    fn visit_vis_restricted(&mut self, _: &'a syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.mention(&segments);
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let name = call.method.to_string();
        self.module().methods.insert(name);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, invoked: &'a syn::Macro) {
        if invoked.path.is_ident("include") {
            self.module().opaque.insert("include!");
        }
        self.visit_path(&invoked.path);
        self.tokens(invoked.tokens.clone());
    }
}
