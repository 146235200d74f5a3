//! The cases: `cases/<rule>/<name>.rs` must fail, `<name>.ok.rs` differs by one line and must compile.
//!
//! The first lines of a case say what must be wrong with it, one line an error:
//! `//@ R1 E0277 the start of the headline`, with `-` for an error without a code.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

/// One error that a case must give.
#[derive(Debug, PartialEq, Eq)]
pub struct Expected {
    /// The rule that the case breaks.
    pub rule: String,
    /// The compiler's code, or `-`.
    pub code: String,
    /// How the headline starts.
    pub headline: String,
}

/// A program that must not compile.
#[derive(Debug)]
pub struct Case {
    /// Its file.
    pub path: PathBuf,
    /// What must be wrong with it.
    pub expected: Vec<Expected>,
}

impl Case {
    /// The program that differs by one line and compiles, where there is one.
    pub fn twin(&self) -> Option<PathBuf> {
        Some(self.path.with_extension("ok.rs")).filter(|path| path.exists())
    }
}

/// The folder of this package.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every case, in a stable order.
pub fn cases() -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for rule in fs::read_dir(folder().join("cases"))? {
        for file in fs::read_dir(rule?.path())? {
            let path = file?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.ends_with(".rs") && !name.ends_with(".ok.rs") {
                let expected = expected(&fs::read_to_string(&path)?);
                cases.push(Case { path, expected });
            }
        }
    }
    cases.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(cases)
}

fn expected(source: &str) -> Vec<Expected> {
    let header = |line: &str| {
        let mut words = line.strip_prefix("//@ ")?.splitn(3, ' ').map(str::to_owned);
        Some(Expected { rule: words.next()?, code: words.next()?, headline: words.next()? })
    };
    source.lines().map_while(header).collect()
}

/// A built keepspan, against which a case is compiled with `rustc` alone.
pub struct Library {
    keepspan: PathBuf,
    dependencies: PathBuf,
}

/// Checks keepspan, with one rule taken out where `rule_off` names one. Dependencies are checked once, and no code is
/// generated: types are all that a case is about.
pub fn library(rule_off: Option<&str>) -> io::Result<Library> {
    build("check", ".rmeta", rule_off)
}

/// Builds keepspan with its code, for programs whose instructions are looked at.
pub fn library_with_code() -> io::Result<Library> {
    build("dev", ".rlib", None)
}

fn build(profile: &str, product: &str, rule_off: Option<&str>) -> io::Result<Library> {
    let target = folder().join("../target/ui-rules");
    let cfg = rule_off.map(|rule| format!("keepspan_rule_off=\"{rule}\""));
    let out = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(folder())
        .args(["rustc", "--quiet", "--manifest-path", "../core/Cargo.toml", "--lib", "--profile", profile])
        .args(["--no-default-features", "--features", "derive", "--message-format", "json", "--target-dir"])
        .arg(&target)
        .arg("--")
        .args(cfg.iter().flat_map(|cfg| ["--cfg", "keepspan_unsealed", "--cfg", cfg.as_str()]))
        .output()?;
    if !out.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&out.stderr).into_owned()));
    }
    let keepspan = String::from_utf8_lossy(&out.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "keepspan")
        .find_map(|message| {
            let files = message["filenames"].as_array()?.clone();
            files.iter().filter_map(|file| file.as_str()).find(|file| file.ends_with(product)).map(PathBuf::from)
        });
    let keepspan = keepspan.ok_or_else(|| io::Error::other("cargo named no library of keepspan"))?;
    Ok(Library { keepspan, dependencies: target.join("debug/deps") })
}

impl Library {
    /// Compiles one program; gives what the compiler said when it did not compile.
    pub fn compile(&self, program: &Path) -> io::Result<Result<(), String>> {
        let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let made =
            self.dependencies.join(format!("case-{}-{:?}-{name}.rmeta", std::process::id(), thread::current().id()));
        let out = self.rustc(program).args(["--crate-type", "bin", "--emit", "metadata", "-o"]).arg(&made).output()?;
        // Only whether it compiles is asked; a program that does not has left no file.
        let _ = fs::remove_file(made);
        Ok(if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) })
    }

    /// The optimized assembly of a library of functions.
    pub fn assembly(&self, functions: &Path) -> io::Result<String> {
        let out = self.rustc(functions).args(["--crate-type", "lib", "--emit", "asm", "-O", "-o", "-"]).output()?;
        if !out.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&out.stderr).into_owned()));
        }
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    }

    fn rustc(&self, program: &Path) -> Command {
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc
            .current_dir(folder())
            .args(["--edition", "2024", "--crate-name", "case", "--extern"])
            .arg(format!("keepspan={}", self.keepspan.display()))
            .arg("-L")
            .arg(format!("dependency={}", self.dependencies.display()))
            .arg(program);
        rustc
    }
}
