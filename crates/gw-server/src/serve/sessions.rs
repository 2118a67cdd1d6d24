//! Implements the login session interface of the admin API on the sessions of `gw-identity`.

use gw_admin::{LoginSession, LoginSessions, SessionFuture, SessionsUnavailable};
use gw_identity::{Progress, SessionView};
use uuid::Uuid;

/// The login sessions in the cache.
#[derive(Debug)]
pub(super) struct Sessions(pub(super) gw_identity::LoginSessions);

impl LoginSessions for Sessions {
    fn list(&self) -> SessionFuture<'_, Vec<LoginSession>> {
        Box::pin(async move {
            let views = self.0.list().await.map_err(|_| SessionsUnavailable)?;
            Ok(views.into_iter().map(to_login_session).collect())
        })
    }

    fn find(&self, id: Uuid) -> SessionFuture<'_, Option<LoginSession>> {
        Box::pin(async move {
            Ok(self
                .0
                .find_view(id)
                .await
                .map_err(|_| SessionsUnavailable)?
                .map(to_login_session))
        })
    }

    fn end(&self, id: Uuid) -> SessionFuture<'_, bool> {
        Box::pin(async move { self.0.end(id).await.map_err(|_| SessionsUnavailable) })
    }
}

fn to_login_session(view: SessionView) -> LoginSession {
    let open = LoginSession {
        id: view.id,
        opened_at: view.opened_at,
        expires_at: view.expires_at,
        client: view.opener.0,
        completed_at: None,
        failure: None,
        subject: None,
        provider: None,
    };
    match view.progress {
        Progress::Open => open,
        Progress::Refused { exact, subject } => LoginSession {
            failure: Some(exact),
            subject,
            ..open
        },
        Progress::Completed { at, subject, provider } => LoginSession {
            completed_at: Some(at),
            subject: Some(subject),
            provider: Some(provider),
            ..open
        },
    }
}
