//! A wire between a saver and the server that counts what goes over it, and can be cut or fall silent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use superstep_postgres::{PostgresBuilder, PostgresDatabase, PostgresSaver};

use super::Place;

/// How long an answer is waited for where the wire falls silent: no statement of these tests takes nearly as long.
pub(super) const HURRY: Duration = Duration::from_secs(3);

/// What went over the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Traffic {
    /// How often something was sent when all that was sent before was answered.
    pub(super) round_trips: usize,
    pub(super) statements: usize,
    /// Statements that were given a name, and so would outlive their transaction.
    pub(super) named: usize,
}

/// Where the wire breaks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cut {
    /// Before the server hears of it.
    Request,
    /// When the server has done it, and says so.
    Answer,
    /// It does not break: the server does not hear of it, and nobody is told.
    SilentRequest,
    /// The same when the server has done it.
    SilentAnswer,
}

#[derive(Default)]
struct State {
    traffic: Traffic,
    /// The wire breaks at the last of so many round trips from now on.
    cuts: Option<(usize, Cut)>,
    /// How many round trips in a row break from then on.
    again: usize,
}

#[derive(Clone)]
pub(super) struct Wire {
    state: Arc<Mutex<State>>,
    port: u16,
}

impl Wire {
    pub(super) async fn new(place: &Place) -> Self {
        let server = place.address.split('@').nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Self { state: Arc::default(), port: listener.local_addr().unwrap().port() };
        let state = wire.state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carry(client, server, state.clone()));
            }
        });
        wire
    }

    /// A saver at the end of the wire.
    pub(super) async fn saver(&self, place: &Place) -> PostgresSaver {
        PostgresSaver::new(&self.builder(place).connect().await.unwrap())
    }

    /// A database with one connection that is not waited for long.
    pub(super) async fn hurried(&self, place: &Place) -> PostgresDatabase {
        self.builder(place).pool_size(1).answer_timeout(HURRY).connect().await.unwrap()
    }

    fn builder(&self, place: &Place) -> PostgresBuilder {
        let user = place.address.split('@').next().unwrap();
        let database = place.address.rsplit('/').next().unwrap();
        let address = format!("{user}@127.0.0.1:{}/{database}?sslmode=disable", self.port);
        PostgresDatabase::builder(address).schema(place.schema.clone())
    }

    /// What went over the wire meanwhile, and what came of it.
    pub(super) async fn during<T>(&self, job: impl Future<Output = T>) -> (Traffic, T) {
        self.state.lock().unwrap().traffic = Traffic::default();
        let done = job.await;
        (self.state.lock().unwrap().traffic, done)
    }

    /// Breaks at a round trip: the first from now on has number 1.
    pub(super) fn cut_at(&self, round_trip: usize, cut: Cut) {
        self.cut_from(round_trip, 1, cut);
    }

    /// Breaks at so many round trips in a row.
    pub(super) fn cut_from(&self, round_trip: usize, times: usize, cut: Cut) {
        let mut state = self.state.lock().unwrap();
        state.cuts = Some((round_trip, cut));
        state.again = times - 1;
    }

    pub(super) fn was_cut(&self) -> bool {
        self.state.lock().unwrap().cuts.is_none()
    }
}

impl State {
    /// Counts a round trip; whether the wire breaks there.
    fn round_trip(&mut self) -> Option<Cut> {
        self.traffic.round_trips += 1;
        let (left, cut) = self.cuts?;
        if left > 1 {
            self.cuts = Some((left - 1, cut));
            return None;
        }
        self.cuts = self.again.checked_sub(1).map(|again| {
            self.again = again;
            (1, cut)
        });
        Some(cut)
    }
}

/// Carries what one connection says until it ends or is cut.
async fn carry(mut client: TcpStream, mut server: TcpStream, state: Arc<Mutex<State>>) {
    let (mut requests, mut answers) = (Frames::default(), Frames { is_open: true, ..Frames::default() });
    let (mut asked, mut answered) = (0, 0);
    let (mut is_doomed, mut is_silent) = (false, false);
    let (mut from_client, mut from_server) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        tokio::select! {
            Ok(len) = client.read(&mut from_client) => {
                if is_silent {
                    // Who gives up ends what it began on the server too.
                    if len == 0 {
                        return;
                    }
                    continue;
                }
                for frame in requests.feed(&from_client[..len]) {
                    let mut state = state.lock().unwrap();
                    state.traffic.named += usize::from(frame[0] == b'P' && frame[5] != 0);
                    if frame[0] == b'S' || frame[0] == b'Q' {
                        state.traffic.statements += 1;
                        asked += 1;
                        if asked == answered + 1 {
                            match state.round_trip() {
                                Some(Cut::Request) => return,
                                Some(Cut::Answer) => is_doomed = true,
                                Some(Cut::SilentRequest) => is_silent = true,
                                Some(Cut::SilentAnswer) => (is_doomed, is_silent) = (true, true),
                                None => {}
                            }
                        }
                    }
                }
                if is_silent && !is_doomed {
                    continue;
                }
                if len == 0 || server.write_all(&from_client[..len]).await.is_err() {
                    return;
                }
            }
            Ok(len) = server.read(&mut from_server) => {
                let ready = answers.feed(&from_server[..len]).iter().filter(|frame| frame[0] == b'Z').count();
                // The first one says that the connection is made.
                answered += if answered == 0 && asked == 0 { 0 } else { ready };
                if len == 0 || (is_doomed && !is_silent && asked == answered) {
                    return;
                }
                if !is_doomed && client.write_all(&from_server[..len]).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}

/// Takes a stream of the protocol apart.
#[derive(Default)]
struct Frames {
    bytes: Vec<u8>,
    /// Whether the first message, which has no kind, is over.
    is_open: bool,
}

impl Frames {
    /// The messages that are complete now, each with its kind and length.
    fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.bytes.extend_from_slice(bytes);
        let mut frames = Vec::new();
        loop {
            let kind = usize::from(self.is_open);
            let Some(len) = self.bytes.get(kind..kind + 4) else { return frames };
            let len = kind + u32::from_be_bytes(len.try_into().unwrap()) as usize;
            if self.bytes.len() < len {
                return frames;
            }
            let frame: Vec<u8> = self.bytes.drain(..len).collect();
            if std::mem::replace(&mut self.is_open, true) {
                frames.push(frame);
            }
        }
    }
}
