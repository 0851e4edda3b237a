//! `fewtag score`: the tables it prints, and what it refuses.

use std::fs;
use std::path::Path;

use fewtag::data::{self, ReadOptions};
use fewtag::scheme::Scheme;
use serde_json::Value;

use crate::{example, failure, success};

#[test]
fn the_tables_are_printed_for_people() {
    let args = ["score", &example("weather.conll"), &example("weather_predicted.conll")];
    let expected = "\
scores

domain   episodes  sentences  precision  recall     f1  f1 sd  sentence-macro f1  sentence-macro sd
-------  --------  ---------  ---------  ------  -----  -----  -----------------  -----------------
weather         1         20      90.48   86.36  88.37   0.00              85.76               0.00

slots

domain   slot       gold  predicted  correct  precision  recall     f1
-------  ---------  ----  ---------  -------  ---------  ------  -----
weather  city         17         16       15      93.75   88.24  90.91
weather  condition    11          9        8      88.89   72.73  80.00
weather  time         16         17       15      88.24   93.75  90.91
weather  all slots    44         42       38      90.48   86.36  88.37

bi-grams

group   bi-gram  words  proportion  accuracy
------  -------  -----  ----------  --------
Border  O-O         48       33.33    100.00
Border  O-B         29       20.14     82.76
Border  B-O          9        6.25    100.00
Border  I-O          3        2.08    100.00
Border  B-I/I-B     14        9.72    100.00
Inner   B-I         18       12.50     88.89
Inner   I-I          3        2.08    100.00
Start   S-B          1        0.69    100.00
Start   S-O         19       13.19    100.00
All                144      100.00     95.14
";
    assert_eq!(success(&args), expected);
}

#[test]
fn one_table_can_be_asked_for_in_every_format() {
    let files = [example("weather.conll"), example("weather_predicted.conll")];
    let score =
        |format| success(&["score", &files[0], &files[1], "--table", "slots", "--format", format]);
    assert!(score("text").starts_with("slots\n\ndomain "));
    assert!(score("markdown").starts_with("### slots\n\n| domain "));
    let csv = score("csv");
    assert!(
        csv.contains("weather,city,17,16,15,93.75,88.23529411764706,90.9090909090909"),
        "{csv}"
    );
    let json: Value = serde_json::from_str(&score("json")).unwrap();
    assert_eq!(json["slots"][0]["slot"], "city");
    assert_eq!(json["slots"][0]["precision"], 93.75);
    assert!(json.get("scores").is_none());
}

/// Two episodes of one query each; the support is not judged.
const EPISODES: &str = r#"{"D": [
  {"support": {"seq_ins": [["a"]], "seq_outs": [["B-x"]]}, "query": {"seq_ins": [["b", "c"]], "seq_outs": [["B-x", "O"]]}},
  {"support": {"seq_ins": [["a"]], "seq_outs": [["B-x"]]}, "query": {"seq_ins": [["d"]], "seq_outs": [["B-y"]]}}
]}"#;

#[test]
fn the_queries_of_episodes_are_judged_episode_by_episode() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("gold.json"), EPISODES).unwrap();
    fs::write(path("predicted.conll"), "b\tB-x\nc\tO\n\nd\tO\n").unwrap();
    let args = ["score", &path("gold.json"), &path("predicted.conll"), "--format", "json"];
    let scores: Value = serde_json::from_str(&success(&args)).unwrap();
    let row = &scores["scores"][0];
    assert_eq!((row["episodes"].as_u64(), row["sentences"].as_u64()), (Some(2), Some(2)));
    assert_eq!((row["f1"].as_f64(), row["sentence_macro_f1"].as_f64()), (Some(50.0), Some(50.0)));
    assert_eq!(scores["slots"][2]["slot"], "all slots");

    let args = ["score", &path("gold.json"), &path("gold.json"), "--format", "json"];
    let scores: Value = serde_json::from_str(&success(&args)).unwrap();
    assert_eq!(scores["scores"][0]["f1"], 100.0);
}

#[test]
fn every_data_format_is_judged_alike() {
    let directory = tempfile::tempdir().unwrap();
    let files = [example("weather.conll"), example("weather_predicted.conll")];
    let slots = |gold: &str, predicted: &str| {
        let args = ["score", gold, predicted, "--table", "slots", "--format", "csv"];
        success(&args).replace("gold,", "weather,")
    };
    let expected = slots(&files[0], &files[1]);
    for format in data::Format::ALL {
        let converted = ["gold", "predicted"].map(|name| directory.path().join(name));
        for (from, to) in files.iter().zip(&converted) {
            let domains = data::read_domains(Path::new(from), &ReadOptions::default()).unwrap();
            let mut bytes = Vec::new();
            data::write(format, Scheme::Iob2, &domains, &mut bytes).unwrap();
            fs::write(to, bytes).unwrap();
        }
        let [gold, predicted] = converted.each_ref().map(|path| path.to_str().unwrap());
        assert_eq!(slots(gold, predicted), expected, "{format}");
    }
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("gold"), "a\tB-x\n\nb\tO\nc\tO\n").unwrap();
    fs::write(path("short"), "a\tB-x\n").unwrap();
    fs::write(path("other"), "a\tB-x\n\nb\tO\n").unwrap();
    let message = failure(&["score", &path("gold"), &path("short")], 1);
    assert!(message.contains("has 2 sentences to judge, but"), "{message}");
    let message = failure(&["score", &path("gold"), &path("other")], 1);
    assert!(
        message.contains("sentence 2 has other words in") && message.contains("(`b c`)"),
        "{message}"
    );
}
