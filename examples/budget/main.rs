//! Three ways to prune one tool loop under a hard budget of 24,000 tokens, on the same workload and over many seeds: a
//! model that prunes when the window is full, a gate that asks whether deciding pays, and keepspan with its defaults.
//!
//! `cargo run --example budget` prints what each cost and freed and draws it: `target/budget.svg`, or where `--svg` says.
//!
//! The first two are arithmetic on the sizes of the workload's spans, as published; the third is the library itself. In the
//! first two the list that the model read stays in the conversation (their published figures add up only so); with
//! keepspan it is part of the request that asks, and no span of the window.
//!
//! Exit code: 0 done, 1 the picture could not be written or keepspan refused a step, 2 usage.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;

mod arithmetic;
mod kept;
mod picture;
mod report;
mod workload;

use report::{Distribution, Report, Run};
use workload::Workload;

/// Three ways to prune one tool loop under a hard budget.
#[derive(Parser)]
struct Args {
    /// The workload that is shown
    #[arg(long, default_value_t = 44)]
    seed: u64,
    /// How many seeds the distribution counts
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Where the picture goes
    #[arg(long, default_value = "target/budget.svg")]
    svg: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let report = experiment(args.seed, args.from, args.seeds)?;
    println!("{}", if args.json { report::json(&report).to_string() } else { report::table(&report) });
    let path = args.svg.display();
    // The build may be elsewhere, and `target` with it.
    let folder = args.svg.parent().map_or(Ok(()), fs::create_dir_all);
    folder
        .and_then(|()| fs::write(&args.svg, picture::svg(&report)))
        .with_context(|| format!("the picture could not be written to {path}"))?;
    eprintln!("the picture is in {path}");
    Ok(())
}

fn experiment(seed: u64, from: u64, seeds: u64) -> Result<Report> {
    let mut distribution = Distribution::default();
    for seed in from..from.saturating_add(seeds) {
        distribution.add(&runs(&Workload::new(seed))?);
    }
    let workload = Workload::new(seed);
    let runs = runs(&workload)?;
    Ok(Report { seed, unpruned: workload.tokens(), budget: arithmetic::BUDGET, runs, seeds: distribution })
}

fn runs(workload: &Workload) -> Result<[Run; 3]> {
    let [full, gate] = [arithmetic::FULL, arithmetic::GATE].map(|policy| arithmetic::run(policy, workload));
    Ok([full, gate, kept::run(workload)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Piece;

    /// What the published figures say, on this workload; the workload's sizes were chosen on these seeds.
    #[test]
    fn a_hundred_seeds_show_what_was_published() -> Result<()> {
        let report = experiment(0, 0, 100)?;
        let [full, gate, _] = &report.seeds.policies;
        assert!(full.passes.iter().all(|passes| *passes >= 11), "{:?}", full.passes);
        assert!(full.low.iter().all(|low| *low >= 20_900), "{:?}", full.low);
        let costs_more = |(cost, net): (&u64, &i64)| i64::try_from(*cost).is_ok_and(|cost| cost > *net);
        assert!(full.overhead.iter().zip(&full.net).all(costs_more));
        assert!(gate.passes.iter().all(|passes| *passes <= 4), "{:?}", gate.passes);
        assert!(gate.least_net.iter().all(|net| *net > 0), "{:?}", gate.least_net);
        assert!(gate.peak.iter().all(|peak| *peak <= 21_400), "{:?}", gate.peak);
        Ok(())
    }

    /// On those seeds and on as many that nothing was chosen on.
    #[test]
    fn keepspan_spends_less_on_deciding_and_peaks_no_higher() -> Result<()> {
        for from in [0, 5_000] {
            let report = experiment(from, from, 100)?;
            let [_, gate, kept] = &report.seeds.policies;
            let no_more = |(kept, gate): (&u64, &u64)| kept <= gate;
            assert!(kept.overhead.iter().zip(&gate.overhead).all(no_more), "{:?}", kept.overhead);
            assert!(kept.overhead.iter().sum::<u64>() < gate.overhead.iter().sum());
            assert!(kept.peak.iter().zip(&gate.peak).all(no_more), "{:?}", kept.peak);
            assert!(kept.least_net.iter().all(|net| *net > 0), "{:?}", kept.least_net);
            assert!(kept.lost.iter().all(|lost| *lost == 0));
        }
        Ok(())
    }

    #[test]
    fn a_text_has_the_size_it_says_and_is_the_same_again() {
        let texts = |seed| {
            let workload = Workload::new(seed);
            let pieces = workload.prefix.iter().chain(workload.turns.iter().flatten());
            pieces.map(|piece: &Piece| (piece.text(), piece.tokens)).collect::<Vec<_>>()
        };
        for (text, tokens) in texts(7) {
            assert!(text.is_ascii());
            assert_eq!(text.len() as u64, tokens * 4);
        }
        assert_eq!(texts(7), texts(7));
        assert_ne!(texts(7), texts(8));
    }

    #[test]
    fn every_point_of_the_picture_is_a_number_on_the_page() -> Result<()> {
        let picture = picture::svg(&experiment(44, 0, 3)?);
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        for part in picture.split(" x='").skip(1) {
            let x: f64 = part.split('\'').next().unwrap_or_default().parse()?;
            assert!((0.0..=1_200.0).contains(&x), "{x}");
        }
        Ok(())
    }

    #[test]
    fn nothing_to_compare_is_still_a_picture() -> Result<()> {
        let report = Report { seeds: Distribution::default(), runs: Default::default(), ..experiment(0, 0, 0)? };
        assert!(!picture::svg(&report).contains("NaN"));
        Ok(())
    }
}
