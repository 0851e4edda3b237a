//! `fewtag serve` as a process: it survives being killed, and ends what it has begun.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::evaluate::{json, model, path};
use crate::failure;

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(dir: &TempDir, args: &[&str]) -> Self {
        let server = Command::new(env!("CARGO_BIN_EXE_fewtag"));
        Self::spawn(server, dir, args).expect("a server starts")
    }

    /// A server that a shell starts, in which `$@` stands for its command; `None` if the shell gives up.
    fn start_by(shell: &[&str], dir: &TempDir, args: &[&str]) -> Option<Self> {
        let mut server = Command::new(shell[0]);
        server.args(&shell[1..]).arg(env!("CARGO_BIN_EXE_fewtag"));
        Self::spawn(server, dir, args)
    }

    fn spawn(mut server: Command, dir: &TempDir, args: &[&str]) -> Option<Self> {
        std::fs::create_dir_all(path(dir, "disk")).unwrap();
        let process = server
            .args(["serve", "--port", "0", "--model", &path(dir, "")])
            .args(["--database", &path(dir, "disk/domains.sqlite")])
            .args(args)
            .env("FEWTAG_LOG", "off")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Self { process, address: String::new() };
        let mut line = String::new();
        BufReader::new(server.process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim().rsplit_once("http://")?.1.clone_into(&mut server.address);
        Some(server)
    }

    /// Status and body; `None` if the connection broke.
    fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        self.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// The same for a request as it is sent.
    fn send(&self, request: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        answer(&mut stream)
    }

    fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

fn answer(stream: &mut TcpStream) -> Option<(u16, String)> {
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn no_acknowledged_change_is_lost_when_the_server_is_killed_fifty_times() {
    let dir = model(1);
    let server = Server::start(&dir, &[]);
    server.ask("POST", "/v1/domains", r#"{"name": "a"}"#).unwrap();
    drop(server);
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..50 {
        let server = Server::start(&dir, &["--max-support", "100000"]);
        // A kill at another moment of every round, while a client changes the domain as fast as it can.
        let address = server.address.clone();
        let (begun, first) = std::sync::mpsc::channel();
        let writer = std::thread::spawn(move || {
            let dead = Command::new("true").spawn().unwrap();
            let client = Server { process: dead, address };
            let mut acknowledged = Vec::new();
            for n in 0.. {
                let text = format!("round {round} change {n}");
                let body = format!(r#"{{"examples": [{{"text": "{text}"}}]}}"#);
                match client.ask("POST", "/v1/domains/a/examples", &body) {
                    Some((200, _)) => {
                        acknowledged.push(text);
                        let _ = begun.send(()); // Nobody listens after the first.
                    }
                    _ => break,
                }
            }
            acknowledged
        });
        first.recv().unwrap();
        std::thread::sleep(Duration::from_millis(round % 10 * 3));
        server.signal("-KILL");
        acknowledged.extend(writer.join().unwrap());
    }
    let server = Server::start(&dir, &[]);
    let domain = json(&server.ask("GET", "/v1/domains/a", "").unwrap().1);
    let kept: std::collections::HashSet<&str> = domain["examples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["text"].as_str().unwrap())
        .collect();
    let lost: Vec<&String> =
        acknowledged.iter().filter(|text| !kept.contains(text.as_str())).collect();
    assert!(lost.is_empty(), "{lost:?}");
}

#[test]
fn a_stop_finishes_what_has_begun_and_slow_clients_are_given_up() {
    let dir = model(1);
    let mut server = Server::start(&dir, &["--patience", "1"]);
    // Half a head, and silence: the server hangs up.
    let mut slow = TcpStream::connect(&server.address).unwrap();
    slow.write_all(b"GET /health HTTP/1.1\r\nHost:").unwrap();
    let mut rest = Vec::new();
    assert!(slow.read_to_end(&mut rest).is_ok());
    // A request whose body comes after the stop is still answered.
    let body = r#"{"name": "late"}"#;
    let mut late = TcpStream::connect(&server.address).unwrap();
    write!(
        late,
        "POST /v1/domains HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .unwrap();
    std::thread::sleep(Duration::from_millis(200));
    server.signal("-TERM");
    std::thread::sleep(Duration::from_millis(200));
    late.write_all(body.as_bytes()).unwrap();
    assert_eq!(answer(&mut late).unwrap().0, 201);
    assert!(server.process.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_stop_is_heard_as_soon_as_the_server_says_that_it_serves() {
    let dir = model(1);
    for _ in 0..20 {
        let mut server = Server::start(&dir, &[]);
        server.signal("-TERM");
        let status = server.process.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

#[test]
fn options_come_from_a_file_and_wrong_ones_are_refused() {
    let dir = model(1);
    let file = path(&dir, "serve.toml");
    std::fs::write(&file, "api-key = [\"a long secret that nobody guesses\"]\nmax-text = 5\n")
        .unwrap();
    let server = Server::start(&dir, &["--config", &file]);
    assert_eq!(server.ask("GET", "/v1/domains", "").unwrap().0, 401);
    assert_eq!(server.ask("GET", "/health", "").unwrap().0, 200);
    std::fs::write(&file, "prot = 1\n").unwrap();
    let message = failure(&["serve", "--config", &file], 1);
    assert!(message.contains("prot"), "{message}");
    let message = failure(&["serve", "--host", "0.0.0.0", "--model", &path(&dir, "")], 1);
    assert!(message.contains("--api-key"), "{message}");
}

/// What a server says that does not start, and its exit code.
fn refused(dir: &TempDir, args: &[&str], environment: &[(&str, &str)]) -> (i32, String) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(["serve", "--port", "0", "--model", &path(dir, "")])
        .args(["--database", &path(dir, "domains.sqlite")])
        .args(args)
        .envs(environment.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if !line.is_empty() {
        server.kill().unwrap();
    }
    let output = server.wait_with_output().unwrap();
    assert!(line.is_empty(), "{args:?} {environment:?}: {line}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_key_that_everybody_has_or_guesses_opens_no_server() {
    let dir = model(1);
    let everywhere = ["--host", "0.0.0.0"];
    let with = |more: &[&'static str]| [&everywhere, more].concat();
    for (args, environment, said) in [
        (with(&[]), vec![("FEWTAG_API_KEY", "")], "--api-key: the key is empty"),
        (with(&["--api-key", " \t"]), vec![], "--api-key: the key is empty"),
        (with(&["--read-key", ""]), vec![], "--read-key: the key is empty"),
        (with(&["--short-keys", "--api-key", ""]), vec![], "the key is empty"),
        (with(&["--api-key", "secret"]), vec![], "the key has 6 characters"),
        (with(&["--read-key", "fifteen letters"]), vec![], "the key has 15 characters"),
        (with(&["--api-key", " a key behind a blank"]), vec![], "no header"),
    ] {
        let (status, message) = refused(&dir, &args, &environment);
        assert_eq!(status, 1);
        assert!(message.replace('\n', " ").contains(said), "{said} is not in {message}");
        assert!(!message.contains("secret") && !message.contains("behind"), "it tells the key");
    }
    let file = path(&dir, "serve.toml");
    std::fs::write(&file, "api-key = [\"\"]\n").unwrap();
    assert!(refused(&dir, &["--config", &file], &[]).1.contains("the key is empty"));
    let server = Server::start(&dir, &["--api-key", "secret", "--short-keys"]);
    assert_eq!(server.ask("GET", "/v1/domains", "").unwrap().0, 401);
}

#[test]
fn names_and_origins_that_mean_nothing_are_refused_and_others_are_taken_from_a_file() {
    let dir = model(1);
    let file = path(&dir, "serve.toml");
    for (flag, variable, value) in [
        ("--origin", "FEWTAG_ORIGIN", "https://ours.example/"),
        ("--origin", "FEWTAG_ORIGIN", "ours.example"),
        ("--origin", "FEWTAG_ORIGIN", "*"),
        ("--origin", "FEWTAG_ORIGIN", ""),
        ("--public-host", "FEWTAG_PUBLIC_HOST", "https://tags.example"),
        ("--public-host", "FEWTAG_PUBLIC_HOST", "tags.example:80"),
        ("--public-host", "FEWTAG_PUBLIC_HOST", ""),
    ] {
        let toml = format!("{} = [{value:?}]\n", flag.trim_start_matches('-'));
        std::fs::write(&file, toml).unwrap();
        for (status, args, environment) in [
            (2, vec![flag, value], vec![]),
            (2, vec![], vec![(variable, value)]),
            (1, vec!["--config", &file], vec![]),
        ] {
            let (found, message) = refused(&dir, &args, &environment);
            assert_eq!(found, status, "{message}");
            assert!(message.contains("example.org"), "it shows how it should be: {message}");
        }
    }
    let toml = "public-host = [\"tags.example\"]\norigin = [\"https://ours.example\"]\n";
    std::fs::write(&file, toml).unwrap();
    let server = Server::start(&dir, &["--config", &file]);
    for (head, status) in [
        ("Host: tags.example", 200),
        ("Host: other.example", 421),
        ("Host: tags.example\r\nOrigin: https://ours.example", 200),
        ("Host: tags.example\r\nOrigin: https://other.example", 403),
    ] {
        let request = format!("GET /v1/domains HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n");
        assert_eq!(server.send(&request).unwrap().0, status, "{head}");
    }
}

#[test]
fn a_request_is_for_the_server_that_it_names_however_it_does() {
    let dir = model(1);
    let server = Server::start(&dir, &[]);
    for (request, status) in [
        ("GET /v1/domains HTTP/1.1\r\nHost: localhost", 200),
        ("GET /v1/domains HTTP/1.1\r\nHost: evil.example", 421),
        // Old clients name none, and no browser is one of them; HTTP/1.1 wants one, and only one.
        ("GET /v1/domains HTTP/1.0", 200),
        ("GET /v1/domains HTTP/1.0\r\nHost: evil.example", 421),
        ("GET /v1/domains HTTP/1.0\r\nOrigin: http://evil.example", 403),
        ("GET /v1/domains HTTP/1.1", 400),
        ("GET /v1/domains HTTP/1.1\r\nHost:", 400),
        ("GET /v1/domains HTTP/1.1\r\nHost: localhost\r\nHost: localhost", 400),
        ("GET /v1/domains HTTP/1.1\r\nHost: evil.example\r\nHost: localhost", 400),
        // What the target names counts, as for a proxy.
        ("GET http://localhost/v1/domains HTTP/1.1\r\nHost: evil.example", 200),
        ("GET http://evil.example/v1/domains HTTP/1.1\r\nHost: localhost", 421),
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost", 421),
        ("OPTIONS * HTTP/1.1\r\nHost: evil.example", 421),
        ("GET /v1/domains HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example", 200),
        ("GET /v1/domains HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost", 421),
    ] {
        let answer = server.send(&format!("{request}\r\nConnection: close\r\n\r\n"));
        assert_eq!(answer.unwrap().0, status, "{request}");
    }
}

/// Adds examples until one is refused; answers how many were taken, and the refusal.
fn fill(server: &Server) -> (usize, u16, String) {
    for n in 0.. {
        let body = format!(r#"{{"examples": [{{"text": "{n} {}"}}]}}"#, "word ".repeat(10_000));
        match server.ask("POST", "/v1/domains/a/examples", &body).unwrap() {
            (200, _) => {}
            (status, body) => return (n, status, body),
        }
    }
    unreachable!("a disk has an end")
}

fn n_examples(server: &Server) -> usize {
    let (status, body) = server.ask("GET", "/v1/domains/a", "").unwrap();
    assert_eq!(status, 200, "{body}");
    json(&body)["examples"].as_array().unwrap().len()
}

/// A disk of 4 MiB that only the server sees; where that is not allowed, a limit of files' sizes.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said_so_and_loses_nothing() {
    let dir = model(1);
    let disk = path(&dir, "disk");
    let small = format!("mount -t tmpfs -o size=4m none '{disk}' && exec \"$@\"");
    let limited = "trap '' XFSZ; ulimit -f 2048; exec \"$@\"";
    let small = ["unshare", "-rm", "sh", "-c", &small, "sh"];
    let limited = ["sh", "-c", limited, "sh"];
    for shell in [&small[..], &limited] {
        let Some(server) = Server::start_by(shell, &dir, &["--max-support", "100000"]) else {
            eprintln!("no file system can be mounted here: left out");
            continue;
        };
        server.ask("POST", "/v1/domains", r#"{"name": "a"}"#).unwrap();
        let (n, status, body) = fill(&server);
        assert_eq!((status, json(&body)["error"]["code"].as_str()), (507, Some("storage_full")));
        assert!(n > 10, "{n}");
        assert_eq!(n_examples(&server), n);
        assert_eq!(server.ask("GET", "/ready", "").unwrap().0, 200, "it can still read");
        if shell[0] == "sh" {
            server.signal("-KILL");
            let server = Server::start(&dir, &["--max-support", "100000"]);
            assert_eq!(n_examples(&server), n);
            server
                .ask("POST", "/v1/domains/a/examples", r#"{"examples": [{"text": "b"}]}"#)
                .unwrap();
            assert_eq!(n_examples(&server), n + 1);
        }
    }
}

/// What `look` finds, asked again and again; a minute without it is a failure, not a test that never ends.
fn within_a_minute<T>(wanted: &str, look: impl Fn() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("a minute without {wanted}");
}

#[test]
fn traces_reach_a_collector() {
    let dir = model(1);
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/traces", collector.local_addr().unwrap());
    let mut server = Server::start(&dir, &["--log", "info", "--otlp", &url]);
    server.ask("POST", "/v1/domains", r#"{"name": "traced"}"#).unwrap();
    server.signal("-TERM"); // The last traces are sent at the end.
    collector.set_nonblocking(true).unwrap();
    let (mut stream, _) = within_a_minute("traces", || collector.accept().ok());
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut request = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(request.read_line(&mut head).unwrap() > 0, "the exporter hung up");
    }
    let head = head.to_lowercase();
    assert!(head.starts_with("post /v1/traces "), "{head}");
    let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    request.read_exact(&mut body).unwrap();
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    // Protocol buffers hold strings as they are.
    for part in ["service.name", "fewtag", "request", "/v1/domains", "POST"] {
        let found = body.windows(part.len()).any(|window| window == part.as_bytes());
        assert!(found, "no `{part}` in the trace");
    }
    assert!(server.process.wait().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_tuning_is_still_there_after_a_stop_and_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    crate::tune::save_model(dir.path(), |tagger| tagger);
    let server = Server::start(&dir, &[]);
    let text = |i: usize| {
        format!(
            "{{\"text\": \"go to rome now{i}\", \"spans\": [{{\"start\": 6, \"end\": 10, \"label\": \"city\"}}]}}"
        )
    };
    let examples = (0..40).map(text).collect::<Vec<_>>().join(", ");
    let made = format!("{{\"name\": \"a\", \"examples\": [{examples}]}}");
    assert_eq!(server.ask("POST", "/v1/domains", &made).unwrap().0, 201);
    let tune = "/v1/domains/a/tune";
    assert_eq!(server.ask("POST", tune, "{\"minutes\": 60}").unwrap().0, 202);
    let state = |server: &Server| {
        let (_, body) = server.ask("GET", tune, "").unwrap();
        json(&body)["state"].as_str().unwrap().to_owned()
    };
    let until_running = |server: &Server| {
        within_a_minute("a running job", || (state(server) == "running").then_some(()));
    };
    until_running(&server);
    server.signal("-TERM");
    let mut server = server;
    assert!(server.process.wait().unwrap().success());
    let mut again = Server::start(&dir, &[]);
    until_running(&again); // It was put back, so it is taken at once.
    again.process.kill().unwrap();
    again.process.wait().unwrap();
    let last = Server::start(&dir, &[]);
    assert_eq!(state(&last), "running", "until its lease is over nobody knows better");
    assert_eq!(last.ask("DELETE", tune, "").unwrap().0, 200);
    assert_eq!(state(&last), "cancelled");
}
