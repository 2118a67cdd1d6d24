//! The login sessions as the admin API sees them.

use gw_admin::{Answer, LoginSession, LoginSessions, SessionsAway};
use gw_identity::{Progress, SessionView};
use uuid::Uuid;

/// The sessions that logins go through.
#[derive(Debug)]
pub(super) struct Sessions(pub(super) gw_identity::LoginSessions);

impl LoginSessions for Sessions {
    fn list(&self) -> Answer<'_, Vec<LoginSession>> {
        Box::pin(async move {
            let found = self.0.list().await.map_err(|_| SessionsAway)?;
            Ok(found.into_iter().map(shown).collect())
        })
    }

    fn find(&self, id: Uuid) -> Answer<'_, Option<LoginSession>> {
        Box::pin(async move { Ok(self.0.find_view(id).await.map_err(|_| SessionsAway)?.map(shown)) })
    }

    fn end(&self, id: Uuid) -> Answer<'_, bool> {
        Box::pin(async move { self.0.end(id).await.map_err(|_| SessionsAway) })
    }
}

fn shown(view: SessionView) -> LoginSession {
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
