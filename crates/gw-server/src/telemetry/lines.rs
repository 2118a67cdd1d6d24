//! Log lines leave through a thread of their own, so that a request never waits for whoever reads them.
//!
//! Invariant: the queue is bounded. When the reader stands still, lines are dropped and counted; a request goes on.

use std::{
    io::{self, BufWriter, Write},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    thread::JoinHandle,
    time::Duration,
};
use tracing_subscriber::fmt::MakeWriter;

/// Lines waiting at most.
const QUEUE: usize = 16_384;

/// What the writing thread is told.
enum Told {
    Line(Vec<u8>),
    End,
}

/// Makes one writer per line.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    to: SyncSender<Told>,
}

/// Ends the writing thread after it wrote everything.
#[derive(Debug)]
pub struct Flush {
    to: SyncSender<Told>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// Starts the thread.
    pub(super) fn start(out: impl Write + Send + 'static) -> (Self, Flush) {
        let (to, from) = sync_channel(QUEUE);
        // Without the thread every line counts as dropped; the service still runs.
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&from, out))
            .ok();
        (Self { to: to.clone() }, Flush { to, thread })
    }
}

fn write_all(from: &Receiver<Told>, out: impl Write) {
    let mut out = BufWriter::with_capacity(64 * 1024, out);
    loop {
        // Flushed as soon as nothing waits: a line is seen at once, a thousand lines cost one write.
        let told = match from.try_recv() {
            Ok(told) => told,
            Err(_) => {
                let _ = out.flush();
                match from.recv_timeout(Duration::from_secs(1)) {
                    Ok(told) => told,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        match told {
            Told::Line(line) => {
                let _ = out.write_all(&line);
            }
            Told::End => {
                let _ = out.flush();
                return;
            }
        }
    }
}

impl Drop for Flush {
    fn drop(&mut self) {
        if self.to.send(Told::End).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// One line being put together.
#[derive(Debug)]
pub(super) struct Line {
    text: Vec<u8>,
    to: SyncSender<Told>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            text: Vec::with_capacity(256),
            to: self.to.clone(),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let line = std::mem::take(&mut self.text);
        if !line.is_empty()
            && let Err(TrySendError::Full(_)) = self.to.try_send(Told::Line(line))
        {
            ::metrics::counter!(super::metrics::LOG_LINES_DROPPED).increment(1);
        }
    }
}

impl core::fmt::Debug for Told {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Told")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<u8>>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_line_is_written_whole_and_in_order_before_the_end() {
        let seen = Seen::default();
        let (lines, flush) = Lines::start(seen.clone());
        for number in 0..1000 {
            let mut line = lines.make_writer();
            write!(line, "line ").expect("taken");
            writeln!(line, "{number}").expect("taken");
        }
        drop(flush);
        let expected: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&seen.0.lock().expect("whole")), expected);
    }

    /// A reader that never comes back.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_stands_still_stops_nobody() {
        let (go, wait) = std::sync::mpsc::channel();
        let (lines, flush) = Lines::start(Stuck(wait));
        for _ in 0..QUEUE * 2 {
            writeln!(lines.make_writer(), "line").expect("taken");
        }
        drop(go);
        drop(flush);
    }
}
