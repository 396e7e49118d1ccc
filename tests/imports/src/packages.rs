//! The order of the packages, and what each builds on.

/// The folders in the order of the first table of CONTRIBUTING.md whose heading begins with `folder`, each
/// package using only those before it.
///
/// # Errors
/// There is no such table.
pub fn order(contributing: &str) -> Result<Vec<String>, String> {
    let mut lines = contributing.lines();
    lines
        .find(|line| line.starts_with("| folder"))
        .ok_or("CONTRIBUTING.md: there is no table that begins with `| folder`")?;
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    let folder =
        |row: &str| row.split('`').nth(1).map(|name| name.trim_end_matches('/').to_owned());
    let folders: Vec<String> = rows.filter_map(folder).collect();
    match folders.is_empty() {
        true => Err("CONTRIBUTING.md: the table of folders has no rows".into()),
        false => Ok(folders),
    }
}

/// Where packages build on what stands after them: of each its folder (`src` is the root package) and
/// its Cargo.toml. A folder below another one belongs to that.
pub fn order_problems(order: &[String], packages: &[(String, String)]) -> Vec<String> {
    let place = |folder: &str| {
        let top = folder.split('/').next().unwrap_or(folder);
        order.iter().position(|it| it == top)
    };
    let mut problems = Vec::new();
    for (folder, manifest) in packages {
        let Some(own) = place(folder) else {
            problems.push(format!("{folder} is not in the table of CONTRIBUTING.md"));
            continue;
        };
        for other in dependencies(manifest) {
            match place(&other) {
                Some(others) if others >= own && !folder.starts_with(&format!("{other}/")) => {
                    problems.push(format!("{folder} builds on {other}, which stands after it"));
                }
                _ => {}
            }
        }
    }
    problems
}

/// The names in all tables of dependencies; of packages of ours they are their folders.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut is_of_dependencies = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_of_dependencies = line.ends_with("dependencies]") && !line.contains("workspace");
            continue;
        }
        let name: String =
            line.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-')).collect();
        if is_of_dependencies && !name.is_empty() {
            names.push(name.trim_start_matches("colibri-").to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "# x\n\n| folder | what |\n|---|---|\n| `a/` | one |\n| `b/` | `c` |\n| `src/` | all |\n\n| `d/` |\n";

    #[test]
    fn packages_build_on_those_before_them() {
        let order = order(TABLE).unwrap();
        assert_eq!(order, ["a", "b", "src"]);
        let package = |folder: &str, on: &str| {
            (
                folder.to_owned(),
                format!(
                    "[package]\nname = \"b\"\n[dependencies]\nserde = \"1\"\n{on}.workspace = true\n"
                ),
            )
        };
        let right =
            [package("a", "x"), package("b", "a"), package("b/part", "b"), package("src", "b")];
        assert_eq!(order_problems(&order, &right), [""; 0]);
        let wrong = [package("a", "b"), package("d", "a"), package("b", "colibri-b")];
        let told = order_problems(&order, &wrong);
        assert_eq!(told[0], "a builds on b, which stands after it");
        assert_eq!(told[1], "d is not in the table of CONTRIBUTING.md");
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(super::order("nothing").is_err());
    }

    #[test]
    fn dependencies_of_tests_count() {
        let manifest = "[dev-dependencies]\nb = { path = \"../b\" }\n[lints]\nworkspace = true\n";
        assert_eq!(dependencies(manifest), ["b"]);
    }
}
