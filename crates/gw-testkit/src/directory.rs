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
/// The service as it is registered, and its secret.
pub const CLIENT: (&str, &str) = ("11111111-aaaa-4aaa-8aaa-111111111111", "the-registrations-secret");
/// A machine of every tenant, and its secret.
pub const MACHINE: (&str, &str) = ("55555555-eeee-4eee-8eee-555555555555", "the-machines-secret");
/// The machine's object id.
pub const MACHINE_OID: &str = "44444444-dddd-4ddd-8ddd-444444444444";
/// The application role the machine holds.
pub const MACHINE_ROLE: &str = "Ledger.Use";
/// Where a browser comes back to.
pub const REDIRECT: &str = "http://127.0.0.1:9/auth/directory/callback";

/// A running directory, stopped when dropped.
#[derive(Debug)]
pub struct DirectoryServer {
    process: Child,
    authority: String,
}

/// The audience that means the service.
pub fn audience() -> String {
    format!("api://{}", CLIENT.0)
}

impl DirectoryServer {
    /// Starts a directory on a free port and waits until it listens.
    ///
    /// # Panics
    /// When it cannot be started: `npm ci` in `tests/directory` has not run.
    pub fn start() -> Self {
        let place = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/directory"));
        assert!(
            place.join("node_modules").is_dir(),
            "no directory: run `npm ci` in tests/directory"
        );
        let settings = serde_json::json!({
            "tenants": TENANTS,
            "client": { "id": CLIENT.0, "secret": CLIENT.1, "redirect_uris": [REDIRECT] },
            "machine": { "id": MACHINE.0, "secret": MACHINE.1, "oid": MACHINE_OID, "roles": [MACHINE_ROLE] },
            "audience": audience(),
        });
        // It ends when its input does, so with the test process, however that ends.
        let mut process = Command::new("node")
            .arg(place.join("provider.mjs"))
            .arg(settings.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start node: {error}"));
        let output = process
            .stdout
            .take()
            .unwrap_or_else(|| panic!("node without standard output"));
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

    /// Where it listens; its tenants lie below.
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
