//! The record's experiment: three policies on one workload, and over many seeds.

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
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How many seeds the distribution counts
    #[arg(long, default_value_t = 100)]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Where the picture goes
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let report = experiment(args.seed, args.from, args.seeds)?;
    if let Some(path) = &args.svg {
        fs::write(path, picture::svg(&report)).with_context(|| path.display().to_string())?;
    }
    println!("{}", if args.json { report::json(&report).to_string() } else { report::table(&report) });
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

    /// The record's figures, as far as this workload gives them; the workload was chosen on these seeds.
    #[test]
    fn a_hundred_seeds_show_what_the_record_saw() {
        let report = experiment(0, 0, 100);
        let [full, gate, kept] = &report.seeds.policies;
        assert!(full.passes.iter().all(|passes| *passes >= 11), "{:?}", full.passes);
        assert!(full.low.iter().all(|low| *low >= 20_900), "{:?}", full.low);
        assert!(
            full.overhead.iter().zip(&full.net).all(|(cost, net)| i64::try_from(*cost).is_ok_and(|cost| cost > *net))
        );
        assert!(gate.passes.iter().all(|passes| *passes <= 4), "{:?}", gate.passes);
        assert!(gate.least_net.iter().all(|net| *net > 0), "{:?}", gate.least_net);
        assert!(gate.peak.iter().all(|peak| *peak <= 21_400), "{:?}", gate.peak);
        assert!(kept.overhead.iter().zip(&gate.overhead).all(|(kept, gate)| kept <= gate));
        assert!(kept.overhead.iter().sum::<u64>() < gate.overhead.iter().sum::<u64>());
        assert!(kept.peak.iter().zip(&gate.peak).all(|(kept, gate)| kept <= gate));
    }

    #[test]
    fn a_text_has_the_size_it_says_and_is_the_same_again() {
        let (one, two) = (Workload::new(7), Workload::new(7));
        let pieces = |workload: &Workload| {
            workload.prefix.iter().chain(workload.turns.iter().flatten()).cloned().collect::<Vec<_>>()
        };
        for (one, two) in pieces(&one).iter().zip(pieces(&two)) {
            assert!(one.text().is_ascii());
            assert_eq!(one.text().len() as u64, one.tokens * 4);
            assert_eq!(one.text(), two.text());
        }
        assert_ne!(pieces(&one)[4].text(), pieces(&Workload::new(8))[4].text());
    }

    #[test]
    fn every_point_of_the_picture_is_a_number_on_the_page() {
        let picture = picture::svg(&experiment(44, 0, 3));
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        for part in picture.split(" x='").skip(1) {
            let x: f64 = part.split('\'').next().and_then(|x| x.parse().ok()).unwrap();
            assert!((0.0..=1_200.0).contains(&x), "{x}");
        }
    }

    #[test]
    fn nothing_to_compare_is_still_a_picture() {
        let report = Report { seeds: Distribution::default(), runs: Default::default(), ..experiment(0, 0, 0) };
        assert!(!picture::svg(&report).contains("NaN"));
    }
}
