//! `/auth/directory`: login through the enterprise directory (spec/10 section 6).

pub(in crate::routes) mod callback;
pub(in crate::routes) mod service_principal;
pub(in crate::routes) mod url;

use gw_http::{AllowedOrigins, Origin};

/// Whether the directory may send the browser there: to an allowed page, over https in production (OA-3, DS-2).
fn is_allowed_redirect(text: &str, own: &AllowedOrigins, production: bool) -> bool {
    let strange = |c: char| c.is_control() || c.is_whitespace() || matches!(c, '#' | '\\');
    let Ok(origin) = Origin::from_url(text) else {
        return false;
    };
    let secure = !production || origin.as_str().starts_with("https://");
    let ours = own.is_own(&origin) || (!production && origin.is_loopback());
    secure && ours && !text.contains(strange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ds2_redirects_go_to_our_pages_only() {
        let origin = |url| Origin::from_url(url).unwrap();
        let own = AllowedOrigins {
            base: origin("https://gate.example"),
            frontend: Some(origin("https://app.example")),
            listed: vec![origin("http://explorer.example")],
            any_localhost: false,
        };
        for (url, in_production, in_development) in [
            ("https://gate.example/auth/directory/callback", true, true),
            ("https://app.example", true, true),
            ("https://app.example/x?y=1", true, true),
            ("http://explorer.example/cb", false, true),
            ("http://localhost:3000/cb", false, true),
            ("https://app.example.evil.example/", false, false),
            ("https://app.example@evil.example/", false, false),
            ("https://user@app.example/", false, false),
            ("https://app.example\\@evil.example/", false, false),
            ("https://app.example/#x", false, false),
            ("https://app.example/a b", false, false),
            ("//app.example/", false, false),
            ("/callback", false, false),
            ("javascript:alert(1)", false, false),
            ("*", false, false),
            ("", false, false),
        ] {
            assert_eq!(is_allowed_redirect(url, &own, true), in_production, "{url}");
            assert_eq!(is_allowed_redirect(url, &own, false), in_development, "{url}");
        }
    }
}
