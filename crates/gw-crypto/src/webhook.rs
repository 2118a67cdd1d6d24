//! Signatures of webhook deliveries, as the [Standard Webhooks](https://www.standardwebhooks.com) specification defines
//! them: HMAC-SHA256 with a shared secret.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gw_types::{Secret, WebhookSecret};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Returns the text of a secret for its receiver: `whsec_` and the bytes in base64.
pub fn webhook_secret_text(secret: &WebhookSecret) -> Secret {
    Secret::new(format!("whsec_{}", STANDARD.encode(secret.expose())))
}

/// Returns the header `webhook-signature` of a delivery: `v1,` and the code of `{id}.{timestamp}.{body}` in base64.
/// `timestamp` is the header `webhook-timestamp`, in seconds since 1970; a receiver refuses an old one.
pub fn webhook_signature(secret: &WebhookSecret, id: &str, timestamp: i64, body: &str) -> String {
    signature(secret.expose(), id, timestamp, body)
}

fn signature(key: &[u8], id: &str, timestamp: i64, body: &str) -> String {
    // HMAC takes a key of any length.
    let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else {
        return String::new();
    };
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    #[test]
    fn a_signature_is_that_of_the_standard() {
        let bytes = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = signature(
            &bytes,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_signature_covers_the_id_the_time_and_the_body() {
        let secret = WebhookSecret::new([7; 32]);
        let signature = webhook_signature(&secret, "id", 1, "{}");
        assert!(signature.starts_with("v1,") && signature.len() == 3 + 44);
        for other in [
            webhook_signature(&secret, "other", 1, "{}"),
            webhook_signature(&secret, "id", 2, "{}"),
            webhook_signature(&secret, "id", 1, "[]"),
            webhook_signature(&WebhookSecret::new([8; 32]), "id", 1, "{}"),
        ] {
            assert_ne!(signature, other);
        }
        assert_eq!(
            webhook_secret_text(&secret).expose(),
            "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="
        );
    }
}
