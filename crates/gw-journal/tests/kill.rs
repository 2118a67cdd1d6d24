//! Rules 10 and 11 against real death: a child process appends in many threads and is killed at any moment.
//!
//! This file has a `main` of its own because it is both the parent and, with an argument, the child. What the child
//! says on its standard output it may only say after `append` has returned; whatever the parent has read by the
//! time the child is dead must be in the journal.

fn main() {
    #[cfg(test)]
    kill::main(&std::env::args().skip(1).collect::<Vec<_>>());
}

#[cfg(test)]
mod kill {
    use gw_audit::{AccessRecord, Chain, Content, Entry, Record, Stream};
    use gw_journal::{Journal, Options};
    use gw_types::{Clock, Entropy, Seconds, Timestamp};
    use std::collections::HashMap;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    const THREADS: u64 = 4;
    const KILLS: u64 = 20;

    #[derive(Debug)]
    struct Counter(AtomicU64);

    impl Clock for Counter {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.fetch_add(1, Ordering::Relaxed).cast_signed())
        }
    }

    impl Entropy for Counter {
        fn fill(&self, bytes: &mut [u8]) {
            let n = self.0.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            bytes
                .iter_mut()
                .zip(n.iter().cycle())
                .for_each(|(to, from)| *to = *from);
        }
    }

    fn open(dir: &Path, run: u64) -> Journal {
        let options = Options {
            dir: dir.to_owned(),
            holder: "the kill test".to_owned(),
            cluster: "test".to_owned(),
            checkpoint_key: [7; 32],
            max_bytes: 1 << 30,
            segment_bytes: 256 << 10,
            retain_bytes: 1 << 20,
            retain_for: Seconds(3600),
        };
        let counter = Arc::new(Counter(AtomicU64::new(run << 40)));
        let (journal, recovery) = Journal::open(options, Arc::<Counter>::clone(&counter), counter).unwrap();
        assert!(
            recovery.torn <= 1,
            "a kill tears at most the record being written: {recovery:?}"
        );
        journal
    }

    pub(super) fn main(arguments: &[String]) {
        match arguments {
            [role, dir, run] if role == "child" => child(Path::new(dir), run.parse().unwrap()),
            _ => parent(),
        }
    }

    /// Appends for ever; every acknowledgement is one line.
    fn child(dir: &Path, run: u64) {
        let journal = open(dir, run);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let journal = &journal;
                scope.spawn(move || {
                    for n in 0.. {
                        let name = format!("{run}-{thread}-{n}");
                        let record = AccessRecord {
                            external_id: Some("did:test:somebody".parse().unwrap()),
                            correlation_id: Some(name.clone().into()),
                            ..AccessRecord::new("eth_call", 200)
                        };
                        let position = journal.append(record).unwrap();
                        let line = format!("{name} {}\n", position.seq);
                        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                    }
                });
            }
        });
    }

    /// Lets a child append until it has said `lines` lines and some more, kills it, and returns all it said.
    fn kill_one(dir: &Path, run: u64) -> HashMap<String, u64> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", dir.to_str().unwrap(), &run.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        // From the very beginning to well after many fsyncs and segments.
        let lines = run * run * 17;
        let mut text = String::new();
        for _ in 0..lines {
            said.read_line(&mut text).unwrap();
        }
        child.kill().unwrap();
        said.read_to_string(&mut text).unwrap();
        assert!(!child.wait().unwrap().success());
        // The last line may have been cut off by the kill.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let pair = |line: &str| {
            let (name, seq) = line.split_once(' ').unwrap();
            (name.to_owned(), seq.parse().unwrap())
        };
        whole.lines().map(pair).collect()
    }

    fn parent() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let mut chain: Option<Chain> = None;
        let mut total = 0;
        for run in 0..KILLS {
            let mut said = kill_one(dir, run);
            let acknowledged = said.len();
            let journal = open(dir, run);
            let mut seen = HashMap::new();
            loop {
                let batch = journal.unsealed(Stream::Access, 5000).unwrap();
                let Some(last) = batch.last().map(|record| record.seq + 1) else {
                    break;
                };
                for record in &batch {
                    assert_eq!(record.stream, Stream::Access);
                    let entry = Entry::decode(&record.bytes, &record.openings).unwrap();
                    // The chain refuses gaps, repeats and anything out of order, from one run to the next.
                    match &mut chain {
                        None => chain = Some(Chain::replay(entry.header.chain, &record.bytes).unwrap().0),
                        Some(chain) => assert!(chain.accept(&record.bytes).is_ok(), "run {run}"),
                    }
                    if let Content::Record(Record::Access(access)) = entry.content {
                        let name = access.correlation_id.unwrap().into_owned();
                        if let Some(seq) = said.remove(&name) {
                            assert_eq!(seq, entry.header.seq, "{name}");
                        }
                        assert!(seen.insert(name, ()).is_none(), "twice");
                    }
                }
                journal.mark_sealed(Stream::Access, last).unwrap();
            }
            assert!(said.is_empty(), "run {run}: {} of {acknowledged} are lost", said.len());
            assert!(
                seen.len() as u64 <= acknowledged as u64 + THREADS,
                "run {run}: records nobody appended"
            );
            total += acknowledged;
        }
        assert!(
            total > 10_000,
            "the children were killed before they did anything: {total}"
        );
        println!("{KILLS} kills, {total} acknowledged records, none lost");
    }
}
