//! Whether and how one log is shown to one viewer: to each of its persons by their own rights, then what both see (HD7).

use super::{
    super::{
        HIDDEN_FROM_TARGET, Parties,
        scan::{Malformed, Scan},
    },
    RunLog,
    record::{Log, LogOrder, is_masked},
};
use crate::{
    knobs::{DynamicFields, NoAbi, TransactionLogs},
    sealed::Disclosed,
    snapshot::{EventRule, Moment, MustBe, ParamRule, Snapshot},
    visibility::{Admitted, EventRights, Person, Viewer},
};
use alloy_primitives::{Address, B256};
use gw_evm::{
    TopicFilter,
    abi::{
        EventShape, Held, Walk, WordKind, clean_address, possible_address, possible_addresses, well_known, zero_opaque,
        zero_word,
    },
};
use gw_types::{ContractId, OrgId};
use std::collections::HashMap;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// What the viewer is to the transaction of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TxRight {
    /// Owner of its sender or receiver.
    pub(super) is_participant: bool,
    /// Listed in its `visibleTo`.
    pub(super) is_recipient: bool,
}

/// The same of each of the persons a viewer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TxRights {
    pub(super) person: TxRight,
    beside: TxRight,
}

impl TxRights {
    /// What `right` says of each.
    pub(super) fn of<'s>(viewer: &Viewer<'s>, right: impl Fn(&Person<'s>) -> TxRight) -> Self {
        Self {
            person: right(viewer.person()),
            beside: viewer.operator().map(right).unwrap_or_default(),
        }
    }
}

/// How a log is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rendering {
    /// Not at all.
    Dropped,
    /// As the node wrote it.
    Whole,
    /// With slots zeroed.
    Masked {
        /// Topic positions, one bit each.
        topics: u8,
        /// The data to show, if not the log's own.
        data: Option<Vec<u8>>,
    },
}

impl Rendering {
    pub(super) const fn is_whole(&self) -> bool {
        matches!(self, Self::Whole)
    }

    /// Whether the log as rendered meets the criteria (HD1): a masked slot matches only the wildcard. As on every node,
    /// criteria longer than the topics never match.
    pub(super) fn matches(&self, log: &Log<'_>, criteria: &[TopicFilter]) -> bool {
        let masked = match self {
            Self::Dropped => return false,
            Self::Whole => 0,
            Self::Masked { topics, .. } => *topics,
        };
        let topics = log.topics();
        criteria.len() <= topics.len()
            && criteria
                .iter()
                .zip(topics)
                .enumerate()
                .all(|(position, (criterion, topic))| match criterion {
                    TopicFilter::Any => true,
                    TopicFilter::OneOf(words) => !is_masked(masked, position) && words.contains(topic),
                })
    }

    pub(super) fn write(&self, log: &Log<'_>, snapshot: &Snapshot, out: &mut String) -> Result<(), Malformed> {
        match self {
            Self::Dropped => {}
            Self::Whole => log.write_whole(log.shown_index(snapshot)?, out),
            Self::Masked { topics, data } => {
                log.write_masked(*topics, data.as_deref(), log.shown_index(snapshot)?, out);
            }
        }
        Ok(())
    }

    /// What two viewers both see. Nothing tells which of them a part is hidden from (HD40).
    fn meet(self, beside: Self) -> Self {
        match (self, beside) {
            (Self::Dropped, _) | (_, Self::Dropped) => Self::Dropped,
            (Self::Whole, other) | (other, Self::Whole) => other,
            (
                Self::Masked { topics, data },
                Self::Masked {
                    topics: more,
                    data: other,
                },
            ) => {
                let data = match (data, other) {
                    (Some(one), Some(other)) => Some(one.iter().zip(other).map(|(one, other)| one & other).collect()),
                    (one, other) => one.or(other),
                };
                Self::Masked {
                    topics: topics | more,
                    data,
                }
            }
        }
    }
}

/// Judges the logs of one answer for one viewer, resolving each emitter and each address once.
#[derive(Debug)]
pub(in crate::view) struct LogReader<'v, 's> {
    viewer: &'v Viewer<'s>,
    person: PersonReader<'v, 's>,
    beside: Option<PersonReader<'v, 's>>,
}

/// The same for one person.
#[derive(Debug)]
struct PersonReader<'v, 's> {
    viewer: &'v Person<'s>,
    emitters: Map<ContractId, EventRights<'s>>,
    levels: Levels<'v, 's>,
}

/// The logs of one receipt as they are shown.
#[derive(Debug)]
pub(in crate::view) struct LogsShown {
    /// As a list.
    pub(in crate::view) text: String,
    /// Whether the person alone sees any.
    pub(in crate::view) any_to_person: bool,
    /// Whether who is beside them sees any.
    pub(in crate::view) any_beside: bool,
}

/// Which addresses are Full, each asked for once.
#[derive(Debug)]
struct Levels<'v, 's> {
    viewer: &'v Person<'s>,
    known: Map<Address, bool>,
}

impl Levels<'_, '_> {
    fn sees(&mut self, address: Address) -> bool {
        *self.known.entry(address).or_insert_with(|| self.viewer.sees(address))
    }

    fn shows(&mut self, held: Held) -> bool {
        match held {
            Held::Nothing => true,
            // A word that may be an address is treated as one: testing whether somebody is known to have it would let
            // whoever can emit events find out who is (HD6, decision 50).
            Held::Address(address) | Held::Perhaps(address) => self.sees(address),
            Held::Dirty => false,
        }
    }
}

impl<'v, 's> LogReader<'v, 's> {
    pub(in crate::view) fn new(viewer: &'v Viewer<'s>) -> Self {
        Self {
            viewer,
            person: PersonReader::new(viewer.person()),
            beside: viewer.operator().map(PersonReader::new),
        }
    }

    pub(in crate::view) const fn viewer(&self) -> &'v Viewer<'s> {
        self.viewer
    }

    /// The logs of one receipt that the viewer sees.
    pub(in crate::view) fn logs_of(&mut self, parties: &Parties, list: &str) -> Result<LogsShown, Malformed> {
        let right = TxRights::of(self.viewer, |person| TxRight {
            is_participant: person.is_participant(parties.from, parties.to),
            is_recipient: person.is_recipient(parties.tx_hash),
        });
        let (mut out, mut order) = (String::from("["), LogOrder::default());
        let (mut any_to_person, mut any_beside) = (false, false);
        Scan::new(list).list(|scan| {
            let log = Log::read(scan, &mut order)?;
            if log.tx_hash != parties.tx_hash {
                return Err(Malformed);
            }
            let (own, beside) = self.renderings(&log, right, log.moment()?)?;
            any_to_person |= own != Rendering::Dropped;
            any_beside |= beside.as_ref().is_some_and(|beside| *beside != Rendering::Dropped);
            let shown = match beside {
                None => own,
                Some(beside) => own.meet(beside),
            };
            if shown != Rendering::Dropped && out.len() > 1 {
                out.push(',');
            }
            shown.write(&log, self.viewer.person().snapshot, &mut out)
        })?;
        out.push(']');
        Ok(LogsShown {
            text: out,
            any_to_person,
            any_beside,
        })
    }

    fn renderings(
        &mut self,
        log: &Log<'_>,
        right: TxRights,
        moment: Moment,
    ) -> Result<(Rendering, Option<Rendering>), Malformed> {
        let own = self.person.render(log, right.person, moment)?;
        let beside = self
            .beside
            .as_mut()
            .map(|beside| beside.render(log, right.beside, moment))
            .transpose()?;
        Ok((own, beside))
    }

    /// A log of a run that has not happened, if both see it. That it is hidden from the person is said only of contracts
    /// which the administrator beside them administers: nothing else tells of the person's rights elsewhere (HD40).
    pub(super) fn told(&mut self, log: &Log<'_>, right: TxRights) -> Result<Option<RunLog>, Malformed> {
        let (own, beside) = self.renderings(log, right, Moment::Now)?;
        let (hidden, snapshot) = (|text| Disclosed::constant(text), self.viewer.person().snapshot);
        let written = |rendering: &Rendering| {
            let mut out = String::new();
            rendering.write(log, snapshot, &mut out)?;
            // It is in no transaction yet.
            Ok(Disclosed::text(
                out.replace(&format!(",\"transactionHash\":\"{:#x}\"", B256::ZERO), ""),
            ))
        };
        let to_person = own != Rendering::Dropped;
        let shown = match (to_person, beside) {
            (true, None) => written(&own)?,
            (true, Some(Rendering::Dropped)) | (false, None | Some(Rendering::Dropped)) => return Ok(None),
            (true, Some(beside)) => written(&own.meet(beside))?,
            (false, Some(_)) if self.operator_administers(log.address) => hidden(HIDDEN_FROM_TARGET),
            (false, Some(_)) => return Ok(None),
        };
        Ok(Some(RunLog { shown, to_person }))
    }

    fn operator_administers(&self, emitter: Address) -> bool {
        self.viewer.operator().is_some_and(|operator| {
            operator
                .snapshot
                .contract(emitter)
                .is_some_and(|contract| operator.administers(contract.org))
        })
    }

    /// What both see of a log.
    pub(super) fn render(&mut self, log: &Log<'_>, right: TxRights) -> Result<Rendering, Malformed> {
        let (own, beside) = self.renderings(log, right, log.moment()?)?;
        Ok(match beside {
            None => own,
            Some(beside) => own.meet(beside),
        })
    }
}

impl<'v, 's> PersonReader<'v, 's> {
    fn new(viewer: &'v Person<'s>) -> Self {
        Self {
            viewer,
            emitters: Map::default(),
            levels: Levels {
                viewer,
                known: Map::default(),
            },
        }
    }

    /// Section 6.1. Whoever sees a log whole by one row sees it whole; the rows that admit it masked come after.
    fn render(&mut self, log: &Log<'_>, right: TxRight, moment: Moment) -> Result<Rendering, Malformed> {
        let knobs = self.viewer.knobs;
        // HD28: what may be loot is told to nobody, whoever sent the transaction.
        if self.viewer.is_closed(log.address) || self.viewer.withholds(log.tx_hash) {
            return Ok(Rendering::Dropped);
        }
        // Row 3: [S] participants see everything of their transactions.
        if right.is_participant && knobs.participant_logs == TransactionLogs::All {
            return Ok(Rendering::Whole);
        }
        // HD41: by the registration it was emitted under.
        let contract = self.viewer.snapshot.contract_at(log.address, moment);
        let rights = contract.map(|contract| {
            self.emitters
                .entry(contract.id)
                .or_insert_with(|| EventRights::of(self.viewer, contract))
        });
        let declared = rights
            .as_ref()
            .and_then(|rights| rights.contract.abi.as_deref()?.event(log.topics()));
        let standard = well_known(log.topics());
        let shape = standard.or(declared);
        let (levels, viewer) = (&mut self.levels, self.viewer);
        let is_standard = standard.is_some();
        let mut judged = Judged {
            log,
            shape,
            is_standard,
            declared,
            levels,
            viewer,
            data: None,
        };
        let zeroes_opaque = knobs.dynamic_fields != DynamicFields::Pass;
        let Some(rights) = rights.as_ref() else {
            // An emitter nobody registered, or ever did (HD27): only what was shared with the viewer (row 4).
            let retired = self.viewer.snapshot.retired(log.address).is_some();
            let is_shared = !retired && right.is_recipient && knobs.shared_logs == TransactionLogs::All;
            return if is_shared {
                judged.masked(zeroes_opaque)
            } else {
                Ok(Rendering::Dropped)
            };
        };
        let attests = rights.contract.events_allow_dynamic_payload;
        // Row 2: unlocked by the contract's owner (R29).
        if right.is_recipient && rights.contract.allow_visibleto_unlock && rights.is_insider {
            return Ok(Rendering::Whole);
        }
        // Row 1: [S] rule 8, the contract's data but not the wallets in it.
        if rights.is_org_admin {
            return judged.masked(false);
        }
        // Row 4: shared.
        if right.is_recipient && knobs.shared_logs == TransactionLogs::All {
            return judged.masked(zeroes_opaque && !attests);
        }
        // Row 5: no grant. K3 and K5: what cannot be masked.
        let is_opaque = declared.is_some_and(EventShape::has_opaque) && !attests;
        let is_unreadable = (declared.is_none() && knobs.no_abi == NoAbi::Drop)
            || (is_opaque && knobs.dynamic_fields == DynamicFields::Drop);
        if !rights.is_granted || is_unreadable {
            return Ok(Rendering::Dropped);
        }
        // Row 7: event rules; the strict K2 asks no more than a grant.
        let is_admitted = right.is_participant
            || match &rights.events {
                Admitted::All => true,
                Admitted::Only(rules) => {
                    let has_abi = rights.contract.abi.is_some();
                    let mut admitted = false;
                    for rule in rules {
                        admitted |= judged.meets(rule, right.is_recipient, has_abi, rights.contract.org)?;
                    }
                    admitted
                }
            };
        if is_admitted {
            judged.masked(zeroes_opaque && !attests)
        } else {
            Ok(Rendering::Dropped)
        }
    }
}

/// A log under judgement.
struct Judged<'l, 'a, 'v, 's> {
    log: &'l Log<'a>,
    /// The standard's shape, else the declared one.
    shape: Option<&'l EventShape>,
    /// Whether the shape is the standard's: its numbers are numbers.
    is_standard: bool,
    /// What the emitter's ABI says it is.
    declared: Option<&'l EventShape>,
    levels: &'l mut Levels<'v, 's>,
    viewer: &'v Person<'s>,
    data: Option<Vec<u8>>,
}

impl Judged<'_, '_, '_, '_> {
    fn data(&mut self) -> Result<&[u8], Malformed> {
        if self.data.is_none() {
            self.data = Some(self.log.data()?);
        }
        self.data.as_deref().ok_or(Malformed)
    }

    /// R19 to R22: what is not Full becomes zero, in topics and data. A declared shape adds to what is taken for an
    /// address and takes nothing away (HD31): only the standards say that a large number is none.
    fn masked(mut self, zeroes_opaque: bool) -> Result<Rendering, Malformed> {
        let mut masked = 0u8;
        for (position, topic) in self.log.topics().iter().enumerate() {
            let held = self
                .shape
                .map_or_else(|| Held::undeclared(topic), |shape| shape.topic(position, topic));
            if !self.levels.shows(held) {
                masked |= 1 << position;
            }
        }
        let shape = self.shape;
        let bytes = self.data()?;
        let found = match shape.map(|shape| shape.data(bytes)) {
            Some(Ok(found)) => found,
            None if bytes.len() % 32 == 0 => Walk::default(),
            // What cannot be read, or is no list of words, cannot be masked in part.
            Some(Err(_)) | None => {
                let zeroes = vec![0; bytes.len()];
                return Ok(Self::rendering(masked, Some(zeroes)));
            }
        };
        let mut slots = found.addresses;
        if !self.is_standard {
            slots.extend(found.perhaps);
            slots.extend(possible_addresses(self.data()?));
        }
        let levels = &mut self.levels;
        slots.retain(|slot| !levels.sees(slot.address));
        let hidden: Vec<usize> = slots.into_iter().map(|slot| slot.offset).collect();
        let opaque = if zeroes_opaque { found.opaque.as_slice() } else { &[] };
        if hidden.is_empty() && opaque.is_empty() {
            return Ok(Self::rendering(masked, None));
        }
        let mut bytes = self.data.take().ok_or(Malformed)?;
        hidden.iter().for_each(|offset| zero_word(&mut bytes, *offset));
        opaque.iter().for_each(|content| zero_opaque(&mut bytes, *content));
        Ok(Self::rendering(masked, Some(bytes)))
    }

    fn rendering(topics: u8, data: Option<Vec<u8>>) -> Rendering {
        if topics == 0 && data.is_none() {
            Rendering::Whole
        } else {
            Rendering::Masked { topics, data }
        }
    }

    /// Whether the log meets an event rule. Parameter rules are alternatives; a shared log needs none of them
    /// (section 6.1). An anonymous event meets no rule.
    fn meets(&mut self, rule: &EventRule, is_recipient: bool, has_abi: bool, org: OrgId) -> Result<bool, Malformed> {
        let is_anonymous = self.declared.is_some_and(EventShape::is_anonymous);
        if self.log.topics().first() != Some(&rule.topic0) || is_anonymous {
            return Ok(false);
        }
        let mut met = rule.params.is_empty() || is_recipient;
        for param in &rule.params {
            met = met || self.holds(param, has_abi, org)?;
        }
        Ok(met)
    }

    /// Whether a parameter is what it must be, as far as the viewer may see it (HD1): a word that would be masked
    /// equals no constant.
    fn holds(&mut self, param: &ParamRule, has_abi: bool, org: OrgId) -> Result<bool, Malformed> {
        let (word, held, kind) = match self.shape {
            Some(shape) => {
                let log = self.log;
                let Some(found) = shape.input(param.index, log.topics(), self.data()?) else {
                    return Ok(false);
                };
                let held = match found.kind {
                    WordKind::Address => found.address().map_or(Held::Dirty, Held::Address),
                    WordKind::Function => found
                        .word
                        .first_chunk()
                        .map_or(Held::Dirty, |bytes| Held::Address(bytes.into())),
                    // As it is shown: a standard's number is one, another word is what it looks like (HD31).
                    WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_)
                        if self.is_standard && !shape.is_indexed(param.index) =>
                    {
                        Held::Nothing
                    }
                    WordKind::Uint(_) | WordKind::Int(_) | WordKind::Bool | WordKind::FixedBytes(_) => {
                        Held::undeclared(&found.word)
                    }
                };
                (found.word, held, Some(found.kind))
            }
            // The ABI does not explain this log: nothing is known about its parameters.
            None if has_abi => return Ok(false),
            None => {
                let topic = param
                    .index
                    .checked_add(1)
                    .and_then(|position| self.log.topics().get(position));
                let Some(topic) = topic else { return Ok(false) };
                (
                    *topic,
                    possible_address(topic).map_or(Held::Nothing, Held::Address),
                    None,
                )
            }
        };
        Ok(match &param.must_be {
            MustBe::Own => self.is_own(&word, held),
            MustBe::Org => self.levels.shows(held) && self.is_of(org, held),
            MustBe::Word(must_be) => word == *must_be && self.levels.shows(held),
            MustBe::OneOf(words) => words.contains(&word) && self.levels.shows(held),
            // What is masked compares with nothing, `ne` included.
            MustBe::Compare(comparison, other) => comparison.holds(kind, &word, other) && self.levels.shows(held),
        })
    }

    /// Whether the word is an address of the organization. Without an ABI it only looks like one.
    fn is_of(&self, org: OrgId, held: Held) -> bool {
        match held {
            Held::Address(address) => self.viewer.belongs(org, address),
            Held::Nothing | Held::Perhaps(_) | Held::Dirty => false,
        }
    }

    fn is_own(&self, word: &B256, held: Held) -> bool {
        match held {
            Held::Address(address) => clean_address(word) == Some(address) && self.viewer.owns(address),
            Held::Nothing | Held::Perhaps(_) | Held::Dirty => false,
        }
    }
}
