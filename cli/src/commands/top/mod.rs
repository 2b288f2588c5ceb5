//! `tharsis top`: nodes, jobs and waiting tasks, shown again and again until a key ends it.
//!
//! | file | concern |
//! |---|---|
//! | `gather.rs` | questions to nodes |
//! | `sample.rs` | their answers at one moment, runs counted by job |
//! | `view.rs` | the rows made of them, and their JSON |
//! | `table.rs` | rows as lines of a terminal |
//! | `screen.rs` | the terminal |

mod gather;
mod sample;
mod screen;
mod table;
mod view;

use crate::args::TopArgs;
use crate::output;
use crate::settings::Settings;
use anyhow::{Context, Result, bail};
use gather::Gatherer;
use sample::Sample;
use screen::Screen;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::MissedTickBehavior;
use view::View;

/// The shortest time over which rates are measured: shorter ones jump between nothing and much.
const WINDOW_MIN: Duration = Duration::from_secs(5);
/// Time until the terminal is looked at again, for another size and for news.
const KEYS_WAIT: Duration = Duration::from_millis(100);
/// Signals that end the command, and leave the terminal as it was.
const SIGNALS: [fn() -> SignalKind; 3] = [SignalKind::terminate, SignalKind::hangup, SignalKind::interrupt];

/// News for the terminal.
enum News {
    /// The command was told to end.
    End,
    /// The node of this machine did not answer.
    Silent(String),
    /// It and the others did.
    Told(Box<Sample>),
}

/// Shows the cluster as the node of this machine knows it: once, or until a key ends it.
///
/// # Errors
/// If that node does not answer at first.
pub fn run(asked: &TopArgs) -> Result<()> {
    let mut gatherer = Gatherer::new(Settings::read(&asked.settings)?, asked.interval.max(WINDOW_MIN));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let sample = runtime.block_on(gatherer.sample())?;
    if !asked.json && !asked.once && screen::is_terminal() {
        return watch(runtime, gatherer, &sample, asked.interval);
    }
    // A thread may still wait for a node.
    runtime.shutdown_background();
    let view = View::of(&sample);
    if asked.json {
        return output::line(&view::document(&sample, &view)?.to_string());
    }
    let width = screen::size().map_or(usize::MAX, |size| size.columns);
    table::lines(&view, None, width, None).iter().try_for_each(|line| output::line(&line.text))
}

fn watch(runtime: Runtime, gatherer: Gatherer, first: &Sample, interval: Duration) -> Result<()> {
    let (news, heard) = channel();
    let entered = runtime.enter();
    let signals = SIGNALS.iter().map(|kind| signal(kind())).collect::<std::io::Result<Vec<_>>>();
    drop(entered);
    let signals = signals.context("signals")?;
    let screen = Screen::open(!is_colour_refused())?;
    let ask = move || runtime.block_on(ask_on(gatherer, signals, interval, &news));
    // Ends with the process.
    std::thread::Builder::new().name("nodes".into()).spawn(ask).context("a thread")?;
    show(&screen, View::of(first), &heard)
}

/// Draws what is told, until a key or a signal ends it.
fn show(screen: &Screen, mut view: View, heard: &Receiver<News>) -> Result<()> {
    let (mut problem, mut drawn) = (None, None);
    loop {
        let size = screen::size();
        if drawn != Some(size) {
            let (columns, rows) = size.map_or((80, 24), |size| (size.columns, size.rows));
            // The last column stays free: some terminals would wrap there.
            let lines = table::lines(&view, problem.as_deref(), columns.saturating_sub(1), Some(rows));
            screen.draw(&lines)?;
            drawn = Some(size);
        }
        if screen.is_left(KEYS_WAIT)? {
            return Ok(());
        }
        loop {
            match heard.try_recv() {
                Ok(News::End) => return Ok(()),
                Ok(News::Silent(cause)) => problem = Some(cause),
                Ok(News::Told(sample)) => (view, problem) = (View::of(&sample), None),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => bail!("nobody asks the node any more"),
            }
            drawn = None;
        }
    }
}

/// Asks the nodes in each interval, until a signal comes or nobody listens.
async fn ask_on(mut gatherer: Gatherer, mut signals: Vec<Signal>, interval: Duration, news: &Sender<News>) {
    let mut ticks = tokio::time::interval(interval);
    // After an answer that took longer, the next question comes one interval later.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.tick().await;
    loop {
        let next = async {
            ticks.tick().await;
            gatherer.sample().await
        };
        let told = tokio::select! {
            () = any_of(&mut signals) => News::End,
            sample = next => match sample {
                Ok(sample) => News::Told(Box::new(sample)),
                Err(error) => News::Silent(format!("{error:#}")),
            },
        };
        let is_end = matches!(told, News::End);
        if news.send(told).is_err() || is_end {
            return;
        }
    }
}

/// The lines of a sample, for the documents.
#[cfg(test)]
pub(super) fn sample_lines() -> Vec<String> {
    let view = View::of(&view::tests::sample());
    table::lines(&view, None, usize::MAX, None).into_iter().map(|line| line.text).collect()
}

/// Waits for one of several signals.
async fn any_of(signals: &mut [Signal]) {
    let waits = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    futures::future::select_all(waits).await;
}

/// Whether the user wants no colours: <https://no-color.org>.
fn is_colour_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
