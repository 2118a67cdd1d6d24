//! Connections that stay: who opens them, what they deliver, when they end (HD18, decision 51).

use crate::{
    live::{Chain, FILTERS, HIDDEN, TOKEN, TRANSFER, erc20, holder},
    world::{Person, World, account, real, scripted, signed},
};
use futures_util::{SinkExt as _, StreamExt as _};
use gw_store::record::{NewGroup, NewMembership, UserPatch};
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
/// What the connection ends with, whatever right was lost.
const ACCESS_ENDED: Option<(u16, &str)> = Some((1008, "access ended"));
/// What a connection ends with that nobody authenticated.
const AUTHENTICATE_FIRST: Option<(u16, &str)> = Some((1008, "authenticate first"));

struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

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

    async fn connect(&self, who: &Person) -> Socket {
        open(self.listen().await, By::Header(&who.token)).await.unwrap().0
    }
}

async fn open(at: SocketAddr, by: By<'_>) -> Result<(Socket, HeaderMap), u16> {
    let mut request = format!("ws://{at}/rpc/ws").into_client_request().unwrap();
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

    /// The next message; the end as its code and reason.
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

    async fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params).await;
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The item of the next notification of a subscription.
    async fn item(&mut self, subscription: &Value) -> Value {
        let said = self.next().await.unwrap();
        assert_eq!(
            (&said["jsonrpc"], &said["method"]),
            (&json!("2.0"), &json!("eth_subscription")),
            "{said}"
        );
        assert_eq!(said["params"]["subscription"], *subscription);
        said["params"]["result"].clone()
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

fn is(end: &Option<(u16, String)>, expected: Option<(u16, &str)>) {
    assert_eq!(end.as_ref().map(|(code, reason)| (*code, reason.as_str())), expected);
}

/// WS-1: a token by header, by subprotocol or by the first message; the plain subprotocol comes back, not the token.
#[tokio::test]
async fn ws1_a_connection_says_who_it_is() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::on(&fake);
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

/// RTO10, WS-1: before it authenticates a connection gets metadata as over HTTP, and is told to authenticate for the rest;
/// a batch of both is refused whole. It may authenticate then.
#[tokio::test]
async fn rto10_an_unauthenticated_connection_is_told_to_authenticate() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::on(&fake);
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
    let _chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let at = world.listen().await;
    for (by, said) in [
        (By::Header(&holder.token), true),
        (By::Header(&holder.token), false),
        (By::Nothing, false),
    ] {
        let (mut socket, _) = open(at, by).await.unwrap();
        if said {
            socket.result("eth_chainId", json!([])).await;
        }
        let frame = CloseFrame {
            code: CloseCode::Normal,
            reason: "done".into(),
        };
        socket.0.send(Message::Close(Some(frame))).await.unwrap();
        is(&socket.ended().await, Some((1000, "done")));
    }
}

/// WS-1: nobody unknown keeps a connection: no token, a bad one, a cookie, a query.
#[tokio::test]
async fn ws1_a_stranger_is_shown_out() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let at = world.listen().await;
    for by in [By::Header("nonsense"), By::Protocol("bearer.nonsense")] {
        assert_eq!(open(at, by).await.err(), Some(401));
    }
    let call = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (mut socket, _) = open(at, By::Nothing).await.unwrap();
    socket.send(call("gateway_authenticate", json!(["nonsense"]))).await;
    is(&socket.ended().await, AUTHENTICATE_FIRST);
    // The browser sends the cookie along with any page's connection: it says nothing here.
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
    is(&socket.ended().await, AUTHENTICATE_FIRST);
    // And whoever is shut out does not get in.
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
    // No WebSocket, no answer of one.
    assert_eq!(world.raw("").path("/ws").send().await.status, 404);
}

/// WS-1: five seconds to say who it is.
#[tokio::test]
async fn ws1_silence_is_no_introduction() {
    let (world, _fake) = scripted().await;
    let (mut socket, _) = open(world.listen().await, By::Nothing).await.unwrap();
    let began = tokio::time::Instant::now();
    is(&socket.ended().await, AUTHENTICATE_FIRST);
    assert!((4..8).contains(&began.elapsed().as_secs()));
}

/// Every message is a call like any other: all methods, batches, denials, errors.
#[tokio::test]
async fn d51_messages_are_calls_through_the_same_pipeline() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let asked = [
        ("eth_chainId", json!([])),
        ("eth_getLogs", json!([{"address": TOKEN}])),
        ("eth_getLogs", json!([{"address": OTHER}])),
        ("eth_getBalance", json!([OTHER, "latest"])),
        ("eth_getBlockByNumber", json!([])),
        ("eth_newPendingTransactionFilter", json!([])),
    ];
    for (method, params) in asked {
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

/// WS-3: what comes is what `eth_getLogs` and `eth_getBlockByNumber` show the same caller.
#[tokio::test]
async fn ws3_notifications_show_what_the_reads_show() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
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

/// HD1: a subscription that names a hidden wallet hears nothing, like one that names a random address.
#[tokio::test]
async fn hd1_a_subscription_finds_no_hidden_address() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    let mut socket = world.connect(&holder).await;
    let topics = json!([TRANSFER, HIDDEN.into_word()]);
    socket
        .result("eth_subscribe", json!(["logs", {"address": TOKEN, "topics": topics}]))
        .await;
    let all = socket
        .result("eth_subscribe", json!(["logs", {"address": TOKEN}]))
        .await;
    chain.mine(0, &[(HIDDEN, OTHER)]);
    world.node.refresh_head().await.unwrap();
    let item = socket.item(&all).await;
    assert_eq!(item["topics"][1], json!(B256::ZERO));
    let refused = socket.call("eth_subscribe", json!(["logs", {}])).await;
    assert_eq!(refused["error"]["code"], -32601, "no address, no logs");
    assert_eq!(
        socket.call("eth_subscribe", json!(["newPendingTransactions"])).await["error"]["code"],
        -32602
    );
}

/// WS-4, over a connection.
#[tokio::test]
async fn ws4_a_reorganization_is_followed() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
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

/// WS-5: sixteen subscriptions a connection.
#[tokio::test]
async fn ws5_subscriptions_are_bounded_and_deliveries_recorded() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let mut made = Vec::new();
    for _ in 0..16 {
        made.push(socket.result("eth_subscribe", json!(["newHeads"])).await);
    }
    let refused = socket.call("eth_subscribe", json!(["newHeads"])).await;
    assert_eq!(
        refused["error"],
        json!({"code": -32005, "message": "too many subscriptions: 16 at most"})
    );
    for id in made.iter().skip(1) {
        socket.result("eth_unsubscribe", json!([id])).await;
    }
    world.records().await;
    chain.mine(0, &[]);
    world.node.refresh_head().await.unwrap();
    socket.item(&made[0]).await;
    let record = world.record().await;
    assert_eq!(
        (record.method.as_ref(), record.status_code, record.node_called),
        ("eth_subscription", 200, true)
    );
    assert_eq!(record.external_id.as_ref(), Some(&holder.name));
}

/// WS-5: a reader that takes nothing is given up once a megabyte waits.
#[tokio::test]
async fn ws5_a_slow_reader_is_given_up() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    let many: Vec<_> = (0..9000).map(|_| (OTHER, HIDDEN)).collect();
    chain.mine(0, &many);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    // Five megabytes an answer: more than the system's own buffers take, and more than may wait here.
    for id in 0..16 {
        let ask = json!({"jsonrpc": "2.0", "id": id, "method": "eth_getLogs", "params": [{"address": TOKEN}]});
        socket.send(ask).await;
    }
    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut answers = 0;
    while socket.next().await.is_ok() {
        answers += 1;
    }
    assert!(answers < 16, "{answers} of 16 were kept for it");
}

/// WS-6: whatever right was lost, one end, and nothing delivered after it.
#[tokio::test]
async fn ws6_a_connection_ends_with_the_right_to_it() {
    for lost in ["ban", "revocation", "expiry", "staleness", "membership", "user"] {
        let (world, fake) = scripted().await;
        let holder = holder(&world, "holder").await;
        let chain = Chain::on(&fake);
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
                let until = world.clock.now_plus(gw_types::Seconds(86_400));
                world
                    .change(async |tx| tx.revoke_access_token(holder.token_id, until).await.unwrap())
                    .await;
            }
            "expiry" => {
                world.clock.pass(86_400 + 5);
                world.feed.catch_up_to(world.feed.epoch()).await;
            }
            "staleness" => world.uptime.pass(60),
            "membership" => {
                let membership = world.feed.pin().snapshot.memberships(holder.id)[0].id;
                drop(
                    world
                        .change(async |tx| tx.remove_membership(membership).await.unwrap())
                        .await,
                );
            }
            _ => drop(world.change(async |tx| tx.delete_user(holder.id).await.unwrap()).await),
        }
        chain.mine(0, &[]);
        world.node.refresh_head().await.unwrap();
        is(&socket.next().await.unwrap_err(), ACCESS_ENDED);
    }
}

/// HD35: a connection stands on the memberships it was opened with; one that was ended and made again is another one.
#[tokio::test]
async fn hd35_a_connection_does_not_outlive_the_membership_it_stood_on() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    let heads = socket.result("eth_subscribe", json!(["newHeads"])).await;
    chain.mine(0, &[]);
    world.node.refresh_head().await.unwrap();
    socket.item(&heads).await;
    let membership = world.feed.pin().snapshot.memberships(holder.id)[0];
    world
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
    is(&socket.next().await.unwrap_err(), ACCESS_ENDED);
}

/// WS-6: a connection that names an organization stands on that one alone; another one's ban of their guest is no matter of
/// its.
#[tokio::test]
async fn ws6_another_organizations_ban_ends_no_connection_that_names_its_own() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let (own, other) = (
        world.feed.pin().snapshot.memberships(holder.id)[0],
        world.org("other").await,
    );
    let own = world.feed.pin().snapshot.group(own.group).unwrap().org;
    world
        .change(async |tx| {
            let group = tx
                .create_group(NewGroup::plain(other, "guests", "Guests"))
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
    let chain = Chain::on(&fake);
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
    let banned = async |org: OrgId| {
        let ban = ban.clone();
        world
            .change(async |tx| {
                let user = tx.read().find_user(holder.id).await.unwrap().unwrap();
                tx.update_org_user(org, &user, ban).await.unwrap();
            })
            .await;
        chain.mine(0, &[]);
        world.node.refresh_head().await.unwrap();
    };
    banned(other).await;
    is(&unnamed.next().await.unwrap_err(), ACCESS_ENDED);
    named.item(&heads).await;
    banned(own).await;
    is(&named.next().await.unwrap_err(), ACCESS_ENDED);
}

/// WS-1: the same subject's next token extends; another's does not, and changes nothing.
#[tokio::test]
async fn ws1_a_connection_is_extended_by_its_own_subject_only() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let bank = world.org("other").await;
    let other = world.person("other", bank, &FILTERS, &[]).await;
    let _chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    for bad in [other.token.as_str(), "nonsense"] {
        let answer = socket.call("gateway_authenticate", json!([bad])).await;
        assert_eq!(answer["error"]["code"], -32001, "{answer}");
    }
    world.clock.pass(86_000);
    world.feed.catch_up_to(world.feed.epoch()).await;
    let next = world.token(&holder.name, TokenId::fixed(1), SessionId::fixed(2));
    assert_eq!(socket.result("gateway_authenticate", json!([next])).await, true);
    world.clock.pass(86_000);
    world.feed.catch_up_to(world.feed.epoch()).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(
        socket
            .result("eth_getBlockByNumber", json!(["latest", false]))
            .await
            .is_object(),
        "still open"
    );
    let until = world.clock.now_plus(gw_types::Seconds(86_400));
    world
        .change(async |tx| tx.revoke_access_token(TokenId::fixed(1), until).await.unwrap())
        .await;
    is(&socket.ended().await, ACCESS_ENDED);
}

/// Shutdown ends connections and waits for them.
#[tokio::test]
async fn s61_shutdown_ends_connections() {
    let (world, fake) = scripted().await;
    let holder = holder(&world, "holder").await;
    let _chain = Chain::on(&fake);
    world.node.refresh_head().await.unwrap();
    let mut socket = world.connect(&holder).await;
    socket.result("eth_subscribe", json!(["newHeads"])).await;
    world.end.cancel();
    is(&socket.ended().await, Some((1001, "going away")));
    tokio::time::timeout(Duration::from_secs(5), world.settle())
        .await
        .unwrap();
}

/// The same against a real node.
#[tokio::test]
async fn d51_subscriptions_on_a_real_chain() {
    let (world, _anvil) = real().await;
    let bank = world.org("bank").await;
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
