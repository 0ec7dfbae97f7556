//! Packages of a Debian release other than the machine's, unpacked into a folder: apt with lists, cache
//! and status of its own, so that nothing of the system changes and no root is needed. The mirror is the
//! one that the machine's own sources name; signatures are checked with the keys that Debian installs.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Fault, files, shell};

/// Debian's own keys; the first that is there.
const KEYS: [&str; 2] =
    ["/usr/share/keyrings/debian-archive-keyring.pgp", "/usr/share/keyrings/debian-archive-keyring.gpg"];

/// Unpacks `packages` of the release `suite`, with all that they need, into `root`. `scratch` is an
/// empty folder that is removed after.
pub(crate) fn unpack(suite: &str, packages: &[&str], root: &Path, scratch: &Path) -> Result<(), Fault> {
    for program in ["apt-get", "dpkg-deb", "dpkg"] {
        if !shell::there(program) {
            return Err(Fault::Cannot(format!(
                "it comes from Debian's packages, and there is no {program} here"
            )));
        }
    }
    let keys = KEYS.iter().find(|path| Path::new(path).exists());
    let keys =
        keys.ok_or_else(|| Fault::Cannot("no keys of Debian; install debian-archive-keyring".into()))?;
    let mirror = machines_mirror()?;
    let architecture = shell::run(Command::new("dpkg").arg("--print-architecture"))?;
    let apt = Apt::new(scratch, &sources(&mirror, suite, architecture.trim(), keys))?;
    let downloaded = |error: anyhow::Error| Fault::Cannot(refused(suite, &mirror, &format!("{error:#}")));
    shell::run(apt.command().arg("update")).map_err(downloaded)?;
    let words = ["install", "--download-only", "--yes", "--no-install-recommends"];
    shell::run(apt.command().args(words).args(packages)).map_err(downloaded)?;
    files::create_folder(root)?;
    for package in apt.packages()? {
        shell::run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(root))?;
    }
    files::remove(scratch)?;
    Ok(())
}

/// The mirror of Debian that the machine's own sources name.
fn machines_mirror() -> Result<String, Fault> {
    // With what the fetched lists say of their origin; without, where they were removed, as in images of
    // containers: then apt names no target unless told to do without.
    for lists in ["--release-info", "--no-release-info"] {
        let format = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)";
        let words = ["indextargets", lists, "--format", format, "Identifier: Packages"];
        if let Some(found) = mirror(&shell::run(Command::new("apt-get").args(words))?) {
            return Ok(found.to_string());
        }
    }
    Err(Fault::Cannot("it comes from Debian's packages, and apt's sources name no mirror of Debian".into()))
}

/// Why apt got nothing, and what to do.
fn refused(suite: &str, mirror: &str, error: &str) -> String {
    let advice = if error.contains("is not signed") {
        "its signature was not accepted; a newer debian-archive-keyring may know the key"
    } else {
        "is the network there?"
    };
    format!("apt got no packages of {suite} from {mirror} ({advice}): {error}")
}

/// An apt that knows nothing of the system but its proxies and passwords.
struct Apt {
    home: PathBuf,
}

impl Apt {
    fn new(home: &Path, sources: &str) -> Result<Apt> {
        // Text of apt's configuration has no escapes.
        let text = home.to_str().filter(|text| !text.contains(['"', '\n']));
        let text =
            text.with_context(|| format!("apt cannot use a folder of this name: {}", home.display()))?;
        for folder in ["lists/partial", "archives/partial", "sources"] {
            files::create_folder(&home.join(folder))?;
        }
        for (name, content) in
            [("status", ""), ("sources/one.sources", sources), ("apt.conf", &configuration(text))]
        {
            let path = home.join(name);
            fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
        }
        // As root, apt downloads as its own user, who must be able to read all this.
        if files::is_root() {
            files::open_to_all(home)?;
        }
        Ok(Apt { home: home.into() })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("apt-get");
        // Read after the system's configuration, so it wins.
        command.arg("--config-file").arg(self.home.join("apt.conf")).arg("--quiet");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// The downloaded packages, by name.
    fn packages(&self) -> Result<Vec<PathBuf>> {
        let archives = self.home.join("archives");
        let mut packages = Vec::new();
        for entry in fs::read_dir(&archives).with_context(|| format!("listing {}", archives.display()))? {
            let path = entry.with_context(|| format!("listing {}", archives.display()))?.path();
            if path.extension().is_some_and(|end| end == "deb") {
                packages.push(path);
            }
        }
        if packages.is_empty() {
            bail!("apt downloaded no package into {}", archives.display());
        }
        packages.sort();
        Ok(packages)
    }
}

/// The mirror of Debian among the targets, one a line: address, release, component, origin. The origin
/// is known once the machine's lists were fetched; where no line has one, the address must end in
/// `debian`, as all official mirrors' do.
fn mirror(targets: &str) -> Option<&str> {
    let mut main = Vec::new();
    for line in targets.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), Some(release), Some("main")) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        // Not those of updates, security and backports, which lie beside and hold a part only.
        if release.contains(['-', '/']) || address.starts_with("cdrom:") {
            continue;
        }
        let origin = words.next().filter(|word| !word.starts_with('$'));
        main.push((address, origin));
    }
    let named = main.iter().find(|(_, origin)| *origin == Some("Debian"));
    let ends_so = |address: &str| {
        let last = address.trim_end_matches('/').rsplit('/').next();
        last.is_some_and(|word| word == "debian" || word == "debian.list")
    };
    let guessed = || main.iter().find(|(address, origin)| origin.is_none() && ends_so(address));
    named.or_else(guessed).map(|(address, _)| *address)
}

fn sources(mirror: &str, suite: &str, architecture: &str, keys: &str) -> String {
    format!(
        "Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\nArchitectures: {architecture}\n\
         Signed-By: {keys}\n"
    )
}

/// What makes apt keep to `home`. Proxies, certificates and passwords of the system stay.
fn configuration(home: &str) -> String {
    format!(
        r#"#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Update::Pre-Invoke;
#clear Acquire::Languages;
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Packages {{
  MetaKey "$(COMPONENT)/binary-$(ARCHITECTURE)/Packages";
  flatMetaKey "Packages";
  ShortDescription "Packages";
  Description "$(RELEASE)/$(COMPONENT) $(ARCHITECTURE) Packages";
  flatDescription "$(RELEASE) Packages";
  Optional "false";
}};
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
Acquire::AllowInsecureRepositories "false";
APT::Get::AllowUnauthenticated "false";
APT::Default-Release "";
APT::Update::Error-Mode "any";
Dir::State "{home}";
Dir::State::lists "{home}/lists";
Dir::State::status "{home}/status";
Dir::Cache "{home}";
Dir::Cache::archives "{home}/archives";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{home}/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Log "{home}";
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_debians_main_release() {
        let targets = "\
http://packages.example/debian/ bookworm-pgdg main apt.example
http://vendor.example/apt/ bookworm main Vendor
http://mirror.example/debian-security/ bookworm-security main Debian
http://mirror.example/debian/ bookworm-updates main Debian
http://mirror.example/archive/ bookworm main Debian
";
        assert_eq!(mirror(targets), Some("http://mirror.example/archive/"));
        assert_eq!(mirror(""), None);
        assert_eq!(mirror("http://vendor.example/debian bookworm main Vendor\n"), None);
        assert_eq!(mirror("http://a.example/ubuntu/ noble main Ubuntu\n"), None);
    }

    #[test]
    fn a_refused_signature_is_no_fault_of_the_network() {
        let unsigned =
            refused("trixie", "http://m", "E: The repository 'http://m trixie InRelease' is not signed.");
        assert!(unsigned.contains("keyring") && !unsigned.contains("network"), "{unsigned}");
        let unreachable = refused("trixie", "http://m", "E: Failed to fetch http://m/dists/trixie/InRelease");
        assert!(unreachable.contains("network") && !unreachable.contains("keyring"), "{unreachable}");
    }

    #[test]
    fn without_lists_the_mirror_is_known_by_its_address() {
        for (line, found) in [
            ("http://a.example/debian/ bookworm main $(ORIGIN)", true),
            ("http://a.example/debian bookworm main", true),
            ("mirror+file:/etc/apt/mirrors/debian.list bookworm main", true),
            ("http://a.example/debian-security bookworm main", false),
            ("http://a.example/debian bookworm contrib", false),
            ("cdrom:[Debian]/debian bookworm main", false),
            ("http://a.example/ubuntu/ noble main", false),
        ] {
            assert_eq!(mirror(line).is_some(), found, "{line}");
        }
    }
}
