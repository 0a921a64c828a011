//! The house plan, kept: who may import whom, what the pure core may not touch, and that every file
//! says what it is for.

use std::path::{Path, PathBuf};

/// Every `.rs` file opens with a `//!` page.
#[test]
fn every_file_starts_with_its_page() {
    for (path, text) in sources(&root())
        .into_iter()
        .chain(sources(&manifest().join("tests")))
    {
        assert!(text.starts_with("//!"), "{} has no page", path.display());
    }
}

/// The protocol decides and nothing else: no crate of ours, no runtime, no clock.
#[test]
fn the_protocol_is_pure() {
    let tests = |path: &Path| path.components().any(|part| part.as_os_str() == "tests");
    for (path, text) in room("protocol") {
        if tests(&path) {
            continue;
        }
        for line in code(&text) {
            for room in [
                "auth",
                "cli",
                "config",
                "error",
                "http",
                "limit",
                "policy",
                "relay",
                "store",
                "telemetry",
                "upstream",
            ] {
                assert!(
                    !line.contains(&format!("crate::{room}")),
                    "{}: {line}",
                    path.display()
                );
            }
            for name in [
                "tokio",
                "axum",
                "hyper",
                "Instant::now",
                "SystemTime::now",
                "std::net",
                "std::thread",
            ] {
                assert!(!line.contains(name), "{}: {line}", path.display());
            }
        }
    }
}

/// Nobody reaches back into the HTTP surface.
#[test]
fn nobody_imports_http() {
    for (path, text) in sources(&root()) {
        let name = path.strip_prefix(root()).unwrap().to_owned();
        let own = name.starts_with("http");
        let wiring = ["lib.rs", "main.rs", "gateway.rs"]
            .iter()
            .any(|file| name == Path::new(file))
            || name.starts_with("cli");
        if own || wiring {
            continue;
        }
        for line in code(&text) {
            assert!(!line.contains("crate::http"), "{}: {line}", path.display());
        }
    }
}

/// The rooms below don't know the rooms above.
#[test]
fn arrows_never_turn_back() {
    let forbidden: [(&str, &[&str]); 6] = [
        ("store", &["relay", "http", "auth", "policy"]),
        ("auth", &["relay", "http", "policy"]),
        ("policy", &["relay", "http"]),
        ("upstream", &["relay", "http", "auth", "policy"]),
        (
            "config",
            &[
                "relay",
                "http",
                "auth",
                "policy",
                "upstream",
                "store",
                "telemetry",
            ],
        ),
        (
            "telemetry",
            &["relay", "http", "policy", "upstream", "store"],
        ),
    ];
    for (name, others) in forbidden {
        for (path, text) in room(name) {
            for line in code(&text) {
                for other in others {
                    assert!(
                        !line.contains(&format!("crate::{other}")),
                        "{}: {line}",
                        path.display()
                    );
                }
            }
        }
    }
}

/// A client-side face never sees a server-side one.
#[test]
fn faces_do_not_see_each_other() {
    for (path, text) in room("protocol") {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for line in code(&text) {
            if name.starts_with("client_") {
                assert!(
                    !line.contains("server_legacy") && !line.contains("server_modern"),
                    "{}: {line}",
                    path.display()
                );
            }
            if name.starts_with("server_") {
                assert!(
                    !line.contains("client_legacy") && !line.contains("client_modern"),
                    "{}: {line}",
                    path.display()
                );
            }
        }
    }
}

/// A page that can be held in the head. Tables of tests may be longer.
#[test]
fn no_file_is_too_long() {
    for (path, text) in sources(&root()) {
        let lines = text.lines().count();
        let tests = path.components().any(|part| part.as_os_str() == "tests");
        assert!(
            tests || lines <= 600,
            "{} has {lines} lines",
            path.display()
        );
    }
}

/// Lines without comments, for prose may name what code may not, and without the tests at the
/// bottom, which may read a clock to have an instant to start from.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let tests = text
        .rfind("\n#[cfg(test)]")
        .filter(|&at| text[at..].contains("\nmod tests"));
    let built = &text[..tests.unwrap_or(text.len())];
    built
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
}

/// The files of a room, be it a folder or a single file. A room that is not built yet is empty.
fn room(name: &str) -> Vec<(PathBuf, String)> {
    let file = root().join(format!("{name}.rs"));
    if let Ok(text) = std::fs::read_to_string(&file) {
        return vec![(file, text)];
    }
    let folder = root().join(name);
    let in_tests = |path: &Path| path.strip_prefix(&folder).unwrap().starts_with("tests");
    sources(&folder)
        .into_iter()
        .filter(|(path, _)| !in_tests(path))
        .collect()
}

fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // Installed software of others is not ours to keep tidy.
            if !path.ends_with("node_modules") && !path.ends_with("target") {
                found.extend(sources(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
    found
}

fn root() -> PathBuf {
    manifest().join("src")
}

fn manifest() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
