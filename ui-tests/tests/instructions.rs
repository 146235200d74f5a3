//! Types cost no instruction: `evict` through a typed handle compiles to what the same by hand compiles to.

use std::error::Error;

use keepspan_ui_tests::{folder, library_with_code};

/// The instructions of a function, without directives, and with its own labels made anonymous.
fn instructions(assembly: &str, function: &str) -> Vec<String> {
    let body = assembly.lines().skip_while(|line| *line != format!("{function}:")).skip(1);
    body.take_while(|line| !line.starts_with(".Lfunc_end"))
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(".cfi") && !line.starts_with('#'))
        .map(|line| match line.split_once(".LBB") {
            Some((before, after)) => {
                format!("{before}.L{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
            }
            None => line.to_owned(),
        })
        .collect()
}

#[test]
fn a_typed_evict_is_the_same_instructions_as_a_raw_one() -> Result<(), Box<dyn Error>> {
    if cfg!(not(all(target_arch = "x86_64", target_os = "linux"))) {
        eprintln!("SKIPPED: labels are read as x86-64 Linux writes them");
        return Ok(());
    }
    let assembly = library_with_code()?.assembly(&folder().join("twins/evict.rs"))?;
    let [typed, raw] = ["typed", "raw"].map(|function| instructions(&assembly, function));
    assert!(raw.len() > 5, "no body found in:\n{assembly}");
    assert_eq!(typed, raw);
    Ok(())
}
