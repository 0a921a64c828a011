//! What a connection remembers of the token that came last: whatever depends on the request is checked all
//! the same.

use std::time::Duration;

use http::header::AUTHORIZATION;
use jsonwebtoken::Algorithm;
use serde_json::json;

use super::support::*;
use crate::auth::LastToken;

fn ec(id: &str) -> SigningKey {
    SigningKey::ec(id, Algorithm::ES256)
}

fn value(token: &str) -> Vec<u8> {
    bearer(token)[AUTHORIZATION].as_bytes().to_vec()
}

/// Why the server refuses the token on this connection; empty when it does not.
async fn reason(door: &Door, last: &LastToken, name: &str, token: &str, seconds: u64) -> String {
    let identity = door.bearer_on(last, name, token, at(seconds)).await;
    identity.map_or_else(|denied| denied.reason().to_owned(), |_| String::new())
}

#[tokio::test]
async fn the_token_that_came_last_is_known_again() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let (last, token) = (LastToken::default(), key.token(&idp.url, &json!({})));
    let first = door.bearer_on(&last, "a", &token, now()).await.unwrap();
    assert!(last.recall(&value(&token), now()).is_some());
    let again = door.bearer_on(&last, "a", &token, now()).await.unwrap();
    assert_eq!(first, again);
}

#[tokio::test]
async fn a_token_that_has_expired_in_the_meantime_is_refused() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let token = key.token(&idp.url, &json!({"exp": NOW + 5}));
    let last = LastToken::default();
    assert_eq!(reason(&door, &last, "a", &token, NOW + 34).await, "");
    let late = reason(&door, &last, "a", &token, NOW + 35).await;
    assert_eq!(late, "token_expired");
}

#[tokio::test]
async fn a_token_for_one_server_does_not_open_another_on_the_same_connection() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let (last, token) = (LastToken::default(), key.token(&idp.url, &json!({})));
    assert_eq!(reason(&door, &last, "a", &token, NOW).await, "");
    let other = reason(&door, &last, "b", &token, NOW).await;
    assert_eq!(other, "wrong_audience");
    assert_eq!(reason(&door, &last, "a", &token, NOW).await, "");
}

#[tokio::test]
async fn a_token_whose_key_is_withdrawn_is_forgotten() {
    let (old, new) = (ec("old"), ec("new"));
    let (door, idp) = Door::trusting(&[&old]).await;
    let (last, token) = (LastToken::default(), old.token(&idp.url, &json!({})));
    assert_eq!(reason(&door, &last, "a", &token, NOW).await, "");
    idp.publish(&[&new]);
    assert_eq!(door.reason(&new.token(&idp.url, &json!({}))).await, "");
    let withdrawn = reason(&door, &last, "a", &token, NOW).await;
    assert_eq!(withdrawn, "unknown_signing_key");
}

#[tokio::test]
async fn another_token_on_the_same_connection_is_another_person() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let last = LastToken::default();
    let alice = key.token(&idp.url, &json!({}));
    let bob = key.token(&idp.url, &json!({"sub": "bob"}));
    for (token, subject) in [(&alice, "alice"), (&bob, "bob"), (&alice, "alice")] {
        let identity = door.bearer_on(&last, "a", token, now()).await.unwrap();
        assert_eq!(identity.principal.subject(), subject);
    }
    let forged = format!("{alice}x");
    assert_ne!(reason(&door, &last, "a", &forged, NOW).await, "");
    let cut = alice.strip_suffix(|_| true).unwrap();
    assert_ne!(reason(&door, &last, "a", cut, NOW).await, "");
    assert_eq!(reason(&door, &last, "a", &alice, NOW).await, "");
}

#[tokio::test]
async fn a_second_credential_is_refused_beside_a_token_that_is_known() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let (last, token) = (LastToken::default(), key.token(&idp.url, &json!({})));
    assert_eq!(reason(&door, &last, "a", &token, NOW).await, "");
    let mut both = bearer(&token);
    both.insert("x-api-key", "0123456789abcdef".parse().unwrap());
    let denied = door.ask_on(&last, "a", &both).await.unwrap_err();
    assert_eq!(denied.reason(), "several_credentials");
}

#[tokio::test]
async fn a_minute_after_it_was_checked_a_token_is_checked_again() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let (last, token) = (LastToken::default(), key.token(&idp.url, &json!({})));
    assert_eq!(reason(&door, &last, "a", &token, NOW).await, "");
    // Being used does not prolong it.
    assert_eq!(reason(&door, &last, "a", &token, NOW + 59).await, "");
    let known = |seconds| last.recall(&value(&token), at(seconds)).is_some();
    assert!(known(NOW + 59));
    assert!(!known(NOW + 60));
    assert!(
        last.recall(&value(&token), now() - Duration::from_secs(1))
            .is_none(),
        "a clock that was set back tells no age"
    );
}

#[tokio::test]
async fn what_is_remembered_is_not_shown() {
    let key = ec("k1");
    let (door, idp) = Door::trusting(&[&key]).await;
    let (last, token) = (LastToken::default(), key.token(&idp.url, &json!({})));
    assert_eq!(reason(&door, &last, "a", &token, NOW).await, "");
    assert_eq!(format!("{last:?}"), "LastToken");
    last.forget();
    assert!(last.recall(&value(&token), now()).is_none());
}
