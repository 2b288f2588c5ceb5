//! A TCP relay before a server, which a test cuts and joins again.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// A relay to one server; dropping it ends its connections.
#[derive(Debug)]
pub struct Relay {
    endpoint: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    has_ended: bool,
    streams: Vec<TcpStream>,
}

impl Relay {
    /// Starts a relay to the server at `http://host:port`.
    ///
    /// # Panics
    /// If there is no port for it.
    #[must_use]
    pub fn start(server: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let state = Arc::<Mutex<State>>::default();
        let (shared, server) = (Arc::clone(&state), server.trim_start_matches("http://").to_owned());
        std::thread::spawn(move || accept(&listener, &server, &shared));
        Relay { endpoint, state }
    }

    /// Address at which the server is reached through it.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Breaks all connections, and every new one until [`Relay::join`].
    pub fn cut(&self) {
        with(&self.state, |state| {
            state.is_cut = true;
            state.end_streams();
        });
    }

    /// Takes connections again.
    pub fn join(&self) {
        with(&self.state, |state| state.is_cut = false);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        with(&self.state, |state| {
            state.has_ended = true;
            state.end_streams();
        });
        // The thread that accepts sees the end with its next connection.
        let _woken = TcpStream::connect(self.endpoint.trim_start_matches("http://"));
    }
}

impl State {
    fn end_streams(&mut self) {
        for stream in self.streams.drain(..) {
            // It may have ended already.
            let _ended = stream.shutdown(Shutdown::Both);
        }
    }
}

fn with<T>(state: &Mutex<State>, change: impl FnOnce(&mut State) -> T) -> T {
    change(&mut state.lock().unwrap_or_else(PoisonError::into_inner))
}

fn accept(listener: &TcpListener, server: &str, state: &Arc<Mutex<State>>) {
    for stream in listener.incoming() {
        if with(state, |state| state.has_ended) {
            return;
        }
        // A connection that cannot be passed on ends.
        let _ended = stream.and_then(|stream| pass_on(stream, server, state));
    }
}

fn pass_on(client: TcpStream, server: &str, state: &Mutex<State>) -> io::Result<()> {
    let server = TcpStream::connect(server)?;
    let kept = [client.try_clone()?, server.try_clone()?];
    let is_open = with(state, |state| {
        if !state.is_cut {
            state.streams.extend(kept);
        }
        !state.is_cut
    });
    if is_open {
        copy(client.try_clone()?, server.try_clone()?);
        copy(server, client);
    }
    Ok(())
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _copied = io::copy(&mut from, &mut to);
        let _ended = to.shutdown(Shutdown::Both);
    });
}
