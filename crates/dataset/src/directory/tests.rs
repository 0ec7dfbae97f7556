use super::*;
use crate::FilteredTruth;
use types::{Column, ColumnData, Columns, FilterTemplate, Metric, Neighbour, Truth};

fn example(element: Element) -> Dataset {
    let dim = 9;
    let bytes =
        |rows: usize| (0..rows * element.row_bytes(dim)).map(|i| (i % 31) as u8 + 1).collect::<Vec<_>>();
    let base = Vectors::from_bytes(bytes(20), 20, dim, element).unwrap();
    let queries = Vectors::from_bytes(bytes(3), 3, dim, element).unwrap();
    let mut set = Dataset::new("example", base, queries);
    set.metric = Some(Metric::InnerProduct);
    set.ids = Ids::Texts((0..20).map(|i| format!("doc-{i}")).collect());
    let column = |name: &str, data| Column { name: name.to_owned(), data };
    set.columns = Columns::new(vec![
        column("id", ColumnData::Int((0..20).map(|i| Some(100 - i)).collect())),
        column("kind", ColumnData::Text((0..20).map(|i| (i != 4).then(|| format!("k{}", i % 3))).collect())),
        column("share", ColumnData::Float((0..20).map(|i| Some(f64::from(i) / 3.0)).collect())),
        column("flag", ColumnData::Bool((0..20).map(|i| Some(i % 2 == 0)).collect())),
    ])
    .ok();
    set.query_columns =
        Columns::new(vec![column("kind", ColumnData::Text(vec![Some("k1".to_owned()); 3]))]).ok();
    let list = |rows: &[u32]| -> Vec<Neighbour> {
        rows.iter().map(|&row| Neighbour { row, distance: f64::from(row) / 7.0 - 5.0 }).collect()
    };
    let mut truth = Truth::new(4);
    let mut under = Truth::new(3);
    for rows in [&[1, 5, 7, 19][..], &[], &[0, 2]] {
        truth.push(list(rows), rows.len() as u64 * 5);
        under.push(list(rows), 6);
    }
    set.truth = Some(truth);
    let filter = FilterTemplate::parse("kind = {other}").ok();
    let values = vec![Some("k0".to_owned()), None, Some("k2".to_owned())];
    set.filtered = vec![FilteredTruth { name: "far".to_owned(), filter, values, truth: under }];
    set
}

fn written(set: &Dataset) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("set");
    let provenance =
        Provenance { command: Some("annvil dataset convert x".to_owned()), ..Provenance::default() };
    write(set, &path, &provenance).unwrap();
    (dir, path)
}

#[test]
fn what_is_written_is_read_back_for_every_element() {
    for element in [Element::F32, Element::F16, Element::I8, Element::U8, Element::Bit] {
        let set = example(element);
        let (_dir, path) = written(&set);
        let found = open(&path, &OpenOptions::default()).unwrap();
        assert_eq!(found.hashes(), set.hashes(), "{element}");
        assert_eq!((found.name.as_str(), found.metric), ("example", set.metric));
        assert_eq!((&found.ids, &found.columns), (&set.ids, &set.columns));
        assert_eq!((&found.query_columns, &found.truth), (&set.query_columns, &set.truth), "{element}");
        assert_eq!(found.filtered[0].values, set.filtered[0].values);
        assert_eq!(found.filtered[0].filter, set.filtered[0].filter);
        assert_eq!(found.filtered[0].truth, set.filtered[0].truth);
        verify(&path).unwrap();
        let manifest = manifest(&path.join(MANIFEST)).unwrap();
        let truth = manifest.truth.unwrap();
        assert_eq!((truth.k, truth.base), (4, set.hashes().base.clone()));
        assert!(truth.tool.starts_with("annvil "), "{}", truth.tool);
    }
}

#[test]
fn case_11_a_missing_or_changed_file_is_named_with_the_command_that_makes_it() {
    let (_dir, path) = written(&example(Element::F32));
    for name in ["base.fbin", "columns.parquet", "truth.parquet", "filters.json"] {
        let file = path.join(name);
        let whole = fs::read(&file).unwrap();
        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        for (bytes, said) in
            [(Some(&changed[..]), "was changed"), (Some(&whole[1..]), "bytes"), (None, "is missing")]
        {
            match bytes {
                Some(bytes) => fs::write(&file, bytes).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            let error = open(&path, &OpenOptions::default()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(said), "{error}");
            assert!(error.contains("annvil dataset convert x"), "{error}");
        }
        fs::write(&file, whole).unwrap();
    }
}

#[test]
fn case_112_other_kinds_newer_formats_and_unknown_fields_are_refused_by_name() {
    let (_dir, path) = written(&example(Element::F32));
    let file = path.join(MANIFEST);
    let text = fs::read_to_string(&file).unwrap();
    for (from, to, said) in [
        ("kind = \"dense\"", "kind = \"sparse\"", "kind \"sparse\" is not known"),
        ("kind = \"dense\"", "", "no kind"),
        ("format = 1", "format = 2", "format 2"),
        ("format = 1", "format = 1\nsplits = 3", "splits"),
        ("metric = \"inner_product\"", "metric = \"jaccard\"", "jaccard"),
        ("\"base.fbin\"", "\"../base.fbin\"", "no plain name"),
        ("rows = 20", "rows = 21", "21"),
        ("dim = 9", "dim = 9223372036854775807", "9223372036854775807"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        fs::write(&file, text.replacen(from, to, 1)).unwrap();
        let error = open(&path, &OpenOptions::default()).unwrap_err().to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{said}: {error}");
    }
}

#[test]
fn nothing_is_left_of_a_failed_write_and_nothing_is_overwritten() {
    let (dir, path) = written(&example(Element::U8));
    let error = write(&example(Element::U8), &path, &Provenance::default()).unwrap_err().to_string();
    assert!(error.contains("exists already"), "{error}");
    let failed = staged(&dir.path().join("other"), |part| {
        fs::write(part.join("half"), "x").unwrap();
        Err(DatasetError::Usage("no".to_owned()))
    });
    assert!(failed.is_err());
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["set"]);
}
