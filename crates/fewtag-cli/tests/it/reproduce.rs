//! `fewtag reproduce` on a tiny encoder and three tiny domains.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{failure, fewtag};

/// A directory with three domains at one shot, and the arguments of a grid of six cells over them.
fn grid(dir: &Path) -> Vec<String> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let episodes = std::fs::read_to_string(testdata.join("tiny-episodes.json")).unwrap();
    let domains: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&episodes).unwrap();
    std::fs::create_dir_all(dir.join("data/tiny_1shot")).unwrap();
    for (domain, episodes) in domains {
        let path = dir.join(format!("data/tiny_1shot/{domain}.json"));
        std::fs::write(path, serde_json::json!({ domain: episodes }).to_string()).unwrap();
    }
    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let encoder = testdata.join("tiny-encoder").to_str().unwrap().to_owned();
    let (data, cache) = (path("data"), path("cache"));
    ["reproduce", "--data", &data, "--encoder", &encoder, "--cache", &cache]
        .into_iter()
        .chain(["--systems", "simbert,wpz", "--format", "csv"])
        .map(String::from)
        .collect()
}

/// The table, and how many cells were run for it.
fn run(args: &[String], more: &[&str]) -> (String, usize) {
    let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
    let output = fewtag(&args);
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    let n_cells = log.lines().filter(|line| line.starts_with("cell ")).count();
    (String::from_utf8(output.stdout).unwrap(), n_cells)
}

/// The table without its last column, the minutes.
fn without_time(table: &str) -> Vec<&str> {
    table.lines().filter_map(|line| line.rsplit_once(',')).map(|(row, _)| row).collect()
}

#[test]
fn a_killed_run_resumes_without_running_finished_cells() {
    let dir = tempfile::tempdir().unwrap();
    let args = grid(dir.path());
    let mut child = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(&args)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("cell 1 of 6: SimBERT"));
    child.kill().unwrap();
    child.wait().unwrap();
    // A cell that was being written leaves a hidden file, which is none.
    let files = std::fs::read_dir(dir.path().join("cache/cells")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let n_finished = names.filter(|name| !name.starts_with('.')).count();
    assert!(n_finished >= 1);

    let (resumed, n_cells) = run(&args, &[]);
    assert_eq!(n_cells, 6 - n_finished);
    let (again, n_cells) = run(&args, &["--finished"]);
    assert_eq!((n_cells, again), (0, resumed.clone()));
    let fresh = tempfile::tempdir().unwrap();
    let (uninterrupted, n_cells) = run(&grid(fresh.path()), &[]);
    assert_eq!(n_cells, 6);
    assert_eq!(without_time(&uninterrupted), without_time(&resumed));
}

#[test]
fn a_file_of_cells_gives_the_same_tables_without_data_or_encoder() {
    let dir = tempfile::tempdir().unwrap();
    let args = grid(dir.path());
    let cells = dir.path().join("cells.jsonl");
    let tables = ["--table", "1shot", "--table", "comparisons", "--table", "budgets"];
    let kept = ["--cells", cells.to_str().unwrap()];
    let all: Vec<&str> = tables.into_iter().chain(kept).collect();
    run(&args, &["--budget", "64", "--cells", cells.to_str().unwrap()]);
    let (drawn, n_cells) = run(&args, &all);
    assert_eq!(n_cells, 6);
    assert!(drawn.contains("\nWPZ,tiny-encoder,"), "WPZ at two budgets: {drawn}");
    std::fs::remove_dir_all(dir.path().join("data")).unwrap();
    std::fs::remove_dir_all(dir.path().join("cache")).unwrap();
    let fresh: Vec<String> = ["reproduce", "--encoder", "tiny-encoder", "--format", "csv"]
        .into_iter()
        .chain(["--systems", "simbert,wpz"])
        .map(String::from)
        .collect();
    assert_eq!(run(&fresh, &all), (drawn, 0));
    let other: Vec<&str> = fresh.iter().map(String::as_str).chain(kept).collect();
    let message = failure(&[&other[..], &["--budget", "full"]].concat(), 1);
    assert!(message.contains("--encoder tiny-encoder --budget quick"), "{message}");
}

#[test]
fn a_changed_setting_is_another_cell_and_another_table() {
    let dir = tempfile::tempdir().unwrap();
    let args = grid(dir.path());
    let cells = dir.path().join("cells.jsonl");
    let kept = ["--folds", "1", "--cells", cells.to_str().unwrap()];
    assert_eq!(run(&args, &kept).1, 2);
    let changed = ["--set", "optimizer.head_rate=0.5"];
    assert_eq!(run(&args, &[&kept[..], &changed].concat()).1, 2);
    assert_eq!(run(&args, &[&kept[..], &changed].concat()).1, 0);
    assert_eq!(std::fs::read_to_string(&cells).unwrap().lines().count(), 4);
}

#[test]
fn changed_data_runs_exactly_the_cells_it_touches() {
    let dir = tempfile::tempdir().unwrap();
    let args = grid(dir.path());
    assert_eq!(run(&args, &["--folds", "1"]).1, 2);
    assert_eq!(run(&args, &[]).1, 4);
    // Domain 1 is tested on in fold 1 and learned from in fold 2; quick looks at no dev domain.
    let first = dir.path().join("data/tiny_1shot/BookTable.json");
    let text = std::fs::read_to_string(&first).unwrap();
    std::fs::write(&first, text + "\n").unwrap();
    assert_eq!(run(&args, &[]).1, 3);
    assert_eq!(run(&args, &["--seeds", "0,1"]).1, 6);
}

#[test]
fn the_page_stands_alone_and_has_tables_and_plots() {
    let dir = tempfile::tempdir().unwrap();
    let args = grid(dir.path());
    let page = dir.path().join("page.html");
    let more = ["--html", page.to_str().unwrap(), "--table", "1shot", "--table", "data"];
    run(&args, &more);
    let html = std::fs::read_to_string(page).unwrap();
    for part in ["<h2>1-shot F1</h2>", "<h2>data</h2>", "<svg", "SimBERT", "Learning curves"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<script") && !html.contains("src="), "nothing is loaded");
}

#[test]
fn wrong_folds_and_missing_episodes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let args = grid(dir.path());
    let with = |more: &[&'static str]| -> Vec<String> {
        args.iter().cloned().chain(more.iter().map(|arg| (*arg).to_owned())).collect()
    };
    for (more, expected) in [
        (["--folds", "4"], "no fold 4"),
        (["--table", "5shot"], "0 domains; an experiment needs at least 3"),
    ] {
        let args = with(&more);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let message = failure(&args, 1);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn what_is_read_is_not_overwritten_and_what_is_no_data_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let args = grid(dir.path());
    std::fs::write(dir.path().join("data/README.md"), "About [the data](x).\n").unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let all = |more: [&str; 2]| -> Vec<String> {
        args.iter().cloned().chain(more.map(str::to_owned)).chain(["--force".into()]).collect()
    };
    let message = |args: &[String]| {
        let output = fewtag(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let domain = std::fs::read_dir(dir.path().join("data/tiny_1shot")).unwrap().next().unwrap();
    let file = domain.unwrap().path().to_str().unwrap().to_owned();
    let before = std::fs::read(&file).unwrap();
    let refused = message(&all(["--html", &file]));
    assert!(refused.contains("it is also read"), "{refused}");
    assert!(refused.contains("left out as no data") && refused.contains("README.md"), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let inside: Vec<String> = all(["--finished", "--force"])
        .into_iter()
        .map(|arg| if arg == path("cache") { path("data/cache") } else { arg })
        .collect();
    let inside: Vec<&str> =
        inside.iter().map(String::as_str).filter(|arg| *arg != "--force").collect();
    let refused = String::from_utf8(fewtag(&inside).stderr).unwrap();
    assert!(refused.contains("which is read: write to another directory"), "{refused}");
}
