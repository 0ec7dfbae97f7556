//! Takes credentials out of what people typed, before it is kept.

use types::Secret;

/// Option names whose value is a credential.
const SECRET_WORDS: [&str; 7] = ["password", "passwd", "pwd", "token", "secret", "api-key", "apikey"];

/// An address without its credentials: `postgres://***@host/db?sslmode=require`. Query parameters that
/// hold one are masked too.
pub fn mask_address(address: &str) -> String {
    let (scheme, rest) = match address.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), address),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password may hold a slash or an @ that was not encoded: everything up to the last @ goes.
    let at = rest[..end].rfind('@').or_else(|| rest.rfind('@').filter(|_| !scheme.is_empty()));
    let host =
        at.map_or(rest.to_owned(), |at| format!("{}@{}", mask_login(&scheme, &rest[..at]), &rest[at + 1..]));
    let Some((path, query)) = host.split_once('?') else { return scheme + &host };
    let parameters: Vec<String> = query.split('&').map(mask_pair).collect();
    format!("{scheme}{path}?{}", parameters.join("&"))
}

/// The user stays where the scheme is a database's, so that a run can be resumed by its plan; elsewhere a
/// token may stand in the user's place.
fn mask_login(scheme: &str, login: &str) -> String {
    let database = ["postgres://", "postgresql://", "mysql://", "mariadb://"].contains(&scheme);
    match login.split_once(':') {
        None if database => login.to_owned(),
        Some((user, _)) if database => format!("{user}:{}", Secret::MASK),
        _ => Secret::MASK.to_owned(),
    }
}

/// A command line without credentials: addresses are masked, and so are the values of options such as
/// `--password x` and `--token=x`.
pub fn mask_command<S: AsRef<str>>(arguments: impl IntoIterator<Item = S>) -> Vec<String> {
    let (mut hide_next, mut address_next) = (false, false);
    let mut mask = |argument: &str| {
        if std::mem::replace(&mut hide_next, false) {
            return Secret::MASK.to_owned();
        }
        if std::mem::replace(&mut address_next, argument == "--at") {
            return mask_address(argument);
        }
        if let Some(address) = argument.strip_prefix("--at=") {
            return format!("--at={}", mask_address(address));
        }
        if let Some(name) = argument.strip_prefix('-') {
            hide_next = !argument.contains('=') && is_secret(name);
        }
        // An address may hold `=` of its own, and credentials before it.
        if argument.find("://").is_some_and(|at| argument.find('=').is_none_or(|equals| at < equals)) {
            return mask_address(argument);
        }
        match argument.split_once('=') {
            Some((name, _)) if is_secret(name) => format!("{name}={}", Secret::MASK),
            Some((name, value)) if value.contains("://") => format!("{name}={}", mask_address(value)),
            _ => argument.to_owned(),
        }
    };
    arguments.into_iter().map(|argument| mask(argument.as_ref())).collect()
}

fn mask_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={}", Secret::MASK),
        _ => pair.to_owned(),
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    SECRET_WORDS.iter().any(|word| {
        name.trim_start_matches('-').split(['.', '-']).any(|part| part == *word) || name.ends_with(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_go_and_the_rest_stays() {
        for (typed, kept) in [
            ("localhost:5432", "localhost:5432"),
            ("postgres://bench:s3cret@db.example:5432/v", "postgres://bench:***@db.example:5432/v"),
            ("postgres://bench:s/3@cret@db/v?sslmode=require", "postgres://bench:***@db/v?sslmode=require"),
            ("bench:s3cret@db:6379", "***@db:6379"),
            ("https://db/?api_key=s3cret&x=1", "https://db/?api_key=***&x=1"),
        ] {
            assert_eq!(mask_address(typed), kept);
        }
        let typed = [
            "annvil",
            "run",
            "--password",
            "s3cret",
            "--token=s3cret",
            "--at",
            "pg=redis://a:s3cret@h",
            "--at",
            "postgres://a:s3cret@h/db?x=1&password=s3cret",
            "--at=a:s3cret@h:1",
            "--k",
            "10",
        ];
        let kept = mask_command(typed);
        assert_eq!(
            kept.join(" "),
            "annvil run --password *** --token=*** --at pg=redis://***@h --at postgres://a:***@h/db?x=1&password=*** \
             --at=***@h:1 --k 10"
        );
    }
}
