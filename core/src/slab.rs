//! A table of values named by small numbers, in pages.
//!
//! A queue of a million tasks must cost what the tasks cost and nothing when they are gone; a `Vec` that
//! doubles would hold twice that at its peak and all of it for ever. Pages that have emptied are kept for
//! whatever comes next until somebody calls [`Slab::trim`]: fresh memory is slow, the system clears it first.

use std::ops::{Index, IndexMut};

const PAGE: usize = 512;
const NONE: u32 = u32::MAX;

/// Values by number. Numbers of removed values are used again, lowest pages first.
#[derive(Debug)]
pub struct Slab<T> {
    pages: Vec<Option<Box<Page<T>>>>,
    /// Pages with room; the last is tried first. May hold pages that have filled up since.
    roomy: Vec<u32>,
    /// Pages that have emptied.
    #[allow(clippy::vec_box, reason = "pages go to and fro between the lists without being copied")]
    spare: Vec<Box<Page<T>>>,
    len: usize,
}

#[derive(Debug)]
struct Page<T> {
    cells: Vec<Cell<T>>,
    free: u32,
    live: u32,
}

#[derive(Debug)]
enum Cell<T> {
    Live(T),
    Free { next: u32 },
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), roomy: Vec::new(), spare: Vec::new(), len: 0 }
    }
}

impl<T> Slab<T> {
    /// Values in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a value and returns its number.
    pub fn insert(&mut self, value: T) -> u32 {
        let page_index = self.page_with_room();
        let spare = &mut self.spare;
        let page = self.pages[page_index]
            .get_or_insert_with(|| spare.pop().unwrap_or_else(|| Box::new(Page::new())));
        let cell = page.insert(value);
        if page.live as usize == PAGE {
            self.roomy.pop();
        }
        self.len += 1;
        (page_index * PAGE + cell as usize) as u32
    }

    /// Removes the value of a number and gives the number back.
    pub fn remove(&mut self, number: u32) -> Option<T> {
        let (page_index, cell) = (number as usize / PAGE, number as usize % PAGE);
        let slot = self.pages.get_mut(page_index)?;
        let page = slot.as_mut()?;
        let was_full = page.live as usize == PAGE;
        let value = page.remove(cell)?;
        self.len -= 1;
        if page.live == 0 {
            page.clear();
            self.spare.extend(slot.take());
        }
        if was_full {
            self.roomy.push(page_index as u32);
        }
        if self.len == 0 {
            self.pages.clear();
            self.roomy.clear();
        }
        Some(value)
    }

    /// Gives up to `count` pages back that hold nothing; true if there were more.
    pub fn trim(&mut self, count: usize) -> bool {
        let kept = self.spare.len().saturating_sub(count);
        self.spare.truncate(kept);
        if self.is_empty() && kept == 0 {
            *self = Self::default();
        }
        0 < kept
    }

    /// Whether [`Slab::trim`] would give anything back.
    #[must_use]
    pub fn has_spare(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Reads the value of a number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&T> {
        match self.pages.get(number as usize / PAGE)?.as_ref()?.cells.get(number as usize % PAGE)? {
            Cell::Live(value) => Some(value),
            Cell::Free { .. } => None,
        }
    }

    /// Gives the value of a number to change it.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        match self.pages.get_mut(number as usize / PAGE)?.as_mut()?.cells.get_mut(number as usize % PAGE)? {
            Cell::Live(value) => Some(value),
            Cell::Free { .. } => None,
        }
    }

    /// All values with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.pages.iter().enumerate().filter_map(|(i, page)| Some((i, page.as_ref()?))).flat_map(
            |(i, page)| {
                page.cells.iter().enumerate().filter_map(move |(k, cell)| match cell {
                    Cell::Live(value) => Some(((i * PAGE + k) as u32, value)),
                    Cell::Free { .. } => None,
                })
            },
        )
    }

    fn page_with_room(&mut self) -> usize {
        // A page that emptied entirely is `None` but still listed once if it was full before.
        while let Some(&page) = self.roomy.last() {
            match &self.pages[page as usize] {
                Some(p) if p.live as usize == PAGE => self.roomy.pop(),
                _ => return page as usize,
            };
        }
        let reuse = self.pages.iter().position(Option::is_none);
        let page = reuse.unwrap_or_else(|| {
            self.pages.push(None);
            self.pages.len() - 1
        });
        self.roomy.push(page as u32);
        page
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    /// The value of a number that the caller got from [`Slab::insert`] and has not removed.
    #[allow(
        clippy::expect_used,
        reason = "a number without a value is a mistake of the caller, as an index beyond a slice is"
    )]
    fn index(&self, number: u32) -> &T {
        self.get(number).expect("the number has a value")
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[allow(clippy::expect_used, reason = "as for `index`")]
    fn index_mut(&mut self, number: u32) -> &mut T {
        self.get_mut(number).expect("the number has a value")
    }
}

impl<T> Page<T> {
    fn new() -> Self {
        Self { cells: Vec::with_capacity(PAGE), free: NONE, live: 0 }
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.free = NONE;
    }

    fn insert(&mut self, value: T) -> u32 {
        self.live += 1;
        if self.free == NONE {
            self.cells.push(Cell::Live(value));
            return (self.cells.len() - 1) as u32;
        }
        let at = self.free;
        let cell = &mut self.cells[at as usize];
        if let Cell::Free { next } = *cell {
            self.free = next;
        }
        *cell = Cell::Live(value);
        at
    }

    fn remove(&mut self, at: usize) -> Option<T> {
        let cell = self.cells.get_mut(at)?;
        if matches!(cell, Cell::Free { .. }) {
            return None;
        }
        let old = std::mem::replace(cell, Cell::Free { next: self.free });
        self.free = at as u32;
        self.live -= 1;
        match old {
            Cell::Live(value) => Some(value),
            Cell::Free { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_like_a_map(ops in proptest::collection::vec((any::<bool>(), 0usize..2000), 0..3000)) {
            let mut slab = Slab::default();
            let mut model = BTreeMap::new();
            for (insert, n) in ops {
                if insert {
                    let number = slab.insert(n);
                    prop_assert!(model.insert(number, n).is_none());
                } else if let Some(&number) = model.keys().nth(n % model.len().max(1)) {
                    prop_assert_eq!(slab.remove(number), model.remove(&number));
                    prop_assert_eq!(slab.remove(number), None);
                }
                prop_assert_eq!(slab.len(), model.len());
            }
            prop_assert!(slab.iter().map(|(k, v)| (k, *v)).eq(model.into_iter()));
        }
    }

    #[test]
    fn empty_pages_are_given_back() {
        let mut slab = Slab::default();
        let numbers: Vec<_> = (0..10 * PAGE).map(|i| slab.insert(i)).collect();
        for n in &numbers[PAGE..] {
            slab.remove(*n);
        }
        assert_eq!((slab.pages.iter().flatten().count(), slab.spare.len()), (1, 9));
        assert!(slab.trim(4));
        assert!(!slab.trim(5));
        for n in &numbers[..PAGE] {
            slab.remove(*n);
        }
        assert!(slab.pages.is_empty() && slab.has_spare());
        assert!(!slab.trim(1) && !slab.has_spare());
    }

    #[test]
    fn emptied_pages_are_used_again() {
        let mut slab = Slab::default();
        for round in 0..3 {
            let numbers: Vec<_> = (0..3 * PAGE).map(|i| slab.insert((round, i))).collect();
            assert!(slab.spare.is_empty());
            for (i, n) in numbers.iter().enumerate() {
                assert_eq!(slab.remove(*n), Some((round, i)));
            }
            assert_eq!(slab.spare.len(), 3);
        }
    }
}
