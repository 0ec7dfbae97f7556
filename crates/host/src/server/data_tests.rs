//! Data folders: what is taken, kept, refused, swept.

use super::*;

fn prepare(choice: &DataDir) -> Result<Place, ServerError> {
    Place::prepare(choice, "toy", "toy 1", None, || false)
}

#[test]
fn a_private_folder_is_new_and_goes() {
    let below = tempfile::tempdir().unwrap();
    let choice = DataDir::PrivateBelow(below.path().join("servers"));
    let (one, two) = (prepare(&choice).unwrap(), prepare(&choice).unwrap());
    assert!(one.top != two.top && one.fresh && one.data().is_dir() && one.temporary().is_dir());
    assert_ne!(one.password.reveal(), two.password.reveal());
    one.remove().unwrap();
    assert!(!one.top.exists() && two.top.exists());
}

#[test]
fn a_kept_folder_is_used_again_once_it_is_initialised() {
    let below = tempfile::tempdir().unwrap();
    let choice = DataDir::Kept(below.path().join("kept"));
    let half = prepare(&choice).unwrap();
    std::fs::write(half.data().join("half"), "made").unwrap();
    drop(half);
    let mut whole = prepare(&choice).unwrap();
    assert!(whole.fresh && !whole.data().join("half").exists(), "a half-made one is made anew");
    std::fs::write(whole.data().join("rows"), "1").unwrap();
    std::fs::write(whole.temporary().join("sort"), "1").unwrap();
    whole.initialised().unwrap();
    let password = whole.password.reveal().to_owned();
    whole.remove().unwrap();
    drop(whole);
    let again = prepare(&choice).unwrap();
    assert!(!again.fresh && again.data().join("rows").exists() && !again.temporary().join("sort").exists());
    assert_eq!(again.password.reveal(), password);
}

#[test]
fn a_folder_of_others_is_not_touched() {
    let below = tempfile::tempdir().unwrap();
    let file = below.path().join("thesis.txt");
    std::fs::write(&file, "words").unwrap();
    let error = prepare(&DataDir::Kept(below.path().into())).unwrap_err().to_string();
    assert!(error.contains("not empty") && error.contains("nothing was touched"), "{error}");
    assert_eq!(std::fs::read_dir(below.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "words");
}

#[test]
fn data_of_another_program_or_in_use_are_refused() {
    let below = tempfile::tempdir().unwrap();
    let choice = DataDir::Kept(below.path().join("kept"));
    let mut place = prepare(&choice).unwrap();
    place.initialised().unwrap();
    let mut asked = 0;
    let busy = Place::prepare(&choice, "toy", "toy 1", None, || {
        asked += 1;
        asked < 3
    });
    let busy = busy.unwrap_err().to_string();
    assert!(busy.contains("another server of annvil runs on it"), "{busy}");
    assert_eq!(asked, 3);
    drop(place);
    for (engine, version) in [("toy", "toy 2"), ("other", "toy 1")] {
        let error = Place::prepare(&choice, engine, version, None, || false).unwrap_err().to_string();
        assert!(error.contains("data of toy (toy 1)") && error.contains(version), "{error}");
    }
    assert!(!prepare(&choice).unwrap().fresh, "and nothing was changed");
}

#[test]
fn what_a_loss_of_power_left_is_swept_and_nothing_else() {
    let below = tempfile::tempdir().unwrap();
    let choice = DataDir::PrivateBelow(below.path().into());
    let left = prepare(&choice).unwrap();
    let left_top = left.top.clone();
    // The lock is gone with the process; the folder is not.
    drop(left);
    let other = below.path().join("server-notes");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("text"), "mine").unwrap();
    let kept = DataDir::Kept(below.path().join("server-kept"));
    let kept = prepare(&kept).unwrap().top;
    let running = prepare(&choice).unwrap();
    assert!(!left_top.exists() && other.join("text").exists() && kept.exists());
    let second = prepare(&choice).unwrap();
    assert!(running.top.exists() && second.top.exists());
}
