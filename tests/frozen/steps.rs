//! The commands that read the frozen records, in the order in which they are run.

/// A command, with the name of the folder that holds what is expected of it.
pub struct FrozenCommand {
    pub name: &'static str,
    /// Without spaces inside an argument.
    pub arguments: &'static str,
}

impl FrozenCommand {
    /// A name for the result that it prints, by its form; nothing where it prints for people, or writes a file.
    pub fn result_on_stdout(&self) -> Option<&'static str> {
        let words: Vec<&str> = self.arguments.split_whitespace().collect();
        let after = |flag: &str| words.iter().skip_while(|word| **word != flag).nth(1).copied();
        let code = after("--code").map(|of| if of == "c" { "stdout.c" } else { "stdout.rs" });
        if code.is_some() || after("--output").is_some() {
            return code;
        }
        match after("--format").or_else(|| after("--target"))? {
            "json" => Some("stdout.json"),
            "csv" => Some("stdout.csv"),
            "c" => Some("stdout.c"),
            "rust" => Some("stdout.rs"),
            "intel" => Some("stdout.sh"),
            "openmpi" => Some("stdout.rules"),
            _ => None,
        }
    }
}

macro_rules! steps {
    ($($name:literal: $($argument:literal)+;)*) => {
        &[$(FrozenCommand { name: $name, arguments: concat!($($argument),+) }),*]
    };
}

/// On the record of a tuning run.
pub const TUNE: &[FrozenCommand] = steps! {
    "resume": "tune tune --testbed 4 --collective bcast,reduce --procs 2,4 --sizes 64,8KiB,256KiB "
        "--budget 100s --resume";
    "report": "report tune";
    "decide-candidates": "decide --calibration tune --layouts 4x1 --collective bcast --sizes 64,8KiB "
        "--candidates candidates --format csv";
    "verify": "verify tune --from-record --compare default,measured";
    "verify-judge": "verify tune --from-record --model loggp,plogp --judge rules=tune/openmpi.rules "
        "--judge models=tune/decisions.json --judge run=tune --compare rules,run";
    "report-agreement": "report tune";
    "export-openmpi": "export tune --target openmpi --output openmpi.rules";
    "export-openmpi-4.0": "export tune --target openmpi --target-version 4.0";
    "export-openmpi-json": "export tune --target openmpi-json --target-version 6.0 "
        "--output openmpi.json";
    "export-profile": "export tune --target profile --output profiles";
    "export-intel": "export --unconfirmed tune --target intel";
    "export-intel-asked": "export --unconfirmed tune --target intel --target-version 2021.19";
    "export-unconfirmed": "export --unconfirmed tune --target openmpi --output unconfirmed.rules";
    "export-c": "export tune --target c";
    "export-rust": "export tune --target rust";
    "difference-runs": "decide tune --against tune/decisions.json:plogp --collective bcast --run tune";
    "difference-measured": "decide tune/decisions.json:plogp --against tune/decisions.json:loggp "
        "--collective bcast --run tune --figure difference.svg";
    "difference-json": "decide tune/decisions.json:plogp --against tune/decisions.json:loggp "
        "--collective reduce --run tune --format json";
    "calibrate-compare": "calibrate --compare tune/calibration.json tune/calibration.json";
};

/// On the records of six jobs.
pub const GUIDELINES: &[FrozenCommand] = steps! {
    "guidelines": "guidelines guidelines --from-record";
    "report": "report guidelines";
    "other-test": "guidelines guidelines --from-record --test kolmogorov-smirnov --level 0.2 "
        "--min-gain 0.02";
    "export-profile": "export --unconfirmed guidelines --target profile --output profiles";
    "export-c": "export --unconfirmed guidelines --target c";
    "table-classes": "guidelines guidelines --from-record --table classes --beside guidelines";
    "table-patterns": "guidelines guidelines --from-record --table patterns";
    "table-sizes": "guidelines guidelines --from-record --table sizes";
    "nrep": "bench --nrep guidelines --from-record --stop-by rse=0.15,cov-mean=0.5@2 --min 2 --step 1";
    "nrep-tunelib": "bench --nrep guidelines --from-record --tunelib --smallest-error 0.2 --b1 3 --b2 2";
};

/// On the record of a calibration of four nodes.
pub const CALIBRATION: &[FrozenCommand] = steps! {
    "calibrate": "calibrate calibration --from-record --algorithms-of bcast,reduce";
    "report": "report calibration";
    "compare": "calibrate --compare calibration/calibration.json tune/calibration.json";
    "compare-json": "calibrate --compare calibration/calibration.json tune/calibration.json "
        "--format json";
    "predict": "predict --calibration calibration/calibration.json --procs 2,9 --sizes 8KiB "
        "--model all";
    "predict-fitted": "predict --calibration calibration/calibration.json --parameters fitted "
        "--collective reduce --algorithm binomial,pipeline --procs 4 --sizes 1..64KiB "
        "--model plogp --format json --figure predicted.svg";
    "predict-simulated": "predict --calibration calibration/calibration.json "
        "--collective allreduce,barrier --procs 4 --sizes 8,64KiB --model simulated,refined";
    "predict-algorithms": "predict --calibration calibration/calibration.json "
        "--parameters algorithms --procs 4 --sizes 64,8KiB --format csv";
    "predict-printed": "predict --calibration preset:boba --forms printed --procs 5 "
        "--sizes 1KiB,1MiB --format csv";
    "decide": "decide --calibration calibration/calibration.json --procs 2,4,8 "
        "--sizes 64,8KiB,256KiB --output decisions.json";
    "decide-figure": "decide --calibration calibration/calibration.json --collective bcast "
        "--procs 2..8 --figure decided.svg";
    "decide-openmpi": "decide --calibration calibration/calibration.json --target openmpi "
        "--procs 4 --sizes 64,8KiB,256KiB --format json";
    "decide-algorithms": "decide --calibration calibration/calibration.json "
        "--parameters algorithms --procs 4 --sizes 64,8KiB,256KiB --format csv";
    "decide-candidates": "decide --calibration calibration/calibration.json --layouts 4x1,4x2 "
        "--collective barrier,bcast,allreduce --sizes 8,64KiB --candidates candidates";
    "decide-table": "decide --calibration calibration/calibration.json --collective bcast "
        "--model loggp --procs 2..9 --compress table";
    "decide-tree": "decide --calibration calibration/calibration.json --collective bcast "
        "--model loggp --procs 2..9 --compress tree --within 0.02 --code c";
    "decide-quadtree": "decide --calibration calibration/calibration.json --collective bcast "
        "--model loggp --procs 2..9 --compress quadtree --depth 3 --code rust";
    "explain": "explain --calibration calibration/calibration.json --procs 4 --sizes 8KiB "
        "--model loggp,plogp,refined";
    "explain-json": "explain --calibration calibration/calibration.json --collective reduce "
        "--procs 8 --sizes 64KiB --model loggp --format json";
    "predict-rendezvous": "predict --model simulated --calibration calibration/calibration.json "
        "--costs loggp --collective bcast --procs 4,16 --sizes 8,64KiB --rendezvous 4KiB --format json";
    "draw-schedule": "draw --schedule --calibration calibration/calibration.json "
        "--collective bcast --algorithm binary --procs 7 --sizes 16KiB --segments 4KiB "
        "--output schedule.svg";
    "draw-topology": "draw --topology binomial --procs 13 --output tree.svg";
    "draw-dot": "draw --topology k-nomial --procs 9 --fan-out 3";
    "difference": "decide decisions.json:hockney --against decisions.json:plogp --collective reduce "
        "--calibration calibration/calibration.json --model plogp --figure difference.svg";
    "export-openmpi": "export --unconfirmed --decisions decisions.json --target openmpi --model plogp "
        "--calibration calibration/calibration.json --output openmpi.rules";
    "export-openmpi-json": "export --unconfirmed --decisions decisions.json --target openmpi-json "
        "--target-version 6.0 --model plogp --calibration calibration/calibration.json --output openmpi.json";
    "export-c": "export --unconfirmed decisions.json --target c --model plogp";
    "export-mpich": "export --unconfirmed --decisions decisions.json --target mpich --model plogp "
        "--calibration calibration/calibration.json --target-version 4.0 "
        "--target-library libmpich.so --output mpich.json";
    "export-intel": "export --unconfirmed --decisions decisions.json --target intel --target-version 2021.19 "
        "--model plogp --calibration calibration/calibration.json --output intel.sh";
    "export-ucc": "export --unconfirmed --decisions decisions.json --target ucc --model plogp "
        "--calibration calibration/calibration.json --output ucc.sh";
    "export-profile": "export --unconfirmed --decisions decisions.json --target profile --model plogp "
        "--calibration calibration/calibration.json --output profiles";
    "export-pgtune": "export --unconfirmed --decisions decisions.json --target pgtune --model plogp "
        "--calibration calibration/calibration.json --output pgtune";
};
