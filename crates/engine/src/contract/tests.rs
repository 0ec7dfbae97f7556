//! The honest fake passes every check; every misbehaviour of the fake fails one.

use super::*;
use crate::fake;

fn definition(options: &str) -> Definition {
    let text = include_str!("../../../../engines/fake.toml");
    let mut definition = Definition::parse(text, "engines/fake.toml").unwrap();
    definition.options = toml::from_str(options).unwrap();
    definition
}

fn options(metric: Metric) -> Options {
    Options {
        metric: Some(metric),
        rows: 300,
        dim: 16,
        polls: 3,
        pause: Duration::from_millis(1),
        ..Options::default()
    }
}

fn failures(definition: &Definition, options: &Options) -> Vec<CheckResult> {
    let engine = fake::open(definition).unwrap();
    let results = run(&*engine, definition, options);
    assert_eq!(results.len(), CHECKS.len());
    results.into_iter().filter(|r| matches!(r.outcome, Outcome::Failed(_))).collect()
}

#[test]
fn the_honest_fake_passes_under_every_metric() {
    let definition = definition("");
    for metric in Metric::ALL {
        let engine = fake::open(&definition).unwrap();
        let results = run(&*engine, &definition, &options(metric));
        for result in results {
            let allowed = result.outcome == Outcome::Passed
                || (result.name == "zero_vector" && metric != Metric::Cosine);
            assert!(allowed, "{metric}: {result:?}");
        }
    }
    for element in [Element::F16, Element::I8, Element::U8] {
        let options = Options { element: Some(element), ..options(Metric::L2) };
        assert_eq!(failures(&definition, &options), [], "{element}");
    }
}

/// cases.md 34, 35, 38, 39, 52, 54, 55, 65, 78, 82, 83, 101: no adapter with one of these faults
/// gets through.
#[test]
fn every_misbehaviour_is_caught_by_name() {
    for (script, check) in [
        ("unreachable = true", "identity"),
        ("denied = true", "identity"),
        ("keep_old_rows = true", "create_drops"),
        ("any_dimension = true", "insert_dimension"),
        ("any_dimension = true", "query_dimension"),
        ("fail_insert_share = 0.3", "insert_batches"),
        ("max_rows = 250", "insert_batches"),
        ("keep_nothing = true", "count"),
        ("lose_last_batch = true", "count"),
        ("build_fails = true", "build"),
        ("ready_after_s = 100.0", "readiness"),
        ("indexed_share = 0.6", "readiness"),
        ("read_back_kind = 'flat'", "index_read_back"),
        ("read_back_kind = 'none'", "index_read_back"),
        ("read_back = { m = 8 }", "index_read_back"),
        ("fail_share = 0.2", "search"),
        ("id_type = 'bytes_text'", "search"),
        ("reply = 'foreign'", "ids"),
        ("reply = 'top1'", "k"),
        ("reply = 'two_more'", "k"),
        ("reply = 'nearest_repeated'", "no_duplicates"),
        ("reply = 'reversed'", "order"),
        ("reply = 'reversed'", "nearest_is_itself"),
        ("effort_recall = true\nignore_effort = true", "effort"),
        ("effort_recall = true\nignore_effort = true\neffort_half = 0.06", "effort"),
        ("answers = 'arbitrary'", "effort"),
        ("explain = 'scan'", "index_used"),
        ("explain = 'none'", "index_used"),
        ("ignore_filter = true", "filter_eq_int"),
        ("ignore_filter = true", "filter_eq_text"),
        ("ignore_filter = true", "filter_range"),
        ("ignore_filter = true", "filter_none"),
        ("post_filter = true", "filter_eq_int"),
        ("post_filter = true", "filter_few"),
        ("ghosts = true", "delete"),
        ("lose_reinserted = true", "reinsert"),
    ] {
        let failures = failures(&definition(script), &options(Metric::L2));
        assert!(
            failures.iter().any(|f| f.name == check),
            "{script}: {check} did not fail, but: {failures:#?}"
        );
    }
    let failures = failures(&definition("refuse_zero_vectors = true"), &options(Metric::Cosine));
    assert!(failures.iter().any(|f| f.name == "zero_vector"), "{failures:?}");
}

#[test]
fn what_the_definition_disclaims_is_not_held_against_it() {
    let mut definition = definition("post_filter = true\nexplain = 'none'\nrefuse_zero_vectors = true");
    definition.capabilities.filter_mode = Some(crate::FilterMode::After);
    definition.capabilities.explain = false;
    definition.capabilities.zero_vectors = false;
    definition.capabilities.delete = false;
    definition.capabilities.filters = vec![types::FilterKind::EqInt];
    let engine = fake::open(&definition).unwrap();
    let results = run(&*engine, &definition, &options(Metric::Cosine));
    let names = |wanted: fn(&Outcome) -> bool| -> Vec<&str> {
        results.iter().filter(|r| wanted(&r.outcome)).map(|r| r.name).collect()
    };
    assert_eq!(names(|o| matches!(o, Outcome::Failed(_))), Vec::<&str>::new());
    let skipped = names(|o| matches!(o, Outcome::Skipped(_) | Outcome::Lacks(_)));
    for name in
        ["index_used", "zero_vector", "delete", "reinsert", "filter_eq_text", "filter_in", "filter_few"]
    {
        assert!(skipped.contains(&name), "{name} in {skipped:?}");
    }
}

#[test]
fn after_a_vital_check_failed_the_rest_is_skipped_with_its_name() {
    let definition = definition("keep_nothing = true");
    let engine = fake::open(&definition).unwrap();
    let mut seen = 0;
    let results = run_with(&*engine, &definition, &options(Metric::L2), &mut |_| seen += 1);
    assert_eq!(seen, CHECKS.len());
    let order = results.iter().find(|r| r.name == "order").unwrap();
    assert_eq!(order.outcome, Outcome::Skipped("\"count\" failed".into()));
    assert_eq!(results.last().unwrap().outcome, Outcome::Passed, "remove runs all the same");
}

#[test]
fn options_that_do_not_fit_skip_everything_with_the_reason() {
    let definition = definition("");
    let engine = fake::open(&definition).unwrap();
    let options = Options { kind: Some("ivf".into()), ..options(Metric::L2) };
    for result in run(&*engine, &definition, &options) {
        assert!(matches!(&result.outcome, Outcome::Skipped(r) if r.contains("ivf")), "{result:?}");
    }
}
