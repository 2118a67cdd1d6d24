//! Rule 11 and decision 10 with a killed process: a child process appends in many threads and is killed at any moment.
//!
//! This file has its own `main` because it is both the parent and, with an argument, the child. The child prints a
//! record's name only after `append` has returned. All records whose names the parent has read when the child is dead
//! must be in the journal.

fn main() {
    #[cfg(test)]
    kill::main(&std::env::args().skip(1).collect::<Vec<_>>());
}

#[cfg(test)]
mod kill {
    use gw_audit::{AccessRecord, Chain, Content, Entry, Record, Stream};
    use gw_journal::{Journal, JournalConfig};
    use gw_types::{
        Seconds,
        testing::{ManualClock, SeededEntropy},
    };
    use std::collections::HashMap;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::sync::Arc;

    const THREADS: u64 = 4;
    const KILLS: u64 = 20;

    fn open(dir: &Path, run: u64) -> Journal {
        let options = JournalConfig {
            dir: dir.to_owned(),
            holder: "the kill test".to_owned(),
            cluster: "test".to_owned(),
            checkpoint_key: [7; 32],
            max_bytes: 1 << 30,
            segment_bytes: 256 << 10,
            retain_bytes: 1 << 20,
            retain_for: Seconds(3600),
        };
        let (clock, entropy) = (
            Arc::new(ManualClock::default()),
            Arc::new(SeededEntropy::new(run << 40)),
        );
        let (journal, recovery) = Journal::open(options, clock, entropy).unwrap();
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

    /// Appends until the process is killed; prints one line for each acknowledged record.
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

    /// Starts a child, kills it after it has printed a number of lines that grows with `run`, and returns the numbers
    /// of all acknowledged records by name.
    fn kill_one(dir: &Path, run: u64) -> HashMap<String, u64> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", dir.to_str().unwrap(), &run.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        // The first child is killed immediately, the last one after many fsyncs and segments.
        let lines = run * run * 17;
        let mut text = String::new();
        for _ in 0..lines {
            output.read_line(&mut text).unwrap();
        }
        child.kill().unwrap();
        output.read_to_string(&mut text).unwrap();
        assert!(!child.wait().unwrap().success());
        // The last line may have been cut off by the kill.
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let pair = |line: &str| {
            let (name, seq) = line.split_once(' ').unwrap();
            (name.to_owned(), seq.parse().unwrap())
        };
        complete.lines().map(pair).collect()
    }

    fn parent() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let mut chain: Option<Chain> = None;
        let mut total = 0;
        for run in 0..KILLS {
            let mut missing = kill_one(dir, run);
            let acknowledged = missing.len();
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
                    // The chain rejects gaps, duplicates and a wrong order, also from one run to the next.
                    match &mut chain {
                        None => chain = Some(Chain::replay(entry.header.chain, &record.bytes).unwrap().0),
                        Some(chain) => assert!(chain.accept(&record.bytes).is_ok(), "run {run}"),
                    }
                    if let Content::Record(Record::Access(access)) = entry.content {
                        let name = access.correlation_id.unwrap().into_owned();
                        if let Some(seq) = missing.remove(&name) {
                            assert_eq!(seq, entry.header.seq, "{name}");
                        }
                        assert!(seen.insert(name, ()).is_none(), "twice");
                    }
                }
                journal.mark_sealed(Stream::Access, last).unwrap();
            }
            assert!(
                missing.is_empty(),
                "run {run}: {} of {acknowledged} are lost",
                missing.len()
            );
            assert!(
                seen.len() as u64 <= acknowledged as u64 + THREADS,
                "run {run}: the journal has records that were not appended"
            );
            total += acknowledged;
        }
        assert!(total > 10_000, "the children were killed too early: {total}");
        println!("{KILLS} kills, {total} acknowledged records, none lost");
    }
}
