//! An enterprise directory: the npm package `oidc-provider` with the directory's claims, pinned in `tests/directory`.

use std::{
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

/// The tenants of the directory.
pub const TENANTS: [&str; 2] = [
    "22222222-bbbb-4bbb-8bbb-222222222222",
    "33333333-cccc-4ccc-8ccc-333333333333",
];
/// The service's client id in the directory, and its secret.
pub const CLIENT: (&str, &str) = ("11111111-aaaa-4aaa-8aaa-111111111111", "the-registrations-secret");
/// The client id of a service principal of every tenant, and its secret.
pub const MACHINE: (&str, &str) = ("55555555-eeee-4eee-8eee-555555555555", "the-machines-secret");
/// The service principal's object id.
pub const MACHINE_OID: &str = "44444444-dddd-4ddd-8ddd-444444444444";
/// The application role of the service principal.
pub const MACHINE_ROLE: &str = "Ledger.Use";
/// The redirect URI of the service.
pub const REDIRECT: &str = "http://127.0.0.1:9/auth/directory/callback";

/// A running directory, stopped when dropped.
#[derive(Debug)]
pub struct DirectoryServer {
    process: Child,
    authority: String,
}

/// The audience of tokens for the service.
pub fn audience() -> String {
    format!("api://{}", CLIENT.0)
}

impl DirectoryServer {
    /// Starts a directory on a free port and waits until it listens.
    ///
    /// # Panics
    /// If it cannot be started because `npm ci` in `tests/directory` has not run.
    pub fn start() -> Self {
        let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/directory"));
        assert!(
            directory.join("node_modules").is_dir(),
            "no directory: run `npm ci` in tests/directory"
        );
        let settings = serde_json::json!({
            "tenants": TENANTS,
            "client": { "id": CLIENT.0, "secret": CLIENT.1, "redirect_uris": [REDIRECT] },
            "machine": { "id": MACHINE.0, "secret": MACHINE.1, "oid": MACHINE_OID, "roles": [MACHINE_ROLE] },
            "audience": audience(),
        });
        // The directory ends when its input closes, so it ends with the test process.
        let mut process = Command::new("node")
            .arg(directory.join("provider.mjs"))
            .arg(settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start node: {error}"));
        let output = process
            .stdout
            .take()
            .unwrap_or_else(|| panic!("node has no standard output"));
        let mut lines = BufReader::new(output).lines();
        let authority = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                line.strip_prefix("Listening on ")
                    .map(|address| address.trim().to_owned())
            })
            .unwrap_or_else(|| panic!("the directory ended before it listened"));
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, authority }
    }

    /// The URL of the directory; the tenants are below it.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl Drop for DirectoryServer {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
