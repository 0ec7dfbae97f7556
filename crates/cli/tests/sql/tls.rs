//! cases.md 114: a server with a certificate of a private CA, one that is for another host, and one that wants
//! a certificate of the client.

use crate::{
    certificates::{Authority, Issued},
    servers::{Database, MariaDb, Own, Postgres, Product, open_scratch, point, says, words},
    support::Scratch,
};
use engine::{ServerDef, Template};
use host::server::DataDir;

fn template(text: String) -> Template {
    Template::try_from(text).expect("a template")
}

/// PostgreSQL lets `secure` in by TLS only and `certified` with a certificate of the CA only.
const HBA: &str = "\
hostssl all certified 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
hostssl all secure 127.0.0.1/32 scram-sha-256
host all postgres 127.0.0.1/32 scram-sha-256
";

fn arguments(product: Product, s: &Scratch, issued: &Issued, ca: &Authority) -> Vec<String> {
    let (cert, key, ca) = (issued.cert.display(), issued.key.display(), ca.file.display());
    match product {
        Postgres => {
            let hba = s.write("hba.conf", HBA);
            let settings = [
                "ssl=on".to_owned(),
                format!("ssl_cert_file={cert}"),
                format!("ssl_key_file={key}"),
                format!("ssl_ca_file={ca}"),
                format!("hba_file={}", hba.display()),
            ];
            settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect()
        }
        MariaDb => vec![format!("--ssl-cert={cert}"), format!("--ssl-key={key}"), format!("--ssl-ca={ca}")],
    }
}

/// A server with TLS, and the users `secure` (any TLS) and `certified` (a client's certificate).
fn tls_server(product: Product, s: &Scratch, issued: &Issued, ca: &Authority) -> Option<(Own, Database)> {
    let arguments = arguments(product, s, issued, ca);
    let change = |def: &mut ServerDef| def.start.extend(arguments.into_iter().map(template));
    let own = Own::start_as(product, DataDir::PrivateBelow(std::env::temp_dir()), None, change)?;
    let database = own.database("tls");
    match product {
        Postgres => database.sql(
            "CREATE EXTENSION vector; CREATE ROLE secure LOGIN PASSWORD 'pw'; CREATE ROLE certified LOGIN PASSWORD 'pw'; \
             GRANT CREATE ON SCHEMA public TO secure, certified",
        ),
        MariaDb => database.sql(
            "CREATE USER secure IDENTIFIED BY 'pw' REQUIRE SSL; CREATE USER certified IDENTIFIED BY 'pw' REQUIRE X509; \
             GRANT ALL ON tls.* TO secure; GRANT ALL ON tls.* TO certified",
        ),
    };
    Some((own, database))
}

/// Runs as `user` with these parameters of the address: exit code and standard error.
fn run(database: &Database, user: &str, parameters: &str) -> (Option<i32>, String) {
    let s = Scratch::new();
    let user = database.of(user, "pw");
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

fn private_ca(product: Product) {
    let s = open_scratch();
    let (ca, other) = (Authority::new(s.path(), "ca"), Authority::new(s.path(), "other-ca"));
    let server = ca.issue("server", &["localhost", "127.0.0.1"]);
    server.give_to_the_server();
    let Some((_own, database)) = tls_server(product, &s, &server, &ca) else { return };
    // Without the CA the certificate is nobody's; the message names the way out.
    fails(&database, "secure", "sslmode=verify-full", &["TLS failed", "UnknownIssuer", "sslrootcert=FILE"]);
    fails(
        &database,
        "secure",
        &format!("sslrootcert={}", other.file.display()),
        &["TLS failed", "certificate"],
    );
    works(&database, "secure", &format!("sslrootcert={}", ca.file.display()));
    works(&database, "secure", &format!("ssl-mode=VERIFY_CA&ssl-ca={}", ca.file.display()));
    works(&database, "secure", "sslmode=require");
    let plain = if product == Postgres { "no encryption" } else { "Access denied" };
    fails(&database, "secure", "sslmode=disable", &[plain]);
    // The client's certificate.
    let (client, stranger) = (ca.issue("client", &[]), other.issue("stranger", &[]));
    let with = |issued: &Issued| {
        let (ca, cert, key) = (ca.file.display(), issued.cert.display(), issued.key.display());
        format!("sslrootcert={ca}&sslcert={cert}&sslkey={key}")
    };
    works(&database, "certified", &with(&client));
    let none = format!("sslrootcert={}", ca.file.display());
    let wanted = if product == Postgres { "requires a valid client certificate" } else { "Access denied" };
    fails(&database, "certified", &none, &[wanted]);
    let (code, err) = run(&database, "certified", &with(&stranger));
    assert_eq!(code, Some(5), "a certificate of another CA was taken: {err}");
    let missing = format!("sslrootcert={}", s.path().join("no-such.pem").display());
    let (code, err) = run(&database, "secure", &missing);
    assert_eq!(code, Some(2), "{err}");
    says(&err, &["no-such.pem", "No such file"]);
}

#[test]
fn case_114_postgresql_behind_a_private_ca() {
    private_ca(Postgres);
}

#[test]
fn case_114_mariadb_behind_a_private_ca() {
    private_ca(MariaDb);
}

/// A certificate of the right CA for another host: refused where the host counts, taken where only the CA does.
#[test]
fn case_114_a_certificate_for_another_host() {
    for product in [Postgres, MariaDb] {
        let s = open_scratch();
        let ca = Authority::new(s.path(), "ca");
        let server = ca.issue("server", &["db.example"]);
        server.give_to_the_server();
        let Some((_own, database)) = tls_server(product, &s, &server, &ca) else { continue };
        let ca = ca.file.display();
        fails(&database, "secure", &format!("sslrootcert={ca}"), &["TLS failed", "not valid for"]);
        works(&database, "secure", &format!("sslmode=verify-ca&sslrootcert={ca}"));
    }
}
