//! Names of actors and placement groups: in the control store or, for a node without one, in the node.

use crate::inbox::{Inbox, Input};
use crate::registry::{Registry, lock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tharsis_protos::handshake::{
    NAMES_PAGE_BYTES, NAMES_PAGE_MAX, NameAct, NameKey, NameKind, NameQuestion, Named,
};
use tharsis_types::{Failure, ObjectId};
use tokio::sync::oneshot;

/// Names that are claimed before it is looked which of all have ended; at least half of the names.
const CLAIMS_PER_LOOK: usize = 256;
/// The time for which what has a name may be unknown: its constructor is submitted after the claim.
const SUBMIT_WAIT: Duration = Duration::from_secs(30);

/// Answers questions about names.
pub type Names = Arc<dyn Fn(NameQuestion) -> Result<Named, Failure> + Send + Sync>;

/// Names of a node that has no control store, by namespace. Jobs of one namespace share them. Those of what
/// has ended are removed as others are claimed.
#[derive(Debug, Default)]
pub struct OwnNames(Mutex<Claimed>);

#[derive(Debug, Default)]
struct Claimed {
    names: Table,
    /// Claims since the last look.
    claims: usize,
    look: Option<Look>,
}

type Table = BTreeMap<Key, OwnName>;
type Key = (NameKind, NameKey);

#[derive(Debug)]
struct OwnName {
    record: Vec<u8>,
    object: ObjectId,
    at: Instant,
}

/// The loop of the node was asked which of these have ended.
#[derive(Debug)]
struct Look {
    of: Vec<(Key, ObjectId)>,
    answer: oneshot::Receiver<Vec<bool>>,
}

impl Claimed {
    /// Removes names of what has ended, as far as the answer to the last look is there, and looks again after
    /// many claims. Nobody waits for an answer: it is taken at one of the next claims.
    fn free_ended(&mut self, age: Duration, inbox: &Inbox) {
        if let Some(look) = &mut self.look {
            match look.answer.try_recv() {
                Ok(are_over) => {
                    for ((key, object), _) in look.of.drain(..).zip(are_over).filter(|(_, is_over)| *is_over)
                    {
                        // Another one may have taken the name over.
                        if self.names.get(&key).is_some_and(|name| name.object == object) {
                            self.names.remove(&key);
                        }
                    }
                }
                Err(oneshot::error::TryRecvError::Empty) => return,
                // The node stops.
                Err(oneshot::error::TryRecvError::Closed) => {}
            }
            self.look = None;
        }
        if self.claims < CLAIMS_PER_LOOK.max(self.names.len() / 2) {
            return;
        }
        self.claims = 0;
        let old = self.names.iter().filter(|(_, name)| age <= name.at.elapsed());
        let of: Vec<_> = old.map(|(key, name)| (key.clone(), name.object)).collect();
        if of.is_empty() {
            return;
        }
        let (reply, answer) = oneshot::channel();
        inbox.put(Input::AreOver { objects: of.iter().map(|(_, object)| *object).collect(), reply });
        self.look = Some(Look { of, answer });
    }
}

impl OwnNames {
    /// Finds or claims a name in a namespace, or lists the names. The loop behind `inbox` is asked now and
    /// then which of those that have names have ended.
    #[must_use]
    pub fn answer(&self, namespace: &str, question: NameQuestion, inbox: &Inbox) -> Named {
        let claimed = &mut *lock(&self.0);
        let NameQuestion { kind, name, act, .. } = question;
        let key = (kind, NameKey { namespace: namespace.to_owned(), name });
        if matches!(act, NameAct::Claim { .. }) {
            claimed.claims += 1;
            claimed.free_ended(SUBMIT_WAIT, inbox);
        }
        let names = &mut claimed.names;
        let there = names.get(&key).map(|name| &name.record);
        match act {
            NameAct::Find => match there {
                Some(record) => Named::Is(record.clone()),
                None => {
                    let alike = names.keys().filter(|(of, key)| *of == kind && key.namespace == namespace);
                    Named::Missing { nearest: nearest(&key.1.name, alike.map(|(_, key)| key.name.as_str())) }
                }
            },
            NameAct::Claim { record, object, over } => match there {
                Some(there) if over.as_ref() != Some(there) && *there != record => Named::Is(there.clone()),
                Some(_) | None => {
                    names.insert(key, OwnName { record, object, at: Instant::now() });
                    Named::Claimed
                }
            },
            NameAct::List { is_of_all, after } => page(names, kind, (!is_of_all).then_some(namespace), after),
        }
    }
}

/// The names of a kind that follow one, of a namespace or of all.
fn page(names: &Table, kind: NameKind, namespace: Option<&str>, after: Option<NameKey>) -> Named {
    let begin = || {
        let namespace = namespace.unwrap_or_default().to_owned();
        Bound::Included((kind, NameKey { namespace, name: String::new() }))
    };
    let from = after.map_or_else(begin, |after| Bound::Excluded((kind, after)));
    let is_wanted = |key: &NameKey| namespace.is_none_or(|wanted| key.namespace == wanted);
    let rest = names.range((from, Bound::Unbounded));
    let mut rest = rest.take_while(|((of, key), _)| *of == kind && is_wanted(key)).peekable();
    let (mut page, mut bytes) = (Vec::new(), 0);
    while page.len() < NAMES_PAGE_MAX
        && bytes < NAMES_PAGE_BYTES
        && let Some(((_, key), name)) = rest.next()
    {
        bytes += name.record.len();
        page.push((key.clone(), name.record.clone()));
    }
    Named::Page { names: page, more: rest.peek().is_some() }
}

/// Answers questions about names for a node without a control store.
#[must_use]
pub fn own_names(names: &Arc<OwnNames>, registry: &Arc<Registry>, inbox: &Arc<Inbox>) -> Names {
    let (names, registry, inbox) = (Arc::clone(names), Arc::clone(registry), Arc::clone(inbox));
    Arc::new(move |question| {
        // The job of an embedded node is the only one there.
        let namespace = registry.job(question.job).map(|job| job.namespace).unwrap_or_default();
        Ok(names.answer(&namespace, question, &inbox))
    })
}

/// Names that are compared with one that is unknown. Each new name is unknown at first, and a program may
/// have made any number before.
pub(crate) const COMPARED_MAX: usize = 256;

/// The name that was probably meant: the one with the fewest different letters, if most are the same. Of many
/// known ones only the first are looked at.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let close = known.take(COMPARED_MAX).map(|other| (distance(name, other), other)).min()?;
    (2 * close.0 <= name.chars().count()).then(|| close.1.to_owned())
}

/// Number of letters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_object_store::{BellBoard, Segment, bell::BELL_BOARD_BYTES};
    use tharsis_types::{JobId, TaskId};

    fn inbox() -> Inbox {
        let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
        Inbox::new(BellBoard::at(&segment, 0).unwrap())
    }

    fn ask(names: &OwnNames, name: &str, act: NameAct) -> Named {
        let question = NameQuestion { job: JobId(1), kind: NameKind::Actor, name: name.to_owned(), act };
        names.answer("", question, &inbox())
    }

    #[test]
    fn names_of_what_has_ended_are_removed_as_others_are_claimed() {
        let (names, inbox) = (OwnNames::default(), inbox());
        let object = |number| ObjectId::output(TaskId::root(JobId(1)).child(number), 0);
        let claim = |name: u64, number: u64, over: Option<u64>| {
            let (record, over) =
                (number.to_le_bytes().to_vec(), over.map(|over| over.to_le_bytes().to_vec()));
            let act = NameAct::Claim { record, object: object(number), over };
            let question = NameQuestion { job: JobId(1), kind: NameKind::Actor, name: name.to_string(), act };
            assert_eq!(names.answer("", question, &inbox), Named::Claimed);
        };
        let look = |age| lock(&names.0).free_ended(age, &inbox);
        for number in 0..CLAIMS_PER_LOOK as u64 - 1 {
            claim(number, number, None);
        }
        look(Duration::ZERO);
        assert!(inbox.take().is_none(), "not after each claim");
        claim(1, 1001, Some(1));
        assert!(inbox.take().is_none(), "they may not be submitted yet");
        lock(&names.0).claims = CLAIMS_PER_LOOK;
        look(Duration::ZERO);
        let Some(Input::AreOver { objects, reply }) = inbox.take() else { panic!("no look") };
        assert_eq!(objects.len(), CLAIMS_PER_LOOK - 1);
        // One is taken over before the answer is there, and all but three have ended.
        claim(2, 1002, Some(2));
        let lives = [object(0), object(7), object(1001)];
        reply.send(objects.iter().map(|object| !lives.contains(object)).collect()).unwrap();
        look(Duration::ZERO);
        let left: Vec<_> = lock(&names.0).names.values().map(|name| name.object).collect();
        assert_eq!(left, [object(0), object(1001), object(1002), object(7)]);
        assert!(inbox.take().is_none());
    }

    fn claim(record: u8, over: Option<u8>) -> NameAct {
        let object = ObjectId::output(TaskId::root(JobId(1)), 0);
        NameAct::Claim { record: vec![record], object, over: over.map(|old| vec![old]) }
    }

    #[test]
    fn a_name_is_claimed_once_and_taken_over_by_one_who_knows_what_it_was() {
        let names = OwnNames::default();
        assert_eq!(ask(&names, "counter", claim(1, None)), Named::Claimed);
        assert_eq!(ask(&names, "counter", claim(1, None)), Named::Claimed, "asked again");
        assert_eq!(ask(&names, "counter", claim(2, None)), Named::Is(vec![1]));
        assert_eq!(ask(&names, "counter", claim(3, Some(1))), Named::Claimed);
        assert_eq!(ask(&names, "counter", claim(4, Some(1))), Named::Is(vec![3]));
        assert_eq!(ask(&names, "counter", NameAct::Find), Named::Is(vec![3]));
        let of_group = NameQuestion {
            job: JobId(1),
            kind: NameKind::Group,
            name: "counter".to_owned(),
            act: NameAct::Find,
        };
        let nothing = Named::Missing { nearest: None };
        assert_eq!(names.answer("", of_group, &inbox()), nothing, "groups have names of their own");
        let question = |name: &str, act| NameQuestion {
            job: JobId(2),
            kind: NameKind::Actor,
            name: name.to_owned(),
            act,
        };
        let elsewhere = names.answer("other", question("counter", NameAct::Find), &inbox());
        assert_eq!(elsewhere, nothing, "each namespace has names of its own");
        let claimed = names.answer("other", question("counter", claim(5, None)), &inbox());
        assert_eq!(claimed, Named::Claimed);
        assert_eq!(ask(&names, "counter", NameAct::Find), Named::Is(vec![3]));
        let missing = Named::Missing { nearest: Some("counter".to_owned()) };
        assert_eq!(ask(&names, "cuonter", NameAct::Find), missing);
    }

    #[test]
    fn names_are_listed_page_by_page_of_one_namespace_or_of_all() {
        let (names, inbox) = (OwnNames::default(), inbox());
        let question = |act, name: String| NameQuestion { job: JobId(1), kind: NameKind::Actor, name, act };
        let count = NAMES_PAGE_MAX + 3;
        for n in 0..count {
            let claimed = names.answer("a", question(claim(1, None), format!("n{n:04}")), &inbox);
            assert_eq!(claimed, Named::Claimed);
        }
        let claimed = names.answer("b", question(claim(2, None), "other".to_owned()), &inbox);
        assert_eq!(claimed, Named::Claimed);
        let group = NameQuestion { kind: NameKind::Group, ..question(claim(3, None), "group".to_owned()) };
        assert_eq!(names.answer("a", group, &inbox), Named::Claimed);
        let all = |is_of_all| {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let asked = question(NameAct::List { is_of_all, after }, String::new());
                let Named::Page { names: page, more } = names.answer("a", asked, &inbox) else {
                    panic!("no page")
                };
                assert!(page.len() <= NAMES_PAGE_MAX);
                after = page.last().map(|(key, _)| key.clone());
                found.extend(page.into_iter().map(|(key, _)| format!("{}/{}", key.namespace, key.name)));
                if !more {
                    return found;
                }
            }
        };
        let own: Vec<_> = (0..count).map(|n| format!("a/n{n:04}")).collect();
        assert_eq!(all(false), own);
        assert_eq!(all(true), [own, vec!["b/other".to_owned()]].concat());
    }

    #[test]
    fn a_name_is_near_another_if_most_letters_are_the_same() {
        let near = |name: &str| nearest(name, ["counter", "front", "back"].into_iter());
        assert_eq!(near("countr").as_deref(), Some("counter"));
        assert_eq!(near("fornt").as_deref(), Some("front"));
        assert_eq!(near("zebra"), None);
        assert_eq!(nearest("a", std::iter::empty()), None);
        let looked_at = std::cell::Cell::new(0);
        let many = std::iter::repeat_n("counter", 1_000_000).inspect(|_| looked_at.set(looked_at.get() + 1));
        assert_eq!(nearest("countr", many).as_deref(), Some("counter"));
        assert_eq!(looked_at.get(), COMPARED_MAX, "however many there are");
    }
}
