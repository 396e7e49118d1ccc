//! Which file of a package imports which.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    graph::Imports,
    source::{self, SourceFile},
};

/// The imports between the files below a package's `src`, files named from `root` on.
///
/// # Errors
/// A file cannot be read.
pub fn imports(root: &Path, package: &Path) -> io::Result<Imports> {
    let mut files = ModuleTree::default();
    let folder = package.join("src");
    for name in ["lib.rs", "main.rs"] {
        if folder.join(name).is_file() {
            files.read(&folder.join(name), &folder, Vec::new())?;
        }
    }
    let name = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    let mut imports = Imports::default();
    for (module, (path, source)) in &files.0 {
        for target in files.targets(module, source) {
            // A module whose file lies elsewhere was not read.
            let Some((other, _)) = files.0.get(&target) else { continue };
            imports.entry(name(path)).or_default().insert(name(other));
        }
    }
    Ok(imports)
}

/// A module by the names that lead to it from the package's root.
type ModuleName = Vec<String>;

#[derive(Default)]
struct ModuleTree(BTreeMap<ModuleName, (PathBuf, SourceFile)>);

impl ModuleTree {
    /// Reads a module's file, and those of its modules, which lie in `folder`.
    fn read(&mut self, path: &Path, folder: &Path, module: ModuleName) -> io::Result<()> {
        let told =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let source = SourceFile::read(&fs::read_to_string(path).map_err(told)?);
        for name in &source.modules {
            let below = folder.join(name);
            let file = folder.join(format!("{name}.rs"));
            let file = if file.is_file() { file } else { below.join("mod.rs") };
            // What lies elsewhere, by `#[path]`, is another package's.
            if !file.is_file() {
                continue;
            }
            let child = module.iter().chain([name]).cloned().collect();
            self.read(&file, &below, child)?;
        }
        self.0.insert(module, (path.into(), source));
        Ok(())
    }

    /// The modules in whose files lies what a file names.
    fn targets(&self, module: &ModuleName, source: &SourceFile) -> BTreeSet<ModuleName> {
        let of_children = |path: &&source::Path| {
            // Handing on what lies in its own modules is what a module's file is for.
            self.place(module, path).is_none_or(|(target, _)| !is_below(&target, module))
        };
        let handed_on = source.handed_on.iter().filter(of_children);
        let paths = source.named.iter().chain(handed_on);
        let targets = paths.filter_map(|path| self.target(module, path, 0));
        targets.filter(|target| target != module).collect()
    }

    /// The module that a path goes to first and what is named in it.
    fn place<'p>(
        &self,
        module: &ModuleName,
        path: &'p [String],
    ) -> Option<(ModuleName, &'p [String])> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some((Vec::new(), rest)),
            "self" => Some((module.clone(), rest)),
            "super" => {
                let above = module[..module.len().checked_sub(1)?].to_vec();
                match rest.first().is_some_and(|next| next == "super") {
                    true => self.place(&above, rest),
                    false => Some((above, rest)),
                }
            }
            name if self.0[module].1.modules.contains(name) => Some((module.clone(), path)),
            _ => None,
        }
    }

    /// The module in whose file lies what a path names; nothing where it is of another package.
    fn target(&self, module: &ModuleName, path: &[String], depth: usize) -> Option<ModuleName> {
        // Imports that go round in circles by themselves end somewhere.
        if depth > 20 {
            return None;
        }
        let (mut place, mut rest) = self.place(module, path)?;
        while let Some((name, further)) = rest.split_first() {
            let source = &self.0.get(&place)?.1;
            if source.modules.contains(name) {
                place.push(name.clone());
                rest = further;
                continue;
            }
            if source.defined.contains(name) {
                return Some(place);
            }
            if let Some(path) = source.imported.get(name) {
                let whole: Vec<String> = path.iter().chain(further).cloned().collect();
                return self.target(&place, &whole, depth + 1);
            }
            let through = source.globs.iter().filter_map(|glob| {
                let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
                let target = self.target(&place, &whole, depth + 1)?;
                self.0[&target].1.defined.contains(name).then_some(target)
            });
            return through.into_iter().next().or(Some(place));
        }
        Some(place)
    }
}

fn is_below(module: &ModuleName, above: &ModuleName) -> bool {
    module.starts_with(above)
}
