//! Checks that the top-level modules of a crate form no import circle: a reader can start at a module that uses no
//! other one, and a part of the crate can become a crate of its own.
//!
//! The check scans the code for paths that start with `crate` or `super`. It resolves names that the crate root
//! re-exports. It reads neither macros nor types, so that it takes a fraction of a second, and it does not see a use
//! without such a path, for example a call of a method. Tests are excluded: they may use any module.

use crate::source;
use anyhow::Context as _;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

/// The crates whose modules still form circles, each with the number of modules in its largest circle. This list may
/// only shrink: the check fails if a circle is larger or smaller than its number here.
const CIRCLES: &[(&str, usize)] = &[
    ("gw-admin", 8),
    ("gw-evm", 3),
    ("gw-journal", 4),
    ("gw-server", 3),
    ("gw-store", 12),
];

/// The modules that each top-level module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// All violations, one line each.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut faults = Vec::new();
    for (name, folder) in source::crate_folders(root)? {
        let circles = circles(&uses(&folder.join("src"))?);
        faults.extend(compare(&name, &circles, CIRCLES));
    }
    Ok(faults)
}

/// Compares the circles of a crate, largest first, with the list of allowed ones.
fn compare(name: &str, circles: &[BTreeSet<String>], allowed: &[(&str, usize)]) -> Option<String> {
    let largest = circles.first().map_or(0, BTreeSet::len);
    let allowed = allowed
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, largest)| *largest);
    if largest > allowed.unwrap_or(0) {
        let modules: Vec<&str> = circles.iter().take(1).flatten().map(String::as_str).collect();
        return Some(format!("{name}: a circle of {largest} modules: {}", modules.join(", ")));
    }
    allowed.filter(|allowed| largest < *allowed).map(|allowed| {
        format!(
            "{name}: the largest circle has {largest} modules; CIRCLES in xtask/src/modules.rs still says {allowed}"
        )
    })
}

/// The modules that each top-level module of a crate uses, according to the code in the crate's `src` folder.
fn uses(folder: &Path) -> anyhow::Result<Uses> {
    Ok(uses_in(&read(folder)?))
}

/// The files in a folder with their module paths.
fn read(folder: &Path) -> anyhow::Result<Vec<(Vec<String>, String)>> {
    let mut files = Vec::new();
    for path in source::rust_files(folder)? {
        let module = module_of(path.strip_prefix(folder).unwrap_or(&path));
        let text = std::fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
        files.push((module, text));
    }
    Ok(files)
}

/// The words of the code in a crate's `src` folder that is no test.
pub(crate) fn words_outside_tests(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let files = read(folder)?;
    let scans: Vec<Scan> = files
        .iter()
        .map(|(module, text)| Scan::new(module, &source::tokens(text)))
        .collect();
    let mut words = BTreeSet::new();
    for ((_, text), _) in files.iter().zip(&scans).filter(|(_, scan)| !scan.is_test(&scans)) {
        let tokens = source::tokens(text);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if *token == "#" && is_test_attribute(&tokens, at) {
                at = skip_item(&tokens, at).0;
                continue;
            }
            if source::is_word(token) {
                words.insert((*token).to_owned());
            }
            at += 1;
        }
    }
    Ok(words)
}

/// The path of the module in a file, such as `["a", "b"]` for `a/b.rs`; empty for a crate root.
fn module_of(file: &Path) -> Vec<String> {
    let file = file.with_extension("");
    let mut parts: Vec<String> = file.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod")
        || matches!(parts.as_slice(), [root] if root == "lib" || root == "main")
    {
        parts.pop();
    }
    parts
}

fn uses_in(files: &[(Vec<String>, String)]) -> Uses {
    let scans: Vec<Scan> = files
        .iter()
        .map(|(module, text)| Scan::new(module, &source::tokens(text)))
        .collect();
    let scans: Vec<&Scan> = scans.iter().filter(|scan| !scan.is_test(&scans)).collect();

    let mut modules = BTreeMap::new();
    let mut names = BTreeMap::new();
    let mut globs = Vec::new();
    for scan in &scans {
        for module in scan.module.first().into_iter().chain(&scan.inline_modules) {
            modules.entry(module.clone()).or_insert_with(BTreeSet::new);
        }
        for import in scan.imports.iter().filter(|import| import.module.is_empty()) {
            match import.name.as_str() {
                "*" => globs.extend(import.path.first().cloned()),
                name => {
                    names.insert(name.to_owned(), import.path.clone());
                }
            }
        }
    }
    let definitions = |module: &str, name: &str| {
        scans
            .iter()
            .any(|scan| scan.module.first().is_some_and(|first| first == module) && scan.definitions.contains(name))
    };
    // The top-level module of a path from the crate root; `None` for an item of the root itself or of another crate.
    let resolve = |path: &[String]| {
        let mut first = path.first()?;
        // A chain of re-exports in the crate root is short.
        for _ in 0..4 {
            if modules.contains_key(first) {
                return Some(first.clone());
            }
            match names.get(first).and_then(|path: &Vec<String>| path.first()) {
                Some(next) => first = next,
                None => break,
            }
        }
        globs.iter().find(|module| definitions(module, first)).cloned()
    };
    let mut pairs: Vec<(String, String)> = Vec::new();
    for scan in &scans {
        for import in &scan.imports {
            if let (Some(user), Some(used)) = (import.module.first(), resolve(&import.path)) {
                pairs.push((user.clone(), used));
            }
        }
    }
    for (user, used) in pairs.into_iter().filter(|(user, used)| user != used) {
        modules.entry(user).or_default().insert(used);
    }
    modules
}

/// A path in the code, absolute from the crate root.
struct Import {
    /// The module that contains the path.
    module: Vec<String>,
    path: Vec<String>,
    /// The name that the path has in the module; `*` for all names in it.
    name: String,
}

/// What the check needs to know of one file.
struct Scan {
    module: Vec<String>,
    /// The modules in the braces of a crate root.
    inline_modules: Vec<String>,
    /// The modules that exist only in tests.
    test_modules: Vec<Vec<String>>,
    /// The names of the items that the file defines.
    definitions: BTreeSet<String>,
    imports: Vec<Import>,
}

impl Scan {
    fn new(module: &[String], tokens: &[&str]) -> Self {
        let mut scan = Self {
            module: module.to_vec(),
            inline_modules: Vec::new(),
            test_modules: Vec::new(),
            definitions: BTreeSet::new(),
            imports: Vec::new(),
        };
        let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
        let mut module = module.to_vec();
        let mut depth = 0_usize;
        // The depths outside the inline modules that enclose the current token.
        let mut outer_depths = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            match token(at) {
                "#" if is_test_attribute(tokens, at) => {
                    let (end, name) = skip_item(tokens, at);
                    scan.test_modules.extend(name.map(|name| {
                        let mut path = module.clone();
                        path.push(name.to_owned());
                        path
                    }));
                    at = end;
                    continue;
                }
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if outer_depths.last() == Some(&depth) {
                        outer_depths.pop();
                        module.pop();
                    }
                }
                "mod" if token(at + 2) == "{" => {
                    if module.is_empty() {
                        scan.inline_modules.push(token(at + 1).to_owned());
                    }
                    module.push(token(at + 1).to_owned());
                    outer_depths.push(depth);
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" => {
                    scan.definitions.insert(token(at + 1).to_owned());
                }
                // A visibility is not a use.
                "pub" if token(at + 1) == "(" && matches!(token(at + 2), "crate" | "super" | "self" | "in") => {
                    at = closing(tokens, at + 1);
                }
                // `use<'a>` in a type captures lifetimes, and imports nothing.
                "use" if token(at + 1) != "<" => {
                    at = scan.read_tree(tokens, at + 1, &module, &[]);
                    continue;
                }
                "crate" | "super" if token(at + 1) == "::" => {
                    let mut path = Vec::new();
                    while source::is_word(token(at)) {
                        path.push(token(at));
                        if token(at + 1) != "::" {
                            break;
                        }
                        at += 2;
                    }
                    scan.add(&module, &path, None);
                }
                _ => {}
            }
            at += 1;
        }
        scan
    }

    /// Whether the file belongs to a module that exists only in tests.
    fn is_test(&self, all: &[Self]) -> bool {
        let mut tests = all.iter().flat_map(|scan| &scan.test_modules);
        tests.any(|test| self.module.starts_with(test))
    }

    /// Reads the tree of a `use` item that starts at a token, and returns the position of the token behind it.
    fn read_tree<'a>(&mut self, tokens: &[&'a str], mut at: usize, module: &[String], prefix: &[&'a str]) -> usize {
        let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
        let mut path = prefix.to_vec();
        let mut alias = None;
        let mut is_group = false;
        while at < tokens.len() {
            match token(at) {
                "{" => {
                    is_group = true;
                    at += 1;
                    while at < tokens.len() && token(at) != "}" {
                        let start = at;
                        at = self.read_tree(tokens, at, module, &path);
                        // The second case is no tree, for example the body of a macro.
                        if token(at) == "," || at == start {
                            at += 1;
                        }
                    }
                }
                "as" => {
                    alias = Some(token(at + 1));
                    at += 1;
                }
                "," | "}" | ";" => break,
                "::" => {}
                part => path.push(part),
            }
            at += 1;
        }
        if !is_group && !path.is_empty() {
            self.add(module, &path, alias);
        }
        at
    }

    /// Adds a path as it stands in a module. Outside the crate root, a path without `crate` or `super` stays in its
    /// top-level module or leads to another crate.
    fn add(&mut self, module: &[String], path: &[&str], alias: Option<&str>) {
        let mut rest = path;
        let mut base = module.to_vec();
        let mut is_absolute = module.is_empty();
        while let Some((first, behind)) = rest.split_first() {
            match *first {
                "crate" => base.clear(),
                "super" => {
                    base.pop();
                }
                "self" => {}
                _ => break,
            }
            is_absolute |= *first != "self";
            rest = behind;
        }
        if let Some(last) = rest.last().filter(|_| is_absolute) {
            let name = alias.unwrap_or(if *last == "self" {
                rest.iter().rev().nth(1).copied().unwrap_or_default()
            } else {
                last
            });
            base.extend(rest.iter().map(|part| (*part).to_owned()));
            self.imports.push(Import {
                module: module.to_vec(),
                path: base,
                name: name.to_owned(),
            });
        }
    }
}

/// Whether an attribute at a token excludes its item from builds that are no tests.
fn is_test_attribute(tokens: &[&str], at: usize) -> bool {
    let attribute = tokens.get(at + 1..).unwrap_or_default();
    attribute.starts_with(&["[", "cfg", "(", "test", ")"])
        || attribute.starts_with(&["[", "cfg", "(", "all", "(", "test", ","])
}

/// The position behind the item whose attribute starts at a token, and its name if it is a module in another file.
fn skip_item<'a>(tokens: &[&'a str], at: usize) -> (usize, Option<&'a str>) {
    let token = |at: usize| tokens.get(at).copied().unwrap_or_default();
    let mut at = at;
    let mut name = None;
    let mut is_use = false;
    while at < tokens.len() {
        match token(at) {
            "#" => at = closing(tokens, at + 1),
            "(" | "[" => at = closing(tokens, at),
            "use" => is_use = true,
            "mod" => name = Some(token(at + 1)),
            ";" => return (at + 1, name),
            "{" if is_use => at = closing(tokens, at),
            "{" => return (closing(tokens, at) + 1, None),
            // The end of the block in which the attribute belongs to an expression or a field.
            "}" => return (at, None),
            _ => {}
        }
        at += 1;
    }
    (at, None)
}

/// The position of the bracket that closes the one at a token.
fn closing(tokens: &[&str], at: usize) -> usize {
    let mut depth = 0_usize;
    for (position, token) in tokens.iter().enumerate().skip(at) {
        match *token {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return position;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// The groups of at least two modules that use each other, directly or through others; the largest group first.
fn circles(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|module| (module, reachable(uses, module))).collect();
    let reaches = |from: &String, to: &String| reached.get(from).is_some_and(|modules| modules.contains(to));
    let mut circles = BTreeSet::new();
    for module in uses.keys().filter(|module| reaches(module, module)) {
        let circle: BTreeSet<String> = uses
            .keys()
            .filter(|other| reaches(module, other) && reaches(other, module))
            .cloned()
            .collect();
        circles.insert(circle);
    }
    let mut circles: Vec<_> = circles.into_iter().collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The modules that a module uses, directly or through others.
fn reachable<'a>(uses: &'a Uses, module: &str) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&String> = uses.get(module).into_iter().flatten().collect();
    while let Some(next) = pending.pop() {
        if reached.insert(next) {
            pending.extend(uses.get(next).into_iter().flatten());
        }
    }
    reached
}

/// Describes how the modules of a crate use each other: one line for each module of its largest circle.
pub(crate) fn describe(root: &Path, only: &str) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for (name, folder) in source::crate_folders(root)?
        .into_iter()
        .filter(|(name, _)| name == only)
    {
        let uses = uses(&folder.join("src"))?;
        for circle in circles(&uses) {
            lines.push(format!("{name}: a circle of {} modules", circle.len()));
            for module in &circle {
                let used = uses
                    .get(module)
                    .into_iter()
                    .flatten()
                    .filter(|used| circle.contains(*used));
                let used: Vec<&str> = used.map(String::as_str).collect();
                lines.push(format!("  {module} uses {}", used.join(", ")));
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses_of(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(Vec<String>, String)> = files
            .iter()
            .map(|(path, text)| (module_of(Path::new(path)), (*text).to_owned()))
            .collect();
        let pairs = uses_in(&files).into_iter();
        pairs
            .flat_map(|(user, used)| used.into_iter().map(move |used| format!("{user} > {used}")))
            .collect()
    }

    #[test]
    fn paths_from_the_root_and_from_parents_are_uses() {
        let files = [
            ("lib.rs", "mod a; mod b; mod c; mod d;"),
            (
                "a/mod.rs",
                "use crate::{b::{self, X}, c as other}; pub(in crate::d) fn f() {}",
            ),
            ("a/inner.rs", "use super::super::d; use super::y; use std::b::c;"),
            (
                "b.rs",
                "fn f() { super::c::g(); mod m { use super::super::d::Y; use super::h; } }",
            ),
            ("c.rs", "// crate::a\nconst A: &str = \"crate::b\";"),
            ("d.rs", ""),
        ];
        assert_eq!(uses_of(&files), ["a > b", "a > c", "a > d", "b > c", "b > d"]);
    }

    #[test]
    fn names_that_the_root_re_exports_are_uses_of_their_modules() {
        let files = [
            (
                "lib.rs",
                "pub use a::{One, inner::Two as Three}; pub use self::b::*; use std::fmt; mod a; mod b; mod c; mod d \
                 {\n\
                 use crate::One; } pub struct Own;",
            ),
            ("a.rs", "pub struct One;"),
            ("b.rs", "pub fn four() {} fn five() {}"),
            (
                "c.rs",
                "use crate::{Own, Three, fmt, four}; fn f() { crate::unknown() }",
            ),
        ];
        assert_eq!(uses_of(&files), ["c > a", "c > b", "d > a"]);
    }

    #[test]
    fn tests_are_excluded() {
        let files = [
            ("lib.rs", "mod a; mod b; #[cfg(test)] pub(crate) mod support;"),
            (
                "a.rs",
                "#[cfg(test)] mod tests; #[cfg(test)] use crate::b::{X, Y}; #[cfg(test)] #[expect(x)] fn f(x: [u8; 2]) \
                 { crate::b::f() } #[cfg(all(test, unix))] mod other { use crate::b; }",
            ),
            ("a/tests.rs", "use crate::b;"),
            ("b.rs", "use crate::a; #[cfg(feature = \"x\")] use crate::c;"),
            ("c.rs", "#[cfg(test)] mod tests { use crate::a; } use crate::b;"),
            ("support/mod.rs", "use crate::a;"),
        ];
        assert_eq!(uses_of(&files), ["b > a", "b > c", "c > b"]);
    }

    #[test]
    fn circles_are_groups_of_modules_that_reach_each_other() {
        let uses: Uses = [
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("d", "a"),
            ("e", "f"),
            ("f", "e"),
            ("g", ""),
        ]
        .into_iter()
        .map(|(user, used)| (user.to_owned(), [used.to_owned()].into()))
        .collect();
        let circles: Vec<String> = circles(&uses)
            .into_iter()
            .map(|circle| circle.into_iter().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(circles, ["a b c", "e f"]);
    }

    #[test]
    fn a_circle_must_have_the_size_in_the_list() {
        let circle = |size: usize| vec![(0..size).map(|at| at.to_string()).collect::<BTreeSet<_>>()];
        let list = [("listed", 3)];
        let expected = [
            ("listed", circle(3), None),
            ("listed", circle(4), Some("listed: a circle of 4 modules: 0, 1, 2, 3")),
            (
                "listed",
                circle(2),
                Some("listed: the largest circle has 2 modules; CIRCLES in xtask/src/modules.rs still says 3"),
            ),
            (
                "listed",
                Vec::new(),
                Some("listed: the largest circle has 0 modules; CIRCLES in xtask/src/modules.rs still says 3"),
            ),
            ("other", Vec::new(), None),
            ("other", circle(2), Some("other: a circle of 2 modules: 0, 1")),
        ];
        for (name, circles, fault) in expected {
            assert_eq!(compare(name, &circles, &list).as_deref(), fault, "{name}");
        }
    }
}
