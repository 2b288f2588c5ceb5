//! Notes of one part of a node for another part, which waits for them.

use crate::registry::lock;
use std::collections::BTreeSet;
use std::sync::Mutex;
use tokio::sync::Notify;

/// Things that stand here at a time. Other nodes have them noted, so there is a bound; nobody comes near it
/// but one that says whatever it likes. Whoever had one noted in vain does so again after a while. All that
/// stands here is taken together, and one answer is about all of it, so nobody is kept waiting by others for
/// longer than that. Those whose streams broke are members, of which there are not so many.
const NOTED_MAX: usize = 1 << 16;

/// Things that nobody has taken yet, each once.
#[derive(Debug)]
pub(super) struct Noted<T> {
    things: Mutex<BTreeSet<T>>,
    news: Notify,
}

impl<T> Default for Noted<T> {
    fn default() -> Self {
        Self { things: Mutex::default(), news: Notify::new() }
    }
}

impl<T: Copy + Ord> Noted<T> {
    /// Adds something for whoever waits.
    pub(super) fn add(&self, thing: T) {
        let mut things = lock(&self.things);
        if things.len() < NOTED_MAX {
            things.insert(thing);
        }
        drop(things);
        self.news.notify_one();
    }

    /// Waits until there is something, and takes all of it.
    pub(super) async fn take(&self) -> Vec<T> {
        loop {
            let taken = std::mem::take(&mut *lock(&self.things));
            if !taken.is_empty() {
                return taken.into_iter().collect();
            }
            self.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::NodeId;

    #[tokio::test]
    async fn a_node_is_taken_once_however_often_it_was_noted() {
        let noted = Noted::default();
        [1, 2, 1].map(NodeId).into_iter().for_each(|node| noted.add(node));
        assert_eq!(noted.take().await, [1, 2].map(NodeId));
        let (taken, ()) = tokio::join!(noted.take(), async { noted.add(NodeId(1)) });
        assert_eq!(taken, [NodeId(1)]);
    }

    #[tokio::test]
    async fn what_nobody_takes_is_bounded() {
        let noted = Noted::default();
        (0..3 * NOTED_MAX).for_each(|thing| noted.add(thing));
        assert_eq!(noted.take().await.len(), NOTED_MAX);
    }
}
