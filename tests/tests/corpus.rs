//! Real conversations through the `replay` example's path: nothing evicted is lost.

use std::{path::PathBuf, process::Command};

#[test]
fn replay_runs_on_recorded_conversations() -> Result<(), Box<dyn std::error::Error>> {
    let Some(corpus) = std::env::var_os("KEEPSPAN_CORPUS").map(PathBuf::from) else {
        eprintln!("skipped: KEEPSPAN_CORPUS is not set");
        return Ok(());
    };
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    for folder in ["openai-chat", "tau-bench"] {
        for file in std::fs::read_dir(corpus.join(folder))? {
            let path = file?.path();
            let run = Command::new(env!("CARGO"))
                .current_dir(&root)
                .args(["run", "--quiet", "-p", "keepspan-examples", "--example", "replay", "--"])
                .arg(&path)
                .output()?;
            let said = String::from_utf8_lossy(&run.stdout);
            assert!(run.status.success(), "{}: {said}{}", path.display(), String::from_utf8_lossy(&run.stderr));
            assert!(said.contains("every evicted span came back byte for byte"), "{said}");
        }
    }
    Ok(())
}
