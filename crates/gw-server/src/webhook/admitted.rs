//! Connections to the webhooks of organizations: to admitted addresses only.
//!
//! Invariant: no connection is opened to an address that [`DeliveryNetworks`] does not admit. A host name is resolved
//! for each connection, and the connection goes to the addresses that were checked, not to a second resolution.

use gw_http::DeliveryNetworks;
use http::Uri;
use hyper_util::client::legacy::connect::{HttpConnector, dns::Name};
use std::{
    future::{Ready, ready},
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    vec::IntoIter,
};
use tower::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// The host has no address that a delivery may go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host has no address that deliveries may go to")]
pub(crate) struct NotAdmitted;

/// Whether an error, or a cause of it, is [`NotAdmitted`].
pub(super) fn is_not_admitted(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<NotAdmitted>())
}

/// Resolves host names with `R` to their admitted addresses.
#[derive(Clone, Debug)]
pub(crate) struct AdmittedResolver<R> {
    networks: Arc<DeliveryNetworks>,
    resolver: R,
}

impl<R> Service<Name> for AdmittedResolver<R>
where
    R: Service<Name, Response: Iterator<Item = SocketAddr>, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.resolver.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let networks = Arc::clone(&self.networks);
        let resolved = self.resolver.call(name);
        Box::pin(async move {
            let addresses = resolved.await.map_err(Into::<BoxError>::into)?;
            let admitted: Vec<_> = addresses.filter(|address| networks.admits(address.ip())).collect();
            if admitted.is_empty() {
                return Err(NotAdmitted.into());
            }
            Ok(admitted.into_iter())
        })
    }
}

/// Connects to admitted addresses. A host that is an IP address is not resolved, so it is checked here.
#[derive(Clone, Debug)]
pub(crate) struct AdmittedConnector<R> {
    networks: Arc<DeliveryNetworks>,
    tcp: HttpConnector<AdmittedResolver<R>>,
}

impl<R> AdmittedConnector<R> {
    pub(super) fn new(networks: &Arc<DeliveryNetworks>, resolver: R) -> Self {
        let resolver = AdmittedResolver {
            networks: Arc::clone(networks),
            resolver,
        };
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(super::ATTEMPT_TIMEOUT));
        Self {
            networks: Arc::clone(networks),
            tcp,
        }
    }
}

impl<R> Service<Uri> for AdmittedConnector<R>
where
    HttpConnector<AdmittedResolver<R>>: Service<Uri, Error: Into<BoxError>, Future: Send + 'static>,
{
    type Response = <HttpConnector<AdmittedResolver<R>> as Service<Uri>>::Response;
    type Error = BoxError;
    type Future = futures_util::future::Either<Ready<Result<Self::Response, BoxError>>, BoxFuture<Self::Response>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tcp.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        use futures_util::future::Either;
        if let Some(address) = literal(&uri)
            && !self.networks.admits(address)
        {
            return Either::Left(ready(Err(NotAdmitted.into())));
        }
        let connection = self.tcp.call(uri);
        Either::Right(Box::pin(async move { connection.await.map_err(Into::into) }))
    }
}

/// The host of an address, if it is an IP address.
fn literal(uri: &Uri) -> Option<IpAddr> {
    let host = uri.host()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
