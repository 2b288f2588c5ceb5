//! Functions of tiles on small ones, by hand.

use super::*;
use crate::evaluate::Place;

/// A site of a matrix of one tile.
fn run(
    function: &Sparse,
    extents: [usize; 2],
    args: &[Chunk],
    tables: &[Vec<Chunk>],
    values: &[Vec<Chunk>],
) -> Vec<Chunk> {
    let place = Place { origin: &[0, 0], extents: &extents };
    let site = |stored| Site { place, stored };
    let counted = match function {
        Sparse::Transpose | Sparse::Coordinates => tables[1][0].len(),
        Sparse::ToDense | Sparse::DenseProduct { .. } => 0,
        _ => function.count(site(0), args, tables).unwrap().to_vec::<i64>().unwrap()[0] as usize,
    };
    function.run(site(counted), args, values).unwrap()
}

fn tile(dense: &[f64], rows: usize) -> Vec<Chunk> {
    let shape = [rows, dense.len() / rows];
    let x = Chunk::from_elements(&shape, dense).unwrap();
    run(&Sparse::FromDense, shape, &[x], &[], &[])
}

/// Tables of one piece each.
fn tables(tile: &[Chunk]) -> Vec<Vec<Chunk>> {
    tile.iter().map(|chunk| vec![chunk.clone()]).collect()
}

fn dense(tile: &[Chunk], extents: [usize; 2]) -> Vec<f64> {
    let made = run(&Sparse::ToDense, extents, &[], &[], &tables(tile));
    made[0].to_vec::<f64>().unwrap()
}

const A: [f64; 6] = [0.0, 2.0, 0.0, 3.0, f64::NAN, -0.0];

#[test]
fn a_tile_stores_what_is_not_zero_and_gives_it_back() {
    let a = tile(&A, 2);
    assert_eq!(a[0].to_vec::<u32>().unwrap(), [0, 1, 3]);
    assert_eq!(a[1].to_vec::<u32>().unwrap(), [1, 0, 1]);
    let back = dense(&a, [2, 3]);
    assert!(back[4].is_nan());
    assert_eq!((back[1], back[3], back[5].is_sign_positive()), (2.0, 3.0, true));
    let turned = run(&Sparse::Transpose, [3, 2], &[], &tables(&a), &tables(&a));
    assert_eq!(turned[0].to_vec::<u32>().unwrap(), [0, 1, 3, 3]);
    assert_eq!(turned[1].to_vec::<u32>().unwrap(), [1, 0, 1]);
    let places = run(&Sparse::Coordinates, [2, 3], &[], &tables(&a), &tables(&a));
    assert_eq!(places[0].to_vec::<i64>().unwrap(), [0, 1, 1]);
}

#[test]
fn places_of_two_tiles_meet_in_order() {
    let (a, b) = (tile(&[1.0, 0.0, 2.0, 0.0], 1), tile(&[0.0, 5.0, 6.0, 0.0], 1));
    let places = [tables(&a[..2]), tables(&b[..2])].concat();
    let all = [tables(&a), tables(&b)].concat();
    let aligned = |both| {
        let made = run(&Sparse::Align { both }, [1, 4], &[], &places, &all);
        let values = |at: usize| made[at].to_vec::<f64>().unwrap();
        (made[1].to_vec::<u32>().unwrap(), values(2), values(3))
    };
    assert_eq!(aligned(false), (vec![0, 1, 2], vec![1.0, 0.0, 2.0], vec![0.0, 5.0, 6.0]));
    assert_eq!(aligned(true), (vec![2], vec![2.0], vec![6.0]));
}

#[test]
fn a_product_of_tiles_goes_over_all_pieces_of_the_depth() {
    // (1, 2 + 1) by (1 + 2, 2): the depth is cut in another place on each side.
    let left = [tile(&[1.0, 2.0], 1), tile(&[3.0], 1)];
    let right = [tile(&[1.0, 0.0], 1), tile(&[0.0, 10.0, 100.0, -1.0], 2)];
    let part = |tiles: &[Vec<Chunk>; 2], at: usize| tiles.iter().map(|tile| tile[at].clone()).collect();
    let places = vec![part(&left, 0), part(&left, 1), part(&right, 0), part(&right, 1)];
    let all: Vec<Vec<Chunk>> = (0..6).map(|at| part(if at < 3 { &left } else { &right }, at % 3)).collect();
    let product = Sparse::Product { starts: vec![0, 2], ends: vec![1, 3] };
    let made = run(&product, [1, 2], &[], &places, &all);
    assert_eq!(dense(&made, [1, 2]), [301.0, 17.0]);
    let x = Chunk::from_elements(&[3, 1], &[1.0, 1.0, 2.0]).unwrap();
    let made = run(&Sparse::DenseProduct { starts: vec![0, 2] }, [1, 1], &[x], &[], &all[..3]);
    assert_eq!(made[0].to_vec::<f64>().unwrap(), [9.0]);
}

#[test]
fn equal_keys_are_added_up() {
    let keys = Chunk::from_elements(&[4], &[6i64 + 1, 6 + 1, 6 + 5, 6 + 5]).unwrap();
    let values = Chunk::from_elements(&[4], &[1.0, 2.0, 3.0, -3.0]).unwrap();
    let given = [vec![keys], vec![values]];
    let made = run(&Sparse::Assemble { width: 3, span: 6 }, [2, 3], &[], &given, &given);
    assert_eq!(made[0].to_vec::<u32>().unwrap(), [0, 1, 2]);
    assert_eq!(made[2].to_vec::<f64>().unwrap(), [3.0, 0.0]);
    let pruned = run(&Sparse::Prune, [2, 3], &[], &tables(&made), &tables(&made));
    assert_eq!(pruned[1].to_vec::<u32>().unwrap(), [1]);
}

#[test]
fn random_places_do_not_depend_on_the_cut() {
    let function = Sparse::Random { key: Key::new(3, 0), share: 0.2, columns: 50 };
    let part = |origin: [usize; 2], extents: [usize; 2]| {
        let place = Place { origin: &origin, extents: &extents };
        let count = function.count(Site { place, stored: 0 }, &[], &[]).unwrap();
        let stored = count.to_vec::<i64>().unwrap()[0] as usize;
        let made = function.run(Site { place, stored }, &[], &[]).unwrap();
        dense(&made, extents)
    };
    let whole = part([0, 0], [20, 50]);
    let cut = part([5, 10], [3, 7]);
    let wanted: Vec<f64> = (5..8).flat_map(|row| whole[row * 50 + 10..row * 50 + 17].to_vec()).collect();
    assert_eq!(cut, wanted);
    let stored = whole.iter().filter(|&&x| x != 0.0).count();
    assert!((140..260).contains(&stored), "{stored} of 1000");
    for (share, wanted) in [(0.0, 0), (1.0, 12)] {
        let function = Sparse::Random { key: Key::new(3, 0), share, columns: 4 };
        let place = Place { origin: &[0, 0], extents: &[3, 4] };
        let count = function.count(Site { place, stored: 0 }, &[], &[]).unwrap();
        assert_eq!(count.to_vec::<i64>().unwrap(), [wanted]);
    }
}

#[test]
fn tiles_that_are_none_are_refused() {
    let ends = Chunk::from_elements(&[2], &[0u32, 9]).unwrap();
    let columns = Chunk::from_elements(&[1], &[0u32]).unwrap();
    let values = Chunk::from_elements(&[1], &[1.0]).unwrap();
    let place = Place { origin: &[0, 0], extents: &[1, 1] };
    let torn = [vec![ends], vec![columns], vec![values]];
    let refused = Sparse::ToDense.run(Site { place, stored: 1 }, &[], &torn);
    assert!(matches!(refused, Err(KernelError::Malformed(_))));
    let other = tile(&[1.0, 2.0], 1);
    let refused = Sparse::Prune.run(Site { place, stored: 1 }, &[], &tables(&other));
    assert!(matches!(refused, Err(KernelError::Malformed(_))), "more than was counted");
}
