//! Questions to holders and to the readers that they name.

use super::*;
use tharsis_types::{JobId, TaskId};

const HOLDER: NodeId = NodeId(1);
const READER: NodeId = NodeId(2);
const INTO: Extent = Extent { offset: 0, len: 100 };

fn object() -> ObjectId {
    ObjectId::put(TaskId::root(JobId(1)), 0)
}

fn begun() -> Transfers {
    let mut transfers = Transfers::default();
    let mut effects = Vec::new();
    transfers.begin(object(), HOLDER, INTO, Part::default(), &mut effects);
    assert!(matches!(effects[..], [Effect::Send { to: HOLDER, .. }]));
    transfers
}

fn answer(transfers: &mut Transfers, from: NodeId, turn: Turn) -> Vec<Effect> {
    let mut effects = Vec::new();
    transfers.answered(object(), from, turn, |_| true, &mut effects);
    transfers.check();
    effects
}

#[test]
fn whoever_was_asked_last_answers() {
    let mut transfers = begun();
    let asked = answer(&mut transfers, HOLDER, Turn::At(READER));
    assert!(matches!(asked[..], [Effect::Send { to: READER, .. }]));
    let late = answer(&mut transfers, HOLDER, Turn::Now);
    let ended = Message::ReadEnded { object: object() };
    assert!(matches!(&late[..], [Effect::Send { to: HOLDER, message }] if *message == ended));
    let read = answer(&mut transfers, READER, Turn::Now);
    assert!(matches!(read[..], [Effect::Read { from: READER, .. }]));
    let mut effects = Vec::new();
    transfers.ended(object(), true, &mut effects);
    assert!(matches!(&effects[..], [Effect::Send { to: READER, message }] if *message == ended));
    assert!(transfers.leftovers().iter().all(|(_, count)| *count == 0));
}

#[test]
fn a_holder_is_asked_so_often_and_not_more() {
    let mut transfers = begun();
    for _ in 1..ASKS_MAX {
        answer(&mut transfers, HOLDER, Turn::At(READER));
        let again = answer(&mut transfers, READER, Turn::Never);
        assert!(matches!(again[..], [Effect::Send { to: HOLDER, .. }]));
    }
    answer(&mut transfers, HOLDER, Turn::At(READER));
    let failed = answer(&mut transfers, READER, Turn::Never);
    assert!(matches!(failed[..], [Effect::Failed { holder: HOLDER, is_interrupted: true, .. }]), "it has it");
    assert!(transfers.leftovers().iter().all(|(_, count)| *count == 0));
}

/// Two nodes have just joined and read the object, or are dead, and only one side has heard of that.
#[test]
fn a_holder_that_names_unknown_nodes_has_the_object() {
    let mut transfers = begun();
    let mut answer = |turn| {
        let mut effects = Vec::new();
        transfers.answered(object(), HOLDER, turn, |node| node == HOLDER, &mut effects);
        effects
    };
    for unknown in [8, 9].map(NodeId) {
        let request = Message::ReadRequest { object: object(), sent: false, failed_at: Some(unknown) };
        let said = answer(Turn::At(unknown));
        assert!(
            matches!(&said[..], [Effect::Send { to: HOLDER, message }] if *message == request),
            "{said:?}"
        );
    }
    let failed = answer(Turn::Never);
    assert!(matches!(failed[..], [Effect::Failed { is_interrupted: false, .. }]), "that is its own word");
}

/// They answer as fast as they are asked, so no time runs out.
#[test]
fn nobody_is_sent_to_and_fro_without_an_end() {
    for back in [NodeId(3), HOLDER] {
        let (mut transfers, mut questions) = (begun(), 0);
        while let Some(asked) = transfers.asked_of(object()) {
            let next = if asked == READER { back } else { READER };
            let said = answer(&mut transfers, asked, Turn::At(next));
            questions += 1;
            assert!(questions <= 4 * (1 + usize::from(HOPS_MAX)), "{said:?}");
            let is_over = transfers.asked_of(object()).is_none();
            let is_kept = matches!(said[..], [Effect::Failed { holder: HOLDER, is_interrupted: true, .. }]);
            assert_eq!(is_over, is_kept, "{said:?}");
        }
        assert!(transfers.leftovers().iter().all(|(_, count)| *count == 0));
    }
}

/// The holder is reached, and sends us to a reader that is not, or does not mean to answer.
#[test]
fn nobody_is_waited_for_without_an_end() {
    let mut transfers = begun();
    let reached = |_: NodeId| None;
    assert_eq!(transfers.next_timeout(reached), Some(ANSWER_WAIT));
    assert_eq!(transfers.next_timeout(|node| (node == HOLDER).then_some(5)), Some(5), "it is silent");
    answer(&mut transfers, HOLDER, Turn::At(READER));
    assert_eq!(transfers.next_timeout(reached), Some(READER_WAIT), "it waits itself");
    assert_eq!(transfers.next_timeout(|node| (node == HOLDER).then_some(5)), Some(READER_WAIT));
    assert!(transfers.late(READER_WAIT - 1, reached).is_empty());
    assert_eq!(transfers.late(READER_WAIT, reached), [object()]);
    let mut ask_again = || {
        let mut effects = Vec::new();
        transfers.ask_again(object(), true, |_| true, &mut effects);
        effects
    };
    let failed_at = Some(READER);
    let request = Message::ReadRequest { object: object(), sent: false, failed_at };
    assert!(matches!(&ask_again()[..], [Effect::Send { to: HOLDER, message }] if *message == request));
    let failed = ask_again();
    assert!(matches!(failed[..], [Effect::Failed { holder: HOLDER, is_interrupted: true, .. }]));
    assert!(transfers.leftovers().iter().all(|(_, count)| *count == 0));
}

#[test]
fn the_second_answer_of_a_holder_does_not_end_the_transfer() {
    let mut transfers = begun();
    assert!(matches!(answer(&mut transfers, HOLDER, Turn::Now)[..], [Effect::Read { from: HOLDER, .. }]));
    assert!(answer(&mut transfers, HOLDER, Turn::Now).is_empty());
}

/// A result may have been made twice, with different bytes.
#[test]
fn a_part_of_a_result_is_of_use_at_its_holder_alone() {
    let result = ObjectId::output(TaskId::root(JobId(1)), 0);
    assert_eq!(Part::of(result, HOLDER, 60, 5).at(HOLDER), (60, 5));
    assert_eq!(Part::of(result, HOLDER, 60, 5).at(READER), (0, 0));
    assert_eq!(Part::of(result, HOLDER, 60, 0).at(HOLDER), (0, 0), "nobody knows of which copy it is");
    assert_eq!(Part::of(object(), HOLDER, 60, 5).at(READER), (60, 0), "a value that was put");
}

#[test]
#[should_panic(expected = "asked for twice")]
fn an_object_is_asked_for_once() {
    begun().begin(object(), HOLDER, INTO, Part::default(), &mut Vec::new());
}
