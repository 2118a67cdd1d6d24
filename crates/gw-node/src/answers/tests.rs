use super::*;

const ONE: Payer = Payer::User(UserId::fixed(1));
const OTHER: Payer = Payer::User(UserId::fixed(2));
const THIRD: Payer = Payer::User(UserId::fixed(3));

fn budget(max: usize, per_caller: usize, patience: Duration) -> Arc<AnswerBudget> {
    AnswerBudget::new(AnswerLimits {
        max,
        per_caller,
        patience,
    })
}

fn hold(budget: &Arc<AnswerBudget>, payer: Payer) -> Arc<AnswerHold> {
    let hold = AnswerHold::default();
    hold.charge_to(budget, payer);
    Arc::new(hold)
}

/// Effectively forever: the paused clock advances only when all tasks wait.
const LONG: Duration = Duration::from_secs(3600);

async fn until_waiting(budget: &AnswerBudget, count: usize) {
    while budget.waiting() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn rl8_a_caller_never_holds_more_than_its_share_and_waits_for_its_own() {
    let budget = budget(100, 40, LONG);
    let first = hold(&budget, ONE);
    let lease = first.lease(30).await.unwrap();
    let second = hold(&budget, ONE);
    let waits = tokio::spawn({
        let second = Arc::clone(&second);
        async move { second.lease(20).await }
    });
    until_waiting(&budget, 1).await;
    assert_eq!(
        hold(&budget, OTHER).lease(40).await.unwrap().bytes(),
        40,
        "other callers do not wait"
    );
    drop(lease);
    assert_eq!(
        budget.held_by(ONE),
        30,
        "bytes released by one answer stay reserved for its request until the request ends"
    );
    drop(first);
    let lease = waits.await.unwrap().unwrap();
    assert_eq!((budget.held_by(ONE), budget.peak()), (20, 70));
    drop((lease, second));
    assert_eq!((budget.held(), budget.waiting()), (0, 0));
    assert!(budget.ledger().shares.is_empty(), "no share is kept");
}

#[tokio::test(start_paused = true)]
async fn rl8_a_call_without_room_in_time_is_refused_and_leaves_nothing_behind() {
    let budget = budget(100, 40, Duration::ZERO);
    let held = hold(&budget, ONE).lease(30).await.unwrap();
    assert_eq!(hold(&budget, ONE).lease(20).await.unwrap_err(), NoRoom);
    assert_eq!((budget.held(), budget.waiting()), (30, 0));
    drop(held);
    assert_eq!(budget.held(), 0);
    // The only holder may exceed its share.
    assert_eq!(hold(&budget, ONE).lease(500).await.unwrap().bytes(), 500);
}

#[tokio::test(start_paused = true)]
async fn rl8_the_caller_with_the_fewest_bytes_is_next_and_is_not_overtaken() {
    let budget = budget(100, 60, LONG);
    let (one, other) = (
        hold(&budget, ONE).lease(60).await.unwrap(),
        hold(&budget, OTHER).lease(20).await.unwrap(),
    );
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let mut tasks = Vec::new();
    for (index, (name, payer, bytes)) in [("other", OTHER, 30), ("third", THIRD, 50), ("small", OTHER, 1)]
        .iter()
        .enumerate()
    {
        let (hold, order) = (hold(&budget, *payer), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let lease = hold.lease(*bytes).await.unwrap();
            order.lock().unwrap().push(*name);
            drop((lease, hold));
        }));
        until_waiting(&budget, index + 1).await;
    }
    drop(one);
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), ["third", "other", "small"]);
    drop(other);
    assert_eq!(budget.held(), 0);
}

/// Two growing answers fill the share: the second one that asks for more is refused, the first one continues.
#[tokio::test(start_paused = true)]
async fn rl8_answers_that_wait_for_each_other_are_not_both_refused() {
    let budget = budget(100, 40, LONG);
    let [one, two] = [hold(&budget, ONE), hold(&budget, ONE)];
    let mut first = one.lease(20).await.unwrap();
    let mut second = two.lease(20).await.unwrap();
    let grows = tokio::spawn(async move { first.grow_to(30).await.map(|()| first) });
    until_waiting(&budget, 1).await;
    assert_eq!(second.grow_to(30).await, Err(NoRoom));
    drop((second, two));
    assert_eq!(grows.await.unwrap().unwrap().bytes(), 30);
    drop(one);
    assert_eq!(budget.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn rl8_one_request_uses_its_room_again_and_trims_what_it_does_not_need() {
    let budget = budget(100, 40, Duration::ZERO);
    let hold = hold(&budget, ONE);
    drop(hold.lease(30).await.unwrap());
    let answer = hold.lease(30).await.unwrap();
    assert_eq!(budget.held(), 30);
    drop(answer);
    let text = hold.claim(35);
    assert_eq!(budget.held(), 35);
    drop(text);
    let text = hold.claim(10);
    hold.trim();
    assert_eq!(budget.held(), 10);
    drop(hold);
    assert_eq!(budget.held(), 10, "the text holds its bytes until it is sent");
    drop(text);
    assert_eq!(budget.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn rl8_the_gateways_own_requests_are_counted_and_never_wait() {
    let budget = budget(100, 40, Duration::ZERO);
    let own = hold(&budget, Payer::Gateway).lease(500).await.unwrap();
    assert_eq!(budget.held(), 500);
    assert_eq!(hold(&budget, ONE).lease(20).await.unwrap_err(), NoRoom);
    drop(own);
    assert!(hold(&budget, ONE).lease(20).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn rl8_a_request_that_is_given_up_leaves_the_queue_or_returns_what_it_got() {
    let budget = budget(100, 40, LONG);
    let held = hold(&budget, ONE).lease(40).await.unwrap();
    for before_it_is_granted in [true, false] {
        let asking = hold(&budget, ONE);
        let mut lease = Box::pin(async move { asking.lease(20).await });
        assert!(futures_poll(lease.as_mut()).is_none());
        assert_eq!(budget.waiting(), 1);
        if before_it_is_granted {
            drop(lease);
            assert_eq!((budget.waiting(), budget.held()), (0, 40));
        } else {
            budget.give_back(ONE, 40, true);
            assert_eq!((budget.waiting(), budget.held()), (0, 20));
            drop(lease);
            assert_eq!(budget.held(), 0);
        }
    }
    std::mem::forget(held);
}

fn futures_poll<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.poll(&mut context) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}
