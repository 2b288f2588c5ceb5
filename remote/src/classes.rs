//! Task classes that a client has defined, by the properties that the calls of a class share.
//!
//! Calls with options of their own may be of any number of classes: a program that names the memory of each
//! call makes one for each amount. Of these a client keeps [`OWN_MAX`]. The number of another one is given to
//! a new class, which is defined in its place. The node takes records in the order in which they were sent,
//! so a number means for a call what it meant when the call was sent. A thread that has looked up a class and
//! has not sent its call yet has a [`ClassUse`]: the number of such a class stays what it is.

use crate::error::Result;
use crate::options::Options;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Classes of calls with options of their own that are kept.
const OWN_MAX: usize = 1024;
/// Classes that are looked at for each new one if there are too many. They may all be in use: a graph uses
/// those of its tasks until it is submitted.
const LOOKS_MAX: usize = 8;
/// Classes that are forgotten for each new one: more than one, so that the number falls after a graph.
const FORGOTTEN_MAX: usize = 2;

/// The classes of a client.
#[derive(Default)]
pub(crate) struct Classes {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    known: HashMap<Arc<ClassKey>, Known>,
    /// Those with options of their own. The first is the next to go, unless it was used since it came to the
    /// front, or is in use.
    own: VecDeque<Arc<ClassKey>>,
    /// Numbers below `next` that no class has.
    free: Vec<u32>,
    next: u32,
    /// Classes that were looked at to be forgotten, for a test.
    #[cfg(test)]
    looks: usize,
}

struct Known {
    number: u32,
    /// Whether it was looked up since it was looked at.
    was_used: bool,
    /// Shared with each [`ClassUse`].
    uses: Arc<()>,
}

/// Addresses of the definition and of the call site, and the options of the call if it has its own.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct ClassKey {
    pub(crate) definition: usize,
    pub(crate) site: usize,
    pub(crate) options: Option<Options>,
}

/// A class that is in use: its number means nothing else until this is dropped.
pub(crate) struct ClassUse {
    number: u32,
    _use: Option<Arc<()>>,
}

impl ClassUse {
    /// A class without options of its own, which keeps its number.
    pub(crate) fn plain(number: u32) -> Self {
        Self { number, _use: None }
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Classes {
    /// The class of a key, whose call is about to be sent. For a new class, `define` sends its definition.
    ///
    /// # Errors
    /// Errors of `define`; the class then stays new.
    pub(crate) fn class(
        &self,
        key: ClassKey,
        define: impl FnOnce(&ClassKey, u32) -> Result<()>,
    ) -> Result<ClassUse> {
        // Held while the definition is sent, so that no thread uses a number that the node does not know.
        let mut table = self.table.lock();
        if let Some(known) = table.known.get_mut(&key) {
            known.was_used = true;
            let class = ClassUse { number: known.number, _use: Some(Arc::clone(&known.uses)) };
            // A program may have used many classes once, and none but known ones since.
            if OWN_MAX < table.own.len() {
                table.forget_some(1);
            }
            return Ok(class);
        }
        let number = table.take_number();
        if let Err(error) = define(&key, number) {
            table.free.push(number);
            return Err(error);
        }
        let (key, uses) = (Arc::new(key), Arc::new(()));
        if key.options.is_some() {
            table.own.push_back(Arc::clone(&key));
        }
        table.known.insert(key, Known { number, was_used: false, uses: Arc::clone(&uses) });
        Ok(ClassUse { number, _use: Some(uses) })
    }
}

impl Table {
    /// A number that no class has.
    fn take_number(&mut self) -> u32 {
        self.forget_some(LOOKS_MAX);
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Looks at a few classes if there are too many, and forgets those that were not used for long and are
    /// not in use, [`FORGOTTEN_MAX`] at most. If all are in use, there are more for a while.
    fn forget_some(&mut self, looks: usize) {
        let mut forgotten = 0;
        for _ in 0..looks {
            if self.own.len() < OWN_MAX || forgotten == FORGOTTEN_MAX {
                return;
            }
            let Some(key) = self.own.pop_front() else { return };
            self.count_look();
            let Some(known) = self.known.get_mut(&key) else { continue };
            // That nobody else has it is seen with all that was sent before the last use was dropped.
            if std::mem::take(&mut known.was_used) || Arc::get_mut(&mut known.uses).is_none() {
                self.own.push_back(key);
                continue;
            }
            let number = known.number;
            self.known.remove(&key);
            self.free.push(number);
            forgotten += 1;
        }
    }

    fn count_look(&mut self) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::collections::BTreeMap;

    /// The meaning that each number has for the node.
    #[derive(Default)]
    struct Told(BTreeMap<u32, u64>);

    fn key(amount: u64) -> ClassKey {
        ClassKey { definition: 1, site: 2, options: Some(Options::default().memory_bytes(amount)) }
    }

    fn look_up(classes: &Classes, told: &mut Told, amount: u64) -> ClassUse {
        let class = classes.class(key(amount), |_, number| {
            told.0.insert(number, amount);
            Ok(())
        });
        let class = class.unwrap();
        assert_eq!(told.0[&class.number()], amount, "the node takes the number for another class");
        class
    }

    #[test]
    fn amounts_that_never_come_again_do_not_add_up() {
        let (classes, mut told) = (Classes::default(), Told::default());
        let plain = || ClassKey { definition: 1, site: 2, options: None };
        let first = classes.class(plain(), |_, _| Ok(())).unwrap().number();
        for amount in 0..20 * OWN_MAX as u64 {
            drop(look_up(&classes, &mut told, amount));
            // One that is called all the time stays.
            drop(look_up(&classes, &mut told, 3));
        }
        assert!(told.0.len() <= OWN_MAX + 1, "{} numbers", told.0.len());
        assert_eq!(classes.table.lock().known.len(), OWN_MAX + 1);
        let again = classes.class(plain(), |_, _| panic!("it is known"));
        assert_eq!(again.unwrap().number(), first);
        assert!(!told.0.contains_key(&first));
    }

    #[test]
    fn the_number_of_a_class_that_is_in_use_stays_what_it_is() {
        let (classes, mut told) = (Classes::default(), Told::default());
        let uses: Vec<_> = (0..10).map(|amount| look_up(&classes, &mut told, amount)).collect();
        for amount in 10..5 * OWN_MAX as u64 {
            drop(look_up(&classes, &mut told, amount));
        }
        for (amount, class) in uses.iter().enumerate() {
            assert_eq!(told.0[&class.number()], amount as u64);
        }
        // Even if all are: then there are more.
        let all: Vec<_> = (0..2 * OWN_MAX as u64).map(|n| look_up(&classes, &mut told, n << 32)).collect();
        for (amount, class) in all.iter().enumerate() {
            assert_eq!(told.0[&class.number()], (amount as u64) << 32);
        }
    }

    #[test]
    fn a_new_class_costs_the_same_however_many_are_in_use() {
        const COUNT: u64 = 20_000;
        let (classes, mut told) = (Classes::default(), Told::default());
        let uses: Vec<_> = (0..COUNT).map(|amount| look_up(&classes, &mut told, amount)).collect();
        let looks = classes.table.lock().looks;
        assert!(looks <= COUNT as usize * LOOKS_MAX, "{looks} looks at {COUNT} classes");
        drop(uses);
        (COUNT..3 * COUNT).for_each(|amount| drop(look_up(&classes, &mut told, amount)));
        let left = classes.table.lock().own.len();
        assert!(left <= OWN_MAX, "{left} are left when nothing is in use");
    }

    #[test]
    fn classes_of_a_graph_go_while_known_ones_are_used() {
        let (classes, mut told) = (Classes::default(), Told::default());
        let uses: Vec<_> = (0..20_000).map(|amount| look_up(&classes, &mut told, amount)).collect();
        drop(uses);
        (0..20_000).for_each(|_| drop(look_up(&classes, &mut told, 7)));
        let left = classes.table.lock().own.len();
        assert!(left <= OWN_MAX, "{left} are left");
    }

    #[test]
    fn a_number_whose_definition_was_not_sent_is_used_again() {
        let (classes, mut told) = (Classes::default(), Told::default());
        for amount in 0..3 * OWN_MAX as u64 {
            let refused = classes.class(key(amount), |_, _| Err(Error::argument("refused")));
            assert!(refused.is_err());
        }
        assert_eq!(look_up(&classes, &mut told, 1).number(), 0);
    }
}
