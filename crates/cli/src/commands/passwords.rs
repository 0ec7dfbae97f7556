//! Passwords for servers: environment, files, prompt.

use crate::{args::PasswordArgs, exit::usage_error};
use engines::Passwords;
use std::io::IsTerminal;
use types::Secret;

/// Everything that this process was given.
///
/// # Errors
/// Where the file can't be read or is empty, or nobody can be asked.
pub(crate) fn gather(args: &PasswordArgs) -> anyhow::Result<Passwords> {
    // Variables that are no text are none of ours.
    let variables =
        std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
    let passwords = Passwords::gather(variables, std::env::home_dir().as_deref());
    if let Some(path) = &args.password_file {
        let text = std::fs::read_to_string(path)
            .map_err(|e| usage_error(format!("--password-file {}: {e}", path.display())))?;
        let Some(line) = text.lines().next().filter(|line| !line.is_empty()) else {
            return Err(usage_error(format!("--password-file {}: its first line is empty", path.display())));
        };
        return Ok(passwords.with_given(Secret::new(line)));
    }
    if args.ask_password {
        if !std::io::stdin().is_terminal() {
            return Err(usage_error(
                "--ask-password needs a terminal; use --password-file or ANNVIL_PASSWORD",
            ));
        }
        let typed = rpassword::prompt_password("Password of the servers: ")
            .map_err(|e| usage_error(format!("the password could not be read: {e}")))?;
        return Ok(passwords.with_given(Secret::new(typed)));
    }
    Ok(passwords)
}
