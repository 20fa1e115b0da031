//! A provider made of a script: it answers each connection once, can be slow, silent, and break off anywhere.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the server does with a request.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    piece: usize,
    pause: Duration,
    ends: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Well,
    /// The connection is closed after so many bytes of the body.
    Cut(usize),
    /// Nothing more comes after so many bytes of the body.
    Silence(usize),
}

impl Answer {
    pub(crate) fn json(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".into(), "application/json".into())];
        Self { status, headers, body: body.into(), piece: usize::MAX, pause: Duration::ZERO, ends: End::Well }
    }

    pub(crate) fn sse(body: &str) -> Self {
        Self { headers: vec![("content-type".into(), "text/event-stream".into())], ..Self::json(200, body) }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn in_pieces_of(mut self, bytes: usize) -> Self {
        self.piece = bytes;
        self
    }

    /// Waits before the answer, and before each further piece of it.
    pub(crate) fn with_pauses(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    pub(crate) fn cut_at(mut self, bytes: usize) -> Self {
        self.ends = End::Cut(bytes);
        self
    }

    pub(crate) fn silent_at(mut self, bytes: usize) -> Self {
        self.ends = End::Silence(bytes);
        self
    }
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The method and the path.
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// When it came.
    pub(crate) at: tokio::time::Instant,
}

impl Request {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Server {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
    asked: Arc<Notify>,
    left: Arc<Notify>,
}

impl Server {
    /// A server that gives these answers, one per connection; then it listens no more.
    pub(crate) async fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap().to_string(), ..Self::default() };
        let (serving, answers) = (server.clone(), answers.into_iter().collect::<Vec<_>>());
        tokio::spawn(async move {
            for answer in answers {
                let (connection, _) = listener.accept().await.unwrap();
                // Who asks may go away at any time.
                let _ = serving.serve(connection, answer).await;
            }
        });
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns when a request has come.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Returns when somebody has left who was kept waiting.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }

    async fn serve(&self, mut connection: TcpStream, answer: Answer) -> io::Result<()> {
        connection.set_nodelay(true)?;
        let request = receive(&mut connection).await?;
        self.requests.lock().unwrap().push(request);
        self.asked.notify_one();
        if !answer.pause.is_zero() {
            tokio::time::sleep(answer.pause).await;
        }
        let head = format!("HTTP/1.1 {} -\r\nconnection: close\r\ntransfer-encoding: chunked\r\n", answer.status);
        let headers: Vec<String> = answer.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        connection.write_all(format!("{head}{}\r\n", headers.concat()).as_bytes()).await?;
        let until = match answer.ends {
            End::Well => answer.body.len(),
            End::Cut(bytes) | End::Silence(bytes) => bytes,
        };
        for (number, piece) in answer.body[..until].chunks(answer.piece).enumerate() {
            if number > 0 && !answer.pause.is_zero() {
                tokio::time::sleep(answer.pause).await;
            }
            let piece = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
            connection.write_all(&piece).await?;
        }
        match answer.ends {
            End::Well => connection.write_all(b"0\r\n\r\n").await,
            End::Cut(_) => Ok(()),
            End::Silence(_) => {
                connection.read_to_end(&mut Vec::new()).await?;
                self.left.notify_one();
                Ok(())
            }
        }
    }
}

async fn receive(connection: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let at = tokio::time::Instant::now();
    loop {
        if connection.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.lines();
        let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned())))
            .collect();
        let length = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, n)| n.parse().unwrap());
        if bytes.len() >= end + 4 + length {
            return Ok(Request { line, headers, body: bytes[end + 4..].to_vec(), at });
        }
    }
}
