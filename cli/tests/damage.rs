//! `verify` finds every changed byte that matters, and says where.

#![allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a test may panic")]

mod common;

use common::{Outcome, SECRET, flip, made, made_twice};

#[test]
fn a_whole_store_verifies() -> Outcome {
    let made = made_twice()?;
    let verified = made.run("verify", &[])?;
    assert_eq!(verified.code, Some(0), "{verified:?}");
    assert!(verified.out.contains("migrate-42") && verified.out.contains("migrate-43"), "{}", verified.out);
    let json = made.run("verify", &["--json"])?.json()?;
    assert_eq!(json[0]["faults"].as_array().map(Vec::len), Some(0));
    Ok(())
}

#[test]
fn a_flipped_byte_in_a_blob_is_found_with_its_span() -> Outcome {
    let made = made()?;
    flip(&made.file, format!("// file 2, users.id {SECRET}").as_bytes())?;
    let verified = made.run("verify", &[])?;
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.out.contains("s6"), "it names the span: {}", verified.out);
    assert_eq!(made.run("verify", &["--json"])?.code, Some(1));
    assert_eq!(made.run("recall", &["s6"])?.code, Some(1), "nor is it given out");
    assert_eq!(made.run("recall", &["s4"])?.code, Some(0), "the others are");
    Ok(())
}

#[test]
fn a_flipped_byte_in_a_record_is_found_with_its_number() -> Outcome {
    let made = made()?;
    flip(&made.file, b"ask the vault for a new one")?;
    let verified = made.run("verify", &[])?;
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.out.contains("record"), "{}", verified.out);
    assert_eq!(made.run("log", &[])?.code, Some(1));
    Ok(())
}
