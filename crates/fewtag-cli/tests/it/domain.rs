//! `fewtag domain`, and saved domains where other commands read them.

use crate::{example, failure, success};

const TEXT: &str = "could you play some billie holiday this evening";

#[test]
fn a_saved_domain_tags_as_its_examples_do() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("music.fewtag").to_str().unwrap().to_owned();
    let music = example("music.txt");
    let said = success(&["domain", "save", "--support", &music, "--threshold", "0.1", &file]);
    assert!(said.contains("music.fewtag: 5 examples, "), "{said}");
    let learned = success(&["tag", "--support", &music, "--format", "json", "--explain", TEXT]);
    assert_eq!(
        success(&["tag", "--domain", &file, "--format", "json", "--explain", TEXT]),
        learned
    );
    assert_eq!(
        success(&["tag", "--support", &file, "--format", "json", "--explain", TEXT]),
        learned
    );
    let sure = success(&["tag", "--domain", &file, "--threshold", "1", TEXT]);
    assert_eq!(sure.trim_end(), TEXT);
    let shown = success(&["domain", "show", &file]);
    assert!(shown.contains("5 examples") && shown.contains("threshold: 0.1"), "{shown}");
    let inline = success(&["domain", "show", &file, "--format", "inline"]);
    assert_eq!(inline, success(&["data", "convert", &music, "-", "--to", "inline"]));
}

#[test]
fn what_cannot_be_saved_or_opened_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, music) = (path("music.fewtag"), example("music.txt"));
    success(&["domain", "save", "--support", &music, &file]);
    let again = failure(&["domain", "save", "--support", &music, &file], 1);
    assert!(again.contains("--force replaces it"), "{again}");
    let both = failure(&["tag", "--domain", &file, "--support", &music, TEXT], 2);
    assert!(both.contains("--support"), "{both}");
    let text = failure(&["tag", "--domain", &music, TEXT], 1);
    assert!(text.contains("music.txt"), "{text}");
    let nothing = failure(&["domain", "save", &path("x.fewtag")], 1);
    assert!(nothing.contains("nothing to learn from"), "{nothing}");
    assert!(!dir.path().join("x.fewtag").exists());
}
