//! Folders by a pattern: `/usr/lib/postgresql/*/bin`.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

/// The folders that match, those with the highest numbers first. `*` stands for any part of one name.
pub(super) fn matches(pattern: &str) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        found = found.iter().flat_map(|folder| below(folder, part)).collect();
    }
    found.sort_by(|a, b| newest_first(&a.to_string_lossy(), &b.to_string_lossy()));
    found
}

fn below(folder: &Path, part: &str) -> Vec<PathBuf> {
    if !part.contains('*') {
        let path = folder.join(part);
        return if path.is_dir() { vec![path] } else { Vec::new() };
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| fits(name, part)))
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

/// Whether a name is the pattern's pieces, in order, with anything between them.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(name) = name.strip_prefix(first) else { return false };
    // The first star may take any number of characters; what follows must fit the rest.
    name.char_indices().map(|(at, _)| at).chain([name.len()]).any(|at| fits(&name[at..], rest))
}

/// Numbers compare as numbers and the larger comes first, so 17 stands before 9.
fn newest_first(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (number_a, rest_a) = leading_number(a);
        let (number_b, rest_b) = leading_number(b);
        match (number_a, number_b) {
            (Some(x), Some(y)) if x != y => return y.cmp(&x),
            (Some(_), Some(_)) => (a, b) = (rest_a, rest_b),
            _ => {
                let (mut chars_a, mut chars_b) = (a.chars(), b.chars());
                match (chars_a.next(), chars_b.next()) {
                    (None, None) => return Ordering::Equal,
                    (x, y) if x == y => (a, b) = (chars_a.as_str(), chars_b.as_str()),
                    (x, y) => return x.cmp(&y),
                }
            }
        }
    }
}

fn leading_number(text: &str) -> (Option<u64>, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].parse().ok(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_stands_first() {
        let top = tempfile::tempdir().unwrap();
        for name in ["9/bin", "17/bin", "17.2/bin", "18beta/lib", "x/bin"] {
            std::fs::create_dir_all(top.path().join(name)).unwrap();
        }
        std::fs::write(top.path().join("20"), "a file").unwrap();
        let pattern = format!("{}/*/bin", top.path().display());
        let found: Vec<String> = matches(&pattern)
            .iter()
            .map(|path| path.strip_prefix(top.path()).unwrap().display().to_string())
            .collect();
        assert_eq!(found, ["17.2/bin", "17/bin", "9/bin", "x/bin"]);
        assert_eq!(matches(&format!("{}/17/bin", top.path().display())).len(), 1);
        assert!(matches(&format!("{}/none/bin", top.path().display())).is_empty());
    }

    #[test]
    fn a_star_is_any_part_of_a_name() {
        for (name, pattern, expected) in [
            ("pgsql-17", "pgsql-*", true),
            ("pgsql-", "pgsql-*", true),
            ("xpgsql-17", "pgsql-*", false),
            ("mariadb@11.8", "mariadb*.8", true),
            ("mariadb.8.9", "mariadb*.8", false),
            ("a-é-b", "*-*-b", true),
            ("ab", "ab", true),
        ] {
            assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
        }
    }
}
