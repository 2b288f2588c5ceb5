//! `tharsis bench`: benches check what they compute, and do so each time.

use crate::home::Home;

/// A defect was seen in one run of three: an object of a region was freed while its worker wrote another. Of
/// the rounds, answers are looked at in the first one.
#[test]
fn frames_on_workers_answer_right_again_and_again() {
    let (home, rounds) = (Home::new(), tharsis_trials::cases("1", "3"));
    for name in ["frame-groupby", "frame-groupby", "frame-groupby", "frame-join", "frame-sort"] {
        let words = ["bench", name, "--on", "workers", "--size", "200000", "--rounds", rounds];
        let ended = home.run(words);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{name}: {}", ended.out);
        assert!(ended.out.contains(name), "{}", ended.out);
    }
}
