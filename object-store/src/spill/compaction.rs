//! Choice of the segments to punch and the segments to rewrite. No I/O.
//!
//! A hole costs one system call and frees the space of a long dead run at once, but fragments the file if
//! runs are short. Rewriting the living part elsewhere costs a read and a write of it. So long runs are
//! punched where the file system supports it, and a segment is rewritten if that moves no more than it frees.

/// Average length of dead runs from which on holes are worth their system calls.
pub(crate) const PUNCH_RUN_BYTES: u64 = 1 << 20;

/// Fill of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFill {
    /// Number of the segment.
    pub segment: u64,
    /// Bytes of objects that were not removed.
    pub live_bytes: u64,
    /// Bytes of removed objects that still take space.
    pub dead_bytes: u64,
    /// Number of runs of dead bytes.
    pub dead_runs: u64,
    /// Whether it is being written now.
    pub busy: bool,
}

/// Limits of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionLimits {
    /// Whether the file system can punch holes.
    pub can_punch: bool,
    /// Upper bound on the bytes that may be moved.
    pub move_bytes_max: u64,
    /// Bytes that the directory has left for copies.
    pub room_bytes: u64,
}

/// One step of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionStep {
    /// Free the dead runs of this segment.
    Punch {
        /// Number of the segment.
        segment: u64,
    },
    /// Write the living objects of this segment to others and delete it.
    Rewrite {
        /// Number of the segment.
        segment: u64,
    },
}

/// Plans one compaction, the most gain for the fewest moved bytes first.
pub fn plan_compaction(fills: &[SegmentFill], limits: &CompactionLimits) -> Vec<CompactionStep> {
    let idle = fills.iter().filter(|fill| !fill.busy && fill.dead_bytes != 0 && fill.live_bytes != 0);
    let (punched, mut sparse): (Vec<&SegmentFill>, Vec<&SegmentFill>) =
        idle.partition(|fill| limits.can_punch && PUNCH_RUN_BYTES <= fill.dead_bytes / fill.dead_runs.max(1));
    let mut steps: Vec<CompactionStep> =
        punched.iter().map(|fill| CompactionStep::Punch { segment: fill.segment }).collect();
    sparse.retain(|fill| fill.live_bytes <= fill.dead_bytes);
    // dead / live, largest first, without a division.
    sparse.sort_by(|a, b| {
        let left = u128::from(b.dead_bytes) * u128::from(a.live_bytes);
        left.cmp(&(u128::from(a.dead_bytes) * u128::from(b.live_bytes))).then(a.segment.cmp(&b.segment))
    });
    // A rewritten segment frees room for the next one only once it is deleted, so only the present room
    // counts.
    let mut left_bytes = limits.move_bytes_max.min(limits.room_bytes);
    for fill in sparse {
        if fill.live_bytes <= left_bytes {
            left_bytes -= fill.live_bytes;
            steps.push(CompactionStep::Rewrite { segment: fill.segment });
        }
    }
    steps
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    fn fill(segment: u64, live_mib: u64, dead_mib: u64, dead_runs: u64) -> SegmentFill {
        SegmentFill {
            segment,
            live_bytes: live_mib * MIB,
            dead_bytes: dead_mib * MIB,
            dead_runs,
            busy: false,
        }
    }

    const PLENTY: CompactionLimits =
        CompactionLimits { can_punch: true, move_bytes_max: u64::MAX, room_bytes: u64::MAX };

    #[test]
    fn long_dead_runs_are_punched_and_short_ones_rewritten_where_it_pays() {
        let fills = [fill(1, 100, 20, 5), fill(2, 10, 100, 1000), fill(3, 60, 50, 1000), fill(4, 100, 0, 0)];
        let expected = [CompactionStep::Punch { segment: 1 }, CompactionStep::Rewrite { segment: 2 }];
        assert_eq!(plan_compaction(&fills, &PLENTY), expected);
        let no_holes = CompactionLimits { can_punch: false, ..PLENTY };
        assert_eq!(plan_compaction(&fills, &no_holes), [CompactionStep::Rewrite { segment: 2 }]);
    }

    #[test]
    fn the_emptiest_go_first_when_room_is_short() {
        let fills = [fill(1, 50, 60, 9999), fill(2, 10, 100, 9999), fill(3, 20, 100, 9999)];
        let tight = CompactionLimits { room_bytes: 31 * MIB, ..PLENTY };
        let expected = [CompactionStep::Rewrite { segment: 2 }, CompactionStep::Rewrite { segment: 3 }];
        assert_eq!(plan_compaction(&fills, &tight), expected);
    }

    prop_compose! {
        fn any_fill()(
            live_bytes in 0..1_u64 << 28,
            dead_bytes in 0..1_u64 << 28,
            dead_runs in 1..10_000_u64,
            busy: bool,
        ) -> SegmentFill {
            SegmentFill { segment: 0, live_bytes, dead_bytes, dead_runs, busy }
        }
    }

    proptest! {
        #[test]
        fn a_plan_frees_at_least_what_it_moves_and_keeps_to_its_limits(
            fills in prop::collection::vec(any_fill(), 0..40),
            can_punch: bool,
            move_bytes_max in 0..1_u64 << 31,
            room_bytes in 0..1_u64 << 31,
        ) {
            let mut fills = fills;
            (0..).zip(&mut fills).for_each(|(segment, fill)| fill.segment = segment);
            let limits = CompactionLimits { can_punch, move_bytes_max, room_bytes };
            let mut moved_bytes = 0;
            let mut seen = Vec::new();
            for step in plan_compaction(&fills, &limits) {
                let (CompactionStep::Punch { segment } | CompactionStep::Rewrite { segment }) = step;
                let fill = &fills[segment as usize];
                prop_assert!(!fill.busy && fill.dead_bytes != 0 && !seen.contains(&segment));
                seen.push(segment);
                if let CompactionStep::Rewrite { .. } = step {
                    prop_assert!(fill.live_bytes <= fill.dead_bytes);
                    moved_bytes += fill.live_bytes;
                } else {
                    prop_assert!(can_punch);
                }
            }
            prop_assert!(moved_bytes <= move_bytes_max.min(room_bytes));
        }
    }
}
