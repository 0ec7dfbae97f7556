//! Against a server of our own, since real hosts change and are not always reachable.

use super::*;
use crate::catalogue::{Layout, Role};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What a client asked for.
#[derive(Clone, Debug)]
struct Request {
    path: String,
    headers: HashMap<String, String>,
}

impl Request {
    /// First byte of the range asked for.
    fn from(&self) -> Option<usize> {
        self.headers.get("range")?.strip_prefix("bytes=")?.split('-').next()?.parse().ok()
    }
}

struct Server {
    base: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers each connection with `answer(request, number of requests before it, stream)`. The
    /// thread ends with the test process.
    fn start(answer: impl Fn(&Request, usize, &mut TcpStream) + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let Some(request) = read_request(&stream) else { continue };
                let before = log.lock().unwrap().len();
                log.lock().unwrap().push(request.clone());
                answer(&request, before, &mut stream);
            }
        });
        Server { base, seen }
    }

    fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let headers = lines
        .map_while(Result::ok)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    Some(Request { path, headers })
}

/// Sends a head and as much of the body as is given; the client may be gone.
fn send(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n");
    let _gone = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

/// Answers a request for `data` as a good server does, but sends at most `most` bytes of it.
fn serve(request: &Request, stream: &mut TcpStream, data: &[u8], most: usize) {
    let etag = "ETag: \"one\"\r\n";
    let from = request.from().filter(|_| request.headers.get("if-range").is_none_or(|tag| tag == "\"one\""));
    match from {
        Some(from) if from >= data.len() => {
            send(
                stream,
                "416 Range Not Satisfiable",
                &format!("Content-Range: bytes */{}\r\n", data.len()),
                b"",
            );
        }
        Some(from) => {
            let asked_end =
                request.headers["range"].rsplit('-').next().and_then(|end| end.parse::<usize>().ok());
            let end = asked_end.map_or(data.len(), |end| (end + 1).min(data.len()));
            let headers = format!(
                "{etag}Content-Length: {}\r\nContent-Range: bytes {from}-{}/{}\r\n",
                end - from,
                end - 1,
                data.len()
            );
            send(stream, "206 Partial Content", &headers, &data[from..end.min(from.saturating_add(most))]);
        }
        None => {
            let headers = format!("{etag}Content-Length: {}\r\n", data.len());
            send(stream, "200 OK", &headers, &data[..most.min(data.len())]);
        }
    }
}

/// A file that begins as HDF5 does.
fn hdf5_like(bytes: usize) -> Vec<u8> {
    let mut data = b"\x89HDF\r\n\x1a\n".to_vec();
    data.extend((data.len()..bytes).map(|i| (i * 7 % 251) as u8));
    data
}

fn sha256(data: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(data).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file(name: &str, url: String) -> FileEntry {
    FileEntry {
        name: name.to_owned(),
        role: Role::Base,
        urls: vec![url],
        bytes: None,
        sha256: None,
        optional: false,
        crop_rows: None,
    }
}

fn entry(files: Vec<FileEntry>) -> Entry {
    Entry {
        name: "set".to_owned(),
        source: "test".to_owned(),
        source_title: "Test".to_owned(),
        checksums: "none".to_owned(),
        rows: None,
        queries: None,
        dim: None,
        metric: "euclidean".to_owned(),
        element: "f32".to_owned(),
        layout: Layout::Hdf5,
        about_bytes: None,
        note: None,
        unsupported: None,
        files,
    }
}

fn quick() -> FetchOptions {
    FetchOptions {
        backoff: Duration::from_millis(1),
        timeout: Duration::from_millis(400),
        tries: 3,
        ..FetchOptions::default()
    }
}

/// One set with one file, in a fresh folder.
struct Trial {
    root: tempfile::TempDir,
    entry: Entry,
}

impl Trial {
    fn new(file: FileEntry) -> Trial {
        Trial { root: tempfile::tempdir().unwrap(), entry: entry(vec![file]) }
    }

    fn run(&self, options: &FetchOptions) -> Result<Fetched, DatasetError> {
        fetch(&self.entry, self.root.path(), options, &mut |_| {})
    }

    fn path(&self) -> PathBuf {
        self.entry.dir(self.root.path()).join(&self.entry.files[0].name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.entry.dir(self.root.path()))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn an_interrupted_transfer_goes_on_by_range_and_is_not_fetched_again() {
    let data = hdf5_like(50_000_000);
    let sent = data.clone();
    // Each connection breaks after 20 MB.
    let server = Server::start(move |request, _, stream| serve(request, stream, &sent, 20_000_000));
    let trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
    let mut progress = Vec::new();
    let fetched = fetch(&trial.entry, trial.root.path(), &quick(), &mut |event| {
        if let Event::Progress { done, total, bytes_per_sec, .. } = event {
            progress.push((done, total, bytes_per_sec));
        }
    })
    .unwrap();
    assert!(std::fs::read(trial.path()).unwrap() == data);
    let requests = server.requests();
    assert!(requests.len() >= 3, "{}", requests.len());
    assert_eq!(requests[0].from(), None);
    assert!(requests[0].headers["user-agent"].starts_with("annvil/"));
    for later in &requests[1..] {
        assert!(later.from().is_some_and(|from| from > 0), "{later:?}");
        assert_eq!(later.headers["if-range"], "\"one\"");
    }
    assert_eq!(fetched.transferred, data.len() as u64, "no byte twice");
    assert_eq!(progress.last().map(|(done, total, _)| (*done, *total)), Some((50_000_000, Some(50_000_000))));
    assert!(progress.iter().all(|(_, _, rate)| *rate >= 0.0));
    assert_eq!(fetched.path, Some(trial.path()));
    assert_eq!(trial.names(), ["a.hdf5", "fetched.json"]);

    let again = trial.run(&quick()).unwrap();
    assert_eq!((again.transferred, server.requests().len()), (0, requests.len()));
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
}

#[test]
fn a_part_of_an_earlier_run_is_continued_and_a_changed_file_is_fetched_anew() {
    let data = hdf5_like(300_000);
    let sent = data.clone();
    let server = Server::start(move |request, before, stream| {
        serve(request, stream, &sent, if before == 0 { 100_000 } else { usize::MAX });
    });
    let trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
    let error = trial.run(&FetchOptions { tries: 1, ..quick() }).unwrap_err().to_string();
    assert!(error.contains("--tries"), "{error}");
    assert!(!trial.path().exists());
    let part = trial.path().with_extension("hdf5.part");
    let there = std::fs::metadata(&part).unwrap().len();
    assert!(there > 8 && there < 300_000, "{there}");

    let changed = Trial::new(trial.entry.files[0].clone());
    std::fs::create_dir_all(changed.entry.dir(changed.root.path())).unwrap();
    for name in ["a.hdf5.part", "a.hdf5.part.json"] {
        let from = trial.entry.dir(trial.root.path()).join(name);
        std::fs::copy(&from, changed.entry.dir(changed.root.path()).join(name)).unwrap();
    }
    let fetched = trial.run(&quick()).unwrap();
    assert_eq!(fetched.transferred, 300_000 - there);
    assert!(std::fs::read(trial.path()).unwrap() == data);

    // The same part, but the server's file has another ETag and another size now.
    let note = changed.entry.dir(changed.root.path()).join("a.hdf5.part.json");
    let text = std::fs::read_to_string(&note).unwrap();
    std::fs::write(&note, text.replace("one", "old").replace("300000", "299999")).unwrap();
    let fetched = changed.run(&quick()).unwrap();
    assert_eq!(fetched.transferred, 300_000);
    assert!(std::fs::read(changed.path()).unwrap() == data);
}

#[test]
fn a_server_that_ignores_ranges_still_gives_a_whole_file() {
    let data = hdf5_like(90_000);
    let sent = data.clone();
    let server = Server::start(move |request, before, stream| {
        let plain = Request { headers: HashMap::new(), ..request.clone() };
        serve(&plain, stream, &sent, if before == 0 { 50_000 } else { usize::MAX });
    });
    let trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
    trial.run(&quick()).unwrap();
    assert!(std::fs::read(trial.path()).unwrap() == data);
    assert!(server.requests()[1].from().is_some());
}

#[test]
fn a_server_that_breaks_off_at_the_same_place_each_time_is_given_up() {
    let data = hdf5_like(90_000);
    let server = Server::start(move |request, _, stream| {
        let plain = Request { headers: HashMap::new(), ..request.clone() };
        serve(&plain, stream, &data, 50_000);
    });
    let trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
    let error = trial.run(&quick()).unwrap_err().to_string();
    assert!(error.contains("--tries") && server.requests().len() <= 5, "{error}");
}

#[test]
fn a_needed_file_that_is_forbidden_names_address_status_and_the_way_by_hand() {
    let server = Server::start(|_, _, stream| send(stream, "403 Forbidden", "Content-Length: 0\r\n", b""));
    let url = format!("{}/a.hdf5", server.base);
    let trial = Trial::new(file("a.hdf5", url.clone()));
    let error = trial.run(&quick()).unwrap_err().to_string();
    for word in [url.as_str(), "403", trial.path().to_str().unwrap(), "--mirror"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    assert!(!error.contains('\n'), "{error}");
    assert_eq!(server.requests().len(), 1, "a refusal is not tried again");
    assert!(trial.names().is_empty(), "{:?}", trial.names());

    // By hand, then: taken as it is, with a word of caution and without the network.
    std::fs::write(trial.path(), hdf5_like(100)).unwrap();
    let fetched = trial.run(&quick()).unwrap();
    assert_eq!(server.requests().len(), 1);
    assert!(fetched.warnings[0].contains("no checksum"), "{:?}", fetched.warnings);
}

#[test]
fn an_optional_file_that_cannot_be_had_is_a_warning() {
    let data = hdf5_like(2_000);
    let server = Server::start(move |request, _, stream| match request.path.as_str() {
        "/a.hdf5" => serve(request, stream, &data, usize::MAX),
        "/b" => send(stream, "403 Forbidden", "", b""),
        _ => send(stream, "404 Not Found", "", b""),
    });
    let mut trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
    for name in ["b", "c"] {
        trial.entry.files.push(FileEntry { optional: true, ..file(name, format!("{}/{name}", server.base)) });
    }
    let fetched = trial.run(&quick()).unwrap();
    assert_eq!(fetched.warnings.len(), 2, "{:?}", fetched.warnings);
    assert!(
        fetched.warnings[0].contains("403") && fetched.warnings[1].contains("404"),
        "{:?}",
        fetched.warnings
    );
    assert_eq!(trial.names(), ["a.hdf5", "fetched.json"]);
    let without = FetchOptions { optional_files: false, ..quick() };
    assert!(trial.run(&without).unwrap().warnings.is_empty());
}

#[test]
fn an_error_page_never_becomes_a_file() {
    let page = b"<!DOCTYPE html><html><body>Please log in</body></html>";
    let cases: [(&str, &str, &[u8]); 4] = [
        ("a.hdf5", "text/html; charset=utf-8", page),
        ("a.hdf5", "application/octet-stream", page),
        ("a.parquet", "application/xml", b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>"),
        ("a.fbin", "text/html", b"\n  <html>no such file, sorry"),
    ];
    for (name, kind, body) in cases {
        let headers = format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len());
        let body = body.to_vec();
        let server = Server::start(move |_, _, stream| send(stream, "200 OK", &headers, &body));
        // With and without a known size, which the page does not have either.
        for bytes in [None, Some(50_000)] {
            let trial = Trial::new(FileEntry { bytes, ..file(name, format!("{}/{name}", server.base)) });
            let error = trial.run(&quick()).unwrap_err().to_string();
            assert!(error.contains("HTML or XML page"), "{name} {kind}: {error}");
            assert!(trial.names().is_empty(), "{name}: {:?}", trial.names());
        }
        // The same page saved by hand under the final name.
        let trial = Trial::new(file(name, format!("{}/{name}", server.base)));
        std::fs::create_dir_all(trial.entry.dir(trial.root.path())).unwrap();
        std::fs::write(trial.path(), page).unwrap();
        let mut warnings = Vec::new();
        let outcome = fetch(&trial.entry, trial.root.path(), &quick(), &mut |event| {
            if let Event::Warning(text) = event {
                warnings.push(text.to_owned());
            }
        });
        assert!(outcome.is_err() && warnings[0].contains("HTML or XML page"), "{name}: {warnings:?}");
    }
}

#[test]
fn a_wrong_checksum_is_named_and_fetched_once_more() {
    let good = hdf5_like(5_000);
    let mut bad = good.clone();
    bad[4_000] ^= 1;
    let (first, second) = (bad.clone(), good.clone());
    let server = Server::start(move |request, before, stream| {
        serve(request, stream, if before == 0 { &first } else { &second }, usize::MAX);
    });
    let checked = |server: &Server| FileEntry {
        sha256: Some(sha256(&good).to_uppercase()),
        ..file("a.hdf5", format!("{}/a.hdf5", server.base))
    };
    let trial = Trial::new(checked(&server));
    let fetched = trial.run(&quick()).unwrap();
    assert!(fetched.warnings[0].contains("wrong checksum"), "{:?}", fetched.warnings);
    assert!(std::fs::read(trial.path()).unwrap() == good);
    assert_eq!(server.requests().len(), 2);

    // Damaged on disk, at the right size: named, fetched again.
    std::fs::write(trial.path(), &bad).unwrap();
    let fetched = trial.run(&quick()).unwrap();
    assert!(fetched.warnings[0].contains("wrong checksum"), "{:?}", fetched.warnings);
    assert!(std::fs::read(trial.path()).unwrap() == good);

    // The server's file is wrong for good.
    let server = Server::start(move |request, _, stream| serve(request, stream, &bad, usize::MAX));
    let trial = Trial::new(checked(&server));
    let error = trial.run(&quick()).unwrap_err().to_string();
    assert!(error.contains("wrong checksum") && error.contains("twice"), "{error}");
    assert_eq!(server.requests().len(), 2);
    assert!(trial.names().is_empty(), "{:?}", trial.names());
}

#[test]
fn a_file_damaged_after_its_arrival_is_noticed_without_a_published_checksum() {
    let data = hdf5_like(5_000);
    let sent = data.clone();
    let server = Server::start(move |request, _, stream| serve(request, stream, &sent, usize::MAX));
    let trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
    trial.run(&quick()).unwrap();
    let mut damaged = data.clone();
    damaged[100] ^= 1;
    for wrong in [&damaged[..], &data[..4_999]] {
        std::fs::write(trial.path(), wrong).unwrap();
        assert_eq!(trial.run(&quick()).unwrap().warnings.len(), 1);
        assert!(std::fs::read(trial.path()).unwrap() == data);
    }
}

#[test]
fn a_hanging_server_is_left_with_the_name_of_the_option() {
    let silent = Server::start(|_, _, stream| {
        std::thread::sleep(Duration::from_secs(5));
        send(stream, "200 OK", "", b"");
    });
    let stuck = Server::start(|_, _, stream| {
        send(stream, "200 OK", "Content-Length: 90000\r\n", &hdf5_like(5_000));
        std::thread::sleep(Duration::from_secs(5));
    });
    let drip = Server::start(|_, _, stream| {
        send(stream, "200 OK", "Content-Length: 90000\r\n", &hdf5_like(20));
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    for server in [silent, stuck, drip] {
        let trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
        let start = Instant::now();
        let error = trial.run(&FetchOptions { tries: 1, ..quick() }).unwrap_err().to_string();
        assert!(error.contains("--fetch-timeout") && error.contains("0.4 s"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    }
}

#[test]
fn mirrors_are_tried_in_turn_and_replaced_by_the_users_own() {
    let data = hdf5_like(3_000);
    let sent = data.clone();
    let good = Server::start(move |request, _, stream| serve(request, stream, &sent, usize::MAX));
    let bad =
        Server::start(|_, _, stream| send(stream, "503 Service Unavailable", "Retry-After: 0\r\n", b""));
    let closed = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let mut trial = Trial::new(file("a.hdf5", format!("{closed}/a.hdf5")));
    trial.entry.files[0].urls.extend([format!("{}/a.hdf5", bad.base), format!("{}/a.hdf5", good.base)]);
    let fetched = trial.run(&quick()).unwrap();
    assert_eq!(bad.requests().len(), 3, "tried three times");
    assert!(fetched.warnings.iter().any(|text| text.contains("503")), "{:?}", fetched.warnings);
    assert!(std::fs::read(trial.path()).unwrap() == data);

    std::fs::remove_file(trial.path()).unwrap();
    let own = FetchOptions { mirrors: vec![format!("{}/copy/", good.base)], ..quick() };
    trial.run(&own).unwrap();
    assert_eq!(good.requests().last().unwrap().path, "/copy/set/a.hdf5");
    assert_eq!(bad.requests().len(), 3, "the catalogue's addresses are left alone");
}

#[test]
fn the_head_of_a_large_file_is_cut_to_whole_rows_with_a_header_that_says_so() {
    let mut whole = Vec::new();
    for word in [1000_u32, 8] {
        whole.extend_from_slice(&word.to_le_bytes());
    }
    whole.extend((0..32_000_u32).map(|i| (i % 253) as u8));
    let sent = whole.clone();
    // The second server knows nothing of ranges.
    let ranges = Server::start(move |request, _, stream| serve(request, stream, &sent, usize::MAX));
    let sent = whole.clone();
    let plain = Server::start(move |request, _, stream| {
        serve(&Request { headers: HashMap::new(), ..request.clone() }, stream, &sent, usize::MAX);
    });
    for server in [&ranges, &plain] {
        let cropped = FileEntry {
            bytes: Some(8 + 60 * 8 * 4),
            crop_rows: Some(60),
            ..file("base.fbin", format!("{}/base.1B.fbin", server.base))
        };
        let trial = Trial::new(cropped);
        trial.run(&quick()).unwrap();
        let found = std::fs::read(trial.path()).unwrap();
        assert_eq!(found.len(), 8 + 60 * 8 * 4);
        assert_eq!((&found[..4], &found[4..]), (&60_u32.to_le_bytes()[..], &whole[4..8 + 60 * 8 * 4]));
        assert_eq!(trial.run(&quick()).unwrap().transferred, 0);
    }
    assert_eq!(ranges.requests()[0].headers["range"], format!("bytes=0-{}", 8 + 60 * 8 * 4 - 1));
    let too_many = FileEntry {
        bytes: Some(8 + 2000 * 16),
        crop_rows: Some(2000),
        ..file("base.fbin", format!("{}/base.1B.fbin", ranges.base))
    };
    let error = Trial::new(too_many).run(&quick()).unwrap_err().to_string();
    assert!(error.contains("header says 1000 rows"), "{error}");
}

#[test]
fn a_file_of_another_size_than_the_catalogues_is_refused() {
    let data = hdf5_like(3_000);
    let sent = data.clone();
    let server = Server::start(move |request, _, stream| serve(request, stream, &sent, usize::MAX));
    let unsized_server = Server::start(move |_, _, stream| send(stream, "200 OK", "", &data));
    for server in [server, unsized_server] {
        let sized = FileEntry { bytes: Some(2_999), ..file("a.hdf5", format!("{}/a.hdf5", server.base)) };
        let trial = Trial::new(sized);
        let error = trial.run(&quick()).unwrap_err().to_string();
        assert!(error.contains("2999"), "{error}");
        assert!(!trial.path().exists());
    }
}

#[test]
fn two_fetches_of_one_file_do_not_write_into_each_other() {
    let data = hdf5_like(3_000);
    let server = Server::start(move |request, _, stream| serve(request, stream, &data, usize::MAX));
    let trial = Trial::new(file("a.hdf5", format!("{}/a.hdf5", server.base)));
    std::fs::create_dir_all(trial.entry.dir(trial.root.path())).unwrap();
    let other = std::fs::File::create(trial.path().with_extension("hdf5.part")).unwrap();
    other.lock().unwrap();
    let error = trial.run(&quick()).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    drop(other);
    trial.run(&quick()).unwrap();
}

#[test]
fn the_start_of_a_file_tells_data_from_what_servers_send_in_its_place() {
    for (name, start, wrong) in [
        ("a.fbin", &b"version https://git-lfs.github.com"[..], true),
        ("a.hdf5", b"\x89HDF\r\n\x1a\n\0\0", false),
        ("a.parquet", b"PAR1\x15\x04", false),
        ("a.parquet", b"{\"error\": 1}", true),
        ("a.tgz", b"\x1f\x8b\x08", false),
        ("a.fbin", b"\x40\x42\x0f\0\x80\0\0\0", false),
        ("truth.ibin", b"", false),
    ] {
        assert_eq!(check::wrong_start(name, start, Some("binary/octet-stream")).is_some(), wrong, "{name}");
    }
    // A server that calls everything text/html still gives a good HDF5 file.
    assert_eq!(check::wrong_start("a.hdf5", b"\x89HDF\r\n\x1a\n", Some("text/html")), None);
}
