//! Tasks that go on although the time of their request is over.

use arrow::array::{Int64Array, RecordBatch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tharsis_dataframe::{DataFrame, Error, KeptPart, LocalExecutor, Resident};
use tharsis_frame_programs::{Here, run};

/// A part that cannot be read while somebody holds a lock; tells whether somebody has tried.
#[derive(Debug)]
struct Held(Arc<Mutex<()>>, Arc<AtomicBool>, RecordBatch);

impl KeptPart for Held {
    fn fetch(&self) -> Result<Vec<RecordBatch>, Error> {
        self.1.store(true, Ordering::Relaxed);
        let _held = self.0.lock().unwrap();
        Ok(vec![self.2.clone()])
    }

    fn rows(&self) -> usize {
        self.2.num_rows()
    }

    fn bytes(&self) -> usize {
        self.2.get_array_memory_size()
    }
}

#[test]
fn replies_count_the_tasks_that_were_left_behind() {
    let numbers = Arc::new(Int64Array::from_iter_values(0..8));
    let batch = RecordBatch::try_from_iter_with_nullable([("n", numbers as _, true)]).unwrap();
    let (gate, entered) = (Arc::new(Mutex::new(())), Arc::new(AtomicBool::new(false)));
    let parts: Vec<Arc<dyn KeptPart>> = vec![Arc::new(Held(gate.clone(), entered.clone(), batch.clone()))];
    let frame = DataFrame::from_parts(Resident { schema: batch.schema(), parts });
    let frame = frame.filter(&frame.col("n").gt(2));
    let held = gate.lock().unwrap();
    for seconds in [1, 4, 16, 64] {
        let executor = LocalExecutor::sized(2, 64 << 20).until(Instant::now() + Duration::from_secs(seconds));
        let error = frame.collect_on(&executor).unwrap_err();
        assert_eq!(error.class(), "Timeout", "while the task still waits: {error}");
        // A machine with other work may not have come to the part.
        if entered.load(Ordering::Relaxed) {
            break;
        }
    }
    let request = serde_json::json!({"in": {"t": {"lit": {"n": [1]}}}, "prog": [], "out": ["t"]});
    let reply = run(&request, ".".as_ref(), &Here);
    assert!(reply["left_tasks"].as_u64().is_some_and(|left| 0 < left), "{reply}");
    drop(held);
    let end = Instant::now() + Duration::from_secs(60);
    // Other tests of this process leave tasks for seconds.
    while run(&request, ".".as_ref(), &Here).get("left_tasks").is_some() {
        assert!(Instant::now() < end, "it has ended");
        std::thread::sleep(Duration::from_millis(10));
    }
}
