//! Fills registers from strided inputs and from functions of the index.

use super::chain::{IndexSource, store_run};
use crate::chunk::{Buffer, Chunk};
use crate::cpu::{self, Kernel};
use crate::element::{Element, with_words};
use crate::layout::{Layout, Run};
use crate::program::IndexMap;
use crate::random::{Key, SPAN_FAST, below, evenly_below, open_unit};

/// Gathers the elements `start..end` of a strided chunk, counted in C order.
pub(super) fn gather(chunk: &Chunk, layout: &Layout, start: usize, end: usize, out: &mut Buffer) {
    with_words!(chunk.dtype(), T => gather_words::<T>(chunk, layout, start, end, out));
}

fn gather_words<T: Element>(chunk: &Chunk, layout: &Layout, start: usize, end: usize, out: &mut Buffer) {
    let from = chunk.buffer().elements::<T>();
    let out = out.elements_mut::<T>();
    let mut at = 0;
    layout.for_each_run(start, end, |Run { offset, stride, len }| {
        let to = &mut out[at..at + len];
        match stride {
            0 => to.fill(from[offset as usize]),
            1 => to.copy_from_slice(&from[offset as usize..offset as usize + len]),
            _ => {
                for (i, element) in to.iter_mut().enumerate() {
                    *element = from[(offset + i as i64 * stride) as usize];
                }
            }
        }
        at += len;
    });
}

/// Computes a function of the index for the elements `start..end`, counted in C order.
pub(super) fn index(map: IndexMap, layout: &Layout, start: usize, end: usize, out: &mut Buffer) {
    let mut at = 0;
    layout.for_each_run(start, end, |run| {
        index_run(map, run, at, out);
        at += run.len;
    });
}

fn index_run(map: IndexMap, run: Run, at: usize, out: &mut Buffer) {
    let range = at..at + run.len;
    match map {
        IndexMap::Position => cpu::dispatch(Fill { run, out: &mut out.elements_mut()[range], f: Position }),
        IndexMap::Ramp { start, step } => {
            store_run(IndexSource::Ramp { start, step }, run, &mut out.elements_mut()[range]);
        }
        IndexMap::Uniform(key) => store_run(IndexSource::Uniform(key), run, &mut out.elements_mut()[range]),
        IndexMap::OpenUnit(key) => {
            cpu::dispatch(Fill { run, out: &mut out.elements_mut()[range], f: OpenUnit(key) });
        }
        IndexMap::Below { key, span } if span <= SPAN_FAST => {
            cpu::dispatch(Fill { run, out: &mut out.elements_mut()[range], f: Below(key, span) });
        }
        IndexMap::Below { key, span } => {
            cpu::dispatch(Fill { run, out: &mut out.elements_mut()[range], f: EvenlyBelow(key, span) });
        }
    }
}

trait IndexFn: Copy {
    type Out: Element;
    fn at(self, index: i64) -> Self::Out;
}

struct Fill<'a, F: IndexFn> {
    run: Run,
    out: &'a mut [F::Out],
    f: F,
}

impl<F: IndexFn> Kernel for Fill<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Fill { run: Run { offset, stride, .. }, out, f } = self;
        if stride == 1 {
            out.iter_mut().enumerate().for_each(|(i, out)| *out = f.at(offset.wrapping_add(i as i64)));
        } else {
            let at = |i: usize| offset.wrapping_add((i as i64).wrapping_mul(stride));
            out.iter_mut().enumerate().for_each(|(i, out)| *out = f.at(at(i)));
        }
    }
}

#[derive(Clone, Copy)]
struct Position;
impl IndexFn for Position {
    type Out = i64;
    #[inline(always)]
    fn at(self, index: i64) -> i64 {
        index
    }
}

#[derive(Clone, Copy)]
struct OpenUnit(Key);
impl IndexFn for OpenUnit {
    type Out = f64;
    #[inline(always)]
    fn at(self, index: i64) -> f64 {
        open_unit(self.0.bits(index as u64))
    }
}

#[derive(Clone, Copy)]
struct Below(Key, u64);
impl IndexFn for Below {
    type Out = u64;
    #[inline(always)]
    fn at(self, index: i64) -> u64 {
        let bits = self.0.bits(index as u64);
        if self.1 == 0 { bits } else { below(bits, self.1) }
    }
}

#[derive(Clone, Copy)]
struct EvenlyBelow(Key, u64);
impl IndexFn for EvenlyBelow {
    type Out = u64;
    #[inline(always)]
    fn at(self, index: i64) -> u64 {
        evenly_below(self.0.bits(index as u64), self.1)
    }
}
