//! The README's commands for databases, on servers of the test; the others are run by `readme.rs` beside this folder.

use crate::{
    servers::{Product::*, clean, database, open_scratch},
    support::{done, workspace},
};

#[test]
fn the_commands_of_the_readme_for_databases_work() {
    let (Some(postgres), Some(mariadb)) = (database(Postgres, "readme"), database(MariaDb, "readme")) else {
        return;
    };
    let (Some(pg), Some(my)) = (Postgres.program_option(), MariaDb.program_option()) else { return };
    let readme = std::fs::read_to_string(workspace().join("README.md")).expect("README.md");
    let commands: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    annvil "))
        .filter(|line| line.contains("pgvector"))
        .map(|line| line.split(" #").next().unwrap_or(line))
        .collect();
    assert!(commands.len() >= 2, "{commands:?}");
    for command in commands {
        let s = open_scratch();
        let (at_postgres, at_mariadb) = (postgres.at(), mariadb.at());
        let mut words: Vec<&str> = command.split_whitespace().collect();
        for word in &mut words {
            match *word {
                "postgres://me@db1/bench" => *word = &at_postgres,
                "mysql://me@db2/bench" => *word = &at_mariadb,
                _ => {}
            }
        }
        if !words.contains(&"--at") {
            words.extend(["--program", &pg, "--program", &my, "--server-memory", "600MB"]);
        }
        words.extend(["--limit", "1000", "--effort", "40", "--repeats", "2", "--min-window", "5ms"]);
        let mut annvil = clean(&s, &words);
        annvil
            .env("ANNVIL_PASSWORD_PGVECTOR", &postgres.password)
            .env("ANNVIL_PASSWORD_MARIADB", &mariadb.password);
        let done = done(annvil.output().expect("annvil starts"));
        assert_eq!(done.code, Some(0), "annvil {words:?}\n{}\n{}", done.out, done.err);
        assert!(
            done.out.contains("PostgreSQL with pgvector") && done.out.contains("MariaDB"),
            "{}",
            done.out
        );
    }
}
