//! Signed reports, receipts and exports (spec/50 rules 33 to 37 and section 9), and the API description.

use crate::world::{Caller, SEED, World, on_both_engines};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, SigningKey};
use serde_json::{Value, json};

/// Checks the signature of a document as a reader does: without the member `signature`, in the canonical form. The
/// documents of these tests have ASCII names and no numbers that the canonical form writes differently, so sorted
/// members without white space are it.
#[track_caller]
fn verify(document: &Value) -> bool {
    let mut document = document.clone();
    let signature = document.as_object_mut().unwrap().remove("signature").unwrap();
    assert_eq!(
        (&signature["algorithm"], &signature["canonicalization"]),
        (&json!("Ed25519"), &json!("RFC 8785"))
    );
    let key = SigningKey::from_bytes(&SEED).verifying_key();
    assert_eq!(signature["public_key"], STANDARD.encode(key.to_bytes()));
    let bytes = STANDARD.decode(signature["value"].as_str().unwrap()).unwrap();
    let signature = Signature::from_slice(&bytes).unwrap();
    key.verify_strict(document.to_string().as_bytes(), &signature).is_ok()
}

#[tokio::test]
async fn ds33_ds35_ds36_ds37_reports_are_signed_and_kept_for_a_day() {
    on_both_engines(async |w| {
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        let path = |kind: &str| format!("/admin/disclosure/grants/{grant}/report/{kind}");
        let reader = Caller::User(&w.grantee);
        for kind in ["activity_summary", "sanctions_check", "compliance_report"] {
            let report = w.get(reader, &path(kind)).await.expect(200);
            assert_eq!(
                (&report["report_type"], &report["grant_id"]),
                (&json!(kind), &json!(grant))
            );
            assert!(verify(&report), "{report}");
            let mut forged = report.clone();
            forged["report_data"] = json!({"is_clear": true});
            assert!(!verify(&forged));
            w.fixture.clock.pass(60);
            assert_eq!(w.get(reader, &path(kind)).await.expect(200), report, "kept");
        }
        // Without lists nothing is claimed to be clear.
        let sanctions = w.get(reader, &path("sanctions_check")).await.expect(200);
        assert_eq!(sanctions["report_data"]["is_clear"], Value::Null);
        assert_eq!(sanctions["report_data"]["screening"], "not_configured");
        let compliance = w.get(reader, &path("compliance_report")).await.expect(200);
        assert_eq!(compliance["report_data"]["kyc_verified"], true);
        for kind in ["summary", "ACTIVITY_SUMMARY", "x"] {
            w.get(reader, &path(kind))
                .await
                .expect_error(400, "invalid report type");
        }
    })
    .await;
}

#[tokio::test]
async fn section_9_a_receipt_tells_who_what_why_and_how_long() {
    on_both_engines(async |w| {
        let (request, grant) = w
            .grant(json!({"methods": ["activity_logs"], "disclosure_level": "full"}))
            .await;
        w.get(
            Caller::User(&w.grantee),
            &format!("/admin/disclosure/grants/{grant}/logs"),
        )
        .await
        .expect(200);
        w.seal_reads().await;
        let path = format!("/me/disclosure/grants/{grant}/receipt");
        let receipt = w.get(Caller::User(&w.owner), &path).await.expect(200);
        assert!(verify(&receipt), "{receipt}");
        assert_eq!(receipt["schema_version"], "ISO/IEC TS 27560:2023");
        assert_eq!(
            (&receipt["receipt_id"], &receipt["record_id"]),
            (&json!(grant), &json!(request))
        );
        assert_eq!(receipt["pii_principal_id"], w.owner.name.as_str());
        let processing = &receipt["pii_processing"][0];
        assert_eq!(
            (&processing["purpose"], &processing["lawful_basis"]),
            (&json!("an audit"), &json!("Art. 6"))
        );
        assert_eq!(processing["recipient_third_parties"], json!([w.grantee.name.as_str()]));
        assert_eq!(processing["pii_information"][0]["pii_type"], "activity_logs");
        let withdrawal = processing["withdrawal_method"].as_str().unwrap();
        assert!(
            withdrawal.ends_with(&format!("/me/disclosure/requests/{request}/revoke")),
            "{withdrawal}"
        );
        let kinds = |receipt: &Value| -> Vec<String> {
            let events = receipt["events"].as_array().unwrap().iter();
            events
                .map(|event| event["event_type"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(kinds(&receipt), ["explicit consent", "access", "access", "access"]);
        assert_eq!(receipt["event_count"], 3);
        w.post(
            Caller::User(&w.owner),
            &format!("/me/disclosure/requests/{request}/revoke"),
            json!({}),
        )
        .await
        .expect(200);
        let ended = w.get(Caller::User(&w.owner), &path).await.expect(200);
        assert!(kinds(&ended).contains(&"withdrawal".to_owned()), "{ended}");
    })
    .await;
}

#[tokio::test]
async fn section_9_an_owner_exports_every_event() {
    on_both_engines(async |w| {
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        w.fixture.clock.pass(1);
        let pending = w.request(json!({})).await;
        w.get(
            Caller::User(&w.grantee),
            &format!("/admin/disclosure/grants/{grant}/logs"),
        )
        .await
        .expect(200);
        w.seal_reads().await;
        let export = w.get(Caller::User(&w.owner), "/me/disclosure/export").await.expect(200);
        assert!(verify(&export), "{export}");
        assert_eq!(
            (&export["subject"], &export["total"]),
            (&json!(w.owner.name.as_str()), &json!(2))
        );
        let [newest, oldest] = [&export["disclosures"][0], &export["disclosures"][1]];
        assert_eq!((&newest["request"]["id"], newest.get("grant")), (&json!(pending), None));
        assert_eq!(oldest["grant"]["id"], grant);
        assert_eq!(oldest["events"].as_array().unwrap().len(), 3);
        assert_eq!((&newest["event_count"], &oldest["event_count"]), (&json!(0), &json!(3)));
        let page = w
            .get(Caller::User(&w.owner), "/me/disclosure/export?limit=1&offset=1")
            .await
            .expect(200);
        assert_eq!(page["disclosures"].as_array().unwrap().len(), 1);
        assert_eq!(page["disclosures"][0]["grant"]["id"], grant);
        w.get(Caller::User(&w.owner), "/me/disclosure/export?offset=9007199254740992")
            .await
            .expect_error(400, "offset must be at most 9007199254740991");
        let nothing = w
            .get(Caller::User(&w.grantee), "/me/disclosure/export")
            .await
            .expect(200);
        assert_eq!(nothing["disclosures"], json!([]));
    })
    .await;
}

/// Every described operation exists, and asks for credentials.
#[tokio::test]
async fn every_described_operation_is_served() {
    let w = World::start(None).await;
    let description = serde_json::to_value(gw_disclosure::api()).unwrap();
    let mut count = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, _) in item.as_object().unwrap() {
            count += 1;
            let id = "99999999-9999-4999-8999-999999999999";
            let path = path
                .replace("{request_id}", id)
                .replace("{grant_id}", id)
                .replace("{report_type}", "activity_summary");
            let request = http::Request::builder()
                .method(method.to_uppercase().as_str())
                .uri(path);
            let answer = w.send(Caller::Nobody, request, axum::body::Body::empty()).await;
            assert_eq!(answer.status.as_u16(), 401, "{method} {}", answer.text);
        }
    }
    assert!(count > 20, "{count}");
}

/// Section 9: receipts and exports have a bounded size, however often a grantee reads. The list of events has the other
/// events.
#[tokio::test]
async fn section_9_documents_have_the_newest_thousand_events_of_a_grant() {
    on_both_engines(async |w| {
        let mut grants = Vec::new();
        for _ in 0..6 {
            let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
            w.get(
                Caller::User(&w.grantee),
                &format!("/admin/disclosure/grants/{grant}/logs"),
            )
            .await
            .expect(200);
            w.fixture.clock.pass(1);
            grants.push(grant);
        }
        let records = w.fixture.records();
        let reads = records
            .iter()
            .filter(|record| matches!(record, gw_audit::Record::Disclosure(_)));
        let many = reads.flat_map(|read| std::iter::repeat_n(read.clone(), 1000)).collect();
        w.seal(gw_audit::Stream::Disclosure, many).await;

        let owner = Caller::User(&w.owner);
        let path = format!("/me/disclosure/grants/{}/receipt", grants[0]);
        let receipt = w.get(owner, &path).await.expect(200);
        let accesses = receipt["events"].as_array().unwrap().iter();
        let accesses = accesses.filter(|event| event["event_type"] == "access").count();
        assert_eq!((accesses, &receipt["event_count"]), (1000, &json!(1002)));

        let mut exported = Vec::new();
        let mut offset = 0;
        while offset < 6 {
            let page = w
                .get(owner, &format!("/me/disclosure/export?offset={offset}"))
                .await
                .expect(200);
            let disclosures = page["disclosures"].as_array().unwrap();
            let events = disclosures.iter().map(|one| one["events"].as_array().unwrap().len());
            assert!(events.sum::<usize>() <= 5000, "a page of bounded size");
            for one in disclosures {
                assert_eq!(
                    (one["events"].as_array().unwrap().len(), &one["event_count"]),
                    (1000, &json!(1002))
                );
                exported.push(one["grant"]["id"].as_str().unwrap().to_owned());
            }
            assert_eq!(
                page["limit"].as_u64().unwrap().min(6 - offset),
                disclosures.len() as u64
            );
            offset += disclosures.len() as u64;
        }
        grants.reverse();
        assert_eq!(exported, grants, "every disclosure once, the newest first");
    })
    .await;
}
