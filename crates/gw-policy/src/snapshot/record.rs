//! The policy rows that a snapshot holds.

use alloy_primitives::keccak256;
use gw_evm::{
    CustomMethodNames, MethodSet,
    abi::{ContractAbi, WordKind},
};
use gw_types::{
    Address, AllowedTenantId, ApprovedCodeId, B256, Claims, ContractId, ConvictionId, DisclosureGrantId, ExternalId,
    GrantId, GroupId, Level, LinkId, MembershipId, OrgId, OrgUserRecordId, PersonalUrlId, QuarantineId, ReservationId,
    SealedGrantSecret, Secret, SharedInfraId, SuspensionId, TenantId, Timestamp, ToggleId, TokenId, UserId,
    VisibilityId,
};
use std::sync::Arc;

/// A person or machine (spec/20 A9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Row id.
    pub id: UserId,
    /// DID or directory identity.
    pub external_id: ExternalId,
    /// Whether KYC is completed.
    pub kyc: bool,
    /// Whether the account is banned.
    pub banned: bool,
    /// The directory tenant that vouches for the user. The user is excluded unless the tenant is allowed (TK-8).
    pub tenant: Option<TenantId>,
    /// Access tokens issued before this moment are invalid (ban, deletion, tenant removal).
    pub tokens_valid_from: Option<Timestamp>,
}

/// A directory tenant on the list of tenants that may vouch for users (spec/10 DS-7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllowedTenant {
    /// Row id.
    pub id: AllowedTenantId,
    /// The tenant.
    pub tenant: TenantId,
    /// Kept on the list, but its users are excluded for now.
    pub disabled: bool,
}

/// A personal RPC URL (HD17): its owner, its organization and its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalUrl {
    /// Row id.
    pub id: PersonalUrlId,
    /// SHA-256 of the secret in its path.
    pub secret: B256,
    /// The owner. Calls through the URL run as this user.
    pub user: UserId,
    /// The one organization that calls through the URL run in.
    pub org: OrgId,
    /// The scope: what the URL permits of the owner's rights.
    pub reach: UrlReach,
    /// When the URL was created.
    pub created_at: Timestamp,
    /// When the URL expires.
    pub expires_at: Timestamp,
}

/// The scope of a personal URL: which of its owner's rights it gives (PU-1). Every page that a wallet is connected to
/// can call through the wallet's URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlReach {
    /// What a wallet needs: chain data, own balance and nonce, gas, sends, own transactions.
    Wallet,
    /// Everything of [`UrlReach::Wallet`], and `eth_call` and `eth_getLogs` on these contracts.
    Contracts(Arc<[Address]>),
    /// Everything but traces.
    All,
}

/// An organization (A1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Organization {
    /// Row id.
    pub id: OrgId,
    /// Unique slug.
    pub slug: Arc<str>,
    /// Display name.
    pub name: Arc<str>,
    /// Whether this is the default or the anonymous organization.
    pub is_system: bool,
}

impl Organization {
    /// The default organization (A2). It does not count for a user who has another one (decision 40).
    pub const DEFAULT: OrgId = OrgId::fixed(1);
    /// The anonymous organization (A2).
    pub const ANONYMOUS: OrgId = OrgId::fixed(2);
}

/// A group of an organization (A4, A5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Row id.
    pub id: GroupId,
    /// The owning organization.
    pub org: OrgId,
    /// Slug, unique per organization.
    pub slug: Arc<str>,
    /// Whether members administer the organization.
    pub is_org_admin: bool,
    /// Whether members have read-only access to the administration of the organization.
    pub is_org_readonly_admin: bool,
    /// Whether this is the default or the anonymous group.
    pub is_system: bool,
}

impl Group {
    /// The default group (A2).
    pub const DEFAULT: GroupId = GroupId::fixed(1);
    /// The anonymous group (A2).
    pub const ANONYMOUS: GroupId = GroupId::fixed(2);
}

/// What a group's members may do (G1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupAccess {
    /// The group.
    pub group: GroupId,
    /// Granted methods.
    pub methods: MethodSet,
    /// Granted methods that are not in the method registry (G4).
    pub custom_methods: CustomMethodNames,
    /// Claims of the group.
    pub claims: Claims,
    /// When the access expires; `None` is never (G1).
    pub expires_at: Option<Timestamp>,
    /// The upstream API key that calls of the members use, encrypted as it is stored (G1).
    pub upstream_key: Option<Secret>,
}

impl GroupAccess {
    /// Whether the access has not expired.
    pub fn active(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| end > now)
    }
}

/// The membership of a user in a group (A7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Row id.
    pub id: MembershipId,
    /// The member.
    pub user: UserId,
    /// The group.
    pub group: GroupId,
    /// End of the membership; `None` is permanent.
    pub expires_at: Option<Timestamp>,
    /// Whether the member accepted the membership.
    pub state: MembershipState,
    /// Since when the membership is in this state.
    pub since: Timestamp,
}

/// Whether a member accepted a membership (HD32, decision 62).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MembershipState {
    /// The member accepted it, or a super admin confirmed it. Only an accepted membership gives the organization's
    /// administrators rights over the person.
    Accepted,
    /// Created by an organization for a person who had accepted no other organization. It gives the person the group's
    /// rights at once, until the person accepts another organization. It gives none while an earlier provisional
    /// membership of another organization counts.
    Provisional,
    /// Created by an organization for a person who had accepted another organization, or who had declined or left this
    /// one. It gives no rights.
    Invited,
}

impl Membership {
    /// The predicate of A8 on one row. Whether the membership counts also depends on other rows; see
    /// [`super::Snapshot::active_memberships`].
    pub fn active(&self, now: Timestamp) -> bool {
        self.state != MembershipState::Invited && !self.has_ended(now)
    }

    /// Whether the member accepted the membership and it has not ended.
    pub fn is_accepted(&self, now: Timestamp) -> bool {
        self.state == MembershipState::Accepted && !self.has_ended(now)
    }

    /// Whether the membership waits for the member's acceptance and has not ended.
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.state != MembershipState::Accepted && !self.has_ended(now)
    }

    /// Whether the membership has expired.
    pub fn has_ended(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }
}

/// The KYC and ban decisions of one organization about a person (RT24). They bind in that organization only. The key is
/// the external id, so that the row outlives the account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrgUserRecord {
    /// Row id.
    pub id: OrgUserRecordId,
    /// The organization.
    pub org: OrgId,
    /// The person.
    pub external_id: ExternalId,
    /// Whether the organization completed KYC of the person.
    pub kyc: bool,
    /// Whether the organization banned the person.
    pub banned: bool,
}

/// A registered contract (K1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Row id.
    pub id: ContractId,
    /// The owning organization.
    pub org: OrgId,
    /// Its address.
    pub address: Address,
    /// Since when the organization owns the contract: its registration, or an earlier deployment through the gateway
    /// (H1).
    pub since: Timestamp,
    /// Number of the first block that belongs to the organization, if another organization owned the contract before
    /// (HD41). `None`: every block belongs to the organization.
    pub owned_from: Option<u64>,
    /// Display name.
    pub name: Arc<str>,
    /// The user who deployed it through the gateway (K7).
    pub deployer: Option<UserId>,
    /// The effective ABI with resolved selectors: the uploaded one, else the built-in one of the token type (K1, R23).
    pub abi: Option<Arc<ContractAbi>>,
    /// Whether a `visibleTo` list may unlock the contract's logs (R29).
    pub allow_visibleto_unlock: bool,
    /// Whether the administrators attest that dynamic fields of its events contain no private data (K5).
    pub events_allow_dynamic_payload: bool,
    /// Whether frames below this contract are exempt from function rules (F5, HD4): its administrators vouch for the
    /// calls that it forwards.
    pub trusted_router: bool,
}

impl Contract {
    /// Whether the contract belonged to the organization at this moment (HD41).
    pub fn owned_at(&self, moment: Moment) -> bool {
        match (self.owned_from, moment) {
            (None, _) | (Some(_), Moment::Now) => true,
            (Some(first), Moment::Block(number)) => number >= first,
            (Some(_), Moment::Unknown) => false,
        }
    }
}

/// When something happened, to determine which organization owned a contract then (HD41).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Not in a block yet.
    Now,
    /// In the block with this number.
    Block(u64),
    /// In a block whose number the node did not report.
    Unknown,
}

/// A range of block numbers; the end is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockRange {
    /// The first block.
    pub start: u64,
    /// The first block after the range.
    pub end: u64,
}

impl BlockRange {
    /// All blocks.
    pub const ALL: Self = Self {
        start: 0,
        end: u64::MAX,
    };

    /// Whether the block is in the range.
    pub const fn contains(self, block: u64) -> bool {
        self.start <= block && block < self.end
    }
}

/// A registration that ended (HD41). The organization still sees what the contract did until then, by its members'
/// current rights and the grants as they were when the registration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastContract {
    /// The contract as it was registered.
    pub contract: Arc<Contract>,
    /// The grants on it.
    pub grants: Vec<Arc<ContractGrant>>,
    /// Number of the last block that belonged to the organization. `None`: this registration shows no block.
    pub owned_until: Option<u64>,
}

impl PastContract {
    /// Whether the contract belonged to the organization at this moment by this registration.
    pub fn owned_at(&self, moment: Moment) -> bool {
        match (self.owned_until, moment) {
            (Some(last), Moment::Block(number)) => number <= last && self.contract.owned_at(moment),
            (None, _) | (Some(_), Moment::Now | Moment::Unknown) => false,
        }
    }
}

/// A contract whose registration was deleted. Decisions still treat it as owned by its organization, and no member has
/// access to it (HD27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetiredContract {
    /// The id of the deleted registration.
    pub id: ContractId,
    /// Its address.
    pub address: Address,
    /// The organization it was registered to, which may have been deleted itself.
    pub org: OrgId,
    /// Since when the organization owned the contract.
    pub since: Timestamp,
    /// When the registration was deleted.
    pub retired_at: Timestamp,
}

/// A grant of disclosure: a user lets another person see the user's addresses (spec/30 §2.2 basis 9, spec/50 §2). A
/// grant that has ended stays until its secret is destroyed, so that its grantee can be told how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureGrant {
    /// Row id.
    pub id: DisclosureGrantId,
    /// The user whose addresses are disclosed.
    pub owner: UserId,
    /// The person who may see them. A user has to be signed in as this person.
    pub grantee: ExternalId,
    /// The organization that requested the disclosure. The grant counts only for its current members (R7).
    pub org: OrgId,
    /// When the owner approved it.
    pub granted_at: Timestamp,
    /// When it ends unless it is revoked.
    pub expires_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// Whether it covers addresses that the owner proved after the approval (HD8).
    pub include_future_addresses: bool,
    /// What it discloses.
    pub scope: DisclosureScope,
    /// The secret under which it names addresses (spec/50 rule 29), encrypted.
    pub secret: SealedGrantSecret,
}

impl DisclosureGrant {
    /// Whether it is in force at `now`: neither revoked nor past its end.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }
}

/// What a grant of disclosure covers. `None` does not restrict it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureScope {
    /// The level that the grant gives to the owner's addresses.
    pub level: Level,
    /// First and last block time of the rows that it covers.
    pub dates: Option<(Timestamp, Timestamp)>,
    /// Sender or receiver of the transactions that it covers.
    pub addresses: Option<Vec<Address>>,
    /// Classes of data and names of methods that it covers.
    pub methods: Option<Vec<String>>,
}

impl DisclosureScope {
    /// The scope that covers nothing: that of a stored row whose scope cannot be parsed.
    pub const fn nothing() -> Self {
        Self {
            level: Level::Hidden,
            dates: None,
            addresses: Some(Vec::new()),
            methods: Some(Vec::new()),
        }
    }

    /// Whether the grant covers an address itself, not only some rows or classes of data. Only then it gives a level
    /// outside of a row, and opens state and balances (HD8, R7a).
    pub const fn is_unrestricted(&self) -> bool {
        self.dates.is_none() && self.addresses.is_none() && self.methods.is_none()
    }
}

/// A contract that every organization may call (X6, spec/80 section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedInfra {
    /// Row id.
    pub id: SharedInfraId,
    /// Its address.
    pub address: Address,
    /// The code that the address had when it was tagged. `None`: any code is accepted.
    pub pin: Option<CodePin>,
    /// Whether code other than the pinned code was seen at the address. The tag then has no effect until an
    /// administrator reviews the code and pins it again.
    pub broken: bool,
}

/// Creation code that a super admin approved, with any constructor arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApprovedCode {
    /// Row id.
    pub id: ApprovedCodeId,
    /// keccak256 of the creation code without constructor arguments.
    pub hash: B256,
    /// Length of the creation code in bytes, without constructor arguments.
    pub size: u32,
}

/// The pinned code of a shared address; for a proxy, its own code and that of its implementation (HD9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePin {
    /// keccak256 of the code at the address.
    pub code: B256,
    /// keccak256 of the code of the implementation, if the address is a proxy.
    pub implementation: Option<B256>,
}

impl CodePin {
    /// Whether this is the pinned code of the address itself.
    pub fn is_code(&self, code: &[u8]) -> bool {
        !code.is_empty() && keccak256(code) == self.code
    }

    /// Whether this is the pinned code of the implementation.
    pub fn is_implementation(&self, code: &[u8]) -> bool {
        !code.is_empty() && self.implementation == Some(keccak256(code))
    }
}

/// A switch that a platform administrator may override for a limited time (X9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SystemToggle {
    /// Whether `eth_call` is traced. Sends are always traced.
    EthCallTracing,
    /// Whether frames into contracts of the caller's own organization also need a grant (X8).
    IntraOrgGrantTracing,
}

impl SystemToggle {
    /// All toggles.
    pub const ALL: [Self; 2] = [Self::EthCallTracing, Self::IntraOrgGrantTracing];

    /// The id of the toggle's row.
    pub const fn id(self) -> ToggleId {
        match self {
            Self::EthCallTracing => ToggleId::fixed(1),
            Self::IntraOrgGrantTracing => ToggleId::fixed(2),
        }
    }

    /// The name in URL paths and audit entries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EthCallTracing => "eth-call-tracing",
            Self::IntraOrgGrantTracing => "intra-org-grant-tracing",
        }
    }
}

/// A temporary override of a toggle. Without a row, or after the override ends, the configuration applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToggleState {
    /// Row id, one per toggle ([`SystemToggle::id`]).
    pub id: ToggleId,
    /// On or off.
    pub enabled: bool,
    /// The end of the override.
    pub until: Timestamp,
}

/// A group's rights on one contract (F1-F4, C3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractGrant {
    /// Row id.
    pub id: GrantId,
    /// The contract.
    pub contract: ContractId,
    /// The group.
    pub group: GroupId,
    /// Claims on this contract only (C3).
    pub claims: Claims,
    /// `None`: all functions; an empty list: none (F1).
    pub functions: Option<Vec<FunctionRule>>,
    /// Which events the group's members see.
    pub events: EventRules,
}

/// One permitted function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRule {
    /// The selector.
    pub selector: [u8; 4],
    /// Conditions on the parameters; all must hold (F3).
    pub params: Vec<ParamRule>,
}

/// A condition on one parameter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParamRule {
    /// Position in the ABI's inputs.
    pub index: usize,
    /// The condition on the parameter's value.
    pub must_be: Constraint,
}

/// The condition of a [`ParamRule`] (F3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constraint {
    /// An address linked to the caller.
    Own,
    /// An address of the contract's organization: a contract or reservation of it, or the wallet of a member.
    Org,
    /// Exactly this ABI word.
    Word(B256),
    /// One of these words.
    OneOf(Vec<B256>),
    /// The comparison with this word holds. Types without an order satisfy only [`Comparison::NotEqual`].
    Compare(Comparison, B256),
}

/// How a parameter compares with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `ne`
    NotEqual,
    /// `lt`
    Less,
    /// `lte`
    AtMost,
    /// `gt`
    More,
    /// `gte`
    AtLeast,
}

impl Comparison {
    /// Whether the comparison of `word`, a value of type `kind`, with `other` holds. Only numbers have an order; a word
    /// of unknown type (`None`) has none.
    pub fn holds(self, kind: Option<WordKind>, word: &B256, other: &B256) -> bool {
        // The top bit of a two's complement number is its sign. With that bit inverted, byte order is numeric order.
        let key = |word: &B256| match kind {
            Some(WordKind::Uint(_)) => Some(*word),
            Some(WordKind::Int(_)) => {
                let mut word = *word;
                if let Some(first) = word.first_mut() {
                    *first ^= 0x80;
                }
                Some(word)
            }
            Some(WordKind::Address | WordKind::Bool | WordKind::FixedBytes(_) | WordKind::Function) | None => None,
        };
        match (self, key(word), key(other)) {
            (Self::NotEqual, _, _) => word != other,
            (Self::Less, Some(word), Some(other)) => word < other,
            (Self::AtMost, Some(word), Some(other)) => word <= other,
            (Self::More, Some(word), Some(other)) => word > other,
            (Self::AtLeast, Some(word), Some(other)) => word >= other,
            (Self::Less | Self::AtMost | Self::More | Self::AtLeast, _, _) => false,
        }
    }
}

/// The event rules of a grant (F4, decision 19).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventRules {
    /// No rule (`null`), or `"*"`: every event, masked.
    All,
    /// Only these events; an empty list permits no event.
    Only(Vec<EventRule>),
}

/// One permitted event. One of its parameter rules must hold; an empty list means no condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventRule {
    /// The event's topic0.
    pub topic0: B256,
    /// Parameter rules.
    pub params: Vec<ParamRule>,
}

/// An address proved by, or inferred for, a user (spec/10 section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressLink {
    /// Row id.
    pub id: LinkId,
    /// The owner.
    pub user: UserId,
    /// The address.
    pub address: Address,
    /// How the link was established.
    pub kind: LinkKind,
    /// Whether the address is a contract wallet, whose ownership a contract call proved instead of a signature by the
    /// address's own key. Its owner is not a participant of transactions sent to it (HD10).
    pub contract_wallet: bool,
    /// When the link was verified; the newest link of a kind wins (LK-5).
    pub verified_at: Timestamp,
}

/// How a link was established.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// Inferred from a forwarded signed transaction.
    System,
    /// Proved by a signed challenge; takes precedence.
    User,
}

/// The address that a pending deployment will get (R1, HD14). Several users may hold a reservation of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Row id.
    pub id: ReservationId,
    /// The address.
    pub address: Address,
    /// The deployer's organization.
    pub org: OrgId,
    /// The deployer.
    pub user: UserId,
    /// When the reservation expires if the deployment is not mined.
    pub expires_at: Timestamp,
}

/// The `visibleTo` list of a transaction: who else may see it (spec/30 section 7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxVisibility {
    /// Row id.
    pub id: VisibilityId,
    /// The transaction.
    pub tx_hash: B256,
    /// The user who attached the list.
    pub sender: UserId,
    /// The users who may see the transaction.
    pub recipients: Vec<ExternalId>,
    /// Whether the node accepted the transaction (W5).
    pub active: bool,
}

/// A person who lost the right to send, because a mined transaction of theirs did something that its trace had not
/// shown when it was authorized (HD2). The key is the DID, so that the suspension outlives the user row and applies to
/// a later account with the same DID (HD37).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Row id.
    pub id: SuspensionId,
    /// The suspended person.
    pub external_id: ExternalId,
}

/// An address that is closed until cleared, because the changes that a convicted transaction made there are unknown
/// (HD28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Row id.
    pub id: QuarantineId,
    /// The address.
    pub address: Address,
    /// For whom the address is closed.
    pub closed_to: ClosedTo,
}

/// For whom an address is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClosedTo {
    /// Closed to all users.
    Everybody,
    /// Closed to the sender of the transaction and the members of the sender's organizations. For addresses in common
    /// use, which must stay open to all other users.
    SenderSide(ExternalId, Arc<[OrgId]>),
}

/// A mined transaction that did something its sender is not permitted to do. The whole transaction is withheld from all
/// users (HD28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conviction {
    /// Row id.
    pub id: ConvictionId,
    /// The transaction.
    pub tx_hash: B256,
    /// The sender.
    pub external_id: ExternalId,
    /// Hash of its block.
    pub block_hash: B256,
    /// Index of the transaction in the block.
    pub place: u64,
    /// Number of logs that it emitted.
    pub logs: u64,
}

/// A revoked token (`jti`) or token family (`sid`). The row is kept until the token would have expired anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The `jti` or `sid`.
    pub id: TokenId,
    /// When the row is no longer needed.
    pub until: Timestamp,
}
