//! A table of values named by typed slots, in pages.
//!
//! A queue of a million tasks must take no more memory than its tasks, and none once they are gone. A `Vec`
//! that doubles would take twice that at its peak and never return it. Emptied pages are kept for later
//! values until [`Slab::trim`] is called: fresh memory is slow, because the system clears it first.
//!
//! A [`Slot`] names a value of one table type: the slot of a task cannot be given to the table of objects.
//! There are two ways to use it:
//! - `slab[slot]` where an invariant of this crate guarantees the value. A missing value breaks the
//!   invariant: the index panics, in release builds too, and names the type and the slot.
//! - [`Slab::get`] where the value may legitimately be gone: the number came from outside
//!   ([`Slot::from_number`]), or the value may have been removed since.
//!
//! A slot is reused after its value is removed. Code that keeps a slot longer than its value must compare
//! more than the slot.

use std::any::type_name;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

const PAGE: usize = 512;
const NONE: u32 = u32::MAX;
/// Maximum number of pages whose slots can be numbered.
const PAGES_MAX: usize = u32::MAX as usize / PAGE;
const _: () = assert!(size_of::<Option<Slot<u8>>>() == 4);

/// Values of up to this size are copied in place, larger ones by a call. Tables whose values come and go with
/// each task stay below it: two that were 8 bytes above cost a task 7 % of its time.
pub(crate) const COPIED_IN_PLACE_BYTES: usize = 128;

/// The name of a value in a [`Slab`]: four bytes, also as an `Option`.
pub struct Slot<T> {
    /// The number of the value, plus one.
    above: NonZeroU32,
    of: PhantomData<fn() -> T>,
}

/// Values by slot. Slots of removed values are used again, lowest pages first.
pub struct Slab<T> {
    pages: Vec<Option<Box<Page<T>>>>,
    /// Pages with room; the last is tried first. May hold pages that have filled up since.
    roomy: Vec<u32>,
    /// Pages that have emptied.
    #[allow(clippy::vec_box, reason = "pages go to and fro between the lists without being copied")]
    spare: Vec<Box<Page<T>>>,
    len: usize,
}

struct Page<T> {
    cells: Vec<Cell<T>>,
    free: u32,
    live: u32,
}

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

    /// Whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a value and returns its slot.
    pub fn insert(&mut self, value: T) -> Slot<T> {
        let page_index = self.page_with_room();
        let spare = &mut self.spare;
        let page = self.pages[page_index]
            .get_or_insert_with(|| spare.pop().unwrap_or_else(|| Box::new(Page::new())));
        let cell = page.insert(value);
        if page.live as usize == PAGE {
            self.roomy.pop();
        }
        self.len += 1;
        Slot::new((page_index * PAGE + cell as usize) as u32)
    }

    /// Removes a value, after which its slot may name another one; `None` if there is none.
    pub fn remove(&mut self, slot: Slot<T>) -> Option<T> {
        let (page_index, cell) = slot.place();
        let boxed = self.pages.get_mut(page_index)?;
        let page = boxed.as_mut()?;
        let was_full = page.live as usize == PAGE;
        let value = page.remove(cell)?;
        self.len -= 1;
        if page.live == 0 {
            page.clear();
            self.spare.extend(boxed.take());
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

    /// Removes the value of an own slot.
    ///
    /// # Panics
    ///
    /// If the slot has no value.
    pub fn take(&mut self, slot: Slot<T>) -> T {
        match self.remove(slot) {
            Some(value) => value,
            None => no_value(slot),
        }
    }

    /// Frees up to `count` empty pages; true if more remain.
    pub fn trim(&mut self, count: usize) -> bool {
        let kept = self.spare.len().saturating_sub(count);
        self.spare.truncate(kept);
        if self.is_empty() && kept == 0 {
            *self = Self::default();
        }
        0 < kept
    }

    /// Whether [`Slab::trim`] would free anything.
    #[must_use]
    pub fn has_spare(&self) -> bool {
        !self.spare.is_empty()
    }

    /// The value of a slot that may have none.
    #[must_use]
    pub fn get(&self, slot: Slot<T>) -> Option<&T> {
        let (page, cell) = slot.place();
        match self.pages.get(page)?.as_ref()?.cells.get(cell)? {
            Cell::Live(value) => Some(value),
            Cell::Free { .. } => None,
        }
    }

    /// The value of a slot that may have none, to change it.
    pub fn get_mut(&mut self, slot: Slot<T>) -> Option<&mut T> {
        let (page, cell) = slot.place();
        match self.pages.get_mut(page)?.as_mut()?.cells.get_mut(cell)? {
            Cell::Live(value) => Some(value),
            Cell::Free { .. } => None,
        }
    }

    /// All values with their slots, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot<T>, &T)> {
        self.pages.iter().enumerate().filter_map(|(i, page)| Some((i, page.as_ref()?))).flat_map(
            |(i, page)| {
                page.cells.iter().enumerate().filter_map(move |(k, cell)| match cell {
                    Cell::Live(value) => Some((Slot::new((i * PAGE + k) as u32), value)),
                    Cell::Free { .. } => None,
                })
            },
        )
    }

    /// The values of a page, as [`Slot::page`] numbers them, with their slots in order.
    pub fn page(&self, page: u32) -> impl Iterator<Item = (Slot<T>, &T)> {
        let first = page as usize * PAGE;
        let cells: &[Cell<T>] = match self.pages.get(page as usize) {
            Some(Some(page)) => &page.cells,
            Some(None) | None => &[],
        };
        cells.iter().enumerate().filter_map(move |(k, cell)| match cell {
            Cell::Live(value) => Some((Slot::new((first + k) as u32), value)),
            Cell::Free { .. } => None,
        })
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
            assert!(self.pages.len() < PAGES_MAX, "a table has more values than slots can name");
            self.pages.push(None);
            self.pages.len() - 1
        });
        self.roomy.push(page as u32);
        page
    }
}

impl<T> Index<Slot<T>> for Slab<T> {
    type Output = T;

    fn index(&self, slot: Slot<T>) -> &T {
        match self.get(slot) {
            Some(value) => value,
            None => no_value(slot),
        }
    }
}

impl<T> IndexMut<Slot<T>> for Slab<T> {
    fn index_mut(&mut self, slot: Slot<T>) -> &mut T {
        match self.get_mut(slot) {
            Some(value) => value,
            None => no_value(slot),
        }
    }
}

#[cold]
#[inline(never)]
#[track_caller]
#[allow(
    clippy::panic,
    reason = "an own slot without a value is a defect here, as an index beyond a slice is"
)]
fn no_value<T>(slot: Slot<T>) -> ! {
    panic!("{slot:?} has no value: an own slot was used after its value was removed")
}

impl<T> Slot<T> {
    fn new(number: u32) -> Self {
        Self { above: NonZeroU32::MIN.saturating_add(number), of: PhantomData }
    }

    /// The slot of a number that came from outside. It may have no value, or a different value than the
    /// sender meant.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self::new(number)
    }

    /// The number of the slot, for outside.
    #[must_use]
    pub fn number(self) -> u32 {
        self.above.get() - 1
    }

    /// The number of the page of its table in which the value lies.
    #[must_use]
    pub fn page(self) -> u32 {
        self.number() / PAGE as u32
    }

    /// Page, and cell in it.
    fn place(self) -> (usize, usize) {
        let number = self.number() as usize;
        (number / PAGE, number % PAGE)
    }
}

// Derived implementations would require the same traits of `T`.

impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slot<T> {}

impl<T> PartialEq for Slot<T> {
    fn eq(&self, other: &Self) -> bool {
        self.above == other.above
    }
}

impl<T> Eq for Slot<T> {}

impl<T> PartialOrd for Slot<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Slot<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.above.cmp(&other.above)
    }
}

impl<T> Hash for Slot<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number().hash(state);
    }
}

/// With its values only: how full a table once was is no state of the machine that has it.
impl<T: fmt::Debug> fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<T> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = type_name::<T>();
        let short = name.rsplit("::").next().unwrap_or(name);
        write!(f, "{short} slot {}", self.number())
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
            let by_page = (0..8).flat_map(|page| slab.page(page).filter(move |(slot, _)| slot.page() == page));
            prop_assert!(by_page.eq(slab.iter()));
            prop_assert!(slab.iter().map(|(k, v)| (k, *v)).eq(model.into_iter()));
        }
    }

    #[test]
    #[should_panic(expected = "u8 slot 1 has no value")]
    fn an_index_without_a_value_panics() {
        let mut slab: Slab<u8> = Slab::default();
        let (_, gone) = (slab.insert(1), slab.insert(2));
        assert_eq!(slab.take(gone), 2);
        assert_eq!(slab.get(gone), None);
        assert_eq!(slab.get_mut(gone), None);
        assert_eq!(slab.remove(gone), None);
        slab[gone] = 3;
    }

    #[test]
    fn numbers_from_outside_name_nothing_or_the_value_that_is_there() {
        let mut slab: Slab<u8> = Slab::default();
        let slot = slab.insert(7);
        assert_eq!(slab.get(Slot::from_number(slot.number())), Some(&7));
        for number in [1, 511, 512, u32::MAX - 1, u32::MAX] {
            assert_eq!(slab.get(Slot::from_number(number)), None);
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
