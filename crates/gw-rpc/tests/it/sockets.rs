//! WebSocket connections: how they open, what they deliver and when they end (HD18, decision 51).

use crate::{
    live::{Chain, FILTERS, HIDDEN, TOKEN, TRANSFER, erc20, holder},
    world::{World, account, real, scripted, signed},
};
use futures_util::{SinkExt as _, StreamExt as _};
use gw_store::record::{NewGroup, NewMembership, UserPatch};
use gw_testkit::TestUser;
use gw_types::{Address, B256, Bytes, OrgId, SessionId, TokenId};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest as _,
        http::HeaderMap,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

const OTHER: Address = Address::repeat_byte(0xcc);
/// The close frame after the loss of any right.
const ACCESS_ENDED: Option<(u16, &str)> = Some((1008, "access ended"));
/// The close frame of a connection without authentication.
const AUTHENTICATE_FIRST: Option<(u16, &str)> = Some((1008, "authenticate first"));

pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// How a connection is opened.
enum By<'a> {
    Header(&'a str),
    Named(&'a str, OrgId),
    Protocol(&'a str),
    Nothing,
}

impl World {
    /// Serves on a port.
    async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = self.app.clone().into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        address
    }

    pub(crate) async fn connect(&self, person: &TestUser) -> Socket {
        open(self.listen().await, By::Header(&person.token)).await.unwrap().0
    }
}

async fn open(address: SocketAddr, by: By<'_>) -> Result<(Socket, HeaderMap), u16> {
    let mut request = format!("ws://{address}/rpc/ws").into_client_request().unwrap();
    match by {
        By::Header(token) => {
            request
                .headers_mut()
                .insert("authorization", format!("Bearer {token}").parse().unwrap());
        }
        By::Named(token, org) => {
            request
                .headers_mut()
                .insert("authorization", format!("Bearer {token}").parse().unwrap());
            request
                .headers_mut()
                .insert("x-org-id", org.to_string().parse().unwrap());
        }
        By::Protocol(offered) => {
            request
                .headers_mut()
                .insert("sec-websocket-protocol", offered.parse().unwrap());
        }
        By::Nothing => {}
    }
    match connect_async(request).await {
        Ok((socket, response)) => Ok((Socket(socket), response.headers().clone())),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

impl Socket {
    async fn send(&mut self, text: impl ToString) {
        self.0.send(Message::text(text.to_string())).await.unwrap();
    }

    /// The next message; the end of the connection is an error with code and reason.
    async fn next(&mut self) -> Result<Value, Option<(u16, String)>> {
        loop {
            let message = tokio::time::timeout(Duration::from_secs(10), self.0.next())
                .await
                .unwrap();
            match message {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => {
                    return Err(frame.map(|frame| (u16::from(frame.code), frame.reason.to_string())));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Err(None),
            }
        }
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
            .await;
        self.next().await.unwrap()
    }

    pub(crate) async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The item of the next notification of a subscription.
    pub(crate) async fn item(&mut self, subscription: &Value) -> Value {
        let notification = self.next().await.unwrap();
        assert_eq!(
            (&notification["jsonrpc"], &notification["method"]),
            (&json!("2.0"), &json!("eth_subscription")),
            "{notification}"
        );
        assert_eq!(notification["params"]["subscription"], *subscription);
        notification["params"]["result"].clone()
    }

    async fn ended(&mut self) -> Option<(u16, String)> {
        loop {
            match self.next().await {
                Ok(_) => {}
                Err(end) => return end,
            }
        }
    }
}

fn assert_end(end: &Option<(u16, String)>, expected: Option<(u16, &str)>) {
    assert_eq!(end.as_ref().map(|(code, reason)| (*code, reason.as_str())), expected);
}

/// WS-1: a token in the header, the subprotocol or the first message authenticates; the plain subprotocol is echoed,
/// not the token.
#[tokio::test]
async fn ws1_a_connection_authenticates() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let at = world.listen().await;
    let hello = json!({"jsonrpc": "2.0", "id": 7, "method": "gateway_authenticate", "params": [holder.token]});
    let block = json!(["latest", false]);

    let (mut socket, _) = open(at, By::Header(&holder.token)).await.unwrap();
    assert!(socket.result("eth_getBlockByNumber", block.clone()).await.is_object());

    let offered = format!("jsonrpc, bearer.{}", holder.token);
    let (mut socket, headers) = open(at, By::Protocol(&offered)).await.unwrap();
    assert_eq!(headers["sec-websocket-protocol"], "jsonrpc");
    assert!(socket.result("eth_getBlockByNumber", block.clone()).await.is_object());
    let alone = format!("bearer.{}", holder.token);
    let (_, headers) = open(at, By::Protocol(&alone)).await.unwrap();
    assert_eq!(headers["sec-websocket-protocol"], alone.as_str());

    let (mut socket, _) = open(at, By::Nothing).await.unwrap();
    socket.send(&hello).await;
    assert_eq!(
        socket.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": 7, "result": true})
    );
    assert!(socket.result("eth_getBlockByNumber", block.clone()).await.is_object());
}

/// RTO10, WS-1: before authentication, a connection gets metadata as over HTTP, and an error that demands
/// authentication for other calls; a batch with both is rejected as a whole. It may authenticate afterwards.
#[tokio::test]
async fn rto10_an_unauthenticated_connection_is_told_to_authenticate() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let (mut socket, _) = open(world.listen().await, By::Nothing).await.unwrap();
    assert!(socket.result("eth_chainId", json!([])).await.is_string());
    let refusal =
        json!({"code": -32001, "message": "authenticate first: send gateway_authenticate with an access token"});
    for method in [
        "eth_getBlockByNumber",
        "eth_getBalance",
        "no_such_method",
        "eth_subscribe",
    ] {
        let answer = socket.call(method, json!(["latest", false])).await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "error": refusal}), "{method}");
    }
    let call = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": []});
    socket.send(json!([call("eth_chainId"), call("eth_accounts")])).await;
    assert_eq!(
        socket.next().await.unwrap(),
        json!({"jsonrpc": "2.0", "id": null, "error": refusal})
    );
    assert_eq!(socket.result("gateway_authenticate", json!([holder.token])).await, true);
    assert!(
        socket
            .result("eth_getBlockByNumber", json!(["latest", false]))
            .await
            .is_object()
    );
}

/// RTO10, RFC 6455 §5.5.1: a close frame is answered with its own code.
#[tokio::test]
async fn rto10_a_close_is_echoed() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let at = world.listen().await;
    for (by, calls_first) in [
        (By::Header(&holder.token), true),
        (By::Header(&holder.token), false),
        (By::Nothing, false),
    ] {
        let (mut socket, _) = open(at, by).await.unwrap();
        if calls_first {
            socket.result("eth_chainId", json!([])).await;
        }
        let frame = CloseFrame {
            code: CloseCode::Normal,
            reason: "done".into(),
        };
        socket.0.send(Message::Close(Some(frame))).await.unwrap();
        assert_end(&socket.ended().await, Some((1000, "done")));
    }
}

/// WS-1: no token, a bad one, a cookie or a query parameter: the connection is closed.
#[tokio::test]
async fn ws1_an_unknown_caller_gets_no_connection() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let at = world.listen().await;
    for by in [By::Header("nonsense"), By::Protocol("bearer.nonsense")] {
        assert_eq!(open(at, by).await.err(), Some(401));
    }
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (mut socket, _) = open(at, By::Nothing).await.unwrap();
    socket.send(call("gateway_authenticate", json!(["nonsense"]))).await;
    assert_end(&socket.ended().await, AUTHENTICATE_FIRST);
    // A browser sends the cookie with any page's connection: it does not authenticate.
    let mut request = format!("ws://{at}/rpc/ws?token={}", holder.token)
        .into_client_request()
        .unwrap();
    request
        .headers_mut()
        .insert("cookie", format!("pp_access={}", holder.token).parse().unwrap());
    let (socket, _) = connect_async(request).await.unwrap();
    let mut socket = Socket(socket);
    socket
        .send(call("eth_getBlockByNumber", json!(["latest", false])))
        .await;
    assert_eq!(socket.next().await.unwrap()["error"]["code"], -32001);
    assert_end(&socket.ended().await, AUTHENTICATE_FIRST);
    // A banned user gets no connection.
    world
        .update(
            &holder,
            UserPatch {
                banned: Some(true),
                ..UserPatch::default()
            },
        )
        .await;
    assert_eq!(open(at, By::Header(&holder.token)).await.err(), Some(404));
    // A path that is no WebSocket address gets a 404.
    assert_eq!(world.raw("").path("/ws").send().await.status, 404);
}

/// WS-1: authentication must happen within five seconds.
#[tokio::test]
async fn ws1_a_silent_connection_is_closed() {
    let (world, _fake) = scripted().await;
    let (mut socket, _) = open(world.listen().await, By::Nothing).await.unwrap();
    let started_at = tokio::time::Instant::now();
    assert_end(&socket.ended().await, AUTHENTICATE_FIRST);
    assert!((4..8).contains(&started_at.elapsed().as_secs()));
}

/// Every message is a call as over HTTP: methods, batches, denials, errors.
#[tokio::test]
async fn d51_messages_are_calls_through_the_same_pipeline() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let calls = [
        ("eth_chainId", json!([])),
        ("eth_getLogs", json!([{"address": TOKEN}])),
        ("eth_getLogs", json!([{"address": OTHER}])),
        ("eth_getBalance", json!([OTHER, "latest"])),
        ("eth_getBlockByNumber", json!([])),
        ("eth_newPendingTransactionFilter", json!([])),
    ];
    for (method, params) in calls {
        let over_http = world.ask(Some(&holder), method, params.clone()).send().await;
        assert_eq!(socket.call(method, params).await, over_http.body, "{method}");
    }
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []},
        {"jsonrpc": "2.0", "id": 2, "method": "eth_getBalance", "params": [OTHER, "latest"]},
    ]);
    socket.send(&batch).await;
    assert_eq!(
        socket.next().await.unwrap(),
        world.raw(batch.to_string()).by(&holder).send().await.body
    );
    socket.send("{nonsense").await;
    assert_eq!(socket.next().await.unwrap()["error"]["code"], -32700);
    socket
        .0
        .send(Message::binary(
            br#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#.to_vec(),
        ))
        .await
        .unwrap();
    assert_eq!(socket.next().await.unwrap()["result"], "0x7a69");
}

/// WS-3: notifications equal what `eth_getLogs` and `eth_getBlockByNumber` show the same caller.
#[tokio::test]
async fn ws3_notifications_show_what_the_reads_show() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let logs = socket
        .result(
            "eth_subscribe",
            json!(["logs", {"address": TOKEN, "topics": [TRANSFER]}]),
        )
        .await;
    chain.mine(0, &[(HIDDEN, OTHER), (OTHER, HIDDEN)]);
    world.node.refresh_head().await.unwrap();
    let items = [socket.item(&logs).await, socket.item(&logs).await];
    assert_eq!(
        json!(items),
        world.result(&holder, "eth_getLogs", json!([{"address": TOKEN}])).await
    );
    assert!(!json!(items).to_string().contains(&"bb".repeat(20)), "I2");
    assert_eq!(socket.result("eth_unsubscribe", json!([logs])).await, true);
    let again = socket.call("eth_unsubscribe", json!([logs])).await;
    assert_eq!(
        again["error"],
        json!({"code": -32000, "message": "subscription not found"})
    );

    let heads = socket.result("eth_subscribe", json!(["newHeads"])).await;
    let hash = chain.mine(0, &[(OTHER, HIDDEN)]);
    world.node.refresh_head().await.unwrap();
    let head = socket.item(&heads).await;
    let mut block = world
        .result(&holder, "eth_getBlockByNumber", json!(["latest", false]))
        .await;
    assert_eq!((&head["hash"], &head["gasUsed"]), (&json!(hash), &json!("0x0")));
    for absent in ["transactions", "uncles", "withdrawals", "size"] {
        assert!(block.as_object_mut().unwrap().remove(absent).is_some());
    }
    assert_eq!(head, block);
}

/// HD1: a subscription that names a hidden wallet gets nothing, like one that names a random address.
#[tokio::test]
async fn hd1_a_subscription_finds_no_hidden_address() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    let mut socket = world.connect(&holder).await;
    let topics = json!([TRANSFER, HIDDEN.into_word()]);
    socket
        .result("eth_subscribe", json!(["logs", {"address": TOKEN, "topics": topics}]))
        .await;
    let all_logs = socket
        .result("eth_subscribe", json!(["logs", {"address": TOKEN}]))
        .await;
    chain.mine(0, &[(HIDDEN, OTHER)]);
    world.node.refresh_head().await.unwrap();
    let item = socket.item(&all_logs).await;
    assert_eq!(item["topics"][1], json!(B256::ZERO));
    let rejected = socket.call("eth_subscribe", json!(["logs", {}])).await;
    assert_eq!(rejected["error"]["code"], -32601, "no address, no logs");
    assert_eq!(
        socket.call("eth_subscribe", json!(["newPendingTransactions"])).await["error"]["code"],
        -32602
    );
}

/// WS-4: removed rows are notified over a connection.
#[tokio::test]
async fn ws4_a_reorganization_is_followed() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let logs = socket
        .result("eth_subscribe", json!(["logs", {"address": TOKEN}]))
        .await;
    let lost = chain.mine(0, &[(OTHER, OTHER)]);
    world.node.refresh_head().await.unwrap();
    let mut item = socket.item(&logs).await;
    assert_eq!((&item["blockHash"], &item["removed"]), (&json!(lost), &json!(false)));
    chain.drop_newest(1);
    chain.mine(1, &[]);
    let new = chain.mine(1, &[(HIDDEN, OTHER)]);
    world.node.refresh_head().await.unwrap();
    item["removed"] = json!(true);
    assert_eq!(socket.item(&logs).await, item);
    assert_eq!(socket.item(&logs).await["blockHash"], json!(new));
}

/// WS-5: a connection has at most sixteen subscriptions, and every delivery is recorded.
#[tokio::test]
async fn ws5_subscriptions_are_bounded_and_deliveries_recorded() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let mut ids = Vec::new();
    for _ in 0..16 {
        ids.push(socket.result("eth_subscribe", json!(["newHeads"])).await);
    }
    let rejected = socket.call("eth_subscribe", json!(["newHeads"])).await;
    assert_eq!(
        rejected["error"],
        json!({"code": -32005, "message": "too many subscriptions: 16 at most"})
    );
    for id in ids.iter().skip(1) {
        socket.result("eth_unsubscribe", json!([id])).await;
    }
    world.fixture.records();
    chain.mine(0, &[]);
    world.node.refresh_head().await.unwrap();
    socket.item(&ids[0]).await;
    let record = world.record();
    assert_eq!(
        (record.method.as_ref(), record.status_code, record.node_called),
        ("eth_subscription", 200, true)
    );
    assert_eq!(record.external_id.as_ref(), Some(&holder.name));
}

/// WS-5: a client that does not read is disconnected once a megabyte is queued.
#[tokio::test]
async fn ws5_a_slow_reader_is_disconnected() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    let many: Vec<_> = (0..9000).map(|_| (OTHER, HIDDEN)).collect();
    chain.mine(0, &many);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    // Five megabytes per answer: more than the socket buffers of the system hold, and more than the queue may hold.
    for id in 0..16 {
        let ask = json!({"jsonrpc": "2.0", "id": id, "method": "eth_getLogs", "params": [{"address": TOKEN}]});
        socket.send(ask).await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut answers = 0;
    while socket.next().await.is_ok() {
        answers += 1;
    }
    assert!(answers < 16, "{answers} of 16 answers were queued");
}

/// WS-6: the loss of any right closes the connection with the same frame, and nothing is delivered after it.
#[tokio::test]
async fn ws6_a_connection_ends_with_the_right_to_it() {
    for lost in ["ban", "revocation", "expiry", "staleness", "membership", "user"] {
        let (world, fake) = scripted().await;
        let holder = holder(&world, "holder").await;
        let chain = Chain::start(&fake);
        world.node.refresh_head().await.unwrap();
        let mut socket = world.connect(&holder).await;
        let heads = socket.result("eth_subscribe", json!(["newHeads"])).await;
        chain.mine(0, &[]);
        world.node.refresh_head().await.unwrap();
        socket.item(&heads).await;
        match lost {
            "ban" => {
                world
                    .update(
                        &holder,
                        UserPatch {
                            banned: Some(true),
                            ..UserPatch::default()
                        },
                    )
                    .await
            }
            "revocation" => {
                let until = world.fixture.clock.now_plus(gw_types::Seconds(86_400));
                world
                    .fixture
                    .change(async |tx| tx.revoke_access_token(holder.token_id, until).await.unwrap())
                    .await;
            }
            "expiry" => {
                world.fixture.clock.pass(86_400 + 5);
                world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
            }
            "staleness" => world.fixture.make_policy_stale(),
            "membership" => {
                let membership = world.fixture.feed.pin().snapshot.memberships(holder.id)[0].id;
                drop(
                    world
                        .fixture
                        .change(async |tx| tx.remove_membership(membership).await.unwrap())
                        .await,
                );
            }
            _ => drop(
                world
                    .fixture
                    .change(async |tx| tx.delete_user(holder.id).await.unwrap())
                    .await,
            ),
        }
        chain.mine(0, &[]);
        world.node.refresh_head().await.unwrap();
        assert_end(&socket.next().await.unwrap_err(), ACCESS_ENDED);
    }
}

/// HD35: a connection depends on the memberships with which it was opened; a membership that ends and is created anew
/// is another one.
#[tokio::test]
async fn hd35_a_connection_does_not_outlive_its_membership() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let heads = socket.result("eth_subscribe", json!(["newHeads"])).await;
    chain.mine(0, &[]);
    world.node.refresh_head().await.unwrap();
    socket.item(&heads).await;
    let membership = world.fixture.feed.pin().snapshot.memberships(holder.id)[0];
    world
        .fixture
        .change(async |tx| {
            tx.remove_membership(membership.id).await.unwrap();
            let new = NewMembership {
                user: holder.id,
                group: membership.group,
                expires_at: None,
            };
            tx.add_membership(new).await.unwrap();
        })
        .await;
    chain.mine(0, &[]);
    world.node.refresh_head().await.unwrap();
    assert_end(&socket.next().await.unwrap_err(), ACCESS_ENDED);
}

/// WS-6: a connection that names an organization depends on that one only; a ban by another organization does not close
/// it.
#[tokio::test]
async fn ws6_another_organizations_ban_ends_no_connection_that_names_its_own() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let (own, guest_org) = (
        world.fixture.feed.pin().snapshot.memberships(holder.id)[0],
        world.fixture.create_org("other").await,
    );
    let own = world.fixture.feed.pin().snapshot.group(own.group).unwrap().org;
    world
        .fixture
        .change(async |tx| {
            let group = tx
                .create_group(NewGroup::plain(guest_org, "guests", "Guests"))
                .await
                .unwrap()
                .id;
            tx.add_membership(NewMembership {
                user: holder.id,
                group,
                expires_at: None,
            })
            .await
            .unwrap();
        })
        .await;
    let chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let at = world.listen().await;
    let (mut named, _) = open(at, By::Named(&holder.token, own)).await.unwrap();
    let (mut unnamed, _) = open(at, By::Header(&holder.token)).await.unwrap();
    let heads = named.result("eth_subscribe", json!(["newHeads"])).await;
    unnamed.result("eth_subscribe", json!(["newHeads"])).await;
    let ban = UserPatch {
        banned: Some(true),
        ..UserPatch::default()
    };
    let ban_in = async |org: OrgId| {
        let ban = ban.clone();
        world
            .fixture
            .change(async |tx| {
                let user = tx.read().find_user(holder.id).await.unwrap().unwrap();
                tx.update_org_user(org, &user, ban).await.unwrap();
            })
            .await;
        chain.mine(0, &[]);
        world.node.refresh_head().await.unwrap();
    };
    ban_in(guest_org).await;
    assert_end(&unnamed.next().await.unwrap_err(), ACCESS_ENDED);
    named.item(&heads).await;
    ban_in(own).await;
    assert_end(&named.next().await.unwrap_err(), ACCESS_ENDED);
}

/// WS-1: a later token of the same subject extends the connection; another subject's token changes nothing.
#[tokio::test]
async fn ws1_a_connection_is_extended_by_its_own_subject_only() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let bank = world.fixture.create_org("other").await;
    let other = world.person("other", bank, &FILTERS, &[]).await;
    let _chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    for bad in [other.token.as_str(), "nonsense"] {
        let answer = socket.call("gateway_authenticate", json!([bad])).await;
        assert_eq!(answer["error"]["code"], -32001, "{answer}");
    }
    world.fixture.clock.pass(86_000);
    world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
    let next = world
        .fixture
        .sign_token(&holder.name, TokenId::fixed(1), SessionId::fixed(2));
    assert_eq!(socket.result("gateway_authenticate", json!([next])).await, true);
    world.fixture.clock.pass(86_000);
    world.fixture.feed.catch_up_to(world.fixture.feed.epoch()).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(
        socket
            .result("eth_getBlockByNumber", json!(["latest", false]))
            .await
            .is_object(),
        "still open"
    );
    let until = world.fixture.clock.now_plus(gw_types::Seconds(86_400));
    world
        .fixture
        .change(async |tx| tx.revoke_access_token(TokenId::fixed(1), until).await.unwrap())
        .await;
    assert_end(&socket.ended().await, ACCESS_ENDED);
}

/// Shutdown closes connections and waits for them.
#[tokio::test]
async fn s61_shutdown_ends_connections() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::start(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    socket.result("eth_subscribe", json!(["newHeads"])).await;
    world.end.cancel();
    assert_end(&socket.ended().await, Some((1001, "going away")));
    tokio::time::timeout(Duration::from_secs(5), world.settle())
        .await
        .unwrap();
}

/// Subscriptions on a real node.
#[tokio::test]
async fn d51_subscriptions_on_a_real_chain() {
    let (world, _anvil) = real().await;
    let bank = world.fixture.create_org("bank").await;
    let methods = [&FILTERS[..], &["eth_getLogs", "eth_getBlockByNumber"]].concat();
    let holder = world.person("holder", bank, &methods, &[]).await;
    let emitter = world
        .deploy(&[
            0x64, 0x60, 0x00, 0x60, 0x00, 0xa0, 0x60, 0x00, 0x52, 0x60, 0x05, 0x60, 0x1b, 0xf3,
        ])
        .await;
    world.contract(bank, emitter, Some(&erc20()), &[holder.group]).await;
    let mut socket = world.connect(&holder).await;
    let heads = socket.result("eth_subscribe", json!(["newHeads"])).await;
    let before = world.node.head().unwrap().number;
    let (raw, hash): (String, B256) = signed(&account(0), 0, Some(emitter), 0, Bytes::new());
    let logs = socket
        .result("eth_subscribe", json!(["logs", {"address": emitter}]))
        .await;
    world.anvil("eth_sendRawTransaction", json!([raw])).await;
    world.mined(before + 1).await;
    assert_eq!(socket.item(&heads).await["number"], json!(format!("{:#x}", before + 1)));
    assert_eq!(socket.item(&logs).await["transactionHash"], json!(hash));
}
