//! cases.md 114: a server with a certificate of a private CA, one that is for another host, and one that wants
//! a certificate of the client. MariaDB does TLS itself; in front of PostgreSQL there is a proxy that does.

use crate::{
    certificates::{Authority, Issued},
    servers::{Database, MariaDb, Own, Postgres, database, open_scratch, point, says, words},
    support::Scratch,
    tls_proxy,
};
use engine::{ServerDef, Template};
use host::server::DataDir;

/// MariaDB with a certificate, and the users `secure` (any TLS) and `certified` (a client's certificate).
fn mariadb(issued: &Issued, ca: &Authority) -> Option<(Own, Database)> {
    issued.give_to_the_server();
    let (cert, key, ca) = (issued.cert.display(), issued.key.display(), ca.file.display());
    let arguments = [format!("--ssl-cert={cert}"), format!("--ssl-key={key}"), format!("--ssl-ca={ca}")];
    let templates = arguments.map(|text| Template::try_from(text).expect("a template"));
    let change = |def: &mut ServerDef| def.start.extend(templates);
    let own = Own::start_as(MariaDb, DataDir::PrivateBelow(std::env::temp_dir()), None, change)?;
    let database = own.database("tls");
    database.sql(
        "CREATE USER secure IDENTIFIED BY 'pw' REQUIRE SSL; CREATE USER certified IDENTIFIED BY 'pw' REQUIRE X509; \
         GRANT ALL ON tls.* TO secure; GRANT ALL ON tls.* TO certified",
    );
    Some((own, database))
}

/// Runs as `user` with these parameters of the address: exit code and standard error.
fn run(database: &Database, user: &str, parameters: &str) -> (Option<i32>, String) {
    let s = Scratch::new();
    let user = if user.is_empty() { database.clone() } else { database.of(user, "pw") };
    let at = format!("{}?{parameters}", user.at());
    let done = user.annvil(&s, &words(database.product.engine(), Some(&at), "r", &["--limit", "300"]));
    if done.code == Some(0) {
        assert_eq!(point(&s, "r", database.product.engine(), "sweep")["status"], "valid");
    } else {
        assert!(!s.path().join("r").exists(), "{}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    }
    (done.code, done.err)
}

#[track_caller]
fn fails(database: &Database, user: &str, parameters: &str, parts: &[&str]) {
    let (code, err) = run(database, user, parameters);
    assert_eq!(code, Some(5), "{parameters}: {err}");
    says(&err, parts);
}

#[track_caller]
fn works(database: &Database, user: &str, parameters: &str) {
    let (code, err) = run(database, user, parameters);
    assert_eq!(code, Some(0), "{parameters}: {err}");
}

/// The address's parameters for a client with this certificate.
fn with(ca: &Authority, issued: &Issued) -> String {
    let (ca, cert, key) = (ca.file.display(), issued.cert.display(), issued.key.display());
    format!("sslrootcert={ca}&sslcert={cert}&sslkey={key}")
}

/// Without the CA the certificate is nobody's, and the message names the way out; with it all is well.
fn knows_the_ca(database: &Database, user: &str, ca: &Authority, other: &Authority) {
    fails(database, user, "sslmode=verify-full", &["TLS failed", "UnknownIssuer", "sslrootcert=FILE"]);
    fails(database, user, &format!("sslrootcert={}", other.file.display()), &["TLS failed", "certificate"]);
    works(database, user, &format!("sslrootcert={}", ca.file.display()));
    works(database, user, &format!("ssl-mode=VERIFY_CA&ssl-ca={}", ca.file.display()));
    works(database, user, "sslmode=require");
    let (code, err) = run(database, user, "sslrootcert=./no-such.pem");
    assert_eq!(code, Some(2), "{err}");
    says(&err, &["no-such.pem", "No such file"]);
}

#[test]
fn case_114_postgresql_behind_a_private_ca() {
    let Some(database) = database(Postgres, "tls") else { return };
    let s = open_scratch();
    let (ca, other) = (Authority::new(s.path(), "ca"), Authority::new(s.path(), "other-ca"));
    let server = ca.issue("server", &["localhost", "127.0.0.1"]);
    let open = Database { port: tls_proxy::before(database.port, &server, None), ..database.clone() };
    knows_the_ca(&open, "", &ca, &other);
    let closed = Database { port: tls_proxy::before(database.port, &server, Some(&ca)), ..database.clone() };
    works(&closed, "", &with(&ca, &ca.issue("client", &[])));
    fails(&closed, "", &format!("sslrootcert={}", ca.file.display()), &["TLS failed", "CertificateRequired"]);
    fails(&closed, "", &with(&ca, &other.issue("stranger", &[])), &["TLS failed", "alert"]);
}

#[test]
fn case_114_mariadb_behind_a_private_ca() {
    let s = open_scratch();
    let (ca, other) = (Authority::new(s.path(), "ca"), Authority::new(s.path(), "other-ca"));
    let Some((_own, database)) = mariadb(&ca.issue("server", &["localhost", "127.0.0.1"]), &ca) else {
        return;
    };
    knows_the_ca(&database, "secure", &ca, &other);
    fails(&database, "secure", "sslmode=disable", &["Access denied"]);
    works(&database, "certified", &with(&ca, &ca.issue("client", &[])));
    fails(&database, "certified", &format!("sslrootcert={}", ca.file.display()), &["Access denied"]);
    fails(&database, "certified", &with(&ca, &other.issue("stranger", &[])), &["127.0.0.1"]);
}

/// A certificate of the right CA for another host: refused where the host counts, taken where only the CA does.
#[test]
fn case_114_a_certificate_for_another_host() {
    let s = open_scratch();
    let ca = Authority::new(s.path(), "ca");
    let server = ca.issue("server", &["db.example"]);
    let full = format!("sslrootcert={}", ca.file.display());
    let chain = format!("sslmode=verify-ca&{full}");
    if let Some(database) = database(Postgres, "tls_host") {
        let open = Database { port: tls_proxy::before(database.port, &server, None), ..database.clone() };
        fails(&open, "", &full, &["TLS failed", "not valid for"]);
        works(&open, "", &chain);
    }
    if let Some((_own, database)) = mariadb(&server, &ca) {
        fails(&database, "secure", &full, &["TLS failed", "not valid for"]);
        works(&database, "secure", &chain);
    }
}
