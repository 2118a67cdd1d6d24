//! Secondary indexes: rows by a key that several rows may share.

use super::{
    map::Map,
    record::{
        AddressLink, ContractGrant, Conviction, DisclosureGrant, Membership, OrgUserRecord, PastContract, Quarantine,
        Reservation, RetiredContract, Suspension, TxVisibility,
    },
};
use gw_types::{
    Address, ContractId, ConvictionId, DisclosureGrantId, GrantId, LinkId, MembershipId, OrgUserRecordId, QuarantineId,
    ReservationId, SuspensionId, UserId, VisibilityId,
};
use std::{borrow::Borrow, hash::Hash, sync::Arc};

/// A row with an id.
pub(super) trait Row: Clone {
    type Id: Eq + Ord + Hash + Copy;

    fn id(&self) -> Self::Id;
}

macro_rules! rows {
    ($($row:ty => $id:ty),* $(,)?) => {$(
        impl Row for $row {
            type Id = $id;

            fn id(&self) -> $id {
                self.id
            }
        }
    )*};
}

rows! {
    Membership => MembershipId,
    OrgUserRecord => OrgUserRecordId,
    Arc<ContractGrant> => GrantId,
    AddressLink => LinkId,
    EndedLink => LinkId,
    Reservation => ReservationId,
    Arc<TxVisibility> => VisibilityId,
    Arc<Suspension> => SuspensionId,
    Arc<Quarantine> => QuarantineId,
    Arc<Conviction> => ConvictionId,
    Arc<DisclosureGrant> => DisclosureGrantId,
    RetiredContract => ContractId,
}

impl Row for Arc<PastContract> {
    type Id = ContractId;

    fn id(&self) -> ContractId {
        self.contract.id
    }
}

/// An address link that ended. Its user is not kept: only the fact that the address was linked matters (HD13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedLink {
    pub(super) id: LinkId,
}

/// The rows of one key, in the order of their ids. Most keys have one row, which needs no list.
#[derive(Clone, Debug, PartialEq)]
enum Rows<V> {
    One(V),
    Many(Arc<[V]>),
}

impl<V> Rows<V> {
    fn as_slice(&self) -> &[V] {
        match self {
            Self::One(row) => std::slice::from_ref(row),
            Self::Many(rows) => rows,
        }
    }
}

/// Rows by a key.
#[derive(Clone, Debug)]
struct ByKey<K, V> {
    rows: Map<K, Rows<V>>,
}

impl<K, V> Default for ByKey<K, V> {
    fn default() -> Self {
        Self { rows: Map::default() }
    }
}

impl<K: Eq + Hash, V: PartialEq> PartialEq for ByKey<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl<K: Eq + Hash + Clone, V: Row> ByKey<K, V> {
    fn get(&self, key: impl Borrow<K>) -> &[V] {
        self.rows.get(key.borrow()).map_or(&[], Rows::as_slice)
    }

    /// Adds a row whose id the key does not have yet.
    fn add(&mut self, key: K, row: V) {
        let mut rows = self.get(&key).to_vec();
        rows.insert(rows.partition_point(|other| other.id() < row.id()), row);
        self.set(key, rows);
    }

    fn remove(&mut self, key: K, id: V::Id) {
        let rows = self.get(&key).iter().filter(|row| row.id() != id).cloned().collect();
        self.set(key, rows);
    }

    fn set(&mut self, key: K, mut rows: Vec<V>) {
        match (rows.pop(), rows.is_empty()) {
            (None, _) => self.rows.remove(&key),
            (Some(only), true) => self.rows.insert(key, Rows::One(only)),
            (Some(last), false) => {
                rows.push(last);
                self.rows.insert(key, Rows::Many(rows.into()));
            }
        }
    }
}

/// Rows by id and by one key.
#[derive(Clone, Debug)]
pub(super) struct Index<K, V: Row> {
    keys: Map<V::Id, K>,
    rows: ByKey<K, V>,
}

impl<K, V: Row> Default for Index<K, V> {
    fn default() -> Self {
        Self {
            keys: Map::default(),
            rows: ByKey::default(),
        }
    }
}

impl<K: Eq + Hash, V: Row + PartialEq> PartialEq for Index<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys && self.rows == other.rows
    }
}

impl<K: Eq + Hash + Clone, V: Row> Index<K, V> {
    /// The rows of a key.
    pub(super) fn get(&self, key: impl Borrow<K>) -> &[V] {
        self.rows.get(key)
    }

    /// The row with this id.
    pub(super) fn find(&self, id: V::Id) -> Option<&V> {
        let key = self.keys.get(&id)?;
        self.rows.get(key).iter().find(|row| row.id() == id)
    }

    /// Every row, in no particular order.
    pub(super) fn rows(&self) -> impl Iterator<Item = &V> {
        self.rows.rows.values().flat_map(Rows::as_slice)
    }

    /// The key of every row, in no particular order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.keys.values()
    }

    /// Replaces the row with this id, or removes it if `row` is `None`.
    pub(super) fn put(&mut self, id: V::Id, row: Option<(K, V)>) {
        if let Some(old) = self.keys.get(&id).cloned() {
            self.rows.remove(old, id);
            self.keys.remove(&id);
        }
        if let Some((key, row)) = row {
            self.keys.insert(id, key.clone());
            self.rows.add(key, row);
        }
    }
}

/// Address links: by user and by address.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Links {
    keys: Map<LinkId, (UserId, Address)>,
    by_user: ByKey<UserId, AddressLink>,
    by_address: ByKey<Address, AddressLink>,
}

impl Links {
    /// The links of a user.
    pub(super) fn by_user(&self, user: UserId) -> &[AddressLink] {
        self.by_user.get(user)
    }

    /// The links of an address.
    pub(super) fn by_address(&self, address: Address) -> &[AddressLink] {
        self.by_address.get(address)
    }

    /// Replaces the link with this id, or removes it if `link` is `None`.
    pub(super) fn put(&mut self, id: LinkId, link: Option<AddressLink>) {
        if let Some((user, address)) = self.keys.get(&id).copied() {
            self.by_user.remove(user, id);
            self.by_address.remove(address, id);
            self.keys.remove(&id);
        }
        if let Some(link) = link {
            self.keys.insert(id, (link.user, link.address));
            self.by_user.add(link.user, link);
            self.by_address.add(link.address, link);
        }
    }
}
