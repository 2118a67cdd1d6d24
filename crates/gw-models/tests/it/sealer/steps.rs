//! What sealers, mutations, calls and faults do to the stores: the steps of the model, and what must hold after each.

use super::{
    ADMIN, ALL, Audit, Known, Left, ONCE, Policy, Record, Rules, STREAMS, Sealer, Sizes, Stage, State, Step, TOLD,
};
use stateright::{Model, Property};
use std::collections::BTreeSet;

impl Rules {
    /// Returns the first waiting row.
    fn waiting(self, state: &State, known: &Known) -> Option<Record> {
        let waits = |(record, sealed): &&(Record, bool)| {
            if self.by_row { !*sealed } else { record.0 > known.newest }
        };
        state.policy.rows.iter().find(waits).map(|(record, _)| *record)
    }

    fn may_forget(self, state: &State, (record, sealed): &(Record, bool)) -> bool {
        *sealed && (!self.compares_kept || state.is_sealed(ADMIN, record))
    }

    /// Returns ids above the highest sealed one that neither wait, nor are sealed, nor were named.
    fn absent(self, state: &State, known: &Known) -> Vec<u8> {
        let last = state.policy.last_id.max(state.outside);
        let is_there = |id: u8| {
            state.policy.rows.iter().any(|(row, _)| row.0 == id)
                || state.audit.chains[ADMIN].iter().any(|entry| entry.0 == id)
        };
        let ids = known.newest + 1..=last;
        if self.by_row {
            ids.filter(|id| !is_there(*id) && !state.named.contains(id)).collect()
        } else {
            Vec::new()
        }
    }

    /// Whether a stream holds up what comes after it in a step of the sealer.
    fn holds_up(self, state: &State, stream: usize) -> bool {
        let chain = STREAMS[stream];
        let waits = state.marks[stream] < state.journal[stream].len();
        let fits = state.audit.jammed != Some(chain) && state.audit.chains[chain].len() >= state.marks[stream];
        !self.independent && waits && !fits
    }

    /// Returns the sealers' possible steps on one chain; empty if they rest.
    fn work(self, state: &State, chain: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.independent && state.audit.jammed == Some(chain) && state.blocked != Some(chain) {
            steps.push(Step::Alarm(chain));
        }
        match chain {
            ADMIN => self.work_on_outbox(state, &mut steps),
            _ => self.work_on_stream(state, chain - 1, &mut steps),
        }
        steps
    }

    fn work_on_outbox(self, state: &State, steps: &mut Vec<Step>) {
        // Attempts to continue an altered chain change nothing.
        if state.audit.jammed == Some(ADMIN) || (0..2).any(|stream| self.holds_up(state, stream)) {
            return;
        }
        let held = state.sealers.iter().any(|sealer| sealer.fence.is_some());
        for (index, sealer) in state.sealers.iter().enumerate() {
            let Some(known) = &sealer.known else {
                if !held {
                    steps.push(Step::Claim { sealer: index });
                }
                continue;
            };
            match sealer.stage {
                Stage::Rest => {
                    if self.waiting(state, known).is_some() || !self.absent(state, known).is_empty() {
                        steps.push(Step::Look { sealer: index });
                    }
                    let stored = &state.audit.chains[ADMIN];
                    let stands = known.chain == *stored;
                    let lacks = state
                        .policy
                        .rows
                        .iter()
                        .any(|(row, sealed)| *sealed && !stored.contains(row));
                    if (self.compares_live && !stands) || (self.compares_kept && lacks) {
                        steps.push(Step::Compare { sealer: index });
                    }
                }
                Stage::Insert(_) => steps.push(Step::Insert { sealer: index }),
                Stage::ReadBack(_) => steps.push(Step::ReadBack { sealer: index }),
                Stage::Mark(_) => steps.push(Step::Mark { sealer: index }),
            }
        }
    }

    fn work_on_stream(self, state: &State, stream: usize, steps: &mut Vec<Step>) {
        if (0..stream).any(|before| self.holds_up(state, before)) {
            return;
        }
        let stored = state.audit.chains[STREAMS[stream]].len();
        let jammed = state.audit.jammed == Some(STREAMS[stream]);
        if state.inserted[stream] {
            steps.push(Step::MarkOfStream(stream));
        } else if self.compares_live && stored < state.marks[stream] {
            steps.push(Step::CompareStream(stream));
        } else if !jammed && stored >= state.marks[stream] && state.marks[stream] < state.journal[stream].len() {
            steps.push(Step::InsertOfStream(stream));
        }
    }

    /// Gives the chain to a sealer.
    fn claim(self, state: &mut State, index: usize) {
        state.audit.fence += 1;
        state.audit.holder = index;
        for other in &mut state.sealers {
            // The other sealer only loses its lease; it still tries the step that it has started.
            if other.stage == Stage::Rest {
                *other = Sealer::default();
            }
        }
        let chain = state.audit.chains[ADMIN].clone();
        if self.by_row {
            for (row, sealed) in &mut state.policy.rows {
                *sealed &= chain.contains(row);
            }
        }
        let newest = chain.iter().map(|entry| entry.0).max().unwrap_or(0);
        if self.by_row {
            state.raise_ids(newest);
        }
        let known = Known { chain, newest };
        state.sealers[index] = Sealer {
            fence: Some(state.audit.fence),
            known: Some(known),
            stage: Stage::Rest,
        };
    }

    fn look(self, state: &mut State, index: usize) -> Option<()> {
        let known = state.sealers[index].known.clone()?;
        state.named.extend(self.absent(state, &known));
        if let Some(row) = self.waiting(state, &known) {
            let is_sealed = self.by_row && state.audit.chains[ADMIN].contains(&row);
            state.sealers[index].stage = if is_sealed {
                Stage::Mark(row)
            } else {
                Stage::Insert(row)
            };
        }
        Some(())
    }

    fn insert(self, state: &mut State, index: usize, keeps: bool) -> Option<()> {
        let Sealer {
            fence,
            known: Some(mut known),
            stage: Stage::Insert(row),
        } = state.sealers[index].clone()
        else {
            return None;
        };
        let fits = fence == Some(state.audit.fence)
            && (!self.compares_holder || state.audit.holder == index)
            && known.chain == state.audit.chains[ADMIN]
            && state.audit.jammed != Some(ADMIN);
        if !fits {
            state.sealers[index] = Sealer::default();
            return Some(());
        }
        if keeps {
            state.audit.chains[ADMIN].push(row);
        }
        known.chain.push(row);
        known.newest = known.newest.max(row.0);
        let stage = if self.reads_back {
            Stage::ReadBack(row)
        } else {
            Stage::Mark(row)
        };
        state.sealers[index] = Sealer {
            fence,
            known: Some(known),
            stage,
        };
        Some(())
    }

    fn mark(self, state: &mut State, index: usize) -> Option<()> {
        let Stage::Mark(row) = state.sealers[index].stage else {
            return None;
        };
        if self.by_row {
            state
                .policy
                .rows
                .iter_mut()
                .filter(|(known, _)| *known == row)
                .for_each(|(_, sealed)| *sealed = true);
        } else {
            state.policy.rows.retain(|(known, _)| known.0 > row.0);
        }
        state.sealers[index].stage = Stage::Rest;
        Some(())
    }
}

impl State {
    /// Raises the ids of a policy store that has issued fewer ids than are known, and names the missing ones in an
    /// alarm.
    fn raise_ids(&mut self, sealed: u8) {
        let last = sealed.max(self.outside);
        self.named.extend(self.policy.last_id + 1..=last);
        self.policy.last_id = self.policy.last_id.max(last);
    }

    fn stop(&mut self, rules: Rules, sealer: usize) {
        self.sealers[sealer] = Sealer::default();
        // The journal belongs to the first instance, and is compared with the store at start.
        if sealer == 0 {
            self.inserted = [false; 2];
            for (stream, chain) in STREAMS.into_iter().enumerate() {
                self.marks[stream] = self.audit.chains[chain].len().min(self.journal[stream].len());
            }
        }
        if rules.raises_before_serving {
            self.raise_ids(0);
        }
    }

    fn is_sealed(&self, chain: usize, record: &Record) -> bool {
        self.audit.chains[chain].contains(record)
    }
}

impl Model for Rules {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let Sizes {
            mutations,
            calls,
            crashes,
            takeovers,
            policy_restores,
            audit_restores,
            phantoms,
            jams,
            forgets,
        } = self.sizes;
        vec![State {
            policy: Policy {
                rows: Vec::new(),
                last_id: 0,
            },
            policy_backup: None,
            audit: Audit {
                chains: [const { Vec::new() }; 3],
                fence: 0,
                holder: 0,
                jammed: None,
            },
            audit_backup: None,
            journal: [const { Vec::new() }; 2],
            marks: [0; 2],
            inserted: [false; 2],
            sealers: [Sealer::default(), Sealer::default()],
            outside: 0,
            acknowledged: BTreeSet::new(),
            named: BTreeSet::new(),
            blocked: None,
            next: 0,
            left: Left {
                mutations,
                calls,
                crashes,
                takeovers,
                policy_restores,
                audit_restores,
                phantoms,
                jams,
                forgets,
            },
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let left = &state.left;
        if left.mutations > 0 {
            steps.push(Step::Mutate);
        }
        steps.extend((0..2).filter(|stream| left.calls[*stream] > 0).map(Step::Call));
        if left.policy_restores > 0 {
            steps.push(if state.policy_backup.is_none() {
                Step::BackUpPolicy
            } else {
                Step::RestorePolicy
            });
        }
        if left.audit_restores > 0 {
            steps.push(if state.audit_backup.is_none() {
                Step::BackUpAudit
            } else {
                Step::RestoreAudit
            });
        }
        if left.jams > 0 && state.audit.jammed.is_none() {
            steps.extend((0..3).map(Step::Jam));
        }
        if left.forgets > 0 && state.policy.rows.iter().any(|row| self.may_forget(state, row)) {
            steps.push(Step::Forget);
        }
        for sealer in 0..2 {
            let idle = state.sealers[sealer] == Sealer::default() && sealer == 1;
            if left.crashes > 0 && !idle {
                steps.push(Step::Crash { sealer });
            }
            if left.takeovers > 0 && state.sealers[1 - sealer].fence.is_some() {
                steps.push(Step::Claim { sealer });
            }
        }
        for chain in 0..3 {
            for step in self.work(state, chain) {
                match step {
                    Step::Insert { sealer } if left.phantoms > 0 => steps.push(Step::Phantom { sealer }),
                    Step::InsertOfStream(stream) if left.phantoms > 0 => steps.push(Step::PhantomOfStream(stream)),
                    _ => {}
                }
                steps.push(step);
            }
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Mutate => {
                state.left.mutations -= 1;
                state.next += 1;
                state.policy.last_id += 1;
                let record = (state.policy.last_id, state.next);
                state.policy.rows.push((record, false));
                state.outside = state.outside.max(record.0);
                state.acknowledged.insert(record);
            }
            Step::Call(stream) => {
                state.left.calls[stream] -= 1;
                state.next += 1;
                // Ids of streams are separate from those of rows.
                state.journal[stream].push((100, state.next));
            }
            Step::BackUpPolicy => state.policy_backup = Some(state.policy.clone()),
            Step::BackUpAudit => state.audit_backup = Some(state.audit.clone()),
            Step::RestorePolicy => {
                state.left.policy_restores -= 1;
                state.policy = state.policy_backup.take()?;
                state.stop(*self, 0);
                state.stop(*self, 1);
            }
            Step::RestoreAudit => {
                state.left.audit_restores -= 1;
                state.audit = state.audit_backup.take()?;
            }
            Step::Jam(chain) => {
                state.left.jams -= 1;
                state.audit.jammed = Some(chain);
            }
            Step::Forget => {
                state.left.forgets -= 1;
                let row = state.policy.rows.iter().position(|row| self.may_forget(&state, row))?;
                state.policy.rows.remove(row);
            }
            Step::Crash { sealer } => {
                state.left.crashes -= 1;
                state.stop(*self, sealer);
            }
            Step::Claim { sealer } => {
                if state.sealers.iter().any(|other| other.fence.is_some()) {
                    state.left.takeovers -= 1;
                }
                self.claim(&mut state, sealer);
            }
            Step::Look { sealer } => self.look(&mut state, sealer)?,
            Step::Insert { sealer } => self.insert(&mut state, sealer, true)?,
            Step::Phantom { sealer } => {
                state.left.phantoms -= 1;
                self.insert(&mut state, sealer, false)?;
            }
            Step::ReadBack { sealer } => {
                let Stage::ReadBack(row) = state.sealers[sealer].stage else {
                    return None;
                };
                if state.audit.chains[ADMIN].contains(&row) {
                    state.sealers[sealer].stage = Stage::Mark(row);
                } else {
                    state.sealers[sealer] = Sealer::default();
                }
            }
            Step::Mark { sealer } => self.mark(&mut state, sealer)?,
            Step::Compare { sealer } => state.sealers[sealer] = Sealer::default(),
            Step::InsertOfStream(stream) => {
                let (chain, mark) = (&mut state.audit.chains[STREAMS[stream]], state.marks[stream]);
                if chain.len() == mark {
                    chain.push(state.journal[stream][mark]);
                }
                state.inserted[stream] = true;
            }
            Step::PhantomOfStream(stream) => {
                state.left.phantoms -= 1;
                state.inserted[stream] = true;
            }
            Step::MarkOfStream(stream) => {
                state.inserted[stream] = false;
                if !self.reads_back || state.audit.chains[STREAMS[stream]].len() > state.marks[stream] {
                    state.marks[stream] += 1;
                }
            }
            Step::CompareStream(stream) => state.marks[stream] = state.audit.chains[STREAMS[stream]].len(),
            Step::Alarm(chain) => state.blocked = Some(chain),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONCE, |_, state: &State| {
                state
                    .audit
                    .chains
                    .iter()
                    .all(|chain| chain.iter().collect::<BTreeSet<_>>().len() == chain.len())
            }),
            Property::always(ALL, |rules: &Self, state: &State| {
                let rests = |chain| rules.work(state, chain).is_empty() && state.audit.jammed != Some(chain);
                let admin = || {
                    let mut due = state
                        .acknowledged
                        .iter()
                        .filter(|record| !state.named.contains(&record.0));
                    due.all(|record| state.is_sealed(ADMIN, record))
                };
                let stream = |stream: usize| {
                    state.journal[stream]
                        .iter()
                        .all(|record| state.is_sealed(STREAMS[stream], record))
                };
                (!rests(ADMIN) || admin()) && (0..2).all(|index| !rests(STREAMS[index]) || stream(index))
            }),
            Property::always(TOLD, |rules: &Self, state: &State| match state.audit.jammed {
                Some(chain) => !rules.work(state, chain).is_empty() || state.blocked == Some(chain),
                None => true,
            }),
        ]
    }
}
