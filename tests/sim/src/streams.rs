//! Streams, as drivers consume them: an actor that makes items, and a window of calls for the next ones.
//!
//! Taking an item asks for one more. Whoever has enough takes back what has not begun, the last call first,
//! and drops the actor.

use crate::client::Stream;
use crate::cluster::Cluster;
use crate::program::{self, CONSTRUCTOR};
use std::collections::VecDeque;
use tharsis_core::Event;
use tharsis_types::{ClientId, RefId};

/// Items that are asked for and not taken.
const WINDOW: usize = 4;

impl Cluster {
    /// A driver begins to consume a stream.
    pub(crate) fn open_stream(&mut self, host: usize, id: ClientId) {
        let count = self.rng.range(1, 12);
        let Some(actor) = self.make_aside(host, id, CONSTRUCTOR, None) else { return };
        let stream = Stream { actor, window: VecDeque::new(), left: count };
        self.summary.stream_count += 1;
        let Some(driver) = self.driver_of(host, id) else { return };
        driver.streams.push(stream);
        let at = driver.streams.len() - 1;
        self.ask_for_items(host, id, at);
    }

    /// A value is here: whatever stands in the way of the streams of a driver goes on.
    pub(crate) fn go_on_with_streams(&mut self, host: usize, id: ClientId) {
        let mut at = 0;
        while let Some(stream) = self.driver_of(host, id).and_then(|driver| driver.streams.get(at)) {
            let Some(first) = stream.window.front().copied() else {
                self.close_stream(host, id, at);
                continue;
            };
            let held = self.hosts[host].clients.get(&id).and_then(|client| client.refs.get(&first));
            let (is_there, is_ended) = (held.is_some(), held.is_some_and(|held| held.ended));
            let has_failed = is_ended && held.is_some_and(|held| held.failed);
            match (is_there, is_ended, has_failed) {
                (true, false, _) => at += 1,
                (true, true, false) => {
                    self.take_item(host, id, at);
                    self.ask_for_items(host, id, at);
                }
                _ => self.close_stream(host, id, at),
            }
        }
    }

    /// A driver has enough of all its streams.
    pub(crate) fn close_streams(&mut self, host: usize, id: ClientId) {
        while self.driver_of(host, id).is_some_and(|driver| !driver.streams.is_empty()) {
            self.close_stream(host, id, 0);
        }
    }

    fn take_item(&mut self, host: usize, id: ClientId, at: usize) {
        let stream = self.driver_of(host, id).and_then(|driver| driver.streams.get_mut(at));
        let Some(token) = stream.and_then(|stream| stream.window.pop_front()) else { return };
        self.summary.item_count += 1;
        self.release(host, id, token);
    }

    /// Fills the window, and waits for its first item.
    fn ask_for_items(&mut self, host: usize, id: ClientId, at: usize) {
        while let Some(stream) = self.driver_of(host, id).and_then(|driver| driver.streams.get_mut(at))
            && stream.window.len() < WINDOW
            && 0 < stream.left
        {
            stream.left -= 1;
            let left = stream.left;
            let actor = stream.actor;
            let held = self.hosts[host].clients.get(&id).and_then(|client| client.refs.get(&actor));
            let Some(actor) = held.map(|held| held.reference) else { break };
            let method = program::method_of(actor.object.task, left);
            let item = self.make_aside(host, id, method, Some(actor));
            if let Some(stream) = self.driver_of(host, id).and_then(|driver| driver.streams.get_mut(at)) {
                stream.window.extend(item);
            }
        }
        let stream = self.driver_of(host, id).and_then(|driver| driver.streams.get(at));
        if let Some(first) = stream.and_then(|stream| stream.window.front()).copied() {
            self.want(host, id, first);
        }
    }

    fn close_stream(&mut self, host: usize, id: ClientId, at: usize) {
        let Some(driver) = self.driver_of(host, id) else { return };
        let stream = driver.streams.remove(at);
        // The last ones first, so that none of them begins meanwhile.
        for token in stream.window.into_iter().rev() {
            let held = self.hosts[host].clients.get(&id).and_then(|client| client.refs.get(&token));
            if let Some(reference) = held.filter(|held| !held.ended).map(|held| held.reference) {
                self.oracle.cancelled(reference, false);
                self.send(host, id, Event::CancelRequested { reference, force: false, recursive: false });
            }
            self.release(host, id, token);
        }
        self.release(host, id, stream.actor);
    }

    /// A call whose result the driver keeps aside, where nothing else of its program finds it.
    fn make_aside(&mut self, host: usize, id: ClientId, kind: u32, target: Option<RefId>) -> Option<u64> {
        let tokens = self.submit_call(host, id, (kind, target), &[], &[])?;
        let client = self.hosts[host].clients.get_mut(&id)?;
        client.context.locals.retain(|token| !tokens.contains(token));
        tokens.first().copied()
    }
}
