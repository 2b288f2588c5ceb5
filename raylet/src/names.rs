//! Names of actors and placement groups: in the control store or, for a node without one, in the node.

use crate::registry::{Registry, lock};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use tharsis_protos::handshake::{
    NAMES_PAGE_BYTES, NAMES_PAGE_MAX, NameAct, NameKey, NameKind, NameQuestion, Named,
};
use tharsis_types::Failure;

/// Answers questions about names.
pub type Names = Arc<dyn Fn(NameQuestion) -> Result<Named, Failure> + Send + Sync>;

/// Names of a node that has no control store, by namespace. Jobs of one namespace share them.
#[derive(Debug, Default)]
pub struct OwnNames(Mutex<Table>);

type Table = BTreeMap<(NameKind, NameKey), Vec<u8>>;

impl OwnNames {
    /// Finds or claims a name in a namespace, or lists the names.
    #[must_use]
    pub fn answer(&self, namespace: &str, question: NameQuestion) -> Named {
        let mut names = lock(&self.0);
        let NameQuestion { kind, name, act, .. } = question;
        let key = (kind, NameKey { namespace: namespace.to_owned(), name });
        let there = names.get(&key);
        match act {
            NameAct::Find => match there {
                Some(record) => Named::Is(record.clone()),
                None => {
                    let alike = names.keys().filter(|(of, key)| *of == kind && key.namespace == namespace);
                    Named::Missing { nearest: nearest(&key.1.name, alike.map(|(_, key)| key.name.as_str())) }
                }
            },
            NameAct::Claim { record, over, .. } => match there {
                Some(there) if over.as_ref() != Some(there) && *there != record => Named::Is(there.clone()),
                Some(_) | None => {
                    names.insert(key, record);
                    Named::Claimed
                }
            },
            NameAct::List { is_of_all, after } => {
                page(&names, kind, (!is_of_all).then_some(namespace), after)
            }
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
        && let Some(((_, key), record)) = rest.next()
    {
        bytes += record.len();
        page.push((key.clone(), record.clone()));
    }
    Named::Page { names: page, more: rest.peek().is_some() }
}

/// Answers questions about names for a node without a control store.
#[must_use]
pub fn own_names(names: &Arc<OwnNames>, registry: &Arc<Registry>) -> Names {
    let (names, registry) = (Arc::clone(names), Arc::clone(registry));
    Arc::new(move |question| {
        // The job of an embedded node is the only one there.
        let namespace = registry.job(question.job).map(|job| job.namespace).unwrap_or_default();
        Ok(names.answer(&namespace, question))
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
    use tharsis_types::{JobId, ObjectId, TaskId};

    fn ask(names: &OwnNames, name: &str, act: NameAct) -> Named {
        names.answer("", NameQuestion { job: JobId(1), kind: NameKind::Actor, name: name.to_owned(), act })
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
        assert_eq!(
            names.answer("", of_group),
            Named::Missing { nearest: None },
            "groups have names of their own"
        );
        let question = |name: &str, act| NameQuestion {
            job: JobId(2),
            kind: NameKind::Actor,
            name: name.to_owned(),
            act,
        };
        let elsewhere = names.answer("other", question("counter", NameAct::Find));
        assert_eq!(elsewhere, Named::Missing { nearest: None }, "each namespace has names of its own");
        assert_eq!(names.answer("other", question("counter", claim(5, None))), Named::Claimed);
        assert_eq!(ask(&names, "counter", NameAct::Find), Named::Is(vec![3]));
        let missing = Named::Missing { nearest: Some("counter".to_owned()) };
        assert_eq!(ask(&names, "cuonter", NameAct::Find), missing);
    }

    #[test]
    fn names_are_listed_page_by_page_of_one_namespace_or_of_all() {
        let names = OwnNames::default();
        let question = |act, name: String| NameQuestion { job: JobId(1), kind: NameKind::Actor, name, act };
        let count = NAMES_PAGE_MAX + 3;
        for n in 0..count {
            let claimed = names.answer("a", question(claim(1, None), format!("n{n:04}")));
            assert_eq!(claimed, Named::Claimed);
        }
        let claimed = names.answer("b", question(claim(2, None), "other".to_owned()));
        assert_eq!(claimed, Named::Claimed);
        let group = NameQuestion { kind: NameKind::Group, ..question(claim(3, None), "group".to_owned()) };
        assert_eq!(names.answer("a", group), Named::Claimed);
        let all = |is_of_all| {
            let (mut found, mut after) = (Vec::new(), None);
            loop {
                let Named::Page { names: page, more } =
                    names.answer("a", question(NameAct::List { is_of_all, after }, String::new()))
                else {
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
