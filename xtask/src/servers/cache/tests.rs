use super::*;

fn words(words: [&str; 3]) -> [Option<OsString>; 3] {
    words.map(|word| (word != "-").then(|| word.into()))
}

#[test]
fn the_variable_wins_then_root_then_the_users_cache() {
    let all = ["/own", "/xdg", "/me"];
    assert_eq!(place(words(all), true).unwrap(), Path::new("/own"));
    assert_eq!(place(words(["-", "/xdg", "/me"]), true).unwrap(), Path::new(OF_ROOT));
    assert_eq!(place(words(["", "/xdg", "/me"]), false).unwrap(), Path::new("/xdg/annvil/servers"));
    assert_eq!(place(words(["-", "xdg", "/me"]), false).unwrap(), Path::new("/me/.cache/annvil/servers"));
    assert!(place(words(["here", "-", "/me"]), false).is_err());
    let lost = place(words(["-", "-", "-"]), false).unwrap_err().to_string();
    assert!(lost.contains(VARIABLE), "{lost}");
}

fn recipe(made_from: &str) -> Recipe {
    Recipe {
        name: "Example 1",
        variable: "ANNVIL_EXAMPLE",
        folder: "example-1",
        program: "program",
        made_from: made_from.into(),
        make: |place| {
            let count = place.cache.join("count");
            let made: usize = fs::read_to_string(&count).map_or(0, |text| text.parse().unwrap());
            fs::write(&count, (made + 1).to_string()).unwrap();
            fs::write(place.folder.join("program"), "v1").unwrap();
            Ok(())
        },
        inspect: |folder| fs::read_to_string(folder.join("program")).context("program"),
    }
}

fn cache() -> (tempfile::TempDir, Cache) {
    let home = tempfile::tempdir().unwrap();
    let cache = Cache { home: home.path().join("deep/servers") };
    (home, cache)
}

fn times_made(cache: &Cache) -> String {
    fs::read_to_string(cache.home.join("count")).unwrap()
}

#[test]
fn a_server_is_made_once_and_anew_when_it_is_damaged_or_the_recipe_changes() {
    let (_home, cache) = cache();
    assert_eq!(cache.ready(&recipe("a")), None);
    assert_eq!(cache.make(&recipe("a")).unwrap(), "v1");
    assert_eq!(cache.ready(&recipe("a")).unwrap(), "v1");
    // Another process made it while this one waited for the lock.
    cache.make(&recipe("a")).unwrap();
    assert_eq!(times_made(&cache), "1");
    fs::remove_file(cache.home.join("example-1/program")).unwrap();
    assert_eq!(cache.ready(&recipe("a")), None);
    cache.make(&recipe("a")).unwrap();
    assert_eq!(cache.ready(&recipe("b")), None);
    cache.make(&recipe("b")).unwrap();
    assert_eq!(times_made(&cache), "3");
}

#[test]
fn what_a_killed_process_left_is_no_server_and_is_removed() {
    let (_home, cache) = cache();
    let (leftover, unmarked) = (cache.home.join(".making-example-1-1"), cache.home.join("example-1"));
    for folder in [&leftover, &unmarked] {
        fs::create_dir_all(folder.join("in")).unwrap();
        fs::write(folder.join("program"), "half").unwrap();
    }
    assert_eq!(cache.ready(&recipe("a")), None);
    assert_eq!(cache.make(&recipe("a")).unwrap(), "v1");
    assert!(!leftover.exists() && !unmarked.join("in").exists());
}

#[test]
fn a_failed_recipe_leaves_nothing_and_keeps_the_server_that_was_there() {
    let (_home, cache) = cache();
    cache.make(&recipe("a")).unwrap();
    let failing = Recipe { make: |_| Err(Fault::Cannot("no network".into())), ..recipe("b") };
    assert!(matches!(cache.make(&failing), Err(Fault::Cannot(why)) if why == "no network"));
    let wrong = Recipe { inspect: |_| bail!("another version"), ..recipe("b") };
    assert!(matches!(cache.make(&wrong), Err(Fault::Broken(_))));
    assert_eq!(cache.ready(&recipe("a")).unwrap(), "v1");
    let names = fs::read_dir(&cache.home).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.into_iter().any(|name| name.to_string_lossy().starts_with(MAKING)));
}

#[test]
fn two_processes_do_not_make_one_server_at_once() {
    let (_home, cache) = cache();
    files::create_folder(&cache.home).unwrap();
    let lock = cache.lock().unwrap();
    std::thread::scope(|scope| {
        let other = scope.spawn(|| cache.make(&recipe("a")).unwrap());
        // Nothing can be made while the lock is held, however long the other waits.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!cache.home.join("count").exists());
        drop(lock);
        assert_eq!(other.join().unwrap(), "v1");
    });
}
