//! A server of a test's own, to be killed.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    process::Command,
};

use tempfile::TempDir;

pub struct Server {
    folder: TempDir,
    /// Where it listens, now and after a restart.
    pub address: String,
}

impl Server {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The server is another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut server = Self { folder, address: String::new() };
        server.address = server.restart();
        server
    }

    /// Starts it where it is not running.
    pub fn restart(&self) -> String {
        let said = self.tell(&["start", "postgres"]);
        said.trim().strip_prefix("export KEEPSPAN_POSTGRES=").expect("an address").to_owned()
    }

    /// A file of its data folder, as its own user's.
    pub fn write(&self, name: &str, text: &str) {
        let folder = self.folder.path().join("postgres");
        let (file, owner) = (folder.join(name), fs::metadata(&folder).unwrap());
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&file, Some(owner.uid()), Some(owner.gid())).unwrap();
    }

    /// SIGKILL, to all of its processes.
    pub fn crash(&self) {
        self.tell(&["crash"]);
    }

    fn tell(&self, arguments: &[&str]) -> String {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/servers");
        let output = Command::new(script)
            .args(arguments)
            .env("KEEPSPAN_SERVERS", self.folder.path())
            .output()
            .expect("the script is there");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tell(&["stop"]);
    }
}
