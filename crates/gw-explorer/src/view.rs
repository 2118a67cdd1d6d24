//! One viewer's view of one state of the chain, for one request.
//!
//! The order matters. The state of the index is noted first, then the reader of the store is opened, then the policy
//! snapshot is pinned: so the reader has every row of the index, and the snapshot has every finding about its blocks
//! (HD28). The rows are selected last, and only if the index still has the noted state.

use crate::{
    error::ExplorerError,
    index::{BlockValidation, IndexVersion},
    places::RowPlaces,
    position::Position,
    reads::{ReadPermit, TooManyReads},
    record::CallerSlot,
    selection::{Selection, ViewerScopes},
    state::ExplorerState,
    viewer::{Caller, Impersonation, ViewerId},
};
use gw_chain_store::{ChainReader, ChainStore};
use gw_http::{ApiError, AuthError, ClientAddress, named_org};
use gw_policy::{Snapshot, Viewer, access::NamedOrg};
use gw_postings::{PostingIndex, RowId, RowSet, Space};
use gw_types::{OrgId, Seconds, Timestamp, UserId};
use std::sync::Arc;

/// The most blocks that the index may lack without being behind.
const MAX_LAG: u64 = 64;
/// How often a request starts anew because the index changed meanwhile.
const ATTEMPTS: usize = 10;

/// One viewer's view of one state of the chain.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) state: ExplorerState,
    pub(crate) id: ViewerId,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) now: Timestamp,
    pub(crate) version: IndexVersion,
    pub(crate) reader: ChainReader,
    pub(crate) scopes: ViewerScopes,
    selections: Vec<(Space, Arc<Selection>)>,
    slot: CallerSlot,
    /// Held until the connection of `reader` is free again.
    permit: Option<ReadPermit>,
}

impl View {
    /// Opens the view of a caller, with the rows of these spaces.
    ///
    /// # Errors
    /// 401 if the caller may not log in any more; 429 if too many reads of the viewer wait; 503 if policy is stale, or
    /// the index is not loaded or behind.
    pub(crate) async fn open(
        state: &ExplorerState,
        request: &RequestCaller,
        spaces: &[Space],
    ) -> Result<Self, ExplorerError> {
        // Before a connection is taken, and before the state of the index is noted, which would be old afterwards.
        let permit = request.permit(state).await?;
        for _ in 0..ATTEMPTS {
            if let Some(mut view) = Self::try_open(state, request, spaces).await? {
                view.permit = Some(permit);
                return Ok(view);
            }
        }
        Err(ExplorerError::Behind)
    }

    /// `None` if the index changed meanwhile.
    async fn try_open(
        state: &ExplorerState,
        request: &RequestCaller,
        spaces: &[Space],
    ) -> Result<Option<Self>, ExplorerError> {
        let version = state.index.version();
        let snapshot = state.http_context.policy.pin().ok_or(AuthError::PolicyStale)?;
        // A token that is not valid is refused whatever state the index is in.
        request.identify(state, &snapshot)?;
        let version = version.ok_or(ExplorerError::Behind)?;
        let reader = open_reader(&state.store, version).await?;
        if is_behind(&*state.validation, &reader, version) {
            return Err(ExplorerError::Behind);
        }
        let snapshot = state.http_context.policy.pin().ok_or(AuthError::PolicyStale)?;
        let id = request.identify(state, &snapshot)?;
        request.slot.set_epoch(snapshot.epoch());
        let now = state.http_context.now();
        let scope = id.viewer(&snapshot, now, &state.policy_settings).row_scope();
        let scopes = ViewerScopes::resolve(&scope, &reader).await?;
        let mut view = Self {
            state: state.clone(),
            id,
            snapshot,
            now,
            version,
            reader,
            scopes,
            selections: Vec::with_capacity(spaces.len()),
            slot: request.slot.clone(),
            permit: None,
        };
        for space in spaces {
            match view.select(*space).await? {
                Some(selection) => view.selections.push((*space, selection)),
                None => return Ok(None),
            }
        }
        Ok(Some(view))
    }

    async fn select(&self, space: Space) -> Result<Option<Arc<Selection>>, ExplorerError> {
        let (state, version, scopes) = (self.state.clone(), self.version, self.scopes.clone());
        let select = move || state.selections.select(&state.index, version, &scopes, space);
        let selected = tokio::task::spawn_blocking(select).await;
        selected.map_err(|_| ExplorerError::Internal("the selection of rows panicked"))
    }

    pub(crate) fn viewer(&self) -> Viewer<'_> {
        let uses = Some(self.slot.grant_uses());
        self.id
            .collecting_viewer(&self.snapshot, self.now, &self.state.policy_settings, uses)
    }

    /// The viewer without a record of the grants that a verdict needs, for verdicts of which nothing is shown.
    pub(crate) fn silent_viewer(&self) -> Viewer<'_> {
        self.id.viewer(&self.snapshot, self.now, &self.state.policy_settings)
    }

    fn selection(&self, space: Space) -> Result<&Selection, ExplorerError> {
        let selection = self.selections.iter().find(|(selected, _)| *selected == space);
        let missing = ExplorerError::Internal("a route reads rows that it did not select");
        selection.map(|(_, selection)| &**selection).ok_or(missing)
    }

    /// The rows of a space that are shown; see [`Selection::certain`].
    ///
    /// # Errors
    /// If the view was opened without the space.
    pub(crate) fn rows(&self, space: Space) -> Result<RowSet, ExplorerError> {
        Ok(self.selection(space)?.certain())
    }

    /// The rows of a space that may be shown; see [`Selection::possible`].
    ///
    /// # Errors
    /// If the view was opened without the space.
    pub(crate) fn possible_rows(&self, space: Space) -> Result<RowSet, ExplorerError> {
        Ok(self.selection(space)?.possible())
    }

    /// Reads the index. Later blocks may have been added to it.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn index<T>(&self, read: impl FnOnce(&PostingIndex) -> T) -> Result<T, ExplorerError> {
        Ok(self.state.index.read_since(self.version, read)?)
    }

    /// The numbers of the blocks that are shown.
    pub(crate) fn blocks(&self) -> std::ops::Range<u64> {
        self.version.first..self.version.newest.saturating_add(1)
    }

    const fn places(&self) -> RowPlaces<'_> {
        RowPlaces {
            index: &self.state.index,
            version: self.version,
        }
    }

    /// Where a row stands.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn position_of(&self, space: Space, row: RowId) -> Result<Position, ExplorerError> {
        self.places().position_of(space, row)
    }

    /// The first block that reorganizations removed since this position was read.
    ///
    /// # Errors
    /// 400 for a position of unknown age.
    pub(crate) fn fork_since(&self, position: Position) -> Result<u64, ExplorerError> {
        self.places().fork_since(position)
    }

    /// The row that a page before this position begins below. If a reorganization removed the position, the page
    /// begins below the fork.
    ///
    /// # Errors
    /// 400 for a cursor of unknown age; 503 if a reorganization changed the index.
    pub(crate) fn row_before(&self, space: Space, position: Position) -> Result<RowId, ExplorerError> {
        self.places().row_before(space, position)
    }

    /// The first row of this block, or of the next one with rows.
    ///
    /// # Errors
    /// 503 if a reorganization changed the index.
    pub(crate) fn first_row_of(&self, space: Space, block: u64) -> Result<RowId, ExplorerError> {
        self.places().first_row_of(space, block)
    }

    /// Notes that the answer contains a row that is shown only under audit.
    pub(crate) fn note_audited(&self, is_audited: bool) {
        if is_audited {
            self.slot.note_audited_row();
        }
    }
}

/// Opens the queries of a request, on a state of the database for which the ids of this version are valid.
///
/// # Errors
/// 503 if the database has other rows: a reorganization was not followed yet, or the database was put back from a copy
/// or made anew (X5); any error of the store.
pub(crate) async fn open_reader(store: &ChainStore, version: IndexVersion) -> Result<ChainReader, ExplorerError> {
    let reader = store.reader_at(version.generation).await?;
    if version.is_stored(&reader).await? {
        Ok(reader)
    } else {
        Err(ExplorerError::Behind)
    }
}

/// Whether the index lacks too many of the blocks that could be shown.
pub(crate) fn is_behind(validation: &dyn BlockValidation, reader: &ChainReader, version: IndexVersion) -> bool {
    let stored = reader.progress().head.as_ref().map(|head| head.block.number);
    let validated = validation.validated_head().map(|head| head.number);
    match (stored, validated) {
        (Some(stored), Some(validated)) => stored.min(validated) > version.newest.saturating_add(MAX_LAG),
        // Without a validated head there is nothing that the index could lack.
        (_, None) => false,
        (None, Some(_)) => true,
    }
}

impl RequestCaller {
    /// Waits until a read of the viewer may run.
    async fn permit(&self, state: &ExplorerState) -> Result<ReadPermit, ExplorerError> {
        let snapshot = state.http_context.policy.pin().ok_or(AuthError::PolicyStale)?;
        let viewer = self.identify(state, &snapshot)?.limit_key(self.address);
        drop(snapshot);
        let permit = state.reads.acquire(viewer).await;
        Ok(permit.map_err(|TooManyReads| ApiError::rate_limited(Seconds(1)))?)
    }

    /// The viewer by this snapshot, in the organization that the request names. The record of the request is filed
    /// under it.
    ///
    /// # Errors
    /// 401 if the user may not log in any more; 404 unless the user is a member of the organization.
    fn identify(&self, state: &ExplorerState, snapshot: &Snapshot) -> Result<ViewerId, ExplorerError> {
        let (now, settings) = (state.http_context.now(), &state.policy_settings);
        let id = self.caller.identify(snapshot)?;
        let id = id.in_org(self.org, snapshot, now, settings)?;
        if let Some(org) = id.org() {
            self.slot.set_org(org);
        }
        Ok(id)
    }

    /// Files the record of the request under the organization that it changed.
    pub(crate) fn set_org(&self, org: OrgId) {
        self.slot.set_org(org);
    }

    /// Files the record of a grantee's request under the organization of the grant, if the grantee is an active member
    /// of it (HD12): administrators of other organizations do not learn when and from where the grantee reads.
    pub(crate) fn set_org_of_member(&self, org: OrgId, snapshot: &Snapshot, grantee: UserId, now: Timestamp) {
        if snapshot.is_member(grantee, org, now) {
            self.slot.set_org(org);
        }
    }

    /// The newest policy, and the viewer by it: for answers without rows.
    ///
    /// # Errors
    /// 401 if the caller may not log in any more; 503 if policy is stale.
    pub(crate) fn pin(&self, state: &ExplorerState) -> Result<(Arc<Snapshot>, ViewerId), ExplorerError> {
        let snapshot = state.http_context.policy.pin().ok_or(AuthError::PolicyStale)?;
        let id = self.identify(state, &snapshot)?;
        self.slot.set_epoch(snapshot.epoch());
        Ok((snapshot, id))
    }
}

/// The caller of a request, and where its record is made.
#[derive(Clone, Debug)]
pub(crate) struct RequestCaller {
    caller: Caller,
    /// The organization that the request names (HD39).
    org: NamedOrg,
    /// Under which the reads of anonymous viewers are counted.
    address: ClientAddress,
    slot: CallerSlot,
}

impl axum::extract::FromRequestParts<ExplorerState> for RequestCaller {
    type Rejection = ExplorerError;

    async fn from_request_parts(
        parts: &mut http::request::Parts,
        state: &ExplorerState,
    ) -> Result<Self, ExplorerError> {
        // The path of an impersonation names an organization, too.
        let path = parts.extensions.get::<Impersonation>();
        let path = path.map_or(NamedOrg::Unnamed, |impersonation| NamedOrg::Org(impersonation.org));
        let org = named_org(path, None, &parts.headers);
        Ok(Self {
            caller: Caller::from_request_parts(parts, state).await?,
            org: org.map_err(|error| ExplorerError::bad_request(error.to_string()))?,
            address: state.http_context.client(&parts.extensions, &parts.headers),
            slot: parts.extensions.get::<CallerSlot>().cloned().unwrap_or_default(),
        })
    }
}
