//! The connections of deliveries: to which addresses they go.

use super::{
    admitted::{AdmittedConnector, NotAdmitted, is_not_admitted},
    *,
};
use hyper_util::client::legacy::connect::dns::Name;
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};
use tokio::net::TcpListener;
use tower::{Service as _, service_fn};

/// A listener that counts its connections.
async fn listener() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&count);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, count)
}

/// Connects to `host` whose name resolves to `addresses`.
async fn connect(networks: &Arc<DeliveryNetworks>, host: &str, addresses: Vec<SocketAddr>) -> Result<(), bool> {
    let resolver = service_fn(move |_: Name| {
        let addresses = addresses.clone();
        async move { Ok::<_, std::io::Error>(addresses.into_iter()) }
    });
    let mut connector = AdmittedConnector::new(networks, resolver);
    let connected = connector.call(host.parse().unwrap()).await;
    connected.map(drop).map_err(|error| is_not_admitted(&*error))
}

/// An IP address and a name that resolves to one: whatever is not admitted gets no connection.
#[tokio::test]
async fn no_connection_goes_to_an_address_that_is_not_admitted() {
    let (address, count) = listener().await;
    let port = address.port();
    let production = Arc::new(DeliveryNetworks::new(Vec::new(), true));
    let mapped: SocketAddr = format!("[::ffff:127.0.0.1]:{port}").parse().unwrap();
    for (host, addresses) in [
        (format!("http://127.0.0.1:{port}/"), vec![]),
        (format!("http://[::1]:{port}/"), vec![]),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), vec![]),
        (format!("http://bank.example:{port}/"), vec![address]),
        (format!("http://bank.example:{port}/"), vec![mapped]),
        (format!("http://bank.example:{port}/"), vec![address, mapped]),
    ] {
        let connected = connect(&production, &host, addresses.clone()).await;
        assert_eq!(connected, Err(true), "{host} {addresses:?}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);

    let listed = Arc::new(DeliveryNetworks::new(vec!["127.0.0.0/8".parse().unwrap()], true));
    let development = Arc::new(DeliveryNetworks::new(Vec::new(), false));
    for networks in [listed, development] {
        let host = format!("http://127.0.0.1:{port}/");
        assert_eq!(connect(&networks, &host, vec![]).await, Ok(()));
        let host = format!("http://bank.example:{port}/");
        assert_eq!(connect(&networks, &host, vec![address]).await, Ok(()));
    }
}

/// Of several addresses of a name, only those that are admitted are tried.
#[tokio::test]
async fn of_the_addresses_of_a_name_the_admitted_ones_are_tried() {
    let (address, _) = listener().await;
    let networks = Arc::new(DeliveryNetworks::new(vec!["127.0.0.1/32".parse().unwrap()], true));
    let other = SocketAddr::from(([127, 0, 0, 2], address.port()));
    let host = format!("http://bank.example:{}/", address.port());
    assert_eq!(connect(&networks, &host, vec![other, address]).await, Ok(()));
    assert_eq!(connect(&networks, &host, vec![other]).await, Err(true));
}

/// The whole client: the reason gets through, and `localhost` is resolved by the system.
#[tokio::test]
async fn the_client_says_that_an_address_is_not_allowed() {
    let (address, count) = listener().await;
    let networks = Arc::new(DeliveryNetworks::new(vec!["10.0.0.0/8".parse().unwrap()], false));
    let development = DeliveryClient::new(&networks).unwrap();
    let production = DeliveryClient::new(&Arc::new(DeliveryNetworks::new(Vec::new(), true))).unwrap();
    let request = |url: String| Request::post(url).body(Full::new(Bytes::new())).unwrap();
    for host in ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("https://{host}:{}/", address.port());
        let failure = production.deliver(request(url)).await;
        assert_eq!(failure, Err(DeliveryFailure::AddressNotAllowed), "{host}");
    }
    assert_eq!(count.load(Ordering::SeqCst), 0);
    let plain = production.deliver(request("http://bank.example/".to_owned())).await;
    assert_eq!(plain, Err(DeliveryFailure::ConnectionFailed), "production needs TLS");
    let private = development.deliver(request("http://192.168.0.1/".to_owned())).await;
    assert_eq!(private, Err(DeliveryFailure::AddressNotAllowed));
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let closed = development.deliver(request(format!("http://{closed}/"))).await;
    assert_eq!(closed, Err(DeliveryFailure::ConnectionFailed));
    assert!(is_not_admitted(&NotAdmitted));
}
