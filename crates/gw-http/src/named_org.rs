//! The organization that a request names (O2, HD39): by its path, by `X-Org-Id`, or by both.

use gw_policy::access::NamedOrg;
use gw_types::OrgId;
use http::{HeaderMap, HeaderName};

/// The header that names an organization.
pub const ORG_HEADER: HeaderName = HeaderName::from_static("x-org-id");

/// Path and headers of a request name different organizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("path and X-Org-Id name different organizations")]
pub struct TwoOrganizations;

/// The organization that a request names, which may not exist. `known` is what the kind of the request names, and
/// `path` the text in its path.
///
/// # Errors
/// [`TwoOrganizations`] if these or the headers name different organizations.
pub fn named_org(known: NamedOrg, path: Option<&str>, headers: &HeaderMap) -> Result<NamedOrg, TwoOrganizations> {
    let listed = headers.get_all(ORG_HEADER).iter();
    let listed = listed.map(|value| parse(value.to_str().unwrap_or_default()));
    let mut named = path.map(parse).into_iter().chain(listed);
    named.try_fold(known, |known, org| {
        if known == NamedOrg::Unnamed || known == org {
            Ok(org)
        } else {
            Err(TwoOrganizations)
        }
    })
}

/// Only UUIDs name organizations (decision 40).
fn parse(text: &str) -> NamedOrg {
    text.parse::<OrgId>().map_or(NamedOrg::Unreadable, NamedOrg::Org)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn o2_path_and_headers_name_one_organization() {
        let (bank, rival) = (OrgId::fixed(1), OrgId::fixed(2));
        let named = |known, path: Option<&str>, listed: &[&str]| {
            let mut headers = HeaderMap::new();
            for org in listed {
                headers.append(ORG_HEADER, org.parse().unwrap());
            }
            named_org(known, path, &headers)
        };
        let (bank_text, rival_text) = (bank.to_string(), rival.to_string());
        let unnamed = NamedOrg::Unnamed;
        assert_eq!(named(unnamed, None, &[]), Ok(NamedOrg::Unnamed));
        assert_eq!(named(unnamed, Some(&bank_text), &[]), Ok(NamedOrg::Org(bank)));
        assert_eq!(named(unnamed, None, &[&bank_text, &bank_text]), Ok(NamedOrg::Org(bank)));
        assert_eq!(named(unnamed, Some(&bank_text), &[&bank_text]), Ok(NamedOrg::Org(bank)));
        assert_eq!(named(NamedOrg::Org(bank), None, &[]), Ok(NamedOrg::Org(bank)));
        assert_eq!(named(unnamed, None, &["bank"]), Ok(NamedOrg::Unreadable));
        assert_eq!(named(unnamed, None, &[""]), Ok(NamedOrg::Unreadable));
        for (known, path, listed) in [
            (unnamed, Some(&bank_text), &[rival_text.as_str()][..]),
            (unnamed, None, &[&bank_text, &rival_text]),
            (unnamed, Some(&bank_text), &["bank"]),
            (NamedOrg::Org(bank), None, &[&rival_text]),
        ] {
            let path = path.map(String::as_str);
            assert_eq!(
                named(known, path, listed),
                Err(TwoOrganizations),
                "{known:?} {path:?} {listed:?}"
            );
        }
    }
}
