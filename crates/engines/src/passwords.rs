//! Where passwords come from, so that none needs to stand in a command line or a plan.
//!
//! For each server the first of these: the address; a file or prompt (`--password-file`,
//! `--ask-password`); `ANNVIL_PASSWORD_<ENGINE>`; `ANNVIL_PASSWORD`; the protocol's own variable
//! (`PGPASSWORD`, `MYSQL_PWD`); its own file (`~/.pgpass` or `PGPASSFILE`; the `[client]` section of `~/.my.cnf`).

use crate::sql::address::Address;
use std::{collections::HashMap, path::Path};
use types::Secret;

/// Passwords that this process was given.
#[derive(Clone, Debug, Default)]
pub struct Passwords {
    given: Option<Secret>,
    variables: HashMap<String, Secret>,
    /// The lines of a `.pgpass`.
    pgpass: Vec<Secret>,
    my_cnf: Option<Secret>,
}

impl Passwords {
    /// From the environment and the files of the home folder. Files that cannot be read, or that others may
    /// read, are passed over, as psql does.
    pub fn gather(variables: impl IntoIterator<Item = (String, String)>, home: Option<&Path>) -> Self {
        let ours =
            |name: &str| name.starts_with("ANNVIL_PASSWORD") || ["PGPASSWORD", "MYSQL_PWD"].contains(&name);
        let (mut kept, mut pass_file) = (HashMap::new(), home.map(|h| h.join(".pgpass")));
        for (name, value) in variables {
            if name == "PGPASSFILE" {
                pass_file = Some(value.into());
            } else if ours(&name) {
                kept.insert(name, Secret::new(value));
            }
        }
        let pgpass = pass_file.as_deref().and_then(private_text).unwrap_or_default();
        let my_cnf = home.map(|h| h.join(".my.cnf")).as_deref().and_then(private_text);
        Passwords {
            given: None,
            variables: kept,
            pgpass: pgpass.lines().map(Secret::new).collect(),
            my_cnf: my_cnf.as_deref().and_then(client_password),
        }
    }

    /// These, and one that goes before all but an address's own.
    #[must_use]
    pub fn with_given(self, password: Secret) -> Self {
        Passwords { given: Some(password), ..self }
    }

    /// The password of a server.
    pub(crate) fn of(&self, engine: &str, protocol: &str, address: &Address) -> Option<Secret> {
        // A resumed run's plan has a mask in its place.
        if let Some(own) = address.password.clone().filter(|p| p.reveal() != Secret::MASK) {
            return Some(own);
        }
        let own = format!("ANNVIL_PASSWORD_{}", engine.to_ascii_uppercase().replace('-', "_"));
        let variable = |name: &str| self.variables.get(name).cloned();
        let (of_protocol, of_file) = match protocol {
            "postgres" => {
                (variable("PGPASSWORD"), self.pgpass.iter().find_map(|line| matching(line, address)))
            }
            _ => (variable("MYSQL_PWD"), self.my_cnf.clone()),
        };
        self.given
            .clone()
            .or_else(|| variable(&own))
            .or_else(|| variable("ANNVIL_PASSWORD"))
            .or(of_protocol)
            .or(of_file)
    }
}

/// A file's text, where its owner alone may read it.
fn private_text(path: &Path) -> Option<String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if std::fs::metadata(path).ok()?.permissions().mode() & 0o077 != 0 {
            return None;
        }
    }
    std::fs::read_to_string(path).ok()
}

/// The password of a line `host:port:database:user:password`, where the line is about this server.
/// Source: PostgreSQL's manual, "The Password File".
fn matching(line: &Secret, address: &Address) -> Option<Secret> {
    let mut fields = fields(line.reveal());
    let user = address.user.as_deref().unwrap_or("postgres");
    let database = address.database.as_deref().unwrap_or(user);
    let host = if address.socket.is_some() { "localhost" } else { address.host.as_str() };
    let wanted = [host, &address.port.to_string(), database, user];
    if fields.len() != 5 || line.reveal().starts_with('#') {
        return None;
    }
    let password = fields.pop()?;
    fields
        .iter()
        .zip(wanted)
        .all(|(field, value)| field == "*" || field == value)
        .then(|| Secret::new(password))
}

/// The parts between colons; `\:` and `\\` stand for themselves.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut escaped) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '\\' if !escaped => escaped = true,
            ':' if !escaped && fields.len() < 5 => fields.push(String::new()),
            _ => {
                escaped = false;
                if let Some(last) = fields.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    fields
}

/// `password` of the section `[client]`.
fn client_password(text: &str) -> Option<Secret> {
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.trim();
        } else if let Some((name, value)) = line.split_once('=')
            && section == "client"
            && name.trim() == "password"
        {
            return Some(Secret::new(value.trim().trim_matches(['"', '\''])));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::parse(text, &["postgres", "mysql"], 5432).unwrap()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    fn revealed(passwords: &Passwords, engine: &str, protocol: &str, at: &str) -> Option<String> {
        passwords.of(engine, protocol, &address(at)).map(|p| p.reveal().to_owned())
    }

    #[test]
    fn the_nearest_source_wins() {
        let at = "postgres://me@db/b";
        let passwords = Passwords::gather(pairs(&[("PGPASSWORD", "c"), ("HOME", "x")]), None);
        assert_eq!(revealed(&passwords, "pgvector", "postgres", at).as_deref(), Some("c"));
        assert_eq!(revealed(&passwords, "mariadb", "mysql", at), None);
        let passwords = Passwords::gather(
            pairs(&[("PGPASSWORD", "c"), ("ANNVIL_PASSWORD", "b"), ("ANNVIL_PASSWORD_MY_FORK", "a")]),
            None,
        );
        assert_eq!(revealed(&passwords, "my-fork", "postgres", at).as_deref(), Some("a"));
        assert_eq!(revealed(&passwords, "mariadb", "mysql", at).as_deref(), Some("b"));
        let passwords = passwords.with_given(Secret::new("hunter2"));
        assert_eq!(revealed(&passwords, "my-fork", "postgres", at).as_deref(), Some("hunter2"));
        assert_eq!(revealed(&passwords, "x", "postgres", "postgres://me:own@db/b").as_deref(), Some("own"));
        assert_eq!(
            revealed(&passwords, "x", "postgres", "postgres://me:***@db/b").as_deref(),
            Some("hunter2")
        );
        assert!(!format!("{passwords:?}").contains("hunter2"));
    }

    #[test]
    #[cfg(unix)]
    fn password_files_are_read_as_their_clients_do() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let path = home.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let pgpass = "# a comment:5432:b:me:no\nother:5432:*:me:no\ndb:*:b:me:p\\:w\\\\d\n*:*:*:*:last\n";
        write(".pgpass", pgpass, 0o600);
        write(".my.cnf", "[mysqld]\npassword=no\n[client]\nuser = me\npassword = \"of mine\"\n", 0o600);
        let passwords = Passwords::gather(Vec::new(), Some(home.path()));
        let of = |protocol: &str, at: &str| revealed(&passwords, "x", protocol, at);
        assert_eq!(of("postgres", "postgres://me@db/b").as_deref(), Some("p:w\\d"));
        assert_eq!(of("postgres", "postgres://you@db/b").as_deref(), Some("last"));
        assert_eq!(of("mysql", "mysql://me@db/b").as_deref(), Some("of mine"));
        write(".pgpass", pgpass, 0o644);
        assert_eq!(
            revealed(
                &Passwords::gather(Vec::new(), Some(home.path())),
                "x",
                "postgres",
                "postgres://me@db/b"
            ),
            None
        );
    }
}
