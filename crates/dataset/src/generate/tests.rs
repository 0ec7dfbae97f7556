use super::*;
use types::{Column, ColumnData};

fn recipe(rows: usize, dim: usize) -> Recipe {
    Recipe { rows, queries: 50, dim, ..Recipe::default() }
}

fn bytes(generator: &Generator, part: Part, rows: Range<usize>) -> Vec<u8> {
    let row = generator.recipe().element.row_bytes(generator.recipe().dim);
    let mut out = vec![0; rows.len() * row];
    generator.fill(part, rows, &mut out);
    out
}

fn ints(columns: &Columns, name: &str) -> Vec<i64> {
    match columns.get(name) {
        Some(Column { data: ColumnData::Int(values), .. }) => values.iter().map(|v| v.unwrap()).collect(),
        other => panic!("{name}: {other:?}"),
    }
}

fn cosine_distance(a: &[f32], b: &[f32]) -> f64 {
    1.0 - a.iter().zip(b).map(|(x, y)| f64::from(x * y)).sum::<f64>()
}

#[test]
fn the_same_recipe_gives_the_same_bytes_on_every_machine() {
    let hash = |seed: u64| {
        let set = generate(&Recipe { rows: 300, seed, ..recipe(300, 24) }).unwrap();
        let mut hasher = blake3::Hasher::new();
        hasher.update(set.base.contiguous_bytes().unwrap());
        hasher.update(set.queries.contiguous_bytes().unwrap());
        for value in ints(set.query_columns.as_ref().unwrap(), "far") {
            hasher.update(&value.to_le_bytes());
        }
        hasher.finalize().to_hex()[..16].to_owned()
    };
    // Changes only together with GENERATOR_VERSION.
    assert_eq!((GENERATOR_VERSION, hash(1).as_str()), (1, "ca196d456f9c803d"));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn blocks_threads_and_the_number_of_rows_do_not_change_a_row() {
    let generator = Generator::new(&recipe(3000, 16)).unwrap();
    let whole = bytes(&generator, Part::Base, 0..3000);
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let pieces: Vec<u8> = pool.install(|| {
            [0..1, 1..700, 700..701, 701..2999, 2999..3000]
                .into_iter()
                .flat_map(|rows| bytes(&generator, Part::Base, rows))
                .collect()
        });
        assert!(whole == pieces, "{threads} threads");
    }
    let larger = Generator::new(&recipe(100_000, 16)).unwrap();
    assert!(whole == bytes(&larger, Part::Base, 0..3000));
    let columns = |g: &Generator, rows| g.columns(Part::Base, rows);
    assert_eq!(columns(&generator, 0..3000).slice(100..200), columns(&larger, 100..200));
}

#[test]
fn neighbour_distances_have_the_contrast_of_real_embeddings() {
    let set = generate(&Recipe { queries: 100, ..recipe(20_000, 384) }).unwrap();
    let (mut first, mut random, mut pair) = (Vec::new(), Vec::new(), Vec::new());
    for query in 0..100 {
        let query = set.queries.row(query);
        let mut distances: Vec<f64> =
            (0..set.base.rows()).map(|row| cosine_distance(&query, &set.base.row(row))).collect();
        let mean = types::stats::mean(&distances).unwrap();
        distances.sort_by(f64::total_cmp);
        first.push(distances[0] / distances[99]);
        random.push(distances[99] / mean);
        pair.push(mean);
    }
    let median = |values: &[f64]| types::stats::median(values).unwrap();
    let (first, random, pair) = (median(&first), median(&random), median(&pair));
    // The real embeddings, cut to 20,000 rows, give 0.51, 0.67 and 0.89.
    assert!((0.4..0.62).contains(&first), "1st / 100th: {first}");
    assert!((0.57..0.77).contains(&random), "100th / random: {random}");
    assert!((0.8..0.95).contains(&pair), "random pair: {pair}");
}

#[test]
fn columns_are_independent_agree_or_fight_as_they_say() {
    let set = generate(&Recipe { queries: 60, ..recipe(4000, 64) }).unwrap();
    let (base, queries) = (set.columns.as_ref().unwrap(), set.query_columns.as_ref().unwrap());
    let clusters = ints(base, "cluster");
    // The mean distance of the rows that match, as a share of that of all rows.
    let share = |of_base: &[i64], of_query: &[i64]| {
        let (mut matching, mut all) = (Vec::new(), Vec::new());
        for (query, wanted) in of_query.iter().enumerate() {
            let query = set.queries.row(query);
            for (row, found) in of_base.iter().enumerate() {
                let distance = cosine_distance(&query, &set.base.row(row));
                all.push(distance);
                if found == wanted {
                    matching.push(distance);
                }
            }
        }
        assert!(matching.len() > 60, "only {} pairs match", matching.len());
        types::stats::mean(&matching).unwrap() / types::stats::mean(&all).unwrap()
    };
    let own = share(&clusters, &ints(queries, "cluster"));
    let far = share(&clusters, &ints(queries, "far"));
    let independent = share(&ints(base, "cat10"), &ints(queries, "cat10"));
    assert!(own < 0.93 && far > 1.01 && (0.98..1.02).contains(&independent), "{own} {far} {independent}");
    assert!(ints(queries, "far").iter().zip(ints(queries, "cluster")).all(|(far, own)| *far != own));
    for (name, values) in [("cat10", 10), ("cat100", 100), ("cat1000", 1000), ("num", 1_000_000)] {
        let column = ints(base, name);
        assert!(column.iter().all(|v| (0..values).contains(v)), "{name}");
        let mean = column.iter().sum::<i64>() as f64 / column.len() as f64;
        assert!((mean / (values - 1) as f64 - 0.5).abs() < 0.03, "{name}: mean {mean}");
    }
    assert_eq!(base.get("flag").unwrap().value_counts().len(), 2);
    assert!(base.get("topic").unwrap().value_counts().len() > 100);
}

#[test]
fn each_element_and_metric_has_the_rows_it_promises() {
    let of = |metric, element| generate(&Recipe { metric, element, ..recipe(500, 40) }).unwrap().base;
    let norm = |v: &Vectors, row| v.row(row).iter().map(|x| x * x).sum::<f32>().sqrt();
    let unit = of(Metric::Cosine, Element::F32);
    assert!((0..500).all(|row| (norm(&unit, row) - 1.0).abs() < 1e-5));
    let dots = of(Metric::InnerProduct, Element::F16);
    let norms: Vec<f64> = (0..500).map(|row| f64::from(norm(&dots, row))).collect();
    let range = types::stats::range(&norms).unwrap();
    assert!(range.low > 0.79 && range.low < 0.83 && range.high > 1.17 && range.high < 1.21, "{range:?}");
    for (element, centre) in [(Element::I8, 0.0), (Element::U8, 128.0)] {
        let bytes = of(Metric::L2, element);
        let row = |i: usize| -> Vec<f64> { bytes.row(i).iter().map(|v| f64::from(*v) - centre).collect() };
        let (near, wide) =
            ((0..500).flat_map(row).map(f64::abs)).fold((0.0, 0.0_f64), |(s, m), v| (s + v, m.max(v)));
        assert!(near / 20_000.0 > 15.0 && wide <= 127.0, "{element}: mean {near}, largest {wide}");
    }
    let bits = of(Metric::Hamming, Element::Bit);
    let set: f32 = (0..500).map(|row| bits.row(row).iter().sum::<f32>()).sum();
    assert!((0.3..0.7).contains(&(set / 20_000.0)), "{set} bits of 20,000");
}

#[test]
fn recipes_out_of_bounds_are_refused_by_name() {
    let refused = |recipe: Recipe| generate(&recipe).unwrap_err().to_string();
    for (recipe, word) in [
        (Recipe { rows: 0, ..Recipe::default() }, "rows is 0"),
        (Recipe { queries: 0, ..Recipe::default() }, "queries is 0"),
        (Recipe { dim: 70_000, ..Recipe::default() }, "dim is 70000"),
        (Recipe { clusters: 5000, ..Recipe::default() }, "clusters is 5000"),
        (Recipe { element: Element::Bit, ..Recipe::default() }, "hamming"),
        (Recipe { rows: 4_000_000_000, dim: 65_536, ..Recipe::default() }, "do not fit in memory"),
    ] {
        let message = refused(recipe);
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn one_row_one_dimension_one_cluster_work() {
    let set = generate(&Recipe { rows: 1, queries: 1, dim: 1, clusters: 1, ..Recipe::default() }).unwrap();
    assert_eq!((set.base.rows(), set.base.dim()), (1, 1));
    assert_eq!(ints(set.query_columns.as_ref().unwrap(), "far"), [0]);
}

#[test]
fn a_set_on_disk_is_the_set_in_memory() {
    let root = tempfile::tempdir().unwrap();
    for (metric, element) in [(Metric::L2, Element::U8), (Metric::Cosine, Element::F32)] {
        let recipe = Recipe { metric, element, ..recipe(2500, 48) };
        let dir = root.path().join(recipe.name());
        let mut told = Vec::new();
        let command = Some("annvil dataset generate".to_owned());
        generate_to(&recipe, &dir, command, &mut |done, total| told.push((done, total))).unwrap();
        assert_eq!(told.last(), Some(&(2550, 2550)));
        let read = directory::open(&dir, &crate::OpenOptions::default()).unwrap();
        let made = generate(&recipe).unwrap();
        assert_eq!(read.hashes(), made.hashes());
        assert_eq!((read.metric, &read.name), (Some(metric), &made.name));
        assert_eq!((&read.columns, &read.query_columns), (&made.columns, &made.query_columns));
        let error = generate_to(&recipe, &dir, None, &mut |_, _| {}).unwrap_err().to_string();
        assert!(error.contains("exists"), "{error}");
    }
    let bare = generate(&Recipe { columns: false, ..recipe(10, 4) }).unwrap();
    assert!(bare.columns.is_none() && bare.query_columns.is_none());
}

#[test]
fn the_bytes_on_disk_do_not_depend_on_the_block() {
    let generator = Generator::new(&recipe(5000, 4096)).unwrap();
    let root = tempfile::tempdir().unwrap();
    // 82 MB: more than one block of writing.
    let mut blocks = Vec::new();
    let written = generator.write(Part::Base, root.path(), &mut |done| blocks.push(done)).unwrap();
    assert!(blocks.len() > 1, "{blocks:?}");
    for row in [0, 4095, 4096, 4097, 4999] {
        assert!(written.row_bytes(row) == bytes(&generator, Part::Base, row..row + 1), "row {row}");
    }
}
