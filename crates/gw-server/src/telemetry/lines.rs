//! A separate thread writes the log lines, so that a request never waits for the reader of the log.
//!
//! Invariant: the queue is bounded. If the reader stalls, lines are dropped and counted, and requests continue.

use std::{
    io::{self, BufWriter, Write},
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    thread::JoinHandle,
    time::Duration,
};
use tracing_subscriber::fmt::MakeWriter;

/// Most lines that wait to be written; further lines are dropped.
const QUEUE: usize = 16_384;

/// A message to the writing thread.
enum LogMessage {
    Line(Vec<u8>),
    End,
}

/// Makes one writer per line.
#[derive(Clone, Debug)]
pub(super) struct LogLineWriter {
    sender: SyncSender<LogMessage>,
}

/// Guard of the writing thread: dropping it waits until all queued lines are written, then ends the thread.
#[derive(Debug)]
pub struct FlushGuard {
    sender: SyncSender<LogMessage>,
    thread: Option<JoinHandle<()>>,
}

impl LogLineWriter {
    /// Starts the thread that writes to `out`.
    pub(super) fn start(out: impl Write + Send + 'static) -> (Self, FlushGuard) {
        let (sender, receiver) = sync_channel(QUEUE);
        // If the thread cannot start, the service still runs without log lines.
        let thread = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write_all(&receiver, out))
            .ok();
        (Self { sender: sender.clone() }, FlushGuard { sender, thread })
    }
}

fn write_all(receiver: &Receiver<LogMessage>, out: impl Write) {
    let mut out = BufWriter::with_capacity(64 * 1024, out);
    loop {
        // Flush when the queue is empty: a single line appears at once, and many lines cost one write.
        let message = match receiver.try_recv() {
            Ok(message) => message,
            Err(_) => {
                let _ = out.flush();
                match receiver.recv_timeout(Duration::from_secs(1)) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        match message {
            LogMessage::Line(line) => {
                let _ = out.write_all(&line);
            }
            LogMessage::End => {
                let _ = out.flush();
                return;
            }
        }
    }
}

impl Drop for FlushGuard {
    fn drop(&mut self) {
        if self.sender.send(LogMessage::End).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// A line under construction; dropping it queues the line.
#[derive(Debug)]
pub(super) struct Line {
    text: Vec<u8>,
    sender: SyncSender<LogMessage>,
}

impl<'a> MakeWriter<'a> for LogLineWriter {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line {
            text: Vec::with_capacity(256),
            sender: self.sender.clone(),
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
            && let Err(TrySendError::Full(_)) = self.sender.try_send(LogMessage::Line(line))
        {
            ::metrics::counter!(super::metrics::LOG_LINES_DROPPED).increment(1);
        }
    }
}

impl core::fmt::Debug for LogMessage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("LogMessage")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
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
        let captured = Captured::default();
        let (lines, flush) = LogLineWriter::start(captured.clone());
        for number in 0..1000 {
            let mut line = lines.make_writer();
            write!(line, "line ").expect("taken");
            writeln!(line, "{number}").expect("taken");
        }
        drop(flush);
        let expected: String = (0..1000).map(|number| format!("line {number}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&captured.0.lock().expect("whole")), expected);
    }

    /// An output that blocks until the test ends.
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
    fn a_stalled_reader_does_not_block_writers() {
        let (release, blocked) = std::sync::mpsc::channel();
        let (lines, flush) = LogLineWriter::start(Stuck(blocked));
        for _ in 0..QUEUE * 2 {
            writeln!(lines.make_writer(), "line").expect("taken");
        }
        drop(release);
        drop(flush);
    }
}
