//! What Annvil itself keeps in memory (cases.md 61): a set is streamed from its file, whatever the
//! number of workers.

mod support;

use support::Scratch;

/// Highest anonymous memory of the process while the engine was loaded, built and searched.
fn peak(s: &Scratch, run: &str) -> u64 {
    let series = std::fs::read_to_string(s.path().join(run).join("series/fake.jsonl")).expect("a series");
    let samples = series.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a line"));
    samples.filter_map(|sample| sample["rss_anon_bytes"].as_u64()).max().expect("a sample")
}

#[test]
fn case_61_a_file_is_streamed_not_held_and_workers_cost_little() {
    let s = Scratch::new();
    // 200,000 x 128 float32: 98 MiB.
    let rows = ["--rows", "200000", "--queries", "10", "--dim", "128", "--k", "0", "--no-columns"];
    s.ok(&[&["dataset", "generate", "--out", "big"], &rows[..]].concat());
    let mut peaks = Vec::new();
    for workers in ["1", "8"] {
        let run = format!("workers-{workers}");
        let words = [
            "run",
            "--dataset",
            "big",
            "--engine",
            "fake:keep_nothing=true",
            "--no-recall",
            "--no-report",
            "--out",
            &run,
        ];
        // The fake keeps nothing, so the rows are in no table and the memory is the client's alone; the
        // run stops after the load, not valid.
        let done = s.annvil(&[&words[..], &["--load-workers", workers, "--batch", "500"]].concat());
        assert_eq!(done.code, Some(4), "{}", done.err);
        assert!(done.err.contains("0 of 200000 rows"), "{}", done.err);
        peaks.push(peak(&s, &run));
    }
    let mib = |bytes: u64| bytes / (1 << 20);
    assert!(mib(peaks[0]) < 60, "{} MiB with one worker", mib(peaks[0]));
    assert!(mib(peaks[1]) < mib(peaks[0]) + 7 * 20, "{} MiB with eight", mib(peaks[1]));
}
