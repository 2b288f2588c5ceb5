//! Readers of a large object from this node, and the copies that later readers are sent to.
//!
//! A copy has at most `READERS_MAX` readers at a time. Later readers are sent to these, in turn: each of
//! them will soon have a complete copy, which takes as many readers again. A node that is still receiving
//! lets the readers that were sent to it wait until its copy is complete. So many readers that come at once
//! form a tree, and the source sends the object only twice, however many there are.
//!
//! Only a reader that was *sent* waits for an incomplete copy, and readers are sent only to nodes that read
//! or wait here. So a waiting node always waits for a node that is nearer to the complete copy, and no circle
//! of waiting nodes can close.

use smallvec::SmallVec;
use tharsis_types::hash::IdMap;
use tharsis_types::peer::Turn;
use tharsis_types::{NodeId, ObjectId};

/// Maximum number of readers of a copy at a time.
const READERS_MAX: usize = 2;

/// Part of an object that a node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Have {
    /// All of it, in memory or on disk.
    All,
    /// It is being received.
    Some,
    /// No part of it.
    Nothing,
}

/// A node's request to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The node that wants to read.
    pub reader: NodeId,
    /// Whether another node sent it here.
    pub sent: bool,
    /// The node to which this node sent it before, and which did not have the object.
    pub failed_at: Option<NodeId>,
}

/// The readers of this node's copies.
#[derive(Debug, Default)]
pub struct Relay {
    objects: IdMap<ObjectId, Readers>,
}

#[derive(Debug, Default)]
struct Readers {
    /// Nodes that read, or wait until the copy is complete.
    nodes: SmallVec<[NodeId; READERS_MAX]>,
    /// Number of readers that were sent on.
    sent_count: usize,
}

impl Relay {
    /// A node wants to read; with `None` it waits for [`Relay::arrived`] or [`Relay::lost`].
    pub fn wanted(&mut self, object: ObjectId, request: Request, have: Have) -> Option<Turn> {
        self.ended(object, request.reader);
        if have == Have::Nothing || (have == Have::Some && !request.sent) {
            return Some(Turn::Never);
        }
        // A node that has nothing of it has ended, though the news of that may come later. Nobody waits where
        // all is here.
        if let Some(failed) = request.failed_at.filter(|_| have == Have::All) {
            self.ended(object, failed);
        }
        let readers = self.objects.entry(object).or_default();
        if readers.nodes.len() >= READERS_MAX
            && let Some(next) = readers.next_source()
        {
            return Some(Turn::At(next));
        }
        readers.nodes.push(request.reader);
        (have == Have::All).then_some(Turn::Now)
    }

    /// A node does not read any more, or never began.
    pub fn ended(&mut self, object: ObjectId, reader: NodeId) {
        if let Some(readers) = self.objects.get_mut(&object) {
            readers.nodes.retain(|node| *node != reader);
            if readers.nodes.is_empty() {
                self.objects.remove(&object);
            }
        }
    }

    /// A copy is complete; returns the readers that waited for it and read from now on.
    #[must_use]
    pub fn arrived(&self, object: ObjectId) -> SmallVec<[NodeId; READERS_MAX]> {
        self.objects.get(&object).map(|readers| readers.nodes.clone()).unwrap_or_default()
    }

    /// A copy will not come; returns the readers that waited for it.
    pub fn lost(&mut self, object: ObjectId) -> SmallVec<[NodeId; READERS_MAX]> {
        self.objects.remove(&object).map(|readers| readers.nodes).unwrap_or_default()
    }

    /// A node is gone.
    pub fn node_gone(&mut self, node: NodeId) {
        self.objects.retain(|_, readers| {
            readers.nodes.retain(|reader| *reader != node);
            !readers.nodes.is_empty()
        });
    }

    /// Number of objects that have readers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether no object has readers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }
}

impl Readers {
    /// The reader to which the next one is sent.
    fn next_source(&mut self) -> Option<NodeId> {
        self.sent_count += 1;
        self.nodes.get(self.sent_count.checked_rem(self.nodes.len())?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, TaskId};

    fn object() -> ObjectId {
        ObjectId::put(TaskId::root(JobId(1)), 0)
    }

    fn fresh(reader: u64) -> Request {
        Request { reader: NodeId(reader), sent: false, failed_at: None }
    }

    #[test]
    fn two_read_and_the_others_are_sent_to_them_in_turn() {
        let mut relay = Relay::default();
        assert_eq!(relay.wanted(object(), fresh(1), Have::All), Some(Turn::Now));
        assert_eq!(relay.wanted(object(), fresh(2), Have::All), Some(Turn::Now));
        let sent: Vec<_> = (3..7).map(|n| relay.wanted(object(), fresh(n), Have::All)).collect();
        let to = |n| Some(Turn::At(NodeId(n)));
        assert_eq!(sent, [to(2), to(1), to(2), to(1)]);
        relay.ended(object(), NodeId(1));
        assert_eq!(relay.wanted(object(), fresh(3), Have::All), Some(Turn::Now));
        relay.ended(object(), NodeId(2));
        relay.node_gone(NodeId(3));
        assert!(relay.is_empty());
    }

    #[test]
    fn who_was_sent_waits_for_the_copy_and_others_do_not() {
        let mut relay = Relay::default();
        let sent = |reader| Request { sent: true, ..fresh(reader) };
        assert_eq!(relay.wanted(object(), fresh(1), Have::Some), Some(Turn::Never));
        assert_eq!(relay.wanted(object(), sent(1), Have::Some), None);
        assert_eq!(relay.wanted(object(), sent(2), Have::Some), None);
        assert!(matches!(relay.wanted(object(), sent(3), Have::Some), Some(Turn::At(_))));
        assert_eq!(relay.arrived(object())[..], [NodeId(1), NodeId(2)]);
        assert_eq!(relay.lost(object())[..], [NodeId(1), NodeId(2)]);
        assert_eq!(relay.wanted(object(), sent(1), Have::Nothing), Some(Turn::Never));
        assert!(relay.is_empty());
    }

    /// Both have read the object and lost it, and the news of that is on its way.
    #[test]
    fn nobody_is_sent_to_readers_that_do_not_have_it_again_and_again() {
        let mut relay = Relay::default();
        for reader in [1, 2] {
            relay.wanted(object(), fresh(reader), Have::All);
        }
        let failed_at = |reader, failed| Request { failed_at: Some(NodeId(failed)), ..fresh(reader) };
        assert_eq!(relay.wanted(object(), fresh(3), Have::All), Some(Turn::At(NodeId(2))));
        assert_eq!(relay.wanted(object(), failed_at(3, 2), Have::All), Some(Turn::Now));
        assert_eq!(relay.wanted(object(), fresh(4), Have::All), Some(Turn::At(NodeId(1))));
        assert_eq!(relay.wanted(object(), failed_at(4, 1), Have::All), Some(Turn::Now));
        assert_eq!(relay.arrived(object())[..], [NodeId(3), NodeId(4)]);
        // Those that wait for a copy are told when it is here, whatever others say of them.
        let mut relay = Relay::default();
        let sent = |reader| Request { sent: true, ..fresh(reader) };
        assert_eq!(relay.wanted(object(), sent(1), Have::Some), None);
        assert_eq!(relay.wanted(object(), failed_at(3, 1), Have::Some), Some(Turn::Never));
        assert_eq!(relay.wanted(object(), Request { sent: true, ..failed_at(3, 1) }, Have::Some), None);
        assert_eq!(relay.arrived(object())[..], [NodeId(1), NodeId(3)]);
    }
}
