//! Prints the traversal result of every pair of networks: `cargo run --release -p wraith-sim
//! --example nat_matrix -- [SEEDS]`.

use wraith_sim::internet::matrix;

fn main() {
    let seeds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10);
    for ([one, other], reports) in matrix(1..seeds + 1) {
        let direct = reports.iter().filter(|report| report.direct).count();
        println!("{one:>20} x {other:20} {direct:>3}/{seeds} direct, the first: {}", reports[0]);
    }
}
