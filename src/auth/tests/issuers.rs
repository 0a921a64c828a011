//! Keys come and go; issuers fail. Who may come in stays right.

use std::io::Write as _;
use std::sync::Arc;

use futures_util::future::join_all;
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};
use url::Url;

use super::support::*;
use crate::config::{Issuer, KeySource};

fn ec(id: &str) -> SigningKey {
    SigningKey::ec(id, Algorithm::ES256)
}

#[tokio::test]
async fn a_new_key_is_accepted_with_the_first_request_after_its_publication() {
    let (old, new) = (ec("old"), ec("new"));
    let (door, idp) = Door::trusting(&[&old]).await;
    idp.publish(&[&new, &old]);
    assert_eq!(door.reason(&new.token(&idp.url, &json!({}))).await, "");
    assert_eq!(door.reason(&old.token(&idp.url, &json!({}))).await, "");
    assert_eq!(idp.jwks_fetches(), 2);
}

#[tokio::test]
async fn a_withdrawn_key_opens_nothing_any_more_not_even_for_remembered_tokens() {
    let (old, new) = (ec("old"), ec("new"));
    let (door, idp) = Door::trusting(&[&old]).await;
    let remembered = old.token(&idp.url, &json!({}));
    assert_eq!(door.reason(&remembered).await, "");
    idp.publish(&[&new]);
    assert_eq!(door.reason(&new.token(&idp.url, &json!({}))).await, "");
    assert_eq!(door.reason(&remembered).await, "unknown_signing_key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_made_up_key_ids_cause_one_fetch_and_disturb_nobody() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let door = Arc::new(door);
    let made_up = |n: usize| {
        let key = SigningKey {
            id: format!("made-up-{n}"),
            ..key.clone()
        };
        key.token(&idp.url, &json!({"jti": n}))
    };
    let good = |n: usize| key.token(&idp.url, &json!({"jti": n}));
    let tokens: Vec<String> = (0..1000).flat_map(|n| [made_up(n), good(n)]).collect();
    let tasks = tokio_util::task::TaskTracker::new();
    let answers = tokens.into_iter().map(|token| {
        let door = Arc::clone(&door);
        tasks.spawn(async move { door.reason(&token).await })
    });
    let answers: Vec<&str> = join_all(answers)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    for pair in answers.chunks(2) {
        assert_eq!(pair, ["unknown_signing_key", ""]);
    }
    assert_eq!(
        idp.jwks_fetches(),
        2,
        "one at the start, one for all of them"
    );
}

#[tokio::test]
async fn hanging_up_does_not_cancel_the_fetch_that_a_request_asked_for() {
    let (old, new) = (ec("old"), ec("new"));
    let (door, idp) = Door::trusting(&[&old]).await;
    idp.answer(Answer::Held(set(&[&new])));
    let token = new.token(&idp.url, &json!({}));
    tokio::select! {
        _ = door.reason(&token) => panic!("the keys are held back"),
        () = until(|| idp.jwks_fetches() == 2) => {}
    }
    idp.release();
    assert_eq!(door.reason(&token).await, "");
    assert_eq!(idp.jwks_fetches(), 2);
}

#[tokio::test]
async fn a_slow_issuer_delays_only_those_who_need_its_answer() {
    let (old, new) = (ec("old"), ec("new"));
    let (door, idp) = Door::trusting(&[&old]).await;
    idp.answer(Answer::Held(set(&[&new, &old])));
    let token = new.token(&idp.url, &json!({}));
    let asking = door.reason(&token);
    let others = async {
        until(|| idp.jwks_fetches() == 2).await;
        assert_eq!(
            door.reason(&old.token(&idp.url, &json!({"jti": "2"})))
                .await,
            ""
        );
        idp.release();
    };
    let (reason, ()) = tokio::join!(asking, others);
    assert_eq!(reason, "");
}

#[tokio::test]
async fn good_keys_outlive_every_kind_of_outage() {
    let many = "A".repeat(1024 * 1024);
    for (name, fault) in [
        ("unavailable", Answer::Unavailable),
        ("garbage", Answer::Text("<html>not json</html>".to_owned())),
        ("nothing", Answer::Text(String::new())),
        ("no keys", Answer::Json(json!({"keys": []}))),
        ("no list", Answer::Json(json!({"keys": {}}))),
        (
            "only keys that can't be used",
            Answer::Json(json!({"keys": [{"kty": "oct", "k": "AAAA"}]})),
        ),
        ("huge", Answer::Json(json!({"keys": [], "pad": many}))),
        (
            "redirect",
            Answer::Redirect("http://127.0.0.1:9/".to_owned()),
        ),
    ] {
        let key = ec("k1");
        let (door, idp) = Door::trusting(&[&key]).await;
        idp.answer(fault);
        let unknown = SigningKey {
            id: "unknown".to_owned(),
            ..key.clone()
        };
        let denied = door
            .bearer(&unknown.token(&idp.url, &json!({})))
            .await
            .unwrap_err();
        assert_eq!(
            (denied.status().as_u16(), denied.reason()),
            (401, "unknown_signing_key"),
            "{name}"
        );
        assert_eq!(idp.jwks_fetches(), 2, "{name}");
        assert_eq!(
            door.reason(&key.token(&idp.url, &json!({}))).await,
            "",
            "{name}"
        );
        assert!(door.is_ready(&idp.url), "{name}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let key = ec("k1");
    let elsewhere = Idp::start(Answer::Json(set(&[&key]))).await;
    let idp = Idp::start(Answer::Redirect(elsewhere.jwks_url())).await;
    let door = Door::open(&config(required(vec![idp.by_url()], Vec::new())));
    assert_eq!(
        door.reason(&key.token(&idp.url, &json!({}))).await,
        "issuer_keys_unavailable"
    );
    assert_eq!(elsewhere.jwks_fetches(), 0);
}

#[tokio::test]
async fn without_keys_nobody_is_told_that_their_token_is_bad_and_it_heals_by_itself() {
    let key = ec("k1");
    let idp = Idp::start(Answer::Unavailable).await;
    let door = Door::open(&config(required(vec![idp.by_url()], Vec::new())));
    let token = key.token(&idp.url, &json!({}));
    let denied = door.bearer(&token).await.unwrap_err();
    assert_eq!(
        (denied.status().as_u16(), denied.reason()),
        (503, "issuer_keys_unavailable")
    );
    assert_eq!(
        denied.www_authenticate(),
        None,
        "a challenge would make the client log in anew"
    );
    assert!(denied.retry_after().is_some());
    assert!(!door.is_ready(&idp.url));
    idp.publish(&[&key]);
    door.until_ready(&idp.url).await;
    assert_eq!(door.reason(&token).await, "");
}

#[tokio::test]
async fn a_request_that_comes_before_the_first_keys_waits_for_them() {
    let key = ec("k1");
    let idp = Idp::start(Answer::Held(set(&[&key]))).await;
    let door = Door::open(&config(required(vec![idp.by_url()], Vec::new())));
    let token = key.token(&idp.url, &json!({}));
    let released = async {
        until(|| idp.jwks_fetches() == 1).await;
        idp.release();
    };
    let (reason, ()) = tokio::join!(door.reason(&token), released);
    assert_eq!(reason, "");
}

#[tokio::test]
async fn one_bad_issuer_does_not_harm_another() {
    let key = ec("k1");
    let good = Idp::start(Answer::Json(set(&[&key]))).await;
    let bad = Idp::start(Answer::Text("<html>".to_owned())).await;
    let nobody = Issuer {
        issuer: "http://127.0.0.1:1".to_owned(),
        keys: KeySource::Discovery,
        audiences: Vec::new(),
    };
    let issuers = vec![nobody, bad.by_url(), good.by_url()];
    let door = Door::open(&config(required(issuers, Vec::new())));
    door.until_ready(&good.url).await;
    assert_eq!(door.reason(&key.token(&good.url, &json!({}))).await, "");
    assert_eq!(
        door.reason(&key.token(&bad.url, &json!({}))).await,
        "issuer_keys_unavailable"
    );
    assert!(!door.is_ready(&bad.url));
}

#[tokio::test]
async fn a_key_of_one_issuer_does_not_vouch_for_another() {
    let (one, two) = (ec("same-id"), ec("same-id"));
    let first = Idp::start(Answer::Json(set(&[&one]))).await;
    let second = Idp::start(Answer::Json(set(&[&two]))).await;
    let door = Door::open(&config(required(
        vec![first.by_url(), second.by_url()],
        Vec::new(),
    )));
    door.until_ready(&first.url).await;
    door.until_ready(&second.url).await;
    assert_eq!(
        door.reason(&two.token(&first.url, &json!({}))).await,
        "bad_signature"
    );
    let alice = |key: &SigningKey, idp: &Idp| key.token(&idp.url, &json!({}));
    let at_first = door.bearer(&alice(&one, &first)).await.unwrap().principal;
    let at_second = door.bearer(&alice(&two, &second)).await.unwrap().principal;
    assert_ne!(
        at_first, at_second,
        "the same subject of another issuer is somebody else"
    );
}

/// A key set as it is found in the wild: two good keys among keys for other purposes.
#[tokio::test]
async fn keys_that_can_not_be_used_are_skipped_and_open_nothing() {
    let (good, rsa) = (ec("good"), SigningKey::rsa("good-rsa", Algorithm::PS384));
    let mut with_private_member = rsa.jwk();
    with_private_member["d"] = json!("AAAA");
    let mut published = vec![
        json!(7),
        json!({"kid": "no type"}),
        json!({"kty": "XYZ", "kid": "future", "use": "sig"}),
        json!({"kty": "OKP", "crv": "X25519", "x": "AAAA", "kid": "x25519"}),
        json!({"kty": "EC", "crv": "P-521", "x": "AAAA", "y": "AAAA", "kid": "p521"}),
        with_private_member,
    ];
    // Each of these would check the tokens of its key if it were used, or fail them all.
    let unusable: Vec<SigningKey> = [
        ("use", json!("enc")),
        ("key_ops", json!(["encrypt"])),
        ("alg", json!("RS256")),
        ("alg", json!("ECDH-ES")),
        ("crv", json!("P-384")),
        ("x", json!("AAAA")),
        ("y", json!("%%%")),
    ]
    .into_iter()
    .enumerate()
    .map(|(n, (name, value))| {
        let key = ec(&format!("unusable-{n}"));
        let mut jwk = key.jwk();
        jwk[name] = value;
        published.push(jwk);
        key
    })
    .collect();
    let small = SigningKey {
        id: "small".to_owned(),
        ..rsa.clone()
    };
    published.push(json!({"kty": "RSA", "n": "AAAA", "e": "AQAB", "kid": "small"}));
    let secret = jsonwebtoken::EncodingKey::from_secret(b"secret").unwrap();
    let oct = SigningKey {
        id: "oct".to_owned(),
        algorithm: Algorithm::HS256,
        private: secret,
    };
    published.push(json!({"kty": "oct", "k": "c2VjcmV0", "kid": "oct", "use": "sig"}));
    published.push(good.jwk());

    let (door, idp) = Door::trusting(&[&good]).await;
    idp.answer(Answer::Json(json!({"keys": published})));
    let token = |key: &SigningKey| key.token(&idp.url, &json!({}));
    assert_eq!(door.reason(&token(&rsa)).await, "");
    assert_eq!(door.reason(&token(&good)).await, "");
    for key in unusable.iter().chain([&small]) {
        assert_eq!(
            door.reason(&token(key)).await,
            "unknown_signing_key",
            "{}",
            key.id
        );
    }
    assert_eq!(door.reason(&token(&oct)).await, "algorithm_not_allowed");
}

#[tokio::test]
async fn keys_beyond_the_hundredth_are_not_looked_at() {
    let (first, last) = (ec("first"), ec("last"));
    let filler = first.jwk();
    let mut keys: Vec<Value> = std::iter::repeat_n(filler, 100).collect();
    keys.push(last.jwk());
    let (door, idp) = Door::trusting(&[&first]).await;
    idp.answer(Answer::Json(json!({"keys": keys})));
    assert_eq!(
        door.reason(&last.token(&idp.url, &json!({}))).await,
        "unknown_signing_key"
    );
    assert_eq!(door.reason(&first.token(&idp.url, &json!({}))).await, "");
}

#[tokio::test]
async fn keys_can_come_from_a_file_and_a_new_one_in_it_is_found() {
    let (old, new) = (ec("old"), ec("new"));
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(set(&[&old]).to_string().as_bytes()).unwrap();
    let issuer = Issuer {
        issuer: "https://idp.example.test".to_owned(),
        keys: KeySource::File(file.path().to_owned()),
        audiences: Vec::new(),
    };
    let name = issuer.issuer.clone();
    let door = Door::open(&config(required(vec![issuer], Vec::new())));
    assert_eq!(door.reason(&old.token(&name, &json!({}))).await, "");
    std::fs::write(file.path(), set(&[&new]).to_string()).unwrap();
    assert_eq!(door.reason(&new.token(&name, &json!({}))).await, "");
}

#[tokio::test]
async fn a_missing_or_endless_file_leaves_the_issuer_without_keys() {
    let key = ec("k1");
    for path in ["/nonexistent/jwks.json", "/dev/zero"] {
        let keys = KeySource::File(path.into());
        let issuer = "https://idp.example.test".to_owned();
        let issuers = vec![Issuer {
            issuer: issuer.clone(),
            keys,
            audiences: Vec::new(),
        }];
        let door = Door::open(&config(required(issuers, Vec::new())));
        assert_eq!(
            door.reason(&key.token(&issuer, &json!({}))).await,
            "issuer_keys_unavailable"
        );
    }
}

#[tokio::test]
async fn an_address_where_nobody_answers_is_an_outage_like_any_other() {
    let key = ec("k1");
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let keys = KeySource::Url(Url::parse(&format!("{closed}/jwks")).unwrap());
    let issuers = vec![Issuer {
        issuer: closed.clone(),
        keys,
        audiences: Vec::new(),
    }];
    let door = Door::open(&config(required(issuers, Vec::new())));
    assert_eq!(
        door.reason(&key.token(&closed, &json!({}))).await,
        "issuer_keys_unavailable"
    );
}
