//! `fewtag encoder`: against a hub of our own on the loopback interface.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

const COMMIT: &str = "0123456789abcdef";
const FILES: [&str; 4] = ["config.json", "model.safetensors", "tokenizer.json", "vocab.txt"];
const MODEL: [&str; 4] = ["config.json", "fewtag.json", "model.safetensors", "tokenizer.json"];

fn tiny_encoder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder")
}

fn default_model() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/default")
}

/// Serves the tiny encoder as `acme/tiny` and the built-in model as `acme/model`, branch `main`, and remembers what was asked for.
struct Hub {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(stream.unwrap(), &heard);
            }
        });
        Self { address, requests }
    }

    /// The requests for bytes of a file since the last call, as `name first_byte`.
    fn downloads(&self) -> Vec<String> {
        self.requests.lock().unwrap().drain(..).collect()
    }
}

/// Answers one request and closes the connection.
fn answer(mut stream: TcpStream, heard: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    let target = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
    let range = lines
        .take_while(|line| !line.is_empty())
        .find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
    let (name, dir, files) = if target.contains("/acme/model/") {
        ("model", default_model(), MODEL)
    } else {
        ("tiny", tiny_encoder(), FILES)
    };
    let listing = format!("/api/models/acme/{name}/revision/main");
    let file = target.strip_prefix(&format!("/acme/{name}/resolve/{COMMIT}/"));
    let (status, headers, body) = match file {
        _ if target == listing => {
            let siblings = files.map(|file| serde_json::json!({"rfilename": file}));
            let json = serde_json::json!({"sha": COMMIT, "siblings": siblings});
            ("200 OK", String::new(), json.to_string().into_bytes())
        }
        Some(file) => {
            let bytes = fs::read(dir.join(file)).unwrap();
            let range = range.unwrap();
            let (first, last) = range.split_once('-').unwrap();
            let first: usize = first.parse().unwrap();
            let end = last.parse().map_or(bytes.len(), |last: usize| last + 1);
            if last.is_empty() {
                heard.lock().unwrap().push(format!("{file} {first}"));
            }
            let headers = format!(
                "Content-Range: bytes {first}-{}/{}\r\nETag: \"{file}-tag\"\r\nX-Repo-Commit: {COMMIT}\r\n",
                end - 1,
                bytes.len()
            );
            ("206 Partial Content", headers, bytes[first..end].to_vec())
        }
        None => ("404 Not Found", String::new(), Vec::new()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    stream.write_all(&body).unwrap();
}

fn fewtag(arguments: &[&str], hub: &str, home: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(arguments)
        .env("HF_ENDPOINT", hub)
        .env("HF_HOME", home)
        .env_remove("http_proxy")
        .env_remove("HTTP_PROXY")
        .env_remove("all_proxy")
        .env_remove("ALL_PROXY")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap().trim_end()
}

#[test]
fn a_fetched_encoder_is_whole_and_fetched_once() {
    let (hub, home) = (Hub::start(), tempfile::tempdir().unwrap());
    let fetched = fewtag(&["encoder", "fetch", "acme/tiny"], &hub.address, home.path());
    assert!(fetched.status.success(), "{}", text(&fetched.stderr));
    assert_eq!(text(&fetched.stderr), format!("commit {COMMIT}"));
    let dir = Path::new(text(&fetched.stdout));
    for file in FILES {
        assert_eq!(fs::read(dir.join(file)).unwrap(), fs::read(tiny_encoder().join(file)).unwrap());
    }
    assert_eq!(hub.downloads(), FILES.map(|file| format!("{file} 0")));

    let again = fewtag(&["encoder", "fetch", "acme/tiny"], &hub.address, home.path());
    assert_eq!(again.stdout, fetched.stdout);
    assert!(hub.downloads().is_empty());
}

#[test]
fn an_interrupted_download_continues() {
    let (hub, home) = (Hub::start(), tempfile::tempdir().unwrap());
    let blobs = home.path().join("hub/models--acme--tiny/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let weights = fs::read(tiny_encoder().join("model.safetensors")).unwrap();
    fs::write(blobs.join("model.part"), &weights[..1000]).unwrap();

    let fetched = fewtag(&["encoder", "fetch", "acme/tiny"], &hub.address, home.path());
    assert!(fetched.status.success(), "{}", text(&fetched.stderr));
    assert!(hub.downloads().contains(&"model.safetensors 1000".to_owned()));
    let dir = Path::new(text(&fetched.stdout));
    assert_eq!(fs::read(dir.join("model.safetensors")).unwrap(), weights);
}

#[test]
fn an_unknown_encoder_or_revision_is_named() {
    let (hub, home) = (Hub::start(), tempfile::tempdir().unwrap());
    for arguments in [
        &["encoder", "fetch", "acme/none"][..],
        &["encoder", "fetch", "acme/tiny", "--revision", "v2"],
    ] {
        let failed = fewtag(arguments, &hub.address, home.path());
        assert_eq!(failed.status.code(), Some(1));
        let message = text(&failed.stderr);
        assert!(message.contains(arguments[2]) && message.contains("404"), "{message}");
    }
}

#[test]
fn info_shows_shape_size_and_checksum() {
    let home = tempfile::tempdir().unwrap();
    let dir = tiny_encoder();
    let shown = fewtag(&["encoder", "info", dir.to_str().unwrap()], "", home.path());
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    // The checksum is what `sha256sum` prints.
    let expected = "architecture  BERT, 2 layers
width         20, 4 heads
feed-forward  36, gelu
vocabulary    207 pieces
longest text  128 pieces
parameters    13292 (without pooler and heads)
memory        1 MB of weights in f32
training      1 MB, and activations
sha256        0e13f468498d6934ac0ffcee2314fc6b08e0bbf625a1289fed8b22e37a5b0242  model.safetensors";
    assert_eq!(text(&shown.stdout), expected);
}

#[test]
fn info_refuses_a_tokenizer_of_another_encoder() {
    let dir = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors", "vocab.txt"] {
        fs::copy(tiny_encoder().join(file), dir.path().join(file)).unwrap();
    }
    let mut vocabulary =
        fs::OpenOptions::new().append(true).open(dir.path().join("vocab.txt")).unwrap();
    vocabulary.write_all(b"extra\n").unwrap();
    let failed = fewtag(&["encoder", "info", dir.path().to_str().unwrap()], "", dir.path());
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).contains("knows 208 pieces, the encoder 207"));
}

#[test]
fn a_model_is_named_by_its_directory_or_on_the_hub() {
    let (hub, home) = (Hub::start(), tempfile::tempdir().unwrap());
    let tag = |model: &str, hub: &str| {
        fewtag(
            &["tag", "--model", model, "--example", "play [jazz](genre)", "rock"],
            hub,
            home.path(),
        )
    };
    // The hub has an encoder of this name, and no model.
    let failed = tag("acme/tiny", &hub.address);
    let message = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{message}");
    assert!(message.contains("no fewtag model") && message.contains("acme/tiny"), "{message}");
    assert!(hub.downloads().is_empty());
    // Nobody listens there.
    let nobody = "http://127.0.0.1:9";
    let failed = tag("acme/model", nobody);
    let message = text(&failed.stderr);
    assert!(message.contains("no such directory") && message.contains("hub"), "{message}");
    // Once fetched, the hub is not needed.
    for hub in [hub.address.as_str(), nobody] {
        let tagged = tag("acme/model", hub);
        assert!(tagged.status.success(), "{}", text(&tagged.stderr));
        assert!(text(&tagged.stdout).starts_with("[rock](genre"), "{}", text(&tagged.stdout));
    }
    let failed = tag("nowhere", &hub.address);
    let message = text(&failed.stderr);
    assert!(message.contains("no such directory") && message.contains("owner/name"), "{message}");
}
