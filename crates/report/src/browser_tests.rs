//! The page in a real browser: no error on its console, every point in the chart, scripts at work.
//!
//! Needs Chromium: the program named by ANNVIL_CHROMIUM, else `chromium` on the path. Without it the tests
//! say so and pass, but fail where CI=true.

use crate::testing;
use record::RunDir;
use std::{
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// What Chromium made of a page: the document after its scripts, and what it logged.
struct Opened {
    dom: String,
    log: String,
}

fn program() -> std::ffi::OsString {
    std::env::var_os("ANNVIL_CHROMIUM").unwrap_or_else(|| "chromium".into())
}

/// None where there is no Chromium.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn open(page: &Path, width: u32) -> Option<Opened> {
    let profile = tempfile::tempdir().expect("a folder");
    let started = Command::new(program())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", page.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            let ci = std::env::var("CI").is_ok_and(|v| v == "true");
            assert!(!ci, "no Chromium ({error}); install it or name it in ANNVIL_CHROMIUM");
            eprintln!(
                "skipped browser test: no Chromium ({error}); install it or name it in ANNVIL_CHROMIUM"
            );
            return None;
        }
    };
    let (out, err) = (child.stdout.take()?, child.stderr.take()?);
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            from.read_to_end(&mut bytes).map(|_| String::from_utf8_lossy(&bytes).into_owned())
        })
    };
    let (dom, log) = (read(Box::new(out)), read(Box::new(err)));
    wait(&mut child, Duration::from_secs(90));
    let text = |thread: std::thread::JoinHandle<std::io::Result<String>>| {
        thread.join().expect("read").expect("text")
    };
    Some(Opened { dom: text(dom), log: text(log) })
}

/// Ends the browser where it hangs: a test must not hang with it.
fn wait(child: &mut Child, limit: Duration) {
    let end = Instant::now() + limit;
    while child.try_wait().expect("wait").is_none() {
        if Instant::now() > end {
            child.kill().expect("kill");
            child.wait().expect("wait");
            panic!("Chromium did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_page_opens_without_errors_and_shows_every_point() {
    let folder = tempfile::tempdir().unwrap();
    let (mut manifest, mut points) = testing::realistic();
    manifest.name = "a <b> & \"c\"".into();
    points[2].engine_title = "usearch </script>".into();
    let run = RunDir::create(&folder.path().join("run")).unwrap();
    run.write_manifest(&manifest).unwrap();
    for point in &points {
        run.append(point).unwrap();
    }
    let written = crate::write(&run).unwrap();
    let Some(opened) = open(&written.html, 1280) else { return };
    let console: Vec<&str> = opened.log.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:#?}");
    assert!(opened.dom.contains("</html>"), "no document; log: {}", opened.log);
    // Each of the 14 drawn points once in the wide and once in the narrow drawing. The script gave
    // each its label, which it can only do after it read the embedded data.
    assert_eq!(opened.dom.matches("data-point=").count(), 28);
    assert_eq!(opened.dom.matches("aria-label=\"engine: ").count(), 28);
    assert!(opened.dom.contains("a &lt;b&gt; &amp; "), "the run's name is text");
    let Some(chart) = open(&written.charts[0], 1000) else { return };
    assert!(!chart.dom.contains("error on line"), "{}", &chart.dom[..500.min(chart.dom.len())]);
    assert_eq!(chart.dom.matches("data-point=").count(), 14);
}
