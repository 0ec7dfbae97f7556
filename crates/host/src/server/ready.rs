//! Ports of 127.0.0.1: a free one, and whether a process listens on one.

use crate::process::descendants;
use crate::tree::Tree;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A port that nobody uses now.
pub(super) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Whether somebody uses a port.
pub(super) fn is_taken(port: u16) -> bool {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    bound.is_err_and(|e| e.kind() == std::io::ErrorKind::AddrInUse)
}

/// Whether process `pid` (or one it started) listens on `port`. The kernel's table is read, so that the
/// server does not see a connection that says nothing, and that another program's port is not
/// taken for its own. On a system without the table, a connection is tried.
pub(super) fn listens(pid: u32, port: u16) -> bool {
    let tree = Tree::machine();
    let Some(table) = tree.text("proc/net/tcp") else {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        return TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok();
    };
    let mut sockets = listeners(&table, port);
    sockets.extend(tree.text("proc/net/tcp6").iter().flat_map(|table| listeners(table, port)));
    !sockets.is_empty() && owns(&tree, pid, &sockets)
}

/// A listening socket: its owner's user id and its inode.
type Socket = (u32, u64);

/// The listening sockets of a port, from a text such as `/proc/net/tcp`.
fn listeners(table: &str, port: u16) -> Vec<Socket> {
    let line = |line: &str| -> Option<Socket> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = fields.get(1)?.rsplit_once(':')?;
        let listening = *fields.get(3)? == "0A" && u16::from_str_radix(local, 16).ok()? == port;
        if !listening {
            return None;
        }
        Some((fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?))
    };
    table.lines().filter_map(line).collect()
}

/// Whether the process or a descendant has one of the sockets open. Where its files can't be looked
/// at (another user's, in a container), its user must be the socket's.
fn owns(tree: &Tree, pid: u32, sockets: &[Socket]) -> bool {
    let pids = std::iter::once(pid).chain(descendants(tree, pid).into_iter().map(|(pid, _)| pid));
    pids.into_iter().any(|pid| {
        let folder = tree.path(&format!("proc/{pid}/fd"));
        match std::fs::read_dir(&folder) {
            Ok(entries) => entries.filter_map(Result::ok).any(|entry| {
                let target = std::fs::read_link(entry.path()).unwrap_or_default();
                let target = target.to_string_lossy();
                let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
                inode.and_then(|i| i.parse().ok()).is_some_and(|i: u64| sockets.iter().any(|s| s.1 == i))
            }),
            Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
                use std::os::unix::fs::MetadataExt;
                let owner = std::fs::metadata(tree.path(&format!("proc/{pid}"))).map(|facts| facts.uid());
                owner.is_ok_and(|owner| sockets.iter().any(|socket| socket.0 == owner))
            }
            Err(_) => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000 65534        0 71234 1 0000 100 0
   1: 0100007F:1538 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 71300 1 0000 20 4
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 555 1 0000 100 0
";

    #[test]
    fn listeners_of_a_port_are_read() {
        assert_eq!(listeners(TABLE, 5432), [(65534, 71234)]);
        assert_eq!(listeners(TABLE, 22), [(0, 555)]);
        assert!(listeners(TABLE, 40000).is_empty() && listeners("odd\n", 1).is_empty());
    }

    #[test]
    fn our_own_port_is_ours_and_not_that_of_another_process() {
        let port = free_port().unwrap();
        assert!(!is_taken(port) && !listens(std::process::id(), port));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        assert!(is_taken(port) && listens(std::process::id(), port));
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mistaken = listens(other.id(), port);
        other.kill().unwrap();
        other.wait().unwrap();
        drop(listener);
        assert!(!mistaken);
    }
}
