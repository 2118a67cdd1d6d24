//! Verifies a wallet's proof and issues tokens (ZK-10, ZK-12, ZK-80, HD19, HD21).

use crate::{
    account,
    error::{once_the_cache_answers, spawn_tracked},
    login::{LoginCompletion, LoginError, LoginId, LoginRejection, Nullifier, Reason, VerifiedLogin},
    request_info::RequestInfo,
    security,
    state::IdentityState,
    tokens::{Family, TokenPair},
};
use gw_audit::SecurityKind;
use gw_store::{Actor, Tx, record::User};

/// One proof for one session.
#[derive(Debug)]
pub(crate) struct LoginAttempt {
    pub(crate) session: LoginId,
    pub(crate) token: Result<String, LoginError>,
    pub(crate) request_info: RequestInfo,
}

/// Checks the proof and completes the session. Returns the wallet's token pair; the page gets its own pair from its
/// poll.
///
/// After an internal fault the session is open again and no longer counts against its network's limit.
pub(crate) async fn complete(state: &IdentityState, attempt: LoginAttempt) -> Result<TokenPair, LoginError> {
    let session = attempt.session;
    let completed = try_complete(state, attempt).await;
    if completed.as_ref().is_err_and(LoginError::is_own_fault) {
        let (sessions, now) = (state.inner.sessions.clone(), state.http_context.now());
        // Runs in its own task: if it stopped half-way, the session would stay claimed.
        let aside = state.tasks.spawn({
            let sessions = sessions.clone();
            async move { sessions.set_aside(session, now).await }
        });
        if !matches!(aside.await, Ok(Ok(()))) {
            once_the_cache_answers(move || {
                let sessions = sessions.clone();
                async move { sessions.set_aside(session, now).await }
            });
        }
    }
    completed
}

async fn try_complete(state: &IdentityState, attempt: LoginAttempt) -> Result<TokenPair, LoginError> {
    let LoginAttempt {
        session,
        token,
        request_info,
    } = attempt;
    let now = state.http_context.now();
    let inner = &state.inner;
    let Some(request) = inner.sessions.pending(session).await? else {
        return Err(LoginError::SessionOver);
    };
    if let Some(wait) = inner.failures.exhausted(session, request_info.client).await? {
        return Err(LoginError::TooManyFailures(wait));
    }
    let verified = match token {
        Ok(token) => inner
            .verifier
            .verify(&token, &request, now)
            .await
            .map_err(|error| LoginError::Proof {
                error,
                verify_url: inner.config.humanity_verify_url.clone(),
            }),
        Err(error) => Err(error),
    };
    let proved = match verified {
        Ok(proved) => proved,
        Err(error) => {
            record_rejection(state, session, &request_info, &error).await?;
            return Err(error);
        }
    };
    let (tasks, state) = (&state.tasks, state.clone());
    spawn_tracked(tasks, async move {
        if !state.inner.sessions.claim(session).await? {
            return Err(LoginError::SessionOver);
        }
        let issued = issue(&state, session, &proved, &request_info).await;
        if let Err(error) = &issued {
            let reason = error.reason().unwrap_or(Reason::AuthenticationFailed);
            let rejection = LoginRejection {
                reason,
                exact: error.exact(),
                subject: Some(proved.subject.clone()),
            };
            if state.inner.sessions.release(session, &rejection).await.is_err() {
                tracing::warn!("a login session stays claimed: the cache is away");
            }
            note_refusal(&state, Some(&proved), &request_info, reason);
        }
        issued
    })
    .await
}

/// Records a rejection in the session, in the failure counter and in the security log.
async fn record_rejection(
    state: &IdentityState,
    session: LoginId,
    request_info: &RequestInfo,
    error: &LoginError,
) -> Result<(), LoginError> {
    let Some(reason) = error.reason() else { return Ok(()) };
    note_refusal(state, None, request_info, reason);
    if !error.is_own_fault() {
        // If the failure cannot be counted, the login is answered as an outage: uncounted attempts would be unlimited.
        state.inner.failures.count(session, request_info.client).await?;
    }
    Ok(state
        .inner
        .sessions
        .record_rejection(
            session,
            &LoginRejection {
                reason,
                exact: error.exact(),
                subject: None,
            },
        )
        .await?)
}

fn note_refusal(state: &IdentityState, proved: Option<&VerifiedLogin>, request_info: &RequestInfo, reason: Reason) {
    let mut event = security::event(SecurityKind::LoginRefused, request_info);
    event.external_id = proved.map(|proved| proved.subject.clone());
    event.provider = proved.map(|proved| proved.amr.as_str().into());
    event.reason = Some(reason.as_str().into());
    state.record_refusal(event);
}

/// Finds or creates the user and issues two token families of the one login: rotation of the wallet's tokens must not
/// revoke the page's, or the reverse (HD19).
async fn issue(
    state: &IdentityState,
    session: LoginId,
    proved: &VerifiedLogin,
    request_info: &RequestInfo,
) -> Result<TokenPair, LoginError> {
    let actor = request_info.actor(Actor::named(proved.subject.as_str()));
    let mut reservation = state.journal.reserve(1)?;
    let mut tx = state.store.begin(&actor).await?;
    let user = account::find_or_create(&mut tx, proved, state.inner.config.auto_kyc).await?;
    if user.banned {
        return Err(LoginError::Banned);
    }
    if let Some(Nullifier { session, value }) = &proved.nullifier
        && tx.claim_nullifier(session, value, &user.external_id).await? != user.external_id
    {
        return Err(LoginError::CredentialTaken);
    }
    // A login accepts the user's invitation if there is exactly one and the user has agreed to no organization.
    tx.accept_only_offer(user.id).await?;
    let family = state.inner.issuer.new_family(proved.amr, tx.now());
    let wallet = start_family(state, &mut tx, &user, family).await?;
    let page = start_family(state, &mut tx, &user, state.inner.issuer.sibling(family)).await?;
    let sealed = state.inner.vault.seal(session, &page).ok_or(LoginError::Unsealed)?;
    let by = LoginCompletion {
        at: tx.now(),
        subject: user.external_id.clone(),
        provider: proved.amr.as_str().to_owned(),
    };
    tx.commit().await?;

    let mut event = security::event(SecurityKind::Login, request_info);
    event.external_id = Some(user.external_id);
    event.user_id = Some(user.id);
    event.session_id = Some(family.id);
    event.provider = Some(proved.amr.as_str().into());
    reservation.append(event)?;
    // Without it the page would never learn of this login, so the wallet must not either: its tokens go nowhere.
    state.inner.sessions.complete(session, &sealed, &by).await?;
    Ok(wallet)
}

async fn start_family(
    state: &IdentityState,
    tx: &mut Tx,
    user: &User,
    family: Family,
) -> Result<TokenPair, LoginError> {
    let (pair, row) = state.inner.issuer.issue(user, family, tx.now());
    tx.store_refresh_token(row).await?;
    Ok(pair)
}
