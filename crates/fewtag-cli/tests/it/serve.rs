//! `fewtag serve` as a process: it survives being killed, and ends what it has begun.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
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
        let mut process = Command::new(env!("CARGO_BIN_EXE_fewtag"))
            .args(["serve", "--port", "0", "--log", "error", "--model", &path(dir, "")])
            .args(["--database", &path(dir, "domains.sqlite")])
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit_once("http://").unwrap().1.to_owned();
        Self { process, address }
    }

    /// Status and body; `None` if the connection broke.
    fn ask(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .ok()?;
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

#[test]
fn options_come_from_a_file_and_wrong_ones_are_refused() {
    let dir = model(1);
    let file = path(&dir, "serve.toml");
    std::fs::write(&file, "api-key = [\"secret\"]\nmax-text = 5\n").unwrap();
    let server = Server::start(&dir, &["--config", &file]);
    assert_eq!(server.ask("GET", "/v1/domains", "").unwrap().0, 401);
    assert_eq!(server.ask("GET", "/health", "").unwrap().0, 200);
    std::fs::write(&file, "prot = 1\n").unwrap();
    let message = failure(&["serve", "--config", &file], 1);
    assert!(message.contains("prot"), "{message}");
    let message = failure(&["serve", "--host", "0.0.0.0", "--model", &path(&dir, "")], 1);
    assert!(message.contains("--api-key"), "{message}");
}
